/* SPDX-License-Identifier: ISC */
/* Times and durations as text, hashes, maps, arenas. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/str.h"
#include "../../suite.h"

START_TEST(durations_for_people)
{
	static const struct {
		int64_t ms;
		const char *want;
	} T[] = {
		{0, "0 ms"},
		{999, "999 ms"},
		{1000, "1.0 s"},
		{3249, "3.2 s"},
		{9999, "9.9 s"},
		{10000, "10 s"},
		{59999, "59 s"},
		{60000, "1 min"},
		{61000, "1 min 1 s"},
		{600000, "10 min"},
		{1501000, "25 min"},
		{3599999, "59 min"},
		{3600000, "1 h"},
		{5400000, "1 h 30 min"},
		{86399999, "23 h 59 min"},
		{86400000, "1 d"},
		{100800000, "1 d 4 h"},
		{-1500, "-1.5 s"},
		{-86400000, "-1 d"},
		{INT64_MAX, "106751991167 d 7 h"},
		{INT64_MIN, "-106751991167 d 7 h"},
	};
	char text[FW_RFC3339_MAX];

	for (size_t i = 0; i < FW_N(T); i++)
		ck_assert_str_eq(fw_duration_text(text, T[i].ms), T[i].want);
}
END_TEST

static int asked;

static int64_t ask(int64_t v)
{
	asked++;
	return v;
}

START_TEST(least_and_most) /* each argument is evaluated once, and the type is that of a sum */
{
	ck_assert_int_eq(FW_MIN(ask(3), ask(-4)), -4);
	ck_assert_int_eq(FW_MAX(ask(3), ask(-4)), 3);
	ck_assert_int_eq(asked, 4);
	ck_assert_int_eq(FW_MIN(INT64_MIN, INT64_MAX), INT64_MIN);
	ck_assert_uint_eq(FW_MAX(UINT64_MAX, UINT64_C(1)), UINT64_MAX);
	ck_assert_uint_eq(FW_MIN(SIZE_MAX, (size_t)7), 7);
	ck_assert_int_eq(FW_MAX((char)-1, (unsigned char)0), 0);
	ck_assert(FW_MIN(0.5, 1) < 0.6 && FW_MAX(0.5, 1) > 0.9);
	ck_assert_uint_eq(sizeof(FW_MIN(1, 2)), sizeof(int));
	ck_assert_uint_eq(sizeof(FW_MIN(1, INT64_C(2))), sizeof(int64_t));
}
END_TEST

START_TEST(durations_from_people)
{
	static const struct {
		const char *in;
		int64_t want;
	} T[] = {
		{"90", 90000},
		{"90s", 90000},
		{" 15 m ", 900000},
		{"15min", 900000},
		{"2H", 7200000},
		{"1d", 86400000},
		{"1w", 604800000},
		{"250ms", 250},
		{"0", 0},
		{"9223372036854775807ms", INT64_MAX},
		{"", -1},
		{"s", -1},
		{"-5s", -1},
		{"+5s", -1},
		{"1.5h", -1},
		{"5x", -1},
		{"5 s s", -1},
		{"9223372036854775807", -1},
		{"9223372036854775807w", -1},
		{"99999999999999999999", -1},
		{"1h30m", -1},
	};
	int64_t ms;

	for (size_t i = 0; i < FW_N(T); i++) {
		bool ok = fw_duration_parse(fw_str(T[i].in), 1000, &ms);

		ck_assert_msg(ok == (T[i].want >= 0) && (!ok || ms == T[i].want), "%s", T[i].in);
	}
}
END_TEST

START_TEST(times_as_text)
{
	char text[FW_RFC3339_MAX];
	struct fw_civil c;
	int64_t t;

	ck_assert_str_eq(fw_rfc3339(text, 1795262400123), "2026-11-21T12:00:00.123Z");
	ck_assert_str_eq(fw_rfc3339(text, -1), "1969-12-31T23:59:59.999Z");
	ck_assert_str_eq(fw_rfc3339(text, INT64_MAX), "9999-12-31T23:59:59.999Z");
	ck_assert_str_eq(fw_rfc3339(text, INT64_MIN), "0000-01-01T00:00:00Z");
	ck_assert_str_eq(fw_http_date(text, INT64_MAX), "Fri, 31 Dec 9999 23:59:59 GMT");
	ck_assert(fw_leap_year(2000) && !fw_leap_year(1900) && fw_leap_year(2024) && !fw_leap_year(2023));
	ck_assert(fw_month_days(2024, 2) == 29 && fw_month_days(2023, 2) == 28 && fw_month_days(2023, 12) == 31);
	fw_civil_from_ms(fw_time_ms(2024, 12, 31, 23, 59, 58, 7), &c);
	ck_assert(c.yearday == 366 && c.weekday == 2 && c.second == 58 && c.ms == 7);
	for (int64_t s = -3000000000; s < 5000000000; s += 86399993) { /* the text that is written is read back */
		ck_assert(fw_http_date_parse(fw_str(fw_http_date(text, s * 1000)), 0, &t) && t == s * 1000);
	}
	/* two-digit years: no more than 50 years ahead (RFC 9110 section 5.6.7) */
	ck_assert(fw_http_date_parse(FW_STR("Friday, 21-Nov-76 12:00:00 GMT"), 1795262400000, &t) &&
		t == fw_time_ms(2076, 11, 21, 12, 0, 0, 0));
	ck_assert(fw_http_date_parse(FW_STR("Monday, 21-Nov-77 12:00:00 GMT"), 1795262400000, &t) &&
		t == fw_time_ms(1977, 11, 21, 12, 0, 0, 0));
	ck_assert(!fw_http_date_parse(FW_STR("Sun, 06 Nov 1994 24:00:00 GMT"), 0, &t) &&
		!fw_http_date_parse(FW_STR("Sun, 06 Nov 1994 08:49:37 EST"), 0, &t) &&
		!fw_http_date_parse(FW_STR("Sun, +6 Nov 1994 08:49:37 GMT"), 0, &t) &&
		!fw_http_date_parse(FW_STR(""), 0, &t) &&
		!fw_http_date_parse(FW_STR("Sun, 06 Nov 199x 08:49:37 GMT"), 0, &t));
}
END_TEST

static void check_hash128(struct fw_hash128 h, const char *hex)
{
	for (int i = 0; i < 16; i++)
		ck_assert_int_eq(h.b[i], fw_hexval(hex[2 * i]) << 4 | fw_hexval(hex[2 * i + 1]));
}

/* The hashes are stored on disk: these values may never change. */
/* A condition of the wall clock would take this time for one in 1970, and not wait. */
START_TEST(conditions_wait_by_the_monotonic_clock)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	int64_t until_ms = fw_mono_ms() + 20;
	struct timespec until = fw_timespec(until_ms);
	pthread_cond_t c;
	int rc = 0;

	fw_mono_cond_init(&c);
	pthread_mutex_lock(&lock);
	while (!rc)
		rc = pthread_cond_timedwait(&c, &lock, &until);
	pthread_mutex_unlock(&lock);
	ck_assert_int_eq(rc, ETIMEDOUT);
	ck_assert_int_ge(fw_mono_ms(), until_ms);
	pthread_cond_destroy(&c);
}
END_TEST

START_TEST(hashes_never_change)
{
	struct fw_hasher h;

	ck_assert(fw_hash64("", 0) == UINT64_C(0x2d06800538d394c2)); /* XXH3's own test vectors */
	check_hash128(fw_hash128("", 0), "99aa06d3014798d86001c324468d497f");
	ck_assert(fw_hash64("feedwheel", 9) == UINT64_C(0x27bcac0e167dd32c));
	fw_hasher_init(&h);
	fw_hasher_add(&h, FW_STR("feed"));
	fw_hasher_add(&h, FW_STR_NONE);
	fw_hasher_add(&h, FW_STR("wheel"));
	check_hash128(fw_hasher_end128(&h), "9efc4b701f47d30d24610326de971437");
}
END_TEST

static uint64_t parts(struct fw_str a, struct fw_str b)
{
	struct fw_hasher h;

	fw_hasher_init(&h);
	fw_hasher_add(&h, a);
	fw_hasher_add(&h, b);
	return fw_hasher_end64(&h);
}

START_TEST(parts_count)
{
	ck_assert(parts(FW_STR("ab"), FW_STR("c")) != parts(FW_STR("a"), FW_STR("bc")));
	ck_assert(parts(FW_STR(""), FW_STR("abc")) != parts(FW_STR("abc"), FW_STR("")));
	ck_assert(parts(FW_STR(""), FW_STR("")) != parts(FW_STR_NONE, FW_STR("")));
	ck_assert(parts(FW_STR("ab"), FW_STR("c")) == parts(FW_STR("ab"), FW_STR("c")));
}
END_TEST

START_TEST(map_of_odd_keys)
{
	static char key[300][8];
	int a, b, rc;
	struct fw_map m;
	struct fw_str k;
	size_t at = 0;

	fw_map_init(&m, 1);
	ck_assert_ptr_null(fw_map_get(&m, FW_STR("x")));
	ck_assert_ptr_null(fw_map_del(&m, FW_STR("x")));
	ck_assert_ptr_null(fw_map_next(&m, &at, &k));
	ck_assert_ptr_null(fw_map_put(&m, FW_STR_NONE, &a, &rc)); /* the empty key is valid */
	ck_assert_ptr_eq(fw_map_get(&m, FW_STR("")), &a);
	ck_assert_ptr_eq(fw_map_put(&m, FW_STR(""), &b, &rc), &a);
	ck_assert_ptr_eq(fw_map_add(&m, FW_STR(""), &a, &rc), &b); /* what is there stays */
	ck_assert_ptr_eq(fw_map_del(&m, FW_STR_NONE), &b);
	ck_assert_ptr_null(fw_map_add(&m, FW_STR(""), &a, &rc));
	ck_assert_int_eq(rc, 0);
	ck_assert_ptr_eq(fw_map_del(&m, FW_STR("")), &a);
	ck_assert_uint_eq(m.n, 0);
	for (int round = 0; round < 50; round++) { /* repeated put and delete: deleted slots do not fill the map */
		for (int i = 0; i < 300; i++) {
			ck_assert(fw_snprintf(key[i], sizeof(key[i]), "%d", i));
			ck_assert_ptr_null(fw_map_put(&m, fw_str(key[i]), &a, &rc));
		}
		for (at = 0; fw_map_next(&m, &at, &k);)
			ck_assert_ptr_eq(fw_map_del(&m, k), &a); /* during a walk */
		ck_assert_uint_eq(m.n, 0);
	}
	ck_assert_uint_le(m.mask, 4095);
	fw_map_finish(&m);
}
END_TEST

START_TEST(arena_gives_aligned_pieces)
{
	static const size_t SIZE[] = {0, 1, 15, 16, 17, 100, 5000, 70000, 300000};
	struct fw_arena a;
	char *p, *q;

	fw_arena_init(&a, 0);
	for (size_t round = 0; round < 20; round++) {
		for (size_t i = 0; i < FW_N(SIZE); i++) {
			p = fw_arena_alloc(&a, SIZE[i]);
			/* 0 bytes are not a failure */
			ck_assert_msg(p && (uintptr_t)p % 16 == 0, "%zu bytes", SIZE[i]);
			memset(p, 0xaa, SIZE[i]);
		}
	}
	ck_assert(!a.failed);
	p = fw_arena_dup(&a, "hello", 5);
	q = fw_arena_grow(&a, p, 6, 12); /* the last piece grows in place while its block has room */
	ck_assert(q && memcmp(q, "hello", 6) == 0);
	(void)fw_arena_alloc(&a, 1);
	p = fw_arena_grow(&a, q, 12, 40);
	ck_assert(p && p != q && memcmp(p, "hello", 6) == 0);
	ck_assert_str_eq(fw_arena_printf(&a, "%d-%s", 7, "x"), "7-x");
	ck_assert(fw_arena_str(&a, FW_STR_NONE).p == NULL && fw_arena_str(&a, FW_STR("")).p != NULL);
	p = fw_arena_zalloc(&a, 64);
	for (int i = 0; i < 64; i++)
		ck_assert_int_eq(p[i], 0);
	ck_assert_ptr_null(fw_arena_alloc(&a, SIZE_MAX));
	ck_assert(a.failed);
	fw_arena_reset(&a, 1 << 20); /* keeps the largest block below the limit */
	ck_assert(!a.failed && a.used_bytes > 0 && a.used_bytes <= 1 << 20);
	fw_arena_finish(&a);
	ck_assert_uint_eq(a.used_bytes, 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit base values");
	TCase *t = tcase_create("values");

	tcase_add_test(t, durations_for_people);
	tcase_add_test(t, least_and_most);
	tcase_add_test(t, durations_from_people);
	tcase_add_test(t, times_as_text);
	tcase_add_test(t, conditions_wait_by_the_monotonic_clock);
	tcase_add_test(t, hashes_never_change);
	tcase_add_test(t, parts_count);
	tcase_add_test(t, map_of_odd_keys);
	tcase_add_test(t, arena_gives_aligned_pieces);
	suite_add_tcase(s, t);
	return run_suite(s);
}
