/* SPDX-License-Identifier: ISC */
/*
 * Pushed events: tables incoming and incoming_dead. A batch goes in by COPY, which costs the server 1.4 us a row. It cannot pass over rows
 * that are there already, as after a commit that nobody heard of: then the batch is refused, and goes in by one INSERT over arrays, which can,
 * and costs 5 us. That also has the last word on what is refused for another reason.
 */
#include "store/postgres.h"

#define COPY_MIN 16 /* rows: fewer are sooner there by one round trip */

struct events {
	const struct fw_event *at;
	size_t n;
};

/* One member of all of them, as an array: a number, a text. */
static void ints(struct pg *p, const struct events *q, size_t member)
{
	pg_array(p, PG_INT8, q->n);
	for (size_t i = 0; i < q->n; i++)
		pg_item_int(p, *(const int64_t *)(const void *)((const char *)&q->at[i] + member));
}

static void texts(struct pg *p, const struct events *q, size_t member)
{
	pg_array(p, PG_TEXT, q->n);
	for (size_t i = 0; i < q->n; i++)
		pg_item_text(p, *(const struct fw_str *)(const void *)((const char *)&q->at[i] + member));
}

static int events_in(struct pg *p, void *ctx, struct fw_err *err)
{
	const struct events *q = ctx;

	pg_begin(p);
	ints(p, q, offsetof(struct fw_event, id));
	texts(p, q, offsetof(struct fw_event, property));
	ints(p, q, offsetof(struct fw_event, section));
	ints(p, q, offsetof(struct fw_event, item));
	texts(p, q, offsetof(struct fw_event, remote_ip));
	ints(p, q, offsetof(struct fw_event, stamp_ms));
	pg_send(p, PG_EVENTS_PUT, "INSERT INTO incoming (id, property, property_section, property_id, remote_ip, stamp) SELECT * FROM"
		" unnest($1::int8[], $2::text[], $3::int8[], $4::int8[], $5::text[], $6::int8[]) ON CONFLICT (id) DO NOTHING");
	return pg_commit_run(p, err);
}

static int events_copy(struct pg *p, const struct events *q, struct fw_err *err)
{
	int rc = pg_copy_begin(p, "COPY incoming (id, property, property_section, property_id, remote_ip, stamp) FROM STDIN (FORMAT binary)", err);

	if (rc)
		return rc;
	for (size_t i = 0; i < q->n; i++) {
		const struct fw_event *e = &q->at[i];

		pg_copy_row(p, 6);
		pg_copy_int(p, e->id);
		pg_copy_text(p, e->property);
		pg_copy_int(p, e->section);
		pg_copy_int(p, e->item);
		pg_copy_text(p, e->remote_ip);
		pg_copy_int(p, e->stamp_ms);
	}
	return pg_copy_end(p, err);
}

int pg_event_put(struct fw_store *st, const struct fw_event *event, size_t n, struct fw_err *err)
{
	struct events q = {event, n};
	struct pg *p = pg_of(st);
	int rc = n < COPY_MIN || p->session[0] || p->read_only ? FW_EINVAL : events_copy(p, &q, err);

	return rc == FW_EINVAL ? pg_txn(p, events_in, &q, err) : rc;
}

static int dead_in(struct pg *p, void *ctx, struct fw_err *err)
{
	const struct fw_dead_event *e = ctx;

	pg_begin(p);
	pg_int(p, e->id);
	pg_text(p, e->row);
	pg_text(p, e->reason);
	pg_int(p, e->at_ms);
	pg_send(p, PG_ONCE, "INSERT INTO incoming_dead (id, row, reason, at_ms) VALUES ($1::int8, $2, $3, $4::int8)"
		" ON CONFLICT (id) DO UPDATE SET row = $2, reason = $3, at_ms = $4::int8");
	return pg_commit_run(p, err);
}

int pg_event_bury(struct fw_store *st, const struct fw_dead_event *event, struct fw_err *err)
{
	struct fw_dead_event e = *event;

	return pg_txn(pg_of(st), dead_in, &e, err);
}

struct dead {
	const struct fw_dead_event *at;
	size_t n;
};

static int dead_out(struct pg *p, void *ctx, struct fw_err *err)
{
	const struct dead *q = ctx;

	pg_begin(p);
	pg_array(p, PG_INT8, q->n);
	for (size_t i = 0; i < q->n; i++)
		pg_item_int(p, q->at[i].id);
	pg_send(p, PG_ONCE, "DELETE FROM incoming_dead WHERE id = ANY ($1::int8[])");
	return pg_commit_run(p, err);
}

int pg_event_unbury(struct fw_store *st, const struct fw_dead_event *event, size_t n, struct fw_err *err)
{
	struct dead q = {event, n};

	return pg_txn(pg_of(st), dead_out, &q, err);
}

struct listing {
	fw_event_cb *cb;
	fw_dead_event_cb *dead_cb;
	void *ctx;
};

static int event_show(void *ctx, struct pg *p, const PGresult *r, int row)
{
	struct listing *l = ctx;
	struct fw_event e = {.id = pg_get_int(r, row, 0), .property = pg_get_str(r, row, 1), .section = pg_get_int(r, row, 2),
		.item = pg_get_int(r, row, 3), .remote_ip = pg_get_str(r, row, 4), .stamp_ms = pg_get_int(r, row, 5)};

	(void)p;
	return l->cb(l->ctx, &e);
}

static int dead_show(void *ctx, struct pg *p, const PGresult *r, int row)
{
	struct listing *l = ctx;
	struct fw_dead_event e = {.id = pg_get_int(r, row, 0), .row = pg_get_str(r, row, 1), .reason = pg_get_str(r, row, 2),
		.at_ms = pg_get_int(r, row, 3)};

	(void)p;
	return l->dead_cb(l->ctx, &e);
}

int pg_event_list(struct fw_store *st, int64_t after_id, size_t limit, fw_event_cb *cb, void *ctx, struct fw_err *err)
{
	struct listing l = {.cb = cb, .ctx = ctx};
	struct pg *p = pg_of(st);

	pg_int(p, after_id);
	pg_int(p, limit ? (int64_t)limit : INT64_MAX);
	return pg_list(p, "SELECT id, property, property_section, property_id, remote_ip, stamp FROM incoming WHERE id > $1::int8 ORDER BY id"
		" LIMIT $2::int8", 500, event_show, &l, err);
}

int pg_event_dead_list(struct fw_store *st, int64_t after_id, size_t limit, fw_dead_event_cb *cb, void *ctx, struct fw_err *err)
{
	struct listing l = {.dead_cb = cb, .ctx = ctx};
	struct pg *p = pg_of(st);

	pg_int(p, after_id);
	pg_int(p, limit ? (int64_t)limit : INT64_MAX);
	return pg_list(p, "SELECT id, row, reason, at_ms FROM incoming_dead WHERE id > $1::int8 ORDER BY id LIMIT $2::int8", 500, dead_show, &l,
		err);
}

struct pruning {
	int64_t before_ms, n;
};

/* Among so many in front of the table: no transaction is long. */
#define PRUNE(table, time) "WITH gone AS (DELETE FROM " table " WHERE id IN (SELECT id FROM (SELECT id, " time " AS t FROM " table \
	" ORDER BY id LIMIT $2::int8) o WHERE t < $1::int8) RETURNING 1) SELECT count(*) FROM gone"

static int events_prune(struct pg *p, void *ctx, struct fw_err *err)
{
	static const char *const SQL[] = {PRUNE("incoming", "stamp"), PRUNE("incoming_dead", "at_ms")};
	struct pruning *q = ctx;
	int rc;

	pg_begin(p);
	for (size_t i = 0; i < FW_N(SQL); i++) {
		pg_int(p, q->before_ms);
		pg_int(p, FW_EVENT_STEP);
		pg_send(p, PG_ONCE, SQL[i]);
	}
	rc = pg_commit_run(p, err);
	q->n = rc ? 0 : pg_get_int(p->res[1], 0, 0) + pg_get_int(p->res[2], 0, 0);
	return rc;
}

int pg_event_prune(struct fw_store *st, int64_t before_ms, int64_t *n, struct fw_err *err)
{
	struct pruning q = {.before_ms = before_ms};
	int rc = pg_txn(pg_of(st), events_prune, &q, err);

	*n = rc ? 0 : q.n;
	return rc;
}
