/* SPDX-License-Identifier: ISC */
#include "../../suite.h"
#include "base/str.h"
#include "store/dsn.h"

static struct fw_arena A;
static struct fw_dsn d;
static struct fw_err err;

static void setup(void)
{
	fw_arena_init(&A, 0);
}

static void teardown(void)
{
	fw_arena_finish(&A);
}

static const char *shown(const char *url)
{
	static struct fw_buf b;

	fw_buf_reset(&b);
	fw_dsn_show(&b, url);
	fw_buf_addc(&b, '\0');
	return b.p;
}

#define IS(str, want) ck_assert_msg(fw_str_eq((str), fw_str(want)), "\"%.*s\" is not \"%s\"", FW_STR_ARG(str), want)

START_TEST(parts)
{
	ck_assert_int_eq(
		fw_dsn_split(&A, FW_DSN_STORE,
			"postgres://feed%40er:p%3Aw@db.example:5433/feeds?schema=a%20b&sslmode=require", &d, &err),
		0);
	IS(d.scheme, "postgres");
	IS(d.user, "feed@er");
	IS(d.password, "p:w");
	IS(d.host, "db.example");
	IS(d.path, "feeds");
	ck_assert_int_eq(d.port, 5433);
	IS(fw_dsn_option(&d, "schema"), "a b");
	IS(fw_dsn_option(&d, "sslmode"), "require");
	ck_assert_ptr_null(fw_dsn_option(&d, "ssl").p);
}
END_TEST

START_TEST(parts_that_are_not_there)
{
	ck_assert_int_eq(fw_dsn_split(&A, FW_DSN_STORE, "redis://localhost", &d, &err), 0);
	ck_assert_ptr_null(d.user.p);
	ck_assert_ptr_null(d.password.p);
	ck_assert_uint_eq(d.path.len, 0);
	ck_assert_int_eq(d.port, 0);
	ck_assert_int_eq(fw_dsn_split(&A, FW_DSN_STORE, "mysql://u@%2Frun%2Fmysqld%2Fmysqld.sock/db", &d, &err), 0);
	IS(d.user, "u");
	ck_assert_ptr_null(d.password.p);
	IS(d.host, "/run/mysqld/mysqld.sock");
	ck_assert_int_eq(fw_dsn_split(&A, FW_DSN_STORE, "postgres:///feeds?host=/run/postgresql", &d, &err), 0);
	ck_assert_ptr_null(d.host.p);
	IS(d.path, "feeds");
	IS(fw_dsn_option(&d, "host"), "/run/postgresql");
	ck_assert_int_eq(fw_dsn_split(&A, FW_DSN_STORE, "redis://[::1]:6380/2?", &d, &err), 0);
	IS(d.host, "::1");
	ck_assert_uint_eq(d.option_n, 0);
}
END_TEST

START_TEST(refused) /* the message names the place, and hides the password */
{
	static const struct {
		const char *url, *words;
	} bad[] = {
		{"redis://h:0/", "invalid port"},
		{"redis://h:66000/", "invalid port"},
		{"redis://u:pa%zzss@h/", "password"},
		{"redis://u:pass@h/%00", "path"},
		{"redis://h/%4", "path"},
		{"redis://h/?a", "\"a\": write name=value"},
		{"redis://h/?=b", "name=value"},
		{"redis://h/?a=1&a=2", "\"a\" is repeated"},
	};

	for (size_t i = 0; i < FW_N(bad); i++) {
		ck_assert_int_eq(fw_dsn_split(&A, FW_DSN_STORE, bad[i].url, &d, &err), FW_EINVAL);
		ck_assert_msg(strstr(err.text, bad[i].words) != NULL, "%s: %s", bad[i].url, err.text);
		ck_assert_ptr_null(strstr(err.text, "ss@"));
	}
}
END_TEST

START_TEST(too_many_options)
{
	struct fw_buf b = FW_BUF_INIT(0);

	fw_buf_adds(&b, "redis://h/?");
	for (int i = 0; i <= FW_DSN_OPTIONS; i++)
		fw_buf_addf(&b, "o%d=1&", i);
	fw_buf_addc(&b, '\0');
	ck_assert_int_eq(fw_dsn_split(&A, FW_DSN_STORE, b.p, &d, &err), FW_EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "more than 32"));
	fw_buf_finish(&b);
}
END_TEST

START_TEST(options_checked)
{
	static const char *const known[] = {"timeout", "shards", NULL};
	int64_t n;

	ck_assert_int_eq(fw_dsn_split(&A, FW_DSN_STORE, "redis://h/?shards=16", &d, &err), 0);
	ck_assert_int_eq(fw_dsn_only(&d, known, &err), 0);
	ck_assert_int_eq(fw_dsn_number(&d, "shards", 1, 64, 1, &n, &err), 0);
	ck_assert_int_eq(n, 16);
	ck_assert_int_eq(fw_dsn_number(&d, "timeout", 1, 64, 5, &n, &err), 0);
	ck_assert_int_eq(n, 5);
	ck_assert_int_eq(fw_dsn_number(&d, "shards", 1, 8, 1, &n, &err), FW_EINVAL);
	ck_assert_str_eq(err.text, "store URL: shards=16: not a number from 1 to 8");
	ck_assert_int_eq(fw_dsn_split(&A, FW_DSN_STORE, "redis://h/?shard=16", &d, &err), 0);
	ck_assert_int_eq(fw_dsn_only(&d, known, &err), FW_EINVAL);
	ck_assert_str_eq(err.text, "store URL: unknown option \"shard\": known are timeout, shards");
}
END_TEST

START_TEST(passwords_are_never_shown)
{
	char longer[600];

	ck_assert_str_eq(
		shown("postgres://u:secret@h:1/db?sslmode=require"), "postgres://u:***@h:1/db?sslmode=require");
	ck_assert_str_eq(shown("postgres://u@h/db"), "postgres://u@h/db");
	ck_assert_str_eq(
		shown("postgres:///db?user=u&password=secret&host=h"), "postgres:///db?user=u&password=***&host=h");
	ck_assert_str_eq(shown("rediss://:secret@h/0?keypass=secret"), "rediss://:***@h/0?keypass=***");
	ck_assert_str_eq(shown("sqlite:/var/lib/feeds.db"), "sqlite:/var/lib/feeds.db");
	/* also where it is not percent-encoded as it should be */
	ck_assert_str_eq(shown("redis://u:se/cr@et@h:1/0"), "redis://u:***@h:1/0");
	ck_assert_str_eq(shown("redis://u:se?cr#et@h:1/0"), "redis://u:***@h:1/0");
	ck_assert_str_eq(shown("postgres://u:secret@h/db?user=a@b&password=se:c"),
		"postgres://u:***@h/db?user=a@b&password=***");
	ck_assert_str_eq(shown("postgres:///db?user=a@b"), "postgres:///db?user=a@b");
	memset(longer, 'x', sizeof(longer));
	memcpy(longer, "redis://", 8);
	longer[sizeof(longer) - 1] = '\0';
	ck_assert_uint_eq(strlen(shown(longer)), 300);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit store dsn");
	TCase *tc = tcase_create("store URLs");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, parts);
	tcase_add_test(tc, parts_that_are_not_there);
	tcase_add_test(tc, refused);
	tcase_add_test(tc, too_many_options);
	tcase_add_test(tc, options_checked);
	tcase_add_test(tc, passwords_are_never_shown);
	suite_add_tcase(s, tc);
	return run_suite(s);
}
