/* SPDX-License-Identifier: ISC */
/*
 * The callbacks of WebSub and rssCloud hubs. GET: a hub verifies a subscription. POST: a hub sends
 * a document, or only the notice that there is one. The secret path is the authorization: only the
 * hub and this server know it.
 *
 * The response to a document comes after its commit, or after the store has recorded that the feed
 * is to be polled instead.
 *
 * A hub may belong to its publisher, so it is limited like a publisher: over its rate limit
 * (websub_pushes_max), or with the feed's daily limits used up (feed_daily_entries_max,
 * feed_daily_bytes_max), it gets a 429 before its document is parsed.
 */
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "feedwheel/deliver.h"
#include "api/quota.h"
#include "http/auth/bucket.h"
#include "http/server/http.h"

#define BUSY_RETRY_MS (3 * FW_SECOND_MS)

/* Respond with a challenge or an empty body, as text/plain that browsers must not sniff. */
static enum MHD_Result websub_respond(struct request *r, unsigned status, struct fw_str text)
{
	struct MHD_Response *m = MHD_create_response_from_buffer(
		text.len, (char *)(uintptr_t)(text.len ? text.p : ""), MHD_RESPMEM_MUST_COPY);

	if (m && MHD_add_response_header(m, MHD_HTTP_HEADER_CONTENT_TYPE, "text/plain") &&
		MHD_add_response_header(m, "X-Content-Type-Options", "nosniff")) {
		r->log.bytes = (int64_t)text.len;
		return http_respond(r, status, m);
	}
	if (m)
		MHD_destroy_response(m);
	return MHD_NO;
}

static struct fw_str websub_param(struct request *r, const char *name)
{
	const char *value = NULL;
	size_t len = 0;

	if (MHD_lookup_connection_value_n(r->conn, MHD_GET_ARGUMENT_KIND, name, strlen(name), &value, &len) == MHD_NO ||
		!value)
		return FW_STR_NONE;
	return (struct fw_str){value, len};
}

static enum MHD_Result websub_not_found(struct request *r)
{
	return http_problem(r, MHD_HTTP_NOT_FOUND, "not_found", "no such subscription");
}

enum MHD_Result http_websub_intent(struct request *r)
{
	struct fw_websub_intent in = {.token = fw_str(r->token),
		.mode = websub_param(r, "hub.mode"),
		.topic = websub_param(r, "hub.topic"),
		.challenge = websub_param(r, "hub.challenge"),
		.lease = websub_param(r, "hub.lease_seconds"),
		.reason = websub_param(r, "hub.reason"),
		.url = websub_param(r, "url"),
		.cloud_challenge = websub_param(r, "challenge")};
	struct fw_str answer;
	struct fw_err err = {0};
	int rc;

	if (r->head)
		return websub_not_found(r);
	rc = fw_websub_intent(r->store, &in, http_now_ms(r), &answer, &err);
	if (rc)
		return http_store_failed(r, rc, &err);
	return answer.p ? websub_respond(r, MHD_HTTP_OK, answer) : websub_not_found(r);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static enum MHD_Result websub_gone(struct request *r)
{
	return http_problem(r, MHD_HTTP_GONE, "gone", "the subscription has ended");
}

static void websub_limit(struct request *r, int64_t wait_ms)
{
	atomic_fetch_add_explicit(&r->thread->h->push_limited_n, 1, memory_order_relaxed);
	r->retry_after_s = (wait_ms + FW_SECOND_MS - 1) / FW_SECOND_MS;
}

enum auth_verdict http_websub_may(struct request *r)
{
	struct http *h = r->thread->h;
	int64_t wait_ms;

	if (!h->hubs || !fw_hubs_check_token(h->hubs, fw_str(r->token)))
		return AUTH_WRONG;
	if (r->route->run != http_websub_push)
		return AUTH_OK;
	wait_ms = buckets_take(h->pushes, fw_hash64(r->token, strlen(r->token)), fw_mono_ms());
	if (!wait_ms)
		return AUTH_OK;
	websub_limit(r, wait_ms);
	return AUTH_LIMITED;
}

enum MHD_Result http_websub_refuse(struct request *r)
{
	if (r->verdict == AUTH_LIMITED)
		return http_problem(r, MHD_HTTP_TOO_MANY_REQUESTS, "too_many_pushes",
			"throttled: this hub has sent too many documents (retry in %lld s)",
			(long long)r->retry_after_s);
	return r->route->run == http_websub_push ? websub_gone(r) : websub_not_found(r);
}

/* ---- documents ------------------------------------------------------------------------------- */

static bool websub_reserve(struct request *r, size_t bytes)
{
	return http_entries_reserve(r->thread->h, &r->websub.held_bytes, bytes);
}

void http_websub_free(struct request *r)
{
	fw_delivery_close(r->websub.delivery);
	r->websub.delivery = NULL;
	(void)websub_reserve(r, 0);
	fw_buf_finish(&r->websub.plain);
}

/* The document is from the hub, but cannot be stored now: have the feed polled instead. 202. */
static enum MHD_Result websub_poll_instead(struct request *r)
{
	struct fw_err err = {0};
	int rc = fw_websub_hint(r->store, r->websub.feed_id, http_now_ms(r), &err);

	if (rc == FW_ENOTFOUND)
		return websub_gone(r);
	return rc ? http_store_failed(r, rc, &err) : websub_respond(r, MHD_HTTP_ACCEPTED, FW_STR(""));
}

static enum MHD_Result websub_open(struct request *r)
{
	struct fw_delivery_input in = {.feed_id = r->websub.feed_id,
		.body = fw_buf_str(&r->body),
		.any_type = true,
		.is_hub = true,
		.content_type = fw_str(
			MHD_lookup_connection_value(r->conn, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_TYPE))};
	struct fw_err err = {0};
	int rc;

	fw_buf_reset(&r->websub.plain); /* of an earlier try */
	rc = http_body_unpack(r, &r->websub.plain);
	if (rc)
		fw_err_set(&err, rc, "the body does not match its Content-Encoding, or is too large");
	if (r->websub.plain.len)
		in.body = fw_buf_str(&r->websub.plain);
	if (!rc && !websub_reserve(r, r->websub.plain.len + fw_delivery_estimate(r->thread->h->config, in.body.len)))
		return websub_poll_instead(r); /* other requests hold too much memory */
	rc = rc ? rc : fw_delivery_open(r->store, r->thread->h->config, &in, &r->websub.delivery, &err);
	r->websub.until_ms = fw_mono_ms() + BUSY_RETRY_MS;
	switch (rc) {
	case 0:
		return MHD_YES;
	case FW_ENOTFOUND:
		return websub_gone(r);
	case FW_EFORMAT:
	case FW_EINVAL:
	case FW_EUNSUP:
	case FW_ELIMIT:
		fw_websub_count(in.feed_id, false, 0, http_now_ms(r));
		fw_debug("feed %lld: document of its hub rejected: %s", (long long)in.feed_id, err.text);
		return websub_poll_instead(r);
	default:
		return http_store_failed(r, rc, &err);
	}
}

/* Store the document, unless the feed's daily limits are used up. */
static enum MHD_Result websub_take(struct request *r)
{
	int64_t now_ms = http_now_ms(r);
	struct fw_err err = {0};
	struct fw_quota q;
	int rc = fw_quota_get(r->store, r->websub.feed_id, now_ms, &q, &err);

	if (rc && rc != FW_ENOTFOUND)
		return http_store_failed(r, rc, &err);
	if (rc || !fw_quota_is_used_up(r->thread->h->config, &q))
		return websub_open(r);
	websub_limit(r, q.until_ms - now_ms);
	return http_problem(r, MHD_HTTP_TOO_MANY_REQUESTS, "daily_quota",
		"throttled: the daily limit of this feed is used up (retry in %lld s)", (long long)r->retry_after_s);
}

static enum MHD_Result websub_check(struct request *r)
{
	struct fw_str signature = fw_str(MHD_lookup_connection_value(r->conn, MHD_HEADER_KIND, "X-Hub-Signature"));
	enum fw_websub_verdict verdict;
	struct fw_err err = {0};
	int rc = fw_websub_classify(r->store, fw_str(r->token), signature, fw_buf_str(&r->body), http_now_ms(r),
		&r->websub.feed_id, &verdict, &err);

	if (rc)
		return http_store_failed(r, rc, &err);
	switch (verdict) {
	case FW_WEBSUB_ACCEPT:
		return websub_take(r);
	case FW_WEBSUB_UNSIGNED:
		return http_problem(r, MHD_HTTP_FORBIDDEN, "unsigned",
			"X-Hub-Signature is missing (this subscription has a secret)");
	case FW_WEBSUB_HINT: /* a wrong signature gets the same response, so that guessing reveals nothing */
	case FW_WEBSUB_IGNORE:
		return websub_respond(r, MHD_HTTP_ACCEPTED, FW_STR(""));
	case FW_WEBSUB_GONE:
	case FW_WEBSUB_VERDICT_N:
		break;
	}
	return websub_gone(r);
}

enum MHD_Result http_websub_push(struct request *r)
{
	struct http *h = r->thread->h;
	enum MHD_Result ok = MHD_YES;
	struct fw_delivery_result got;
	struct fw_err err = {0};
	bool room;
	int rc;

	if (!r->websub.delivery)
		ok = websub_check(r);
	if (!r->websub.delivery)
		return ok;
	rc = fw_delivery_store(r->websub.delivery, r->store, &got, &err);
	room = websub_reserve(r, fw_delivery_bytes(r->websub.delivery) + r->websub.plain.len);
	if (rc == FW_EAGAIN && fw_mono_ms() < r->websub.until_ms && room) {
		r->retry = true;
		return MHD_YES;
	}
	if (rc == FW_EIO)
		return http_store_failed(r, rc, &err);
	fw_delivery_close(r->websub.delivery);
	r->websub.delivery = NULL;
	(void)websub_reserve(r, r->websub.plain.len);
	if (rc == FW_EGONE || rc == FW_ENOTFOUND)
		return websub_gone(r);
	if (rc)
		return websub_poll_instead(r);
	atomic_fetch_add(&h->delivery_n, 1);
	atomic_fetch_add(&h->delivered_new_n, got.visit.new_n);
	atomic_fetch_add(&h->delivered_changed_n, got.visit.changed_n);
	fw_websub_count(r->websub.feed_id, true, got.visit.new_n, http_now_ms(r));
	return websub_respond(r, MHD_HTTP_OK, FW_STR(""));
}
