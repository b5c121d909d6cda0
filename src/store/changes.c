/* SPDX-License-Identifier: ISC */
/*
 * The front's part of the log of changes: drivers list entries and changes apart, each by number;
 * here the two lists become one.
 *
 * A page of changes is read first, and the entries that it names, because a callback must not call
 * the store. Then the entries of the same range pass by, and each change before its turn.
 */
#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "store/driver.h"

#define PAGE 100        /* changes that are kept with their entries */
#define PAGE_PLAIN 1000 /* without content */
#define STOPPED 1       /* the limit is reached, or the page */

struct change_page {
	struct fw_change *at;
	size_t n, next;  /* next: the first that was not shown */
	int64_t last_id; /* entries up to this number belong to it */
};

struct change_listing {
	struct fw_store *st;
	struct fw_change_query *q;
	fw_change_cb *cb;
	void *ctx;
	struct fw_arena a;
	struct change_page page;
	size_t shown;
	int ended; /* the callback's result */
};

const char *fw_change_kind_name(enum fw_change_kind kind)
{
	static const char *const NAME[] = {"new", "changed", "gone"};

	return (size_t)kind < FW_N(NAME) ? NAME[kind] : "unknown";
}

/* ---- a page ---------------------------------------------------------------------------------- */

static int change_page_add(void *ctx, const struct fw_change *c)
{
	struct change_page *p = ctx;

	p->at[p->n++] = *c;
	return 0;
}

struct entry_copy {
	struct fw_arena *a;
	struct fw_entry_row *e;
};

static int entry_keep(void *ctx, const struct fw_entry_row *row)
{
	const struct entry_copy *c = ctx;

	*c->e = *row;
	return fw_store_entry_dup(c->a, c->e) ? 0 : FW_ENOMEM;
}

/* The entry as it is now. An entry that is gone stays absent: its `gone` follows. */
static int change_entry_read(struct change_listing *l, struct fw_change *c, struct fw_err *err)
{
	struct fw_entry_query one = {
		.after_id = c->entry_id - 1, .before_id = c->entry_id + 1, .content = l->q->content};
	struct entry_copy to = {&l->a, fw_arena_calloc(&l->a, 1, sizeof(*to.e))};
	int rc = to.e ? fw_store_entry_list(l->st, &one, entry_keep, &to, err) : fw_no_memory(err);

	if (rc == FW_ENOMEM)
		rc = fw_no_memory(err);
	c->entry = !rc && to.e->id ? to.e : NULL;
	return rc;
}

/* The changes from after_id on, up to head_id, and their entries. */
static int page_read(struct change_listing *l, struct store_change_query *q, struct fw_err *err)
{
	size_t most = l->q->content ? PAGE : PAGE_PLAIN;
	int rc;

	q->limit = l->q->limit ? FW_MIN(most, l->q->limit - l->shown) : most;
	l->page = (struct change_page){0};
	fw_arena_reset(&l->a, 0);
	l->page.at = fw_arena_calloc(&l->a, q->limit, sizeof(*l->page.at));
	rc = l->page.at ? STORE_CALL(l->st, change_list, q, change_page_add, &l->page, err) : fw_no_memory(err);
	if (rc)
		return rc;
	l->page.last_id = l->page.n == q->limit ? l->page.at[l->page.n - 1].id : q->head_id;
	for (size_t i = 0; !rc && i < l->page.n; i++)
		rc = l->page.at[i].kind == FW_CHANGE_GONE ? 0 : change_entry_read(l, &l->page.at[i], err);
	return rc;
}

/* ---- showing --------------------------------------------------------------------------------- */

static int change_show(struct change_listing *l, const struct fw_change *c)
{
	if (l->q->limit && l->shown == l->q->limit)
		return STOPPED;
	l->ended = l->cb(l->ctx, c);
	l->shown++;
	l->q->next_id = c->id;
	return l->ended;
}

/* Does the reader want this change? Drivers have looked at feed_id already. */
static bool change_is_wanted(const struct fw_change_query *q, const struct fw_change *c)
{
	struct fw_str folder = fw_path_trim(q->folder);
	bool wants = !q->feed_n;

	if (c->kind != FW_CHANGE_GONE && !c->entry)
		return false; /* its gone follows */
	for (size_t i = 0; i < q->feed_n && !wants; i++)
		wants = q->feed_ids[i] == c->feed_id;
	return wants && (!folder.len || c->kind == FW_CHANGE_GONE || fw_path_is_within(c->entry->feed_folder, folder));
}

/* Show the page's changes below this number. */
static int page_show(struct change_listing *l, int64_t before_id)
{
	struct change_page *p = &l->page;
	int rc = 0;

	for (; !rc && p->next < p->n && p->at[p->next].id < before_id; p->next++) {
		const struct fw_change *c = &p->at[p->next];

		if (change_is_wanted(l->q, c))
			rc = change_show(l, c);
		if (rc)
			break;
	}
	return rc;
}

static int change_entry_show(void *ctx, const struct fw_entry_row *e)
{
	struct change_listing *l = ctx;
	const struct fw_change c = {.id = e->id,
		.kind = FW_CHANGE_NEW,
		.entry_id = e->id,
		.feed_id = e->feed_id,
		.revision = e->revision,
		.at_ms = e->seen_ms,
		.entry = e};
	int rc = page_show(l, e->id);

	return rc ? rc : change_show(l, &c);
}

/* The entries of the page's range, and its changes. */
static int page_merge(struct change_listing *l, int64_t after_id, struct fw_err *err)
{
	struct fw_entry_query q = {.feed_id = l->q->feed_id,
		.feed_ids = l->q->feed_ids,
		.feed_n = l->q->feed_n,
		.folder = l->q->folder,
		.after_id = after_id,
		.before_id = l->page.last_id + 1,
		.oldest_first = true,
		.content = l->q->content,
		.limit = l->q->limit ? l->q->limit - l->shown : 0};
	int rc = l->page.last_id > after_id ? fw_store_entry_list(l->st, &q, change_entry_show, l, err) : 0;

	rc = rc ? rc : page_show(l, INT64_MAX);
	if (!rc && !(l->q->limit && l->shown == l->q->limit))
		l->q->next_id = FW_MAX(l->page.last_id, after_id);
	return rc;
}

/* FW_EGONE: changes that the reader has not seen were pruned. */
static int change_reader_check(struct change_listing *l, int64_t after_id, int64_t pruned_id, struct fw_err *err)
{
	int64_t known_id = FW_MAX(after_id, l->q->base_id);

	if ((!l->q->after_id && !l->q->base_id) || known_id >= pruned_id)
		return 0;
	l->q->first_id = pruned_id + 1;
	return fw_err_set(err, FW_EGONE,
		"%s: changes up to %lld were pruned, and the reader has seen those up to %lld: the first change left"
		" is %lld (read all entries anew, from 0; changes_retention_ms keeps changes for longer)",
		store_of(l->st)->driver->name, (long long)pruned_id, (long long)known_id, (long long)l->q->first_id);
}

static int change_pages_show(struct change_listing *l, struct fw_err *err)
{
	struct store_change_query q = {.after_id = l->q->after_id, .feed_id = l->q->feed_id};
	int rc;

	do {
		int64_t after_id = q.after_id;

		rc = page_read(l, &q, err);
		/* a later page reads no further than the first: */
		l->q->head_id = l->q->head_id ? l->q->head_id : q.head_id;
		rc = rc ? rc : change_reader_check(l, after_id, q.pruned_id, err);
		l->page.last_id = FW_MIN(l->page.last_id, l->q->head_id);
		while (!rc && l->page.n && l->page.at[l->page.n - 1].id > l->q->head_id)
			l->page.n--;
		rc = rc ? rc : page_merge(l, after_id, err);
		q.after_id = l->page.last_id;
	} while (!rc && q.after_id < l->q->head_id && !(l->q->limit && l->shown == l->q->limit));
	return rc;
}

int fw_store_change_list(
	struct fw_store *st, struct fw_change_query *q, fw_change_cb *cb, void *ctx, struct fw_err *err)
{
	struct change_listing l = {.st = st, .q = q, .cb = cb, .ctx = ctx};
	int rc;

	if (q->after_id < 0 || q->base_id < 0)
		return store_invalid(store_of(st), "change_list: a number is below 0", err);
	q->head_id = q->first_id = 0;
	q->next_id = q->after_id;
	fw_arena_init(&l.a, 0);
	rc = change_pages_show(&l, STORE_ERR(err));
	fw_arena_finish(&l.a);
	return rc == STOPPED && !l.ended ? 0 : rc;
}

int fw_store_revision_list(struct fw_store *st, int64_t entry_id, fw_revision_cb *cb, void *ctx, struct fw_err *err)
{
	return STORE_CALL(st, revision_list, entry_id, cb, ctx, STORE_ERR(err));
}
