/* SPDX-License-Identifier: ISC */
/* The tokenizer and its namespace table. */
#include <check.h>
#include <stdlib.h>

#include "base/str.h"
#include "parse/xml.h"

START_TEST(ns_near_misses)
{
	static const struct { const char *uri; enum fw_ns ns; } T[] = {
		{"http://www.w3.org/2005/Atom", FW_NS_ATOM10}, {"https://www.w3.org/2005/atom/", FW_NS_ATOM10},
		{"http://purl.org/dc/elements/1.1", FW_NS_DC}, {" http://purl.org/dc/elements/1.1/ ", FW_NS_DC},
		{"http://purl.org/rss/1.0/", FW_NS_RSS10}, {"http://purl.org/rss/1.0/modules/content/", FW_NS_CONTENT},
		{"http://www.itunes.com/dtds/podcast-1.0.dtd", FW_NS_ITUNES}, {"http://itunes.com/DTDs/PodCast-1.0.dtd", FW_NS_ITUNES},
		{"http://search.yahoo.com/mrss/", FW_NS_MEDIA}, {"http://nowhere.example/", FW_NS_UNKNOWN}, {"", FW_NS_NONE},
		{"https://github.com/Podcastindex-org/podcast-namespace/blob/main/docs/1.0.md", FW_NS_PODCAST},
	};

	for (size_t i = 0; i < FW_N(T); i++)
		ck_assert_msg(fw_ns_find(fw_str(T[i].uri)) == T[i].ns, "%s", T[i].uri);
	ck_assert_int_eq(fw_ns_guess(FW_STR("creativeCommons")), FW_NS_CREATIVECOMMONS);
	ck_assert_int_eq(fw_ns_guess(FW_STR("dc")), FW_NS_DC);
	ck_assert_int_eq(fw_ns_guess(FW_STR("zz")), FW_NS_UNKNOWN);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("parse xml");
	TCase *t = tcase_create("ns");
	SRunner *r;
	int failed;

	tcase_add_test(t, ns_near_misses);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
