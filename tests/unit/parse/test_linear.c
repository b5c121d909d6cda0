/* SPDX-License-Identifier: ISC */
/*
 * No input takes more than linear time to parse (LIM-01, REL-10). The test counts work, not time,
 * so a busy machine does not matter.
 *
 * The parse and base rooms are compiled again with a call at each basic block
 * (-fsanitize-coverage=trace-pc), and the memory functions of libc are wrapped. The work of other
 * libraries (iconv, uchardet, gumbo) is not counted.
 */
#include <check.h>

#include "base/arena.h"
#include "base/str.h"
#include "parse/parse.h"
#include "parse/xml/xml.h"
#include "shapes.h"
#include "../../suite.h"

#define SMALL ((size_t)32 << 10)
#define GROWTH 8
#define PER_BYTE 350 /* the limit of steps a byte for any shape, without entities */

/* ---- the counter ----------------------------------------------------------------------------- */

static uint64_t steps;

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
	steps++;
}

void *__real_memchr(const void *p, int c, size_t n);
void *__wrap_memchr(const void *p, int c, size_t n);
void *__wrap_memchr(const void *p, int c, size_t n)
{
	const char *hit = __real_memchr(p, c, n);

	steps += (hit ? (size_t)(hit - (const char *)p) : n) / 16;
	return (void *)(uintptr_t)hit;
}

void *__real_memmem(const void *p, size_t n, const void *what, size_t m);
void *__wrap_memmem(const void *p, size_t n, const void *what, size_t m);
void *__wrap_memmem(const void *p, size_t n, const void *what, size_t m)
{
	const char *hit = __real_memmem(p, n, what, m);

	steps += (hit ? (size_t)(hit - (const char *)p) : n) / 16;
	return (void *)(uintptr_t)hit;
}

int __real_memcmp(const void *a, const void *b, size_t n);
int __wrap_memcmp(const void *a, const void *b, size_t n);
int __wrap_memcmp(const void *a, const void *b, size_t n)
{
	steps += n / 16;
	return __real_memcmp(a, b, n);
}

void *__real_memcpy(void *a, const void *b, size_t n);
void *__wrap_memcpy(void *a, const void *b, size_t n);
void *__wrap_memcpy(void *a, const void *b, size_t n)
{
	steps += n / 16;
	return __real_memcpy(a, b, n);
}

void *__real_memmove(void *a, const void *b, size_t n);
void *__wrap_memmove(void *a, const void *b, size_t n);
void *__wrap_memmove(void *a, const void *b, size_t n)
{
	steps += n / 16;
	return __real_memmove(a, b, n);
}

void *__real_memset(void *a, int c, size_t n);
void *__wrap_memset(void *a, int c, size_t n);
void *__wrap_memset(void *a, int c, size_t n)
{
	steps += n / 16;
	return __real_memset(a, c, n);
}

/* ---- what is counted ------------------------------------------------------------------------- */

static const struct fw_limits WIDE = {.max_depth = UINT32_MAX, .max_attributes = UINT32_MAX, .max_bytes = SIZE_MAX / 8};

static int tokenize(struct fw_arena *a, struct fw_str s, const struct fw_limits *limits)
{
	static const struct fw_xml_handler none;
	struct fw_xml x = {.arena = a, .handler = &none};
	struct fw_err err;

	if (limits)
		x.limits = *limits;
	return fw_xml_parse(&x, s.p, s.len, &err);
}

static int parse(struct fw_arena *a, struct fw_str s, const struct fw_limits *limits)
{
	struct fw_parse_options o = {.url = FW_STR("https://example.org/feed"), .now_ms = 1000000000000};
	struct fw_document *doc;
	struct fw_err err;

	if (limits)
		o.limits = *limits;
	return fw_parse_into(a, s, &o, &doc, &err);
}

static int on_outline(void *ctx, const struct fw_opml_outline *o)
{
	(void)ctx;
	(void)o;
	return 0;
}

static void on_problem(void *ctx, uint32_t line, uint32_t column, const char *what, const char *repair)
{
	(void)what;
	(void)repair;
	*(uint32_t *)ctx = line + column;
}

static int opml(struct fw_arena *a, struct fw_str s, const struct fw_limits *limits)
{
	struct fw_err err;
	uint32_t place;

	(void)limits;
	return fw_opml_parse(a, s, on_outline, on_problem, &place, &err);
}

typedef int reader(struct fw_arena *a, struct fw_str s, const struct fw_limits *limits);

static double cost(const struct shape *s, size_t size, reader *read, const struct fw_limits *limits, int *rc)
{
	struct shape_text t = shape_build(s, size);
	struct fw_arena a;
	uint64_t from;

	fw_arena_init(&a, 0);
	from = steps;
	*rc = read(&a, (struct fw_str){t.p, t.n}, limits);
	from = steps - from;
	fw_arena_finish(&a);
	free(t.p);
	return (double)from / (double)t.n;
}

static void grows_linearly(const struct shape *s, reader *read, const struct fw_limits *limits, const char *how)
{
	bool entities = strstr(s->head, "<!DOCTYPE") != NULL;
	int rc;
	double small = cost(s, SMALL, read, limits, &rc), large = cost(s, SMALL * GROWTH, read, limits, &rc);

	if (read == tokenize)
		ck_assert_msg(rc == 0, "%s, %s: %d", s->name, how, rc);
	if (getenv("FW_VERBOSE"))
		fprintf(stderr, "%-45s %-20s %8.2f %8.2f %6.2f\n", s->name, how, small, large, large / small);
	ck_assert_msg(large <= 1.2 * small || large < 1, "%s, %s: %.1f steps a byte, at %d times the size %.1f",
		s->name, how, small, GROWTH, large);
	ck_assert_msg(large <= PER_BYTE * (entities ? 20 : 1), "%s, %s: %.1f steps a byte", s->name, how, large);
}

START_TEST(tokenizer)
{
	grows_linearly(&XML_SHAPES[_i], tokenize, NULL, "tokenizer");
	grows_linearly(&XML_SHAPES[_i], tokenize, &WIDE, "tokenizer, no limits");
}
END_TEST

START_TEST(markup)
{
	grows_linearly(&XML_SHAPES[_i], parse, NULL, "parse");
	grows_linearly(&XML_SHAPES[_i], parse, &WIDE, "parse, no limits");
}
END_TEST

START_TEST(feeds)
{
	grows_linearly(&FEED_SHAPES[_i], parse, NULL, "parse");
	grows_linearly(&FEED_SHAPES[_i], parse, &WIDE, "parse, no limits");
}
END_TEST

START_TEST(json)
{
	grows_linearly(&JSON_SHAPES[_i], parse, NULL, "parse");
	grows_linearly(&JSON_SHAPES[_i], parse, &WIDE, "parse, no limits");
}
END_TEST

START_TEST(lists)
{
	grows_linearly(&OPML_SHAPES[_i], opml, NULL, "OPML");
}
END_TEST

/* The counter works: a search that restarts again and again is detected. */
START_TEST(a_square_is_seen)
{
	static char big[1 << 16];
	struct fw_str s = {big, sizeof(big)};
	uint64_t from = steps;

	memset(big, 'x', sizeof(big));
	for (size_t i = 0; i < 1000; i++)
		ck_assert_ptr_null(fw_str_find(fw_str_sub(s, i, s.len), FW_STR("<?")));
	ck_assert_uint_gt(steps - from, 1000 * (sizeof(big) - 1000) / 16);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit parse linear");
	TCase *t = tcase_create("linear");

	tcase_set_timeout(t, 60);
	tcase_add_test(t, a_square_is_seen);
	tcase_add_loop_test(t, tokenizer, 0, (int)FW_N(XML_SHAPES));
	tcase_add_loop_test(t, markup, 0, (int)FW_N(XML_SHAPES));
	tcase_add_loop_test(t, feeds, 0, (int)FW_N(FEED_SHAPES));
	tcase_add_loop_test(t, json, 0, (int)FW_N(JSON_SHAPES));
	tcase_add_loop_test(t, lists, 0, (int)FW_N(OPML_SHAPES));
	suite_add_tcase(s, t);
	return run_suite(s);
}
