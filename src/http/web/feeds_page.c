/* SPDX-License-Identifier: ISC */
/*
 * The page: the account's feeds with their health; their titles and folders. A feed is shared, so
 * only the operator's accounts may pause it.
 */
#include "api/feed_remedy.h"
#include "api/named_feed.h"
#include "base/clock.h"
#include "base/url.h"
#include "http/web/web.h"

#define FEEDS_SHOWN 100 /* of one page */

/* ---- health ---------------------------------------------------------------------------------- */

static void feeds_named_put(struct web *w, const struct fw_feed *f)
{
	struct fw_str named = fw_named_feed(f);

	if (!named.p)
		return;
	web_put(w, "<form method=\"post\" action=\"instead\"><p>The page there names a feed: %t</p>", named);
	web_form_fields(w, "feeds");
	web_put(w,
		"<input type=\"hidden\" name=\"feed\" value=\"%d\"><button class=\"main\">Subscribe to that one "
		"instead</button></form>\n",
		f->id);
}

void web_feed_health_put(struct web *w, const struct fw_feed *f)
{
	if (f->status == FW_FEED_PAUSED)
		web_put(w, "<p class=\"soft\">Paused by the operator: it is not polled.</p>\n");
	if (fw_feed_is_failing(f)) {
		web_put(w, "<p class=\"trouble\">%t</p>\n",
			f->error.len ? f->error : fw_str(fw_visit_kind_name(f->last_kind)));
		if (!fw_named_feed(f).p)
			web_put(w, "<p>%s</p>\n", fw_feed_remedy(f));
		feeds_named_put(w, f);
	}
	web_put(w, "<p class=\"soft\">");
	if (f->last_ok_ms) {
		web_put(w, "Last fetched ");
		web_ago_put(w, f->last_ok_ms);
	} else
		web_put(w, f->last_visit_ms ? "Never fetched successfully" : "Not fetched yet");
	if (f->last_visit_ms && fw_feed_is_failing(f)) {
		web_put(w, "; last tried ");
		web_ago_put(w, f->last_visit_ms);
	}
	if (f->fail_n > 1)
		web_put(w, ", %n failures in a row", (int64_t)f->fail_n);
	if (f->status == FW_FEED_ACTIVE && f->due_at_ms > w->now_ms) {
		char text[FW_RFC3339_MAX];

		web_put(w, "; next in %s", fw_duration_text(text, f->due_at_ms - w->now_ms));
		if (f->why.len)
			web_put(w, ": %t", f->why);
	}
	web_put(w, ".</p>\n");
}

/* ---- the list -------------------------------------------------------------------------------- */

struct feeds_list {
	struct web *w;
	int64_t feed_id, skip;
	size_t shown, all;
	bool failing;
	struct fw_str folder; /* absent: any */
	struct fw_str match;
	const char *next;
};

static void feeds_admin_put(struct web *w, const struct fw_feed *f, const char *next)
{
	bool active = f->status == FW_FEED_ACTIVE;

	if (!w->account.admin)
		return;
	web_put(w, "<form method=\"post\" action=\"poll\" class=\"inline\">");
	web_form_fields(w, next);
	web_put(w, "<input type=\"hidden\" name=\"feed\" value=\"%d\"><button name=\"what\" value=\"%s\">%s</button>\n",
		f->id, active ? "pause" : "resume", active ? "Pause for all" : "Resume");
	if (active)
		web_put(w, "<button name=\"what\" value=\"now\">Fetch now</button>");
	web_put(w, "</form>\n");
}

static void feeds_form_put(struct web *w, const struct fw_subscription *s, const char *next)
{
	web_put(w, "<form class=\"fields\" method=\"post\" action=\"subscription\">");
	web_form_fields(w, next);
	web_put(w,
		"<input type=\"hidden\" name=\"feed\" value=\"%d\">\n"
		"<label>Title <input name=\"title\" value=\"%t\" placeholder=\"%t\" maxlength=\"200\"></label>\n"
		"<label>Folder <input name=\"folder\" value=\"%t\" list=\"folders\" maxlength=\"200\"></label>\n"
		"<button class=\"main\">Save</button></form>\n",
		s->feed_id, s->title, s->feed->title.len ? s->feed->title : s->feed->url, s->folder);
	web_put(w, "<form method=\"post\" action=\"unsubscribe\" class=\"inline\">");
	web_form_fields(w, "feeds");
	web_put(w,
		"<input type=\"hidden\" name=\"feed\" value=\"%d\"><button class=\"danger\" data-ask=\"Unsubscribe "
		"from "
		"%t?\">Unsubscribe</button></form>\n",
		s->feed_id,
		s->title.len               ? s->title :
			s->feed->title.len ? s->feed->title :
					     s->feed->url);
	feeds_admin_put(w, s->feed, next);
}

static void feeds_card_put(struct web *w, const struct feeds_list *l, const struct fw_subscription *s)
{
	const struct fw_feed *f = s->feed;
	const struct web_feed *mine = web_feed_find(w, s->feed_id);

	web_put(w,
		"<li id=\"feed-%d\"><div class=\"head\"><b dir=\"auto\"><a href=\"./?view=all&amp;feed=%d\">%t</a></b>",
		s->feed_id, s->feed_id, mine ? mine->title : f->url);
	if (s->folder.len)
		web_put(w, "<span class=\"soft\" dir=\"auto\">%t</span>", s->folder);
	if (s->unread_n)
		web_put(w, "<span class=\"n\">%n unread</span>", s->unread_n);
	web_put(w, "</div>\n<p class=\"soft\">%t", f->url);
	if (fw_is_http(f->home_page_url))
		web_put(w, " \xc2\xb7 <a href=\"%t\" rel=\"noopener noreferrer\" target=\"_blank\">site</a>",
			f->home_page_url);
	web_put(w, "</p>\n");
	web_feed_health_put(w, f);
	web_put(w, "<details%s><summary>Change</summary>\n", l->feed_id ? " open" : "");
	feeds_form_put(w, s, l->next);
	web_put(w, "</details></li>\n");
}

static bool feeds_match(const struct feeds_list *l, const struct fw_subscription *s)
{
	const struct web_feed *mine = web_feed_find(l->w, s->feed_id);

	return (!l->failing || fw_feed_is_failing(s->feed)) && (!l->folder.p || fw_str_eq(l->folder, s->folder)) &&
		(!l->match.len || fw_str_ifind(s->feed->url, l->match) ||
			(mine && fw_str_ifind(mine->title, l->match)));
}

static int feeds_one(void *ctx, const struct fw_subscription *s)
{
	struct feeds_list *l = ctx;

	if (!feeds_match(l, s))
		return 0;
	l->all++;
	if ((int64_t)l->all <= l->skip || l->shown == FEEDS_SHOWN)
		return 0;
	l->shown++;
	feeds_card_put(l->w, l, s);
	return 0;
}

void web_folders_put(struct web *w)
{
	struct fw_str last = FW_STR_NONE;

	web_put(w, "<datalist id=\"folders\">");
	for (size_t i = 0; i < w->feeds.n; i++) {
		struct fw_str folder = w->feeds.feed[i].folder;

		if (folder.len && !fw_str_eq(folder, last)) /* a name twice does no harm */
			web_put(w, "<option value=\"%t\">", folder);
		last = folder;
	}
	web_put(w, "</datalist>\n");
}

static void feeds_folder_form_put(struct web *w, struct fw_str folder)
{
	web_put(w, "<form class=\"fields\" method=\"post\" action=\"folder\">");
	web_form_fields(w, "feeds");
	web_put(w,
		"<input type=\"hidden\" name=\"from\" value=\"%t\"><label>Name of the folder <input name=\"to\" "
		"value=\"%t\" maxlength=\"200\"></label><button class=\"main\">Rename</button></form>\n",
		folder, folder);
}

static void feeds_more_put(struct web *w, const struct feeds_list *l)
{
	if ((int64_t)l->all <= l->skip + (int64_t)l->shown)
		return;
	web_put(w, "<p><a href=\"./feeds?from=%d&amp;failing=%s&amp;q=%q\">More feeds (%n in all)</a></p>\n",
		l->skip + (int64_t)l->shown, l->failing ? "1" : "", l->match, (int64_t)l->all);
}

static void feeds_search_put(struct web *w, const struct feeds_list *l)
{
	web_put(w,
		"<form class=\"with-button\" action=\"feeds\"><input type=\"search\" name=\"q\" value=\"%t\" "
		"placeholder=\"Title or address\" aria-label=\"Find a feed\"><button>Find</button></form>\n",
		l->match);
	if (w->feeds.failing_n)
		web_put(w, "<p><a href=\"./feeds%s\">%s</a></p>\n", l->failing ? "" : "?failing=1",
			l->failing ? "Show all feeds" : "Show only feeds that cannot be fetched");
}

enum MHD_Result web_feeds(struct web *w)
{
	struct feeds_list l = {.w = w,
		.feed_id = w->view.feed_id,
		.skip = w->view.from_id,
		.failing = http_form_get(&w->form, "failing").len,
		.folder = w->view.folder,
		.match = w->view.search,
		.next = "feeds"};
	int rc = web_feeds_read(w, 0);

	if (l.feed_id)
		l.next = fw_arena_printf(&w->arena, "feeds?feed=%lld", (long long)l.feed_id);
	if (rc || !l.next)
		return web_store_failed(w, rc ? rc : FW_ENOMEM);
	web_frame_begin(w, FW_STR("Feeds"));
	web_bar_put(w, "Feeds");
	web_folders_put(w);
	if (l.folder.len)
		feeds_folder_form_put(w, l.folder);
	if (!l.feed_id)
		feeds_search_put(w, &l);
	web_put(w, "<ul class=\"cards\">\n");
	rc = fw_account_subscription_list(w->r->store, w->account.id, l.feed_id, false, feeds_one, &l, &w->err);
	if (rc)
		return web_store_failed(w, rc);
	web_put(w, "</ul>\n");
	if (!l.all)
		web_put(w, "<p>%s <a href=\"./add\">Add a feed</a></p>\n",
			w->feeds.n ? "None of your feeds matches." : "You have no feeds yet.");
	feeds_more_put(w, &l);
	web_put(w, "</div>\n");
	web_frame_end(w);
	return web_send(w, MHD_HTTP_OK);
}

/* ---- changes --------------------------------------------------------------------------------- */

static enum MHD_Result feeds_changed(struct web *w, int rc, enum web_notice what)
{
	return rc ? web_store_failed(w, rc) : web_done(w, what, "feeds");
}

bool web_title_and_folder(struct web *w, struct fw_subscription *set, enum MHD_Result *ok)
{
	if (web_text(w, "title", FW_LABEL_NAME_MAX, &set->title) &&
		web_text(w, "folder", FW_LABEL_NAME_MAX, &set->folder))
		return true;
	*ok = web_fail(
		w, MHD_HTTP_BAD_REQUEST, "The title or the folder is too long: at most %d bytes.", FW_LABEL_NAME_MAX);
	return false;
}

enum MHD_Result web_subscription(struct web *w)
{
	struct fw_subscription set = {.feed_id = web_number(w, "feed")};
	enum MHD_Result ok;

	if (!web_title_and_folder(w, &set, &ok))
		return ok;
	return feeds_changed(
		w, fw_account_subscription_set(w->r->store, w->account.id, &set, &w->err), WEB_NOTICE_SAVED);
}

enum MHD_Result web_unsubscribe(struct web *w)
{
	return feeds_changed(w, fw_account_unsubscribe(w->r->store, w->account.id, web_number(w, "feed"), &w->err),
		WEB_NOTICE_UNSUBSCRIBED);
}

enum MHD_Result web_folder(struct web *w)
{
	struct fw_str from, to;

	if (!web_text(w, "from", FW_LABEL_NAME_MAX, &from) || !web_text(w, "to", FW_LABEL_NAME_MAX, &to) || !from.len)
		return web_fail(w, MHD_HTTP_BAD_REQUEST, "The name of the folder is too long.");
	return feeds_changed(
		w, fw_account_folder_rename(w->r->store, w->account.id, from, to, false, &w->err), WEB_NOTICE_FOLDER);
}

struct feeds_moving {
	struct web *w;
	struct fw_feed_new to;
};

static int feeds_keep(void *ctx, const struct fw_subscription *s)
{
	struct feeds_moving *m = ctx;
	struct fw_arena *a = &m->w->arena;
	struct fw_str named = fw_named_feed(s->feed);

	m->to = (struct fw_feed_new){.user_title = fw_arena_str(a, s->title), .folder = fw_arena_str(a, s->folder)};
	if (named.p && fw_url_clean(a, named, &m->to.url, &m->to.username, &m->to.password, NULL))
		m->to.url = FW_STR_NONE;
	return a->failed ? FW_ENOMEM : 0;
}

/* Subscribe to the feed that the page names, and leave the page's address. */
enum MHD_Result web_instead(struct web *w)
{
	struct feeds_moving m = {.w = w};
	int64_t id = web_number(w, "feed");
	size_t added = 0;
	int rc = fw_account_subscription_list(w->r->store, w->account.id, id ? id : -1, false, feeds_keep, &m, &w->err);

	if (!rc && !m.to.url.p)
		return web_fail(w, MHD_HTTP_NOT_FOUND, "The page names no feed any more.");
	rc = rc ? rc : fw_account_import(w->r->store, w->account.id, &m.to, 1, w->now_ms, &added, &w->err);
	rc = rc ? rc : fw_account_unsubscribe(w->r->store, w->account.id, id, &w->err);
	return feeds_changed(w, rc, added ? WEB_NOTICE_SUBSCRIBED : WEB_NOTICE_HAD);
}

/* Of the operator: as `feedwheel pause`, `resume` and `fetch-now`. */
enum MHD_Result web_poll(struct web *w)
{
	struct fw_str what = http_form_get(&w->form, "what");
	struct fw_feed now, to = {.status = FW_FEED_ACTIVE, .due_at_ms = w->now_ms};
	unsigned set = FW_SET_STATUS | FW_SET_CRASH | FW_SET_DUE;
	enum web_notice done = WEB_NOTICE_RESUMED;
	int rc = fw_store_feed_find(w->r->store, web_number(w, "feed"), FW_STR_NONE, &w->arena, &now, &w->err);

	if (fw_str_eq(what, FW_STR("pause"))) {
		to.status = FW_FEED_PAUSED;
		set = FW_SET_STATUS;
		done = WEB_NOTICE_PAUSED;
	} else if (fw_str_eq(what, FW_STR("now"))) {
		to.due_at_ms = FW_DUE_FIRST;
		set = FW_SET_DUE;
		done = WEB_NOTICE_FETCHED;
	}
	rc = rc ? rc : fw_feed_update(w->r->store, &now, &to, set, w->now_ms, &w->err);
	return feeds_changed(w, rc, done);
}
