/* SPDX-License-Identifier: ISC */
/* The page: HTML, and what all its pages share. */
#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/url.h"
#include "base/xml.h"
#include "http/web/web.h"

/* ---- text ------------------------------------------------------------------------------------ */

void web_put(struct web *w, const char *format, ...)
{
	const char *from = format, *at;
	char count[FW_COUNT_MAX];
	va_list ap;

	va_start(ap, format);
	while ((at = strchr(from, '%')) != NULL) {
		fw_buf_add(&w->out, from, (size_t)(at - from));
		from = at + 2;
		switch (at[1]) {
		case 't':
			fw_xml_escape(&w->out, va_arg(ap, struct fw_str), FW_XML_KEEP);
			break;
		case 's':
			fw_xml_escape(&w->out, fw_str(va_arg(ap, const char *)), FW_XML_KEEP);
			break;
		case 'q':
			fw_url_escape(&w->out, va_arg(ap, struct fw_str));
			break;
		case 'n':
			fw_buf_adds(&w->out, fw_count_text(count, va_arg(ap, int64_t)));
			break;
		case 'd':
			fw_buf_addf(&w->out, "%lld", (long long)va_arg(ap, int64_t));
			break;
		default:
			assert(at[1] == '%');
			fw_buf_addc(&w->out, '%');
		}
	}
	va_end(ap);
	fw_buf_adds(&w->out, from);
}

static const char *const HTML_KIND[] = {[WEB_UNREAD] = "unread", [WEB_ALL] = "all", [WEB_STARRED] = "starred"};

void web_view_put(struct web *w, const struct web_view *v)
{
	web_put(w, "?view=%s", HTML_KIND[v->kind]);
	if (v->feed_id)
		web_put(w, "&amp;feed=%d", v->feed_id);
	if (v->folder.p)
		web_put(w, "&amp;folder=%q", v->folder);
	if (v->label.p)
		web_put(w, "&amp;label=%q", v->label);
	if (v->search.p)
		web_put(w, "&amp;q=%q", v->search);
	if (v->oldest_first)
		web_put(w, "&amp;order=old");
	if (v->from_id)
		web_put(w, "&amp;from=%d", v->from_id);
}

/* sentence: with the words that it needs there. */
static void html_time_put(struct web *w, int64_t at_ms, bool sentence)
{
	static const char MONTH[][4] = {
		"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
	int64_t ago_ms = w->now_ms - at_ms;
	const char *ago = sentence ? " ago" : "", *on = sentence ? "on " : "";
	char stamp[FW_RFC3339_MAX];
	struct fw_civil then, now;

	fw_civil_from_ms(at_ms, &then);
	fw_civil_from_ms(w->now_ms, &now);
	web_put(w, "<time datetime=\"%s\">", fw_rfc3339(stamp, at_ms));
	if (ago_ms >= 0 && ago_ms < FW_MINUTE_MS)
		web_put(w, sentence ? "just now" : "now");
	else if (ago_ms >= 0 && ago_ms < FW_HOUR_MS)
		web_put(w, "%d min%s", (int64_t)(ago_ms / FW_MINUTE_MS), ago);
	else if (ago_ms >= 0 && ago_ms < FW_DAY_MS)
		web_put(w, "%d h%s", (int64_t)(ago_ms / FW_HOUR_MS), ago);
	else if (then.year == now.year)
		web_put(w, "%s%d %s", on, (int64_t)then.day, MONTH[then.month - 1]);
	else
		web_put(w, "%s%s", on, (stamp[10] = '\0', stamp));
	web_put(w, "</time>");
}

void web_time_put(struct web *w, int64_t at_ms)
{
	html_time_put(w, at_ms, false);
}

void web_ago_put(struct web *w, int64_t at_ms)
{
	html_time_put(w, at_ms, true);
}

void web_whole_time_put(struct web *w, int64_t at_ms)
{
	char stamp[FW_RFC3339_MAX];

	fw_rfc3339(stamp, at_ms);
	web_put(w, "<time class=\"whole\" datetime=\"%s\">", stamp);
	stamp[16] = '\0';
	stamp[10] = ' ';
	web_put(w, "%s</time>", stamp);
}

void web_count_put(struct web *w, int64_t n, const char *what)
{
	web_put(w, "%n %s%s", n, what, n == 1 ? "" : "s");
}

void web_form_fields(struct web *w, const char *next)
{
	web_put(w, "<input type=\"hidden\" name=\"csrf\" value=\"%s\"><input type=\"hidden\" name=\"next\" value=\"",
		w->csrf);
	if (next)
		web_put(w, "%s", next);
	else
		web_view_put(w, &w->view);
	web_put(w, "\">");
}

/* ---- documents ------------------------------------------------------------------------------- */

/* The shapes of the buttons, drawn on 20 x 20. */
static const struct {
	const char *name, *path;
} HTML_ICON[] = {
	{"star", "M10 2.6l2.3 4.7 5.2.7-3.8 3.6.9 5.2-4.6-2.5-4.6 2.5.9-5.2L2.5 8l5.2-.7z"},
	{"check", "M4 10.5l4 4 8-9"},
	{"out", "M8 4H4v12h12v-4M11 4h5v5M16 4l-7 7"},
	{"menu", "M3 5h14M3 10h14M3 15h14"},
	{"close", "M5 5l10 10M15 5L5 15"},
	{"dot", "M10 7a3 3 0 1 0 .01 0z"},
	{"all", "M4 6h12M4 10h12M4 14h8"},
	{"up", "M6 16V4M2.5 7.5L6 4l3.500 3.500M11 6h6M11 10h4M11 14h2"},
	{"down", "M6 4v12M2.5 12.500L6 16l3.500-3.500M11 6h2M11 10h4M11 14h6"},
	{"tag", "M3 3h6.500l7.500 7.500-6.500 6.500L3 9.500zM6.500 6.500h0"},
	{"gear", "M4 6h8M16 6h0M4 14h2M10 14h6M14 4v4M8 12v4"},
};

static void html_icons_put(struct web *w)
{
	web_put(w, "<svg hidden>");
	for (size_t i = 0; i < FW_N(HTML_ICON); i++)
		web_put(w, "<symbol id=\"i-%s\" viewBox=\"0 0 20 20\"><path d=\"%s\"/></symbol>", HTML_ICON[i].name,
			HTML_ICON[i].path);
	web_put(w, "</svg>\n");
}

static void html_head_put(struct web *w, struct fw_str title)
{
	char style[24], script[24];

	(void)fw_snprintf(style, sizeof(style), "%016llx", (unsigned long long)web_static_hash(web_style_text));
	(void)fw_snprintf(script, sizeof(script), "%016llx", (unsigned long long)web_static_hash(web_script_text));
	web_put(w,
		"<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>%t</title>\n"
		"<meta name=\"viewport\" content=\"width=device-width\">\n"
		"<meta name=\"color-scheme\" content=\"light dark\">\n"
		"<link rel=\"icon\" href=\"data:image/svg+xml,%%3Csvg xmlns='http://www.w3.org/2000/svg' "
		"viewBox='0 0 20 20'%%3E%%3Ccircle cx='10' cy='10' r='7.5' fill='none' stroke='%%231d5c88' "
		"stroke-width='3'/%%3E%%3Ccircle cx='10' cy='10' r='2.5' fill='%%231d5c88'/%%3E%%3C/svg%%3E\">\n"
		"<link rel=\"stylesheet\" href=\"%sreader.css?v=%s\">\n"
		"<script type=\"module\" src=\"%sreader.js?v=%s\"></script>\n</head>\n",
		title, w->up ? w->up : "", style, w->up ? w->up : "", script);
}

void web_plain_begin(struct web *w, const char *title)
{
	html_head_put(w, fw_str(title));
	web_put(w, "<body class=\"plain\">\n<main>\n<p class=\"brand\">feedwheel</p>\n");
}

void web_plain_end(struct web *w)
{
	web_put(w, "</main>\n");
	web_notice_put(w);
	web_put(w, "</body>\n</html>\n");
}

void web_frame_begin(struct web *w, struct fw_str title)
{
	html_head_put(w, title);
	web_put(w, "<body data-csrf=\"%s\">\n", w->csrf);
	html_icons_put(w);
	web_put(w,
		"<a class=\"skip\" href=\"#main\">Skip to the content</a>\n<nav id=\"column\" aria-label=\"Feeds\">\n");
	if (web_column_put(w))
		web_put(w, "<p class=\"trouble\">The feeds cannot be read now.</p>\n");
	web_put(w, "</nav>\n<main id=\"main\" tabindex=\"-1\">\n");
}

void web_bar_put(struct web *w, const char *title)
{
	web_put(w,
		"<header class=\"bar\"><a class=\"icon menu\" href=\"#column\" aria-label=\"Show the feeds\"><svg>"
		"<use href=\"#i-menu\"/></svg></a><h1>%s</h1></header>\n<div class=\"sheet\">\n",
		title);
}

void web_frame_end(struct web *w)
{
	web_put(w, "</main>\n");
	web_notice_put(w);
	web_put(w, "</body>\n</html>\n");
}
