/* SPDX-License-Identifier: ISC */
/*
 * The HTTP server: what its files share. No other room includes this header or libmicrohttpd's.
 *
 * Each server thread (struct server_thread) runs many connections and never blocks. It reads a
 * request's head and body, and then does one of three things:
 *  - it responds from memory;
 *  - it puts pushed rows into the ring that it alone writes. With ack=durable the connection is
 *    suspended, and the flusher resumes it after the commit;
 *  - it suspends the connection and hands the request to the blocking thread pool (pool.h). A
 *    thread of the pool reads or writes the store, makes the response, and resumes the connection.
 *
 * Invariant: one thread at a time owns a struct request: its server thread, or the pool while the
 * state is REQUEST_IN_POOL. Only the server thread touches a connection that is not suspended.
 */
#ifndef FW_HTTP_SERVER_HTTP_H
#define FW_HTTP_SERVER_HTTP_H

#include <jansson.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cidr.h"
#include "base/json.h"
#include "base/str.h"
#include "feedwheel/ingest.h"
#include "api/icon.h"
#include "api/store_link.h"
#include "api/websub.h"
#include "http/auth/tokenless.h"
#include "http/auth/tokens.h"
#include "http/server/accept.h"
#include "http/server/conns.h"
#include "http/server/pool.h"
#include "http/server/server_thread.h"

struct event_rules;
struct fw_view_cache;
struct password_cache;
struct stream;
struct http;
struct request;

#define HTTP_ALLOW_MAX 40
#define HTTP_ID_MAX 64
#define HTTP_TOKEN_MAX 64

/* Constant responses. Each server thread rebuilds them once a second, for their Date. */
enum { CANNED_TWIRP_OK, CANNED_ACCEPTED, CANNED_N };

/* one server thread */
struct http_thread {
	struct http *h;
	struct server_thread *loop;
	struct fw_producer *in;
	struct MHD_Response *canned[CANNED_N];
	int64_t canned_s;      /* their Date, Unix time in seconds */
	struct auth_view auth; /* this thread's reference to the access tokens */
	struct request *spare; /* free list of requests */
	size_t spare_n;
	size_t body_bytes;                     /* memory of the bodies of its requests */
	_Atomic uint64_t request_n, refused_n; /* refused: with status 4xx or 5xx */
};

#define HTTP_PROXIES_MAX 64
/* trusted_proxies: peers whose X-Forwarded-For is believed */
struct http_proxies {
	struct fw_cidr net[HTTP_PROXIES_MAX];
	size_t net_n;
	bool local; /* peers on a Unix socket too */
};

/* the client's address, by X-Forwarded-For read so far */
struct http_forwarded {
	unsigned char addr[16];
	bool known;
};

/* A gate for slow work: one request passes at a time, and some wait, outside the pool. */
struct http_gate {
	_Atomic bool taken;
	_Atomic int waiting;
};

#define DISCOVERIES_MAX 3          /* addresses that are fetched at once, each for another account */
#define DISCOVERIES_WAITING_MAX 64 /* of all accounts, one of each */
/* Accounts with an address that is fetched, or that wait, outside the pool. 0: a free place. */
struct http_discoveries {
	pthread_mutex_t lock;
	int64_t running[DISCOVERIES_MAX], waiting[DISCOVERIES_WAITING_MAX];
};

struct http_tls {
	char *key, *cert; /* PEM; NULL: plain HTTP */
};

/* What readers use. */
enum reader_api { READER_GREADER, READER_MINIFLUX, READER_FEVER, READER_PAGE, READER_N };

struct http {
	const struct fw_config *config;
	struct fw_meter *meter;
	struct http_proxies proxies;
	struct event_rules *rules; /* api/event_rules.h */
	_Atomic bool started;      /* from now on libmicrohttpd's messages are about a client's connection */
	struct fw_ingest *ingest;
	struct pool *pool;
	struct fw_view_cache *views; /* sanitized contents */
	struct password_cache *passwords;
	struct auth *auth;
	struct conns *conns;
	struct http_accept *accept;
	struct http_log *log; /* access log; NULL: none */
	struct http_tls tls;
	size_t thread_body_max; /* limit of http_thread.body_bytes */
	uint64_t id_base;       /* of request ids; random at each start */
	struct server_jobs *maintenance;
	struct fw_sender *sender;                /* NULL: workers send */
	struct fw_hubs *hubs;                    /* NULL: websub_url is unset */
	struct fw_icons *icons;                  /* NULL: without serve_discovery */
	struct buckets *pushes;                  /* rate limit of documents from hubs, one bucket for each callback */
	_Atomic uint64_t push_limited_n;         /* documents from hubs refused with 429 */
	struct stream *stream;                   /* api/entry_stream.h */
	_Atomic uint64_t reader_n[READER_N];     /* requests of accounts, by API */
	_Atomic uint64_t login_n, login_wrong_n; /* passwords that were right, and wrong */
	struct http_gate logins;                 /* passwords that are checked */
	struct http_discoveries discoveries;     /* addresses that are fetched */
	size_t thread_n;
	_Atomic int64_t suspended_n;   /* suspended connections */
	_Atomic int64_t change_wait_n; /* requests that wait for a change */
	/*
	 * Memory of pushed entries that are being parsed or wait for the store; limit
	 * serve_memory_bytes.
	 */
	_Atomic int64_t entries_bytes;
	_Atomic uint64_t delivery_n, delivered_new_n, delivered_changed_n; /* stored documents; their entries */
	struct http_thread *thread;
};

enum request_state {
	REQUEST_BODY,
	REQUEST_REFUSED,   /* its body is read to the end and discarded */
	REQUEST_WAITS,     /* suspended: a push that waits for its commit */
	REQUEST_IN_POOL,   /* suspended: the pool owns it and makes the response */
	REQUEST_POOL_DONE, /* resumed, with that response */
	REQUEST_RESPONDED,
};

/*
 * SCOPE_OPEN: no authorization. SCOPE_FEED: the scope feed or read; with {token} in the path, which
 * is then the token, the scope feed. SCOPE_PATH: the secret in the path is the authorization.
 * SCOPE_LOGIN: a name and a password in the body. SCOPE_ACCOUNT: a token of an account, to what is
 * that account's. SCOPE_FEVER: the same by a Fever key; without one the response says so.
 * SCOPE_BASIC: the same by a token of an account, or its name and password (HTTP Basic).
 * SCOPE_WEB: the same by a browser's session.
 */
enum scope {
	SCOPE_OPEN,
	SCOPE_PUSH,
	SCOPE_READ,
	SCOPE_ADMIN,
	SCOPE_FEED,
	SCOPE_PATH,
	SCOPE_LOGIN,
	SCOPE_ACCOUNT,
	SCOPE_FEVER,
	SCOPE_BASIC,
	SCOPE_WEB,
};

/* How requests of a scope are authorized, and refused; NULL: by operators' tokens (tokens.h). */
struct scope_rule {
	enum auth_verdict (*check)(struct request *r);
	enum MHD_Result (*refuse)(struct request *r);
};
const struct scope_rule *http_scope_rule(enum scope scope); /* routes.c, which names all handlers */

struct reader;
struct web;

struct route {
	const char *method; /* GET serves HEAD too */
	/*
	 * "{id}" matches a number above 0 and sets r->id; a second one, at the end, r->below_id.
	 * "{token}" matches letters, digits, "_" and "-", and sets r->token; "{name}" matches an
	 * order's name and sets r->name; "{feed}" and "{stream}", at the end, match the rest of the
	 * path, which is not empty, and set r->rest.
	 */
	const char *path;
	enum MHD_Result (*run)(struct request *r); /* called when the whole body is there */
	const char *params;       /* allowed query parameters, separated by spaces; NULL: not checked */
	size_t body_max;          /* bytes; 0: no body */
	enum tokenless_body body; /* allowed Content-Type */
	enum scope scope;         /* the scope that a token needs */
	bool pool;                /* it needs the store: a pool thread calls run, with r->store */
	bool raw;                 /* the body stays compressed, because it is signed so; see http_body_unpack() */
	enum MHD_Result (*reader)(struct reader *rd); /* of reader_serve() */
	enum MHD_Result (*web)(struct web *w);        /* of http_web(): web.h */
	bool web_admin;                               /* the account needs the right to see the operator's side */
	bool repeat; /* with pool: run again after the store failed; always so for GET */
};

/* A request of /v1/changes that waits for a change: between two runs. */
struct change_wait {
	int64_t until_ms; /* monotonic; 0: it does not wait */
	int64_t next_ms;  /* when to read the store again */
	int64_t after_id, base_id;
};

struct request {
	struct http_thread *thread;
	struct MHD_Connection *conn;
	struct conn *c;                   /* the same, with its time limits */
	bool endless;                     /* the response is a stream: no time limit for the whole of it */
	uint64_t number;                  /* count of requests of its server thread */
	char request_id[HTTP_ID_MAX + 1]; /* "": not made yet */
	struct {
		const char *path, *method;
		int64_t from_us, bytes;
		unsigned status;
	} log; /* only with an access log */
	const struct route *route;
	bool twirp;                           /* a path of Twirp's: responses and errors have Twirp's form */
	bool miniflux;                        /* a path of Miniflux' API: errors have its form */
	int64_t id;                           /* from the path */
	int64_t below_id;                     /* from the path: a second {id}, at its end */
	char token[HTTP_TOKEN_MAX + 1];       /* from the path: a secret */
	char name[HTTP_TOKEN_MAX + 1];        /* from the path: an order's name */
	struct fw_str rest;                   /* from the path: a feed that goes out, or a stream's id */
	bool head;                            /* the method is HEAD: no side effects */
	bool last;                            /* the connection is closed after the response */
	bool chunked;                         /* Transfer-Encoding: chunked */
	bool expects;                         /* Expect: 100-continue, the body is not sent yet */
	int64_t content_length;               /* Content-Length; -1: none */
	struct fw_str coding_name;            /* Content-Encoding */
	struct tokenless_head tokenless_head; /* without local and tls, which http_tokenless_head() sets */
	struct fw_str prefer;                 /* Prefer */
	enum request_state state;
	struct fw_buf body;
	unsigned char address[16];
	struct http_forwarded forwarded;
	/* body.c */
	int coding, refused;
	size_t body_max;
	size_t body_bytes; /* its bytes in the server thread's body_bytes */
	size_t dropped;    /* bytes discarded after the body was refused */
	/* authorize.c */
	enum auth_verdict verdict;
	enum tokenless tokenless; /* with AUTH_TOKENLESS: why it needs a token */
	const char *challenge;    /* for WWW-Authenticate, or NULL */
	struct auth_pass pass;    /* how it was authorized */
	char *bound;              /* feeds or properties that its token is bound to; NULL: not bound */
	int64_t retry_after_s;    /* Retry-After in seconds; 0: none, or the default of a 503 */
	/* events_push.c: a push with ack=durable */
	bool durable;
	struct fw_commit_wait wait;
	int wait_rc;
	size_t rows;
	char allow[HTTP_ALLOW_MAX]; /* the path's methods, for a 405; "": it is none */
	/* the blocking thread pool */
	struct pool_job job;
	struct fw_store *store;        /* while the route runs, else NULL */
	struct fw_work_limit limit;    /* of this run; over: it was cut off */
	bool held;                     /* its response waits for the end of its slice */
	int64_t pool_from_ms;          /* monotonic: when it went to the pool */
	int store_rc;                  /* what the store returned, if the route failed for it; with store_err */
	struct fw_err *store_err;      /* while the route runs, else NULL */
	struct MHD_Response *response; /* made by the pool, not queued yet */
	unsigned response_status;
	bool retry;                /* the route asks to run once more, POOL_RETRY_MS later */
	struct http_gate *waits;   /* the gate that it waits for, or NULL */
	int64_t discovers_id;      /* the account for which it waits for a discovery; 0: it does not */
	size_t reserved_bytes;     /* of http.entries_bytes: memory of a long response */
	struct entries_push *push; /* entries_push.c, or NULL */
	/* websub.c: a document of a hub that waits for the store */
	struct websub_push {
		struct fw_delivery *delivery;
		int64_t until_ms; /* monotonic: when retries end */
		int64_t feed_id;
		size_t held_bytes;   /* of http.entries_bytes */
		struct fw_buf plain; /* the decompressed body; empty if it was not compressed */
	} websub;
	struct change_wait change_wait; /* changes.c */
	struct request *next;           /* in the free list */
};

/* May one more connection be suspended? Not when seven eighths of all connections are. */
bool http_may_wait(const struct http *h);

/* ---- response.c ------------------------------------------------------------------------------ */

/*
 * Responses. http_send(), http_response(), http_respond() and http_problem() may be called by the
 * thread that runs the route: the server thread, or a pool thread. They take body or m over, in
 * error too. MHD_NO closes the connection: out of memory.
 */
enum MHD_Result http_send(struct request *r, unsigned status, const char *type, struct fw_buf *body);
/* NULL: no memory */
struct MHD_Response *http_response(struct request *r, unsigned status, const char *type, struct fw_buf *body);
/*
 * Add the headers that all responses carry, and queue m. In a pool thread: keep m until the
 * connection is resumed.
 */
/* The store's time, also while the store is unavailable. */
int64_t http_now_ms(const struct request *r);
enum MHD_Result http_respond(struct request *r, unsigned status, struct MHD_Response *m);
/* Queue m. Only the server thread. m is taken over. */
enum MHD_Result http_queue(struct request *r, unsigned status, struct MHD_Response *m);
/* OPTIONS: the path's methods (RFC 9110 section 9.3.7), and the response to a CORS preflight. */
enum MHD_Result http_options(struct request *r);
/* 400: the body is not valid JSON. */
enum MHD_Result http_malformed(struct request *r, const json_error_t *je);
/* An error of the store: 404, 400, 500 or 503. */
enum MHD_Result http_store_failed(struct request *r, int rc, const struct fw_err *err);
/* A request of the pool failed for the store's sake: the pool's link decides what that means. */
void http_store_note(struct request *r, int rc, const struct fw_err *err);
enum MHD_Result http_canned(struct request *r, int which);
/*
 * An error: RFC 9457 (problem details); on their paths Twirp's form or Miniflux'. code: a short
 * stable word.
 */
FW_PRINTF(4, 5)
enum MHD_Result http_problem(struct request *r, unsigned status, const char *code, const char *fmt, ...);
/* The same with one more member, a number. */
enum MHD_Result http_problem_number(
	struct request *r, unsigned status, const char *code, const char *member, int64_t value, const char *detail);
/* The body of a problem. */
void http_problem_body(struct fw_buf *out, unsigned status, const char *code, struct fw_str detail, const char *id);
/*
 * The request's id: of the 408 that its client got (conns.h), else a valid X-Request-Id of the
 * client, else a new one. Valid as long as r.
 */
const char *http_request_id(struct request *r);
uint64_t http_id_random(void); /* never 0 */
void http_id_write(char id[HTTP_ID_MAX + 1], uint64_t n);
void http_id_init(struct http *h);
void http_id_begin(struct request *r);
void http_canned_free(struct http_thread *l);

/* ---- head.c ---------------------------------------------------------------------------------- */

/*
 * Check a request target before libmicrohttpd splits it (MHD_OPTION_URI_LOG_CALLBACK). The result
 * stays in c->target until the whole head is there. Parameters that libmicrohttpd has no memory for
 * are cut off.
 */
void http_target_check(struct conn *c, const char *target);
/*
 * Walk a complete head once: sets r->content_length, chunked, expects, coding_name, prefer,
 * tokenless_head and last. Returns NULL, or why the request is refused; *large: because of its size
 * (414).
 */
const char *http_head_error(struct request *r, const char *path, const char *method, const char *version, bool *large);
/* 400 or 414; the connection is closed afterwards. */
enum MHD_Result http_head_refuse(struct request *r, const char *path, const char *why, bool large);
/* Does this libmicrohttpd check line ends and framing itself (since 1.0)? */
bool http_library_is_strict(void);
#define HTTP_TARGET_MAX 12000
#define HTTP_PARAMS_MAX 50

/* ---- routes.c -------------------------------------------------------------------------------- */

const struct route *http_routes(size_t *n);
enum http_match { HTTP_MATCH, HTTP_NO_PATH, HTTP_NO_METHOD };
/*
 * Pure. HTTP_MATCH: *route and *id (0: the path has none). HTTP_NO_METHOD: allow lists the path's
 * methods.
 */
enum http_match http_route_find(
	const char *path, const char *method, const struct route **route, int64_t *id, char allow[HTTP_ALLOW_MAX]);
/* Set r->twirp and r->miniflux. */
void http_form_of_errors(struct request *r, const char *path);
/*
 * Set r->route, or respond 404, 405 or, for an unknown query parameter, 400 (r->state is
 * REQUEST_RESPONDED then).
 */
enum MHD_Result http_route(struct request *r, const char *path, const char *method);

/* ---- list.c: lists, page by page ------------------------------------------------------------- */

/* A query parameter, decoded; absent: FW_STR_NONE. */
struct fw_str http_param(struct request *r, const char *name);
/*
 * A number from min to max; *out is untouched when absent. False: responded 400, with the result in
 * *ok.
 */
FW_MUST_CHECK bool http_param_int(
	struct request *r, const char *name, int64_t min, int64_t max, int64_t *out, enum MHD_Result *ok);

/* 400, with the parameter's name and the values that it takes. */
FW_PRINTF(3, 4) enum MHD_Result http_param_wrong(struct request *r, const char *name, const char *fmt, ...);
/*
 * One of words (separated by spaces). *which: its index, untouched when absent. False: responded
 * 400.
 */
FW_MUST_CHECK bool http_param_word(
	struct request *r, const char *name, const char *words, int *which, enum MHD_Result *ok);
/* content=yes, no or raw: FW_VIEW_*; *flags is untouched when absent. False: responded 400. */
FW_MUST_CHECK bool http_param_content(struct request *r, unsigned *flags, enum MHD_Result *ok);
/* A cursor: the letter kind, then n numbers. *there: it is present. False: responded 400. */
FW_MUST_CHECK bool http_param_cursor(
	struct request *r, char kind, int64_t *number, size_t n, bool *there, enum MHD_Result *ok);

/* Does If-None-Match have this ETag? Weak comparison (RFC 9110 section 13.1.2). */
bool http_etag_matches(struct request *r, struct fw_str etag);

/* A page that is being written. */
struct list_page {
	struct request *r;
	struct fw_buf out;
	struct fw_json j;
	size_t n, limit;
	bool more;           /* another page follows. To learn that, query limit + 1 rows */
	char cursor[64];     /* of the next page, or of new rows; "": none */
	int64_t last_ms;     /* Unix time of the newest change in the page; 0: unknown */
	int64_t unindexed_n; /* entries that the search did not see */
	const char *note;    /* of the search; NULL: none */
	struct fw_arena arena;
};
#define PAGE_BYTES ((size_t)8 << 20) /* a page ends at this size, whatever its limit */
void list_page_begin(struct list_page *p, struct request *r);
/* Is there room for one more row? False: sets p->more, stop the query. */
bool list_page_has_room(struct list_page *p);
FW_PRINTF(2, 3) void list_page_set_cursor(struct list_page *p, const char *fmt, ...);
/* The URL path of the next page, in the page's arena; NULL: this is the last page. */
const char *list_page_next(struct list_page *p);
/*
 * 200 with an ETag and a link to the next page, 304 if If-None-Match has that ETag, or the store's
 * error (rc < 0). Frees the page.
 */
enum MHD_Result list_page_send(struct list_page *p, const char *type, int rc, const struct fw_err *err);

/* ---- change_filter.c: which changes a client wants ------------------------------------------- */

struct change_filter {
	int64_t feed_id[HTTP_PARAMS_MAX];
	size_t feed_n;        /* 0: all feeds */
	struct fw_str folder; /* with its subfolders; empty: any. A "gone" has none, and passes */
	unsigned kinds;       /* bits by enum fw_change_kind */
};
/* kinds is untouched without types; folder points into the request. False: responded 400. */
FW_MUST_CHECK bool http_change_filter(struct request *r, struct change_filter *f, enum MHD_Result *ok);
/* folder: of the feed; not looked at if the entry is gone. */
bool change_filter_wants(
	const struct change_filter *f, enum fw_change_kind kind, int64_t feed_id, struct fw_str folder);

/* ---- changes.c ------------------------------------------------------------------------------- */

void http_change_wait_end(struct request *r); /* the request ends */
enum MHD_Result http_change_list(struct request *r);
enum MHD_Result http_revision_list(struct request *r);

/* ---- feeds.c, entries_read.c ----------------------------------------------------------------- */

enum MHD_Result http_feed_list(struct request *r);
enum MHD_Result http_folder_list(struct request *r);
enum MHD_Result http_timings(struct request *r);
enum MHD_Result http_feed_add(struct request *r);
enum MHD_Result http_feed_get(struct request *r);
enum MHD_Result http_feed_change(struct request *r);
enum MHD_Result http_feed_remove(struct request *r);
enum MHD_Result http_entry_list(struct request *r);
enum MHD_Result http_entry_get(struct request *r);

/* ---- feed_out.c ------------------------------------------------------------------------------ */

enum MHD_Result http_feed_out(struct request *r);
/* May a token that is bound so read r's feed? */
bool http_feed_out_may(const struct request *r, struct fw_str bound);

/* ---- orders.c: scope admin ------------------------------------------------------------------- */

enum MHD_Result http_order_list(struct request *r);
enum MHD_Result http_order_add(struct request *r);
enum MHD_Result http_order_test(struct request *r);
enum MHD_Result http_order_get(struct request *r);
enum MHD_Result http_order_change(struct request *r);
enum MHD_Result http_order_remove(struct request *r);
enum MHD_Result http_order_replay(struct request *r);
enum MHD_Result http_order_dead(struct request *r);
enum MHD_Result http_order_retry(struct request *r);
enum MHD_Result http_order_rotate(struct request *r);

/* ---- authorize.c ----------------------------------------------------------------------------- */

/*
 * Does a page of another site send it, and not one of serve_cors_origin? Then no account's route
 * takes it.
 */
bool http_account_is_foreign(struct request *r);
/*
 * Authorize r, whose route is known. Else r->state is REQUEST_REFUSED (its body is read first) or
 * REQUEST_RESPONDED.
 */
enum MHD_Result http_auth(struct request *r);
enum MHD_Result http_auth_refuse(struct request *r); /* 401, 403 or 503, by r->verdict */
/* The same for the APIs of accounts: 403, 429, or 401 with this challenge and these words. */
enum MHD_Result http_auth_refuse_account(struct request *r, const char *challenge, const char *words);
/* Any thread: is r's network throttled? Sets r->retry_after_s. */
bool http_auth_is_limited(struct request *r);
/* Any thread: a password or an account's token was wrong. */
void http_auth_count_wrong(struct request *r);
/*
 * Check an account's password, with the gate of logins taken. FW_ENOTFOUND: it is wrong, and
 * counted. FW_ELIMIT: not checked, because r's network was throttled after the request's head came;
 * r->verdict says so.
 */
FW_MUST_CHECK int http_auth_login(
	struct request *r, struct fw_str name, struct fw_str password, int64_t *id, struct fw_err *err);

/* ---- greader.c, login.c: the Google Reader API ----------------------------------------------- */

enum MHD_Result http_greader(struct request *r);
enum MHD_Result http_fever(struct request *r);
enum MHD_Result http_greader_login(struct request *r);
enum auth_verdict http_greader_may(struct request *r);
enum MHD_Result http_greader_refuse(struct request *r);

/* ---- miniflux.c: Miniflux' API --------------------------------------------------------------- */

enum MHD_Result http_miniflux(struct request *r);
enum auth_verdict http_miniflux_may(struct request *r);
enum MHD_Result http_miniflux_refuse(struct request *r);
enum MHD_Result http_miniflux_health(struct request *r);
enum MHD_Result http_miniflux_version(struct request *r);

/* ---- web.c, assets.c: the page --------------------------------------------------------------- */

enum MHD_Result http_web(struct request *r);
enum auth_verdict http_web_may(struct request *r);
enum MHD_Result http_web_refuse(struct request *r);
/* The page for a browser at a path that no route has. */
enum MHD_Result http_web_unknown(struct request *r, const char *path);
enum MHD_Result http_web_script(struct request *r);
enum MHD_Result http_web_style(struct request *r);

/* ---- entries_push.c -------------------------------------------------------------------------- */

enum MHD_Result http_entries_push(struct request *r);
/*
 * Account for the memory of a request's entries: bytes now, *held before (0 at first). False: all
 * requests together exceed serve_memory_bytes. A single request always fits.
 */
bool http_entries_reserve(struct http *h, size_t *held, size_t bytes);
void http_entries_push_free(struct request *r);

/* ---- websub.c: hubs, below websub_url -------------------------------------------------------- */

enum MHD_Result http_websub_intent(struct request *r);
enum MHD_Result http_websub_push(struct request *r);
/*
 * Authorize a request to a callback before its body arrives, without the store. AUTH_WRONG: there
 * is no such callback. AUTH_LIMITED: its hub exceeds its rate limit.
 */
enum auth_verdict http_websub_may(struct request *r);
enum MHD_Result http_websub_refuse(struct request *r);
void http_websub_free(struct request *r);

/* ---- openapi.json, embedded ------------------------------------------------------------------ */

extern const char http_openapi_text[];
enum MHD_Result http_openapi(struct request *r);

/* ---- entry_stream.c -------------------------------------------------------------------------- */

enum MHD_Result http_stream(struct request *r);

/* ---- pool.c: requests in the blocking thread pool -------------------------------------------- */

/* Suspend the connection and queue the request for the pool; 503 when the pool's queue is full. */
enum MHD_Result http_pool_run(struct request *r);
/*
 * From a route that runs in the pool, once it knows whose request it is: may it go on? False:
 * return *ok; it runs again when it is the account's turn, or is refused.
 */
FW_MUST_CHECK bool http_account_may(struct request *r, int64_t account_id, enum MHD_Result *ok);
enum MHD_Result http_pool_resumed(struct request *r);
/*
 * Pass a gate, in a pool thread. GATE_LATER: return from the route without a response; it runs
 * again. GATE_FULL: too many wait already.
 */
enum http_gate_state { GATE_TAKEN, GATE_LATER, GATE_FULL };
#define GATE_WAITING_MAX 64
/* address.c: the request no longer waits for a discovery. */
void http_discovery_forget(struct request *r);
enum http_gate_state http_gate_enter(struct http_gate *gate, struct request *r);
void http_gate_leave(struct http_gate *gate);
void http_gate_forget(struct request *r); /* the request ends: it waits no longer */

/* ---- body.c ---------------------------------------------------------------------------------- */

/*
 * In this order; each may respond. The body is complete for _ready(), which decompresses it, and
 * for _refused().
 */
enum MHD_Result http_body_begin(struct request *r);
enum MHD_Result http_body_add(struct request *r, const char *data, size_t *len);
enum MHD_Result http_body_ready(struct request *r);
enum MHD_Result http_body_refused(struct request *r);
/*
 * Decompress the body of a route with raw into out, which stays empty if the body is not
 * compressed. Any thread. Errors: FW_EFORMAT, FW_ELIMIT, FW_ENOMEM.
 */
FW_MUST_CHECK int http_body_unpack(struct request *r, struct fw_buf *out);
/* The request ends: return its share of the server thread's body_bytes. */
void http_body_finish(struct request *r);

/* ---- json_body.c ----------------------------------------------------------------------------- */

/* Parse a JSON body. NULL: responded, with the result in *ok. The caller frees it. */
json_t *http_json_body(struct request *r, enum MHD_Result *ok);
/* The string o.name; absent: FW_STR_NONE. Points into o. */
struct fw_str http_json_text(const json_t *o, const char *name);
/* 422: the member at this place is invalid. */
enum MHD_Result http_unprocessable(struct request *r, const char *place, const char *words);
#define HTTP_UNKNOWN_FIELD "unknown field"

/* A member that a body's object may have. */
struct json_member {
	const char *name;
	unsigned bit; /* of sets of members */
	json_type type;
	const char *words; /* "must be ..." */
	bool either;       /* with JSON_TRUE: false too */
	bool natural;      /* with JSON_INTEGER: 0 or more */
};
/*
 * Check the members of o, of which it may have those in may; *has gets those that it has. Returns
 * NULL, or the first one that is unknown or does not fit, with the reason in *words. Points into o.
 */
const char *http_json_members(
	json_t *o, const struct json_member *m, size_t n, unsigned may, unsigned *has, const char **words);
/* The words of this member; HTTP_UNKNOWN_FIELD: there is none. */
const char *http_json_member_words(const struct json_member *m, size_t n, const char *name);

/* ---- log.c ----------------------------------------------------------------------------------- */

/* where: a file; "-": standard output; NULL: no log. Errors: FW_EINVAL names the file. */
FW_MUST_CHECK int http_log_open(const char *where, size_t server_threads, struct http_log **out, struct fw_err *err);
void http_log_destroy(struct http_log *l); /* writes the rows that it has */
uint64_t http_log_dropped_n(const struct http_log *l);
void http_log_begin(struct request *r, const char *path, const char *method);
void http_log_end(struct request *r);

/* ---- http.c ---------------------------------------------------------------------------------- */

/* Start libmicrohttpd and its thread. Errors: FW_EINVAL of tls_cert and tls_key; FW_EIO. */
FW_MUST_CHECK int http_thread_start(struct http_thread *l, struct fw_err *err);
void http_thread_free(struct http_thread *l); /* after it has ended */

/* ---- tls.c ----------------------------------------------------------------------------------- */

/*
 * Read and check tls_cert and tls_key, if set. Errors: FW_EINVAL with the file, the reason, and the
 * remedy.
 */
FW_MUST_CHECK int http_tls_read(const struct fw_config *c, struct http_tls *out, struct fw_err *err);
void http_tls_free(struct http_tls *t);

/* ---- client.c -------------------------------------------------------------------------------- */

/* trusted_proxies. Errors: FW_EINVAL names the item. */
FW_MUST_CHECK int http_proxies_init(struct http_proxies *p, const char *list, struct fw_err *err);
/* Add one X-Forwarded-For header; *h is zero at first. */
void http_forwarded_add(const struct http_proxies *p, struct fw_str list, struct http_forwarded *h);
bool http_proxies_have(const struct http_proxies *p, const unsigned char a[16]);
/* The client's address in binary, 4 or 16 bytes; empty for a Unix socket. Valid as long as r. */
struct fw_str http_client_address(struct request *r);
/* The parts of the head that tokenless.h judges. Valid as long as r. */
const struct tokenless_head *http_tokenless_head(struct request *r);

/* ---- events_push.c --------------------------------------------------------------------------- */

enum MHD_Result http_push_events(struct request *r);
enum MHD_Result http_push_resumed(struct request *r); /* after the commit */

/* ---- metrics.c ------------------------------------------------------------------------------- */

enum MHD_Result http_healthz(struct request *r);
enum MHD_Result http_readyz(struct request *r);
enum MHD_Result http_ring(struct request *r);
enum MHD_Result http_metrics(struct request *r);

/* ---- engine_metrics.c ------------------------------------------------------------------------ */

void http_engine_metrics(struct fw_buf *b, const struct fw_meter *m);
/* Counts of the store, some seconds old; nothing before the first sample. */
void http_store_metrics(struct fw_buf *b, struct http *h);

/* ---- websub_metrics.c ------------------------------------------------------------------------ */

void http_websub_metrics(struct fw_buf *b, struct http *h);

/* ---- jobs.c ---------------------------------------------------------------------------------- */

int http_maintenance_create(struct http *h); /* after the pool and the meter. FW_ENOMEM */
void http_maintenance_free(struct http *h);  /* after the pool is closed */
void http_maintenance_run(struct http *h);   /* each second: queues the jobs that are due */
/*
 * The latest counts of the store and their age; queues a new sample when they are old. False: none
 * yet.
 */
bool http_sample(struct http *h, struct fw_store_stats *out, int64_t *in_flight, int64_t *age_ms);
/* The metrics of orders, from that sample. */
void http_order_metrics(struct fw_buf *b, struct http *h);

/* ---- order_metrics.c ------------------------------------------------------------------------- */

struct order_samples;
/* Read what the store holds of orders; before: the last one, or NULL. To be freed by free(). */
FW_MUST_CHECK int order_samples_read(
	struct fw_store *st, const struct order_samples *before, struct order_samples **out, struct fw_err *err);
void order_samples_metrics(struct fw_buf *b, const struct order_samples *s, int64_t now_ms);

#endif
