/* SPDX-License-Identifier: ISC */
/*
 * One feed, lent by its number: taken off the wheel wherever it stands, as for its owner's changes, and from there to the leases, under
 * a claim of its own. It is in nobody's budget. Such loans are not remembered by the connection: a commit reads the lease.
 */
#include "base/clock.h"
#include "store/sqlite.h"

/* By whom it is lent, until when. */
static int lent_look(struct sqlite *s, int64_t fence, struct fw_lend_got *got, struct fw_err *err)
{
	sqlite3_stmt *q = sq_ask(s, SQ_LEND_UNTIL, "SELECT until_ms, worker FROM claims WHERE first_fence <= ? ORDER BY first_fence DESC LIMIT 1",
		err, "i", fence);
	int rc = q ? sq_row(s, q, err) : err->rc;

	if (rc <= 0)
		return rc;
	got->until_ms = sqlite3_column_int64(q, 0);
	(void)fw_str_copy(got->worker, sizeof(got->worker), sq_text(q, 1));
	sqlite3_reset(q);
	return 0;
}

/* The feed lies aside. */
static int lend(struct sqlite *s, const struct fw_lend_ask *ask, int64_t host_id, int64_t now, struct fw_lend_got *got, struct fw_err *err)
{
	int64_t fence, until = now + ask->lease_ms;
	bool crowded;
	int rc = sq_host_crowded(s, host_id, &crowded, err);

	rc = rc ? rc : sq_number(s, &fence, err);
	rc = rc ? rc : sq_do(s, SQ_LEND, "INSERT INTO leases (fence, feed_id, host_id, status, " SQ_STATE ") SELECT ?, feed_id, ?, status, "
		SQ_STATE " FROM aside WHERE feed_id = ?", err, "iii", fence, crowded ? -host_id : SQ_INT(0), ask->feed_id);
	if (!rc && sqlite3_changes(s->db) != 1)
		return fw_err_set(err, FW_EIO, "%s: feed %lld stands nowhere: `feedwheel doctor` finds out more", s->path, (long long)ask->feed_id);
	rc = rc ? rc : sq_aside_del(s, ask->feed_id, err);
	rc = rc ? rc : sq_claim_put(s, fence, fence, until, ask->worker, err);
	if (rc)
		return rc;
	got->fence = fence;
	got->until_ms = until;
	return 0;
}

static int lend_in(struct sqlite *s, const struct fw_lend_ask *ask, struct fw_lend_got *got, struct fw_err *err)
{
	int64_t now = ask->now_ms ? ask->now_ms : fw_now_ms(), host_id = 0;
	struct sq_where w;
	int rc = sq_claims_expire(s, now, err);

	rc = rc ? rc : sq_standing(s, ask->feed_id, &host_id, &w, err);
	if (rc)
		return rc;
	got->status = (enum fw_feed_status)w.status;
	if (w.table == SQ_LEASES) {
		rc = lent_look(s, w.key, got, err);
		got->until_ms = FW_MAX(got->until_ms, 1); /* lent, though its claim is gone by somebody's hand */
		return rc;
	}
	if (!fw_feed_takes_entries((enum fw_feed_status)w.status))
		return 0;
	rc = sq_wheel_off(s, ask->feed_id, &w, err); /* one that is paused lies aside already */
	return rc ? rc : lend(s, ask, host_id, now, got, err);
}

int sq_lend(struct fw_store *st, const struct fw_lend_ask *ask, struct fw_lend_got *got, struct fw_err *err)
{
	struct sqlite *s = sqlite_of(st);
	int rc = sq_begin_quick(s, err);

	return rc ? rc : sq_end(s, lend_in(s, ask, got, err), err);
}
