/* SPDX-License-Identifier: ISC */
/* Miniflux' API: categories, which are the account's folders. */
#include <jansson.h>
#include <stdlib.h>

#include "base/err.h"
#include "http/readers/icons.h"
#include "http/readers/miniflux/miniflux.h"

#define TITLE_ALL "All"

/* ---- lists ----------------------------------------------------------------------------------- */

static struct miniflux_category *category_add(struct reader *rd, struct miniflux_lists *l)
{
	if (l->n == l->cap) {
		size_t cap = l->cap ? 2 * l->cap : 32;

		l->category = fw_arena_grow(
			&rd->p.arena, l->category, l->cap * sizeof(*l->category), cap * sizeof(*l->category));
		l->cap = l->category ? cap : 0;
		if (!l->category) {
			l->n = 0;
			return NULL;
		}
	}
	l->category[l->n] = (struct miniflux_category){.id = MINIFLUX_ALL, .folder = FW_STR("")};
	return &l->category[l->n++];
}

struct category_reading {
	struct reader *rd;
	struct miniflux_lists *l;
};

static int category_label_add(void *ctx, const struct fw_label *label)
{
	struct category_reading *r = ctx;
	struct miniflux_category *c = category_add(r->rd, r->l);

	if (!c)
		return FW_ENOMEM;
	c->id = MINIFLUX_ALL + label->id;
	c->folder = fw_arena_str(&r->rd->p.arena, label->name);
	c->hidden = label->entry_n > 0;
	return r->rd->p.arena.failed ? FW_ENOMEM : 0;
}

static int category_by_name(const void *x, const void *y)
{
	const struct miniflux_category *a = x, *b = y;

	return fw_str_order(a->folder, b->folder);
}

static struct miniflux_category *category_of(const struct miniflux_lists *l, size_t n, struct fw_str folder)
{
	const struct miniflux_category key = {.folder = folder};

	return bsearch(&key, l->category, n, sizeof(key), category_by_name);
}

const struct miniflux_category *miniflux_category_of(const struct miniflux_lists *l, struct fw_str folder)
{
	return category_of(l, l->n, folder);
}

static void categories_sort(struct miniflux_lists *l)
{
	if (l->n)
		qsort(l->category, l->n, sizeof(*l->category), category_by_name);
}

/* Give folders without a label one. At first there are l->n categories, in order. */
static int categories_make(struct reader *rd, struct miniflux_lists *l)
{
	size_t known = l->n;
	struct fw_str last = FW_STR_NONE;

	for (size_t i = 0; i < l->feeds.n; i++) {
		struct fw_str folder = l->feeds.feed[i].folder;
		struct miniflux_category *c;
		int64_t label_id;
		int rc;

		if (fw_str_eq(folder, last) || category_of(l, known, folder))
			continue;
		rc = fw_account_label(rd->r->store, rd->account.id, folder, true, &label_id, &rd->err);
		c = rc ? NULL : category_add(rd, l);
		if (!c)
			return rc ? rc : fw_no_memory(&rd->err);
		c->id = MINIFLUX_ALL + label_id;
		c->folder = last = folder;
		categories_sort(l);
		known = l->n;
	}
	return 0;
}

int miniflux_lists_read(struct reader *rd, int64_t feed_id, bool brief, struct miniflux_lists *l)
{
	struct category_reading r = {rd, l};
	int rc;

	*l = (struct miniflux_lists){.n = 0};
	if (!category_add(rd, l))
		return fw_no_memory(&rd->err);
	rc = reader_feeds_read(rd, feed_id, brief, &l->feeds);
	if (!rc && !brief)
		rc = http_icons_read(rd, &l->feeds);
	rc = rc ? rc : fw_account_label_list(rd->r->store, rd->account.id, category_label_add, &r, &rd->err);
	if (rc == FW_ENOMEM)
		return fw_no_memory(&rd->err);
	categories_sort(l);
	rc = rc ? rc : categories_make(rd, l);
	for (size_t i = 0; !rc && i < l->feeds.n; i++) {
		struct miniflux_category *c = category_of(l, l->n, l->feeds.feed[i].folder);

		c->hidden = false;
		c->feed_n++;
		c->unread_n += l->feeds.feed[i].unread_n;
	}
	return rc;
}

static struct fw_str miniflux_category_title(const struct miniflux_category *c)
{
	return c->id == MINIFLUX_ALL ? FW_STR(TITLE_ALL) : c->folder;
}

const struct miniflux_category *miniflux_category_find(const struct miniflux_lists *l, int64_t id)
{
	for (size_t i = 0; i < l->n; i++) {
		if (l->category[i].id == id)
			return &l->category[i];
	}
	return NULL;
}

const struct miniflux_category *miniflux_category_path(
	struct reader *rd, bool brief, struct miniflux_lists *l, enum MHD_Result *ok)
{
	const struct miniflux_category *c;
	int rc = miniflux_lists_read(rd, 0, brief, l);

	c = rc ? NULL : miniflux_category_find(l, rd->r->id);
	if (!c)
		*ok = rc ? http_store_failed(rd->r, rc, &rd->err) : miniflux_missing(rd, "category");
	return c;
}

void miniflux_category_json(struct reader *rd, const char *key, const struct miniflux_category *c, bool counts)
{
	struct fw_json *j = &rd->p.j;

	fw_json_object(j, key);
	fw_json_int(j, "id", c->id);
	fw_json_str(j, "title", miniflux_category_title(c));
	fw_json_int(j, "user_id", rd->account.id);
	fw_json_bool(j, "hide_globally", false);
	if (counts) {
		fw_json_int(j, "feed_count", c->feed_n);
		fw_json_int(j, "total_unread", c->unread_n);
	}
	fw_json_end(j);
}

enum MHD_Result miniflux_category_list(struct reader *rd)
{
	bool counts = miniflux_bool(http_form_get(&rd->form, "counts")) == 1;
	struct miniflux_lists l;
	int rc = miniflux_lists_read(rd, 0, true, &l);

	fw_json_array(&rd->p.j, NULL);
	for (size_t i = 0; !rc && i < l.n; i++) {
		if (!l.category[i].hidden)
			miniflux_category_json(rd, NULL, &l.category[i], counts);
	}
	fw_json_end(&rd->p.j);
	return reader_json(rd, rc);
}

/* ---- changes --------------------------------------------------------------------------------- */

/* The title in the body, as a folder's name; absent: the member is. False: responded. */
static bool category_title_read(struct reader *rd, struct fw_str *out, enum MHD_Result *ok)
{
	json_t *o = miniflux_body(rd, ok);
	bool good = o && miniflux_text(rd, o, "title", FW_LABEL_NAME_MAX, out, ok);

	if (good && out->p) {
		while (out->len && out->p[0] == '/')
			*out = fw_str_sub(*out, 1, out->len);
		while (out->len && out->p[out->len - 1] == '/')
			out->len--;
		if (!out->len) {
			*ok = http_problem(rd->r, MHD_HTTP_BAD_REQUEST, "invalid", "title: is empty");
			good = false;
		}
		*out = fw_arena_str(&rd->p.arena, *out);
	}
	json_decref(o);
	return good;
}

/* Has another category this title? */
static bool category_is_taken(const struct miniflux_lists *l, struct fw_str title, int64_t but_id)
{
	const struct miniflux_category *c = miniflux_category_of(l, title);

	return fw_str_eq(title, FW_STR(TITLE_ALL)) || (c && !c->hidden && c->id != but_id);
}

static enum MHD_Result category_taken(struct reader *rd)
{
	return http_problem(rd->r, MHD_HTTP_BAD_REQUEST, "invalid", "title: this category already exists");
}

static enum MHD_Result category_send(struct reader *rd, struct miniflux_category c)
{
	miniflux_category_json(rd, NULL, &c, false);
	return reader_json_status(rd, MHD_HTTP_CREATED, 0);
}

enum MHD_Result miniflux_category_add(struct reader *rd)
{
	struct miniflux_category c = {.id = MINIFLUX_ALL};
	struct miniflux_lists l;
	enum MHD_Result ok = MHD_NO;
	int64_t label_id;
	int rc;

	if (!category_title_read(rd, &c.folder, &ok))
		return ok;
	if (!c.folder.p)
		return http_problem(rd->r, MHD_HTTP_BAD_REQUEST, "invalid", "title: missing");
	rc = miniflux_lists_read(rd, 0, true, &l);
	if (!rc && category_is_taken(&l, c.folder, 0))
		return category_taken(rd);
	rc = rc ? rc : fw_account_label(rd->r->store, rd->account.id, c.folder, true, &label_id, &rd->err);
	if (rc)
		return http_store_failed(rd->r, rc, &rd->err);
	c.id = MINIFLUX_ALL + label_id;
	return category_send(rd, c);
}

static enum MHD_Result category_is_all(struct reader *rd)
{
	return http_problem(rd->r, MHD_HTTP_BAD_REQUEST, "invalid",
		"the category " TITLE_ALL " stays: it has the feeds that are in no folder");
}

/*
 * The label first, because its new name may be taken; then the folder, without those below it. A
 * request that breaks off leaves an empty category at the most.
 */
static int category_rename(struct reader *rd, const struct miniflux_category *c, struct fw_str to)
{
	int rc = fw_account_label_rename(rd->r->store, rd->account.id, c->folder, to, &rd->err);

	return rc || !c->feed_n ? rc :
				  fw_account_folder_rename(rd->r->store, rd->account.id, c->folder, to, true, &rd->err);
}

enum MHD_Result miniflux_category_set(struct reader *rd)
{
	const struct miniflux_category *c;
	struct miniflux_lists l;
	struct fw_str title;
	enum MHD_Result ok = MHD_NO;
	int rc = 0;

	if (!category_title_read(rd, &title, &ok))
		return ok;
	c = miniflux_category_path(rd, true, &l, &ok);
	if (!c)
		return ok;
	if (!title.p || fw_str_eq(title, miniflux_category_title(c))) /* other members: hide_globally */
		return category_send(rd, *c);
	if (c->id == MINIFLUX_ALL)
		return category_is_all(rd);
	if (category_is_taken(&l, title, c->id))
		return category_taken(rd);
	rc = category_rename(rd, c, title);
	return rc ? http_store_failed(rd->r, rc, &rd->err) :
		    category_send(rd, (struct miniflux_category){.id = c->id, .folder = title});
}

struct category_label {
	int64_t id, entry_n;
};

static int category_label_look(void *ctx, const struct fw_label *label)
{
	struct category_label *w = ctx;

	if (label->id == w->id)
		w->entry_n = label->entry_n;
	return 0;
}

/* Its feeds are in no folder then. Miniflux would remove them, with their entries. */
enum MHD_Result miniflux_category_remove(struct reader *rd)
{
	struct category_label label = {.entry_n = 0};
	const struct miniflux_category *c;
	struct miniflux_lists l;
	enum MHD_Result ok = MHD_NO;
	int rc = 0;

	c = miniflux_category_path(rd, true, &l, &ok);
	if (!c)
		return ok;
	if (c->id == MINIFLUX_ALL)
		return category_is_all(rd);
	if (c->feed_n)
		rc = fw_account_folder_rename(rd->r->store, rd->account.id, c->folder, FW_STR(""), true, &rd->err);
	label.id = c->id - MINIFLUX_ALL;
	rc = rc ? rc : fw_account_label_list(rd->r->store, rd->account.id, category_label_look, &label, &rd->err);
	if (!rc && !label.entry_n) /* else it is a label of entries too, which they keep */
		rc = fw_account_label_rename(rd->r->store, rd->account.id, c->folder, FW_STR(""), &rd->err);
	return miniflux_done(rd, rc);
}

enum MHD_Result miniflux_category_read(struct reader *rd)
{
	struct fw_stream s = {.account_id = rd->account.id, .folder_only = true};
	const struct miniflux_category *c;
	struct miniflux_lists l;
	enum MHD_Result ok = MHD_NO;

	c = miniflux_category_path(rd, true, &l, &ok);
	if (!c)
		return ok;
	s.folder = c->folder;
	return miniflux_done(rd, fw_account_mark_read(rd->r->store, &s, 0, 0, &rd->err));
}
