/* SPDX-License-Identifier: ISC */
/*
 * Non-cryptographic hashing with xxHash (XXH3). Values are stored on disk, so the functions must
 * never change.
 */
#ifndef FW_BASE_HASH_H
#define FW_BASE_HASH_H

#define XXH_STATIC_LINKING_ONLY /* for the state's size, so that it can live on the stack */
#include <xxhash.h>

#include "feedwheel/types.h"

struct fw_hash128 {
	unsigned char b[16]; /* canonical (big endian) form */
};

uint64_t fw_hash64(const void *p, size_t n);
uint64_t fw_hash64_seed(const void *p, size_t n, uint64_t seed);
struct fw_hash128 fw_hash128(const void *p, size_t n);

/* A hash over several parts. Lengths are hashed too, so ("ab","c") differs from ("a","bc"). */
struct fw_hasher {
	XXH3_state_t state; /* 576 bytes, aligned to 64 */
};
void fw_hasher_init(struct fw_hasher *h);
void fw_hasher_add(struct fw_hasher *h, struct fw_str part);
uint64_t fw_hasher_end64(struct fw_hasher *h);
struct fw_hash128 fw_hasher_end128(struct fw_hasher *h);

#endif
