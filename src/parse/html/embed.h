/* SPDX-License-Identifier: ISC */
/*
 * Finds what an HTML content embeds: players and other documents. The sanitiser replaces each with
 * a link, and the JSON output lists them. An element that is 1 x 1, hidden or an advertisement is
 * dropped and not an embed.
 */
#ifndef FW_PARSE_HTML_EMBED_H
#define FW_PARSE_HTML_EMBED_H

#include "parse/html/token.h"

#define FW_HTML_EMBEDS_MAX 100 /* listed for one content */

struct fw_html_embed {
	/* the page with the same content; the player's URL if it is not known */
	struct fw_str url;
	struct fw_str player;       /* URL of the embedded document: absolute, http or https */
	struct fw_str service;      /* "YouTube"; absent: unknown service */
	struct fw_str title, image; /* or absent */
	struct fw_html_embed *next;
};

/*
 * Does the start tag t embed something? z is just after t. If so, *e describes it, with strings
 * that live in a or in the HTML.
 */
bool fw_html_embed_read(struct fw_arena *a, struct fw_str base, const struct fw_html_tokenizer *z,
	const struct fw_html_token *t, struct fw_html_embed *e);
/*
 * The text of the link to it: its title, else the service, else the URL without scheme and query.
 */
struct fw_str fw_html_embed_label(const struct fw_html_embed *e);
/* All embeds of html in document order, each URL once, at most FW_HTML_EMBEDS_MAX. */
struct fw_html_embed *fw_html_embeds(struct fw_arena *a, struct fw_str html, struct fw_str base);

/*
 * Can the <video> or <audio> t play anything? It can if it has a URL, or a <source> before all
 * other content has one. z is just after t.
 */
bool fw_html_plays(
	struct fw_arena *a, const struct fw_html_tokenizer *z, const struct fw_html_token *t, bool data_images);
/*
 * The accessible name of an <svg>: aria-label, or a <title> before all other content. Absent: none.
 */
struct fw_str fw_html_svg_name(struct fw_arena *a, const struct fw_html_tokenizer *z, const struct fw_html_token *t);
/*
 * Does html contain elements, and does sanitising remove everything visible? Stops at the first
 * thing that stays visible.
 */
bool fw_html_all_removed(struct fw_str html, struct fw_str base);

#endif
