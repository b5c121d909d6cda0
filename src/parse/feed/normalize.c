/* SPDX-License-Identifier: ISC */
/*
 * Completes an entry of any format once it is read: content and summary, limits, identity.
 *
 * Identity (REL-03) is the document's id, byte for byte; else the URL; else a hash of title and
 * text. If differing entries share an id (a constant guid, the site's URL), each gets a suffix made
 * of its URL and title, so that a new entry at the top changes no other entry's key. If those are
 * equal too (revisions of one entry), the suffix is made of the whole visible content.
 */
#include <stddef.h>

#include "base/url.h"
#include "base/utf8.h"
#include "parse/feed/links.h"
#include "parse/feed/normalize.h"
#include "parse/html/embed.h"

#define TITLE_MAX 4096
#define TEXT_MAX (2u << 20)
#define ID_MAX 4096

/* ---- identity -------------------------------------------------------------------------------- */

/* Hash the same bytes on every machine: keys are stored. */
static void hash_number(struct fw_hasher *h, uint64_t n)
{
	char le[8];
	int i;

	for (i = 0; i < 8; i++)
		le[i] = (char)(n >> 8 * i);
	fw_hasher_add(h, (struct fw_str){le, sizeof(le)});
}

uint64_t fw_entry_hash(const struct fw_entry *e)
{
	const struct fw_attachment *at;
	const struct fw_person *p;
	struct fw_hasher h;

	fw_hasher_init(&h);
	fw_hasher_add(&h, e->title);
	fw_hasher_add(&h, e->url);
	fw_hasher_add(&h, e->summary);
	fw_hasher_add(&h, e->content);
	for (p = e->authors; p; p = p->next)
		fw_hasher_add(&h, p->name.len ? p->name : p->email);
	fw_hasher_add(&h, FW_STR("|"));
	for (at = e->attachments; at; at = at->next)
		fw_hasher_add(&h, at->url);
	return fw_hasher_end64(&h);
}

struct fw_hash128 fw_entry_key(int64_t feed_id, const struct fw_entry *e)
{
	struct fw_hasher h;

	fw_hasher_init(&h);
	hash_number(&h, (uint64_t)feed_id);
	hash_number(&h, (uint64_t)e->dup_n << 2 | (e->id_made ? 2 : e->id_from_url ? 1 : 0));
	fw_hasher_add(&h, e->id);
	return fw_hasher_end128(&h);
}

static struct fw_str hex_id(struct fw_builder *b, const char *prefix, struct fw_hash128 hash)
{
	static const char digit[] = "0123456789abcdef";
	char hex[33];
	char *text;
	size_t i;

	for (i = 0; i < 16; i++) {
		hex[2 * i] = digit[hash.b[i] >> 4];
		hex[2 * i + 1] = digit[hash.b[i] & 15];
	}
	hex[32] = 0;
	text = fw_arena_printf(b->arena, "%s%s", prefix, hex);
	return fw_str(text);
}

/*
 * The id of an entry without id and URL. With only a title, the date counts too: otherwise "Daily
 * links" would be one entry forever.
 */
static struct fw_str made_id(struct fw_builder *b, const struct fw_entry *e)
{
	const struct fw_attachment *at;
	struct fw_hasher h;

	fw_hasher_init(&h);
	fw_hasher_add(&h, e->title);
	fw_hasher_add(&h, e->content.len ? e->content : e->summary);
	for (at = e->attachments; at; at = at->next)
		fw_hasher_add(&h, at->url);
	if (!e->content.len && !e->summary.len && !e->attachments)
		hash_number(&h, (uint64_t)(e->published_ms != FW_NO_DATE ? e->published_ms : e->updated_ms));
	return hex_id(b, "made:", fw_hasher_end128(&h));
}

static void identity_set(struct fw_builder *b, struct fw_entry *e)
{
	if (!e->id.len && e->url.len) {
		e->id = e->url;
		e->id_from_url = true;
	} else if (!e->id.len) {
		e->id = made_id(b, e);
		e->id_made = true;
	}
	if (e->id.len > ID_MAX)
		e->id = hex_id(b, "long:", fw_hash128(e->id.p, e->id.len));
}

/* ---- entries that share an id ---------------------------------------------------------------- */

/* A set of 64-bit hashes, each with its entry. Open addressing, at most half full. */
struct id_slot {
	uint64_t hash : 63;
	uint64_t differ : 1; /* other entries with this id have other content */
	struct fw_entry *e;  /* the first entry; NULL: free slot */
};

struct id_set {
	struct id_slot *slot;
	size_t mask;
};

static void id_set_finish(struct id_set *set, struct fw_arena *a)
{
	fw_arena_trim(a, set->slot, (set->mask + 1) * sizeof(*set->slot), 0);
}

static bool id_set_init(struct id_set *set, struct fw_arena *a, size_t n)
{
	set->mask = 15;
	while (set->mask < 2 * n)
		set->mask = set->mask * 2 + 1;
	set->slot = fw_arena_calloc(a, set->mask + 1, sizeof(*set->slot));
	return set->slot != NULL;
}

/* The slot of a hash. A free one is given to e. */
static struct id_slot *id_set_slot(struct id_set *set, uint64_t hash, struct fw_entry *e)
{
	size_t i = (size_t)(hash & set->mask);

	hash >>= 1;
	while (set->slot[i].e && set->slot[i].hash != hash)
		i = (i + 1) & set->mask;
	if (!set->slot[i].e) {
		set->slot[i].hash = hash & (UINT64_MAX >> 1);
		set->slot[i].e = e;
	}
	return &set->slot[i];
}

static uint64_t id_hash(const struct fw_entry *e)
{
	return fw_hash64(e->id.p, e->id.len);
}

static uint64_t hash_mix(uint64_t id, uint64_t with, uint64_t kind)
{
	return fw_hash64_seed(&with, sizeof(with), id ^ kind);
}

/*
 * Set the suffix that distinguishes e from others of its id: URL and title, or if those are equal
 * all visible content.
 */
static void suffix_set(struct id_set *set, struct fw_entry *e)
{
	uint64_t id = id_hash(e), whole = fw_entry_hash(e), n;
	struct fw_entry *twin = id_set_slot(set, hash_mix(id, whole, 1), e)->e;
	struct fw_hasher h;

	if (twin != e) {
		e->dup_n = twin->dup_n;
		e->repeat = true;
		return;
	}
	fw_hasher_init(&h);
	fw_hasher_add(&h, e->url);
	fw_hasher_add(&h, e->title);
	n = fw_hasher_end64(&h);
	if (id_set_slot(set, hash_mix(id, n, 2), e)->e != e)
		n ^= whole;
	e->dup_n = (uint32_t)n ? (uint32_t)n : 1;
}

/* Set dup_n and repeat for entries that share an id. */
static void entries_disambiguate(struct fw_arena *a, struct fw_document *doc)
{
	struct id_set set, told; /* ids; suffixes within one id */
	struct id_slot *slot;
	struct fw_entry *e;
	bool shared = false;

	if (doc->entry_n < 2 || !id_set_init(&set, a, doc->entry_n))
		return;
	for (e = doc->entries; e; e = e->next) {
		slot = id_set_slot(&set, id_hash(e), e);
		if (slot->e == e)
			continue;
		shared = true;
		slot->differ = slot->differ || fw_entry_hash(slot->e) != fw_entry_hash(e);
	}
	if (shared && id_set_init(&told, a, 2 * doc->entry_n)) {
		for (e = doc->entries; e; e = e->next) {
			slot = id_set_slot(&set, id_hash(e), e);
			if (slot->differ)
				suffix_set(&told, e);
			else
				e->repeat = slot->e != e;
		}
		id_set_finish(&told, a);
	}
	id_set_finish(&set, a);
}

/* ---- entries --------------------------------------------------------------------------------- */

static const char *more_entries(struct fw_builder *b)
{
	char *text = fw_arena_printf(b->arena, "more than %u entries (max_entries)", b->limits.max_entries);

	return text ? text : "more entries than max_entries";
}

struct fw_entry *fw_entry_begin(struct fw_builder *b, size_t offset)
{
	struct fw_entry *e;

	if (b->doc->entry_n >= b->limits.max_entries) {
		if (!b->entries_full)
			fw_build_problem(b, offset, more_entries(b), "the rest is left out");
		b->entries_full = true;
		b->doc->dropped_n++;
		return NULL;
	}
	e = FW_NEW(b, struct fw_entry);
	if (!e)
		return NULL;
	e->published_ms = e->updated_ms = e->created_ms = FW_NO_DATE;
	e->comment_count = FW_NO_NUMBER;
	e->line = fw_build_line(b, offset);
	memset(&b->entry_rank, 0, sizeof(b->entry_rank));
	b->description = b->summary = b->content = b->caption = (struct fw_body){.rank = 0};
	b->source_authors = NULL;
	b->count = (struct fw_counts){0};
	b->geo = NULL;
	b->duration_ms = FW_NO_NUMBER;
	b->orig_link = FW_STR_NONE;
	b->entry = e;
	return e;
}

static struct fw_str text_cut(struct fw_builder *b, struct fw_str s, size_t max, const char *what)
{
	if (s.len <= max)
		return s;
	fw_build_problem(b, fw_build_offset(b), what, "cut");
	s.len = fw_utf8_cut(s.p, s.len, max);
	return s;
}

void fw_entry_language(struct fw_builder *b, const struct fw_scope *scope)
{
	if (scope && scope->lang.len && !b->entry->language.len && !fw_str_eq(scope->lang, b->feed_lang))
		b->entry->language = scope->lang;
}

/*
 * Readers show an entry apart from its feed, so unless the document declares a base, "#note" and
 * "picture.png" are relative to the entry.
 */
static struct fw_str base_of_content(const struct fw_builder *b, const struct fw_scope *scope)
{
	struct fw_str url = b->entry->url;

	if (!(scope && scope->base_declared) && url.len <= FW_BASE_MAX && fw_is_http(url))
		return url;
	return fw_build_base(b, scope);
}

static void content_set(struct fw_builder *b, const struct fw_body *body)
{
	b->entry->content = body->s;
	b->entry->content_type = body->type;
	b->entry->content_base = base_of_content(b, body->scope);
	b->unresolved |= !b->entry->content_base.len;
	fw_entry_language(b, body->scope);
}

/*
 * Assign content and summary, see parse-output. A description that repeats the content is not a
 * summary.
 */
static void texts_set(struct fw_builder *b)
{
	const struct fw_body *summary = b->summary.rank ? &b->summary : NULL;
	const struct fw_body *description = b->description.rank ? &b->description : NULL;
	struct fw_entry *e = b->entry;

	if (b->content.rank) {
		content_set(b, &b->content);
		/* itunes:summary and similar rank below the item's own description */
		if (description && (!summary || summary->rank < 8))
			summary = description;
	} else if (description && summary && summary->rank == 8) {
		content_set(b, description);
	} else if (description) {
		if (description->type == FW_TEXT_HTML)
			content_set(b, description);
		else
			summary = description;
	} else if (summary && summary->type == FW_TEXT_HTML) {
		content_set(b, summary);
	}
	if (!summary && !e->content.len && b->caption.rank)
		summary = &b->caption;
	if (summary && !fw_str_eq(summary->s, e->content))
		e->summary = fw_build_plain(b, summary->s, summary->type);
}

/* Restore the URL that FeedBurner replaced; FeedBurner's own stays as a link. */
static void orig_link_set(struct fw_builder *b)
{
	struct fw_entry *e = b->entry;
	const struct fw_link *l = e->links;

	if (!b->orig_link.len)
		return;
	while (l && !fw_str_eq(l->href, e->url))
		l = l->next;
	if (!l && e->url.len && !fw_str_eq(e->url, b->orig_link))
		fw_link_add(b, &e->links, FW_STR("feedburner"), e->url);
	e->url = b->orig_link;
}

/* The same for the enclosure. */
static void orig_enclosure_set(struct fw_builder *b)
{
	struct fw_attachment *a = b->entry->attachments;
	const struct fw_value *v = a ?
		fw_value_find(fw_value_find(b->entry->extra, "feedburner"), "original_enclosure") :
		NULL;

	if (!v || v->type != FW_VALUE_STRING || fw_str_eq(a->url, v->string))
		return;
	fw_link_add(b, &b->entry->links, FW_STR("feedburner"), a->url);
	a->url = v->string;
}

void fw_entry_finish(struct fw_builder *b)
{
	struct fw_entry *e = b->entry;

	orig_link_set(b);
	orig_enclosure_set(b);
	texts_set(b);
	if (!e->authors) /* RFC 4287 section 4.2.1 */
		e->authors = b->source_authors;
	e->title = text_cut(b, e->title, TITLE_MAX, "a title longer than 4 KiB");
	e->summary = text_cut(b, e->summary, TEXT_MAX, "a summary longer than 2 MiB");
	e->content = text_cut(b, e->content, TEXT_MAX, "content longer than 2 MiB");
	e->content_text = text_cut(b, e->content_text, TEXT_MAX, "content longer than 2 MiB");
	e->all_removed = e->content_type == FW_TEXT_HTML && fw_html_all_removed(e->content, e->content_base);
	if (e->all_removed)
		fw_build_problem(b, fw_build_offset(b), FW_ALL_REMOVED, FW_ALL_REMOVED_REPAIR);
	if (e->attachments && e->attachments->duration_ms == FW_NO_NUMBER)
		e->attachments->duration_ms = b->duration_ms;
	identity_set(b, e);
	if (b->entry_rank.of[F_UPDATED] == 1 && e->updated_ms == e->published_ms)
		e->updated_ms = FW_NO_DATE; /* one dc:date, read as both dates */
	if (e->published_ms == FW_NO_DATE && e->updated_ms == FW_NO_DATE && e->created_ms != FW_NO_DATE)
		e->published_ms = e->created_ms;
	if (b->entry_at)
		*b->entry_at = e;
	else
		b->doc->entries = e;
	b->entry_at = &e->next;
	b->doc->entry_n++;
	b->entry = NULL;
	b->geo = NULL;
}

/* ---- the document ---------------------------------------------------------------------------- */

static int64_t period_minutes(struct fw_str period, struct fw_str frequency)
{
	static const struct {
		struct fw_str name;
		int64_t minutes;
	} known[] = {
		{{"hourly", 6}, 60},
		{{"daily", 5}, 1440},
		{{"weekly", 6}, 10080},
		{{"monthly", 7}, 43200},
		{{"yearly", 6}, 525600},
	};
	int64_t n = fw_build_number(frequency);
	size_t i;

	if (!period.len && n == FW_NO_NUMBER)
		return FW_NO_NUMBER;
	if (!period.len)
		period = FW_STR("daily");
	if (n <= 0)
		n = 1;
	for (i = 0; i < FW_N(known); i++) {
		if (fw_str_ieq(period, known[i].name))
			return FW_MAX(known[i].minutes / n, 1);
	}
	return FW_NO_NUMBER;
}

/* Make a guid for a podcast that has none. A feed with podcast elements is a podcast. */
static void podcast_guid_set(struct fw_builder *b)
{
	struct fw_document *d = b->doc;
	struct fw_value *podcast = fw_value_find(d->extra, "podcast");
	struct fw_str url = d->feed_url.len ? d->feed_url : b->options ? b->options->url : FW_STR_NONE;
	char guid[FW_PODCAST_GUID_MAX];

	if (podcast && !fw_value_find(podcast, "guid") && fw_podcast_guid(url, guid))
		fw_value_str(b, podcast, "guid_from_url", fw_build_dup(b, fw_str(guid)));
}

/* Resolve a URL that precedes its base in the document. */
static void resolve_late(struct fw_builder *b, struct fw_str *url)
{
	if (url->len && !fw_url_is_absolute(*url))
		*url = fw_build_url(b, NULL, *url);
}

static void resolve_links(struct fw_builder *b, struct fw_link *l)
{
	for (; l; l = l->next)
		resolve_late(b, &l->href);
}

static void resolve_entry(struct fw_builder *b, struct fw_entry *e)
{
	struct fw_str *const urls[] = {&e->url, &e->external_url, &e->image, &e->banner_image, &e->comments,
		&e->comment_feed_url, &e->license};
	struct fw_attachment *a;
	struct fw_person *p;
	size_t i;

	for (i = 0; i < FW_N(urls); i++)
		resolve_late(b, urls[i]);
	for (a = e->attachments; a; a = a->next)
		resolve_late(b, &a->url);
	for (p = e->authors; p; p = p->next)
		resolve_late(b, &p->url);
	resolve_links(b, e->links);
	if (!e->content_base.len)
		e->content_base = fw_is_http(e->url) ? e->url : fw_build_base(b, NULL);
	if (e->id_from_url)
		e->id = e->url;
}

/* If the document's URL is unknown, its own link is the base, wherever it stands. */
static void resolve_all(struct fw_builder *b)
{
	struct fw_document *d = b->doc;
	struct fw_entry *e;

	if (!fw_url_is_absolute(fw_build_base(b, NULL)))
		return;
	resolve_late(b, &d->icon);
	resolve_late(b, &d->favicon);
	resolve_late(b, &d->image.url);
	resolve_late(b, &d->image.link);
	resolve_late(b, &d->license);
	resolve_late(b, &d->docs);
	resolve_links(b, d->links);
	for (e = d->entries; e; e = e->next)
		resolve_entry(b, e);
}

void fw_document_finish(struct fw_builder *b)
{
	struct fw_document *d = b->doc;

	if (b->unresolved)
		resolve_all(b);
	podcast_guid_set(b);
	d->title = text_cut(b, d->title, TITLE_MAX, "a title longer than 4 KiB");
	d->description = text_cut(b, d->description, TEXT_MAX, "a description longer than 2 MiB");
	d->update_period_minutes = period_minutes(b->period, b->frequency);
	if (!d->icon.p)
		d->icon = d->image.url;
	if (!d->language.p && b->feed_lang.len)
		d->language = b->feed_lang;
	entries_disambiguate(b->arena, d);
}
