/* SPDX-License-Identifier: ISC */
/*
 * POST /v1/feeds/{id}/entries: a publisher or an importer brings entries; feedwheel/deliver.h does the work.
 *
 * It runs at the desk. A store that is busy is waited for: the job comes again a little later, as long as that is worth it, and keeps what
 * it has read meanwhile.
 *
 * Idempotency-Key: a record of kind "idempotency", for a feed, a client and a key. First it says that somebody is at it, who, and since
 * when; then what the answer was. What fails leaves none behind: the same key may come again, mended. A crash between the commit and the
 * answer's record leaves room for the work to be done once more. It then finds all entries known; what the first commit found is told by
 * its visit, which has the time that the record says.
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
#include "http/http.h"
#include "base/banned.h"

#define BUSY_PATIENCE_MS (5 * FW_SECOND_MS)
#define KEY_MAX 255
#define KEPT_MS FW_DAY_MS
#define RUNNING_MS (30 * FW_SECOND_MS) /* longer than one takes: then its server is taken to be dead, also on another machine */
#define VISITS_BACK 1000
#define PROBLEMS_MAX 10
#define REPLAYED "Idempotent-Replayed"

struct entries_push { /* a request's, over several runs */
	struct fw_delivery *delivery;
	int64_t until_ms;            /* monotonic: the end of patience */
	size_t held_bytes;           /* of http.entries_bytes */
	bool keyed;                  /* there is a key, and the record is ours */
	bool taken_over;             /* from one that did not come to its answer */
	int64_t began_ms;            /* Unix time, of the first try */
	int64_t nonce;               /* by which it is known in this process, should a broken store leave open whether it was put */
	struct entries_push *next;   /* of all in this process */
	char key[64];                /* of the record */
	char body[2 * sizeof(struct fw_hash128) + 1];
};

static struct entries_push *all;
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static char own_name[FW_WORKER_NAME_MAX];
static pthread_once_t named = PTHREAD_ONCE_INIT;

static void name_make(void)
{
	fw_worker_name(own_name, sizeof(own_name), -1);
}

static const struct fw_str KIND = {"idempotency", sizeof("idempotency") - 1};

static struct entries_push *push_new(void)
{
	struct entries_push *p = calloc(1, sizeof(*p));
	static int64_t last;

	if (!p)
		return NULL;
	p->until_ms = fw_mono_ms() + BUSY_PATIENCE_MS;
	p->began_ms = fw_now_ms();
	pthread_mutex_lock(&all_lock);
	p->nonce = last = FW_MAX(last + 1, fw_mono_us());
	p->next = all;
	all = p;
	pthread_mutex_unlock(&all_lock);
	return p;
}

static const char *us(void)
{
	pthread_once(&named, name_make);
	return own_name;
}

/* Is the request that wrote such a record still in hand? Of other processes on this machine one knows whether they live. */
static bool is_at_it(const char *by, int64_t nonce, int64_t since_ms)
{
	bool found = false;

	if (!fw_str_eq(fw_str(by), fw_str(us())))
		return !fw_worker_is_dead(by) && fw_now_ms() < since_ms + RUNNING_MS;
	pthread_mutex_lock(&all_lock);
	for (const struct entries_push *p = all; p && !found; p = p->next)
		found = p->nonce == nonce;
	pthread_mutex_unlock(&all_lock);
	return found;
}

bool http_entries_hold(struct http *h, size_t *held, size_t bytes)
{
	int64_t others = atomic_fetch_add(&h->entries_bytes, (int64_t)bytes - (int64_t)*held) - (int64_t)*held;

	*held = bytes;
	return !others || others + (int64_t)bytes <= h->config->serve_memory_bytes;
}

static bool hold(struct request *r, size_t bytes)
{
	return http_entries_hold(r->lane->h, &r->push->held_bytes, bytes);
}

void http_entries_push_free(struct request *r)
{
	if (!r->push)
		return;
	pthread_mutex_lock(&all_lock);
	for (struct entries_push **at = &all; *at; at = &(*at)->next) {
		if (*at == r->push) {
			*at = r->push->next;
			break;
		}
	}
	pthread_mutex_unlock(&all_lock);
	fw_delivery_close(r->push->delivery);
	(void)hold(r, 0);
	free(r->push);
	r->push = NULL;
}

/* ---- the key --------------------------------------------------------------------------------------------------------------------- */

static void hex(struct fw_hash128 h, char out[2 * sizeof(struct fw_hash128) + 1])
{
	static const char DIGIT[] = "0123456789abcdef";

	for (size_t i = 0; i < sizeof(h.b); i++) {
		out[2 * i] = DIGIT[h.b[i] >> 4];
		out[2 * i + 1] = DIGIT[h.b[i] & 15];
	}
	out[2 * sizeof(h.b)] = '\0';
}

static bool key_is_good(struct fw_str key)
{
	for (size_t i = 0; i < key.len; i++) {
		if (key.p[i] < 0x20 || key.p[i] > 0x7e)
			return false;
	}
	return key.len > 0 && key.len <= KEY_MAX;
}

/* Its record's key, and what tells this body from others. */
static void key_make(struct request *r, struct fw_str key, struct fw_str type)
{
	char hash[sizeof(r->push->body)];
	struct fw_hasher h;

	fw_hasher_init(&h);
	/* a client is its token; those without one, all on this machine, are one */
	fw_hasher_add(&h, fw_str(MHD_lookup_connection_value(r->conn, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION)));
	fw_hasher_add(&h, key);
	hex(fw_hasher_end128(&h), hash);
	(void)fw_snprintf(r->push->key, sizeof(r->push->key), "%lld/%s", (long long)r->id, hash);
	fw_hasher_init(&h);
	fw_hasher_add(&h, type);
	fw_hasher_add(&h, fw_buf_str(&r->body));
	hex(fw_hasher_end128(&h), r->push->body);
}

/* What the record says; status 0: somebody is at it. */
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
		fw_json_cstr(&j, "by", us());
		fw_json_int(&j, "nonce", r->push->nonce);
		fw_json_int(&j, "began_ms", r->push->began_ms);
	}
	fw_json_end(&j);
}

static int key_put(struct request *r, unsigned status, struct fw_str answer, bool *was, struct fw_err *err)
{
	struct fw_buf value = FW_BUF_INIT(0);
	struct fw_record rec = {.kind = KIND, .key = fw_str(r->push->key), .at_ms = fw_now_ms()};
	int rc;

	key_value(r, status, answer, &value);
	rec.value = fw_buf_str(&value);
	rec.until_ms = rec.at_ms + KEPT_MS;
	rc = value.rc ? fw_err_set(err, FW_ENOMEM, "out of memory") : fw_store_record_put(r->store, &rec, !status, was, err);
	fw_buf_finish(&value);
	return rc;
}

/* What failed may come again. When the store is away the record stays until its time is over. */
static void key_forget(struct request *r)
{
	struct fw_buf value = FW_BUF_INIT(0);
	int rc;

	if (!r->push->keyed)
		return;
	key_value(r, 0, FW_STR_NONE, &value);
	rc = value.rc ? FW_ENOMEM : fw_store_record_remove(r->store, KIND, fw_str(r->push->key), fw_buf_str(&value), NULL);
	r->push->keyed = rc && rc != FW_ENOTFOUND; /* not found: it took too long, and another has taken it over */
	fw_buf_finish(&value);
}

static enum MHD_Result replay(struct request *r, unsigned status, const json_t *answer)
{
	struct MHD_Response *m = MHD_create_response_from_buffer(json_string_length(answer), (char *)(uintptr_t)json_string_value(answer),
		MHD_RESPMEM_MUST_COPY);

	if (!m || MHD_add_response_header(m, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json") == MHD_NO ||
	    MHD_add_response_header(m, REPLAYED, "true") == MHD_NO) {
		if (m)
			MHD_destroy_response(m);
		return MHD_NO;
	}
	return http_answer(r, status, m);
}

static enum MHD_Result in_progress(struct request *r)
{
	return http_problem(r, MHD_HTTP_CONFLICT, "in_progress", "a request with this Idempotency-Key is being worked on: ask again");
}

/*
 * A record is there: its answer, or why there is none. *again: nobody is at it any more, and it is gone. Since it was read it may have
 * become an answer, and its request have left: only what was read is taken away.
 */
static enum MHD_Result key_found(struct request *r, const struct fw_record *rec, const json_t *o, bool *again)
{
	const json_t *body = json_object_get(o, "body"), *status = json_object_get(o, "status");
	const char *by = json_string_value(json_object_get(o, "by"));
	int64_t nonce = json_integer_value(json_object_get(o, "nonce"));
	struct fw_err err = {0};
	bool same;
	int rc;

	*again = false;
	if (by && nonce == r->push->nonce && fw_str_eq(fw_str(by), fw_str(us()))) {
		r->push->keyed = true;
		return MHD_YES;
	}
	same = json_is_string(body) && fw_str_eq(fw_str(json_string_value(body)), fw_str(r->push->body));
	if (!same && (status || fw_now_ms() < rec->at_ms + RUNNING_MS))
		return http_problem(r, MHD_HTTP_UNPROCESSABLE_CONTENT, "key_reused", "this Idempotency-Key came with another body before");
	if (json_is_integer(status))
		return replay(r, (unsigned)json_integer_value(status), json_object_get(o, "answer"));
	if (!by || is_at_it(by, nonce, rec->at_ms))
		return in_progress(r);
	if (same) {
		r->push->taken_over = true;
		r->push->began_ms = json_integer_value(json_object_get(o, "began_ms"));
	}
	rc = fw_store_record_remove(r->store, KIND, fw_str(r->push->key), rec->value, &err);
	*again = !rc || rc == FW_ENOTFOUND;
	return *again ? MHD_YES : http_store_failed(r, rc, &err);
}

/* The record is ours, or the request is answered. */
static enum MHD_Result key_take(struct request *r)
{
	enum MHD_Result ok = MHD_YES;
	bool was = true, again = true;
	struct fw_err err = {0};
	struct fw_arena a;
	int rc = 0;

	fw_arena_init(&a, 0);
	for (int i = 0; i < 2 && again && !rc; i++) {
		struct fw_record rec;
		json_t *o;

		rc = key_put(r, 0, FW_STR_NONE, &was, &err);
		if (rc || !was)
			break;
		rc = fw_store_record_get(r->store, KIND, fw_str(r->push->key), &a, &rec, &err);
		if (rc == FW_ENOTFOUND) { /* it went meanwhile: once more */
			rc = 0;
			continue;
		}
		o = rc ? NULL : json_loadb(rec.value.p, rec.value.len, 0, NULL);
		if (!rc)
			ok = key_found(r, &rec, o, &again);
		json_decref(o);
	}
	fw_arena_finish(&a);
	r->push->keyed |= !rc && !was;
	if (rc)
		return http_store_failed(r, rc, &err);
	return r->push->keyed || r->answer ? ok : in_progress(r);
}

/* ---- answers --------------------------------------------------------------------------------------------------------------------- */

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

/* Of visits, newest first: the oldest one that is the first try's. */
static int first_try(void *ctx, const struct fw_visit *v)
{
	struct fw_visit *like = ctx;

	if (v->kind == FW_VISIT_PUSHED && v->at_ms == like->at_ms && v->wire_bytes == like->wire_bytes && v->item_n == like->item_n) {
		*like = *v;
		like->error = like->feed_url = FW_STR_NONE;
	}
	return 0;
}

/* What the one from whom this was taken over would have said, if it got as far as the commit. */
static void tell_as_first(struct request *r, struct fw_delivered *d)
{
	struct fw_visit_query q = {.feed_id = r->id, .limit = VISITS_BACK};
	struct fw_visit found = d->visit;
	struct fw_err err = {0};
	size_t row_n = d->entry_n - d->repeat_n;

	if (!r->push->taken_over || d->known_n != row_n)
		return;
	if (fw_store_visit_list(r->store, &q, first_try, &found, &err)) {
		fw_warn("what came of the first try of an Idempotency-Key is not known: %s", err.text);
		return;
	}
	d->visit = found;
	d->known_n = row_n - found.new_n - found.changed_n;
}

static enum MHD_Result stored(struct request *r, const struct fw_delivered *d)
{
	const struct fw_document *doc = fw_delivery_document(r->push->delivery);
	struct fw_buf out = FW_BUF_INIT(0);
	struct fw_err err = {0};
	struct http *h = r->lane->h;
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
	/* it is stored; that the answer cannot be kept is no reason to say otherwise */
	if (r->push->keyed && !out.rc && key_put(r, MHD_HTTP_OK, fw_buf_str(&out), &was, &err))
		fw_warn("the answer to an Idempotency-Key was not kept: %s", err.text);
	return http_send(r, MHD_HTTP_OK, "application/json", &out);
}

/* What the store itself says names it, and is for its owner. */
static enum MHD_Result failed(struct request *r, int rc, const struct fw_err *err)
{
	if (rc != FW_EIO) {
		key_forget(r);
		fw_delivery_close(r->push->delivery);
		r->push->delivery = NULL;
		(void)hold(r, 0);
	}
	switch (rc) {
	case FW_EUNSUP: return http_problem(r, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE, "unsupported_type", "%s", err->text);
	case FW_EINVAL: return http_problem(r, MHD_HTTP_BAD_REQUEST, "malformed", "%s", err->text);
	case FW_EFORMAT: return http_problem(r, MHD_HTTP_UNPROCESSABLE_CONTENT, "not_a_feed", "%s", err->text);
	case FW_ELIMIT: return http_problem(r, MHD_HTTP_CONTENT_TOO_LARGE, "too_large", "%s", err->text);
	case FW_EGONE: return http_problem(r, MHD_HTTP_CONFLICT, "not_active", "%s", err->text);
	case FW_ENOTFOUND: return http_problem(r, MHD_HTTP_NOT_FOUND, "not_found", "no feed has the number %lld", (long long)r->id);
	default: return http_store_failed(r, rc, err);
	}
}

/* ---- the way of a request ------------------------------------------------------------------------------------------------------- */

/* Others hold too much to read it now: a little later, as long as that is worth it. */
static enum MHD_Result no_room(struct request *r)
{
	(void)hold(r, 0);
	r->again = fw_mono_ms() < r->push->until_ms;
	if (!r->again)
		key_forget(r);
	return r->again ? MHD_YES : http_problem(r, MHD_HTTP_SERVICE_UNAVAILABLE, "unavailable",
		"the entries of other requests take all the memory that may be: serve_memory_bytes");
}

static enum MHD_Result begin(struct request *r)
{
	struct fw_str key = fw_str(MHD_lookup_connection_value(r->conn, MHD_HEADER_KIND, "Idempotency-Key"));
	struct fw_delivery_in in = {.feed_id = r->id, .body = fw_buf_str(&r->body), .strict = true,
		.content_type = fw_str(MHD_lookup_connection_value(r->conn, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_TYPE))};
	struct fw_err err = {0};
	enum MHD_Result ok = MHD_YES;
	int rc;

	if (key.p && !key_is_good(key))
		return http_problem(r, MHD_HTTP_BAD_REQUEST, "bad_key", "Idempotency-Key: 1 to %d printable characters", KEY_MAX);
	if (!hold(r, fw_delivery_estimate(r->lane->h->config, r->body.len)))
		return no_room(r);
	if (key.p && !r->push->keyed) {
		key_make(r, key, in.content_type);
		ok = key_take(r);
	}
	if (r->answer)
		return ok;
	in.at_ms = r->push->began_ms;
	rc = fw_delivery_open(r->store, r->lane->h->config, &in, &r->push->delivery, &err);
	if (rc)
		return failed(r, rc, &err);
	(void)hold(r, fw_delivery_bytes(r->push->delivery)); /* it is there now */
	return MHD_YES;
}

enum MHD_Result http_entries_push(struct request *r)
{
	struct fw_delivered got;
	struct fw_err err = {0};
	enum MHD_Result ok = MHD_YES;
	bool room;
	int rc;

	if (!r->push) {
		r->push = push_new();
		if (!r->push)
			return MHD_NO;
	}
	if (!r->push->delivery)
		ok = begin(r);
	if (!r->push->delivery)
		return ok;
	rc = fw_delivery_store(r->push->delivery, r->store, &got, &err);
	room = hold(r, fw_delivery_bytes(r->push->delivery));
	if (rc == FW_EAGAIN && fw_mono_ms() < r->push->until_ms && room) {
		r->again = true;
		return MHD_YES;
	}
	if (rc)
		return failed(r, rc, &err);
	tell_as_first(r, &got);
	return stored(r, &got);
}
