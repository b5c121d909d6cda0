/* SPDX-License-Identifier: ISC */
/* A copy under way: copy.c brings feeds and what is theirs, copy_check.c compares them; copy_beside.c sees to the rest. */
#ifndef FW_ENGINE_COPY_H
#define FW_ENGINE_COPY_H

#include "base/arena.h"
#include "feedwheel/engine.h"
#include "store/fields.h"

#define COPY_ROWS 2000       /* in one batch */
#define COPY_FEED_RANGE 500  /* numbers of feeds that are compared together */

enum copy_what { COPY_EVENTS, COPY_DEAD /* events set aside */, COPY_RECORDS };

struct copy_seen { /* events of the source, as they were copied: how many, and the last one's id */
	int64_t n, last_id;
};

struct copy {
	struct fw_store *from, *to;
	const struct fw_copy_options *o;
	struct fw_copy_stats *s;
	struct fw_store_stats end;   /* of the source, when it began */
	struct fw_store_stats known; /* of the target then */
	struct fw_arena arena;       /* of the rows of one batch */
	struct fw_load batch;
	struct fw_feed feed[COPY_ROWS];
	struct fw_entry_row entry[COPY_ROWS];
	struct fw_entry_key key[COPY_ROWS];
	struct fw_visit *visit;      /* visit_cap of them: all of a feed's may have to come together */
	size_t visit_cap;
	size_t bytes;
	struct copy_seen seen[COPY_RECORDS + 1];
	int64_t started_ms;
	struct fw_err *err;
};

/* What is the same at both sides has the same print. */
struct copy_print { /* of one feed */
	int64_t id, created_ms;
	uint64_t feed, keys;
	uint64_t known;          /* of entries up to the highest that the target had */
	int64_t key_n, entry_n;
};

struct copy_prints { /* of a range, in order of id */
	struct copy_print at[COPY_FEED_RANGE];
	size_t n;
	int64_t last_id;         /* those above are for the next range */
};

void copy_progress(struct copy *c);
/* Is it worth another try? Then a while has passed. *i: how many there were. */
bool copy_again(int rc, int *i);
/* A difference, counted and told. */
FW_PRINTF(2, 3) void copy_differs(struct copy *c, const char *fmt, ...);
/* Copies of the texts of a row, into the arena. How many bytes they have. */
size_t copy_texts_keep(struct fw_arena *a, const struct fw_field *f, size_t n, void *row);
/* A walk ended because a batch was full or for want of rows: neither is an error. */
static inline int copy_walked(int rc)
{
	return rc > 0 ? 0 : rc;
}

/* The feeds of the range that begins there, at both sides; with_keys: what is stored of them too. */
int copy_prints_read(struct copy *c, int64_t first_id, bool with_keys, struct copy_prints *from, struct copy_prints *to);
struct copy_print *copy_print_of(const struct copy_prints *p, int64_t id); /* NULL: not there */
/* FW_EINVAL: the target's feeds are not those of the source. */
int copy_is_one(struct copy *c);
/* Take from the target the feeds that are not, or not so, at the source. */
int copy_stale_remove(struct copy *c);
/* Compare all; what differs is counted and told. */
int copy_verify(struct copy *c);
/* Bring what is beside the feeds over, or compare it; does the target have any? */
int copy_beside(struct copy *c, enum copy_what what, bool verify);
int copy_beside_any(struct copy *c, enum copy_what what, bool *any);

#endif
