/* SPDX-License-Identifier: ISC */
/*
 * Inside the owner: owner.c is its life (lease, shards), owner_reads.c what it reads,
 * owner_claims.c the way of a claim. Nobody else looks in here.
 */
#ifndef FW_ENGINE_OWNER_PARTS_H
#define FW_ENGINE_OWNER_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/map.h"
#include "engine/run/owner.h"

#define READ_WIDTH_MAX 32 /* new shards that one query reads */

enum shard_state { SHARD_FOREIGN, SHARD_HELD, SHARD_LEAVING };

struct owner_shard {
	enum shard_state state;
	bool unread;             /* never read since it was taken */
	bool changed;            /* from outside: feeds and hosts are to be read again */
	bool cut;                /* more is due by until_ms than there was room for */
	int64_t version;
	int64_t until_ms;        /* wall: what is due by then is in the set */
	int64_t span_ms;         /* how far ahead it is read */
	int64_t look_mono_ms;    /* when to read it again */
	int64_t again_mono_ms;   /* not before, though there is room again */
	size_t claims;           /* of feeds of it, until they are committed or gone */
};

struct owner {
	struct owner_rules rules;
	struct store *st;
	owner_clock_fn *clock;
	void *ctx;
	_Atomic int64_t wall_offset_ms; /* the store's clock - ours, at least; */
	int64_t clock_took_ms;   /* and by so much more at most */
	bool clock_known;        /* it was told by an answer that came soon */
	struct store_lease lease;
	_Atomic bool lost;
	_Atomic int64_t safe_until_ms;
	bool leaving, left;
	bool news;               /* something has changed since the last heartbeat */
	bool shifted;            /* the last heartbeat brought shards, or some were given since: they may be nobody's */
	bool planned;            /* the order was made once; a --once claims nothing before */
	int64_t joined_mono_ms;
	uint64_t claim_n;        /* since the start */
	int64_t beat_mono_ms;    /* the last one; INT64_MIN: none yet */
	int64_t beat_took_ms;
	int64_t late_until_mono_ms; /* its own lease was over: until then it ends nobody's */
	int64_t settled_mono_ms; /* since then the number of workers has been the same */
	size_t held, leaving_n, unread, cut_n;
	struct owner_shard shard[STORE_SHARDS];
	int look_at;             /* the shard to be read next */
	int width;               /* so many new shards are read at once */
	bool read_all;           /* nothing was left to be read */
	int64_t order_mono_ms;   /* when to look at the order again */
	struct due_set *due;
	struct due_read read;

	pthread_mutex_t lock;    /* of hosts, and of what the table keeps in claims */
	struct fw_hosts *hosts;

	struct fw_map claims;    /* by feed id */
	struct claim *first;
	size_t open, slow, urgent, done; /* claims; of the open ones slow and urgent */
};

/* ---- owner.c */
void shard_cut(struct owner *o, struct owner_shard *s, bool cut);
/* For times that others wait for: the store's clock is not behind this. */
struct fw_hosts_now owner_latest(const struct owner *o);
/* Once the lease is over. */
void owner_lose(struct owner *o);

/* ---- owner_reads.c */
/*
 * Some ms of reads: what changed first, then in turns. *next_ms: monotonic, when there is something
 * to read.
 */
FW_MUST_CHECK int reads_do(struct owner *o, int64_t *next_ms, struct fw_err *err);

/* ---- owner_claims.c */
struct claim *claim_find(const struct owner *o, int64_t feed_id);
/* It ends; its feed is not put back. Not one that is in the hosts' table. */
void claim_free(struct owner *o, struct claim *c);
/* Its claims that wait go back into the due set. */
void claims_recall(struct owner *o, int shard);
/* Hosts of which the store is to know something. FW_ESTALE: the lease was lost. */
FW_MUST_CHECK int claims_hosts_commit(struct owner *o, struct fw_err *err);

#endif
