/* SPDX-License-Identifier: ISC */
/* The clock of another machine: what measurements do to it. */
#include <check.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/offset_clock.h"
#include "../../suite.h"

#define STORE_MS INT64_C(1700000000000)

/* Our own clocks; the other one shows STORE_MS + mono_ms + there_ms. */
static int64_t mono_ms, wall_ms, there_ms;

int64_t __wrap_fw_mono_ms(void);
int64_t __wrap_fw_now_ms(void);

int64_t __wrap_fw_mono_ms(void)
{
	return mono_ms;
}

int64_t __wrap_fw_now_ms(void)
{
	return wall_ms;
}

/* The other machine reads its clock `out_ms` after the request, and responds `back_ms` later. */
static void measure(struct fw_offset_clock *c, int64_t out_ms, int64_t back_ms)
{
	int64_t asked_ms = mono_ms, shown_ms = STORE_MS + mono_ms + out_ms + there_ms;

	mono_ms += out_ms + back_ms;
	fw_offset_clock_measure(c, shown_ms, asked_ms);
}

/* How far it is from the truth. */
static int64_t error_ms(const struct fw_offset_clock *c)
{
	return fw_offset_clock_ms(c) - (STORE_MS + mono_ms + there_ms);
}

static void setup(void)
{
	mono_ms = 5000;
	wall_ms = 42;
	there_ms = 0;
}

START_TEST(unmeasured_it_is_our_wall_clock)
{
	struct fw_offset_clock c = {.known = false};

	ck_assert_int_eq(fw_offset_clock_ms(&c), 42);
	ck_assert_int_eq(fw_offset_clock_ahead_ms(&c), 0);
}
END_TEST

START_TEST(our_wall_clock_does_not_matter)
{
	struct fw_offset_clock c = {.known = false};

	measure(&c, 0, 0);
	ck_assert_int_eq(error_ms(&c), 0);
	wall_ms += INT64_C(86400000) * 3650;
	mono_ms += 777;
	ck_assert_int_eq(error_ms(&c), 0);
}
END_TEST

START_TEST(says_how_far_ahead_we_are)
{
	struct fw_offset_clock c = {.known = false};

	wall_ms = STORE_MS + mono_ms + 7200000;
	measure(&c, 0, 0);
	ck_assert_int_eq(fw_offset_clock_ahead_ms(&c), 7200000);
	wall_ms -= 7205000;
	measure(&c, 0, 0);
	ck_assert_int_eq(fw_offset_clock_ahead_ms(&c), -5000);
}
END_TEST

/* Responses of any length, at random: never wrong by more than one, and never backwards. */
START_TEST(jitter_does_not_turn_it_back)
{
	struct fw_offset_clock c = {.known = false};
	uint64_t x = 88172645463325252U;
	int64_t last_ms = 0;

	for (int i = 0; i < 100000; i++) {
		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		measure(&c, (int64_t)(x % 50), (int64_t)(x / 50 % 50));
		ck_assert_int_ge(error_ms(&c), -50);
		ck_assert_int_le(error_ms(&c), 50);
		ck_assert_int_ge(fw_offset_clock_ms(&c), last_ms);
		last_ms = fw_offset_clock_ms(&c);
	}
}
END_TEST

START_TEST(follows_a_clock_that_was_set)
{
	struct fw_offset_clock c = {.known = false};

	measure(&c, 1, 1);
	there_ms += 3600000;
	measure(&c, 0, 2);
	ck_assert_int_ge(error_ms(&c), -2);
	there_ms -= 7200000;
	measure(&c, 2, 0);
	ck_assert_int_le(error_ms(&c), 2);
	ck_assert_int_ge(error_ms(&c), -2);
}
END_TEST

START_TEST(a_slow_response_starts_it_but_changes_nothing_later)
{
	struct fw_offset_clock c = {.known = false};

	measure(&c, 0, 9000);
	ck_assert_int_le(error_ms(&c), 0);
	ck_assert_int_ge(error_ms(&c), -4500);
	measure(&c, 0, 0);
	ck_assert_int_eq(error_ms(&c), 0);
	there_ms -= 1000;
	measure(&c, 0, FW_OFFSET_CLOCK_TRUST_MS + 1);
	ck_assert_int_eq(error_ms(&c), 1000);
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("offset clock");
	Suite *s = suite_create("unit base offset_clock");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, unmeasured_it_is_our_wall_clock);
	tcase_add_test(tc, our_wall_clock_does_not_matter);
	tcase_add_test(tc, says_how_far_ahead_we_are);
	tcase_add_test(tc, jitter_does_not_turn_it_back);
	tcase_add_test(tc, follows_a_clock_that_was_set);
	tcase_add_test(tc, a_slow_response_starts_it_but_changes_nothing_later);
	suite_add_tcase(s, tc);
	return run_suite(s);
}
