/* SPDX-License-Identifier: ISC */
/*
 * A stored entry as the three formats need it: checked, with absolute URLs, lists instead of JSON.
 * For feed_out.c, feed_item.c, feed_url.c and the formats: feed_atom.c, feed_rss.c, feed_json.c.
 */
#ifndef FW_ENGINE_OUT_FEED_ITEM_H
#define FW_ENGINE_OUT_FEED_ITEM_H

#include "api/feed_out.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"
#include "feedwheel/document.h"

#define FEED_GENERATOR "feedwheel"

struct feed_item {
	struct fw_str id;  /* an IRI */
	struct fw_str url; /* this and other URLs: absolute, and IRIs (feed_url()); absent: none */
	struct fw_str external_url, image, banner_image;
	struct fw_str title, summary; /* plain text */
	struct fw_str text, html;     /* the content: one of them, or neither */
	struct fw_str language;       /* feed_language() */
	int64_t published_ms;         /* FW_NO_DATE: unknown */
	int64_t updated_ms;           /* never FW_NO_DATE */
	bool updated_known;           /* updated_ms is the feed's own */
	struct fw_person *authors;    /* with a name */
	struct fw_category *categories;
	struct fw_attachment *attachments; /* with a url */
	struct fw_str source_title, source_url;
};

/* ---- feed_item.c ---- */

/*
 * Fill *out but its html. Strings live in the arena or in the row. Errors: a->failed.
 */
void feed_item_read(const struct fw_entry_row *e, struct fw_arena *a, struct feed_item *out);
/* A language tag as feeds may have it ("de", "pt-BR"), else absent. */
struct fw_str feed_language(struct fw_str s);

/* ---- feed_url.c ---- */

/*
 * s as an absolute IRI (RFC 3987), resolved against base; bytes that an IRI cannot have are
 * escaped. Absent: it is no URL, or one that runs a script.
 */
struct fw_str feed_url(struct fw_arena *a, struct fw_str base, struct fw_str s);
/* Append an IRI as a URI (section 3.1 of RFC 3987): bytes that are not ASCII are escaped. */
void feed_uri(struct fw_buf *out, struct fw_str iri);
/*
 * The id of an entry: its own, if it is an IRI that its maker is responsible for; else a urn:uuid.
 * more: further text that the urn:uuid depends on, or absent; then it is never the own id.
 */
struct fw_str feed_id(struct fw_arena *a, struct fw_str feed_url, struct fw_str own, struct fw_str more);

/* ---- the formats ---- */

void feed_atom_item(struct fw_buf *out, const struct feed_item *i);
void feed_atom_document(struct fw_buf *out, const struct fw_feed_out_head *h, int64_t updated_ms, struct fw_str items);
void feed_rss_item(struct fw_buf *out, const struct feed_item *i);
void feed_rss_document(struct fw_buf *out, const struct fw_feed_out_head *h, int64_t updated_ms, struct fw_str items);
/* Items are objects, separated by commas. */
void feed_json_item(struct fw_buf *out, const struct feed_item *i);
void feed_json_document(struct fw_buf *out, const struct fw_feed_out_head *h, int64_t updated_ms, struct fw_str items);

/* "<name>text</name>" on a line of its own; nothing without text. indent: spaces. */
void feed_xml_element(struct fw_buf *out, int indent, const char *name, struct fw_str text);
/* " name=\"value\""; nothing without a value. */
void feed_xml_attribute(struct fw_buf *out, const char *name, struct fw_str value);

#endif
