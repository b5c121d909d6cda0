/* SPDX-License-Identifier: ISC */
/*
 * What is due, as a list: who stands in line or is parked, from the slots that have begun and the sets by time, and then the feeds'
 * values, portion by portion; a script would take three times as long. The list is made before it is shown, 48 bytes a feed, so that it
 * is in order and has nobody twice who has moved meanwhile. Who is lent meanwhile may still be in it.
 */
#include <stdlib.h>

#include "store/redis.h"

#define PORTION 5000 /* feeds at a time */

struct dues {
	struct redis *r;
	int shard;
	int64_t before_ms;
	size_t limit;          /* 0: none */
	bool joined;           /* some stand in their slots without their host */
	struct fw_buf row;     /* struct fw_due_row */
	struct fw_arena arena; /* of a portion */
};

static size_t row_n(const struct dues *d)
{
	return d->row.len / sizeof(struct fw_due_row);
}

static bool is_full(const struct dues *d)
{
	return d->limit && row_n(d) >= d->limit;
}

/* A feed as it is now: due, it may have been visited since. parked: without a word of its host, which has others. */
static void row_add(struct dues *d, struct fw_str place, const struct rd_reply *value, const struct rd_reply *joined, bool parked)
{
	struct fw_due_row row = {0};
	struct rd_loan loan = {0};
	struct fw_feed f = {0};
	struct fw_str host;

	if (!fw_str_int(fw_str_split(place, '@', &host), &row.feed_id) || value->type != RD_TEXT ||
	    !rd_state_unpack(value->text, &loan, &f) || f.due_at_ms > d->before_ms)
		return;
	if (parked)
		host = rd_part(loan.own, "host");
	else if (joined && joined->type == RD_TEXT)
		host = joined->text;
	row.host_id = rd_host_id(host);
	row.due_at_ms = f.due_at_ms;
	row.expect_us = f.expect_us;
	row.expect_dev_us = f.expect_dev_us;
	row.last_visit_ms = f.last_visit_ms;
	fw_buf_add(&d->row, &row, sizeof(row));
}

static int ids_ask(struct dues *d, const char *key, const struct fw_str *place, size_t n, struct fw_err *err)
{
	struct rd_conn *c = rd_ask(d->r, d->shard, "HMGET", key, n, err);
	struct fw_str host;

	for (size_t i = 0; i < n && c; i++)
		rd_add(c, fw_str_split(place[i], '@', &host));
	return c ? 0 : FW_ERR_CODE(err);
}

static int rows_read(struct dues *d, const struct fw_str *place, size_t n, bool parked, struct fw_err *err)
{
	struct rd_reply **reply;
	int rc = 0;

	if (!n)
		return 0;
	rc = ids_ask(d, "feeds", place, n, err);
	if (!rc && d->joined)
		rc = ids_ask(d, "joined", place, n, err);
	rc = rc ? rc : rd_run(d->r, d->shard, &d->arena, &reply, "listing what is due", err);
	for (size_t i = 0; i < n && !rc; i++)
		row_add(d, place[i], reply[0]->elem[i], d->joined ? reply[1]->elem[i] : NULL, parked);
	return rc || !d->row.rc ? rc : rd_no_memory(d->r, err);
}

/* All that is in a reply, or every second of it. */
static int places_read(struct dues *d, const struct rd_reply *all, size_t n, size_t step, bool parked, struct fw_err *err)
{
	struct fw_str *place = fw_arena_mul(&d->arena, n + 1, sizeof(*place), 0);

	if (!place)
		return rd_no_memory(d->r, err);
	for (size_t i = 0; i < n; i++)
		place[i] = all->elem[i * step]->text;
	return rows_read(d, place, n, parked, err);
}

/* ---- where they stand --------------------------------------------------------------------------------------------------------- */

/* From its end on, for others take from its beginning meanwhile. */
static int list_read(struct dues *d, const char *key, struct fw_err *err)
{
	struct rd_reply *all = NULL;
	int rc = 0;

	for (int64_t last = -1; !rc && !is_full(d) && (!all || all->n == PORTION); last -= PORTION) {
		struct rd_conn *c;

		fw_arena_reset(&d->arena, RD_ARENA_KEEP);
		c = rd_ask(d->r, d->shard, "LRANGE", key, 2, err);
		if (!c)
			return FW_ERR_CODE(err);
		rd_add_int(c, last - PORTION + 1);
		rd_add_int(c, last);
		rc = rd_run1(d->r, d->shard, &d->arena, &all, "listing what is due", err);
		rc = rc ? rc : places_read(d, all, all->n, 1, false, err);
	}
	return rc;
}

static int set_read(struct dues *d, const char *key, struct fw_err *err)
{
	char cursor[32] = "0";
	struct rd_reply *all;
	int rc;

	do {
		struct rd_conn *c;

		fw_arena_reset(&d->arena, RD_ARENA_KEEP);
		c = rd_ask(d->r, d->shard, "SSCAN", key, 3, err);
		if (!c)
			return FW_ERR_CODE(err);
		rd_add(c, fw_str(cursor));
		rd_add(c, FW_STR("COUNT"));
		rd_add_int(c, PORTION);
		rc = rd_run1(d->r, d->shard, &d->arena, &all, "listing what is due", err);
		if (!rc) {
			(void)fw_str_copy(cursor, sizeof(cursor), all->elem[0]->text);
			rc = places_read(d, all->elem[1], all->elem[1]->n, 1, false, err);
		}
	} while (!rc && !is_full(d) && strcmp(cursor, "0") != 0);
	return rc;
}

/* A sorted set, by a time. */
static int sorted_read(struct dues *d, const char *key, bool parked, struct fw_err *err)
{
	size_t n = PORTION, seen = 0;
	struct rd_reply *all;
	int rc = 0;

	while (!rc && n == PORTION && (!d->limit || seen < d->limit)) {
		struct rd_conn *c;

		fw_arena_reset(&d->arena, RD_ARENA_KEEP);
		c = rd_ask(d->r, d->shard, "ZRANGE", key, 3, err);
		if (!c)
			return FW_ERR_CODE(err);
		rd_add_int(c, (int64_t)seen);
		rd_add_int(c, (int64_t)seen + PORTION - 1);
		rd_add(c, FW_STR("WITHSCORES"));
		rc = rd_run1(d->r, d->shard, &d->arena, &all, "listing what is due", err);
		for (n = 0; !rc && 2 * n < all->n && rd_int(all->elem[2 * n + 1]) <= d->before_ms; n++)
			;
		rc = rc ? rc : places_read(d, all, n, 2, parked, err);
		seen += n;
	}
	return rc;
}

/* The slots that have begun, the earliest first; each is a list and a set. */
static int slots_read(struct dues *d, struct fw_err *err)
{
	struct rd_conn *c = rd_ask(d->r, d->shard, "ZRANGE", "line", 2, err);
	struct rd_reply *slots;
	int rc;

	if (!c)
		return FW_ERR_CODE(err);
	rd_add_int(c, 0);
	rd_add_int(c, -1);
	rc = rd_run1(d->r, d->shard, &d->r->arena, &slots, "listing what is due", err);
	for (size_t i = 0; !rc && i < slots->n && !is_full(d); i++) {
		int64_t slot = rd_int(slots->elem[i]);
		char key[60];

		if (slot > d->before_ms / RD_SLOT_MS)
			break;
		(void)fw_snprintf(key, sizeof(key), "due:%lld", (long long)slot);
		rc = list_read(d, key, err);
		(void)fw_snprintf(key, sizeof(key), "due:%lld:set", (long long)slot);
		rc = rc ? rc : set_read(d, key, err);
	}
	return rc;
}

static int joined_look(struct dues *d, struct fw_err *err)
{
	struct rd_conn *c = rd_ask(d->r, d->shard, "HLEN", "joined", 0, err);
	struct rd_reply *n;
	int rc = c ? rd_run1(d->r, d->shard, &d->r->arena, &n, "listing what is due", err) : FW_ERR_CODE(err);

	d->joined = !rc && rd_int(n) > 0;
	return rc;
}

/* ---- the list ------------------------------------------------------------------------------------------------------------------- */

static int earlier(const void *a, const void *b)
{
	const struct fw_due_row *x = a, *y = b;

	if (x->due_at_ms != y->due_at_ms)
		return x->due_at_ms < y->due_at_ms ? -1 : 1;
	return x->feed_id < y->feed_id ? -1 : x->feed_id > y->feed_id;
}

/* One shard's; a full list is no reason to leave out what the next set may have earlier. */
static int shard_read(struct dues *d, struct fw_err *err)
{
	static const struct { const char *key; bool parked; } sorted[] = {{"waiting", false}, {"moved", false}, {"slow", false}, {"parked", true}};
	struct dues one = *d;
	int rc = joined_look(&one, err);

	one.row = FW_BUF_INIT(0);
	rc = rc ? rc : slots_read(&one, err);
	for (size_t i = 0; i < FW_N(sorted) && !rc; i++)
		rc = sorted_read(&one, sorted[i].key, sorted[i].parked, err);
	fw_buf_addstr(&d->row, fw_buf_str(&one.row));
	fw_buf_finish(&one.row);
	d->arena = one.arena;
	return rc || !d->row.rc ? rc : rd_no_memory(d->r, err);
}

int rd_due_list(struct fw_store *st, int64_t due_before_ms, size_t limit, fw_due_cb *cb, void *ctx, struct fw_err *err)
{
	struct dues d = {.r = redis_of(st), .before_ms = due_before_ms, .limit = limit, .row = FW_BUF_INIT(0)};
	const struct fw_due_row *at;
	size_t shown = 0;
	int rc = 0;

	fw_arena_init(&d.arena, 0);
	fw_arena_reset(&d.r->arena, RD_ARENA_KEEP);
	for (d.shard = 0; d.shard < d.r->shard_n && !rc; d.shard++)
		rc = shard_read(&d, err);
	at = (const struct fw_due_row *)(const void *)d.row.p;
	if (row_n(&d))
		qsort(d.row.p, row_n(&d), sizeof(*at), earlier);
	for (size_t i = 0; i < row_n(&d) && !rc && (!limit || shown < limit); i++) {
		if (i && at[i].feed_id == at[i - 1].feed_id)
			continue; /* it has moved from place to place */
		shown++;
		rc = cb(ctx, &at[i]);
	}
	fw_buf_finish(&d.row);
	fw_arena_finish(&d.arena);
	return rc;
}
