/* SPDX-License-Identifier: ISC */
/*
 * Entries of any document go out as feeds: expat accepts the XML, jansson the JSON. Ids occur once,
 * and all entries are there.
 */
#include <expat.h>
#include <jansson.h>
#include <string.h>

#include "api/feed_out.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"
#include "base/utf8.h"
#include "engine/rows.h"
#include "fuzz.h"

#define FEED_URL FW_STR("https://example.org/a/feed")
#define ENTRIES_MAX 100

struct seen {
	size_t entry_n;
};

static void XMLCALL their_start(void *ctx, const XML_Char *name, const XML_Char **atts)
{
	struct seen *s = ctx;

	(void)atts;
	s->entry_n += !strcmp(name, "http://www.w3.org/2005/Atom entry") || !strcmp(name, "item");
}

static size_t xml_entries(struct fw_str text)
{
	XML_Parser x = XML_ParserCreateNS("UTF-8", ' ');
	struct seen seen = {.entry_n = 0};

	FUZZ_CHECK(x);
	XML_SetUserData(x, &seen);
	XML_SetStartElementHandler(x, their_start);
	FUZZ_CHECK(XML_Parse(x, text.p, (int)text.len, 1) == XML_STATUS_OK);
	XML_ParserFree(x);
	return seen.entry_n;
}

static size_t json_entries(struct fw_str text)
{
	json_t *o = json_loadb(text.p, text.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	const json_t *items = json_object_get(o, "items");
	size_t n = json_array_size(items);

	FUZZ_CHECK(o);
	for (size_t i = 0; i < n; i++) {
		const char *id = json_string_value(json_object_get(json_array_get(items, i), "id"));

		FUZZ_CHECK(id && strchr(id, ':'));
		for (size_t k = 0; k < i; k++)
			FUZZ_CHECK(strcmp(id, json_string_value(json_object_get(json_array_get(items, k), "id"))));
	}
	json_decref(o);
	return n;
}

static void write_as(
	enum fw_feed_out_format format, const struct fw_feed_out_head *head, const struct fw_entry_row *row, size_t n)
{
	struct fw_view_work work = {.cache = NULL};
	struct fw_feed_out *f = fw_feed_out_create(format, &work);
	struct fw_buf out = FW_BUF_INIT(0);
	struct fw_str text;

	FUZZ_CHECK(f);
	for (size_t i = 0; i < n; i++)
		FUZZ_CHECK(!fw_feed_out_add(f, &row[i], NULL));
	FUZZ_CHECK(!fw_feed_out_end(f, head, &out, NULL));
	text = fw_buf_str(&out);
	FUZZ_CHECK(fw_utf8_valid(text.p, text.len) == text.len);
	FUZZ_CHECK((format == FW_FEED_OUT_JSON ? json_entries(text) : xml_entries(text)) == n);
	fw_buf_finish(&out);
	fw_feed_out_destroy(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fw_parse_options o = {.url = FEED_URL, .limits = {.max_entries = ENTRIES_MAX}};
	struct fw_feed_out_head head = {.id = FW_STR("https://out.example/feeds/all.atom")};
	struct fw_entry_row *row;
	struct fw_document *d;
	struct fw_arena a;
	size_t n;

	if (fw_parse(data, size, &o, &d, NULL))
		return 0;
	fw_arena_init(&a, 0);
	row = rows_from_document(&a, 1, d, false, &n);
	for (size_t i = 0; i < n; i++) {
		row[i].id = (int64_t)i + 1;
		row[i].seen_ms = row[i].changed_ms = INT64_C(1790000000000);
		row[i].feed_title = d->title;
		row[i].feed_url = FEED_URL;
	}
	head.title = d->title.len ? d->title : FW_STR("x");
	head.description = d->description;
	head.language = d->language;
	for (int format = 0; format < FW_FEED_OUT_N; format++)
		write_as((enum fw_feed_out_format)format, &head, row, n);
	fw_arena_finish(&a);
	fw_document_free(d);
	return 0;
}
