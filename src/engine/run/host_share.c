/* SPDX-License-Identifier: ISC */
#include <assert.h>
#include <string.h>

#include "base/hash.h"
#include "base/str.h"
#include "base/url.h"
#include "engine/run/host_key.h"
#include "engine/run/host_share.h"

uint32_t host_share_of(const struct fw_feed *feed, uint64_t seed)
{
	char name[HOST_KEY_MAX], key[HOST_KEY_MAX];

	if (!fw_url_host(feed->url, name, sizeof(name)) || !fw_store_feed_host(feed, key, sizeof(key)) ||
		strcmp(name, key) == 0)
		return 0;
	return (uint32_t)(fw_hash64_seed(name, strlen(name), seed) % (HOST_SHARE_N - 1)) + 1;
}

bool host_share_take(struct host_share *s, uint32_t name, uint32_t max)
{
	assert(name && name < HOST_SHARE_N);
	if (s->in[name] >= max)
		return false;
	s->in[name]++;
	return true;
}

void host_share_release(struct host_share *s, uint32_t name)
{
	assert(s->in[name]);
	s->in[name]--;
}
