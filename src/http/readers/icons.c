/* SPDX-License-Identifier: ISC */
#include <jansson.h>
#include <openssl/evp.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/url.h"
#include "http/readers/icons.h"

#define FAVICON "{\"favicon\":"

/* The favicon of a feed's extra members, as fw_out_feed_extra() writes it; nothing else is read. */
static struct fw_str icon_favicon(struct fw_arena *a, struct fw_str extra)
{
	json_t *text = fw_str_starts(extra, FW_STR(FAVICON)) ?
		json_loadb(extra.p + sizeof(FAVICON) - 1, extra.len - sizeof(FAVICON) + 1,
			JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK, NULL) :
		NULL;
	struct fw_str url = json_is_string(text) ? fw_arena_str(a, fw_str(json_string_value(text))) : FW_STR_NONE;

	json_decref(text);
	return url;
}

struct fw_str http_icon_named(struct fw_arena *a, const struct fw_feed *f)
{
	struct fw_str favicon = icon_favicon(a, f->extra);

	return fw_is_http(favicon) ? favicon : fw_is_http(f->icon) ? fw_arena_str(a, f->icon) : FW_STR_NONE;
}

/* /favicon.ico of the site. */
static struct fw_str icon_of_site(struct fw_arena *a, struct fw_str home, struct fw_str url)
{
	struct fw_buf b = FW_BUF_INIT(0);
	struct fw_str icon = FW_STR_NONE;

	if (!fw_url_origin(fw_is_http(home) ? home : url, &b))
		fw_buf_adds(&b, "/favicon.ico");
	if (b.len && !b.rc)
		icon = fw_arena_str(a, fw_buf_str(&b));
	fw_buf_finish(&b);
	return icon;
}

struct icon_address http_icon_address(struct fw_arena *a, struct fw_str named, struct fw_str home, struct fw_str url)
{
	struct icon_address at = {.url = icon_of_site(a, home, url)};
	struct fw_str clean, user, pass; /* a login in the address is not sent */

	if (!named.p || fw_url_clean(a, named, &clean, &user, &pass, NULL) || fw_str_eq(clean, at.url))
		return at;
	return (struct icon_address){.url = clean, .spare = at.url};
}

static void icon_want(struct request *r, struct fw_str url)
{
	fw_icons_want(r->thread->h->icons, url);
}

/* ---- of many feeds --------------------------------------------------------------------------- */

/* The feeds by the addresses of their icons. */
struct icons_reading {
	struct reader_feed **feed;
	size_t n;
	int64_t now_ms;
	struct fw_str *url; /* the different ones; of each: */
	size_t *first;      /* its first feed */
	bool *fresh;
	size_t url_n;
};

static int icons_by_url(const void *x, const void *y)
{
	return fw_str_order(
		(*(struct reader_feed *const *)x)->icon_at.url, (*(struct reader_feed *const *)y)->icon_at.url);
}

static int icons_url_find(const void *x, const void *y)
{
	return fw_str_order(*(const struct fw_str *)x, *(const struct fw_str *)y);
}

/* The feeds that have an address, or a second one, in its order; and the different addresses. */
static int icons_sort(struct reader *rd, const struct reader_feeds *f, bool second, struct icons_reading *r)
{
	r->feed = fw_arena_calloc(&rd->p.arena, f->n + 1, sizeof(*r->feed));
	r->url = fw_arena_calloc(&rd->p.arena, f->n + 1, sizeof(*r->url));
	r->first = fw_arena_calloc(&rd->p.arena, f->n + 1, sizeof(*r->first));
	r->fresh = fw_arena_calloc(&rd->p.arena, f->n + 1, sizeof(*r->fresh));
	if (!r->feed || !r->url || !r->first || !r->fresh)
		return fw_no_memory(&rd->err);
	for (size_t i = 0; i < f->n; i++) {
		struct reader_feed *feed = &f->feed[i];

		if (!second)
			feed->icon_at = http_icon_address(&rd->p.arena, feed->icon, feed->home, feed->url);
		if (feed->icon_at.url.p && feed->icon_at.second == second)
			r->feed[r->n++] = feed;
	}
	qsort(r->feed, r->n, sizeof(*r->feed), icons_by_url);
	for (size_t i = 0; i < r->n; i++) {
		if (r->url_n && fw_str_eq(r->url[r->url_n - 1], r->feed[i]->icon_at.url))
			continue;
		r->first[r->url_n] = i;
		r->url[r->url_n++] = r->feed[i]->icon_at.url;
	}
	return rd->p.arena.failed ? fw_no_memory(&rd->err) : 0;
}

static int icons_found(void *ctx, const struct fw_icon *icon)
{
	struct icons_reading *r = ctx;
	const struct fw_str *url = bsearch(&icon->url, r->url, r->url_n, sizeof(*r->url), icons_url_find);

	if (!url) /* another address with the same hash */
		return 0;
	r->fresh[url - r->url] = !fw_icon_is_stale(icon, r->now_ms);
	for (size_t i = r->first[url - r->url]; i < r->n; i++) {
		struct icon_address *at = &r->feed[i]->icon_at;

		if (!fw_str_eq(at->url, *url))
			break;
		if (icon->type.p)
			r->feed[i]->icon_id = icon->id;
		else if (at->spare.p)
			*at = (struct icon_address){.url = at->spare, .second = true};
	}
	return 0;
}

static int icons_pass(struct reader *rd, const struct reader_feeds *f, bool second)
{
	struct icons_reading r = {.now_ms = http_now_ms(rd->r)};
	int rc = icons_sort(rd, f, second, &r);

	if (!rc && r.url_n)
		rc = fw_icon_find(rd->r->store, r.url, r.url_n, false, icons_found, &r, &rd->err);
	for (size_t i = 0; !rc && i < r.url_n; i++) {
		if (!r.fresh[i])
			icon_want(rd->r, r.url[i]);
	}
	return rc;
}

int http_icons_read(struct reader *rd, const struct reader_feeds *f)
{
	int rc = icons_pass(rd, f, false);

	return rc ? rc : icons_pass(rd, f, true);
}

/* ---- one ------------------------------------------------------------------------------------- */

struct icon_getting {
	struct fw_arena *a;
	struct fw_icon *out;
};

static int icon_got(void *ctx, const struct fw_icon *icon)
{
	const struct icon_getting *k = ctx;

	*k->out = *icon;
	k->out->url = FW_STR_NONE;
	k->out->type = icon->type.p ? fw_arena_str(k->a, icon->type) : FW_STR_NONE;
	k->out->bytes = icon->type.p ? fw_arena_str(k->a, icon->bytes) : FW_STR_NONE;
	return k->a->failed ? FW_ENOMEM : 0;
}

int http_icon_get(
	struct request *r, struct fw_arena *a, const struct icon_address *at, struct fw_icon *out, struct fw_err *err)
{
	struct icon_getting k = {a, out};
	int rc;

	*out = (struct fw_icon){.id = 0};
	if (!at->url.p)
		return a->failed ? fw_no_memory(err) : 0;
	rc = fw_icon_find(r->store, &at->url, 1, true, icon_got, &k, err);
	if (rc)
		return rc == FW_ENOMEM ? fw_no_memory(err) : rc;
	if (!out->id || fw_icon_is_stale(out, http_now_ms(r)))
		icon_want(r, at->url);
	if (out->id && !out->type.p && at->spare.p)
		return http_icon_get(r, a, &(struct icon_address){.url = at->spare}, out, err);
	return 0;
}

void http_icon_data(struct fw_buf *out, const struct fw_icon *icon)
{
	size_t n = 4 * ((icon->bytes.len + 2) / 3);
	char *to;

	assert(icon->bytes.len <= FW_ICON_MAX_BYTES);
	fw_buf_reset(out);
	fw_buf_addf(out, "%.*s;base64,", FW_STR_ARG(icon->type));
	to = fw_buf_room(out, n + 1);
	if (!to)
		return;
	(void)EVP_EncodeBlock((unsigned char *)to, (const unsigned char *)icon->bytes.p, (int)icon->bytes.len);
	out->len += n;
}
