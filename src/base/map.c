/* SPDX-License-Identifier: ISC */
#include <assert.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/str.h"

static const char DELETED[] = ""; /* key.p of a deleted slot */

void fw_map_init(struct fw_map *m, uint64_t seed)
{
	*m = (struct fw_map){.seed = seed};
}

void fw_map_finish(struct fw_map *m)
{
	free(m->slot);
	fw_map_init(m, m->seed);
}

void fw_map_free(struct fw_map *m)
{
	size_t at = 0;

	for (void *value; (value = fw_map_next(m, &at, NULL)) != NULL;)
		free(value);
	fw_map_finish(m);
}

static struct fw_map_slot *map_find(const struct fw_map *m, struct fw_str key, uint64_t hash)
{
	if (!m->slot)
		return NULL;
	for (size_t i = (size_t)hash & m->mask; m->slot[i].key.p; i = (i + 1) & m->mask) {
		if (m->slot[i].value && m->slot[i].hash == hash && fw_str_eq(m->slot[i].key, key))
			return &m->slot[i];
	}
	return NULL;
}

static void map_insert(struct fw_map *m, struct fw_map_slot item)
{
	size_t i = (size_t)item.hash & m->mask;

	while (m->slot[i].key.p)
		i = (i + 1) & m->mask;
	m->slot[i] = item;
}

static int map_grow(struct fw_map *m)
{
	struct fw_map old = *m;
	size_t cap = 16;

	while (cap < (m->n + 1) * 2)
		cap *= 2;
	m->slot = calloc(cap, sizeof(*m->slot));
	if (!m->slot) {
		*m = old;
		return FW_ENOMEM;
	}
	m->mask = cap - 1;
	m->used = m->n;
	for (size_t i = 0; old.slot && i <= old.mask; i++) {
		if (old.slot[i].value)
			map_insert(m, old.slot[i]);
	}
	free(old.slot);
	return 0;
}

void *fw_map_get(const struct fw_map *m, struct fw_str key)
{
	struct fw_map_slot *s = map_find(m, key, fw_hash64_seed(key.p, key.len, m->seed));

	return s ? s->value : NULL;
}

void *fw_map_put(struct fw_map *m, struct fw_str key, void *value, int *rc)
{
	uint64_t hash = fw_hash64_seed(key.p, key.len, m->seed);
	struct fw_map_slot *s = map_find(m, key, hash);

	assert(value);
	*rc = 0;
	if (s) {
		void *old = s->value;

		s->key = key;
		s->value = value;
		return old;
	}
	if (!m->slot || (m->used + 1) * 4 > (m->mask + 1) * 3) {
		*rc = map_grow(m);
		if (*rc)
			return NULL;
	}
	if (!key.p)
		key.p = DELETED; /* an empty key is valid */
	map_insert(m, (struct fw_map_slot){key, hash, value});
	m->n++;
	m->used++;
	return NULL;
}

void *fw_map_add(struct fw_map *m, struct fw_str key, void *value, int *rc)
{
	void *there = fw_map_get(m, key);

	*rc = 0;
	return there ? there : fw_map_put(m, key, value, rc);
}

void *fw_map_del(struct fw_map *m, struct fw_str key)
{
	struct fw_map_slot *s = map_find(m, key, fw_hash64_seed(key.p, key.len, m->seed));
	void *old;

	if (!s)
		return NULL;
	old = s->value;
	*s = (struct fw_map_slot){{DELETED, 0}, 0, NULL};
	m->n--;
	return old;
}

void *fw_map_next(const struct fw_map *m, size_t *at, struct fw_str *key)
{
	while (m->slot && *at <= m->mask) {
		const struct fw_map_slot *s = &m->slot[(*at)++];

		if (s->value) {
			if (key)
				*key = s->key;
			return s->value;
		}
	}
	return NULL;
}
