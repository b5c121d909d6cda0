/* SPDX-License-Identifier: ISC */
/* Miniflux' API: entries, their states, and lists of them. */
#include <jansson.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/url.h"
#include "http/readers/content.h"
#include "http/readers/miniflux/miniflux.h"

#define ENCLOSURES_OF_ENTRY 100 /* an enclosure's number: its entry's times this, and its place */

/* ---- an entry -------------------------------------------------------------------------------- */

struct entry_writer {
	struct reader *rd;
	struct miniflux_lists l;
	struct fw_buf html; /* of the entry that is being written */
};

/* Words between the tags of HTML, as minutes; 0: none. */
static int64_t entry_minutes(struct fw_str html)
{
	bool tag = false, word = false;
	int64_t n = 0;

	for (size_t i = 0; i < html.len; i++) {
		char c = html.p[i];
		bool letter = !tag && c != '<' && (unsigned char)c > ' ';

		n += letter && !word;
		word = letter;
		tag = c == '<' || (tag && c != '>');
	}
	return (n + MINIFLUX_WORDS_PER_MINUTE - 1) / MINIFLUX_WORDS_PER_MINUTE;
}

static void entry_enclosures(struct entry_writer *w, const struct fw_entry_row *e, const json_t *extra)
{
	struct fw_json *j = &w->rd->p.j;
	const json_t *one;
	size_t i;

	fw_json_array(j, "enclosures");
	json_array_foreach(json_object_get(extra, "attachments"), i, one)
	{
		struct fw_str url = http_json_text(one, "url"), type = http_json_text(one, "mime_type");

		if (!fw_is_http(url) || i >= ENCLOSURES_OF_ENTRY)
			continue;
		fw_json_object(j, NULL);
		fw_json_int(j, "id", e->id * ENCLOSURES_OF_ENTRY + (int64_t)i);
		fw_json_int(j, "user_id", w->rd->account.id);
		fw_json_int(j, "entry_id", e->id);
		fw_json_str(j, "url", url);
		fw_json_str(j, "mime_type", type.len ? type : FW_STR("application/octet-stream"));
		fw_json_int(j, "size", json_integer_value(json_object_get(one, "size_in_bytes")));
		fw_json_int(j, "media_progression", 0);
		fw_json_end(j);
	}
	fw_json_end(j);
}

/* Tags and enclosures are among the entry's other members. */
static void entry_extra(struct entry_writer *w, const struct fw_entry_row *e)
{
	json_t *extra = e->extra.len ? json_loadb(e->extra.p, e->extra.len, 0, NULL) : NULL, *tag;
	struct fw_json *j = &w->rd->p.j;
	size_t i;

	entry_enclosures(w, e, extra);
	fw_json_array(j, "tags");
	json_array_foreach(json_object_get(extra, "tags"), i, tag)
	{
		if (json_is_string(tag))
			fw_json_str(j, NULL, (struct fw_str){json_string_value(tag), json_string_length(tag)});
	}
	fw_json_end(j);
	json_decref(extra);
}

static void entry_feed(struct entry_writer *w, const struct fw_entry_row *e)
{
	const struct reader_feed *f = reader_feed_find(&w->l.feeds, e->feed_id);
	/* a starred entry of a feed that is not subscribed any more */
	const struct reader_feed gone = {
		.id = e->feed_id, .title = e->feed_title, .url = e->feed_url, .folder = FW_STR("")};

	miniflux_feed_json(w->rd, "feed", f ? f : &gone, &w->l);
}

static void entry_json(struct entry_writer *w, const struct fw_stream_entry *se)
{
	const struct fw_entry_row *e = se->entry;
	struct fw_json *j = &w->rd->p.j;
	char hash[24];

	reader_html(w->rd, e, &w->html);
	(void)fw_snprintf(hash, sizeof(hash), "%016llx",
		(unsigned long long)fw_hash64(e->guid.len ? e->guid.p :
				e->url.p                  ? e->url.p :
							    "",
			e->guid.len ? e->guid.len : e->url.len));
	fw_json_object(j, NULL);
	fw_json_int(j, "id", e->id);
	fw_json_int(j, "user_id", w->rd->account.id);
	fw_json_int(j, "feed_id", e->feed_id);
	fw_json_cstr(j, "status", se->read ? "read" : "unread");
	fw_json_cstr(j, "hash", hash);
	fw_json_text(j, "title", e->title.len ? e->title : e->url);
	fw_json_text(j, "url", e->url);
	fw_json_cstr(j, "comments_url", "");
	miniflux_time(j, "published_at", fw_store_entry_date(e, e->seen_ms));
	miniflux_time(j, "created_at", e->seen_ms);
	miniflux_time(j, "changed_at", FW_MAX(e->changed_ms, e->seen_ms));
	fw_json_text(j, "content", fw_buf_str(&w->html));
	fw_json_text(j, "author", e->author);
	fw_json_cstr(j, "share_code", "");
	fw_json_bool(j, "starred", se->starred);
	fw_json_int(j, "reading_time", entry_minutes(fw_buf_str(&w->html)));
	entry_extra(w, e);
	entry_feed(w, e);
	fw_json_end(j);
}

/* ---- lists ----------------------------------------------------------------------------------- */

/*
 * An order by status or category is several lists, one behind the other, each by number: the
 * streams of the account have no such order.
 */
struct miniflux_entry_parts {
	struct fw_stream *at;
	size_t n;
};

struct entries_page {
	struct entry_writer w;
	struct miniflux_filter f;
	struct miniflux_entry_parts parts;
	size_t part_n;  /* entries of the part that is being written */
	bool full;      /* the response is */
	bool ids_alone; /* without the entries */
};

FW_COMPARE(entry_category_by_id, struct miniflux_category, id)

static void entry_parts_add(struct entries_page *l, const struct fw_stream *s)
{
	l->parts.at[l->parts.n++] = *s;
}

static void entry_parts_by_status(struct entries_page *l)
{
	struct fw_stream s = l->f.s;

	for (int i = 0; i < 2; i++) {
		enum fw_read_filter read = (i == 0) == s.oldest_first ? FW_READ_UNREAD : FW_READ_READ;

		if (l->f.s.read != FW_READ_ANY && l->f.s.read != read)
			continue;
		s.read = read;
		entry_parts_add(l, &s);
	}
}

static int entry_parts_by_category(struct entries_page *l)
{
	size_t n = l->w.l.n, size = sizeof(*l->w.l.category);
	struct miniflux_category *c = fw_arena_calloc(&l->w.rd->p.arena, n + 1, size);
	struct fw_stream s = l->f.s;

	if (!c)
		return fw_no_memory(&l->w.rd->err);
	memcpy(c, l->w.l.category, n * size);
	if (l->f.order == MINIFLUX_BY_CATEGORY_ID)
		qsort(c, n, size, entry_category_by_id);
	for (size_t i = 0; i < n; i++) {
		const struct miniflux_category *one = &c[s.oldest_first ? i : n - 1 - i];

		if (!one->feed_n || (s.folder.p && !fw_str_eq(s.folder, one->folder)))
			continue;
		s.folder = one->folder;
		s.folder_only = true;
		entry_parts_add(l, &s);
		s.folder = l->f.s.folder;
	}
	return 0;
}

static int entry_parts_make(struct entries_page *l)
{
	l->parts.at = fw_arena_calloc(&l->w.rd->p.arena, l->w.l.n + 2, sizeof(*l->parts.at));
	if (!l->parts.at)
		return fw_no_memory(&l->w.rd->err);
	if (l->f.order == MINIFLUX_BY_STATUS)
		entry_parts_by_status(l);
	else if (l->f.order == MINIFLUX_BY_CATEGORY_TITLE || l->f.order == MINIFLUX_BY_CATEGORY_ID)
		return entry_parts_by_category(l);
	else
		entry_parts_add(l, &l->f.s);
	return 0;
}

static int entries_page_add(void *ctx, const struct fw_stream_entry *e)
{
	struct entries_page *l = ctx;

	l->full = !reader_has_room(l->w.rd);
	if (l->full)
		return 1;
	if (l->ids_alone)
		fw_json_int(&l->w.rd->p.j, NULL, e->entry->id);
	else
		entry_json(&l->w, e);
	l->part_n++;
	return 0;
}

/*
 * Write what the part has from *skip on, and at most *left (0: nothing; all: no limit). *total
 * rises by all that it has, which is counted only if the list does not show it.
 */
static int entry_part_write(struct entries_page *l, struct fw_stream s, size_t *skip, size_t *left, int64_t *total)
{
	struct reader *rd = l->w.rd;
	bool all = !l->f.s.limit, show = (all || *left) && !l->full;
	int64_t n = 0;
	int rc = 0;

	s.offset = *skip;
	s.limit = all ? 0 : *left;
	s.content = true;
	l->part_n = 0;
	if (show && l->ids_alone)
		rc = fw_account_ids(rd->r->store, &s, entries_page_add, l, &rd->err);
	else if (show)
		rc = fw_account_entries(rd->r->store, &s, entries_page_add, l, &rd->err);
	if (rc < 0)
		return rc;
	if (show && !l->full && (l->part_n || !*skip) && (all || l->part_n < *left)) {
		n = (int64_t)(*skip + l->part_n);
	} else {
		s.offset = s.limit = 0;
		rc = fw_account_count(rd->r->store, &s, &n, &rd->err);
	}
	*total += n;
	*skip -= FW_MIN(*skip, (size_t)n);
	*left -= FW_MIN(*left, l->part_n);
	return FW_MIN(rc, 0);
}

static enum MHD_Result entries_page_send(struct entries_page *l)
{
	struct reader *rd = l->w.rd;
	size_t skip = l->f.s.offset, left = l->f.s.limit;
	int64_t total = 0;
	int rc = entry_parts_make(l);

	if (l->f.nothing || l->f.changed_after_ms > http_now_ms(rd->r))
		l->parts.n = 0;
	fw_json_object(&rd->p.j, NULL);
	fw_json_array(&rd->p.j, l->ids_alone ? "entry_ids" : "entries");
	for (size_t i = 0; i < l->parts.n && !rc; i++)
		rc = entry_part_write(l, l->parts.at[i], &skip, &left, &total);
	fw_json_end(&rd->p.j);
	fw_json_int(&rd->p.j, "total", total);
	fw_json_end(&rd->p.j);
	fw_buf_finish(&l->w.html);
	return reader_json(rd, rc);
}

/* The parameters feed_id and category_id. False: responded. */
static bool entries_page_named(struct entries_page *l, enum MHD_Result *ok)
{
	const struct miniflux_category *c;

	if (l->f.feed_id && !reader_feed_find(&l->w.l.feeds, l->f.feed_id)) {
		*ok = reader_wrong(l->w.rd, "feed_id", "a feed of the account");
		return false;
	}
	if (l->f.feed_id)
		l->f.s.feed_id = l->f.feed_id;
	if (!l->f.category_id)
		return true;
	c = miniflux_category_find(&l->w.l, l->f.category_id);
	if (!c) {
		*ok = reader_wrong(l->w.rd, "category_id", "a category of the account");
		return false;
	}
	l->f.s.folder = c->folder;
	l->f.s.folder_only = true;
	return true;
}

/* Whatever a person typed is a search: what is no query is looked for word by word. */
static int entries_page_search(struct entries_page *l)
{
	struct reader *rd = l->w.rd;
	int rc;

	if (!l->f.s.search.p)
		return 0;
	rc = fw_account_query(&rd->p.arena, l->f.s.search, http_now_ms(rd->r), &l->f.s.search, &rd->err);
	l->f.nothing = l->f.nothing || !l->f.s.search.p;
	return rc;
}

/* The newest first, and more of them: what a client compares its own numbers with. */
static void entries_page_ids(struct entries_page *l)
{
	struct fw_stream *s = &l->f.s;
	bool all = !http_form_get(&l->w.rd->form, "limit").len || !s->limit;

	l->f.order = MINIFLUX_BY_ID;
	s->sort = FW_SORT_NONE;
	s->by_date = s->oldest_first = false;
	s->limit = all ? MINIFLUX_IDS_MAX : FW_MIN(s->limit, (size_t)MINIFLUX_IDS_MAX);
}

/* The list's parameters; its path may have set feed_id or folder. */
static enum MHD_Result entries_page(struct entries_page *l, int64_t feed_id, struct fw_str folder)
{
	const char *name, *expected;
	enum MHD_Result ok = MHD_NO;
	int rc;

	if (!miniflux_filter_read(&l->w.rd->form, &l->f, &name, &expected))
		return reader_wrong(l->w.rd, name, expected);
	if (l->ids_alone)
		entries_page_ids(l);
	l->f.s.account_id = l->w.rd->account.id;
	l->f.s.feed_id = feed_id;
	l->f.s.folder = folder;
	l->f.s.folder_only = folder.p != NULL;
	if (!entries_page_named(l, &ok))
		return ok;
	rc = entries_page_search(l);
	return rc ? http_store_failed(l->w.rd->r, rc, &l->w.rd->err) : entries_page_send(l);
}

enum MHD_Result miniflux_entry_list(struct reader *rd)
{
	struct entries_page l = {.w = {.rd = rd}};
	int rc = miniflux_lists_read(rd, 0, false, &l.w.l);

	return rc ? http_store_failed(rd->r, rc, &rd->err) : entries_page(&l, 0, FW_STR_NONE);
}

enum MHD_Result miniflux_entry_ids(struct reader *rd)
{
	struct entries_page l = {.w = {.rd = rd}, .ids_alone = true};
	int rc = miniflux_lists_read(rd, 0, true, &l.w.l);

	return rc ? http_store_failed(rd->r, rc, &rd->err) : entries_page(&l, 0, FW_STR_NONE);
}

enum MHD_Result miniflux_feed_entries(struct reader *rd)
{
	struct entries_page l = {.w = {.rd = rd}};
	enum MHD_Result ok = MHD_NO;

	return miniflux_feed_path(rd, false, &l.w.l, &ok) ? entries_page(&l, rd->r->id, FW_STR_NONE) : ok;
}

enum MHD_Result miniflux_category_entries(struct reader *rd)
{
	struct entries_page l = {.w = {.rd = rd}};
	enum MHD_Result ok = MHD_NO;
	const struct miniflux_category *c = miniflux_category_path(rd, false, &l.w.l, &ok);

	return c ? entries_page(&l, 0, c->folder) : ok;
}

/* ---- one entry ------------------------------------------------------------------------------- */

struct entry_looking {
	struct entry_writer w;
	int64_t feed_id;      /* only an entry of this feed; 0: any */
	struct fw_str folder; /* only of a feed in it; absent: any */
	bool write, content;  /* the entry; or its content alone */
	bool found, starred;
};

static int entry_look(void *ctx, const struct fw_stream_entry *e)
{
	struct entry_looking *k = ctx;
	const struct reader_feed *f = reader_feed_find(&k->w.l.feeds, e->entry->feed_id);

	if ((k->feed_id && e->entry->feed_id != k->feed_id) || (k->folder.p && !(f && fw_str_eq(f->folder, k->folder))))
		return 0;
	k->found = true;
	k->starred = e->starred;
	if (k->content)
		reader_html(k->w.rd, e->entry, &k->w.html);
	else if (k->write)
		entry_json(&k->w, e);
	return 0;
}

/* False: responded. */
static bool entry_find(struct entry_looking *k, int64_t id, enum MHD_Result *ok)
{
	struct reader *rd = k->w.rd;
	int rc = fw_account_entries_get(
		rd->r->store, rd->account.id, &id, 1, k->write || k->content, entry_look, k, &rd->err);

	if (rc || !k->found)
		*ok = rc ? http_store_failed(rd->r, rc, &rd->err) : miniflux_missing(rd, "entry");
	return !rc && k->found;
}

static enum MHD_Result entry_send(struct entry_looking *k, int64_t id)
{
	enum MHD_Result ok = MHD_NO;
	bool good;

	k->write = true;
	good = entry_find(k, id, &ok);
	fw_buf_finish(&k->w.html);
	return good ? reader_json(k->w.rd, 0) : ok;
}

enum MHD_Result miniflux_entry_get(struct reader *rd)
{
	struct entry_looking k = {.w = {.rd = rd}};
	int rc = miniflux_lists_read(rd, 0, false, &k.w.l);

	return rc ? http_store_failed(rd->r, rc, &rd->err) : entry_send(&k, rd->r->id);
}

enum MHD_Result miniflux_feed_entry(struct reader *rd)
{
	struct entry_looking k = {.w = {.rd = rd}, .feed_id = rd->r->id};
	enum MHD_Result ok = MHD_NO;

	return miniflux_feed_path(rd, false, &k.w.l, &ok) ? entry_send(&k, rd->r->below_id) : ok;
}

enum MHD_Result miniflux_category_entry(struct reader *rd)
{
	struct entry_looking k = {.w = {.rd = rd}};
	enum MHD_Result ok = MHD_NO;
	const struct miniflux_category *c = miniflux_category_path(rd, false, &k.w.l, &ok);

	if (!c)
		return ok;
	k.folder = c->folder;
	return entry_send(&k, rd->r->below_id);
}

/* The content that is stored: feedwheel fetches feeds, not the pages of entries. */
enum MHD_Result miniflux_content(struct reader *rd)
{
	struct entry_looking k = {.w = {.rd = rd}, .content = true};
	enum MHD_Result ok = MHD_NO;

	if (!entry_find(&k, rd->r->id, &ok))
		return ok;
	fw_json_object(&rd->p.j, NULL);
	fw_json_text(&rd->p.j, "content", fw_buf_str(&k.w.html));
	fw_json_int(&rd->p.j, "reading_time", entry_minutes(fw_buf_str(&k.w.html)));
	fw_json_end(&rd->p.j);
	fw_buf_finish(&k.w.html);
	return reader_json(rd, 0);
}

enum MHD_Result miniflux_save(struct reader *rd)
{
	struct entry_looking k = {.w = {.rd = rd}};
	enum MHD_Result ok = MHD_NO;

	if (!entry_find(&k, rd->r->id, &ok))
		return ok;
	return http_problem(rd->r, MHD_HTTP_BAD_REQUEST, "invalid",
		"there is no other service to save to: star the entry (PUT .../star)");
}

/* ---- states ---------------------------------------------------------------------------------- */

enum MHD_Result miniflux_star(struct reader *rd)
{
	static const int64_t STARRED[] = {FW_LABEL_STARRED};
	struct entry_looking k = {.w = {.rd = rd}};
	struct fw_entry_edit edit = {.read = -1, .add = STARRED, .remove = STARRED};
	enum MHD_Result ok = MHD_NO;

	if (!entry_find(&k, rd->r->id, &ok))
		return ok;
	edit.add_n = !k.starred;
	edit.remove_n = k.starred;
	return miniflux_done(
		rd, fw_account_edit(rd->r->store, rd->account.id, &rd->r->id, 1, &edit, http_now_ms(rd->r), &rd->err));
}

static enum MHD_Result entries_invalid(struct reader *rd, const char *words)
{
	return http_problem(rd->r, MHD_HTTP_BAD_REQUEST, "invalid", "%s", words);
}

/* What becomes of the entries: status, starred or both. NULL: good, else what is wrong. */
static const char *entries_edit_read(const json_t *o, struct fw_entry_edit *edit)
{
	static const int64_t STARRED[] = {FW_LABEL_STARRED};
	const json_t *starred = json_object_get(o, "starred"), *status = json_object_get(o, "status");
	struct fw_str word = http_json_text(o, "status");

	*edit = (struct fw_entry_edit){.read = -1, .add = STARRED, .remove = STARRED};
	if (fw_str_eq(word, FW_STR("removed")))
		return "status: entries are not removed for one account (use read)";
	if (fw_str_eq(word, FW_STR("read")) || fw_str_eq(word, FW_STR("unread")))
		edit->read = word.p[0] == 'r';
	else if (status && !json_is_null(status))
		return "status: must be read or unread";
	if (starred && !json_is_null(starred) && !json_is_boolean(starred))
		return "starred: must be true or false";
	edit->add_n = json_is_true(starred);
	edit->remove_n = json_is_false(starred);
	return edit->read < 0 && !edit->add_n && !edit->remove_n ? "status or starred: one of them is needed" : NULL;
}

static enum MHD_Result entries_set(struct reader *rd, const json_t *o)
{
	const json_t *list = json_object_get(o, "entry_ids"), *one;
	struct fw_entry_edit edit;
	const char *wrong = entries_edit_read(o, &edit);
	size_t n = json_array_size(list), i;
	int64_t *ids = fw_arena_calloc(&rd->p.arena, n + 1, sizeof(*ids));

	if (!ids)
		return http_store_failed(rd->r, fw_no_memory(&rd->err), &rd->err);
	if (!n || n > READER_IDS_MAX)
		return entries_invalid(rd, "entry_ids: must be 1 to 50000 numbers of entries");
	json_array_foreach(list, i, one)
	{
		if (!json_is_integer(one))
			return entries_invalid(rd, "entry_ids: must be numbers of entries");
		ids[i] = json_integer_value(one);
	}
	if (wrong)
		return entries_invalid(rd, wrong);
	return miniflux_done(
		rd, fw_account_edit(rd->r->store, rd->account.id, ids, n, &edit, http_now_ms(rd->r), &rd->err));
}

enum MHD_Result miniflux_entries_set(struct reader *rd)
{
	enum MHD_Result ok = MHD_NO;
	json_t *o = miniflux_body(rd, &ok);

	if (o)
		ok = entries_set(rd, o);
	json_decref(o);
	return ok;
}
