/* SPDX-License-Identifier: ISC */
/* The end of each test program's main(). */
#ifndef FW_TEST_SUITE_H
#define FW_TEST_SUITE_H

#include <check.h>
#include <stdlib.h>

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
