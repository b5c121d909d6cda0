/* SPDX-License-Identifier: ISC */
/* Escaping text for XML. */
#include "base/utf8.h"
#include "cli/xml.h"
#include "base/banned.h"

/* Char of XML 1.0, section 2.2. */
static bool is_char(uint32_t cp)
{
	return cp >= 0x20 ? cp != 0xfffe && cp != 0xffff : cp == '\t' || cp == '\n' || cp == '\r';
}

void cli_xml(struct fw_buf *out, struct fw_str s, bool keep)
{
	size_t n;

	for (size_t i = 0; i < s.len; i += n) {
		uint32_t cp = fw_utf8_get(s.p + i, s.len - i, &n);

		/* the second: bytes that are not UTF-8 */
		if (!is_char(cp) || (cp == 0xfffd && n == 1))
			continue;
		switch (cp) {
		case '&':
			fw_buf_adds(out, "&amp;");
			break;
		case '<':
			fw_buf_adds(out, "&lt;");
			break;
		case '>':
			fw_buf_adds(out, "&gt;");
			break;
		case '"':
			fw_buf_adds(out, "&quot;");
			break;
		default:
			if (!fw_utf8_is_unsafe(cp))
				fw_buf_add(out, s.p + i, n);
			else if (keep)
				fw_buf_addf(out, "&#%u;", (unsigned)cp);
		}
	}
}
