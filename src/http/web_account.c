/* SPDX-License-Identifier: ISC */
/* The page: the account: password, browsers and apps that are logged in, OPML. */
#include <openssl/crypto.h>

#include "api/opml.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/url.h"
#include "http/web.h"
#include "base/banned.h"

/* ---- the page -------------------------------------------------------------------------------- */

static int accountpage_token_row(void *ctx, const struct fw_account_token *t)
{
	static const char *const KIND[] = {[FW_ACCOUNT_TOKEN_CLIENT] = "App",
		[FW_ACCOUNT_TOKEN_SESSION] = "Browser",
		[FW_ACCOUNT_TOKEN_FEVER] = "App (Fever)"};
	struct web *w = ctx;

	web_put(w, "<tr><td>%s</td><td>", KIND[t->kind]);
	if (fw_str_eq(t->name, w->session_name))
		web_put(w, "this one");
	else if (t->kind != FW_ACCOUNT_TOKEN_SESSION)
		web_put(w, "%t", t->name);
	web_put(w, "</td><td>");
	web_time_put(w, t->created_ms);
	web_put(w, "</td><td>");
	if (t->used_ms)
		web_time_put(w, t->used_ms);
	web_put(w, "</td><td><form method=\"post\" action=\"revoke\" class=\"inline\">");
	web_form_fields(w, "account");
	web_put(w,
		"<button name=\"name\" value=\"%t\" aria-label=\"Log out %s %t\">Log out</button></form></td></tr>\n",
		t->name, KIND[t->kind], t->name);
	return 0;
}

static int accountpage_tokens_put(struct web *w)
{
	int rc;

	web_put(w,
		"<h2>Logged in</h2>\n<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Logged in\">"
		"<table class=\"list\"><thead><tr><th>Kind</th><th>Name</th>"
		"<th>Since</th><th>Last used</th><th><span class=\"vh\">Action</span></th></tr></thead><tbody>\n");
	rc = fw_account_token_list(w->r->store, w->account.id, accountpage_token_row, w, &w->err);
	web_put(w, "</tbody></table></div>\n");
	return rc;
}

static void accountpage_app_put(struct web *w)
{
	web_put(w,
		"<h2>Apps</h2>\n<p>Readers on a phone or a desktop log in with this server's address, your name, and "
		"your password. An app of the Fever API needs a password of its own:</p>\n"
		"<form class=\"with-button\" method=\"post\" action=\"token\">");
	web_form_fields(w, "account");
	web_put(w,
		"<input name=\"name\" required maxlength=\"40\" placeholder=\"phone\" aria-label=\"Name of the app\" "
		"pattern=\"[A-Za-z0-9._@\\-]+\" title=\"letters, digits, . _ - @\">"
		"<button>Make a password for Fever</button></form>\n");
}

static void accountpage_password_put(struct web *w)
{
	web_put(w, "<h2>Password</h2>\n<form class=\"fields\" method=\"post\" action=\"password\">");
	web_form_fields(w, "account");
	web_put(w,
		"<input type=\"hidden\" name=\"username\" autocomplete=\"username\" value=\"%t\">\n"
		"<label>Password now <input type=\"password\" name=\"old\" required "
		"autocomplete=\"current-password\"></label>\n"
		"<label>New password, at least %d characters <input type=\"password\" name=\"new\" required "
		"minlength=\"%d\" autocomplete=\"new-password\"></label>\n"
		"<label>The new one again <input type=\"password\" name=\"again\" required "
		"autocomplete=\"new-password\">"
		"</label>\n<button class=\"main\">Change the password</button></form>\n"
		"<p class=\"soft\">All other browsers are logged out then. Apps stay logged in.</p>\n",
		w->account.name, (int64_t)FW_ACCOUNT_PASSWORD_MIN, (int64_t)FW_ACCOUNT_PASSWORD_MIN);
}

static void accountpage_opml_put(struct web *w)
{
	web_put(w,
		"<h2 id=\"opml\">OPML</h2>\n<p><a class=\"button\" href=\"./export\" "
		"download=\"feedwheel.opml\">Export "
		"your feeds</a></p>\n<form class=\"with-button\" method=\"post\" action=\"import\" "
		"enctype=\"multipart/form-data\">");
	web_form_fields(w, "feeds");
	web_put(w,
		"<input type=\"file\" name=\"opml\" required accept=\".opml,.xml,text/xml,text/x-opml\" "
		"aria-label=\"OPML file\"><button>Import</button></form>\n");
}

enum MHD_Result web_account(struct web *w)
{
	int rc = web_feeds_read(w, 0);

	if (rc)
		return web_store_failed(w, rc);
	web_frame_begin(w, FW_STR("Account"));
	web_bar_put(w, "Account");
	web_put(w, "<p>You are logged in as <b>%t</b>.</p>\n<form method=\"post\" action=\"logout\">", w->account.name);
	web_form_fields(w, "");
	web_put(w, "<button>Log out</button></form>\n");
	accountpage_opml_put(w);
	accountpage_password_put(w);
	accountpage_app_put(w);
	rc = accountpage_tokens_put(w);
	if (rc)
		return web_store_failed(w, rc);
	web_put(w, "</div>\n");
	web_frame_end(w);
	return web_send(w, MHD_HTTP_OK);
}

/* ---- OPML ------------------------------------------------------------------------------------ */

struct account_opml {
	struct web *w;
	struct fw_opml_item *item;
	size_t n, cap;
};

static int accountpage_opml_item(void *ctx, const struct fw_subscription *s)
{
	struct account_opml *x = ctx;
	struct fw_arena *a = &x->w->arena;
	const struct web_feed *f = web_feed_find(x->w, s->feed_id);

	if (x->n == x->cap) /* of one that was added meanwhile */
		return 0;
	x->item[x->n] = (struct fw_opml_item){.folder = fw_arena_str(a, s->folder.p ? s->folder : FW_STR("")),
		.title = f ? f->title : fw_arena_str(a, s->feed->url),
		.url = fw_arena_str(a, s->feed->url),
		.home = fw_arena_str(a, s->feed->home_page_url.p ? s->feed->home_page_url : FW_STR("")),
		.at = x->n};
	x->n++;
	return a->failed ? FW_ENOMEM : 0;
}

enum MHD_Result web_export(struct web *w)
{
	struct account_opml x = {.w = w};
	struct fw_opml_writer out;
	int rc = web_feeds_read(w, 0);

	x.cap = w->feeds.n;
	x.item = fw_arena_calloc(&w->arena, x.cap + 1, sizeof(*x.item));
	if (!rc && !x.item)
		rc = fw_no_memory(&w->err);
	rc = rc ?
		rc :
		fw_account_subscription_list(w->r->store, w->account.id, 0, false, accountpage_opml_item, &x, &w->err);
	if (rc)
		return web_store_failed(w, rc);
	fw_opml_sort(x.item, x.n);
	fw_opml_begin(&out, &w->out, w->now_ms);
	for (size_t i = 0; i < x.n; i++)
		fw_opml_add(&out, &x.item[i]);
	fw_opml_end(&out);
	return web_send_as(w, MHD_HTTP_OK, "text/x-opml; charset=UTF-8");
}

struct account_import {
	struct web *w;
	struct fw_feed_new *feed;
	size_t n, cap, refused_n;
};

static int accountpage_import_one(void *ctx, const struct fw_opml_outline *o)
{
	struct account_import *im = ctx;
	struct fw_arena *a = &im->w->arena;
	struct fw_feed_new f = {.id = 0};
	int rc = fw_url_clean(a, o->url, &f.url, &f.username, &f.password, NULL);

	im->refused_n += rc == FW_EINVAL;
	if (rc)
		return rc == FW_EINVAL ? 0 : rc;
	if (im->n == im->cap) {
		size_t cap = im->cap ? 2 * im->cap : 256;

		im->feed = fw_arena_grow(a, im->feed, im->cap * sizeof(f), cap * sizeof(f));
		im->cap = cap;
		if (!im->feed)
			return FW_ENOMEM;
	}
	/* a title equal to the URL is no title: OPML requires one */
	if (!fw_str_eq(o->title, o->url) && web_text_fits(o->title, FW_LABEL_NAME_MAX))
		f.user_title = fw_arena_str(a, fw_str_trim(o->title));
	if (web_text_fits(o->folder, FW_LABEL_NAME_MAX))
		f.folder = fw_arena_str(a, o->folder);
	f.home_page_url = fw_arena_str(a, o->home_page_url);
	im->feed[im->n++] = f;
	return a->failed ? FW_ENOMEM : 0;
}

enum MHD_Result web_import(struct web *w)
{
	struct fw_str file = http_form_get(&w->form, "opml");
	struct account_import im = {.w = w};
	size_t added = 0;
	int rc = fw_opml_read(file.p ? file.p : "", file.len, accountpage_import_one, NULL, &im, &w->err);

	if (rc == FW_EFORMAT)
		return web_fail(w, MHD_HTTP_BAD_REQUEST, "This is no OPML file: %s", w->err.text);
	if (!rc && !im.n)
		return web_fail(w, MHD_HTTP_BAD_REQUEST, "The file has no feeds.");
	rc = rc ? rc : fw_account_import(w->r->store, w->account.id, im.feed, im.n, w->now_ms, &added, &w->err);
	return rc ? web_store_failed(w, rc) : web_go(w, "feeds");
}

/* ---- tokens ---------------------------------------------------------------------------------- */

enum MHD_Result web_revoke(struct web *w)
{
	int rc = fw_account_token_remove(w->r->store, w->account.id, http_form_get(&w->form, "name"), &w->err);

	return rc && rc != FW_ENOTFOUND ? web_store_failed(w, rc) : web_go(w, "account");
}

enum MHD_Result web_token(struct web *w)
{
	char text[FW_ACCOUNT_TOKEN_MAX] = "";
	struct fw_str name;
	int rc = web_feeds_read(w, 0);

	if (!web_text(w, "name", FW_ACCOUNT_NAME_MAX, &name) || !name.len)
		return web_fail(w, MHD_HTTP_BAD_REQUEST, "The name of the app is missing or too long.");
	rc = rc ? rc :
		  fw_account_token_add(w->r->store, w->account.id, name, FW_ACCOUNT_TOKEN_FEVER, w->now_ms, FW_NO_DATE,
			  text, &w->err);
	if (rc)
		return web_store_failed(w, rc);
	web_frame_begin(w, FW_STR("Account"));
	web_bar_put(w, "Account");
	web_put(w,
		"<h2>The password for %t</h2>\n<p>Log in there with your name, <b>%t</b>, and this password. It is "
		"shown "
		"only now.</p>\n<pre><b>%s</b></pre>\n<p><a href=\"./account\">Back to the account</a></p></div>\n",
		name, w->account.name, text);
	OPENSSL_cleanse(text, sizeof(text));
	web_frame_end(w);
	return web_send(w, MHD_HTTP_OK);
}
