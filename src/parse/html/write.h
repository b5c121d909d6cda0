/* SPDX-License-Identifier: ISC */
/*
 * Writes safe HTML; all sanitised output comes from here. The writer holds the stack of open
 * elements and writes only what the allow lists name. It refuses an element where HTML's tree
 * construction rules would move it. So the output parses to the same tree, and sanitising it again
 * changes nothing.
 */
#ifndef FW_PARSE_HTML_WRITE_H
#define FW_PARSE_HTML_WRITE_H

#include "base/buf.h"
#include "parse/html/anchor.h"
#include "parse/html/token.h"

#define FW_HTML_DEPTH 256

struct fw_html_writer {
	struct fw_buf *out;
	struct fw_arena *scratch;
	struct fw_str base;
	bool drop_pixels, data_images;
	enum fw_el open[FW_HTML_DEPTH];
	size_t n;
	/* how many of each are open; most look-ups end here, with 0 */
	uint16_t open_n[FW_EL_COUNT];
	struct fw_html_anchors anchors;
	struct fw_str embed; /* URL of the last embed that became a link */
	bool pre;            /* <pre> was just written: an immediate newline would be lost */
};

/* Iterates over the attributes of a tag's text or of a tree's node; value is decoded. */
struct fw_html_attrs {
	bool (*next)(struct fw_html_attrs *it, struct fw_arena *a, struct fw_str *name, struct fw_str *value);
	struct fw_str text;
	const void *list;
	unsigned at;
};

static inline enum fw_el fw_html_top(const struct fw_html_writer *w)
{
	return w->n ? w->open[w->n - 1] : FW_EL_NONE;
}

static inline void fw_html_push(struct fw_html_writer *w, enum fw_el el)
{
	w->open[w->n++] = el;
	w->open_n[el]++;
}

static inline enum fw_el fw_html_pop(struct fw_html_writer *w)
{
	enum fw_el el = w->open[--w->n];

	w->open_n[el]--;
	return el;
}

/* May el, which may be void, stand here? */
bool fw_html_fits(const struct fw_html_writer *w, enum fw_el el);
/*
 * The number of open elements from the top down to the nearest open el in scope, inclusive; 0:
 * none.
 */
size_t fw_html_depth_of(const struct fw_html_writer *w, enum fw_el el);
/*
 * Write a start tag; el must fit. attrs is read from its start and may be NULL. False: the element
 * is not worth showing.
 */
bool fw_html_open(struct fw_html_writer *w, enum fw_el el, const struct fw_html_attrs *attrs);
void fw_html_close(struct fw_html_writer *w); /* the innermost element */
/* Write decoded text. False if text may not stand here; white space alone always may. */
bool fw_html_write_text(struct fw_html_writer *w, struct fw_str text);

/* Is the image 1 x 1 or smaller, is a side smaller than min, or does its style hide it? */
bool fw_html_hidden(struct fw_str width, struct fw_str height, struct fw_str style, int min);
/*
 * Escape text for HTML, or for a double-quoted attribute. Controls are dropped; line ends become
 * LF.
 */
void fw_html_escape(struct fw_buf *out, struct fw_str s, bool attribute);

#endif
