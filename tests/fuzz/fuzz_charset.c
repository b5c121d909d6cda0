/* SPDX-License-Identifier: ISC */
/*
 * Any bytes become valid UTF-8 without NUL and BOM, in bounded memory; valid UTF-8 without another
 * declaration stays as it is. The first byte of the input selects the Content-Type.
 */
#include <string.h>

#include "base/str.h"
#include "base/utf8.h"
#include "fuzz.h"
#include "parse/charset/charset.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const TYPES[] = {
		NULL,
		"text/xml",
		"text/xml; charset=utf-8",
		"application/xml;charset=\"iso-8859-1\"",
		"text/xml; charset=gb2312",
		"x; charset=Shift_JIS",
		"x; charset=big5",
		"x; charset=euc-kr",
		"x; charset=iso-2022-jp",
		"x; charset=utf-16",
		"x; charset=us-ascii",
		"x; charset=windows-1255",
		"x; charset=x-nonsense",
		"x; charset=euc-jp",
		"x; charset=tis-620",
		";;charset",
		"x; charset=gb18030",
		"x; charset=gbk",
		"x; charset=utf-16be",
		"x; charset=utf-32",
		"x; charset=ibm866",
		"x; charset=koi8-u",
		"x; charset=macintosh",
		"x; charset=iso-8859-8",
		"x; charset=iso-8859-6",
		"x; charset=windows-1258",
		"x; charset=x-mac-cyrillic",
	};
	struct fw_charset_result r;
	struct fw_str bytes, type;
	struct fw_arena a;
	struct fw_err err;

	if (size == 0)
		return 0;
	type = fw_str(TYPES[data[0] % FW_N(TYPES)]);
	bytes = (struct fw_str){(const char *)data + 1, size - 1};
	fw_arena_init(&a, 0);
	FUZZ_CHECK(fw_charset_decode(&a, bytes, type, &r, &err) == 0);
	FUZZ_CHECK(fw_utf8_valid(r.text.p, r.text.len) == r.text.len);
	FUZZ_CHECK(r.text.len == 0 || !memchr(r.text.p, 0, r.text.len));
	FUZZ_CHECK(!fw_str_starts(r.text, FW_STR("\xef\xbb\xbf")) ||
		fw_str_starts(bytes, FW_STR("\xef\xbb\xbf\xef\xbb\xbf")) || r.wrong ||
		strcmp(r.encoding, "utf-8") != 0);
	FUZZ_CHECK(fw_charset_label(fw_str(r.encoding)) == r.encoding);
	FUZZ_CHECK(r.wrong == (r.problem != NULL));
	FUZZ_CHECK(a.used_bytes <= 64 * size + 65536);
	if (!r.wrong && strcmp(r.encoding, "utf-8") == 0 && bytes.len)
		FUZZ_CHECK(r.text.p >= bytes.p && r.text.p <= bytes.p + bytes.len);
	if (r.text.len) { /* the result is text that does not change again */
		struct fw_charset_result again;

		FUZZ_CHECK(fw_charset_decode(&a, r.text, FW_STR("text/plain; charset=utf-8"), &again, &err) == 0);
		FUZZ_CHECK(fw_str_starts(r.text, FW_STR("\xef\xbb\xbf")) || fw_str_eq(again.text, r.text));
	}
	fw_arena_finish(&a);
	return 0;
}
