/* SPDX-License-Identifier: ISC */
/*
 * The podcast:guid of a feed that has none, a version 5 UUID of its URL (Podcasting 2.0, FMT-10),
 * and the new address of a podcast that has moved.
 */
#include <openssl/sha.h>
#include <string.h>

#include "base/str.h"
#include "parse/feed/builder.h"
#include "parse/feed/podcast.h"

#define URL_MAX ((size_t)4096)

bool fw_podcast_guid(struct fw_str url, char guid[FW_PODCAST_GUID_MAX])
{
	static const unsigned char space[16] = {
		0xea, 0xd4, 0xc2, 0x36, 0xbf, 0x58, 0x58, 0xc6, 0xa2, 0xc6, 0xa6, 0xb2, 0x8d, 0x12, 0x8c, 0xb6};
	unsigned char sum[SHA_DIGEST_LENGTH], name[sizeof(space) + URL_MAX];
	const char *host;
	size_t i, n = 0;

	url = fw_str_trim(url);
	host = fw_str_find(url, FW_STR("://"));
	if (host)
		url = fw_str_sub(url, (size_t)(host - url.p) + 3, url.len);
	while (url.len && url.p[url.len - 1] == '/')
		url.len--;
	if (!url.len || url.len > URL_MAX)
		return false;
	memcpy(name, space, sizeof(space));
	memcpy(name + sizeof(space), url.p, url.len);
	SHA1(name, sizeof(space) + url.len, sum);
	sum[6] = (unsigned char)((sum[6] & 0x0f) | 0x50);
	sum[8] = (unsigned char)((sum[8] & 0x3f) | 0x80);
	for (i = 0; i < 16; i++) {
		static const char digit[] = "0123456789abcdef";

		if (i == 4 || i == 6 || i == 8 || i == 10)
			guid[n++] = '-';
		guid[n++] = digit[sum[i] >> 4];
		guid[n++] = digit[sum[i] & 15];
	}
	guid[n] = 0;
	return true;
}

struct fw_str fw_new_feed_url(const struct fw_document *d)
{
	const struct fw_value *v = d->extra ? fw_value_find(d->extra, "itunes") : NULL;

	v = v ? fw_value_find(v, "new_feed_url") : NULL;
	return v && v->type == FW_VALUE_STRING && fw_url_is_web(v->string) ? v->string : FW_STR_NONE;
}
