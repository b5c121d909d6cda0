/* SPDX-License-Identifier: ISC */
/*
 * The counters of a run, over all its processes: for /metrics and the progress line.
 *
 * They are in shared memory that the master allocates before it starts children, with a slot for
 * each process. They grow as long as the master lives: a replacement worker goes on with the counts
 * of the dead one. A reader sees each number consistent by itself; if it sees a visit in `visits`,
 * it also sees the visit's other counts.
 */
#ifndef FW_API_METER_H
#define FW_API_METER_H

#include <sys/types.h>

#include "feedwheel/engine.h"

struct fw_meter;

enum fw_count {
	FW_COUNT_ITEMS, /* entries in all parsed documents */
	FW_COUNT_NEW_ENTRIES,
	FW_COUNT_CHANGED_ENTRIES,
	/*
	 * deferred to a later day by feed_daily_entries_max or feed_daily_bytes_max; counted again
	 * at each visit
	 */
	FW_COUNT_DEFERRED_ENTRIES,
	FW_COUNT_WIRE_BYTES, /* bodies as received */
	FW_COUNT_BODY_BYTES, /* bodies decoded */
	FW_COUNT_REDIRECTS,  /* followed */
	FW_COUNT_STALE,      /* visits not stored because the worker had lost its lease */
	/* visits of a page that was replaced by its feed; not counted as visits of a feed */
	FW_COUNT_MOVED,
	/* redirect adoptions: feeds that took the URL of a permanent redirect */
	FW_COUNT_ADOPTED,
	FW_COUNT_MERGED,   /* merges: feeds that moved to the URL of another feed */
	FW_COUNT_CLAIMS,   /* feeds claimed */
	FW_COUNT_RELEASED, /* claimed and released without a visit */
	FW_COUNT_DEFERRED, /* due, but deferred by the limits of their host */
	FW_COUNT_OUTAGES,  /* outages of the store */
	FW_COUNT_RETRIES,  /* refused and retried requests to the store */
	FW_COUNT_INBOX,    /* rows of other programs that were taken, also those that were refused */
	FW_COUNT_N
};

enum fw_timing {
	/* delay of a visit after its due time; not of visits that a user requested */
	FW_TIMING_LATENESS,
	FW_TIMING_FETCH, /* from the request to the last byte */
	FW_TIMING_PARSE,
	FW_TIMING_CLAIM, /* claims, in the store */
	FW_TIMING_COMMIT,
	FW_TIMING_N
};

#define FW_METER_CLASSES 6 /* classes of HTTP status codes: [2] 2xx; [0] others */
#define FW_METER_BUCKETS 16

/* Upper bounds of the buckets in us, ascending; the last is INT64_MAX. n <= FW_METER_BUCKETS. */
const int64_t *fw_meter_bounds(enum fw_timing t, size_t *n);

struct fw_meter_sum {
	uint64_t visits[FW_VISIT_KIND_N];
	uint64_t responses[FW_METER_CLASSES];
	uint64_t count[FW_COUNT_N];
	/* buckets are not cumulative */
	struct {
		uint64_t bucket[FW_METER_BUCKETS], sum_us;
	} timing[FW_TIMING_N];
	uint64_t in_flight, slots; /* current transfers; their maximum */
	/* workers whose connectivity is down: no host responds to them */
	uint64_t offline;
	uint64_t unavailable; /* workers whose store is unavailable */
	uint64_t disk_low;    /* workers that wait for disk space (disk_free_min_bytes) */
	uint64_t worker_restarts, server_restarts;
	uint32_t workers, alive; /* configured; running */
	int64_t started_ms;      /* start of the master */
};
void fw_meter_read(const struct fw_meter *m, struct fw_meter_sum *out);

/* Writes the server's heartbeat for its master; call it periodically. */
void fw_meter_heartbeat(struct fw_meter *m);

struct fw_meter_process {
	const char *what; /* "master", "worker", "server" */
	int index;        /* number among these */
	pid_t pid;
	int64_t rss_bytes, cpu_ms; /* -1: not available, or the process has just started */
};
/*
 * The i-th process: master, workers, server. False: there is none, or it is not running (pid is 0).
 */
bool fw_meter_process(const struct fw_meter *m, size_t i, struct fw_meter_process *out);
size_t fw_meter_process_n(const struct fw_meter *m);

#endif
