/* SPDX-License-Identifier: ISC */
#include <assert.h>

#include "base/clock.h"
#include "store/sql/search.h"
#include "query/words.h"

#define STEP_MS 50
#define CATCH_UP_ROWS 2000 /* a search indexes up to this many itself */
#define CATCH_UP_MS 10000

/* ---- a step ---------------------------------------------------------------------------------- */

size_t sql_search_words(struct fw_buf *out, const struct sql_row *row)
{
	size_t from = out->len, title_len;

	query_words_title(out, sql_str(row, 1));
	title_len = out->len - from;
	fw_buf_addc(out, '\n');
	query_words_body(out, sql_str(row, 2), sql_str(row, 3), (int)sql_int(row, 4));
	return title_len;
}

static int search_entry_row(void *ctx, const struct sql_row *row)
{
	struct sql_search_step *p = ctx;
	int rc;

	if (p->full)
		return 0;
	fw_buf_reset(&p->words);
	p->title_len = sql_search_words(&p->words, row);
	p->last_id = sql_int(row, 0);
	rc = p->words.rc ? p->words.rc : p->index->add(p, p->last_id, fw_buf_str(&p->words));
	p->n++;
	p->bytes += p->words.len;
	p->full = p->bytes >= p->index->bytes;
	return rc;
}

/* Entries above `indexed` are skipped here: they are read with the new ones. */
static int search_reindex_row(void *ctx, const struct sql_row *row)
{
	const struct sql_search_step *p = ctx;

	return sql_int(row, 0) > p->indexed ? 0 : search_entry_row(ctx, row);
}

static int search_changed_row(void *ctx, const struct sql_row *row)
{
	struct sql_search_step *p = ctx;

	p->changed[p->changed_n++] = sql_int(row, 0);
	return 0;
}

/*
 * Index changed entries again. If one changes once more meanwhile, its writer lists it once more.
 */
static int search_reindex(struct sql_search_step *p, struct fw_err *err)
{
	struct sql_rows r = SQL_QUERY_ROWS(p->s, err, search_reindex_row, p,
		"SELECT " SQL_SEARCH_COLUMNS " FROM {rows} entries e WHERE e.id = v.spot ORDER BY v.spot", "spot:i");

	r.rc = sql_query(p->s, p->index->changed, SQL_V(SQL_INT(p->index->rows)), search_changed_row, p, err);
	for (size_t i = 0; i < p->changed_n; i++)
		sql_rows_add(&r, SQL_V(SQL_INT(p->changed[i])));
	return sql_rows_end(&r);
}

static int search_step_run(struct sql_search_step *p, bool *more, struct fw_err *err)
{
	int rc = sql_query_int(
		p->s, "SELECT value FROM meta WHERE name = 'indexed_entry_id' {skip}", SQL_NONE, -1, &p->indexed, err);

	if (rc || p->indexed < 0) /* another process is indexing */
		return rc;
	rc = p->index->changed ? search_reindex(p, err) : 0;
	p->again_n = p->n;
	if (!rc && !p->full)
		rc = sql_query(p->s,
			"SELECT " SQL_SEARCH_COLUMNS " FROM entries e WHERE e.id > ?1 ORDER BY e.id LIMIT ?2",
			SQL_V(SQL_INT(p->indexed), SQL_INT(p->index->rows)), search_entry_row, p, err);
	if (!rc && p->index->write)
		rc = p->index->write(p, err);
	if (!rc && p->n > p->again_n)
		rc = sql_exec(p->s, "UPDATE meta SET value = ?1 WHERE name = 'indexed_entry_id'",
			SQL_V(SQL_INT(p->last_id)), err);
	*more = p->n || p->changed_n;
	return rc == FW_ENOMEM ? fw_no_memory(err) : rc;
}

int sql_search_step(
	struct sql_search_step *p, struct sql *s, const struct sql_search_index *index, bool *more, struct fw_err *err)
{
	int rc = s->dialect->begin(s, err);

	assert(index->add && index->rows > 0);
	assert(!index->changed || index->rows <= SQL_SEARCH_ROWS); /* they fit into p->changed */
	*more = false;
	if (rc)
		return rc;
	p->s = s;
	p->index = index;
	p->err = err;
	fw_arena_init(&p->a, 0);
	rc = sql_end(s, search_step_run(p, more, err), err);
	if (index->end)
		index->end(p);
	fw_arena_finish(&p->a);
	fw_buf_finish(&p->words);
	return rc;
}

/* ---- steps ----------------------------------------------------------------------------------- */

int sql_search_pending(struct sql *s, int64_t max, int64_t *n, struct fw_err *err)
{
	return sql_query_int(s,
		"SELECT (SELECT count(*) FROM (SELECT 1 FROM entries WHERE id > " SQL_SEARCH_INDEXED_ID
		" LIMIT ?1) a) + {waiting}",
		SQL_V(SQL_INT(max)), 0, n, err);
}

static int search_steps_run(struct sql *s, sql_search_step_fn *step, int64_t ms, bool *more, struct fw_err *err)
{
	int64_t until_ms = fw_mono_ms() + ms, n = 0;
	int rc;

	do {
		rc = sql_search_pending(s, 1, &n, err);
		*more = !rc && n;
		if (*more)
			rc = step(s, more, err);
	} while (!rc && *more && fw_mono_ms() < until_ms);
	return rc;
}

int sql_search_steps(struct sql *s, sql_search_step_fn *step, bool *more, struct fw_err *err)
{
	return search_steps_run(s, step, STEP_MS, more, err);
}

int sql_search_catch_up(struct sql *s, sql_search_step_fn *step, int64_t *missing, struct fw_err *err)
{
	int64_t n;
	bool more;
	int rc = sql_search_pending(s, CATCH_UP_ROWS + 1, &n, err);

	if (missing)
		*missing = 0;
	if (rc || !n)
		return rc;
	rc = s->read_only || n > CATCH_UP_ROWS ? 0 : search_steps_run(s, step, CATCH_UP_MS, &more, err);
	/* a store that is busy, full or may not be written: search what is indexed */
	if (rc && rc != FW_EAGAIN && rc != FW_EIO && rc != FW_EUNUSABLE)
		return rc;
	return missing ? s->dialect->search_unindexed(s, missing, err) : 0;
}

int sql_search_unindexed(struct sql *s, int64_t *n, struct fw_err *err)
{
	return sql_query_int(s,
		"SELECT (SELECT count(*) FROM entries WHERE id > " SQL_SEARCH_INDEXED_ID
		") + (SELECT count(DISTINCT c.entry_id) FROM entries_changed c JOIN entries e ON e.id = c.entry_id"
		" WHERE e.id <= " SQL_SEARCH_INDEXED_ID ")",
		SQL_NONE, 0, n, err);
}
