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

#include "base/map.h"
#include "store/postgres/postgres.h"
#include "store/sql/search.h"
#include "query/query.h"
#include "query/words.h"

#define STEP_ROWS 100               /* per transaction */
#define VECTOR_MAX ((size_t)900000) /* PostgreSQL's limit is 1 MiB of words and positions */

const char *const postgres_search_tables[] = {
	"CREATE TABLE entries_fts (id int8 PRIMARY KEY, words tsvector NOT NULL)",
	"CREATE INDEX entries_fts_words ON entries_fts USING gin (words)",
	"CREATE TABLE entries_changed (entry_id int8 NOT NULL)",
	NULL,
};

/* Rows of schema 1 do not say which words or positions they lack: all are indexed again. */
const char *const postgres_search_upgrade[] = {
	"UPDATE meta SET value = 0 WHERE name = 'indexed_entry_id'",
	NULL,
};

/* ---- words ----------------------------------------------------------------------------------- */

/*
 * PostgreSQL keeps 256 positions of a word, none above 16383, and 1 MiB in all. A row whose phrases
 * cannot be found for that has the word LONG; one that lacks words has CUT. No text has these.
 */
#define POSITIONS_MAX 255
#define POSITION_MAX 16383
#define LONG "'+long'"
#define CUT "'+cut'"

struct vector_word {
	int n;
	struct fw_buf positions; /* ":1,5" */
};

static struct vector_word *vector_word_at(struct fw_map *map, struct fw_arena *a, struct fw_str text)
{
	struct vector_word *w = fw_map_get(map, text);
	int rc;

	if (w)
		return w;
	w = fw_arena_zalloc(a, sizeof(*w));
	text = fw_arena_str(a, text);
	if (!w || !text.p)
		return NULL;
	(void)fw_map_put(map, text, w, &rc);
	return rc ? NULL : w;
}

/* Collect the words and their positions. *is_long: not all positions. False: out of memory. */
static bool vector_words_read(struct fw_map *map, struct fw_arena *a, struct fw_str text, bool *is_long)
{
	struct query_token t;

	for (int position = 1; query_token_next(&text, &t); position++) {
		struct vector_word *w = vector_word_at(map, a, (struct fw_str){t.text, t.len});

		if (!w)
			return false;
		*is_long |= position >= POSITION_MAX || w->n >= POSITIONS_MAX;
		if (w->n >= POSITIONS_MAX || (w->n && position > POSITION_MAX))
			continue;
		fw_buf_addf(&w->positions, "%c%d", w->n ? ',' : ':', FW_MIN(position, POSITION_MAX));
		w->n++;
		if (w->positions.rc)
			return false;
	}
	return true;
}

/* A text's words as a tsvector: 'word':1,7 'other':2. False: out of memory. */
static bool tsvector_write(struct fw_buf *out, struct fw_arena *a, struct fw_str text)
{
	struct fw_map map;
	struct vector_word *w;
	struct fw_str word;
	size_t start = out->len;
	bool is_long = false, ok, cut = false;

	fw_map_init(&map, 0);
	ok = vector_words_read(&map, a, text, &is_long);
	for (size_t at = 0; (w = fw_map_next(&map, &at, &word)) != NULL; fw_buf_finish(&w->positions)) {
		cut |= out->len - start >= VECTOR_MAX;
		if (cut)
			continue;
		fw_buf_addc(out, '\'');
		fw_buf_addstr(out, word);
		fw_buf_addc(out, '\'');
		fw_buf_addstr(out, fw_buf_str(&w->positions));
		fw_buf_addc(out, ' ');
	}
	fw_map_finish(&map);
	fw_buf_adds(out, is_long ? LONG " " : "");
	fw_buf_adds(out, cut ? CUT : "");
	return ok && !out->rc;
}

/* long night* as 'long' <-> 'night':* */
static void tsquery_words_write(struct fw_buf *out, const struct query_node *q, const char *between)
{
	struct fw_str rest, one = fw_str_split(q->text, ' ', &rest);

	for (bool follows = false; one.len; one = fw_str_split(rest, ' ', &rest), follows = true) {
		fw_buf_addf(out, "%s'", follows ? between : "");
		fw_buf_addstr(out, one);
		fw_buf_addc(out, '\'');
	}
	fw_buf_adds(out, q->prefix ? ":*" : "");
}

static void tsquery_write(struct fw_buf *out, const struct query_node *q)
{
	fw_buf_adds(out, q->op == QUERY_NOT ? "!(" : "(");
	for (const struct query_node *c = q->child; c; c = c->next) {
		fw_buf_adds(out, c == q->child ? "" : q->op == QUERY_OR ? " | " : " & ");
		tsquery_write(out, c);
	}
	if (!q->child)
		tsquery_words_write(out, q, " <-> ");
	if (!q->child && q->word_n > 1) {
		fw_buf_adds(out, " | " LONG " & ");
		tsquery_words_write(out, q, " & ");
	}
	fw_buf_addc(out, ')');
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

	rc = tsvector_write(&b, &step->a, words) ? 0 : FW_ENOMEM;
	v = fw_arena_str(&step->a, fw_buf_str(&b));
	rc = step->a.failed ? FW_ENOMEM : rc;
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

int postgres_search_begin(struct sql *s, const struct query_node *words, bool *any, bool *exact, struct fw_buf *value,
	int64_t *missing, struct fw_err *err)
{
	int64_t cut_n = 0;
	int rc = sql_search_catch_up(s, tsvector_step, missing, err);

	tsquery_write(value, words);
	fw_buf_adds(value, " | " CUT);
	rc = rc ? rc :
		  sql_query_int(s,
			  "SELECT count(*) FROM (SELECT 1 FROM entries_fts WHERE words @@ ?1::tsquery LIMIT 1) a",
			  SQL_V(SQL_TEXT(FW_STR(CUT))), 0, &cut_n, err);
	*any = true;
	*exact = !cut_n;
	return rc;
}
