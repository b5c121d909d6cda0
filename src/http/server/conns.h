/* SPDX-License-Identifier: ISC */
/*
 * The server's connections and their timeouts. libmicrohttpd only has an idle timeout, which a
 * client defeats with a byte now and then.
 *
 * Each connection is in its server thread's list, with its phase and the time at which that began.
 * The server thread writes both, without a lock and without reading the clock. One more thread
 * walks the lists 2 to 50 times a second and shuts down the sockets of connections that exceed the
 * timeout of their phase; their server threads then find them closed. With more than seven eighths
 * of serve_connections_max open, connections without a request are closed after 1 s.
 */
#ifndef FW_HTTP_SERVER_CONNS_H
#define FW_HTTP_SERVER_CONNS_H

#include <stdatomic.h>

#include "feedwheel/engine.h"

enum conn_phase {
	CONN_HEAD,      /* new, until its first head is complete: serve_header_timeout_ms */
	CONN_BODY,      /* receives a body: serve_body_timeout_ms, serve_body_rate_min */
	CONN_WORK,      /* waits for the server: no timeout */
	CONN_SEND,      /* sends a response: serve_send_timeout_ms */
	CONN_IDLE,      /* keep-alive, until the next head is complete: serve_idle_timeout_ms */
	CONN_TIMED_OUT, /* timed out, its socket is shut down */
	CONN_PHASES,
};

struct conns;
struct conn {
	struct conn *prev, *next;
	struct conns *all;
	size_t server_thread;
	int fd;
	_Atomic uint64_t at;          /* start of the phase (monotonic ms) << 3 | phase */
	_Atomic uint64_t body_n;      /* bytes of the body received so far */
	uint64_t peeked_at, peeked_n; /* at and body_n when the timeout thread last peeked */
	_Atomic uint64_t problem_id;  /* request id of the 408 that the timeout thread sent; 0: none */
	size_t slot;                  /* accept.h */
	/* the last request target: head.c */
	struct http_target {
		size_t len;        /* as a string */
		const char *error; /* why it is refused; NULL: it is fine */
		bool large;
		size_t slash_at; /* where the path, decoded, has its first "%2f"; SIZE_MAX: nowhere */
	} target;
};

/*
 * The limit is serve_connections_max, or what RLIMIT_NOFILE allows (logged). plain: no TLS, so a
 * 408 can be written into a socket. Errors: FW_ENOMEM; FW_EIO no thread.
 */
FW_MUST_CHECK int conns_open(
	const struct fw_config *c, size_t server_threads, bool plain, struct conns **out, struct fw_err *err);
void conns_stop(struct conns *a);    /* stops the timeouts */
void conns_destroy(struct conns *a); /* after the last conn_remove() */
size_t conns_max(const struct conns *a);
size_t conns_open_n(const struct conns *a);
uint64_t conns_timeout_n(const struct conns *a, enum conn_phase p); /* connections that timed out in this phase */

/* For the connection's server thread. */
struct conn *conn_add(struct conns *a, size_t server_thread, int fd); /* NULL: no memory */
void conn_remove(struct conn *c);                                     /* before fd is closed */
/* Enter a phase. False: it has timed out (checked for CONN_BODY and CONN_WORK). c may be NULL. */
bool conn_enter(struct conn *c, enum conn_phase p);
/* Count received bytes of the body. */
static inline void conn_count_body(struct conn *c, size_t n)
{
	if (c)
		atomic_fetch_add_explicit(&c->body_n, n, memory_order_relaxed);
}

/*
 * Sends a problem (RFC 9457) to a socket past libmicrohttpd, for a connection that the server is
 * about to close. headers: further ones, with their line ends. Does not block; if the socket's
 * buffer has no room, or there is no memory, the client gets nothing. Returns the request id in it,
 * which is never 0.
 */
uint64_t conn_send_problem(int fd, unsigned status, const char *code, const char *headers, const char *detail);

#endif
