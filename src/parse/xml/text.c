/* SPDX-License-Identifier: ISC */
/*
 * Decodes text with references as a whole: most of a feed is escaped HTML with a reference every
 * few bytes.
 *
 * No reference decoded here is shorter than its replacement (the few exceptions get an event of
 * their own), so the source length is enough room. There is nearly always slack, so whole blocks
 * are copied even if only part of a block is text.
 */
#include "parse/charset/scan.h"
#include "parse/xml/core.h"
#include "parse/xml/ref.h"
#include "parse/xml/text.h"
#include "parse/xml/util.h"

struct whole {
	struct xml_state *s;
	const char *from;       /* start of the current piece in the document */
	char *begin, *to, *end; /* the decoded piece; end: of the room */
};

/* Report the piece decoded so far, up to p in the document. */
static int piece_flush(struct whole *w, const char *p)
{
	struct fw_str text = {w->begin, (size_t)(w->to - w->begin)};

	w->begin = w->to;
	XML_TRY(fw_xml_emit(w->s, w->from, p, text));
	w->from = p;
	return 0;
}

/* Copy text that needs no decoding from p up to stop; returns where it ends. */
static const char *copy_text(struct whole *w, const char *p, const char *stop)
{
	const char *q;

#ifdef __SSE2__
	while (stop - p >= 16 && w->end - w->to >= 16) {
		__m128i v = scan_load(p);
		unsigned m = scan_bits(_mm_or_si128(_mm_or_si128(scan_eq(v, '<'), scan_eq(v, '&')),
			_mm_or_si128(scan_eq(v, ']'), scan_eq(v, '\r'))));
		unsigned n = m ? scan_first(m) : 16;

		_mm_storeu_si128((__m128i *)(void *)w->to, v);
		w->to += n;
		p += n;
		if (m)
			return p;
	}
#endif
	q = scan_text(p, stop);
	memcpy(w->to, p, (size_t)(q - p));
	w->to += q - p;
	return q;
}

/* A reference other than the five predefined ones. */
static int piece_reference(struct whole *w, const char **pp)
{
	const char *p = *pp;
	struct xml_ref r;

	XML_TRY(fw_xml_ref(w->s, p, &r, false));
	*pp = r.end;
	if (r.kind == XML_REF_LITERAL)
		r.text = (struct fw_str){p, (size_t)(r.end - p)};
	if (r.kind == XML_REF_SKIPPED)
		return 0;
	if (r.kind != XML_REF_ENTITY && r.text.len <= (size_t)(r.end - p)) {
		memcpy(w->to, r.text.p, r.text.len);
		w->to += r.text.len;
		return 0;
	}
	XML_TRY(piece_flush(w, p));
	XML_TRY(r.kind == XML_REF_ENTITY ? fw_xml_expand(w->s, p, r.entity) : fw_xml_emit(w->s, p, r.end, r.text));
	w->from = r.end;
	return 0;
}

int fw_xml_whole_text(struct xml_state *s, const char *from, const char **pp)
{
	const char *p = *pp, *lt = memchr(p, '<', (size_t)(s->end - p)), *stop = lt ? lt : s->end;
	size_t room = (size_t)(stop - from), len;
	struct whole w = {.s = s, .from = from, .begin = fw_arena_alloc(s->x->arena, room)};
	char *begin = w.begin;

	*pp = stop;
	if (!w.begin)
		return fw_xml_memory(s);
	w.end = w.begin + room;
	memcpy(w.begin, from, (size_t)(p - from));
	w.to = w.begin + (p - from);
	for (; p < stop; p = copy_text(&w, p, stop)) {
		const char *one;

		switch (*p) {
		case '&':
			one = fw_xml_predefined(p, stop, &len);
			if (one) {
				*w.to++ = *one;
				p += len;
			} else {
				XML_TRY(piece_reference(&w, &p));
				if (!s->x->depth) /* the entity ended the root element */
					*pp = stop = p;
			}
			break;
		case ']':
			if (stop - p >= 3 && p[1] == ']' && p[2] == '>')
				fw_xml_stray_cdata_end(s, p);
			*w.to++ = *p++;
			break;
		case '\r': /* a line end is one LF */
			if (!(stop - p >= 2 && p[1] == '\n'))
				*w.to++ = '\n';
			p++;
			break;
		}
	}
	XML_TRY(piece_flush(&w, stop));
	fw_arena_trim(s->x->arena, begin, room, (size_t)(w.to - begin));
	return 0;
}
