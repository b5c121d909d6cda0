/* SPDX-License-Identifier: ISC */
/*
 * Full-text search: entries_fts holds the words of each entry as a tsvector, with a GIN index over
 * it.
 *
 * The words are made here and not by the server's parser, which would take "example.com/page" for
 * one word and fold letters as the database's locale says: words.c folds a text, tokens.c cuts it.
 * So all engines find the same. A query goes the same way.
 *
 * Entries up to the number `indexed_entry_id` are in the index, but for those in entries_changed: a
 * commit that changes one removes its words and notes it there, and the next step reads it again.
 * One process at a time fills the index.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "store/driver.h"
#include "store/postgres/postgres.h"
#include "store/tokens.h"
#include "store/words.h"
#include "base/banned.h"

#define STEP_MS 50
#define STEP_ROWS 100              /* of one transaction */
#define CATCH_UP_ROWS 2000         /* a search indexes this many by itself */
#define CATCH_UP_MS 10000
#define TEXT_MAX ((size_t)1 << 20) /* of one entry: more is not indexed */
#define VECTOR_MAX ((size_t)900000) /* PostgreSQL takes 1 MiB of words and positions */
#define LOCK_INDEX 2

const char *const postgres_search_tables[] = {
	"CREATE TABLE entries_fts (id int8 PRIMARY KEY, words tsvector NOT NULL)",
	"CREATE INDEX entries_fts_words ON entries_fts USING gin (words)",
	"CREATE TABLE entries_changed (entry_id int8 NOT NULL)",
	NULL,
};

/* ---- words ----------------------------------------------------------------------------------- */

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

static bool query(struct fw_str words, struct fw_buf *out)
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
	return any;
}

/* ---- filling the index ----------------------------------------------------------------------- */

int postgres_search_changed(struct sql *s, int64_t entry_id, enum sql_entry_change what, struct fw_err *err)
{
	static const struct sql_text FORGET = {"DELETE FROM entries_fts WHERE id = ?1", NULL};
	static const struct sql_text AGAIN = {"INSERT INTO entries_changed (entry_id) VALUES (?1)", NULL};
	struct sql_value id = SQL_INT(entry_id);

	if (what == SQL_ENTRY_CHANGES)
		return 0;
	return sql_do(s, what == SQL_ENTRY_GOES ? &FORGET : &AGAIN, &id, 1, err);
}

struct step {
	struct sql_value put[2 * STEP_ROWS];  /* id and words */
	struct sql_value changed[STEP_ROWS];
	size_t n, changed_n;
	int64_t last_id;
	struct fw_arena a;
	struct fw_buf text, words;
};

/* Columns: id, title, summary, content, content_type. */
static int entry_row(void *ctx, const struct sql_row *row)
{
	struct step *p = ctx;
	struct fw_str content = fw_str_sub(sql_str(row, 3), 0, TEXT_MAX);

	fw_buf_reset(&p->text);
	fw_buf_reset(&p->words);
	fw_store_words(&p->text, fw_str_sub(sql_str(row, 1), 0, TEXT_MAX));
	fw_buf_addc(&p->text, '\n');
	fw_store_words(&p->text, fw_str_sub(sql_str(row, 2), 0, TEXT_MAX));
	fw_buf_addc(&p->text, '\n');
	if (sql_int(row, 4) == FW_TEXT_PLAIN)
		fw_store_words(&p->text, content);
	else
		fw_store_words_html(&p->text, content);
	vector(&p->words, fw_buf_str(&p->text));
	p->last_id = FW_MAX(p->last_id, sql_int(row, 0));
	p->put[2 * p->n] = SQL_INT(sql_int(row, 0));
	p->put[2 * p->n++ + 1] = SQL_TEXT(fw_arena_str(&p->a, p->words.len ? fw_buf_str(&p->words) : FW_STR("")));
	return p->a.failed || p->text.rc || p->words.rc ? FW_ENOMEM : 0;
}

static int changed_row(void *ctx, const struct sql_row *row)
{
	struct step *p = ctx;

	p->changed[p->changed_n++] = SQL_INT(sql_int(row, 0));
	return 0;
}

#define COLUMNS "e.id, e.title, e.summary, e.content, e.content_type"

static int words_put(struct sql *s, struct step *p, struct fw_err *err)
{
	static const struct sql_text PUT = {"INSERT INTO entries_fts (id, words) SELECT v.id, v.words::tsvector FROM "
					    "{rows} JOIN entries e ON e.id = v.id"
					    " ON CONFLICT (id) DO UPDATE SET words = excluded.words",
		"id:i words:t"};
	int rc = sql_each(s, &PUT, p->put, 2, p->n, err);

	p->n = 0;
	return rc;
}

/* A few of those that changed, then a few of those that are new. */
static int step_in(struct sql *s, struct step *p, bool *more, struct fw_err *err)
{
	static const struct sql_text LOCK = {"SELECT pg_try_advisory_xact_lock(?1)::int", NULL};
	static const struct sql_text CHANGED = {"DELETE FROM entries_changed WHERE ctid = ANY (ARRAY(SELECT ctid FROM "
						"entries_changed LIMIT ?1 FOR UPDATE SKIP LOCKED)) RETURNING entry_id",
		NULL};
	static const struct sql_text AGAIN = {
		"SELECT DISTINCT ON (e.id) " COLUMNS " FROM {rows} JOIN entries e ON e.id = v.id", "id:i"};
	static const struct sql_text NEXT = {"SELECT " COLUMNS
					     " FROM entries e WHERE e.id > (SELECT value FROM numbers WHERE name = "
					     "'indexed_entry_id') ORDER BY e.id LIMIT ?1",
		NULL};
	static const struct sql_text DONE = {"UPDATE numbers SET value = ?1 WHERE name = 'indexed_entry_id'", NULL};
	struct postgres_db *db = postgres_db(s);
	int64_t key = (int64_t)(fw_hash64(db->schema, strlen(db->schema)) >> 8 << 4 | LOCK_INDEX), got;
	size_t n;
	int rc = sql_number(s, &LOCK, (struct sql_value[]){SQL_INT(key)}, 1, 0, &got, err);

	*more = false;
	if (rc || !got)
		return rc;
	rc = sql_ask(s, &CHANGED, (struct sql_value[]){SQL_INT(STEP_ROWS)}, 1, changed_row, p, NULL, err);
	if (!rc && p->changed_n)
		rc = sql_ask_each(s, &AGAIN, p->changed, 1, p->changed_n, entry_row, p, err);
	rc = rc ? rc : words_put(s, p, err);
	p->last_id = 0;
	rc = rc ? rc : sql_ask(s, &NEXT, (struct sql_value[]){SQL_INT(STEP_ROWS)}, 1, entry_row, p, NULL, err);
	n = p->n;
	rc = rc ? rc : words_put(s, p, err);
	if (!rc && n)
		rc = sql_do(s, &DONE, (struct sql_value[]){SQL_INT(p->last_id)}, 1, err);
	*more = n == STEP_ROWS || p->changed_n == STEP_ROWS;
	return rc == FW_ENOMEM ? fw_no_memory(err) : rc;
}

static int step(struct sql *s, bool *more, struct fw_err *err)
{
	struct step *p = calloc(1, sizeof(*p));
	int rc = p ? s->dialect->begin(s, err) : fw_no_memory(err);

	if (!rc) {
		fw_arena_init(&p->a, 0);
		rc = sql_end(s, step_in(s, p, more, err), err);
		fw_arena_finish(&p->a);
		fw_buf_finish(&p->text);
		fw_buf_finish(&p->words);
	}
	free(p);
	return rc;
}

/* What waits, up to a few more than a search catches up by itself. */
static int behind(struct sql *s, int64_t *n, struct fw_err *err)
{
	static const struct sql_text BEHIND = {"SELECT (SELECT count(*) FROM (SELECT 1 FROM entries WHERE id > (SELECT "
					       "value FROM numbers WHERE name = 'indexed_entry_id') LIMIT ?1) a)"
					       " + (SELECT count(*) FROM (SELECT 1 FROM entries_changed LIMIT ?1) b)",
		NULL};

	return sql_number(s, &BEHIND, (struct sql_value[]){SQL_INT(CATCH_UP_ROWS + 1)}, 1, 0, n, err);
}

static int steps(struct sql *s, int64_t ms, bool *more, struct fw_err *err)
{
	int64_t until_ms = fw_mono_ms() + ms, n;
	int rc = behind(s, &n, err);

	*more = !rc && n;
	while (!rc && *more) {
		rc = step(s, more, err);
		if (fw_mono_ms() >= until_ms)
			break;
	}
	return rc;
}

int postgres_search_step(struct sql *s, bool *more, struct fw_err *err)
{
	return steps(s, STEP_MS, more, err);
}

int postgres_search_unindexed(struct sql *s, int64_t *n, struct fw_err *err)
{
	static const struct sql_text COUNT = {
		"SELECT (SELECT count(*) FROM entries WHERE id > (SELECT value FROM numbers WHERE name = "
		"'indexed_entry_id'))"
		" + (SELECT count(DISTINCT c.entry_id) FROM entries_changed c JOIN entries e ON e.id = c.entry_id)",
		NULL};

	return sql_number(s, &COUNT, NULL, 0, 0, n, err);
}

int postgres_search_begin(struct sql *s, struct fw_str words, bool *any, struct fw_buf *where, struct fw_buf *value,
	int64_t *missing, struct fw_err *err)
{
	int64_t n;
	bool more;
	int rc;

	if (missing)
		*missing = 0;
	*any = query(words, value);
	/* an array, so that no plan joins the two row by row */
	fw_buf_adds(where, "e.id = ANY (ARRAY(SELECT f.id FROM entries_fts f WHERE f.words @@ ?1::tsquery))");
	if (!*any)
		return 0;
	rc = behind(s, &n, err);
	if (rc || !n)
		return rc;
	rc = s->read_only || n > CATCH_UP_ROWS ? 0 : steps(s, CATCH_UP_MS, &more, err);
	if (rc && rc != FW_EAGAIN) /* a busy store, a full disk: what is indexed is searched */
		return rc;
	return missing ? postgres_search_unindexed(s, missing, err) : 0;
}
