/* SPDX-License-Identifier: ISC */
/*
 * Protection against request smuggling (RFC 9112 section 11.2). A proxy and this server must agree
 * where a request ends and which host it is for. A head that two parsers could read in two ways
 * gets a 400, and nothing more is read from its connection.
 *
 * libmicrohttpd 1.0 and later refuse most of that in strict mode. Earlier versions accept a bare
 * line feed as the end of a line, truncate strings at a zero byte, and join folded lines. But they
 * leave all strings where they arrived in the buffer, and overwrite only the byte behind each. So
 * line_ended() infers from the gaps between the strings which bytes ended a line. For chunks there
 * is no such way; with these versions a chunked request is the last of its connection. The version
 * is known only at run time, because both have the same soname.
 */
#include <stdint.h>

#include "http/server/http.h"

#define LENGTH_DIGITS 18
#define HEADER_LINE_MAX 32768
#define WORD(number) #number
#define WORDS(number) WORD(number)

/* state of the walk over a head's lines */
struct head_walk {
	struct request *r;
	bool strict;                          /* the library checks the ends of lines */
	const char *at;                       /* the end of the last string */
	unsigned host_n, length_n, chunked_n; /* how often Host, Content-Length and Transfer-Encoding occur */
	const char *why;                      /* the first error, or NULL */
};

bool http_library_is_strict(void)
{
	return MHD_get_version()[0] != '0';
}

/* ---- the request line ------------------------------------------------------------------------ */

/*
 * Is one of the eight bytes at s below least, or DEL? (x - n) & ~x sets the high bit of each byte
 * below n.
 */
static bool has_control_byte(const char *s, unsigned char least)
{
	const uint64_t one = UINT64_C(0x0101010101010101);
	uint64_t x, found;

	memcpy(&x, s, sizeof(x));
	found = (x - one * least) & ~x;
	x ^= one * 0x7f;
	found |= (x - one) & ~x;
	return found & one << 7;
}

/*
 * Is no byte below least, or DEL? Eight bytes at a time, because every request is checked; the last
 * ones may be checked twice.
 */
static bool is_printable(const char *s, size_t len, unsigned char least)
{
	if (len >= 8) {
		for (const char *p = s; p + 8 < s + len; p += 8) {
			if (has_control_byte(p, least))
				return false;
		}
		return !has_control_byte(s + len - 8, least);
	}
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)s[i] < least || s[i] == 0x7f)
			return false;
	}
	return true;
}

/* target: len bytes; query: its "?", or NULL. */
static const char *target_error(const char *target, size_t len, const char *query)
{
	const char *zero = memchr(target, '%', len) ? strstr(target, "%00") : NULL;

	if (!is_printable(target, len, ' ' + 1))
		return "the path contains a space or control character (encode it, such as %20)";
	if (zero && (!query || zero < query))
		return "the path contains %00";
	if (target[0] != '/' && strcmp(target, "*"))
		return "the path does not begin with /";
	return NULL;
}

static bool target_is_hex(char c)
{
	return fw_is_digit((unsigned char)c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Where the decoded path has a slash that is written "%2f", the first; SIZE_MAX: nowhere. */
static size_t head_slash_at(const char *target)
{
	size_t n = 0;

	for (const char *p = target; *p && *p != '?'; p++, n++) {
		if (p[0] != '%' || !target_is_hex(p[1]) || !target_is_hex(p[2]))
			continue;
		if (p[1] == '2' && (p[2] == 'f' || p[2] == 'F'))
			return n;
		p += 2;
	}
	return SIZE_MAX;
}

void http_target_check(struct conn *c, const char *target)
{
	const char *query = target ? strchr(target, '?') : NULL;
	size_t param_n = 0;

	if (!c || !target)
		return;
	c->target = (struct http_target){.len = strlen(target), .slash_at = head_slash_at(target)};
	for (const char *p = query; p; p = strchr(p + 1, '&'))
		param_n++;
	c->target.large = c->target.len > HTTP_TARGET_MAX || param_n > HTTP_PARAMS_MAX;
	if (c->target.len > HTTP_TARGET_MAX)
		c->target.error = "the path is longer than " WORDS(HTTP_TARGET_MAX) " bytes";
	else if (param_n > HTTP_PARAMS_MAX)
		c->target.error = "the query has more than " WORDS(HTTP_PARAMS_MAX) " parameters";
	else
		c->target.error = target_error(target, c->target.len, query);
	/*
	 * libmicrohttpd 0.9.75 never responds when it has no memory for a parameter. So cut the
	 * query off its string, which it splits after this call.
	 */
	if (c->target.large && query)
		*(char *)(uintptr_t)(query + 1) = '\0';
}

/* ---- ends of lines --------------------------------------------------------------------------- */

/* Is the gap between a string and the next one as long as CR LF? */
static bool line_ended(const char *from, const char *to)
{
	return (uintptr_t)to - (uintptr_t)from == 2;
}

/* Does this header line follow the last string directly, unfolded? */
static bool line_follows(struct head_walk *h, const char *name, size_t name_len, const char *value, size_t value_len)
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

static bool request_line_is_valid(struct head_walk *h, const char *path, const char *method, const char *version)
{
	h->at = version + strlen(version);
	return h->strict || (path == method + strlen(method) + 1 && version == path + h->r->c->target.len + 1);
}

static bool head_ended(const struct head_walk *h, const char *method)
{
	const union MHD_ConnectionInfo *i = MHD_get_connection_info(
		h->r->conn, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

	return h->strict || (i && line_ended(h->at, method + i->header_size - 2)); /* - 2: the empty line's CR LF */
}

/* ---- the header ------------------------------------------------------------------------------ */

static bool header_name_is_valid(const char *s, size_t len)
{
	/* RFC 9110 section 5.6.2 */
	static const bool GOOD[256] = {['!'] = true,
		['#' ... '\''] = true,
		['*'] = true,
		['+'] = true,
		['-'] = true,
		['.'] = true,
		['0' ... '9'] = true,
		['A' ... 'Z'] = true,
		['^' ... 'z'] = true,
		['|'] = true,
		['~'] = true};

	for (size_t i = 0; i < len; i++) {
		if (!GOOD[(unsigned char)s[i]])
			return false;
	}
	return len > 0;
}

static bool header_value_is_valid(const char *s, size_t len)
{
	if (is_printable(s, len, ' '))
		return true;
	for (size_t i = 0; i < len; i++) { /* tabs are allowed */
		if (s[i] != '\t' && !is_printable(s + i, 1, ' '))
			return false;
	}
	return true;
}

static const char *content_length_error(struct request *r, struct fw_str value)
{
	for (size_t i = 0; i < value.len; i++) {
		if (!fw_is_digit((unsigned char)value.p[i]))
			return "Content-Length is not a number";
	}
	return value.len && value.len <= LENGTH_DIGITS && fw_str_int(value, &r->content_length) ?
		NULL :
		"Content-Length is empty or too large";
}

static bool header_is(struct fw_str name, const char *known)
{
	return fw_str_ieq(name, (struct fw_str){known, name.len}); /* the caller has compared the lengths */
}

/*
 * The headers that frame a request, its Host, and those that this server reads for every request.
 */
static const char *header_error(struct head_walk *h, struct fw_str name, struct fw_str value)
{
	struct request *r = h->r;

	switch (name.len) {
	case sizeof("Host") - 1:
		return header_is(name, "Host") && h->host_n++ ? "Host occurs twice" : NULL;
	case sizeof("Expect") - 1: /* and Prefer */
		r->expects |= header_is(name, "Expect");
		if (!r->prefer.p && header_is(name, "Prefer"))
			r->prefer = value;
		return NULL;
	case sizeof("Content-Length") - 1:
		if (!header_is(name, "Content-Length"))
			return NULL;
		return h->length_n++ ? "Content-Length occurs twice" : content_length_error(r, value);
	case sizeof("Content-Encoding") - 1:
		if (!r->coding_name.p && header_is(name, "Content-Encoding"))
			r->coding_name = value;
		return NULL;
	case sizeof("Transfer-Encoding") - 1:
		if (!header_is(name, "Transfer-Encoding"))
			return NULL;
		r->chunked = true;
		return h->chunked_n++ || !fw_str_ieq(value, FW_STR("chunked")) ?
			"Transfer-Encoding is not a single 'chunked'" :
			NULL;
	default:
		return NULL;
	}
}

static enum MHD_Result header_check(
	void *ctx, enum MHD_ValueKind kind, const char *name, size_t name_len, const char *value, size_t value_len)
{
	struct fw_str n = {name, name_len}, v = {value, value_len};
	struct head_walk *h = ctx;

	(void)kind;
	if (!value) /* impossible for a header that was received */
		h->why = "a header line has no value";
	else if (!line_follows(h, name, name_len, value, value_len))
		h->why = "a header line does not end with CR LF, is folded, or contains a zero byte";
	else if (!header_name_is_valid(name, name_len))
		h->why = "a header name contains a space or another invalid character";
	else if (!header_value_is_valid(value, value_len))
		h->why = "a header value contains a control character";
	else
		h->why = header_error(h, n, v);
	tokenless_header(&h->r->tokenless_head, n, v);
	return h->why ? MHD_NO : MHD_YES;
}

const char *http_head_error(struct request *r, const char *path, const char *method, const char *version, bool *large)
{
	struct head_walk h = {.r = r, .strict = http_library_is_strict()};
	bool old = strcmp(version, MHD_HTTP_VERSION_1_0) == 0;

	r->content_length = -1;
	r->chunked = r->expects = false;
	r->coding_name = r->prefer = FW_STR_NONE;
	r->tokenless_head = (struct tokenless_head){0};
	*large = r->c->target.large;
	if (r->c->target.error)
		return r->c->target.error;
	if (!request_line_is_valid(&h, path, method, version))
		return "the request line is not METHOD PATH VERSION with single spaces, or contains a zero byte";
	MHD_get_connection_values_n(r->conn, MHD_HEADER_KIND, header_check, &h);
	if (h.why)
		return h.why;
	if (!head_ended(&h, method))
		return "the head does not end with an empty line of CR LF";
	if (h.length_n && h.chunked_n)
		return "both Content-Length and Transfer-Encoding are present";
	if (old ? h.chunked_n > 0 : !h.host_n)
		return old ? "Transfer-Encoding is not allowed in HTTP/1.0" : "Host is missing";
	r->last = r->chunked && !h.strict;
	return NULL;
}

enum MHD_Result http_head_refuse(struct request *r, const char *path, const char *why, bool large)
{
	r->last = true;
	http_form_of_errors(r, path);
	if (large)
		return http_problem(r, MHD_HTTP_URI_TOO_LONG, r->twirp ? "invalid_argument" : "too_long", "%s", why);
	return http_problem(r, MHD_HTTP_BAD_REQUEST, r->twirp ? "malformed" : "malformed_request",
		"%s (the connection is closed)", why);
}
