/* SPDX-License-Identifier: ISC */
/*
 * What a run counts, over all its processes: for /metrics, and for the progress line.
 *
 * The numbers lie in memory that the master makes before it forks, with a part of its own for each process. They rise as long as the
 * master lives: a worker that takes a dead one's place goes on where that one stopped. Whoever reads sees each number right by itself;
 * what belongs to a visit that is seen in `visits` is seen too.
 */
#ifndef FW_API_METER_H
#define FW_API_METER_H

#include <sys/types.h>

#include "feedwheel/engine.h"

struct fw_meter;

enum fw_count {
	FW_COUNT_ITEMS,           /* in the documents that were read */
	FW_COUNT_NEW_ENTRIES,
	FW_COUNT_CHANGED_ENTRIES,
	FW_COUNT_LEFT_ENTRIES,    /* for a later day, by feed_entries_max and feed_bytes_max; again with each visit */
	FW_COUNT_WIRE_BYTES,      /* bodies as they came */
	FW_COUNT_BODY_BYTES,      /* and decoded */
	FW_COUNT_REDIRECTS,       /* followed */
	FW_COUNT_STALE,           /* visits whose worker had lost its lease: nothing was written */
	FW_COUNT_MOVED,           /* visits of a page whose feed took its place: no visits of a feed */
	FW_COUNT_ADOPTED,         /* feeds whose permanent redirect became their address */
	FW_COUNT_MERGED,          /* feeds that became one with another, whose address they moved to */
	FW_COUNT_CLAIMS,          /* feeds claimed */
	FW_COUNT_RELEASED,        /* claimed, and given back unvisited */
	FW_COUNT_DEFERRED,        /* due, but put off for their host's sake */
	FW_COUNT_OUTAGES,         /* times that the store went away */
	FW_COUNT_RETRIES,         /* times that it said no */
	FW_COUNT_N
};

enum fw_timing {
	FW_TIMING_LATENESS,       /* of a visit, against its due time; not of those that a person asked for */
	FW_TIMING_FETCH,          /* from the request to the last byte */
	FW_TIMING_PARSE,
	FW_TIMING_CLAIM,          /* of the store */
	FW_TIMING_COMMIT,
	FW_TIMING_N
};

#define FW_METER_CLASSES 6    /* of HTTP status codes: [2] 2xx; [0] others */
#define FW_METER_BUCKETS 16

/* Upper ends in microseconds, ascending; the last is INT64_MAX. n <= FW_METER_BUCKETS. */
const int64_t *fw_meter_bounds(enum fw_timing t, size_t *n);

struct fw_meter_sum {
	uint64_t visits[FW_VISIT_KIND_N];
	uint64_t answers[FW_METER_CLASSES];
	uint64_t count[FW_COUNT_N];
	struct { uint64_t bucket[FW_METER_BUCKETS], sum_us; } timing[FW_TIMING_N]; /* bucket: each by itself, not all below it */
	uint64_t in_flight, slots;      /* transfers now; at most */
	uint64_t offline;               /* workers that none of the hosts they asked answers: our own network seems to be down */
	uint64_t away;                  /* workers that the store does not answer */
	uint64_t disk_low;              /* workers that wait for room on the store's disk (disk_free_min_bytes) */
	uint64_t worker_restarts, server_restarts;
	uint32_t workers, alive;        /* wanted; running now */
	int64_t started_ms;             /* the master */
};
void fw_meter_read(const struct fw_meter *m, struct fw_meter_sum *out);

/* The server's sign of life, to its master: it is up, and goes on. Now and then. */
void fw_meter_beat(struct fw_meter *m);

struct fw_meter_process {
	const char *what;               /* "master", "worker", "server" */
	int index;                      /* among those */
	pid_t pid;
	int64_t rss_bytes, cpu_ms;      /* -1: this system does not say, or the process has only just begun */
};
/* The i-th process, in that order; false: there is none with that number, or it is not running just now (pid is 0 then). */
bool fw_meter_process(const struct fw_meter *m, size_t i, struct fw_meter_process *out);
size_t fw_meter_process_n(const struct fw_meter *m);

#endif
