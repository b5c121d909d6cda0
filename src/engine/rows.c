/* SPDX-License-Identifier: ISC */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/map.h"
#include "base/str.h"
#include "engine/rows.h"
#include "parse/feed/normalize.h"
#include "parse/parse.h"

#define MEMORY_FACTOR 8
#define MEMORY_MIN ((size_t)8 << 20)

size_t rows_memory_limit(size_t len, size_t max_bytes)
{
	size_t bytes = fw_size(len, MEMORY_FACTOR, MEMORY_MIN);

	return max_bytes ? FW_MIN(bytes, max_bytes) : bytes;
}

int rows_memory_exceeded(size_t len, size_t max_bytes, struct fw_err *err)
{
	size_t bytes = rows_memory_limit(len, max_bytes);

	if (bytes == max_bytes)
		return fw_err_set(err, FW_ELIMIT,
			"the document of %zu bytes needs more than %zu bytes of memory (raise parse_memory_bytes)", len,
			bytes);
	return fw_err_set(err, FW_ELIMIT,
		"the document of %zu bytes needs more than %zu bytes of memory: the limit for a feed of this size,"
		" whatever parse_memory_bytes is",
		len, bytes);
}

static struct fw_str row_authors_text(struct fw_arena *a, const struct fw_person *p)
{
	struct fw_str one = p ? (p->name.len ? p->name : p->email) : FW_STR_NONE, all;
	struct fw_buf b = FW_BUF_INIT(1000);

	if (!p || !p->next)
		return one;
	for (; p; p = p->next) {
		one = p->name.len ? p->name : p->email;
		if (one.len && b.len)
			fw_buf_adds(&b, ", ");
		fw_buf_addstr(&b, one);
	}
	all = fw_arena_str(a, fw_buf_str(&b));
	a->failed |= b.rc == FW_ENOMEM;
	fw_buf_finish(&b);
	return all;
}

/*
 * Replaces NUL by U+FFFD in JSON text, because PostgreSQL's jsonb, to which users cast it, refuses
 * NUL.
 */
static void json_replace_nul(struct fw_buf *json)
{
	static const char NUL[] = "\\u0000", INSTEAD[] = "\\ufffd";
	size_t n = sizeof(NUL) - 1;

	for (size_t i = 0; i + n <= json->len; i++) {
		if (json->p[i] != '\\')
			continue;
		if (memcmp(json->p + i, NUL, n) == 0)
			memcpy(json->p + i, INSTEAD, n);
		i++; /* skip the escaped character */
	}
}

static struct fw_str row_extra_text(struct fw_arena *a, const struct fw_entry *e, const struct fw_document *d)
{
	struct fw_buf b = FW_BUF_INIT(1 << 20);
	struct fw_str text = FW_STR_NONE;
	struct fw_json j;

	fw_json_init(&j, &b, false);
	if (e)
		fw_out_item_extra(&j, e);
	else
		fw_out_feed_extra(&j, d);
	json_replace_nul(&b);
	if (!b.rc && b.len > 2)
		text = fw_arena_str(a, fw_buf_str(&b));
	a->failed |= b.rc == FW_ENOMEM;
	fw_buf_finish(&b);
	return text;
}

struct fw_str rows_feed_extra(struct fw_arena *a, const struct fw_document *d)
{
	return row_extra_text(a, NULL, d);
}

bool rows_feed_meta(struct fw_feed *s, const struct fw_document *d, bool fill)
{
	struct fw_str *const to[] = {&s->title, &s->home_page_url, &s->description, &s->language, &s->icon};
	const struct fw_str from[] = {
		d->title, d->home_page_url, d->description, d->language, d->icon.len ? d->icon : d->image.url};
	bool changed = false;

	for (size_t i = 0; i < FW_N(to); i++) {
		if (fill ? to[i]->len || !from[i].len : fw_str_eq(*to[i], from[i]))
			continue;
		*to[i] = from[i];
		changed = true;
	}
	return changed;
}

static int64_t row_published(const struct fw_entry *e)
{
	return e->published_ms != FW_NO_DATE ? e->published_ms : e->created_ms;
}

static void row_fill(struct fw_arena *a, int64_t feed_id, const struct fw_document *d, const struct fw_entry *e,
	struct fw_entry_row *w)
{
	struct fw_hash128 key = fw_entry_key(feed_id, e);

	assert(feed_id > 0 && !e->repeat);
	memcpy(w->key, key.b, sizeof(w->key));
	w->feed_id = feed_id;
	w->hash = fw_entry_hash(e);
	w->guid = e->id;
	w->url = e->url.p ? e->url : e->external_url;
	w->title = e->title;
	w->author = row_authors_text(a, e->authors ? e->authors : d->authors);
	w->summary = e->summary;
	w->content = e->content;
	w->content_type = e->content_type;
	w->content_base = e->content.len ? e->content_base : FW_STR_NONE;
	w->published_ms = row_published(e);
	w->updated_ms = e->updated_ms;
	w->extra = row_extra_text(a, e, NULL);
}

/* ---- order --------------------------------------------------------------- */

struct row_place {
	const struct fw_entry *e;
	int64_t date_ms;
	size_t at;
};

FW_COMPARE_BY(row_place_compare, struct row_place, date_ms, at)

/* Do more dates rise than fall, from entry to entry? Then the document lists the oldest first. */
static bool row_places_rise(const struct row_place *place, size_t n)
{
	int64_t last_ms = FW_NO_DATE, rises = 0;

	for (size_t i = 0; i < n; i++) {
		int64_t ms = place[i].date_ms;

		if (ms == FW_NO_DATE)
			continue;
		if (last_ms != FW_NO_DATE)
			rises += FW_ORDER(ms, last_ms);
		last_ms = ms;
	}
	return rises > 0;
}

static void row_places_reverse(struct row_place *place, size_t n)
{
	for (size_t i = 0; i < n / 2; i++) {
		struct row_place other = place[n - 1 - i];

		place[n - 1 - i] = place[i];
		place[i] = other;
	}
}

/*
 * An entry without a date stays behind its neighbour. Nearly all documents are in order then, and
 * are not sorted.
 */
static void row_places_sort(struct row_place *place, size_t n)
{
	int64_t last_ms = FW_NO_DATE;
	bool sorted = true;

	if (!row_places_rise(place, n))
		row_places_reverse(place, n);
	for (size_t i = 0; i < n; i++) {
		place[i].at = i;
		if (place[i].date_ms == FW_NO_DATE)
			place[i].date_ms = last_ms;
		sorted = sorted && place[i].date_ms >= last_ms;
		last_ms = place[i].date_ms;
	}
	if (!sorted)
		qsort(place, n, sizeof(*place), row_place_compare);
}

struct fw_entry_row *rows_from_document(
	struct fw_arena *a, int64_t feed_id, const struct fw_document *d, bool is_partial, size_t *n)
{
	struct fw_entry_row *row = d->entry_n ? fw_arena_calloc(a, d->entry_n, sizeof(*row)) : NULL;
	struct row_place *place = row ? fw_arena_calloc(a, d->entry_n, sizeof(*place)) : NULL;

	*n = 0;
	if (!place)
		return NULL;
	for (const struct fw_entry *e = d->entries; e; e = e->next) {
		int64_t ms = row_published(e);

		if (!e->repeat && (e->next || !is_partial))
			place[(*n)++] = (struct row_place){.e = e, .date_ms = ms != FW_NO_DATE ? ms : e->updated_ms};
	}
	row_places_sort(place, *n);
	for (size_t i = 0; i < *n; i++)
		row_fill(a, feed_id, d, place[i].e, &row[i]);
	return row;
}

/* ---- retraction ---------------------------------------------------------- */

struct row_retraction {
	struct fw_entry_key key;
	int64_t when_ms;
	bool overruled;
};

/* Of several retractions of one entry the latest counts. */
static size_t row_retractions_list(struct fw_arena *a, int64_t feed_id, const struct fw_document *d,
	struct row_retraction *to, struct fw_map *by_id)
{
	size_t n = 0;

	for (const struct fw_retraction *r = d->retractions; r && !a->failed; r = r->next) {
		int rc = 0;
		struct row_retraction *first = fw_map_add(by_id, r->ref, &to[n], &rc);
		struct fw_hash128 key = fw_entry_key(feed_id, &(struct fw_entry){.id = r->ref});

		a->failed |= rc != 0;
		if (first) {
			first->when_ms = FW_MAX(first->when_ms, r->when_ms);
			continue;
		}
		to[n] = (struct row_retraction){.key.feed_id = feed_id, .when_ms = r->when_ms};
		memcpy(to[n++].key.key, key.b, sizeof(key.b));
	}
	return n;
}

static bool row_overrules(const struct fw_entry_row *row, const struct row_retraction *r)
{
	return (row->updated_ms != FW_NO_DATE ? row->updated_ms : row->published_ms) > r->when_ms;
}

struct fw_entry_key *rows_retracted(struct fw_arena *a, int64_t feed_id, const struct fw_document *d,
	struct fw_entry_row *row, size_t *n, size_t *retracted_n)
{
	size_t most = 0, own_n, row_n = 0;
	struct row_retraction *own;
	struct fw_entry_key *key;
	struct fw_map by_id;

	*retracted_n = 0;
	for (const struct fw_retraction *r = d->retractions; r; r = r->next)
		most++;
	own = most ? fw_arena_calloc(a, most, sizeof(*own)) : NULL;
	key = own ? fw_arena_calloc(a, most + *n, sizeof(*key)) : NULL;
	if (!key)
		return NULL;
	fw_map_init(&by_id, 0);
	own_n = row_retractions_list(a, feed_id, d, own, &by_id);
	for (size_t i = 0; i < *n; i++) {
		struct row_retraction *r = fw_map_get(&by_id, row[i].guid);
		bool stays = !r || row_overrules(&row[i], r);

		/* another key: several entries have the id, or the id is only a URL */
		if (r && memcmp(row[i].key, r->key.key, sizeof(r->key.key)) == 0) {
			r->overruled = stays;
		} else if (!stays) {
			key[*retracted_n].feed_id = feed_id;
			memcpy(key[(*retracted_n)++].key, row[i].key, sizeof(row[i].key));
		}
		if (stays)
			row[row_n++] = row[i];
	}
	*n = row_n;
	for (size_t i = 0; i < own_n; i++) {
		if (!own[i].overruled)
			key[(*retracted_n)++] = own[i].key;
	}
	fw_map_finish(&by_id);
	return key;
}

/* ---- comparison with the store ------------------------------------------- */

struct row_comparison {
	const struct fw_entry_row *row;
	unsigned char *state;
	struct fw_map by_key;
};

static struct fw_str row_key_str(const unsigned char key[16])
{
	return (struct fw_str){(const char *)key, 16};
}

static int row_on_key(void *ctx, const struct fw_entry_key *k)
{
	struct row_comparison *c = ctx;
	const struct fw_entry_row *row = fw_map_get(&c->by_key, row_key_str(k->key));

	if (row)
		c->state[row - c->row] = k->entry_id && k->hash != row->hash ? ROW_CHANGED : ROW_KNOWN;
	return 0;
}

int rows_compare(struct fw_store *st, int64_t feed_id, const struct fw_entry_row *row, size_t n, unsigned char *state,
	struct fw_err *err)
{
	struct row_comparison c = {.row = row, .state = state};
	int rc = 0;

	fw_map_init(&c.by_key, 0);
	for (size_t i = 0; i < n && !rc; i++) {
		const void *first = fw_map_add(&c.by_key, row_key_str(row[i].key), (void *)(uintptr_t)&row[i], &rc);

		state[i] = first ? ROW_KNOWN : ROW_NEW;
	}
	rc = rc ? fw_no_memory(err) : fw_store_key_list(st, feed_id, feed_id, row_on_key, &c, err);
	fw_map_finish(&c.by_key);
	return rc;
}
