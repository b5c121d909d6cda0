/* SPDX-License-Identifier: ISC */
/* Accounts, their tokens, subscriptions and labels; accounts.h describes the slots. */
#include <assert.h>
#include <string.h>

#include "store/sql/accounts.h"

int store_account_missing(const char *store, struct fw_err *err)
{
	return fw_err_set(err, FW_ENOTFOUND, "%s: no such account ('feedwheel user list' lists all)", store);
}

int sql_accounts_absent(const struct sql *s, struct fw_err *err)
{
	return s->schema >= SQL_SCHEMA_ACCOUNTS ?
		0 :
		fw_err_set(err, FW_EVERSION,
			"%s: the store has no accounts yet: the next command that writes"
			" adds the tables, such as `feedwheel run`",
			s->name);
}

int sql_account_lock(struct sql *s, int64_t account_id, struct fw_err *err)
{
	int64_t id;
	int rc = sql_query_int(
		s, "SELECT id FROM accounts WHERE id = ?1 {update}", SQL_V(SQL_INT(account_id)), 0, &id, err);

	return rc || id ? rc : store_account_missing(s->name, err);
}

/* ---- indexes --------------------------------------------------------------------------------- */

static const char *const ACCOUNT_INDEXES[][3] = {
	{"SELECT {indexed entries_by_feed}", "CREATE INDEX entries_by_feed ON entries (feed_id, id)",
		"DROP INDEX entries_by_feed {of entries}"},
	{"SELECT {indexed entries_by_id}", "CREATE INDEX entries_by_id ON entries (id, feed_id)",
		"DROP INDEX entries_by_id {of entries}"},
};

/* A statement outside of a transaction; the result of two processes that race is the same. */
static int account_index_change(struct sql *s, size_t i, bool make, struct fw_err *err)
{
	int64_t n;
	int rc = sql_query_int(s, ACCOUNT_INDEXES[i][0], SQL_NONE, 0, &n, err);

	if (rc || (n != 0) == make)
		return rc;
	rc = sql_exec_count(s, ACCOUNT_INDEXES[i][make ? 1 : 2], SQL_NONE, &n, err);
	if (rc && !sql_query_int(s, ACCOUNT_INDEXES[i][0], SQL_NONE, 0, &n, &(struct fw_err){0}) && (n != 0) == make)
		return 0;
	return rc;
}

int sql_account_indexes(struct sql *s, struct fw_err *err)
{
	int64_t n;
	int rc = sql_query_int(s, "SELECT count(*) FROM accounts", SQL_NONE, 0, &n, err);

	for (size_t i = 0; !rc && i < FW_N(ACCOUNT_INDEXES); i++)
		rc = account_index_change(s, i, n > 0, err);
	return rc;
}

/* ---- accounts -------------------------------------------------------------------------------- */

struct account_adding {
	const struct store_account *a;
	int64_t id;
};

static int account_insert(struct sql *s, void *ctx, struct fw_err *err)
{
	struct account_adding *w = ctx;
	const struct fw_account *a = &w->a->a;
	int64_t there;
	int rc = sql_ids_reserve(s, "account_id", 1, &w->id, err);

	rc = rc ? rc :
		  sql_query_int(s, "SELECT id FROM accounts WHERE name = ?1", SQL_V(SQL_TEXT(a->name)), 0, &there, err);
	if (!rc && there)
		return fw_err_set(
			err, FW_EINVAL, "account '%.*s': the name is taken: choose another one", FW_STR_ARG(a->name));
	return rc ? rc :
		    sql_exec(s,
			    "INSERT INTO accounts (id, name, password, admin, created_ms, used_ms, label_id)"
			    " VALUES (?1, ?2, ?3, ?4, ?5, 0, 0)",
			    SQL_V(SQL_INT(w->id), SQL_TEXT(a->name), SQL_TEXT(w->a->password), SQL_INT(a->admin),
				    SQL_INT(a->created_ms)),
			    err);
}

static int sql_account_add(struct store *st, const struct store_account *a, int64_t *id, struct fw_err *err)
{
	struct account_adding w = {.a = a};
	int rc = sql_transaction(sql_of(st), account_insert, &w, err);

	*id = w.id;
	return rc ? rc : sql_account_indexes(sql_of(st), err);
}

struct account_setting {
	const struct store_account *a;
	unsigned what;
};

static int account_update(struct sql *s, void *ctx, struct fw_err *err)
{
	const struct account_setting *w = ctx;
	const struct sql_value id = SQL_INT(w->a->a.id);
	int rc = sql_account_lock(s, w->a->a.id, err);

	if (!rc && w->what & STORE_ACCOUNT_PASSWORD)
		rc = sql_exec(
			s, "UPDATE accounts SET password = ?2 WHERE id = ?1", SQL_V(id, SQL_TEXT(w->a->password)), err);
	if (!rc && w->what & STORE_ACCOUNT_PASSWORD)
		rc = sql_exec(s, "DELETE FROM account_tokens WHERE account_id = ?1 AND kind IN (1, 3)", SQL_V(id), err);
	if (!rc && w->what & STORE_ACCOUNT_ADMIN)
		rc = sql_exec(
			s, "UPDATE accounts SET admin = ?2 WHERE id = ?1", SQL_V(id, SQL_INT(w->a->a.admin)), err);
	if (!rc && w->what & STORE_ACCOUNT_USED)
		rc = sql_exec(
			s, "UPDATE accounts SET used_ms = ?2 WHERE id = ?1", SQL_V(id, SQL_INT(w->a->a.used_ms)), err);
	return rc;
}

static int sql_account_set(struct store *st, const struct store_account *a, unsigned what, struct fw_err *err)
{
	return sql_transaction(sql_of(st), account_update, &(struct account_setting){a, what}, err);
}

static int account_delete(struct sql *s, void *ctx, struct fw_err *err)
{
	static const char *const TEXT[] = {
		"DELETE FROM read_exceptions WHERE account_id = ?1",
		"DELETE FROM entry_labels WHERE account_id = ?1",
		"DELETE FROM labels WHERE account_id = ?1",
		"DELETE FROM subscriptions WHERE account_id = ?1",
		"DELETE FROM account_tokens WHERE account_id = ?1",
		"DELETE FROM accounts WHERE id = ?1",
	};
	int64_t id = *(const int64_t *)ctx;
	int rc = sql_account_lock(s, id, err);

	for (size_t i = 0; !rc && i < FW_N(TEXT); i++)
		rc = sql_exec(s, TEXT[i], SQL_V(SQL_INT(id)), err);
	return rc;
}

static int sql_account_remove(struct store *st, int64_t id, struct fw_err *err)
{
	int rc = sql_transaction(sql_of(st), account_delete, &id, err);

	return rc ? rc : sql_account_indexes(sql_of(st), err);
}

struct account_listing {
	store_account_cb *cb;
	void *ctx;
};

static int account_row(void *ctx, const struct sql_row *row)
{
	const struct account_listing *l = ctx;

	return l->cb(l->ctx,
		&(struct store_account){.a = {.id = sql_int(row, 0),
						.name = sql_str(row, 1),
						.admin = sql_int(row, 3) != 0,
						.created_ms = sql_int(row, 4),
						.used_ms = sql_int(row, 5),
						.subscription_n = (uint64_t)sql_int(row, 6),
						.token_n = (size_t)sql_int(row, 7)},
			.password = sql_str(row, 2)});
}

#define ACCOUNT                                                                              \
	"SELECT a.id, a.name, a.password, a.admin, a.created_ms, a.used_ms,"                 \
	" (SELECT count(*) FROM subscriptions s WHERE s.account_id = a.id),"                 \
	" (SELECT count(*) FROM account_tokens t WHERE t.account_id = a.id AND t.kind <> 1)" \
	" FROM accounts a"
_Static_assert(FW_ACCOUNT_TOKEN_SESSION == 1 && FW_ACCOUNT_TOKEN_LOGIN == 3, "the statements have the numbers");

static int sql_account_list(struct store *st, struct fw_str name, store_account_cb *cb, void *ctx, struct fw_err *err)
{
	struct sql *s = sql_of(st);
	struct account_listing l = {cb, ctx};

	if (s->schema < SQL_SCHEMA_ACCOUNTS)
		return 0;
	return name.p ? sql_query(s, ACCOUNT " WHERE a.name = ?1", SQL_V(SQL_TEXT(name)), account_row, &l, err) :
			sql_query(s, ACCOUNT " ORDER BY a.name", SQL_NONE, account_row, &l, err);
}

/* ---- tokens ---------------------------------------------------------------------------------- */

struct account_token_putting {
	const struct store_token *t;
	int64_t now_ms;
};

static int account_token_insert(struct sql *s, void *ctx, struct fw_err *err)
{
	const struct account_token_putting *w = ctx;
	const struct store_token *t = w->t;
	const struct sql_value owner = SQL_INT(t->account_id);
	int64_t n = 0;
	int rc = sql_account_lock(s, t->account_id, err);

	rc = rc ? rc :
		  sql_exec(s,
			  "DELETE FROM account_tokens WHERE account_id = ?1 AND ((kind = ?2 AND name = ?3)"
			  " OR until_ms <= ?4)",
			  SQL_V(owner, SQL_INT(t->t.kind), SQL_TEXT(t->t.name), SQL_INT(w->now_ms)), err);
	rc = rc ?
		rc :
		sql_query_int(s, "SELECT count(*) FROM account_tokens WHERE account_id = ?1", SQL_V(owner), 0, &n, err);
	if (!rc && n >= FW_ACCOUNT_TOKENS_MAX)
		return fw_err_set(err, FW_ELIMIT, "the limit of %d tokens of an account is reached: revoke some first",
			FW_ACCOUNT_TOKENS_MAX);
	return rc ? rc :
		    sql_exec(s,
			    "INSERT INTO account_tokens (token_hash, account_id, kind, name, created_ms, used_ms,"
			    " until_ms) VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6)",
			    SQL_V(SQL_KEY(t->hash), owner, SQL_INT(t->t.kind), SQL_TEXT(t->t.name),
				    SQL_INT(t->t.created_ms), SQL_DATE(t->t.until_ms)),
			    err);
}

static int sql_account_token_put(struct store *st, const struct store_token *t, int64_t now_ms, struct fw_err *err)
{
	return sql_transaction(sql_of(st), account_token_insert, &(struct account_token_putting){t, now_ms}, err);
}

static int sql_account_token_remove(
	struct store *st, int64_t account_id, enum fw_account_token_kind kind, struct fw_str name, struct fw_err *err)
{
	struct sql *s = sql_of(st);
	int64_t n = 0;
	int rc = sql_exec_count(s,
		"DELETE FROM account_tokens WHERE account_id = ?1 AND name = ?2 AND (kind = ?3 OR ?3 = ?4)",
		SQL_V(SQL_INT(account_id), SQL_TEXT(name), SQL_INT(kind), SQL_INT(FW_ACCOUNT_TOKEN_KIND_N)), &n, err);

	return rc || n ? rc :
			 fw_err_set(err, FW_ENOTFOUND, "token '%.*s': the account has no token of this name",
				 FW_STR_ARG(fw_str_sub(name, 0, 100)));
}

static struct fw_account_token account_token_read(const struct sql_row *row)
{
	return (struct fw_account_token){.name = sql_str(row, 0),
		.kind = (enum fw_account_token_kind)sql_int(row, 1),
		.created_ms = sql_int(row, 2),
		.used_ms = sql_int(row, 3),
		.until_ms = sql_date(row, 4)};
}

struct account_token_listing {
	fw_account_token_cb *cb;
	void *ctx;
};

static int account_token_row(void *ctx, const struct sql_row *row)
{
	const struct account_token_listing *l = ctx;
	const struct fw_account_token t = account_token_read(row);

	return l->cb(l->ctx, &t);
}

#define TOKEN "SELECT name, kind, created_ms, used_ms, until_ms, account_id FROM account_tokens WHERE "

static int sql_account_token_list(
	struct store *st, int64_t account_id, fw_account_token_cb *cb, void *ctx, struct fw_err *err)
{
	return sql_query(sql_of(st), TOKEN "account_id = ?1 ORDER BY name, kind", SQL_V(SQL_INT(account_id)),
		account_token_row, &(struct account_token_listing){cb, ctx}, err);
}

static int account_token_found_row(void *ctx, const struct sql_row *row)
{
	struct store_token *t = ctx;

	t->t = account_token_read(row);
	(void)fw_str_copy(t->found_name, sizeof(t->found_name), t->t.name);
	t->t.name = FW_STR_NONE;
	t->account_id = sql_int(row, 5);
	return 0;
}

static int sql_account_token_find(
	struct store *st, struct store_token *t, store_account_cb *cb, void *ctx, struct fw_err *err)
{
	struct sql *s = sql_of(st);
	int rc;

	t->account_id = 0;
	if (s->schema < SQL_SCHEMA_ACCOUNTS)
		return store_account_missing(s->name, err);
	rc = sql_query(s, TOKEN "token_hash = ?1", SQL_V(SQL_KEY(t->hash)), account_token_found_row, t, err);
	if (rc || !t->account_id)
		return rc ? rc : fw_err_set(err, FW_ENOTFOUND, "%s: no such token", s->name);
	return sql_query(s, ACCOUNT " WHERE a.id = ?1", SQL_V(SQL_INT(t->account_id)), account_row,
		&(struct account_listing){cb, ctx}, err);
}

static int account_token_used(struct sql *s, void *ctx, struct fw_err *err)
{
	const struct account_token_putting *w = ctx;
	int rc = sql_exec(s, "UPDATE accounts SET used_ms = ?2 WHERE id = ?1",
		SQL_V(SQL_INT(w->t->account_id), SQL_INT(w->now_ms)), err);

	/* until_ms first: MariaDB would use the new used_ms. Those that never expire have none */
	return rc ? rc :
		    sql_exec(s,
			    "UPDATE account_tokens SET until_ms = until_ms + ?2 - (CASE WHEN used_ms > 0 THEN used_ms"
			    " ELSE created_ms END), used_ms = ?2 WHERE token_hash = ?1",
			    SQL_V(SQL_KEY(w->t->hash), SQL_INT(w->now_ms)), err);
}

static int sql_account_token_use(struct store *st, const struct store_token *t, int64_t now_ms, struct fw_err *err)
{
	return sql_transaction(sql_of(st), account_token_used, &(struct account_token_putting){t, now_ms}, err);
}

/* ---- subscriptions --------------------------------------------------------------------------- */

struct account_subscribing {
	int64_t account_id;
	const struct fw_subscription *set;
};

static int account_subscription_exists(struct sql *s, int64_t account_id, int64_t feed_id, bool *is, struct fw_err *err)
{
	int64_t n;
	int rc = sql_query_int(s, "SELECT count(*) FROM subscriptions WHERE account_id = ?1 AND feed_id = ?2",
		SQL_V(SQL_INT(account_id), SQL_INT(feed_id)), 0, &n, err);

	*is = !rc && n;
	return rc;
}

int sql_account_subscription_update(
	struct sql *s, int64_t account_id, const struct fw_subscription *set, struct fw_err *err)
{
	return set->title.p || set->folder.p ?
		sql_exec(s,
			"UPDATE subscriptions SET title = coalesce(?3, title), folder = coalesce(?4, folder)"
			" WHERE account_id = ?1 AND feed_id = ?2",
			SQL_V(SQL_INT(account_id), SQL_INT(set->feed_id), SQL_TEXT(set->title), SQL_TEXT(set->folder)),
			err) :
		0;
}

static int account_subscription_missing(struct sql *s, int64_t feed_id, struct fw_err *err)
{
	return fw_err_set(
		err, FW_ENOTFOUND, "%s: the account does not subscribe feed %lld", s->name, (long long)feed_id);
}

static int account_subscription_change(struct sql *s, void *ctx, struct fw_err *err)
{
	const struct account_subscribing *w = ctx;
	bool is = false;
	int rc = sql_account_lock(s, w->account_id, err);

	rc = rc ? rc : account_subscription_exists(s, w->account_id, w->set->feed_id, &is, err);
	if (!rc && !is)
		return account_subscription_missing(s, w->set->feed_id, err);
	return rc ? rc : sql_account_subscription_update(s, w->account_id, w->set, err);
}

static int sql_account_subscription_set(
	struct store *st, int64_t account_id, const struct fw_subscription *set, struct fw_err *err)
{
	return sql_transaction(
		sql_of(st), account_subscription_change, &(struct account_subscribing){account_id, set}, err);
}

static int account_unsubscribe(struct sql *s, void *ctx, struct fw_err *err)
{
	const struct account_subscribing *w = ctx;
	bool is = false;
	const struct sql_value v[] = {SQL_INT(w->account_id), SQL_INT(w->set->feed_id)};
	int rc = sql_account_lock(s, w->account_id, err);

	rc = rc ? rc : account_subscription_exists(s, w->account_id, w->set->feed_id, &is, err);
	if (!rc && !is)
		return account_subscription_missing(s, w->set->feed_id, err);
	rc = rc ? rc : sql_exec(s, "DELETE FROM subscriptions WHERE account_id = ?1 AND feed_id = ?2", v, 2, err);
	return rc ? rc : sql_exec(s, "DELETE FROM read_exceptions WHERE account_id = ?1 AND feed_id = ?2", v, 2, err);
}

static int sql_account_unsubscribe(struct store *st, int64_t account_id, int64_t feed_id, struct fw_err *err)
{
	const struct fw_subscription set = {.feed_id = feed_id};

	return sql_transaction(sql_of(st), account_unsubscribe, &(struct account_subscribing){account_id, &set}, err);
}

static int sql_account_subscriber_count(struct store *st, int64_t feed_id, int64_t *n, struct fw_err *err)
{
	return sql_query_int(sql_of(st), "SELECT count(*) FROM subscriptions WHERE feed_id = ?1",
		SQL_V(SQL_INT(feed_id)), 0, n, err);
}

/* ---- folders --------------------------------------------------------------------------------- */

struct account_folder_renaming {
	int64_t account_id;
	struct fw_str from, to;
	bool only;
	struct fw_arena a;
	struct sql_rows put;
	size_t n;
	bool longer; /* a folder below would have too long a name */
};

static int account_folder_row(void *ctx, const struct sql_row *row)
{
	struct account_folder_renaming *w = ctx;
	struct fw_str rest, path;

	if (!store_folder_rest(w->from, sql_str(row, 1), &rest) || (w->only && rest.len))
		return 0;
	path = !w->to.len ? FW_STR("") :
			    fw_str(fw_arena_printf(&w->a, "%.*s%.*s", FW_STR_ARG(w->to), FW_STR_ARG(rest)));
	if (!path.p)
		return FW_ENOMEM;
	w->longer |= path.len > FW_LABEL_NAME_MAX;
	sql_rows_add(&w->put, SQL_V(SQL_INT(w->account_id), SQL_INT(sql_int(row, 0)), SQL_TEXT(path)));
	w->n++;
	return 0;
}

static int account_folder_rename(struct sql *s, void *ctx, struct fw_err *err)
{
	struct account_folder_renaming *w = ctx;
	int rc = sql_account_lock(s, w->account_id, err);

	w->n = 0;
	w->longer = false;
	w->put = (struct sql_rows)SQL_ROWS(s, err,
		"UPDATE subscriptions AS t SET folder = v.path {from} WHERE t.account_id = v.owner AND t.feed_id ="
		" v.feed",
		"owner:i feed:i path:t");
	rc = rc ? rc :
		  sql_query(s, "SELECT feed_id, folder FROM subscriptions WHERE account_id = ?1 AND folder <> ''",
			  SQL_V(SQL_INT(w->account_id)), account_folder_row, w, err);
	if (rc == FW_ENOMEM)
		rc = fw_no_memory(err);
	if (!rc && w->longer)
		rc = fw_err_set(err, FW_EINVAL, "%s: a folder below would have a name of more than %d bytes", s->name,
			FW_LABEL_NAME_MAX);
	w->put.rc = w->put.rc ? w->put.rc : rc;
	rc = sql_rows_end(&w->put);
	return rc || w->n ? rc :
			    fw_err_set(err, FW_ENOTFOUND, "folder '%.*s': the account has no such folder",
				    FW_STR_ARG(fw_str_sub(w->from, 0, 100)));
}

static int sql_account_folder_rename(
	struct store *st, int64_t account_id, struct fw_str from, struct fw_str to, bool only, struct fw_err *err)
{
	struct account_folder_renaming w = {.account_id = account_id, .from = from, .to = to, .only = only};
	int rc;

	fw_arena_init(&w.a, 0);
	rc = sql_transaction(sql_of(st), account_folder_rename, &w, err);
	fw_arena_finish(&w.a);
	return rc;
}

/* ---- labels ---------------------------------------------------------------------------------- */

struct account_label_listing {
	fw_label_cb *cb;
	void *ctx;
};

static int account_label_row(void *ctx, const struct sql_row *row)
{
	const struct account_label_listing *l = ctx;

	return l->cb(l->ctx, &(struct fw_label){sql_int(row, 0), sql_str(row, 1), sql_int(row, 2)});
}

static int sql_account_label_list(struct store *st, int64_t account_id, fw_label_cb *cb, void *ctx, struct fw_err *err)
{
	return sql_query(sql_of(st),
		"SELECT l.id, l.name, (SELECT count(*) FROM entry_labels e WHERE e.account_id = l.account_id"
		" AND e.label_id = l.id) FROM labels l WHERE l.account_id = ?1 ORDER BY l.name",
		SQL_V(SQL_INT(account_id)), account_label_row, &(struct account_label_listing){cb, ctx}, err);
}

struct account_labelling {
	int64_t account_id, id;
	struct fw_str name, to;
	int64_t next_id; /* account_label_shrink(): the first entry that still has it; 0: none */
};

static int account_label_find(struct sql *s, int64_t account_id, struct fw_str name, int64_t *id, struct fw_err *err)
{
	return sql_query_int(s, "SELECT id FROM labels WHERE account_id = ?1 AND name = ?2",
		SQL_V(SQL_INT(account_id), SQL_TEXT(name)), 0, id, err);
}

static int account_label_missing(struct fw_str name, struct fw_err *err)
{
	return fw_err_set(
		err, FW_ENOTFOUND, "label '%.*s': the account has no such label", FW_STR_ARG(fw_str_sub(name, 0, 100)));
}

static int account_label_make(struct sql *s, void *ctx, struct fw_err *err)
{
	struct account_labelling *w = ctx;
	const struct sql_value owner = SQL_INT(w->account_id);
	int64_t n = 0;
	int rc = sql_account_lock(s, w->account_id, err);

	rc = rc ? rc : account_label_find(s, w->account_id, w->name, &w->id, err);
	if (rc || w->id)
		return rc;
	rc = sql_query_int(s, "SELECT count(*) FROM labels WHERE account_id = ?1", SQL_V(owner), 0, &n, err);
	if (!rc && n >= FW_LABELS_MAX)
		return fw_err_set(err, FW_EINVAL,
			"%s: the limit of %d labels of an account is reached: remove some first", s->name,
			FW_LABELS_MAX);
	if (rc)
		return rc;
	rc = sql_exec(s, "UPDATE accounts SET label_id = label_id + 1 WHERE id = ?1", SQL_V(owner), err);
	rc = rc ? rc : sql_query_int(s, "SELECT label_id FROM accounts WHERE id = ?1", SQL_V(owner), 0, &w->id, err);
	return rc ? rc :
		    sql_exec(s, "INSERT INTO labels (account_id, id, name) VALUES (?1, ?2, ?3)",
			    SQL_V(owner, SQL_INT(w->id), SQL_TEXT(w->name)), err);
}

static int sql_account_label(
	struct store *st, int64_t account_id, struct fw_str name, bool make, int64_t *id, struct fw_err *err)
{
	struct account_labelling w = {.account_id = account_id, .name = name};
	int rc = account_label_find(sql_of(st), account_id, name, &w.id, err);

	if (!rc && !w.id)
		rc = make ? sql_transaction(sql_of(st), account_label_make, &w, err) : account_label_missing(name, err);
	*id = w.id;
	return rc;
}

/* Take the label from some entries; the last ones go with it. */
static int account_label_shrink(struct sql *s, void *ctx, struct fw_err *err)
{
	struct account_labelling *w = ctx;
	const struct sql_value owner = SQL_INT(w->account_id);
	int rc = sql_account_lock(s, w->account_id, err);

	rc = rc ? rc : account_label_find(s, w->account_id, w->name, &w->id, err);
	if (rc || !w->id)
		return rc ? rc : account_label_missing(w->name, err);
	rc = sql_query_int(s,
		"SELECT entry_id FROM entry_labels WHERE account_id = ?1 AND label_id = ?2 ORDER BY entry_id LIMIT 1"
		" OFFSET ?3",
		SQL_V(owner, SQL_INT(w->id), SQL_INT(STORE_EDIT_ROWS)), 0, &w->next_id, err);
	rc = rc ? rc :
		  sql_exec(s, "DELETE FROM entry_labels WHERE account_id = ?1 AND label_id = ?2 AND entry_id < ?3",
			  SQL_V(owner, SQL_INT(w->id), SQL_INT(w->next_id ? w->next_id : INT64_MAX)), err);
	return rc || w->next_id ?
		rc :
		sql_exec(s, "DELETE FROM labels WHERE account_id = ?1 AND id = ?2", SQL_V(owner, SQL_INT(w->id)), err);
}

static int account_label_remove(struct sql *s, struct account_labelling *w, struct fw_err *err)
{
	int rc;

	do
		rc = sql_transaction(s, account_label_shrink, w, err);
	while (!rc && w->next_id);
	return rc;
}

static int account_label_rename(struct sql *s, void *ctx, struct fw_err *err)
{
	struct account_labelling *w = ctx;
	const struct sql_value owner = SQL_INT(w->account_id);
	int64_t taken = 0;
	int rc = sql_account_lock(s, w->account_id, err);

	rc = rc ? rc : account_label_find(s, w->account_id, w->name, &w->id, err);
	if (rc || !w->id)
		return rc ? rc : account_label_missing(w->name, err);
	rc = account_label_find(s, w->account_id, w->to, &taken, err);
	if (!rc && taken && taken != w->id)
		return fw_err_set(err, FW_EINVAL, "label '%.*s': the name is taken: choose another one",
			FW_STR_ARG(fw_str_sub(w->to, 0, 100)));
	return rc ? rc :
		    sql_exec(s, "UPDATE labels SET name = ?3 WHERE account_id = ?1 AND id = ?2",
			    SQL_V(owner, SQL_INT(w->id), SQL_TEXT(w->to)), err);
}

static int sql_account_label_rename(
	struct store *st, int64_t account_id, struct fw_str from, struct fw_str to, struct fw_err *err)
{
	struct account_labelling w = {.account_id = account_id, .name = from, .to = to};

	return to.len ? sql_transaction(sql_of(st), account_label_rename, &w, err) :
			account_label_remove(sql_of(st), &w, err);
}

const struct store_accounts sql_accounts = {
	.add = sql_account_add,
	.set = sql_account_set,
	.remove = sql_account_remove,
	.list = sql_account_list,
	.token_put = sql_account_token_put,
	.token_remove = sql_account_token_remove,
	.token_list = sql_account_token_list,
	.token_find = sql_account_token_find,
	.token_use = sql_account_token_use,
	.subscribe = sql_account_subscribe,
	.room = sql_account_room,
	.subscription_set = sql_account_subscription_set,
	.unsubscribe = sql_account_unsubscribe,
	.subscriber_count = sql_account_subscriber_count,
	.subscription_list = sql_account_subscription_list,
	.folder_rename = sql_account_folder_rename,
	.label_list = sql_account_label_list,
	.label = sql_account_label,
	.label_rename = sql_account_label_rename,
	.stream = sql_account_stream,
	.stream_feeds = sql_account_stream_feeds,
	.entries_get = sql_account_entries_get,
	.edit = sql_account_edit,
	.mark_read = sql_account_mark_read,
	.newest_id = sql_account_newest_id,
	.icon_find = sql_icon_find,
	.icon_put = sql_icon_put,
	.dump = sql_account_dump,
	.load = sql_account_load,
};
