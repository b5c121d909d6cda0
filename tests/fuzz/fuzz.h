/* SPDX-License-Identifier: ISC */
/* The interface that libFuzzer and replay.c call in each target. */
#ifndef FW_TEST_FUZZ_H
#define FW_TEST_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Fails if an oracle disagrees. */
#define FUZZ_CHECK(ok)                                                                          \
	do {                                                                                    \
		if (!(ok)) {                                                                    \
			fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #ok); \
			abort();                                                                \
		}                                                                               \
	} while (0)

#endif
