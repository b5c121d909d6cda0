/* SPDX-License-Identifier: ISC */
/*
 * Makes HTML safe (WEB-01 to WEB-03).
 *
 * Two paths share one writer. The direct path writes orderly HTML, which is most of what feeds
 * contain, from its tokens; elements with optional end tags are closed where the standard closes
 * them. The tree path handles the rest (crossed tags, text between table rows ...): gumbo builds a
 * browser's tree, and the writer walks it. HTML that is too large for a tree, or whose tree exceeds
 * the memory limit, takes the direct path with forced fitting: elements that conflict with a tag
 * are closed, and text between cells gets a cell. The result differs slightly from a browser's and
 * costs a fifth.
 *
 * Gumbo is quadratic in nesting depth, takes unbounded memory for formatting elements that are
 * reopened, and frees its tree recursively. So it gets only elements that are kept, at most
 * FW_HTML_DEPTH levels, MAX_FORMAT formatting elements and MAX_ATTRS attributes. Its memory is an
 * arena with a limit; longjmp leaves it and it is freed at once.
 */
#include <gumbo.h>
#include <setjmp.h>

#include "base/utf8.h"
#include "parse/charset/entity.h"
#include "parse/html/embed.h"
#include "parse/html/sanitize.h"
#include "parse/html/value.h"
#include "parse/html/write.h"

#define MAX_FORMAT 24
#define MAX_ATTRS 60
/* of HTML for the tree path, which takes 0.2 us a byte */
#define TREE_BYTES ((size_t)320 << 10)

static bool next_in_tag(struct fw_html_attrs *it, struct fw_arena *a, struct fw_str *name, struct fw_str *value)
{
	if (!fw_html_attr(&it->text, name, value))
		return false;
	*value = fw_html_attr_decode(a, *value);
	return true;
}

/* ---- replacements ---------------------------------------------------------------------------- */

/* An attribute as written in a tag. Absent: out of memory. */
static struct fw_str attr_text(struct fw_arena *a, const char *name, struct fw_str value)
{
	struct fw_buf b = FW_BUF_INIT(0);
	struct fw_str text;

	fw_buf_addf(&b, "%s=\"", name);
	fw_html_escape(&b, value, true);
	fw_buf_addc(&b, '"');
	text = b.rc ? FW_STR_NONE : fw_arena_str(a, fw_buf_str(&b));
	a->failed |= b.rc != 0;
	fw_buf_finish(&b);
	return text;
}

/* The poster of a video that cannot be played, as attributes of an <img>. Absent: none. */
static struct fw_str poster_url(struct fw_arena *a, struct fw_str base, struct fw_str attrs)
{
	struct fw_str url = fw_html_url(a, base, fw_html_attr_get(a, attrs, "poster"), true, false);

	return url.len ? attr_text(a, "src", url) : FW_STR_NONE;
}

/*
 * Read an embed unless it repeats the previous one: <object>, <embed> and <noscript> often describe
 * one player.
 */
static bool embed_read(struct fw_arena *a, struct fw_str base, const struct fw_html_tokenizer *z,
	const struct fw_html_token *t, struct fw_str *last, struct fw_html_embed *e)
{
	if (!fw_html_embed_read(a, base, z, t, e) || fw_str_eq(e->url, *last))
		return false;
	*last = e->url;
	return true;
}

/* Would a link appended to out run into a word? */
static bool needs_space(const struct fw_buf *out)
{
	return out->len && out->p[out->len - 1] != '>' && !fw_is_space((unsigned char)out->p[out->len - 1]);
}

/* ---- the direct path ------------------------------------------------------------------------- */

static bool only_above(const struct fw_html_writer *w, size_t depth, unsigned without)
{
	for (size_t i = w->n - depth + 1; i < w->n; i++) {
		if (fw_el_flags(w->open[i]) & without)
			return false;
	}
	return true;
}

static bool only_implied_above(const struct fw_html_writer *w, size_t depth)
{
	for (size_t i = w->n - depth + 1; i < w->n; i++) {
		if (!(fw_el_flags(w->open[i]) & FW_EL_IMPLIED))
			return false;
	}
	return true;
}

static void close_n(struct fw_html_writer *w, size_t n)
{
	while (n--)
		fw_html_close(w);
}

/* Close cells and rows, and open omitted bodies and rows, until el fits. */
static bool make_table_room(struct fw_html_writer *w, enum fw_el el)
{
	while (!fw_html_fits(w, el)) {
		enum fw_el top = fw_html_top(w);
		bool cell = el == FW_E_TD || el == FW_E_TH;

		if (w->n + 3 >= FW_HTML_DEPTH || !w->n)
			return false;
		if (top == FW_E_TABLE && (cell || el == FW_E_TR))
			fw_html_open(w, FW_E_TBODY, NULL);
		else if (top == FW_E_TABLE && el == FW_E_COL)
			fw_html_open(w, FW_E_COLGROUP, NULL);
		else if (cell && (top == FW_E_TBODY || top == FW_E_THEAD || top == FW_E_TFOOT))
			fw_html_open(w, FW_E_TR, NULL);
		else
			fw_html_close(w);
	}
	return true;
}

/*
 * Close the elements that el's start tag implicitly closes. False: only the tree path can handle
 * it.
 */
static bool make_room(struct fw_html_writer *w, enum fw_el el)
{
	unsigned flags = fw_el_flags(el);
	size_t depth;

	if (flags & FW_EL_TABLE)
		return make_table_room(w, el);
	if (el == FW_E_LI || el == FW_E_DD || el == FW_E_DT) {
		depth = fw_html_depth_of(w, el);
		if (el != FW_E_LI && !depth)
			depth = fw_html_depth_of(w, el == FW_E_DD ? FW_E_DT : FW_E_DD);
		if (depth && !fw_html_fits(w, el)) {
			if (!only_implied_above(w, depth))
				return false;
			close_n(w, depth);
		}
	}
	if (flags & FW_EL_CLOSES_P && fw_html_top(w) == FW_E_P)
		fw_html_close(w);
	if (flags & FW_EL_HEADING && fw_el_flags(fw_html_top(w)) & FW_EL_HEADING)
		fw_html_close(w);
	while ((el == FW_E_RT || el == FW_E_RP) && !fw_html_fits(w, el) && fw_el_flags(fw_html_top(w)) & FW_EL_IMPLIED)
		fw_html_close(w);
	if (el == FW_E_A && fw_html_top(w) == FW_E_A)
		fw_html_close(w);
	return fw_html_fits(w, el);
}

/* Open a cell if the writer is between cells. */
static bool open_cell(struct fw_html_writer *w)
{
	if (!(fw_el_flags(fw_html_top(w)) & FW_EL_NO_TEXT))
		return true;
	return make_table_room(w, FW_E_TD) && fw_html_open(w, FW_E_TD, NULL);
}

/* Close the elements that prevent el from fitting. False: el is dropped. */
static bool direct_make_fit(struct fw_html_writer *w, enum fw_el el)
{
	unsigned flags = fw_el_flags(el);

	if (!(flags & FW_EL_TABLE) && !open_cell(w))
		return false;
	if (el == FW_E_LI || el == FW_E_A)
		close_n(w, fw_html_depth_of(w, el));
	if (el == FW_E_DD || el == FW_E_DT) {
		close_n(w, fw_html_depth_of(w, FW_E_DD));
		close_n(w, fw_html_depth_of(w, FW_E_DT));
	}
	if (flags & FW_EL_CLOSES_P)
		close_n(w, fw_html_depth_of(w, FW_E_P));
	return fw_html_fits(w, el);
}

/* Write text as written in the document. raw: without character references. */
static bool direct_text(struct fw_html_writer *w, struct fw_str s, bool raw, bool bent)
{
	if (!raw && memchr(s.p, '&', s.len))
		s = fw_entity_decode(w->scratch, s);
	if (w->pre && s.len && s.p[0] == '\n')
		s = fw_str_sub(s, 1, s.len);
	else if (w->pre && s.len > 1 && s.p[0] == '\r' && s.p[1] == '\n')
		s = fw_str_sub(s, 2, s.len);
	return fw_html_write_text(w, s) || (bent && (!open_cell(w) || fw_html_write_text(w, s)));
}

/* Write a link in place of an embed. */
static bool direct_embed(struct fw_html_writer *w, const struct fw_html_embed *e, bool bent)
{
	struct fw_html_attrs attrs = {.next = next_in_tag, .text = attr_text(w->scratch, "href", e->url)};

	if (!make_room(w, FW_E_A) && !(bent && direct_make_fit(w, FW_E_A)))
		return bent;
	if (needs_space(w->out))
		(void)fw_html_write_text(w, FW_STR(" "));
	(void)fw_html_open(w, FW_E_A, &attrs);
	(void)fw_html_write_text(w, fw_html_embed_label(e));
	fw_html_close(w);
	return fw_html_write_text(w, FW_STR(" "));
}

/* Write the replacement of a dropped element. */
static bool direct_dropped(
	struct fw_html_writer *w, struct fw_html_tokenizer *z, const struct fw_html_token *t, bool bent)
{
	struct fw_html_embed e;
	bool ok = true;

	if (embed_read(w->scratch, w->base, z, t, &w->embed, &e))
		ok = direct_embed(w, &e, bent);
	if (t->el == FW_E_SVG)
		ok = direct_text(w, fw_html_svg_name(w->scratch, z, t), true, bent);
	if (fw_el_flags(t->el) & FW_EL_DROP)
		fw_html_skip(z, t);
	return ok;
}

static bool direct_open(struct fw_html_writer *w, struct fw_html_tokenizer *z, const struct fw_html_token *t, bool bent)
{
	struct fw_html_attrs attrs = {.next = next_in_tag, .text = t->attrs};
	enum fw_el el = t->el == FW_E_IMAGE ? FW_E_IMG : t->el;
	unsigned flags = fw_el_flags(el);

	if (!(flags & FW_EL_KEEP))
		return direct_dropped(w, z, t, bent);
	if ((el == FW_E_VIDEO || el == FW_E_AUDIO) && !fw_html_plays(w->scratch, z, t, w->data_images)) {
		attrs.text = poster_url(w->scratch, w->base, t->attrs);
		el = FW_E_IMG;
		if (!attrs.text.len)
			return true;
	}
	/* table parts outside a table are dropped */
	if (flags & FW_EL_TABLE && !w->open_n[FW_E_TABLE])
		return true;
	if (!make_room(w, el) && !(bent && direct_make_fit(w, el)))
		return bent;
	(void)fw_html_open(w, el, &attrs);
	return true;
}

static bool direct_close(struct fw_html_writer *w, enum fw_el el, bool bent)
{
	unsigned flags = fw_el_flags(el);
	size_t depth;

	if (el == FW_E_BR)
		return fw_html_fits(w, el) ? fw_html_open(w, el, NULL) : bent;
	if (!(flags & FW_EL_KEEP) || flags & FW_EL_VOID)
		return true;
	depth = fw_html_depth_of(w, el);
	if (!depth)
		return true;
	if (flags & FW_EL_TABLE || el == FW_E_TABLE) {
		close_n(w, depth);
		return true;
	}
	if (!bent && !only_above(w, depth, flags & FW_EL_SPECIAL ? FW_EL_FORMAT : FW_EL_FORMAT | FW_EL_SPECIAL))
		return false;
	close_n(w, depth);
	return true;
}

/* False: not orderly; the caller discards the output. bent: force it to fit. */
static bool write_direct(struct fw_html_writer *w, struct fw_str html, bool bent)
{
	struct fw_html_tokenizer z;
	struct fw_html_token t;
	bool ok = true;

	fw_html_start(&z, html);
	for (fw_html_next(&z, &t); ok && t.kind != FW_HTML_END && !w->out->rc; fw_html_next(&z, &t)) {
		if (t.kind == FW_HTML_TEXT)
			ok = direct_text(w, t.text, false, bent);
		else if (t.kind == FW_HTML_RAW && !(fw_el_flags(t.el) & FW_EL_DROP))
			ok = direct_text(w, t.text, t.el == FW_E_XMP, bent);
		else if (t.kind == FW_HTML_OPEN)
			ok = direct_open(w, &z, &t, bent);
		else if (t.kind == FW_HTML_CLOSE)
			ok = direct_close(w, t.el, bent);
	}
	if (ok)
		close_n(w, w->n);
	return ok;
}

/* ---- the tree path --------------------------------------------------------------------------- */

static void close_levels(struct fw_html_writer *s, size_t n)
{
	while (n--)
		(void)fw_html_pop(s);
}

/*
 * An upper estimate of the tree builder's open elements, kept in the stack of a writer that writes
 * nothing. False: too deep, drop the tag.
 */
static bool nest_open(struct fw_html_writer *s, size_t *format_n, enum fw_el el)
{
	unsigned flags = fw_el_flags(el);
	size_t depth = 0;

	if (flags & FW_EL_TABLE) {
		while (s->n && fw_html_top(s) != FW_E_TABLE && !fw_html_fits(s, el))
			(void)fw_html_pop(s);
	} else if (el == FW_E_LI || el == FW_E_DD || el == FW_E_DT) {
		depth = fw_html_depth_of(s, el);
		if (!depth && el != FW_E_LI)
			depth = fw_html_depth_of(s, el == FW_E_DD ? FW_E_DT : FW_E_DD);
	}
	if (flags & FW_EL_CLOSES_P && !depth && fw_html_top(s) == FW_E_P)
		depth = 1;
	if (depth && only_implied_above(s, depth))
		close_levels(s, depth);
	if (flags & FW_EL_VOID)
		return true;
	if (s->n == FW_HTML_DEPTH || (flags & FW_EL_FORMAT && *format_n == MAX_FORMAT))
		return false;
	fw_html_push(s, el);
	*format_n += (flags & FW_EL_FORMAT) != 0;
	return true;
}

static void nest_close(struct fw_html_writer *s, size_t *format_n, enum fw_el el)
{
	unsigned flags = fw_el_flags(el);
	size_t depth = fw_html_depth_of(s, el), at = s->n - depth;

	*format_n -= flags & FW_EL_FORMAT && *format_n;
	if (!depth || (!(flags & (FW_EL_SPECIAL | FW_EL_FORMAT)) && !only_above(s, depth, FW_EL_SPECIAL)))
		return;
	/* blocks inside a formatting element stay open */
	if (flags & FW_EL_FORMAT && !only_above(s, depth, FW_EL_SPECIAL)) {
		s->open_n[el]--;
		memmove(&s->open[at], &s->open[at + 1], (depth - 1) * sizeof(s->open[0]));
		s->n--;
	} else {
		close_levels(s, depth);
	}
}

static bool too_many_attrs(struct fw_str attrs)
{
	struct fw_str name, value;
	size_t n = 0;

	while (n <= MAX_ATTRS && fw_html_attr(&attrs, &name, &value))
		n++;
	return n > MAX_ATTRS;
}

/* Add text that contains no tag and cannot become one when its neighbours are dropped. */
static void add_text(struct fw_buf *out, struct fw_str s, bool raw)
{
	for (size_t i = 0; i < s.len; i++) {
		if (s.p[i] == '<')
			fw_buf_adds(out, "&lt;");
		else if (s.p[i] == '&' && raw)
			fw_buf_adds(out, "&amp;");
		else if (s.p[i] == '\0')
			continue;
		else
			fw_buf_addc(out, s.p[i]);
	}
}

static void add_embed(struct fw_arena *a, struct fw_buf *out, const struct fw_html_embed *e)
{
	if (needs_space(out))
		fw_buf_addc(out, ' ');
	fw_buf_adds(out, "<a ");
	fw_buf_addstr(out, attr_text(a, "href", e->url));
	fw_buf_addc(out, '>');
	fw_html_escape(out, fw_html_embed_label(e), false);
	fw_buf_adds(out, "</a> ");
}

/* Write the tree builder's input: kept elements and text. */
static void tree_input_filter(const struct fw_html_writer *w, struct fw_str html, struct fw_buf *out)
{
	struct fw_html_tokenizer z;
	struct fw_html_token t;
	struct fw_html_writer nest = {.n = 0};
	struct fw_html_embed e;
	struct fw_str last = FW_STR_NONE, image;
	/* formatting elements opened and not closed: each new block reopens them */
	size_t format_n = 0;

	fw_html_start(&z, html);
	for (fw_html_next(&z, &t); t.kind != FW_HTML_END; fw_html_next(&z, &t)) {
		unsigned flags = fw_el_flags(t.el);

		if (t.kind == FW_HTML_TEXT || (t.kind == FW_HTML_RAW && !(flags & FW_EL_DROP))) {
			add_text(out, t.text, t.kind == FW_HTML_RAW && t.el == FW_E_XMP);
		} else if (t.kind == FW_HTML_OPEN && (t.el == FW_E_VIDEO || t.el == FW_E_AUDIO) &&
			!fw_html_plays(w->scratch, &z, &t, w->data_images)) {
			image = poster_url(w->scratch, w->base, t.attrs);
			if (image.len)
				fw_buf_addf(out, "<img %.*s>", FW_STR_ARG(image));
		} else if (t.kind == FW_HTML_OPEN && (flags & FW_EL_KEEP || t.el == FW_E_IMAGE)) {
			if (!nest_open(&nest, &format_n, t.el == FW_E_IMAGE ? FW_E_IMG : t.el))
				continue;
			if (too_many_attrs(t.attrs))
				fw_buf_addf(out, "<%s>", fw_el_name(t.el));
			else
				fw_buf_addstr(out, t.text);
		} else if (t.kind == FW_HTML_OPEN) {
			if (embed_read(w->scratch, w->base, &z, &t, &last, &e) && nest_open(&nest, &format_n, FW_E_A)) {
				add_embed(w->scratch, out, &e);
				nest_close(&nest, &format_n, FW_E_A);
			}
			if (t.el == FW_E_SVG)
				add_text(out, fw_html_svg_name(w->scratch, &z, &t), true);
			if (flags & FW_EL_DROP)
				fw_html_skip(&z, &t);
		} else if (t.kind == FW_HTML_CLOSE && flags & FW_EL_KEEP) {
			nest_close(&nest, &format_n, t.el);
			fw_buf_addf(out, "</%s>", fw_el_name(t.el));
		}
	}
}

/*
 * Replace invalid bytes; borrowed if there are none. Gumbo makes some: it writes the byte EE for
 * "&#xeeeeeeee".
 */
static struct fw_str valid_utf8(struct fw_arena *a, struct fw_str s)
{
	size_t n = fw_utf8_valid(s.p, s.len), took, at = 0;
	char *d;

	if (n == s.len)
		return s;
	d = fw_arena_mul(a, s.len, 3, 0);
	if (!d)
		return FW_STR_NONE;
	for (size_t i = 0; i < s.len; i += took)
		at += fw_utf8_put(d + at, fw_utf8_get(s.p + i, s.len - i, &took));
	return (struct fw_str){d, at};
}

static bool next_in_node(struct fw_html_attrs *it, struct fw_arena *a, struct fw_str *name, struct fw_str *value)
{
	const GumboVector *v = it->list;
	const GumboAttribute *attr;

	if (it->at >= v->length)
		return false;
	attr = v->data[it->at++];
	*name = fw_str(attr->name);
	*value = valid_utf8(a, fw_str(attr->value));
	return true;
}

static enum fw_el node_element(const GumboNode *node)
{
	if (node->v.element.tag_namespace != GUMBO_NAMESPACE_HTML)
		return FW_EL_NONE;
	return fw_el_find(fw_str(gumbo_normalized_tagname(node->v.element.tag)));
}

/* Write the tree under root. Not recursive: the way up is by parent pointers. */
static void write_tree(struct fw_html_writer *w, const GumboNode *root)
{
	const GumboNode *written[FW_HTML_DEPTH], *node = root;
	unsigned child = 0;

	while (!w->out->rc) {
		if (child < node->v.element.children.length) {
			const GumboNode *next = node->v.element.children.data[child++];

			if (next->type == GUMBO_NODE_TEXT || next->type == GUMBO_NODE_WHITESPACE ||
				next->type == GUMBO_NODE_CDATA)
				(void)fw_html_write_text(w, valid_utf8(w->scratch, fw_str(next->v.text.text)));
			if (next->type == GUMBO_NODE_ELEMENT) {
				struct fw_html_attrs attrs = {
					.next = next_in_node, .list = &next->v.element.attributes};
				enum fw_el el = node_element(next);
				size_t n = w->n;

				if (fw_html_fits(w, el) && fw_html_open(w, el, &attrs) && w->n > n)
					written[n] = next;
				node = next;
				child = 0;
			}
			continue;
		}
		if (node == root)
			break;
		if (w->n && written[w->n - 1] == node)
			fw_html_close(w);
		child = (unsigned)node->index_within_parent + 1;
		node = node->parent;
	}
}

struct tree_pool {
	struct fw_arena arena;
	jmp_buf full;
};

static void *pool_alloc(void *ctx, size_t n)
{
	struct tree_pool *pool = ctx;
	void *p = fw_arena_alloc(&pool->arena, n);

	if (!p)
		longjmp(pool->full, 1);
	return p;
}

static void pool_free(void *ctx, void *p)
{
	(void)ctx;
	(void)p;
}

/* False: the tree exceeded its memory limit. out->rc is set if the process is out of memory. */
static bool sanitize_by_tree(struct fw_html_writer *w, struct fw_str html)
{
	struct fw_buf seen = FW_BUF_INIT(0);
	GumboOptions options = kGumboDefaultOptions;
	struct tree_pool pool;
	volatile bool ok = false;
	GumboOutput *tree;

	tree_input_filter(w, html, &seen);
	fw_arena_init(&pool.arena, FW_MIN(fw_size(html.len, 64, (size_t)4 << 20), (size_t)256 << 20));
	if (!seen.rc && !setjmp(pool.full)) {
		options.allocator = pool_alloc;
		options.deallocator = pool_free;
		options.userdata = &pool;
		options.max_errors = 0;
		options.fragment_context = GUMBO_TAG_BODY;
		tree = gumbo_parse_with_options(&options, seen.p ? seen.p : "", seen.len);
		write_tree(w, tree->root);
		ok = true;
	}
	if (seen.rc || (pool.arena.failed && !pool.arena.full))
		w->out->rc = FW_ENOMEM;
	fw_arena_finish(&pool.arena);
	fw_buf_finish(&seen);
	return ok;
}

/* ---- entry points ---------------------------------------------------------------------------- */

/* Discard the output after start. */
static void output_truncate(struct fw_html_writer *w, size_t start)
{
	close_levels(w, w->n);
	w->pre = false;
	w->embed = FW_STR_NONE;
	w->out->len = start;
	if (w->out->p)
		w->out->p[start] = '\0';
}

int fw_html_sanitize(struct fw_str html, struct fw_str base, unsigned flags, struct fw_buf *out, struct fw_err *err)
{
	struct fw_html_writer w = {.out = out,
		.base = base,
		.drop_pixels = flags & FW_PRINT_NO_PIXELS,
		.data_images = flags & FW_HTML_DATA_IMAGES};
	struct fw_arena scratch;
	size_t start = out->len;

	if (out->rc)
		return fw_err_set(err, out->rc, "sanitising HTML: the output buffer is already in an error state");
	fw_arena_init(&scratch, 0);
	w.scratch = &scratch;
	html = html.len ? valid_utf8(&scratch, html) : FW_STR("");
	if (html.len)
		fw_html_anchors_find(&scratch, html, base, &w.anchors);
	if (html.p && !write_direct(&w, html, false)) {
		output_truncate(&w, start);
		if (flags & FW_HTML_NO_TREE || html.len > TREE_BYTES || !sanitize_by_tree(&w, html)) {
			output_truncate(&w, start);
			(void)write_direct(&w, html, true);
		}
	}
	if (scratch.failed && !out->rc)
		out->rc = FW_ENOMEM;
	fw_arena_finish(&scratch);
	if (out->rc == FW_ELIMIT)
		return fw_err_set(
			err, FW_ELIMIT, "sanitised HTML is longer than the %zu bytes allowed", out->max_bytes);
	return out->rc ? fw_err_set(err, out->rc, "out of memory while sanitising %zu bytes of HTML", html.len) : 0;
}
