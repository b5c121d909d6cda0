/* SPDX-License-Identifier: ISC */
/* What readers show of an entry: its content and its date. */
#ifndef FW_HTTP_READERS_CONTENT_H
#define FW_HTTP_READERS_CONTENT_H

#include "http/readers/reader.h"

/* Set html: the sanitised content, else the summary. */
void reader_html(struct reader *rd, const struct fw_entry_row *e, struct fw_buf *html);
int64_t reader_seconds(int64_t ms); /* rounded down */
/* An entry's date: published, else updated, else stored. */
int64_t reader_published_ms(const struct fw_entry_row *e);
int64_t reader_published_s(const struct fw_entry_row *e);

#endif
