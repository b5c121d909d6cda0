/* SPDX-License-Identifier: ISC */
/* Compressed bodies: every format, cut off and damaged anywhere, and the limits. */
#include <check.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/str.h"
#include "http/server/body.h"
#include "../../suite.h"

#define RATIO 200

static void packed(struct fw_buf *out, const void *p, size_t len, int bits)
{
	z_stream z = {.next_in = (unsigned char *)(uintptr_t)p, .avail_in = (unsigned)len};
	size_t max;

	ck_assert_int_eq(deflateInit2(&z, 9, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
	max = deflateBound(&z, len);
	z.next_out = (unsigned char *)fw_buf_room(out, max);
	z.avail_out = (unsigned)max;
	ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
	out->len += z.total_out;
	deflateEnd(&z);
}

static int unpack(struct fw_str in, bool gzip, size_t max, size_t *len)
{
	struct fw_buf out = FW_BUF_INIT(max);
	int rc = http_inflate(in, gzip, RATIO, &out);

	ck_assert_uint_le(out.len, max);
	*len = out.len;
	fw_buf_finish(&out);
	return rc;
}

START_TEST(formats)
{
	static const struct {
		int bits;
		bool gzip;
	} T[] = {{31, true}, {15, false}, {-15, false}};
	struct fw_buf text = FW_BUF_INIT(0);
	size_t n;

	for (int i = 0; text.len < 200000; i++)
		fw_buf_addf(&text, "%d,", i * i);
	for (size_t i = 0; i < FW_N(T); i++) {
		struct fw_buf b = FW_BUF_INIT(0);
		struct fw_str s;

		packed(&b, text.p, text.len, T[i].bits);
		s = fw_buf_str(&b);
		ck_assert_int_eq(unpack(s, T[i].gzip, text.len, &n), 0);
		ck_assert_uint_eq(n, text.len);
		ck_assert_int_eq(unpack(s, T[i].gzip, text.len - 1, &n), FW_ELIMIT);
		ck_assert_int_eq(unpack(s, T[i].gzip, 1, &n), FW_ELIMIT);
		for (size_t cut = 0; cut < s.len; cut += 1 + cut / 64) /* RFC 1952: the trailer is part of the body */
			ck_assert_msg(unpack(fw_str_sub(s, 0, cut), T[i].gzip, text.len, &n) == FW_EFORMAT,
				"%zu cut at %zu", i, cut);
		fw_buf_addc(&b, 'x');
		ck_assert_int_eq(unpack(fw_buf_str(&b), T[i].gzip, text.len, &n), FW_EFORMAT);
		fw_buf_finish(&b);
	}
	fw_buf_finish(&text);
}
END_TEST

START_TEST(damaged)
{
	struct fw_buf b = FW_BUF_INIT(0);
	size_t n;

	packed(&b, "hello, hello, hello, hello", 26, 31);
	for (size_t i = 0; i < b.len; i++) {
		for (int bit = 0; bit < 8; bit++) {
			b.p[i] ^= (char)(1 << bit);
			if (i < 3 || i >= b.len - 8) /* the bytes between can be a time or a name */
				ck_assert_msg(unpack(fw_buf_str(&b), true, 1000, &n) == FW_EFORMAT, "%zu", i);
			else
				(void)unpack(fw_buf_str(&b), true, 1000, &n);
			b.p[i] ^= (char)(1 << bit);
		}
	}
	ck_assert_int_eq(unpack(fw_buf_str(&b), false, 1000, &n), FW_EFORMAT);
	fw_buf_finish(&b);
}
END_TEST

START_TEST(several_in_a_row)
{
	struct fw_buf b = FW_BUF_INIT(0);
	size_t n;

	for (int i = 0; i < 5; i++)
		packed(&b, "hello", 5, 31);
	ck_assert_int_eq(unpack(fw_buf_str(&b), true, 25, &n), 0);
	ck_assert_uint_eq(n, 25);
	ck_assert_int_eq(unpack(fw_buf_str(&b), true, 24, &n), FW_ELIMIT);
	fw_buf_finish(&b);
}
END_TEST

START_TEST(bomb)
{
	size_t len = (size_t)32 << 20, n;
	char *zeros = calloc(1, len);
	struct fw_buf b = FW_BUF_INIT(0);

	ck_assert_ptr_nonnull(zeros);
	packed(&b, zeros, len, 31);
	ck_assert_uint_lt(b.len, len / 500);
	ck_assert_int_eq(unpack(fw_buf_str(&b), true, len, &n), FW_ELIMIT);
	ck_assert_uint_lt(n, b.len * RATIO + ((size_t)2 << 20)); /* it was not decompressed to its end */
	fw_buf_reset(&b);
	packed(&b, zeros, (size_t)1 << 20, 31); /* this many bytes are free */
	ck_assert_int_eq(unpack(fw_buf_str(&b), true, len, &n), 0);
	fw_buf_finish(&b);
	free(zeros);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit http body");
	TCase *tc = tcase_create("body");

	tcase_add_test(tc, formats);
	tcase_add_test(tc, damaged);
	tcase_add_test(tc, several_in_a_row);
	tcase_add_test(tc, bomb);
	suite_add_tcase(s, tc);
	return run_suite(s);
}
