/* SPDX-License-Identifier: ISC */
/*
 * What the readers of all formats share: the document under construction, its strings, lists and extra members.
 *
 * Everything lives in one arena and nothing is freed on the way. Running out of memory is sticky (arena->failed) and looked
 * at once, at the end; until then helpers give absent strings and NULL.
 */
#ifndef FW_PARSE_FEED_BUILD_H
#define FW_PARSE_FEED_BUILD_H

#include "base/str.h"
#include "base/url.h"
#include "parse/feed/element.h"

/* xml:base and xml:lang in force. A new one is made only where a document says so. */
struct fw_scope {
	struct fw_str base, lang;
	bool said; /* the document names the base */
};

/* How the text of an open element is to be read. */
enum fw_text_rule {
	TEXT_NONE,   /* dropped */
	TEXT_TRIM,   /* a plain value: date, URL, name */
	TEXT_AUTO,   /* RSS: HTML when it holds markup */
	TEXT_PLAIN, TEXT_HTML,
	TEXT_XML,    /* markup stands in the document itself (xhtml): written out again */
	TEXT_BASE64, /* Atom 0.3 mode="base64", Atom 1.0 content of other types */
};

enum fw_end_tag { END_UNKNOWN, END_FOUND, END_LOST };

struct fw_frame {
	const struct fw_element *el; /* NULL: unknown, or markup inside a text */
	const struct fw_scope *scope;
	void *obj;                   /* what it builds: fw_person, fw_value, fw_link, fw_document (source) ... */
	size_t at;                   /* where its start tag begins */
	uint8_t ctx, rule;
	uint8_t end;                 /* enum fw_end_tag, as far as it was looked for */
	bool atom;                   /* in Atom's namespace */
	bool untyped;                /* TEXT_PLAIN: by default only, no type said so */
	bool is_html;                /* TEXT_BASE64: what is inside */
};

/*
 * The text being gathered: one borrowed slice as long as there is only one, else a copy in the scratch buffer. Markup inside
 * a text is the document's own bytes from raw_from on, until something needs writing out.
 */
struct fw_capture {
	struct fw_str one;
	bool copied;
	bool words;      /* a category has words of its own: those of its children do not count */
	bool markup;     /* child elements are in it: it is HTML, and plain text has to be escaped */
	size_t owner;    /* index of the frame whose text it is; SIZE_MAX: none */
	size_t markup_n; /* elements met */
	size_t raw_from; /* offset; 0: no raw bytes */
	size_t raw_to;   /* where the outer div of XHTML ends; 0: no such div */
};

/* A description, summary or content that waits for its entry's end: only then it is clear which is which. */
struct fw_body {
	struct fw_str s;
	enum fw_text_type type;
	const struct fw_scope *scope;
	uint8_t rank;
};

/* Lists of one entry (or of the feed) are held to 100 members (LIM-08). */
#define FW_LIST_MAX 100
struct fw_counts {
	uint32_t attachments, categories, links, people;
};

struct fw_ranks {
	uint8_t of[F_N];
};

/* An element's name and what it means to us: NULL when nothing. */
struct fw_known_name {
	struct fw_str local;
	unsigned in; /* enum fw_ns; FW_NS_COUNT: the feed's own names */
	const struct fw_element *el;
};

/* An attribute's name and what the member that holds it is called. */
struct fw_member_name {
	struct fw_str local;
	const char *member;
};

/* Where to look for a name in the two tables below; the same for equal names. */
static inline unsigned fw_name_mix(struct fw_str s)
{
	return (unsigned)s.len + (s.len ? (unsigned char)s.p[0] * 3u + (unsigned char)s.p[s.len - 1] * 5u : 0);
}

struct fw_builder {
	struct fw_arena *arena;
	const struct fw_parse_options *options;
	struct fw_limits limits;
	struct fw_str text;          /* the decoded document */
	struct fw_document *doc;
	struct fw_xml *xml;
	struct fw_entry *entry;      /* the open one, or NULL */
	struct fw_entry **entry_at;  /* where the next one is hung */
	struct fw_document *source;  /* atom:source of the open entry */
	struct fw_person *source_authors; /* of the open entry: its own where it names none */
	struct fw_ranks feed_rank, entry_rank, source_rank;
	struct fw_counts count, feed_count;
	struct fw_str feed_lang;     /* xml:lang of the feed */
	struct fw_body description, summary, content; /* of the open entry */
	struct fw_body caption;      /* of a medium of the open entry: its summary where it says nothing else */

	const struct fw_scope *base_scope; /* the document's address; NULL: none */
	struct fw_frame *frame;
	size_t frame_n, frame_cap;
	struct fw_frame first_frames[64];
	struct fw_known_name known[64];
	struct fw_member_name member_names[32];
	struct fw_capture cap;
	struct fw_buf scratch;

	/* lines: counted as far as line_at */
	struct fw_problem *problem_last;
	const char *memory_words;    /* of the problem that says that there is no memory left, while there is some */
	size_t problem_at;           /* its offset */
	size_t line_at;
	uint32_t line;

	enum fw_ns core_ns;          /* namespace of the root */
	struct fw_str core_uri;      /* the same when it is one we do not know */
	struct fw_str core_prefix;   /* not declared, and yet the feed's own: its channel or first entry has it */
	size_t searched;             /* bytes in which end tags were looked for */
	bool root_seen, atom, entries_full;
	bool own_entities;           /* the document declares entities */
	bool unresolved;             /* an address stayed relative: its base may come later */
	struct fw_str period, frequency; /* sy: */
	struct fw_str root_name;     /* of the document's first element, for the words of an error */

	size_t inherited;            /* bytes of what media:groups gave to their contents */
	int64_t duration_ms;         /* itunes:duration of the open entry, or FW_NO_NUMBER */
	struct fw_str orig_link;     /* of the open entry: its address where FeedBurner put its own */
	struct fw_geo *geo;          /* of the open entry or feed; NULL: none yet */
};

/* n zeroed bytes; when there is no memory, NULL (arena->failed is set). */
#define FW_NEW(b, type) ((type *)fw_arena_zalloc((b)->arena, sizeof(type)))

/* Append item to a singly linked list. Lists are short, or the caller keeps the tail. */
#define FW_APPEND(list, item) \
	do { \
		void *at_ = &(list); \
		fw_list_append(at_, (item), offsetof(__typeof__(*(item)), next)); \
	} while (0)
void fw_list_append(void *list, void *item, size_t next_offset);

#define FW_PROBLEMS_KEPT 100 /* the first; all are counted */
void fw_build_problem(struct fw_builder *b, size_t offset, const char *what, const char *repair);
void fw_build_nothing(struct fw_builder *b, size_t offset); /* an entry without anything, which is none */
uint32_t fw_build_line(struct fw_builder *b, size_t offset);
size_t fw_build_at(const struct fw_builder *b); /* where the reader is */
/* Count a member of a list in; false when there are max already: it is dropped, counted and, the first time, reported (LIM-08). */
bool fw_build_room(struct fw_builder *b, uint32_t *count, uint32_t max, const char *what);
struct fw_str fw_build_dup(struct fw_builder *b, struct fw_str s);

/* The base in force: xml:base, the document's URL, then the channel's link; what is longer than FW_BASE_MAX is none. */
#define FW_BASE_MAX 2048
struct fw_str fw_build_base(const struct fw_builder *b, const struct fw_scope *scope);
/* Trimmed and resolved; absent when empty, or when it is one that no reader should follow (javascript:, data:, file: ...). */
struct fw_str fw_build_url(struct fw_builder *b, const struct fw_scope *scope, struct fw_str ref);
/* Text that went through windows-1252 once too often, as it was before: "Ã¶" is "ö", U+0092 is an apostrophe. */
struct fw_str fw_build_once(struct fw_builder *b, struct fw_str s);
/* One line of plain text: white space collapsed and trimmed; borrowed when nothing changes; absent when empty. */
struct fw_str fw_build_line_text(struct fw_builder *b, struct fw_str s);
/* Plain text of something that is HTML (or may be: looked at first). */
struct fw_str fw_build_plain(struct fw_builder *b, struct fw_str s, enum fw_text_type type);
/* One line of plain text of something that may be HTML by its looks (fw_title_is_html): titles, names, tags in RSS. */
struct fw_str fw_build_title(struct fw_builder *b, struct fw_str s);
/* A language as BCP 47 writes it: "de_DE" is "de-DE". */
struct fw_str fw_build_language(struct fw_builder *b, struct fw_str s);
int64_t fw_build_date(struct fw_builder *b, struct fw_str s);
/* The digits at the start of s; FW_NO_NUMBER when there are none, or for a negative number. */
int64_t fw_build_number(struct fw_str s);
/* The same, with thousands set apart ("1,234,567", "1 234 567 bytes"); FW_NO_NUMBER when another unit follows, or a fraction. */
int64_t fw_build_size(struct fw_str s);
/* "1:02:03", "62:03", "3723", "3723.5" -> ms; FW_NO_NUMBER. */
int64_t fw_build_duration(struct fw_str s);
/* RFC 4648, both alphabets, white space passed over; s itself when it cannot be base64, absent when it is no text afterwards. */
struct fw_str fw_build_base64(struct fw_builder *b, struct fw_str s);
bool fw_build_bool(struct fw_str s);

/* "Name (mail)", "mail (Name)", "Name <mail>", "mail", "Name" into p, whose set members stay. */
void fw_person_split(struct fw_builder *b, struct fw_str s, struct fw_person *p);

/* Extra members. fw_value_object(b, &e->extra, "itunes") finds or makes the object of that name ("" gives the root). */
/* A member that is there already stays: then NULL. */
struct fw_value *fw_value_new(struct fw_builder *b, struct fw_value *in, const char *name, enum fw_value_type type);
struct fw_value *fw_value_object(struct fw_builder *b, struct fw_value **root, const char *name);
struct fw_value *fw_value_find(const struct fw_value *in, const char *name);
static inline struct fw_value *fw_value_members(const struct fw_value *v) /* NULL when it can have none */
{
	return v && (v->type == FW_VALUE_OBJECT || v->type == FW_VALUE_ARRAY) ? v->members.first : NULL;
}
struct fw_value *fw_value_array(struct fw_builder *b, struct fw_value *in, const char *name); /* found or made */
/* Absent strings and NULL objects are passed over. */
void fw_value_str(struct fw_builder *b, struct fw_value *in, const char *name, struct fw_str s);
void fw_value_int(struct fw_builder *b, struct fw_value *in, const char *name, int64_t v);
void fw_value_num(struct fw_builder *b, struct fw_value *in, const char *name, double v);
void fw_value_date(struct fw_builder *b, struct fw_value *in, const char *name, int64_t at_ms);
void fw_value_bool(struct fw_builder *b, struct fw_value *in, const char *name, bool v);

#endif
