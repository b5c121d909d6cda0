/* SPDX-License-Identifier: ISC */
#include "base/err.h"
#include "http/form.h"
#include "base/banned.h"

/* Decode s into *to, which has room for it, and move *to behind the result. */
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

size_t http_form_count(const struct http_form *f, const char *name)
{
	size_t at = 0, n = 0;

	while (http_form_next(f, name, &at).p)
		n++;
	return n;
}
