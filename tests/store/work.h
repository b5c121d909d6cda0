/* SPDX-License-Identifier: ISC */
/*
 * A worker that holds all shards, and the visits of its one feed: for tests in which a commit fails
 * and the same commit succeeds later.
 */
#ifndef TEST_STORE_WORK_H
#define TEST_STORE_WORK_H

#include "drv.h"

#define WORK_ENTRIES_MAX 1000

struct work {
	struct fw_store *front;
	struct store *st;
	struct store_lease *l;
	int64_t feed_id;
	struct fw_feed f;
	struct fw_outcome o; /* of the next visit */
	struct fw_entry_row e[WORK_ENTRIES_MAX];
	struct fw_arena arena; /* the entries' titles */
};

/* Takes over the store. One worker at a time. */
struct work *work_begin(struct fw_store *st);
/*
 * A worker of a new store that waits this long for locks (0: as usual), and its first visit, which
 * brings three entries.
 */
struct work *work_begin_at(const char *url, int64_t busy_timeout_ms);
/*
 * The next visit brings n entries, keys from `first` on: "nKEY", each with this content. visit()
 * uses a paragraph of one word, "number".
 */
void visit_with(struct work *w, int first, int n, struct fw_str content);
void visit(struct work *w, int first, int n);
/* Returns the code: it may fail. */
int commit(struct work *w);
/*
 * Another client holds a lock: the commit fails with FW_EAGAIN and a message that has the store's
 * name and these words.
 */
void commit_is_locked_out(struct work *w, const char *name, const char *words);
/* The first visit's commit, perhaps not for the first time, succeeds: it is stored once. */
void commit_stores_once(struct work *w);
/* Opens the store again, as soon as that works, for the same worker. */
void work_again(struct work *w, const char *url);
/* Ends the lease, runs the deep check, which finds nothing, and closes the store. */
void work_end(struct work *w);
void work_drop(struct work *w); /* without a check: its store is damaged on purpose */

/* A store that is opened for reading only finds a feed and its entries, and refuses a new feed. */
void read_only_refuses(const char *url);
/*
 * Opening fails with this code and a message of one line. It contains these words and the store's
 * name ("": need not), and never "secret".
 */
void open_fails(const char *url, unsigned flags, int code, const char *name, const char *words);

#endif
