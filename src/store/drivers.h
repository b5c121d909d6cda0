/* SPDX-License-Identifier: ISC */
/* The drivers of this build, and the little that they share. A driver includes this, feedwheel/store.h and base. */
#ifndef FW_STORE_DRIVERS_H
#define FW_STORE_DRIVERS_H

#include "base/arena.h"
#include "base/str.h"
#include "feedwheel/store.h"

#define FW_STORE_CRASH_MAX 2    /* a feed whose visits killed this many workers in a row is quarantined */
#define FW_STORE_BUSY_MS 10000  /* default of fw_store_config.busy_timeout_ms */

extern const struct fw_store_driver fw_store_memory;
extern const struct fw_store_driver fw_store_sqlite;
/* Where FW_HAVE_POSTGRES, FW_HAVE_MYSQL, FW_HAVE_REDIS are 1. */
extern const struct fw_store_driver fw_store_postgres;
extern const struct fw_store_driver fw_store_mysql;
extern const struct fw_store_driver fw_store_redis;

/* Their schemes, which a build without the driver has to know too: it refuses their URLs with the remedy. */
#define FW_STORE_POSTGRES_SCHEMES "postgres", "postgresql", NULL
#define FW_STORE_MYSQL_SCHEMES "mysql", "mariadb", NULL
#define FW_STORE_REDIS_SCHEMES "redis", "rediss", "redis+unix", NULL

/* What follows "scheme:" in a store URL ("//" of an empty authority taken off). */
struct fw_str fw_store_url_rest(const char *url);

/*
 * The words of a search, one by one: "all these words", prefix*, "a phrase in quotes". Separators are white space and
 * whatever is no letter, digit, "*" or quote in ASCII; other bytes belong to words. False at the end.
 */
struct fw_store_word {
	struct fw_str text; /* of a phrase: without its quotes */
	bool prefix;
};
bool fw_store_word_next(struct fw_str *rest, struct fw_store_word *out);

/*
 * What a server says of its version: FW_EINVAL when it is one that speaks the protocol of the driver's server and takes statements for
 * claims without taking the locks (SELECT ... FOR UPDATE SKIP LOCKED), or has others: feeds would be fetched twice, and entries stored twice.
 * store: for the error.
 */
int fw_store_server_known(const char *store, const char *version, struct fw_err *err);

/*
 * A server's clock showed server_ms in answer to what was asked at asked_ms (monotonic): *ahead_ms, it less our monotonic one. False,
 * and nothing is noted, when that took more than FW_CLOCK_SLACK_MS (packets were lost, or we were stopped): by a clock that is ahead one
 * would take back what others still hold. One asks again, FW_CLOCK_TRIES times in all; then fw_store_clock_late() has the words.
 */
#define FW_CLOCK_SLACK_MS 1000
#define FW_CLOCK_TRIES 5
bool fw_store_clock_note(int64_t *ahead_ms, int64_t server_ms, int64_t asked_ms);
int fw_store_clock_late(const char *name, struct fw_err *err); /* FW_EAGAIN */

/* Copy a record's bytes into the arena; false out of memory. */
bool fw_store_record_dup(struct fw_arena *a, struct fw_record *r);
int fw_store_record_missing(const char *name, struct fw_str kind, struct fw_err *err); /* FW_ENOTFOUND */

/* Copy a feed's strings into the arena; false out of memory. */
bool fw_store_feed_dup(struct fw_arena *a, struct fw_feed *feed);

#endif
