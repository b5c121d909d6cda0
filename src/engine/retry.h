/* SPDX-License-Identifier: ISC */
/*
 * Retries of store operations: when to try again, and when to reconnect. Used by the two threads
 * that own a connection, of store_thread.c and flush.c.
 */
#ifndef FW_ENGINE_RETRY_H
#define FW_ENGINE_RETRY_H

#include "feedwheel/engine.h"

struct retry {
	int64_t pause_ms;   /* the last pause; 0: no outage */
	int64_t at_ms;      /* monotonic: the next attempt; 0: at once */
	unsigned refused_n; /* consecutive refusals */
};

/* True if the same request may succeed later. */
bool retry_is_transient(int rc);
/*
 * Starts the next pause: exponential backoff, up to some seconds, with jitter so that a fleet does
 * not retry at the same moment.
 * Returns the length in ms.
 */
int64_t retry_backoff(struct retry *r);
/*
 * Call it after a failure: must the store be reopened? True if the connection is broken, or after
 * several refusals in a row: after a failover the connected server may be alive, but no longer the
 * one that its name resolves to.
 */
bool retry_must_reopen(struct retry *r, int rc, const struct fw_config *c);

#endif
