/* SPDX-License-Identifier: ISC */
/*
 * Queued ingest: pushed events wait in bounded rings, and a thread flushes them into the store in
 * bulk.
 *
 *	producer thread i --(ring i)--> flusher thread --(bulk)--> store
 *
 * Each producer has a ring of fixed size. Putting an event takes no lock, allocates nothing and
 * makes no system call. Backpressure: a full ring refuses the event (FW_EAGAIN); a producer never
 * waits.
 *
 * The flusher owns the store connection. During an outage rows stay in the rings and the flusher
 * retries with backoff. Ids are unique, so a batch that is sent twice is stored once. The flusher
 * finds a row that the store refuses by halving the batch, stores it as a dead letter with the
 * reason, and goes on with the others.
 *
 * Two promises: accepted (in memory, and with wal_dir in a write-ahead log that the next start
 * replays), or durable (committed): fw_commit_wait.done reports it.
 */
#ifndef FEEDWHEEL_INGEST_H
#define FEEDWHEEL_INGEST_H

#include "feedwheel/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

struct fw_buf;
struct fw_ingest;
struct fw_producer; /* the side of one producer thread */

#define FW_PROPERTY_MAX 255 /* maximum length of an event's property, in bytes */

/*
 * A caller that waits for a commit. The caller owns it, and keeps it alive until done was called.
 */
struct fw_commit_wait {
	/*
	 * Called once, by the flusher thread. rc 0: all rows are committed. FW_EINVAL: the store
	 * refused some, which are dead letters now; why is the reason of one. FW_EAGAIN: the
	 * flusher was stopped before the store took them.
	 */
	void (*done)(struct fw_commit_wait *w, int rc, const char *why);
	/* private to the flusher */
	uint32_t left;
	int rc;
	char why[120];
};

/* Counters since fw_ingest_open(): a snapshot, each number consistent by itself. Times in us. */
#define FW_FLUSH_BUCKETS 12
struct fw_ingest_stats {
	/* rows accepted; publishes refused because the ring was full */
	uint64_t put_n, full_n;
	uint64_t stored_n, dead_letter_n; /* rows committed; dead letters */
	/* statements committed; statements that failed and are retried */
	uint64_t flush_n, retry_n;
	uint64_t clash_n; /* rows that got a new id, because another row had theirs */
	/* sums: elapsed time, and CPU time of this process in it */
	uint64_t flush_us, flush_cpu_us;
	uint64_t bucket[FW_FLUSH_BUCKETS]; /* flushes by duration: <= fw_flush_bucket_us[i] */
	size_t fill_bytes, ring_bytes;     /* in all rings; ring_bytes is fixed */
	size_t fill_max_bytes;             /* in the fullest ring */
	size_t producers;
	/* age of the oldest row that is not committed, in ms; 0: none */
	int64_t oldest_ms;
	bool unavailable; /* the last request to the store failed, or none has succeeded yet */
	/* the rows that an earlier process left in wal_dir are stored */
	bool replayed;
};
/* the last is UINT32_MAX; not exported */
extern const uint32_t fw_flush_bucket_us[FW_FLUSH_BUCKETS];

/*
 * Allocates one ring for each producer, of ring_bytes in total, and starts the flusher thread,
 * which opens the store, reserves ids for rows, and retries until that works. With wal_dir it waits
 * up to 3 s for the first attempt. c must outlive *out. Settings: ring_bytes, flush_ms,
 * flush_durable_ms, flush_rows, wal_dir, wal_sync_ms, store.
 * Errors: FW_ENOMEM; FW_EINVAL ring_bytes is too small for this many rings, or wal_dir cannot be
 * used; FW_EIO no thread or descriptor.
 */
FW_API FW_MUST_CHECK int fw_ingest_open(
	const struct fw_config *c, size_t producers, struct fw_ingest **out, struct fw_err *err);
/*
 * Stops the flusher. New drafts are refused (FW_EGONE at begin), so producers may still run.
 * Accepted rows are flushed; a store that does not respond is retried for at most
 * straggler_timeout_ms. Waiting callers get their result. Returns the number of rows that were not
 * stored; rows in the write-ahead log do not count.
 */
FW_API uint64_t fw_ingest_stop(struct fw_ingest *in, int64_t straggler_timeout_ms);
/* after fw_ingest_stop(), when no producer is left */
FW_API void fw_ingest_destroy(struct fw_ingest *in);
FW_API struct fw_producer *fw_ingest_producer(struct fw_ingest *in, size_t i);
FW_API void fw_ingest_stats(struct fw_ingest *in, struct fw_ingest_stats *out);

/*
 * One thread uses each producer. fw_ingest_begin() opens a draft. wait NULL: accepted is enough;
 * else the caller waits for the commit. fw_ingest_put() adds a row; its id is assigned here (e->id
 * is ignored), and remote_ip is a binary address of 0, 4 or 16 bytes. fw_ingest_publish() hands
 * over all rows of the draft. fw_ingest_discard() drops them, and done is not called.
 *
 * Errors: FW_EAGAIN the ring is full, the draft is dropped; FW_EGONE (begin) the flusher is
 * stopped; FW_ESTALE (put) the store has not answered yet, or not for hours, so a row for wal_dir
 * gets no id: the draft is dropped; FW_EIO (publish) the write to wal_dir failed, the draft is
 * dropped; FW_EINVAL (put)
 * property is longer than FW_PROPERTY_MAX, or remote_ip has another length: the draft stays.
 */
FW_API FW_MUST_CHECK int fw_ingest_begin(struct fw_producer *l, struct fw_commit_wait *wait);
FW_API FW_MUST_CHECK int fw_ingest_put(struct fw_producer *l, const struct fw_event *e);
FW_API FW_MUST_CHECK int fw_ingest_publish(struct fw_producer *l, struct fw_err *err);
FW_API void fw_ingest_discard(struct fw_producer *l);

/* ---- for the server and the command line: not exported ------------------- */

struct fw_ids;
/*
 * Store events. Those whose id another event has get new ids from a new range of ids, and their
 * number is added to *clash_n. Errors: those of fw_store_event_put(), but for FW_ECLASH.
 */
FW_MUST_CHECK int fw_event_ids_put(
	struct fw_store *st, struct fw_ids *ids, struct fw_event *e, size_t n, uint64_t *clash_n, struct fw_err *err);

/* Writes an event as the JSON of fw_dead_letter.row: the columns of table incoming. */
void fw_event_row_write(const struct fw_event *e, struct fw_buf *out);
/* Parses it back; strings in the arena. Errors: FW_EFORMAT; FW_ENOMEM. */
FW_MUST_CHECK int fw_event_row_parse(struct fw_str row, struct fw_arena *a, struct fw_event *out, struct fw_err *err);

#ifdef __cplusplus
}
#endif
#endif
