/* SPDX-License-Identifier: ISC */
/*
 * Pushed events: {"property": "news", "section": 1, "id": 1}, one object, an array of them, or one a line (NDJSON).
 *
 * All events of a request go into the ring, or none: a request that is wrong somewhere is refused as a whole, with the place.
 */
#include <jansson.h>

#include "base/clock.h"
#include "http/event_read.h"
#include "http/http.h"
#include "base/banned.h"

/* NULL: it is good; else what is wrong with it. */
static const char *event_wrong(const struct fw_event *e)
{
	if (!e->property.len)
		return "property is missing: a string that is not empty";
	if (e->property.len > FW_PROPERTY_MAX)
		return "property is longer than 255 bytes";
	if (e->section < 1)
		return "section is missing: a number above 0";
	if (e->item < 1)
		return "id is missing: a number above 0";
	return NULL;
}

/* What is missing, or of another type, is empty or 0. */
static const char *event_read(const json_t *o, struct fw_event *e)
{
	const json_t *property = json_object_get(o, "property"), *section = json_object_get(o, "section"), *id = json_object_get(o, "id");

	if (!json_is_object(o))
		return "an event is an object";
	e->property = (struct fw_str){json_string_value(property), json_string_length(property)};
	e->section = json_integer_value(section);
	e->item = json_integer_value(id);
	return event_wrong(e);
}

/* The ring said no. */
static enum MHD_Result no_room(struct request *r, int rc)
{
	if (rc == FW_EGONE)
		return http_problem(r, MHD_HTTP_SERVICE_UNAVAILABLE, "unavailable", "the server is stopping");
	return http_problem(r, MHD_HTTP_SERVICE_UNAVAILABLE, "unavailable", "the queue is full: the store takes rows slower than they come");
}

static void push_done(struct fw_push_wait *w, int rc, const char *why)
{
	struct request *r = (struct request *)((char *)w - offsetof(struct request, wait));
	struct MHD_Connection *conn = r->conn;

	(void)why; /* it is in w */
	r->wait_rc = rc;
	MHD_resume_connection(conn);
}

enum MHD_Result http_push_resumed(struct request *r)
{
	struct fw_buf out = FW_BUF_INIT(0);

	atomic_fetch_sub(&r->lane->h->suspended_n, 1);
	if (r->wait_rc == FW_EINVAL)
		return http_problem(r, MHD_HTTP_UNPROCESSABLE_CONTENT, r->route->twirp ? "failed_precondition" : "refused",
			"the store refused a row, which was set aside: %s", r->wait.why);
	if (r->wait_rc)
		return http_problem(r, MHD_HTTP_SERVICE_UNAVAILABLE, "unavailable", "%s", r->wait.why);
	if (r->route->twirp)
		return http_canned(r, CANNED_TWIRP_OK);
	fw_buf_addf(&out, "{\"stored\":%zu}", r->rows);
	return http_send(r, MHD_HTTP_OK, "application/json", &out);
}

static enum MHD_Result put_one(struct request *r, const json_t *o, struct fw_event *e, size_t n)
{
	const char *wrong = event_read(o, e);
	int rc;

	if (wrong) {
		fw_ingest_forget(r->lane->in);
		if (r->route->twirp)
			return http_problem(r, MHD_HTTP_BAD_REQUEST, "invalid_argument", "%s", wrong);
		return http_problem(r, MHD_HTTP_BAD_REQUEST, "invalid_event", "event %zu: %s", n + 1, wrong);
	}
	rc = fw_ingest_put(r->lane->in, e);
	if (rc)
		return no_room(r, rc);
	r->rows++;
	return MHD_YES;
}

/* As JSON, whatever its shape; what is wrong is told with its place. */
static enum MHD_Result put_json(struct request *r, struct fw_event *e)
{
	const char *p = r->body.p;
	size_t left = r->body.len;
	enum MHD_Result ok = MHD_YES;
	json_error_t je;

	while (r->state == REQUEST_BODY && left) {
		size_t i;
		json_t *doc, *o;

		while (left && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) {
			p++;
			left--;
		}
		if (!left)
			break;
		doc = json_loadb(p, left, JSON_REJECT_DUPLICATES | JSON_DISABLE_EOF_CHECK | JSON_ALLOW_NUL, &je);
		if (!doc) {
			fw_ingest_forget(r->lane->in);
			return http_malformed(r, &je);
		}
		if (!json_is_array(doc)) {
			ok = put_one(r, doc, e, r->rows);
		} else {
			json_array_foreach(doc, i, o) {
				ok = put_one(r, o, e, r->rows);
				if (r->state != REQUEST_BODY)
					break;
			}
		}
		json_decref(doc);
		p += je.position;
		left -= (size_t)je.position;
	}
	return ok;
}

/*
 * Put what the body holds into the ring; r->state is REQUEST_ANSWERED when that went wrong. Nearly all events have one shape, which is read
 * at a tenth of the price; what it has to say nothing about begins again.
 */
static enum MHD_Result put_all(struct request *r, struct fw_event *e, struct fw_push_wait *wait)
{
	struct event_reader in = {.p = r->body.p, .end = r->body.p + r->body.len};
	int what, rc;

	while ((what = event_next(&in, e)) == EVENT_ONE && !event_wrong(e)) {
		rc = fw_ingest_put(r->lane->in, e);
		if (rc)
			return no_room(r, rc);
		r->rows++;
	}
	if (what == EVENT_NONE)
		return MHD_YES;
	fw_ingest_forget(r->lane->in);
	r->rows = 0;
	rc = fw_ingest_begin(r->lane->in, wait);
	return rc ? no_room(r, rc) : put_json(r, e);
}

static bool wants_durable(struct request *r)
{
	const char *ack = MHD_lookup_connection_value(r->conn, MHD_GET_ARGUMENT_KIND, "ack");
	const char *prefer;

	if (ack)
		return fw_str_eq(fw_str(ack), FW_STR("durable"));
	prefer = MHD_lookup_connection_value(r->conn, MHD_HEADER_KIND, "Prefer");
	return prefer && fw_str_ieq(fw_str_trim(fw_str(prefer)), FW_STR("respond-sync"));
}

enum MHD_Result http_push_events(struct request *r)
{
	bool wait = r->lane->h->config->flush_rows == 1 /* no queue */ || wants_durable(r); /* answered when it is stored */
	struct fw_event e = {.remote_ip = http_client_address(r), .stamp_ms = fw_now_ms()};
	enum MHD_Result ok;
	struct fw_err err;
	int rc;

	r->rows = 0;
	r->wait.done = push_done;
	rc = fw_ingest_begin(r->lane->in, wait ? &r->wait : NULL);
	if (rc)
		return no_room(r, rc);
	ok = put_all(r, &e, wait ? &r->wait : NULL);
	if (r->state != REQUEST_BODY)
		return ok;
	if (!r->rows) {
		fw_ingest_forget(r->lane->in);
		return http_problem(r, MHD_HTTP_BAD_REQUEST, r->route->twirp ? "malformed" : "malformed_json", "the body is empty: one event at least");
	}
	if (wait) {
		r->state = REQUEST_WAITS;
		atomic_fetch_add(&r->lane->h->suspended_n, 1);
		MHD_suspend_connection(r->conn);
	}
	rc = fw_ingest_publish(r->lane->in, &err);
	if (wait)
		return MHD_YES; /* it cannot fail then: nothing is written by us */
	if (rc)
		return http_problem(r, MHD_HTTP_SERVICE_UNAVAILABLE, "unavailable", "%s", err.text);
	return http_canned(r, r->route->twirp ? CANNED_TWIRP_OK : CANNED_ACCEPTED);
}
