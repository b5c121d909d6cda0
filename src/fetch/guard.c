/* SPDX-License-Identifier: ISC */
/*
 * Every address is 16 bytes, IPv4 as ::ffff:a.b.c.d, so a mapped and a plain address are one case.
 * A NAT64 address is checked as the IPv4 address inside as well. Obsolete forms (6to4, Teredo,
 * IPv4-compatible) are refused whatever they contain.
 *
 * Source: the IANA special-purpose address registries (RFC 6890); the WHATWG fetch standard, "bad
 * port".
 */
#include "base/str.h"
#include "base/url.h"
#include "fetch/guard.h"

struct range4 {
	uint32_t base;
	int bits;
	const char *why;
};

#define IP4(a, b, c, d) ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (uint32_t)(d))

static const struct range4 RANGE4[] = {
	{IP4(0, 0, 0, 0), 8, "unspecified"},
	{IP4(10, 0, 0, 0), 8, "private network"},
	{IP4(100, 64, 0, 0), 10, "carrier-grade NAT"},
	{IP4(127, 0, 0, 0), 8, "loopback"},
	{IP4(168, 63, 129, 16), 32, "cloud metadata"}, /* Azure, within the public range */
	{IP4(169, 254, 0, 0), 16, "link-local"},
	{IP4(172, 16, 0, 0), 12, "private network"},
	{IP4(192, 0, 0, 0), 24, "reserved"},
	{IP4(192, 0, 2, 0), 24, "documentation"},
	{IP4(192, 88, 99, 0), 24, "6to4"},
	{IP4(192, 168, 0, 0), 16, "private network"},
	{IP4(198, 18, 0, 0), 15, "benchmarking"},
	{IP4(198, 51, 100, 0), 24, "documentation"},
	{IP4(203, 0, 113, 0), 24, "documentation"},
	{IP4(224, 0, 0, 0), 4, "multicast"},
	{IP4(240, 0, 0, 0), 4, "reserved"},
};

struct range6 {
	unsigned char base[16];
	int bits;
	const char *why;
};

/* The first match counts. Anything outside 2000::/3 is refused in the end. */
static const struct range6 RANGE6[] = {
	{{0}, 128, "unspecified"},
	{{[15] = 1}, 128, "loopback"},
	{{0}, 96, "IPv4-compatible"},
	{{0xfc}, 7, "private network"},
	{{0xfe, 0x80}, 10, "link-local"},
	{{0xfe, 0xc0}, 10, "private network"},
	{{0xff}, 8, "multicast"},
	{{0x01}, 64, "discard"},
	{{0x20, 0x01, 0x00, 0x00}, 32, "Teredo"},
	{{0x20, 0x01, 0x00, 0x02, 0x00, 0x00}, 48, "benchmarking"},
	{{0x20, 0x01, 0x00, 0x10}, 28, "reserved"},
	{{0x20, 0x01, 0x00, 0x20}, 28, "reserved"},
	{{0x20, 0x01, 0x0d, 0xb8}, 32, "documentation"},
	{{0x20, 0x02}, 16, "6to4"},
	{{0x3f, 0xff}, 20, "documentation"},
	{{0x00, 0x64, 0xff, 0x9b, 0x00, 0x01}, 48, "private network"},
	{{0x5f, 0x00}, 16, "reserved"},
};

static const unsigned char NAT64[16] = {0x00, 0x64, 0xff, 0x9b};
/* Clouds hand out secrets here: only an item for exactly this address permits it. */
static const unsigned char METADATA[][16] = {
	{[10] = 0xff, [11] = 0xff, 169, 254, 169, 254},
	/* Amazon: credentials of a container (ECS) */
	{[10] = 0xff, [11] = 0xff, 169, 254, 170, 2},
	{[10] = 0xff, [11] = 0xff, 169, 254, 170, 23},  /* Amazon: credentials of a pod (EKS) */
	{[10] = 0xff, [11] = 0xff, 100, 100, 100, 200}, /* Alibaba */
	{[10] = 0xff, [11] = 0xff, 192, 0, 0, 192},     /* Oracle */
	{[10] = 0xff, [11] = 0xff, 168, 63, 129, 16},   /* Azure */
	{0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, [15] = 0x54}, {0xfd, 0x00, 0x0e, 0xc2, [15] = 0x23},
	{0xfd, 0x20, 0x00, 0xce, [14] = 0x02, [15] = 0x54}, /* Google */
};

/* Ports above 1023 with protocols that a forged HTTP request could attack. */
static const uint16_t BAD_PORT[] = {1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667,
	6668, 6669, 6679, 6697, 10080};

bool fw_guard_port_ok(int port)
{
	if (port < 1024)
		return port == 80 || port == 443;
	for (size_t i = 0; i < FW_N(BAD_PORT); i++) {
		if (port == BAD_PORT[i])
			return false;
	}
	return port <= 65535;
}

/* ---- the lists ------------------------------------------------------------------------------- */

static int guard_list_parse(struct fw_guard_list *l, const char *name, const char *text, struct fw_err *err)
{
	struct fw_str rest = fw_str(text);

	l->n = 0;
	while (rest.p) {
		struct fw_str item = fw_str_trim(fw_str_split(rest, ',', &rest)), address;
		struct fw_guard_net *n = &l->net[l->n];

		if (!item.len)
			continue;
		if (l->n == FW_GUARD_LIST_MAX)
			return fw_err_set(
				err, FW_EINVAL, "%s has more than %d networks: merge some", name, FW_GUARD_LIST_MAX);
		if (!fw_port_split(item, &address, &n->port) || !fw_cidr_parse(address, &n->net))
			return fw_err_set(err, FW_EINVAL,
				"%s: '%.*s' is not a network: write 10.0.0.0/8, fd00::/8, 10.1.2.3:8080 or "
				"[fd00::1]:8080 (not everything, and no names)",
				name, FW_STR_ARG(item));
		l->n++;
	}
	return 0;
}

int fw_guard_init(struct fw_guard *g, const char *allow_networks, struct fw_err *err)
{
	g->deny.n = 0;
	return guard_list_parse(&g->allow, "allow_networks", allow_networks, err);
}

int fw_guard_deny(struct fw_guard *g, const char *deny_networks, struct fw_err *err)
{
	return guard_list_parse(&g->deny, "deny_networks", deny_networks, err);
}

/* ---- checking -------------------------------------------------------------------------------- */

static const char *guard_check_v4(const unsigned char a[4])
{
	uint32_t ip = IP4(a[0], a[1], a[2], a[3]);

	for (size_t i = 0; i < FW_N(RANGE4); i++) {
		if ((ip ^ RANGE4[i].base) >> (32 - RANGE4[i].bits) == 0)
			return RANGE4[i].why;
	}
	return NULL;
}

static const char *guard_check_v6(const unsigned char a[16])
{
	for (size_t i = 0; i < FW_N(RANGE6); i++) {
		if (fw_ip_prefix_eq(a, RANGE6[i].base, RANGE6[i].bits))
			return RANGE6[i].why;
	}
	return (a[0] & 0xe0) == 0x20 ? NULL : "reserved";
}

/* Does the allow list permit this address and port? *only_port: only another port. */
static bool guard_is_allowed(const struct fw_guard *g, const unsigned char a[16], int port, bool *only_port)
{
	bool metadata = false;

	*only_port = false;
	for (size_t i = 0; i < FW_N(METADATA); i++)
		metadata = metadata || memcmp(a, METADATA[i], 16) == 0;
	for (size_t i = 0; i < g->allow.n; i++) {
		const struct fw_guard_net *n = &g->allow.net[i];

		if ((metadata && n->net.bits != 128) || !fw_cidr_has(&n->net, a))
			continue;
		if (n->port ? n->port == port : fw_guard_port_ok(port))
			return true;
		*only_port |= !n->port;
	}
	return false;
}

static bool guard_is_denied(const struct fw_guard *g, const unsigned char a[16], int port)
{
	for (size_t i = 0; i < g->deny.n; i++) {
		const struct fw_guard_net *n = &g->deny.net[i];

		if (fw_cidr_has(&n->net, a) && (!n->port || n->port == port))
			return true;
	}
	return false;
}

static const char *guard_check(const struct fw_guard *g, const unsigned char a[16], int port)
{
	unsigned char inner[16] = {[10] = 0xff, [11] = 0xff};
	bool nat64 = fw_ip_prefix_eq(a, NAT64, 96), only_port;
	const char *why;

	memcpy(inner + 12, a + 12, 4);
	if (guard_is_denied(g, a, port) || (nat64 && guard_is_denied(g, inner, port)))
		return FW_GUARD_DENIED;
	if (guard_is_allowed(g, a, port, &only_port))
		return NULL;
	if (only_port)
		return FW_GUARD_PORT;
	if (nat64)
		return guard_check(g, inner, port);
	why = fw_ip_is4(a) ? guard_check_v4(a + 12) : guard_check_v6(a);
	if (why)
		return why;
	return fw_guard_port_ok(port) ? NULL : FW_GUARD_PORT;
}

const char *fw_guard_refuses(const struct fw_guard *g, const struct sockaddr *sa)
{
	unsigned char a[16];
	int port;

	return fw_ip_of(sa, a, &port) ? guard_check(g, a, port) : "unknown";
}
