/* SPDX-License-Identifier: ISC */
/* Lists of entries: by id, by date, of one feed, of a search. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "store/fields.h"
#include "store/sql/core.h"
#include "base/banned.h"

int sql_entry_id_seen_before(struct sql *s, int64_t before_ms, int64_t *id, struct fw_err *err)
{
	return sql_id_before(s, "SELECT max(id) FROM entries",
		"SELECT id, seen_ms FROM entries WHERE id >= ?1 ORDER BY id LIMIT 1", before_ms, id, err);
}

/*
 * A list is read in pages: first ids and dates in order, then the rows in portions. So a sort
 * carries two numbers per entry, whatever its size, and client libraries that buffer a result
 * buffer little.
 */
#define PAGE_MAX 20000
#define SHOWN_MAX 200
#define SHOWN_WHOLE_MAX 20 /* rows with content */

/* By the index on feed_id. Through entry_keys some plans would join row by row. */
#define OF_FEED "e.feed_id = ?1"

/*
 * ?1: feed; ?2, ?3: ids, exclusive; ?4: first seen at or after; ?5: LIMIT; ?6, ?7: after that date
 * and id. A + before a column keeps SQLite from an index that would read most of the table.
 */
#define BETWEEN(id) " AND " id " > ?2 AND " id " < ?3 AND e.seen_ms >= ?4"
#define BEHIND " AND e.date_ms <= ?6 AND (e.date_ms < ?6 OR e.id < ?7)"
#define IDS "SELECT e.id, e.date_ms FROM entries e WHERE "

#define BY_DATE " ORDER BY e.date_ms DESC, e.id DESC LIMIT ?5"
#define FOUND(feed) IDS "{found}" BETWEEN("+e.id") " AND (" feed " = 0 OR e.feed_id = " feed ")"

enum { ALL_BY_ID, FEED_BY_ID, ALL_BY_DATE, SOME_BY_DATE, FEED_BY_DATE, FOUND_BY_ID, FOUND_BY_DATE };
static const char *const ENTRY_PAGE[] = {
	[ALL_BY_ID] = IDS "(?1 = 0 OR e.feed_id = ?1)" BETWEEN("e.id") " ORDER BY e.id LIMIT ?5",
	[FEED_BY_ID] = IDS OF_FEED BETWEEN("+e.id") " ORDER BY +e.id LIMIT ?5",
	[ALL_BY_DATE] = IDS "?1 = 0" BETWEEN("+e.id") BEHIND BY_DATE,
	[SOME_BY_DATE] = IDS "?1 = 0" BETWEEN("e.id") BEHIND " ORDER BY +e.date_ms DESC, e.id DESC LIMIT ?5",
	[FEED_BY_DATE] = IDS OF_FEED BETWEEN("+e.id") BEHIND BY_DATE,
	[FOUND_BY_ID] = FOUND("?6") " ORDER BY +e.id LIMIT ?5",
	[FOUND_BY_DATE] = FOUND("?8") BEHIND " ORDER BY +e.date_ms DESC, e.id DESC LIMIT ?5",
};

/* clang-format off */
#define SHOW(key, base, content) {"SELECT e.id, e.feed_id, coalesce(nullif(f.user_title, ''), f.title), f.url, " key \
	", e.seen_ms, e.changed_ms, e.revision, e.published_ms, e.updated_ms, e.content_type, " \
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

struct entry_page {
	struct page_key *at;
	size_t n, max;
};

struct entry_listing {
	struct sql *s;
	const struct fw_entry_query *q;
	fw_entry_cb *cb;
	void *ctx;
	const char *text; /* the statement that reads a page */
	bool by_id, search;
	struct fw_buf words;
	int64_t after_id, before_id, behind_ms, behind_id;
	struct entry_page entry_page;
};

static int entry_page_row(void *ctx, const struct sql_row *row)
{
	struct entry_page *p = ctx;

	if (p->n < p->max) {
		p->at[p->n].id = sql_int(row, 0);
		p->at[p->n++].date_ms = sql_int(row, 1);
	}
	return 0;
}

static int entry_page_read(struct entry_listing *l, struct fw_err *err)
{
	const struct fw_entry_query *q = l->q;
	struct sql_value v[8] = {SQL_INT(q->feed_id), SQL_INT(l->after_id), SQL_INT(l->before_id),
		SQL_INT(q->since_ms ? q->since_ms : INT64_MIN), SQL_INT(l->entry_page.max)};
	size_t n = 5;

	if (l->search)
		v[0] = SQL_TEXT(fw_buf_str(&l->words));
	if (!l->by_id) {
		v[n++] = SQL_INT(l->behind_ms);
		v[n++] = SQL_INT(l->behind_id);
	}
	if (l->search)
		v[n++] = SQL_INT(q->feed_id);
	l->entry_page.n = 0;
	return sql_query(l->s, l->text, v, n, entry_page_row, &l->entry_page, err);
}

static int entry_list_row(void *ctx, const struct sql_row *row)
{
	const struct entry_listing *l = ctx;
	struct fw_entry_row e = {.id = sql_int(row, 0),
		.feed_id = sql_int(row, 1),
		.feed_title = sql_str(row, 2),
		.feed_url = sql_str(row, 3)};
	struct fw_str key = sql_str(row, 4);

	if (key.p)
		memcpy(e.key, key.p, FW_MIN(key.len, sizeof(e.key)));
	e.hash = (uint64_t)sql_int(row, 5);
	sql_fields_set("entry", &e, row, 6);
	return l->cb(l->ctx, &e);
}

static int entry_page_show(struct entry_listing *l, struct fw_err *err)
{
	size_t step = l->q->content ? SHOWN_WHOLE_MAX : SHOWN_MAX;
	int rc = 0;

	for (size_t i = 0; !rc && i < l->entry_page.n; i += step) {
		struct sql_rows r = {.s = l->s,
			.err = err,
			.fn = entry_list_row,
			.ctx = l,
			.text = ENTRY_SHOW[l->q->key][l->q->content]};

		for (size_t k = i; k < i + step && k < l->entry_page.n; k++)
			sql_rows_add(&r, SQL_V(SQL_INT(k), SQL_INT(l->entry_page.at[k].id)));
		rc = sql_rows_end(&r);
	}
	return rc;
}

static int entry_pages_show(struct entry_listing *l, struct fw_err *err)
{
	size_t left = l->q->limit ? l->q->limit : SIZE_MAX;
	int rc = 0;

	l->entry_page.at = calloc(FW_MIN(left, PAGE_MAX), sizeof(*l->entry_page.at));
	if (!l->entry_page.at)
		return fw_no_memory(err);
	do {
		l->entry_page.max = FW_MIN(left, PAGE_MAX);
		rc = entry_page_read(l, err);
		assert(l->entry_page.n <= l->entry_page.max);
		rc = rc ? rc : entry_page_show(l, err);
		if (rc || !l->entry_page.n)
			break;
		left -= l->entry_page.n;
		if (l->by_id)
			l->after_id = l->entry_page.at[l->entry_page.n - 1].id;
		l->behind_id = l->entry_page.at[l->entry_page.n - 1].id;
		l->behind_ms = l->entry_page.at[l->entry_page.n - 1].date_ms;
	} while (left && l->entry_page.n == l->entry_page.max);
	free(l->entry_page.at);
	return rc;
}

static int entry_list_prepare(struct entry_listing *l, struct fw_err *err)
{
	const struct fw_entry_query *q = l->q;
	int64_t since_id = 0;
	int rc = q->since_ms ? sql_entry_id_seen_before(l->s, q->since_ms - SQL_SEEN_SLACK_MS, &since_id, err) : 0;

	l->after_id = FW_MAX(q->after_id, since_id);
	l->before_id = q->before_id ? q->before_id : INT64_MAX;
	l->behind_id = q->behind_id ? q->behind_id : INT64_MAX;
	l->behind_ms = q->behind_id ? q->behind_date_ms : INT64_MAX;
	l->by_id = q->oldest_first || fw_store_entry_query_is_one(q);
	if (fw_store_entry_query_is_one(q) || (q->oldest_first && !q->feed_id))
		l->text = ENTRY_PAGE[ALL_BY_ID];
	else if (q->feed_id)
		l->text = ENTRY_PAGE[q->oldest_first ? FEED_BY_ID : FEED_BY_DATE];
	else
		l->text = ENTRY_PAGE[q->since_ms || q->after_id ? SOME_BY_DATE : ALL_BY_DATE];
	if (!rc && q->search.p)
		rc = l->s->dialect->search_begin(l->s, q->search, &l->search, &l->words, q->unindexed_n, err);
	if (l->search) /* a search without a word lists all entries */
		l->text = ENTRY_PAGE[l->by_id ? FOUND_BY_ID : FOUND_BY_DATE];
	return !rc && l->words.rc ? fw_no_memory(err) : rc;
}

int sql_entry_list(struct store *st, const struct fw_entry_query *q, fw_entry_cb *cb, void *ctx, struct fw_err *err)
{
	struct entry_listing l = {.s = sql_of(st), .q = q, .cb = cb, .ctx = ctx, .words = FW_BUF_INIT(0)};
	int rc = entry_list_prepare(&l, err);

	rc = rc ? rc : entry_pages_show(&l, err);
	fw_buf_finish(&l.words);
	return rc;
}
