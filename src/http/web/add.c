/* SPDX-License-Identifier: ISC */
/*
 * The page: adding a feed by its address, or by that of a site (address.h). With serve_discovery
 * the address is fetched first, and what it has is shown.
 */
#include "api/feed_remedy.h"
#include "base/url.h"
#include "http/readers/address.h"
#include "http/web/web.h"

#define ADD_ENTRIES 5    /* shown of a feed */
#define ADD_CHOICES 20   /* feeds that a page names */
#define ADD_TEXT 300     /* bytes of an entry */
#define ADD_ALL_MAX 2000 /* of the operator's feeds are subscribed at once */

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
		url, adding_discovers(w) ? "Find the feed" : "Subscribe");
	web_put(w,
		"<p class=\"soft\">%s To bring all feeds of another reader, <a href=\"./account#opml\">import an OPML "
		"file</a>.</p>\n",
		adding_discovers(w) ?
			"The address of a site is enough: its feed is found and shown first." :
			"The address of a site is enough: its feed is found when it is fetched. This server shows no "
			"preview.");
}

/*
 * Open the address in the form, and the first feed that its page names; address_close() follows in
 * any case. False: responded.
 */
static bool adding_open(struct web *w, struct address *q, bool always, struct fw_str *typed, enum MHD_Result *ok)
{
	*q = (struct address){.r = w->r, .arena = &w->arena, .err = &w->err};
	if (!web_text(w, "url", FW_URL_MAX, typed) || !typed->len) {
		*ok = web_fail(w, MHD_HTTP_BAD_REQUEST, "The address is missing or too long.");
		return false;
	}
	switch (address_open(q, *typed, always)) {
	case ADDRESS_READY:
		q->rc = address_follow(q);
		if (!q->rc)
			return true;
		break;
	case ADDRESS_INVALID:
		*ok = web_fail(w, MHD_HTTP_BAD_REQUEST, "%s", w->err.text);
		return false;
	case ADDRESS_LATER:
		*ok = MHD_YES;
		return false;
	case ADDRESS_BUSY:
		*ok = web_fail(
			w, MHD_HTTP_SERVICE_UNAVAILABLE, "Too many addresses wait to be fetched. Try again soon.");
		return false;
	case ADDRESS_FAILED:
		break;
	}
	*ok = web_store_failed(w, q->rc);
	return false;
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

static void adding_choices_put(struct web *w, const struct address *q)
{
	const struct fw_link *l = q->page.feeds ? q->page.feeds->next : NULL;

	if (!l)
		return;
	web_put(w, "<h2>The page names other feeds too</h2>\n<ul class=\"cards\">\n");
	for (size_t n = 0; l && n < ADD_CHOICES; l = l->next, n++) {
		web_put(w, "<li><form method=\"post\" action=\"preview\">");
		web_form_fields(w, "");
		web_put(w,
			"<div class=\"head\"><b dir=\"auto\">%t</b><button name=\"url\" "
			"value=\"%t\">Show</button></div>"
			"<p class=\"soft\">%t</p></form></li>\n",
			l->title.len ? l->title : l->href, l->href, l->href);
	}
	web_put(w, "</ul>\n");
}

/* The address as it was typed, with its login, if the feed is at its origin. */
static struct fw_str adding_whole_url(struct web *w, const struct address *q, struct fw_str typed)
{
	struct fw_str url, user, pass;

	return !fw_url_clean(&w->arena, typed, &url, &user, &pass, NULL) && fw_str_eq(url, q->url) ? typed : q->url;
}

static void adding_found_put(struct web *w, const struct address *q, struct fw_str typed)
{
	const struct fw_document *doc = q->answer.doc;

	web_put(w, "<h2 dir=\"auto\">%t</h2>\n<p class=\"soft\">%t</p>\n", doc->title.len ? doc->title : q->url,
		q->url);
	if (doc->description.len)
		web_put(w, "<p dir=\"auto\">%t</p>\n", adding_begin_of(doc->description));
	adding_subscribe_put(w, adding_whole_url(w, q, typed), doc->title);
	adding_entries_put(w, doc);
}

/* Nothing was found: the address, why, and what helps. */
static void adding_trouble_put(struct web *w, const struct address *q)
{
	const struct fw_feed as = {.url = q->url,
		.fail_n = 1,
		.last_kind = q->answer.kind,
		.http_status = q->answer.visit.http_status,
		.error = fw_str(q->answer.err.text)};

	web_put(w, "<div role=\"alert\"><p class=\"trouble\">%t: %s</p>\n<p>%s</p></div>\n", q->url, q->answer.err.text,
		fw_feed_remedy(&as));
}

static enum MHD_Result adding_preview(struct web *w, struct address *q, struct fw_str typed)
{
	int rc = web_feeds_read(w, 0);

	if (rc)
		return web_store_failed(w, rc);
	web_frame_begin(w, FW_STR("Add a feed"));
	web_bar_put(w, "Add a feed");
	adding_form_put(w, typed);
	if (q->answer.doc)
		adding_found_put(w, q, typed);
	else
		adding_trouble_put(w, q);
	adding_choices_put(w, q);
	web_put(w, "</div>\n");
	web_frame_end(w);
	return web_send(w, MHD_HTTP_OK);
}

/* ---- the operator's feeds -------------------------------------------------------------------- */

int web_offer_put(struct web *w)
{
	struct fw_account_all all;
	int rc = fw_account_subscribe_all(w->r->store, w->account.id, ADD_ALL_MAX, true, w->now_ms, &all, &w->err);

	if (rc || !all.added_n)
		return rc;
	web_put(w, "<form class=\"offer\" method=\"post\" action=\"collected\"><p>This server collects %s",
		all.more ? "more than " : "");
	web_count_put(w, (int64_t)all.added_n, "feed");
	web_put(w, " that you do not read yet.</p>");
	web_form_fields(w, "");
	web_put(w, "<button>Subscribe to %s</button></form>\n",
		all.more                 ? "the first of them" :
			all.added_n == 1 ? "it" :
					   "all of them");
	return 0;
}

enum MHD_Result web_collected(struct web *w)
{
	struct fw_account_all all;
	int rc = fw_account_subscribe_all(w->r->store, w->account.id, ADD_ALL_MAX, false, w->now_ms, &all, &w->err);

	return rc ? web_store_failed(w, rc) : web_noting(w, web_go(w, ""), WEB_NOTICE_COLLECTED, (int64_t)all.added_n);
}

/* ---- pages ----------------------------------------------------------------------------------- */

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
	rc = web_offer_put(w);
	if (rc)
		return web_store_failed(w, rc);
	web_put(w, "</div>\n");
	web_frame_end(w);
	return web_send(w, MHD_HTTP_OK);
}

enum MHD_Result web_preview(struct web *w)
{
	struct address q;
	struct fw_str typed;
	enum MHD_Result ok;

	if (!adding_discovers(w))
		return web_fail(w, MHD_HTTP_FORBIDDEN,
			"This server shows no preview: the operator has turned it off (serve_discovery).");
	if (adding_open(w, &q, true, &typed, &ok))
		ok = adding_preview(w, &q, typed);
	address_close(&q);
	return ok;
}

/* Also to an address where no feed is now: the page of feeds will say so. */
enum MHD_Result web_subscribe(struct web *w)
{
	struct fw_subscription set = {.feed_id = 0};
	struct fw_feed_new f = {.id = 0};
	struct address q;
	struct fw_str typed;
	enum MHD_Result ok;
	int rc = 0;

	if (!web_title_and_folder(w, &set, &ok))
		return ok;
	f.user_title = set.title;
	f.folder = set.folder;
	if (adding_open(w, &q, false, &typed, &ok)) {
		rc = address_subscribe(&q, w->account.id, &f, w->now_ms);
		ok = rc ? web_store_failed(w, rc) :
			  web_noting(w, web_go_view(w, &(struct web_view){.kind = WEB_ALL, .feed_id = f.id}),
				  f.existed ? WEB_NOTICE_HAD : WEB_NOTICE_SUBSCRIBED, 0);
	}
	address_close(&q);
	return ok;
}
