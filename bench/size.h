/* SPDX-License-Identifier: ISC */
/* A benchmark's size: from the environment, or the usual number, or with TINY=1 the tiny one. */
#ifndef FW_BENCH_SIZE_H
#define FW_BENCH_SIZE_H

#include <stdio.h>
#include <stdlib.h>

#include "base/str.h"

/* Exit status 2: it is no number above 0. */
static inline size_t size_of(const char *name, size_t usual, size_t tiny)
{
	const char *said = getenv(name);
	int64_t n = getenv("TINY") ? (int64_t)tiny : (int64_t)usual;

	if (said && (!fw_str_int(fw_str(said), &n) || n <= 0)) {
		fprintf(stderr, "%s=%s: not a number above 0\n", name, said);
		exit(2);
	}
	return (size_t)n;
}

#endif
