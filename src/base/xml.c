/* SPDX-License-Identifier: ISC */
/* Escaping text for XML. */
#include "base/utf8.h"
#include "base/xml.h"

bool fw_xml_is_char(uint32_t cp)
{
	return cp >= 0x20 ? cp != 0xfffe && cp != 0xffff : cp == '\t' || cp == '\n' || cp == '\r';
}

static void unsafe_add(struct fw_buf *out, uint32_t cp, enum fw_xml_unsafe unsafe)
{
	if (unsafe == FW_XML_TEXT && (cp == '\n' || cp == '\t'))
		fw_buf_addc(out, (char)cp);
	else if (unsafe != FW_XML_DROP)
		fw_buf_addf(out, "&#%u;", (unsigned)cp);
}

void fw_xml_escape(struct fw_buf *out, struct fw_str s, enum fw_xml_unsafe unsafe)
{
	size_t n;

	for (size_t i = 0; i < s.len; i += n) {
		uint32_t cp = fw_utf8_get(s.p + i, s.len - i, &n);

		/* the second: bytes that are not UTF-8 */
		if (!fw_xml_is_char(cp) || (cp == 0xfffd && n == 1))
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
			if (fw_utf8_is_unsafe(cp))
				unsafe_add(out, cp, unsafe);
			else
				fw_buf_add(out, s.p + i, n);
		}
	}
}
