/* SPDX-License-Identifier: ISC */
/*
 * Compares two stores, feed by feed, a range of ids at a time. A fingerprint is a hash over a
 * feed's members, and an order-independent hash over its entry keys: key, content hash, and whether
 * retention deleted the entry. Contents are not read.
 *
 * The same fingerprints tell which feeds of an older copy have changed at the source. For these
 * only entries up to the target's highest id count; otherwise all feeds of a copy that was
 * interrupted among its entries would differ.
 */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/str.h"
#include "engine/copy/copy.h"

static void fields_hash(struct fw_hasher *h, const struct fw_field *f, size_t n, const void *row)
{
	for (size_t i = 0; i < n; i++) {
		struct fw_str s;
		int64_t v;

		if (fw_field_is_text(&f[i])) {
			s = fw_field_str(&f[i], row);
			fw_hasher_add(h, s.p ? s : FW_STR("\1absent"));
		} else {
			v = fw_field_int(&f[i], row);
			fw_hasher_add(h, (struct fw_str){(const char *)&v, sizeof(v)});
		}
	}
}

static int fingerprint_on_feed(void *ctx, const struct fw_feed *f)
{
	struct copy_fingerprints *p = ctx;
	struct fw_hasher h;

	if (f->id > p->last_id)
		return 1;
	assert(p->n < COPY_FEED_RANGE);
	fw_hasher_init(&h);
	fields_hash(&h, fw_schedule_fields, fw_schedule_field_n, f);
	fields_hash(&h, fw_feed_fields, fw_feed_field_n, f);
	p->at[p->n++] = (struct copy_fingerprint){
		.id = f->id, .created_ms = f->created_ms, .feed = fw_hasher_end64(&h)};
	return p->n == COPY_FEED_RANGE;
}

static int fingerprint_id_compare(const void *key, const void *at)
{
	int64_t a = *(const int64_t *)key, b = ((const struct copy_fingerprint *)at)->id;

	return FW_ORDER(a, b);
}

struct copy_fingerprint *copy_fingerprint_find(const struct copy_fingerprints *p, int64_t id)
{
	return bsearch(&id, p->at, p->n, sizeof(p->at[0]), fingerprint_id_compare);
}

struct key_reading {
	struct copy_fingerprints *p;
	int64_t known_id;
};

static int fingerprint_on_key(void *ctx, const struct fw_entry_key *k)
{
	const struct key_reading *r = ctx;
	struct copy_fingerprint *p = copy_fingerprint_find(r->p, k->feed_id);
	unsigned char row[16 + 8 + 1];
	uint64_t hash;

	if (!p)
		return 0; /* subscribed after the start */
	memcpy(row, k->key, 16);
	memcpy(row + 16, &k->hash, 8);
	row[24] = k->entry_id != 0;
	hash = fw_hash64(row, sizeof(row));
	p->keys += hash; /* a sum does not depend on the order */
	p->key_n++;
	p->entry_n += k->entry_id != 0;
	if (k->entry_id && k->entry_id <= r->known_id)
		p->known += hash;
	return 0;
}

static int fingerprints_read(
	struct copy *c, struct fw_store *st, int64_t first_id, bool with_keys, struct copy_fingerprints *p)
{
	struct fw_feed_query q = {.status = -1, .after_id = first_id - 1, .limit = COPY_FEED_RANGE};
	struct key_reading r = {p, c->known.last_entry_id};
	int rc;

	*p = (struct copy_fingerprints){.last_id = FW_MIN(first_id + COPY_FEED_RANGE - 1, c->end.last_feed_id)};
	rc = copy_list_result(fw_store_feed_list(st, &q, fingerprint_on_feed, p, c->err));
	return rc || !p->n || !with_keys ? rc :
					   fw_store_key_list(st, first_id, p->last_id, fingerprint_on_key, &r, c->err);
}

int copy_fingerprints_read(
	struct copy *c, int64_t first_id, bool with_keys, struct copy_fingerprints *from, struct copy_fingerprints *to)
{
	int rc = fingerprints_read(c, c->from, first_id, with_keys, from);

	return rc ? rc : fingerprints_read(c, c->to, first_id, with_keys, to);
}

/* ---- an older copy ------------------------------------------------------- */

int copy_check_target(struct copy *c)
{
	struct copy_fingerprints a, b;
	bool met = !c->known.feed_n;
	int rc = 0;

	if (c->known.last_feed_id > c->end.last_feed_id || c->known.last_entry_id > c->end.last_entry_id)
		return fw_err_set(c->err, FW_EINVAL,
			"the target has feeds or entries with higher ids than the source: name the source first,"
			" or copy into an empty store");
	for (int64_t id = 1; !rc && id <= c->known.last_feed_id; id += COPY_FEED_RANGE) {
		rc = copy_fingerprints_read(c, id, false, &a, &b);
		for (size_t i = 0; !rc && i < b.n; i++) {
			const struct copy_fingerprint *p = copy_fingerprint_find(&a, b.at[i].id);

			if (p && p->created_ms != b.at[i].created_ms)
				return fw_err_set(c->err, FW_EINVAL,
					"feed %lld differs between source and target: the target is not a copy of the "
					"source, copy into an empty store",
					(long long)p->id);
			met = met || p;
		}
	}
	if (!rc && !met)
		return fw_err_set(c->err, FW_EINVAL,
			"the target has none of the source's feeds, so it is not a copy of it: copy into an empty "
			"store");
	return rc;
}

/* Removes the feeds of a range that are in b and not in a, or differ. */
static int stale_remove_range(struct copy *c, const struct copy_fingerprints *a, const struct copy_fingerprints *b)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < b->n; i++) {
		const struct copy_fingerprint *p = copy_fingerprint_find(a, b->at[i].id);

		if (p && p->feed == b->at[i].feed && p->known == b->at[i].known)
			continue;
		rc = fw_store_unsubscribe(c->to, b->at[i].id, c->err);
		c->s->removed += !rc && !p;
	}
	return rc;
}

int copy_stale_remove(struct copy *c)
{
	struct copy_fingerprints a, b;
	int rc = 0;

	for (int64_t id = 1; !rc && id <= c->known.last_feed_id; id += COPY_FEED_RANGE) {
		rc = copy_fingerprints_read(c, id, true, &a, &b);
		rc = rc ? rc : stale_remove_range(c, &a, &b);
		c->s->verified = FW_MIN(id + COPY_FEED_RANGE - 1, c->known.last_feed_id);
		if (!rc)
			copy_progress(c);
	}
	return rc;
}

/* ---- the comparison ------------------------------------------------------ */

void copy_differs(struct copy *c, const char *fmt, ...)
{
	char words[300];
	va_list ap;

	c->s->differing++;
	if (!c->o->differs)
		return;
	va_start(ap, fmt);
	vsnprintf(words, sizeof(words), fmt, ap);
	va_end(ap);
	c->o->differs(c->o->ctx, words);
}

static void fingerprint_compare(struct copy *c, const struct copy_fingerprint *a, const struct copy_fingerprint *b)
{
	if (a->key_n != b->key_n || a->entry_n != b->entry_n)
		copy_differs(c,
			"feed %lld: %lld entries and %lld keys of deleted entries at the source, %lld and %lld at the "
			"target",
			(long long)a->id, (long long)a->entry_n, (long long)(a->key_n - a->entry_n),
			(long long)b->entry_n, (long long)(b->key_n - b->entry_n));
	else if (a->keys != b->keys)
		copy_differs(c, "feed %lld: the same number of entries, but different ones", (long long)a->id);
	else if (a->feed != b->feed)
		copy_differs(c, "feed %lld: the same entries, but a different state or settings", (long long)a->id);
	else
		return;
}

/* Compares two lists in order of id. */
static void fingerprints_compare(struct copy *c, const struct copy_fingerprints *a, const struct copy_fingerprints *b)
{
	size_t i = 0, k = 0;

	while (i < a->n || k < b->n) {
		if (k == b->n || (i < a->n && a->at[i].id < b->at[k].id))
			copy_differs(c, "feed %lld: missing at the target", (long long)a->at[i++].id);
		else if (i == a->n || b->at[k].id < a->at[i].id)
			copy_differs(c, "feed %lld: not at the source", (long long)b->at[k++].id);
		else
			fingerprint_compare(c, &a->at[i++], &b->at[k++]);
	}
}

int copy_verify(struct copy *c)
{
	struct fw_store_stats from, to;
	struct copy_fingerprints a, b;
	int rc = 0;

	for (int64_t id = 1; !rc && id <= c->end.last_feed_id; id += COPY_FEED_RANGE) {
		rc = copy_fingerprints_read(c, id, true, &a, &b);
		if (rc)
			return rc;
		fingerprints_compare(c, &a, &b);
		c->s->verified = FW_MIN(id + COPY_FEED_RANGE - 1, c->end.last_feed_id);
		copy_progress(c);
	}
	rc = fw_store_stats(c->from, &from, c->err);
	rc = rc ? rc : fw_store_stats(c->to, &to, c->err);
	if (rc)
		return rc;
	c->s->source_changed = from.last_entry_id != c->end.last_entry_id || from.last_visit_id != c->end.last_visit_id;
	/*
	 * retention may have deleted visits of feeds that are unchanged since the older copy; the
	 * target's own retention will delete them too
	 */
	if (!c->s->source_changed && (from.visit_n > to.visit_n || (!c->known.visit_n && from.visit_n != to.visit_n)))
		copy_differs(c, "%lld visits at the source, %lld at the target", (long long)from.visit_n,
			(long long)to.visit_n);
	if (!c->s->source_changed && from.entry_n != to.entry_n)
		copy_differs(c, "%lld entries at the source, %lld at the target", (long long)from.entry_n,
			(long long)to.entry_n);
	return 0;
}
