/* SPDX-License-Identifier: ISC */
/*
 * Names that share a host (a hosting service's customers, or all names at one address) share its
 * limit: host_concurrency requests at once. A name with a slow server could hold all of them for as
 * long as a visit may last. So one name gets at most all places but one. The host's owner counts
 * them, by a hash of the name; two names with the same hash only wait for each other.
 */
#ifndef FW_ENGINE_HOST_SHARE_H
#define FW_ENGINE_HOST_SHARE_H

#include "feedwheel/store.h"

#define HOST_SHARE_N 16384

struct host_share {
	uint16_t in[HOST_SHARE_N]; /* visits in flight, by the number of their name */
};

/*
 * The number of the name in the feed's URL, from 1; 0: it shares its host with no other name. seed:
 * secret, for the hash.
 */
uint32_t host_share_of(const struct fw_feed *feed, uint64_t seed);
/* Take a place for a visit of this name. False: the name has max places already. */
bool host_share_take(struct host_share *s, uint32_t name, uint32_t max);
void host_share_release(struct host_share *s, uint32_t name); /* give the place back */

#endif
