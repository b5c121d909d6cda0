/* SPDX-License-Identifier: ISC */
/* A commit on its way, for the three files that make it: redis_commit.c, redis_leases.c, redis_news.c. Nobody else includes this. */
#ifndef FW_STORE_REDIS_COMMIT_H
#define FW_STORE_REDIS_COMMIT_H

#include "store/redis.h"

#define RD_TRIES 20
#define RD_STORED_BEFORE 1 /* an outcome's rc on its way: by an earlier try of the same batch */

enum rd_item { RD_ITEM_SAME, RD_ITEM_NEW, RD_ITEM_CHANGED, RD_ITEM_GONE /* retention took it, and it stays away */ };

struct rd_news { /* an entry of an outcome, as it is to be stored */
	enum rd_item item;
	int64_t id, date_ms;      /* date_ms: as the store knows it, while it is changed */
	int64_t seen_ms;
	uint32_t revision;
};

struct rd_plan { /* of one outcome */
	struct fw_outcome *o;
	struct rd_loan *loan;     /* NULL: not known yet, or stale */
	bool foreign;             /* somebody else borrowed it */
	bool fresh;               /* its feed had no entries before */
	bool extra;               /* more is to be done than the feed's value and its place in line */
	int64_t slot;
	struct rd_news *news;     /* of each entry */
	size_t new_n, changed_n, gone_n;
};

struct rd_part { /* of a batch: what goes to one shard */
	struct redis *r;
	int shard;
	struct rd_plan *plan;
	size_t n;
	struct rd_plan **good;    /* those that are stored: by fence */
	struct rd_plan **line;    /* those of them that get in line without more ado: by slot */
	size_t good_n, line_n;
	bool others;              /* some are foreign */
	bool news;                /* some of the good ones bring entries */
	int64_t now_ms;           /* 0: not known; with news it is */
	int64_t run[16];          /* run numbers of its visits, each once; more of them in one batch are not noted */
	size_t run_n;
};

/* ---- redis_leases.c ------------------------------------------------------------------------------------------------------ */

/* Find the lease of each outcome, or that it has none: loan, foreign and the outcome's rc. */
int rd_leases_find(struct rd_part *t, struct fw_err *err);
/* Forget what was found, to begin anew. */
void rd_leases_forget(struct rd_part *t);
/* It is stored: what was brought back is no loan any more. epoch: the shard's from now on; 0: all loans are in doubt. */
void rd_leases_settle(struct rd_part *t, int64_t epoch);

/* ---- redis_news.c ---------------------------------------------------------------------------------------------------------- */

/* Decide which entries are new or changed. From here on a transaction comes to nothing when that changes, or a lease does. */
int rd_news_look(struct rd_part *t, struct fw_err *err);
/* For what is good: numbers for new entries, what is kept of changed ones, and now_ms. */
int rd_news_take(struct rd_part *t, struct fw_err *err);
/* Add the commands that store it to a transaction. */
int rd_news_send(struct rd_part *t, struct fw_err *err);
/* Add the command that says: the numbers are used; for shard 0. */
int rd_numbers_used(struct rd_part *t, struct fw_err *err);

static inline bool rd_brings(const struct rd_plan *p)
{
	return p->new_n || p->changed_n || p->gone_n;
}

#endif
