/* SPDX-License-Identifier: ISC */
/*
 * The server's connections and how long each may take for what it does. libmicrohttpd knows no more than a pause in which nothing comes:
 * who sends a byte now and then would stay for ever.
 *
 * Each connection stands in its lane's list with what it is doing and since when; the thread that serves it writes this down, without a
 * lock and without a look at the clock. A thread of its own walks the lists a few times a second and shuts the sockets of those that
 * have used up their time: the serving thread finds them closed. When nearly all that may be open are, those that wait for a request
 * are closed sooner.
 */
#ifndef FW_HTTP_CONNS_H
#define FW_HTTP_CONNS_H

#include <stdatomic.h>

#include "feedwheel/engine.h"

enum conn_phase {
	CONN_HEAD, /* new: its first request's headers are not all there; serve_header_ms */
	CONN_BODY, /* a body is not all there; serve_body_ms, serve_body_rate */
	CONN_WORK, /* it waits for us */
	CONN_SEND, /* an answer is on its way; serve_send_ms */
	CONN_IDLE, /* kept alive, the next request's headers are not all there; serve_idle_ms */
	CONN_CUT,  /* its time was up */
	CONN_PHASES,
};

struct conns;
struct conn {
	struct conn *prev, *next;
	struct conns *all;
	size_t lane;
	int fd;
	_Atomic uint64_t at;     /* since when << 3 | phase */
	_Atomic uint64_t body_n; /* bytes of the body so far */
	uint64_t looked_at, looked_n; /* the walk's: at and body_n when it looked last */
	size_t share;            /* accept.h */
	struct http_target {     /* the request line's that came last: head.c */
		size_t len;      /* as a string */
		const char *wrong; /* NULL: nothing */
		bool large;
	} target;
};

/*
 * So many connections as serve_connections says, or as open files are allowed (said in the log). plain: no TLS, an answer may be written into
 * a socket. Errors: FW_ENOMEM; FW_EIO no thread.
 */
FW_MUST_CHECK int conns_open(const struct fw_config *c, size_t lanes, bool plain, struct conns **out, struct fw_err *err);
void conns_stop(struct conns *a);    /* nothing is cut any more */
void conns_destroy(struct conns *a); /* none is left */
size_t conns_max(const struct conns *a);
size_t conns_open_n(const struct conns *a);
uint64_t conns_cut_n(const struct conns *a, enum conn_phase p); /* for what they did when their time was up */

/* The serving thread's. */
struct conn *conn_add(struct conns *a, size_t lane, int fd); /* NULL: no memory */
void conn_remove(struct conn *c);                            /* before fd is closed */
/* It does something else now. False: too late, it was cut. c may be NULL. */
bool conn_enter(struct conn *c, enum conn_phase p);
/* So many bytes of the body more. */
static inline void conn_got(struct conn *c, size_t n)
{
	if (c)
		atomic_fetch_add_explicit(&c->body_n, n, memory_order_relaxed);
}

#endif
