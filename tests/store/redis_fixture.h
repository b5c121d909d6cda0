/* SPDX-License-Identifier: ISC */
/* A Redis server for each case, in a folder of its own, and commands for it without the driver. */
#ifndef TEST_STORE_REDIS_FIXTURE_H
#define TEST_STORE_REDIS_FIXTURE_H

#include "drv.h"
#include "server_redis.h"

extern char dir[220], sock[240], url[400]; /* url: of a store on the server */
extern pid_t server;

/* The fixture of a case: it makes the names; the server is started by the case. */
void redis_setup(void);
void redis_teardown(void);
void server_up(const char *const *more); /* NULL-ended arguments, or NULL */
void server_down(int sig);
void server_wait(const char *path); /* until it answers at this socket */

/* Sends one command to a server and returns the start of its reply. */
const char *say_to(const char *path, const char *words);
const char *say(const char *words);
void told(const char *words); /* it must answer OK, or with a number */

struct store *open_at(const char *at, unsigned flags);
/* The last call failed with this code, and its message names the store and contains these words. */
void says(int rc, int code, const char *words);

#endif
