/* SPDX-License-Identifier: ISC */
/*
 * The front, part 4: lists of entries. A query becomes parts that must all match; what limits the
 * feed or the time goes to the driver as numbers, because every engine has an index for these.
 *
 * Rank and snippets are made here, so they are the same on all stores. "Best first" reads the
 * newest matches twice: first their texts one by one, of which only the score is kept, then the
 * best again, by id. So memory is bounded, whatever the texts' sizes.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "parse/html/text.h"
#include "query/rank.h"
#include "query/snippet.h"
#include "query/words.h"
#include "store/driver.h"

struct query_parts {
	struct fw_arena a;
	struct store_entry_query q;
	const struct query_node **part;
	size_t cap;
	const struct query_node *tree; /* the search; NULL: none */
};

static bool entry_part_add(struct query_parts *p, const struct query_node *node)
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
static bool entry_part_take(struct query_parts *p, const struct query_node *node)
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

/* Add a part that the query's member says. */
static int entry_part_make(struct query_parts *p, const struct query_node *node, struct fw_err *err)
{
	struct query_node *copy = fw_arena_alloc(&p->a, sizeof(*copy));

	if (copy)
		*copy = *node;
	return copy && entry_part_add(p, copy) ? 0 : fw_no_memory(err);
}

static int entry_feeds_take(struct query_parts *p, const struct fw_entry_query *q, struct fw_err *err)
{
	struct query_node *feed;

	if (!q->feed_n)
		return 0;
	if (q->feed_n == 1 && !q->feed_id) {
		p->q.q.feed_id = q->feed_ids[0];
		return 0;
	}
	feed = fw_arena_calloc(&p->a, q->feed_n, sizeof(*feed));
	if (!feed)
		return fw_no_memory(err);
	for (size_t i = 0; i < q->feed_n; i++)
		feed[i] = (struct query_node){
			.op = QUERY_FEED, .number = q->feed_ids[i], .next = i + 1 < q->feed_n ? &feed[i + 1] : NULL};
	return entry_part_make(p, &(struct query_node){.op = QUERY_OR, .child = feed}, err);
}

static int entry_query_prepare(
	const struct fw_store *st, struct query_parts *p, const struct fw_entry_query *q, struct fw_err *err)
{
	struct fw_str folder = fw_path_trim(q->folder);
	struct query_node *tree = NULL;
	int rc;

	p->q = (struct store_entry_query){.q = *q, .now_ms = fw_store_now_ms(st)};
	p->q.q.search = p->q.q.folder = FW_STR_NONE;
	p->q.q.by_relevance = p->q.q.snippet = false;
	p->q.q.feed_n = 0;
	rc = q->search.p ? query_parse(&p->a, q->search, p->q.now_ms, &tree, err) : 0;
	rc = rc ? rc : entry_feeds_take(p, q, err);
	if (!rc && folder.len)
		rc = entry_part_make(p, &(struct query_node){.op = QUERY_FOLDER, .text = folder}, err);
	if (!rc && tree && !entry_part_take(p, tree))
		rc = fw_no_memory(err);
	p->q.part = p->part;
	p->tree = tree;
	return rc;
}

/* ---- rows as the caller sees them ------------------------------------------------------------ */

#define TEXT_KEEP ((size_t)1 << 16)

struct entry_show {
	const struct fw_entry_query *q;
	const struct query_node *tree;
	struct fw_arena a; /* of one row */
	struct fw_buf snippet;
	fw_entry_cb *cb;
	void *ctx;
	bool failed; /* out of memory */
};

static bool entry_snippet_make(struct entry_show *s, const struct fw_entry_row *e)
{
	struct snippet_texts texts = {
		.title = e->title, .summary = e->summary, .content = fw_str_sub(e->content, 0, QUERY_TEXT_MAX)};

	fw_arena_reset(&s->a, TEXT_KEEP);
	fw_buf_reset(&s->snippet);
	if (e->content_type != FW_TEXT_PLAIN)
		texts.content = fw_html_text(&s->a, texts.content);
	return !s->a.failed && !query_snippet(&s->snippet, s->tree, &texts);
}

static int entry_show_row(void *ctx, const struct fw_entry_row *e)
{
	struct entry_show *s = ctx;
	struct fw_entry_row row = *e;

	s->failed = !entry_snippet_make(s, e);
	if (s->failed)
		return FW_ENOMEM;
	row.snippet = fw_buf_str(&s->snippet);
	if (!s->q->content)
		row.content = row.content_base = FW_STR_NONE;
	return s->cb(s->ctx, &row);
}

/* The driver's list, with snippets if they are wanted. */
static int entry_list_show(
	struct store *to, const struct store_entry_query *q, struct entry_show *s, struct fw_err *err)
{
	struct store_entry_query with = *q;
	int rc;

	if (!s->q->snippet)
		return to->driver->entry_list(to, q, s->cb, s->ctx, STORE_ERR(err));
	with.q.content = true;
	rc = to->driver->entry_list(to, &with, entry_show_row, s, STORE_ERR(err));
	return s->failed ? fw_no_memory(err) : rc;
}

/* ---- best first ------------------------------------------------------------------------------ */

struct entry_score {
	int64_t id, score;
};

struct entry_ranking {
	const struct query_node *tree;
	struct query_scratch *scratch;
	size_t n;
	struct entry_score at[FW_RANKED_MAX];
};

static int entry_rank_row(void *ctx, const struct fw_entry_row *e)
{
	struct entry_ranking *r = ctx;
	const struct query_subject subject = {.entry = e, .feed_id = e->feed_id};

	query_scratch_set(r->scratch, &subject);
	r->at[r->n++] = (struct entry_score){e->id, query_score(r->tree, r->scratch, NULL)};
	return query_scratch_failed(r->scratch) ? FW_ENOMEM : 0;
}

static int entry_score_compare(const void *a, const void *b)
{
	const struct entry_score *x = a, *y = b;

	if (x->score != y->score)
		return x->score > y->score ? -1 : 1;
	return x->id > y->id ? -1 : x->id < y->id;
}

/* An entry that is gone since it was ranked is left out; one that changed is shown as it is. */
static int entry_ranking_show(struct store *to, const struct entry_ranking *r, struct entry_show *s, struct fw_err *err)
{
	size_t skip = FW_MIN(s->q->skip_n, r->n), n = s->q->limit ? FW_MIN(s->q->limit, r->n - skip) : r->n - skip;
	int rc = 0;

	for (size_t i = skip; !rc && i < skip + n; i++) {
		struct store_entry_query one = {.q = {.after_id = r->at[i].id - 1,
							.before_id = r->at[i].id + 1,
							.oldest_first = true,
							.limit = 1,
							.content = s->q->content,
							.key = s->q->key}};

		rc = entry_list_show(to, &one, s, err);
	}
	return rc;
}

static int entry_list_ranked(struct store *to, const struct query_parts *p, struct entry_show *s, struct fw_err *err)
{
	struct store_entry_query newest = p->q;
	struct entry_ranking *r = calloc(1, sizeof(*r));
	int rc;

	if (r)
		r->scratch = query_scratch_create();
	if (!r || !r->scratch) {
		rc = fw_no_memory(err);
		goto out;
	}
	r->tree = p->tree;
	newest.q.limit = FW_RANKED_MAX;
	newest.q.content = true;
	newest.q.key = false;
	rc = to->driver->entry_list(to, &newest, entry_rank_row, r, STORE_ERR(err));
	if (query_scratch_failed(r->scratch))
		rc = fw_no_memory(err);
	if (rc)
		goto out;
	qsort(r->at, r->n, sizeof(r->at[0]), entry_score_compare);
	rc = entry_ranking_show(to, r, s, err);
out:
	if (r)
		query_scratch_destroy(r->scratch);
	free(r);
	return rc;
}

/* ---- the list -------------------------------------------------------------------------------- */

static int entry_query_check(const struct store *to, const struct fw_entry_query *q, struct fw_err *err)
{
	if (q->oldest_first && q->behind_id)
		return store_invalid(
			to, "entry_list: behind_id needs newest first; with oldest_first use after_id", err);
	if (!q->by_relevance)
		return 0;
	if (!q->search.p)
		return store_invalid(to, "entry_list: by_relevance needs a search", err);
	if (q->oldest_first || q->after_id || q->before_id || q->behind_id)
		return store_invalid(to,
			"entry_list: by_relevance has no cursor: leave out oldest_first, after_id, before_id and "
			"behind_id, and raise the limit for more",
			err);
	return 0;
}

int fw_store_entry_list(
	struct fw_store *st, const struct fw_entry_query *q, fw_entry_cb *cb, void *ctx, struct fw_err *err)
{
	struct store *to = store_of(st);
	struct query_parts p = {.cap = 0};
	struct entry_show s = {.q = q, .cb = cb, .ctx = ctx, .snippet = FW_BUF_INIT(0)};
	int rc = entry_query_check(to, q, err);

	if (q->unindexed_n)
		*q->unindexed_n = 0;
	if (rc)
		return rc;
	fw_arena_init(&p.a, 0);
	fw_arena_init(&s.a, 0);
	rc = entry_query_prepare(st, &p, q, err);
	s.tree = p.tree;
	if (!rc)
		rc = q->by_relevance ? entry_list_ranked(to, &p, &s, err) : entry_list_show(to, &p.q, &s, err);
	fw_buf_finish(&s.snippet);
	fw_arena_finish(&s.a);
	fw_arena_finish(&p.a);
	return rc;
}

/* ---- counts ---------------------------------------------------------------------------------- */

struct entry_counting {
	fw_entry_count_cb *cb;
	void *ctx;
};

static int entry_count_one(void *ctx, const struct fw_entry_row *e)
{
	const struct entry_counting *c = ctx;

	return c->cb(c->ctx, e->feed_id, 1);
}

int fw_store_entry_counts(struct fw_store *st, int64_t since_ms, fw_entry_count_cb *cb, void *ctx, struct fw_err *err)
{
	struct entry_counting c = {cb, ctx};

	if (store_of(st)->driver->entry_counts)
		return STORE_CALL(st, entry_counts, since_ms, cb, ctx, STORE_ERR(err));
	return fw_store_entry_list(
		st, &(struct fw_entry_query){.since_ms = since_ms, .oldest_first = true}, entry_count_one, &c, err);
}
