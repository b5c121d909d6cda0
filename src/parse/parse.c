/* SPDX-License-Identifier: ISC */
/*
 * From bytes to a document: unpack, decode, tell XML from JSON, parse, or name the type of a
 * non-feed.
 */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/err.h"
#include "base/url.h"
#include "base/utf8.h"
#include "parse/charset/charset.h"
#include "parse/charset/sniff.h"
#include "parse/feed/jsonfeed.h"
#include "parse/feed/normalize.h"
#include "parse/feed/detach.h"
#include "parse/feed/xmlfeed.h"
#include "parse/html/text.h"
#include "parse/parse.h"

#define DEFAULT_MAX_BYTES ((size_t)16 << 20)
#define EXCERPT_SEARCH_BYTES ((size_t)256 * 1024)
#define EXCERPT_BYTES ((size_t)60)
#define FINISH_BYTES ((size_t)16 << 10)

static struct fw_limits limits_of(const struct fw_parse_options *o)
{
	struct fw_limits l = o ? o->limits : (struct fw_limits){0};

	if (!l.max_bytes)
		l.max_bytes = DEFAULT_MAX_BYTES;
	if (!l.max_depth)
		l.max_depth = 256;
	if (!l.max_attributes)
		l.max_attributes = 1000;
	if (!l.max_entries)
		l.max_entries = 10000;
	if (!l.max_entity_ratio)
		l.max_entity_ratio = 20;
	return l;
}

/* max_memory: the caller's limit, besides the document; 0: the caller set none. */
static int memory_error(const struct fw_arena *a, size_t max_memory, struct fw_err *err)
{
	if (!a->full)
		return fw_no_memory(err);
	if (max_memory)
		return FW_ERR(err, FW_ELIMIT,
			"the document needs more memory than max_memory allows (%zu bytes besides the document)",
			max_memory);
	return FW_ERR(err, FW_ELIMIT, "the document needs more memory than max_memory allows (%zu bytes in all)",
		a->max_bytes);
}

static bool bytes_are_gzip(struct fw_str s)
{
	return s.len > 18 && (unsigned char)s.p[0] == 0x1f && (unsigned char)s.p[1] == 0x8b && s.p[2] == 8;
}

/* At the end of a gzip member: is there another one? (RFC 1952 section 2.2) */
static bool gzip_next_member(z_stream *z)
{
	return bytes_are_gzip((struct fw_str){(const char *)z->next_in, z->avail_in}) && inflateReset(z) == Z_OK;
}

/*
 * Unpack everything in steps. *cut: it was truncated or its checksum is wrong; the data so far is
 * kept.
 */
static int gzip_inflate(
	struct fw_arena *a, const struct fw_limits *l, z_stream *z, struct fw_str *text, bool *cut, struct fw_err *err)
{
	size_t max_bytes = l->max_bytes ? l->max_bytes : DEFAULT_MAX_BYTES,
	       cap = FW_MIN(fw_size(z->avail_in, 6, 1024), fw_size(max_bytes, 1, 1)), had = 0, len = 0;
	char *out = NULL;
	int rc;

	for (;;) {
		out = fw_arena_grow(a, out, had, cap);
		if (!out)
			return memory_error(a, l->max_memory, err);
		had = cap;
		z->next_out = (unsigned char *)out + len;
		z->avail_out = (unsigned)(cap - len);
		do
			rc = inflate(z, Z_NO_FLUSH);
		while (rc == Z_STREAM_END && gzip_next_member(z));
		if (rc == Z_MEM_ERROR)
			return FW_ERR(err, FW_ENOMEM, "out of memory unpacking a gzip document");
		len = cap - z->avail_out;
		if (len > max_bytes)
			return FW_ERR(
				err, FW_ELIMIT, "the gzip document unpacks to more than max_bytes (%zu)", max_bytes);
		if (rc != Z_OK || z->avail_out)
			break;
		cap = FW_MIN(cap * 2, max_bytes + 1);
	}
	*cut = rc != Z_STREAM_END;
	*text = (struct fw_str){out, len};
	return 0;
}

/* zlib allocates from the arena's allocator. */
static void *zlib_alloc(void *arena, unsigned n, unsigned size)
{
	const struct fw_arena *a = arena;
	size_t bytes = (size_t)n * size;

	return a->alloc ? a->alloc(bytes, a->ctx) : malloc(bytes);
}

static void zlib_free(void *arena, void *p)
{
	const struct fw_arena *a = arena;

	if (a->free)
		a->free(p, a->ctx);
	else
		free(p);
}

void fw_parse_preload(void)
{
	fw_charset_preload();
}

int fw_gunzip(struct fw_arena *a, const struct fw_limits *l, struct fw_str *bytes, bool *cut, struct fw_err *err)
{
	z_stream z = {.next_in = (unsigned char *)(uintptr_t)bytes->p,
		.avail_in = (unsigned)bytes->len,
		.zalloc = zlib_alloc,
		.zfree = zlib_free,
		.opaque = a};
	struct fw_str text = FW_STR_NONE;
	int rc;

	*cut = false;
	if (!bytes_are_gzip(*bytes))
		return 0;
	if (bytes->len > UINT32_MAX)
		return FW_ERR(err, FW_ELIMIT, "a gzip document of %zu bytes is too large", bytes->len);
	if (inflateInit2(&z, 15 + 16) != Z_OK)
		return FW_ERR(err, FW_ENOMEM, "out of memory unpacking a gzip document");
	rc = gzip_inflate(a, l, &z, &text, cut, err);
	inflateEnd(&z);
	if (!rc && text.len)
		*bytes = text;
	return rc;
}

static struct fw_document *document_new(struct fw_arena *a)
{
	struct fw_document *d = fw_arena_zalloc(a, sizeof(*d));

	if (!d)
		return NULL;
	d->updated_ms = d->published_ms = d->created_ms = FW_NO_DATE;
	d->ttl_minutes = d->update_period_minutes = FW_NO_NUMBER;
	d->image.width = d->image.height = FW_NO_NUMBER;
	return d;
}

/*
 * The outermost scope: the document's URL (Content-Location against the URL, RFC 9110 section 8.7).
 */
static void base_scope(struct fw_builder *b, struct fw_scope *s)
{
	const struct fw_parse_options *o = b->options;

	if (!o)
		return;
	s->base = fw_build_dup(b, fw_str_trim(o->url));
	if (o->content_location.len) {
		struct fw_str at = fw_url_resolve(b->arena, s->base, fw_str_trim(o->content_location));

		if (fw_url_weigh(s->base, at) >= 0)
			s->base = at;
	}
	b->base_scope = s;
}

/*
 * A recognisable part of a non-feed: a page's title, or the first line of text or JSON. Absent:
 * none.
 */
static struct fw_str excerpt(struct fw_arena *a, struct fw_str text, const char *name)
{
	struct fw_str rest, head = fw_str_sub(text, 0, EXCERPT_SEARCH_BYTES);
	const char *at;

	if (!strcmp(name, "plain text") || !strcmp(name, "JSON that is not a feed"))
		return fw_str_trim(fw_str_split(fw_str_trim(head), '\n', &rest));
	if (strcmp(name, "an HTML page") || !(at = fw_str_ifind(head, FW_STR("<title"))))
		return FW_STR_NONE;
	(void)fw_str_split(fw_str_sub(head, (size_t)(at - head.p), head.len), '>', &rest);
	at = fw_str_ifind(rest, FW_STR("</title"));
	return at ? fw_html_text(a, fw_str_sub(rest, 0, (size_t)(at - rest.p))) : FW_STR_NONE;
}

/* Set FW_EFORMAT and name the document's type. given: as received; bytes: unpacked. */
static void error_no_feed(const struct fw_builder *b, struct fw_str given, struct fw_str bytes, bool cut,
	struct fw_str type, struct fw_err *err)
{
	const char *what = fw_sniff_name(bytes, type), *in = "";
	struct fw_str some;

	if (!strcmp(what, "binary data")) /* or text with two or four bytes per character */
		what = fw_sniff_name(b->text, type);
	/* the start of a damaged stream, misread as something else */
	if (cut && (!strcmp(what, "binary data") || !strcmp(what, "plain text"))) {
		(void)fw_err_set(err, FW_EFORMAT, "not a feed: %s", fw_sniff_name(given, type));
		return;
	}
	some = excerpt(b->arena, b->text, what);
	if (b->root_name.len && !strcmp(what, "an XML document")) {
		some = b->root_name;
		in = " with the root element";
	} else if (some.len && !strcmp(what, "an HTML page")) {
		in = fw_sniff_has_login(b->text) ? " that asks for a password," : ",";
	} else if (some.len) {
		in = ":";
	}
	some.len = fw_utf8_cut(some.p, some.len, EXCERPT_BYTES);
	(void)fw_err_set(
		err, FW_EFORMAT, some.len ? "not a feed: %s%s \"%.*s\"" : "not a feed: %s", what, in, FW_STR_ARG(some));
}

/*
 * A limit was reached. With entries the document is still valid, and its problems say that it is
 * incomplete. Finishing needs some more memory, so the limit is raised a little: entries must keep
 * what distinguishes them.
 */
static int ended_early(struct fw_builder *b, int rc, struct fw_err *err)
{
	if (b->arena->failed || rc == FW_ENOMEM) {
		rc = memory_error(b->arena, b->limits.max_memory, err);
		if (rc == FW_ENOMEM)
			return rc;
	}
	if (!b->doc->entries)
		return rc;
	b->arena->failed = b->arena->full = false;
	b->arena->max_bytes += b->arena->max_bytes / 8 + FINISH_BYTES;
	fw_build_problem(b, b->text.len, b->memory_words, "the rest is left out");
	b->doc->ended_early = true;
	return 0;
}

static bool is_within(struct fw_str s, struct fw_str whole)
{
	return whole.len && s.p >= whole.p && s.p <= whole.p + whole.len;
}

static bool looks_like_json(struct fw_str s)
{
	s = fw_str_trim(s);
	return s.len && (s.p[0] == '{' || s.p[0] == '[');
}

/*
 * keep: the caller's bytes will not outlive the document, so borrowed strings are copied; *keep is
 * room for the arena.
 */
static int parse_document(struct fw_arena *a, struct fw_str bytes, struct fw_arena **keep,
	const struct fw_parse_options *o, struct fw_document **doc, struct fw_err *err)
{
	struct fw_builder b = {.arena = a, .options = o, .limits = limits_of(o)};
	struct fw_str given = bytes;
	struct fw_charset_result cs = {.encoding = NULL};
	struct fw_str type = o ? o->content_type : FW_STR_NONE;
	struct fw_scope scope = {.base = FW_STR_NONE};
	size_t borrowed = 0;
	bool cut = false, unpacked;
	int rc;

	*doc = NULL;
	if (bytes.len > b.limits.max_bytes)
		return FW_ERR(
			err, FW_ELIMIT, "the document has %zu bytes, max_bytes is %zu", bytes.len, b.limits.max_bytes);
	rc = fw_gunzip(a, &b.limits, &bytes, &cut, err);
	if (rc)
		return rc;
	unpacked = bytes.p != given.p;
	rc = fw_charset_decode(a, bytes, type, &cs, err);
	if (rc)
		return a->failed ? memory_error(a, b.limits.max_memory, err) : rc;
	b.doc = document_new(a);
	if (a->max_bytes)
		b.memory_words = fw_arena_printf(a, "more memory needed than max_memory allows (%zu bytes)",
			b.limits.max_memory ? b.limits.max_memory : a->max_bytes);
	if (keep)
		*keep = FW_NEW(&b, struct fw_arena);
	if (a->failed)
		return memory_error(a, b.limits.max_memory, err);
	b.text = cs.text;
	/* strings from JSON are copied in any case */
	if (keep && is_within(cs.text, given) && !looks_like_json(cs.text))
		borrowed = cs.text.len;
	if (a->max_bytes)
		a->max_bytes -= borrowed; /* reserve memory for the copy */
	b.doc->encoding = cs.encoding;
	b.doc->malformed = cs.wrong || cut;
	if (unpacked)
		fw_build_problem(&b, 0, "a gzip document that no header announced", "unpacked");
	if (cut)
		fw_build_problem(&b, b.text.len, "a truncated or damaged gzip document", "read as far as it goes");
	if (cs.problem)
		fw_build_problem(&b, cs.offset, cs.problem, cs.repair ? cs.repair : "");
	base_scope(&b, &scope);
	rc = looks_like_json(b.text) ? fw_read_json(&b, err) : fw_read_xml(&b, err);
	if (!rc && a->failed)
		rc = FW_ENOMEM;
	if (rc && rc != FW_EFORMAT)
		rc = ended_early(&b, rc, err);
	if (rc)
		return rc;
	if (b.doc->format == FW_FORMAT_NONE) {
		error_no_feed(&b, given, bytes, cut, type, err);
		return FW_EFORMAT;
	}
	fw_document_finish(&b);
	if (a->max_bytes)
		a->max_bytes += borrowed;
	if (a->failed || (borrowed && !fw_document_detach(a, b.doc, b.text)))
		return memory_error(a, b.limits.max_memory, err);
	*doc = b.doc;
	return 0;
}

int fw_parse_into(struct fw_arena *a, struct fw_str bytes, const struct fw_parse_options *o, struct fw_document **doc,
	struct fw_err *err)
{
	return parse_document(a, bytes, NULL, o, doc, err);
}

/*
 * The public wrapper: the document owns its arena, with a copy of the bytes that its strings
 * borrow.
 */
int fw_parse(
	const void *bytes, size_t len, const struct fw_parse_options *o, struct fw_document **doc, struct fw_err *err)
{
	struct fw_arena a, *own = NULL;
	size_t doc_len = len;
	int rc;

	*doc = NULL;
	if (!bytes && len)
		return fw_err_set(err, FW_EINVAL, "fw_parse: no bytes");
	if (o && (!o->alloc != !o->free))
		return fw_err_set(err, FW_EINVAL, "fw_parse: set both alloc and free, or neither");
	fw_arena_init(&a, 0);
	if (o && o->alloc) {
		a.alloc = o->alloc;
		a.free = o->free;
		a.ctx = o->alloc_ctx;
	}
	if (bytes_are_gzip((struct fw_str){bytes, len}))
		/* the length of the unpacked document is not known yet */
		doc_len = limits_of(o).max_bytes;
	if (o && o->limits.max_memory)
		a.max_bytes = fw_size(doc_len, 1, o->limits.max_memory);
	else
		a.max_bytes = fw_size(doc_len, 3, (size_t)1 << 20);
	rc = parse_document(&a, (struct fw_str){bytes ? bytes : "", len}, &own, o, doc, err);
	if (rc) {
		fw_arena_finish(&a);
		return rc;
	}
	*own = a; /* lives in one of its own blocks */
	(*doc)->arena = own;
	return 0;
}

void fw_document_free(struct fw_document *doc)
{
	struct fw_arena a;

	if (!doc || !doc->arena)
		return;
	a = *doc->arena;
	fw_arena_finish(&a);
}

const char *fw_format_name(enum fw_format format)
{
	static const char *const names[] = {
		[FW_FORMAT_NONE] = "none",
		[FW_RSS090] = "rss090",
		[FW_RSS091] = "rss091",
		[FW_RSS092] = "rss092",
		[FW_RSS093] = "rss093",
		[FW_RSS094] = "rss094",
		[FW_RSS10] = "rss10",
		[FW_RSS11] = "rss11",
		[FW_RSS20] = "rss20",
		[FW_ATOM03] = "atom03",
		[FW_ATOM10] = "atom10",
		[FW_CDF] = "cdf",
		[FW_JSON1] = "json1",
		[FW_JSON11] = "json11",
	};

	return (size_t)format < FW_N(names) ? names[format] : "none";
}
