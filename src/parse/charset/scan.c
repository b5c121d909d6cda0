/* SPDX-License-Identifier: ISC */
/* The XML class of each byte. */
#include "parse/charset/scan.h"

enum {
	N = SCAN_NAME,
	NS = SCAN_NAME | SCAN_START,
	S = SCAN_SPACE | SCAN_VALUE,
	C = SCAN_CTL | SCAN_VALUE,
	CR = SCAN_SPACE | SCAN_VALUE | SCAN_TEXT,
	T = SCAN_TEXT,
	TV = SCAN_TEXT | SCAN_VALUE,
};

#define ROW8(c) c, c, c, c, c, c, c, c
#define ROW26(c) ROW8(c), ROW8(c), ROW8(c), c, c

/* clang-format off */
const unsigned char fw_scan_class[256] = {
	C, C, C, C, C, C, C, C, C, S, S, C, C, CR, C, C,
	ROW8(C), ROW8(C),
	SCAN_SPACE, 0, 0, 0, 0, 0, TV /* & */, 0, 0, 0, 0, 0, 0, N /* - */, N /* . */, 0,
	N, N, N, N, N, N, N, N, N, N, NS /* : */, 0, TV /* < */, 0, 0, 0,
	0, ROW26(NS), 0, 0, T /* ] */, 0, NS /* _ */,
	0, ROW26(NS), 0, 0, 0, 0, 0,
	ROW8(NS), ROW8(NS), ROW8(NS), ROW8(NS), ROW8(NS), ROW8(NS), ROW8(NS), ROW8(NS),
	ROW8(NS), ROW8(NS), ROW8(NS), ROW8(NS), ROW8(NS), ROW8(NS), ROW8(NS), ROW8(NS),
};
/* clang-format on */
