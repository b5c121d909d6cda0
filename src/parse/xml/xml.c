/* SPDX-License-Identifier: ISC */
/*
 * The tokenizer: text, sections, instructions, references, and the document around them.
 *
 * One loop (fw_xml_content) walks the input from one markup character to the next. Well-formed
 * input takes the fast path: names and values are slices, a name without a colon needs no namespace
 * look-up, an end tag is one comparison with the top of the stack. Everything else goes to a
 * function that repairs, reports and returns.
 *
 * Linear time: no search is repeated. A search that reached the end of the document is remembered
 * (no_quote and so on); see also tag.c and attr.c.
 *
 * Entities are read by the same loop on their replacement text, "the window". Other files: tag.c
 * tags and the stack, attr.c attributes, prefix.c namespaces, ref.c references and values, text.c
 * text with references in one piece, dtd.c the internal subset, util.c shared helpers.
 */
#include "parse/charset/scan.h"
#include "parse/xml/core.h"
#include "parse/xml/dtd.h"
#include "parse/xml/ref.h"
#include "parse/xml/tag.h"
#include "parse/xml/text.h"
#include "parse/xml/util.h"
#include "parse/xml/xml.h"

/* ---- characters that XML forbids ------------------------------------------------------------- */

enum { RARE_CONTROL = 1, RARE_EF = 2, ILLEGAL = 4, CR = 8 };

/*
 * Bytes that need a second look: controls other than tab and line feed, and the first byte of
 * U+FFFE and U+FFFF.
 */
SCAN_WIDE static unsigned rare_run(const unsigned char *p, size_t n)
{
	unsigned char seen = 0;

	for (size_t i = 0; i < n; i++) {
		unsigned char c = p[i];

		seen |= (c < 0x20) & (c != '\t') & (c != '\n');
		seen |= (unsigned char)((c == 0xef) << 1);
	}
	return seen;
}

SCAN_WIDE static unsigned control_run(const unsigned char *p, size_t n)
{
	unsigned char seen = 0;

	for (size_t i = 0; i < n; i++) {
		unsigned char c = p[i];

		seen |= (unsigned char)(((c < 0x20) & (c != '\t') & (c != '\n') & (c != '\r')) << 2);
		seen |= (unsigned char)((c == '\r') << 3);
	}
	return seen;
}

/* Two more bytes must be readable. */
SCAN_WIDE static unsigned last_of_plane_run(const unsigned char *p, size_t n)
{
	unsigned char seen = 0;

	for (size_t i = 0; i < n; i++)
		seen |= (unsigned char)(((p[i] == 0xef) & (p[i + 1] == 0xbf) & (p[i + 2] >= 0xbe)) << 2);
	return seen;
}

/*
 * Does the document contain a character that XML 1.0 forbids (a control, U+FFFE, U+FFFF), or a CR?
 */
static void chars_inspect(const char *p, size_t n, bool *illegal, bool *cr)
{
	const unsigned char *at = (const unsigned char *)p, *end = at + n;
	unsigned seen = 0;

	for (size_t some; at < end; at += some) {
		unsigned rare;

		some = FW_MIN((size_t)(end - at), (size_t)4096);
		rare = rare_run(at, some);
		if (rare & RARE_CONTROL)
			seen |= control_run(at, some);
		if (rare & RARE_EF)
			seen |= last_of_plane_run(at, FW_MIN(some, (size_t)(end - at - FW_MIN(end - at, 2))));
	}
	*illegal = seen & ILLEGAL;
	*cr = seen & CR;
}

/* The length in bytes of a forbidden character at p; 0: not forbidden. */
static size_t illegal_at(const char *p, const char *end)
{
	if (scan_is(*p, SCAN_CTL))
		return 1;
	return *p == '\xef' && end - p >= 3 && p[1] == '\xbf' && (unsigned char)p[2] >= 0xbe ? 3 : 0;
}

/* ---- text ------------------------------------------------------------------------------------ */

/*
 * Text outside every element: white space is fine; the rest is dropped and reported once per run.
 */
static void text_outside(struct xml_state *s, const char *p, const char *end)
{
	p = scan_space(p, end);
	if (p == end)
		return;
	if (!s->junk_reported) {
		if (end - p >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
			fw_xml_repair(s, p, "a second byte order mark", "left out");
		else if (s->seen_element)
			fw_xml_repair(s, p, "text after the document's element", "left out");
		else
			fw_xml_repair(s, p, "text before the document's element", "left out");
	}
	s->junk_reported = true;
	s->x->malformed = true;
}

static inline int emit(struct xml_state *s, const char *p, const char *end, struct fw_str text, bool cdata)
{
	struct fw_xml *x = s->x;

	if (x->depth == 0) {
		text_outside(s, text.p, text.p + text.len);
		return 0;
	}
	if (!s->h->text || text.len == 0)
		return 0;
	x->offset = xml_at(s, p);
	x->end_offset = xml_at(s, end);
	return s->h->text(x->ctx, text, cdata);
}

static inline int emit_run(struct xml_state *s, const char *p, const char *end, bool cdata)
{
	if (p == end)
		return 0;
	return emit(s, p, end, (struct fw_str){p, (size_t)(end - p)}, cdata);
}

int fw_xml_emit(struct xml_state *s, const char *p, const char *end, struct fw_str text)
{
	return emit(s, p, end, text, false);
}

/* *pp is at a CR. A line end becomes one LF. */
static int carriage_return(struct xml_state *s, const char **pp, bool cdata)
{
	const char *p = (*pp)++;

	if (s->in_entity) /* it came from a character reference */
		return emit_run(s, p, p + 1, cdata);
	if (*pp < s->end && **pp == '\n')
		return 0; /* the LF starts the next run */
	return emit(s, p, p + 1, FW_STR("\n"), cdata);
}

/* Treat a "<" that starts nothing as text. */
int fw_xml_stray_lt(struct xml_state *s, const char **pp)
{
	const char *p = (*pp)++;

	fw_xml_repair(s, p, "a '<' that starts no markup", "taken as text");
	return emit_run(s, p, p + 1, false);
}

/* A run without markup in a document with forbidden characters, which are dropped. */
static int dirty_run(struct xml_state *s, const char *p, const char *end, bool cdata)
{
	const char *from = p;

	while (p < end) {
		size_t n = illegal_at(p, s->end);

		if (n == 0) {
			p++;
			continue;
		}
		XML_TRY(emit_run(s, from, p, cdata));
		fw_xml_repair(s, p, "a character that XML forbids", "left out");
		p += n;
		from = p;
	}
	return emit_run(s, from, end, cdata);
}

static inline int text_run(struct xml_state *s, const char *p, const char *end, bool cdata)
{
	return s->dirty ? dirty_run(s, p, end, cdata) : emit_run(s, p, end, cdata);
}

/* A copy without CR and forbidden characters, for comments and processing instructions. */
static int text_cleaned(struct xml_state *s, const char *p, const char *end, struct fw_str *out)
{
	bool cr = !s->in_entity && memchr(p, '\r', (size_t)(end - p)) != NULL;
	char *d;

	*out = (struct fw_str){p, (size_t)(end - p)};
	if (!cr && !s->dirty)
		return 0;
	d = fw_arena_alloc(s->x->arena, out->len + 1);
	if (!d)
		return fw_xml_memory(s);
	out->p = d;
	while (p < end) {
		size_t n = s->dirty ? illegal_at(p, end) : 0;

		if (n) {
			fw_xml_repair(s, p, "a character that XML forbids", "left out");
			p += n;
		} else if (cr && *p == '\r') {
			if (end - p < 2 || p[1] != '\n')
				*d++ = '\n';
			p++;
		} else {
			*d++ = *p++;
		}
	}
	out->len = (size_t)(d - out->p);
	return 0;
}

/*
 * The assumed end of an unterminated construct: after the next '>'; in an entity, the entity's end,
 * so that time stays linear.
 */
static const char *construct_end_guess(const struct xml_state *s, const char *p)
{
	p = s->in_entity ? NULL : memchr(p, '>', (size_t)(s->end - p));
	return p ? p + 1 : s->end;
}

/* ---- comments, sections, instructions -------------------------------------------------------- */

/* *pp at "<!--". */
static int comment_read(struct xml_state *s, const char **pp)
{
	const char *lt = *pp, *from = lt + 4, *p = fw_xml_find_once(s, from, "--", 2, &s->no_comment_end), *stop, *next;
	struct fw_str text;

	stop = next = NULL;
	if (p && s->end - p >= 3 && p[2] == '>') {
		stop = p;
		next = p + 3;
		/* "--" inside: it ends at "-->", or as in browsers at "-- >" or "--!>" */
	} else if (p) {
		fw_xml_repair(s, p, "\"--\" inside a comment", "kept");
		for (; p; p = fw_xml_find(p + 1, s->end, "--", 2)) {
			const char *q = p + 2;

			if (q < s->end && *q == '!')
				q++;
			else
				q = scan_space(q, s->end);
			if (q < s->end && *q == '>') {
				stop = p;
				next = q + 1;
				break;
			}
		}
	}
	if (!stop) {
		fw_xml_repair(s, lt, "a comment that does not end", "it ends at the next '>'");
		next = construct_end_guess(s, from);
		stop = next > from ? next - (next[-1] == '>') : next;
		s->no_comment_end |= !s->in_entity;
	}
	*pp = next;
	if (!s->h->comment && !s->dirty)
		return 0;
	XML_TRY(text_cleaned(s, from, stop, &text));
	s->x->offset = xml_at(s, lt);
	s->x->end_offset = xml_at(s, next);
	return s->h->comment ? s->h->comment(s->x->ctx, text) : 0;
}

/*
 * The likely end of a CDATA section without "]]>": "]]" or "]>" before the next end tag, else the
 * input's end.
 */
static const char *cdata_guess(const char *p, const char *end, const char **next)
{
	for (const char *q = p; (q = memchr(q, ']', (size_t)(end - q))) != NULL; q++) {
		const char *r = q + 1;

		while (r < end && (*r == ']' || *r == '>' || scan_is(*r, SCAN_SPACE)))
			r++;
		if (r > q + 1 && end - r >= 2 && r[0] == '<' && r[1] == '/') {
			*next = r;
			return q;
		}
		q = r - 1;
	}
	*next = end;
	return end;
}

/*
 * The length of a CDATA section's opening at "<!": "<![CDATA[" in any case, also with spaces or
 * without one of its brackets. 0: none.
 */
static size_t cdata_mark(const char *lt, const char *end)
{
	const char *p = lt + 2, *name;
	bool open = p < end && *p == '[';

	end = end - lt > 40 ? lt + 40 : end; /* accept a limited number of spaces */
	for (p += open; p < end && open && scan_is(*p, SCAN_SPACE); p++)
		;
	if (end - p < 5 || !fw_str_ieq((struct fw_str){p, 5}, FW_STR("CDATA")))
		return 0;
	name = p + 5;
	for (p = name; p < end && scan_is(*p, SCAN_SPACE); p++)
		;
	if (p < end && *p == '[')
		return (size_t)(p + 1 - lt);
	return open && (p > name || (p < end && !fw_is_alnum(*p))) ? (size_t)(name - lt) : 0;
}

/* *pp is at the start of a CDATA section whose opening has length mark. */
static int cdata_read(struct xml_state *s, const char **pp, size_t mark)
{
	const char *lt = *pp, *p = lt + mark, *next, *stop = fw_xml_find_once(s, p, "]]>", 3, &s->no_cdata_end);

	if (mark != 9)
		fw_xml_repair(s, lt, "a CDATA section with a malformed start", "taken for one");
	else if (memcmp(lt, "<![CDATA[", 9) != 0)
		fw_xml_repair(s, lt, "a CDATA section not in capitals", "taken for one");
	if (stop) {
		next = stop + 3;
	} else {
		fw_xml_repair(s, lt, "a CDATA section that does not end", "it ends where its element does");
		stop = cdata_guess(p, s->end, &next);
	}
	*pp = next;
	if (s->x->depth == 0) {
		fw_xml_repair(s, lt, "a CDATA section outside the document's element", "left out");
		return 0;
	}
	while (s->has_cr && p < stop) {
		const char *cr = memchr(p, '\r', (size_t)(stop - p));

		if (!cr)
			break;
		XML_TRY(text_run(s, p, cr, true));
		p = cr;
		XML_TRY(carriage_return(s, &p, true));
	}
	return text_run(s, p, stop, true);
}

/* *pp is at a "<!" that starts neither a comment nor CDATA. */
static int declaration_read(struct xml_state *s, const char **pp)
{
	const char *lt = *pp, *end = s->end;

	if (end - lt < 3)
		return fw_xml_cut_tag(s, pp);
	if (end - lt >= 9 && fw_str_ieq((struct fw_str){lt, 9}, FW_STR("<!DOCTYPE")) && s->x->depth == 0 &&
		!s->in_entity) {
		if (memcmp(lt, "<!DOCTYPE", 9) != 0)
			fw_xml_repair(s, lt, "DOCTYPE not in capitals", "taken for one");
		if (s->seen_element || s->seen_doctype)
			fw_xml_repair(s, lt, "a DOCTYPE after another or after the document's element", "left out");
		if (!s->seen_doctype && !s->seen_element) {
			s->seen_doctype = true;
			return fw_xml_doctype(s, pp);
		}
		*pp = construct_end_guess(s, lt);
		return 0;
	}
	if (!fw_is_alpha(lt[2]) && lt[2] != '[' && lt[2] != '-')
		return fw_xml_stray_lt(s, pp);
	fw_xml_repair(s, lt, "a misplaced declaration", "left out");
	*pp = construct_end_guess(s, lt);
	return 0;
}

static bool is_decl(const char *p, const char *end)
{
	return end - p >= 6 && memcmp(p, "<?xml", 5) == 0 && scan_is(p[5], SCAN_SPACE);
}

/* *pp is at "<?". */
static int instruction_read(struct xml_state *s, const char **pp)
{
	const char *lt = *pp, *p = lt + 2, *end = s->end, *stop;
	SCAN_SET_WHOLE struct scan_name n = scan_name(p, end);
	struct fw_str target = {p, (size_t)(n.end - p)}, data;

	stop = fw_xml_find_once(s, p, "?>", 2, &s->no_pi_end);
	if (!stop) {
		fw_xml_repair(s, lt, "a processing instruction that does not end", "it ends at the next '>'");
		stop = construct_end_guess(s, p);
		*pp = stop;
		return 0;
	}
	*pp = stop + 2;
	if (target.len == 0 || !scan_is(*p, SCAN_START) || (n.end != stop && !scan_is(*n.end, SCAN_SPACE)) || n.colon ||
		(n.high && !fw_xml_name_ok(p, n.end))) {
		fw_xml_repair(s, lt, "a processing instruction without a proper name", "left out");
		return 0;
	}
	if (target.len == 3 && fw_str_ieq(target, FW_STR("xml"))) {
		fw_xml_repair(s, lt, "an XML declaration that is not at the start", "left out");
		/* elements open before it (an HTML page, a warning) are not part of the document */
		if (!is_decl(lt, end) || s->in_entity || s->x->depth == 0)
			return 0;
		s->seen_element = s->seen_doctype = false;
		return fw_xml_close_to(s, lt, 0, "an element around the document");
	}
	if (!s->h->pi && !s->dirty)
		return 0;
	XML_TRY(text_cleaned(s, scan_space(n.end, stop), stop, &data));
	s->x->offset = xml_at(s, lt);
	s->x->end_offset = xml_at(s, *pp);
	return s->h->pi ? s->h->pi(s->x->ctx, target, data) : 0;
}

static int markup_read(struct xml_state *s, const char **pp)
{
	const char *p = *pp;
	size_t left = (size_t)(s->end - p), mark;

	if (left < 2)
		return fw_xml_stray_lt(s, pp);
	if (scan_is(p[1], SCAN_START))
		return fw_xml_start_tag(s, pp);
	switch (p[1]) {
	case '/':
		return fw_xml_end_tag(s, pp);
	case '!':
		if (left >= 4 && p[2] == '-' && p[3] == '-')
			return comment_read(s, pp);
		mark = cdata_mark(p, s->end);
		return mark ? cdata_read(s, pp, mark) : declaration_read(s, pp);
	case '?':
		return instruction_read(s, pp);
	default:
		return fw_xml_stray_lt(s, pp);
	}
}

/* ---- content --------------------------------------------------------------------------------- */

/* Read an entity's replacement text as if it stood at p. */
int fw_xml_expand(struct xml_state *s, const char *p, struct xml_entity *e)
{
	const char *begin = s->begin, *end = s->end;
	bool in_entity = s->in_entity;
	uint32_t depth = s->x->depth;
	int rc;

	fw_xml_enter(s, p, e);
	rc = fw_xml_content(s, s->begin);
	fw_xml_leave(s, e, begin, end, in_entity);
	if (!rc && s->x->depth != depth)
		fw_xml_repair(s, p, "an entity that begins or ends inside an element", "read in place");
	return rc;
}

static int reference_read(struct xml_state *s, const char **pp)
{
	const char *p = *pp;
	struct xml_ref r;

	XML_TRY(fw_xml_ref(s, p, &r, false));
	*pp = r.end;
	if (s->x->depth == 0 && r.kind != XML_REF_LITERAL) {
		fw_xml_repair(s, p, "a reference outside the document's element", "left out");
		return 0;
	}
	switch (r.kind) {
	case XML_REF_LITERAL:
		return emit_run(s, p, r.end, false);
	case XML_REF_CHAR:
		return emit(s, p, r.end, r.text, false);
	case XML_REF_ENTITY:
		return fw_xml_expand(s, p, r.entity);
	case XML_REF_SKIPPED:
		break;
	}
	return 0;
}

void fw_xml_stray_cdata_end(struct xml_state *s, const char *p)
{
	fw_xml_repair(s, p, "\"]]>\" outside a CDATA section", "taken as text");
}

int fw_xml_content(struct xml_state *s, const char *p)
{
	const char *end = s->end, *from = p;
	int rc = 0;

	while (rc == 0) {
		p = scan_text(p, end);
		if (p < end && *p == ']') {
			if (end - p >= 3 && p[1] == ']' && p[2] == '>' && s->x->depth)
				fw_xml_stray_cdata_end(s, p);
			p++;
			continue;
		}
		if (p < end && *p == '&' && s->x->whole_text && !s->in_entity && !s->dirty && s->x->depth) {
			rc = fw_xml_whole_text(s, from, &p);
			from = p;
			continue;
		}
		if (p != from)
			rc = text_run(s, from, p, false);
		if (rc || p == end)
			break;
		if (*p == '<')
			rc = markup_read(s, &p);
		else if (*p == '&')
			rc = reference_read(s, &p);
		else
			rc = carriage_return(s, &p, false);
		from = p;
	}
	return rc;
}

/* ---- the document ---------------------------------------------------------------------------- */

/* Read one pseudo-attribute of the XML declaration. False: none. */
static bool pseudo_attribute(const char **pp, const char *end, struct fw_str *name, struct fw_str *value)
{
	const char *p = scan_space(*pp, end), *q;

	if (p == end || p == *pp)
		return false;
	name->p = p;
	while (p < end && fw_is_alpha((unsigned char)*p))
		p++;
	name->len = (size_t)(p - name->p);
	p = scan_space(p, end);
	if (p == end || *p != '=')
		return false;
	p = scan_space(p + 1, end);
	if (p == end || (*p != '"' && *p != '\''))
		return false;
	for (q = p + 1; q < end && *q != *p; q++) {
		if (!fw_is_alnum((unsigned char)*q) && *q != '.' && *q != '-' && *q != '_')
			return false;
	}
	if (q == end)
		return false;
	*value = (struct fw_str){p + 1, (size_t)(q - p - 1)};
	*pp = q + 1;
	return true;
}

/* version, then optionally encoding, then optionally standalone (XML 1.0 section 2.8) */
static bool decl_ok(struct xml_state *s, const char *p, const char *end)
{
	struct fw_str name, value;

	if (!pseudo_attribute(&p, end, &name, &value) || !fw_str_eq(name, FW_STR("version")))
		return false;
	if (scan_space(p, end) == end)
		return true;
	if (!pseudo_attribute(&p, end, &name, &value))
		return false;
	if (fw_str_eq(name, FW_STR("encoding"))) {
		if (value.len == 0 || !fw_is_alpha((unsigned char)*value.p))
			return false;
		if (scan_space(p, end) == end)
			return true;
		if (!pseudo_attribute(&p, end, &name, &value))
			return false;
	}
	s->standalone = fw_str_eq(value, FW_STR("yes"));
	return fw_str_eq(name, FW_STR("standalone")) && (s->standalone || fw_str_eq(value, FW_STR("no"))) &&
		scan_space(p, end) == end;
}

static const char *xml_decl(struct xml_state *s, const char *p)
{
	const char *stop = fw_xml_find(p, s->end, "?>", 2);

	if (!stop) {
		fw_xml_repair(s, p, "an XML declaration that does not end", "it ends at the next '>'");
		return construct_end_guess(s, p);
	}
	if (!decl_ok(s, p + 5, stop))
		fw_xml_repair(s, p, "a malformed XML declaration", "left out");
	return stop + 2;
}

int fw_xml_parse(struct fw_xml *x, const char *input, size_t len, struct fw_err *err)
{
	static const struct fw_xml_handler none;
	struct xml_state *s = fw_arena_zalloc(x->arena, sizeof(*s));
	const char *p = input;

	x->offset = x->end_offset = 0;
	x->malformed = false;
	x->depth = x->skipped = 0;
	x->priv = s;
	if (!s)
		return fw_err_set(
			err, x->arena->max_bytes ? FW_ELIMIT : FW_ENOMEM, "out of memory reading the document");
	s->x = x;
	s->h = x->handler ? x->handler : &none;
	s->err = err;
	s->seed = (uint64_t)(uintptr_t)s * UINT64_C(0x9e3779b97f4a7c15);
	s->begin = input;
	s->end = input + len;
	s->max_depth = x->limits.max_depth ? x->limits.max_depth : 256;
	s->max_attributes = x->limits.max_attributes ? x->limits.max_attributes : 1000;
	s->max_expanded = (x->limits.max_entity_ratio ? x->limits.max_entity_ratio : 20) * FW_MAX(len, (size_t)4096);
	chars_inspect(input, len, &s->dirty, &s->has_cr);
	/* for a forbidden character anywhere; each is reported where it occurs in text */
	x->malformed = s->dirty;
	if (is_decl(p, s->end))
		p = xml_decl(s, p);
	XML_TRY(fw_xml_content(s, p));
	XML_TRY(fw_xml_close_to(s, s->end, 0, "an element without an end tag"));
	if (!s->seen_element)
		fw_xml_repair(s, s->end, "a document without an element", "nothing to read");
	return 0;
}

void fw_xml_place_move(
	struct fw_xml_place *at, const char *input, size_t len, size_t offset, uint32_t *line, uint32_t *column)
{
	if (offset > len)
		offset = len;
	if (offset < at->offset)
		*at = (struct fw_xml_place){0};
	for (; at->offset < offset; at->offset++) {
		char c = input[at->offset];

		if (c == '\n' || (c == '\r' && (at->offset + 1 == len || input[at->offset + 1] != '\n'))) {
			at->line++;
			at->column = 0;
		} else {
			at->column += ((unsigned char)c & 0xc0) != 0x80;
		}
	}
	*line = at->line + 1;
	*column = at->column + 1;
}

void fw_xml_position(const char *input, size_t len, size_t offset, uint32_t *line, uint32_t *column)
{
	struct fw_xml_place at = {0};

	fw_xml_place_move(&at, input, len, offset, line, column);
}
