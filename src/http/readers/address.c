/* SPDX-License-Identifier: ISC */
#include <assert.h>

#include "http/readers/address.h"

#include "api/account.h"
#include "api/fetch_url.h"
#include "base/clock.h"
#include "base/url.h"

#define ADDRESS_FETCH_MS (15 * FW_SECOND_MS)

static int address_fetch(struct address *q)
{
	struct fw_config c = *q->r->thread->h->config;
	const struct fetch_stop stop = {pool_is_closing, q->r->thread->h->pool};
	int rc;

	c.total_timeout_ms = FW_MIN(c.total_timeout_ms, FW_MAX(q->until_ms - fw_mono_ms(), (int64_t)1));
	rc = fw_fetch_url_until(&c, q->url, q->user, q->pass, &stop, &q->answer, q->err);
	return rc == FW_EGONE ? fw_err_set(q->err, rc, POOL_STOPPING) : rc;
}

/* ---- one discovery of each account ----------------------------------------------------------- */

/* The place of an account, or with 0 a free one; n: there is none. */
static size_t discovery_place(const int64_t *at, size_t n, int64_t account_id)
{
	size_t i = 0;

	while (i < n && at[i] != account_id)
		i++;
	return i;
}

void http_discovery_forget(struct request *r)
{
	struct http_discoveries *d = &r->thread->h->discoveries;

	if (!r->discovers_id)
		return;
	pthread_mutex_lock(&d->lock);
	d->waiting[discovery_place(d->waiting, DISCOVERIES_WAITING_MAX, r->discovers_id)] = 0;
	pthread_mutex_unlock(&d->lock);
	r->discovers_id = 0;
}

/*
 * An account has one address fetched at a time, and one request that waits for that; others of it
 * are refused. So a site that answers slowly holds up only who asked for it.
 */
static enum address_state discovery_enter(struct request *r)
{
	struct http_discoveries *d = &r->thread->h->discoveries;
	size_t at, free_at;
	enum address_state is = ADDRESS_LATER;

	assert(r->job.account_id);
	pthread_mutex_lock(&d->lock);
	at = discovery_place(d->running, DISCOVERIES_MAX, r->job.account_id);
	free_at = discovery_place(d->running, DISCOVERIES_MAX, 0);
	if (at == DISCOVERIES_MAX && free_at < DISCOVERIES_MAX) {
		d->running[free_at] = r->job.account_id;
		is = ADDRESS_READY;
	} else if (!r->discovers_id) {
		at = discovery_place(d->waiting, DISCOVERIES_WAITING_MAX, r->job.account_id);
		free_at = discovery_place(d->waiting, DISCOVERIES_WAITING_MAX, 0);
		if (at < DISCOVERIES_WAITING_MAX || free_at == DISCOVERIES_WAITING_MAX)
			is = ADDRESS_BUSY;
		else
			d->waiting[free_at] = r->discovers_id = r->job.account_id;
	}
	pthread_mutex_unlock(&d->lock);
	if (is == ADDRESS_READY) {
		http_discovery_forget(r);
		pool_job_fetches(r->thread->h->pool, &r->job, true);
	}
	r->retry = is == ADDRESS_LATER;
	return is;
}

static void discovery_leave(struct request *r)
{
	struct http_discoveries *d = &r->thread->h->discoveries;

	pool_job_fetches(r->thread->h->pool, &r->job, false);
	pthread_mutex_lock(&d->lock);
	d->running[discovery_place(d->running, DISCOVERIES_MAX, r->job.account_id)] = 0;
	pthread_mutex_unlock(&d->lock);
}

static enum address_state address_look(struct address *q)
{
	enum address_state is = discovery_enter(q->r);

	if (is != ADDRESS_READY)
		return is;
	q->fetched = true;
	q->until_ms = fw_mono_ms() + ADDRESS_FETCH_MS;
	q->rc = address_fetch(q);
	return q->rc ? ADDRESS_FAILED : ADDRESS_READY;
}

enum address_state address_open(struct address *q, struct fw_str typed, bool always)
{
	struct fw_feed known;

	if (fw_url_clean(q->arena, typed, &q->url, &q->user, &q->pass, q->err))
		return ADDRESS_INVALID;
	if (always)
		return address_look(q);
	q->rc = fw_store_feed_find(q->r->store, 0, q->url, q->arena, &known, q->err);
	if (q->rc == FW_ENOTFOUND)
		return q->r->thread->h->config->serve_discovery ? address_look(q) : ADDRESS_READY;
	return q->rc ? ADDRESS_FAILED : ADDRESS_READY;
}

void address_close(struct address *q)
{
	if (!q->fetched)
		return;
	fw_response_free(&q->answer);
	fw_response_free(&q->page);
	discovery_leave(q->r);
}

int address_follow(struct address *q)
{
	struct fw_str url, user, pass;

	if (q->answer.doc || !q->answer.feeds ||
		fw_url_clean(q->arena, q->answer.feeds->href, &url, &user, &pass, NULL))
		return 0;
	q->page = q->answer;
	q->answer = (struct fw_response){.doc = NULL};
	if (!fw_url_same_origin(q->url, url)) /* the login is for the page's origin */
		q->user = q->pass = FW_STR_NONE;
	q->url = url;
	return address_fetch(q);
}

int address_subscribe(struct address *q, int64_t account_id, struct fw_feed_new *f, int64_t now_ms)
{
	size_t added;
	int rc;

	f->url = q->url;
	if (!f->username.len) {
		f->username = q->user;
		f->password = q->pass;
	}
	rc = fw_account_import(q->r->store, account_id, f, 1, now_ms, &added, q->err);
	if (!rc && q->answer.doc)
		rc = fw_response_store(q->r->store, q->r->thread->h->config, &q->answer, f->id, q->err);
	return rc;
}
