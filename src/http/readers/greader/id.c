/* SPDX-License-Identifier: ISC */
#include "base/url.h"
#include "base/utf8.h"
#include "feedwheel/types.h"
#include "api/account.h"
#include "http/readers/greader/id.h"

#define HEX_DIGITS 16

static bool item_hex_read(struct fw_str s, int64_t *id)
{
	uint64_t n = 0;

	if (!s.len || s.len > HEX_DIGITS)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		int v = fw_hexval((unsigned char)s.p[i]);

		if (v < 0)
			return false;
		n = n << 4 | (unsigned)v;
	}
	*id = (int64_t)n;
	return true;
}

bool greader_item_read(struct fw_str s, int64_t *id)
{
	if (fw_str_starts(s, FW_STR(GREADER_ITEM)))
		return item_hex_read(fw_str_sub(s, sizeof(GREADER_ITEM) - 1, s.len), id);
	if (s.len == HEX_DIGITS && item_hex_read(s, id))
		return true;
	return s.len && !fw_is_space((unsigned char)s.p[0]) && !fw_is_space((unsigned char)s.p[s.len - 1]) &&
		fw_str_int(s, id);
}

void greader_item_write(char out[GREADER_ITEM_MAX], int64_t id)
{
	(void)fw_snprintf(out, GREADER_ITEM_MAX, GREADER_ITEM "%016llx", (unsigned long long)id);
}

static bool stream_feed_read(struct fw_str s, struct greader_stream *out)
{
	bool number = s.len > 0;

	out->kind = GREADER_FEED;
	for (size_t i = 0; i < s.len; i++)
		number = number && fw_is_digit((unsigned char)s.p[i]);
	if (number)
		return fw_str_int(s, &out->feed_id) && out->feed_id > 0;
	out->url = s;
	return s.len && s.len <= FW_URL_MAX && !fw_url_has_control(s) && fw_utf8_valid(s.p, s.len) == s.len;
}

static enum greader_kind stream_state(struct fw_str s)
{
	static const struct {
		const char *name;
		enum greader_kind kind;
	} STATE[] = {
		{"reading-list", GREADER_ALL},
		{"read", GREADER_READ},
		{"kept-unread", GREADER_UNREAD},
		{"unread", GREADER_UNREAD},
		{"starred", GREADER_STARRED},
	};

	for (size_t i = 0; i < FW_N(STATE); i++) {
		if (fw_str_eq(s, fw_str(STATE[i].name)))
			return STATE[i].kind;
	}
	return GREADER_OTHER;
}

bool greader_stream_read(struct fw_str s, struct greader_stream *out)
{
	struct fw_str rest;

	*out = (struct greader_stream){.kind = GREADER_OTHER};
	if (fw_str_starts(s, FW_STR("feed/")))
		return stream_feed_read(fw_str_sub(s, 5, s.len), out);
	if (!fw_str_starts(s, FW_STR("user/")) || !fw_str_split(fw_str_sub(s, 5, s.len), '/', &rest).len)
		return false;
	if (fw_str_starts(rest, FW_STR("label/"))) {
		out->kind = GREADER_NAMED;
		out->name = fw_str_sub(rest, 6, rest.len);
		return out->name.len && out->name.len <= FW_LABEL_NAME_MAX && !fw_url_has_control(out->name) &&
			fw_utf8_valid(out->name.p, out->name.len) == out->name.len;
	}
	if (!fw_str_starts(rest, FW_STR("state/")))
		return false;
	rest = fw_str_sub(rest, 6, rest.len);
	if (fw_str_starts(rest, FW_STR("com.google/")))
		out->kind = stream_state(fw_str_sub(rest, 11, rest.len));
	return rest.len > 0;
}
