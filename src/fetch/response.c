/* SPDX-License-Identifier: ISC */
/*
 * A response while it arrives. Known header values are kept byte for byte, without surrounding
 * white space (RFC 9110 section 5.5). Everything is counted, and the transfer stops as soon as a
 * limit is exceeded. The body of a redirect or an error response is skipped; if it is long, the
 * transfer is stopped.
 */
#include "base/str.h"
#include "fetch/internal.h"

#define COPIES_MAX 4         /* in max_header_bytes */
#define SKIP_MAX (64 * 1024) /* skipping this much is cheaper than a new connection */

static const struct {
	struct fw_str name;
	bool list;
} HEADER[FW_H_N] = {
	[FW_H_ETAG] = {{"ETag", 4}, false},
	[FW_H_LAST_MODIFIED] = {{"Last-Modified", 13}, false},
	[FW_H_CONTENT_TYPE] = {{"Content-Type", 12}, false},
	[FW_H_CACHE_CONTROL] = {{"Cache-Control", 13}, true},
	[FW_H_EXPIRES] = {{"Expires", 7}, false},
	[FW_H_DATE] = {{"Date", 4}, false},
	[FW_H_AGE] = {{"Age", 3}, false},
	[FW_H_RETRY_AFTER] = {{"Retry-After", 11}, false},
	[FW_H_LINK] = {{"Link", 4}, true},
	[FW_H_CONTENT_LOCATION] = {{"Content-Location", 16}, false},
	[FW_H_LOCATION] = {{"Location", 8}, false},
	[FW_H_CONTENT_ENCODING] = {{"Content-Encoding", 16}, true},
	[FW_H_CONTENT_LENGTH] = {{"Content-Length", 14}, false},
};

void fw_fetch_response_reset(struct fw_fetch_response *r)
{
	struct fw_buf text = r->text, body = r->body;

	*r = (struct fw_fetch_response){.text = text, .body = body, .last = -1};
	fw_buf_reset(&r->text);
	fw_buf_reset(&r->body);
}

void fw_fetch_response_finish(struct fw_fetch_response *r)
{
	fw_buf_finish(&r->text);
	fw_buf_finish(&r->body);
}

struct fw_str fw_fetch_response_header(const struct fw_fetch_response *r, enum fw_header h)
{
	if (!r->value[h].is)
		return FW_STR_NONE;
	return (struct fw_str){r->text.p + r->value[h].at, r->value[h].len};
}

static bool response_stop(struct fw_fetch_response *r, int rc, const char *words)
{
	r->limit = rc;
	r->limit_text = words;
	return false;
}

/*
 * A value with control characters counts as not sent (NET-18). A list in several lines becomes one
 * value. If it is the newest value it grows in place, otherwise it is copied to the end. The copies
 * are bounded: two alternating lists would make them quadratic.
 */
static bool response_store(struct fw_fetch_response *r, const struct fw_fetch_config *c, enum fw_header h,
	struct fw_str more, const char *joint)
{
	struct fw_str old = fw_fetch_response_header(r, h);
	uint32_t at = (uint32_t)r->text.len;

	if (!fw_header_value_ok(more))
		return true;
	if (old.p && r->value[h].at + r->value[h].len == at) {
		at = r->value[h].at;
		fw_buf_adds(&r->text, joint);
	} else if (old.p) {
		if (r->text.len + old.len > COPIES_MAX * c->max_header_bytes)
			return response_stop(r, FW_ELIMIT, "a header field of the response is repeated too often");
		/* get the room first: old points into the same buffer */
		if (!fw_buf_room(&r->text, old.len + more.len + 2))
			return response_stop(r, FW_ENOMEM, "out of memory");
		fw_buf_addstr(&r->text, fw_fetch_response_header(r, h));
		fw_buf_adds(&r->text, joint);
	}
	fw_buf_addstr(&r->text, more);
	if (r->text.rc)
		return response_stop(r, FW_ENOMEM, "out of memory");
	r->value[h].at = at;
	r->value[h].len = (uint32_t)(r->text.len - at);
	r->value[h].is = true;
	return true;
}

static struct fw_str trim_ows(struct fw_str s)
{
	while (s.len && (s.p[0] == ' ' || s.p[0] == '\t')) {
		s.p++;
		s.len--;
	}
	while (s.len && (s.p[s.len - 1] == ' ' || s.p[s.len - 1] == '\t'))
		s.len--;
	return s;
}

/*
 * "HTTP/1.1 200 OK" or "HTTP/2 200": starts a new header block and drops that of an interim
 * response.
 */
static void response_status_line(struct fw_fetch_response *r, struct fw_str line)
{
	struct fw_str rest;
	int64_t status = 0;

	fw_str_split(line, ' ', &rest);
	rest = trim_ows(rest.p ? rest : FW_STR(""));
	if (!fw_str_int(fw_str_sub(rest, 0, 3), &status))
		status = 0;
	r->status = (int)status;
	for (int i = 0; i < FW_H_N; i++)
		r->value[i].is = false;
	fw_buf_reset(&r->text);
	r->last = -1;
}

static bool response_headers_end(struct fw_fetch_response *r, const struct fw_fetch_config *c)
{
	int64_t length;

	if (r->status >= 100 && r->status < 200)
		return true;
	r->headers_done = true;
	if (r->status / 100 == 2 && fw_str_int(fw_fetch_response_header(r, FW_H_CONTENT_LENGTH), &length) &&
		length > 0 && (uint64_t)length > c->max_body_bytes)
		return response_stop(
			r, FW_ELIMIT, "the response body is larger than max_body_bytes, by its Content-Length");
	return true;
}

bool fw_fetch_response_line(struct fw_fetch_response *r, const struct fw_fetch_config *c, struct fw_str line)
{
	struct fw_str name, value;

	r->header_bytes += line.len;
	if (r->header_bytes > c->max_header_bytes)
		return response_stop(r, FW_ELIMIT, "the response headers are larger than max_header_bytes");
	while (line.len && (line.p[line.len - 1] == '\n' || line.p[line.len - 1] == '\r'))
		line.len--;
	if (r->headers_done) /* trailers are counted and ignored */
		return ++r->header_n <= c->max_header_n ||
			response_stop(r, FW_ELIMIT, "the response has more header fields than max_header_n");
	if (fw_str_istarts(line, FW_STR("HTTP/"))) {
		response_status_line(r, line);
		return true;
	}
	if (!line.len)
		return response_headers_end(r, c);
	if (++r->header_n > c->max_header_n)
		return response_stop(r, FW_ELIMIT, "the response has more header fields than max_header_n");
	if (line.p[0] == ' ' || line.p[0] == '\t') /* obs-fold, RFC 9112 section 5.2 */
		return r->last < 0 || response_store(r, c, (enum fw_header)r->last, trim_ows(line), " ");
	name = fw_str_split(line, ':', &value);
	r->last = -1;
	for (int i = 0; value.p && i < FW_H_N; i++) {
		if (!fw_str_ieq(name, HEADER[i].name))
			continue;
		if (r->value[i].is && !HEADER[i].list)
			return true; /* a repeated field: the first one counts */
		r->last = i;
		return response_store(r, c, (enum fw_header)i, trim_ows(value), ", ");
	}
	return true;
}

bool fw_fetch_response_body(struct fw_fetch_response *r, const struct fw_fetch_config *c, const char *p, size_t n)
{
	if (r->status / 100 != 2) {
		fw_buf_add(&r->body, p, FW_MIN(n, r->error_body_max - FW_MIN(r->body.len, r->error_body_max)));
		r->skipped_bytes += n;
		r->enough = r->skipped_bytes > SKIP_MAX;
		return !r->enough;
	}
	if (n > c->max_body_bytes - FW_MIN(r->body.len, c->max_body_bytes))
		return response_stop(r, FW_ELIMIT, "the response body is larger than max_body_bytes as transferred");
	fw_buf_add(&r->body, p, n);
	return !r->body.rc || response_stop(r, FW_ENOMEM, "out of memory");
}
