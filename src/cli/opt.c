/* SPDX-License-Identifier: ISC */
/*
 * Arguments: feedwheel [options] COMMAND [options] [arguments]. An option is one of the command's
 * own, a common option, or a setting that the command uses (--host-concurrency 4). "--name value"
 * and "--name=value" are the same; "--" ends the options. A boolean setting may be given without a
 * value (--async-commit) or negated (--no-http2).
 */
#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/suggest.h"
#include "cli/cli.h"

const struct cli_option cli_global_options[] = {
	{"store", "URL", "the store: sqlite:PATH, postgres://..., mysql://..., redis://..."},
	{"config", "FILE", "read this configuration file instead of the default one"},
	{"color", "WHEN", "colours: auto, always or never", "auto always never"},
	{"quiet", NULL, "print only errors on stderr, no notes"},
	{"verbose", NULL, "log everything (log_level debug)"},
	{"help", NULL, "show help, also for a command"},
	{"version", NULL, "show the versions of feedwheel and its libraries"},
	{NULL, NULL, NULL},
};

/* position in argv */
struct scan {
	struct cli *c;
	char **argv;
	int at, argc;
};

const struct cli_option *cli_option_find(const struct cli_option *list, struct fw_str name)
{
	for (; list && list->name; list++) {
		if (fw_str_eq(fw_str(list->name), name))
			return list;
	}
	return NULL;
}

static bool option_is_yes_no(const struct cli_option *o)
{
	return o->values && strcmp(o->values, "yes no") == 0;
}

const struct cli_command *cli_command_find(const char *name)
{
	for (const struct cli_command *const *k = cli_commands; *k; k++) {
		if (strcmp((*k)->name, name) == 0)
			return *k;
	}
	return NULL;
}

/* ---- settings as options --------------------------------------------------------------------- */

void cli_dashed(struct fw_buf *out, const char *name)
{
	fw_buf_adds(out, "--");
	for (; *name; name++)
		fw_buf_addc(out, *name == '_' ? '-' : *name);
}

bool cli_uses_setting(const struct cli_command *k, const struct fw_setting *s, struct fw_str *option)
{
	struct fw_str rest = fw_str(s->commands);

	*option = FW_STR_NONE;
	if (k->flags & CLI_ALL_SETTINGS)
		return true;
	if (!s->commands)
		return !(k->flags & CLI_NO_CONFIG);
	while (rest.p) {
		struct fw_str word = fw_str_split(rest, ' ', &rest);

		if (fw_str_eq(fw_str_split(word, '+', option), fw_str(k->name)))
			return true;
	}
	*option = FW_STR_NONE;
	return false;
}

void cli_setting_users(struct fw_buf *out, const struct fw_setting *s)
{
	struct fw_str rest = fw_str(s->commands), option;
	const char *between = "";

	if (!s->commands)
		fw_buf_adds(out, "every command");
	while (rest.p) {
		struct fw_str word = fw_str_split(rest, ' ', &rest), name = fw_str_split(word, '+', &option);

		fw_buf_addf(out, "%s%.*s%s%.*s", between, FW_STR_ARG(name), option.p ? " --" : "", FW_STR_ARG(option));
		between = rest.p && !memchr(rest.p, ' ', rest.len) ? " and " : ", ";
	}
}

static bool option_is_given(const struct cli *c, struct fw_str name)
{
	for (size_t i = 0; i < c->given_n; i++) {
		if (fw_str_eq(fw_str(c->given[i].option->name), name))
			return true;
	}
	return false;
}

/* Refuse a setting that the command ignores: the user expects an effect. */
static int setting_check(struct cli *c, const struct fw_setting *s)
{
	struct fw_buf name = FW_BUF_INIT(200), users = FW_BUF_INIT(1000);
	struct fw_str option;
	int rc = 0;

	cli_dashed(&name, s->name);
	cli_setting_users(&users, s);
	if (!cli_uses_setting(c->command, s, &option) || (option.len && !option_is_given(c, option)))
		rc = cli_usage(c,
			"%.*s has no effect here%s%.*s: it is a setting of %.*s (to set it there, put '%s = ...' into "
			"the configuration file)",
			FW_STR_ARG(fw_buf_str(&name)), option.len ? " without --" : "", FW_STR_ARG(option),
			FW_STR_ARG(fw_buf_str(&users)), s->name);
	fw_buf_finish(&name);
	fw_buf_finish(&users);
	return rc;
}

static int settings_check(struct cli *c)
{
	int rc = 0;

	for (size_t i = 0; !rc && c->command && !c->help && !c->version && i < c->set_n; i++) {
		if (!cli_option_find(cli_global_options, fw_str(c->set[i].setting->name)))
			rc = setting_check(c, c->set[i].setting);
	}
	return rc;
}

/* ---- parsing --------------------------------------------------------------------------------- */

static bool option_of_commands(struct fw_str name)
{
	for (const struct cli_command *const *k = cli_commands; *k; k++) {
		if ((*k)->option && cli_option_find((*k)->option, name))
			return true;
	}
	return false;
}

static int option_unknown(struct cli *c, struct fw_str name)
{
	struct fw_suggest suggest = {.word = name};
	size_t n;
	const struct fw_setting *s = fw_config_settings(&n);
	struct fw_buf dashed = FW_BUF_INIT(200);
	struct fw_str option;
	int rc;

	for (const struct cli_option *o = c->command ? c->command->option : NULL; o && o->name; o++)
		fw_suggest_offer(&suggest, o->name);
	for (const struct cli_option *o = cli_global_options; o->name; o++)
		fw_suggest_offer(&suggest, o->name);
	for (size_t i = 0; i < n; i++) {
		if (!c->command || cli_uses_setting(c->command, &s[i], &option))
			fw_suggest_offer(&suggest, s[i].name);
	}
	cli_dashed(&dashed, suggest.best ? suggest.best : "");
	if (!c->command && option_of_commands(name))
		rc = cli_usage(c, "missing command: --%.*s is an option of commands, such as 'feedwheel list'",
			FW_STR_ARG(fw_str_sub(name, 0, 60)));
	else if (suggest.best)
		rc = cli_usage(c, "unknown option '--%.*s': did you mean '%.*s'?", FW_STR_ARG(fw_str_sub(name, 0, 60)),
			FW_STR_ARG(fw_buf_str(&dashed)));
	else
		rc = cli_usage(c, "unknown option '--%.*s'", FW_STR_ARG(fw_str_sub(name, 0, 60)));
	fw_buf_finish(&dashed);
	return rc;
}

/* The option's value: after "=", else the next argument. NULL after an error message. */
static const char *option_value(struct scan *s, struct fw_str name, struct fw_str behind)
{
	if (behind.p)
		return behind.p;
	if (s->at < s->argc)
		return s->argv[s->at++];
	(void)cli_usage(s->c, "--%.*s needs a value", FW_STR_ARG(name));
	return NULL;
}

static int option_no_value(struct cli *c, struct fw_str name, struct fw_str behind)
{
	return behind.p ? cli_usage(c, "--%.*s takes no value", FW_STR_ARG(name)) : 0;
}

static int option_global(struct scan *s, const struct cli_option *o, struct fw_str behind)
{
	struct fw_str name = fw_str(o->name);
	struct cli *c = s->c;
	const char *value = NULL;
	int rc;

	if (!o->arg) {
		rc = option_no_value(c, name, behind);
		if (rc)
			return rc;
		switch (o->name[0]) {
		case 'h':
			c->help = true;
			break;
		case 'q':
			c->quiet = true;
			break;
		default:
			*(strcmp(o->name, "verbose") == 0 ? &c->verbose : &c->version) = true;
			break;
		}
		return 0;
	}
	value = option_value(s, name, behind);
	if (!value)
		return CLI_USAGE;
	if (strcmp(o->name, "store") == 0)
		c->set[c->set_n++] = (struct cli_set){fw_config_find("store"), value};
	else if (strcmp(o->name, "config") == 0)
		c->config_path = value;
	else if (strcmp(value, "auto") && strcmp(value, "always") && strcmp(value, "never"))
		return cli_usage(c, "--color must be auto, always or never, not '%.60s'", value);
	else
		c->colour = value;
	return 0;
}

/*
 * Is the word after a boolean its value? 1 and 0 are not: they may be feed numbers
 * (--async-commit=1 is clear).
 */
static bool is_yes_no(const char *word)
{
	static const char *const WORD[] = {"yes", "no", "true", "false", "on", "off"};

	for (size_t i = 0; i < FW_N(WORD); i++) {
		if (strcmp(word, WORD[i]) == 0)
			return true;
	}
	return false;
}

/* The value of a boolean may be left out: then it is yes. */
static const char *option_yes_no(struct scan *s, struct fw_str behind)
{
	if (behind.p)
		return behind.p;
	return s->at < s->argc && is_yes_no(s->argv[s->at]) ? s->argv[s->at++] : "yes";
}

/* Parse --name value of a setting. False: no such setting. */
static bool option_setting(struct scan *s, struct fw_str name, struct fw_str behind, int *rc)
{
	char word[80];
	const struct fw_setting *setting;
	const char *value = NULL;

	*rc = 0;
	fw_str_copy(word, sizeof(word), name);
	setting = fw_config_find(word);
	if (!setting && !behind.p && fw_str_starts(name, FW_STR("no-"))) {
		setting = fw_config_find(word + 3);
		if (!setting || setting->type != FW_TYPE_BOOL)
			return false;
		value = "no";
	} else if (!setting) {
		return false;
	} else if (setting->type == FW_TYPE_BOOL) {
		value = option_yes_no(s, behind);
	} else {
		value = option_value(s, name, behind);
	}
	if (!value)
		*rc = CLI_USAGE;
	else
		s->c->set[s->c->set_n++] = (struct cli_set){setting, value};
	return true;
}

static int option_long(struct scan *s, const char *text)
{
	struct fw_str behind, name = fw_str_split(fw_str(text), '=', &behind);
	struct cli *c = s->c;
	const struct cli_option *list = c->command ? c->command->option : NULL, *o = cli_option_find(list, name);
	int rc;

	if (o) {
		const char **slot = &c->value[o - list];

		rc = o->arg ? 0 : option_no_value(c, name, behind);
		if (!rc) {
			*slot = !o->arg             ? "" :
				option_is_yes_no(o) ? option_yes_no(s, behind) :
						      option_value(s, name, behind);
			rc = *slot ? 0 : CLI_USAGE;
			c->given[c->given_n++] = (struct cli_given){o, *slot};
		}
		return rc;
	}
	o = cli_option_find(cli_global_options, name);
	if (o)
		return option_global(s, o, behind);
	return option_setting(s, name, behind, &rc) ? rc : option_unknown(c, name);
}

const struct cli_synonym cli_synonyms[] = {
	{"ls", "list"},
	{"feeds", "list"},
	{"subscriptions", "list"},
	{"failing", "list --failing"},
	{"errors", "list --failing"},
	{"subscribe", "add"},
	{"sub", "add"},
	{"follow", "add"},
	{"new", "add"},
	{"discover", "add --check"},
	{"rm", "remove"},
	{"del", "remove"},
	{"delete", "remove"},
	{"unsubscribe", "remove"},
	{"unsub", "remove"},
	{"unfollow", "remove"},
	{"search", "entries --search"},
	{"find", "entries --search"},
	{"grep", "entries --search"},
	{"query", "entries --search"},
	{"items", "entries"},
	{"posts", "entries"},
	{"articles", "entries"},
	{"news", "entries"},
	{"latest", "entries"},
	{"unread", "entries"},
	{"log", "changes"},
	{"tail", "changes --follow"},
	{"diff", "read --revisions"},
	{"revisions", "read --revisions"},
	{"open", "read"},
	{"view", "read"},
	{"cat", "read"},
	{"less", "read"},
	{"print", "read"},
	{"entry", "read"},
	{"update", "run --once' or 'fetch-now"},
	{"refresh", "run --once' or 'fetch-now"},
	{"reload", "run --once' or 'fetch-now"},
	{"sync", "run --once"},
	{"pull", "run --once"},
	{"crawl", "run"},
	{"poll", "fetch-now"},
	{"get", "fetch"},
	{"download", "fetch"},
	{"start", "run"},
	{"daemon", "run"},
	{"worker", "run"},
	{"quit", "stop"},
	{"kill", "stop"},
	{"shutdown", "stop"},
	{"server", "serve"},
	{"http", "serve"},
	{"web", "serve"},
	{"disable", "pause"},
	{"enable", "resume"},
	{"unpause", "resume"},
	{"info", "show"},
	{"feed", "show"},
	{"history", "show"},
	{"due", "list --by-due' or 'why"},
	{"schedule", "list --by-due' or 'why"},
	{"edit", "set"},
	{"rename", "set --title"},
	{"move", "set --folder"},
	{"stats", "status"},
	{"ps", "status"},
	{"workers", "status"},
	{"check", "doctor"},
	{"verify", "doctor"},
	{"validate", "parse"},
	{"opml", "import' or 'export"},
	{"backup", "copy"},
	{"migrate", "copy"},
	{"config", "help settings"},
	{"settings", "help settings"},
	{"man", "help"},
	{"usage", "help"},
	{"commands", "help"},
	{"tokens", "token"},
	{"hubs", "websub"},
	{"forecast", "plan"},
	{NULL, NULL},
};

int cli_command_unknown(struct cli *c, const char *word)
{
	struct fw_suggest suggest = {.word = fw_str(word)};
	const char *meant;

	for (const struct cli_command *const *k = cli_commands; *k; k++)
		fw_suggest_offer(&suggest, (*k)->name);
	for (const struct cli_synonym *s = cli_synonyms; s->word; s++)
		fw_suggest_offer(&suggest, s->word);
	meant = suggest.best;
	for (const struct cli_synonym *s = cli_synonyms; s->word; s++) {
		if (suggest.best == s->word)
			meant = s->meant;
	}
	if (meant)
		return cli_usage(c, "unknown command '%.60s': did you mean '%s'?", word, meant);
	return cli_usage(c, "unknown command '%.60s'", word);
}

static int option_argument(struct scan *s, const char *word)
{
	struct cli *c = s->c;

	if (c->command) {
		c->arg[c->arg_n++] = word;
		return 0;
	}
	c->command = cli_command_find(word);
	return c->command ? 0 : cli_command_unknown(c, word);
}

static int option_short(struct scan *s, const char *word)
{
	static const struct {
		char letter;
		const char *name;
	} SHORT[] = {
		{'h', "help"},
		{'V', "version"},
		{'q', "quiet"},
		{'v', "verbose"},
	};

	for (size_t i = 0; i < FW_N(SHORT); i++) {
		if (word[1] == SHORT[i].letter && !word[2])
			return option_global(
				s, cli_option_find(cli_global_options, fw_str(SHORT[i].name)), FW_STR_NONE);
	}
	if (word[1] == 'o' && !word[2] && s->c->command && cli_option_find(s->c->command->option, FW_STR("output")))
		return option_long(s, "output");
	return cli_usage(s->c, "unknown option '%.60s'", word);
}

static int argument_count_check(struct cli *c)
{
	const struct cli_command *k = c->command;

	if (!k || c->help)
		return 0;
	if (c->arg_n < k->min_args)
		return cli_usage(c, "missing argument: %s%s", k->args,
			strncmp(k->args, "FEED", 4) == 0 || strcmp(k->args, "ENTRY") == 0 ?
				"; write a number as 12, because an unquoted # starts a comment in the shell" :
				"");
	if (k->max_args >= 0 && c->arg_n > k->max_args)
		return cli_usage(c, "unexpected argument '%.60s'", c->arg[k->max_args]);
	if (option_is_given(c, FW_STR("json")) && cli_as_lines(c))
		return cli_usage(c, "--json and --jsonl exclude each other");
	return 0;
}

/*
 * All users of the machine can read a process's arguments, so passwords are removed from argv.
 * Anything that looks like a login, up to the last @, becomes "***"; so does the rest of a URL that
 * contains "pass". Hiding too much is harmless: the program reads its own copy.
 */
static void argument_hide_login(char *word)
{
	char *end = word + strlen(word), *from = strstr(word, "://"), *to = strrchr(word, '@');

	if (from)
		from += 3;
	else if (word[0] == '-' && strchr(word, '='))
		from = strchr(word, '=') + 1;
	else
		from = word;
	if (fw_str_ifind(fw_str(from), FW_STR("pass")) && strstr(word, "://"))
		to = end;
	if (!to || to <= from || (to < end && !strstr(word, "://") && !memchr(from, ':', (size_t)(to - from))))
		return;
	for (int i = 0; i < 3 && from < to; i++)
		*from++ = '*';
	memmove(from, to, (size_t)(end - to));
	explicit_bzero(from + (end - to), (size_t)(to - from));
}

/*
 * Copy the arguments, then hide passwords in the original argv, which the system shows. NULL: out
 * of memory.
 */
static char **arguments_copy(struct cli *c, int argc, char **argv)
{
	char **own = fw_arena_calloc(&c->arena, (size_t)(argc + 1), sizeof(*own));

	for (int i = 0; own && i < argc; i++) {
		own[i] = fw_arena_dup(&c->arena, argv[i], strlen(argv[i]));
		if (!own[i])
			return NULL;
		if (i > 0)
			argument_hide_login(argv[i]);
	}
	return own;
}

int cli_options(struct cli *c, int argc, char **argv)
{
	struct scan s = {.c = c, .argv = arguments_copy(c, argc, argv), .at = 1, .argc = argc};
	bool options = true;
	int rc = 0;

	c->arg = fw_arena_calloc(&c->arena, (size_t)(argc + 1), sizeof(*c->arg));
	c->set = fw_arena_calloc(&c->arena, (size_t)(argc + 1), sizeof(*c->set));
	c->given = fw_arena_calloc(&c->arena, (size_t)(argc + 1), sizeof(*c->given));
	if (!s.argv || !c->arg || !c->set || !c->given)
		return cli_fail(c, CLI_SOME, "out of memory");
	while (!rc && s.at < argc) {
		const char *word = s.argv[s.at++];

		if (options && strcmp(word, "--") == 0)
			options = false;
		else if (options && word[0] == '-' && word[1] == '-')
			rc = option_long(&s, word + 2);
		else if (options && word[0] == '-' && word[1])
			rc = option_short(&s, word);
		else
			rc = option_argument(&s, word);
	}
	rc = rc ? rc : settings_check(c);
	return rc ? rc : argument_count_check(c);
}

const char *cli_value(const struct cli *c, const char *name)
{
	const struct cli_option *o = cli_option_find(c->command->option, fw_str(name));

	assert(o && o - c->command->option < CLI_OPTION_MAX);
	return c->value[o - c->command->option];
}

const char *cli_value_next(const struct cli *c, const char *name, size_t *i)
{
	const struct cli_option *o = cli_option_find(c->command->option, fw_str(name));

	while (*i < c->given_n) {
		const struct cli_given *g = &c->given[(*i)++];

		if (g->option == o)
			return g->value;
	}
	return NULL;
}

bool cli_flag(const struct cli *c, const char *name)
{
	return cli_value(c, name) != NULL;
}

bool cli_as_lines(const struct cli *c)
{
	return option_is_given(c, FW_STR("jsonl"));
}

bool cli_as_json(const struct cli *c)
{
	return option_is_given(c, FW_STR("json")) || cli_as_lines(c);
}

bool cli_value_int(struct cli *c, const char *name, int64_t min, int64_t *out)
{
	const char *text = cli_value(c, name);
	int64_t v;

	if (!text)
		return true;
	if (!fw_str_int(fw_str(text), &v) || v < min) {
		(void)cli_usage(
			c, "--%s must be a whole number of at least %lld, not '%.60s'", name, (long long)min, text);
		return false;
	}
	*out = v;
	return true;
}

bool cli_value_duration(struct cli *c, const char *name, int64_t *out_ms)
{
	const char *text = cli_value(c, name);

	if (!text)
		return true;
	if (fw_duration_parse(fw_str(text), FW_SECOND_MS, out_ms))
		return true;
	(void)cli_usage(c, "--%s must be a duration such as 90s, 15m, 2h or 1d, not '%.60s'", name, text);
	return false;
}

bool cli_value_interval(struct cli *c, int64_t *out_ms)
{
	if (!cli_value_duration(c, "interval", out_ms))
		return false;
	if (*out_ms && (*out_ms < FW_OWN_INTERVAL_MIN_MS || *out_ms > FW_OWN_INTERVAL_MAX_MS))
		cli_note(c, "--interval %.60s: a feed is polled once a minute at most, and once in 30 days at least",
			cli_value(c, "interval"));
	return true;
}

bool cli_value_time(struct cli *c, const char *name, int64_t *at_ms)
{
	const char *text = cli_value(c, name);

	if (!text || fw_when_parse(fw_str(text), c->now_ms, at_ms))
		return true;
	(void)cli_usage(c,
		"--%s must be a time such as 2h, 3d, yesterday, 2026-11-01 or 2026-11-01T12:00:00Z, not '%.60s'", name,
		text);
	return false;
}
