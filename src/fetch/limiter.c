/* SPDX-License-Identifier: ISC */
/*
 * A place is an address with taken slots. Only these make others wait, so there are never more
 * places than visits in flight.
 *
 * A freed slot goes to the longest waiter at once, before that waiter is notified (GRANTED), and
 * counts as taken. So no newcomer overtakes it. A waiter that cancels before it is notified passes
 * the slot on.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/cidr.h"
#include "base/map.h"
#include "base/str.h"
#include "fetch/limiter.h"

struct waiter_list {
	struct fw_limiter_slot *first, *last;
};

struct fw_limiter_address {
	unsigned char key[16];
	uint32_t taken_n; /* taken slots, those of GRANTED waiters included */
	struct waiter_list waiting;
};

struct fw_limiter {
	uint32_t max;
	struct fw_map addresses; /* by key */
	struct waiter_list granted;
};

static void waiter_list_put(struct waiter_list *l, struct fw_limiter_slot *s)
{
	s->prev = l->last;
	s->next = NULL;
	*(l->last ? &l->last->next : &l->first) = s;
	l->last = s;
}

static void waiter_list_remove(struct waiter_list *l, struct fw_limiter_slot *s)
{
	*(s->prev ? &s->prev->next : &l->first) = s->next;
	*(s->next ? &s->next->prev : &l->last) = s->prev;
	s->prev = s->next = NULL;
}

int fw_limiter_create(uint32_t max, struct fw_limiter **out)
{
	struct fw_limiter *c = *out = calloc(1, sizeof(*c));

	if (!c)
		return FW_ENOMEM;
	assert(max);
	c->max = max;
	fw_map_init(&c->addresses, (uint64_t)(uintptr_t)c);
	return 0;
}

void fw_limiter_destroy(struct fw_limiter *c)
{
	if (!c)
		return;
	assert(!c->addresses.n && !c->granted.first);
	fw_map_finish(&c->addresses);
	free(c);
}

void fw_limiter_key(const unsigned char address[16], unsigned char key[16])
{
	static const unsigned char NAT64[12] = {0x00, 0x64, 0xff, 0x9b}, MAPPED[12] = {[10] = 0xff, [11] = 0xff};

	memcpy(key, address, 16);
	if (memcmp(key, NAT64, 12) == 0) /* otherwise all NAT64 addresses would count as one */
		memcpy(key, MAPPED, 12);
	else if (!fw_ip_is4(key))
		memset(key + 8, 0, 8);
}

static struct fw_str address_key_str(const unsigned char key[16])
{
	return (struct fw_str){(const char *)key, 16};
}

static struct fw_limiter_address *address_open(struct fw_limiter *c, const unsigned char key[16])
{
	struct fw_limiter_address *p = calloc(1, sizeof(*p));
	int rc = 0;

	if (!p)
		return NULL;
	memcpy(p->key, key, 16);
	fw_map_put(&c->addresses, address_key_str(p->key), p, &rc);
	if (rc) {
		free(p);
		return NULL;
	}
	return p;
}

int fw_limiter_acquire(struct fw_limiter *c, const unsigned char address[16], struct fw_limiter_slot *s)
{
	unsigned char key[16];
	struct fw_limiter_address *p;

	fw_limiter_key(address, key);
	if (s->state == FW_LIMITER_HELD && memcmp(s->address->key, key, 16) == 0)
		return 0;
	fw_limiter_release(c, s);
	p = fw_map_get(&c->addresses, address_key_str(key));
	if (!p)
		p = address_open(c, key);
	if (!p)
		return FW_ENOMEM;
	s->address = p;
	if (p->taken_n < c->max) {
		s->state = FW_LIMITER_HELD;
		p->taken_n++;
	} else {
		s->state = FW_LIMITER_WAITING;
		waiter_list_put(&p->waiting, s);
	}
	return 0;
}

static void address_free_slot(struct fw_limiter *c, struct fw_limiter_address *p)
{
	struct fw_limiter_slot *next = p->waiting.first;

	assert(p->taken_n && p->taken_n <= c->max);
	if (next) {
		waiter_list_remove(&p->waiting, next);
		waiter_list_put(&c->granted, next);
		next->state = FW_LIMITER_GRANTED;
	} else if (--p->taken_n == 0) {
		fw_map_del(&c->addresses, address_key_str(p->key));
		free(p);
	}
}

void fw_limiter_release(struct fw_limiter *c, struct fw_limiter_slot *s)
{
	struct fw_limiter_address *p = s->address;
	enum fw_limiter_state was = s->state;

	s->address = NULL;
	s->state = FW_LIMITER_IDLE;
	if (was == FW_LIMITER_WAITING)
		waiter_list_remove(&p->waiting, s);
	else if (was == FW_LIMITER_GRANTED)
		waiter_list_remove(&c->granted, s);
	if (was == FW_LIMITER_HELD || was == FW_LIMITER_GRANTED)
		address_free_slot(c, p);
}

struct fw_limiter_slot *fw_limiter_next(struct fw_limiter *c)
{
	struct fw_limiter_slot *s = c->granted.first;

	if (s) {
		waiter_list_remove(&c->granted, s);
		s->state = FW_LIMITER_HELD;
	}
	return s;
}

bool fw_limiter_has_next(const struct fw_limiter *c)
{
	return c->granted.first != NULL;
}

size_t fw_limiter_addresses(const struct fw_limiter *c)
{
	return c->addresses.n;
}
