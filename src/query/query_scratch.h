/* SPDX-License-Identifier: ISC */
/* What is made of an entry, once, for all queries. Serves query_eval.c and match.c. */
#ifndef FW_QUERY_SCRATCH_H
#define FW_QUERY_SCRATCH_H

#include "query/entry_words.h"
#include "query/query.h"

struct query_scratch {
	const struct query_subject *subject;
	unsigned ready; /* what is made: SCRATCH_* */
	bool failed;
	struct entry_words words;
	struct fw_buf author; /* folded: "\nw1 w2 \n" */
	struct fw_buf tags;   /* the same for each tag: "\nw1 w2 \nw3 \n" */
	struct fw_buf folded; /* spare */
	struct fw_str lang;   /* of the entry, else of its feed */
	struct fw_buf lang_buf;
	unsigned attachments; /* 1 << enum query_has */
	char host[256];       /* of the entry's URL; empty: none */
};

enum { SCRATCH_WORDS = 1, SCRATCH_AUTHOR = 2, SCRATCH_EXTRA = 4, SCRATCH_HOST = 8 };

/* Each returns what it made at the first call. */
struct entry_words *scratch_words(struct query_scratch *s);
struct fw_str scratch_author(struct query_scratch *s);
struct fw_str scratch_tags(struct query_scratch *s);
struct fw_str scratch_lang(struct query_scratch *s);
struct fw_str scratch_host(struct query_scratch *s);

/* Does a term match, one that is not AND, OR or NOT? */
bool query_term_matches(const struct query_node *term, struct query_scratch *s);
bool query_has_matches(enum query_has has, struct query_scratch *s);

#endif
