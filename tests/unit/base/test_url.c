/* SPDX-License-Identifier: ISC */
/* URLs: split, resolve, clean, show (NET-09, NET-18, NET-19, LIM-09). */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/url.h"
#include "../../suite.h"

#define ABSENT "-"

static void check_part(const char *url, const char *name, struct fw_str got, const char *want)
{
	if (strcmp(want, ABSENT) == 0)
		ck_assert_msg(!got.p || !got.len, "%s: %s is '%.*s'", url, name, FW_STR_ARG(got));
	else
		ck_assert_msg(
			fw_str_eq(got, fw_str(want)), "%s: %s is '%.*s', want '%s'", url, name, FW_STR_ARG(got), want);
}

START_TEST(split)
{
	static const struct {
		const char *url, *scheme, *user, *host, *port, *path, *query, *fragment;
	} T[] = {
		{"http://u:p@h.org:80/a/b?q=1?2#f#g", "http", "u:p", "h.org", "80", "/a/b", "q=1?2", "f#g"},
		{"https://[2001:db8::1]:443/", "https", ABSENT, "2001:db8::1", "443", "/", ABSENT, ABSENT},
		{"https://[::1]", "https", ABSENT, "::1", ABSENT, ABSENT, ABSENT, ABSENT},
		{"http://a@b@c/", "http", "a@b", "c", ABSENT, "/", ABSENT, ABSENT},
		{"mailto:x@y.z", "mailto", ABSENT, ABSENT, ABSENT, "x@y.z", ABSENT, ABSENT},
		{"//h/p", ABSENT, ABSENT, "h", ABSENT, "/p", ABSENT, ABSENT},
		{"a/b:c", ABSENT, ABSENT, ABSENT, ABSENT, "a/b:c", ABSENT, ABSENT},
		{"1http://x", ABSENT, ABSENT, ABSENT, ABSENT, "1http://x", ABSENT, ABSENT},
		{"?q", ABSENT, ABSENT, ABSENT, ABSENT, ABSENT, "q", ABSENT},
		{"#f?x", ABSENT, ABSENT, ABSENT, ABSENT, ABSENT, ABSENT, "f?x"},
		{"http://h?x/y", "http", ABSENT, "h", ABSENT, ABSENT, "x/y", ABSENT},
		{"http://h/@x:1", "http", ABSENT, "h", ABSENT, "/@x:1", ABSENT, ABSENT},
		{"http://h:/", "http", ABSENT, "h", ABSENT, "/", ABSENT, ABSENT},
		{"urn:uuid:1-2", "urn", ABSENT, ABSENT, ABSENT, "uuid:1-2", ABSENT, ABSENT},
		{"", ABSENT, ABSENT, ABSENT, ABSENT, ABSENT, ABSENT, ABSENT},
		{":", ABSENT, ABSENT, ABSENT, ABSENT, ":", ABSENT, ABSENT},
	};

	for (size_t i = 0; i < FW_N(T); i++) {
		struct fw_url u;

		fw_url_split(fw_str(T[i].url), &u);
		check_part(T[i].url, "scheme", u.scheme, T[i].scheme);
		check_part(T[i].url, "userinfo", u.userinfo, T[i].user);
		check_part(T[i].url, "host", u.host, T[i].host);
		check_part(T[i].url, "port", u.port, T[i].port);
		check_part(T[i].url, "path", u.path, T[i].path);
		check_part(T[i].url, "query", u.query, T[i].query);
		check_part(T[i].url, "fragment", u.fragment, T[i].fragment);
	}
}
END_TEST

START_TEST(resolve_in_the_wild)
{
	static const struct {
		const char *base, *ref, *want;
	} T[] = {
		{"http://a/b", "\t x\n y ", "http://a/x%20y"},
		{"http://a/b", "ht\ntp://c/d", "http://c/d"},
		{"http://a", "b", "http://a/b"},
		{"http://a?q", "b", "http://a/b"},
		{"http://a/b?q", "", "http://a/b?q"},
		{"http://a/b?q#f", "#g", "http://a/b?q#g"},
		{"http://a/b/", "../../../c", "http://a/c"},
		{"http://a/b/c", "..", "http://a/"},
		{"http://a/b/c/", "./../d/./e/..", "http://a/b/d/"},
		{"https://a/b", "//c", "https://c"},
		{"https://a/b", "http:c", "http:c"},
		{"http://u:p@a:8/b", "c", "http://u:p@a:8/c"},
		{"http://[::1]:8/b", "/c", "http://[::1]:8/c"},
		{"mailto:a@b", "c", "c"},
		{"urn:x:y", "c", "c"},
		{"c", "d", "d"},
		{"file:///a/b", "c", "file:///a/c"},
		{"http://a/b", "javascript:x", "javascript:x"},
		{"http://a/b", "d:e", "d:e"},
		{"http://a/\xc3\xa9/b", "\xc3\xbc", "http://a/\xc3\xa9/\xc3\xbc"},
		{"http://a/b/..", "c", "http://a/b/c"},
		{"http://a//b//c", "d", "http://a//b//d"},
		{"http://a/b", "?", "http://a/b?"},
		{"http://a/b", "#", "http://a/b#"},
		{"", "c d", "c%20d"},
		{"http://a/b", "...", "http://a/..."},
	};
	struct fw_arena a;

	fw_arena_init(&a, 0);
	for (size_t i = 0; i < FW_N(T); i++) {
		struct fw_str got = fw_url_resolve(&a, fw_str(T[i].base), fw_str(T[i].ref));

		ck_assert_msg(fw_str_eq(got, fw_str(T[i].want)), "%s + %s: %.*s, want %s", T[i].base, T[i].ref,
			FW_STR_ARG(got), T[i].want);
	}
	ck_assert(fw_str_eq(fw_url_resolve(&a, FW_STR_NONE, FW_STR("x")), FW_STR("x")));
	ck_assert(fw_str_eq(fw_url_resolve(&a, FW_STR("http://a/b"), FW_STR_NONE), FW_STR("http://a/b")));
	fw_arena_finish(&a);
	fw_arena_init(&a, 1); /* out of memory */
	ck_assert_ptr_null(fw_url_resolve(&a, FW_STR("http://a/b"), FW_STR("c d")).p);
	ck_assert_ptr_null(fw_url_resolve(&a, FW_STR("http://a/b"), FW_STR("c")).p);
	fw_arena_finish(&a);
}
END_TEST

/* Resolving a resolved URL changes nothing, whatever its parts. */
START_TEST(resolve_twice)
{
	static const char soup[] = "ab/.:?#@[]%\\ \t";
	uint64_t x = 88172645463325252u;
	struct fw_arena a;

	fw_arena_init(&a, 0);
	for (int n = 0; n < 20000; n++) {
		char ref[16];
		size_t len = (size_t)n % sizeof(ref);
		struct fw_str once, twice;

		for (size_t i = 0; i < len; i++) {
			x ^= x << 13, x ^= x >> 7, x ^= x << 17;
			ref[i] = soup[x % (sizeof(soup) - 1)];
		}
		once = fw_url_resolve(&a, FW_STR("http://h/d/e?q"), (struct fw_str){ref, len});
		ck_assert_ptr_nonnull(once.p);
		if (!fw_str_starts(once, FW_STR("http:")))
			continue;
		twice = fw_url_resolve(&a, FW_STR("http://h/d/e?q"), once);
		ck_assert_msg(fw_str_eq(once, twice), "%.*s: %.*s, then %.*s", (int)len, ref, FW_STR_ARG(once),
			FW_STR_ARG(twice));
	}
	fw_arena_finish(&a);
}
END_TEST

START_TEST(clean)
{
	static const struct {
		const char *in, *want, *words;
	} T[] = {
		{"http://Example.ORG:80", "http://example.org/", NULL},
		{"HTTPS://example.org:443/A?B=C", "https://example.org/A?B=C", NULL},
		{"http://example.org:443/", "http://example.org:443/", NULL},
		{"http://example.org:/x", "http://example.org/x", NULL},
		{"https://example.org?x", "https://example.org/?x", NULL},
		{"http://example.org/a b?c d", "http://example.org/a%20b?c%20d", NULL},
		{"http://m\xc3\xbcnchen.de/", "http://m\xc3\xbcnchen.de/", NULL},
		{"http://h_1.example/", "http://h_1.example/", NULL},
		/* FRB 061, 066: these must not be normalised */
		{"http://example.org/%7Ea/../b", "http://example.org/%7Ea/../b", NULL},
		{"http://x.org:+80/", NULL, "not a port"},
		{"http://x.org: 80/", NULL, "not a port"},
		{"http://x.org:8e1/", NULL, "not a port"},
		{"http://x.org:65536/", NULL, "not a port"},
		{"http://x.org:65535/", "http://x.org:65535/", NULL},
		{"http://ex%61mple.org/", NULL, "zone ids"},
		{"http://a\tb.org/", NULL, "control character at byte 9"},
		{"http://exa mple.org/", NULL, "invalid character"},
		{"http://[::1/", NULL, "invalid character"},
		{"http://[::g]/", NULL, "invalid character"},
		{"http://[::1%25lo]/", NULL, "zone ids"},
		{"gopher://x.org/", NULL, "not http or https"},
		{"http://@/", NULL, "has no host"},
	};
	struct fw_str url, user, pass;
	struct fw_err err;
	struct fw_arena a;
	char big[9000];

	fw_arena_init(&a, 0);
	for (size_t i = 0; i < FW_N(T); i++) {
		int rc = fw_url_clean(&a, fw_str(T[i].in), &url, &user, &pass, &err);

		ck_assert_msg(rc == (T[i].want ? 0 : FW_EINVAL), "%s: %d %s", T[i].in, rc, rc ? err.text : url.p);
		if (T[i].want)
			ck_assert_str_eq(url.p, T[i].want);
		else
			ck_assert_msg(strstr(err.text, T[i].words) != NULL, "%s: %s", T[i].in, err.text);
	}
	ck_assert_int_eq(fw_url_clean(&a, FW_STR("http://u%3A:p%40%zz@h/"), &url, &user, &pass, &err), 0);
	ck_assert(fw_str_eq(user, FW_STR("u:")) && fw_str_eq(pass, FW_STR("p@%zz")));
	ck_assert_int_eq(fw_url_clean(&a, FW_STR("http://u@h/"), &url, &user, &pass, &err), 0);
	ck_assert(fw_str_eq(user, FW_STR("u")) && !pass.p);
	memset(big, 'a', sizeof(big));
	memcpy(big, "http://x.org/", 13);
	ck_assert_int_eq(fw_url_clean(&a, (struct fw_str){big, sizeof(big)}, &url, &user, &pass, &err), FW_EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "longer than 8192"));
	memcpy(big, "http://aaaaaa", 13);
	ck_assert_int_eq(fw_url_clean(&a, (struct fw_str){big, 300}, &url, &user, &pass, &err), FW_EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "253"));
	ck_assert_int_eq(fw_url_clean(&a, FW_STR_NONE, &url, &user, &pass, &err), FW_EINVAL);
	fw_arena_finish(&a);
	fw_arena_init(&a, 1);
	ck_assert_int_eq(fw_url_clean(&a, FW_STR("x.org"), &url, &user, &pass, &err), FW_ENOMEM);
	fw_arena_finish(&a);
}
END_TEST

START_TEST(origin_host_port)
{
	static const struct {
		const char *url, *want;
	} T[] = {
		{"HTTP://Example.ORG:80/x", "http://example.org"},
		{"https://example.org.:8443/x", "https://example.org:8443"},
		{"https://[2001:DB8::1]/", "https://[2001:db8::1]"},
		{"http://u:p@h/", "http://h"},
		{"http://h:443", "http://h:443"},
		{"mailto:x", NULL},
		{"//h/x", NULL},
		{"http:///x", NULL},
		{"http://h:99999/", NULL},
		{"http://h:+1/", NULL},
		{"ftp://h/", NULL},
		{"", NULL},
	};
	char host[8];

	for (size_t i = 0; i < FW_N(T); i++) {
		struct fw_buf b = FW_BUF_INIT(0);
		int rc = fw_url_origin(fw_str(T[i].url), &b);

		ck_assert_msg(rc == (T[i].want ? 0 : FW_EINVAL), "%s: %d", T[i].url, rc);
		if (T[i].want)
			ck_assert_str_eq(b.p, T[i].want);
		fw_buf_finish(&b);
	}
	/* it does not fit in 8 bytes */
	ck_assert(fw_url_host(FW_STR("http://ABC.de.f/"), host, sizeof(host)) == false);
	ck_assert(fw_url_host(FW_STR("http://ABC.de./"), host, sizeof(host)) && strcmp(host, "abc.de") == 0);
	ck_assert(
		!fw_url_host(FW_STR("http://./"), host, sizeof(host)) && !fw_url_host(FW_STR("x"), host, sizeof(host)));
	ck_assert(fw_url_port(FW_STR("https://h")) == 443 && fw_url_port(FW_STR("HTTP://h")) == 80 &&
		fw_url_port(FW_STR("ftp://h")) == -1 && fw_url_port(FW_STR("http://h:0")) == -1 &&
		fw_url_port(FW_STR("http://h:8080")) == 8080);
}
END_TEST

/* Ports of settings: behind an address or network, or in ADDRESS:PORT. */
START_TEST(ports)
{
	static const struct {
		const char *text, *rest;
		int port; /* -1: refused */
	} T[] = {
		{"10.1.2.3", "10.1.2.3", 0},
		{"10.1.2.3:65535", "10.1.2.3", 65535},
		{"10.0.0.0/8:1", "10.0.0.0/8", 1},
		{"fd00::1", "fd00::1", 0},
		{"[fd00::1]", "[fd00::1]", 0},
		{"[fd00::1]:53", "[fd00::1]", 53},
		{"[fd00::]/8:53", "[fd00::]/8", 53},
		{"10.1.2.3:0", NULL, -1},
		{"10.1.2.3:", NULL, -1},
		{"10.1.2.3:65536", NULL, -1},
		{"10.1.2.3:+5", NULL, -1},
		{"10.1.2.3: 5", NULL, -1},
		{"[fd00::1]:80000", NULL, -1},
	};
	struct fw_str rest, host, port;
	int number;

	for (size_t i = 0; i < FW_N(T); i++) {
		bool ok = fw_port_split(fw_str(T[i].text), &rest, &number);

		ck_assert_msg(ok == (T[i].port >= 0), "%s", T[i].text);
		ck_assert_msg(!ok || (number == T[i].port && fw_str_eq(rest, fw_str(T[i].rest))), "%s", T[i].text);
	}
	ck_assert(!fw_host_port_split(FW_STR("8080"), &host, &port));
	ck_assert(fw_host_port_split(FW_STR("[::1]:80"), &host, &port) && fw_str_eq(host, FW_STR("::1")) &&
		fw_str_eq(port, FW_STR("80")));
	ck_assert(fw_host_port_split(FW_STR(":80"), &host, &port) && host.len == 0);
}
END_TEST

START_TEST(escaped)
{
	struct fw_buf b = FW_BUF_INIT(0);

	fw_url_escape(&b, FW_STR("aZ9-._~ &=+%/\0\xc3\xa9"));
	ck_assert_str_eq(b.p, "aZ9-._~%20%26%3D%2B%25%2F%00%C3%A9");
	fw_buf_finish(&b);
}
END_TEST

START_TEST(shown_without_secrets)
{
	static const struct {
		const char *url, *want;
	} T[] = {
		{"http://user:secret@h/p", "http://***@h/p"},
		{"http://h/p?x", "http://h/p?x"},
		{"http://h/\x1b[2J\n", "http://h/\\x1b[2J\\n"},
		{"http://a:b@c:d@h/", "http://***@h/"},
		{"//u:p@h/", "//***@h/"},
		{"", ""},
	};
	struct fw_buf b = FW_BUF_INIT(0);
	char big[2000];

	for (size_t i = 0; i < FW_N(T); i++) {
		fw_buf_reset(&b);
		fw_url_show(&b, fw_str(T[i].url));
		ck_assert_msg(fw_str_eq(fw_buf_str(&b), fw_str(T[i].want)), "%s: %s", T[i].url, b.p);
	}
	memset(big, 0x1b, sizeof(big)); /* escaped, and still short */
	fw_buf_reset(&b);
	fw_buf_adds(&b, "before ");
	fw_url_show(&b, (struct fw_str){big, sizeof(big)});
	ck_assert(b.len <= 7 + 300 && strncmp(b.p, "before \\x1b", 11) == 0 && strcmp(b.p + b.len - 3, "...") == 0);
	fw_buf_finish(&b);
}
END_TEST

START_TEST(web_or_not)
{
	static const char *const IS[] = {
		"http://a", "HTTPS://a.example/b", "http://[::1]/", "https://\xc3\xbc.example"};
	static const char *const NOT[] = {"", "http:/", "http://", "https://", "http:///a", "http://?a", "https://#a",
		"http://:80/", "https:// a", "httpx://a.example", "tag:a.example,2026:1", "//a.example/", "a.example"};

	for (size_t i = 0; i < FW_N(IS); i++)
		ck_assert_msg(fw_url_is_web(fw_str(IS[i])), "%s", IS[i]);
	for (size_t i = 0; i < FW_N(NOT); i++)
		ck_assert_msg(!fw_url_is_web(fw_str(NOT[i])), "%s", NOT[i]);
}
END_TEST

/* Which of two addresses of a document stands, whatever their ranks. */
START_TEST(weighed)
{
	struct fw_str http = FW_STR("https://a.example/"), other = FW_STR("tag:a.example,2026:1"),
		      relative = FW_STR("a/b");

	ck_assert(fw_url_weigh(http, other) < 0 && fw_url_weigh(relative, other) < 0);
	ck_assert(fw_url_weigh(other, http) > 0 && fw_url_weigh(other, relative) > 0);
	ck_assert(!fw_url_weigh(http, http) && !fw_url_weigh(other, other) && !fw_url_weigh(http, relative));
	ck_assert(!fw_url_weigh(FW_STR_NONE, other));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit base url");
	TCase *t = tcase_create("url");

	tcase_add_test(t, split);
	tcase_add_test(t, resolve_in_the_wild);
	tcase_add_test(t, resolve_twice);
	tcase_add_test(t, clean);
	tcase_add_test(t, origin_host_port);
	tcase_add_test(t, ports);
	tcase_add_test(t, escaped);
	tcase_add_test(t, shown_without_secrets);
	tcase_add_test(t, web_or_not);
	tcase_add_test(t, weighed);
	suite_add_tcase(s, t);
	return run_suite(s);
}
