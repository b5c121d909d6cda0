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
 */
#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/url.h"
#include "store/drivers.h"

struct host {
	char *name;
	uint32_t feed_n, busy_n;
	int64_t next_ok_ms;
};

struct item {
	struct fw_entry_row row;
	bool pruned; /* only key and hash are left, so that it does not come back as new */
};

struct node { /* a feed on the wheel */
	struct fw_feed feed; /* lease_until_ms != 0: lent */
	struct host *host;
	char *worker;        /* who has it */
	struct fw_map items; /* key -> struct item */
	int64_t pruned_n;    /* of these */
};

struct beat {
	struct fw_beat beat;
	char *worker;
};

struct list { /* pointers in order of id */
	void **at;
	size_t n, cap;
};

struct memory {
	struct fw_store base;
	struct list feeds, items, visits, beats, controls;
	struct fw_map by_url, hosts;
	int64_t feed_id, entry_id, fence;
	int64_t pruned_n; /* of items */
};

static struct memory *memory_of(struct fw_store *st)
{
	return (struct memory *)st; /* base comes first */
}

static int no_memory(struct fw_err *err)
{
	return fw_err_set(err, FW_ENOMEM, "memory store: out of memory");
}

/* ---- lists, strings ------------------------------------------------------------------------------------------------- */

static int list_room(struct list *l, size_t more)
{
	size_t cap = l->cap ? l->cap : 64;
	void **at;

	while (cap < l->n + more)
		cap *= 2;
	if (cap == l->cap)
		return 0;
	at = realloc(l->at, cap * sizeof(*at));
	if (!at)
		return FW_ENOMEM;
	l->at = at;
	l->cap = cap;
	return 0;
}

static void list_cut(struct list *l, size_t i)
{
	memmove(&l->at[i], &l->at[i + 1], (l->n - i - 1) * sizeof(*l->at));
	l->n--;
}

/* Replace *dst by a copy of src; on failure *dst stays. */
static bool keep(struct fw_str *dst, struct fw_str src)
{
	char *p = src.p ? fw_str_dup(src) : NULL;

	if (src.p && !p)
		return false;
	free((char *)dst->p);
	*dst = (struct fw_str){p, src.len};
	return true;
}

static void drop(struct fw_str *s)
{
	free((char *)s->p);
	*s = FW_STR_NONE;
}

static struct fw_str key_of(const struct fw_entry_row *row)
{
	return (struct fw_str){(const char *)row->key, sizeof(row->key)};
}

/* ---- feeds, hosts, entries ----------------------------------------------------------------------------------------- */

static size_t node_index(const struct memory *m, int64_t id) /* of the first feed with this id or a higher one */
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

static struct node *node_find(const struct memory *m, int64_t id)
{
	size_t i = node_index(m, id);
	struct node *f = i < m->feeds.n ? m->feeds.at[i] : NULL;

	return f && f->feed.id == id ? f : NULL;
}

static int not_found(int64_t feed_id, struct fw_err *err)
{
	return fw_err_set(err, FW_ENOTFOUND, "memory store: no feed number %lld", (long long)feed_id);
}

static struct host *host_take(struct memory *m, struct fw_str url)
{
	char name[256];
	struct host *h;
	int rc;

	if (!fw_url_host(url, name, sizeof(name)))
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
	}
	h->feed_n++;
	return h;
}

static void host_give(struct memory *m, struct host *h)
{
	if (!h || --h->feed_n)
		return;
	fw_map_del(&m->hosts, fw_str(h->name));
	free(h->name);
	free(h);
}

static void item_empty(struct item *e)
{
	drop(&e->row.guid);
	drop(&e->row.url);
	drop(&e->row.title);
	drop(&e->row.author);
	drop(&e->row.summary);
	drop(&e->row.content);
	drop(&e->row.content_base);
	drop(&e->row.extra);
}

static void item_free(struct item *e)
{
	if (e)
		item_empty(e);
	free(e);
}

static struct item *item_copy(const struct fw_entry_row *row)
{
	struct item *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->row = *row;
	e->row.feed_title = e->row.feed_url = FW_STR_NONE;
	e->row.guid = e->row.url = e->row.title = e->row.author = FW_STR_NONE;
	e->row.summary = e->row.content = e->row.content_base = e->row.extra = FW_STR_NONE;
	if (keep(&e->row.guid, row->guid) && keep(&e->row.url, row->url) && keep(&e->row.title, row->title) &&
	    keep(&e->row.author, row->author) && keep(&e->row.summary, row->summary) &&
	    keep(&e->row.content, row->content) && keep(&e->row.content_base, row->content_base) &&
	    keep(&e->row.extra, row->extra))
		return e;
	item_free(e);
	return NULL;
}

static void node_free(struct memory *m, struct node *f)
{
	struct fw_str *const s[] = {
		&f->feed.url, &f->feed.why, &f->feed.error, &f->feed.validator_url, &f->feed.etag, &f->feed.last_modified,
		&f->feed.title, &f->feed.home_page_url, &f->feed.description, &f->feed.language, &f->feed.icon, &f->feed.hub,
		&f->feed.topic, &f->feed.extra, &f->feed.rhythm, &f->feed.redirect_url, &f->feed.user_title, &f->feed.folder,
		&f->feed.username, &f->feed.password,
	};

	for (size_t i = 0; i < FW_N(s); i++)
		drop(s[i]);
	host_give(m, f->host);
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
		return no_memory(err);
	*out = &m->base;
	return 0;
}

static void beats_forget(struct memory *m, int64_t before_ms)
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
	struct memory *m = memory_of(st);

	for (size_t i = 0; i < m->feeds.n; i++)
		node_free(m, m->feeds.at[i]);
	for (size_t i = 0; i < m->items.n; i++)
		item_free(m->items.at[i]);
	for (size_t i = 0; i < m->visits.n; i++) {
		struct fw_visit *v = m->visits.at[i];

		drop(&v->error);
		free(v);
	}
	beats_forget(m, INT64_MAX);
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

/* ---- the wheel -------------------------------------------------------------------------------------------------------- */

static bool on_wheel(const struct node *f)
{
	return f->feed.status == FW_FEED_ACTIVE;
}

/* When it may be lent, its host's budget aside. */
static int64_t wake_ms(const struct node *f)
{
	return f->feed.lease_until_ms ? f->feed.lease_until_ms : FW_MAX(f->feed.due_at_ms, f->host->next_ok_ms);
}

static void lease_end(struct node *f)
{
	if (f->feed.lease_until_ms)
		f->host->busy_n--;
	f->feed.lease_until_ms = 0;
	free(f->worker);
	f->worker = NULL;
}

static int by_due(const void *a, const void *b)
{
	const struct node *x = *(const struct node *const *)a, *y = *(const struct node *const *)b;

	if (x->feed.due_at_ms != y->feed.due_at_ms)
		return x->feed.due_at_ms < y->feed.due_at_ms ? -1 : 1;
	return x->feed.id < y->feed.id ? -1 : x->feed.id > y->feed.id;
}

/* Lend one feed; false: its host has no budget. *rc is set out of memory. */
static bool lend(struct memory *m, struct node *f, const struct fw_claim_ask *ask, int64_t now, struct fw_arena *a,
	struct fw_lease *out, int *rc)
{
	struct host *h = f->host;
	char *worker;

	if ((ask->host_max && h->busy_n >= ask->host_max) || now < h->next_ok_ms)
		return false;
	worker = fw_str_dup(fw_str(ask->worker));
	out->feed = f->feed;
	if (!worker || !fw_store_feed_dup(a, &out->feed)) {
		free(worker);
		*rc = FW_ENOMEM;
		return false;
	}
	h->busy_n++;
	h->next_ok_ms = h->feed_n > 1 ? now + ask->host_gap_ms : h->next_ok_ms;
	f->worker = worker;
	f->feed.fence = ++m->fence;
	f->feed.lease_until_ms = now + ask->lease_ms;
	out->feed.fence = out->fence = f->feed.fence;
	out->feed.lease_until_ms = out->until_ms = f->feed.lease_until_ms;
	return true;
}

static int memory_claim(struct fw_store *st, const struct fw_claim_ask *ask, struct fw_arena *a, struct fw_lease *out,
	struct fw_claim_got *got, struct fw_err *err)
{
	struct memory *m = memory_of(st);
	int64_t now = ask->now_ms ? ask->now_ms : fw_now_ms();
	int64_t before = ask->due_before_ms ? ask->due_before_ms : now;
	struct node **due = malloc((m->feeds.n + 1) * sizeof(struct node *));
	size_t due_n = 0;
	int rc = 0;

	if (!due)
		return no_memory(err);
	for (size_t i = 0; i < m->feeds.n; i++) {
		struct node *f = m->feeds.at[i];

		if (!on_wheel(f) && !f->feed.lease_until_ms)
			continue;
		if (f->feed.lease_until_ms && f->feed.lease_until_ms <= now)
			lease_end(f);
		if (on_wheel(f) && !f->feed.lease_until_ms && f->feed.due_at_ms <= FW_MIN(now, before))
			due[due_n++] = f;
	}
	qsort(due, due_n, sizeof(struct node *), by_due);
	for (size_t i = 0; i < due_n && got->n < ask->max && !rc; i++) {
		if (lend(m, due[i], ask, now, a, &out[got->n], &rc))
			got->n++;
		else if (!rc)
			got->deferred_n++;
	}
	for (size_t i = 0; i < m->feeds.n; i++) {
		struct node *f = m->feeds.at[i];

		if (on_wheel(f) && (got->next_ms == FW_NO_DATE || wake_ms(f) < got->next_ms))
			got->next_ms = wake_ms(f);
	}
	free(due);
	if (rc)
		no_memory(err); /* what was lent so far returns by its lease */
	return rc;
}

/* All that one outcome needs, copied before anything is changed. */
struct change {
	struct node *node;
	struct fw_feed feed;   /* copies of the strings of the groups in use */
	struct host *host;     /* taken for a new URL */
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
}

static void change_free(struct memory *m, struct change *c, unsigned groups)
{
	struct fw_str *s[20];
	size_t n;

	group_strings(&c->feed, groups, s, &n);
	for (size_t i = 0; i < n; i++)
		drop(s[i]);
	host_give(m, c->host);
	if (c->visit)
		drop(&c->visit->error);
	free(c->visit);
	for (size_t i = 0; i < c->item_n; i++)
		item_free(c->item[i]);
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
	c->node = node_find(m, o->feed_id);
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
	if (*groups & FW_GROUP_URL) {
		c->host = host_take(m, source.url);
		if (!c->host)
			return FW_ENOMEM;
	}
	group_strings(&source, *groups, from, &n);
	group_strings(&c->feed, *groups, to, &n);
	for (size_t i = 0; i < n; i++) {
		if (!keep(to[i], *from[i]))
			return FW_ENOMEM;
	}
	c->visit = malloc(sizeof(*c->visit));
	if (!c->visit)
		return FW_ENOMEM;
	*c->visit = o->visit;
	c->visit->feed_id = o->feed_id;
	c->visit->error = c->visit->feed_url = FW_STR_NONE;
	if (!keep(&c->visit->error, o->visit.error))
		return FW_ENOMEM;
	c->item = calloc(o->entry_n + 1, sizeof(struct item *));
	if (!c->item)
		return FW_ENOMEM;
	c->item_n = o->entry_n;
	for (size_t i = 0; i < o->entry_n; i++) {
		const struct item *old = fw_map_get(&c->node->items, key_of(&o->entries[i]));

		if ((old && old->row.hash == o->entries[i].hash) || key_seen(o, i))
			continue;
		c->item[i] = item_copy(&o->entries[i]);
		if (!c->item[i])
			return FW_ENOMEM;
	}
	return list_room(&m->items, o->entry_n);
}

/* Link the new entries in; an entry that is known is replaced and keeps its id and when it was first seen. */
static int items_apply(struct memory *m, struct change *c, int64_t now, struct fw_visit *v)
{
	for (size_t i = 0; i < c->item_n; i++) {
		struct item *e = c->item[i], *old;
		int rc;

		if (!e)
			continue;
		old = fw_map_get(&c->node->items, key_of(&e->row));
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
		fw_map_put(&c->node->items, key_of(&e->row), e, &rc);
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

	if (groups & FW_GROUP_URL) {
		fw_map_del(&m->by_url, f->url);
		host_give(m, c->node->host);
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
	f->due_at_ms = src->due_at_ms;
	f->last_visit_ms = src->last_visit_ms;
	f->last_ok_ms = src->last_ok_ms;
	f->last_kind = src->last_kind;
	f->http_status = src->http_status;
	f->fail_n = src->fail_n;
	f->crash_n = src->crash_n;
	f->expect_us = src->expect_us;
	f->expect_dev_us = src->expect_dev_us;
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
	if (o->host_cooldown_ms > c->node->host->next_ok_ms)
		c->node->host->next_ok_ms = o->host_cooldown_ms;
}

static int beat_put(struct memory *m, const struct fw_beat *beat, int64_t now)
{
	struct beat *b = NULL;

	for (size_t i = 0; i < m->beats.n; i++) {
		if (strcmp(((struct beat *)m->beats.at[i])->worker, beat->worker) == 0)
			b = m->beats.at[i];
	}
	if (!b) {
		if (list_room(&m->beats, 1))
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

static int memory_commit(struct fw_store *st, struct fw_commit *batch, struct fw_err *err)
{
	struct memory *m = memory_of(st);
	int64_t now = batch->now_ms ? batch->now_ms : fw_now_ms();
	int rc = batch->beat ? beat_put(m, batch->beat, now) : 0;

	rc = rc ? rc : list_room(&m->visits, batch->n);
	for (size_t i = 0; i < batch->n && !rc; i++) {
		struct fw_outcome *o = &batch->outcome[i];
		struct change c = {.item_n = 0};
		unsigned groups;

		o->visit.new_n = o->visit.changed_n = 0;
		rc = change_prepare(m, o, &c, &groups);
		if (!rc && c.node)
			rc = items_apply(m, &c, now, &o->visit);
		if (!rc && c.node) {
			lease_end(c.node);
			feed_apply(m, &c, o, groups, now);
			c.visit->new_n = o->visit.new_n;
			c.visit->changed_n = o->visit.changed_n;
			m->visits.at[m->visits.n++] = c.visit;
			c.visit = NULL;
		}
		change_free(m, &c, groups);
	}
	return rc ? no_memory(err) : 0;
}

static int memory_release(struct fw_store *st, const struct fw_lease *lease, size_t n, struct fw_err *err)
{
	struct memory *m = memory_of(st);

	(void)err;
	for (size_t i = 0; i < n; i++) {
		struct node *f = node_find(m, lease[i].feed.id);

		if (f && f->feed.lease_until_ms && f->feed.fence == lease[i].fence)
			lease_end(f);
	}
	return 0;
}

static int memory_bury(struct fw_store *st, const char *worker, int64_t crashed_feed_id, int64_t now_ms, struct fw_err *err)
{
	struct memory *m = memory_of(st);

	(void)now_ms;
	(void)err;
	for (size_t i = 0; i < m->feeds.n; i++) {
		struct node *f = m->feeds.at[i];

		if (!f->feed.lease_until_ms || strcmp(f->worker, worker) != 0)
			continue;
		lease_end(f);
		if (f->feed.id != crashed_feed_id)
			continue;
		f->feed.last_kind = FW_VISIT_CRASH;
		if (++f->feed.crash_n >= FW_STORE_CRASH_MAX && on_wheel(f))
			f->feed.status = FW_FEED_QUARANTINED;
	}
	return 0;
}

/* ---- the window -------------------------------------------------------------------------------------------------------- */

static int subscribe_one(struct memory *m, struct fw_feed_new *s, int64_t now)
{
	struct node *f = fw_map_get(&m->by_url, s->url);
	int rc = 0;

	s->existed = f != NULL;
	if (f) {
		s->id = f->feed.id;
		return 0;
	}
	f = calloc(1, sizeof(*f));
	if (!f)
		return FW_ENOMEM;
	f->feed.due_at_ms = s->due_at_ms ? s->due_at_ms : now;
	f->feed.created_ms = now;
	f->feed.interval_ms = s->interval_ms;
	f->host = host_take(m, s->url);
	if (!f->host || list_room(&m->feeds, 1) || !keep(&f->feed.url, s->url) || !keep(&f->feed.user_title, s->user_title) ||
	    !keep(&f->feed.folder, s->folder) || !keep(&f->feed.home_page_url, s->home_page_url) ||
	    !keep(&f->feed.username, s->username) || !keep(&f->feed.password, s->password))
		rc = FW_ENOMEM;
	if (!rc)
		fw_map_put(&m->by_url, f->feed.url, f, &rc);
	if (rc) {
		node_free(m, f);
		return rc;
	}
	f->feed.id = s->id = ++m->feed_id;
	m->feeds.at[m->feeds.n++] = f;
	return 0;
}

static int memory_subscribe(struct fw_store *st, struct fw_feed_new *feed, size_t n, struct fw_err *err)
{
	int64_t now = fw_now_ms();

	for (size_t i = 0; i < n; i++) {
		if (subscribe_one(memory_of(st), &feed[i], now))
			return no_memory(err);
	}
	return 0;
}

static int memory_unsubscribe(struct fw_store *st, int64_t feed_id, struct fw_err *err)
{
	struct memory *m = memory_of(st);
	struct node *f = node_find(m, feed_id);
	size_t kept = 0;

	if (!f)
		return not_found(feed_id, err);
	lease_end(f);
	for (size_t i = 0; i < m->items.n; i++) {
		struct item *e = m->items.at[i];

		if (e->row.feed_id == feed_id) {
			m->pruned_n -= e->pruned;
			item_free(e);
		} else {
			m->items.at[kept++] = e;
		}
	}
	m->items.n = kept;
	kept = 0;
	for (size_t i = 0; i < m->visits.n; i++) {
		struct fw_visit *v = m->visits.at[i];

		if (v->feed_id == feed_id) {
			drop(&v->error);
			free(v);
		} else {
			m->visits.at[kept++] = v;
		}
	}
	m->visits.n = kept;
	fw_map_del(&m->by_url, f->feed.url);
	list_cut(&m->feeds, node_index(m, feed_id));
	node_free(m, f);
	return 0;
}

static struct fw_feed feed_view(const struct node *f)
{
	struct fw_feed v = f->feed;

	v.entry_n = (int64_t)f->items.n - f->pruned_n;
	return v;
}

static int memory_feed_find(struct fw_store *st, int64_t id, struct fw_str url, struct fw_arena *a, struct fw_feed *out,
	struct fw_err *err)
{
	struct memory *m = memory_of(st);
	const struct node *f = id ? node_find(m, id) : fw_map_get(&m->by_url, url);

	if (!f && id)
		return not_found(id, err);
	if (!f)
		return fw_err_set(err, FW_ENOTFOUND, "memory store: no feed %.*s", FW_STR_ARG(url));
	*out = feed_view(f);
	return fw_store_feed_dup(a, out) ? 0 : no_memory(err);
}

static bool feed_matches(const struct fw_feed *f, const struct fw_feed_query *q)
{
	if (q->status >= 0 && (int)f->status != q->status)
		return false;
	if (q->failing && !f->fail_n)
		return false;
	if (q->folder.p && !fw_str_eq(f->folder, q->folder))
		return false;
	return !q->match.p || fw_str_ifind(f->url, q->match) || fw_str_ifind(f->title, q->match) ||
		fw_str_ifind(f->user_title, q->match);
}

static int memory_feed_list(struct fw_store *st, const struct fw_feed_query *q, fw_feed_cb *cb, void *ctx, struct fw_err *err)
{
	struct memory *m = memory_of(st);
	struct node **order = malloc((m->feeds.n + 1) * sizeof(struct node *));
	size_t n = 0;
	int rc = 0;

	if (!order)
		return no_memory(err);
	for (size_t i = 0; i < m->feeds.n; i++) {
		struct node *f = m->feeds.at[i];

		if (f->feed.id > q->after_id && feed_matches(&f->feed, q))
			order[n++] = f;
	}
	if (q->by_due)
		qsort(order, n, sizeof(struct node *), by_due);
	for (size_t i = 0; i < n && (!q->limit || i < q->limit) && !rc; i++) {
		struct fw_feed v = feed_view(order[i]);

		rc = cb(ctx, &v);
	}
	free(order);
	return rc;
}

static int memory_feed_set(struct fw_store *st, const struct fw_feed *feed, unsigned what, struct fw_err *err)
{
	struct node *f = node_find(memory_of(st), feed->id);
	bool ok = true;

	if (!f)
		return not_found(feed->id, err);
	if (what & FW_SET_TITLE)
		ok = ok && keep(&f->feed.user_title, feed->user_title);
	if (what & FW_SET_FOLDER)
		ok = ok && keep(&f->feed.folder, feed->folder);
	if (what & FW_SET_AUTH)
		ok = ok && keep(&f->feed.username, feed->username) && keep(&f->feed.password, feed->password);
	if (!ok)
		return no_memory(err);
	if (what & FW_SET_STATUS)
		f->feed.status = feed->status;
	if (what & FW_SET_INTERVAL)
		f->feed.interval_ms = feed->interval_ms;
	if (what & FW_SET_DUE)
		f->feed.due_at_ms = feed->due_at_ms;
	if (what & FW_SET_CRASH)
		f->feed.crash_n = feed->crash_n;
	return 0;
}

static bool word_in(struct fw_str text, const struct fw_store_word *w)
{
	const char *p = text.p;

	while (p) {
		struct fw_str rest = {p, (size_t)(text.p + text.len - p)};
		const char *hit = fw_str_ifind(rest, w->text), *end;

		if (!hit)
			return false;
		end = hit + w->text.len;
		if ((hit == text.p || !fw_is_alnum(hit[-1])) && (w->prefix || end == text.p + text.len || !fw_is_alnum(*end)))
			return true;
		p = hit + 1;
	}
	return false;
}

static bool item_matches(const struct fw_entry_row *e, const struct fw_entry_query *q)
{
	struct fw_str rest = q->search;
	struct fw_store_word w;

	if ((q->feed_id && e->feed_id != q->feed_id) || e->seen_ms < q->since_ms || e->id <= q->after_id ||
	    (q->before_id && e->id >= q->before_id))
		return false;
	while (rest.p && fw_store_word_next(&rest, &w)) {
		if (!word_in(e->title, &w) && !word_in(e->summary, &w) && !word_in(e->content, &w))
			return false;
	}
	return true;
}

static int newest_first(const void *a, const void *b)
{
	const struct fw_entry_row *x = &(*(const struct item *const *)a)->row, *y = &(*(const struct item *const *)b)->row;
	int64_t dx = fw_store_entry_date(x, x->seen_ms), dy = fw_store_entry_date(y, y->seen_ms);

	if (dx != dy)
		return dx > dy ? -1 : 1;
	return x->id > y->id ? -1 : x->id < y->id;
}

static int memory_entry_list(struct fw_store *st, const struct fw_entry_query *q, fw_entry_cb *cb, void *ctx,
	struct fw_err *err)
{
	struct memory *m = memory_of(st);
	struct item **order = malloc((m->items.n + 1) * sizeof(struct item *));
	size_t n = 0;
	int rc = 0;

	if (!order)
		return no_memory(err);
	for (size_t i = 0; i < m->items.n; i++) {
		struct item *e = m->items.at[i];

		if (!e->pruned && item_matches(&e->row, q))
			order[n++] = e;
	}
	if (!q->oldest_first)
		qsort(order, n, sizeof(struct item *), newest_first);
	for (size_t i = 0; i < n && (!q->limit || i < q->limit) && !rc; i++) {
		struct fw_entry_row row = order[i]->row;
		const struct node *f = node_find(m, row.feed_id);

		row.feed_title = f->feed.user_title.len ? f->feed.user_title : f->feed.title;
		row.feed_url = f->feed.url;
		if (!q->content)
			row.content = row.content_base = FW_STR_NONE;
		rc = cb(ctx, &row);
	}
	free(order);
	return rc;
}

static int memory_visit_list(struct fw_store *st, const struct fw_visit_query *q, fw_visit_cb *cb, void *ctx,
	struct fw_err *err)
{
	struct memory *m = memory_of(st);
	size_t n = 0;
	int rc = 0;

	(void)err;
	for (size_t i = m->visits.n; i-- > 0 && (!q->limit || n < q->limit) && !rc;) {
		struct fw_visit v = *(struct fw_visit *)m->visits.at[i];

		if ((q->feed_id && v.feed_id != q->feed_id) || (q->run_id && v.run_id != q->run_id) || v.at_ms < q->since_ms)
			continue;
		v.feed_url = node_find(m, v.feed_id)->feed.url;
		n++;
		rc = cb(ctx, &v);
	}
	return rc;
}

static int memory_stats(struct fw_store *st, int64_t now_ms, struct fw_store_stats *out, struct fw_err *err)
{
	struct memory *m = memory_of(st);
	int64_t now = now_ms ? now_ms : fw_now_ms();

	(void)err;
	for (size_t i = 0; i < m->feeds.n; i++) {
		const struct node *f = m->feeds.at[i];

		out->feed_n++;
		out->active_n += on_wheel(f);
		out->paused_n += f->feed.status == FW_FEED_PAUSED;
		out->gone_n += f->feed.status == FW_FEED_GONE;
		out->quarantined_n += f->feed.status == FW_FEED_QUARANTINED;
		out->failing_n += f->feed.fail_n > 0;
		out->lent_n += f->feed.lease_until_ms != 0;
		if (!on_wheel(f) || f->feed.lease_until_ms)
			continue;
		out->due_n += f->feed.due_at_ms <= now;
		if (out->next_due_ms == FW_NO_DATE || f->feed.due_at_ms < out->next_due_ms)
			out->next_due_ms = f->feed.due_at_ms;
	}
	out->entry_n = (int64_t)m->items.n - m->pruned_n;
	out->visit_n = (int64_t)m->visits.n;
	return 0;
}

static int memory_pending(struct fw_store *st, int64_t due_before_ms, int64_t *n, int64_t *wake, struct fw_err *err)
{
	struct memory *m = memory_of(st);

	(void)err;
	for (size_t i = 0; i < m->feeds.n; i++) {
		const struct node *f = m->feeds.at[i];

		if (!on_wheel(f) || f->feed.due_at_ms > due_before_ms)
			continue;
		++*n;
		if (*wake == FW_NO_DATE || wake_ms(f) < *wake)
			*wake = wake_ms(f);
	}
	return 0;
}

static int memory_control_put(struct fw_store *st, enum fw_control_kind kind, int64_t now_ms, struct fw_err *err)
{
	struct memory *m = memory_of(st);
	struct fw_control *c = malloc(sizeof(*c));

	if (!c || list_room(&m->controls, 1)) {
		free(c);
		return no_memory(err);
	}
	*c = (struct fw_control){(int64_t)m->controls.n + 1, kind, now_ms ? now_ms : fw_now_ms()};
	m->controls.at[m->controls.n++] = c;
	return 0;
}

static int memory_control_take(struct fw_store *st, int64_t after_id, struct fw_control *out, struct fw_err *err)
{
	const struct memory *m = memory_of(st);

	(void)err;
	if (after_id < 0)
		out->id = (int64_t)m->controls.n;
	else if ((size_t)after_id < m->controls.n)
		*out = *(struct fw_control *)m->controls.at[after_id];
	return 0;
}

static int memory_beat_list(struct fw_store *st, int64_t since_ms, fw_beat_cb *cb, void *ctx, struct fw_err *err)
{
	const struct memory *m = memory_of(st);
	int rc = 0;

	(void)err;
	for (size_t i = 0; i < m->beats.n && !rc; i++) {
		const struct beat *b = m->beats.at[i];

		if (b->beat.at_ms >= since_ms)
			rc = cb(ctx, &b->beat);
	}
	return rc;
}

static int memory_prune(struct fw_store *st, int64_t visits_before_ms, int64_t entries_before_ms, int64_t *n, struct fw_err *err)
{
	struct memory *m = memory_of(st);
	size_t kept = 0;

	(void)err;
	for (size_t i = 0; i < m->visits.n; i++) {
		struct fw_visit *v = m->visits.at[i];

		if (v->at_ms < visits_before_ms) {
			drop(&v->error);
			free(v);
		} else {
			m->visits.at[kept++] = v;
		}
	}
	*n += (int64_t)(m->visits.n - kept);
	m->visits.n = kept;
	beats_forget(m, visits_before_ms);
	for (size_t i = 0; i < m->items.n; i++) {
		struct item *e = m->items.at[i];

		if (e->pruned || e->row.changed_ms >= entries_before_ms)
			continue;
		item_empty(e);
		e->pruned = true;
		node_find(m, e->row.feed_id)->pruned_n++;
		m->pruned_n++;
		++*n;
	}
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
	.claim = memory_claim,
	.commit = memory_commit,
	.release = memory_release,
	.bury = memory_bury,
	.subscribe = memory_subscribe,
	.unsubscribe = memory_unsubscribe,
	.feed_find = memory_feed_find,
	.feed_list = memory_feed_list,
	.feed_set = memory_feed_set,
	.entry_list = memory_entry_list,
	.visit_list = memory_visit_list,
	.stats = memory_stats,
	.pending = memory_pending,
	.control_put = memory_control_put,
	.control_take = memory_control_take,
	.beat_list = memory_beat_list,
	.prune = memory_prune,
};
