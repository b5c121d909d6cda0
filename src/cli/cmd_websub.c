/* SPDX-License-Identifier: ISC */
/* websub list, on, off: list the subscriptions at hubs; switch them on or off. */
#include "cli/cli.h"
#include "api/websub.h"

static const struct cli_column WEBSUB_COLUMN[] = {
	{"FEED", .right = true},
	{"STATE"},
	{"HUB", .flex = true},
	{"UNTIL", .spare = 2},
	{"SENT", .right = true, .spare = 1},
	{"NEW", .right = true, .spare = 3},
	{"IGNORED", .right = true, .spare = 4},
	{"NOTE", .flex = true},
};

static const char *websub_trust_note(const struct cli *c, const struct fw_websub *w, char text[80], const char **style)
{
	char when[FW_RFC3339_MAX];

	*style = NULL;
	if (w->distrust_ms > c->now_ms) {
		*style = CLI_YELLOW;
		(void)fw_snprintf(text, 80, "missed entries: polled as usual, trusted again %s",
			cli_ago(c, when, w->distrust_ms));
		return text;
	}
	return NULL;
}

static void websub_row(struct cli_list *l, const struct fw_websub *w)
{
	char text[FW_RFC3339_MAX], words[80];
	const char *style, *more = websub_trust_note(l->c, w, words, &style);
	bool active = w->state == FW_WEBSUB_ACTIVE;

	(void)fw_snprintf(text, sizeof(text), "%lld", (long long)w->feed_id);
	cli_table_cell(&l->table, CLI_BOLD, fw_str(text));
	cli_table_cell(&l->table,
		active                            ? CLI_GREEN :
			w->state == FW_WEBSUB_OFF ? CLI_RED :
						    CLI_YELLOW,
		fw_str(fw_websub_state_name(w->state)));
	cli_table_cell(&l->table, NULL, w->hub);
	cli_table_cell(&l->table, CLI_DIM, active ? fw_str(cli_stamp(text, w->until_ms)) : FW_STR("-"));
	cli_table_cell(&l->table, NULL, fw_str(cli_number(text, w->delivered_n)));
	cli_table_cell(&l->table, NULL, fw_str(cli_number(text, w->new_n)));
	cli_table_cell(&l->table, w->ignored_n ? CLI_YELLOW : NULL, fw_str(cli_number(text, w->ignored_n)));
	cli_table_cell(&l->table, style, more ? fw_str(more) : w->why);
}

static void websub_json(struct cli_list *l, const struct fw_websub *w)
{
	const struct {
		const char *name;
		int64_t at_ms;
	} TIME[] = {{"since", w->since_ms}, {"until", w->until_ms}, {"next", w->next_ms},
		{"distrusted_until", w->distrust_ms}, {"last", w->last_ms}};
	struct fw_json *j = cli_list_item(l);

	fw_json_object(j, NULL);
	fw_json_int(j, "feed", w->feed_id);
	fw_json_cstr(j, "state", fw_websub_state_name(w->state));
	fw_json_str(j, "hub", w->hub);
	fw_json_str(j, "topic", w->topic);
	fw_json_bool(j, "cloud", w->cloud);
	fw_json_bool(j, "disabled", w->held);
	for (size_t i = 0; i < FW_N(TIME); i++) {
		if (TIME[i].at_ms)
			fw_json_time(j, TIME[i].name, TIME[i].at_ms);
	}
	fw_json_int(j, "delivered", w->delivered_n);
	fw_json_int(j, "new", w->new_n);
	fw_json_int(j, "ignored", w->ignored_n);
	fw_json_int(j, "missed", w->missed_n);
	fw_json_str(j, "why", w->why);
	fw_json_end(j);
	cli_list_item_end(l);
}

static int websub_list_print(void *ctx, const struct fw_websub *w)
{
	struct cli_list *l = ctx;

	l->n++;
	if (l->as_json)
		websub_json(l, w);
	else
		websub_row(l, w);
	return cli_out_failed(l->c);
}

/* Warn if websub_url differs from the server's. */
static int websub_check_url(struct cli *c, struct fw_err *err)
{
	struct fw_websub_leader home;
	int rc = fw_websub_leader(c->store, c->config, &c->arena, &home, err);

	if (!rc && home.differs)
		cli_note(c,
			"websub_url is %s here, but the server with the hub thread uses %.*s (use the same websub_url "
			"for all servers)",
			c->config->websub_url, FW_STR_ARG(home.base));
	return rc;
}

static int websub_command_list(struct cli *c)
{
	struct cli_list l;
	struct fw_err err = {0};
	int rc;

	if (c->arg_n > 1)
		return cli_usage(c, "'websub list' takes no arguments");
	rc = cli_store(c, FW_STORE_READ);
	if (rc)
		return rc;
	cli_list_begin(&l, c, WEBSUB_COLUMN, FW_N(WEBSUB_COLUMN));
	rc = fw_websub_list(c->store, websub_list_print, &l, &err);
	cli_list_end(&l);
	rc = rc < 0 ? rc : websub_check_url(c, &err);
	if (rc < 0)
		return cli_store_failed(c, &err);
	if (!l.n && !l.as_json)
		cli_note(c,
			c->config->websub_url ?
				"no feed is subscribed at a hub yet ('feedwheel serve' subscribes feeds)" :
				"no feed is subscribed at a hub (to subscribe feeds, set websub_url to a URL at which "
				"hubs reach the server)");
	return CLI_OK;
}

static int websub_command_switch(struct cli *c, bool on)
{
	struct cli_json w;
	struct fw_err err = {0};
	struct fw_feed f;
	int rc;

	if (c->arg_n != 2)
		return cli_usage(c, "missing argument: FEED ('feedwheel websub %s FEED')", on ? "on" : "off");
	rc = cli_store(c, 0);
	rc = rc ? rc : cli_feed(c, c->arg[1], false, &f);
	if (rc)
		return rc;
	if (fw_websub_switch(c->store, f.id, on, c->now_ms, &err))
		return cli_store_failed(c, &err);
	if (cli_as_json(c)) {
		cli_json_object_begin(&w, c);
		fw_json_int(&w.j, "feed", f.id);
		fw_json_str(&w.j, "url", f.url);
		fw_json_bool(&w.j, "on", on);
		cli_json_object_end(&w, c);
	} else {
		cli_out(c,
			!on               ? "unsubscribing at the hub of " :
				f.hub.len ? "subscribing at the hub of " :
					    "switched on for ");
		cli_out_safe(c, f.url);
		cli_out(c, "\n");
	}
	if (on && !f.hub.len)
		cli_note(c,
			"the feed names no WebSub hub so far: a running server subscribes when a visit finds one, "
			"or an rssCloud hub");
	else
		cli_note(c, "a running server does this within seconds");
	return CLI_OK;
}

static int websub_command_on(struct cli *c)
{
	return websub_command_switch(c, true);
}

static int websub_command_off(struct cli *c)
{
	return websub_command_switch(c, false);
}

static int websub_run(struct cli *c)
{
	static const struct {
		const char *word;
		int (*run)(struct cli *c);
	} WHAT[] = {{"list", websub_command_list}, {"on", websub_command_on}, {"off", websub_command_off}};

	for (size_t i = 0; i < FW_N(WHAT); i++) {
		if (strcmp(c->arg_n ? c->arg[0] : "list", WHAT[i].word) == 0)
			return WHAT[i].run(c);
	}
	return cli_usage(c, "the argument must be list, on or off, not '%.60s'", c->arg[0]);
}

static const struct cli_option WEBSUB_OPTION[] = {
	{"json", NULL, "list: print a JSON array of objects; on, off: an object"},
	{"jsonl", NULL, "print one JSON object per line"},
	{NULL, NULL, NULL},
};

const struct cli_command cli_websub = {
	.name = "websub",
	.args = "[list|on|off] [FEED]",
	.summary = "list subscriptions at hubs; switch them on or off",
	.about = "A server with the setting websub_url subscribes feeds at the hubs that they name (WebSub, rssCloud). "
		 "'off' unsubscribes a feed\n"
		 "until 'on'.\n",
	.examples = "  feedwheel websub\n  feedwheel websub off https://example.org/feed.xml\n",
	.option = WEBSUB_OPTION,
	.min_args = 0,
	.max_args = 2,
	.run = websub_run,
};
