/* SPDX-License-Identifier: ISC */
/* The base room, which all other rooms use. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/ring.h"
#include "base/str.h"
#include "base/clock.h"
#include "base/url.h"
#include "../../suite.h"

START_TEST(url_resolve_rfc3986)
{
	/* RFC 3986 section 5.4, base http://a/b/c/d;p?q */
	static const struct {
		const char *ref, *want;
	} T[] = {
		{"g", "http://a/b/c/g"},
		{"./g", "http://a/b/c/g"},
		{"g/", "http://a/b/c/g/"},
		{"/g", "http://a/g"},
		{"//g", "http://g"},
		{"?y", "http://a/b/c/d;p?y"},
		{"g?y", "http://a/b/c/g?y"},
		{"#s", "http://a/b/c/d;p?q#s"},
		{"g#s", "http://a/b/c/g#s"},
		{";x", "http://a/b/c/;x"},
		{"", "http://a/b/c/d;p?q"},
		{".", "http://a/b/c/"},
		{"./", "http://a/b/c/"},
		{"..", "http://a/b/"},
		{"../", "http://a/b/"},
		{"../g", "http://a/b/g"},
		{"../..", "http://a/"},
		{"../../g", "http://a/g"},
		{"../../../g", "http://a/g"},
		{"/./g", "http://a/g"},
		{"/../g", "http://a/g"},
		{"g.", "http://a/b/c/g."},
		{"..g", "http://a/b/c/..g"},
		{"./../g", "http://a/b/g"},
		{"g/./h", "http://a/b/c/g/h"},
		{"g/../h", "http://a/b/c/h"},
		{"g;x=1/../y", "http://a/b/c/y"},
		{"http:g", "http://a/b/c/g"},
		{"mailto:x@y", "mailto:x@y"},
		{" x y ", "http://a/b/c/x%20y"},
		{"http:f://g/h", "http://a/b/c/f://g/h"},
	};
	/* no host that neither input has */
	static const struct {
		const char *base, *ref, *want;
	} HOSTS[] = {
		{"file:/a/b", "..//g/h", "file:/g/h"},
		{"http:/a", ".//g/h", "http:/g/h"},
		{"http://[::1]g/a", "h", "http://[::1]g/h"},
	};
	struct fw_arena a;

	fw_arena_init(&a, 0);
	for (size_t i = 0; i < FW_N(T); i++) {
		struct fw_str r = fw_url_resolve(&a, FW_STR("http://a/b/c/d;p?q"), fw_str(T[i].ref));

		ck_assert_str_eq(r.p, T[i].want);
	}
	for (size_t i = 0; i < FW_N(HOSTS); i++)
		ck_assert_str_eq(fw_url_resolve(&a, fw_str(HOSTS[i].base), fw_str(HOSTS[i].ref)).p, HOSTS[i].want);
	fw_arena_finish(&a);
}
END_TEST

START_TEST(url_clean_accepts)
{
	static const struct {
		const char *in, *want, *user;
	} T[] = {
		{" HTTP://Example.ORG ", "http://example.org/", NULL},
		{"example.org/feed?a=b&c", "https://example.org/feed?a=b&c", NULL},
		{"feed://example.org/x", "http://example.org/x", NULL},
		{"feed:https://example.org/x", "https://example.org/x", NULL},
		{"https://u%40x:p@example.org:443/a#frag", "https://example.org/a", "u@x"},
		{"http://[::1]:8080/", "http://[::1]:8080/", NULL},
		{"localhost:8080/x", "https://localhost:8080/x", NULL},
	};
	struct fw_str url, user, pass;
	struct fw_err err;
	struct fw_arena a;

	fw_arena_init(&a, 0);
	for (size_t i = 0; i < FW_N(T); i++) {
		ck_assert_int_eq(fw_url_clean(&a, fw_str(T[i].in), &url, &user, &pass, &err), 0);
		ck_assert_str_eq(url.p, T[i].want);
		if (T[i].user)
			ck_assert_str_eq(user.p, T[i].user);
	}
	fw_arena_finish(&a);
}
END_TEST

START_TEST(url_clean_refuses) /* NET-09, NET-18, LIM-09 */
{
	static const char *const T[] = {"", "ftp://x.org/", "file:///etc/passwd", "|cmd", "exec:ls", "http://",
		"http:///x", "http://a b.org/", "http://x.org:0/", "http://x.org:99999/", "http://[fe80::1%25eth0]/",
		"http://x.org/\nHost: y", "javascript:alert(1)", "word"};
	struct fw_str url, user, pass;
	struct fw_err err;
	struct fw_arena a;

	fw_arena_init(&a, 0);
	for (size_t i = 0; i < FW_N(T); i++) {
		ck_assert_msg(
			fw_url_clean(&a, fw_str(T[i]), &url, &user, &pass, &err) == FW_EINVAL, "accepted: %s", T[i]);
		ck_assert(strlen(err.text) > 5);
	}
	fw_arena_finish(&a);
}
END_TEST

START_TEST(time_round_trip)
{
	char text[FW_RFC3339_MAX];
	struct fw_civil c;
	int64_t t;

	for (int64_t day = -800000; day < 3000000; day += 37) {
		fw_civil_from_ms(day * FW_DAY_MS + 12345678, &c);
		ck_assert_int_eq(fw_time_ms(c.year, c.month, c.day, c.hour, c.minute, c.second, c.ms),
			day * FW_DAY_MS + 12345678);
	}
	ck_assert_str_eq(fw_rfc3339(text, 0), "1970-01-01T00:00:00Z");
	ck_assert_str_eq(fw_http_date(text, 784111777000), "Sun, 06 Nov 1994 08:49:37 GMT");
	ck_assert(fw_http_date_parse(FW_STR("Sunday, 06-Nov-94 08:49:37 GMT"), 1700000000000, &t) && t == 784111777000);
	ck_assert(fw_http_date_parse(FW_STR("Sun Nov  6 08:49:37 1994"), 0, &t) && t == 784111777000);
	ck_assert(!fw_http_date_parse(FW_STR("Sun, 31 Feb 1994 08:49:37 GMT"), 0, &t));
	ck_assert(!fw_http_date_parse(FW_STR("0"), 0, &t));
}
END_TEST

START_TEST(ring_wraps_full_and_empty)
{
	struct fw_ring r;
	int items[4];

	ck_assert_int_eq(fw_ring_init(&r, 3), 0);
	ck_assert_uint_eq(fw_ring_cap(&r), 4);
	atomic_store(&r.head, SIZE_MAX - 1); /* the indices wrap during the test */
	atomic_store(&r.tail, SIZE_MAX - 1);
	r.head_seen = r.tail_seen = SIZE_MAX - 1;
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 4; i++)
			ck_assert(fw_ring_put(&r, &items[i]));
		ck_assert(!fw_ring_put(&r, &items[0]));
		ck_assert_uint_eq(fw_ring_fill(&r), 4);
		for (int i = 0; i < 4; i++)
			ck_assert_ptr_eq(fw_ring_take(&r), &items[i]);
		ck_assert_ptr_null(fw_ring_take(&r));
	}
	fw_ring_finish(&r);
}
END_TEST

START_TEST(map_grows_and_forgets)
{
	static char key[2000][16];
	struct fw_map m;
	size_t at = 0, n = 0;
	int rc;

	fw_map_init(&m, 7);
	for (int i = 0; i < 2000; i++) {
		ck_assert(fw_snprintf(key[i], sizeof(key[i]), "key %d", i));
		ck_assert_ptr_null(fw_map_put(&m, fw_str(key[i]), key[i], &rc));
		ck_assert_int_eq(rc, 0);
	}
	for (int i = 0; i < 2000; i += 2)
		ck_assert_ptr_eq(fw_map_del(&m, fw_str(key[i])), key[i]);
	for (int i = 0; i < 2000; i++)
		ck_assert_ptr_eq(fw_map_get(&m, fw_str(key[i])), i % 2 ? key[i] : NULL);
	while (fw_map_next(&m, &at, NULL))
		n++;
	ck_assert_uint_eq(n, 1000);
	fw_map_finish(&m);
}
END_TEST

START_TEST(str_int_limits)
{
	int64_t v;

	ck_assert(fw_str_int(FW_STR("-9223372036854775808"), &v) && v == INT64_MIN);
	ck_assert(fw_str_int(FW_STR("9223372036854775807"), &v) && v == INT64_MAX);
	ck_assert(!fw_str_int(FW_STR("9223372036854775808"), &v));
	ck_assert(!fw_str_int(FW_STR(""), &v) && !fw_str_int(FW_STR("1x"), &v) && !fw_str_int(FW_STR("-"), &v));
}
END_TEST

/*
 * Memory that is given back serves the next allocation, also if it had a block of its own; all of
 * it is returned to the system.
 */
START_TEST(arena_trims)
{
	struct fw_arena a;
	size_t before;
	char *p, *q;

	fw_arena_init(&a, 0);
	p = fw_arena_alloc(&a, 100);
	fw_arena_trim(&a, p, 100, 10);
	ck_assert_ptr_eq((char *)fw_arena_alloc(&a, 16), p + 16);
	before = a.used_bytes;
	p = fw_arena_alloc(&a, 50000);
	memset(p, 'x', 50000);
	fw_arena_trim(&a, p, 50000, 20000);
	q = fw_arena_alloc(&a, 30000);
	ck_assert_ptr_eq(q, p + 20000);
	memset(q, 'y', 30000);
	ck_assert_uint_le(a.used_bytes, before + 50000 + 64);
	fw_arena_trim(&a, p, 20000, 0); /* no longer the newest piece */
	ck_assert_int_eq(p[19999], 'x');
	before = a.used_bytes;
	p = fw_arena_alloc(&a, 40000);
	ck_assert_uint_gt(a.used_bytes, before);
	fw_arena_trim(&a, p, 40000, 0);
	ck_assert_uint_eq(a.used_bytes, before);
	fw_arena_trim(&a, NULL, 0, 0);
	fw_arena_finish(&a);
	ck_assert_uint_eq(a.used_bytes, 0);
}
END_TEST

/* A size that does not fit into size_t is refused, not wrapped to a small one. */
START_TEST(arena_counts)
{
	static const struct {
		size_t n, size, more;
	} T[] = {
		{SIZE_MAX, 2, 0},
		{SIZE_MAX / 2 + 1, 2, 0},
		{SIZE_MAX / 3 + 1, 3, 0},
		{SIZE_MAX / 2, 2, 8},
		{SIZE_MAX, 1, 1},
	};
	struct fw_arena a;
	char *p;

	fw_arena_init(&a, 0);
	for (size_t i = 0; i < FW_N(T); i++) {
		a.failed = false;
		ck_assert_ptr_null(fw_arena_mul(&a, T[i].n, T[i].size, T[i].more));
		ck_assert(a.failed);
		a.failed = false;
		ck_assert(T[i].more || !fw_arena_calloc(&a, T[i].n, T[i].size));
		ck_assert(T[i].more || a.failed);
	}
	ck_assert_ptr_nonnull(fw_arena_mul(&a, 0, 8, 0));
	p = fw_arena_calloc(&a, 1000, 100);
	for (size_t i = 0; i < 100000; i++)
		ck_assert_int_eq(p[i], 0);
	fw_arena_finish(&a);
}
END_TEST

START_TEST(arena_ceiling)
{
	struct fw_arena a;

	fw_arena_init(&a, 64 * 1024);
	for (int i = 0; i < 100; i++)
		(void)fw_arena_alloc(&a, 1000);
	ck_assert(a.failed);
	ck_assert_uint_le(a.used_bytes, 64 * 1024);
	fw_arena_reset(&a, 1 << 20);
	ck_assert(!a.failed);
	ck_assert_ptr_nonnull(fw_arena_alloc(&a, 1000));
	fw_arena_finish(&a);
	ck_assert_uint_eq(a.used_bytes, 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit base base");
	TCase *t = tcase_create("base");

	tcase_add_test(t, url_resolve_rfc3986);
	tcase_add_test(t, url_clean_accepts);
	tcase_add_test(t, url_clean_refuses);
	tcase_add_test(t, time_round_trip);
	tcase_add_test(t, ring_wraps_full_and_empty);
	tcase_add_test(t, map_grows_and_forgets);
	tcase_add_test(t, str_int_limits);
	tcase_add_test(t, arena_trims);
	tcase_add_test(t, arena_counts);
	tcase_add_test(t, arena_ceiling);
	suite_add_tcase(s, t);
	return run_suite(s);
}
