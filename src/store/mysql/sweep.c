/* SPDX-License-Identifier: ISC */
/*
 * Removes old words from the search index: words of removed entries, and words that entries had
 * before they changed.
 *
 * In `entries_indexed` these are documents without an entry. When their number exceeds an eighth of
 * the number of entries, maintenance walks through all rows of `words`, some hundred at a time, and
 * removes those documents. A row without documents is deleted. So a removed entry costs the same
 * share of a walk, whatever the size of the index. The results of a search do not depend on the
 * walk.
 *
 * One connection walks at a time, under a named lock, and keeps its position in memory. If it ends,
 * the next walk starts over. Rows that others add meanwhile belong to later steps.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "store/mysql/occurrences.h"

#define SHARE 8          /* a walk is due when there are entries / SHARE documents to remove */
#define CHECK_MS 60000   /* interval between two checks */
#define ROWS 500         /* per step */
#define GONE_MAX 4000000 /* documents per walk: 32 MB */

struct sweep_walk {
	struct mysql_db *s;
	struct fw_arena a;
	struct mysql_sweep next; /* where this step ends */
	struct sql_rows put, drop;
	size_t row_n;
	struct fw_buf list;
};

static int doc_compare(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Columns: word, step, docs. */
static int sweep_word_row(void *ctx, const struct sql_row *row)
{
	struct fw_str word = sql_str(row, 0), list = sql_str(row, 2);
	int64_t step = sql_int(row, 1);
	struct occurrence from = {.doc = step}, to = {.doc = step};
	struct sweep_walk *w = ctx;
	struct fw_str gone = fw_buf_str(&w->s->sweep.gone);
	bool any = false;

	w->row_n++;
	w->next.word_len = FW_MIN(word.len, sizeof(w->next.word));
	if (word.p)
		memcpy(w->next.word, word.p, w->next.word_len);
	w->next.step = step;
	fw_buf_reset(&w->list);
	while (occurrence_get(&list, &from)) {
		if (bsearch(&from.doc, gone.p, gone.len / sizeof(from.doc), sizeof(from.doc), doc_compare))
			any = true;
		else
			occurrence_put(&w->list, &to, from.doc, from.position);
	}
	if (!any)
		return 0;
	word = fw_arena_str(&w->a, word);
	if (w->list.len)
		sql_rows_add(&w->put,
			SQL_V(SQL_BLOB(word), SQL_INT(step), SQL_BLOB(fw_arena_str(&w->a, fw_buf_str(&w->list)))));
	else
		sql_rows_add(&w->drop, SQL_V(SQL_BLOB(word), SQL_INT(step)));
	return w->a.failed || w->list.rc ? FW_ENOMEM : 0;
}

/* Delete the removed documents from entries_indexed. */
static int sweep_finish(struct mysql_db *s, struct fw_err *err)
{
	struct sql_rows r = SQL_ROWS(&s->sql, err, "DELETE FROM entries_indexed WHERE doc = v.gone", "gone:i");
	const int64_t *gone = (const int64_t *)(const void *)s->sweep.gone.p;

	for (size_t i = 0; i < s->sweep.gone.len / sizeof(*gone); i++)
		sql_rows_add(&r, SQL_V(SQL_INT(gone[i])));
	return sql_rows_end(&r);
}

static int sweep_step_in(struct sweep_walk *w, struct fw_err *err)
{
	const struct mysql_sweep *sweep = &w->s->sweep;
	struct sql *s = &w->s->sql;
	int rc;

	w->put = (struct sql_rows)SQL_ROWS(
		s, err, "UPDATE words SET docs = v.list WHERE word = v.word AND step = v.step", "word:b step:i list:b");
	w->drop = (struct sql_rows)SQL_ROWS(
		s, err, "DELETE FROM words WHERE word = v.word AND step = v.step", "word:b step:i");
	w->put.rc = sql_query(s,
		"SELECT word, step, docs FROM words WHERE {behind word|step} ORDER BY word, step LIMIT ?3",
		SQL_V(SQL_BLOB(((struct fw_str){sweep->word, sweep->word_len})), SQL_INT(sweep->step), SQL_INT(ROWS)),
		sweep_word_row, w, err);
	w->drop.rc = sql_rows_end(&w->put);
	rc = sql_rows_end(&w->drop);
	if (!rc && w->row_n < ROWS)
		rc = sweep_finish(w->s, err);
	return rc == FW_ENOMEM ? fw_no_memory(err) : rc;
}

static int sweep_step(struct mysql_db *s, struct fw_err *err)
{
	struct sweep_walk w = {.s = s, .next = s->sweep};
	int rc = s->sql.dialect->begin(&s->sql, err);

	assert(s->sweep.on);
	if (rc)
		return rc;
	fw_arena_init(&w.a, 0);
	rc = sql_end(&s->sql, sweep_step_in(&w, err), err);
	s->sweep = rc ? s->sweep : w.next;
	fw_arena_finish(&w.a);
	fw_buf_finish(&w.list);
	if (rc || w.row_n == ROWS)
		return rc;
	fw_buf_finish(&s->sweep.gone);
	s->sweep = (struct mysql_sweep){.next_check_ms = s->sweep.next_check_ms};
	return mysql_unlock(s, "words", err);
}

static int sweep_doc_row(void *ctx, const struct sql_row *row)
{
	int64_t doc = sql_int(row, 0);

	fw_buf_add(ctx, &doc, sizeof(doc));
	return ((struct fw_buf *)ctx)->rc;
}

/* Starts a walk if one is due and no other connection walks. */
static int sweep_begin(struct mysql_db *s, struct fw_err *err)
{
	int64_t now = fw_mono_ms(), yes;
	int rc;

	assert(!s->sweep.on);
	if (s->sweep.next_check_ms && now < s->sweep.next_check_ms)
		return 0;
	s->sweep.next_check_ms = now + CHECK_MS;
	rc = sql_query_int(&s->sql,
		"SELECT (SELECT count(*) FROM entries_indexed WHERE entry_id IS NULL) * ?1 > (SELECT"
		" {sum entry_n} FROM row_counts)",
		SQL_V(SQL_INT(SHARE)), 0, &yes, err);
	if (!rc && yes)
		rc = mysql_lock(s, "words", 0, &yes, err);
	if (rc || !yes)
		return rc;
	s->sweep.step = -1;
	s->sweep.word_len = 0;
	fw_buf_reset(&s->sweep.gone);
	rc = sql_query(&s->sql, "SELECT doc FROM entries_indexed WHERE entry_id IS NULL ORDER BY doc LIMIT ?1",
		SQL_V(SQL_INT(GONE_MAX)), sweep_doc_row, &s->sweep.gone, err);
	s->sweep.on = !rc;
	return rc == FW_ENOMEM ? fw_no_memory(err) : rc;
}

int mysql_sweep(struct mysql_db *s, bool *more, struct fw_err *err)
{
	int rc = s->sweep.on ? 0 : sweep_begin(s, err);

	if (!rc && s->sweep.on)
		rc = sweep_step(s, err);
	*more = !rc && s->sweep.on;
	return rc;
}
