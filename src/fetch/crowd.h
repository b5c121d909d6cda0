/* SPDX-License-Identifier: ISC */
/*
 * How many are at one address at the same time, and who waits for a place there. Pure: counts and lines, no sockets, no clock.
 * An address is an IPv4 address, or the /64 of an IPv6 one, for a host can have all of that.
 */
#ifndef FW_FETCH_CROWD_H
#define FW_FETCH_CROWD_H

#include "feedwheel/types.h"

struct fw_crowd;
struct fw_crowd_place;

/* What counts as one address (16 bytes, IPv4 mapped). One behind NAT64 is itself. */
void fw_crowd_key(const unsigned char address[16], unsigned char key[16]);

struct fw_crowd_seat { /* the caller's; zeroed: it is nowhere */
	struct fw_crowd_place *place;
	enum fw_crowd_state { FW_CROWD_NOWHERE, FW_CROWD_IN, FW_CROWD_WAITS, FW_CROWD_CALLED } state;
	struct fw_crowd_seat *prev, *next;
};

/* max: at most so many at one address, 1 or more. Errors: FW_ENOMEM. */
FW_MUST_CHECK int fw_crowd_create(uint32_t max, struct fw_crowd **out);
void fw_crowd_destroy(struct fw_crowd *c); /* nobody is anywhere any more; NULL is fine */
/*
 * Come to address (16 bytes, IPv4 mapped) and give back a place elsewhere; who has one there keeps it. s->state tells: IN, or WAITS
 * behind those who came before. Errors: FW_ENOMEM, s is nowhere then.
 */
FW_MUST_CHECK int fw_crowd_enter(struct fw_crowd *c, const unsigned char address[16], struct fw_crowd_seat *s);
/* Give the place back, or stop waiting for it; fine when s is nowhere. The first who waits there is called. */
void fw_crowd_leave(struct fw_crowd *c, struct fw_crowd_seat *s);
/* The next of those who were called; its state is IN from now on. NULL: nobody. */
struct fw_crowd_seat *fw_crowd_next(struct fw_crowd *c);
bool fw_crowd_calls(const struct fw_crowd *c); /* is there a next? */
/* Does it wait, called or not? */
static inline bool fw_crowd_waits(const struct fw_crowd_seat *s)
{
	return s->state == FW_CROWD_WAITS || s->state == FW_CROWD_CALLED;
}
/* Addresses at which somebody is. */
size_t fw_crowd_places(const struct fw_crowd *c);

#endif
