/* SPDX-License-Identifier: ISC */
/*
 * Cooldowns of names that share a host (a hosting service's customers, or all names at one
 * address).
 *
 * The response of one name counts for that name alone, because each customer of a hosting service
 * can choose the status and Retry-After of its own pages. When HOST_PAUSE_NAMES different names
 * have wanted a cooldown within an hour, the whole host is throttled, for the shortest of their
 * cooldowns and at most an hour. A name that is a host by itself is not handled here: the store
 * keeps its cooldown for all workers.
 *
 * Each worker remembers its own responses, in a hash table of fixed size. A collision displaces the
 * older name, which costs that name one request. Single-threaded: the loop's.
 */
#ifndef FW_ENGINE_HOST_PAUSE_H
#define FW_ENGINE_HOST_PAUSE_H

#include "engine/run/visit.h"

#define HOST_PAUSE_NAMES 3
#define HOST_PAUSE_WITHIN_MS FW_HOUR_MS
#define HOST_PAUSE_MAX_MS FW_HOUR_MS

struct host_pauses;
/* seed: secret, for the hash. NULL: out of memory. */
struct host_pauses *host_pauses_new(uint64_t seed);
void host_pauses_free(struct host_pauses *p);

/*
 * After visit_mood(): remember the cooldown of the visit's name. If enough names want one, sets it
 * for the visit's host.
 */
void host_pause_learn(struct host_pauses *p, struct visit *v, int64_t now_ms);
/* End of the cooldown of the name in this URL; 0: none. */
int64_t host_pause_until(const struct host_pauses *p, struct fw_str url, int64_t now_ms);

#endif
