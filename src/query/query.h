/* SPDX-License-Identifier: ISC */
/*
 * The query language, one for search, filters, rules and orders: text to a tree, and does an entry
 * match it? Pure; all stores and the matcher of orders (match.h) use this one definition.
 *
 *	either  = both { "OR" both }
 *	both    = one { ["AND"] one }
 *	one     = ("-" | "NOT") one | "(" either ")" | term
 *	term    = [field ":"] (word | word"*" | "a phrase" | "a phrase"*)
 *
 * Operators are upper case. A word is what stands between white space, quotes and brackets; one
 * that folds to several words ("CVE-2026-1") is a phrase. Without a field a term is looked for in
 * title, summary and content; no phrase spans two of them. Fields: title author tag url site feed
 * folder lang since until has. Other letters before a colon are an error, because a misspelt field
 * must not silently become a word; "12:30" is a phrase.
 *
 * Words are compared as query_words() folds them: without case and accents, the same on all stores.
 */
#ifndef FW_QUERY_QUERY_H
#define FW_QUERY_QUERY_H

#include "base/arena.h"
#include "base/str.h"
#include "feedwheel/store.h"

#define QUERY_DEPTH_MAX 32    /* nested brackets and negations */
#define QUERY_TERMS_MAX 256   /* terms of one query */
#define QUERY_LENGTH_MAX 8192 /* bytes of one query */
#define QUERY_PHRASE_MAX 64   /* words of one phrase */

enum query_op {
	QUERY_AND, /* all children match */
	QUERY_OR,  /* one child matches */
	QUERY_NOT, /* the child does not match */

	QUERY_WORDS,  /* title, summary or content contains the words, one after the other */
	QUERY_TITLE,  /* the same for the title alone */
	QUERY_AUTHOR, /* the same for the author */
	QUERY_TAG,    /* a tag consists of exactly these words; with prefix it starts with them */
	QUERY_URL,    /* the entry's URL contains text, ignoring ASCII case */
	QUERY_SITE,   /* the host of the entry's URL is text, or a subdomain of it, ignoring ASCII case */
	QUERY_FEED,   /* the feed's id is number; 0: its URL or title contains text, ignoring ASCII case */
	QUERY_FOLDER, /* the feed's folder is text, or below it ("News" holds "News/Tech") */
	QUERY_LANG,   /* language of the entry, else of its feed: "de" also means "de-AT" */
	QUERY_SINCE,  /* stored at or after at_ms */
	QUERY_UNTIL,  /* stored before at_ms */
	QUERY_HAS,    /* see enum query_has */
};

enum query_has {         /* of QUERY_HAS; names in the query: lower case */
	QUERY_HAS_AUDIO, /* an attachment of this kind */
	QUERY_HAS_VIDEO,
	QUERY_HAS_IMAGE,
	QUERY_HAS_ATTACHMENT,
	QUERY_HAS_AUTHOR,
	QUERY_HAS_TAG,
	QUERY_HAS_LINK,    /* the entry has a URL */
	QUERY_HAS_CONTENT, /* not only a summary */
	QUERY_HAS_N,
};

struct query_node {
	enum query_op op;
	struct query_node *child; /* AND, OR: the first of two or more; NOT: the only one */
	struct query_node *next;  /* the next sibling */
	/*
	 * WORDS, TITLE, AUTHOR, TAG: the folded words, each followed by one space: "long night ".
	 * Never empty. Others: the text as written, without quotes and white space around it; SITE
	 * without dots around it, FOLDER without slashes.
	 */
	struct fw_str text;
	size_t word_n;
	bool prefix;    /* the last word is only the start of one */
	int64_t number; /* FEED: the id, 0: none (a number in quotes is text); HAS: enum query_has */
	int64_t at_ms;  /* SINCE, UNTIL */
	size_t at;      /* where the term starts in the query, in bytes: for messages */
};

/*
 * Parse a query. *out is NULL for a query without a term: it matches everything. The tree lives in
 * the arena and does not point into text. now_ms: what "since:2h" counts from.
 * FW_EINVAL: err names the place ("at 17: ...") and the remedy. FW_ENOMEM.
 */
FW_MUST_CHECK int query_parse(
	struct fw_arena *a, struct fw_str text, int64_t now_ms, struct query_node **out, struct fw_err *err);

/* Which members of an entry a query reads. */
enum {
	QUERY_READS_BODY = 1,  /* summary, content */
	QUERY_READS_EXTRA = 2, /* extra: tags, attachments, language */
	QUERY_READS_FEED = 4,  /* the feed's members */
};
unsigned query_reads(const struct query_node *q);

/* An entry, and what a query needs of its feed. Borrowed: valid while the scratch has it. */
struct query_subject {
	const struct fw_entry_row *entry; /* seen_ms 0: stored now */
	int64_t feed_id;
	struct fw_str feed_url, feed_title, feed_folder, feed_language; /* feed_title: the user's, else its own */
	int64_t now_ms;
};

/* Memory that is kept from one entry to the next. One thread. */
struct query_scratch;
struct query_scratch *query_scratch_create(void);    /* NULL: out of memory */
void query_scratch_destroy(struct query_scratch *s); /* may be NULL */

/*
 * Give the scratch an entry; subject is borrowed. What queries need of it (folded words, tags) is
 * made at the first use and kept until the next entry.
 */
void query_scratch_set(struct query_scratch *s, const struct query_subject *subject);
/* Does the entry match? q NULL: yes. Cost: linear in the entry, once, then in the query. */
bool query_matches(const struct query_node *q, struct query_scratch *s);
/* Memory ran out since the last query_scratch_set(): results since then do not count. */
bool query_scratch_failed(const struct query_scratch *s);

/* The name of enum query_has, and of a field: "audio", "title". Static. */
const char *query_has_name(enum query_has has);
const char *query_field_name(enum query_op op);

#endif
