/* SPDX-License-Identifier: ISC */
/*
 * One feed and its hub. feed_sync() does the work, in this order: the stored state, the hub's
 * messages, the desired subscription, the request that is due.
 *
 * A request is recorded before it is sent, so a crash in between costs only time. A hub's message
 * is recorded at its callback, even before the hub's response to our request.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "base/url.h"
#include "engine/websub/hubs.h"
#include "sched/due.h"

#define SOON_MS (5 * FW_MINUTE_MS)
#define UNSUBSCRIBE_TRIES 3
#define HUB_BUSY_MS 200 /* retry delay when all request slots are busy */

/* The state of a feed while it is processed. */
struct sub_view {
	struct fw_arena a;
	struct sub s;
	struct fw_feed feed;
	bool has_sub, has_feed; /* a subscription exists; the feed exists */
	struct sub_desired desired;
	int64_t now_ms;
};

static int sub_view_open(struct fw_hubs *h, int64_t feed_id, struct sub_view *v, struct fw_err *err)
{
	int rc;

	*v = (struct sub_view){.now_ms = fw_config_now_ms(h->config)};
	fw_arena_init(&v->a, 0);
	rc = websub_record_sub_get(service_store(h->service), feed_id, &v->a, &v->s, err);
	v->has_sub = !rc;
	if (rc && rc != FW_ENOTFOUND)
		return rc;
	rc = fw_store_feed_find(service_store(h->service), feed_id, FW_STR_NONE, &v->a, &v->feed, err);
	v->has_feed = !rc;
	if (rc && rc != FW_ENOTFOUND)
		return rc;
	v->desired = (struct sub_desired){.feed_id = feed_id};
	if (v->has_feed)
		sub_desired_of_feed(&v->feed, fw_buf_str(&h->base), &v->a, &v->desired);
	return v->a.failed ? fw_no_memory(err) : 0;
}

/* ---- the feed ------------------------------------------------------------ */

int hubs_poll_soon(struct fw_hubs *h, const struct fw_feed *f, int64_t spread_ms, struct fw_err *err)
{
	int64_t now_ms = fw_config_now_ms(h->config),
		at_ms = now_ms + (int64_t)(hubs_random() % (uint64_t)FW_MAX(spread_ms, (int64_t)1));
	struct fw_feed due = {.id = f->id, .due_at_ms = at_ms, .why = FW_STR("its hub may have missed something")};

	if (f->status != FW_FEED_ACTIVE || f->due_at_ms <= at_ms)
		return 0;
	return fw_store_feed_set(service_store(h->service), &due, FW_SET_DUE, err);
}

/* Tells the schedule whether a hub delivers the feed. */
static int sub_view_set_push(struct fw_hubs *h, struct sub_view *v, struct fw_err *err)
{
	int64_t until_ms = v->has_sub ? sub_push_until(&v->s, v->now_ms) : 0;
	struct fw_feed f = {.id = v->feed.id, .push_until_ms = until_ms};
	int rc;

	if (!v->has_feed || until_ms == v->feed.push_until_ms)
		return 0;
	rc = fw_store_feed_set(service_store(h->service), &f, FW_SET_PUSH, err);
	if (!rc && !until_ms)
		rc = hubs_poll_soon(h, &v->feed, SOON_MS, err);
	return rc == FW_ENOTFOUND ? 0 : rc;
}

/* ---- hubs ---------------------------------------------------------------- */

static struct hub *hub_get(struct fw_hubs *h, struct fw_str url)
{
	char host[256];
	struct hub *hub;
	int rc = 0;

	if (!fw_url_host(url, host, sizeof(host)))
		return NULL;
	hub = fw_map_get(&h->hubs, fw_str(host));
	if (hub)
		return hub;
	hub = calloc(1, sizeof(*hub));
	if (!hub)
		return NULL;
	(void)fw_snprintf(hub->host, sizeof(hub->host), "%s", host);
	(void)fw_map_put(&h->hubs, fw_str(hub->host), hub, &rc);
	if (!rc)
		return hub;
	free(hub);
	return NULL;
}

/* The hub refused a request, or accepted it and never verified it. */
static void hub_failed(struct hub *hub, int64_t now_ms)
{
	hub->fail_n++;
	if (hub->fail_n == SUB_HUB_FAILS)
		fw_info("hub %s: %u requests failed in a row: all its feeds wait", hub->host, hub->fail_n);
	hub->cooldown_until_ms = now_ms + sub_hub_cooldown_ms(hub->fail_n);
}

static void hub_succeeded(struct hub *hub)
{
	hub->fail_n = 0;
	hub->cooldown_until_ms = 0;
}

/*
 * True: a request may be sent to the hub now. Else *at_ms: when to try again. Requests to a hub
 * keep host_gap_ms, and wait for time slots in order.
 */
static bool hub_take_slot(struct fw_hubs *h, struct hub_item *it, struct hub *hub, int64_t now_ms, int64_t *at_ms)
{
	/* spread, so that not all are sent at the end of the cooldown */
	if (now_ms < hub->cooldown_until_ms) {
		it->slot_ms = 0;
		*at_ms = hub->cooldown_until_ms +
			(int64_t)(hubs_random() % (uint64_t)(hub->cooldown_until_ms - now_ms + 1));
		return false;
	}
	if (!it->slot_ms) {
		it->slot_ms = FW_MAX(now_ms, hub->free_ms);
		hub->free_ms = it->slot_ms + h->config->host_gap_ms;
	}
	*at_ms = it->slot_ms;
	if (it->slot_ms > now_ms)
		return false;
	*at_ms = now_ms + HUB_BUSY_MS;
	if (hub->in_flight >= (hub->fail_n < SUB_HUB_FAILS ? (uint32_t)h->config->host_concurrency : 1u) ||
		h->in_flight >= HUB_IN_FLIGHT_MAX)
		return false;
	it->slot_ms = 0;
	return true;
}

/* ---- callbacks ----------------------------------------------------------- */

static bool sub_may_have_secret(const struct fw_hubs *h, const struct sub *s)
{
	return !s->cloud && (h->config->websub_plain_secret || fw_str_istarts(s->hub, FW_STR("https://")));
}

/* Creates a callback in place of the one at `at` (v's token or renewal), which becomes invalid. */
static int callback_create(
	struct fw_hubs *h, struct sub_view *v, struct fw_str *at, struct callback *out, struct fw_err *err)
{
	char *token = fw_arena_alloc(&v->a, SUB_TOKEN_LEN + 1), *secret = fw_arena_alloc(&v->a, SUB_SECRET_LEN + 1);
	int rc = at->len ? websub_record_callback_remove(service_store(h->service), *at, err) : 0;

	if (rc)
		return rc;
	if (!token || !secret || !callback_make(h->key, token) || !secret_make(secret))
		return fw_err_set(err, FW_ENOMEM, "cannot create a callback: no randomness, or out of memory");
	*at = (struct fw_str){token, SUB_TOKEN_LEN};
	*out = (struct callback){.token = *at,
		.feed_id = v->s.feed_id,
		.state = CALLBACK_REQUESTED,
		.cloud = v->s.cloud,
		.hub = v->s.hub,
		.topic = v->s.topic,
		.lease_requested_ms = h->config->websub_lease_ms};
	if (sub_may_have_secret(h, &v->s))
		out->secret = (struct fw_str){secret, SUB_SECRET_LEN};
	return websub_record_callback_put(service_store(h->service), out, v->now_ms, err);
}

static int unsubscribe_at(struct fw_hubs *h, int64_t feed_id, struct fw_str token, int64_t at_ms, struct fw_err *err)
{
	return hub_item_add(h, feed_id, token, at_ms) ? 0 : fw_no_memory(err);
}

int hubs_retire_callback(struct fw_hubs *h, struct fw_str token, struct fw_err *err)
{
	struct callback cb;
	struct fw_arena a;
	int rc;

	if (!token.len)
		return 0;
	fw_arena_init(&a, 0);
	rc = websub_record_callback_get(service_store(h->service), token, &a, &cb, err);
	if (!rc &&
		(cb.cloud || cb.state == CALLBACK_DENIED || cb.state == CALLBACK_UNSUBSCRIBED ||
			(cb.state == CALLBACK_REQUESTED && !cb.decided_ms))) {
		/* no hub uses it: verifying it now gives 404 */
		rc = websub_record_callback_remove(service_store(h->service), token, err);
	} else if (!rc) {
		cb.state = CALLBACK_UNSUBSCRIBING;
		rc = websub_record_callback_put(service_store(h->service), &cb, fw_config_now_ms(h->config), err);
		rc = rc ? rc : unsubscribe_at(h, cb.feed_id, token, 0, err);
	}
	fw_arena_finish(&a);
	return rc == FW_ENOTFOUND ? 0 : rc;
}

/* Retires the callback, and the one of a renewal. */
static int callbacks_retire(struct fw_hubs *h, struct sub_view *v, struct fw_err *err)
{
	int rc = hubs_retire_callback(h, v->s.token, err);

	rc = rc ? rc : hubs_retire_callback(h, v->s.renewal, err);
	v->s.token = v->s.renewal = FW_STR_NONE;
	return rc;
}

static int sub_on_verified(struct fw_hubs *h, struct sub_view *v, const struct callback *cb, struct fw_err *err)
{
	struct hub *hub = hub_get(h, cb->hub);
	struct fw_str old = v->s.token;
	int rc;

	if (hub)
		hub_succeeded(hub);
	if (v->s.state != FW_WEBSUB_ACTIVE)
		fw_info("feed %lld: its hub has verified the subscription", (long long)v->s.feed_id);
	sub_verified(&v->s, cb->decided_ms, cb->lease_ms, hubs_random());
	if (cb->why.len)
		(void)fw_str_copy(v->s.why, sizeof(v->s.why), cb->why);
	if (!fw_str_eq(cb->token, v->s.renewal))
		return 0;
	v->s.token = v->s.renewal;
	v->s.renewal = FW_STR_NONE;
	/* stored before the old callback is retired: a crash in between is harmless */
	rc = websub_record_sub_put(service_store(h->service), &v->s, v->now_ms, err);
	/* the old callback accepts deliveries that are on their way */
	return rc ?
		rc :
		unsubscribe_at(h, v->s.feed_id, old, fw_config_now_ms(h->config) + sub_overlap_ms(cb->lease_ms), err);
}

/* Applies what the hub recorded at a callback since the last time. */
static int callback_apply(struct fw_hubs *h, struct sub_view *v, struct fw_str token, struct fw_err *err)
{
	struct callback cb;
	int rc;

	if (!v->has_sub || !token.len)
		return 0;
	rc = websub_record_callback_get(service_store(h->service), token, &v->a, &cb, err);
	if (rc)
		return rc == FW_ENOTFOUND ? 0 : rc;
	if (cb.state == CALLBACK_ACTIVE && (cb.decided_ms > v->s.verified_ms || fw_str_eq(token, v->s.renewal)))
		return sub_on_verified(h, v, &cb, err);
	if (cb.state != CALLBACK_DENIED)
		return 0;
	sub_denied(&v->s, &v->desired, cb.why, v->now_ms, hubs_random());
	fw_info("feed %lld: %s", (long long)v->s.feed_id, v->s.why);
	return callbacks_retire(h, v, err);
}

/* ---- requests ------------------------------------------------------------ */

static void hub_request_free(struct hub_request *k)
{
	fw_fetch_finish(&k->fetch);
	if (k->form.p)
		explicit_bzero(k->form.p, k->form.cap);
	fw_buf_finish(&k->form);
	fw_buf_finish(&k->url);
	free(k);
}

static int feed_sync(struct fw_hubs *h, int64_t feed_id, enum hubs_action how, const struct missed *m,
	const struct hub_request *k, struct fw_err *err);

static void hub_request_done(struct fw_fetch *f)
{
	struct hub_request *k = f->ctx;
	struct fw_hubs *h = k->h;
	struct hub_item *it = k->item;
	struct fw_err err = {0};
	int rc = 0;

	assert(h->in_flight && k->hub->in_flight);
	h->in_flight--;
	k->hub->in_flight--;
	if (it->request != k) { /* cancelled */
		hub_request_free(k);
		return;
	}
	it->request = NULL;
	if (f->http_status / 100 != 2)
		(void)fw_str_copy(k->why, sizeof(k->why),
			f->err.text[0] ? fw_str(f->err.text) : FW_STR("the request to the hub failed"));
	atomic_fetch_add(&websub_meter.requests_n, 1);
	atomic_fetch_add(&websub_meter.refused_n, *k->why != 0);
	if (*k->why && !it->token[0])
		hub_failed(k->hub, fw_config_now_ms(h->config));
	if (it->token[0])
		/* the hub may have verified before it responded */
		hub_item_schedule(h, it, fw_config_now_ms(h->config));
	else
		rc = feed_sync(h, it->feed_id, HUBS_UPDATE, NULL, k, &err);
	if (rc) {
		fw_warn("feed %lld: the response of its hub was not recorded: %s", (long long)it->feed_id, err.text);
		hub_item_schedule(h, it, fw_config_now_ms(h->config) + FW_SECOND_MS);
	}
	hub_request_free(k);
}

/* Sends a request. Takes ownership of form's buffer. */
static int hub_request_start(struct fw_hubs *h, struct hub_item *it, struct hub *hub, struct fw_str url,
	struct fw_str token, struct fw_buf *form, struct fw_err *err)
{
	struct hub_request *k = calloc(1, sizeof(*k));
	int rc;

	assert(!it->request);
	if (!k) {
		fw_buf_finish(form);
		return fw_no_memory(err);
	}
	k->h = h;
	k->item = it;
	k->hub = hub;
	k->form = *form;
	*form = FW_BUF_INIT(0);
	fw_buf_addstr(&k->url, url);
	(void)fw_str_copy(k->token, sizeof(k->token), token);
	k->fetch = (struct fw_fetch){
		.url = fw_buf_str(&k->url), .post = fw_buf_str(&k->form), .done = hub_request_done, .ctx = k};
	rc = k->form.rc || k->url.rc ? fw_no_memory(err) : fw_fetch_start(service_fetcher(h->service), &k->fetch, err);
	if (rc) {
		hub_request_free(k);
		return rc;
	}
	h->in_flight++;
	hub->in_flight++;
	it->request = k;
	return 0;
}

/* ---- bringing a subscription up to date ---------------------------------- */

static int subscription_remove(struct fw_hubs *h, struct sub_view *v, struct hub_item *it, struct fw_err *err)
{
	int rc = callbacks_retire(h, v, err);

	rc = rc ? rc : websub_record_feed_remove(service_store(h->service), "feed", v->desired.feed_id, err);
	rc = rc ? rc : websub_record_feed_remove(service_store(h->service), "n", v->desired.feed_id, err);
	v->has_sub = false;
	rc = rc ? rc : sub_view_set_push(h, v, err);
	if (!rc && it)
		hub_item_remove(h, it);
	return rc;
}

/* Applies a user's switch. */
static int subscription_switch(struct fw_hubs *h, struct sub_view *v, enum hubs_action how, struct fw_err *err)
{
	if (how == HUBS_SWITCH_ON) {
		struct hub *hub = v->has_sub ? hub_get(h, v->s.hub) : NULL;
		/* a user's request has no rate limit */
		int rc = websub_record_feed_remove(service_store(h->service), "brake", v->desired.feed_id, err);

		if (rc)
			return rc;
		if (hub)
			hub->cooldown_until_ms = 0;
	}
	if (!v->has_sub || how == HUBS_UPDATE || v->s.held == (how == HUBS_SWITCH_OFF)) {
		if (v->has_sub && how == HUBS_SWITCH_ON && v->s.state == FW_WEBSUB_OFF)
			v->s.next_ms = v->now_ms;
		return 0;
	}
	v->s.held = how == HUBS_SWITCH_OFF;
	v->s.next_ms = v->now_ms;
	v->s.fail_n = v->s.missed_n = 0;
	v->s.distrust_ms = 0;
	sub_off(&v->s);
	(void)fw_str_copy(v->s.why, sizeof(v->s.why), v->s.held ? FW_STR("switched off by hand") : FW_STR(""));
	return v->s.held ? callbacks_retire(h, v, err) : 0;
}

/* The callback for a request: a new one for the first request and for each renewal. */
static int hub_request_callback(
	struct fw_hubs *h, struct sub_view *v, bool fresh, struct callback *out, struct fw_err *err)
{
	bool renewal = v->s.state == FW_WEBSUB_ACTIVE && !v->s.cloud;
	struct fw_str *at = renewal ? &v->s.renewal : &v->s.token;
	int rc = 0;

	if (!renewal && v->s.renewal.len) { /* the lease has expired meanwhile */
		rc = hubs_retire_callback(h, v->s.renewal, err);
		v->s.renewal = FW_STR_NONE;
	}
	if (!rc && !fresh && at->len)
		rc = websub_record_callback_get(service_store(h->service), *at, &v->a, out, err);
	else
		rc = rc ? rc : FW_ENOTFOUND;
	/* none exists, or retention deleted it */
	return rc == FW_ENOTFOUND ? callback_create(h, v, at, out, err) : rc;
}

static void hub_request_form(const struct sub_view *v, const struct callback *cb, struct fw_buf *form)
{
	if (v->s.cloud)
		cloud_form_write(&v->s, cb->token, form);
	else
		subscribe_form_write(&v->s, true, cb->token, cb->secret, cb->lease_requested_ms, form);
}

/* Records that the hub has a cooldown for all feeds. */
static void sub_note_cooldown(struct sub_view *v, const struct hub *hub, int64_t *at_ms)
{
	(void)fw_snprintf(
		v->s.why, sizeof(v->s.why), "the hub failed %u times in a row: all its feeds wait", hub->fail_n);
	sub_schedule(&v->s, *at_ms);
	*at_ms = v->s.next_ms;
}

/* Applies the rate limiter: *ask is false above the limit. */
static int sub_rate_limit(struct fw_hubs *h, struct sub_view *v, bool *may_send, struct fw_err *err)
{
	int64_t rate_ms, was_ms;
	int rc = websub_record_rate_get(service_store(h->service), v->s.feed_id, &rate_ms, err);

	if (rc)
		return rc;
	was_ms = rate_ms;
	*may_send = sub_rate_take(&v->s, &rate_ms, sub_request_gap_ms(h->config->websub_lease_ms), v->now_ms);
	return rate_ms != was_ms ?
		websub_record_rate_put(service_store(h->service), v->s.feed_id, rate_ms, v->now_ms, err) :
		0;
}

/* Processes a due subscription. *at_ms: when it is due next. */
static int subscription_run_due(
	struct fw_hubs *h, struct sub_view *v, struct hub_item *it, int64_t *at_ms, struct fw_err *err)
{
	struct hub *hub = hub_get(h, v->s.hub);
	struct fw_buf form = FW_BUF_INIT(0);
	struct callback cb = {0};
	bool fresh, may_send;
	int rc = 0;

	if (hub && !v->s.held && v->desired.hub_n && sub_check_timeout(&v->s, &v->desired, v->now_ms, hubs_random()))
		hub_failed(hub, v->now_ms);
	*at_ms = v->s.next_ms;
	if (v->s.next_ms > v->now_ms)
		return websub_record_sub_put(service_store(h->service), &v->s, v->now_ms, err);
	hub = hub_get(h, v->s.hub); /* the failure may have selected the next hub */
	if (!hub)
		return fw_no_memory(err);
	if (!v->s.held && v->desired.hub_n && !hub_take_slot(h, it, hub, v->now_ms, at_ms)) {
		if (v->now_ms < hub->cooldown_until_ms)
			sub_note_cooldown(v, hub, at_ms);
		return websub_record_sub_put(service_store(h->service), &v->s, v->now_ms, err);
	}
	may_send = sub_due(&v->s, &v->desired, v->now_ms, hubs_random(), &fresh);
	if (may_send)
		rc = sub_rate_limit(h, v, &may_send, err);
	if (may_send && !rc)
		rc = hub_request_callback(h, v, fresh, &cb, err);
	if (may_send && !rc)
		hub_request_form(v, &cb, &form);
	if (may_send) {
		v->s.requested_ms = v->now_ms;
		sub_schedule(&v->s, v->now_ms + SUB_SILENCE_MS);
	}
	*at_ms = v->s.next_ms;
	rc = rc ? rc : websub_record_sub_put(service_store(h->service), &v->s, v->now_ms, err);
	if (may_send && !rc)
		rc = hub_request_start(h, it, hub, v->s.hub, cb.token, &form, err);
	fw_buf_finish(&form);
	return rc;
}

static int subscription_sync(
	struct fw_hubs *h, struct sub_view *v, struct hub_item *it, enum hubs_action how, struct fw_err *err)
{
	int64_t at_ms;
	int rc = subscription_switch(h, v, how, err);

	if (v->s.token.len && !callback_is_ours(h->key, v->s.token)) {
		sub_callback_invalid(&v->s, v->now_ms);
		v->s.token = v->s.renewal = FW_STR_NONE;
	}
	rc = rc ? rc : callback_apply(h, v, v->s.token, err);
	rc = rc ? rc : callback_apply(h, v, v->s.renewal, err);
	if (rc)
		return rc;
	switch (sub_reconcile(&v->s, &v->desired, v->now_ms)) {
	case SUB_GONE:
		return subscription_remove(h, v, it, err);
	case SUB_NEW:
		rc = callbacks_retire(h, v, err);
		v->has_sub = true;
		break;
	case SUB_SAME:
		break;
	}
	if (rc || !v->has_sub)
		return rc ? rc : sub_view_set_push(h, v, err);
	if (!it)
		it = hub_item_add(h, v->s.feed_id, FW_STR_NONE, 0);
	if (!it)
		return fw_no_memory(err);
	it->desired_hash = sub_desired_hash(&v->desired);
	it->scan = h->scan;
	at_ms = v->s.next_ms;
	if (v->s.next_ms <= v->now_ms && !it->request)
		rc = subscription_run_due(h, v, it, &at_ms, err);
	else
		rc = websub_record_sub_put(service_store(h->service), &v->s, v->now_ms, err);
	rc = rc ? rc : sub_view_set_push(h, v, err);
	hub_item_set_active(it, v->s.state == FW_WEBSUB_ACTIVE);
	if (v->s.distrust_ms > v->now_ms)
		at_ms = FW_MIN(at_ms, v->s.distrust_ms);
	hub_item_schedule(h, it, FW_MAX(at_ms, v->now_ms + 1));
	return rc;
}

static int sub_note_missed(struct fw_hubs *h, struct sub_view *v, const struct missed *m, struct fw_err *err)
{
	struct counts n;
	int rc = websub_record_counts_get(service_store(h->service), v->s.feed_id, &v->a, &n, err);

	if (rc || !sub_missed(&v->s, m->polled_ms, m->before_ms, n.last_ms, v->now_ms))
		return rc;
	atomic_fetch_add(&websub_meter.missed_n, 1);
	fw_info("feed %lld: a poll found %lld new entries that its hub had not sent: it is polled as usual for a while",
		(long long)v->s.feed_id, (long long)m->new_n);
	return 0;
}

static void sub_note_response(struct sub_view *v, const struct hub_request *k)
{
	int64_t retry_ms = fw_retry_after_ms(k->fetch.h_retry_after, v->now_ms);
	const char *why = *k->why ? k->why : NULL;

	if (!fw_str_eq(v->s.token, fw_str(k->token)) && !fw_str_eq(v->s.renewal, fw_str(k->token)))
		return;
	if (!why && v->s.cloud && cloud_is_refused(fw_buf_str(&k->fetch.body)))
		why = "the cloud reported a failure";
	if (v->s.state != FW_WEBSUB_ACTIVE || why)
		fw_debug("feed %lld: request to the hub: %s", (long long)v->s.feed_id, why ? why : "accepted");
	sub_responded(&v->s, &v->desired, why, retry_ms != FW_NO_NUMBER ? retry_ms : 0, v->now_ms, hubs_random());
}

/* m: what a poll found; k: a request with a response; both may be NULL. */
static int feed_sync(struct fw_hubs *h, int64_t feed_id, enum hubs_action how, const struct missed *m,
	const struct hub_request *k, struct fw_err *err)
{
	struct hub_item *it = hub_item_find(h, feed_id);
	struct sub_view v;
	int rc = sub_view_open(h, feed_id, &v, err);

	if (!rc && v.has_sub && m)
		rc = sub_note_missed(h, &v, m, err);
	if (!rc && v.has_sub && k)
		sub_note_response(&v, k);
	if (!rc && !v.has_feed && v.has_sub)
		rc = subscription_remove(h, &v, it, err);
	else if (!rc)
		rc = subscription_sync(h, &v, it, how, err);
	fw_arena_finish(&v.a);
	return rc;
}

int hubs_update(struct fw_hubs *h, int64_t feed_id, enum hubs_action how, struct fw_err *err)
{
	return feed_sync(h, feed_id, how, NULL, NULL, err);
}

int hubs_missed(struct fw_hubs *h, int64_t feed_id, const struct missed *m, struct fw_err *err)
{
	return feed_sync(h, feed_id, HUBS_UPDATE, m, NULL, err);
}

int hubs_unsubscribe(struct fw_hubs *h, struct hub_item *it, struct fw_err *err)
{
	struct fw_buf form = FW_BUF_INIT(0);
	int64_t now_ms = fw_config_now_ms(h->config), at_ms = now_ms + SUB_SILENCE_MS;
	struct callback cb;
	struct fw_arena a;
	struct sub s;
	struct hub *hub;
	int rc;

	fw_arena_init(&a, 0);
	rc = websub_record_callback_get(service_store(h->service), fw_str(it->token), &a, &cb, err);
	if (!rc && cb.state == CALLBACK_UNSUBSCRIBING && now_ms < cb.next_ms) {
		hub_item_schedule(h, it, cb.next_ms);
		goto out;
	}
	if (rc || cb.state == CALLBACK_UNSUBSCRIBED || cb.state == CALLBACK_DENIED || cb.try_n >= UNSUBSCRIBE_TRIES ||
		cb.lease_ms + cb.decided_ms < now_ms - FW_DAY_MS) {
		rc = rc == FW_ENOTFOUND ? 0 :
			rc              ? rc :
			     websub_record_callback_remove(service_store(h->service), fw_str(it->token), err);
		if (!rc)
			hub_item_remove(h, it);
		goto out;
	}
	hub = hub_get(h, cb.hub);
	if (!hub || !hub_take_slot(h, it, hub, now_ms, &at_ms)) {
		hub_item_schedule(h, it, at_ms);
		goto out;
	}
	cb.state = CALLBACK_UNSUBSCRIBING;
	cb.try_n++;
	cb.next_ms = now_ms + (SUB_SILENCE_MS << 2 * (cb.try_n - 1));
	s = (struct sub){.feed_id = cb.feed_id, .hub = cb.hub, .topic = cb.topic, .base = fw_buf_str(&h->base)};
	subscribe_form_write(&s, false, cb.token, FW_STR_NONE, 0, &form);
	rc = websub_record_callback_put(service_store(h->service), &cb, now_ms, err);
	rc = rc ? rc : hub_request_start(h, it, hub, cb.hub, cb.token, &form, err);
	hub_item_schedule(h, it, cb.next_ms);
out:
	fw_buf_finish(&form);
	fw_arena_finish(&a);
	return rc;
}
