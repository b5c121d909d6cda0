/* SPDX-License-Identifier: ISC */
/* The log of changes, a sorted set. Earlier versions of entries. */
#include <stdlib.h>

#include "store/redis/redis.h"

#define PRUNE_STEP 2000

int rs_head_read(struct rs *r, int64_t *id, struct fw_err *err)
{
	int64_t last;
	int rc;

	rs_command_key(r, "HGET", "meta");
	rs_adds(r, "entry_id");
	rs_expect(r, "i?");
	rs_command_key(r, "HKEYS", "reserved_ids");
	rs_expect(r, "(i)");
	rc = rs_run(r, "listing entries", err);
	last = rc ? 0 : rs_int(r->reply[0]);
	for (size_t i = 0; !rc && i < r->reply[1]->n; i++)
		last = FW_MIN(last, rs_int(rs_elem(r->reply[1], i)));
	*id = last;
	return rc;
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* "number entry feed kind revision at_ms"; false: malformed. */
static bool change_unpack(struct fw_str row, struct fw_change *c)
{
	int64_t n[6];

	for (size_t i = 0; i < FW_N(n); i++) {
		if (!fw_str_int(fw_str_split(row, ' ', &row), &n[i]))
			return false;
	}
	*c = (struct fw_change){.id = n[0],
		.entry_id = n[1],
		.feed_id = n[2],
		.kind = (enum fw_change_kind)n[3],
		.revision = (uint32_t)n[4],
		.at_ms = n[5]};
	return true;
}

static int changes_walk(
	struct rs *r, const struct store_change_query *q, fw_change_cb *cb, void *ctx, struct fw_err *err)
{
	struct rs_walk w = {.key = "changes", .next = q->after_id, .end = q->head_id + 1};
	size_t left = q->limit ? q->limit : SIZE_MAX;
	int rc = 0;

	while (!rc && !w.done && left) {
		struct rs_page_row *at;
		size_t n;

		fw_arena_reset(&r->arena, RS_ARENA_KEEP);
		rc = rs_walk_page(r, &w, q->feed_id ? RS_PAGE : FW_MIN(left, (size_t)RS_PAGE), &at, &n, err);
		for (size_t i = 0; !rc && left && i < n; i++) {
			struct fw_change c;

			if (!change_unpack(at[i].row, &c) || (q->feed_id && c.feed_id != q->feed_id))
				continue;
			left--;
			rc = RS_CALLBACK(r, cb(ctx, &c));
		}
	}
	return rc;
}

int rs_change_list(struct store *st, struct store_change_query *q, fw_change_cb *cb, void *ctx, struct fw_err *err)
{
	struct rs *r = rs_of(st);
	int rc = rs_slot_start(r, false, err);

	rc = rc ? rc : rs_head_read(r, &q->head_id, err);
	rc = rc || q->after_id >= q->head_id ? rc : changes_walk(r, q, cb, ctx, err);
	if (rc)
		return rc;
	rs_command_key(r, "HGET", "meta");
	rs_adds(r, "changes_pruned_id");
	rs_expect(r, "i?");
	rc = rs_run(r, "listing changes", err);
	q->pruned_id = rc ? 0 : rs_int(r->reply[0]);
	return rc;
}

FW_COMPARE(revision_compare, struct fw_entry_row, revision)

/* Pairs of a revision and "cut row". */
static int revisions_show(
	struct rs *r, int64_t entry_id, const struct rs_reply *all, fw_revision_cb *cb, void *ctx, struct fw_err *err)
{
	struct fw_entry_row *e = fw_arena_calloc(&r->arena, all->n + 1, sizeof(*e));
	size_t n = 0;
	int rc = e ? 0 : rs_no_memory(r, err);

	for (size_t i = 0; !rc && i + 2 <= all->n; i += 2) {
		struct fw_str row = rs_elem(all, i + 1)->text;

		if (row.len < 2 || !rs_entry_unpack(fw_str_sub(row, 2, row.len), &e[n]))
			continue;
		e[n].id = row.p[0] == '1' ? -entry_id : entry_id; /* the sign carries cut through the sort */
		e[n].feed_id = 0;
		e[n++].hash = 0;
	}
	if (n)
		qsort(e, n, sizeof(*e), revision_compare);
	for (size_t i = 0; !rc && i < n; i++) {
		bool cut = e[i].id < 0;

		e[i].id = entry_id;
		memset(e[i].key, 0, sizeof(e[i].key));
		rc = RS_CALLBACK(r, cb(ctx, &e[i], cut));
	}
	return rc;
}

int rs_revision_list(struct store *st, int64_t entry_id, fw_revision_cb *cb, void *ctx, struct fw_err *err)
{
	struct rs *r = rs_of(st);
	int rc = rs_slot_start(r, false, err);

	if (rc)
		return rc;
	rs_command(r, "HGETALL");
	rs_expect(r, "(tt)");
	rs_key(r, "revisions:%lld", (long long)entry_id);
	rc = rs_run(r, "listing revisions", err);
	return rc ? rc : revisions_show(r, entry_id, r->reply[0], cb, ctx, err);
}

/* ---- retention ------------------------------------------------------------------------------- */

int rs_changes_prune(struct rs *r, struct fw_prune *p, struct fw_err *err)
{
	int rc;

	rs_call(r, RS_TRIM, "prune_changes");
	rs_expect(r, "i");
	rs_addi(r, p->changes_before_ms);
	rs_addi(r, PRUNE_STEP);
	rc = rs_run(r, "pruning", err);
	if (rc)
		return rc;
	p->change_n += rs_int(r->reply[0]);
	p->more |= rs_int(r->reply[0]) >= PRUNE_STEP / 2;
	return 0;
}
