/* SPDX-License-Identifier: ISC */
/*
 * URLs: a cleaned URL stays clean and has an origin; a resolved URL stays resolved, with a scheme
 * and an authority of one of its two inputs; a URL for display is harmless. If there are two lines,
 * the first is the base.
 */
#include <string.h>

#include "base/str.h"
#include "base/url.h"
#include "base/utf8.h"
#include "fuzz.h"

/* ---- cleaning -------------------------------------------------------------------------------- */

static void check_clean(struct fw_arena *a, struct fw_str in)
{
	struct fw_str url, again, user, pass;
	struct fw_buf origin = FW_BUF_INIT(0);
	struct fw_err err;

	if (fw_url_clean(a, in, &url, &user, &pass, &err)) {
		FUZZ_CHECK(err.text[0]);
		FUZZ_CHECK(fw_utf8_valid(err.text, strlen(err.text)) == strlen(err.text));
		return;
	}
	FUZZ_CHECK(fw_str_starts(url, FW_STR("http://")) || fw_str_starts(url, FW_STR("https://")));
	for (size_t i = 0; i < url.len; i++)
		FUZZ_CHECK((unsigned char)url.p[i] > ' ' && url.p[i] != 0x7f && url.p[i] != '#');
	FUZZ_CHECK(fw_url_origin(url, &origin) == 0);
	FUZZ_CHECK(fw_url_port(url) > 0);
	if (url.len <= FW_URL_MAX) {
		FUZZ_CHECK(fw_url_clean(a, url, &again, &user, &pass, &err) == 0);
		FUZZ_CHECK(fw_str_eq(url, again) && !user.p && !pass.p);
	}
	fw_buf_finish(&origin);
}

/* ---- resolving ------------------------------------------------------------------------------- */

/*
 * As a browser reads it: spaces and controls at both ends, and newlines and tabs anywhere, are
 * ignored. The test's own implementation.
 */
static struct fw_str tidied(struct fw_arena *a, struct fw_str s)
{
	char *d = fw_arena_alloc(a, s.len + 1);
	size_t n = 0;

	FUZZ_CHECK(d);
	while (s.len && (unsigned char)s.p[0] <= ' ')
		s = fw_str_sub(s, 1, s.len);
	while (s.len && (unsigned char)s.p[s.len - 1] <= ' ')
		s.len--;
	for (size_t i = 0; i < s.len; i++) {
		if (!memchr("\t\n\r", s.p[i], 3))
			d[n++] = s.p[i];
	}
	return (struct fw_str){d, n};
}

/* With its colon; empty: none. */
static struct fw_str scheme_of(struct fw_str s)
{
	size_t n = 0;

	while (n < s.len &&
		(n ? fw_is_alnum((unsigned char)s.p[n]) || memchr("+-.", s.p[n], 3) :
		     fw_is_alpha((unsigned char)s.p[n])))
		n++;
	return n && n < s.len && s.p[n] == ':' ? fw_str_sub(s, 0, n + 1) : FW_STR("");
}

/* With its slashes; empty: none. */
static struct fw_str authority_of(struct fw_str s)
{
	size_t from = scheme_of(s).len, to = from + 2;

	if (!fw_str_starts(fw_str_sub(s, from, s.len), FW_STR("//")))
		return FW_STR("");
	while (to < s.len && !memchr("/?#", s.p[to], 3))
		to++;
	return fw_str_sub(s, from, to);
}

/*
 * Scheme and authority are the reference's or the base's, never made of parts of both; and the
 * result is final.
 */
static void check_resolved(struct fw_arena *a, struct fw_str base, struct fw_str in)
{
	struct fw_str once = fw_url_resolve(a, base, in), ref = tidied(a, in), scheme = scheme_of(ref),
		      root = scheme_of(base);
	bool joined = root.len &&
		(authority_of(base).len || fw_str_starts(fw_str_sub(base, root.len, base.len), FW_STR("/"))),
	     web, own;

	FUZZ_CHECK(once.p && once.len <= base.len + 3 * in.len + 8);
	if (!joined) {
		FUZZ_CHECK(fw_str_eq(scheme_of(once), scheme));
		return;
	}
	web = fw_str_ieq(scheme, FW_STR("http:")) || fw_str_ieq(scheme, FW_STR("https:"));
	/* browsers read "http:page" as relative */
	own = scheme.len && !(web && fw_str_ieq(scheme, root) && !authority_of(ref).len);
	FUZZ_CHECK(fw_str_eq(scheme_of(once), own ? scheme : root));
	if (!own && !authority_of(ref).len && !fw_str_starts(fw_str_sub(ref, scheme.len, ref.len), FW_STR("//")))
		FUZZ_CHECK(fw_str_eq(authority_of(once), authority_of(base)));
	if (memchr(base.p, ' ', base.len) || tidied(a, base).len != base.len)
		return; /* spaces are copied */
	FUZZ_CHECK(!memchr(once.p, ' ', once.len));
	if (authority_of(base).len) /* otherwise "http:/x" would be relative again */
		/* a control may now be at its end */
		FUZZ_CHECK(fw_str_eq(fw_url_resolve(a, base, once), tidied(a, once)));
}

static void check_shown(struct fw_str in)
{
	struct fw_buf shown = FW_BUF_INIT(0);

	fw_url_show(&shown, in);
	FUZZ_CHECK(shown.len <= 300 && fw_utf8_valid(fw_buf_str(&shown).p, shown.len) == shown.len);
	for (size_t i = 0, n; i < shown.len; i += n)
		FUZZ_CHECK(!fw_utf8_is_unsafe(fw_utf8_get(shown.p + i, shown.len - i, &n)));
	fw_buf_finish(&shown);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *cut = size ? memchr(data, '\n', size) : NULL;
	struct fw_str in = {(const char *)data, size}, base = FW_STR("http://h.example/d/e?q");
	struct fw_arena a;

	if (cut) { /* first line: the base */
		base = (struct fw_str){in.p, (size_t)(cut - in.p)};
		in = fw_str_sub(in, base.len + 1, in.len);
	}
	fw_arena_init(&a, 0);
	check_clean(&a, in);
	check_resolved(&a, base, in);
	check_shown(in);
	fw_arena_finish(&a);
	return 0;
}
