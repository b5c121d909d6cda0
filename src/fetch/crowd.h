/* SPDX-License-Identifier: ISC */
/*
 * Limiter: at most `max` transfers at one address at a time; others wait for a slot, first come,
 * first served. An address is an IPv4 address, or the /64 of an IPv6 address, because one host may
 * have all of a /64. Pure: counts and queues; no sockets, no clock. One thread.
 */
#ifndef FW_FETCH_CROWD_H
#define FW_FETCH_CROWD_H

#include "feedwheel/types.h"

struct fw_crowd;
struct fw_crowd_place;

/*
 * The address as the limiter counts it: 16 bytes, IPv4 mapped, IPv6 cut to /64. NAT64 addresses
 * count as their IPv4 address.
 */
void fw_crowd_key(const unsigned char address[16], unsigned char key[16]);

struct fw_crowd_seat { /* a slot of the caller's; zeroed: idle */
	struct fw_crowd_place *place;
	enum fw_crowd_state { FW_CROWD_NOWHERE, FW_CROWD_IN, FW_CROWD_WAITS, FW_CROWD_CALLED } state;
	struct fw_crowd_seat *prev, *next;
};

/* max: slots at each address, at least 1. Errors: FW_ENOMEM. */
FW_MUST_CHECK int fw_crowd_create(uint32_t max, struct fw_crowd **out);
void fw_crowd_destroy(struct fw_crowd *c); /* all slots must be free; NULL is allowed */
/*
 * Take a slot at this address (16 bytes, IPv4 mapped), and free the one held at another address.
 * s->state becomes IN, or WAITS when all slots are taken. Errors: FW_ENOMEM; then s holds and
 * awaits nothing.
 */
FW_MUST_CHECK int fw_crowd_enter(struct fw_crowd *c, const unsigned char address[16], struct fw_crowd_seat *s);
/*
 * Free the slot, or stop waiting for it. No effect when idle. The first waiter gets the slot: its
 * state becomes CALLED.
 */
void fw_crowd_leave(struct fw_crowd *c, struct fw_crowd_seat *s);
/* The next waiter that got a slot; its state becomes IN. NULL: none. */
struct fw_crowd_seat *fw_crowd_next(struct fw_crowd *c);
bool fw_crowd_calls(const struct fw_crowd *c); /* has a waiter got a slot? */
/* True while it waits, and until fw_crowd_next() returns it. */
static inline bool fw_crowd_waits(const struct fw_crowd_seat *s)
{
	return s->state == FW_CROWD_WAITS || s->state == FW_CROWD_CALLED;
}
/* Number of addresses with taken slots. */
size_t fw_crowd_places(const struct fw_crowd *c);

#endif
