/* SPDX-License-Identifier: ISC */
#include "http/subscriptions.h"

#include "api/opml.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/url.h"
#include "base/banned.h"

struct fw_str subscription_title(const struct fw_subscription *s)
{
	return s->title.len             ? s->title :
		s->feed->user_title.len ? s->feed->user_title :
		s->feed->title.len      ? s->feed->title :
					  s->feed->url;
}

/* Make room for one more of n items: twice as many as before. NULL: no memory. */
static void *subscriptions_grow(struct fw_arena *a, void *item, size_t n, size_t *cap, size_t size)
{
	size_t old = *cap;

	if (n < old)
		return item;
	*cap = old ? 2 * old : 256;
	return fw_arena_grow(a, item, old * size, *cap * size);
}

/* ---- import ---------------------------------------------------------------------------------- */

struct subscriptions_reading {
	struct fw_arena *a;
	struct fw_feed_new *feed;
	size_t n, cap, refused_n;
};

static int subscriptions_outline(void *ctx, const struct fw_opml_outline *o)
{
	struct subscriptions_reading *x = ctx;
	struct fw_feed_new f = {.id = 0};
	int rc = fw_url_clean(x->a, o->url, &f.url, &f.username, &f.password, NULL);

	x->refused_n += rc == FW_EINVAL;
	if (rc)
		return rc == FW_EINVAL ? 0 : rc;
	x->feed = subscriptions_grow(x->a, x->feed, x->n, &x->cap, sizeof(f));
	if (!x->feed)
		return FW_ENOMEM;
	/* a title equal to the URL is no title: OPML requires one */
	if (!fw_str_eq(o->title, o->url))
		f.user_title = fw_arena_str(x->a, fw_str_trim(o->title));
	f.folder = fw_arena_str(x->a, o->folder);
	f.home_page_url = fw_arena_str(x->a, o->home_page_url);
	x->feed[x->n++] = f;
	return x->a->failed ? FW_ENOMEM : 0;
}

int subscriptions_import(const struct subscriptions *s, struct fw_str opml, size_t *n, size_t *refused_n)
{
	struct subscriptions_reading x = {.a = s->arena};
	size_t added = 0;
	int rc = fw_opml_read(opml.p ? opml.p : "", opml.len, subscriptions_outline, NULL, &x, s->err);

	*refused_n = x.refused_n;
	if (!rc && x.n)
		rc = fw_account_import(s->store, s->account_id, x.feed, x.n, s->now_ms, &added, s->err);
	for (size_t i = 0; !rc && i < x.n; i++)
		*refused_n += !x.feed[i].id;
	*n = x.n + x.refused_n - *refused_n;
	return rc;
}

/* ---- export ---------------------------------------------------------------------------------- */

struct subscriptions_writing {
	struct fw_arena *a;
	struct fw_opml_item *item;
	size_t n, cap;
};

static int subscriptions_item(void *ctx, const struct fw_subscription *s)
{
	struct subscriptions_writing *x = ctx;

	x->item = subscriptions_grow(x->a, x->item, x->n, &x->cap, sizeof(*x->item));
	if (!x->item)
		return FW_ENOMEM;
	x->item[x->n] = (struct fw_opml_item){.folder = fw_arena_str(x->a, s->folder),
		.title = fw_arena_str(x->a, subscription_title(s)),
		.url = fw_arena_str(x->a, s->feed->url),
		.home = fw_arena_str(x->a, s->feed->home_page_url),
		.at = x->n};
	x->n++;
	return x->a->failed ? FW_ENOMEM : 0;
}

int subscriptions_export(const struct subscriptions *s, struct fw_buf *out)
{
	struct subscriptions_writing x = {.a = s->arena};
	struct fw_opml_writer w;
	int rc = fw_account_subscription_list(s->store, s->account_id, 0, false, subscriptions_item, &x, s->err);

	if (rc)
		return rc;
	fw_opml_sort(x.item, x.n);
	fw_opml_begin(&w, out, s->now_ms);
	for (size_t i = 0; i < x.n; i++)
		fw_opml_add(&w, &x.item[i]);
	fw_opml_end(&w);
	return 0;
}
