/* SPDX-License-Identifier: ISC */
/*
 * Entries go out as feeds: Atom 1.0 (RFC 4287), RSS 2.0 or JSON Feed 1.1. The same writer serves
 * `feedwheel entries --format` and GET /feeds/NAME.atom; docs/api.md says which member of an entry
 * goes where.
 *
 *   - An entry's id is the same in all formats, at all times and on all servers: the id that its
 *     feed gave it, if that is an IRI of http, https, tag or urn; else a urn:uuid of the feed's URL
 *     and that id. In a document an id occurs once: of entries of several feeds the first one is
 *     written, and a second one of the same feed gets a urn:uuid of its own.
 *   - HTML is sanitised, URLs are absolute, and XML contains no character that XML 1.0 forbids.
 */
#ifndef FW_API_FEED_OUT_H
#define FW_API_FEED_OUT_H

#include "api/view.h"
#include "feedwheel/store.h"

struct fw_arena;
struct fw_buf;
struct fw_config;

enum fw_feed_out_format { FW_FEED_OUT_ATOM, FW_FEED_OUT_RSS, FW_FEED_OUT_JSON, FW_FEED_OUT_N };
/* "atom", "rss", "json": the end of a feed's name. */
const char *fw_feed_out_extension(enum fw_feed_out_format format);
/* "application/atom+xml" ... */
const char *fw_feed_out_type(enum fw_feed_out_format format);

/* The feed itself. An absent or empty string is left out. */
struct fw_feed_out_head {
	struct fw_str id;       /* an IRI */
	struct fw_str title;    /* not empty */
	struct fw_str self_url; /* of the document */
	struct fw_str home_url; /* RSS needs one: absent means self_url, else http://localhost/ */
	struct fw_str hub_url;  /* WebSub */
	struct fw_str description, language, icon;
};

/* A feed that is being written. */
struct fw_feed_out;
/* work: for sanitising; borrowed. NULL: out of memory. */
FW_MUST_CHECK struct fw_feed_out *fw_feed_out_create(enum fw_feed_out_format format, struct fw_view_work *work);
void fw_feed_out_destroy(struct fw_feed_out *f); /* NULL is allowed */
/*
 * Add an entry (read with content), newest first. An entry whose content cannot be sanitised is
 * written without it. Errors: FW_ENOMEM.
 */
FW_MUST_CHECK int fw_feed_out_add(struct fw_feed_out *f, const struct fw_entry_row *e, struct fw_err *err);
/* Bytes of the entries so far. */
size_t fw_feed_out_bytes(const struct fw_feed_out *f);
/* Append the document to out. Errors: FW_ENOMEM. */
FW_MUST_CHECK int fw_feed_out_end(
	struct fw_feed_out *f, const struct fw_feed_out_head *head, struct fw_buf *out, struct fw_err *err);

/* ---- names ----------------------------------------------------------------------------------- */

/*
 * What a feed contains, by its name:
 *
 *	folder/News     the folder News, with its subfolders
 *	query/TEXT      a query (feedwheel-query(7))
 *	order/NAME      the query of an order
 *	feed/12         one feed
 *	all             all entries
 *	TEXT            the folder of that name; if there is none, the query TEXT
 */
enum fw_feed_out_kind {
	FW_FEED_OUT_FOLDER,
	FW_FEED_OUT_QUERY,
	FW_FEED_OUT_ORDER,
	FW_FEED_OUT_FEED,
	FW_FEED_OUT_ALL,
	FW_FEED_OUT_BARE, /* TEXT, not looked up yet */
};
struct fw_feed_out_name {
	enum fw_feed_out_kind kind;
	struct fw_str text; /* without "folder/" and the like */
};
/* Points into name. */
struct fw_feed_out_name fw_feed_out_name_parse(struct fw_str name);
/* Append the full form, "folder/News". kind is not FW_FEED_OUT_BARE. */
void fw_feed_out_name_write(struct fw_buf *out, const struct fw_feed_out_name *name);
/* May a token for the feed `own` (full form) read `name`? Both forms of one name are the same. */
bool fw_feed_out_name_allows(struct fw_str own, struct fw_str name);

/* A feed that was found: its entries, and what is known of it. */
struct fw_feed_out_found {
	struct fw_feed_out_name name;
	struct fw_entry_query q; /* feed_id, folder, search */
	struct fw_str title, home_url, description, language, icon;
};
/*
 * Look a name up. Strings go into the arena, or point into the name. FW_ENOTFOUND: no such folder,
 * order or feed. FW_EINVAL: an invalid query ("query, at 7: ..."), or no text.
 */
FW_MUST_CHECK int fw_feed_out_find(struct fw_store *st, const struct fw_feed_out_name *name, struct fw_arena *a,
	struct fw_feed_out_found *out, struct fw_err *err);
/*
 * Append the URL below which clients reach the server, ending in "/": websub_url, else of listen.
 * Nothing if neither is known.
 */
void fw_feed_out_base(const struct fw_config *c, struct fw_buf *out);
/* Append "feeds/News.atom": the name, escaped, with an extension. */
void fw_feed_out_path(struct fw_buf *out, struct fw_str name, enum fw_feed_out_format format);

#endif
