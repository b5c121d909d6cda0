/* SPDX-License-Identifier: ISC */
/*
 * The page: a reader of an account's entries in a browser, at "/". What its files share.
 *
 * Every route but the style and the script has one entrance, http_web(). It finds whose session the
 * request's cookie names, reads the parameters of query and body, and checks that a POST comes from
 * a page of ours; then it calls the route's handler. A handler sees the store through the functions
 * of api/account.h, with the id of that account: so it reaches nothing of others. What only the
 * operator may see has .web_admin in its row.
 *
 * All HTML is written by web_put(), which escapes. The only HTML that it does not escape is the
 * content of an entry, which is sanitised (docs/html.md) and which web_content_add() rewrites. The
 * policy that each response carries (CSP) allows no script and no style in the HTML.
 *
 * Paths are one level deep and all links relative, so the page works below any path of a proxy.
 */
#ifndef FW_HTTP_WEB_WEB_H
#define FW_HTTP_WEB_WEB_H

#include "api/account.h"
#include "api/view.h"
#include "http/server/form.h"
#include "http/server/http.h"

#define WEB_CSRF_BYTES 16
#define WEB_TEXT_MAX 8192

/* Which entries are shown: the query of "/". */
enum web_kind { WEB_UNREAD, WEB_ALL, WEB_STARRED };
struct web_view {
	enum web_kind kind;
	int64_t feed_id;      /* 0: all */
	struct fw_str folder; /* absent: all; "": feeds in none */
	struct fw_str label;  /* absent: any or none */
	struct fw_str search; /* absent: none */
	bool oldest_first;
	int64_t from_id; /* the last entry of the page before; 0: the first page */
};

/* A subscription, as the column and the river name it. */
struct web_feed {
	int64_t id, unread_n;
	struct fw_str title, folder;
	bool failing;
	bool waiting, has_entries; /* waiting: for its first document */
};

/* What a form did: notice.c has the words. */
enum web_notice {
	WEB_NOTICE_SUBSCRIBED,
	WEB_NOTICE_HAD,
	WEB_NOTICE_COLLECTED, /* with a count */
	WEB_NOTICE_SAVED,
	WEB_NOTICE_UNSUBSCRIBED,
	WEB_NOTICE_FOLDER,
	WEB_NOTICE_PAUSED,
	WEB_NOTICE_RESUMED,
	WEB_NOTICE_FETCHED,
	WEB_NOTICE_REVOKED,
	WEB_NOTICE_LOGGED_OUT,
	WEB_NOTICE_PASSWORD,
	WEB_NOTICE_READ,
	WEB_NOTICE_UNREAD,
	WEB_NOTICE_STAR,
	WEB_NOTICE_LABEL,
};

struct web {
	struct request *r;
	struct fw_account account;
	struct fw_str session; /* the token's text; absent: no session */
	struct fw_str session_name;
	char csrf[2 * WEB_CSRF_BYTES + 1];
	struct http_form form; /* of the query and the body */
	struct fw_arena arena;
	struct fw_buf out;
	struct web_view view;
	struct {
		struct web_feed *feed; /* by id */
		size_t n, cap;
		int64_t unread_n, failing_n;
		bool read;
	} feeds;
	struct {
		struct fw_label *label;
		size_t n, cap;
		bool read;
	} labels;
	int64_t now_ms;
	const char *up; /* "../" for each folder of an unknown path; NULL: none */
	bool noticed;   /* the page shows a notice */
	struct fw_err err;
};

/* ---- web.c: parameters and responses --------------------------------------------------------- */

/* Is this a page without a frame, for the script (part=1)? */
bool web_is_part(const struct web *w);
/* A number above 0; absent, or none: 0. */
int64_t web_number(const struct web *w, const char *name);
/*
 * Text for the store: UTF-8 without control characters, of at most max bytes, trimmed. False: it is
 * not.
 */
FW_MUST_CHECK bool web_text(struct web *w, const char *name, size_t max, struct fw_str *out);
FW_MUST_CHECK bool web_text_fits(struct fw_str s, size_t max);
/* Send w->out. */
enum MHD_Result web_send(struct web *w, unsigned status);
enum MHD_Result web_send_as(struct web *w, unsigned status, const char *type);
/* 303 to a place of ours: the parameter next if it is one, else to. */
enum MHD_Result web_go(struct web *w, const char *to);
enum MHD_Result web_go_view(struct web *w, const struct web_view *v);
/* web_go() to a page that says what was done. */
enum MHD_Result web_done(struct web *w, enum web_notice what, const char *to);
/* An error in words: a page, or one line for the script. */
FW_PRINTF(3, 4) enum MHD_Result web_fail(struct web *w, unsigned status, const char *fmt, ...);
enum MHD_Result web_store_failed(struct web *w, int rc);
/* Is this an address of ours to return to: "", "?..." or "name?..."? */
bool web_next_fits(struct fw_str next);

/* ---- html.c ---------------------------------------------------------------------------------- */

/*
 * Append HTML. In the format %t is an fw_str and %s a C string, both escaped; %q an fw_str escaped
 * for a URL's query; %d an int64_t; %n one with separators; %% a percent sign.
 */
void web_put(struct web *w, const char *format, ...);
/* The part of a page before its content, and after it. title: of the document. */
void web_frame_begin(struct web *w, struct fw_str title);
void web_frame_end(struct web *w);
/* The same without column: login, errors. */
void web_plain_begin(struct web *w, const char *title);
void web_plain_end(struct web *w);
/* The bar of a page other than the river; "</div>" ends what follows. */
void web_bar_put(struct web *w, const char *title);
/* The hidden fields of each form. next: where to return to; NULL: the view. */
void web_form_fields(struct web *w, const char *next);
/* "?..." of a view: its parameters. */
void web_view_put(struct web *w, const struct web_view *v);
/* "now", "5 min", "3 h", "12 Nov" ... with the time for the script. */
void web_time_put(struct web *w, int64_t at_ms);
/* The same within a sentence: "just now", "5 min ago", "on 12 Nov". */
void web_ago_put(struct web *w, int64_t at_ms);
/* Day and time, which the script writes as this person does. */
void web_whole_time_put(struct web *w, int64_t at_ms);
/* "1 feed", "1,204 feeds"; what: without its s. */
void web_count_put(struct web *w, int64_t n, const char *what);

/* ---- notice.c -------------------------------------------------------------------------------- */

/* Let the page that a redirect leads to say what was done. ok: the redirect's. */
enum MHD_Result web_noting(struct web *w, enum MHD_Result ok, enum web_notice what, int64_t n);
/* The line of states, with the notice if there is one; the response then removes it. */
void web_notice_put(struct web *w);
FW_MUST_CHECK bool web_notice_clear(const struct web *w, struct MHD_Response *m);

/* ---- session.c ------------------------------------------------------------------------------- */

/* After the route: the page of the river sends the cookie again. False: no memory. */
FW_MUST_CHECK bool web_session_renew(struct web *w);
/* Set w->account and w->session. False: responded. */
FW_MUST_CHECK bool web_authorize(struct web *w, enum MHD_Result *ok);
/* The login's page. */
enum MHD_Result web_login_page(struct web *w, unsigned status, const char *words);
enum MHD_Result web_login(struct web *w);
enum MHD_Result web_login_again(struct web *w);
enum MHD_Result web_logout(struct web *w);
enum MHD_Result web_password(struct web *w);

/* ---- river.c, column.c, entry_page.c, icon_page.c -------------------------------------------- */

enum MHD_Result web_river(struct web *w);
/* The entries of the view. FW_ENOTFOUND: there is no such label. */
FW_MUST_CHECK int web_view_stream(struct web *w, struct fw_stream *s);
/* The column of folders and feeds. Errors: those of the store. */
FW_MUST_CHECK int web_column_put(struct web *w);
/* Set w->feeds, unless that was done: all, or feed_id alone, if it is subscribed. */
FW_MUST_CHECK int web_feeds_read(struct web *w, int64_t feed_id);
/* NULL: it is not subscribed. */
const struct web_feed *web_feed_find(const struct web *w, int64_t id);
/* Is a feed in the folder `of` shown with this one? With those below it; "" has only its own. */
bool web_folder_has(struct fw_str folder, struct fw_str of);
enum MHD_Result web_entry(struct web *w);
enum MHD_Result web_icon(struct web *w);
/*
 * Append sanitised HTML, with the changes that a page needs. extra: the entry's; heading: the level
 * of its highest heading.
 */
void web_content_rewrite(
	struct fw_buf *out, struct fw_str html, struct fw_str extra, int heading, struct fw_str own_host);
/* Append the beginning of its text, of max bytes, as HTML without tags. */
void web_content_text(struct fw_buf *out, struct fw_str html, size_t max);

/* ---- label.c --------------------------------------------------------------------------------- */

/* Set w->labels, unless that was done. */
FW_MUST_CHECK int web_labels_read(struct web *w);
/* The column's list of those that entries have. w->feeds and w->labels are set. */
void web_labels_put(struct web *w);
/* Those of an entry, and the form for another. w->labels is set. */
void web_entry_labels_put(struct web *w, const struct fw_stream_entry *se);
enum MHD_Result web_label(struct web *w);

/* ---- state.c --------------------------------------------------------------------------------- */

enum MHD_Result web_read(struct web *w);
enum MHD_Result web_star(struct web *w);
enum MHD_Result web_mark_all(struct web *w);

/* ---- feeds_page.c, add.c: subscriptions ------------------------------------------------------ */

enum MHD_Result web_feeds(struct web *w);
enum MHD_Result web_subscription(struct web *w);
enum MHD_Result web_unsubscribe(struct web *w);
enum MHD_Result web_folder(struct web *w);
enum MHD_Result web_instead(struct web *w);
enum MHD_Result web_poll(struct web *w);
enum MHD_Result web_add(struct web *w);
enum MHD_Result web_preview(struct web *w);
enum MHD_Result web_subscribe(struct web *w);
/*
 * Offer the feeds that the operator collects and the account lacks, if there are any; and subscribe
 * to them.
 */
FW_MUST_CHECK int web_offer_put(struct web *w);
enum MHD_Result web_collected(struct web *w);
/* Why a feed is not fetched, what helps, and when it was and will be fetched. */
void web_feed_health_put(struct web *w, const struct fw_feed *f);
/* The names of folders, for fields with list=folders. */
void web_folders_put(struct web *w);
/* The parameters title and folder. False: responded. */
FW_MUST_CHECK bool web_title_and_folder(struct web *w, struct fw_subscription *set, enum MHD_Result *ok);

/* ---- account.c, admin.c ---------------------------------------------------------------------- */

enum MHD_Result web_account(struct web *w);
enum MHD_Result web_export(struct web *w);
enum MHD_Result web_import(struct web *w);
enum MHD_Result web_revoke(struct web *w);
enum MHD_Result web_token(struct web *w);
enum MHD_Result web_runs(struct web *w);
enum MHD_Result web_picture(struct web *w);
enum MHD_Result web_orders(struct web *w);

/* ---- assets.c -------------------------------------------------------------------------------- */

extern const char web_script_text[], web_style_text[];
enum MHD_Result http_web_script(struct request *r);
enum MHD_Result http_web_style(struct request *r);
/* The hash in their addresses. */
uint64_t web_static_hash(const char *text);

#endif
