/* SPDX-License-Identifier: ISC */
/*
 * POST /v1/events and its Twirp equivalent: pushed events such as {"property": "news", "section":
 * 1, "id": 1}; one object, an array of them, or one a line (NDJSON).
 *
 * All events of a request go into the server thread's ring, or none: one invalid event refuses the
 * whole request.
 */
#include "base/clock.h"
#include "http/api/event_rules.h"
#include "http/server/http.h"

/* The ring is full (FW_EAGAIN), there is no id (FW_ESTALE), the server is stopping (FW_EGONE). */
static enum MHD_Result push_refuse(struct request *r, int rc)
{
	if (rc == FW_ESTALE)
		return http_problem(r, MHD_HTTP_SERVICE_UNAVAILABLE, "unavailable",
			"the store has not answered yet, or not for hours: the write-ahead log needs rows with ids, and"
			" the store gives them (ack=durable waits for it)");
	if (rc == FW_EGONE)
		return http_problem(r, MHD_HTTP_SERVICE_UNAVAILABLE, "unavailable", "the server is stopping");
	return http_problem(r, MHD_HTTP_SERVICE_UNAVAILABLE, "unavailable",
		"the ring is full: the store takes rows more slowly than they arrive");
}

static void push_done(struct fw_commit_wait *w, int rc, const char *why)
{
	struct request *r = (struct request *)((char *)w - offsetof(struct request, wait));

	(void)why; /* w->why has it */
	r->wait_rc = rc;
	server_thread_resume(r->thread->loop, r->conn);
}

enum MHD_Result http_push_resumed(struct request *r)
{
	struct fw_buf out = FW_BUF_INIT(0);

	atomic_fetch_sub(&r->thread->h->suspended_n, 1);
	if (r->wait_rc == FW_EINVAL)
		return http_problem(r, MHD_HTTP_UNPROCESSABLE_CONTENT, r->twirp ? "failed_precondition" : "refused",
			"the store refused a row, which was kept as a dead letter: %s", r->wait.why);
	if (r->wait_rc)
		return http_problem(r, MHD_HTTP_SERVICE_UNAVAILABLE, "unavailable", "%s", r->wait.why);
	if (r->twirp)
		return http_canned(r, CANNED_TWIRP_OK);
	fw_buf_addf(&out, "{\"stored\":%zu}", r->rows);
	return http_send(r, MHD_HTTP_OK, "application/json", &out);
}

/* The event sink: the draft that the server thread publishes next. */

static int push_put(void *ctx, const struct fw_event *e)
{
	struct request *r = ctx;

	if (r->bound && !fw_token_allows_property(fw_str(r->bound), e->property))
		return FW_EBLOCKED;
	return fw_ingest_put(r->thread->in, e);
}

static int push_restart(void *ctx)
{
	struct request *r = ctx;

	fw_ingest_discard(r->thread->in);
	return fw_ingest_begin(r->thread->in, r->durable ? &r->wait : NULL);
}

/* Put the body's events into the ring. After an error r->state is REQUEST_RESPONDED. */
static enum MHD_Result push_put_all(struct request *r)
{
	struct event_sink to = {push_put, push_restart, r};
	struct fw_event e = {.remote_ip = http_client_address(r), .stamp_ms = http_now_ms(r)};
	struct event_wrong wrong = {0};
	int rc = push_restart(r);

	r->rows = 0;
	if (!rc)
		rc = events_read(r->thread->h->rules, fw_buf_str(&r->body), &e, &to, &r->rows, &wrong);
	if (rc == FW_EAGAIN || rc == FW_EGONE || rc == FW_ESTALE)
		return push_refuse(r, rc);
	if (!rc && r->rows)
		return MHD_YES;
	fw_ingest_discard(r->thread->in);
	if (rc == FW_EBLOCKED)
		return http_problem(r, MHD_HTTP_FORBIDDEN, "permission_denied",
			"event %zu: push of its property refused: the token is bound to"
			" others (to list them: feedwheel token list)",
			r->rows + 1);
	if (rc == FW_EFORMAT)
		return http_malformed(r, &wrong.json);
	if (rc && r->twirp)
		return http_problem(r, MHD_HTTP_BAD_REQUEST, "invalid_argument", "%s", wrong.words);
	if (rc)
		return http_problem(r, MHD_HTTP_BAD_REQUEST, "invalid_event", "event %zu: %s", wrong.n, wrong.words);
	return http_problem(
		r, MHD_HTTP_BAD_REQUEST, r->twirp ? "malformed" : "malformed_json", "the request body has no event");
}

static bool push_wants_durable(struct request *r)
{
	const char *ack = MHD_lookup_connection_value(r->conn, MHD_GET_ARGUMENT_KIND, "ack");

	if (ack)
		return fw_str_eq(fw_str(ack), FW_STR("durable"));
	return r->prefer.p && fw_str_ieq(fw_str_trim(r->prefer), FW_STR("respond-sync"));
}

enum MHD_Result http_push_events(struct request *r)
{
	enum MHD_Result ok;
	struct fw_err err;
	int rc;

	r->durable = r->thread->h->config->flush_rows == 1 /* no queue */ || push_wants_durable(r);
	if (r->durable && !http_may_wait(r->thread->h))
		return http_problem(r, MHD_HTTP_SERVICE_UNAVAILABLE, "unavailable",
			"the limit of pushes that wait for the store is reached");
	r->wait.done = push_done;
	ok = push_put_all(r);
	if (r->state != REQUEST_BODY)
		return ok;
	if (r->durable) {
		r->state = REQUEST_WAITS;
		atomic_fetch_add(&r->thread->h->suspended_n, 1);
		MHD_suspend_connection(r->conn);
	}
	rc = fw_ingest_publish(r->thread->in, &err);
	if (r->durable)
		return MHD_YES; /* a durable push cannot fail here: push_done() gets the result */
	if (rc)
		return http_problem(r, MHD_HTTP_SERVICE_UNAVAILABLE, "unavailable", "%s", err.text);
	return http_canned(r, r->twirp ? CANNED_TWIRP_OK : CANNED_ACCEPTED);
}
