/* SPDX-License-Identifier: ISC */
/*
 * Requests from hubs: they verify a subscription (intent), refuse it, or deliver documents. Any
 * server thread of any server on the store may receive them. So the state is read from the store
 * for each request, and changes are recorded there for the leader (hubs.c).
 */
#include <pthread.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/lead.h"
#include "engine/websub/websub.h"
#include "engine/websub/websub_requests.h"

#define HINT_WHY "the hub's ping; at most one fetch a minute"
#define HINT_GAP_MS FW_MINUTE_MS /* minimum time from a feed's last visit to a poll for a hint */

struct websub_meter websub_meter;

/* ---- counts, until the hub thread stores them ---------------------------- */

#define COUNTS_MAX 1024 /* maximum feeds at a time; the deliveries of others are not counted */

static struct counts counts_pending[COUNTS_MAX];
static size_t counts_pending_n;
static pthread_mutex_t counts_lock = PTHREAD_MUTEX_INITIALIZER;

void websub_counts_return(const struct counts *c)
{
	size_t i = 0;

	pthread_mutex_lock(&counts_lock);
	while (i < counts_pending_n && counts_pending[i].feed_id != c->feed_id)
		i++;
	if (i == counts_pending_n && counts_pending_n < COUNTS_MAX)
		counts_pending[counts_pending_n++] = (struct counts){.feed_id = c->feed_id};
	if (i < counts_pending_n)
		counts_add(&counts_pending[i], c);
	pthread_mutex_unlock(&counts_lock);
}

bool websub_counts_take(struct counts *out)
{
	bool is;

	pthread_mutex_lock(&counts_lock);
	is = counts_pending_n > 0;
	if (is)
		*out = counts_pending[--counts_pending_n];
	pthread_mutex_unlock(&counts_lock);
	return is;
}

void fw_websub_count(int64_t feed_id, bool good, int64_t new_n, int64_t now_ms)
{
	websub_counts_return(&(struct counts){.feed_id = feed_id,
		.delivered_n = good,
		.new_n = new_n,
		.ignored_n = !good,
		.last_ms = good ? now_ms : 0});
}

void fw_websub_stats(struct fw_websub_stats *out)
{
	struct websub_meter *m = &websub_meter;

	*out = (struct fw_websub_stats){.requests_n = atomic_load(&m->requests_n),
		.refused_n = atomic_load(&m->refused_n),
		.verified_n = atomic_load(&m->verified_n),
		.denied_n = atomic_load(&m->denied_n),
		.missed_n = atomic_load(&m->missed_n),
		.unknown_n = atomic_load(&m->unknown_n),
		.lookups_n = atomic_load(&m->lookups_n),
		.known_n = atomic_load(&m->known_n),
		.active_n = atomic_load(&m->active_n),
		.leads = atomic_load(&m->leads)};
	for (int i = 0; i < FW_WEBSUB_VERDICT_N; i++)
		out->verdict[i] = atomic_load(&m->verdict[i]);
}

static int callback_lookup(
	struct fw_store *st, struct fw_str token, struct fw_arena *a, struct callback *out, struct fw_err *err)
{
	atomic_fetch_add_explicit(&websub_meter.lookups_n, 1, memory_order_relaxed);
	return websub_record_callback_get(st, token, a, out, err);
}

/* ---- intent -------------------------------------------------------------- */

static bool challenge_is_valid(struct fw_str s)
{
	return s.len > 0 && s.len <= FW_WEBSUB_CHALLENGE_MAX;
}

static bool callback_is_wanted(const struct callback *cb)
{
	return cb->state == CALLBACK_REQUESTED || cb->state == CALLBACK_ACTIVE;
}

/* Applies the hub's message to cb, and sets the response. False: 404. */
static bool intent_apply(
	struct callback *cb, const struct fw_websub_intent *in, int64_t now_ms, char words[80], struct fw_str *answer)
{
	if (cb->cloud) {
		if (!callback_is_wanted(cb) || !fw_str_eq(in->url, cb->topic) ||
			!challenge_is_valid(in->cloud_challenge))
			return false;
		cb->state = CALLBACK_ACTIVE;
		cb->lease_ms = SUB_CLOUD_LEASE_MS;
		*answer = in->cloud_challenge;
	} else if (!in->topic.len || !fw_str_eq(in->topic, cb->topic)) {
		return false;
	} else if (fw_str_eq(in->mode, FW_STR("subscribe")) && callback_is_wanted(cb) &&
		challenge_is_valid(in->challenge)) {
		cb->state = CALLBACK_ACTIVE;
		cb->lease_ms = sub_lease_ms(in->lease, cb->lease_requested_ms, words);
		cb->why = fw_str(words);
		*answer = in->challenge;
	} else if (fw_str_eq(in->mode, FW_STR("unsubscribe")) && !callback_is_wanted(cb) &&
		challenge_is_valid(in->challenge)) {
		cb->state = CALLBACK_UNSUBSCRIBED;
		*answer = in->challenge;
	} else if (fw_str_eq(in->mode, FW_STR("denied"))) {
		if (callback_is_wanted(cb)) {
			cb->state = CALLBACK_DENIED;
			cb->why = fw_str_sub(in->reason, 0, 200);
		}
		*answer = FW_STR("");
	} else {
		return false;
	}
	cb->decided_ms = now_ms;
	return true;
}

int fw_websub_intent(struct fw_store *st, const struct fw_websub_intent *in, int64_t now_ms, struct fw_str *answer,
	struct fw_err *err)
{
	struct callback cb;
	struct fw_arena a;
	char words[80];
	int rc;

	*answer = FW_STR_NONE;
	fw_arena_init(&a, 0);
	rc = callback_lookup(st, in->token, &a, &cb, err);
	if (!rc && intent_apply(&cb, in, now_ms, words, answer)) {
		rc = websub_record_callback_put(st, &cb, now_ms, err);
		rc = rc ? rc : websub_record_message_put(st, cb.feed_id, "look", NULL, now_ms, err);
		if (!rc)
			atomic_fetch_add(
				cb.state == CALLBACK_DENIED ? &websub_meter.denied_n : &websub_meter.verified_n, 1);
	}
	fw_arena_finish(&a);
	return rc == FW_ENOTFOUND ? 0 : rc;
}

/* ---- documents ----------------------------------------------------------- */

static enum fw_websub_verdict delivery_classify(
	const struct callback *cb, struct fw_str signature, struct fw_str body, struct fw_arena *a)
{
	struct fw_str url;
	bool same;

	if (!callback_is_wanted(cb))
		return FW_WEBSUB_GONE;
	if (cb->cloud) {
		same = form_get(body, "url", a, &url) && fw_str_eq(url, cb->topic);
		return same && cb->state == CALLBACK_ACTIVE ? FW_WEBSUB_HINT : FW_WEBSUB_IGNORE;
	}
	if (cb->secret.len && !signature.p)
		return FW_WEBSUB_UNSIGNED;
	if (cb->secret.len)
		return signature_is_valid(signature, cb->secret, body) ? FW_WEBSUB_ACCEPT : FW_WEBSUB_IGNORE;
	return cb->state == CALLBACK_ACTIVE ? FW_WEBSUB_HINT : FW_WEBSUB_IGNORE;
}

int fw_websub_classify(struct fw_store *st, struct fw_str token, struct fw_str signature, struct fw_str body,
	int64_t now_ms, int64_t *feed_id, enum fw_websub_verdict *out, struct fw_err *err)
{
	struct callback cb;
	struct fw_arena a;
	int rc;

	*feed_id = 0;
	*out = FW_WEBSUB_GONE;
	fw_arena_init(&a, 0);
	rc = callback_lookup(st, token, &a, &cb, err);
	if (!rc) {
		*feed_id = cb.feed_id;
		*out = delivery_classify(&cb, signature, body, &a);
	}
	rc = rc == FW_ENOTFOUND ? 0 : rc;
	if (!rc && *out == FW_WEBSUB_HINT)
		rc = fw_websub_hint(st, *feed_id, now_ms, err);
	if (rc == FW_ENOTFOUND) {
		*out = FW_WEBSUB_GONE;
		rc = 0;
	}
	if (!rc && *out == FW_WEBSUB_HINT)
		fw_websub_count(*feed_id, true, 0, now_ms);
	else if (!rc && *feed_id && (*out == FW_WEBSUB_IGNORE || *out == FW_WEBSUB_UNSIGNED))
		fw_websub_count(*feed_id, false, 0, now_ms);
	if (!rc)
		atomic_fetch_add(&websub_meter.verdict[*out], 1);
	fw_arena_finish(&a);
	return rc;
}

/*
 * A due feed may be in flight. Its commit keeps a due time that was changed meanwhile, so it is
 * fetched once more.
 */
static int64_t hint_due(const struct fw_feed *f, int64_t now_ms)
{
	int64_t soon_ms = FW_MAX(now_ms, f->last_visit_ms + HINT_GAP_MS);

	if (f->due_at_ms > now_ms)
		return FW_MIN(f->due_at_ms, soon_ms);
	return f->due_at_ms > FW_DUE_FIRST && soon_ms > now_ms ? soon_ms : f->due_at_ms + 1;
}

int fw_websub_hint(struct fw_store *st, int64_t feed_id, int64_t now_ms, struct fw_err *err)
{
	struct fw_arena a;
	struct fw_feed f;
	int rc;

	fw_arena_init(&a, 0);
	rc = fw_store_feed_find(st, feed_id, FW_STR_NONE, &a, &f, err);
	if (!rc && f.status == FW_FEED_ACTIVE) {
		int64_t due_ms = hint_due(&f, now_ms);

		f.why = due_ms > now_ms && due_ms == f.due_at_ms ? FW_STR_NONE : FW_STR(HINT_WHY); /* due before */
		f.due_at_ms = due_ms;
		rc = fw_store_feed_set(st, &f, FW_SET_DUE, err);
	}
	fw_arena_finish(&a);
	return rc;
}

/* ---- visits of workers --------------------------------------------------- */

/* Without a leader no hub delivers any more: the feed is polled as usual. */
static int push_clear(struct fw_store *st, int64_t feed_id, struct fw_err *err)
{
	struct fw_feed f = {.id = feed_id};
	bool exists;
	int rc = lead_exists(st, WEBSUB_RECORD_KIND, &exists, err);

	return rc || exists ? rc : fw_store_feed_set(st, &f, FW_SET_PUSH, err);
}

void fw_websub_visited(
	struct fw_store *st, const struct fw_config *c, const struct fw_feed *was, const struct fw_outcome *o)
{
	struct missed m = {.polled_ms = o->visit.at_ms, .before_ms = was->last_ok_ms, .new_n = o->visit.new_n};
	int64_t now_ms = fw_store_now_ms(st);
	struct fw_err err = {0};
	int rc = 0;

	if (o->visit.kind == FW_VISIT_OK && o->visit.new_n && was->push_until_ms > o->visit.at_ms) {
		rc = websub_record_message_put(st, o->feed_id, "missed", &m, now_ms, &err);
		rc = rc ? rc : push_clear(st, o->feed_id, &err);
	}
	if (!rc && c->websub_url && (o->groups & FW_GROUP_META) &&
		(!fw_str_eq(was->hub, o->feed->hub) || !fw_str_eq(was->topic, o->feed->topic)))
		rc = websub_record_message_put(st, o->feed_id, "look", NULL, now_ms, &err);
	if (rc)
		fw_warn("feed %lld: cannot leave a message about its hub to the leader: %s", (long long)o->feed_id,
			err.text);
}

/* ---- for users ----------------------------------------------------------- */

static int websub_show(
	struct fw_store *st, const struct sub *s, struct fw_arena *a, struct fw_websub *out, struct fw_err *err)
{
	struct counts n;
	int rc = websub_record_counts_get(st, s->feed_id, a, &n, err);

	*out = (struct fw_websub){.feed_id = s->feed_id,
		.state = s->state,
		.cloud = s->cloud,
		.held = s->held,
		.hub = s->hub,
		.topic = s->topic,
		.why = fw_arena_str(a, fw_str(s->why)),
		.next_ms = s->next_ms,
		.since_ms = s->since_ms,
		.until_ms = s->until_ms,
		.distrust_ms = s->distrust_ms,
		.missed_n = s->missed_n,
		.delivered_n = n.delivered_n,
		.new_n = n.new_n,
		.ignored_n = n.ignored_n,
		.last_ms = n.last_ms};
	return rc;
}

int fw_websub_leader(struct fw_store *st, const struct fw_config *c, struct fw_arena *a, struct fw_websub_leader *out,
	struct fw_err *err)
{
	struct fw_buf base = FW_BUF_INIT(0);
	int rc = websub_record_base_get(st, a, &out->base, err);

	rc = rc ? rc : lead_exists(st, WEBSUB_RECORD_KIND, &out->exists, err);
	out->differs = !rc && out->base.len && c->websub_url && !callback_base(c->websub_url, &base, err) &&
		!fw_str_eq(fw_buf_str(&base), out->base);
	fw_buf_finish(&base);
	return rc;
}

int fw_websub_get(struct fw_store *st, int64_t feed_id, struct fw_arena *a, struct fw_websub *out, struct fw_err *err)
{
	struct sub s;
	int rc = websub_record_sub_get(st, feed_id, a, &s, err);

	return rc ? rc : websub_show(st, &s, a, out, err);
}

struct websub_list {
	struct fw_store *st;
	fw_websub_cb *cb;
	void *ctx;
};

static int websub_list_one(void *ctx, struct fw_str key, struct fw_str value, struct fw_arena *a, struct fw_err *err)
{
	const struct websub_list *l = ctx;
	struct fw_websub w;
	struct sub s;
	int rc;

	(void)key;
	if (!websub_record_sub_read(value, a, &s))
		return 0;
	rc = websub_show(l->st, &s, a, &w, err);
	return rc ? rc : l->cb(l->ctx, &w);
}

int fw_websub_list(struct fw_store *st, fw_websub_cb *cb, void *ctx, struct fw_err *err)
{
	return websub_record_list(st, "feed/", websub_list_one, &(struct websub_list){st, cb, ctx}, err);
}

int fw_websub_switch(struct fw_store *st, int64_t feed_id, bool on, int64_t now_ms, struct fw_err *err)
{
	return websub_record_message_put(st, feed_id, on ? "on" : "off", NULL, now_ms, err);
}
