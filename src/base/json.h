/* SPDX-License-Identifier: ISC */
/*
 * Writes JSON (RFC 8259) into a buffer. The writer keeps track of commas and nesting, escapes
 * strings, replaces invalid UTF-8 by U+FFFD, and formats numbers without regard to the locale.
 * jansson reads JSON.
 *
 *	fw_json_init(&j, &buf, true);
 *	fw_json_object(&j, NULL);
 *	fw_json_str(&j, "title", title);     // left out when absent
 *	fw_json_array(&j, "tags"); ... fw_json_end(&j);
 *	fw_json_end(&j);
 */
#ifndef FW_BASE_JSON_H
#define FW_BASE_JSON_H

#include "base/buf.h"

struct fw_json {
	struct fw_buf *out;
	int depth;
	bool pretty; /* two spaces per level */
	bool need_comma;
	uint64_t is_array; /* one bit per level, 63 levels */
	const char *key;   /* of fw_json_key() */
};

void fw_json_init(struct fw_json *j, struct fw_buf *out, bool pretty);
/* key is NULL inside arrays and at the top level. */
void fw_json_object(struct fw_json *j, const char *key);
/* The next value, whose own key is NULL, has this one. */
void fw_json_key(struct fw_json *j, const char *key);
void fw_json_array(struct fw_json *j, const char *key);
void fw_json_end(struct fw_json *j);
void fw_json_str(struct fw_json *j, const char *key, struct fw_str s);  /* absent (p NULL): nothing is written */
void fw_json_cstr(struct fw_json *j, const char *key, const char *s);   /* NULL: nothing is written */
void fw_json_text(struct fw_json *j, const char *key, struct fw_str s); /* absent: an empty text is written */
void fw_json_int(struct fw_json *j, const char *key, int64_t v);
void fw_json_double(struct fw_json *j, const char *key, double v); /* not finite: null */
void fw_json_bool(struct fw_json *j, const char *key, bool v);
void fw_json_null(struct fw_json *j, const char *key);
void fw_json_time(struct fw_json *j, const char *key, int64_t at_ms); /* RFC 3339; FW_NO_TIME: nothing */
void fw_json_escape(struct fw_buf *out, struct fw_str s);             /* with quotes */

#endif
