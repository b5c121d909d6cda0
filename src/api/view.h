/* SPDX-License-Identifier: ISC */
/*
 * What the doors share: a feed, a visit and an entry as scripts see them, one JSON for each, the same on the command line (--json) and over
 * HTTP (passwords are never among it); and what an owner's change of a feed means.
 */
#ifndef FW_API_VIEW_H
#define FW_API_VIEW_H

#include "feedwheel/store.h"

struct fw_json;

/* "new", "ok", "failing", or what its status says: "paused", "gone", "quarantined". */
const char *fw_feed_state(const struct fw_feed *f);
void fw_feed_json(struct fw_json *j, const char *key, const struct fw_feed *f);
void fw_visit_json(struct fw_json *j, const char *key, const struct fw_visit *v);

/* Transfers under way on all machines, as their workers said within the last 15 s; not of those that are known to be dead. */
FW_MUST_CHECK int fw_in_flight(struct fw_store *st, int64_t now_ms, int64_t *n, struct fw_err *err);

/* Does the document tell this date? */
static inline bool fw_date_known(int64_t ms)
{
	return ms != FW_NO_DATE && ms != 0;
}

enum {
	FW_VIEW_CONTENT = 1, /* made safe: contents are stored as they came */
	FW_VIEW_RAW = 2,     /* with FW_VIEW_CONTENT: as it came */
};
/*
 * An item of JSON Feed 1.1, our own members under "_store". Content that cannot be made safe is left out: then the item is whole but
 * for that. Errors: those of fw_sanitize(), with the entry's number.
 */
FW_MUST_CHECK int fw_entry_json(struct fw_json *j, const struct fw_entry_row *r, unsigned flags, struct fw_err *err);

/* Members of a search's answer that does not see all entries; none when unindexed_n is 0. */
void fw_incomplete_json(struct fw_json *j, int64_t unindexed_n);

/* Contents that were made safe, so that it is not done at every read. Any thread. */
struct fw_view_cache;
struct fw_view_cache *fw_view_cache_new(size_t max_bytes); /* NULL: out of memory */
void fw_view_cache_free(struct fw_view_cache *c); /* NULL is fine */

struct fw_view_work {
	struct fw_view_cache *cache; /* NULL: none */
	size_t bytes;                /* of contents that had to be made safe, and the processor's time that it took: added to */
	int64_t cpu_us;
};
/* The same, with a cache, and an account of the work. */
FW_MUST_CHECK int fw_entry_json_work(struct fw_json *j, const struct fw_entry_row *r, unsigned flags, struct fw_view_work *work,
	struct fw_err *err);

/*
 * Change `what` (FW_SET_*) of the feed that is now so, to members of *to. A new interval counts from the last visit, so the feed may come
 * due earlier. Errors: those of fw_store_feed_set().
 */
FW_MUST_CHECK int fw_feed_change(struct fw_store *st, const struct fw_feed *now, const struct fw_feed *to, unsigned what, int64_t now_ms,
	struct fw_err *err);

#endif
