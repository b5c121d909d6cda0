/* SPDX-License-Identifier: ISC */
/*
 * Shared by the command line and the HTTP server: the JSON of a feed, a visit and an entry, the
 * same for --json and HTTP (it never contains passwords), and the effects of an owner's change of a
 * feed.
 */
#ifndef FW_API_VIEW_H
#define FW_API_VIEW_H

#include "feedwheel/store.h"

struct fw_buf;
struct fw_json;

/* "new", "ok", "failing", or its status: "paused", "gone", "quarantined". */
const char *fw_feed_state(const struct fw_feed *f);
void fw_feed_json(struct fw_json *j, const char *key, const struct fw_feed *f);
void fw_visit_json(struct fw_json *j, const char *key, const struct fw_visit *v);

/*
 * Transfers in flight on all machines, from the workers' heartbeats of the last 15 s, without
 * workers that are known to be dead.
 */
FW_MUST_CHECK int fw_in_flight(struct fw_store *st, int64_t now_ms, int64_t *n, struct fw_err *err);

/* True if the document has this date. */
static inline bool fw_date_known(int64_t ms)
{
	return ms != FW_NO_DATE && ms != 0;
}

enum {
	FW_VIEW_CONTENT = 1, /* with sanitised content; the store has the original */
	FW_VIEW_RAW = 2,     /* with FW_VIEW_CONTENT: the original */
};
/*
 * Writes an item of JSON Feed 1.1, with our own members under "_store"; a snippet that was read is
 * HTML there, its matches in <mark>. If the content cannot be
 * sanitised, the item is complete except for the content. Errors: those of fw_sanitize(), with the
 * entry's id.
 */
FW_MUST_CHECK int fw_entry_json(struct fw_json *j, const struct fw_entry_row *r, unsigned flags, struct fw_err *err);

/* Members of a search result that may miss unindexed entries; none if unindexed_n is 0. */
void fw_incomplete_json(struct fw_json *j, int64_t unindexed_n);

/* A cache of sanitised contents. Any thread. */
struct fw_view_cache;
struct fw_view_cache *fw_view_cache_create(size_t max_bytes); /* NULL: out of memory */
void fw_view_cache_destroy(struct fw_view_cache *c);          /* NULL is allowed */

struct fw_view_work {
	struct fw_view_cache *cache; /* NULL: no cache */
	/* added to: bytes of contents that were sanitised, and the CPU time that it took */
	size_t bytes;
	int64_t cpu_us;
};
/* The same, with a cache and accounting. */
FW_MUST_CHECK int fw_entry_json_work(
	struct fw_json *j, const struct fw_entry_row *r, unsigned flags, struct fw_view_work *work, struct fw_err *err);

/*
 * Appends the entry's content as HTML that is safe to show: sanitised; plain text is escaped. An
 * entry without content adds nothing. Errors: those of fw_sanitize(), with the entry's id; out->rc.
 */
FW_MUST_CHECK int fw_entry_html(
	const struct fw_entry_row *r, struct fw_view_work *work, struct fw_buf *out, struct fw_err *err);

/*
 * Changes the members `what` (FW_SET_*) of a feed from *now to *to. A new interval counts from the
 * last visit, so the feed may become due earlier. Errors: those of fw_store_feed_set().
 */
FW_MUST_CHECK int fw_feed_update(struct fw_store *st, const struct fw_feed *now, const struct fw_feed *to,
	unsigned what, int64_t now_ms, struct fw_err *err);

#endif
