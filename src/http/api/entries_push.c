/* SPDX-License-Identifier: ISC */
/*
 * POST /v1/feeds/{id}/entries: a publisher or an importer pushes entries. feedwheel/deliver.h
 * parses and stores them.
 *
 * The route runs in the blocking thread pool. While the store is busy, or other requests hold too
 * much memory, the job is run again every POOL_RETRY_MS, for up to BUSY_RETRY_MS, and keeps its
 * parsed document.
 *
 * Idempotency-Key: one record in the store for a feed, a client and a key, of kind "idempotency".
 * At first it says which process works on the request, and since when; after the commit it holds
 * the response. A request that fails removes its record, so a corrected one may use the key again.
 * After a crash between commit and response the next request with the key takes the record over and
 * stores the document again: all its entries are known then, and the counts of the first commit are
 * read from its visit, which has the time in the record.
 */
#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "feedwheel/deliver.h"
#include "api/view.h"
#include "http/server/http.h"

#define BUSY_RETRY_MS (5 * FW_SECOND_MS)
#define KEY_MAX 255
#define KEPT_MS FW_DAY_MS
#define RUNNING_MS \
	(30 * FW_SECOND_MS) /* a request takes less; after this time its server counts as dead, on any machine */
#define VISITS_BACK 1000
#define PROBLEMS_MAX 10
#define REPLAYED "Idempotent-Replayed"

/* of one request, over several runs */
struct entries_push {
	struct fw_delivery *delivery;
	int64_t until_ms;  /* monotonic: when retries end */
	size_t held_bytes; /* of http.entries_bytes */
	bool keyed;        /* the request has a key, and the record is its own */
	bool taken_over;   /* from a request that did not get to its response */
	int64_t began_ms;  /* Unix time of the first try */
	/*
	 * Identifies the request in this process. After a failed put it tells whether the record in
	 * the store is its own.
	 */
	int64_t nonce;
	struct entries_push *next;                    /* list of all in this process */
	char key[64];                                 /* the record's */
	char body[2 * sizeof(struct fw_hash128) + 1]; /* hash of the body and its type, in hex */
};

static struct entries_push *pushes_running;
static pthread_mutex_t pushes_lock = PTHREAD_MUTEX_INITIALIZER;
static char own_name[FW_WORKER_NAME_MAX];
static pthread_once_t own_name_once = PTHREAD_ONCE_INIT;

static void own_name_init(void)
{
	fw_worker_name(own_name, sizeof(own_name), -1);
}

static const struct fw_str IDEMPOTENCY_KIND = {"idempotency", sizeof("idempotency") - 1};

static struct entries_push *entries_push_create(const struct request *r)
{
	struct entries_push *p = calloc(1, sizeof(*p));
	static int64_t last;

	if (!p)
		return NULL;
	p->until_ms = fw_mono_ms() + BUSY_RETRY_MS;
	p->began_ms = http_now_ms(r);
	pthread_mutex_lock(&pushes_lock);
	p->nonce = last = FW_MAX(last + 1, fw_mono_us());
	p->next = pushes_running;
	pushes_running = p;
	pthread_mutex_unlock(&pushes_lock);
	return p;
}

static const char *own_name_get(void)
{
	pthread_once(&own_name_once, own_name_init);
	return own_name;
}

/*
 * Is the request that wrote this record still running? Processes on this machine can be checked,
 * others only by time.
 */
static bool key_is_in_progress(const struct request *r, const char *by, int64_t nonce, int64_t since_ms)
{
	bool found = false;

	if (!fw_str_eq(fw_str(by), fw_str(own_name_get())))
		return !fw_worker_is_dead(by) && http_now_ms(r) < since_ms + RUNNING_MS;
	pthread_mutex_lock(&pushes_lock);
	for (const struct entries_push *p = pushes_running; p && !found; p = p->next)
		found = p->nonce == nonce;
	pthread_mutex_unlock(&pushes_lock);
	return found;
}

bool http_entries_reserve(struct http *h, size_t *held, size_t bytes)
{
	int64_t others = atomic_fetch_add(&h->entries_bytes, (int64_t)bytes - (int64_t)*held) - (int64_t)*held;

	*held = bytes;
	return !others || others + (int64_t)bytes <= h->config->serve_memory_bytes;
}

static bool entries_push_reserve(struct request *r, size_t bytes)
{
	return http_entries_reserve(r->thread->h, &r->push->held_bytes, bytes);
}

void http_entries_push_free(struct request *r)
{
	if (!r->push)
		return;
	pthread_mutex_lock(&pushes_lock);
	for (struct entries_push **at = &pushes_running; *at; at = &(*at)->next) {
		if (*at == r->push) {
			*at = r->push->next;
			break;
		}
	}
	pthread_mutex_unlock(&pushes_lock);
	fw_delivery_close(r->push->delivery);
	(void)entries_push_reserve(r, 0);
	free(r->push);
	r->push = NULL;
}

/* ---- the key --------------------------------------------------------------------------------- */

static void hash_hex(struct fw_hash128 h, char out[2 * sizeof(struct fw_hash128) + 1])
{
	static const char DIGIT[] = "0123456789abcdef";

	for (size_t i = 0; i < sizeof(h.b); i++) {
		out[2 * i] = DIGIT[h.b[i] >> 4];
		out[2 * i + 1] = DIGIT[h.b[i] & 15];
	}
	out[2 * sizeof(h.b)] = '\0';
}

static bool key_is_valid(struct fw_str key)
{
	for (size_t i = 0; i < key.len; i++) {
		if (key.p[i] < 0x20 || key.p[i] > 0x7e)
			return false;
	}
	return key.len > 0 && key.len <= KEY_MAX;
}

/* Set the record's key and the hash of the body. */
static void key_make(struct request *r, struct fw_str key, struct fw_str type)
{
	char hash[sizeof(r->push->body)];
	struct fw_hasher h;

	fw_hasher_init(&h);
	/*
	 * a client is identified by its token; clients without one, all on this machine, count as
	 * one
	 */
	fw_hasher_add(&h, fw_str(MHD_lookup_connection_value(r->conn, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION)));
	fw_hasher_add(&h, key);
	hash_hex(fw_hasher_end128(&h), hash);
	(void)fw_snprintf(r->push->key, sizeof(r->push->key), "%lld/%s", (long long)r->id, hash);
	fw_hasher_init(&h);
	fw_hasher_add(&h, type);
	fw_hasher_add(&h, fw_buf_str(&r->body));
	hash_hex(fw_hasher_end128(&h), r->push->body);
}

/* Write the record's value. status 0: the request is in progress. */
static void key_value(const struct request *r, unsigned status, struct fw_str answer, struct fw_buf *out)
{
	struct fw_json j;

	fw_json_init(&j, out, false);
	fw_json_object(&j, NULL);
	fw_json_cstr(&j, "body", r->push->body);
	if (status) {
		fw_json_int(&j, "status", status);
		fw_json_str(&j, "answer", answer);
	} else {
		fw_json_cstr(&j, "by", own_name_get());
		fw_json_int(&j, "nonce", r->push->nonce);
		fw_json_int(&j, "began_ms", r->push->began_ms);
	}
	fw_json_end(&j);
}

static int key_put(struct request *r, unsigned status, struct fw_str answer, bool *was, struct fw_err *err)
{
	struct fw_buf value = FW_BUF_INIT(0);
	struct fw_record record = {.kind = IDEMPOTENCY_KIND, .key = fw_str(r->push->key), .at_ms = http_now_ms(r)};
	int rc;

	key_value(r, status, answer, &value);
	record.value = fw_buf_str(&value);
	record.until_ms = record.at_ms + KEPT_MS;
	rc = value.rc ? fw_err_set(err, FW_ENOMEM, "out of memory") :
			fw_store_record_put(r->store, &record, !status, was, err);
	fw_buf_finish(&value);
	return rc;
}

/*
 * Remove the record, so that the key can be used again. If the store is unavailable, the record
 * expires.
 */
static void key_remove(struct request *r)
{
	struct fw_buf value = FW_BUF_INIT(0);
	int rc;

	if (!r->push->keyed)
		return;
	key_value(r, 0, FW_STR_NONE, &value);
	rc = value.rc ?
		FW_ENOMEM :
		fw_store_record_remove(r->store, IDEMPOTENCY_KIND, fw_str(r->push->key), fw_buf_str(&value), NULL);
	r->push->keyed = rc && rc != FW_ENOTFOUND; /* not found: another request has taken the record over */
	fw_buf_finish(&value);
}

static enum MHD_Result key_replay(struct request *r, unsigned status, const json_t *answer)
{
	struct MHD_Response *m = MHD_create_response_from_buffer(
		json_string_length(answer), (char *)(uintptr_t)json_string_value(answer), MHD_RESPMEM_MUST_COPY);

	if (!m || MHD_add_response_header(m, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json") == MHD_NO ||
		MHD_add_response_header(m, REPLAYED, "true") == MHD_NO) {
		if (m)
			MHD_destroy_response(m);
		return MHD_NO;
	}
	return http_respond(r, status, m);
}

static enum MHD_Result key_respond_in_progress(struct request *r)
{
	return http_problem(r, MHD_HTTP_CONFLICT, "in_progress",
		"a request with this Idempotency-Key is in progress (retry later)");
}

/*
 * A record with this key exists. Replay its response, or respond with an error. *again: its request
 * is dead, and the record was removed: put it again. The removal compares the value, because the
 * record may have become a response meanwhile.
 */
static enum MHD_Result key_found(struct request *r, const struct fw_record *record, const json_t *o, bool *again)
{
	const json_t *body = json_object_get(o, "body"), *status = json_object_get(o, "status");
	const char *by = json_string_value(json_object_get(o, "by"));
	int64_t nonce = json_integer_value(json_object_get(o, "nonce"));
	struct fw_err err = {0};
	bool same;
	int rc;

	*again = false;
	if (by && nonce == r->push->nonce && fw_str_eq(fw_str(by), fw_str(own_name_get()))) {
		r->push->keyed = true;
		return MHD_YES;
	}
	same = json_is_string(body) && fw_str_eq(fw_str(json_string_value(body)), fw_str(r->push->body));
	if (!same && (status || http_now_ms(r) < record->at_ms + RUNNING_MS))
		return http_problem(r, MHD_HTTP_UNPROCESSABLE_CONTENT, "key_reused",
			"this Idempotency-Key was used with another body before");
	if (json_is_integer(status))
		return key_replay(r, (unsigned)json_integer_value(status), json_object_get(o, "answer"));
	if (!by || key_is_in_progress(r, by, nonce, record->at_ms))
		return key_respond_in_progress(r);
	if (same) {
		r->push->taken_over = true;
		r->push->began_ms = json_integer_value(json_object_get(o, "began_ms"));
	}
	rc = fw_store_record_remove(r->store, IDEMPOTENCY_KIND, fw_str(r->push->key), record->value, &err);
	*again = !rc || rc == FW_ENOTFOUND;
	return *again ? MHD_YES : http_store_failed(r, rc, &err);
}

/* Put the record (r->push->keyed), or respond. */
static enum MHD_Result key_acquire(struct request *r)
{
	enum MHD_Result ok = MHD_YES;
	bool was = true, again = true;
	struct fw_err err = {0};
	struct fw_arena a;
	int rc = 0;

	fw_arena_init(&a, 0);
	for (int i = 0; i < 2 && again && !rc; i++) {
		struct fw_record record;
		json_t *o;

		rc = key_put(r, 0, FW_STR_NONE, &was, &err);
		if (rc || !was)
			break;
		rc = fw_store_record_get(r->store, IDEMPOTENCY_KIND, fw_str(r->push->key), &a, &record, &err);
		if (rc == FW_ENOTFOUND) { /* it was removed meanwhile: try again */
			rc = 0;
			continue;
		}
		o = rc ? NULL : json_loadb(record.value.p, record.value.len, 0, NULL);
		if (!rc)
			ok = key_found(r, &record, o, &again);
		json_decref(o);
	}
	fw_arena_finish(&a);
	r->push->keyed |= !rc && !was;
	if (rc)
		return http_store_failed(r, rc, &err);
	return r->push->keyed || r->response ? ok : key_respond_in_progress(r);
}

/* ---- responses ------------------------------------------------------------------------------- */

static void problems_add(struct fw_json *j, const struct fw_document *doc)
{
	const struct fw_problem *p = doc->problems;

	if (!p)
		return;
	fw_json_array(j, "problems");
	for (int i = 0; p && i < PROBLEMS_MAX; p = p->next, i++) {
		fw_json_object(j, NULL);
		fw_json_int(j, "line", p->line);
		fw_json_int(j, "column", p->column);
		fw_json_cstr(j, "what", p->what);
		fw_json_cstr(j, "repair", p->repair);
		fw_json_end(j);
	}
	fw_json_end(j);
}

/* Callback for visits, newest first: keep the oldest that matches the first try. */
static int first_visit_find(void *ctx, const struct fw_visit *v)
{
	struct fw_visit *like = ctx;

	if (v->kind == FW_VISIT_PUSHED && v->at_ms == like->at_ms && v->wire_bytes == like->wire_bytes &&
		v->item_n == like->item_n) {
		*like = *v;
		like->error = like->feed_url = FW_STR_NONE;
	}
	return 0;
}

/* After a takeover: restore the counts of the first commit, if there was one. */
static void first_counts_restore(struct request *r, struct fw_delivery_result *d)
{
	struct fw_visit_query q = {.feed_id = r->id, .limit = VISITS_BACK};
	struct fw_visit found = d->visit;
	struct fw_err err = {0};
	size_t row_n = d->entry_n - d->repeat_n;

	if (!r->push->taken_over || d->known_n != row_n)
		return;
	if (fw_store_visit_list(r->store, &q, first_visit_find, &found, &err)) {
		fw_warn("counts of the first request with an Idempotency-Key are unknown: %s", err.text);
		return;
	}
	d->visit = found;
	d->known_n = row_n - found.new_n - found.changed_n;
}

static enum MHD_Result entries_push_respond(struct request *r, const struct fw_delivery_result *d)
{
	const struct fw_document *doc = fw_delivery_document(r->push->delivery);
	struct fw_buf out = FW_BUF_INIT(0);
	struct fw_err err = {0};
	struct http *h = r->thread->h;
	struct fw_json j;
	bool was;

	atomic_fetch_add(&h->delivery_n, 1);
	atomic_fetch_add(&h->delivered_new_n, d->visit.new_n);
	atomic_fetch_add(&h->delivered_changed_n, d->visit.changed_n);
	fw_json_init(&j, &out, false);
	fw_json_object(&j, NULL);
	fw_json_int(&j, "feed", r->id);
	fw_json_cstr(&j, "format", fw_format_name(doc->format));
	fw_json_int(&j, "entries", (int64_t)d->entry_n);
	fw_json_int(&j, "new", d->visit.new_n);
	fw_json_int(&j, "changed", d->visit.changed_n);
	fw_json_int(&j, "known", (int64_t)d->known_n);
	fw_json_int(&j, "repeated", (int64_t)d->repeat_n);
	if (!d->entry_n)
		fw_json_cstr(&j, "note", "the document holds no entries");
	problems_add(&j, doc);
	fw_visit_json(&j, "visit", &d->visit);
	fw_json_end(&j);
	/* the entries are stored, so the response is 200 even if its record cannot be put */
	if (r->push->keyed && !out.rc && key_put(r, MHD_HTTP_OK, fw_buf_str(&out), &was, &err))
		fw_warn("the response to an Idempotency-Key could not be stored: %s", err.text);
	return http_send(r, MHD_HTTP_OK, "application/json", &out);
}

/* Respond with the error. http_store_failed() keeps the store's own messages from the client. */
static enum MHD_Result entries_push_fail(struct request *r, int rc, const struct fw_err *err)
{
	if (rc != FW_EIO) {
		key_remove(r);
		fw_delivery_close(r->push->delivery);
		r->push->delivery = NULL;
		(void)entries_push_reserve(r, 0);
	}
	switch (rc) {
	case FW_EUNSUP:
		return http_problem(r, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE, "unsupported_type", "%s", err->text);
	case FW_EINVAL:
		return http_problem(r, MHD_HTTP_BAD_REQUEST, "malformed", "%s", err->text);
	case FW_EFORMAT:
		return http_problem(r, MHD_HTTP_UNPROCESSABLE_CONTENT, "not_a_feed", "%s", err->text);
	case FW_ELIMIT:
		return http_problem(r, MHD_HTTP_CONTENT_TOO_LARGE, "too_large", "%s", err->text);
	case FW_EGONE:
		return http_problem(r, MHD_HTTP_CONFLICT, "not_active", "%s", err->text);
	case FW_ENOTFOUND:
		return http_problem(
			r, MHD_HTTP_NOT_FOUND, "not_found", "no feed has the number %lld", (long long)r->id);
	default:
		return http_store_failed(r, rc, err);
	}
}

/* ---- the route ------------------------------------------------------------------------------- */

/* Other requests hold too much memory: run again later, until until_ms. */
static enum MHD_Result entries_push_delay(struct request *r)
{
	(void)entries_push_reserve(r, 0);
	r->retry = fw_mono_ms() < r->push->until_ms;
	if (!r->retry)
		key_remove(r);
	return r->retry ? MHD_YES :
			  http_problem(r, MHD_HTTP_SERVICE_UNAVAILABLE, "unavailable",
				  "all memory for pushed entries is in use by other requests (serve_memory_bytes)");
}

static enum MHD_Result entries_push_begin(struct request *r)
{
	struct fw_str key = fw_str(MHD_lookup_connection_value(r->conn, MHD_HEADER_KIND, "Idempotency-Key"));
	struct fw_delivery_input in = {.feed_id = r->id,
		.body = fw_buf_str(&r->body),
		.strict = true,
		.content_type = fw_str(
			MHD_lookup_connection_value(r->conn, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_TYPE))};
	struct fw_err err = {0};
	enum MHD_Result ok = MHD_YES;
	int rc;

	if (key.p && !key_is_valid(key))
		return http_problem(r, MHD_HTTP_BAD_REQUEST, "invalid_key",
			"invalid Idempotency-Key (use 1 to %d printable ASCII characters)", KEY_MAX);
	if (!entries_push_reserve(r, fw_delivery_estimate(r->thread->h->config, r->body.len)))
		return entries_push_delay(r);
	if (key.p && !r->push->keyed) {
		key_make(r, key, in.content_type);
		ok = key_acquire(r);
	}
	if (r->response)
		return ok;
	in.at_ms = r->push->began_ms;
	rc = fw_delivery_open(r->store, r->thread->h->config, &in, &r->push->delivery, &err);
	if (rc)
		return entries_push_fail(r, rc, &err);
	(void)entries_push_reserve(r, fw_delivery_bytes(r->push->delivery)); /* instead of the estimate */
	return MHD_YES;
}

enum MHD_Result http_entries_push(struct request *r)
{
	struct fw_delivery_result got;
	struct fw_err err = {0};
	enum MHD_Result ok = MHD_YES;
	bool room;
	int rc;

	if (!r->push) {
		r->push = entries_push_create(r);
		if (!r->push)
			return MHD_NO;
	}
	if (!r->push->delivery)
		ok = entries_push_begin(r);
	if (!r->push->delivery)
		return ok;
	rc = fw_delivery_store(r->push->delivery, r->store, &got, &err);
	room = entries_push_reserve(r, fw_delivery_bytes(r->push->delivery));
	if (rc == FW_EAGAIN && fw_mono_ms() < r->push->until_ms && room) {
		r->retry = true;
		return MHD_YES;
	}
	if (rc)
		return entries_push_fail(r, rc, &err);
	first_counts_restore(r, &got);
	return entries_push_respond(r, &got);
}
