/* SPDX-License-Identifier: ISC */
/*
 * Rows as another store had them, in one transaction, each table by one statement; what is there already is passed over.
 *
 * Visits keep their ids, so they cannot be gathered in the rows of visit_batches: they lie one by one in visit_rows, which only a
 * load fills. The sequences go on above the highest id that was loaded.
 */
#include <stdlib.h>

#include "base/map.h"
#include "store/postgres.h"

struct loading {
	const struct fw_load *l;
	const struct fw_feed **feed; /* those that are not there yet, each once */
	struct pg_join *join, *join_of;
	size_t feed_n, join_n;
	struct fw_arena a;
};

/* ---- feeds ------------------------------------------------------------------------------------------------------------------ */

static int is_other(struct pg *p, const struct fw_feed *f, int64_t id, struct fw_err *err)
{
	return fw_err_set(err, FW_EINVAL, "%s: feed %lld (%.*s) is not the feed %lld that is here: copy into an empty store", p->name,
		(long long)f->id, FW_STR_ARG(fw_str_sub(f->url, 0, 100)), (long long)id);
}

static void ids_and_urls(struct pg *p, const struct fw_load *l)
{
	pg_array(p, PG_INT8, l->feed_n);
	for (size_t i = 0; i < l->feed_n; i++)
		pg_item_int(p, l->feed[i].id);
	pg_array(p, PG_TEXT, l->feed_n);
	for (size_t i = 0; i < l->feed_n; i++)
		pg_item_text(p, l->feed[i].url);
}

/* Leave out those that are there, with their id and url, and those that stand twice in the load. */
static int feeds_pick(struct pg *p, struct loading *q, const PGresult *there, struct fw_err *err)
{
	const struct fw_load *l = q->l;
	bool *skip = calloc(l->feed_n + 1, sizeof(*skip));
	struct fw_map ids, urls;
	int rc = skip ? 0 : pg_no_memory(p, err);

	fw_map_init(&ids, 0);
	fw_map_init(&urls, 0);
	q->feed_n = 0;
	for (int k = 0; !rc && k < PQntuples(there); k++) {
		size_t i = (size_t)pg_get_int(there, k, 0) - 1;

		skip[i] = true;
		if (pg_get_int(there, k, 1) != l->feed[i].id || !pg_get_int(there, k, 2))
			rc = is_other(p, &l->feed[i], pg_get_int(there, k, 1), err);
	}
	for (size_t i = 0; i < l->feed_n && !rc; i++) {
		const struct fw_feed *f = &l->feed[i];
		struct fw_str id = {(const char *)&f->id, sizeof(f->id)};
		struct fw_feed *by_id = fw_map_get(&ids, id), *by_url = fw_map_get(&urls, f->url);
		int full = 0;

		if (skip[i] || (by_id && by_id == by_url))
			continue;
		if (by_id || by_url) {
			rc = is_other(p, f, by_id ? by_id->id : by_url->id, err);
			break;
		}
		fw_map_put(&ids, id, (void *)(uintptr_t)f, &full);
		if (!full)
			fw_map_put(&urls, f->url, (void *)(uintptr_t)f, &full);
		rc = full ? pg_no_memory(p, err) : 0;
		q->feed[q->feed_n++] = f;
	}
	fw_map_finish(&ids);
	fw_map_finish(&urls);
	free(skip);
	return rc;
}

/* Columns of the new feeds; only what is active gets a place. */
static void feeds_put(struct pg *p, const struct loading *q)
{
	const void *const *of = (const void *const *)q->feed;
	struct fw_buf *b = &p->text;

	pg_array(p, PG_INT8, q->feed_n);
	for (size_t i = 0; i < q->feed_n; i++)
		pg_item_int(p, q->feed[i]->id);
	pg_array(p, PG_INT8, q->feed_n);
	for (size_t i = 0; i < q->feed_n; i++)
		pg_item_int(p, q->join_of[i].id);
	pg_array(p, PG_INT8, q->feed_n);
	for (size_t i = 0; i < q->feed_n; i++)
		pg_item_int(p, q->join_of[i].crowded ? q->join_of[i].id : 0);
	pg_field_arrays(p, fw_feed_fields, fw_feed_field_n, of, q->feed_n);
	fw_buf_reset(b);
	fw_buf_adds(b, "INSERT INTO feeds (id, host_id, crowd_id, ");
	pg_columns(b, "", fw_feed_fields, fw_feed_field_n);
	fw_buf_adds(b, ") SELECT * FROM unnest($1::int8[], $2::int8[], $3::int8[], ");
	pg_array_params(b, 4, fw_feed_fields, fw_feed_field_n);
	fw_buf_adds(b, ")");
	pg_send(p, PG_ONCE, b->p);

	pg_array(p, PG_INT8, q->feed_n);
	for (size_t i = 0; i < q->feed_n; i++)
		pg_item_int(p, q->feed[i]->id);
	pg_array(p, PG_INT8, q->feed_n);
	for (size_t i = 0; i < q->feed_n; i++)
		pg_item_int(p, pg_place_id(p, q->feed[i]->due_at_ms));
	pg_field_arrays(p, fw_wheel_fields, fw_wheel_field_n, of, q->feed_n);
	fw_buf_reset(b);
	fw_buf_adds(b, "WITH u AS MATERIALIZED (SELECT * FROM unnest($1::int8[], $2::int8[], ");
	pg_array_params(b, 3, fw_wheel_fields, fw_wheel_field_n);
	fw_buf_adds(b, ") u (feed_id, place_id, ");
	pg_columns(b, "", fw_wheel_fields, fw_wheel_field_n);
	fw_buf_adds(b, ")), w AS (INSERT INTO wheel (feed_id, ");
	pg_columns(b, "", fw_wheel_fields, fw_wheel_field_n);
	fw_buf_adds(b, ") SELECT feed_id, ");
	pg_columns(b, "", fw_wheel_fields, fw_wheel_field_n);
	fw_buf_adds(b, " FROM u) INSERT INTO places (id, wake_at_ms, feed_id) SELECT place_id, due_at_ms, feed_id FROM u WHERE status = 0");
	pg_send(p, PG_ONCE, b->p);
	pg_send(p, PG_ONCE, "SELECT setval(pg_get_serial_sequence('feeds', 'id'), greatest((SELECT max(id) FROM feeds),"
		" nextval(pg_get_serial_sequence('feeds', 'id')) - 1))");
}

static int feeds_load(struct pg *p, struct loading *q, struct fw_err *err)
{
	int rc;

	ids_and_urls(p, q->l);
	pg_send(p, PG_ONCE, "SELECT u.i, f.id, (f.url = u.url)::int4 FROM unnest($1::int8[], $2::text[]) WITH ORDINALITY u (id, url, i)"
		" JOIN feeds f ON f.id = u.id UNION SELECT u.i, f.id, 1 FROM unnest($1::int8[], $2::text[]) WITH ORDINALITY u (id, url, i)"
		" JOIN feeds f ON md5(f.url) = md5(u.url) AND f.url = u.url");
	rc = pg_run(p, err);
	rc = rc ? rc : feeds_pick(p, q, p->res[p->res_n - 1], err);
	if (rc || !q->feed_n)
		return rc;
	for (size_t i = 0; i < q->feed_n; i++) {
		char name[256];

		if (!fw_store_feed_host(q->feed[i], name, sizeof(name)))
			name[0] = '\0';
		q->join_of[i] = (struct pg_join){.name = fw_arena_str(&q->a, fw_str(name)), .n = 1};
		q->join[i] = q->join_of[i];
	}
	if (q->a.failed)
		return pg_no_memory(p, err);
	q->join_n = pg_joins_merge(q->join, q->feed_n);
	rc = pg_hosts_join(p, q->join, q->join_n, err);
	for (size_t i = 0; i < q->feed_n && !rc; i++)
		q->join_of[i] = *pg_join_find(q->join, q->join_n, q->join_of[i].name);
	if (!rc)
		feeds_put(p, q);
	return rc;
}

/* ---- what belongs to them ----------------------------------------------------------------------------------------------------- */

static void entries_put(struct pg *p, const struct fw_entry_row *e, size_t n, const void **of)
{
	struct fw_buf *b = &p->text;

	pg_array(p, PG_INT8, n);
	for (size_t i = 0; i < n; i++)
		pg_item_int(p, e[i].id);
	pg_array(p, PG_INT8, n);
	for (size_t i = 0; i < n; i++)
		pg_item_int(p, e[i].feed_id);
	pg_array(p, PG_UUID, n);
	for (size_t i = 0; i < n; i++)
		pg_item_str(p, (struct fw_str){(const char *)e[i].key, sizeof(e[i].key)});
	pg_array(p, PG_INT8, n);
	for (size_t i = 0; i < n; i++)
		pg_item_int(p, (int64_t)e[i].hash);
	pg_array(p, PG_INT8, n);
	for (size_t i = 0; i < n; i++) {
		pg_item_int(p, fw_store_entry_date(&e[i], e[i].seen_ms));
		of[i] = &e[i];
	}
	pg_field_arrays(p, fw_entry_fields, fw_entry_field_n, of, n);
	fw_buf_reset(b);
	fw_buf_adds(b, "WITH u AS MATERIALIZED (SELECT DISTINCT ON (u.id) * FROM unnest($1::int8[], $2::int8[], $3::uuid[], $4::int8[],"
		" $5::int8[], ");
	pg_array_params(b, 6, fw_entry_fields, fw_entry_field_n);
	fw_buf_adds(b, ") u (id, feed_id, key, hash, date_ms, ");
	pg_columns(b, "", fw_entry_fields, fw_entry_field_n);
	fw_buf_adds(b, ") WHERE NOT EXISTS (SELECT 1 FROM entries e WHERE e.id = u.id)), k AS (INSERT INTO entry_keys (feed_id, key, hash,"
		" entry_id) SELECT feed_id, key, hash, id FROM u ON CONFLICT (feed_id, key) DO NOTHING RETURNING entry_id),"
		" e AS (INSERT INTO entries (id, feed_id, key, date_ms, ");
	pg_columns(b, "", fw_entry_fields, fw_entry_field_n);
	fw_buf_adds(b, ") SELECT id, feed_id, key, date_ms, ");
	pg_columns(b, "", fw_entry_fields, fw_entry_field_n);
	fw_buf_adds(b, " FROM u JOIN k ON k.entry_id = u.id RETURNING id), c AS (INSERT INTO entries_changed SELECT id FROM e WHERE id <="
		" (SELECT value FROM meta WHERE name = 'indexed_entry_id')) INSERT INTO tally SELECT count(*) FROM e HAVING count(*) > 0");
	pg_send(p, PG_ONCE, b->p);
	pg_send(p, PG_ONCE, "SELECT setval('entries_id', greatest((SELECT max(id) FROM entries), (SELECT last_value FROM entries_id)))");
}

static void keys_put(struct pg *p, const struct fw_entry_key *k, size_t n)
{
	pg_array(p, PG_INT8, n);
	for (size_t i = 0; i < n; i++)
		pg_item_int(p, k[i].feed_id);
	pg_array(p, PG_UUID, n);
	for (size_t i = 0; i < n; i++)
		pg_item_str(p, (struct fw_str){(const char *)k[i].key, sizeof(k[i].key)});
	pg_array(p, PG_INT8, n);
	for (size_t i = 0; i < n; i++)
		pg_item_int(p, (int64_t)k[i].hash);
	pg_send(p, PG_ONCE, "INSERT INTO entry_keys (feed_id, key, hash, entry_id) SELECT *, 0 FROM unnest($1::int8[], $2::uuid[], $3::int8[])"
		" ON CONFLICT (feed_id, key) DO NOTHING");
}

static void visits_put(struct pg *p, const struct fw_visit *v, size_t n, const void **of)
{
	struct fw_buf *b = &p->text;

	pg_array(p, PG_INT8, n);
	for (size_t i = 0; i < n; i++) {
		pg_item_int(p, v[i].id);
		of[i] = &v[i];
	}
	pg_field_arrays(p, fw_visit_fields, fw_visit_field_n, of, n);
	fw_buf_reset(b);
	fw_buf_adds(b, "WITH u AS MATERIALIZED (SELECT DISTINCT ON (u.id) * FROM unnest($1::int8[], ");
	pg_array_params(b, 2, fw_visit_fields, fw_visit_field_n);
	fw_buf_adds(b, ") u (id, ");
	pg_columns(b, "", fw_visit_fields, fw_visit_field_n);
	fw_buf_adds(b, ") WHERE NOT EXISTS (SELECT 1 FROM visit_rows r WHERE r.id = u.id) AND NOT EXISTS (SELECT 1 FROM visit_batches b"
		" WHERE b.id = u.id >> 10 AND cardinality(b.feed_id) > u.id & 1023)), w AS (UPDATE wheel w SET last_visit_id ="
		" greatest(last_visit_id, s.id) FROM (SELECT feed_id, max(id) AS id FROM u GROUP BY 1) s WHERE w.feed_id = s.feed_id),"
		" r AS (INSERT INTO runs AS r (run_id, first_visit_id) SELECT run_id, min(id) FROM u WHERE run_id <> 0 GROUP BY 1"
		" ON CONFLICT (run_id) DO UPDATE SET first_visit_id = least(r.first_visit_id, excluded.first_visit_id))"
		" INSERT INTO visit_rows (id, previous_id, ");
	pg_columns(b, "", fw_visit_fields, fw_visit_field_n);
	fw_buf_adds(b, ") SELECT u.id, coalesce(lag(u.id) OVER (PARTITION BY u.feed_id ORDER BY u.id), w.last_visit_id), ");
	pg_columns(b, "u.", fw_visit_fields, fw_visit_field_n);
	fw_buf_adds(b, " FROM u JOIN wheel w ON w.feed_id = u.feed_id");
	pg_send(p, PG_ONCE, b->p);
	pg_send(p, PG_ONCE, "SELECT setval('visit_batches_id', greatest((SELECT max(id) >> 10 FROM visit_rows),"
		" nextval('visit_batches_id') - 1, 1))");
}

static int load_in(struct pg *p, void *ctx, struct fw_err *err)
{
	struct loading *q = ctx;
	const struct fw_load *l = q->l;
	const void **of = calloc(FW_MAX(l->entry_n, l->visit_n) + 1, sizeof(void *));
	int rc = of ? 0 : pg_no_memory(p, err);

	pg_begin(p);
	pg_send(p, PG_ONCE, "SET LOCAL enable_hashjoin = on");
	pg_lock(p, PG_LOCK_MEMBERS);
	if (!rc && l->feed_n)
		rc = feeds_load(p, q, err);
	if (!rc && l->entry_n)
		entries_put(p, l->entry, l->entry_n, of);
	if (!rc && l->key_n)
		keys_put(p, l->key, l->key_n);
	if (!rc && l->visit_n)
		visits_put(p, l->visit, l->visit_n, of);
	if (!rc && q->feed_n)
		pg_notify(p);
	rc = rc ? rc : pg_commit_run(p, err);
	free(of);
	return rc;
}

int pg_load(struct fw_store *st, const struct fw_load *rows, struct fw_err *err)
{
	struct loading q = {.l = rows};
	int rc;

	fw_arena_init(&q.a, 0);
	q.feed = calloc(rows->feed_n + 1, sizeof(*q.feed));
	q.join = calloc(rows->feed_n + 1, sizeof(*q.join));
	q.join_of = calloc(rows->feed_n + 1, sizeof(*q.join_of));
	rc = q.feed && q.join && q.join_of ? pg_txn(pg_of(st), load_in, &q, err) : pg_no_memory(pg_of(st), err);
	free(q.feed);
	free(q.join);
	free(q.join_of);
	fw_arena_finish(&q.a);
	return rc;
}

struct keys {
	fw_key_cb *cb;
	void *ctx;
};

static int key_show(void *ctx, struct pg *p, const PGresult *r, int row)
{
	struct keys *q = ctx;
	struct fw_entry_key k = {.feed_id = pg_get_int(r, row, 0), .hash = (uint64_t)pg_get_int(r, row, 2),
		.entry_id = pg_get_int(r, row, 3)};
	struct fw_str key = pg_get_str(r, row, 1);

	(void)p;
	memcpy(k.key, key.p, FW_MIN(key.len, sizeof(k.key)));
	return q->cb(q->ctx, &k);
}

int pg_key_list(struct fw_store *st, int64_t first_feed_id, int64_t last_feed_id, fw_key_cb *cb, void *ctx, struct fw_err *err)
{
	struct pg *p = pg_of(st);
	struct keys q = {cb, ctx};

	pg_int(p, first_feed_id);
	pg_int(p, last_feed_id);
	return pg_list(p, "SELECT feed_id, key, hash, entry_id FROM entry_keys WHERE feed_id BETWEEN $1::int8 AND $2::int8 ORDER BY feed_id",
		2000, key_show, &q, err);
}
