/* SPDX-License-Identifier: ISC */
/* Changes that the owner of a feed makes. */
#include "base/str.h"
#include "api/view.h"

/*
 * A new interval counts from the last visit, not from the old due time; the backoff after failures
 * stays.
 */
static void feed_apply_interval(const struct fw_feed *now, int64_t now_ms, struct fw_feed *to, unsigned *what)
{
	int64_t due_ms = now->last_visit_ms + to->interval_ms;

	due_ms = FW_MAX(due_ms, now_ms);
	if (!(*what & FW_SET_INTERVAL) || (*what & FW_SET_DUE) || !to->interval_ms || due_ms >= now->due_at_ms ||
		now->fail_n)
		return;
	to->due_at_ms = due_ms;
	*what |= FW_SET_DUE;
}

int fw_feed_update(struct fw_store *st, const struct fw_feed *now, const struct fw_feed *to, unsigned what,
	int64_t now_ms, struct fw_err *err)
{
	struct fw_feed with = *to;

	with.id = now->id;
	feed_apply_interval(now, now_ms, &with, &what);
	return fw_store_feed_set(st, &with, what, err);
}
