/* SPDX-License-Identifier: ISC */
/*
 * Documents. Each is read once. Each coding and framing is created at its first use and kept, so
 * that a response costs one writev. gzip is created at the start: nearly every client requests it.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <brotli/encode.h>
#include <libdeflate.h>
#include <zlib.h>
#include <zstd.h>

#include "origin.h"

static struct fw_str read_whole(const char *path)
{
	struct fw_buf b = FW_BUF_INIT(0);
	FILE *f = fopen(path, "rb");
	size_t n;

	if (!f)
		die("%s: cannot be read", path);
	do {
		char *p = fw_buf_room(&b, 65536);

		if (!p)
			die("%s: out of memory", path);
		n = fread(p, 1, 65536, f);
		b.len += n;
	} while (n);
	fclose(f);
	return fw_buf_str(&b); /* kept until the end */
}

static const char *guess_type(const char *name, struct fw_str body)
{
	struct fw_str head = fw_str_sub(body, 0, 2000), s = fw_str(name);

	if (fw_str_ends(s, FW_STR(".json")) || fw_str_starts(fw_str_trim(head), FW_STR("{")))
		return "application/feed+json";
	if (fw_str_ends(s, FW_STR(".html")) || fw_str_ifind(head, FW_STR("<html")))
		return "text/html";
	if (fw_str_find(head, FW_STR("<rss")))
		return "application/rss+xml";
	if (fw_str_find(head, FW_STR("<feed")))
		return "application/atom+xml";
	if (fw_str_find(head, FW_STR("<rdf:RDF")))
		return "application/rdf+xml";
	return "text/xml";
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct doc *)a)->name, ((const struct doc *)b)->name);
}

void docs_load(struct docs *d, const char *dir)
{
	DIR *dp = opendir(dir);
	size_t cap = 0;
	struct dirent *e;

	if (!dp)
		die("--docs %s: not a directory that can be read", dir);
	while ((e = readdir(dp))) {
		char path[4096];
		struct stat st;

		if (e->d_name[0] == '.' || !fw_snprintf(path, sizeof(path), "%s/%s", dir, e->d_name) ||
			stat(path, &st) || !S_ISREG(st.st_mode))
			continue;
		if (d->n == cap) {
			cap = cap ? cap * 2 : 64;
			d->doc = realloc(d->doc, cap * sizeof(*d->doc));
			if (!d->doc)
				die("out of memory");
		}
		d->doc[d->n] = (struct doc){.name = fw_str_dup(fw_str(e->d_name)), .body = read_whole(path)};
		d->doc[d->n].type = guess_type(e->d_name, d->doc[d->n].body);
		d->doc[d->n].hash = fw_hash64(d->doc[d->n].body.p, d->doc[d->n].body.len);
		d->n++;
	}
	closedir(dp);
	if (!d->n)
		die("--docs %s: no files in it", dir);
	qsort(d->doc, d->n, sizeof(*d->doc), by_name);
	for (size_t i = 0; i < d->n; i++)
		(void)doc_coded(&d->doc[i], "gzip", false);
}

/* ---- codings --------------------------------------------------------------------------------- */

enum flate { FLATE_GZIP, FLATE_ZLIB, FLATE_RAW };

static void flate(struct fw_str in, enum flate kind, struct fw_buf *out)
{
	static struct libdeflate_compressor *c;
	size_t bound, n;
	char *p;

	if (!c && !(c = libdeflate_alloc_compressor(6)))
		die("out of memory");
	bound = libdeflate_gzip_compress_bound(c, in.len) + 64;
	p = fw_buf_room(out, bound);
	if (!p)
		die("out of memory");
	n = kind == FLATE_GZIP     ? libdeflate_gzip_compress(c, in.p, in.len, p, bound) :
		kind == FLATE_ZLIB ? libdeflate_zlib_compress(c, in.p, in.len, p, bound) :
				     libdeflate_deflate_compress(c, in.p, in.len, p, bound);
	out->len += n;
}

static bool encode_one(struct fw_str in, struct fw_str coding, struct fw_buf *out)
{
	size_t n, bound;
	char *p;

	if (fw_str_eq(coding, FW_STR("gzip"))) {
		flate(in, FLATE_GZIP, out);
	} else if (fw_str_eq(coding, FW_STR("deflate"))) {
		flate(in, FLATE_ZLIB, out);
	} else if (fw_str_eq(coding, FW_STR("raw-deflate"))) {
		flate(in, FLATE_RAW, out);
	} else if (fw_str_eq(coding, FW_STR("br"))) {
		bound = n = BrotliEncoderMaxCompressedSize(in.len) + 64;
		p = fw_buf_room(out, bound);
		if (!p ||
			!BrotliEncoderCompress(4, BROTLI_DEFAULT_WINDOW, BROTLI_MODE_GENERIC, in.len,
				(const uint8_t *)in.p, &n, (uint8_t *)p))
			die("brotli failed");
		out->len += n;
	} else if (fw_str_eq(coding, FW_STR("zstd"))) {
		bound = ZSTD_compressBound(in.len);
		p = fw_buf_room(out, bound);
		n = p ? ZSTD_compress(p, bound, in.p, in.len, 3) : 0;
		if (!p || ZSTD_isError(n))
			die("zstd failed");
		out->len += n;
	} else if (fw_str_eq(coding, FW_STR("identity")) || coding.len == 0) {
		fw_buf_addstr(out, in);
	} else {
		return false;
	}
	return true;
}

bool doc_encode(struct fw_str in, const char *coding, struct fw_buf *out)
{
	struct fw_str rest = fw_str(coding), one;
	struct fw_buf a = FW_BUF_INIT(0), b = FW_BUF_INIT(0);
	bool ok = true;

	fw_buf_addstr(&a, in);
	do {
		struct fw_buf swap;

		one = fw_str_split(rest, '+', &rest);
		fw_buf_reset(&b);
		ok = encode_one(fw_buf_str(&a), one, &b);
		swap = a, a = b, b = swap;
	} while (ok && rest.p);
	if (ok)
		fw_buf_addstr(out, fw_buf_str(&a));
	fw_buf_finish(&a);
	fw_buf_finish(&b);
	return ok;
}

void doc_chunk(struct fw_str in, struct fw_buf *out)
{
	for (size_t at = 0; at < in.len;) {
		size_t n = FW_MIN(in.len - at, (size_t)8000);

		fw_buf_addf(out, "%zx\r\n", n);
		fw_buf_add(out, in.p + at, n);
		fw_buf_adds(out, "\r\n");
		at += n;
	}
	fw_buf_adds(out, "0\r\n\r\n");
}

const struct fw_str *doc_coded(struct doc *d, const char *coding, bool chunked)
{
	struct fw_buf coded = FW_BUF_INIT(0), framed = FW_BUF_INIT(0);
	char spec[100];
	struct coded *c;

	if (!fw_snprintf(spec, sizeof(spec), "%s%s", coding, chunked ? "|chunked" : ""))
		return NULL;
	for (c = d->coded; c; c = c->next)
		if (!strcmp(c->spec, spec))
			return &c->body;
	if (!doc_encode(d->body, coding, &coded))
		return NULL;
	if (chunked) {
		doc_chunk(fw_buf_str(&coded), &framed);
		fw_buf_finish(&coded);
		coded = framed;
	}
	c = calloc(1, sizeof(*c));
	if (!c || coded.rc)
		die("out of memory");
	*c = (struct coded){.next = d->coded, .spec = fw_str_dup(fw_str(spec)), .body = fw_buf_str(&coded)};
	d->coded = c;
	return &c->body;
}

struct fw_str doc_bomb_block(void)
{
	static struct fw_str block;
	z_stream z = {0};
	size_t mib = 1 << 20;
	unsigned char *in, *out;

	if (block.p)
		return block;
	in = malloc(mib);
	out = malloc(mib);
	if (!in || !out || deflateInit2(&z, 9, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY) != Z_OK)
		die("out of memory");
	memset(in, ' ', mib);
	z.next_in = in, z.avail_in = (unsigned)mib, z.next_out = out, z.avail_out = (unsigned)mib;
	if (deflate(&z, Z_FULL_FLUSH) != Z_OK)
		die("zlib failed");
	block = (struct fw_str){(char *)out, mib - z.avail_out};
	deflateEnd(&z);
	free(in);
	return block;
}

/* ---- growing feeds --------------------------------------------------------------------------- */

void doc_grown(struct fw_buf *out, size_t feed, int64_t entries, int64_t window)
{
	int64_t oldest = entries > window ? entries - window + 1 : 1;
	char date[FW_RFC3339_MAX];

	fw_buf_addf(out,
		"<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<rss version=\"2.0\"><channel>"
		"<title>Growing feed %zu</title><link>http://growing.example/%zu/</link>"
		"<description>Entry numbers have no gaps</description>\n",
		feed, feed);
	for (int64_t k = entries; k >= oldest; k--)
		fw_buf_addf(out,
			"<item><guid isPermaLink=\"false\">feed-%zu-entry-%lld</guid><title>Entry %lld of feed %zu"
			"</title><link>http://growing.example/%zu/%lld</link><pubDate>%s</pubDate>"
			"<description>This is entry number %lld.</description></item>\n",
			feed, (long long)k, (long long)k, feed, feed, (long long)k,
			fw_http_date(date, INT64_C(1767225600000) + k * FW_MINUTE_MS), (long long)k);
	fw_buf_adds(out, "</channel></rss>\n");
}
