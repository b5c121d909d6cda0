/* SPDX-License-Identifier: ISC */
/* The host of a feed, for people. */
#include "api/host_cooldown.h"
#include "store/driver.h"

struct cooldown_find {
	int64_t host_id, until_ms;
};

static int cooldown_on_host(void *ctx, const struct store_host *host)
{
	struct cooldown_find *f = ctx;

	if (host->id == f->host_id)
		f->until_ms = host->cooldown_until_ms;
	return 0;
}

int fw_feed_cooldown(struct fw_store *st, const struct fw_feed *feed, int64_t *until_ms, struct fw_err *err)
{
	struct cooldown_find f = {.host_id = store_feed_host_id(feed)};
	int shard = store_host_shard(f.host_id);
	struct store_due_query q = {.shard = shard, .last_shard = shard, .host = cooldown_on_host, .ctx = &f};
	int rc = STORE_CALL(st, due, &q, STORE_ERR(err));

	*until_ms = rc || f.until_ms <= fw_store_now_ms(st) ? 0 : f.until_ms;
	return rc;
}
