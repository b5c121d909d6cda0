/* SPDX-License-Identifier: ISC */
/*
 * Records of one store into another one. Both are read side by side in order of kind and key: what is missing at the target or is not the
 * same is put there, what the source does not have is taken away, so that an access token that was removed is removed in the copy too.
 *
 * Those that run out come and go while one looks, so only the others are compared at the end.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/str.h"
#include "engine/copy/copy.h"

#define PAGE_ROWS 200

struct side { /* one store's records, a page at a time */
	struct fw_store *st;
	struct fw_arena arena;
	struct fw_record at[PAGE_ROWS];
	struct fw_record last;       /* cursor, in keep */
	char keep[FW_RECORD_KIND_MAX + FW_RECORD_KEY_MAX];
	size_t n, i, bytes;
	bool over;
};

struct sides {
	struct copy *c;
	struct side from, to;
	struct side *reading;
};

static int record_take(void *ctx, const struct fw_record *r)
{
	struct sides *s = ctx;
	struct side *d = s->reading;
	struct fw_record *to = &d->at[d->n];

	*to = *r;
	to->kind = fw_arena_str(&d->arena, r->kind);
	to->key = fw_arena_str(&d->arena, r->key);
	to->value = fw_arena_str(&d->arena, r->value);
	if (d->arena.failed)
		return fw_err_set(s->c->err, FW_ENOMEM, "copy: out of memory");
	d->bytes += sizeof(*r) + r->kind.len + r->key.len + r->value.len;
	return ++d->n == PAGE_ROWS || d->bytes >= s->c->o->batch_bytes;
}

/* Where the next page begins. */
static void cursor_keep(struct side *d)
{
	const struct fw_record *r = &d->at[d->n - 1];

	memcpy(d->keep, r->kind.p, r->kind.len);
	memcpy(d->keep + r->kind.len, r->key.p, r->key.len);
	d->last.kind = (struct fw_str){d->keep, r->kind.len};
	d->last.key = (struct fw_str){d->keep + r->kind.len, r->key.len};
}

/* The next record of a side; NULL: there is none, or *rc says why. */
static const struct fw_record *head(struct sides *s, struct side *d, int *rc)
{
	struct fw_record_query q = {.after_kind = d->last.kind, .after_key = d->last.key, .limit = PAGE_ROWS};

	if (d->i < d->n)
		return &d->at[d->i];
	if (*rc || d->over)
		return NULL;
	fw_arena_reset(&d->arena, s->c->o->batch_bytes);
	d->n = d->i = d->bytes = 0;
	s->reading = d;
	*rc = copy_walked(fw_store_record_list(d->st, &q, record_take, s, s->c->err));
	if (!d->n)
		d->over = true;
	if (*rc || !d->n)
		return NULL;
	cursor_keep(d);
	return &d->at[0];
}

static int compare(struct fw_str a, struct fw_str b)
{
	int d = memcmp(a.p, b.p, FW_MIN(a.len, b.len));

	return d ? d : (a.len > b.len) - (a.len < b.len);
}

/* Which stands first? */
static int order(const struct fw_record *a, const struct fw_record *b)
{
	int d;

	if (!a || !b)
		return !a - !b;
	d = compare(a->kind, b->kind);
	return d ? d : compare(a->key, b->key);
}

static bool same(const struct fw_record *a, const struct fw_record *b)
{
	return fw_str_eq(a->value, b->value) && a->at_ms == b->at_ms && a->until_ms == b->until_ms;
}

/* a: the source's, or NULL; b: the target's, or NULL; both have one name. */
static int level(struct copy *c, const struct fw_record *a, const struct fw_record *b)
{
	int rc, i = 0;

	if (a && b && same(a, b))
		return 0;
	do
		rc = a ? fw_store_record_put(c->to, a, false, NULL, c->err) : fw_store_record_remove(c->to, b->kind, b->key, FW_STR_NONE, c->err);
	while (copy_again(rc, &i));
	c->s->records += !rc;
	return !a && rc == FW_ENOTFOUND ? 0 : rc; /* it has run out meanwhile */
}

static int tell(struct copy *c, const struct fw_record *a, const struct fw_record *b)
{
	const struct fw_record *r = a ? a : b;

	if ((a && a->until_ms != FW_NO_DATE) || (b && b->until_ms != FW_NO_DATE) || (a && b && same(a, b)))
		return 0;
	assert(r); /* walk() met it on one side at least */
	copy_differs(c, "record %.*s '%.*s': %s", FW_STR_ARG(r->kind), FW_STR_ARG(fw_str_sub(r->key, 0, 60)),
		!b ? "missing at the target" : !a ? "not at the source" : "another one at the target");
	return 0;
}

static int walk(struct copy *c, int (*met)(struct copy *c, const struct fw_record *a, const struct fw_record *b))
{
	struct sides *s = calloc(1, sizeof(*s));
	int rc = 0;

	if (!s)
		return fw_err_set(c->err, FW_ENOMEM, "copy: out of memory");
	s->c = c;
	s->from.st = c->from;
	s->to.st = c->to;
	fw_arena_init(&s->from.arena, 0);
	fw_arena_init(&s->to.arena, 0);
	while (!rc) {
		const struct fw_record *a = head(s, &s->from, &rc), *b = head(s, &s->to, &rc);
		int d = order(a, b);

		if (rc || (!a && !b))
			break;
		rc = met(c, d <= 0 ? a : NULL, d >= 0 ? b : NULL);
		s->from.i += d <= 0;
		s->to.i += d >= 0;
	}
	fw_arena_finish(&s->from.arena);
	fw_arena_finish(&s->to.arena);
	free(s);
	return rc;
}

int copy_records(struct copy *c)
{
	int rc = walk(c, level);

	if (!rc)
		copy_progress(c);
	return rc;
}

int copy_records_verify(struct copy *c)
{
	return walk(c, tell);
}

static int one_seen(void *ctx, const struct fw_record *r)
{
	(void)r;
	*(bool *)ctx = true;
	return 1;
}

int copy_records_any(struct copy *c, bool *any)
{
	*any = false;
	return copy_walked(fw_store_record_list(c->to, &(struct fw_record_query){.limit = 1}, one_seen, any, c->err));
}
