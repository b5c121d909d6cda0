/* SPDX-License-Identifier: ISC */
/*
 * Full-text search: an FTS5 index without content of its own over title and text, filled behind the wheel's back.
 *
 * meta.indexed_entry_id is the watermark: entries up to it are in the index. `upkeep` moves it on in short transactions, so
 * that storing never waits for the tokenizer; a search catches up first when little is missing. An entry below the watermark
 * that changes or goes is taken out with the words it was put in with (the index keeps none of its text to look it up by), so
 * plain_text() must not change without a migration that builds the index anew.
 */
#include "base/clock.h"
#include "store/sqlite.h"

#define STEP_MS 50       /* of one upkeep step */
#define STEP_ROWS 2500
#define CATCH_UP_ROWS 2000 /* a search indexes this many by itself */
#define TEXT_MAX ((size_t)1 << 20) /* of one entry: more is not indexed */

/* Where a <script> or <style> element that begins at tag ends (at its end tag), or NULL: tag begins neither. */
static const char *hidden_end(struct fw_str tag)
{
	static const struct { struct fw_str begin, end; } hidden[] = {
		{{"<script", 7}, {"</script", 8}}, {{"<style", 6}, {"</style", 7}},
	};

	for (size_t i = 0; i < FW_N(hidden); i++) {
		if (fw_str_istarts(tag, hidden[i].begin)) {
			const char *end = fw_str_ifind(tag, hidden[i].end);

			return end ? end : tag.p + tag.len; /* never closed: all the rest; so each byte is looked at once */
		}
	}
	return NULL;
}

/* Text for the index: what stands outside of tags, and a space for each tag; script and style are left out. */
static void plain_text(struct fw_buf *out, struct fw_str html)
{
	const char *p = html.p, *end = p ? p + FW_MIN(html.len, TEXT_MAX) : p;

	while (p < end) {
		const char *lt = memchr(p, '<', (size_t)(end - p)), *gt;
		struct fw_str rest;

		fw_buf_add(out, p, (size_t)((lt ? lt : end) - p));
		if (!lt)
			return;
		rest = (struct fw_str){lt, (size_t)(end - lt)};
		if (rest.len > 1 && !fw_is_alpha(lt[1]) && lt[1] != '/' && lt[1] != '!' && lt[1] != '?') {
			fw_buf_addc(out, ' '); /* "a < b" */
			p = lt + 1;
			continue;
		}
		gt = hidden_end(rest);
		gt = gt ? gt : lt;
		gt = memchr(gt, '>', (size_t)(end - gt));
		fw_buf_addc(out, ' ');
		p = gt ? gt + 1 : end;
	}
}

int sq_search_watermark(struct sqlite *s, int64_t *id, struct fw_err *err)
{
	return sq_int(s, SQ_META_GET, "SELECT value FROM meta WHERE name = 'indexed_entry_id'", 0, id, err);
}

/* Put the words of the row that q stands on into the index, or take them out. Columns: id, title, summary, content, content_type. */
static int words_move(struct sqlite *s, sqlite3_stmt *q, bool in, struct fw_err *err)
{
	int64_t id = sqlite3_column_int64(q, 0);
	struct fw_str title = sq_text(q, 1), summary = sq_text(q, 2), content = sq_text(q, 3);

	fw_buf_reset(&s->text);
	fw_buf_addstr(&s->text, summary);
	fw_buf_addc(&s->text, '\n');
	if (sqlite3_column_int(q, 4) == FW_TEXT_PLAIN)
		fw_buf_addstr(&s->text, fw_str_sub(content, 0, TEXT_MAX));
	else
		plain_text(&s->text, content);
	if (s->text.rc)
		return fw_err_set(err, s->text.rc, "%s: search index: out of memory", s->path);
	if (in)
		return sq_do(s, SQ_FTS_PUT, "INSERT INTO entries_fts (rowid, title, body) VALUES (?, ?, ?)", err, "iss", id, title,
			fw_buf_str(&s->text));
	return sq_do(s, SQ_FTS_DEL, "INSERT INTO entries_fts (entries_fts, rowid, title, body) VALUES ('delete', ?, ?, ?)", err, "iss",
		id, title, fw_buf_str(&s->text));
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
	int rc = sq_begin(s, err);

	return rc ? rc : sq_end(s, step_in(s, max, fw_mono_ms() + ms, more, err), err);
}

int sq_upkeep(struct fw_store *st, int64_t now_ms, bool *more, struct fw_err *err)
{
	struct sqlite *s = sqlite_of(st);
	int64_t behind;
	int rc = sq_search_watermark(s, &s->indexed_id, err);

	(void)now_ms;
	rc = rc ? rc : sq_int(s, SQ_ENTRY_LAST, "SELECT max(id) FROM entries", 0, &behind, err);
	if (rc || behind <= s->indexed_id)
		return rc; /* nothing to do: no write lock taken */
	return step(s, STEP_ROWS, STEP_MS, more, err);
}

int sq_search_catch_up(struct sqlite *s, struct fw_err *err)
{
	int64_t behind;
	bool more;
	int rc = sq_search_watermark(s, &s->indexed_id, err);
	sqlite3_stmt *q;

	if (rc || s->read_only)
		return rc;
	q = sq_ask(s, SQ_BEHIND, "SELECT count(*) FROM (SELECT 1 FROM entries WHERE id > ? LIMIT ?)", err, "ii", s->indexed_id,
		SQ_INT(CATCH_UP_ROWS + 1));
	rc = q ? sq_row(s, q, err) : err->rc;
	if (rc <= 0)
		return rc;
	behind = sqlite3_column_int64(q, 0);
	sqlite3_reset(q);
	if (!behind || behind > CATCH_UP_ROWS)
		return 0;
	rc = step(s, CATCH_UP_ROWS, 10000, &more, err);
	return rc == FW_EAGAIN ? 0 : rc; /* a busy store: search what is indexed */
}

bool sq_search_query(struct fw_str words, struct fw_buf *out)
{
	struct fw_store_word w;
	bool any = false;

	while (fw_store_word_next(&words, &w)) {
		fw_buf_adds(out, any ? " \"" : "\"");
		for (size_t i = 0; i < w.text.len; i++)
			fw_buf_addc(out, w.text.p[i] ? w.text.p[i] : ' ');
		fw_buf_adds(out, w.prefix ? "\"*" : "\"");
		any = true;
	}
	return any;
}
