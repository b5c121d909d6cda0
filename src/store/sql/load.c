/* SPDX-License-Identifier: ISC */
/* Subscriptions, and rows as another store had them: many at once, in a few statements. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/str.h"
#include "store/fields.h"
#include "store/sql/core.h"
#include "base/banned.h"

#define COLUMNS_MAX 48

struct item { /* a feed of the load */
	struct fw_hash128 hash;   /* of its address */
	const struct fw_feed *feed;
	struct item *first;       /* in the load, of those with this address */
	int64_t id;               /* 0: it gets one */
	int64_t there;            /* the number of the feed in the store that has its address; 0: none has */
	bool taken;               /* a feed in the store has its number */
	bool put;                 /* it is to be written: */
	int64_t host_id, place;
};

struct work {
	struct sql *s;
	const struct store_load *l;
	struct item *item;        /* as they came */
	struct item **by_hash, **by_id; /* in these orders; by_id without those that have none yet */
	size_t n, id_n;
	int64_t now_ms;
	bool changed[STORE_SHARDS];
};

static struct fw_str bytes(const struct fw_hash128 *h)
{
	return (struct fw_str){(const char *)h->b, sizeof(h->b)};
}

static int by_hash_alone(const void *a, const void *b)
{
	const struct item *x = *(struct item *const *)a, *y = *(struct item *const *)b;

	return memcmp(x->hash.b, y->hash.b, sizeof(x->hash.b));
}

/* Of one address those that have numbers come first, then as they came. */
static int by_hash(const void *a, const void *b)
{
	const struct item *x = *(struct item *const *)a, *y = *(struct item *const *)b;
	int c = by_hash_alone(a, b);

	if (c || !x->id != !y->id)
		return c ? c : x->id ? -1 : 1;
	return x < y ? -1 : x > y;
}

static int by_id_alone(const void *a, const void *b)
{
	const struct item *x = *(struct item *const *)a, *y = *(struct item *const *)b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static int by_id(const void *a, const void *b)
{
	const struct item *x = *(struct item *const *)a, *y = *(struct item *const *)b;
	int c = by_id_alone(a, b);

	return c ? c : x < y ? -1 : x > y;
}

/* ---- looking --------------------------------------------------------------------------------- */

static int there_row(void *ctx, const struct sql_row *row)
{
	struct work *w = ctx;
	struct fw_str hash = sql_str(row, 0);
	struct item key, *at = &key, **found;

	if (hash.len != sizeof(key.hash.b))
		return 0;
	memcpy(key.hash.b, hash.p, hash.len);
	found = bsearch(&at, w->by_hash, w->n, sizeof(struct item *), by_hash_alone);
	if (found)
		(*found)->first->there = sql_int(row, 1);
	return 0;
}

/* Which addresses are subscribed already? */
static int addresses_look(struct work *w, struct sql_value *v, struct fw_err *err)
{
	static const struct sql_text THERE = {
		"SELECT f.url_hash, f.id FROM {rows} JOIN feeds f ON f.url_hash = v.hash", "hash:b"};
	int rc;

	for (size_t i = 0; i < w->n; i++)
		v[i] = SQL_BLOB(bytes(&w->by_hash[i]->hash));
	rc = sql_ask_each(w->s, &THERE, v, 1, w->n, there_row, w, err);
	for (size_t i = 0; i < w->n; i++)
		w->item[i].there = w->item[i].first->there;
	return rc;
}

static int taken_row(void *ctx, const struct sql_row *row)
{
	struct work *w = ctx;
	struct item key = {.id = sql_int(row, 0)}, *at = &key;
	struct item **found = bsearch(&at, w->by_id, w->id_n, sizeof(struct item *), by_id_alone);

	while (found && found > w->by_id && found[-1]->id == key.id) /* the first of them is looked at */
		found--;
	if (found)
		(*found)->taken = true;
	return 0;
}

/* Which numbers are given already? */
static int ids_look(struct work *w, struct sql_value *v, struct fw_err *err)
{
	static const struct sql_text THERE = {"SELECT f.id FROM {rows} JOIN feeds f ON f.id = v.number", "number:i"};

	for (size_t i = 0; i < w->id_n; i++)
		v[i] = SQL_INT(w->by_id[i]->id);
	return sql_ask_each(w->s, &THERE, v, 1, w->id_n, taken_row, w, err);
}

/* ---- choosing -------------------------------------------------------------------------------- */

static int refused(const struct work *w, const struct item *i, int64_t there, struct fw_err *err)
{
	return fw_err_set(err, FW_EINVAL,
		"%s: feed %lld (%.*s) is not the feed %lld that is here: copy into an empty store", w->s->name,
		(long long)i->id, FW_STR_ARG(fw_str_sub(i->feed->url, 0, 100)), (long long)there);
}

/* Feeds with numbers: those that are here as they are, are passed over. */
static int numbered_choose(struct work *w, struct fw_err *err)
{
	for (size_t k = 0; k < w->id_n; k++) {
		struct item *i = w->by_id[k], *before = k ? w->by_id[k - 1] : NULL;

		if (before && before->id == i->id) {
			if (before->first != i->first)
				return refused(w, i, i->id, err);
			continue; /* it is in the load twice */
		}
		if (i->there != i->id && (i->there || i->taken))
			return refused(w, i, i->there ? i->there : i->id, err);
		if (i->first->id != i->id)
			return refused(w, i, i->first->id, err);
		i->put = !i->there;
	}
	return 0;
}

/*
 * Feeds without: those that are not here get numbers that rise in the order of the list, above all
 * that were ever given.
 */
static void new_choose(struct work *w, int64_t *last)
{
	for (size_t k = 0; k < w->n; k++) {
		struct item *i = &w->item[k];
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

/* ---- writing --------------------------------------------------------------------------------- */

static int by_place(const void *a, const void *b)
{
	const struct item *x = *(struct item *const *)a, *y = *(struct item *const *)b;

	return x->place < y->place ? -1 : x->place > y->place;
}

/* Those to be written. */
static struct item **places_make(struct work *w, size_t *n)
{
	struct item **put = calloc(w->n, sizeof(struct item *));

	*n = 0;
	for (size_t k = 0; put && k < w->n; k++) {
		struct item *i = &w->item[k];

		if (!i->put)
			continue;
		i->host_id = store_feed_host_id(i->feed);
		i->place = sql_place(store_host_shard(i->host_id), i->id);
		w->changed[store_host_shard(i->host_id)] = true;
		put[(*n)++] = i;
	}
	return put;
}

/* Both tables in the order in which their rows will lie. */
static int feeds_write(struct work *w, struct sql_value *v, struct fw_err *err)
{
	static const struct sql_text FEEDS = {
		"INSERT INTO feeds (id, place, url_hash, {fields feed}) {values}", "id:i place:i url_hash:b {feed}"};
	static const struct sql_text SCHEDULE = {
		"INSERT INTO schedule (place, host_id, {fields wheel}) {values}", "place:i host_id:i {wheel}"};
	struct sql_value *feed = v, *wheel = v + w->n * COLUMNS_MAX; /* columns of both: at most so many each */
	size_t rows, feed_n = 0, wheel_n = 0;
	struct item **put = places_make(w, &rows);
	int rc;

	if (!put)
		return fw_no_memory(err);
	for (size_t k = 0; k < rows; k++, feed += feed_n) {
		const struct item *i = put[k];
		struct fw_feed f = *i->feed;

		f.created_ms = f.id || f.created_ms ? f.created_ms : w->now_ms;
		feed[0] = SQL_INT(i->id);
		feed[1] = SQL_INT(i->place);
		feed[2] = SQL_BLOB(bytes(&i->hash));
		feed_n = 3 + sql_fields_get("feed", &f, feed + 3);
	}
	qsort(put, rows, sizeof(struct item *), by_place);
	for (size_t k = 0; k < rows; k++, wheel += wheel_n) {
		const struct item *i = put[k];
		struct fw_feed f = *i->feed;

		f.due_at_ms = f.id || f.due_at_ms ? f.due_at_ms : w->now_ms;
		wheel[0] = SQL_INT(i->place);
		wheel[1] = SQL_INT(i->host_id);
		wheel_n = 2 + sql_fields_get("wheel", &f, wheel + 2);
	}
	free(put);
	rc = sql_each(w->s, &FEEDS, v, feed_n, rows, err);
	return rc ? rc : sql_each(w->s, &SCHEDULE, v + w->n * COLUMNS_MAX, wheel_n, rows, err);
}

/*
 * The row of the last number is locked before anything is looked at: of two who subscribe to one
 * address at a time the second sees the first one's feed.
 */
static int feeds_store(struct work *w, struct sql_value *v, struct fw_err *err)
{
	static const struct sql_text LAST = {"SELECT value FROM numbers WHERE name = 'feed_id' {update}", NULL};
	static const struct sql_text RAISE = {"UPDATE numbers SET value = ?1 WHERE name = 'feed_id'", NULL};
	int64_t last = 0, before;
	int rc = sql_number(w->s, &LAST, NULL, 0, 0, &last, err);

	before = last;
	if (!rc && w->id_n)
		last = FW_MAX(last, w->by_id[w->id_n - 1]->id);
	rc = rc ? rc : addresses_look(w, v, err);
	rc = rc ? rc : ids_look(w, v, err);
	rc = rc ? rc : numbered_choose(w, err);
	if (!rc)
		new_choose(w, &last);
	if (!rc && last != before)
		rc = sql_do(w->s, &RAISE, (struct sql_value[]){SQL_INT(last)}, 1, err);
	rc = rc ? rc : sql_clock(&w->s->store, &w->now_ms, err);
	return rc ? rc : feeds_write(w, v, err);
}

static int items_make(struct work *w, struct fw_err *err)
{
	for (size_t k = 0; k < w->n; k++) {
		const struct fw_feed *f = &w->l->rows.feed[k];

		if (f->id < 0 || f->id >> SQL_PLACE_BITS || (!f->id && !w->l->made))
			return fw_err_set(err, FW_EINVAL, "%s: feed %lld (%.*s): no number that a feed can have",
				w->s->name, (long long)f->id, FW_STR_ARG(fw_str_sub(f->url, 0, 100)));
		w->item[k] = (struct item){.hash = fw_hash128(f->url.p, f->url.len), .feed = f, .id = f->id};
		w->by_hash[k] = &w->item[k];
		if (f->id)
			w->by_id[w->id_n++] = &w->item[k];
	}
	qsort(w->by_hash, w->n, sizeof(struct item *), by_hash);
	if (w->id_n)
		qsort(w->by_id, w->id_n, sizeof(struct item *), by_id);
	for (size_t k = 0; k < w->n; k++) {
		struct item **i = &w->by_hash[k];

		(*i)->first = k && by_hash_alone(i, i - 1) == 0 ? i[-1]->first : *i;
	}
	return 0;
}

static int feeds_put(struct work *w, struct fw_err *err)
{
	size_t n = w->n = w->l->rows.feed_n;
	struct sql_value *v = calloc(n, 2 * COLUMNS_MAX * sizeof(*v));
	int rc;

	w->item = calloc(n, sizeof(*w->item));
	w->by_hash = calloc(n, sizeof(struct item *));
	w->by_id = calloc(n, sizeof(struct item *));
	rc = v && w->item && w->by_hash && w->by_id ? items_make(w, err) : fw_no_memory(err);
	rc = rc ? rc : feeds_store(w, v, err);
	free(v);
	free(w->item);
	free(w->by_hash);
	free(w->by_id);
	return rc;
}

static int load(struct sql *s, void *ctx, struct fw_err *err)
{
	const struct store_load *l = ctx;
	struct work w = {.s = s, .l = l};
	int rc;

	rc = l->rows.feed_n ? feeds_put(&w, err) : 0;
	if (!rc && (l->rows.entry_n || l->rows.key_n))
		rc = sql_entries_load(w.s, l->rows.entry, l->rows.entry_n, l->rows.key, l->rows.key_n, err);
	if (!rc && l->rows.visit_n)
		rc = sql_visits_load(w.s, l->rows.visit, l->rows.visit_n, err);
	return rc ? rc : sql_shards_changed(s, w.changed, err);
}

int sql_load(struct store *st, const struct store_load *l, struct fw_err *err)
{
	struct store_load copy = *l;

	return sql_transaction(sql_of(st), load, &copy, err);
}

/* ---- keys ------------------------------------------------------------------------------------ */

#define FEEDS_AT_ONCE 50

struct keys {
	fw_key_cb *cb;
	void *ctx;
};

static int key_row(void *ctx, const struct sql_row *row)
{
	const struct keys *k = ctx;
	struct fw_entry_key key = {
		.feed_id = sql_int(row, 0), .hash = (uint64_t)sql_int(row, 2), .entry_id = sql_int(row, 3)};
	struct fw_str b = sql_str(row, 1);

	memcpy(key.key, b.p, FW_MIN(b.len, sizeof(key.key)));
	return k->cb(k->ctx, &key);
}

/* So many feeds at once: some engines hold a whole answer in memory. */
int sql_key_list(struct store *st, int64_t first, int64_t last, fw_key_cb *cb, void *ctx, struct fw_err *err)
{
	static const struct sql_text KEYS = {"SELECT feed_id, entry_key, hash, entry_id FROM entry_keys WHERE feed_id "
					     ">= ?1 AND feed_id <= ?2 ORDER BY feed_id",
		NULL};
	static const struct sql_text NEXT = {"SELECT min(feed_id) FROM entry_keys WHERE feed_id >= ?1", NULL};
	struct sql *s = sql_of(st);
	struct keys k = {cb, ctx};
	int rc = 0;

	last = FW_MIN(last, (INT64_C(1) << SQL_PLACE_BITS) - 1); /* no feed has a higher number */
	while (!rc && first <= last) {
		int64_t next, end;

		rc = sql_number(s, &NEXT, (struct sql_value[]){SQL_INT(first)}, 1, INT64_MAX, &next,
			err); /* over numbers that are not there */
		if (rc || next > last)
			return rc;
		end = FW_MIN(last, next + FEEDS_AT_ONCE - 1);
		rc = sql_ask(s, &KEYS, (struct sql_value[]){SQL_INT(next), SQL_INT(end)}, 2, key_row, &k, NULL, err);
		first = end + 1;
	}
	return rc;
}
