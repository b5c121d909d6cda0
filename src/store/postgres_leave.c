/* SPDX-License-Identifier: ISC */
/*
 * Feeds that go away: by their owner's wish, or because they turned out to be another one.
 *
 * Of two that are one both stand nowhere while their entries change hands: nobody can be lent one of them and store the same entries
 * meanwhile. Entries keep their numbers, so the search index and readers with a cursor notice nothing.
 */
#include "store/postgres.h"

/* Queued: all that belongs to a feed that is off the wheel, and its row. */
static void feed_drop(struct pg *p, const struct pg_standing *f)
{
	pg_int(p, f->last_visit_id);
	pg_send(p, PG_VISITS_LESS, "WITH RECURSIVE chain (id) AS (SELECT $1::int8 UNION ALL SELECT coalesce((SELECT b.previous_id[(c.id &"
		" 1023) + 1] FROM visit_batches b WHERE b.id = c.id >> 10), (SELECT r.previous_id FROM visit_rows r WHERE r.id = c.id))"
		" FROM chain c WHERE c.id IS NOT NULL), r AS (DELETE FROM visit_rows r USING chain c WHERE r.id = c.id)"
		" UPDATE visit_batches b SET n = b.n - s.n FROM (SELECT c.id >> 10 AS id, count(*) AS n FROM chain c JOIN visit_batches x"
		" ON x.id = c.id >> 10 AND cardinality(x.feed_id) > c.id & 1023 GROUP BY 1) s WHERE b.id = s.id");
	pg_int(p, f->id);
	pg_send(p, PG_ENTRIES_DROP, "WITH k AS (DELETE FROM entry_keys WHERE feed_id = $1::int8 RETURNING entry_id), e AS (DELETE FROM"
		" entries USING k WHERE id = k.entry_id RETURNING id), s AS (DELETE FROM entries_fts s USING k WHERE s.id = k.entry_id)"
		" INSERT INTO tally SELECT -count(*) FROM e HAVING count(*) > 0");
	pg_int(p, f->id);
	pg_send(p, PG_FEED_DROP, "WITH w AS (DELETE FROM wheel WHERE feed_id = $1::int8) DELETE FROM feeds WHERE id = $1::int8");
	pg_host_leave(p, f->host_id);
}

static int unsubscribe_in(struct pg *p, void *ctx, struct fw_err *err)
{
	struct pg_standing f = {.id = *(const int64_t *)ctx};
	struct pg_back back;
	bool found;
	int rc;

	pg_begin(p);
	pg_lock(p, PG_LOCK_MEMBERS);
	rc = pg_take_off(p, &f, &found, err);
	if (rc)
		goto out;
	if (f.loan) {
		f.loan->open &= ~(UINT64_C(1) << f.bit);
		pg_loans_write(p, &f.loans);
		back = (struct pg_back){.host_id = f.loan->host[f.bit], .n = 1};
		pg_hosts_return(p, &back, 1);
	}
	feed_drop(p, &f);
	rc = pg_commit_run(p, err);
out:
	pg_loans_finish(&f.loans);
	return rc;
}

int pg_unsubscribe(struct fw_store *st, int64_t feed_id, struct fw_err *err)
{
	return pg_txn(pg_of(st), unsubscribe_in, &feed_id, err);
}

struct merging {
	int64_t from_id, into_id;
};

/* Queued: to `into` goes what it lacks, by key and by guid. */
static void entries_merge(struct pg *p, const struct merging *m)
{
	pg_int(p, m->from_id);
	pg_int(p, m->into_id);
	pg_send(p, PG_ENTRIES_MERGE, "WITH g AS MATERIALIZED (SELECT e.guid FROM entry_keys k JOIN entries e ON e.id = k.entry_id"
		" WHERE k.feed_id = $2::int8 AND e.guid <> ''), m AS MATERIALIZED (SELECT k.key, e.id FROM entry_keys k JOIN entries e"
		" ON e.id = k.entry_id WHERE k.feed_id = $1::int8 AND (coalesce(e.guid, '') IN (SELECT guid FROM g)) IS FALSE"
		" AND NOT EXISTS (SELECT 1 FROM entry_keys i WHERE i.feed_id = $2::int8 AND i.key = k.key)), e AS (UPDATE entries e SET"
		" feed_id = $2::int8 FROM m WHERE e.id = m.id) UPDATE entry_keys k SET feed_id = $2::int8 FROM m WHERE k.feed_id = $1::int8"
		" AND k.key = m.key");
}

/* Off the wheel, unless it is lent. */
static int stand_aside(struct pg *p, struct pg_standing *f, struct fw_err *err)
{
	bool found;
	int rc = pg_take_off(p, f, &found, err);

	if (rc || !f->loan)
		return rc;
	return fw_err_set(err, FW_EAGAIN, "%s: feed %lld is lent: try again when it is back", p->name, (long long)f->id);
}

static int merge_in(struct pg *p, void *ctx, struct fw_err *err)
{
	const struct merging *m = ctx;
	struct pg_standing from = {.id = m->from_id}, into = {.id = m->into_id};
	int rc;

	pg_begin(p);
	pg_lock(p, PG_LOCK_MEMBERS);
	rc = stand_aside(p, &from, err);
	rc = rc ? rc : stand_aside(p, &into, err);
	if (!rc) {
		entries_merge(p, m);
		feed_drop(p, &from);
		if (into.status == FW_FEED_ACTIVE)
			pg_place_put(p, &into, into.due_ms);
		pg_notify(p);
		rc = pg_commit_run(p, err);
	}
	pg_loans_finish(&from.loans);
	pg_loans_finish(&into.loans);
	return rc;
}

int pg_feed_merge(struct fw_store *st, int64_t from_id, int64_t into_id, struct fw_err *err)
{
	struct merging m = {from_id, into_id};

	return pg_txn(pg_of(st), merge_in, &m, err);
}
