/* SPDX-License-Identifier: ISC */
/*
 * The page: what a form did, in words on the page that follows. The redirect carries a number of
 * the list below and a count in a cookie, which that page removes: so no address can make the page
 * say something, and nobody's text is in it.
 */
#include <assert.h>

#include "http/web/web.h"

#define NOTICE_COOKIE "fw_notice"

static const struct {
	const char *one, *many; /* many NULL: one fits every count */
} NOTICE[] = {
	[WEB_NOTICE_SUBSCRIBED] = {"You are subscribed now.", NULL},
	[WEB_NOTICE_HAD] = {"You were subscribed already.", NULL},
	[WEB_NOTICE_COLLECTED] = {"%n feed is added.", "%n feeds are added."},
	[WEB_NOTICE_SAVED] = {"The changes are saved.", NULL},
	[WEB_NOTICE_UNSUBSCRIBED] = {"You are no longer subscribed.", NULL},
	[WEB_NOTICE_FOLDER] = {"The folder is renamed.", NULL},
	[WEB_NOTICE_PAUSED] = {"The feed is paused for all accounts.", NULL},
	[WEB_NOTICE_RESUMED] = {"The feed is fetched again.", NULL},
	[WEB_NOTICE_FETCHED] = {"The feed will be fetched in a moment.", NULL},
	[WEB_NOTICE_REVOKED] = {"That browser or app is logged out.", NULL},
	[WEB_NOTICE_LOGGED_OUT] = {"You are logged out.", NULL},
	[WEB_NOTICE_PASSWORD] = {"The password is changed.", NULL},
	[WEB_NOTICE_READ] = {"Marked as read.", NULL},
	[WEB_NOTICE_UNREAD] = {"Kept unread.", NULL},
	[WEB_NOTICE_STAR] = {"The star is changed.", NULL},
	[WEB_NOTICE_LABEL] = {"The labels are changed.", NULL},
};

static bool notice_cookie_set(struct MHD_Response *m, const char *value, int seconds)
{
	char cookie[120];

	(void)fw_snprintf(cookie, sizeof(cookie), NOTICE_COOKIE "=%s; Path=/; HttpOnly; SameSite=Lax; Max-Age=%d",
		value, seconds);
	return MHD_add_response_header(m, MHD_HTTP_HEADER_SET_COOKIE, cookie) == MHD_YES;
}

enum MHD_Result web_noting(struct web *w, enum MHD_Result ok, enum web_notice what, int64_t n)
{
	char value[48];

	(void)fw_snprintf(value, sizeof(value), "%d.%lld", (int)what, (long long)n);
	if (!ok || !w->r->response)
		return ok;
	return notice_cookie_set(w->r->response, value, 60) ? MHD_YES : MHD_NO;
}

enum MHD_Result web_done(struct web *w, enum web_notice what, const char *to)
{
	return web_noting(w, web_go(w, to), what, 0);
}

void web_notice_put(struct web *w)
{
	struct fw_str count,
		what = fw_str_split(
			fw_str(MHD_lookup_connection_value(w->r->conn, MHD_COOKIE_KIND, NOTICE_COOKIE)), '.', &count);
	int64_t i, n;

	web_put(w, "<p id=\"status\" role=\"status\">");
	if (fw_str_int(what, &i) && fw_str_int(count, &n) && i >= 0 && i < (int64_t)FW_N(NOTICE) && n >= 0) {
		web_put(w, n != 1 && NOTICE[i].many ? NOTICE[i].many : NOTICE[i].one, n);
		w->noticed = true;
	}
	web_put(w, "</p>\n");
}

bool web_notice_clear(const struct web *w, struct MHD_Response *m)
{
	return !w->noticed || notice_cookie_set(m, "", 0);
}
