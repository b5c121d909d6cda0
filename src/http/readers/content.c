/* SPDX-License-Identifier: ISC */
/* What readers show of an entry. */
#include "base/clock.h"
#include "base/log.h"
#include "base/xml.h"
#include "api/view.h"
#include "http/readers/content.h"

int64_t reader_seconds(int64_t ms)
{
	return ms / FW_SECOND_MS - (ms % FW_SECOND_MS < 0);
}

int64_t reader_published_ms(const struct fw_entry_row *e)
{
	return fw_date_known(e->published_ms) ? e->published_ms :
		fw_date_known(e->updated_ms)  ? e->updated_ms :
						e->seen_ms;
}

int64_t reader_published_s(const struct fw_entry_row *e)
{
	return reader_seconds(reader_published_ms(e));
}

void reader_html(struct reader *rd, const struct fw_entry_row *e, struct fw_buf *html)
{
	struct fw_view_work work = {.cache = rd->r->thread->h->views};
	struct fw_err err = {0};

	fw_buf_reset(html);
	if (fw_entry_html(e, &work, html, &err)) /* the item has no content then */
		fw_warn("%s", err.text);
	if (!html->len)
		fw_xml_escape(html, e->summary, FW_XML_TEXT);
	if (html->rc)
		rd->p.out.rc = html->rc;
}
