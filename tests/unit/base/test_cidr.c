/* SPDX-License-Identifier: ISC */
/* Addresses and networks: every spelling, the limits of prefixes, refusals. */
#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/un.h>

#include "base/cidr.h"
#include "base/str.h"
#include "../../suite.h"

static bool has(const char *net, const char *ip)
{
	struct fw_cidr n;
	unsigned char a[16];

	ck_assert_msg(fw_cidr_parse(fw_str(net), &n), "%s", net);
	ck_assert_msg(fw_ip_parse(fw_str(ip), a), "%s", ip);
	return fw_cidr_has(&n, a);
}

START_TEST(prefixes)
{
	ck_assert(has("10.0.0.0/8", "10.0.0.0") && has("10.0.0.0/8", "10.255.255.255"));
	ck_assert(!has("10.0.0.0/8", "9.255.255.255") && !has("10.0.0.0/8", "11.0.0.0"));
	ck_assert(has("172.16.0.0/12", "172.31.255.255") && !has("172.16.0.0/12", "172.32.0.0"));
	ck_assert(has("192.0.2.7", "192.0.2.7") && !has("192.0.2.7", "192.0.2.6"));
	ck_assert(has("192.0.2.7/31", "192.0.2.6") && has("128.0.0.0/1", "255.1.1.1") &&
		!has("128.0.0.0/1", "127.0.0.1"));
	/* a mapped address: the same */
	ck_assert(has("127.0.0.0/8", "::ffff:127.0.0.1") && has("::ffff:127.0.0.0/104", "127.3.2.1"));
	ck_assert(has("fd00::/8", "fdff::1") && !has("fd00::/8", "fe00::1") && has("[fd00::]/8", "fd00::1"));
	ck_assert(has("::1", "::1") && has("[::1]", "::1") && has("::1/128", "::1") && !has("::1", "127.0.0.1"));
	ck_assert(has("2001:db8::/33", "2001:db8:7fff::") && !has("2001:db8::/33", "2001:db8:8000::"));
}
END_TEST

START_TEST(refused)
{
	static const char *const T[] = {"", "/8", "10.0.0.0/", "10.0.0.0/0", "10.0.0.0/33", "10.0.0.0/-1",
		"10.0.0.0/+8", "10.0.0.0/8/8", "10.0.0/8", "10.0.0.256", "::/0", "::1/129", "::g", "[::1", "::1]", "[]",
		"[10.0.0.1]", "localhost", "10.0.0.1:80", "*", "0", "1.2.3.4 5",
		"1111:2222:3333:4444:5555:6666:7777:8888:9999", "::ffff:1.2.3.4.5", "10.0.0.0/99999999999999999999",
		"0000000000000000000000000000000000000000000000000000000000000001"};
	struct fw_cidr n;
	unsigned char a[16];

	for (size_t i = 0; i < FW_N(T); i++)
		ck_assert_msg(!fw_cidr_parse(fw_str(T[i]), &n), "%s", T[i]);
	ck_assert(!fw_ip_parse(FW_STR("1.2.3.4\0"), a));
	ck_assert(!fw_ip_parse(FW_STR_NONE, a));
}
END_TEST

START_TEST(of_sockets)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(80)};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(8080)};
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	unsigned char a[16], want[16];
	int port;

	ck_assert_int_eq(inet_pton(AF_INET, "192.0.2.1", &in.sin_addr), 1);
	ck_assert_int_eq(inet_pton(AF_INET6, "2001:db8::1", &in6.sin6_addr), 1);
	ck_assert(fw_ip_of((struct sockaddr *)&in, a, &port) && port == 80 && fw_ip_is4(a));
	ck_assert(fw_ip_parse(FW_STR("192.0.2.1"), want));
	ck_assert_mem_eq(a, want, 16);
	ck_assert(fw_ip_of((struct sockaddr *)&in6, a, &port) && port == 8080 && !fw_ip_is4(a));
	ck_assert_mem_eq(a, &in6.sin6_addr, 16);
	ck_assert(fw_ip_of((struct sockaddr *)&in, a, NULL));
	ck_assert(!fw_ip_of((struct sockaddr *)&un, a, &port));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit base cidr");
	TCase *tc = tcase_create("cidr");

	tcase_add_test(tc, prefixes);
	tcase_add_test(tc, refused);
	tcase_add_test(tc, of_sockets);
	suite_add_tcase(s, tc);
	return run_suite(s);
}
