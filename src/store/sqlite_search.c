/* SPDX-License-Identifier: ISC */
/*
 * Full-text search: an FTS5 index without content of its own over title and text, filled behind the wheel's back.
 *
 * meta.indexed_entry_id is the watermark: entries up to it are in the index. `upkeep` moves it on in short transactions, so
 * that storing never waits for the tokenizer; a search catches up first when little is missing. An entry below the watermark
 * that changes or goes is taken out with the words it was put in with (the index keeps none of its text to look it up by), so
 * what words.c makes of a text must not change without a migration that builds the index anew.
 *
 * Each transaction leaves a segment in the index, and FTS5 would merge them as it goes along, each word some five times while a
 * large backlog is indexed. So its own merging is off (sqlite_schema.c), and upkeep merges when it has caught up, or when there
 * are very many segments. Neither is flushed to the disk at once: what a power cut takes is indexed again, from the watermark.
 *
 * The index is an ordinary FTS5 table with a tokenizer that every SQLite has, so that it can be searched from any program.
 */
#include "base/clock.h"
#include "store/sqlite.h"
#include "store/words.h"

#define STEP_MS 50       /* of one upkeep step */
#define STEP_ROWS 2500
#define CATCH_UP_ROWS 2000 /* a search indexes this many by itself */
#define TEXT_MAX ((size_t)1 << 20) /* of one entry: more is not indexed */
#define SEGMENTS_IDLE 16  /* merged down to fewer when there is nothing to index, */
#define SEGMENTS_BUSY 512 /* and before the next step when there are as many; below crisismerge */
#define MERGE_PAGES 100   /* written by one step */

int sq_search_watermark(struct sqlite *s, int64_t *id, struct fw_err *err)
{
	return sq_int(s, SQ_META_GET, "SELECT value FROM meta WHERE name = 'indexed_entry_id'", 0, id, err);
}

/* Put the words of the row that q stands on into the index, or take them out. Columns: id, title, summary, content, content_type. */
static int words_move(struct sqlite *s, sqlite3_stmt *q, bool in, struct fw_err *err)
{
	int64_t id = sqlite3_column_int64(q, 0);
	struct fw_str title, body, content = fw_str_sub(sq_text(q, 3), 0, TEXT_MAX);
	struct fw_buf *b = &s->text;

	fw_buf_reset(b);
	fw_store_words(b, fw_str_sub(sq_text(q, 1), 0, TEXT_MAX));
	title.len = b->len;
	fw_store_words(b, fw_str_sub(sq_text(q, 2), 0, TEXT_MAX));
	fw_buf_addc(b, '\n');
	if (sqlite3_column_int(q, 4) == FW_TEXT_PLAIN)
		fw_store_words(b, content);
	else
		fw_store_words_html(b, content);
	if (b->rc)
		return fw_err_set(err, b->rc, "%s: search index: out of memory", s->path);
	title.p = b->p;
	body = fw_str_sub(fw_buf_str(b), title.len, b->len);
	if (in)
		return sq_do(s, SQ_FTS_PUT, "INSERT INTO entries_fts (rowid, title, body) VALUES (?, ?, ?)", err, "iss", id, title, body);
	return sq_do(s, SQ_FTS_DEL, "INSERT INTO entries_fts (entries_fts, rowid, title, body) VALUES ('delete', ?, ?, ?)", err, "iss",
		id, title, body);
}

static int words_of(struct sqlite *s, int64_t entry_id, bool in, struct fw_err *err)
{
	sqlite3_stmt *q;
	int rc = sq_search_watermark(s, &s->indexed_id, err);

	if (rc || entry_id > s->indexed_id)
		return rc;
	q = sq_ask(s, SQ_FTS_ROW, "SELECT id, title, summary, content, content_type FROM entries WHERE id = ?", err, "i", entry_id);
	rc = q ? sq_row(s, q, err) : err->rc;
	if (rc <= 0)
		return rc;
	rc = words_move(s, q, in, err);
	sqlite3_reset(q);
	return rc;
}

int sq_search_forget(struct sqlite *s, int64_t entry_id, struct fw_err *err)
{
	return words_of(s, entry_id, false, err);
}

int sq_search_add(struct sqlite *s, int64_t entry_id, struct fw_err *err)
{
	return words_of(s, entry_id, true, err);
}

/* Index up to max rows or for about STEP_MS. */
static int step_in(struct sqlite *s, int max, int64_t deadline_ms, bool *more, struct fw_err *err)
{
	sqlite3_stmt *q;
	int n = 0, rc = sq_search_watermark(s, &s->indexed_id, err);

	*more = false;
	if (rc)
		return rc;
	q = sq_ask(s, SQ_FTS_NEXT, "SELECT id, title, summary, content, content_type FROM entries WHERE id > ? ORDER BY id", err, "i", s->indexed_id);
	while (q && (rc = sq_row(s, q, err)) > 0) {
		if (n == max || (n && (n & 7) == 0 && fw_mono_ms() >= deadline_ms)) {
			*more = true;
			sqlite3_reset(q);
			rc = 0;
			break;
		}
		s->indexed_id = sqlite3_column_int64(q, 0);
		rc = words_move(s, q, true, err);
		if (rc) {
			sqlite3_reset(q);
			break;
		}
		n++;
	}
	rc = q ? rc : err->rc;
	return rc || !n ? rc : sq_do(s, SQ_META_SET, "UPDATE meta SET value = ? WHERE name = 'indexed_entry_id'", err, "i",
		s->indexed_id);
}

static int step(struct sqlite *s, int max, int64_t ms, bool *more, struct fw_err *err)
{
	int rc = sq_begin_quick(s, err);

	return rc ? rc : sq_end(s, step_in(s, max, fw_mono_ms() + ms, more, err), err);
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

/* How many segments the index consists of. Its structure record says so behind a cookie of four bytes and the number of levels. */
static int segments(struct sqlite *s, int64_t *n, struct fw_err *err)
{
	sqlite3_stmt *q = sq_stmt(s, SQ_FTS_STRUCTURE, "SELECT block FROM entries_fts_data WHERE id = 10", err);
	int rc = q ? sq_row(s, q, err) : err->rc;
	struct fw_str b;

	*n = 0;
	if (rc <= 0)
		return rc;
	b = fw_str_sub(sq_text(q, 0), 4, SIZE_MAX);
	(void)varint(&b);
	*n = varint(&b);
	sqlite3_reset(q);
	return 0;
}

/* Write a few pages of merged segments; *more false: there is no more to merge. */
static int merge(struct sqlite *s, bool *more, struct fw_err *err)
{
	int before, rc = sq_begin_quick(s, err);

	if (rc)
		return rc;
	before = sqlite3_total_changes(s->db);
	rc = sq_do(s, SQ_FTS_MERGE, "INSERT INTO entries_fts (entries_fts, rank) VALUES ('merge', ?)", err, "i", SQ_INT(MERGE_PAGES));
	*more = sqlite3_total_changes(s->db) - before >= 2; /* so says FTS5's manual */
	return sq_end(s, rc, err);
}

int sq_index_upkeep(struct sqlite *s, bool *more, struct fw_err *err)
{
	int64_t last, segment_n;
	int rc = sq_search_watermark(s, &s->indexed_id, err);

	rc = rc ? rc : sq_int(s, SQ_ENTRY_LAST, "SELECT max(id) FROM entries", 0, &last, err);
	rc = rc ? rc : segments(s, &segment_n, err);
	if (rc)
		return rc;
	if (segment_n >= SEGMENTS_IDLE && (s->merging || last <= s->indexed_id || segment_n >= SEGMENTS_BUSY)) {
		rc = merge(s, &s->merging, err);
		*more = s->merging || last > s->indexed_id;
		if (rc || s->merging)
			return rc;
	}
	s->merging = false;
	if (last <= s->indexed_id)
		return 0; /* nothing to do: no write lock taken */
	rc = step(s, STEP_ROWS, STEP_MS, more, err);
	*more = !rc && (*more || segment_n >= SEGMENTS_IDLE);
	return rc;
}

/* A few are counted in the table itself, whose rows are long; many in an index, all of which has to be read. */
int sq_search_unindexed(struct sqlite *s, int64_t *n, struct fw_err *err)
{
	return sq_int(s, SQ_UNINDEXED, "SELECT CASE WHEN last <= done THEN 0 WHEN (last - done) * 16 < last THEN"
		" (SELECT count(*) FROM entries NOT INDEXED WHERE id > done) ELSE (SELECT count(*) FROM entries INDEXED BY entries_date"
		" WHERE date_ms > -9e18 AND id > done) END FROM (SELECT (SELECT max(id) FROM entries) AS last, value AS done FROM meta"
		" WHERE name = 'indexed_entry_id')", 0, n, err);
}

/* Before a search. unindexed_n: what it does not see, 0 so far; or NULL. */
int sq_search_catch_up(struct sqlite *s, int64_t *unindexed_n, struct fw_err *err)
{
	int64_t behind;
	bool more;
	int rc = sq_search_watermark(s, &s->indexed_id, err);
	sqlite3_stmt *q;

	if (rc)
		return rc;
	q = sq_ask(s, SQ_BEHIND, "SELECT count(*) FROM (SELECT 1 FROM entries WHERE id > ? LIMIT ?)", err, "ii", s->indexed_id,
		SQ_INT(CATCH_UP_ROWS + 1));
	rc = q ? sq_row(s, q, err) : err->rc;
	if (rc <= 0)
		return rc;
	behind = sqlite3_column_int64(q, 0);
	sqlite3_reset(q);
	if (!behind)
		return 0;
	rc = s->read_only || behind > CATCH_UP_ROWS ? 0 : step(s, CATCH_UP_ROWS, 10000, &more, err);
	if (rc && rc != FW_EAGAIN && rc != FW_EIO) /* a busy store, a full disk: search what is indexed */
		return rc;
	return unindexed_n ? sq_search_unindexed(s, unindexed_n, err) : 0;
}

bool sq_search_query(struct fw_str words, struct fw_buf *out)
{
	struct fw_store_word w;
	size_t from = out->len;
	bool any = false;

	while (fw_store_word_next(&words, &w)) {
		fw_buf_adds(out, any ? " \"" : "\"");
		fw_store_words(out, w.text);
		fw_buf_adds(out, w.prefix ? "\"*" : "\"");
		any = true;
	}
	for (size_t i = from; i < out->len; i++) { /* the query ends at a NUL */
		if (!out->p[i])
			out->p[i] = ' ';
	}
	return any;
}
