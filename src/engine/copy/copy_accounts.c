/* SPDX-License-Identifier: ISC */
/*
 * Accounts: those of the target are replaced by those of the source, whole. Unread entries are
 * counted anew in the target at the end. A target that cannot have accounts is refused before
 * anything is written.
 */
#include <stdlib.h>

#include "base/err.h"
#include "base/hash.h"
#include "engine/copy/copy.h"
#include "store/accounts.h"

struct accounts {
	struct copy *c;
	struct store_account_row at[COPY_ROWS];
	size_t n;
	uint64_t sum;
	int64_t row_n;
};

int copy_accounts_check(struct copy *c, bool *target_has_any)
{
	bool any;
	int rc = store_accounts_any(store_of(c->from), &any, c->err);

	rc = rc ? rc : store_accounts_any(store_of(c->to), target_has_any, c->err);
	if (!rc && any && !store_of(c->to)->driver->accounts)
		return fw_err_set(c->err, FW_EINVAL,
			"the source has accounts, and the target (%s) cannot have any: copy to SQLite, PostgreSQL or"
			" MariaDB, or remove the accounts first",
			store_of(c->to)->driver->name);
	return rc;
}

static int accounts_load(struct copy *c, const struct store_account_row *row, size_t n, bool last)
{
	int rc, i = 0;

	do
		rc = store_of(c->to)->driver->accounts->load(store_of(c->to), row, n, last, c->err);
	while (copy_again(rc, &i));
	copy_progress(c);
	return rc;
}

static int accounts_flush(struct accounts *a)
{
	int rc = a->n ? accounts_load(a->c, a->at, a->n, false) : 0;

	a->n = 0;
	fw_arena_reset(&a->c->arena, a->c->o->batch_bytes);
	return rc;
}

/* A full batch is written from the callback: that uses the other store. */
static int accounts_add(void *ctx, const struct store_account_row *row)
{
	struct accounts *a = ctx;
	struct store_account_row *to = &a->at[a->n++];

	*to = *row;
	for (size_t i = 0; i < STORE_ACCOUNT_STRS; i++)
		to->s[i] = row->s[i].p ? fw_arena_str(&a->c->arena, row->s[i]) : FW_STR_NONE;
	if (a->c->arena.failed)
		return fw_no_memory(a->c->err);
	return a->n == COPY_ROWS ? accounts_flush(a) : 0;
}

static int accounts_with(struct copy *c, int (*run)(struct accounts *a))
{
	struct accounts *a;
	int rc;

	if (!store_of(c->from)->driver->accounts || !store_of(c->to)->driver->accounts)
		return 0;
	a = calloc(1, sizeof(*a));
	if (!a)
		return fw_no_memory(c->err);
	a->c = c;
	rc = run(a);
	free(a);
	return rc;
}

static int accounts_copy(struct accounts *a)
{
	struct copy *c = a->c;
	bool any, had;
	int rc = store_accounts_any(store_of(c->from), &any, c->err);

	rc = rc ? rc : store_accounts_any(store_of(c->to), &had, c->err);
	if (rc || (!any && !had))
		return rc;
	rc = accounts_load(c, NULL, 0, false);
	rc = rc ? rc : store_of(c->from)->driver->accounts->dump(store_of(c->from), accounts_add, a, c->err);
	rc = rc ? rc : accounts_flush(a);
	return rc ? rc : accounts_load(c, NULL, 0, true);
}

int copy_accounts(struct copy *c)
{
	return accounts_with(c, accounts_copy);
}

/* The sum does not depend on the order of rows. Times of last use are left out. */
static int accounts_sum(void *ctx, const struct store_account_row *row)
{
	struct accounts *a = ctx;
	struct fw_hasher h;

	fw_hasher_init(&h);
	fw_hasher_add(&h, (struct fw_str){(const char *)&row->table, sizeof(row->table)});
	for (size_t i = 0; i < STORE_ACCOUNT_INTS; i++) {
		if (row->table > 1 || i != 3)
			fw_hasher_add(&h, (struct fw_str){(const char *)&row->n[i], sizeof(row->n[i])});
	}
	for (size_t i = 0; i < STORE_ACCOUNT_STRS; i++)
		fw_hasher_add(&h, row->s[i].p ? row->s[i] : FW_STR("-"));
	a->sum += fw_hasher_end64(&h);
	a->row_n++;
	return 0;
}

static int accounts_compare(struct accounts *a)
{
	struct copy *c = a->c;
	uint64_t sum;
	int64_t row_n;
	int rc = store_of(c->from)->driver->accounts->dump(store_of(c->from), accounts_sum, a, c->err);

	sum = a->sum;
	row_n = a->row_n;
	a->sum = 0;
	a->row_n = 0;
	rc = rc ? rc : store_of(c->to)->driver->accounts->dump(store_of(c->to), accounts_sum, a, c->err);
	if (!rc && (sum != a->sum || row_n != a->row_n))
		copy_differs(c, "accounts: %lld rows in the source, %lld in the target, or their contents differ",
			(long long)row_n, (long long)a->row_n);
	return rc;
}

int copy_accounts_compare(struct copy *c)
{
	return accounts_with(c, accounts_compare);
}
