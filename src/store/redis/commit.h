/* SPDX-License-Identifier: ISC */
/* A commit on its way: commit.c reads, decides and answers, commit_write.c makes the new rows. */
#ifndef FW_STORE_REDIS_COMMIT_H
#define FW_STORE_REDIS_COMMIT_H

#include "store/redis/redis.h"

struct item { /* an entry that seems new or changed */
	const struct fw_entry_row *e;
	struct rs_known known; /* id 0: retention took it */
	bool is_new;
	int64_t seen_ms; /* first; 0: now */
	uint32_t revision; /* the one before */
};

enum verdict {
	STORED,
	BEFORE, /* it is there, an earlier answer was lost */
	GONE,
	LATER, /* not in this try */
};

struct plan { /* an outcome on its way */
	struct fw_outcome *o;
	int cell, shard;
	bool has_url; /* it may have its new address */
	unsigned change; /* groups of its wide row, as bits by RS_* */
	enum verdict verdict;
	struct fw_feed feed; /* its narrow row, as it is and then as it will be */
	struct rs_state state;
	struct fw_str wide; /* its row of `feed`, where that changes; and the address in there */
	struct fw_str url_was;
	bool moves; /* to another host */
	struct item *item;
	size_t item_n;
	uint32_t new_n, changed_n;
	int64_t visit_id, before_id; /* 0: none is written; none was before */
};

struct part { /* of a cell */
	struct plan *plan;
	size_t n;
	size_t at;       /* where its replies are */
	size_t stored_n; /* plans that are written */
	bool merging;    /* something is on its way into another feed there */
	bool sent;
};

struct work {
	struct rs *r;
	struct store_commit *c;
	struct plan *plan; /* by cell and shard */
	size_t n;
	struct part part[RS_CELLS];
	bool *done;                /* outcomes that are answered, */
	bool hosts_done[RS_CELLS]; /* and cells that have stored their hosts */
	struct fw_str *host_was;   /* those of others' shards: their rows */
	bool push;                 /* the schedules stay */
	bool again;                /* something is left to be done */
	bool tells;                /* a schedule changes */
	int64_t now_ms;            /* by the server's clock */
	int64_t visit_id;          /* the last one that was given */
	int64_t first_id, new_n;   /* numbers of entries were taken: so many behind this one */
	int64_t entry_id;          /* the last of them that was given */
};

static inline struct fw_str commit_key(const struct fw_entry_row *e)
{
	return (struct fw_str){(const char *)e->key, sizeof(e->key)};
}

/* Is it to be stored in this cell? */
static inline bool commit_has_host(const struct work *w, int cell, const struct store_host *h)
{
	return !w->hosts_done[cell] && rs_cell(w->r, store_host_shard(h->id)) == cell;
}

/* The rows of what is stored, with their numbers. */
void commit_rows_make(struct work *w, struct part *part);
/* Collect the cell's transaction; EXEC's reply is at part.at then. */
void commit_cell_write(struct work *w, int cell);

#endif
