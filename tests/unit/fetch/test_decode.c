/* SPDX-License-Identifier: ISC */
/* Content codings: each, stacked, truncated, mislabelled, bombs (LIM-01, LIM-02, LIM-03). */
#include <brotli/encode.h>
#include <check.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#include "base/str.h"
#include "fetch/decode.h"
#include "../../suite.h"

static struct fw_decoder *decoder;
static struct fw_buf wire, out;
static struct fw_err err;
static const struct fw_decode_limits LIMITS = {16 << 20, 200};

static void setup(void)
{
	ck_assert_int_eq(fw_decoder_create(&decoder), 0);
}

static void teardown(void)
{
	fw_decoder_destroy(decoder);
	fw_buf_finish(&wire);
	fw_buf_finish(&out);
}

/* A document of n bytes that compresses only moderately. */
static struct fw_buf document(size_t n)
{
	struct fw_buf b = FW_BUF_INIT(0);
	uint32_t x = 1;

	fw_buf_adds(&b, "<?xml version=\"1.0\"?><rss><channel>");
	while (b.len < n) {
		x = x * 1664525 + 1013904223;
		fw_buf_addf(&b, "<item><title>%x</title></item>", x);
	}
	b.len = n;
	b.p[n] = '\0';
	return b;
}

static void zlib_add(struct fw_buf *to, struct fw_str s, int window_bits)
{
	z_stream z = {.next_in = (unsigned char *)(uintptr_t)s.p, .avail_in = (unsigned)s.len};
	size_t room = s.len + 1000;

	ck_assert_int_eq(deflateInit2(&z, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_out = (unsigned char *)fw_buf_room(to, room);
	z.avail_out = (unsigned)room;
	ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
	to->len += z.total_out;
	deflateEnd(&z);
}

static void code(struct fw_buf *to, struct fw_str s, char coding)
{
	size_t n = s.len + 1000;

	fw_buf_reset(to);
	switch (coding) {
	case 'g':
		zlib_add(to, s, 15 + 16);
		return;
	case 'd':
		zlib_add(to, s, 15);
		return;
	case 'r':
		zlib_add(to, s, -15);
		return;
	case 'b':
		ck_assert_int_eq(BrotliEncoderCompress(5, BROTLI_DEFAULT_WINDOW, BROTLI_DEFAULT_MODE, s.len,
					 (const uint8_t *)s.p, &n, (uint8_t *)fw_buf_room(to, n)),
			BROTLI_TRUE);
		break;
	case 'z':
		n = ZSTD_compress(fw_buf_room(to, ZSTD_compressBound(s.len)), ZSTD_compressBound(s.len), s.p, s.len, 3);
		ck_assert(!ZSTD_isError(n));
		break;
	default:
		fw_buf_addstr(to, s);
		return;
	}
	to->len += n;
}

static int run(const char *codings, const struct fw_decode_limits *l)
{
	return fw_decode(decoder, fw_str(codings), &wire, &out, l, &err);
}

START_TEST(each_coding)
{
	static const struct {
		char coding;
		const char *name;
	} T[] = {
		{'g', "gzip"},
		{'g', "x-gzip"},
		{'g', " GZip "},
		{'d', "deflate"},
		{'r', "deflate"},
		{'b', "br"},
		{'z', "zstd"},
		{0, "identity"},
		{0, NULL},
		{0, ""},
		{'g', NULL},
		{'g', "identity"},
		{0, "utf-8"},
		{'g', "utf-8, gzip"},
		{0, "gzip"},
		{0, "deflate"},
		{0, "br"},
		{0, "zstd"},
		{0, "gzip, br"},
	};
	static const size_t SIZE[] = {1, 40, 61000, 3000000};

	for (size_t i = 0; i < FW_N(T); i++) {
		for (size_t k = 0; k < FW_N(SIZE); k++) {
			struct fw_buf doc = document(SIZE[k]);
			int rc;

			if (!T[i].coding && SIZE[k] < 40) {
				fw_buf_finish(&doc);
				continue; /* a single byte can mean anything */
			}
			code(&wire, fw_buf_str(&doc), T[i].coding);
			rc = run(T[i].name, &LIMITS);
			ck_assert_msg(rc == 0, "%s: %s", T[i].name, err.text);
			ck_assert_msg(fw_str_eq(fw_buf_str(&out), fw_buf_str(&doc)), "%s %zu", T[i].name, SIZE[k]);
			fw_buf_finish(&doc);
		}
	}
}
END_TEST

START_TEST(nothing_at_all)
{
	static const char *const T[] = {NULL, "gzip", "deflate", "br", "zstd", "gzip, br"};

	for (size_t i = 0; i < FW_N(T); i++) {
		fw_buf_reset(&wire);
		ck_assert_int_eq(run(T[i], &LIMITS), 0);
		ck_assert_uint_eq(out.len, 0);
	}
}
END_TEST

START_TEST(stacked) /* LIM-03 */
{
	struct fw_buf doc = document(61000), inner = FW_BUF_INIT(0);

	code(&inner, fw_buf_str(&doc), 'g');
	code(&wire, fw_buf_str(&inner), 'b');
	ck_assert_int_eq(run("gzip, br", &LIMITS), 0);
	ck_assert(fw_str_eq(fw_buf_str(&out), fw_buf_str(&doc)));
	code(&wire, fw_buf_str(&inner), 'g');
	ck_assert_int_eq(run("gzip,gzip", &LIMITS), 0);
	ck_assert(fw_str_eq(fw_buf_str(&out), fw_buf_str(&doc)));
	/* announced twice, applied once */
	code(&wire, fw_buf_str(&doc), 'g');
	ck_assert_int_eq(run("gzip, gzip", &LIMITS), 0);
	ck_assert(fw_str_eq(fw_buf_str(&out), fw_buf_str(&doc)));
	code(&wire, fw_buf_str(&doc), 'g');
	ck_assert_int_eq(run("gzip, gzip, gzip", &LIMITS), FW_ELIMIT);
	fw_buf_finish(&doc);
	fw_buf_finish(&inner);
}
END_TEST

START_TEST(cut_short)
{
	static const struct {
		char coding;
		const char *name;
	} T[] = {
		{'g', "gzip"},
		{'d', "deflate"},
		{'r', "deflate"},
		{'b', "br"},
		{'z', "zstd"},
	};
	struct fw_buf doc = document(400000);

	for (size_t i = 0; i < FW_N(T); i++) {
		code(&wire, fw_buf_str(&doc), T[i].coding);
		wire.len = wire.len * 3 / 4;
		ck_assert_msg(run(T[i].name, &LIMITS) == FW_EFORMAT, "%s", T[i].name);
		ck_assert_uint_gt(out.len, doc.len / 4); /* most of it was decoded, correctly */
		ck_assert_uint_lt(out.len, doc.len);
		ck_assert_int_eq(memcmp(out.p, doc.p, out.len), 0);
		ck_assert(strstr(err.text, T[i].name) != NULL);
	}
	fw_buf_finish(&doc);
}
END_TEST

START_TEST(damaged)
{
	struct fw_buf doc = document(61000);

	/* a wrong checksum: everything is decoded, but an error is reported */
	code(&wire, fw_buf_str(&doc), 'g');
	wire.p[wire.len - 6] ^= 1;
	ck_assert_int_eq(run("gzip", &LIMITS), FW_EFORMAT);
	ck_assert_uint_eq(out.len, doc.len);
	/* a wrong length */
	code(&wire, fw_buf_str(&doc), 'g');
	wire.p[wire.len - 1] = 0x7f;
	ck_assert_int_eq(run("gzip", &LIMITS), FW_EFORMAT);
	ck_assert_uint_eq(out.len, doc.len);
	/* bytes changed in the middle */
	for (size_t i = 0; i < 2; i++) {
		code(&wire, fw_buf_str(&doc), "gd"[i]);
		for (size_t k = 0; k < 40; k++)
			wire.p[wire.len / 2 + k] ^= 0x5a;
		ck_assert_int_eq(run(i == 0 ? "gzip" : "deflate", &LIMITS), FW_EFORMAT);
		ck_assert_uint_ge(out.len, 1000);
		ck_assert_int_eq(memcmp(out.p, doc.p, 1000), 0);
	}
	/*
	 * brotli has no checksum: damage may stay unnoticed, but decoding stays within the limits
	 */
	for (size_t at = 10; at < 1000; at += 7) {
		code(&wire, fw_buf_str(&doc), at % 2 ? 'b' : 'z');
		wire.p[at] ^= 0x5a;
		(void)!run(at % 2 ? "br" : "zstd", &LIMITS);
		ck_assert_uint_le(out.len, LIMITS.max_bytes);
	}
	fw_buf_finish(&doc);
}
END_TEST

START_TEST(gzip_odd)
{
	struct fw_buf doc = document(61000), second = FW_BUF_INIT(0);

	/* two members in a row (RFC 1952 section 2.2) */
	code(&wire, fw_str_sub(fw_buf_str(&doc), 0, 20000), 'g');
	code(&second, fw_str_sub(fw_buf_str(&doc), 20000, 61000), 'g');
	fw_buf_addstr(&wire, fw_buf_str(&second));
	ck_assert_int_eq(run("gzip", &LIMITS), 0);
	ck_assert(fw_str_eq(fw_buf_str(&out), fw_buf_str(&doc)));
	/* an empty member at the end, which some servers send */
	code(&wire, fw_buf_str(&doc), 'g');
	code(&second, FW_STR(""), 'g');
	fw_buf_addstr(&wire, fw_buf_str(&second));
	ck_assert_int_eq(run("gzip", &LIMITS), 0);
	ck_assert(fw_str_eq(fw_buf_str(&out), fw_buf_str(&doc)));
	/* padding and stray text after it */
	code(&wire, fw_buf_str(&doc), 'g');
	fw_buf_add(&wire, "\0\0\0\0<!-- cached -->", 19);
	ck_assert_int_eq(run("gzip", &LIMITS), 0);
	ck_assert(fw_str_eq(fw_buf_str(&out), fw_buf_str(&doc)));
	fw_buf_finish(&doc);
	fw_buf_finish(&second);
}
END_TEST

static void bomb(struct fw_buf *b, char coding, size_t n)
{
	char *zero = calloc(1, n);

	ck_assert_ptr_nonnull(zero);
	code(b, (struct fw_str){zero, n}, coding);
	free(zero);
}

START_TEST(bombs) /* LIM-02, CVE-2022-32206 */
{
	static const struct {
		char coding;
		const char *name;
	} T[] = {
		{'g', "gzip"},
		{'g', NULL},
		{'d', "deflate"},
		{'b', "br"},
		{'z', "zstd"},
	};

	for (size_t i = 0; i < FW_N(T); i++) {
		fw_buf_finish(&out);
		bomb(&wire, T[i].coding, 64 << 20);
		ck_assert_msg(run(T[i].name, &LIMITS) == FW_ELIMIT, "%s", T[i].name);
		ck_assert_uint_eq(out.len, 0);
		ck_assert(strstr(err.text, "max_") != NULL);
		/* it was refused during decoding, not afterwards */
		ck_assert_msg(out.cap < (18 << 20), "%s %zu", T[i].name, out.cap);
	}
}
END_TEST

START_TEST(stacked_bomb)
{
	struct fw_buf inner = FW_BUF_INIT(0);

	bomb(&inner, 'g', 64 << 20);
	code(&wire, fw_buf_str(&inner), 'g');
	ck_assert_uint_lt(wire.len, 2000); /* 64 MiB in 2 KB */
	ck_assert_int_eq(run("gzip, gzip", &LIMITS), FW_ELIMIT);
	ck_assert_uint_lt(out.cap, 3 << 20);
	fw_buf_finish(&inner);
}
END_TEST

START_TEST(limits_to_the_byte) /* LIM-01 */
{
	static const struct {
		char coding;
		const char *name;
	} T[] = {
		{0, NULL},
		{'g', "gzip"},
		{'d', "deflate"},
		{'b', "br"},
		{'z', "zstd"},
	};
	struct fw_buf doc = document(100000);

	for (size_t i = 0; i < FW_N(T); i++) {
		code(&wire, fw_buf_str(&doc), T[i].coding);
		ck_assert_msg(run(T[i].name, &(struct fw_decode_limits){100000, 200}) == 0, "%s", T[i].name);
		ck_assert_uint_eq(out.len, 100000);
		code(&wire, fw_buf_str(&doc), T[i].coding);
		ck_assert_msg(run(T[i].name, &(struct fw_decode_limits){99999, 200}) == FW_ELIMIT, "%s", T[i].name);
		ck_assert_uint_eq(out.len, 0);
	}
	fw_buf_finish(&doc);
}
END_TEST

START_TEST(ratio_counts_past_the_first_mib)
{
	bomb(&wire, 'g', 1 << 20); /* a ratio of a thousand, but small */
	ck_assert_int_eq(run("gzip", &LIMITS), 0);
	ck_assert_uint_eq(out.len, 1 << 20);
	bomb(&wire, 'g', (1 << 20) + 1);
	ck_assert_int_eq(run("gzip", &LIMITS), FW_ELIMIT);
}
END_TEST

START_TEST(wrong_gzip_length)
{
	struct fw_buf doc = document(61000);

	/* ISIZE claims 16 MiB for 20 KB: refused as broken; no buffer of that size is allocated */
	code(&wire, fw_buf_str(&doc), 'g');
	fw_buf_finish(&out);
	memcpy(wire.p + wire.len - 4, "\0\0\xff\0", 4);
	wire.len = 5000; /* and truncated, so that the last four bytes are arbitrary */
	ck_assert_int_eq(run("gzip", &LIMITS), FW_EFORMAT);
	ck_assert_uint_lt(out.cap, 17 << 20);
	fw_buf_finish(&doc);
}
END_TEST

/*
 * A caller that decodes large bodies elsewhere gets them as they came. A gzip body whose trailer
 * shows a large size is not decoded first.
 */
START_TEST(small_ones_only)
{
	static const struct {
		char coding;
		const char *name;
	} T[] = {
		{0, NULL},
		{'g', "gzip"},
		{'g', NULL},
		{'d', "deflate"},
		{'b', "br"},
		{'z', "zstd"},
	};
	struct fw_buf doc = document(30000);

	for (size_t i = 0; i < FW_N(T); i++) {
		int rc = 1;
		size_t len;

		code(&wire, fw_buf_str(&doc), T[i].coding);
		ck_assert(fw_decode_small(decoder, fw_str(T[i].name), &wire, &out, 30000, &LIMITS, &rc, &err));
		ck_assert_int_eq(rc, 0);
		ck_assert_uint_eq(out.len, 30000);
		code(&wire, fw_buf_str(&doc), T[i].coding);
		fw_buf_finish(&out);
		len = wire.len;
		ck_assert_msg(!fw_decode_small(decoder, fw_str(T[i].name), &wire, &out, 29999, &LIMITS, &rc, &err),
			"%s", T[i].name);
		ck_assert_uint_eq(wire.len, len);
		ck_assert(T[i].coding != 'g' || !out.cap);
		/* too large in any case: refused here */
		ck_assert(T[i].coding == 0 ||
			fw_decode_small(decoder, fw_str(T[i].name), &wire, &out, 29999,
				&(struct fw_decode_limits){29999, 200}, &rc, &err));
		ck_assert(T[i].coding == 0 || rc == FW_ELIMIT);
	}
	fw_buf_finish(&doc);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit fetch decode");
	TCase *t = tcase_create("decode");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, each_coding);
	tcase_add_test(t, nothing_at_all);
	tcase_add_test(t, stacked);
	tcase_add_test(t, cut_short);
	tcase_add_test(t, damaged);
	tcase_add_test(t, gzip_odd);
	tcase_add_test(t, bombs);
	tcase_add_test(t, stacked_bomb);
	tcase_add_test(t, limits_to_the_byte);
	tcase_add_test(t, ratio_counts_past_the_first_mib);
	tcase_add_test(t, wrong_gzip_length);
	tcase_add_test(t, small_ones_only);
	suite_add_tcase(s, t);
	return run_suite(s);
}
