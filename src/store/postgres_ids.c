/* SPDX-License-Identifier: ISC */
/*
 * What is due, in one pass, and lending by number: a worker that decides on an order by himself asks for the first, sorts, and claims
 * what comes first in it.
 *
 * The queue is in order of time and has no index by feed: one would cost every visit a leaf somewhere in it. So a list of what is
 * due remembers where the rows lay (pg.hint; rows of places are never changed, only put in and deleted), and a claim looks there. What is
 * not there any more is looked for as one looks for a thing: is it due and not lent at all, is it parked, else its row is in the
 * slot of its time, or among those that were moved. That is three round trips more, for the few that somebody else has moved on.
 *
 * What may not be lent now stays where it is. The rows that were looked at are locked, as by any claim, until the end of the
 * transaction, and then the hosts.
 */
#include <stdlib.h>

#include "store/postgres_claim.h"

#define HINTS_MAX ((size_t)1 << 20) /* 16 MiB */

/* ---- what is due ----------------------------------------------------------------------------------------------------------- */

/* Without memory for one, its feed is looked for. */
static void hint_add(struct pg *p, int64_t feed_id, int64_t at)
{
	if (!at || p->hint_n == HINTS_MAX)
		return;
	if (p->hint_n == p->hint_cap) {
		size_t cap = p->hint_cap ? p->hint_cap * 2 : 1024;
		struct pg_hint *more = reallocarray(p->hint, cap, sizeof(*more));

		if (!more)
			return;
		p->hint = more;
		p->hint_cap = cap;
	}
	p->hint[p->hint_n++] = (struct pg_hint){feed_id, at};
}

static int due_keep(void *ctx, struct pg *p, const PGresult *r, int row)
{
	struct fw_due_row due = {pg_get_int(r, row, 0), pg_get_int(r, row, 1), pg_get_int(r, row, 2), pg_get_int(r, row, 3),
		pg_get_int(r, row, 4), pg_get_int(r, row, 5)};

	hint_add(p, due.feed_id, pg_get_int(r, row, 6));
	fw_buf_add(ctx, &due, sizeof(due));
	return 0;
}

static int by_due(const void *a, const void *b)
{
	const struct fw_due_row *x = a, *y = b;

	if (x->due_at_ms != y->due_at_ms)
		return x->due_at_ms < y->due_at_ms ? -1 : 1;
	return x->feed_id < y->feed_id ? -1 : x->feed_id > y->feed_id;
}

static int by_feed(const void *a, const void *b)
{
	const struct pg_hint *x = a, *y = b;

	return x->feed_id < y->feed_id ? -1 : x->feed_id > y->feed_id;
}

#define DUE_SQL "SELECT s.feed_id, f.crowd_id, s.due_at_ms, w.expect_us, w.expect_dev_us, w.last_visit_ms, s.at FROM (" \
	"SELECT feed_id, coalesce(due_at_ms, wake_at_ms) AS due_at_ms, ctid AS at FROM places WHERE id <= $2::int8" \
	" AND wake_at_ms <= $1::int8 UNION ALL SELECT feed_id, due_at_ms, ctid FROM places WHERE due_at_ms IS NOT NULL" \
	" AND wake_at_ms > $1::int8 AND due_at_ms <= $1::int8 UNION ALL SELECT feed_id, due_at_ms, NULL FROM parked" \
	" WHERE due_at_ms <= $1::int8"
#define DUE_JOIN_SQL ") s JOIN wheel w ON w.feed_id = s.feed_id JOIN feeds f ON f.id = s.feed_id"

/*
 * The three are joined as whole tables, in no order, and sorted here: with each row looked up in two indexes 200,000 took four times
 * as long.
 */
int pg_due_list(struct fw_store *st, int64_t due_before_ms, size_t limit, fw_due_cb *cb, void *ctx, struct fw_err *err)
{
	struct pg *p = pg_of(st);
	struct fw_buf rows = FW_BUF_INIT(0);
	const struct fw_due_row *row;
	size_t n;
	int rc;

	p->hint_n = 0;
	pg_int(p, due_before_ms);
	pg_int(p, pg_place_last(due_before_ms));
	if (limit)
		pg_int(p, (int64_t)FW_MIN(limit, (size_t)INT64_MAX));
	rc = pg_list_whole(p, limit ? DUE_SQL " ORDER BY due_at_ms LIMIT $3::int8" DUE_JOIN_SQL : DUE_SQL DUE_JOIN_SQL, 10000, due_keep, &rows, err);
	if (!rc && rows.rc)
		rc = pg_no_memory(p, err);
	row = (const struct fw_due_row *)(const void *)rows.p;
	n = rows.len / sizeof(*row);
	if (p->hint_n)
		qsort(p->hint, p->hint_n, sizeof(*p->hint), by_feed);
	if (n)
		qsort(rows.p, n, sizeof(*row), by_due);
	p->in_callback = true;
	for (size_t i = 0; i < n && !rc; i++)
		rc = cb(ctx, &row[i]);
	p->in_callback = false;
	p->send_rc = 0; /* a call from a callback was refused, and said so */
	fw_buf_finish(&rows);
	return rc;
}

/* ---- looking for them -------------------------------------------------------------------------------------------------------- */

/* Some of the ids that were asked for. */
struct some {
	int64_t id[PG_IDS_CHUNK], number[PG_IDS_CHUNK], host_id[PG_IDS_CHUNK];
	size_t n;
};

static void some_add(struct some *s, int64_t id, int64_t number, int64_t host_id)
{
	s->id[s->n] = id;
	s->number[s->n] = number;
	s->host_id[s->n++] = host_id;
}

static void some_pass(struct pg *p, const struct some *s)
{
	pg_ints(p, s->id, s->n);
	pg_ints(p, s->number, s->n);
}

static int64_t hint_of(const struct pg *p, int64_t feed_id)
{
	struct pg_hint key = {feed_id, 0}, *h;

	h = p->hint_n ? bsearch(&key, p->hint, p->hint_n, sizeof(key), by_feed) : NULL;
	return h ? h->at : 0;
}

/* Where the last list saw them. Those that are not there any more stay in *s. */
static int hinted(struct pg *p, struct pg_claim *c, struct some *s, struct fw_err *err)
{
	size_t left = 0;
	bool *found;
	int rc;

	if (!p->hint_n)
		return 0;
	some_pass(p, s);
	pg_array(p, PG_TID, s->n);
	for (size_t i = 0; i < s->n; i++)
		pg_item_tid(p, hint_of(p, s->id[i]));
	pg_places_ask(p, PG_IDS_AT, PG_PLACE_ROW_SQL("p.wake_at_ms", "u.number") " FROM unnest($1::int8[], $2::int8[], $3::tid[]) u (id, number, at)"
		" JOIN places p ON p.ctid = u.at AND p.feed_id = u.id FOR UPDATE OF p SKIP LOCKED", "NULL");
	rc = pg_run(p, err);
	rc = rc ? rc : pg_places_read(p, c, p->res[p->res_n - 1], NULL, err);
	found = calloc(s->n + 1, sizeof(*found));
	if (!rc && !found)
		rc = pg_no_memory(p, err);
	for (size_t i = 0; !rc && i < c->place_n; i++)
		found[c->place[i].number - s->number[0]] = true;
	for (size_t i = 0, n = s->n; !rc && i < n; i++) {
		if (!found[i]) {
			s->id[left] = s->id[i];
			s->number[left++] = s->number[i];
		}
	}
	s->n = left;
	free(found);
	return rc;
}

/* Those that are due, on the wheel and not lent: *parked, and *s for the others. */
static int standing(struct pg *p, const struct pg_claim *c, struct some *s, struct some *parked, struct fw_err *err)
{
	const PGresult *r;
	int rc;

	some_pass(p, s);
	pg_int(p, FW_MIN(c->now_ms, c->before_ms));
	pg_send(p, PG_IDS_STAND, "WITH lent AS MATERIALIZED (SELECT x.feed_id FROM loans l, unnest(l.feed_id) WITH ORDINALITY x (feed_id, i)"
		" WHERE l.feed_id && $1::int8[] AND l.open >> (x.i - 1)::int & 1 = 1)"
		" SELECT u.id, u.number, q.host_id FROM unnest($1::int8[], $2::int8[]) u (id, number) JOIN wheel w"
		" ON w.feed_id = u.id JOIN feeds f ON f.id = u.id LEFT JOIN parked q ON q.host_id = f.crowd_id AND q.due_at_ms = w.due_at_ms"
		" AND q.feed_id = u.id WHERE w.status = 0 AND w.due_at_ms <= $3::int8 AND (u.id IN (SELECT feed_id FROM lent))"
		" IS FALSE");
	rc = pg_run(p, err);
	if (rc)
		return rc;
	r = p->res[p->res_n - 1];
	s->n = 0;
	for (int i = 0; i < PQntuples(r); i++)
		some_add(pg_is_null(r, i, 2) ? s : parked, pg_get_int(r, i, 0), pg_get_int(r, i, 1), pg_get_int(r, i, 2));
	return 0;
}

/* In the slots of their times, each of which is looked through once, or among those that wait for another time. */
static int searched(struct pg *p, struct pg_claim *c, const struct some *s, struct fw_err *err)
{
	int rc;

	some_pass(p, s);
	pg_places_ask(p, PG_IDS_PLACES, "* FROM (WITH m AS MATERIALIZED (SELECT u.id, u.number, w.due_at_ms FROM unnest($1::int8[],"
		" $2::int8[]) u (id, number) JOIN wheel w ON w.feed_id = u.id), s AS MATERIALIZED (SELECT DISTINCT "
		PG_PLACE_SQL("due_at_ms", "0") " AS first FROM m), a AS MATERIALIZED (SELECT p.ctid AS at FROM s JOIN places p"
		" ON p.id >= s.first AND p.id <= s.first | 16777215 WHERE p.due_at_ms IS NULL AND (p.feed_id IN (SELECT id FROM m)) IS TRUE"
		" UNION ALL SELECT p.ctid FROM places p WHERE p.due_at_ms IS NOT NULL AND (p.feed_id IN (SELECT id FROM m)) IS TRUE)"
		" SELECT " PG_PLACE_ROW_SQL("p.wake_at_ms", "m.number") " FROM a JOIN places p ON p.ctid = a.at JOIN m ON m.id = p.feed_id"
		" FOR UPDATE OF p SKIP LOCKED) x", "NULL");
	rc = pg_run(p, err);
	return rc ? rc : pg_places_read(p, c, p->res[p->res_n - 1], NULL, err);
}

/* Of the parked ones the rows of their hosts are locked before those are looked at: nobody takes one away then. */
static int hosts_and_parked(struct pg *p, struct pg_claim *c, const struct some *parked, struct fw_err *err)
{
	size_t n = c->place_n;
	bool hosts;
	int rc;

	for (size_t i = 0; i < parked->n; i++) /* for their hosts' sake */
		c->place[c->place_n++] = (struct pg_place){.lent = {.host_id = parked->host_id[i]}};
	hosts = pg_claim_hosts_ask(p, c);
	c->place_n = n;
	if (!hosts)
		return 0;
	if (parked->n) {
		some_pass(p, parked);
		pg_ints(p, parked->host_id, parked->n);
		pg_places_ask(p, PG_IDS_PARKED, PG_PARKED_ROW_SQL("u.number") " FROM unnest($1::int8[], $2::int8[], $3::int8[])"
			" u (id, number, host_id) JOIN wheel w ON w.feed_id = u.id JOIN parked q ON q.host_id = u.host_id"
			" AND q.due_at_ms = w.due_at_ms AND q.feed_id = u.id", "NULL");
	}
	rc = pg_run(p, err);
	if (rc)
		return rc;
	pg_claim_hosts_read(c, p->res[p->res_n - 1 - (parked->n > 0)]);
	return parked->n ? pg_places_read(p, c, p->res[p->res_n - 1], NULL, err) : 0;
}

/* ---- lending ---------------------------------------------------------------------------------------------------------------- */

/* Put off for its host's sake, until then. */
static void defer(struct pg_claim *c, int64_t until_ms)
{
	c->got->deferred_n++;
	c->later_ms = c->later_ms == FW_NO_DATE ? until_ms : FW_MIN(c->later_ms, until_ms);
}

/* May this one be lent? */
static bool may(struct pg_claim *c, const struct pg_place *q, const struct pg_host *h)
{
	int64_t host_ms = h ? FW_MAX(h->budget.next_ok_ms, h->budget.cool_until_ms) : 0;

	if (q->feed.due_at_ms > FW_MIN(c->now_ms, c->before_ms))
		return false;
	if (c->ask->expect_max_us && q->feed.expect_us > c->ask->expect_max_us && q->feed.due_at_ms != FW_DUE_FIRST)
		return false;
	if (q->moved && q->wake_ms > c->now_ms && q->wake_ms > host_ms) { /* its host cools down, and was not counted then */
		defer(c, q->wake_ms);
		return false;
	}
	if (!h || pg_host_may(c, h))
		return true;
	defer(c, host_ms > c->now_ms ? host_ms : c->now_ms + 1000); /* else it waits for others to come back */
	return false;
}

/* What is lent is in c->place[0 .. *n) then. */
static void some_lend(struct pg_claim *c, size_t *n)
{
	*n = 0;
	for (size_t i = 0; i < c->place_n && c->got->n < c->ask->max; i++) {
		struct pg_place q = c->place[i];
		struct pg_host *h = q.lent.host_id ? pg_host_find(c, q.lent.host_id) : NULL;

		if (!may(c, &q, h))
			continue;
		if (h && q.moved)
			h->turn_n = FW_MAX(h->turn_n - 1, 0);
		if (h && !q.place_at)
			h->parked_n--;
		pg_place_lend(c, &q, h);
		c->place[(*n)++] = q;
	}
}

/* Queued: they are where they were no more. */
static void some_take(struct pg *p, const struct pg_claim *c, size_t n)
{
	size_t parked = 0;

	for (size_t i = 0; i < n; i++)
		parked += !c->place[i].place_at;
	if (parked < n) {
		pg_array(p, PG_TID, n - parked);
		for (size_t i = 0; i < n; i++) {
			if (c->place[i].place_at)
				pg_item_tid(p, c->place[i].place_at);
		}
		pg_send(p, PG_PLACES_DROP, PG_PLACES_DROP_SQL);
	}
	for (size_t i = 0, from = 0; i <= n; i++) {
		if (i < n && !c->place[i].place_at)
			continue;
		if (i > from)
			pg_parked_take(p, &c->place[from], i - from);
		from = i + 1;
	}
}

static int by_feed_and_number(const void *a, const void *b)
{
	const struct pg_hint *x = a, *y = b;
	int d = by_feed(a, b);

	return d ? d : x->at < y->at ? -1 : x->at > y->at;
}

/* Of one that is named several times the first counts. */
static void named_once(struct some *s)
{
	struct pg_hint name[PG_IDS_CHUNK];

	for (size_t i = 0; i < s->n; i++)
		name[i] = (struct pg_hint){s->id[i], (int64_t)i};
	qsort(name, s->n, sizeof(name[0]), by_feed_and_number);
	for (size_t i = 1; i < s->n; i++) {
		if (name[i].feed_id == name[i - 1].feed_id)
			s->id[name[i].at] = 0;
	}
}

static int as_asked(const void *a, const void *b)
{
	const struct pg_place *x = a, *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

/* ids[at .. at + n) */
static int chunk(struct pg *p, struct pg_claim *c, size_t at, size_t n, struct some *s, struct fw_err *err)
{
	struct some *parked = s + 1;
	size_t lent;
	bool turns;
	int rc;

	s->n = parked->n = c->place_n = c->host_n = 0;
	for (size_t i = 0; i < n; i++)
		some_add(s, c->ask->ids[at + i], (int64_t)(at + i) + 1, 0);
	named_once(s);
	rc = hinted(p, c, s, err);
	if (!rc && s->n)
		rc = standing(p, c, s, parked, err);
	if (!rc && s->n)
		rc = searched(p, c, s, err);
	rc = rc ? rc : hosts_and_parked(p, c, parked, err);
	if (rc)
		return rc;
	qsort(c->place, c->place_n, sizeof(*c->place), as_asked);
	some_lend(c, &lent);
	some_take(p, c, lent);
	pg_claim_hosts_put(p, c, &turns);
	return 0;
}

int pg_claim_ids(struct pg *p, struct pg_claim *c, struct fw_err *err)
{
	struct some *s = calloc(2, sizeof(*s));
	int rc = s ? 0 : pg_no_memory(p, err);

	for (size_t at = 0, n; !rc && at < c->ask->id_n && c->got->n < c->ask->max; at += n) {
		n = FW_MIN(FW_MIN(c->ask->id_n - at, (size_t)PG_IDS_CHUNK), c->ask->max - c->got->n);
		rc = chunk(p, c, at, n, s, err);
	}
	free(s);
	return rc;
}
