/* SPDX-License-Identifier: ISC */
/*
 * The fetcher against a small origin on its own loop: its requests, and what it makes of good and
 * bad responses.
 */
#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zlib.h>

#include "base/clock.h"
#include "base/str.h"
#include "fetch/internal.h"
#include "stub.h"
#include "../../suite.h"

static const char FEED[] = "<?xml version=\"1.0\"?><rss version=\"2.0\"><channel><title>t</title></channel></rss>";

static uv_loop_t loop;
static struct stub stub;
static struct fw_guard guard;
static struct fw_fetch_config config;
static struct fw_fetcher *fetcher;
static int done_n;

static void answer(struct stub_conn *c, const char *path, const char *request);
static void gz_make(void);

static void setup(void)
{
	ck_assert_int_eq(uv_loop_init(&loop), 0);
	stub_open(&stub, &loop, "127.0.0.1", answer, NULL);
	ck_assert_int_eq(fw_guard_init(&guard, "127.0.0.0/8", NULL), 0);
	fw_fetch_config_default(&config);
	config.user_agent = "feedwheel-test/1 (+https://example.org/)";
	config.guard = &guard;
	fetcher = NULL;
	gz_make();
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
	while (uv_run(&loop, UV_RUN_DEFAULT))
		; /* a test may have left the loop stopped */
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
	ck_assert_int_eq(done_n, before); /* never during fw_fetch_start() */
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

/* ---- the origin's responses ------------------------------------------------------------------ */

static unsigned char gz[4096]; /* FEED in gzip */
static size_t gz_n;

static void gz_make(void)
{
	z_stream z = {.next_in = (unsigned char *)(uintptr_t)FEED,
		.avail_in = sizeof(FEED) - 1,
		.next_out = gz,
		.avail_out = sizeof(gz)};

	ck_assert_int_eq(deflateInit2(&z, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
	ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
	gz_n = z.total_out;
	deflateEnd(&z);
}

static void answer_redirect(struct stub_conn *c, const char *path)
{
	char headers[9000], where[8500] = "";
	int status = 0, n = 0;

	/*
	 * /to/STATUS/LOCATION, with %20 etc. left as they are; /chain/STATUS/N counts down to /feed
	 */
	if (sscanf(path, "/to/%d/%8499s", &status, where) == 2) {
		snprintf(headers, sizeof(headers), "Location: %s\r\n", where);
	} else if (sscanf(path, "/chain/%d/%d", &status, &n) == 2) {
		snprintf(headers, sizeof(headers), n > 1 ? "Location: /chain/%d/%d\r\n" : "Location: /feed\r\n", status,
			n - 1);
	} else if (strcmp(path, "/mixed") == 0) { /* 301, 308, 302, 301 */
		status = 301;
		snprintf(headers, sizeof(headers), "Location: mixed2\r\n");
	} else if (strcmp(path, "/mixed2") == 0) {
		status = 308;
		snprintf(headers, sizeof(headers), "Location: /mixed3#part\r\n");
	} else if (strcmp(path, "/mixed3") == 0) {
		status = 302;
		snprintf(headers, sizeof(headers), "Location: /chain/301/1\r\n");
	} else if (strcmp(path, "/utf8") == 0) {
		status = 302;
		snprintf(headers, sizeof(headers),
			"Location: /f\xc3\xa9"
			"ed?q=\xc3\xa9 x\r\n");
	} else if (strcmp(path, "/self") == 0 || strcmp(path, "/circle/b") == 0) {
		status = 301;
		snprintf(headers, sizeof(headers), "Location: %s\r\n", path[1] == 's' ? "http:/self#again" : "a");
	} else if (strcmp(path, "/circle/a") == 0) {
		status = 301;
		snprintf(headers, sizeof(headers), "Location: ./b\r\n");
	} else if (strcmp(path, "/nowhere") == 0) {
		status = 302;
		headers[0] = '\0';
	} else {
		status = 404;
		headers[0] = '\0';
	}
	stub_answer(c, status, headers, "moved", 5);
}

static char page[65536]; /* sent again and again */

/* The server closes a connection at its second request. */
static uint32_t once_conn_n;

static void answer_once(struct stub_conn *c)
{
	if (once_conn_n == stub.conn_n) {
		stub_end(c);
		return;
	}
	once_conn_n = stub.conn_n;
	stub_answer(c, 200, "", FEED, sizeof(FEED) - 1);
}

static void answer_broken(struct stub_conn *c, const char *path)
{
	char *zeros = memset(page, 0, sizeof(page));

	if (strcmp(path, "/bad/reset") == 0) {
		stub_reset(c);
	} else if (strcmp(path, "/bad/close") == 0) {
		stub_end(c);
	} else if (strcmp(path, "/bad/text") == 0) {
		stub_puts(c, "SSH-2.0-secret-token\r\n\r\n");
		stub_end(c);
	} else if (strcmp(path, "/bad/short") == 0) {
		stub_puts(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nETag: \"x\"\r\n\r\n<rss>half");
		stub_end(c);
	} else if (strcmp(path, "/bad/chunk") == 0) {
		stub_puts(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n<rss>half\r\n20\r\nmo");
		stub_end(c);
	} else if (strcmp(path, "/bad/gzip") == 0) {
		stub_puts(c, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1000\r\n\r\n");
		stub_send(c, gz, gz_n - 12);
		stub_end(c);
	} else if (strcmp(path, "/bad/gzip-whole") == 0) { /* the HTTP body is complete, the coding is not */
		stub_answer(c, 200, "Content-Encoding: gzip\r\n", gz, gz_n - 12);
	} else if (strcmp(path, "/bad/endless") == 0) {
		stub_puts(c, "HTTP/1.1 200 OK\r\n\r\n");
		stub_repeat(c, zeros, sizeof(page), 0);
	} else if (strcmp(path, "/bad/endless-404") == 0) {
		stub_puts(c, "HTTP/1.1 404 No\r\n\r\n");
		stub_repeat(c, zeros, sizeof(page), 0);
	} else if (strcmp(path, "/bad/announced") == 0) {
		stub_puts(c, "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n<rss>");
	} else if (strcmp(path, "/bad/headers") == 0) {
		stub_puts(c, "HTTP/1.1 200 OK\r\n");
		memset(zeros, 'x', 4000);
		memcpy(zeros, "X: ", 3);
		memcpy(zeros + 3998, "\r\n", 2);
		stub_repeat(c, zeros, 4000, 0);
	} else if (strcmp(path, "/bad/header-n") == 0) {
		stub_puts(c, "HTTP/1.1 200 OK\r\n");
		stub_repeat(c, "A: b\r\n", 6, 0);
	} else if (strcmp(path, "/bad/drip") == 0) {
		stub_puts(c, "HTTP/1.1 200 OK\r\n\r\n<rss>");
		stub_repeat(c, " ", 1, 50);
	} else if (strcmp(path, "/bad/drip-404") == 0) {
		stub_puts(c, "HTTP/1.1 404 No\r\n\r\n");
		stub_repeat(c, " ", 1, 50);
	} else if (strcmp(path, "/bad/bomb") == 0) {
		static unsigned char bomb[4096];
		z_stream z = {.next_out = bomb, .avail_out = sizeof(bomb)};

		deflateInit2(&z, 9, Z_DEFLATED, 31, 9, Z_DEFAULT_STRATEGY);
		for (int i = 0; i < 40; i++) {
			z.next_in = (unsigned char *)zeros;
			z.avail_in = sizeof(page);
			deflate(&z, i == 39 ? Z_FINISH : Z_NO_FLUSH);
		}
		stub_answer(c, 200, "Content-Encoding: gzip\r\n", bomb, z.total_out);
		deflateEnd(&z);
	}
	/* /bad/hang: no response */
}

static void answer(struct stub_conn *c, const char *path, const char *request)
{
	if (strcmp(path, "/feed") == 0) {
		stub_answer(
			c, 200, "ETag: W/\"a\\b \"\r\nContent-Type:  application/rss+xml \r\n", FEED, sizeof(FEED) - 1);
	} else if (strcmp(path, "/gzip") == 0) {
		stub_answer(c, 200, "Content-Encoding: gzip\r\n", gz, gz_n);
	} else if (strcmp(path, "/headers") == 0) {
		stub_puts(c, "HTTP/1.1 103 Early\r\nETag: \"early\"\r\n\r\n");
		stub_answer(c, 200,
			"etag:\t \"one\" \t\r\nETag: \"two\"\r\nLast-Modified: yes\"terday\r\nCache-Control:"
			" max-age=1\r\n"
			"cache-control: public\r\nLink: <a>;\r\n rel=hub\r\nLink: <b>\r\nExpires: a\x01"
			"b\r\nAge: 5\r\nRetry-After: 7\r\n"
			"Date: now\r\nContent-Location: /x\r\nX: y\r\nContent-Type: \xc3\xa9\r\n",
			FEED, sizeof(FEED) - 1);
	} else if (strcmp(path, "/conditional") == 0) {
		if (strstr(request, "If-None-Match: ") || strstr(request, "If-Modified-Since: "))
			stub_puts(c, "HTTP/1.1 304 Not Modified\r\nETag: \"new\"\r\n\r\n");
		else
			stub_answer(c, 200, "ETag: \"new\"\r\n", FEED, sizeof(FEED) - 1);
	} else if (strcmp(path, "/always304") == 0) {
		stub_puts(c, "HTTP/1.1 304 Not Modified\r\n\r\n");
	} else if (strcmp(path, "/204") == 0) {
		stub_puts(c, "HTTP/1.1 204 No Content\r\n\r\n");
	} else if (strncmp(path, "/status/", 8) == 0) {
		int64_t status = 0;

		ck_assert(fw_str_int(fw_str(path + 8), &status));
		stub_answer(c, (int)status, "Retry-After: 120\r\n", FEED, sizeof(FEED) - 1);
	} else if (strcmp(path, "/large") == 0) {
		memset(page, 'x', sizeof(page));
		stub_puts(c, "HTTP/1.1 200 OK\r\nContent-Length: 1048576\r\n\r\n");
		for (int i = 0; i < 16; i++)
			stub_send(c, page, sizeof(page));
	} else if (strcmp(path, "/stall") == 0) { /* much at first, and then nothing */
		stub_puts(c, "HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n");
		for (int i = 0; i < 22; i++)
			stub_send(c, page, sizeof(page));
	} else if (strncmp(path, "/f%C3%A9ed", 10) == 0) {
		stub_answer(c, 200, "", FEED, sizeof(FEED) - 1);
	} else if (strcmp(path, "/once") == 0) {
		answer_once(c);
	} else if (strncmp(path, "/bad/", 5) == 0) {
		answer_broken(c, path);
	} else {
		answer_redirect(c, path);
	}
}

/* ---- requests -------------------------------------------------------------------------------- */

static bool asked(uint32_t i, const char *line)
{
	return i < stub.request_n && strstr(stub.request[i], line) != NULL;
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
	ck_assert_ptr_null(f.permanent_url.p);
	ck_assert_uint_eq(f.hops, 0);
	ck_assert(!f.body_partial);
	ck_assert_int_eq(f.err.rc, 0);
	ck_assert_int_eq(f.visit.kind, FW_VISIT_OK);
	ck_assert_int_eq(f.visit.http_status, 200);
	ck_assert_int_gt(f.visit.connect_us, 0);
	ck_assert_int_gt(f.visit.first_byte_us, f.visit.connect_us);
	ck_assert_int_ge(f.visit.total_us, f.visit.first_byte_us);
	ck_assert_int_eq(f.visit.tls_us, 0);
	ck_assert_uint_eq(f.visit.body_bytes, sizeof(FEED) - 1);
	ck_assert_uint_gt(f.visit.wire_bytes, sizeof(FEED) + 20);
	ck_assert_int_gt(f.visit.at_ms, 1000000000000);
	fw_fetch_finish(&f);
}
END_TEST

START_TEST(sends_no_more_than_needed) /* NET-12, POL-13 */
{
	struct fw_fetch f;
	char want[1000];

	/* the environment is ignored */
	setenv("http_proxy", "http://127.0.0.1:9/", 1);
	setenv("all_proxy", "http://127.0.0.1:9/", 1);
	f = get(url_of("/feed"));
	fw_snprintf(want, sizeof(want),
		"GET /feed HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUser-Agent: feedwheel-test/1 (+https://example.org/)\r\n"
		"Accept: application/atom+xml, application/rss+xml, application/feed+json, application/rdf+xml;q=0.9, "
		"application/xml;q=0.8, text/xml;q=0.8, application/json;q=0.7, */*;"
		"q=0.1\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n\r\n",
		stub.port);
	ck_assert_int_eq(f.kind, FW_VISIT_OK);
	ck_assert_str_eq(stub.request[0], want);
	fw_fetch_finish(&f);
}
END_TEST

START_TEST(decodes)
{
	struct fw_fetch f = get(url_of("/gzip"));

	ck_assert_int_eq(f.kind, FW_VISIT_OK);
	ck_assert_str_eq(f.body.p, FEED);
	ck_assert_uint_eq(f.visit.body_bytes, sizeof(FEED) - 1);
	fw_fetch_finish(&f);
}
END_TEST

START_TEST(headers_byte_for_byte) /* POL-01, NET-18 */
{
	struct fw_fetch f = get(url_of("/headers"));

	ck_assert_int_eq(f.kind, FW_VISIT_OK);
	ck_assert_str_eq(f.h_etag.p, "\"one\""); /* the first of two, and not the interim response's */
	ck_assert_str_eq(f.h_last_modified.p, "yes\"terday");
	ck_assert_str_eq(f.h_cache_control.p, "max-age=1, public");
	ck_assert_str_eq(f.h_link.p, "<a>; rel=hub, <b>");
	ck_assert_ptr_null(f.h_expires.p); /* it had a control character */
	ck_assert_str_eq(f.h_age.p, "5");
	ck_assert_str_eq(f.h_retry_after.p, "7");
	ck_assert_str_eq(f.h_date.p, "now");
	ck_assert_str_eq(f.h_content_location.p, "/x");
	ck_assert_str_eq(f.h_content_type.p, "\xc3\xa9");
	fw_fetch_finish(&f);
}
END_TEST

START_TEST(keeps_connections) /* from the second visit to an origin on: most origins are visited rarely */
{
	for (int i = 0; i < 5; i++) {
		struct fw_fetch f = get(url_of(i % 2 ? "/feed" : "/status/404"));

		ck_assert_int_eq(f.http_status, i % 2 ? 200 : 404);
		fw_fetch_finish(&f);
	}
	ck_assert_uint_eq(stub.request_n, 5);
	ck_assert_uint_eq(stub.conn_n, 2);
}
END_TEST

/* ---- validators ------------------------------------------------------------------------------ */

START_TEST(conditional) /* POL-01 */
{
	struct fw_fetch f = {.url = url_of("/conditional"),
		.validator_url = url_of("/conditional"),
		.etag = FW_STR("W/\"x  y\""),
		.last_modified = FW_STR("any bytes, \xe9")};

	run(&f);
	ck_assert_int_eq(f.kind, FW_VISIT_NOT_MODIFIED);
	ck_assert_int_eq(f.http_status, 304);
	ck_assert_int_eq(f.err.rc, 0);
	ck_assert_uint_eq(f.body.len, 0);
	ck_assert_str_eq(f.h_etag.p, "\"new\"");
	ck_assert(asked(0, "\r\nIf-None-Match: W/\"x  y\"\r\n"));
	ck_assert(asked(0, "\r\nIf-Modified-Since: any bytes, \xe9\r\n"));
	fw_fetch_finish(&f);
}
END_TEST

START_TEST(validators_of_another_url)
{
	struct fw_fetch f = {.url = url_of("/conditional"),
		.validator_url = url_of("/Conditional"),
		.etag = FW_STR("\"x\""),
		.last_modified = FW_STR("d")};

	run(&f);
	ck_assert_int_eq(f.kind, FW_VISIT_OK);
	ck_assert(!asked(0, "If-"));
	fw_fetch_finish(&f);
}
END_TEST

START_TEST(validators_after_redirect) /* validators belong to the final URL, and only to it */
{
	struct fw_fetch f = {.url = url_of("/to/301//conditional"),
		.validator_url = url_of("/conditional"),
		.etag = FW_STR("\"x\"")};

	run(&f);
	ck_assert_int_eq(f.kind, FW_VISIT_NOT_MODIFIED);
	ck_assert(!asked(0, "If-None-Match"));
	ck_assert(asked(1, "\r\nIf-None-Match: \"x\"\r\n"));
	ck_assert(fw_str_eq(f.permanent_url, url_of("/conditional")));
	fw_fetch_finish(&f);
}
END_TEST

START_TEST(validators_with_controls) /* NET-18 */
{
	struct fw_fetch f = {.url = url_of("/conditional"),
		.validator_url = url_of("/conditional"),
		.etag = FW_STR("\"x\"\r\nEvil: yes"),
		.last_modified = FW_STR("a\nb")};

	run(&f);
	ck_assert_int_eq(f.kind, FW_VISIT_OK);
	ck_assert(!asked(0, "If-") && !asked(0, "Evil"));
	fw_fetch_finish(&f);
}
END_TEST

START_TEST(unsolicited_304) /* POL-03 */
{
	struct fw_fetch f = get(url_of("/always304"));

	ck_assert_int_eq(f.kind, FW_VISIT_PROTOCOL);
	ck_assert_int_eq(f.err.rc, FW_ENET);
	ck_assert_int_eq(f.http_status, 304);
	fw_fetch_finish(&f);
}
END_TEST

/* ---- status ---------------------------------------------------------------------------------- */

START_TEST(statuses)
{
	static const struct {
		int status;
		enum fw_visit_kind kind;
		int rc;
	} T[] = {
		{200, FW_VISIT_OK, 0},
		{203, FW_VISIT_OK, 0},
		{226, FW_VISIT_OK, 0},
		{400, FW_VISIT_HTTP, FW_ENET},
		{401, FW_VISIT_HTTP, FW_ENET},
		{403, FW_VISIT_HTTP, FW_ENET},
		{404, FW_VISIT_HTTP, FW_ENET},
		{410, FW_VISIT_GONE, FW_EGONE},
		{429, FW_VISIT_HTTP, FW_ENET},
		{500, FW_VISIT_HTTP, FW_ENET},
		{503, FW_VISIT_HTTP, FW_ENET},
		{300, FW_VISIT_HTTP, FW_ENET},
		{305, FW_VISIT_HTTP, FW_ENET},
		{301, FW_VISIT_HTTP, FW_ENET},
		{999, FW_VISIT_HTTP, FW_ENET},
	};

	for (size_t i = 0; i < FW_N(T); i++) {
		struct fw_fetch f = get(url_of("/status/%d", T[i].status));

		ck_assert_msg(f.kind == T[i].kind && f.err.rc == T[i].rc && f.http_status == T[i].status, "%d: %s",
			T[i].status, f.err.text);
		ck_assert_uint_eq(f.body.len, T[i].kind == FW_VISIT_OK ? sizeof(FEED) - 1 : 0);
		ck_assert_str_eq(f.h_retry_after.p, "120");
		fw_fetch_finish(&f);
	}
}
END_TEST

START_TEST(no_content)
{
	struct fw_fetch f = get(url_of("/204"));

	ck_assert_int_eq(f.kind, FW_VISIT_OK);
	ck_assert_int_eq(f.http_status, 204);
	ck_assert_uint_eq(f.body.len, 0);
	fw_fetch_finish(&f);
}
END_TEST

/* ---- redirects ------------------------------------------------------------------------------- */

START_TEST(redirect_chain)
{
	struct fw_fetch f = get(url_of("/mixed"));

	ck_assert_int_eq(f.kind, FW_VISIT_OK);
	ck_assert_uint_eq(f.hops, 4);
	ck_assert_uint_eq(f.visit.redirects, 4);
	ck_assert(fw_str_eq(f.final_url, url_of("/feed")));
	/* up to the first temporary redirect, without the fragment */
	ck_assert(fw_str_eq(f.permanent_url, url_of("/mixed3")));
	ck_assert_str_eq(f.body.p, FEED);
	ck_assert_uint_eq(stub.request_n, 5);
	ck_assert_uint_eq(stub.conn_n, 1);
	fw_fetch_finish(&f);
}
END_TEST

START_TEST(redirect_kinds)
{
	static const int T[] = {301, 302, 303, 307, 308};

	for (size_t i = 0; i < FW_N(T); i++) {
		struct fw_fetch f = get(url_of("/chain/%d/5", T[i]));
		bool permanent = T[i] == 301 || T[i] == 308;

		ck_assert_msg(f.kind == FW_VISIT_OK, "%s", f.err.text);
		ck_assert_uint_eq(f.hops, 5);
		ck_assert(permanent ? fw_str_eq(f.permanent_url, f.final_url) : !f.permanent_url.p);
		fw_fetch_finish(&f);
		f = get(url_of("/chain/%d/6", T[i])); /* NET-10: at most five */
		ck_assert_int_eq(f.kind, FW_VISIT_REDIRECT);
		ck_assert_int_eq(f.err.rc, FW_ENET);
		fw_fetch_finish(&f);
	}
}
END_TEST

START_TEST(redirects_astray) /* NET-09, NET-10 */
{
	static const struct {
		const char *to;
		enum fw_visit_kind kind;
	} T[] = {
		{"ftp://127.0.0.1/x", FW_VISIT_REDIRECT},
		{"file:///etc/passwd", FW_VISIT_REDIRECT},
		{"javascript:1", FW_VISIT_REDIRECT},
		{"gopher://127.0.0.1:6379/_x", FW_VISIT_REDIRECT},
		{"http:///x", FW_VISIT_REDIRECT},
		{"http://a%20b/", FW_VISIT_REDIRECT},
		{"http://10.0.0.1/", FW_VISIT_BLOCKED},
		{"http://169.254.169.254/latest", FW_VISIT_BLOCKED},
		{"http://[::1]/", FW_VISIT_BLOCKED},
		{"http://0x0a.1/", FW_VISIT_BLOCKED},
		{"http://127.0.0.1:25/", FW_VISIT_BLOCKED},
		{"//10.0.0.1/x", FW_VISIT_BLOCKED},
		{"http://[fe80::1%25eth0]/", FW_VISIT_REDIRECT},
		{"http://127.0.0.1:99999/", FW_VISIT_REDIRECT},
	};

	for (size_t i = 0; i < FW_N(T); i++) {
		struct fw_fetch f = get(url_of("/to/302/%s", T[i].to));

		ck_assert_msg(f.kind == T[i].kind, "%s: %s", T[i].to, f.err.text);
		ck_assert_int_ne(f.err.rc, 0);
		ck_assert_ptr_null(f.permanent_url.p);
		/* NET-16: the message contains nothing of the response */
		ck_assert_ptr_null(strstr(f.err.text, "passwd"));
		ck_assert_ptr_null(strstr(f.err.text, "10.0"));
		fw_fetch_finish(&f);
	}
	ck_assert_uint_eq(stub.request_n, FW_N(T));
}
END_TEST

START_TEST(redirect_circle)
{
	static const char *const T[] = {"/self", "/circle/a"};

	for (size_t i = 0; i < FW_N(T); i++) {
		struct fw_fetch f = get(url_of("%s", T[i]));

		ck_assert_int_eq(f.kind, FW_VISIT_REDIRECT);
		ck_assert(strstr(f.err.text, "redirect loop") != NULL);
		ck_assert_uint_eq(f.hops, i);
		ck_assert_int_eq(f.http_status, 301);
		fw_fetch_finish(&f);
	}
	ck_assert_uint_eq(stub.request_n, 3);
}
END_TEST

START_TEST(redirect_without_location)
{
	struct fw_fetch f = get(url_of("/nowhere"));

	ck_assert_int_eq(f.kind, FW_VISIT_HTTP);
	ck_assert_int_eq(f.http_status, 302);
	fw_fetch_finish(&f);
}
END_TEST

START_TEST(redirect_beyond_ascii)
{
	struct fw_fetch f = get(url_of("/utf8"));

	ck_assert_int_eq(f.kind, FW_VISIT_OK);
	ck_assert(asked(1, "GET /f%C3%A9ed?q=%C3%A9%20x HTTP/1.1\r\n"));
	ck_assert(fw_str_eq(f.final_url,
		url_of("/f\xc3\xa9"
		       "ed?q=\xc3\xa9%%20x")));
	fw_fetch_finish(&f);
}
END_TEST

/* ---- POST requests --------------------------------------------------------------------------- */

static const struct fw_str FORM = {"hub.mode=subscribe&hub.topic=x", 30};

static struct fw_fetch post(struct fw_str url)
{
	struct fw_fetch f = {.url = url, .post = FORM};

	run(&f);
	return f;
}

START_TEST(form_is_posted)
{
	struct fw_fetch f = post(url_of("/feed"));

	ck_assert_int_eq(f.kind, FW_VISIT_OK);
	ck_assert_str_eq(f.body.p, FEED);
	ck_assert(asked(0, "POST /feed HTTP/1.1\r\n"));
	ck_assert(asked(0, "\r\nContent-Type: application/x-www-form-urlencoded\r\n"));
	ck_assert(asked(0, "\r\nContent-Length: 30\r\n"));
	ck_assert(asked(0, "\r\n\r\nhub.mode=subscribe&hub.topic=x"));
	ck_assert(!asked(0, "Expect:"));
	fw_fetch_finish(&f);
	f = get(url_of("/feed")); /* with the same handle: no request body is left */
	ck_assert_int_eq(f.kind, FW_VISIT_OK);
	ck_assert(asked(1, "GET /feed HTTP/1.1\r\n"));
	ck_assert(!asked(1, "Content-") && !asked(1, "hub."));
	fw_fetch_finish(&f);
	f = post(url_of("/status/410"));
	ck_assert_int_eq(f.http_status, 410);
	fw_fetch_finish(&f);
	f = (struct fw_fetch){.url = url_of("/204"), .post = FW_STR("")};
	run(&f);
	ck_assert_int_eq(f.kind, FW_VISIT_OK);
	ck_assert(asked(3, "POST /204") && asked(3, "Content-Length: 0"));
	fw_fetch_finish(&f);
}
END_TEST

START_TEST(json_is_posted_with_headers)
{
	static const char LINES[] = "webhook-id: 1.2\0webhook-signature: v1,abc";
	struct fw_fetch f = {.url = url_of("/feed"),
		.post = FW_STR("{\"n\": 1}"),
		.post_type = "application/json",
		.post_headers = {LINES, sizeof(LINES)}};

	run(&f);
	ck_assert_int_eq(f.kind, FW_VISIT_OK);
	ck_assert(asked(0, "\r\nContent-Type: application/json\r\n"));
	ck_assert(!asked(0, "urlencoded"));
	ck_assert(asked(0, "\r\nwebhook-id: 1.2\r\n") && asked(0, "\r\nwebhook-signature: v1,abc\r\n"));
	ck_assert(asked(0, "\r\n\r\n{\"n\": 1}"));
	fw_fetch_finish(&f);
	f = (struct fw_fetch){.url = url_of("/to/307/http://10.0.0.1/x"), .post = FW_STR("x"), .no_redirects = true};
	run(&f);
	ck_assert_int_eq(f.kind, FW_VISIT_HTTP);
	ck_assert_int_eq(f.http_status, 307);
	fw_fetch_finish(&f);
}
END_TEST

START_TEST(form_redirects) /* WSB-03; websub.rocks 203, 204 */
{
	static const struct {
		int status;
		bool follows;
	} T[] = {{307, true}, {308, true}, {301, false}, {302, false}, {303, false}};

	for (size_t i = 0; i < FW_N(T); i++) {
		uint32_t before = stub.request_n;
		struct fw_fetch f = post(url_of("/chain/%d/2", T[i].status));

		ck_assert_int_eq(f.kind, T[i].follows ? FW_VISIT_OK : FW_VISIT_HTTP);
		ck_assert_int_eq(f.http_status, T[i].follows ? 200 : T[i].status);
		ck_assert_uint_eq(stub.request_n - before, T[i].follows ? 3 : 1);
		ck_assert(asked(stub.request_n - 1, "POST /"));
		ck_assert(asked(stub.request_n - 1, "\r\n\r\nhub.mode=subscribe&hub.topic=x"));
		fw_fetch_finish(&f);
	}
	for (size_t i = 0; i < 2; i++) {
		struct fw_fetch f = post(i ? url_of("/to/307/http://10.0.0.1/x") : url_of("/chain/308/6"));

		/* NET-02: the guard checks each redirect */
		ck_assert_int_eq(f.kind, i ? FW_VISIT_BLOCKED : FW_VISIT_REDIRECT);
		fw_fetch_finish(&f);
	}
}
END_TEST

/* ---- credentials ----------------------------------------------------------------------------- */

START_TEST(credentials_stay_home) /* NET-11, NET-12, NET-19; CVE-2018-1000007, CVE-2022-27774, CVE-2022-27776 */
{
	static const char AUTH[] = "\r\nAuthorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n"; /* RFC 7617 section 2 */
	struct stub other;
	struct fw_fetch f = {
		.url = url_of("/to/302//feed"), .username = FW_STR("Aladdin"), .password = FW_STR("open sesame")};

	stub_open(&other, &loop, "127.0.0.2", answer, NULL);
	run(&f); /* same origin */
	ck_assert_int_eq(f.kind, FW_VISIT_OK);
	ck_assert(asked(0, AUTH) && asked(1, AUTH));
	fw_fetch_finish(&f);

	f = (struct fw_fetch){.url = url_of("/to/302/http://127.0.0.2:%d/feed", other.port),
		.username = FW_STR("Aladdin"),
		.password = FW_STR("open sesame")};
	run(&f); /* another host */
	ck_assert_int_eq(f.kind, FW_VISIT_OK);
	ck_assert(asked(2, AUTH));
	ck_assert_uint_eq(other.request_n, 1);
	ck_assert_ptr_null(strstr(other.request[0], "Authorization"));
	ck_assert_ptr_null(strstr(other.request[0], "Referer"));
	fw_fetch_finish(&f);

	/*
	 * and back to the first origin: sent again. User and password in the publisher's URL are
	 * never used
	 */
	f = (struct fw_fetch){.url = url_of("/to/302/http://127.0.0.2:%d/to/302/http://evil:x@127.0.0.1:%d/feed",
				      other.port, stub.port),
		.username = FW_STR("Aladdin"),
		.password = FW_STR("open sesame")};
	run(&f);
	ck_assert_int_eq(f.kind, FW_VISIT_OK);
	ck_assert(asked(4, AUTH));
	ck_assert(fw_str_eq(f.final_url, url_of("/feed")));
	fw_fetch_finish(&f);

	f = get(url_of("/feed")); /* the next feed on the same connection and handle has none */
	ck_assert(!asked(5, "Authorization"));
	fw_fetch_finish(&f);
	stub_close(&other);
	uv_run(&loop, UV_RUN_NOWAIT);
	stub_free(&other);
}
END_TEST

START_TEST(userinfo_is_not_sent) /* NET-19 */
{
	char url[100];
	struct fw_fetch f;

	fw_snprintf(url, sizeof(url), "http://joe:secret@127.0.0.1:%d/feed", stub.port);
	f = get(fw_str(url));
	ck_assert_int_eq(f.kind, FW_VISIT_OK);
	ck_assert(!asked(0, "Authorization") && !asked(0, "joe") && !asked(0, "secret"));
	fw_fetch_finish(&f);
}
END_TEST

/* ---- broken and hostile responses ------------------------------------------------------------ */

START_TEST(broken_answers)
{
	static const struct {
		const char *path;
		enum fw_visit_kind kind;
		const char *body;
	} T[] = {
		{"/bad/reset", FW_VISIT_PROTOCOL, NULL},
		{"/bad/close", FW_VISIT_PROTOCOL, NULL},
		{"/bad/text", FW_VISIT_PROTOCOL, NULL},
		{"/bad/short", FW_VISIT_PROTOCOL, "<rss>half"},
		{"/bad/chunk", FW_VISIT_PROTOCOL, "<rss>halfmo"},
		{"/bad/gzip", FW_VISIT_PROTOCOL, "<?xml"},
		{"/bad/gzip-whole", FW_VISIT_PROTOCOL, "<?xml"},
	};

	for (size_t i = 0; i < FW_N(T); i++) {
		struct fw_fetch f = get(url_of("%s", T[i].path));

		ck_assert_msg(f.kind == T[i].kind, "%s: %d %s", T[i].path, f.kind, f.err.text);
		ck_assert_int_eq(f.err.rc, FW_ENET);
		ck_assert_ptr_null(strstr(f.err.text, "secret")); /* NET-16 */
		ck_assert_int_eq(f.body_partial, T[i].body != NULL);
		if (T[i].body)
			ck_assert_int_eq(memcmp(f.body.p, T[i].body, strlen(T[i].body)), 0);
		fw_fetch_finish(&f);
	}
}
END_TEST

START_TEST(limits) /* LIM-01, LIM-02, LIM-04; CVE-2023-38039 */
{
	static const struct {
		const char *path, *words;
	} T[] = {
		{"/bad/endless", "max_body_bytes"},
		{"/bad/announced", "max_body_bytes"},
		{"/bad/headers", "max_header_bytes"},
		{"/bad/header-n", "max_header_n"},
		{"/bad/bomb", "max_compression_ratio"},
	};

	config.max_body_bytes = 8 << 20;
	for (size_t i = 0; i < FW_N(T); i++) {
		struct fw_fetch f = get(url_of("%s", T[i].path));

		ck_assert_msg(f.kind == FW_VISIT_LIMIT && f.err.rc == FW_ELIMIT, "%s: %s", T[i].path, f.err.text);
		ck_assert_msg(strstr(f.err.text, T[i].words) != NULL, "%s: %s", T[i].path, f.err.text);
		ck_assert_uint_eq(f.body.len, 0);
		ck_assert_uint_lt(f.visit.wire_bytes, (8 << 20) + 200000);
		fw_fetch_finish(&f);
	}
}
END_TEST

START_TEST(error_pages_are_not_read) /* the status decides, even if the page is cut off */
{
	struct fw_fetch f = get(url_of("/bad/endless-404"));

	ck_assert_int_eq(f.kind, FW_VISIT_HTTP);
	ck_assert_int_eq(f.http_status, 404);
	ck_assert_uint_lt(f.visit.wire_bytes, 200000);
	fw_fetch_finish(&f);
}
END_TEST

START_TEST(slow_answers) /* LIM-05 */
{
	static const struct {
		const char *path, *words;
		enum fw_visit_kind kind;
	} T[] = {
		{"/bad/hang", "first_byte_timeout", FW_VISIT_TIMEOUT},
		{"/bad/drip", "low_speed", FW_VISIT_TIMEOUT},
		{"/bad/drip-404", "404", FW_VISIT_HTTP},
	};

	config.low_speed_ms = 1000;
	for (size_t i = 0; i < FW_N(T); i++) {
		struct fw_fetch f;

		config.first_byte_timeout_ms = i ? 20000 : 300;
		f = get(url_of("%s", T[i].path));
		ck_assert_msg(f.kind == T[i].kind, "%s: %d %s", T[i].path, f.kind, f.err.text);
		ck_assert_msg(strstr(f.err.text, T[i].words) != NULL, "%s: %s", T[i].path, f.err.text);
		fw_fetch_finish(&f);
		fw_fetcher_destroy(fetcher); /* the next fetcher has timeouts of its own */
		fetcher = NULL;
	}
}
END_TEST

START_TEST(total_timeout)
{
	struct fw_fetch f;
	int64_t start = fw_mono_ms();

	config.total_timeout_ms = 3000;
	config.low_speed_bytes = 0;
	f = get(url_of("/bad/drip"));
	ck_assert_int_eq(f.kind, FW_VISIT_TIMEOUT);
	ck_assert_msg(
		strstr(f.err.text, "total_timeout") != NULL, "%s, %d ms", f.err.text, (int)(fw_mono_ms() - start));
	ck_assert(f.body_partial);
	ck_assert_int_eq(f.http_status, 200);
	fw_fetch_finish(&f);
}
END_TEST

START_TEST(connect_refused)
{
	struct fw_fetch f = get(FW_STR("http://127.0.0.1:1024/"));

	ck_assert_int_eq(f.kind, FW_VISIT_CONNECT);
	ck_assert_int_eq(f.err.rc, FW_ENET);
	fw_fetch_finish(&f);
}
END_TEST

START_TEST(connect_timeout)
{
	/* a listener with a full queue does not accept */
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(sa);
	int fd = socket(AF_INET, SOCK_STREAM, 0), fill[8];
	struct fw_fetch f;
	char url[60];

	ck_assert_int_eq(bind(fd, (struct sockaddr *)&sa, n), 0);
	ck_assert_int_eq(listen(fd, 0), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&sa, &n), 0);
	for (size_t i = 0; i < FW_N(fill); i++) {
		fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		(void)!connect(fill[i], (struct sockaddr *)&sa, n);
	}
	fw_snprintf(url, sizeof(url), "http://127.0.0.1:%d/", ntohs(sa.sin_port));
	config.connect_timeout_ms = 400;
	f = get(fw_str(url));
	ck_assert_msg(f.kind == FW_VISIT_TIMEOUT, "%s", f.err.text);
	ck_assert(strstr(f.err.text, "connect_timeout") != NULL);
	fw_fetch_finish(&f);
	for (size_t i = 0; i < FW_N(fill); i++)
		close(fill[i]);
	close(fd);
}
END_TEST

START_TEST(guarded_literals) /* NET-02: the spellings that libcurl itself would resolve to 127.0.0.1 */
{
	static const char *const T[] = {
		"127.0.0.1",
		"0177.0.0.1",
		"0x7f.1",
		"2130706433",
		"127.1",
		"[::ffff:127.0.0.1]",
		"0",
		"0.0.0.0",
		"[::1]",
		"[::]",
		"127.0.0.1.",
		"\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97.0.0.1",
		"[::127.0.0.1]",
		"[64:ff9b::7f00:1]",
		"017700000001",
		"[0:0:0:0:0:ffff:7f00:1]",
	};

	ck_assert_int_eq(fw_guard_init(&guard, NULL, NULL), 0);
	for (size_t i = 0; i < FW_N(T); i++) {
		char url[200];
		struct fw_fetch f;

		fw_snprintf(url, sizeof(url), "http://%s:%d/feed", T[i], stub.port);
		f = get(fw_str(url));
		ck_assert_msg(
			f.kind == FW_VISIT_BLOCKED && f.err.rc == FW_EBLOCKED, "%s: %d %s", url, f.kind, f.err.text);
		fw_fetch_finish(&f);
	}
	ck_assert_uint_eq(stub.conn_n, 0);
}
END_TEST

START_TEST(refused_in_words) /* a refused port is named; so is the setting that helps, in a form that can be typed */
{
	static const struct {
		const char *allow, *deny, *url, *words;
	} T[] = {
		{"", "", "http://127.0.0.1:8080/",
			"fetch refused: loopback address (to permit it, set allow_networks)"},
		{"", "", "http://10.0.0.1:25/",
			"fetch refused: private network address, port 25 (to permit it, add the address with this port "
			"to allow_networks: "
			"ADDRESS:25)"},
		{"127.0.0.0/8", "", "http://127.2.0.50:9/",
			"fetch refused: port 9 (to permit it, add the address with this port to allow_networks: "
			"ADDRESS:9)"},
		{"127.0.0.0/8", "", "https://127.2.0.50:6667/",
			"fetch refused: port 6667 (to permit it, add the address with this port to allow_networks: "
			"ADDRESS:6667)"},
		{"", "", "http://192.88.98.1:79/",
			"fetch refused: port 79 (to permit it, add the address with this port to allow_networks: "
			"ADDRESS:79)"},
		{"127.0.0.0/8,127.2.0.50:9", "127.0.0.0/8", "http://127.2.0.50:9/",
			"fetch refused: the address is in deny_networks"},
		{"127.0.0.0/8, 127.2.0.50:9", "", "http://127.2.0.50:9/", "connection failed: Connection refused"},
	};

	for (size_t i = 0; i < FW_N(T); i++) {
		struct fw_fetch f;

		ck_assert_int_eq(fw_guard_init(&guard, T[i].allow, NULL), 0);
		ck_assert_int_eq(fw_guard_deny(&guard, T[i].deny, NULL), 0);
		f = get(fw_str(T[i].url));
		ck_assert_str_eq(f.err.text, T[i].words);
		fw_fetch_finish(&f);
	}
}
END_TEST

START_TEST(guard_checks_reused_connections) /* NET-03 */
{
	struct fw_fetch f = get(url_of("/feed"));

	fw_fetch_finish(&f);
	f = get(url_of("/feed"));
	ck_assert_int_eq(f.kind, FW_VISIT_OK);
	fw_fetch_finish(&f);
	ck_assert_ptr_nonnull(stub.conns);                      /* still open */
	ck_assert_int_eq(fw_guard_init(&guard, NULL, NULL), 0); /* the policy changes */
	f = get(url_of("/feed"));
	ck_assert_int_eq(f.kind, FW_VISIT_BLOCKED);
	ck_assert_uint_eq(stub.request_n, 2);
	ck_assert_uint_eq(stub.conn_n, 2);
	fw_fetch_finish(&f);
}
END_TEST

START_TEST(bad_urls) /* NET-09, NET-18, LIM-09: reported by done, no request is sent */
{
	static const struct {
		const char *url;
		enum fw_visit_kind kind;
	} T[] = {
		{"", FW_VISIT_BLOCKED},
		{"ftp://127.0.0.1/", FW_VISIT_BLOCKED},
		{"file:///etc/passwd", FW_VISIT_BLOCKED},
		{"|rm", FW_VISIT_BLOCKED},
		{"http:127.0.0.1", FW_VISIT_PROTOCOL},
		{"http://", FW_VISIT_PROTOCOL},
		{"http://a b/", FW_VISIT_PROTOCOL},
		{"http://127.0.0.1:0/", FW_VISIT_PROTOCOL},
		{"http://127.0.0.1:x/", FW_VISIT_PROTOCOL},
		{"http://[::1%25lo]/", FW_VISIT_PROTOCOL},
		{"http://127.0.0.1/\r\nX: y", FW_VISIT_PROTOCOL},
		{"http://a..b/", FW_VISIT_PROTOCOL},
		{"http://.a/", FW_VISIT_PROTOCOL},
		{"http://0123456789012345678901234567890123456789012345678901234567890123.org/", FW_VISIT_PROTOCOL},
		{"http://\xff\xfe.org/", FW_VISIT_PROTOCOL},
		{"http://%31.org/", FW_VISIT_PROTOCOL},
	};
	struct fw_fetch f;

	for (size_t i = 0; i < FW_N(T); i++) {
		f = get(fw_str(T[i].url));
		ck_assert_msg(f.kind == T[i].kind, "%s: %d %s", T[i].url, f.kind, f.err.text);
		ck_assert_int_ne(f.err.rc, 0);
		fw_fetch_finish(&f);
	}
	f = get(url_of("/%09000d", 0));
	ck_assert_int_eq(f.kind, FW_VISIT_LIMIT);
	fw_fetch_finish(&f);
	ck_assert_uint_eq(stub.conn_n, 0);
}
END_TEST

/* ---- life cycle ------------------------------------------------------------------------------ */

/* ---- requests that wait ---------------------------------------------------------------------- */

static struct {
	int send_n, sent_n, further_n;
	uint32_t had_n; /* requests at the server, when send() was called last */
	int refuse;     /* the call of send() that refuses; 0: none */
	uint64_t wait_ms;
	uv_timer_t timer;
	struct fw_fetch *f;
} gate;

static bool gate_send(struct fw_fetch *f)
{
	(void)f;
	ck_assert_int_eq(gate.send_n, gate.sent_n);
	gate.had_n = stub.request_n;
	return ++gate.send_n != gate.refuse;
}

static void gate_sent(struct fw_fetch *f)
{
	(void)f;
	gate.sent_n++;
	ck_assert_int_eq(gate.send_n, gate.sent_n);
}

static void gate_opens(uv_timer_t *t)
{
	int before = done_n;

	ck_assert(!fw_fetch_is_silent(gate.f) && !fw_fetch_abandon(gate.f));
	fw_fetch_continue(gate.f);
	ck_assert_int_eq(done_n, before); /* never during fw_fetch_continue() */
	uv_close((uv_handle_t *)t, NULL);
}

static bool gate_further(struct fw_fetch *f, struct fw_str url)
{
	ck_assert(fw_str_starts(url, FW_STR("http://127.0.0.")));
	gate.further_n++;
	gate.f = f;
	if (!gate.wait_ms)
		return false;
	uv_timer_init(&loop, &gate.timer);
	uv_timer_start(&gate.timer, gate_opens, gate.wait_ms, 0);
	return true;
}

static struct fw_fetch gate_get(struct fw_str url, uint64_t wait_ms, int refuse)
{
	struct fw_fetch f = {.url = url, .send = gate_send, .sent = gate_sent, .further = gate_further};

	memset(&gate, 0, sizeof(gate));
	gate.wait_ms = wait_ms;
	gate.refuse = refuse;
	run(&f);
	return f;
}

/* send() is called for each request, when its connection is there and nothing is written yet. */
START_TEST(asked_before_each_request)
{
	static struct stub other;
	struct fw_fetch f;
	char to[100];

	f = gate_get(url_of("/chain/302/2"), 0, 0);
	ck_assert_int_eq(f.kind, FW_VISIT_OK);
	ck_assert_int_eq(gate.sent_n, 3);
	ck_assert_int_eq(gate.further_n, 2);
	ck_assert_uint_eq(gate.had_n, 2);
	fw_fetch_finish(&f);
	f = gate_get(url_of("/chain/302/2"), 0, 2);
	ck_assert_int_eq(f.kind, FW_VISIT_LOCAL);
	ck_assert(f.deferred);
	ck_assert_int_eq(gate.sent_n, 1);
	ck_assert_uint_eq(stub.request_n, 4); /* three, and one */
	fw_fetch_finish(&f);

	stub_open(&other, &loop, "127.0.0.2", answer, NULL);
	snprintf(to, sizeof(to), "/to/302/http://127.0.0.2:%d/feed", other.port);
	f = gate_get(url_of("%s", to), 0, 2); /* also after a redirect to another host */
	ck_assert(f.deferred);
	ck_assert_int_eq(gate.further_n, 1);
	ck_assert_uint_eq(other.request_n, 0);
	fw_fetch_finish(&f);
	stub_close(&other);
	uv_run(&loop, UV_RUN_NOWAIT);
	stub_free(&other);
}
END_TEST

/* A redirect waits for fw_fetch_continue(), and keeps the connection; no timeout counts. */
START_TEST(redirect_waits)
{
	struct fw_fetch f;

	config.total_timeout_ms = 500;
	f = gate_get(url_of("/chain/301/1"), 700, 0);
	ck_assert_msg(f.kind == FW_VISIT_OK, "%s", f.err.text);
	ck_assert_int_eq(gate.further_n, 1);
	ck_assert_uint_eq(stub.request_n, 2);
	ck_assert_uint_eq(stub.conn_n, 1);
	/* the timer of the 700 ms counts from the loop's time, which a busy machine lets be old */
	ck_assert_int_gt(f.visit.queue_us, config.total_timeout_ms * 1000);
	ck_assert_int_lt(f.visit.total_us, 500000);
	fw_fetch_finish(&f);
}
END_TEST

/* The server closes a kept connection as it reads the request: the repetition waits too. */
START_TEST(repetition_waits)
{
	struct fw_fetch f;

	once_conn_n = 0;
	for (int i = 0; i < 3; i++) {
		f = gate_get(url_of("/once"), 50, 0);
		ck_assert_msg(f.kind == FW_VISIT_OK, "%s", f.err.text);
		ck_assert_int_eq(gate.further_n, i == 2); /* the second visit's connection is kept */
		ck_assert_int_eq(gate.sent_n, 1 + (i == 2));
		fw_fetch_finish(&f);
	}
	ck_assert_uint_eq(stub.request_n, 4);
}
END_TEST

START_TEST(cancelled_while_it_waits)
{
	struct fw_fetch f = {.url = url_of("/chain/302/1"), .done = done, .further = gate_further};

	memset(&gate, 0, sizeof(gate));
	gate.wait_ms = 1000000;
	begin();
	ck_assert_int_eq(fw_fetch_start(fetcher, &f, NULL), 0);
	while (!gate.further_n)
		uv_run(&loop, UV_RUN_ONCE);
	fw_fetch_cancel(&f);
	ck_assert_int_eq(done_n, 1);
	ck_assert_int_eq(f.kind, FW_VISIT_LOCAL);
	ck_assert_uint_eq(fw_fetcher_in_flight(fetcher), 0);
	ck_assert_uint_eq(stub.request_n, 1);
	uv_close((uv_handle_t *)&gate.timer, NULL);
	fw_fetch_finish(&f);
}
END_TEST

START_TEST(cancelled)
{
	struct fw_fetch f = {.url = url_of("/bad/hang"), .done = done};

	begin();
	ck_assert_int_eq(fw_fetch_start(fetcher, &f, NULL), 0);
	for (int i = 0; i < 20 && stub.request_n == 0; i++)
		uv_run(&loop, UV_RUN_ONCE);
	ck_assert_uint_eq(fw_fetcher_in_flight(fetcher), 1);
	fw_fetch_cancel(&f);
	ck_assert_int_eq(done_n, 1);
	ck_assert_int_eq(f.kind, FW_VISIT_LOCAL);
	ck_assert_uint_eq(fw_fetcher_in_flight(fetcher), 0);
	fw_fetch_cancel(&f);
	ck_assert_int_eq(done_n, 1);
	fw_fetch_reset(&f);
	/* a fetch that has not started, and one that failed before it started */
	f = (struct fw_fetch){.url = url_of("/feed"), .done = done};
	ck_assert_int_eq(fw_fetch_start(fetcher, &f, NULL), 0);
	fw_fetch_cancel(&f);
	fw_fetch_reset(&f);
	f = (struct fw_fetch){.url = FW_STR("x"), .done = done};
	ck_assert_int_eq(fw_fetch_start(fetcher, &f, NULL), 0);
	fw_fetch_cancel(&f);
	ck_assert_int_eq(done_n, 3);
	fw_fetch_finish(&f);
}
END_TEST

#define MANY 300
static struct fw_fetch many[MANY];
static int started_n, ok_n;

static void many_done(struct fw_fetch *f)
{
	ok_n += f->kind == FW_VISIT_OK;
	fw_fetch_reset(f);
	done_n++;
	if (started_n < 3 * MANY) { /* done may start the next fetch, in the same struct */
		started_n++;
		f->url = url_of(started_n % 3 ? "/gzip" : "/chain/302/2");
		f->done = many_done;
		ck_assert_int_eq(fw_fetch_start(fetcher, f, NULL), 0);
	} else if (fw_fetcher_in_flight(fetcher) == 0) {
		uv_stop(&loop);
	}
}

START_TEST(many_at_once)
{
	begin();
	started_n = ok_n = 0;
	for (size_t i = 0; i < MANY; i++) {
		static char url[MANY][60];

		fw_snprintf(url[i], sizeof(url[i]), "http://127.0.%zu.%zu:%d/feed", i / 100, i % 100 + 1, stub.port);
		many[i] = (struct fw_fetch){.url = url_of("/feed"), .done = many_done};
		started_n++;
		ck_assert_int_eq(fw_fetch_start(fetcher, &many[i], NULL), 0);
	}
	ck_assert_uint_eq(fw_fetcher_in_flight(fetcher), MANY);
	uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(done_n, 3 * MANY);
	ck_assert_int_eq(ok_n, 3 * MANY);
	for (size_t i = 0; i < MANY; i++)
		fw_fetch_finish(&many[i]);
}
END_TEST

static void large_done(struct fw_fetch *f)
{
	done_n++;
	ok_n += f->kind == FW_VISIT_OK && f->body.len == 1 << 20;
	fw_fetch_finish(f);
	if (fw_fetcher_in_flight(fetcher) == 0)
		uv_stop(&loop);
}

START_TEST(buffers_are_bounded) /* LIM-06 */
{
	config.max_buffered_bytes = 3 << 20;
	config.max_body_bytes = 2 << 20;
	begin();
	ok_n = 0;
	for (size_t i = 0; i < 60; i++) {
		many[i] = (struct fw_fetch){.url = url_of(i % 20 == 7 ? "/bad/endless" : "/large"), .done = large_done};
		ck_assert_int_eq(fw_fetch_start(fetcher, &many[i], NULL), 0);
	}
	uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(done_n, 60);
	ck_assert_int_eq(ok_n, 57);
	ck_assert_uint_eq(fetcher->buffered, 0);
	ck_assert_uint_gt(fetcher->buffered_peak, 3 << 20);               /* the limit was reached, */
	ck_assert_uint_le(fetcher->buffered_peak, (3 << 20) + (2 << 20)); /* and kept */
}
END_TEST

START_TEST(stalled_transfers_are_aborted) /* LIM-06: three stalled servers do not block the others */
{
	struct fw_fetch good = {.url = FW_STR_NONE, .done = done};
	size_t left_n = 0;

	config.max_buffered_bytes = 3 << 20;
	config.max_body_bytes = 2 << 20;
	config.total_timeout_ms = 40 * FW_SECOND_MS;
	config.low_speed_ms = 10 * FW_SECOND_MS;
	begin();
	for (size_t i = 0; i < 3; i++) {
		many[i] = (struct fw_fetch){.url = url_of("/stall"), .done = done};
		ck_assert_int_eq(fw_fetch_start(fetcher, &many[i], NULL), 0);
	}
	while (fetcher->buffered < 3 << 20)
		uv_run(&loop, UV_RUN_ONCE);
	good.url = url_of("/large");
	ck_assert_int_eq(fw_fetch_start(fetcher, &good, NULL), 0);
	while (fw_fetcher_in_flight(fetcher))
		uv_run(&loop, UV_RUN_ONCE);
	ck_assert_msg(good.kind == FW_VISIT_OK, "%s", good.err.text);
	for (size_t i = 0; i < 3; i++) {
		ck_assert_int_eq(many[i].kind, FW_VISIT_TIMEOUT);
		left_n += strstr(many[i].err.text, "waited for buffer space") !=
			NULL; /* it blocks no other: more time */
		fw_fetch_finish(&many[i]);
	}
	ck_assert_uint_ge(left_n, 1);
	fw_fetch_finish(&good);
}
END_TEST

START_TEST(cancelled_while_paused)
{
	config.max_buffered_bytes = 1 << 20;
	begin();
	for (size_t i = 0; i < 8; i++) {
		many[i] = (struct fw_fetch){.url = url_of("/large"), .done = done};
		ck_assert_int_eq(fw_fetch_start(fetcher, &many[i], NULL), 0);
	}
	while (done_n < 1)
		uv_run(&loop, UV_RUN_ONCE);
	for (size_t i = 0; i < 8; i++)
		fw_fetch_cancel(&many[i]);
	ck_assert_int_eq(done_n, 8);
	for (size_t i = 0; i < 8; i++)
		fw_fetch_finish(&many[i]);
}
END_TEST

START_TEST(out_of_files) /* an error of our own process, not the feed's */
{
	struct rlimit old, few = {.rlim_cur = 0};
	struct fw_fetch f;

	begin();
	f = get(url_of("/status/404"));
	fw_fetch_finish(&f);
	getrlimit(RLIMIT_NOFILE, &old);
	few.rlim_max = old.rlim_max;
	setrlimit(RLIMIT_NOFILE, &few);
	f = get(FW_STR("http://127.0.0.3:8080/"));
	setrlimit(RLIMIT_NOFILE, &old);
	ck_assert_msg(f.kind == FW_VISIT_LOCAL, "%d %s", f.kind, f.err.text);
	ck_assert_int_eq(f.err.rc, FW_EIO);
	fw_fetch_finish(&f);
}
END_TEST

/* LIM-04: the memory for headers is bounded too, in whatever order they repeat. */
START_TEST(repeated_headers)
{
	struct fw_fetch_response r = {0};
	char line[500];
	size_t n = 0;
	bool going = true;

	fw_fetch_response_reset(&r);
	ck_assert(fw_fetch_response_line(&r, &config, FW_STR("HTTP/1.1 200 OK\r\n")));
	for (int i = 0; i < 150; i++) /* one list in many lines */
		ck_assert(fw_fetch_response_line(&r, &config, FW_STR("Link: <a>; rel=hub\r\n")));
	ck_assert_uint_eq(fw_fetch_response_header(&r, FW_H_LINK).len, 150 * 14 - 2);
	ck_assert_uint_lt(r.text.len, 3000);
	fw_fetch_response_reset(&r);
	ck_assert(fw_fetch_response_line(&r, &config, FW_STR("HTTP/1.1 200 OK\r\n")));
	memset(line, 'x', sizeof(line));
	for (int i = 0; going && i < 190; i++) { /* two headers in turns */
		static const struct {
			const char *name;
			size_t len;
		} NAME[] = {{"Link: ", 6}, {"Cache-Control: ", 15}};

		memcpy(line, NAME[i % 2].name, NAME[i % 2].len);
		going = fw_fetch_response_line(&r, &config, (struct fw_str){line, sizeof(line)});
		n = r.text.len;
	}
	ck_assert(!going);
	ck_assert_int_eq(r.limit, FW_ELIMIT);
	ck_assert_uint_le(n, 5 * config.max_header_bytes);
	fw_fetch_response_finish(&r);
}
END_TEST

START_TEST(bad_configuration)
{
	struct fw_err err;

	config.dns_servers = "one.example";
	ck_assert_int_eq(fw_fetcher_create(&loop, &config, &fetcher, &err), FW_EINVAL);
	ck_assert(strstr(err.text, "dns_servers") && strstr(err.text, "one.example"));
	ck_assert_ptr_null(fetcher);
	config.dns_servers = "192.0.2.53,[2001:db8::53]:65589";
	ck_assert_int_eq(fw_fetcher_create(&loop, &config, &fetcher, &err), FW_EINVAL);
	config.dns_servers = NULL;
	config.user_agent = "mine\r\nX-Other: 1";
	ck_assert_int_eq(fw_fetcher_create(&loop, &config, &fetcher, &err), FW_EINVAL);
	ck_assert(strstr(err.text, "user_agent") != NULL);
	config.user_agent = NULL;
	config.proxy = "ftp://x";
	ck_assert_int_eq(fw_fetcher_create(&loop, &config, &fetcher, &err), FW_EINVAL);
	ck_assert(strstr(err.text, "proxy") != NULL);
	ck_assert_ptr_null(fetcher);
}
END_TEST

START_TEST(through_a_proxy) /* NET-13 */
{
	char proxy[60];
	struct fw_fetch f;

	ck_assert_int_eq(fw_guard_init(&guard, NULL, NULL), 0);
	fw_snprintf(proxy, sizeof(proxy), "http://127.0.0.1:%d", stub.port);
	config.proxy = proxy;
	f = get(FW_STR("http://feeds.example/feed"));
	ck_assert_int_eq(f.http_status, 404); /* the stub knows no absolute URLs */
	ck_assert(asked(0, "GET http://feeds.example/feed HTTP/1.1\r\nHost: feeds.example\r\n"));
	fw_fetch_finish(&f);
	f = get(FW_STR("http://10.0.0.1/feed")); /* a literal address is still checked */
	ck_assert_int_eq(f.kind, FW_VISIT_BLOCKED);
	fw_fetch_finish(&f);
	f = get(FW_STR("http://feeds.example:25/feed"));
	ck_assert_int_eq(f.kind, FW_VISIT_BLOCKED);
	ck_assert_str_eq(f.err.text, "fetch refused: port 25 of a host name, behind a proxy");
	fw_fetch_finish(&f);
	ck_assert_uint_eq(stub.request_n, 1);
}
END_TEST

START_TEST(doctor)
{
	struct fw_buf b = FW_BUF_INIT(0);
	const char *path;
	struct fw_err err;
	size_t n;

	fw_fetch_versions(&b);
	ck_assert(strstr(b.p, "libcurl/") && strstr(b.p, "c-ares") && strstr(b.p, "libdeflate"));
	fw_buf_finish(&b);
	config.ca_file = "/nowhere/ca.pem";
	ck_assert_int_eq(fw_fetch_check_tls(&config, &n, &path, &err), FW_EIO);
	ck_assert(strstr(err.text, "/nowhere/ca.pem") && strstr(err.text, "ca_file"));
}
END_TEST

int main(void)
{
	const TTest *const T[] = {plain_get, sends_no_more_than_needed, decodes, headers_byte_for_byte,
		keeps_connections, conditional, validators_of_another_url, validators_after_redirect,
		validators_with_controls, unsolicited_304, statuses, no_content, redirect_chain, redirect_kinds,
		redirects_astray, redirect_circle, redirect_without_location, redirect_beyond_ascii, form_is_posted,
		form_redirects, credentials_stay_home, userinfo_is_not_sent, json_is_posted_with_headers,
		broken_answers, limits, error_pages_are_not_read, slow_answers, total_timeout, connect_refused,
		connect_timeout, guarded_literals, refused_in_words, guard_checks_reused_connections, bad_urls,
		asked_before_each_request, redirect_waits, repetition_waits, cancelled_while_it_waits, cancelled,
		many_at_once, buffers_are_bounded, stalled_transfers_are_aborted, cancelled_while_paused, out_of_files,
		repeated_headers, bad_configuration, through_a_proxy, doctor};
	Suite *s = suite_create("unit fetch fetch");
	TCase *t = tcase_create("fetch");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	for (size_t i = 0; i < FW_N(T); i++)
		tcase_add_test(t, T[i]);
	suite_add_tcase(s, t);
	return run_suite(s);
}
