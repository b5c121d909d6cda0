/* SPDX-License-Identifier: ISC */
/*
 * Private to the store thread. store_thread.c: its life (outages, control messages, maintenance,
 * waiting). commits.c: outcomes into the store. inbox.c: rows of other programs. once.c: a run
 * --once. Claims are the owner's (owner.h). Other threads meet it only through channel.h.
 */
#ifndef FW_ENGINE_STORE_THREAD_H
#define FW_ENGINE_STORE_THREAD_H

#include "engine/run/channel.h"
#include "engine/run/maintenance.h"
#include "api/store_link.h"

struct store_thread {
	struct channel *ch;
	struct fw_store *st;
	struct owner *owner;        /* the same as ch->owner */
	struct visit **batch;       /* visits of the next commit */
	struct claim **claim;       /* their claims */
	struct fw_outcome *outcome; /* their outcomes, as an array for the store */
	size_t n, bytes;
	bool commit_now;        /* a person waits for one of them: commit at once */
	int64_t batch_since_ms; /* monotonic; when the oldest visit joined the batch */
	int64_t step_at_ms;     /* monotonic; the owner's next step */
	int64_t claim_at_ms;    /* monotonic; no claim before this time */
	bool changed;           /* the store reported changes for the owner */
	int64_t newest_id;      /* id of the newest control message when this worker started */
	int64_t control_at_ms, heartbeat_at_ms, started_ms;
	bool control_more; /* more messages than one step handles */
	/* the worker whose successor this one is: older messages to it are for this one */
	char predecessor[FW_WORKER_NAME_MAX];
	int64_t inbox_at_ms;   /* monotonic; the next look for rows of other programs */
	int64_t inbox_warn_ms; /* monotonic; no warning of such rows before */
	bool inbox_more;       /* rows wait */
	size_t inbox_batch;    /* rows that one step takes */
	bool clock_wrong;      /* fw_clock_watch() */
	struct store_link link;
	bool is_out; /* the outage was counted */
	/* monotonic; when the loop handed over its last visit; 0: not yet */
	int64_t last_since_ms;
	/* monotonic; the store's disk is full since (0: it is not); time of the next check */
	int64_t full_since_ms, room_at_ms;
	struct fw_err full_err;
	bool once_over, index_more;
	bool sender_finishes; /* run --once: the sender was told to finish */
	/* run --once: feeds due at other workers; monotonic: unchanged since, next check */
	int64_t others_n, others_ms, others_check_at_ms;
	/* monotonic; end of a run --once, last index step, next pruning */
	int64_t once_over_ms, index_at_ms, prune_at_ms;
	struct maintenance maintenance;
	struct fw_plan_bounds *bounds; /* run --once: lower bounds of the measured time */
	int64_t next_due_at_ms;        /* monotonic; next query for the next due time */
	uint64_t visits, new_entries_n, failures;
};

/* ---- store_thread.c -------------------------------------------------------------------------- */
FW_MUST_CHECK int store_thread_init(struct store_thread *s, struct channel *ch); /* FW_ENOMEM */
void store_thread_finish(struct store_thread *s);
/*
 * Open the store and pass it to the owner. Returns WORKER_DONE, or why it failed, with the error
 * text in shared->err.
 */
int store_thread_open(struct store_thread *s);
/*
 * One round of the thread's work. STORE_SLEEP: nothing more to do for store_thread_wait_ms(),
 * unless it is woken. STORE_END: *code is the worker's exit code.
 */
enum store_next { STORE_GO_ON, STORE_SLEEP, STORE_END };
enum store_next store_thread_step(struct store_thread *s, int *code);
int64_t store_thread_wait_ms(const struct store_thread *s, int64_t mono_ms);
/* A call failed: it is retried later, with backoff. */
void store_outage(struct store_thread *s, int rc, const struct fw_err *err);
/* The store works again. */
void store_outage_over(struct store_thread *s);

/* ---- commits.c ------------------------------------------------------------------------------- */
/* Take the visits that the loop handed over: into the batch, or back to the owner. */
void commits_receive(struct store_thread *s);
bool commits_due(const struct store_thread *s, int64_t mono_ms);
/* Commit the batch. After a passing error it is kept. */
void commits_store(struct store_thread *s);

/* ---- inbox.c --------------------------------------------------------------------------------- */
/* Take the rows of control, if that is due, and look whether addresses wait. */
void inbox_take_control(struct store_thread *s, int64_t mono_ms);
/* Take a batch of addresses, if some wait and no commit is due. */
void inbox_take_feeds(struct store_thread *s, int64_t mono_ms);
/* Do addresses wait that this worker may take now? */
bool inbox_is_due(const struct store_thread *s);
/* At the start: take all rows of control; `feeds`: and all addresses. */
FW_MUST_CHECK int inbox_take_all(struct store_thread *s, bool feeds, struct fw_err *err);

/* ---- once.c ---------------------------------------------------------------------------------- */
/* The first worker counts what is due and makes the forecast. */
FW_MUST_CHECK int once_begin(struct store_thread *s, struct fw_err *err);
/*
 * Is the run complete? On the first call that finds it complete: record the measured time and
 * return true, so that maintenance runs before the end.
 */
bool once_is_finished(struct store_thread *s);

#endif
