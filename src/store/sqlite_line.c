/* SPDX-License-Identifier: ISC */
/*
 * Places in line: line.id is a slot of 8 s, then a number that rises.
 *
 * What comes back in one transaction is collected and written in order of the places by a single statement, which reads the rows from
 * fw_puts, a table that exists in this connection only and shows what was collected.
 */
#include <stdlib.h>

#include "store/sqlite.h"

#define SLOT_BITS 13     /* of wake_at_ms: 8.192 s */
#define PLACE_TRIES 1000 /* old places with the same number, one after the other */

struct sq_put { /* a row of the line */
	int64_t id, feed_id, host_id, wake_ms, due_ms, last_kind, http_status, fail_n, crash_n, last_visit_ms, last_ok_ms, last_new_ms,
		last_visit_id, expect_us, expect_dev_us, expect_parts;
	struct fw_str why;
};

/* ---- places ----------------------------------------------------------------------------------------------------------- */

/* The first id of the slot that holds this time. Times are clamped to what fits: 31 bits of slots, years 1970 to 2527. */
static int64_t slot_first(int64_t wake_ms)
{
	int64_t slot = FW_MIN(FW_MAX(wake_ms, 0) >> SLOT_BITS, INT32_MAX);

	return slot << 32;
}

int64_t sq_slot_last(int64_t wake_ms)
{
	return slot_first(wake_ms) | SQ_NUMBER_MASK;
}

/* A place for a feed that wakes then; it may be taken: the number is cut to 32 bits, and after some billions an old one is the same. */
static int place_new(struct sqlite *s, int64_t wake_ms, int64_t *id, struct fw_err *err)
{
	int64_t number;
	int rc = sq_number(s, &number, err);

	*id = slot_first(wake_ms) | (number & SQ_NUMBER_MASK);
	return rc;
}

static int no_place(struct sqlite *s, int64_t feed_id, struct fw_err *err)
{
	return fw_err_set(err, FW_EIO, "%s: no place in line for feed %lld: `feedwheel doctor` finds out more", s->path, (long long)feed_id);
}

/* ---- fw_puts ---------------------------------------------------------------------------------------------------------- */

#define LINE_COLUMNS "id, feed_id, host_id, wake_at_ms, " SQ_STATE
#define AT(member) offsetof(struct sq_put, member)
static const size_t number_at[] = {AT(id), AT(feed_id), AT(host_id), AT(wake_ms), AT(due_ms), AT(last_kind), AT(http_status), AT(fail_n),
	AT(crash_n), AT(last_visit_ms), AT(last_ok_ms), AT(last_new_ms), AT(last_visit_id), AT(expect_us), AT(expect_dev_us), AT(why),
	AT(expect_parts)}; /* of these columns; all but `why` are numbers */
enum { WAKE_COLUMN = 3, WHY_COLUMN = 15 };

struct puts { /* the table */
	sqlite3_vtab base;
	struct sqlite *s;
};
struct puts_at {
	sqlite3_vtab_cursor base;
	size_t at;
};

static const struct sq_puts *puts_of(const sqlite3_vtab_cursor *cur)
{
	return &((struct puts *)(void *)cur->pVtab)->s->puts;
}

static int puts_connect(sqlite3 *db, void *s, int argc, const char *const *argv, sqlite3_vtab **out, char **words)
{
	struct puts *t;
	int rc = sqlite3_declare_vtab(db, "CREATE TABLE fw_puts (" LINE_COLUMNS ")");

	(void)argc;
	(void)argv;
	(void)words;
	if (rc != SQLITE_OK)
		return rc;
	t = sqlite3_malloc(sizeof(*t));
	if (!t)
		return SQLITE_NOMEM;
	*t = (struct puts){.s = s};
	*out = &t->base;
	return sqlite3_vtab_config(db, SQLITE_VTAB_DIRECTONLY);
}

static int puts_disconnect(sqlite3_vtab *t)
{
	sqlite3_free(t);
	return SQLITE_OK;
}

static int puts_plan(sqlite3_vtab *t, sqlite3_index_info *info)
{
	(void)t;
	info->estimatedCost = 1000;
	return SQLITE_OK;
}

static int puts_open(sqlite3_vtab *t, sqlite3_vtab_cursor **out)
{
	struct puts_at *c = sqlite3_malloc(sizeof(*c));

	(void)t;
	if (!c)
		return SQLITE_NOMEM;
	*c = (struct puts_at){0};
	*out = &c->base;
	return SQLITE_OK;
}

static int puts_close(sqlite3_vtab_cursor *cur)
{
	sqlite3_free(cur);
	return SQLITE_OK;
}

static int puts_first(sqlite3_vtab_cursor *cur, int index, const char *words, int argc, sqlite3_value **argv)
{
	(void)index;
	(void)words;
	(void)argc;
	(void)argv;
	((struct puts_at *)(void *)cur)->at = puts_of(cur)->from;
	return SQLITE_OK;
}

static int puts_next(sqlite3_vtab_cursor *cur)
{
	((struct puts_at *)(void *)cur)->at++;
	return SQLITE_OK;
}

static int puts_end(sqlite3_vtab_cursor *cur)
{
	return ((struct puts_at *)(void *)cur)->at >= puts_of(cur)->to;
}

static struct sq_put *put_at(const struct sq_puts *w, size_t i)
{
	return &w->put[w->order[i][1]];
}

static int puts_column(sqlite3_vtab_cursor *cur, sqlite3_context *ctx, int i)
{
	const struct sq_put *p = put_at(puts_of(cur), ((struct puts_at *)(void *)cur)->at);
	int64_t v;

	if (i == WHY_COLUMN) {
		sqlite3_result_text64(ctx, p->why.p, p->why.len, SQLITE_STATIC, SQLITE_UTF8);
		return SQLITE_OK;
	}
	memcpy(&v, (const char *)p + number_at[i], sizeof(v));
	if (i != WAKE_COLUMN || v != FW_NO_DATE)
		sqlite3_result_int64(ctx, v);
	return SQLITE_OK; /* what is not set is NULL */
}

static int puts_rowid(sqlite3_vtab_cursor *cur, sqlite3_int64 *id)
{
	*id = (sqlite3_int64)((struct puts_at *)(void *)cur)->at;
	return SQLITE_OK;
}

int sq_line_setup(struct sqlite *s, struct fw_err *err)
{
	static const sqlite3_module fw_puts = {.xConnect = puts_connect, .xDisconnect = puts_disconnect, .xBestIndex = puts_plan,
		.xOpen = puts_open, .xClose = puts_close, .xFilter = puts_first, .xNext = puts_next, .xEof = puts_end, .xColumn = puts_column,
		.xRowid = puts_rowid};

	return sqlite3_create_module(s->db, "fw_puts", &fw_puts, s) == SQLITE_OK ? 0 : sq_error(s, "opening", err);
}

/* ---- into line -------------------------------------------------------------------------------------------------------- */

static bool grow(struct sq_puts *w)
{
	size_t cap = w->cap ? w->cap * 2 : 64;
	struct sq_put *put = reallocarray(w->put, cap, sizeof(*put));
	int64_t (*order)[2];

	w->put = put ? put : w->put;
	order = put ? reallocarray(w->order, cap, sizeof(*order)) : NULL;
	w->order = order ? order : w->order;
	w->cap = order ? cap : w->cap;
	return order != NULL;
}

int sq_line_add(struct sqlite *s, const struct fw_feed *f, int64_t host_id, int64_t wake_ms, int64_t last_visit_id, struct fw_err *err)
{
	struct sq_puts *w = &s->puts;
	int64_t id;
	int rc = place_new(s, wake_ms == FW_NO_DATE ? f->due_at_ms : wake_ms, &id, err);

	if (rc)
		return rc;
	if (w->n == w->cap && !grow(w))
		return fw_err_set(err, FW_ENOMEM, "%s: no memory for the line", s->path);
	w->order[w->n][0] = id;
	w->order[w->n][1] = (int64_t)w->n;
	w->put[w->n++] = (struct sq_put){.id = id, .feed_id = f->id, .host_id = host_id, .wake_ms = wake_ms, .due_ms = f->due_at_ms,
		.last_kind = f->last_kind, .http_status = f->http_status, .fail_n = f->fail_n, .crash_n = f->crash_n,
		.last_visit_ms = f->last_visit_ms, .last_ok_ms = f->last_ok_ms, .last_new_ms = f->last_new_ms, .last_visit_id = last_visit_id,
		.expect_us = f->expect_us, .expect_dev_us = f->expect_dev_us, .expect_parts = f->expect_parts, .why = f->why};
	return 0;
}

/* The rows from..to - 1; *n: how many places were free. */
static int puts_write(struct sqlite *s, size_t from, size_t to, size_t *n, struct fw_err *err)
{
	int rc;

	s->puts.from = from;
	s->puts.to = to;
	rc = sq_do(s, SQ_LINE_PUTS, "INSERT OR IGNORE INTO line (" LINE_COLUMNS ") SELECT " LINE_COLUMNS " FROM fw_puts", err, "");
	*n = rc ? 0 : (size_t)sqlite3_changes(s->db);
	return rc;
}

/* A place that may be taken by another feed: look, and if so take the next one that is free. */
static int put_again(struct sqlite *s, size_t i, struct fw_err *err)
{
	struct sq_put *p = put_at(&s->puts, i);
	sqlite3_stmt *q = sq_ask(s, SQ_LINE_FEED, "SELECT feed_id FROM line WHERE id = ?", err, "i", p->id);
	int rc = q ? sq_row(s, q, err) : err->rc;
	bool mine;

	if (rc < 0)
		return rc;
	mine = rc > 0 && sqlite3_column_int64(q, 0) == p->feed_id;
	if (rc > 0)
		sqlite3_reset(q);
	for (int k = 0; k < PLACE_TRIES && !mine; k++) {
		size_t n;

		rc = place_new(s, p->wake_ms == FW_NO_DATE ? p->due_ms : p->wake_ms, &p->id, err);
		rc = rc ? rc : puts_write(s, i, i + 1, &n, err);
		if (rc)
			return rc;
		mine = n > 0;
	}
	return mine ? 0 : no_place(s, p->feed_id, err);
}

int sq_line_write(struct sqlite *s, struct fw_err *err)
{
	size_t n = s->puts.n, done = 0;
	int rc;

	if (!n)
		return 0;
	rc = sq_sort(s->puts.order, n) ? 0 : fw_err_set(err, FW_ENOMEM, "%s: no memory for the line", s->path);
	rc = rc ? rc : puts_write(s, 0, n, &done, err);
	for (size_t i = 0; i < n && done < n && !rc; i++)
		rc = put_again(s, i, err);
	for (size_t i = 0; i < n && !rc; i++)
		sq_place_note(s, put_at(&s->puts, i)->feed_id, put_at(&s->puts, i)->id);
	s->puts.n = 0;
	return rc;
}

int sq_line_from(struct sqlite *s, enum sq_table from, int64_t key, int64_t feed_id, int64_t host_id, int64_t due_ms, int64_t wake_ms,
	struct fw_err *err)
{
	for (int i = 0; i < PLACE_TRIES; i++) {
		int64_t id;
		int rc = place_new(s, wake_ms == FW_NO_DATE ? due_ms : wake_ms, &id, err);

		rc = rc ? rc : from == SQ_ASIDE ?
			sq_do(s, SQ_LINE_FROM_ASIDE, "INSERT OR IGNORE INTO line (id, feed_id, host_id, wake_at_ms, " SQ_STATE ") SELECT ?, feed_id,"
				" ?, ?, " SQ_STATE " FROM aside WHERE feed_id = ?", err, "iidi", id, host_id, wake_ms, key) :
			sq_do(s, SQ_LINE_FROM_LEASE, "INSERT OR IGNORE INTO line (id, feed_id, host_id, wake_at_ms, " SQ_STATE ") SELECT ?, feed_id,"
				" ?, ?, " SQ_STATE " FROM leases WHERE fence = ?", err, "iidi", id, host_id, wake_ms, key);
		if (rc)
			return rc;
		if (sqlite3_changes(s->db)) {
			sq_place_note(s, feed_id, id);
			return 0;
		}
	}
	return no_place(s, feed_id, err);
}
