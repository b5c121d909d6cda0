/* SPDX-License-Identifier: ISC */
#include "base/clock.h"
#include "store/sql/search.h"
#include "store/words.h"
#include "base/banned.h"

#define STEP_MS 50
#define CATCH_UP_ROWS 2000 /* a search indexes this many by itself */
#define CATCH_UP_MS 10000
#define MARK "(SELECT value FROM numbers WHERE name = 'indexed_entry_id')"

/* ---- a step ---------------------------------------------------------------------------------- */

/* Of each text the first MiB. A character that is cut in the middle by the limit is no matter. */
#define COLUMNS "e.id, left(e.title, 1048576), left(e.summary, 1048576), left(e.content, 1048576), e.content_type"

static int entry_row(void *ctx, const struct sql_row *row)
{
	struct sql_search_step *p = ctx;
	int64_t id = sql_int(row, 0);
	int rc;

	if (p->full)
		return 0;
	fw_buf_reset(&p->words);
	fw_store_words_title(&p->words, sql_str(row, 1));
	fw_buf_addc(&p->words, '\n');
	fw_store_words_body(&p->words, sql_str(row, 2), sql_str(row, 3), (int)sql_int(row, 4));
	rc = p->words.rc ? p->words.rc : p->index->add(p, id, fw_buf_str(&p->words));
	p->id[p->n++] = id;
	p->bytes += p->words.len;
	p->full = p->bytes >= p->index->bytes;
	return rc;
}

/* What is not indexed yet is read with what is new. */
static int again_row(void *ctx, const struct sql_row *row)
{
	const struct sql_search_step *p = ctx;

	return sql_int(row, 0) > p->indexed ? 0 : entry_row(ctx, row);
}

static int changed_row(void *ctx, const struct sql_row *row)
{
	struct sql_search_step *p = ctx;

	p->changed[p->changed_n++] = SQL_INT(sql_int(row, 0));
	return 0;
}

static int step_in(struct sql_search_step *p, bool *more, struct fw_err *err)
{
	static const struct sql_text LOCK = {"SELECT value FROM numbers WHERE name = 'indexed_entry_id' {skip}", NULL};
	static const struct sql_text AGAIN = {
		"SELECT " COLUMNS " FROM {rows} JOIN entries e ON e.id = v.spot ORDER BY v.spot", "spot:i"};
	static const struct sql_text NEXT = {"SELECT " COLUMNS " FROM entries e WHERE e.id > ?1 ORDER BY e.id LIMIT ?2", NULL};
	static const struct sql_text DONE = {"UPDATE numbers SET value = ?1 WHERE name = 'indexed_entry_id'", NULL};
	const struct sql_value rows = SQL_INT(p->index->rows);
	int rc = sql_number(p->s, &LOCK, NULL, 0, -1, &p->indexed, err);

	if (rc || p->indexed < 0) /* another process is at it */
		return rc;
	rc = sql_ask(p->s, p->index->changed, &rows, 1, changed_row, p, NULL, err);
	rc = rc ? rc : sql_ask_each(p->s, &AGAIN, p->changed, 1, p->changed_n, again_row, p, err);
	p->again_n = p->n;
	if (!rc && !p->full)
		rc = sql_ask(p->s, &NEXT, (struct sql_value[]){SQL_INT(p->indexed), rows}, 2, entry_row, p, NULL, err);
	rc = rc ? rc : p->index->write(p, err);
	if (!rc && p->n > p->again_n)
		rc = sql_do(p->s, &DONE, (struct sql_value[]){SQL_INT(p->id[p->n - 1])}, 1, err);
	*more = p->n || p->changed_n;
	return rc == FW_ENOMEM ? fw_no_memory(err) : rc;
}

int sql_search_step(struct sql_search_step *p, struct sql *s, const struct sql_search_index *index, bool *more,
	struct fw_err *err)
{
	int rc = s->dialect->begin(s, err);

	*more = false;
	if (rc)
		return rc;
	p->s = s;
	p->index = index;
	fw_arena_init(&p->a, 0);
	rc = sql_end(s, step_in(p, more, err), err);
	if (index->end)
		index->end(p);
	fw_arena_finish(&p->a);
	fw_buf_finish(&p->words);
	return rc;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* What waits, up to a few more than a search catches up by itself. */
static int behind(struct sql *s, int64_t *n, struct fw_err *err)
{
	static const struct sql_text BEHIND = {"SELECT (SELECT count(*) FROM (SELECT 1 FROM entries WHERE id > " MARK
		" LIMIT ?1) a) + (SELECT count(*) FROM (SELECT 1 FROM entries_changed LIMIT ?1) b)", NULL};

	return sql_number(s, &BEHIND, (struct sql_value[]){SQL_INT(CATCH_UP_ROWS + 1)}, 1, 0, n, err);
}

static int steps(struct sql *s, sql_search_step_fn *step, int64_t ms, bool *more, struct fw_err *err)
{
	int64_t until_ms = fw_mono_ms() + ms, n = 0;
	int rc;

	do {
		rc = behind(s, &n, err);
		*more = !rc && n;
		if (*more)
			rc = step(s, more, err);
	} while (!rc && *more && fw_mono_ms() < until_ms);
	return rc;
}

int sql_search_steps(struct sql *s, sql_search_step_fn *step, bool *more, struct fw_err *err)
{
	return steps(s, step, STEP_MS, more, err);
}

int sql_search_catch_up(struct sql *s, sql_search_step_fn *step, int64_t *missing, struct fw_err *err)
{
	int64_t n;
	bool more;
	int rc = behind(s, &n, err);

	if (missing)
		*missing = 0;
	if (rc || !n)
		return rc;
	rc = s->read_only || n > CATCH_UP_ROWS ? 0 : steps(s, step, CATCH_UP_MS, &more, err);
	if (rc && rc != FW_EAGAIN) /* a busy store, a full disk: what is indexed is searched */
		return rc;
	return missing ? sql_search_unindexed(s, missing, err) : 0;
}

int sql_search_unindexed(struct sql *s, int64_t *n, struct fw_err *err)
{
	static const struct sql_text COUNT = {"SELECT (SELECT count(*) FROM entries WHERE id > " MARK ")"
		" + (SELECT count(DISTINCT c.entry_id) FROM entries_changed c JOIN entries e ON e.id = c.entry_id"
		" WHERE e.id <= " MARK ")", NULL};

	return sql_number(s, &COUNT, NULL, 0, 0, n, err);
}
