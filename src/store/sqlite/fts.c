/* SPDX-License-Identifier: ISC */
/*
 * Full-text search: a contentless FTS5 index over title and body. search.h describes how it is
 * filled. An entry that changes or is removed leaves the index at once, by the words that it was
 * added with: a contentless index has no text to look up. So the output of words.c must not change
 * without a migration that rebuilds the index.
 *
 * Each transaction adds a segment. FTS5's automatic merging would rewrite each word about five
 * times while a large backlog is indexed. So it is off, and maintenance merges when all is indexed,
 * or when there are very many segments.
 *
 * The index is an ordinary FTS5 table with a built-in tokenizer, so any program can search it.
 */
#include <assert.h>

#include "store/sql/search.h"
#include "store/sqlite/sqlite.h"
#include "query/query.h"

#define STEP_ROWS 2500
#define STEP_BYTES ((size_t)1 << 20)
#define SEGMENTS_IDLE 16  /* merge from this many on when all is indexed */
#define SEGMENTS_BUSY 512 /* merge from this many on before the next step; below crisismerge */
#define MERGE_PAGES 100   /* pages written per step */

const char *const sqlite_search_tables[] = {
	"CREATE VIRTUAL TABLE entries_fts USING fts5(title, body, content='', columnsize=0,"
	" tokenize='unicode61 remove_diacritics 2 categories ''L* N* M* Co''')",
	"INSERT INTO entries_fts (entries_fts, rank) VALUES ('hashsize', 8000000), ('pgsz', 4050), ('automerge', 0),"
	" ('crisismerge', 1000)",
	NULL,
};

/* ---- filling --------------------------------------------------------------------------------- */

static int fts_put(struct sql *s, bool in, int64_t id, struct fw_str words, size_t title_len, struct fw_err *err)
{
	assert(title_len <= words.len);
	return sql_exec(s,
		in ? "INSERT INTO entries_fts (rowid, title, body) VALUES (?1, ?2, ?3)" :
		     "INSERT INTO entries_fts (entries_fts, rowid, title, body) VALUES ('delete', ?1, ?2, ?3)",
		SQL_V(SQL_INT(id), SQL_TEXT(fw_str_sub(words, 0, title_len)),
			SQL_TEXT(fw_str_sub(words, title_len, words.len))),
		err);
}

struct fts_change {
	struct sql *s;
	bool in;
	struct fw_err *err;
};

static int fts_changed_row(void *ctx, const struct sql_row *row)
{
	struct fts_change *c = ctx;
	struct fw_buf b = FW_BUF_INIT(0);
	size_t title_len = sql_search_words(&b, row);
	int rc = b.rc ? fw_no_memory(c->err) : fts_put(c->s, c->in, sql_int(row, 0), fw_buf_str(&b), title_len, c->err);

	fw_buf_finish(&b);
	return rc;
}

int sqlite_search_changed(struct sql *s, int64_t entry_id, enum sql_entry_change what, struct fw_err *err)
{
	struct fts_change c = {s, what == SQL_ENTRY_CHANGED, err};

	return sql_query(s,
		"SELECT " SQL_SEARCH_COLUMNS " FROM entries e WHERE e.id = ?1 AND e.id <= " SQL_SEARCH_INDEXED_ID,
		SQL_V(SQL_INT(entry_id)), fts_changed_row, &c, err);
}

static int fts_entry_add(struct sql_search_step *p, int64_t id, struct fw_str words)
{
	return fts_put(p->s, true, id, words, p->title_len, p->err);
}

/*
 * Run a transaction without waiting for the disk. After a power failure, lost steps are repeated:
 * indexed_entry_id was lost with them.
 */
static int fts_unsynced(
	struct sql *s, int (*work)(struct sql *s, bool *more, struct fw_err *err), bool *more, struct fw_err *err)
{
	const struct sqlite_db *d = sqlite_db(s);
	bool full = !s->read_only && !d->sql.async_commit && !d->memory;
	struct fw_err spare = {0};
	int rc = full ? s->dialect->script(s, "PRAGMA synchronous=NORMAL", err) : 0, back;

	rc = rc ? rc : work(s, more, err);
	back = full ? s->dialect->script(s, "PRAGMA synchronous=FULL", &spare) : 0;
	if (rc || !back)
		return rc;
	*err = spare;
	return back;
}

static int fts_index_next(struct sql *s, bool *more, struct fw_err *err)
{
	static const struct sql_search_index INDEX = {.rows = STEP_ROWS, .bytes = STEP_BYTES, .add = fts_entry_add};

	return sql_search_step(&(struct sql_search_step){0}, s, &INDEX, more, err);
}

static int fts_step(struct sql *s, bool *more, struct fw_err *err)
{
	return fts_unsynced(s, fts_index_next, more, err);
}

/* Merge segments: write some pages. *more false: nothing left to merge. */
static int fts_merge_next(struct sql *s, bool *more, struct fw_err *err)
{
	int64_t before = sqlite3_total_changes64(sqlite_db(s)->db);
	int rc = s->dialect->begin(s, err);

	if (rc)
		return rc;
	rc = sql_end(s,
		sql_exec(s, "INSERT INTO entries_fts (entries_fts, rank) VALUES ('merge', ?1)",
			SQL_V(SQL_INT(MERGE_PAGES)), err),
		err);
	*more = sqlite3_total_changes64(sqlite_db(s)->db) - before >= 2; /* as the FTS5 manual defines it */
	return rc;
}

int sqlite_search_step(struct sql *s, bool *more, struct fw_err *err)
{
	struct sqlite_db *d = sqlite_db(s);
	int64_t segment_n, behind;
	/* a page id holds its segment id above 37 bits: skip from each segment to the next */
	int rc = sql_query_int(s,
		"WITH RECURSIVE page (id) AS (SELECT min(id) FROM entries_fts_data WHERE id >> 37 > 0"
		" UNION ALL SELECT (SELECT min(d.id) FROM entries_fts_data d WHERE d.id >= ((p.id >> 37) + 1) << 37)"
		" FROM page p WHERE p.id IS NOT NULL) SELECT count(id) FROM page",
		SQL_NONE, 0, &segment_n, err);

	*more = false;
	rc = rc ? rc : sql_search_pending(s, 1, &behind, err);
	if (rc)
		return rc;
	if (segment_n >= SEGMENTS_IDLE && (d->merging || !behind || segment_n >= SEGMENTS_BUSY)) {
		rc = fts_unsynced(s, fts_merge_next, &d->merging, err);
		*more = !rc && (d->merging || behind);
		if (rc || d->merging)
			return rc;
	}
	d->merging = false;
	rc = sql_search_steps(s, fts_step, more, err);
	*more = !rc && (*more || segment_n >= SEGMENTS_IDLE);
	return rc;
}

/* ---- searching ------------------------------------------------------------------------------- */

/*
 * Count few in the table itself, whose rows are long; count many in an index, which is read whole.
 */
int sqlite_search_unindexed(struct sql *s, int64_t *n, struct fw_err *err)
{
	return sql_query_int(s,
		"SELECT CASE WHEN last <= done THEN 0 WHEN (last - done) * 16 < last THEN (SELECT count(*)"
		" FROM entries NOT INDEXED WHERE id > done) ELSE (SELECT count(*) FROM entries INDEXED BY entries_date"
		" WHERE date_ms > -9e18 AND id > done) END FROM (SELECT (SELECT max(id) FROM entries) AS "
		"last, " SQL_SEARCH_INDEXED_ID " AS done)",
		SQL_NONE, 0, n, err);
}

/* FTS5 does not cut a word, as tokens.h does: one that may have been cut is the start of one. */
#define WORD_WHOLE_MAX 60

/* long night* as "long night"*; with a word that may have been cut as ("long"* AND "night"*). */
static void fts_words_write(struct fw_buf *out, const struct query_node *q)
{
	struct fw_str rest = q->text, one, next;
	bool cut = false;

	for (one = fw_str_split(rest, ' ', &rest); one.len; one = fw_str_split(rest, ' ', &rest))
		cut |= one.len > WORD_WHOLE_MAX;
	if (q->op == QUERY_TITLE)
		fw_buf_adds(out, "title : ");
	fw_buf_adds(out, cut ? "(\"" : "\"");
	rest = q->text;
	for (one = fw_str_split(rest, ' ', &rest); one.len; one = next) {
		next = fw_str_split(rest, ' ', &rest);
		fw_buf_addstr(out, one);
		if (next.len)
			fw_buf_adds(out, cut ? "\"* AND \"" : " ");
	}
	fw_buf_adds(out, cut ? "\"*)" : q->prefix ? "\"*" : "\"");
}

static void fts_query_write(struct fw_buf *out, const struct query_node *q)
{
	if (q->op == QUERY_WORDS || q->op == QUERY_TITLE) {
		fts_words_write(out, q);
		return;
	}
	fw_buf_addc(out, '(');
	for (const struct query_node *c = q->child; c; c = c->next) {
		if (c != q->child)
			fw_buf_adds(out, c->op == QUERY_NOT ? " NOT " : q->op == QUERY_OR ? " OR " : " AND ");
		fts_query_write(out, c->op == QUERY_NOT ? c->child : c);
	}
	fw_buf_addc(out, ')');
}

int sqlite_search_begin(struct sql *s, const struct query_node *words, bool *any, bool *exact, struct fw_buf *value,
	int64_t *missing, struct fw_err *err)
{
	fts_query_write(value, words);
	*any = *exact = true;
	return sql_search_catch_up(s, fts_step, missing, err);
}
