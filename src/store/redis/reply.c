/* SPDX-License-Identifier: ISC */
/* What replies have to look like. redis.h has the letters of a shape. */
#include <assert.h>

#include "store/redis/redis.h"

const struct rs_reply rs_nil = {.type = RS_NIL};

/* Behind an item: behind its closing bracket, its mark of a count, and its '?'. */
static const char *shape_next(const char *p)
{
	int depth = 0;

	do {
		depth += *p == '[' || *p == '(';
		depth -= *p == ']' || *p == ')';
		assert(*p && depth >= 0);
		p++;
	} while (depth);
	p += *p == '=' || *p == '<';
	return p + (*p == '?');
}

static bool reply_is_int(const struct rs_reply *r, int64_t max)
{
	int64_t n = r->integer;

	if (r->type != RS_INT && (r->type != RS_TEXT || !fw_str_int(r->text, &n)))
		return false;
	return max == INT64_MAX || (n >= -max && n <= max);
}

static bool shape_fits(const char *p, const struct rs_reply *r, size_t n);

static bool tuple_fits(const char *p, const struct rs_reply *r, size_t n)
{
	size_t i = 0;

	for (; *p != ']' && *p != '.'; p = shape_next(p)) {
		if (i >= r->n || !shape_fits(p, r->elem[i++], n))
			return false;
	}
	return *p == '.' || i == r->n;
}

static bool list_fits(const char *p, const struct rs_reply *r, size_t n)
{
	const char *at = p;
	size_t group_n = 0;

	for (size_t i = 0; i < r->n; i++) {
		if (!shape_fits(at, r->elem[i], n))
			return false;
		at = shape_next(at);
		if (*at == ')') {
			at = p;
			group_n++;
		}
	}
	if (at != p)
		return false;
	while (*p != ')')
		p = shape_next(p);
	return p[1] == '=' ? group_n == n : p[1] != '<' || group_n <= n;
}

static bool shape_fits(const char *p, const struct rs_reply *r, size_t n)
{
	if (r->type == RS_NIL && (*p == 'x' || shape_next(p)[-1] == '?'))
		return true;
	switch (*p) {
	case 'i':
		return reply_is_int(r, STORE_ID_MAX);
	case 'h':
		return reply_is_int(r, INT64_MAX);
	case 't':
		return r->type == RS_TEXT;
	case 'x':
		return true;
	case '[':
		return r->type == RS_ARRAY && tuple_fits(p + 1, r, n);
	default:
		assert(*p == '(');
		return r->type == RS_ARRAY && list_fits(p + 1, r, n);
	}
}

bool rs_reply_fits(const struct rs_reply *r, const char *shape, size_t n)
{
	while (!shape_fits(shape, r, n)) {
		shape = shape_next(shape);
		if (*shape++ != '|')
			return false;
	}
	return true;
}

const struct rs_reply *rs_reply_error(const struct rs_reply *all)
{
	for (size_t i = 0; i < all->n; i++) {
		if (all->elem[i]->type == RS_ERROR)
			return all->elem[i];
	}
	return NULL;
}
