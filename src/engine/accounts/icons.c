/* SPDX-License-Identifier: ISC */
/*
 * The icons of a server: a service with one transfer at a time.
 *
 *	fw_icons_want()    any thread: appends an address to the queue, and wakes the service
 *	icons_fetch_next() takes the first address whose host may be asked, and starts its fetch
 *	icon_done()        stores the picture, or that there is none, and wakes the service
 *
 * The queue is in memory only. What a crash loses, the next client asks for again.
 */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "api/icon.h"
#include "api/service.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/str.h"
#include "base/url.h"
#include "fetch/fetch.h"

#define TOTAL_MS (15 * FW_SECOND_MS) /* of one icon, with all redirects */
#define GAP_MS FW_SECOND_MS
#define HOSTS 256 /* two hosts with the same place wait for each other */
#define HOST_MAX 256

struct fw_icons {
	const struct fw_config *config;
	struct service *service;
	pthread_mutex_t lock; /* guards the members up to the next empty line */
	char *waiting[FW_ICONS_WAITING_MAX];
	size_t waiting_n;
	bool started, stopping;

	/* the service's */
	struct fw_fetch fetch;
	char *url;              /* in flight; NULL: none */
	int64_t free_ms[HOSTS]; /* monotonic: when a host may be asked again */
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

/* It may have been fetched since it was wanted, by another server too. */
static int icon_is_wanted(
	const struct fw_icons *w, struct fw_store *st, const char *url, bool *wanted, struct fw_err *err)
{
	const struct fw_str s = fw_str(url);
	struct icon_look look = {.now_ms = fw_config_now_ms(w->config)};
	int rc = fw_icon_find(st, &s, 1, false, icon_look, &look, err);

	*wanted = !rc && !look.fresh;
	return rc;
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
	struct fw_store *st = service_store(w->service);
	struct fw_err err = {0};

	if (!st)
		return; /* the clients ask again */
	icon.failed = !icon.type.p;
	if (icon.type.p)
		icon.bytes = bytes;
	service_used(w->service, fw_icon_put(st, &icon, &err), &err);
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
	service_wake(w->service);
}

/* Start the fetch of w->url, or end it. */
static int icon_start(struct fw_icons *w, struct fw_store *st, struct fw_err *err)
{
	bool wanted;
	int rc = icon_is_wanted(w, st, w->url, &wanted, err);
	struct fw_err why;

	w->fetch = (struct fw_fetch){.url = fw_str(w->url), .done = icon_done, .ctx = w};
	if (!wanted || fw_fetch_start(service_fetcher(w->service), &w->fetch, &why))
		icon_end(w);
	return rc;
}

static int icons_fetch_next(void *ctx, struct fw_store *st, struct fw_err *err)
{
	struct fw_icons *w = ctx;
	int64_t wait_ms = 0;
	int rc = 0;

	while (!rc && !w->url && (w->url = icons_take(w, &wait_ms)) != NULL)
		rc = icon_start(w, st, err);
	if (!w->url && wait_ms)
		service_in(w->service, 0, wait_ms);
	return rc;
}

static void icons_closing(void *ctx)
{
	struct fw_icons *w = ctx;

	if (w->url)
		fw_fetch_cancel(&w->fetch);
	assert(!w->url);
}

static void icons_limits(struct fw_fetch_config *f)
{
	f->max_body_bytes = FW_ICON_MAX_BYTES;
	f->total_timeout_ms = FW_MIN(f->total_timeout_ms, TOTAL_MS);
}

/* ---- any thread ------------------------------------------------------------------------------ */

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
		w->started = w->started || !service_start(w->service, &err);
		if (w->started) {
			service_wake(w->service);
		} else {
			fw_warn("icons: %s; retrying with the next one", err.text);
			icons_drop_waiting(w);
		}
	}
	pthread_mutex_unlock(&w->lock);
}

int fw_icons_open(const struct fw_config *c, struct fw_icons **out, struct fw_err *err)
{
	static const struct service_task TASK = {.run = icons_fetch_next};
	struct fw_icons *w;
	int rc;

	*out = NULL;
	if (!c->serve_discovery)
		return 0;
	w = calloc(1, sizeof(*w));
	if (!w)
		return fw_no_memory(err);
	w->config = c;
	rc = service_open(&(struct service_options){.config = c,
				  .who = "icons",
				  .waits = "icons are not fetched",
				  .task = &TASK,
				  .task_n = 1,
				  .transfers = 1,
				  .limits = icons_limits,
				  .closing = icons_closing,
				  .ctx = w},
		&w->service, err);
	if (rc) {
		free(w);
		return rc;
	}
	pthread_mutex_init(&w->lock, NULL);
	*out = w;
	return 0;
}

void fw_icons_stop(struct fw_icons *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->stopping = true;
	icons_drop_waiting(w);
	pthread_mutex_unlock(&w->lock);
	service_close(w->service);
	w->service = NULL;
}

void fw_icons_close(struct fw_icons *w)
{
	if (!w)
		return;
	fw_icons_stop(w);
	pthread_mutex_destroy(&w->lock);
	free(w);
}
