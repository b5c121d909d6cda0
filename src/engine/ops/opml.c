/* SPDX-License-Identifier: ISC */
#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/xml.h"
#include "api/opml.h"

static int opml_by_folder(const void *x, const void *y)
{
	const struct fw_opml_item *a = x, *b = y;
	int d = fw_str_order(a->folder, b->folder);

	return d ? d : a->at < b->at ? -1 : 1;
}

void fw_opml_sort(struct fw_opml_item *item, size_t n)
{
	if (n)
		qsort(item, n, sizeof(*item), opml_by_folder);
}

static void opml_attribute_add(struct fw_buf *out, const char *name, struct fw_str value)
{
	fw_buf_addf(out, " %s=\"", name);
	fw_xml_escape(out, value, FW_XML_KEEP);
	fw_buf_addc(out, '"');
}

static void opml_indent(struct fw_buf *out, size_t depth)
{
	fw_buf_addf(out, "%*s", (int)(4 + 2 * FW_MIN(depth, (size_t)20)), "");
}

static struct fw_str opml_folder_part(struct fw_str folder, size_t i)
{
	struct fw_str rest = folder, one = FW_STR_NONE;

	for (size_t k = 0; k <= i && rest.p; k++)
		one = fw_str_split(rest, '/', &rest);
	return one;
}

static size_t opml_folder_depth(struct fw_str folder)
{
	size_t n = folder.len ? 1 : 0;

	for (size_t i = 0; i < folder.len; i++)
		n += folder.p[i] == '/';
	return n;
}

/* Close and open outlines to get from the last item's folder to this one. */
static void opml_folder_change(struct fw_opml_writer *w, struct fw_str to)
{
	size_t same = 0, have = opml_folder_depth(w->folder), want = opml_folder_depth(to);

	while (same < have && same < want && fw_str_eq(opml_folder_part(w->folder, same), opml_folder_part(to, same)))
		same++;
	while (have > same) {
		opml_indent(w->out, --have);
		fw_buf_adds(w->out, "</outline>\n");
	}
	for (; same < want; same++) {
		opml_indent(w->out, same);
		fw_buf_adds(w->out, "<outline");
		opml_attribute_add(w->out, "text", opml_folder_part(to, same));
		fw_buf_adds(w->out, ">\n");
	}
	w->folder = to;
}

void fw_opml_begin(struct fw_opml_writer *w, struct fw_buf *out, int64_t now_ms)
{
	char when[FW_RFC3339_MAX];

	*w = (struct fw_opml_writer){out, FW_STR("")};
	fw_buf_addf(out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<opml version=\"2.0\">\n  <head>\n"
		"    <title>feedwheel subscriptions</title>\n    <dateCreated>%s</dateCreated>\n  </head>\n  <body>\n",
		fw_http_date(when, now_ms));
}

void fw_opml_add(struct fw_opml_writer *w, const struct fw_opml_item *item)
{
	opml_folder_change(w, item->folder);
	opml_indent(w->out, opml_folder_depth(item->folder));
	fw_buf_adds(w->out, "<outline type=\"rss\"");
	opml_attribute_add(w->out, "text", item->title);
	opml_attribute_add(w->out, "xmlUrl", item->url);
	if (item->home.len)
		opml_attribute_add(w->out, "htmlUrl", item->home);
	fw_buf_adds(w->out, "/>\n");
}

void fw_opml_end(struct fw_opml_writer *w)
{
	opml_folder_change(w, FW_STR(""));
	fw_buf_adds(w->out, "  </body>\n</opml>\n");
}
