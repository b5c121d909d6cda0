/* SPDX-License-Identifier: ISC */
/*
 * help: general help, one command, all settings; also the entry point of the shells' completions.
 */
#include <stdarg.h>

#include "cli/cli.h"

static void help_heading(struct cli *c, const char *text)
{
	cli_paint(&c->out, c->term.out_colour, CLI_BOLD, fw_str(text));
	cli_out(c, "\n");
}

/* Help is wrapped even if stdout is not a terminal: a pager shows it on one. */
static void help_wrap(struct cli *c, struct fw_str line, size_t hang)
{
	cli_wrap(&c->out, line, (size_t)c->term.width, hang);
	cli_out(c, "\n");
}

static FW_PRINTF(3, 4) void help_line(struct cli *c, size_t hang, const char *fmt, ...)
{
	struct fw_buf line = FW_BUF_INIT(0);
	va_list ap;

	va_start(ap, fmt);
	fw_buf_vaddf(&line, fmt, ap);
	va_end(ap);
	help_wrap(c, fw_buf_str(&line), hang);
	fw_buf_finish(&line);
}

#define OPTION_COLUMN 25 /* of the options' meanings */

static void help_options(struct cli *c, const struct cli_option *o)
{
	struct fw_buf left = FW_BUF_INIT(200);

	for (; o && o->name; o++) {
		fw_buf_reset(&left);
		cli_dashed(&left, o->name);
		if (o->arg)
			fw_buf_addf(&left, " %s", o->arg);
		help_line(c, OPTION_COLUMN, "  %-22s %s", left.p ? left.p : "", o->text);
	}
	fw_buf_finish(&left);
}

/*
 * The settings that the command accepts as options: with: only those that require another option;
 * else only the others. *left: how many it does not accept.
 */
static void help_setting_names(const struct cli_command *k, bool with, struct fw_buf *line, size_t *left)
{
	struct fw_str option;
	size_t n;
	const struct fw_setting *s = fw_config_settings(&n);

	*left = 0;
	for (size_t i = 0; i < n; i++) {
		bool used = cli_uses_setting(k, &s[i], &option);

		*left += !used;
		if (!used || cli_option_find(cli_global_options, fw_str(s[i].name)) || with != (option.len > 0))
			continue;
		if (line->len)
			fw_buf_adds(line, ", ");
		else if (with)
			fw_buf_addf(line, "With --%.*s: ", FW_STR_ARG(option));
		cli_dashed(line, s[i].name);
	}
}

static void help_used_settings(struct cli *c, const struct cli_command *k)
{
	struct fw_buf line = FW_BUF_INIT(0);
	size_t left;

	for (int with = 0; with < 2; with++) {
		fw_buf_reset(&line);
		help_setting_names(k, with, &line, &left);
		if (!line.len)
			continue;
		if (!with) {
			cli_out(c, "\n");
			help_heading(c, "Settings as options");
		}
		if (left)
			help_line(c, 2, "  %.*s", FW_STR_ARG(fw_buf_str(&line)));
		else if (!with)
			help_line(c, 2, "  All: --NAME VALUE");
	}
	fw_buf_finish(&line);
}

/* Reflow a paragraph: a newline is white space, except before an indented line. */
static void help_about(struct cli *c, const char *about)
{
	struct fw_buf text = FW_BUF_INIT(0);
	struct fw_str rest;

	for (const char *p = about; *p; p++)
		fw_buf_addc(&text, *p == '\n' && p[1] && p[1] != ' ' && p[1] != '\n' ? ' ' : *p);
	rest = fw_buf_str(&text);
	while (rest.len)
		help_wrap(c, fw_str_split(rest, '\n', &rest), 0);
	fw_buf_finish(&text);
}

/*
 * Example commands, for copying: a wrapped command continues with a backslash. A remark follows a
 * command after three or more spaces.
 */
static void help_examples(struct cli *c, const char *examples)
{
	struct fw_str rest = fw_str(examples);
	struct fw_buf broken = FW_BUF_INIT(0);

	while (rest.len) {
		struct fw_str line = fw_str_split(rest, '\n', &rest);
		bool command = !fw_str_find(fw_str_sub(line, 2, line.len), FW_STR("   "));
		size_t columns = (size_t)c->term.width;

		fw_buf_reset(&broken);
		cli_wrap(&broken, line, command && line.len > columns ? columns - 2 : columns, 6);
		for (size_t i = 0; i < broken.len; i++)
			cli_out(c, command && broken.p[i] == '\n' ? " \\\n" : "%c", broken.p[i]);
		cli_out(c, "\n");
	}
	fw_buf_finish(&broken);
}

static void help_command(struct cli *c, const struct cli_command *k)
{
	help_line(c, 0, "%c%s.", k->summary[0] - ('a' - 'A'), k->summary + 1);
	cli_out(c, "\n");
	help_heading(c, "Usage");
	help_line(c, 6, "  feedwheel %s%s%s%s", k->name, k->option ? " [options]" : "", k->args[0] ? " " : "", k->args);
	if (k->about) {
		cli_out(c, "\n");
		help_about(c, k->about);
	}
	if (k->option) {
		cli_out(c, "\n");
		help_heading(c, "Options");
		help_options(c, k->option);
	}
	help_used_settings(c, k);
	if (k->examples) {
		cli_out(c, "\n");
		help_heading(c, "Examples");
		help_examples(c, k->examples);
	}
	cli_out(c, "\n");
	help_line(c, 0, "Common options: 'feedwheel help'. All settings: 'feedwheel help settings'.");
}

static void help_general(struct cli *c)
{
	help_line(c, 0,
		"feedwheel collects feeds: it polls each subscription when new entries are likely and stores every "
		"entry once.");
	cli_out(c, "\n");
	help_heading(c, "Usage");
	cli_out(c, "  feedwheel [options] COMMAND [arguments]\n\n");
	help_heading(c, "Commands");
	for (const struct cli_command *const *k = cli_commands; *k; k++)
		help_line(c, 12, "  %-9s %s", (*k)->name, (*k)->summary);
	cli_out(c, "\n");
	help_heading(c, "Common options");
	help_options(c, cli_global_options);
	help_line(c, OPTION_COLUMN, "  %-22s any setting that the command uses; see 'feedwheel help settings'",
		"--NAME VALUE");
	cli_out(c, "\n");
	help_heading(c, "First steps");
	cli_out(c, "  feedwheel add https://example.org/feed.xml\n  feedwheel run --once\n  feedwheel entries\n\n");
	help_line(c, 0, "Help for one command: 'feedwheel help COMMAND'. Manual: 'man feedwheel'.");
}

static void help_settings(struct cli *c)
{
	size_t n;
	const struct fw_setting *s = fw_config_settings(&n);
	struct fw_buf users = FW_BUF_INIT(0);

	help_line(c, 0,
		"A setting is a line \"name = value\" in the configuration file (feedwheel.conf(5)), or an option "
		"--name VALUE of a command that uses it. 'doctor' accepts all settings.");
	cli_out(c, "\n");
	for (size_t i = 0; i < n; i++) {
		cli_paint(&c->out, c->term.out_colour, CLI_BOLD, fw_str(s[i].name));
		cli_out(c, " = %s\n", s[i].initial);
		help_line(c, 4, "    %s", s[i].text);
		fw_buf_reset(&users);
		cli_setting_users(&users, &s[i]);
		help_line(c, 4, "    Used by %.*s.", FW_STR_ARG(fw_buf_str(&users)));
	}
	fw_buf_finish(&users);
}

/* ---- --json ---------------------------------------------------------------------------------- */

static void options_json(struct fw_json *j, const struct cli_option *o)
{
	fw_json_array(j, "options");
	for (; o && o->name; o++) {
		fw_json_object(j, NULL);
		fw_json_cstr(j, "name", o->name);
		fw_json_cstr(j, "arg", o->arg);
		fw_json_cstr(j, "choices", o->values);
		fw_json_cstr(j, "text", o->text);
		fw_json_end(j);
	}
	fw_json_end(j);
}

static void command_json(struct fw_json *j, const struct cli_command *k)
{
	fw_json_cstr(j, "name", k->name);
	fw_json_cstr(j, "args", k->args);
	fw_json_cstr(j, "summary", k->summary);
	fw_json_cstr(j, "about", k->about);
	fw_json_cstr(j, "examples", k->examples);
	options_json(j, k->option);
}

static void settings_json(struct fw_json *j)
{
	static const char *const TYPE[] = {[FW_TYPE_INT] = "number",
		[FW_TYPE_BOOL] = "yes or no",
		[FW_TYPE_DURATION] = "time",
		[FW_TYPE_SIZE] = "size",
		[FW_TYPE_STRING] = "text"};
	size_t n;
	const struct fw_setting *s = fw_config_settings(&n);

	fw_json_array(j, "settings");
	for (size_t i = 0; i < n; i++) {
		fw_json_object(j, NULL);
		fw_json_cstr(j, "name", s[i].name);
		fw_json_cstr(j, "type", TYPE[s[i].type]);
		fw_json_cstr(j, "default", s[i].initial);
		fw_json_cstr(j, "choices", s[i].choices);
		fw_json_cstr(j, "text", s[i].text);
		fw_json_end(j);
	}
	fw_json_end(j);
}

/* One command, the settings, or everything. */
static void help_json(struct cli *c, const struct cli_command *k, bool settings)
{
	struct cli_json w;

	cli_json_object_begin(&w, c);
	if (k) {
		command_json(&w.j, k);
	} else if (settings) {
		settings_json(&w.j);
	} else {
		fw_json_array(&w.j, "commands");
		for (const struct cli_command *const *at = cli_commands; *at; at++) {
			fw_json_object(&w.j, NULL);
			command_json(&w.j, *at);
			fw_json_end(&w.j);
		}
		fw_json_end(&w.j);
		options_json(&w.j, cli_global_options);
		settings_json(&w.j);
	}
	cli_json_object_end(&w, c);
}

/* The remedy is the list of commands, not the help of help. */
static int help_unknown(struct cli *c, const char *topic)
{
	c->command = NULL;
	return cli_command_unknown(c, topic);
}

static int help_run(struct cli *c)
{
	const char *topic = c->arg_n ? c->arg[0] : NULL;
	bool settings = topic && strcmp(topic, "settings") == 0;
	const struct cli_command *k = topic ? cli_command_find(topic) : NULL;

	if (cli_flag(c, "complete-line"))
		cli_complete_line(c);
	else if (c->arg_n > 1)
		return cli_usage(c, "unexpected argument '%.60s'", c->arg[1]);
	else if (cli_flag(c, "complete"))
		cli_complete_words(c, topic);
	else if (topic && !settings && !k)
		return help_unknown(c, topic);
	else if (cli_flag(c, "sample-config"))
		cli_sample(c);
	else if (cli_flag(c, "json"))
		help_json(c, k, settings);
	else if (settings)
		help_settings(c);
	else if (k)
		help_command(c, k);
	else
		help_general(c);
	return CLI_OK;
}

static const struct cli_option HELP_OPTION[] = {
	{"complete", NULL, "list words and their meanings, for shell completions"},
	{"complete-line", NULL, "complete the last word of the command line given after --"},
	{"sample-config", NULL, "print a configuration file with every setting in a comment"},
	{"json", NULL, "print a JSON object: commands, options, settings"},
	{NULL, NULL, NULL},
};

const struct cli_command cli_help = {
	.name = "help",
	.args = "[COMMAND|settings]",
	.summary = "show help: general, for one command, or for all settings",
	.examples = "  feedwheel help import\n  feedwheel help settings\n  feedwheel help --sample-config > "
		    "feedwheel.conf.new\n",
	.option = HELP_OPTION,
	.max_args = -1,
	.flags = CLI_NO_CONFIG,
	.run = help_run,
};
