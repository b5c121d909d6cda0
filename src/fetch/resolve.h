/* SPDX-License-Identifier: ISC */
/*
 * Names to addresses: c-ares on the loop, with a cache. Answers live as long as their TTL says, within bounds; refusals live
 * shortly, so that a feed is not asked for in vain and a passing fault is not remembered for long. The hosts file is honoured.
 * Nobody's addresses are judged here: the guard does that when a socket is opened, on what is really connected to.
 */
#ifndef FW_FETCH_RESOLVE_H
#define FW_FETCH_RESOLVE_H

#include <uv.h>

#include "feedwheel/types.h"

struct fw_resolver;
struct fw_resolve_wait;

enum fw_resolve_state {
	FW_RESOLVE_WAIT,    /* the callback will come */
	FW_RESOLVE_OK,
	FW_RESOLVE_NONE,    /* there is no such name, or it has no address */
	FW_RESOLVE_FAIL,    /* the name servers did not answer, or not usefully */
	FW_RESOLVE_TIMEOUT,
	FW_RESOLVE_LOCAL,   /* our own fault: memory, file descriptors */
};

/* addrs: "192.0.2.1,[2001:db8::1]" in the order to be tried; lives until the callback returns. */
typedef void fw_resolve_cb(struct fw_resolve_wait *w, enum fw_resolve_state state, const char *addrs);

struct fw_resolve_wait { /* the caller's; belongs to the resolver while it waits */
	fw_resolve_cb *cb;
	struct fw_resolve_entry *entry; /* NULL: not waiting */
	uint64_t age_ms; /* by fw_resolve(): how long ago the lookup began; 0: with this call. Others share one, and failures are cached */
	struct fw_resolve_wait *prev, *next;
};

/*
 * servers: "127.0.0.1:5353,[::1]:53"; NULL: those of conf (NULL: /etc/resolv.conf), which is read again when it has changed.
 * Errors: FW_EINVAL, FW_ENOMEM, FW_EIO.
 */
FW_MUST_CHECK int fw_resolver_create(uv_loop_t *loop, const char *servers, const char *conf, struct fw_resolver **out,
	struct fw_err *err);
/* Nobody may be waiting. closed(ctx) is called when the loop has let go of everything. */
void fw_resolver_destroy(struct fw_resolver *r, void (*closed)(void *ctx), void *ctx);
/*
 * Look host (ASCII, lower case) up. From the cache the answer is given at once, in the return value and *addrs (good until the
 * loop turns); FW_RESOLVE_WAIT: w->cb will be called, never before this returns.
 */
enum fw_resolve_state fw_resolve(struct fw_resolver *r, const char *host, struct fw_resolve_wait *w, const char **addrs);
void fw_resolve_cancel(struct fw_resolve_wait *w); /* w->cb will not be called; fine when it is not waiting */
/* What is cached now. */
size_t fw_resolver_cached(const struct fw_resolver *r);

#endif
