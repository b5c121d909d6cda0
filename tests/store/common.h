/* SPDX-License-Identifier: ISC */
/*
 * What the store tests share: the stores under test, a fresh one for each driver, small makers.
 *
 *	contract.c   leases, shards, due reads, commits, pushes: the rules of src/store/driver.h, one by one
 *	schedule.c   the same over many rows and several workers
 *	opening.c    a new store: many open it at once, creators are killed
 *	walk.c       a random walk over the contract beside a model of it
 *	property.c   processes that are killed and stopped: nothing is lost, nothing done twice
 *	feeds.c      subscriptions, lists, groups, addresses, merges
 *	entries.c    entries, their lists, search
 *	retention.c  copies, pruning, opening
 *	small.c      visits, events, records, figures: long lists, what fails
 *	front.c      the front (src/store/store.c): arguments, control messages, heartbeats, URLs
 *	events.c, records.c   events and records through the front
 *	copy.c       the engine's copy from one store into another
 *	manual.c     feedwheel-store(7)
 *	trouble*.c   servers and files that are locked, full, broken, foreign or killed
 *	dialect_mysql.c       that dialect's own ways
 *
 * All but the last three run on each driver of the build: drv.h calls its slots, this file the front.
 * server_*.c start private servers, serve.c one for the system tests; work.h is a worker whose commits fail, tiny_disk.h a disk that
 * is full, bare_maria.h MariaDB past its driver.
 */
#ifndef TEST_STORE_COMMON_H
#define TEST_STORE_COMMON_H

#include <check.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"
#include "feedwheel/store.h"
#include "servers.h"
#include "../suite.h"

#define NOW INT64_C(1763730000000)
#define NONE (-1)

/*
 * The stores under test. A new driver gets a row in common.c and passes the same suite.
 * stores_begin(), first thing in main(), starts the servers that they need; FW_STORES
 * ("sqlite,postgres") picks some. An engine that the build has no driver for is left out, with
 * words; so is one whose server is not installed, but where CI is set, that is a failure.
 */
struct under_test {
	const char *name;
	bool shared; /* between processes */
	const struct server *server; /* NULL: it needs none */
};
extern struct under_test under_test[];
extern int under_test_n;
void stores_begin(void);
bool built_in(const char *driver);

/* A folder that goes away at the end of the process; and the URL of a store named so in it. */
const char *scratch(void);
char *scratch_url(int driver, const char *name);

struct fw_store *store_open(const char *url, unsigned flags);
struct fw_store *fresh(int driver); /* a new one each time */
#define OK(call) ck_assert_msg((call) == 0, "%s: %s", #call, err.text)
#define IS(call, code) ck_assert_msg((call) == (code), "%s is not %s: %s", #call, #code, err.text)

int64_t subscribe(struct fw_store *st, const char *url, int64_t due_at_ms);
void subscribe_many(struct fw_store *st, const char *format, int from, int n, int64_t due_at_ms); /* format: one %d */
struct fw_entry_row entry(int key, int hash, const char *title, const char *content);
struct fw_feed find(struct fw_store *st, int64_t id, struct fw_arena *a);
struct fw_store_stats stats(struct fw_store *st);
int64_t query_count(struct fw_store *st, struct fw_entry_query q); /* how many entries it finds */
int64_t entry_count(struct fw_store *st, int64_t feed_id);
int64_t hits(struct fw_store *st, const char *words); /* of a search */
/* Push entries from..to-1: "nI", with the text "number". */
void put_entries(struct fw_store *st, int64_t feed_id, int from, int to);
void index_all(struct fw_store *st); /* the search index catches up */
/* The driver's own deep check finds nothing. */
void check_clean(struct fw_store *st);

#endif
