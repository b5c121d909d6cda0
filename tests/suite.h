/* SPDX-License-Identifier: ISC */
/* The end of each test program's main(); and assertions that cost little. */
#ifndef FW_TEST_SUITE_H
#define FW_TEST_SUITE_H

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>

/* Check writes each assertion that held to a file, to tell after a crash which was the last: in loops far more work than the assertion. So
   each is written once, the first time it holds. */
#undef ck_assert_msg
#define ck_assert_msg(expr, ...) do { \
	static _Thread_local bool held_; \
	if (!(expr)) \
		_ck_assert_failed(__FILE__, __LINE__, "Assertion '" #expr "' failed", ##__VA_ARGS__); \
	if (!held_) { \
		held_ = true; \
		_mark_point(__FILE__, __LINE__); \
	} \
} while (0)

/* Run all of s, which is freed. What main() returns. */
static inline int run_suite(Suite *s)
{
	SRunner *r = srunner_create(s);
	int failed;

	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
