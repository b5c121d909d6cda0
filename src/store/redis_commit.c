/* SPDX-License-Identifier: ISC */
/*
 * Outcomes: one script for the whole batch (for each shard, if there are several), see redis/commit.lua.
 *
 * What can be made here is made here, for the server has one thread: the feeds' values, the visits' lines, who gets in line where. That
 * takes knowing what was lent; it is remembered from the claim (redis_loans.c), and asked for where it is not, or not any more: then
 * the script says so and writes nothing.
 *
 * Before it, one pipeline asks which entries are known: so those that are not new do not travel. Between the two nobody else can store
 * an entry of these feeds without holding their leases, and then the script finds ours gone.
 *
 * A batch of visits is named by the fence and the feed of its first one, which no other batch can have. Each line tells its fence, so
 * what an earlier try of this very batch has stored is found, however late it comes again.
 */
#include <stdlib.h>

#include "base/map.h"
#include "base/url.h"
#include "store/redis.h"

enum item { ITEM_SAME, ITEM_NEW, ITEM_CHANGED };

struct plan { /* of one outcome */
	struct fw_outcome *o;
	struct rd_loan *loan; /* NULL: not known yet, or stale */
	bool foreign;        /* somebody else borrowed it */
	bool extra;          /* more is to be done than the feed's value and its place in line */
	int64_t slot;
	enum item *item;     /* of each entry */
	struct fw_str *id;   /* of each changed entry */
	size_t new_n, changed_n, argc;
};

struct part { /* of a batch: what goes to one shard */
	struct redis *r;
	int shard;
	struct plan *plan;
	size_t n;
	struct plan **good;  /* those that are stored: by fence */
	struct plan **line;  /* those of them that get in line without more ado: by slot */
	size_t good_n, line_n;
	bool others;         /* some are foreign */
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

/* ---- whose lease is it -------------------------------------------------------------------------------------------------------- */

#define TRIES 20
#define STORED_BEFORE 1 /* an outcome's rc on its way: by an earlier try of the same batch */

/* Take up what is remembered and still good. How many are open then. */
static size_t loans_take(struct part *t)
{
	struct redis *r = t->r;
	size_t open = 0;

	for (size_t i = 0; i < t->n; i++) {
		struct plan *p = &t->plan[i];
		struct rd_loan *loan = p->loan || p->o->rc ? NULL : rd_loan_get(&r->loans, p->o->feed_id);

		if (loan && loan->fence == p->o->fence && loan->epoch == r->epoch[t->shard] && !loan->spent) {
			loan->spent = true; /* of a feed that is there twice the first counts */
			p->loan = loan;
		}
		open += !p->loan && !p->o->rc;
	}
	return open;
}

/* Forget what was taken up, to begin anew. */
static void loans_put_back(struct part *t)
{
	for (size_t i = 0; i < t->n; i++) {
		struct plan *p = &t->plan[i];
		struct rd_loan *loan = p->foreign ? NULL : rd_loan_get(&t->r->loans, p->o->feed_id);

		if (loan)
			loan->spent = false;
		p->loan = NULL;
		p->foreign = false;
		p->o->rc = 0;
	}
}

static bool is_there_twice(const struct part *t, const struct plan *p)
{
	for (const struct plan *q = t->plan; q < p; q++) {
		if (q->o->feed_id == p->o->feed_id && q->loan)
			return true;
	}
	return false;
}

/* What the server says of one outcome that was open. as: as what it is lent, "id" or "id@host", or nothing. */
static int outcome_judge(struct part *t, struct plan *p, const struct rd_loan *found, struct fw_str as, struct fw_str again)
{
	struct fw_str rest;
	int64_t new_n, changed_n;

	if (as.len && !is_there_twice(t, p)) {
		p->loan = fw_arena_alloc(&t->r->arena, sizeof(*p->loan));
		if (!p->loan)
			return FW_ENOMEM;
		*p->loan = *found;
		p->foreign = true;
		return 0;
	}
	p->o->rc = FW_ESTALE;
	if (!as.len && again.len && fw_str_int(fw_str_split(again, ' ', &rest), &new_n) && fw_str_int(rest, &changed_n)) {
		p->o->rc = STORED_BEFORE;
		p->o->visit.new_n = (uint32_t)new_n;
		p->o->visit.changed_n = (uint32_t)changed_n;
	}
	return 0;
}

/* Ask for all outcomes that are open, and for all loans that are in doubt. */
static int look(struct part *t, struct fw_err *err)
{
	struct redis *r = t->r;
	struct rd_loans *own = &r->loans;
	struct plan **open = fw_arena_alloc(&r->arena, (t->n + 1) * sizeof(struct plan *));
	struct rd_loan **doubt = fw_arena_alloc(&r->arena, (own->n + 1) * sizeof(struct rd_loan *));
	size_t open_n = 0, doubt_n = 0;
	struct rd_reply *reply;
	struct rd_conn *c;
	int64_t epoch;
	int rc;

	if (!open || !doubt)
		return rd_no_memory(r, err);
	for (size_t i = 0; i < own->cap; i++) {
		if (own->slot[i] && own->slot[i]->epoch != r->epoch[t->shard] && rd_shard_of_feed(r, own->slot[i]->feed_id) == t->shard)
			doubt[doubt_n++] = own->slot[i];
	}
	for (size_t i = 0; i < t->n; i++) { /* those that are in doubt are asked for once */
		const struct rd_loan *mine = rd_loan_get(own, t->plan[i].o->feed_id);

		if (!t->plan[i].loan && !t->plan[i].o->rc &&
		    (!mine || mine->fence != t->plan[i].o->fence || mine->epoch == r->epoch[t->shard]))
			open[open_n++] = &t->plan[i];
	}
	c = rd_op(r, t->shard, RD_READ, "look", 1 + 2 * (open_n + doubt_n), err);
	if (!c)
		return err->rc;
	rd_add_int(c, r->unsure);
	for (size_t i = 0; i < open_n; i++) {
		rd_add_int(c, open[i]->o->feed_id);
		rd_add_int(c, open[i]->o->fence);
	}
	for (size_t i = 0; i < doubt_n; i++) {
		rd_add_int(c, doubt[i]->feed_id);
		rd_add_int(c, doubt[i]->fence);
	}
	rc = rd_run1(r, t->shard, &r->arena, &reply, "looking for leases", err);
	if (rc)
		return rc;
	epoch = rd_int(reply->elem[0]);
	for (size_t i = 0; i < open_n + doubt_n && !rc; i++) {
		struct fw_str as = reply->elem[1]->elem[i]->text, value = reply->elem[2]->elem[i]->text;
		struct rd_loan found = {.feed_id = i < open_n ? open[i]->o->feed_id : doubt[i - open_n]->feed_id, .epoch = epoch,
			.fence = i < open_n ? open[i]->o->fence : doubt[i - open_n]->fence,
			.until_ms = i < open_n ? 0 : doubt[i - open_n]->until_ms, .status = (int)rd_int(reply->elem[3]->elem[i])};

		(void)fw_str_split(as, '@', &found.host);
		if (!rd_value_unpack(value, &found, NULL))
			as = FW_STR("");
		if (i < open_n)
			rc = outcome_judge(t, open[i], &found, as, reply->elem[4]->elem[i]->text);
		else if (as.len)
			rc = rd_loan_put(own, &found);
		else
			rd_loan_drop(own, found.feed_id);
	}
	r->epoch[t->shard] = epoch;
	return rc ? rd_no_memory(r, err) : 0;
}

/* Find the lease of each outcome, or that it has none. */
static int leases_find(struct part *t, struct fw_err *err)
{
	int rc = 0;

	for (int i = 0; loans_take(t) && !rc; i++) {
		int64_t epoch = t->r->epoch[t->shard];

		if (i == TRIES)
			return fw_err_set(err, FW_EAGAIN, "%s: leases are being taken back all the time: try again", t->r->target.name);
		rc = look(t, err);
		if (!rc && epoch && t->r->epoch[t->shard] != epoch) /* what was taken up before may have gone since */
			loans_put_back(t);
	}
	return rc;
}

/* ---- the script's arguments ----------------------------------------------------------------------------------------------------- */

#define GROUPS_KEPT 31u /* those that are values of their own */
#define ARGS_NEW 8
#define ARGS_CHANGED 7
#define ARGS_FIXED 13

/* How many words an extra has. */
static size_t extra_argc(const struct plan *p)
{
	size_t n = 3 + p->new_n * ARGS_NEW + p->changed_n * ARGS_CHANGED;

	for (unsigned bit = 1; bit <= FW_GROUP_REDIRECT; bit *= 2)
		n += (p->o->groups & bit) != 0;
	return n + (p->o->groups & FW_GROUP_URL ? 2 : 0);
}

static bool has_extra(const struct plan *p)
{
	const struct fw_outcome *o = p->o;

	return p->loan->status || p->loan->fail_n || p->loan->host.p || o->feed->status || o->feed->fail_n || o->host_cooldown_ms ||
		o->groups || p->new_n || p->changed_n;
}

static int by_fence(const void *a, const void *b)
{
	const struct plan *x = *(struct plan *const *)a, *y = *(struct plan *const *)b;

	if (x->o->fence != y->o->fence)
		return x->o->fence < y->o->fence ? -1 : 1;
	return x < y ? -1 : x > y;
}

static int by_slot(const void *a, const void *b)
{
	const struct plan *x = *(struct plan *const *)a, *y = *(struct plan *const *)b;

	if (x->slot != y->slot)
		return x->slot < y->slot ? -1 : 1;
	return x->o->feed->due_at_ms < y->o->feed->due_at_ms ? -1 : x->o->feed->due_at_ms > y->o->feed->due_at_ms;
}

static int64_t slot_of(int64_t due_ms)
{
	return (due_ms - (due_ms < 0 ? RD_SLOT_MS - 1 : 0)) / RD_SLOT_MS;
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

/* What is stored, in the orders in which it is sent. */
static int part_sort(struct part *t, struct fw_err *err)
{
	t->good_n = t->line_n = t->run_n = 0;
	t->others = false;
	t->good = fw_arena_alloc(&t->r->arena, (t->n + 1) * sizeof(struct plan *));
	t->line = fw_arena_alloc(&t->r->arena, (t->n + 1) * sizeof(struct plan *));
	if (!t->good || !t->line)
		return rd_no_memory(t->r, err);
	for (size_t i = 0; i < t->n; i++) {
		struct plan *p = &t->plan[i];

		if (!p->loan)
			continue;
		t->good[t->good_n++] = p;
		t->others = t->others || p->foreign;
		run_note(t, p->o->visit.run_id);
		p->o->visit.new_n = (uint32_t)p->new_n;
		p->o->visit.changed_n = (uint32_t)p->changed_n;
		p->slot = slot_of(p->o->feed->due_at_ms);
		p->extra = has_extra(p);
		if (!p->extra)
			t->line[t->line_n++] = p;
	}
	if (t->good_n)
		qsort(t->good, t->good_n, sizeof(struct plan *), by_fence);
	if (t->line_n)
		qsort(t->line, t->line_n, sizeof(struct plan *), by_slot);
	return 0;
}

/* How many from good[i] on are under one fence; and whether that is all that its claim still holds. */
static size_t fence_run(struct part *t, size_t i, bool *all)
{
	size_t n = 1;

	while (i + n < t->good_n && t->good[i + n]->o->fence == t->good[i]->o->fence)
		n++;
	*all = !t->others && rd_loans_under(&t->r->loans, t->good[i]->o->fence) == n;
	return n;
}

static size_t slot_run(const struct part *t, size_t i)
{
	size_t n = 1;

	while (i + n < t->line_n && t->line[i + n]->slot == t->line[i]->slot)
		n++;
	return n;
}

static size_t part_argc(struct part *t)
{
	size_t n = ARGS_FIXED + t->run_n + 4 + 3 * t->line_n;
	bool all;

	for (size_t i = 0, run; i < t->good_n; i += run) {
		run = fence_run(t, i, &all);
		n += 3 + (all ? 0 : run);
	}
	for (size_t i = 0; i < t->line_n; i += slot_run(t, i))
		n += 2;
	for (size_t i = 0; i < t->good_n; i++)
		n += t->good[i]->extra ? extra_argc(t->good[i]) : 0;
	return n;
}

static void batch_name(const struct part *t, struct fw_buf *out)
{
	if (t->good_n)
		fw_buf_addf(out, "%lld-%lld", (long long)t->good[0]->o->fence, (long long)t->good[0]->o->feed_id);
}

/* The visits, a line each. */
static void lines_add(const struct part *t, struct rd_conn *c)
{
	struct fw_buf *b = rd_word_begin(c);

	for (size_t i = 0; i < t->good_n; i++) {
		const struct plan *p = t->good[i];

		fw_buf_addc(b, '\n');
		rd_number(b, p->o->feed_id);
		fw_buf_addstr(b, p->loan->place);
		fw_buf_addc(b, ' ');
		rd_number(b, p->o->fence);
		rd_number(b, p->o->visit.new_n);
		rd_number(b, p->o->visit.changed_n);
		rd_visit_pack(b, &p->o->visit);
	}
	rd_word_end(c);
}

/* Whose leases come back, and who gets in line where. */
static void places_add(struct part *t, struct rd_conn *c)
{
	size_t n = 0, run;
	bool all;

	for (size_t i = 0; i < t->good_n; i += fence_run(t, i, &all))
		n++;
	rd_add_int(c, (int64_t)n);
	for (size_t i = 0; i < t->good_n; i += run) {
		run = fence_run(t, i, &all);
		rd_add_int(c, t->good[i]->o->fence);
		rd_add_int(c, all);
		rd_add_int(c, (int64_t)run);
	}
	n = 0;
	for (size_t i = 0; i < t->line_n; i += slot_run(t, i))
		n++;
	rd_add_int(c, (int64_t)n);
	for (size_t i = 0; i < t->line_n; i += run) {
		run = slot_run(t, i);
		rd_add_int(c, t->line[i]->slot);
		rd_add_int(c, (int64_t)run);
	}
	for (size_t i = 0; i < t->good_n; i += run) {
		run = fence_run(t, i, &all);
		for (size_t k = i; k < i + run && !all; k++) {
			const struct rd_loan *loan = t->good[k]->loan;

			fw_buf_addf(rd_word_begin(c), loan->host.p ? "%lld@%.*s" : "%lld%.*s", (long long)loan->feed_id, FW_STR_ARG(loan->host));
			rd_word_end(c);
		}
	}
	for (size_t i = 0; i < t->line_n; i++)
		rd_add_int(c, t->line[i]->o->feed_id);
}

/* The feed as this visit leaves it; see redis/head.lua. */
static void value_add(const struct part *t, struct rd_conn *c, const struct plan *p)
{
	struct fw_buf *b = rd_word_begin(c);

	batch_name(t, b);
	fw_buf_addc(b, ' ');
	rd_number(b, p->loan->last_new_ms);
	rd_number(b, p->loan->groups | (p->o->groups & GROUPS_KEPT));
	rd_state_pack(b, p->o->fence, p->o->feed);
	fw_buf_addstr(b, p->loan->own);
	rd_word_end(c);
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

static void extra_add(const struct part *t, struct rd_conn *c, const struct plan *p)
{
	const struct fw_outcome *o = p->o;
	char host[256];

	fw_buf_addf(rd_word_begin(c), "%zu %lld %.*s %lld", (size_t)(p - t->plan), (long long)o->feed_id, FW_STR_ARG(p->loan->host),
		(long long)o->feed->due_at_ms);
	rd_word_end(c);
	fw_buf_addf(rd_word_begin(c), "%d %d %u %u %lld %u %zu", p->loan->status, (int)o->feed->status, p->loan->fail_n, o->feed->fail_n,
		(long long)o->host_cooldown_ms, o->groups, p->new_n + p->changed_n);
	rd_word_end(c);
	value_add(t, c, p);
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
static int numbers_take(struct part *t, int64_t *base, struct fw_err *err)
{
	struct rd_reply *last;
	struct rd_conn *c;
	size_t n = 0;
	int rc;

	*base = 0;
	for (size_t i = 0; i < t->n; i++)
		n += t->plan[i].new_n;
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

static int part_send(struct part *t, int64_t now_ms, const struct fw_beat *beat, int64_t base, struct rd_reply **answers,
	struct fw_err *err)
{
	struct redis *r = t->r;
	struct rd_conn *c = rd_op(r, t->shard, RD_COMMIT, "commit", part_argc(t), err);

	if (!c)
		return err->rc;
	rd_add_int(c, now_ms);
	rd_add_int(c, r->epoch[t->shard]);
	rd_add_int(c, t->others);
	rd_add_int(c, (int64_t)t->good_n);
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
	batch_name(t, rd_word_begin(c));
	rd_word_end(c);
	lines_add(t, c);
	rd_add_int(c, (int64_t)t->run_n);
	for (size_t i = 0; i < t->run_n; i++)
		rd_add_int(c, t->run[i]);
	places_add(t, c);
	rd_add_int(c, (int64_t)t->line_n);
	for (size_t i = 0; i < t->line_n; i++) {
		rd_add_int(c, t->line[i]->o->feed_id);
		value_add(t, c, t->line[i]);
	}
	rd_add_int(c, (int64_t)(t->good_n - t->line_n));
	for (size_t i = 0; i < t->good_n; i++) {
		if (t->good[i]->extra)
			extra_add(t, c, t->good[i]);
	}
	return rd_run1(r, t->shard, &r->arena, answers, "commit", err);
}

/* ---- the answer ------------------------------------------------------------------------------------------------------------------ */

static void answer_take(struct part *t, const struct rd_reply *answer)
{
	int64_t i = rd_int(answer->elem[0]);
	struct fw_outcome *o;

	if (i < 0 || (size_t)i >= t->n)
		return;
	o = t->plan[i].o;
	if (fw_str_eq(answer->elem[1]->text, FW_STR("taken"))) {
		o->rc = FW_EINVAL;
	} else {
		o->visit.new_n = (uint32_t)rd_int(answer->elem[2]);
		o->visit.changed_n = (uint32_t)rd_int(answer->elem[3]);
	}
}

/* What was brought back is no loan any more; the others are as good as they were, though the epoch may have risen by our doing. */
static void loans_settle(struct part *t, int64_t epoch)
{
	struct rd_loans *own = &t->r->loans;
	int64_t before = t->r->epoch[t->shard];

	for (size_t i = 0; i < t->good_n; i++) {
		if (!t->good[i]->foreign)
			rd_loan_drop(own, t->good[i]->o->feed_id);
	}
	for (size_t i = 0; i < own->cap && epoch && epoch != before; i++) {
		if (own->slot[i] && own->slot[i]->epoch == before && rd_shard_of_feed(t->r, own->slot[i]->feed_id) == t->shard)
			own->slot[i]->epoch = epoch;
	}
	t->r->epoch[t->shard] = epoch;
}

static int part_commit(struct part *t, int64_t now_ms, const struct fw_beat *beat, struct fw_err *err)
{
	struct rd_reply *answers = NULL;
	int64_t base = 0;
	int rc = entries_decide(t, err);

	rc = rc ? rc : numbers_take(t, &base, err);
	for (int i = 0; !rc && (!answers || answers->type != RD_ARRAY); i++) {
		if (answers) { /* the epoch has risen */
			loans_put_back(t);
			t->r->epoch[t->shard] = 0;
		}
		if (i == TRIES)
			return fw_err_set(err, FW_EAGAIN, "%s: leases are being taken back all the time: try again", t->r->target.name);
		rc = leases_find(t, err);
		rc = rc ? rc : part_sort(t, err);
		if (!rc && !t->good_n && !beat)
			break;
		rc = rc ? rc : part_send(t, now_ms, beat, base, &answers, err);
	}
	if (rc) {
		loans_put_back(t);
		return rc;
	}
	for (size_t i = 1; answers && i < answers->n; i++)
		answer_take(t, answers->elem[i]);
	if (t->good_n)
		loans_settle(t, rd_int(answers->elem[0]));
	for (size_t i = 0; i < t->n; i++) {
		if (t->plan[i].o->rc == STORED_BEFORE)
			t->plan[i].o->rc = 0;
	}
	return 0;
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
	for (size_t i = 0; i < batch->n; i++) {
		batch->outcome[i].rc = 0;
		batch->outcome[i].visit.new_n = batch->outcome[i].visit.changed_n = 0;
	}
	for (t.shard = 0; t.shard < r->shard_n && !rc; t.shard++) {
		t.n = 0;
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
