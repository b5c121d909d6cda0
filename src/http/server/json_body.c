/* SPDX-License-Identifier: ISC */
/* Bodies in JSON: objects whose members a table describes. */
#include "http/server/http.h"

json_t *http_json_body(struct request *r, enum MHD_Result *ok)
{
	json_error_t je;
	json_t *doc = json_loadb(r->body.p ? r->body.p : "", r->body.len, JSON_REJECT_DUPLICATES, &je);

	if (!doc)
		*ok = http_malformed(r, &je);
	return doc;
}

enum MHD_Result http_unprocessable(struct request *r, const char *place, const char *words)
{
	bool unknown = strcmp(words, HTTP_UNKNOWN_FIELD) == 0;

	return http_problem(r, MHD_HTTP_UNPROCESSABLE_CONTENT, "invalid", "%s: %s", unknown ? words : place,
		unknown ? place : words);
}

struct fw_str http_json_text(const json_t *o, const char *name)
{
	const json_t *v = json_object_get(o, name);

	return v ? (struct fw_str){json_string_value(v), json_string_length(v)} : FW_STR_NONE;
}

static bool member_fits(const struct json_member *m, const json_t *v)
{
	if (json_typeof(v) != m->type && !(m->either && json_is_boolean(v)))
		return false;
	return !m->natural || json_integer_value(v) >= 0;
}

const char *http_json_members(
	json_t *o, const struct json_member *m, size_t n, unsigned may, unsigned *has, const char **words)
{
	const char *name;
	json_t *v;

	json_object_foreach(o, name, v)
	{
		size_t i = 0;

		while (i < n && (strcmp(m[i].name, name) != 0 || !(m[i].bit & may)))
			i++;
		*words = i < n ? m[i].words : HTTP_UNKNOWN_FIELD;
		if (i == n || !member_fits(&m[i], v))
			return name;
		*has |= m[i].bit;
	}
	return NULL;
}

const char *http_json_member_words(const struct json_member *m, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(m[i].name, name) == 0)
			return m[i].words;
	}
	return HTTP_UNKNOWN_FIELD;
}
