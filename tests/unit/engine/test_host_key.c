/* SPDX-License-Identifier: ISC */
/* Which host's limits apply to a feed, by the settings: names, hosting_domains, addresses. */
#include <arpa/inet.h>
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "engine/run/host_key.h"
#include "../../suite.h"

#define MINE "blogs.example.org, Example.net"

static const struct {
	enum host_policy policy;
	const char *hosting_domains, *url, *address, *key; /* NULL: unspecified */
} CASES[] = {
	{HOST_DOMAIN, NULL, "https://a.example.org/", "203.0.113.7", ""},
	{HOST_DOMAIN, NULL, "https://a.blogspot.com/", NULL, ""},
	{HOST_DOMAIN, MINE, "https://a.blogs.example.org/feed", NULL, "blogs.example.org"},
	{HOST_DOMAIN, MINE, "https://blogs.example.org/feed", NULL, ""},
	{HOST_DOMAIN, MINE, "https://notblogs.example.org/feed", NULL, ""},
	{HOST_DOMAIN, MINE, "https://a.b.EXAMPLE.NET:8443/feed", NULL, "example.net"},
	{HOST_DOMAIN, MINE, "https://net/", NULL, ""},
	{HOST_DOMAIN, MINE, "https://a.blogspot.com/", NULL, ""},
	{HOST_DOMAIN, " , ,", "https://a.example.org/", NULL, ""},
	{HOST_DOMAIN, "org example.org b.example.org", "https://a.b.example.org/", NULL, "b.example.org"},
	{HOST_DOMAIN, "a.blogspot.com", "https://x.a.blogspot.com/", NULL, "a.blogspot.com"},
	{HOST_NAME, MINE, "https://a.example.net/", NULL, ""},
	{HOST_NAME, NULL, "https://a.blogspot.com/", "203.0.113.7", "a.blogspot.com"},
	{HOST_ADDRESS, MINE, "https://a.example.net/", "203.0.113.7", "[203.0.113.7]"},
	{HOST_ADDRESS, NULL, "https://a.example.net/", NULL, NULL},
	{HOST_ADDRESS, NULL, "https://a.example.net/", "2001:db8:1::", "[2001:db8:1::]"},
	{HOST_ADDRESS, NULL, "http://203.0.113.7/feed", "203.0.113.7", "[203.0.113.7]"},
	{HOST_DOMAIN, NULL, "/feed", NULL, NULL},
};

START_TEST(keys)
{
	struct host_rules r = {CASES[_i].policy, CASES[_i].hosting_domains};
	unsigned char address[16] = {[10] = 0xff, [11] = 0xff};
	char key[HOST_KEY_MAX];
	bool said;

	if (CASES[_i].address && inet_pton(AF_INET, CASES[_i].address, address + 12) != 1)
		ck_assert_int_eq(inet_pton(AF_INET6, CASES[_i].address, address), 1);
	said = host_key(&r, fw_str(CASES[_i].url), CASES[_i].address ? address : NULL, key);
	ck_assert_msg(said == (CASES[_i].key != NULL), "%s", CASES[_i].url);
	if (said)
		ck_assert_str_eq(key, CASES[_i].key);
}
END_TEST

static const struct {
	enum host_policy policy;
	const char *hosting_domains, *a, *b;
	bool same;
} PAIRS[] = {
	{HOST_DOMAIN, NULL, "http://example.org/feed", "https://EXAMPLE.org:8443/", true},
	{HOST_DOMAIN, NULL, "http://example.org/feed", "http://www.example.org/feed", false},
	{HOST_DOMAIN, "example.org", "http://example.org/feed", "http://www.example.org/feed", true},
	{HOST_DOMAIN, NULL, "http://a.blogspot.com/", "http://b.blogspot.com/", true},
	{HOST_NAME, NULL, "http://a.blogspot.com/", "http://b.blogspot.com/", false},
	{HOST_ADDRESS, "example.org", "http://a.example.org/", "http://b.example.org/", false},
	{HOST_ADDRESS, NULL, "http://a.example.org/", "https://a.example.org/feed", true},
	{HOST_DOMAIN, NULL, "/feed", "/feed", false},
};

START_TEST(same_host)
{
	struct host_rules r = {PAIRS[_i].policy, PAIRS[_i].hosting_domains};

	ck_assert(host_is_same(&r, fw_str(PAIRS[_i].a), fw_str(PAIRS[_i].b)) == PAIRS[_i].same);
	ck_assert(host_is_same(&r, fw_str(PAIRS[_i].b), fw_str(PAIRS[_i].a)) == PAIRS[_i].same);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit engine host key");
	TCase *t = tcase_create("host_key");

	tcase_add_loop_test(t, keys, 0, (int)FW_N(CASES));
	tcase_add_loop_test(t, same_host, 0, (int)FW_N(PAIRS));
	suite_add_tcase(s, t);
	return run_suite(s);
}
