/* SPDX-License-Identifier: ISC */
/*
 * The store in memory: the reference for driver authors, and the double that tests and one-shot runs use.
 *
 * Feeds and entries are two arrays of pointers in order of id, found by binary search; maps lead from a URL to its feed, from
 * a key to its entry, from a name to its host. A claim looks at every feed: plain, and slow with a million of them, which is
 * what the other drivers are for. A feed whose host has no budget left is passed over and stays due.
 *
 * Memory is the only thing that can fail: what an outcome needs is copied first, and only when all copies are there is anything
 * linked in, so each outcome is whole. Nothing outlives the process and nothing is shared between processes.
 *
 * This file makes, finds and frees what is kept. Lending: memory_wheel.c. Outcomes: memory_commit.c. Entries and visits:
 * memory_entries.c. What people look at and change: memory_window.c. Copies: memory_load.c.
 */
#include <stdlib.h>

#include "store/memory.h"

int mem_no_memory(struct fw_err *err)
{
	return fw_err_set(err, FW_ENOMEM, "memory store: out of memory");
}

/* ---- lists, strings ------------------------------------------------------------------------------------------------- */

int mem_list_room(struct list *l, size_t more)
{
	size_t cap = l->cap ? l->cap : 64;
	void **at;

	while (cap < l->n + more)
		cap *= 2;
	if (cap == l->cap)
		return 0;
	at = reallocarray(l->at, cap, sizeof(*at));
	if (!at)
		return FW_ENOMEM;
	l->at = at;
	l->cap = cap;
	return 0;
}

void mem_list_cut(struct list *l, size_t i)
{
	memmove(&l->at[i], &l->at[i + 1], (l->n - i - 1) * sizeof(*l->at));
	l->n--;
}

/* Replace *dst by a copy of src; on failure *dst stays. */
bool mem_keep(struct fw_str *dst, struct fw_str src)
{
	char *p = src.p ? fw_str_dup(src) : NULL;

	if (src.p && !p)
		return false;
	free((char *)dst->p);
	*dst = (struct fw_str){p, src.len};
	return true;
}

void mem_drop(struct fw_str *s)
{
	free((char *)s->p);
	*s = FW_STR_NONE;
}

struct fw_str mem_key_of(const struct fw_entry_row *row)
{
	return (struct fw_str){(const char *)row->key, sizeof(row->key)};
}

/* ---- feeds, hosts, entries ----------------------------------------------------------------------------------------- */

size_t mem_node_index(const struct memory *m, int64_t id) /* of the first feed with this id or a higher one */
{
	size_t lo = 0, hi = m->feeds.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (((struct node *)m->feeds.at[mid])->feed.id < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

struct node *mem_node_find(const struct memory *m, int64_t id)
{
	size_t i = mem_node_index(m, id);
	struct node *f = i < m->feeds.n ? m->feeds.at[i] : NULL;

	return f && f->feed.id == id ? f : NULL;
}

int mem_not_found(int64_t feed_id, struct fw_err *err)
{
	return fw_err_set(err, FW_ENOTFOUND, "memory store: no feed has the number %lld", (long long)feed_id);
}

struct host *mem_host_take(struct memory *m, const struct fw_feed *feed)
{
	char name[256];
	struct host *h;
	int rc;

	if (!fw_store_feed_host(feed, name, sizeof(name)))
		name[0] = '\0';
	h = fw_map_get(&m->hosts, fw_str(name));
	if (!h) {
		h = calloc(1, sizeof(*h));
		if (!h)
			return NULL;
		h->name = fw_str_dup(fw_str(name));
		if (h->name)
			fw_map_put(&m->hosts, fw_str(h->name), h, &rc);
		if (!h->name || rc) {
			free(h->name);
			free(h);
			return NULL;
		}
		h->id = ++m->host_id;
	}
	h->feed_n++;
	return h;
}

void mem_host_give(struct memory *m, struct host *h)
{
	if (!h || --h->feed_n)
		return;
	fw_map_del(&m->hosts, fw_str(h->name));
	free(h->name);
	free(h);
}

void mem_item_empty(struct item *e)
{
	mem_drop(&e->row.guid);
	mem_drop(&e->row.url);
	mem_drop(&e->row.title);
	mem_drop(&e->row.author);
	mem_drop(&e->row.summary);
	mem_drop(&e->row.content);
	mem_drop(&e->row.content_base);
	mem_drop(&e->row.extra);
}

void mem_item_free(struct item *e)
{
	if (e)
		mem_item_empty(e);
	free(e);
}

struct item *mem_item_copy(const struct fw_entry_row *row)
{
	struct item *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->row = *row;
	e->row.feed_title = e->row.feed_url = FW_STR_NONE;
	e->row.guid = e->row.url = e->row.title = e->row.author = FW_STR_NONE;
	e->row.summary = e->row.content = e->row.content_base = e->row.extra = FW_STR_NONE;
	if (mem_keep(&e->row.guid, row->guid) && mem_keep(&e->row.url, row->url) && mem_keep(&e->row.title, row->title) &&
	    mem_keep(&e->row.author, row->author) && mem_keep(&e->row.summary, row->summary) &&
	    mem_keep(&e->row.content, row->content) && mem_keep(&e->row.content_base, row->content_base) &&
	    mem_keep(&e->row.extra, row->extra))
		return e;
	mem_item_free(e);
	return NULL;
}

void mem_node_free(struct memory *m, struct node *f)
{
	struct fw_str *const s[] = {
		&f->feed.url, &f->feed.why, &f->feed.error, &f->feed.validator_url, &f->feed.etag, &f->feed.last_modified,
		&f->feed.title, &f->feed.home_page_url, &f->feed.description, &f->feed.language, &f->feed.icon, &f->feed.hub,
		&f->feed.topic, &f->feed.extra, &f->feed.rhythm, &f->feed.redirect_url, &f->feed.user_title, &f->feed.folder,
		&f->feed.username, &f->feed.password, &f->feed.host_key,
	};

	for (size_t i = 0; i < FW_N(s); i++)
		mem_drop(s[i]);
	mem_host_give(m, f->host);
	free(f->worker);
	fw_map_finish(&f->items);
	free(f);
}

/* ---- life ----------------------------------------------------------------------------------------------------------- */

static int memory_open(const struct fw_store_config *cfg, struct fw_store **out, struct fw_err *err)
{
	struct memory *m;

	if (fw_store_url_rest(cfg->url).len)
		return fw_err_set(err, FW_EINVAL, "store \"%s\": nothing may follow \"memory:\"", cfg->url);
	m = calloc(1, sizeof(*m));
	if (!m)
		return mem_no_memory(err);
	*out = &m->base;
	return 0;
}

void mem_beats_forget(struct memory *m, int64_t before_ms)
{
	size_t kept = 0;

	for (size_t i = 0; i < m->beats.n; i++) {
		struct beat *b = m->beats.at[i];

		if (b->beat.at_ms >= before_ms) {
			m->beats.at[kept++] = b;
			continue;
		}
		free(b->worker);
		free(b);
	}
	m->beats.n = kept;
}

static void memory_close(struct fw_store *st)
{
	struct memory *m = mem_of(st);

	for (size_t i = 0; i < m->feeds.n; i++)
		mem_node_free(m, m->feeds.at[i]);
	for (size_t i = 0; i < m->items.n; i++)
		mem_item_free(m->items.at[i]);
	for (size_t i = 0; i < m->visits.n; i++) {
		struct fw_visit *v = m->visits.at[i];

		mem_drop(&v->error);
		free(v);
	}
	mem_beats_forget(m, INT64_MAX);
	mem_events_free(m);
	mem_records_free(m);
	for (size_t i = 0; i < m->controls.n; i++)
		free(m->controls.at[i]);
	free(m->feeds.at);
	free(m->items.at);
	free(m->visits.at);
	free(m->beats.at);
	free(m->controls.at);
	fw_map_finish(&m->by_url);
	fw_map_finish(&m->hosts);
	free(m);
}

static int memory_ping(struct fw_store *st, struct fw_err *err)
{
	(void)st;
	(void)err;
	return 0;
}

static const char *const schemes[] = {"memory", NULL};

const struct fw_store_driver fw_store_memory = {
	.abi = FW_STORE_ABI,
	.name = "memory",
	.schemes = schemes,
	.open = memory_open,
	.close = memory_close,
	.ping = memory_ping,
	.claim = mem_claim,
	.commit = mem_commit,
	.release = mem_release,
	.bury = mem_bury,
	.subscribe = mem_subscribe,
	.unsubscribe = mem_unsubscribe,
	.feed_find = mem_feed_find,
	.feed_list = mem_feed_list,
	.feed_set = mem_feed_set,
	.entry_list = mem_entry_list,
	.visit_list = mem_visit_list,
	.stats = mem_stats,
	.pending = mem_pending,
	.control_put = mem_control_put,
	.control_take = mem_control_take,
	.beat_list = mem_beat_list,
	.prune = mem_prune,
	.load = mem_load,
	.key_list = mem_key_list,
	.event_put = mem_event_put,
	.event_bury = mem_event_bury,
	.event_list = mem_event_list,
	.event_dead_list = mem_event_dead_list,
	.event_prune = mem_event_prune,
	.record_put = mem_record_put,
	.record_get = mem_record_get,
	.record_list = mem_record_list,
	.record_remove = mem_record_remove,
	.record_prune = mem_record_prune,
	.lend = mem_lend,
	.event_unbury = mem_event_unbury,
	.due_list = mem_due_list,
	.feed_merge = mem_feed_merge,
};
