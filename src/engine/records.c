/* SPDX-License-Identifier: ISC */
#include "engine/records.h"

#include <assert.h>
#include <jansson.h>

#include "base/err.h"
#include "base/json.h"
#include "base/str.h"

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

#define SLICE 200

/* Collected first: a callback of the store must not use the store. */
struct record_slice {
	struct fw_arena a;
	struct fw_str prefix, key[SLICE], value[SLICE];
	size_t n;
};

static int record_slice_add(void *ctx, const struct fw_record *r)
{
	struct record_slice *s = ctx;

	assert(s->n < SLICE);
	if (!fw_str_starts(r->key, s->prefix))
		return 1;
	s->key[s->n] = fw_arena_str(&s->a, r->key);
	s->value[s->n++] = fw_arena_str(&s->a, r->value);
	return 0;
}

int record_walk(struct fw_store *st, struct fw_str kind, struct fw_str prefix, record_walk_cb *cb, void *ctx,
	struct fw_err *err)
{
	struct record_slice s = {.prefix = prefix};
	struct fw_record_query q = {.kind = kind, .limit = SLICE};
	char after[FW_RECORD_KEY_MAX + 1];
	size_t after_len;
	int rc;

	fw_arena_init(&s.a, 0);
	after_len = FW_MIN(prefix.len, sizeof(after));
	if (after_len)
		memcpy(after, prefix.p, after_len);
	do {
		s.n = 0;
		fw_arena_reset(&s.a, 65536);
		q.after_key = after_len ? (struct fw_str){after, after_len} : FW_STR_NONE;
		rc = fw_store_record_list(st, &q, record_slice_add, &s, err);
		rc = rc < 0 ? rc : s.a.failed ? fw_no_memory(err) : 0;
		if (s.n) {
			after_len = FW_MIN(s.key[s.n - 1].len, sizeof(after));
			memcpy(after, s.key[s.n - 1].p, after_len);
		}
		for (size_t i = 0; i < s.n && !rc; i++)
			rc = cb(ctx, s.key[i], s.value[i], &s.a, err);
	} while (!rc && s.n == SLICE);
	fw_arena_finish(&s.a);
	return rc;
}
