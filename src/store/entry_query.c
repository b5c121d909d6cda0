/* SPDX-License-Identifier: ISC */
/*
 * The front, part 4: lists of entries. A query becomes parts that must all match; what limits the
 * feed or the time goes to the driver as numbers, because every engine has an index for these.
 */
#include "base/clock.h"
#include "base/err.h"
#include "query/query.h"
#include "store/driver.h"
#include "base/banned.h"

struct entry_parts {
	struct fw_arena a;
	struct store_entry_query q;
	const struct query_node **part;
	size_t cap;
};

static bool entry_part_add(struct entry_parts *p, const struct query_node *node)
{
	if (p->q.part_n == p->cap) {
		size_t cap = p->cap ? 2 * p->cap : 8;
		const struct query_node **part = fw_arena_grow(
			&p->a, p->part, p->cap * sizeof(*part), cap * sizeof(*part));

		if (!part)
			return false;
		p->part = part;
		p->cap = cap;
	}
	p->part[p->q.part_n++] = node;
	return true;
}

static int64_t time_min(int64_t a_ms, int64_t b_ms)
{
	return !a_ms || b_ms < a_ms ? b_ms : a_ms;
}

/* False: out of memory. */
static bool entry_part_take(struct entry_parts *p, const struct query_node *node)
{
	struct fw_entry_query *q = &p->q.q;

	switch (node->op) {
	case QUERY_AND:
		for (const struct query_node *c = node->child; c; c = c->next) {
			if (!entry_part_take(p, c))
				return false;
		}
		return true;
	case QUERY_SINCE:
		q->since_ms = FW_MAX(q->since_ms, node->at_ms);
		return true;
	case QUERY_UNTIL:
		q->until_ms = time_min(q->until_ms, node->at_ms);
		return node->at_ms || entry_part_add(p, node); /* 0 would be any time */
	case QUERY_FEED:
		if (!node->number || q->feed_id)
			return entry_part_add(p, node);
		q->feed_id = node->number;
		return true;
	default:
		return entry_part_add(p, node);
	}
}

static int entry_query_prepare(struct entry_parts *p, const struct fw_entry_query *q, struct fw_err *err)
{
	struct query_node *tree = NULL, *folder;
	int rc;

	p->q = (struct store_entry_query){.q = *q, .now_ms = fw_now_ms()};
	p->q.q.search = p->q.q.folder = FW_STR_NONE;
	p->q.q.by_relevance = p->q.q.snippet = false;
	rc = q->search.p ? query_parse(&p->a, q->search, p->q.now_ms, &tree, err) : 0;
	if (rc)
		return rc;
	if (store_folder_trim(q->folder).len) {
		folder = fw_arena_zalloc(&p->a, sizeof(*folder));
		if (!folder)
			return fw_no_memory(err);
		*folder = (struct query_node){.op = QUERY_FOLDER, .text = store_folder_trim(q->folder)};
		if (!entry_part_add(p, folder))
			return fw_no_memory(err);
	}
	if (tree && !entry_part_take(p, tree))
		return fw_no_memory(err);
	p->q.part = p->part;
	return 0;
}

static int entry_query_check(const struct store *to, const struct fw_entry_query *q, struct fw_err *err)
{
	if (q->oldest_first && q->behind_id)
		return store_invalid(
			to, "entry_list: behind_id needs newest first; with oldest_first use after_id", err);
	return 0;
}

int fw_store_entry_list(
	struct fw_store *st, const struct fw_entry_query *q, fw_entry_cb *cb, void *ctx, struct fw_err *err)
{
	struct store *to = store_of(st);
	struct entry_parts p = {.cap = 0};
	int rc = entry_query_check(to, q, err);

	if (q->unindexed_n)
		*q->unindexed_n = 0;
	if (rc)
		return rc;
	fw_arena_init(&p.a, 0);
	rc = entry_query_prepare(&p, q, err);
	rc = rc ? rc : to->driver->entry_list(to, &p.q, cb, ctx, STORE_ERR(err));
	fw_arena_finish(&p.a);
	return rc;
}
