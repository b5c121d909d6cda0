/* SPDX-License-Identifier: ISC */
#include <assert.h>

#include "base/clock.h"
#include "base/str.h"
#include "engine/retry.h"

#define PAUSE_MIN_MS 100
#define PAUSE_MAX_MS (5 * FW_SECOND_MS) /* time until a recovered store is noticed */
#define REFUSED_MAX 3

bool retry_is_transient(int rc)
{
	return rc == FW_EAGAIN || rc == FW_EIO || rc == FW_ENOMEM;
}

int64_t retry_backoff(struct retry *r)
{
	int64_t wait;

	assert(r->pause_ms >= 0 && r->pause_ms <= PAUSE_MAX_MS);
	r->pause_ms = r->pause_ms ? FW_MIN(r->pause_ms * 2, PAUSE_MAX_MS) : PAUSE_MIN_MS;
	wait = r->pause_ms / 2 + (int64_t)(fw_mono_us() % (r->pause_ms / 2 + 1));
	r->at_ms = fw_mono_ms() + wait;
	return wait;
}

bool retry_must_reopen(struct retry *r, int rc, const struct fw_config *c)
{
	return rc == FW_EIO || (++r->refused_n % REFUSED_MAX == 0 && fw_store_is_remote(c->store));
}
