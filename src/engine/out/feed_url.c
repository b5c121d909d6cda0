/* SPDX-License-Identifier: ISC */
/* The URLs and ids of entries that go out. */
#include <openssl/sha.h>

#include "base/url.h"
#include "base/utf8.h"
#include "base/xml.h"
#include "engine/out/feed_item.h"

/* ---- URLs ------------------------------------------------------------------------------------ */

/* A scheme of RFC 3986, that runs no script. */
static bool url_scheme_is_good(struct fw_str scheme)
{
	static const struct fw_str BAD[] = {{"javascript", 10}, {"vbscript", 8}, {"data", 4}};

	if (!scheme.len || !fw_is_alpha((unsigned char)scheme.p[0]))
		return false;
	for (size_t i = 0; i < scheme.len; i++) {
		if (!fw_is_alnum((unsigned char)scheme.p[i]) && !strchr("+-.", scheme.p[i]))
			return false;
	}
	for (size_t i = 0; i < FW_N(BAD); i++) {
		if (fw_str_ieq(scheme, BAD[i]))
			return false;
	}
	return true;
}

/* May this character of n bytes at s stay as it is? Brackets may before host_end, around IPv6. */
static bool url_char_is_good(struct fw_str s, size_t at, uint32_t cp, size_t n, size_t host_end)
{
	if (cp >= 0x80)
		return !fw_utf8_is_unsafe(cp) && fw_xml_is_char(cp) && !(cp == 0xfffd && n == 1) &&
			!(cp >= 0xe000 && cp <= 0xf8ff) && cp < 0xe0000;
	if (cp == '%')
		return at + 2 < s.len && fw_hexval((unsigned char)s.p[at + 1]) >= 0 &&
			fw_hexval((unsigned char)s.p[at + 2]) >= 0;
	if (cp == '[' || cp == ']')
		return at < host_end;
	if (cp == '#')
		return !at || !memchr(s.p, '#', at); /* only the first one starts a fragment */
	return cp > ' ' && cp < 0x7f && !strchr("\"<>\\^`{|}", (int)cp);
}

static void url_escape_bad(struct fw_buf *out, struct fw_str s)
{
	size_t n, host_end;
	struct fw_url u;

	fw_url_split(s, &u);
	host_end = u.host_is_v6 ? (size_t)(u.host.p + u.host.len - s.p) + 1 : 0;

	for (size_t i = 0; i < s.len; i += n) {
		uint32_t cp = fw_utf8_get(s.p + i, s.len - i, &n);

		if (url_char_is_good(s, i, cp, n, host_end)) {
			fw_buf_add(out, s.p + i, n);
			continue;
		}
		for (size_t k = i; k < i + n; k++)
			fw_buf_addf(out, "%%%02X", (unsigned char)s.p[k]);
	}
}

struct fw_str feed_url(struct fw_arena *a, struct fw_str base, struct fw_str s)
{
	struct fw_buf b = FW_BUF_INIT(0);
	struct fw_url u;

	s = fw_str_trim(s);
	if (!s.len)
		return FW_STR_NONE;
	if (!fw_url_is_absolute(s))
		s = fw_url_resolve(a, base, s);
	fw_url_split(s, &u);
	if (!url_scheme_is_good(u.scheme) || (fw_is_http(s) && !u.host.len))
		return FW_STR_NONE;
	url_escape_bad(&b, s);
	if (!fw_str_eq(fw_buf_str(&b), s))
		s = fw_arena_str(a, fw_buf_str(&b));
	a->failed |= b.rc != 0;
	fw_buf_finish(&b);
	return s;
}

void feed_uri(struct fw_buf *out, struct fw_str iri)
{
	for (size_t i = 0; i < iri.len; i++) {
		if ((unsigned char)iri.p[i] < 0x80)
			fw_buf_addc(out, iri.p[i]);
		else
			fw_buf_addf(out, "%%%02X", (unsigned char)iri.p[i]);
	}
}

/* ---- ids ------------------------------------------------------------------------------------- */

/* Of these schemes an id is unique in the world: names in them are given out. */
static bool id_is_own(struct fw_arena *a, struct fw_str id)
{
	static const struct fw_str SCHEME[] = {{"http", 4}, {"https", 5}, {"tag", 3}, {"urn", 3}};
	struct fw_url u;

	fw_url_split(id, &u);
	for (size_t i = 0; i < FW_N(SCHEME); i++) {
		if (fw_str_ieq(u.scheme, SCHEME[i]) && id.len > u.scheme.len + 1)
			return fw_str_eq(feed_url(a, FW_STR_NONE, id), id);
	}
	return false;
}

/* Without the scheme and a "/" at the end: a feed that moves to https stays the same. */
static struct fw_str url_stem(struct fw_str url)
{
	const char *host = fw_str_find(url, FW_STR("://"));

	if (host)
		url = fw_str_sub(url, (size_t)(host - url.p) + 3, url.len);
	while (url.len && url.p[url.len - 1] == '/')
		url.len--;
	return url;
}

/* A UUID of version 5 (RFC 9562) in the name space of URLs. */
static struct fw_str urn_uuid(struct fw_arena *a, struct fw_str name)
{
	static const unsigned char URLS[16] = {
		0x6b, 0xa7, 0xb8, 0x11, 0x9d, 0xad, 0x11, 0xd1, 0x80, 0xb4, 0x00, 0xc0, 0x4f, 0xd4, 0x30, 0xc8};
	unsigned char sum[SHA_DIGEST_LENGTH];
	struct fw_buf b = FW_BUF_INIT(0);
	char hex[33];
	const char *text;

	fw_buf_add(&b, URLS, sizeof(URLS));
	fw_buf_addstr(&b, name);
	a->failed |= b.rc != 0;
	SHA1((const unsigned char *)fw_buf_str(&b).p, b.len, sum);
	fw_buf_finish(&b);
	sum[6] = (unsigned char)((sum[6] & 0x0f) | 0x50);
	sum[8] = (unsigned char)((sum[8] & 0x3f) | 0x80);
	fw_hex_write(hex, sum, 16);
	text = fw_arena_printf(a, "urn:uuid:%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16, hex + 20);
	return fw_str(text);
}

struct fw_str feed_id(struct fw_arena *a, struct fw_str feed_url, struct fw_str own, struct fw_str more)
{
	struct fw_buf name = FW_BUF_INIT(0);
	struct fw_str id;

	if (!more.p && id_is_own(a, own))
		return own;
	fw_buf_addstr(&name, url_stem(feed_url));
	fw_buf_addc(&name, '#');
	fw_buf_addstr(&name, own);
	if (more.p)
		fw_buf_addc(&name, '\n');
	fw_buf_addstr(&name, more);
	a->failed |= name.rc != 0;
	id = urn_uuid(a, fw_buf_str(&name));
	fw_buf_finish(&name);
	return id;
}
