/* SPDX-License-Identifier: ISC */
/*
 * Entries: stored once per (feed, key).
 *
 * `entry_keys` holds the key and hash of every entry that a feed ever had, one feed's together. A
 * document without new entries is compared there and touches no row of entries (dedup). It also
 * remembers entries that retention or their feed removed.
 *
 * A statement covers the entries of all outcomes of a commit: a few round trips per commit, not per
 * entry.
 *
 * Orders: the matcher is asked once it is known which entries are new or changed. A dropped entry
 * is only a key, as after retention. Matches are stored last, when their numbers are known. The
 * version of the orders is compared when the numbers are reserved (orders.c).
 *
 * New ids are reserved last, after all reads and updates and after the visits. The counter's row
 * then stays locked until the transaction ends, so ids appear in order.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "store/fields.h"
#include "store/sql/core.h"

/* ---- items: the entries being stored --------------------------------------------------------- */

struct entry_item {
	const struct fw_entry_row *e;
	struct {
		int64_t feed_id;
		unsigned char key[16];
	} of; /* its identity */
	size_t outcome;
	bool fresh;       /* its feed never had an entry: no look-up */
	bool found;       /* the feed had its key before: */
	int64_t entry_id; /* of this entry; 0: it was removed and stays away */
	uint64_t hash;
	bool dropped;            /* it is new, and an order drops it */
	const int64_t *order_id; /* the orders that get a match */
	size_t order_n;
};

struct entry_items {
	struct sql *s;
	struct entry_item *at;
	size_t n, dropped_n, match_n;
	int64_t new_n, now_ms; /* new_n: without the dropped ones */
	struct sql_changes log;
	struct fw_arena matched; /* what the matcher said */
};

/* Add an entry, unless one of the same feed and key was added before. */
static int entry_item_add(struct entry_items *all, struct fw_map *seen, const struct entry_item *i, struct fw_err *err)
{
	struct entry_item *to = &all->at[all->n];
	struct fw_str of = {(const char *)&to->of, sizeof(to->of)};
	int rc = 0;

	*to = *i;
	memcpy(to->of.key, i->e->key, sizeof(to->of.key));
	if (!fw_map_add(seen, of, to, &rc))
		all->n++;
	return rc ? fw_no_memory(err) : 0;
}

static int entry_key_row(void *ctx, const struct sql_row *row)
{
	const struct entry_items *all = ctx;
	struct entry_item *i = &all->at[sql_int(row, 0)];

	i->found = true;
	i->hash = (uint64_t)sql_int(row, 1);
	i->entry_id = sql_int(row, 2);
	return 0;
}

/* Find the entries that the feeds have already. */
static int entry_items_find(struct entry_items *all, struct fw_err *err)
{
	struct sql_rows r = SQL_QUERY_ROWS(all->s, err, entry_key_row, all,
		"SELECT v.item, k.hash, k.entry_id FROM {rows}"
		" entry_keys k WHERE k.feed_id = v.feed AND k.entry_key = v.ekey",
		"item:i feed:i ekey:b");

	for (size_t i = 0; i < all->n; i++) {
		const struct entry_item *entry_item = &all->at[i];

		if (!entry_item->fresh)
			sql_rows_add(
				&r, SQL_V(SQL_INT(i), SQL_INT(entry_item->of.feed_id), SQL_KEY(entry_item->e->key)));
	}
	return sql_rows_end(&r);
}

/* Insert the entries that were not found, with their keys. as_new: first seen now. */
static int entry_items_insert(struct entry_items *all, bool as_new, struct fw_err *err)
{
	struct sql_rows entry = SQL_ROWS(all->s, err,
		"INSERT INTO entries (id, feed_id, entry_key, date_ms, {fields entry}) {values}",
		"id:i feed_id:i entry_key:b date_ms:i {entry}");
	struct sql_rows key = SQL_ROWS(all->s, err,
		"INSERT INTO entry_keys (feed_id, entry_key, hash, entry_id) {values}",
		"feed_id:i entry_key:b hash:i entry_id:i");

	for (size_t i = 0; i < all->n; i++) {
		const struct entry_item *entry_item = &all->at[i];
		struct fw_entry_row e = *entry_item->e;

		if (entry_item->found || entry_item->dropped)
			continue;
		if (as_new) {
			e.seen_ms = e.changed_ms = all->now_ms;
			e.revision = 1;
		}
		sql_rows_add_fields(&entry,
			SQL_V(SQL_INT(entry_item->entry_id), SQL_INT(entry_item->of.feed_id),
				SQL_KEY(entry_item->e->key), SQL_INT(fw_store_entry_date(&e, e.seen_ms))),
			"entry", &e);
	}
	key.rc = sql_rows_end(&entry);
	for (size_t i = 0; i < all->n; i++) {
		const struct entry_item *entry_item = &all->at[i];

		if (!entry_item->found)
			sql_rows_add(&key,
				SQL_V(SQL_INT(entry_item->of.feed_id), SQL_KEY(entry_item->e->key),
					SQL_INT(entry_item->e->hash), SQL_INT(entry_item->entry_id)));
	}
	return sql_rows_end(&key);
}

/* ---- store ----------------------------------------------------------------------------------- */

static bool entry_item_changed(const struct entry_item *i)
{
	return i->found && i->hash != i->e->hash;
}

/* Ask the matcher about the entries that are new or change. */
static int entry_items_match(struct entry_items *all, const struct sql_visit *v, struct fw_err *err)
{
	int rc = 0;

	for (size_t i = 0; !rc && all->s->store.matcher && i < all->n; i++) {
		struct entry_item *to = &all->at[i];
		struct store_matched m;

		if (to->found && !(entry_item_changed(to) && to->entry_id))
			continue;
		rc = store_match(&all->s->store, &all->matched, &v[to->outcome].o, to->e, !to->found, &m, err);
		if (rc)
			return rc;
		to->e = m.e;
		to->dropped = m.drop;
		to->order_id = m.order_id;
		to->order_n = m.n;
		all->dropped_n += m.drop;
		all->match_n += m.n;
	}
	return rc;
}

static int entry_items_reindex(struct entry_items *all, enum sql_entry_change what, struct fw_err *err)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < all->n; i++) {
		if (entry_item_changed(&all->at[i]) && all->at[i].entry_id)
			rc = all->s->dialect->search_changed(all->s, all->at[i].entry_id, what, err);
	}
	return rc;
}

/* Keep the versions of the entries that change, and collect the changes. */
static int entry_items_log(struct entry_items *all, struct fw_err *err)
{
	struct sql_revision *r = calloc(all->n, sizeof(*r));
	size_t n = 0;
	int rc;

	if (!r)
		return fw_no_memory(err);
	for (size_t i = 0; i < all->n; i++) {
		if (entry_item_changed(&all->at[i]) && all->at[i].entry_id)
			r[n++].entry_id = all->at[i].entry_id;
	}
	rc = n ? sql_revisions_keep(all->s, r, n, err) : 0;
	n = 0;
	for (size_t i = 0; i < all->n; i++) {
		const struct entry_item *entry_item = &all->at[i];

		if (entry_item_changed(entry_item) && entry_item->entry_id)
			sql_changes_add(&all->log, FW_CHANGE_CHANGED, entry_item->entry_id, entry_item->of.feed_id,
				(uint32_t)r[n++].revision + 1);
	}
	free(r);
	return rc;
}

/* Names in v differ from those of the table: some engines find equal names ambiguous. */
static int entry_items_update(struct entry_items *all, struct fw_err *err)
{
	struct sql_rows r = SQL_ROWS(all->s, err,
		"UPDATE entries AS t SET date_ms = CASE WHEN v.dated < t.seen_ms THEN"
		" v.dated ELSE t.seen_ms END, changed_ms = v.now, revision = t.revision + 1, published_ms ="
		" v.published, updated_ms = v.updated, content_type = v.kind, guid = v.name, url = v.link, title ="
		" v.heading, author = v.writer, content_base = v.base, summary = v.short, extra = v.more, content ="
		" v.body {from} WHERE t.id = v.spot",
		"spot:i dated:i now:i published:i updated:i kind:i name:t link:t"
		" heading:t writer:t base:t short:t more:j body:t");

	for (size_t i = 0; i < all->n; i++) {
		const struct entry_item *entry_item = &all->at[i];
		const struct fw_entry_row *e = entry_item->e;

		if (entry_item_changed(entry_item) && entry_item->entry_id)
			sql_rows_add(&r,
				SQL_V(SQL_INT(entry_item->entry_id), SQL_INT(fw_store_entry_date(e, INT64_MAX)),
					SQL_INT(all->now_ms), SQL_DATE(e->published_ms), SQL_DATE(e->updated_ms),
					SQL_INT(e->content_type), SQL_TEXT(e->guid), SQL_TEXT(e->url),
					SQL_TEXT(e->title), SQL_TEXT(e->author), SQL_TEXT(e->content_base),
					SQL_TEXT(e->summary), SQL_TEXT(e->extra), SQL_TEXT(e->content)));
	}
	return sql_rows_end(&r);
}

/* Update hashes, also of entries that were removed: the hash is all that is kept of them. */
static int entry_keys_update(struct entry_items *all, struct fw_err *err)
{
	struct sql_rows r = SQL_ROWS(all->s, err,
		"UPDATE entry_keys AS t SET hash = v.now {from} WHERE t.feed_id = v.feed AND t.entry_key = v.ekey",
		"feed:i ekey:b now:i");

	for (size_t i = 0; i < all->n; i++) {
		const struct entry_item *entry_item = &all->at[i];

		if (entry_item_changed(entry_item))
			sql_rows_add(&r,
				SQL_V(SQL_INT(entry_item->of.feed_id), SQL_KEY(entry_item->e->key),
					SQL_INT(entry_item->e->hash)));
	}
	return sql_rows_end(&r);
}

/* Update the entries that exist with another hash; count the new ones. */
static int entry_items_change(struct entry_items *all, struct sql_visit *v, struct fw_err *err)
{
	bool any_changed = false;
	int rc = entry_items_find(all, err);

	rc = rc ? rc : entry_items_match(all, v, err);
	for (size_t i = 0; !rc && i < all->n; i++) {
		const struct entry_item *entry_item = &all->at[i];
		struct fw_visit *visit = &v[entry_item->outcome].o.visit;
		bool changed = entry_item_changed(entry_item);

		any_changed |= changed;
		visit->changed_n += changed && entry_item->entry_id;
		visit->new_n += !entry_item->found && !entry_item->dropped;
		all->new_n += !entry_item->found && !entry_item->dropped;
	}
	if (rc || !any_changed)
		return rc;
	rc = entry_items_log(all, err);
	rc = rc ? rc : entry_items_reindex(all, SQL_ENTRY_CHANGING, err);
	rc = rc ? rc : entry_items_update(all, err);
	rc = rc ? rc : entry_keys_update(all, err);
	return rc ? rc : entry_items_reindex(all, SQL_ENTRY_CHANGED, err);
}

/* change_id: the last number before those of the changes, which are in the order of the items. */
static int entry_items_put_matches(struct entry_items *all, int64_t change_id, struct fw_err *err)
{
	struct fw_match *m = calloc(all->match_n, sizeof(*m));
	size_t n = 0;
	int rc;

	if (!m)
		return fw_no_memory(err);
	for (size_t i = 0; i < all->n; i++) {
		const struct entry_item *entry_item = &all->at[i];

		change_id += entry_item_changed(entry_item) && entry_item->entry_id;
		for (size_t k = 0; k < entry_item->order_n; k++)
			m[n++] = (struct fw_match){.order_id = entry_item->order_id[k],
				.change_id = entry_item->found ? change_id : entry_item->entry_id,
				.entry_id = entry_item->entry_id,
				.feed_id = entry_item->of.feed_id,
				.at_ms = all->now_ms,
				.changed = entry_item->found};
	}
	assert(n == all->match_n);
	rc = sql_matches_insert(all->s, m, n, false, err);
	free(m);
	return rc;
}

/* New entries, then changes: their numbers are reserved at once. */
static int entry_items_put_new(struct entry_items *all, struct fw_err *err)
{
	int64_t change_n = (int64_t)sql_changes_n(&all->log), last = 0, id;
	int rc = 0;

	assert(all->new_n >= 0 && (size_t)all->new_n <= all->n);
	if (all->log.b.rc)
		return fw_no_memory(err);
	if (all->new_n || all->dropped_n || change_n)
		rc = sql_entry_ids_reserve(all->s, all->new_n + change_n, &last, err);
	id = last - all->new_n - change_n;
	for (size_t i = 0; i < all->n; i++) {
		if (!all->at[i].found)
			all->at[i].entry_id = all->at[i].dropped ? 0 : ++id;
	}
	rc = rc || !(all->new_n || all->dropped_n) ? rc : entry_items_insert(all, true, err);
	if (!rc && all->new_n && all->s->dialect->entries_new)
		rc = all->s->dialect->entries_new(all->s, last - change_n, err);
	rc = rc || !change_n ? rc : sql_changes_put(all->s, &all->log, last, all->now_ms, err);
	return rc || !all->match_n ? rc : entry_items_put_matches(all, last - change_n, err);
}

/* Store the entries of n outcomes of different feeds, except new ones, which stay in `all`. */
static int entry_outcomes_put(struct entry_items *all, struct sql_visit *v, size_t n, struct fw_err *err)
{
	struct fw_map seen;
	size_t entry_n = 0;
	int rc = 0;

	for (size_t i = 0; i < n; i++)
		entry_n += v[i].o.rc == FW_ENOTFOUND ? 0 : v[i].o.entry_n;
	if (!entry_n)
		return 0;
	all->at = calloc(entry_n, sizeof(*all->at));
	if (!all->at)
		return fw_no_memory(err);
	fw_map_init(&seen, 0);
	for (size_t i = 0; i < n; i++) {
		const struct fw_outcome *o = &v[i].o;

		for (size_t k = 0; !rc && o->rc != FW_ENOTFOUND && k < o->entry_n; k++)
			rc = entry_item_add(all, &seen,
				&(struct entry_item){.e = &o->entries[k],
					.of.feed_id = o->feed_id,
					.outcome = i,
					.fresh = !v[i].has_entries},
				err);
	}
	fw_map_finish(&seen);
	assert(all->n <= entry_n);
	return rc ? rc : entry_items_change(all, v, err);
}

int sql_entries_put(struct sql *s, struct sql_visit *v, size_t n, int64_t now_ms, int64_t *new_n,
	struct sql_entries *rest, struct fw_err *err)
{
	size_t from = 0;
	int rc = 0;

	assert(!rest->entry_items);
	/* outcomes of one feed are adjacent, and stored one after the other */
	for (size_t i = 1; !rc && i <= n; i++) {
		if (i < n && v[i].o.feed_id != v[i - 1].o.feed_id)
			continue;
		rc = sql_entries_insert(rest, 0, err);
		if (rc)
			return rc;
		rest->entry_items = calloc(1, sizeof(*rest->entry_items));
		if (!rest->entry_items)
			return fw_no_memory(err);
		*rest->entry_items = (struct entry_items){.s = s, .now_ms = now_ms};
		fw_arena_init(&rest->entry_items->matched, 0);
		rc = entry_outcomes_put(rest->entry_items, v + from, i - from, err);
		rc = rc ? rc : sql_entries_retract(s, v + from, i - from, &rest->entry_items->log, err);
		*new_n += rest->entry_items->new_n;
		from = i;
	}
	return rc;
}

int sql_entries_insert(struct sql_entries *rest, int rc, struct fw_err *err)
{
	struct entry_items *all = rest->entry_items;

	rest->entry_items = NULL;
	if (!all)
		return rc;
	rc = rc ? rc : entry_items_put_new(all, err);
	fw_buf_finish(&all->log.b);
	fw_arena_finish(&all->matched);
	free(all->at);
	free(all);
	return rc;
}

/* ---- load ------------------------------------------------------------------------------------ */

static int entry_id_row(void *ctx, const struct sql_row *row)
{
	const struct entry_items *all = ctx;

	all->at[sql_int(row, 0)].found = true;
	return 0;
}

/* Mark entries whose id is used already. */
static int entry_ids_find(struct entry_items *all, struct fw_err *err)
{
	struct sql_rows r = SQL_QUERY_ROWS(all->s, err, entry_id_row, all,
		"SELECT v.item FROM {rows} entries e WHERE e.id = v.spot", "item:i spot:i");

	for (size_t i = 0; i < all->n; i++)
		sql_rows_add(&r, SQL_V(SQL_INT(i), SQL_INT(all->at[i].e->id)));
	return sql_rows_end(&r);
}

/* Raise the counter of entry ids to the highest loaded id. *last: its value before. */
static int entry_id_raise(struct sql *s, int64_t highest, int64_t *last, struct fw_err *err)
{
	int rc = sql_query_int(s, "SELECT value FROM meta WHERE name = 'entry_id' {update}", SQL_NONE, 0, last, err);

	return rc || highest <= *last ?
		rc :
		sql_exec(s, "UPDATE meta SET value = ?1 WHERE name = 'entry_id'", SQL_V(SQL_INT(highest)), err);
}

/* Count the loaded entries in their feeds' totals. */
static int entry_items_total(const struct entry_items *all, struct fw_err *err)
{
	struct sql_entry_ref *e = calloc(all->n + 1, sizeof(*e));
	int rc = e ? 0 : fw_no_memory(err);
	size_t n = 0;

	for (size_t i = 0; !rc && i < all->n; i++) {
		if (!all->at[i].found)
			e[n++] = (struct sql_entry_ref){all->at[i].entry_id, all->at[i].of.feed_id};
	}
	rc = rc ? rc : sql_entry_totals_raise(all->s, e, n, err);
	free(e);
	return rc;
}

static int entry_items_load(struct entry_items *all, struct fw_err *err)
{
	int64_t highest = 0, last = 0, n = 0;
	int rc = entry_items_find(all, err);

	rc = rc ? rc : entry_ids_find(all, err);
	for (size_t i = 0; !rc && i < all->n; i++) {
		struct entry_item *entry_item = &all->at[i];

		entry_item->entry_id = entry_item->e->id;
		n += !entry_item->found;
		highest = entry_item->found ? highest : FW_MAX(highest, entry_item->entry_id);
	}
	if (rc || !n)
		return rc;
	rc = entry_id_raise(all->s, highest, &last, err);
	rc = rc ? rc : entry_items_insert(all, false, err);
	for (size_t i = 0; !rc && i < all->n; i++) { /* ids above `last` are indexed as new entries */
		if (!all->at[i].found && all->at[i].entry_id <= last)
			rc = all->s->dialect->search_changed(all->s, all->at[i].entry_id, SQL_ENTRY_CHANGED, err);
	}
	rc = rc ? rc : entry_items_total(all, err);
	return rc ? rc : sql_row_counts_add(all->s, n, 0, err);
}

static int entry_keys_load(struct sql *s, const struct fw_entry_key *key, size_t n, struct fw_err *err)
{
	struct sql_rows r = SQL_ROWS(s, err,
		"INSERT INTO entry_keys (feed_id, entry_key, hash, entry_id) {values}"
		" {keep feed_id, entry_key|entry_keys.feed_id}",
		"feed_id:i entry_key:b hash:i entry_id:i");

	for (size_t i = 0; i < n; i++)
		sql_rows_add(&r, SQL_V(SQL_INT(key[i].feed_id), SQL_KEY(key[i].key), SQL_INT(key[i].hash), SQL_INT(0)));
	return sql_rows_end(&r);
}

int sql_entries_load(struct sql *s, const struct fw_entry_row *e, size_t n, const struct fw_entry_key *key,
	size_t key_n, struct fw_err *err)
{
	struct entry_items all = {.s = s, .at = calloc(n + 1, sizeof(*all.at))};
	int rc = all.at ? 0 : fw_no_memory(err);
	struct fw_map seen; /* of ids, and of feeds and keys */

	fw_map_init(&seen, 0);
	for (size_t i = 0; !rc && i < n; i++) {
		struct fw_str id = {(const char *)&e[i].id, sizeof(e[i].id)};

		if (fw_map_add(&seen, id, &all, &rc))
			continue;
		rc = rc ?
			fw_no_memory(err) :
			entry_item_add(&all, &seen, &(struct entry_item){.e = &e[i], .of.feed_id = e[i].feed_id}, err);
	}
	rc = rc ? rc : entry_items_load(&all, err);
	fw_map_finish(&seen);
	free(all.at);
	return rc ? rc : entry_keys_load(s, key, key_n, err);
}

/* ---- remove ---------------------------------------------------------------------------------- */

struct old_entries {
	struct fw_buf b; /* array of struct sql_old_entry */
	const struct sql_old_entry *at;
	size_t n;
};

int sql_old_entry_row(void *ctx, const struct sql_row *row)
{
	struct sql_old_entry o = {.id = sql_int(row, 0), .feed_id = sql_int(row, 1), .revision = sql_int(row, 3)};
	struct fw_str key = sql_str(row, 2);
	struct fw_buf *b = ctx;

	if (key.p)
		memcpy(o.key, key.p, FW_MIN(key.len, sizeof(o.key)));
	fw_buf_add(b, &o, sizeof(o));
	return b->rc;
}

/*
 * Read entries (id, feed, key, revision) into all. The caller must call fw_buf_finish(&all->b) in
 * any case.
 */
static int old_entries_find(struct sql *s, struct old_entries *all, const char *text, const struct sql_value *v,
	size_t n, struct fw_err *err)
{
	int rc = sql_query(s, text, v, n, sql_old_entry_row, &all->b, err);

	all->at = (const struct sql_old_entry *)(const void *)all->b.p;
	all->n = rc ? 0 : all->b.len / sizeof(*all->at);
	return rc == FW_ENOMEM ? fw_no_memory(err) : rc;
}

/* The accounts hear of it first. */
static int old_entries_gone(struct sql *s, const struct old_entries *all, struct fw_err *err)
{
	struct sql_entry_ref *e = calloc(all->n + 1, sizeof(*e));
	int rc = e ? 0 : fw_no_memory(err);

	for (size_t i = 0; !rc && i < all->n; i++)
		e[i] = (struct sql_entry_ref){all->at[i].id, all->at[i].feed_id};
	rc = rc ? rc : sql_accounts_entries_gone(s, e, all->n, err);
	free(e);
	return rc;
}

/*
 * Remove entries; their keys stay. One by one: for several ids some engines would scan the table.
 */
static int old_entries_remove(struct sql *s, const struct old_entries *all, struct sql_changes *log, struct fw_err *err)
{
	int rc = old_entries_gone(s, all, err);

	for (size_t i = 0; !rc && i < all->n; i++) {
		const struct sql_value id = SQL_INT(all->at[i].id);

		rc = s->dialect->search_changed(s, all->at[i].id, SQL_ENTRY_REMOVING, err);
		rc = rc ? rc : sql_exec(s, "DELETE FROM entries WHERE id = ?1", &id, 1, err);
		rc = rc ? rc : sql_exec(s, "DELETE FROM revisions WHERE entry_id = ?1", &id, 1, err);
		sql_changes_add(log, FW_CHANGE_GONE, all->at[i].id, all->at[i].feed_id, 0);
	}
	return rc ? rc : sql_row_counts_add(s, -(int64_t)all->n, 0, err);
}

int sql_entries_drop(struct sql *s, int64_t feed_id, struct sql_changes *log, struct fw_err *err)
{
	const struct sql_value v[1] = {SQL_INT(feed_id)};
	struct old_entries all = {.b = FW_BUF_INIT(0)};
	int rc = old_entries_find(s, &all,
		"SELECT entry_id, feed_id, entry_key, 0 FROM entry_keys WHERE feed_id = ?1 AND entry_id > 0", v, 1,
		err);

	rc = rc ? rc : old_entries_remove(s, &all, log, err);
	fw_buf_finish(&all.b);
	return rc ? rc : sql_exec(s, "DELETE FROM entry_keys WHERE feed_id = ?1", v, 1, err);
}

/* Move the entries that into_id lacks, by key and by guid. */
int sql_entries_merge(struct sql *s, int64_t from_id, int64_t into_id, struct sql_changes *log, struct fw_err *err)
{
	struct sql_rows entry = SQL_ROWS(
		s, err, "UPDATE entries AS t SET feed_id = v.target {from} WHERE t.id = v.spot", "spot:i target:i");
	struct sql_rows key = SQL_ROWS(s, err,
		"UPDATE entry_keys AS t SET feed_id = v.target {from} WHERE t.feed_id ="
		" v.feed AND t.entry_key = v.ekey",
		"feed:i ekey:b target:i");
	struct old_entries all = {.b = FW_BUF_INIT(0)};
	int rc;

	entry.rc = old_entries_find(s, &all,
		"SELECT e.id, e.feed_id, e.entry_key, e.revision FROM entry_keys f"
		" JOIN entries e ON e.id = f.entry_id WHERE f.feed_id = ?1"
		" AND f.entry_key NOT IN (SELECT i.entry_key FROM entry_keys i WHERE i.feed_id = ?2)"
		" AND (coalesce(e.guid, '') = '' OR e.guid NOT IN (SELECT g.guid FROM entry_keys k"
		" JOIN entries g ON g.id = k.entry_id WHERE k.feed_id = ?2 AND g.guid IS NOT NULL))",
		SQL_V(SQL_INT(from_id), SQL_INT(into_id)), err);
	for (size_t i = 0; i < all.n; i++) {
		sql_rows_add(&entry, SQL_V(SQL_INT(all.at[i].id), SQL_INT(into_id)));
		sql_changes_add(log, FW_CHANGE_CHANGED, all.at[i].id, into_id, (uint32_t)all.at[i].revision);
	}
	key.rc = sql_rows_end(&entry);
	for (size_t i = 0; i < all.n; i++)
		sql_rows_add(&key, SQL_V(SQL_INT(from_id), SQL_KEY(all.at[i].key), SQL_INT(into_id)));
	rc = sql_rows_end(&key);
	fw_buf_finish(&all.b);
	return rc;
}

/* Mark the keys of removed entries. */
static int entry_keys_clear(struct sql *s, const struct old_entries *all, struct fw_err *err)
{
	struct sql_rows r = SQL_ROWS(s, err,
		"UPDATE entry_keys AS t SET entry_id = 0 {from} WHERE t.feed_id = v.feed AND t.entry_key = v.ekey",
		"feed:i ekey:b");

	for (size_t i = 0; i < all->n; i++)
		sql_rows_add(&r, SQL_V(SQL_INT(all->at[i].feed_id), SQL_KEY(all->at[i].key)));
	return sql_rows_end(&r);
}

int sql_entries_remove(
	struct sql *s, const struct sql_old_entry *e, size_t n, struct sql_changes *log, struct fw_err *err)
{
	const struct old_entries all = {.at = e, .n = n};
	int rc = n ? old_entries_remove(s, &all, log, err) : 0;

	return rc || !n ? rc : entry_keys_clear(s, &all, err);
}

int sql_entries_shed(struct sql *s, int64_t feed_id, struct sql_changes *log, struct fw_err *err)
{
	struct old_entries all = {.b = FW_BUF_INIT(0)};
	int rc = old_entries_find(s, &all,
		"SELECT id, feed_id, entry_key, revision FROM entries WHERE feed_id = ?1"
		" AND NOT EXISTS (SELECT 1 FROM entry_labels l WHERE l.entry_id = entries.id)",
		SQL_V(SQL_INT(feed_id)), err);

	rc = rc ? rc : sql_entries_remove(s, all.at, all.n, log, err);
	fw_buf_finish(&all.b);
	return rc;
}

/*
 * An entry that was seen later cannot be old, so only ids below are read; few of these were changed
 * since.
 */
int sql_entries_prune(struct sql *s, int64_t before_ms, size_t max, int64_t *n, struct fw_err *err)
{
	struct old_entries all = {.b = FW_BUF_INIT(0)};
	struct sql_changes log = {FW_BUF_INIT(0)};
	int64_t last = 0;
	bool any;
	int rc = sql_accounts_lock_all(s, &any, err);

	rc = rc ? rc : sql_entry_id_seen_before(s, before_ms + SQL_SEEN_SLACK_MS, &last, err);
	*n = 0;
	if (!rc && last)
		rc = old_entries_find(s, &all,
			"SELECT id, feed_id, entry_key, revision FROM entries WHERE id <= ?1 AND changed_ms < ?2"
			" AND NOT EXISTS (SELECT 1 FROM entry_labels l WHERE l.entry_id = entries.id)"
			" ORDER BY id LIMIT ?3 {skip}",
			SQL_V(SQL_INT(last), SQL_INT(before_ms), SQL_INT(max)), err);
	rc = rc ? rc : sql_entries_remove(s, all.at, all.n, &log, err);
	rc = sql_changes_end(s, &log, rc, err);
	if (!rc)
		*n = (int64_t)all.n;
	fw_buf_finish(&all.b);
	return rc;
}
