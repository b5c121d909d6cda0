/* SPDX-License-Identifier: ISC */
/*
 * Lending. A claim is one short transaction: rows at the head of `places` are locked (those that others have locked are passed
 * over), deleted, and written down as `loans`; nothing is held while the feeds are fetched.
 *
 * In the usual case it is three round trips: whether loans have run out, the head with all that is known of its feeds, then the
 * loans and the commit. When feeds of crowded hosts are among them, their hosts are locked in between, and what has no budget is parked. A loan may bring
 * the next of its host into the queue; so the head is read again until enough is lent.
 * Room that is left then goes to those that are parked, of hosts that were met and of which nobody else has any (host_ahead).
 *
 * A claim that leaves slow feeds alone leaves them where they are: it moves no hint past them.
 *
 * Rows that were deleted stay at the head of the index until vacuum may take them, and as long as somebody somewhere has a
 * transaction open it may not; and what other claims have locked at this moment has to be passed over row by row. So a claim begins
 * where the others have got to (the sequence places_head, which no transaction holds), and this connection before (low_id). What
 * was put below that is found by a look at everything, which is done whenever it is cheap, and at least every second or so, unless
 * it takes so long that it would cost more than a fiftieth of the time. Loans are looked at in the same way: those that ran out
 * since the last claim at every claim, all of them now and then.
 *
 * A claim does not wait for the disk: when the server loses it, the feeds are simply due again. Fences must not come again then,
 * though the sequence they are taken from may fall back: the first claim of each connection moves it on by more than a server
 * can lose, and waits for that to be on the disk. After a crash every connection is a new one.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "store/postgres_claim.h"

#define SCAN_FACTOR 4     /* rows looked at per claim, in multiples of ask->max */
#define SCAN_EXTRA 1000
#define FENCES_LOST 1000000 /* more than are given in the time that the server may fail to flush */
#define LOOK_MS 1000      /* everything is looked at this often, ... */
#define LOOK_SHARE 50     /* ... or seldom enough to take a fiftieth of the time */
#define LOOK_CHEAP_MS 5

/* ---- reading the head ------------------------------------------------------------------------------------------------------- */

#define PLACE_COLUMN_N 10
#define PLACE_AT_COLUMN 7

/* Columns of a table. Zeros, which many are, travel as NULL: that takes the server less time. */
static void place_columns(struct fw_buf *b, char table, const struct fw_field *f, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fw_buf_addf(b, fw_field_is_text(&f[i]) ? ", %c.%s" : ", nullif(%c.%s, 0)", table, f[i].name);
}

/* A SELECT that does not delete sends its rows as it finds them; with a DELETE in it the server would first keep all of them. */
static void places_sql(struct fw_buf *b, const char *rows, const char *hint)
{
	fw_buf_addf(b, "WITH h AS MATERIALIZED (SELECT %s) SELECT h.id, h.due_at_ms, f.id, f.crowd_id, w.last_visit_id, w.at, f.at, h.t,"
		" h.wake_at_ms, h.number", rows);
	place_columns(b, 'w', fw_wheel_fields, fw_wheel_field_n);
	place_columns(b, 'f', fw_feed_fields, fw_feed_field_n);
	fw_buf_addf(b, ", %s FROM h LEFT JOIN LATERAL (" PG_ROW_SQL("wheel", "feed_id", "h.wheel_at", "h.feed_id") ") w ON true"
		" LEFT JOIN LATERAL (" PG_ROW_SQL("feeds", "id", "h.feed_at", "h.feed_id") ") f ON true", hint);
}

void pg_places_ask(struct pg *p, enum pg_id id, const char *rows, const char *hint)
{
	if (pg_text_wanted(p, id))
		places_sql(&p->text, rows, hint);
	pg_send_text(p, id);
}

#define HEAD_SQL(and) PG_DUE_ROW_SQL " FROM places p WHERE p.id >= CASE WHEN $1::int8 <> 0 THEN 0 ELSE" \
	" greatest($5::int8, (SELECT last_value FROM places_head)) END AND p.id <= $2::int8 AND p.wake_at_ms <= $3::int8" and \
	" ORDER BY p.id LIMIT $4::int8 FOR UPDATE OF p SKIP LOCKED"

/* Queued: up to n rows that are due; all: from the very first on, else from where claims have got to. Most claims take slow ones too: they
   have a statement that does not know of it. */
static void head_ask(struct pg *p, const struct pg_claim *c, bool all, size_t n)
{
	int64_t until = FW_MIN(c->now_ms, c->before_ms);

	pg_int(p, all);
	pg_int(p, pg_place_last(until));
	pg_int(p, until);
	pg_int(p, (int64_t)n);
	pg_int(p, p->low_id);
	if (c->ask->expect_max_us) {
		pg_int(p, c->ask->expect_max_us);
		pg_places_ask(p, PG_HEAD_QUICK, HEAD_SQL(" AND " PG_QUICK_SQL("$6")), "NULL");
	} else {
		pg_places_ask(p, PG_HEAD, HEAD_SQL(""),
			"(SELECT setval('places_head', max(id)) FROM h HAVING count(*) = $4::int8 AND $1::int8 = 0)");
	}
}

/* Queued: with a due_before in the past, feeds that were due before it may stand behind it, because they were moved. */
static void moved_ask(struct pg *p, const struct pg_claim *c, size_t n)
{
	pg_int(p, c->before_ms);
	pg_int(p, c->now_ms);
	pg_int(p, (int64_t)n);
	pg_int(p, c->ask->expect_max_us);
	pg_places_ask(p, PG_MOVED, PG_DUE_ROW_SQL " FROM places p WHERE p.due_at_ms IS NOT NULL AND p.wake_at_ms > $1::int8"
		" AND p.wake_at_ms <= $2::int8 AND p.due_at_ms <= $1::int8 AND " PG_QUICK_SQL("$4") " ORDER BY p.wake_at_ms LIMIT $3::int8"
		" FOR UPDATE OF p SKIP LOCKED", "NULL");
}

/* Queued: the rows of this answer are taken out of the queue. */
static void places_drop(struct pg *p, const PGresult *r)
{
	int n = PQntuples(r);

	if (!n)
		return;
	pg_array(p, PG_TID, (size_t)n);
	for (int i = 0; i < n; i++)
		pg_item_tid(p, pg_get_int(r, i, PLACE_AT_COLUMN));
	pg_send(p, PG_PLACES_DROP, PG_PLACES_DROP_SQL);
}

int pg_places_read(struct pg *p, struct pg_claim *c, const PGresult *r, int64_t *last_id, struct fw_err *err)
{
	int n = PQntuples(r);

	for (int i = 0; i < n && c->place_n < c->room; i++) {
		struct pg_place *q = &c->place[c->place_n];

		if (last_id)
			*last_id = pg_get_int(r, i, 0);
		if (pg_is_null(r, i, 2) || pg_is_null(r, i, 5))
			continue;
		*q = (struct pg_place){.moved = !pg_is_null(r, i, 1), .lent = {pg_get_int(r, i, 3), pg_get_int(r, i, 4), pg_get_int(r, i, 5),
			pg_get_int(r, i, 6)}, .place_at = pg_get_int(r, i, PLACE_AT_COLUMN), .wake_ms = pg_get_int(r, i, 8),
			.number = pg_get_int(r, i, 9)};
		q->feed.id = pg_get_int(r, i, 2);
		pg_get_fields(r, i, PLACE_COLUMN_N, fw_wheel_fields, fw_wheel_field_n, &q->feed);
		pg_get_fields(r, i, PLACE_COLUMN_N + (int)fw_wheel_field_n, fw_feed_fields, fw_feed_field_n, &q->feed);
		if (!fw_store_feed_dup(c->a, &q->feed))
			return pg_no_memory(p, err);
		c->place_n++;
	}
	return 0;
}

/* ---- lending ------------------------------------------------------------------------------------------------------------------ */

bool pg_host_may(const struct pg_claim *c, const struct pg_host *h)
{
	return fw_budget_may(&h->budget, c->rule, c->me, c->now_ms);
}

void pg_place_lend(struct pg_claim *c, const struct pg_place *q, struct pg_host *h)
{
	size_t i = c->got->n++;

	c->out[i] = (struct fw_lease){.feed = q->feed, .until_ms = c->now_ms + c->ask->lease_ms, .host_gap_ms = c->ask->host_gap_ms};
	c->out[i].feed.lease_until_ms = c->out[i].until_ms;
	c->lent[i] = q->lent;
	c->lent[i].host_id = c->out[i].host_id = h ? h->id : 0;
	if (!h)
		return;
	c->out[i].host_gap_ms = fw_budget_gap(&h->budget, c->ask);
	c->out[i].host_expect_us = h->budget.expect_us;
	fw_budget_lend(&h->budget, c->ask, c->me, c->now_ms);
}

static int by_number(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

bool pg_claim_hosts_ask(struct pg *p, struct pg_claim *c)
{
	size_t n = 0;

	c->host_n = 0;
	for (size_t i = 0; i < c->place_n; i++) {
		if (c->place[i].lent.host_id)
			c->host_ids[n++] = c->place[i].lent.host_id;
	}
	if (!n)
		return false;
	qsort(c->host_ids, n, sizeof(*c->host_ids), by_number);
	pg_hosts_lock(p, c->host_ids, n);
	return true;
}

void pg_claim_hosts_read(struct pg_claim *c, const PGresult *r)
{
	c->host_n = (size_t)PQntuples(r);
	for (int i = 0; i < (int)c->host_n; i++)
		c->host[i] = (struct pg_host){pg_get_int(r, i, 0), pg_get_int(r, i, 1), pg_get_int(r, i, 2), {.busy_n = pg_get_int(r, i, 3),
			.next_ok_ms = pg_get_int(r, i, 4), .cool_until_ms = pg_get_int(r, i, 5), .pace_ms = pg_get_int(r, i, 6),
			.expect_us = pg_get_int(r, i, 7), .holder = pg_get_int(r, i, 8)}};
}

/* Lock the crowded hosts among the places and read them into c->host, in order. */
static int hosts_read(struct pg *p, struct pg_claim *c, struct fw_err *err)
{
	int rc;

	if (!pg_claim_hosts_ask(p, c))
		return 0;
	rc = pg_run(p, err);
	if (!rc)
		pg_claim_hosts_read(c, p->res[p->res_n - 1]);
	return rc;
}

struct pg_host *pg_host_find(struct pg_claim *c, int64_t id)
{
	return c->host_n ? bsearch(&id, c->host, c->host_n, sizeof(*c->host), by_number) : NULL;
}

/* Each place: lent, or to be parked (then it stays in c->place, at the front). */
static void places_lend(struct pg_claim *c)
{
	c->park_n = 0;
	for (size_t i = 0; i < c->place_n; i++) {
		struct pg_place *q = &c->place[i];
		struct pg_host *h = q->lent.host_id ? pg_host_find(c, q->lent.host_id) : NULL;

		if (h)
			h->turn_n = FW_MAX(h->turn_n - q->moved, 0);
		if (!h || pg_host_may(c, h)) {
			pg_place_lend(c, q, h);
		} else {
			c->got->deferred_n++;
			h->parked_n++;
			c->place[c->park_n++] = *q;
		}
	}
}

/* Host, time and number of n places: the columns of parked. */
static void parked_columns(struct pg *p, const struct pg_place *q, size_t n)
{
	pg_array(p, PG_INT8, n);
	for (size_t i = 0; i < n; i++)
		pg_item_int(p, q[i].lent.host_id);
	pg_array(p, PG_INT8, n);
	for (size_t i = 0; i < n; i++)
		pg_item_int(p, q[i].feed.due_at_ms);
	pg_array(p, PG_INT8, n);
	for (size_t i = 0; i < n; i++)
		pg_item_int(p, q[i].feed.id);
}

static void park_put(struct pg *p, const struct pg_claim *c)
{
	if (!c->park_n)
		return;
	parked_columns(p, c->place, c->park_n);
	pg_send(p, PG_PARK, "INSERT INTO parked (host_id, due_at_ms, feed_id) SELECT * FROM unnest($1::int8[], $2::int8[], $3::int8[])");
}

void pg_parked_take(struct pg *p, const struct pg_place *q, size_t n)
{
	parked_columns(p, q, n);
	pg_send(p, PG_PARKED_TAKE, "DELETE FROM parked q USING unnest($1::int8[], $2::int8[], $3::int8[]) u (host_id, due_at_ms, feed_id)"
		" WHERE q.host_id = u.host_id AND q.due_at_ms = u.due_at_ms AND q.feed_id = u.feed_id");
}

static void host_column(struct pg *p, const struct pg_claim *c, size_t offset)
{
	pg_array(p, PG_INT8, c->host_n);
	for (size_t i = 0; i < c->host_n; i++) {
		int64_t v;

		memcpy(&v, (const char *)&c->host[i] + offset, sizeof(v));
		pg_item_int(p, v);
	}
}

void pg_claim_hosts_put(struct pg *p, struct pg_claim *c, bool *turns)
{
	size_t n = 0;

	*turns = false;
	if (!c->host_n)
		return;
	host_column(p, c, offsetof(struct pg_host, id));
	host_column(p, c, offsetof(struct pg_host, budget.busy_n));
	host_column(p, c, offsetof(struct pg_host, turn_n));
	host_column(p, c, offsetof(struct pg_host, parked_n));
	host_column(p, c, offsetof(struct pg_host, budget.next_ok_ms));
	host_column(p, c, offsetof(struct pg_host, budget.holder));
	pg_send(p, PG_HOSTS_SET, "UPDATE hosts h SET busy_n = u.busy_n, turn_n = u.turn_n, parked_n = u.parked_n,"
		" next_ok_ms = u.next_ok_ms, holder = u.holder FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::int8[], $5::int8[],"
		" $6::int8[]) u (id, busy_n, turn_n, parked_n, next_ok_ms, holder) WHERE h.id = u.id");
	for (size_t i = 0; i < c->host_n; i++) {
		const struct pg_host *h = &c->host[i];

		if (!fw_budget_full(&h->budget, c->rule, c->me) && h->parked_n && !h->turn_n) {
			c->host_ids[n++] = h->id;
			*turns |= h->budget.next_ok_ms <= c->now_ms;
		}
	}
	if (n)
		pg_turns(p, c->host_ids, n);
}

/* ---- ahead of a host's time ---------------------------------------------------------------------------------------------------- */

/* Of the hosts that were met in this round: those that have parked feeds, and might go ahead. */
static void met_add(struct pg_claim *c)
{
	for (size_t i = 0; i < c->host_n && c->met_n < c->met_room; i++) {
		const struct pg_host *h = &c->host[i];

		if (h->parked_n > 0 && fw_budget_may(&h->budget, c->ask, c->me, c->now_ms))
			c->met[c->met_n++] = h->id;
	}
}

/* Each once; and no more than there is room for, for each has a feed at least. */
static void met_sort(struct pg_claim *c, size_t room)
{
	size_t n = 0;

	qsort(c->met, c->met_n, sizeof(*c->met), by_number);
	for (size_t i = 0; i < c->met_n; i++) {
		if (!n || c->met[n - 1] != c->met[i])
			c->met[n++] = c->met[i];
	}
	c->met_n = FW_MIN(n, room);
}

/* Queued: their rows again, and of each its first parked feeds. */
static void companions_ask(struct pg *p, const struct pg_claim *c, size_t room)
{
	pg_hosts_lock(p, c->met, c->met_n);
	pg_ints(p, c->met, c->met_n);
	pg_int(p, c->ask->host_max ? (int64_t)c->ask->host_max + c->ask->host_ahead : (int64_t)room);
	pg_int(p, FW_MIN(c->now_ms, c->before_ms));
	pg_int(p, c->ask->expect_max_us);
	pg_int(p, (int64_t)room);
	pg_places_ask(p, PG_PARKED_NEXT, PG_PARKED_ROW_SQL("NULL::int8") " FROM unnest($1::int8[]) u (host_id)"
		" CROSS JOIN LATERAL (SELECT x.feed_id, x.due_at_ms FROM parked x WHERE x.host_id = u.host_id AND x.due_at_ms <= $3::int8"
		" AND ($4::int8 = 0 OR x.due_at_ms = 1 OR (SELECT w.expect_us FROM wheel w WHERE w.feed_id = x.feed_id) <= $4::int8)"
		" ORDER BY x.due_at_ms, x.feed_id LIMIT $2::int8) q ORDER BY q.due_at_ms LIMIT $5::int8", "NULL");
}

/* What room is left is for those that wait for a host of which nobody else has any. */
static int companions_lend(struct pg *p, struct pg_claim *c, struct fw_err *err)
{
	size_t room = c->ask->max - c->got->n, n = 0;
	bool turns;
	int rc;

	met_sort(c, room);
	if (!c->met_n)
		return 0;
	companions_ask(p, c, room);
	rc = pg_run(p, err);
	if (rc)
		return rc;
	c->rule = c->ask;
	pg_claim_hosts_read(c, p->res[p->res_n - 2]);
	c->place_n = 0;
	rc = pg_places_read(p, c, p->res[p->res_n - 1], NULL, err);
	for (size_t i = 0; !rc && i < c->place_n; i++) {
		struct pg_place q = c->place[i];
		struct pg_host *h = pg_host_find(c, q.lent.host_id);

		if (!h || !pg_host_may(c, h))
			continue;
		h->parked_n--;
		pg_place_lend(c, &q, h);
		c->place[n++] = q;
	}
	if (rc || !n)
		return rc;
	pg_parked_take(p, c->place, n);
	pg_claim_hosts_put(p, c, &turns);
	return 0;
}

/* ---- the transaction ------------------------------------------------------------------------------------------------------------ */

/* One member of n struct pg_lent. */
static void lent_column(struct pg *p, const struct pg_lent *l, size_t n, enum pg_type type, size_t offset)
{
	pg_array(p, type, n);
	for (size_t i = 0; i < n; i++) {
		int64_t v;

		memcpy(&v, (const char *)&l[i] + offset, sizeof(v));
		if (type == PG_TID)
			pg_item_tid(p, v);
		else
			pg_item_int(p, v);
	}
}

void pg_loan_put(struct pg *p, const char *worker, int64_t until_ms, const int64_t *feed_id, const struct pg_lent *lent, size_t n)
{
	bool crowded = false;

	pg_int(p, until_ms);
	pg_int(p, n == PG_LOAN_MAX ? -1 : (INT64_C(1) << n) - 1);
	pg_text(p, fw_str(worker));
	pg_ints(p, feed_id, n);
	for (size_t i = 0; i < n; i++)
		crowded |= lent[i].host_id != 0;
	if (crowded)
		lent_column(p, lent, n, PG_INT8, offsetof(struct pg_lent, host_id));
	else
		pg_null(p);
	lent_column(p, lent, n, PG_INT8, offsetof(struct pg_lent, visit_id));
	lent_column(p, lent, n, PG_TID, offsetof(struct pg_lent, wheel_at));
	lent_column(p, lent, n, PG_TID, offsetof(struct pg_lent, feed_at));
	pg_send(p, PG_LOAN_PUT, "INSERT INTO loans (id, until_ms, open, worker, feed_id, host_id, visit_id, wheel_at, feed_at)"
		" VALUES (nextval('loans_id'), $1::int8, $2::int8, $3, $4::int8[], $5::int8[], $6::int8[], $7::tid[], $8::tid[])"
		" RETURNING id");
}

/* Queued: the loans. Answers: a number for each. */
static size_t loans_put(struct pg *p, const struct pg_claim *c)
{
	int64_t feed_id[PG_LOAN_MAX];
	size_t rows = 0;

	for (size_t at = 0; at < c->got->n; at += PG_LOAN_MAX, rows++) {
		size_t n = FW_MIN(c->got->n - at, (size_t)PG_LOAN_MAX);

		for (size_t i = 0; i < n; i++)
			feed_id[i] = c->out[at + i].feed.id;
		pg_loan_put(p, c->ask->worker, c->now_ms + c->ask->lease_ms, feed_id, c->lent + at, n);
	}
	return rows;
}

#define WAKE_ROWS 2000

/* Queued: when the first slot of the queue begins to be due. Once more rows stand in it than one looks at, roughly. Who leaves slow
   ones where they are is told of those that he would take: what is due now of these he has. */
static void wake_ask(struct pg *p, const struct pg_claim *c)
{
	int64_t max_us = c->ask->expect_max_us;

	pg_int(p, max_us ? pg_place_last(c->now_ms) & ~((INT64_C(1) << PG_NUMBER_BITS) - 1) : p->low_id);
	pg_int(p, WAKE_ROWS);
	pg_int(p, max_us ? c->now_ms : INT64_MIN);
	pg_int(p, max_us);
	pg_send(p, PG_NEXT_WAKE, "WITH f AS (SELECT p.id FROM places p WHERE p.id >= $1::int8 AND p.wake_at_ms > $3::int8 AND "
		PG_QUICK_SQL("$4") " ORDER BY p.id LIMIT 1) SELECT min(s.wake_at_ms), count(*), (SELECT id FROM f) FROM (SELECT p.wake_at_ms"
		" FROM f, places p WHERE p.id >= f.id AND p.id <= f.id | 16777215 AND p.wake_at_ms > $3::int8 AND " PG_QUICK_SQL("$4")
		" LIMIT $2::int8) s");
}

/* Queued: those that were left where they are stand from here on. */
static void first_ask(struct pg *p)
{
	pg_int(p, p->low_id);
	pg_send(p, PG_FIRST, "SELECT id FROM places WHERE id >= $1::int8 ORDER BY id LIMIT 1");
}

static int64_t wake_read(const struct pg_claim *c, const PGresult *r)
{
	int64_t wake = pg_get_date(r, 0, 0);

	if (pg_get_int(r, 0, 1) >= WAKE_ROWS)
		wake = FW_MIN(wake, pg_get_int(r, 0, 2) >> PG_NUMBER_BITS << PG_SLOT_BITS);
	/* what is due and was not lent is in another's hands for a moment */
	return wake != FW_NO_DATE && wake <= c->now_ms ? c->now_ms + 20 : wake;
}

static int64_t sooner(int64_t a, int64_t b)
{
	return a == FW_NO_DATE ? b : b == FW_NO_DATE ? a : FW_MIN(a, b);
}

/* When a look for the next hint began and what it took: those that are slow, several times in a row, come seldom. */
static void hint_note(struct pg *p, int64_t start)
{
	int64_t took = fw_mono_ms() - start;

	p->slow_hints = took > LOOK_CHEAP_MS ? p->slow_hints + 1 : 0;
	p->look_hint_ms = p->slow_hints > 2 ? start + FW_MAX(LOOK_MS, took * LOOK_SHARE) : 0;
}

/* Who was lent less than asked for is told when to come again. hint: the answers of wake_ask and of PG_LOAN_NEXT. */
static int64_t next_of(const struct pg *p, const struct pg_claim *c, int64_t ran_out_ms, PGresult *const *hint)
{
	int64_t mono = fw_mono_ms(), next = sooner(wake_read(c, hint[0]), ran_out_ms);

	next = sooner(next, hint[1] ? pg_get_date(hint[1], 0, 0) : c->now_ms + FW_MAX(p->look_hint_ms - mono, LOOK_MS));
	/* what others put below low_id is found then */
	return c->looked_all ? next : sooner(next, c->now_ms + FW_MAX(p->look_again_ms - mono, LOOK_MS));
}

/* The end: loans in, numbers out. ran_out_ms: a loan that ran out is left over. */
static int claim_end(struct pg *p, struct pg_claim *c, int64_t ran_out_ms, struct fw_err *err)
{
	size_t rows = loans_put(p, c), quick = c->ask->expect_max_us > 0, first;
	bool hungry = c->got->n < c->ask->max && !c->ask->ids;
	int64_t start = fw_mono_ms();
	bool look = hungry && start >= p->look_hint_ms;
	int rc;

	if (c->ask->expect_max_us)
		first_ask(p);
	if (hungry)
		wake_ask(p, c);
	if (look) {
		pg_int(p, c->now_ms);
		pg_send(p, PG_LOAN_NEXT, "SELECT min(until_ms) FROM loans WHERE until_ms > $1::int8");
	}
	rc = pg_commit_run(p, err);
	if (rc)
		return rc;
	if (look)
		hint_note(p, start);
	first = p->res_n - 1 - hungry - look - quick - rows;
	for (size_t i = 0; i < c->got->n; i++) {
		int64_t id = pg_get_int(p->res[first + i / PG_LOAN_MAX], 0, 0);

		if (!p->first_loan)
			p->first_loan = id;
		c->out[i].fence = c->out[i].feed.fence = pg_fence(id, i % PG_LOAN_MAX);
	}
	if (c->got->n)
		p->none_until_ms = FW_MIN(p->none_until_ms, c->now_ms + c->ask->lease_ms - 1);
	if (quick && PQntuples(p->res[first + rows]))
		p->low_id = pg_get_int(p->res[first + rows], 0, 0);
	if (hungry)
		c->got->next_ms = next_of(p, c, ran_out_ms, (PGresult *[]){p->res[first + rows + quick],
			look ? p->res[first + rows + quick + 1] : NULL});
	else if (c->got->n < c->ask->max)
		c->got->next_ms = sooner(sooner(c->later_ms, ran_out_ms), c->now_ms + LOOK_MS);
	else
		c->got->next_ms = c->now_ms;
	return 0;
}

/* One round: up to n rows, each to its new place. *all: everything was looked at. *full: as many as asked for. */
static int round_do(struct pg *p, struct pg_claim *c, bool moved, size_t n, bool all, bool *full, bool *turns, struct fw_err *err)
{
	int64_t start = fw_mono_ms(), last = 0, took, until = pg_place_last(FW_MIN(c->now_ms, c->before_ms));
	int rc;

	p->until_id = until;
	all = all || c->before_ms < c->now_ms || until < p->low_id; /* the past is behind the others' claims */
	if (moved)
		moved_ask(p, c, n);
	else
		head_ask(p, c, all, n);
	rc = pg_run(p, err);
	if (rc)
		return rc;
	took = fw_mono_ms() - start;
	*full = (size_t)PQntuples(p->res[p->res_n - 1]) == n;
	c->place_n = 0;
	rc = pg_places_read(p, c, p->res[p->res_n - 1], &last, err);
	if (rc)
		return rc;
	places_drop(p, p->res[p->res_n - 1]);
	c->looked_all |= !moved && all;
	if (!moved && until >= p->low_id) {
		if (all) {
			p->look_all_ms = start + FW_MAX(LOOK_MS, took * LOOK_SHARE);
			p->slow_looks = took > LOOK_CHEAP_MS ? p->slow_looks + 1 : 0;
			p->look_again_ms = p->slow_looks > 2 ? p->look_all_ms : 0; /* less often it was something else */
		}
		if (!c->ask->expect_max_us) /* else some were passed over: see first_ask */
			p->low_id = *full ? last : until & ~((INT64_C(1) << PG_NUMBER_BITS) - 1);
	}
	rc = hosts_read(p, c, err);
	if (rc)
		return rc;
	places_lend(c);
	park_put(p, c);
	met_add(c);
	pg_claim_hosts_put(p, c, turns);
	return 0;
}

static int rounds(struct pg *p, struct pg_claim *c, struct fw_err *err)
{
	size_t left = c->ask->max * SCAN_FACTOR + SCAN_EXTRA;
	bool full = true, turns = false, all = fw_mono_ms() >= p->look_all_ms;
	int rc = 0;

	while (!rc && left && c->got->n < c->ask->max) {
		size_t n = FW_MIN(c->ask->max - c->got->n, left);

		rc = round_do(p, c, false, n, all, &full, &turns, err);
		left -= n;
		if (!full && !turns && (all || fw_mono_ms() < p->look_again_ms))
			break;
		all = turns || (!full && !all); /* a turn may stand anywhere; and what others put below is found */
	}
	if (!rc && c->before_ms < c->now_ms && c->got->n < c->ask->max)
		rc = round_do(p, c, true, c->ask->max - c->got->n, false, &full, &turns, err);
	return rc ? rc : companions_lend(p, c, err);
}

/* Queued: the first loan that ran out since the last claim; all: or at any time before. */
static void loan_ask(struct pg *p, const struct pg_claim *c, bool all)
{
	pg_int(p, all ? INT64_MIN : p->none_until_ms);
	pg_int(p, c->now_ms);
	pg_send(p, PG_LOAN_FIRST, "SELECT until_ms, " PG_CLOCK_SQL " FROM (SELECT min(until_ms) AS until_ms FROM loans"
		" WHERE until_ms > $1::int8 AND until_ms <= $2::int8) l");
}

static int claim_in(struct pg *p, void *ctx, struct fw_err *err)
{
	struct pg_claim *c = ctx;
	struct fw_claim_ask plain = *c->ask;
	int64_t mono = fw_mono_ms(), loan_ms;
	bool all = mono >= p->look_loans_ms;
	const PGresult *r;
	int rc;

	plain.host_ahead = 0;
	*c->got = (struct fw_claim_got){.next_ms = FW_NO_DATE};
	c->later_ms = FW_NO_DATE;
	c->met_n = 0;
	pg_begin_quick(p);
	loan_ask(p, c, all);
	rc = pg_run(p, err);
	if (rc)
		return rc;
	r = p->res[p->res_n - 1];
	loan_ms = pg_get_date(r, 0, 0);
	(void)fw_store_clock_note(&p->clock_ms, pg_get_int(r, 0, 1), mono);
	if (loan_ms != FW_NO_DATE && !c->taken_back) {
		c->taken_back = true;
		p->look_loans_ms = 0;
		rc = pg_commit_run(p, err); /* nothing was done in it */
		rc = rc ? rc : pg_take_back(p, c->now_ms, err);
		return rc ? rc : claim_in(p, ctx, err);
	}
	if (all)
		p->look_loans_ms = mono + FW_MAX(LOOK_MS, (fw_mono_ms() - mono) * LOOK_SHARE);
	p->none_until_ms = loan_ms == FW_NO_DATE ? c->now_ms : loan_ms - 1; /* of many some are left for the next claim */
	c->rule = c->ask->ids ? c->ask : &plain;
	rc = c->ask->ids ? pg_claim_ids(p, c, err) : rounds(p, c, err);
	return rc ? rc : claim_end(p, c, loan_ms, err);
}

/* See above: after a crash of the server no fence may come a second time. */
static int fences_move(struct pg *p, void *ctx, struct fw_err *err)
{
	int rc;

	(void)ctx;
	pg_begin(p);
	pg_lock(p, PG_LOCK_FENCES);
	pg_int(p, FENCES_LOST);
	pg_send(p, PG_LOAN_BUMP, "SELECT setval('loans_id', nextval('loans_id') + $1::int8)");
	rc = pg_commit_run(p, err);
	p->fences_moved = !rc;
	return rc;
}

static int earlier(const void *a, const void *b)
{
	const struct fw_lease *x = a, *y = b;

	return x->feed.due_at_ms < y->feed.due_at_ms ? -1 : x->feed.due_at_ms > y->feed.due_at_ms;
}

int pg_fences_move(struct pg *p, struct fw_err *err)
{
	return p->fences_moved ? 0 : pg_txn(p, fences_move, NULL, err);
}

int pg_claim(struct fw_store *st, const struct fw_claim_ask *ask, struct fw_arena *a, struct fw_lease *out,
	struct fw_claim_got *got, struct fw_err *err)
{
	struct pg *p = pg_of(st);
	int64_t now = ask->now_ms ? ask->now_ms : pg_now_ms(p);
	struct pg_claim c = {.ask = ask, .a = a, .out = out, .got = got, .now_ms = now,
		.before_ms = ask->due_before_ms ? ask->due_before_ms : now, .me = fw_budget_holder(ask->worker)};
	size_t n = ask->max + (ask->ids ? PG_IDS_CHUNK : 0) + 1;
	int rc = pg_hear(p, err); /* what was put before all others since the last claim */

	c.room = n;
	c.met_room = ask->host_ahead && !ask->ids ? ask->max * SCAN_FACTOR + SCAN_EXTRA : 0;
	c.met = calloc(c.met_room + 1, sizeof(*c.met));
	c.place = calloc(n, sizeof(*c.place));
	c.host = calloc(n, sizeof(*c.host));
	c.host_ids = calloc(n, sizeof(*c.host_ids));
	c.lent = calloc(n, sizeof(*c.lent));
	if (!rc && (!c.met || !c.place || !c.host || !c.host_ids || !c.lent))
		rc = pg_no_memory(p, err);
	rc = rc ? rc : pg_fences_move(p, err);
	rc = rc ? rc : pg_txn(p, claim_in, &c, err);
	if (rc)
		*got = (struct fw_claim_got){.next_ms = FW_NO_DATE};
	else if (got->n && !ask->ids)
		qsort(out, got->n, sizeof(*out), earlier);
	free(c.met);
	free(c.place);
	free(c.host);
	free(c.host_ids);
	free(c.lent);
	return rc;
}

int pg_pending(struct fw_store *st, int64_t due_before_ms, int64_t *n, int64_t *wake_ms, struct fw_err *err)
{
	struct pg *p = pg_of(st);
	int rc;

	/* feeds waiting at or before that time; those that were moved behind it; parked ones; lent ones */
	pg_int(p, due_before_ms);
	pg_int(p, pg_place_last(due_before_ms));
	pg_send(p, PG_PENDING, "SELECT sum(n)::int8, min(t) FROM ("
		"SELECT count(*) AS n, min(wake_at_ms) AS t FROM places WHERE id <= $2::int8 AND wake_at_ms <= $1::int8 UNION ALL "
		"SELECT count(*), min(wake_at_ms) FROM places WHERE due_at_ms IS NOT NULL AND wake_at_ms > $1::int8"
		" AND due_at_ms <= $1::int8 UNION ALL "
		"SELECT count(*), NULL FROM parked WHERE due_at_ms <= $1::int8 UNION ALL "
		"SELECT count(*), min(l.until_ms) FROM loans l, unnest(l.feed_id) WITH ORDINALITY u (feed_id, i), wheel w"
		" WHERE l.open >> (u.i - 1)::int & 1 = 1 AND w.feed_id = u.feed_id AND w.due_at_ms <= $1::int8) s");
	rc = pg_run(p, err);
	if (rc)
		return rc;
	*n = pg_get_int(p->res[0], 0, 0);
	*wake_ms = pg_get_date(p->res[0], 0, 1);
	return 0;
}
