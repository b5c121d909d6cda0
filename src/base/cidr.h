/* SPDX-License-Identifier: ISC */
/*
 * IP addresses and networks, all as 16 bytes. IPv4 is ::ffff:a.b.c.d, so a mapped address and a
 * plain one are one case. Pure.
 */
#ifndef FW_BASE_CIDR_H
#define FW_BASE_CIDR_H

#include <sys/socket.h>

#include "feedwheel/types.h"

struct fw_cidr {
	unsigned char addr[16];
	int bits; /* 1..128 */
};

FW_MUST_CHECK bool fw_ip_parse(struct fw_str s, unsigned char out[16]); /* "10.1.2.3", "2001:db8::1" */
/* False: not an internet address. port may be NULL. */
FW_MUST_CHECK bool fw_ip_of(const struct sockaddr *sa, unsigned char out[16], int *port);
bool fw_ip_is4(const unsigned char a[16]);
bool fw_ip_is_loopback(const unsigned char a[16]); /* 127.0.0.0/8, mapped or not, and ::1 */
bool fw_ip_prefix_eq(const unsigned char a[16], const unsigned char b[16], int bits);
/*
 * An address or address/bits, IPv6 in brackets or not: "10.0.0.0/8", "fd00::/8", "[fd00::]/8",
 * "::1". /0 is refused.
 */
FW_MUST_CHECK bool fw_cidr_parse(struct fw_str s, struct fw_cidr *out);

static inline bool fw_cidr_has(const struct fw_cidr *n, const unsigned char a[16])
{
	return fw_ip_prefix_eq(a, n->addr, n->bits);
}

#endif
