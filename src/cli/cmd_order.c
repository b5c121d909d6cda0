/* SPDX-License-Identifier: ISC */
/*
 * order: standing queries (feedwheel-orders(7)). Here is what changes them; orderview.c shows them.
 */
#include <unistd.h>

#include "cli/orders.h"
#include "cli/progress.h"

#define NOTE "running workers and servers apply this within seconds"

int order_failed(struct cli *c, struct fw_str query, const struct fw_err *err)
{
	if (err->rc == FW_EINVAL && query.p && fw_str_starts(fw_str(err->text), FW_STR("query, ")))
		return cli_query_wrong(c, "query", query, err);
	switch (err->rc) {
	case FW_EINVAL:
		return cli_usage(c, "%s", err->text);
	case FW_ENOTFOUND:
		return cli_fail(c, CLI_SOME, "%s ('feedwheel order list' lists all)", err->text);
	default:
		return cli_store_failed(c, err);
	}
}

int order_argument(struct cli *c, struct fw_str *name)
{
	*name = FW_STR_NONE;
	if (c->arg_n != 2)
		return cli_usage(c, "'order %.20s' takes one argument: the name of an order", c->arg[0]);
	*name = fw_str(c->arg[1]);
	return 0;
}

void order_note_incomplete(struct cli *c, int64_t unindexed_n)
{
	char n[FW_RFC3339_MAX];

	if (unindexed_n)
		cli_note(c,
			"the result is incomplete: %s not indexed yet ('feedwheel run' and 'feedwheel serve' index "
			"them)",
			cli_count(n, unindexed_n, "entry is", "entries are"));
}

void order_print_json(struct cli *c, const struct fw_order_status *s, struct fw_str secret)
{
	struct cli_json w;

	cli_json_object_begin(&w, c);
	fw_order_json(&w.j, "order", s);
	if (secret.len)
		fw_json_str(&w.j, "secret", secret);
	cli_json_object_end(&w, c);
}

/* ---- what happened --------------------------------------------------------------------------- */

/* Print an order that was added or changed. With a new secret that is the output. */
static int order_print_changed(struct cli *c, const char *done, const struct fw_order *o, bool new_secret)
{
	struct fw_order_status s = {.pending_n = 0};
	struct fw_err err = {0};
	int rc = cli_as_json(c) ? fw_order_status_get(c->store, o->name, &c->arena, &s, &err) : 0;

	if (rc)
		return order_failed(c, FW_STR_NONE, &err);
	if (cli_as_json(c)) {
		order_print_json(c, &s, new_secret ? o->secret[0] : FW_STR_NONE);
	} else if (new_secret) {
		cli_out_safe(c, o->secret[0]);
		cli_out(c, "\n");
	} else {
		cli_out(c, "%s order ", done);
		cli_out_safe(c, o->name);
		cli_out(c, "\n");
	}
	if (new_secret)
		cli_note(c,
			"order %.*s is %s; with this secret its receiver checks the signature of each webhook "
			"('feedwheel order show %.*s --with-secret' shows it again)",
			FW_STR_ARG(o->name), done, FW_STR_ARG(o->name));
	cli_note(c, NOTE);
	return CLI_OK;
}

/* ---- add, set -------------------------------------------------------------------------------- */

/* Exactly one of --to, --drop and --tag. 0 or an exit code. */
static int order_parse_action(struct cli *c, struct fw_order *o)
{
	int n = (cli_value(c, "to") != NULL) + cli_flag(c, "drop") + (cli_value(c, "tag") != NULL);

	if (n != 1)
		return cli_usage(c,
			n ? "--to, --drop and --tag exclude each other" :
			    "missing option: --to URL, --drop or --tag TAG");
	o->action = cli_flag(c, "drop") ? FW_ORDER_DROP : cli_value(c, "tag") ? FW_ORDER_TAG : FW_ORDER_DELIVER;
	o->to = fw_str(cli_value(c, "to"));
	o->tag = fw_str(cli_value(c, "tag"));
	return 0;
}

static int order_command_add(struct cli *c)
{
	struct fw_order o = {.changes = cli_flag(c, "changes")};
	bool given = cli_value(c, "secret") != NULL;
	struct fw_err err = {0};
	int rc;

	if (c->arg_n != 3)
		return cli_usage(c, "missing arguments: NAME QUERY ('feedwheel order add NAME QUERY --to URL')");
	o.name = fw_str(c->arg[1]);
	o.query = fw_str(c->arg[2]);
	o.secret[0] = given ? fw_str(cli_value(c, "secret")) : FW_STR_NONE;
	rc = order_parse_action(c, &o);
	rc = rc ? rc : cli_store(c, FW_STORE_CREATE);
	if (rc)
		return rc;
	if (fw_order_check_commands(c->config, o.to, false, &err) ||
		fw_order_add(c->store, &c->arena, &o, c->now_ms, &err))
		return order_failed(c, o.query, &err);
	return order_print_changed(c, "added", &o, o.secret[0].len && !given);
}

static int order_change(struct cli *c, struct fw_order_change *change, const char *done)
{
	struct fw_err err = {0};
	struct fw_order o;
	int rc = cli_store(c, 0);

	if (rc)
		return rc;
	if (fw_order_check_commands(c->config, change->to, false, &err) ||
		fw_order_apply(c->store, fw_str(c->arg[1]), change, &c->arena, &o, &err))
		return order_failed(c, change->query, &err);
	return order_print_changed(c, done, &o, change->made_secret);
}

static int order_command_set(struct cli *c)
{
	struct fw_order_change change = {.query = fw_str(cli_value(c, "query")),
		.to = fw_str(cli_value(c, "to")),
		.changes = cli_flag(c, "changes") ? 1 :
			cli_flag(c, "no-changes") ? 0 :
						    -1,
		.state = -1};
	struct fw_str name;
	int rc = order_argument(c, &name);

	if (rc)
		return rc;
	if (cli_flag(c, "changes") && cli_flag(c, "no-changes"))
		return cli_usage(c, "--changes and --no-changes exclude each other");
	if (!change.query.p && !change.to.p && change.changes < 0)
		return cli_usage(c, "nothing to change: give --query, --to, --changes or --no-changes");
	return order_change(c, &change, "changed");
}

static int order_command_state(struct cli *c, enum fw_order_state state)
{
	struct fw_order_change change = {.query = FW_STR_NONE, .changes = -1, .state = (int)state};
	struct fw_str name;
	int rc = order_argument(c, &name);

	return rc ? rc : order_change(c, &change, state == FW_ORDER_PAUSED ? "paused" : "resumed");
}

static int order_command_pause(struct cli *c)
{
	return order_command_state(c, FW_ORDER_PAUSED);
}

static int order_command_resume(struct cli *c)
{
	return order_command_state(c, FW_ORDER_ACTIVE);
}

static int order_command_rotate(struct cli *c)
{
	struct fw_err err = {0};
	struct fw_str name;
	struct fw_order o;
	int rc = order_argument(c, &name);

	rc = rc ? rc : cli_store(c, 0);
	if (rc)
		return rc;
	if (fw_order_rotate(c->store, name, &c->arena, &o, &err))
		return order_failed(c, FW_STR_NONE, &err);
	rc = order_print_changed(c, "changed", &o, true);
	cli_note(c, "the secret before it goes on signing too, until the next 'order rotate'");
	return rc;
}

static int order_command_remove(struct cli *c)
{
	struct cli_json w;
	struct fw_err err = {0};
	struct fw_str name;
	int rc = order_argument(c, &name);

	rc = rc ? rc : cli_store(c, 0);
	if (rc)
		return rc;
	if (fw_order_remove(c->store, name, &err))
		return order_failed(c, FW_STR_NONE, &err);
	if (cli_as_json(c)) {
		cli_json_object_begin(&w, c);
		fw_json_str(&w.j, "name", name);
		cli_json_object_end(&w, c);
	} else {
		cli_out(c, "removed order %s\n", c->arg[1]);
	}
	cli_note(c, NOTE);
	return CLI_OK;
}

/* ---- replay, retry --------------------------------------------------------------------------- */

struct order_progress {
	struct cli_progress line;
	int64_t start_ms;
};

static void order_show_progress(void *ctx, const struct fw_order_again *r)
{
	struct order_progress *p = ctx;
	char n[FW_RFC3339_MAX];
	struct fw_buf b = FW_BUF_INIT(0);

	fw_buf_addf(&b, "%s matched", cli_count(n, r->n, "entry", "entries"));
	if (p->line.tty)
		b.len = FW_MIN(b.len, (size_t)p->line.c->term.width - 1);
	cli_progress_draw(&p->line, &b, fw_mono_ms() - p->start_ms);
	fw_buf_finish(&b);
}

static int order_again(struct cli *c, bool dead)
{
	struct order_progress p = {.start_ms = fw_mono_ms()};
	struct fw_order_again r = {.progress = order_show_progress, .ctx = &p};
	char n[FW_RFC3339_MAX];
	struct fw_err err = {0};
	int64_t since_ms = 0;
	struct fw_order o = {.id = 0};
	struct fw_str name;
	struct cli_json w;
	int rc = order_argument(c, &name);

	if (!rc && !dead && !cli_value_time(c, "since", &since_ms))
		rc = CLI_USAGE;
	if (!rc && !dead && !cli_value(c, "since"))
		rc = cli_usage(c, "missing option: --since TIME ('feedwheel order replay NAME --since 2d')");
	rc = rc ? rc : cli_store(c, 0);
	if (!rc && !dead && !cli_value_time(c, "since", &since_ms))
		rc = CLI_USAGE;
	if (rc)
		return rc;
	cli_progress_init(&p.line, c, false);
	rc = fw_order_get(c->store, name, &c->arena, &o, &err);
	rc = rc      ? rc :
		dead ? fw_order_retry(c->store, &o, &r, &err) :
		       fw_order_replay(c->store, &o, since_ms, &r, &err);
	cli_progress_end(&p.line);
	if (rc)
		return order_failed(c, FW_STR_NONE, &err);
	if (cli_as_json(c)) {
		cli_json_object_begin(&w, c);
		fw_json_str(&w.j, "name", name);
		fw_json_int(&w.j, "matches", r.n);
		fw_incomplete_json(&w.j, r.unindexed_n);
		cli_json_object_end(&w, c);
	} else {
		cli_out(c, "%s for order %s\n", cli_count(n, r.n, "entry waits", "entries wait"), c->arg[1]);
	}
	order_note_incomplete(c, r.unindexed_n);
	return CLI_OK;
}

static int order_command_replay(struct cli *c)
{
	return order_again(c, false);
}

static int order_command_retry(struct cli *c)
{
	return order_again(c, true);
}

/* ---- the command ----------------------------------------------------------------------------- */

/* The commands, and the options that each takes, besides --json and --jsonl. */
static const struct order_word {
	const char *word;
	int (*run)(struct cli *c);
	const char *options;
} ORDER_WORD[] = {
	{"add", order_command_add, "to drop tag changes secret"},
	{"list", order_command_list, ""},
	{"show", order_command_show, "with-secret"},
	{"test", order_command_test, "since limit"},
	{"set", order_command_set, "query to changes no-changes"},
	{"pause", order_command_pause, ""},
	{"resume", order_command_resume, ""},
	{"replay", order_command_replay, "since"},
	{"remove", order_command_remove, ""},
	{"dead", order_command_dead, "limit"},
	{"retry", order_command_retry, ""},
	{"rotate", order_command_rotate, ""},
};

/* An option that has no effect is an error. */
static int order_check_options(struct cli *c, const struct order_word *k)
{
	for (size_t i = 0; i < c->given_n; i++) {
		struct fw_str name = fw_str(c->given[i].option->name), rest = fw_str(k->options);
		bool used = fw_str_eq(name, FW_STR("json")) || fw_str_eq(name, FW_STR("jsonl"));

		while (!used && rest.p)
			used = fw_str_eq(fw_str_split(rest, ' ', &rest), name);
		if (!used)
			return cli_usage(c, "'order %s' does not take --%.*s", k->word, FW_STR_ARG(name));
	}
	return 0;
}

static int order_run(struct cli *c)
{
	for (size_t i = 0; i < FW_N(ORDER_WORD); i++) {
		if (strcmp(c->arg[0], ORDER_WORD[i].word) == 0) {
			int rc = order_check_options(c, &ORDER_WORD[i]);

			return rc ? rc : ORDER_WORD[i].run(c);
		}
	}
	return cli_usage(c,
		"the argument must be add, list, show, test, set, pause, resume, replay, remove, dead, retry or "
		"rotate, not '%.60s'",
		c->arg[0]);
}

static const struct cli_option ORDER_OPTION[] = {
	{"to", "URL", "add, set: deliver to https://..., command:/PROGRAM, file:/PATH, redis:STREAM, amqp://..."},
	{"drop", NULL, "add: do not store entries that match"},
	{"tag", "TAG", "add: add this tag to entries that match"},
	{"changes", NULL, "add, set: also new versions of entries, not only new entries"},
	{"no-changes", NULL, "set: only new entries"},
	{"secret", "SECRET", "add: sign webhooks with this secret (whsec_...), not with a new one"},
	{"query", "QUERY", "set: another query"},
	{"since", "TIME", "replay, test: entries stored since TIME: 2h, 3d, today, 2026-11-01 (test: 7d)"},
	{"limit", "N", "test, dead: show at most N (test: 5, dead: 20; with --json no limit)"},
	{"with-secret", NULL, "show: also the secret that signs webhooks"},
	CLI_LIST_OPTIONS,
	{NULL, NULL, NULL},
};

const struct cli_command cli_order = {
	.name = "order",
	.args = "add|list|show|test|set|pause|resume|replay|remove|dead|retry|rotate [ORDER] [QUERY]",
	.summary = "manage orders: deliver, drop or tag entries that match a query",
	.about = "An order matches entries as they are stored: feedwheel-orders(7). 'test' shows what it would have "
		 "matched, for the name\n"
		 "of an order or for a query; 'replay' delivers old entries again; 'dead' lists what could not be "
		 "delivered for 3 days,\n"
		 "'retry' delivers that again. The secret of a webhook is printed when it is created.\n",
	.examples = "  feedwheel order test '(title:CVE OR \"remote code\") -podcast'\n"
		    "  feedwheel order add security '(title:CVE OR \"remote code\") -podcast' --to "
		    "https://hooks.example.org/x\n"
		    "  feedwheel order add quiet 'has:audio folder:News' --drop\n"
		    "  feedwheel order list\n  feedwheel order replay security --since 2d\n",
	.option = ORDER_OPTION,
	.min_args = 1,
	.max_args = 3,
	.run = order_run,
};
