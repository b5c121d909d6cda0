/* SPDX-License-Identifier: ISC */
/*
 * Full-text search: an FTS5 index over title and text, without content of its own, filled behind
 * the storing.
 *
 * numbers.indexed_entry_id is the watermark: entries up to it are in the index. Maintenance moves
 * it on in short transactions, so that storing never waits for the tokenizer; a search catches up
 * first when little is missing. An entry below the watermark that changes or goes is taken out with
 * the words that it was put in with: the index keeps no text to look it up by. So what words.c
 * makes of a text must not change without a migration that builds the index anew.
 *
 * Each transaction leaves a segment in the index, and FTS5 would merge them as it goes along, each
 * word some five times while a large backlog is indexed. So its own merging is off, and maintenance
 * merges when it has caught up, or when there are very many segments.
 *
 * The index is an ordinary FTS5 table with a tokenizer that every SQLite has, so that any program
 * can search it.
 */
#include "base/clock.h"
#include "store/driver.h"
#include "store/sqlite/sqlite.h"
#include "store/tokens.h"
#include "store/words.h"
#include "base/banned.h"

#define STEP_MS 50        /* of one step of maintenance */
#define STEP_ROWS 2500
#define CATCH_UP_MS 10000
#define CATCH_UP_ROWS 2000 /* a search indexes this many by itself */
#define SEGMENTS_IDLE 16  /* merged down to fewer when there is nothing to index, */
#define SEGMENTS_BUSY 512 /* and before the next step when there are as many; below crisismerge */
#define MERGE_PAGES 100   /* written by one step */

const char *const sqlite_search_tables[] = {
	"CREATE VIRTUAL TABLE entries_fts USING fts5(title, body, content='', columnsize=0,"
		" tokenize='unicode61 remove_diacritics 2 categories ''L* N* M* Co''')",
	"INSERT INTO entries_fts (entries_fts, rank) VALUES ('hashsize', 8000000), ('pgsz', 4050), ('automerge', 0),"
		" ('crisismerge', 1000)",
	NULL,
};

#define TEXTS "SELECT id, title, summary, content, content_type FROM entries WHERE "

static int watermark(struct sql *s, int64_t *id, struct fw_err *err)
{
	static const struct sql_text MARK = {"SELECT value FROM numbers WHERE name = 'indexed_entry_id'", NULL};

	return sql_number(s, &MARK, NULL, 0, 0, id, err);
}

/* A walk through TEXTS whose words are put into the index, or taken out. */
struct indexing {
	struct sql *s;
	bool in;
	int64_t deadline_ms; /* monotonic; looked at between some entries */
	int64_t n, last_id;
	bool more;           /* out: it was ended by the deadline */
	struct fw_err *err;
};

static int words_row(void *ctx, const struct sql_row *row)
{
	static const struct sql_text IN = {"INSERT INTO entries_fts (rowid, title, body) VALUES (?1, ?2, ?3)", NULL};
	static const struct sql_text OUT = {"INSERT INTO entries_fts (entries_fts, rowid, title, body)"
		" VALUES ('delete', ?1, ?2, ?3)", NULL};
	struct indexing *x = ctx;
	struct fw_str all;
	struct fw_buf *b = &x->s->text;
	size_t title_len;

	if (x->n && x->n % 8 == 0 && fw_mono_ms() >= x->deadline_ms) {
		x->more = true;
		return 1;
	}
	fw_buf_reset(b);
	fw_store_words_title(b, sql_str(row, 1));
	title_len = b->len;
	fw_store_words_body(b, sql_str(row, 2), sql_str(row, 3), (int)sql_int(row, 4));
	if (b->rc)
		return fw_no_memory(x->err);
	x->n++;
	x->last_id = sql_int(row, 0);
	all = fw_buf_str(b);
	return sql_do(x->s, x->in ? &IN : &OUT, (struct sql_value[]){SQL_INT(x->last_id),
		SQL_TEXT(fw_str_sub(all, 0, title_len)), SQL_TEXT(fw_str_sub(all, title_len, all.len))}, 3, x->err);
}

int sqlite_search_changed(struct sql *s, int64_t entry_id, enum sql_entry_change what, struct fw_err *err)
{
	static const struct sql_text ONE = {TEXTS "id = ?1", NULL};
	struct indexing x = {.s = s, .in = what == SQL_ENTRY_CHANGED, .deadline_ms = INT64_MAX, .err = err};
	int64_t indexed;
	int rc = watermark(s, &indexed, err);

	if (rc || entry_id > indexed)
		return rc;
	return sql_ask(s, &ONE, (struct sql_value[]){SQL_INT(entry_id)}, 1, words_row, &x, NULL, err);
}

/* ---- filling --------------------------------------------------------------------------------- */

/*
 * A transaction that waits for no disk: what a power cut takes of it is indexed again, from the
 * watermark. `max` and `more` are the work's.
 */
static int relaxed(struct sql *s, int (*work)(struct sql *s, int64_t max, bool *more, struct fw_err *err), int64_t max,
	bool *more, struct fw_err *err)
{
	struct sqlite_db *d = sqlite_db(s);
	bool full = !s->read_only && !d->relaxed && !d->memory;
	struct fw_err spare = {0};
	int rc = full ? s->dialect->script(s, "PRAGMA synchronous=NORMAL", err) : 0, back = 0;

	rc = rc ? rc : s->dialect->begin(s, err);
	if (!rc)
		rc = sql_end(s, work(s, max, more, err), err);
	if (full)
		back = s->dialect->script(s, "PRAGMA synchronous=FULL", &spare);
	if (rc || !back)
		return rc;
	*err = spare;
	return back;
}

/* The next entries, up to max. *more: its time was over before. */
static int index_next(struct sql *s, int64_t max, bool *more, struct fw_err *err)
{
	static const struct sql_text NEXT = {TEXTS "id > ?1 ORDER BY id LIMIT ?2", NULL};
	static const struct sql_text SET = {"UPDATE numbers SET value = ?1 WHERE name = 'indexed_entry_id'", NULL};
	int64_t ms = max == CATCH_UP_ROWS ? CATCH_UP_MS : STEP_MS, from;
	struct indexing x = {.s = s, .in = true, .deadline_ms = fw_mono_ms() + ms, .err = err};
	int rc = watermark(s, &from, err);

	if (!rc)
		rc = sql_ask(s, &NEXT, (struct sql_value[]){SQL_INT(from), SQL_INT(max)}, 2, words_row, &x, NULL, err);
	*more = x.more || x.n == max;
	if (x.more)
		rc = 0;
	return rc || !x.n ? rc : sql_do(s, &SET, (struct sql_value[]){SQL_INT(x.last_id)}, 1, err);
}

/* Some pages of merged segments are written; *more false: there is no more to merge. */
static int merge_next(struct sql *s, int64_t max, bool *more, struct fw_err *err)
{
	static const struct sql_text MERGE = {"INSERT INTO entries_fts (entries_fts, rank) VALUES ('merge', ?1)", NULL};
	int64_t before = sqlite3_total_changes64(sqlite_db(s)->db);
	int rc = sql_do(s, &MERGE, (struct sql_value[]){SQL_INT(max)}, 1, err);

	*more = sqlite3_total_changes64(sqlite_db(s)->db) - before >= 2; /* so says FTS5's manual */
	return rc;
}

/* A number as FTS5 writes it: seven bits a byte, the high ones first. */
static int64_t varint(struct fw_str *b)
{
	int64_t v = 0;

	for (int i = 0; i < 5 && b->len; i++) {
		unsigned char c = (unsigned char)b->p[0];

		*b = fw_str_sub(*b, 1, b->len);
		v = v << 7 | (c & 0x7f);
		if (c < 0x80)
			break;
	}
	return v;
}

/*
 * The structure record: behind a cookie of four bytes the number of levels, then that of segments.
 */
static int structure_row(void *ctx, const struct sql_row *row)
{
	struct fw_str b = fw_str_sub(sql_str(row, 0), 4, SIZE_MAX);

	(void)varint(&b);
	*(int64_t *)ctx = varint(&b);
	return 0;
}

int sqlite_search_step(struct sql *s, bool *more, struct fw_err *err)
{
	static const struct sql_text LAST = {"SELECT max(id) FROM entries", NULL};
	static const struct sql_text STRUCTURE = {"SELECT block FROM entries_fts_data WHERE id = 10", NULL};
	struct sqlite_db *d = sqlite_db(s);
	int64_t indexed, last, segment_n = 0;
	int rc = watermark(s, &indexed, err);

	*more = false;
	rc = rc ? rc : sql_number(s, &LAST, NULL, 0, 0, &last, err);
	rc = rc ? rc : sql_ask(s, &STRUCTURE, NULL, 0, structure_row, &segment_n, NULL, err);
	if (rc)
		return rc;
	if (segment_n >= SEGMENTS_IDLE && (d->merging || last <= indexed || segment_n >= SEGMENTS_BUSY)) {
		rc = relaxed(s, merge_next, MERGE_PAGES, &d->merging, err);
		*more = !rc && (d->merging || last > indexed);
		if (rc || d->merging)
			return rc;
	}
	d->merging = false;
	if (last <= indexed)
		return 0; /* nothing to do, and no lock taken */
	rc = relaxed(s, index_next, STEP_ROWS, more, err);
	*more = !rc && (*more || segment_n >= SEGMENTS_IDLE);
	return rc;
}

/* ---- searching ------------------------------------------------------------------------------- */

/*
 * A few are counted in the table itself, whose rows are long; many in an index, all of which has to
 * be read.
 */
int sqlite_search_unindexed(struct sql *s, int64_t *n, struct fw_err *err)
{
	static const struct sql_text COUNT = {
		"SELECT CASE WHEN last <= done THEN 0 WHEN (last - done) * 16 < last"
		" THEN (SELECT count(*) FROM entries NOT INDEXED WHERE id > done)"
		" ELSE (SELECT count(*) FROM entries INDEXED BY entries_date WHERE date_ms > -9e18 AND id > done) END"
		" FROM (SELECT (SELECT max(id) FROM entries) AS last, value AS done FROM numbers WHERE name = "
		"'indexed_entry_id')",
		NULL};

	return sql_number(s, &COUNT, NULL, 0, 0, n, err);
}

static int catch_up(struct sql *s, int64_t *missing, struct fw_err *err)
{
	static const struct sql_text BEHIND = {
		"SELECT count(*) FROM (SELECT 1 FROM entries WHERE id > ?1 LIMIT ?2)", NULL};
	int64_t indexed, behind;
	bool more;
	int rc = watermark(s, &indexed, err);

	if (missing)
		*missing = 0;
	if (!rc)
		rc = sql_number(s, &BEHIND, (struct sql_value[]){SQL_INT(indexed), SQL_INT(CATCH_UP_ROWS + 1)}, 2, 0,
			&behind, err);
	if (rc || !behind)
		return rc;
	rc = s->read_only || behind > CATCH_UP_ROWS ? 0 : relaxed(s, index_next, CATCH_UP_ROWS, &more, err);
	if (rc && rc != FW_EAGAIN && rc != FW_EIO) /* a busy store, a full disk: what is indexed is searched */
		return rc;
	return missing ? sqlite_search_unindexed(s, missing, err) : 0;
}

int sqlite_search_begin(struct sql *s, struct fw_str words, bool *any, struct fw_buf *where, struct fw_buf *value,
	int64_t *missing, struct fw_err *err)
{
	struct fw_store_word w;
	size_t from = value->len;

	*any = false;
	while (fw_store_word_next(&words, &w)) {
		fw_buf_adds(value, *any ? " \"" : "\"");
		fw_store_words(value, w.text);
		fw_buf_adds(value, w.prefix ? "\"*" : "\"");
		*any = true;
	}
	for (size_t i = from; i < value->len; i++) { /* FTS5's query ends at a NUL */
		if (!value->p[i])
			value->p[i] = ' ';
	}
	fw_buf_adds(where, "e.id IN (SELECT rowid FROM entries_fts WHERE entries_fts MATCH ?1)");
	return *any ? catch_up(s, missing, err) : 0;
}
