/* SPDX-License-Identifier: ISC */
/* What a commit writes: the new rows, and the commands of its transaction. */
#include <assert.h>
#include <stddef.h>
#include <stdlib.h>

#include "store/redis/commit.h"

#define CHUNK 32 /* visits per chunk: script/head.lua */

/* ---- the new rows ---------------------------------------------------------------------------- */

/* Status and due time, with its reason, that were changed since the read stay as they are. */
static void schedule_row_make(struct redis_commit *w, struct redis_commit_plan *p)
{
	const struct fw_feed *to = p->o->feed;

	assert(p->result == PLAN_STORED);
	if (!w->push) {
		struct fw_feed was = p->feed;

		p->feed = *to;
		p->feed.status = was.status == FW_FEED_ACTIVE ? to->status : was.status;
		if (was.due_at_ms != p->o->was_due_ms) {
			p->feed.due_at_ms = was.due_at_ms;
			p->feed.why = was.why;
		}
		p->feed.last_new_ms = was.last_new_ms;
	}
	if (p->new_n)
		p->feed.last_new_ms = w->now_ms;
	p->before_id = p->state.last_visit_id;
	if (p->visit_id)
		p->state.last_visit_id = p->visit_id = ++w->visit_id;
	if (p->change & 1u << RS_ADDRESS) {
		p->url_was = rs_address_url(rs_feed_row_group(p->feed_row, RS_ADDRESS));
		p->changes_host = p->state.host_id != store_feed_host_id(to);
		p->state.host_id = store_feed_host_id(to);
	}
}

/* A push sets metadata of the feed only where it is missing. */
static void metadata_add(struct redis_commit_plan *p)
{
	static const size_t member[] = {offsetof(struct fw_feed, title), offsetof(struct fw_feed, home_page_url),
		offsetof(struct fw_feed, description), offsetof(struct fw_feed, language),
		offsetof(struct fw_feed, icon)};
	struct fw_feed *f = &p->feed;

	rs_unpack(rs_feed_row_group(p->feed_row, RS_META_GROUP), &rs_group[RS_META_GROUP].members, f);
	for (size_t i = 0; i < FW_N(member); i++) {
		struct fw_str *to = (struct fw_str *)(void *)((char *)f + member[i]);

		if (!to->len)
			*to = *(const struct fw_str *)(const void *)((const char *)p->o->feed + member[i]);
	}
}

static void entry_ids_assign(struct redis_commit *w, struct redis_commit_plan *p)
{
	for (struct redis_commit_entry *i = p->item; i < p->item + p->item_n; i++) {
		if (i->is_new)
			i->known.id = i->dropped ? 0 : ++w->entry_id;
		else if (i->known.id)
			i->change_id = ++w->entry_id;
		assert(w->entry_id <= w->first_id + w->id_n); /* no id that is not reserved */
		i->seen_ms = i->seen_ms ? i->seen_ms : w->now_ms;
		i->known.date_ms = fw_store_entry_date(i->e, i->seen_ms);
	}
	for (size_t i = 0; i < p->retraction_n; i++)
		p->retraction[i].change_id = ++w->entry_id;
	assert(w->entry_id <= w->first_id + w->id_n);
}

void redis_commit_rows_make(struct redis_commit *w)
{
	w->stored_n = 0;
	for (struct redis_commit_plan *p = w->plan; p < w->plan + w->n; p++) {
		if (p->result != PLAN_STORED)
			continue;
		w->stored_n++;
		schedule_row_make(w, p);
		entry_ids_assign(w, p);
		if (w->push && p->change)
			metadata_add(p);
	}
}

/* ---- writing --------------------------------------------------------------------------------- */

static void schedule_row_add(struct rs *r, const struct redis_commit_plan *p)
{
	rs_addi(r, p->o->feed_id);
	rs_schedule_row_pack(rs_word(r), &p->feed, &p->state);
	rs_word_end(r);
}

/* Schedule rows of one shard, from plan p on. Returns the first plan of the next shard. */
static const struct redis_commit_plan *schedule_rows_write(
	struct redis_commit *w, const struct redis_commit_plan *p, const struct redis_commit_plan *end)
{
	bool begun = false;
	int shard = p->shard;

	assert(p < end);
	for (; p < end && p->shard == shard; p++) {
		if (p->result != PLAN_STORED || store_host_shard(p->state.host_id) != shard)
			continue;
		if (!begun) {
			rs_command(w->r, "HSET");
			rs_key(w->r, "schedule:%04d", shard);
		}
		begun = true;
		schedule_row_add(w->r, p);
	}
	return p;
}

static void version_raise(struct redis_commit *w, int shard)
{
	rs_command_key(w->r, "HINCRBY", "version");
	rs_int_pad(rs_word(w->r), shard, 4);
	rs_word_end(w->r);
	rs_addi(w->r, 1);
	w->publishes = true;
}

/* The feed moves to another host. */
static void moved_feed_write(struct redis_commit *w, const struct redis_commit_plan *p)
{
	int to = store_host_shard(p->state.host_id);

	assert(p->changes_host);
	if (to != p->shard) {
		rs_command(w->r, "HDEL");
		rs_key(w->r, "schedule:%04d", p->shard);
		rs_addi(w->r, p->o->feed_id);
		rs_command(w->r, "HSET");
		rs_key(w->r, "schedule:%04d", to);
		schedule_row_add(w->r, p);
	}
	version_raise(w, to);
}

static void feed_row_write(struct redis_commit *w, const struct redis_commit_plan *p)
{
	rs_command_key(w->r, "HSET", "feed");
	rs_addi(w->r, p->o->feed_id);
	rs_feed_row_pack(rs_word(w->r), p->feed_row, p->change, &p->feed);
	rs_word_end(w->r);
	if (!p->has_url)
		return;
	rs_command_key(w->r, "HSET", "urls");
	rs_add(w->r, p->o->feed->url);
	rs_addi(w->r, p->o->feed_id);
	if (fw_str_eq(p->url_was, p->o->feed->url))
		return;
	rs_command_key(w->r, "HDEL", "urls");
	rs_add(w->r, p->url_was);
}

static void commit_feeds_write(struct redis_commit *w)
{
	const struct redis_commit_plan *end = w->plan + w->n, *p;

	for (p = w->plan; p < end;)
		p = schedule_rows_write(w, p, end);
	for (p = w->plan; p < end; p++) {
		if (p->result != PLAN_STORED)
			continue;
		if (p->change)
			feed_row_write(w, p);
		if (p->changes_host)
			moved_feed_write(w, p);
		if (p->changes_host || (!w->c->lease_id && !w->push))
			version_raise(w, p->shard);
	}
}

/* The pair of words for one entry: for the hash of rows, the ids, or the dates. */
typedef void pair_fn(
	const struct redis_commit *w, const struct redis_commit_plan *p, const struct redis_commit_entry *i);

static void row_pair(
	const struct redis_commit *w, const struct redis_commit_plan *p, const struct redis_commit_entry *i)
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

static void id_pair(const struct redis_commit *w, const struct redis_commit_plan *p, const struct redis_commit_entry *i)
{
	(void)p;
	rs_addi(w->r, i->known.id);
	rs_addi(w->r, i->known.id);
}

static void date_pair(
	const struct redis_commit *w, const struct redis_commit_plan *p, const struct redis_commit_entry *i)
{
	(void)p;
	rs_addi(w->r, i->known.date_ms);
	rs_addi(w->r, i->known.id);
}

/* One command for all entries. */
static void pairs_write(struct redis_commit *w, const char *cmd, const char *key, pair_fn *pair)
{
	bool begun = false;

	for (const struct redis_commit_plan *p = w->plan; p < w->plan + w->n; p++) {
		for (const struct redis_commit_entry *i = p->item; p->result == PLAN_STORED && i < p->item + p->item_n;
			i++) {
			if (!i->known.id)
				continue;
			if (!begun)
				rs_command_key(w->r, cmd, key);
			begun = true;
			pair(w, p, i);
		}
	}
}

static void commit_entries_write(struct redis_commit *w)
{
	for (const struct redis_commit_plan *p = w->plan; p < w->plan + w->n; p++) {
		for (size_t i = 0; p->result == PLAN_STORED && i < p->item_n; i++) {
			if (!i) {
				rs_command(w->r, "HSET");
				rs_key(w->r, "keys:%lld", (long long)p->o->feed_id);
			}
			rs_add(w->r, redis_commit_key(p->item[i].e));
			rs_key_value_pack(rs_word(w->r), &p->item[i].known);
			rs_word_end(w->r);
		}
	}
	pairs_write(w, "HSET", "entries", row_pair);
	pairs_write(w, "ZADD", "entry_ids", id_pair);
	pairs_write(w, "ZADD", "entry_dates", date_pair);
}

/* Keep the version before, and drop those that are too many. */
static void revision_write(struct redis_commit *w, const struct redis_commit_entry *i)
{
	struct fw_entry_row old = i->old;
	struct fw_buf *word;
	bool cut = (int64_t)(old.content.len + old.summary.len) > w->r->revision_max_bytes;

	if (cut)
		old.content = old.summary = FW_STR_NONE;
	if (w->r->revisions_max && i->revision) {
		rs_command(w->r, "HSET");
		rs_key(w->r, "revisions:%lld", (long long)i->known.id);
		rs_addi(w->r, i->revision);
		word = rs_word(w->r);
		fw_buf_adds(word, cut ? "1 " : "0 ");
		rs_entry_pack(word, &old);
		rs_word_end(w->r);
	}
	for (size_t k = 0; k < i->kept->n; k++) {
		if (rs_int(rs_elem(i->kept, k)) > (int64_t)i->revision - w->r->revisions_max)
			continue;
		rs_command(w->r, "HDEL");
		rs_key(w->r, "revisions:%lld", (long long)i->known.id);
		rs_add(w->r, rs_elem(i->kept, k)->text);
	}
}

static void change_write(struct redis_commit *w, const struct redis_commit_plan *p, int64_t change_id, int64_t entry_id,
	enum fw_change_kind kind, uint32_t revision)
{
	rs_command_key(w->r, "ZADD", "changes");
	rs_addi(w->r, change_id);
	fw_buf_addf(rs_word(w->r), "%lld %lld %lld %d %u %lld", (long long)change_id, (long long)entry_id,
		(long long)p->o->feed_id, (int)kind, revision, (long long)w->now_ms);
	rs_word_end(w->r);
}

static void commit_changes_write(struct redis_commit *w)
{
	for (const struct redis_commit_plan *p = w->plan; p < w->plan + w->n; p++) {
		for (size_t k = 0; p->result == PLAN_STORED && k < p->item_n; k++) {
			const struct redis_commit_entry *i = &p->item[k];

			if (!redis_commit_is_changed(i))
				continue;
			revision_write(w, i);
			change_write(w, p, i->change_id, i->known.id, FW_CHANGE_CHANGED, i->revision + 1);
		}
	}
}

/* Remove a retracted entry, as entry_drop() in script/head.lua does. Its key stays. */
static void retraction_write(
	struct redis_commit *w, const struct redis_commit_plan *p, const struct redis_commit_retraction *r)
{
	static const char *const FROM[][2] = {{"HDEL", "entries"}, {"ZREM", "entry_ids"}, {"ZREM", "entry_dates"}};
	const struct rs_key_value none = {.hash = r->known.hash};

	rs_command(w->r, "HSET");
	rs_key(w->r, "keys:%lld", (long long)p->o->feed_id);
	rs_add(w->r, redis_commit_retracted_key(r->key));
	rs_key_value_pack(rs_word(w->r), &none);
	rs_word_end(w->r);
	rs_command(w->r, "DEL");
	rs_key(w->r, "revisions:%lld", (long long)r->known.id);
	for (size_t i = 0; i < FW_N(FROM); i++) {
		rs_command_key(w->r, FROM[i][0], FROM[i][1]);
		rs_addi(w->r, r->known.id);
	}
	change_write(w, p, r->change_id, r->known.id, FW_CHANGE_GONE, 0);
}

static void commit_retractions_write(struct redis_commit *w)
{
	for (const struct redis_commit_plan *p = w->plan; p < w->plan + w->n; p++) {
		for (size_t i = 0; p->result == PLAN_STORED && i < p->retraction_n; i++)
			retraction_write(w, p, &p->retraction[i]);
	}
}

FW_COMPARE_BY(match_by_order, struct fw_match, order_id, change_id)

/* The matches, by order. */
static size_t commit_matches(struct redis_commit *w, struct fw_match **out)
{
	struct fw_match *m;
	size_t n = 0;

	for (const struct redis_commit_plan *p = w->plan; p < w->plan + w->n; p++)
		n += p->result == PLAN_STORED ? p->match_n : 0;
	m = n ? fw_arena_calloc(&w->r->arena, n, sizeof(*m)) : NULL;
	*out = m;
	if (!m) {
		w->r->failed = n ? FW_ENOMEM : w->r->failed;
		return 0;
	}
	n = 0;
	for (const struct redis_commit_plan *p = w->plan; p < w->plan + w->n; p++) {
		for (const struct redis_commit_entry *i = p->item; p->result == PLAN_STORED && i < p->item + p->item_n;
			i++) {
			for (size_t k = 0; k < i->order_n; k++)
				m[n++] = (struct fw_match){.order_id = i->order_id[k],
					.change_id = i->is_new ? i->known.id : i->change_id,
					.entry_id = i->known.id,
					.feed_id = p->o->feed_id,
					.at_ms = w->now_ms,
					.changed = !i->is_new};
		}
	}
	qsort(m, n, sizeof(*m), match_by_order);
	return n;
}

/* One command for each order: matches.c. */
static void commit_matches_write(struct redis_commit *w)
{
	struct fw_match *m;
	size_t n = commit_matches(w, &m);

	for (size_t i = 0; i < n; i++) {
		if (!i || m[i].order_id != m[i - 1].order_id) {
			rs_command(w->r, "ZADD");
			rs_key(w->r, "matches:%lld", (long long)m[i].order_id);
		}
		rs_addi(w->r, m[i].change_id);
		rs_match_row_add(w->r, &m[i]);
	}
	if (n)
		rs_command_key(w->r, "SADD", "match_orders");
	for (size_t i = 0; i < n; i++) {
		if (!i || m[i].order_id != m[i - 1].order_id)
			rs_addi(w->r, m[i].order_id);
	}
}

/* In chunks. A chunk's name is the id of its first visit: script/head.lua. */
static void commit_visits_write(struct redis_commit *w)
{
	const struct redis_commit_plan *end = w->plan + w->n, *p;
	struct fw_buf *chunk = NULL;
	int64_t n = 0;

	for (p = w->plan; p < end; p++) {
		struct fw_visit v = p->o->visit;

		if (p->result != PLAN_STORED || !p->visit_id)
			continue;
		if (n % CHUNK == 0) {
			if (n)
				rs_word_end(w->r);
			else
				rs_command_key(w->r, "HSET", "visits");
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
	rs_command_key(w->r, "ZADD", "visit_ids");
	n = 0;
	for (p = w->plan; p < end; p++) {
		if (p->result != PLAN_STORED || !p->visit_id || n++ % CHUNK)
			continue;
		rs_addi(w->r, p->visit_id);
		rs_addi(w->r, p->visit_id);
	}
	rs_command_key(w->r, "HINCRBY", "meta");
	rs_adds(w->r, "visit_n");
	rs_addi(w->r, n);
}

/*
 * Tell others of new entries: one message for each outcome that has some. It is in the transaction
 * that stores them, so it is there exactly once.
 */
static void commit_stream_write(struct redis_commit *w)
{
	struct rs *r = w->r;

	for (const struct redis_commit_plan *p = w->plan; p < w->plan + w->n; p++) {
		int64_t first_id = 0, last_id = 0;

		if (p->result != PLAN_STORED || !p->new_n)
			continue;
		for (const struct redis_commit_entry *i = p->item; i < p->item + p->item_n; i++) {
			if (!i->is_new || i->dropped)
				continue;
			first_id = first_id ? first_id : i->known.id;
			last_id = i->known.id;
		}
		rs_command(r, "XADD");
		rs_stream_key(r);
		rs_adds(r, "MAXLEN");
		rs_adds(r, "~");
		rs_addi(r, r->stream_max);
		rs_adds(r, "*");
		rs_adds(r, "feed_id");
		rs_addi(r, p->o->feed_id);
		rs_adds(r, "url");
		rs_add(r,
			p->has_url || !p->feed_row.p ? p->o->feed->url :
						       rs_address_url(rs_feed_row_group(p->feed_row, RS_ADDRESS)));
		rs_adds(r, "first_id");
		rs_addi(r, first_id);
		rs_adds(r, "last_id");
		rs_addi(r, last_id);
		rs_adds(r, "new_n");
		rs_addi(r, p->new_n);
		rs_adds(r, "at_ms");
		rs_addi(r, p->o->visit.at_ms ? p->o->visit.at_ms : w->now_ms);
	}
}

/* A host in another worker's shard: the later times count, the learned delay stays. */
static void host_merge(struct store_host *h, struct fw_str row)
{
	struct store_host was;

	if (!row.p || !rs_host_unpack(row, &was))
		return;
	h->next_ok_ms = FW_MAX(h->next_ok_ms, was.next_ok_ms);
	h->cooldown_until_ms = FW_MAX(h->cooldown_until_ms, was.cooldown_until_ms);
	h->learned_delay_ms = was.learned_delay_ms;
}

static void commit_hosts_write(struct redis_commit *w)
{
	for (size_t i = 0; !w->hosts_done && i < w->c->host_n; i++) {
		struct store_host h = w->c->host[i];

		if (h.others) {
			host_merge(&h, w->host_row[i]);
			version_raise(w, store_host_shard(h.id));
		}
		rs_command(w->r, "HSET");
		rs_key(w->r, "hosts:%04d", store_host_shard(h.id));
		rs_addi(w->r, h.id);
		rs_host_pack(rs_word(w->r), &h);
		rs_word_end(w->r);
	}
}

void redis_commit_write(struct redis_commit *w)
{
	size_t multi;

	w->publishes = false;
	multi = w->r->cmd_n;
	rs_command(w->r, "MULTI");
	if (w->stored_n) {
		commit_feeds_write(w);
		commit_entries_write(w);
		commit_changes_write(w);
		commit_retractions_write(w);
		commit_matches_write(w);
		commit_visits_write(w);
		if (w->r->stream_max)
			commit_stream_write(w);
	}
	commit_hosts_write(w);
	if (w->id_n) {
		rs_command_key(w->r, "HDEL", "reserved_ids");
		rs_addi(w->r, w->first_id);
	}
	if (w->publishes) {
		rs_command(w->r, "PUBLISH");
		rs_add(w->r, w->r->channel);
		rs_adds(w->r, w->r->sender_id);
	}
	w->at = w->r->cmd_n;
	rs_command(w->r, "EXEC");
	rs_expect_n(w->r, "(x)=?", w->at - multi - 1);
}
