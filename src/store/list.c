/* SPDX-License-Identifier: ISC */
/* The drivers of this build. */
#include "store/driver.h"

#include "base/hash.h"
#include "base/str.h"
#include "base/banned.h"

const struct store_driver *const store_drivers[] = {
	&store_sqlite,
	&store_memory,
#if FW_HAVE_POSTGRES
	&store_postgres,
#endif
#if FW_HAVE_MYSQL
	&store_mysql,
#endif
	NULL,
};

int64_t store_host_id(struct fw_str host)
{
	return (int64_t)(fw_hash64(host.p, host.len) >> 1 | STORE_SHARDS);
}

int64_t store_feed_host_id(const struct fw_feed *feed)
{
	char host[300];

	/* an address without a host is one of its own */
	return store_host_id(fw_store_feed_host(feed, host, sizeof(host)) ? fw_str(host) : feed->url);
}
