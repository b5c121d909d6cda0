/* SPDX-License-Identifier: ISC */
/*
 * A feed document, read: feed metadata, entries, problems met.
 *
 * One arena holds it all; every pointer and string lives until fw_document_free(). Lists are singly linked in
 * document order. A string that is absent has p == NULL; strings are valid UTF-8. Dates are Unix milliseconds, UTC,
 * or FW_NO_DATE. What `feedwheel parse` prints of each member stands in feedwheel(1).
 */
#ifndef FEEDWHEEL_DOCUMENT_H
#define FEEDWHEEL_DOCUMENT_H

#include "feedwheel/types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FW_NO_DATE INT64_MIN
#define FW_NO_NUMBER INT64_MIN

enum fw_format {
	FW_FORMAT_NONE, FW_RSS090, FW_RSS091, FW_RSS092, FW_RSS093, FW_RSS094, FW_RSS10, FW_RSS11, FW_RSS20,
	FW_ATOM03, FW_ATOM10, FW_CDF, FW_JSON1, FW_JSON11,
};

enum fw_text_type { FW_TEXT_NONE, FW_TEXT_PLAIN, FW_TEXT_HTML };

struct fw_person {
	struct fw_str name, email, url, avatar, role;
	struct fw_person *next;
};

struct fw_link {
	struct fw_str rel, type, href, title, hreflang;
	int64_t length; /* bytes, or FW_NO_NUMBER */
	struct fw_link *next;
};

struct fw_category {
	struct fw_str term, scheme, label;
	struct fw_category *next;
};

struct fw_attachment {
	struct fw_str url, mime_type, title;
	int64_t size_bytes;  /* or FW_NO_NUMBER */
	int64_t duration_ms; /* or FW_NO_NUMBER */
	struct fw_attachment *next;
};

/* One repair. line and column count from 1; 0 when the place is not known. */
struct fw_problem {
	uint32_t line, column;
	const char *what;   /* what was wrong */
	const char *repair; /* what was done about it */
	struct fw_problem *next;
};

struct fw_image {
	struct fw_str url, title, link, description;
	int64_t width, height;
};

/* A member of the JSON output that has no field of its own (itunes, podcast, media, geo ...): an object tree. */
enum fw_value_type { FW_VALUE_STRING, FW_VALUE_NUMBER, FW_VALUE_INTEGER, FW_VALUE_BOOL, FW_VALUE_OBJECT, FW_VALUE_ARRAY };
struct fw_value;
struct fw_value_list {
	struct fw_value *first, *last;
};
struct fw_value {
	enum fw_value_type type;
	uint32_t counted;           /* used while the document is read */
	struct fw_str name;         /* inside an object */
	union {
		struct fw_str string;   /* STRING */
		double number;          /* NUMBER */
		int64_t integer;        /* INTEGER, BOOL */
		struct fw_value_list members; /* OBJECT, ARRAY */
	};
	struct fw_value *next;
};

struct fw_entry {
	struct fw_str id;          /* guid, atom:id, rdf:about; else url; else made from the content */
	struct fw_str url, external_url;
	struct fw_str title;       /* plain text */
	struct fw_str summary;     /* plain text */
	struct fw_str content;     /* as in the document (entities of the carrier decoded), not sanitised */
	struct fw_str content_base; /* what relative URLs inside content resolve against: xml:base, else url, else the document's address */
	struct fw_str image, banner_image, language;
	struct fw_str comments, comment_feed_url, copyright, license;
	int64_t comment_count;     /* or FW_NO_NUMBER */
	int64_t published_ms, updated_ms, created_ms;
	struct fw_person *authors, *contributors;
	struct fw_person *publisher; /* or NULL */
	struct fw_category *categories;
	struct fw_attachment *attachments;
	struct fw_link *links;
	struct fw_link *in_reply_to; /* thr: rel holds ref (the id), title holds source */
	struct fw_value *extra;    /* OBJECT or NULL: itunes, podcast, media, geo, source, chapters ... */
	enum fw_text_type content_type;
	uint32_t line;             /* where it begins in the document */
	uint32_t dup_n;            /* 0, or what tells it from entries of the same id that differ (part of its key) */
	bool id_made;              /* the document held neither id nor url */
	bool id_from_url;          /* the document held no id */
	bool repeat;               /* an entry before it in the document has the same id and says the same */
	bool all_removed;          /* its content holds something, but nothing that may be shown: sanitised, it is empty */
	struct fw_entry *next;
};

struct fw_document {
	enum fw_format format;
	const char *encoding;      /* WHATWG name of the encoding in use */
	bool malformed;            /* not well-formed XML 1.0 with namespaces, or bytes wrong for the encoding */
	struct fw_str id, title, description, home_page_url, feed_url, icon, favicon, language, next_url, prev_archive_url;
	struct fw_str copyright, license, docs;
	struct fw_str generator_name, generator_url, generator_version;
	bool expired, complete, archive; /* JSON Feed expired; RFC 5005 fh:complete, fh:archive */
	int64_t updated_ms, published_ms, created_ms;
	int64_t ttl_minutes;            /* or FW_NO_NUMBER */
	int64_t update_period_minutes;  /* sy:updatePeriod / sy:updateFrequency, or FW_NO_NUMBER */
	uint32_t skip_hours;            /* bit h: hour h GMT is skipped */
	uint8_t skip_days;              /* bit 0: Sunday */
	struct fw_image image;
	struct fw_person *authors, *contributors;
	struct fw_person *publisher; /* or NULL */
	struct fw_category *categories;
	struct fw_link *links, *hubs;   /* hubs: href, and type "WebSub" or what JSON Feed says */
	struct fw_value *extra;         /* OBJECT or NULL: itunes, podcast, media, cloud ... */
	struct fw_entry *entries;
	size_t entry_n;
	struct fw_problem *problems;    /* the first 100 */
	size_t problem_n;               /* all that were met */
	size_t dropped_n;               /* entries past max_entries, and members of lists past what one entry may have (100 links ...) */
	bool ended_early;               /* max_memory was reached: the entries behind that are missing */
	struct fw_arena *arena;         /* holds all of the above; NULL when the caller brought it */
};

/* Limits: 0 takes the default in brackets. Past one the answer is FW_ELIMIT naming the limit, but entries read so far stay. */
struct fw_limits {
	size_t max_bytes;       /* of the document [16 MiB] */
	size_t max_memory;      /* of the parsed document, besides the document itself [2 x document + 1 MiB] */
	uint32_t max_depth;     /* nested elements [256]; deeper ones are flattened */
	uint32_t max_attributes; /* per element [1,000] */
	uint32_t max_entries;   /* per document [10,000] */
	uint32_t max_entity_ratio; /* expansion of internal entities, times the document's size [20] */
};

struct fw_parse_options {
	struct fw_str url;          /* where the document came from: the base of relative URLs */
	struct fw_str content_type; /* the HTTP header, with its charset */
	struct fw_str content_location; /* HTTP Content-Location, or absent */
	struct fw_limits limits;
	int64_t now_ms;             /* reads two-digit years and judges dates in the future; 0: dates are not judged */
	void *(*alloc)(size_t n, void *ctx); /* NULL: malloc and free */
	void (*free)(void *p, void *ctx);
	void *alloc_ctx;
};

/*
 * Read a feed.
 *
 * in      bytes[0..len) in any of the encodings of the WHATWG standard; options may be NULL
 * out     *doc, the caller's, fw_document_free() it; NULL on error
 * errors  FW_EFORMAT not a feed (err says what it seems to be), FW_ELIMIT a limit before the first entry, FW_ENOMEM
 * cost    linear in len; one pass; no I/O, no clock, no globals: thread-safe
 */
FW_API FW_MUST_CHECK int fw_parse(const void *bytes, size_t len, const struct fw_parse_options *options,
	struct fw_document **doc, struct fw_err *err);
FW_API void fw_document_free(struct fw_document *doc);

/* "rss20", "atom10", "json11" ... */
FW_API const char *fw_format_name(enum fw_format format);

enum {
	FW_PRINT_PRETTY = 1,       /* indented */
	FW_PRINT_RAW = 2,          /* HTML as it was in the document, not sanitised */
	FW_PRINT_NO_PIXELS = 4,    /* leave images of 1 x 1 out */
};
/* The document as JSON Feed 1.1 text, malloc'd, free() it. Errors: FW_ENOMEM. */
FW_API FW_MUST_CHECK int fw_document_json(const struct fw_document *doc, unsigned flags, char **json, size_t *len,
	struct fw_err *err);

/*
 * Make HTML safe to show: a real HTML5 tree, an allow list of elements, attributes and URL schemes, written anew.
 * Relative URLs are resolved against base (may be absent). Idempotent. *out is malloc'd, free() it.
 */
FW_API FW_MUST_CHECK int fw_sanitize(struct fw_str html, struct fw_str base, unsigned flags, char **out, size_t *len,
	struct fw_err *err);

/*
 * The feeds that an HTML page names (link rel=alternate with a feed's type, document order, <base> honoured).
 * *links is malloc'd as one block, free() it; NULL when there are none.
 */
FW_API FW_MUST_CHECK int fw_discover(const void *html, size_t len, struct fw_str url, struct fw_str content_type,
	struct fw_link **links, struct fw_err *err);
/* The same for the HTTP Link header the page came with: values of several headers with commas between. */
FW_API FW_MUST_CHECK int fw_discover_header(struct fw_str link_header, struct fw_str url, struct fw_link **links, struct fw_err *err);

/*
 * The podcast:guid that belongs to a feed's address: what a feed without that element has. False: no address, or none of such a length.
 * `feedwheel parse` prints it as podcast.guid_from_url.
 */
#define FW_PODCAST_GUID_MAX 37
FW_API bool fw_podcast_guid(struct fw_str feed_url, char guid[FW_PODCAST_GUID_MAX]);

/* A subscription in an OPML file: an outline with an xmlUrl; folder is "a/b" of the outlines around it. */
struct fw_opml_outline {
	struct fw_str url, title, home_page_url, folder, type;
	uint32_t line;
};
/* 0 to go on; anything else stops and is returned. Strings live until the reading ends. */
typedef int fw_opml_cb(void *ctx, const struct fw_opml_outline *o);
/* Something had to be repaired, as in struct fw_problem. */
typedef void fw_opml_problem_cb(void *ctx, uint32_t line, uint32_t column, const char *what, const char *repair);
/* Read a subscription list, OPML 1.0 to 2.0, as tolerantly as feeds are read. problem may be NULL. Errors: FW_EFORMAT, FW_ENOMEM. */
FW_API FW_MUST_CHECK int fw_opml_read(const void *bytes, size_t len, fw_opml_cb *cb, fw_opml_problem_cb *problem, void *ctx,
	struct fw_err *err);

#ifdef __cplusplus
}
#endif
#endif
