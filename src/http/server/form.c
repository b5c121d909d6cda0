/* SPDX-License-Identifier: ISC */
#include "base/err.h"
#include "http/server/form.h"

/* Decode s into *to, which has room for it, and move *to past the result. */
static struct fw_str form_decode(struct fw_str s, char **to)
{
	char *at = *to;

	for (size_t i = 0; i < s.len; i++) {
		int high = s.p[i] == '%' && i + 2 < s.len ? fw_hexval((unsigned char)s.p[i + 1]) : -1;
		int low = high >= 0 ? fw_hexval((unsigned char)s.p[i + 2]) : -1;

		if (low >= 0)
			i += 2;
		*at++ = low >= 0 ? (char)(high << 4 | low) : s.p[i] == '+' ? ' ' : s.p[i];
	}
	s = (struct fw_str){*to, (size_t)(at - *to)};
	*to = at;
	return s;
}

int http_form_read(struct fw_arena *a, struct fw_str text, size_t more, struct http_form *out)
{
	size_t n = 1 + more;
	char *to;

	*out = (struct http_form){.n = 0};
	for (size_t i = 0; i < text.len; i++)
		n += text.p[i] == '&';
	if (n > FORM_FIELDS_MAX)
		return FW_ELIMIT;
	out->cap = n;
	out->field = fw_arena_calloc(a, n, sizeof(*out->field));
	to = fw_arena_alloc(a, text.len);
	if (!out->field || !to)
		return FW_ENOMEM;
	if (!text.len)
		return 0;
	while (text.p) {
		struct fw_str value, name = fw_str_split(fw_str_split(text, '&', &text), '=', &value);

		if (!name.len && !value.len)
			continue;
		name = form_decode(name, &to);
		http_form_add(out, name, form_decode(value, &to));
	}
	return 0;
}

/* ---- multipart/form-data --------------------------------------------------------------------- */

#define FORM_PARTS_MAX 100

/* A parameter of a header: name="value" or name=value; absent: none. */
static struct fw_str form_parameter(struct fw_str header, struct fw_str name)
{
	struct fw_str rest = header;

	(void)fw_str_split(rest, ';', &rest);
	while (rest.p) {
		struct fw_str value, one = fw_str_trim(fw_str_split(rest, ';', &rest));

		if (!fw_str_ieq(fw_str_split(one, '=', &value), name) || !value.p)
			continue;
		if (value.len > 1 && value.p[0] == '"' && value.p[value.len - 1] == '"')
			value = fw_str_sub(value, 1, value.len - 1);
		return value;
	}
	return FW_STR_NONE;
}

/* The name in the part's head; absent: none. */
static struct fw_str form_part_name(struct fw_str head)
{
	while (head.p) {
		struct fw_str value, line = fw_str_trim(fw_str_split(head, '\n', &head));

		if (fw_str_ieq(fw_str_split(line, ':', &value), FW_STR("Content-Disposition")))
			return form_parameter(value, FW_STR("name"));
	}
	return FW_STR_NONE;
}

int http_form_read_parts(struct fw_arena *a, struct fw_str type, struct fw_str text, size_t more, struct http_form *out)
{
	struct fw_str boundary = form_parameter(type, FW_STR("boundary")), between;
	const char *at;

	*out = (struct http_form){.cap = FORM_PARTS_MAX + more};
	out->field = fw_arena_calloc(a, out->cap, sizeof(*out->field));
	between.p = fw_arena_printf(a, "\r\n--%.*s", FW_STR_ARG(boundary));
	if (!out->field || !between.p)
		return FW_ENOMEM;
	between.len = boundary.len + 4;
	if (!boundary.len || !fw_str_starts(text, fw_str_sub(between, 2, between.len)))
		return FW_EFORMAT;
	text = fw_str_sub(text, between.len - 2, text.len);
	while (!fw_str_starts(text, FW_STR("--"))) {
		struct fw_str part, head;

		at = fw_str_find(text, between);
		if (!at || out->n == FORM_PARTS_MAX)
			return FW_EFORMAT;
		part = fw_str_sub(text, 0, (size_t)(at - text.p));
		text = fw_str_sub(text, part.len + between.len, text.len);
		at = fw_str_find(part, FW_STR("\r\n\r\n"));
		if (!at)
			return FW_EFORMAT;
		head = fw_str_sub(part, 0, (size_t)(at - part.p));
		http_form_add(out, form_part_name(head), fw_str_sub(part, head.len + 4, part.len));
	}
	return 0;
}

/* ---- fields ---------------------------------------------------------------------------------- */

void http_form_add(struct http_form *f, struct fw_str name, struct fw_str value)
{
	if (f->n < f->cap)
		f->field[f->n++] = (struct http_form_field){name, value};
}

struct fw_str http_form_next(const struct http_form *f, const char *name, size_t *at)
{
	struct fw_str want = fw_str(name);

	while (*at < f->n) {
		const struct http_form_field *field = &f->field[(*at)++];

		if (fw_str_eq(field->name, want))
			return field->value;
	}
	return FW_STR_NONE;
}

struct fw_str http_form_get(const struct http_form *f, const char *name)
{
	size_t at = 0;

	return http_form_next(f, name, &at);
}

bool http_number_read(struct fw_str s, int64_t max, int64_t *out)
{
	int64_t v;

	for (size_t i = 0; i < s.len; i++) {
		if (!fw_is_digit((unsigned char)s.p[i]))
			return false;
	}
	if (s.len && !fw_str_int(s, &v))
		return false;
	if (s.len)
		*out = FW_MIN(v, max);
	return true;
}

bool http_form_number(const struct http_form *f, const char *name, int64_t max, int64_t *out)
{
	return http_number_read(http_form_get(f, name), max, out);
}

size_t http_form_count(const struct http_form *f, const char *name)
{
	size_t at = 0, n = 0;

	while (http_form_next(f, name, &at).p)
		n++;
	return n;
}
