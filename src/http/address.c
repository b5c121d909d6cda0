/* SPDX-License-Identifier: ISC */
#include "http/address.h"

#include "api/account.h"
#include "base/clock.h"
#include "base/url.h"
#include "base/banned.h"

#define ADDRESS_FETCH_MS (15 * FW_SECOND_MS)

static int address_fetch(struct address *q)
{
	struct fw_config c = *q->r->thread->h->config;

	c.total_timeout_ms = FW_MIN(c.total_timeout_ms, FW_MAX(q->until_ms - fw_mono_ms(), (int64_t)1));
	return fw_fetch_url(&c, q->url, q->user, q->pass, &q->answer, q->err);
}

/* Pass the gate of fetches, and fetch. */
static enum address_state address_look(struct address *q)
{
	switch (http_gate_enter(&q->r->thread->h->discoveries, q->r)) {
	case GATE_LATER:
		return ADDRESS_LATER;
	case GATE_FULL:
		return ADDRESS_BUSY;
	case GATE_TAKEN:
		break;
	}
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
	http_gate_leave(&q->r->thread->h->discoveries);
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
