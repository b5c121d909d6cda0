/* SPDX-License-Identifier: ISC */
/* The Google Reader API: subscriptions, tags, counts, and what it has that means nothing here. */
#include <stdlib.h>

#include "base/url.h"
#include "http/readers/greader/greader.h"
#include "http/readers/subscriptions.h"

/* A member that is a stream's id: a prefix and a name. */
static void list_id(struct fw_json *j, const char *key, const char *prefix, struct fw_str name)
{
	struct fw_buf id = FW_BUF_INIT(0);

	fw_buf_adds(&id, prefix);
	fw_buf_addstr(&id, name);
	fw_json_str(j, key, fw_buf_str(&id));
	fw_buf_finish(&id);
}

static void list_feed_id(struct fw_json *j, const char *key, int64_t id)
{
	char text[32];

	(void)fw_snprintf(text, sizeof(text), "feed/%lld", (long long)id);
	fw_json_cstr(j, key, text);
}

/* ---- subscription/list ----------------------------------------------------------------------- */

static int list_subscription_add(void *ctx, const struct fw_subscription *s)
{
	struct fw_json *j = ctx;

	fw_json_object(j, NULL);
	list_feed_id(j, "id", s->feed_id);
	fw_json_text(j, "title", subscription_title(s));
	fw_json_array(j, "categories");
	if (s->folder.len) {
		fw_json_object(j, NULL);
		list_id(j, "id", GREADER_LABEL, s->folder);
		fw_json_str(j, "label", s->folder);
		fw_json_end(j);
	}
	fw_json_end(j);
	fw_json_text(j, "url", s->feed->url);
	fw_json_text(j, "htmlUrl", s->feed->home_page_url);
	fw_json_str(j, "iconUrl", fw_is_http(s->feed->icon) ? s->feed->icon : FW_STR(""));
	fw_json_end(j);
	return 0;
}

enum MHD_Result greader_subscription_list(struct reader *rd)
{
	struct fw_json *j = &rd->p.j;
	int rc;

	fw_json_object(j, NULL);
	fw_json_array(j, "subscriptions");
	rc = fw_account_subscription_list(rd->r->store, rd->account.id, 0, false, list_subscription_add, j, &rd->err);
	fw_json_end(j);
	fw_json_end(j);
	return reader_json(rd, rc);
}

/* ---- folders and labels ---------------------------------------------------------------------- */

struct list_folder {
	struct fw_str name;
	int64_t unread_n, newest_ms;
};
struct list_folders {
	struct list_folder *folder; /* by name */
	size_t n;
};

static int list_by_folder(const void *x, const void *y)
{
	const struct list_folder *a = x, *b = y;

	return fw_str_order(a->name, b->name);
}

/* The folders that have subscriptions, with the sums of these. */
static int list_folders_make(struct reader *rd, const struct reader_feeds *f, struct list_folders *out)
{
	size_t all = 0;

	out->n = 0;
	out->folder = fw_arena_calloc(&rd->p.arena, f->n, sizeof(*out->folder));
	if (!out->folder)
		return fw_err_set(&rd->err, FW_ENOMEM, "out of memory");
	for (size_t i = 0; i < f->n; i++) {
		if (f->feed[i].folder.len)
			out->folder[all++] = (struct list_folder){
				f->feed[i].folder, f->feed[i].unread_n, f->feed[i].newest_ms};
	}
	if (all)
		qsort(out->folder, all, sizeof(*out->folder), list_by_folder);
	for (size_t i = 0; i < all; i++) {
		struct list_folder *last = out->n ? &out->folder[out->n - 1] : NULL;

		if (!last || !fw_str_eq(last->name, out->folder[i].name)) {
			out->folder[out->n++] = out->folder[i];
			continue;
		}
		last->unread_n += out->folder[i].unread_n;
		last->newest_ms = FW_MAX(last->newest_ms, out->folder[i].newest_ms);
	}
	return 0;
}

static bool list_folders_have(const struct list_folders *f, struct fw_str name)
{
	struct list_folder key = {.name = name};

	return f->n && bsearch(&key, f->folder, f->n, sizeof(key), list_by_folder);
}

struct list_tags {
	struct fw_json *j;
	struct list_folders folders;
};

static void list_tag(struct fw_json *j, const char *prefix, struct fw_str name, const char *type)
{
	fw_json_object(j, NULL);
	list_id(j, "id", prefix, name);
	fw_json_cstr(j, "type", type);
	fw_json_end(j);
}

/* A label that has the name of a folder is one stream with it: the folder. */
static int list_label_add(void *ctx, const struct fw_label *label)
{
	struct list_tags *t = ctx;

	if (!list_folders_have(&t->folders, label->name))
		list_tag(t->j, GREADER_LABEL, label->name, "tag");
	return 0;
}

enum MHD_Result greader_tag_list(struct reader *rd)
{
	struct list_tags t = {.j = &rd->p.j};
	struct reader_feeds feeds;
	int rc = reader_feeds_read(rd, 0, true, &feeds);

	rc = rc ? rc : list_folders_make(rd, &feeds, &t.folders);
	fw_json_object(t.j, NULL);
	fw_json_array(t.j, "tags");
	list_tag(t.j, GREADER_STATE, FW_STR("starred"), NULL);
	for (size_t i = 0; !rc && i < t.folders.n; i++)
		list_tag(t.j, GREADER_LABEL, t.folders.folder[i].name, "folder");
	rc = rc ? rc : fw_account_label_list(rd->r->store, rd->account.id, list_label_add, &t, &rd->err);
	fw_json_end(t.j);
	fw_json_end(t.j);
	return reader_json(rd, rc);
}

/* ---- unread-count ---------------------------------------------------------------------------- */

/* The members behind the id. */
static void list_count(struct fw_json *j, int64_t n, int64_t newest_ms)
{
	char text[24];

	fw_json_int(j, "count", n);
	(void)fw_snprintf(text, sizeof(text), "%lld", (long long)newest_ms * 1000);
	fw_json_cstr(j, "newestItemTimestampUsec", text);
	fw_json_end(j);
}

struct list_labels {
	struct reader *rd;
	const struct list_folders *folders;
	struct fw_label *label;
	size_t n, cap;
};

/* Labels are counted after the list was read. */
static int list_label_keep(void *ctx, const struct fw_label *label)
{
	struct list_labels *l = ctx;
	struct fw_arena *a = &l->rd->p.arena;

	if (!label->entry_n || list_folders_have(l->folders, label->name))
		return 0;
	if (l->n == l->cap) {
		size_t cap = l->cap ? 2 * l->cap : 16;

		l->label = fw_arena_grow(a, l->label, l->cap * sizeof(*l->label), cap * sizeof(*l->label));
		l->cap = cap;
		if (!l->label)
			return FW_ENOMEM;
	}
	l->label[l->n] = *label;
	l->label[l->n++].name = fw_arena_str(a, label->name);
	return a->failed ? FW_ENOMEM : 0;
}

static int list_labels_count(struct reader *rd, const struct list_folders *folders)
{
	struct list_labels l = {.rd = rd, .folders = folders};
	struct fw_json *j = &rd->p.j;
	int rc = fw_account_label_list(rd->r->store, rd->account.id, list_label_keep, &l, &rd->err);

	for (size_t i = 0; i < l.n && !rc; i++) {
		struct fw_stream s = {.account_id = rd->account.id,
			.labelled = true,
			.label_id = l.label[i].id,
			.read = FW_READ_UNREAD};
		int64_t n = 0;

		rc = fw_account_count(rd->r->store, &s, &n, &rd->err);
		if (rc || !n)
			continue;
		fw_json_object(j, NULL);
		list_id(j, "id", GREADER_LABEL, l.label[i].name);
		list_count(j, n, 0);
	}
	return rc;
}

enum MHD_Result greader_unread_count(struct reader *rd)
{
	struct fw_json *j = &rd->p.j;
	struct list_folders folders = {.n = 0};
	struct reader_feeds f;
	int64_t n = 0, newest_ms = 0;
	int rc = reader_feeds_read(rd, 0, true, &f);

	rc = rc ? rc : list_folders_make(rd, &f, &folders);
	for (size_t i = 0; !rc && i < f.n; i++) {
		n += f.feed[i].unread_n;
		newest_ms = FW_MAX(newest_ms, f.feed[i].newest_ms);
	}
	fw_json_object(j, NULL);
	fw_json_int(j, "max", n);
	fw_json_array(j, "unreadcounts");
	fw_json_object(j, NULL);
	fw_json_cstr(j, "id", GREADER_STATE "reading-list");
	list_count(j, n, newest_ms);
	for (size_t i = 0; !rc && i < folders.n; i++) {
		if (!folders.folder[i].unread_n)
			continue;
		fw_json_object(j, NULL);
		list_id(j, "id", GREADER_LABEL, folders.folder[i].name);
		list_count(j, folders.folder[i].unread_n, folders.folder[i].newest_ms);
	}
	rc = rc ? rc : list_labels_count(rd, &folders);
	for (size_t i = 0; !rc && i < f.n; i++) {
		if (!f.feed[i].unread_n)
			continue;
		fw_json_object(j, NULL);
		list_feed_id(j, "id", f.feed[i].id);
		list_count(j, f.feed[i].unread_n, f.feed[i].newest_ms);
	}
	fw_json_end(j);
	fw_json_end(j);
	return reader_json(rd, rc);
}

/* ---- what means nothing here ----------------------------------------------------------------- */

static enum MHD_Result list_empty(struct reader *rd, const char *name, bool array)
{
	struct fw_json *j = &rd->p.j;

	fw_json_object(j, NULL);
	if (array)
		fw_json_array(j, name);
	else
		fw_json_object(j, name);
	fw_json_end(j);
	fw_json_end(j);
	return reader_json(rd, 0);
}

enum MHD_Result greader_preferences(struct reader *rd)
{
	return list_empty(rd, "prefs", true);
}

enum MHD_Result greader_stream_preferences(struct reader *rd)
{
	return list_empty(rd, "streamprefs", false);
}

enum MHD_Result greader_preference_set(struct reader *rd)
{
	return greader_ok(rd);
}

enum MHD_Result greader_friends(struct reader *rd)
{
	return list_empty(rd, "friends", true);
}

enum MHD_Result greader_status(struct reader *rd)
{
	fw_json_object(&rd->p.j, NULL);
	fw_json_cstr(&rd->p.j, "status", "up");
	fw_json_end(&rd->p.j);
	return reader_json(rd, 0);
}

enum MHD_Result greader_ping(struct reader *rd)
{
	return greader_ok(rd);
}
