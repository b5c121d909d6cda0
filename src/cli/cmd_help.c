/* SPDX-License-Identifier: ISC */
/* help, version; and `help --complete [COMMAND]`, from which the shells' completions and the manual's test are fed. */
#include "cli/cli.h"
#include "base/banned.h"

static void heading(struct cli *c, const char *text)
{
	cli_paint(&c->out, c->term.out_colour, CLI_BOLD, fw_str(text));
	cli_out(c, "\n");
}

static void dashed(struct fw_buf *b, const char *name)
{
	fw_buf_adds(b, "--");
	for (; *name; name++)
		fw_buf_addc(b, *name == '_' ? '-' : *name);
}

static void options_print(struct cli *c, const struct cli_option *o)
{
	struct fw_buf left = FW_BUF_INIT(200);

	for (; o && o->name; o++) {
		fw_buf_reset(&left);
		dashed(&left, o->name);
		if (o->arg)
			fw_buf_addf(&left, " %s", o->arg);
		cli_out(c, "  %-22s %s\n", left.p ? left.p : "", o->text);
	}
	fw_buf_finish(&left);
}

static void command_help(struct cli *c, const struct cli_command *k)
{
	cli_out(c, "%c%s.\n\n", k->summary[0] - ('a' - 'A'), k->summary + 1);
	heading(c, "Usage");
	cli_out(c, "  feedwheel %s%s%s%s\n", k->name, k->option ? " [options]" : "", k->args[0] ? " " : "", k->args);
	if (k->about)
		cli_out(c, "\n%s", k->about);
	if (k->option) {
		cli_out(c, "\n");
		heading(c, "Options");
		options_print(c, k->option);
	}
	if (k->examples) {
		cli_out(c, "\n");
		heading(c, "Examples");
		cli_out(c, "%s", k->examples);
	}
	cli_out(c, "\nOptions of every command: 'feedwheel help'. Settings such as --host-max: 'feedwheel help settings'.\n");
}

static const char *const TOP =
	"feedwheel collects feeds: it keeps your subscriptions, fetches what is due and stores every new entry once.\n\n";

static void general_help(struct cli *c)
{
	cli_out(c, "%s", TOP);
	heading(c, "Usage");
	cli_out(c, "  feedwheel [options] COMMAND [arguments]\n\n");
	heading(c, "Commands");
	for (const struct cli_command *const *k = cli_commands; *k; k++)
		cli_out(c, "  %-9s %s\n", (*k)->name, (*k)->summary);
	cli_out(c, "\n");
	heading(c, "Options of every command");
	options_print(c, cli_global_options);
	cli_out(c, "  %-22s any setting: 'feedwheel help settings'\n\n", "--NAME VALUE");
	heading(c, "First steps");
	cli_out(c, "  feedwheel add https://example.org/feed.xml\n  feedwheel run --once\n  feedwheel entries\n\n"
		"More on a command: 'feedwheel help COMMAND'. The manual: man feedwheel.\n");
}

static void settings_help(struct cli *c)
{
	size_t n;
	const struct fw_setting *s = fw_config_settings(&n);

	cli_out(c, "In the configuration file as \"name = value\", on the command line as --name value (feedwheel.conf(5)).\n\n");
	for (size_t i = 0; i < n; i++) {
		cli_paint(&c->out, c->term.out_colour, CLI_BOLD, fw_str(s[i].name));
		cli_out(c, " = %s\n    %s\n", s[i].initial, s[i].text);
	}
}

/* word TAB text, one a line */
static void complete(struct cli *c, const char *name)
{
	const struct cli_command *k = name ? cli_command_find(name) : NULL;
	const struct cli_option *const LIST[] = {k ? k->option : NULL, cli_global_options};
	struct fw_buf word = FW_BUF_INIT(200);
	size_t n;
	const struct fw_setting *s = fw_config_settings(&n);

	for (const struct cli_command *const *at = cli_commands; !k && *at; at++)
		cli_out(c, "%s\t%s\n", (*at)->name, (*at)->summary);
	for (size_t i = 0; i < FW_N(LIST); i++) {
		for (const struct cli_option *o = LIST[i]; o && o->name; o++) {
			cli_out(c, "--%s\t%s%s%s\n", o->name, o->arg ? o->arg : "", o->arg ? ": " : "", o->text);
		}
	}
	for (size_t i = 0; i < n; i++) {
		fw_buf_reset(&word);
		dashed(&word, s[i].name);
		cli_out(c, "%s\t%s\n", word.p ? word.p : "", s[i].text);
	}
	fw_buf_finish(&word);
}

static int help_run(struct cli *c)
{
	const struct cli_command *k;

	if (cli_flag(c, "complete")) {
		complete(c, c->arg_n ? c->arg[0] : NULL);
		return CLI_OK;
	}
	if (!c->arg_n) {
		general_help(c);
		return CLI_OK;
	}
	if (strcmp(c->arg[0], "settings") == 0) {
		settings_help(c);
		return CLI_OK;
	}
	k = cli_command_find(c->arg[0]);
	if (!k)
		return cli_command_unknown(c, c->arg[0]);
	command_help(c, k);
	return CLI_OK;
}

static const struct cli_option HELP_OPTION[] = {
	{"complete", NULL, "words and their meanings, for shell completions"},
	{NULL, NULL, NULL},
};

const struct cli_command cli_help = {
	.name = "help", .args = "[COMMAND | settings]", .summary = "help, also for one command or on the settings",
	.examples = "  feedwheel help import\n  feedwheel help settings\n",
	.option = HELP_OPTION, .max_args = 1, .flags = CLI_NO_CONFIG, .run = help_run,
};
