/* SPDX-License-Identifier: ISC */
/*
 * What a request's head must be before anybody acts on it. A proxy in front of us and we have to agree where a request
 * ends and whom it is for (RFC 9112, 11.2): a head that two readers could read in two ways is answered 400, and nothing
 * that stands behind it on the connection is read.
 *
 * libmicrohttpd since 1.0 refuses much of that when it is told to be strict. Earlier ones take a bare line feed for the
 * end of a line, a zero byte for the end of a string, and join folded lines. They put the zero byte that ends a string
 * in the place of what ended it, and leave all strings where they came in: line_ended() sees by the gaps between them
 * what stood there. Of chunks such a library tells nothing, so a request with chunks is the last one of its connection.
 * Which library it is is known only when we run: both have the same soname.
 */
#include <stdint.h>

#include "http/http.h"
#include "base/banned.h"

#define LENGTH_DIGITS 18
#define HEADER_LINE_MAX 32768
#define WORD(number) #number
#define WORDS(number) WORD(number)

struct head { /* on its way through the header's lines */
	struct request *r;
	bool strict;         /* the library looks where lines end */
	const char *at;      /* the end of the string that came last */
	unsigned host_n, length_n, chunked_n;
	const char *why;     /* the first that is wrong, or NULL */
};

bool http_library_is_strict(void)
{
	return MHD_get_version()[0] != '0';
}

/* ---- the request line -------------------------------------------------------------------------------------------- */

/* Is one of the eight bytes there below least, or DEL? (x - n) & ~x has the high bit of a byte below n. */
static bool odd(const char *s, unsigned char least)
{
	const uint64_t one = UINT64_C(0x0101010101010101);
	uint64_t x, found;

	memcpy(&x, s, sizeof(x));
	found = (x - one * least) & ~x;
	x ^= one * 0x7f;
	found |= (x - one) & ~x;
	return found & one << 7;
}

/* No byte is. Eight at a time, the last ones perhaps twice, for each request comes by here. */
static bool plain(const char *s, size_t len, unsigned char least)
{
	if (len >= 8) {
		for (const char *p = s; p + 8 < s + len; p += 8) {
			if (odd(p, least))
				return false;
		}
		return !odd(s + len - 8, least);
	}
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)s[i] < least || s[i] == 0x7f)
			return false;
	}
	return true;
}

/* len bytes, of which the path ends at the query. */
static const char *target_wrong(const char *target, size_t len, const char *query)
{
	const char *zero = memchr(target, '%', len) ? strstr(target, "%00") : NULL;

	if (!plain(target, len, ' ' + 1))
		return "a space or control character stands in the path: encode it (%20)";
	if (zero && (!query || zero < query))
		return "%00 stands in the path: no name here has a zero byte";
	if (target[0] != '/' && strcmp(target, "*"))
		return "the path has to begin with /";
	return NULL;
}

void http_target_note(struct conn *c, const char *target)
{
	const char *query = target ? strchr(target, '?') : NULL;
	size_t param_n = 0;

	if (!c || !target)
		return;
	c->target = (struct http_target){.len = strlen(target)};
	for (const char *p = query; p; p = strchr(p + 1, '&'))
		param_n++;
	c->target.large = c->target.len > HTTP_TARGET_MAX || param_n > HTTP_PARAMS_MAX;
	if (c->target.len > HTTP_TARGET_MAX)
		c->target.wrong = "the path is longer than " WORDS(HTTP_TARGET_MAX) " bytes";
	else if (param_n > HTTP_PARAMS_MAX)
		c->target.wrong = "more than " WORDS(HTTP_PARAMS_MAX) " parameters stand behind the path";
	else
		c->target.wrong = target_wrong(target, c->target.len, query);
	/*
	 * 0.9.75 forgets to answer when it has no memory for a parameter, and waits for the head that it has read. The
	 * string is its own, which it takes apart next: behind the ? there is nothing left to take.
	 */
	if (c->target.large && query)
		*(char *)(uintptr_t)(query + 1) = '\0';
}

/* ---- where lines ended ------------------------------------------------------------------------------------------- */

/* Between a string and the next one there was CR LF. */
static bool line_ended(const char *from, const char *to)
{
	return (uintptr_t)to - (uintptr_t)from == 2;
}

/* One line of the header follows what came last, and is not folded. */
static bool line_follows(struct head *h, const char *name, size_t name_len, const char *value, size_t value_len)
{
	uintptr_t gap = (uintptr_t)value - (uintptr_t)name;

	if (h->strict)
		return true;
	if (!line_ended(h->at, name) || gap <= name_len || gap > HEADER_LINE_MAX)
		return false;
	for (size_t i = name_len + 1; i < gap; i++) {
		if (name[i] != ' ' && name[i] != '\t')
			return false;
	}
	h->at = value + value_len;
	return true;
}

static bool request_line_is_whole(struct head *h, const char *path, const char *method, const char *version)
{
	h->at = version + strlen(version);
	return h->strict || (path == method + strlen(method) + 1 &&
		version == path + h->r->c->target.len + 1);
}

static bool head_ended(const struct head *h, const char *method)
{
	const union MHD_ConnectionInfo *i =
		MHD_get_connection_info(h->r->conn, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

	return h->strict || (i && line_ended(h->at, method + i->header_size - 2)); /* the empty line is behind */
}

/* ---- the header -------------------------------------------------------------------------------------------------- */

static bool name_is_good(const char *s, size_t len)
{
	static const bool GOOD[256] = {['!'] = true, ['#' ... '\''] = true, ['*'] = true, ['+'] = true, ['-'] = true, ['.'] = true,
		['0' ... '9'] = true, ['A' ... 'Z'] = true, ['^' ... 'z'] = true, ['|'] = true, ['~'] = true}; /* RFC 9110, 5.6.2 */

	for (size_t i = 0; i < len; i++) {
		if (!GOOD[(unsigned char)s[i]])
			return false;
	}
	return len > 0;
}

static bool value_is_good(const char *s, size_t len)
{
	if (plain(s, len, ' '))
		return true;
	for (size_t i = 0; i < len; i++) { /* a tab is fine */
		if (s[i] != '\t' && !plain(s + i, 1, ' '))
			return false;
	}
	return true;
}

static const char *length_wrong(struct request *r, struct fw_str value)
{
	for (size_t i = 0; i < value.len; i++) {
		if (!fw_is_digit((unsigned char)value.p[i]))
			return "Content-Length is not one number";
	}
	return value.len && value.len <= LENGTH_DIGITS && fw_str_int(value, &r->told) ? NULL :
		"Content-Length is no length";
}

static bool is(struct fw_str name, const char *known)
{
	return fw_str_ieq(name, (struct fw_str){known, name.len}); /* they are of one length */
}

/* Those by which the end of a request is found, and its host; and what the body's way asks for. */
static const char *line_wrong(struct head *h, struct fw_str name, struct fw_str value)
{
	struct request *r = h->r;

	switch (name.len) {
	case sizeof("Host") - 1:
		return is(name, "Host") && h->host_n++ ? "Host comes twice" : NULL;
	case sizeof("Expect") - 1: /* Prefer too */
		r->expects |= is(name, "Expect");
		if (!r->prefer.p && is(name, "Prefer"))
			r->prefer = value;
		return NULL;
	case sizeof("Content-Length") - 1:
		if (!is(name, "Content-Length"))
			return NULL;
		return h->length_n++ ? "Content-Length comes twice" : length_wrong(r, value);
	case sizeof("Content-Encoding") - 1:
		if (!r->coding_name.p && is(name, "Content-Encoding"))
			r->coding_name = value;
		return NULL;
	case sizeof("Transfer-Encoding") - 1:
		if (!is(name, "Transfer-Encoding"))
			return NULL;
		r->chunked = true;
		return h->chunked_n++ || !fw_str_ieq(value, FW_STR("chunked")) ?
			"Transfer-Encoding is anything but one 'chunked'" : NULL;
	default: return NULL;
	}
}

static enum MHD_Result each_line(void *ctx, enum MHD_ValueKind kind, const char *name, size_t name_len,
	const char *value, size_t value_len)
{
	struct fw_str n = {name, name_len}, v = {value, value_len};
	struct head *h = ctx;

	(void)kind;
	if (!value) /* none that came over the wire is without */
		h->why = "a line of the header has no value";
	else if (!line_follows(h, name, name_len, value, value_len))
		h->why = "a line of the header does not end with CR LF, is folded, or holds a zero byte";
	else if (!name_is_good(name, name_len))
		h->why = "a header's name holds a space, or what no name may hold";
	else if (!value_is_good(value, value_len))
		h->why = "a header's value holds a control character";
	else
		h->why = line_wrong(h, n, v);
	tokenless_header(&h->r->seen, n, v);
	return h->why ? MHD_NO : MHD_YES;
}

const char *http_head_wrong(struct request *r, const char *path, const char *method, const char *version, bool *large)
{
	struct head h = {.r = r, .strict = http_library_is_strict()};
	bool old = strcmp(version, MHD_HTTP_VERSION_1_0) == 0;

	r->told = -1;
	r->chunked = r->expects = false;
	r->coding_name = r->prefer = FW_STR_NONE;
	r->seen = (struct tokenless_head){0};
	*large = r->c->target.large;
	if (r->c->target.wrong)
		return r->c->target.wrong;
	if (!request_line_is_whole(&h, path, method, version))
		return "the request line is not METHOD PATH VERSION with a space between, or holds a zero byte";
	MHD_get_connection_values_n(r->conn, MHD_HEADER_KIND, each_line, &h);
	if (h.why)
		return h.why;
	if (!head_ended(&h, method))
		return "the header does not end with an empty line of CR LF";
	if (h.length_n && h.chunked_n)
		return "Content-Length and Transfer-Encoding: one of the two";
	if (old ? h.chunked_n > 0 : !h.host_n)
		return old ? "HTTP/1.0 has no Transfer-Encoding" : "Host is missing";
	r->last = r->chunked && !h.strict;
	return NULL;
}

enum MHD_Result http_head_refuse(struct request *r, const char *path, const char *why, bool large)
{
	r->last = true;
	r->twirp = fw_str_starts(fw_str(path), FW_STR("/twirp/"));
	if (large)
		return http_problem(r, MHD_HTTP_URI_TOO_LONG, r->twirp ? "invalid_argument" : "too_long", "%s", why);
	return http_problem(r, MHD_HTTP_BAD_REQUEST, r->twirp ? "malformed" : "malformed_request",
		"%s: nothing more is read from this connection", why);
}
