/* SPDX-License-Identifier: ISC */
/*
 * The thread that accepts connections and hands them to the lanes in turn.
 *
 * libmicrohttpd is not given the listening socket. It would have to be told to leave that alone when the server stops, for the one that
 * follows goes on with it: MHD_quiesce_daemon() with epoll and threads may end the process, since two of its threads take the socket out
 * of one epoll set and the second calls that fatal ("Failed to remove listen FD from epoll set", 1.0.1).
 *
 * When as many connections are open as may be, the next ones wait in the kernel's queue. An address that has more than its share is told
 * so, and cut off, before libmicrohttpd hears of it: others would wait behind it. Proxies of ours have no share: they speak for many.
 */
#ifndef FW_HTTP_ACCEPT_H
#define FW_HTTP_ACCEPT_H

#include <sys/socket.h>

#include "http/conns.h"

struct http_accept;
struct http_lane;
struct http_proxies;

struct http_accept_rules {
	const struct fw_config *config;
	const struct http_proxies *proxies;
	bool plain;          /* no TLS: who is cut off can be told */
};

/*
 * fd: listens, and stays the caller's. *out is set before the first connection is handed over.
 * Errors: FW_ENOMEM; FW_EIO no thread or file descriptor.
 */
FW_MUST_CHECK int http_accept_open(const struct http_lane *lane, size_t lane_n, int fd, const struct conns *conns,
	const struct http_accept_rules *rules, struct http_accept **out, struct fw_err *err);
/* One that was handed over is among the open ones; and is closed. Any thread. Returns, and takes, whose share it is of. */
size_t http_accept_began(struct http_accept *a, const struct sockaddr *from);
void http_accept_ended(struct http_accept *a, size_t share);
uint64_t http_accept_refused_n(const struct http_accept *a); /* since their address had its share */
void http_accept_stop(struct http_accept *a);  /* nothing more is accepted when it returns */
void http_accept_destroy(struct http_accept *a); /* stopped, and none is handed over any more. NULL is fine */

#endif
