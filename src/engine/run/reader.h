/* SPDX-License-Identifier: ISC */
/*
 * Large documents are read beside the loop: one at a time, on a thread of libuv's, in the order in which they came. Decoded, parsed and made
 * into rows there; all else is the loop's, which so goes on with the small ones.
 *
 * What they take together, while they are read and until they are stored, is bounded by parse_memory_bytes: the next one begins when its own
 * ceiling fits beside what the others hold. Those that wait are coded as they came, and count in the fetcher's max_buffered_bytes.
 *
 * All functions are the loop's.
 */
#ifndef FW_ENGINE_READER_H
#define FW_ENGINE_READER_H

#include <uv.h>

#include "engine/run/visit.h"
#include "engine/run/worker.h"

#define READER_LARGE_BYTES ((size_t)256 << 10) /* decoded: what is longer is large */

struct reader {
	uv_loop_t *loop;
	struct fw_fetcher *fetcher;
	const struct visit_rules *rules;
	struct worker_shared *shared;
	void (*done)(struct visit *v);  /* it was read; visit_conclude() is still to come */
	uv_work_t work;
	struct visit *first, **end;     /* waiting, and the one that is read first of all */
	bool busy;                      /* that one is being read */
	bool closed;
	size_t n;                       /* of them */
	size_t coded_bytes;             /* of those that are coded yet */
	size_t held_bytes;              /* of those that were read and are not stored yet */
	size_t room;                    /* what is left for the one that is read */
	size_t need;                    /* more than that it needs, so it was decoded only and waits; 0: it was read */
	int64_t since_ms;               /* monotonic: it is being read since then; 0: none is */
};

void reader_init(struct reader *r);
/* Take over a visit whose fetch has ended with a coded body; done gets it back, always from the loop. */
void reader_put(struct reader *r, struct visit *v);
/* The outcome of one that was read goes to the store; its held_bytes count until it comes back. */
void reader_hold(struct reader *r, const struct visit *v);
void reader_spent(struct reader *r, const struct visit *v);
/* Those that wait, one after another: they are the caller's again, unread. NULL: none is left but one that is being read. */
struct visit *reader_take_back(struct reader *r);
/* Nothing is begun any more, and done not called: its visits stay as they are. The loop runs on until the last is read. */
void reader_close(struct reader *r);

/* The thread that calls this reads what this visit fetched. What kills the process meanwhile is laid at its feed's door. */
void reading_begin(struct worker_shared *shared, const struct visit *v);
void reading_end(struct worker_shared *shared, const struct visit *v);
/* From now on a signal that kills this process tells what the thread was reading that it struck. Errors: FW_EIO. */
FW_MUST_CHECK int reading_watch(struct worker_shared *shared, struct fw_err *err);

#endif
