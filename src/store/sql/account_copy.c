/* SPDX-License-Identifier: ISC */
/*
 * The rows of accounts as a copy moves them, table by table. read_n belongs to the store, because
 * entry_total_n does: it is counted anew at the end.
 */
#include <assert.h>

#include "store/sql/accounts.h"

static const struct account_table {
	const char *list; /* first the numbers, then the texts */
	int int_n, str_n;
	struct sql_text put; /* in the same order */
} ACCOUNT_TABLE[] = {
	{"SELECT id, admin, created_ms, used_ms, label_id, name, password FROM accounts ORDER BY id", 5, 2,
		{"INSERT INTO accounts (id, admin, created_ms, used_ms, label_id, name, password) {values}",
			"id:i admin:i created_ms:i used_ms:i label_id:i name:t password:t"}},
	{"SELECT account_id, kind, created_ms, used_ms, until_ms, name, token_hash FROM account_tokens"
	 " ORDER BY account_id",
		5, 2,
		{"INSERT INTO account_tokens (account_id, kind, created_ms, used_ms, until_ms, name, token_hash)"
		 " {values}",
			"account_id:i kind:i created_ms:i used_ms:i until_ms:i name:t token_hash:b"}},
	{"SELECT account_id, feed_id, mark_id, 0, added_ms, title, folder FROM subscriptions"
	 " ORDER BY account_id, feed_id",
		5, 2,
		{"INSERT INTO subscriptions (account_id, feed_id, mark_id, read_n, added_ms, title, folder) {values}",
			"account_id:i feed_id:i mark_id:i read_n:i added_ms:i title:t folder:t"}},
	{"SELECT account_id, feed_id, entry_id FROM read_exceptions ORDER BY account_id, feed_id, entry_id", 3, 0,
		{"INSERT INTO read_exceptions (account_id, feed_id, entry_id) {values}",
			"account_id:i feed_id:i entry_id:i"}},
	{"SELECT account_id, id, name FROM labels ORDER BY account_id, id", 2, 1,
		{"INSERT INTO labels (account_id, id, name) {values}", "account_id:i id:i name:t"}},
	{"SELECT account_id, label_id, entry_id, feed_id, at_ms FROM entry_labels"
	 " ORDER BY account_id, label_id, entry_id",
		5, 0,
		{"INSERT INTO entry_labels (account_id, label_id, entry_id, feed_id, at_ms) {values}",
			"account_id:i label_id:i entry_id:i feed_id:i at_ms:i"}},
};

struct account_dumping {
	store_account_row_cb *cb;
	void *ctx;
	size_t table;
};

static int account_dump_row(void *ctx, const struct sql_row *row)
{
	const struct account_dumping *d = ctx;
	const struct account_table *t = &ACCOUNT_TABLE[d->table];
	struct store_account_row out = {.table = (int)d->table};

	for (int i = 0; i < t->int_n; i++)
		out.n[i] = sql_date(row, i);
	for (int i = 0; i < t->str_n; i++)
		out.s[i] = sql_str(row, t->int_n + i);
	return d->cb(d->ctx, &out);
}

int sql_account_dump(struct store *st, store_account_row_cb *cb, void *ctx, struct fw_err *err)
{
	struct account_dumping d = {cb, ctx, 0};
	struct sql *s = sql_of(st);
	int rc = 0;

	if (s->schema < SQL_SCHEMA_ACCOUNTS)
		return 0;
	for (; !rc && d.table < FW_N(ACCOUNT_TABLE); d.table++)
		rc = sql_query(s, ACCOUNT_TABLE[d.table].list, SQL_NONE, account_dump_row, &d, err);
	return rc;
}

struct account_loading {
	const struct store_account_row *row;
	size_t n;
	bool last;
};

static int account_load_table(struct sql *s, const struct account_loading *l, size_t table, struct fw_err *err)
{
	const struct account_table *t = &ACCOUNT_TABLE[table];
	struct sql_rows r = {.s = s, .err = err, .text = t->put};

	for (size_t i = 0; i < l->n; i++) {
		struct sql_value v[STORE_ACCOUNT_INTS + STORE_ACCOUNT_STRS];
		int n = 0;
		char letter;

		if (l->row[i].table != (int)table)
			continue;
		for (int k = 0; k < t->int_n; k++)
			v[n++] = SQL_DATE(l->row[i].n[k]);
		for (int k = 0; k < t->str_n; k++) {
			(void)sql_column(&t->put, (size_t)n, &letter);
			v[n++] = letter == 'b' ? SQL_BLOB(l->row[i].s[k]) : SQL_TEXT(l->row[i].s[k]);
		}
		sql_rows_add(&r, v, (size_t)n);
	}
	return sql_rows_end(&r);
}

static int account_texts_run(struct sql *s, const char *const *text, size_t n, struct fw_err *err)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < n; i++)
		rc = sql_exec(s, text[i], SQL_NONE, err);
	return rc;
}

static const char *const ACCOUNTS_CLEAR[] = {"DELETE FROM read_exceptions", "DELETE FROM entry_labels",
	"DELETE FROM labels", "DELETE FROM subscriptions", "DELETE FROM account_tokens", "DELETE FROM accounts"};
/* What a copy of a store in use may bring: state of feeds and entries that it did not bring. */
static const char *const ACCOUNTS_SETTLE[] = {
	"DELETE FROM subscriptions WHERE NOT EXISTS (SELECT 1 FROM feeds f WHERE f.id = subscriptions.feed_id)",
	"DELETE FROM read_exceptions WHERE NOT EXISTS (SELECT 1 FROM entries e WHERE e.id = read_exceptions.entry_id"
	" AND e.feed_id = read_exceptions.feed_id) OR NOT EXISTS (SELECT 1 FROM subscriptions s WHERE s.account_id ="
	" read_exceptions.account_id AND s.feed_id = read_exceptions.feed_id)",
	"DELETE FROM entry_labels WHERE NOT EXISTS (SELECT 1 FROM entries e WHERE e.id = entry_labels.entry_id)",
	/* clang-format off */
	"UPDATE subscriptions SET read_n = " SQL_ENTRY_TOTAL("subscriptions.feed_id")
	" - (SELECT count(*) FROM entries e WHERE e.feed_id = subscriptions.feed_id AND e.id > subscriptions.mark_id)"
	" - (SELECT {sum CASE WHEN x.entry_id <= subscriptions.mark_id THEN 1 ELSE -1 END} FROM read_exceptions x"
	" WHERE x.account_id = subscriptions.account_id AND x.feed_id = subscriptions.feed_id)",
	/* clang-format on */
	("UPDATE meta SET value = (SELECT coalesce(max(a.id), 0) FROM accounts a) WHERE name = 'account_id'"
	 " AND value < (SELECT coalesce(max(a.id), 0) FROM accounts a)"),
};

static int account_load(struct sql *s, void *ctx, struct fw_err *err)
{
	const struct account_loading *l = ctx;
	bool any;
	int rc = sql_accounts_lock_all(s, &any, err);

	if (!rc && !l->n && !l->last)
		return account_texts_run(s, ACCOUNTS_CLEAR, FW_N(ACCOUNTS_CLEAR), err);
	for (size_t i = 0; !rc && i < FW_N(ACCOUNT_TABLE); i++)
		rc = account_load_table(s, l, i, err);
	return rc || !l->last ? rc : account_texts_run(s, ACCOUNTS_SETTLE, FW_N(ACCOUNTS_SETTLE), err);
}

int sql_account_load(struct store *st, const struct store_account_row *row, size_t n, bool last, struct fw_err *err)
{
	struct sql *s = sql_of(st);
	int rc = 0;

	if (last && n == 0)
		rc = sql_account_indexes(s, err); /* first: counting anew needs them */
	return rc ? rc : sql_transaction(s, account_load, &(struct account_loading){row, n, last}, err);
}
