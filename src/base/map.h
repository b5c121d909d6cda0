/* SPDX-License-Identifier: ISC */
/*
 * A hash map from byte strings to pointers: open addressing. Keys are borrowed and must outlive
 * their items.
 */
#ifndef FW_BASE_MAP_H
#define FW_BASE_MAP_H

#include "feedwheel/types.h"

struct fw_map_slot {
	struct fw_str key; /* key.p NULL: free slot; value NULL: deleted */
	uint64_t hash;
	void *value;
};

struct fw_map {
	struct fw_map_slot *slot;
	size_t n, used, mask;
	uint64_t seed;
};

void fw_map_init(struct fw_map *m, uint64_t seed);
void fw_map_finish(struct fw_map *m);
void fw_map_free(struct fw_map *m); /* the same, and free() each value */
void *fw_map_get(const struct fw_map *m, struct fw_str key);
/* value must not be NULL. Returns the replaced value, or NULL. *rc: 0 or FW_ENOMEM. */
void *fw_map_put(struct fw_map *m, struct fw_str key, void *value, int *rc);
/* The same, but a value that is there stays. Returns it, or NULL: the key is new. */
void *fw_map_add(struct fw_map *m, struct fw_str key, void *value, int *rc);
void *fw_map_del(struct fw_map *m, struct fw_str key);
/*
 * Iterate: start with *at = 0; returns NULL at the end. Deleting the item just returned is allowed.
 */
void *fw_map_next(const struct fw_map *m, size_t *at, struct fw_str *key);

#endif
