/* SPDX-License-Identifier: ISC */
/*
 * Inside the front door: what its files share. Nobody else includes this, and no other room knows libmicrohttpd.
 *
 * Each of libmicrohttpd's threads runs requests one after another and never blocks: it reads the body, answers from memory, or puts
 * rows into its own lane's ring. A push that wants to know that it is stored is suspended, and resumed by the flusher.
 */
#ifndef FW_HTTP_HTTP_H
#define FW_HTTP_HTTP_H

#include <microhttpd.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/str.h"
#include "feedwheel/ingest.h"

struct http;
struct request;

enum { CANNED_TWIRP_OK, CANNED_ACCEPTED, CANNED_N }; /* answers that never differ, made once per thread */

struct http_lane { /* one server thread */
	struct http *h;
	struct fw_lane_in *in;
	struct MHD_Response *canned[CANNED_N];
	struct request *spare;       /* requests to use again */
	size_t spare_n;
	_Atomic uint64_t request_n, refused_n; /* all; answered 4xx or 5xx */
};

struct http {
	const struct fw_config *config;
	struct MHD_Daemon *daemon;
	struct fw_ingest *ingest;
	int fd;
	size_t lane_n;
	_Atomic size_t lane_used;    /* threads that have got theirs */
	_Atomic int64_t suspended_n;
	struct http_lane *lane;
};

enum request_state { REQUEST_BODY, REQUEST_TOO_LARGE /* and read to its end, which is dropped */, REQUEST_WAITS, REQUEST_ANSWERED };

/* What answers a path. body_max 0: it takes none. */
struct route {
	const char *method, *path;
	enum MHD_Result (*run)(struct request *r); /* the body is there */
	size_t body_max;
	bool twirp;                  /* errors in Twirp's form */
};

struct request {
	struct http_lane *lane;
	struct MHD_Connection *conn;
	const struct route *route;
	enum request_state state;
	struct fw_buf body;
	size_t dropped;              /* bytes of a body that is too large */
	/* a push that waits for its commit */
	struct fw_push_wait wait;
	int wait_rc;
	size_t rows;
	const char *allow;           /* the path's methods, for the answer 405 */
	struct request *next;        /* spare */
};

/* ---- answer.c ------------------------------------------------------------------------------------------------------------------ */

enum MHD_Result http_send(struct request *r, unsigned status, const char *type, struct fw_buf *body /* taken */);
enum MHD_Result http_canned(struct request *r, int which);
/* An error: RFC 9457 (problem details), or Twirp's form on its paths. code: a short stable word. */
FW_PRINTF(4, 5) enum MHD_Result http_problem(struct request *r, unsigned status, const char *code, const char *fmt, ...);
int http_canned_make(struct http_lane *l);
void http_canned_free(struct http_lane *l);

/* ---- push.c -------------------------------------------------------------------------------------------------------------------- */

enum MHD_Result http_push_events(struct request *r);
enum MHD_Result http_push_resumed(struct request *r); /* its wait is over */

/* ---- metrics.c ----------------------------------------------------------------------------------------------------------------- */

enum MHD_Result http_healthz(struct request *r);
enum MHD_Result http_readyz(struct request *r);
enum MHD_Result http_ring(struct request *r);
enum MHD_Result http_metrics(struct request *r);

#endif
