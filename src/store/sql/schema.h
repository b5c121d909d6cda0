/* SPDX-License-Identifier: ISC */
/*
 * The tables of all SQL engines, once (schema.c). Described for people in feedwheel-store(7).
 *
 * A feed's number is for people, and never used again. Where its row of the schedule lies is its
 * place: its shard in the upper bits, its number in the lower ones. So a shard's rows lie together,
 * and what a worker reads and writes of them are few pages. Its place changes with its host. All
 * else of a feed lies by its number: first visits are made in that order, and write the most.
 *
 *   schedule    what each visit writes, and nothing else: a row stays narrow, and where it lies. No
 *               index but the place: the owner of a shard reads it whole when its version has risen
 *   feeds       the rest of a feed, and its place: written when it changes
 *   entry_keys  each key that a feed ever had, together for each feed, so that a document that
 *               brings nothing new touches no entry; entry_id 0: retention took it
 *   visits      each names the feed's visit before it, and the schedule the last one: a chain, so
 *               that a visit dirties no page of an index in which it is anywhere
 *   tally       how many entries and visits there are: a row for each commit, added up by
 *               maintenance, so that commits share no row. Its number is in its visits' numbers
 *   numbers     schema, lease_id, feed_id and entry_id (the last ones given), indexed_entry_id,
 *               changes
 */
#ifndef FW_STORE_SQL_SCHEMA_H
#define FW_STORE_SQL_SCHEMA_H

#include "store/sql/sql.h"

#define SQL_SCHEMA 1
#define SQL_PLACE_BITS 53
#define SQL_VISIT_BITS 10 /* of a visit's number that count within its commit's row of the tally */

static inline int64_t sql_place(int shard, int64_t feed_id)
{
	return (int64_t)((uint64_t)shard << SQL_PLACE_BITS | (uint64_t)feed_id);
}

static inline int64_t sql_place_feed(int64_t place)
{
	return place & ((INT64_C(1) << SQL_PLACE_BITS) - 1);
}

/*
 * Of what version are the tables? ours: there is a table `numbers`, and where there is not:
 * *version 0, nothing is there. FW_EVERSION, FW_EINVAL (another program's).
 */
int sql_schema_look(struct sql *s, bool ours, int64_t *version, struct fw_err *err);
/* Make the tables. search: what the dialect makes besides, ended by NULL. */
int sql_schema_make(struct sql *s, const char *const *search, struct fw_err *err);

#endif
