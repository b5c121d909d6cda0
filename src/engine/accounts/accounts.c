/* SPDX-License-Identifier: ISC */
/*
 * Accounts: names, logins, and the feeds that accounts bring. A feed that an account added has a
 * record of kind "account_feed": it is paused when nobody subscribes it any more, and resumed by
 * the next who does. The operator's feeds are left alone.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "base/url.h"
#include "base/utf8.h"
#include "engine/accounts/accounts.h"

/* feeds of an import that are stored at once: other writers wait for so many */
#define IMPORT_PART ((size_t)500)

/* ---- names ----------------------------------------------------------------------------------- */

int account_name_check(struct fw_str name, struct fw_err *err)
{
	bool good = name.len && name.len <= FW_ACCOUNT_NAME_MAX && name.p[0] != '-';

	for (size_t i = 0; good && i < name.len; i++)
		good = fw_is_alnum((unsigned char)name.p[i]) || strchr("_.-@", name.p[i]);
	return good ? 0 :
		      fw_err_set(err, FW_EINVAL,
			      "'%.*s': a name is 1 to %d letters, digits and _.-@, and does not start with -",
			      FW_STR_ARG(fw_str_sub(name, 0, FW_ACCOUNT_NAME_MAX)), FW_ACCOUNT_NAME_MAX);
}

struct account_finding {
	struct fw_arena *a;
	struct fw_account *out;
	struct fw_str *password;
	bool found;
};

static int account_found(void *ctx, const struct store_account *a)
{
	struct account_finding *w = ctx;

	w->found = true;
	*w->out = a->a;
	w->out->name = fw_arena_str(w->a, a->a.name);
	w->out->password_mark = fw_hash64(a->password.p ? a->password.p : "", a->password.len);
	if (w->password)
		*w->password = fw_arena_str(w->a, a->password);
	return w->out->name.p && (!w->password || w->password->p) ? 0 : FW_ENOMEM;
}

/* The account, or FW_ENOTFOUND; strings go into the arena. password may be NULL. */
static int account_find(struct fw_store *st, struct fw_str name, struct fw_arena *a, struct fw_account *out,
	struct fw_str *password, struct fw_err *err)
{
	struct account_finding w = {.a = a, .out = out, .password = password};
	const struct store_accounts *d = store_accounts(store_of(st), err);
	int rc = d ? 0 : FW_EINVAL;

	/* the engines differ in what they make of other names, such as "alice " */
	if (!rc && !account_name_check(name, &(struct fw_err){0}))
		rc = d->list(store_of(st), name, account_found, &w, err);
	if (rc == FW_ENOMEM)
		return fw_no_memory(err);
	return rc || w.found ? rc :
			       fw_err_set(err, FW_ENOTFOUND, "account '%.*s': no account has this name",
				       FW_STR_ARG(fw_str_sub(name, 0, FW_ACCOUNT_NAME_MAX)));
}

int fw_account_get(
	struct fw_store *st, struct fw_str name, struct fw_arena *a, struct fw_account *out, struct fw_err *err)
{
	return account_find(st, name, a, out, NULL, STORE_ERR(err));
}

struct account_listing_all {
	fw_account_cb *cb;
	void *ctx;
};

static int account_list_one(void *ctx, const struct store_account *a)
{
	const struct account_listing_all *l = ctx;

	return l->cb(l->ctx, &a->a);
}

int fw_account_list(struct fw_store *st, fw_account_cb *cb, void *ctx, struct fw_err *err)
{
	const struct store_accounts *d = store_accounts(store_of(st), STORE_ERR(err));

	return d ? d->list(store_of(st), FW_STR_NONE, account_list_one, &(struct account_listing_all){cb, ctx},
			   STORE_ERR(err)) :
		   FW_EINVAL;
}

/* ---- accounts -------------------------------------------------------------------------------- */

int fw_account_add(struct fw_store *st, struct fw_str name, struct fw_str password, bool admin, int64_t now_ms,
	int64_t *id, struct fw_err *err)
{
	char hash[ACCOUNT_PASSWORD_HASH_MAX];
	struct store_account a = {.a = {.name = name, .admin = admin, .created_ms = now_ms}};
	const struct store_accounts *d;
	int rc;

	*id = 0;
	err = STORE_ERR(err);
	d = store_accounts(store_of(st), err);
	if (!d)
		return FW_EINVAL;
	rc = account_name_check(name, err);
	rc = rc ? rc : account_password_hash(password, hash, err);
	a.password = fw_str(hash);
	return rc ? rc : d->add(store_of(st), &a, id, err);
}

/* Change members of an account that is found by its name. */
static int account_change(
	struct fw_store *st, struct fw_str name, struct store_account *to, unsigned what, struct fw_err *err)
{
	struct fw_account a;
	struct fw_arena arena;
	int rc;

	fw_arena_init(&arena, 0);
	rc = account_find(st, name, &arena, &a, NULL, err);
	to->a.id = rc ? 0 : a.id;
	rc = rc ? rc : store_of(st)->driver->accounts->set(store_of(st), to, what, err);
	fw_arena_finish(&arena);
	return rc;
}

int fw_account_set_password(struct fw_store *st, struct fw_str name, struct fw_str password, struct fw_err *err)
{
	char hash[ACCOUNT_PASSWORD_HASH_MAX];
	int rc = account_password_hash(password, hash, STORE_ERR(err));

	return rc ? rc :
		    account_change(st, name, &(struct store_account){.password = fw_str(hash)}, STORE_ACCOUNT_PASSWORD,
			    STORE_ERR(err));
}

int fw_account_set_admin(struct fw_store *st, struct fw_str name, bool admin, struct fw_err *err)
{
	return account_change(st, name, &(struct store_account){.a.admin = admin}, STORE_ACCOUNT_ADMIN, STORE_ERR(err));
}

int fw_account_login(struct fw_store *st, struct fw_str name, struct fw_str password, int64_t *id, struct fw_err *err)
{
	struct fw_account a = {0};
	struct fw_str hash = FW_STR_NONE;
	struct fw_arena arena;
	bool is = false;
	int rc;

	*id = 0;
	err = STORE_ERR(err);
	fw_arena_init(&arena, 0);
	rc = account_find(st, name, &arena, &a, &hash, err);
	if (!rc || rc == FW_ENOTFOUND)
		is = account_password_is(password, rc ? FW_STR_NONE : hash);
	fw_arena_finish(&arena);
	if (rc && rc != FW_ENOTFOUND)
		return rc;
	*id = is ? a.id : 0;
	return is ? 0 : FW_ERR(err, FW_ENOTFOUND, "the name or the password is wrong");
}

/* ---- the feeds that accounts bring ----------------------------------------------------------- */

/* Did an account add this feed? */
static int account_feed_is(struct fw_store *st, int64_t feed_id, bool *is, struct fw_err *err)
{
	struct account_feed_key k;
	struct fw_record r;
	struct fw_arena a;
	int rc;

	fw_arena_init(&a, 0);
	rc = fw_store_record_get(st, STORE_ACCOUNT_FEED, account_feed_key(&k, feed_id), &a, &r, err);
	fw_arena_finish(&a);
	*is = !rc;
	return rc == FW_ENOTFOUND ? 0 : rc;
}

/* Give the feed this status, if it is an account's and has the other one. */
static int account_feed_switch(
	struct fw_store *st, int64_t feed_id, enum fw_feed_status from, enum fw_feed_status to, struct fw_err *err)
{
	struct fw_feed f;
	struct fw_arena a;
	bool is;
	int rc = account_feed_is(st, feed_id, &is, err);

	if (rc || !is)
		return rc;
	fw_arena_init(&a, 0);
	rc = fw_store_feed_find(st, feed_id, FW_STR_NONE, &a, &f, err);
	if (!rc && f.status == from) {
		f.status = to;
		rc = fw_store_feed_set(st, &f, FW_SET_STATUS, err);
	}
	fw_arena_finish(&a);
	return rc == FW_ENOTFOUND ? 0 : rc;
}

/*
 * Pause a feed without subscribers. One who comes meanwhile may still find it active, and resume
 * nothing; so subscribers are counted again.
 */
static int account_feed_abandon(struct fw_store *st, int64_t feed_id, struct fw_err *err)
{
	const struct store_accounts *d = store_of(st)->driver->accounts;
	int64_t n;
	int rc = d->subscriber_count(store_of(st), feed_id, &n, err);

	if (rc || n)
		return rc;
	rc = account_feed_switch(st, feed_id, FW_FEED_ACTIVE, FW_FEED_PAUSED, err);
	rc = rc ? rc : d->subscriber_count(store_of(st), feed_id, &n, err);
	return rc || !n ? rc : account_feed_switch(st, feed_id, FW_FEED_PAUSED, FW_FEED_ACTIVE, err);
}

/* ---- subscriptions --------------------------------------------------------------------------- */

static void account_feed_joined_log(const struct fw_feed_new *f, const struct store_wanted_feed *w)
{
	if (w->access == FEED_ACCESS_ANEW)
		fw_info("feed %lld: it was refused without a login, and an account gave one: subscriptions without it "
			"have ended",
			(long long)f->id);
}

/*
 * The feeds' own titles and folders in the store are the operator's: an account sets none. A feed
 * that the account may not have gets the id 0.
 */
static int account_feeds_add_some(struct fw_store *st, struct fw_feed_new *f, struct store_wanted_feed *w, size_t n,
	int64_t account_id, int64_t now_ms, struct fw_err *err)
{
	int rc = fw_store_subscribe(st, f, n, err);

	for (size_t i = 0; i < n; i++) {
		w[i].set.feed_id = f[i].id;
		w[i].login = (struct feed_login){f[i].username, f[i].password};
		w[i].fresh = !f[i].existed;
	}
	rc = rc ? rc : store_of(st)->driver->accounts->subscribe(store_of(st), account_id, w, n, now_ms, err);
	for (size_t i = 0; !rc && i < n; i++) {
		account_feed_joined_log(&f[i], &w[i]);
		if (w[i].refused && w[i].fresh)
			rc = account_feed_abandon(st, f[i].id, err);
		else if (!w[i].refused && !w[i].existed && !w[i].fresh)
			rc = account_feed_switch(st, f[i].id, FW_FEED_PAUSED, FW_FEED_ACTIVE, err);
		if (w[i].refused)
			f[i].id = 0;
	}
	return rc;
}

struct account_own_feeds {
	struct fw_map urls; /* of those that it wants: each once */
	size_t wanted_n;
};

static int account_own_feed(void *ctx, const struct fw_subscription *s)
{
	struct account_own_feeds *o = ctx;

	o->wanted_n -= fw_map_get(&o->urls, s->feed->url) != NULL;
	return 0;
}

/*
 * Before a feed is added to the store: would the account have more than it may have? Only near the
 * limit its subscriptions are read.
 */
static int account_feeds_fit(
	struct fw_store *st, const struct fw_feed_new *f, size_t n, int64_t account_id, struct fw_err *err)
{
	struct account_own_feeds o = {.wanted_n = 0};
	int64_t room;
	int rc = store_of(st)->driver->accounts->room(store_of(st), account_id, &room, err);

	if (rc || (uint64_t)room >= n)
		return rc;
	fw_map_init(&o.urls, 0);
	for (size_t i = 0; !rc && i < n; i++)
		o.wanted_n += !fw_map_add(&o.urls, f[i].url, &o, &rc);
	rc = rc ? fw_no_memory(err) : fw_account_subscription_list(st, account_id, 0, false, account_own_feed, &o, err);
	fw_map_finish(&o.urls);
	if (!rc && o.wanted_n > (uint64_t)room)
		return fw_err_set(err, FW_EINVAL,
			"account: %zu feeds are too many, as it may have %lld more (account_feeds_max in"
			" feedwheel.conf(5))",
			o.wanted_n, (long long)room);
	return rc;
}

/* FW_EINVAL: no feed may be had; the message names the last one. */
static int account_feeds_add(struct fw_store *st, struct fw_feed_new *f, struct store_wanted_feed *w, size_t n,
	int64_t account_id, int64_t now_ms, struct fw_err *err)
{
	int rc = account_feeds_fit(st, f, n, account_id, err);
	size_t refused_n = 0;

	for (size_t i = 0; !rc && i < n; i += IMPORT_PART)
		rc = account_feeds_add_some(st, f + i, w + i, FW_MIN(n - i, IMPORT_PART), account_id, now_ms, err);
	for (size_t i = 0; !rc && i < n; i++)
		refused_n += w[i].refused != NULL;
	return rc || !n || refused_n < n ?
		rc :
		fw_err_set(err, FW_EINVAL, "%.*s: %s", FW_STR_ARG(f[n - 1].url), w[n - 1].refused);
}

/* Clean the URL; a login in it is the feed's. */
static int account_url_clean(struct fw_arena *a, struct fw_feed_new *f, struct fw_err *err)
{
	struct fw_str url, user, pass;
	int rc = fw_url_clean(a, f->url, &url, &user, &pass, err);

	if (!rc && !fw_utf8_fits(url, FW_URL_MAX))
		rc = fw_err_set(err, FW_EINVAL, "the URL is not UTF-8");
	if (rc)
		return rc;
	f->url = url;
	f->username = user.p ? user : f->username;
	f->password = user.p ? pass : f->password;
	return 0;
}

static struct fw_subscription account_subscription_of(const struct fw_feed_new *f)
{
	struct fw_subscription s = {.title = f->user_title, .folder = f->folder};

	if (!fw_utf8_fits(s.title, FW_LABEL_NAME_MAX))
		s.title = FW_STR_NONE;
	s.folder = fw_utf8_fits(s.folder, FW_LABEL_NAME_MAX) && s.folder.p ? store_folder_trim(s.folder) : FW_STR_NONE;
	return s;
}

int fw_account_import(struct fw_store *st, int64_t account_id, struct fw_feed_new *feed, size_t n, int64_t now_ms,
	size_t *added, struct fw_err *err)
{
	struct store_wanted_feed *w = calloc(n + 1, sizeof(*w));
	struct fw_feed_new *f = calloc(n + 1, sizeof(*f));
	struct fw_arena a;
	int rc;

	*added = 0;
	err = STORE_ERR(err);
	fw_arena_init(&a, 0);
	rc = !store_accounts(store_of(st), err) ? FW_EINVAL : w && f ? 0 : fw_no_memory(err);
	for (size_t i = 0; !rc && i < n; i++) {
		f[i] = (struct fw_feed_new){
			.url = feed[i].url, .username = feed[i].username, .password = feed[i].password};
		w[i].set = account_subscription_of(&feed[i]);
		rc = account_url_clean(&a, &f[i], err);
	}
	rc = rc || !n ? rc : account_feeds_add(st, f, w, n, account_id, now_ms, err);
	for (size_t i = 0; !rc && i < n; i++) {
		feed[i].id = f[i].id;
		feed[i].existed = w[i].existed;
		*added += f[i].id && !w[i].existed;
	}
	fw_arena_finish(&a);
	free(w);
	free(f);
	return rc;
}

int fw_account_unsubscribe(struct fw_store *st, int64_t account_id, int64_t feed_id, struct fw_err *err)
{
	const struct store_accounts *d = store_accounts(store_of(st), STORE_ERR(err));
	int rc = d ? d->unsubscribe(store_of(st), account_id, feed_id, STORE_ERR(err)) : FW_EINVAL;

	return rc ? rc : account_feed_abandon(st, feed_id, STORE_ERR(err));
}

static int account_feed_id_add(void *ctx, const struct fw_subscription *s)
{
	fw_buf_add(ctx, &s->feed_id, sizeof(s->feed_id));
	return ((struct fw_buf *)ctx)->rc;
}

int fw_account_remove(struct fw_store *st, struct fw_str name, struct fw_err *err)
{
	struct fw_buf feeds = FW_BUF_INIT(0);
	struct fw_account a;
	struct fw_arena arena;
	const int64_t *id;
	int rc;

	err = STORE_ERR(err);
	fw_arena_init(&arena, 0);
	rc = account_find(st, name, &arena, &a, NULL, err);
	rc = rc ? rc : fw_account_subscription_list(st, a.id, 0, true, account_feed_id_add, &feeds, err);
	rc = rc == FW_ENOMEM ? fw_no_memory(err) : rc;
	rc = rc ? rc : store_of(st)->driver->accounts->remove(store_of(st), a.id, err);
	id = (const int64_t *)(const void *)feeds.p;
	for (size_t i = 0; !rc && i < feeds.len / sizeof(*id); i++)
		rc = account_feed_abandon(st, id[i], err);
	fw_buf_finish(&feeds);
	fw_arena_finish(&arena);
	return rc;
}
