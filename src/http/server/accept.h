/* SPDX-License-Identifier: ISC */
/*
 * One thread accepts connections and hands them to the server threads in turn.
 *
 * Limits: with serve_connections_max open, further connections wait in the kernel's listen queue.
 * An address with serve_connections_per_address_max open gets a 429 and is closed at once, so that
 * it does not delay others. There is no limit per address for trusted proxies, 127.0.0.1, ::1 and
 * Unix sockets, behind which there may be many clients.
 *
 * libmicrohttpd does not get the listening socket, because the next server continues with it. The
 * way to take it back, MHD_quiesce_daemon() with epoll and threads, may abort the process: two
 * threads remove the socket from one epoll set, and the second one fails ("Failed to remove listen
 * FD from epoll set", 1.0.1).
 */
#ifndef FW_HTTP_SERVER_ACCEPT_H
#define FW_HTTP_SERVER_ACCEPT_H

#include <sys/socket.h>

#include "http/server/conns.h"

struct http_accept;
struct http_thread;
struct http_proxies;

struct http_accept_rules {
	const struct fw_config *config;
	const struct http_proxies *proxies;
	bool plain; /* no TLS: a refused connection can get a 429 */
};

/*
 * fd: the listening socket, which stays the caller's. *out is set before the first connection is
 * handed over. Errors: FW_ENOMEM; FW_EIO no thread or file descriptor.
 */
FW_MUST_CHECK int http_accept_open(const struct http_thread *server_thread, size_t server_thread_n, int fd,
	const struct conns *conns, const struct http_accept_rules *rules, struct http_accept **out, struct fw_err *err);
/*
 * A connection that was handed over is open; it is closed. Any thread. share: the slot of its
 * address.
 */
size_t http_accept_opened(struct http_accept *a, const struct sockaddr *from);
void http_accept_closed(struct http_accept *a, size_t slot);
uint64_t http_accept_refused_n(const struct http_accept *a); /* refused by the limit per address */
void http_accept_stop(struct http_accept *a);                /* when it returns nothing more is accepted */
void http_accept_destroy(struct http_accept *a);             /* after http_accept_stop(). NULL is fine */

#endif
