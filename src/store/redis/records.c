/* SPDX-License-Identifier: ISC */
/*
 * Records. A record's name is "kind key". A space sorts before all letters of a
 * kind, so names are in order of kind and key.
 *
 *	records       hash, name to "at_ms until_ms value"; until_ms is "-" for a record without end
 *	record_names  sorted set of the names, all with score 0
 *	record_ends   sorted set of the names of records that expire, by until_ms
 */
#include <assert.h>

#include "store/redis/redis.h"

#define LIST_STEP 200

static void record_name_add(
	struct rs *r, const char *before, struct fw_str kind, const char *between, struct fw_str key)
{
	struct fw_buf *b = rs_word(r);

	fw_buf_adds(b, before);
	fw_buf_addstr(b, kind);
	fw_buf_adds(b, between);
	fw_buf_addstr(b, key);
	rs_word_end(r);
}

int rs_record_put(
	struct store *st, const struct fw_record *record, bool if_absent, bool wake, bool *was, struct fw_err *err)
{
	struct rs *r = rs_of(st);
	int64_t step = 0;
	int rc = rs_slot_start(r, true, err);

	rc = rc || !store_is_order(record->kind) ? rc : store_orders_step(&step, err);
	if (rc)
		return rc;
	rs_call(r, RS_WRITE, "record_put");
	rs_expect(r, "i");
	record_name_add(r, "", record->kind, " ", record->key);
	rs_add(r, record->value);
	rs_addi(r, record->at_ms);
	if (record->until_ms == FW_NO_DATE)
		rs_adds(r, "-");
	else
		rs_addi(r, record->until_ms);
	rs_addi(r, if_absent);
	rs_addi(r, wake);
	rs_addi(r, step);
	rc = rs_run(r, "storing a record", err);
	*was = !rc && rs_int(r->reply[0]);
	return rc;
}

/* False: the row is not in this format. */
static bool record_row_unpack(struct fw_str name, struct fw_str text, struct fw_record *out)
{
	struct fw_str at, until;

	out->kind = fw_str_split(name, ' ', &out->key);
	at = fw_str_split(text, ' ', &text);
	until = fw_str_split(text, ' ', &out->value);
	out->until_ms = FW_NO_DATE;
	return out->key.len && out->value.p && fw_str_int(at, &out->at_ms) &&
		(fw_str_eq(until, FW_STR("-")) || fw_str_int(until, &out->until_ms));
}

static int record_show_one(
	struct rs *r, struct fw_str kind, struct fw_str key, fw_record_cb *cb, void *ctx, struct fw_err *err)
{
	struct fw_record out = {.kind = FW_STR_NONE};
	int rc;

	rs_command_key(r, "HGET", "records");
	rs_expect(r, "t?");
	record_name_add(r, "", kind, " ", key);
	rc = rs_run(r, "reading a record", err);
	if (rc)
		return rc;
	if (r->reply[0]->type != RS_TEXT || !record_row_unpack(FW_STR("k n"), r->reply[0]->text, &out))
		return fw_store_record_missing(r->target.name, kind, err);
	out.kind = kind;
	out.key = key;
	return RS_CALLBACK(r, cb(ctx, &out));
}

/* The next page of names. */
static int record_names_read(
	struct rs *r, const struct fw_record_query *q, struct fw_str after, size_t n, struct fw_err *err)
{
	assert(n);
	rs_command_key(r, "ZRANGEBYLEX", "record_names");
	rs_expect_n(r, "(t)<", n);
	if (after.len)
		record_name_add(r, "(", FW_STR(""), "", after);
	else
		rs_adds(r, "-");
	if (q->kind.p)
		record_name_add(r, "(", q->kind, "!", FW_STR("")); /* "!" follows the space in ASCII */
	else
		rs_adds(r, "+");
	rs_adds(r, "LIMIT");
	rs_addi(r, 0);
	rs_addi(r, (int64_t)n);
	return rs_run(r, "listing records", err);
}

/* Records that were removed meanwhile are skipped. */
static int records_show(struct rs *r, const struct rs_reply *names, fw_record_cb *cb, void *ctx, struct fw_err *err)
{
	int rc;

	rs_command_key(r, "HMGET", "records");
	rs_expect_n(r, "(t?)=", names->n);
	for (size_t i = 0; i < names->n; i++)
		rs_add(r, rs_elem(names, i)->text);
	rc = rs_run(r, "reading records", err);
	for (size_t i = 0; !rc && i < names->n; i++) {
		const struct rs_reply *text = rs_elem(r->reply[0], i);
		struct fw_record record = {.kind = FW_STR_NONE};

		if (text->type == RS_TEXT && record_row_unpack(rs_elem(names, i)->text, text->text, &record))
			rc = RS_CALLBACK(r, cb(ctx, &record));
	}
	return rc;
}

int rs_record_list(
	struct store *st, const struct store_record_query *query, fw_record_cb *cb, void *ctx, struct fw_err *err)
{
	struct rs *r = rs_of(st);
	const struct fw_record_query *q = &query->q;
	struct fw_buf after = FW_BUF_INIT(0);
	size_t left = q->limit ? q->limit : SIZE_MAX, got = LIST_STEP;
	int rc = rs_slot_start(r, false, err);

	if (query->key.p)
		return rc ? rc : record_show_one(r, q->kind, query->key, cb, ctx, err);
	if (q->kind.p || q->after_kind.len) {
		fw_buf_addstr(&after, q->kind.p ? q->kind : q->after_kind);
		fw_buf_addc(&after, ' ');
		fw_buf_addstr(&after, q->after_key);
	}
	while (!rc && got == LIST_STEP && left) {
		fw_arena_reset(&r->arena, RS_ARENA_KEEP);
		rc = after.rc ? rs_no_memory(r, err) :
				record_names_read(r, q, fw_buf_str(&after), FW_MIN(left, (size_t)LIST_STEP), err);
		got = rc ? 0 : r->reply[0]->n;
		if (got) {
			fw_buf_reset(&after);
			fw_buf_addstr(&after, rs_elem(r->reply[0], got - 1)->text);
			rc = records_show(r, r->reply[0], cb, ctx, err);
		}
		left -= got;
	}
	fw_buf_finish(&after);
	return rc;
}

int rs_record_remove(struct store *st, struct fw_str kind, struct fw_str key, struct fw_str value, struct fw_err *err)
{
	struct rs *r = rs_of(st);
	int64_t step = 0;
	int rc = rs_slot_start(r, true, err);

	rc = rc || !store_is_order(kind) ? rc : store_orders_step(&step, err);
	if (rc)
		return rc;
	rs_call(r, RS_TRIM, "record_remove");
	rs_expect(r, "i");
	record_name_add(r, "", kind, " ", key);
	rs_addi(r, !value.p);
	rs_add(r, value);
	rs_addi(r, step);
	rc = rs_run(r, "removing a record", err);
	if (!rc && !rs_int(r->reply[0]))
		return fw_store_record_missing(r->target.name, kind, err);
	return rc;
}
