/* SPDX-License-Identifier: ISC */
/*
 * Entries: stored once per (feed, key).
 *
 * `entry_keys` holds key and hash of every entry a feed ever had, together per feed: a document that brings nothing new is
 * compared there and never touches `entries`. It also remembers what retention took away, so that an entry its feed still
 * lists does not come back as new.
 *
 * `entries` grows at its end, in the order of storing; id is the cursor. content is the last column but the key, so that lists that
 * do not ask for them stop reading before it.
 */
#include <stdlib.h>

#include "base/hash.h"
#include "store/sqlite.h"

/* ---- storing ------------------------------------------------------------------------------------------------------------ */

struct known { /* what the feed already has of one of these entries */
	bool found;
	int64_t entry_id; /* 0: retention took it */
	uint64_t hash;
};

static struct fw_str key_of(const struct fw_entry_row *e)
{
	return (struct fw_str){(const char *)e->key, sizeof(e->key)};
}

/* Does the feed have any? A first visit need not ask for each. */
static int keys_any(struct sqlite *s, int64_t feed_id, bool *any, struct fw_err *err)
{
	sqlite3_stmt *q = sq_ask(s, SQ_KEYS_ANY, "SELECT 1 FROM entry_keys WHERE feed_id = ? LIMIT 1", err, "i", feed_id);
	int rc = q ? sq_row(s, q, err) : err->rc;

	*any = rc > 0;
	if (rc > 0)
		sqlite3_reset(q);
	return rc < 0 ? rc : 0;
}

static int known_get(struct sqlite *s, int64_t feed_id, const struct fw_entry_row *e, struct known *k, struct fw_err *err)
{
	sqlite3_stmt *q = sq_ask(s, SQ_ENTRY_KNOWN, "SELECT entry_id, hash FROM entry_keys WHERE feed_id = ? AND key = ?", err, "ib",
		feed_id, key_of(e));
	int rc = q ? sq_row(s, q, err) : err->rc;

	*k = (struct known){.found = rc > 0};
	if (rc <= 0)
		return rc;
	k->entry_id = sqlite3_column_int64(q, 0);
	k->hash = (uint64_t)sqlite3_column_int64(q, 1);
	sqlite3_reset(q);
	return 0;
}

static int entry_new(struct sqlite *s, int64_t feed_id, const struct fw_entry_row *e, int64_t now, struct fw_err *err)
{
	int rc = sq_do(s, SQ_ENTRY_PUT, "INSERT INTO entries (feed_id, date_ms, seen_ms, changed_ms, revision, published_ms, updated_ms,"
		" content_type, guid, url, title, author, content_base, summary, extra, content, key)"
		" VALUES (?1,?2,?3,?3,1,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15)", err, "iiiddisssssssbb", feed_id, fw_store_entry_date(e, now), now,
		e->published_ms, e->updated_ms, SQ_INT(e->content_type), e->guid, e->url, e->title, e->author, e->content_base,
		e->summary, e->extra, e->content, key_of(e));

	return rc ? rc : sq_do(s, SQ_KEY_PUT, "INSERT INTO entry_keys (feed_id, key, hash, entry_id) VALUES (?, ?, ?, ?)", err, "ibii",
		feed_id, key_of(e), SQ_INT(e->hash), SQ_INT(sqlite3_last_insert_rowid(s->db)));
}

/* Another hash than last time. What retention took stays away. */
static int entry_change(struct sqlite *s, int64_t feed_id, const struct known *k, const struct fw_entry_row *e, int64_t now,
	struct fw_err *err)
{
	int rc = sq_do(s, SQ_KEY_CHANGE, "UPDATE entry_keys SET hash = ?1 WHERE feed_id = ?2 AND key = ?3", err, "iib",
		SQ_INT(e->hash), feed_id, key_of(e));

	if (rc || !k->entry_id)
		return rc;
	rc = sq_search_forget(s, k->entry_id, err);
	rc = rc ? rc : sq_do(s, SQ_ENTRY_CHANGE, "UPDATE entries SET date_ms = min(seen_ms, ?1), changed_ms = ?2,"
		" revision = revision + 1, published_ms = ?3, updated_ms = ?4, content_type = ?5, guid = ?6, url = ?7, title = ?8,"
		" author = ?9, content_base = ?10, summary = ?11, extra = ?12, content = ?13 WHERE id = ?14", err, "iiddisssssssbi",
		fw_store_entry_date(e, INT64_MAX), now, e->published_ms, e->updated_ms, SQ_INT(e->content_type), e->guid, e->url, e->title,
		e->author, e->content_base, e->summary, e->extra, e->content, k->entry_id);
	return rc ? rc : sq_search_add(s, k->entry_id, err);
}

/* Of entries with one key in one document the first counts; later ones would overwrite each other at every visit. */
struct seen {
	uint32_t *slot; /* index + 1 of an entry; 0: free */
	size_t mask;
};

static bool seen_before(struct seen *t, const struct fw_entry_row *row, size_t i)
{
	size_t at = (size_t)fw_hash64(row[i].key, sizeof(row[i].key)) & t->mask;

	while (t->slot[at]) {
		if (memcmp(row[t->slot[at] - 1].key, row[i].key, sizeof(row[i].key)) == 0)
			return true;
		at = (at + 1) & t->mask;
	}
	t->slot[at] = (uint32_t)i + 1;
	return false;
}

int sq_entries_put(struct sqlite *s, int64_t feed_id, const struct fw_entry_row *row, size_t n, int64_t now_ms,
	struct fw_visit *v, struct fw_err *err)
{
	struct seen t = {NULL, 15};
	bool any;
	int rc = keys_any(s, feed_id, &any, err);

	if (rc)
		return rc;
	while (t.mask < n * 2)
		t.mask = t.mask * 2 + 1;
	t.slot = calloc(t.mask + 1, sizeof(*t.slot));
	if (!t.slot)
		return fw_err_set(err, FW_ENOMEM, "%s: storing entries: out of memory", s->path);
	for (size_t i = 0; i < n && !rc; i++) {
		struct known k = {.found = false};

		if (seen_before(&t, row, i))
			continue;
		rc = any ? known_get(s, feed_id, &row[i], &k, err) : 0;
		if (rc || (k.found && k.hash == row[i].hash))
			continue;
		if (k.found) {
			rc = entry_change(s, feed_id, &k, &row[i], now_ms, err);
			v->changed_n += k.entry_id != 0;
		} else {
			rc = entry_new(s, feed_id, &row[i], now_ms, err);
			s->entry_d++;
			v->new_n++;
		}
	}
	free(t.slot);
	return rc;
}

/* ---- forgetting --------------------------------------------------------------------------------------------------------- */

static int entry_drop(struct sqlite *s, int64_t id, struct fw_err *err)
{
	int rc = sq_search_forget(s, id, err);

	rc = rc ? rc : sq_do(s, SQ_ENTRY_DROP, "DELETE FROM entries WHERE id = ?", err, "i", id);
	s->entry_d -= rc ? 0 : sqlite3_changes(s->db);
	return rc;
}

int sq_entries_drop(struct sqlite *s, int64_t feed_id, struct fw_err *err)
{
	sqlite3_stmt *q = sq_ask(s, SQ_KEY_ENTRIES, "SELECT entry_id FROM entry_keys WHERE feed_id = ? AND entry_id > 0", err, "i",
		feed_id);
	int rc = q ? 0 : err->rc;

	while (q && (rc = sq_row(s, q, err)) > 0) {
		rc = entry_drop(s, sqlite3_column_int64(q, 0), err);
		if (rc) {
			sqlite3_reset(q);
			break;
		}
	}
	return rc ? rc : sq_do(s, SQ_KEYS_DROP, "DELETE FROM entry_keys WHERE feed_id = ?", err, "i", feed_id);
}

int sq_entries_merge(struct sqlite *s, int64_t from_id, int64_t into_id, struct fw_err *err)
{
	int rc = sq_do(s, SQ_MERGE_ENTRIES, "UPDATE entries SET feed_id = ?2 WHERE id IN (SELECT entry_id FROM entry_keys WHERE feed_id = ?1"
		" AND entry_id > 0 AND key NOT IN (SELECT key FROM entry_keys WHERE feed_id = ?2)) AND (coalesce(guid, '') = '' OR guid NOT IN"
		" (SELECT e.guid FROM entry_keys k JOIN entries e ON e.id = k.entry_id WHERE k.feed_id = ?2 AND e.guid IS NOT NULL))", err, "ii",
		from_id, into_id);

	return rc ? rc : sq_do(s, SQ_MERGE_KEYS, "UPDATE entry_keys SET feed_id = ?2 WHERE feed_id = ?1 AND entry_id > 0"
		" AND (SELECT feed_id FROM entries WHERE id = entry_id) = ?2", err, "ii", from_id, into_id);
}

#define LOOK_STEP 2000 /* rows looked at in one go */
#define DROP_STEP 200  /* and dropped in one transaction */

struct old {
	int64_t id, feed_id;
	bool walk; /* its key is found among all of its feed only: it was stored by an older schema */
};

static int by_feed(const void *a, const void *b)
{
	const struct old *x = a, *y = b;

	return x->feed_id < y->feed_id ? -1 : x->feed_id > y->feed_id;
}

/* The next old entries, up to max; *after_id moves on, -1 at the end. */
static int old_find(struct sqlite *s, int64_t before_ms, int64_t *after_id, struct old *old, size_t max, size_t *n, struct fw_err *err)
{
	sqlite3_stmt *q = sq_ask(s, SQ_PRUNE_OLD, "SELECT id, feed_id, changed_ms FROM entries WHERE id > ? ORDER BY id LIMIT ?", err,
		"ii", *after_id, SQ_INT(LOOK_STEP));
	int rc = q ? 0 : err->rc, row_n = 0;

	*n = 0;
	while (q && *n < max && (rc = sq_row(s, q, err)) > 0) {
		row_n++;
		*after_id = sqlite3_column_int64(q, 0);
		if (sqlite3_column_int64(q, 2) < before_ms)
			old[(*n)++] = (struct old){.id = *after_id, .feed_id = sqlite3_column_int64(q, 1)};
	}
	if (rc > 0) {
		sqlite3_reset(q);
		return 0;
	}
	if (row_n < LOOK_STEP)
		*after_id = -1;
	return rc;
}

/* Its key stays, without it. */
static int key_empty(struct sqlite *s, struct old *o, struct fw_err *err)
{
	int rc = sq_do(s, SQ_KEY_EMPTY, "UPDATE entry_keys SET entry_id = 0 WHERE feed_id = ?1 AND key = (SELECT key FROM entries WHERE id = ?2)"
		" AND entry_id = ?2", err, "ii", o->feed_id, o->id);

	o->walk = !rc && !sqlite3_changes(s->db);
	return rc;
}

static int drop_in(struct sqlite *s, int64_t before_ms, int64_t *after_id, size_t *n, struct fw_err *err)
{
	struct old old[DROP_STEP];
	int rc = old_find(s, before_ms, after_id, old, FW_N(old), n, err);

	for (size_t i = 0; i < *n && !rc; i++) {
		rc = key_empty(s, &old[i], err);
		rc = rc ? rc : entry_drop(s, old[i].id, err);
	}
	if (*n)
		qsort(old, *n, sizeof(*old), by_feed);
	for (size_t i = 0; i < *n && !rc; i++) { /* each feed's keys are walked once, however many of them go */
		if (old[i].walk && (!i || !old[i - 1].walk || old[i].feed_id != old[i - 1].feed_id))
			rc = sq_do(s, SQ_KEYS_EMPTY, "UPDATE entry_keys SET entry_id = 0 WHERE feed_id = ?1 AND entry_id > 0"
				" AND NOT EXISTS (SELECT 1 FROM entries WHERE id = entry_id)", err, "i", old[i].feed_id);
	}
	return rc;
}

int sq_entries_prune(struct sqlite *s, int64_t before_ms, int64_t *after_id, int64_t *done, struct fw_err *err)
{
	int64_t after = *after_id;
	struct old first;
	size_t n = 0;
	int rc = old_find(s, before_ms, &after, &first, 1, &n, err);

	*done = 0;
	if (rc || !n) { /* nobody has to wait for us */
		*after_id = rc ? *after_id : after;
		return rc;
	}
	rc = sq_begin(s, err);
	if (rc)
		return rc;
	after = *after_id;
	rc = sq_end(s, drop_in(s, before_ms, &after, &n, err), err);
	*after_id = rc ? *after_id : after;
	*done = rc ? 0 : (int64_t)n;
	return rc;
}

/* ---- reading -------------------------------------------------------------------------------------------------------------- */

/* The ids in order: sorting carries two numbers a row, whatever the entries weigh. */
static void ids_sql(const struct fw_entry_query *q, bool search, struct fw_buf *b)
{
	fw_buf_adds(b, search ? "SELECT e.id FROM entries_fts s CROSS JOIN entries e ON e.id = s.rowid WHERE entries_fts MATCH ?5" :
		"SELECT e.id FROM entries e WHERE 1");
	if (q->feed_id)
		fw_buf_adds(b, search ? " AND +e.feed_id = ?1" : " AND e.id IN (SELECT entry_id FROM entry_keys WHERE feed_id = ?1)");
	if (q->since_ms)
		fw_buf_adds(b, " AND e.seen_ms >= ?2");
	if (q->after_id || q->since_ms)
		fw_buf_adds(b, " AND e.id > ?3");
	if (q->before_id)
		fw_buf_adds(b, " AND e.id < ?4");
	if (q->behind_id)
		fw_buf_adds(b, " AND (e.date_ms, e.id) < (?7, ?8)");
	if (q->oldest_first)
		fw_buf_adds(b, " ORDER BY e.id");
	else /* the index by date is of use only when most rows qualify */
		fw_buf_adds(b, q->since_ms || q->after_id ? " ORDER BY +e.date_ms DESC, e.id DESC" : " ORDER BY e.date_ms DESC, e.id DESC");
	fw_buf_adds(b, " LIMIT ?6");
}

#define SEEN_SLACK_MS 60000 /* ids rise with seen_ms, but for clocks and processes that differ by less than this */

/* An id that all entries seen at or after since_ms are above. */
static int since_id(struct sqlite *s, int64_t since_ms, int64_t *id, struct fw_err *err)
{
	int64_t hi;
	int rc = sq_int(s, SQ_ENTRY_LAST, "SELECT max(id) FROM entries", 0, &hi, err);

	*id = 0;
	while (!rc && *id < hi) { /* above *id: unknown; above hi: seen late enough */
		int64_t mid = *id + (hi - *id) / 2 + 1;
		sqlite3_stmt *q = sq_ask(s, SQ_ENTRY_SEEN, "SELECT id, seen_ms FROM entries WHERE id >= ? ORDER BY id LIMIT 1", err, "i", mid);

		rc = q ? sq_row(s, q, err) : err->rc;
		if (rc < 0)
			return rc;
		if (rc == 0 || sqlite3_column_int64(q, 1) >= since_ms - SEEN_SLACK_MS)
			hi = mid - 1;
		else
			*id = sqlite3_column_int64(q, 0);
		sqlite3_reset(q);
		rc = 0;
	}
	return rc;
}

#define ENTRY_ROW(more) "SELECT e.id, e.feed_id, e.guid, e.url, e.title, e.author, e.summary, e.content_type, e.published_ms," \
	" e.updated_ms, e.seen_ms, e.changed_ms, e.revision, e.extra, coalesce(nullif(f.user_title, ''), f.title), f.url," more \
	" FROM entries e CROSS JOIN feeds f ON f.id = e.feed_id WHERE e.id = ?"

static void entry_read(sqlite3_stmt *r, struct fw_entry_row *e)
{
	int c = 0;

	*e = (struct fw_entry_row){.id = sqlite3_column_int64(r, c++)};
	e->feed_id = sqlite3_column_int64(r, c++);
	e->guid = sq_text(r, c++);
	e->url = sq_text(r, c++);
	e->title = sq_text(r, c++);
	e->author = sq_text(r, c++);
	e->summary = sq_text(r, c++);
	e->content_type = (enum fw_text_type)sqlite3_column_int(r, c++);
	e->published_ms = sq_date(r, c++);
	e->updated_ms = sq_date(r, c++);
	e->seen_ms = sqlite3_column_int64(r, c++);
	e->changed_ms = sqlite3_column_int64(r, c++);
	e->revision = (uint32_t)sqlite3_column_int64(r, c++);
	e->extra = sq_text(r, c++);
	e->feed_title = sq_text(r, c++);
	e->feed_url = sq_text(r, c++);
	e->content = sq_text(r, c++);
	e->content_base = sq_text(r, c);
}

/* Key and hash live in another table, and few ask. */
static int entry_key_read(struct sqlite *s, struct fw_entry_row *e, struct fw_err *err)
{
	sqlite3_stmt *q = sq_ask(s, SQ_KEY_AT, "SELECT k.key, k.hash FROM entries e CROSS JOIN entry_keys k ON k.feed_id = e.feed_id"
		" AND k.key = e.key WHERE e.id = ?", err, "i", e->id);
	int rc = q ? sq_row(s, q, err) : err->rc;
	struct fw_str k;

	if (!rc) { /* stored by an older schema: its feed's keys are walked through */
		q = sq_ask(s, SQ_KEY_OF, "SELECT key, hash FROM entry_keys WHERE feed_id = ? AND entry_id = ?", err, "ii", e->feed_id, e->id);
		rc = q ? sq_row(s, q, err) : err->rc;
	}
	if (rc <= 0)
		return rc;
	k = sq_text(q, 0);
	memcpy(e->key, k.p, FW_MIN(k.len, sizeof(e->key)));
	e->hash = (uint64_t)sqlite3_column_int64(q, 1);
	sqlite3_reset(q);
	return 0;
}

/* Show one entry. What the callback returns is returned. */
static int entry_show(struct sqlite *s, int64_t id, const struct fw_entry_query *ask, fw_entry_cb *cb, void *ctx,
	struct fw_err *err)
{
	sqlite3_stmt *r = ask->content ?
		sq_ask(s, SQ_ENTRY_WHOLE, ENTRY_ROW(" e.content, e.content_base"), err, "i", id) :
		sq_ask(s, SQ_ENTRY_ROW, ENTRY_ROW(" NULL, NULL"), err, "i", id);
	int rc = r ? sq_row(s, r, err) : err->rc;
	struct fw_entry_row e;

	if (rc <= 0)
		return rc;
	entry_read(r, &e);
	rc = ask->key ? entry_key_read(s, &e, err) : 0;
	rc = rc ? rc : cb(ctx, &e);
	sqlite3_reset(r);
	return rc;
}

int sq_entry_list(struct fw_store *st, const struct fw_entry_query *q, fw_entry_cb *cb, void *ctx, struct fw_err *err)
{
	struct sqlite *s = sqlite_of(st);
	struct fw_buf sql = FW_BUF_INIT(0), words = FW_BUF_INIT(0);
	bool search = q->search.p && sq_search_query(q->search, &words);
	int64_t since = 0;
	sqlite3_stmt *r = NULL;
	int rc = 0;

	ids_sql(q, search, &sql);
	if (sql.rc || words.rc)
		rc = fw_err_set(err, FW_ENOMEM, "%s: entry list: out of memory", s->path);
	if (!rc && search)
		rc = sq_search_catch_up(s, q->unindexed_n, err);
	if (!rc && q->since_ms)
		rc = since_id(s, q->since_ms, &since, err);
	if (!rc && sqlite3_prepare_v2(s->db, sql.p, -1, &r, NULL) != SQLITE_OK)
		rc = sq_error(s, "listing entries", err);
	if (!rc) {
		sqlite3_bind_int64(r, 1, q->feed_id);
		sqlite3_bind_int64(r, 2, q->since_ms);
		sqlite3_bind_int64(r, 3, FW_MAX(q->after_id, since));
		sqlite3_bind_int64(r, 4, q->before_id);
		sqlite3_bind_text64(r, 5, words.p, words.len, SQLITE_STATIC, SQLITE_UTF8);
		sqlite3_bind_int64(r, 6, q->limit ? SQ_INT(q->limit) : -1);
		sqlite3_bind_int64(r, 7, q->behind_date_ms);
		sqlite3_bind_int64(r, 8, q->behind_id);
		while ((rc = sq_row(s, r, err)) > 0) {
			rc = entry_show(s, sqlite3_column_int64(r, 0), q, cb, ctx, err);
			if (rc)
				break;
		}
	}
	sqlite3_finalize(r);
	fw_buf_finish(&sql);
	fw_buf_finish(&words);
	return rc;
}
