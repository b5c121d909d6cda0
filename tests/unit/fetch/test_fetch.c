/* SPDX-License-Identifier: ISC */
/* The fetcher against a small origin on its own loop: what it asks, what it makes of answers, good and bad. */
#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "fetch/fetch.h"
#include "stub.h"

static const char FEED[] = "<?xml version=\"1.0\"?><rss version=\"2.0\"><channel><title>t</title></channel></rss>";

static uv_loop_t loop;
static struct stub stub;
static struct fw_guard guard;
static struct fw_fetch_config config;
static struct fw_fetcher *fetcher;
static int done_n;

static void answer(struct stub_conn *c, const char *path, const char *request);

static void setup(void)
{
	ck_assert_int_eq(uv_loop_init(&loop), 0);
	stub_open(&stub, &loop, "127.0.0.1", answer, NULL);
	ck_assert_int_eq(fw_guard_init(&guard, "127.0.0.0/8", NULL), 0);
	fw_fetch_config_default(&config);
	config.user_agent = "feedwheel-test/1 (+https://example.org/)";
	config.guard = &guard;
	fetcher = NULL;
	done_n = 0;
}

static void begin(void)
{
	struct fw_err err;

	ck_assert_msg(fw_fetcher_create(&loop, &config, &fetcher, &err) == 0, "%s", err.text);
}

static void teardown(void)
{
	fw_fetcher_destroy(fetcher);
	stub_close(&stub);
	uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(uv_loop_close(&loop), 0);
	stub_free(&stub);
}

static void done(struct fw_fetch *f)
{
	(void)f;
	done_n++;
	uv_stop(&loop);
}

FW_PRINTF(1, 2) static struct fw_str url_of(const char *fmt, ...)
{
	static char text[8][10000];
	static int turn;
	char *d = text[turn++ % 8];
	va_list ap;
	int n = snprintf(d, 100, "http://127.0.0.1:%d", stub.port);

	va_start(ap, fmt);
	vsnprintf(d + n, sizeof(text[0]) - (size_t)n, fmt, ap);
	va_end(ap);
	return fw_str(d);
}

static void run(struct fw_fetch *f)
{
	int before = done_n;

	if (!fetcher)
		begin();
	f->done = done;
	ck_assert_int_eq(fw_fetch_start(fetcher, f, NULL), 0);
	ck_assert_int_eq(done_n, before); /* never from within start */
	while (done_n == before)
		uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(done_n, before + 1);
}

static struct fw_fetch get(struct fw_str url)
{
	struct fw_fetch f = {.url = url};

	run(&f);
	return f;
}

static void answer(struct stub_conn *c, const char *path, const char *request)
{
	(void)request;
	if (strcmp(path, "/feed") == 0)
		stub_answer(c, 200, "ETag: W/\"a\\b \"\r\nContent-Type:  application/rss+xml \r\n", FEED, sizeof(FEED) - 1);
	else
		stub_answer(c, 404, "", "no", 2);
}

START_TEST(plain_get)
{
	struct fw_fetch f = get(url_of("/feed"));

	ck_assert_int_eq(f.kind, FW_VISIT_OK);
	ck_assert_int_eq(f.http_status, 200);
	ck_assert_str_eq(f.body.p, FEED);
	ck_assert_str_eq(f.h_etag.p, "W/\"a\\b \"");
	ck_assert_str_eq(f.h_content_type.p, "application/rss+xml");
	ck_assert_ptr_null(f.h_last_modified.p);
	ck_assert(fw_str_eq(f.final_url, url_of("/feed")));
	ck_assert_int_gt(f.visit.first_byte_us, 0);
	ck_assert_int_ge(f.visit.total_us, f.visit.first_byte_us);
	fw_fetch_finish(&f);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("fetch");
	TCase *t = tcase_create("fetch");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 20);
	tcase_add_test(t, plain_get);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
