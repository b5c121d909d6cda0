/* SPDX-License-Identifier: ISC */
/*
 * What orders look for in an entry, each thing once, as a number: a word, a host, a folder. Serves
 * match.c and match_code.c.
 */
#ifndef FW_QUERY_MATCH_FEATURES_H
#define FW_QUERY_MATCH_FEATURES_H

#include "base/buf.h"
#include "base/str.h"

enum feature_kind {
	FEATURE_ANY,    /* each entry has it; it is number 0 */
	FEATURE_WORD,   /* a word of title, summary or content */
	FEATURE_PREFIX, /* the start of one */
	FEATURE_TITLE,  /* a word of the title */
	FEATURE_AUTHOR, /* a word of the author */
	FEATURE_TAG,    /* the words of a tag, each followed by a space */
	FEATURE_SITE,   /* the host of the URL, or a domain that it is in; lower case */
	FEATURE_FEED,   /* its id, 8 bytes */
	FEATURE_FOLDER, /* the feed's folder, or one above it */
	FEATURE_LANG,   /* the language with or without region; lower case */
	FEATURE_HAS,    /* enum query_has, 1 byte */
	FEATURE_KIND_N,
};

#define FEATURE_NONE UINT32_MAX
#define FEATURES_MAX ((1u << 24) - 2)

/* Zero it and call features_init(). */
struct features {
	struct fw_buf text; /* of each: its kind, and its text */
	uint32_t *at;       /* where it starts there; one more for the end */
	uint32_t *order_n;  /* how often orders look for it; NULL once packed */
	uint32_t *entry_n;  /* how many of the learned entries have it; NULL once packed */
	size_t n, cap;
	uint32_t *slot; /* number + 1, and 8 bits of the hash; 0: free */
	size_t slot_n;
	unsigned kinds;           /* those that occur, 1 << kind */
	uint64_t prefix_bytes[2]; /* lengths of the prefixes that occur: bit n */
};

FW_MUST_CHECK int features_init(struct features *f); /* FW_ENOMEM */
void features_finish(struct features *f);
/* Number of a feature, counted as looked for once more. FW_ENOMEM, FW_ELIMIT. */
FW_MUST_CHECK int features_add(struct features *f, enum feature_kind kind, struct fw_str text, uint32_t *out);
/* FEATURE_NONE: no order looks for it. */
uint32_t features_find(const struct features *f, enum feature_kind kind, struct fw_str text);
/* The same; hash: entry_word_hash() of the text. */
uint32_t features_find_hashed(const struct features *f, enum feature_kind kind, struct fw_str text, uint64_t hash);
/* How common a feature is: a smaller number is rarer. */
uint64_t features_weight(const struct features *f, uint32_t feature);
void features_pack(struct features *f); /* give back the memory that only adding needs */
size_t features_bytes(const struct features *f);

static inline bool feature_is_set(const uint64_t *bits, size_t feature)
{
	return bits[feature / 64] >> feature % 64 & 1;
}

static inline bool features_have(const struct features *f, enum feature_kind kind)
{
	return f->kinds & (1u << kind);
}

static inline bool features_have_prefix(const struct features *f, size_t bytes)
{
	return bytes < 128 && (f->prefix_bytes[bytes / 64] >> bytes % 64 & 1);
}

#endif
