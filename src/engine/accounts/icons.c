/* SPDX-License-Identifier: ISC */
/*
 * The icon thread of a server: an event loop with one transfer at a time and a store connection of
 * its own. It uses the store from the loop: a blocked loop does no harm here.
 *
 *	fw_icons_want()   any thread: appends an address to the queue, and wakes the loop
 *	icons_on_wake()   takes the first address whose host may be asked, and starts its fetch
 *	icon_done()       stores the picture, or that there is none, and wakes the loop
 *
 * The queue is in memory only. What a crash loses, the next client asks for again.
 */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "api/icon.h"
#include "api/store_link.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/str.h"
#include "base/url.h"
#include "engine/settings.h"

#define TOTAL_MS (15 * FW_SECOND_MS) /* of one icon, with all redirects */
#define GAP_MS FW_SECOND_MS
#define HOSTS 256 /* two hosts with the same place wait for each other */
#define HOST_MAX 256

struct fw_icons {
	const struct fw_config *config;
	struct fw_net net;
	pthread_mutex_t lock; /* guards the members up to the next empty line */
	char *waiting[FW_ICONS_WAITING_MAX];
	size_t waiting_n;
	bool started, stopping;

	/* the thread's */
	pthread_t thread;
	uv_loop_t loop;
	uv_async_t wake;
	uv_timer_t pause;
	struct fw_fetcher *fetcher;
	struct fw_fetch fetch;
	char *url; /* in flight; NULL: none */
	struct store_link link;
	int64_t free_ms[HOSTS]; /* monotonic: when a host may be asked again */
	bool ending;
};

/* ---- pictures -------------------------------------------------------------------------------- */

/*
 * The media type of a picture, by its first bytes: PNG, JPEG, GIF, WebP, ICO. Absent: it is none of
 * these, whatever its server says of it. SVG is none: it may hold scripts.
 */
static struct fw_str icon_type(struct fw_str bytes)
{
	static const struct {
		struct fw_str begins, type;
	} KIND[] = {
		{FW_STR("\x89PNG\r\n\x1a\n"), FW_STR("image/png")},
		{FW_STR("\xff\xd8\xff"), FW_STR("image/jpeg")},
		{FW_STR("GIF87a"), FW_STR("image/gif")},
		{FW_STR("GIF89a"), FW_STR("image/gif")},
		{FW_STR("\0\0\1\0"), FW_STR("image/x-icon")},
	};

	for (size_t i = 0; i < FW_N(KIND); i++) {
		if (bytes.len > KIND[i].begins.len && fw_str_starts(bytes, KIND[i].begins))
			return KIND[i].type;
	}
	if (fw_str_starts(bytes, FW_STR("RIFF")) && fw_str_starts(fw_str_sub(bytes, 8, bytes.len), FW_STR("WEBP")))
		return FW_STR("image/webp");
	return FW_STR_NONE;
}

/* ---- hosts ----------------------------------------------------------------------------------- */

static int64_t *icons_host(struct fw_icons *w, struct fw_str url)
{
	char host[HOST_MAX];

	if (!fw_url_host(url, host, sizeof(host)))
		host[0] = 0;
	return &w->free_ms[fw_hash64(host, strlen(host)) % HOSTS];
}

static void icons_host_used(struct fw_icons *w, struct fw_str url)
{
	*icons_host(w, url) = fw_mono_ms() + FW_MAX(GAP_MS, w->config->host_gap_ms);
}

/* ---- the queue ------------------------------------------------------------------------------- */

/* Locked. */
static void icons_drop_waiting(struct fw_icons *w)
{
	while (w->waiting_n)
		free(w->waiting[--w->waiting_n]);
}

/* Take the first one whose host is free. NULL: none; *wait_ms: until one is, 0: none waits. */
static char *icons_take(struct fw_icons *w, int64_t *wait_ms)
{
	int64_t now_ms = fw_mono_ms();
	char *url = NULL;

	*wait_ms = 0;
	pthread_mutex_lock(&w->lock);
	for (size_t i = 0; i < w->waiting_n && !url; i++) {
		int64_t left_ms = *icons_host(w, fw_str(w->waiting[i])) - now_ms;

		if (left_ms <= 0) {
			url = w->waiting[i];
			w->waiting_n--;
			memmove(&w->waiting[i], &w->waiting[i + 1], (w->waiting_n - i) * sizeof(url));
		} else {
			*wait_ms = *wait_ms ? FW_MIN(*wait_ms, left_ms) : left_ms;
		}
	}
	pthread_mutex_unlock(&w->lock);
	return url;
}

/* ---- the store ------------------------------------------------------------------------------- */

/* The clients ask again. */
static void icons_drop_all(struct fw_icons *w)
{
	pthread_mutex_lock(&w->lock);
	icons_drop_waiting(w);
	pthread_mutex_unlock(&w->lock);
}

struct icon_look {
	int64_t now_ms;
	bool fresh;
};

static int icon_look(void *ctx, const struct fw_icon *icon)
{
	struct icon_look *l = ctx;

	l->fresh = !fw_icon_is_stale(icon, l->now_ms);
	return 0;
}

/* May have been fetched since it was wanted, by another server too. */
static bool icons_still_wants(struct fw_icons *w, const char *url)
{
	const struct fw_str s = fw_str(url);
	struct icon_look look = {.now_ms = fw_config_now_ms(w->config)};
	struct fw_err err = {0};
	struct fw_store *st = store_link_get(&w->link, &err);
	int rc = st ? fw_icon_find(st, &s, 1, false, icon_look, &look, &err) : err.rc;

	if (st)
		(void)store_link_after(&w->link, rc, &err);
	if (rc)
		icons_drop_all(w);
	return !rc && !look.fresh;
}

/* It may have been our network's fault. */
static bool icon_is_out_of_reach(enum fw_visit_kind kind)
{
	return kind == FW_VISIT_DNS || kind == FW_VISIT_CONNECT || kind == FW_VISIT_TIMEOUT;
}

static void icon_store(struct fw_icons *w, struct fw_str bytes, enum fw_visit_kind kind)
{
	int64_t early_ms = icon_is_out_of_reach(kind) ? FW_ICON_RETRY_MS - FW_ICON_REACH_MS : 0;
	struct fw_icon icon = {
		.url = fw_str(w->url), .type = icon_type(bytes), .tried_ms = fw_config_now_ms(w->config) - early_ms};
	struct fw_err err = {0};
	struct fw_store *st = store_link_get(&w->link, &err);
	int rc;

	if (!st)
		return;
	icon.failed = !icon.type.p;
	if (icon.type.p)
		icon.bytes = bytes;
	rc = fw_icon_put(st, &icon, &err);
	if (store_link_after(&w->link, rc, &err))
		icons_drop_all(w);
}

/* ---- fetches --------------------------------------------------------------------------------- */

/* The fetch of w->url has ended, or was not begun. */
static void icon_end(struct fw_icons *w)
{
	fw_fetch_finish(&w->fetch);
	free(w->url);
	w->url = NULL;
}

static void icon_done(struct fw_fetch *f)
{
	struct fw_icons *w = f->ctx;

	icons_host_used(w, f->url);
	icons_host_used(w, f->final_url);
	if (f->kind != FW_VISIT_LOCAL) /* our own failure says nothing about the icon */
		icon_store(w, f->kind == FW_VISIT_OK ? fw_buf_str(&f->body) : FW_STR_NONE, f->kind);
	if (f->kind != FW_VISIT_OK)
		fw_debug("icons: %s", f->err.text);
	icon_end(w);
	if (!w->ending)
		uv_async_send(&w->wake);
}

/* True: w->url is in flight. */
static bool icon_start(struct fw_icons *w)
{
	struct fw_err err;

	w->fetch = (struct fw_fetch){.url = fw_str(w->url), .done = icon_done, .ctx = w};
	if (icons_still_wants(w, w->url) && !fw_fetch_start(w->fetcher, &w->fetch, &err))
		return true;
	icon_end(w);
	return false;
}

static void icons_on_pause(uv_timer_t *t)
{
	struct fw_icons *w = t->data;

	uv_async_send(&w->wake);
}

/* The loop ends when its handles are closed. */
static void icons_end(struct fw_icons *w)
{
	w->ending = true;
	if (w->url)
		fw_fetch_cancel(&w->fetch);
	assert(!w->url);
	uv_close((uv_handle_t *)&w->wake, NULL);
	uv_close((uv_handle_t *)&w->pause, NULL);
	fw_fetcher_destroy(w->fetcher);
	w->fetcher = NULL;
}

static void icons_on_wake(uv_async_t *async)
{
	struct fw_icons *w = async->data;
	int64_t wait_ms = 0, idle_ms;
	bool stopping;

	pthread_mutex_lock(&w->lock);
	stopping = w->stopping;
	pthread_mutex_unlock(&w->lock);
	if (stopping) {
		icons_end(w);
		return;
	}
	while (!w->url && (w->url = icons_take(w, &wait_ms)) && !icon_start(w))
		;
	if (w->url)
		return;
	store_link_idle(&w->link);
	idle_ms = store_link_idle_ms(&w->link);
	if (idle_ms >= 0)
		wait_ms = FW_MAX(wait_ms ? FW_MIN(wait_ms, idle_ms) : idle_ms, INT64_C(1));
	if (wait_ms)
		uv_timer_start(&w->pause, icons_on_pause, (uint64_t)wait_ms, 0);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void *icons_thread_main(void *ctx)
{
	struct fw_icons *w = ctx;

	uv_run(&w->loop, UV_RUN_DEFAULT);
	store_link_close(&w->link);
	return NULL;
}

/* No thread runs it. */
static void icons_close_loop(struct fw_icons *w)
{
	icons_end(w);
	w->ending = false;
	uv_run(&w->loop, UV_RUN_DEFAULT);
	uv_loop_close(&w->loop);
}

static int icons_open_loop(struct fw_icons *w, struct fw_err *err)
{
	int rc = uv_loop_init(&w->loop);

	if (rc)
		return fw_err_set(err, FW_EIO, "cannot create the event loop: %s", uv_strerror(rc));
	rc = uv_async_init(&w->loop, &w->wake, icons_on_wake);
	if (rc) {
		uv_loop_close(&w->loop);
		return fw_err_set(err, FW_EIO, "cannot create the event loop: %s", uv_strerror(rc));
	}
	uv_timer_init(&w->loop, &w->pause);
	w->wake.data = w->pause.data = w;
	rc = fw_fetcher_create(&w->loop, &w->net.fetch, &w->fetcher, err);
	if (rc)
		icons_close_loop(w);
	return rc;
}

/* Locked. */
static int icons_start(struct fw_icons *w, struct fw_err *err)
{
	int rc = icons_open_loop(w, err);

	if (rc)
		return rc;
	rc = pthread_create(&w->thread, NULL, icons_thread_main, w);
	w->started = !rc;
	if (w->started)
		return 0;
	icons_close_loop(w);
	return fw_err_set(err, FW_EIO, "cannot start the thread: %s", strerror(rc));
}

/* Locked. */
static bool icons_waits(const struct fw_icons *w, struct fw_str url)
{
	for (size_t i = 0; i < w->waiting_n; i++) {
		if (fw_str_eq(fw_str(w->waiting[i]), url))
			return true;
	}
	return false;
}

void fw_icons_want(struct fw_icons *w, struct fw_str url)
{
	struct fw_err err;

	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	if (!w->stopping && w->waiting_n < FW_ICONS_WAITING_MAX && !icons_waits(w, url)) {
		w->waiting[w->waiting_n] = fw_str_dup(url);
		w->waiting_n += w->waiting[w->waiting_n] != NULL;
		if (!w->started && icons_start(w, &err)) {
			fw_warn("icons: %s; retrying with the next one", err.text);
			icons_drop_waiting(w);
		}
		if (w->started)
			uv_async_send(&w->wake);
	}
	pthread_mutex_unlock(&w->lock);
}

int fw_icons_open(const struct fw_config *c, struct fw_icons **out, struct fw_err *err)
{
	struct fw_icons *w;
	int rc;

	*out = NULL;
	if (!c->serve_discovery)
		return 0;
	w = calloc(1, sizeof(*w));
	if (!w)
		return fw_no_memory(err);
	w->config = c;
	w->link = (struct store_link){.config = c, .who = "icons", .waits = "icons are not fetched"};
	rc = fw_settings_net(c, 1, &w->net, err);
	if (rc) {
		free(w);
		return rc;
	}
	w->net.fetch.max_body_bytes = FW_ICON_MAX_BYTES;
	w->net.fetch.total_timeout_ms = FW_MIN(c->total_timeout_ms, TOTAL_MS);
	pthread_mutex_init(&w->lock, NULL);
	*out = w;
	return 0;
}

void fw_icons_stop(struct fw_icons *w)
{
	bool started;

	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->stopping = true;
	icons_drop_waiting(w);
	started = w->started;
	w->started = false;
	if (started)
		uv_async_send(&w->wake);
	pthread_mutex_unlock(&w->lock);
	if (!started)
		return;
	pthread_join(w->thread, NULL);
	uv_loop_close(&w->loop);
}

void fw_icons_close(struct fw_icons *w)
{
	if (!w)
		return;
	fw_icons_stop(w);
	pthread_mutex_destroy(&w->lock);
	free(w);
}
