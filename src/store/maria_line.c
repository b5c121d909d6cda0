/* SPDX-License-Identifier: ISC */
/*
 * Standing in line. An active feed is in exactly one place:
 *
 *   queue   waiting for wake_at_ms. For the only feed of its host (host_id 0) that is all there is to it.
 *   parked  its host has no budget left; here it is neither scanned nor woken until one of the host's loans returns.
 *   loans   lent: maria_loans.c.
 *
 * The key of the queue is the time and the feed: it is in exact order, and a feed whose time is known is found by its key. Those that
 * wait for another time than they are due stand in `moved` too.
 *
 * Of a host with parked feeds at most one stands in the queue at the time when the host may be asked next: it has the turn
 * (hosts.turn_n). The invariant that keeps feeds from being forgotten: a host with parked feeds has a turn in the queue or a loan
 * that will return, and who returns one gives the turn on.
 *
 * What a claim or a commit moves is gathered here, host by host in memory, and written at the end by a statement for each table.
 */
#include <stdlib.h>

#include "store/maria.h"

#define HEADS_MAX 256 /* parked feeds of one host that one claim looks at */

/* ---- gathering ---------------------------------------------------------------------------------------------------------- */

void mr_line_init(struct mr_line *l, int64_t now_ms)
{
	*l = (struct mr_line){.now_ms = now_ms};
}

void mr_line_finish(struct mr_line *l)
{
	free(l->host);
	free(l->parked.at);
	free(l->on.at);
	free(l->off.at);
	mr_line_init(l, l->now_ms);
}

struct mr_place *mr_places_add(struct mr_line *l, struct mr_places *p, const struct mr_place *place)
{
	if (p->n == p->cap) {
		size_t cap = p->cap ? p->cap * 2 : 64;
		struct mr_place *grown = reallocarray(p->at, cap, sizeof(*grown));

		if (!grown) {
			l->failed = true;
			return NULL;
		}
		p->at = grown;
		p->cap = cap;
	}
	p->at[p->n] = *place;
	return &p->at[p->n++];
}

static int by_id(const void *a, const void *b)
{
	const struct mr_host *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

struct mr_host *mr_line_host(struct mr_line *l, int64_t id)
{
	struct mr_host key = {.id = id};

	return l->host_n ? bsearch(&key, l->host, l->host_n, sizeof(key), by_id) : NULL;
}

static bool host_add(struct mr_line *l, const struct mr_host *h)
{
	if (l->host_n == l->host_cap) {
		size_t cap = l->host_cap ? l->host_cap * 2 : 16;
		struct mr_host *grown = reallocarray(l->host, cap, sizeof(*grown));

		if (!grown)
			return false;
		l->host = grown;
		l->host_cap = cap;
	}
	l->host[l->host_n++] = *h;
	return true;
}

/* The first parked feeds of the hosts that were locked just now. */
static int heads_read(struct maria *m, struct mr_line *l, size_t heads, struct fw_err *err)
{
	const char *sql = l->expect_max_us ? "(SELECT p.host_id, p.due_at_ms, p.feed_id, w.expect_us FROM parked p STRAIGHT_JOIN wheel w"
		" FORCE INDEX (PRIMARY) ON w.feed_id = p.feed_id" : "(SELECT host_id, due_at_ms, feed_id, 0 FROM parked p";
	bool any = false;
	struct mr_res r;
	int rc;

	for (size_t i = 0; i < l->host_n; i++) {
		struct mr_host *h = &l->host[i];

		if (h->headed || !h->parked_n)
			continue;
		h->headed = true;
		if (any)
			fw_buf_adds(&m->sql, " UNION ALL ");
		else if (m->sql.len)
			fw_buf_addc(&m->sql, ';');
		any = true;
		fw_buf_addf(&m->sql, "%s WHERE p.host_id = %lld ORDER BY p.due_at_ms, p.feed_id LIMIT %zu)", sql, (long long)h->id,
			FW_MIN(FW_MAX(heads, 1), (size_t)HEADS_MAX));
	}
	if (!any)
		return 0;
	rc = mr_answer(m, &r, err);
	while (!rc && mr_row(&r)) {
		struct mr_place p = {.host_id = mr_int(&r, 0), .due_ms = mr_int(&r, 1), .feed_id = mr_int(&r, 2), .stored = true};

		p.slow = l->expect_max_us && mr_int(&r, 3) > l->expect_max_us && p.due_ms > FW_DUE_FIRST;
		mr_places_add(l, &l->parked, &p);
	}
	return rc;
}

#define HOSTS "SELECT id, turn_n, parked_n, busy_n, holder, next_ok_ms, cool_until_ms, pace_ms, expect_us FROM hosts FORCE INDEX (PRIMARY)" \
	" WHERE id IN ("

static struct mr_host host_read(const struct mr_res *r)
{
	return (struct mr_host){.id = mr_int(r, 0), .turn_n = mr_int(r, 1), .parked_n = mr_int(r, 2),
		.budget = {.busy_n = mr_int(r, 3), .holder = mr_int(r, 4), .next_ok_ms = mr_int(r, 5), .cool_until_ms = mr_int(r, 6),
			.pace_ms = mr_int(r, 7), .expect_us = mr_int(r, 8)}};
}

int mr_line_hosts(struct maria *m, struct mr_line *l, const int64_t *id, size_t n, size_t heads, bool skip, struct fw_err *err)
{
	bool any = false;
	struct mr_res r;
	int rc;

	for (size_t i = 0; i < n; i++) {
		if (!id[i] || mr_line_host(l, id[i]))
			continue;
		fw_buf_adds(&m->sql, any ? "," : m->sql.len ? ";" HOSTS : HOSTS);
		mr_value_int(m, id[i]);
		any = true;
	}
	if (!any)
		return 0;
	fw_buf_adds(&m->sql, skip ? ") ORDER BY id FOR UPDATE SKIP LOCKED" : ") ORDER BY id FOR UPDATE");
	rc = mr_answer(m, &r, err);
	while (!rc && mr_row(&r)) {
		struct mr_host h = host_read(&r);

		l->failed |= !host_add(l, &h);
	}
	mr_done(&r);
	if (rc)
		return rc;
	if (l->host_n)
		qsort(l->host, l->host_n, sizeof(*l->host), by_id);
	rc = heads_read(m, l, heads, err);
	return !rc && l->failed ? mr_no_memory(m, err) : rc;
}

static bool goes_before(const struct mr_place *x, const struct mr_place *y)
{
	if (x->slow != y->slow)
		return y->slow;
	return x->due_ms != y->due_ms ? x->due_ms < y->due_ms : x->feed_id < y->feed_id;
}

static struct mr_place *head_of(struct mr_line *l, int64_t host_id)
{
	struct mr_place *first = NULL;

	for (size_t i = 0; i < l->parked.n; i++) {
		struct mr_place *p = &l->parked.at[i];

		if (p->host_id == host_id && !p->gone && (!first || goes_before(p, first)))
			first = p;
	}
	return first;
}

void mr_line_turn(struct mr_line *l, struct mr_host *h, struct mr_place *now)
{
	struct mr_place *head = h->parked_n && !h->turn_n ? head_of(l, h->id) : NULL, p;

	if (now)
		*now = (struct mr_place){0};
	if (!head)
		return;
	head->gone = true;
	h->parked_n--;
	h->turn_n++;
	p = (struct mr_place){.feed_id = head->feed_id, .host_id = h->id, .due_ms = head->due_ms, .moved = true, .slow = head->slow,
		/* when its host may be asked already, it goes by its due time, before those that came later */
		.wake_ms = h->budget.next_ok_ms > l->now_ms ? FW_MAX(head->due_ms, h->budget.next_ok_ms) : head->due_ms};
	if (now)
		*now = p;
	else
		mr_places_add(l, &l->on, &p);
}

void mr_line_return(struct mr_line *l, int64_t host_id, const struct fw_outcome *o)
{
	struct mr_host *h = mr_line_host(l, host_id);

	if (!h)
		return;
	fw_budget_return(&h->budget, o, l->now_ms);
	mr_line_turn(l, h, NULL);
}

void mr_line_tell(struct mr_line *l, int64_t host_id, const struct fw_outcome *o)
{
	struct mr_host *h = mr_line_host(l, host_id);

	if (h)
		fw_budget_tell(&h->budget, o, l->now_ms);
}

void mr_line_on(struct mr_line *l, int64_t feed_id, int64_t due_ms, int64_t host_id, int64_t not_before_ms)
{
	/* a crowded host's feeds wait for next_ok_ms anyway; the only feed of a host is put off here */
	bool off = !host_id && not_before_ms > due_ms;
	struct mr_place p = {.feed_id = feed_id, .host_id = host_id, .due_ms = due_ms, .wake_ms = off ? not_before_ms : due_ms,
		.moved = off};

	mr_places_add(l, &l->on, &p);
}

/* ---- writing ------------------------------------------------------------------------------------------------------------ */

static void queue_write(struct maria *m, const struct mr_line *l)
{
	struct mr_rows on = {"INSERT INTO queue (wake_at_ms, feed_id, host_id, due_at_ms) VALUES "};
	struct mr_rows moved = {"INSERT INTO moved (feed_id, wake_at_ms, due_at_ms) VALUES "};
	struct mr_rows off = MR_DELETE2("queue", "wake_at_ms", "feed_id");
	struct mr_rows unmoved = MR_DELETE("moved", "feed_id");

	for (size_t i = 0; i < l->off.n; i++)
		mr_rows_add(m, &off, "ii", l->off.at[i].wake_ms, l->off.at[i].feed_id);
	mr_rows_end(m, &off);
	for (size_t i = 0; i < l->off.n; i++) {
		if (l->off.at[i].moved)
			mr_rows_add(m, &unmoved, "i", l->off.at[i].feed_id);
	}
	mr_rows_end(m, &unmoved);
	for (size_t i = 0; i < l->on.n; i++) {
		const struct mr_place *p = &l->on.at[i];

		mr_rows_add(m, &on, "iiid", p->wake_ms, p->feed_id, p->host_id, p->moved ? p->due_ms : FW_NO_DATE);
	}
	mr_rows_end(m, &on);
	for (size_t i = 0; i < l->on.n; i++) {
		const struct mr_place *p = &l->on.at[i];

		if (p->moved)
			mr_rows_add(m, &moved, "iii", p->feed_id, p->wake_ms, p->due_ms);
	}
	mr_rows_end(m, &moved);
}

static void parked_write(struct maria *m, const struct mr_line *l)
{
	struct mr_rows in = {"INSERT INTO parked (host_id, due_at_ms, feed_id) VALUES "};

	for (size_t i = 0; i < l->parked.n; i++) { /* few: those that have the turn now */
		const struct mr_place *p = &l->parked.at[i];

		if (p->stored && p->gone)
			mr_put(m, "DELETE FROM parked WHERE host_id = ? AND due_at_ms = ? AND feed_id = ?", "iii", p->host_id, p->due_ms, p->feed_id);
	}
	for (size_t i = 0; i < l->parked.n; i++) {
		const struct mr_place *p = &l->parked.at[i];

		if (!p->stored && !p->gone)
			mr_rows_add(m, &in, "iii", p->host_id, p->due_ms, p->feed_id);
	}
	mr_rows_end(m, &in);
}

/* Each of them is there, and ours: nothing is inserted. */
static void hosts_write(struct maria *m, const struct mr_line *l)
{
	struct mr_rows hosts = {"INSERT INTO hosts (id, turn_n, parked_n, busy_n, holder, next_ok_ms, cool_until_ms, pace_ms, expect_us) VALUES ",
		" ON DUPLICATE KEY UPDATE turn_n = VALUES(turn_n), parked_n = VALUES(parked_n), busy_n = VALUES(busy_n), holder = VALUES(holder),"
		" next_ok_ms = VALUES(next_ok_ms), cool_until_ms = VALUES(cool_until_ms), pace_ms = VALUES(pace_ms), expect_us = VALUES(expect_us)"};

	for (size_t i = 0; i < l->host_n; i++) {
		const struct mr_host *h = &l->host[i];
		const struct fw_budget *b = &h->budget;

		mr_rows_add(m, &hosts, "iiiiiiiii", h->id, h->turn_n, h->parked_n, b->busy_n, b->holder, b->next_ok_ms, b->cool_until_ms, b->pace_ms,
			b->expect_us);
	}
	mr_rows_end(m, &hosts);
}

int mr_line_write(struct maria *m, struct mr_line *l, struct fw_err *err)
{
	if (l->failed)
		return mr_no_memory(m, err);
	queue_write(m, l);
	parked_write(m, l);
	hosts_write(m, l);
	return 0;
}
