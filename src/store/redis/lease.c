/* SPDX-License-Identifier: ISC */
/*
 * Who holds which shards: driver.h has the rules.
 *
 * The cell "meta" says whose a shard is, and in which epoch of it: each time it is taken or becomes
 * free its epoch rises. What a commit is fenced by is the copy of that in the shard's own cell,
 * which only takes a later epoch over an earlier one. On one server both are written by one script.
 *
 * On a cluster they are two steps. (1) meta: the lease is kept, the dead lose their shards, free
 * ones are taken; what has changed is noted as stale. (2) Each cell gets the fences of its stale
 * shards. (3) meta: they are no longer stale, if their epoch still is the same. Whoever has taken a
 * shard holds it from (2) on, and then the one before it has lost it, in the same moment: at no
 * time can two commit. Who dies after (1) leaves what is stale to the next beat, of whomever; who
 * freezes and does (2) or (3) later does nothing, for epochs have risen.
 */
#include "base/clock.h"
#include "store/redis/redis.h"
#include "base/banned.h"

/*
 * How much earlier than the lease's end a worker stops: a tenth, for clocks that do not run alike
 * and a request on its way out.
 */
#define MARGIN(lease_ms) ((lease_ms) / 10)

int rs_lost(struct rs *r, struct fw_err *err)
{
	return fw_err_set(
		err, FW_ESTALE, "%s: this worker's lease is over: others have its feeds", r->target.name);
}

struct held {                                /* what a beat found */
	const struct rs_reply *stale, *list; /* {shard, lease, epoch ...}, {shard, quiet ...} */
	bool refused[STORE_SHARDS];          /* somebody has it in a later epoch */
};

static int shard_at(const struct rs_reply *list, size_t i)
{
	return (int)(rs_int(list->elem[i]) & (STORE_SHARDS - 1));
}

/* Words of those that are in this cell, `width` each; how many. add false: only counts. */
static size_t cell_add(struct rs *r, const struct rs_reply *list, size_t step, size_t width, int cell, bool add)
{
	size_t n = 0;

	for (size_t i = 0; i + step <= list->n; i += step) {
		if (rs_cell(shard_at(list, i)) != cell)
			continue;
		n++;
		for (size_t k = 0; add && k < width; k++)
			rs_add(r, list->elem[i + k]->text);
	}
	return n;
}

static void fences_ask(struct rs *r, const struct rs_reply *stale)
{
	for (int cell = 0; cell < RS_CELLS; cell++) {
		size_t n = cell_add(r, stale, 3, 3, cell, false);

		if (!n)
			continue;
		rs_op(r, cell, RS_WRITE, "fence");
		rs_addi(r, (int64_t)n);
		cell_add(r, stale, 3, 3, cell, true);
	}
}

/* Step 3; the answers of step 2 begin at reply. *reply is moved behind them. */
static int fences_told(struct rs *r, struct held *h, struct rs_reply ***reply, struct fw_err *err)
{
	for (int cell = 0; cell < RS_CELLS; cell++) {
		size_t nth = 0;

		for (size_t i = 0; i + 3 <= h->stale->n; i += 3) {
			if (rs_cell(shard_at(h->stale, i)) == cell)
				h->refused[shard_at(h->stale, i)] = !rs_int((**reply)->elem[nth++]);
		}
		*reply += nth > 0;
	}
	if (!h->stale->n)
		return 0;
	rs_op(r, RS_META, RS_WRITE, "fenced");
	rs_addi(r, (int64_t)(h->stale->n / 3));
	for (size_t i = 0; i + 3 <= h->stale->n; i += 3) {
		rs_add(r, h->stale->elem[i]->text);
		rs_add(r, h->stale->elem[i + 2]->text);
	}
	return rs_run(r, "fencing shards", err);
}

static int held_read(struct rs *r, struct held *h, struct store_lease *l, struct fw_err *err)
{
	static const struct rs_reply none = {.type = RS_NIL};
	const struct rs_reply *version[STORE_SHARDS];
	struct rs_reply **reply;
	int rc;

	fences_ask(r, h->stale);
	for (int cell = 0; cell < RS_CELLS; cell++) {
		if (!cell_add(r, h->list, 2, 1, cell, false))
			continue;
		rs_ask(r, cell, "HMGET", "version");
		cell_add(r, h->list, 2, 1, cell, true);
	}
	rc = rs_run(r, "a heartbeat", err);
	if (rc)
		return rc;
	reply = r->reply;
	for (size_t i = 0; i < STORE_SHARDS; i++)
		version[i] = &none;
	rc = fences_told(r, h, &reply, err);
	for (int cell = 0; !rc && cell < RS_CELLS; cell++) {
		size_t nth = 0;

		for (size_t i = 0; i + 2 <= h->list->n; i += 2) {
			if (rs_cell(shard_at(h->list, i)) == cell)
				version[shard_at(h->list, i)] = (*reply)->elem[nth++];
		}
		reply += nth > 0;
	}
	l->shard_n = 0;
	for (size_t i = 0; !rc && i + 2 <= h->list->n && l->shard_n < STORE_SHARDS; i += 2) {
		int shard = shard_at(h->list, i);

		if (!h->refused[shard])
			l->shard[l->shard_n++] = (struct store_shard){
				shard, rs_int(version[shard]), rs_int(h->list->elem[i + 1])};
	}
	return rc;
}

int rs_beat(struct store *st, const char *worker, struct store_lease *l, struct fw_err *err)
{
	struct rs *r = rs_of(st);
	int64_t asked_mono_ms = fw_mono_ms();
	struct held h = {.stale = NULL};
	const struct rs_reply *got;
	int rc = rs_start(r, true, err);

	if (rc)
		return rc;
	rs_op(r, RS_META, RS_WRITE, "beat");
	rs_addi(r, !r->cluster);
	rs_addi(r, l->id);
	rs_adds(r, worker);
	rs_addi(r, l->lease_ms);
	rs_addi(r, l->idle);
	rs_addi(r, l->full);
	rc = rs_run(r, "a heartbeat", err);
	got = rc ? NULL : r->reply[0];
	if (rc || got->type != RS_ARRAY)
		return rc ? rc : rs_lost(r, err);
	h.stale = got->elem[3];
	h.list = got->elem[4];
	rc = held_read(r, &h, l, err);
	if (rc)
		return rc;
	l->id = rs_int(got->elem[0]);
	l->living = (uint32_t)rs_int(got->elem[1]);
	l->idle_n = (uint32_t)rs_int(got->elem[2]);
	l->safe_until_mono_ms = asked_mono_ms + l->lease_ms - MARGIN(l->lease_ms);
	return 0;
}

int rs_crashed(struct rs *r, int64_t feed_id, struct fw_err *err)
{
	int shard, rc = rs_place_of(r, feed_id, &shard, err);

	if (rc)
		return rc == FW_ENOTFOUND ? 0 : rc; /* it was removed meanwhile */
	rs_op(r, rs_cell(shard), RS_WRITE, "crashed");
	rs_addi(r, feed_id);
	rs_addi(r, FW_STORE_CRASH_MAX);
	return rs_run(r, "noting what killed a worker", err);
}

int rs_give(struct store *st, const struct store_give *g, struct fw_err *err)
{
	struct rs *r = rs_of(st);
	struct held h = {.stale = NULL};
	struct rs_reply **reply;
	int rc = rs_start(r, true, err);

	if (rc)
		return rc;
	rs_op(r, RS_META, RS_WRITE, "give");
	rs_addi(r, !r->cluster);
	rs_addi(r, g->lease_id);
	rs_adds(r, g->lease_id || !g->worker ? "" : g->worker);
	rs_addi(r, g->leave);
	rs_addi(r, g->lease_id ? (int64_t)g->n : 0);
	for (size_t i = 0; g->lease_id && i < g->n; i++) {
		rs_addi(r, g->shard[i].shard);
		rs_addi(r, g->shard[i].quiet_since_ms);
	}
	rc = rs_run(r, "giving shards back", err);
	if (rc)
		return rc;
	h.stale = r->reply[0];
	if (h.stale->n) {
		fences_ask(r, h.stale);
		rc = rs_run(r, "giving shards back", err);
		reply = r->reply;
		rc = rc ? rc : fences_told(r, &h, &reply, err);
	}
	return !rc && !g->lease_id && g->crashed_feed_id ? rs_crashed(r, g->crashed_feed_id, err) : rc;
}
