/* SPDX-License-Identifier: ISC */
/*
 * Writing safe HTML: the only place where sanitised output comes from. It holds the open elements, lets through what the allow
 * lists name, and refuses an element where the tree construction rules of HTML would move it; so whatever is written reads back
 * as the same tree, and sanitising it again changes nothing.
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
	uint16_t open_n[FW_EL_COUNT]; /* how many of each are among them: most that is looked for is not */
	struct fw_html_anchors anchors;
	struct fw_str embed; /* the address of the last one that became a link */
	bool pre; /* <pre> was just written: a newline right behind it would vanish */
};

/* One attribute after another, of a tag's text or of a tree's node; value is decoded. */
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

/* May el stand here? Void elements too. */
bool fw_html_fits(const struct fw_html_writer *w, enum fw_el el);
/* How many open elements there are up to and with the nearest open el in scope, 0 when there is none. */
size_t fw_html_depth_of(const struct fw_html_writer *w, enum fw_el el);
/* Write a start tag; el must fit. attrs is read from its start, and may be NULL. False when the element is not worth showing. */
bool fw_html_open(struct fw_html_writer *w, enum fw_el el, const struct fw_html_attrs *attrs);
void fw_html_close(struct fw_html_writer *w); /* the innermost */
/* Text, decoded. False when none may stand here (white space alone may anywhere). */
bool fw_html_write_text(struct fw_html_writer *w, struct fw_str text);

/* Is the image of 1 x 1 or less, or of a size (below min) that is not worth showing? */
bool fw_html_tiny(struct fw_str width, struct fw_str height, int min);
/* The same, or hidden by its style. */
bool fw_html_unseen(struct fw_str width, struct fw_str height, struct fw_str style, int min);
/* Text as HTML, in an attribute's double quotes too. Controls are left out, a line ends in LF. */
void fw_html_escape(struct fw_buf *out, struct fw_str s, bool attribute);

#endif
