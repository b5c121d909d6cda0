/* SPDX-License-Identifier: ISC */
/*
 * The owner of some shards of the schedule: its lease, what is due in its shards (due_set.h), the
 * feeds that are claimed with their state, and the commits of what became of them. It lives in the
 * store thread of a worker, and is the only one there that knows of leases.
 *
 * A feed is in the due set, or it is claimed. The life of a claim is enum claim_state; claim_move()
 * is the one function that changes it. A claim begins with owner_take(), and ends
 *	- with owner_commit(): its feed is due at its new time,
 *	- with owner_back(), as it was not visited: its feed is due as before,
 *	- in the owner, while it waits: its host pauses, its shard is left, or read anew.
 *
 * Claims that wait stand in the hosts' table (sched/hosts.h), which says what may start when, and
 * is the one place in which hosts are limited. The loop calls it directly, between
 * owner_hosts_lock() and owner_hosts_unlock(); the owner's own calls hold that lock for
 * microseconds, and never while they ask the store. owner_is_lost(), owner_safe_until_ms() and
 * owner_now(), owner_hosts_*() are for any thread; all else is the store thread's.
 *
 * The lease: owner_step() keeps it alive. When it is lost (FW_ESTALE), nothing that is in flight
 * can be stored any more: the loop cancels it, what comes back is dropped, and with the last of it
 * the owner joins anew. While the store does not answer nothing starts after the lease's safe time,
 * which the hosts' table knows.
 *
 * Errors of the store: FW_EIO (open it again: owner_store()), FW_EAGAIN, FW_ENOMEM: the call did
 * nothing that has to be undone; call again later. Clock: monotonic ms, as safe_until_mono_ms.
 */
#ifndef FW_ENGINE_OWNER_H
#define FW_ENGINE_OWNER_H

#include "base/arena.h"
#include "engine/run/due_set.h"

#define OWNER_SPARE 4 /* claims of feeds that a person asked for, beyond those that are wanted */

struct owner_rules {
	const char *worker;
	int64_t lease_ms;
	uint32_t slots;            /* of this worker */
	uint32_t host_max;
	int64_t host_gap_ms;
	size_t due_max;            /* feeds in the due set */
	size_t slow_max;           /* claims of slow feeds at once; 0: no limit */
	int64_t slow_us;
	int64_t backlog_ms;
	uint32_t workers;          /* that begin together; 0: not known */
	bool once;                 /* only what is due at due_before_ms, in the order of `plan` */
	int64_t due_before_ms;
	struct fw_plan_rules plan;
};

enum claim_state {       /* whose it is: */
	CLAIM_WAITING,   /* the owner's, in the hosts' table, until its host and a slot are free */
	CLAIM_HELD,      /* the loop's, until its name may have another place at its host (host_share.h) */
	CLAIM_FETCHING,  /* the loop's: a transfer in a slot */
	CLAIM_DOUBTED,   /* the loop's: it failed, and so may our own network have (sched/weather.h) */
	CLAIM_READING,   /* the reading thread's, or waits for it (reader.h) */
	CLAIM_ENDED,     /* on its way to the store thread */
	CLAIM_STORING,   /* the store thread's: its outcome waits for a commit */
	CLAIM_STATES
};

struct claim_batch;
struct claim {
	struct fw_hosts_item item; /* in the hosts' table; order: due time, or position in the plan */
	struct fw_feed feed;       /* all groups; strings live as long as the claim */
	int64_t host_id, was_due_ms;
	bool is_slow;              /* item.urgent: a person asked for it */

	/* the loop's, from fw_hosts_first() on */
	bool is_named;             /* `name` is known */
	bool counts;               /* ... and counted in host_share.h */
	uint32_t name;             /* of a host that several names share: the number of its own; 0: it has no limit */
	int64_t held_us;           /* monotonic: since when it is held for that */
	struct claim *behind;      /* of those that are held */
	int64_t cool_until_ms;     /* what its answer asked for its host; wall, 0: nothing */

	enum claim_state state;

	/* the owner's */
	int64_t claimed_mono_ms;
	int shard;
	int64_t lease_id;
	int64_t again_ms;          /* its due time was changed from outside meanwhile; 0: it was not */
	struct due_item *due;
	struct claim_batch *batch;
	struct claim *next, *prev;
};
static inline struct claim *claim_of(struct fw_hosts_item *item)
{
	return (struct claim *)(void *)item;
}

/* Only along the ways that owner_claims.c lists. By whose it is; out of and into CLAIM_WAITING with the hosts' table locked. */
void claim_move(struct claim *c, enum claim_state to);

typedef int64_t owner_clock_fn(void *ctx);

struct owner;
/* st may be NULL until owner_store(). NULL: out of memory. */
struct owner *owner_new(const struct owner_rules *rules, struct store *st, owner_clock_fn *clock, void *ctx);
/* Claims are gone then; nobody uses them any more. */
void owner_free(struct owner *o);
void owner_store(struct owner *o, struct store *st); /* a new connection; NULL: none */

/*
 * A step of some ms: heartbeat, shards, reads, order. changed: the store has news (store_wait_fn).
 * *next_mono_ms: when to call again, at the latest; call it after each commit too.
 */
FW_MUST_CHECK int owner_step(struct owner *o, bool changed, int64_t *next_mono_ms, struct fw_err *err);
/*
 * Claim until `open` claims wait or fly; up to OWNER_SPARE that a person asked for, however many
 * there are. Read their state, and give them to the hosts' table. *n: so many.
 */
FW_MUST_CHECK int owner_take(struct owner *o, size_t open, size_t *n, struct fw_err *err);

/* A claim that has ended, after fw_hosts_done(): its outcome follows by owner_commit(). */
void owner_done(struct owner *o, struct claim *c);
/*
 * The same, but it was not visited (never begun, refused by fw_hosts_send(), cancelled): it is due
 * as before. The claim is gone.
 */
void owner_back(struct owner *o, struct claim *c);
/*
 * Store outcomes, and hosts. claim[i] is outcome[i]'s, and was given to owner_done(). When this
 * returns 0 or FW_ESTALE (nothing was written; the lease is lost), owner_end() follows for each.
 * Members feed_id, host_id and was_due_ms are set here. n may be 0.
 */
FW_MUST_CHECK int owner_commit(struct owner *o, struct fw_outcome *outcome, struct claim *const *claim, size_t n,
	struct fw_err *err);
void owner_end(struct owner *o, struct claim *c); /* the claim is gone */
/* Claims that wait go back into the due set, until the next owner_take(). */
void owner_recall(struct owner *o);

/* Nothing is claimed any more; owner_step() gives all shards back when the last claim is gone. */
void owner_leave(struct owner *o);
bool owner_is_left(const struct owner *o);
bool owner_is_lost(const struct owner *o); /* cancel what flies */
int64_t owner_safe_until_ms(const struct owner *o); /* monotonic: from then on too, as the store does not answer */
/*
 * A --once: nothing of it is left here that may start within patience_ms. *left: due, but of hosts
 * that want a longer pause. *others: some have something to do, as far as is known, of a --once or
 * not; or there may be shards that nobody has.
 */
bool owner_is_over(struct owner *o, int64_t patience_ms, size_t *left, bool *others);

struct fw_hosts *owner_hosts_lock(struct owner *o);
void owner_hosts_unlock(struct owner *o);
struct fw_hosts_now owner_now(const struct owner *o); /* wall: the store's, which is not before it */

struct owner_counts {
	size_t due, waiting;       /* in the due set; of these claimable now, by their hosts or not */
	size_t open, done;         /* claims that wait or fly; that wait for their commit */
	size_t shards, unread, leaving; /* held; of these not read yet; being given back */
};
void owner_count(const struct owner *o, struct owner_counts *out);

#endif
