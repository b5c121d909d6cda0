/* SPDX-License-Identifier: ISC */
/*
 * JSON Feed of any bytes. The repair does not change what jansson accepts, and a feed has an entry
 * with the same id for each item of its tree. A feed that is cut off anywhere gives the first of
 * its entries as the whole feed does, except for cut parts of the last. The input's size selects
 * the cut.
 */
#include <jansson.h>

#include "base/str.h"
#include "fuzz.h"
#include "parse/feed/json_repair.h"
#include "parse/parse.h"

/* Valid JSON is not changed, whatever it contains. */
static void check_repair(struct fw_str s)
{
	json_t *before = json_loadb(s.p, s.len, JSON_DECODE_ANY, NULL), *after;
	struct fw_arena a;
	struct fw_str text;

	fw_arena_init(&a, 0);
	text = fw_json_repair(&a, s);
	FUZZ_CHECK(text.p && text.len <= 2 * s.len);
	if (before) {
		after = json_loadb(text.p, text.len, JSON_DECODE_ANY, NULL);
		FUZZ_CHECK(after && json_equal(before, after));
		json_decref(after);
		json_decref(before);
	}
	fw_arena_finish(&a);
}

/* Parsed item by item as by jansson's tree. If items is not a list, one or all members are read. */
static void check_items(const struct fw_document *doc, const json_t *root)
{
	const json_t *items = json_object_get(root, "items");
	const struct fw_entry *e = doc->entries;

	if (!json_is_array(items)) {
		FUZZ_CHECK(doc->entry_n <= FW_MAX(json_object_size(items), 1));
		return;
	}
	for (size_t i = 0; i < json_array_size(items); i++) {
		const json_t *item = json_array_get(items, i), *id = json_object_get(item, "id");
		struct fw_str want;

		if (!json_object_size(item)) /* it has nothing */
			continue;
		FUZZ_CHECK(e);
		want = fw_str_trim((struct fw_str){json_string_value(id), json_string_length(id)});
		if (want.len && want.len <= 4096)
			FUZZ_CHECK(fw_str_eq(e->id, want) && !e->id_made && !e->id_from_url);
		e = e->next;
	}
	FUZZ_CHECK(!e);
}

static void check_cut(const struct fw_document *whole, struct fw_str s, const struct fw_parse_options *o)
{
	struct fw_str part = fw_str_sub(s, 0, s.len - s.len % 997 % (s.len / 2 + 1));
	const struct fw_entry *a, *b;
	struct fw_document *cut;
	struct fw_err err;

	if (fw_parse(part.p, part.len, o, &cut, &err))
		return; /* no member that makes it a feed is left */
	FUZZ_CHECK(cut->entry_n <= whole->entry_n);
	for (a = whole->entries, b = cut->entries; a && b && b->next; a = a->next, b = b->next) {
		FUZZ_CHECK(fw_str_eq(a->title, b->title));
		FUZZ_CHECK(a->published_ms == b->published_ms);
	}
	fw_document_free(cut);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fw_str s = {(const char *)data, size};
	struct fw_parse_options o = {
		.url = FW_STR("https://example.org/a/feed"), .content_type = FW_STR("application/feed+json")};
	struct fw_document *doc;
	struct fw_err err;
	json_t *strict;

	check_repair(s);
	strict = json_loadb(s.p, size, JSON_REJECT_DUPLICATES, NULL);
	if (strict && fw_parse(s.p, size, &o, &doc, &err) == 0) {
		if (doc->entry_n < 500) /* otherwise its memory may have run out */
			check_items(doc, strict);
		/* the last member of an object can make it a single item */
		if (json_is_array(json_object_get(strict, "items")))
			check_cut(doc, s, &o);
		fw_document_free(doc);
	}
	json_decref(strict);
	return 0;
}
