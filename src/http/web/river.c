/* SPDX-License-Identifier: ISC */
/* The page: the river of entries. */
#include "base/clock.h"
#include "base/log.h"
#include "base/xml.h"
#include "http/web/web.h"

#define RIVER_PAGE 25                  /* entries of one page: about what a window shows, so that it is there soon */
#define RIVER_PART 50                  /* entries that the script appends at once */
#define SUMMARY_MAX 240                /* bytes of a summary that are shown */
#define CONTENT_MAX ((size_t)64 << 10) /* a longer content is not sanitised for its beginning */

struct river {
	struct web *w;
	size_t n, max;
	int64_t last_id;
	bool more;
	struct fw_buf html, begin; /* of the row that is being written */
};

/* ---- rows ------------------------------------------------------------------------------------ */

/* The beginning of the summary, or of the content, as HTML. */
static void river_begin_make(struct river *v, const struct fw_entry_row *e)
{
	struct fw_view_work work = {.cache = v->w->r->thread->h->views};
	struct fw_err err = {0};

	fw_buf_reset(&v->html);
	fw_buf_reset(&v->begin);
	if (e->summary.len)
		fw_xml_escape(&v->html, e->summary, FW_XML_KEEP);
	else if (e->content.len <= CONTENT_MAX && fw_entry_html(e, &work, &v->html, &err))
		fw_debug("%s", err.text); /* the entry's own page shows the error */
	web_content_text(&v->begin, fw_buf_str(&v->html), SUMMARY_MAX);
}

static void river_star_put(struct web *w, const struct fw_stream_entry *e)
{
	web_put(w,
		"<button class=\"icon star\" form=\"state\" formaction=\"star\" name=\"id\" value=\"%d\" "
		"aria-pressed=\"%s\" aria-label=\"Star\"><svg><use href=\"#i-star\"/></svg></button>",
		e->entry->id, e->starred ? "true" : "false");
}

static int river_row(void *ctx, const struct fw_stream_entry *se)
{
	struct river *v = ctx;
	struct web *w = v->w;
	const struct fw_entry_row *e = se->entry;
	const struct web_feed *f = web_feed_find(w, e->feed_id);
	struct fw_str title = fw_str_trim(e->title);

	if (v->n == v->max) {
		v->more = true;
		return 1;
	}
	v->n++;
	v->last_id = e->id;
	river_begin_make(v, e);
	web_put(w, "<li class=\"row%s\" data-id=\"%d\"><article><div class=\"line\">", se->read ? "" : " unread",
		e->id);
	web_put(w, "<span class=\"from\" dir=\"auto\">%t</span>",
		f                         ? f->title :
			e->feed_title.len ? e->feed_title :
					    e->feed_url);
	web_put(w, "<h2 dir=\"auto\"><a class=\"title\" href=\"entry?id=%d\" aria-expanded=\"false\">%t", e->id, title);
	if (!title.len)
		fw_buf_addstr(&w->out, v->begin.len ? fw_buf_str(&v->begin) : FW_STR("(no title)"));
	web_put(w, "</a>");
	if (!se->read)
		web_put(w, "<span class=\"vh state\"> unread</span>");
	web_put(w, "</h2><span class=\"summary\" dir=\"auto\">");
	if (title.len)
		fw_buf_addstr(&w->out, fw_buf_str(&v->begin));
	web_put(w, "</span>");
	web_time_put(w, fw_store_entry_date(e, e->seen_ms));
	river_star_put(w, se);
	web_put(w, "</div></article></li>\n");
	return 0;
}

/* ---- the view -------------------------------------------------------------------------------- */

int web_view_stream(struct web *w, struct fw_stream *s)
{
	const struct web_view *view = &w->view;

	*s = (struct fw_stream){.account_id = w->account.id,
		.feed_id = view->feed_id,
		.folder = view->folder,
		.labelled = view->kind == WEB_STARRED || view->label.p,
		.read = view->kind == WEB_UNREAD ? FW_READ_UNREAD : FW_READ_ANY,
		.search = view->search};
	return view->label.p ? fw_account_label(w->r->store, w->account.id, view->label, false, &s->label_id, &w->err) :
			       0;
}

static int river_read(struct web *w, struct river *v)
{
	const struct web_view *view = &w->view;
	struct fw_stream s;
	int rc = web_view_stream(w, &s);

	if (rc)
		return rc;
	s.oldest_first = view->oldest_first;
	v->max = web_is_part(w) ? RIVER_PART : RIVER_PAGE;
	s.limit = v->max + 1;
	s.content = true;
	*(view->oldest_first ? &s.after_id : &s.before_id) = view->from_id;
	web_put(w, "<ol class=\"rows\">\n");
	rc = fw_account_entries(w->r->store, &s, river_row, v, &w->err);
	web_put(w, "</ol>\n");
	fw_buf_finish(&v->html);
	fw_buf_finish(&v->begin);
	return FW_MIN(rc, 0);
}

static void river_older_put(struct web *w, const struct river *v)
{
	struct web_view to = w->view;

	if (!v->more)
		return;
	to.from_id = v->last_id;
	web_put(w, "<p class=\"older\"><a rel=\"next\" href=\"./");
	web_view_put(w, &to);
	web_put(w, "\">%s</a></p>\n", w->view.oldest_first ? "Newer entries" : "Older entries");
}

static struct fw_str river_title(const struct web *w)
{
	const struct web_feed *f = web_feed_find(w, w->view.feed_id);

	if (w->view.search.p)
		return w->view.search;
	if (f)
		return f->title;
	if (w->view.label.p)
		return w->view.label;
	if (w->view.folder.p)
		return w->view.folder.len ? w->view.folder : FW_STR("No folder");
	return w->view.kind == WEB_ALL      ? FW_STR("All entries") :
		w->view.kind == WEB_STARRED ? FW_STR("Starred") :
					      FW_STR("Unread");
}

/* Are the feed's entries among those of the view? */
static bool river_has_feed(const struct web *w, const struct web_feed *f)
{
	return (!w->view.feed_id || f->id == w->view.feed_id) &&
		(!w->view.folder.p || web_folder_has(w->view.folder, f->folder));
}

/* The unread entries of the view, whatever it searches for. */
static int river_unread_count(struct web *w, int64_t *n)
{
	struct fw_stream s;
	int rc = web_view_stream(w, &s);

	*n = 0;
	s.search = FW_STR_NONE;
	s.read = FW_READ_UNREAD;
	if (rc || s.labelled)
		return rc ? rc : fw_account_count(w->r->store, &s, n, &w->err);
	for (size_t i = 0; i < w->feeds.n; i++) {
		const struct web_feed *f = &w->feeds.feed[i];

		if (river_has_feed(w, f))
			*n += f->unread_n;
	}
	return 0;
}

static void river_switch_put(struct web *w, const struct web_view *to, const char *icon, const char *name)
{
	web_put(w, "<a href=\"./");
	web_view_put(w, to);
	web_put(w, "\"><svg><use href=\"#i-%s\"/></svg> <span>%s</span></a>", icon, name);
}

static void river_mark_all_put(struct web *w, int64_t newest_id, int64_t unread_n)
{
	web_put(w, "<form method=\"post\" action=\"all\" id=\"mark-all\">");
	web_form_fields(w, NULL);
	web_put(w, "<input type=\"hidden\" name=\"upto\" value=\"%d\">", newest_id);
	if (w->view.kind == WEB_STARRED)
		web_put(w, "<input type=\"hidden\" name=\"view\" value=\"starred\">");
	if (w->view.feed_id)
		web_put(w, "<input type=\"hidden\" name=\"feed\" value=\"%d\">", w->view.feed_id);
	if (w->view.folder.p)
		web_put(w, "<input type=\"hidden\" name=\"folder\" value=\"%t\">", w->view.folder);
	if (w->view.label.p)
		web_put(w, "<input type=\"hidden\" name=\"label\" value=\"%t\">", w->view.label);
	web_put(w, "<button data-ask=\"Mark %n %s as read?\">", unread_n, unread_n == 1 ? "entry" : "entries");
	web_put(w, "<svg><use href=\"#i-check\"/></svg> <span>Mark all as read</span></button></form>\n");
}

static void river_head_put(struct web *w, int64_t newest_id, int64_t unread_n)
{
	struct web_view to = w->view;

	web_put(w,
		"<header class=\"bar\">\n<a class=\"icon menu\" href=\"#column\" aria-label=\"Show the feeds\">"
		"<svg><use href=\"#i-menu\"/></svg></a>\n<h1 dir=\"auto\">%t</h1>\n",
		river_title(w));
	web_put(w, "<div class=\"tools\">");
	to.from_id = 0;
	if (w->view.kind != WEB_STARRED) {
		to.kind = w->view.kind == WEB_UNREAD ? WEB_ALL : WEB_UNREAD;
		if (w->view.kind == WEB_UNREAD)
			river_switch_put(w, &to, "all", "Show read too");
		else
			river_switch_put(w, &to, "dot", "Only unread");
		to.kind = w->view.kind;
	}
	to.oldest_first = !to.oldest_first;
	if (to.oldest_first)
		river_switch_put(w, &to, "up", "Oldest first");
	else
		river_switch_put(w, &to, "down", "Newest first");
	if (w->view.feed_id && web_feed_find(w, w->view.feed_id))
		web_put(w, "<a href=\"./feeds?feed=%d\"><svg><use href=\"#i-gear\"/></svg> <span>Settings</span></a>",
			w->view.feed_id);
	else if (w->view.folder.len)
		web_put(w, "<a href=\"./feeds?folder=%q\"><svg><use href=\"#i-gear\"/></svg> <span>Settings</span></a>",
			w->view.folder);
	web_put(w, "</div>\n");
	if (!w->view.search.p && unread_n)
		river_mark_all_put(w, newest_id, unread_n);
	web_put(w, "</header>\n");
}

/* Have feeds of the view entries, or do some wait for their first document? */
enum river_state { RIVER_NONE, RIVER_WAITS, RIVER_FETCHED, RIVER_HAS_ENTRIES };
static enum river_state river_state(const struct web *w)
{
	enum river_state state = RIVER_NONE;

	for (size_t i = 0; i < w->feeds.n; i++) {
		const struct web_feed *f = &w->feeds.feed[i];
		enum river_state one = f->has_entries ? RIVER_HAS_ENTRIES : f->waiting ? RIVER_WAITS : RIVER_FETCHED;

		if (!river_has_feed(w, f))
			continue;
		if (one == RIVER_HAS_ENTRIES)
			return one;
		state = state == RIVER_NONE || one == RIVER_WAITS ? one : state;
	}
	return state;
}

static void river_no_entries_put(struct web *w, enum river_state state)
{
	struct web_view all = w->view;

	all.kind = WEB_ALL;
	all.from_id = 0;
	if (state == RIVER_WAITS)
		web_put(w,
			"<div data-waiting><p>%s being fetched for the first time. The first entries come in a "
			"moment.</p><noscript><p>Load this page again then.</p></noscript></div>",
			w->view.feed_id ? "This feed is" : "Your feeds are");
	else if (state == RIVER_HAS_ENTRIES && w->view.kind == WEB_UNREAD) {
		web_put(w, "<p>All is read.</p><p><a href=\"./");
		web_view_put(w, &all);
		web_put(w, "\">Show read entries</a></p>");
	} else
		web_put(w, "<p>There are no entries yet.</p>");
}

/* Is the view of a feed or a folder that the account has not? */
static bool river_is_unknown(const struct web *w, enum river_state state)
{
	return w->feeds.n && state == RIVER_NONE && (w->view.feed_id || w->view.folder.p);
}

static int river_empty_put(struct web *w, enum river_state state)
{
	int rc = 0;

	web_put(w, "<div class=\"empty\">");
	if (!w->feeds.n) {
		web_put(w,
			"<p>You have no feeds yet.</p><p><a class=\"button\" href=\"./add\">Add a feed</a> or "
			"<a href=\"./account#opml\">import an OPML file</a>.</p>");
		rc = web_offer_put(w);
	} else if (river_is_unknown(w, state) && w->view.feed_id)
		web_put(w, "<p>You are not subscribed to this feed.</p><p><a href=\"./feeds\">Your feeds</a></p>");
	else if (river_is_unknown(w, state) && w->view.folder.len)
		web_put(w, "<p>You have no folder \xe2\x80\x9c%t\xe2\x80\x9d.</p>", w->view.folder);
	else if (river_is_unknown(w, state))
		web_put(w, "<p>Each of your feeds is in a folder.</p>");
	else if (w->view.search.p)
		web_put(w, "<p>Nothing was found.</p>");
	else if (w->view.kind == WEB_STARRED)
		web_put(w, "<p>No entry is starred. Press <kbd>s</kbd> on one.</p>");
	else if (w->view.label.p && w->view.kind == WEB_ALL)
		web_put(w, "<p>No entry has this label. Press <kbd>l</kbd> on one.</p>");
	else
		river_no_entries_put(w, w->view.label.p ? RIVER_HAS_ENTRIES : state);
	web_put(w, "</div>\n");
	return rc;
}

static int river_health_one(void *ctx, const struct fw_subscription *s)
{
	struct web *w = ctx;

	web_put(w, "<div class=\"health\">\n<p class=\"soft\">%t</p>\n", s->feed->url);
	web_feed_health_put(w, s->feed);
	web_put(w, "</div>\n");
	return 0;
}

/* A feed that is not fetched says why, where its entries are read. */
static int river_health_put(struct web *w)
{
	const struct web_feed *f = w->view.feed_id ? web_feed_find(w, w->view.feed_id) : NULL;

	return f && f->failing ?
		fw_account_subscription_list(w->r->store, w->account.id, f->id, false, river_health_one, w, &w->err) :
		0;
}

static enum MHD_Result river_page_send(struct web *w)
{
	struct river v = {.w = w};
	enum river_state state;
	int64_t newest_id, unread_n = 0;
	/* before the entries: what is stored meanwhile must stay unread */
	int rc = fw_account_newest_id(w->r->store, &newest_id, &w->err);

	rc = rc ? rc : web_feeds_read(w, 0);
	rc = rc ? rc : river_unread_count(w, &unread_n);
	if (rc)
		return web_store_failed(w, rc);
	state = river_state(w);
	web_frame_begin(w, river_title(w));
	river_head_put(w, newest_id, unread_n);
	web_put(w, "<form id=\"state\" method=\"post\" action=\"star\">");
	web_form_fields(w, NULL);
	web_put(w, "</form>\n");
	rc = river_health_put(w);
	web_put(w, "<div id=\"river\">\n");
	rc = rc ? rc : river_read(w, &v);
	web_put(w, "</div>\n");
	if (rc == FW_EINVAL && w->view.search.p) {
		web_put(w, "<p class=\"trouble\">%s</p>\n", w->err.text);
		rc = 0;
	} else if (!rc && !v.n)
		rc = river_empty_put(w, state);
	if (rc)
		return web_store_failed(w, rc);
	river_older_put(w, &v);
	web_frame_end(w);
	return web_send(w, !v.n && river_is_unknown(w, state) ? MHD_HTTP_NOT_FOUND : MHD_HTTP_OK);
}

/* Does the view still wait for its first entries? */
static enum MHD_Result river_waiting_send(struct web *w)
{
	int rc = web_feeds_read(w, w->view.feed_id);

	if (rc)
		return web_store_failed(w, rc);
	if (river_state(w) == RIVER_WAITS)
		web_put(w, "waiting");
	return web_send(w, MHD_HTTP_OK);
}

/*
 * part=1: rows for the script; part=column and part=folder: the column, or a part of it;
 * part=waiting: a word while the first entries are waited for
 */
enum MHD_Result web_river(struct web *w)
{
	struct fw_str part = http_form_get(&w->form, "part");
	struct river v = {.w = w};
	int rc;

	if (!part.len)
		return river_page_send(w);
	if (fw_str_eq(part, FW_STR("waiting")))
		return river_waiting_send(w);
	rc = web_feeds_read(w, 0);
	if (!rc && !fw_str_eq(part, FW_STR("1")))
		rc = web_column_put(w);
	else if (!rc)
		rc = river_read(w, &v);
	if (rc)
		return web_store_failed(w, rc);
	river_older_put(w, &v);
	return web_send(w, MHD_HTTP_OK);
}
