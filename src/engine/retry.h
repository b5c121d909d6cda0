/* SPDX-License-Identifier: ISC */
/* A store that says no: when to ask it again, and when over a new connection. For the two threads that own one: store_thread.c, flush.c. */
#ifndef FW_ENGINE_RETRY_H
#define FW_ENGINE_RETRY_H

#include "feedwheel/engine.h"

struct retry {
	int64_t pause_ms;   /* the last pause; 0: no outage */
	int64_t at_ms;      /* monotonic: the next try; 0: at once */
	unsigned refused_n; /* in a row */
};

/* Will what was refused so be taken later, as it is? */
bool retry_is_passing(int rc);
/* Another pause, twice as long, up to some seconds. Returns how long it is, about: with jitter, so that a fleet does not knock at once. */
int64_t retry_later(struct retry *r);
/*
 * After this refusal: is the store to be opened anew? When the connection is broken, and when it says no on and on: after a failover the
 * server that we are connected to may be alive, and not be the one any more that its name leads to.
 */
bool retry_reopens(struct retry *r, int rc, const struct fw_config *c);

#endif
