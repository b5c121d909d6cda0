/* SPDX-License-Identifier: ISC */
/*
 * A place is an address with taken slots. Only these make others wait, so there are never more
 * places than visits in flight.
 *
 * A freed slot goes to the longest waiter at once, before that waiter is notified (CALLED), and
 * counts as taken. So no newcomer overtakes it. A waiter that cancels before it is notified passes
 * the slot on.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/cidr.h"
#include "base/map.h"
#include "base/str.h"
#include "fetch/crowd.h"

#include "base/banned.h" /* last */

struct line {
	struct fw_crowd_seat *first, *last;
};

struct fw_crowd_place {
	unsigned char key[16];
	uint32_t in_n;          /* taken slots, those of CALLED waiters included */
	struct line waiting;
};

struct fw_crowd {
	uint32_t max;
	struct fw_map places;   /* by key */
	struct line called;
};

static void line_put(struct line *l, struct fw_crowd_seat *s)
{
	s->prev = l->last;
	s->next = NULL;
	*(l->last ? &l->last->next : &l->first) = s;
	l->last = s;
}

static void line_out(struct line *l, struct fw_crowd_seat *s)
{
	*(s->prev ? &s->prev->next : &l->first) = s->next;
	*(s->next ? &s->next->prev : &l->last) = s->prev;
	s->prev = s->next = NULL;
}

int fw_crowd_create(uint32_t max, struct fw_crowd **out)
{
	struct fw_crowd *c = *out = calloc(1, sizeof(*c));

	if (!c)
		return FW_ENOMEM;
	assert(max);
	c->max = max;
	fw_map_init(&c->places, (uint64_t)(uintptr_t)c);
	return 0;
}

void fw_crowd_destroy(struct fw_crowd *c)
{
	if (!c)
		return;
	assert(!c->places.n && !c->called.first);
	fw_map_finish(&c->places);
	free(c);
}

void fw_crowd_key(const unsigned char address[16], unsigned char key[16])
{
	static const unsigned char NAT64[12] = {0x00, 0x64, 0xff, 0x9b}, MAPPED[12] = {[10] = 0xff, [11] = 0xff};

	memcpy(key, address, 16);
	if (memcmp(key, NAT64, 12) == 0) /* otherwise all NAT64 addresses would count as one */
		memcpy(key, MAPPED, 12);
	else if (!fw_ip_is4(key))
		memset(key + 8, 0, 8);
}

static struct fw_str key_str(const unsigned char key[16])
{
	return (struct fw_str){(const char *)key, 16};
}

static struct fw_crowd_place *place_open(struct fw_crowd *c, const unsigned char key[16])
{
	struct fw_crowd_place *p = calloc(1, sizeof(*p));
	int rc = 0;

	if (!p)
		return NULL;
	memcpy(p->key, key, 16);
	fw_map_put(&c->places, key_str(p->key), p, &rc);
	if (rc) {
		free(p);
		return NULL;
	}
	return p;
}

int fw_crowd_enter(struct fw_crowd *c, const unsigned char address[16], struct fw_crowd_seat *s)
{
	unsigned char key[16];
	struct fw_crowd_place *p;

	fw_crowd_key(address, key);
	if (s->state == FW_CROWD_IN && memcmp(s->place->key, key, 16) == 0)
		return 0;
	fw_crowd_leave(c, s);
	p = fw_map_get(&c->places, key_str(key));
	if (!p)
		p = place_open(c, key);
	if (!p)
		return FW_ENOMEM;
	s->place = p;
	if (p->in_n < c->max) {
		s->state = FW_CROWD_IN;
		p->in_n++;
	} else {
		s->state = FW_CROWD_WAITS;
		line_put(&p->waiting, s);
	}
	return 0;
}

static void place_free(struct fw_crowd *c, struct fw_crowd_place *p)
{
	struct fw_crowd_seat *next = p->waiting.first;

	assert(p->in_n && p->in_n <= c->max);
	if (next) {
		line_out(&p->waiting, next);
		line_put(&c->called, next);
		next->state = FW_CROWD_CALLED;
	} else if (--p->in_n == 0) {
		fw_map_del(&c->places, key_str(p->key));
		free(p);
	}
}

void fw_crowd_leave(struct fw_crowd *c, struct fw_crowd_seat *s)
{
	struct fw_crowd_place *p = s->place;
	enum fw_crowd_state was = s->state;

	s->place = NULL;
	s->state = FW_CROWD_NOWHERE;
	if (was == FW_CROWD_WAITS)
		line_out(&p->waiting, s);
	else if (was == FW_CROWD_CALLED)
		line_out(&c->called, s);
	if (was == FW_CROWD_IN || was == FW_CROWD_CALLED)
		place_free(c, p);
}

struct fw_crowd_seat *fw_crowd_next(struct fw_crowd *c)
{
	struct fw_crowd_seat *s = c->called.first;

	if (s) {
		line_out(&c->called, s);
		s->state = FW_CROWD_IN;
	}
	return s;
}

bool fw_crowd_calls(const struct fw_crowd *c)
{
	return c->called.first != NULL;
}

size_t fw_crowd_places(const struct fw_crowd *c)
{
	return c->places.n;
}
