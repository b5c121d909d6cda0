/* SPDX-License-Identifier: ISC */
/* The client's address from proxies' headers: chains, forgeries, garbage; errors in the setting. */
#include <arpa/inet.h>
#include <check.h>
#include <stdlib.h>

#include "http/server/http.h"
#include "../../suite.h"

static const char OURS[] = "127.0.0.0/8, 10.0.0.0/8, fd00::/8,unix";

/* Headers (two at most), read from left to right; NULL: none is trusted. */
static const char *client(const char *first, const char *second)
{
	static char text[INET6_ADDRSTRLEN];
	struct http_proxies p;
	struct http_forwarded h = {.known = false};
	bool four;

	ck_assert_int_eq(http_proxies_init(&p, OURS, NULL), 0);
	http_forwarded_add(&p, fw_str(first), &h);
	if (second)
		http_forwarded_add(&p, fw_str(second), &h);
	if (!h.known)
		return NULL;
	four = fw_ip_is4(h.addr);
	return inet_ntop(four ? AF_INET : AF_INET6, h.addr + (four ? 12 : 0), text, sizeof(text));
}

START_TEST(chains)
{
	static const struct {
		const char *first, *second, *want;
	} T[] = {
		{"192.0.2.1", NULL, "192.0.2.1"},
		{" 192.0.2.1 ", NULL, "192.0.2.1"},
		{"192.0.2.1, 10.0.0.1", NULL, "192.0.2.1"},
		{"192.0.2.1,10.0.0.1,127.0.0.2", NULL, "192.0.2.1"},
		/* the left address is the client's invention */
		{"203.0.113.9, 192.0.2.1, 10.0.0.1", NULL, "192.0.2.1"},
		{"203.0.113.9", "192.0.2.1, 10.0.0.1", "192.0.2.1"}, /* two headers are one list */
		{"203.0.113.9", "192.0.2.1", "192.0.2.1"},
		{"192.0.2.1", "10.0.0.1", "192.0.2.1"},
		{"127.0.0.1", "192.0.2.1", "192.0.2.1"},  /* no way to pass for loopback */
		{"10.0.0.3, 10.0.0.1", NULL, "10.0.0.3"}, /* a client inside our network */
		{"2001:db8::1", NULL, "2001:db8::1"},
		{"[2001:db8::1]:443, fd00::2", NULL, "2001:db8::1"},
		{"\"[2001:db8::1]:443\"", NULL, "2001:db8::1"},
		{"[2001:db8::1]", NULL, "2001:db8::1"},
		{"192.0.2.1:5000, 10.0.0.1:80", NULL, "192.0.2.1"},
		{"::ffff:192.0.2.1", NULL, "192.0.2.1"},
		{"::ffff:10.0.0.1", "192.0.2.1", "192.0.2.1"},
		/* garbage ends the trusted part: the address to the right of it counts */
		{"unknown", NULL, NULL},
		{"", NULL, NULL},
		{",", NULL, NULL},
		{"192.0.2.1, unknown", NULL, NULL},
		{"192.0.2.1, , 10.0.0.1", NULL, "10.0.0.1"},
		{"192.0.2.1, _hidden, 10.0.0.2, 10.0.0.1", NULL, "10.0.0.2"},
		{"unknown, 192.0.2.1, 10.0.0.1", NULL, "192.0.2.1"},
		{"192.0.2.1", "unknown", NULL},
		{"[192.0.2.1]", NULL, NULL},
		{"[2001:db8::1]443", NULL, NULL},
		{"[2001:db8::1", NULL, NULL},
		{"[]", NULL, NULL},
		{"\"", NULL, NULL},
		{"192.0.2.1/24", NULL, NULL},
		{"192.0.2.1 10.0.0.1", NULL, NULL},
		{"192.0.2.999", NULL, NULL},
		{"example.org", NULL, NULL},
	};

	for (size_t i = 0; i < FW_N(T); i++) {
		const char *got = client(T[i].first, T[i].second);

		ck_assert_msg(fw_str_eq(fw_str(got), fw_str(T[i].want)) && !got == !T[i].want, "%s | %s: %s, not %s",
			T[i].first, T[i].second ? T[i].second : "", got ? got : "nothing",
			T[i].want ? T[i].want : "nothing");
	}
}
END_TEST

START_TEST(setting)
{
	struct http_proxies p;
	struct fw_err err;
	struct fw_buf many = FW_BUF_INIT(0);

	ck_assert_int_eq(http_proxies_init(&p, NULL, &err), 0);
	ck_assert(!p.net_n && !p.local);
	ck_assert_int_eq(http_proxies_init(&p, " , ,", &err), 0);
	ck_assert(!p.net_n && !p.local);
	ck_assert_int_eq(http_proxies_init(&p, OURS, &err), 0);
	ck_assert(p.net_n == 3 && p.local);
	ck_assert_int_eq(http_proxies_init(&p, "10.0.0.1, everybody", &err), FW_EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "trusted_proxies: 'everybody' is not a network"));
	ck_assert_int_eq(http_proxies_init(&p, "0.0.0.0/0", &err), FW_EINVAL);
	ck_assert_int_eq(http_proxies_init(&p, "::/0", &err), FW_EINVAL);
	for (int i = 0; i <= HTTP_PROXIES_MAX; i++)
		fw_buf_addf(&many, "10.0.0.%d,", i);
	ck_assert_int_eq(http_proxies_init(&p, many.p, &err), FW_EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "more than 64"));
	fw_buf_finish(&many);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit http client");
	TCase *tc = tcase_create("client");

	tcase_add_test(tc, chains);
	tcase_add_test(tc, setting);
	suite_add_tcase(s, tc);
	return run_suite(s);
}
