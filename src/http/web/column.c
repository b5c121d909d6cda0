/* SPDX-License-Identifier: ISC */
/*
 * The page: the column of folders and feeds. With many feeds a folder's are left out until it is
 * opened, because the browser would be slow with thousands of rows that nobody sees.
 */
#include <stdlib.h>
#include <string.h>

#include "api/feed_remedy.h"
#include "http/readers/subscriptions.h"
#include "http/web/web.h"

#define COLUMN_FEEDS_MAX 300 /* all of so many are in the page */

/* ---- subscriptions --------------------------------------------------------------------------- */

static int column_feed_add(void *ctx, const struct fw_subscription *s)
{
	struct web *w = ctx;
	struct fw_arena *a = &w->arena;

	if (w->feeds.n == w->feeds.cap) {
		size_t cap = w->feeds.cap ? 2 * w->feeds.cap : 64, size = sizeof(*w->feeds.feed);

		w->feeds.feed = fw_arena_grow(a, w->feeds.feed, w->feeds.cap * size, cap * size);
		w->feeds.cap = cap;
		if (!w->feeds.feed)
			return FW_ENOMEM;
	}
	w->feeds.feed[w->feeds.n++] = (struct web_feed){.id = s->feed_id,
		.unread_n = s->unread_n,
		.title = fw_arena_str(a, subscription_title(s)),
		.folder = fw_arena_str(a, s->folder.p ? s->folder : FW_STR("")),
		.failing = fw_feed_is_failing(s->feed),
		.waiting = s->feed->status == FW_FEED_ACTIVE && !s->feed->last_ok_ms && !fw_feed_is_failing(s->feed),
		.has_entries = s->newest_ms != 0};
	w->feeds.unread_n += s->unread_n;
	w->feeds.failing_n += w->feeds.feed[w->feeds.n - 1].failing;
	return a->failed ? FW_ENOMEM : 0;
}

int web_feeds_read(struct web *w, int64_t feed_id)
{
	int rc;

	if (w->feeds.read)
		return 0;
	w->feeds.read = true;
	rc = fw_account_subscription_list(w->r->store, w->account.id, feed_id, false, column_feed_add, w, &w->err);
	return feed_id && rc == FW_ENOTFOUND ? 0 : rc;
}

const struct web_feed *web_feed_find(const struct web *w, int64_t id)
{
	size_t from = 0, to = w->feeds.n;

	while (from < to) {
		size_t at = from + (to - from) / 2;

		if (w->feeds.feed[at].id == id)
			return &w->feeds.feed[at];
		if (w->feeds.feed[at].id < id)
			from = at + 1;
		else
			to = at;
	}
	return NULL;
}

bool web_folder_has(struct fw_str folder, struct fw_str of)
{
	return fw_str_eq(folder, of) ||
		(folder.len && of.len > folder.len && of.p[folder.len] == '/' && fw_str_starts(of, folder));
}

/* ---- order: folders by name, feeds by title; what is in no folder last ----------------------- */

static int column_compare(struct fw_str a, struct fw_str b)
{
	for (size_t i = 0; i < a.len && i < b.len; i++) {
		int x = fw_lower((unsigned char)a.p[i]), y = fw_lower((unsigned char)b.p[i]);

		if (x != y)
			return x - y;
	}
	/* "News" and "news" are two folders */
	return a.len != b.len ? FW_ORDER(a.len, b.len) : fw_str_order(a, b);
}

static int column_by_place(const void *x, const void *y)
{
	const struct web_feed *a = *(const struct web_feed *const *)x, *b = *(const struct web_feed *const *)y;
	int d = !a->folder.len - !b->folder.len;

	d = d ? d : column_compare(a->folder, b->folder);
	d = d ? d : column_compare(a->title, b->title);
	return d ? d : FW_ORDER(a->id, b->id);
}

static const struct web_feed **column_sorted(struct web *w)
{
	const struct web_feed **at = fw_arena_calloc(&w->arena, w->feeds.n + 1, sizeof(*at));

	for (size_t i = 0; at && i < w->feeds.n; i++)
		at[i] = &w->feeds.feed[i];
	if (at && w->feeds.n)
		qsort(at, w->feeds.n, sizeof(*at), column_by_place);
	return at;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void column_count_put(struct web *w, int64_t n)
{
	if (n)
		web_put(w, " <span class=\"n\">%n<span class=\"vh\"> unread</span></span>", n);
}

static const char *column_current(bool is)
{
	return is ? "\" aria-current=\"page" : "";
}

static void column_feed_put(struct web *w, const struct web_feed *f)
{
	struct web_view to = {.kind = w->view.kind == WEB_ALL ? WEB_ALL : WEB_UNREAD, .feed_id = f->id};

	web_put(w, "<li class=\"feed");
	web_put(w, f->unread_n ? " has" : "");
	web_put(w, "\"><a href=\"./");
	web_view_put(w, &to);
	fw_buf_adds(&w->out, column_current(w->view.feed_id == f->id));
	web_put(w, "\"><span class=\"name\" dir=\"auto\">%t</span>", f->title);
	if (f->failing)
		web_put(w,
			" <span class=\"bad\" title=\"It cannot be fetched\">!<span class=\"vh\"> cannot be "
			"fetched</span></span>");
	column_count_put(w, f->unread_n);
	web_put(w, "</a></li>\n");
}

/* A folder's feeds at[0..n); those of the folders in it are among at[n..left_n). */
static void column_folder_put(struct web *w, const struct web_feed *const *at, size_t n, size_t left_n, bool whole)
{
	struct fw_str name = at[0]->folder;
	struct web_view to = {.kind = w->view.kind == WEB_ALL ? WEB_ALL : WEB_UNREAD, .folder = name};
	const struct web_feed *here = web_feed_find(w, w->view.feed_id);
	bool current = !w->view.feed_id && w->view.folder.p && fw_str_eq(w->view.folder, name);
	bool open = current || (here && fw_str_eq(here->folder, name));
	int64_t unread_n = 0;

	for (size_t i = 0; i < left_n && fw_str_istarts(at[i]->folder, name); i++) {
		if (web_folder_has(name, at[i]->folder))
			unread_n += at[i]->unread_n;
	}
	web_put(w, "<li class=\"folder");
	web_put(w, unread_n ? " has" : "");
	web_put(w, "\"><a href=\"./");
	web_view_put(w, &to);
	fw_buf_adds(&w->out, column_current(current));
	web_put(w, "\"><span class=\"name\" dir=\"auto\">%t</span>", name.len ? name : FW_STR("No folder"));
	column_count_put(w, unread_n);
	web_put(w, "</a><details data-folder=\"%t\"", name);
	if (open)
		web_put(w, " open");
	web_put(w, "><summary><span class=\"vh\">Feeds in %t</span></summary><ul>\n",
		name.len ? name : FW_STR("no folder"));
	for (size_t i = 0; (open || whole) && i < n; i++)
		column_feed_put(w, at[i]);
	if (!open && !whole) {
		web_put(w, "<li class=\"later\"><a href=\"./?part=folder&amp;folder=%q\">", name);
		web_count_put(w, (int64_t)n, "feed");
		web_put(w, "</a></li>");
	}
	web_put(w, "</ul></details></li>\n");
}

static void column_tree_put(struct web *w)
{
	const struct web_feed **at = column_sorted(w);
	bool whole = w->feeds.n <= COLUMN_FEEDS_MAX;
	size_t n;

	for (size_t i = 0; at && i < w->feeds.n; i += n) {
		n = 1;
		while (i + n < w->feeds.n && fw_str_eq(at[i]->folder, at[i + n]->folder))
			n++;
		if (at[i]->folder.len || n > COLUMN_FEEDS_MAX) {
			column_folder_put(w, at + i, n, w->feeds.n - i, whole);
			continue;
		}
		for (size_t k = i; k < i + n; k++)
			column_feed_put(w, at[k]);
	}
}

/* The feeds of a folder that was left out: part=folder. */
static void column_folder_feeds_put(struct web *w)
{
	const struct web_feed **at = column_sorted(w);

	for (size_t i = 0; at && i < w->feeds.n; i++) {
		if (fw_str_eq(at[i]->folder, w->view.folder))
			column_feed_put(w, at[i]);
	}
}

static void column_view_put(struct web *w, enum web_kind kind, const char *name, const char *key, int64_t n)
{
	struct web_view to = {.kind = kind};
	bool here = strcmp(w->r->route->path, "/") == 0 && w->view.kind == kind && !w->view.feed_id &&
		!w->view.folder.p && !w->view.label.p && !w->view.search.p;

	web_put(w, "<li><a data-key=\"%s\" href=\"./", key);
	web_view_put(w, &to);
	fw_buf_adds(&w->out, column_current(here));
	web_put(w, "\"><span class=\"name\">%s</span>", name);
	column_count_put(w, n);
	web_put(w, "</a></li>\n");
}

static void column_place_put(struct web *w, const char *path, const char *name)
{
	web_put(w, "<li><a href=\"./%s", path);
	fw_buf_adds(&w->out, column_current(strcmp(w->r->route->path + 1, path) == 0));
	web_put(w, "\"><span class=\"name\">%s</span>", name);
	if (strcmp(path, "feeds") == 0 && w->feeds.failing_n)
		web_put(w, " <span class=\"bad\">%n failing</span>", w->feeds.failing_n);
	web_put(w, "</a></li>\n");
}

int web_column_put(struct web *w)
{
	int rc = web_feeds_read(w, 0);

	rc = rc ? rc : web_labels_read(w);
	if (rc)
		return rc;
	if (fw_str_eq(http_form_get(&w->form, "part"), FW_STR("folder"))) {
		column_folder_feeds_put(w);
		return 0;
	}
	web_put(w,
		"<p class=\"brand\"><a href=\"./\">feedwheel</a> <a class=\"icon close\" href=\"#main\" "
		"aria-label=\"Close\"><svg><use href=\"#i-close\"/></svg></a></p>\n");
	web_put(w,
		"<form role=\"search\" action=\"./\"><input type=\"hidden\" name=\"view\" value=\"all\">"
		"<input type=\"search\" name=\"q\" value=\"%t\" placeholder=\"Search\" aria-label=\"Search entries\">"
		"</form>\n<ul class=\"views\">\n",
		w->view.search.p ? w->view.search : FW_STR(""));
	column_view_put(w, WEB_UNREAD, "Unread", "u", w->feeds.unread_n);
	column_view_put(w, WEB_ALL, "All entries", "a", 0);
	column_view_put(w, WEB_STARRED, "Starred", "s", 0);
	web_put(w, "</ul>\n<ul class=\"tree\">\n");
	column_tree_put(w);
	web_put(w, "</ul>\n");
	web_labels_put(w);
	web_put(w, "<ul class=\"places\">\n");
	column_place_put(w, "add", "Add a feed");
	column_place_put(w, "feeds", "Feeds");
	if (w->account.admin) {
		column_place_put(w, "runs", "Runs");
		column_place_put(w, "orders", "Orders");
	}
	column_place_put(w, "account", "Account");
	web_put(w, "</ul>\n");
	return 0;
}
