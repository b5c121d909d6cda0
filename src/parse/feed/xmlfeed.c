/* SPDX-License-Identifier: ISC */
/*
 * From XML events to a document: RSS in all versions, Atom 0.3 and 1.0, CDF, and their modules.
 *
 * Every open element has a frame, so frames and the tokenizer's stack always agree. A frame has the
 * context (ctx) and the rule for the element's text (rule). element.gperf defines what an element
 * means in which context. elements.c handles its start and its end, when its text is complete, and
 * passes texts, people, links and modules on to their files.
 *
 * Where several elements fill one member, the highest rank wins. Among equals the first wins for
 * titles and ids and the last for dates, as readers have always done.
 *
 * Nothing here relies on correct order or nesting. A second root, a channel in an HTML page, items
 * outside the channel, and an item inside an unclosed item are all read. An element without an end
 * tag ends where something starts that can only stand outside it; lookahead.c checks whether the
 * end tag exists.
 */
#include "base/url.h"
#include "parse/feed/lookahead.h"
#include "parse/feed/elements.h"
#include "parse/feed/normalize.h"
#include "parse/feed/xmlfeed.h"
#include "parse/html/token.h"

/* nested elements without an end tag */
#define MISSING_ENDS_MAX ((size_t)16)

/* NULL: no meaning. core: names without a known namespace are the feed's own. */
static const struct fw_element *element_find(const struct fw_xml_name *name, bool core)
{
	/* a letter for each namespace; 0: no element in it has a meaning */
	static const char letter[FW_NS_COUNT] = {
		[FW_NS_NONE] = 'c',
		[FW_NS_ATOM10] = 'c',
		[FW_NS_ATOM03] = 'c',
		[FW_NS_RSS10] = 'c',
		[FW_NS_RSS090] = 'c',
		[FW_NS_RSS11] = 'c',
		[FW_NS_RSS20] = 'c',
		[FW_NS_CDF] = 'c',
		[FW_NS_RDF] = 'r',
		[FW_NS_XHTML] = 'x',
		[FW_NS_CONTENT] = 'e',
		[FW_NS_DC] = 'd',
		[FW_NS_DCTERMS] = 't',
		[FW_NS_SY] = 's',
		[FW_NS_SLASH] = 'l',
		[FW_NS_WFW] = 'w',
		[FW_NS_THR] = 'h',
		[FW_NS_MEDIA] = 'm',
		[FW_NS_ITUNES] = 'i',
		[FW_NS_GOOGLEPLAY] = 'z',
		[FW_NS_PODCAST] = 'p',
		[FW_NS_GEORSS] = 'g',
		[FW_NS_GML] = 'y',
		[FW_NS_GEO] = 'o',
		[FW_NS_ICBM] = 'u',
		[FW_NS_PSC] = 'k',
		[FW_NS_FEEDBURNER] = 'b',
		[FW_NS_FH] = 'f',
		[FW_NS_CC] = 'q',
		[FW_NS_CREATIVECOMMONS] = 'q',
		[FW_NS_ADMIN] = 'a',
		[FW_NS_SOURCE] = 'j',
		[FW_NS_FOAF] = 'v',
		[FW_NS_ENC] = 'n',
		[FW_NS_PRISM] = '1',
		[FW_NS_TOMBSTONES] = '2',
	};
	char key[24];

	key[0] = core ? 'c' : letter[name->ns];
	if (!key[0] || name->local.len >= sizeof(key))
		return NULL;
	memcpy(key + 1, name->local.p, name->local.len);
	return fw_element_lookup(key, name->local.len + 1);
}

/* Cached: a feed repeats the same dozen element names in every entry. */
static const struct fw_element *element_of(struct fw_builder *b, const struct fw_xml_name *name, bool core)
{
	struct fw_str s = name->local;
	unsigned in = core ? FW_NS_COUNT : (unsigned)name->ns;
	struct fw_known_name *k = &b->known[(fw_name_slot(s) + in * 7) % FW_N(b->known)];

	if (k->in != in || !fw_str_eq(k->local, s))
		*k = (struct fw_known_name){.local = s, .in = in, .el = element_find(name, core)};
	return k->el;
}

/* ---- frames ---------------------------------------------------------------------------------- */

static struct fw_frame *frame_push(struct fw_builder *b)
{
	struct fw_frame *f, *old = b->frame;
	size_t cap;

	if (b->frame_n == b->frame_cap) {
		cap = b->frame_cap * 2;
		f = fw_arena_mul(b->arena, cap, sizeof(*f), 0);
		if (!f)
			return NULL;
		memcpy(f, old, b->frame_n * sizeof(*f));
		b->frame = f;
		b->frame_cap = cap;
	}
	f = &b->frame[b->frame_n++];
	*f = (struct fw_frame){
		.ctx = CTX_SKIP, .scope = f == b->frame ? b->base_scope : f[-1].scope, .at = b->xml->offset};
	return f;
}

/* Open a scope for an element with xml:base or xml:lang. */
static void scope_open(struct fw_builder *b, struct fw_frame *f, const struct fw_start_event *w)
{
	struct fw_scope *s = NULL;
	size_t i;

	for (i = 0; i < w->attr_n; i++) {
		const struct fw_xml_attr *at = &w->attr[i];
		bool base;

		if (at->name.ns != FW_NS_XML)
			continue;
		base = fw_str_eq(at->name.local, FW_STR("base"));
		if (!base && !fw_str_eq(at->name.local, FW_STR("lang")))
			continue;
		if (!s) {
			s = FW_NEW(b, struct fw_scope);
			if (!s)
				return;
			if (f->scope)
				*s = *f->scope;
		}
		if (base) {
			struct fw_str u = fw_build_url(b, f->scope, at->value);

			if (u.len > FW_BASE_MAX) /* every URL below it would be as long */
				fw_build_problem(b, b->xml->offset, "an xml:base longer than any address", "left out");
			else if (fw_url_weigh(fw_build_base(b, f->scope), u) < 0)
				fw_build_problem(
					b, b->xml->offset, "an xml:base that is no http or https address", "left out");
			else if (u.len)
				*s = (struct fw_scope){.base = u, .lang = s->lang, .base_declared = true};
		} else {
			s->lang = fw_build_language(b, fw_build_dup(b, at->value));
		}
	}
	if (s)
		f->scope = s;
}

/* ---- text ------------------------------------------------------------------------------------ */

/* The text in the scratch buffer. Not absent even if out of memory. */
static struct fw_str scratch_text(struct fw_builder *b)
{
	b->arena->failed |= b->scratch.rc != 0;
	return fw_arena_str(b->arena, fw_buf_str(&b->scratch));
}

/* The second piece: from now on pieces are copied together. */
static void capture_join(struct fw_builder *b, struct fw_str s)
{
	struct fw_capture *c = &b->cap;

	if (!c->copied) {
		fw_buf_reset(&b->scratch);
		fw_buf_addstr(&b->scratch, c->one);
		c->copied = true;
	}
	fw_buf_addstr(&b->scratch, s);
}

/* Copy up to 16 bytes inline: most pieces are the one character of a reference. */
static inline void copy_short(char *to, const char *from, size_t n)
{
	if (n >= 8) {
		memcpy(to + n - 8, from + n - 8, 8);
		memcpy(to, from, 8);
	} else if (n >= 4) {
		memcpy(to + n - 4, from + n - 4, 4);
		memcpy(to, from, 4);
	} else {
		to[0] = from[0];
		to[n / 2] = from[n / 2];
		to[n - 1] = from[n - 1];
	}
}

static inline void capture_add(struct fw_builder *b, struct fw_str s)
{
	struct fw_capture *c = &b->cap;
	struct fw_buf *to = &b->scratch;

	if (!s.len)
		return;
	if (!c->copied && !c->one.p) {
		c->one = s;
	} else if (!c->copied && c->one.p + c->one.len == s.p) {
		c->one.len += s.len; /* adjacent in memory: still one slice */
	} else if (c->copied && to->cap - to->len > s.len) {
		if (s.len <= 16)
			copy_short(to->p + to->len, s.p, s.len);
		else
			memcpy(to->p + to->len, s.p, s.len);
		to->len += s.len;
	} else {
		capture_join(b, s);
	}
}

static void capture_add_literal(struct fw_builder *b, const char *s)
{
	capture_add(b, fw_str(s));
}

/* Add text to markup: encode again what XML decoded. */
static void capture_add_escaped(struct fw_builder *b, struct fw_str s, bool quote)
{
	size_t i, from = 0;

	for (i = 0; i < s.len; i++) {
		const char *r = NULL;

		switch (s.p[i]) {
		case '&':
			r = "&amp;";
			break;
		case '<':
			r = "&lt;";
			break;
		case '>':
			r = "&gt;";
			break;
		case '"':
			r = quote ? "&quot;" : NULL;
			break;
		}
		if (!r)
			continue;
		capture_add(b, fw_str_sub(s, from, i));
		capture_add_literal(b, r);
		from = i + 1;
	}
	capture_add(b, fw_str_sub(s, from, s.len));
}

/* Take the document's own bytes up to `to` unchanged. From here on markup is written out. */
static void capture_raw_end(struct fw_builder *b, size_t to)
{
	size_t from = b->cap.raw_from;

	b->cap.raw_from = 0;
	if (from && from < to)
		capture_add(b, (struct fw_str){b->text.p + from, to - from});
}

/* The text of the frame that is ending. Absent if it was not captured or a child took over. */
static struct fw_str capture_finish(struct fw_builder *b, const struct fw_frame *f)
{
	struct fw_capture *c = &b->cap;
	struct fw_str s = FW_STR_NONE;

	if (c->owner != (size_t)(f - b->frame))
		return s;
	capture_raw_end(b, c->raw_to ? c->raw_to : b->xml->offset);
	s = c->copied ? scratch_text(b) : c->one;
	*c = (struct fw_capture){.owner = SIZE_MAX};
	b->xml->whole_text = false;
	return s;
}

static bool capturing(const struct fw_builder *b)
{
	return b->cap.owner < b->frame_n;
}

/* Something follows the outer div: continue after it. */
static void raw_resume(struct fw_builder *b)
{
	size_t to = b->cap.raw_to;

	if (!to || !b->cap.raw_from)
		return;
	b->cap.raw_to = 0;
	capture_raw_end(b, to);
	b->cap.raw_from = b->xml->offset;
}

static bool is_void(struct fw_str name)
{
	return fw_el_flags(fw_el_find(name)) & FW_EL_VOID;
}

/* Is this tag also valid as HTML, as written? It must have no prefix and not be <p/>. */
static bool raw_tag(const struct fw_builder *b, const struct fw_start_event *w)
{
	const struct fw_xml *x = b->xml;

	if (w->name->prefix.len || x->malformed || x->end_offset <= x->offset + 2)
		return false;
	return b->text.p[x->end_offset - 2] != '/' || is_void(w->name->local);
}

/* The text was plain so far and becomes part of HTML. */
static void markup_begin(struct fw_builder *b, const struct fw_frame *owner)
{
	struct fw_str s;

	if (owner->rule == TEXT_PLAIN) {
		s = b->cap.copied ? scratch_text(b) : b->cap.one;
		b->cap.one = FW_STR_NONE;
		b->cap.copied = false;
		capture_add_escaped(b, s, false);
	}
	b->cap.markup = true;
	b->xml->whole_text = false;
	if (owner->rule != TEXT_XML)
		b->cap.raw_from = b->xml->offset;
}

/*
 * Child elements in a text make it HTML. While the document's own bytes are valid HTML they are
 * used and nothing is copied (raw_from). From the first thing on that HTML would read differently,
 * tags are written out.
 */
static int markup_start(struct fw_builder *b, const struct fw_start_event *w, struct fw_frame *owner)
{
	struct fw_frame *f = frame_push(b);
	size_t i;

	if (!f)
		return FW_ENOMEM;
	if (!b->cap.markup)
		markup_begin(b, owner);
	raw_resume(b);
	if (w->attr_n)
		scope_open(b, f, w);
	/* the div that Atom requires is not part of the content (RFC 4287 section 3.1.1.3) */
	if (owner->rule == TEXT_XML && owner->atom && !b->cap.markup_n++ && fw_str_ieq(w->name->local, FW_STR("div"))) {
		f->obj = b; /* marks the div: its end tag is dropped too */
		owner->scope = f->scope;
		if (b->cap.raw_from)
			b->cap.raw_from = b->xml->end_offset;
		return 0;
	}
	if (b->cap.raw_from && raw_tag(b, w))
		return 0;
	capture_raw_end(b, b->xml->offset);
	capture_add_literal(b, "<");
	capture_add(b, w->name->local);
	for (i = 0; i < w->attr_n; i++) {
		struct fw_xml_name n = w->attr[i].name;

		if (n.ns == FW_NS_XMLNS || (n.ns == FW_NS_XML && !fw_str_eq(n.local, FW_STR("lang"))))
			continue;
		capture_add_literal(b, n.ns == FW_NS_XLINK ? " xlink:" : " ");
		capture_add(b, n.local);
		capture_add_literal(b, "=\"");
		capture_add_escaped(b, w->attr[i].value, true);
		capture_add_literal(b, "\"");
	}
	capture_add_literal(b, ">");
	return 0;
}

static void markup_end(struct fw_builder *b, const struct fw_frame *f, struct fw_str local)
{
	if (f->obj) {
		if (b->cap.raw_from)
			b->cap.raw_to = b->xml->offset;
		return;
	}
	if (b->cap.raw_from || is_void(local))
		return;
	capture_add_literal(b, "</");
	capture_add(b, local);
	capture_add_literal(b, ">");
}

/* ---- events ---------------------------------------------------------------------------------- */

/*
 * An undeclared prefix without a meaning of its own ("rss:") stands for the feed's namespace if the
 * channel or the first entry has it. On other elements it proves nothing.
 */
static bool prefix_is_core(struct fw_builder *b, const struct fw_xml_name *n)
{
	if (b->core_prefix.p)
		return fw_str_eq(n->prefix, b->core_prefix);
	if (b->doc->entry_n || b->entry ||
		!(fw_str_ieq(n->local, FW_STR("channel")) || fw_str_ieq(n->local, FW_STR("item")) ||
			fw_str_ieq(n->local, FW_STR("entry"))))
		return false;
	b->core_prefix = n->prefix;
	return true;
}

static bool unknown_is_core(struct fw_builder *b, const struct fw_xml_name *n)
{
	if (!n->uri.p)
		return !b->root_seen || prefix_is_core(b, n);
	if (b->core_uri.p)
		return fw_str_eq(n->uri, b->core_uri);
	if (b->core_ns == FW_NS_RDF)
		return b->frame_n == 1 && !n->prefix.len &&
			(fw_str_ieq(n->local, FW_STR("channel")) || fw_str_ieq(n->local, FW_STR("item")));
	return !b->root_seen;
}

static inline bool core_name(struct fw_builder *b, const struct fw_xml_name *n)
{
	return n->ns == FW_NS_UNKNOWN && unknown_is_core(b, n);
}

static bool atom_name(const struct fw_builder *b, const struct fw_xml_name *n)
{
	return n->ns == FW_NS_ATOM10 || n->ns == FW_NS_ATOM03 ||
		(b->atom && (n->ns == b->core_ns || n->ns == FW_NS_NONE));
}

/*
 * <guid>1<title>one<pubDate>...: inside the text an element starts that has a meaning where the
 * text stands. An element of the feed's namespace ends the text. A module's element ends it if the
 * text has no end tag. Where markup may stand unescaped, so does any element that is not HTML's.
 */
static bool is_sibling(struct fw_builder *b, size_t owner, const struct fw_xml_name *n)
{
	const struct fw_frame *f = &b->frame[owner];
	bool own = n->ns == b->core_ns || n->ns == FW_NS_NONE || core_name(b, n), markup = f->rule == TEXT_XML;
	const struct fw_element *el;
	enum fw_context where;

	if (n->ns == FW_NS_XHTML || !f->el || f->el->kind == EL_CATEGORY)
		return false;
	where = fw_context_around(b, f);
	if (where != CTX_ENTRY && where != CTX_FEED)
		return false;
	el = element_of(b, n, own);
	if (!el || el->kind == EL_ENTRY /* of another format */ || !(el->in & 1u << where))
		return false;
	if (own && fw_el_find(n->local) != FW_EL_NONE) {
		if (!fw_str_ieq(n->local, FW_STR("title")) && !fw_str_ieq(n->local, FW_STR("link")))
			return false;
		markup |= f->el->kind == EL_BODY;
	}
	return (own && !markup) || fw_end_tag_missing(b, owner, owner - 1);
}

/* Is this an entry of the feed, by its name? */
static bool is_entry(struct fw_builder *b, const struct fw_xml_name *n)
{
	bool item = n->local.len == 4 && fw_str_ieq(n->local, FW_STR("item"));

	if (!item && !(n->local.len == 5 && fw_str_ieq(n->local, FW_STR("entry"))))
		return false;
	return b->atom != item && (n->ns == b->core_ns || n->ns == FW_NS_NONE || core_name(b, n));
}

/*
 * Does an entry, or another text of the entry, start inside an unclosed text? Of texts with
 * unescaped markup only content may contain an entry.
 */
static bool breaks_text(struct fw_builder *b, const struct fw_xml_name *n)
{
	const struct fw_frame *owner = &b->frame[b->cap.owner];

	if (is_entry(b, n))
		return owner->rule != TEXT_XML || (owner->el && owner->el->kind == EL_TEXT) ||
			(b->cap.owner && fw_end_tag_missing(b, b->cap.owner, b->cap.owner - 1));
	if (is_sibling(b, b->cap.owner, n))
		return true;
	/*
	 * a plain value contains no elements, and a text of the feed without unescaped markup none
	 * with a prefix
	 */
	return (owner->rule < TEXT_AUTO || (n->prefix.len && n->ns != FW_NS_XHTML && owner->rule != TEXT_XML)) &&
		b->cap.owner && fw_end_tag_missing(b, b->cap.owner, b->cap.owner - 1);
}

/*
 * Close the open elements from the nth on before their end tags. What follows stands where the nth
 * stood.
 */
static void frames_close(struct fw_builder *b, size_t n)
{
	uint8_t ctx = n ? b->frame[n - 1].ctx : CTX_TOP;
	void *obj = n ? b->frame[n - 1].obj : NULL;
	size_t at = n ? b->frame[n - 1].at : 0;

	for (size_t i = b->frame_n; i-- > n;) {
		struct fw_frame *f = &b->frame[i];
		bool markup = b->cap.owner == i && b->cap.markup;

		if (f->el)
			fw_element_end(b, f, capture_finish(b, f), markup);
		f->el = NULL;
		f->ctx = ctx;
		f->obj = obj;
		f->at = at;
	}
}

/*
 * An entry starts inside an unclosed person, image, list ..., none of which can contain one: close
 * them. An unknown element may contain something that is called an entry but is none, so there the
 * end tag is searched for.
 */
static void containers_close(struct fw_builder *b)
{
	size_t n = b->frame_n;

	while (n && !(IN_ANY & 1u << b->frame[n - 1].ctx))
		n--;
	if (n && n < b->frame_n && (b->frame[n].el || fw_end_tag_missing(b, n, n - 1)))
		frames_close(b, n);
}

/*
 * An element starts where it has no meaning but would have one in the entry or feed around. It
 * stands there if all elements open in between have lost their end tags.
 */
static bool missing_ends_close(struct fw_builder *b, const struct fw_element *el)
{
	size_t i, n = b->frame_n, least = n - FW_MIN(n, MISSING_ENDS_MAX);

	while (n > least && !(el->in & IN_META & 1u << b->frame[n - 1].ctx))
		n--;
	if (n == least || n == b->frame_n || b->entries_full)
		return false;
	for (i = n; i < b->frame_n; i++) {
		if (!fw_end_tag_missing(b, i, n - 1))
			return false;
	}
	frames_close(b, n);
	return true;
}

/* Does this element have a meaning in the innermost open one? */
static bool counts_in(const struct fw_builder *b, const struct fw_element *el, enum fw_context where)
{
	if (!el || where == CTX_SKIP || !(el->in & 1u << where))
		return false;
	/* an entry inside an entry ended both: the rest of the outer one belongs to nothing */
	return where != CTX_ENTRY || b->entry || el->kind == EL_ENTRY;
}

/*
 * <site xmlns="x">1<item>: a default namespace of an element without an end tag is the feed's own
 * from here on.
 */
static const struct fw_element *namespace_recover(struct fw_builder *b, const struct fw_xml_name *n)
{
	const struct fw_element *el = n->prefix.len || b->core_uri.p || !b->root_seen ? NULL : element_of(b, n, true);

	if (!el || !missing_ends_close(b, el))
		return NULL;
	b->core_uri = fw_build_dup(b, n->uri);
	return el;
}

/* <author><p>Ann</p><p>Bob</p>: text on two lines. */
static bool begins_line(const struct fw_xml_name *n)
{
	enum fw_el el = fw_el_find(n->local);

	return el == FW_E_BR || fw_el_flags(el) & FW_EL_BLOCK;
}

static int on_start(void *ctx, const struct fw_xml_name *name, const struct fw_xml_attr *attr, size_t attr_n)
{
	struct fw_builder *b = ctx;
	struct fw_start_event w = {.b = b, .name = name, .attr = attr, .attr_n = attr_n};
	const struct fw_element *el;
	struct fw_frame *f, *up;
	enum fw_context where;
	bool counts;

	if (b->cap.owner < b->frame_n) {
		up = &b->frame[b->cap.owner];
		if (up->rule >= TEXT_AUTO) {
			if (!breaks_text(b, name))
				return markup_start(b, &w, up);
			frames_close(b, b->cap.owner);
			/* a plain value, not one with parts */
		} else if (up->ctx == CTX_SKIP && breaks_text(b, name)) {
			frames_close(b, b->cap.owner);
		} else if (begins_line(name)) {
			capture_add_literal(b, " ");
		}
	}
	if (is_entry(b, name))
		containers_close(b);
	el = element_of(b, name, core_name(b, name));
	if (!el && name->ns == FW_NS_UNKNOWN)
		el = namespace_recover(b, name);
	where = b->frame_n ? (enum fw_context)b->frame[b->frame_n - 1].ctx : CTX_TOP;
	counts = counts_in(b, el, where);
	if (el && !counts && missing_ends_close(b, el)) {
		where = (enum fw_context)b->frame[b->frame_n - 1].ctx;
		counts = counts_in(b, el, where);
	}
	if (!b->root_name.p) {
		b->root_name = name->local;
		b->own_entities = fw_str_find(fw_str_sub(b->text, 0, b->xml->offset), FW_STR("<!ENTITY")) != NULL;
	}
	f = frame_push(b);
	if (!f)
		return FW_ENOMEM;
	w.up = f == b->frame ? NULL : f - 1;
	w.frame = f;
	if (attr_n)
		scope_open(b, f, &w);
	if (where == CTX_SKIP)
		return 0;
	if (!el && !w.up && (name->ns == FW_NS_ATOM10 || name->ns == FW_NS_ATOM03) && fw_lookahead(b, "entry")) {
		el = fw_element_lookup("cfeed", 5);
		counts = true; /* "fead": only Atom's feed contains entries */
		fw_build_problem(
			b, fw_build_offset(b), "an unknown Atom element that contains entries", "read as a feed");
	}
	if (!counts) {
		f->ctx = where <= CTX_FEED || where == CTX_OTHER ? (b->root_seen ? CTX_OTHER : CTX_TOP) : CTX_SKIP;
		return 0;
	}
	f->el = el;
	f->atom = atom_name(b, name);
	w.el = el;
	w.where = where;
	return fw_element_start(&w);
}

static int on_text(void *ctx, struct fw_str text, bool cdata)
{
	struct fw_builder *b = ctx;
	const struct fw_frame *owner;

	if (!capturing(b))
		return 0;
	owner = &b->frame[b->cap.owner];
	/*
	 * Children of a person, a source ... with a meaning have values of their own. All others
	 * are part of the text (<author>by <a>Ann</a></author>, <pubDate><time>), except those of a
	 * category with text of its own.
	 */
	if (b->cap.owner + 1 != b->frame_n && (b->frame[b->cap.owner + 1].el || b->cap.words))
		return 0;
	if (b->cap.owner + 1 == b->frame_n && owner->el->kind == EL_CATEGORY && fw_str_trim(text).len)
		b->cap.words = true;
	if (!b->cap.markup && owner->rule != TEXT_XML) {
		capture_add(b, text);
		return 0;
	}
	if (b->cap.raw_to && !fw_str_trim(text).len)
		return 0;
	raw_resume(b);
	if (b->cap.raw_from) {
		/*
		 * references are there already, unless the document declares them, or it is CDATA
		 */
		if (!cdata && !b->own_entities && !b->xml->malformed)
			return 0;
		capture_raw_end(b, b->xml->offset - (cdata ? FW_MIN(b->xml->offset, (size_t)9) : 0));
	}
	capture_add_escaped(b, text, false);
	return 0;
}

static int on_end(void *ctx, const struct fw_xml_name *name)
{
	struct fw_builder *b = ctx;
	struct fw_frame *f;

	if (!b->frame_n)
		return 0;
	f = &b->frame[b->frame_n - 1];
	if (capturing(b) && b->cap.owner + 1 < b->frame_n && b->frame[b->cap.owner].rule >= TEXT_AUTO)
		markup_end(b, f, name->local);
	else if (f->el) {
		bool markup = b->cap.owner == b->frame_n - 1 && b->cap.markup;

		fw_element_end(b, f, capture_finish(b, f), markup);
	}
	b->frame_n--;
	return b->arena->failed ? FW_ENOMEM : 0;
}

/* If a limit's name ends the message in brackets, its value is added. */
static const char *with_value(struct fw_builder *b, const char *what)
{
	const struct {
		const char *name;
		uint32_t value;
	} LIMIT[] = {{"(max_depth)", b->limits.max_depth}, {"(max_attributes)", b->limits.max_attributes},
		{"(max_entity_ratio)", b->limits.max_entity_ratio}};
	struct fw_str s = fw_str(what);

	for (size_t i = 0; i < FW_N(LIMIT) && fw_str_ends(s, FW_STR(")")); i++) {
		if (fw_str_ends(s, fw_str(LIMIT[i].name))) {
			const char *text = fw_arena_printf(
				b->arena, "%.*s: %u)", (int)(s.len - 1), s.p, LIMIT[i].value);

			return text ? text : what;
		}
	}
	return what;
}

static void on_problem(void *ctx, size_t offset, const char *what, const char *repair)
{
	struct fw_builder *b = ctx;

	fw_build_problem(b, offset, b->doc->problem_n < FW_PROBLEMS_KEPT ? with_value(b, what) : what, repair);
}

/* ---- entry point ----------------------------------------------------------------------------- */

int fw_read_xml(struct fw_builder *b, struct fw_err *err)
{
	static const struct fw_xml_handler handler = {
		.start = on_start,
		.end = on_end,
		.text = on_text,
		.problem = on_problem,
	};
	struct fw_xml x = {.arena = b->arena, .handler = &handler, .ctx = b, .limits = b->limits};
	int rc;

	b->xml = &x;
	b->frame = b->first_frames;
	b->frame_cap = FW_N(b->first_frames);
	b->cap.owner = SIZE_MAX;
	fw_buf_init(&b->scratch, 0);
	rc = fw_xml_parse(&x, b->text.p, b->text.len, err);
	b->doc->malformed |= x.malformed;
	if (b->entry)
		fw_entry_finish(b);
	fw_buf_finish(&b->scratch);
	b->xml = NULL;
	return rc;
}
