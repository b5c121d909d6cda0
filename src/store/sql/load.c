/* SPDX-License-Identifier: ISC */
/* Load rows of another store, and subscribe feeds: many at once, in few statements. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/str.h"
#include "store/fields.h"
#include "store/sql/core.h"

#define APPEND_MIN 200 /* with fewer feeds an INSERT takes fewer round trips */

/* A feed of the load. */
struct load_feed {
	const struct fw_feed *feed;
	struct fw_hash128 hash;  /* of its url */
	struct load_feed *first; /* the first of the load with this url; feeds with ids come first */
	struct load_feed *twin;  /* the first of the load with this id; NULL: it has no id yet */
	int64_t id;              /* 0: to be assigned */
	int64_t there;           /* id of the stored feed with its url; 0: none */
	bool taken;              /* a stored feed has its id */
	bool put;                /* it is to be written: */
	int64_t host_id, position;
};

struct load_work {
	struct sql *s;
	const struct store_load *l;
	struct load_feed *load_feed; /* in the order of the load */
	size_t n;
	int64_t now_ms;
	bool changed[STORE_SHARDS];
};

/* ---- find what is stored --------------------------------------------------------------------- */

static int load_url_row(void *ctx, const struct sql_row *row)
{
	struct load_work *w = ctx;

	w->load_feed[sql_int(row, 0)].there = sql_int(row, 1);
	return 0;
}

static int load_id_row(void *ctx, const struct sql_row *row)
{
	struct load_work *w = ctx;

	w->load_feed[sql_int(row, 0)].taken = true;
	return 0;
}

static int load_hash_compare(const void *a, const void *b)
{
	const struct load_feed *const *x = a, *const *y = b;

	return memcmp((*x)->hash.b, (*y)->hash.b, sizeof((*x)->hash.b));
}

/*
 * Find the urls that are stored already, in the order of their index: so each of its pages is read
 * once.
 */
static int load_find_urls(struct load_work *w, struct fw_err *err)
{
	struct sql_rows url = SQL_QUERY_ROWS(w->s, err, load_url_row, w,
		"SELECT v.nth, f.id FROM {rows} feeds f WHERE f.url_hash = v.hash", "nth:i hash:b");
	const struct load_feed **by_hash = calloc(w->n, sizeof(const struct load_feed *));

	if (!by_hash)
		return fw_no_memory(err);
	for (size_t k = 0; k < w->n; k++)
		by_hash[k] = &w->load_feed[k];
	qsort(by_hash, w->n, sizeof(const struct load_feed *), load_hash_compare);
	for (size_t k = 0; k < w->n; k++)
		sql_rows_add(&url, SQL_V(SQL_INT(by_hash[k] - w->load_feed), SQL_KEY(by_hash[k]->hash.b)));
	free(by_hash);
	return sql_rows_end(&url);
}

/* Find the urls and ids that are stored already. */
static int load_find_existing(struct load_work *w, struct fw_err *err)
{
	struct sql_rows id = SQL_QUERY_ROWS(
		w->s, err, load_id_row, w, "SELECT v.nth FROM {rows} feeds f WHERE f.id = v.number", "nth:i number:i");

	id.rc = load_find_urls(w, err);
	for (size_t k = 0; k < w->n; k++) {
		if (w->load_feed[k].id)
			sql_rows_add(&id, SQL_V(SQL_INT(k), SQL_INT(w->load_feed[k].id)));
	}
	return sql_rows_end(&id);
}

/* ---- choose ---------------------------------------------------------------------------------- */

static int load_feed_refuse(const struct load_work *w, const struct load_feed *i, int64_t there, struct fw_err *err)
{
	return fw_err_set(err, FW_EINVAL,
		"%s: feed %lld (%.*s) differs from the stored feed %lld: copy into an empty store", w->s->name,
		(long long)i->id, FW_STR_ARG(fw_str_sub(i->feed->url, 0, 100)), (long long)there);
}

/* Choose from the feeds with ids: skip those that are stored, refuse those that conflict. */
static int load_choose_with_id(struct load_work *w, struct fw_err *err)
{
	for (size_t k = 0; k < w->n; k++) {
		struct load_feed *i = &w->load_feed[k];

		if (!i->id)
			continue;
		assert(i->first && i->twin);
		if (i->twin->first != i->first)
			return load_feed_refuse(w, i, i->id, err);
		if (i->there != i->id && (i->there || i->taken))
			return load_feed_refuse(w, i, i->there ? i->there : i->id, err);
		if (i->first->id != i->id)
			return load_feed_refuse(w, i, i->first->id, err);
		i->put = !i->there && i->twin == i; /* else it is in the load twice */
	}
	return 0;
}

/*
 * Feeds without ids: those that are not stored get ids above every id ever assigned, rising in the
 * order of the load.
 */
static void load_choose_new(struct load_work *w, int64_t *last)
{
	for (size_t k = 0; k < w->n; k++) {
		struct load_feed *i = &w->load_feed[k];
		struct store_feed_new made = {i->there, true};

		if (!i->id && !i->there && i->first == i) {
			i->id = ++*last;
			i->put = true;
		}
		if (!i->there)
			made = (struct store_feed_new){i->first->id, !i->put};
		if (w->l->made)
			w->l->made[k] = made;
	}
}

/* ---- write ----------------------------------------------------------------------------------- */

FW_COMPARE(load_position_compare, struct load_feed, position)

/*
 * Write both tables in the order of their keys: feeds by id, then schedule by position. This sorts
 * the items.
 */
static int load_feeds_write(struct load_work *w, struct fw_err *err)
{
	const bool many = w->n >= APPEND_MIN;
	struct sql_rows feed = SQL_ROWS(w->s, err, "INSERT INTO feeds (id, position, url_hash, {fields feed}) {values}",
		"id:i position:i url_hash:b {feed}");
	struct sql_rows schedule = SQL_ROWS(w->s, err,
		"INSERT INTO schedule (position, host_id, {fields schedule}) {values}",
		"position:i host_id:i {schedule}");

	feed.table = many ? "feeds" : NULL;
	schedule.table = many ? "schedule" : NULL;
	for (size_t k = 0; k < w->n; k++) {
		struct load_feed *i = &w->load_feed[k];
		struct fw_feed f = *i->feed;
		int shard;

		if (!i->put)
			continue;
		assert(i->id > 0);
		i->host_id = store_feed_host_id(&f);
		shard = store_host_shard(i->host_id);
		i->position = sql_position(shard, i->id);
		w->changed[shard] = true;
		f.created_ms = f.id || f.created_ms ? f.created_ms : w->now_ms;
		sql_rows_add_fields(&feed, SQL_V(SQL_INT(i->id), SQL_INT(i->position), SQL_KEY(i->hash.b)), "feed", &f);
	}
	schedule.rc = sql_rows_end(&feed);
	qsort(w->load_feed, w->n, sizeof(*w->load_feed), load_position_compare);
	for (size_t k = 0; k < w->n; k++) {
		const struct load_feed *i = &w->load_feed[k];
		struct fw_feed f = *i->feed;

		f.due_at_ms = f.id || f.due_at_ms ? f.due_at_ms : w->now_ms;
		if (i->put)
			sql_rows_add_fields(
				&schedule, SQL_V(SQL_INT(i->position), SQL_INT(i->host_id)), "schedule", &f);
	}
	return sql_rows_end(&schedule);
}

/*
 * The counter of feed ids is locked before anything is read: so the second of two concurrent
 * subscriptions of one url sees the feed of the first.
 */
static int load_feeds_store(struct load_work *w, struct fw_err *err)
{
	int64_t last = 0, before;
	int rc = sql_query_int(w->s, "SELECT value FROM meta WHERE name = 'feed_id' {update}", SQL_NONE, 0, &last, err);

	before = last;
	for (size_t k = 0; k < w->n; k++)
		last = FW_MAX(last, w->load_feed[k].id);
	rc = rc ? rc : load_find_existing(w, err);
	rc = rc ? rc : load_choose_with_id(w, err);
	if (!rc)
		load_choose_new(w, &last);
	if (!rc && last != before)
		rc = sql_exec(w->s, "UPDATE meta SET value = ?1 WHERE name = 'feed_id'", SQL_V(SQL_INT(last)), err);
	rc = rc ? rc : sql_clock(&w->s->store, &w->now_ms, err);
	return rc ? rc : load_feeds_write(w, err);
}

/* The item that was first put under this key; i itself if it is the first. */
static struct load_feed *load_first_of(struct fw_map *m, const void *key, size_t len, struct load_feed *i, int *rc)
{
	struct fw_str k = {key, len};
	struct load_feed *first = *rc ? NULL : fw_map_add(m, k, i, rc);

	return first ? first : i;
}

static int load_feeds_prepare(struct load_work *w, struct fw_err *err)
{
	struct fw_map url, id;
	int rc = 0;

	fw_map_init(&url, 0);
	fw_map_init(&id, 0);
	for (size_t k = 0; !rc && k < w->n; k++) {
		const struct fw_feed *f = &w->l->rows.feed[k];
		struct load_feed *i = &w->load_feed[k];

		*i = (struct load_feed){.feed = f, .hash = fw_hash128(f->url.p, f->url.len), .id = f->id};
		if (f->id < 0 || f->id >> SQL_POSITION_BITS || (!f->id && !w->l->made))
			rc = fw_err_set(err, FW_EINVAL, "%s: feed %lld (%.*s): the number of a feed is out of range",
				w->s->name, (long long)f->id, FW_STR_ARG(fw_str_sub(f->url, 0, 100)));
	}
	for (size_t k = 0; !rc && k < 2 * w->n; k++) { /* first those with ids */
		struct load_feed *i = &w->load_feed[k % w->n];

		if (!i->id != (k >= w->n))
			continue;
		i->first = load_first_of(&url, i->hash.b, sizeof(i->hash.b), i, &rc);
		if (i->id)
			i->twin = load_first_of(&id, &i->id, sizeof(i->id), i, &rc);
		rc = rc ? fw_no_memory(err) : 0;
	}
	fw_map_finish(&url);
	fw_map_finish(&id);
	return rc;
}

static int load_feeds_put(struct load_work *w, struct fw_err *err)
{
	int rc;

	w->n = w->l->rows.feed_n;
	if (!w->n)
		return 0;
	w->load_feed = calloc(w->n, sizeof(*w->load_feed));
	rc = w->load_feed ? load_feeds_prepare(w, err) : fw_no_memory(err);
	rc = rc ? rc : load_feeds_store(w, err);
	free(w->load_feed);
	return rc;
}

int sql_feeds_subscribe(struct sql *s, const struct store_load *l, bool *changed, struct fw_err *err)
{
	struct load_work w = {.s = s, .l = l};
	int rc = load_feeds_put(&w, err);

	for (int i = 0; i < STORE_SHARDS; i++)
		changed[i] |= w.changed[i];
	return rc;
}

static int load_part(void *to, const struct store_load *l, struct fw_err *err)
{
	struct load_work *w = to;
	struct sql *s = w->s;
	int rc;

	w->l = l;
	rc = load_feeds_put(w, err);
	if (!rc && (l->rows.entry_n || l->rows.key_n))
		rc = sql_entries_load(s, l->rows.entry, l->rows.entry_n, l->rows.key, l->rows.key_n, err);
	if (!rc && l->rows.change_id)
		rc = sql_changes_start(s, l->rows.change_id, err);
	return rc || !l->rows.visit_n ? rc : sql_visits_load(s, l->rows.visit, l->rows.visit_n, err);
}

static int load_all(struct sql *s, void *ctx, struct fw_err *err)
{
	const struct store_load *l = ctx;
	struct load_work w = {.s = s};
	int rc = l->each ? l->each(l->ctx, load_part, &w, err) : load_part(&w, l, err);

	return rc ? rc : sql_shards_changed(s, w.changed, err);
}

int sql_load(struct store *st, const struct store_load *l, struct fw_err *err)
{
	struct store_load copy = *l;

	return sql_transaction(sql_of(st), load_all, &copy, err);
}

/* ---- keys ------------------------------------------------------------------------------------ */

#define FEEDS_AT_ONCE 50

struct key_listing {
	fw_key_cb *cb;
	void *ctx;
};

static int key_list_row(void *ctx, const struct sql_row *row)
{
	const struct key_listing *k = ctx;
	struct fw_entry_key key = {
		.feed_id = sql_int(row, 0), .hash = (uint64_t)sql_int(row, 2), .entry_id = sql_int(row, 3)};
	struct fw_str b = sql_str(row, 1);

	if (b.p)
		memcpy(key.key, b.p, FW_MIN(b.len, sizeof(key.key)));
	return k->cb(k->ctx, &key);
}

/* FEEDS_AT_ONCE feeds per statement: some client libraries buffer a whole result. */
int sql_key_list(struct store *st, int64_t first, int64_t last, fw_key_cb *cb, void *ctx, struct fw_err *err)
{
	struct sql *s = sql_of(st);
	struct key_listing k = {cb, ctx};
	int rc = 0;

	last = FW_MIN(last, (INT64_C(1) << SQL_POSITION_BITS) - 1); /* the highest possible id */
	while (!rc && first <= last) {
		int64_t next, end;

		rc = sql_query_int(s, "SELECT min(feed_id) FROM entry_keys WHERE feed_id >= ?1", SQL_V(SQL_INT(first)),
			INT64_MAX, &next, err); /* skip unused ids */
		if (rc || next > last)
			return rc;
		end = FW_MIN(last, next + FEEDS_AT_ONCE - 1);
		rc = sql_query(s,
			"SELECT feed_id, entry_key, hash, entry_id FROM entry_keys WHERE feed_id >= ?1 AND"
			" feed_id <= ?2 ORDER BY feed_id",
			SQL_V(SQL_INT(next), SQL_INT(end)), key_list_row, &k, err);
		first = end + 1;
	}
	return rc;
}
