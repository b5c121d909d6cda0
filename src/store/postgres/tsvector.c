/* SPDX-License-Identifier: ISC */
/*
 * Full-text search: table entries_fts holds the words of each entry as a tsvector, with a GIN
 * index.
 *
 * words.c folds a text and tokens.c splits it; a query takes the same way. PostgreSQL's own parser
 * is not used: it takes "example.com/page" for one word, and folds letters by the locale of the
 * database. So all engines find the same.
 *
 * search.h describes how the index is filled. An entry may stand in entries_changed several times:
 * each change adds a row, and nothing waits for the step that removes some.
 */
#include <assert.h>

#include "store/postgres/postgres.h"
#include "store/sql/search.h"
#include "query/words.h"
#include "base/banned.h"

#define STEP_ROWS 100               /* per transaction */
#define VECTOR_MAX ((size_t)900000) /* PostgreSQL's limit is 1 MiB of words and positions */

const char *const postgres_search_tables[] = {
	"CREATE TABLE entries_fts (id int8 PRIMARY KEY, words tsvector NOT NULL)",
	"CREATE INDEX entries_fts_words ON entries_fts USING gin (words)",
	"CREATE TABLE entries_changed (entry_id int8 NOT NULL)",
	NULL,
};

/* ---- words ----------------------------------------------------------------------------------- */

/* A text's words as a tsvector: 'word':1 'other':2 */
static void tsvector_write(struct fw_buf *out, struct fw_str text)
{
	size_t start = out->len;
	struct query_token t;

	for (int position = 1; out->len - start < VECTOR_MAX && query_token_next(&text, &t); position++) {
		fw_buf_addc(out, '\'');
		fw_buf_add(out, t.text, t.len);
		fw_buf_addf(out, "':%d ", position);
	}
}

/* rain "long night"* as ('rain') & ('long' <-> 'night':*). False: there is no word in it. */
static bool tsquery_write(struct fw_str words, struct fw_buf *out)
{
	struct fw_buf plain = FW_BUF_INIT(0);
	struct fw_store_word w;
	struct query_token t;
	bool any = false;

	for (; fw_store_term_next(&words, &plain, &w); any = true) {
		fw_buf_adds(out, any ? " & (" : "(");
		for (bool follows = false; query_token_next(&w.text, &t); follows = true) {
			fw_buf_adds(out, follows ? " <-> '" : "'");
			fw_buf_add(out, t.text, t.len);
			fw_buf_addc(out, '\'');
		}
		fw_buf_adds(out, w.prefix ? ":*)" : ")");
	}
	if (plain.rc)
		out->rc = plain.rc;
	fw_buf_finish(&plain);
	return any;
}

/* ---- filling the index ----------------------------------------------------------------------- */

int postgres_search_changed(struct sql *s, int64_t entry_id, enum sql_entry_change what, struct fw_err *err)
{
	struct sql_value id = SQL_INT(entry_id);

	if (what == SQL_ENTRY_CHANGING)
		return 0;
	return sql_exec(s,
		what == SQL_ENTRY_REMOVING ? "DELETE FROM entries_fts WHERE id = ?1" :
					     "INSERT INTO entries_changed (entry_id) VALUES (?1)",
		&id, 1, err);
}

struct tsvector_step {
	struct sql_search_step step;
	struct {
		int64_t id;
		struct fw_str words;
	} put[2 * STEP_ROWS];
};

static int tsvector_entry_add(struct sql_search_step *step, int64_t id, struct fw_str words)
{
	struct tsvector_step *p = (struct tsvector_step *)step; /* step comes first */
	struct fw_buf b = FW_BUF_INIT(0);
	struct fw_str v;
	int rc;

	tsvector_write(&b, words);
	v = fw_arena_str(&step->a, fw_buf_str(&b));
	rc = b.rc || step->a.failed ? FW_ENOMEM : 0;
	fw_buf_finish(&b);
	assert(step->n < FW_N(p->put));
	p->put[step->n].id = id;
	p->put[step->n].words = v;
	return rc;
}

static int tsvector_entries_write(struct sql_search_step *step, struct fw_err *err)
{
	const struct tsvector_step *p = (const struct tsvector_step *)step;
	struct sql_rows r = SQL_ROWS(step->s, err,
		"INSERT INTO entries_fts (id, words) SELECT v.id, v.words::tsvector"
		" FROM {rows} entries e WHERE e.id = v.id ON CONFLICT (id) DO UPDATE SET words = excluded.words",
		"id:i words:t");

	for (size_t i = 0; i < step->n; i++)
		sql_rows_add(&r, SQL_V(SQL_INT(p->put[i].id), SQL_TEXT(p->put[i].words)));
	return sql_rows_end(&r);
}

static int tsvector_step(struct sql *s, bool *more, struct fw_err *err)
{
	static const struct sql_search_index INDEX = {.rows = STEP_ROWS,
		.bytes = SIZE_MAX,
		.add = tsvector_entry_add,
		.write = tsvector_entries_write,
		.changed = "WITH changed AS (DELETE FROM entries_changed WHERE ctid = ANY (ARRAY(SELECT ctid FROM"
			   " entries_changed LIMIT ?1 FOR UPDATE SKIP LOCKED)) RETURNING entry_id) SELECT DISTINCT "
			   "entry_id FROM changed"};
	struct tsvector_step p = {.step = {.n = 0}};

	return sql_search_step(&p.step, s, &INDEX, more, err);
}

int postgres_search_step(struct sql *s, bool *more, struct fw_err *err)
{
	return sql_search_steps(s, tsvector_step, more, err);
}

int postgres_search_begin(
	struct sql *s, struct fw_str words, bool *any, struct fw_buf *value, int64_t *missing, struct fw_err *err)
{
	*any = tsquery_write(words, value);
	if (missing)
		*missing = 0;
	return *any ? sql_search_catch_up(s, tsvector_step, missing, err) : 0;
}
