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

/* Is key ("authors") a member of the object at its top? */
static bool has_member(struct fw_str object, struct fw_str key)
{
	int depth = 0;

	for (size_t i = 0; i < object.len; i++) {
		size_t from = i + 1;

		if (object.p[i] == '{' || object.p[i] == '[')
			depth++;
		if (object.p[i] == '}' || object.p[i] == ']')
			depth--;
		if (object.p[i] != '"')
			continue;
		for (i++; i < object.len && object.p[i] != '"'; i++)
			i += object.p[i] == '\\';
		if (depth == 1 && fw_str_eq(fw_str_sub(object, from, i), key) && i + 1 < object.len && object.p[i + 1] == ':')
			return true;
	}
	return false;
}

/* The members inside {...}, spliced into the object being written. */
static void members_splice(struct fw_json *j, struct fw_str object)
{
	struct fw_str inner;

	object = fw_str_trim(object);
	if (object.len < 2 || object.p[0] != '{' || object.p[object.len - 1] != '}')
		return;
	inner = fw_str_trim(fw_str_sub(object, 1, object.len - 1));
	if (!inner.len)
		return;
	if (j->need_comma)
		fw_buf_addc(j->out, ',');
	fw_buf_addstr(j->out, inner);
	j->need_comma = true;
}

static bool date_known(int64_t ms)
{
	return ms != FW_NO_DATE && ms != 0;
}

static void content_member(struct entries *e, struct fw_json *j, const struct fw_entry_row *r)
{
	struct fw_err err = {0};
	char *safe = NULL;
	size_t len = 0;

	if (!r->content.p || r->content_type == FW_TEXT_NONE)
		return;
	if (r->content_type == FW_TEXT_PLAIN) {
		fw_json_str(j, "content_text", r->content);
	} else if (e->raw) {
		fw_json_str(j, "content_html", r->content);
	} else if (fw_sanitize(r->content, r->content_base.len ? r->content_base : r->url, 0, &safe, &len, &err)) {
		if (!e->rc)
			e->rc = cli_fail(e->c, CLI_SOME, "entry %lld: %s", (long long)r->id, err.text);
	} else {
		fw_json_str(j, "content_html", (struct fw_str){safe, len});
	}
	free(safe);
}

static void item_json(struct entries *e, struct fw_json *j, const struct fw_entry_row *r)
{
	char id[FW_RFC3339_MAX];

	(void)fw_snprintf(id, sizeof(id), "%lld", (long long)r->id);
	fw_json_object(j, NULL);
	fw_json_str(j, "id", r->guid.len ? r->guid : r->url.len ? r->url : fw_str(id));
	if (r->url.len)
		fw_json_str(j, "url", r->url);
	if (r->title.len)
		fw_json_str(j, "title", r->title);
	if (r->summary.len)
		fw_json_str(j, "summary", r->summary);
	if (e->content)
		content_member(e, j, r);
	if (date_known(r->published_ms))
		fw_json_time(j, "date_published", r->published_ms);
	if (date_known(r->updated_ms))
		fw_json_time(j, "date_modified", r->updated_ms);
	if (r->author.len && !has_member(r->extra, FW_STR("authors"))) {
		fw_json_array(j, "authors");
		fw_json_object(j, NULL);
		fw_json_str(j, "name", r->author);
		fw_json_end(j);
		fw_json_end(j);
	}
	members_splice(j, r->extra);
	fw_json_object(j, "_store");
	fw_json_int(j, "entry", r->id);
	fw_json_int(j, "feed", r->feed_id);
	fw_json_str(j, "feed_url", r->feed_url);
	fw_json_str(j, "feed_title", r->feed_title);
	fw_json_time(j, "seen", r->seen_ms);
	if (r->changed_ms != r->seen_ms)
		fw_json_time(j, "changed", r->changed_ms);
	fw_json_int(j, "revision", r->revision);
	fw_json_end(j);
	fw_json_end(j);
}

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
	at_ms = date_known(r->published_ms) ? r->published_ms : date_known(r->updated_ms) ? r->updated_ms : r->seen_ms;
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
		item_json(e, &e->json.j, r);
		cli_json_end(&e->json, e->c);
	} else {
		item_json(e, &e->json.j, r);
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

	if (since && !cli_time_parse(fw_str(since), c->now_ms, &q->since_ms))
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
