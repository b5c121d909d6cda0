/* SPDX-License-Identifier: ISC */
#include <string.h>

#include "base/hash.h"

uint64_t fw_hash64(const void *p, size_t n)
{
	return XXH3_64bits(p, n);
}

uint64_t fw_hash64_seed(const void *p, size_t n, uint64_t seed)
{
	return XXH3_64bits_withSeed(p, n, seed);
}

static struct fw_hash128 hash128_canonical(XXH128_hash_t h)
{
	XXH128_canonical_t c;
	struct fw_hash128 out;

	XXH128_canonicalFromHash(&c, h);
	memcpy(out.b, c.digest, sizeof(out.b));
	return out;
}

struct fw_hash128 fw_hash128(const void *p, size_t n)
{
	return hash128_canonical(XXH3_128bits(p, n));
}

void fw_hasher_init(struct fw_hasher *h)
{
	XXH3_INITSTATE(&h->state);
	XXH3_128bits_reset(&h->state);
}

void fw_hasher_add(struct fw_hasher *h, struct fw_str part)
{
	unsigned char n[9];

	for (int i = 0; i < 8; i++)
		n[i] = (unsigned char)((uint64_t)part.len >> (8 * i));
	n[8] = part.p ? 1 : 0; /* absent differs from empty */
	XXH3_128bits_update(&h->state, n, sizeof(n));
	if (part.len)
		XXH3_128bits_update(&h->state, part.p, part.len);
}

uint64_t fw_hasher_end64(struct fw_hasher *h)
{
	return XXH3_128bits_digest(&h->state).low64;
}

struct fw_hash128 fw_hasher_end128(struct fw_hasher *h)
{
	return hash128_canonical(XXH3_128bits_digest(&h->state));
}
