/* SPDX-License-Identifier: ISC */
/*
 * The owner of some shards of the schedule. It holds the worker's lease, the due set of its shards
 * (due_set.h) and the claimed feeds with their state, and it commits the outcomes of visits. One
 * owner runs in the store thread of each worker. It is the only part of the worker that knows
 * leases.
 *
 * A feed is either in the due set or claimed. A claim is the exclusive right to visit one feed. Its
 * life is the state machine enum claim_state; claim_move() is the only function that changes the
 * state:
 *
 *	owner_claim()     store thread   due set -> hosts' table: CLAIM_WAITING
 *	transfers.c      loop thread    hosts' table -> fetch -> read -> outcome ring: CLAIM_ENDED
 *	owner_receive()     store thread   the visit has an outcome: CLAIM_STORING
 *	owner_commit()   store thread   the outcome is stored; the feed is due at its new time
 *	owner_claim_free()      store thread   the claim is freed
 *
 * A claim can also end without a visit. With owner_release() its feed is due as before. While it
 * waits, the owner itself takes it back when its host pauses, or when its shard is given back or
 * read again.
 *
 * Waiting claims stand in the hosts' table (sched/hosts.h). The table decides which claim may start
 * when, and is the only place where hosts are rate limited. The loop calls it directly, between
 * owner_hosts_lock() and owner_hosts_unlock(). The owner holds that lock for microseconds, and
 * never during a call to the store.
 *
 * Threads: owner_is_lost(), owner_safe_until_ms(), owner_now() and owner_hosts_*() may be called by
 * any thread. All other functions belong to the store thread.
 *
 * The lease: owner_step() renews it. When it is lost (FW_ESTALE), nothing in flight can be stored
 * any more: the loop cancels it, the owner drops the outcomes, and joins again after the last one.
 * While the store is unavailable, nothing starts after the lease's safe time. The hosts' table
 * knows that time.
 *
 * Errors of the store: FW_EIO (open the store again, then call owner_set_store()), FW_EAGAIN,
 * FW_ENOMEM. A call that fails has nothing to undo; call it again later. Clock: monotonic ms, as in
 * safe_until_mono_ms.
 */
#ifndef FW_ENGINE_OWNER_H
#define FW_ENGINE_OWNER_H

#include "base/arena.h"
#include "engine/run/due_set.h"

/* claims of urgent feeds (a person requested them) beyond the wanted number */
#define OWNER_URGENT_EXTRA 4

struct owner_rules {
	const char *worker;
	int64_t lease_ms;
	uint32_t slots; /* transfers of this worker at once */
	uint32_t host_concurrency;
	int64_t host_gap_ms;
	size_t due_max;  /* maximum number of feeds in the due set */
	size_t slow_max; /* claims of slow feeds at once; 0: no limit */
	int64_t slow_us;
	int64_t backlog_ms;
	uint32_t workers; /* workers that start together; 0: unknown */
	/* run --once: only what is due at due_before_ms, in the order of `plan` */
	bool once;
	int64_t due_before_ms;
	struct fw_plan_rules plan;
};

/* owner of the claim: */
enum claim_state {
	CLAIM_WAITING, /* the owner, in the hosts' table, until its host and a slot are free */
	/* the loop, until its name is below its limit at the shared host (host_share.h) */
	CLAIM_HELD,
	CLAIM_FETCHING, /* the loop: a transfer in a slot */
	/*
	 * the loop: its fetch failed; the verdict on our own network is deferred
	 * (sched/connectivity.h)
	 */
	CLAIM_VERDICT_DEFERRED,
	CLAIM_READING, /* the parser thread, or its queue (parser_thread.h) */
	CLAIM_ENDED,   /* the outcome ring, on the way to the store thread */
	CLAIM_STORING, /* the store thread: its outcome waits for a commit */
	CLAIM_STATES
};

struct claim_batch;
struct claim {
	/*
	 * in the hosts' table; order: sequence of claims, or (run --once) position in the plan;
	 * urgent: a person requested the feed
	 */
	struct fw_hosts_item item;
	struct fw_feed feed; /* all column groups; the strings live as long as the claim */
	int64_t host_id, was_due_ms;
	bool is_slow;

	/* owned by the loop from fw_hosts_first() on */
	bool is_named;   /* `name` is set */
	bool is_counted; /* it is counted in host_share.h */
	/* number of the feed's name at a host that several names share; 0: no limit */
	uint32_t name;
	int64_t held_us;         /* monotonic; the wait for its name began; CLAIM_HELD only */
	struct claim *next_held; /* next in the list of held claims */
	/* cooldown of its host that the response set; Unix ms, 0: none */
	int64_t cooldown_until_ms;
	struct visit *visit; /* in a slot; CLAIM_FETCHING only */

	enum claim_state state;

	/* owned by the owner */
	int64_t claimed_mono_ms;
	int shard;
	int64_t lease_id;
	int64_t rescheduled_ms; /* new due time set from outside since the claim; 0: unchanged */
	struct due_item *due;
	struct claim_batch *batch;
	struct claim *next, *prev;
};
static inline struct claim *claim_of(struct fw_hosts_item *item)
{
	return (struct claim *)(void *)item;
}

/*
 * Change the claim's state. owner_claims.c lists the permitted transitions; any other one aborts.
 * The present owner of the claim calls it. Transitions into and out of CLAIM_WAITING need the
 * hosts' table locked.
 */
void claim_move(struct claim *c, enum claim_state to);

typedef int64_t owner_clock_fn(void *ctx);

struct owner;
/* st may be NULL until owner_set_store(). Returns NULL when out of memory. */
struct owner *owner_create(const struct owner_rules *rules, struct store *st, owner_clock_fn *clock, void *ctx);
/* Frees all claims too. The loop must not use any of them afterwards. */
void owner_destroy(struct owner *o);
void owner_set_store(struct owner *o, struct store *st); /* set a new connection; NULL: none */

/*
 * One step of a few ms: heartbeat, shards, reads, order. changed: the store has news
 * (store_wait_fn). *next_mono_ms: call again at the latest at this time, and after each commit.
 */
FW_MUST_CHECK int owner_step(struct owner *o, bool changed, int64_t *next_mono_ms, struct fw_err *err);
/*
 * Claim feeds until `open` claims wait or are in flight. Claim up to OWNER_URGENT_EXTRA urgent
 * feeds (a person requested them) beyond that limit. Load the feeds' state and put the claims into
 * the hosts' table. *n: number of new claims.
 */
FW_MUST_CHECK int owner_claim(struct owner *o, size_t open, size_t *n, struct fw_err *err);

/* CLAIM_ENDED -> CLAIM_STORING, after fw_hosts_done(). owner_commit() takes the outcome. */
void owner_receive(struct owner *o, struct claim *c);
/*
 * CLAIM_ENDED without a visit: never started, refused by fw_hosts_may_send(), or cancelled. The
 * feed is due as before. Frees the claim.
 */
void owner_release(struct owner *o, struct claim *c);
/*
 * Commit n outcomes and the changed hosts; n may be 0. claim[i] belongs to outcome[i] and has
 * passed owner_receive(). Sets feed_id, host_id and was_due_ms of each outcome. After 0 or
 * FW_ESTALE (the lease is lost, nothing was written) call owner_claim_free() for each claim.
 */
FW_MUST_CHECK int owner_commit(
	struct owner *o, struct fw_outcome *outcome, struct claim *const *claim, size_t n, struct fw_err *err);
void owner_claim_free(struct owner *o, struct claim *c); /* frees the claim */
/* Put the waiting claims back into the due set, until the next owner_claim(). */
void owner_requeue_waiting(struct owner *o);

/* Stop claiming. owner_step() gives all shards back after the last claim has ended. */
void owner_leave(struct owner *o);
bool owner_has_left(const struct owner *o);
bool owner_is_lost(const struct owner *o); /* then cancel what is in flight */
/* monotonic; cancel after this time too: the lease may end */
int64_t owner_safe_until_ms(const struct owner *o);
/*
 * run --once: true when nothing is left here that may start within wait_max_ms. *left: feeds that
 * are due, but whose hosts pause for longer. *others: other workers may still have work, as far as
 * is known, or some shards may have no owner.
 */
bool owner_is_finished(struct owner *o, int64_t wait_max_ms, size_t *left, bool *others);

struct fw_hosts *owner_hosts_lock(struct owner *o);
void owner_hosts_unlock(struct owner *o);
/* wall_ms: a lower bound of the store's clock */
struct fw_hosts_now owner_now(const struct owner *o);

struct owner_counts {
	size_t due, waiting; /* feeds in the due set; those of them that are due now */
	/* claims waiting or in flight; claims that wait for their commit */
	size_t open, done;
	/* held shards; those of them not read yet; shards being given back */
	size_t shards, unread, leaving;
};
void owner_count(const struct owner *o, struct owner_counts *out);

#endif
