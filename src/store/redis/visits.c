/* SPDX-License-Identifier: ISC */
/*
 * Visits: one row each. The visits of a feed form a list: each row has the id of the one before it.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "store/redis/redis.h"

#define HISTORY 500 /* visits of a feed per read */
#define BATCH 500
#define SLACK_MS INT64_C(3600000)
#define AT "^%d+ %d+ %d+ %d+ %d+ %S+ (%S+)" /* pattern of at_ms in the first row of a chunk */

struct redis_visit_list {
	struct rs *r;
	const struct fw_visit_query *q;
	fw_visit_cb *cb;
	void *ctx;
	size_t shown;
};

static bool visit_list_is_full(const struct redis_visit_list *l)
{
	return l->q->limit && l->shown >= l->q->limit;
}

static int visit_show(struct redis_visit_list *l, struct fw_visit *v, struct fw_str url)
{
	const struct fw_visit_query *q = l->q;

	if (v->at_ms < q->since_ms || (q->run_id && v->run_id != q->run_id) || visit_list_is_full(l))
		return 0;
	l->shown++;
	v->feed_url = url;
	return RS_CALLBACK(l->r, l->cb(l->ctx, v));
}

/* ---- of one feed ----------------------------------------------------------------------------- */

static int visit_newest_first(const void *a, const void *b)
{
	const struct fw_visit *x = a, *y = b;

	if (x->at_ms != y->at_ms)
		return x->at_ms > y->at_ms ? -1 : 1;
	return x->id > y->id ? -1 : x->id < y->id;
}

/*
 * The next part of the list, from *id backwards. *id becomes the id to continue from; 0: the end.
 */
static int history_read(struct rs *r, int64_t *id, struct fw_buf *out, struct fw_err *err)
{
	int rc;

	assert(*id); /* it ends the caller's loop */
	rs_call(r, RS_READ, "history");
	rs_expect_n(r, "(t)<", HISTORY);
	rs_addi(r, *id);
	rs_addi(r, HISTORY);
	rc = rs_run(r, "listing visits", err);
	*id = 0;
	for (size_t i = 0; !rc && i < r->reply[0]->n; i++) {
		struct fw_str rest = rs_elem(r->reply[0], i)->text;
		struct fw_visit v;

		if (!rs_visit_unpack(rest, &v))
			continue;
		fw_buf_add(out, &v, sizeof(v));
		(void)fw_str_split(rest, ' ', &rest);
		(void)fw_str_split(rest, ' ', &rest);
		if (i + 1 < HISTORY || !fw_str_int(fw_str_split(rest, ' ', &rest), id))
			*id = 0;
	}
	return rc ? rc : out->rc ? rs_no_memory(r, err) : 0;
}

static int visits_of_feed(struct redis_visit_list *l, struct fw_err *err)
{
	struct fw_buf all = FW_BUF_INIT(0);
	struct fw_feed f = {.id = l->q->feed_id};
	struct rs_schedule_row s = {0};
	struct fw_visit *v;
	size_t n;
	int rc;

	rc = rs_feeds_read(l->r, &f, &s, 1, err);
	while (!rc && s.last_visit_id)
		rc = history_read(l->r, &s.last_visit_id, &all, err);
	v = (struct fw_visit *)(void *)all.p;
	n = all.len / sizeof(*v);
	if (!rc && n)
		qsort(v, n, sizeof(*v), visit_newest_first);
	for (size_t i = 0; !rc && i < n; i++)
		rc = visit_show(l, &v[i], f.url);
	fw_buf_finish(&all);
	return rc;
}

/* ---- of all ---------------------------------------------------------------------------------- */

static int visit_batch_show(struct redis_visit_list *l, const struct rs_page_row *at, size_t n, struct fw_err *err)
{
	struct fw_visit *v = fw_arena_calloc(&l->r->arena, n + 1, sizeof(*v));
	struct fw_feed *f = fw_arena_calloc(&l->r->arena, n + 1, sizeof(*f));
	int rc;

	if (!v || !f)
		return rs_no_memory(l->r, err);
	for (size_t i = 0; i < n; i++)
		f[i].id = rs_visit_unpack(at[i].row, &v[i]) ? v[i].feed_id : 0;
	rc = rs_feeds_read(l->r, f, NULL, n, err);
	for (size_t i = 0; !rc && i < n; i++)
		rc = f[i].url.p ? visit_show(l, &v[i], f[i].url) : 0;
	return rc;
}

int rs_visit_list(struct store *st, const struct fw_visit_query *q, fw_visit_cb *cb, void *ctx, struct fw_err *err)
{
	struct redis_visit_list l = {.r = rs_of(st), .q = q, .cb = cb, .ctx = ctx};
	struct rs_walk w = {.down = !q->oldest_first};
	int64_t first = 0;
	struct rs_page_row *at;
	size_t n;
	int rc = rs_slot_start(l.r, false, err);

	if (q->feed_id && !q->oldest_first)
		return rc ? rc : visits_of_feed(&l, err);
	if (!rc && (q->since_ms || q->run_id)) /* a run's id is the time of its start */
		rc = rs_id_before(l.r, "visits", AT, FW_MAX(q->since_ms, q->run_id) - SLACK_MS, &first, err);
	w.next = w.down ? INT64_MAX : FW_MAX(q->after_id, first);
	w.end = w.down ? first : INT64_MAX;
	while (!rc && !w.done && !visit_list_is_full(&l)) {
		fw_arena_reset(&l.r->arena, RS_ARENA_KEEP);
		rc = rs_walk_page(
			l.r, &w, q->limit && !q->run_id ? FW_MIN(q->limit, (size_t)BATCH) : BATCH, &at, &n, err);
		rc = rc ? rc : visit_batch_show(&l, at, n, err);
	}
	return rc;
}
