/* SPDX-License-Identifier: ISC */
/* Which host's limits apply to a feed (LIM-06), and how a host's delay is learned. */
#include <check.h>
#include <stdlib.h>

#include "base/str.h"
#include "feedwheel/store.h"
#include "../../suite.h"

static const struct {
	const char *url, *host;
} HOSTS[] = {
	{"https://example.org/feed", "example.org"},
	{"https://www.Example.org:8443/feed", "www.example.org"},
	{"http://someone.blogspot.com/feeds/posts/default", "blogspot.com"},
	{"http://someone.blogspot.co.uk/", "blogspot.com"},
	{"http://someone.blogspot.de./", "blogspot.com"},
	{"https://blogspot.com/", "blogspot.com"},
	{"https://a.b.substack.com/feed", "substack.com"},
	{"https://notsubstack.com/feed", "notsubstack.com"},
	{"https://substack.com.example.org/feed", "substack.com.example.org"},
	{"https://feeds.feedburner.com/x", "feedburner.com"},
	{"http://127.0.0.1:8080/feed", "127.0.0.1"},
	{"http://[::1]/feed", "::1"},
	{"http://localhost/feed", "localhost"},
	{"http://example.blogspot/", "example.blogspot"},
	{"https://a.github.io/atom.xml", "github.io"},
	{"/feed", NULL},
	{"", NULL},
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

START_TEST(the_delay_falls_by_halves_and_rises_in_steps)
{
	int64_t learned_delay = 0, was;
	int n = 0;

	ck_assert_int_eq(fw_store_learned_delay(0, FW_HOST_HEALTHY), 0);
	learned_delay = fw_store_learned_delay(learned_delay, FW_HOST_THROTTLED);
	ck_assert_int_eq(learned_delay, FW_LEARNED_DELAY_MIN_MS);
	learned_delay = fw_store_learned_delay(learned_delay, FW_HOST_THROTTLED);
	ck_assert_int_eq(learned_delay, 2 * FW_LEARNED_DELAY_MIN_MS);
	ck_assert_int_eq(fw_store_learned_delay(learned_delay, FW_HOST_UNKNOWN), learned_delay);
	for (int i = 0; i < 100; i++)
		learned_delay = fw_store_learned_delay(learned_delay, FW_HOST_THROTTLED);
	ck_assert_int_eq(learned_delay, FW_LEARNED_DELAY_MAX_MS);
	/* each step adds a tenth of a visit a second: n of them make n / 10, whatever the start */
	for (; learned_delay > 0; n++) {
		was = learned_delay;
		learned_delay = fw_store_learned_delay(learned_delay, FW_HOST_HEALTHY);
		ck_assert_int_lt(learned_delay, was);
		if (learned_delay)
			ck_assert_int_le(learned_delay, FW_LEARNED_DELAY_STEP_MS / (n + 1));
	}
	ck_assert_int_le(n, FW_LEARNED_DELAY_STEP_MS / FW_LEARNED_DELAY_NONE_MS);
	ck_assert_int_ge(n, 100);
}
END_TEST

START_TEST(absurd_paces)
{
	ck_assert_int_eq(fw_store_learned_delay(-5, FW_HOST_THROTTLED), FW_LEARNED_DELAY_MIN_MS);
	ck_assert_int_eq(fw_store_learned_delay(INT64_MAX, FW_HOST_THROTTLED), FW_LEARNED_DELAY_MAX_MS);
	ck_assert_int_le(fw_store_learned_delay(INT64_MAX, FW_HOST_HEALTHY), FW_LEARNED_DELAY_STEP_MS);
	ck_assert_int_eq(fw_store_learned_delay(INT64_MIN, FW_HOST_HEALTHY), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit store host");
	TCase *tc = tcase_create("hosts");

	tcase_add_loop_test(tc, a_service_is_one_host, 0, (int)FW_N(HOSTS));
	tcase_add_test(tc, no_room);
	tcase_add_test(tc, the_delay_falls_by_halves_and_rises_in_steps);
	tcase_add_test(tc, absurd_paces);
	suite_add_tcase(s, tc);
	return run_suite(s);
}
