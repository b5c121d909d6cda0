/* SPDX-License-Identifier: ISC */
/*
 * Bodies of pushed events, of any bytes. The first byte selects the form: plain, gzip or deflate.
 * Accepted events keep the rules, and written as plain JSON they are read back as the same events;
 * a refusal has a message.
 */
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "feedwheel/ingest.h"
#include "fuzz.h"
#include "http/api/event_rules.h"
#include "http/server/body.h"

#define UNPACKED_MAX ((size_t)1 << 18)
#define RATIO 50

struct taken {
	const struct event_rules *rules;
	struct fw_buf text; /* the events as NDJSON */
	size_t n, begun;
};

static int put(void *ctx, const struct fw_event *e)
{
	struct taken *t = ctx;
	struct fw_json j;

	FUZZ_CHECK(e->property.len && e->property.len <= FW_PROPERTY_MAX && e->section >= t->rules->section_min &&
		e->item >= t->rules->id_min);
	fw_json_init(&j, &t->text, false);
	fw_json_object(&j, NULL);
	fw_json_str(&j, "property", e->property);
	fw_json_int(&j, "section", e->section);
	fw_json_int(&j, "id", e->item);
	fw_json_end(&j);
	fw_buf_addc(&t->text, '\n');
	t->n++;
	return 0;
}

static int again(void *ctx)
{
	struct taken *t = ctx;

	fw_buf_reset(&t->text);
	t->n = 0;
	FUZZ_CHECK(!t->begun++);
	return 0;
}

static int read_body(struct taken *t, struct fw_str body)
{
	struct event_sink to = {put, again, t};
	struct fw_event e = {.stamp_ms = 1};
	struct event_wrong wrong = {0};
	size_t n;
	int rc = events_read(t->rules, body, &e, &to, &n, &wrong);

	FUZZ_CHECK(n == t->n);
	FUZZ_CHECK(rc == 0 || rc == FW_EINVAL || rc == FW_EFORMAT);
	FUZZ_CHECK(rc != FW_EINVAL || (wrong.n == n + 1 && wrong.words[0]));
	FUZZ_CHECK(rc != FW_EFORMAT || (wrong.json.text[0] && wrong.json.line > 0));
	return rc;
}

static void check_events(struct fw_str body, const struct event_rules *rules)
{
	struct taken a = {.rules = rules}, b = {.rules = rules};

	if (read_body(&a, body) == 0) {
		FUZZ_CHECK(!read_body(&b, fw_buf_str(&a.text)));
		FUZZ_CHECK(a.n == b.n && fw_str_eq(fw_buf_str(&a.text), fw_buf_str(&b.text)));
	}
	fw_buf_finish(&a.text);
	fw_buf_finish(&b.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct event_rules USUAL = {FW_STR_NONE, 1, 1}, NARROW = {{"news, a", 7}, -3, 100};
	struct fw_str body = {(const char *)data + 1, size - 1};
	struct fw_buf plain = FW_BUF_INIT(UNPACKED_MAX);
	int rc = 0;

	if (!size)
		return 0;
	if (data[0] & 6) {
		rc = http_inflate(body, data[0] & 2, RATIO, &plain);
		FUZZ_CHECK(rc == 0 || rc == FW_EFORMAT || rc == FW_ELIMIT);
		FUZZ_CHECK(plain.len <= UNPACKED_MAX);
		body = fw_buf_str(&plain);
	}
	if (!rc)
		check_events(body, data[0] & 1 ? &NARROW : &USUAL);
	fw_buf_finish(&plain);
	return 0;
}
