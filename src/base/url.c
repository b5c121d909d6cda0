/* SPDX-License-Identifier: ISC */
#include "base/log.h"
#include "base/str.h"
#include "base/url.h"
#include "base/utf8.h"

static bool is_scheme_char(int c)
{
	return fw_is_alnum(c) || c == '+' || c == '-' || c == '.';
}

/* Length of the scheme before ':'; 0: none (RFC 3986 section 3.1). */
static size_t url_scheme_len(struct fw_str s)
{
	size_t n = 0;

	if (!s.len || !fw_is_alpha((unsigned char)s.p[0]))
		return 0;
	while (n < s.len && is_scheme_char((unsigned char)s.p[n]))
		n++;
	return n < s.len && s.p[n] == ':' ? n : 0;
}

static bool url_is_web(struct fw_str scheme)
{
	return fw_str_ieq(scheme, FW_STR("http")) || fw_str_ieq(scheme, FW_STR("https"));
}

bool fw_url_is_absolute(struct fw_str s)
{
	return url_scheme_len(s) > 0;
}

static void url_split_authority(struct fw_str authority, struct fw_url *out)
{
	const char *at = authority.len ? memrchr(authority.p, '@', authority.len) : NULL;
	const char *colon;

	out->has_authority = true;
	if (at) {
		out->userinfo = (struct fw_str){authority.p, (size_t)(at - authority.p)};
		authority = fw_str_sub(authority, out->userinfo.len + 1, authority.len);
	}
	if (authority.len && authority.p[0] == '[') {
		const char *close = memchr(authority.p, ']', authority.len);
		size_t n = close ? (size_t)(close - authority.p) : 0;

		if (close && (n + 1 == authority.len || authority.p[n + 1] == ':')) {
			out->host = fw_str_sub(authority, 1, n);
			out->host_is_v6 = true;
			if (n + 1 < authority.len)
				out->port = fw_str_sub(authority, n + 2, authority.len);
			return;
		}
	}
	colon = authority.len ? memrchr(authority.p, ':', authority.len) : NULL;
	out->host = authority;
	if (colon) {
		out->host.len = (size_t)(colon - authority.p);
		out->port = fw_str_sub(authority, out->host.len + 1, authority.len);
	}
}

/* n: length of the scheme. */
static void url_split(struct fw_str s, size_t n, struct fw_url *out)
{
	size_t i;

	*out = (struct fw_url){.path = s};
	if (n) {
		out->scheme = fw_str_sub(s, 0, n);
		s = fw_str_sub(s, n + 1, s.len);
	}
	for (i = 0; i < s.len && s.p[i] != '#'; i++)
		;
	if (i < s.len) {
		out->fragment = fw_str_sub(s, i + 1, s.len);
		s = fw_str_sub(s, 0, i);
	}
	for (i = 0; i < s.len && s.p[i] != '?'; i++)
		;
	if (i < s.len) {
		out->query = fw_str_sub(s, i + 1, s.len);
		s = fw_str_sub(s, 0, i);
	}
	if (s.len >= 2 && s.p[0] == '/' && s.p[1] == '/') {
		for (i = 2; i < s.len && s.p[i] != '/'; i++)
			;
		url_split_authority(fw_str_sub(s, 2, i), out);
		s = fw_str_sub(s, i, s.len);
	}
	out->path = s;
}

void fw_url_split(struct fw_str s, struct fw_url *out)
{
	url_split(s, url_scheme_len(s), out);
}

/* ---- resolving ------------------------------------------------------------------------------- */

/* Append path to out, without dot segments (RFC 3986 section 5.2.4). */
static void url_path_append(struct fw_buf *out, struct fw_str path)
{
	size_t root = out->len, i = 0;

	while (i < path.len && !out->rc) {
		size_t j = i + (path.p[i] == '/');
		struct fw_str segment;
		bool last;

		while (j < path.len && path.p[j] != '/')
			j++;
		last = j == path.len;
		segment = fw_str_sub(path, i + (path.p[i] == '/'), j);
		if (fw_str_eq(segment, FW_STR("."))) {
			if (last && path.p[i] == '/')
				fw_buf_addc(out, '/');
		} else if (fw_str_eq(segment, FW_STR(".."))) {
			while (out->len > root && out->p[out->len - 1] != '/')
				out->len--;
			if (out->len > root)
				out->len--;
			if (last && path.p[i] == '/')
				fw_buf_addc(out, '/');
		} else {
			fw_buf_addstr(out, fw_str_sub(path, i, j));
		}
		i = j;
	}
	if (out->p)
		out->p[out->len] = '\0';
}

/* A path without an authority must not start with "//" (RFC 3986 section 3.3). */
static void url_path_one_slash(struct fw_buf *out, size_t root)
{
	size_t n = root;

	while (n + 1 < out->len && out->p[n] == '/' && out->p[n + 1] == '/')
		n++;
	if (n > root) {
		memmove(out->p + root, out->p + n, out->len - n + 1);
		out->len -= n - root;
	}
}

static void url_authority_append(struct fw_buf *out, const struct fw_url *u)
{
	if (!u->has_authority)
		return;
	fw_buf_adds(out, "//");
	if (u->userinfo.p) {
		fw_buf_addstr(out, u->userinfo);
		fw_buf_addc(out, '@');
	}
	if (u->host_is_v6)
		fw_buf_addc(out, '[');
	fw_buf_addstr(out, u->host);
	if (u->host_is_v6)
		fw_buf_addc(out, ']');
	if (u->port.p) {
		fw_buf_addc(out, ':');
		fw_buf_addstr(out, u->port);
	}
}

/*
 * Trim controls and spaces, remove tabs and newlines, and make spaces %20. Returns s itself if
 * nothing changes.
 */
static struct fw_str url_trim(struct fw_arena *a, struct fw_str s)
{
	size_t extra = 0, n = 0;
	bool change = false;
	char *d;

	while (s.len && (unsigned char)s.p[0] <= ' ') {
		s.p++;
		s.len--;
	}
	while (s.len && (unsigned char)s.p[s.len - 1] <= ' ')
		s.len--;
	for (size_t i = 0; i < s.len; i++) {
		if (s.p[i] == ' ')
			extra += 2;
		if (s.p[i] == ' ' || s.p[i] == '\t' || s.p[i] == '\n' || s.p[i] == '\r')
			change = true;
	}
	if (!change)
		return s;
	d = fw_arena_alloc(a, s.len + extra + 1);
	if (!d)
		return FW_STR_NONE;
	for (size_t i = 0; i < s.len; i++) {
		if (s.p[i] == ' ') {
			memcpy(d + n, "%20", 3);
			n += 3;
		} else if (s.p[i] != '\t' && s.p[i] != '\n' && s.p[i] != '\r') {
			d[n++] = s.p[i];
		}
	}
	d[n] = '\0';
	return (struct fw_str){d, n};
}

struct fw_str fw_url_resolve(struct fw_arena *a, struct fw_str base, struct fw_str ref)
{
	struct fw_url b, r;
	struct fw_buf out = FW_BUF_INIT(0);
	struct fw_str done;

	ref = url_trim(a, ref.p ? ref : FW_STR(""));
	if (!ref.p)
		return ref;
	fw_url_split(ref, &r);
	if (!base.p || !base.len)
		return ref;
	fw_url_split(base, &b);
	if (!b.scheme.p || (!b.has_authority && !fw_str_starts(b.path, FW_STR("/"))))
		return ref;
	if (r.scheme.p) {
		/*
		 * "http:page" is a relative reference if base has that scheme too, as in browsers
		 */
		if (r.has_authority || !url_is_web(r.scheme) || !fw_str_ieq(r.scheme, b.scheme))
			return ref;
		/* "http:f://host" has no host either */
		url_split(fw_str_sub(ref, r.scheme.len + 1, ref.len), 0, &r);
	}
	fw_buf_addstr(&out, b.scheme);
	fw_buf_addc(&out, ':');
	if (r.has_authority) {
		url_authority_append(&out, &r);
		url_path_append(&out, r.path);
	} else {
		size_t root = out.len;

		url_authority_append(&out, &b);
		if (r.path.len == 0) {
			fw_buf_addstr(&out, b.path);
			if (!r.query.p)
				r.query = b.query;
		} else if (r.path.p[0] == '/') {
			url_path_append(&out, r.path);
		} else {
			struct fw_buf merged = FW_BUF_INIT(0);
			size_t n = b.path.len;

			while (n && b.path.p[n - 1] != '/')
				n--;
			if (n == 0 && b.has_authority)
				fw_buf_addc(&merged, '/');
			fw_buf_addstr(&merged, fw_str_sub(b.path, 0, n));
			fw_buf_addstr(&merged, r.path);
			if (merged.rc)
				out.rc = merged.rc;
			url_path_append(&out, fw_buf_str(&merged));
			fw_buf_finish(&merged);
		}
		if (!b.has_authority && !out.rc)
			url_path_one_slash(&out, root);
	}
	if (r.query.p) {
		fw_buf_addc(&out, '?');
		fw_buf_addstr(&out, r.query);
	}
	if (r.fragment.p) {
		fw_buf_addc(&out, '#');
		fw_buf_addstr(&out, r.fragment);
	}
	a->failed |= out.rc != 0; /* out of memory must not look like an absent URL */
	done = out.rc ? FW_STR_NONE : fw_arena_str(a, fw_buf_str(&out));
	fw_buf_finish(&out);
	return done;
}

/* ---- URLs of feeds --------------------------------------------------------------------------- */

static struct fw_str url_lower_dup(struct fw_arena *a, struct fw_str s)
{
	char *d = fw_arena_dup(a, s.p, s.len);

	for (size_t i = 0; d && i < s.len; i++)
		d[i] = (char)fw_lower((unsigned char)d[i]);
	return (struct fw_str){d, s.len};
}

bool fw_url_decode(struct fw_arena *a, struct fw_str s, struct fw_str *out)
{
	char *d = fw_arena_alloc(a, s.len + 1);
	size_t n = 0;

	if (!d)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		int hi = i + 2 < s.len && s.p[i] == '%' ? fw_hexval((unsigned char)s.p[i + 1]) : -1;
		int lo = hi >= 0 ? fw_hexval((unsigned char)s.p[i + 2]) : -1;

		if (s.p[i] == '%' && hi >= 0 && lo >= 0) {
			d[n++] = (char)(hi << 4 | lo);
			i += 2;
		} else {
			d[n++] = s.p[i];
		}
	}
	d[n] = '\0';
	*out = (struct fw_str){d, n};
	return true;
}

void fw_url_escape(struct fw_buf *out, struct fw_str s)
{
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (fw_is_alnum(c) || c == '-' || c == '.' || c == '_' || c == '~')
			fw_buf_addc(out, (char)c);
		else
			fw_buf_addf(out, "%%%02X", c);
	}
}

bool fw_port_parse(struct fw_str s, int *port)
{
	int64_t v;

	if (!s.len || !fw_is_digit((unsigned char)s.p[0]) || !fw_is_digit((unsigned char)s.p[s.len - 1]) ||
		!fw_str_int(s, &v) || v < 1 || v > 65535)
		return false;
	*port = (int)v;
	return true;
}

bool fw_port_split(struct fw_str s, struct fw_str *rest, int *port)
{
	/* end: the last ']' or '/'; only a colon behind it separates a port */
	size_t colons = 0, colon = 0, end = 0;

	for (size_t i = 0; i < s.len; i++) {
		if (s.p[i] == ']' || s.p[i] == '/')
			end = i;
		if (s.p[i] == ':') {
			colon = i;
			colons++;
		}
	}
	*port = 0;
	*rest = s;
	if (!colons || (end ? colon < end : colons > 1))
		return true;
	*rest = fw_str_sub(s, 0, colon);
	return fw_port_parse(fw_str_sub(s, colon + 1, s.len), port);
}

bool fw_host_port_split(struct fw_str s, struct fw_str *host, struct fw_str *port)
{
	size_t colon = s.len;

	while (colon && s.p[colon - 1] != ':')
		colon--;
	if (!colon)
		return false;
	*port = fw_str_sub(s, colon, s.len);
	*host = fw_str_sub(s, 0, colon - 1);
	if (host->len > 1 && host->p[0] == '[' && host->p[host->len - 1] == ']')
		*host = fw_str_sub(*host, 1, host->len - 1);
	return true;
}

static int url_host_check(struct fw_str host, bool v6, struct fw_err *err)
{
	if (!host.len)
		return fw_err_set(err, FW_EINVAL, "the URL has no host");
	if (host.len > 253)
		return fw_err_set(err, FW_EINVAL, "the host name is longer than 253 bytes");
	if (host.p[0] == '.' || fw_str_find(host, FW_STR("..")))
		return fw_err_set(err, FW_EINVAL, "the host '%.*s' has an empty label", FW_STR_ARG(host));
	for (size_t i = 0; i < host.len; i++) {
		int c = (unsigned char)host.p[i];

		if (v6 ? fw_hexval(c) < 0 && c != ':' && c != '.' :
			 c < 0x80 && !fw_is_alnum(c) && c != '-' && c != '.' && c != '_')
			return fw_err_set(err, FW_EINVAL, "the host '%.*s' has an invalid character (%s)",
				FW_STR_ARG(host),
				c == '%' ? "%: zone ids are not allowed" : "allowed are letters, digits, - and .");
	}
	return 0;
}

int fw_url_clean(struct fw_arena *a, struct fw_str in, struct fw_str *url, struct fw_str *user, struct fw_str *pass,
	struct fw_err *err)
{
	struct fw_str s = fw_str_trim(in.p ? in : FW_STR("")), rest, scheme, host;
	struct fw_buf out = FW_BUF_INIT(0);
	struct fw_url u;
	int port = 0, rc;

	*url = *user = *pass = FW_STR_NONE;
	if (!s.len)
		return fw_err_set(err, FW_EINVAL, "the URL is empty");
	if (s.len > FW_URL_MAX)
		return fw_err_set(err, FW_EINVAL, "the URL is longer than %d bytes", FW_URL_MAX);
	for (size_t i = 0; i < s.len; i++) {
		if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f)
			return fw_err_set(err, FW_EINVAL, "the URL has a control character at byte %zu", i + 1);
	}
	if (fw_str_istarts(s, FW_STR("feed://"))) {
		s = fw_str_sub(s, 7, s.len);
		if (!fw_url_is_absolute(s) || memchr(s.p, ':', s.len) == NULL)
			s = (struct fw_str){fw_arena_printf(a, "http://%.*s", FW_STR_ARG(s)), s.len + 7};
	} else if (fw_str_istarts(s, FW_STR("feed:"))) {
		s = fw_str_sub(s, 5, s.len);
	}
	if (!s.p)
		return fw_err_set(err, FW_ENOMEM, "out of memory");
	fw_url_split(s, &u);
	/* "example.org/feed" and "example.org:8080/feed" */
	if (!u.has_authority && !url_is_web(u.scheme) &&
		(!u.scheme.p || memchr(u.scheme.p, '.', u.scheme.len) || fw_str_eq(u.scheme, FW_STR("localhost")))) {
		struct fw_str first = fw_str_split(s, '/', &rest);

		if (!memchr(first.p, '.', first.len) && !fw_str_starts(first, FW_STR("localhost")))
			return fw_err_set(err, FW_EINVAL, "'%.*s' is not a URL: write https://...", FW_STR_ARG(s));
		s = (struct fw_str){fw_arena_printf(a, "https://%.*s", FW_STR_ARG(s)), s.len + 8};
		if (!s.p)
			return fw_err_set(err, FW_ENOMEM, "out of memory");
		fw_url_split(s, &u);
	}
	if (!url_is_web(u.scheme))
		return fw_err_set(err, FW_EINVAL, "'%.*s' is not http or https: only these are fetched",
			FW_STR_ARG(u.scheme.p ? u.scheme : s));
	rc = url_host_check(u.host, u.host_is_v6, err);
	if (rc)
		return rc;
	if (u.port.len && !fw_port_parse(u.port, &port))
		return fw_err_set(err, FW_EINVAL, "'%.*s' is not a port: 1 to 65535", FW_STR_ARG(u.port));
	if (u.userinfo.p) {
		struct fw_str name = fw_str_split(u.userinfo, ':', &rest);

		if (!fw_url_decode(a, name, user) || (rest.p && !fw_url_decode(a, rest, pass)))
			return fw_err_set(err, FW_ENOMEM, "out of memory");
	}
	scheme = url_lower_dup(a, u.scheme);
	host = url_lower_dup(a, u.host);
	if (!scheme.p || !host.p)
		return fw_err_set(err, FW_ENOMEM, "out of memory");
	fw_buf_addstr(&out, scheme);
	fw_buf_adds(&out, u.host_is_v6 ? "://[" : "://");
	fw_buf_addstr(&out, host);
	if (u.host_is_v6)
		fw_buf_addc(&out, ']');
	if (port && port != (scheme.len == 5 ? 443 : 80))
		fw_buf_addf(&out, ":%d", port);
	if (!u.path.len)
		fw_buf_addc(&out, '/');
	for (size_t i = 0; i < u.path.len; i++) {
		if (u.path.p[i] == ' ')
			fw_buf_adds(&out, "%20");
		else
			fw_buf_addc(&out, u.path.p[i]);
	}
	if (u.query.p)
		fw_buf_addc(&out, '?');
	for (size_t i = 0; u.query.p && i < u.query.len; i++) {
		if (u.query.p[i] == ' ')
			fw_buf_adds(&out, "%20");
		else
			fw_buf_addc(&out, u.query.p[i]);
	}
	*url = out.rc ? FW_STR_NONE : fw_arena_str(a, fw_buf_str(&out));
	fw_buf_finish(&out);
	return url->p ? 0 : fw_err_set(err, FW_ENOMEM, "out of memory");
}

bool fw_url_same_origin(struct fw_str a, struct fw_str b)
{
	struct fw_buf x = FW_BUF_INIT(0), y = FW_BUF_INIT(0);
	bool same = !fw_url_origin(a, &x) && !fw_url_origin(b, &y) && fw_str_eq(fw_buf_str(&x), fw_buf_str(&y));

	fw_buf_finish(&x);
	fw_buf_finish(&y);
	return same;
}

bool fw_url_host(struct fw_str url, char *dst, size_t cap)
{
	struct fw_url u;

	fw_url_split(url, &u);
	if (u.host.len && u.host.p[u.host.len - 1] == '.')
		u.host.len--;
	if (!u.host.len || u.host.len >= cap)
		return false;
	for (size_t i = 0; i < u.host.len; i++)
		dst[i] = (char)fw_lower((unsigned char)u.host.p[i]);
	dst[u.host.len] = '\0';
	return true;
}

int fw_url_port(struct fw_str url)
{
	struct fw_url u;
	int port;

	fw_url_split(url, &u);
	if (u.port.len)
		return fw_port_parse(u.port, &port) ? port : -1;
	if (fw_str_ieq(u.scheme, FW_STR("https")))
		return 443;
	return fw_str_ieq(u.scheme, FW_STR("http")) ? 80 : -1;
}

int fw_url_origin(struct fw_str url, struct fw_buf *out)
{
	struct fw_url u;
	char host[256];
	int port = fw_url_port(url);

	fw_url_split(url, &u);
	if (!u.scheme.p || !fw_url_host(url, host, sizeof(host)) || port < 0)
		return FW_EINVAL;
	for (size_t i = 0; i < u.scheme.len; i++)
		fw_buf_addc(out, (char)fw_lower((unsigned char)u.scheme.p[i]));
	fw_buf_addf(out, u.host_is_v6 ? "://[%s]" : "://%s", host);
	if (port != (u.scheme.len == 5 ? 443 : 80))
		fw_buf_addf(out, ":%d", port);
	return out->rc;
}

void fw_url_show(struct fw_buf *out, struct fw_str url)
{
	struct fw_url u;
	size_t start = out->len;

	fw_url_split(url, &u);
	if (u.userinfo.p) {
		size_t at = (size_t)(u.userinfo.p - url.p);

		fw_log_escape(out, fw_str_sub(url, 0, at));
		fw_buf_adds(out, "***");
		url = fw_str_sub(url, at + u.userinfo.len, url.len);
	}
	fw_log_escape(out, fw_str_sub(url, 0, 400));
	if (out->len - start > 300) {
		out->len = start + fw_utf8_cut(out->p + start, out->len - start, 297);
		fw_buf_adds(out, "...");
	}
}
