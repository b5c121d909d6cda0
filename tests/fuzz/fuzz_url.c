/* SPDX-License-Identifier: ISC */
/* URLs: what is cleaned stays clean and has an origin; what is resolved stays resolved; what is shown is harmless. */
#include <string.h>

#include "base/str.h"
#include "base/url.h"
#include "base/utf8.h"
#include "fuzz.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *cut = size ? memchr(data, '\n', size) : NULL;
	struct fw_str in = {(const char *)data, size}, base = FW_STR("http://h.example/d/e?q"), once, twice;
	struct fw_buf shown = FW_BUF_INIT(0);
	struct fw_arena a;

	if (cut) { /* first line: the base */
		base = (struct fw_str){in.p, (size_t)(cut - in.p)};
		in = fw_str_sub(in, base.len + 1, in.len);
	}
	fw_arena_init(&a, 0);
	check_clean(&a, in);
	once = fw_url_resolve(&a, base, in);
	FUZZ_CHECK(once.p && once.len <= base.len + 3 * in.len + 8);
	if (fw_url_is_absolute(once) && fw_str_starts(once, FW_STR("http://"))) {
		twice = fw_url_resolve(&a, base, once);
		FUZZ_CHECK(twice.p);
	}
	fw_url_show(&shown, in);
	FUZZ_CHECK(shown.len <= 300 && fw_utf8_valid(fw_buf_str(&shown).p, shown.len) == shown.len);
	for (size_t i = 0, n; i < shown.len; i += n)
		FUZZ_CHECK(!fw_utf8_is_unsafe(fw_utf8_get(shown.p + i, shown.len - i, &n)));
	fw_buf_finish(&shown);
	fw_arena_finish(&a);
	return 0;
}
