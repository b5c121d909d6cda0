/* SPDX-License-Identifier: ISC */
/*
 * Inside the store thread: what its rooms share. storer.c is its life (outages, control, upkeep, waiting), claims.c brings work from
 * the store to the loop, commits.c takes what became of it back. No other thread looks in here; lane.h is what they meet over.
 */
#ifndef FW_ENGINE_STORER_H
#define FW_ENGINE_STORER_H

#include "engine/chores.h"
#include "engine/course.h"
#include "engine/lane.h"
#include "engine/retry.h"

#define STORER_IDLE_MS FW_SECOND_MS /* it never sleeps longer */
#define STORER_PORTION_MS 50        /* between claims, while the loop wants little */

struct storer {
	struct lane *l;
	struct fw_store *st;
	struct visit **batch;       /* what the next commit carries */
	struct fw_outcome *outcome; /* the same, as the contract wants it */
	size_t n, bytes;
	bool hurry;                 /* somebody waits for one of them */
	int64_t batch_since_ms;     /* monotonic; of its oldest */
	size_t alive, extra;        /* visits lent to the loop and not yet spent; those of them that it did not want */
	int64_t first_at_ms, first_until_ms; /* monotonic: look for feeds that a person asked for; 0: none was */
	int64_t first_back_ms;      /* monotonic: till then one that is lent may come back from somebody's queue */
	int64_t next_claim_ms;      /* monotonic, for a wall clock may be set back: nothing is due before */
	int64_t newest_id;          /* control message when this worker began */
	int64_t control_at_ms, beat_at_ms, started_ms;
	struct retry retry;            /* an outage */
	int64_t outage_since_ms;       /* monotonic; 0: none */
	int64_t last_since_ms;         /* monotonic: when the loop had handed over its last visit; 0: not yet */
	struct fw_err outage_err;
	int64_t full_since_ms, room_at_ms; /* monotonic: no room on the store's disk; 0: there is; when to look again */
	struct fw_err full_err;
	bool once_over, upkeep_more;
	int64_t once_over_ms, upkeep_at_ms, prune_at_ms, prune_entries_at_ms; /* monotonic */
	struct chores chores;
	struct fw_lease *back;      /* leases to give back, back_n of them */
	size_t back_n;
	bool cool;                  /* one of the batch brings a pause for its host: it is stored before others of that host go back */
	struct course *course;      /* of a --once, or of a backlog; NULL: none, the ordinary claim does it all */
	bool course_over, course_more; /* all of it is lent; the list did not end with it (once) */
	bool behind, backlog;       /* a run: claims bring what is late; the course is that of a backlog */
	int64_t look_at_ms;         /* monotonic: before that it is not put in order again */
	int64_t last_due_ms;        /* of what was lent last */
	int64_t rank;               /* of the next loan behind the course */
	struct fw_plan_bounds *bounds; /* once: of what was measured */
	int64_t claimed_at_ms;      /* monotonic: last claim */
	int64_t idle_look_ms;       /* monotonic: when to look again for what is due next */
	uint64_t visits, news, failures;
};

/* ---- storer.c */
/* The store said no while doing that: it is asked again later, through a new connection if this one is broken. */
void storer_outage(struct storer *s, const char *doing, int rc, const struct fw_err *err);
/* It answered. */
void storer_outage_over(struct storer *s);
/* The sign of life that goes with every commit. */
void storer_beat_fill(struct storer *s, struct fw_beat *b);

/* ---- claims.c */
/* A --once: put what is due in order (course.h). */
void claims_begin(struct storer *s);
/* Does the loop want work, and may it be looked for now? */
bool claims_due(const struct storer *s, int64_t mono_ms);
void claims_make(struct storer *s, int64_t now_ms);
/* The same for feeds that a person asked for. */
bool claims_first_due(const struct storer *s, int64_t mono_ms);
void claims_first(struct storer *s, int64_t now_ms, int64_t mono_ms);

/* ---- commits.c */
/* What the loop has finished: into the batch, or among the leases to give back. */
void commits_take(struct storer *s);
bool commits_due(const struct storer *s, int64_t mono_ms);
/* Store the batch, or keep it. */
void commits_store(struct storer *s);
void commits_give_back(struct storer *s);

#endif
