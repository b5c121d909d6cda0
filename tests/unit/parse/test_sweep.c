/* SPDX-License-Identifier: ISC */
/*
 * Each document of tests/cases, and of the corpus beside the source tree if it exists, damaged and
 * transformed: cut off, with flipped bytes, in other encodings, with transfer chunks left in. No
 * crash and no hang; complete entries survive a cut (LIM-02, REL-11); the entries are the same in
 * each encoding (CHR-01 ... CHR-05). Also the memory of each.
 */
#include <check.h>
#include <iconv.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/str.h"
#include "base/utf8.h"
#include "parse/charset/charset.h"
#include "parse/parse.h"
#include "documents.h"
#include "heap.h"
#include "../../suite.h"

/* ---- documents ------------------------------------------------------------------------------- */

static void each(check_fn *fn, int every, size_t max)
{
	ck_assert_int_gt(each_of("tests/cases", fn, SLOW_BUILD ? 4 : 1, SIZE_MAX), 60);
	(void)each_of("../shared/corpus/open", fn, SLOW_BUILD ? every * 16 : every, max);
}

/* ---- any input ------------------------------------------------------------------------------- */

static struct fw_document *survives(struct fw_str s, bool print)
{
	struct fw_document *doc;
	struct fw_err err;
	char *json;
	size_t len;

	if (fw_parse(s.p, s.len, NULL, &doc, &err)) {
		ck_assert_ptr_null(doc);
		ck_assert(err.text[0]);
		return NULL;
	}
	if (print) {
		ck_assert_msg(!fw_document_json(doc, 0, &json, &len, &err), "%s", err.text);
		ck_assert_uint_eq(fw_utf8_valid(json, len), len);
		free(json);
	}
	return doc;
}

static size_t entries(struct fw_str s, bool print)
{
	struct fw_document *doc = survives(s, print);
	size_t n = doc ? doc->entry_n : 0;

	fw_document_free(doc);
	return n;
}

static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* ---- cuts ------------------------------------------------------------------------------------ */

/* Entries whose end tag is before the cut. */
static size_t ends_before(struct fw_str s, size_t cut)
{
	static const char *const END[] = {"</item>", "</entry>", "</rss:item>", "</atom:entry>"};
	size_t n = 0;

	for (size_t i = 0; i < FW_N(END); i++) {
		struct fw_str rest = fw_str_sub(s, 0, cut), end = fw_str(END[i]);
		const char *p;

		while ((p = fw_str_find(rest, end)) != NULL) {
			n++;
			rest = fw_str_sub(rest, (size_t)(p - rest.p) + end.len, rest.len);
		}
	}
	return n;
}

static void cut_everywhere(const char *name, struct fw_str bytes)
{
	size_t whole = entries(bytes, false);
	/* otherwise tags are in CDATA, or not in ASCII */
	bool countable = whole > 0 && ends_before(bytes, bytes.len) == whole;

	for (size_t k = 0; k < 50; k++) {
		size_t at = bytes.len * k / 50, got = entries(fw_str_sub(bytes, 0, at), bytes.len < 8192);

		if (countable)
			ck_assert_msg(got >= ends_before(bytes, at), "%s cut at %zu: %zu of %zu entries", name, at, got,
				ends_before(bytes, at));
	}
}

START_TEST(cuts)
{
	each(cut_everywhere, 4, 1 << 17);
}
END_TEST

/* ---- flips ----------------------------------------------------------------------------------- */

static void flip_bytes(const char *name, struct fw_str bytes)
{
	uint64_t seed = 88172645463325252u;
	char *copy = malloc(bytes.len + 1);

	(void)name;
	ck_assert_ptr_nonnull(copy);
	for (int round = 0; round < 60 && bytes.len; round++) {
		memcpy(copy, bytes.p, bytes.len);
		for (int k = 0; k <= round % 4 * (int)(1 + bytes.len / 8192); k++) {
			size_t at = next_random(&seed) % bytes.len;

			copy[at] = (char)(seed >> 40);
		}
		entries((struct fw_str){copy, bytes.len}, bytes.len < 8192);
	}
	free(copy);
}

START_TEST(flips)
{
	each(flip_bytes, 4, 1 << 16);
}
END_TEST

/* ---- chunks ---------------------------------------------------------------------------------- */

static void in_chunks(const char *name, struct fw_str bytes)
{
	static const size_t SIZES[] = {7, 100, 4096};

	(void)name;
	for (size_t i = 0; i < FW_N(SIZES); i++) {
		struct fw_buf b = FW_BUF_INIT(0);

		for (size_t at = 0; at < bytes.len; at += SIZES[i]) {
			struct fw_str part = fw_str_sub(bytes, at, at + SIZES[i]);

			fw_buf_addf(&b, "%zx\r\n", part.len);
			fw_buf_addstr(&b, part);
			fw_buf_adds(&b, "\r\n");
		}
		fw_buf_adds(&b, "0\r\n\r\n");
		entries(fw_buf_str(&b), true);
		fw_buf_finish(&b);
	}
}

START_TEST(chunks)
{
	each(in_chunks, 4, 1 << 17);
}
END_TEST

/* ---- encodings ------------------------------------------------------------------------------- */

static bool same_entries(const struct fw_document *a, const struct fw_document *b)
{
	const struct fw_entry *x = a->entries, *y = b->entries;

	for (; x && y; x = x->next, y = y->next) {
		if (!fw_str_eq(x->id, y->id) || !fw_str_eq(x->url, y->url) || !fw_str_eq(x->title, y->title) ||
			!fw_str_eq(x->content, y->content) || !fw_str_eq(x->summary, y->summary) ||
			x->published_ms != y->published_ms)
			return false;
	}
	return !x && !y && a->format == b->format && fw_str_eq(a->title, b->title);
}

/* Encodes the text with iconv, with its byte order mark; false if the encoding cannot hold it. */
static bool encode(struct fw_str text, const char *iconv_name, struct fw_str mark, struct fw_buf *out)
{
	iconv_t cd = iconv_open(iconv_name, "UTF-8");
	size_t cap = 4 * text.len + 16, left = text.len, room = cap;
	char *in = (char *)(uintptr_t)text.p, *at;
	struct fw_buf back;
	bool ok;

	ck_assert(cd != (iconv_t)-1);
	fw_buf_init(out, 0);
	fw_buf_addstr(out, mark);
	at = fw_buf_room(out, cap);
	ck_assert_ptr_nonnull(at);
	ok = iconv(cd, &in, &left, &at, &room) == 0;
	out->len += cap - room;
	iconv_close(cd);
	if (!ok || mark.len || strncmp(iconv_name, "UTF", 3) == 0)
		return ok;
	/* some characters are decoded as others */
	cd = iconv_open("UTF-8", iconv_name);
	fw_buf_init(&back, 0);
	in = out->p;
	left = out->len;
	room = cap = 2 * text.len + 16;
	at = fw_buf_room(&back, cap);
	ck_assert(cd != (iconv_t)-1 && at);
	ok = iconv(cd, &in, &left, &at, &room) == 0 && cap - room == text.len && memcmp(back.p, text.p, text.len) == 0;
	iconv_close(cd);
	fw_buf_finish(&back);
	/*
	 * UTF-8 that was once misread as windows-1252 becomes UTF-8 again, and is then detected as
	 * UTF-8
	 */
	return ok && fw_utf8_valid(out->p, out->len) != out->len;
}

static void in_other_encodings(const char *name, struct fw_str bytes)
{
	static const struct {
		const char *label, *iconv, *mark;
		size_t mark_n;
	} AS[] = {
		{"utf-16", "UTF-16LE", "\xff\xfe", 2},
		{"utf-16", "UTF-16BE", "\xfe\xff", 2},
		{"utf-16", "UTF-16LE", "", 0},
		{"utf-16", "UTF-16BE", "", 0},
		{"utf-8", "UTF-16LE", "\xff\xfe", 2},
		{"utf-32", "UTF-32LE", "\xff\xfe\0", 4},
		{"utf-32", "UTF-32BE", "", 0},
		{"utf-8", "UTF-8", "\xef\xbb\xbf", 3},
		{"windows-1252", "CP1252", "", 0},
		{"iso-8859-1", "CP1252", "", 0},
		{"shift_jis", "CP932", "", 0},
		{"gb18030", "GB18030", "", 0},
		{"koi8-r", "KOI8-R", "", 0},
	};
	struct fw_charset_result r;
	struct fw_buf plain = FW_BUF_INIT(0), b;
	struct fw_document *want, *got;
	struct fw_arena a;
	struct fw_err err;
	struct fw_str rest;
	const char *end;
	bool xml;

	fw_arena_init(&a, 0);
	ck_assert_int_eq(fw_charset_decode(&a, bytes, FW_STR_NONE, &r, &err), 0);
	rest = fw_str_trim(r.text);
	xml = fw_str_starts(rest, FW_STR("<"));
	if (fw_str_starts(rest, FW_STR("<?xml ")) && (end = fw_str_find(rest, FW_STR("?>"))) != NULL)
		rest = fw_str_sub(rest, (size_t)(end - rest.p) + 2, rest.len);
	want = r.wrong || (!xml && !fw_str_starts(rest, FW_STR("{"))) ? NULL : survives(rest, false);
	for (size_t i = 0; want && i < FW_N(AS); i++) {
		if (!xml && (!fw_str_istarts(fw_str(AS[i].label), FW_STR("utf-")) || want->malformed))
			continue;
		fw_buf_init(&plain, 0);
		if (xml)
			fw_buf_addf(&plain, "<?xml version=\"1.0\" encoding=\"%s\"?>", AS[i].label);
		fw_buf_addstr(&plain, rest);
		if (encode(fw_buf_str(&plain), AS[i].iconv, (struct fw_str){AS[i].mark, AS[i].mark_n}, &b)) {
			got = survives(fw_buf_str(&b), false);
			ck_assert_msg(got && same_entries(want, got),
				"%s in %s (%zu bytes of mark): %zu of %zu entries, or others", name, AS[i].iconv,
				AS[i].mark_n, got ? got->entry_n : 0, want->entry_n);
			fw_document_free(got);
		}
		fw_buf_finish(&b);
		fw_buf_finish(&plain);
	}
	fw_document_free(want);
	fw_arena_finish(&a);
}

START_TEST(other_encodings)
{
	each(in_other_encodings, 1, 1 << 19);
}
END_TEST

/* ---- input that is freed --------------------------------------------------------------------- */

static char *printed(const struct fw_document *doc)
{
	struct fw_err err;
	char *json;
	size_t len;

	ck_assert_msg(!fw_document_json(doc, FW_PRINT_RAW, &json, &len, &err), "%s", err.text);
	return json;
}

/*
 * The document of fw_parse(), after its input is freed, equals that of fw_parse_into() while the
 * input exists.
 */
static void outlives_bytes(const char *name, struct fw_str bytes)
{
	char *copy = malloc(bytes.len + 1), *own, *borrowed;
	struct fw_document *doc, *there;
	struct fw_arena a;
	int rc, rc_there;

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, bytes.p, bytes.len);
	rc = fw_parse(copy, bytes.len, NULL, &doc, NULL);
	memset(copy, 'X', bytes.len);
	free(copy);
	fw_arena_init(&a, 0);
	rc_there = fw_parse_into(&a, bytes, NULL, &there, NULL);
	ck_assert_int_eq(rc, rc_there);
	if (!rc) {
		own = printed(doc);
		borrowed = printed(there);
		ck_assert_msg(
			strcmp(own, borrowed) == 0, "%s: strings still point into the bytes that were read", name);
		free(own);
		free(borrowed);
		fw_document_free(doc);
	}
	fw_arena_finish(&a);
}

START_TEST(bytes_go_away)
{
	each(outlives_bytes, 1, SIZE_MAX);
}
END_TEST

/* ---- memory ---------------------------------------------------------------------------------- */

/*
 * LIM-03: all memory of fw_parse(), with its copy of the input and scratch memory, is at most twice
 * the document and 64 KiB.
 */
static void within_bound(const char *name, struct fw_str bytes)
{
	struct fw_parse_options o = {.url = FW_STR("https://example.org/feed")};
	struct fw_document *doc;
	struct fw_err err;
	size_t peak;

	if (fw_str_starts(bytes, FW_STR("\x1f\x8b")) || fw_str_find(bytes, FW_STR("<!ENTITY")))
		/*
		 * these grow by decompression or expansion: max_bytes, max_entity_ratio and
		 * max_memory limit that
		 */
		return;
	if (fw_str_starts(fw_str(name), FW_STR("limit-")))
		return; /* designed to take more memory than any feed: tags without text */
	heap_begin();
	if (fw_parse(bytes.p, bytes.len, &o, &doc, &err))
		doc = NULL;
	peak = heap_end();
	ck_assert_msg(peak <= 2 * bytes.len + 65536, "%s: %zu bytes of memory for %zu, %.2f of the bound", name, peak,
		bytes.len, (double)peak / (2.0 * (double)bytes.len + 65536));
	fw_document_free(doc);
}

START_TEST(memory)
{
	json_set_alloc_funcs(malloc, free); /* those of heap.h */
	each(within_bound, 1, SIZE_MAX);
}
END_TEST

/* 400 lists of 900 units each, in one list: 1 MB or more. */
static void nested(struct fw_buf *b, const char *before, const char *unit, const char *behind)
{
	fw_buf_adds(b, before);
	for (int i = 0; i < 400; i++) {
		fw_buf_adds(b, i ? ",[" : "[[");
		for (int k = 0; k < 900; k++) {
			fw_buf_adds(b, k ? "," : "");
			fw_buf_adds(b, unit);
		}
		fw_buf_addc(b, ']');
	}
	fw_buf_addc(b, ']');
	fw_buf_adds(b, behind);
}

#define FEED "{\"version\":\"https://jsonfeed.org/version/1.1\",\"title\":\"t\","

/* A memory limit also covers jansson's trees, which are not in the arena, and what repairs add. */
START_TEST(memory_of_trees)
{
	static const struct {
		const char *before, *unit, *behind;
	} DOC[] = {
		{FEED "\"items\":[{\"id\":\"1\",\"_x\":", "{}", "}]}"},
		{FEED "\"items\":[{\"id\":\"1\",\"_x\":", "[]", "}]}"},
		{FEED "\"items\":[{\"id\":\"1\",\"_x\":", "{\"\":[]}", "}]}"},
		{FEED "\"items\":[{\"id\":\"1\",\"_x\":", "\"\"", "}]}"},
		{FEED "\"_x\":", "{}", ",\"items\":[{\"id\":\"1\"}]}"},
		{FEED "\"items\":[{\"id\":\"1\",\"_x\":", "{}", ",}]"},
		{FEED "\"items\":[", "{}", ",,"},
		{FEED "/*\"*/\"items\":[{\"id\":\"1\",\"_x\":", "{}", "}]}"},
	};

	json_set_alloc_funcs(malloc, free); /* those of heap.h */
	for (size_t i = 0; i < FW_N(DOC); i++) {
		for (size_t factor = 2; factor <= 8; factor += 2) {
			struct fw_buf b = FW_BUF_INIT(0);
			struct fw_parse_options o = {.url = FW_STR("https://example.org/feed")};
			struct fw_document *doc;
			struct fw_err err;
			size_t peak;

			nested(&b, DOC[i].before, DOC[i].unit, DOC[i].behind);
			o.limits.max_memory = factor * b.len;
			heap_begin();
			if (fw_parse(b.p, b.len, &o, &doc, &err))
				doc = NULL;
			peak = heap_end();
			ck_assert_msg(peak <= (factor + 1) * b.len + (1 << 20),
				"%zu: %zu bytes of memory for %zu, allowed %zu", i, peak, b.len, factor * b.len);
			ck_assert_msg(doc || err.rc == FW_ELIMIT, "%zu: %s", i, err.text);
			fw_document_free(doc);
			fw_buf_finish(&b);
		}
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit parse sweep");
	TCase *t = tcase_create("sweep");

	tcase_set_timeout(t, 280);
	tcase_add_test(t, cuts);
	tcase_add_test(t, flips);
	tcase_add_test(t, chunks);
	tcase_add_test(t, other_encodings);
	tcase_add_test(t, bytes_go_away);
	tcase_add_test(t, memory);
	tcase_add_test(t, memory_of_trees);
	suite_add_tcase(s, t);
	return run_suite(s);
}
