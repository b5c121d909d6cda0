/* SPDX-License-Identifier: ISC */
/*
 * What sanitising made of contents, for as long as they are asked for: an entry has one place, by its number, and gives way to another that
 * has the same; all together take max_bytes. The content's hash is part of the key, so nothing here is ever out of date.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "engine/ops/view_cache.h"
#include "base/banned.h"

#define PLACES 1024

struct place {
	int64_t id; /* 0: empty */
	uint64_t hash;
	char *text;
	size_t len;
};

struct fw_view_cache {
	pthread_mutex_t lock;
	size_t max_bytes, bytes;
	size_t hand; /* the next place to be emptied when there is no room */
	struct place place[PLACES];
};

struct fw_view_cache *fw_view_cache_new(size_t max_bytes)
{
	struct fw_view_cache *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->max_bytes = max_bytes;
	pthread_mutex_init(&c->lock, NULL);
	return c;
}

static void empty(struct fw_view_cache *c, struct place *p)
{
	c->bytes -= p->len;
	free(p->text);
	*p = (struct place){0};
}

void fw_view_cache_free(struct fw_view_cache *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < PLACES; i++)
		empty(c, &c->place[i]);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

bool view_cache_write(struct fw_view_cache *c, int64_t id, uint64_t hash, struct fw_json *j, const char *key)
{
	const struct place *p = &c->place[(uint64_t)id % PLACES];
	bool found;

	pthread_mutex_lock(&c->lock);
	found = p->id == id && p->hash == hash;
	if (found)
		fw_json_str(j, key, (struct fw_str){p->text, p->len});
	pthread_mutex_unlock(&c->lock);
	return found;
}

void view_cache_keep(struct fw_view_cache *c, int64_t id, uint64_t hash, char *text, size_t len)
{
	struct place *p = &c->place[(uint64_t)id % PLACES];

	if (id <= 0 || len > c->max_bytes / 4) {
		free(text);
		return;
	}
	pthread_mutex_lock(&c->lock);
	empty(c, p);
	while (c->bytes + len > c->max_bytes)
		empty(c, &c->place[c->hand++ % PLACES]);
	*p = (struct place){id, hash, text, len};
	c->bytes += len;
	pthread_mutex_unlock(&c->lock);
}
