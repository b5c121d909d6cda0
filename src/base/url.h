/* SPDX-License-Identifier: ISC */
/*
 * URLs: split, resolve (RFC 3986 section 5, lenient as browsers are), check. Pure text; no DNS.
 * Feed identity depends on bytes, so nothing is normalised unless a function says so.
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
	bool host_is_v6; /* was in brackets */
};

/* Split without changing a byte. Never fails: a thing without a scheme is a relative reference. */
void fw_url_split(struct fw_str s, struct fw_url *out);
/* Has it a scheme of its own ("http:", "mailto:", "urn:") ? */
bool fw_url_is_absolute(struct fw_str s);
/*
 * Resolve ref against base into the arena: white space trimmed and tabs/newlines inside removed (WHATWG), dot
 * segments removed, "//host", "?q", "#f", "" handled; a base that is absent or not hierarchical gives ref as it is.
 * Spaces inside become %20; other bytes stay. NULL p only out of memory.
 */
struct fw_str fw_url_resolve(struct fw_arena *a, struct fw_str base, struct fw_str ref);

#define FW_URL_MAX 8192
/*
 * What a person typed or an OPML file holds, made into the URL we subscribe to (NET-09, NET-18, NET-19, LIM-09):
 * trimmed; "feed:" and "feed://" prefixes taken off; "example.org/x" without a scheme gets https://; scheme and host
 * lower-cased; IDNA by the fetch room later; empty path becomes "/"; the fragment dropped; userinfo moved to *user and *pass.
 * Query strings and paths are not touched (FRB 061-066). Errors: FW_EINVAL with words: not http/https, no host,
 * control characters, too long, bad port, zone id, bad percent sign in host.
 */
FW_MUST_CHECK int fw_url_clean(struct fw_arena *a, struct fw_str in, struct fw_str *url, struct fw_str *user,
	struct fw_str *pass, struct fw_err *err);
/* scheme://host:port, lower case, default ports left out; FW_EINVAL when there is none. */
FW_MUST_CHECK int fw_url_origin(struct fw_str url, struct fw_buf *out);
/* Do both have an origin, and the same? */
bool fw_url_same_origin(struct fw_str a, struct fw_str b);
/* Host in lower case without trailing dot (borrowed bytes are copied into dst); false when absent or too long. */
bool fw_url_host(struct fw_str url, char *dst, size_t cap);
/* 80 and 443 by scheme when the URL names none; -1 when it makes no sense. */
int fw_url_port(struct fw_str url);
/* Percent signs and their digits as the bytes that they stand for; one without two digits stays. False: no memory. */
FW_MUST_CHECK bool fw_url_decode(struct fw_arena *a, struct fw_str s, struct fw_str *out);
/* As it stands in a query or a form: what is not unreserved (RFC 3986) is written %XX. */
void fw_url_escape(struct fw_buf *out, struct fw_str s);
/* A byte that no address may have: a control, or DEL. */
static inline bool fw_url_has_control(struct fw_str s)
{
	for (size_t i = 0; i < s.len; i++) {
		if ((unsigned char)s.p[i] < ' ' || s.p[i] == 0x7f)
			return true;
	}
	return false;
}
/* Does it begin as an address of the web? */
static inline bool fw_is_http(struct fw_str s)
{
	if (s.len < 8 || (memcmp(s.p, "http", 4) != 0 && !fw_str_istarts(s, FW_STR("http"))))
		return false;
	return memcmp(s.p + 4 + ((s.p[4] | 32) == 's'), "://", 3) == 0;
}
/* For people and logs: userinfo replaced by "***", controls escaped, cut at 300 bytes. */
void fw_url_show(struct fw_buf *out, struct fw_str url);

#endif
