/* SPDX-License-Identifier: ISC */
/*
 * Outcomes. A commit reads what it changes, works out the new rows, and writes them in one
 * transaction (WATCH, MULTI, EXEC), which the server refuses when somebody has touched any of it
 * meanwhile; then all is done once more. A script would need no second try, but words that go
 * through Lua cost the server ten times as much, and there is no work that it does more often.
 *
 * What is watched: the lease; the schedules of the shards, where everybody writes who changes a
 * feed; the keys of entries; and what is rare: feeds that merge, addresses that are taken over, hosts
 * of others' shards. Owners do not disturb each other, for each has its own shards.
 *
 * On a cluster each cell is a transaction of its own. So is a feed's second outcome in one commit.
 *
 * Numbers are taken before. Those of entries stand in `taken` until they are stored, and nobody who
 * follows by number is shown a higher one before that (entries.c), so they appear in order. Who dies
 * in between is revoked: `revoked`, which each commit watches from before it takes numbers, is raised
 * in all cells, and then his are given up.
 */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "store/redis/redis.h"
#include "base/banned.h"

#define TRIES 20
#define TAKEN_MS 10000 /* so long somebody may take to store what he has taken numbers for */
#define CHUNK 32       /* visits in one value: script/head.lua */
#define STEPS 100      /* of a feed's visits, when one is looked for among them */

struct item { /* an entry that seems new or changed */
	const struct fw_entry_row *e;
	struct rs_known known; /* id 0: retention took it */
	bool is_new;
	int64_t seen_ms; /* first; 0: now */
	uint32_t revision; /* the one before */
};

enum verdict {
	STORED,
	BEFORE, /* it is there, an earlier answer was lost */
	GONE,
	LATER, /* not in this try */
};

struct plan { /* an outcome on its way */
	struct fw_outcome *o;
	int cell, shard;
	bool has_url; /* it may have its new address */
	enum verdict verdict;
	struct fw_feed feed; /* its narrow row, as it is and then as it will be */
	struct rs_state state;
	struct fw_str wide; /* its row of `feed`, where that changes; and the address in there */
	struct fw_str url_was;
	bool moves; /* to another host */
	struct item *item;
	size_t item_n;
	uint32_t new_n, changed_n;
	int64_t visit_id, before_id; /* 0: none is written; none was before */
};

struct part { /* of a cell */
	struct plan *plan;
	size_t n;
	size_t at;       /* where its replies are */
	size_t stored_n; /* plans that are written */
	bool merging;    /* something is on its way into another feed there */
	bool sent;
};

struct work {
	struct rs *r;
	struct store_commit *c;
	struct plan *plan; /* by cell and shard */
	size_t n;
	struct part part[RS_CELLS];
	bool *done;                /* outcomes that are answered, */
	bool hosts_done[RS_CELLS]; /* and cells that have stored their hosts */
	struct fw_str *host_was;   /* those of others' shards: their rows */
	bool push;                 /* the schedules stay */
	bool again;                /* something is left to be done */
	bool tells;                /* a schedule changes */
	int64_t now_ms;            /* by the server's clock */
	int64_t visit_id;          /* the last one that was given */
	int64_t first_id, new_n;   /* numbers of entries were taken: so many behind this one */
	int64_t entry_id;          /* the last of them that was given */
};

static struct fw_str key_of(const struct fw_entry_row *e)
{
	return (struct fw_str){(const char *)e->key, sizeof(e->key)};
}

static bool has_visit(const struct plan *p)
{
	return p->o->visit.kind != FW_VISIT_NONE;
}

/* Groups of the wide row that it writes, as bits by RS_*. */
static unsigned change_of(const struct work *w, const struct plan *p)
{
	unsigned groups = p->o->groups & (w->push ? FW_GROUP_META : ~0u), change = 0;

	for (int g = 0; g < RS_GROUP_N; g++)
		change |= rs_group[g].bit & groups ? 1u << g : 0;
	if (groups & FW_GROUP_URL ? p->has_url : groups & FW_GROUP_HOST)
		change |= 1u << RS_ADDRESS;
	return change;
}

/* ---- what is done in this try ---------------------------------------------------------------- */

static int by_shard(const void *a, const void *b)
{
	const struct plan *x = a, *y = b;

	if (x->cell != y->cell)
		return x->cell < y->cell ? -1 : 1;
	if (x->shard != y->shard)
		return x->shard < y->shard ? -1 : 1;
	if (x->o->feed_id != y->o->feed_id)
		return x->o->feed_id < y->o->feed_id ? -1 : 1;
	return x->o < y->o ? -1 : x->o > y->o;
}

/* Of pushes, which do not say where their feeds are. */
static int shards_find(struct work *w, struct fw_err *err)
{
	int rc;

	for (size_t i = 0; i < w->n; i++) {
		rs_ask(w->r, w->plan[i].cell, "HGET", "feed");
		rs_addi(w->r, w->plan[i].o->feed_id);
	}
	rc = rs_run(w->r, "finding feeds", err);
	for (size_t i = 0; !rc && i < w->n; i++) {
		w->plan[i].shard = rs_groups_shard(w->r->reply[i]->text);
		w->plan[i].verdict = w->r->reply[i]->text.p ? LATER : GONE; /* it moved to another shard meanwhile */
	}
	return rc;
}

/* Those that are not done, each cell's together; of a feed only the first. */
static int plans_make(struct work *w, struct fw_err *err)
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
			w->plan[w->n++] = (struct plan){.o = o,
				.cell = rs_cell(w->r, o->feed_id),
				.shard = store_host_shard(o->host_id),
				.verdict = GONE};
	}
	rc = w->push ? shards_find(w, err) : 0;
	if (w->n)
		qsort(w->plan, w->n, sizeof(*w->plan), by_shard);
	for (size_t i = 0; i < w->n; i++) {
		struct plan *p = &w->plan[n];

		if (n && w->plan[n - 1].o->feed_id == w->plan[i].o->feed_id) {
			w->again = true;
			continue;
		}
		*p = w->plan[i];
		if (!w->part[p->cell].n++)
			w->part[p->cell].plan = p;
		n++;
	}
	w->n = n;
	return rc;
}

/* Of entries with one key in one document the first counts. */
static int firsts_find(struct work *w, struct plan *p, struct fw_err *err)
{
	struct fw_map seen;
	int rc = 0;

	p->item = fw_arena_calloc(&w->r->arena, p->o->entry_n, sizeof(*p->item));
	if (!p->item)
		return rs_no_memory(w->r, err);
	fw_map_init(&seen, 0);
	for (size_t i = 0; !rc && i < p->o->entry_n; i++) {
		const struct fw_entry_row *e = &p->o->entries[i];

		if (fw_map_get(&seen, key_of(e)))
			continue;
		fw_map_put(&seen, key_of(e), p, &rc);
		p->item[p->item_n++].e = e;
	}
	fw_map_finish(&seen);
	return rc ? rs_no_memory(w->r, err) : 0;
}

static int items_find(struct work *w, struct fw_err *err)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < w->n; i++)
		rc = w->plan[i].o->entry_n ? firsts_find(w, &w->plan[i], err) : 0;
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

/* ---- reading --------------------------------------------------------------------------------- */

static bool is_of_cell(const struct work *w, int cell, const struct store_host *h)
{
	return !w->hosts_done[cell] && rs_cell(w->r, store_host_shard(h->id)) == cell;
}

static void watch(const struct work *w, int cell)
{
	const struct part *part = &w->part[cell];

	rs_command(w->r, cell, "UNWATCH"); /* what an earlier try has left */
	rs_ask(w->r, cell, "WATCH", "revoked");
	rs_key(w->r, cell, "merging");
	rs_key(w->r, cell, "lease:%lld", (long long)w->c->lease_id);
	for (const struct plan *p = part->plan; p < part->plan + part->n; p++) {
		if (p == part->plan || p->shard != p[-1].shard)
			rs_key(w->r, cell, "schedule:%04d", p->shard);
		if (p->item_n)
			rs_key(w->r, cell, "keys:%lld", (long long)p->o->feed_id);
		if (p->has_url)
			rs_key(w->r, cell, "adopting");
	}
	for (const struct store_host *h = w->c->host; h < w->c->host + w->c->host_n; h++) {
		if (h->others && is_of_cell(w, cell, h))
			rs_key(w->r, cell, "hosts:%04d", store_host_shard(h->id));
	}
}

/* What cell_read() reads, in that order. */
static void cell_ask(struct work *w, int cell)
{
	struct part *part = &w->part[cell];

	watch(w, cell);
	part->at = w->r->cmd_n;
	rs_command(w->r, cell, "EXISTS");
	rs_key(w->r, cell, "lease:%lld", (long long)w->c->lease_id);
	rs_ask(w->r, cell, "EXISTS", "merging");
	for (const struct plan *p = part->plan; p < part->plan + part->n; p++) {
		if (p == part->plan || p->shard != p[-1].shard) {
			rs_command(w->r, cell, "HMGET");
			rs_key(w->r, cell, "schedule:%04d", p->shard);
		}
		rs_addi(w->r, p->o->feed_id);
	}
	for (const struct plan *p = part->plan; p < part->plan + part->n; p++) {
		if (change_of(w, p)) {
			rs_ask(w->r, cell, "HGET", "feed");
			rs_addi(w->r, p->o->feed_id);
		}
		if (p->has_url) {
			rs_ask(w->r, cell, "HGET", "adopting");
			rs_addi(w->r, p->o->feed_id);
		}
		for (size_t i = 0; i < p->item_n; i++) {
			if (!i) {
				rs_command(w->r, cell, "HMGET");
				rs_key(w->r, cell, "keys:%lld", (long long)p->o->feed_id);
			}
			rs_add(w->r, key_of(p->item[i].e));
		}
	}
}

/* What is known as it is stays at home. */
static void items_read(struct plan *p, const struct rs_reply *known)
{
	size_t n = 0;

	for (size_t i = 0; i < p->item_n; i++) {
		struct item item = {.e = p->item[i].e};

		item.is_new = known->elem[i]->type != RS_TEXT || !rs_known_read(known->elem[i]->text, &item.known);
		if (!item.is_new && item.known.hash == item.e->hash)
			continue;
		p->new_n += item.is_new;
		p->changed_n += item.known.id != 0;
		item.known.hash = item.e->hash;
		p->item[n++] = item;
	}
	p->item_n = n;
}

static enum verdict verdict_of(const struct work *w, const struct plan *p)
{
	if (w->push)
		return STORED;
	if (has_visit(p) && p->feed.last_visit_ms == p->o->feed->last_visit_ms)
		return BEFORE;
	return !w->c->lease_id && p->feed.last_visit_ms ? GONE : STORED;
}

static void plan_read(struct work *w, struct plan *p, struct rs_reply ***at)
{
	bool has_wide = change_of(w, p);

	if (has_wide)
		p->wide = (*(*at)++)->text;
	if (p->has_url)
		p->has_url = fw_str_eq((*(*at)++)->text, p->o->feed->url);
	if (p->item_n)
		items_read(p, *(*at)++);
	w->new_n += p->verdict == STORED ? p->new_n : 0;
}

/* FW_ESTALE */
static int cell_read(struct work *w, int cell, struct fw_err *err)
{
	struct part *part = &w->part[cell];
	struct plan *end = part->plan + part->n, *first = part->plan;
	struct rs_reply **at = w->r->reply + part->at;

	if (w->c->lease_id && !rs_int(at[0]))
		return rs_lost(w->r, err);
	part->merging = rs_int(at[1]) != 0;
	at += 2;
	for (struct plan *p = part->plan; p < end; p++) {
		struct fw_str row;

		if (p == part->plan || p->shard != first->shard) {
			first = p;
			at++;
		}
		row = at[-1]->elem[p - first]->text;
		if (row.p && rs_state_unpack(row, &p->feed, &p->state))
			p->verdict = verdict_of(w, p);
	}
	for (struct plan *p = part->plan; p < end; p++)
		plan_read(w, p, &at);
	return 0;
}

/* Has it been changed in the store? */
static bool is_changed(const struct item *i)
{
	return !i->is_new && i->known.id;
}

/* Nothing is new in a push: is its visit there already? */
static bool is_repeated(const struct work *w, const struct plan *p)
{
	return w->push && p->verdict == STORED && has_visit(p) && !p->new_n && !p->changed_n;
}

/* What cell_read_more() reads: rare, but for rows of entries that have changed. */
static void cell_ask_more(struct work *w, int cell)
{
	struct part *part = &w->part[cell];

	part->at = w->r->cmd_n;
	for (struct plan *p = part->plan; p < part->plan + part->n; p++) {
		if (part->merging) {
			rs_ask(w->r, cell, "HEXISTS", "merging");
			rs_addi(w->r, p->o->feed_id);
		}
		for (size_t i = 0; p->verdict == STORED && i < p->item_n; i++) {
			if (!is_changed(&p->item[i]))
				continue;
			rs_ask(w->r, cell, "HGET", "entries");
			rs_addi(w->r, p->item[i].known.id);
		}
		if (is_repeated(w, p)) {
			rs_op(w->r, cell, RS_READ, "history");
			rs_addi(w->r, p->state.last_visit_id);
			rs_addi(w->r, STEPS);
		}
	}
	for (const struct store_host *h = w->c->host; h < w->c->host + w->c->host_n; h++) {
		if (!h->others || !is_of_cell(w, cell, h))
			continue;
		rs_command(w->r, cell, "HGET");
		rs_key(w->r, cell, "hosts:%04d", store_host_shard(h->id));
		rs_addi(w->r, h->id);
	}
}

static bool was_pushed(const struct rs_reply *rows, int64_t at_ms)
{
	bool found = false;

	for (size_t i = 0; !found && i < rows->n; i++) {
		struct fw_visit v;

		found = rs_visit_unpack(rows->elem[i]->text, &v) && v.at_ms == at_ms && v.kind == FW_VISIT_PUSHED;
	}
	return found;
}

static void row_read(struct item *i, struct fw_str row)
{
	struct fw_entry_row old = {0};

	if (row.p)
		(void)rs_entry_unpack(row, &old);
	i->seen_ms = old.seen_ms;
	i->revision = old.revision;
}

static void cell_read_more(struct work *w, int cell)
{
	struct part *part = &w->part[cell];
	struct rs_reply **at = w->r->reply + part->at;

	for (struct plan *p = part->plan; p < part->plan + part->n; p++) {
		bool repeated = is_repeated(w, p), merging = part->merging && rs_int(*at++);

		for (size_t i = 0; p->verdict == STORED && i < p->item_n; i++) {
			if (is_changed(&p->item[i]))
				row_read(&p->item[i], (*at++)->text);
		}
		p->visit_id = p->verdict == STORED && has_visit(p);
		if (repeated)
			p->visit_id = !was_pushed((*at++), p->o->visit.at_ms);
		if (merging && p->verdict != GONE)
			p->verdict = LATER;
	}
	for (size_t i = 0; i < w->c->host_n; i++) {
		if (w->c->host[i].others && is_of_cell(w, cell, &w->c->host[i]))
			w->host_was[i] = (*at++)->text;
	}
}

static int read_all(struct work *w, struct fw_err *err)
{
	int64_t visit_n = 0;
	int rc;

	for (size_t i = 0; i < w->n; i++)
		visit_n += has_visit(&w->plan[i]);
	rs_command(w->r, RS_META, "TIME");
	rs_ask(w->r, RS_META, "HINCRBY", "meta");
	rs_adds(w->r, "visit_id");
	rs_addi(w->r, visit_n);
	for (int cell = 0; cell < w->r->cell_n; cell++) {
		if (w->part[cell].sent)
			cell_ask(w, cell);
	}
	rc = rs_run(w->r, "commit", err);
	if (rc)
		return rc;
	w->now_ms = rs_int(w->r->reply[0]->elem[0]) * 1000 + rs_int(w->r->reply[0]->elem[1]) / 1000;
	w->visit_id = rs_int(w->r->reply[1]) - visit_n;
	w->new_n = 0;
	for (int cell = 0; !rc && cell < w->r->cell_n; cell++)
		rc = w->part[cell].sent ? cell_read(w, cell, err) : 0;
	for (int cell = 0; !rc && cell < w->r->cell_n; cell++)
		cell_ask_more(w, cell);
	rc = rc ? rc : rs_run(w->r, "commit", err);
	for (int cell = 0; !rc && cell < w->r->cell_n; cell++)
		cell_read_more(w, cell);
	return rc;
}

/* ---- numbers of entries ---------------------------------------------------------------------- */

/* They are stored, or given up. */
static int taken_end(struct rs *r, int64_t first_id, struct fw_err *err)
{
	rs_ask(r, RS_META, "HDEL", "taken");
	rs_addi(r, first_id);
	return rs_run(r, "taking numbers", err);
}

static int numbers_take(struct rs *r, int64_t n, int64_t *first_id, struct fw_err *err)
{
	const struct rs_reply *old;
	int rc;

	rs_op(r, RS_META, RS_WRITE, "numbers");
	rs_addi(r, n);
	rs_addi(r, TAKEN_MS);
	rc = rs_run(r, "taking numbers", err);
	if (rc)
		return rc;
	*first_id = rs_int(r->reply[0]->elem[0]);
	old = r->reply[0]->elem[1];
	for (size_t i = 0; !rc && i < old->n; i++) {
		for (int cell = 0; cell < r->cell_n; cell++)
			rs_ask(r, cell, "INCR", "revoked");
		rc = rs_run(r, "revoking numbers", err);
		rc = rc ? rc : taken_end(r, rs_int(old->elem[i]), err);
	}
	return rc;
}

int rs_numbers_revoke(struct rs *r, struct fw_err *err)
{
	int64_t none;

	return numbers_take(r, 0, &none, err);
}

/* ---- the new rows ---------------------------------------------------------------------------- */

/* What was changed meanwhile stays. */
static void state_make(struct work *w, struct plan *p)
{
	const struct fw_feed *to = p->o->feed;

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
	if (change_of(w, p) & 1u << RS_ADDRESS) {
		p->url_was = rs_address_url(rs_groups_part(p->wide, RS_ADDRESS));
		p->moves = p->state.host_id != store_feed_host_id(to);
		p->state.host_id = store_feed_host_id(to);
	}
}

/* What a push tells, where nobody has told it yet. */
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
		i->seen_ms = i->seen_ms ? i->seen_ms : w->now_ms;
		i->known.date_ms = fw_store_entry_date(i->e, i->seen_ms);
	}
}

static void rows_make(struct work *w, struct part *part)
{
	part->stored_n = 0;
	for (struct plan *p = part->plan; p < part->plan + part->n; p++) {
		if (p->verdict != STORED)
			continue;
		part->stored_n++;
		state_make(w, p);
		items_make(w, p);
		if (w->push && change_of(w, p))
			told_add(p);
	}
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Narrow rows of one shard, from this plan on; returns the first of the next one. */
static const struct plan *shard_write(struct work *w, int cell, const struct plan *p, const struct plan *end)
{
	bool begun = false;
	int shard = p->shard;

	for (; p < end && p->shard == shard; p++) {
		if (p->verdict != STORED || store_host_shard(p->state.host_id) != shard)
			continue;
		if (!begun) {
			rs_command(w->r, cell, "HSET");
			rs_key(w->r, cell, "schedule:%04d", shard);
		}
		begun = true;
		rs_addi(w->r, p->o->feed_id);
		rs_state_pack(rs_word(w->r), &p->feed, &p->state);
		rs_word_end(w->r);
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

/* To another host. */
static void moved_write(struct work *w, const struct plan *p)
{
	int to = store_host_shard(p->state.host_id);

	if (to != p->shard) {
		rs_command(w->r, p->cell, "HDEL");
		rs_key(w->r, p->cell, "schedule:%04d", p->shard);
		rs_addi(w->r, p->o->feed_id);
		rs_command(w->r, p->cell, "HSET");
		rs_key(w->r, p->cell, "schedule:%04d", to);
		rs_addi(w->r, p->o->feed_id);
		rs_state_pack(rs_word(w->r), &p->feed, &p->state);
		rs_word_end(w->r);
	}
	version_raise(w, p->cell, to);
}

static void wide_write(struct work *w, const struct plan *p, unsigned change)
{
	struct fw_feed f = w->push ? p->feed : *p->o->feed;

	rs_ask(w->r, p->cell, "HSET", "feed");
	rs_addi(w->r, p->o->feed_id);
	rs_groups_pack(rs_word(w->r), p->wide, change, &f);
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
		if (change_of(w, p))
			wide_write(w, p, change_of(w, p));
		if (p->moves)
			moved_write(w, p);
		if (p->moves || (!w->c->lease_id && !w->push))
			version_raise(w, cell, p->shard);
	}
}

static void row_add(const struct work *w, const struct plan *p, const struct item *i)
{
	struct fw_entry_row row = *i->e;

	row.feed_id = p->o->feed_id;
	row.seen_ms = i->seen_ms;
	row.changed_ms = w->now_ms;
	row.revision = i->revision + 1;
	rs_entry_pack(rs_word(w->r), &row);
	rs_word_end(w->r);
}

/* All entries of the cell: pairs of a command over a hash or a sorted set. */
static void entries_add(struct work *w, int cell, const char *cmd, const char *key)
{
	const struct part *part = &w->part[cell];
	bool begun = false, rows = strcmp(key, "entries") == 0, dates = strcmp(key, "entry_dates") == 0;

	for (const struct plan *p = part->plan; p < part->plan + part->n; p++) {
		for (const struct item *i = p->item; p->verdict == STORED && i < p->item + p->item_n; i++) {
			if (!i->known.id)
				continue;
			if (!begun)
				rs_ask(w->r, cell, cmd, key);
			begun = true;
			if (!rows)
				rs_addi(w->r, dates ? i->known.date_ms : i->known.id);
			rs_addi(w->r, i->known.id);
			if (rows)
				row_add(w, p, i);
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
			rs_add(w->r, key_of(p->item[i].e));
			rs_known_pack(rs_word(w->r), &p->item[i].known);
			rs_word_end(w->r);
		}
	}
	entries_add(w, cell, "HSET", "entries");
	entries_add(w, cell, "ZADD", "entry_ids");
	entries_add(w, cell, "ZADD", "entry_dates");
}

/* In chunks, each with the number of its first: script/head.lua. */
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

/* One of another's shard: the later times count, the pace stays. */
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

		if (!is_of_cell(w, cell, &h))
			continue;
		if (h.others) {
			host_join(&h, w->host_was[i]);
			version_raise(w, cell, store_host_shard(h.id));
		}
		rs_command(w->r, cell, "HSET");
		rs_key(w->r, cell, "hosts:%04d", store_host_shard(h.id));
		rs_addi(w->r, h.id);
		fw_buf_addf(rs_word(w->r), "%lld %lld %lld", (long long)h.next_ok_ms, (long long)h.cool_until_ms,
			(long long)h.pace_ms);
		rs_word_end(w->r);
	}
}

/* EXEC is the last reply of the cell's. */
static void cell_write(struct work *w, int cell)
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

/* ---- the answers ----------------------------------------------------------------------------- */

static int settle_one(struct work *w, struct plan *p, struct fw_err *err)
{
	struct fw_outcome *o = p->o;
	bool has_url = p->has_url && p->verdict == STORED;

	if (p->verdict == LATER || (p->verdict == GONE && !w->c->lease_id && !w->push)) {
		w->again = true;
		if (p->verdict == GONE) { /* it is no first visit */
			w->push = true;
			o->visit.kind = FW_VISIT_PUSHED;
		}
		return 0;
	}
	w->done[o - w->c->outcome] = true;
	o->rc = p->verdict == GONE ? FW_ENOTFOUND : 0;
	o->visit.new_n = p->verdict == STORED ? p->new_n : 0;
	o->visit.changed_n = p->verdict == STORED ? p->changed_n : 0;
	if (p->verdict == STORED && !w->push && o->groups & FW_GROUP_URL && !p->has_url)
		o->rc = FW_EINVAL;
	return has_url && !fw_str_eq(p->url_was, o->feed->url)
		? rs_url_release(w->r, p->url_was, o->feed_id, err)
		: 0;
}

static int settle(struct work *w, int cell, struct fw_err *err)
{
	struct part *part = &w->part[cell];
	int rc = 0;

	w->hosts_done[cell] = true;
	for (size_t i = 0; !rc && i < part->n; i++)
		rc = settle_one(w, &part->plan[i], err);
	return !rc && part->merging ? rs_merges_finish(w->r, cell, err) : rc;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int write_all(struct work *w, struct fw_err *err)
{
	bool stored[RS_CELLS], moved;
	int rc;

	for (int cell = 0; cell < w->r->cell_n; cell++) {
		if (!w->part[cell].sent)
			continue;
		rows_make(w, &w->part[cell]);
		cell_write(w, cell);
	}
	rc = rs_run_once(w->r, "commit", &moved, err);
	for (int cell = 0; !rc && cell < w->r->cell_n; cell++)
		stored[cell] = w->part[cell].sent && w->r->reply[w->part[cell].at]->type == RS_ARRAY;
	for (int cell = 0; !rc && cell < w->r->cell_n; cell++) { /* settling asks more */
		if (stored[cell])
			rc = settle(w, cell, err);
		else
			w->again |= w->part[cell].sent;
	}
	if (w->new_n && rc != FW_EIO && !(w->r->cell_n == 1 && !rc && stored[RS_META])) {
		struct fw_err spare;
		int ended = taken_end(w->r, w->first_id, rc ? &spare : err);

		rc = rc ? rc : ended;
	}
	return rc;
}

static int try(struct work *w, struct fw_err *err)
{
	bool any = false;
	int rc;

	w->again = false;
	memset(w->part, 0, sizeof(w->part));
	rc = plans_make(w, err);
	rc = rc ? rc : items_find(w, err);
	rc = rc ? rc : addresses_claim(w, err);
	for (int cell = 0; cell < w->r->cell_n; cell++) {
		w->part[cell].sent = w->part[cell].n;
		for (size_t i = 0; i < w->c->host_n; i++)
			w->part[cell].sent |= is_of_cell(w, cell, &w->c->host[i]);
		any |= w->part[cell].sent;
	}
	w->part[RS_META].sent |= !any; /* is the lease there? */
	rc = rc ? rc : read_all(w, err);
	if (!rc && w->new_n)
		rc = numbers_take(w->r, w->new_n, &w->first_id, err);
	w->entry_id = w->first_id;
	return rc ? rc : write_all(w, err);
}

int rs_commit(struct store *st, struct store_commit *c, struct fw_err *err)
{
	struct fw_outcome *one = c->n == 1 && !c->lease_id ? c->outcome : NULL;
	enum fw_visit_kind kind = one ? one->visit.kind : FW_VISIT_NONE;
	struct work w = {.r = rs_of(st), .c = c, .again = true};
	int rc = rs_start(w.r, true, err);

	w.push = !c->lease_id && !(one && kind != FW_VISIT_PUSHED && kind != FW_VISIT_NONE);
	w.done = fw_arena_calloc(&w.r->arena, c->n + 1, sizeof(*w.done));
	w.host_was = fw_arena_calloc(&w.r->arena, c->host_n + 1, sizeof(*w.host_was));
	if (!rc && (!w.done || !w.host_was))
		rc = rs_no_memory(w.r, err);
	for (int i = 0; !rc && w.again && i < TRIES; i++)
		rc = try(&w, err);
	if (one)
		one->visit.kind = kind;
	return rc || !w.again ? rc
			      : fw_err_set(err, FW_EAGAIN, "%s: others change these feeds all the time: try again",
					w.r->target.name);
}
