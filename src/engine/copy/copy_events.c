/* SPDX-License-Identifier: ISC */
/*
 * Pushed events, and those set aside, of one store compared with another's: both are read in order of their ids, a page of the source at
 * a time beside what the target has of that range. What is missing is put there, or told. The target may have more of its own: pushes
 * that came to it already, which nobody takes away.
 */
#include <stdlib.h>

#include "base/hash.h"
#include "base/str.h"
#include "engine/copy/copy.h"

struct item { /* one or the other */
	const struct fw_event *event;
	const struct fw_dead_event *dead;
};

typedef int item_fn(void *ctx, const struct item *item);

struct walker {
	item_fn *fn;
	void *ctx;
};

struct page { /* of the source, in order of id */
	struct copy *c;
	bool dead;
	struct fw_event event[COPY_ROWS];
	struct fw_dead_event dead_event[COPY_ROWS];
	uint64_t hash[COPY_ROWS];
	enum { MISSING, SAME, OTHER } at_target[COPY_ROWS];
	size_t n;
	int64_t last_id;
	size_t met;          /* of the target's walk: up to here they are compared */
	size_t walked;       /* rows of the target, and the last one's id */
	int64_t walked_id;
};

static int64_t id_at(const struct page *p, size_t i)
{
	return p->dead ? p->dead_event[i].id : p->event[i].id;
}

static int event_met(void *ctx, const struct fw_event *e)
{
	const struct walker *w = ctx;

	return w->fn(w->ctx, &(struct item){.event = e});
}

static int dead_met(void *ctx, const struct fw_dead_event *e)
{
	const struct walker *w = ctx;

	return w->fn(w->ctx, &(struct item){.dead = e});
}

static int items_list(struct fw_store *st, bool dead, int64_t after_id, size_t limit, item_fn *fn, void *ctx, struct fw_err *err)
{
	struct walker w = {fn, ctx};

	return dead ? fw_store_event_dead_list(st, after_id, limit, dead_met, &w, err) :
		fw_store_event_list(st, after_id, limit, event_met, &w, err);
}

static void hash_int(struct fw_hasher *h, int64_t v)
{
	fw_hasher_add(h, (struct fw_str){(const char *)&v, sizeof(v)});
}

static uint64_t item_hash(const struct item *item)
{
	struct fw_hasher h;

	fw_hasher_init(&h);
	if (item->dead) {
		hash_int(&h, item->dead->at_ms);
		fw_hasher_add(&h, item->dead->row);
		fw_hasher_add(&h, item->dead->reason);
	} else {
		hash_int(&h, item->event->section);
		hash_int(&h, item->event->item);
		hash_int(&h, item->event->stamp_ms);
		fw_hasher_add(&h, item->event->property);
		fw_hasher_add(&h, item->event->remote_ip);
	}
	return fw_hasher_end64(&h);
}

/* ---- a page of the source ---------------------------------------------------------------------------------------------------------- */

/* What it takes in memory, and a copy of its own. */
static size_t event_keep(struct fw_arena *a, const struct fw_event *e, struct fw_event *to)
{
	*to = *e;
	to->property = fw_arena_str(a, e->property);
	to->remote_ip = fw_arena_str(a, e->remote_ip);
	return sizeof(*e) + e->property.len + e->remote_ip.len;
}

static size_t dead_keep(struct fw_arena *a, const struct fw_dead_event *e, struct fw_dead_event *to)
{
	*to = *e;
	to->row = fw_arena_str(a, e->row);
	to->reason = fw_arena_str(a, e->reason);
	return sizeof(*e) + e->row.len + e->reason.len;
}

static int take(void *ctx, const struct item *item)
{
	struct page *p = ctx;
	struct copy *c = p->c;

	c->bytes += item->dead ? dead_keep(&c->arena, item->dead, &p->dead_event[p->n]) : event_keep(&c->arena, item->event, &p->event[p->n]);
	if (c->arena.failed)
		return fw_err_set(c->err, FW_ENOMEM, "copy: out of memory");
	p->hash[p->n] = item_hash(item);
	p->at_target[p->n++] = MISSING;
	return p->n == COPY_ROWS || c->bytes >= c->o->batch_bytes;
}

/* ---- beside it the target ---------------------------------------------------------------------------------------------------------- */

/* 1 ends the walk: what follows is for the next page. */
static int beside(void *ctx, const struct item *item)
{
	int64_t id = item->dead ? item->dead->id : item->event->id;
	struct page *p = ctx;

	while (p->met < p->n && id_at(p, p->met) < id)
		p->met++;
	if (p->met < p->n && id_at(p, p->met) == id)
		p->at_target[p->met] = p->hash[p->met] == item_hash(item) ? SAME : OTHER;
	p->walked++;
	p->walked_id = id;
	return id >= p->last_id;
}

/* The page behind after_id, and what the target has of it. */
static int page_read(struct page *p, int64_t after_id)
{
	struct copy *c = p->c;
	int rc;

	p->n = p->met = 0;
	c->bytes = 0;
	fw_arena_reset(&c->arena, c->o->batch_bytes);
	rc = copy_walked(items_list(c->from, p->dead, after_id, COPY_ROWS, take, p, c->err));
	if (rc || !p->n)
		return rc;
	p->last_id = id_at(p, p->n - 1);
	p->walked_id = after_id;
	do { /* in portions, for some drivers read to the end of what they asked for */
		p->walked = 0;
		rc = items_list(c->to, p->dead, p->walked_id, COPY_ROWS, beside, p, c->err);
	} while (!rc && p->walked == COPY_ROWS);
	return copy_walked(rc);
}

/* ---- copying, comparing -------------------------------------------------------------------------------------------------------------- */

/* One that is set aside, or n others. */
static int put(struct copy *c, const struct item *item, size_t n)
{
	int rc, i = 0;

	do
		rc = item->dead ? fw_store_event_bury(c->to, item->dead, c->err) : fw_store_event_put(c->to, item->event, n, c->err);
	while (copy_again(rc, &i));
	*(item->dead ? &c->s->dead_events : &c->s->events) += rc ? 0 : (int64_t)n;
	return rc;
}

/* What is missing of the page. */
static int page_put(struct page *p)
{
	size_t n = 0;
	int rc = 0;

	for (size_t i = 0; i < p->n && !rc; i++) {
		if (p->at_target[i] != MISSING)
			continue;
		if (p->dead)
			rc = put(p->c, &(struct item){.dead = &p->dead_event[i]}, 1);
		else
			p->event[n++] = p->event[i];
	}
	rc = rc || !n ? rc : put(p->c, &(struct item){.event = p->event}, n);
	if (!rc)
		p->c->s->bytes += p->c->bytes;
	return rc;
}

static void page_compare(struct page *p)
{
	const char *what = p->dead ? "event set aside" : "event";

	for (size_t i = 0; i < p->n; i++) {
		if (p->at_target[i] == MISSING)
			copy_differs(p->c, "%s %lld: missing at the target", what, (long long)id_at(p, i));
		else if (p->at_target[i] == OTHER)
			copy_differs(p->c, "%s %lld: another one at the target", what, (long long)id_at(p, i));
	}
}

/* All pages; comparing: those up to where copying had got. */
static int walk(struct copy *c, struct page *p, bool compare)
{
	struct copy_events *seen = &c->seen[p->dead];
	int64_t n = 0, last_id = 0;
	int rc = 0;

	while (!(rc = page_read(p, last_id)) && p->n) {
		while (compare && p->n && id_at(p, p->n - 1) > seen->last_id)
			p->n--; /* pushed since */
		if (!p->n)
			break;
		last_id = p->last_id;
		n += (int64_t)p->n;
		if (compare)
			page_compare(p);
		else
			rc = page_put(p);
		if (rc)
			break;
		copy_progress(c);
	}
	if (compare)
		c->s->moved_on = c->s->moved_on || n != seen->n;
	else
		*seen = (struct copy_events){.n = n, .last_id = last_id};
	return rc;
}

static int walk_both(struct copy *c, bool compare)
{
	struct page *p = calloc(1, sizeof(*p));
	int rc;

	if (!p)
		return fw_err_set(c->err, FW_ENOMEM, "copy: out of memory");
	p->c = c;
	rc = walk(c, p, compare);
	p->dead = true;
	rc = rc ? rc : walk(c, p, compare);
	free(p);
	return rc;
}

int copy_events(struct copy *c)
{
	return walk_both(c, false);
}

int copy_events_verify(struct copy *c)
{
	return walk_both(c, true);
}

static int seen(void *ctx, const struct item *item)
{
	(void)item;
	*(bool *)ctx = true;
	return 1;
}

int copy_events_any(struct copy *c, bool *any)
{
	int rc = 0;

	*any = false;
	for (int dead = 0; dead < 2 && !rc && !*any; dead++)
		rc = copy_walked(items_list(c->to, dead, 0, 1, seen, any, c->err));
	return rc;
}
