/* SPDX-License-Identifier: ISC */
/*
 * Inside the front door: what its files share. Nobody else includes this, and no other room knows libmicrohttpd.
 *
 * Each serving thread, a lane, runs requests one after another and never blocks: it reads the body, answers from memory, or puts
 * rows into its own lane's ring. A push that wants to know that it is stored is suspended, and resumed by the flusher; what needs the
 * store is suspended, answered by one of the desk's threads, and resumed.
 */
#ifndef FW_HTTP_HTTP_H
#define FW_HTTP_HTTP_H

#include <microhttpd.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cidr.h"
#include "base/json.h"
#include "base/str.h"
#include "feedwheel/ingest.h"
#include "api/websub.h"
#include "http/accept.h"
#include "http/auth.h"
#include "http/conns.h"
#include "http/desk.h"
#include "http/events.h"
#include "http/lane.h"
#include "http/stream.h"
#include "http/tokenless.h"

struct fw_view_cache;
struct http;
struct request;

#define HTTP_ALLOW_MAX 40
#define HTTP_ID_MAX 64
#define HTTP_TOKEN_MAX 64

enum { CANNED_TWIRP_OK, CANNED_ACCEPTED, CANNED_N }; /* answers that never differ but for their date: made once a second and thread */

struct http_lane { /* one server thread */
	struct http *h;
	struct lane *thread;
	struct fw_lane_in *in;
	struct MHD_Response *canned[CANNED_N];
	int64_t canned_s;            /* Unix time, seconds: their date */
	struct auth_view auth;       /* tokens that this thread knows */
	struct request *spare;       /* requests to use again */
	size_t spare_n;
	size_t body_bytes;           /* held by the bodies of its requests */
	_Atomic uint64_t request_n, refused_n; /* all; answered 4xx or 5xx */
};

#define HTTP_PROXIES_MAX 64
struct http_proxies {                /* whose word on the client's address counts */
	struct fw_cidr net[HTTP_PROXIES_MAX];
	size_t net_n;
	bool local;                  /* and that of who comes over a unix socket */
};

struct http_hops {                   /* what proxies say, read from left to right */
	unsigned char addr[16];
	bool known;
};

struct http_tls {
	char *key, *cert;            /* PEM; NULL: plain HTTP */
};

struct http {
	const struct fw_config *config;
	struct fw_meter *meter;
	struct http_proxies proxies;
	struct event_rules rules;
	_Atomic bool started;        /* what libmicrohttpd says from then on is of somebody's connection */
	struct fw_ingest *ingest;
	struct desk *desk;
	struct fw_view_cache *views; /* contents made safe */
	struct auth *auth;
	struct conns *conns;
	struct http_accept *accept;
	struct http_log *log;        /* of accesses; NULL: none */
	struct http_tls tls;
	size_t lane_body_max;
	uint64_t id_base;            /* of request ids: differs from start to start */
	struct chores *chores;
	struct fw_hubs *hubs;        /* NULL: websub_url is unset */
	struct buckets *pushes;      /* what hubs send, by callback */
	_Atomic uint64_t push_wait_n; /* of that answered 429 */
	struct stream *stream;
	size_t lane_n;
	_Atomic int64_t suspended_n;
	_Atomic int64_t entries_bytes; /* of entries that are being read, or wait to be stored: as much as of bodies, at most */
	_Atomic uint64_t delivery_n, delivered_new_n, delivered_changed_n; /* entries that were brought, and stored */
	struct http_lane *lane;
};

enum request_state {
	REQUEST_BODY,
	REQUEST_REFUSED,             /* its body is read to the end, and dropped */
	REQUEST_WAITS,               /* suspended: a push for its commit */
	REQUEST_DESK,                /* suspended: at the desk, which makes its answer */
	REQUEST_DESK_DONE,           /* resumed, with that answer */
	REQUEST_ANSWERED,
};

enum scope { SCOPE_OPEN /* to everybody */, SCOPE_PUSH, SCOPE_READ, SCOPE_ADMIN, SCOPE_PATH /* who knows it may */ };

/* What answers a path. */
struct route {
	const char *method;          /* GET answers HEAD too */
	const char *path;            /* "/v1/feeds/{id}": a number above 0 stands there, it becomes r->id; {token}, at the end: letters and
	                                digits, r->token */
	enum MHD_Result (*run)(struct request *r); /* the body is there */
	const char *params;          /* words: what may stand behind "?", all else is refused; NULL: nobody looks */
	size_t body_max;             /* 0: it takes none */
	enum body_type body;         /* what its Content-Type has to be */
	enum scope scope;            /* who may ask */
	bool desk;                   /* it needs the store: run is called by a desk's thread, with r->store */
	bool raw;                    /* its body stays as it came, for that is what was signed: it is unpacked by http_body_unpack() */
	bool repeat;                 /* with desk: run again when the store broke; GET always is */
};

struct request {
	struct http_lane *lane;
	struct MHD_Connection *conn;
	struct conn *c;              /* the same, with its time limits */
	bool endless;                /* its answer is a stream: no limit to how long that takes */
	uint64_t number;             /* among the lane's */
	char request_id[HTTP_ID_MAX + 1]; /* "": not asked for yet */
	struct {
		const char *path, *method;
		int64_t from_us, bytes;
		unsigned status;
	} log;                       /* with a log of accesses only */
	const struct route *route;
	bool twirp;                  /* the path is Twirp's: answers and errors have its form */
	int64_t id;                  /* of the path */
	char token[HTTP_TOKEN_MAX + 1]; /* of the path: a secret */
	bool head;                   /* the method is HEAD: nothing is to come of it */
	bool last;                   /* the connection ends with its answer */
	bool chunked;                /* its body's length is not told before */
	bool expects;                /* its sender waits for leave to send the body */
	int64_t told;                /* Content-Length; -1: none */
	struct fw_str coding_name;   /* Content-Encoding */
	struct tokenless_head seen;  /* all but local and tls: http_head_seen() */
	struct fw_str prefer;        /* Prefer */
	enum request_state state;
	struct fw_buf body;
	unsigned char address[16];
	struct http_hops hops;
	/* its body: body.c */
	int coding, refused;
	size_t body_max;
	size_t held;                 /* bytes, of the lane's body_bytes */
	size_t dropped;              /* bytes that were refused */
	/* who may not: auth.c */
	enum auth_verdict verdict;
	enum tokenless tokenless;    /* with AUTH_TOKENLESS: why it needs a token */
	const char *challenge;       /* for WWW-Authenticate, or NULL */
	struct auth_pass pass;       /* by which it may, if it may */
	char *bound;                 /* what its token may push, and nothing else; NULL: all */
	int64_t retry_after_s;       /* for Retry-After; 0: none, or the usual */
	/* a push that waits for its commit */
	bool durable;
	struct fw_push_wait wait;
	int wait_rc;
	size_t rows;
	char allow[HTTP_ALLOW_MAX];  /* the path's methods, for the answer 405; "": not that */
	/* at the desk */
	struct desk_job job;
	struct fw_store *store;      /* while its route runs, else NULL */
	bool store_broken;           /* the route found that it does not answer */
	struct MHD_Response *answer; /* made there, not sent yet */
	unsigned answer_status;
	bool again;                  /* the route wants to run once more, a little later */
	struct entries_push *push;   /* entries_push.c, or NULL */
	struct websub_push {         /* websub.c: a document whose feed a worker has */
		struct fw_delivery *delivery;
		int64_t until_ms;    /* monotonic: the end of patience */
		int64_t feed_id;
		size_t held_bytes;   /* of http.entries_bytes */
		struct fw_buf plain; /* what its body held, if that was packed */
	} websub;
	struct request *next;        /* spare */
};

/* May one more connection be put to sleep? Not when those that wait would leave no place for others. */
bool http_may_wait(const struct http *h);

/* ---- answer.c ------------------------------------------------------------------------------------------------------------------ */

/* Any thread that runs the route. */
enum MHD_Result http_send(struct request *r, unsigned status, const char *type, struct fw_buf *body /* taken */);
struct MHD_Response *http_response(struct request *r, unsigned status, const char *type, struct fw_buf *body /* taken */); /* NULL: no memory */
/* The same for a response made by hand, which is taken. */
enum MHD_Result http_answer(struct request *r, unsigned status, struct MHD_Response *m);
/* Any answer, by the thread that serves the connection: on its way now. m is taken. */
enum MHD_Result http_queue(struct request *r, unsigned status, struct MHD_Response *m);
/* What the path takes (RFC 9110, 9.3.7), also for a browser that asks before a page of another origin may (CORS). */
enum MHD_Result http_options(struct request *r);
/* The body cannot be read. */
enum MHD_Result http_malformed(struct request *r, const json_error_t *je);
/* The store said no: its words, and 404, 503 or 500. */
enum MHD_Result http_store_failed(struct request *r, int rc, const struct fw_err *err);
enum MHD_Result http_canned(struct request *r, int which);
/* An error: RFC 9457 (problem details), or Twirp's form on its paths. code: a short stable word. */
FW_PRINTF(4, 5) enum MHD_Result http_problem(struct request *r, unsigned status, const char *code, const char *fmt, ...);
/* The request's id: X-Request-Id when it has a sane one, else ours. Good as long as r is. */
const char *http_request_id(struct request *r);
void http_id_init(struct http *h);
void http_id_begin(struct request *r);
void http_canned_free(struct http_lane *l);

/* ---- head.c -------------------------------------------------------------------------------------------------------------------- */

/*
 * A request line is there, and nothing of it was taken apart yet: for MHD_OPTION_URI_LOG_CALLBACK. What libmicrohttpd
 * could not hold is cut, and refused when all of the head is there.
 */
void http_target_note(struct conn *c, const char *target);
/*
 * A request's head is there, which is walked once: r->told, chunked, expects, coding_name, prefer, seen, last. NULL, or why
 * nobody should read on; *large: that is its size.
 */
const char *http_head_wrong(struct request *r, const char *path, const char *method, const char *version, bool *large);
/* 400 or 414, and the connection ends. */
enum MHD_Result http_head_refuse(struct request *r, const char *path, const char *why, bool large);
/* Does libmicrohttpd refuse by itself what it has read in pieces, when it is told to? */
bool http_library_is_strict(void);
#define HTTP_TARGET_MAX 12000
#define HTTP_PARAMS_MAX 50

/* ---- routes.c ------------------------------------------------------------------------------------------------------------------ */

const struct route *http_routes(size_t *n);
enum http_match { HTTP_MATCH, HTTP_NO_PATH, HTTP_NO_METHOD };
/* Pure. HTTP_MATCH: *route and *id (0: none stands in the path); HTTP_NO_METHOD: allow is the list of those that the path has. */
enum http_match http_route_find(const char *path, const char *method, const struct route **route, int64_t *id, char allow[HTTP_ALLOW_MAX]);
/* The request's route, or the answer that there is none, or that it does not take such a parameter. */
enum MHD_Result http_route(struct request *r, const char *path, const char *method);

/* ---- page.c: what is read, piece by piece ---------------------------------------------------------------------------------------- */

/* What stands behind "?", decoded; absent when it does not. */
struct fw_str http_param(struct request *r, const char *name);
/* The same as a number from min to max; untouched when absent. False: answered 400, in *ok. */
FW_MUST_CHECK bool http_param_int(struct request *r, const char *name, int64_t min, int64_t max, int64_t *out, enum MHD_Result *ok);

/* 400, naming the parameter and what it takes. */
FW_PRINTF(3, 4) enum MHD_Result http_param_wrong(struct request *r, const char *name, const char *fmt, ...);
/* One of some words, or absent; false: answered 400. *which: its place among them, untouched when absent. */
FW_MUST_CHECK bool http_param_word(struct request *r, const char *name, const char *words, int *which, enum MHD_Result *ok);
/* A cursor: kind, then n numbers. Absent: *there is false. */
FW_MUST_CHECK bool http_param_cursor(struct request *r, char kind, int64_t *number, size_t n, bool *there, enum MHD_Result *ok);

/* A list on its way out. */
struct page {
	struct request *r;
	struct fw_buf out;
	struct fw_json j;
	size_t n, limit;
	bool more;                   /* there is at least one behind it: ask the store for one more than limit */
	char cursor[64];             /* behind its last one; "": none */
	int64_t last_ms;             /* when the newest of it changed; 0: not known */
	int64_t unindexed_n;         /* entries that a search did not see */
	struct fw_arena arena;
};
#define PAGE_BYTES ((size_t)8 << 20) /* a page ends early when it has got so large */
void page_begin(struct page *p, struct request *r);
/* Is there room for one more? When not, p->more: stop the walk. */
bool page_room(struct page *p);
FW_PRINTF(2, 3) void page_cursor(struct page *p, const char *fmt, ...);
/* The address of the next page, in its arena; NULL: this is the last one. */
const char *page_next(struct page *p);
/* 200 with an ETag and a link to the next page, or 304 when the reader has it; or what the store said. Ends the page. */
enum MHD_Result page_send(struct page *p, const char *type, int rc, const struct fw_err *err);

/* ---- feeds.c, entries_read.c ------------------------------------------------------------------------------------------------------- */

enum MHD_Result http_feed_list(struct request *r);
enum MHD_Result http_timings(struct request *r);
enum MHD_Result http_feed_add(struct request *r);
enum MHD_Result http_feed_get(struct request *r);
enum MHD_Result http_feed_change(struct request *r);
enum MHD_Result http_feed_remove(struct request *r);
enum MHD_Result http_entry_list(struct request *r);
enum MHD_Result http_entry_get(struct request *r);

/* ---- auth.c: requests ----------------------------------------------------------------------------------------------------------- */

/* Its route is known: may it? Else r->state is REQUEST_REFUSED, or it is answered. */
enum MHD_Result http_auth(struct request *r);
enum MHD_Result http_auth_refuse(struct request *r); /* 401, 403 or 503, by r->verdict */

/* ---- entries_push.c ----------------------------------------------------------------------------------------------------------- */

enum MHD_Result http_entries_push(struct request *r);
/*
 * A request's entries take so many bytes now; *held is what it said last, 0 at first. False: with those of others that is more than
 * serve_memory_bytes. One alone always has room.
 */
bool http_entries_hold(struct http *h, size_t *held, size_t bytes);
void http_entries_push_free(struct request *r);

/* ---- websub.c: hubs, below websub_url ------------------------------------------------------------------------------------------ */

enum MHD_Result http_websub_intent(struct request *r);
enum MHD_Result http_websub_push(struct request *r);
/* Before its body is there: could it be for a callback (else AUTH_WRONG), and does that one's hub not send too much (AUTH_WAIT)? The store
   is not asked. The answer when it is not AUTH_MAY. */
enum auth_verdict http_websub_may(struct request *r);
enum MHD_Result http_websub_refuse(struct request *r);
void http_websub_free(struct request *r);
void http_websub_metrics(struct fw_buf *b, struct http *h);

/* ---- openapi.json, embedded --------------------------------------------------------------------------------------------------- */

extern const char http_openapi_text[];
enum MHD_Result http_openapi(struct request *r);

/* ---- stream.c ------------------------------------------------------------------------------------------------------------------ */

enum MHD_Result http_stream(struct request *r);

/* ---- desk.c: requests at the desk ----------------------------------------------------------------------------------------------- */

/* Suspend it, and have its route run at the desk; 503 when the desk has too much to do. */
enum MHD_Result http_desk_ask(struct request *r);
enum MHD_Result http_desk_resumed(struct request *r);

/* ---- body.c -------------------------------------------------------------------------------------------------------------------- */

/* The four of them in this order; each may answer the request. */
enum MHD_Result http_body_begin(struct request *r);
enum MHD_Result http_body_add(struct request *r, const char *data, size_t *len);
enum MHD_Result http_body_ready(struct request *r);   /* all of it came, and is unpacked now */
enum MHD_Result http_body_refused(struct request *r); /* all of it came, and was dropped */
/* Any thread: what a raw body holds, into out, which stays empty when it was not packed. FW_EFORMAT, FW_ELIMIT, FW_ENOMEM. */
FW_MUST_CHECK int http_body_unpack(struct request *r, struct fw_buf *out);
void http_body_over(struct request *r);               /* whatever became of it */

/* ---- log.c --------------------------------------------------------------------------------------------------------------------- */

/* where: a file, "-" the standard output, NULL none. Errors: FW_EINVAL names the file. */
FW_MUST_CHECK int http_log_open(const char *where, size_t lanes, struct http_log **out, struct fw_err *err);
void http_log_destroy(struct http_log *l); /* what is in it is written */
uint64_t http_log_lost(const struct http_log *l);
void http_log_begin(struct request *r, const char *path, const char *method);
void http_log_over(struct request *r);

/* ---- tls.c --------------------------------------------------------------------------------------------------------------------- */

/* tls_cert and tls_key, if set. Errors: FW_EINVAL names the file, what is wrong, and the remedy. */
FW_MUST_CHECK int http_tls_read(const struct fw_config *c, struct http_tls *out, struct fw_err *err);
void http_tls_free(struct http_tls *t);

/* ---- client.c ------------------------------------------------------------------------------------------------------------------ */

/* trusted_proxies. Errors: FW_EINVAL names the item. */
FW_MUST_CHECK int http_proxies_init(struct http_proxies *p, const char *list, struct fw_err *err);
/* One header X-Forwarded-For more; *h begins as zeros. */
void http_forwarded(const struct http_proxies *p, struct fw_str list, struct http_hops *h);
bool http_proxies_have(const struct http_proxies *p, const unsigned char a[16]);
/* The client's address in binary, 4 or 16 bytes; 0: it came over a unix socket. Good as long as r is. */
struct fw_str http_client_address(struct request *r);
/* What tells whether it may go without a token, and what its body may be. Good as long as r is. */
const struct tokenless_head *http_head_seen(struct request *r);

/* ---- push.c -------------------------------------------------------------------------------------------------------------------- */

enum MHD_Result http_push_events(struct request *r);
enum MHD_Result http_push_resumed(struct request *r); /* its wait is over */

/* ---- metrics.c ----------------------------------------------------------------------------------------------------------------- */

enum MHD_Result http_healthz(struct request *r);
enum MHD_Result http_readyz(struct request *r);
enum MHD_Result http_ring(struct request *r);
enum MHD_Result http_metrics(struct request *r);

/* ---- engine_metrics.c ---------------------------------------------------------------------------------------------------------- */

void http_engine_metrics(struct fw_buf *b, const struct fw_meter *m);
/* What the store holds, as it was found some seconds ago; nothing before the first look. */
void http_store_metrics(struct fw_buf *b, struct http *h);

/* ---- chores.c ------------------------------------------------------------------------------------------------------------------ */

int http_chores_make(struct http *h); /* behind the desk and the meter. FW_ENOMEM */
void http_chores_free(struct http *h); /* behind the desk's end */
void http_chores(struct http *h); /* begins what is due: each second */
/* Counts of the store and their age; asks the desk for new ones when they are old. False: there are none yet. */
bool http_sample(struct http *h, struct fw_store_stats *out, int64_t *in_flight, int64_t *age_ms);

#endif
