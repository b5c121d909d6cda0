/* SPDX-License-Identifier: ISC */
/*
 * The auth rate limiter: counts wrong tokens for each client network (IPv4 /24, IPv6 /64). A
 * network with auth_failures_max of them within auth_failures_ms is throttled until that time is
 * over. The table has a fixed size. Any thread; time is an argument.
 */
#ifndef FW_HTTP_AUTH_LIMITER_H
#define FW_HTTP_AUTH_LIMITER_H

#include "feedwheel/types.h"

#define AUTH_LIMITER_WAYS 4
#define AUTH_LIMITER_SETS 1024

struct auth_limiter;

/* max wrong tokens within within_ms; max 0: no limit. NULL: no memory. */
struct auth_limiter *auth_limiter_create(int64_t max, int64_t within_ms);
void auth_limiter_destroy(struct auth_limiter *limiter);
/* The network of an address of 4 or 16 bytes; of an empty one (a Unix socket) too. Never 0. */
uint64_t auth_limiter_network(struct fw_str address);
/*
 * How many ms the network stays throttled; 0: it is not. While no network is, this costs one atomic
 * read.
 */
int64_t auth_limiter_wait_ms(struct auth_limiter *limiter, uint64_t network, int64_t now_ms);
/* Count a wrong token. True: from now on the network is throttled. */
bool auth_limiter_fail(struct auth_limiter *limiter, uint64_t network, int64_t now_ms);

#endif
