/* SPDX-License-Identifier: ISC */
/*
 * The fast reader, compared with jansson: whatever it accepts, jansson accepts with the same
 * events; and it accepts the usual forms.
 */
#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "http/api/event_read.h"
#include "../../suite.h"

#define EVENTS_MAX 64

/* The events of a body by the fast reader; -1: it leaves the body to jansson. */
static int by_us(const char *p, size_t len, struct fw_event *e)
{
	struct event_reader r = {.p = p, .end = p + len};
	int n = 0, what;

	while (n < EVENTS_MAX && (what = event_next(&r, &e[n])) == EVENT_ONE)
		n++;
	ck_assert_int_lt(n, EVENTS_MAX);
	return what == EVENT_NONE ? n : -1;
}

static void same(const json_t *o, const struct fw_event *e, const char *body)
{
	const json_t *property = json_object_get(o, "property"), *section = json_object_get(o, "section"),
		     *id = json_object_get(o, "id");

	ck_assert_msg(json_is_object(o) && json_is_string(property) && json_is_integer(section) && json_is_integer(id),
		"%s", body);
	ck_assert_msg(
		fw_str_eq((struct fw_str){json_string_value(property), json_string_length(property)}, e->property),
		"%s", body);
	ck_assert_msg(json_integer_value(section) == e->section && json_integer_value(id) == e->item, "%s", body);
}

/* The same events, one document after another, as jansson reads them. */
static void by_jansson(const char *body, size_t len, const struct fw_event *e, int n)
{
	const char *p = body, *end = body + len;
	int seen = 0;

	for (;;) {
		json_error_t je;
		json_t *doc;
		size_t count;

		while (p < end && strchr(" \t\r\n", *p) && *p)
			p++;
		if (p == end)
			break;
		doc = json_loadb(
			p, (size_t)(end - p), JSON_REJECT_DUPLICATES | JSON_DISABLE_EOF_CHECK | JSON_ALLOW_NUL, &je);
		ck_assert_msg(doc != NULL, "%s: %s", body, je.text);
		count = json_is_array(doc) ? json_array_size(doc) : 1;
		for (size_t i = 0; i < count; i++, seen++) {
			ck_assert_msg(seen < n, "%s", body);
			same(json_is_array(doc) ? json_array_get(doc, i) : doc, &e[seen], body);
		}
		json_decref(doc);
		p += je.position;
	}
	ck_assert_msg(seen == n, "%s: %d events, jansson %d", body, n, seen);
}

static int both(const char *body, size_t len)
{
	struct fw_event e[EVENTS_MAX] = {0};
	int n = by_us(body, len, e);

	if (n >= 0)
		by_jansson(body, len, e, n);
	return n;
}

#define GOOD "{\"property\":\"news\",\"section\":1,\"id\":1}"

START_TEST(usual)
{
	static const struct {
		const char *body;
		int n;
	} CASE[] = {
		{"", 0},
		{" \r\n\t", 0},
		{GOOD, 1},
		{" " GOOD "\n", 1},
		{GOOD "\n" GOOD "\n", 2},
		{GOOD GOOD, 2},
		{"[" GOOD "]", 1},
		{"[" GOOD "," GOOD " , " GOOD " ] ", 3},
		{"[" GOOD "]\n[" GOOD "]" GOOD, 3},
		{"{ \"id\" : 999999999999999999 , \"section\" : 0 ,\n\"property\" : \"\" }", 1},
		{"{\"id\":7,\"property\":\"a b~!/:{}[],\",\"section\":10}", 1},
	};

	for (size_t i = 0; i < FW_N(CASE); i++)
		ck_assert_msg(both(CASE[i].body, strlen(CASE[i].body)) == CASE[i].n, "%s", CASE[i].body);
}
END_TEST

START_TEST(unusual)
{
	static const char *const CASE[] = {
		"[]",
		"{}",
		"[[" GOOD "]]",
		"[" GOOD,
		"[" GOOD ",]",
		"[" GOOD GOOD "]",
		GOOD "]",
		GOOD "," GOOD,
		"[," GOOD "]",
		"null",
		"[",
		"{",
		"{\"property\":\"news\",\"section\":1,\"id\":1,}",
		"{\"property\":\"news\",\"section\":1,\"id\":1,\"id\":1}",
		"{\"property\":\"news\",\"section\":1,\"id\":1,\"x\":1}",
		"{\"property\":\"news\",\"section\":1}",
		"{\"property\":\"n\\u0065ws\",\"section\":1,\"id\":1}",
		"{\"property\":\"n\303\251\",\"section\":1,\"id\":1}",
		"{\"property\":\"a\tb\",\"section\":1,\"id\":1}",
		"{\"property\":\"a\177\",\"section\":1,\"id\":1}",
		"{\"property\":\"news\",\"section\":01,\"id\":1}",
		"{\"property\":\"news\",\"section\":1.0,\"id\":1}",
		"{\"property\":\"news\",\"section\":1e0,\"id\":1}",
		"{\"property\":\"news\",\"section\":-1,\"id\":1}",
		"{\"property\":\"news\",\"section\":1,\"id\":1000000000000000000}",
		"{\"property\":\"news\",\"section\":\"1\",\"id\":1}",
		"{\"property\":1,\"section\":1,\"id\":1}",
		"{\"property\":\"news\",\"section\":,\"id\":1}",
		"{\"property\":\"news\" \"section\":1,\"id\":1}",
		"{\"property\":\"news\",\"section\":1,\"id\":1",
		"{\"property\":\"news",
		"{\"property\"",
		"{\"prop\\u0065rty\":\"news\",\"section\":1,\"id\":1}",
	};

	for (size_t i = 0; i < FW_N(CASE); i++)
		ck_assert_msg(both(CASE[i], strlen(CASE[i])) == -1, "%s", CASE[i]);
}
END_TEST

static uint32_t chance(uint32_t *seed, uint32_t n)
{
	*seed = *seed * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)(*seed >> 8) * n >> 24);
}

/*
 * Bodies with a few bytes changed, removed or added. Each is in memory of exactly its length, so
 * that a sanitizer detects a read beyond it.
 */
START_TEST(changed)
{
	static const char FROM[] = "[" GOOD ", " GOOD "]\n{\"id\":12,\"section\":345,\"property\":\"a\"}",
			  BYTES[] = "{}[]\",: \n\\0129-e.\0\200ipn";
	uint32_t seed = 5;
	int taken = 0;

	for (int i = 0; i < 200000; i++) {
		size_t len = sizeof(FROM) - 1;
		char body[sizeof(FROM) + 8], *exact;

		memcpy(body, FROM, sizeof(FROM));
		for (uint32_t k = 1 + chance(&seed, 3); k && len > 1; k--) {
			size_t at = chance(&seed, (uint32_t)len);
			uint32_t how = chance(&seed, 4);

			if (how == 0) {
				memmove(body + at, body + at + 1, len-- - at);
			} else if (how == 1) {
				memmove(body + at + 1, body + at, ++len - at);
				body[at] = BYTES[chance(&seed, sizeof(BYTES) - 1)];
			} else if (how == 2) {
				body[at] = BYTES[chance(&seed, sizeof(BYTES) - 1)];
			} else {
				len = at + 1; /* cut off */
			}
		}
		exact = malloc(len);
		ck_assert_ptr_nonnull(exact);
		memcpy(exact, body, len);
		taken += both(exact, len) > 0;
		free(exact);
	}
	ck_assert_msg(taken > 2000, "only %d were taken", taken); /* otherwise the test would prove nothing */
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit http event_read");
	TCase *t = tcase_create("event_read");

	tcase_add_test(t, usual);
	tcase_add_test(t, unusual);
	tcase_add_test(t, changed);
	suite_add_tcase(s, t);
	return run_suite(s);
}
