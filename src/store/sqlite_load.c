/* SPDX-License-Identifier: ISC */
/*
 * Rows as another store had them, in one transaction; what is there already is passed over. The columns are those of the tables in
 * fields.c.
 *
 * All feeds join their hosts before the first gets on the wheel, as with subscriptions. A visit is chained to the one that was the
 * feed's last before it.
 */
#include <stdlib.h>

#include "store/fields.h"
#include "store/sqlite.h"

/* ---- rows by their fields ------------------------------------------------------------------------------------------------- */

/* "verb INTO table (more, the fields) VALUES (values, a parameter for each)", prepared once. Parameters of the fields begin at 1. */
static sqlite3_stmt *row_stmt(struct sqlite *s, enum sq_id id, const char *into, const char *more, const char *values,
	const struct fw_field *f, size_t n, struct fw_err *err)
{
	struct fw_buf sql = FW_BUF_INIT(0);

	if (s->stmt[id])
		return s->stmt[id];
	fw_buf_addf(&sql, "%s (", into);
	for (size_t i = 0; i < n; i++)
		fw_buf_addf(&sql, "%s,", f[i].name);
	fw_buf_addf(&sql, "%s) VALUES (", more);
	for (size_t i = 0; i < n; i++)
		fw_buf_addf(&sql, "?%zu,", i + 1);
	fw_buf_addf(&sql, "%s)", values);
	if (sql.rc)
		fw_err_set(err, FW_ENOMEM, "%s: out of memory", s->path);
	else
		(void)sq_stmt(s, id, sql.p, err);
	fw_buf_finish(&sql);
	return s->stmt[id];
}

static int field_bind(sqlite3_stmt *q, int at, const struct fw_field *f, bool blob, const void *of)
{
	struct fw_str t;
	int64_t v;

	if (!fw_field_is_text(f)) {
		v = fw_field_int(f, of);
		return f->type == FW_FIELD_DATE && v == FW_NO_DATE ? sqlite3_bind_null(q, at) : sqlite3_bind_int64(q, at, v);
	}
	t = fw_field_str(f, of);
	if (blob || f->type == FW_FIELD_BYTES)
		return sqlite3_bind_blob64(q, at, t.p, t.len, SQLITE_STATIC);
	return sqlite3_bind_text64(q, at, t.p, t.len, SQLITE_STATIC, SQLITE_UTF8);
}

/* Bind the fields of a row and the numbers behind them, and run it; *n: rows written. */
static int row_put(struct sqlite *s, sqlite3_stmt *q, const struct fw_field *f, size_t field_n, const void *of,
	const int64_t *more, size_t more_n, int *n, struct fw_err *err)
{
	bool entry = f == fw_entry_fields; /* their content is kept as bytes */
	int rc = SQLITE_OK;

	for (size_t i = 0; i < field_n && rc == SQLITE_OK; i++)
		rc = field_bind(q, (int)i + 1, &f[i], entry && i == field_n - 1, of);
	for (size_t i = 0; i < more_n && rc == SQLITE_OK; i++)
		rc = sqlite3_bind_int64(q, (int)(field_n + i + 1), more[i]);
	if (rc != SQLITE_OK)
		return sq_error(s, "passing values", err);
	rc = sq_row(s, q, err);
	*n = rc ? 0 : sqlite3_changes(s->db);
	return rc;
}

/* ---- feeds ------------------------------------------------------------------------------------------------------------------ */

/* 1: there already; 0: not; FW_EINVAL: its id or its url is that of another feed. */
static int feed_there(struct sqlite *s, const struct fw_feed *f, struct fw_err *err)
{
	sqlite3_stmt *q = sq_ask(s, SQ_LOAD_FEED_THERE, "SELECT id = ?1 AND url = ?2, id FROM feeds WHERE id = ?1 OR url = ?2", err, "is",
		f->id, f->url);
	int rc = q ? sq_row(s, q, err) : err->rc;
	bool same;
	int64_t id;

	if (rc <= 0)
		return rc;
	same = sqlite3_column_int(q, 0);
	id = sqlite3_column_int64(q, 1);
	sqlite3_reset(q);
	if (same)
		return 1;
	return fw_err_set(err, FW_EINVAL, "%s: feed %lld (%.*s) is not the feed %lld that is here: copy into an empty store", s->path,
		(long long)f->id, FW_STR_ARG(fw_str_sub(f->url, 0, 100)), (long long)id);
}

static int feed_put(struct sqlite *s, const struct fw_feed *f, int64_t host_id, struct fw_err *err)
{
	sqlite3_stmt *feed = row_stmt(s, SQ_LOAD_FEED, "INSERT INTO feeds", "id, host_id", "?, ?", fw_feed_fields, fw_feed_field_n,
		err);
	bool crowded = false;
	int n, rc;

	if (!feed)
		return err->rc;
	rc = sq_host_crowded(s, host_id, &crowded, err);
	rc = rc ? rc : row_put(s, feed, fw_feed_fields, fw_feed_field_n, f, (int64_t[]){f->id, host_id}, 2, &n, err);
	return rc ? rc : sq_wheel_put(s, f, SQ_INT(f->status), crowded ? host_id : 0, 0, 0, err);
}

static int feeds_load(struct sqlite *s, const struct fw_feed *feed, size_t n, struct fw_err *err)
{
	int64_t *host_id = calloc(n + 1, sizeof(*host_id));
	bool crowded;
	int rc = 0;

	if (!host_id)
		return fw_err_set(err, FW_ENOMEM, "%s: load: out of memory", s->path);
	for (size_t i = 0; i < n && rc >= 0; i++) {
		rc = feed_there(s, &feed[i], err);
		if (rc == 0)
			rc = sq_host_join(s, &feed[i], &host_id[i], &crowded, err);
	}
	for (size_t i = 0; i < n && rc >= 0; i++) {
		if (!host_id[i])
			continue;
		rc = feed_there(s, &feed[i], err);
		if (rc > 0) /* twice in one load: it was counted twice */
			rc = sq_host_leave(s, host_id[i], err);
		else if (!rc)
			rc = feed_put(s, &feed[i], host_id[i], err);
	}
	free(host_id);
	return rc < 0 ? rc : 0;
}

/* ---- what belongs to them ----------------------------------------------------------------------------------------------------- */

static struct fw_str key_of(const unsigned char key[16])
{
	return (struct fw_str){(const char *)key, 16};
}

/* *n: 1 it was not there. */
static int key_put(struct sqlite *s, const struct fw_entry_key *k, int64_t entry_id, int *n, struct fw_err *err)
{
	int rc = sq_do(s, SQ_LOAD_KEY, "INSERT OR IGNORE INTO entry_keys (feed_id, key, hash, entry_id) VALUES (?, ?, ?, ?)", err, "ibii",
		k->feed_id, key_of(k->key), SQ_INT(k->hash), entry_id);

	*n = rc ? 0 : sqlite3_changes(s->db);
	return rc;
}

static int entry_load(struct sqlite *s, const struct fw_entry_row *e, struct fw_err *err)
{
	sqlite3_stmt *q = row_stmt(s, SQ_LOAD_ENTRY, "INSERT OR IGNORE INTO entries", "id, feed_id, date_ms, key",
		"?, ?, ?, ?", fw_entry_fields, fw_entry_field_n, err);
	struct fw_entry_key k = {.feed_id = e->feed_id, .hash = e->hash};
	int n, rc;

	if (!q)
		return err->rc;
	memcpy(k.key, e->key, sizeof(k.key));
	rc = key_put(s, &k, e->id, &n, err);
	if (rc || !n)
		return rc;
	if (sqlite3_bind_blob(q, (int)fw_entry_field_n + 4, k.key, sizeof(k.key), SQLITE_STATIC) != SQLITE_OK)
		return sq_error(s, "passing values", err);
	rc = row_put(s, q, fw_entry_fields, fw_entry_field_n, e, (int64_t[]){e->id, e->feed_id, fw_store_entry_date(e, e->seen_ms)}, 3,
		&n, err);
	if (rc)
		return rc;
	if (!n) /* another key has that id */
		return sq_do(s, SQ_LOAD_KEY_BACK, "DELETE FROM entry_keys WHERE feed_id = ? AND key = ?", err, "ib", k.feed_id, key_of(k.key));
	s->entry_d++;
	return sq_search_add(s, e->id, err);
}

/* The feed's last visit, where the feed stands. */
static int last_visit_set(struct sqlite *s, int64_t feed_id, const struct sq_where *w, int64_t id, struct fw_err *err)
{
	int rc;

	switch (w->table) {
	case SQ_LINE:
		return sq_do(s, SQ_LOAD_LAST_LINE, "UPDATE line SET last_visit_id = ? WHERE id = ?", err, "ii", id, w->key);
	case SQ_LEASES:
		rc = sq_lease_touch(s, w->key, err);
		return rc ? rc : sq_do(s, SQ_LOAD_LAST_LEASE, "UPDATE leases SET last_visit_id = ? WHERE fence = ?", err, "ii", id, w->key);
	default:
		return sq_do(s, SQ_LOAD_LAST_ASIDE, "UPDATE aside SET last_visit_id = ? WHERE feed_id = ?", err, "ii", id, feed_id);
	}
}

static int visit_load(struct sqlite *s, const struct fw_visit *v, struct fw_err *err)
{
	sqlite3_stmt *q = row_stmt(s, SQ_LOAD_VISIT, "INSERT OR IGNORE INTO visit_rows", "id, previous_id", "?, ?", fw_visit_fields,
		fw_visit_field_n, err);
	struct sq_where w;
	int64_t number = v->id >> 10;
	bool there = false;
	int n = 0, rc = q ? sq_visit_there(s, v->id, &there, err) : err->rc;

	if (rc || there)
		return rc;
	rc = sq_find(s, v->feed_id, NULL, &w, err);
	sq_found(&w);
	rc = rc ? rc : row_put(s, q, fw_visit_fields, fw_visit_field_n, v, (int64_t[]){v->id, w.last_visit_id}, 2, &n, err);
	if (rc || !n)
		return rc;
	s->visit_d++;
	rc = sq_number_load(s, err);
	if (!rc && s->number < number) { /* new ids go on above the highest */
		s->number = number;
		s->number_dirty = true;
	}
	if (!rc && w.last_visit_id < v->id)
		rc = last_visit_set(s, v->feed_id, &w, v->id, err);
	return rc ? rc : sq_run_put(s, v->run_id, v->id, err);
}

static int load_in(struct sqlite *s, const struct fw_load *l, struct fw_err *err)
{
	int n, rc = l->feed_n ? feeds_load(s, l->feed, l->feed_n, err) : 0;

	for (size_t i = 0; i < l->entry_n && !rc; i++)
		rc = entry_load(s, &l->entry[i], err);
	for (size_t i = 0; i < l->key_n && !rc; i++)
		rc = key_put(s, &l->key[i], 0, &n, err);
	for (size_t i = 0; i < l->visit_n && !rc; i++)
		rc = visit_load(s, &l->visit[i], err);
	return rc;
}

int sq_load(struct fw_store *st, const struct fw_load *rows, struct fw_err *err)
{
	struct sqlite *s = sqlite_of(st);
	int rc = sq_begin(s, err);

	rc = rc ? rc : sq_end(s, load_in(s, rows, err), err);
	if (rc)
		s->run_id = 0; /* whether the run was noted is unknown */
	return rc;
}

int sq_key_list(struct fw_store *st, int64_t first_feed_id, int64_t last_feed_id, fw_key_cb *cb, void *ctx, struct fw_err *err)
{
	struct sqlite *s = sqlite_of(st);
	sqlite3_stmt *q = sq_ask(s, SQ_KEYS_OF, "SELECT feed_id, key, hash, entry_id FROM entry_keys WHERE feed_id BETWEEN ? AND ?"
		" ORDER BY feed_id", err, "ii", first_feed_id, last_feed_id);
	int rc = q ? 0 : err->rc;

	while (q && (rc = sq_row(s, q, err)) > 0) {
		struct fw_entry_key k = {.feed_id = sqlite3_column_int64(q, 0), .hash = (uint64_t)sqlite3_column_int64(q, 2),
			.entry_id = sqlite3_column_int64(q, 3)};
		struct fw_str key = sq_text(q, 1);

		memcpy(k.key, key.p, FW_MIN(key.len, sizeof(k.key)));
		rc = cb(ctx, &k);
		if (rc) {
			sqlite3_reset(q);
			break;
		}
	}
	return rc;
}
