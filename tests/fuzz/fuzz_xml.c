/* SPDX-License-Identifier: ISC */
/*
 * The tokenizer against expat: input that expat accepts gives the same events and is not malformed;
 * input that expat refuses is malformed.
 *
 * Not compared: references that only a DTD could define (x.skipped; expat has no event for them);
 * names outside ASCII, where expat implements the 4th edition of XML 1.0 and we the 5th; UTF-16,
 * which expat detects by itself.
 */
#include "../unit/parse/trace.h"
#include "fuzz.h"

static void *limited_alloc(size_t n, void *ctx)
{
	size_t *left = ctx;

	if (n > *left)
		return NULL;
	*left -= n;
	return malloc(n);
}

static void limited_free(void *p, void *ctx)
{
	(void)ctx;
	free(p);
}

/* Tight limits, and memory that runs out: no crash, and an error that names the cause. */
static void tight(const char *p, size_t n, size_t memory)
{
	struct trace t = {0};
	struct fw_arena a;
	struct fw_xml x = {.arena = &a,
		.handler = &OUR,
		.ctx = &t,
		.whole_text = n % 2 == 1,
		.limits = {.max_depth = 3, .max_attributes = 2, .max_entity_ratio = 1}};
	struct fw_err err;
	int rc;

	fw_arena_init(&a, 0);
	a.alloc = limited_alloc;
	a.free = limited_free;
	a.ctx = &memory;
	rc = fw_xml_parse(&x, p, n, &err);
	FUZZ_CHECK(rc == 0 || rc == FW_ENOMEM);
	FUZZ_CHECK(rc || x.depth == 0);
	FUZZ_CHECK(t.depth_max <= 3);
	fw_arena_finish(&a);
	fw_buf_finish(&t.out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct fw_limits wide = {.max_depth = 100000, .max_attributes = 100000};
	const char *p = (const char *)data;
	struct trace ours = {0}, theirs = {0};
	uint32_t skipped;
	bool ok, high = false;
	int refused;

	size = fw_utf8_valid(p, size);
	while (size >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0) { /* expat skips one by itself */
		p += 3;
		size -= 3;
	}
	if (size >= 2 && (p[0] == 0 || p[1] == 0))
		return 0;
	refused = trace_expat(&theirs, p, size);
	ok = trace_ours(&ours, p, size, &wide, &skipped);
	FUZZ_CHECK(fw_utf8_valid(ours.out.p, ours.out.len) == ours.out.len);
	FUZZ_CHECK(trace_same_whole(&ours, p, size, &wide));
	for (size_t i = 0; i < size; i++)
		high |= (unsigned char)p[i] >= 0x80;
	if (!refused) {
		FUZZ_CHECK(ok);
		FUZZ_CHECK(skipped || fw_str_eq(fw_buf_str(&ours.out), fw_buf_str(&theirs.out)));
	} else if (ok && !skipped && !high && refused != XML_ERROR_AMPLIFICATION_LIMIT_BREACH) {
		fprintf(stderr, "expat: %s\n", XML_ErrorString((enum XML_Error)refused));
		FUZZ_CHECK(!ok);
	}
	fw_buf_finish(&ours.out);
	fw_buf_finish(&theirs.out);
	tight(p, size, 1 << 22);
	tight(p, size, size ? 5000 + (size_t)data[size / 2] * 100 : 0);
	return 0;
}
