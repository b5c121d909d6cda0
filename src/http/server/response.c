/* SPDX-License-Identifier: ISC */
/*
 * Responses: made for one request, constant ones, and errors. Every response but the constant ones
 * carries X-Request-Id. The headers of CORS are on all of them when serve_cors_origin is set.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/log.h"
#include "http/server/http.h"

#define RETRY_AFTER_S "1"

static struct MHD_Response *response_make(
	unsigned status, const char *type, char *body, size_t len, enum MHD_ResponseMemoryMode mode)
{
	struct MHD_Response *m = MHD_create_response_from_buffer(len, body, mode);

	if (!m)
		return NULL;
	if (MHD_add_response_header(m, MHD_HTTP_HEADER_CONTENT_TYPE, type) == MHD_NO ||
		(status == MHD_HTTP_SERVICE_UNAVAILABLE &&
			MHD_add_response_header(m, MHD_HTTP_HEADER_RETRY_AFTER, RETRY_AFTER_S) == MHD_NO)) {
		MHD_destroy_response(m);
		return NULL;
	}
	return m;
}

int64_t http_now_ms(const struct request *r)
{
	return fw_config_now_ms(r->thread->h->config);
}

/* ---- ids ------------------------------------------------------------------------------------- */

uint64_t http_id_random(void)
{
	uint64_t n;

	/* wall clock: without the kernel's randomness nothing else is there */
	return getrandom(&n, sizeof(n), 0) == sizeof(n) && n ? n : (uint64_t)fw_now_ms() << 20;
}

void http_id_init(struct http *h)
{
	h->id_base = http_id_random();
}

void http_id_begin(struct request *r)
{
	r->request_id[0] = 0;
}

static bool request_id_is_valid(struct fw_str id)
{
	for (size_t i = 0; i < id.len; i++) {
		if (!fw_is_alnum((unsigned char)id.p[i]) && !strchr("-_.:/+=@", id.p[i]))
			return false;
	}
	return id.len && id.len <= HTTP_ID_MAX;
}

void http_id_write(char id[HTTP_ID_MAX + 1], uint64_t n)
{
	(void)fw_snprintf(id, HTTP_ID_MAX + 1, "%016llx", (unsigned long long)n);
}

const char *http_request_id(struct request *r)
{
	uint64_t sent = r->c ? atomic_load(&r->c->problem_id) : 0;
	struct fw_str given;

	if (r->request_id[0])
		return r->request_id;
	if (sent) {
		http_id_write(r->request_id, sent);
		return r->request_id;
	}
	given = fw_str(MHD_lookup_connection_value(r->conn, MHD_HEADER_KIND, "X-Request-Id"));
	if (request_id_is_valid(given))
		(void)fw_str_copy(r->request_id, sizeof(r->request_id), given);
	else /* the server thread in the upper bits, its request count in the lower ones: unique in a server */
		http_id_write(r->request_id,
			r->thread->h->id_base + ((uint64_t)(r->thread - r->thread->h->thread) << 48) + r->number);
	return r->request_id;
}

/* ---- answers --------------------------------------------------------------------------------- */

struct MHD_Response *http_response(struct request *r, unsigned status, const char *type, struct fw_buf *body)
{
	struct MHD_Response *m;
	size_t len = 0;
	char *p;

	if (body->rc) {
		fw_buf_finish(body);
		return NULL; /* no memory: the connection is closed */
	}
	p = fw_buf_take(body, &len);
	r->log.bytes = (int64_t)len;
	m = response_make(status, type, p, len, MHD_RESPMEM_MUST_FREE);
	if (!m)
		free(p);
	return m;
}

enum MHD_Result http_send(struct request *r, unsigned status, const char *type, struct fw_buf *body)
{
	struct MHD_Response *m = http_response(r, status, type, body);

	return m ? http_respond(r, status, m) : MHD_NO;
}

/* Pages of serve_cors_origin may read responses. */
static enum MHD_Result cors_add(struct MHD_Response *m, const struct fw_config *c)
{
	if (!c->serve_cors_origin)
		return MHD_YES;
	return MHD_add_response_header(m, MHD_HTTP_HEADER_ACCESS_CONTROL_ALLOW_ORIGIN, c->serve_cors_origin) &&
			MHD_add_response_header(m, MHD_HTTP_HEADER_ACCESS_CONTROL_EXPOSE_HEADERS,
				"ETag, Feedwheel-Cursor, Feedwheel-Unindexed, Idempotent-Replayed, Link, Location, "
				"Retry-After, X-Request-Id") ?
		MHD_YES :
		MHD_NO;
}

enum MHD_Result http_options(struct request *r)
{
	static char empty[1];
	struct MHD_Response *m = MHD_create_response_from_buffer(0, empty, MHD_RESPMEM_PERSISTENT);
	bool ok = m;

	if (m && r->thread->h->config->serve_cors_origin)
		ok = MHD_add_response_header(m, MHD_HTTP_HEADER_ACCESS_CONTROL_ALLOW_METHODS, r->allow) &&
			MHD_add_response_header(m, MHD_HTTP_HEADER_ACCESS_CONTROL_ALLOW_HEADERS,
				"Authorization, Content-Type, Idempotency-Key, If-None-Match, Last-Event-ID, Prefer, "
				"X-Auth-Token, X-Request-Id") &&
			MHD_add_response_header(m, MHD_HTTP_HEADER_ACCESS_CONTROL_MAX_AGE, "3600");
	if (ok)
		return http_respond(r, MHD_HTTP_NO_CONTENT, m);
	if (m)
		MHD_destroy_response(m);
	return MHD_NO;
}

enum MHD_Result http_respond(struct request *r, unsigned status, struct MHD_Response *m)
{
	enum MHD_Result ok = r->allow[0] ? MHD_add_response_header(m, MHD_HTTP_HEADER_ALLOW, r->allow) : MHD_YES;

	if (ok && r->challenge)
		ok = MHD_add_response_header(m, MHD_HTTP_HEADER_WWW_AUTHENTICATE, r->challenge);
	if (ok && r->retry_after_s) {
		char s[24];

		(void)fw_snprintf(s, sizeof(s), "%lld", (long long)r->retry_after_s);
		ok = MHD_add_response_header(m, MHD_HTTP_HEADER_RETRY_AFTER, s);
	}
	ok = ok && MHD_add_response_header(m, "X-Request-Id", http_request_id(r));
	ok = ok ? cors_add(m, r->thread->h->config) : MHD_NO;
	if (ok && r->state == REQUEST_IN_POOL) { /* a pool thread: only the server thread may touch the connection */
		if (r->response)
			MHD_destroy_response(r->response);
		r->response = m;
		r->response_status = status;
		return MHD_YES;
	}
	if (ok)
		return http_queue(r, status, m);
	MHD_destroy_response(m);
	return MHD_NO;
}

enum MHD_Result http_queue(struct request *r, unsigned status, struct MHD_Response *m)
{
	enum MHD_Result ok;

	r->state = REQUEST_RESPONDED;
	r->log.status = status;
	if (!r->endless)
		conn_enter(r->c, CONN_SEND);
	ok = r->last ? MHD_add_response_header(m, MHD_HTTP_HEADER_CONNECTION, "close") : MHD_YES;
	ok = ok ? MHD_queue_response(r->conn, status, m) : MHD_NO;
	MHD_destroy_response(m);
	return ok;
}

static const struct {
	unsigned status;
	const char *body;
} CANNED[CANNED_N] = {
	[CANNED_TWIRP_OK] = {MHD_HTTP_OK, "{}"},
	[CANNED_ACCEPTED] = {MHD_HTTP_ACCEPTED, "{}"},
};

/* date NULL: libmicrohttpd adds it. */
static struct MHD_Response *canned_make(const struct http_thread *l, int which, const char *date)
{
	struct MHD_Response *m = response_make(CANNED[which].status, "application/json",
		(char *)(uintptr_t)CANNED[which].body, strlen(CANNED[which].body), MHD_RESPMEM_PERSISTENT);

	if (m && cors_add(m, l->h->config) && (!date || MHD_add_response_header(m, MHD_HTTP_HEADER_DATE, date)))
		return m;
	if (m)
		MHD_destroy_response(m);
	return NULL;
}

/*
 * The constant responses carry a Date, because libmicrohttpd would format one for each request.
 * They are rebuilt after a second. libmicrohttpd holds references to those that it still sends.
 */
static bool canned_fresh(struct http_thread *l)
{
	int64_t now_s = fw_now_ms() / 1000; /* wall clock: the header Date */
	char date[FW_RFC3339_MAX];

	if (l->canned_s == now_s)
		return true;
	http_canned_free(l);
	fw_http_date(date, now_s * 1000);
	for (int i = 0; i < CANNED_N; i++) {
		l->canned[i] = canned_make(l, i, date);
		if (!l->canned[i])
			return false;
	}
	l->canned_s = now_s;
	return true;
}

void http_canned_free(struct http_thread *l)
{
	for (size_t i = 0; i < CANNED_N; i++) {
		if (l->canned[i])
			MHD_destroy_response(l->canned[i]);
		l->canned[i] = NULL;
	}
	l->canned_s = 0;
}

enum MHD_Result http_canned(struct request *r, int which)
{
	if (r->last) { /* its Connection: close must not be in the shared response */
		struct MHD_Response *m = canned_make(r->thread, which, NULL);

		return m ? http_queue(r, CANNED[which].status, m) : MHD_NO;
	}
	r->state = REQUEST_RESPONDED;
	r->log.status = CANNED[which].status;
	r->log.bytes = (int64_t)strlen(CANNED[which].body);
	conn_enter(r->c, CONN_SEND);
	return canned_fresh(r->thread) ? MHD_queue_response(r->conn, CANNED[which].status, r->thread->canned[which]) :
					 MHD_NO;
}

/* member: one more, with a number; NULL: none. */
static void problem_body(struct fw_buf *out, unsigned status, const char *code, struct fw_str detail, const char *id,
	const char *member, int64_t value)
{
	struct fw_json j;

	fw_json_init(&j, out, false);
	fw_json_object(&j, NULL);
	fw_json_cstr(&j, "title", MHD_get_reason_phrase_for(status));
	fw_json_int(&j, "status", status);
	fw_json_cstr(&j, "code", code);
	fw_json_str(&j, "detail", detail);
	fw_json_cstr(&j, "request_id", id);
	if (member)
		fw_json_int(&j, member, value);
	fw_json_end(&j);
}

void http_problem_body(struct fw_buf *out, unsigned status, const char *code, struct fw_str detail, const char *id)
{
	problem_body(out, status, code, detail, id, NULL, 0);
}

static void twirp_problem_body(struct fw_buf *out, const char *code, struct fw_str msg)
{
	struct fw_json j;

	fw_json_init(&j, out, false);
	fw_json_object(&j, NULL);
	fw_json_cstr(&j, "code", code);
	fw_json_str(&j, "msg", msg);
	fw_json_end(&j);
}

static void miniflux_problem_body(struct fw_buf *out, struct fw_str words)
{
	struct fw_json j;

	fw_json_init(&j, out, false);
	fw_json_object(&j, NULL);
	fw_json_str(&j, "error_message", words);
	fw_json_end(&j);
}

enum MHD_Result http_problem(struct request *r, unsigned status, const char *code, const char *fmt, ...)
{
	struct fw_buf out = FW_BUF_INIT(0), words = FW_BUF_INIT(1000);
	va_list ap;

	va_start(ap, fmt);
	fw_buf_vaddf(&words, fmt, ap);
	va_end(ap);
	if (r->twirp)
		twirp_problem_body(&out, code, fw_buf_str(&words));
	else if (r->miniflux)
		miniflux_problem_body(&out, fw_buf_str(&words));
	else
		http_problem_body(&out, status, code, fw_buf_str(&words), http_request_id(r));
	fw_buf_finish(&words);
	atomic_fetch_add_explicit(&r->thread->refused_n, 1, memory_order_relaxed);
	return http_send(r, status, r->twirp || r->miniflux ? "application/json" : "application/problem+json", &out);
}

enum MHD_Result http_problem_number(
	struct request *r, unsigned status, const char *code, const char *member, int64_t value, const char *detail)
{
	struct fw_buf out = FW_BUF_INIT(0);

	problem_body(&out, status, code, fw_str(detail), http_request_id(r), member, value);
	atomic_fetch_add_explicit(&r->thread->refused_n, 1, memory_order_relaxed);
	return http_send(r, status, "application/problem+json", &out);
}

enum MHD_Result http_malformed(struct request *r, const json_error_t *je)
{
	return http_problem(r, MHD_HTTP_BAD_REQUEST, r->twirp ? "malformed" : "malformed_json",
		"the request body is not valid JSON: %s (line %d, column %d)", je->text, je->line, je->column);
}

/* The store's messages begin with its address, which clients must not see. */
static const char *store_error_text(const char *text)
{
	const char *words = strstr(text, ": ");

	return words ? words + 2 : text;
}

void http_store_note(struct request *r, int rc, const struct fw_err *err)
{
	if (r->limit.over) /* the request's fault, not the store's */
		return;
	r->store_rc = rc;
	if (r->store_err && r->store_err != err)
		*r->store_err = *err;
}

enum MHD_Result http_store_failed(struct request *r, int rc, const struct fw_err *err)
{
	if (rc == FW_ENOTFOUND)
		return http_problem(r, MHD_HTTP_NOT_FOUND, "not_found", "%s", store_error_text(err->text));
	if (rc == FW_EINVAL)
		return http_problem(r, MHD_HTTP_BAD_REQUEST, "invalid", "%s", store_error_text(err->text));
	if (rc == FW_EGONE)
		return http_problem(r, MHD_HTTP_SERVICE_UNAVAILABLE, "unavailable", "%s", err->text);
	fw_warn("%s %s: %s", r->route->method, r->route->path, err->text);
	http_store_note(r, rc, err);
	if (rc == FW_ENOMEM)
		return http_problem(r, MHD_HTTP_INTERNAL_SERVER_ERROR, "no_memory", "out of memory");
	if (r->limit.over)
		return http_problem(r, MHD_HTTP_SERVICE_UNAVAILABLE, "too_slow",
			"the request takes too long in the store: ask for less, such as fewer words or a shorter"
			" time");
	return http_problem(r, MHD_HTTP_SERVICE_UNAVAILABLE, "store_unavailable",
		"the store is unavailable (see the server's log)");
}
