/* SPDX-License-Identifier: ISC */
/*
 * What a user of a store's database does without feedwheel: statements in the engine's own client
 * library, commands to a Redis server. A store is named by its URL, as under_test's servers write
 * them.
 */
#ifndef TEST_STORE_CLIENT_H
#define TEST_STORE_CLIENT_H

#include "common.h"

/*
 * Runs SQL statements. The rows of the last one that has some are appended to out: a line each, its
 * cells separated by '|'; NULL is empty, and 150.000 is 150. Returns the server's words if it
 * refuses, until the next call; else NULL. Each call is a connection of its own.
 */
const char *client_try(const char *url, const char *sql, struct fw_buf *out);
void client_run(const char *url, const char *sql); /* the test fails if it is refused */
/* The rows as a text, until the call after the next. */
const char *client_rows(const char *url, const char *sql);

/*
 * PostgreSQL: a client that listens on the channel of the store with this suffix. client_notified()
 * waits for the next notification and returns what it says, until the next call; its end frees.
 */
struct client_listener;
struct client_listener *client_listen(const char *url, const char *suffix);
const char *client_notified(struct client_listener *l);
void client_listen_end(struct client_listener *l);

/* Sends one command to Redis, the words end with NULL. Returns the reply as a text, likewise. */
const char *client_redis(const char *url, const char *const *word);
/* The prefix of the store's keys. */
const char *client_redis_prefix(const char *url);

#endif
