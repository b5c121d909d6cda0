/* SPDX-License-Identifier: ISC */
/*
 * Shared by the readers of all formats: the document under construction, its strings, its lists and
 * its extra members.
 *
 * Everything lives in one arena and is never freed separately. Running out of memory is sticky
 * (arena->failed) and is checked once, at the end. Until then helpers return absent strings and
 * NULL.
 */
#ifndef FW_PARSE_FEED_BUILDER_H
#define FW_PARSE_FEED_BUILDER_H

#include "base/str.h"
#include "base/url.h"
#include "parse/feed/element.h"

/* xml:base and xml:lang in force. Only an element with one of them makes a new scope. */
struct fw_scope {
	struct fw_str base, lang;
	bool base_declared; /* the document declares the base */
};

/* How to read the text of an open element. */
enum fw_text_rule {
	TEXT_NONE, /* dropped */
	TEXT_TRIM, /* a plain value: date, URL, name */
	TEXT_AUTO, /* RSS: HTML if it contains markup */
	TEXT_PLAIN,
	TEXT_HTML,
	TEXT_XML,    /* markup is part of the document (XHTML) and is written out again */
	TEXT_BASE64, /* Atom 0.3 mode="base64", Atom 1.0 content of other types */
};

enum fw_end_tag { END_UNKNOWN, END_FOUND, END_MISSING };

struct fw_frame {
	const struct fw_element *el; /* NULL: unknown, or markup inside a text */
	const struct fw_scope *scope;
	/* the object that it builds: fw_person, fw_value, fw_link, fw_document (source) ... */
	void *obj;
	size_t at; /* offset of its start tag */
	uint8_t ctx, rule;
	uint8_t end;  /* enum fw_end_tag, cached */
	bool atom;    /* in Atom's namespace */
	bool untyped; /* TEXT_PLAIN by default: no type attribute */
	bool is_html; /* TEXT_BASE64: its content is HTML */
};

/*
 * The text being captured. While there is only one piece it is a borrowed slice; after that it is a
 * copy in the scratch buffer. Markup inside a text is the document's own bytes from raw_from on,
 * until something must be written differently.
 */
struct fw_capture {
	struct fw_str one;
	bool copied;
	/* a category with text of its own: the text of its children is ignored */
	bool words;
	/* child elements are part of it: the text is HTML, and plain text in it is escaped */
	bool markup;
	size_t owner;    /* index of the frame that owns the text; SIZE_MAX: none */
	size_t markup_n; /* elements so far */
	size_t raw_from; /* offset; 0: no raw bytes */
	size_t raw_to;   /* where the outer div of XHTML ends; 0: no such div */
};

/*
 * A description, summary or content. It is held until its entry ends: only then is its role known.
 */
struct fw_body {
	struct fw_str s;
	enum fw_text_type type;
	const struct fw_scope *scope;
	uint8_t rank;
};

/* Lists of an entry or feed have at most 100 members (LIM-08). */
#define FW_LIST_MAX 100
#define FW_RETRACTIONS_MAX 1000 /* of a feed */
struct fw_counts {
	uint32_t attachments, categories, links, people;
};

struct fw_ranks {
	uint8_t of[F_N];
};

/* Cache: an element's name and its meaning; NULL: none. */
struct fw_known_name {
	struct fw_str local;
	unsigned in; /* enum fw_ns; FW_NS_COUNT: the feed's own names */
	const struct fw_element *el;
};

/* Cache: an attribute's name and the member that holds it. */
struct fw_member_name {
	struct fw_str local;
	const char *member;
};

/* The slot of a name in the two caches below. */
static inline unsigned fw_name_slot(struct fw_str s)
{
	return (unsigned)s.len + (s.len ? (unsigned char)s.p[0] * 3u + (unsigned char)s.p[s.len - 1] * 5u : 0);
}

struct fw_builder {
	struct fw_arena *arena;
	const struct fw_parse_options *options;
	struct fw_limits limits;
	struct fw_str text; /* the decoded document */
	struct fw_document *doc;
	struct fw_xml *xml;
	struct fw_entry *entry;     /* the open one, or NULL */
	struct fw_entry **entry_at; /* where the next entry is linked */
	struct fw_retraction **retraction_at;
	uint32_t retraction_n;
	struct fw_document *source; /* atom:source of the open entry */
	/* of the open entry; used if it has no authors of its own */
	struct fw_person *source_authors;
	struct fw_ranks feed_rank, entry_rank, source_rank;
	struct fw_counts count, feed_count;
	struct fw_str feed_lang;                      /* xml:lang of the feed */
	struct fw_body description, summary, content; /* of the open entry */
	/* of a medium of the open entry; its summary if there is no other */
	struct fw_body caption;

	const struct fw_scope *base_scope; /* the document's URL; NULL: none */
	struct fw_frame *frame;
	size_t frame_n, frame_cap;
	struct fw_frame first_frames[64];
	struct fw_known_name known[64];
	struct fw_member_name member_names[32];
	struct fw_capture cap;
	struct fw_buf scratch;

	/* line counts the lines up to line_at */
	struct fw_problem *problem_last;
	/* text of the problem "memory limit reached", made while there is still memory */
	const char *memory_words;
	size_t problem_at; /* offset of the last problem */
	size_t line_at;
	uint32_t line;

	enum fw_ns core_ns;     /* namespace of the root */
	struct fw_str core_uri; /* its URI if the namespace is unknown */
	/*
	 * undeclared prefix that the channel or first entry has: it stands for the feed's namespace
	 */
	struct fw_str core_prefix;
	size_t searched; /* bytes searched for end tags */
	bool root_seen, atom, entries_full;
	bool own_entities;               /* the document declares entities */
	bool unresolved;                 /* some URL is still relative: its base may follow */
	struct fw_str period, frequency; /* sy: */
	/* name of the document's first element, for the error message */
	struct fw_str root_name;

	size_t more_shapes;  /* bytes of the shapes that are not the first of their place */
	size_t inherited;    /* bytes that contents have inherited from their media:group */
	int64_t duration_ms; /* itunes:duration of the open entry, or FW_NO_NUMBER */
	/* of the open entry: its URL, which FeedBurner replaced with its own */
	struct fw_str orig_link;
	struct fw_geo *geo; /* of the open entry or feed; NULL: none yet */
};

/* A zeroed object; NULL if out of memory (arena->failed is set). */
#define FW_NEW(b, type) ((type *)fw_arena_zalloc((b)->arena, sizeof(type)))

/* Append item to a singly linked list. Linear: lists are short, or the caller keeps the tail. */
#define FW_APPEND(list, item)                                                     \
	do {                                                                      \
		void *at_ = &(list);                                              \
		fw_list_append(at_, (item), offsetof(__typeof__(*(item)), next)); \
	} while (0)
void fw_list_append(void *list, void *item, size_t next_offset);

#define FW_PROBLEMS_KEPT 100 /* the first ones; the rest are only counted */
void fw_build_problem(struct fw_builder *b, size_t offset, const char *what, const char *repair);
/* reports broken syntax: the document is malformed, and its broken_line is the first such place */
void fw_build_broken(struct fw_builder *b, size_t offset, const char *what, const char *repair);
/* reports an empty entry, which is ignored */
void fw_build_empty_entry(struct fw_builder *b, size_t offset);
uint32_t fw_build_line(struct fw_builder *b, size_t offset);
size_t fw_build_offset(const struct fw_builder *b); /* the reader's offset */
/*
 * Count one more member of a list. False if there are max already: the member is dropped and
 * counted, and the first drop is reported (LIM-08).
 */
bool fw_build_count_member(struct fw_builder *b, uint32_t *count, uint32_t max, const char *what);
struct fw_str fw_build_dup(struct fw_builder *b, struct fw_str s);

/*
 * The base in force: xml:base, else the document's URL, else the channel's link. A base longer than
 * FW_BASE_MAX bytes is ignored.
 */
#define FW_BASE_MAX 2048
struct fw_str fw_build_base(const struct fw_builder *b, const struct fw_scope *scope);
/*
 * Trim and resolve a URL. Absent if empty, or if its scheme is unsafe (javascript:, data:, file:
 * ...).
 */
struct fw_str fw_build_url(struct fw_builder *b, const struct fw_scope *scope, struct fw_str ref);
/* The same for an address that replaces another one; absent if that is not fw_url_is_web(). */
struct fw_str fw_build_original(struct fw_builder *b, struct fw_str s);
/* Undo double encoding through windows-1252 (mojibake): "Ã¶" is "ö", U+0092 is an apostrophe. */
struct fw_str fw_build_fix_mojibake(struct fw_builder *b, struct fw_str s);
/*
 * One line of plain text: white space collapsed and trimmed. Borrowed if unchanged; absent if
 * empty.
 */
struct fw_str fw_build_line_text(struct fw_builder *b, struct fw_str s);
/* The plain text of s. HTML is parsed only if s contains markup. */
struct fw_str fw_build_plain(struct fw_builder *b, struct fw_str s, enum fw_text_type type);
/*
 * One line of plain text from a title, name or tag of RSS, which is HTML if it looks like it
 * (fw_title_is_html).
 */
struct fw_str fw_build_title(struct fw_builder *b, struct fw_str s);
/* A language tag in BCP 47 form: "de_DE" becomes "de-DE". */
struct fw_str fw_build_language(struct fw_builder *b, struct fw_str s);
int64_t fw_build_date(struct fw_builder *b, struct fw_str s);
/* The number at the start of s; FW_NO_NUMBER if there is none or it is negative. */
int64_t fw_build_number(struct fw_str s);
/*
 * The same, but accepts thousands separators ("1,234,567", "1 234 567 bytes"). FW_NO_NUMBER also
 * for a fraction or another unit.
 */
int64_t fw_build_size(struct fw_str s);
/* A duration in ms: "1:02:03", "62:03", "3723", "3723.5". FW_NO_NUMBER: not a duration. */
int64_t fw_build_duration(struct fw_str s);
/*
 * Decode base64 (RFC 4648, both alphabets, white space ignored). Returns s itself if it is not
 * base64; absent if the result is not text.
 */
struct fw_str fw_build_base64(struct fw_builder *b, struct fw_str s);
bool fw_build_bool(struct fw_str s);

/*
 * Split "Name (mail)", "mail (Name)", "Name <mail>", "mail" or "Name" into p. Members already set
 * stay.
 */
void fw_person_split(struct fw_builder *b, struct fw_str s, struct fw_person *p);

/*
 * Extra members. fw_value_object(b, &e->extra, "itunes") finds or creates the object of that name;
 * "" is the root. fw_value_new() returns NULL if the member exists: the first value stays.
 */
struct fw_value *fw_value_new(struct fw_builder *b, struct fw_value *in, const char *name, enum fw_value_type type);
struct fw_value *fw_value_object(struct fw_builder *b, struct fw_value **root, const char *name);
struct fw_value *fw_value_find(const struct fw_value *in, const char *name);
/* NULL if v cannot have members */
static inline struct fw_value *fw_value_members(const struct fw_value *v)
{
	return v && (v->type == FW_VALUE_OBJECT || v->type == FW_VALUE_ARRAY) ? v->members.first : NULL;
}
/* found or created */
struct fw_value *fw_value_array(struct fw_builder *b, struct fw_value *in, const char *name);
/* Absent strings and NULL objects are ignored. */
void fw_value_str(struct fw_builder *b, struct fw_value *in, const char *name, struct fw_str s);
void fw_value_int(struct fw_builder *b, struct fw_value *in, const char *name, int64_t v);
void fw_value_num(struct fw_builder *b, struct fw_value *in, const char *name, double v);
void fw_value_date(struct fw_builder *b, struct fw_value *in, const char *name, int64_t at_ms);
void fw_value_bool(struct fw_builder *b, struct fw_value *in, const char *name, bool v);

#endif
