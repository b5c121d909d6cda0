/* SPDX-License-Identifier: ISC */
/*
 * Forms, and the ids of the Google Reader API in their values: a form's fields lie within its text;
 * what was decoded can be encoded again; an id that was read is read again from its long form.
 */
#include <string.h>

#include "base/str.h"
#include "base/url.h"
#include "base/utf8.h"
#include "http/server/form.h"
#include "http/readers/greader/id.h"
#include "fuzz.h"

static void check_ids(struct fw_str s)
{
	struct greader_stream stream;
	char text[GREADER_ITEM_MAX];
	int64_t id, again;

	if (greader_item_read(s, &id)) {
		greader_item_write(text, id);
		FUZZ_CHECK(greader_item_read(fw_str(text), &again) && id == again);
	}
	if (!greader_stream_read(s, &stream))
		return;
	FUZZ_CHECK((stream.kind == GREADER_NAMED) == (stream.name.len > 0));
	FUZZ_CHECK((stream.kind == GREADER_FEED) == (stream.url.len > 0 || stream.feed_id > 0));
	FUZZ_CHECK(!fw_url_has_control(stream.name) && !fw_url_has_control(stream.url));
	if (stream.name.len)
		FUZZ_CHECK(fw_utf8_valid(stream.name.p, stream.name.len) == stream.name.len);
}

/* Write the form anew, and read the same fields from that. */
static void check_again(struct fw_arena *a, const struct http_form *f)
{
	struct fw_buf text = FW_BUF_INIT(0);
	struct http_form again;

	for (size_t i = 0; i < f->n; i++) {
		if (i)
			fw_buf_addc(&text, '&');
		fw_url_escape(&text, f->field[i].name);
		fw_buf_addc(&text, '=');
		fw_url_escape(&text, f->field[i].value);
	}
	FUZZ_CHECK(http_form_read(a, fw_buf_str(&text), 0, &again) == 0);
	FUZZ_CHECK(again.n == f->n);
	for (size_t i = 0; i < f->n; i++)
		FUZZ_CHECK(fw_str_eq(again.field[i].name, f->field[i].name) &&
			fw_str_eq(again.field[i].value, f->field[i].value));
	fw_buf_finish(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fw_str in = {(const char *)data, size};
	struct http_form f;
	struct fw_arena a;
	size_t bytes = 0;

	fw_arena_init(&a, 0);
	check_ids(in);
	if (http_form_read(&a, in, 0, &f) == 0) {
		for (size_t i = 0; i < f.n; i++) {
			bytes += f.field[i].name.len + f.field[i].value.len;
			check_ids(f.field[i].value);
		}
		FUZZ_CHECK(bytes <= size);
		check_again(&a, &f);
	}
	fw_arena_finish(&a);
	return 0;
}
