/* SPDX-License-Identifier: ISC */
/*
 * The elements that mean something to us, one line each in element.gperf: where they count, what to do with them, which
 * member they fill, and how they rank against others that fill the same one.
 *
 * The key of an element is one letter for its namespace (see element_find in walk.c) and its local name; case does not count.
 */
#ifndef FW_PARSE_FEED_ELEMENT_H
#define FW_PARSE_FEED_ELEMENT_H

#include "parse/xml/xml.h"

/* Where we are: the meaning of the innermost open element. */
enum fw_context {
	CTX_TOP,      /* outside any feed: before the root, or in the HTML page round it */
	CTX_ROOT,     /* rss, rdf:RDF */
	CTX_FEED,     /* channel, feed */
	CTX_ENTRY,    /* item, entry */
	CTX_SOURCE,   /* atom:source, rss source */
	CTX_IMAGE,    /* RSS image of the channel or an item */
	CTX_PERSON,   /* author, contributor, itunes:owner ... */
	CTX_MEDIA,    /* media:group, media:content inside an entry */
	CTX_GEO,      /* georss:where and what GML puts inside */
	CTX_LIVE,     /* podcast:liveItem, textInput: their own title, description, link */
	CTX_LIST,     /* an element whose children are parts of one value: skipHours, psc:chapters, podcast:value ... */
	CTX_OTHER,    /* something unknown in a feed: only entries and channels count inside */
	CTX_SKIP,     /* nothing counts inside */
};

enum {
	IN_TOP = 1 << CTX_TOP, IN_ROOT = 1 << CTX_ROOT, IN_FEED = 1 << CTX_FEED, IN_ENTRY = 1 << CTX_ENTRY,
	IN_SOURCE = 1 << CTX_SOURCE, IN_IMAGE = 1 << CTX_IMAGE, IN_PERSON = 1 << CTX_PERSON, IN_MEDIA = 1 << CTX_MEDIA,
	IN_GEO = 1 << CTX_GEO, IN_LIVE = 1 << CTX_LIVE, IN_LIST = 1 << CTX_LIST, IN_OTHER = 1 << CTX_OTHER,
	IN_BOTH = IN_FEED | IN_ENTRY,
	IN_PLACE = IN_BOTH | IN_LIST, /* a feed's, an entry's, a media:location's */
	IN_META = IN_FEED | IN_ENTRY | IN_SOURCE,
	IN_ANY = IN_TOP | IN_ROOT | IN_FEED | IN_ENTRY | IN_OTHER | IN_SOURCE,
};

/* What to do with an element. */
enum fw_element_kind {
	EL_ROOT, EL_CHANNEL, EL_ENTRY,
	EL_TEXT,       /* a text construct kept as plain text: title, subtitle, rights */
	EL_BODY,       /* description, summary, content: fw_element.field says which */
	EL_STRING,     /* trimmed text, as it is */
	EL_URL,        /* text (or resource, href, url, rdf:resource), resolved */
	EL_DATE, EL_NUMBER,
	EL_PERSON, EL_PERSON_PART,
	EL_INSIDE,     /* what stands in it counts as if it stood outside: categories, foaf:Person */
	EL_LINK, EL_ANCHOR, EL_GUID, EL_ENCLOSURE, EL_CATEGORY, EL_SOURCE, EL_IMAGE, EL_TEXT_INPUT, EL_GENERATOR,
	EL_CLOUD,
	EL_SKIP_HOURS, EL_SKIP_DAYS, EL_HOUR, EL_DAY, EL_PERIOD, EL_FREQUENCY, EL_REPLY, EL_FLAG,
	EL_VALUE,      /* text into extra: group.member */
	EL_OBJECT,     /* attributes (and text) as an object: appended to the list extra.group.member */
	EL_ONE,        /* the same, but a single object */
	EL_PART,       /* like EL_OBJECT, but inside the object of the element around it */
	EL_ITUNES_IMAGE, EL_ITUNES_LINK, EL_ITUNES_CATEGORY, EL_KEYWORDS, EL_OWNER,
	EL_MEDIA_GROUP, EL_MEDIA_CONTENT, EL_MEDIA_TEXT, EL_MEDIA_THUMBNAIL, EL_MEDIA_CATEGORY,
	EL_STRINGS, EL_STRING_IN, /* a list of texts, and a member of it */
	EL_GEO_WHERE, EL_GEO_SHAPE, EL_GEO_POINTS, EL_GEO_LAT, EL_GEO_LONG, EL_GEO_ALT, EL_GEO_NOTE,
	EL_CHAPTERS, EL_CHAPTER, EL_LIVE,
};

/* The member that a simple kind fills; what it is called in fw_document and fw_entry. */
enum fw_field {
	F_NONE,
	F_TITLE, F_ID, F_LANGUAGE, F_COPYRIGHT, F_LICENSE, F_DOCS, F_HOME, F_FAVICON, F_COMMENTS, F_COMMENT_FEED,
	F_GENERATOR, F_IMAGE, F_IMAGE_URL, F_WIDTH, F_HEIGHT,
	F_URL,
	F_DESCRIPTION,  /* RSS description: content or summary */
	F_SUMMARY,      /* a summary and nothing else */
	F_CONTENT,      /* the content */
	F_PUBLISHED, F_UPDATED, F_CREATED,
	F_TTL, F_COMMENT_COUNT,
	F_AUTHOR, F_CONTRIBUTOR, F_PUBLISHER,
	F_NAME, F_EMAIL,
	F_COMPLETE, F_ARCHIVE,
	F_STRING, F_INTEGER, F_NUMBER, F_BOOL, F_SECONDS, F_LINK, F_DATE, F_PLAIN, /* types of EL_VALUE */
	F_N
};

struct fw_element {
	int name;            /* offset in gperf's pool */
	uint16_t in;         /* IN_* */
	uint8_t kind, field;
	uint8_t rank;        /* the higher one fills the field; among equals see build.h */
	char group[13], member[21];
};

/* gperf's; key is the namespace's letter and the local name. NULL: it means nothing to us. */
const struct fw_element *fw_element_lookup(const char *key, size_t len);

#endif
