/* SPDX-License-Identifier: ISC */
/*
 * /v1/orders: what `feedwheel order` does, over HTTP. A secret is only in the responses that create
 * it.
 */
#include <jansson.h>

#include "api/order.h"
#include "api/view.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/when.h"
#include "http/server/http.h"

#define DEAD_LIMIT 100
#define DEAD_LIMIT_MAX 1000
#define TEST_SPAN_MS (7 * FW_DAY_MS)
#define TEST_LIMIT 5
#define TEST_LIMIT_MAX 100

/* ---- request bodies -------------------------------------------------------------------------- */

/* The members that a client may set; each request allows some. */
enum {
	NAME = 1,
	QUERY = 2,
	TO = 4,
	DROP = 8,
	TAG = 16,
	CHANGES = 32,
	SECRET = 64,
	STATE = 128,
	SINCE = 256,
	LIMIT = 512,
};
static const struct json_member ORDER_MEMBER[] = {
	{"name", NAME, JSON_STRING, "must be a string"},
	{"query", QUERY, JSON_STRING, "must be a string"},
	{"to", TO, JSON_STRING, "must be a string"},
	{"drop", DROP, JSON_TRUE, "must be true"},
	{"tag", TAG, JSON_STRING, "must be a string"},
	{"changes", CHANGES, JSON_TRUE, "must be true or false", .either = true},
	{"secret", SECRET, JSON_STRING, "must be a string"},
	{"state", STATE, JSON_STRING, "must be \"active\" or \"paused\""},
	{"since", SINCE, JSON_STRING, "must be a time such as 2026-11-01T12:00:00Z, or 2h (ago)"},
	{"limit", LIMIT, JSON_INTEGER, "must be a number from 1 to 100"},
};

struct order_fields {
	unsigned has;
	struct fw_str name, query, to, tag, secret, state; /* point into the JSON document */
	bool changes;
	int64_t since_ms, limit;
};

static const char *order_member_wrong(const struct order_fields *w, const json_t *o, int64_t now_ms, int64_t *since_ms)
{
	if (w->has & STATE && !fw_str_eq(w->state, FW_STR("active")) && !fw_str_eq(w->state, FW_STR("paused")))
		return "state";
	if (w->has & LIMIT && (w->limit < 1 || w->limit > TEST_LIMIT_MAX))
		return "limit";
	if (w->has & SINCE && !fw_when_parse(http_json_text(o, "since"), now_ms, since_ms))
		return "since";
	return NULL;
}

/* The invalid member of o, or the missing one of `must`, with the reason; NULL: all is well. */
static const char *order_fields_read(
	json_t *o, unsigned may, unsigned must, int64_t now_ms, struct order_fields *w, const char **words)
{
	const char *name;

	*w = (struct order_fields){.has = 0};
	name = http_json_members(o, ORDER_MEMBER, FW_N(ORDER_MEMBER), may, &w->has, words);
	if (name)
		return name;
	*words = "missing";
	for (size_t i = 0; i < FW_N(ORDER_MEMBER); i++) {
		if (ORDER_MEMBER[i].bit & must && !(ORDER_MEMBER[i].bit & w->has))
			return ORDER_MEMBER[i].name;
	}
	w->name = http_json_text(o, "name");
	w->query = http_json_text(o, "query");
	w->to = http_json_text(o, "to");
	w->tag = http_json_text(o, "tag");
	w->secret = http_json_text(o, "secret");
	w->state = http_json_text(o, "state");
	w->changes = json_is_true(json_object_get(o, "changes"));
	w->limit = json_integer_value(json_object_get(o, "limit"));
	name = order_member_wrong(w, o, now_ms, &w->since_ms);
	if (name)
		*words = http_json_member_words(ORDER_MEMBER, FW_N(ORDER_MEMBER), name);
	return name;
}

/* Parse the body. NULL: responded. */
static json_t *order_body(struct request *r, unsigned may, unsigned must, struct order_fields *w, enum MHD_Result *ok)
{
	json_t *doc = http_json_body(r, ok);
	const char *words = "must be an object", *wrong;

	if (!doc)
		return NULL;
	wrong = json_is_object(doc) ? order_fields_read(doc, may, must, http_now_ms(r), w, &words) : "request body";
	if (!wrong)
		return doc;
	*ok = http_unprocessable(r, wrong, words);
	json_decref(doc);
	return NULL;
}

/* ---- responses ------------------------------------------------------------------------------- */

/* Our own words about an order or a query are a 422; other errors are the store's. */
static enum MHD_Result order_failed(struct request *r, int rc, const struct fw_err *err)
{
	if (rc == FW_EINVAL)
		return http_problem(r, MHD_HTTP_UNPROCESSABLE_CONTENT, "invalid", "%s", err->text);
	return http_store_failed(r, rc, err);
}

/* Send the page as it is, or the error. Frees the page. location: of a new order, or NULL. */
static enum MHD_Result order_send(
	struct list_page *p, unsigned status, const char *location, int rc, const struct fw_err *err)
{
	enum MHD_Result ok = MHD_NO;
	struct MHD_Response *m;

	if (rc < 0) {
		ok = order_failed(p->r, rc, err);
		goto out;
	}
	m = http_response(p->r, status, "application/json", &p->out);
	if (m && MHD_add_response_header(m, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store") &&
		(!location || MHD_add_response_header(m, MHD_HTTP_HEADER_LOCATION, location)))
		ok = http_respond(p->r, status, m);
	else if (m)
		MHD_destroy_response(m);
out:
	fw_buf_finish(&p->out);
	fw_arena_finish(&p->arena);
	return ok;
}

/* Write the order as it is stored now, and the secret if it is present. */
static int order_page_write(struct list_page *p, struct fw_str name, struct fw_str secret, struct fw_err *err)
{
	struct fw_order_status s;
	int rc = fw_order_status_get(p->r->store, name, &p->arena, &s, err);

	if (rc)
		return rc;
	fw_json_object(&p->j, NULL);
	fw_order_json(&p->j, "order", &s);
	if (secret.len)
		fw_json_str(&p->j, "secret", secret);
	fw_json_end(&p->j);
	return 0;
}

/* ---- reading --------------------------------------------------------------------------------- */

static int order_list_add(void *ctx, const struct fw_order_status *s)
{
	fw_order_json(ctx, NULL, s);
	return 0;
}

enum MHD_Result http_order_list(struct request *r)
{
	struct fw_err err = {0};
	struct list_page p;
	int rc;

	list_page_begin(&p, r);
	fw_json_object(&p.j, NULL);
	fw_json_array(&p.j, "orders");
	rc = fw_order_status_list(r->store, order_list_add, &p.j, &err);
	fw_json_end(&p.j);
	fw_json_end(&p.j);
	return list_page_send(&p, "application/json", rc, &err);
}

enum MHD_Result http_order_get(struct request *r)
{
	struct fw_err err = {0};
	struct list_page p;
	int rc;

	list_page_begin(&p, r);
	rc = order_page_write(&p, fw_str(r->name), FW_STR_NONE, &err);
	return list_page_send(&p, "application/json", rc, &err);
}

static int order_dead_add(void *ctx, const struct fw_match *m)
{
	struct list_page *p = ctx;

	if (!list_page_has_room(p))
		return 1;
	list_page_set_cursor(p, "d%lld", (long long)m->change_id);
	fw_match_json(&p->j, NULL, m);
	return 0;
}

enum MHD_Result http_order_dead(struct request *r)
{
	struct fw_match_query q = {.dead = true};
	int64_t limit = DEAD_LIMIT;
	struct fw_order o = {.id = 0};
	struct fw_err err = {0};
	struct list_page p;
	enum MHD_Result ok;
	bool there;
	int rc;

	if (!http_param_int(r, "limit", 1, DEAD_LIMIT_MAX, &limit, &ok) ||
		!http_param_cursor(r, 'd', &q.after_change_id, 1, &there, &ok))
		return ok;
	list_page_begin(&p, r);
	p.limit = (size_t)limit;
	rc = fw_order_get(r->store, fw_str(r->name), &p.arena, &o, &err);
	q.order_id = o.id;
	q.limit = p.limit + 1;
	fw_json_object(&p.j, NULL);
	fw_json_array(&p.j, "dead");
	rc = rc ? rc : fw_store_match_list(r->store, &q, order_dead_add, &p, &err);
	fw_json_end(&p.j);
	if (rc >= 0)
		fw_json_cstr(&p.j, "next_url", list_page_next(&p));
	fw_json_end(&p.j);
	return list_page_send(&p, "application/json", rc, &err);
}

struct order_test_request {
	struct list_page p;
	int64_t n, limit;
};

static int order_test_add(void *ctx, const struct fw_entry_row *e)
{
	struct order_test_request *t = ctx;
	struct fw_err err;

	if (t->n++ < t->limit && fw_entry_json(&t->p.j, e, 0, &err))
		fw_warn("%s", err.text);
	return 0;
}

enum MHD_Result http_order_test(struct request *r)
{
	struct fw_entry_query q = {.limit = 0};
	int64_t unindexed_n = 0;
	struct order_test_request t = {.n = 0};
	struct order_fields w;
	struct fw_err err = {0};
	enum MHD_Result ok;
	json_t *doc = order_body(r, QUERY | SINCE | LIMIT, QUERY, &w, &ok);
	int rc;

	if (!doc)
		return ok;
	list_page_begin(&t.p, r);
	t.limit = w.has & LIMIT ? w.limit : TEST_LIMIT;
	q.search = w.query;
	q.since_ms = w.has & SINCE ? w.since_ms : http_now_ms(r) - TEST_SPAN_MS;
	q.unindexed_n = &unindexed_n;
	rc = fw_order_check_query(w.query, &err);
	fw_json_object(&t.p.j, NULL);
	fw_json_str(&t.p.j, "query", w.query);
	fw_json_time(&t.p.j, "since", q.since_ms);
	fw_json_array(&t.p.j, "items");
	rc = rc ? rc : fw_store_entry_list(r->store, &q, order_test_add, &t, &err);
	fw_json_end(&t.p.j);
	fw_json_int(&t.p.j, "matches", t.n);
	fw_incomplete_json(&t.p.j, unindexed_n);
	fw_json_end(&t.p.j);
	json_decref(doc);
	return order_send(&t.p, MHD_HTTP_OK, NULL, rc, &err);
}

/* ---- changing -------------------------------------------------------------------------------- */

enum MHD_Result http_order_add(struct request *r)
{
	struct order_fields w;
	enum MHD_Result ok;
	json_t *doc = order_body(r, NAME | QUERY | TO | DROP | TAG | CHANGES | SECRET, NAME | QUERY, &w, &ok);
	char location[40 + FW_ORDER_NAME_MAX];
	struct fw_err err = {0};
	struct fw_order o;
	struct list_page p;
	unsigned action;
	int rc;

	if (!doc)
		return ok;
	action = w.has & (TO | DROP | TAG);
	if (!action || action & (action - 1)) {
		json_decref(doc);
		return http_unprocessable(r, "request body", "must have one of to, drop and tag");
	}
	o = (struct fw_order){.name = w.name,
		.query = w.query,
		.to = w.to,
		.tag = w.tag,
		.changes = w.changes,
		.action = action == DROP ? FW_ORDER_DROP :
			action == TAG    ? FW_ORDER_TAG :
					   FW_ORDER_DELIVER};
	o.secret[0] = w.secret;
	if (fw_order_check_commands(r->thread->h->config, o.to, true, &err)) {
		json_decref(doc);
		return http_problem(r, MHD_HTTP_FORBIDDEN, "permission_denied", "%s", err.text);
	}
	list_page_begin(&p, r);
	rc = fw_order_add(r->store, &p.arena, &o, http_now_ms(r), &err);
	rc = rc ? rc : order_page_write(&p, o.name, w.has & SECRET ? FW_STR_NONE : o.secret[0], &err);
	(void)fw_snprintf(location, sizeof(location), "/v1/orders/%.*s",
		(int)FW_MIN(o.name.len, (size_t)FW_ORDER_NAME_MAX), o.name.p);
	json_decref(doc);
	return order_send(&p, MHD_HTTP_CREATED, location, rc, &err);
}

/*
 * Are this change's destination, and that of the order as it is, allowed over HTTP? An order may
 * always be paused and resumed.
 */
static bool order_may_change(struct request *r, const struct order_fields *w, struct fw_err *err)
{
	const struct fw_config *how = r->thread->h->config;
	struct fw_order o = {.to = FW_STR_NONE};
	struct fw_arena a;
	bool may = true;

	fw_arena_init(&a, 0);
	if (w->has & (QUERY | TO | CHANGES) && !fw_order_get(r->store, fw_str(r->name), &a, &o, err))
		may = !fw_order_check_commands(how, w->to, true, err) && !fw_order_check_commands(how, o.to, true, err);
	fw_arena_finish(&a);
	return may;
}

enum MHD_Result http_order_change(struct request *r)
{
	struct order_fields w;
	enum MHD_Result ok;
	json_t *doc = order_body(r, QUERY | TO | CHANGES | STATE, 0, &w, &ok);
	struct fw_order_change change;
	struct fw_err err = {0};
	struct fw_order o;
	struct list_page p;
	int rc;

	if (!doc)
		return ok;
	if (!w.has) {
		json_decref(doc);
		return http_unprocessable(r, "request body", "no field to change");
	}
	change = (struct fw_order_change){.query = w.query,
		.to = w.to,
		.changes = w.has & CHANGES ? w.changes : -1,
		.state = !(w.has & STATE)                    ? -1 :
			fw_str_eq(w.state, FW_STR("paused")) ? FW_ORDER_PAUSED :
							       FW_ORDER_ACTIVE};
	if (!order_may_change(r, &w, &err)) {
		json_decref(doc);
		return http_problem(r, MHD_HTTP_FORBIDDEN, "permission_denied", "%s", err.text);
	}
	list_page_begin(&p, r);
	rc = fw_order_apply(r->store, fw_str(r->name), &change, &p.arena, &o, &err);
	rc = rc ? rc : order_page_write(&p, fw_str(r->name), change.made_secret ? o.secret[0] : FW_STR_NONE, &err);
	json_decref(doc);
	return order_send(&p, MHD_HTTP_OK, NULL, rc, &err);
}

enum MHD_Result http_order_remove(struct request *r)
{
	struct fw_buf none = FW_BUF_INIT(0);
	struct fw_err err = {0};
	int rc = fw_order_remove(r->store, fw_str(r->name), &err);

	return rc ? order_failed(r, rc, &err) : http_send(r, MHD_HTTP_NO_CONTENT, "application/json", &none);
}

enum MHD_Result http_order_rotate(struct request *r)
{
	struct fw_err err = {0};
	struct fw_order o;
	struct list_page p;
	int rc;

	list_page_begin(&p, r);
	rc = fw_order_rotate(r->store, fw_str(r->name), &p.arena, &o, &err);
	rc = rc ? rc : order_page_write(&p, fw_str(r->name), o.secret[0], &err);
	return order_send(&p, MHD_HTTP_OK, NULL, rc, &err);
}

static enum MHD_Result order_match_again(struct request *r, bool dead, int64_t since_ms)
{
	struct fw_order_again a = {.n = 0};
	struct fw_order o = {.id = 0};
	struct fw_err err = {0};
	struct list_page p;
	int rc;

	list_page_begin(&p, r);
	rc = fw_order_get(r->store, fw_str(r->name), &p.arena, &o, &err);
	if (!rc)
		rc = dead ? fw_order_retry(r->store, &o, &a, &err) : fw_order_replay(r->store, &o, since_ms, &a, &err);
	fw_json_object(&p.j, NULL);
	fw_json_cstr(&p.j, "name", r->name);
	fw_json_int(&p.j, "matches", a.n);
	fw_incomplete_json(&p.j, a.unindexed_n);
	fw_json_end(&p.j);
	return order_send(&p, MHD_HTTP_OK, NULL, rc, &err);
}

enum MHD_Result http_order_replay(struct request *r)
{
	struct order_fields w;
	enum MHD_Result ok;
	json_t *doc = order_body(r, SINCE, SINCE, &w, &ok);

	if (!doc)
		return ok;
	json_decref(doc);
	return order_match_again(r, false, w.since_ms);
}

enum MHD_Result http_order_retry(struct request *r)
{
	return order_match_again(r, true, 0);
}
