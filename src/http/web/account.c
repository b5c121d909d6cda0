/* SPDX-License-Identifier: ISC */
/* The page: the account: password, browsers and apps that are logged in, OPML. */
#include <openssl/crypto.h>

#include "base/clock.h"
#include "http/readers/subscriptions.h"
#include "http/web/web.h"

/* ---- the page -------------------------------------------------------------------------------- */

static int accountpage_token_row(void *ctx, const struct fw_account_token *t)
{
	static const char *const KIND[] = {[FW_ACCOUNT_TOKEN_CLIENT] = "App",
		[FW_ACCOUNT_TOKEN_SESSION] = "Browser",
		[FW_ACCOUNT_TOKEN_FEVER] = "App (Fever)",
		[FW_ACCOUNT_TOKEN_LOGIN] = "App, with the password"};
	struct web *w = ctx;

	web_put(w, "<tr><td>%s</td><td>", KIND[t->kind]);
	if (fw_str_eq(t->name, w->session_name))
		web_put(w, "this one");
	else if (t->kind != FW_ACCOUNT_TOKEN_SESSION)
		web_put(w, "%t", t->name);
	web_put(w, "</td><td>");
	web_ago_put(w, t->created_ms);
	web_put(w, "</td><td>");
	if (t->used_ms)
		web_ago_put(w, t->used_ms);
	web_put(w, "</td><td><form method=\"post\" action=\"revoke\" class=\"inline\">");
	web_form_fields(w, "account");
	web_put(w, "<input type=\"hidden\" name=\"kind\" value=\"%d\">", (int64_t)t->kind);
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
		"<th>Logged in</th><th>Last used</th><th><span class=\"vh\">Action</span></th></tr></thead><tbody>\n");
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
		"<label>Current password <input type=\"password\" name=\"old\" required "
		"autocomplete=\"current-password\"></label>\n"
		"<label>New password, at least %d characters <input type=\"password\" name=\"new\" required "
		"minlength=\"%d\" autocomplete=\"new-password\"></label>\n"
		"<label>New password, repeated <input type=\"password\" name=\"again\" required "
		"autocomplete=\"new-password\">"
		"</label>\n<button class=\"main\">Change the password</button></form>\n"
		"<p class=\"soft\">All other browsers are logged out then, and apps that logged in with the password. "
		"Those that have a password of their own stay logged in.</p>\n",
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

static struct subscriptions accountpage_subscriptions(struct web *w)
{
	return (struct subscriptions){.store = w->r->store,
		.account_id = w->account.id,
		.now_ms = w->now_ms,
		.arena = &w->arena,
		.err = &w->err};
}

enum MHD_Result web_export(struct web *w)
{
	const struct subscriptions all = accountpage_subscriptions(w);
	int rc = subscriptions_export(&all, &w->out);

	return rc ? web_store_failed(w, rc) : web_send_as(w, MHD_HTTP_OK, "text/x-opml; charset=UTF-8");
}

/* The refused lines of a file, as far as they were kept. */
static void accountpage_refused_put(struct web *w, const struct subscriptions_imported *done)
{
	web_put(w,
		"<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Refused\"><table class=\"list\">"
		"<thead><tr><th>Line</th><th>Why it was refused</th></tr></thead><tbody>\n");
	for (size_t i = 0; i < done->told_n; i++)
		web_put(w, "<tr><td>%d</td><td>%t</td></tr>\n", (int64_t)done->told[i].line, done->told[i].words);
	web_put(w, "</tbody></table></div>\n");
	if (done->refused_n > done->told_n)
		web_put(w, "<p>And %n more.</p>\n", (int64_t)(done->refused_n - done->told_n));
}

static void accountpage_imported_put(struct web *w, const struct subscriptions_imported *done)
{
	web_put(w, "<p>");
	web_count_put(w, (int64_t)done->added_n, "feed");
	web_put(w, " added, %n already subscribed, %n refused.</p>\n", (int64_t)done->had_n, (int64_t)done->refused_n);
	if (done->refused_n)
		accountpage_refused_put(w, done);
	web_put(w,
		"<p><a class=\"button\" href=\"./?view=all\">Show the entries</a> or <a href=\"./feeds\">the "
		"feeds</a></p>\n");
}

enum MHD_Result web_import(struct web *w)
{
	const struct subscriptions all = accountpage_subscriptions(w);
	struct subscriptions_imported done;
	int rc = subscriptions_import(&all, http_form_get(&w->form, "opml"), &done);

	if (rc == FW_EFORMAT)
		return web_fail(w, MHD_HTTP_BAD_REQUEST, "This is not an OPML file: %s", w->err.text);
	if (!rc && !done.added_n && !done.had_n && !done.refused_n)
		return web_fail(w, MHD_HTTP_BAD_REQUEST, "The file has no feeds.");
	rc = rc ? rc : web_feeds_read(w, 0);
	if (rc)
		return web_store_failed(w, rc);
	web_frame_begin(w, FW_STR("Import"));
	web_bar_put(w, "Import");
	accountpage_imported_put(w, &done);
	web_put(w, "</div>\n");
	web_frame_end(w);
	return web_send(w, MHD_HTTP_OK);
}

/* ---- tokens ---------------------------------------------------------------------------------- */

enum MHD_Result web_revoke(struct web *w)
{
	int64_t kind = http_form_get(&w->form, "kind").p ? FW_MIN(web_number(w, "kind"), FW_ACCOUNT_TOKEN_KIND_N) :
							   FW_ACCOUNT_TOKEN_KIND_N;
	int rc = fw_account_token_remove(
		w->r->store, w->account.id, (enum fw_account_token_kind)kind, http_form_get(&w->form, "name"), &w->err);

	return rc && rc != FW_ENOTFOUND ? web_store_failed(w, rc) : web_done(w, WEB_NOTICE_REVOKED, "account");
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
