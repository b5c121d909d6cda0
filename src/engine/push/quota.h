/* SPDX-License-Identifier: ISC */
/* A feed's quota: what one feed may bring a day. The rules stand at the top of quota.c. */
#ifndef FW_ENGINE_QUOTA_H
#define FW_ENGINE_QUOTA_H

#include "api/quota.h"

struct quota { /* of one document; zeroed: not looked at yet */
	bool taken;            /* quota_take() is done */
	bool counts;           /* it is counted when it is stored */
	bool exact;            /* bytes are those of new and changed entries */
	struct fw_quota before;
	int64_t bytes;         /* exact: of new and changed entries; else of all entries, */
	int64_t largest_bytes; /* and of the largest of them */
	int64_t left_n;        /* entries that were left out */
};

/*
 * Before the commit: leave out of o what passes the limits. row is o->entries. is_visit: false for a hub's push. A second call does nothing. Errors: the store's;
 * nothing is changed then.
 */
FW_MUST_CHECK int quota_take(struct quota *q, struct fw_store *st, const struct fw_config *c,
	const struct fw_feed *was, bool is_visit, struct fw_entry_row *row, struct fw_outcome *o, int64_t now_ms,
	struct fw_err *err);
/* After the commit: count what was stored. Should that fail, the log says so. */
void quota_put(const struct quota *q, struct fw_store *st, const struct fw_outcome *o, int64_t now_ms);

#endif
