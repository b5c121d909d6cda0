/* SPDX-License-Identifier: ISC */
/*
 * A set of orders, that is of queries with a number, and which of them an entry matches: the same
 * as query_matches() for each, but at a cost that grows with the matches. Each order is found by
 * the rarest thing that it requires of an entry: a word, the start of one, a host, a feed, a
 * folder. Orders that require nothing (they only exclude, or look into a URL) are checked for each
 * entry.
 *
 *	set = match_set_create();
 *	for each order: match_set_add(set, number, query)
 *	for some entries, if there are: match_set_learn(set, entry)
 *	match_set_finish(set)
 *	for each entry: match_set_run(set, entry, on_match, ctx)
 *
 * A set uses its memory when it runs: one thread at a time.
 */
#ifndef FW_QUERY_MATCH_H
#define FW_QUERY_MATCH_H

#include "query/query.h"

struct match_set;

struct match_set *match_set_create(void);      /* NULL: out of memory */
void match_set_destroy(struct match_set *set); /* may be NULL */
/*
 * Add an order. The query is not kept; NULL matches everything. Two orders may have the same
 * number. FW_ENOMEM; FW_ELIMIT: too many orders. Then the set is as it was.
 */
FW_MUST_CHECK int match_set_add(
	struct match_set *set, uint64_t number, const struct query_node *query, struct fw_err *err);
/*
 * Count what an entry has of what orders look for, so that the set knows what is rare. Some hundred
 * entries are enough; without any the orders themselves tell.
 */
void match_set_learn(struct match_set *set, struct query_scratch *entry);
/* No order is added after this. FW_ENOMEM. */
FW_MUST_CHECK int match_set_finish(struct match_set *set, struct fw_err *err);

/* Not 0: stop, and match_set_run() returns it. */
typedef int match_cb(void *ctx, uint64_t number);
/*
 * Call on_match for each order that the scratch's entry matches, once each, in no order. FW_ENOMEM:
 * some may be missing.
 */
FW_MUST_CHECK int match_set_run(struct match_set *set, struct query_scratch *entry, match_cb *on_match, void *ctx);

size_t match_set_bytes(const struct match_set *set); /* memory, once finished */
/* Orders that were looked at since it was created: a measure of cost that no machine changes. */
uint64_t match_set_checked_n(const struct match_set *set);

#endif
