/* SPDX-License-Identifier: ISC */
#include <arpa/inet.h>
#include <check.h>
#include <string.h>

#include "dns_stub.h"

enum { TYPE_A = 1, TYPE_AAAA = 28 };

static void give(uv_handle_t *h, size_t hint, uv_buf_t *b)
{
	static char room[2048];

	(void)h;
	(void)hint;
	*b = uv_buf_init(room, sizeof(room));
}

/* Writes the question's name as text. Returns its end, 0 if it is malformed. */
static size_t question(const unsigned char *p, size_t n, char name[256])
{
	size_t at = 12, len = 0;

	while (at < n && p[at]) {
		size_t label = p[at++];

		if (label > 63 || at + label > n || len + label + 1 > 254)
			return 0;
		if (len)
			name[len++] = '.';
		for (size_t i = 0; i < label; i++)
			name[len++] = (char)(p[at + i] | (p[at + i] >= 'A' && p[at + i] <= 'Z' ? 0x20 : 0));
		at += label;
	}
	name[len] = '\0';
	return at + 5 <= n ? at + 5 : 0;
}

static struct dns_line *find(struct dns_stub *d, const char *name)
{
	struct dns_line *last = NULL;

	for (struct dns_line *l = d->line; l->name; l++) {
		if (strcmp(l->name, name) != 0)
			continue;
		last = l;
		if (l->times != UINT32_MAX)
			break;
	}
	return last;
}

static size_t answer(struct dns_stub *d, unsigned char *p, size_t n)
{
	static unsigned char rr[] = {0xc0, 12, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0};
	unsigned char address[16];
	char name[256];
	size_t end = question(p, n, name), len = 0;
	int type = end ? p[end - 4] << 8 | p[end - 3] : 0;
	struct dns_line *l = end ? find(d, name) : NULL;

	if (!end)
		return 0;
	d->query_n += type == TYPE_A;
	if (l && l->address && !*l->address)
		return 0;
	p[2] = 0x84 | (p[2] & 1);
	p[3] = !l || !l->address ? 3 : *l->address == '!' ? 2 : 0;
	memset(p + 6, 0, 6);
	if (l && l->address && *l->address != '!') {
		if (type == TYPE_A && inet_pton(AF_INET, l->address, address) == 1)
			len = 4;
		else if (type == TYPE_AAAA && inet_pton(AF_INET6, l->address, address) == 1)
			len = 16;
	}
	if (len) {
		p[7] = 1;
		rr[3] = (unsigned char)type;
		rr[8] = (unsigned char)(l->ttl_s >> 8);
		rr[9] = (unsigned char)l->ttl_s;
		rr[11] = (unsigned char)len;
		memcpy(p + end, rr, sizeof(rr));
		memcpy(p + end + sizeof(rr), address, len);
		if (type == TYPE_A && l->times && --l->times == 0)
			l->times = UINT32_MAX; /* used up */
		return end + sizeof(rr) + len;
	}
	return end;
}

static void got(uv_udp_t *udp, ssize_t n, const uv_buf_t *b, const struct sockaddr *from, unsigned flags)
{
	(void)flags;
	if (n > 12 && from) {
		size_t len = answer(udp->data, (unsigned char *)b->base, (size_t)n);
		uv_buf_t out = uv_buf_init(b->base, (unsigned)len);

		if (len)
			uv_udp_try_send(udp, &out, 1, from);
	}
}

bool dns_open_at(struct dns_stub *d, uv_loop_t *loop, struct dns_line *line, const char *ip, int port)
{
	struct sockaddr_in sa;
	int n = sizeof(sa);

	*d = (struct dns_stub){.line = line};
	uv_udp_init(loop, &d->udp);
	d->udp.data = d;
	ck_assert_int_eq(uv_ip4_addr(ip, port, &sa), 0);
	if (uv_udp_bind(&d->udp, (struct sockaddr *)&sa, 0)) {
		dns_close(d);
		return false;
	}
	ck_assert_int_eq(uv_udp_getsockname(&d->udp, (struct sockaddr *)&sa, &n), 0);
	d->port = ntohs(sa.sin_port);
	ck_assert_int_eq(uv_udp_recv_start(&d->udp, give, got), 0);
	return true;
}

void dns_open(struct dns_stub *d, uv_loop_t *loop, struct dns_line *line)
{
	ck_assert(dns_open_at(d, loop, line, "127.0.0.1", 0));
}

void dns_close(struct dns_stub *d)
{
	uv_close((uv_handle_t *)&d->udp, NULL);
}
