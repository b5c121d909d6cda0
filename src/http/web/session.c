/* SPDX-License-Identifier: ISC */
/*
 * The page: login, sessions, password.
 *
 * A session is a token of an account. The cookie has its name and its text, "NAME.TEXT": the name
 * is for ending it. The secret of forms is made of the text alone, so a server keeps no state and
 * several servers may share a store. The cookie is Secure, with the prefix that binds it to this
 * host, if the browser says that it sends the login over TLS; so this holds behind a proxy too.
 * Only that one counts then: the other one may be from a host beside this one.
 */
#include <openssl/crypto.h>

#include "api/token.h"
#include "base/clock.h"
#include "http/web/web.h"

#define SESSION_MS (30 * FW_DAY_MS)
#define SESSION_COOKIE "fw_session"
#define SESSION_SECURE "__Host-" SESSION_COOKIE
#define SESSION_PREFIX "browser-"
#define SESSIONS_MAX 20
#define SESSION_NAME_MAX (sizeof(SESSION_PREFIX) + 16)

/* ---- the cookie ------------------------------------------------------------------------------ */

static bool session_is_secure(struct request *r)
{
	const struct tokenless_head *head = http_tokenless_head(r);

	return head->tls || fw_str_istarts(head->origin, FW_STR("https://"));
}

static struct fw_str session_cookie(struct request *r)
{
	const char *text = MHD_lookup_connection_value(r->conn, MHD_COOKIE_KIND, SESSION_SECURE);

	if (!text && !session_is_secure(r))
		text = MHD_lookup_connection_value(r->conn, MHD_COOKIE_KIND, SESSION_COOKIE);
	return fw_str(text);
}

/* value "": removes it. */
static bool session_cookie_set(struct web *w, const char *value, bool secure)
{
	char cookie[300];
	bool ok;

	(void)fw_snprintf(cookie, sizeof(cookie), "%s=%s; Path=/; HttpOnly; SameSite=Lax; Max-Age=%d%s",
		secure ? SESSION_SECURE : SESSION_COOKIE, value, value[0] ? (int)(SESSION_MS / FW_SECOND_MS) : 0,
		secure ? "; Secure" : "");
	ok = MHD_add_response_header(w->r->response, MHD_HTTP_HEADER_SET_COOKIE, cookie) == MHD_YES;
	OPENSSL_cleanse(cookie, sizeof(cookie));
	return ok;
}

/* Respond with a redirect that sets the cookie; value "": removes both. */
static enum MHD_Result session_go(struct web *w, const char *value)
{
	bool secure = session_is_secure(w->r);
	enum MHD_Result ok = web_go(w, "");

	if (!ok || !w->r->response)
		return ok;
	if (!session_cookie_set(w, value, secure) || (!value[0] && !session_cookie_set(w, "", !secure)))
		return MHD_NO;
	return ok;
}

/* A session ends 30 days after its last use, and so does its cookie: the river sends it again. */
bool web_session_renew(struct web *w)
{
	char value[SESSION_NAME_MAX + FW_ACCOUNT_TOKEN_MAX + 1];
	bool ok;

	if (!w->r->response || !w->session.len || strcmp(w->r->route->path, "/") != 0 || web_is_part(w))
		return true;
	(void)fw_snprintf(value, sizeof(value), "%.*s.%.*s", FW_STR_ARG(w->session_name), FW_STR_ARG(w->session));
	ok = session_cookie_set(w, value, session_is_secure(w->r));
	OPENSSL_cleanse(value, sizeof(value));
	return ok;
}

static bool session_csrf_make(struct web *w)
{
	unsigned char hash[FW_TOKEN_HASH_BYTES] = {0};
	char text[FW_ACCOUNT_TOKEN_MAX + 8];

	(void)fw_snprintf(text, sizeof(text), "csrf %.*s", FW_STR_ARG(w->session));
	if (!fw_token_hash(fw_str(text), hash))
		return false;
	fw_hex_write(w->csrf, hash, WEB_CSRF_BYTES);
	return true;
}

bool web_authorize(struct web *w, enum MHD_Result *ok)
{
	struct fw_str text, name = fw_str_split(session_cookie(w->r), '.', &text);
	int rc = FW_ENOTFOUND;

	if (text.len && text.len < FW_ACCOUNT_TOKEN_MAX && name.len < SESSION_NAME_MAX &&
		fw_str_starts(name, FW_STR(SESSION_PREFIX)))
		rc = fw_account_token_find(
			w->r->store, text, FW_ACCOUNT_TOKEN_SESSION, w->now_ms, &w->arena, &w->account, &w->err);
	if (!rc && !fw_str_eq(w->account.token_name, name)) /* the cookie of no session */
		rc = FW_ENOTFOUND;
	if (!rc) {
		w->session = text;
		w->session_name = name;
		if (session_csrf_make(w))
			return true;
		rc = FW_ENOMEM;
	}
	if (rc == FW_ENOTFOUND || rc == FW_EINVAL)
		*ok = web_login_page(w, 0, NULL);
	else
		*ok = web_store_failed(w, rc);
	return false;
}

/* ---- the login's page ------------------------------------------------------------------------ */

static int session_account_seen(void *ctx, const struct fw_account *account)
{
	(void)account;
	*(bool *)ctx = true;
	return 1;
}

static void session_login_form(struct web *w)
{
	struct fw_str name, next = http_form_get(&w->form, "next");

	if (!web_text(w, "name", FW_ACCOUNT_NAME_MAX, &name))
		name = FW_STR_NONE;
	web_put(w, "<form class=\"login\" method=\"post\" action=\"login\">\n");
	web_put(w, "<input type=\"hidden\" name=\"next\" value=\"");
	if (next.p && web_next_fits(next))
		web_put(w, "%t", next);
	else if (strcmp(w->r->route->path, "/") == 0)
		web_view_put(w, &w->view);
	else if (!w->r->route->body_max && w->r->route->web != web_login_again)
		web_put(w, "%s", w->r->route->path + 1);
	web_put(w,
		"\">\n<label>Name <input name=\"name\" value=\"%t\" required autocomplete=\"username\" "
		"autocapitalize=\"none\" spellcheck=\"false\"%s></label>\n"
		"<label>Password <input name=\"password\" type=\"password\" required "
		"autocomplete=\"current-password\"%s></label>\n"
		"<button class=\"main\">Log in</button>\n</form>\n",
		name, name.len ? "" : " autofocus", name.len ? " autofocus" : "");
}

enum MHD_Result web_login_page(struct web *w, unsigned status, const char *words)
{
	bool there = false;
	int rc = fw_account_list(w->r->store, session_account_seen, &there, &w->err);

	if (!status) /* the page itself is what was asked for; anything else is refused */
		status = strcmp(w->r->route->path, "/") == 0 && !web_is_part(w) ? MHD_HTTP_OK : MHD_HTTP_UNAUTHORIZED;
	fw_buf_reset(&w->out);
	if (web_is_part(w))
		return web_fail(w, MHD_HTTP_UNAUTHORIZED, "You are logged out.");
	web_plain_begin(w, "Log in \xe2\x80\x93 feedwheel");
	web_put(w, "<h1>Log in</h1>\n");
	if (words)
		web_put(w, "<p class=\"trouble\" role=\"alert\">%s</p>\n", words);
	if (rc == FW_EINVAL)
		web_put(w, "<p>Accounts need an SQL store: SQLite, PostgreSQL or MariaDB.</p>\n");
	else if (rc < 0)
		return web_store_failed(w, rc);
	else if (!there)
		web_put(w,
			"<p>There is no account yet. On the server, run</p>\n"
			"<pre>feedwheel user add NAME</pre>\n<p>and load this page again.</p>\n");
	else
		session_login_form(w);
	web_plain_end(w);
	return web_send(w, status);
}

/* ---- login ----------------------------------------------------------------------------------- */

struct session_old {
	size_t n;
	int64_t used_ms; /* of the least recently used one */
	char name[FW_ACCOUNT_NAME_MAX + 1];
};

static int session_old_add(void *ctx, const struct fw_account_token *t)
{
	struct session_old *o = ctx;
	int64_t used_ms = FW_MAX(t->used_ms, t->created_ms);

	if (t->kind == FW_ACCOUNT_TOKEN_SESSION && (!o->n++ || used_ms < o->used_ms)) {
		o->used_ms = used_ms;
		(void)fw_str_copy(o->name, sizeof(o->name), t->name);
	}
	return 0;
}

static enum MHD_Result session_begin(struct web *w, int64_t account_id)
{
	char text[FW_ACCOUNT_TOKEN_MAX] = "", name[SESSION_NAME_MAX],
	     value[SESSION_NAME_MAX + FW_ACCOUNT_TOKEN_MAX + 1];
	struct session_old old = {.n = 0};
	enum MHD_Result ok;
	int rc = fw_account_token_list(w->r->store, account_id, session_old_add, &old, &w->err);

	if (!rc && old.n >= SESSIONS_MAX)
		rc = fw_account_token_remove(
			w->r->store, account_id, FW_ACCOUNT_TOKEN_SESSION, fw_str(old.name), &w->err);
	if (rc && rc != FW_ENOTFOUND)
		return web_store_failed(w, rc);
	(void)fw_snprintf(
		name, sizeof(name), SESSION_PREFIX "%012llx", (unsigned long long)http_id_random() & 0xffffffffffff);
	rc = fw_account_token_add(w->r->store, account_id, fw_str(name), FW_ACCOUNT_TOKEN_SESSION, w->now_ms,
		w->now_ms + SESSION_MS, text, &w->err);
	if (rc)
		return web_store_failed(w, rc);
	(void)fw_snprintf(value, sizeof(value), "%s.%s", name, text);
	ok = session_go(w, value);
	OPENSSL_cleanse(text, sizeof(text));
	OPENSSL_cleanse(value, sizeof(value));
	return ok;
}

/* With the gate taken. */
static enum MHD_Result session_login(struct web *w)
{
	int64_t id;
	int rc;

	rc = http_auth_login(w->r, http_form_get(&w->form, "name"), http_form_get(&w->form, "password"), &id, &w->err);
	if (!rc)
		return session_begin(w, id);
	if (rc == FW_ELIMIT)
		return http_web_refuse(w->r);
	if (rc != FW_ENOTFOUND)
		return web_store_failed(w, rc);
	return web_login_page(w, MHD_HTTP_UNAUTHORIZED, "The name or the password is wrong.");
}

/* Run a handler that checks a password: one at a time. */
static enum MHD_Result session_gated(struct web *w, enum MHD_Result (*run)(struct web *w))
{
	struct http_gate *gate = &w->r->thread->h->logins;
	enum MHD_Result ok;

	switch (http_gate_enter(gate, w->r)) {
	case GATE_LATER:
		return MHD_YES;
	case GATE_FULL:
		return web_fail(w, MHD_HTTP_SERVICE_UNAVAILABLE, "Too many logins wait. Try again in a moment.");
	case GATE_TAKEN:
		break;
	}
	ok = run(w);
	http_gate_leave(gate);
	return ok;
}

enum MHD_Result web_login(struct web *w)
{
	return session_gated(w, session_login);
}

/* A page that was loaded again after a login that failed. */
enum MHD_Result web_login_again(struct web *w)
{
	return web_go(w, "");
}

enum MHD_Result web_logout(struct web *w)
{
	int rc = fw_account_token_remove(
		w->r->store, w->account.id, FW_ACCOUNT_TOKEN_SESSION, w->session_name, &w->err);

	return rc && rc != FW_ENOTFOUND ? web_store_failed(w, rc) :
					  web_noting(w, session_go(w, ""), WEB_NOTICE_LOGGED_OUT, 0);
}

/* ---- the password ---------------------------------------------------------------------------- */

/*
 * With the gate taken. Whoever knew the old password, or this session, is logged out: this browser
 * gets a new session. Apps have tokens that can be revoked.
 */
static enum MHD_Result session_password_set(struct web *w)
{
	struct fw_str new = http_form_get(&w->form, "new");
	int64_t id;
	int rc;

	if (!fw_str_eq(new, http_form_get(&w->form, "again")))
		return web_fail(w, MHD_HTTP_BAD_REQUEST, "The two new passwords differ.");
	rc = http_auth_login(w->r, w->account.name, http_form_get(&w->form, "old"), &id, &w->err);
	if (rc == FW_ELIMIT)
		return http_web_refuse(w->r);
	if (rc == FW_ENOTFOUND)
		return web_fail(w, MHD_HTTP_FORBIDDEN, "The old password is wrong.");
	rc = rc ? rc : fw_account_set_password(w->r->store, w->account.name, new, &w->err);
	return rc ? web_store_failed(w, rc) : web_noting(w, session_begin(w, id), WEB_NOTICE_PASSWORD, 0);
}

enum MHD_Result web_password(struct web *w)
{
	return session_gated(w, session_password_set);
}
