/* SPDX-License-Identifier: ISC */
/* Shared by all test programs: running a suite, FW_CASE (runs one case), cheap assertions. */
#ifndef FW_TEST_SUITE_H
#define FW_TEST_SUITE_H

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Check writes each assertion that held to a file, so that the last one before a crash is known. In
 * a loop that costs far more than the assertion. Here each is written once, the first time it
 * holds.
 */
#undef ck_assert_msg
#define ck_assert_msg(expr, ...)                                                                              \
	do {                                                                                                  \
		static _Thread_local bool held_;                                                              \
		if (!(expr))                                                                                  \
			_ck_assert_failed(__FILE__, __LINE__, "Assertion '" #expr "' failed", ##__VA_ARGS__); \
		if (!held_) {                                                                                 \
			held_ = true;                                                                         \
			_mark_point(__FILE__, __LINE__);                                                      \
		}                                                                                             \
	} while (0)

/*
 * Under a sanitizer all takes several times as long. What is random or long is repeated less there,
 * because the usual build has looked for wrong results already.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SLOW_BUILD = 1 };
#else
enum { SLOW_BUILD = 0 };
#endif

/* FW_CASE=name runs only that case. */
static inline bool case_is_wanted(const TTest *test)
{
	const char *name = getenv("FW_CASE");

	return !name || strcmp(name, test->name) == 0;
}
#define _tcase_add_test(tc, test, ...) (case_is_wanted(test) ? _tcase_add_test(tc, test, __VA_ARGS__) : (void)0)

/* Runs the whole suite and frees it. Returns main()'s exit status. */
static inline int run_suite(Suite *s)
{
	SRunner *r = srunner_create(s);
	int failed, run;

	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	run = srunner_ntests_run(r);
	srunner_free(r);
	if (!run && getenv("FW_CASE"))
		fprintf(stderr, "no case of this program is called %s\n", getenv("FW_CASE"));
	return failed || (!run && getenv("FW_CASE")) ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
