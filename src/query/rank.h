/* SPDX-License-Identifier: ISC */
/* How well an entry fits a query: for "best first". */
#ifndef FW_QUERY_RANK_H
#define FW_QUERY_RANK_H

#include "query/query.h"

/* How common words are, so that a rare one counts more. */
struct query_frequencies {
	uint64_t entry_n; /* all entries */
	/* Entries that have one of a term's words or phrases; an estimate will do. */
	uint64_t (*count)(void *ctx, const struct query_node *term);
	void *ctx;
};

/*
 * The score of the scratch's entry, from 0 up, in millionths: the words that the query wants,
 * without those that it excludes; more for the title, less in a long text (BM25). Fields other than
 * the title do not count. f NULL: all words count alike. The same numbers on all stores.
 */
int64_t query_score(const struct query_node *q, struct query_scratch *s, const struct query_frequencies *f);

#endif
