/* SPDX-License-Identifier: ISC */
/* How many slots of a host that several names share one of them may hold. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "engine/run/host_share.h"
#include "../../suite.h"

static uint32_t of(const char *url, const char *host_key, uint64_t seed)
{
	struct fw_feed f = {.url = fw_str(url), .host_key = fw_str(host_key)};

	return host_share_of(&f, seed);
}

START_TEST(numbers)
{
	ck_assert_uint_eq(of("http://a.example/feed", NULL, 1), 0);   /* the only name of its host */
	ck_assert_uint_eq(of("http://netlify.app/feed", NULL, 1), 0); /* the host itself */
	ck_assert_uint_eq(of("nonsense", NULL, 1), 0);
	ck_assert_uint_gt(of("http://a.netlify.app/feed", NULL, 1), 0);
	ck_assert_uint_gt(of("http://a.example/feed", "[192.0.2.1]", 1), 0);
	ck_assert_uint_eq(of("http://a.netlify.app/feed", NULL, 1), of("https://A.netlify.app:8443/other", NULL, 1));
	ck_assert_uint_ne(of("http://a.netlify.app/feed", NULL, 1), of("http://b.netlify.app/feed", NULL, 1));
	/* a name cannot aim at another's share */
	ck_assert_uint_ne(of("http://a.netlify.app/feed", NULL, 1), of("http://a.netlify.app/feed", NULL, 2));
	for (int i = 0; i < 100000; i++) {
		char url[60];

		(void)fw_snprintf(url, sizeof(url), "http://n%d.netlify.app/", i);
		ck_assert_uint_lt(of(url, NULL, 1) - 1, HOST_SHARE_N - 1);
	}
}
END_TEST

START_TEST(places)
{
	static struct host_share share;

	ck_assert(host_share_take(&share, 7, 2));
	ck_assert(host_share_take(&share, 7, 2));
	ck_assert(!host_share_take(&share, 7, 2));
	ck_assert(!host_share_take(&share, 7, 2)); /* a refused request is not counted */
	ck_assert(host_share_take(&share, 8, 2));  /* another name */
	ck_assert(host_share_take(&share, HOST_SHARE_N - 1, 1));
	host_share_release(&share, 7);
	ck_assert(host_share_take(&share, 7, 2));
	ck_assert(!host_share_take(&share, 7, 2));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit engine host share");
	TCase *t = tcase_create("host_share");

	tcase_add_test(t, numbers);
	tcase_add_test(t, places);
	suite_add_tcase(s, t);
	return run_suite(s);
}
