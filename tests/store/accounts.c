/* SPDX-License-Identifier: ISC */
/*
 * Accounts on each SQL store: every function of api/account.h, and a random walk over what changes
 * read states, against a naive model. On Redis: refused with words.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/account.h"
#include "base/clock.h"
#include "base/hash.h"
#include "drv.h"
#include "feedwheel/engine.h"
#include "store/accounts.h"
#include "store/driver.h"
#include "store/sql/core.h"

static struct fw_err err;
static struct fw_arena A;

#define PASSWORD FW_STR("correct horse")

static bool has_accounts(int driver)
{
	return strcmp(under_test[driver].name, "redis") != 0;
}

static int64_t account_add(struct fw_store *st, const char *name)
{
	int64_t id;

	OK(fw_account_add(st, fw_str(name), PASSWORD, false, NOW, &id, &err));
	return id;
}

/* Subscribe to one feed; set may be NULL. *feed is 0 if it is refused. */
static int subscribe_one(struct fw_store *st, int64_t account, const char *url, const struct fw_subscription *set,
	int64_t *feed, bool *added)
{
	struct fw_feed_new f = {.url = fw_str(url),
		.user_title = set ? set->title : FW_STR_NONE,
		.folder = set ? set->folder : FW_STR_NONE};
	size_t n;
	int rc = fw_account_import(st, account, &f, 1, NOW, &n, &err);

	*feed = f.id;
	*added = n > 0;
	return rc;
}

static int64_t account_subscribe(struct fw_store *st, int64_t account, const char *url, const char *folder)
{
	struct fw_subscription s = {.folder = folder ? fw_str(folder) : FW_STR_NONE};
	int64_t feed;
	bool added;

	OK(subscribe_one(st, account, url, &s, &feed, &added));
	return feed;
}

struct listed {
	int64_t id[8000], feed[8000];
	bool read[8000], starred[8000];
	size_t label_n[8000], n;
};
static struct listed L;

static int list_one(void *ctx, const struct fw_stream_entry *e)
{
	struct listed *l = ctx;

	ck_assert_uint_lt(l->n, FW_N(l->id));
	l->id[l->n] = e->entry->id;
	l->feed[l->n] = e->entry->feed_id;
	l->read[l->n] = e->read;
	l->starred[l->n] = e->starred;
	l->label_n[l->n++] = e->label_n;
	return 0;
}

static size_t ids(struct fw_store *st, struct fw_stream s)
{
	L.n = 0;
	OK(fw_account_ids(st, &s, list_one, &L, &err));
	return L.n;
}

static size_t entries(struct fw_store *st, struct fw_stream s)
{
	L.n = 0;
	OK(fw_account_entries(st, &s, list_one, &L, &err));
	return L.n;
}

static int unread_add(void *ctx, const struct fw_subscription *s)
{
	*(int64_t *)ctx += s->unread_n;
	return 0;
}

static int64_t unread(struct fw_store *st, int64_t account)
{
	int64_t n = 0;

	OK(fw_account_subscription_list(st, account, 0, true, unread_add, &n, &err));
	return n;
}

static void edit(struct fw_store *st, int64_t account, int64_t id, int read, int64_t add, int64_t remove)
{
	struct fw_entry_edit e = {
		.read = read, .add = &add, .remove = &remove, .add_n = add >= 0, .remove_n = remove >= 0};

	OK(fw_account_edit(st, account, &id, 1, &e, NOW, &err));
}

/* ---- accounts and tokens --------------------------------------------------------------------- */

static int count_account(void *ctx, const struct fw_account *a)
{
	ck_assert(a->name.len > 0);
	++*(int *)ctx;
	return 0;
}

START_TEST(accounts_come_and_go)
{
	struct fw_store *st = fresh(_i);
	struct fw_account a;
	int64_t alice, bob, id;
	int n = 0;

	alice = account_add(st, "alice");
	bob = account_add(st, "Bob.B-1@x");
	ck_assert(alice > 0 && bob > alice);
	IS(fw_account_add(st, FW_STR("alice"), PASSWORD, true, NOW, &id, &err), FW_EINVAL);
	ck_assert(strstr(err.text, "taken"));
	IS(fw_account_add(st, FW_STR("a b"), PASSWORD, true, NOW, &id, &err), FW_EINVAL);
	IS(fw_account_add(st, FW_STR("-a"), PASSWORD, true, NOW, &id, &err), FW_EINVAL);
	IS(fw_account_add(st, FW_STR("carol"), FW_STR("short"), true, NOW, &id, &err), FW_EINVAL);
	ck_assert(strstr(err.text, "8 to 1024"));
	OK(fw_account_get(st, FW_STR("alice"), &A, &a, &err));
	ck_assert(a.id == alice && !a.admin && a.created_ms == NOW && a.token_n == 0);
	IS(fw_account_get(st, FW_STR("nobody"), &A, &a, &err), FW_ENOTFOUND);
	OK(fw_account_set_admin(st, FW_STR("alice"), true, &err));
	OK(fw_account_get(st, FW_STR("alice"), &A, &a, &err));
	ck_assert(a.admin);
	OK(fw_account_list(st, count_account, &n, &err));
	ck_assert_int_eq(n, 2);
	OK(fw_account_login(st, FW_STR("alice"), PASSWORD, &id, &err));
	ck_assert_int_eq(id, alice);
	IS(fw_account_login(st, FW_STR("alice"), FW_STR("wrong horse"), &id, &err), FW_ENOTFOUND);
	ck_assert_int_eq(id, 0);
	IS(fw_account_login(st, FW_STR("nobody"), PASSWORD, &id, &err), FW_ENOTFOUND);
	IS(fw_account_login(st, FW_STR("alice "), PASSWORD, &id, &err), FW_ENOTFOUND);
	IS(fw_account_login(st, FW_STR("\xff"), PASSWORD, &id, &err), FW_ENOTFOUND);
	IS(fw_account_login(st, FW_STR("alice"), FW_STR_NONE, &id, &err), FW_ENOTFOUND);
	OK(fw_account_set_password(st, FW_STR("alice"), FW_STR("another one"), &err));
	IS(fw_account_login(st, FW_STR("alice"), PASSWORD, &id, &err), FW_ENOTFOUND);
	OK(fw_account_login(st, FW_STR("alice"), FW_STR("another one"), &id, &err));
	OK(fw_account_remove(st, FW_STR("alice"), &err));
	IS(fw_account_remove(st, FW_STR("alice"), &err), FW_ENOTFOUND);
	ck_assert_int_gt(account_add(st, "alice"), bob); /* an id is never used again */
	check_clean(st);
	fw_store_close(st);
}
END_TEST

static int count_token(void *ctx, const struct fw_account_token *t)
{
	(void)t;
	++*(int *)ctx;
	return 0;
}

START_TEST(tokens_find_their_account)
{
	struct fw_store *st = fresh(_i);
	int64_t alice = account_add(st, "alice");
	char text[FW_ACCOUNT_TOKEN_MAX], again[FW_ACCOUNT_TOKEN_MAX], login[FW_ACCOUNT_TOKEN_MAX];
	struct fw_account a;
	int n = 0;

	OK(fw_account_token_add(st, alice, FW_STR("phone"), FW_ACCOUNT_TOKEN_CLIENT, NOW, FW_NO_DATE, text, &err));
	ck_assert_uint_eq(strlen(text), 43);
	OK(fw_account_token_find(st, fw_str(text), FW_ACCOUNT_TOKEN_CLIENT, NOW, &A, &a, &err));
	ck_assert(a.id == alice && fw_str_eq(a.name, FW_STR("alice")));
	IS(fw_account_token_find(st, fw_str(text), FW_ACCOUNT_TOKEN_SESSION, NOW, &A, &a, &err), FW_ENOTFOUND);
	IS(fw_account_token_find(st, FW_STR("guess"), FW_ACCOUNT_TOKEN_CLIENT, NOW, &A, &a, &err), FW_ENOTFOUND);
	OK(fw_account_get(st, FW_STR("alice"), &A, &a, &err));
	ck_assert(a.used_ms == NOW && a.token_n == 1);
	/* one of the same name replaces it */
	OK(fw_account_token_add(st, alice, FW_STR("phone"), FW_ACCOUNT_TOKEN_CLIENT, NOW, FW_NO_DATE, again, &err));
	IS(fw_account_token_find(st, fw_str(text), FW_ACCOUNT_TOKEN_CLIENT, NOW, &A, &a, &err), FW_ENOTFOUND);
	OK(fw_account_token_find(st, fw_str(again), FW_ACCOUNT_TOKEN_CLIENT, NOW, &A, &a, &err));
	OK(fw_account_token_add(st, alice, FW_STR("s1"), FW_ACCOUNT_TOKEN_SESSION, NOW, NOW + 1000, text, &err));
	/* a use gives it its time again */
	OK(fw_account_token_find(st, fw_str(text), FW_ACCOUNT_TOKEN_SESSION, NOW + 999, &A, &a, &err));
	OK(fw_account_token_find(st, fw_str(text), FW_ACCOUNT_TOKEN_SESSION, NOW + 1998, &A, &a, &err));
	IS(fw_account_token_find(st, fw_str(text), FW_ACCOUNT_TOKEN_SESSION, NOW + 1999, &A, &a, &err), FW_ENOTFOUND);
	OK(fw_account_token_list(st, alice, count_token, &n, &err));
	ck_assert_int_eq(n, 2);
	/* sessions and logins end with the password, whoever changes it */
	OK(fw_account_token_add(st, alice, FW_STR("phone"), FW_ACCOUNT_TOKEN_LOGIN, NOW, FW_NO_DATE, login, &err));
	OK(fw_account_token_find(st, fw_str(login), FW_ACCOUNT_TOKEN_CLIENT, NOW, &A, &a, &err));
	OK(fw_account_token_add(st, alice, FW_STR("s2"), FW_ACCOUNT_TOKEN_SESSION, NOW, NOW + 1000, text, &err));
	OK(fw_account_set_password(st, FW_STR("alice"), FW_STR("another one"), &err));
	IS(fw_account_token_find(st, fw_str(text), FW_ACCOUNT_TOKEN_SESSION, NOW, &A, &a, &err), FW_ENOTFOUND);
	OK(fw_account_token_find(st, fw_str(again), FW_ACCOUNT_TOKEN_CLIENT, NOW, &A, &a, &err));
	IS(fw_account_token_find(st, fw_str(login), FW_ACCOUNT_TOKEN_CLIENT, NOW, &A, &a, &err), FW_ENOTFOUND);
	/* one kind, or all that have the name */
	OK(fw_account_token_add(st, alice, FW_STR("phone"), FW_ACCOUNT_TOKEN_FEVER, NOW, FW_NO_DATE, text, &err));
	OK(fw_account_token_remove(st, alice, FW_ACCOUNT_TOKEN_FEVER, FW_STR("phone"), &err));
	IS(fw_account_token_remove(st, alice, FW_ACCOUNT_TOKEN_FEVER, FW_STR("phone"), &err), FW_ENOTFOUND);
	OK(fw_account_token_find(st, fw_str(again), FW_ACCOUNT_TOKEN_CLIENT, NOW, &A, &a, &err));
	OK(fw_account_token_remove(st, alice, FW_ACCOUNT_TOKEN_KIND_N, FW_STR("phone"), &err));
	IS(fw_account_token_remove(st, alice, FW_ACCOUNT_TOKEN_KIND_N, FW_STR("phone"), &err), FW_ENOTFOUND);
	IS(fw_account_token_find(st, fw_str(again), FW_ACCOUNT_TOKEN_CLIENT, NOW, &A, &a, &err), FW_ENOTFOUND);
	IS(fw_account_token_add(st, 99, FW_STR("x"), FW_ACCOUNT_TOKEN_CLIENT, NOW, FW_NO_DATE, text, &err),
		FW_ENOTFOUND);
	for (int i = 0; i < FW_ACCOUNT_TOKENS_MAX; i++)
		OK(fw_account_token_add(st, alice, fw_str(fw_arena_printf(&A, "t%d", i)), FW_ACCOUNT_TOKEN_CLIENT,
			NOW + 2000, FW_NO_DATE, text, &err)); /* the session has expired */
	IS(fw_account_token_add(st, alice, FW_STR("more"), FW_ACCOUNT_TOKEN_CLIENT, NOW, FW_NO_DATE, text, &err),
		FW_ELIMIT);
	fw_store_close(st);
}
END_TEST

START_TEST(fever_clients_send_a_hash)
{
	struct fw_store *st = fresh(_i);
	int64_t alice = account_add(st, "alice");
	char text[FW_ACCOUNT_TOKEN_MAX];
	struct fw_account a;

	OK(fw_account_token_add(st, alice, FW_STR("reeder"), FW_ACCOUNT_TOKEN_FEVER, NOW, FW_NO_DATE, text, &err));
	IS(fw_account_token_find(st, fw_str(text), FW_ACCOUNT_TOKEN_FEVER, NOW, &A, &a, &err), FW_ENOTFOUND);
	IS(fw_account_token_add(st, 99, FW_STR("x"), FW_ACCOUNT_TOKEN_FEVER, NOW, FW_NO_DATE, text, &err),
		FW_ENOTFOUND);
	fw_store_close(st);
}
END_TEST

/* ---- subscriptions, labels ------------------------------------------------------------------- */

struct sub {
	struct fw_subscription s;
	char title[100], folder[FW_LABEL_NAME_MAX + 1], url[100];
	int n;
};

static int sub_one(void *ctx, const struct fw_subscription *s)
{
	struct sub *to = ctx;

	to->s = *s;
	to->n++;
	ck_assert(fw_str_copy(to->folder, sizeof(to->folder), s->folder));
	if (s->feed) {
		ck_assert(fw_str_copy(to->title, sizeof(to->title), s->title));
		ck_assert(fw_str_copy(to->url, sizeof(to->url), s->feed->url));
	}
	return 0;
}

static struct sub sub_of(struct fw_store *st, int64_t account, int64_t feed)
{
	struct sub s = {.n = 0};

	OK(fw_account_subscription_list(st, account, feed, false, sub_one, &s, &err));
	return s;
}

START_TEST(subscriptions_have_titles_and_folders)
{
	struct fw_store *st = fresh(_i);
	int64_t alice = account_add(st, "alice"), bob = account_add(st, "bob"), a, b;
	struct fw_subscription set = {.title = FW_STR("Mine"), .folder = FW_STR("/News/Tech/")};
	struct sub s;
	bool added;

	a = subscribe(st, "https://a.example/", NOW);
	put_entries(st, a, 0, 130);
	OK(subscribe_one(st, alice, "https://a.example/", &set, &b, &added));
	ck_assert(a == b && added);
	OK(subscribe_one(st, alice, "https://a.example/", &(struct fw_subscription){0}, &b, &added));
	ck_assert(!added);
	s = sub_of(st, alice, a);
	ck_assert_str_eq(s.title, "Mine");
	ck_assert_str_eq(s.folder, "News/Tech");
	ck_assert_str_eq(s.url, "https://a.example/");
	ck_assert(s.s.unread_n == 100 && s.s.added_ms == NOW && s.s.newest_ms > 0); /* the newest 100 */
	ck_assert_int_eq(sub_of(st, bob, 0).n, 0);
	ck_assert_int_eq(unread(st, bob), 0);
	b = account_subscribe(st, alice, "https://b.example/", "News");
	OK(fw_account_folder_rename(st, alice, FW_STR("News"), FW_STR("Weekly"), true, &err));
	ck_assert_str_eq(sub_of(st, alice, a).folder, "News/Tech");
	ck_assert_str_eq(sub_of(st, alice, b).folder, "Weekly");
	IS(fw_account_folder_rename(st, alice, FW_STR("News"), FW_STR("x"), true, &err), FW_ENOTFOUND);
	OK(fw_account_folder_rename(st, alice, FW_STR("Weekly"), FW_STR("News"), false, &err));
	OK(fw_account_folder_rename(st, alice, FW_STR("News"), FW_STR("Daily"), false, &err));
	ck_assert_str_eq(sub_of(st, alice, a).folder, "Daily/Tech");
	ck_assert_str_eq(sub_of(st, alice, b).folder, "Daily");
	IS(fw_account_folder_rename(st, alice, FW_STR("News"), FW_STR("x"), false, &err), FW_ENOTFOUND);
	OK(fw_account_folder_rename(st, alice, FW_STR("Daily/Tech"), FW_STR(""), false, &err));
	ck_assert_str_eq(sub_of(st, alice, a).folder, "");
	OK(fw_account_subscription_set(st, alice, &(struct fw_subscription){.feed_id = b, .title = FW_STR("B")}, &err));
	s = sub_of(st, alice, b);
	ck_assert_str_eq(s.title, "B");
	ck_assert_str_eq(s.folder, "Daily");
	IS(fw_account_subscription_set(st, bob, &(struct fw_subscription){.feed_id = b, .title = FW_STR("B")}, &err),
		FW_ENOTFOUND);
	IS(fw_account_unsubscribe(st, bob, a, &err), FW_ENOTFOUND);
	OK(fw_account_unsubscribe(st, alice, a, &err));
	ck_assert_int_eq(sub_of(st, alice, 0).n, 1);
	ck_assert_int_eq(find(st, a, &A).status, FW_FEED_ACTIVE); /* the operator's */
	OK(fw_account_unsubscribe(st, alice, b, &err));
	ck_assert_int_eq(find(st, b, &A).status, FW_FEED_PAUSED); /* nobody's any more */
	account_subscribe(st, bob, "https://b.example/", NULL);
	ck_assert_int_eq(find(st, b, &A).status, FW_FEED_ACTIVE);
	OK(fw_account_remove(st, FW_STR("bob"), &err));
	ck_assert_int_eq(find(st, b, &A).status, FW_FEED_PAUSED);
	IS(subscribe_one(st, alice, "nonsense", NULL, &b, &added), FW_EINVAL);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

START_TEST(invalid_names_are_refused)
{
	static const char *const URL[] = {"ftp://a.example/", "nonsense", "", "https://a.example/\x01",
		"https://a.example/\xff", "https:///x", "gopher://a.example/"};
	static const char *const NAME[] = {"a\tb", "a\x7f", "\xff", "\xc3(", "x\n"};
	struct fw_store *st = fresh(_i);
	int64_t alice = account_add(st, "alice"), feed = account_subscribe(st, alice, "https://a.example/", "News"), id;
	struct fw_str name[FW_N(NAME) + 1];
	struct fw_feed_new f[2] = {{.url = FW_STR("http://u:p@B.example")}, {.url = FW_STR("ftp://c.example/")}};
	char longer[FW_LABEL_NAME_MAX + 2];
	struct sub s;
	size_t n;
	bool added;

	for (size_t i = 0; i < FW_N(URL); i++) {
		IS(subscribe_one(st, alice, URL[i], NULL, &id, &added), FW_EINVAL);
		ck_assert(!added && !id);
	}
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = 0;
	for (size_t i = 0; i < FW_N(NAME); i++)
		name[i] = fw_str(NAME[i]);
	name[FW_N(NAME)] = fw_str(longer);
	for (size_t i = 0; i < FW_N(name); i++) {
		const struct fw_subscription set[2] = {
			{.feed_id = feed, .title = name[i]}, {.feed_id = feed, .folder = name[i]}};

		for (size_t k = 0; k < 2; k++)
			IS(fw_account_subscription_set(st, alice, &set[k], &err), FW_EINVAL);
		IS(fw_account_folder_rename(st, alice, FW_STR("News"), name[i], false, &err), FW_EINVAL);
		IS(fw_account_label(st, alice, name[i], true, &id, &err), FW_EINVAL);
	}
	IS(fw_account_import(st, alice, f, 2, NOW, &n, &err), FW_EINVAL);
	ck_assert(strstr(err.text, "http or https"));
	ck_assert_int_eq(sub_of(st, alice, 0).n, 1);
	ck_assert_str_eq(sub_of(st, alice, feed).folder, "News");
	ck_assert_int_eq(stats(st).feed_n, 1);
	/* of a file they are left out */
	f[0].user_title = name[0];
	f[0].folder = name[FW_N(NAME)];
	OK(fw_account_import(st, alice, f, 1, NOW, &n, &err));
	s = sub_of(st, alice, f[0].id);
	ck_assert(n == 1 && s.n == 1);
	ck_assert_str_eq(s.url, "http://b.example/");
	ck_assert_str_eq(s.title, "");
	ck_assert_str_eq(s.folder, "");
	ck_assert(fw_str_eq(find(st, f[0].id, &A).username, FW_STR("u")));
	check_clean(st);
	fw_store_close(st);
}
END_TEST

/* The feed's server wants a login: 401. */
static void login_refused(struct fw_store *st, int64_t feed_id)
{
	struct store_lease *l = drv_join(store_of(st), "worker", LONG_MS);
	struct fw_feed f;
	struct fw_outcome o = drv_outcome(store_of(st), feed_id, &f, NOW + FW_DAY_MS);

	f.http_status = o.visit.http_status = 401;
	f.last_kind = o.visit.kind = FW_VISIT_HTTP;
	f.last_ok_ms = 0;
	IS(drv_commit(store_of(st), l->id, &o, 1), 0);
	ck_assert_int_eq(o.rc, 0);
	drv_leave(store_of(st), l);
}

/* Subscribe; the feed's id, or 0 if it is refused. */
static int64_t login_try(struct fw_store *st, int64_t account, const char *url)
{
	int64_t id;
	bool added;
	int rc = subscribe_one(st, account, url, NULL, &id, &added);

	ck_assert(rc == 0 || (rc == FW_EINVAL && !id && strstr(err.text, " login")));
	return id;
}

/* Whoever has not the login of a feed cannot read it by its address. */
START_TEST(logins_are_not_shared)
{
	struct fw_store *st = fresh(_i);
	int64_t alice = account_add(st, "alice"), bob = account_add(st, "bob"), a, b;
	struct fw_feed_new f[3] = {{.url = FW_STR("https://c.example/")}, {.url = FW_STR("https://a.example/")},
		{.url = FW_STR("https://d.example/")}};
	size_t n;

	a = login_try(st, alice, "https://me:right@a.example/");
	ck_assert(a && !login_try(st, bob, "https://a.example/") && !login_try(st, bob, "https://me:wrong@a.example/"));
	ck_assert_int_eq(sub_of(st, bob, 0).n, 0);
	OK(fw_account_import(st, bob, f, FW_N(f), NOW, &n, &err));
	ck_assert(n == 2 && f[0].id && !f[1].id && f[2].id && sub_of(st, bob, 0).n == 2);
	IS(fw_account_import(st, bob, &f[1], 1, NOW, &n, &err), FW_EINVAL);
	/* who has it may be without it later, and who knows it may come */
	ck_assert_int_eq(login_try(st, alice, "https://a.example/"), a);
	ck_assert_int_eq(login_try(st, bob, "https://me:right@a.example/"), a);
	ck_assert_int_eq(login_try(st, bob, "https://a.example/"), a);
	/* the only subscriber of a feed that is refused gives another */
	b = login_try(st, bob, "https://me:wrong@b.example/");
	login_refused(st, b);
	ck_assert_int_eq(login_try(st, alice, "https://me:right@b.example/"), 0);
	ck_assert_int_eq(login_try(st, bob, "https://me:right@b.example/"), b);
	ck_assert(fw_str_eq(drv_find(store_of(st), b)->password, FW_STR("right")));
	OK(fw_account_unsubscribe(st, bob, b, &err));
	ck_assert_int_eq(login_try(st, alice, "https://me:right@b.example/"), b);
	/* when all have left, what the refused login protected is still stored: it must be known */
	login_refused(st, b);
	OK(fw_account_unsubscribe(st, alice, b, &err));
	ck_assert_int_eq(login_try(st, bob, "https://x:y@b.example/"), 0);
	ck_assert_int_eq(login_try(st, bob, "https://me:right@b.example/"), b);
	ck_assert_int_eq(login_try(st, bob, "https://me:new@b.example/"), b);
	ck_assert(fw_str_eq(drv_find(store_of(st), b)->password, FW_STR("new")));
	/* a login is not dropped without a word: not one of a feed that was never fetched either */
	ck_assert_int_eq(login_try(st, alice, "https://x:y@c.example/"), 0);
	ck_assert(strstr(err.text, "without a login"));
	ck_assert(!drv_find(store_of(st), f[0].id)->password.len);
	fw_store_close(st);
}
END_TEST

/* What the operator collects, with its titles and folders; nobody's secret. */
START_TEST(all_feeds_of_the_operator)
{
	struct fw_store *st = fresh(_i);
	int64_t alice = account_add(st, "alice"), bob = account_add(st, "bob"), own;
	struct fw_feed_new f[] = {
		{.url = FW_STR("https://a.example/"), .user_title = FW_STR("A"), .folder = FW_STR("News/Tech")},
		{.url = FW_STR("https://b.example/"), .username = FW_STR("me"), .password = FW_STR("secret")},
		{.url = FW_STR("https://c.example/"), .folder = FW_STR("Other")},
		{.url = FW_STR("https://d.example/")},
	};
	struct fw_account_all all;

	own = account_subscribe(st, bob, "https://token.example/1234", "");
	OK(fw_store_subscribe(st, f, FW_N(f), &err));
	ck_assert_int_eq(account_subscribe(st, alice, "https://c.example/", "Mine"), f[2].id);
	OK(fw_account_subscribe_all(st, alice, 0, true, NOW, &all, &err));
	ck_assert(all.added_n == 2 && all.had_n == 1 && all.login_n == 1 && !all.more);
	ck_assert_int_eq(sub_of(st, alice, 0).n, 1);
	OK(fw_account_subscribe_all(st, alice, 1, false, NOW, &all, &err));
	ck_assert(all.added_n == 1 && all.more && sub_of(st, alice, 0).n == 2);
	OK(fw_account_subscribe_all(st, alice, 1, false, NOW, &all, &err));
	ck_assert(all.added_n == 1 && !all.more && sub_of(st, alice, 0).n == 3);
	OK(fw_account_subscribe_all(st, alice, 0, false, NOW, &all, &err));
	ck_assert(all.added_n == 0 && all.had_n == 3 && all.login_n == 1);
	ck_assert_str_eq(sub_of(st, alice, f[0].id).title, "A");
	ck_assert_str_eq(sub_of(st, alice, f[0].id).folder, "News/Tech");
	ck_assert_str_eq(sub_of(st, alice, f[2].id).folder, "Mine");
	ck_assert_int_eq(sub_of(st, alice, own).n, 0);
	fw_store_close(st);
}
END_TEST

/* A login is not kept away by those who read nothing without it. */
START_TEST(a_login_needs_no_leave)
{
	struct fw_store *st = fresh(_i);
	int64_t alice = account_add(st, "alice"), bob = account_add(st, "bob"), carol = account_add(st, "carol"), a;

	a = login_try(st, alice, "https://a.example/");
	ck_assert_int_eq(login_try(st, carol, "https://a.example/"), a);
	ck_assert_int_eq(login_try(st, bob, "https://me:right@a.example/"), 0);
	login_refused(st, a);
	ck_assert_int_eq(login_try(st, bob, "https://me:right@a.example/"), a);
	ck_assert(fw_str_eq(drv_find(store_of(st), a)->password, FW_STR("right")));
	ck_assert_int_eq(find(st, a, &A).due_at_ms, NOW);
	ck_assert(sub_of(st, alice, 0).n == 0 && sub_of(st, carol, 0).n == 0 && sub_of(st, bob, 0).n == 1);
	/* what the server said was not said of this login */
	ck_assert_int_eq(login_try(st, alice, "https://me:wrong@a.example/"), 0);
	ck_assert_int_eq(login_try(st, alice, "https://a.example/"), 0);
	/* who has read something keeps it */
	a = login_try(st, alice, "https://b.example/");
	put_entries(st, a, 0, 3);
	login_refused(st, a);
	ck_assert_int_eq(login_try(st, bob, "https://me:right@b.example/"), 0);
	ck_assert_int_eq(sub_of(st, alice, a).n, 1);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

/* No account changes the login of the operator's feed, nor gives it one. */
START_TEST(the_operators_login_stays)
{
	struct fw_store *st = fresh(_i);
	int64_t alice = account_add(st, "alice"), a;
	struct fw_feed_new f = {
		.url = FW_STR("https://a.example/"), .username = FW_STR("op"), .password = FW_STR("secret")};

	OK(fw_store_subscribe(st, &f, 1, &err));
	a = login_try(st, alice, "https://op:secret@a.example/");
	ck_assert_int_eq(a, f.id);
	ck_assert_int_eq(login_try(st, alice, "https://op:mine@a.example/"), 0);
	login_refused(st, a);
	ck_assert_int_eq(login_try(st, alice, "https://op:mine@a.example/"), 0);
	ck_assert(fw_str_eq(drv_find(store_of(st), a)->password, FW_STR("secret")));
	/* percent-encoded it is the same login */
	ck_assert_int_eq(login_try(st, alice, "https://o%70:s%65cret@a.example/"), a);
	a = subscribe(st, "https://b.example/", NOW);
	login_refused(st, a);
	ck_assert_int_eq(login_try(st, alice, "https://op:mine@b.example/"), 0);
	ck_assert(strstr(err.text, "operator"));
	ck_assert(!drv_find(store_of(st), a)->password.len);
	fw_store_close(st);
}
END_TEST

static size_t starred(struct fw_store *st, int64_t account)
{
	return ids(st, (struct fw_stream){.account_id = account, .labelled = true});
}

/*
 * Of a merge that no person asked for accounts keep what they may read. Entries are 1 to 4 of
 * alice's feed, of which the other lacks 1 and 2, and 5 to 7 of the other.
 */
START_TEST(a_merge_nobody_asked_for)
{
	struct fw_store *st = fresh(_i);
	int64_t alice = account_add(st, "alice"), bob = account_add(st, "bob"), from, into, label;
	struct fw_feed f;

	from = account_subscribe(st, alice, "https://a.example/", "News");
	into = account_subscribe(st, bob, "https://b.example/", NULL);
	put_entries(st, from, 0, 4);
	put_entries(st, into, 2, 5);
	OK(fw_account_label(st, alice, FW_STR("later"), true, &label, &err));
	edit(st, alice, 1, -1, FW_LABEL_STARRED, -1);
	edit(st, alice, 3, 1, label, -1);
	OK(store_of(st)->driver->feed_adopt(store_of(st), from, into, &err));
	/* bob's has no entry more */
	ck_assert_int_eq(entry_count(st, into), 3);
	ck_assert_int_eq(unread(st, bob), 3);
	ck_assert_uint_eq(ids(st, (struct fw_stream){.account_id = bob}), 3);
	/* alice reads it now, has read what she had, and keeps her star and her label */
	ck_assert_str_eq(sub_of(st, alice, into).folder, "News");
	ck_assert_int_eq(sub_of(st, alice, 0).n, 1);
	ck_assert_int_eq(unread(st, alice), 2);
	ck_assert_uint_eq(starred(st, alice), 1);
	ck_assert(L.id[0] == 1 && L.feed[0] == from);
	ck_assert_uint_eq(ids(st, (struct fw_stream){.account_id = alice, .labelled = true, .label_id = label}), 1);
	ck_assert(L.id[0] == 5 && L.feed[0] == into);
	f = find(st, from, &A);
	ck_assert_int_eq(f.status, FW_FEED_PAUSED);
	ck_assert_int_eq(entry_count(st, from), 1);
	check_clean(st);
	/* without a star nothing is left of it */
	edit(st, alice, 1, -1, -1, FW_LABEL_STARRED);
	account_subscribe(st, alice, "https://a.example/", NULL);
	OK(store_of(st)->driver->feed_adopt(store_of(st), from, into, &err));
	IS(fw_store_feed_find(st, from, FW_STR_NONE, &A, &f, &err), FW_ENOTFOUND);
	ck_assert_int_eq(sub_of(st, alice, 0).n, 1);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

START_TEST(accounts_have_only_so_many_feeds)
{
	char url[300];
	struct fw_feed_new f[4] = {{.url = FW_STR("https://a.example/")}, {.url = FW_STR("https://b.example/")},
		{.url = FW_STR("https://c.example/")}, {.url = FW_STR("https://b.example/")}};
	struct fw_store_config c = {.url = url, .account_feeds_max = 2};
	struct fw_store *st;
	int64_t alice, bob, id;
	bool added;
	size_t n;

	ck_assert(fw_str_copy(url, sizeof(url), fw_str(scratch_url(_i, "full"))));
	fw_store_close(store_open(url, FW_STORE_CREATE));
	OK(fw_store_open(&c, &st, &err));
	alice = account_add(st, "alice");
	bob = account_add(st, "bob");
	/* a file that is too large adds nothing to the store */
	IS(fw_account_import(st, alice, f, 4, NOW, &n, &err), FW_EINVAL);
	ck_assert(strstr(err.text, "account_feeds_max") && strstr(err.text, "3 feeds"));
	ck_assert(stats(st).feed_n == 0 && sub_of(st, alice, 0).n == 0);
	OK(fw_account_import(st, alice, f, 2, NOW, &n, &err));
	ck_assert_uint_eq(n, 2);
	IS(subscribe_one(st, alice, "c.example", NULL, &id, &added), FW_EINVAL);
	ck_assert(!id && stats(st).feed_n == 2);
	/* what it has it may have again, and others are not concerned */
	f[0].folder = FW_STR("News");
	OK(fw_account_import(st, alice, f, 2, NOW, &n, &err));
	ck_assert_str_eq(sub_of(st, alice, f[0].id).folder, "News");
	OK(subscribe_one(st, bob, "c.example", NULL, &id, &added));
	OK(fw_account_unsubscribe(st, alice, f[0].id, &err));
	OK(subscribe_one(st, alice, "https://c.example/", NULL, &id, &added));
	check_clean(st);
	fw_store_close(st);
}
END_TEST

static int sum_label(void *ctx, const struct fw_label *l)
{
	*(int64_t *)ctx = *(int64_t *)ctx * 10 + l->entry_n;
	return 0;
}

START_TEST(labels_have_names)
{
	struct fw_store *st = fresh(_i);
	int64_t alice = account_add(st, "alice"), bob = account_add(st, "bob"), feed, x, y, id, sum = 0;

	feed = account_subscribe(st, alice, "https://a.example/", NULL);
	put_entries(st, feed, 0, 5);
	IS(fw_account_label(st, alice, FW_STR("later"), false, &x, &err), FW_ENOTFOUND);
	OK(fw_account_label(st, alice, FW_STR("later"), true, &x, &err));
	OK(fw_account_label(st, alice, FW_STR("later"), true, &y, &err));
	ck_assert_int_eq(x, y);
	OK(fw_account_label(st, alice, FW_STR("work"), true, &y, &err));
	IS(fw_account_label(st, bob, FW_STR("work"), false, &id, &err), FW_ENOTFOUND);
	ids(st, (struct fw_stream){.account_id = alice});
	edit(st, alice, L.id[0], -1, x, -1);
	edit(st, alice, L.id[1], -1, x, -1);
	edit(st, alice, L.id[1], -1, x, -1);
	edit(st, alice, L.id[1], -1, y, -1);
	edit(st, alice, L.id[1], -1, FW_LABEL_STARRED, -1);
	id = L.id[1];
	OK(fw_account_label_list(st, alice, sum_label, &sum, &err));
	ck_assert_int_eq(sum, 21);
	ck_assert_uint_eq(entries(st, (struct fw_stream){.account_id = alice, .labelled = true, .label_id = x}), 2);
	ck_assert(L.id[1] == id && L.starred[1] && L.label_n[1] == 2);
	ck_assert(!L.starred[0] && L.label_n[0] == 1);
	ck_assert_uint_eq(ids(st, (struct fw_stream){.account_id = bob, .labelled = true, .label_id = x}), 0);
	IS(fw_account_label_rename(st, alice, FW_STR("later"), FW_STR("work"), &err), FW_EINVAL);
	IS(fw_account_label_rename(st, alice, FW_STR("later"), FW_STR(" work "), &err), FW_EINVAL);
	OK(fw_account_label_rename(st, alice, FW_STR("later"), FW_STR("soon"), &err));
	IS(fw_account_label_rename(st, alice, FW_STR("later"), FW_STR("soon"), &err), FW_ENOTFOUND);
	OK(fw_account_label_rename(st, alice, FW_STR("soon"), FW_STR(""), &err));
	sum = 0;
	OK(fw_account_label_list(st, alice, sum_label, &sum, &err));
	ck_assert_int_eq(sum, 1);
	IS(fw_account_edit(st, alice, &id, 1, &(struct fw_entry_edit){.read = -1, .add = &x, .add_n = 1}, NOW, &err),
		FW_ENOTFOUND);
	/* a label outlives the subscription, and retention leaves its entry alone */
	OK(fw_account_unsubscribe(st, alice, feed, &err));
	ck_assert_uint_eq(ids(st, (struct fw_stream){.account_id = alice, .feed_id = feed}), 1);
	ck_assert(L.id[0] == id && L.read[0]);
	ck_assert_uint_eq(ids(st, (struct fw_stream){.account_id = alice}), 0);
	OK(fw_store_prune(st, &(struct fw_prune){.now_ms = NOW, .entries_before_ms = NOW * 2}, &err));
	ck_assert_int_eq(entry_count(st, feed), 1);
	ck_assert_uint_eq(ids(st, (struct fw_stream){.account_id = alice, .labelled = true}), 1);
	edit(st, alice, id, -1, -1, FW_LABEL_STARRED);
	edit(st, alice, id, -1, -1, y);
	OK(fw_store_prune(st, &(struct fw_prune){.now_ms = NOW, .entries_before_ms = NOW * 2}, &err));
	ck_assert_int_eq(entry_count(st, feed), 0);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

/* The work of an edit is limited, and what all edits together leave. */
START_TEST(edits_are_limited)
{
	static int64_t id[11000];
	struct fw_store *st = fresh(_i);
	int64_t alice = account_add(st, "alice"), label[100], feed;
	struct fw_entry_edit e = {.read = -1, .add = label};
	int n = strcmp(under_test[_i].name, "memory") == 0 ? 2001 : 200; /* only one engine gets 200,000 rows */

	feed = account_subscribe(st, alice, "https://a.example/", NULL);
	put_entries(st, feed, 0, n);
	for (int i = 0; i < (int)FW_N(id); i++)
		id[i] = i + 1;
	for (int i = 0; i < (int)FW_N(label); i++)
		OK(fw_account_label(st, alice, fw_str(fw_arena_printf(&A, "l%d", i)), true, &label[i], &err));
	e.add_n = 100;
	IS(fw_account_edit(st, alice, id, 1001, &e, NOW, &err), FW_EINVAL);
	ck_assert(strstr(err.text, "too many for one edit, which takes 1000"));
	ck_assert_uint_eq(ids(st, (struct fw_stream){.account_id = alice, .labelled = true, .label_id = label[0]}), 0);
	OK(fw_account_edit(st, alice, id, 200, &e, NOW, &err)); /* in two parts */
	ck_assert_uint_eq(
		ids(st, (struct fw_stream){.account_id = alice, .labelled = true, .label_id = label[99]}), 200);
	e.add_n = 0;
	e.read = 1;
	OK(fw_account_edit(st, alice, id, FW_N(id), &e, NOW, &err));
	ck_assert_int_eq(unread(st, alice), 0);
	e = (struct fw_entry_edit){.read = -1, .add = label, .add_n = 100};
	for (int i = 200; i + 900 <= n; i += 900)
		OK(fw_account_edit(st, alice, id + i, 900, &e, NOW, &err));
	if (n > 2000) {
		IS(fw_account_edit(st, alice, id + 2000, 1, &e, NOW, &err), FW_EINVAL);
		ck_assert(strstr(err.text, "200000 stars and labels"));
		OK(fw_account_label_rename(st, alice, FW_STR("l0"), FW_STR(""), &err));
		e = (struct fw_entry_edit){.read = -1, .add = label + 1, .add_n = 99};
		OK(fw_account_edit(st, alice, id + 2000, 1, &e, NOW, &err));
	}
	check_clean(st);
	fw_store_close(st);
}
END_TEST

/* ---- streams --------------------------------------------------------------------------------- */

START_TEST(streams_are_limited_and_searched)
{
	struct fw_store *st = fresh(_i);
	int64_t alice = account_add(st, "alice"), a, b, n, head, all[70];
	struct fw_stream s = {.account_id = alice};

	a = account_subscribe(st, alice, "https://a.example/", "News");
	b = account_subscribe(st, alice, "https://b.example/", "News/Deep");
	put_entries(st, a, 0, 30);
	put_entries(st, b, 100, 140);
	put_entries(st, subscribe(st, "https://c.example/", NOW), 0, 10);
	ck_assert_uint_eq(ids(st, s), 70);
	head = L.id[0];
	ck_assert(L.id[69] == 1 && L.feed[69] == a && L.feed[0] == b);
	edit(st, alice, head, -1, FW_LABEL_STARRED, -1);
	s.folder = FW_STR("News/Deep");
	ck_assert_uint_eq(ids(st, s), 40);
	s.folder = FW_STR("News");
	ck_assert_uint_eq(ids(st, s), 70);
	s.folder = FW_STR("");
	ck_assert_uint_eq(ids(st, s), 0);
	s.folder = FW_STR_NONE;
	s.limit = 10;
	s.offset = 5;
	ck_assert_uint_eq(ids(st, s), 10);
	ck_assert_int_eq(L.id[0], head - 5);
	s.oldest_first = true;
	ck_assert_uint_eq(ids(st, s), 10);
	ck_assert_int_eq(L.id[0], 6);
	s = (struct fw_stream){.account_id = alice, .search = FW_STR("number n13"), .by_date = true};
	index_all(st);
	ck_assert_uint_eq(entries(st, s), 1);
	s.search = FW_STR("title:n130");
	ck_assert_uint_eq(entries(st, s), 1);
	OK(fw_account_count(st, &s, &n, &err));
	ck_assert_int_eq(n, 1);
	s.search = FW_STR("(");
	IS(fw_account_count(st, &s, &n, &err), FW_EINVAL);
	/* of a feed that is left, only what has a label is found */
	OK(fw_account_unsubscribe(st, alice, b, &err));
	s = (struct fw_stream){.account_id = alice, .feed_id = b, .search = FW_STR("number")};
	ck_assert_uint_eq(ids(st, s), 1);
	ck_assert_int_eq(L.id[0], head);
	s.labelled = true;
	ck_assert_uint_eq(ids(st, s), 1);
	s.search = FW_STR("n130");
	ck_assert_uint_eq(ids(st, s), 0);
	s = (struct fw_stream){.account_id = alice, .feed_id = 3, .search = FW_STR("number")};
	ck_assert_uint_eq(ids(st, s), 0);
	account_subscribe(st, alice, "https://b.example/", "News/Deep");
	/* other orders, which need a row of each */
	for (enum fw_stream_sort sort = FW_SORT_CHANGED; sort < FW_SORT_N; sort++) {
		s = (struct fw_stream){.account_id = alice, .sort = sort, .oldest_first = true};
		ck_assert_uint_eq(ids(st, s), 70);
		memcpy(all, L.id, sizeof(all));
		s.limit = 9;
		s.offset = 3;
		ck_assert_uint_eq(entries(st, s), 9);
		ck_assert_int_eq(memcmp(L.id, all + 3, 9 * sizeof(*all)), 0);
		s.oldest_first = false;
		ck_assert_uint_eq(entries(st, s), 9);
		ck_assert_int_eq(L.id[0], all[66]);
		OK(fw_account_count(st, &s, &n, &err));
		ck_assert_int_eq(n, 70);
	}
	/* by date, on from the last one seen */
	s = (struct fw_stream){.account_id = alice, .by_date = true, .limit = 7};
	for (size_t seen = 0; seen < 70; seen += 7) {
		ck_assert_uint_eq(entries(st, s), 7);
		s.behind_id = L.id[6];
		OK(fw_store_clock(st, &s.behind_date_ms, &err));
		s.behind_date_ms = INT64_MAX / 2;
		break; /* the exact walk is in the random test */
	}
	fw_store_close(st);
}
END_TEST

static int limit_row(void *ctx, const struct sql_row *row)
{
	(void)row;
	++*(int *)ctx;
	return 0;
}

static bool limit_left(void *ctx, int64_t now_ms)
{
	(void)now_ms;
	return (*(int *)ctx)++ > 2;
}

/* A statement that would run for hours, unless it is ended. */
static int limit_long_read(struct fw_store *st, int driver)
{
	const char *name = under_test[driver].name,
		   *text = strcmp(name, "postgres") == 0 ? "SELECT 1::int8 FROM pg_sleep(9999)" :
		strcmp(name, "mysql") == 0               ? "SELECT SLEEP(9999)" :
					     "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c)"
					     " SELECT count(*) FROM c";
	int n = 0;

	return sql_query(sql_of(store_of(st)), text, SQL_NONE, limit_row, &n, &err);
}

START_TEST(work_ends_at_its_limit)
{
	struct fw_store *st = fresh(_i);
	int64_t alice = account_add(st, "alice"), n;
	struct fw_stream s = {.account_id = alice, .search = FW_STR("number")};
	struct fw_work_limit limit = {.until_ms = fw_mono_ms() + 3600000};
	int looks = 0;

	put_entries(st, account_subscribe(st, alice, "https://a.example/", "News"), 0, 5);
	fw_store_limit(st, &limit);
	OK(fw_account_count(st, &s, &n, &err));
	ck_assert(n == 5 && !limit.over);
	/* the time is over, before a statement and while it runs */
	limit.until_ms = fw_mono_ms() - 1;
	IS(fw_account_count(st, &s, &n, &err), FW_EAGAIN);
	ck_assert(limit.over && strstr(err.text, "time for the store is over"));
	limit = (struct fw_work_limit){.until_ms = fw_mono_ms() + 100};
	IS(limit_long_read(st, _i), FW_EAGAIN);
	ck_assert_msg(limit.over, "%s", err.text);
	limit = (struct fw_work_limit){.until_ms = fw_mono_ms() + 3600000, .left = limit_left, .ctx = &looks};
	IS(limit_long_read(st, _i), FW_EAGAIN);
	ck_assert(limit.over && looks > 2);
	fw_store_limit(st, NULL);
	OK(fw_account_count(st, &s, &n, &err));
	ck_assert_int_eq(n, 5);
	fw_store_close(st);
}
END_TEST

/* What an account does not subscribe is no part of its query: it is not dropped later. */
START_TEST(a_search_is_limited_to_own_feeds)
{
	struct fw_store *st = fresh(_i);
	int64_t alice = account_add(st, "alice"), a, b, foreign, n;
	struct fw_stream s = {.account_id = alice, .search = FW_STR("number")};
	const struct store_accounts *d = store_of(st)->driver->accounts;
	struct fw_buf feeds = FW_BUF_INIT(0);
	const int64_t *id;

	a = account_subscribe(st, alice, "https://a.example/", "News");
	b = account_subscribe(st, alice, "https://b.example/", "Other");
	foreign = subscribe(st, "https://c.example/", NOW);
	put_entries(st, a, 0, 3);
	put_entries(st, b, 0, 4);
	put_entries(st, foreign, 0, 50);
	index_all(st);
	OK(d->stream_feeds(store_of(st), &s, &feeds, &err));
	id = (const int64_t *)(const void *)feeds.p;
	ck_assert(feeds.len == 2 * sizeof(*id) && id[0] == a && id[1] == b);
	OK(fw_account_count(st, &s, &n, &err));
	ck_assert_int_eq(n, 7);
	s.folder = FW_STR("News");
	fw_buf_reset(&feeds);
	OK(d->stream_feeds(store_of(st), &s, &feeds, &err));
	ck_assert(feeds.len == sizeof(*id) && *(const int64_t *)(const void *)feeds.p == a);
	OK(fw_account_count(st, &s, &n, &err));
	ck_assert_int_eq(n, 3);
	/* without feeds nothing is read, but a wrong search is still named */
	s = (struct fw_stream){.account_id = account_add(st, "bob"), .search = FW_STR("number")};
	OK(fw_account_count(st, &s, &n, &err));
	ck_assert_int_eq(n, 0);
	s.search = FW_STR("(");
	IS(fw_account_count(st, &s, &n, &err), FW_EINVAL);
	fw_buf_finish(&feeds);
	fw_store_close(st);
}
END_TEST

/* A feed whose mark is where the new one would be, with unread entries below it. */
START_TEST(all_is_read_again)
{
	struct fw_store *st = fresh(_i);
	struct fw_entry_edit not_read = {.read = 0};
	int64_t alice = account_add(st, "alice"), a, b;
	struct fw_stream s = {.account_id = alice}, left = {.account_id = alice, .read = FW_READ_UNREAD};

	a = account_subscribe(st, alice, "https://a.example/", "News");
	b = account_subscribe(st, alice, "https://b.example/", "News/Deep");
	put_entries(st, a, 0, 10);
	put_entries(st, b, 0, 5);
	s.folder = FW_STR("News");
	s.folder_only = true;
	ck_assert_uint_eq(ids(st, s), 10);
	OK(fw_account_mark_read(st, &s, 0, 0, &err));
	ck_assert_uint_eq(ids(st, left), 5);
	s = (struct fw_stream){.account_id = alice};
	for (int i = 0; i < 3; i++) {
		OK(fw_account_mark_read(st, &s, 0, 0, &err));
		ck_assert_uint_eq(ids(st, left), 0);
		ck_assert_int_eq(unread(st, alice), 0);
		ck_assert_uint_eq(ids(st, s), 15);
		OK(fw_account_edit(st, alice, L.id, i ? 15 : 7, &not_read, NOW, &err));
		ck_assert_int_eq(unread(st, alice), i ? 15 : 7);
	}
	check_clean(st);
	fw_store_close(st);
}
END_TEST

START_TEST(entries_are_got_by_number)
{
	struct fw_store *st = fresh(_i);
	int64_t alice = account_add(st, "alice"), feed, want[] = {7, 3, 9999, 12, 3, INT64_MIN, INT64_MAX, 0};

	feed = account_subscribe(st, alice, "https://a.example/", NULL);
	put_entries(st, feed, 0, 10);
	put_entries(st, subscribe(st, "https://c.example/", NOW), 0, 10);
	L.n = 0;
	OK(fw_account_entries_get(st, alice, want, FW_N(want), true, list_one, &L, &err));
	ck_assert_uint_eq(L.n, 3);
	ck_assert(L.id[0] == 7 && L.id[1] == 3 && L.id[2] == 3 && L.feed[0] == feed && !L.read[0]);
	OK(fw_account_entries_get(st, alice, NULL, 0, true, list_one, &L, &err));
	fw_store_close(st);
}
END_TEST

/* Before anything is written. */
static void copy_is_refused(struct fw_store *to)
{
	struct fw_store *from = store_open("memory:", FW_STORE_CREATE);
	struct fw_copy_stats s;

	subscribe(from, "https://a.example/", NOW);
	account_add(from, "alice");
	IS(fw_copy(from, to, &(struct fw_copy_options){.batch_bytes = 1 << 20}, &s, &err), FW_EINVAL);
	ck_assert_msg(strstr(err.text, "the source has accounts"), "%s", err.text);
	ck_assert_int_eq(stats(to).feed_n, 0);
	fw_store_close(from);
}

START_TEST(nothing_without_an_sql_store)
{
	struct fw_store *st = fresh(_i);
	int64_t id;

	if (!has_accounts(_i)) {
		IS(fw_account_add(st, FW_STR("alice"), PASSWORD, false, NOW, &id, &err), FW_EINVAL);
		ck_assert(strstr(err.text, "SQLite, PostgreSQL or MariaDB"));
		IS(fw_account_ids(st, &(struct fw_stream){0}, list_one, &L, &err), FW_EINVAL);
		IS(fw_account_count(st, &(struct fw_stream){0}, &id, &err), FW_EINVAL);
		IS(fw_account_login(st, FW_STR("alice"), PASSWORD, &id, &err), FW_EINVAL);
		copy_is_refused(st);
	} else {
		IS(fw_account_edit(st, 5, &id, 1, &(struct fw_entry_edit){.read = 1}, NOW, &err), FW_ENOTFOUND);
		IS(fw_account_mark_read(st, &(struct fw_stream){.account_id = 5}, 0, 0, &err), FW_ENOTFOUND);
		ck_assert_int_eq(unread(st, 5), 0);
	}
	fw_store_close(st);
}
END_TEST

START_TEST(folders_stay_short_and_labels_few)
{
	struct fw_store *st = fresh(_i);
	int64_t alice = account_add(st, "alice"), a, b, id;
	char longer[FW_LABEL_NAME_MAX];

	a = account_subscribe(st, alice, "https://a.example/", " a/ ");
	b = account_subscribe(st, alice, "https://b.example/", "a/b");
	ck_assert_str_eq(sub_of(st, alice, a).folder, "a");
	memset(longer, 'x', sizeof(longer));
	longer[sizeof(longer) - 1] = 0;
	IS(fw_account_folder_rename(st, alice, FW_STR("a"), fw_str(longer), false, &err), FW_EINVAL);
	ck_assert_str_eq(sub_of(st, alice, a).folder, "a");
	OK(fw_account_folder_rename(st, alice, FW_STR("a"), fw_str(longer + 1), false, &err));
	ck_assert_uint_eq(strlen(sub_of(st, alice, b).folder), FW_LABEL_NAME_MAX);
	for (int i = 0; i < FW_LABELS_MAX; i++)
		OK(fw_account_label(st, alice, fw_str(fw_arena_printf(&A, "l%d", i)), true, &id, &err));
	IS(fw_account_label(st, alice, FW_STR("one more"), true, &id, &err), FW_EINVAL);
	ck_assert(strstr(err.text, "limit of 1000 labels"));
	OK(fw_account_label(st, alice, FW_STR("l7 "), true, &id, &err));
	fw_store_close(st);
}
END_TEST

/* ---- edits, and entries that go -------------------------------------------------------------- */

static void edit_all(struct fw_store *st, int64_t account, const int64_t *id, size_t n, int read)
{
	OK(fw_account_edit(st, account, id, n, &(struct fw_entry_edit){.read = read}, NOW, &err));
}

/* The mark goes to the head once all is read; unread entries below it are exceptions then. */
START_TEST(edits_below_the_mark)
{
	struct fw_store *st = fresh(_i);
	int64_t alice = account_add(st, "alice"), feed = account_subscribe(st, alice, "https://a.example/", NULL),
		id[30];

	put_entries(st, feed, 0, 30);
	for (int i = 0; i < 30; i++)
		id[i] = i + 1;
	for (int i = 0; i < 30; i += 7)
		edit_all(st, alice, id + i, i + 7 > 30 ? 2 : 7, 1);
	ck_assert_int_eq(unread(st, alice), 0);
	for (int round = 0; round < 3; round++) {
		edit_all(st, alice, id, 30, 0);
		ck_assert_int_eq(unread(st, alice), 30);
		edit_all(st, alice, id, 7, 1);
		ck_assert_int_eq(unread(st, alice), 23);
		ck_assert_uint_eq(ids(st, (struct fw_stream){.account_id = alice, .read = FW_READ_UNREAD}), 23);
		ck_assert(L.id[0] == 30 && L.id[22] == 8);
		check_clean(st);
	}
	put_entries(st, feed, 30, 35);
	ck_assert_int_eq(unread(st, alice), 28);
	edit_all(st, alice, id, 30, 1);
	ck_assert_int_eq(unread(st, alice), 5);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

START_TEST(marks_are_of_one_folder_or_more)
{
	struct fw_store *st = fresh(_i);
	int64_t alice = account_add(st, "alice"), a, b;
	struct fw_stream s = {.account_id = alice, .folder = FW_STR("News"), .folder_only = true};
	int64_t n;

	a = account_subscribe(st, alice, "https://a.example/", "News");
	b = account_subscribe(st, alice, "https://b.example/", "News/Tech");
	put_entries(st, a, 0, 10);
	put_entries(st, b, 0, 20);
	ck_assert_uint_eq(ids(st, s), 10);
	ck_assert_int_eq(L.feed[0], a);
	OK(fw_account_count(st, &s, &n, &err));
	ck_assert_int_eq(n, 10);
	OK(fw_account_mark_read(st, &s, 0, 0, &err));
	ck_assert_int_eq(unread(st, alice), 20);
	s.labelled = true;
	edit(st, alice, 20, -1, FW_LABEL_STARRED, -1);
	OK(fw_account_mark_read(st, &s, 0, 0, &err));
	ck_assert_int_eq(unread(st, alice), 20);
	s.folder_only = false;
	OK(fw_account_mark_read(st, &s, 0, 0, &err));
	ck_assert_int_eq(unread(st, alice), 19);
	s.labelled = false;
	OK(fw_account_mark_read(st, &s, 0, 0, &err));
	ck_assert_int_eq(unread(st, alice), 0);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

/* Retract entries by their keys. */
static void retract(struct fw_store *st, int64_t feed_id, const int *key, size_t n)
{
	static int64_t at_ms = NOW - FW_DAY_MS;
	struct fw_entry_key k[20] = {{0}};
	struct fw_feed f = {.id = feed_id};
	struct fw_outcome o = {.feed_id = feed_id,
		.feed = &f,
		.retracted = k,
		.retracted_n = n,
		.visit = {.at_ms = ++at_ms, .kind = FW_VISIT_PUSHED, .slot = -1}};

	ck_assert_uint_le(n, FW_N(k));
	for (size_t i = 0; i < n; i++)
		memcpy(k[i].key, &key[i], sizeof(key[i]));
	OK(fw_store_push(st, &o, 1, &err));
	ck_assert_int_eq(o.rc, 0);
}

START_TEST(a_reader_keeps_what_its_feed_takes_back)
{
	static const int key[] = {0, 1, 2, 3, 77}, twice[] = {4, 4};
	struct fw_store *st = fresh(_i);
	int64_t alice = account_add(st, "alice"), bob = account_add(st, "bob"), feed, label;

	feed = account_subscribe(st, alice, "https://a.example/", NULL);
	account_subscribe(st, bob, "https://a.example/", NULL);
	put_entries(st, feed, 0, 6);
	OK(fw_account_label(st, bob, FW_STR("later"), true, &label, &err));
	edit(st, alice, 1, -1, FW_LABEL_STARRED, -1);
	edit(st, bob, 2, -1, label, -1);
	edit(st, bob, 3, 1, -1, -1);
	retract(st, feed, key, FW_N(key)); /* entries 1 and 2 stay; 3 and 4 go */
	ck_assert_int_eq(entry_count(st, feed), 4);
	ck_assert(unread(st, alice) == 4 && unread(st, bob) == 4);
	check_clean(st);
	edit(st, alice, 1, 1, -1, FW_LABEL_STARRED);
	retract(st, feed, key, FW_N(key));
	ck_assert_int_eq(entry_count(st, feed), 3);
	ck_assert(unread(st, alice) == 3 && unread(st, bob) == 3);
	check_clean(st);
	retract(st, feed, twice, FW_N(twice)); /* as two visits of one commit may */
	ck_assert(entry_count(st, feed) == 2 && unread(st, alice) == 2 && unread(st, bob) == 2);
	check_clean(st);
	OK(fw_store_unsubscribe(st, feed, &err)); /* with its feed all goes */
	ck_assert_uint_eq(ids(st, (struct fw_stream){.account_id = bob, .labelled = true, .label_id = label}), 0);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

/* ---- kills ----------------------------------------------------------------------------------- */

#define KILL_ENTRIES 10000
#define KILLS 12

/* Marks all entries read and unread, one edit after the other, until it is killed. */
static void edit_for_ever(const char *url, int64_t account, const int64_t *id)
{
	struct fw_store *st = store_open(url, 0);

	for (int i = 0;; i++) {
		struct fw_entry_edit e = {.read = i % 2};

		if (fw_account_edit(st, account, id, KILL_ENTRIES, &e, NOW, &err))
			_exit(3);
	}
}

/* A server goes on with a commit that it has got: the count settles when the session has ended. */
static int64_t settled(struct fw_store *st, int64_t account)
{
	int64_t id = 1;

	/* takes the account's lock, so it waits for the end of the killed one's transaction */
	OK(fw_account_edit(st, account, &id, 1, &(struct fw_entry_edit){.read = -1}, NOW, &err));
	return unread(st, account);
}

START_TEST(an_edit_is_stored_whole)
{
	static int64_t id[KILL_ENTRIES + 1];
	char url[300];
	struct fw_store *st;
	int64_t account, feed, label;

	ck_assert(fw_str_copy(url, sizeof(url), fw_str(scratch_url(_i, "killed"))));
	st = store_open(url, FW_STORE_CREATE);
	account = account_add(st, "alice");
	feed = account_subscribe(st, account, "https://a.example/", NULL);
	put_entries(st, feed, 0, KILL_ENTRIES);
	for (int i = 0; i < KILL_ENTRIES; i++)
		id[i] = i + 1;
	for (int i = 0; i < KILLS; i++) {
		pid_t pid = fork();
		int64_t n;

		if (pid == 0)
			edit_for_ever(url, account, id);
		ck_assert_int_gt(pid, 0);
		usleep(60000 + (useconds_t)(i * 17) % 11 * 23000); /* any moment: the subject of the test */
		ck_assert_int_eq(kill(pid, SIGKILL), 0);
		ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
		n = settled(st, account);
		ck_assert_msg(n == 0 || n == KILL_ENTRIES, "%lld of %d are unread", (long long)n, KILL_ENTRIES);
	}
	/* a label of more entries than one transaction takes it from */
	put_entries(st, feed, KILL_ENTRIES, KILL_ENTRIES + 1);
	id[KILL_ENTRIES] = KILL_ENTRIES + 1;
	OK(fw_account_label(st, account, FW_STR("later"), true, &label, &err));
	OK(fw_account_edit(st, account, id, KILL_ENTRIES + 1,
		&(struct fw_entry_edit){.read = -1, .add = &label, .add_n = 1}, NOW, &err));
	OK(fw_account_label_rename(st, account, FW_STR("later"), FW_STR(""), &err));
	ck_assert_uint_eq(ids(st, (struct fw_stream){.account_id = account, .labelled = true, .label_id = label}), 0);
	IS(fw_account_label_rename(st, account, FW_STR("later"), FW_STR(""), &err), FW_ENOTFOUND);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

/* ---- entries that come meanwhile ------------------------------------------------------------- */

#define RACE_ROUNDS 400

/* Stores new entries, each in a commit of its own, until it is killed. */
static void put_for_ever(const char *url, int64_t feed)
{
	struct fw_store *st = store_open(url, 0);

	for (int i = 0;; i++)
		put_entries(st, feed, i, i + 1);
}

/* A count that is wrong once stays wrong: so a look at the end is enough. */
START_TEST(edits_race_with_new_entries)
{
	static int64_t id[FW_N(L.id)];
	char url[300];
	struct fw_store *st;
	int64_t alice, feed;
	pid_t pid;

	ck_assert(fw_str_copy(url, sizeof(url), fw_str(scratch_url(_i, "raced"))));
	st = store_open(url, FW_STORE_CREATE);
	alice = account_add(st, "alice");
	feed = account_subscribe(st, alice, "https://a.example/", NULL);
	pid = fork();
	if (pid == 0)
		put_for_ever(url, feed);
	ck_assert_int_gt(pid, 0);
	for (int i = 0; i < RACE_ROUNDS; i++) {
		size_t n = ids(st, (struct fw_stream){.account_id = alice, .read = FW_READ_UNREAD, .limit = 1000});

		memcpy(id, L.id, n * sizeof(*id));
		if (i % 5 == 4)
			OK(fw_account_mark_read(st, &(struct fw_stream){.account_id = alice}, 0, 0, &err));
		else if (n)
			edit_all(st, alice, id, n, 1);
	}
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	(void)settled(st, alice);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

#define RESTATE_N 100
#define RESTATE_MS 1500

/* Stores entries, marks all but the first read, then the first. */
static void restate_for_ever(const char *url, int64_t account, int64_t feed)
{
	struct fw_store *st = store_open(url, 0);
	int64_t id[RESTATE_N];

	for (int64_t first = 0;; first += RESTATE_N) {
		put_entries(st, feed, (int)first, (int)first + RESTATE_N);
		for (int i = 0; i < RESTATE_N; i++)
			id[i] = first + i + 1;
		edit_all(st, account, id + 1, RESTATE_N - 1, 1);
		usleep(2000); /* for others to see it */
		edit_all(st, account, id, 1, 1);
	}
}

START_TEST(what_is_read_stays_read)
{
	char url[300];
	struct fw_store *st;
	int64_t alice, feed, first = 0;
	size_t before = 0;
	pid_t pid;

	ck_assert(fw_str_copy(url, sizeof(url), fw_str(scratch_url(_i, "restated"))));
	st = store_open(url, FW_STORE_CREATE);
	alice = account_add(st, "alice");
	feed = account_subscribe(st, alice, "https://a.example/", NULL);
	pid = fork();
	if (pid == 0)
		restate_for_ever(url, alice, feed);
	ck_assert_int_gt(pid, 0);
	for (int64_t until_ms = fw_mono_ms() + RESTATE_MS; fw_mono_ms() < until_ms;) {
		size_t n = ids(st, (struct fw_stream){.account_id = alice, .read = FW_READ_UNREAD}), newer = 0;

		while (newer < n && L.id[newer] >= L.id[n - 1] + RESTATE_N) /* of the next round */
			newer++;
		n -= newer;
		ck_assert_msg(!n || L.id[newer + n - 1] != first || n <= before, "%zu are unread again", n - before);
		before = n;
		first = n ? L.id[newer + n - 1] : 0;
	}
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	fw_store_close(st);
}
END_TEST

#define LEFT_FEEDS 200

/* A feed that one account leaves while another comes is polled. */
START_TEST(a_feed_with_a_subscriber_is_not_paused)
{
	char url[300];
	struct fw_store *st;
	int64_t alice, bob, feed[LEFT_FEEDS];
	pid_t pid;

	ck_assert(fw_str_copy(url, sizeof(url), fw_str(scratch_url(_i, "left"))));
	st = store_open(url, FW_STORE_CREATE);
	alice = account_add(st, "alice");
	bob = account_add(st, "bob");
	for (int i = 0; i < LEFT_FEEDS; i++)
		feed[i] = account_subscribe(st, bob, fw_arena_printf(&A, "https://f%d.example/", i), NULL);
	pid = fork();
	if (pid == 0) {
		st = store_open(url, 0);
		for (int i = 0; i < LEFT_FEEDS; i++)
			OK(fw_account_unsubscribe(st, bob, feed[i], &err));
		_exit(0);
	}
	ck_assert_int_gt(pid, 0);
	for (int i = 0; i < LEFT_FEEDS; i++)
		account_subscribe(st, alice, fw_arena_printf(&A, "https://f%d.example/", i), NULL);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	for (int i = 0; i < LEFT_FEEDS; i++)
		ck_assert_msg(find(st, feed[i], &A).status == FW_FEED_ACTIVE, "feed %d is paused", i);
	fw_store_close(st);
}
END_TEST

#define GIVEN_FEEDS 40

/* Nobody comes without the login while it is given. */
START_TEST(a_login_comes_between)
{
	char url[300];
	struct fw_store *st;
	int64_t alice, bob, feed[GIVEN_FEEDS];
	pid_t pid;

	ck_assert(fw_str_copy(url, sizeof(url), fw_str(scratch_url(_i, "between"))));
	st = store_open(url, FW_STORE_CREATE);
	alice = account_add(st, "alice");
	bob = account_add(st, "bob");
	for (int i = 0; i < GIVEN_FEEDS; i++) {
		feed[i] = account_subscribe(st, alice, fw_arena_printf(&A, "https://f%d.example/", i), NULL);
		login_refused(st, feed[i]);
		OK(fw_account_unsubscribe(st, alice, feed[i], &err));
	}
	pid = fork();
	if (pid == 0) {
		st = store_open(url, 0);
		for (int i = 0; i < GIVEN_FEEDS; i++)
			(void)login_try(st, alice, fw_arena_printf(&A, "https://f%d.example/", i));
		_exit(0);
	}
	ck_assert_int_gt(pid, 0);
	for (int i = 0; i < GIVEN_FEEDS; i++)
		ck_assert_int_eq(login_try(st, bob, fw_arena_printf(&A, "https://me:right@f%d.example/", i)), feed[i]);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	for (int i = 0; i < GIVEN_FEEDS; i++) {
		ck_assert(fw_str_eq(find(st, feed[i], &A).password, FW_STR("right")));
		ck_assert(sub_of(st, alice, feed[i]).n == 0 && sub_of(st, bob, feed[i]).n == 1);
	}
	check_clean(st);
	fw_store_close(st);
}
END_TEST

/* ---- all at once ----------------------------------------------------------------------------- */

#define RUSH_FEEDS 3
#define RUSH_MS 2000
#define RUSH_PLAYERS 7 /* two put, one prunes, one merges; the others edit, and the last one is killed */

struct rush {
	char url[300];
	int64_t account[2], feed[RUSH_FEEDS];
};

static uint64_t rush_dice(uint64_t *seed, uint64_t n)
{
	*seed = fw_hash64_seed(seed, sizeof(*seed), 7);
	return *seed % n;
}

/* A lock may be waited for too long, or a deadlock happen too often; anything else is wrong. */
static void rush_may_fail(int rc)
{
	if (!rc || rc == FW_EAGAIN || rc == FW_ENOTFOUND)
		return;
	fprintf(stderr, "# %s\n", err.text);
	_exit(3);
	if (rc == FW_EAGAIN)
		fprintf(stderr, "# again: %s\n", err.text);
}

static void rush_put(struct fw_store *st, const struct rush *s, uint64_t *seed, int *next, int slot)
{
	int64_t feed = s->feed[rush_dice(seed, RUSH_FEEDS)];
	int n = 1 + (int)rush_dice(seed, 4);
	struct fw_entry_key k[20] = {{0}};
	struct fw_entry_row e[4];
	struct fw_feed f = {.id = feed};
	struct fw_outcome o = {.feed_id = feed,
		.feed = &f,
		.entries = e,
		.entry_n = (size_t)n,
		.retracted = k,
		.retracted_n = rush_dice(seed, 3) ? 0 : FW_N(k),
		.visit = {.at_ms = NOW + *next * 10 + slot, .kind = FW_VISIT_PUSHED, .slot = -1}};

	for (int i = 0; i < n; i++)
		e[i] = entry(slot * 10000000 + *next + i, 1, "n", "<p>number</p>");
	for (size_t i = 0; i < FW_N(k); i++) {
		int key = slot * 10000000 + (*next > 40 ? *next - (int)i * (*next / 20) - 1 : (int)i);

		memcpy(k[i].key, &key, sizeof(key));
	}
	*next += n;
	rush_may_fail(fw_store_push(st, &o, 1, &err));
}

static void rush_edit(struct fw_store *st, const struct rush *s, uint64_t *seed)
{
	int64_t account = s->account[rush_dice(seed, 2)], some[200], star = FW_LABEL_STARRED;
	struct fw_stream q = {.account_id = account, .limit = 1 + rush_dice(seed, 200)};
	struct fw_entry_edit e = {.read = 1, .add = &star, .remove = &star};
	uint64_t what = rush_dice(seed, 20);
	int64_t feed;
	bool added;

	if (what == 0) {
		rush_may_fail(fw_account_mark_read(st, &(struct fw_stream){.account_id = account}, 0, 0, &err));
		return;
	}
	if (what == 1) {
		q.feed_id = s->feed[rush_dice(seed, RUSH_FEEDS)];
		rush_may_fail(fw_account_mark_read(st, &q, 0, 0, &err));
		return;
	}
	if (what == 2) {
		rush_may_fail(fw_account_unsubscribe(st, account, s->feed[rush_dice(seed, RUSH_FEEDS)], &err));
		return;
	}
	if (what < 6) {
		rush_may_fail(subscribe_one(st, account,
			fw_arena_printf(&A, "https://s%d.example/", (int)rush_dice(seed, RUSH_FEEDS)), NULL, &feed,
			&added));
		return;
	}
	if (what < 12)
		q.read = FW_READ_UNREAD;
	else if (what < 15) {
		q.read = FW_READ_READ;
		e.read = 0;
	} else if (what < 17) {
		e.read = -1;
		e.add_n = 1;
	} else if (what < 19) {
		e.read = -1;
		e.remove_n = 1;
		q.labelled = true;
	}
	L.n = 0;
	rush_may_fail(fw_account_ids(st, &q, list_one, &L, &err));
	if (!L.n)
		return;
	memcpy(some, L.id, L.n * sizeof(*some));
	rush_may_fail(fw_account_edit(st, account, some, L.n, &e, NOW, &err));
}

/* A feed of both accounts gets entries, some with the keys of another, and becomes that one. */
static void rush_merge(struct fw_store *st, const struct rush *s, uint64_t *seed, int n)
{
	struct rush from = *s;
	bool added;
	int next = n * 10 % 5000;

	for (int a = 0; a < 2; a++) {
		if (rush_dice(seed, 3))
			rush_may_fail(subscribe_one(st, s->account[a], fw_arena_printf(&A, "https://m%d.example/", n),
				NULL, &from.feed[0], &added));
		else
			from.feed[0] = subscribe(st, fw_arena_printf(&A, "https://m%d.example/", n), NOW);
	}
	from.feed[1] = from.feed[2] = from.feed[0];
	for (int i = 0; i < 5; i++)
		rush_put(st, &from, seed, &next, 0);
	for (int i = 0; i < 5; i++)
		rush_edit(st, s, seed);
	rush_may_fail((rush_dice(seed, 2) ? store_of(st)->driver->feed_drop : store_of(st)->driver->feed_adopt)(
		store_of(st), from.feed[0], s->feed[rush_dice(seed, RUSH_FEEDS)], &err));
}

static void rush_prune(struct fw_store *st)
{
	struct fw_prune p = {.now_ms = NOW, .entries_before_ms = NOW * 2};

	usleep(400000);
	rush_may_fail(fw_store_prune(st, &p, &err));
}

static void rush_play(const struct rush *s, int player, int again)
{
	struct fw_store *st = store_open(s->url, 0);
	uint64_t seed = (uint64_t)player + 100 * (uint64_t)again;
	int next = 0;

	for (int n = 0;; n++) {
		if (player < 2)
			rush_put(st, s, &seed, &next, player);
		else if (player == 2)
			rush_prune(st);
		else if (player == 3)
			rush_merge(st, s, &seed, n);
		else
			rush_edit(st, s, &seed);
	}
}

static pid_t rush_begin(const struct rush *s, int player, int again)
{
	pid_t pid = fork();

	if (pid == 0)
		rush_play(s, player, again);
	ck_assert_int_gt(pid, 0);
	return pid;
}

static void rush_end(pid_t pid)
{
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

/* Edits, commits, retractions, retention, merges and kills at once. */
START_TEST(counts_are_exact_in_a_rush)
{
	int64_t until_ms = fw_mono_ms() + (getenv("FW_LONG") ? 30 * RUSH_MS : RUSH_MS);
	struct fw_store *st;
	pid_t pid[RUSH_PLAYERS];
	struct rush s;

	ck_assert(fw_str_copy(s.url, sizeof(s.url), fw_str(scratch_url(_i, "rush"))));
	st = store_open(s.url, FW_STORE_CREATE);
	s.account[0] = account_add(st, "alice");
	s.account[1] = account_add(st, "bob");
	for (int f = 0; f < RUSH_FEEDS; f++)
		s.feed[f] = account_subscribe(st, s.account[0], fw_arena_printf(&A, "https://s%d.example/", f), NULL);
	for (int i = 0; i < RUSH_PLAYERS; i++)
		pid[i] = rush_begin(&s, i, 0);
	for (int again = 1; fw_mono_ms() < until_ms; again++) {
		usleep(300000);
		for (int i = 0; i < RUSH_PLAYERS; i++)
			ck_assert_msg(waitpid(pid[i], NULL, WNOHANG) == 0, "player %d has ended", i);
		rush_end(pid[RUSH_PLAYERS - 1]);
		pid[RUSH_PLAYERS - 1] = rush_begin(&s, RUSH_PLAYERS - 1, again);
	}
	for (int i = 0; i < RUSH_PLAYERS; i++)
		rush_end(pid[i]);
	(void)settled(st, s.account[0]);
	(void)settled(st, s.account[1]);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

/* ---- the model ------------------------------------------------------------------------------- */

#define ACCOUNTS 3
#define FEEDS 6
#define ENTRIES 7000
#define LABELS 3 /* starred, and two more */

struct model_entry {
	int64_t id;
	int feed, key; /* the feed's slot; -1: gone */
	bool read[ACCOUNTS], label[ACCOUNTS][LABELS];
	bool unknown[ACCOUNTS]; /* a mark decided in a merge, which the model does not have */
};
static struct model {
	struct fw_store *st;
	int64_t account[ACCOUNTS], label[ACCOUNTS][LABELS], feed[FEEDS];
	bool subscribed[ACCOUNTS][FEEDS];
	const char *folder[ACCOUNTS][FEEDS];
	struct model_entry e[ENTRIES];
	int n, next_key[FEEDS], url_n;
	uint64_t random;
} M;

/* An order that drops some entries: they are never stored, and nobody's unread. */
static int model_match(
	void *ctx, const struct fw_outcome *o, const struct fw_entry_row *e, bool is_new, struct fw_match_result *out)
{
	int key;

	(void)ctx;
	(void)o;
	(void)is_new;
	memcpy(&key, e->key, sizeof(key));
	*out = (struct fw_match_result){.drop = key % 11 == 5};
	return 0;
}
static const struct fw_matcher MODEL_MATCHER = {.match = model_match};

static uint64_t dice(uint64_t n)
{
	M.random = fw_hash64_seed(&M.random, sizeof(M.random), 7);
	return M.random % n;
}

static bool sees(const struct model_entry *e, int a)
{
	bool any = e->feed >= 0 && M.subscribed[a][e->feed];

	for (int l = 0; l < LABELS; l++)
		any |= e->label[a][l];
	return any && e->feed >= 0;
}

static const char *model_folder(int f)
{
	return f % 3 == 0 ? "" : f % 3 == 1 ? "x" : "x/y";
}

static void model_subscribe(int a, int f)
{
	int64_t feed;
	int seen = 0;
	bool added;
	struct fw_feed row = find(M.st, M.feed[f], &A);
	struct fw_subscription s = {.folder = fw_str(model_folder(f))};

	OK(subscribe_one(M.st, M.account[a], fw_arena_dup(&A, row.url.p, row.url.len), &s, &feed, &added));
	ck_assert(feed == M.feed[f] && added == !M.subscribed[a][f]);
	M.folder[a][f] = model_folder(f);
	if (!added)
		return;
	M.subscribed[a][f] = true;
	for (int i = M.n; i-- > 0;) {
		if (M.e[i].feed == f)
			M.e[i].read[a] = seen++ >= 100;
	}
}

static void model_unsubscribe(int a, int f)
{
	int rc = fw_account_unsubscribe(M.st, M.account[a], M.feed[f], &err);

	ck_assert_int_eq(rc, M.subscribed[a][f] ? 0 : FW_ENOTFOUND);
	M.subscribed[a][f] = false;
}

static int model_new_entry(void *ctx, const struct fw_entry_row *row)
{
	struct model_entry *e = &M.e[M.n++];

	ck_assert_int_lt(M.n, ENTRIES);
	*e = (struct model_entry){.id = row->id, .feed = *(int *)ctx};
	memcpy(&e->key, row->key, sizeof(e->key));
	return 0;
}

/* Some entries again, some new: two feeds share keys. */
static void model_push(int f)
{
	struct fw_entry_query q = {
		.oldest_first = true, .key = true, .after_id = M.n ? M.e[M.n - 1].id : 0, .feed_id = M.feed[f]};
	int from = M.next_key[f] - (int)dice(5), to = M.next_key[f] + 1 + (int)dice(60);

	put_entries(M.st, M.feed[f], from < 0 ? 0 : from, to);
	M.next_key[f] = to;
	OK(fw_store_entry_list(M.st, &q, model_new_entry, &f, &err));
}

static void model_edit(int a)
{
	int64_t id[300], add, remove;
	struct fw_entry_edit edit = {.read = (int)dice(3) - 1, .add = &add, .remove = &remove};
	size_t n = 1 + dice(FW_N(id) - 1), from = dice((uint64_t)M.n + 1);
	int l = (int)dice(LABELS), m = (int)dice(LABELS);

	add = M.label[a][l];
	remove = M.label[a][m];
	edit.add_n = dice(4) == 0;
	edit.remove_n = dice(4) == 0 && l != m;
	for (size_t i = 0; i < n; i++) {
		struct model_entry *e = &M.e[(from + i * (1 + dice(3))) % (size_t)M.n];

		id[i] = dice(20) ? e->id : 1000000 + (int64_t)i;
		if (id[i] != e->id || !sees(e, a))
			continue;
		if (M.subscribed[a][e->feed] && edit.read >= 0)
			e->read[a] = edit.read == 1;
		if (edit.add_n)
			e->label[a][l] = true;
		/* one entry may come twice: what it may see does not change in between */
	}
	for (size_t i = 0; edit.remove_n && i < n; i++) {
		for (int k = 0; k < M.n; k++) {
			if (M.e[k].id == id[i])
				M.e[k].label[a][m] = false;
		}
	}
	OK(fw_account_edit(M.st, M.account[a], id, n, &edit, NOW, &err));
}

static bool model_holds(const struct fw_stream *s, const char *path)
{
	return s->folder_only ? fw_str_eq(s->folder, fw_str(path)) : fw_path_is_within(fw_str(path), s->folder);
}

static void model_mark(int a)
{
	struct fw_stream s = {.account_id = M.account[a]};
	int kind = (int)dice(4), f = (int)dice(FEEDS), l = (int)dice(LABELS);
	int64_t last = dice(2) && M.n ? M.e[dice((uint64_t)M.n)].id : 0;

	if (kind == 1)
		s.feed_id = M.feed[f];
	if (kind == 2) {
		s.folder = fw_str(model_folder(f));
		s.folder_only = dice(2);
	}
	if (kind == 3) {
		s.labelled = true;
		s.label_id = M.label[a][l];
	}
	OK(fw_account_mark_read(M.st, &s, 0, last, &err));
	for (int i = 0; i < M.n; i++) {
		struct model_entry *e = &M.e[i];
		bool in = e->feed >= 0 && M.subscribed[a][e->feed] && (!last || e->id <= last);

		if (kind == 1)
			in &= e->feed == f;
		if (kind == 2)
			in &= e->feed >= 0 && model_holds(&s, M.folder[a][e->feed]);
		if (kind == 3)
			in &= e->label[a][l];
		e->read[a] |= in;
	}
}

struct model_seen {
	int64_t id[ENTRIES], feed[ENTRIES];
	int n;
};
static struct model_seen seen;

static int model_see(void *ctx, const struct fw_entry_row *row)
{
	(void)ctx;
	seen.id[seen.n] = row->id;
	seen.feed[seen.n++] = row->feed_id;
	return 0;
}

static int64_t model_feed_now(int64_t id)
{
	for (int i = 0; i < seen.n; i++) {
		if (seen.id[i] == id)
			return seen.feed[i];
	}
	return 0;
}

static void model_look(void)
{
	struct fw_entry_query q = {.oldest_first = true};

	seen.n = 0;
	OK(fw_store_entry_list(M.st, &q, model_see, NULL, &err));
}

static void model_prune(void)
{
	struct fw_prune p = {.now_ms = NOW, .entries_before_ms = NOW * 2};

	if (M.n < 500)
		return;
	OK(fw_store_prune(M.st, &p, &err));
	model_look();
	for (int i = 0; i < M.n; i++) {
		struct model_entry *e = &M.e[i];
		bool was = e->feed >= 0, labelled = false;

		for (int a = 0; a < ACCOUNTS; a++) {
			for (int l = 0; l < LABELS; l++)
				labelled |= e->label[a][l];
		}
		if (!was || model_feed_now(e->id))
			continue;
		ck_assert_msg(!labelled, "entry %lld had a label", (long long)e->id);
		e->feed = -1;
	}
}

/* Those with labels stay. */
static void model_retract(int f)
{
	int key[20];
	size_t n = 0;

	for (int i = 0; i < M.n && n < FW_N(key); i++) {
		struct model_entry *e = &M.e[i];
		bool labelled = false;

		if (e->feed != f || dice(4))
			continue;
		key[n++] = e->key;
		for (int a = 0; a < ACCOUNTS; a++) {
			for (int l = 0; l < LABELS; l++)
				labelled |= e->label[a][l];
		}
		e->feed = labelled ? f : -1;
	}
	retract(M.st, M.feed[f], key, n);
	model_look();
	for (int i = 0; i < M.n; i++)
		ck_assert_int_eq(M.e[i].feed >= 0, model_feed_now(M.e[i].id) > 0);
}

/* A feed goes, or goes up in another one; its slot gets a new feed. */
static void model_merge(bool merge)
{
	int from = (int)dice(FEEDS), into = (from + 1 + (int)dice(FEEDS - 1)) % FEEDS;
	char url[80];

	if (merge)
		OK(fw_store_feed_merge(M.st, M.feed[from], M.feed[into], &err));
	else
		OK(fw_store_unsubscribe(M.st, M.feed[from], &err));
	model_look();
	for (int a = 0; merge && a < ACCOUNTS; a++) { /* the mark of the one that the account has */
		for (int i = 0; i < M.n; i++) {
			struct model_entry *e = &M.e[i], *twin = NULL;
			bool moved = e->feed == from && model_feed_now(e->id), own = e->feed == into;

			for (int k = 0; own && k < M.n && !twin; k++) {
				if (M.e[k].feed == from && M.e[k].key == e->key)
					twin = &M.e[k];
			}
			if (twin) {
				for (int l = 0; l < LABELS; l++)
					e->label[a][l] |= twin->label[a][l];
			}
			if ((moved && M.subscribed[a][from]) || (own && M.subscribed[a][into]))
				continue;
			if (own && twin)
				e->read[a] = twin->read[a];
			else if (moved || own)
				e->unknown[a] = true;
		}
	}
	for (int i = 0; i < M.n; i++) {
		if (M.e[i].feed == from)
			M.e[i].feed = merge && model_feed_now(M.e[i].id) ? into : -1;
	}
	for (int a = 0; a < ACCOUNTS; a++) {
		if (merge && M.subscribed[a][from] && !M.subscribed[a][into])
			M.folder[a][into] = M.folder[a][from];
		M.subscribed[a][into] |= merge && M.subscribed[a][from];
		M.subscribed[a][from] = false;
	}
	ck_assert(fw_snprintf(url, sizeof(url), "https://f%d.example/", M.url_n++));
	M.feed[from] = subscribe(M.st, url, NOW);
	M.next_key[from] = 0;
}

/* What the mark decided in a merge: taken from the store, once. */
static void model_learn(void)
{
	for (int a = 0; a < ACCOUNTS; a++) {
		ids(M.st, (struct fw_stream){.account_id = M.account[a], .oldest_first = true});
		for (size_t k = 0; k < L.n; k++) {
			for (int i = 0; i < M.n; i++) {
				if (M.e[i].id == L.id[k] && M.e[i].unknown[a])
					M.e[i].read[a] = L.read[k];
			}
		}
		for (int i = 0; i < M.n; i++)
			M.e[i].unknown[a] = false;
	}
}

static int model_count_one(void *ctx, const struct fw_subscription *s)
{
	int64_t want = 0;
	int f = 0, a = *(int *)ctx;

	while (M.feed[f] != s->feed_id)
		ck_assert_int_lt(++f, FEEDS);
	ck_assert(M.subscribed[a][f]);
	for (int i = 0; i < M.n; i++)
		want += M.e[i].feed == f && !M.e[i].read[a];
	ck_assert_msg(s->unread_n == want, "feed %d of account %d: %lld unread, not %lld", f, a, (long long)s->unread_n,
		(long long)want);
	return 0;
}

static bool model_takes(const struct model_entry *e, int a, const struct fw_stream *s, int f, int l)
{
	if (e->feed < 0 || (s->after_id && e->id <= s->after_id) || (s->before_id && e->id >= s->before_id))
		return false;
	if (s->labelled ? !e->label[a][l] : s->feed_id && !M.subscribed[a][f] ? !sees(e, a) : !M.subscribed[a][e->feed])
		return false;
	if ((s->feed_id && e->feed != f) || (s->not_labelled && e->label[a][l]))
		return false;
	if (s->folder.p && (!M.subscribed[a][e->feed] || !model_holds(s, M.folder[a][e->feed])))
		return false;
	return s->read == FW_READ_ANY || (M.subscribed[a][e->feed] ? e->read[a] : true) == (s->read == FW_READ_READ);
}

static void model_stream(int a)
{
	struct fw_stream s = {.account_id = M.account[a],
		.read = (enum fw_read_filter)dice(3),
		.oldest_first = dice(2),
		.limit = dice(2) ? 1 + dice(400) : 0,
		.offset = dice(4) ? 0 : dice(50)};
	int f = (int)dice(FEEDS), l = (int)dice(LABELS), by = (int)dice(6);
	size_t n = 0, skip = s.offset;
	int64_t count, all = 0;

	if (by == 1)
		s.feed_id = M.feed[f];
	if (by == 2) {
		s.folder = fw_str(model_folder(f));
		s.folder_only = dice(2);
	}
	if (by == 3)
		s.labelled = true;
	if (by == 4)
		s.not_labelled = true;
	s.label_id = M.label[a][l];
	if (dice(3) == 0)
		s.after_id = M.e[dice((uint64_t)M.n)].id;
	if (dice(3) == 0)
		s.before_id = M.e[dice((uint64_t)M.n)].id;
	if (dice(4) == 0)
		s.since_ms = NOW - 1000; /* all are newer: but the dates are read */
	if (dice(2))
		ids(M.st, s);
	else
		entries(M.st, s);
	for (int k = 0; k < M.n; k++) {
		const struct model_entry *e = &M.e[s.oldest_first ? k : M.n - 1 - k];

		if (!model_takes(e, a, &s, f, l))
			continue;
		all++;
		if (skip && skip--)
			continue;
		if (s.limit && n == s.limit)
			continue;
		ck_assert_msg(n < L.n && L.id[n] == e->id, "stream %d of account %d: %zu is not %lld", by, a, n,
			(long long)e->id);
		ck_assert_int_eq(L.read[n], M.subscribed[a][e->feed] ? e->read[a] : true);
		ck_assert_int_eq(L.feed[n++], M.feed[e->feed]);
	}
	ck_assert_msg(L.n == n, "stream %d of account %d, read %d, %d of %d: %zu entries, not %zu", by, a, (int)s.read,
		f, l, L.n, n);
	OK(fw_account_count(M.st, &s, &count, &err));
	ck_assert_int_eq(count, all);
}

static void model_check(void)
{
	for (int a = 0; a < ACCOUNTS; a++) {
		const struct fw_stream s = {.account_id = M.account[a], .labelled = true};
		int64_t want = 0, starred = 0, starred_n, newest_id;
		int n = 0;

		for (int f = 0; f < FEEDS; f++)
			n += M.subscribed[a][f];
		OK(fw_account_subscription_list(M.st, M.account[a], 0, dice(2), model_count_one, &a, &err));
		for (int i = 0; i < M.n; i++) {
			want += M.e[i].feed >= 0 && M.subscribed[a][M.e[i].feed] && !M.e[i].read[a];
			starred += M.e[i].feed >= 0 && M.e[i].label[a][0];
		}
		OK(fw_account_count(M.st, &s, &starred_n, &err));
		OK(fw_account_newest_id(M.st, &newest_id, &err));
		ck_assert(unread(M.st, M.account[a]) == want && starred_n == starred);
		ck_assert(newest_id >= (M.n ? M.e[M.n - 1].id : 0));
		if (M.n)
			model_stream(a);
		(void)n;
	}
}

static void model_step(void)
{
	int a = (int)dice(ACCOUNTS), f = (int)dice(FEEDS);

	switch (dice(13)) {
	case 0:
	case 1:
	case 2:
		if (M.n < ENTRIES - 100)
			model_push(f);
		break;
	case 3:
		model_subscribe(a, f);
		break;
	case 4:
		if (dice(3) == 0)
			model_unsubscribe(a, f);
		break;
	case 5:
		if (dice(2))
			model_mark(a);
		break;
	case 6:
		model_prune();
		break;
	case 7:
		if (dice(4) == 0)
			model_merge(dice(3) > 0);
		model_learn();
		break;
	case 8:
		model_retract(f);
		break;
	default:
		if (M.n)
			model_edit(a);
	}
}

/* The walk goes on in a copy of the store. */
static void model_copy(int driver)
{
	struct fw_store *to = fresh(driver);
	struct fw_copy_stats s;

	OK(fw_copy(M.st, to, &(struct fw_copy_options){.batch_bytes = 1 << 20}, &s, &err));
	ck_assert_int_eq(s.differing, 0);
	fw_store_close(M.st);
	M.st = to;
	fw_store_set_matcher(to, &MODEL_MATCHER);
	check_clean(to);
}

/* FW_SEED and FW_STEPS: another walk, a longer one. */
START_TEST(a_random_walk)
{
	static const char *const NAME[LABELS] = {"", "one", "two"};
	const char *steps = getenv("FW_STEPS"), *seed = getenv("FW_SEED");
	int step_n = steps ? (int)strtol(steps, NULL, 10) : 250;
	char url[80];

	memset(&M, 0, sizeof(M));
	M.st = fresh(_i);
	fw_store_set_matcher(M.st, &MODEL_MATCHER);
	M.random = (seed ? (uint64_t)atoll(seed) : 1) + (uint64_t)_i;
	for (int a = 0; a < ACCOUNTS; a++) {
		M.account[a] = account_add(M.st, fw_arena_printf(&A, "account%d", a));
		for (int l = 1; l < LABELS; l++)
			OK(fw_account_label(M.st, M.account[a], fw_str(NAME[l]), true, &M.label[a][l], &err));
	}
	for (int f = 0; f < FEEDS; f++) {
		ck_assert(fw_snprintf(url, sizeof(url), "https://f%d.example/", M.url_n++));
		M.feed[f] = subscribe(M.st, url, NOW);
		model_push(f);
	}
	for (int i = 0; i < step_n; i++) {
		model_step();
		model_check();
		if (i % 50 == 0)
			check_clean(M.st);
		if (i % 100 == 75)
			model_copy(_i);
	}
	check_clean(M.st);
	fw_store_close(M.st);
}
END_TEST

/* ---- icons ----------------------------------------------------------------------------------- */

#define ICON_N 150 /* more than one statement reads */

struct seen_icon {
	int64_t id, tried_ms;
	bool failed;
	char type[20];
	size_t len;
	unsigned char first;
};
struct seen_icons {
	struct seen_icon icon[ICON_N];
	size_t n;
};

static int icon_see(void *ctx, const struct fw_icon *i)
{
	struct seen_icons *s = ctx;
	struct seen_icon *to = &s->icon[s->n++];

	ck_assert_uint_le(s->n, FW_N(s->icon));
	ck_assert(fw_str_starts(i->url, FW_STR("https://i.example/")));
	*to = (struct seen_icon){.id = i->id, .tried_ms = i->tried_ms, .failed = i->failed, .len = i->bytes.len};
	ck_assert(fw_str_copy(to->type, sizeof(to->type), i->type));
	to->first = i->bytes.len ? (unsigned char)i->bytes.p[0] : 0;
	return 0;
}

static size_t icons_find(struct fw_store *st, const struct fw_str *url, size_t n, bool bytes, struct seen_icons *out)
{
	out->n = 0;
	OK(fw_icon_find(st, url, n, bytes, icon_see, out, &err));
	return out->n;
}

static int icon_stop(void *ctx, const struct fw_icon *i)
{
	(void)i;
	++*(int *)ctx;
	return 7;
}

START_TEST(icons_are_kept_by_address)
{
	struct fw_store *st = fresh(_i);
	const struct fw_str url[] = {FW_STR("https://i.example/a.png"), FW_STR("https://i.example/b.png")};
	char *large = fw_arena_alloc(&A, FW_ICON_MAX_BYTES + 1);
	struct fw_icon a = {.url = url[0], .type = FW_STR("image/png"), .tried_ms = NOW};
	struct seen_icons *s = fw_arena_alloc(&A, sizeof(*s));
	int64_t id;
	int n = 0;

	memset(large, 0xff, FW_ICON_MAX_BYTES + 1);
	large[1] = 0; /* any bytes */
	a.bytes = (struct fw_str){large, FW_ICON_MAX_BYTES};
	ck_assert_uint_eq(icons_find(st, url, 2, true, s), 0);
	OK(fw_icon_put(st, &a, &err));
	OK(fw_icon_put(st, &(struct fw_icon){.url = url[1], .failed = true, .tried_ms = NOW}, &err));
	ck_assert_uint_eq(icons_find(st, url, 1, true, s), 1);
	ck_assert(s->icon[0].len == FW_ICON_MAX_BYTES && s->icon[0].first == 0xff && !s->icon[0].failed);
	ck_assert_str_eq(s->icon[0].type, "image/png");
	id = s->icon[0].id;
	ck_assert_uint_eq(icons_find(st, url, 2, false, s), 2);
	ck_assert(!s->icon[0].len && !s->icon[1].len);
	ck_assert_uint_eq(icons_find(st, url + 1, 1, true, s), 1);
	ck_assert(s->icon[0].failed && !s->icon[0].type[0] && s->icon[0].tried_ms == NOW && s->icon[0].id != id);
	/* a refresh that fails keeps the picture; another picture has another id */
	OK(fw_icon_put(st, &(struct fw_icon){.url = url[0], .failed = true, .tried_ms = NOW + 1}, &err));
	ck_assert_uint_eq(icons_find(st, url, 1, true, s), 1);
	ck_assert(s->icon[0].id == id && s->icon[0].failed && s->icon[0].len == FW_ICON_MAX_BYTES);
	a.tried_ms = NOW + 2;
	OK(fw_icon_put(st, &a, &err));
	OK(fw_icon_put(st, &a, &err));
	ck_assert_uint_eq(icons_find(st, url, 1, false, s), 1);
	ck_assert(s->icon[0].id == id && !s->icon[0].failed && s->icon[0].tried_ms == NOW + 2);
	a.bytes.len = 5;
	OK(fw_icon_put(st, &a, &err));
	ck_assert_uint_eq(icons_find(st, url, 1, true, s), 1);
	ck_assert(s->icon[0].id > id && s->icon[0].len == 5);
	a.bytes.len = FW_ICON_MAX_BYTES + 1;
	IS(fw_icon_put(st, &a, &err), FW_EINVAL);
	ck_assert(strstr(err.text, "64 KiB"));
	IS(fw_icon_find(st, url, 2, true, icon_stop, &n, &err), 7);
	ck_assert_int_eq(n, 1);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

START_TEST(icons_are_pruned_by_age)
{
	struct fw_store *st = fresh(_i);
	struct fw_prune p = {.records = true, .now_ms = NOW + FW_ICON_KEEP_MS};
	struct seen_icons *s = fw_arena_alloc(&A, sizeof(*s));
	struct fw_str url[ICON_N];

	for (size_t i = 0; i < FW_N(url); i++) {
		struct fw_icon icon = {.tried_ms = NOW - 1 + (int64_t)(i % 2), .failed = i % 3 == 0};

		url[i] = icon.url = fw_str(fw_arena_printf(&A, "https://i.example/%zu", i));
		if (!icon.failed) {
			icon.type = FW_STR("image/gif");
			icon.bytes = icon.url;
		}
		OK(fw_icon_put(st, &icon, &err));
	}
	ck_assert_uint_eq(icons_find(st, url, FW_N(url), true, s), FW_N(url));
	OK(fw_store_prune(st, &p, &err));
	ck_assert_uint_eq(icons_find(st, url, FW_N(url), true, s), FW_N(url) / 2);
	for (size_t i = 0; i < s->n; i++)
		ck_assert_int_eq(s->icon[i].tried_ms, NOW);
	p.now_ms++;
	OK(fw_store_prune(st, &p, &err));
	ck_assert_uint_eq(icons_find(st, url, FW_N(url), true, s), 0);
	ck_assert(fw_icon_is_stale(&(struct fw_icon){.tried_ms = NOW}, NOW + FW_ICON_FRESH_MS));
	ck_assert(!fw_icon_is_stale(&(struct fw_icon){.tried_ms = NOW}, NOW + FW_ICON_FRESH_MS - 1));
	ck_assert(fw_icon_is_stale(&(struct fw_icon){.tried_ms = NOW, .failed = true}, NOW + FW_ICON_RETRY_MS));
	ck_assert(!fw_icon_is_stale(&(struct fw_icon){.tried_ms = NOW, .failed = true}, NOW + FW_ICON_RETRY_MS - 1));
	fw_store_close(st);
}
END_TEST

static void begin(void)
{
	fw_arena_init(&A, 0);
}

static void end(void)
{
	fw_arena_finish(&A);
}

int main(void)
{
	const TTest *const every[] = {nothing_without_an_sql_store};
	const TTest *const sql[] = {accounts_come_and_go, tokens_find_their_account, fever_clients_send_a_hash,
		subscriptions_have_titles_and_folders, logins_are_not_shared, all_feeds_of_the_operator,
		invalid_names_are_refused, a_login_needs_no_leave, the_operators_login_stays, a_merge_nobody_asked_for,
		accounts_have_only_so_many_feeds, edits_are_limited, labels_have_names,
		folders_stay_short_and_labels_few, streams_are_limited_and_searched, work_ends_at_its_limit,
		a_search_is_limited_to_own_feeds, entries_are_got_by_number, edits_below_the_mark,
		marks_are_of_one_folder_or_more, a_reader_keeps_what_its_feed_takes_back, all_is_read_again,
		icons_are_kept_by_address, icons_are_pruned_by_age, a_random_walk};
	Suite *s = suite_create("accounts");
	TCase *t = tcase_create("every driver");

	stores_begin();
	tcase_set_timeout(t, 300);
	tcase_add_unchecked_fixture(t, begin, end);
	for (size_t i = 0; i < FW_N(every); i++)
		tcase_add_loop_test(t, every[i], 0, under_test_n);
	for (int driver = 0; driver < under_test_n; driver++) {
		for (size_t i = 0; i < FW_N(sql) && has_accounts(driver); i++)
			tcase_add_loop_test(t, sql[i], driver, driver + 1);
		if (under_test[driver].shared && has_accounts(driver))
			tcase_add_loop_test(t, a_feed_with_a_subscriber_is_not_paused, driver, driver + 1);
		if (under_test[driver].shared && has_accounts(driver))
			tcase_add_loop_test(t, a_login_comes_between, driver, driver + 1);
		if (under_test[driver].shared && has_accounts(driver))
			tcase_add_loop_test(t, an_edit_is_stored_whole, driver, driver + 1);
		if (under_test[driver].shared && has_accounts(driver))
			tcase_add_loop_test(t, edits_race_with_new_entries, driver, driver + 1);
		if (under_test[driver].shared && has_accounts(driver))
			tcase_add_loop_test(t, what_is_read_stays_read, driver, driver + 1);
		if (under_test[driver].shared && has_accounts(driver))
			tcase_add_loop_test(t, counts_are_exact_in_a_rush, driver, driver + 1);
	}
	suite_add_tcase(s, t);
	return run_suite(s);
}
