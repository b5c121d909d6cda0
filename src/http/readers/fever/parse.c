/* SPDX-License-Identifier: ISC */
#include "base/clock.h"
#include "http/readers/fever/fever.h"

bool fever_key_read(struct fw_str s, char out[FEVER_KEY_LEN + 1])
{
	s = fw_str_trim(s);
	if (s.len != FEVER_KEY_LEN)
		return false;
	for (size_t i = 0; i < FEVER_KEY_LEN; i++) {
		if (fw_hexval((unsigned char)s.p[i]) < 0)
			return false;
		out[i] = (char)fw_lower((unsigned char)s.p[i]);
	}
	out[FEVER_KEY_LEN] = '\0';
	return true;
}

bool fever_ids_read(struct fw_str s, int64_t *out, size_t max, size_t *n)
{
	*n = 0;
	while (s.p) {
		struct fw_str one = fw_str_trim(fw_str_split(s, ',', &s));
		int64_t id;

		if (!one.len)
			continue;
		if (!fw_str_int(one, &id))
			return false;
		if (*n < max)
			out[(*n)++] = id;
	}
	return true;
}

/* Which of the words is it? n: none. */
static size_t fever_word(struct fw_str s, const char *const *word, size_t n)
{
	size_t i = 0;

	while (i < n && !fw_str_eq(s, fw_str(word[i])))
		i++;
	return i;
}

/* A time in seconds; beyond what a time can be it is the end of time. */
static bool fever_before_read(struct fw_str s, int64_t *out_ms)
{
	int64_t v = 0;

	*out_ms = 0;
	if (s.len && (!fw_str_int(s, &v) || v < 0))
		return false;
	*out_ms = FW_MIN(v, INT64_C(1000000000000)) * FW_SECOND_MS;
	return true;
}

const char *fever_mark_read(const struct http_form *f, struct fever_mark *out)
{
	static const char *const WHAT[] = {"item", "feed", "group"},
				 *const AS[] = {"read", "unread", "saved", "unsaved"};
	struct fw_str what = http_form_get(f, "mark");
	size_t i;
	int64_t id;

	*out = (struct fever_mark){.what = FEVER_NOTHING};
	if (!what.len)
		return NULL;
	i = fever_word(what, WHAT, FW_N(WHAT));
	if (i == FW_N(WHAT))
		return "mark";
	out->what = FEVER_ITEM + (enum fever_what)i;
	i = fever_word(http_form_get(f, "as"), AS, FW_N(AS));
	if (i == FW_N(AS) || (out->what != FEVER_ITEM && i != FEVER_READ))
		return "as";
	out->as = (enum fever_as)i;
	out->id = http_form_get(f, "id");
	if (!out->id.len || (out->what != FEVER_ITEM && !fw_str_int(out->id, &id)))
		return "id";
	return fever_before_read(http_form_get(f, "before"), &out->before_ms) ? NULL : "before";
}
