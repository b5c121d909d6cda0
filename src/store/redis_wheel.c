/* SPDX-License-Identifier: ISC */
/*
 * Lending: redis/wheel.lua does it, this file asks and reads the answers. A claim is one script, then one HMGET for the values of what
 * was lent, and one pipeline of them for the wide groups, if there are any: by then the feeds are ours, and nobody else's visit writes
 * them.
 *
 * Addresses that other programs push on prefix:feeds_to_fetch are taken by whoever claims: moved to a list beside it, subscribed to,
 * and only then dropped. A lock that ends by itself keeps two workers from doing that at once; what a dead one had moved, the next
 * finds there.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/url.h"
#include "store/host.h"
#include "store/redis.h"

#define PUSHED_MS 200     /* between two looks at what was pushed */
#define PUSHED_MAX 100    /* taken at a time */
#define PUSHED_LOCK_MS 30000
#define REFUSED_MAX 1000  /* addresses that are none are kept for people to look at */

/* ---- claim ------------------------------------------------------------------------------------------------------------------ */

int rd_feeds_read(struct redis *r, int shard, struct fw_feed **feed, size_t n, struct fw_arena *a, struct rd_reply **value,
	struct fw_err *err)
{
	struct rd_conn *c;

	*value = NULL;
	if (!n)
		return 0;
	c = rd_ask(r, shard, "HMGET", "feeds", n, err);
	if (!c)
		return FW_ERR_CODE(err);
	for (size_t i = 0; i < n; i++)
		rd_add_int(c, feed[i]->id);
	return rd_run1(r, shard, a, value, "reading feeds", err);
}

int rd_feeds_fill(struct redis *r, int shard, struct fw_feed **feed, size_t n, const struct rd_reply *value, unsigned wanted,
	struct fw_arena *a, struct fw_err *err)
{
	static const char *const key[] = {"error", "validators", "about", "rhythm", "redirect"};
	unsigned *groups = fw_arena_calloc(a, n + 1, sizeof(*groups));
	size_t count[FW_N(key)] = {0}, asked = 0, at = 0;
	struct rd_reply **reply;
	struct rd_conn *c;
	int rc;

	if (!groups)
		return rd_no_memory(r, err);
	for (size_t i = 0; i < n; i++) {
		struct rd_loan loan = {0};

		if (value->elem[i]->type == RD_TEXT && rd_value_unpack(value->elem[i]->text, &loan, feed[i]))
			groups[i] = loan.groups & wanted;
		for (size_t g = 0; g < FW_N(key); g++)
			count[g] += groups[i] >> g & 1;
	}
	for (size_t g = 0; g < FW_N(key); g++) {
		if (!count[g])
			continue;
		c = rd_ask(r, shard, "HMGET", key[g], count[g], err);
		if (!c)
			return FW_ERR_CODE(err);
		asked++;
		for (size_t i = 0; i < n; i++) {
			if (groups[i] >> g & 1)
				rd_add_int(c, feed[i]->id);
		}
	}
	rc = asked ? rd_run(r, shard, a, &reply, "reading feeds", err) : 0;
	for (size_t g = 0; g < FW_N(key) && !rc; g++) {
		const struct rd_reply *values = count[g] ? reply[at++] : NULL;

		for (size_t i = 0, k = 0; values && i < n; i++) {
			if (groups[i] >> g & 1)
				rd_unpack(values->elem[k++]->text, &rd_feed_group[g], feed[i]);
		}
	}
	return rc;
}

int rd_feeds_get(struct redis *r, int shard, struct fw_feed **feed, size_t n, unsigned wanted, struct fw_arena *a,
	struct fw_err *err)
{
	struct rd_reply *value;
	int rc = rd_feeds_read(r, shard, feed, n, a, &value, err);

	return rc || !n ? rc : rd_feeds_fill(r, shard, feed, n, value, wanted, a, err);
}

static bool is_on(const struct redis *r, int shard, int64_t feed_id)
{
	return feed_id > 0 && rd_shard_of_feed(r, feed_id) == shard;
}

static void next_note(struct fw_claim_got *got, const struct rd_reply *next)
{
	if (next->text.len && (got->next_ms == FW_NO_DATE || rd_int(next) < got->next_ms))
		got->next_ms = rd_int(next);
}

/* Note what was lent, before the values are taken apart. Feeds that somebody deleted by hand meanwhile fall out. */
static int loans_note(struct redis *r, struct fw_lease *l, const struct rd_reply *lent, struct rd_reply *value, int64_t epoch, size_t *n)
{
	size_t k = 0;

	for (size_t i = 0; i < lent->n; i++) {
		struct rd_loan loan = {.feed_id = l[i].feed.id, .fence = l[i].fence, .until_ms = l[i].until_ms, .epoch = epoch};

		if (value->elem[i]->type != RD_TEXT || !rd_value_unpack(value->elem[i]->text, &loan, NULL))
			continue;
		(void)fw_str_split(lent->elem[i]->text, '@', &loan.host);
		if (rd_loan_put(&r->loans, &loan))
			return FW_ENOMEM;
		value->elem[k] = value->elem[i];
		l[k++] = l[i];
	}
	*n = k;
	return 0;
}

/* The script's question. Of the ids those that are on this shard go along. */
static struct rd_conn *claim_ask(struct redis *r, int shard, const struct fw_claim_ask *ask, size_t max, struct fw_err *err)
{
	struct rd_conn *c;
	size_t id_n = ask->ids ? ask->id_n : 0, n = 0;

	for (size_t i = 0; i < id_n; i++)
		n += is_on(r, shard, ask->ids[i]);
	c = rd_op(r, shard, ask->ids ? RD_LEND : RD_CLAIM, ask->ids ? "pick" : "claim", 10 + n, err);
	if (!c)
		return NULL;
	rd_add(c, fw_str(ask->worker));
	rd_add_int(c, ask->now_ms);
	rd_add_int(c, ask->due_before_ms);
	rd_add_int(c, ask->lease_ms);
	rd_add_int(c, (int64_t)max);
	rd_add_int(c, ask->host_max);
	rd_add_int(c, ask->host_gap_ms);
	rd_add_int(c, ask->host_ahead);
	rd_add_int(c, ask->expect_max_us);
	rd_add_int(c, fw_budget_holder(ask->worker));
	for (size_t i = 0; i < id_n; i++) {
		if (is_on(r, shard, ask->ids[i]))
			rd_add_int(c, ask->ids[i]);
	}
	return c;
}

/* What was lent, but for the feeds; about has the gap and the expected duration of each that shares its host. */
static void leases_fill(const struct fw_claim_ask *ask, const struct rd_reply *reply, struct fw_lease *l, struct fw_feed **feed)
{
	const struct rd_reply *lent = reply->elem[5], *about = reply->elem[6];

	for (size_t i = 0, k = 0; i < lent->n; i++) {
		struct fw_str host;

		l[i] = (struct fw_lease){.fence = rd_int(reply->elem[0]), .until_ms = rd_int(reply->elem[1]), .host_gap_ms = ask->host_gap_ms};
		if (!fw_str_int(fw_str_split(lent->elem[i]->text, '@', &host), &l[i].feed.id))
			l[i].feed.id = 0; /* no value has that number */
		l[i].host_id = rd_host_id(host);
		if (host.p && k + 1 < about->n) {
			l[i].host_gap_ms = rd_int(about->elem[k++]);
			l[i].host_expect_us = rd_int(about->elem[k++]);
		}
		feed[i] = &l[i].feed;
	}
}

/* At most max more. */
static int claim_from(struct redis *r, int shard, const struct fw_claim_ask *ask, size_t max, struct fw_arena *a, struct fw_lease *out,
	struct fw_claim_got *got, struct fw_err *err)
{
	struct rd_reply *reply, *value, *lent;
	struct fw_lease *l = out + got->n;
	struct fw_feed **feed;
	struct rd_conn *c = claim_ask(r, shard, ask, max, err);
	size_t n;
	int rc;

	rc = c ? rd_run1(r, shard, &r->arena, &reply, "claim", err) : FW_ERR_CODE(err);
	if (rc)
		return rc;
	lent = reply->elem[5];
	n = lent->n;
	got->deferred_n += (size_t)rd_int(reply->elem[2]);
	next_note(got, reply->elem[3]);
	r->epoch[shard] = rd_int(reply->elem[4]);
	feed = fw_arena_mul(&r->arena, n + 1, sizeof(struct fw_feed *), 0);
	if (!feed)
		return rd_no_memory(r, err);
	leases_fill(ask, reply, l, feed);
	rc = rd_feeds_read(r, shard, feed, n, a, &value, err);
	if (rc || !n)
		return rc;
	rd_loans_expire(&r->loans, l[0].until_ms - ask->lease_ms);
	if (loans_note(r, l, lent, value, r->epoch[shard], &n))
		return rd_no_memory(r, err);
	rc = rd_feeds_fill(r, shard, feed, n, value, ~0u, a, err);
	for (size_t i = 0; i < n && !rc; i++) {
		l[i].feed.fence = l[i].fence;
		l[i].feed.lease_until_ms = l[i].until_ms;
	}
	got->n += rc ? 0 : n;
	return rc;
}

/* Put what was lent of this part of the ids in its order. */
static int ids_sort(struct redis *r, const struct fw_claim_ask *part, struct fw_lease *l, size_t n, struct fw_err *err)
{
	struct fw_lease *copy = fw_arena_mul(&r->arena, n + 1, sizeof(*copy), 0);
	size_t k = 0;

	if (!copy)
		return rd_no_memory(r, err);
	for (size_t i = 0; i < part->id_n; i++) {
		for (size_t j = 0; j < n; j++) {
			if (l[j].feed.id == part->ids[i] && l[j].fence) {
				copy[k++] = l[j];
				l[j].fence = 0; /* an id may come twice */
			}
		}
	}
	if (k)
		memcpy(l, copy, k * sizeof(*l));
	return 0;
}

/* With several shards, no more ids at a time than may be lent: later ones must not come before earlier ones that are on another shard. */
static int claim_ids(struct redis *r, const struct fw_claim_ask *ask, struct fw_arena *a, struct fw_lease *out, struct fw_claim_got *got,
	struct fw_err *err)
{
	int rc = 0;

	for (size_t at = 0; at < ask->id_n && got->n < ask->max && !rc;) {
		struct fw_claim_ask part = *ask;
		size_t before = got->n;

		part.ids = ask->ids + at;
		part.id_n = r->shard_n == 1 ? ask->id_n : FW_MIN(ask->id_n - at, FW_MIN(ask->max - got->n, RD_CHUNK));
		for (int shard = 0; shard < r->shard_n && !rc; shard++)
			rc = claim_from(r, shard, &part, ask->max - got->n, a, out, got, err);
		if (!rc && r->shard_n > 1)
			rc = ids_sort(r, &part, out + before, got->n - before, err);
		at += part.id_n;
	}
	return rc;
}

static int earlier(const void *a, const void *b)
{
	const struct fw_lease *x = a, *y = b;

	return x->feed.due_at_ms < y->feed.due_at_ms ? -1 : x->feed.due_at_ms > y->feed.due_at_ms;
}

int rd_claim(struct fw_store *st, const struct fw_claim_ask *ask, struct fw_arena *a, struct fw_lease *out,
	struct fw_claim_got *got, struct fw_err *err)
{
	struct redis *r = redis_of(st);
	int rc = rd_may_write(r, err);

	fw_arena_reset(&r->arena, RD_ARENA_KEEP);
	rc = rc ? rc : rd_take_pushed(r, ask->worker, err);
	if (!rc && ask->ids) {
		rc = claim_ids(r, ask, a, out, got, err);
	} else {
		for (int i = 0; i < r->shard_n && !rc; i++)
			rc = claim_from(r, (r->turn + i) % r->shard_n, ask, ask->max - got->n, a, out, got, err);
		r->turn = (r->turn + 1) % r->shard_n;
	}
	if (rc) { /* what was lent so far returns by its lease */
		*got = (struct fw_claim_got){.next_ms = FW_NO_DATE};
		return rc;
	}
	for (size_t i = 1; i < got->n && !ask->ids; i++) {
		if (out[i].feed.due_at_ms < out[i - 1].feed.due_at_ms) {
			qsort(out, got->n, sizeof(*out), earlier);
			break;
		}
	}
	return 0;
}

/* Noted as what a claim lends is, so that its commit need not ask. */
static int lend_note(struct redis *r, int shard, const struct fw_lend_ask *ask, const struct fw_lend_got *got, struct fw_err *err)
{
	struct rd_loan loan = {.feed_id = ask->feed_id, .fence = got->fence, .until_ms = got->until_ms, .epoch = r->epoch[shard],
		.status = (int)got->status};
	struct fw_feed feed = {.id = ask->feed_id}, *f = &feed;
	struct rd_reply *value;
	int rc = rd_feeds_read(r, shard, &f, 1, &r->arena, &value, err);

	if (rc)
		return rc;
	rd_loans_expire(&r->loans, got->until_ms - ask->lease_ms);
	if (value->elem[0]->type != RD_TEXT || !rd_value_unpack(value->elem[0]->text, &loan, NULL))
		return 0; /* somebody deleted it by hand meanwhile: the commit will see */
	return rd_loan_put(&r->loans, &loan) ? rd_no_memory(r, err) : 0;
}

int rd_lend(struct fw_store *st, const struct fw_lend_ask *ask, struct fw_lend_got *got, struct fw_err *err)
{
	struct redis *r = redis_of(st);
	int shard = rd_shard_of_feed(r, ask->feed_id), rc = rd_may_write(r, err);
	struct rd_reply *reply;
	struct rd_conn *c;

	fw_arena_reset(&r->arena, RD_ARENA_KEEP);
	c = rc ? NULL : rd_op(r, shard, RD_LEND, "lend", 4, err);
	if (!c)
		return FW_ERR_CODE(err);
	rd_add_int(c, ask->feed_id);
	rd_add(c, fw_str(ask->worker));
	rd_add_int(c, ask->now_ms);
	rd_add_int(c, ask->lease_ms);
	rc = rd_run1(r, shard, &r->arena, &reply, "lending a feed", err);
	if (rc)
		return rc;
	if (reply->type != RD_ARRAY)
		return fw_err_set(err, FW_ENOTFOUND, "%s: no feed has the number %lld", r->target.name, (long long)ask->feed_id);
	got->fence = rd_int(reply->elem[0]);
	got->until_ms = rd_int(reply->elem[1]);
	got->status = (enum fw_feed_status)rd_int(reply->elem[2]);
	r->epoch[shard] = rd_int(reply->elem[3]);
	(void)fw_str_copy(got->worker, sizeof(got->worker), reply->elem[4]->text);
	return got->fence ? lend_note(r, shard, ask, got, err) : 0;
}

/* ---- leases back, unvisited ------------------------------------------------------------------------------------------------------ */

int rd_release(struct fw_store *st, const struct fw_lease *lease, size_t n, struct fw_err *err)
{
	struct redis *r = redis_of(st);
	int rc = rd_may_write(r, err);

	fw_arena_reset(&r->arena, RD_ARENA_KEEP);
	for (int shard = 0; shard < r->shard_n && !rc; shard++) {
		struct rd_reply *reply;
		struct rd_conn *c;
		size_t mine = 0;

		for (size_t i = 0; i < n; i++)
			mine += rd_shard_of_feed(r, lease[i].feed.id) == shard;
		if (!mine)
			continue;
		c = rd_op(r, shard, RD_LEND, "release", 2 * mine, err);
		for (size_t i = 0; i < n && c; i++) {
			const struct rd_loan *loan;

			if (rd_shard_of_feed(r, lease[i].feed.id) != shard)
				continue;
			rd_add_int(c, lease[i].feed.id);
			rd_add_int(c, lease[i].fence);
			loan = rd_loan_get(&r->loans, lease[i].feed.id);
			if (loan && loan->fence == lease[i].fence)
				rd_loan_drop(&r->loans, lease[i].feed.id);
		}
		rc = c ? rd_run1(r, shard, &r->arena, &reply, "giving leases back", err) : FW_ERR_CODE(err);
	}
	return rc;
}

int rd_bury(struct fw_store *st, const char *worker, int64_t crashed_feed_id, int64_t now_ms, struct fw_err *err)
{
	struct redis *r = redis_of(st);
	int rc = rd_may_write(r, err);

	(void)now_ms;
	fw_arena_reset(&r->arena, RD_ARENA_KEEP);
	for (int shard = 0; shard < r->shard_n && !rc; shard++) {
		struct rd_conn *c = rd_op(r, shard, RD_LEND, "bury", 5, err);
		struct rd_reply *reply;

		if (!c)
			return FW_ERR_CODE(err);
		rd_add(c, fw_str(worker));
		rd_add_int(c, crashed_feed_id);
		rd_add_int(c, FW_VISIT_CRASH);
		rd_add_int(c, FW_STORE_CRASH_MAX);
		rd_add_int(c, FW_FEED_QUARANTINED);
		rc = rd_run1(r, shard, &r->arena, &reply, "giving a dead worker's leases back", err);
	}
	return rc;
}

int rd_pending(struct fw_store *st, int64_t due_before_ms, int64_t *n, int64_t *wake_ms, struct fw_err *err)
{
	struct redis *r = redis_of(st);
	int rc = 0;

	fw_arena_reset(&r->arena, RD_ARENA_KEEP);
	for (int shard = 0; shard < r->shard_n && !rc; shard++) {
		struct rd_conn *c = rd_op(r, shard, RD_READ, "pending", 1, err);
		struct rd_reply *reply;

		if (!c)
			return FW_ERR_CODE(err);
		rd_add_int(c, due_before_ms);
		rc = rd_run1(r, shard, &r->arena, &reply, "counting what is due", err);
		if (rc)
			return rc;
		*n += rd_int(reply->elem[0]);
		if (reply->elem[1]->text.len && (*wake_ms == FW_NO_DATE || rd_int(reply->elem[1]) < *wake_ms))
			*wake_ms = rd_int(reply->elem[1]);
	}
	return rc;
}

/* ---- addresses that other programs push --------------------------------------------------------------------------------------- */

/* Scripts over the list, its lock and what was taken. */
static const char take_script[] =
	"if not redis.call('SET', KEYS[2], ARGV[1], 'NX', 'PX', ARGV[2]) then return {} end\n"
	"while redis.call('LLEN', KEYS[3]) < tonumber(ARGV[3]) and redis.call('LMOVE', KEYS[1], KEYS[3], 'LEFT', 'RIGHT') do end\n"
	"return redis.call('LRANGE', KEYS[3], 0, -1)";
static const char done_script[] =
	"if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end\n"
	"for i = 4, #ARGV do redis.call('RPUSH', KEYS[4], ARGV[i]) end\n"
	"redis.call('LTRIM', KEYS[4], -tonumber(ARGV[3]), -1)\n"
	"return redis.call('DEL', KEYS[2], KEYS[3])";

/* ARGV[1] is who we are; n more follow. */
static struct rd_conn *pushed_op(struct redis *r, const char *script, const char *worker, size_t n, struct fw_err *err)
{
	static const char *const suffix[] = {"", "lock", "taken", "refused"};
	struct rd_conn *c = rd_shard(r, RD_PUSHED, err);

	if (!c)
		return NULL;
	rd_begin(c, 3 + FW_N(suffix) + 1 + n);
	rd_add(c, FW_STR("EVAL"));
	rd_add(c, fw_str(script));
	rd_add_int(c, (int64_t)FW_N(suffix));
	for (size_t i = 0; i < FW_N(suffix); i++) {
		rd_pushed_key(r, suffix[i], rd_word_begin(c));
		rd_word_end(c);
	}
	rd_add(c, fw_str(worker));
	return c;
}

static int pushed_any(struct redis *r, bool *any, struct fw_err *err)
{
	struct rd_conn *c = rd_shard(r, RD_PUSHED, err);
	struct rd_reply **n;
	int rc;

	if (!c)
		return FW_ERR_CODE(err);
	for (int i = 0; i < 2; i++) {
		rd_begin(c, 2);
		rd_add(c, FW_STR("LLEN"));
		rd_pushed_key(r, i ? "taken" : "", rd_word_begin(c));
		rd_word_end(c);
	}
	rc = rd_run(r, RD_PUSHED, &r->arena, &n, "looking for addresses to fetch", err);
	*any = !rc && rd_int(n[0]) + rd_int(n[1]) > 0;
	return rc;
}

/* Those that are addresses into feed; the others are named in refused. */
static int pushed_sort(struct redis *r, const struct rd_reply *all, struct fw_feed_new *feed, size_t *n, struct fw_str *refused,
	size_t *refused_n, struct fw_err *err)
{
	char host[256];

	for (size_t i = 0; i < all->n; i++) {
		struct fw_feed_new *f = &feed[*n];
		int rc;

		*f = (struct fw_feed_new){.due_at_ms = FW_DUE_FIRST};
		rc = fw_url_clean(&r->arena, all->elem[i]->text, &f->url, &f->username, &f->password, err);
		if (rc == FW_ENOMEM)
			return rc;
		if (rc || !rd_host(r, f->url, host, sizeof(host)))
			refused[(*refused_n)++] = all->elem[i]->text;
		else
			++*n;
	}
	return 0;
}

int rd_take_pushed(struct redis *r, const char *worker, struct fw_err *err)
{
	struct fw_feed_new *feed;
	struct fw_str *refused;
	size_t n = 0, refused_n = 0;
	struct rd_reply *all, *reply;
	struct rd_conn *c;
	bool any = false;
	int rc;

	if (fw_mono_ms() - r->pushed_at_ms < PUSHED_MS)
		return 0;
	r->pushed_at_ms = fw_mono_ms();
	rc = pushed_any(r, &any, err);
	if (rc || !any)
		return rc;
	c = pushed_op(r, take_script, worker, 2, err);
	if (!c)
		return FW_ERR_CODE(err);
	rd_add_int(c, PUSHED_LOCK_MS);
	rd_add_int(c, PUSHED_MAX);
	rc = rd_run1(r, RD_PUSHED, &r->arena, &all, "taking addresses to fetch", err);
	if (rc || !all->n)
		return rc;
	feed = fw_arena_mul(&r->arena, all->n, sizeof(*feed), 0);
	refused = fw_arena_mul(&r->arena, all->n, sizeof(*refused), 0);
	if (!feed || !refused)
		return rd_no_memory(r, err);
	rc = pushed_sort(r, all, feed, &n, refused, &refused_n, err);
	rc = rc || !n ? rc : rd_subscribe_all(r, feed, n, true, err);
	if (rc)
		return rc;
	r->pushed_at_ms = 0; /* there may be more */
	c = pushed_op(r, done_script, worker, 2 + refused_n, err);
	if (!c)
		return FW_ERR_CODE(err);
	rd_add_int(c, PUSHED_LOCK_MS);
	rd_add_int(c, REFUSED_MAX);
	for (size_t i = 0; i < refused_n; i++)
		rd_add(c, refused[i]);
	return rd_run1(r, RD_PUSHED, &r->arena, &reply, "taking addresses to fetch", err);
}
