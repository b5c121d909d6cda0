/* SPDX-License-Identifier: ISC */
/*
 * Queued ingest: what is pushed waits in bounded rings and is flushed into the store in bulk.
 *
 *	producer thread i --(ring i)--> flusher thread --(bulk)--> store
 *
 * Each producer has a lane of its own, with a ring of fixed size: putting an event takes no lock, no memory and no system call. When the
 * ring is full the answer is "not now" (FW_EAGAIN), never a wait. The flusher owns the store. While the store is away the rows stay in
 * the rings; it is asked again with growing pauses, and what it took twice it holds once, because ids are unique. A row that the
 * store refuses is found by halving and set aside with the reason; the others go on.
 *
 * Two promises: accepted (it is in memory, and with spill_dir in a file, read again at the next start), or durable (it is committed): the flusher says when.
 */
#ifndef FEEDWHEEL_INGEST_H
#define FEEDWHEEL_INGEST_H

#include "feedwheel/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

struct fw_buf;
struct fw_ingest;
struct fw_lane_in; /* one producer thread's side */

#define FW_PROPERTY_MAX 255 /* bytes of an event's property */

/* Somebody who waits for a commit. The caller's, alive until done was called. */
struct fw_push_wait {
	/*
	 * From the flusher thread, once: rc 0 all rows are committed; FW_EINVAL the store refused some: they were set aside, why says the
	 * reason of one; FW_EAGAIN it was stopped and the store did not take them in time.
	 */
	void (*done)(struct fw_push_wait *w, int rc, const char *why);
	/* the flusher's */
	uint32_t left;
	int rc;
	char why[120];
};

/* Counters since it was opened; a snapshot, each right by itself. Times in microseconds. */
#define FW_FLUSH_BUCKETS 12
struct fw_ingest_stats {
	uint64_t put_n, full_n;           /* rows accepted; publishes refused for want of room */
	uint64_t stored_n, dead_n;        /* rows committed, set aside */
	uint64_t flush_n, retry_n;        /* statements that were committed; that failed for a passing reason */
	uint64_t flush_us, flush_cpu_us;  /* sums: time, and this process' processor time of it */
	uint64_t bucket[FW_FLUSH_BUCKETS]; /* of flushes by time: <= fw_flush_bucket_us[i] */
	size_t fill_bytes, ring_bytes;    /* of all rings; ring_bytes is fixed */
	size_t fullest_bytes;             /* of the fullest ring */
	size_t lanes;
	int64_t oldest_ms;                /* age of the oldest row that is not committed; 0: none */
	bool away;                        /* the store did not answer last time */
	bool replayed;                    /* what an earlier process left in spill_dir is stored */
};
extern const uint32_t fw_flush_bucket_us[FW_FLUSH_BUCKETS]; /* the last is UINT32_MAX: all others; not visible outside */

/*
 * Rings of ring_bytes in all (config), evenly divided among lanes, and the flusher's thread. The store is opened by that thread, again
 * and again until it answers. Settings: ring_bytes, flush_ms, flush_durable_ms, flush_rows, machine_id, store.
 * Errors: FW_ENOMEM; FW_EINVAL ring_bytes is too small for so many lanes; FW_EIO no thread.
 */
FW_API FW_MUST_CHECK int fw_ingest_open(const struct fw_config *c, size_t lanes, struct fw_ingest **out, struct fw_err *err);
/*
 * From now on nothing more is taken. What is there is flushed, for at most patience_ms of a store that does not answer; who waits is
 * told. Returns the number of rows that could not be stored. Producers may still be running: begin tells them.
 */
FW_API uint64_t fw_ingest_stop(struct fw_ingest *in, int64_t patience_ms);
FW_API void fw_ingest_destroy(struct fw_ingest *in); /* stopped, and no producer is left */
FW_API struct fw_lane_in *fw_ingest_lane(struct fw_ingest *in, size_t i);
FW_API void fw_ingest_stats(struct fw_ingest *in, struct fw_ingest_stats *out);

/*
 * One producer thread per lane: begin, put, put, ..., publish (or forget). begin: wait NULL: accepted is enough; else durable. put drafts a
 * row: its id is given here (e->id is not looked at), remote_ip is a binary address of 0, 4 or 16 bytes. publish hands over all rows
 * since begin. forget drops them, and nobody is told.
 * Errors: FW_EAGAIN the ring is full: nothing of the draft is left; FW_EGONE (begin) it was stopped;
 * FW_EIO (publish) it could not be written into spill_dir, and nothing of the draft is left; FW_EINVAL (put) property is longer than
 * FW_PROPERTY_MAX: the draft stays.
 */
FW_API FW_MUST_CHECK int fw_ingest_begin(struct fw_lane_in *l, struct fw_push_wait *wait);
FW_API FW_MUST_CHECK int fw_ingest_put(struct fw_lane_in *l, const struct fw_event *e);
FW_API FW_MUST_CHECK int fw_ingest_publish(struct fw_lane_in *l, struct fw_err *err);
FW_API void fw_ingest_forget(struct fw_lane_in *l);

/* ---- for our own doors: not visible outside ---------------------------------------------------------------------------- */

/* An event as the JSON that fw_dead_event.row is: the columns of table incoming. */
void fw_event_row(const struct fw_event *e, struct fw_buf *out);
/* And back; texts in the arena. Errors: FW_EFORMAT; FW_ENOMEM. */
FW_MUST_CHECK int fw_event_of_row(struct fw_str row, struct fw_arena *a, struct fw_event *out, struct fw_err *err);

#ifdef __cplusplus
}
#endif
#endif
