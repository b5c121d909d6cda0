/* SPDX-License-Identifier: ISC */
/* TLS: trusted authorities, failures, the cost of a new connection. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/str.h"
#include "fetch/fetch.h"
#include "stub.h"
#include "tls_stub.h"
#include "../../suite.h"

static uv_loop_t loop;
static struct stub plain;
static struct tls_stub tls;
static struct fw_guard guard;
static struct fw_fetch_config config;
static struct fw_fetcher *fetcher;
static char ca_file[] = "/tmp/feedwheel-test-ca-XXXXXX";
static int done_n;

static void answer(struct stub_conn *c, const char *path, const char *request)
{
	(void)path;
	(void)request;
	stub_answer(c, 200, "", "<plain/>", 8);
}

/* The system's bundle, if there is one, and our authority: of a realistic size. */
static void ca_write(void)
{
	FILE *out, *in = fopen("/etc/ssl/certs/ca-certificates.crt", "r");
	int fd = mkstemp(ca_file), c;

	ck_assert_int_ge(fd, 0);
	out = fdopen(fd, "w");
	while (in && (c = fgetc(in)) != EOF)
		fputc(c, out);
	fputs(tls.ca_pem, out);
	ck_assert_int_eq(fclose(out), 0);
	if (in)
		fclose(in);
}

static void open_all(int flags)
{
	ck_assert_int_eq(uv_loop_init(&loop), 0);
	stub_open(&plain, &loop, "127.0.0.1", answer, NULL);
	tls_open(&tls, flags);
	ca_write();
	ck_assert_int_eq(fw_guard_init(&guard, "127.0.0.0/8", NULL), 0);
	fw_fetch_config_default(&config);
	config.guard = &guard;
	config.ca_file = ca_file;
	fetcher = NULL;
	done_n = 0;
}

static void setup(void)
{
	open_all(0);
}

static void setup_expired(void)
{
	open_all(TLS_STUB_EXPIRED);
}

static void setup_h2(void)
{
	open_all(TLS_STUB_H2);
}

static void teardown(void)
{
	fw_fetcher_destroy(fetcher);
	stub_close(&plain);
	while (uv_run(&loop, UV_RUN_DEFAULT))
		;
	ck_assert_int_eq(uv_loop_close(&loop), 0);
	stub_free(&plain);
	tls_close(&tls);
	unlink(ca_file);
}

static void done(struct fw_fetch *f)
{
	(void)f;
	done_n++;
	uv_stop(&loop);
}

static void run(struct fw_fetch *f)
{
	struct fw_err err;
	int before = done_n;

	if (!fetcher)
		ck_assert_msg(fw_fetcher_create(&loop, &config, &fetcher, &err) == 0, "%s", err.text);
	f->done = done;
	ck_assert_int_eq(fw_fetch_start(fetcher, f, NULL), 0);
	while (done_n == before)
		uv_run(&loop, UV_RUN_DEFAULT);
}

static struct fw_fetch get(const char *host, int port, const char *path)
{
	static char url[200];
	struct fw_fetch f = {.url = {url, 0}};

	fw_snprintf(url, sizeof(url), "https://%s:%d%s", host, port, path);
	f.url.len = strlen(url);
	run(&f);
	return f;
}

START_TEST(trusted)
{
	for (int i = 0; i < 3; i++) {
		struct fw_fetch f = get("127.0.0.1", tls.port, "/feed");

		ck_assert_msg(f.kind == FW_VISIT_OK, "%s", f.err.text);
		ck_assert_str_eq(f.body.p, "<rss/>");
		ck_assert(i > 1 || f.visit.tls_us > f.visit.connect_us);
		fw_fetch_finish(&f);
	}
	ck_assert_int_eq(tls.conn_n, 2);
	ck_assert(tls.offered_h2);
}
END_TEST

START_TEST(http2_switched_off)
{
	struct fw_fetch f;

	config.http2 = false;
	f = get("127.0.0.1", tls.port, "/feed");
	ck_assert_int_eq(f.kind, FW_VISIT_OK);
	ck_assert(!tls.offered_h2);
	fw_fetch_finish(&f);
}
END_TEST

START_TEST(unknown_authority)
{
	struct fw_fetch f;

	config.ca_file = NULL; /* the system's bundle does not have our authority */
	f = get("127.0.0.1", tls.port, "/feed");
	ck_assert_msg(f.kind == FW_VISIT_TLS && f.err.rc == FW_ENET, "%d %s", f.kind, f.err.text);
	ck_assert_ptr_nonnull(strstr(f.err.text, "certificate"));
	ck_assert_int_eq(tls.request_n, 0);
	fw_fetch_finish(&f);
}
END_TEST

START_TEST(wrong_name)
{
	struct fw_fetch f = get("127.0.0.2", tls.port, "/feed");

	ck_assert_int_eq(f.kind, FW_VISIT_TLS);
	ck_assert_msg(strstr(f.err.text, "another host") != NULL, "%s", f.err.text);
	fw_fetch_finish(&f);
}
END_TEST

START_TEST(expired)
{
	struct fw_fetch f = get("127.0.0.1", tls.port, "/feed");

	ck_assert_int_eq(f.kind, FW_VISIT_TLS);
	ck_assert_msg(strstr(f.err.text, "expired") != NULL, "%s", f.err.text);
	fw_fetch_finish(&f);
}
END_TEST

START_TEST(not_tls)
{
	struct fw_fetch f;

	config.connect_timeout_ms = 300; /* the stub waits for the end of something that is no request */
	f = get("127.0.0.1", plain.port, "/feed");
	ck_assert_msg(f.kind == FW_VISIT_TLS || f.kind == FW_VISIT_TIMEOUT, "%d %s", f.kind, f.err.text);
	fw_fetch_finish(&f);
}
END_TEST

START_TEST(no_trust_store) /* an error of our own configuration */
{
	struct fw_fetch f;
	struct fw_err err;
	const char *path;
	size_t n;

	ck_assert_int_eq(fw_fetch_check_tls(&config, &n, &path, &err), 0);
	ck_assert_uint_ge(n, 1);
	ck_assert_str_eq(path, ca_file);
	config.ca_file = "/nowhere/ca.pem";
	f = get("127.0.0.1", tls.port, "/feed");
	ck_assert_int_eq(f.kind, FW_VISIT_LOCAL);
	ck_assert_ptr_nonnull(strstr(f.err.text, "ca_file"));
	fw_fetch_finish(&f);
}
END_TEST

START_TEST(downgrade) /* NET-10 */
{
	static char url[100];
	struct fw_fetch f = {.url = {url, 0}};

	fw_snprintf(url, sizeof(url), "https://127.0.0.1:%d/to-http?%d", tls.port, plain.port);
	f.url.len = strlen(url);
	run(&f); /* a feed without a password follows the redirect */
	ck_assert_msg(f.kind == FW_VISIT_OK, "%s", f.err.text);
	ck_assert_str_eq(f.body.p, "<plain/>");
	fw_fetch_finish(&f);
	f = (struct fw_fetch){.url = fw_str(url), .username = FW_STR("joe"), .password = FW_STR("x")};
	run(&f);
	ck_assert_int_eq(f.kind, FW_VISIT_REDIRECT);
	ck_assert_uint_eq(plain.request_n, 1);
	fw_fetch_finish(&f);
	f = (struct fw_fetch){.url = fw_str(url), .post = FW_STR("hub.secret=x")};
	run(&f); /* the body of a POST stays protected */
	ck_assert_int_eq(f.kind, FW_VISIT_REDIRECT);
	ck_assert_ptr_nonnull(strstr(f.err.text, "may be secret"));
	ck_assert_uint_eq(plain.request_n, 1);
	fw_fetch_finish(&f);
}
END_TEST

START_TEST(closed_without_goodbye)
{
	struct fw_fetch f = get("127.0.0.1", tls.port, "/close");

	/* as in browsers; a cut body with a known length is an error (test_fetch) */
	ck_assert_int_eq(f.kind, FW_VISIT_OK);
	ck_assert_str_eq(f.body.p, "<rss/>");
	fw_fetch_finish(&f);
	f = get("127.0.0.1", tls.port, "/last");
	ck_assert_int_eq(f.kind, FW_VISIT_OK);
	fw_fetch_finish(&f);
}
END_TEST

START_TEST(sessions_are_resumed)
{
	struct tls_stub other;
	struct fw_fetch f;

	tls_open(&other, 0); /* another authority: its certificates are refused, even when a session is resumed */
	for (int i = 0; i < 5; i++) {
		f = get("127.0.0.1", tls.port, "/last");
		ck_assert_msg(f.kind == FW_VISIT_OK, "%s", f.err.text);
		fw_fetch_finish(&f);
		f = get("127.0.0.1", other.port, "/last");
		ck_assert_int_eq(f.kind, FW_VISIT_TLS);
		fw_fetch_finish(&f);
	}
	ck_assert_int_eq(tls.conn_n, 5);
	ck_assert_int_eq(tls.resumed_n, 4);
	ck_assert_int_eq(other.resumed_n, 0);
	f = get("127.0.0.2", tls.port, "/last"); /* the name is checked all the same */
	ck_assert_int_eq(f.kind, FW_VISIT_TLS);
	fw_fetch_finish(&f);
	tls_close(&other);
}
END_TEST

static int64_t thread_cpu_us(void)
{
	struct rusage u;

	getrusage(RUSAGE_THREAD, &u);
	return (int64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000 + u.ru_utime.tv_usec + u.ru_stime.tv_usec;
}

START_TEST(bundle_is_read_once)
{
	enum { N = 30 };
	struct fw_fetch f = get("127.0.0.1", tls.port, "/last");
	int64_t us;

	fw_fetch_finish(&f);
	us = thread_cpu_us();
	for (int i = 0; i < N; i++) {
		f = get("127.0.0.1", tls.port, "/last");
		ck_assert_int_eq(f.kind, FW_VISIT_OK);
		fw_fetch_finish(&f);
	}
	us = (thread_cpu_us() - us) / N;
	ck_assert_int_eq(tls.conn_n, N + 1);
	/*
	 * scanning Debian's directory would cost 21 ms each; reading the bundle again about 10 ms
	 */
#if !defined(__SANITIZE_ADDRESS__)
	ck_assert_msg(us < 5000, "%lld us CPU for a new connection", (long long)us);
#endif
	if (getenv("FW_TEST_FIGURES"))
		fprintf(stderr, "# a new verified TLS connection: %lld us CPU, %d of %d sessions resumed\n",
			(long long)us, tls.resumed_n, N);
}
END_TEST

/* ---- HTTP/2 ---------------------------------------------------------------------------------- */

START_TEST(http2_answers)
{
	static const struct {
		const char *path;
		enum fw_visit_kind kind;
		size_t len;
	} T[] = {
		{"/feed", FW_VISIT_OK, 100},
		{"/large", FW_VISIT_OK, 300000},
		{"/moved", FW_VISIT_OK, 300000},
		{"/feed", FW_VISIT_OK, 100},
	};
	struct fw_fetch f;

	for (size_t i = 0; i < FW_N(T); i++) {
		f = get("127.0.0.1", tls.port, T[i].path);
		ck_assert_msg(
			f.kind == T[i].kind && f.body.len == T[i].len, "%s: %d %s", T[i].path, f.kind, f.err.text);
		ck_assert_str_eq(f.h_etag.p, "\"h2\"");
		ck_assert_uint_gt(f.visit.wire_bytes, f.body.len);
		fw_fetch_finish(&f);
	}
	ck_assert_int_eq(tls.conn_n, 2);
	f = get("127.0.0.1", tls.port, "/breaks"); /* this stream is reset, the connection goes on */
	ck_assert_msg(f.kind == FW_VISIT_PROTOCOL && f.body_partial && f.body.len > 0 && f.body.len < 300000, "%d %s",
		f.kind, f.err.text);
	fw_fetch_finish(&f);
	f = get("127.0.0.1", tls.port, "/feed");
	ck_assert_int_eq(f.kind, FW_VISIT_OK);
	fw_fetch_finish(&f);
}
END_TEST

static struct fw_fetch many[40];
static int ok_n;

static void many_done(struct fw_fetch *f)
{
	ok_n += f->kind == FW_VISIT_OK && (f->body.len == 100 || f->body.len == 300000);
	if (f->kind != FW_VISIT_OK)
		fprintf(stderr, "# %s\n", f->err.text);
	done_n++;
	if (fw_fetcher_in_flight(fetcher) == 0)
		uv_stop(&loop);
}

/* Over one connection, with the same handles again and again; some have to wait for buffers. */
START_TEST(http2_many)
{
	static const char *const PATH[] = {"/feed", "/large", "/moved"};
	static char url[3][100];
	struct fw_fetch f;
	int conns;

	config.max_buffered_bytes = 2 << 20;
	for (int i = 0; i < 2; i++) {
		f = get("127.0.0.1", tls.port, "/feed");
		fw_fetch_finish(&f);
	}
	conns = tls.conn_n;
	done_n = ok_n = 0;
	for (int round = 1; round <= 4; round++) {
		for (size_t i = 0; i < FW_N(many); i++) {
			fw_snprintf(url[i % 3], sizeof(url[0]), "https://127.0.0.1:%d%s", tls.port, PATH[i % 3]);
			many[i] = (struct fw_fetch){.url = fw_str(url[i % 3]), .done = many_done};
			ck_assert_int_eq(fw_fetch_start(fetcher, &many[i], NULL), 0);
		}
		uv_run(&loop, UV_RUN_DEFAULT);
		ck_assert_int_eq(done_n, round * (int)FW_N(many));
		ck_assert_int_eq(ok_n, done_n);
		for (size_t i = 0; i < FW_N(many); i++)
			fw_fetch_finish(&many[i]);
	}
	ck_assert_int_eq(tls.conn_n, conns);
}
END_TEST

int main(void)
{
	const TTest *const T[] = {
		trusted,
		http2_switched_off,
		unknown_authority,
		wrong_name,
		not_tls,
		no_trust_store,
		downgrade,
		closed_without_goodbye,
		sessions_are_resumed,
		bundle_is_read_once,
	};
	Suite *s = suite_create("unit fetch tls");
	TCase *t = tcase_create("tls"), *e = tcase_create("expired"), *h = tcase_create("http2");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	for (size_t i = 0; i < FW_N(T); i++)
		tcase_add_test(t, T[i]);
	suite_add_tcase(s, t);
	tcase_add_checked_fixture(e, setup_expired, teardown);
	tcase_add_test(e, expired);
	suite_add_tcase(s, e);
	tcase_add_checked_fixture(h, setup_h2, teardown);
	tcase_set_timeout(h, 60);
	tcase_add_test(h, http2_answers);
	tcase_add_test(h, http2_many);
	suite_add_tcase(s, h);
	return run_suite(s);
}
