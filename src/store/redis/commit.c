/* SPDX-License-Identifier: ISC */
/*
 * Commit of outcomes: read the rows that change, compute the new rows, write them in one
 * transaction (WATCH, MULTI, EXEC). The server refuses the transaction if another client changed a
 * watched key meanwhile; then the commit starts over. A script would need no second try, but
 * commands that pass through Lua cost the server ten times as much, and commits are its most
 * frequent work.
 *
 * Watched keys: the lease; the schedules of the shards, which every change of a feed writes; the
 * keys of entries; and rare ones: addresses, if a feed gets a new one, hosts in other workers'
 * shards, the version of the orders. Workers do not disturb each other, because each has its own
 * shards.
 *
 * A second outcome of the same feed in one commit gets a transaction of its own.
 *
 * Ids are reserved before the transaction. Reserved entry ids stand in `reserved_ids` until they
 * are stored, and readers that follow entries by id see no higher id before that (entries.c). So
 * entry ids appear in order. If a process dies with reserved ids, the next reservation gives them
 * up and raises `revoked`, which each commit watches from before it reserves ids.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "store/redis/commit.h"

#define TRIES 20
#define RESERVE_TIMEOUT_MS 10000 /* time limit for storing entries after their ids are reserved */
#define HISTORY_MAX 100          /* visits of a feed that are searched for a repeated push */

static bool plan_has_visit(const struct redis_commit_plan *p)
{
	return p->o->visit.kind != FW_VISIT_NONE;
}

static unsigned plan_changes(const struct redis_commit *w, const struct redis_commit_plan *p)
{
	unsigned groups = p->o->groups & (w->push ? FW_GROUP_META : ~0u), change = 0;

	for (int g = 0; g < RS_GROUP_N; g++)
		change |= rs_group[g].bit & groups ? 1u << g : 0;
	if (groups & FW_GROUP_URL ? p->has_url : groups & FW_GROUP_HOST)
		change |= 1u << RS_ADDRESS;
	return change;
}

/* ---- the plan of a try ----------------------------------------------------------------------- */

static int plan_by_shard(const void *a, const void *b)
{
	const struct redis_commit_plan *x = a, *y = b;

	if (x->shard != y->shard)
		return x->shard < y->shard ? -1 : 1;
	return x->o->feed_id != y->o->feed_id ? FW_ORDER(x->o->feed_id, y->o->feed_id) : FW_ORDER(x->o, y->o);
}

/* A push does not know the shard of its feed. */
static int plan_shards_read(struct redis_commit *w, struct fw_err *err)
{
	int rc;

	for (size_t i = 0; i < w->n; i++) {
		rs_command_key(w->r, "HGET", "feed");
		rs_expect(w->r, "t?");
		rs_addi(w->r, w->plan[i].o->feed_id);
	}
	rc = rs_run(w->r, "finding feeds", err);
	for (size_t i = 0; !rc && i < w->n; i++) {
		w->plan[i].shard = rs_feed_row_shard(w->r->reply[i]->text);
		/* LATER: the feed moved to another shard meanwhile */
		w->plan[i].result = w->r->reply[i]->text.p ? PLAN_RETRY : PLAN_NO_FEED;
	}
	return rc;
}

/* Plans for the outcomes without a result. A feed that has several gets its first. */
static int plans_make(struct redis_commit *w, struct fw_err *err)
{
	size_t n = 0;
	int rc;

	w->plan = fw_arena_calloc(&w->r->arena, w->c->n + 1, sizeof(*w->plan));
	if (!w->plan)
		return rs_no_memory(w->r, err);
	w->n = 0;
	for (size_t i = 0; i < w->c->n; i++) {
		struct fw_outcome *o = &w->c->outcome[i];

		if (!w->done[i])
			w->plan[w->n++] = (struct redis_commit_plan){
				.o = o, .shard = store_host_shard(o->host_id), .result = PLAN_NO_FEED};
	}
	rc = w->push ? plan_shards_read(w, err) : 0;
	if (w->n)
		qsort(w->plan, w->n, sizeof(*w->plan), plan_by_shard);
	for (size_t i = 0; i < w->n; i++) {
		if (n && w->plan[n - 1].o->feed_id == w->plan[i].o->feed_id)
			w->retry = true;
		else
			w->plan[n++] = w->plan[i];
	}
	assert(n <= w->c->n);
	w->n = n;
	return rc;
}

/* Of several entries with one key in one document the first counts. */
static int plan_entries_choose(struct redis_commit *w, struct redis_commit_plan *p, struct fw_err *err)
{
	struct fw_map seen;
	int rc = 0;

	p->item = fw_arena_calloc(&w->r->arena, p->o->entry_n, sizeof(*p->item));
	if (!p->item)
		return rs_no_memory(w->r, err);
	fw_map_init(&seen, 0);
	for (size_t i = 0; !rc && i < p->o->entry_n; i++) {
		const struct fw_entry_row *e = &p->o->entries[i];

		if (!fw_map_add(&seen, redis_commit_key(e), p, &rc))
			p->item[p->item_n++].e = e;
	}
	fw_map_finish(&seen);
	return rc ? rs_no_memory(w->r, err) : 0;
}

static int plans_entries_choose(struct redis_commit *w, struct fw_err *err)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < w->n; i++)
		rc = w->plan[i].o->entry_n ? plan_entries_choose(w, &w->plan[i], err) : 0;
	return rc;
}

/* The outcome brings a new address; whether it is free is read later. */
static void plans_changes_set(struct redis_commit *w)
{
	for (struct redis_commit_plan *p = w->plan; p < w->plan + w->n; p++) {
		p->has_url = !w->push && p->o->groups & FW_GROUP_URL;
		p->change = plan_changes(w, p);
	}
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Is its feed row read? For changes, or for the address in the message about new entries. */
static bool plan_reads_row(const struct redis_commit *w, const struct redis_commit_plan *p)
{
	bool knows_url = p->o->feed->url.len && (p->has_url || !(p->o->groups & FW_GROUP_URL));

	return p->change || (w->r->stream_max && p->item_n && !knows_url);
}

static void commit_watch(const struct redis_commit *w)
{
	rs_command(w->r, "UNWATCH"); /* watches of an earlier try */
	rs_command_key(w->r, "WATCH", "revoked");
	if (w->orders)
		rs_key(w->r, "orders");
	rs_key(w->r, "lease:%lld", (long long)w->c->lease_id);
	for (const struct redis_commit_plan *p = w->plan; p < w->plan + w->n; p++) {
		if (p == w->plan || p->shard != p[-1].shard)
			rs_key(w->r, "schedule:%04d", p->shard);
		if (p->item_n || p->o->retracted_n)
			rs_key(w->r, "keys:%lld", (long long)p->o->feed_id);
		if (p->has_url)
			rs_key(w->r, "urls");
	}
	for (const struct store_host *h = w->c->host; h < w->c->host + w->c->host_n; h++) {
		if (h->others && !w->hosts_done)
			rs_key(w->r, "hosts:%04d", store_host_shard(h->id));
	}
}

/* Requests the rows for commit_read(), in its order. */
static void commit_request(struct redis_commit *w)
{
	const struct redis_commit_plan *first = w->plan;

	commit_watch(w);
	w->at = w->r->cmd_n;
	rs_command(w->r, "EXISTS");
	rs_expect(w->r, "i");
	rs_key(w->r, "lease:%lld", (long long)w->c->lease_id);
	if (w->orders) {
		rs_command_key(w->r, "GET", "orders");
		rs_expect(w->r, "i?");
	}
	for (const struct redis_commit_plan *p = w->plan; p < w->plan + w->n; p++) {
		if (p == w->plan || p->shard != first->shard) {
			first = p;
			rs_command(w->r, "HMGET");
			rs_key(w->r, "schedule:%04d", p->shard);
		}
		rs_addi(w->r, p->o->feed_id);
		rs_expect_n(w->r, "(t?)=", (size_t)(p - first) + 1);
	}
	for (const struct redis_commit_plan *p = w->plan; p < w->plan + w->n; p++) {
		if (plan_reads_row(w, p)) {
			rs_command_key(w->r, "HGET", "feed");
			rs_expect(w->r, "t?");
			rs_addi(w->r, p->o->feed_id);
		}
		if (p->has_url) {
			rs_call(w->r, RS_READ, "url_owner");
			rs_expect(w->r, "i?");
			rs_add(w->r, p->o->feed->url);
		}
		for (size_t i = 0; i < p->item_n; i++) {
			if (!i) {
				rs_command(w->r, "HMGET");
				rs_expect_n(w->r, "(t?)=", p->item_n);
				rs_key(w->r, "keys:%lld", (long long)p->o->feed_id);
			}
			rs_add(w->r, redis_commit_key(p->item[i].e));
		}
		for (size_t i = 0; i < p->o->retracted_n; i++) {
			if (!i) {
				rs_command(w->r, "HMGET");
				rs_expect_n(w->r, "(t?)=", p->o->retracted_n);
				rs_key(w->r, "keys:%lld", (long long)p->o->feed_id);
			}
			rs_add(w->r, redis_commit_retracted_key(&p->o->retracted[i]));
		}
	}
}

/* Asks the matcher about an entry that is new or changes. */
static int plan_entry_match(
	const struct redis_commit *w, struct redis_commit_plan *p, struct redis_commit_entry *i, struct fw_err *err)
{
	struct store_matched m;
	int rc;

	if (!w->r->store.matcher || p->result != PLAN_STORED || !(i->is_new || i->known.id))
		return 0;
	rc = store_match(&w->r->store, &w->r->arena, p->o, i->e, i->is_new, &m, err);
	if (rc)
		return rc;
	i->e = m.e;
	i->dropped = m.drop;
	i->order_id = m.order_id;
	i->order_n = m.n;
	p->match_n += m.n;
	return 0;
}

/* Leaves out the entries that are stored already and unchanged. */
static int plan_entries_read(
	const struct redis_commit *w, struct redis_commit_plan *p, const struct rs_reply *known, struct fw_err *err)
{
	size_t n = 0;
	int rc = 0;

	for (size_t i = 0; !rc && i < p->item_n; i++) {
		struct redis_commit_entry item = {.e = p->item[i].e};

		item.is_new = !rs_key_value_unpack(rs_elem(known, i)->text, &item.known);
		if (!item.is_new && item.known.hash == item.e->hash)
			continue;
		rc = plan_entry_match(w, p, &item, err);
		p->new_n += item.is_new && !item.dropped;
		p->changed_n += item.known.id != 0;
		item.known.hash = item.e->hash;
		p->item[n++] = item;
	}
	p->item_n = n;
	return rc;
}

/* Chooses the retracted entries that are stored. */
static int plan_retractions_read(
	const struct redis_commit *w, struct redis_commit_plan *p, const struct rs_reply *known, struct fw_err *err)
{
	p->retraction = fw_arena_calloc(&w->r->arena, known->n, sizeof(*p->retraction));
	if (!p->retraction)
		return rs_no_memory(w->r, err);
	for (size_t i = 0; i < known->n; i++) {
		struct redis_commit_retraction *r = &p->retraction[p->retraction_n];

		r->key = &p->o->retracted[i];
		if (rs_key_value_unpack(rs_elem(known, i)->text, &r->known) && r->known.id)
			p->retraction_n++;
	}
	return 0;
}

static enum redis_commit_result plan_result(const struct redis_commit *w, const struct redis_commit_plan *p)
{
	if (w->push)
		return PLAN_STORED;
	if (plan_has_visit(p) && p->feed.last_visit_ms == p->o->feed->last_visit_ms)
		return PLAN_REPEATED;
	return !w->c->lease_id && p->feed.last_visit_ms ? PLAN_NO_FEED : PLAN_STORED;
}

/* Another feed has the address, or gets it with this commit: the feed keeps its own. */
static void plan_url_read(const struct redis_commit *w, struct redis_commit_plan *p, int64_t owner_id)
{
	bool is_free = !owner_id || owner_id == p->o->feed_id;

	for (const struct redis_commit_plan *other = w->plan; is_free && other < p; other++)
		is_free = !other->has_url || other->result != PLAN_STORED ||
			!fw_str_eq(other->o->feed->url, p->o->feed->url);
	if (is_free)
		return;
	p->has_url = false;
	p->change &= ~(1u << RS_ADDRESS);
}

static int plan_read(
	struct redis_commit *w, struct redis_commit_plan *p, const struct rs_reply ***at, struct fw_err *err)
{
	int rc = 0;

	if (plan_reads_row(w, p))
		p->feed_row = (*(*at)++)->text;
	if (p->has_url)
		plan_url_read(w, p, rs_int(*(*at)++));
	if (p->item_n)
		rc = plan_entries_read(w, p, *(*at)++, err);
	if (!rc && p->o->retracted_n)
		rc = plan_retractions_read(w, p, *(*at)++, err);
	w->id_n += p->result == PLAN_STORED ? (int64_t)(p->new_n + p->changed_n + p->retraction_n) : 0;
	return rc;
}

static bool commit_stores_entries(const struct redis_commit *w)
{
	for (const struct redis_commit_plan *p = w->plan; p < w->plan + w->n; p++) {
		if (p->result == PLAN_STORED && p->item_n)
			return true;
	}
	return false;
}

/* FW_ESTALE: the lease is over. STORE_EORDERS. Other errors: those of the matcher. */
static int commit_read(struct redis_commit *w, struct fw_err *err)
{
	struct redis_commit_plan *end = w->plan + w->n, *first = w->plan;
	const struct rs_reply **at = w->r->reply + w->at;
	bool differ = false;
	int rc = 0;

	if (w->c->lease_id && !rs_int(at[0]))
		return rs_lease_over(w->r, err);
	at++;
	if (w->orders)
		differ = rs_int(*at++) != w->orders->part[0];
	for (struct redis_commit_plan *p = w->plan; p < end; p++) {
		struct fw_str row;

		if (p == w->plan || p->shard != first->shard) {
			first = p;
			at++;
		}
		row = rs_elem(at[-1], (size_t)(p - first))->text;
		if (row.p && rs_schedule_row_unpack(row, &p->feed, &p->state))
			p->result = plan_result(w, p);
	}
	for (struct redis_commit_plan *p = w->plan; !rc && p < end; p++)
		rc = plan_read(w, p, &at, err);
	return !rc && differ && commit_stores_entries(w) ? store_orders_differ(w->r->target.name, err) : rc;
}

/* A push without new or changed entries: its visit may be stored already. */
static bool push_is_repeated(const struct redis_commit *w, const struct redis_commit_plan *p)
{
	return w->push && p->result == PLAN_STORED && plan_has_visit(p) && !p->new_n && !p->changed_n;
}

/* Requests the rows for commit_read_more(). Rare, except for rows of changed entries. */
static void commit_request_more(struct redis_commit *w)
{
	w->at = w->r->cmd_n;
	for (struct redis_commit_plan *p = w->plan; p < w->plan + w->n; p++) {
		for (size_t i = 0; p->result == PLAN_STORED && i < p->item_n; i++) {
			if (!redis_commit_is_changed(&p->item[i]))
				continue;
			rs_command_key(w->r, "HGET", "entries");
			rs_expect(w->r, "t?");
			rs_addi(w->r, p->item[i].known.id);
			rs_command(w->r, "HKEYS");
			rs_expect(w->r, "(t)");
			rs_key(w->r, "revisions:%lld", (long long)p->item[i].known.id);
		}
		if (push_is_repeated(w, p)) {
			rs_call(w->r, RS_READ, "history");
			rs_expect(w->r, "(t)");
			rs_addi(w->r, p->state.last_visit_id);
			rs_addi(w->r, HISTORY_MAX);
		}
	}
	for (const struct store_host *h = w->c->host; h < w->c->host + w->c->host_n; h++) {
		if (!h->others || w->hosts_done)
			continue;
		rs_command(w->r, "HGET");
		rs_expect(w->r, "t?");
		rs_key(w->r, "hosts:%04d", store_host_shard(h->id));
		rs_addi(w->r, h->id);
	}
}

static bool history_has_push(const struct rs_reply *rows, int64_t at_ms)
{
	bool found = false;

	for (size_t i = 0; !found && i < rows->n; i++) {
		struct fw_visit v;

		found = rs_visit_unpack(rs_elem(rows, i)->text, &v) && v.at_ms == at_ms && v.kind == FW_VISIT_PUSHED;
	}
	return found;
}

static void entry_row_read(struct redis_commit_entry *i, struct fw_str row, const struct rs_reply *kept)
{
	i->kept = kept;
	if (row.p)
		(void)rs_entry_unpack(row, &i->old);
	i->seen_ms = i->old.seen_ms;
	i->revision = i->old.revision;
}

static void commit_read_more(struct redis_commit *w)
{
	const struct rs_reply **at = w->r->reply + w->at;

	for (struct redis_commit_plan *p = w->plan; p < w->plan + w->n; p++) {
		bool repeated = push_is_repeated(w, p);

		for (size_t i = 0; p->result == PLAN_STORED && i < p->item_n; i++) {
			if (redis_commit_is_changed(&p->item[i])) {
				entry_row_read(&p->item[i], at[0]->text, at[1]);
				at += 2;
			}
		}
		p->visit_id = p->result == PLAN_STORED && plan_has_visit(p);
		if (repeated)
			p->visit_id = !history_has_push((*at++), p->o->visit.at_ms);
	}
	for (size_t i = 0; i < w->c->host_n; i++) {
		if (w->c->host[i].others && !w->hosts_done)
			w->host_row[i] = (*at++)->text;
	}
}

static int commit_read_all(struct redis_commit *w, struct fw_err *err)
{
	int64_t visit_n = 0;
	int rc;

	for (size_t i = 0; i < w->n; i++)
		visit_n += plan_has_visit(&w->plan[i]);
	rs_command(w->r, "TIME");
	rs_expect(w->r, RS_TIME);
	rs_command_key(w->r, "HINCRBY", "meta");
	rs_adds(w->r, "visit_id");
	rs_addi(w->r, visit_n);
	rs_expect(w->r, "i");
	commit_request(w);
	rc = rs_run(w->r, "commit", err);
	if (rc)
		return rc;
	w->now_ms = rs_time_ms(w->r->reply[0]);
	w->visit_id = rs_int(w->r->reply[1]) - visit_n;
	w->id_n = 0;
	rc = commit_read(w, err);
	if (rc)
		return rc;
	commit_request_more(w);
	rc = rs_run(w->r, "commit", err);
	if (!rc)
		commit_read_more(w);
	return rc;
}

/* ---- ids of entries -------------------------------------------------------------------------- */

/* The reserved ids are stored or given up. */
static int ids_release(struct rs *r, int64_t first_id, struct fw_err *err)
{
	rs_command_key(r, "HDEL", "reserved_ids");
	rs_addi(r, first_id);
	return rs_run(r, "reserving ids", err);
}

static int ids_reserve(struct rs *r, int64_t n, int64_t *first_id, struct fw_err *err)
{
	int rc;

	rs_call(r, RS_WRITE, "ids_reserve");
	rs_addi(r, n);
	rs_addi(r, RESERVE_TIMEOUT_MS);
	rs_expect(r, "i");
	rc = rs_run(r, "reserving ids", err);
	*first_id = rc ? 0 : rs_int(r->reply[0]);
	return rc;
}

int rs_ids_revoke(struct rs *r, struct fw_err *err)
{
	int64_t none;

	return ids_reserve(r, 0, &none, err);
}

/* ---- results --------------------------------------------------------------------------------- */

static void plan_settle(struct redis_commit *w, struct redis_commit_plan *p)
{
	struct fw_outcome *o = p->o;

	assert(!w->done[o - w->c->outcome]);
	if (p->result == PLAN_RETRY || (p->result == PLAN_NO_FEED && !w->c->lease_id && !w->push)) {
		w->retry = true;
		if (p->result == PLAN_NO_FEED) { /* not the feed's first visit, so it is a push */
			w->push = true;
			o->visit.kind = FW_VISIT_PUSHED;
		}
		return;
	}
	w->done[o - w->c->outcome] = true;
	o->rc = p->result == PLAN_NO_FEED ? FW_ENOTFOUND : 0;
	o->visit.new_n = p->result == PLAN_STORED ? p->new_n : 0;
	o->visit.changed_n = p->result == PLAN_STORED ? p->changed_n : 0;
	if (p->result == PLAN_STORED && !w->push && o->groups & FW_GROUP_URL && !p->has_url)
		o->rc = FW_EINVAL;
}

/* ---- a commit -------------------------------------------------------------------------------- */

static int commit_write(struct redis_commit *w, struct fw_err *err)
{
	struct fw_err spare;
	bool stored;
	int rc, ended;

	redis_commit_rows_make(w);
	redis_commit_write(w);
	rc = rs_run_once(w->r, "commit", err);
	stored = !rc && w->r->reply[w->at]->type == RS_ARRAY;
	w->retry |= !stored;
	w->hosts_done |= stored;
	for (size_t i = 0; stored && i < w->n; i++)
		plan_settle(w, &w->plan[i]);
	if (stored || !w->id_n || rc == FW_EIO)
		return rc;
	ended = ids_release(w->r, w->first_id, rc ? &spare : err);
	return rc ? rc : ended;
}

static int commit_try(struct redis_commit *w, struct fw_err *err)
{
	int rc;

	w->retry = false;
	rc = plans_make(w, err);
	rc = rc ? rc : plans_entries_choose(w, err);
	if (rc)
		return rc;
	plans_changes_set(w);
	rc = commit_read_all(w, err);
	if (!rc && w->id_n)
		rc = ids_reserve(w->r, w->id_n, &w->first_id, err);
	w->entry_id = w->first_id;
	return rc ? rc : commit_write(w, err);
}

int rs_commit(struct store *st, struct store_commit *c, struct fw_err *err)
{
	struct fw_outcome *one = c->n == 1 && !c->lease_id ? c->outcome : NULL;
	enum fw_visit_kind kind = one ? one->visit.kind : FW_VISIT_NONE;
	struct redis_commit w = {.r = rs_of(st), .c = c, .retry = true, .orders = store_matcher_version(st)};
	int rc = rs_slot_start(w.r, true, err);

	w.push = !c->lease_id && !(one && kind != FW_VISIT_PUSHED && kind != FW_VISIT_NONE);
	w.done = fw_arena_calloc(&w.r->arena, c->n + 1, sizeof(*w.done));
	w.host_row = fw_arena_calloc(&w.r->arena, c->host_n + 1, sizeof(*w.host_row));
	if (!rc && (!w.done || !w.host_row))
		rc = rs_no_memory(w.r, err);
	for (int i = 0; !rc && w.retry && i < TRIES; i++)
		rc = commit_try(&w, err);
	if (one)
		one->visit.kind = kind;
	return rc || !w.retry ? rc :
				fw_err_set(err, FW_EAGAIN, "%s: other processes keep changing these feeds: try again",
					w.r->target.name);
}
