/* SPDX-License-Identifier: ISC */
/* What people look at and change, in the store in memory: feeds, figures, messages, workers. */
#include <stdlib.h>

#include "base/clock.h"
#include "store/memory.h"

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
	f->host = mem_host_take(m, &(struct fw_feed){.url = s->url});
	if (!f->host || mem_list_room(&m->feeds, 1) || !mem_keep(&f->feed.url, s->url) || !mem_keep(&f->feed.user_title, s->user_title) ||
	    !mem_keep(&f->feed.folder, s->folder) || !mem_keep(&f->feed.home_page_url, s->home_page_url) ||
	    !mem_keep(&f->feed.username, s->username) || !mem_keep(&f->feed.password, s->password))
		rc = FW_ENOMEM;
	if (!rc)
		fw_map_put(&m->by_url, f->feed.url, f, &rc);
	if (rc) {
		mem_node_free(m, f);
		return rc;
	}
	f->feed.id = s->id = ++m->feed_id;
	m->feeds.at[m->feeds.n++] = f;
	return 0;
}

int mem_subscribe(struct fw_store *st, struct fw_feed_new *feed, size_t n, struct fw_err *err)
{
	int64_t now = fw_now_ms();

	for (size_t i = 0; i < n; i++) {
		if (subscribe_one(mem_of(st), &feed[i], now))
			return mem_no_memory(err);
	}
	return 0;
}

int mem_unsubscribe(struct fw_store *st, int64_t feed_id, struct fw_err *err)
{
	struct memory *m = mem_of(st);
	struct node *f = mem_node_find(m, feed_id);
	size_t kept = 0;

	if (!f)
		return mem_not_found(feed_id, err);
	mem_lease_end(f, NULL, 0);
	for (size_t i = 0; i < m->items.n; i++) {
		struct item *e = m->items.at[i];

		if (e->row.feed_id == feed_id) {
			m->pruned_n -= e->pruned;
			mem_item_free(e);
		} else {
			m->items.at[kept++] = e;
		}
	}
	m->items.n = kept;
	kept = 0;
	for (size_t i = 0; i < m->visits.n; i++) {
		struct fw_visit *v = m->visits.at[i];

		if (v->feed_id == feed_id) {
			mem_drop(&v->error);
			free(v);
		} else {
			m->visits.at[kept++] = v;
		}
	}
	m->visits.n = kept;
	fw_map_del(&m->by_url, f->feed.url);
	mem_list_cut(&m->feeds, mem_node_index(m, feed_id));
	mem_node_free(m, f);
	return 0;
}

static int guids_read(const struct node *f, struct fw_map *guids)
{
	struct fw_str key;
	struct item *e;
	size_t at = 0;
	int rc = 0;

	while (!rc && (e = fw_map_next(&f->items, &at, &key)) != NULL) {
		if (e->row.guid.len)
			fw_map_put(guids, e->row.guid, e, &rc);
	}
	return rc;
}

/* What one has and the other lacks, into both maps; on failure the other's is as it was. */
static int items_share(struct node *from, struct node *into)
{
	struct fw_map guids = {0};
	int rc = guids_read(into, &guids);
	struct fw_str key;
	struct item *e;
	size_t at = 0;

	while (!rc && (e = fw_map_next(&from->items, &at, &key)) != NULL) {
		if (!e->pruned && !fw_map_get(&into->items, key) && (!e->row.guid.len || !fw_map_get(&guids, e->row.guid)))
			fw_map_put(&into->items, key, e, &rc);
	}
	fw_map_finish(&guids);
	for (at = 0; rc && (e = fw_map_next(&into->items, &at, &key)) != NULL;) {
		if (e->row.feed_id == from->feed.id)
			fw_map_del(&into->items, key);
	}
	return rc;
}

int mem_feed_merge(struct fw_store *st, int64_t from_id, int64_t into_id, struct fw_err *err)
{
	struct memory *m = mem_of(st);
	struct node *from = mem_node_find(m, from_id), *into = mem_node_find(m, into_id);
	struct fw_str key;
	struct item *e;
	size_t at = 0;

	if (!from || !into)
		return mem_not_found(from ? into_id : from_id, err);
	if (from->feed.lease_until_ms || into->feed.lease_until_ms)
		return fw_err_set(err, FW_EAGAIN, "memory store: feed %lld is lent: merge them later",
			(long long)(from->feed.lease_until_ms ? from_id : into_id));
	if (items_share(from, into))
		return mem_no_memory(err);
	while ((e = fw_map_next(&into->items, &at, &key)) != NULL) {
		if (e->row.feed_id == from_id)
			e->row.feed_id = into_id;
	}
	return mem_unsubscribe(st, from_id, err);
}

static struct fw_feed feed_view(const struct node *f)
{
	struct fw_feed v = f->feed;

	v.entry_n = (int64_t)f->items.n - f->pruned_n;
	return v;
}

int mem_feed_find(struct fw_store *st, int64_t id, struct fw_str url, struct fw_arena *a, struct fw_feed *out,
	struct fw_err *err)
{
	struct memory *m = mem_of(st);
	const struct node *f = id ? mem_node_find(m, id) : fw_map_get(&m->by_url, url);

	if (!f && id)
		return mem_not_found(id, err);
	if (!f)
		return fw_err_set(err, FW_ENOTFOUND, "memory store: no feed %.*s", FW_STR_ARG(url));
	*out = feed_view(f);
	return fw_store_feed_dup(a, out) ? 0 : mem_no_memory(err);
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

int mem_feed_list(struct fw_store *st, const struct fw_feed_query *q, fw_feed_cb *cb, void *ctx, struct fw_err *err)
{
	struct memory *m = mem_of(st);
	struct node **order = reallocarray(NULL, m->feeds.n + 1, sizeof(struct node *));
	size_t n = 0;
	int rc = 0;

	if (!order)
		return mem_no_memory(err);
	for (size_t i = 0; i < m->feeds.n; i++) {
		struct node *f = m->feeds.at[i];

		if (f->feed.id > q->after_id && feed_matches(&f->feed, q))
			order[n++] = f;
	}
	if (q->by_due)
		qsort(order, n, sizeof(struct node *), mem_by_due);
	for (size_t i = 0; i < n && (!q->limit || i < q->limit) && !rc; i++) {
		struct fw_feed v = feed_view(order[i]);

		rc = cb(ctx, &v);
	}
	free(order);
	return rc;
}

int mem_feed_set(struct fw_store *st, const struct fw_feed *feed, unsigned what, struct fw_err *err)
{
	struct node *f = mem_node_find(mem_of(st), feed->id);
	bool ok = true;

	if (!f)
		return mem_not_found(feed->id, err);
	if (what & FW_SET_TITLE)
		ok = ok && mem_keep(&f->feed.user_title, feed->user_title);
	if (what & FW_SET_FOLDER)
		ok = ok && mem_keep(&f->feed.folder, feed->folder);
	if (what & FW_SET_AUTH)
		ok = ok && mem_keep(&f->feed.username, feed->username) && mem_keep(&f->feed.password, feed->password);
	if (!ok)
		return mem_no_memory(err);
	if (what & FW_SET_STATUS)
		f->feed.status = feed->status;
	if (what & FW_SET_INTERVAL)
		f->feed.interval_ms = feed->interval_ms;
	if (what & FW_SET_DUE)
		f->feed.due_at_ms = feed->due_at_ms;
	if (what & FW_SET_CRASH)
		f->feed.crash_n = feed->crash_n;
	if (what & FW_SET_PUSH)
		f->feed.push_until_ms = feed->push_until_ms;
	return 0;
}

int mem_stats(struct fw_store *st, int64_t now_ms, struct fw_store_stats *out, struct fw_err *err)
{
	struct memory *m = mem_of(st);
	int64_t now = now_ms ? now_ms : fw_now_ms();

	(void)err;
	for (size_t i = 0; i < m->feeds.n; i++) {
		const struct node *f = m->feeds.at[i];

		out->feed_n++;
		out->active_n += mem_on_wheel(f);
		out->paused_n += f->feed.status == FW_FEED_PAUSED;
		out->gone_n += f->feed.status == FW_FEED_GONE;
		out->quarantined_n += f->feed.status == FW_FEED_QUARANTINED;
		out->failing_n += f->feed.fail_n > 0;
		out->lent_n += f->feed.lease_until_ms != 0;
		if (!mem_on_wheel(f) || f->feed.lease_until_ms)
			continue;
		out->due_n += f->feed.due_at_ms <= now;
		if (out->next_due_ms == FW_NO_DATE || f->feed.due_at_ms < out->next_due_ms)
			out->next_due_ms = f->feed.due_at_ms;
	}
	out->entry_n = (int64_t)m->items.n - m->pruned_n;
	out->visit_n = (int64_t)m->visits.n;
	if (m->feeds.n)
		out->last_feed_id = ((struct node *)m->feeds.at[m->feeds.n - 1])->feed.id;
	if (m->visits.n)
		out->last_visit_id = ((struct fw_visit *)m->visits.at[m->visits.n - 1])->id;
	for (size_t i = 0; i < m->items.n; i++) {
		const struct item *e = m->items.at[i];

		if (!e->pruned)
			out->last_entry_id = e->row.id;
	}
	return 0;
}

int mem_control_put(struct fw_store *st, enum fw_control_kind kind, int64_t now_ms, struct fw_err *err)
{
	struct memory *m = mem_of(st);
	struct fw_control *c = malloc(sizeof(*c));

	if (!c || mem_list_room(&m->controls, 1)) {
		free(c);
		return mem_no_memory(err);
	}
	*c = (struct fw_control){.id = (int64_t)m->controls.n + 1, .kind = kind, .created_ms = now_ms ? now_ms : fw_now_ms()};
	m->controls.at[m->controls.n++] = c;
	return 0;
}

int mem_control_take(struct fw_store *st, int64_t after_id, struct fw_control *out, struct fw_err *err)
{
	const struct memory *m = mem_of(st);

	(void)err;
	if (after_id >= 0) {
		if ((size_t)after_id < m->controls.n)
			*out = *(struct fw_control *)m->controls.at[after_id];
		return 0;
	}
	out->id = (int64_t)m->controls.n;
	for (size_t i = 0; i < m->controls.n; i++) {
		const struct fw_control *c = m->controls.at[i];

		if (c->kind == FW_CONTROL_PAUSE || c->kind == FW_CONTROL_RESUME)
			out->paused = c->kind == FW_CONTROL_PAUSE;
	}
	return 0;
}

int mem_beat_list(struct fw_store *st, int64_t since_ms, fw_beat_cb *cb, void *ctx, struct fw_err *err)
{
	const struct memory *m = mem_of(st);
	int rc = 0;

	(void)err;
	for (size_t i = 0; i < m->beats.n && !rc; i++) {
		const struct beat *b = m->beats.at[i];

		if (b->beat.at_ms >= since_ms)
			rc = cb(ctx, &b->beat);
	}
	return rc;
}
