/* SPDX-License-Identifier: ISC */
/* Rows as another store had them, in the store in memory. What was linked in before memory ran out stays: a load may be repeated. */
#include <stdlib.h>

#include "store/fields.h"
#include "store/memory.h"

/* Make room at i; the caller has seen to the list's size. */
static void list_insert(struct list *l, size_t i, void *p)
{
	memmove(&l->at[i + 1], &l->at[i], (l->n - i) * sizeof(*l->at));
	l->at[i] = p;
	l->n++;
}

static bool fields_copy(const struct fw_field *f, size_t n, void *to, const void *from)
{
	for (size_t i = 0; i < n; i++) {
		struct fw_str s = FW_STR_NONE;

		if (!fw_field_is_text(&f[i])) {
			fw_field_int_set(&f[i], to, fw_field_int(&f[i], from));
			continue;
		}
		if (!mem_keep(&s, fw_field_str(&f[i], from)))
			return false;
		fw_field_str_set(&f[i], to, s);
	}
	return true;
}

/* FW_EINVAL: its id or its url is that of another feed. */
static int feed_there(const struct memory *m, const struct fw_feed *src, bool *there, struct fw_err *err)
{
	const struct node *by_id = mem_node_find(m, src->id), *by_url = fw_map_get(&m->by_url, src->url);

	*there = by_id != NULL;
	if (by_id == by_url)
		return 0;
	return fw_err_set(err, FW_EINVAL, "memory store: feed %lld (%.*s) is not the feed that is here: copy into an empty store",
		(long long)src->id, FW_STR_ARG(fw_str_sub(src->url, 0, 100)));
}

static int feed_load(struct memory *m, const struct fw_feed *src, struct fw_err *err)
{
	bool there;
	int rc = feed_there(m, src, &there, err);
	struct node *f;

	if (rc || there)
		return rc;
	f = calloc(1, sizeof(*f));
	if (!f)
		return mem_no_memory(err);
	f->host = mem_host_take(m, src);
	if (!f->host || mem_list_room(&m->feeds, 1) || !fields_copy(fw_wheel_fields, fw_wheel_field_n, &f->feed, src) ||
	    !fields_copy(fw_feed_fields, fw_feed_field_n, &f->feed, src))
		rc = FW_ENOMEM;
	if (!rc)
		fw_map_put(&m->by_url, f->feed.url, f, &rc);
	if (rc) {
		mem_node_free(m, f);
		return mem_no_memory(err);
	}
	f->feed.id = src->id;
	list_insert(&m->feeds, mem_node_index(m, src->id), f);
	m->feed_id = FW_MAX(m->feed_id, src->id);
	return 0;
}

static int no_feed(int64_t feed_id, struct fw_err *err)
{
	return fw_err_set(err, FW_EINVAL, "memory store: load: what belongs to feed %lld came before it", (long long)feed_id);
}

/* By id; of those that retention took only key and hash are left, and their id may be 0. */
static size_t item_index(const struct memory *m, int64_t id)
{
	size_t i = m->items.n;

	while (i && ((struct item *)m->items.at[i - 1])->row.id > id)
		i--;
	return i;
}

static int item_load(struct memory *m, const struct fw_entry_row *row, bool pruned, struct fw_err *err)
{
	struct node *f = mem_node_find(m, row->feed_id);
	struct item *e;
	size_t at;
	int rc;

	if (!f)
		return no_feed(row->feed_id, err);
	at = item_index(m, row->id);
	if (fw_map_get(&f->items, mem_key_of(row)) || (row->id && at && ((struct item *)m->items.at[at - 1])->row.id == row->id))
		return 0;
	e = mem_list_room(&m->items, 1) ? NULL : mem_item_copy(row);
	if (!e)
		return mem_no_memory(err);
	fw_map_put(&f->items, mem_key_of(&e->row), e, &rc);
	if (rc) {
		mem_item_free(e);
		return mem_no_memory(err);
	}
	e->pruned = pruned;
	f->pruned_n += pruned;
	m->pruned_n += pruned;
	list_insert(&m->items, at, e);
	m->entry_id = FW_MAX(m->entry_id, row->id);
	return 0;
}

static int visit_load(struct memory *m, const struct fw_visit *src, struct fw_err *err)
{
	struct fw_visit *v;
	size_t at = m->visits.n;

	if (!mem_node_find(m, src->feed_id))
		return no_feed(src->feed_id, err);
	while (at && ((struct fw_visit *)m->visits.at[at - 1])->id > src->id)
		at--;
	if (at && ((struct fw_visit *)m->visits.at[at - 1])->id == src->id)
		return 0;
	v = mem_list_room(&m->visits, 1) ? NULL : calloc(1, sizeof(*v));
	if (!v || !fields_copy(fw_visit_fields, fw_visit_field_n, v, src)) {
		free(v);
		return mem_no_memory(err);
	}
	v->id = src->id;
	list_insert(&m->visits, at, v);
	m->visit_id = FW_MAX(m->visit_id, src->id);
	return 0;
}

int mem_load(struct fw_store *st, const struct fw_load *l, struct fw_err *err)
{
	struct memory *m = mem_of(st);
	bool there;
	int rc = 0;

	for (size_t i = 0; i < l->feed_n && !rc; i++)
		rc = feed_there(m, &l->feed[i], &there, err);
	for (size_t i = 0; i < l->feed_n && !rc; i++)
		rc = feed_load(m, &l->feed[i], err);
	for (size_t i = 0; i < l->entry_n && !rc; i++)
		rc = item_load(m, &l->entry[i], false, err);
	for (size_t i = 0; i < l->key_n && !rc; i++) {
		struct fw_entry_row gone = {.feed_id = l->key[i].feed_id, .hash = l->key[i].hash};

		memcpy(gone.key, l->key[i].key, sizeof(gone.key));
		rc = item_load(m, &gone, true, err);
	}
	for (size_t i = 0; i < l->visit_n && !rc; i++)
		rc = visit_load(m, &l->visit[i], err);
	return rc;
}

int mem_key_list(struct fw_store *st, int64_t first_feed_id, int64_t last_feed_id, fw_key_cb *cb, void *ctx, struct fw_err *err)
{
	const struct memory *m = mem_of(st);
	int rc = 0;

	(void)err;
	for (size_t i = mem_node_index(m, first_feed_id); i < m->feeds.n && !rc; i++) {
		const struct node *f = m->feeds.at[i];
		const struct item *e;
		struct fw_str key;
		size_t at = 0;

		if (f->feed.id > last_feed_id)
			break;
		while (!rc && (e = fw_map_next(&f->items, &at, &key)) != NULL) {
			struct fw_entry_key k = {.feed_id = f->feed.id, .hash = e->row.hash, .entry_id = e->pruned ? 0 : e->row.id};

			memcpy(k.key, e->row.key, sizeof(k.key));
			rc = cb(ctx, &k);
		}
	}
	return rc;
}
