/* SPDX-License-Identifier: ISC */
/*
 * Parses entries as NDJSON, one JSON Feed item per line. The lines are joined into a feed document
 * and parsed as such, so an entry means the same in both forms. Line numbers are kept. Unlike web
 * documents, lines are written by a client that gets the error message: nothing is repaired.
 */
#include <jansson.h>
#include <string.h>

#include "base/str.h"
#include "parse/feed/json_repair.h"
#include "parse/parse.h"

#define HEAD "{\"version\":\"https://jsonfeed.org/version/1.1\",\"items\":["
#define TAIL "]}"

static int line_check(struct fw_arena *a, struct fw_str line, size_t number, struct fw_err *err)
{
	json_error_t why;
	bool is_object;
	size_t members;
	json_t *o;

	if (!fw_json_fits(a, line))
		return fw_err_set(err, FW_ELIMIT,
			"line %zu: parsing its %zu bytes exceeds the memory limit of %zu bytes"
			" (to raise it, set parse_memory_bytes)",
			number, line.len, a->max_bytes);
	o = json_loadb(line.p, line.len, JSON_DECODE_ANY, &why);
	is_object = json_is_object(o);
	members = json_object_size(o);
	json_decref(o);
	if (!o)
		return fw_err_set(err, FW_EINVAL, "line %zu, column %d: broken JSON: %s", number, why.column, why.text);
	if (!is_object)
		return fw_err_set(
			err, FW_EINVAL, "line %zu: not a JSON object (each line must be one JSON Feed item)", number);
	return members ? 0 : fw_err_set(err, FW_EINVAL, "line %zu: an empty item", number);
}

int fw_parse_ndjson(struct fw_arena *a, struct fw_str bytes, const struct fw_parse_options *o, struct fw_document **doc,
	struct fw_err *err)
{
	struct fw_parse_options options = *o;
	struct fw_str rest = bytes;
	bool any = false;
	size_t len = sizeof(HEAD) - 1;
	char *text;
	int rc = 0;

	*doc = NULL;
	if (o->limits.max_bytes && bytes.len > o->limits.max_bytes)
		return fw_err_set(
			err, FW_ELIMIT, "the document has %zu bytes, max_bytes is %zu", bytes.len, o->limits.max_bytes);
	/* a line gains at most a comma */
	text = fw_arena_mul(a, bytes.len, 2, sizeof(HEAD) + sizeof(TAIL));
	if (!text)
		return fw_err_set(err, FW_ENOMEM, "out of memory for %zu bytes of entries", bytes.len);
	memcpy(text, HEAD, sizeof(HEAD) - 1);
	for (size_t number = 1; rest.p && !rc; number++) {
		struct fw_str line = fw_str_trim(fw_str_split(rest, '\n', &rest));

		if (line.len) {
			rc = line_check(a, line, number, err);
			if (any)
				text[len++] = ',';
			memcpy(text + len, line.p, line.len);
			len += line.len;
			any = true;
		}
		if (rest.p)
			text[len++] = '\n';
	}
	if (rc)
		return rc;
	memcpy(text + len, TAIL, sizeof(TAIL) - 1);
	len += sizeof(TAIL) - 1;
	options.content_type = FW_STR("application/feed+json");
	options.limits.max_bytes = options.limits.max_bytes ? FW_MAX(options.limits.max_bytes, len) : 0;
	return fw_parse_into(a, (struct fw_str){text, len}, &options, doc, err);
}
