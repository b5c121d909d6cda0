/* SPDX-License-Identifier: ISC */
/*
 * Eight threads parse the same documents at once, each starting with another: the results are those
 * of one thread, and TSan reports no race. The only shared state is jansson's seed, set before, and
 * glibc's iconv tables, which stay loaded: its loader uses locks that TSan does not see.
 */
#include <check.h>
#include <iconv.h>
#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "feedwheel/document.h"
#include "documents.h"
#include "../../suite.h"

#define THREADS 8
#define MAX_DOCUMENTS 4000

static struct {
	char *bytes;
	size_t len;
	uint64_t answer;
} doc[MAX_DOCUMENTS];
static size_t doc_n;

/* A hash of all that the library returns for a document. */
static uint64_t read_one(struct fw_str bytes)
{
	struct fw_parse_options o = {.url = FW_STR("https://example.org/feed"), .now_ms = INT64_C(1795262400000)};
	struct fw_document *d;
	struct fw_link *links;
	struct fw_err err;
	char *json;
	size_t len;
	uint64_t h;

	if (fw_parse(bytes.p, bytes.len, &o, &d, &err)) {
		h = fw_hash64(err.text, strlen(err.text));
	} else {
		if (fw_document_json(d, 0, &json, &len, &err))
			return 0;
		h = fw_hash64(json, len);
		free(json);
		fw_document_free(d);
	}
	if (fw_discover(bytes.p, bytes.len, o.url, FW_STR_NONE, &links, &err))
		return 0;
	for (const struct fw_link *l = links; l; l = l->next)
		h = fw_hash64_seed(l->href.p, l->href.len, h);
	free(links);
	return h;
}

static void collect(const char *name, struct fw_str bytes)
{
	(void)name;
	ck_assert_uint_lt(doc_n, MAX_DOCUMENTS);
	doc[doc_n].bytes = malloc(bytes.len + 1);
	ck_assert_ptr_nonnull(doc[doc_n].bytes);
	memcpy(doc[doc_n].bytes, bytes.p, bytes.len);
	doc[doc_n].len = bytes.len;
	doc[doc_n].answer = read_one(bytes);
	ck_assert_msg(doc[doc_n].answer != 0, "%s", name);
	doc_n++;
}

static void *reader(void *arg)
{
	size_t *wrong = arg, from = *wrong * doc_n / THREADS;

	*wrong = 0;
	for (size_t i = 0; i < doc_n; i++) {
		size_t k = (from + i) % doc_n;

		*wrong += read_one((struct fw_str){doc[k].bytes, doc[k].len}) != doc[k].answer;
	}
	return NULL;
}

START_TEST(eight)
{
	static const char *const TABLE[] = {"CP932", "CP949", "GB18030", "BIG5-HKSCS", "EUC-JP"};
	iconv_t table[FW_N(TABLE)];
	pthread_t thread[THREADS];
	size_t wrong[THREADS];

	json_object_seed(1);
	for (size_t i = 0; i < FW_N(TABLE); i++)
		ck_assert((table[i] = iconv_open("UTF-8", TABLE[i])) != (iconv_t)-1);
	ck_assert_int_gt(each_of("tests/cases", collect, 1, 100000), 60);
	(void)each_of("../shared/corpus/open", collect, 10, 100000);
	for (size_t i = 0; i < THREADS; i++) {
		wrong[i] = i;
		ck_assert_int_eq(pthread_create(&thread[i], NULL, reader, &wrong[i]), 0);
	}
	for (size_t i = 0; i < THREADS; i++) {
		ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
		ck_assert_uint_eq(wrong[i], 0);
	}
	for (size_t i = 0; i < FW_N(TABLE); i++)
		iconv_close(table[i]);
	for (size_t i = 0; i < doc_n; i++)
		free(doc[i].bytes);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit parse threads");
	TCase *t = tcase_create("threads");

	tcase_set_timeout(t, 280);
	tcase_add_test(t, eight);
	suite_add_tcase(s, t);
	return run_suite(s);
}
