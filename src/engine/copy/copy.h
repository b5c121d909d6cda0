/* SPDX-License-Identifier: ISC */
/*
 * The state of a running copy. copy.c copies feeds with their entries, keys and visits;
 * copy_check.c compares them; copy_extra.c copies and compares events, dead letters and records;
 * copy_matches.c copies matches of orders, copy_accounts.c accounts.
 * One thread.
 */
#ifndef FW_ENGINE_COPY_H
#define FW_ENGINE_COPY_H

#include "base/arena.h"
#include "feedwheel/engine.h"
#include "store/fields.h"

#define COPY_ROWS 2000      /* rows in one batch */
#define COPY_FEED_RANGE 500 /* range of feed ids that is compared at once */

enum copy_kind { COPY_EVENTS, COPY_DEAD_LETTERS /* dead letters */, COPY_RECORDS };

/* events of the source when they were copied: their number, and the last id */
struct copy_seen {
	int64_t n, last_id;
};

struct copy {
	struct fw_store *from, *to;
	const struct fw_copy_options *o;
	struct fw_copy_stats *s;
	struct fw_store_stats end;   /* of the source at the start */
	struct fw_store_stats known; /* of the target at the start */
	int64_t change_id;           /* the source's last number at the start; 0: it has no log of changes */
	struct fw_arena arena;       /* strings of the rows of one batch */
	struct fw_load batch;
	struct fw_feed feed[COPY_ROWS];
	struct fw_entry_row entry[COPY_ROWS];
	struct fw_entry_key key[COPY_ROWS];
	/* visit_cap elements: all visits of a feed may belong to one batch */
	struct fw_visit *visit;
	size_t visit_cap;
	size_t bytes;
	struct copy_seen seen[COPY_RECORDS + 1];
	int64_t started_ms;
	struct fw_err *err;
};

/* The fingerprint of one feed: equal rows in both stores have equal ones. */
struct copy_fingerprint {
	int64_t id, created_ms;
	uint64_t feed, keys;
	uint64_t known; /* of entries up to the highest id that the target had */
	int64_t key_n, entry_n;
};

/* of a range of ids, sorted by id */
struct copy_fingerprints {
	struct copy_fingerprint at[COPY_FEED_RANGE];
	size_t n;
	int64_t last_id; /* higher ids belong to the next range */
};

void copy_progress(struct copy *c);
/* True after a pause, if the call should be tried again. *i: tries so far, 0 at first. */
bool copy_again(int rc, int *i);
/* Counts a difference and reports it. */
FW_PRINTF(2, 3) void copy_differs(struct copy *c, const char *fmt, ...);
/* Copies the strings of a row into the arena. Returns their total length in bytes. */
size_t copy_texts_dup(struct fw_arena *a, const struct fw_field *f, size_t n, void *row);
/*
 * The result of a list call whose callback may have stopped it at a full batch, which is no error.
 */
static inline int copy_list_result(int rc)
{
	return rc > 0 ? 0 : rc;
}

/*
 * Fingerprints of the feeds in the range from first_id, in both stores; with_keys: also of their
 * entries.
 */
int copy_fingerprints_read(
	struct copy *c, int64_t first_id, bool with_keys, struct copy_fingerprints *from, struct copy_fingerprints *to);
struct copy_fingerprint *copy_fingerprint_find(const struct copy_fingerprints *p, int64_t id); /* NULL: not found */
/*
 * Checks that the target is a copy of the source. Errors: FW_EINVAL it is not; those of the stores.
 */
int copy_check_target(struct copy *c);
/* Removes from the target the feeds that differ from the source or are gone there. */
int copy_stale_remove(struct copy *c);
/* Compares all feeds; counts and reports the differences. */
int copy_verify(struct copy *c);
/* Copies or compares the other rows; does the target have any? */
int copy_extra(struct copy *c, enum copy_kind kind, bool verify);
/* Replace the target's matches of orders by the source's. */
int copy_matches(struct copy *c);
/* FW_EINVAL: the source has accounts, and the target cannot have any. */
int copy_accounts_check(struct copy *c, bool *target_has_any);
int copy_accounts(struct copy *c);
int copy_accounts_compare(struct copy *c);
int copy_extra_any(struct copy *c, enum copy_kind kind, bool *any);

#endif
