/* SPDX-License-Identifier: ISC */
/*
 * Memory that runs out. Each document of tests/cases is parsed, printed and sanitised again and
 * again, and each time another allocation fails: once alone, and once with all that follow. The
 * result is complete, or it is FW_ENOMEM with a message; nothing leaks, and a part never passes for
 * the whole. Then memory limits in small steps: FW_ELIMIT with a message that names limit, value
 * and option.
 *
 * The failing allocations are the library's own (by --wrap), jansson's and the caller's hook. gumbo
 * and uchardet are excluded: they end the program.
 */
#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "feedwheel/document.h"
#include "documents.h"
#include "../oom.h"
#include "../../suite.h"

/*
 * jansson drops a byte if a string cannot grow once and can later: for it all following allocations
 * fail.
 */
static void *json_alloc(size_t n)
{
	return all_behind || !counting ? __wrap_malloc(n) : kept(__real_malloc(n));
}

/* ---- what is tried --------------------------------------------------------------------------- */

struct answer {
	int rc;
	char *text; /* of the result, or NULL */
	size_t len;
	bool left; /* an error together with a result */
};

typedef void try_fn(struct fw_str bytes, struct answer *out, struct fw_err *err);

static void try_parse(struct fw_str bytes, struct answer *out, struct fw_err *err)
{
	struct fw_parse_options o = {.url = FW_STR("https://example.org/dir/feed"), .now_ms = INT64_C(1795262400000)};
	struct fw_document *doc = (void *)1;

	out->rc = fw_parse(bytes.p, bytes.len, &o, &doc, err);
	out->left = out->rc && doc;
	if (out->rc)
		return;
	out->rc = fw_document_json(doc, FW_PRINT_RAW, &out->text, &out->len, err);
	fw_document_free(doc);
}

static void try_sanitize(struct fw_str bytes, struct answer *out, struct fw_err *err)
{
	out->rc = fw_sanitize(bytes, FW_STR("https://example.org/"), 0, &out->text, &out->len, err);
}

static void links_text(int rc, struct fw_link *l, struct answer *out)
{
	struct fw_link *first = l;
	bool was = counting;

	out->rc = rc;
	counting = false;
	if (!rc) {
		struct fw_buf b = FW_BUF_INIT(0);

		fw_buf_adds(&b, "links");
		for (; l; l = l->next)
			fw_buf_addf(&b, " %.*s", FW_STR_ARG(l->href));
		out->text = fw_buf_take(&b, &out->len);
	}
	counting = was;
	live += counting && out->text;
	free(first);
}

static void try_discover(struct fw_str bytes, struct answer *out, struct fw_err *err)
{
	struct fw_link *l = (void *)1;
	int rc = fw_discover(bytes.p, bytes.len, FW_STR("https://example.org/"), FW_STR_NONE, &l, err);

	out->left = rc && l;
	links_text(rc, rc ? NULL : l, out);
}

static void try_header(struct fw_str bytes, struct answer *out, struct fw_err *err)
{
	struct fw_link *l = (void *)1;
	int rc = fw_discover_header(bytes, FW_STR("https://example.org/"), &l, err);

	out->left = rc && l;
	links_text(rc, rc ? NULL : l, out);
}

static int outline(void *ctx, const struct fw_opml_outline *o)
{
	struct answer *out = ctx;

	out->len += o->url.len + 1000 * o->folder.len + 100000 * o->title.len;
	return 0;
}

static void try_opml(struct fw_str bytes, struct answer *out, struct fw_err *err)
{
	out->rc = fw_opml_read(bytes.p, bytes.len, outline, NULL, out, err);
	if (out->rc == FW_ENOMEM)
		out->len = 0;
}

/* ---- one after another ----------------------------------------------------------------------- */

static long tried, failures;

static void run(try_fn *fn, struct fw_str bytes, long n, bool behind, struct answer *out, struct fw_err *err)
{
	*out = (struct answer){0};
	*err = (struct fw_err){0};
	at = live = 0;
	fail_at = n;
	all_behind = behind;
	counting = true;
	fn(bytes, out, err);
	counting = false;
	ck_assert_int_eq(live, out->text != NULL);
	ck_assert(!out->left);
}

static void each_allocation(const char *name, struct fw_str bytes, try_fn *fn, const char *what)
{
	struct answer whole, got;
	struct fw_err err;
	long total;

	run(fn, bytes, 0, true, &whole, &err);
	total = at;
	for (long n = 1; n <= total; n++) {
		for (int behind = 0; behind < 2; behind++) {
			run(fn, bytes, n, behind, &got, &err);
			tried++;
			if (got.rc != whole.rc) {
				failures++;
				ck_assert_msg(got.rc == FW_ENOMEM, "%s, allocation %ld of %ld: %s: %s", name, n, total,
					fw_err_name(got.rc), err.text);
				ck_assert_msg(strstr(err.text, "memory") != NULL, "%s, allocation %ld: %s", name, n,
					err.text);
				ck_assert_ptr_null(got.text);
			} else {
				ck_assert_msg(got.len == whole.len &&
						(!whole.text || !memcmp(got.text, whole.text, whole.len)),
					"%s of %s, allocation %ld of %ld: no error, but another answer: %s", what, name,
					n, total, got.text ? got.text : "nothing");
			}
			free(got.text);
		}
	}
	free(whole.text);
}

static bool guessed(struct fw_str bytes) /* uchardet would run, and it throws when it has no memory */
{
	return fw_str_find(bytes, FW_STR("\xff\xfe\xfd")) != NULL;
}

static void parse_each(const char *name, struct fw_str bytes)
{
	if (bytes.len < 20000 && !guessed(bytes))
		each_allocation(name, bytes, try_parse, "try_parse");
}

static void others_each(const char *name, struct fw_str bytes)
{
	if (bytes.len < 4000) {
		each_allocation(name, bytes, try_discover, "try_discover");
		each_allocation(name, bytes, try_header, "try_header");
		each_allocation(name, bytes, try_opml, "try_opml");
		each_allocation(name, bytes, try_sanitize, "try_sanitize");
	}
}

static void setup(void)
{
	json_set_alloc_funcs(json_alloc, __wrap_free);
	tried = failures = 0;
}

START_TEST(parsing)
{
	ck_assert_int_gt(each_of("tests/cases", parse_each, 1, SIZE_MAX), 60);
	ck_assert_int_gt(failures, 1000); /* enough of the failures were real */
}
END_TEST

START_TEST(the_rest)
{
	ck_assert_int_gt(each_of("tests/cases", others_each, 5, SIZE_MAX), 60);
	ck_assert_int_gt(failures, 200);
}
END_TEST

/* ---- the caller's allocator ------------------------------------------------------------------ */

struct pool {
	long n, fail_at, live;
	bool for_good; /* all that follow fail too */
	size_t bytes;
};

static void *pool_alloc(size_t n, void *ctx)
{
	struct pool *p = ctx;

	if (++p->n == p->fail_at || (p->for_good && p->fail_at && p->n > p->fail_at))
		return NULL;
	p->live++;
	p->bytes += n;
	return malloc(n);
}

static void pool_free(void *at_, void *ctx)
{
	struct pool *p = ctx;

	p->live -= at_ != NULL;
	free(at_);
}

static void hooked(const char *name, struct fw_str bytes)
{
	struct pool pool = {0};
	struct fw_parse_options o = {.alloc = pool_alloc, .free = pool_free, .alloc_ctx = &pool};
	struct fw_document *doc;
	struct fw_err err;
	int want = fw_parse(bytes.p, bytes.len, &o, &doc, &err), rc;
	long total = pool.n;

	ck_assert_int_gt(total, 0);
	fw_document_free(doc);
	ck_assert_int_eq(pool.live, 0);
	/*
	 * one allocation fails, or all from there on: with only one a smaller one may be tried
	 * instead
	 */
	for (long n = 1; n <= 2 * total; n++) {
		pool = (struct pool){.fail_at = (n + 1) / 2, .for_good = n % 2};
		rc = fw_parse(bytes.p, bytes.len, &o, &doc, &err);
		ck_assert_msg(rc == want || rc == FW_ENOMEM, "%s: %s", name, err.text);
		failures += rc == FW_ENOMEM;
		fw_document_free(doc);
		ck_assert_int_eq(pool.live, 0);
	}
}

START_TEST(hook)
{
	struct fw_parse_options o = {.alloc = pool_alloc};
	struct fw_document *doc = (void *)1;
	struct fw_err err;

	ck_assert_int_gt(each_of("tests/cases", hooked, 1, SIZE_MAX), 60);
	ck_assert_int_gt(failures, 100);
	ck_assert_int_eq(fw_parse("<rss/>", 6, &o, &doc, &err), FW_EINVAL);
	ck_assert_ptr_null(doc);
	ck_assert_ptr_nonnull(strstr(err.text, "set both alloc and free, or neither"));
}
END_TEST

/* ---- limits of memory ------------------------------------------------------------------------ */

static void limited(const char *name, struct fw_str bytes)
{
	struct fw_parse_options o = {.url = FW_STR("https://example.org/feed")};
	struct fw_document *doc;
	size_t had = 0;
	struct fw_err err;
	int whole = fw_parse(bytes.p, bytes.len, &o, &doc, &err);
	size_t entries = doc ? doc->entry_n : 0, step = bytes.len > 4000 ? 1499 : 251;
	char value[40];

	fw_document_free(doc);
	for (o.limits.max_memory = 1; o.limits.max_memory < 40000; o.limits.max_memory += step) {
		int rc = fw_parse(bytes.p, bytes.len, &o, &doc, &err);

		if (rc == whole) {
			ck_assert_msg(!doc || (doc->entry_n >= had && doc->entry_n <= entries),
				"%s: more memory, fewer entries", name);
			had = doc ? doc->entry_n : had;
			/* complete, or with a note of what is missing */
			if (doc && doc->entry_n < entries) {
				const struct fw_problem *p = doc->problems;

				while (p && !strstr(p->what, "max_memory"))
					p = p->next;
				ck_assert_msg(p != NULL, "%s: %zu of %zu entries, and no word of it", name,
					doc->entry_n, entries);
			}
		} else {
			ck_assert_msg(rc == FW_ELIMIT, "%s with %zu: %s", name, o.limits.max_memory, err.text);
			ck_assert(fw_snprintf(value, sizeof(value), "max_memory"));
			ck_assert_msg(strstr(err.text, value) != NULL, "%s: %s", name, err.text);
			ck_assert(fw_snprintf(value, sizeof(value), "%zu", o.limits.max_memory));
			ck_assert_msg(strstr(err.text, value) != NULL, "%s: %s", name, err.text);
			failures++;
		}
		fw_document_free(doc);
	}
}

START_TEST(limits)
{
	ck_assert_int_gt(each_of("tests/cases", limited, 6, 20000), 60);
	ck_assert_int_gt(failures, 100);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit parse oom");
	TCase *t = tcase_create("oom");

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_set_timeout(t, 250);
	tcase_add_test(t, parsing);
	tcase_add_test(t, the_rest);
	tcase_add_test(t, hook);
	tcase_add_test(t, limits);
	suite_add_tcase(s, t);
	return run_suite(s);
}
