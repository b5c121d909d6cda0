/* SPDX-License-Identifier: ISC */
/* Who may pause a whole host: a name that has it alone, or three of the names that share it. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "engine/run/name_cooldown.h"
#include "../../suite.h"

#define NOW INT64_C(1795262400000) /* 2026-11-21T12:00:00Z */
#define WEEK (7 * FW_DAY_MS)

static struct name_cooldowns *P;

static void setup(void)
{
	P = name_cooldowns_create(7);
	ck_assert_ptr_nonnull(P);
}

static void teardown(void)
{
	name_cooldowns_destroy(P);
}

/* Evaluates the response to a visit of a feed, as far as it matters; returns the host's pause. */
static int64_t says(const char *url, const char *final_url, const char *host_key, int64_t at_ms, int64_t pause_ms)
{
	struct visit v = {.feed = {.url = fw_str(url), .host_key = fw_str(host_key)},
		.fetch.final_url = fw_str(final_url),
		.name_cooldown_ms = pause_ms};

	name_cooldown_learn(P, &v, at_ms);
	ck_assert_int_eq(v.host_health, v.cooldown_until_ms ? FW_HOST_THROTTLED : FW_HOST_UNKNOWN);
	return v.cooldown_until_ms ? v.cooldown_until_ms - at_ms : 0;
}

static int64_t at_hoster(const char *name, int64_t at_ms, int64_t pause_ms)
{
	char url[100];

	(void)fw_snprintf(url, sizeof(url), "http://%s.netlify.app/feed", name);
	return says(url, url, NULL, at_ms, pause_ms);
}

static int64_t left(const char *url, int64_t at_ms)
{
	int64_t until_ms = name_cooldown_until(P, fw_str(url), at_ms);

	return until_ms ? until_ms - at_ms : 0;
}

START_TEST(a_name)
{
	ck_assert_int_eq(left("http://evil.netlify.app/feed", NOW), 0);
	ck_assert_int_eq(at_hoster("evil", NOW, WEEK), 0);
	ck_assert_int_eq(left("http://evil.netlify.app/feed", NOW), WEEK);
	ck_assert_int_eq(left("https://EVIL.netlify.app:8443/another", NOW + 1000), WEEK - 1000);
	ck_assert_int_eq(left("http://good.netlify.app/feed", NOW), 0);
	ck_assert_int_eq(left("http://netlify.app/feed", NOW), 0);
	/* another feed of the same name: this takes nothing back */
	ck_assert_int_eq(at_hoster("evil", NOW + 5000, 30000), 0);
	ck_assert_int_eq(left("http://evil.netlify.app/feed", NOW + 5000), WEEK - 5000);
	ck_assert_int_eq(left("http://evil.netlify.app/feed", NOW + WEEK), 0);
	ck_assert_int_eq(left("nonsense", NOW), 0);
	ck_assert_int_eq(at_hoster("healthy", NOW, 0), 0);
	ck_assert_int_eq(left("http://healthy.netlify.app/feed", NOW), 0);
}
END_TEST

START_TEST(three_names)
{
	for (int i = 0; i < 10; i++) /* one name, any number of times */
		ck_assert_int_eq(at_hoster("evil", NOW + i, WEEK), 0);
	ck_assert_int_eq(at_hoster("second", NOW + 100, WEEK), 0);
	ck_assert_int_eq(at_hoster("evil", NOW + 101, WEEK), 0);
	ck_assert_int_eq(at_hoster("second", NOW + 102, WEEK), 0);
	ck_assert_int_eq(at_hoster("third", NOW + 103, WEEK), FW_HOUR_MS);
	/* and from the start again */
	ck_assert_int_eq(at_hoster("evil", NOW + 104, WEEK), 0);
	ck_assert_int_eq(at_hoster("second", NOW + 105, 60000), 0);
	ck_assert_int_eq(at_hoster("third", NOW + 106, WEEK), 60000); /* the pause that all three asked for */
}
END_TEST

START_TEST(within_an_hour)
{
	ck_assert_int_eq(at_hoster("first", NOW, WEEK), 0);
	ck_assert_int_eq(at_hoster("second", NOW + FW_HOUR_MS - 1, WEEK), 0);
	ck_assert_int_eq(at_hoster("third", NOW + FW_HOUR_MS, WEEK), 0);
	ck_assert_int_eq(at_hoster("fourth", NOW + FW_HOUR_MS + 1, WEEK), FW_HOUR_MS);
}
END_TEST

START_TEST(an_address) /* the same where names share an address, for each address by itself */
{
	ck_assert_int_eq(says("http://a.example/", "http://a.example/", "[192.0.2.1]", NOW, WEEK), 0);
	ck_assert_int_eq(says("http://b.example/", "http://b.example/", "[192.0.2.1]", NOW, WEEK), 0);
	ck_assert_int_eq(says("http://c.example/", "http://c.example/", "[192.0.2.2]", NOW, WEEK), 0);
	ck_assert_int_eq(says("http://d.example/", "http://d.example/", "[192.0.2.1]", NOW, 60000), 60000);
	ck_assert_int_eq(left("http://c.example/feed", NOW), WEEK);
}
END_TEST

START_TEST(behind_a_redirect) /* a request of another host, after a redirect, applies only there */
{
	for (int i = 0; i < 5; i++) {
		char evil[100], good[100];

		(void)fw_snprintf(evil, sizeof(evil), "http://evil%d.example/", i);
		(void)fw_snprintf(good, sizeof(good), "http://name%d.netlify.app/", i);
		ck_assert_int_eq(says(good, evil, NULL, NOW + i, WEEK), 0);
		ck_assert_int_eq(left(evil, NOW + i), WEEK);
		ck_assert_int_eq(left(good, NOW + i), 0);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit engine host pause");
	TCase *t = tcase_create("host_pause");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, a_name);
	tcase_add_test(t, three_names);
	tcase_add_test(t, within_an_hour);
	tcase_add_test(t, an_address);
	tcase_add_test(t, behind_a_redirect);
	suite_add_tcase(s, t);
	return run_suite(s);
}
