/* SPDX-License-Identifier: ISC */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "base/clock.h"
#include "base/utf8.h"

#define MAX_DEPTH 63

void fw_json_init(struct fw_json *j, struct fw_buf *out, bool pretty)
{
	*j = (struct fw_json){.out = out, .pretty = pretty};
}

static void json_indent(struct fw_json *j)
{
	if (!j->pretty)
		return;
	fw_buf_addc(j->out, '\n');
	for (int i = 0; i < j->depth; i++)
		fw_buf_add(j->out, "  ", 2);
}

static void json_member_begin(struct fw_json *j, const char *key)
{
	key = key ? key : j->key;
	j->key = NULL;
	if (j->need_comma)
		fw_buf_addc(j->out, ',');
	if (j->depth > 0)
		json_indent(j);
	if (key) {
		fw_json_escape(j->out, fw_str(key));
		fw_buf_addc(j->out, ':');
		if (j->pretty)
			fw_buf_addc(j->out, ' ');
	}
	j->need_comma = true;
}

static void json_level_open(struct fw_json *j, const char *key, bool array)
{
	json_member_begin(j, key);
	fw_buf_addc(j->out, array ? '[' : '{');
	j->depth++;
	if (j->depth > MAX_DEPTH) /* counted all the same, so that the closing calls match */
		j->out->rc = j->out->rc ? j->out->rc : FW_ELIMIT;
	else
		j->is_array = array ? j->is_array | UINT64_C(1) << j->depth : j->is_array & ~(UINT64_C(1) << j->depth);
	j->need_comma = false;
}

void fw_json_key(struct fw_json *j, const char *key)
{
	assert(!j->key && j->depth > 0);
	j->key = key;
}

void fw_json_object(struct fw_json *j, const char *key)
{
	json_level_open(j, key, false);
}

void fw_json_array(struct fw_json *j, const char *key)
{
	json_level_open(j, key, true);
}

void fw_json_end(struct fw_json *j)
{
	bool array = j->depth <= MAX_DEPTH && j->is_array >> j->depth & 1, empty = !j->need_comma;

	assert(j->depth > 0);
	j->depth--;
	if (!empty)
		json_indent(j);
	fw_buf_addc(j->out, array ? ']' : '}');
	j->need_comma = true;
	if (j->depth == 0 && j->pretty)
		fw_buf_addc(j->out, '\n');
}

void fw_json_escape(struct fw_buf *out, struct fw_str s)
{
	size_t from = 0, i = 0;

	fw_buf_addc(out, '"');
	while (i < s.len) {
		unsigned char c = (unsigned char)s.p[i];
		size_t n = 1;

		if (c >= 0x80) {
			uint32_t cp = fw_utf8_get(s.p + i, s.len - i, &n);

			if (!(cp == 0xfffd && n == 1)) {
				i += n;
				continue;
			}
			fw_buf_add(out, s.p + from, i - from);
			fw_buf_addcp(out, 0xfffd);
		} else if (c >= 0x20 && c != '"' && c != '\\' && c != 0x7f) {
			i++;
			continue;
		} else {
			static const char named[] = "\"\"\\\\\bb\ff\nn\rr\tt";
			const char *at = NULL;

			fw_buf_add(out, s.p + from, i - from);
			for (const char *p = named; *p; p += 2) {
				if (*p == (char)c)
					at = p + 1;
			}
			if (at)
				fw_buf_addf(out, "\\%c", *at);
			else
				fw_buf_addf(out, "\\u%04x", c);
		}
		i += n;
		from = i;
	}
	if (s.len > from)
		fw_buf_add(out, s.p + from, s.len - from);
	fw_buf_addc(out, '"');
}

void fw_json_str(struct fw_json *j, const char *key, struct fw_str s)
{
	if (!s.p)
		return;
	json_member_begin(j, key);
	fw_json_escape(j->out, s);
}

void fw_json_text(struct fw_json *j, const char *key, struct fw_str s)
{
	fw_json_str(j, key, s.p ? s : FW_STR(""));
}

void fw_json_cstr(struct fw_json *j, const char *key, const char *s)
{
	fw_json_str(j, key, fw_str(s));
}

void fw_json_int(struct fw_json *j, const char *key, int64_t v)
{
	json_member_begin(j, key);
	fw_buf_addf(j->out, "%lld", (long long)v);
}

void fw_json_double(struct fw_json *j, const char *key, double v)
{
	char text[40];

	if (!isfinite(v)) {
		fw_json_null(j, key);
		return;
	}
	json_member_begin(j, key);
	if (v == floor(v) && fabs(v) < 1e15) {
		fw_buf_addf(j->out, "%lld", (long long)v);
		return;
	}
	(void)fw_snprintf(text, sizeof(text), "%.15g", v);
	for (char *p = text; *p; p++) {
		if (*p == ',') /* if the program has set a locale */
			*p = '.';
	}
	fw_buf_adds(j->out, text);
}

void fw_json_bool(struct fw_json *j, const char *key, bool v)
{
	json_member_begin(j, key);
	fw_buf_adds(j->out, v ? "true" : "false");
}

void fw_json_null(struct fw_json *j, const char *key)
{
	json_member_begin(j, key);
	fw_buf_adds(j->out, "null");
}

void fw_json_time(struct fw_json *j, const char *key, int64_t at_ms)
{
	char text[FW_RFC3339_MAX];

	if (at_ms != FW_NO_TIME)
		fw_json_cstr(j, key, fw_rfc3339(text, at_ms));
}
