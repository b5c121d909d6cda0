/* SPDX-License-Identifier: ISC */
/*
 * Full-text search: entries_fts holds the words of each entry as a tsvector, with a GIN index over it, filled behind the wheel's
 * back.
 *
 * The words are made here and not by the server's parser, which would take "example.com/page" for one word and fold letters as the
 * database's locale says: words.c folds a text, tokens.c cuts it. So every server finds the same, and what SQLite finds. A query goes
 * the same way.
 *
 * meta.indexed_entry_id is the watermark: entries up to it are in the index, but for those in entries_changed: a commit that
 * changes a text deletes its words and puts it there, and the next step reads it again. One process at a time indexes.
 */
#include "base/clock.h"
#include "store/postgres.h"
#include "store/tokens.h"
#include "store/words.h"

#define STEP_MS 50         /* of one upkeep step */
#define STEP_ROWS 300      /* of one statement */
#define STEP_BYTES (4 << 20)
#define CATCH_UP_ROWS 2000 /* a search indexes this many by itself */
#define TEXT_MAX ((size_t)1 << 20) /* of one entry: more is not indexed */
#define VECTOR_MAX ((size_t)900000) /* PostgreSQL takes 1 MiB of words and positions */
#define TALLY_ROWS 1000    /* are folded into one */

/* ---- words ------------------------------------------------------------------------------------------------------------ */

/* A text's words as a tsvector: 'word':1 'other':2 */
static void vector(struct fw_buf *out, struct fw_str text)
{
	size_t start = out->len;
	struct fw_store_token t;

	for (int position = 1; out->len - start < VECTOR_MAX && fw_store_token_next(&text, &t); position++) {
		fw_buf_addc(out, '\'');
		fw_buf_add(out, t.text, t.len);
		fw_buf_addf(out, "':%d ", position);
	}
}

/* One of the user's words or phrases: false when there was nothing in it. */
static bool query_word(struct fw_buf *out, struct fw_str text, bool prefix)
{
	struct fw_store_token t;
	bool any = false;

	while (fw_store_token_next(&text, &t)) {
		fw_buf_adds(out, any ? " <-> '" : "('");
		fw_buf_add(out, t.text, t.len);
		fw_buf_addc(out, '\'');
		any = true;
	}
	if (any)
		fw_buf_adds(out, prefix ? ":*)" : ")");
	return any;
}

bool pg_search_query(struct fw_str words, struct fw_buf *out)
{
	struct fw_buf plain = FW_BUF_INIT(0);
	struct fw_store_word w;
	bool any = false;

	while (fw_store_word_next(&words, &w)) {
		size_t before = out->len;

		fw_buf_reset(&plain);
		fw_store_words(&plain, w.text);
		if (any)
			fw_buf_adds(out, " & ");
		if (plain.rc)
			out->rc = plain.rc;
		else if (query_word(out, fw_buf_str(&plain), w.prefix))
			any = true;
		else
			out->len = before;
	}
	fw_buf_finish(&plain);
	return any || out->rc;
}

/* ---- filling the index -------------------------------------------------------------------------------------------------- */

/* Columns: id, title, summary, content, content_type. */
static void text_of(struct fw_buf *b, const PGresult *r, int row)
{
	struct fw_str content = fw_str_sub(pg_get_str(r, row, 3), 0, TEXT_MAX);

	fw_buf_reset(b);
	fw_store_words(b, fw_str_sub(pg_get_str(r, row, 1), 0, TEXT_MAX));
	fw_buf_addc(b, '\n');
	fw_store_words(b, fw_str_sub(pg_get_str(r, row, 2), 0, TEXT_MAX));
	fw_buf_addc(b, '\n');
	if (pg_get_int(r, row, 4) == FW_TEXT_PLAIN)
		fw_store_words(b, content);
	else
		fw_store_words_html(b, content);
}

/* Queued: the words of these rows. */
static int words_put(struct pg *p, const PGresult *r, struct fw_err *err)
{
	struct fw_buf vectors = FW_BUF_INIT(0);
	int n = PQntuples(r), rc = 0;

	pg_array(p, PG_INT8, (size_t)n);
	for (int i = 0; i < n; i++)
		pg_item_int(p, pg_get_int(r, i, 0));
	pg_array(p, PG_TEXT, (size_t)n);
	for (int i = 0; i < n; i++) {
		text_of(&p->text, r, i);
		fw_buf_reset(&vectors);
		vector(&vectors, fw_buf_str(&p->text));
		if (p->text.rc || vectors.rc)
			rc = fw_err_set(err, FW_ENOMEM, "%s: search index: out of memory", p->name);
		pg_item_str(p, fw_buf_str(&vectors));
	}
	fw_buf_finish(&vectors);
	pg_send(p, PG_INDEX_PUT, "INSERT INTO entries_fts (id, words) SELECT u.id, u.words::tsvector FROM unnest($1::int8[], $2::text[])"
		" u (id, words) JOIN entries e ON e.id = u.id ON CONFLICT (id) DO UPDATE SET words = excluded.words");
	return rc;
}

struct step {
	int64_t deadline_ms, max, n; /* monotonic; rows */
	bool more, busy;
};

#define TEXT_COLUMNS "e.id, e.title, e.summary, e.content, e.content_type"

/* A few of those that changed, then a few of those above the watermark. */
static int step_in(struct pg *p, void *ctx, struct fw_err *err)
{
	struct step *s = ctx;
	int64_t safe, done;
	int rc = pg_safe_id(p, &safe, err), n;

	s->more = s->busy = false;
	if (rc)
		return rc;
	pg_begin_quick(p);
	pg_int(p, pg_lock_number(p, PG_LOCK_INDEX));
	pg_send(p, PG_INDEX_LOCK, "SELECT pg_try_advisory_xact_lock($1::int8), (SELECT value FROM meta WHERE name = 'indexed_entry_id')");
	rc = pg_run(p, err);
	if (rc)
		return rc;
	s->busy = !pg_get_int(p->res[p->res_n - 1], 0, 0);
	if (s->busy)
		return pg_commit_run(p, err);
	pg_int(p, STEP_ROWS);
	pg_send(p, PG_INDEX_TODO, "WITH d AS (DELETE FROM entries_changed WHERE ctid = ANY (ARRAY(SELECT ctid FROM entries_changed"
		" LIMIT $1::int8 FOR UPDATE SKIP LOCKED)) RETURNING entry_id) SELECT DISTINCT ON (e.id) " TEXT_COLUMNS
		" FROM d JOIN entries e ON e.id = d.entry_id");
	pg_send(p, PG_INDEX_MARK, "SELECT value FROM meta WHERE name = 'indexed_entry_id'");
	rc = pg_run(p, err);
	if (rc)
		return rc;
	n = PQntuples(p->res[0]);
	done = pg_get_int(p->res[1], 0, 0);
	s->more = n == STEP_ROWS;
	s->n += n;
	if (n)
		rc = words_put(p, p->res[0], err);
	if (rc)
		return rc;
	pg_int(p, done);
	pg_int(p, safe);
	pg_int(p, STEP_ROWS);
	pg_int(p, STEP_BYTES);
	pg_send(p, PG_INDEX_NEXT, "SELECT " TEXT_COLUMNS " FROM (SELECT id, sum(octet_length(content)) OVER (ORDER BY id ROWS BETWEEN"
		" UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM (SELECT id, content FROM entries WHERE id > $1::int8"
		" AND id <= $2::int8 ORDER BY id LIMIT $3::int8) x) s JOIN entries e ON e.id = s.id WHERE coalesce(s.before, 0) < $4::int8"
		" ORDER BY e.id");
	rc = pg_run(p, err);
	n = rc ? 0 : PQntuples(p->res[p->res_n - 1]);
	s->n += n;
	if (n) {
		done = pg_get_int(p->res[p->res_n - 1], n - 1, 0);
		s->more |= done < safe;
		rc = words_put(p, p->res[p->res_n - 1], err);
		pg_int(p, done);
		pg_send(p, PG_INDEX_DONE, "UPDATE meta SET value = $1::int8 WHERE name = 'indexed_entry_id'");
	}
	return rc ? rc : pg_commit_run(p, err);
}

/* Steps until the time or the number of rows is up; *more: something is left, and it is for us. */
static int steps(struct pg *p, int64_t ms, int64_t max, bool *more, struct fw_err *err)
{
	struct step s = {.deadline_ms = fw_mono_ms() + ms, .more = true};
	int rc = 0;

	while (!rc && s.more && !s.busy && s.n < max && fw_mono_ms() <= s.deadline_ms)
		rc = pg_txn(p, step_in, &s, err);
	*more = !rc && s.more && !s.busy;
	return rc;
}

/* Rows of tally into one. */
static int tally_fold(struct pg *p, void *ctx, struct fw_err *err)
{
	(void)ctx;
	pg_begin_quick(p);
	pg_send(p, PG_TALLY_FOLD, "WITH d AS (DELETE FROM tally RETURNING entry_n) INSERT INTO tally SELECT sum(entry_n) FROM d"
		" HAVING count(*) > 0");
	return pg_commit_run(p, err);
}

/* What waits: changed ones, whether there are new ones, rows of tally. */
static int behind(struct pg *p, int64_t *n, int64_t *tally, struct fw_err *err)
{
	int rc;

	pg_int(p, CATCH_UP_ROWS + 1);
	pg_int(p, TALLY_ROWS + 1);
	pg_send(p, PG_INDEX_BEHIND, "SELECT (SELECT count(*) FROM (SELECT 1 FROM entries WHERE id > (SELECT value FROM meta WHERE"
		" name = 'indexed_entry_id') LIMIT $1::int8) a) + (SELECT count(*) FROM (SELECT 1 FROM entries_changed LIMIT $1::int8) b),"
		" (SELECT count(*) FROM (SELECT 1 FROM tally LIMIT $2::int8) c)");
	rc = pg_run(p, err);
	*n = rc ? 0 : pg_get_int(p->res[0], 0, 0);
	*tally = rc ? 0 : pg_get_int(p->res[0], 0, 1);
	return rc;
}

int pg_upkeep(struct fw_store *st, int64_t now_ms, bool *more, struct fw_err *err)
{
	struct pg *p = pg_of(st);
	int64_t n, tally;
	int rc = behind(p, &n, &tally, err);

	(void)now_ms;
	if (!rc && tally > TALLY_ROWS)
		rc = pg_txn(p, tally_fold, NULL, err);
	return rc || !n ? rc : steps(p, STEP_MS, INT64_MAX, more, err);
}

int pg_search_catch_up(struct pg *p, int64_t *unindexed_n, struct fw_err *err)
{
	int64_t n, tally;
	bool more;
	int rc = behind(p, &n, &tally, err);

	if (rc || !n)
		return rc;
	rc = p->read_only || n > CATCH_UP_ROWS ? 0 : steps(p, 10000, CATCH_UP_ROWS, &more, err);
	if (rc && rc != FW_EAGAIN) /* a busy store, a full disk: search what is indexed */
		return rc;
	if (!unindexed_n)
		return 0;
	pg_send(p, PG_UNINDEXED, "SELECT " PG_UNINDEXED_N);
	rc = pg_run(p, err);
	*unindexed_n = rc ? 0 : pg_get_int(p->res[p->res_n - 1], 0, 0);
	return rc;
}
