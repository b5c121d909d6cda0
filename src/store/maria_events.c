/* SPDX-License-Identifier: ISC */
/* Pushed events: tables incoming and incoming_dead. */
#include "store/maria.h"

#define ROW_BYTES 1000 /* at most, in a bulk */
#define BULK_MIN 16   /* rows: fewer go as text */
#define BULK_MAX 4096

struct events {
	const struct fw_event *at;
	size_t n;
};

/* Not IGNORE: what does not fit has to be refused, not made fit. */
#define KNOWN "ON DUPLICATE KEY UPDATE incoming.id = incoming.id"

static int bulk_in(struct maria *m, const struct fw_event *e, size_t n, struct fw_err *err)
{
	struct mr_bulk b;
	int rc = mr_bulk_init(m, &b, 6, (unsigned)n, err);

	for (size_t i = 0; i < n && !rc; i++) {
		mr_bulk_int(&b, e[i].id);
		mr_bulk_text(&b, e[i].property);
		mr_bulk_int(&b, e[i].section);
		mr_bulk_int(&b, e[i].item);
		mr_bulk_text(&b, e[i].remote_ip);
		mr_bulk_int(&b, e[i].stamp_ms);
	}
	rc = rc ? rc : mr_bulk_run(m, &b, &m->events_in, FW_STR("INSERT INTO incoming (id, property, property_section, property_id, remote_ip,"
		" stamp) VALUES (?,?,?,?,?,?) " KNOWN), NULL, err);
	mr_bulk_finish(&b);
	return rc;
}

/* By array binding where the server knows it. */
static int events_bulk(struct maria *m, void *arg, struct fw_err *err)
{
	const struct events *q = arg;
	size_t max = FW_MAX(FW_MIN((size_t)BULK_MAX, m->packet_max / 2 / ROW_BYTES), (size_t)1);
	int rc = 0;

	for (size_t i = 0; i < q->n && !rc; i += max)
		rc = bulk_in(m, q->at + i, FW_MIN(max, q->n - i), err);
	return rc;
}

static int events_in(struct maria *m, void *arg, struct fw_err *err)
{
	const struct events *q = arg;
	struct mr_rows rows = {"INSERT INTO incoming (id, property, property_section, property_id, remote_ip, stamp) VALUES ",
		" " KNOWN};

	for (size_t i = 0; i < q->n; i++) {
		const struct fw_event *e = &q->at[i];

		mr_rows_add(m, &rows, "isiisi", e->id, e->property, e->section, e->item, e->remote_ip, e->stamp_ms);
	}
	mr_rows_end(m, &rows);
	return mr_flush(m, err);
}

int mr_event_put(struct fw_store *st, const struct fw_event *event, size_t n, struct fw_err *err)
{
	struct events q = {event, n};
	struct maria *m = mr_of(st);

	return mr_transact(m, m->arrays && n >= BULK_MIN ? events_bulk : events_in, &q, err);
}

static int dead_in(struct maria *m, void *arg, struct fw_err *err)
{
	const struct fw_dead_event *e = arg;

	mr_put(m, "INSERT INTO incoming_dead (id, `row`, reason, at_ms) VALUES (?, ?, ?, ?) ON DUPLICATE KEY UPDATE"
		" `row` = VALUES(`row`), reason = VALUES(reason), at_ms = VALUES(at_ms)", "issi", e->id, e->row, e->reason, e->at_ms);
	return mr_flush(m, err);
}

int mr_event_bury(struct fw_store *st, const struct fw_dead_event *event, struct fw_err *err)
{
	struct fw_dead_event e = *event;

	return mr_transact(mr_of(st), dead_in, &e, err);
}

struct dead {
	const struct fw_dead_event *at;
	size_t n;
};

static int dead_out(struct maria *m, void *arg, struct fw_err *err)
{
	const struct dead *q = arg;

	for (size_t i = 0; i < q->n; i++)
		mr_put(m, "DELETE FROM incoming_dead WHERE id = ?", "i", q->at[i].id);
	return mr_flush(m, err);
}

int mr_event_unbury(struct fw_store *st, const struct fw_dead_event *event, size_t n, struct fw_err *err)
{
	struct dead q = {event, n};

	return mr_transact(mr_of(st), dead_out, &q, err);
}

#define ALL(limit) MR_INT((limit) ? (int64_t)(limit) : INT64_MAX)

int mr_event_list(struct fw_store *st, int64_t after_id, size_t limit, fw_event_cb *cb, void *ctx, struct fw_err *err)
{
	struct maria *m = mr_of(st);
	struct mr_res r;
	int rc;

	mr_put(m, "SELECT id, property, property_section, property_id, remote_ip, stamp FROM incoming WHERE id > ? ORDER BY id LIMIT ?", "ii",
		after_id, ALL(limit));
	rc = mr_stream(m, &r, err);
	while (!rc && mr_row(&r)) {
		struct fw_event e = {.id = mr_int(&r, 0), .property = mr_str(&r, 1), .section = mr_int(&r, 2), .item = mr_int(&r, 3),
			.remote_ip = mr_str(&r, 4), .stamp_ms = mr_int(&r, 5)};

		rc = cb(ctx, &e);
	}
	mr_done(&r);
	return rc;
}

int mr_event_dead_list(struct fw_store *st, int64_t after_id, size_t limit, fw_dead_event_cb *cb, void *ctx, struct fw_err *err)
{
	struct maria *m = mr_of(st);
	struct mr_res r;
	int rc;

	mr_put(m, "SELECT id, `row`, reason, at_ms FROM incoming_dead WHERE id > ? ORDER BY id LIMIT ?", "ii", after_id, ALL(limit));
	rc = mr_stream(m, &r, err);
	while (!rc && mr_row(&r)) {
		struct fw_dead_event e = {.id = mr_int(&r, 0), .row = mr_str(&r, 1), .reason = mr_str(&r, 2), .at_ms = mr_int(&r, 3)};

		rc = cb(ctx, &e);
	}
	mr_done(&r);
	return rc;
}

struct pruning {
	int64_t before_ms, n;
};

/* Among so many in front of a table: no transaction is long. */
static int prune(struct maria *m, const char *look, const char *take, struct pruning *q, struct fw_err *err)
{
	int64_t upto, n = 0;
	int rc = mr_number(m, 0, &upto, err, look, "ii", MR_INT(FW_EVENT_STEP), q->before_ms);

	rc = rc || !upto ? rc : mr_number(m, 0, &n, err, take, "ii", upto, q->before_ms);
	q->n += n;
	return rc;
}

static int events_prune(struct maria *m, void *arg, struct fw_err *err)
{
	struct pruning *q = arg;
	int rc;

	q->n = 0;
	rc = prune(m, "SELECT max(id) FROM (SELECT id, stamp FROM incoming ORDER BY id LIMIT ?) o WHERE stamp < ?",
		"DELETE FROM incoming WHERE id <= ? AND stamp < ?; SELECT row_count()", q, err);
	return rc ? rc : prune(m, "SELECT max(id) FROM (SELECT id, at_ms FROM incoming_dead ORDER BY id LIMIT ?) o WHERE at_ms < ?",
		"DELETE FROM incoming_dead WHERE id <= ? AND at_ms < ?; SELECT row_count()", q, err);
}

int mr_event_prune(struct fw_store *st, int64_t before_ms, int64_t *n, struct fw_err *err)
{
	struct pruning q = {.before_ms = before_ms};
	int rc = mr_transact(mr_of(st), events_prune, &q, err);

	*n = rc ? 0 : q.n;
	return rc;
}
