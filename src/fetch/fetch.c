/* SPDX-License-Identifier: ISC */
/*
 * A visit: prepare the URL, look the name up, send the request, classify the response, perhaps
 * follow a redirect. States of a visit in flight:
 *
 *   start_failed      failed inside fw_fetch_start() or fw_fetch_continue(), which never call
 *                     done(): the loop reports it
 *   further   further_wait_us is set: waits for fw_fetch_continue()
 *   waiting   wait.entry is set: waits for its host's addresses
 *   queued    slot waits: waits for a slot at its address (slots.c)
 *   in_multi  libcurl runs the request
 *   completed    has ended, waits to be delivered (completion.c)
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/cidr.h"
#include "base/clock.h"
#include "base/offset_clock.h"
#include "base/str.h"
#include "fetch/internal.h"

#include "base/banned.h" /* last */

#define TICK_MS 100

/* ---- requests and redirects ------------------------------------------------------------------ */

/* Note the lowest of the host's addresses: their order differs from lookup to lookup. */
static void note_lowest_address(struct fw_fetch_priv *v, const char *addrs)
{
	struct fw_str rest = fw_str(addrs ? addrs : v->wire_url.host), one;
	struct fw_fetch *f = v->f;
	unsigned char address[16], key[16];

	if (v->fr->c.proxy)
		return;
	while (rest.len) {
		one = fw_str_split(rest, ',', &rest);
		if (one.len && one.p[0] == '[')
			one = fw_str_sub(one, 1, one.len - 1);
		if (!fw_ip_parse(one, address))
			continue;
		fw_limiter_key(address, key);
		if (!f->resolved || memcmp(key, f->address, sizeof(key)) < 0)
			memcpy(f->address, key, sizeof(key));
		f->resolved = true;
	}
}

static int fetch_request_begin(struct fw_fetch_priv *v, const char *addrs)
{
	if (v->n == 0)
		note_lowest_address(v, addrs);
	v->f->name_age_ms = 0; /* the lookup succeeded */
	v->dns_us = addrs ? fw_mono_us() : 0;
	v->f->visit.dns_us = addrs ? FW_MAX(v->dns_us - v->start_us, 1) : 0;
	if (v->fr->limiter && fw_slot_acquire(v, addrs)) {
		fw_slot_release(v);
		fw_visit_no_memory(v->f);
		return FW_ENOMEM;
	}
	if (fw_limiter_is_waiting(&v->slot) || !fw_transfer_start(v, addrs))
		return 0;
	fw_visit_no_memory(v->f);
	return FW_ENOMEM;
}

static void on_name(struct fw_resolve_wait *w, enum fw_resolve_state state, const char *addrs)
{
	struct fw_fetch_priv *v = (struct fw_fetch_priv *)(void *)((char *)w - offsetof(struct fw_fetch_priv, wait));

	if (state != FW_RESOLVE_OK)
		fw_classify_name(v, state);
	if (state != FW_RESOLVE_OK || fetch_request_begin(v, addrs))
		fw_visit_end(v);
}

/*
 * Behind a proxy our sockets do not show where the request goes, so check what the URL itself
 * gives.
 */
static const char *proxy_refusal(struct fw_fetch_priv *v)
{
	const struct fw_wire_url *h = &v->wire_url;
	char port[8];
	struct addrinfo hint = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM}, *ai = NULL;
	const char *why = NULL;

	if (!h->literal)
		return fw_guard_port_ok(h->port) ? NULL : FW_GUARD_PORT;
	fw_snprintf(port, sizeof(port), "%d", h->port);
	if (getaddrinfo(h->host, port, &hint, &ai) == 0)
		why = fw_guard_refuses(v->fr->c.guard, ai->ai_addr);
	if (ai)
		freeaddrinfo(ai);
	return why;
}

/* Look the host up, and go on. Negative: as url_request(). */
static int url_look_up(struct fw_fetch_priv *v)
{
	const struct fw_wire_url *to = v->fr->c.proxy ? &v->fr->proxy : &v->wire_url;
	enum fw_resolve_state state;
	const char *addrs = NULL;

	v->begin_us = fw_mono_us();
	if (to->literal)
		return fetch_request_begin(v, NULL);
	state = fw_resolve(v->fr->resolver, to->host, &v->wait, &addrs);
	v->f->name_age_ms = (int64_t)v->wait.age_ms;
	if (state == FW_RESOLVE_WAIT)
		return 0;
	if (state == FW_RESOLVE_OK)
		return fetch_request_begin(v, addrs);
	fw_classify_name(v, state);
	return FW_ENET;
}

/* Request url[n]. Negative: it failed, the kind is set, and the caller must end the visit. */
static int url_request(struct fw_fetch_priv *v)
{
	struct fw_fetch *f = v->f;
	struct fw_err err = {0};
	const char *why;
	int rc;

	assert(v->n <= FW_REDIRECTS_MAX);
	fw_fetch_response_reset(&v->response);
	rc = fw_wire_url_prepare(&v->wire_url, fw_buf_str(&v->url[v->n]), &err);
	if (rc) {
		fw_classify_url(v, &err);
		return rc;
	}
	if (v->n == 0) {
		v->first = v->wire_url;
		v->first.wire = FW_BUF_INIT(0);
	}
	why = v->fr->c.proxy ? proxy_refusal(v) : NULL;
	if (why) {
		fw_classify_refused(v, why, v->wire_url.port);
		return FW_EBLOCKED;
	}
	if (!v->was_sent || !f->further || !f->further(f, fw_buf_str(&v->url[v->n])))
		return url_look_up(v);
	fw_slot_release(v);
	v->further_wait_us = fw_mono_us();
	return 0;
}

/*
 * Follow a redirect: url[n + 1] becomes its target. False: not followed, and the caller must end
 * the visit.
 */
static bool redirect_follow(struct fw_fetch_priv *v)
{
	struct fw_fetch *f = v->f;
	struct fw_str location = fw_fetch_response_header(&v->response, FW_H_LOCATION);
	bool was_https = v->wire_url.https;
	struct fw_buf *to;
	int rc;

	if (!location.p)
		return false;
	if (v->n >= v->fr->c.max_redirects) {
		fw_visit_set_outcome(f, FW_VISIT_REDIRECT, "redirect failed: more than %u redirects (max_redirects)",
			v->fr->c.max_redirects);
		return false;
	}
	to = &v->url[v->n + 1];
	fw_buf_reset(to);
	rc = fw_redirect_target(fw_buf_str(&v->url[v->n]), location, to);
	if (rc) {
		if (rc == FW_ENOMEM)
			fw_visit_no_memory(f);
		fw_visit_set_outcome(f, FW_VISIT_REDIRECT, "redirect failed: the target is not a valid URL");
		return false;
	}
	for (uint32_t i = 0; i <= v->n; i++) {
		if (fw_str_eq(fw_buf_str(&v->url[i]), fw_buf_str(to))) {
			fw_visit_set_outcome(f, FW_VISIT_REDIRECT, "redirect loop");
			return false;
		}
	}
	v->n++;
	v->chain = v->chain && fw_redirect_permanent(v->response.status);
	if (v->chain)
		v->permanent_n = v->n;
	if ((f->username.p || f->post.p) && was_https && fw_str_istarts(fw_buf_str(to), FW_STR("http:"))) {
		fw_visit_set_outcome(f, FW_VISIT_REDIRECT, "redirect from https to http refused: %s",
			f->post.p ? "the request body may be secret" : "the feed has a password");
		return false;
	}
	return url_request(v) == 0;
}

void fw_visit_responded(struct fw_fetch_priv *v, CURLcode rc)
{
	struct fw_fetch_response *r = &v->response;
	/* a complete response without a document, however the transfer ended */
	bool is_complete = r->headers_done && r->status / 100 != 2;

	if (v->is_repeat) {
		fw_transfer_stop(v);
		v->is_fresh = true;
		if (url_request(v))
			fw_visit_end(v);
		return;
	}
	if (r->limit == FW_ENOMEM)
		fw_visit_no_memory(v->f);
	else if (r->limit)
		fw_visit_set_outcome(v->f, FW_VISIT_LIMIT, "%s", r->limit_text);
	else if (rc != CURLE_OK && !is_complete)
		fw_classify_failure(v, rc);
	fw_transfer_stop(v);
	if (v->f->kind == FW_VISIT_NONE && !v->f->no_redirects &&
		(v->f->post.p ? fw_redirect_repeats(r->status) : fw_redirect_status(r->status)) && redirect_follow(v))
		return;
	if (v->f->kind == FW_VISIT_NONE)
		fw_classify_status(v);
	fw_visit_end(v);
}

/* ---- public functions ------------------------------------------------------------------------ */

static struct fw_fetch_priv *fetch_priv_take(struct fw_fetcher *fr)
{
	struct fw_fetch_priv *v = fr->idle;

	if (v) {
		fr->idle = v->next;
		fr->idle_n--;
	} else {
		v = calloc(1, sizeof(*v));
		if (!v)
			return NULL;
		v->fr = fr;
		v->wait.cb = on_name;
	}
	return v;
}

int fw_fetch_start(struct fw_fetcher *fr, struct fw_fetch *f, struct fw_err *err)
{
	struct fw_fetch_priv *v = fetch_priv_take(fr);

	if (!v)
		return fw_err_set(err, FW_ENOMEM, "out of memory");
	fw_buf_reset(&v->url[0]);
	fw_buf_addstr(&v->url[0], f->url);
	if (v->url[0].rc || !fw_buf_room(&v->url[0], 1)) {
		v->next = fr->idle;
		fr->idle = v;
		fr->idle_n++;
		return fw_err_set(err, FW_ENOMEM, "out of memory");
	}
	v->f = f;
	v->n = v->permanent_n = 0;
	v->chain = true;
	v->was_sent = v->is_fresh = false;
	v->slot_waited_us = 0;
	v->wire_bytes = 0;
	v->start_us = fw_mono_us();
	v->deadline_us = v->start_us + fr->c.total_timeout_ms * 1000;
	f->priv = v;
	f->kind = FW_VISIT_NONE;
	/* wall clock: a fetcher without a store has no other */
	f->visit.at_ms = fr->c.clock ? fw_offset_clock_ms(fr->c.clock) : fw_now_ms();
	f->visit.slot = -1;
	v->prev = NULL;
	v->next = fr->in_flight;
	if (fr->in_flight)
		fr->in_flight->prev = v;
	fr->in_flight = v;
	if (fr->in_flight_n++ == 0)
		uv_timer_start(&fr->tick, fw_limits_tick, TICK_MS, TICK_MS);
	v->start_failed = url_request(v) != 0;
	if (v->start_failed)
		fw_deferred_soon(fr);
	return 0;
}

void fw_further_end_wait(struct fw_fetch_priv *v)
{
	int64_t waited_us = v->further_wait_us ? fw_mono_us() - v->further_wait_us : 0;

	v->further_wait_us = 0;
	v->deadline_us += waited_us;
	fw_visit_exclude(v, waited_us);
}

void fw_fetch_continue(struct fw_fetch *f)
{
	struct fw_fetch_priv *v = f->priv;

	assert(v && v->further_wait_us);
	fw_further_end_wait(v);
	v->start_failed = url_look_up(v) != 0;
	if (v->start_failed)
		fw_deferred_soon(v->fr);
}

void fw_fetch_cancel(struct fw_fetch *f)
{
	struct fw_fetch_priv *v = f->priv;

	if (!v)
		return;
	v->start_failed = false;
	f->kind = FW_VISIT_NONE;
	fw_visit_set_outcome(f, FW_VISIT_LOCAL, "the fetch was cancelled");
	fw_visit_end(v);
}

bool fw_fetch_is_silent(const struct fw_fetch *f)
{
	const struct fw_fetch_priv *v = f->priv;

	return v && !v->start_failed && !v->further_wait_us && !fw_limiter_is_waiting(&v->slot) &&
		f->kind == FW_VISIT_NONE && !v->response.header_bytes;
}

bool fw_fetch_abandon(struct fw_fetch *f)
{
	if (!fw_fetch_is_silent(f))
		return false;
	fw_visit_set_outcome(f, FW_VISIT_TIMEOUT,
		"no response for %lld ms, longer than ever before (straggler_timeout_ms): retried without this limit",
		(long long)((fw_mono_us() - f->priv->start_us) / 1000));
	fw_visit_end(f->priv);
	return true;
}
