/* SPDX-License-Identifier: ISC */
/*
 * Splits HTML into tags and text as the HTML standard's tokenizer does (section 13.2.5): linear, no
 * tree, no copies. Doctypes and processing instructions are comments. The content of script, style
 * and similar elements is one RAW token. Used where no tree is needed, and to limit the input of
 * the tree builder.
 */
#ifndef FW_PARSE_HTML_TOKEN_H
#define FW_PARSE_HTML_TOKEN_H

#include "base/str.h"
#include "base/arena.h"
#include "base/buf.h"

/* properties of elements; see FW_HTML_ELEMENTS */
enum {
	FW_EL_KEEP = 1, /* the sanitiser keeps it */
	FW_EL_VOID = 2,
	FW_EL_RAW = 4,       /* its content is not markup: script, style ... */
	FW_EL_DROP = 8,      /* removed with all its content */
	FW_EL_BLOCK = 16,    /* starts and ends a line: white space in plain text */
	FW_EL_CLOSES_P = 32, /* its start tag ends an open paragraph */
	FW_EL_SPECIAL = 64,  /* "special" in the tree construction rules */
	FW_EL_FORMAT = 128,  /* formatting element */
	FW_EL_HEADING = 256,
	FW_EL_TABLE = 512,    /* allowed only inside tables */
	FW_EL_NO_TEXT = 1024, /* allows certain child elements and no text */
	FW_EL_IMPLIED = 2048, /* its end tag is optional */
};

#define FW_HTML_ELEMENTS(X)                                                                          \
	X(A, "a", FW_EL_KEEP | FW_EL_FORMAT)                                                         \
	X(ABBR, "abbr", FW_EL_KEEP)                                                                  \
	X(ACRONYM, "acronym", FW_EL_KEEP)                                                            \
	X(ADDRESS, "address", FW_EL_KEEP | FW_EL_BLOCK | FW_EL_CLOSES_P | FW_EL_SPECIAL)             \
	X(APPLET, "applet", 0)                                                                       \
	X(AREA, "area", FW_EL_VOID)                                                                  \
	X(ARTICLE, "article", FW_EL_KEEP | FW_EL_BLOCK | FW_EL_CLOSES_P | FW_EL_SPECIAL)             \
	X(ASIDE, "aside", FW_EL_KEEP | FW_EL_BLOCK | FW_EL_CLOSES_P | FW_EL_SPECIAL)                 \
	X(AUDIO, "audio", FW_EL_KEEP)                                                                \
	X(B, "b", FW_EL_KEEP | FW_EL_FORMAT)                                                         \
	X(BASE, "base", FW_EL_VOID)                                                                  \
	X(BASEFONT, "basefont", FW_EL_VOID)                                                          \
	X(BDI, "bdi", FW_EL_KEEP)                                                                    \
	X(BDO, "bdo", FW_EL_KEEP)                                                                    \
	X(BGSOUND, "bgsound", FW_EL_VOID)                                                            \
	X(BIG, "big", FW_EL_KEEP | FW_EL_FORMAT)                                                     \
	X(BLINK, "blink", 0)                                                                         \
	X(BLOCKQUOTE, "blockquote", FW_EL_KEEP | FW_EL_BLOCK | FW_EL_CLOSES_P | FW_EL_SPECIAL)       \
	X(BODY, "body", FW_EL_BLOCK)                                                                 \
	X(BR, "br", FW_EL_KEEP | FW_EL_VOID | FW_EL_BLOCK)                                           \
	X(BUTTON, "button", 0)                                                                       \
	X(CANVAS, "canvas", 0)                                                                       \
	X(CAPTION, "caption", FW_EL_KEEP | FW_EL_BLOCK | FW_EL_SPECIAL | FW_EL_TABLE)                \
	X(CENTER, "center", FW_EL_KEEP | FW_EL_BLOCK | FW_EL_CLOSES_P | FW_EL_SPECIAL)               \
	X(CITE, "cite", FW_EL_KEEP)                                                                  \
	X(CODE, "code", FW_EL_KEEP | FW_EL_FORMAT)                                                   \
	X(COL, "col", FW_EL_KEEP | FW_EL_VOID | FW_EL_SPECIAL | FW_EL_TABLE)                         \
	X(COLGROUP, "colgroup", FW_EL_KEEP | FW_EL_SPECIAL | FW_EL_TABLE | FW_EL_NO_TEXT)            \
	X(DATA, "data", 0)                                                                           \
	X(DATALIST, "datalist", FW_EL_DROP)                                                          \
	X(DD, "dd", FW_EL_KEEP | FW_EL_BLOCK | FW_EL_CLOSES_P | FW_EL_SPECIAL | FW_EL_IMPLIED)       \
	X(DEL, "del", FW_EL_KEEP)                                                                    \
	X(DETAILS, "details", FW_EL_KEEP | FW_EL_BLOCK | FW_EL_CLOSES_P | FW_EL_SPECIAL)             \
	X(DFN, "dfn", FW_EL_KEEP)                                                                    \
	X(DIALOG, "dialog", FW_EL_BLOCK)                                                             \
	X(DIR, "dir", FW_EL_KEEP | FW_EL_BLOCK | FW_EL_CLOSES_P | FW_EL_SPECIAL)                     \
	X(DIV, "div", FW_EL_KEEP | FW_EL_BLOCK | FW_EL_CLOSES_P | FW_EL_SPECIAL)                     \
	X(DL, "dl", FW_EL_KEEP | FW_EL_BLOCK | FW_EL_CLOSES_P | FW_EL_SPECIAL)                       \
	X(DT, "dt", FW_EL_KEEP | FW_EL_BLOCK | FW_EL_CLOSES_P | FW_EL_SPECIAL | FW_EL_IMPLIED)       \
	X(EM, "em", FW_EL_KEEP | FW_EL_FORMAT)                                                       \
	X(EMBED, "embed", FW_EL_VOID)                                                                \
	X(FIELDSET, "fieldset", FW_EL_BLOCK)                                                         \
	X(FIGCAPTION, "figcaption", FW_EL_KEEP | FW_EL_BLOCK | FW_EL_CLOSES_P | FW_EL_SPECIAL)       \
	X(FIGURE, "figure", FW_EL_KEEP | FW_EL_BLOCK | FW_EL_CLOSES_P | FW_EL_SPECIAL)               \
	X(FONT, "font", FW_EL_KEEP | FW_EL_FORMAT)                                                   \
	X(FOOTER, "footer", FW_EL_KEEP | FW_EL_BLOCK | FW_EL_CLOSES_P | FW_EL_SPECIAL)               \
	X(FORM, "form", FW_EL_BLOCK)                                                                 \
	X(FRAME, "frame", FW_EL_VOID)                                                                \
	X(FRAMESET, "frameset", 0)                                                                   \
	X(H1, "h1", FW_EL_KEEP | FW_EL_BLOCK | FW_EL_CLOSES_P | FW_EL_SPECIAL | FW_EL_HEADING)       \
	X(H2, "h2", FW_EL_KEEP | FW_EL_BLOCK | FW_EL_CLOSES_P | FW_EL_SPECIAL | FW_EL_HEADING)       \
	X(H3, "h3", FW_EL_KEEP | FW_EL_BLOCK | FW_EL_CLOSES_P | FW_EL_SPECIAL | FW_EL_HEADING)       \
	X(H4, "h4", FW_EL_KEEP | FW_EL_BLOCK | FW_EL_CLOSES_P | FW_EL_SPECIAL | FW_EL_HEADING)       \
	X(H5, "h5", FW_EL_KEEP | FW_EL_BLOCK | FW_EL_CLOSES_P | FW_EL_SPECIAL | FW_EL_HEADING)       \
	X(H6, "h6", FW_EL_KEEP | FW_EL_BLOCK | FW_EL_CLOSES_P | FW_EL_SPECIAL | FW_EL_HEADING)       \
	X(HEAD, "head", 0)                                                                           \
	X(HEADER, "header", FW_EL_KEEP | FW_EL_BLOCK | FW_EL_CLOSES_P | FW_EL_SPECIAL)               \
	X(HGROUP, "hgroup", FW_EL_KEEP | FW_EL_BLOCK | FW_EL_CLOSES_P | FW_EL_SPECIAL)               \
	X(HR, "hr", FW_EL_KEEP | FW_EL_VOID | FW_EL_BLOCK | FW_EL_CLOSES_P | FW_EL_SPECIAL)          \
	X(HTML, "html", 0)                                                                           \
	X(I, "i", FW_EL_KEEP | FW_EL_FORMAT)                                                         \
	X(IFRAME, "iframe", FW_EL_RAW | FW_EL_DROP | FW_EL_BLOCK)                                    \
	X(IMAGE, "image", 0)                                                                         \
	X(IMG, "img", FW_EL_KEEP | FW_EL_VOID)                                                       \
	X(INPUT, "input", FW_EL_VOID)                                                                \
	X(INS, "ins", FW_EL_KEEP)                                                                    \
	X(KBD, "kbd", FW_EL_KEEP)                                                                    \
	X(KEYGEN, "keygen", FW_EL_VOID)                                                              \
	X(LABEL, "label", 0)                                                                         \
	X(LEGEND, "legend", FW_EL_BLOCK)                                                             \
	X(LI, "li", FW_EL_KEEP | FW_EL_BLOCK | FW_EL_CLOSES_P | FW_EL_SPECIAL | FW_EL_IMPLIED)       \
	X(LINK, "link", FW_EL_VOID)                                                                  \
	X(LISTING, "listing", FW_EL_BLOCK)                                                           \
	X(MAIN, "main", FW_EL_KEEP | FW_EL_BLOCK | FW_EL_CLOSES_P | FW_EL_SPECIAL)                   \
	X(MAP, "map", 0)                                                                             \
	X(MARK, "mark", FW_EL_KEEP)                                                                  \
	X(MARQUEE, "marquee", FW_EL_BLOCK)                                                           \
	X(MATH, "math", 0)                                                                           \
	X(MENU, "menu", FW_EL_KEEP | FW_EL_BLOCK | FW_EL_CLOSES_P | FW_EL_SPECIAL)                   \
	X(META, "meta", FW_EL_VOID)                                                                  \
	X(METER, "meter", 0)                                                                         \
	X(NAV, "nav", FW_EL_KEEP | FW_EL_BLOCK | FW_EL_CLOSES_P | FW_EL_SPECIAL)                     \
	X(NOBR, "nobr", 0)                                                                           \
	X(NOEMBED, "noembed", FW_EL_RAW | FW_EL_DROP)                                                \
	X(NOFRAMES, "noframes", FW_EL_RAW | FW_EL_DROP)                                              \
	X(NOSCRIPT, "noscript", 0)                                                                   \
	X(OBJECT, "object", 0)                                                                       \
	X(OL, "ol", FW_EL_KEEP | FW_EL_BLOCK | FW_EL_CLOSES_P | FW_EL_SPECIAL)                       \
	X(OPTGROUP, "optgroup", 0)                                                                   \
	X(OPTION, "option", 0)                                                                       \
	X(OUTPUT, "output", 0)                                                                       \
	X(P, "p", FW_EL_KEEP | FW_EL_BLOCK | FW_EL_CLOSES_P | FW_EL_SPECIAL | FW_EL_IMPLIED)         \
	X(PARAM, "param", FW_EL_VOID)                                                                \
	X(PICTURE, "picture", FW_EL_KEEP)                                                            \
	X(PLAINTEXT, "plaintext", 0)                                                                 \
	X(PRE, "pre", FW_EL_KEEP | FW_EL_BLOCK | FW_EL_CLOSES_P | FW_EL_SPECIAL)                     \
	X(PROGRESS, "progress", 0)                                                                   \
	X(Q, "q", FW_EL_KEEP)                                                                        \
	X(RP, "rp", FW_EL_KEEP | FW_EL_IMPLIED)                                                      \
	X(RT, "rt", FW_EL_KEEP | FW_EL_IMPLIED)                                                      \
	X(RUBY, "ruby", FW_EL_KEEP)                                                                  \
	X(S, "s", FW_EL_KEEP | FW_EL_FORMAT)                                                         \
	X(SAMP, "samp", FW_EL_KEEP)                                                                  \
	X(SCRIPT, "script", FW_EL_RAW | FW_EL_DROP)                                                  \
	X(SECTION, "section", FW_EL_KEEP | FW_EL_BLOCK | FW_EL_CLOSES_P | FW_EL_SPECIAL)             \
	X(SELECT, "select", FW_EL_DROP)                                                              \
	X(SMALL, "small", FW_EL_KEEP | FW_EL_FORMAT)                                                 \
	X(SOURCE, "source", FW_EL_KEEP | FW_EL_VOID)                                                 \
	X(SPAN, "span", FW_EL_KEEP)                                                                  \
	X(STRIKE, "strike", FW_EL_KEEP | FW_EL_FORMAT)                                               \
	X(STRONG, "strong", FW_EL_KEEP | FW_EL_FORMAT)                                               \
	X(STYLE, "style", FW_EL_RAW | FW_EL_DROP)                                                    \
	X(SUB, "sub", FW_EL_KEEP)                                                                    \
	X(SUMMARY, "summary", FW_EL_KEEP | FW_EL_BLOCK | FW_EL_CLOSES_P | FW_EL_SPECIAL)             \
	X(SUP, "sup", FW_EL_KEEP)                                                                    \
	X(SVG, "svg", FW_EL_DROP)                                                                    \
	X(TABLE, "table", FW_EL_KEEP | FW_EL_BLOCK | FW_EL_CLOSES_P | FW_EL_SPECIAL | FW_EL_NO_TEXT) \
	X(TBODY, "tbody", FW_EL_KEEP | FW_EL_SPECIAL | FW_EL_TABLE | FW_EL_NO_TEXT)                  \
	X(TD, "td", FW_EL_KEEP | FW_EL_BLOCK | FW_EL_SPECIAL | FW_EL_TABLE)                          \
	X(TEMPLATE, "template", FW_EL_DROP)                                                          \
	X(TEXTAREA, "textarea", FW_EL_RAW)                                                           \
	X(TFOOT, "tfoot", FW_EL_KEEP | FW_EL_SPECIAL | FW_EL_TABLE | FW_EL_NO_TEXT)                  \
	X(TH, "th", FW_EL_KEEP | FW_EL_BLOCK | FW_EL_SPECIAL | FW_EL_TABLE)                          \
	X(THEAD, "thead", FW_EL_KEEP | FW_EL_SPECIAL | FW_EL_TABLE | FW_EL_NO_TEXT)                  \
	X(TIME, "time", FW_EL_KEEP)                                                                  \
	X(TITLE, "title", FW_EL_RAW | FW_EL_DROP)                                                    \
	X(TR, "tr", FW_EL_KEEP | FW_EL_BLOCK | FW_EL_SPECIAL | FW_EL_TABLE | FW_EL_NO_TEXT)          \
	X(TRACK, "track", FW_EL_VOID)                                                                \
	X(TT, "tt", FW_EL_KEEP | FW_EL_FORMAT)                                                       \
	X(U, "u", FW_EL_KEEP | FW_EL_FORMAT)                                                         \
	X(UL, "ul", FW_EL_KEEP | FW_EL_BLOCK | FW_EL_CLOSES_P | FW_EL_SPECIAL)                       \
	X(VAR, "var", FW_EL_KEEP)                                                                    \
	X(VIDEO, "video", FW_EL_KEEP)                                                                \
	X(WBR, "wbr", FW_EL_KEEP | FW_EL_VOID)                                                       \
	X(XMP, "xmp", FW_EL_RAW | FW_EL_BLOCK)

enum fw_el {
	FW_EL_NONE, /* not an HTML element */
#define X(id, name, flags) FW_E_##id,
	FW_HTML_ELEMENTS(X)
#undef X
		FW_EL_COUNT
};

enum fw_el fw_el_find(struct fw_str name); /* case is ignored */
const char *fw_el_name(enum fw_el el);
unsigned fw_el_flags(enum fw_el el);

enum fw_html_kind { FW_HTML_END, FW_HTML_TEXT, FW_HTML_RAW, FW_HTML_OPEN, FW_HTML_CLOSE, FW_HTML_COMMENT };

struct fw_html_token {
	enum fw_html_kind kind;
	enum fw_el el;       /* OPEN, CLOSE; RAW: the element around it */
	struct fw_str text;  /* as written: the text, the whole tag, the whole comment */
	struct fw_str attrs; /* OPEN: the text after the name */
};

struct fw_html_tokenizer {
	const char *at, *end;
	enum fw_el raw; /* the element whose raw text comes next */
};

void fw_html_start(struct fw_html_tokenizer *z, struct fw_str html);
/* The next token. After the last one, and from then on, kind is FW_HTML_END. */
void fw_html_next(struct fw_html_tokenizer *z, struct fw_html_token *t);
/*
 * Skip the content of the DROP element that t opened. Does nothing for RAW ones: their content is
 * one token that the caller sees.
 */
void fw_html_skip(struct fw_html_tokenizer *z, const struct fw_html_token *t);

/*
 * Read the next attribute of *attrs and advance; false: no more. value: as written, absent if there
 * is none.
 */
bool fw_html_attr(struct fw_str *attrs, struct fw_str *name, struct fw_str *value);
/* The decoded value of one attribute; absent if missing. */
struct fw_str fw_html_attr_get(struct fw_arena *a, struct fw_str attrs, const char *name);
/*
 * Decode character references in an attribute value ("&copy=2" is not one there). Borrowed if there
 * are none.
 */
struct fw_str fw_html_attr_decode(struct fw_arena *a, struct fw_str value);

#endif
