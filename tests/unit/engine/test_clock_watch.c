/* SPDX-License-Identifier: ISC */
/* What people are told of a clock that is wrong. */
#include <check.h>
#include <stdlib.h>

#include "api/clock_watch.h"
#include "base/clock.h"
#include "base/str.h"
#include "../../suite.h"

START_TEST(an_estimate_is_told_in_its_nearest_unit)
{
	static const struct {
		int64_t ahead_ms;
		const char *want;
	} T[] = {
		{6000, "6.0 s ahead of the store's"},
		{-59600, "1 min behind the store's"},
		{-7200000, "2 h behind the store's"},
		{-7197100, "2 h behind the store's"}, /* the store's first answer took 6 s */
		{-7200004, "2 h behind the store's"},
		{7169000, "1 h 59 min ahead of the store's"},
		{40 * FW_DAY_MS - 1, "40 d ahead of the store's"},
	};
	char text[FW_CLOCK_TEXT_MAX];

	for (size_t i = 0; i < FW_N(T); i++)
		ck_assert_str_eq(fw_clock_text(text, T[i].ahead_ms), T[i].want);
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("clock watch");
	Suite *s = suite_create("unit engine clock_watch");

	tcase_add_test(tc, an_estimate_is_told_in_its_nearest_unit);
	suite_add_tcase(s, tc);
	return run_suite(s);
}
