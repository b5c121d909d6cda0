/* SPDX-License-Identifier: ISC */
#include <string.h>

#include "base/hash.h"
#include "base/str.h"
#include "base/url.h"
#include "engine/host_key.h"
#include "engine/host_share.h"
#include "base/banned.h"

uint32_t host_share_of(const struct fw_feed *feed, uint64_t seed)
{
	char name[HOST_KEY_MAX], key[HOST_KEY_MAX];

	if (!fw_url_host(feed->url, name, sizeof(name)) || !fw_store_feed_host(feed, key, sizeof(key)) || strcmp(name, key) == 0)
		return 0;
	return (uint32_t)(fw_hash64_seed(name, strlen(name), seed) % (HOST_SHARE_N - 1)) + 1;
}

/* Counted before it is looked at: of two workers that come at once both may be refused, but never both let in. */
bool host_share_enter(struct host_share *const *all, int n, int me, uint32_t name, uint32_t max)
{
	uint32_t sum = 0;

	atomic_fetch_add(&all[me]->in[name], 1);
	for (int i = 0; i < n; i++)
		sum += atomic_load(&all[i]->in[name]);
	if (sum <= max)
		return true;
	host_share_leave(all[me], name);
	return false;
}

void host_share_leave(struct host_share *own, uint32_t name)
{
	atomic_fetch_sub(&own->in[name], 1);
}
