/* SPDX-License-Identifier: ISC */
/*
 * URLs: split, resolve (RFC 3986 section 5, lenient as browsers are), check. Pure text, no DNS. A
 * feed's identity depends on the bytes, so nothing is normalised unless a function promises it.
 */
#ifndef FW_BASE_URL_H
#define FW_BASE_URL_H

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"

struct fw_url {
	struct fw_str scheme, userinfo, host, port, path, query, fragment; /* absent: p NULL; host without brackets */
	bool has_authority;
	bool host_is_v6; /* the host was in brackets */
};

/* Split without changing a byte. Never fails: text without a scheme is a relative reference. */
void fw_url_split(struct fw_str s, struct fw_url *out);
/* Has it a scheme ("http:", "mailto:", "urn:")? */
bool fw_url_is_absolute(struct fw_str s);
/*
 * Resolve ref against base, into the arena. Surrounding white space, and tabs and newlines inside,
 * are removed (WHATWG); dot segments are removed; "//host", "?q", "#f" and "" work. Spaces become
 * %20; other bytes stay. If base is absent or not hierarchical, the result is ref. p is NULL only
 * when out of memory.
 */
struct fw_str fw_url_resolve(struct fw_arena *a, struct fw_str base, struct fw_str ref);

#define FW_URL_MAX 8192
/*
 * Turn typed text, or an address of an OPML file, into a feed's URL (NET-09, NET-18, NET-19,
 * LIM-09). Trims; strips "feed:" and "feed://"; adds https:// to "example.org/x"; lower-cases
 * scheme and host (IDNA comes later, in the fetch room); makes an empty path "/"; drops the
 * fragment; moves userinfo to *user and *pass. Query and path stay as they are (FRB 061-066).
 * Errors: FW_ENOMEM; FW_EINVAL, with a text: not http or https, no host, control character, too
 * long, invalid port, zone id, percent sign in the host.
 */
FW_MUST_CHECK int fw_url_clean(struct fw_arena *a, struct fw_str in, struct fw_str *url, struct fw_str *user,
	struct fw_str *pass, struct fw_err *err);
/*
 * Append scheme://host:port in lower case, without a default port. FW_EINVAL: the URL has no
 * origin.
 */
FW_MUST_CHECK int fw_url_origin(struct fw_str url, struct fw_buf *out);
/* True if both have an origin and the origins are equal. */
bool fw_url_same_origin(struct fw_str a, struct fw_str b);
/* Copy the host to dst, in lower case and without a final dot. False: no host, or too long. */
bool fw_url_host(struct fw_str url, char *dst, size_t cap);
/* A port: digits only, 1 to 65535. */
FW_MUST_CHECK bool fw_port_parse(struct fw_str s, int *port);
/*
 * Split ADDRESS:PORT at the last colon; the host is without brackets. False: no colon. The port is
 * not parsed.
 */
FW_MUST_CHECK bool fw_host_port_split(struct fw_str s, struct fw_str *host, struct fw_str *port);
/*
 * Separate a port, if there is one, from an address or network; an IPv6 address with a port is in
 * brackets, which *rest keeps. *port 0: none. False: what follows the colon is not a port.
 */
FW_MUST_CHECK bool fw_port_split(struct fw_str s, struct fw_str *rest, int *port);
/* The default is 80 or 443, by scheme; -1: invalid. */
int fw_url_port(struct fw_str url);
/* Decode %XX; a percent sign without two digits stays. False: out of memory. */
FW_MUST_CHECK bool fw_url_decode(struct fw_arena *a, struct fw_str s, struct fw_str *out);
/* Escape for a query or a form: all but unreserved characters (RFC 3986) become %XX. */
void fw_url_escape(struct fw_buf *out, struct fw_str s);
/* A URL must not contain control characters or DEL. */
static inline bool fw_url_has_control(struct fw_str s)
{
	for (size_t i = 0; i < s.len; i++) {
		if ((unsigned char)s.p[i] < ' ' || s.p[i] == 0x7f)
			return true;
	}
	return false;
}
/* Does it start with http:// or https://? */
static inline bool fw_is_http(struct fw_str s)
{
	if (s.len < 8 || (memcmp(s.p, "http", 4) != 0 && !fw_str_istarts(s, FW_STR("http"))))
		return false;
	return memcmp(s.p + 4 + ((s.p[4] | 32) == 's'), "://", 3) == 0;
}
/* An absolute http or https address: there is a host too. */
static inline bool fw_url_is_web(struct fw_str s)
{
	size_t host = fw_is_http(s) ? 7 + ((s.p[4] | 32) == 's') : s.len;

	return host < s.len && (unsigned char)s.p[host] > ' ' && !memchr("/?#:", s.p[host], 4);
}
/*
 * May url stand where old does in a document? Positive: yes, whatever its rank; negative: no; 0: by
 * rank. A web address, or a relative one, which may become one, yields only to its like: others
 * ("tag:", "mailto:") open no page.
 */
static inline int fw_url_weigh(struct fw_str old, struct fw_str url)
{
	if (!old.len)
		return 0;
	return (fw_url_is_web(url) || !fw_url_is_absolute(url)) - (fw_url_is_web(old) || !fw_url_is_absolute(old));
}
/*
 * For people and logs: userinfo becomes "***", controls are escaped, and the text is cut at 300
 * bytes.
 */
void fw_url_show(struct fw_buf *out, struct fw_str url);

#endif
