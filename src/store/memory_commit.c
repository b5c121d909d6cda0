/* SPDX-License-Identifier: ISC */
/* Outcomes, in the store in memory. Each is copied whole before anything of it is linked in. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/url.h"
#include "store/memory.h"

/* All that one outcome needs, copied before anything is changed. */
struct change {
	struct node *node;
	struct fw_feed feed;   /* copies of the strings of the groups in use */
	struct host *host;     /* taken for a new URL, or a new host */
	struct fw_visit *visit;
	struct item **item;    /* new or changed; NULL: as it was */
	size_t item_n;
};

static void group_strings(struct fw_feed *f, unsigned groups, struct fw_str *out[20], size_t *n)
{
	*n = 0;
	out[(*n)++] = &f->why;
	if (groups & FW_GROUP_ERROR)
		out[(*n)++] = &f->error;
	if (groups & FW_GROUP_VALIDATORS) {
		out[(*n)++] = &f->validator_url;
		out[(*n)++] = &f->etag;
		out[(*n)++] = &f->last_modified;
	}
	if (groups & FW_GROUP_META) {
		out[(*n)++] = &f->title;
		out[(*n)++] = &f->home_page_url;
		out[(*n)++] = &f->description;
		out[(*n)++] = &f->language;
		out[(*n)++] = &f->icon;
		out[(*n)++] = &f->hub;
		out[(*n)++] = &f->topic;
		out[(*n)++] = &f->extra;
	}
	if (groups & FW_GROUP_RHYTHM)
		out[(*n)++] = &f->rhythm;
	if (groups & FW_GROUP_REDIRECT)
		out[(*n)++] = &f->redirect_url;
	if (groups & FW_GROUP_URL)
		out[(*n)++] = &f->url;
	if (groups & FW_GROUP_HOST)
		out[(*n)++] = &f->host_key;
}

static void change_free(struct memory *m, struct change *c, unsigned groups)
{
	struct fw_str *s[20];
	size_t n;

	group_strings(&c->feed, groups, s, &n);
	for (size_t i = 0; i < n; i++)
		mem_drop(s[i]);
	mem_host_give(m, c->host);
	if (c->visit)
		mem_drop(&c->visit->error);
	free(c->visit);
	for (size_t i = 0; i < c->item_n; i++)
		mem_item_free(c->item[i]);
	free(c->item);
}

static bool key_seen(const struct fw_outcome *o, size_t i)
{
	for (size_t j = 0; j < i; j++) {
		if (memcmp(o->entries[j].key, o->entries[i].key, sizeof(o->entries[i].key)) == 0)
			return true;
	}
	return false;
}

/* Copy what an outcome brings. Sets o->rc for outcomes that write nothing or less than they wanted. */
static int change_prepare(struct memory *m, struct fw_outcome *o, struct change *c, unsigned *groups)
{
	struct fw_str *to[20], *from[20];
	struct fw_feed source = *o->feed;
	size_t n;

	*groups = o->groups;
	c->node = mem_node_find(m, o->feed_id);
	if (!c->node || !c->node->feed.lease_until_ms || c->node->feed.fence != o->fence) {
		c->node = NULL;
		o->rc = FW_ESTALE;
		*groups = 0;
		return 0;
	}
	if ((*groups & FW_GROUP_URL) && !fw_str_eq(source.url, c->node->feed.url) && fw_map_get(&m->by_url, source.url)) {
		o->rc = FW_EINVAL;
		*groups &= ~(unsigned)FW_GROUP_URL;
	}
	if (*groups & (FW_GROUP_URL | FW_GROUP_HOST)) {
		c->host = mem_host_take(m, &source);
		if (!c->host)
			return FW_ENOMEM;
	}
	group_strings(&source, *groups, from, &n);
	group_strings(&c->feed, *groups, to, &n);
	for (size_t i = 0; i < n; i++) {
		if (!mem_keep(to[i], *from[i]))
			return FW_ENOMEM;
	}
	c->visit = malloc(sizeof(*c->visit));
	if (!c->visit)
		return FW_ENOMEM;
	*c->visit = o->visit;
	c->visit->feed_id = o->feed_id;
	c->visit->error = c->visit->feed_url = FW_STR_NONE;
	if (!mem_keep(&c->visit->error, o->visit.error))
		return FW_ENOMEM;
	c->item = calloc(o->entry_n + 1, sizeof(struct item *));
	if (!c->item)
		return FW_ENOMEM;
	c->item_n = o->entry_n;
	for (size_t i = 0; i < o->entry_n; i++) {
		const struct item *old = fw_map_get(&c->node->items, mem_key_of(&o->entries[i]));

		if ((old && old->row.hash == o->entries[i].hash) || key_seen(o, i))
			continue;
		c->item[i] = mem_item_copy(&o->entries[i]);
		if (!c->item[i])
			return FW_ENOMEM;
	}
	return mem_list_room(&m->items, o->entry_n);
}

/* Link the new entries in; an entry that is known is replaced and keeps its id and when it was first seen. */
static int items_apply(struct memory *m, struct change *c, int64_t now, struct fw_visit *v)
{
	for (size_t i = 0; i < c->item_n; i++) {
		struct item *e = c->item[i], *old;
		int rc;

		if (!e)
			continue;
		old = fw_map_get(&c->node->items, mem_key_of(&e->row));
		e->row.feed_id = c->node->feed.id;
		e->row.id = old ? old->row.id : m->entry_id + 1;
		e->row.seen_ms = old ? old->row.seen_ms : now;
		e->row.changed_ms = now;
		e->row.revision = old ? old->row.revision + 1 : 1;
		if (old && old->pruned) {
			old->row.hash = e->row.hash;
			continue;
		}
		if (old) {
			struct item copy = *old;

			*old = *e; /* in its place in both lists */
			*e = copy;
			v->changed_n++;
			continue;
		}
		fw_map_put(&c->node->items, mem_key_of(&e->row), e, &rc);
		if (rc)
			return rc;
		c->item[i] = NULL;
		m->items.at[m->items.n++] = e;
		m->entry_id++;
		v->new_n++;
	}
	return 0;
}

static void feed_apply(struct memory *m, struct change *c, const struct fw_outcome *o, unsigned groups, int64_t now)
{
	struct fw_feed *f = &c->node->feed;
	const struct fw_feed *src = o->feed;
	struct fw_str *to[20], *from[20], spare;
	size_t n;
	int rc;

	if (groups & FW_GROUP_URL)
		fw_map_del(&m->by_url, f->url);
	if (groups & (FW_GROUP_URL | FW_GROUP_HOST)) {
		mem_host_give(m, c->node->host);
		c->node->host = c->host;
		c->host = NULL;
	}
	group_strings(f, groups, to, &n);
	group_strings(&c->feed, groups, from, &n);
	for (size_t i = 0; i < n; i++) {
		spare = *to[i];
		*to[i] = *from[i];
		*from[i] = spare;
	}
	if (groups & FW_GROUP_URL)
		fw_map_put(&m->by_url, f->url, c->node, &rc); /* fits: one was taken out above */
	if (f->status == FW_FEED_ACTIVE)
		f->status = src->status; /* what the owner set meanwhile stays */
	if (o->visit.kind != FW_VISIT_PUSHED)
		f->due_at_ms = src->due_at_ms;
	f->last_visit_ms = src->last_visit_ms;
	f->last_ok_ms = src->last_ok_ms;
	f->last_kind = src->last_kind;
	f->http_status = src->http_status;
	f->fail_n = src->fail_n;
	f->crash_n = src->crash_n;
	f->expect_us = src->expect_us;
	f->expect_dev_us = src->expect_dev_us;
	f->expect_parts = src->expect_parts;
	if (groups & FW_GROUP_VALIDATORS) {
		f->validators_ms = src->validators_ms;
		f->body_hash = src->body_hash;
	}
	if (groups & FW_GROUP_META)
		f->format = src->format;
	if (groups & FW_GROUP_REDIRECT) {
		f->redirect_since_ms = src->redirect_since_ms;
		f->redirect_n = src->redirect_n;
	}
	if (o->visit.new_n)
		f->last_new_ms = now;
	fw_budget_tell(&c->node->host->budget, o, now);
}

static int beat_put(struct memory *m, const struct fw_beat *beat, int64_t now)
{
	struct beat *b = NULL;

	for (size_t i = 0; i < m->beats.n; i++) {
		if (strcmp(((struct beat *)m->beats.at[i])->worker, beat->worker) == 0)
			b = m->beats.at[i];
	}
	if (!b) {
		if (mem_list_room(&m->beats, 1))
			return FW_ENOMEM;
		b = calloc(1, sizeof(*b));
		if (!b)
			return FW_ENOMEM;
		b->worker = fw_str_dup(fw_str(beat->worker));
		if (!b->worker) {
			free(b);
			return FW_ENOMEM;
		}
		m->beats.at[m->beats.n++] = b;
	}
	b->beat = *beat;
	b->beat.worker = b->worker;
	b->beat.at_ms = now;
	return 0;
}

int mem_commit(struct fw_store *st, struct fw_commit *batch, struct fw_err *err)
{
	struct memory *m = mem_of(st);
	int64_t now = batch->now_ms ? batch->now_ms : fw_now_ms();
	int rc = batch->beat ? beat_put(m, batch->beat, now) : 0;

	rc = rc ? rc : mem_list_room(&m->visits, batch->n);
	for (size_t i = 0; i < batch->n && !rc; i++) {
		struct fw_outcome *o = &batch->outcome[i];
		struct change c = {.item_n = 0};
		unsigned groups;

		o->visit.new_n = o->visit.changed_n = 0;
		rc = change_prepare(m, o, &c, &groups);
		if (!rc && c.node)
			rc = items_apply(m, &c, now, &o->visit);
		if (!rc && c.node) {
			mem_lease_end(c.node, o, now);
			feed_apply(m, &c, o, groups, now);
			c.visit->new_n = o->visit.new_n;
			c.visit->changed_n = o->visit.changed_n;
			c.visit->id = ++m->visit_id;
			m->visits.at[m->visits.n++] = c.visit;
			c.visit = NULL;
		}
		change_free(m, &c, groups);
	}
	return rc ? mem_no_memory(err) : 0;
}
