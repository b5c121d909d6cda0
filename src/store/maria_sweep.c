/* SPDX-License-Identifier: ISC */
/*
 * The index of words forgets entries that are gone.
 *
 * Who removes entries (retention, or a feed that goes) notes their numbers in `gone`. When these have become an eighth
 * of what there is, upkeep goes through all rows of `words`, some hundred at a time, and takes those numbers out; a
 * row that names nobody any more goes. So a removed entry costs the same share of a walk, however large the index, and
 * dead numbers are never more than about an eighth of it. What a search finds does not depend on it: it shows entries
 * that are there.
 *
 * One connection walks at a time (a named lock), and remembers itself how far it came: when it ends, the next one
 * begins anew. Rows that others add meanwhile are not its business, for numbers are not used again. Except by a copy,
 * which brings a removed feed back with the numbers it had: so what is taken out is looked for in `entries` first.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "store/maria.h"

#define SHARE 8          /* one in so many is gone: time for a walk */
#define LOOK_MS 60000    /* whether it is */
#define ROWS 1000        /* in one step */
#define GONE_MAX 4000000 /* numbers that one walk takes out: 32 MB */

struct row { /* of words, with somebody in it who is gone */
	struct fw_str word;
	int64_t step;
	struct mr_ids ids;
};

struct walk {
	struct mr_sweep next; /* where this step ends; its ids are those of the connection */
	struct fw_arena arena;
	struct row *row;
	size_t row_n, read_n;
	struct mr_ids dead;   /* who is in these rows */
};

static bool has(const struct mr_ids *ids, int64_t id)
{
	return ids->n && bsearch(&id, ids->at, ids->n, sizeof(id), mr_by_number);
}

static void rows_finish(struct walk *w)
{
	for (size_t i = 0; i < w->row_n; i++)
		free(w->row[i].ids.at);
	free(w->dead.at);
	w->dead = (struct mr_ids){0};
	w->row_n = w->read_n = 0;
	fw_arena_reset(&w->arena, 1 << 20);
}

static int row_read(struct maria *m, struct walk *w, const struct mr_res *r, struct fw_err *err)
{
	struct row *row = &w->row[w->row_n];
	size_t dead = w->dead.n;
	int rc;

	*row = (struct row){.step = mr_int(r, 1)};
	w->row_n++;
	rc = mr_list_read(m, mr_str(r, 2), &row->ids, err);
	for (size_t i = 0; i < row->ids.n && !rc; i++) {
		if (has(&m->sweep.gone, row->ids.at[i]))
			rc = mr_ids_add(m, &w->dead, row->ids.at[i], err);
	}
	if (rc)
		return rc;
	if (w->dead.n == dead) {
		free(row->ids.at);
		w->row_n--;
		return 0;
	}
	row->word = fw_arena_str(&w->arena, mr_str(r, 0));
	return row->word.p ? 0 : mr_no_memory(m, err);
}

static int rows_read(struct maria *m, struct walk *w, struct fw_err *err)
{
	struct fw_str word = {m->sweep.word, m->sweep.word_len};
	struct mr_res r;
	int rc = mr_ask(m, &r, err, "SELECT word, step, entries FROM words WHERE word >= ? AND (word > ? OR step > ?) ORDER BY word, step"
		" LIMIT ?", "bbii", word, word, m->sweep.step, MR_INT(ROWS));

	for (; !rc && mr_row(&r); w->read_n++) {
		word = mr_str(&r, 0);
		w->next.word_len = FW_MIN(word.len, sizeof(w->next.word));
		memcpy(w->next.word, word.p, w->next.word_len);
		w->next.step = mr_int(&r, 1);
		rc = row_read(m, w, &r, err);
	}
	mr_done(&r);
	return rc;
}

/* Of those that are to be taken out: who is there again. */
static int alive_read(struct maria *m, struct walk *w, struct mr_ids *alive, struct fw_err *err)
{
	int rc;

	if (!w->dead.n)
		return 0;
	mr_ids_once(&w->dead);
	mr_put(m, "SELECT id FROM entries WHERE ", "");
	mr_in(m, "id", w->dead.at, w->dead.n);
	fw_buf_adds(&m->sql, " ORDER BY id");
	rc = mr_ids_read(m, alive, err);
	return rc;
}

static void rows_write(struct maria *m, const struct walk *w, const struct mr_ids *alive)
{
	struct mr_rows left = {"REPLACE INTO words (word, step, entries) VALUES "};
	struct fw_buf list = FW_BUF_INIT(0);

	for (int pass = 0; pass < 2; pass++) { /* those that stay in one statement */
		for (size_t i = 0; i < w->row_n; i++) {
			const struct row *row = &w->row[i];
			int64_t last = 0;

			fw_buf_reset(&list);
			for (size_t k = 0; k < row->ids.n; k++) {
				int64_t id = row->ids.at[k];

				if (!has(&w->dead, id) || has(alive, id))
					mr_list_add(&list, &last, id);
			}
			if (pass == 0 && list.len)
				mr_rows_add(m, &left, "bib", row->word, row->step, fw_buf_str(&list));
			else if (pass == 1 && !list.len)
				mr_put(m, "DELETE FROM words WHERE word = ? AND step = ?", "bi", row->word, row->step);
		}
		mr_rows_end(m, &left);
	}
	if (list.rc)
		m->sql.rc = list.rc;
	fw_buf_finish(&list);
}

static void walk_end(struct maria *m)
{
	struct mr_rows off = MR_DELETE("gone", "entry_id");

	for (size_t i = 0; i < m->sweep.gone.n; i++)
		mr_rows_add(m, &off, "i", m->sweep.gone.at[i]);
	mr_rows_end(m, &off);
	mr_put(m, "DELETE FROM reindex WHERE since_ms = ? AND NOT EXISTS (SELECT 1 FROM entries e WHERE e.id = reindex.entry_id)", "i",
		INT64_MAX); /* they were to be indexed again */
}

static int step_in(struct maria *m, void *arg, struct fw_err *err)
{
	struct mr_ids alive = {0};
	struct walk *w = arg;
	int rc;

	rows_finish(w);
	rc = rows_read(m, w, err);
	rc = rc ? rc : alive_read(m, w, &alive, err);
	if (!rc)
		rows_write(m, w, &alive);
	free(alive.at);
	if (!rc && w->read_n < ROWS)
		walk_end(m);
	return rc;
}

void mr_sweep_finish(struct maria *m)
{
	free(m->sweep.gone.at);
	m->sweep = (struct mr_sweep){.look_ms = m->sweep.look_ms};
}

static int step(struct maria *m, struct fw_err *err)
{
	struct walk w = {.row = calloc(ROWS, sizeof(*w.row))};
	bool end;
	int rc;

	if (!w.row)
		return mr_no_memory(m, err);
	fw_arena_init(&w.arena, 0);
	rc = mr_transact(m, step_in, &w, err);
	end = !rc && w.read_n < ROWS;
	if (!rc) {
		w.next.gone = m->sweep.gone;
		w.next.on = true;
		m->sweep = w.next;
	}
	rows_finish(&w);
	free(w.row);
	fw_arena_finish(&w.arena);
	if (!end)
		return rc;
	mr_sweep_finish(m); /* and look at once whether there is more */
	mr_put(m, "DO release_lock('feedwheel words ?')", "i", mr_lock_number(m));
	return mr_flush(m, err);
}

/* A walk begins when it is time, and nobody else walks. */
static int begin(struct maria *m, struct fw_err *err)
{
	int64_t now = fw_mono_ms(), yes;
	int rc;

	if (m->sweep.look_ms && now < m->sweep.look_ms)
		return 0;
	m->sweep.look_ms = now + LOOK_MS;
	rc = mr_number(m, 0, &yes, err, "SELECT (SELECT count(*) FROM gone) * ? > (SELECT coalesce(sum(entry_n), 0) FROM counters)", "i",
		MR_INT(SHARE));
	if (!rc && yes)
		rc = mr_number(m, 0, &yes, err, "SELECT get_lock('feedwheel words ?', 0)", "i", mr_lock_number(m));
	if (rc || !yes)
		return rc;
	mr_put(m, "SELECT entry_id FROM gone ORDER BY entry_id LIMIT ?", "i", MR_INT(GONE_MAX));
	rc = mr_ids_read(m, &m->sweep.gone, err);
	m->sweep.step = -1;
	m->sweep.on = !rc;
	return rc;
}

int mr_sweep(struct maria *m, bool *more, struct fw_err *err)
{
	int rc = m->sweep.on ? 0 : begin(m, err);

	if (!rc && m->sweep.on)
		rc = step(m, err);
	*more = !rc && m->sweep.on;
	return rc;
}
