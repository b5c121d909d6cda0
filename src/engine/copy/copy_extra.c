/* SPDX-License-Identifier: ISC */
/*
 * The rows that belong to no feed: pushed events, dead letters, records. Each kind is read from
 * both stores side by side, in order, and merged.
 *
 * Events that the target misses are added. It may have more: pushes that it received itself stay.
 * Records become those of the source: others are removed, so that an access token that was removed
 * from the source is gone from the copy too.
 *
 * The final comparison covers the events that existed when they were copied, and the records
 * without an expiry: others change meanwhile.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/str.h"
#include "engine/copy/copy.h"

union thing {
	struct fw_event event;
	struct fw_dead_letter dead;
	struct fw_record record;
};

/* The members that are compared; their strings are copied into the arena. */
/* clang-format off */
#define MEMBER(of, member, type) {#member, FW_FIELD_##type, 0, offsetof(struct fw_##of, member)}
/* clang-format on */
static const struct fw_field EVENT_FIELDS[] =
	{
		MEMBER(event, section, INT),
		MEMBER(event, item, INT),
		MEMBER(event, stamp_ms, INT),
		MEMBER(event, property, BYTES),
		MEMBER(event, remote_ip, BYTES),
},
			     DEAD_LETTER_FIELDS[] =
				     {
					     MEMBER(dead_letter, at_ms, INT),
					     MEMBER(dead_letter, row, BYTES),
					     MEMBER(dead_letter, reason, BYTES),
},
			     RECORD_FIELDS[] = {
				     MEMBER(record, kind, BYTES),
				     MEMBER(record, key, BYTES),
				     MEMBER(record, value, BYTES),
				     MEMBER(record, at_ms, INT),
				     MEMBER(record, until_ms, INT),
};

static const struct {
	const struct fw_field *field;
	/* small for records: some drivers read the whole page, and a record may be large */
	size_t n, page_rows;
} KINDS[] = {
	[COPY_EVENTS] = {EVENT_FIELDS, FW_N(EVENT_FIELDS), COPY_ROWS},
	[COPY_DEAD_LETTERS] = {DEAD_LETTER_FIELDS, FW_N(DEAD_LETTER_FIELDS), COPY_ROWS},
	[COPY_RECORDS] = {RECORD_FIELDS, FW_N(RECORD_FIELDS), 200},
};

/* one store, read page by page */
struct side {
	struct fw_store *st;
	/* strings of this page; of the previous one, whose last row is the cursor */
	struct fw_arena arena[2];
	unsigned arena_i;
	union thing at[COPY_ROWS];
	size_t n, i, bytes;
	bool over;
};

struct sides {
	struct copy *c;
	enum copy_kind kind;
	bool verify;
	struct side from, to, *reading;
	struct fw_event batch[COPY_ROWS]; /* to be written; their strings belong to from's page */
	size_t batch_n;
};

static int64_t extra_id(enum copy_kind kind, const union thing *t)
{
	return kind == COPY_EVENTS ? t->event.id : t->dead.id;
}

/* ---- reading ------------------------------------------------------------- */

static int page_add(struct sides *s, const union thing *t)
{
	struct side *d = s->reading;

	assert(d->n < KINDS[s->kind].page_rows);
	d->at[d->n] = *t;
	d->bytes += sizeof(*t) +
		copy_texts_dup(&d->arena[d->arena_i], KINDS[s->kind].field, KINDS[s->kind].n, &d->at[d->n]);
	if (d->arena[d->arena_i].failed)
		return fw_err_set(s->c->err, FW_ENOMEM, "copy: out of memory");
	return ++d->n == KINDS[s->kind].page_rows || d->bytes >= s->c->o->batch_bytes;
}

static int page_on_event(void *ctx, const struct fw_event *e)
{
	return page_add(ctx, &(union thing){.event = *e});
}

static int page_on_dead_letter(void *ctx, const struct fw_dead_letter *e)
{
	return page_add(ctx, &(union thing){.dead = *e});
}

static int page_on_record(void *ctx, const struct fw_record *r)
{
	return page_add(ctx, &(union thing){.record = *r});
}

/* Reads the next page, of at most limit rows. */
static int extra_page_read(struct sides *s, struct side *d, size_t limit)
{
	union thing last = d->n ? d->at[d->n - 1] : (union thing){.event.id = 0};
	struct fw_record_query q = {.after_kind = last.record.kind, .after_key = last.record.key, .limit = limit};
	struct fw_err *err = s->c->err;

	d->arena_i = !d->arena_i;
	fw_arena_reset(&d->arena[d->arena_i], s->c->o->batch_bytes);
	d->n = d->i = d->bytes = 0;
	s->reading = d;
	switch (s->kind) {
	case COPY_EVENTS:
		return copy_list_result(fw_store_event_list(d->st, last.event.id, limit, page_on_event, s, err));
	case COPY_DEAD_LETTERS:
		return copy_list_result(
			fw_store_dead_letter_list(d->st, last.dead.id, limit, page_on_dead_letter, s, err));
	default:
		return copy_list_result(fw_store_record_list(d->st, &q, page_on_record, s, err));
	}
}

/* The current row of a side. NULL: the end, or an error in *rc. */
static const union thing *side_current(struct sides *s, struct side *d, int *rc)
{
	if (d->i == d->n && !*rc && !d->over) {
		*rc = extra_page_read(s, d, KINDS[s->kind].page_rows);
		d->over = !d->n;
	}
	return *rc || d->i == d->n ? NULL : &d->at[d->i];
}

/* Orders two rows of the two stores. */
static int extra_order(enum copy_kind kind, const union thing *a, const union thing *b)
{
	int d;

	if (!a || !b)
		return !a - !b;
	if (kind != COPY_RECORDS)
		return (extra_id(kind, a) > extra_id(kind, b)) - (extra_id(kind, a) < extra_id(kind, b));
	d = fw_str_order(a->record.kind, b->record.kind);
	return d ? d : fw_str_order(a->record.key, b->record.key);
}

static bool extra_equal(enum copy_kind kind, const union thing *a, const union thing *b)
{
	for (size_t i = 0; i < KINDS[kind].n; i++) {
		const struct fw_field *f = &KINDS[kind].field[i];

		if (fw_field_is_text(f) ? !fw_str_eq(fw_field_str(f, a), fw_field_str(f, b)) :
					  fw_field_int(f, a) != fw_field_int(f, b))
			return false;
	}
	return true;
}

/* ---- copying, comparing -------------------------------------------------- */

/* Writes the source's row to the target, or removes the target's; events as a whole batch. */
static int extra_put_once(struct sides *s, const union thing *a, const union thing *b)
{
	struct copy *c = s->c;
	struct fw_dead_letter dead;

	switch (s->kind) {
	case COPY_EVENTS:
		return fw_store_event_put(c->to, s->batch, s->batch_n, c->err);
	case COPY_DEAD_LETTERS:
		dead = a->dead;
		return fw_store_dead_letter_put(c->to, &dead, c->err);
	default:
		return a ? fw_store_record_put(c->to, &a->record, false, NULL, c->err) :
			   fw_store_record_remove(c->to, b->record.kind, b->record.key, FW_STR_NONE, c->err);
	}
}

static int extra_put(struct sides *s, const union thing *a, const union thing *b, size_t n)
{
	struct fw_copy_stats *out = s->c->s;
	int64_t *const count[] = {
		[COPY_EVENTS] = &out->events, [COPY_DEAD_LETTERS] = &out->dead_letters, [COPY_RECORDS] = &out->records};
	int rc, i = 0;

	do
		rc = extra_put_once(s, a, b);
	while (copy_again(rc, &i));
	*count[s->kind] += rc ? 0 : (int64_t)n;
	return !a && rc == FW_ENOTFOUND ? 0 : rc; /* a record that has expired meanwhile */
}

/* At the end of a page of the source: writes the events that the target misses. */
static int extra_page_finish(struct sides *s)
{
	int rc = s->batch_n ? extra_put(s, &s->from.at[0], NULL, s->batch_n) : 0;

	s->batch_n = 0;
	if (!s->verify && s->kind != COPY_RECORDS)
		s->c->s->bytes += s->from.bytes;
	s->from.bytes = 0;
	if (!rc)
		copy_progress(s->c);
	return rc;
}

/*
 * Brings the target in line. a: the source's row, or NULL; b: the target's, or NULL. They have the
 * same key and differ.
 */
static int extra_sync(struct sides *s, const union thing *a, const union thing *b)
{
	if (s->kind != COPY_RECORDS && b)
		return 0;
	if (s->kind != COPY_EVENTS)
		return extra_put(s, a, b, 1);
	assert(a && s->batch_n < COPY_ROWS); /* events are only added */
	s->batch[s->batch_n++] = a->event;
	return 0;
}

static void extra_report(struct sides *s, const union thing *a, const union thing *b)
{
	const char *how = !b ? "missing at the target" : !a ? "not at the source" : "different at the target";
	const union thing *t = a ? a : b;

	assert(t); /* extra_merge() found it in at least one store */
	if (s->kind != COPY_RECORDS)
		copy_differs(s->c, "%s %lld: %s", s->kind == COPY_DEAD_LETTERS ? "dead letter" : "event",
			(long long)extra_id(s->kind, t), how);
	else if ((!a || a->record.until_ms == FW_NO_DATE) && (!b || b->record.until_ms == FW_NO_DATE))
		copy_differs(s->c, "record %.*s '%.*s': %s", FW_STR_ARG(t->record.kind),
			FW_STR_ARG(fw_str_sub(t->record.key, 0, 60)), how);
}

/* Walks both stores: events up to last_id, or all records. *seen: the source's events. */
static int extra_merge(struct sides *s, int64_t last_id, struct copy_seen *seen)
{
	bool records = s->kind == COPY_RECORDS;
	int rc = 0;

	assert(s->from.st == s->c->from && s->to.st == s->c->to);
	while (!rc) {
		const union thing *a, *b;
		int d;

		if (s->from.i == s->from.n)
			rc = extra_page_finish(s);
		a = side_current(s, &s->from, &rc);
		b = side_current(s, &s->to, &rc);
		d = extra_order(s->kind, a, b);
		if (rc || (!a && (!b || !records)) || (!records && extra_id(s->kind, a) > last_id))
			break;
		a = d <= 0 ? a : NULL;
		b = d >= 0 ? b : NULL;
		if (a && !records)
			*seen = (struct copy_seen){seen->n + 1, extra_id(s->kind, a)};
		if ((!a && !records) || (a && b && extra_equal(s->kind, a, b)))
			;
		else if (s->verify)
			extra_report(s, a, b);
		else
			rc = extra_sync(s, a, b);
		s->from.i += d <= 0;
		s->to.i += d >= 0;
	}
	return rc;
}

static struct sides *sides_new(struct copy *c, enum copy_kind kind)
{
	struct sides *s = calloc(1, sizeof(*s));

	if (!s) {
		fw_err_set(c->err, FW_ENOMEM, "copy: out of memory");
		return NULL;
	}
	s->c = c;
	s->kind = kind;
	s->from.st = c->from;
	s->to.st = c->to;
	return s;
}

static void sides_free(struct sides *s)
{
	for (size_t i = 0; i < 2; i++) {
		fw_arena_finish(&s->from.arena[i]);
		fw_arena_finish(&s->to.arena[i]);
	}
	free(s);
}

int copy_extra(struct copy *c, enum copy_kind kind, bool verify)
{
	struct sides *s = sides_new(c, kind);
	struct copy_seen seen = {0};
	int rc;

	if (!s)
		return FW_ENOMEM;
	s->verify = verify;
	rc = extra_merge(s, verify ? c->seen[kind].last_id : INT64_MAX, &seen);
	if (!verify)
		c->seen[kind] = seen;
	else if (seen.n != c->seen[kind].n)
		c->s->source_changed = true;
	sides_free(s);
	return rc;
}

int copy_extra_any(struct copy *c, enum copy_kind kind, bool *any)
{
	struct sides *s = sides_new(c, kind);
	int rc;

	if (!s)
		return FW_ENOMEM;
	rc = extra_page_read(s, &s->to, 1);
	*any = s->to.n > 0;
	sides_free(s);
	return rc;
}
