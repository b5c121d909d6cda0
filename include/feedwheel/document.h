/* SPDX-License-Identifier: ISC */
/*
 * The parser: from the bytes of a feed to a document with feed metadata, entries and problems; and
 * its tools: JSON output, HTML sanitiser, feed discovery, OPML. Thread-safe: no globals, no I/O.
 *
 * A document lives in one arena: every pointer and string is valid until fw_document_free(). Lists
 * are singly linked in document order. Strings are valid UTF-8; an absent string has p == NULL.
 * Dates are Unix milliseconds in UTC, or FW_NO_DATE. feedwheel(1) describes what `feedwheel parse`
 * prints for each member.
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
	FW_FORMAT_NONE,
	FW_RSS090,
	FW_RSS091,
	FW_RSS092,
	FW_RSS093,
	FW_RSS094,
	FW_RSS10,
	FW_RSS11,
	FW_RSS20,
	FW_ATOM03,
	FW_ATOM10,
	FW_CDF,
	FW_JSON1,
	FW_JSON11,
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

/* One repair. line and column count from 1; 0: position unknown. */
struct fw_problem {
	uint32_t line, column;
	const char *what;   /* the problem */
	const char *repair; /* how the parser handled it */
	struct fw_problem *next;
};

struct fw_image {
	struct fw_str url, title, link, description;
	int64_t width, height;
};

/*
 * An object tree for members of the JSON output without a field of their own (itunes, podcast, geo
 * ...).
 */
enum fw_value_type {
	FW_VALUE_STRING,
	FW_VALUE_NUMBER,
	FW_VALUE_INTEGER,
	FW_VALUE_BOOL,
	FW_VALUE_OBJECT,
	FW_VALUE_ARRAY
};
struct fw_value;
struct fw_value_list {
	struct fw_value *first, *last;
};
struct fw_value {
	enum fw_value_type type;
	uint32_t counted;   /* private to the parser */
	struct fw_str name; /* inside an object */
	union {
		struct fw_str string;         /* STRING */
		double number;                /* NUMBER */
		int64_t integer;              /* INTEGER, BOOL */
		struct fw_value_list members; /* OBJECT, ARRAY */
	};
	struct fw_value *next;
};

struct fw_entry {
	/* guid, atom:id, rdf:about; else url; else made from the content */
	struct fw_str id;
	struct fw_str url, external_url;
	struct fw_str title;   /* plain text */
	struct fw_str summary; /* plain text */
	/* as in the document, after decoding of XML or JSON; not sanitised */
	struct fw_str content;
	/* content_text of a JSON Feed beside content_html, or absent; stores keep content only */
	struct fw_str content_text;
	/* base of relative URLs in content: xml:base, else url, else the document's URL */
	struct fw_str content_base;
	struct fw_str image, banner_image, language;
	struct fw_str comments, comment_feed_url, copyright, license;
	int64_t comment_count; /* or FW_NO_NUMBER */
	int64_t published_ms, updated_ms, created_ms;
	struct fw_person *authors, *contributors;
	struct fw_person *publisher; /* or NULL */
	struct fw_category *categories;
	struct fw_attachment *attachments;
	struct fw_link *links;
	struct fw_link *in_reply_to; /* thr: rel holds ref (the id), title holds source */
	/* OBJECT or NULL: itunes, podcast, media, geo, source, chapters ... */
	struct fw_value *extra;
	enum fw_text_type content_type;
	uint32_t line; /* of its start in the document */
	/*
	 * 0, or a number that distinguishes it from differing entries with its id; part of its key
	 */
	uint32_t dup_n;
	bool id_made;     /* the document had neither id nor url */
	bool id_from_url; /* the document had no id */
	bool repeat;      /* an earlier entry has the same id and content */
	bool all_removed; /* the content is not empty, but sanitising removes all of it */
	struct fw_entry *next;
};

/* RFC 6721: the feed takes back the entry with this id. */
struct fw_retraction {
	struct fw_str ref;     /* the entry's id; never empty */
	struct fw_str comment; /* plain text */
	struct fw_person *by;  /* or NULL */
	int64_t when_ms;       /* or FW_NO_DATE */
	struct fw_retraction *next;
};

struct fw_document {
	enum fw_format format;
	const char *encoding; /* WHATWG name of the encoding in use */
	bool malformed;       /* not well-formed XML 1.0 with namespaces, or invalid bytes */
	struct fw_str id, title, description, home_page_url, feed_url, icon, favicon, language, next_url,
		prev_archive_url;
	struct fw_str copyright, license, docs;
	struct fw_str generator_name, generator_url, generator_version;
	bool expired, complete, archive; /* JSON Feed expired; RFC 5005 fh:complete, fh:archive */
	int64_t updated_ms, published_ms, created_ms;
	int64_t ttl_minutes;           /* or FW_NO_NUMBER */
	int64_t update_period_minutes; /* sy:updatePeriod / sy:updateFrequency, or FW_NO_NUMBER */
	uint32_t skip_hours;           /* bit h: hour h GMT is skipped */
	uint8_t skip_days;             /* bit 0: Sunday */
	struct fw_image image;
	struct fw_person *authors, *contributors;
	struct fw_person *publisher; /* or NULL */
	struct fw_category *categories;
	struct fw_link *links, *hubs; /* hubs: href, and type "WebSub" or JSON Feed's type */
	struct fw_value *extra;       /* OBJECT or NULL: itunes, podcast, media, cloud ... */
	struct fw_entry *entries;
	size_t entry_n;
	struct fw_retraction *retractions; /* the first 1,000 */
	struct fw_problem *problems;       /* the first 100 */
	size_t problem_n;                  /* all, including those not kept */
	/* JSON: where its syntax is broken for the first time; line 0: nowhere */
	uint32_t broken_line, broken_column;
	/*
	 * entries beyond max_entries, and members beyond a list's limit (100 links of an entry,
	 * 1,000 retractions ...)
	 */
	size_t dropped_n;
	bool ended_early;       /* max_memory was reached: later entries are missing */
	struct fw_arena *arena; /* owns all of the above; NULL: the caller's arena does */
};

/*
 * Limits. 0 means the default in brackets. Exceeding one gives FW_ELIMIT, which names the limit;
 * with entries already read, the document is returned with them instead.
 */
struct fw_limits {
	size_t max_bytes; /* of the document [16 MiB] */
	/* of the parsed document, besides its bytes [2 x document + 1 MiB] */
	size_t max_memory;
	uint32_t max_depth;      /* nested elements [256]; deeper ones are flattened */
	uint32_t max_attributes; /* per element [1,000] */
	uint32_t max_entries;    /* per document [10,000] */
	/* expansion of internal entities, times the document's size [20] */
	uint32_t max_entity_ratio;
};

struct fw_parse_options {
	struct fw_str url;              /* the document's URL: the base of relative URLs */
	struct fw_str content_type;     /* the HTTP header, with its charset */
	struct fw_str content_location; /* HTTP Content-Location, or absent */
	struct fw_limits limits;
	/*
	 * dates before 1970 or more than a year after now_ms are dropped as problems; 0: no check
	 */
	int64_t now_ms;
	void *(*alloc)(size_t n, void *ctx); /* NULL: malloc and free */
	void (*free)(void *p, void *ctx);
	void *alloc_ctx;
};

/*
 * Parse a feed.
 *
 * in      bytes[0..len) in any encoding of the WHATWG standard; options may be NULL
 * out     *doc, owned by the caller: fw_document_free(); NULL on error
 * errors  FW_EFORMAT: not a feed (err names the probable type); FW_ELIMIT: a limit was reached
 *         before the first entry; FW_ENOMEM
 * cost    linear in len, one pass; no I/O, no clock, no globals: thread-safe
 */
FW_API FW_MUST_CHECK int fw_parse(const void *bytes, size_t len, const struct fw_parse_options *options,
	struct fw_document **doc, struct fw_err *err);
FW_API void fw_document_free(struct fw_document *doc);

/* "rss20", "atom10", "json11" ... */
FW_API const char *fw_format_name(enum fw_format format);

enum {
	FW_PRINT_PRETTY = 1,    /* indented */
	FW_PRINT_RAW = 2,       /* HTML as in the document, not sanitised */
	FW_PRINT_NO_PIXELS = 4, /* drop 1 x 1 images */
};
/* The document as JSON Feed 1.1. *json is malloc'd: free() it. Errors: FW_ENOMEM. */
FW_API FW_MUST_CHECK int fw_document_json(
	const struct fw_document *doc, unsigned flags, char **json, size_t *len, struct fw_err *err);

/*
 * Make HTML safe to show: it is parsed as HTML5 and written anew from allow lists of elements,
 * attributes and URL schemes. Relative URLs are resolved against base, which may be absent.
 * Idempotent. *out is malloc'd: free() it.
 */
FW_API FW_MUST_CHECK int fw_sanitize(
	struct fw_str html, struct fw_str base, unsigned flags, char **out, size_t *len, struct fw_err *err);

/*
 * The feeds that an HTML page names (link rel=alternate with a feed's type), in document order,
 * resolved against <base>. *links is one malloc'd block: free() it; NULL: none.
 */
FW_API FW_MUST_CHECK int fw_discover(const void *html, size_t len, struct fw_str url, struct fw_str content_type,
	struct fw_link **links, struct fw_err *err);
/* The same for a page's HTTP Link header. Join the values of several headers with commas. */
FW_API FW_MUST_CHECK int fw_discover_header(
	struct fw_str link_header, struct fw_str url, struct fw_link **links, struct fw_err *err);

/*
 * The podcast:guid of a feed without that element, derived from its URL. False: feed_url is empty
 * or too long. `feedwheel parse` prints it as podcast.guid_from_url.
 */
#define FW_PODCAST_GUID_MAX 37
FW_API bool fw_podcast_guid(struct fw_str feed_url, char guid[FW_PODCAST_GUID_MAX]);

/*
 * A subscription in an OPML file: an outline with an xmlUrl. folder: "a/b", the outlines around it.
 */
struct fw_opml_outline {
	struct fw_str url, title, home_page_url, folder, type;
	uint32_t line;
};
/* Return 0 to continue; any other value stops and is returned. Strings live until parsing ends. */
typedef int fw_opml_cb(void *ctx, const struct fw_opml_outline *o);
/* Reports a repair, as in struct fw_problem. */
typedef void fw_opml_problem_cb(void *ctx, uint32_t line, uint32_t column, const char *what, const char *repair);
/*
 * Parse a subscription list, OPML 1.0 to 2.0, as tolerantly as feeds. problem may be NULL.
 * Errors: FW_EFORMAT, FW_ENOMEM, or the callback's value. FW_ELIMIT: outlines nested too deep were
 * left out; all others were given to cb.
 */
FW_API FW_MUST_CHECK int fw_opml_read(
	const void *bytes, size_t len, fw_opml_cb *cb, fw_opml_problem_cb *problem, void *ctx, struct fw_err *err);

#ifdef __cplusplus
}
#endif
#endif
