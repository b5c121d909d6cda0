/* SPDX-License-Identifier: ISC */
/*
 * A feed's quota: new entries and bytes of today, against feed_entries_max and feed_bytes_max.
 *
 * It is a record of kind "quota" (feedwheel-store(7)). A feed that never brings much has none.
 */
#ifndef FW_API_QUOTA_H
#define FW_API_QUOTA_H

#include "feedwheel/engine.h"

struct fw_quota {
	int64_t feed_id;
	int64_t since_ms, until_ms;  /* the day */
	int64_t new_n, bytes;        /* new entries; bytes of new and changed ones */
	int64_t waiting_n;           /* entries of its last document that were left for later */
};

/* The quota of the current day. FW_ENOTFOUND: nothing was counted. */
FW_MUST_CHECK int fw_quota_get(struct fw_store *st, int64_t feed_id, int64_t now_ms, struct fw_quota *out,
	struct fw_err *err);
/* All feeds with a current day, by number. Anything but 0 stops the walk and is returned. */
typedef int fw_quota_cb(void *ctx, const struct fw_quota *q);
FW_MUST_CHECK int fw_quota_list(struct fw_store *st, int64_t now_ms, fw_quota_cb *cb, void *ctx, struct fw_err *err);
/* Is one of the limits reached? */
bool fw_quota_is_used_up(const struct fw_config *c, const struct fw_quota *q);

#endif
