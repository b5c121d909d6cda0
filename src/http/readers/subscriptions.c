/* SPDX-License-Identifier: ISC */
#include "http/readers/subscriptions.h"

#include "api/opml.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/url.h"
#include "base/utf8.h"

#define SUBSCRIPTIONS_URL_SHOWN 200 /* bytes of an address that is refused */

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
	size_t n, cap;
	uint32_t *line; /* of each feed */
	size_t line_cap;
	struct subscriptions_imported *out;
};

static void subscriptions_refuse(struct subscriptions_reading *x, uint32_t line, struct fw_str url, const char *why)
{
	struct subscriptions_imported *out = x->out;

	out->refused_n++;
	if (out->told_n == SUBSCRIPTIONS_TOLD_MAX)
		return;
	url.len = fw_utf8_cut(url.p ? url.p : "", url.len, SUBSCRIPTIONS_URL_SHOWN);
	out->told[out->told_n].line = line;
	out->told[out->told_n++].words = fw_str(fw_arena_printf(x->a, "%.*s: %s", FW_STR_ARG(url), why));
}

static int subscriptions_outline(void *ctx, const struct fw_opml_outline *o)
{
	struct subscriptions_reading *x = ctx;
	struct fw_feed_new f = {.id = 0};
	struct fw_err err = {0};
	int rc;

	if (fw_str_ieq(o->type, FW_STR("vfolder"))) /* a search folder of Liferea, with this word as its address */
		return 0;
	rc = fw_url_clean(x->a, o->url, &f.url, &f.username, &f.password, &err);
	if (rc == FW_EINVAL)
		subscriptions_refuse(x, o->line, o->url, err.text);
	if (rc)
		return rc == FW_EINVAL ? 0 : rc;
	x->feed = subscriptions_grow(x->a, x->feed, x->n, &x->cap, sizeof(f));
	x->line = subscriptions_grow(x->a, x->line, x->n, &x->line_cap, sizeof(*x->line));
	if (!x->feed || !x->line)
		return FW_ENOMEM;
	/* a title equal to the URL is no title: OPML requires one */
	if (!fw_str_eq(o->title, o->url))
		f.user_title = fw_arena_str(x->a, fw_str_trim(o->title));
	f.folder = fw_arena_str(x->a, o->folder);
	f.home_page_url = fw_arena_str(x->a, o->home_page_url);
	x->line[x->n] = o->line;
	x->feed[x->n++] = f;
	return x->a->failed ? FW_ENOMEM : 0;
}

int subscriptions_import(const struct subscriptions *s, struct fw_str opml, struct subscriptions_imported *out)
{
	struct subscriptions_reading x = {.a = s->arena, .out = out};
	int rc;

	*out = (struct subscriptions_imported){.added_n = 0};
	rc = fw_opml_read(opml.p ? opml.p : "", opml.len, subscriptions_outline, NULL, &x, s->err);
	if (!rc && x.n)
		rc = fw_account_import(s->store, s->account_id, x.feed, x.n, s->now_ms, &out->added_n, s->err);
	for (size_t i = 0; !rc && i < x.n; i++) {
		if (x.feed[i].id)
			out->had_n++;
		else
			subscriptions_refuse(&x, x.line[i], x.feed[i].url,
				"it is subscribed here with another login, or without one");
	}
	out->had_n -= rc ? 0 : out->added_n;
	return rc ? rc : s->arena->failed ? FW_ENOMEM : 0;
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
