/* SPDX-License-Identifier: ISC */
/*
 * Which URL may be requested next. A URL is split, checked and reassembled for the wire; a Location
 * is resolved. Pure.
 */
#include <arpa/inet.h>
#include <idn2.h>
#include <netinet/in.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/str.h"
#include "base/url.h"
#include "fetch/internal.h"

bool fw_redirect_permanent(int status)
{
	return status == 301 || status == 308;
}

bool fw_redirect_status(int status)
{
	return fw_redirect_permanent(status) || status == 302 || status == 303 || status == 307;
}

bool fw_redirect_repeats(int status)
{
	return status == 307 || status == 308;
}

bool fw_header_value_ok(struct fw_str v)
{
	if (!v.len)
		return false;
	for (size_t i = 0; i < v.len; i++) {
		unsigned char c = (unsigned char)v.p[i];

		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

bool fw_wire_url_same_origin(const struct fw_wire_url *a, const struct fw_wire_url *b)
{
	return a->https == b->https && a->port == b->port && fw_str_eq(fw_str(a->host), fw_str(b->host));
}

/* ---- hosts ----------------------------------------------------------------------------------- */

static int host_refuse(struct fw_err *err)
{
	return fw_err_set(err, FW_EINVAL, "the URL's host is neither a host name nor an address");
}

/* Names beyond ASCII become A-labels (UTS 46, IDNA 2008); others are copied. */
static int host_ascii(struct fw_str in, char host[FW_HOST_MAX], struct fw_err *err)
{
	bool ascii = true;
	uint8_t *ace = NULL;
	char *utf8;
	int rc;

	for (size_t i = 0; i < in.len; i++)
		ascii = ascii && (unsigned char)in.p[i] < 0x80;
	if (ascii)
		return in.len < FW_HOST_MAX && fw_str_copy(host, FW_HOST_MAX, in) ? 0 : host_refuse(err);
	utf8 = fw_str_dup(in);
	if (!utf8)
		return fw_err_set(err, FW_ENOMEM, "out of memory");
	rc = idn2_lookup_u8((const uint8_t *)utf8, &ace, IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL);
	free(utf8);
	if (rc == IDN2_MALLOC)
		return fw_err_set(err, FW_ENOMEM, "out of memory");
	if (rc != IDN2_OK || !fw_str_copy(host, FW_HOST_MAX, fw_str((const char *)ace)))
		rc = fw_err_set(err, FW_EINVAL, "the URL's host is not a valid international domain name: %s",
			idn2_strerror(rc));
	else
		rc = 0;
	idn2_free(ace);
	return rc;
}

/*
 * Forms that libc and browsers read as IPv4 ("0x7f.1", "2130706433") become dotted quads, so that
 * every check sees the same address.
 */
static bool host_ipv4(char host[FW_HOST_MAX])
{
	struct in_addr in;

	if (!fw_is_digit((unsigned char)host[0]) || !inet_aton(host, &in))
		return false;
	return inet_ntop(AF_INET, &in, host, FW_HOST_MAX) != NULL;
}

static int host_prepare(struct fw_wire_url *h, const struct fw_url *u, struct fw_err *err)
{
	size_t n;
	int rc = host_ascii(u->host, h->host, err);

	if (rc)
		return rc;
	if (u->host_is_v6) {
		struct in6_addr in6;

		h->literal = true;
		if (inet_pton(AF_INET6, h->host, &in6) != 1 || !inet_ntop(AF_INET6, &in6, h->host, FW_HOST_MAX))
			return host_refuse(err);
		return 0;
	}
	n = strlen(h->host);
	if (n && h->host[n - 1] == '.')
		h->host[--n] = '\0';
	if (n == 0 || n > 253)
		return host_refuse(err);
	for (size_t i = 0, label = 0; i < n; i++) {
		int c = fw_lower((unsigned char)h->host[i]);

		h->host[i] = (char)c;
		label = c == '.' ? 0 : label + 1;
		if ((!fw_is_alnum(c) && c != '-' && c != '.' && c != '_') || label > 63 ||
			(c == '.' && (i == 0 || h->host[i - 1] == '.')))
			return host_refuse(err);
	}
	h->literal = host_ipv4(h->host);
	return 0;
}

/* ---- the URL for the wire -------------------------------------------------------------------- */

/* Percent-encode the bytes that a request line cannot hold; leave the others as published. */
static void wire_add(struct fw_buf *out, struct fw_str s)
{
	size_t from = 0;

	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (c > ' ' && c < 0x7f && c != '"' && c != '<' && c != '>')
			continue;
		fw_buf_addstr(out, fw_str_sub(s, from, i));
		fw_buf_addf(out, "%%%02X", c);
		from = i + 1;
	}
	fw_buf_addstr(out, fw_str_sub(s, from, s.len));
}

int fw_wire_url_prepare(struct fw_wire_url *h, struct fw_str url, struct fw_err *err)
{
	struct fw_url u;
	int rc;

	h->literal = false;
	h->host[0] = '\0';
	fw_buf_reset(&h->wire);
	if (url.len > FW_URL_MAX)
		return fw_err_set(err, FW_ELIMIT, "the URL is longer than %d bytes", FW_URL_MAX);
	if (fw_url_has_control(url))
		return fw_err_set(err, FW_EINVAL, "the URL has a control character");
	fw_url_split(url, &u);
	h->https = fw_str_ieq(u.scheme, FW_STR("https"));
	if (!h->https && !fw_str_ieq(u.scheme, FW_STR("http")))
		return fw_err_set(err, FW_EBLOCKED, "the URL is not http or https: only these are fetched");
	if (!u.has_authority)
		return host_refuse(err);
	rc = host_prepare(h, &u, err);
	if (rc)
		return rc;
	h->port = fw_url_port(url);
	if (h->port < 0)
		return fw_err_set(err, FW_EINVAL, "the URL's port is not a number from 1 to 65535");
	fw_buf_addf(&h->wire, u.host_is_v6 ? "%s://[%s]" : "%s://%s", h->https ? "https" : "http", h->host);
	if (h->port != (h->https ? 443 : 80))
		fw_buf_addf(&h->wire, ":%d", h->port);
	if (!u.path.len || u.path.p[0] != '/')
		fw_buf_addc(&h->wire, '/');
	wire_add(&h->wire, u.path);
	if (u.query.p) {
		fw_buf_addc(&h->wire, '?');
		wire_add(&h->wire, u.query);
	}
	return h->wire.rc ? fw_err_set(err, FW_ENOMEM, "out of memory") : 0;
}

int fw_redirect_target(struct fw_str base, struct fw_str location, struct fw_buf *out)
{
	struct fw_arena a;
	struct fw_str target;
	const char *hash, *at;
	struct fw_url u;
	int rc = FW_EINVAL;

	fw_arena_init(&a, 0);
	target = fw_url_resolve(&a, base, location);
	if (!target.p) {
		rc = FW_ENOMEM;
		goto out;
	}
	hash = memchr(target.p, '#', target.len);
	if (hash)
		target.len = (size_t)(hash - target.p);
	fw_url_split(target, &u);
	if (!u.scheme.p || !target.len)
		goto out;
	/* userinfo in a redirect is not a credential of the feed: drop it */
	at = u.userinfo.p ? u.userinfo.p + u.userinfo.len + 1 : NULL;
	if (at) {
		fw_buf_add(out, target.p, (size_t)(u.userinfo.p - target.p));
		fw_buf_add(out, at, (size_t)(target.p + target.len - at));
	} else {
		fw_buf_addstr(out, target);
	}
	rc = out->rc ? FW_ENOMEM : 0;
out:
	fw_arena_finish(&a);
	return rc;
}
