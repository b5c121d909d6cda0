/* SPDX-License-Identifier: ISC */
/*
 * The search index forgets what is old: words of entries that are gone, and that entries had before
 * they changed.
 *
 * `entries_void` names these entries. When they have become an eighth of what there is, maintenance
 * goes through all rows of `words`, some hundred at a time, and takes out what they void; a row
 * that says nothing any more goes. So a removed entry costs the same share of a walk, however large
 * the index. What a search finds does not depend on it.
 *
 * One connection walks at a time (a named lock), and remembers itself how far it came: when it
 * ends, the next one begins anew. Rows that others add meanwhile are of later steps.
 */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "store/mysql/occurrences.h"
#include "base/banned.h"

#define SHARE 8          /* one in so many is void: time for a walk */
#define LOOK_MS 60000    /* whether it is */
#define ROWS 500         /* in one step */
#define VOID_MAX 2000000 /* entries that one walk takes out: 32 MB */

struct walk {
	struct mysql_db *s;
	struct fw_arena a;
	struct mysql_sweep next; /* where this step ends */
	struct sql_value put[3 * ROWS], drop[2 * ROWS];
	size_t row_n, put_n, drop_n;
	struct fw_buf list;
};

static bool is_void(const struct mysql_sweep *w, int64_t id, int64_t step)
{
	size_t low = 0, high = w->gone_n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (w->gone[mid].entry_id < id)
			low = mid + 1;
		else
			high = mid;
	}
	return low < w->gone_n && w->gone[low].entry_id == id && step < w->gone[low].step;
}

/* Columns: word, step, entries. */
static int word_row(void *ctx, const struct sql_row *row)
{
	struct fw_str word = sql_str(row, 0), list = sql_str(row, 2);
	struct occurrence from = {0}, to = {0};
	struct walk *w = ctx;
	int64_t step = sql_int(row, 1);
	bool any = false;

	w->row_n++;
	w->next.word_len = FW_MIN(word.len, sizeof(w->next.word));
	memcpy(w->next.word, word.p, w->next.word_len);
	w->next.step = step;
	fw_buf_reset(&w->list);
	while (occurrence_get(&list, &from)) {
		if (is_void(&w->s->sweep, from.id, step))
			any = true;
		else
			occurrence_put(&w->list, &to, from.id, from.place);
	}
	if (!any)
		return 0;
	word = fw_arena_str(&w->a, word);
	if (w->list.len) {
		w->put[3 * w->put_n] = SQL_BLOB(word);
		w->put[3 * w->put_n + 1] = SQL_INT(step);
		w->put[3 * w->put_n++ + 2] = SQL_BLOB(fw_arena_str(&w->a, fw_buf_str(&w->list)));
	} else {
		w->drop[2 * w->drop_n] = SQL_BLOB(word);
		w->drop[2 * w->drop_n++ + 1] = SQL_INT(step);
	}
	return w->a.failed || w->list.rc ? FW_ENOMEM : 0;
}

/* What the walk has taken out is done, but for what has become void once more meanwhile. */
static int walk_end(struct mysql_db *s, struct fw_err *err)
{
	static const struct sql_text DONE = {"DELETE FROM entries_void WHERE entry_id = v.entry AND step = v.step", "entry:i step:i"};
	struct sql_value v[2 * ROWS];
	int rc = 0;

	for (size_t at = 0; !rc && at < s->sweep.gone_n; at += ROWS) {
		size_t n = FW_MIN(s->sweep.gone_n - at, (size_t)ROWS);

		for (size_t i = 0; i < n; i++) {
			v[2 * i] = SQL_INT(s->sweep.gone[at + i].entry_id);
			v[2 * i + 1] = SQL_INT(s->sweep.gone[at + i].step);
		}
		rc = sql_each(&s->sql, &DONE, v, 2, n, err);
	}
	return rc;
}

static int step_in(struct walk *w, struct fw_err *err)
{
	static const struct sql_text READ = {"SELECT word, step, entries FROM words WHERE word >= ?1 AND (word > ?1 OR step > ?2)"
		" ORDER BY word, step LIMIT ?3", NULL};
	static const struct sql_text PUT = {"UPDATE words SET entries = v.list WHERE word = v.word AND step = v.step",
		"word:b step:i list:b"};
	static const struct sql_text DROP = {"DELETE FROM words WHERE word = v.word AND step = v.step", "word:b step:i"};
	struct mysql_sweep *sweep = &w->s->sweep;
	struct sql *s = &w->s->sql;
	int rc = sql_ask(s, &READ, (struct sql_value[]){SQL_BLOB(((struct fw_str){sweep->word, sweep->word_len})), SQL_INT(sweep->step),
		SQL_INT(ROWS)}, 3, word_row, w, NULL, err);

	rc = rc ? rc : sql_each(s, &PUT, w->put, 3, w->put_n, err);
	rc = rc ? rc : sql_each(s, &DROP, w->drop, 2, w->drop_n, err);
	if (!rc && w->row_n < ROWS)
		rc = walk_end(w->s, err);
	return rc == FW_ENOMEM ? fw_no_memory(err) : rc;
}

static int step(struct mysql_db *s, struct fw_err *err)
{
	struct walk *w = calloc(1, sizeof(*w));
	int rc = w ? s->sql.dialect->begin(&s->sql, err) : fw_no_memory(err);
	bool end = false;

	if (!rc) {
		w->s = s;
		w->next = s->sweep;
		fw_arena_init(&w->a, 0);
		rc = sql_end(&s->sql, step_in(w, err), err);
		end = !rc && w->row_n < ROWS;
		s->sweep = rc ? s->sweep : w->next;
		fw_arena_finish(&w->a);
		fw_buf_finish(&w->list);
	}
	free(w);
	if (!end)
		return rc;
	free(s->sweep.gone);
	s->sweep = (struct mysql_sweep){.look_ms = s->sweep.look_ms};
	return mysql_unlock(s, "words", err);
}

static int void_row(void *ctx, const struct sql_row *row)
{
	struct mysql_sweep *w = ctx;

	if (w->gone_n == w->gone_cap) {
		size_t cap = w->gone_cap ? w->gone_cap * 2 : 1024;
		struct mysql_void *more = reallocarray(w->gone, cap, sizeof(*more));

		if (!more)
			return FW_ENOMEM;
		w->gone = more;
		w->gone_cap = cap;
	}
	w->gone[w->gone_n++] = (struct mysql_void){sql_int(row, 0), sql_int(row, 1)};
	return 0;
}

/* A walk begins when it is time, and nobody else walks. */
static int begin(struct mysql_db *s, struct fw_err *err)
{
	static const struct sql_text TIME = {"SELECT (SELECT count(*) FROM entries_void) * ?1 > (SELECT coalesce(sum(entry_n), 0) FROM tally)", NULL};
	static const struct sql_text VOID = {"SELECT entry_id, step FROM entries_void ORDER BY entry_id LIMIT ?1", NULL};
	int64_t now = fw_mono_ms(), yes;
	int rc;

	if (s->sweep.look_ms && now < s->sweep.look_ms)
		return 0;
	s->sweep.look_ms = now + LOOK_MS;
	rc = sql_number(&s->sql, &TIME, (struct sql_value[]){SQL_INT(SHARE)}, 1, 0, &yes, err);
	if (!rc && yes)
		rc = mysql_lock(s, "words", 0, &yes, err);
	if (rc || !yes)
		return rc;
	s->sweep.step = -1;
	s->sweep.word_len = 0;
	s->sweep.gone_n = 0;
	rc = sql_ask(&s->sql, &VOID, (struct sql_value[]){SQL_INT(VOID_MAX)}, 1, void_row, &s->sweep, NULL, err);
	s->sweep.on = !rc;
	return rc == FW_ENOMEM ? fw_no_memory(err) : rc;
}

int mysql_sweep(struct mysql_db *s, bool *more, struct fw_err *err)
{
	int rc = s->sweep.on ? 0 : begin(s, err);

	if (!rc && s->sweep.on)
		rc = step(s, err);
	*more = !rc && s->sweep.on;
	return rc;
}
