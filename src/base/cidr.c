/* SPDX-License-Identifier: ISC */
#include <arpa/inet.h>
#include <netinet/in.h>

#include "base/cidr.h"
#include "base/str.h"

static const unsigned char MAPPED[16] = {[10] = 0xff, [11] = 0xff};

static void ip_from_v4(unsigned char out[16], const void *four)
{
	memcpy(out, MAPPED, 12);
	memcpy(out + 12, four, 4);
}

bool fw_ip_parse(struct fw_str s, unsigned char out[16])
{
	char text[INET6_ADDRSTRLEN];
	unsigned char four[4];

	if (!s.len || memchr(s.p, 0, s.len) || !fw_str_copy(text, sizeof(text), s))
		return false;
	if (inet_pton(AF_INET, text, four) != 1)
		return inet_pton(AF_INET6, text, out) == 1;
	ip_from_v4(out, four);
	return true;
}

bool fw_ip_of(const struct sockaddr *sa, unsigned char out[16], int *port)
{
	if (sa->sa_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)sa;

		ip_from_v4(out, &in->sin_addr);
		if (port)
			*port = ntohs(in->sin_port);
		return true;
	}
	if (sa->sa_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)sa;

		memcpy(out, &in6->sin6_addr, 16);
		if (port)
			*port = ntohs(in6->sin6_port);
		return true;
	}
	return false;
}

bool fw_ip_is4(const unsigned char a[16])
{
	return memcmp(a, MAPPED, 12) == 0;
}

bool fw_ip_is_loopback(const unsigned char a[16])
{
	static const unsigned char ONE[16] = {[15] = 1};

	return fw_ip_is4(a) ? a[12] == 127 : memcmp(a, ONE, sizeof(ONE)) == 0;
}

bool fw_ip_prefix_eq(const unsigned char a[16], const unsigned char b[16], int bits)
{
	int whole = bits / 8, rest = bits % 8;

	if (memcmp(a, b, (size_t)whole) != 0)
		return false;
	return rest == 0 || ((a[whole] ^ b[whole]) >> (8 - rest)) == 0;
}

bool fw_cidr_parse(struct fw_str s, struct fw_cidr *out)
{
	struct fw_str mask, addr = fw_str_split(s, '/', &mask);
	bool brackets = addr.len > 1 && addr.p[0] == '[' && addr.p[addr.len - 1] == ']', six;
	int64_t bits;

	if (brackets)
		addr = fw_str_sub(addr, 1, addr.len - 1);
	if (!fw_ip_parse(addr, out->addr))
		return false;
	six = memchr(addr.p, ':', addr.len) != NULL;
	out->bits = 128;
	if (brackets && !six)
		return false;
	if (!mask.p)
		return true;
	if (!mask.len || !fw_is_digit((unsigned char)mask.p[0]) || !fw_str_int(mask, &bits) || bits < 1 ||
		bits > (six ? 128 : 32))
		return false;
	out->bits = (int)bits + (six ? 0 : 96);
	return true;
}
