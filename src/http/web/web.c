/* SPDX-License-Identifier: ISC */
/* The page: the entrance of its routes, parameters, responses. */
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/url.h"
#include "base/utf8.h"
#include "http/web/web.h"

#define ARENA_BYTES ((size_t)64 << 20)

/*
 * What a page may load. Players are shown when they are clicked. A content's pictures and sounds
 * come from anywhere, and no request names the page to others: Referrer-Policy. That is not
 * no-referrer, with which browsers send "Origin: null" with the page's own forms.
 */
#define POLICY                                                                                          \
	"default-src 'none'; script-src 'self'; style-src 'self'; img-src http: https: data:; "         \
	"media-src http: https:; frame-src https://www.youtube-nocookie.com https://player.vimeo.com; " \
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

/* The policy of a picture that is opened alone: its style is within it. */
#define PICTURE_POLICY "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"

/* The policy of a feed's icon, which is a stranger's. */
#define ICON_POLICY "default-src 'none'; sandbox; frame-ancestors 'none'"
#define ICON_CACHE "private, max-age=86400"

static const char *const WEB_HEADER[][2] = {
	{"Referrer-Policy", "same-origin"},
	{"X-Content-Type-Options", "nosniff"},
	{"Cross-Origin-Opener-Policy", "same-origin"},
	{"Cross-Origin-Resource-Policy", "same-origin"},
};

/* ---- responses ------------------------------------------------------------------------------- */

static enum MHD_Result web_respond(struct web *w, unsigned status, struct MHD_Response *m)
{
	enum MHD_Result (*web)(struct web *) = w->r->route ? w->r->route->web : NULL;
	bool icon = web == web_icon && status == MHD_HTTP_OK;
	const char *policy = web == web_picture ? PICTURE_POLICY : icon ? ICON_POLICY : POLICY;
	bool ok = m && MHD_add_response_header(m, "Content-Security-Policy", policy) &&
		MHD_add_response_header(m, "Cache-Control", icon ? ICON_CACHE : "private, no-store") &&
		web_notice_clear(w, m);

	for (size_t i = 0; ok && i < FW_N(WEB_HEADER); i++)
		ok = MHD_add_response_header(m, WEB_HEADER[i][0], WEB_HEADER[i][1]);
	if (ok)
		return http_respond(w->r, status, m);
	if (m)
		MHD_destroy_response(m);
	return MHD_NO;
}

enum MHD_Result web_send_as(struct web *w, unsigned status, const char *type)
{
	return web_respond(w, status, http_response(w->r, status, type, &w->out));
}

enum MHD_Result web_send(struct web *w, unsigned status)
{
	return web_send_as(w, status, "text/html; charset=UTF-8");
}

bool web_next_fits(struct fw_str next)
{
	size_t n = 0;

	while (n < next.len && (fw_is_alpha((unsigned char)next.p[n])))
		n++;
	return (n == next.len || next.p[n] == '?') && web_text_fits(next, WEB_TEXT_MAX);
}

static enum MHD_Result web_go_to(struct web *w, struct fw_str to)
{
	struct fw_buf location = FW_BUF_INIT(0);
	struct MHD_Response *m;
	enum MHD_Result ok;

	fw_buf_adds(&location, "./");
	fw_buf_addstr(&location, to);
	fw_buf_reset(&w->out);
	m = http_response(w->r, MHD_HTTP_SEE_OTHER, "text/html; charset=UTF-8", &w->out);
	if (m && (location.rc || !MHD_add_response_header(m, MHD_HTTP_HEADER_LOCATION, location.p))) {
		MHD_destroy_response(m);
		m = NULL;
	}
	ok = m ? web_respond(w, MHD_HTTP_SEE_OTHER, m) : MHD_NO;
	fw_buf_finish(&location);
	return ok;
}

enum MHD_Result web_go(struct web *w, const char *to)
{
	struct fw_str next = http_form_get(&w->form, "next");

	return web_go_to(w, next.p && web_next_fits(next) ? next : fw_str(to));
}

enum MHD_Result web_go_view(struct web *w, const struct web_view *v)
{
	char to[80];

	(void)fw_snprintf(
		to, sizeof(to), "?view=%s&feed=%lld", v->kind == WEB_ALL ? "all" : "unread", (long long)v->feed_id);
	return web_go_to(w, fw_str(to));
}

static const char *web_fail_title(unsigned status)
{
	switch (status) {
	case MHD_HTTP_NOT_FOUND:
		return "Not found";
	case MHD_HTTP_FORBIDDEN:
		return "Not allowed";
	case MHD_HTTP_TOO_MANY_REQUESTS:
	case MHD_HTTP_SERVICE_UNAVAILABLE:
		return "Not now";
	default:
		return "This could not be done";
	}
}

enum MHD_Result web_fail(struct web *w, unsigned status, const char *fmt, ...)
{
	struct fw_buf words = FW_BUF_INIT(2000);
	va_list ap;

	va_start(ap, fmt);
	fw_buf_vaddf(&words, fmt, ap);
	va_end(ap);
	fw_buf_reset(&w->out);
	if (web_is_part(w)) {
		web_put(w, "<p class=\"trouble\">%t</p>\n", fw_buf_str(&words));
	} else {
		web_plain_begin(w, "feedwheel");
		web_put(w,
			"<h1>%s</h1>\n<p class=\"trouble\">%t</p>\n<p><a href=\"./%s\">Back to the entries</a></p>\n",
			web_fail_title(status), fw_buf_str(&words), w->up ? w->up : "");
		web_plain_end(w);
	}
	fw_buf_finish(&words);
	atomic_fetch_add_explicit(&w->r->thread->refused_n, 1, memory_order_relaxed);
	return web_send(w, status);
}

/* The store's messages begin with its address, which clients must not see. */
static const char *web_error_text(const struct web *w)
{
	const char *words = strstr(w->err.text, ": ");

	return words ? words + 2 : w->err.text;
}

enum MHD_Result web_store_failed(struct web *w, int rc)
{
	if (rc == FW_ENOTFOUND || rc == FW_EINVAL || rc == FW_ELIMIT)
		return web_fail(
			w, rc == FW_ENOTFOUND ? MHD_HTTP_NOT_FOUND : MHD_HTTP_BAD_REQUEST, "%s", web_error_text(w));
	fw_warn("%s %s: %s", w->r->route->method, w->r->route->path, w->err.text);
	http_store_note(w->r, rc, &w->err);
	if (w->r->limit.over)
		return web_fail(w, MHD_HTTP_SERVICE_UNAVAILABLE,
			"This takes too long. Ask for less, such as fewer words or a shorter time.");
	return web_fail(w, MHD_HTTP_SERVICE_UNAVAILABLE, "The store is unavailable. Try again in a moment.");
}

/* ---- parameters ------------------------------------------------------------------------------ */

bool web_is_part(const struct web *w)
{
	return http_form_get(&w->form, "part").len;
}

int64_t web_number(const struct web *w, const char *name)
{
	struct fw_str s = http_form_get(&w->form, name);
	int64_t v;

	return s.len && fw_is_digit((unsigned char)s.p[0]) && fw_str_int(s, &v) && v > 0 ? v : 0;
}

bool web_text_fits(struct fw_str s, size_t max)
{
	return s.len <= max && !fw_url_has_control(s) && fw_utf8_valid(s.p ? s.p : "", s.len) == s.len;
}

bool web_text(struct web *w, const char *name, size_t max, struct fw_str *out)
{
	*out = fw_str_trim(http_form_get(&w->form, name));
	return web_text_fits(*out, max);
}

static void web_view_read(struct web *w)
{
	struct fw_str kind = http_form_get(&w->form, "view");
	struct web_view *v = &w->view;

	v->kind = fw_str_eq(kind, FW_STR("all"))   ? WEB_ALL :
		fw_str_eq(kind, FW_STR("starred")) ? WEB_STARRED :
						     WEB_UNREAD;
	if (!web_text(w, "label", FW_LABEL_NAME_MAX, &v->label) || !v->label.len)
		v->label = FW_STR_NONE;
	else if (!fw_str_eq(kind, FW_STR("unread")))
		v->kind = WEB_ALL;
	v->feed_id = web_number(w, "feed");
	v->from_id = web_number(w, "from");
	v->oldest_first = fw_str_eq(http_form_get(&w->form, "order"), FW_STR("old"));
	if (!web_text(w, "folder", FW_LABEL_NAME_MAX, &v->folder))
		v->folder = FW_STR_NONE;
	if (!web_text(w, "q", 1000, &v->search) || !v->search.len)
		v->search = FW_STR_NONE;
}

static enum MHD_Result web_query_add(void *ctx, enum MHD_ValueKind kind, const char *name, const char *value)
{
	(void)kind;
	http_form_add(ctx, fw_str(name), value ? fw_str(value) : FW_STR(""));
	return MHD_YES;
}

/* A body's fields come first, so that a query cannot set them. False: responded. */
static bool web_form_read(struct web *w, enum MHD_Result *ok)
{
	struct fw_str type = w->r->tokenless_head.type, body = fw_buf_str(&w->r->body);
	int rc = fw_str_istarts(type, FW_STR("multipart/form-data")) ?
		http_form_read_parts(&w->arena, type, body, HTTP_PARAMS_MAX, &w->form) :
		http_form_read(&w->arena, body, HTTP_PARAMS_MAX, &w->form);

	if (rc) {
		*ok = web_fail(w, MHD_HTTP_BAD_REQUEST, "The form cannot be read.");
		return false;
	}
	(void)MHD_get_connection_values(w->r->conn, MHD_GET_ARGUMENT_KIND, web_query_add, &w->form);
	web_view_read(w);
	return true;
}

/* ---- requests -------------------------------------------------------------------------------- */

/*
 * Is it from a page of another site? The scheme is not compared, because a proxy may speak TLS for
 * us; whoever can be in the way without TLS still lacks the form's secret.
 */
static bool web_is_foreign(struct request *r)
{
	const struct tokenless_head *head = http_tokenless_head(r);
	const char *authority = head->origin.len ? fw_str_find(head->origin, FW_STR("://")) : NULL;

	if (head->site.p)
		return !fw_str_ieq(head->site, FW_STR("same-origin")) && !fw_str_ieq(head->site, FW_STR("none"));
	if (!head->origin.p)
		return false;
	return !authority ||
		!fw_str_ieq(fw_str_sub(head->origin, (size_t)(authority - head->origin.p) + 3, head->origin.len),
			head->host);
}

enum auth_verdict http_web_may(struct request *r)
{
	if (!r->route->body_max)
		return AUTH_OK; /* what reads may come from a link of another site */
	if (web_is_foreign(r))
		return AUTH_ORIGIN;
	if (r->route->web == web_login)
		return http_auth_is_limited(r) ? AUTH_LIMITED : AUTH_OK;
	return MHD_lookup_connection_value(r->conn, MHD_HEADER_KIND, MHD_HTTP_HEADER_COOKIE) ? AUTH_OK : AUTH_MISSING;
}

enum MHD_Result http_web_refuse(struct request *r)
{
	struct web w = {.r = r, .now_ms = http_now_ms(r)};

	switch (r->verdict) {
	case AUTH_ORIGIN:
		return web_fail(&w, MHD_HTTP_FORBIDDEN, "The request came from a page of another site.");
	case AUTH_LIMITED:
		return web_fail(&w, MHD_HTTP_TOO_MANY_REQUESTS,
			"Too many wrong passwords came from your network. Try again in %lld seconds.",
			(long long)r->retry_after_s);
	default:
		return web_fail(&w, MHD_HTTP_UNAUTHORIZED, "Log in first.");
	}
}

enum MHD_Result http_web_unknown(struct request *r, const char *path)
{
	struct web w = {.r = r, .now_ms = http_now_ms(r)};
	enum MHD_Result ok;

	fw_arena_init(&w.arena, ARENA_BYTES);
	w.up = "";
	for (path = strchr(path + 1, '/'); path && w.up; path = strchr(path + 1, '/'))
		w.up = fw_arena_printf(&w.arena, "../%s", w.up);
	ok = web_fail(&w, MHD_HTTP_NOT_FOUND, "There is no page at this address.");
	fw_arena_finish(&w.arena);
	return ok;
}

static bool web_csrf_fits(struct web *w, enum MHD_Result *ok)
{
	if (!w->r->route->body_max || fw_str_eq(http_form_get(&w->form, "csrf"), fw_str(w->csrf)))
		return true;
	*ok = web_fail(w, MHD_HTTP_FORBIDDEN, "The form is of another session: load the page again.");
	return false;
}

static bool web_admin_fits(struct web *w, enum MHD_Result *ok)
{
	if (!w->r->route->web_admin || w->account.admin)
		return true;
	*ok = web_fail(
		w, MHD_HTTP_FORBIDDEN, "Only the operator's accounts may see this (feedwheel user add --admin).");
	return false;
}

enum MHD_Result http_web(struct request *r)
{
	struct web w = {.r = r, .now_ms = http_now_ms(r), .out = FW_BUF_INIT(0)};
	enum MHD_Result ok = MHD_NO;

	if (r->route->web != web_login)
		atomic_fetch_add_explicit(&r->thread->h->reader_n[READER_PAGE], 1, memory_order_relaxed);
	fw_arena_init(&w.arena, ARENA_BYTES);
	if (web_form_read(&w, &ok)) {
		if (r->route->web == web_login)
			ok = web_login(&w);
		else if (web_authorize(&w, &ok) && http_account_may(r, w.account.id, &ok) && web_csrf_fits(&w, &ok) &&
			web_admin_fits(&w, &ok))
			ok = r->route->web(&w);
	}
	if (ok && !web_session_renew(&w))
		ok = MHD_NO;
	fw_buf_finish(&w.out);
	fw_arena_finish(&w.arena);
	return ok;
}
