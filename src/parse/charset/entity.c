/* SPDX-License-Identifier: ISC */
/*
 * HTML's named character references, and the decoding of all references in text as browsers do it.
 */
#include "base/str.h"
#include "base/utf8.h"
#include "parse/charset/decode.h"
#include "parse/charset/entity.h"
#include "parse/charset/entity_table.h"

/* Compare name with table entry i in byte order: -1, 0 or 1. */
static int entity_compare(struct fw_str name, size_t i)
{
	size_t len = ENTITIES[i].len;
	int c = memcmp(name.p, NAMES + ENTITIES[i].name, FW_MIN(name.len, len));

	return c ? c : FW_ORDER(name.len, len);
}

static const struct entity_name *entity_lookup(struct fw_str name)
{
	size_t lo, hi;

	if (name.len == 0 || name.len > ENTITY_LONGEST || name.p[0] < 'A' || name.p[0] > 'z')
		return NULL;
	lo = BY_LETTER[name.p[0] - 'A'];
	hi = BY_LETTER[name.p[0] - 'A' + 1];
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		int c = entity_compare(name, mid);

		if (c == 0)
			return &ENTITIES[mid];
		if (c < 0)
			hi = mid;
		else
			lo = mid + 1;
	}
	return NULL;
}

int fw_entity_find(struct fw_str name, uint32_t cp[2])
{
	const struct entity_name *e = entity_lookup(name);

	if (!e)
		return 0;
	cp[0] = e->first;
	cp[1] = e->second;
	return e->second ? 2 : 1;
}

bool fw_entity_number(const char **pp, const char *end, uint32_t *cp)
{
	const char *p = *pp, *from;
	bool hex = p < end && (*p == 'x' || *p == 'X');
	uint32_t v = 0;

	p += hex;
	for (from = p; p < end; p++) {
		int d = hex ? fw_hexval((unsigned char)*p) : fw_is_digit((unsigned char)*p) ? *p - '0' : -1;

		if (d < 0)
			break;
		v = v > 0x110000 ? v : v * (hex ? 16u : 10u) + (uint32_t)d;
	}
	*pp = p;
	*cp = v;
	return p != from;
}

/* The length of "#8217;" or "#x2019" after the '&'; 0: not a numeric reference. */
static size_t reference_numeric(struct fw_str s, uint32_t *cp)
{
	const char *p = s.p + 1, *end = s.p + s.len;

	if (!fw_entity_number(&p, end, cp))
		return 0;
	if (*cp >= 0x80 && *cp < 0xa0) /* HTML standard, "numeric character reference end state" */
		*cp = fw_windows_1252((unsigned char)*cp);
	if (*cp == 0)
		*cp = 0xfffd;
	p += p < end && *p == ';';
	return (size_t)(p - s.p);
}

/* A named reference after the '&'. Without a semicolon the longest legacy name matches. */
static size_t reference_named(struct fw_str s, const struct entity_name **out)
{
	size_t n = 0;

	while (n < s.len && n <= ENTITY_LONGEST && fw_is_alnum((unsigned char)s.p[n]))
		n++;
	if (n < s.len && s.p[n] == ';') {
		*out = entity_lookup((struct fw_str){s.p, n});
		if (*out)
			return n + 1;
	}
	for (n = FW_MIN(n, (size_t)6); n >= 2; n--) { /* the longest legacy name has six letters */
		*out = entity_lookup((struct fw_str){s.p, n});
		if (*out && (*out)->legacy)
			return n;
	}
	return 0;
}

struct fw_str fw_entity_decode(struct fw_arena *a, struct fw_str s)
{
	const char *p = s.p, *end = p + s.len, *amp = s.len ? memchr(p, '&', s.len) : NULL;
	struct fw_str r;
	char *d;

	if (!amp)
		return s;
	/* a reference is never shorter than two thirds of its UTF-8 text */
	d = fw_arena_alloc(a, s.len + s.len / 2 + 8);
	if (!d)
		return FW_STR_NONE;
	r.p = d;
	while (amp) {
		struct fw_str rest = {amp + 1, (size_t)(end - amp - 1)};
		const struct entity_name *e = NULL;
		uint32_t cp = 0;
		size_t n;

		memcpy(d, p, (size_t)(amp - p));
		d += amp - p;
		n = rest.len && *rest.p == '#' ? reference_numeric(rest, &cp) : reference_named(rest, &e);
		if (n == 0) {
			*d++ = '&';
		} else if (e) {
			d += fw_utf8_put(d, e->first);
			d += e->second ? fw_utf8_put(d, e->second) : 0;
		} else {
			d += fw_utf8_put(d, cp);
		}
		p = amp + 1 + n;
		amp = p < end ? memchr(p, '&', (size_t)(end - p)) : NULL;
	}
	memcpy(d, p, (size_t)(end - p));
	d += end - p;
	r.len = (size_t)(d - r.p);
	fw_arena_trim(a, (void *)(uintptr_t)r.p, s.len + s.len / 2 + 8, r.len);
	return r;
}
