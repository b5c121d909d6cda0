/* SPDX-License-Identifier: ISC */
/* A feed's quota: the daily limits of one feed. quota.c describes the rules. */
#ifndef FW_ENGINE_QUOTA_H
#define FW_ENGINE_QUOTA_H

#include "api/quota.h"

/* of one document; zeroed: quota_apply() was not called yet */
struct quota {
	bool applied; /* quota_apply() is done */
	bool counts;  /* quota_count() counts it after the commit */
	bool exact;   /* bytes is the exact size of the new and changed entries */
	struct fw_quota before;
	/* size of the new and changed entries if exact, else of all entries */
	int64_t bytes;
	int64_t largest_bytes; /* size of the largest entry */
	int64_t deferred_n;    /* entries that were left out */
};

/*
 * Before the commit: removes the entries above the limits from o. row is o->entries, reordered in
 * place. is_visit: false for a hub's push. A second call does nothing.
 * Errors: those of the store; then nothing has changed.
 */
FW_MUST_CHECK int quota_apply(struct quota *q, struct fw_store *st, const struct fw_config *c,
	const struct fw_feed *was, bool is_visit, struct fw_entry_row *row, struct fw_outcome *o, int64_t now_ms,
	struct fw_err *err);
/* After the commit: counts what was stored. A failure is only logged. */
void quota_count(const struct quota *q, struct fw_store *st, const struct fw_outcome *o, int64_t now_ms);

#endif
