/* SPDX-License-Identifier: ISC */
/*
 * Outcomes: script/commit.lua stores them, this file looks first which entries may be new, so that
 * the others stay at home.
 *
 * On one server the whole commit is one script. On a cluster it is one for each cell, all at once,
 * and numbers of visits and entries are taken before. Of entries those that were taken are kept in
 * `taken` until they are stored: nobody who follows by number is shown a higher one before that
 * (entries.c), so they appear in order. Who dies in between is revoked: no cell takes numbers below
 * a floor, which is raised above his, before they are given up.
 */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "store/redis/redis.h"
#include "base/banned.h"

#define TRIES 20
#define PUSH_TRIES 3
#define TAKEN_MS 10000 /* so long somebody may take to store what he has taken numbers for */

struct plan { /* an outcome on its way */
	struct fw_outcome *o;
	int cell, shard;
	const struct fw_entry_row *
		*entry; /* without those with a key twice; then only those that seem new or changed */
	size_t entry_n, new_n;
	const struct rs_reply *known; /* of these keys */
	struct fw_str meta_was, meta; /* of a push; absent: it tells nothing new */
	bool has_url;                 /* it may adopt its new address */
};

struct work {
	struct rs *r;
	struct store_commit *c;
	struct plan *plan;                       /* by cell: */
	size_t n, first[RS_CELLS], of[RS_CELLS]; /* of a cell: of[] from first[] on */
	bool mine[STORE_SHARDS];                 /* shards that must be ours, */
	size_t mine_n[RS_CELLS];                 /* and how many of a cell */
	bool *done; /* outcomes that are answered, and cells that have stored their part */
	bool cell_done[RS_CELLS];
	bool push;              /* the schedules stay */
	bool last;              /* of the tries */
	int64_t visit_n, new_n; /* numbers that it wants at most */
	int64_t visit_id, entry_id;
	bool moves[RS_CELLS]; /* something is on its way out of there */
};

/* ---- looking --------------------------------------------------------------------------------- */

static int by_cell(const void *a, const void *b)
{
	const struct plan *x = a, *y = b;

	if (x->cell != y->cell)
		return x->cell < y->cell ? -1 : 1;
	return x->o < y->o ? -1 : x->o > y->o;
}

/* Pushes do not know where their feeds are. */
static int pushes_place(struct work *w, struct fw_err *err)
{
	struct rs_place *p = fw_arena_calloc(&w->r->arena, w->n + 1, sizeof(*p));
	size_t n = 0;
	int rc;

	if (!p)
		return rs_no_memory(w->r, err);
	for (size_t i = 0; i < w->n; i++)
		p[i].id = w->plan[i].o->feed_id;
	rc = rs_places_find(w->r, p, w->n, err);
	for (size_t i = 0; !rc && i < w->n; i++) {
		struct plan *at = &w->plan[i];

		at->shard = p[i].shard;
		if (at->shard < 0)
			at->o->rc = FW_ENOTFOUND;
		else
			w->plan[n++] = *at;
	}
	w->n = rc ? w->n : n;
	return rc;
}

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
	p->entry_n = 0;
	if (!p->entry)
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
static void candidates(struct work *w, struct plan *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->entry_n; i++) {
		struct rs_known k = {0};
		bool is_known = p->known->elem[i]->type == RS_TEXT &&
			rs_known_read(p->known->elem[i]->text, &k);

		if (is_known && k.hash == p->entry[i]->hash)
			continue;
		p->new_n += !is_known;
		p->entry[n++] = p->entry[i];
	}
	p->entry_n = n;
	w->new_n += (int64_t)p->new_n;
}

/* A push tells only what nobody has told yet. */
static int meta_merge(struct work *w, struct plan *p, const struct rs_reply *was, struct fw_err *err)
{
	struct fw_feed is = {0}, f = *p->o->feed;
	struct fw_str *const to[] = {&is.title, &is.home_page_url, &is.description, &is.language, &is.icon};
	const struct fw_str from[] = {f.title, f.home_page_url, f.description, f.language, f.icon};
	struct fw_buf b = FW_BUF_INIT(0);
	bool told = false;

	p->meta_was = was->type == RS_TEXT ? fw_arena_str(&w->r->arena, was->text) : FW_STR("");
	rs_group_unpack(was->text, RS_META_GROUP, &is);
	for (size_t i = 0; i < FW_N(to); i++) {
		if (to[i]->len || !from[i].len)
			continue;
		*to[i] = from[i];
		told = true;
	}
	rs_group_pack(&b, RS_META_GROUP, &is);
	p->meta = told ? fw_arena_str(&w->r->arena, fw_buf_str(&b)) : FW_STR_NONE;
	fw_buf_finish(&b);
	return told && !p->meta.p ? rs_no_memory(w->r, err) : 0;
}

static int entries_look(struct work *w, struct fw_err *err)
{
	size_t nth = 0;
	int rc = 0;

	for (size_t i = 0; !rc && i < w->n; i++) {
		struct plan *p = &w->plan[i];
		char key[40];

		rc = p->o->entry_n ? first_ones(w, p, err) : 0;
		if (!rc && p->entry_n) {
			(void)fw_snprintf(key, sizeof(key), "keys:%lld", (long long)p->o->feed_id);
			rs_ask(w->r, p->cell, "HMGET", key);
			for (size_t k = 0; k < p->entry_n; k++)
				rs_add(w->r, key_of(p->entry[k]));
			nth++;
		}
		if (!rc && w->push && p->o->groups & FW_GROUP_META) {
			rs_ask(w->r, p->cell, "HGET", "meta");
			rs_addi(w->r, p->o->feed_id);
			nth++;
		}
	}
	rc = !rc && nth ? rs_run(w->r, "looking for new entries", err) : rc;
	for (size_t i = nth = 0; !rc && i < w->n; i++) {
		struct plan *p = &w->plan[i];

		if (p->entry_n) {
			p->known = w->r->reply[nth++];
			candidates(w, p);
		}
		if (w->push && p->o->groups & FW_GROUP_META)
			rc = meta_merge(w, p, w->r->reply[nth++], err);
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

/* ---- numbers of a cluster -------------------------------------------------------------------- */

static int taken_drop(struct rs *r, int64_t first, struct fw_err *err)
{
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
	for (size_t i = 0; !rc && i < old->n; i++) {
		for (int cell = 0; cell < RS_CELLS; cell++) {
			rs_op(w->r, cell, RS_WRITE, "floor");
			rs_addi(w->r, rs_int(old->elem[i]) + 1);
		}
		rc = rs_run(w->r, "revoking numbers", err);
		rc = rc ? rc : taken_drop(w->r, rs_int(old->elem[i]), err);
	}
	return rc;
}

int rs_numbers_revoke(struct rs *r, struct fw_err *err)
{
	struct work w = {.r = r};

	return r->cluster ? numbers_take(&w, err) : 0;
}

/* ---- sending --------------------------------------------------------------------------------- */

static const struct store_host *next_host(const struct work *w, const struct store_host *h, int cell)
{
	const struct store_host *end = w->c->host + w->c->host_n;

	for (; h < end; h++) {
		if (cell < 0 || rs_cell(store_host_shard(h->id)) == cell)
			return h;
	}
	return NULL;
}

static void fences_add(const struct work *w, const int *cell, size_t cell_n)
{
	size_t n = 0;

	for (size_t i = 0; i < cell_n; i++)
		n += w->mine_n[cell[i]] > 0;
	rs_addi(w->r, (int64_t)n);
	for (size_t i = 0; i < cell_n; i++) {
		if (!w->mine_n[cell[i]])
			continue;
		rs_addi(w->r, cell[i]);
		rs_addi(w->r, (int64_t)w->mine_n[cell[i]]);
		for (int shard = cell[i]; shard < STORE_SHARDS; shard += RS_CELLS) {
			if (w->mine[shard])
				rs_addi(w->r, shard);
		}
	}
}

static int address_of(const struct work *w, const struct plan *p)
{
	unsigned groups = w->push ? 0 : p->o->groups;

	return groups & FW_GROUP_URL ? (p->has_url ? 2 : 0) : groups & FW_GROUP_HOST ? 1 : 0;
}

/* Control and front: see script/commit.lua. */
static void head_add(const struct work *w, const struct plan *p)
{
	const struct fw_outcome *o = p->o;
	struct fw_buf *b = rs_word(w->r);
	int groups = p->meta.p != NULL;

	for (int g = 0; !w->push && g < RS_GROUP_N; g++)
		groups += (o->groups & rs_group[g].bit) != 0;
	rs_pad(b, o->was_due_ms, 20);
	rs_pad(b,
		w->push                               ? o->visit.at_ms
			: o->visit.kind == FW_VISIT_NONE ? INT64_MIN
							 : o->feed->last_visit_ms,
		20);
	if (w->push)
		fw_buf_adds(b, "----");
	else
		rs_pad(b, p->shard, 4);
	if (groups || p->entry_n || address_of(w, p))
		fw_buf_addf(b, "%d %zu %d", groups, p->entry_n, address_of(w, p));
	rs_word_end(w->r);
	rs_front_pack(rs_word(w->r), o->feed);
	rs_word_end(w->r);
}

static void entry_add(struct rs *r, const struct fw_entry_row *e)
{
	int64_t date_ms = fw_store_entry_date(e, INT64_MAX);

	rs_add(r, key_of(e));
	rs_hash_add(r, e->hash, date_ms == INT64_MAX ? " -" : " ", date_ms, date_ms != INT64_MAX);
	rs_entry_pack(rs_word(r), e);
	rs_word_end(r);
}

static void groups_add(const struct work *w, const struct plan *p)
{
	struct rs *r = w->r;

	for (int g = 0; !w->push && g < RS_GROUP_N; g++) {
		if (!(p->o->groups & rs_group[g].bit))
			continue;
		rs_adds(r, rs_group[g].key);
		rs_group_pack(rs_word(r), g, p->o->feed);
		rs_word_end(r);
	}
	if (p->meta.p) {
		struct fw_buf *b = rs_word(r);

		fw_buf_adds(b, "meta?");
		fw_buf_addstr(b, p->meta_was);
		rs_word_end(r);
		rs_add(r, p->meta);
	}
}

static void outcome_add(const struct work *w, const struct plan *p)
{
	struct rs *r = w->r;
	int64_t host_id;

	head_add(w, p);
	rs_rest_pack(rs_word(r), p->o->feed);
	rs_word_end(r);
	if (p->o->visit.kind != FW_VISIT_NONE)
		rs_visit_pack(rs_word(r), &p->o->visit);
	else
		(void)rs_word(r);
	rs_word_end(r);
	groups_add(w, p);
	for (size_t i = 0; i < p->entry_n; i++)
		entry_add(r, p->entry[i]);
	if (!address_of(w, p))
		return;
	host_id = store_feed_host_id(p->o->feed);
	rs_group_pack(rs_word(r), RS_ADDRESS, p->o->feed);
	rs_word_end(r);
	rs_pad(rs_word(r), host_id, 20);
	rs_word_end(r);
	rs_addi(r, store_host_shard(host_id));
}

static void hosts_add(const struct work *w, int cell)
{
	size_t n = 0;

	for (const struct store_host *h = next_host(w, w->c->host, cell); h; h = next_host(w, h + 1, cell))
		n++;
	rs_addi(w->r, (int64_t)n);
	for (const struct store_host *h = next_host(w, w->c->host, cell); h; h = next_host(w, h + 1, cell)) {
		fw_buf_addf(rs_word(w->r), "%d %lld %lld %lld %lld %d", store_host_shard(h->id),
			(long long)h->id, (long long)h->next_ok_ms, (long long)h->cool_until_ms,
			(long long)h->pace_ms, h->others);
		rs_word_end(w->r);
	}
}

/* One script over these cells. */
static void send(struct work *w, const int *cell, size_t cell_n, int64_t visit_id, int64_t entry_id)
{
	struct rs *r = w->r;

	rs_op(r, cell[0], RS_WRITE, "commit");
	rs_addi(r, !r->cluster);
	rs_addi(r, w->c->lease_id);
	rs_addi(r, w->visit_n);
	rs_addi(r, visit_id);
	rs_addi(r, entry_id);
	fences_add(w, cell, cell_n);
	rs_addi(r, (int64_t)cell_n);
	for (size_t i = 0; i < cell_n; i++) {
		rs_addi(r, cell[i]);
		rs_addi(r, (int64_t)w->of[cell[i]]);
		for (size_t k = 0; k < w->of[cell[i]]; k++)
			rs_addi(r, w->plan[w->first[cell[i]] + k].o->feed_id);
	}
	for (size_t i = 0; i < cell_n; i++) {
		for (size_t k = 0; k < w->of[cell[i]]; k++)
			outcome_add(w, &w->plan[w->first[cell[i]] + k]);
		hosts_add(w, cell[i]);
	}
}

/* All that a cell's script may take. */
static void counted(const struct work *w, int cell, int64_t *visits, int64_t *entries)
{
	for (size_t i = w->first[cell]; i < w->first[cell] + w->of[cell]; i++) {
		*visits += w->plan[i].o->visit.kind != FW_VISIT_NONE;
		*entries += (int64_t)w->plan[i].new_n;
	}
}

static int send_all(struct work *w, const int *cell, size_t cell_n, struct fw_err *err)
{
	int64_t visit_id, entry_id;

	if (!w->r->cluster) {
		send(w, cell, cell_n, 0, -1);
		return rs_run(w->r, "commit", err);
	}
	visit_id = w->visit_id;
	entry_id = w->entry_id;
	for (size_t i = 0; i < cell_n; i++) {
		send(w, &cell[i], 1, visit_id, w->new_n ? entry_id : -1);
		counted(w, cell[i], &visit_id, &entry_id);
	}
	return rs_run(w->r, "commit", err);
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
	else if (old.p && p->has_url && !fw_str_eq(rs_address_url(old), p->o->feed->url))
		return rs_url_release(w->r, rs_address_url(old), p->o->feed_id, err);
	return 0;
}

/*
 * *again: a push's feed has gone to another cell, or was removed; or what came without a lease is no
 * first visit, and becomes a push.
 */
static int settle(
	struct work *w, const struct rs_reply *answer, size_t first, size_t n, bool *again, struct fw_err *err)
{
	int rc = 0;

	for (size_t i = first; i < first + n; i++)
		w->done[w->plan[i].o - w->c->outcome] = true;
	for (size_t i = 0; !rc && i + 2 <= answer->n; i += 2) {
		size_t at = (size_t)rs_int(answer->elem[i]) - 1;
		struct fw_str text = answer->elem[i + 1]->text;

		if (at >= n)
			continue;
		if (fw_str_eq(text, FW_STR("gone")) && !w->c->lease_id && !w->last) {
			struct fw_outcome *o = w->plan[first + at].o;

			w->done[o - w->c->outcome] = !(*again = w->push = true);
			o->visit.kind = o->visit.kind == FW_VISIT_NONE ? FW_VISIT_NONE : FW_VISIT_PUSHED;
		}
		else if (fw_str_eq(text, FW_STR("gone")))
			w->plan[first + at].o->rc = FW_ENOTFOUND;
		else if (!fw_str_eq(text, FW_STR("before")))
			rc = found(w, &w->plan[first + at], text, err);
	}
	for (size_t i = first; !rc && i < first + n; i++) {
		const struct plan *p = &w->plan[i];

		if (!w->push && p->o->groups & FW_GROUP_URL && !p->has_url && !p->o->rc)
			p->o->rc = FW_EINVAL;
		w->moves[p->cell] |= address_of(w, p) &&
			rs_cell(store_host_shard(store_feed_host_id(p->o->feed))) != p->cell;
	}
	return rc;
}

/* *again: something was in the way of a cell; nothing of that cell was stored. */
static int answers_read(struct work *w, const int *cell, size_t cell_n, bool *again, struct fw_err *err)
{
	struct rs_reply **reply = w->r->reply;
	size_t calls = w->r->cluster ? cell_n : 1;
	int rc = 0;

	*again = false;
	for (size_t i = 0; !rc && i < calls; i++) {
		if (reply[i]->type == RS_ARRAY) {
			w->cell_done[cell[i]] = true;
			rc = w->r->cluster ? settle(w, reply[i], w->first[cell[i]], w->of[cell[i]], again, err)
					   : settle(w, reply[i], 0, w->n, again, err);
		} else if (fw_str_eq(reply[i]->text, FW_STR("lost"))) {
			rc = rs_lost(w->r, err);
		} else {
			*again = true;
			for (size_t k = 0; k < cell_n; k++)
				w->moves[cell[k]] |= fw_str_eq(reply[i]->text, FW_STR("moving"));
		}
	}
	return rc;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void shards_note(struct work *w)
{
	memset(w->of, 0, sizeof(w->of));
	memset(w->mine, 0, sizeof(w->mine));
	memset(w->mine_n, 0, sizeof(w->mine_n));
	w->visit_n = w->new_n = 0;
	for (size_t i = 0; i < w->n; i++) {
		struct plan *p = &w->plan[i];

		if (!w->of[p->cell]++)
			w->first[p->cell] = i;
		w->mine[p->shard] = true;
		w->visit_n += p->o->visit.kind != FW_VISIT_NONE;
	}
	for (size_t i = 0; i < w->c->host_n; i++)
		w->mine[store_host_shard(w->c->host[i].id)] |= !w->c->host[i].others;
	for (int shard = 0; w->c->lease_id && shard < STORE_SHARDS; shard++)
		w->mine_n[rs_cell(shard)] += w->mine[shard];
}

static int plans_make(struct work *w, struct fw_err *err)
{
	int rc = 0;

	w->n = 0;
	w->plan = fw_arena_calloc(&w->r->arena, w->c->n + 1, sizeof(*w->plan));
	if (!w->plan)
		return rs_no_memory(w->r, err);
	for (size_t i = 0; i < w->c->n; i++) {
		struct fw_outcome *o = &w->c->outcome[i];
		struct plan p = {.o = o, .shard = store_host_shard(o->host_id)};

		if (w->done[i])
			continue;
		o->rc = 0;
		o->visit.new_n = o->visit.changed_n = 0;
		w->plan[w->n++] = p;
	}
	rc = w->push ? pushes_place(w, err) : 0;
	for (size_t i = 0; i < w->n; i++)
		w->plan[i].cell = rs_cell(w->plan[i].shard);
	if (w->n)
		qsort(w->plan, w->n, sizeof(*w->plan), by_cell);
	shards_note(w);
	rc = rc ? rc : entries_look(w, err);
	return rc ? rc : addresses_claim(w, err);
}

/*
 * Cells where something is to be written. With fences: those in which shards must be ours; without:
 * the others.
 */
static size_t cells_of(const struct work *w, bool fenced, int cell[RS_CELLS])
{
	bool is[RS_CELLS] = {false};
	size_t n = 0;

	for (size_t i = 0; i < w->c->host_n; i++)
		is[rs_cell(store_host_shard(w->c->host[i].id))] = true;
	for (int i = 0; i < RS_CELLS; i++) {
		if ((w->of[i] || (is[i] && !w->cell_done[i])) &&
			(!w->r->cluster || fenced == (w->mine_n[i] > 0)))
			cell[n++] = i;
	}
	return n;
}

/* No shard of its own is written to: is the lease there? */
static int fence_alone(struct work *w, struct fw_err *err)
{
	bool own = !w->c->lease_id;
	int rc;

	for (int cell = 0; cell < RS_CELLS; cell++)
		own |= w->mine_n[cell] > 0;
	if (own)
		return 0;
	rs_ask(w->r, RS_META, "HEXISTS", "workers");
	rs_addi(w->r, w->c->lease_id);
	rc = rs_run(w->r, "commit", err);
	return rc || rs_int(w->r->reply[0]) ? rc : rs_lost(w->r, err);
}

static int try(struct work *w, bool *again, struct fw_err *err)
{
	int cell[RS_CELLS], rc = plans_make(w, err);
	bool numbered = w->r->cluster && w->n;
	size_t n;

	*again = false;
	memset(w->moves, 0, sizeof(w->moves));
	rc = rc ? rc : fence_alone(w, err);
	rc = rc || !numbered ? rc : numbers_take(w, err);
	/* a cluster's cells that ask for no fence come when the others have found theirs */
	for (int fenced = 1; !rc && !*again && fenced >= (w->r->cluster ? 0 : 1); fenced--) {
		n = cells_of(w, fenced, cell);
		rc = n ? send_all(w, cell, n, err) : 0;
		rc = rc || !n ? rc : answers_read(w, cell, n, again, err);
	}
	if (numbered && w->new_n && rc != FW_EIO) { /* all cells have answered */
		struct fw_err spare;
		int dropped = taken_drop(w->r, w->entry_id, rc ? &spare : err);

		rc = rc ? rc : dropped;
	}
	for (int i = 0; !rc && i < RS_CELLS; i++) {
		if (w->moves[i])
			rc = rs_moves_finish(w->r, i, err);
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
	for (int i = 0; !rc && again && i < TRIES; i++) {
		w.last = i + 1 >= PUSH_TRIES;
		rc = try(&w, &again, err);
	}
	if (one)
		one->visit.kind = kind;
	return rc || !again
		? rc
		: fw_err_set(err, FW_EAGAIN, "%s: feeds go from one host to another just now: try again",
			  w.r->target.name);
}
