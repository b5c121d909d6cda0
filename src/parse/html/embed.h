/* SPDX-License-Identifier: ISC */
/*
 * What an HTML content embeds: players and other documents. The sanitiser puts a link in the place of each, and the JSON output
 * lists them. What is 1 x 1, hidden or an advertisement is no embed: nothing is left of it.
 */
#ifndef FW_PARSE_HTML_EMBED_H
#define FW_PARSE_HTML_EMBED_H

#include "parse/html/token.h"

#define FW_HTML_EMBEDS_MAX 100 /* of one content that are listed */

struct fw_html_embed {
	struct fw_str url;     /* the page that shows the same; where that is not known, the player's address */
	struct fw_str player;  /* the address of what is embedded: absolute, http or https */
	struct fw_str service; /* "YouTube"; absent: none that we know */
	struct fw_str title, image; /* absent where there is none */
	struct fw_html_embed *next;
};

/* Does the start tag t, behind which z stands, embed something? Then it is told in *e, in words that live in a or in the HTML. */
bool fw_html_embed_read(struct fw_arena *a, struct fw_str base, const struct fw_html_tokenizer *z, const struct fw_html_token *t,
	struct fw_html_embed *e);
/* What a link to it says: its title, else the service, else the address without scheme and query. */
struct fw_str fw_html_embed_label(const struct fw_html_embed *e);
/* All that html embeds, each address once, in document order, FW_HTML_EMBEDS_MAX at most. */
struct fw_html_embed *fw_html_embeds(struct fw_arena *a, struct fw_str html, struct fw_str base);

/* Can the <video> or <audio> t, behind which z stands, play anything: has it, or a <source> in front of all else in it, an address? */
bool fw_html_plays(struct fw_arena *a, const struct fw_html_tokenizer *z, const struct fw_html_token *t, bool data_images);
/* The name that an <svg> gives itself for those who do not see it: aria-label, or a <title> in front of all else. Absent: none. */
struct fw_str fw_html_svg_name(struct fw_arena *a, const struct fw_html_tokenizer *z, const struct fw_html_token *t);
/* Does html hold elements, and does sanitising leave nothing of them to be seen? Looks as far as the first thing that is. */
bool fw_html_all_removed(struct fw_str html, struct fw_str base);

#endif
