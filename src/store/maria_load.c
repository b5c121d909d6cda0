/* SPDX-License-Identifier: ISC */
/*
 * Rows as another store had them, in one transaction; what is there already is passed over. The columns are those of the tables in
 * fields.c. A visit is chained to the one that was the feed's last before it.
 */
#include <stdlib.h>

#include "base/hash.h"
#include "store/maria.h"

static struct fw_str key_of(const unsigned char key[16])
{
	return (struct fw_str){(const char *)key, 16};
}

static bool has(const struct mr_ids *ids, int64_t id)
{
	return ids->n && bsearch(&id, ids->at, ids->n, sizeof(id), mr_by_number);
}

/* Which of n ids (the first member behind `of` in rows of `size` bytes) the table has already: sorted. */
static int there_read(struct maria *m, const char *sql, const void *of, size_t size, size_t n, struct mr_ids *there, struct fw_err *err)
{
	int rc;

	mr_put(m, sql, "");
	for (size_t i = 0; i < n; i++) {
		int64_t id;

		memcpy(&id, (const char *)of + i * size, sizeof(id));
		fw_buf_adds(&m->sql, i ? "," : "(");
		mr_value_int(m, id);
	}
	fw_buf_addc(&m->sql, ')');
	rc = mr_ids_read(m, there, err);
	if (!rc && there->n)
		qsort(there->at, there->n, sizeof(*there->at), mr_by_number);
	return rc;
}

/* ---- feeds ------------------------------------------------------------------------------------------------------------------ */

/* 1: there already; 0: not; FW_EINVAL: its id or its url is that of another feed. */
static int feed_there(struct maria *m, const struct fw_feed *f, struct fw_err *err)
{
	struct fw_hash128 hash = fw_hash128(f->url.p, f->url.len);
	int64_t id = 0;
	bool same = false;
	struct mr_res r;
	int rc = mr_ask(m, &r, err, "SELECT id, id = ? AND url_hash = ? FROM feeds WHERE id = ? UNION SELECT id, id = ? AND url_hash = ?"
		" FROM feeds WHERE url_hash = ?", "ibiibb", f->id, key_of(hash.b), f->id, f->id, key_of(hash.b), key_of(hash.b));

	if (rc || !mr_row(&r))
		return rc;
	id = mr_int(&r, 0);
	same = mr_int(&r, 1);
	mr_done(&r);
	if (same)
		return 1;
	return fw_err_set(err, FW_EINVAL, "%s: feed %lld (%.*s) is not the feed %lld that is here: copy into an empty store", m->name,
		(long long)f->id, FW_STR_ARG(fw_str_sub(f->url, 0, 100)), (long long)id);
}

static void feed_put(struct maria *m, const struct fw_feed *f, int64_t host_id)
{
	struct fw_hash128 hash = fw_hash128(f->url.p, f->url.len);

	mr_put(m, "INSERT INTO feeds (id, host_id, url_hash", "");
	mr_names(m, fw_feed_fields, fw_feed_field_n);
	fw_buf_addf(&m->sql, ") VALUES (%lld,%lld,", (long long)f->id, (long long)host_id);
	mr_value_bytes(m, key_of(hash.b));
	mr_values(m, fw_feed_fields, fw_feed_field_n, f);
	fw_buf_addc(&m->sql, ')');
	mr_put(m, "INSERT INTO wheel (feed_id", "");
	mr_names(m, fw_wheel_fields, fw_wheel_field_n);
	fw_buf_addf(&m->sql, ") VALUES (%lld", (long long)f->id);
	mr_values(m, fw_wheel_fields, fw_wheel_field_n, f);
	fw_buf_addc(&m->sql, ')');
}

static bool came_before(const struct fw_load *l, size_t i)
{
	for (size_t k = 0; k < i; k++) {
		if (l->feed[k].id == l->feed[i].id)
			return true;
	}
	return false;
}

static int feeds_load(struct maria *m, const struct fw_load *l, struct fw_err *err)
{
	struct mr_join *join = calloc(l->feed_n + 1, sizeof(*join));
	size_t *news = calloc(l->feed_n + 1, sizeof(*news)), n = 0;
	struct mr_line line = {0};
	int rc = join && news ? 0 : mr_no_memory(m, err);

	for (size_t i = 0; i < l->feed_n && rc >= 0; i++) {
		rc = feed_there(m, &l->feed[i], err);
		if (rc || came_before(l, i))
			continue;
		join[n].url = l->feed[i].url;
		join[n].key = l->feed[i].host_key;
		news[n++] = i;
	}
	rc = rc > 0 ? 0 : rc;
	rc = rc || !n ? rc : mr_hosts_join(m, join, n, err);
	for (size_t i = 0; i < n && !rc; i++) {
		const struct fw_feed *f = &l->feed[news[i]];

		feed_put(m, f, join[i].host_id);
		if (f->status == FW_FEED_ACTIVE)
			mr_line_on(&line, f->id, f->due_at_ms, join[i].crowded ? join[i].host_id : 0, 0);
	}
	rc = rc ? rc : mr_line_write(m, &line, err);
	mr_line_finish(&line);
	free(join);
	free(news);
	return rc;
}

/* ---- what belongs to them ----------------------------------------------------------------------------------------------------- */

/*
 * An entry goes in when neither its id nor its key is there. Its key is tried first, with a number of its own that only a row put now
 * can have; then the entry follows for the keys that were new.
 */
static int entries_load(struct maria *m, const struct fw_load *l, struct fw_err *err)
{
	struct mr_rows keys = {"INSERT IGNORE INTO entry_keys (feed_id, `key`, hash, entry_id) VALUES "};
	struct mr_ids there = {0}, mine = {0};
	struct fw_buf *b = &m->sql;
	int rc;

	rc = there_read(m, "SELECT id FROM entries WHERE id IN ", &l->entry->id, sizeof(*l->entry), l->entry_n, &there, err);
	for (size_t i = 0; i < l->entry_n && !rc; i++) {
		const struct fw_entry_row *e = &l->entry[i];

		if (!has(&there, e->id))
			mr_rows_add(m, &keys, "ibii", e->feed_id, key_of(e->key), MR_INT(e->hash), e->id);
	}
	mr_rows_end(m, &keys);
	if (!rc) {
		fw_buf_adds(b, b->len ? ";" : "");
		for (size_t i = 0; i < l->entry_n; i++)
			fw_buf_addf(b, "%s(%lld,%lld)", i ? "," : "SELECT entry_id FROM entry_keys WHERE (feed_id, entry_id) IN (",
				(long long)l->entry[i].feed_id, (long long)l->entry[i].id);
		fw_buf_addc(b, ')');
		rc = mr_ids_read(m, &mine, err);
	}
	if (!rc && mine.n)
		qsort(mine.at, mine.n, sizeof(*mine.at), mr_by_number);
	for (size_t i = 0; i < l->entry_n && !rc; i++) {
		const struct fw_entry_row *e = &l->entry[i];

		if (has(&there, e->id) || !has(&mine, e->id))
			continue;
		mr_put(m, "INSERT INTO entries (id, feed_id, date_ms", "");
		mr_names(m, fw_entry_fields, fw_entry_field_n);
		fw_buf_addf(b, ") VALUES (%lld,%lld,%lld", (long long)e->id, (long long)e->feed_id,
			(long long)fw_store_entry_date(e, e->seen_ms));
		mr_values(m, fw_entry_fields, fw_entry_field_n, e);
		fw_buf_addc(b, ')');
		mr_put(m, "REPLACE INTO reindex (entry_id, since_ms) SELECT ?, ? FROM numbers WHERE name = 'indexed_entry_id' AND value >= ?",
			"iii", e->id, INT64_MAX, e->id);
		mr_put(m, "DELETE FROM gone WHERE entry_id = ?", "i", e->id);
		m->entry_d++;
	}
	free(there.at);
	free(mine.at);
	return rc;
}

static void keys_load(struct maria *m, const struct fw_load *l)
{
	struct mr_rows keys = {"INSERT IGNORE INTO entry_keys (feed_id, `key`, hash, entry_id) VALUES "};

	for (size_t i = 0; i < l->key_n; i++)
		mr_rows_add(m, &keys, "ibii", l->key[i].feed_id, key_of(l->key[i].key), MR_INT(l->key[i].hash), INT64_C(0));
	mr_rows_end(m, &keys);
}

static int visits_load(struct maria *m, const struct fw_load *l, struct fw_err *err)
{
	struct mr_ids there = {0};
	int rc = there_read(m, "SELECT id FROM visits WHERE id IN ", &l->visit->id, sizeof(*l->visit), l->visit_n, &there, err);

	for (size_t i = 0; i < l->visit_n && !rc; i++) {
		const struct fw_visit *v = &l->visit[i];

		if (has(&there, v->id))
			continue;
		mr_put(m, "INSERT INTO visits (id, previous_id", "");
		mr_names(m, fw_visit_fields, fw_visit_field_n);
		fw_buf_addf(&m->sql, ") VALUES (%lld,coalesce((SELECT last_visit_id FROM wheel WHERE feed_id=%lld),0)", (long long)v->id,
			(long long)v->feed_id);
		mr_values(m, fw_visit_fields, fw_visit_field_n, v);
		fw_buf_addc(&m->sql, ')');
		mr_put(m, "UPDATE wheel SET last_visit_id = ? WHERE feed_id = ? AND last_visit_id < ?", "iii", v->id, v->feed_id, v->id);
		mr_run_put(m, v->run_id, v->id);
		m->visit_d++;
	}
	mr_put(m, "UPDATE loans SET touched = 1", ""); /* they name last visits */
	free(there.at);
	return rc;
}

static int load_in(struct maria *m, void *arg, struct fw_err *err)
{
	const struct fw_load *l = arg;
	int rc = l->feed_n ? feeds_load(m, l, err) : 0;

	m->run_id = 0;
	if (!rc && l->entry_n)
		rc = entries_load(m, l, err);
	if (!rc)
		keys_load(m, l);
	return rc || !l->visit_n ? rc : visits_load(m, l, err);
}

int mr_load(struct fw_store *st, const struct fw_load *rows, struct fw_err *err)
{
	return mr_transact(mr_of(st), load_in, (void *)(uintptr_t)rows, err);
}

/* ---- keys --------------------------------------------------------------------------------------------------------------------- */

#define KEYS 2000 /* asked for at once */

/* Page by page, each beginning behind the last key of the one before. */
int mr_key_list(struct fw_store *st, int64_t first_feed_id, int64_t last_feed_id, fw_key_cb *cb, void *ctx, struct fw_err *err)
{
	struct maria *m = mr_of(st);
	struct fw_entry_key k = {.feed_id = first_feed_id - 1};
	bool more = true;
	int rc = 0;

	memset(k.key, 0xff, sizeof(k.key));
	while (more && !rc) {
		size_t n = 0;
		struct mr_res r;

		rc = mr_ask(m, &r, err, "SELECT feed_id, `key`, hash, entry_id FROM entry_keys WHERE feed_id <= ? AND feed_id >= ?"
			" AND (feed_id > ? OR `key` > ?) ORDER BY feed_id, `key` LIMIT ?", "iiibi", last_feed_id, k.feed_id, k.feed_id,
			key_of(k.key), MR_INT(KEYS));
		for (; !rc && mr_row(&r); n++) {
			struct fw_str key = mr_str(&r, 1);

			k = (struct fw_entry_key){.feed_id = mr_int(&r, 0), .hash = (uint64_t)mr_int(&r, 2), .entry_id = mr_int(&r, 3)};
			memcpy(k.key, key.p, FW_MIN(key.len, sizeof(k.key)));
			rc = cb(ctx, &k);
		}
		mr_done(&r);
		more = n == KEYS;
	}
	return rc;
}
