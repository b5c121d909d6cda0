/* SPDX-License-Identifier: ISC */
/*
 * Request bodies, from the first byte until the route runs: limits for each body and for all bodies
 * of a server thread, and gzip and deflate, which are decompressed within these limits.
 *
 * A refused body is read to its end and discarded, up to body_drop_max(). libmicrohttpd takes no
 * response in the middle of a body, and most clients read none while they send; if the connection
 * were closed they would lose it. A body that is far too large, or that waits for 100-continue, is
 * refused before it is sent.
 */
#define ZLIB_CONST
#include <zlib.h>

#include "http/server/body.h"
#include "http/server/http.h"

#define DROP_FACTOR 8 /* at most this many times the route's limit is read and discarded, plus DROP_MIN */
#define DROP_MIN ((size_t)1 << 16)
#define INFLATE_STEP 32768
#define RATIO_FREE ((size_t)1 << 20) /* bytes that the limit of the compression ratio does not count */

enum { CODING_NONE, CODING_GZIP, CODING_DEFLATE, CODING_OTHER };
enum { REFUSED_BY_AUTH, REFUSED_LARGE, REFUSED_MEMORY, REFUSED_CODING };

/* ---- gzip and deflate ------------------------------------------------------------------------ */

/* "deflate" is zlib's format (RFC 9110 section 8.4.1.2), but some clients send raw deflate. */
static int inflate_window_bits(struct fw_str in, bool gzip)
{
	unsigned char a = in.len > 1 ? (unsigned char)in.p[0] : 0, b = in.len > 1 ? (unsigned char)in.p[1] : 0;

	if (gzip)
		return MAX_WBITS + 16;
	return (a & 15) == 8 && (a << 8 | b) % 31 == 0 ? MAX_WBITS : -MAX_WBITS;
}

static int body_inflate(z_stream *z, struct fw_str in, struct fw_buf *out, bool gzip, size_t ratio)
{
	int rc;

	do {
		/* one byte beyond the limit, to detect that it is exceeded */
		size_t room = out->max_bytes - out->len + 1;
		unsigned char step[INFLATE_STEP];

		z->next_out = step;
		z->avail_out = (unsigned)FW_MIN(room, sizeof(step));
		rc = inflate(z, Z_NO_FLUSH);
		if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
			return rc == Z_MEM_ERROR ? FW_ENOMEM : FW_EFORMAT;
		fw_buf_add(out, step, (size_t)(z->next_out - step));
		if (out->rc)
			return out->rc;
		if (out->len > RATIO_FREE && out->len / ratio > in.len)
			return FW_ELIMIT;
		if (rc == Z_BUF_ERROR)
			return FW_EFORMAT;                     /* truncated */
		if (rc == Z_STREAM_END && gzip && z->avail_in) /* another gzip member */
			rc = inflateReset(z);
	} while (rc == Z_OK);
	return rc == Z_STREAM_END && !z->avail_in ? 0 : FW_EFORMAT;
}

int http_inflate(struct fw_str in, bool gzip, size_t ratio, struct fw_buf *out)
{
	z_stream z = {.next_in = (const unsigned char *)in.p, .avail_in = (unsigned)in.len};
	int rc;

	if (in.len > UINT32_MAX || inflateInit2(&z, inflate_window_bits(in, gzip)) != Z_OK)
		return FW_ENOMEM;
	rc = body_inflate(&z, in, out, gzip, ratio);
	inflateEnd(&z);
	return rc;
}

/* ---- refused bodies -------------------------------------------------------------------------- */

enum MHD_Result http_body_refused(struct request *r)
{
	bool twirp = r->twirp;

	switch (r->refused) {
	case REFUSED_BY_AUTH:
		return http_auth_refuse(r);
	case REFUSED_CODING:
		return http_problem(r, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE,
			twirp ? "invalid_argument" : "unsupported_encoding",
			"unsupported Content-Encoding (supported: gzip, deflate, identity)");
	case REFUSED_MEMORY:
		return http_problem(r, MHD_HTTP_SERVICE_UNAVAILABLE, "unavailable",
			"all memory for request bodies is in use (serve_memory_bytes)");
	default:
		return http_problem(r, MHD_HTTP_CONTENT_TOO_LARGE, twirp ? "resource_exhausted" : "too_large",
			"the request body is larger than %zu bytes", r->body_max);
	}
}

static void body_refuse(struct request *r, int why)
{
	r->refused = why;
	r->state = REQUEST_REFUSED;
}

static size_t body_drop_max(const struct request *r)
{
	return DROP_FACTOR * r->route->body_max + DROP_MIN;
}

/* ---- receiving ------------------------------------------------------------------------------- */

static int body_coding(const struct request *r)
{
	struct fw_str s = r->coding_name.p ? fw_str_trim(r->coding_name) : r->coding_name;

	if (!s.len || fw_str_ieq(s, FW_STR("identity")))
		return CODING_NONE;
	if (fw_str_ieq(s, FW_STR("gzip")) || fw_str_ieq(s, FW_STR("x-gzip")))
		return CODING_GZIP;
	return fw_str_ieq(s, FW_STR("deflate")) ? CODING_DEFLATE : CODING_OTHER;
}

enum MHD_Result http_body_begin(struct request *r)
{
	int64_t len = FW_MAX(r->content_length, 0);

	r->body_max = r->route->run == http_push_events ? (size_t)r->thread->h->config->push_body_max_bytes :
							  r->route->body_max;
	r->coding = body_coding(r);
	if (r->coding == CODING_OTHER)
		body_refuse(r, REFUSED_CODING);
	else if (len > (int64_t)r->body_max)
		body_refuse(r, REFUSED_LARGE);
	return r->state == REQUEST_REFUSED && (r->expects || len > (int64_t)body_drop_max(r)) ? http_body_refused(r) :
												MHD_YES;
}

/* Account for n more bytes. False: the server thread is at its limit. */
static bool body_reserve(struct request *r, size_t n)
{
	struct http_thread *l = r->thread;

	if (n > l->h->thread_body_max - FW_MIN(l->body_bytes, l->h->thread_body_max))
		return false;
	l->body_bytes += n;
	r->body_bytes += n;
	return true;
}

void http_body_finish(struct request *r)
{
	r->thread->body_bytes -= r->body_bytes;
	r->body_bytes = 0;
}

enum MHD_Result http_body_add(struct request *r, const char *data, size_t *len)
{
	size_t n = *len;

	*len = 0;
	if (r->state == REQUEST_RESPONDED)
		return MHD_YES;
	conn_count_body(r->c, n);
	if (r->state == REQUEST_BODY && n > r->body_max - r->body.len)
		body_refuse(r, REFUSED_LARGE);
	if (r->state == REQUEST_BODY && !body_reserve(r, n))
		body_refuse(r, REFUSED_MEMORY);
	if (r->state == REQUEST_REFUSED) {
		r->dropped += n;
		return r->dropped > body_drop_max(r) ? MHD_NO : MHD_YES;
	}
	fw_buf_add(&r->body, data, n);
	return r->body.rc ? MHD_NO : MHD_YES;
}

int http_body_unpack(struct request *r, struct fw_buf *out)
{
	if (r->coding == CODING_NONE)
		return 0;
	out->max_bytes = FW_MAX(r->body_max, 1);
	return http_inflate(fw_buf_str(&r->body), r->coding == CODING_GZIP,
		(size_t)r->thread->h->config->max_compression_ratio, out);
}

enum MHD_Result http_body_ready(struct request *r)
{
	struct http *h = r->thread->h;
	size_t left = h->thread_body_max - r->thread->body_bytes;
	struct fw_buf plain = FW_BUF_INIT(FW_MAX(FW_MIN(left, r->body_max), 1));
	int rc;

	if (r->coding == CODING_NONE || r->route->raw)
		return MHD_YES;
	rc = http_inflate(
		fw_buf_str(&r->body), r->coding == CODING_GZIP, (size_t)h->config->max_compression_ratio, &plain);
	if (!rc && body_reserve(r, plain.len)) {
		fw_buf_finish(&r->body);
		r->body = plain;
		r->body.max_bytes = 0;
		return MHD_YES;
	}
	fw_buf_finish(&plain);
	if (rc == FW_EFORMAT)
		return http_problem(r, MHD_HTTP_BAD_REQUEST, r->twirp ? "malformed" : "malformed_encoding",
			"the request body does not match its Content-Encoding, or is truncated");
	r->refused = rc == FW_ELIMIT && left >= r->body_max ? REFUSED_LARGE : REFUSED_MEMORY;
	return http_body_refused(r);
}
