/* SPDX-License-Identifier: ISC */
/*
 * Which entries a list has to look at. Of the parts of a query,
 *   - words go to the search index, as far as all other entries cannot match;
 *   - feeds and folders become a list of feeds;
 *   - what these do not decide exactly is checked on the rows.
 * The index decides single words. Phrases are checked again: no index knows that they do not span
 * title, summary and content.
 */
#ifndef FW_STORE_SQL_CANDIDATES_H
#define FW_STORE_SQL_CANDIDATES_H

#include "query/query.h"
#include "store/sql/sql.h"

struct sql_candidates {
	struct sql *s;
	const struct store_entry_query *q;
	struct fw_arena a;
	bool found;                     /* only entries that {found} finds by this value */
	struct fw_buf word;             /* the value */
	bool among;                     /* only entries of the feeds that {among} finds by this value */
	bool few;                       /* these are few of all feeds */
	struct fw_buf feed;             /* the value: a JSON array of ids */
	const struct query_node **rest; /* all must match */
	size_t rest_n;
	unsigned reads; /* query_reads() of rest */
	bool by_shorts; /* an entry's short columns can tell that it does not match: sql_candidate_may() */
	struct query_scratch *scratch;
};

/* Finish it also after an error. Sets q->unindexed_n. */
int sql_candidates_begin(
	struct sql_candidates *c, struct sql *s, const struct store_entry_query *q, struct fw_err *err);
void sql_candidates_finish(struct sql_candidates *c);
/* Does the rest match? *matches; FW_ENOMEM. */
int sql_candidate_check(
	const struct sql_candidates *c, const struct query_subject *subject, bool *matches, struct fw_err *err);
/*
 * Can the rest match, as far as members other than summary and content tell? An entry for which
 * this is false need not be read.
 */
int sql_candidate_may(
	const struct sql_candidates *c, const struct query_subject *subject, bool *may, struct fw_err *err);

#endif
