/* SPDX-License-Identifier: ISC */
/* Lists of entries: by id, by date, of one feed, of a search. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "store/fields.h"
#include "store/sql/candidates.h"
#include "store/sql/core.h"

int sql_entry_id_seen_before(struct sql *s, int64_t before_ms, int64_t *id, struct fw_err *err)
{
	return sql_id_before(s, "SELECT max(id) FROM entries",
		"SELECT id, seen_ms FROM entries WHERE id >= ?1 ORDER BY id LIMIT 1", before_ms, id, err);
}

/*
 * A list is read in pages: first ids and dates in order, then the rows in portions. So a sort
 * carries two numbers per entry, whatever its size, and client libraries that buffer a result
 * buffer little.
 *
 * Where rows are checked, and an index gives the order, the page's statement has the short columns
 * too: what they rule out is never read again. So a rare author costs one pass over the short
 * columns of all entries.
 */
#define PAGE_MAX 20000
#define PAGE_SHORTS_MAX 4000
#define PAGE_CHECKED 1000 /* the first page, where each row is checked */
#define PAGE_SHORTS 100
#define SHOWN_MAX 200
#define SHOWN_WHOLE_MAX 20 /* rows with content */

/* By the index on feed_id. Through entry_keys some plans would join row by row. */
#define OF_FEED "e.feed_id = ?1"

/*
 * ?1: what the statement needs first; ?2, ?3: ids, exclusive; ?4, ?6: first seen at or after, and
 * before; ?5: LIMIT; ?7, ?8: after that date and id. A + before a column keeps SQLite from an index
 * that would read most of the table.
 */
#define BETWEEN(id) " AND " id " > ?2 AND " id " < ?3 AND e.seen_ms >= ?4 AND e.seen_ms < ?6"
#define BEHIND " AND e.date_ms <= ?7 AND (e.date_ms < ?7 OR e.id < ?8)"
/*
 * The same, behind that date, for a list in the order of an index on dates. PostgreSQL does not
 * look into coalesce(): it would guess that few entries are left, and sort them all for each page.
 */
#define BY_DATE_ONLY(more)                                                                           \
	" AND e.date_ms <= ?7 AND coalesce(" more " AND e.id > ?2 AND e.id < ?3 AND e.seen_ms >= ?4" \
	" AND e.seen_ms < ?6 AND (e.date_ms < ?7 OR e.id < ?8), false)" BY_DATE
#define IDS "SELECT e.id, e.date_ms FROM entries e WHERE "
#define SHORTS "SELECT e.id, e.date_ms, e.feed_id, e.seen_ms, e.title, e.author, e.url, e.extra"
#define OF_ENTRY SHORTS " FROM entries e WHERE "
/* LEFT: no planner begins with the feeds. */
#define OF_FEED_TOO                                                                         \
	SHORTS ", f.url, coalesce(nullif(f.user_title, ''), f.title), f.folder, f.language" \
	       " FROM entries e LEFT JOIN feeds f ON f.id = e.feed_id WHERE "

#define BY_ID " ORDER BY e.id LIMIT ?5"
#define BY_DATE " ORDER BY e.date_ms DESC, e.id DESC LIMIT ?5"
#define SORTED_BY_ID " ORDER BY +e.id LIMIT ?5"
#define SORTED_BY_DATE " ORDER BY +e.date_ms DESC, e.id DESC LIMIT ?5"
#define FOUND(feed) IDS "{found}" BETWEEN("+e.id") " AND (" feed " = 0 OR e.feed_id = " feed ")"
#define FOUND_AMONG(feeds) IDS "{found}" BETWEEN("+e.id") " AND {among e.feed_id|" feeds "}"

enum {
	ALL_BY_ID,
	FEED_BY_ID,
	FEW_BY_ID, /* few feeds: by their index */
	MANY_BY_ID,
	FOUND_BY_ID,
	FOUND_AMONG_BY_ID,
	ALL_BY_DATE,
	SOME_BY_DATE,
	FEED_BY_DATE,
	FEW_BY_DATE,
	MANY_BY_DATE,
	MANY_SOME_BY_DATE,
	FOUND_BY_DATE,
	FOUND_AMONG_BY_DATE,
	ENTRY_PAGE_N,
};
/* In the order of an index. */
#define ORDERED(columns)                                                          \
	[ALL_BY_ID] = columns "(?1 = 0 OR e.feed_id = ?1)" BETWEEN("e.id") BY_ID, \
	[MANY_BY_ID] = columns "{among +e.feed_id|?1}" BETWEEN("e.id") BY_ID,     \
	[ALL_BY_DATE] = columns "?1 = 0" BY_DATE_ONLY("?1 = 0"),                  \
	[FEED_BY_DATE] = columns OF_FEED BY_DATE_ONLY("?1 = ?1"),                 \
	[MANY_BY_DATE] = columns "1 = 1" BY_DATE_ONLY("{among e.feed_id|?1}")
static const char *const ENTRY_PAGE[ENTRY_PAGE_N] = {
	ORDERED(IDS),
	[FEED_BY_ID] = IDS OF_FEED BETWEEN("+e.id") SORTED_BY_ID,
	[FEW_BY_ID] = IDS "{among e.feed_id|?1}" BETWEEN("+e.id") SORTED_BY_ID,
	[FOUND_BY_ID] = FOUND("?7") SORTED_BY_ID,
	[FOUND_AMONG_BY_ID] = FOUND_AMONG("?7") SORTED_BY_ID,
	[SOME_BY_DATE] = IDS "?1 = 0" BETWEEN("e.id") BEHIND SORTED_BY_DATE,
	[FEW_BY_DATE] = IDS "{among e.feed_id|?1}" BETWEEN("+e.id") BEHIND SORTED_BY_DATE,
	[MANY_SOME_BY_DATE] = IDS "{among +e.feed_id|?1}" BETWEEN("e.id") BEHIND SORTED_BY_DATE,
	[FOUND_BY_DATE] = FOUND("?9") BEHIND SORTED_BY_DATE,
	[FOUND_AMONG_BY_DATE] = FOUND_AMONG("?9") BEHIND SORTED_BY_DATE,
};
/* with short columns; and those of the feed */
static const char *const SHORTS_PAGE[2][ENTRY_PAGE_N] = {{ORDERED(OF_ENTRY)}, {ORDERED(OF_FEED_TOO)}};

/* clang-format off */
#define SHOW(key, base, content) {"SELECT e.id, e.feed_id, coalesce(nullif(f.user_title, ''), f.title), f.url, " key \
	", f.folder, f.language, e.seen_ms, e.changed_ms, e.revision, e.published_ms, e.updated_ms, e.content_type, " \
	"e.guid, e.url, e.title, e.author, " \
	base ", e.summary, e.extra, " content \
	" FROM {rows} entries e, feeds f WHERE e.id = v.spot AND f.id = e.feed_id ORDER BY v.nth", "nth:i spot:i"}
/* clang-format on */
#define KEY "e.entry_key, (SELECT k.hash FROM entry_keys k WHERE k.feed_id = e.feed_id AND k.entry_key = e.entry_key)"
static const struct sql_text ENTRY_SHOW[2][2] = {
	/* key, content */
	{SHOW("NULL, NULL", "NULL", "NULL"), SHOW("NULL, NULL", "e.content_base", "e.content")},
	{SHOW(KEY, "NULL", "NULL"), SHOW(KEY, "e.content_base", "e.content")},
};

struct page_key {
	int64_t id, date_ms;
};

struct sql_entry_page {
	struct page_key *at;
	size_t n, max;
	size_t seen; /* rows of the statement's result */
	struct page_key last;
};

struct entry_listing {
	struct sql *s;
	const struct fw_entry_query *q;
	fw_entry_cb *cb;
	void *ctx;
	struct fw_err *err;
	const char *text; /* the statement that reads a page */
	bool by_id, content;
	bool shorts, feeds; /* it has short columns, also those of feeds */
	struct sql_candidates c;
	int64_t now_ms, after_id, before_id, behind_ms, behind_id;
	size_t left; /* how many more to list */
	struct sql_entry_page entry_page;
};

/* Can the row match? */
static int entry_shorts_check(const struct entry_listing *l, const struct sql_row *row, bool *may)
{
	struct fw_entry_row e = {.id = sql_int(row, 0),
		.feed_id = sql_int(row, 2),
		.seen_ms = sql_int(row, 3),
		.title = sql_str(row, 4),
		.author = sql_str(row, 5),
		.url = sql_str(row, 6),
		.extra = sql_str(row, 7)};
	struct query_subject subject = {.entry = &e, .feed_id = e.feed_id, .now_ms = l->now_ms};

	if (l->feeds) {
		subject.feed_url = sql_str(row, 8);
		subject.feed_title = sql_str(row, 9);
		subject.feed_folder = sql_str(row, 10);
		subject.feed_language = sql_str(row, 11);
	}
	return sql_candidate_may(&l->c, &subject, may, l->err);
}

static int entry_page_row(void *ctx, const struct sql_row *row)
{
	struct entry_listing *l = ctx;
	struct sql_entry_page *p = &l->entry_page;
	bool may = true;
	int rc = l->shorts ? entry_shorts_check(l, row, &may) : 0;

	if (rc || p->seen == p->max)
		return rc;
	p->seen++;
	p->last = (struct page_key){sql_int(row, 0), sql_int(row, 1)};
	if (may)
		p->at[p->n++] = p->last;
	return 0;
}

static int entry_page_read(struct entry_listing *l, struct fw_err *err)
{
	const struct fw_entry_query *q = l->q;
	struct sql_value feeds = l->c.among ? SQL_TEXT(fw_buf_str(&l->c.feed)) : SQL_INT(q->feed_id);
	struct sql_value v[9] = {l->c.found ? SQL_TEXT(fw_buf_str(&l->c.word)) : feeds, SQL_INT(l->after_id),
		SQL_INT(l->before_id), SQL_INT(q->since_ms ? q->since_ms : INT64_MIN), SQL_INT(l->entry_page.max),
		SQL_INT(q->until_ms ? q->until_ms : INT64_MAX)};
	size_t n = 6;

	if (!l->by_id) {
		v[n++] = SQL_INT(l->behind_ms);
		v[n++] = SQL_INT(l->behind_id);
	}
	if (l->c.found)
		v[n++] = feeds;
	l->entry_page.n = l->entry_page.seen = 0;
	return sql_query(l->s, l->text, v, n, entry_page_row, l, err);
}

static int entry_list_row(void *ctx, const struct sql_row *row)
{
	struct entry_listing *l = ctx;
	struct fw_entry_row e = {.id = sql_int(row, 0),
		.feed_id = sql_int(row, 1),
		.feed_title = sql_str(row, 2),
		.feed_url = sql_str(row, 3),
		.feed_folder = sql_str(row, 6)};
	struct query_subject subject = {.entry = &e,
		.feed_id = e.feed_id,
		.feed_url = e.feed_url,
		.feed_title = e.feed_title,
		.feed_folder = e.feed_folder,
		.feed_language = sql_str(row, 7),
		.now_ms = l->now_ms};
	struct fw_str key = sql_str(row, 4);
	bool matches;
	int rc;

	if (key.p)
		memcpy(e.key, key.p, FW_MIN(key.len, sizeof(e.key)));
	e.hash = (uint64_t)sql_int(row, 5);
	sql_fields_set("entry", &e, row, 8);
	rc = l->left ? sql_candidate_check(&l->c, &subject, &matches, l->err) : 0;
	if (rc || !l->left || !matches)
		return rc;
	if (!l->q->content)
		e.content = e.content_base = FW_STR_NONE;
	l->left--;
	return l->cb(l->ctx, &e);
}

static int entry_page_show(struct entry_listing *l, struct fw_err *err)
{
	size_t step = l->content ? SHOWN_WHOLE_MAX : SHOWN_MAX;
	int rc = 0;

	for (size_t i = 0; !rc && l->left && i < l->entry_page.n; i += step) {
		struct sql_rows r = {.s = l->s,
			.err = err,
			.fn = entry_list_row,
			.ctx = l,
			.text = ENTRY_SHOW[l->q->key][l->content]};

		for (size_t k = i; k < i + step && k < l->entry_page.n; k++)
			sql_rows_add(&r, SQL_V(SQL_INT(k), SQL_INT(l->entry_page.at[k].id)));
		rc = sql_rows_end(&r);
	}
	return rc;
}

/* The next page's length. Where rows are checked, nobody knows how many it takes. */
static size_t entry_page_max(const struct entry_listing *l, size_t last)
{
	size_t least = l->shorts ? PAGE_SHORTS : PAGE_CHECKED, most = l->shorts ? PAGE_SHORTS_MAX : PAGE_MAX;
	size_t max = !l->c.rest_n ? l->left : last ? 4 * last : FW_MAX(l->left, least);

	return FW_MIN(max, most);
}

static int entry_pages_show(struct entry_listing *l, struct fw_err *err)
{
	struct sql_entry_page *p = &l->entry_page;
	int rc = 0;

	p->at = calloc(PAGE_MAX, sizeof(*p->at));
	if (!p->at)
		return fw_no_memory(err);
	do {
		p->max = entry_page_max(l, p->max);
		rc = entry_page_read(l, err);
		assert(p->n <= p->seen && p->seen <= p->max);
		rc = rc ? rc : entry_page_show(l, err);
		if (rc || !p->seen)
			break;
		if (l->by_id)
			l->after_id = p->last.id;
		l->behind_id = p->last.id;
		l->behind_ms = p->last.date_ms;
	} while (l->left && p->seen == p->max);
	free(p->at);
	return rc;
}

static int entry_list_text(const struct entry_listing *l)
{
	const struct fw_entry_query *q = l->q;
	bool some = q->since_ms || q->after_id;

	if (fw_store_entry_query_is_one(q))
		return ALL_BY_ID;
	if (l->c.found && l->c.among)
		return l->by_id ? FOUND_AMONG_BY_ID : FOUND_AMONG_BY_DATE;
	if (l->c.found)
		return l->by_id ? FOUND_BY_ID : FOUND_BY_DATE;
	if (q->feed_id)
		return l->by_id ? FEED_BY_ID : FEED_BY_DATE;
	if (l->c.among && l->c.few)
		return l->by_id ? FEW_BY_ID : FEW_BY_DATE;
	if (l->c.among)
		return l->by_id ? MANY_BY_ID : some ? MANY_SOME_BY_DATE : MANY_BY_DATE;
	return l->by_id ? ALL_BY_ID : some ? SOME_BY_DATE : ALL_BY_DATE;
}

static int entry_list_prepare(struct entry_listing *l, struct fw_err *err)
{
	const struct fw_entry_query *q = l->q;
	int64_t since_id = 0, until_id = INT64_MAX - 1;
	int which;
	int rc = q->since_ms ? sql_entry_id_seen_before(l->s, q->since_ms - SQL_SEEN_SLACK_MS, &since_id, err) : 0;

	if (!rc && q->until_ms)
		rc = sql_entry_id_seen_before(l->s, q->until_ms + SQL_SEEN_SLACK_MS, &until_id, err);
	l->after_id = FW_MAX(q->after_id, since_id);
	l->before_id = FW_MIN(q->before_id ? q->before_id : INT64_MAX, until_id + 1);
	l->behind_id = q->behind_id ? q->behind_id : INT64_MAX;
	l->behind_ms = q->behind_id ? q->behind_date_ms : INT64_MAX;
	l->by_id = q->oldest_first || fw_store_entry_query_is_one(q);
	which = entry_list_text(l);
	l->text = ENTRY_PAGE[which];
	l->feeds = l->c.reads & QUERY_READS_FEED;
	l->shorts = l->c.by_shorts && SHORTS_PAGE[l->feeds][which] && !fw_store_entry_query_is_one(q);
	if (l->shorts)
		l->text = SHORTS_PAGE[l->feeds][which];
	l->content = q->content || l->c.reads & QUERY_READS_BODY;
	l->left = q->limit ? q->limit : SIZE_MAX;
	return rc;
}

int sql_entry_list(struct store *st, const struct store_entry_query *q, fw_entry_cb *cb, void *ctx, struct fw_err *err)
{
	struct entry_listing l = {.s = sql_of(st), .q = &q->q, .cb = cb, .ctx = ctx, .err = err, .now_ms = q->now_ms};
	int rc = sql_candidates_begin(&l.c, l.s, q, err);

	rc = rc ? rc : entry_list_prepare(&l, err);
	rc = rc ? rc : entry_pages_show(&l, err);
	sql_candidates_finish(&l.c);
	return rc;
}

/* ---- counts ---------------------------------------------------------------------------------- */

struct count_rows {
	fw_entry_count_cb *cb;
	void *ctx;
};

static int entry_count_row(void *ctx, const struct sql_row *row)
{
	const struct count_rows *c = ctx;

	return c->cb(c->ctx, sql_int(row, 0), sql_int(row, 1));
}

/*
 * Ids rise with seen_ms, but for the slack. So above `sure_id` the index on feeds alone gives the
 * numbers, without the rows; only those between are read. The + keeps SQLite from that index there.
 */
int sql_entry_counts(struct store *st, int64_t since_ms, fw_entry_count_cb *cb, void *ctx, struct fw_err *err)
{
	struct sql *s = sql_of(st);
	struct count_rows c = {cb, ctx};
	int64_t first_id = 0, sure_id = 0;
	int rc = since_ms ? sql_entry_id_seen_before(s, since_ms - SQL_SEEN_SLACK_MS, &first_id, err) : 0;

	if (!rc && since_ms)
		rc = sql_entry_id_seen_before(s, since_ms + SQL_SEEN_SLACK_MS, &sure_id, err);
	if (!rc && first_id < sure_id)
		rc = sql_query(s,
			"SELECT +feed_id, count(*) FROM entries WHERE id > ?1 AND id <= ?2 AND seen_ms >= ?3"
			" GROUP BY +feed_id",
			SQL_V(SQL_INT(first_id), SQL_INT(sure_id), SQL_INT(since_ms)), entry_count_row, &c, err);
	return rc ? rc :
		    sql_query(s, "SELECT feed_id, count(*) FROM entries WHERE id > ?1 GROUP BY feed_id",
			    SQL_V(SQL_INT(sure_id)), entry_count_row, &c, err);
}
