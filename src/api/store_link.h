/* SPDX-License-Identifier: ISC */
/*
 * A link: one thread's connection to the configured store, which may be lost, and its way back. All
 * who keep a connection own a link, so that each of them goes on after an outage or a failover:
 *
 *	st = store_link_get(l, &err);           opens the store if that is due; NULL: an outage
 *	rc = st ? work(st, &err) : err.rc;
 *	store_link_after(l, rc, &err);          may close the store; then _get() opens it again
 *
 * What an error means
 *
 *   - FW_EIO: the connection is of no use. It is closed, and opened again: at once, then after a
 *     backoff. A server that takes no writes is FW_EIO on every engine (store/driver.h).
 *   - FW_EAGAIN, FW_ENOMEM: the connection is kept, and the owner backs off. Only the third one, or
 *     one that comes 5 s after the first, begins an outage; 5 s without one count anew. On a server
 *     it counts as FW_EIO: after a failover the connected server may be alive, but no longer the
 *     one that its name leads to.
 *   - FW_EUNUSABLE, FW_EVERSION: waiting does not mend it (base/err.h). A worker ends; who serves
 *     goes on, and tries again with the longest backoff.
 *   - Others are the caller's business.
 *
 * An outage ends when the store answers a ping, which checks that the server takes writes: a read
 * that a replica answers ends none. A link pings also before it is used after 30 s, and after
 * another link of the process was closed. So one failed write heals all, and one broken connection
 * costs the others a ping.
 *
 * An outage is logged once at warning, again every 10 minutes, and once when it is over; links with
 * the same `who` are one there. Backoff: 100 ms, doubled up to 5 s, half of it random, so that a
 * fleet does not return at the same moment.
 */
#ifndef FW_API_STORE_LINK_H
#define FW_API_STORE_LINK_H

#include "feedwheel/engine.h"

#define STORE_LINK_BACKOFF_MIN_MS INT64_C(100)
#define STORE_LINK_BACKOFF_MAX_MS INT64_C(5000)
#define STORE_LINK_REFUSED_MAX 3
#define STORE_LINK_REFUSED_MS INT64_C(5000)
#define STORE_LINK_PING_MS INT64_C(30000)

struct store_link {
	/* the owner's, set before the first use */
	const struct fw_config *config;
	const char *who, *waits; /* static: "orders", "deliveries wait": the words of the log */
	/* Called with a store that was just opened. An error: as if it was not opened. Or NULL */
	int (*opened)(void *ctx, struct fw_store *st, struct fw_err *err);
	/* Called before each closing: drop what was learned there, such as leads. Or NULL */
	void (*lost)(void *ctx);
	void *ctx;
	/* private: zero at first */
	struct fw_store *st;
	int64_t backoff_ms, at_ms; /* the last pause; monotonic: when the next try is due */
	int64_t down_since_ms;     /* monotonic; 0: no outage */
	int64_t pinged_ms;         /* monotonic: the last answered ping, or opening */
	bool answers;              /* it answered a ping since the last failure */
	unsigned refused_n;
	int64_t refused_since_ms, refused_at_ms; /* monotonic: the first and the last of them */
	unsigned generation;                     /* of store_links_renew(), at the last ping */
	unsigned recovered_n;                    /* others that were back when it failed last */
	struct fw_err err;                       /* the last one */
};

/* The open store. NULL: an outage; *err says why. */
struct fw_store *store_link_get(struct store_link *l, struct fw_err *err);
/* After each piece of work; rc 0 too. May close the store. True: it is down. */
bool store_link_after(struct store_link *l, int rc, const struct fw_err *err);
/* The same for an owner who foresees no other errors: they count as FW_EIO, so it begins anew. */
bool store_link_after_round(struct store_link *l, int rc, const struct fw_err *err);
/* During an outage leave out what is not needed: index, retention, counts. */
static inline bool store_link_is_down(const struct store_link *l)
{
	return l->down_since_ms != 0;
}
/* Waiting does not mend it: l->err says what a person must mend. */
bool store_link_is_unusable(const struct store_link *l);
/* Until the next try, in ms; 0: now. */
int64_t store_link_wait_ms(const struct store_link *l);
/*
 * For an owner without work: ping, or in an outage try again, if that is due. So it leaves a server
 * that became a replica. Opens nothing that was not open.
 */
void store_link_idle(struct store_link *l);
/* Until then, in ms; -1: never. */
int64_t store_link_idle_ms(const struct store_link *l);
/* A stop, or a person, does not wait for the backoff. */
void store_link_try_now(struct store_link *l);
/* Close the store; calls `lost`. The link can be used again. */
void store_link_close(struct store_link *l);

/* Any thread: each link of this process pings before its next use. */
void store_links_renew(void);
/* The number of links of this process in an outage. */
size_t store_links_down_n(void);

#endif
