/* SPDX-License-Identifier: ISC */
/*
 * Pushed events and dead letters. Two hashes hold the rows, "incoming" and
 * "dead_letters", by id in 19 digits; two sorted sets order the ids by their time. Redis orders
 * members of equal score by their bytes, so ids of the same millisecond are in order of id.
 *
 *	incoming       "stamp property_section property_id remote_ip property"; "-" for no address
 *	dead_letters  "at_ms row", a line end, and the reason
 */
#include <assert.h>

#include "base/ids.h"
#include "store/redis/redis.h"

#define STEP 1000

static void event_id_add(struct rs *r, int64_t id)
{
	fw_buf_addf(rs_word(r), "%019lld", (long long)id);
	rs_word_end(r);
}

/* The reply: which of the events, then of the dead letters, have the id of another one. */
static int event_clashes_read(
	struct rs *r, struct fw_event *event, size_t n, struct fw_dead_letter *dead, size_t dead_n, struct fw_err *err)
{
	const struct rs_reply *got = r->reply[0];

	if (!got->n)
		return 0;
	for (size_t i = 0; i < n; i++)
		event[i].clashes = false;
	for (size_t i = 0; i < dead_n; i++)
		dead[i].clashes = false;
	for (size_t i = 0; i < got->n; i++) {
		size_t nth = (size_t)rs_int(rs_elem(got, i));

		if (nth >= n + dead_n)
			return rs_malformed(r, "storing events", err);
		if (nth < n)
			event[nth].clashes = true;
		else
			dead[nth - n].clashes = true;
	}
	return store_event_clash(r->target.name, got->n, err);
}

int rs_event_put(struct store *st, struct fw_event *event, size_t n, struct fw_dead_letter *dead, size_t dead_n,
	struct fw_err *err)
{
	struct rs *r = rs_of(st);
	int rc = rs_slot_start(r, true, err);

	if (rc)
		return rc;
	rs_call(r, RS_WRITE, "event_put");
	rs_expect_n(r, "(i)<", n + dead_n);
	rs_addi(r, (int64_t)n);
	for (const struct fw_event *e = event; e < event + n; e++) {
		struct fw_buf *b;

		event_id_add(r, e->id);
		rs_addi(r, fw_ids_ms(e->id));
		b = rs_word(r);
		fw_buf_addf(b, "%lld %lld %lld ", (long long)e->stamp_ms, (long long)e->section, (long long)e->item);
		fw_buf_addstr(b, e->remote_ip.len ? e->remote_ip : FW_STR("-"));
		fw_buf_addc(b, ' ');
		fw_buf_addstr(b, e->property);
		rs_word_end(r);
	}
	rs_addi(r, (int64_t)dead_n);
	for (const struct fw_dead_letter *d = dead; d < dead + dead_n; d++) {
		struct fw_buf *b;

		event_id_add(r, d->id);
		rs_addi(r, fw_ids_ms(d->id));
		b = rs_word(r);
		fw_buf_addf(b, "%lld ", (long long)d->at_ms);
		fw_buf_addstr(b, d->row);
		fw_buf_addc(b, '\n');
		fw_buf_addstr(b, d->reason);
		rs_word_end(r);
	}
	rc = rs_run(r, "storing events", err);
	return rc ? rc : event_clashes_read(r, event, n, dead, dead_n, err);
}

int rs_event_ids(struct store *st, struct fw_id_range *range, struct fw_err *err)
{
	struct rs *r = rs_of(st);
	int rc = rs_slot_start(r, true, err);
	int64_t first;

	if (rc)
		return rc;
	rs_call(r, RS_WRITE, "event_ids");
	rs_expect(r, "[ii]");
	rs_addi(r, range->first);
	rs_addi(r, FW_IDS_EPOCH_MS);
	rs_addi(r, FW_IDS_RANGE);
	rs_addi(r, range->clash_n);
	rc = rs_run(r, "reserving ids", err);
	if (rc)
		return rc;
	first = rs_int(rs_elem(r->reply[0], 1));
	if (first > FW_IDS_SERIAL_MAX - FW_IDS_RANGE)
		return store_event_ids_over(r->target.name, err);
	*range = (struct fw_id_range){
		.number = rs_int(rs_elem(r->reply[0], 0)), .first = first, .last = first + FW_IDS_RANGE - 1};
	return 0;
}

int rs_event_remove(struct store *st, const int64_t *dead_id, size_t n, struct fw_err *err)
{
	struct rs *r = rs_of(st);
	int rc = rs_slot_start(r, true, err);

	if (rc)
		return rc;
	rs_call(r, RS_TRIM, "event_remove");
	rs_addi(r, (int64_t)n);
	for (size_t i = 0; i < n; i++)
		event_id_add(r, dead_id[i]);
	return rs_run(r, "removing events", err);
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool int_split(struct fw_str *rest, int64_t *out)
{
	return fw_str_int(fw_str_split(*rest, ' ', rest), out);
}

static bool event_row_unpack(struct fw_str row, struct fw_event *e)
{
	if (!int_split(&row, &e->stamp_ms) || !int_split(&row, &e->section) || !int_split(&row, &e->item))
		return false;
	e->remote_ip = fw_str_split(row, ' ', &e->property);
	if (fw_str_eq(e->remote_ip, FW_STR("-")))
		e->remote_ip.len = 0;
	return e->property.p != NULL;
}

static bool dead_letter_unpack(struct fw_str row, struct fw_dead_letter *d)
{
	if (!int_split(&row, &d->at_ms))
		return false;
	d->row = fw_str_split(row, '\n', &d->reason);
	return d->reason.p != NULL;
}

/* Rows that are not in this format are skipped. */
static int event_row_show(struct rs *r, const struct store_event_query *q, int64_t id, struct fw_str row)
{
	struct fw_event e = {.id = id};
	struct fw_dead_letter d = {.id = id};

	if (q->event)
		return row.p && event_row_unpack(row, &e) ? RS_CALLBACK(r, q->event(q->ctx, &e)) : 0;
	return row.p && dead_letter_unpack(row, &d) ? RS_CALLBACK(r, q->dead(q->ctx, &d)) : 0;
}

static int64_t event_id_parse(struct fw_str text)
{
	int64_t id = 0;

	while (text.len > 1 && *text.p == '0')
		text = fw_str_sub(text, 1, text.len);
	return fw_str_int(text, &id) ? id : 0;
}

/* Ids from time ms on, without the first `seen` of that time. */
static int event_ids_read(struct rs *r, const char *ids, int64_t ms, int64_t seen, struct fw_err *err)
{
	rs_command_key(r, "ZRANGEBYSCORE", ids);
	rs_expect_n(r, "(t)<", STEP);
	rs_addi(r, ms);
	rs_adds(r, "+inf");
	rs_adds(r, "LIMIT");
	rs_addi(r, seen);
	rs_addi(r, STEP);
	return rs_run(r, "listing events", err);
}

int rs_event_list(struct store *st, const struct store_event_query *q, struct fw_err *err)
{
	struct rs *r = rs_of(st);
	const char *rows = q->event ? "incoming" : "dead_letters";
	int64_t ms = fw_ids_ms(FW_MAX(q->after_id, INT64_C(0))), seen = 0;
	size_t shown = 0, got = STEP;
	int rc = rs_slot_start(r, false, err);

	assert(!q->event != !q->dead);
	while (!rc && got == STEP && (!q->limit || shown < q->limit)) {
		const struct rs_reply *ids;

		fw_arena_reset(&r->arena, RS_ARENA_KEEP);
		rc = event_ids_read(r, q->event ? "incoming_ids" : "dead_letters_ids", ms, seen, err);
		ids = rc ? NULL : r->reply[0];
		got = rc ? 0 : ids->n;
		if (!got)
			break;
		rs_command_key(r, "HMGET", rows);
		rs_expect_n(r, "(t?)=", got);
		for (size_t i = 0; i < got; i++)
			rs_add(r, rs_elem(ids, i)->text);
		rc = rs_run(r, "listing events", err);
		for (size_t i = 0; !rc && i < got && (!q->limit || shown < q->limit); i++) {
			int64_t id = event_id_parse(rs_elem(ids, i)->text);

			seen = fw_ids_ms(id) == ms ? seen + 1 : 1;
			ms = fw_ids_ms(id);
			if (id <= q->after_id)
				continue;
			shown++;
			rc = event_row_show(r, q, id, rs_elem(r->reply[0], i)->text);
		}
	}
	return rc;
}
