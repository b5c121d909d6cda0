/* SPDX-License-Identifier: ISC */
/* What a commit writes: the new rows, and the commands of each cell's transaction. */
#include <assert.h>
#include <stddef.h>

#include "store/redis/commit.h"
#include "base/banned.h"

#define CHUNK 32       /* visits per chunk: script/head.lua */

/* ---- the new rows ---------------------------------------------------------------------------- */

/* Status and due time that were changed since the read stay as they are. */
static void state_make(struct work *w, struct plan *p)
{
	const struct fw_feed *to = p->o->feed;

	assert(p->verdict == STORED);
	if (!w->push) {
		struct fw_feed was = p->feed;

		p->feed = *to;
		p->feed.status = was.status == FW_FEED_ACTIVE ? to->status : was.status;
		p->feed.due_at_ms = was.due_at_ms == p->o->was_due_ms ? to->due_at_ms : was.due_at_ms;
		p->feed.last_new_ms = was.last_new_ms;
	}
	if (p->new_n)
		p->feed.last_new_ms = w->now_ms;
	p->before_id = p->state.last_visit_id;
	if (p->visit_id)
		p->state.last_visit_id = p->visit_id = ++w->visit_id;
	if (p->change & 1u << RS_ADDRESS) {
		p->url_was = rs_address_url(rs_groups_part(p->wide, RS_ADDRESS));
		p->moves = p->state.host_id != store_feed_host_id(to);
		p->state.host_id = store_feed_host_id(to);
	}
}

/* A push sets metadata of the feed only where it is missing. */
static void told_add(struct plan *p)
{
	static const size_t told[] = {offsetof(struct fw_feed, title), offsetof(struct fw_feed, home_page_url),
		offsetof(struct fw_feed, description), offsetof(struct fw_feed, language),
		offsetof(struct fw_feed, icon)};
	struct fw_feed *f = &p->feed;

	rs_unpack(rs_groups_part(p->wide, RS_META_GROUP), &rs_group[RS_META_GROUP].members, f);
	for (size_t i = 0; i < FW_N(told); i++) {
		struct fw_str *to = (struct fw_str *)(void *)((char *)f + told[i]);

		if (!to->len)
			*to = *(const struct fw_str *)(const void *)((const char *)p->o->feed + told[i]);
	}
}

static void items_make(struct work *w, struct plan *p)
{
	for (struct item *i = p->item; i < p->item + p->item_n; i++) {
		if (i->is_new)
			i->known.id = ++w->entry_id;
		assert(w->entry_id <= w->first_id + w->new_n); /* no id that is not reserved */
		i->seen_ms = i->seen_ms ? i->seen_ms : w->now_ms;
		i->known.date_ms = fw_store_entry_date(i->e, i->seen_ms);
	}
}

void commit_rows_make(struct work *w, struct part *part)
{
	part->stored_n = 0;
	for (struct plan *p = part->plan; p < part->plan + part->n; p++) {
		if (p->verdict != STORED)
			continue;
		part->stored_n++;
		state_make(w, p);
		items_make(w, p);
		if (w->push && p->change)
			told_add(p);
	}
}

/* ---- writing --------------------------------------------------------------------------------- */

static void state_add(struct rs *r, const struct plan *p)
{
	rs_addi(r, p->o->feed_id);
	rs_state_pack(rs_word(r), &p->feed, &p->state);
	rs_word_end(r);
}

/* Schedule rows of one shard, from plan p on. Returns the first plan of the next shard. */
static const struct plan *shard_write(struct work *w, int cell, const struct plan *p, const struct plan *end)
{
	bool begun = false;
	int shard = p->shard;

	assert(p < end);
	for (; p < end && p->shard == shard; p++) {
		if (p->verdict != STORED || store_host_shard(p->state.host_id) != shard)
			continue;
		if (!begun) {
			rs_command(w->r, cell, "HSET");
			rs_key(w->r, cell, "schedule:%04d", shard);
		}
		begun = true;
		state_add(w->r, p);
	}
	return p;
}

static void version_raise(struct work *w, int cell, int shard)
{
	rs_ask(w->r, cell, "HINCRBY", "version");
	rs_pad(rs_word(w->r), shard, 4);
	rs_word_end(w->r);
	rs_addi(w->r, 1);
	w->tells = true;
}

/* The feed moves to another host. */
static void moved_write(struct work *w, const struct plan *p)
{
	int to = store_host_shard(p->state.host_id);

	assert(p->moves);
	if (to != p->shard) {
		rs_command(w->r, p->cell, "HDEL");
		rs_key(w->r, p->cell, "schedule:%04d", p->shard);
		rs_addi(w->r, p->o->feed_id);
		rs_command(w->r, p->cell, "HSET");
		rs_key(w->r, p->cell, "schedule:%04d", to);
		state_add(w->r, p);
	}
	version_raise(w, p->cell, to);
}

static void wide_write(struct work *w, const struct plan *p)
{
	rs_ask(w->r, p->cell, "HSET", "feed");
	rs_addi(w->r, p->o->feed_id);
	rs_groups_pack(rs_word(w->r), p->wide, p->change, &p->feed);
	rs_word_end(w->r);
	if (!p->has_url)
		return;
	rs_ask(w->r, p->cell, "HDEL", "adopting");
	rs_addi(w->r, p->o->feed_id);
}

static void feeds_write(struct work *w, int cell)
{
	const struct part *part = &w->part[cell];
	const struct plan *end = part->plan + part->n, *p;

	for (p = part->plan; p < end;)
		p = shard_write(w, cell, p, end);
	for (p = part->plan; p < end; p++) {
		if (p->verdict != STORED)
			continue;
		if (p->change)
			wide_write(w, p);
		if (p->moves)
			moved_write(w, p);
		if (p->moves || (!w->c->lease_id && !w->push))
			version_raise(w, cell, p->shard);
	}
}

/* The pair of words for one entry: for the hash of rows, the ids, or the dates. */
typedef void pair_fn(const struct work *w, const struct plan *p, const struct item *i);

static void row_pair(const struct work *w, const struct plan *p, const struct item *i)
{
	struct fw_entry_row row = *i->e;

	row.feed_id = p->o->feed_id;
	row.seen_ms = i->seen_ms;
	row.changed_ms = w->now_ms;
	row.revision = i->revision + 1;
	rs_addi(w->r, i->known.id);
	rs_entry_pack(rs_word(w->r), &row);
	rs_word_end(w->r);
}

static void id_pair(const struct work *w, const struct plan *p, const struct item *i)
{
	(void)p;
	rs_addi(w->r, i->known.id);
	rs_addi(w->r, i->known.id);
}

static void date_pair(const struct work *w, const struct plan *p, const struct item *i)
{
	(void)p;
	rs_addi(w->r, i->known.date_ms);
	rs_addi(w->r, i->known.id);
}

/* One command for all entries of the cell. */
static void pairs_write(struct work *w, int cell, const char *cmd, const char *key, pair_fn *pair)
{
	const struct part *part = &w->part[cell];
	bool begun = false;

	for (const struct plan *p = part->plan; p < part->plan + part->n; p++) {
		for (const struct item *i = p->item; p->verdict == STORED && i < p->item + p->item_n; i++) {
			if (!i->known.id)
				continue;
			if (!begun)
				rs_ask(w->r, cell, cmd, key);
			begun = true;
			pair(w, p, i);
		}
	}
}

static void entries_write(struct work *w, int cell)
{
	const struct part *part = &w->part[cell];

	for (const struct plan *p = part->plan; p < part->plan + part->n; p++) {
		for (size_t i = 0; p->verdict == STORED && i < p->item_n; i++) {
			if (!i) {
				rs_command(w->r, cell, "HSET");
				rs_key(w->r, cell, "keys:%lld", (long long)p->o->feed_id);
			}
			rs_add(w->r, commit_key(p->item[i].e));
			rs_known_pack(rs_word(w->r), &p->item[i].known);
			rs_word_end(w->r);
		}
	}
	pairs_write(w, cell, "HSET", "entries", row_pair);
	pairs_write(w, cell, "ZADD", "entry_ids", id_pair);
	pairs_write(w, cell, "ZADD", "entry_dates", date_pair);
}

/* In chunks. A chunk's name is the id of its first visit: script/head.lua. */
static void visits_write(struct work *w, int cell)
{
	const struct part *part = &w->part[cell];
	const struct plan *end = part->plan + part->n, *p;
	struct fw_buf *chunk = NULL;
	int64_t n = 0;

	for (p = part->plan; p < end; p++) {
		struct fw_visit v = p->o->visit;

		if (p->verdict != STORED || !p->visit_id)
			continue;
		if (n % CHUNK == 0) {
			if (n)
				rs_word_end(w->r);
			else
				rs_ask(w->r, cell, "HSET", "visits");
			rs_addi(w->r, p->visit_id);
			chunk = rs_word(w->r);
		}
		n++;
		v.id = p->visit_id;
		v.feed_id = p->o->feed_id;
		v.new_n = p->new_n;
		v.changed_n = p->changed_n;
		rs_visit_pack(chunk, &v, p->before_id);
		fw_buf_addc(chunk, '\n');
	}
	if (!n)
		return;
	rs_word_end(w->r);
	rs_ask(w->r, cell, "ZADD", "visit_ids");
	n = 0;
	for (p = part->plan; p < end; p++) {
		if (p->verdict != STORED || !p->visit_id || n++ % CHUNK)
			continue;
		rs_addi(w->r, p->visit_id);
		rs_addi(w->r, p->visit_id);
	}
	rs_ask(w->r, cell, "HINCRBY", "meta");
	rs_adds(w->r, "visit_n");
	rs_addi(w->r, n);
}

/* A host in another worker's shard: the later times count, the learned delay stays. */
static void host_join(struct store_host *h, struct fw_str row)
{
	struct store_host was;

	if (!row.p || !rs_host_unpack(row, &was))
		return;
	h->next_ok_ms = FW_MAX(h->next_ok_ms, was.next_ok_ms);
	h->cool_until_ms = FW_MAX(h->cool_until_ms, was.cool_until_ms);
	h->pace_ms = was.pace_ms;
}

static void hosts_write(struct work *w, int cell)
{
	for (size_t i = 0; i < w->c->host_n; i++) {
		struct store_host h = w->c->host[i];

		if (!commit_has_host(w, cell, &h))
			continue;
		if (h.others) {
			host_join(&h, w->host_was[i]);
			version_raise(w, cell, store_host_shard(h.id));
		}
		rs_command(w->r, cell, "HSET");
		rs_key(w->r, cell, "hosts:%04d", store_host_shard(h.id));
		rs_addi(w->r, h.id);
		rs_host_pack(rs_word(w->r), &h);
		rs_word_end(w->r);
	}
}

void commit_cell_write(struct work *w, int cell)
{
	struct part *part = &w->part[cell];

	w->tells = false;
	rs_command(w->r, cell, "MULTI");
	if (part->stored_n) {
		feeds_write(w, cell);
		entries_write(w, cell);
		visits_write(w, cell);
	}
	hosts_write(w, cell);
	if (w->r->cell_n == 1 && w->new_n) {
		rs_ask(w->r, cell, "HDEL", "taken");
		rs_addi(w->r, w->first_id);
	}
	if (w->tells) {
		rs_command(w->r, cell, "PUBLISH");
		rs_add(w->r, w->r->channel);
		rs_adds(w->r, w->r->me);
	}
	rs_command(w->r, cell, "EXEC");
	part->at = w->r->cmd_n - 1;
}
