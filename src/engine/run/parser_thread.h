/* SPDX-License-Identifier: ISC */
/*
 * The parser thread decodes and parses large documents and makes rows of them, one at a time, in
 * order of arrival. It is one of libuv's thread pool. The loop thread meanwhile continues with
 * small documents.
 *
 * Memory: parse_memory_bytes bounds the documents that are being read or wait for their commit. The
 * next one starts when its own ceiling fits beside them. Documents in the queue stay coded as
 * received, and count in the fetcher's max_buffered_bytes.
 *
 * Threads: the loop thread calls all functions.
 */
#ifndef FW_ENGINE_PARSER_THREAD_H
#define FW_ENGINE_PARSER_THREAD_H

#include <uv.h>

#include "engine/run/visit.h"
#include "engine/run/worker.h"

#define PARSER_LARGE_BYTES ((size_t)256 << 10) /* a longer document, decoded, is large */

struct parser_thread {
	uv_loop_t *loop;
	struct fw_fetcher *fetcher;
	const struct visit_rules *rules;
	const struct fw_config *config; /* for the store's time */
	struct worker_shared *shared;
	/* called when the visit is read; visit_conclude() follows */
	void (*done)(struct visit *v);
	uv_work_t work;
	struct visit *first, **end; /* the queue; the first one is being read if busy */
	bool busy;                  /* the first visit is being read */
	bool closed;
	size_t n;           /* visits in the queue */
	size_t coded_bytes; /* bytes of the visits that are still coded */
	size_t held_bytes;  /* bytes of the visits that are read but not stored */
	size_t room;        /* memory left for the visit that is being read */
	/*
	 * memory that it needs, if more than room: it was only decoded, and waits; 0: it was read
	 */
	size_t need;
	/* monotonic; when reading began; 0: nothing is being read */
	int64_t since_ms;
};

void parser_thread_init(struct parser_thread *r);
/*
 * Queue a visit whose fetch has ended with a coded body. `done` returns it, always from the loop.
 */
void parser_thread_push(struct parser_thread *r, struct visit *v);
/* The visit's outcome goes to the store: count its held_bytes. */
void parser_thread_hold(struct parser_thread *r, const struct visit *v);
/* The visit was stored: stop counting it. */
void parser_thread_release(struct parser_thread *r, const struct visit *v);
/*
 * Take a waiting visit out of the queue, unread. NULL: none is left, except the one that is being
 * read.
 */
struct visit *parser_thread_take_back(struct parser_thread *r);
/*
 * Start no more visits and do not call `done`; queued visits stay as they are. The loop runs on
 * until the current one is read.
 */
void parser_thread_close(struct parser_thread *r);

/*
 * The calling thread reads this visit's document. If the process is killed before reading_end(),
 * the feed is charged.
 */
void reading_begin(struct worker_shared *shared, const struct visit *v);
void reading_end(struct worker_shared *shared, const struct visit *v);
/*
 * From now on, a fatal signal records which document the crashed thread was reading. Errors:
 * FW_EIO.
 */
FW_MUST_CHECK int reading_catch_crashes(struct worker_shared *shared, struct fw_err *err);

#endif
