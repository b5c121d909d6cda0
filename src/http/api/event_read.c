/* SPDX-License-Identifier: ISC */
#include <string.h>

#include "http/api/event_read.h"

#define DIGITS_MAX 18

enum { PROPERTY = 1, SECTION = 2, ID = 4, ALL = 7 };

static void event_skip_space(struct event_reader *r)
{
	while (r->p < r->end && (*r->p == ' ' || *r->p == '\n' || *r->p == '\r' || *r->p == '\t'))
		r->p++;
}

/* Skip this byte and the space around it. */
static bool event_skip(struct event_reader *r, char c)
{
	event_skip_space(r);
	if (r->p == r->end || *r->p != c)
		return false;
	r->p++;
	event_skip_space(r);
	return true;
}

static bool event_string(struct event_reader *r, struct fw_str *out)
{
	const char *from;

	if (r->p == r->end || *r->p != '"')
		return false;
	from = ++r->p;
	while (r->p < r->end && *r->p >= ' ' && *r->p <= '~' && *r->p != '"' && *r->p != '\\')
		r->p++;
	if (r->p == r->end || *r->p != '"')
		return false;
	*out = (struct fw_str){from, (size_t)(r->p++ - from)};
	return true;
}

/*
 * An integer without leading zeros. The caller checks the next byte, so a fraction or an exponent
 * is unusual.
 */
static bool event_number(struct event_reader *r, int64_t *out)
{
	const char *from = r->p;
	int64_t v = 0;

	while (r->p < r->end && *r->p >= '0' && *r->p <= '9' && r->p - from < DIGITS_MAX)
		v = 10 * v + (*r->p++ - '0');
	*out = v;
	return r->p > from && (*from != '0' || r->p == from + 1);
}

/* Read one member. Returns PROPERTY, SECTION or ID; 0: another member or an invalid one. */
static int event_member(struct event_reader *r, struct fw_event *e)
{
	struct fw_str name;

	if (!event_string(r, &name) || !event_skip(r, ':'))
		return 0;
	if (name.len == 8 && !memcmp(name.p, "property", 8))
		return event_string(r, &e->property) ? PROPERTY : 0;
	if (name.len == 7 && !memcmp(name.p, "section", 7))
		return event_number(r, &e->section) ? SECTION : 0;
	if (name.len == 2 && !memcmp(name.p, "id", 2))
		return event_number(r, &e->item) ? ID : 0;
	return 0;
}

static bool event_object(struct event_reader *r, struct fw_event *e)
{
	int seen = 0, which;

	if (!event_skip(r, '{'))
		return false;
	do {
		which = event_member(r, e);
		if (!which || (seen & which))
			return false;
		seen |= which;
	} while (event_skip(r, ','));
	return seen == ALL && event_skip(r, '}');
}

int event_next(struct event_reader *r, struct fw_event *e)
{
	if (r->in_array && r->after && event_skip(r, ']'))
		r->in_array = false;
	if (!r->in_array) {
		event_skip_space(r);
		if (r->p == r->end)
			return EVENT_NONE;
		r->in_array = event_skip(r, '[');
		r->after = false;
	} else if (!event_skip(r, ',')) {
		return EVENT_UNUSUAL;
	}
	r->after = true;
	return event_object(r, e) ? EVENT_ONE : EVENT_UNUSUAL;
}
