/* SPDX-License-Identifier: ISC */
/* May a request do without a token, and may its body have this Content-Type? See tokenless.h. */
#include "base/cidr.h"
#include "base/str.h"
#include "http/auth/tokenless.h"

static void header_set_once(struct fw_str *to, struct fw_str value)
{
	*to = to->p || !value.p ? FW_STR("") : value;
}

static bool header_is_of_proxy(struct fw_str name)
{
	static const struct fw_str NAME[] = {{"Forwarded", 9}, {"Via", 3}, {"X-Real-IP", 9}, {"X-Client-IP", 11},
		{"True-Client-IP", 14}, {"CF-Connecting-IP", 16}};

	for (size_t i = 0; i < FW_N(NAME); i++) {
		if (fw_str_ieq(name, NAME[i]))
			return true;
	}
	return fw_str_istarts(name, FW_STR("X-Forwarded"));
}

void tokenless_header(struct tokenless_head *h, struct fw_str name, struct fw_str value)
{
	switch (name.len ? fw_lower((unsigned char)name.p[0]) : 0) {
	case 'h':
		if (fw_str_ieq(name, FW_STR("Host")))
			header_set_once(&h->host, value);
		break;
	case 'o':
		if (fw_str_ieq(name, FW_STR("Origin")))
			header_set_once(&h->origin, value);
		break;
	case 's':
		if (fw_str_ieq(name, FW_STR("Sec-Fetch-Site")))
			header_set_once(&h->site, value);
		h->fetched |= fw_str_istarts(name, FW_STR("Sec-Fetch-"));
		break;
	case 'c':
		if (fw_str_ieq(name, FW_STR("Content-Type")))
			header_set_once(&h->type, value);
		else
			h->forwarded |= header_is_of_proxy(name);
		break;
	case 'f':
	case 't':
	case 'v':
	case 'x':
		h->forwarded |= header_is_of_proxy(name);
		break;
	default:
		break; /* the usual case, for speed */
	}
}

/* The host in "name", "name:80", "[::1]" or "[::1]:80"; absent: none of these forms. */
static struct fw_str host_name(struct fw_str host)
{
	bool six = host.len && host.p[0] == '[';
	const char *end = host.len ? memchr(host.p, six ? ']' : ':', host.len) : NULL;
	size_t n = end ? (size_t)(end - host.p) + six : host.len;

	if (!n || (six && !end) || (n < host.len && host.p[n] != ':'))
		return FW_STR_NONE;
	for (size_t i = n + 1; i < host.len; i++) {
		if (!fw_is_digit((unsigned char)host.p[i]))
			return FW_STR_NONE;
	}
	return fw_str_sub(host, 0, n);
}

static bool is_loopback(struct fw_str name)
{
	bool six = name.p[0] == '[';
	unsigned char a[16];

	name = six ? fw_str_sub(name, 1, name.len - 1) : name;
	return fw_ip_parse(name, a) && fw_ip_is4(a) == !six && fw_ip_is_loopback(a);
}

static bool host_is_ours(struct fw_str host, const char *names)
{
	struct fw_str rest = fw_str(names), name = host_name(host);

	if (!name.len)
		return false;
	/* the most frequent ones first */
	if (fw_str_eq(name, FW_STR("127.0.0.1")) || fw_str_ieq(name, FW_STR("localhost")) || is_loopback(name))
		return true;
	while (rest.p) {
		if (fw_str_ieq(fw_str_trim(fw_str_split(rest, ',', &rest)), name))
			return true;
	}
	return false;
}

/* Remove the scheme's default port, which may be written or not. */
static struct fw_str without_port(struct fw_str authority, bool tls)
{
	struct fw_str port = tls ? FW_STR(":443") : FW_STR(":80");

	return fw_str_ends(authority, port) ? fw_str_sub(authority, 0, authority.len - port.len) : authority;
}

static bool is_same_origin(const struct tokenless_head *h)
{
	struct fw_str scheme = h->tls ? FW_STR("https://") : FW_STR("http://");
	struct fw_str authority = fw_str_sub(h->origin, scheme.len, h->origin.len);

	return fw_str_istarts(h->origin, scheme) &&
		fw_str_ieq(without_port(authority, h->tls), without_port(h->host, h->tls));
}

bool tokenless_is_foreign(const struct tokenless_head *h)
{
	if (h->origin.p && !is_same_origin(h))
		return true;
	return h->site.p && !fw_str_ieq(h->site, FW_STR("same-origin")) && !fw_str_ieq(h->site, FW_STR("none"));
}

enum tokenless tokenless_check(enum fw_tokenless server, const char *names, const struct tokenless_head *h)
{
	if (server != FW_TOKENLESS_OPEN)
		return TOKENLESS_CLOSED;
	if (!h->local)
		return TOKENLESS_REMOTE;
	if (h->forwarded)
		return TOKENLESS_FORWARDED;
	if (!host_is_ours(h->host, names))
		return TOKENLESS_HOST;
	return tokenless_is_foreign(h) ? TOKENLESS_ORIGIN : TOKENLESS_MAY;
}

bool tokenless_body_fits(enum tokenless_body want, const struct tokenless_head *h)
{
	/* the same list as in deliver.c */
	static const char *const LINES[] = {"application/x-ndjson", "application/ndjson", "application/jsonl"};
	struct fw_str rest, type = fw_str_trim(fw_str_split(h->type, ';', &rest));
	bool browser = h->origin.p || h->fetched;

	if (want == BODY_ANY || fw_str_ieq(type, FW_STR("application/json")))
		return true;
	if (want == BODY_FEED)
		return type.len || !browser;
	for (size_t i = 0; i < FW_N(LINES) && want == BODY_LINES; i++) {
		if (fw_str_ieq(type, fw_str(LINES[i])))
			return true;
	}
	return !browser && (!type.len || fw_str_ieq(type, FW_STR("application/x-www-form-urlencoded")));
}
