/* SPDX-License-Identifier: ISC */
/*
 * Limiter: at most `max` transfers at one address at a time; others wait for a slot, first come,
 * first served. An address is an IPv4 address, or the /64 of an IPv6 address, because one host may
 * have all of a /64. Pure: counts and queues; no sockets, no clock. One thread.
 */
#ifndef FW_FETCH_LIMITER_H
#define FW_FETCH_LIMITER_H

#include "feedwheel/types.h"

struct fw_limiter;
struct fw_limiter_address;

/*
 * The address as the limiter counts it: 16 bytes, IPv4 mapped, IPv6 cut to /64. NAT64 addresses
 * count as their IPv4 address.
 */
void fw_limiter_key(const unsigned char address[16], unsigned char key[16]);

/* a slot of the caller's; zeroed: idle */
struct fw_limiter_slot {
	struct fw_limiter_address *address;
	enum fw_limiter_state { FW_LIMITER_IDLE, FW_LIMITER_HELD, FW_LIMITER_WAITING, FW_LIMITER_GRANTED } state;
	struct fw_limiter_slot *prev, *next;
};

/* max: slots at each address, at least 1. Errors: FW_ENOMEM. */
FW_MUST_CHECK int fw_limiter_create(uint32_t max, struct fw_limiter **out);
void fw_limiter_destroy(struct fw_limiter *c); /* all slots must be free; NULL is allowed */
/*
 * Take a slot at this address (16 bytes, IPv4 mapped), and free the one held at another address.
 * s->state becomes HELD, or WAITING when all slots are taken. Errors: FW_ENOMEM; then s holds and
 * awaits nothing.
 */
FW_MUST_CHECK int fw_limiter_acquire(struct fw_limiter *c, const unsigned char address[16], struct fw_limiter_slot *s);
/*
 * Free the slot, or stop waiting for it. No effect when idle. The first waiter gets the slot: its
 * state becomes GRANTED.
 */
void fw_limiter_release(struct fw_limiter *c, struct fw_limiter_slot *s);
/* The next waiter that got a slot; its state becomes HELD. NULL: none. */
struct fw_limiter_slot *fw_limiter_next(struct fw_limiter *c);
bool fw_limiter_has_next(const struct fw_limiter *c); /* has a waiter got a slot? */
/* True while it waits, and until fw_limiter_next() returns it. */
static inline bool fw_limiter_is_waiting(const struct fw_limiter_slot *s)
{
	return s->state == FW_LIMITER_WAITING || s->state == FW_LIMITER_GRANTED;
}
/* Number of addresses with taken slots. */
size_t fw_limiter_addresses(const struct fw_limiter *c);

#endif
