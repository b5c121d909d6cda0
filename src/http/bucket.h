/* SPDX-License-Identifier: ISC */
/*
 * Token buckets: a sender may send so many requests at once, and as many again over a time. The table
 * has a fixed size. Any thread; time comes in as an argument.
 */
#ifndef FW_HTTP_BUCKET_H
#define FW_HTTP_BUCKET_H

#include "feedwheel/types.h"

#define BUCKET_WAYS 4
#define BUCKET_SETS 1024

struct buckets;

/* max at once, and max in each within_ms; 0: no limit. NULL: no memory. */
struct buckets *buckets_create(int64_t max, int64_t within_ms);
void buckets_destroy(struct buckets *b); /* NULL is fine */
/* One more request of this sender. 0: it may; else the ms to wait, and it is not counted. */
int64_t buckets_take(struct buckets *b, uint64_t sender, int64_t now_ms);

#endif
