/* SPDX-License-Identifier: ISC */
/*
 * The Fever API: marks first, then what the parameters ask for, as the program Fever did.
 * A response has all of it.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "http/readers/fever/fever.h"
#include "http/readers/folder_id.h"
#include "http/readers/content.h"
#include "http/readers/feeds.h"
#include "http/readers/icons.h"

/* Feeds without an icon have this one: 1 transparent pixel. The others follow it. */
#define FAVICON_ID 1
#define FAVICON "image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
#define GROUP_ALL 0 /* "Kindling": all feeds, since sparks, feeds of low priority, are none here */

static bool fever_wants(const struct reader *rd, const char *name)
{
	return http_form_get(&rd->form, name).p;
}

/* ---- authorization --------------------------------------------------------------------------- */

static void fever_begin(struct reader *rd, bool auth)
{
	struct fw_json *j = &rd->p.j;

	fw_json_object(j, NULL);
	fw_json_int(j, "api_version", 3);
	fw_json_int(j, "auth", auth);
}

static bool fever_authorize(struct reader *rd, enum MHD_Result *ok)
{
	struct request *r = rd->r;
	struct fw_str given = http_form_get(&rd->form, "api_key");
	char key[FEVER_KEY_LEN + 1];
	int rc = FW_ENOTFOUND;

	/* a GET changes nothing, so it has no key that could */
	if (r->route->body_max && fever_key_read(given, key))
		rc = fw_account_token_find(r->store, fw_str(key), FW_ACCOUNT_TOKEN_FEVER, http_now_ms(r), &rd->p.arena,
			&rd->account, &rd->err);
	if (!rc)
		return true;
	if (rc != FW_ENOTFOUND) {
		*ok = http_store_failed(r, rc, &rd->err);
		return false;
	}
	if (given.len) {
		http_auth_count_wrong(r);
		r->verdict = AUTH_LIMITED;
		if (http_auth_is_limited(r)) {
			*ok = http_auth_refuse_account(r, NULL, ""); /* 429 */
			return false;
		}
	}
	fever_begin(rd, false);
	fw_json_end(&rd->p.j);
	*ok = reader_json(rd, 0);
	return false;
}

/* ---- folders --------------------------------------------------------------------------------- */

/* The subscriptions by folder. */
struct fever_feeds {
	struct reader_feeds all;
	const struct reader_feed **by_folder;
};

static int fever_by_folder(const void *x, const void *y)
{
	const struct reader_feed *a = *(const struct reader_feed *const *)x, *b = *(const struct reader_feed *const *)y;
	int d = fw_str_order(a->folder, b->folder);

	return d ? d : FW_ORDER(a->id, b->id);
}

static int fever_feeds_read(struct reader *rd, bool brief, struct fever_feeds *out)
{
	int rc = reader_feeds_read(rd, 0, brief, &out->all);

	if (rc)
		return rc;
	out->by_folder = fw_arena_calloc(&rd->p.arena, out->all.n, sizeof(struct reader_feed *));
	if (!out->by_folder)
		return fw_err_set(&rd->err, FW_ENOMEM, "out of memory");
	for (size_t i = 0; i < out->all.n; i++)
		out->by_folder[i] = &out->all.feed[i];
	if (out->all.n)
		qsort(out->by_folder, out->all.n, sizeof(struct reader_feed *), fever_by_folder);
	return 0;
}

/* How many feeds from here on are in the same folder? */
static size_t fever_folder_len(const struct fever_feeds *f, size_t from)
{
	size_t i = from + 1;

	while (i < f->all.n && fw_str_eq(f->by_folder[i]->folder, f->by_folder[from]->folder))
		i++;
	return i - from;
}

static void fever_groups(struct reader *rd, const struct fever_feeds *f)
{
	struct fw_json *j = &rd->p.j;

	fw_json_array(j, "groups");
	for (size_t i = 0; i < f->all.n; i += fever_folder_len(f, i)) {
		struct fw_str name = f->by_folder[i]->folder;

		if (!name.len)
			continue;
		fw_json_object(j, NULL);
		fw_json_int(j, "id", http_folder_id(name));
		fw_json_text(j, "title", name);
		fw_json_end(j);
	}
	fw_json_end(j);
}

/* Add a number to a list with commas. */
static void fever_list_add(struct fw_buf *list, int64_t id)
{
	fw_buf_addf(list, "%s%lld", list->len ? "," : "", (long long)id);
}

static void fever_list_end(struct reader *rd, const char *name, struct fw_buf *list)
{
	if (list->rc)
		rd->p.out.rc = list->rc;
	fw_json_text(&rd->p.j, name, fw_buf_str(list));
	fw_buf_finish(list);
}

static void fever_feeds_groups(struct reader *rd, const struct fever_feeds *f)
{
	struct fw_json *j = &rd->p.j;
	size_t n;

	fw_json_array(j, "feeds_groups");
	for (size_t i = 0; i < f->all.n; i += n) {
		struct fw_str name = f->by_folder[i]->folder;
		struct fw_buf list = FW_BUF_INIT(0);

		n = fever_folder_len(f, i);
		if (!name.len)
			continue;
		for (size_t k = i; k < i + n; k++)
			fever_list_add(&list, f->by_folder[k]->id);
		fw_json_object(j, NULL);
		fw_json_int(j, "group_id", http_folder_id(name));
		fever_list_end(rd, "feed_ids", &list);
		fw_json_end(j);
	}
	fw_json_end(j);
}

static void fever_feeds(struct reader *rd, const struct fever_feeds *f)
{
	struct fw_json *j = &rd->p.j;

	fw_json_array(j, "feeds");
	for (size_t i = 0; i < f->all.n; i++) {
		const struct reader_feed *feed = &f->all.feed[i];

		fw_json_object(j, NULL);
		fw_json_int(j, "id", feed->id);
		fw_json_int(j, "favicon_id", FAVICON_ID + feed->icon_id);
		fw_json_text(j, "title", feed->title);
		fw_json_text(j, "url", feed->url);
		fw_json_text(j, "site_url", feed->home);
		fw_json_int(j, "is_spark", 0);
		fw_json_int(j, "last_updated_on_time", feed->newest_ms / FW_SECOND_MS);
		fw_json_end(j);
	}
	fw_json_end(j);
}

/* ---- favicons -------------------------------------------------------------------------------- */

static void fever_favicon(struct fw_json *j, int64_t id, struct fw_str data)
{
	fw_json_object(j, NULL);
	fw_json_int(j, "id", id);
	fw_json_str(j, "data", data);
	fw_json_end(j);
}

struct fever_favicons {
	struct reader *rd;
	struct fw_buf data;
};

static int fever_favicon_add(void *ctx, const struct fw_icon *icon)
{
	struct fever_favicons *k = ctx;

	if (!icon->type.p)
		return 0;
	if (!reader_has_room(k->rd))
		return 1; /* clients ask for icons again */
	http_icon_data(&k->data, icon);
	fever_favicon(&k->rd->p.j, FAVICON_ID + icon->id, fw_buf_str(&k->data));
	return k->data.rc;
}

static int fever_by_icon(const void *x, const void *y)
{
	const struct reader_feed *a = *(const struct reader_feed *const *)x, *b = *(const struct reader_feed *const *)y;

	return FW_ORDER(a->icon_id, b->icon_id);
}

/* Each icon once. Sorts f->by_folder. */
static int fever_favicons(struct reader *rd, const struct fever_feeds *f)
{
	struct fever_favicons k = {.rd = rd, .data = FW_BUF_INIT(0)};
	struct fw_str *url = fw_arena_calloc(&rd->p.arena, f->all.n + 1, sizeof(*url));
	int64_t last_id = 0;
	size_t n = 0;
	int rc;

	if (!url)
		return fw_err_set(&rd->err, FW_ENOMEM, "out of memory");
	if (f->all.n)
		qsort(f->by_folder, f->all.n, sizeof(struct reader_feed *), fever_by_icon);
	for (size_t i = 0; i < f->all.n; i++) {
		if (f->by_folder[i]->icon_id != last_id)
			url[n++] = f->by_folder[i]->icon_at.url;
		last_id = f->by_folder[i]->icon_id;
	}
	fw_json_array(&rd->p.j, "favicons");
	fever_favicon(&rd->p.j, FAVICON_ID, FW_STR(FAVICON));
	rc = n ? fw_icon_find(rd->r->store, url, n, true, fever_favicon_add, &k, &rd->err) : 0;
	fw_json_end(&rd->p.j);
	fw_buf_finish(&k.data);
	rd->p.n = 0; /* an item follows, however large these are: without one a client believes that it has all */
	return FW_MIN(rc, 0);
}

/* ---- lists ----------------------------------------------------------------------------------- */

static int fever_lists_add(struct reader *rd)
{
	bool feeds = fever_wants(rd, "feeds"), groups = fever_wants(rd, "groups"), icons = fever_wants(rd, "favicons");
	struct fever_feeds f;
	int rc = feeds || groups || icons ? fever_feeds_read(rd, !feeds && !icons, &f) : 0;

	if (!rc && (feeds || icons))
		rc = http_icons_read(rd, &f.all);
	if (rc)
		return rc;
	if (groups)
		fever_groups(rd, &f);
	if (feeds)
		fever_feeds(rd, &f);
	if (feeds || groups)
		fever_feeds_groups(rd, &f);
	return icons ? fever_favicons(rd, &f) : 0;
}

/* ---- items ----------------------------------------------------------------------------------- */

/* The numbers of a page. */
struct fever_page {
	int64_t *feed; /* only of these, by number; feed_n 0: of all */
	size_t feed_n;
	int64_t id[FEVER_PAGE];
	size_t n;
};

static int fever_by_number(const void *x, const void *y)
{
	const int64_t *a = x, *b = y;

	return FW_ORDER(*a, *b);
}

static int fever_page_add(void *ctx, const struct fw_stream_entry *e)
{
	struct fever_page *p = ctx;
	const int64_t feed_id = e->entry->feed_id;

	if (p->feed_n && !bsearch(&feed_id, p->feed, p->feed_n, sizeof(*p->feed), fever_by_number))
		return 0;
	p->id[p->n++] = e->entry->id;
	return p->n == FEVER_PAGE;
}

/* Read a list; false: it is wrong. */
static bool fever_param_ids(struct reader *rd, const char *name, size_t max, int64_t *out, size_t *n)
{
	return fever_ids_read(http_form_get(&rd->form, name), out, max, n);
}

/* The feeds in feed_ids, and those of the groups in group_ids. *wrong: a parameter. */
static int fever_page_feeds(struct reader *rd, struct fever_page *p, const char **wrong)
{
	struct fever_feeds f = {.all = {.n = 0}};
	int64_t *group;
	size_t group_n;
	int rc = fever_wants(rd, "group_ids") ? fever_feeds_read(rd, true, &f) : 0;

	if (rc)
		return rc;
	group = fw_arena_calloc(&rd->p.arena, FEVER_IDS_MAX, sizeof(*group));
	p->feed = fw_arena_calloc(&rd->p.arena, FEVER_IDS_MAX + f.all.n + 1, sizeof(*p->feed));
	if (!group || !p->feed)
		return fw_err_set(&rd->err, FW_ENOMEM, "out of memory");
	if (!fever_param_ids(rd, "feed_ids", FEVER_IDS_MAX, p->feed, &p->feed_n))
		*wrong = "feed_ids";
	if (!fever_param_ids(rd, "group_ids", FEVER_IDS_MAX, group, &group_n))
		*wrong = "group_ids";
	for (size_t i = 0; i < f.all.n && !*wrong; i++) {
		int64_t of = http_folder_id(f.all.feed[i].folder);
		bool in = false;

		for (size_t k = 0; k < group_n && !in; k++)
			in = group[k] == of;
		if (in)
			p->feed[p->feed_n++] = f.all.feed[i].id;
	}
	if (!p->feed_n)
		p->feed[p->feed_n++] = 0; /* none of them exists: no feed has this number */
	qsort(p->feed, p->feed_n, sizeof(*p->feed), fever_by_number);
	return 0;
}

/*
 * The page: by with_ids; else below max_id, the newest first; else above since_id, the oldest
 * first. *wrong: a parameter.
 */
static int fever_page_read(struct reader *rd, struct fever_page *p, const char **wrong)
{
	struct fw_stream s = {.account_id = rd->account.id};
	bool newest = fever_wants(rd, "max_id");
	int rc = 0;

	if (!newest && fever_wants(rd, "with_ids")) {
		if (!fever_param_ids(rd, "with_ids", FEVER_PAGE, p->id, &p->n))
			*wrong = "with_ids";
		return 0;
	}
	if (!http_form_number(&rd->form, "max_id", INT64_MAX, &s.before_id))
		*wrong = "max_id";
	if (!http_form_number(&rd->form, "since_id", INT64_MAX, &s.after_id))
		*wrong = "since_id";
	if (!*wrong && (fever_wants(rd, "feed_ids") || fever_wants(rd, "group_ids")))
		rc = fever_page_feeds(rd, p, wrong);
	if (rc || *wrong)
		return rc;
	s.oldest_first = !newest;
	s.feed_id = p->feed_n == 1 ? p->feed[0] : 0;
	s.limit = p->feed_n > 1 ? 0 : FEVER_PAGE;
	if (p->feed_n == 1 && !s.feed_id)
		return 0;
	rc = fw_account_ids(rd->r->store, &s, fever_page_add, p, &rd->err);
	return FW_MIN(rc, 0);
}

struct fever_writer {
	struct reader *rd;
	struct fw_buf html; /* of the item that is being written */
};

static int fever_item_add(void *ctx, const struct fw_stream_entry *se)
{
	struct fever_writer *w = ctx;
	struct fw_json *j = &w->rd->p.j;
	const struct fw_entry_row *e = se->entry;

	if ((w->rd->p.n && w->rd->p.out.len >= PAGE_BYTES) || !reader_has_room(w->rd))
		return 1; /* the client gets the rest with its next page */
	reader_html(w->rd, e, &w->html);
	fw_json_object(j, NULL);
	fw_json_int(j, "id", e->id);
	fw_json_int(j, "feed_id", e->feed_id);
	fw_json_text(j, "title", e->title);
	fw_json_text(j, "author", e->author);
	fw_json_text(j, "html", fw_buf_str(&w->html));
	fw_json_text(j, "url", e->url);
	fw_json_int(j, "is_saved", se->starred);
	fw_json_int(j, "is_read", se->read);
	fw_json_int(j, "created_on_time", reader_published_s(e));
	fw_json_end(j);
	return 0;
}

static int fever_items_add(struct reader *rd, const char **wrong)
{
	struct fw_stream all = {.account_id = rd->account.id};
	struct fever_page p = {.n = 0};
	struct fever_writer w = {.rd = rd, .html = FW_BUF_INIT(0)};
	int64_t total = 0;
	int rc = fever_page_read(rd, &p, wrong);

	if (rc || *wrong)
		return rc;
	rc = fw_account_count(rd->r->store, &all, &total, &rd->err);
	fw_json_int(&rd->p.j, "total_items", total);
	fw_json_array(&rd->p.j, "items");
	if (!rc && p.n)
		rc = fw_account_entries_get(
			rd->r->store, rd->account.id, p.id, p.n, true, fever_item_add, &w, &rd->err);
	fw_json_end(&rd->p.j);
	fw_buf_finish(&w.html);
	return FW_MIN(rc, 0);
}

static int fever_number_add(void *ctx, const struct fw_stream_entry *e)
{
	fever_list_add(ctx, e->entry->id);
	return 0;
}

static int fever_numbers_add(struct reader *rd, const char *name, const struct fw_stream *s)
{
	struct fw_buf list = FW_BUF_INIT(0);
	int rc = fw_account_ids(rd->r->store, s, fever_number_add, &list, &rd->err);

	fever_list_end(rd, name, &list);
	return rc;
}

/* ---- marks ----------------------------------------------------------------------------------- */

static int fever_mark_items(struct reader *rd, const struct fever_mark *m, const char **wrong)
{
	static const int64_t STARRED = FW_LABEL_STARRED;
	struct fw_entry_edit edit = {.read = m->as == FEVER_READ ? 1 :
			m->as == FEVER_UNREAD                    ? 0 :
								   -1,
		.add = &STARRED,
		.remove = &STARRED,
		.add_n = m->as == FEVER_SAVED,
		.remove_n = m->as == FEVER_UNSAVED};
	int64_t *ids = fw_arena_calloc(&rd->p.arena, FEVER_IDS_MAX, sizeof(*ids));
	size_t n;

	if (!ids)
		return fw_err_set(&rd->err, FW_ENOMEM, "out of memory");
	if (!fever_ids_read(m->id, ids, FEVER_IDS_MAX, &n)) {
		*wrong = "id";
		return 0;
	}
	return n ? fw_account_edit(rd->r->store, rd->account.id, ids, n, &edit, http_now_ms(rd->r), &rd->err) : 0;
}

/* A folder that is gone has nothing to mark. */
static int fever_mark_group(struct reader *rd, int64_t id, int64_t before_ms)
{
	struct fw_stream s = {.account_id = rd->account.id, .folder_only = true};
	struct fever_feeds f;
	int rc;

	if (id == GROUP_ALL)
		return fw_account_mark_read(rd->r->store, &s, before_ms, 0, &rd->err);
	rc = fever_feeds_read(rd, true, &f);
	for (size_t i = 0; !rc && i < f.all.n; i += fever_folder_len(&f, i)) {
		s.folder = f.by_folder[i]->folder.len ? f.by_folder[i]->folder : FW_STR("");
		if (http_folder_id(s.folder) == id)
			rc = fw_account_mark_read(rd->r->store, &s, before_ms, 0, &rd->err);
	}
	return rc;
}

static int fever_mark(struct reader *rd, const struct fever_mark *m, const char **wrong)
{
	struct fw_stream s = {.account_id = rd->account.id};
	int64_t id = 0;

	if (m->what == FEVER_NOTHING)
		return 0;
	if (m->what == FEVER_ITEM)
		return fever_mark_items(rd, m, wrong);
	if (!fw_str_int(m->id, &id))
		return 0;
	if (m->what == FEVER_GROUP)
		return fever_mark_group(rd, id, m->before_ms);
	s.feed_id = id;
	return id > 0 ? fw_account_mark_read(rd->r->store, &s, m->before_ms, 0, &rd->err) : 0;
}

/* ---- the route ------------------------------------------------------------------------------- */

static int fever_read(struct reader *rd, const struct fever_mark *m, const char **wrong)
{
	struct fw_stream unread = {.account_id = rd->account.id, .read = FW_READ_UNREAD},
			 saved = {.account_id = rd->account.id, .labelled = true, .label_id = FW_LABEL_STARRED};
	bool reading = m->as == FEVER_READ || m->as == FEVER_UNREAD, marked = m->what != FEVER_NOTHING;
	int rc = fever_lists_add(rd);

	if (!rc && fever_wants(rd, "items"))
		rc = fever_items_add(rd, wrong);
	if (fever_wants(rd, "links")) { /* links that many items have: nobody counts them here */
		fw_json_array(&rd->p.j, "links");
		fw_json_end(&rd->p.j);
	}
	if (!rc &&
		(fever_wants(rd, "unread_item_ids") || fever_wants(rd, "unread_recently_read") || (marked && reading)))
		rc = fever_numbers_add(rd, "unread_item_ids", &unread);
	if (!rc && (fever_wants(rd, "saved_item_ids") || (marked && !reading)))
		rc = fever_numbers_add(rd, "saved_item_ids", &saved);
	return rc;
}

enum MHD_Result fever_api(struct reader *rd)
{
	struct fever_mark m;
	const char *wrong = fever_mark_read(&rd->form, &m);
	int rc = 0;

	if (!wrong)
		rc = fever_mark(rd, &m, &wrong);
	if (!rc && !wrong) {
		fever_begin(rd, true);
		/* feeds are refreshed all the time, each when it is due */
		fw_json_int(&rd->p.j, "last_refreshed_on_time", http_now_ms(rd->r) / FW_SECOND_MS);
		rc = fever_read(rd, &m, &wrong);
		fw_json_end(&rd->p.j);
	}
	return wrong ? reader_wrong(rd, wrong, "see docs/fever.md") : reader_json(rd, rc);
}

static bool fever_enter(struct reader *rd, enum MHD_Result *ok)
{
	return reader_form_read(rd, fw_buf_str(&rd->r->body), ok) && fever_authorize(rd, ok) &&
		http_account_may(rd->r, rd->account.id, ok);
}

enum MHD_Result http_fever(struct request *r)
{
	return reader_serve(r, READER_FEVER, fever_enter);
}
