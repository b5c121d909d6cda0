/* SPDX-License-Identifier: ISC */
/*
 * Outcomes, in one transaction for the whole batch and two or three round trips: what is still lent is locked and shown (with
 * which entries are known); then everything is written, each table by one statement that takes its rows as arrays.
 *
 * A connection that breaks during COMMIT leaves it open whether the batch was stored. The worker sends it again over a new
 * connection, and then nothing of it is lent any more. wheel.last_fence tells: an outcome of an earlier connection whose fence is
 * the last one that its feed's wheel row took is reported as stored, with what was counted then, and nothing is written. On the
 * connection that lent it there is no doubt, so there a second time is stale.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "store/postgres.h"

#define VISIT_BITS 10
#define VISITS_MAX (1u << VISIT_BITS) /* in one row of visit_batches */

struct row { /* an outcome on its way */
	struct fw_outcome *o;
	int64_t due_ms;      /* the outcome's; of pushed entries: as it stands */
	int64_t host_id;     /* whose budget it counts in; 0: none */
	bool counted;        /* the loan is in the host's budget */
	bool again;          /* was stored by an earlier try */
	int64_t previous_id; /* visit before this one */
	int64_t wheel_at, feed_at;
	int64_t visit_id;
	size_t batch;        /* which row of visit_batches, and its number */
	int64_t batch_id;
};

struct commit {
	struct fw_commit *c;
	int64_t now_ms;
	struct row *row;
	size_t *live, live_n;   /* indices of rows that are written */
	struct pg_back *back;
	size_t back_n;
	struct pg_loans loans;
	struct pg_entries *entries;
	int64_t *fence;
	size_t batch_n, pushed_n;
	int64_t run_id;         /* noted by an earlier commit */
	bool urls;
};

static bool is_pushed(const struct row *r)
{
	return r->o->visit.kind == FW_VISIT_PUSHED;
}

static bool is_live(const struct row *r)
{
	return !r->again && r->o->rc != FW_ESTALE;
}

/* ---- the first round trip: who is still lent ---------------------------------------------------------------------------------- */

/* Visits of one run and at most VISITS_MAX go into one row. */
static void batches_count(struct commit *c)
{
	size_t in = 0;

	c->batch_n = 0;
	for (size_t i = 0; i < c->c->n; i++) {
		if (!i || in == VISITS_MAX || c->row[i].o->visit.run_id != c->row[i - 1].o->visit.run_id) {
			c->batch_n++;
			in = 0;
		}
		c->row[i].batch = c->batch_n - 1;
		in++;
	}
}

static void look_ask(struct pg *p, struct commit *c)
{
	if (c->urls)
		pg_lock(p, PG_LOCK_MEMBERS);
	pg_loans_lock(p, c->fence, c->c->n);
	pg_int(p, (int64_t)c->batch_n);
	pg_send(p, PG_VISITS_ID, "SELECT nextval('visit_batches_id') FROM generate_series(1, $1::int8)");
	if (c->entries)
		pg_entries_ask(p, c->entries);
	if (!c->pushed_n)
		return;
	pg_array(p, PG_INT8, c->pushed_n); /* behind the lock on loans, which their owner takes too */
	for (size_t i = 0; i < c->c->n; i++) {
		if (is_pushed(&c->row[i]))
			pg_item_int(p, c->row[i].o->feed_id);
	}
	pg_send(p, PG_PUSHED_DUE, "SELECT u.i, w.due_at_ms FROM unnest($1::int8[]) WITH ORDINALITY u (feed_id, i)"
		" JOIN wheel w ON w.feed_id = u.feed_id");
}

/* What came without a visit of ours changes nothing about when the next one is due. */
static void pushed_read(struct commit *c, const PGresult *r)
{
	for (int k = 0; k < PQntuples(r); k++) {
		int64_t at = pg_get_int(r, k, 0);

		for (size_t i = 0; i < c->c->n; i++) {
			if (is_pushed(&c->row[i]) && --at == 0)
				c->row[i].due_ms = pg_get_int(r, k, 1);
		}
	}
}

/* Of outcomes that are not lent: those that an earlier connection stored. */
static int stored_look(struct pg *p, struct commit *c, struct fw_err *err)
{
	size_t n = 0;
	int rc;

	for (size_t i = 0; i < c->c->n; i++)
		n += c->row[i].o->rc == FW_ESTALE && (!p->first_loan || c->row[i].o->fence < pg_fence(p->first_loan, 0));
	if (!n)
		return 0;
	pg_array(p, PG_INT8, c->c->n);
	for (size_t i = 0; i < c->c->n; i++)
		pg_item_int(p, c->row[i].o->feed_id);
	pg_array(p, PG_INT8, c->c->n);
	for (size_t i = 0; i < c->c->n; i++)
		pg_item_int(p, c->row[i].o->fence);
	pg_send(p, PG_STORED, "SELECT u.i, coalesce(b.new_n[(w.last_visit_id & 1023) + 1], 0), coalesce(b.changed_n[(w.last_visit_id"
		" & 1023) + 1], 0) FROM unnest($1::int8[], $2::int8[]) WITH ORDINALITY u (feed_id, fence, i) JOIN wheel w"
		" ON w.feed_id = u.feed_id AND w.last_fence = u.fence LEFT JOIN visit_batches b ON b.id = w.last_visit_id >> 10");
	rc = pg_run(p, err);
	for (int k = 0; !rc && k < PQntuples(p->res[0]); k++) {
		struct row *r = &c->row[pg_get_int(p->res[0], k, 0) - 1];

		if (r->o->rc != FW_ESTALE || (p->first_loan && r->o->fence >= pg_fence(p->first_loan, 0)))
			continue;
		r->again = true;
		r->o->rc = 0;
		r->o->visit.new_n = (uint32_t)pg_get_int(p->res[0], k, 1);
		r->o->visit.changed_n = (uint32_t)pg_get_int(p->res[0], k, 2);
	}
	return rc;
}

static void rows_judge(struct commit *c)
{
	for (size_t i = 0; i < c->c->n; i++) {
		struct row *r = &c->row[i];
		size_t bit;
		struct pg_loan *l = pg_loan_find(&c->loans, r->o->fence, r->o->feed_id, &bit);

		r->o->rc = l ? 0 : FW_ESTALE;
		r->o->visit.new_n = r->o->visit.changed_n = 0;
		r->again = false;
		if (!l)
			continue;
		l->open &= ~(UINT64_C(1) << bit);
		r->host_id = l->host[bit];
		r->counted = r->host_id != 0;
		r->previous_id = l->visit[bit];
		r->wheel_at = l->wheel_at[bit];
		r->feed_at = l->feed_at[bit];
	}
}

static int look(struct pg *p, struct commit *c, struct fw_err *err)
{
	size_t first;
	int rc;

	look_ask(p, c);
	rc = pg_run(p, err);
	first = p->res_n - 2 - (c->entries != NULL) - (c->pushed_n > 0);
	rc = rc ? rc : pg_loans_read(p, p->res[first], &c->loans, err);
	if (rc)
		return rc;
	rows_judge(c);
	for (size_t i = 0; i < c->c->n; i++)
		c->row[i].batch_id = pg_get_int(p->res[first + 1], (int)c->row[i].batch, 0);
	if (c->pushed_n)
		pushed_read(c, p->res[p->res_n - 1]);
	if (c->entries)
		rc = pg_entries_sort(p, c->entries, p->res[first + 2], c->c->outcome, err);
	return rc ? rc : stored_look(p, c, err);
}

/* ---- another address --------------------------------------------------------------------------------------------------------------- */

/* The host that lent it learns from it. */
static void back_add(struct commit *c, const struct row *r, int64_t cooldown_ms)
{
	const struct fw_outcome *o = r->o;
	struct pg_back b = {.host_id = r->host_id, .n = r->counted, .cooldown_ms = cooldown_ms,
		.next_ms = o->host_wait_ms > 0 ? c->now_ms + o->host_wait_ms : 0};

	if (r->counted) {
		b.mood = o->host_mood;
		b.total_us = o->feed->expect_us > 0 ? FW_MAX(o->visit.total_us, 0) : 0;
	}
	if (b.host_id && (b.n || cooldown_ms || b.next_ms))
		c->back[c->back_n++] = b;
}

/* The feed moves to another host. Its loan is given back to the old one; nothing is counted at the new one. */
static int host_move(struct pg *p, struct commit *c, struct row *r, struct fw_str name, int64_t old_host, struct fw_err *err)
{
	struct pg_join j = {.name = name, .n = 1};
	int rc;

	back_add(c, r, 0);
	rc = pg_hosts_join(p, &j, 1, err);
	if (rc)
		return rc;
	r->host_id = j.crowded ? j.id : 0;
	r->counted = false;
	pg_int(p, r->o->feed_id);
	pg_int(p, j.id);
	pg_int(p, r->host_id);
	pg_send(p, PG_ONCE, "UPDATE feeds SET host_id = $2::int8, crowd_id = $3::int8 WHERE id = $1::int8");
	pg_host_leave(p, old_host);
	return pg_run(p, err);
}

/* The host that its address or its key says now. */
static int host_put(struct pg *p, struct commit *c, struct row *r, struct fw_err *err)
{
	char name[256];
	int64_t old_host;
	const PGresult *was;
	int rc;

	pg_int(p, r->o->feed_id);
	pg_send(p, PG_FEED_HOST, "SELECT f.host_id, h.name FROM feeds f LEFT JOIN hosts h ON h.id = f.host_id WHERE f.id = $1::int8");
	rc = pg_run(p, err);
	if (rc)
		return rc;
	was = p->res[p->res_n - 1];
	if (!PQntuples(was) || !fw_store_feed_host(r->o->feed, name, sizeof(name)) || fw_str_eq(pg_get_str(was, 0, 1), fw_str(name)))
		return 0;
	old_host = pg_get_int(was, 0, 0);
	return host_move(p, c, r, fw_str(name), old_host, err);
}

/* A new address: refused with FW_EINVAL in o->rc when another feed has it. */
static int url_put(struct pg *p, struct commit *c, struct row *r, struct fw_err *err)
{
	struct fw_outcome *o = r->o;
	const PGresult *taken;
	char name[256];
	int rc;

	pg_text(p, o->feed->url);
	pg_send(p, PG_URL_TAKEN, "SELECT id FROM feeds WHERE md5(url) = md5($1::text) AND url = $1::text");
	rc = pg_run(p, err);
	if (rc)
		return rc;
	taken = p->res[p->res_n - 1];
	if (PQntuples(taken)) {
		o->rc = pg_get_int(taken, 0, 0) == o->feed_id ? 0 : FW_EINVAL;
		return 0;
	}
	if (!fw_store_host(o->feed->url, name, sizeof(name))) {
		o->rc = FW_EINVAL;
		return 0;
	}
	pg_int(p, o->feed_id);
	pg_text(p, o->feed->url);
	pg_send(p, PG_SET_URL, "UPDATE feeds SET url = $2::text WHERE id = $1::int8");
	return host_put(p, c, r, err);
}

/* A move may have brought company to feeds of this very batch: those count with their host from now on, though their loans do not. */
static int hosts_reread(struct pg *p, struct commit *c, struct fw_err *err)
{
	int rc;

	pg_array(p, PG_INT8, c->c->n);
	for (size_t i = 0; i < c->c->n; i++)
		pg_item_int(p, c->row[i].o->feed_id);
	pg_send(p, PG_ONCE, "SELECT u.i, f.crowd_id FROM unnest($1::int8[]) WITH ORDINALITY u (id, i) JOIN feeds f ON f.id = u.id"
		" WHERE f.crowd_id <> 0");
	rc = pg_run(p, err);
	for (int k = 0; !rc && k < PQntuples(p->res[p->res_n - 1]); k++) {
		struct row *r = &c->row[pg_get_int(p->res[p->res_n - 1], k, 0) - 1];

		if (is_live(r) && !r->counted)
			r->host_id = pg_get_int(p->res[p->res_n - 1], k, 1);
	}
	return rc;
}

static int urls_put(struct pg *p, struct commit *c, struct fw_err *err)
{
	int rc = 0;

	pg_loans_write(p, &c->loans); /* first, so that who joins a host does not count what comes back as lent there */
	for (size_t i = 0; i < c->c->n && !rc; i++) {
		if (is_live(&c->row[i]) && (c->row[i].o->groups & FW_GROUP_URL))
			rc = url_put(p, c, &c->row[i], err);
		else if (is_live(&c->row[i]) && (c->row[i].o->groups & FW_GROUP_HOST))
			rc = host_put(p, c, &c->row[i], err);
	}
	return rc ? rc : hosts_reread(p, c, err);
}

/* ---- the last round trip: everything is written --------------------------------------------------------------------------------------- */

/* Parameters of the statement: first these, then a column of wheel each. `why` alone is unnested: the others' items are as wide as one
   another, so that the server finds one by its number at once, and a function each, whose rows it would keep, is not needed. */
enum { VISIT_FEED = 1, VISIT_ID, VISIT_FENCE, VISIT_PLACE, VISIT_WAKE, VISIT_WHEEL_AT, VISIT_FEED_AT, VISIT_COLUMNS };

static void wheel_value(struct fw_buf *b, const struct fw_field *f, int param)
{
	if (f->type == FW_FIELD_TEXT)
		fw_buf_addf(b, ", %s = u.%s", f->name, f->name);
	else if (strcmp(f->name, "status") == 0) /* what the owner set meanwhile stays */
		fw_buf_addf(b, ", status = CASE WHEN w.status = 0 THEN ($%d::int8[])[u.i] ELSE w.status END", param);
	else if (strcmp(f->name, "last_new_ms") == 0)
		fw_buf_addf(b, ", last_new_ms = coalesce(nullif(($%d::int8[])[u.i], 0), w.last_new_ms)", param);
	else
		fw_buf_addf(b, ", %s = ($%d::int8[])[u.i]", f->name, param);
}

/* What a visit writes into rows of wheel, found by `where`. */
static void wheel_update(struct fw_buf *b, const char *where)
{
	fw_buf_addf(b, "UPDATE wheel w SET last_visit_id = ($%d::int8[])[u.i], last_fence = ($%d::int8[])[u.i]", VISIT_ID, VISIT_FENCE);
	for (size_t i = 0; i < fw_wheel_field_n; i++)
		wheel_value(b, &fw_wheel_fields[i], VISIT_COLUMNS + (int)i);
	fw_buf_addf(b, " FROM unnest($%d::text[]) WITH ORDINALITY u (why, i) WHERE %s RETURNING w.feed_id, w.status, w.ctid AS at, u.i",
		VISIT_COLUMNS + (int)fw_wheel_field_n - 1, where);
}

/* Rows lie where the claim saw them, nearly always. Those that somebody moved since are found by their number; so are those that
   are moved while this waits for a lock, for then the server looks whether the place is still the one that was asked for. */
static void wheel_sql(struct fw_buf *b)
{
	fw_buf_adds(b, "WITH seen AS (");
	wheel_update(b, "w.ctid = ($6::tid[])[u.i] AND w.feed_id IS NOT DISTINCT FROM ($1::int8[])[u.i]");
	fw_buf_adds(b, "), moved AS (");
	wheel_update(b, "w.feed_id = ($1::int8[])[u.i] AND (SELECT count(*) FROM seen) < cardinality($1::int8[])"
		" AND ($1::int8[])[u.i] NOT IN (SELECT feed_id FROM seen)");
	fw_buf_addf(b, ") INSERT INTO places (id, wake_at_ms, feed_id, due_at_ms, wheel_at, feed_at) SELECT ($4::int8[])[i], ($5::int8[])[i],"
		" feed_id, nullif(($%d::int8[])[i], ($5::int8[])[i]), at, ($7::tid[])[i]"
		" FROM (SELECT * FROM seen UNION ALL SELECT * FROM moved) s WHERE status = 0", VISIT_COLUMNS);
}

/* The only feed of its host is put off here; a crowded host's feeds wait for next_ok_ms anyway. */
static int64_t wake_of(const struct row *r)
{
	return r->host_id ? r->due_ms : FW_MAX(r->due_ms, r->o->host_cooldown_ms);
}

static bool cools_alone(const struct row *r)
{
	return !r->host_id && r->o->host_cooldown_ms > 0;
}

static struct row *live(const struct commit *c, size_t i)
{
	return &c->row[c->live[i]];
}

static void wheel_column(struct pg *p, const struct commit *c, const struct fw_field *f)
{
	pg_array(p, f->type == FW_FIELD_TEXT ? PG_TEXT : PG_INT8, c->live_n);
	for (size_t i = 0; i < c->live_n; i++) {
		const struct fw_outcome *o = live(c, i)->o;

		if (f->type == FW_FIELD_TEXT)
			pg_item_text(p, fw_field_str(f, o->feed));
		else if (strcmp(f->name, "last_new_ms") == 0)
			pg_item_int(p, o->visit.new_n ? c->now_ms : 0);
		else if (strcmp(f->name, "due_at_ms") == 0)
			pg_item_int(p, live(c, i)->due_ms);
		else
			pg_item_int(p, fw_field_int(f, o->feed));
	}
}

static void wheel_put(struct pg *p, const struct commit *c)
{
	pg_array(p, PG_INT8, c->live_n);
	for (size_t i = 0; i < c->live_n; i++)
		pg_item_int(p, live(c, i)->o->feed_id);
	pg_array(p, PG_INT8, c->live_n);
	for (size_t i = 0; i < c->live_n; i++)
		pg_item_int(p, live(c, i)->visit_id);
	pg_array(p, PG_INT8, c->live_n);
	for (size_t i = 0; i < c->live_n; i++)
		pg_item_int(p, live(c, i)->o->fence);
	pg_array(p, PG_INT8, c->live_n);
	for (size_t i = 0; i < c->live_n; i++)
		pg_item_int(p, pg_place_id(p, wake_of(live(c, i))));
	pg_array(p, PG_INT8, c->live_n);
	for (size_t i = 0; i < c->live_n; i++)
		pg_item_int(p, wake_of(live(c, i)));
	pg_array(p, PG_TID, c->live_n);
	for (size_t i = 0; i < c->live_n; i++)
		pg_item_tid(p, live(c, i)->wheel_at);
	pg_array(p, PG_TID, c->live_n);
	for (size_t i = 0; i < c->live_n; i++)
		pg_item_tid(p, live(c, i)->feed_at);
	for (size_t i = 0; i < fw_wheel_field_n; i++)
		wheel_column(p, c, &fw_wheel_fields[i]);
	if (pg_text_wanted(p, PG_WHEEL_VISIT))
		wheel_sql(&p->text);
	pg_send_text(p, PG_WHEEL_VISIT);
}

/* One column of visits, live rows from..to; NULL when all of it is 0 or absent. */
static void visit_column(struct pg *p, const struct commit *c, const struct fw_field *f, size_t from, size_t to)
{
	bool any = false, text = f->type == FW_FIELD_TEXT;

	for (size_t i = from; i < to && !any; i++) {
		const struct fw_visit *v = &live(c, i)->o->visit;

		any = text ? fw_field_str(f, v).p != NULL : fw_field_int(f, v) != 0;
	}
	if (!any) {
		pg_null(p);
		return;
	}
	pg_array(p, text ? PG_TEXT : PG_INT8, to - from);
	for (size_t i = from; i < to; i++) {
		const struct fw_visit *v = &live(c, i)->o->visit;

		if (text)
			pg_item_text(p, fw_field_str(f, v));
		else
			pg_item_int(p, fw_field_int(f, v));
	}
}

/* Of these there is one for the row, or the outcome knows better. */
static bool is_own(const struct fw_field *f)
{
	return strcmp(f->name, "run_id") == 0 || strcmp(f->name, "feed_id") == 0;
}

static void visits_sql(struct fw_buf *b)
{
	fw_buf_adds(b, "INSERT INTO visit_batches (id, run_id, first_ms, last_ms, n, previous_id, feed_id");
	for (size_t i = 0; i < fw_visit_field_n; i++) {
		if (!is_own(&fw_visit_fields[i]))
			fw_buf_addf(b, ", %s", fw_visit_fields[i].name);
	}
	fw_buf_adds(b, ") VALUES ($1::int8, $2::int8, $3::int8, $4::int8, $5::int8, $6::int8[], $7::int8[]");
	for (size_t i = 0, n = 8; i < fw_visit_field_n; i++) {
		if (!is_own(&fw_visit_fields[i]))
			fw_buf_addf(b, ", $%zu::%s[]", n++, fw_visit_fields[i].type == FW_FIELD_TEXT ? "text" : "int8");
	}
	fw_buf_adds(b, ")");
}

/* A row of visit_batches: live rows from..to */
static void visits_put(struct pg *p, const struct commit *c, size_t from, size_t to)
{
	const struct fw_visit *v = &live(c, from)->o->visit;
	int64_t first_ms = v->at_ms, last_ms = v->at_ms;

	for (size_t i = from; i < to; i++) {
		first_ms = FW_MIN(first_ms, live(c, i)->o->visit.at_ms);
		last_ms = FW_MAX(last_ms, live(c, i)->o->visit.at_ms);
	}
	pg_int(p, live(c, from)->visit_id >> VISIT_BITS);
	pg_int(p, v->run_id);
	pg_int(p, first_ms);
	pg_int(p, last_ms);
	pg_int(p, (int64_t)(to - from));
	pg_array(p, PG_INT8, to - from);
	for (size_t i = from; i < to; i++)
		pg_item_int(p, live(c, i)->previous_id);
	pg_array(p, PG_INT8, to - from);
	for (size_t i = from; i < to; i++)
		pg_item_int(p, live(c, i)->o->feed_id);
	for (size_t i = 0; i < fw_visit_field_n; i++) {
		if (!is_own(&fw_visit_fields[i]))
			visit_column(p, c, &fw_visit_fields[i], from, to);
	}
	if (pg_text_wanted(p, PG_VISITS_PUT))
		visits_sql(&p->text);
	pg_send_text(p, PG_VISITS_PUT);
	if (v->run_id != p->run_id) {
		p->run_id = v->run_id;
		pg_int(p, v->run_id);
		pg_int(p, live(c, from)->visit_id);
		pg_send(p, PG_RUN_PUT, "INSERT INTO runs AS r (run_id, first_visit_id) VALUES ($1::int8, $2::int8) ON CONFLICT (run_id)"
			" DO UPDATE SET first_visit_id = least(r.first_visit_id, excluded.first_visit_id)");
	}
}

static void groups_sql(struct fw_buf *b)
{
	bool first = true;
	int n = 3;

	fw_buf_adds(b, "UPDATE feeds f SET ");
	for (size_t i = 0; i < fw_feed_field_n; i++) {
		const struct fw_field *f = &fw_feed_fields[i];

		if (!f->group || f->group == FW_GROUP_URL)
			continue;
		fw_buf_addf(b, "%s%s = CASE WHEN u.g & %u <> 0 THEN u.%s ELSE f.%s END", first ? "" : ", ", f->name, f->group, f->name,
			f->name);
		first = false;
	}
	fw_buf_adds(b, " FROM unnest($1::int8[], $2::int8[]");
	for (size_t i = 0; i < fw_feed_field_n; i++) {
		if (fw_feed_fields[i].group && fw_feed_fields[i].group != FW_GROUP_URL) {
			fw_buf_adds(b, ", ");
			pg_array_params(b, n++, &fw_feed_fields[i], 1);
		}
	}
	fw_buf_adds(b, ") u (id, g");
	for (size_t i = 0; i < fw_feed_field_n; i++) {
		if (fw_feed_fields[i].group && fw_feed_fields[i].group != FW_GROUP_URL)
			fw_buf_addf(b, ", %s", fw_feed_fields[i].name);
	}
	fw_buf_adds(b, ") WHERE f.id = u.id");
}

/* What documents changed in the wide row. */
static int groups_put(struct pg *p, const struct commit *c, struct fw_err *err)
{
	const void **of = calloc(c->live_n + 1, sizeof(void *));
	size_t n = 0;

	if (!of)
		return fw_err_set(err, FW_ENOMEM, "%s: out of memory", p->name);
	for (size_t i = 0; i < c->live_n; i++) {
		if (live(c, i)->o->groups & ~(unsigned)FW_GROUP_URL)
			of[n++] = live(c, i)->o->feed;
	}
	if (n) {
		pg_array(p, PG_INT8, n);
		for (size_t i = 0; i < c->live_n; i++) {
			if (live(c, i)->o->groups & ~(unsigned)FW_GROUP_URL)
				pg_item_int(p, live(c, i)->o->feed_id);
		}
		pg_array(p, PG_INT8, n);
		for (size_t i = 0; i < c->live_n; i++) {
			if (live(c, i)->o->groups & ~(unsigned)FW_GROUP_URL)
				pg_item_int(p, live(c, i)->o->groups);
		}
		for (size_t i = 0; i < fw_feed_field_n; i++) {
			if (fw_feed_fields[i].group && fw_feed_fields[i].group != FW_GROUP_URL)
				pg_field_arrays(p, &fw_feed_fields[i], 1, of, n);
		}
		if (pg_text_wanted(p, PG_GROUPS))
			groups_sql(&p->text);
		pg_send_text(p, PG_GROUPS);
	}
	free(of);
	return 0;
}

static void beat_put(struct pg *p, const struct fw_beat *b, int64_t now_ms)
{
	pg_text(p, fw_str(b->worker));
	for (size_t i = 0; i < fw_beat_field_n; i++)
		pg_int(p, strcmp(fw_beat_fields[i].name, "at_ms") == 0 ? now_ms : fw_field_int(&fw_beat_fields[i], b));
	if (pg_text_wanted(p, PG_BEAT)) {
		fw_buf_adds(&p->text, "INSERT INTO workers (worker, ");
		pg_columns(&p->text, "", fw_beat_fields, fw_beat_field_n);
		fw_buf_adds(&p->text, ") VALUES ($1");
		for (size_t i = 0; i < fw_beat_field_n; i++)
			fw_buf_addf(&p->text, ", $%zu::int8", i + 2);
		fw_buf_adds(&p->text, ") ON CONFLICT (worker) DO UPDATE SET ");
		for (size_t i = 0; i < fw_beat_field_n; i++)
			fw_buf_addf(&p->text, "%s%s = excluded.%s", i ? ", " : "", fw_beat_fields[i].name, fw_beat_fields[i].name);
	}
	pg_send_text(p, PG_BEAT);
}

/* The only feed of its host waits by itself; the host's row tells those that join it meanwhile. */
static void lone_cooldowns_put(struct pg *p, const struct commit *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->live_n; i++)
		n += cools_alone(live(c, i));
	if (!n)
		return;
	pg_array(p, PG_INT8, n);
	for (size_t i = 0; i < c->live_n; i++) {
		if (cools_alone(live(c, i)))
			pg_item_int(p, live(c, i)->o->feed_id);
	}
	pg_array(p, PG_INT8, n);
	for (size_t i = 0; i < c->live_n; i++) {
		if (cools_alone(live(c, i)))
			pg_item_int(p, live(c, i)->o->host_cooldown_ms);
	}
	pg_send(p, PG_ONCE, "UPDATE hosts h SET next_ok_ms = greatest(h.next_ok_ms, u.ms), cool_until_ms = greatest(h.cool_until_ms, u.ms)"
		" FROM unnest($1::int8[], $2::int8[]) u (feed_id, ms), feeds f WHERE f.id = u.feed_id AND h.id = f.host_id");
}

static int all_put(struct pg *p, struct commit *c, struct fw_err *err)
{
	size_t from = 0;
	int rc = 0;

	c->live_n = 0;
	for (size_t i = 0, in = 0; i < c->c->n; i++) {
		struct row *r = &c->row[i];

		if (!is_live(r))
			continue;
		in = c->live_n && live(c, c->live_n - 1)->batch == r->batch ? in + 1 : 0;
		r->visit_id = r->batch_id << VISIT_BITS | (int64_t)in;
		c->live[c->live_n++] = i;
	}
	if (c->live_n) {
		if (c->entries)
			pg_entries_put(p, c->entries, c->now_ms);
		wheel_put(p, c);
		rc = groups_put(p, c, err);
		for (size_t i = 1; i <= c->live_n; i++) {
			if (i == c->live_n || live(c, i)->batch != live(c, from)->batch) {
				visits_put(p, c, from, i);
				from = i;
			}
		}
		if (!c->urls)
			pg_loans_write(p, &c->loans);
		for (size_t i = 0; i < c->live_n; i++)
			back_add(c, live(c, i), live(c, i)->o->host_cooldown_ms);
		pg_hosts_return(p, c->back, c->back_n);
		lone_cooldowns_put(p, c);
	}
	if (c->c->beat)
		beat_put(p, c->c->beat, c->now_ms);
	return rc;
}

static int commit_in(struct pg *p, void *ctx, struct fw_err *err)
{
	struct commit *c = ctx;
	int rc = 0;

	c->back_n = 0;
	p->run_id = c->run_id;
	pg_loans_finish(&c->loans);
	batches_count(c);
	pg_begin(p);
	if (c->c->n)
		rc = look(p, c, err);
	if (!rc && c->urls)
		rc = urls_put(p, c, err);
	rc = rc ? rc : all_put(p, c, err);
	return rc ? rc : pg_commit_run(p, err);
}

static int commit_init(struct pg *p, struct commit *c, struct fw_err *err)
{
	size_t n = c->c->n + 1;

	c->row = calloc(n, sizeof(*c->row));
	c->live = calloc(n, sizeof(*c->live));
	c->back = calloc(2 * n, sizeof(*c->back));
	c->fence = calloc(n, sizeof(*c->fence));
	if (!c->row || !c->live || !c->back || !c->fence)
		return fw_err_set(err, FW_ENOMEM, "%s: commit: out of memory", p->name);
	for (size_t i = 0; i < c->c->n; i++) {
		c->row[i].o = &c->c->outcome[i];
		c->row[i].due_ms = c->c->outcome[i].feed->due_at_ms;
		c->pushed_n += is_pushed(&c->row[i]);
		c->fence[i] = c->c->outcome[i].fence;
		c->urls |= c->c->outcome[i].groups & (FW_GROUP_URL | FW_GROUP_HOST);
	}
	return 0;
}

int pg_commit(struct fw_store *st, struct fw_commit *batch, struct fw_err *err)
{
	struct pg *p = pg_of(st);
	struct commit c = {.c = batch, .now_ms = batch->now_ms ? batch->now_ms : pg_now_ms(p), .run_id = p->run_id};
	int rc = commit_init(p, &c, err);

	err->rc = 0;
	if (!rc) {
		c.entries = pg_entries_new(batch->outcome, batch->n, err);
		rc = c.entries ? 0 : err->rc;
	}
	rc = rc ? rc : pg_txn(p, commit_in, &c, err);
	if (rc)
		p->run_id = 0; /* whether the run was noted is unknown */
	pg_entries_free(c.entries);
	pg_loans_finish(&c.loans);
	free(c.row);
	free(c.live);
	free(c.back);
	free(c.fence);
	return rc;
}
