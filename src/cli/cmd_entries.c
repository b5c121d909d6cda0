/* SPDX-License-Identifier: ISC */
/*
 * entries: what was collected, newest first: lines for people, JSON Feed 1.1 or one item a line for scripts. Contents are
 * stored as they came and made safe on the way out, unless --raw.
 */
#include <stdlib.h>

#include "cli/cli.h"
#include "base/banned.h"

struct entries {
	struct cli *c;
	struct cli_json json;
	bool as_json, as_lines, content, raw;
	size_t n;
	int rc; /* our own failure, said already */
};

/* Text cut to columns (0: whole); returns how many it took. */
static size_t fitted(struct cli *c, const char *style, struct fw_str text, size_t columns)
{
	struct fw_buf b = FW_BUF_INIT(0);
	size_t w = cli_fit(&b, &c->term, text, columns);

	cli_paint(&c->out, c->term.out_colour, style, fw_buf_str(&b));
	fw_buf_finish(&b);
	return w;
}

static void labelled(struct cli *c, const char *style, struct fw_str text, size_t columns)
{
	for (size_t w = fitted(c, style, text, columns); w < columns; w++)
		fw_buf_addc(&c->out, ' ');
}

#define NARROW 60     /* columns under which the title gets a line of its own */
#define READ_COLUMNS 100 /* longer lines are hard to read */

/* The content, laid out to be read; as it came with --raw. */
static void content_text(struct entries *e, const struct fw_entry_row *r)
{
	struct cli *c = e->c;
	size_t columns = FW_MIN((size_t)c->term.width, (size_t)READ_COLUMNS);
	struct fw_str text = r->content.len ? r->content : r->summary;
	struct fw_err err = {0};
	char *safe = NULL;
	size_t len = 0;

	cli_out(c, "\n");
	if (e->raw) {
		cli_out_safe(c, text);
		cli_out(c, "\n");
	} else if (!r->content.len || r->content_type != FW_TEXT_HTML) {
		cli_page_text(&c->out, &c->term, text, columns, 4);
	} else if (!fw_sanitize(text, r->content_base.len ? r->content_base : r->url, 0, &safe, &len, &err)) {
		cli_page_html(&c->out, &c->term, (struct fw_str){safe, len}, columns, 4);
	} else if (!e->rc) {
		e->rc = cli_fail(c, CLI_SOME, "entry %lld: %s", (long long)r->id, err.text);
	}
	cli_out(c, "\n");
	free(safe);
}

/* Two lines: when, whose and title; the address under the title. On a narrow terminal the title stands there too. */
static void item_text(struct entries *e, const struct fw_entry_row *r)
{
	struct cli *c = e->c;
	size_t wide = c->term.out_tty ? (size_t)c->term.width : 0, feed = wide ? FW_MIN(FW_MAX(wide / 5, (size_t)12), (size_t)24) : 24;
	bool narrow = wide && wide < NARROW;
	size_t under = narrow ? 2 : feed + 20; /* where title or address begin */
	struct fw_str title = r->title.len ? r->title : r->summary.len ? r->summary : FW_STR("(no title)");
	char when[FW_RFC3339_MAX];
	int64_t at_ms;

	/* as the document dates it, but never later than we saw it */
	at_ms = fw_date_known(r->published_ms) ? r->published_ms : fw_date_known(r->updated_ms) ? r->updated_ms : r->seen_ms;
	cli_stamp(when, FW_MIN(at_ms, r->seen_ms));
	labelled(c, CLI_DIM, fw_str(when), 16);
	cli_out(c, "  ");
	labelled(c, CLI_CYAN, r->feed_title.len ? r->feed_title : r->feed_url, narrow ? wide - 18 : feed);
	cli_out(c, narrow ? "\n  " : "  ");
	fitted(c, CLI_BOLD, title, wide ? wide - under : 0);
	cli_out(c, "\n%*s", (int)under, "");
	fitted(c, CLI_DIM, r->url.len ? r->url : r->guid, 0);
	cli_out(c, "\n");
	if (e->content && (r->content.len || r->summary.len))
		content_text(e, r);
}

static void item_json(struct entries *e, const struct fw_entry_row *r)
{
	unsigned flags = (e->content ? FW_VIEW_CONTENT : 0) | (e->raw ? FW_VIEW_RAW : 0);
	struct fw_err err = {0};

	if (fw_entry_json(&e->json.j, r, flags, &err) && !e->rc)
		e->rc = cli_fail(e->c, CLI_SOME, "%s", err.text);
}

static int take(void *ctx, const struct fw_entry_row *r)
{
	struct entries *e = ctx;

	e->n++;
	if (!e->as_json && !e->as_lines) {
		item_text(e, r);
		cli_out_bytes(e->c, "", 0);
		return cli_gone(e->c);
	}
	if (e->as_lines) {
		cli_json_begin(&e->json, false);
		item_json(e, r);
		cli_json_end(&e->json, e->c);
	} else {
		item_json(e, r);
		cli_json_flush(&e->json, e->c);
	}
	return cli_gone(e->c) || e->rc;
}

static int query(struct cli *c, struct fw_entry_query *q)
{
	const char *since = cli_value(c, "since"), *feed = cli_value(c, "feed");
	int64_t limit = 0;
	struct fw_feed f = {0};
	int rc;

	if (since && !fw_when_parse(fw_str(since), c->now_ms, &q->since_ms))
		return cli_usage(c, "--since is a time such as 2h, 3d, 2026-11-01 or 2026-11-01T12:00:00Z, not '%.60s'", since);
	if (!cli_value_int(c, "limit", 1, &limit) || !cli_value_int(c, "after", 0, &q->after_id))
		return CLI_USAGE;
	if (cli_value(c, "after"))
		q->oldest_first = true;
	q->limit = (size_t)limit;
	q->search = fw_str(cli_value(c, "search"));
	if (cli_value(c, "search") && !fw_str_trim(q->search).len)
		return cli_usage(c, "--search needs a word");
	rc = cli_store(c, FW_STORE_READ);
	if (!rc && feed)
		rc = cli_feed(c, feed, false, &f);
	q->feed_id = f.id;
	return rc;
}

/* A search that does not see everything says so. */
static int unindexed_tell(struct cli *c)
{
	struct fw_store_stats s;
	char n[FW_RFC3339_MAX];
	struct fw_err err = {0};

	if (fw_store_stats(c->store, 0, &s, &err))
		return cli_store_failed(c, &err);
	if (s.unindexed_n)
		cli_note(c, "%s not in the search index yet: a worker ('feedwheel run') goes on with it",
			cli_count(n, s.unindexed_n, "entry is", "entries are"));
	return 0;
}

static int entries_run(struct cli *c)
{
	struct entries e = {.c = c, .as_json = cli_flag(c, "json"), .as_lines = cli_flag(c, "jsonl"), .raw = cli_flag(c, "raw")};
	struct fw_entry_query q = {.oldest_first = cli_flag(c, "oldest-first")};
	struct fw_err err = {0};
	int rc = e.as_json && e.as_lines ? cli_usage(c, "--json or --jsonl, not both") : query(c, &q);

	if (rc)
		return rc;
	e.content = q.content = cli_flag(c, "content") || e.raw;
	if (!q.limit && !e.as_json && !e.as_lines)
		q.limit = 20;
	if (e.as_json) {
		cli_json_begin(&e.json, true);
		fw_json_object(&e.json.j, NULL);
		fw_json_cstr(&e.json.j, "version", "https://jsonfeed.org/version/1.1");
		fw_json_cstr(&e.json.j, "title", "feedwheel entries");
		fw_json_array(&e.json.j, "items");
	}
	rc = fw_store_entry_list(c->store, &q, take, &e, &err);
	if (e.as_json) {
		fw_json_end(&e.json.j);
		fw_json_end(&e.json.j);
		cli_json_end(&e.json, c);
	}
	if (rc < 0)
		return rc == FW_EINVAL ? cli_usage(c, "%s", err.text) : cli_store_failed(c, &err);
	if (!e.n && !e.as_json && !e.as_lines)
		cli_note(c, "no entries%s", q.search.len || q.feed_id || q.since_ms ? " like that" :
			" yet: 'feedwheel run --once' fetches what is due");
	if (q.search.len && !e.rc)
		e.rc = unindexed_tell(c);
	return e.rc;
}

static const struct cli_option OPTION[] = {
	{"feed", "URL", "only this feed's (URL, #number, or part of URL or title)"},
	{"since", "TIME", "only those stored since then: 2h, 3d, 2026-11-01, RFC 3339"},
	{"search", "WORDS", "only those with all these words; pre* and \"a phrase\" work"},
	{"limit", "N", "at most N (20; without limit for --json and --jsonl)"},
	{"after", "ID", "only those stored after entry ID, oldest first: a cursor"},
	{"oldest-first", NULL, "in the order of storing"},
	{"content", NULL, "with contents: as text to read, as safe HTML in JSON"},
	{"raw", NULL, "with contents, as they came"},
	{"json", NULL, "one JSON Feed 1.1 document"},
	{"jsonl", NULL, "one JSON object a line"},
	{NULL, NULL, NULL},
};

const struct cli_command cli_entries = {
	.name = "entries", .args = "", .summary = "show what was collected, newest first",
	.examples = "  feedwheel entries --since 2h\n  feedwheel entries --content --limit 3 | less\n  feedwheel entries --search 'sqlite wal*' --limit 5\n"
		"  feedwheel entries --feed example.org --content --json\n"
		"  feedwheel entries --jsonl --after 4711    what is new since entry 4711\n",
	.option = OPTION, .run = entries_run,
};
