/* SPDX-License-Identifier: ISC */
/* Loading: new subscriptions, and rows copied from another store. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "store/redis/redis.h"

#define TRIES 20

/* a feed of the load */
struct redis_load_feed {
	const struct fw_feed *feed;
	struct redis_load_feed *first; /* the first one in the load with this address */
	int64_t id;                    /* 0: not assigned yet */
	int64_t there;                 /* id of the stored feed that has its address; 0: none */
	bool taken;                    /* a stored feed has its id */
	bool put;                      /* to be written */
};

struct redis_load {
	struct rs *r;
	const struct store_load *l;
	struct redis_load_feed *item;
	size_t n;
	int64_t now_ms;
};

/* ---- reading --------------------------------------------------------------------------------- */

static int load_find_duplicates(struct redis_load *w, struct fw_err *err)
{
	struct fw_map url;
	int rc = 0;

	fw_map_init(&url, 0);
	for (int numbered = 1; !rc && numbered >= 0;
		numbered--) { /* with ids first: they win over new feeds of the same address */
		for (size_t i = 0; !rc && i < w->n; i++) {
			struct redis_load_feed *at = &w->item[i];

			if ((at->feed->id != 0) != numbered)
				continue;
			at->first = fw_map_add(&url, at->feed->url, at, &rc);
			if (!at->first)
				at->first = at;
		}
	}
	fw_map_finish(&url);
	return rc ? rs_no_memory(w->r, err) : 0;
}

static int load_feeds_read(struct redis_load *w, struct fw_err *err)
{
	int64_t *id = fw_arena_calloc(&w->r->arena, w->n + 1, sizeof(*id));
	const struct rs_reply **row;
	int rc;

	if (!id)
		return rs_no_memory(w->r, err);
	rs_command_key(w->r, RS_META, "HMGET", "urls");
	rs_expect_n(w->r, "(t?)=", w->n);
	for (size_t i = 0; i < w->n; i++)
		rs_add(w->r, w->item[i].feed->url);
	rc = rs_run(w->r, "finding addresses", err);
	for (size_t i = 0; !rc && i < w->n; i++)
		id[i] = rs_int(rs_elem(w->r->reply[0], i));
	rc = rc ? rc : rs_feed_rows_read(w->r, id, w->n, &row, err);
	for (size_t i = 0; !rc && i < w->n; i++) {
		w->item[i].there = rs_row_has_url(row[i], w->item[i].feed->url) ? id[i] : 0;
		id[i] = w->item[i].feed->id;
	}
	rc = rc ? rc : rs_feed_rows_read(w->r, id, w->n, &row, err);
	for (size_t i = 0; !rc && i < w->n; i++)
		w->item[i].taken = row[i]->type == RS_TEXT;
	return rc;
}

/* ---- plan ------------------------------------------------------------------------------------ */

static int load_refuse(const struct redis_load *w, const struct redis_load_feed *i, int64_t there, struct fw_err *err)
{
	return fw_err_set(err, FW_EINVAL,
		"%s: feed %lld (%.*s) differs from the stored feed %lld: copy into an empty store", w->r->target.name,
		(long long)i->feed->id, FW_STR_ARG(fw_str_sub(i->feed->url, 0, 100)), (long long)there);
}

static int load_feed_by_id(const void *a, const void *b)
{
	const struct redis_load_feed *x = *(struct redis_load_feed *const *)a, *y = *(struct redis_load_feed *const *)b;

	if (x->feed->id != y->feed->id)
		return x->feed->id < y->feed->id ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* Feeds with ids. A feed that is stored unchanged is skipped. *last: the highest id. */
static int load_plan_existing_ids(struct redis_load *w, int64_t *last, struct fw_err *err)
{
	struct redis_load_feed **list = fw_arena_calloc(&w->r->arena, w->n + 1, sizeof(struct redis_load_feed *));
	size_t n = 0;

	*last = 0;
	if (!list)
		return rs_no_memory(w->r, err);
	for (size_t i = 0; i < w->n; i++) {
		if (w->item[i].feed->id)
			list[n++] = &w->item[i];
	}
	if (n)
		qsort(list, n, sizeof(struct redis_load_feed *), load_feed_by_id);
	for (size_t k = 0; k < n; k++) {
		struct redis_load_feed *i = list[k], *before = k ? list[k - 1] : NULL;

		assert(i->first);
		if (before && before->feed->id == i->feed->id) {
			if (before->first != i->first)
				return load_refuse(w, i, i->feed->id, err);
			continue; /* twice in the load */
		}
		if (i->there != i->feed->id && (i->there || i->taken))
			return load_refuse(w, i, i->there ? i->there : i->feed->id, err);
		if (i->first->feed->id != i->feed->id)
			return load_refuse(w, i, i->first->feed->id, err);
		i->id = i->feed->id;
		i->put = !i->there;
		*last = i->id;
	}
	return 0;
}

/* Feeds without ids: those that are not stored get rising ids in the order of the load. */
static int load_plan_new_ids(struct redis_load *w, struct fw_err *err)
{
	int64_t n = 0, last;
	int rc;

	for (size_t k = 0; k < w->n; k++) {
		struct redis_load_feed *i = &w->item[k];

		if (!i->feed->id && !i->there && i->first == i)
			i->put = ++n;
	}
	if (!n)
		return 0;
	rs_command_key(w->r, RS_META, "HINCRBY", "meta");
	rs_adds(w->r, "feed_id");
	rs_addi(w->r, n);
	rs_expect(w->r, "i");
	rc = rs_run(w->r, "reserving ids", err);
	last = rc ? 0 : rs_int(w->r->reply[0]) - n;
	for (size_t k = 0; !rc && k < w->n; k++) {
		if (!w->item[k].feed->id && w->item[k].put)
			w->item[k].id = ++last;
	}
	assert(rc || last == rs_int(w->r->reply[0])); /* all reserved ids are used */
	return rc;
}

/* ---- writing --------------------------------------------------------------------------------- */

static int last_id_raise(struct rs *r, const char *name, int64_t last, struct fw_err *err)
{
	if (!last)
		return 0;
	rs_call(r, RS_META, RS_WRITE, "raise");
	rs_adds(r, name);
	rs_addi(r, last);
	rs_expect(r, "i");
	return rs_run(r, "reserving ids", err);
}

/* The log of changes starts above this number, unless the store has used it. */
static int change_id_load(struct rs *r, int64_t last, struct fw_err *err)
{
	int rc = last_id_raise(r, "entry_id", last, err);

	return rc || !rs_int(r->reply[0]) ? rc : last_id_raise(r, "changes_pruned_id", last, err);
}

static void load_feed_add(struct redis_load *w, const struct redis_load_feed *i)
{
	struct fw_feed f = *i->feed;

	f.due_at_ms = f.id || f.due_at_ms ? f.due_at_ms : w->now_ms;
	f.created_ms = f.id || f.created_ms ? f.created_ms : w->now_ms;
	rs_addi(w->r, i->id);
	rs_schedule_row_pack(rs_word(w->r), &f, &(struct rs_schedule_row){.host_id = store_feed_host_id(i->feed)});
	rs_word_end(w->r);
	rs_feed_row_pack(rs_word(w->r), FW_STR_NONE, ~0u, &f);
	rs_word_end(w->r);
}

/*
 * Most addresses are free: claim all at once, then one by one those that another process has.
 * *again: another process stored a feed with one of these addresses.
 */
static int load_urls_claim(struct redis_load *w, bool *again, struct fw_err *err)
{
	const struct rs_reply *owner_ids;
	size_t n = 0;
	int rc;

	for (size_t k = 0; k < w->n; k++)
		n += w->item[k].put;
	if (!n)
		return 0;
	rs_call(w->r, RS_META, RS_WRITE, "url_claim");
	rs_expect_n(w->r, "(t)=", n);
	rs_addi(w->r, (int64_t)n);
	for (size_t k = 0; k < w->n; k++) {
		if (!w->item[k].put)
			continue;
		rs_add(w->r, w->item[k].feed->url);
		rs_addi(w->r, w->item[k].id);
		rs_adds(w->r, "");
	}
	rc = rs_run(w->r, "claiming addresses", err);
	owner_ids = rc ? NULL : w->r->reply[0];
	n = 0;
	for (size_t k = 0; !rc && k < w->n; k++) {
		int64_t owner_id;

		if (!w->item[k].put || rs_int(rs_elem(owner_ids, n++)) == w->item[k].id)
			continue;
		rc = rs_url_claim(w->r, w->item[k].feed->url, w->item[k].id, &owner_id, err);
		*again |= !rc && owner_id != w->item[k].id;
		w->item[k].put &= owner_id == w->item[k].id;
	}
	return rc;
}

static int load_feeds_create(struct redis_load *w, bool *again, struct fw_err *err)
{
	size_t n[RS_CELLS] = {0}, nth = 0;
	int rc;

	for (size_t k = 0; k < w->n; k++)
		n[rs_cell(w->r, w->item[k].id)] += w->item[k].put;
	for (int cell = 0; cell < w->r->cell_n; cell++) {
		if (!n[cell])
			continue;
		rs_call(w->r, cell, RS_WRITE, "create");
		rs_expect_n(w->r, "(i)=", n[cell]);
		rs_addi(w->r, (int64_t)n[cell]);
		for (size_t k = 0; k < w->n; k++) {
			if (w->item[k].put && rs_cell(w->r, w->item[k].id) == cell)
				load_feed_add(w, &w->item[k]);
		}
	}
	rc = rs_run(w->r, "storing feeds", err);
	for (int cell = 0; !rc && cell < w->r->cell_n; cell++) {
		const struct rs_reply *made = n[cell] ? w->r->reply[nth++] : NULL;

		for (size_t k = 0; k < n[cell]; k++)
			*again |= !rs_int(rs_elem(made, k));
	}
	return rc;
}

static void load_set_results(const struct redis_load *w)
{
	for (size_t k = 0; w->l->made && k < w->n; k++) {
		const struct redis_load_feed *i = &w->item[k];

		assert(i->first);
		w->l->made[k] = i->there ? (struct store_feed_new){i->there, true} :
					   (struct store_feed_new){i->first->id, !i->put};
	}
}

/*
 * *again: another process stored a feed with one of the addresses first. Rows that this try wrote
 * stay, and the next try finds them.
 */
static int load_feeds_try(struct redis_load *w, bool *again, int64_t *mine, struct fw_err *err)
{
	int64_t last = 0;
	int rc;

	*again = false;
	for (size_t k = 0; k < w->n; k++)
		w->item[k] = (struct redis_load_feed){.feed = &w->l->rows.feed[k]};
	rc = load_find_duplicates(w, err);
	rc = rc ? rc : load_feeds_read(w, err);
	rc = rc ? rc : load_plan_existing_ids(w, &last, err);
	rc = rc ? rc : last_id_raise(w->r, "feed_id", last, err);
	rc = rc ? rc : load_plan_new_ids(w, err);
	for (size_t k = 0; k < w->n; k++) { /* created by an earlier try of this load */
		if (mine[k] && w->item[k].there == mine[k])
			w->item[k].there = 0, w->item[k].id = mine[k], w->item[k].put = false;
	}
	rc = rc ? rc : load_urls_claim(w, again, err);
	rc = rc ? rc : load_feeds_create(w, again, err);
	for (size_t k = 0; !rc && k < w->n; k++)
		mine[k] = w->item[k].put ? w->item[k].id : mine[k];
	return rc;
}

static int load_feeds(struct redis_load *w, struct fw_err *err)
{
	int64_t *mine = calloc(w->n + 1, sizeof(*mine));
	bool again = true;
	int rc = 0;

	w->item = calloc(w->n + 1, sizeof(*w->item));
	if (!mine || !w->item)
		rc = rs_no_memory(w->r, err);
	for (size_t k = 0; !rc && k < w->n; k++) {
		const struct fw_feed *f = &w->l->rows.feed[k];

		if (f->id < 0 || f->id > STORE_ID_MAX || (!f->id && !w->l->made))
			rc = fw_err_set(err, FW_EINVAL, "%s: feed %lld (%.*s): the number of a feed is out of range",
				w->r->target.name, (long long)f->id, FW_STR_ARG(fw_str_sub(f->url, 0, 100)));
	}
	for (int i = 0; !rc && again && i < TRIES; i++)
		rc = load_feeds_try(w, &again, mine, err);
	if (!rc && again)
		rc = fw_err_set(err, FW_EAGAIN, "%s: other processes are subscribing to the same feeds: try again",
			w->r->target.name);
	for (size_t k = 0; !rc && k < w->n; k++)
		w->item[k].put |= mine[k] != 0 && mine[k] == w->item[k].id;
	if (!rc)
		load_set_results(w);
	free(mine);
	free(w->item);
	return rc;
}

/* ---- entries, keys, visits ------------------------------------------------------------------- */

/*
 * Looks for these ids in all cells: entries in a sorted set, visits by script. The script that
 * loads a row checks the feed's own cell.
 */
static int rows_find_existing(
	struct rs *r, bool visits, const int64_t *number, bool *there, size_t n, struct fw_err *err)
{
	int rc;

	for (int cell = 0; cell < r->cell_n; cell++) {
		if (visits) {
			rs_call(r, cell, RS_READ, "visits_known");
			rs_expect_n(r, "(i)=", n);
			rs_addi(r, (int64_t)n);
		} else {
			rs_command_key(r, cell, "ZMSCORE", "entry_ids");
			rs_expect_n(r, "(t?)=", n);
		}
		for (size_t i = 0; i < n; i++)
			rs_addi(r, number[i]);
	}
	rc = rs_run(r, "finding rows", err);
	for (int cell = 0; !rc && cell < r->cell_n; cell++) {
		for (size_t i = 0; i < n; i++) {
			const struct rs_reply *is = rs_elem(r->reply[cell], i);

			there[i] |= visits ? rs_int(is) > 0 : is->type != RS_NIL;
		}
	}
	return rc;
}

/* Of two rows with one id, or with one key of one feed, the first counts. */
static int rows_drop_duplicates(
	struct rs *r, const int64_t *number, const struct fw_entry_row *key, bool *there, size_t n, struct fw_err *err)
{
	struct fw_map seen;
	int rc = 0;

	fw_map_init(&seen, 0);
	for (size_t i = 0; !rc && i < n; i++) {
		struct fw_str id = {(const char *)&number[i], sizeof(number[i])}, name = FW_STR_NONE;
		char text[sizeof(key->key) + sizeof(key->feed_id)];

		if (key) {
			memcpy(text, &key[i].feed_id, sizeof(key->feed_id));
			memcpy(text + sizeof(key->feed_id), key[i].key, sizeof(key->key));
			name = fw_arena_str(&r->arena, (struct fw_str){text, sizeof(text)});
		}
		there[i] |= fw_map_add(&seen, id, r, &rc) != NULL;
		if (!rc && name.p)
			there[i] |= fw_map_add(&seen, name, r, &rc) != NULL;
	}
	fw_map_finish(&seen);
	return rc ? rs_no_memory(r, err) : 0;
}

static void load_key_add(struct rs *r, int64_t feed_id, const unsigned char key[16], const struct rs_key_value *k)
{
	rs_call(r, rs_cell(r, feed_id), RS_WRITE, "load_entry");
	rs_addi(r, feed_id);
	rs_add(r, (struct fw_str){(const char *)key, 16});
	rs_key_value_pack(rs_word(r), k);
	rs_word_end(r);
}

static void load_entry_add(struct rs *r, const struct fw_entry_row *e)
{
	struct rs_key_value known = {e->hash, e->id, fw_store_entry_date(e, e->seen_ms)};

	load_key_add(r, e->feed_id, e->key, &known);
	rs_entry_pack(rs_word(r), e);
	rs_word_end(r);
}

/* Which of these rows exist already, or appear twice; raises the last id above them. */
static int rows_prepare(struct rs *r, bool visits, const int64_t *id, const struct fw_entry_row *key, bool *there,
	size_t n, struct fw_err *err)
{
	int64_t last = 0;
	int rc = rows_find_existing(r, visits, id, there, n, err);

	rc = rc ? rc : rows_drop_duplicates(r, id, key, there, n, err);
	for (size_t i = 0; !rc && i < n; i++)
		last = there[i] ? last : FW_MAX(last, id[i]);
	return rc ? rc : last_id_raise(r, visits ? "visit_id" : "entry_id", last, err);
}

static int load_entries(struct rs *r, const struct fw_entry_row *e, size_t n, struct fw_err *err)
{
	int64_t *id = fw_arena_calloc(&r->arena, n, sizeof(*id));
	bool *there = fw_arena_calloc(&r->arena, n, sizeof(*there));
	int rc;

	if (!id || !there)
		return rs_no_memory(r, err);
	for (size_t i = 0; i < n; i++)
		id[i] = e[i].id;
	rc = rows_prepare(r, false, id, e, there, n, err);
	for (size_t i = 0; !rc && i < n; i++) {
		if (!there[i])
			load_entry_add(r, &e[i]);
	}
	return rc ? rc : rs_run(r, "storing entries", err);
}

static int load_keys(struct rs *r, const struct fw_entry_key *key, size_t n, struct fw_err *err)
{
	for (size_t i = 0; i < n; i++)
		load_key_add(r, key[i].feed_id, key[i].key, &(struct rs_key_value){.hash = key[i].hash});
	return rs_run(r, "storing keys", err);
}

static int load_visits(struct rs *r, const struct fw_visit *v, size_t n, struct fw_err *err)
{
	int64_t *id = fw_arena_calloc(&r->arena, n, sizeof(*id));
	bool *there = fw_arena_calloc(&r->arena, n, sizeof(*there));
	int rc;

	if (!id || !there)
		return rs_no_memory(r, err);
	for (size_t i = 0; i < n; i++)
		id[i] = v[i].id;
	rc = rows_prepare(r, true, id, NULL, there, n, err);
	for (size_t i = 0; !rc && i < n; i++) {
		if (there[i])
			continue;
		rs_call(r, rs_cell(r, v[i].feed_id), RS_WRITE, "load_visit");
		rs_addi(r, v[i].feed_id);
		rs_addi(r, v[i].id);
		rs_visit_pack(rs_word(r), &v[i], 0);
		rs_word_end(r);
	}
	return rc ? rc : rs_run(r, "storing visits", err);
}

static int redis_load_part(void *to, const struct store_load *l, struct fw_err *err)
{
	struct redis_load *w = to;
	struct rs *r = w->r;
	int rc = rs_slot_start(r, true, err);

	w->l = l;
	w->n = l->rows.feed_n;
	if (!rc && l->rows.feed_n)
		rc = load_feeds(w, err);
	if (!rc && l->rows.entry_n)
		rc = load_entries(r, l->rows.entry, l->rows.entry_n, err);
	if (!rc && l->rows.key_n)
		rc = load_keys(r, l->rows.key, l->rows.key_n, err);
	if (!rc && l->rows.change_id)
		rc = change_id_load(r, l->rows.change_id, err);
	return !rc && l->rows.visit_n ? load_visits(r, l->rows.visit, l->rows.visit_n, err) : rc;
}

int rs_load(struct store *st, const struct store_load *l, struct fw_err *err)
{
	struct redis_load w = {.r = rs_of(st)};
	int rc = rs_clock(st, &w.now_ms, err);

	return rc ? rc : l->each ? l->each(l->ctx, redis_load_part, &w, err) : redis_load_part(&w, l, err);
}
