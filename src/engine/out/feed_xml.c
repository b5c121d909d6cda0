/* SPDX-License-Identifier: ISC */
/* Elements and attributes of the XML formats. */
#include "base/xml.h"
#include "engine/out/feed_item.h"

void feed_xml_element(struct fw_buf *out, int indent, const char *name, struct fw_str text)
{
	if (!text.len)
		return;
	fw_buf_addf(out, "%*s<%s>", indent, "", name);
	fw_xml_escape(out, text, FW_XML_TEXT);
	fw_buf_addf(out, "</%s>\n", name);
}

void feed_xml_attribute(struct fw_buf *out, const char *name, struct fw_str value)
{
	if (!value.len)
		return;
	fw_buf_addf(out, " %s=\"", name);
	fw_xml_escape(out, value, FW_XML_KEEP);
	fw_buf_addc(out, '"');
}
