/* SPDX-License-Identifier: ISC */
/*
 * entries: list the stored entries, newest first, as text, as JSON Feed 1.1, or as one JSON item
 * per line. Content is stored unchanged and sanitized on output, except with --raw.
 */
#include "cli/cli.h"

struct entries {
	struct cli *c;
	struct cli_json json;
	struct fw_buf line; /* spare */
	bool as_json, as_lines, content, raw;
	size_t n;
	int64_t unindexed_n; /* entries that the search does not cover */
	int rc;              /* a failure here, already reported */
};

/* Print text, cut to columns (0: not cut); returns its width. */
static size_t entries_fit(struct cli *c, const char *style, struct fw_str text, size_t columns)
{
	struct fw_buf b = FW_BUF_INIT(0);
	size_t w = cli_fit(&b, &c->term, text, columns);

	cli_paint(&c->out, c->term.out_colour, style, fw_buf_str(&b));
	fw_buf_finish(&b);
	return w;
}

static void entries_fit_padded(struct cli *c, const char *style, struct fw_str text, size_t columns)
{
	for (size_t w = entries_fit(c, style, text, columns); w < columns; w++)
		fw_buf_addc(&c->out, ' ');
}

/* The snippet with its matches in bold type, or without marks. */
static void entries_snippet_paint(struct fw_buf *out, const struct cli_term *t, struct fw_str snippet)
{
	bool marked = false;

	while (snippet.len) {
		struct fw_str text = fw_str_split(snippet, marked ? FW_MARK_END : FW_MARK_BEGIN, &snippet);

		if (t->out_colour && marked && text.len)
			fw_buf_adds(out, "\033[" CLI_BOLD "m");
		cli_escape(out, cli_ascii(t), text);
		if (t->out_colour && marked && text.len)
			fw_buf_adds(out, "\033[0m");
		marked = !marked;
	}
}

/* Is the snippet the title? Then it is on the line above. */
static bool entries_snippet_is(struct fw_str snippet, struct fw_str title)
{
	size_t k = 0;

	for (size_t i = 0; i < snippet.len; i++) {
		if (snippet.p[i] == FW_MARK_BEGIN || snippet.p[i] == FW_MARK_END)
			continue;
		if (k == title.len || snippet.p[i] != title.p[k++])
			return false;
	}
	return k == title.len;
}

#define NARROW 60     /* on a terminal with fewer columns the title gets its own line */
#define TITLE_MAX 200 /* columns of a title taken from the text, if stdout is not a terminal */
#define NUMBER 7      /* "12345  " */

#define SNIPPET_COLUMNS 100 /* wider lines are hard to read */

/* Where a search found the words, below the link. Nothing if they are only in the title. */
static void entries_item_snippet(struct entries *e, const struct fw_entry_row *r)
{
	struct cli *c = e->c;
	size_t columns = c->term.out_tty ? FW_MIN((size_t)c->term.width, (size_t)SNIPPET_COLUMNS) : 0;

	if (!r->snippet.len || !memchr(r->snippet.p, FW_MARK_BEGIN, r->snippet.len) ||
		entries_snippet_is(r->snippet, fw_str_trim(r->title)))
		return;
	fw_buf_reset(&e->line);
	fw_buf_addf(&e->line, "%*s", NUMBER, "");
	entries_snippet_paint(&e->line, &c->term, r->snippet);
	c->out.rc = c->out.rc ? c->out.rc : e->line.rc;
	cli_wrap(&c->out, fw_buf_str(&e->line), columns, NUMBER);
	fw_buf_addc(&c->out, '\n');
}

/*
 * Two lines: number, time, feed and title; below the title its link. A narrow terminal gets the
 * title on a line of its own. A search adds a snippet.
 */
static void entries_item_text(struct entries *e, const struct fw_entry_row *r)
{
	struct cli *c = e->c;
	size_t wide = c->term.out_tty ? (size_t)c->term.width : 0,
	       feed = wide ? FW_MIN(FW_MAX(wide / 6, (size_t)12), (size_t)24) : 24;
	bool narrow = wide && wide < NARROW;
	size_t under = narrow ? NUMBER : NUMBER + feed + 20; /* column of the link */
	struct fw_str link = cli_entry_link(c, r);
	char text[FW_RFC3339_MAX];

	(void)fw_snprintf(text, sizeof(text), "%5lld  ", (long long)r->id);
	cli_paint(&c->out, c->term.out_colour, CLI_DIM, fw_str(text));
	entries_fit_padded(c, CLI_DIM, fw_str(cli_stamp(text, cli_entry_date(r))), 16);
	cli_out(c, "  ");
	entries_fit_padded(
		c, CLI_CYAN, r->feed_title.len ? r->feed_title : r->feed_url, narrow ? wide - NUMBER - 18 : feed);
	cli_out(c, narrow ? "\n%*s" : "  ", narrow ? NUMBER : 0, "");
	entries_fit(c, CLI_BOLD, cli_entry_title(c, r), wide ? wide - under : r->title.len ? 0 : TITLE_MAX);
	cli_out(c, "\n%*s", (int)under, "");
	if (link.len) {
		entries_fit(c, CLI_DIM, link, 0);
	} else {
		cli_out(c, "no link; id ");
		entries_fit(c, CLI_DIM, r->guid, TITLE_MAX);
	}
	cli_out(c, "\n");
	if (!e->content)
		entries_item_snippet(e, r);
	if (e->content && (r->content.len || r->summary.len)) {
		cli_out(c, "\n");
		e->rc = FW_MAX(e->rc, cli_entry_content(c, r, e->raw, 4));
		cli_out(c, "\n");
	}
}

static void entries_item_json(struct entries *e, const struct fw_entry_row *r)
{
	unsigned flags = (e->content ? FW_VIEW_CONTENT : 0) | (e->raw ? FW_VIEW_RAW : 0);
	struct fw_err err = {0};

	if (fw_entry_json(&e->json.j, r, flags, &err) && !e->rc)
		e->rc = cli_fail(e->c, CLI_SOME, "%s", err.text);
}

static int entries_item(void *ctx, const struct fw_entry_row *r)
{
	struct entries *e = ctx;

	e->n++;
	if (!e->as_json && !e->as_lines) {
		entries_item_text(e, r);
		cli_out_bytes(e->c, "", 0);
		return cli_out_failed(e->c);
	}
	if (e->as_lines) {
		cli_json_begin(&e->json, false);
		entries_item_json(e, r);
		cli_json_end(&e->json, e->c);
	} else {
		entries_item_json(e, r);
		cli_json_flush(&e->json, e->c);
	}
	return cli_out_failed(e->c) || e->rc;
}

/* --id: one entry by its number. Excludes all other filters. */
static int entries_query_one(struct cli *c, int64_t *id, struct fw_entry_query *q)
{
	static const char *const OTHER[] = {"feed", "folder", "since", "until", "search", "after", "by"};

	if (!cli_is_number(cli_value(c, "id"), id))
		return cli_usage(c, "--id must be an entry's number, not '%.60s'", cli_value(c, "id"));
	for (size_t i = 0; i < FW_N(OTHER); i++) {
		if (cli_value(c, OTHER[i]))
			return cli_usage(c, "--id and --%s exclude each other", OTHER[i]);
	}
	if (c->arg_n)
		return cli_usage(c, "--id and a query exclude each other");
	*q = cli_entry_query(*id);
	return cli_store(c, FW_STORE_READ);
}

/* The feeds that --feed names. 0 or an exit code. */
static int entries_feeds(struct cli *c, struct fw_entry_query *q)
{
	int64_t *ids = c->given_n ? fw_arena_calloc(&c->arena, c->given_n, sizeof(*ids)) : NULL;
	const char *word;
	int rc = 0;

	for (size_t i = 0; !rc && ids && (word = cli_value_next(c, "feed", &i)) != NULL;) {
		struct fw_feed f = {0};

		rc = cli_feed(c, word, false, &f);
		ids[q->feed_n++] = f.id;
	}
	q->feed_ids = ids;
	return c->given_n && !ids ? cli_fail(c, CLI_SOME, "out of memory") : rc;
}

/* The query: --search, or the arguments as words. 0 or an exit code. */
static int entries_search(struct cli *c, struct fw_entry_query *q)
{
	struct fw_buf words = FW_BUF_INIT(0);
	const char *search = cli_value(c, "search");

	if (search && c->arg_n)
		return cli_usage(c, "--search and a query as an argument exclude each other");
	for (int i = 0; i < c->arg_n; i++)
		fw_buf_addf(&words, "%s%s", i ? " " : "", c->arg[i]);
	q->search = search ? fw_str(search) : c->arg_n ? fw_arena_str(&c->arena, fw_buf_str(&words)) : FW_STR_NONE;
	fw_buf_finish(&words);
	if ((search || c->arg_n) && !fw_str_trim(q->search).len)
		return cli_usage(c, search ? "--search needs a word" : "the query needs a word");
	return 0;
}

/* --by. 0 or an exit code. */
static int entries_order(struct cli *c, struct fw_entry_query *q)
{
	const char *by = cli_value(c, "by");

	if (by && strcmp(by, "date") != 0 && strcmp(by, "relevance") != 0)
		return cli_usage(c, "--by must be date or relevance, not '%.60s'", by);
	q->by_relevance = by && by[0] == 'r';
	if (!q->by_relevance)
		return 0;
	if (!q->search.p)
		return cli_usage(c, "--by relevance needs a query");
	if (cli_value(c, "after") || cli_flag(c, "oldest-first"))
		return cli_usage(c, "--by relevance and --%s exclude each other",
			cli_value(c, "after") ? "after" : "oldest-first");
	return 0;
}

static bool entries_times(struct cli *c, struct fw_entry_query *q)
{
	return cli_value_time(c, "since", &q->since_ms) && cli_value_time(c, "until", &q->until_ms);
}

static int entries_query(struct cli *c, struct fw_entry_query *q)
{
	int64_t limit = 0;
	int rc;

	if (!entries_times(c, q))
		return CLI_USAGE;
	if (!cli_value_int(c, "limit", 1, &limit) || !cli_value_int(c, "after", 0, &q->after_id))
		return CLI_USAGE;
	if (cli_value(c, "after"))
		q->oldest_first = true;
	q->limit = (size_t)limit;
	q->folder = fw_str(cli_value(c, "folder"));
	if (entries_search(c, q) || entries_order(c, q))
		return CLI_USAGE;
	rc = cli_store(c, FW_STORE_READ);
	if (rc)
		return rc;
	return entries_times(c, q) ? entries_feeds(c, q) : CLI_USAGE;
}

/* Say so if a search does not cover all entries. */
static void entries_note_incomplete(const struct entries *e)
{
	char n[FW_RFC3339_MAX];

	if (e->unindexed_n)
		cli_note(e->c,
			"the result is incomplete: %s not indexed yet ('feedwheel run' and 'feedwheel serve' index "
			"them)",
			cli_count(n, e->unindexed_n, "entry is", "entries are"));
}

/* Before a search that may take long: say so. */
static void entries_note_slow(struct cli *c, const struct fw_entry_query *q)
{
	char n[FW_RFC3339_MAX];
	struct fw_store_stats s;
	struct fw_err err;

	if (q->search.p && !fw_store_has_index(c->store) && fw_store_stats(c->store, &s, &err) == 0)
		cli_note(c, "this store has no index: up to %s read",
			cli_count(n, s.entry_n, "entry is", "entries are"));
}

static void entries_note_none(struct cli *c, const struct fw_entry_query *q)
{
	if (cli_folder_missing(c, cli_value(c, "folder")))
		return;
	if (q->search.len || q->feed_n || q->since_ms || q->until_ms || q->folder.len)
		cli_note(c, "no entries match");
	else if (q->after_id)
		cli_note(c, "no entry was stored after entry %lld (the newest: 'feedwheel entries --limit 1')",
			(long long)q->after_id);
	else
		cli_note(c, "no entries yet (to fetch what is due, run 'feedwheel run --once')");
}

static int entries_run(struct cli *c)
{
	struct entries e = {
		.c = c, .as_json = cli_flag(c, "json"), .as_lines = cli_flag(c, "jsonl"), .raw = cli_flag(c, "raw")};
	struct fw_entry_query q = {.oldest_first = cli_flag(c, "oldest-first")};
	struct fw_err err = {0};
	int64_t id = 0;
	int rc = cli_flag(c, "id") ? entries_query_one(c, &id, &q) : entries_query(c, &q);

	if (rc)
		return rc;
	q.unindexed_n = &e.unindexed_n;
	entries_note_slow(c, &q);
	if (cli_value(c, "format")) {
		rc = cli_entries_feed(c, &q);
		entries_note_incomplete(&e);
		return rc;
	}
	e.content = cli_flag(c, "content") || e.raw;
	/* text output shows the start of the text of an untitled entry */
	q.content = e.content || !(e.as_json || e.as_lines);
	q.snippet = q.search.p && !cli_flag(c, "id") && (cli_flag(c, "snippet") || !(e.as_json || e.as_lines));
	if (!q.limit && !e.as_json && !e.as_lines)
		q.limit = 20;
	if (e.as_json) {
		cli_json_begin(&e.json, true);
		fw_json_object(&e.json.j, NULL);
		fw_json_cstr(&e.json.j, "version", "https://jsonfeed.org/version/1.1");
		fw_json_cstr(&e.json.j, "title", "feedwheel entries");
		fw_json_array(&e.json.j, "items");
	}
	rc = fw_store_entry_list(c->store, &q, entries_item, &e, &err);
	fw_buf_finish(&e.line);
	if (rc >= 0 && cli_flag(c, "id") && !e.n) {
		fw_buf_finish(&e.json.buf);
		return cli_entry_missing(c, id);
	}
	if (e.as_json) {
		fw_json_end(&e.json.j);
		fw_incomplete_json(&e.json.j, e.unindexed_n);
		fw_json_end(&e.json.j);
		cli_json_end(&e.json, c);
	}
	if (rc < 0)
		return rc == FW_EINVAL ?
			cli_query_wrong(c, cli_value(c, "search") ? "--search" : "query", q.search, &err) :
			cli_store_failed(c, &err);
	if (!e.n && !e.as_json && !e.as_lines)
		entries_note_none(c, &q);
	entries_note_incomplete(&e);
	return e.rc;
}

static const struct cli_option ENTRIES_OPTION[] = {
	{"feed", "FEED", "only this feed: its number, its URL, or a part of its URL or title (repeatable)"},
	{"id", "ENTRY", "only the entry with this number"},
	{"since", "TIME", "only entries stored since TIME: 2h, 3d, today, yesterday, 2026-11-01, RFC 3339"},
	{"folder", "FOLDER", "only entries of feeds in this folder and its subfolders"},
	{"until", "TIME", "only entries stored before TIME"},
	{"search", "QUERY", "the same as QUERY: words, \"a phrase\", pre*, OR, -not, title:word"},
	{"by", "ORDER", "with a query: date (default), or relevance: best first, of the newest 1,000 matches",
		"date relevance"},
	{"snippet", NULL, "with a query and JSON: include a part of the text that shows the match"},
	{"limit", "N", "at most N (default 20, with --format 100; with --json and --jsonl no limit)"},
	{"after", "ID", "only entries stored after entry ID, oldest first (a cursor)"},
	{"oldest-first", NULL, "list in the order of storing"},
	{"content", NULL, "include content: as text, in JSON as sanitized HTML"},
	{"raw", NULL, "include content, not sanitized"},
	{"format", "FORMAT", "print a feed, with sanitized content: atom, rss, json-feed", "atom rss json-feed"},
	{"json", NULL, "print one JSON Feed 1.1 document"},
	{"jsonl", NULL, "print one JSON object per line"},
	{NULL, NULL, NULL},
};

const struct cli_command cli_entries = {
	.name = "entries",
	.args = "[QUERY...]",
	.summary = "list or search entries, newest first",
	.max_args = -1,
	.examples = "  feedwheel entries --since 2h\n  feedwheel entries --content --limit 3 | less\n  feedwheel "
		    "entries 'sqlite wal*' --limit 5\n"
		    "  feedwheel entries --by relevance 'title:CVE OR \"remote code\"'\n"
		    "  feedwheel entries --feed example.org --content --json\n"
		    "  feedwheel entries --folder News --format atom > news.atom\n"
		    "  feedwheel entries --jsonl --after 4711    entries stored after entry 4711\n",
	.option = ENTRIES_OPTION,
	.run = entries_run,
};
