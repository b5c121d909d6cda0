/* SPDX-License-Identifier: ISC */
/*
 * Nearly every feed is gzip with a single member. Its last four bytes hold the decoded size (RFC
 * 1952, ISIZE), so the output is allocated once and libdeflate fills it in one call, three times as
 * fast as zlib. If that fails (truncated, several members, a wrong size), zlib decodes it piece by
 * piece and keeps what it gets.
 *
 * One ceiling, known before decoding starts, enforces both limits: max_bytes; and
 * max_compression_ratio times the coded size, but at least 1 MiB. Output beyond it is a bomb or too
 * large.
 */
#include <brotli/decode.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#include "base/str.h"
#include "fetch/decode.h"

#define CODINGS_MAX 2                /* LIM-03 */
#define FREE_BYTES ((size_t)1 << 20) /* max_compression_ratio does not apply below this */
#define DEFLATE_RATIO_MAX 1032       /* the most that deflate can reach */
#define GZIP_MIN 18                  /* header and trailer */
#define ZSTD_WINDOW_LOG_MAX 23       /* 8 MiB: RFC 8878 section 3.1.1.1.2 and RFC 9659 */

enum coding { CODING_GZIP, CODING_DEFLATE, CODING_BROTLI, CODING_ZSTD };

struct fw_decoder {
	struct libdeflate_decompressor *deflate;
	struct fw_buf between; /* output of the first of two codings */
};

/* One coded body while it is decoded. */
struct decode_flow {
	const unsigned char *in;
	size_t in_n;
	struct fw_buf *out;
	size_t ceiling; /* limit of out->len */
};

int fw_decoder_create(struct fw_decoder **out)
{
	struct fw_decoder *d = calloc(1, sizeof(*d));

	*out = NULL;
	if (!d)
		return FW_ENOMEM;
	d->deflate = libdeflate_alloc_decompressor();
	if (!d->deflate) {
		free(d);
		return FW_ENOMEM;
	}
	*out = d;
	return 0;
}

void fw_decoder_destroy(struct fw_decoder *d)
{
	if (!d)
		return;
	libdeflate_free_decompressor(d->deflate);
	fw_buf_finish(&d->between);
	free(d);
}

/*
 * Get room for the next output, *n > 0 bytes. Output may pass the ceiling by one byte, which proves
 * that it is exceeded.
 */
static int flow_room(struct decode_flow *f, unsigned char **to, size_t *n)
{
	size_t want = FW_MIN(FW_MAX(f->in_n * 3, (size_t)16 * 1024), (size_t)1 << 20);

	if (f->out->len > f->ceiling)
		return FW_ELIMIT;
	if (f->out->cap > f->out->len + want + 1)
		want = f->out->cap - f->out->len - 1;
	want = FW_MIN(want, f->ceiling + 1 - f->out->len);
	*to = (unsigned char *)fw_buf_room(f->out, want);
	if (!*to)
		return FW_ENOMEM;
	*n = want;
	return 0;
}

static void flow_wrote(struct decode_flow *f, size_t n)
{
	f->out->len += n;
	if (f->out->p)
		f->out->p[f->out->len] = '\0';
}

/* ---- deflate and gzip ------------------------------------------------------------------------ */

static bool coding_is_gzip(const unsigned char *p, size_t n)
{
	return n >= 3 && p[0] == 0x1f && p[1] == 0x8b && p[2] == 8;
}

/* RFC 1950: "deflate" is zlib's format, but some servers send the raw stream. */
static bool coding_is_zlib(const unsigned char *p, size_t n)
{
	return n >= 2 && (p[0] & 15) == 8 && ((unsigned)p[0] << 8 | p[1]) % 31 == 0;
}

/* Decode one zlib stream from the flow's input; *used: input bytes consumed. */
static int inflate_one(struct decode_flow *f, int window_bits, size_t *used)
{
	z_stream z = {.next_in = (unsigned char *)(uintptr_t)f->in};
	size_t left = f->in_n;
	int rc = 0, zrc = Z_OK;

	*used = 0;
	if (inflateInit2(&z, window_bits) != Z_OK)
		return FW_ENOMEM;
	while (zrc != Z_STREAM_END) {
		unsigned char *to;
		size_t n;

		rc = flow_room(f, &to, &n);
		if (rc)
			break;
		z.next_out = to;
		z.avail_out = (unsigned)n;
		if (z.avail_in == 0) {
			z.avail_in = (unsigned)FW_MIN(left, (size_t)1 << 30);
			left -= z.avail_in;
		}
		zrc = inflate(&z, Z_NO_FLUSH);
		flow_wrote(f, n - z.avail_out);
		if (zrc == Z_MEM_ERROR)
			rc = FW_ENOMEM;
		else if (zrc != Z_OK && zrc != Z_STREAM_END)
			rc = FW_EFORMAT; /* Z_BUF_ERROR: truncated */
		if (rc)
			break;
	}
	*used = f->in_n - left - z.avail_in;
	inflateEnd(&z);
	return rc;
}

/*
 * Decode consecutive gzip members; anything else after a member (padding, a stray tag) is ignored.
 */
static int gunzip_by_zlib(struct decode_flow *f)
{
	int rc;

	do {
		size_t used;

		rc = inflate_one(f, 15 + 16, &used);
		f->in += used;
		f->in_n -= used;
	} while (!rc && coding_is_gzip(f->in, f->in_n));
	return rc;
}

/* Decoded size of the last gzip member, modulo 2^32 (RFC 1952 section 2.3.1). */
static size_t gzip_decoded_size(const unsigned char *p, size_t n)
{
	const unsigned char *tail;

	if (n < GZIP_MIN)
		return 0;
	tail = p + n - 4;
	return (size_t)tail[0] | (size_t)tail[1] << 8 | (size_t)tail[2] << 16 | (size_t)tail[3] << 24;
}

static int gunzip(struct fw_decoder *d, struct decode_flow *f)
{
	size_t size = gzip_decoded_size(f->in, f->in_n), used, wrote;

	if (f->in_n < GZIP_MIN || size > f->ceiling || size / DEFLATE_RATIO_MAX > f->in_n)
		return gunzip_by_zlib(f);
	if (!fw_buf_room(f->out, size))
		return FW_ENOMEM;
	if (libdeflate_gzip_decompress_ex(d->deflate, f->in, f->in_n, f->out->p, size, &used, &wrote) !=
		LIBDEFLATE_SUCCESS)
		return gunzip_by_zlib(f);
	flow_wrote(f, wrote);
	f->in += used;
	f->in_n -= used;
	return coding_is_gzip(f->in, f->in_n) ? gunzip_by_zlib(f) : 0;
}

static int undeflate(struct decode_flow *f)
{
	size_t used;

	return inflate_one(f, coding_is_zlib(f->in, f->in_n) ? 15 : -15, &used);
}

/* ---- brotli and zstd ------------------------------------------------------------------------- */

static int unbrotli(struct decode_flow *f)
{
	BrotliDecoderState *s = BrotliDecoderCreateInstance(NULL, NULL, NULL);
	BrotliDecoderResult r = BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT;
	int rc = s ? 0 : FW_ENOMEM;

	while (!rc && r == BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT) {
		unsigned char *to;
		size_t n, left;

		rc = flow_room(f, &to, &n);
		if (rc)
			break;
		left = n;
		r = BrotliDecoderDecompressStream(s, &f->in_n, &f->in, &left, &to, NULL);
		flow_wrote(f, n - left);
		if (r == BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT || r == BROTLI_DECODER_RESULT_ERROR)
			rc = FW_EFORMAT;
	}
	BrotliDecoderDestroyInstance(s);
	return rc;
}

static int unzstd(struct decode_flow *f)
{
	ZSTD_DStream *s = ZSTD_createDStream();
	ZSTD_inBuffer in = {f->in, f->in_n, 0};
	int rc = s ? 0 : FW_ENOMEM;

	if (s)
		ZSTD_DCtx_setParameter(s, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG_MAX);
	while (!rc) {
		ZSTD_outBuffer out = {.pos = 0};
		unsigned char *to;
		size_t more;

		rc = flow_room(f, &to, &out.size);
		if (rc)
			break;
		out.dst = to;
		more = ZSTD_decompressStream(s, &out, &in);
		flow_wrote(f, out.pos);
		if (ZSTD_isError(more))
			rc = FW_EFORMAT;
		else if (more == 0 && in.pos == in.size)
			break; /* the last frame is complete */
		else if (in.pos == in.size && out.pos < out.size)
			rc = FW_EFORMAT; /* truncated */
	}
	ZSTD_freeDStream(s);
	return rc;
}

/* ---- the chain of codings -------------------------------------------------------------------- */

static int codings_parse(struct fw_str s, enum coding out[CODINGS_MAX], size_t *n)
{
	static const struct {
		struct fw_str name;
		enum coding coding;
	} KNOWN[] = {
		{{"gzip", 4}, CODING_GZIP},
		{{"x-gzip", 6}, CODING_GZIP},
		{{"deflate", 7}, CODING_DEFLATE},
		{{"br", 2}, CODING_BROTLI},
		{{"zstd", 4}, CODING_ZSTD},
	};

	*n = 0;
	while (s.p) {
		struct fw_str name = fw_str_trim(fw_str_split(s, ',', &s));

		for (size_t i = 0; i < FW_N(KNOWN); i++) {
			if (!fw_str_ieq(name, KNOWN[i].name))
				continue;
			if (*n == CODINGS_MAX)
				return FW_ELIMIT;
			out[(*n)++] = KNOWN[i].coding;
		}
	}
	return 0;
}

static bool starts_as_document(const unsigned char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (p[i] == '<' || p[i] == '{')
			return true;
		if (!fw_is_space(p[i]) && p[i] != 0xef && p[i] != 0xbb && p[i] != 0xbf)
			return false;
	}
	return false;
}

/* Is the body really coded like this, or only announced so? */
static bool is_coded(enum coding c, const unsigned char *p, size_t n)
{
	static const unsigned char ZSTD_FIRST[4] = {0x28, 0xb5, 0x2f, 0xfd};

	switch (c) {
	case CODING_GZIP:
		return coding_is_gzip(p, n);
	case CODING_ZSTD:
		/* may start with a skippable frame: 0x184d2a50 to 0x184d2a5f, little endian */
		return (n >= 4 && memcmp(p, ZSTD_FIRST, 4) == 0) || (n >= 4 && (p[0] & 0xf0) == 0x50 && p[1] == 0x2a);
	case CODING_DEFLATE:
	case CODING_BROTLI:
		/*
		 * no magic bytes, and coded data may start with '<' or '{': look for a whole
		 * document start
		 */
		break;
	}
	return !(n > 5 && starts_as_document(p, n) &&
		(memcmp(p, "<?xml", 5) == 0 || memcmp(p, "<rss ", 5) == 0 || memcmp(p, "<feed", 5) == 0 ||
			memcmp(p, "<rdf:", 5) == 0 || memcmp(p, "<!DOC", 5) == 0));
}

static int coding_undo(struct fw_decoder *d, enum coding c, struct decode_flow *f)
{
	int rc = FW_EFORMAT;

	switch (c) {
	case CODING_GZIP:
		rc = gunzip(d, f);
		break;
	case CODING_DEFLATE:
		rc = undeflate(f);
		break;
	case CODING_BROTLI:
		rc = unbrotli(f);
		break;
	case CODING_ZSTD:
		rc = unzstd(f);
		break;
	}
	return f->out->len > f->ceiling ? FW_ELIMIT : rc;
}

static const char *const CODING_NAME[] = {"gzip", "deflate", "br", "zstd"};

static int decode_refuse(struct fw_buf *out, const struct fw_decode_limits *l, size_t ceiling, struct fw_err *err)
{
	fw_buf_reset(out);
	if (ceiling < l->max_bytes)
		return fw_err_set(err, FW_ELIMIT,
			"decompression bomb: the body expands to more than %u times its transferred size "
			"(max_compression_ratio)",
			l->max_compression_ratio);
	return fw_err_set(err, FW_ELIMIT, "the body is larger than %zu bytes decoded (max_body_bytes)", l->max_bytes);
}

int fw_decode(struct fw_decoder *d, struct fw_str codings, struct fw_buf *wire, struct fw_buf *out,
	const struct fw_decode_limits *limits, struct fw_err *err)
{
	enum coding coding[CODINGS_MAX];
	size_t n, ceiling = limits->max_bytes;
	int rc = codings_parse(codings, coding, &n);

	fw_buf_reset(out);
	if (rc)
		return fw_err_set(err, rc, "the body has more than %d content codings", CODINGS_MAX);
	if (n == 0 && coding_is_gzip((const unsigned char *)wire->p, wire->len))
		coding[n++] = CODING_GZIP;
	if (limits->max_compression_ratio && wire->len < SIZE_MAX / limits->max_compression_ratio)
		ceiling = FW_MIN(ceiling, FW_MAX(wire->len * limits->max_compression_ratio, FREE_BYTES));
	while (n) {
		struct decode_flow f = {(const unsigned char *)wire->p, wire->len, out, ceiling};
		enum coding c = coding[--n];
		int one;

		if (!wire->len || !is_coded(c, f.in, f.in_n))
			continue;
		if (n) { /* the output is the input of the next coding */
			fw_buf_reset(&d->between);
			f.out = &d->between;
		}
		one = coding_undo(d, c, &f);
		if (one == FW_ELIMIT)
			return decode_refuse(out, limits, ceiling, err);
		if (one == FW_ENOMEM)
			return fw_err_set(err, FW_ENOMEM, "out of memory");
		if (one && !rc)
			rc = fw_err_set(err, FW_EFORMAT, "the body's %s content coding is corrupt or truncated",
				CODING_NAME[c]);
		if (!n)
			return rc;
		fw_buf_swap(wire, &d->between);
	}
	fw_buf_swap(wire, out);
	if (out->len > limits->max_bytes)
		return decode_refuse(out, limits, limits->max_bytes, err);
	return rc;
}

bool fw_decode_small(struct fw_decoder *d, struct fw_str codings, struct fw_buf *wire, struct fw_buf *out,
	size_t max_bytes, const struct fw_decode_limits *limits, int *rc, struct fw_err *err)
{
	struct fw_decode_limits small = *limits;
	enum coding coding[CODINGS_MAX];
	size_t n;

	/* with two codings, decoding the first could be wasted work */
	if (wire->len > max_bytes || (codings_parse(codings, coding, &n) == 0 && n > 1))
		return false;
	if (limits->max_bytes > max_bytes && coding_is_gzip((const unsigned char *)wire->p, wire->len) &&
		gzip_decoded_size((const unsigned char *)wire->p, wire->len) > max_bytes)
		return false;
	small.max_bytes = FW_MIN(max_bytes, limits->max_bytes);
	*rc = fw_decode(d, codings, wire, out, &small, err);
	return *rc != FW_ELIMIT || limits->max_bytes <= max_bytes;
}
