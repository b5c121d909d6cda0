/* SPDX-License-Identifier: ISC */
/*
 * Pauses that names ask for, where several names share one host (a hoster's customers, or what lies at one address).
 *
 * The answer of one name speaks for that name alone: whoever has a page at a hoster may choose its status and its Retry-After. Only when
 * three different names have said so within an hour is it the host's word: then the host pauses for as long as all three asked for,
 * at most an hour. A name that is a host by itself needs none of this: the store keeps its pause, for all workers.
 *
 * Each worker remembers what it heard itself, in bounded memory: where two names meet in one place of the table the later one takes it,
 * which costs the other a request. One thread's.
 */
#ifndef FW_ENGINE_HOST_PAUSE_H
#define FW_ENGINE_HOST_PAUSE_H

#include "engine/run/visit.h"

#define HOST_PAUSE_NAMES 3
#define HOST_PAUSE_WITHIN_MS FW_HOUR_MS
#define HOST_PAUSE_MAX_MS FW_HOUR_MS

struct host_pauses;
/* seed: nobody outside should know it. NULL: out of memory. */
struct host_pauses *host_pauses_new(uint64_t seed);
void host_pauses_free(struct host_pauses *p);

/* After visit_mood(): remember what the visit's name asked for; the visit says so of the host, when enough names have. */
void host_pause_learn(struct host_pauses *p, struct visit *v, int64_t now_ms);
/* Until when the name in this URL wants no request; 0: it may be asked. */
int64_t host_pause_until(const struct host_pauses *p, struct fw_str url, int64_t now_ms);

#endif
