/* SPDX-License-Identifier: ISC */
/*
 * Requests that need no token, and bodies that are accepted: by the headers that programs, browsers
 * and proxies send.
 */
#include <check.h>

#include "base/str.h"
#include "feedwheel/engine.h"
#include "http/auth/tokenless.h"
#include "../../suite.h"

/* "Name: value" lines. */
static struct tokenless_head head(const char *lines)
{
	struct tokenless_head h = {.local = true};
	struct fw_str rest = fw_str(lines);

	while (rest.len) {
		struct fw_str value, name = fw_str_split(fw_str_split(rest, '\n', &rest), ':', &value);

		tokenless_header(&h, name, fw_str_trim(value));
	}
	return h;
}

#define NAMES "feeds.lan, reader"
#define LOCAL "Host: 127.0.0.1:8080\n"

START_TEST(by_headers)
{
	static const struct {
		const char *lines;
		enum tokenless want;
	} CASE[] = {
		/* programs */
		{"Host: 127.0.0.1:8080\nUser-Agent: curl/8\nAccept: */*", TOKENLESS_MAY},
		{"Host: 127.0.0.1", TOKENLESS_MAY},
		{"Host: 127.0.0.1:", TOKENLESS_MAY},
		{"Host: 127.1.2.3:80", TOKENLESS_MAY},
		{"Host: [::1]:8080", TOKENLESS_MAY},
		{"Host: [::1]", TOKENLESS_MAY},
		{"host: LocalHost:8080", TOKENLESS_MAY},
		{"HOST: localhost", TOKENLESS_MAY},
		{"Host: localhost:9", TOKENLESS_MAY}, /* a forwarded port */
		/* names of the setting */
		{"Host: feeds.lan", TOKENLESS_MAY},
		{"Host: FEEDS.lan:8080", TOKENLESS_MAY},
		{"Host: reader", TOKENLESS_MAY},
		{"Host: x.feeds.lan", TOKENLESS_HOST},
		{"Host: feeds.lan.evil.example", TOKENLESS_HOST},
		{"Host: feeds.lan, reader", TOKENLESS_HOST},
		{"Host: feeds.lan, reader:80", TOKENLESS_HOST},
		/* DNS rebinding: a page's own name resolves to this server */
		{"Host: evil.example:8080", TOKENLESS_HOST},
		{"Host: evil.example:8080\nOrigin: http://evil.example:8080", TOKENLESS_HOST},
		{"Host: evil.example:8080\nSec-Fetch-Site: same-origin", TOKENLESS_HOST},
		{"Host: 127.0.0.1.evil.example", TOKENLESS_HOST},
		{"Host: localhost.evil.example", TOKENLESS_HOST},
		{"Host: a.localhost", TOKENLESS_HOST},
		{"Host: localhost.", TOKENLESS_HOST},
		{"Host: 10.0.0.1", TOKENLESS_HOST},
		{"Host: 0.0.0.0:8080", TOKENLESS_HOST},
		{"Host: 0", TOKENLESS_HOST},
		{"Host: 127.1", TOKENLESS_HOST},
		{"Host: 2130706433", TOKENLESS_HOST},
		{"Host: 192.0.2.1", TOKENLESS_HOST},
		{"Host: [::]", TOKENLESS_HOST},
		{"Host: [fd00::1]", TOKENLESS_HOST},
		/* none, or an invalid one */
		{"", TOKENLESS_HOST},
		{"Host:", TOKENLESS_HOST},
		{"Host: :8080", TOKENLESS_HOST},
		{"Host: 127.0.0.1:80x", TOKENLESS_HOST},
		{"Host: 127.0.0.1:80:80", TOKENLESS_HOST},
		{"Host: ::1", TOKENLESS_HOST},
		{"Host: [::1", TOKENLESS_HOST},
		{"Host: [::1]8080", TOKENLESS_HOST},
		{"Host: [127.0.0.1]", TOKENLESS_HOST},
		{"Host: []", TOKENLESS_HOST},
		{"Host: [", TOKENLESS_HOST},
		{"Host: user@127.0.0.1", TOKENLESS_HOST},
		{"Host: http://127.0.0.1", TOKENLESS_HOST},
		{"Host: 127.0.0.1\nHost: evil.example", TOKENLESS_HOST},
		{"Host: 127.0.0.1\nHost: 127.0.0.1", TOKENLESS_HOST},
		{"Host: evil.example\nHost: 127.0.0.1\nHost: 127.0.0.1", TOKENLESS_HOST},
		/* pages of the server's own origin */
		{LOCAL "Origin: http://127.0.0.1:8080\nSec-Fetch-Site: same-origin", TOKENLESS_MAY},
		{LOCAL "Sec-Fetch-Site: none", TOKENLESS_MAY},
		{LOCAL "Sec-Fetch-Site: Same-Origin\nSec-Fetch-Mode: cors\nSec-Fetch-Dest: empty", TOKENLESS_MAY},
		{"Host: localhost:80\nOrigin: http://localhost", TOKENLESS_MAY},
		{"Host: localhost\nOrigin: HTTP://LOCALHOST:80", TOKENLESS_MAY},
		{"Host: feeds.lan:8080\nOrigin: http://feeds.lan:8080", TOKENLESS_MAY},
		/* pages of other origins */
		{LOCAL "Origin: http://evil.example", TOKENLESS_ORIGIN},
		{LOCAL "Origin: null", TOKENLESS_ORIGIN},
		{LOCAL "Origin:", TOKENLESS_ORIGIN},
		{LOCAL "Origin: http://127.0.0.1:8081", TOKENLESS_ORIGIN},
		{LOCAL "Origin: http://127.0.0.1", TOKENLESS_ORIGIN},
		{LOCAL "Origin: https://127.0.0.1:8080", TOKENLESS_ORIGIN},
		{LOCAL "Origin: http://localhost:8080", TOKENLESS_ORIGIN},
		{LOCAL "Origin: 127.0.0.1:8080", TOKENLESS_ORIGIN},
		{LOCAL "Origin: http://127.0.0.1:8080/", TOKENLESS_ORIGIN},
		{LOCAL "Origin: http://127.0.0.1:8080.evil.example", TOKENLESS_ORIGIN},
		{LOCAL "Origin: chrome-extension://abc", TOKENLESS_ORIGIN},
		{LOCAL "Origin: http://127.0.0.1:8080\nOrigin: http://evil.example", TOKENLESS_ORIGIN},
		{LOCAL "Origin: http://127.0.0.1:8080 http://evil.example", TOKENLESS_ORIGIN},
		{LOCAL "Sec-Fetch-Site: cross-site", TOKENLESS_ORIGIN},
		{LOCAL "Sec-Fetch-Site: same-site", TOKENLESS_ORIGIN},
		{LOCAL "Sec-Fetch-Site:", TOKENLESS_ORIGIN},
		{LOCAL "sec-fetch-site: none\nSec-Fetch-Site: cross-site", TOKENLESS_ORIGIN},
		{LOCAL "Origin: http://127.0.0.1:8080\nSec-Fetch-Site: cross-site", TOKENLESS_ORIGIN},
		/* proxies, whatever they send */
		{LOCAL "X-Forwarded-For: 203.0.113.5", TOKENLESS_FORWARDED},
		{LOCAL "x-forwarded-for: 127.0.0.1", TOKENLESS_FORWARDED},
		{LOCAL "X-Forwarded-For:", TOKENLESS_FORWARDED},
		{LOCAL "X-Forwarded-For: unix:", TOKENLESS_FORWARDED},
		{LOCAL "X-Real-IP: unix:", TOKENLESS_FORWARDED},
		{LOCAL "Forwarded: for=127.0.0.1", TOKENLESS_FORWARDED},
		{LOCAL "Forwarded:", TOKENLESS_FORWARDED},
		{LOCAL "Via: 1.1 p", TOKENLESS_FORWARDED},
		{LOCAL "X-Forwarded-Proto: https", TOKENLESS_FORWARDED},
		{LOCAL "X-Forwarded-Host: a", TOKENLESS_FORWARDED},
		{LOCAL "CF-Connecting-IP: 127.0.0.1", TOKENLESS_FORWARDED},
		{LOCAL "True-Client-IP: ::1", TOKENLESS_FORWARDED},
		{LOCAL "X-Client-IP: ::1", TOKENLESS_FORWARDED},
		{LOCAL "X-Forwarder: x\nViable: x\nX-Request-Id: 1\nHosts: evil.example", TOKENLESS_MAY},
	};

	for (size_t i = 0; i < FW_N(CASE); i++) {
		struct tokenless_head h = head(CASE[i].lines);
		enum tokenless got = tokenless_check(FW_TOKENLESS_OPEN, NAMES, &h);

		ck_assert_msg(got == CASE[i].want, "%s: %d, want %d", CASE[i].lines, (int)got, (int)CASE[i].want);
		for (enum fw_tokenless t = FW_TOKENLESS_TOKENS; t <= FW_TOKENLESS_WEBSUB; t++)
			ck_assert_int_eq(tokenless_check(t, NAMES, &h), TOKENLESS_CLOSED);
		h.local = false;
		ck_assert_int_eq(tokenless_check(FW_TOKENLESS_OPEN, NAMES, &h), TOKENLESS_REMOTE);
	}
}
END_TEST

START_TEST(with_tls_and_without_names)
{
	struct tokenless_head h = head("Host: localhost:443\nOrigin: https://localhost");

	ck_assert_int_eq(tokenless_check(FW_TOKENLESS_OPEN, NULL, &h), TOKENLESS_ORIGIN);
	h.tls = true;
	ck_assert_int_eq(tokenless_check(FW_TOKENLESS_OPEN, NULL, &h), TOKENLESS_MAY);
	h = head("Host: localhost\nOrigin: http://localhost");
	h.tls = true;
	ck_assert_int_eq(tokenless_check(FW_TOKENLESS_OPEN, NULL, &h), TOKENLESS_ORIGIN);
	h = head("Host: feeds.lan");
	ck_assert_int_eq(tokenless_check(FW_TOKENLESS_OPEN, NULL, &h), TOKENLESS_HOST);
	h = head("Host:");
	ck_assert_int_eq(tokenless_check(FW_TOKENLESS_OPEN, ",", &h), TOKENLESS_HOST);
	ck_assert_int_eq(tokenless_check(FW_TOKENLESS_OPEN, "", &h), TOKENLESS_HOST);
}
END_TEST

#define FORM "Content-Type: application/x-www-form-urlencoded\n"
#define SITE "Sec-Fetch-Mode: no-cors\n"
#define ORIGIN "Origin: http://127.0.0.1:8080\n"

/*
 * Beside the other rules: with a token this alone keeps a page from using the credentials of its
 * reader's browser.
 */
START_TEST(bodies)
{
	static const struct {
		const char *lines;
		bool json, lines_too, feed;
	} CASE[] = {
		{"Content-Type: application/json", true, true, true},
		{"content-type: Application/JSON ; charset=utf-8", true, true, true},
		{"Content-Type: application/json\n" ORIGIN SITE, true, true, true},
		{"Content-Type: application/x-ndjson", false, true, true},
		{"Content-Type: application/jsonl; charset=utf-8\n" ORIGIN, false, true, true},
		{"", true, true, true},
		{"Content-Type:", true, true, true},
		{FORM, true, true, true}, /* curl -d */
		{ORIGIN, false, false, false},
		{SITE, false, false, false},
		{"Content-Type:\n" ORIGIN, false, false, false},
		{"Content-Type: ;\n" ORIGIN, false, false, false}, /* a Blob without a type */
		{FORM ORIGIN, false, false, true},
		{FORM SITE, false, false, true},
		{FORM "Origin: null", false, false, true},
		{"Content-Type: text/plain", false, false, true},
		{"Content-Type: text/plain;charset=UTF-8\n" ORIGIN, false, false, true},
		{"Content-Type: multipart/form-data; boundary=x", false, false, true},
		{"Content-Type: text/plain; application/json", false, false, true},
		{"Content-Type: application/jsonp", false, false, true},
		{"Content-Type: application/xml", false, false, true},
	};

	for (size_t i = 0; i < FW_N(CASE); i++) {
		struct tokenless_head h = head(CASE[i].lines);

		ck_assert_msg(tokenless_body_fits(BODY_ANY, &h), "%s", CASE[i].lines);
		ck_assert_msg(tokenless_body_fits(BODY_JSON, &h) == CASE[i].json, "JSON: %s", CASE[i].lines);
		ck_assert_msg(tokenless_body_fits(BODY_LINES, &h) == CASE[i].lines_too, "lines: %s", CASE[i].lines);
		ck_assert_msg(tokenless_body_fits(BODY_FEED, &h) == CASE[i].feed, "feed: %s", CASE[i].lines);
	}
}
END_TEST

/* By listening address and by other settings; a token always decides. */
START_TEST(by_settings)
{
	static const struct {
		const char *listen;
		bool local;
	} CASE[] = {
		{NULL, true},
		{"", true},
		{"unix:/run/x.sock", true},
		{"127.0.0.1:8080", true},
		{"127.0.0.5:0", true},
		{"localhost:80", true},
		{"LOCALHOST:80", true},
		{"[::1]:8080", true},
		{"::1:8080", true},
		{"[::ffff:127.0.0.1]:80", true},
		{":8080", false},
		{"0.0.0.0:8080", false},
		{"[::]:8080", false},
		{":::8080", false},
		{"192.0.2.1:80", false},
		{"[2001:db8::1]:80", false},
		{"127.0.0.1.evil.example:80", false},
		{"localhost.example:80", false},
		{"machine:80", false},
		{"127.evil:80", false},
		{"8080", false},
		{"127.0.0.1", false},
	};
	static char url[] = "https://feeds.example.org/", proxies[] = "unix";
	struct fw_config c = {0};
	char words[FW_TOKENLESS_TEXT_MAX];

	for (size_t i = 0; i < FW_N(CASE); i++) {
		ck_assert_msg(fw_listen_is_local(CASE[i].listen) == CASE[i].local, "%s", CASE[i].listen);
		c.listen = (char *)(uintptr_t)CASE[i].listen;
		ck_assert_int_eq(fw_tokenless(&c, false), CASE[i].local ? FW_TOKENLESS_OPEN : FW_TOKENLESS_LISTEN);
		ck_assert_int_eq(fw_tokenless(&c, true), FW_TOKENLESS_TOKENS);
	}
	c.listen = NULL;
	c.websub_url = url;
	ck_assert_int_eq(fw_tokenless(&c, false), FW_TOKENLESS_WEBSUB);
	c.trusted_proxies = proxies;
	ck_assert_int_eq(fw_tokenless(&c, false), FW_TOKENLESS_PROXIES);
	ck_assert_int_eq(fw_tokenless(&c, true), FW_TOKENLESS_TOKENS);
	for (enum fw_tokenless t = FW_TOKENLESS_OPEN; t <= FW_TOKENLESS_WEBSUB; t++) {
		fw_tokenless_text(t, words);
		ck_assert_msg(strlen(words) < FW_TOKENLESS_TEXT_MAX - 1, "%s", words); /* whole */
		ck_assert_ptr_nonnull(strstr(words, fw_tokenless_why(t)));
		ck_assert_int_eq(strstr(words, "are refused") == NULL, t == FW_TOKENLESS_OPEN);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit http tokenless");
	TCase *t = tcase_create("tokenless");

	tcase_add_test(t, by_headers);
	tcase_add_test(t, with_tls_and_without_names);
	tcase_add_test(t, bodies);
	tcase_add_test(t, by_settings);
	suite_add_tcase(s, t);
	return run_suite(s);
}
