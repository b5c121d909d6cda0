/* SPDX-License-Identifier: ISC */
/*
 * Outcomes: one script for the whole batch (for each shard, if there are several), see redis/commit.lua.
 *
 * Before it, one pipeline asks which entries are known: so those that are not new do not travel. Between the two nobody else can store
 * an entry of these feeds without holding their leases, and then the script finds ours stale.
 */
#include "base/map.h"
#include "base/url.h"
#include "store/redis.h"

enum item { ITEM_SAME, ITEM_NEW, ITEM_CHANGED };

struct plan { /* of one outcome */
	struct fw_outcome *o;
	enum item *item;     /* of each entry */
	struct fw_str *id;   /* of each changed entry */
	size_t new_n, changed_n, argc;
};

struct part { /* of a batch: what goes to one shard */
	struct redis *r;
	int shard;
	struct plan *plan;
	size_t n;
	int64_t run[16];     /* run numbers of its visits, each once; more of them in one batch are not noted */
	size_t run_n;
};

/* ---- which entries are new ---------------------------------------------------------------------------------------------------- */

static struct fw_str key_of(const struct fw_entry_row *e)
{
	return (struct fw_str){(const char *)e->key, sizeof(e->key)};
}

/* Of entries with one key in one document the first counts; later ones would overwrite each other at every visit. */
static int first_ones(struct plan *p, size_t *n)
{
	const struct fw_outcome *o = p->o;
	struct fw_map seen;
	int rc = 0;

	*n = 0;
	fw_map_init(&seen, 0);
	for (size_t i = 0; i < o->entry_n && !rc; i++) {
		if (fw_map_get(&seen, key_of(&o->entries[i])))
			continue;
		fw_map_put(&seen, key_of(&o->entries[i]), p, &rc);
		p->item[i] = ITEM_NEW;
		++*n;
	}
	fw_map_finish(&seen);
	return rc;
}

/* What the store knows of one entry, "hash id" or nothing. */
static void item_decide(struct plan *p, size_t i, struct fw_str known)
{
	struct fw_str id, hash = fw_str_split(known, ' ', &id);
	char text[17];

	if (!known.p) {
		p->new_n++;
		return;
	}
	(void)fw_snprintf(text, sizeof(text), "%016llx", (unsigned long long)p->o->entries[i].hash);
	if (fw_str_eq(hash, fw_str(text))) {
		p->item[i] = ITEM_SAME;
	} else {
		p->item[i] = ITEM_CHANGED;
		p->id[i] = id;
		p->changed_n++;
	}
}

/* Ask for the entries of all outcomes in one pipeline, and decide. */
static int entries_decide(struct part *t, struct fw_err *err)
{
	struct redis *r = t->r;
	struct rd_reply **reply;
	struct rd_conn *c = NULL;
	size_t at = 0;
	int rc = 0;

	for (size_t i = 0; i < t->n; i++) {
		struct plan *p = &t->plan[i];
		char key[40];
		size_t n;

		if (!p->o->entry_n)
			continue;
		p->item = fw_arena_zalloc(&r->arena, p->o->entry_n * sizeof(*p->item));
		p->id = fw_arena_zalloc(&r->arena, p->o->entry_n * sizeof(*p->id));
		if (!p->item || !p->id || first_ones(p, &n)) {
			if (c)
				rd_forget(c);
			return rd_no_memory(r, err);
		}
		(void)fw_snprintf(key, sizeof(key), "keys:%lld", (long long)p->o->feed_id);
		c = rd_ask(r, t->shard, "HMGET", key, n, err);
		if (!c)
			return err->rc;
		for (size_t k = 0; k < p->o->entry_n; k++) {
			if (p->item[k] == ITEM_NEW)
				rd_add(c, key_of(&p->o->entries[k]));
		}
	}
	rc = c ? rd_run(r, t->shard, &r->arena, &reply, "looking which entries are known", err) : 0;
	for (size_t i = 0; i < t->n && c && !rc; i++) {
		struct plan *p = &t->plan[i];
		const struct rd_reply *known = p->o->entry_n ? reply[at++] : NULL;

		for (size_t k = 0, j = 0; known && k < p->o->entry_n; k++) {
			if (p->item[k] == ITEM_NEW)
				item_decide(p, k, known->elem[j++]->text);
		}
	}
	return rc;
}

/* ---- the script's arguments ----------------------------------------------------------------------------------------------------- */

#define GROUPS_KEPT 31u /* those that are values of their own */
#define ARGS_NEW 8
#define ARGS_CHANGED 7
#define ARGS_OUTCOME 5 /* id, due and id, state, visit */

/* How many words belong to an outcome behind all outcomes. */
static size_t extra_argc(const struct plan *p)
{
	size_t n = p->new_n * ARGS_NEW + p->changed_n * ARGS_CHANGED;

	for (unsigned bit = 1; bit <= FW_GROUP_REDIRECT; bit *= 2)
		n += (p->o->groups & bit) != 0;
	return n + (p->o->groups & FW_GROUP_URL ? 2 : 0);
}

static bool has_extra(const struct plan *p)
{
	const struct fw_outcome *o = p->o;

	return o->feed->status || o->feed->fail_n || o->host_cooldown_ms || o->groups || p->new_n || p->changed_n;
}

/* The blocks of redis/commit.lua, all outcomes in each. */
static void outcomes_add(const struct part *t, struct rd_conn *c)
{
	for (size_t i = 0; i < t->n; i++)
		rd_add_int(c, t->plan[i].o->feed_id);
	for (size_t i = 0; i < t->n; i++) {
		rd_add_int(c, t->plan[i].o->feed->due_at_ms);
		rd_add_int(c, t->plan[i].o->feed_id);
	}
	for (size_t i = 0; i < t->n; i++) {
		const struct fw_outcome *o = t->plan[i].o;

		rd_state_pack(rd_word_begin(c), o->fence, o->feed->due_at_ms, o->feed);
		rd_word_end(c);
	}
	for (size_t i = 0; i < t->n; i++) {
		rd_visit_pack(rd_word_begin(c), &t->plan[i].o->visit);
		rd_word_end(c);
	}
}

static size_t fence_runs(const struct part *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++)
		n += !i || t->plan[i].o->fence != t->plan[i - 1].o->fence;
	return n;
}

static void fences_add(const struct part *t, struct rd_conn *c)
{
	rd_add_int(c, (int64_t)fence_runs(t));
	for (size_t i = 0, n; i < t->n; i += n) {
		for (n = 1; i + n < t->n && t->plan[i + n].o->fence == t->plan[i].o->fence;)
			n++;
		rd_add_int(c, t->plan[i].o->fence);
		rd_add_int(c, (int64_t)n);
	}
}

static void entry_add(struct rd_conn *c, const struct fw_entry_row *e, enum item item, struct fw_str id)
{
	int64_t date_ms = fw_store_entry_date(e, INT64_MAX);
	char hash[17];

	(void)fw_snprintf(hash, sizeof(hash), "%016llx", (unsigned long long)e->hash);
	rd_add(c, item == ITEM_NEW ? FW_STR("n") : FW_STR("c"));
	rd_add(c, key_of(e));
	rd_add(c, fw_str(hash));
	if (date_ms == INT64_MAX)
		rd_add(c, FW_STR(""));
	else
		rd_add_int(c, date_ms);
	rd_entry_pack(rd_word_begin(c), e);
	rd_word_end(c);
	rd_pack(rd_word_begin(c), &rd_entry_content, e);
	rd_word_end(c);
	if (item == ITEM_NEW) {
		rd_add(c, e->url);
		rd_add(c, e->title);
	} else {
		rd_add(c, id);
	}
}

/* What goes with one outcome that has an extra. */
static void extra_add(const struct part *t, struct rd_conn *c, const struct plan *p)
{
	const struct fw_outcome *o = p->o;
	char host[256];

	fw_buf_addf(rd_word_begin(c), "%d %u %lld %u %zu %zu", (int)o->feed->status, o->feed->fail_n, (long long)o->host_cooldown_ms,
		o->groups, p->new_n + p->changed_n, p->argc);
	rd_word_end(c);
	for (size_t g = 0; g < FW_N(rd_feed_group); g++) {
		if (!(o->groups >> g & 1))
			continue;
		rd_pack(rd_word_begin(c), &rd_feed_group[g], o->feed);
		rd_word_end(c);
	}
	if (o->groups & FW_GROUP_URL) { /* a host of another shard: refused, for a feed stays where its number says */
		bool here = fw_url_host(o->feed->url, host, sizeof(host)) && rd_shard_of_host(t->r, host) == t->shard;

		rd_add(c, o->feed->url);
		rd_add(c, here ? fw_str(host) : FW_STR(""));
	}
	for (size_t i = 0; i < o->entry_n; i++) {
		if (p->item[i] != ITEM_SAME)
			entry_add(c, &o->entries[i], p->item[i], p->id[i]);
	}
}

/* Numbers for new entries, rising over all shards; with one shard the script takes them itself, in the order of storing. */
static int numbers_take(struct part *t, size_t n, int64_t *base, struct fw_err *err)
{
	struct rd_reply *last;
	struct rd_conn *c;
	int rc;

	*base = 0;
	if (!n || t->r->shard_n == 1)
		return 0;
	c = rd_ask(t->r, 0, "HINCRBY", "meta", 2, err);
	if (!c)
		return err->rc;
	rd_add(c, FW_STR("last_entry"));
	rd_add_int(c, (int64_t)n);
	rc = rd_run1(t->r, 0, &t->r->arena, &last, "taking numbers for entries", err);
	*base = rc ? 0 : rd_int(last) - (int64_t)n;
	return rc;
}

static void run_note(struct part *t, int64_t run_id)
{
	for (size_t i = 0; i < t->run_n; i++) {
		if (t->run[i] == run_id)
			return;
	}
	if (run_id && t->run_n < FW_N(t->run))
		t->run[t->run_n++] = run_id;
}

static void answer_take(struct part *t, const struct rd_reply *answer)
{
	struct fw_outcome *o;
	struct fw_str word = answer->elem[1]->text;
	int64_t i = rd_int(answer->elem[0]);

	if (i < 0 || (size_t)i >= t->n)
		return;
	o = t->plan[i].o;
	if (fw_str_eq(word, FW_STR("stale"))) {
		o->rc = FW_ESTALE;
	} else if (fw_str_eq(word, FW_STR("taken"))) {
		o->rc = FW_EINVAL;
	} else { /* also what an earlier try of this very batch has stored */
		o->visit.new_n = (uint32_t)rd_int(answer->elem[2]);
		o->visit.changed_n = (uint32_t)rd_int(answer->elem[3]);
	}
}

static int part_commit(struct part *t, int64_t now_ms, const struct fw_beat *beat, struct fw_err *err)
{
	struct redis *r = t->r;
	size_t argc, new_n = 0, extra_n = 0;
	struct rd_reply *answers;
	struct rd_conn *c;
	int64_t base;
	int rc = entries_decide(t, err);

	for (size_t i = 0; i < t->n; i++) {
		t->plan[i].argc = extra_argc(&t->plan[i]);
		new_n += t->plan[i].new_n;
		extra_n += has_extra(&t->plan[i]) ? 2 + t->plan[i].argc : 0;
		run_note(t, t->plan[i].o->visit.run_id);
	}
	rc = rc ? rc : numbers_take(t, new_n, &base, err);
	if (rc)
		return rc;
	argc = 11 + t->run_n + 2 * fence_runs(t) + t->n * ARGS_OUTCOME + extra_n;
	c = rd_op(r, t->shard, RD_WRITE, "commit", argc, err);
	if (!c)
		return err->rc;
	rd_add_int(c, now_ms);
	rd_add_int(c, r->unsure);
	rd_add_int(c, (int64_t)t->n);
	rd_add_int(c, r->stream_max);
	rd_add_int(c, base);
	rd_add_int(c, r->shard_n);
	rd_add_int(c, t->shard);
	rd_add(c, beat ? fw_str(beat->worker) : FW_STR(""));
	if (beat)
		rd_pack(rd_word_begin(c), &rd_beat, beat);
	else
		(void)rd_word_begin(c);
	rd_word_end(c);
	rd_add_int(c, (int64_t)t->run_n);
	for (size_t i = 0; i < t->run_n; i++)
		rd_add_int(c, t->run[i]);
	fences_add(t, c);
	outcomes_add(t, c);
	for (size_t i = 0; i < t->n; i++) {
		if (!has_extra(&t->plan[i]))
			continue;
		rd_add_int(c, (int64_t)i + 1);
		extra_add(t, c, &t->plan[i]);
	}
	rc = rd_run1(r, t->shard, &r->arena, &answers, "commit", err);
	for (size_t i = 0; !rc && i < answers->n; i++)
		answer_take(t, answers->elem[i]);
	return rc;
}

int rd_commit(struct fw_store *st, struct fw_commit *batch, struct fw_err *err)
{
	struct redis *r = redis_of(st);
	const struct fw_beat *beat = batch->beat;
	struct part t = {.r = r};
	int rc = rd_may_write(r, err);

	fw_arena_reset(&r->arena, RD_ARENA_KEEP);
	t.plan = fw_arena_alloc(&r->arena, (batch->n + 1) * sizeof(*t.plan));
	if (!rc && !t.plan)
		rc = rd_no_memory(r, err);
	for (size_t i = 0; i < batch->n; i++)
		batch->outcome[i].visit.new_n = batch->outcome[i].visit.changed_n = 0;
	for (t.shard = 0; t.shard < r->shard_n && !rc; t.shard++) {
		t.n = t.run_n = 0;
		for (size_t i = 0; i < batch->n; i++) {
			if (rd_shard_of_feed(r, batch->outcome[i].feed_id) == t.shard)
				t.plan[t.n++] = (struct plan){.o = &batch->outcome[i]};
		}
		if (!t.n && (!beat || t.shard))
			continue;
		rc = part_commit(&t, batch->now_ms, t.shard ? NULL : beat, err);
	}
	if (rc || batch->n) /* a batch that failed may come again */
		r->unsure = rc != 0;
	return rc;
}
