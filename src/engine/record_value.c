/* SPDX-License-Identifier: ISC */
#include "engine/record_value.h"

#include <jansson.h>

#include "base/json.h"
#include "base/str.h"
#include "base/banned.h"

void record_value_write(struct fw_buf *b, const struct record_member *m, const void *from)
{
	struct fw_json j;

	fw_json_init(&j, b, false);
	fw_json_object(&j, NULL);
	for (; m->name; m++) {
		const void *at = (const char *)from + m->offset;
		struct fw_str text = FW_STR_NONE;
		int64_t n = 0;

		switch (m->type) {
		case RECORD_NUMBER:
			n = *(const int64_t *)at;
			break;
		case RECORD_COUNT:
			n = *(const uint32_t *)at;
			break;
		case RECORD_FLAG:
			break;
		case RECORD_TEXT:
			text = *(const struct fw_str *)at;
			break;
		case RECORD_CHARS:
			text = fw_str(at);
			break;
		case RECORD_STATE:
			text = fw_str(m->states[*(const unsigned *)at]);
			break;
		}
		if (text.len)
			fw_json_str(&j, m->name, text);
		else if (n)
			fw_json_int(&j, m->name, n);
		else if (m->type == RECORD_FLAG && *(const bool *)at)
			fw_json_bool(&j, m->name, true);
	}
	fw_json_end(&j);
}

static bool record_state_parse(const char *const *states, struct fw_str name, unsigned *out)
{
	for (*out = 0; states[*out]; ++*out) {
		if (fw_str_eq(name, fw_str(states[*out])))
			return true;
	}
	return false;
}

bool record_value_parse(struct fw_str value, const struct record_member *m, struct fw_arena *a, void *to)
{
	/* a text from outside may contain NUL */
	json_t *o = json_loadb(value.p ? value.p : "", value.len, JSON_ALLOW_NUL, NULL);
	bool good = json_is_object(o);

	for (; m->name; m++) {
		const json_t *v = json_object_get(o, m->name);
		struct fw_str text = json_is_string(v) ? (struct fw_str){json_string_value(v), json_string_length(v)} :
							 FW_STR_NONE;
		void *at = (char *)to + m->offset;

		switch (m->type) {
		case RECORD_NUMBER:
			*(int64_t *)at = json_integer_value(v);
			break;
		case RECORD_COUNT:
			*(uint32_t *)at = (uint32_t)json_integer_value(v);
			break;
		case RECORD_FLAG:
			*(bool *)at = json_is_true(v);
			break;
		case RECORD_TEXT:
			*(struct fw_str *)at = fw_arena_str(a, text);
			break;
		case RECORD_CHARS:
			(void)fw_str_copy(at, m->cap, text);
			break;
		case RECORD_STATE:
			good &= record_state_parse(m->states, text, at);
			break;
		}
	}
	json_decref(o);
	return good;
}
