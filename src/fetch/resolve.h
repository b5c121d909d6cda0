/* SPDX-License-Identifier: ISC */
/*
 * Looks host names up: c-ares on the loop, with a cache. Addresses live as long as their TTL,
 * within bounds. Failures live for seconds, so that a feed is not retried in vain and a passing
 * fault is soon forgotten. The hosts file comes first. Addresses are not checked here: the guard
 * does that when a socket is opened.
 */
#ifndef FW_FETCH_RESOLVE_H
#define FW_FETCH_RESOLVE_H

#include <uv.h>

#include "feedwheel/types.h"

struct fw_resolver;
struct fw_resolve_wait;

enum fw_resolve_state {
	FW_RESOLVE_WAIT, /* the callback will be called */
	FW_RESOLVE_OK,
	FW_RESOLVE_NONE, /* no such name, or it has no address */
	FW_RESOLVE_FAIL, /* the name servers returned an error, or nothing useful */
	FW_RESOLVE_TIMEOUT,
	FW_RESOLVE_LOCAL, /* a local fault: memory, file descriptors */
};

/* addrs: "192.0.2.1,[2001:db8::1]", in the order to try; valid until the callback returns. */
typedef void fw_resolve_cb(struct fw_resolve_wait *w, enum fw_resolve_state state, const char *addrs);

/* owned by the caller; the resolver uses it while it waits */
struct fw_resolve_wait {
	fw_resolve_cb *cb;
	struct fw_resolve_entry *entry; /* NULL: not waiting */
	/*
	 * set by fw_resolve(): how long ago the lookup began that gives the result; 0: now. Lookups
	 * are shared, and failures are cached
	 */
	uint64_t age_ms;
	struct fw_resolve_wait *prev, *next;
};

/*
 * servers: "127.0.0.1:5353,[::1]:53"; NULL: those in the file conf (NULL: /etc/resolv.conf), which
 * is read again when it changes. Errors: FW_EINVAL, FW_ENOMEM, FW_EIO.
 */
FW_MUST_CHECK int fw_resolver_create(
	uv_loop_t *loop, const char *servers, const char *conf, struct fw_resolver **out, struct fw_err *err);
/* No lookup may be waiting. closed(ctx) is called when all loop handles are closed. */
void fw_resolver_destroy(struct fw_resolver *r, void (*closed)(void *ctx), void *ctx);
/*
 * Look up host (ASCII, lower case). A cached result is returned at once, with *addrs valid until
 * the loop runs again. FW_RESOLVE_WAIT: w->cb will be called, never before this returns.
 */
enum fw_resolve_state fw_resolve(
	struct fw_resolver *r, const char *host, struct fw_resolve_wait *w, const char **addrs);
/* w->cb will not be called; no effect when it is not waiting */
void fw_resolve_cancel(struct fw_resolve_wait *w);

#endif
