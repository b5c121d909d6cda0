/* SPDX-License-Identifier: ISC */
/*
 * Searches ahead in the document's bytes, for what must be known about an element before it is
 * read.
 *
 * The tokenizer notices a missing end tag only when an outer element ends; until then everything
 * that follows seems to be inside. So when an element starts that is meaningless here and
 * meaningful further out, its end tag is searched for.
 *
 * The bytes searched are limited to SEARCHES times the document. After that no search is made, and
 * the document is read as if every element had its end tag.
 */
#include "parse/charset/scan.h"
#include "parse/feed/lookahead.h"

#define SEARCHES 4

struct lookahead_tag {
	struct fw_str name; /* as written, with its prefix */
	bool end, empty;
};

/* The end of the needle, or end. */
static const char *needle_end(const char *p, const char *end, struct fw_str needle)
{
	const char *at = fw_str_find((struct fw_str){p, (size_t)(end - p)}, needle);

	return at ? at + needle.len : end;
}

static struct fw_str name_at(const char *p, const char *end)
{
	if (p >= end || !scan_is(*p, SCAN_START))
		return (struct fw_str){p, 0};
	return (struct fw_str){p, (size_t)(scan_name(p, end).end - p)};
}

/* The next tag, skipping comments and CDATA. */
static bool tag_next(const char **pp, const char *end, struct lookahead_tag *t)
{
	const char *p = *pp, *q;

	while (p < end && (p = memchr(p, '<', (size_t)(end - p)))) {
		struct fw_str rest = {p, (size_t)(end - p)};

		if (fw_str_starts(rest, FW_STR("<!--"))) {
			p = needle_end(p + 4, end, FW_STR("-->"));
			continue;
		}
		if (fw_str_starts(rest, FW_STR("<![CDATA["))) {
			p = needle_end(p + 9, end, FW_STR("]]>"));
			continue;
		}
		p++;
		t->end = p < end && *p == '/';
		/* "</ name>" is read too */
		t->name = name_at(t->end ? scan_space(p + 1, end) : p, end);
		if (!t->name.len)
			continue;
		p = t->name.p + t->name.len;
		for (q = p; q < end && *q != '>' && *q != '<'; q++)
			;
		t->empty = q < end && *q == '>' && q[-1] == '/';
		*pp = q;
		return true;
	}
	return false;
}

/* The bytes from an offset on that the limit still permits to search. */
static struct fw_str searchable(const struct fw_builder *b, size_t from)
{
	size_t left = FW_MIN(b->text.len - from, b->text.len * SEARCHES - b->searched);

	return (struct fw_str){b->text.p + from, left};
}

/* The name as its start tag writes it; empty if that is in an entity. */
static struct fw_str frame_name(const struct fw_builder *b, const struct fw_frame *f)
{
	const char *p = b->text.p + f->at, *end = b->text.p + b->text.len;

	return p < end && *p == '<' ? name_at(p + 1, end) : FW_STR_NONE;
}

/*
 * Is the end tag of f missing before the end tag of the element around it? Elements of the same
 * name may be nested.
 */
static bool end_tag_absent(struct fw_builder *b, const struct fw_frame *f, const struct fw_frame *around)
{
	struct fw_str name = frame_name(b, f), outer = frame_name(b, around), s = searchable(b, f->at);
	const char *p = s.p, *end = s.p + s.len;
	bool whole = end == b->text.p + b->text.len;
	int64_t open = 0, outer_open = 1;
	struct lookahead_tag t;

	if (!name.len || !outer.len)
		return false;
	while (outer_open > 0 && tag_next(&p, end, &t)) {
		int change = t.end ? -1 : t.empty ? 0 : 1;

		if (fw_str_ieq(t.name, name)) {
			open += outer_open == 1 ? change : 0;
			if (open == 0 && outer_open == 1) {
				b->searched += (size_t)(p - s.p);
				return false;
			}
		} else if (fw_str_ieq(t.name, outer)) {
			outer_open += change;
		}
	}
	b->searched += outer_open > 0 ? s.len : (size_t)(p - s.p);
	return outer_open == 0 || whole;
}

bool fw_end_tag_missing(struct fw_builder *b, size_t n, size_t around)
{
	struct fw_frame *f = &b->frame[n];

	if (f->end == END_UNKNOWN)
		f->end = end_tag_absent(b, f, &b->frame[around]) ? END_MISSING : END_FOUND;
	return f->end == END_MISSING;
}

bool fw_lookahead(struct fw_builder *b, const char *local)
{
	struct fw_str s = searchable(b, b->xml->end_offset), rest, name;
	const char *p = s.p;
	struct lookahead_tag t;
	bool found = false;

	while (!found && tag_next(&p, s.p + s.len, &t)) {
		name = fw_str_split(t.name, ':', &rest);
		found = !t.end && fw_str_ieq(rest.p ? rest : name, fw_str(local));
	}
	b->searched += found ? (size_t)(p - s.p) : s.len;
	return found;
}

bool fw_frame_is_empty(const struct fw_builder *b, const struct fw_frame *f)
{
	struct fw_str name;
	const char *p = b->text.p + b->xml->end_offset, *end = b->text.p + b->text.len;

	if (p[-1] == '>' && p[-2] == '/')
		return true;
	p = scan_space(p, end);
	if (p == end)
		return true;
	if (end - p < 2 || p[0] != '<' || p[1] != '/')
		return false;
	name = frame_name(b, f);
	return name.len && fw_str_ieq(name_at(p + 2, end), name);
}
