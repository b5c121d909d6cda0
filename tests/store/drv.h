/* SPDX-License-Identifier: ISC */
/*
 * Calls of a driver's slots (src/store/driver.h); the test fails if the slot fails. i is an index
 * into under_test[]. A store opened by the front works too: store_of().
 *
 * A pointer returned by a function here is valid until its next call; a feed for 15 calls more.
 */
#ifndef TEST_STORE_DRV_H
#define TEST_STORE_DRV_H

#include "common.h"
#include "store/driver.h"

#define LONG_MS 600000 /* a lease that does not expire during a test */

extern struct fw_err drv_err; /* the error of the last call */

#define DONE(call)                                                              \
	do {                                                                    \
		int rc_ = (call);                                               \
		ck_assert_msg(rc_ == 0, "%s: %d %s", #call, rc_, drv_err.text); \
	} while (0)
/* The call fails with this code and sets a message. */
#define FAILS(call, code)                                                                            \
	do {                                                                                         \
		int rc_;                                                                             \
		drv_err.text[0] = '\0';                                                              \
		rc_ = (call);                                                                        \
		ck_assert_msg(rc_ == (code), "%s: %d, not %s: %s", #call, rc_, #code, drv_err.text); \
		ck_assert_msg(drv_err.text[0], "%s: %s without a word", #call, #code);               \
	} while (0)

/* ---- stores ---------------------------------------------------------------------------------- */

const struct store_driver *drv_driver(int i);
const char *drv_url(int i); /* the URL of a store that does not exist yet */
struct store *drv_open(int i, const char *url, unsigned flags);
struct store *drv_fresh(int i);
/* True if the driver uses src/store/sql: for faults that only SQL can cause from outside. */
bool drv_is_sql(int i);
void drv_index(struct store *st); /* completes the search index */
void drv_clean(struct store *st); /* the deep check finds nothing */
void drv_end(struct store *st);   /* then closes the store */
int64_t drv_clock(struct store *st);
/*
 * A hash of all feeds, entries, visits, hosts and figures. Two equal hashes: nothing was written in
 * between.
 */
uint64_t drv_print(struct store *st);

/* ---- leases ---------------------------------------------------------------------------------- */

/* The caller owns the lease: free() or drv_leave(). */
struct store_lease *drv_join(struct store *st, const char *worker, int64_t lease_ms);
void drv_heartbeat(struct store *st, const char *worker, struct store_lease *l);
void drv_give(struct store *st, const struct store_lease *l, size_t from, size_t n);
/* Sends a heartbeat, and gives back the shards beyond its part. */
void drv_share(struct store *st, const char *worker, struct store_lease *l);
void drv_leave(struct store *st, struct store_lease *l); /* frees the lease */
void drv_reap(struct store *st, const char *worker, int64_t crashed_feed_id);
/* NULL: this lease does not hold it. */
const struct store_shard *drv_shard(const struct store_lease *l, int shard);
/* Sends a heartbeat of this worker and returns the shard's version. */
int64_t drv_version(struct store *st, struct store_lease *l, int shard);

/* ---- feeds ----------------------------------------------------------------------------------- */

int64_t drv_feed(struct store *st, const char *url, int64_t due_at_ms);
/* Adds "https://HOST/0" ... in one load; ids[n]. */
void drv_feeds(struct store *st, const char *host, int n, int64_t due_at_ms, int64_t *id);
const struct fw_feed *drv_find(struct store *st, int64_t id);
bool drv_is(struct store *st, int64_t id); /* true if the feed exists */
/* All slots that take a feed's id say that this one does not exist; existing: one that does. */
void drv_is_unknown(struct store *st, int64_t id, int64_t existing);

struct drv_due {
	struct store_due *due;
	struct store_host *host;
	size_t n, host_n;
};
/* What is due at that time in one shard, or in all (-1). */
const struct drv_due *drv_due(struct store *st, int shard, int64_t until_ms);
/* The feed's row of that list; NULL: it is never due. */
const struct store_due *drv_due_of(struct store *st, int64_t feed_id);
/* The host's row; NULL: it has none. */
const struct store_host *drv_host(struct store *st, int64_t host_id);

/* ---- commits --------------------------------------------------------------------------------- */

/*
 * A successful visit, next due at that time. *f becomes the feed's next state; its strings live for
 * 15 more calls of drv_find().
 */
struct fw_outcome drv_outcome(struct store *st, int64_t feed_id, struct fw_feed *f, int64_t due_at_ms);
struct fw_outcome drv_push(int64_t feed_id, struct fw_feed *f, struct fw_entry_row *e, size_t n);
/* Returns the slot's code: it may fail. */
int drv_commit(struct store *st, int64_t lease_id, struct fw_outcome *o, size_t n);
int drv_visits(struct store *st, int64_t feed_id);
int drv_entries(struct store *st, int64_t feed_id); /* 0: of all feeds */

#endif
