/* SPDX-License-Identifier: ISC */
/*
 * Cooldowns of names that share a host (a hosting service's customers, or all names at one
 * address).
 *
 * The response of one name counts for that name alone, because each customer of a hosting service
 * can choose the status and Retry-After of its own pages. When HOST_COOLDOWN_NAMES different names
 * have wanted a cooldown within an hour, the whole host is throttled, for the shortest of their
 * cooldowns and at most an hour. A name that is a host by itself is not handled here: the store
 * keeps its cooldown for all workers.
 *
 * Each worker remembers its own responses, in a hash table of fixed size. A collision displaces the
 * older name, which costs that name one request. Single-threaded: the loop's.
 */
#ifndef FW_ENGINE_NAME_COOLDOWN_H
#define FW_ENGINE_NAME_COOLDOWN_H

#include "engine/run/visit.h"

#define HOST_COOLDOWN_NAMES 3
#define HOST_COOLDOWN_WITHIN_MS FW_HOUR_MS
#define HOST_COOLDOWN_MAX_MS FW_HOUR_MS

struct name_cooldowns;
/* seed: secret, for the hash. NULL: out of memory. */
struct name_cooldowns *name_cooldowns_create(uint64_t seed);
void name_cooldowns_destroy(struct name_cooldowns *p);

/*
 * After visit_learn_host(): remember the cooldown of the visit's name. If enough names want one,
 * sets it for the visit's host.
 */
void name_cooldown_learn(struct name_cooldowns *p, struct visit *v, int64_t now_ms);
/* End of the cooldown of the name in this URL; 0: none. */
int64_t name_cooldown_until(const struct name_cooldowns *p, struct fw_str url, int64_t now_ms);

#endif
