/* SPDX-License-Identifier: ISC */
/* The page: the icon of a feed that the account subscribes. */
#include "http/readers/icons.h"
#include "http/web/web.h"

struct web_icon_of {
	struct fw_arena *a;
	struct icon_address at;
};

static int web_icon_feed(void *ctx, const struct fw_subscription *s)
{
	struct web_icon_of *of = ctx;

	of->at = http_icon_address(of->a, http_icon_named(of->a, s->feed), s->feed->home_page_url, s->feed->url);
	return 0;
}

enum MHD_Result web_icon(struct web *w)
{
	struct web_icon_of of = {.a = &w->arena};
	struct fw_icon icon = {.id = 0};
	int rc = FW_ENOTFOUND;

	if (w->view.feed_id)
		rc = fw_account_subscription_list(
			w->r->store, w->account.id, w->view.feed_id, false, web_icon_feed, &of, &w->err);
	rc = rc ? rc : http_icon_get(w->r, &w->arena, &of.at, &icon, &w->err);
	if (rc && rc != FW_ENOTFOUND)
		return web_store_failed(w, rc);
	if (!icon.type.p)
		return web_fail(w, MHD_HTTP_NOT_FOUND, "This feed has no icon.");
	fw_buf_addstr(&w->out, icon.bytes);
	return web_send_as(w, MHD_HTTP_OK, icon.type.p);
}
