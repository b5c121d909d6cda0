/* SPDX-License-Identifier: ISC */
/*
 * Writes a feed. The head of a feed needs the time of its newest entry, so entries are collected
 * first, as text.
 */
#include <stdlib.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/map.h"
#include "engine/out/feed_item.h"

struct feed_format {
	const char *extension, *type;
	void (*item)(struct fw_buf *out, const struct feed_item *i);
	void (*document)(struct fw_buf *out, const struct fw_feed_out_head *h, int64_t updated_ms, struct fw_str items);
};

static const struct feed_format FORMAT[FW_FEED_OUT_N] = {
	[FW_FEED_OUT_ATOM] = {"atom", "application/atom+xml", feed_atom_item, feed_atom_document},
	[FW_FEED_OUT_RSS] = {"rss", "application/rss+xml", feed_rss_item, feed_rss_document},
	[FW_FEED_OUT_JSON] = {"json", "application/feed+json", feed_json_item, feed_json_document},
};

/* The feed of the entry that has an id in this document. */
struct feed_out_id {
	int64_t feed_id;
};

struct fw_feed_out {
	const struct feed_format *format;
	struct fw_view_work *work;
	struct fw_buf items;
	struct fw_arena ids; /* of the map's keys and values */
	struct fw_map by_id;
	int64_t updated_ms; /* the newest change; 0: no entry */
};

const char *fw_feed_out_extension(enum fw_feed_out_format format)
{
	return FORMAT[format].extension;
}

const char *fw_feed_out_type(enum fw_feed_out_format format)
{
	return FORMAT[format].type;
}

struct fw_feed_out *fw_feed_out_create(enum fw_feed_out_format format, struct fw_view_work *work)
{
	struct fw_feed_out *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->format = &FORMAT[format];
	f->work = work;
	fw_arena_init(&f->ids, 0);
	fw_map_init(&f->by_id, 0);
	return f;
}

void fw_feed_out_destroy(struct fw_feed_out *f)
{
	if (!f)
		return;
	fw_map_finish(&f->by_id);
	fw_arena_finish(&f->ids);
	fw_buf_finish(&f->items);
	free(f);
}

size_t fw_feed_out_bytes(const struct fw_feed_out *f)
{
	return f->items.len;
}

/* Note an id. False: the document has it already, of *of. */
static bool feed_out_note_id(struct fw_feed_out *f, struct fw_str id, int64_t feed_id, struct feed_out_id **of)
{
	struct feed_out_id *one;
	int rc = 0;

	*of = fw_map_get(&f->by_id, id);
	if (*of)
		return false;
	one = fw_arena_alloc(&f->ids, sizeof(*one));
	id = fw_arena_str(&f->ids, id);
	if (one && id.p) {
		one->feed_id = feed_id;
		(void)fw_map_put(&f->by_id, id, one, &rc);
	}
	f->ids.failed |= rc != 0;
	return true;
}

/*
 * An id occurs once in a document (api/feed_out.h). False: the entry is left out. Entries of one
 * feed with one id differ in URL, title or date, or else in their text.
 */
static bool feed_out_take_id(
	struct fw_feed_out *f, const struct fw_entry_row *e, struct fw_arena *a, struct feed_item *i)
{
	struct fw_hasher text;
	struct feed_out_id *of;
	char *more;

	if (feed_out_note_id(f, i->id, e->feed_id, &of))
		return true;
	if (of->feed_id != e->feed_id)
		return false;
	more = fw_arena_printf(a, "%.*s\n%.*s\n%lld", FW_STR_ARG(e->url), FW_STR_ARG(e->title),
		(long long)(fw_date_known(e->published_ms) ? e->published_ms : 0));
	i->id = feed_id(a, e->feed_url, e->guid, fw_str(more));
	if (feed_out_note_id(f, i->id, e->feed_id, &of))
		return true;
	fw_hasher_init(&text);
	fw_hasher_add(&text, e->summary);
	fw_hasher_add(&text, e->content);
	more = fw_arena_printf(a, "%s\n%016llx", more, (unsigned long long)fw_hasher_end64(&text));
	i->id = feed_id(a, e->feed_url, e->guid, fw_str(more));
	return feed_out_note_id(f, i->id, e->feed_id, &of);
}

/* False: no memory. */
static bool feed_out_html(struct fw_feed_out *f, const struct fw_entry_row *e, struct fw_buf *html)
{
	struct fw_err why;
	int rc;

	if (e->content_type != FW_TEXT_HTML || !e->content.len)
		return true;
	rc = fw_entry_html(e, f->work, html, &why);
	if (rc && rc != FW_ENOMEM)
		fw_warn("%s", why.text); /* the entry goes out without its content */
	return rc != FW_ENOMEM && !html->rc;
}

int fw_feed_out_add(struct fw_feed_out *f, const struct fw_entry_row *e, struct fw_err *err)
{
	struct fw_buf html = FW_BUF_INIT(0);
	struct feed_item i;
	struct fw_arena a;
	bool ok;

	fw_arena_init(&a, 0);
	feed_item_read(e, &a, &i);
	ok = !a.failed;
	if (ok && feed_out_take_id(f, e, &a, &i)) {
		ok = feed_out_html(f, e, &html);
		i.html = html.len ? fw_buf_str(&html) : FW_STR_NONE;
		f->format->item(&f->items, &i);
		f->updated_ms = FW_MAX(f->updated_ms, FW_MAX(i.updated_ms, e->changed_ms));
	}
	ok = ok && !a.failed && !f->ids.failed && !f->items.rc;
	fw_buf_finish(&html);
	fw_arena_finish(&a);
	return ok ? 0 : fw_no_memory(err);
}

int fw_feed_out_end(struct fw_feed_out *f, const struct fw_feed_out_head *head, struct fw_buf *out, struct fw_err *err)
{
	f->format->document(out, head, f->updated_ms, fw_buf_str(&f->items));
	return out->rc ? fw_no_memory(err) : 0;
}
