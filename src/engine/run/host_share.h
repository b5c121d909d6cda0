/* SPDX-License-Identifier: ISC */
/*
 * Where several names share one host (a hoster's customers, or what lies at one address) they share its limit too: host_max requests at once.
 * A name whose server drips would hold all of them for as long as a visit may last. So one name holds at most all but one. A host has one
 * owner, so its worker counts them: by a hash, for two names of one number only wait for each other.
 */
#ifndef FW_ENGINE_HOST_SHARE_H
#define FW_ENGINE_HOST_SHARE_H

#include "feedwheel/store.h"

#define HOST_SHARE_N 16384

struct host_share {
	uint16_t in[HOST_SHARE_N]; /* visits in flight, by the number of their names */
};

/* The number of the name in the feed's URL, 1 or more; 0: it shares its host with no other name. seed: nobody outside should know it. */
uint32_t host_share_of(const struct fw_feed *feed, uint64_t seed);
/* May another of its visits begin, so that there are at most max? If so it is counted until it leaves. */
bool host_share_enter(struct host_share *s, uint32_t name, uint32_t max);
void host_share_leave(struct host_share *s, uint32_t name);

#endif
