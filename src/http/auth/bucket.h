/* SPDX-License-Identifier: ISC */
/*
 * Token buckets: a rate limit for each sender. A sender may make max requests at once, and max
 * again over within_ms. The table has a fixed size. Any thread; time is an argument.
 */
#ifndef FW_HTTP_AUTH_BUCKET_H
#define FW_HTTP_AUTH_BUCKET_H

#include "feedwheel/types.h"

#define BUCKET_WAYS 4
#define BUCKET_SETS 1024

struct buckets;

/* max 0: no limit. NULL: no memory. */
struct buckets *buckets_create(int64_t max, int64_t within_ms);
void buckets_destroy(struct buckets *b); /* NULL is fine */
/* Take one token. 0: allowed; else how many ms to wait, and nothing is taken. */
int64_t buckets_take(struct buckets *b, uint64_t sender, int64_t now_ms);

#endif
