/* SPDX-License-Identifier: ISC */
/*
 * Outcomes: script/commit.lua stores them, this file looks first which entries may be new, so that
 * the others stay at home.
 *
 * A commit is one script for each cell, all at once. Where there are many cells, or new entries,
 * numbers of visits and entries are taken before. Rows of new entries are written first, by the
 * server's own command, for words that go through a script cost it four times as much; nobody sees
 * a row before the script has listed its number. Numbers of entries are kept in `taken` until they
 * are stored: nobody who follows by number is shown a higher one before that (entries.c), so they
 * appear in order. Who dies in between is revoked: no cell takes numbers below a floor, which is
 * raised above his, before they are given up, and rows that nothing lists are swept away.
 */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "store/redis/redis.h"
#include "base/banned.h"

#define TRIES 20
#define TAKEN_MS 10000 /* so long somebody may take to store what he has taken numbers for */

struct plan { /* an outcome on its way */
	struct fw_outcome *o;
	int cell;
	const struct fw_entry_row *
		*entry; /* without those with a key twice; then only those that seem new or changed */
	bool *is_new; /* each of them */
	size_t entry_n, new_n;
	int64_t first_id; /* of its new ones */
	bool has_url; /* it may adopt its new address */
	bool plain;   /* a visit alone */
};

struct work {
	struct rs *r;
	struct store_commit *c;
	struct plan *plan; /* in order of sending: */
	size_t n, first[RS_CELLS], of[RS_CELLS], host_n[RS_CELLS]; /* of a cell: of[] from first[] on */
	bool *done; /* outcomes that are answered, */
	bool cell_done[RS_CELLS]; /* and cells that have stored their hosts */
	bool push;                /* the schedules stay */
	int64_t visit_n, new_n;   /* numbers that it wants at most */
	int64_t visit_id, entry_id;            /* the last ones that were given */
	int64_t first_id, taken_ms;            /* those of entries: behind this one; when, by the server's clock */
	bool merging[RS_CELLS]; /* something is on its way into another feed there */
};

/* ---- looking --------------------------------------------------------------------------------- */

static struct fw_str key_of(const struct fw_entry_row *e)
{
	return (struct fw_str){(const char *)e->key, sizeof(e->key)};
}

/* Of entries with one key in one document the first counts. */
static int first_ones(struct work *w, struct plan *p, struct fw_err *err)
{
	struct fw_map seen;
	int rc = 0;

	p->entry = fw_arena_calloc(&w->r->arena, p->o->entry_n + 1, sizeof(struct fw_entry_row *));
	p->is_new = fw_arena_calloc(&w->r->arena, p->o->entry_n + 1, sizeof(*p->is_new));
	p->entry_n = 0;
	if (!p->entry || !p->is_new)
		return rs_no_memory(w->r, err);
	fw_map_init(&seen, 0);
	for (size_t i = 0; !rc && i < p->o->entry_n; i++) {
		const struct fw_entry_row *e = &p->o->entries[i];

		if (fw_map_get(&seen, key_of(e)))
			continue;
		fw_map_put(&seen, key_of(e), p, &rc);
		p->entry[p->entry_n++] = e;
	}
	fw_map_finish(&seen);
	return rc ? rs_no_memory(w->r, err) : 0;
}

/* What is known of these stays at home. */
static void candidates(struct work *w, struct plan *p, const struct rs_reply *known)
{
	size_t n = 0;

	for (size_t i = 0; i < p->entry_n; i++) {
		struct rs_known k = {0};
		bool is_known = known->elem[i]->type == RS_TEXT && rs_known_read(known->elem[i]->text, &k);

		if (is_known && k.hash == p->entry[i]->hash)
			continue;
		p->new_n += !is_known;
		p->is_new[n] = !is_known;
		p->entry[n++] = p->entry[i];
	}
	p->entry_n = n;
	w->new_n += (int64_t)p->new_n;
}

static int entries_look(struct work *w, struct fw_err *err)
{
	size_t nth = 0;
	int rc = 0;

	for (size_t i = 0; !rc && i < w->n; i++) {
		struct plan *p = &w->plan[i];
		char key[40];

		rc = p->o->entry_n ? first_ones(w, p, err) : 0;
		if (rc || !p->entry_n)
			continue;
		(void)fw_snprintf(key, sizeof(key), "keys:%lld", (long long)p->o->feed_id);
		rs_ask(w->r, p->cell, "HMGET", key);
		for (size_t k = 0; k < p->entry_n; k++)
			rs_add(w->r, key_of(p->entry[k]));
		nth++;
	}
	rc = !rc && nth ? rs_run(w->r, "looking for new entries", err) : rc;
	for (size_t i = nth = 0; !rc && i < w->n; i++) {
		if (w->plan[i].entry_n)
			candidates(w, &w->plan[i], w->r->reply[nth++]);
	}
	return rc;
}

/* New addresses: rare, so one by one. */
static int addresses_claim(struct work *w, struct fw_err *err)
{
	int rc = 0;

	for (size_t i = 0; !rc && !w->push && i < w->n; i++) {
		struct plan *p = &w->plan[i];
		int64_t whose;

		if (!(p->o->groups & FW_GROUP_URL))
			continue;
		rs_op(w->r, p->cell, RS_WRITE, "adopting");
		rs_addi(w->r, p->o->feed_id);
		rs_add(w->r, p->o->feed->url);
		rc = rs_run(w->r, "adopting an address", err);
		rc = rc ? rc : rs_url_claim(w->r, p->o->feed->url, p->o->feed_id, &whose, err);
		p->has_url = !rc && whose == p->o->feed_id;
	}
	return rc;
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* They are stored. Or given up: op takes what nothing lists out of each cell before (meta.lua). */
static int taken_end(struct rs *r, const char *op, int64_t first, int64_t n, struct fw_err *err)
{
	int rc;

	for (int cell = 0; op && cell < r->cell_n; cell++) {
		rs_op(r, cell, RS_WRITE, op);
		rs_addi(r, first);
		rs_addi(r, n);
	}
	rc = op ? rs_run(r, "revoking numbers", err) : 0;
	if (rc)
		return rc;
	rs_ask(r, RS_META, "HDEL", "taken");
	rs_addi(r, first);
	return rs_run(r, "taking numbers", err);
}

static int numbers_take(struct work *w, struct fw_err *err)
{
	const struct rs_reply *old;
	int rc;

	rs_op(w->r, RS_META, RS_WRITE, "numbers");
	rs_addi(w->r, w->visit_n);
	rs_addi(w->r, w->new_n);
	rs_addi(w->r, TAKEN_MS);
	rc = rs_run(w->r, "taking numbers", err);
	if (rc)
		return rc;
	w->visit_id = rs_int(w->r->reply[0]->elem[0]);
	w->entry_id = rs_int(w->r->reply[0]->elem[1]);
	old = w->r->reply[0]->elem[2];
	w->taken_ms = rs_int(w->r->reply[0]->elem[3]);
	for (size_t i = 0; !rc && i + 2 <= old->n; i += 2)
		rc = taken_end(w->r, "floor", rs_int(old->elem[i]), rs_int(old->elem[i + 1]), err);
	return rc;
}

int rs_numbers_revoke(struct rs *r, struct fw_err *err)
{
	return numbers_take(&(struct work){.r = r}, err);
}

/* Were numbers taken? Visits alone get theirs in the script of the one cell. */
static bool is_numbered(const struct work *w)
{
	return w->n && (w->r->cell_n > 1 || w->new_n);
}

/* ---- sending --------------------------------------------------------------------------------- */

static int address_of(const struct work *w, const struct plan *p)
{
	unsigned groups = w->push ? 0 : p->o->groups;

	return groups & FW_GROUP_URL ? (p->has_url ? 2 : 0) : groups & FW_GROUP_HOST ? 1 : 0;
}

static bool is_written(const struct work *w, const struct plan *p, int group)
{
	return p->o->groups & (w->push ? FW_GROUP_META : ~0u) & rs_group[group].bit;
}

/* One that seems changed, with its row. */
static void changed_add(struct rs *r, const struct fw_entry_row *e)
{
	int64_t date_ms = fw_store_entry_date(e, INT64_MAX);

	rs_add(r, key_of(e));
	rs_hash_add(r, e->hash, date_ms == INT64_MAX ? " -" : " ", date_ms, date_ms != INT64_MAX);
	rs_entry_pack(rs_word(r), e);
	rs_word_end(r);
}

/* One that seems new, with its number: its row is there. */
static void new_add(const struct work *w, const struct fw_entry_row *e, int64_t id)
{
	char between[32];

	(void)fw_snprintf(between, sizeof(between), " %lld ", (long long)fw_store_entry_date(e, w->taken_ms));
	rs_add(w->r, key_of(e));
	rs_hash_add(w->r, e->hash, between, id, true);
	rs_adds(w->r, "");
}

/* Their rows, before the script: false, there are none. */
static bool rows_send(struct work *w, int cell)
{
	struct plan *p = w->plan + w->first[cell], *end = p + w->of[cell];
	int64_t first_id = w->entry_id;
	struct fw_buf *row;

	for (; p < end; p++) {
		int64_t id = p->first_id = w->entry_id + 1;

		for (size_t i = 0; i < p->entry_n; i++) {
			if (!p->is_new[i])
				continue;
			if (w->entry_id == first_id)
				rs_ask(w->r, cell, "HSET", "entries");
			w->entry_id = id;
			rs_addi(w->r, id++);
			row = rs_word(w->r);
			fw_buf_addf(row, "%lld %lld %lld 1 ", (long long)p->o->feed_id, (long long)w->taken_ms,
				(long long)w->taken_ms);
			rs_entry_pack(row, p->entry[i]);
			rs_word_end(w->r);
		}
	}
	return w->entry_id != first_id;
}

static void group_add(const struct work *w, const struct fw_feed *f, int group)
{
	const struct fw_feed told = {.title = f->title, .home_page_url = f->home_page_url,
		.description = f->description, .language = f->language, .icon = f->icon};

	rs_addi(w->r, group + 1);
	rs_group_pack(rs_word(w->r), group, w->push ? &told : f);
	rs_word_end(w->r);
}

/* What a visit alone does not have: see script/commit.lua. */
static void more_add(const struct work *w, const struct plan *p)
{
	const struct fw_outcome *o = p->o;
	struct fw_buf *b = rs_word(w->r);
	bool none = o->visit.kind == FW_VISIT_NONE;
	int groups = 0, address = address_of(w, p);

	for (int g = 0; g < RS_GROUP_N; g++)
		groups += is_written(w, p, g);
	fw_buf_addc(b, w->push ? 'p' : none ? 'n' : w->c->lease_id ? 'v' : 'f');
	fw_buf_addc(b, ' ');
	if (none && !w->push)
		fw_buf_addc(b, '-');
	else
		rs_pad(b, w->push ? o->visit.at_ms : o->feed->last_visit_ms, 20);
	fw_buf_addf(b, " %d %zu %d", groups, p->entry_n, address);
	rs_word_end(w->r);
	for (int g = 0; g < RS_GROUP_N; g++) {
		if (is_written(w, p, g))
			group_add(w, o->feed, g);
	}
	for (size_t i = 0, k = 0; i < p->entry_n; i++) {
		if (p->is_new[i])
			new_add(w, p->entry[i], p->first_id + (int64_t)k++);
		else
			changed_add(w->r, p->entry[i]);
	}
	if (!address)
		return;
	rs_group_pack(rs_word(w->r), RS_ADDRESS, o->feed);
	rs_word_end(w->r);
	b = rs_word(w->r);
	rs_pad(b, store_host_shard(store_feed_host_id(o->feed)), 4);
	fw_buf_addc(b, ' ');
	rs_pad(b, store_feed_host_id(o->feed), 20);
	rs_word_end(w->r);
}

static void outcome_add(const struct work *w, const struct plan *p)
{
	const struct fw_outcome *o = p->o;
	struct fw_buf *b;

	rs_addi(w->r, o->feed_id);
	b = rs_word(w->r);
	if (!w->push)
		rs_was_pack(b, o->host_id, FW_FEED_ACTIVE, o->was_due_ms);
	rs_word_end(w->r);
	b = rs_word(w->r);
	if (!w->push)
		rs_front_pack(b, o->feed, o->host_id);
	rs_word_end(w->r);
	b = rs_word(w->r);
	if (o->visit.kind != FW_VISIT_NONE)
		rs_visit_pack(b, &o->visit);
	rs_word_end(w->r);
	if (!p->plain)
		more_add(w, p);
}

static void hosts_add(const struct work *w, int cell)
{
	const struct store_host *end = w->c->host + w->c->host_n;

	rs_addi(w->r, (int64_t)w->host_n[cell]);
	for (const struct store_host *h = w->c->host; h < end; h++) {
		if (rs_cell(w->r, store_host_shard(h->id)) != cell)
			continue;
		fw_buf_addf(rs_word(w->r), "%04d %lld %lld %lld %lld %d", store_host_shard(h->id),
			(long long)h->id, (long long)h->next_ok_ms, (long long)h->cool_until_ms,
			(long long)h->pace_ms, h->others);
		rs_word_end(w->r);
	}
}

/* Visits alone of one shard, and behind them. */
static const struct plan *shard_add(const struct work *w, const struct plan *p, const struct plan *end)
{
	int shard = store_host_shard(p->o->host_id);
	const struct plan *i = p;

	while (i < end && store_host_shard(i->o->host_id) == shard)
		i++;
	rs_pad(rs_word(w->r), shard, 4);
	rs_word_end(w->r);
	rs_addi(w->r, i - p);
	for (const struct plan *k = p; k < i; k++) {
		rs_addi(w->r, k->o->feed->due_at_ms);
		rs_addi(w->r, k->o->feed_id);
	}
	while (p < i)
		outcome_add(w, p++);
	return i;
}

/* The script of a cell; its numbers are the next ones. */
static void send(struct work *w, int cell)
{
	const struct plan *p = w->plan + w->first[cell], *end = p + w->of[cell];
	int64_t plain_n = 0, visit_n = 0;

	for (const struct plan *i = p; i < end; i++) {
		plain_n += i->plain;
		visit_n += i->o->visit.kind != FW_VISIT_NONE;
	}
	rs_op(w->r, cell, RS_WRITE, "commit");
	rs_addi(w->r, w->c->lease_id);
	rs_addi(w->r, visit_n);
	if (is_numbered(w)) {
		rs_addi(w->r, w->visit_id);
		rs_addi(w->r, w->new_n ? w->first_id : -1);
	} else {
		rs_adds(w->r, "");
		rs_adds(w->r, "");
	}
	rs_addi(w->r, w->r->cell_n == 1 ? w->new_n : 0);
	w->visit_id += visit_n;
	rs_addi(w->r, plain_n);
	for (const struct plan *last = p + plain_n; p < last;)
		p = shard_add(w, p, last);
	rs_addi(w->r, end - p);
	while (p < end)
		outcome_add(w, p++);
	hosts_add(w, cell);
}

/* ---- the answers ----------------------------------------------------------------------------- */

/* "new changed[ address]" */
static int found(struct work *w, struct plan *p, struct fw_str text, struct fw_err *err)
{
	struct fw_str changed, old, one = fw_str_split(text, ' ', &changed);
	int64_t n = 0;

	changed = fw_str_split(changed, ' ', &old);
	if (fw_str_int(one, &n))
		p->o->visit.new_n = (uint32_t)n;
	if (fw_str_int(changed, &n))
		p->o->visit.changed_n = (uint32_t)n;
	if (fw_str_eq(old, FW_STR("taken")))
		p->has_url = false;
	else if (old.p && p->has_url && !fw_str_eq(old, p->o->feed->url))
		return rs_url_release(w->r, old, p->o->feed_id, err);
	return 0;
}

/*
 * *again: it is on its way into another feed; or it came without a lease and is no first visit, and
 * becomes a push.
 */
static int settle_one(struct work *w, struct plan *p, struct fw_str text, bool *again, struct fw_err *err)
{
	struct fw_outcome *o = p->o;
	bool gone = fw_str_eq(text, FW_STR("gone")), merging = fw_str_eq(text, FW_STR("merging"));

	if (gone && !w->c->lease_id && !w->push) {
		w->push = true;
		o->visit.kind = FW_VISIT_PUSHED;
	} else if (gone) {
		o->rc = FW_ENOTFOUND;
		return 0;
	} else if (!merging) {
		return fw_str_eq(text, FW_STR("before")) ? 0 : found(w, p, text, err);
	}
	w->merging[p->cell] |= merging;
	w->done[o - w->c->outcome] = false;
	*again = true;
	return 0;
}

static int settle(struct work *w, const struct rs_reply *answer, int cell, bool *again, struct fw_err *err)
{
	struct plan *p = w->plan + w->first[cell];
	size_t n = w->of[cell];
	bool push = w->push;
	int rc = 0;

	w->cell_done[cell] = true;
	for (size_t i = 0; i < n; i++)
		w->done[p[i].o - w->c->outcome] = true;
	for (size_t i = 0; !rc && i + 2 <= answer->n; i += 2) {
		size_t at = (size_t)rs_int(answer->elem[i]) - 1;

		if (at < n)
			rc = settle_one(w, &p[at], answer->elem[i + 1]->text, again, err);
	}
	for (size_t i = 0; !rc && !push && i < n; i++) {
		if (p[i].o->groups & FW_GROUP_URL && !p[i].has_url && !p[i].o->rc && !*again)
			p[i].o->rc = FW_EINVAL;
	}
	return rc;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int by_cell(const void *a, const void *b)
{
	const struct plan *x = a, *y = b;
	int sx, sy;

	if (x->cell != y->cell)
		return x->cell < y->cell ? -1 : 1;
	if (x->plain != y->plain)
		return x->plain ? -1 : 1;
	sx = store_host_shard(x->o->host_id);
	sy = store_host_shard(y->o->host_id);
	if (x->plain && sx != sy)
		return sx < sy ? -1 : 1;
	if (x->plain && x->o->feed_id != y->o->feed_id)
		return x->o->feed_id < y->o->feed_id ? -1 : 1;
	return x->o < y->o ? -1 : x->o > y->o;
}

/* In order: cells, and in each those that are visits alone first; a feed's second one is no such. */
static void plans_order(struct work *w)
{
	bool twice = true;

	for (size_t i = 0; i < w->n; i++) {
		const struct fw_outcome *o = w->plan[i].o;

		w->plan[i].plain = w->c->lease_id && !o->groups && !w->plan[i].entry_n &&
			o->visit.kind != FW_VISIT_NONE && o->feed->status == FW_FEED_ACTIVE;
	}
	while (w->n && twice) {
		twice = false;
		qsort(w->plan, w->n, sizeof(*w->plan), by_cell);
		for (size_t i = 1; i < w->n; i++) {
			if (w->plan[i].plain && w->plan[i].o->feed_id == w->plan[i - 1].o->feed_id)
				w->plan[i].plain = !(twice = true);
		}
	}
	memset(w->of, 0, sizeof(w->of));
	for (size_t i = 0; i < w->n; i++) {
		if (!w->of[w->plan[i].cell]++)
			w->first[w->plan[i].cell] = i;
		w->visit_n += w->plan[i].o->visit.kind != FW_VISIT_NONE;
	}
}

static int plans_make(struct work *w, struct fw_err *err)
{
	int rc = 0;

	w->n = 0;
	w->visit_n = w->new_n = 0;
	w->plan = fw_arena_calloc(&w->r->arena, w->c->n + 1, sizeof(*w->plan));
	if (!w->plan)
		return rs_no_memory(w->r, err);
	for (size_t i = 0; i < w->c->n; i++) {
		struct fw_outcome *o = &w->c->outcome[i];

		if (w->done[i])
			continue;
		o->rc = 0;
		o->visit.new_n = o->visit.changed_n = 0;
		w->plan[w->n++] = (struct plan){.o = o, .cell = rs_cell(w->r, o->feed_id)};
	}
	rc = entries_look(w, err);
	plans_order(w);
	return rc ? rc : addresses_claim(w, err);
}

/* Cells where something is to be written; where nothing is, the first tells whether the lease is there. */
static size_t cells_of(const struct work *w, int cell[RS_CELLS])
{
	size_t n = 0;

	for (int i = 0; i < w->r->cell_n; i++) {
		if (w->of[i] || (w->host_n[i] && !w->cell_done[i]))
			cell[n++] = i;
	}
	if (!n)
		cell[n++] = RS_META;
	return n;
}

static int send_all(struct work *w, bool *again, struct fw_err *err)
{
	const struct rs_reply *reply[RS_CELLS];
	int cell[RS_CELLS], rc;
	size_t n = cells_of(w, cell), at[RS_CELLS], nth = 0;

	for (size_t i = 0; i < n; i++) {
		nth += rows_send(w, cell[i]);
		at[i] = nth++;
		send(w, cell[i]);
	}
	rc = rs_run(w->r, "commit", err);
	for (size_t i = 0; !rc && i < n; i++)
		reply[i] = w->r->reply[at[i]]; /* settling asks more */
	for (size_t i = 0; !rc && i < n; i++) {
		if (reply[i]->type == RS_ARRAY)
			rc = settle(w, reply[i], cell[i], again, err);
		else if (fw_str_eq(reply[i]->text, FW_STR("lost")))
			rc = rs_lost(w->r, err);
		else
			*again = true;
	}
	return rc;
}

static int try(struct work *w, bool *again, struct fw_err *err)
{
	int rc = plans_make(w, err);
	int64_t new_n = 0;
	bool whole;

	*again = false;
	memset(w->merging, 0, sizeof(w->merging));
	if (!rc && is_numbered(w))
		rc = numbers_take(w, err);
	if (rc)
		return rc;
	w->first_id = w->entry_id;
	rc = send_all(w, again, err);
	for (size_t i = 0; i < w->n; i++)
		new_n += w->plan[i].o->visit.new_n;
	whole = !rc && new_n == w->new_n;
	if (w->new_n && rc != FW_EIO && !(whole && w->r->cell_n == 1)) { /* all cells have answered */
		struct fw_err spare;
		int ended = taken_end(w->r, whole ? NULL : "sweep", w->first_id, w->new_n, rc ? &spare : err);

		rc = rc ? rc : ended;
	}
	for (int i = 0; !rc && i < w->r->cell_n; i++) {
		if (w->merging[i])
			rc = rs_merges_finish(w->r, i, err);
	}
	return rc;
}

int rs_commit(struct store *st, struct store_commit *c, struct fw_err *err)
{
	struct fw_outcome *one = c->n == 1 && !c->lease_id ? c->outcome : NULL;
	enum fw_visit_kind kind = one ? one->visit.kind : FW_VISIT_NONE;
	struct work w = {.r = rs_of(st), .c = c};
	bool again = true;
	int rc = rs_start(w.r, true, err);

	w.push = !c->lease_id && !(one && kind != FW_VISIT_PUSHED && kind != FW_VISIT_NONE);
	w.done = fw_arena_calloc(&w.r->arena, c->n + 1, sizeof(*w.done));
	if (!rc && !w.done)
		rc = rs_no_memory(w.r, err);
	for (size_t i = 0; i < c->host_n; i++)
		w.host_n[rs_cell(w.r, store_host_shard(c->host[i].id))]++;
	for (int i = 0; !rc && again && i < TRIES; i++)
		rc = try(&w, &again, err);
	if (one)
		one->visit.kind = kind;
	return rc || !again
		? rc
		: fw_err_set(err, FW_EAGAIN, "%s: feeds go into others just now: try again", w.r->target.name);
}
