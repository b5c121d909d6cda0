/* SPDX-License-Identifier: ISC */
/* The private redis-server, for tests that start servers of their own. */
#ifndef TEST_STORE_SERVER_REDIS_H
#define TEST_STORE_SERVER_REDIS_H

#include <sys/types.h>

#include "servers.h"

extern const struct server server_redis;

/*
 * Starts another server with its data in dir; more arguments follow ("--port", "0", NULL). tied: it
 * ends with this process, however that ends.
 */
pid_t redis_run(const char *dir, bool tied, const char *const *more);
void redis_end(pid_t pid, int sig); /* and waits until it is gone */
/* True if a server answers PING at this socket. */
bool redis_answers(const char *path);

#endif
