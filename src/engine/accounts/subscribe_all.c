/* SPDX-License-Identifier: ISC */
/*
 * The feeds that the operator collects, for an account: all at once. Feeds that other accounts
 * brought are theirs, and their addresses may be secrets; a feed with a login is nobody's who has
 * not given that login.
 */
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "engine/accounts/accounts.h"

#define ALL_PART ((size_t)1000) /* feeds that are read, and subscribed, at once */

struct all {
	struct fw_buf had, brought; /* ids in order: of the account's feeds, of those that accounts brought */
	struct fw_feed_new *feed;   /* of this part */
	size_t n, read_n, limit;
	int64_t last_id;
	struct fw_arena arena; /* of this part */
	struct fw_account_all *out;
};

static int all_had_add(void *ctx, const struct fw_subscription *s)
{
	struct all *x = ctx;

	fw_buf_add(&x->had, &s->feed_id, sizeof(s->feed_id));
	return x->had.rc;
}

static int all_brought_add(void *ctx, const struct fw_record *r)
{
	struct all *x = ctx;
	int64_t id;

	if (fw_str_int(r->key, &id))
		fw_buf_add(&x->brought, &id, sizeof(id));
	return x->brought.rc;
}

static int all_compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return FW_ORDER(x, y);
}

static bool all_has(const struct fw_buf *ids, int64_t id)
{
	return ids->len && bsearch(&id, ids->p, ids->len / sizeof(id), sizeof(id), all_compare);
}

static int all_feed(void *ctx, const struct fw_feed *f)
{
	struct all *x = ctx;
	struct fw_arena *a = &x->arena;

	x->last_id = f->id;
	x->read_n++;
	if (all_has(&x->had, f->id)) {
		x->out->had_n++;
		return 0;
	}
	if (all_has(&x->brought, f->id))
		return 0;
	if (f->username.len || f->password.len) {
		x->out->login_n++;
		return 0;
	}
	if (x->limit && x->out->added_n + x->n == x->limit) {
		x->out->more = true;
		return 1;
	}
	x->feed[x->n++] = (struct fw_feed_new){.url = fw_arena_str(a, f->url),
		.user_title = fw_arena_str(a, f->user_title),
		.folder = fw_arena_str(a, f->folder)};
	return a->failed ? FW_ENOMEM : 0;
}

/* The next feeds of the store; to subscribe them is one transaction. */
static int all_part(
	struct fw_store *st, struct all *x, int64_t account_id, int64_t now_ms, bool count, struct fw_err *err)
{
	const struct fw_feed_query q = {.status = -1, .after_id = x->last_id, .limit = ALL_PART};
	size_t added;
	int rc;

	x->n = x->read_n = 0;
	fw_arena_init(&x->arena, 0);
	rc = fw_store_feed_list(st, &q, all_feed, x, err);
	rc = FW_MIN(rc, 0);
	added = x->n;
	if (!rc && x->n && !count)
		rc = fw_account_import(st, account_id, x->feed, x->n, now_ms, &added, err);
	x->out->added_n += rc ? 0 : added;
	fw_arena_finish(&x->arena);
	return rc;
}

int fw_account_subscribe_all(struct fw_store *st, int64_t account_id, size_t limit, bool count, int64_t now_ms,
	struct fw_account_all *out, struct fw_err *err)
{
	const struct fw_record_query brought = {.kind = STORE_ACCOUNT_FEED};
	struct all x = {.had = FW_BUF_INIT(0),
		.brought = FW_BUF_INIT(0),
		.feed = calloc(ALL_PART, sizeof(*x.feed)),
		.limit = limit,
		.out = out};
	int rc;

	*out = (struct fw_account_all){.added_n = 0};
	err = STORE_ERR(err);
	rc = x.feed ? fw_account_subscription_list(st, account_id, 0, true, all_had_add, &x, err) : FW_ENOMEM;
	rc = rc ? rc : fw_store_record_list(st, &brought, all_brought_add, &x, err);
	if (x.brought.len)
		qsort(x.brought.p, x.brought.len / sizeof(int64_t), sizeof(int64_t), all_compare);
	do
		rc = rc ? rc : all_part(st, &x, account_id, now_ms, count, err);
	while (!rc && !out->more && x.read_n == ALL_PART);
	fw_buf_finish(&x.had);
	fw_buf_finish(&x.brought);
	free(x.feed);
	return rc == FW_ENOMEM ? fw_no_memory(err) : rc;
}
