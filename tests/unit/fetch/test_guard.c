/* SPDX-License-Identifier: ISC */
/*
 * The address guard: each range at its limits, each spelling, the allow list (NET-02 ... NET-08,
 * NET-14).
 */
#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <stdlib.h>

#include "base/str.h"
#include "fetch/guard.h"
#include "../../suite.h"

static const char *guard_check_port(const struct fw_guard *g, const char *ip, int port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};

	if (inet_pton(AF_INET, ip, &in.sin_addr) == 1)
		return fw_guard_refuses(g, (const struct sockaddr *)&in);
	ck_assert_msg(inet_pton(AF_INET6, ip, &in6.sin6_addr) == 1, "%s", ip);
	return fw_guard_refuses(g, (const struct sockaddr *)&in6);
}

static const char *guard_check(const char *ip)
{
	struct fw_guard g;

	ck_assert_int_eq(fw_guard_init(&g, NULL, NULL), 0);
	return guard_check_port(&g, ip, 80);
}

START_TEST(ipv4_ranges) /* NET-04 */
{
	/* before, first, last, after; NULL: the neighbour is refused too */
	static const char *const T[][4] = {
		{NULL, "0.0.0.0", "0.255.255.255", "1.0.0.0"},
		{"9.255.255.255", "10.0.0.0", "10.255.255.255", "11.0.0.0"},
		{"100.63.255.255", "100.64.0.0", "100.127.255.255", "100.128.0.0"},
		{"126.255.255.255", "127.0.0.0", "127.255.255.255", "128.0.0.0"},
		{"169.253.255.255", "169.254.0.0", "169.254.255.255", "169.255.0.0"},
		{"172.15.255.255", "172.16.0.0", "172.31.255.255", "172.32.0.0"},
		{"191.255.255.255", "192.0.0.0", "192.0.0.255", "192.0.1.0"},
		{"192.0.1.255", "192.0.2.0", "192.0.2.255", "192.0.3.0"},
		{"192.88.98.255", "192.88.99.0", "192.88.99.255", "192.88.100.0"},
		{"192.167.255.255", "192.168.0.0", "192.168.255.255", "192.169.0.0"},
		{"198.17.255.255", "198.18.0.0", "198.19.255.255", "198.20.0.0"},
		{"198.51.99.255", "198.51.100.0", "198.51.100.255", "198.51.101.0"},
		{"203.0.112.255", "203.0.113.0", "203.0.113.255", "203.0.114.0"},
		{"223.255.255.255", "224.0.0.0", "239.255.255.255", NULL},
		{NULL, "240.0.0.0", "255.255.255.255", NULL},
	};

	for (size_t i = 0; i < FW_N(T); i++) {
		ck_assert_msg(!T[i][0] || !guard_check(T[i][0]), "%s", T[i][0]);
		ck_assert_msg(guard_check(T[i][1]) != NULL, "%s", T[i][1]);
		ck_assert_msg(guard_check(T[i][2]) != NULL, "%s", T[i][2]);
		ck_assert_msg(!T[i][3] || !guard_check(T[i][3]), "%s", T[i][3]);
	}
}
END_TEST

START_TEST(ipv6_ranges) /* NET-05 */
{
	static const char *const BAD[] = {"::", "::1", "fc00::", "fdff:ffff::1", "fe80::", "fe80::1",
		"febf:ffff::", "fec0::", "feff::", "ff00::", "ff02::1", "ffff::", "100::", "100::ffff:ffff:ffff:ffff",
		"2001:db8::", "2001:db8:ffff::", "2001:2::", "2001:2:0:ffff::", "2001:10::", "2001:1f:ffff::",
		"2001:20::", "2001:2f:ffff::", "64:ff9b:1::", "64:ff9b:1:ffff::", "3fff::", "3fff:fff:ffff::", "5f00::",
		"5f00:ffff::", "4000::", "1fff:ffff::", "200::", "64:ff9a::1", "64:ff9c::1"};
	static const char *const GOOD[] = {
		"2000::",
		"2001:db7::1",
		"2001:db9::1",
		"2001:2:1::",
		"2001:f::",
		"2001:30::",
		"2003::",
		"2606:4700:4700::1111",
		"2a00::1",
		"3ffe:ffff::",
		"3fff:1000::",
		"3fff:ffff::",
	};

	for (size_t i = 0; i < FW_N(BAD); i++)
		ck_assert_msg(guard_check(BAD[i]) != NULL, "%s", BAD[i]);
	for (size_t i = 0; i < FW_N(GOOD); i++)
		ck_assert_msg(guard_check(GOOD[i]) == NULL, "%s: %s", GOOD[i], guard_check(GOOD[i]));
}
END_TEST

START_TEST(ipv4_inside_ipv6) /* NET-06 */
{
	static const char *const BAD[] = {
		"::ffff:127.0.0.1",
		"::ffff:10.0.0.1",
		"::ffff:169.254.169.254",
		"64:ff9b::a9fe:a9fe",
		"64:ff9b::7f00:1",
		"2002:a9fe:a9fe::",
		"2002:7f00:1::1",
		"2002:808:808::1",
		"2001:0:4136:e378:8000:63bf:f5ff:fffe",
		"2001::1",
		"::a9fe:a9fe",
		"::8.8.8.8",
		"64:ff9b::a00:1",
	};

	for (size_t i = 0; i < FW_N(BAD); i++)
		ck_assert_msg(guard_check(BAD[i]) != NULL, "%s", BAD[i]);
	ck_assert_ptr_null(guard_check("::ffff:8.8.8.8"));
	ck_assert_ptr_null(
		guard_check("64:ff9b::808:808")); /* DNS64: the only way to most feeds in an IPv6-only network */
}
END_TEST

START_TEST(allow_list) /* NET-08 */
{
	struct fw_guard g;

	ck_assert_int_eq(
		fw_guard_init(
			&g, " 127.0.0.0/8 ,[fd00::]/8, 10.1.2.3:8080,192.168.7.0/24:81,fd01::5, [fc00::9]:99,,", NULL),
		0);
	ck_assert_uint_eq(g.allow.n, 6);
	ck_assert_ptr_null(guard_check_port(&g, "127.9.8.7", 80));
	ck_assert_ptr_null(guard_check_port(&g, "127.9.8.7", 8080));
	/* the usual ports only; the message names the port */
	ck_assert_str_eq(guard_check_port(&g, "127.9.8.7", 25), FW_GUARD_PORT);
	ck_assert_str_eq(guard_check_port(&g, "::ffff:127.0.0.1", 6667), FW_GUARD_PORT);
	ck_assert_str_eq(guard_check_port(&g, "64:ff9b::7f00:1", 25), FW_GUARD_PORT);
	ck_assert_str_eq(guard_check_port(&g, "fd00::1", 1), FW_GUARD_PORT);
	ck_assert_ptr_null(guard_check_port(&g, "::ffff:127.0.0.1", 80));
	ck_assert_ptr_null(guard_check_port(&g, "64:ff9b::7f00:1", 80));
	ck_assert_ptr_null(guard_check_port(&g, "fdab::1", 443));
	ck_assert_ptr_nonnull(guard_check_port(&g, "fc00::1", 443));
	ck_assert_ptr_null(guard_check_port(&g, "10.1.2.3", 8080));
	ck_assert_str_eq(guard_check_port(&g, "10.1.2.3", 8081), "private network"); /* another port was allowed */
	ck_assert_str_eq(guard_check_port(&g, "10.1.2.3", 25), "private network");
	ck_assert_ptr_nonnull(guard_check_port(&g, "10.1.2.4", 8080));
	ck_assert_ptr_null(
		guard_check_port(&g, "192.168.7.200", 81)); /* an item with a port allows exactly that port */
	ck_assert_ptr_nonnull(guard_check_port(&g, "192.168.7.200", 80));
	ck_assert_ptr_null(guard_check_port(&g, "fc00::9", 99));
	ck_assert_ptr_nonnull(guard_check_port(&g, "::1", 80));
}
END_TEST

START_TEST(allow_list_wrong)
{
	static const char *const BAD[] = {
		"*",
		"0.0.0.0/0",
		"::/0",
		"10.0.0.0/33",
		"fd00::/129",
		"10.0.0",
		"example.org",
		"10.0.0.1:0",
		"10.0.0.1:70000",
		"10.0.0.1:x",
		"[fd00::1",
		"10.0.0.0/",
		"10.0.0.0/+8",
		"10.0.0.0/8x",
		"[fd00::]x",
		"127.0.0.1 127.0.0.2",
	};
	struct fw_guard g;
	struct fw_err err;
	char many[70 * 12] = "";

	for (size_t i = 0; i < FW_N(BAD); i++) {
		ck_assert_msg(fw_guard_init(&g, BAD[i], &err) == FW_EINVAL, "%s", BAD[i]);
		ck_assert_msg(strstr(err.text, BAD[i]) != NULL, "%s", err.text); /* the message names the item */
	}
	for (int i = 0; i < 65; i++) {
		size_t n = strlen(many);

		fw_snprintf(many + n, sizeof(many) - n, "10.0.0.%d,", i);
	}
	ck_assert_int_eq(fw_guard_init(&g, many, &err), FW_EINVAL);
}
END_TEST

START_TEST(deny_list)
{
	struct fw_guard g;
	struct fw_err err;

	ck_assert_int_eq(fw_guard_init(&g, "127.0.0.0/8,10.0.0.0/8,64:ff9b::/96,169.254.169.254", NULL), 0);
	ck_assert_int_eq(
		fw_guard_deny(&g, "8.8.8.0/24, [2606:4700::]/32,127.0.0.5, 10.0.0.0/8:8080,169.254.169.254", NULL), 0);
	ck_assert_str_eq(guard_check_port(&g, "8.8.8.8", 80), FW_GUARD_DENIED);
	ck_assert_str_eq(guard_check_port(&g, "::ffff:8.8.8.8", 443), FW_GUARD_DENIED);
	ck_assert_str_eq(
		guard_check_port(&g, "64:ff9b::808:808", 443), FW_GUARD_DENIED); /* in whatever form it is allowed */
	ck_assert_ptr_null(guard_check_port(&g, "8.8.4.4", 80));
	ck_assert_ptr_null(guard_check_port(&g, "64:ff9b::808:404", 80));
	ck_assert_str_eq(guard_check_port(&g, "2606:4700:4700::1111", 443), FW_GUARD_DENIED);
	ck_assert_ptr_null(guard_check_port(&g, "2607::1", 443));
	ck_assert_ptr_null(guard_check_port(&g, "127.0.0.4", 80));
	ck_assert_str_eq(guard_check_port(&g, "127.0.0.5", 80), FW_GUARD_DENIED);
	ck_assert_ptr_null(guard_check_port(&g, "10.1.1.1", 80));
	ck_assert_str_eq(guard_check_port(&g, "10.1.1.1", 8080), FW_GUARD_DENIED);
	ck_assert_str_eq(guard_check_port(&g, "169.254.169.254", 80), FW_GUARD_DENIED);
	ck_assert_int_eq(fw_guard_deny(&g, "10.0.0.0/8, intern.example", &err), FW_EINVAL);
	ck_assert_msg(strstr(err.text, "deny_networks: 'intern.example'") != NULL, "%s", err.text);
	ck_assert_int_eq(fw_guard_init(&g, NULL, NULL), 0); /* nothing else is refused */
	ck_assert_ptr_null(guard_check_port(&g, "8.8.8.8", 80));
}
END_TEST

START_TEST(metadata_stays_shut) /* NET-07 */
{
	struct fw_guard g;

	ck_assert_int_eq(fw_guard_init(&g, "169.254.0.0/16,fd00::/8", NULL), 0);
	ck_assert_ptr_null(guard_check_port(&g, "169.254.1.1", 80));
	ck_assert_ptr_nonnull(guard_check_port(&g, "169.254.169.254", 80));
	ck_assert_ptr_nonnull(guard_check_port(&g, "::ffff:169.254.169.254", 80));
	ck_assert_ptr_nonnull(guard_check_port(&g, "64:ff9b::a9fe:a9fe", 80));
	ck_assert_ptr_null(guard_check_port(&g, "fd00:ec2::253", 80));
	ck_assert_ptr_nonnull(guard_check_port(&g, "fd00:ec2::254", 80));
	ck_assert_ptr_null(guard_check_port(&g, "169.254.170.1", 80));
	ck_assert_ptr_nonnull(guard_check_port(&g, "169.254.170.2", 80));
	ck_assert_ptr_nonnull(guard_check_port(&g, "169.254.170.23", 80));
	ck_assert_ptr_nonnull(guard_check_port(&g, "64:ff9b::a9fe:aa02", 80));
	ck_assert_ptr_nonnull(guard_check_port(&g, "fd00:ec2::23", 80));
	ck_assert_ptr_null(guard_check_port(&g, "fd20:ce::253", 80));
	ck_assert_ptr_nonnull(guard_check_port(&g, "fd20:ce::254", 80));
	ck_assert_int_eq(fw_guard_init(&g, "100.64.0.0/10,192.0.0.0/24,168.63.0.0/16", NULL), 0);
	ck_assert_ptr_null(guard_check_port(&g, "100.100.100.201", 80));
	ck_assert_ptr_nonnull(guard_check_port(&g, "100.100.100.200", 80));
	ck_assert_ptr_nonnull(guard_check_port(&g, "192.0.0.192", 80));
	ck_assert_ptr_nonnull(guard_check_port(&g, "168.63.129.16", 32526));
	ck_assert_int_eq(fw_guard_init(&g, "", NULL), 0);
	ck_assert_ptr_nonnull(guard_check_port(&g, "168.63.129.16", 80));
	ck_assert_ptr_null(guard_check_port(&g, "168.63.129.17", 80));
	ck_assert_int_eq(fw_guard_init(&g, "169.254.169.254,fd00:ec2::254", NULL), 0);
	ck_assert_ptr_null(guard_check_port(&g, "169.254.169.254", 80));
	ck_assert_ptr_null(guard_check_port(&g, "fd00:ec2::254", 80));
}
END_TEST

START_TEST(ports) /* NET-14 */
{
	static const int BAD[] = {0, -1, 1, 22, 25, 79, 81, 442, 444, 1023, 2049, 4190, 5060, 5061, 6000, 6566, 6665,
		6669, 6679, 6697, 10080, 1719, 1720, 1723, 3659, 4045, 65536};
	static const int GOOD[] = {80, 443, 1024, 8080, 8443, 6664, 6670, 65535};
	struct fw_guard g;

	for (size_t i = 0; i < FW_N(BAD); i++)
		ck_assert_msg(!fw_guard_port_ok(BAD[i]), "%d", BAD[i]);
	for (size_t i = 0; i < FW_N(GOOD); i++)
		ck_assert_msg(fw_guard_port_ok(GOOD[i]), "%d", GOOD[i]);
	ck_assert_int_eq(fw_guard_init(&g, "1.2.3.4:25", NULL), 0);
	ck_assert_str_eq(guard_check_port(&g, "1.2.3.5", 25), "port");
	ck_assert_ptr_null(guard_check_port(&g, "1.2.3.4", 25));
	ck_assert_ptr_null(guard_check_port(&g, "1.2.3.4", 80)); /* public: no permission needed */
}
END_TEST

START_TEST(other_families)
{
	struct sockaddr sa = {.sa_family = AF_UNIX};
	struct fw_guard g;

	ck_assert_int_eq(fw_guard_init(&g, "", NULL), 0);
	ck_assert_ptr_nonnull(fw_guard_refuses(&g, &sa));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit fetch guard");
	TCase *t = tcase_create("guard");

	tcase_add_test(t, ipv4_ranges);
	tcase_add_test(t, ipv6_ranges);
	tcase_add_test(t, ipv4_inside_ipv6);
	tcase_add_test(t, allow_list);
	tcase_add_test(t, allow_list_wrong);
	tcase_add_test(t, deny_list);
	tcase_add_test(t, metadata_stays_shut);
	tcase_add_test(t, ports);
	tcase_add_test(t, other_families);
	suite_add_tcase(s, t);
	return run_suite(s);
}
