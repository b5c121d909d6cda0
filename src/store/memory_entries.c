/* SPDX-License-Identifier: ISC */
/* Entries and visits as lists, and forgetting them, in the store in memory. Words are compared byte by byte. */
#include <stdlib.h>

#include "store/memory.h"

static bool word_in(struct fw_str text, const struct fw_store_word *w)
{
	const char *p = text.p;

	while (p) {
		struct fw_str rest = {p, (size_t)(text.p + text.len - p)};
		const char *hit = fw_str_ifind(rest, w->text), *end;

		if (!hit)
			return false;
		end = hit + w->text.len;
		if ((hit == text.p || !fw_is_alnum(hit[-1])) && (w->prefix || end == text.p + text.len || !fw_is_alnum(*end)))
			return true;
		p = hit + 1;
	}
	return false;
}

static bool item_matches(const struct fw_entry_row *e, const struct fw_entry_query *q)
{
	int64_t date_ms = fw_store_entry_date(e, e->seen_ms);
	struct fw_str rest = q->search;
	struct fw_store_word w;

	if ((q->feed_id && e->feed_id != q->feed_id) || e->seen_ms < q->since_ms || e->id <= q->after_id ||
	    (q->before_id && e->id >= q->before_id))
		return false;
	if (q->behind_id && (date_ms > q->behind_date_ms || (date_ms == q->behind_date_ms && e->id >= q->behind_id)))
		return false;
	while (rest.p && fw_store_word_next(&rest, &w)) {
		if (!word_in(e->title, &w) && !word_in(e->summary, &w) && !word_in(e->content, &w))
			return false;
	}
	return true;
}

static int newest_first(const void *a, const void *b)
{
	const struct fw_entry_row *x = &(*(const struct item *const *)a)->row, *y = &(*(const struct item *const *)b)->row;
	int64_t dx = fw_store_entry_date(x, x->seen_ms), dy = fw_store_entry_date(y, y->seen_ms);

	if (dx != dy)
		return dx > dy ? -1 : 1;
	return x->id > y->id ? -1 : x->id < y->id;
}

int mem_entry_list(struct fw_store *st, const struct fw_entry_query *q, fw_entry_cb *cb, void *ctx,
	struct fw_err *err)
{
	struct memory *m = mem_of(st);
	struct item **order = reallocarray(NULL, m->items.n + 1, sizeof(struct item *));
	size_t n = 0;
	int rc = 0;

	if (!order)
		return mem_no_memory(err);
	for (size_t i = 0; i < m->items.n; i++) {
		struct item *e = m->items.at[i];

		if (!e->pruned && item_matches(&e->row, q))
			order[n++] = e;
	}
	if (!q->oldest_first)
		qsort(order, n, sizeof(struct item *), newest_first);
	for (size_t i = 0; i < n && (!q->limit || i < q->limit) && !rc; i++) {
		struct fw_entry_row row = order[i]->row;
		const struct node *f = mem_node_find(m, row.feed_id);

		row.feed_title = f->feed.user_title.len ? f->feed.user_title : f->feed.title;
		row.feed_url = f->feed.url;
		if (!q->content)
			row.content = row.content_base = FW_STR_NONE;
		rc = cb(ctx, &row);
	}
	free(order);
	return rc;
}

int mem_visit_list(struct fw_store *st, const struct fw_visit_query *q, fw_visit_cb *cb, void *ctx,
	struct fw_err *err)
{
	struct memory *m = mem_of(st);
	size_t n = 0;
	int rc = 0;

	(void)err;
	for (size_t i = 0; i < m->visits.n && (!q->limit || n < q->limit) && !rc; i++) {
		struct fw_visit v = *(struct fw_visit *)m->visits.at[q->oldest_first ? i : m->visits.n - 1 - i];

		if ((q->feed_id && v.feed_id != q->feed_id) || (q->run_id && v.run_id != q->run_id) || v.at_ms < q->since_ms ||
		    v.id <= q->after_id)
			continue;
		v.feed_url = mem_node_find(m, v.feed_id)->feed.url;
		n++;
		rc = cb(ctx, &v);
	}
	return rc;
}

int mem_prune(struct fw_store *st, int64_t visits_before_ms, int64_t entries_before_ms, int64_t *n, struct fw_err *err)
{
	struct memory *m = mem_of(st);
	size_t kept = 0;

	(void)err;
	for (size_t i = 0; i < m->visits.n; i++) {
		struct fw_visit *v = m->visits.at[i];

		if (v->at_ms < visits_before_ms) {
			mem_drop(&v->error);
			free(v);
		} else {
			m->visits.at[kept++] = v;
		}
	}
	*n += (int64_t)(m->visits.n - kept);
	m->visits.n = kept;
	mem_beats_forget(m, visits_before_ms);
	for (size_t i = 0; i < m->items.n; i++) {
		struct item *e = m->items.at[i];

		if (e->pruned || e->row.changed_ms >= entries_before_ms)
			continue;
		mem_item_empty(e);
		e->pruned = true;
		mem_node_find(m, e->row.feed_id)->pruned_n++;
		m->pruned_n++;
		++*n;
	}
	return 0;
}
