/* SPDX-License-Identifier: ISC */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/str.h"
#include "base/url.h"
#include "engine/run/name_cooldown.h"

#define NAME_N 4096
#define KEY_N 512

struct name_cooldown {
	uint64_t name;
	int64_t until_ms;
};

/* one name's cooldown, as evidence about the host it shares */
struct cooldown_seen {
	uint64_t name;
	int64_t at_ms, pause_ms;
};

struct host_cooldowns_seen {
	uint64_t key;
	struct cooldown_seen cooldown_seen[HOST_COOLDOWN_NAMES - 1]; /* newest first; at_ms 0: empty */
};

struct name_cooldowns {
	uint64_t seed;
	int64_t last_until_ms; /* end of the last cooldown */
	struct name_cooldown name[NAME_N];
	struct host_cooldowns_seen key[KEY_N];
};

struct name_cooldowns *name_cooldowns_create(uint64_t seed)
{
	struct name_cooldowns *p = calloc(1, sizeof(*p));

	if (p)
		p->seed = seed;
	return p;
}

void name_cooldowns_destroy(struct name_cooldowns *p)
{
	free(p);
}

static uint64_t cooldown_hash(const struct name_cooldowns *p, const char *word)
{
	return fw_hash64_seed(word, strlen(word), p->seed);
}

/*
 * Do enough other names at this host want a cooldown too? *pause_ms: the shortest of their
 * cooldowns.
 */
static bool host_wants_cooldown(
	struct name_cooldowns *p, uint64_t key, uint64_t name, int64_t now_ms, int64_t *pause_ms)
{
	struct host_cooldowns_seen *k = &p->key[key % KEY_N];
	struct cooldown_seen heard[HOST_COOLDOWN_NAMES] = {{name, now_ms, *pause_ms}};
	size_t n = 1;

	if (k->key != key)
		*k = (struct host_cooldowns_seen){.key = key};
	for (size_t i = 0; i < FW_N(k->cooldown_seen); i++) {
		const struct cooldown_seen *s = &k->cooldown_seen[i];

		if (s->at_ms && s->name != name && now_ms - s->at_ms < HOST_COOLDOWN_WITHIN_MS)
			heard[n++] = *s;
	}
	memset(k->cooldown_seen, 0, sizeof(k->cooldown_seen));
	if (n < HOST_COOLDOWN_NAMES) {
		memcpy(k->cooldown_seen, heard, n * sizeof(*heard));
		return false;
	}
	/* start again: the next cooldown of the host takes three names again */
	*pause_ms = FW_MIN(*pause_ms, HOST_COOLDOWN_MAX_MS);
	for (size_t i = 0; i < n; i++)
		*pause_ms = FW_MIN(*pause_ms, heard[i].pause_ms);
	return true;
}

void name_cooldown_learn(struct name_cooldowns *p, struct visit *v, int64_t now_ms)
{
	int64_t pause_ms = v->name_cooldown_ms, until_ms = now_ms + pause_ms;
	char name[HOST_KEY_MAX], key[HOST_KEY_MAX];
	struct name_cooldown *place;
	uint64_t hash;

	if (!pause_ms || !fw_url_host(v->fetch.final_url, name, sizeof(name)))
		return;
	hash = cooldown_hash(p, name);
	place = &p->name[hash % NAME_N];
	*place = (struct name_cooldown){hash, place->name == hash ? FW_MAX(until_ms, place->until_ms) : until_ms};
	p->last_until_ms = FW_MAX(p->last_until_ms, until_ms);
	fw_debug("%s: cooldown of %lld s for its feeds", name, (long long)(pause_ms / 1000));
	/* a redirect led to another host: its response says nothing about this one */
	if (!fw_url_host(v->feed.url, key, sizeof(key)) || strcmp(name, key) != 0 ||
		!fw_store_feed_host(&v->feed, key, sizeof(key)))
		return;
	if (!host_wants_cooldown(p, cooldown_hash(p, key), hash, now_ms, &pause_ms))
		return;
	v->host_health = FW_HOST_THROTTLED;
	v->cooldown_until_ms = now_ms + pause_ms;
	fw_info("%s: cooldown of %lld s for the whole host: %d of its names want one, the last of them %s", key,
		(long long)(pause_ms / 1000), HOST_COOLDOWN_NAMES, name);
}

int64_t name_cooldown_until(const struct name_cooldowns *p, struct fw_str url, int64_t now_ms)
{
	char name[HOST_KEY_MAX];
	const struct name_cooldown *place;
	uint64_t hash;

	if (p->last_until_ms <= now_ms || !fw_url_host(url, name, sizeof(name)))
		return 0;
	hash = cooldown_hash(p, name);
	place = &p->name[hash % NAME_N];
	return place->name == hash && place->until_ms > now_ms ? place->until_ms : 0;
}
