/* SPDX-License-Identifier: ISC */
/* Which host's limits apply to a feed (LIM-06), and how a host's delay is learned. */
#include <check.h>
#include <stdlib.h>

#include "base/str.h"
#include "feedwheel/store.h"
#include "../../suite.h"

static const struct { const char *url, *host; } HOSTS[] = {
	{"https://example.org/feed", "example.org"}, {"https://www.Example.org:8443/feed", "www.example.org"},
	{"http://someone.blogspot.com/feeds/posts/default", "blogspot.com"}, {"http://someone.blogspot.co.uk/", "blogspot.com"},
	{"http://someone.blogspot.de./", "blogspot.com"}, {"https://blogspot.com/", "blogspot.com"},
	{"https://a.b.substack.com/feed", "substack.com"}, {"https://notsubstack.com/feed", "notsubstack.com"},
	{"https://substack.com.example.org/feed", "substack.com.example.org"}, {"https://feeds.feedburner.com/x", "feedburner.com"},
	{"http://127.0.0.1:8080/feed", "127.0.0.1"}, {"http://[::1]/feed", "::1"}, {"http://localhost/feed", "localhost"},
	{"http://example.blogspot/", "example.blogspot"}, {"https://a.github.io/atom.xml", "github.io"}, {"/feed", NULL}, {"", NULL},
};

START_TEST(a_service_is_one_host)
{
	char host[256];
	bool there = fw_store_host(fw_str(HOSTS[_i].url), host, sizeof(host));

	ck_assert_msg(there == (HOSTS[_i].host != NULL), "%s", HOSTS[_i].url);
	if (there)
		ck_assert_str_eq(host, HOSTS[_i].host);
}
END_TEST

START_TEST(no_room)
{
	char host[8];

	ck_assert(!fw_store_host(FW_STR("https://example.org/feed"), host, sizeof(host)));
	ck_assert(!fw_store_host(FW_STR("https://a.tumblr.com/feed"), host, sizeof(host)));
}
END_TEST

START_TEST(the_pace_falls_by_halves_and_rises_in_steps)
{
	int64_t pace = 0, was;
	int n = 0;

	ck_assert_int_eq(fw_store_pace(0, FW_HOST_FINE), 0);
	pace = fw_store_pace(pace, FW_HOST_STRAINED);
	ck_assert_int_eq(pace, FW_PACE_MIN_MS);
	pace = fw_store_pace(pace, FW_HOST_STRAINED);
	ck_assert_int_eq(pace, 2 * FW_PACE_MIN_MS);
	ck_assert_int_eq(fw_store_pace(pace, FW_HOST_UNKNOWN), pace);
	for (int i = 0; i < 100; i++)
		pace = fw_store_pace(pace, FW_HOST_STRAINED);
	ck_assert_int_eq(pace, FW_PACE_MAX_MS);
	/* each step adds a tenth of a visit a second: n of them make n / 10, whatever the start */
	for (; pace > 0; n++) {
		was = pace;
		pace = fw_store_pace(pace, FW_HOST_FINE);
		ck_assert_int_lt(pace, was);
		if (pace)
			ck_assert_int_le(pace, FW_PACE_STEP_MS / (n + 1));
	}
	ck_assert_int_le(n, FW_PACE_STEP_MS / FW_PACE_NONE_MS);
	ck_assert_int_ge(n, 100);
}
END_TEST

START_TEST(absurd_paces)
{
	ck_assert_int_eq(fw_store_pace(-5, FW_HOST_STRAINED), FW_PACE_MIN_MS);
	ck_assert_int_eq(fw_store_pace(INT64_MAX, FW_HOST_STRAINED), FW_PACE_MAX_MS);
	ck_assert_int_le(fw_store_pace(INT64_MAX, FW_HOST_FINE), FW_PACE_STEP_MS);
	ck_assert_int_eq(fw_store_pace(INT64_MIN, FW_HOST_FINE), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit/store/host");
	TCase *tc = tcase_create("hosts");

	tcase_add_loop_test(tc, a_service_is_one_host, 0, (int)FW_N(HOSTS));
	tcase_add_test(tc, no_room);
	tcase_add_test(tc, the_pace_falls_by_halves_and_rises_in_steps);
	tcase_add_test(tc, absurd_paces);
	suite_add_tcase(s, tc);
	return run_suite(s);
}
