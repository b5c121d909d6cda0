/* SPDX-License-Identifier: ISC */
/* Miniflux' API: the filters of lists, HTTP Basic, and remembered passwords. */
#include <check.h>

#include "http/auth/basic.h"
#include "http/readers/miniflux/filter.h"
#include "http/auth/password_cache.h"
#include "../../suite.h"

static bool filter(struct fw_arena *a, const char *query, struct miniflux_filter *out, const char **name)
{
	struct http_form form;
	const char *expected;

	ck_assert_int_eq(http_form_read(a, fw_str(query), 0, &form), 0);
	return miniflux_filter_read(&form, out, name, &expected);
}

START_TEST(defaults)
{
	static const char *const SAME[] = {"", "limit=&offset=&status=&order=&direction=&starred=&search=+&before=0",
		"limit=100&offset=0&order=published_at&direction=asc&status=read&status=unread", "unknown=1&tags="};
	struct miniflux_filter f;
	struct fw_arena a;
	const char *name;

	fw_arena_init(&a, 1 << 20);
	for (size_t i = 0; i < FW_N(SAME); i++) {
		ck_assert_msg(filter(&a, SAME[i], &f, &name), "%s: %s", SAME[i], name);
		ck_assert_int_eq(f.order, MINIFLUX_BY_DATE);
		ck_assert(f.s.by_date && f.s.oldest_first && !f.s.labelled && !f.s.not_labelled && !f.nothing);
		ck_assert(!f.s.search.p && !f.s.published_since_ms && !f.s.published_until_ms && !f.s.until_ms);
		ck_assert_uint_eq(f.s.limit, MINIFLUX_LIMIT);
		ck_assert_uint_eq(f.s.offset, 0);
		ck_assert_int_eq(f.s.read, FW_READ_ANY);
	}
	fw_arena_finish(&a);
}
END_TEST

START_TEST(all)
{
	struct miniflux_filter f;
	struct fw_arena a;
	const char *name;

	fw_arena_init(&a, 1 << 20);
	ck_assert(filter(&a,
		"status=unread&limit=0&offset=7&order=id&direction=desc&published_after=10&published_before=20&"
		"changed_before=30&changed_after=40&after_entry_id=5&before_entry_id=9&starred=1&search=a+b&feed_id=3&"
		"category_id=4",
		&f, &name));
	ck_assert_int_eq(f.s.read, FW_READ_UNREAD);
	ck_assert(!f.s.limit && f.s.offset == 7 && !f.s.by_date && !f.s.oldest_first && f.order == MINIFLUX_BY_ID);
	ck_assert_int_eq(f.s.published_since_ms, 10001); /* after, not at */
	ck_assert_int_eq(f.s.published_until_ms, 20000);
	ck_assert_int_eq(f.s.until_ms, 30000);
	ck_assert_int_eq(f.changed_after_ms, 40000);
	ck_assert(f.s.after_id == 5 && f.s.before_id == 9 && f.feed_id == 3 && f.category_id == 4);
	ck_assert(f.s.labelled && f.s.label_id == FW_LABEL_STARRED && !f.s.not_labelled);
	ck_assert(fw_str_eq(f.s.search, FW_STR("a b")));
	ck_assert(filter(&a, "starred=false&status=read&order=category_title", &f, &name));
	ck_assert(!f.s.labelled && f.s.not_labelled && f.s.read == FW_READ_READ);
	ck_assert_int_eq(f.order, MINIFLUX_BY_CATEGORY_TITLE);
	ck_assert(filter(&a, "status=removed", &f, &name) && f.nothing);
	ck_assert(filter(&a, "status=removed&status=read", &f, &name) && !f.nothing && f.s.read == FW_READ_READ);
	ck_assert(filter(&a, "before=9999999999999999999&limit=9999999999", &f, &name) == false);
	ck_assert(filter(&a, "before=999999999999999999&limit=9999999999", &f, &name) && f.s.limit == INT32_MAX);
	fw_arena_finish(&a);
}
END_TEST

START_TEST(booleans)
{
	static const char *const WORD[] = {
		"1", "t", "T", "true", "TRUE", "True", "0", "f", "F", "false", "FALSE", "False"};
	static const char *const OTHER[] = {"", "yes", "tRUE", "2", "on", "true "};

	for (size_t i = 0; i < FW_N(WORD); i++)
		ck_assert_int_eq(miniflux_bool(fw_str(WORD[i])), i < 6);
	for (size_t i = 0; i < FW_N(OTHER); i++)
		ck_assert_int_eq(miniflux_bool(fw_str(OTHER[i])), -1);
}
END_TEST

START_TEST(orders)
{
	static const struct {
		const char *query;
		enum miniflux_order order;
		enum fw_stream_sort sort;
	} CASE[] = {
		{"order=changed_at", MINIFLUX_BY_SORT, FW_SORT_CHANGED},
		{"order=title", MINIFLUX_BY_SORT, FW_SORT_TITLE},
		{"order=author", MINIFLUX_BY_SORT, FW_SORT_AUTHOR},
		{"order=category_id", MINIFLUX_BY_CATEGORY_ID, FW_SORT_NONE},
		{"order=created_at", MINIFLUX_BY_ID, FW_SORT_NONE},
	};
	struct miniflux_filter f;
	struct fw_arena a;
	const char *name;

	fw_arena_init(&a, 1 << 20);
	for (size_t i = 0; i < FW_N(CASE); i++) {
		ck_assert_msg(filter(&a, CASE[i].query, &f, &name), "%s", CASE[i].query);
		ck_assert(f.order == CASE[i].order && f.s.sort == CASE[i].sort && !f.s.by_date);
	}
	fw_arena_finish(&a);
}
END_TEST

START_TEST(wrong)
{
	static const struct {
		const char *query, *name;
	} CASE[] = {
		{"status=new", "status"},
		{"status=read&status=x", "status"},
		{"limit=-1", "limit"},
		{"limit=1x", "limit"},
		{"offset=+1", "offset"},
		{"order=ID", "order"},
		{"direction=up", "direction"},
		{"before=x", "before"},
		{"after=1.5", "after"},
		{"published_before=-1", "published_before"},
		{"published_after=x", "published_after"},
		{"changed_before=x", "changed_before"},
		{"changed_after=x", "changed_after"},
		{"before_entry_id=99999999999999999999", "before_entry_id"},
		{"after_entry_id=x", "after_entry_id"},
		{"feed_id=x", "feed_id"},
		{"category_id=-3", "category_id"},
		{"tags=&tags=a", "tags"},
	};
	struct miniflux_filter f;
	struct fw_arena a;
	const char *name;

	fw_arena_init(&a, 1 << 20);
	for (size_t i = 0; i < FW_N(CASE); i++) {
		ck_assert_msg(!filter(&a, CASE[i].query, &f, &name), "%s", CASE[i].query);
		ck_assert_str_eq(name, CASE[i].name);
	}
	fw_arena_finish(&a);
}
END_TEST

START_TEST(basic)
{
	static const struct {
		const char *header, *name, *password; /* NULL: refused */
	} CASE[] = {
		{"Basic dXNlcjpwYXNz", "user", "pass"},
		{" basic  dXNlcjpwYXNz ", "user", "pass"},
		{"Basic YTpiOmM=", "a", "b:c"},
		{"Basic dTo=", "u", ""},
		{"Basic OnBhc3M=", "", "pass"},
		{"Basic cGFzcw==", NULL, NULL},
		{"Basic dXNlcjpwYXN", NULL, NULL},
		{"Basic ****", NULL, NULL},
		{"Bearer dXNlcjpwYXNz", NULL, NULL},
		{"Basic", NULL, NULL},
		{"", NULL, NULL},
	};
	char buffer[BASIC_MAX], large[2 * BASIC_MAX];
	struct fw_str name, password;

	for (size_t i = 0; i < FW_N(CASE); i++) {
		bool good = basic_read(fw_str(CASE[i].header), buffer, &name, &password);

		ck_assert_msg(good == (CASE[i].name != NULL), "%s", CASE[i].header);
		if (good)
			ck_assert(
				fw_str_eq(name, fw_str(CASE[i].name)) && fw_str_eq(password, fw_str(CASE[i].password)));
	}
	memset(large, 'O', sizeof(large)); /* a colon, and more of them */
	memcpy(large, "Basic ", 6);
	for (size_t n = 4; n + 6 < sizeof(large); n += 4)
		ck_assert(basic_read((struct fw_str){large, 6 + n}, buffer, &name, &password) ==
			(n / 4 * 3 <= BASIC_MAX && memchr(buffer, ':', n / 4 * 3) != NULL));
}
END_TEST

START_TEST(remembered)
{
	struct password_cache *c = password_cache_create();
	struct fw_str alice = FW_STR("alice"), word = FW_STR("word");

	ck_assert_ptr_nonnull(c);
	ck_assert(!password_cache_has(c, alice, word, 1, 1000));
	password_cache_add(c, alice, word, 1, 1000);
	ck_assert(password_cache_has(c, alice, word, 1, 1000));
	ck_assert(password_cache_has(c, alice, word, 1, 1000 + PASSWORD_CACHE_MS - 1));
	ck_assert(!password_cache_has(c, alice, word, 1, 1000 + PASSWORD_CACHE_MS));
	ck_assert(!password_cache_has(c, alice, word, 2, 1000)); /* the password changed */
	ck_assert(!password_cache_has(c, alice, FW_STR("Word"), 1, 1000));
	ck_assert(!password_cache_has(c, FW_STR("bob"), word, 1, 1000));
	ck_assert(!password_cache_has(c, FW_STR("alicew"), FW_STR("ord"), 1, 1000));
	for (int i = 0; i < 10 * PASSWORD_CACHE_N; i++) { /* of a fixed size: old ones give way */
		char name[16];

		ck_assert(fw_snprintf(name, sizeof(name), "n%d", i));
		password_cache_add(c, fw_str(name), word, 1, 1000);
		ck_assert(password_cache_has(c, fw_str(name), word, 1, 1000));
	}
	password_cache_destroy(c);
	password_cache_destroy(NULL);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit http miniflux");
	TCase *t = tcase_create("miniflux");

	tcase_add_test(t, defaults);
	tcase_add_test(t, all);
	tcase_add_test(t, booleans);
	tcase_add_test(t, orders);
	tcase_add_test(t, wrong);
	tcase_add_test(t, basic);
	tcase_add_test(t, remembered);
	suite_add_tcase(s, t);
	return run_suite(s);
}
