/* SPDX-License-Identifier: ISC */
/*
 * token add, list, remove: the access tokens of programs that push, read or administer over HTTP.
 */
#include "cli/cli.h"
#include "api/feed_out.h"
#include "api/token.h"

#define NOTE "running servers apply this within seconds"

static int token_command_failed(struct cli *c, const struct fw_err *err)
{
	switch (err->rc) {
	case FW_EINVAL:
		return cli_fail(c, CLI_USAGE, "%s", err->text);
	case FW_ENOTFOUND:
		return cli_fail(c, CLI_SOME, "%s ('feedwheel token list' lists all)", err->text);
	case FW_ELIMIT:
		return cli_fail(c, CLI_SOME, "%s", err->text);
	default:
		return cli_store_failed(c, err);
	}
}

/* Parse --days or --until. 0, or an exit code after an error message. */
static int token_parse_expiry(struct cli *c, int64_t *until_ms)
{
	const char *text = cli_value(c, "until");
	int64_t days = 0;

	*until_ms = FW_NO_DATE;
	if (!cli_value_int(c, "days", 1, &days))
		return CLI_USAGE;
	if (days > 36500)
		return cli_usage(c, "--days must be 1 to 36500");
	if (text && days)
		return cli_usage(c, "--days and --until exclude each other");
	if (days)
		*until_ms = c->now_ms + days * FW_DAY_MS;
	else if (text && (!fw_when_parse(fw_str(text), c->now_ms, until_ms) || *until_ms <= c->now_ms))
		return cli_usage(c,
			"--until must be a future time such as 2030-12-31 or 2030-12-31T18:00:00Z, not '%.60s'", text);
	return 0;
}

/* The feed that the token may read, decoded. In the arena; absent: none. */
static struct fw_str token_feed(struct cli *c, const struct fw_token *t)
{
	return t->broken ? FW_STR_NONE : fw_token_feed_name(t->bound, &c->arena);
}

/* What the token is restricted to; no members if it is not. */
static void token_json_bound(struct cli *c, struct fw_json *j, const struct fw_token *t)
{
	struct fw_str rest = t->bound, feed = token_feed(c, t);
	struct fw_token_bound to;

	fw_json_str(j, "feed", feed);
	if (t->broken || !t->bound.p || feed.p)
		return;
	fw_json_array(j, "feeds");
	while (fw_token_bound_next(&rest, &to, NULL)) {
		if (to.feed_id)
			fw_json_int(j, NULL, to.feed_id);
	}
	fw_json_end(j);
	fw_json_array(j, "properties");
	for (rest = t->bound; fw_token_bound_next(&rest, &to, NULL);) {
		if (to.property.p)
			fw_json_str(j, NULL, to.property);
	}
	fw_json_end(j);
}

/* The members that never change. */
static void token_json_members(struct cli *c, struct fw_json *j, const struct fw_token *t)
{
	fw_json_str(j, "name", t->name);
	fw_json_array(j, "scopes");
	for (unsigned bit = FW_SCOPE_PUSH; bit < FW_SCOPE_ALL && !t->broken; bit <<= 1) {
		char scope[FW_TOKEN_SCOPES_MAX];

		fw_token_scopes_show(t->scopes & bit, scope);
		if (t->scopes & bit)
			fw_json_cstr(j, NULL, scope);
	}
	fw_json_end(j);
	token_json_bound(c, j, t);
	fw_json_time(j, "created", t->at_ms);
	if (t->until_ms != FW_NO_DATE)
		fw_json_time(j, "until", t->until_ms);
}

/* The output of `add` and `remove`. text: the new token, or NULL if removed; url: of its feed. */
static void token_json_one(struct cli *c, const struct fw_token *t, const char *text, struct fw_str url)
{
	struct cli_json w;

	cli_json_object_begin(&w, c);
	if (text)
		token_json_members(c, &w.j, t);
	else
		fw_json_str(&w.j, "name", t->name);
	fw_json_cstr(&w.j, "token", text);
	fw_json_str(&w.j, "url", url);
	cli_json_object_end(&w, c);
}

static int token_count_one(void *ctx, const struct fw_token *t)
{
	(void)t;
	++*(int *)ctx;
	return 0;
}

/* Collect all --feed and --property. 0, or an exit code after an error message. */
static int token_parse_bound(struct cli *c, struct fw_buf *bound)
{
	struct fw_err err = {0};
	const char *word;
	int rc;

	for (size_t i = 0; (word = cli_value_next(c, "feed", &i)) != NULL;) {
		struct fw_feed feed;

		rc = cli_feed(c, word, true, &feed);
		if (rc)
			return rc;
		if (fw_token_bind(bound, &(struct fw_token_bound){.feed_id = feed.id}, &err))
			return token_command_failed(c, &err);
	}
	for (size_t i = 0; (word = cli_value_next(c, "property", &i)) != NULL;) {
		if (fw_token_bind(bound, &(struct fw_token_bound){.property = fw_str(word)}, &err))
			return token_command_failed(c, &err);
	}
	return 0;
}

#define FEED_SCOPE "feed:"

/*
 * --scope feed:NAME: bind the token to what the name means now, so that it never gets another
 * meaning. 0, or an exit code after an error message.
 */
static int token_bind_feed(struct cli *c, struct fw_str text, struct fw_buf *bound)
{
	struct fw_feed_out_name name = fw_feed_out_name_parse(text);
	struct fw_buf full = FW_BUF_INIT(0);
	struct fw_feed_out_found found;
	struct fw_err err = {0};
	int rc = fw_feed_out_find(c->store, &name, &c->arena, &found, &err);

	if (rc == FW_EINVAL)
		return cli_query_wrong(c, "--scope " FEED_SCOPE "NAME", name.text, &err);
	if (rc == FW_ENOTFOUND)
		return cli_fail(c, CLI_SOME, "%s", err.text);
	if (rc)
		return cli_store_failed(c, &err);
	if (found.name.kind == FW_FEED_OUT_QUERY && name.kind == FW_FEED_OUT_BARE)
		cli_note(c, "no folder has the name '%.*s': the token is for the query", FW_STR_ARG(name.text));
	fw_feed_out_name_write(&full, &found.name);
	rc = full.rc ? fw_err_set(&err, FW_ELIMIT, "out of memory") :
		       fw_token_bind(bound, &(struct fw_token_bound){.out = fw_buf_str(&full)}, &err);
	fw_buf_finish(&full);
	return rc ? token_command_failed(c, &err) : 0;
}

/* The URL of a token's feed, without the server's part if that is unknown. In the arena. */
static struct fw_str token_feed_url(struct cli *c, const struct fw_token *t, const char *text)
{
	struct fw_str name = token_feed(c, t), rest = name, url;
	struct fw_buf b = FW_BUF_INIT(0);

	if (!name.p)
		return FW_STR_NONE;
	fw_feed_out_base(c->config, &b);
	if (!b.len)
		fw_buf_addc(&b, '/');
	fw_buf_addf(&b, "t/%s/", text);
	if (fw_feed_out_name_parse(name).kind == FW_FEED_OUT_FOLDER) /* the short form */
		(void)fw_str_split(name, '/', &rest);
	if (fw_feed_out_name_parse(rest).kind != FW_FEED_OUT_BARE)
		rest = name;
	fw_feed_out_path(&b, rest, FW_FEED_OUT_ATOM);
	url = fw_arena_str(&c->arena, fw_buf_str(&b));
	fw_buf_finish(&b);
	return url;
}

static void token_show_new(struct cli *c, const struct fw_token *t, const char *text)
{
	struct fw_str url = token_feed_url(c, t, text);

	if (cli_as_json(c))
		token_json_one(c, t, text, url);
	else if (url.p)
		cli_out(c, "%.*s\n", FW_STR_ARG(url));
	else
		cli_out(c, "%s\n", text);
	if (url.p)
		cli_note(c, "whoever has this URL can read the feed; .rss and .json work too");
}

static int token_command_add(struct cli *c)
{
	const char *words = cli_value(c, "scope");
	struct fw_buf bound = FW_BUF_INIT(0);
	struct fw_str feed = FW_STR_NONE;
	char text[FW_TOKEN_TEXT_MAX];
	struct fw_err err = {0};
	int64_t until_ms;
	unsigned scopes = FW_SCOPE_FEED;
	int rc, n = 0;

	if (c->arg_n != 2)
		return cli_usage(c, "missing argument: NAME ('feedwheel token add NAME --scope push')");
	if (!words)
		return cli_usage(
			c, "missing option: --scope push, read or admin, or several separated by commas, or feed:NAME");
	rc = token_parse_expiry(c, &until_ms);
	if (rc)
		return rc;
	if (fw_str_starts(fw_str(words), FW_STR(FEED_SCOPE)))
		feed = fw_str(words + strlen(FEED_SCOPE));
	else if (fw_token_scopes_parse(fw_str(words), &scopes, &err))
		return token_command_failed(c, &err);
	rc = cli_store(c, FW_STORE_CREATE);
	rc = rc ? rc : token_parse_expiry(c, &until_ms); /* by the store's time */
	if (rc)
		return rc;
	rc = feed.p ? token_bind_feed(c, feed, &bound) : 0;
	rc = rc ? rc : token_parse_bound(c, &bound);
	if (!rc &&
		fw_token_add(c->store, fw_str(c->arg[1]), scopes, bound.len ? fw_buf_str(&bound) : FW_STR_NONE,
			c->now_ms, until_ms, text, &err))
		rc = token_command_failed(c, &err);
	if (!rc)
		token_show_new(c,
			&(struct fw_token){.name = fw_str(c->arg[1]),
				.scopes = scopes,
				.bound = bound.len ? fw_buf_str(&bound) : FW_STR_NONE,
				.at_ms = c->now_ms,
				.until_ms = until_ms},
			text);
	fw_buf_finish(&bound);
	if (rc)
		return rc;
	cli_note(c, "the token is shown only once; " NOTE);
	if (!fw_token_list(c->store, false, token_count_one, &n, &err) && n == 1)
		cli_note(c,
			"this is the first token: from now on every client needs a token, also on the server's own "
			"machine");
	return CLI_OK;
}

static int token_command_remove(struct cli *c)
{
	struct fw_err err = {0};
	int rc;

	if (c->arg_n != 2)
		return cli_usage(c, "missing argument: NAME ('feedwheel token remove NAME')");
	rc = cli_store(c, 0);
	if (rc)
		return rc;
	if (fw_token_remove(c->store, fw_str(c->arg[1]), &err))
		return token_command_failed(c, &err);
	if (cli_as_json(c))
		token_json_one(c, &(struct fw_token){.name = fw_str(c->arg[1])}, NULL, FW_STR_NONE);
	else
		cli_out(c, "removed token %s\n", c->arg[1]);
	cli_note(c, NOTE);
	return CLI_OK;
}

/* ---- list ------------------------------------------------------------------------------------ */

static const struct cli_column TOKEN_COLUMN[] = {
	{"NAME"}, {"SCOPES"}, {"ONLY", .spare = 3}, {"CREATED", .spare = 2}, {"USED", .spare = 1}, {"UNTIL"}};

static bool token_has_expired(const struct cli *c, const struct fw_token *t)
{
	return t->until_ms != FW_NO_DATE && t->until_ms <= c->now_ms;
}

static void token_row(struct cli_list *l, const struct fw_token *t)
{
	char scopes[FW_TOKEN_SCOPES_MAX], made[FW_RFC3339_MAX], until[FW_RFC3339_MAX], used[FW_RFC3339_MAX];
	struct fw_str feed = token_feed(l->c, t);
	bool over = token_has_expired(l->c, t);

	fw_token_scopes_show(t->scopes, scopes);
	cli_table_cell(&l->table, CLI_BOLD, t->name);
	cli_table_cell(&l->table, NULL, fw_str(t->broken ? "none" : scopes));
	cli_table_cell(&l->table, NULL, t->broken || !t->bound.p ? FW_STR("-") : feed.p ? feed : t->bound);
	cli_table_cell(&l->table, CLI_DIM, fw_str(cli_stamp(made, t->at_ms)));
	cli_table_cell(&l->table, NULL, fw_str(cli_ago(l->c, used, t->used_ms)));
	cli_table_cell(&l->table, t->broken || over ? CLI_RED : NULL,
		t->broken                         ? FW_STR("unreadable: remove it") :
			over                      ? FW_STR("expired") :
			t->until_ms == FW_NO_DATE ? FW_STR("forever") :
						    fw_str(cli_stamp(until, t->until_ms)));
}

static void token_json(struct cli_list *l, const struct fw_token *t)
{
	struct fw_json *j = cli_list_item(l);

	fw_json_object(j, NULL);
	token_json_members(l->c, j, t);
	if (t->used_ms)
		fw_json_time(j, "used", t->used_ms);
	fw_json_bool(j, "valid", !t->broken && !token_has_expired(l->c, t));
	fw_json_end(j);
	cli_list_item_end(l);
}

static int token_list_print(void *ctx, const struct fw_token *t)
{
	struct cli_list *l = ctx;

	l->n++;
	if (l->as_json)
		token_json(l, t);
	else
		token_row(l, t);
	return cli_out_failed(l->c);
}

static int token_command_list(struct cli *c)
{
	struct cli_list l;
	struct fw_err err = {0};
	int rc;

	if (c->arg_n != 1)
		return cli_usage(c, "'token list' takes no arguments");
	rc = cli_store(c, FW_STORE_READ);
	if (rc)
		return rc;
	cli_list_begin(&l, c, TOKEN_COLUMN, FW_N(TOKEN_COLUMN));
	rc = fw_token_list(c->store, true, token_list_print, &l, &err);
	cli_list_end(&l);
	if (rc < 0)
		return cli_store_failed(c, &err);
	if (!l.n && !l.as_json)
		cli_note(c,
			"no tokens: only clients on the server's own machine have access (to add one, run 'feedwheel "
			"token add NAME --scope push')");
	return CLI_OK;
}

static int token_run(struct cli *c)
{
	static const struct {
		const char *word;
		int (*run)(struct cli *c);
	} WHAT[] = {{"add", token_command_add}, {"list", token_command_list}, {"remove", token_command_remove}};

	for (size_t i = 0; i < FW_N(WHAT); i++) {
		if (strcmp(c->arg[0], WHAT[i].word) == 0)
			return WHAT[i].run(c);
	}
	return cli_usage(c, "the argument must be add, list or remove, not '%.60s'", c->arg[0]);
}

static const struct cli_option TOKEN_OPTION[] = {
	{"scope", "SCOPES",
		"add: permissions: push, read, admin, or several separated by commas; or feed:NAME, one feed",
		"push read admin"},
	{"feed", "FEED", "add: permit only pushes of entries to this feed (number or URL); may be repeated"},
	{"property", "NAME", "add: permit only pushes of events of this property; may be repeated"},
	{"days", "N", "add: the token expires after N days"},
	{"until", "TIME", "add: the token expires at TIME (2030-12-31)"},
	{"json", NULL, "print a JSON object; list: an array of objects"},
	{"jsonl", NULL, "print one JSON object per line"},
	{NULL, NULL, NULL},
};

const struct cli_command cli_token = {
	.name = "token",
	.args = "add|list|remove [NAME]",
	.summary = "manage access tokens of HTTP clients",
	.about = "'add' prints a new token. It is shown only once: the store has only its hash. While there is no "
		 "token, clients on the server's\n"
		 "own machine have full access and all others none. From the first token on, whatever its scope, every "
		 "client needs a token,\n"
		 "also on that machine. Running servers apply changes within seconds.\n",
	.examples = "  feedwheel token add website --scope push\n  feedwheel token add blog --scope push --feed 12\n"
		    "  feedwheel token add backup --scope read --days 90\n"
		    "  feedwheel token add phone --scope feed:News    prints a URL for a feed reader\n"
		    "  feedwheel token list\n  feedwheel token remove website\n",
	.option = TOKEN_OPTION,
	.min_args = 1,
	.max_args = 2,
	.flags = CLI_EXACT_FEED,
	.run = token_run,
};
