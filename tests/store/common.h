/* SPDX-License-Identifier: ISC */
/*
 * What the store tests share: the stores under test, a fresh one for each driver, small makers.
 *
 *   contract.c      leases, shards, due reads, commits, pushes: src/store/driver.h, rule by rule
 *   schedule.c      the same over many rows and several workers
 *   first_open.c    a new store: several processes open it at once, creators are killed
 *   model.c         a random walk over the contract, compared with a model
 *   fleet.c         processes that are killed and stopped: nothing is lost or done twice
 *   feeds.c         subscriptions, lists, groups, addresses, merges
 *   entries.c       entries, their lists, the search index
 *   search.c        queries: each list is what query_matches() accepts
 *   changes.c       the log of changes, revisions: through the front
 *   matches.c       matches of orders: through the front
 *   matching.c      what orders do to the entries of a commit
 *   retention.c     copies, pruning, opening
 *   small.c         visits, events, records, figures: long lists and failures
 *   front.c         the front (src/store/store.c): arguments, control messages, heartbeats, URLs
 *   events.c        events through the front
 *   event_ids.c     ids of events: ranges, and rows whose id another row has
 *   inbox.c         rows that other programs put, feeds that they change, views of workers
 *   records.c       records through the front
 *   accounts.c      accounts and what they have read, against a model
 *   copy.c          the engine's copy from one store into another
 *   manpage.c       feedwheel-store(7)
 *   sqlite_journal.c  checkpoints, their lock, and the locks of a new file
 *   *_faults.c      servers and files that are locked, full, broken, foreign or killed
 *   dialect_mysql.c what only the MySQL dialect does
 *   redis_inbox.c   lists that other programs fill on Redis, and its stream of new entries
 *
 * All but the last three lines run on each driver of the build: drv.h calls its slots, this file
 * the front, client.h goes past both. server_*.c start private servers, serve.c one for the system
 * tests. work.h is a worker whose commits fail, tiny_disk.h a full disk, mysql_fixture.h MariaDB
 * without the driver, redis_fixture.h a Redis of a case's own.
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
 * The stores under test. A new driver gets a row in common.c and passes the same suite. Call
 * stores_begin() first in main(): it starts the servers. FW_STORES ("sqlite,postgres") selects some
 * stores. FW_STORES_DONE: a run before had these; now only what it left out. picked(): is it one of
 * this run's? A store whose driver is not in the build, or whose server is not installed, is
 * skipped with a message. Where CI is set, a missing server is a failure.
 */
struct under_test {
	const char *name;
	bool shared;                 /* several processes can use it */
	const struct server *server; /* NULL: it needs no server */
};
extern struct under_test under_test[];
extern int under_test_n;
void stores_begin(void);
bool picked(const char *engine);
bool built_in(const char *driver);

/*
 * The frame of a program. cases(): a list of cases, with a fixture (or NULL) and a time limit.
 * cases_add(): each of these runs that many times, with _i from 0. cases_add_once(): of a program
 * for each store, the cases that need none. cases_run() runs the list and returns main()'s exit
 * status.
 */
TCase *cases(const char *name, void (*begin)(void), void (*end)(void), int timeout_s);
void cases_add(TCase *t, const TTest *const *test, size_t n, int times);
void cases_add_once(TCase *t, const TTest *const *test, size_t n);
int cases_run(const char *suite, TCase *t);
/*
 * For programs that test one engine: ends the program as skipped when the engine is not picked().
 * server_needed(): also when the server is not installed, and as failed then where CI is set.
 */
void engine_needed(const char *engine);
void server_needed(const struct server *server);

/*
 * scratch(): a folder that is removed when the process ends. store_url(): the URL of the store with
 * this name in it.
 */
const char *scratch(void);
char *scratch_url(int driver, const char *name);

struct fw_store *store_open(const char *url, unsigned flags);
struct fw_store *fresh(int driver); /* a new one at each call */
#define OK(call) ck_assert_msg((call) == 0, "%s: %s", #call, err.text)
#define IS(call, code) ck_assert_msg((call) == (code), "%s is not %s: %s", #call, #code, err.text)

int64_t subscribe(struct fw_store *st, const char *url, int64_t due_at_ms);
/* format has one %d */
void subscribe_many(struct fw_store *st, const char *format, int from, int n, int64_t due_at_ms);
struct fw_entry_row entry(int key, int hash, const char *title, const char *content);
struct fw_feed find(struct fw_store *st, int64_t id, struct fw_arena *a);
struct fw_store_stats stats(struct fw_store *st);
int64_t query_count(struct fw_store *st, struct fw_entry_query q); /* the number of entries that match */
int64_t entry_count(struct fw_store *st, int64_t feed_id);
int64_t hits(struct fw_store *st, const char *words); /* the number of matches of a search */
/* Pushes entries from..to-1: keys "nI", text "number". */
void put_entries(struct fw_store *st, int64_t feed_id, int from, int to);
void index_all(struct fw_store *st); /* completes the search index */
/*
 * A store of schema 1, which release 0.1.0 made, is read as it is, and upgraded when it is opened
 * for writing. bare: runs a statement on the SQL store at url.
 */
int64_t schema_of(const char *driver); /* the number of its newest schema */
void schema_1_is_upgraded(const char *url, void (*bare)(const char *sql));
/* Runs the driver's deep check; the test fails if it finds anything. */
void check_clean(struct fw_store *st);

#endif
