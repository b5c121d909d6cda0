/* SPDX-License-Identifier: ISC */
/*
 * Any bytes: no crash, memory within its limit, a document or an error with a message. The
 * document's contract holds: each string is valid UTF-8, dates are in range, each entry that is not
 * a repeat has a key of its own.
 *
 * Parsed twice, the result is the same, with strings borrowed from the input or copied. Its JSON
 * has no member twice, and parsed again it has the same entries. Sanitised content does not change
 * when it is sanitised again (PAR-01, REL-03, LIM-03, WEB-01). The input's size selects the
 * options, so that seeds stay valid feeds.
 */
#include <jansson.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "base/utf8.h"
#include "fuzz.h"
#include "parse/feed/normalize.h"
#include "parse/html/sanitize.h"
#include "parse/parse.h"

/* ---- the document's contract ----------------------------------------------------------------- */

static void check_str(struct fw_str s)
{
	FUZZ_CHECK(s.p || !s.len);
	FUZZ_CHECK(fw_utf8_valid(s.p, s.len) == s.len);
}

#define CHECK_STRS(...)                                    \
	do {                                               \
		const struct fw_str all[] = {__VA_ARGS__}; \
		for (size_t i = 0; i < FW_N(all); i++)     \
			check_str(all[i]);                 \
	} while (0)

static void check_date(int64_t t)
{
	FUZZ_CHECK(t == FW_NO_DATE ||
		(t >= fw_time_ms(999, 12, 29, 0, 0, 0, 0) && t <= fw_time_ms(10000, 1, 3, 0, 0, 0, 0)));
}

static void check_people(const struct fw_person *p)
{
	for (; p; p = p->next)
		CHECK_STRS(p->name, p->email, p->url, p->avatar, p->role);
}

static void check_links(const struct fw_link *l)
{
	for (; l; l = l->next)
		CHECK_STRS(l->rel, l->type, l->href, l->title, l->hreflang);
}

static void check_categories(const struct fw_category *c)
{
	for (; c; c = c->next)
		CHECK_STRS(c->term, c->scheme, c->label);
}

static void check_value(const struct fw_value *v, unsigned depth)
{
	FUZZ_CHECK(depth < 40);
	for (; v; v = v->next) {
		check_str(v->name);
		if (v->type == FW_VALUE_STRING)
			check_str(v->string);
		else if (v->type == FW_VALUE_OBJECT || v->type == FW_VALUE_ARRAY)
			check_value(v->members.first, depth + 1);
	}
}

static void check_entry(const struct fw_entry *e)
{
	FUZZ_CHECK(e->id.len > 0 && e->id.len <= 4096);
	FUZZ_CHECK(e->title.len <= 4096);
	FUZZ_CHECK(!e->content.len || e->content_type != FW_TEXT_NONE);
	CHECK_STRS(e->id, e->url, e->external_url, e->title, e->summary, e->content, e->content_text, e->content_base,
		e->image, e->banner_image, e->language, e->comments, e->comment_feed_url, e->copyright, e->license);
	check_date(e->published_ms);
	check_date(e->updated_ms);
	check_date(e->created_ms);
	check_people(e->authors);
	check_people(e->contributors);
	check_people(e->publisher);
	check_categories(e->categories);
	for (const struct fw_attachment *a = e->attachments; a; a = a->next)
		CHECK_STRS(a->url, a->mime_type, a->title);
	check_links(e->links);
	check_links(e->in_reply_to);
	check_value(e->extra, 0);
}

static int by_key(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct fw_hash128));
}

static void check_keys(const struct fw_document *doc)
{
	struct fw_hash128 *keys = malloc((doc->entry_n + 1) * sizeof(*keys));
	size_t n = 0;

	FUZZ_CHECK(keys);
	for (const struct fw_entry *e = doc->entries; e; e = e->next) {
		if (!e->repeat)
			keys[n++] = fw_entry_key(1, e);
	}
	qsort(keys, n, sizeof(*keys), by_key);
	for (size_t i = 1; i < n; i++)
		FUZZ_CHECK(by_key(&keys[i - 1], &keys[i]) != 0);
	free(keys);
}

/* full: its memory was used up, and distinguishing entries with one id takes some. */
static void check_document(const struct fw_document *d, size_t max_entries, bool full)
{
	size_t n = 0, problems = 0;

	FUZZ_CHECK(d->format != FW_FORMAT_NONE && d->encoding);
	CHECK_STRS(d->id, d->title, d->description, d->home_page_url, d->feed_url, d->icon, d->favicon, d->language,
		d->next_url, d->prev_archive_url, d->copyright, d->license, d->docs, d->generator_name,
		d->generator_url, d->generator_version, d->image.url, d->image.title, d->image.link,
		d->image.description);
	check_date(d->updated_ms);
	check_date(d->published_ms);
	check_date(d->created_ms);
	check_people(d->authors);
	check_people(d->contributors);
	check_people(d->publisher);
	check_categories(d->categories);
	check_links(d->links);
	check_links(d->hubs);
	for (const struct fw_retraction *r = d->retractions; r; r = r->next) {
		CHECK_STRS(r->ref, r->comment);
		check_people(r->by);
	}
	check_value(d->extra, 0);
	for (const struct fw_problem *p = d->problems; p; p = p->next, problems++)
		FUZZ_CHECK(p->what && p->what[0] && p->repair);
	FUZZ_CHECK(problems <= 100 && problems <= d->problem_n);
	FUZZ_CHECK(d->skip_hours >> 24 == 0 && d->skip_days >> 7 == 0);
	for (const struct fw_entry *e = d->entries; e; e = e->next, n++)
		check_entry(e);
	FUZZ_CHECK(n == d->entry_n && n <= max_entries);
	FUZZ_CHECK(!d->entries || !d->entries->repeat);
	if (!full)
		check_keys(d);
}

/* ---- written and read again ------------------------------------------------------------------ */

/* Text that was encoded more than twice is decoded once by each parse. */
static bool encoded_twice(const struct fw_document *d)
{
	for (const struct fw_problem *p = d->problems; p; p = p->next) {
		if (strcmp(p->what, "double-encoded text") == 0)
			return true;
	}
	return d->problem_n > 100;
}

/* Our own JSON is read back: the same entries with the same ids. */
static void check_again(const struct fw_document *doc, const char *json, size_t len)
{
	const struct fw_entry *a, *b;
	struct fw_document *again;
	struct fw_err err;

	FUZZ_CHECK(fw_parse(json, len, NULL, &again, &err) == 0);
	FUZZ_CHECK(again->entry_n == doc->entry_n);
	for (a = doc->entries, b = again->entries; a && b; a = a->next, b = b->next) {
		FUZZ_CHECK(fw_str_eq(a->id, b->id));
		FUZZ_CHECK(a->published_ms == b->published_ms);
		FUZZ_CHECK(fw_str_eq(a->content, b->content) || !a->content.len || encoded_twice(again));
	}
	fw_document_free(again);
}

/* The same bytes through the public function, and freed before the document is checked. */
static void check_twice(
	const struct fw_document *doc, const uint8_t *data, size_t size, const struct fw_parse_options *o)
{
	char *one, *two, *bytes = malloc(size + !size);
	struct fw_document *again;
	struct fw_err err;
	size_t one_n, two_n;
	int rc;

	FUZZ_CHECK(bytes);
	memcpy(bytes, data, size);
	rc = fw_parse(bytes, size, o, &again, &err);
	free(bytes);
	if (rc == FW_ELIMIT)
		return; /* the size of JSON's trees is limited before they are built */
	FUZZ_CHECK(!doc == (rc != 0));
	if (rc)
		return;
	FUZZ_CHECK(!fw_document_json(doc, FW_PRINT_RAW, &one, &one_n, &err) &&
		!fw_document_json(again, FW_PRINT_RAW, &two, &two_n, &err));
	FUZZ_CHECK(one_n == two_n && memcmp(one, two, one_n) == 0);
	free(one);
	free(two);
	fw_document_free(again);
}

static void check_json(const struct fw_document *doc, bool raw)
{
	struct fw_err err;
	char *json;
	size_t len;
	json_t *v;

	FUZZ_CHECK(!fw_document_json(doc, raw ? FW_PRINT_RAW : 0, &json, &len, &err));
	FUZZ_CHECK(fw_utf8_valid(json, len) == len);
	v = json_loadb(json, len, JSON_REJECT_DUPLICATES, NULL);
	FUZZ_CHECK(v);
	json_decref(v);
	if (raw)
		check_again(doc, json, len);
	free(json);
}

static void check_clean(const struct fw_document *doc)
{
	int n = 0;

	for (const struct fw_entry *e = doc->entries; e && n < 20; e = e->next, n++) {
		struct fw_buf once = FW_BUF_INIT(0), twice = FW_BUF_INIT(0);

		if (e->content_type == FW_TEXT_HTML && e->content.len < 16384) {
			FUZZ_CHECK(fw_html_sanitize(e->content, e->content_base, 0, &once, NULL) == 0);
			FUZZ_CHECK(fw_html_sanitize(fw_buf_str(&once), e->content_base, 0, &twice, NULL) == 0);
			FUZZ_CHECK(fw_str_eq(fw_buf_str(&once), fw_buf_str(&twice)));
		}
		fw_buf_finish(&once);
		fw_buf_finish(&twice);
	}
}

/* ---- limits ---------------------------------------------------------------------------------- */

struct meter {
	size_t live, peak, calls, fail_at; /* fail_at: the call that fails; 0: none */
};

static void *metered_alloc(size_t n, void *ctx)
{
	struct meter *m = ctx;
	size_t *p = ++m->calls == m->fail_at ? NULL : malloc(n + 16);

	if (!p)
		return NULL;
	*p = n;
	m->live += n;
	m->peak = m->live > m->peak ? m->live : m->peak;
	return p + 2;
}

static void metered_free(void *p, void *ctx)
{
	struct meter *m = ctx;

	if (!p)
		return;
	m->live -= ((size_t *)p)[-2];
	free((size_t *)p - 2);
}

/*
 * Tight limits and a failing allocation: a document within them or an error that names them, and
 * all memory is freed.
 */
static void check_limits(const uint8_t *data, size_t size, struct fw_parse_options o)
{
	struct meter m = {.fail_at = size % 4 ? 0 : 1 + size / 4 % 40};
	struct fw_document *doc;
	struct fw_err err = {.rc = 0};
	int rc;

	o.limits = (struct fw_limits){.max_depth = 1 + (uint32_t)size % 7,
		.max_attributes = 1 + (uint32_t)size % 3,
		.max_entries = 1 + (uint32_t)size % 4,
		.max_entity_ratio = 1,
		.max_memory = 2 * size + 65536};
	o.alloc = metered_alloc;
	o.free = metered_free;
	o.alloc_ctx = &m;
	rc = fw_parse(data, size, &o, &doc, &err);
	if (rc)
		FUZZ_CHECK(
			!doc && err.text[0] && (rc == FW_EFORMAT || rc == FW_ELIMIT || (rc == FW_ENOMEM && m.fail_at)));
	else
		check_document(doc, o.limits.max_entries, doc->arena->full);
	/* the size of a compressed document is known only after decompression */
	if (size < 2 || data[0] != 0x1f || data[1] != 0x8b)
		FUZZ_CHECK(m.peak <= o.limits.max_memory + size);
	fw_document_free(doc);
	FUZZ_CHECK(m.live == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fw_parse_options o = {.limits.max_entries = 1000};
	struct fw_document *doc;
	struct fw_arena a;
	struct fw_err err = {.rc = 0};
	int rc;

	if (size % 2)
		o.url = FW_STR("https://example.org/a/feed");
	if (size % 5 == 0)
		o.content_type = FW_STR("application/xml; charset=utf-8");
	if (size % 7 == 0)
		o.content_location = FW_STR("../b?c");
	if (size % 11)
		o.now_ms = fw_time_ms(2026, 1, 1, 0, 0, 0, 0);
	fw_arena_init(&a, 64 * size + (1 << 20));
	rc = fw_parse_into(&a, (struct fw_str){(const char *)data, size}, &o, &doc, &err);
	if (rc) {
		FUZZ_CHECK(!doc && err.text[0]);
	} else {
		check_document(doc, o.limits.max_entries, a.full);
		check_json(doc, size % 3);
		check_clean(doc);
	}
	if (a.used_bytes < 1 << 20) /* otherwise the library's limit may be reached: the copy counts too */
		check_twice(doc, data, size, &o);
	check_limits(data, size, o);
	fw_arena_finish(&a);
	return 0;
}
