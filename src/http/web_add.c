/* SPDX-License-Identifier: ISC */
/*
 * The page: adding a feed by its address, or by that of a site. With serve_discovery the address is
 * fetched first and what it has is shown; one request of this server fetches at a time, with the
 * limits and the address guard of all fetches. Without it the address is taken for a feed's, and
 * the workers say whether it is one.
 */
#include "base/clock.h"
#include "base/url.h"
#include "http/web.h"
#include "base/banned.h"

#define ADD_FETCH_MS (15 * FW_SECOND_MS)
#define ADD_ENTRIES 5  /* shown of a feed */
#define ADD_CHOICES 20 /* feeds that a page names */
#define ADD_TEXT 300   /* bytes of an entry */

struct adding {
	struct fw_response answer;
	struct fw_str url, user, pass; /* of the feed, if answer.doc is there; else of what was typed */
	struct fw_link *feeds;         /* that the page names; of page */
	struct fw_response page;
	int64_t until_ms;
};

static bool adding_discovers(const struct web *w)
{
	return w->r->thread->h->config->serve_discovery;
}

static void adding_form_put(struct web *w, struct fw_str url)
{
	web_put(w, "<form class=\"with-button\" method=\"post\" action=\"%s\">",
		adding_discovers(w) ? "preview" : "subscribe");
	web_form_fields(w, "");
	web_put(w,
		"<input name=\"url\" value=\"%t\" required autofocus placeholder=\"example.org\" "
		"aria-label=\"Address of a "
		"site or a feed\" autocapitalize=\"none\" spellcheck=\"false\" inputmode=\"url\">"
		"<button class=\"main\">%s</button></form>\n",
		url, adding_discovers(w) ? "Look" : "Subscribe");
	web_put(w,
		"<p class=\"soft\">%s To bring all feeds of another reader, <a href=\"./account#opml\">import an OPML "
		"file</a>.</p>\n",
		adding_discovers(w) ?
			"A site's address is enough." :
			"It must be the feed's own address: this server does not look for feeds on a site "
			"(serve_discovery).");
}

/* False: responded. */
static bool adding_url_read(struct web *w, struct adding *a, struct fw_str *typed, enum MHD_Result *ok)
{
	if (!web_text(w, "url", FW_URL_MAX, typed) || !typed->len)
		*ok = web_fail(w, MHD_HTTP_BAD_REQUEST, "The address is missing or too long.");
	else if (fw_url_clean(&w->arena, *typed, &a->url, &a->user, &a->pass, &w->err))
		*ok = web_fail(w, MHD_HTTP_BAD_REQUEST, "%s", w->err.text);
	else
		return true;
	return false;
}

static int adding_fetch(struct web *w, struct adding *a, struct fw_response *out)
{
	struct fw_config c = *w->r->thread->h->config;

	c.total_timeout_ms = FW_MIN(c.total_timeout_ms, FW_MAX(a->until_ms - fw_mono_ms(), (int64_t)1));
	return fw_fetch_url(&c, a->url, a->user, a->pass, out, &w->err);
}

/* Fetch the address, and the first feed that its page names. */
static int adding_look(struct web *w, struct adding *a)
{
	struct fw_str url, user, pass;
	int rc;

	a->until_ms = fw_mono_ms() + ADD_FETCH_MS;
	rc = adding_fetch(w, a, &a->answer);
	if (rc || a->answer.doc || !a->answer.feeds ||
		fw_url_clean(&w->arena, a->answer.feeds->href, &url, &user, &pass, NULL))
		return rc;
	a->page = a->answer;
	a->feeds = a->page.feeds;
	a->answer = (struct fw_response){.doc = NULL};
	if (!fw_url_same_origin(a->url, url)) /* the login is for the page's origin */
		a->user = a->pass = FW_STR_NONE;
	a->url = url;
	return adding_fetch(w, a, &a->answer);
}

static void adding_end(struct adding *a)
{
	fw_response_free(&a->answer);
	fw_response_free(&a->page);
}

/* ---- the preview ----------------------------------------------------------------------------- */

static struct fw_str adding_begin_of(struct fw_str s)
{
	size_t n = FW_MIN(s.len, (size_t)ADD_TEXT);

	while (n && n < s.len && ((unsigned char)s.p[n] & 0xc0) == 0x80)
		n--;
	return fw_str_sub(s, 0, n);
}

static void adding_entries_put(struct web *w, const struct fw_document *doc)
{
	const struct fw_entry *e = doc->entries;

	web_put(w, "<h2>Its newest entries</h2>\n<ul class=\"cards\">\n");
	for (size_t n = 0; e && n < ADD_ENTRIES; e = e->next, n++) {
		web_put(w, "<li><div class=\"head\"><b dir=\"auto\">%t</b>",
			e->title.len ? e->title : FW_STR("(no title)"));
		if (fw_date_known(e->published_ms))
			web_time_put(w, e->published_ms);
		web_put(w, "</div>");
		if (e->summary.len)
			web_put(w, "<p class=\"soft\" dir=\"auto\">%t</p>", adding_begin_of(e->summary));
		web_put(w, "</li>\n");
	}
	web_put(w, "</ul>\n");
	if (!doc->entries)
		web_put(w, "<p>It has no entries now.</p>\n");
}

static void adding_subscribe_put(struct web *w, struct fw_str url, struct fw_str title)
{
	web_put(w, "<form class=\"fields\" method=\"post\" action=\"subscribe\">");
	web_form_fields(w, "");
	web_put(w,
		"<input type=\"hidden\" name=\"url\" value=\"%t\">"
		"<label>Title <input name=\"title\" placeholder=\"%t\" maxlength=\"200\"></label>\n"
		"<label>Folder <input name=\"folder\" list=\"folders\" maxlength=\"200\"></label>\n"
		"<button class=\"main\" autofocus>Subscribe</button></form>\n",
		url, title);
	web_folders_put(w);
}

static void adding_choices_put(struct web *w, const struct adding *a)
{
	const struct fw_link *l = a->feeds ? a->feeds->next : NULL;

	if (!l)
		return;
	web_put(w, "<h2>The page names other feeds too</h2>\n<ul class=\"cards\">\n");
	for (size_t n = 0; l && n < ADD_CHOICES; l = l->next, n++) {
		web_put(w, "<li><form method=\"post\" action=\"preview\">");
		web_form_fields(w, "");
		web_put(w,
			"<div class=\"head\"><b dir=\"auto\">%t</b><button name=\"url\" "
			"value=\"%t\">Look</button></div>"
			"<p class=\"soft\">%t</p></form></li>\n",
			l->title.len ? l->title : l->href, l->href, l->href);
	}
	web_put(w, "</ul>\n");
}

/* The address as it was typed, with its login, if the feed is at its origin. */
static struct fw_str adding_whole_url(struct web *w, const struct adding *a, struct fw_str typed)
{
	struct fw_str url, user, pass;

	return !fw_url_clean(&w->arena, typed, &url, &user, &pass, NULL) && fw_str_eq(url, a->url) ? typed : a->url;
}

static void adding_found_put(struct web *w, const struct adding *a, struct fw_str typed)
{
	const struct fw_document *doc = a->answer.doc;

	web_put(w, "<h2 dir=\"auto\">%t</h2>\n<p class=\"soft\">%t</p>\n", doc->title.len ? doc->title : a->url,
		a->url);
	if (doc->description.len)
		web_put(w, "<p dir=\"auto\">%t</p>\n", adding_begin_of(doc->description));
	adding_subscribe_put(w, adding_whole_url(w, a, typed), doc->title);
	adding_entries_put(w, doc);
}

static enum MHD_Result adding_preview(struct web *w, struct adding *a, struct fw_str typed)
{
	int rc = adding_look(w, a);

	rc = rc ? rc : web_feeds_read(w, 0);
	if (rc)
		return web_store_failed(w, rc);
	web_frame_begin(w, FW_STR("Add a feed"));
	web_bar_put(w, "Add a feed");
	adding_form_put(w, typed);
	if (a->answer.doc)
		adding_found_put(w, a, typed);
	else
		web_put(w, "<p class=\"trouble\" role=\"alert\">%s</p>\n", a->answer.err.text);
	adding_choices_put(w, a);
	web_put(w, "</div>\n");
	web_frame_end(w);
	return web_send(w, MHD_HTTP_OK);
}

/* Pass the gate of fetches. False: responded, or later. */
static bool adding_gate_enter(struct web *w, enum MHD_Result *ok)
{
	switch (http_gate_enter(&w->r->thread->h->discoveries, w->r)) {
	case GATE_LATER:
		*ok = MHD_YES;
		return false;
	case GATE_FULL:
		*ok = web_fail(
			w, MHD_HTTP_SERVICE_UNAVAILABLE, "Too many addresses wait to be fetched. Try again soon.");
		return false;
	case GATE_TAKEN:
		break;
	}
	return true;
}

enum MHD_Result web_add(struct web *w)
{
	struct fw_str url;
	int rc = web_feeds_read(w, 0);

	if (rc)
		return web_store_failed(w, rc);
	if (!web_text(w, "url", FW_URL_MAX, &url))
		url = FW_STR_NONE;
	web_frame_begin(w, FW_STR("Add a feed"));
	web_bar_put(w, "Add a feed");
	adding_form_put(w, url);
	web_put(w, "</div>\n");
	web_frame_end(w);
	return web_send(w, MHD_HTTP_OK);
}

enum MHD_Result web_preview(struct web *w)
{
	struct adding a = {.until_ms = 0};
	struct fw_str typed;
	enum MHD_Result ok;

	if (!adding_discovers(w))
		return web_fail(w, MHD_HTTP_FORBIDDEN, "This server does not fetch addresses (serve_discovery).");
	if (!adding_url_read(w, &a, &typed, &ok) || !adding_gate_enter(w, &ok))
		return ok;
	ok = adding_preview(w, &a, typed);
	http_gate_leave(&w->r->thread->h->discoveries);
	adding_end(&a);
	return ok;
}

/* ---- subscribe ------------------------------------------------------------------------------- */

/* What was fetched is the first visit; if there is nothing, a worker will visit the feed. */
static int adding_subscribe(struct web *w, struct adding *a, const struct fw_subscription *set, int64_t *id)
{
	struct fw_feed_new f = {.user_title = set->title, .folder = set->folder};
	size_t added;
	int rc;

	f.url = a->url;
	f.username = a->user;
	f.password = a->pass;
	rc = fw_account_import(w->r->store, w->account.id, &f, 1, w->now_ms, &added, &w->err);
	*id = f.id;
	if (!rc && a->answer.doc)
		rc = fw_response_store(w->r->store, w->r->thread->h->config, &a->answer, f.id, &w->err);
	return rc;
}

enum MHD_Result web_subscribe(struct web *w)
{
	struct adding a = {.until_ms = 0};
	struct fw_subscription set = {.feed_id = 0};
	struct fw_feed known;
	struct fw_str typed;
	enum MHD_Result ok;
	bool look;
	int64_t id = 0;
	int rc;

	if (!adding_url_read(w, &a, &typed, &ok) || !web_title_and_folder(w, &set, &ok))
		return ok;
	rc = fw_store_feed_find(w->r->store, 0, a.url, &w->arena, &known, &w->err);
	look = rc == FW_ENOTFOUND && adding_discovers(w);
	if (look && !adding_gate_enter(w, &ok))
		return ok;
	rc = rc == FW_ENOTFOUND ? 0 : rc;
	if (!rc && look)
		rc = adding_look(w, &a);
	rc = rc ? rc : adding_subscribe(w, &a, &set, &id);
	if (look)
		http_gate_leave(&w->r->thread->h->discoveries);
	adding_end(&a);
	if (rc)
		return web_store_failed(w, rc);
	return web_go_view(w, &(struct web_view){.kind = WEB_ALL, .feed_id = id});
}
