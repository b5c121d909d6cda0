/* SPDX-License-Identifier: ISC */
/* An entry as JSON: its content by its type, its snippet as HTML. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "api/view.h"
#include "base/json.h"
#include "base/str.h"
#include "../../suite.h"

/* The entry's JSON has this text. */
static void has(const struct fw_entry_row *e, unsigned flags, const char *text, bool is)
{
	struct fw_buf b = FW_BUF_INIT(0);
	struct fw_err err = {0};
	struct fw_json j;

	fw_json_init(&j, &b, false);
	ck_assert_int_eq(fw_entry_json(&j, e, flags, &err), 0);
	ck_assert_int_eq(b.rc, 0);
	ck_assert_msg((strstr(b.p, text) != NULL) == is, "%s: %s", text, b.p);
	fw_buf_finish(&b);
}

/* Text without a type is HTML, here and in searches: so nothing of it is shown unsanitised. */
START_TEST(content_by_type)
{
	struct fw_entry_row e = {.id = 1, .content = FW_STR("<b onclick=\"x()\">a</b>")};

	e.content_type = FW_TEXT_HTML;
	has(&e, FW_VIEW_CONTENT, "\"content_html\":\"<b>a</b>\"", true);
	e.content_type = FW_TEXT_NONE;
	has(&e, FW_VIEW_CONTENT, "\"content_html\":\"<b>a</b>\"", true);
	e.content_type = FW_TEXT_PLAIN;
	has(&e, FW_VIEW_CONTENT, "\"content_text\":\"<b onclick", true);
	has(&e, 0, "content_", false);
	e.content = FW_STR_NONE;
	has(&e, FW_VIEW_CONTENT, "content_", false);
}
END_TEST

START_TEST(snippet_is_html)
{
	struct fw_entry_row e = {.id = 1};

	has(&e, 0, "snippet", false);
	e.snippet = FW_STR("a<b> & \x02rain\x03 \"now\"");
	has(&e, 0, "\"snippet\":\"a&lt;b&gt; &amp; <mark>rain</mark> \\\"now\\\"\"", true);
	e.snippet = FW_STR("");
	has(&e, 0, "\"snippet\":\"\"", true);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit engine view");
	TCase *t = tcase_create("view");

	tcase_add_test(t, content_by_type);
	tcase_add_test(t, snippet_is_html);
	suite_add_tcase(s, t);
	return run_suite(s);
}
