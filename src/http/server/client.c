/* SPDX-License-Identifier: ISC */
/*
 * The client's address: the connection's peer, or, if that is a trusted proxy (trusted_proxies),
 * the address that the proxy reports in X-Forwarded-For or X-Real-IP.
 *
 * Each proxy appends its peer to X-Forwarded-For. So the client is the rightmost address that is no
 * trusted proxy; the client itself may have forged everything to the left of it. Several such
 * headers form one list. An item that is no address invalidates everything to its left.
 */
#include "base/cidr.h"
#include "http/server/http.h"

int http_proxies_init(struct http_proxies *p, const char *list, struct fw_err *err)
{
	struct fw_str rest = fw_str(list);

	*p = (struct http_proxies){0};
	while (rest.p) {
		struct fw_str item = fw_str_trim(fw_str_split(rest, ',', &rest));

		if (!item.len)
			continue;
		if (fw_str_eq(item, FW_STR("unix"))) {
			p->local = true;
			continue;
		}
		if (p->net_n == HTTP_PROXIES_MAX)
			return fw_err_set(err, FW_EINVAL, "trusted_proxies has more than %d networks (combine some)",
				HTTP_PROXIES_MAX);
		if (!fw_cidr_parse(item, &p->net[p->net_n]))
			return fw_err_set(err, FW_EINVAL,
				"trusted_proxies: '%.*s' is not a network (write 127.0.0.1, 10.0.0.0/8, fd00::/8 or "
				"unix; names and /0 are not allowed)",
				FW_STR_ARG(item));
		p->net_n++;
	}
	return 0;
}

static bool proxy_is_trusted(const struct http_proxies *p, const unsigned char a[16])
{
	for (size_t i = 0; i < p->net_n; i++) {
		if (fw_cidr_has(&p->net[i], a))
			return true;
	}
	return false;
}

bool http_proxies_have(const struct http_proxies *p, const unsigned char a[16])
{
	return proxy_is_trusted(p, a);
}

/*
 * "10.1.2.3", "10.1.2.3:80", "fd00::1", "[fd00::1]", "[fd00::1]:80", each with or without quotes.
 */
static bool forwarded_parse(struct fw_str s, unsigned char out[16])
{
	const char *end;

	s = fw_str_trim(s);
	if (s.len > 1 && s.p[0] == '"' && s.p[s.len - 1] == '"')
		s = fw_str_sub(s, 1, s.len - 1);
	if (s.len && s.p[0] == '[') {
		end = memchr(s.p, ']', s.len);
		return end && (end + 1 == s.p + s.len || end[1] == ':') &&
			fw_ip_parse(fw_str_sub(s, 1, (size_t)(end - s.p)), out) && !fw_ip_is4(out);
	}
	end = s.len ? memchr(s.p, ':', s.len) : NULL;
	if (end && memchr(s.p, '.', (size_t)(end - s.p)))
		s.len = (size_t)(end - s.p);
	return fw_ip_parse(s, out);
}

void http_forwarded_add(const struct http_proxies *p, struct fw_str list, struct http_forwarded *h)
{
	while (list.p) {
		unsigned char a[16];

		if (!forwarded_parse(fw_str_split(list, ',', &list), a)) {
			h->known = false;
		} else if (!proxy_is_trusted(p, a)) {
			memcpy(h->addr, a, sizeof(a));
			h->known = true;
		} else if (!h->known) { /* all addresses so far are proxies: the leftmost counts */
			memcpy(h->addr, a, sizeof(a));
			h->known = true;
		}
	}
}

static enum MHD_Result client_header(void *ctx, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct request *r = ctx;

	(void)kind;
	if (value && fw_str_ieq(fw_str(name), FW_STR("X-Forwarded-For")))
		http_forwarded_add(&r->thread->h->proxies, fw_str(value), &r->forwarded);
	return MHD_YES;
}

static const char *client_get_header(const struct request *r, const char *name)
{
	return MHD_lookup_connection_value(r->conn, MHD_HEADER_KIND, name);
}

static const struct sockaddr *client_peer(const struct request *r)
{
	const union MHD_ConnectionInfo *i = MHD_get_connection_info(r->conn, MHD_CONNECTION_INFO_CLIENT_ADDRESS);

	return i ? i->client_addr : NULL;
}

static struct fw_str address_binary(const unsigned char a[16])
{
	return fw_ip_is4(a) ? (struct fw_str){(const char *)a + 12, 4} : (struct fw_str){(const char *)a, 16};
}

struct fw_str http_client_address(struct request *r)
{
	const struct http_proxies *p = &r->thread->h->proxies;
	const struct sockaddr *sa = client_peer(r);
	bool known = sa && fw_ip_of(sa, r->address, NULL);

	if (known ? proxy_is_trusted(p, r->address) : p->local) {
		const char *real;

		r->forwarded = (struct http_forwarded){0};
		if (client_get_header(r, "X-Forwarded-For"))
			MHD_get_connection_values(r->conn, MHD_HEADER_KIND, client_header, r);
		else if ((real = client_get_header(r, "X-Real-IP")) != NULL)
			r->forwarded.known = forwarded_parse(fw_str(real), r->forwarded.addr);
		if (r->forwarded.known)
			return address_binary(r->forwarded.addr);
	}
	return known ? address_binary(r->address) : (struct fw_str){"", 0};
}

const struct tokenless_head *http_tokenless_head(struct request *r)
{
	const struct sockaddr *sa = client_peer(r);
	unsigned char a[16];

	r->tokenless_head.tls = r->thread->h->tls.key;
	r->tokenless_head.local = sa && (sa->sa_family == AF_UNIX || (fw_ip_of(sa, a, NULL) && fw_ip_is_loopback(a)));
	return &r->tokenless_head;
}
