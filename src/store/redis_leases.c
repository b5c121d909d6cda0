/* SPDX-License-Identifier: ISC */
/*
 * Whose lease is it? What a connection has borrowed it remembers from its claim (redis_loans.c), and believes as long as the shard's
 * epoch is the same; what is in doubt, or was borrowed by somebody else, is asked for.
 *
 * Each visit's line tells its fence, so what an earlier try of this very batch has stored is found, however late it comes again.
 */
#include "store/redis_commit.h"

/* Take up what is remembered and still good. How many are open then. */
static size_t loans_take(struct rd_part *t)
{
	struct redis *r = t->r;
	size_t open = 0;

	for (size_t i = 0; i < t->n; i++) {
		struct rd_plan *p = &t->plan[i];
		struct rd_loan *loan = p->loan || p->o->rc ? NULL : rd_loan_get(&r->loans, p->o->feed_id);

		if (loan && loan->fence == p->o->fence && loan->epoch == r->epoch[t->shard] && !loan->spent) {
			loan->spent = true; /* of a feed that is there twice the first counts */
			p->loan = loan;
		}
		open += !p->loan && !p->o->rc;
	}
	return open;
}

void rd_leases_forget(struct rd_part *t)
{
	for (size_t i = 0; i < t->n; i++) {
		struct rd_plan *p = &t->plan[i];
		struct rd_loan *loan = p->foreign ? NULL : rd_loan_get(&t->r->loans, p->o->feed_id);

		if (loan)
			loan->spent = false;
		p->loan = NULL;
		p->foreign = false;
		p->o->rc = 0;
	}
}

static bool is_there_twice(const struct rd_part *t, const struct rd_plan *p)
{
	for (const struct rd_plan *q = t->plan; q < p; q++) {
		if (q->o->feed_id == p->o->feed_id && q->loan)
			return true;
	}
	return false;
}

/* What the server says of one outcome that was open. as: as what it is lent, "id" or "id@host", or nothing. */
static int outcome_judge(struct rd_part *t, struct rd_plan *p, const struct rd_loan *found, struct fw_str as, struct fw_str again)
{
	struct fw_str rest;
	int64_t new_n, changed_n;

	if (as.len && !is_there_twice(t, p)) {
		p->loan = fw_arena_alloc(&t->r->arena, sizeof(*p->loan));
		if (!p->loan)
			return FW_ENOMEM;
		*p->loan = *found;
		p->foreign = true;
		return 0;
	}
	p->o->rc = FW_ESTALE;
	if (!as.len && again.len && fw_str_int(fw_str_split(again, ' ', &rest), &new_n) && fw_str_int(rest, &changed_n)) {
		p->o->rc = RD_STORED_BEFORE;
		p->o->visit.new_n = (uint32_t)new_n;
		p->o->visit.changed_n = (uint32_t)changed_n;
	}
	return 0;
}

/* Ask for all outcomes that are open, and for all loans that are in doubt. */
static int look(struct rd_part *t, struct fw_err *err)
{
	struct redis *r = t->r;
	struct rd_loans *own = &r->loans;
	struct rd_plan **open = fw_arena_mul(&r->arena, t->n + 1, sizeof(struct rd_plan *), 0);
	struct rd_loan **doubt = fw_arena_mul(&r->arena, own->n + 1, sizeof(struct rd_loan *), 0);
	size_t open_n = 0, doubt_n = 0;
	struct rd_reply *reply;
	struct rd_conn *c;
	int64_t epoch;
	int rc;

	if (!open || !doubt)
		return rd_no_memory(r, err);
	for (size_t i = 0; i < own->cap; i++) {
		if (own->slot[i] && own->slot[i]->epoch != r->epoch[t->shard] && rd_shard_of_feed(r, own->slot[i]->feed_id) == t->shard)
			doubt[doubt_n++] = own->slot[i];
	}
	for (size_t i = 0; i < t->n; i++) { /* those that are in doubt are asked for once */
		const struct rd_loan *mine = rd_loan_get(own, t->plan[i].o->feed_id);

		if (!t->plan[i].loan && !t->plan[i].o->rc &&
		    (!mine || mine->fence != t->plan[i].o->fence || mine->epoch == r->epoch[t->shard]))
			open[open_n++] = &t->plan[i];
	}
	c = rd_op(r, t->shard, RD_READ, "look", 1 + 2 * (open_n + doubt_n), err);
	if (!c)
		return FW_ERR_CODE(err);
	rd_add_int(c, r->unsure);
	for (size_t i = 0; i < open_n; i++) {
		rd_add_int(c, open[i]->o->feed_id);
		rd_add_int(c, open[i]->o->fence);
	}
	for (size_t i = 0; i < doubt_n; i++) {
		rd_add_int(c, doubt[i]->feed_id);
		rd_add_int(c, doubt[i]->fence);
	}
	rc = rd_run1(r, t->shard, &r->arena, &reply, "looking for leases", err);
	if (rc)
		return rc;
	epoch = rd_int(reply->elem[0]);
	for (size_t i = 0; i < open_n + doubt_n && !rc; i++) {
		struct fw_str as = reply->elem[1]->elem[i]->text, value = reply->elem[2]->elem[i]->text;
		struct rd_loan found = {.feed_id = i < open_n ? open[i]->o->feed_id : doubt[i - open_n]->feed_id, .epoch = epoch,
			.fence = i < open_n ? open[i]->o->fence : doubt[i - open_n]->fence,
			.until_ms = i < open_n ? 0 : doubt[i - open_n]->until_ms, .status = (int)rd_int(reply->elem[3]->elem[i])};

		(void)fw_str_split(as, '@', &found.host);
		if (!rd_value_unpack(value, &found, NULL))
			as = FW_STR("");
		if (i < open_n)
			rc = outcome_judge(t, open[i], &found, as, reply->elem[4]->elem[i]->text);
		else if (as.len)
			rc = rd_loan_put(own, &found);
		else
			rd_loan_drop(own, found.feed_id);
	}
	r->epoch[t->shard] = epoch;
	return rc ? rd_no_memory(r, err) : 0;
}

int rd_leases_find(struct rd_part *t, struct fw_err *err)
{
	int rc = 0;

	for (int i = 0; loans_take(t) && !rc; i++) {
		int64_t epoch = t->r->epoch[t->shard];

		if (i == RD_TRIES)
			return fw_err_set(err, FW_EAGAIN, "%s: leases are being taken back all the time: try again", t->r->target.name);
		rc = look(t, err);
		if (!rc && epoch && t->r->epoch[t->shard] != epoch) /* what was taken up before may have gone since */
			rd_leases_forget(t);
	}
	return rc;
}

/* What was brought back is no loan any more; the others are as good as they were, though the epoch may have risen by our doing. */
void rd_leases_settle(struct rd_part *t, int64_t epoch)
{
	struct rd_loans *own = &t->r->loans;
	int64_t before = t->r->epoch[t->shard];

	for (size_t i = 0; i < t->good_n; i++) {
		if (!t->good[i]->foreign)
			rd_loan_drop(own, t->good[i]->o->feed_id);
	}
	for (size_t i = 0; i < own->cap && epoch && epoch != before; i++) {
		if (own->slot[i] && own->slot[i]->epoch == before && rd_shard_of_feed(t->r, own->slot[i]->feed_id) == t->shard)
			own->slot[i]->epoch = epoch;
	}
	t->r->epoch[t->shard] = epoch;
}
