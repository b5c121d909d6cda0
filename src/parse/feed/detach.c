/* SPDX-License-Identifier: ISC */
/*
 * Makes a document independent of the bytes that it was parsed from: strings that borrow from them
 * are copied into its arena. This happens at the end, when the strings in use are known. Tags, and
 * text with references, which was decoded into the arena anyway, need no copy.
 *
 * The bytes are divided into blocks. The first pass over all strings marks the blocks in use; these
 * are copied without gaps; the second pass moves each string with its block. Strings that shared
 * bytes still do. Linear, whatever overlaps.
 */
#include "parse/feed/builder.h"
#include "parse/feed/detach.h"

#define BLOCK ((size_t)16)
#define PER_WORD 64 /* blocks */

struct detach {
	struct fw_str bytes;
	uint64_t *used;   /* a bit for each block */
	uint32_t *before; /* for each word of used: the number of used blocks before it */
	char *to;         /* NULL during the first pass */
};

static void block_mark(struct detach *m, size_t from, size_t to)
{
	for (size_t i = from; i <= to;) {
		size_t bit = i % PER_WORD, n = FW_MIN(PER_WORD - bit, to - i + 1);

		m->used[i / PER_WORD] |= (n == PER_WORD ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1) << bit;
		i += n;
	}
}

/* The new index of a block. */
static size_t block_place(const struct detach *m, size_t i)
{
	uint64_t lower = m->used[i / PER_WORD] & ((UINT64_C(1) << i % PER_WORD) - 1);

	return m->before[i / PER_WORD] + (size_t)__builtin_popcountll(lower);
}

static void move_str(struct detach *m, struct fw_str *s)
{
	size_t at = (size_t)((uintptr_t)s->p - (uintptr_t)m->bytes.p);

	if (!s->p || at > m->bytes.len || s->len > m->bytes.len - at)
		return;
	if (!s->len)
		s->p = "";
	else if (m->to)
		s->p = m->to + block_place(m, at / BLOCK) * BLOCK + at % BLOCK;
	else
		block_mark(m, at / BLOCK, (at + s->len - 1) / BLOCK);
}

#define MOVE(m, ...) move_all((m), (struct fw_str *const[]){__VA_ARGS__, NULL})
static void move_all(struct detach *m, struct fw_str *const *s)
{
	for (; *s; s++)
		move_str(m, *s);
}

/* ---- everything that holds strings ----------------------------------------------------------- */

static void move_people(struct detach *m, struct fw_person *p)
{
	for (; p; p = p->next)
		MOVE(m, &p->name, &p->email, &p->url, &p->avatar, &p->role);
}

static void move_links(struct detach *m, struct fw_link *l)
{
	for (; l; l = l->next)
		MOVE(m, &l->rel, &l->type, &l->href, &l->title, &l->hreflang);
}

static void move_categories(struct detach *m, struct fw_category *c)
{
	for (; c; c = c->next)
		MOVE(m, &c->term, &c->scheme, &c->label);
}

/* Recursive: modules nest values a few levels deep. */
static void move_value(struct detach *m, struct fw_value *v)
{
	for (; v; v = v->next) {
		move_str(m, &v->name);
		if (v->type == FW_VALUE_STRING)
			move_str(m, &v->string);
		move_value(m, fw_value_members(v));
	}
}

static void move_entry(struct detach *m, struct fw_entry *e)
{
	MOVE(m, &e->id, &e->url, &e->external_url, &e->title, &e->summary, &e->content, &e->content_text,
		&e->content_base, &e->image, &e->banner_image, &e->language, &e->comments, &e->comment_feed_url,
		&e->copyright, &e->license);
	move_people(m, e->authors);
	move_people(m, e->contributors);
	move_people(m, e->publisher);
	move_categories(m, e->categories);
	for (struct fw_attachment *at = e->attachments; at; at = at->next)
		MOVE(m, &at->url, &at->mime_type, &at->title);
	move_links(m, e->links);
	move_links(m, e->in_reply_to);
	move_value(m, e->extra);
}

static void move_document(struct detach *m, struct fw_document *d)
{
	MOVE(m, &d->id, &d->title, &d->description, &d->home_page_url, &d->feed_url, &d->icon, &d->favicon,
		&d->language, &d->next_url, &d->prev_archive_url, &d->copyright, &d->license, &d->docs,
		&d->generator_name, &d->generator_url, &d->generator_version, &d->image.url, &d->image.title,
		&d->image.link, &d->image.description);
	move_people(m, d->authors);
	move_people(m, d->contributors);
	move_people(m, d->publisher);
	move_categories(m, d->categories);
	move_links(m, d->links);
	move_links(m, d->hubs);
	move_value(m, d->extra);
	for (struct fw_entry *e = d->entries; e; e = e->next)
		move_entry(m, e);
	for (struct fw_retraction *r = d->retractions; r; r = r->next) {
		MOVE(m, &r->ref, &r->comment);
		move_people(m, r->by);
	}
}

/* ---- the copy -------------------------------------------------------------------------------- */

static size_t blocks_count(struct detach *m, size_t words)
{
	size_t n = 0;

	for (size_t i = 0; i < words; i++) {
		m->before[i] = (uint32_t)n;
		n += (size_t)__builtin_popcountll(m->used[i]);
	}
	return n;
}

static void blocks_copy(const struct detach *m, size_t words)
{
	char *to = m->to;

	for (size_t i = 0; i < words; i++) {
		size_t bit = 0, n, from;

		for (uint64_t left = m->used[i]; left; left = bit < PER_WORD ? m->used[i] >> bit << bit : 0) {
			bit = (size_t)__builtin_ctzll(left);
			/* a run of used blocks */
			n = ~left >> bit ? (size_t)__builtin_ctzll(~left >> bit) : PER_WORD - bit;
			from = (i * PER_WORD + bit) * BLOCK;
			memcpy(to, m->bytes.p + from, FW_MIN(n * BLOCK, m->bytes.len - from));
			to += n * BLOCK;
			bit += n;
		}
	}
}

bool fw_document_detach(struct fw_arena *a, struct fw_document *doc, struct fw_str bytes)
{
	size_t words = bytes.len / (BLOCK * PER_WORD) + 1;
	struct detach m = {.bytes = bytes,
		.used = fw_arena_calloc(a, words, sizeof(*m.used)),
		.before = fw_arena_mul(a, words, sizeof(*m.before), 0)};
	char *to;

	if (!m.used || !m.before)
		return false;
	move_document(&m, doc);
	to = fw_arena_mul(a, blocks_count(&m, words), BLOCK, 0);
	if (!to)
		return false;
	m.to = to;
	blocks_copy(&m, words);
	move_document(&m, doc);
	return true;
}
