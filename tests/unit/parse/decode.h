/* SPDX-License-Identifier: ISC */
/* Decodes bytes in a case: an arena of its own, and the result. */
#ifndef FW_TEST_DECODE_H
#define FW_TEST_DECODE_H

#include <check.h>

#include "base/str.h"
#include "base/utf8.h"
#include "parse/charset/charset.h"

#define LIT(s) ((struct fw_str){(s), sizeof(s) - 1})

static struct fw_arena A;
static struct fw_charset_result R;

static void setup(void)
{
	fw_arena_init(&A, 0);
}

static void teardown(void)
{
	fw_arena_finish(&A);
}

static void decode(struct fw_str bytes, const char *type)
{
	struct fw_err err;

	ck_assert_int_eq(fw_charset_decode(&A, bytes, fw_str(type), &R, &err), 0);
	ck_assert_uint_eq(fw_utf8_valid(R.text.p, R.text.len), R.text.len);
	ck_assert_int_eq(R.problem != NULL, R.wrong);
	ck_assert_uint_le(R.offset, R.text.len);
}

#endif
