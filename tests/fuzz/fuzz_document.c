/* SPDX-License-Identifier: ISC */
/*
 * Any bytes: no crash, bounded memory, an error with words or a document; the document as JSON is JSON in UTF-8 without
 * a member twice, and read again it holds the same entries. The input's size chooses the options, so that seeds stay feeds.
 */
#include <jansson.h>
#include <string.h>

#include "base/str.h"
#include "base/utf8.h"
#include "fuzz.h"
#include "parse/parse.h"

static void check_entries(const struct fw_document *doc)
{
	const struct fw_entry *e;
	size_t n = 0;

	for (e = doc->entries; e; e = e->next, n++) {
		FUZZ_CHECK(e->id.len > 0 && e->id.len <= 4096);
		FUZZ_CHECK(e->title.len <= 4096);
		FUZZ_CHECK(!e->repeat || e != doc->entries);
	}
	FUZZ_CHECK(n == doc->entry_n);
}

/* What we wrote we read: the same entries with the same ids. */
static void check_again(const struct fw_document *doc, const char *json, size_t len)
{
	const struct fw_entry *a, *b;
	struct fw_document *again;
	struct fw_err err;

	FUZZ_CHECK(fw_parse(json, len, NULL, &again, &err) == 0);
	FUZZ_CHECK(again->entry_n == doc->entry_n);
	for (a = doc->entries, b = again->entries; a && b; a = a->next, b = b->next) {
		FUZZ_CHECK(fw_str_eq(a->id, b->id));
		FUZZ_CHECK(a->published_ms == b->published_ms);
		FUZZ_CHECK(fw_str_eq(a->content, b->content) || !a->content.len);
	}
	fw_document_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fw_parse_options o = {.limits.max_entries = 1000};
	struct fw_document *doc;
	struct fw_arena a;
	struct fw_err err = {.rc = 0};
	char *json;
	json_t *v;
	size_t len;
	int rc;

	if (size % 2)
		o.url = FW_STR("https://example.org/a/feed");
	if (size % 5 == 0)
		o.content_type = FW_STR("application/xml; charset=utf-8");
	fw_arena_init(&a, 64 * size + (1 << 20));
	rc = fw_parse_into(&a, (struct fw_str){(const char *)data, size}, &o, &doc, &err);
	if (rc) {
		FUZZ_CHECK(!doc && err.text[0]);
	} else {
		check_entries(doc);
		FUZZ_CHECK(!fw_document_json(doc, size % 3 ? FW_PRINT_RAW : 0, &json, &len, &err));
		FUZZ_CHECK(fw_utf8_valid(json, len) == len);
		v = json_loadb(json, len, JSON_REJECT_DUPLICATES, NULL);
		FUZZ_CHECK(v);
		json_decref(v);
		if (size % 3)
			check_again(doc, json, len);
		free(json);
	}
	fw_arena_finish(&a);
	return 0;
}
