/* SPDX-License-Identifier: ISC */
/*
 * A feed's quota: today's new entries and bytes, and the limits feed_daily_entries_max and
 * feed_daily_bytes_max.
 *
 * It is a record of kind "quota" (feedwheel-store(7)). Small feeds have none.
 */
#ifndef FW_API_QUOTA_H
#define FW_API_QUOTA_H

#include "feedwheel/engine.h"

struct fw_quota {
	int64_t feed_id;
	int64_t since_ms, until_ms; /* start and end of the day */
	int64_t new_n, bytes;       /* new entries; bytes of new and changed ones */
	int64_t deferred_n;         /* deferred entries of its last document */
};

/* Reads the quota of the current day. Errors: FW_ENOTFOUND: nothing was counted; the store's. */
FW_MUST_CHECK int fw_quota_get(
	struct fw_store *st, int64_t feed_id, int64_t now_ms, struct fw_quota *out, struct fw_err *err);
/*
 * Lists the quotas of the current day, by feed id. A callback's result other than 0 stops the list
 * and is returned.
 */
typedef int fw_quota_cb(void *ctx, const struct fw_quota *q);
FW_MUST_CHECK int fw_quota_list(struct fw_store *st, int64_t now_ms, fw_quota_cb *cb, void *ctx, struct fw_err *err);
/* True if one of the limits is reached. */
bool fw_quota_is_used_up(const struct fw_config *c, const struct fw_quota *q);

#endif
