/* SPDX-License-Identifier: ISC */
/*
 * Private to the owner. owner.c: its life (lease and shards). owner_reads.c: reads of the store.
 * owner_claims.c: claims from the due set to the commit.
 */
#ifndef FW_ENGINE_OWNER_PARTS_H
#define FW_ENGINE_OWNER_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/map.h"
#include "engine/run/owner.h"

#define READ_WIDTH_MAX 32 /* limit of new shards that one query reads */

enum shard_state { SHARD_FOREIGN, SHARD_HELD, SHARD_LEAVING };

struct owner_shard {
	enum shard_state state;
	bool unread;  /* not read since it was acquired */
	bool changed; /* changed from outside: read its feeds and hosts again */
	bool cut;     /* more feeds are due by until_ms than the due set had room for */
	int64_t version;
	int64_t until_ms;          /* Unix; the set holds what is due by then */
	int64_t span_ms;           /* span of due times that a read covers */
	int64_t next_read_mono_ms; /* monotonic; next read */
	int64_t reread_mono_ms;    /* monotonic; a cut shard is not read again before this time */
	size_t claims;             /* claims of its feeds that are not yet committed or freed */
};

struct owner {
	struct owner_rules rules;
	struct store *st;
	owner_clock_fn *clock;
	void *ctx;
	/* lower bound of the store's clock minus our monotonic one */
	_Atomic int64_t wall_offset_ms;
	/* the true difference is larger by at most this (duration of the clock query) */
	int64_t clock_took_ms;
	bool clock_known; /* the last clock query was fast enough to be trusted */
	struct store_lease lease;
	_Atomic bool lost;
	_Atomic int64_t safe_until_ms;
	bool leaving, left;
	bool store_changed; /* the store reported changes since the last heartbeat */
	/* the last heartbeat brought shards, or we gave some back since: some may have no owner */
	bool shards_moved;
	/* the due set was ordered once; `run --once` claims nothing before that */
	bool planned;
	int64_t joined_mono_ms;
	uint64_t claim_n;          /* claims since the start */
	int64_t heartbeat_mono_ms; /* last heartbeat; INT64_MIN: none yet */
	int64_t heartbeat_took_ms;
	/* our lease had expired: until this time we end no other worker's lease */
	int64_t late_until_mono_ms;
	int64_t settled_mono_ms; /* the number of workers has not changed since */
	size_t held, leaving_n, unread, cut_n;
	struct owner_shard shard[STORE_SHARDS];
	int next_read_shard;   /* shard that is read next */
	int width;             /* new shards that one query reads now */
	bool read_all;         /* nothing is left to read */
	int64_t order_mono_ms; /* next check of the order */
	struct due_set *due;
	struct due_read read;

	pthread_mutex_t lock; /* protects hosts, and the claims' members that the table uses */
	struct fw_hosts *hosts;

	struct fw_map claims; /* by feed id */
	struct claim *first;
	/*
	 * claims that wait or are in flight; the slow and the urgent ones among them; claims that
	 * wait for a commit
	 */
	size_t open, slow, urgent, done;
};

/* ---- owner.c --------------------------------------------------------------------------------- */
void shard_cut(struct owner *o, struct owner_shard *s, bool cut);
/* The latest time that the store's clock can show. Times that other workers wait for use it. */
struct fw_hosts_now owner_now_latest(const struct owner *o);
/* The lease is over: drop all shards. */
void owner_lose_lease(struct owner *o);

/* ---- owner_reads.c --------------------------------------------------------------------------- */
/*
 * Read the store for some ms: changed shards first, then the others in turn. *next_ms: monotonic,
 * when the next read is due.
 */
FW_MUST_CHECK int owner_reads_run(struct owner *o, int64_t *next_ms, struct fw_err *err);

/* ---- owner_claims.c -------------------------------------------------------------------------- */
struct claim *claim_find(const struct owner *o, int64_t feed_id);
/* Free a claim without putting its feed back. The claim must not stand in the hosts' table. */
void claim_free(struct owner *o, struct claim *c);
/* Put the shard's waiting claims back into the due set. */
void claims_requeue_shard(struct owner *o, int shard);
/* Commit the hosts whose state has changed. FW_ESTALE: the lease was lost. */
FW_MUST_CHECK int hosts_commit_all(struct owner *o, struct fw_err *err);

#endif
