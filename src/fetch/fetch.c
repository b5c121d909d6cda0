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

#define TICK_MS 100

/* ---- requests and redirects ------------------------------------------------------------------ */

/* Note the lowest of the host's addresses: their order differs from lookup to lookup. */
static void note_lowest_address(struct fw_fetch_priv *p, const char *addrs)
{
	struct fw_str rest = fw_str(addrs ? addrs : p->wire_url.host), one;
	struct fw_fetch *f = p->f;
	unsigned char address[16], key[16];

	if (p->fr->c.proxy)
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

static int fetch_request_begin(struct fw_fetch_priv *p, const char *addrs)
{
	if (p->n == 0)
		note_lowest_address(p, addrs);
	p->f->name_age_ms = 0; /* the lookup succeeded */
	p->dns_us = addrs ? fw_mono_us() : 0;
	p->f->visit.dns_us = addrs ? FW_MAX(p->dns_us - p->start_us, 1) : 0;
	if (p->fr->limiter && fw_slot_acquire(p, addrs)) {
		fw_slot_release(p);
		fw_fetch_no_memory(p->f);
		return FW_ENOMEM;
	}
	if (fw_limiter_is_waiting(&p->slot) || !fw_transfer_start(p, addrs))
		return 0;
	fw_fetch_no_memory(p->f);
	return FW_ENOMEM;
}

static void on_name(struct fw_resolve_wait *w, enum fw_resolve_state state, const char *addrs)
{
	struct fw_fetch_priv *p = (struct fw_fetch_priv *)(void *)((char *)w - offsetof(struct fw_fetch_priv, wait));

	if (state != FW_RESOLVE_OK)
		fw_classify_name(p, state);
	if (state != FW_RESOLVE_OK || fetch_request_begin(p, addrs))
		fw_fetch_end(p);
}

/*
 * Behind a proxy our sockets do not show where the request goes, so check what the URL itself
 * gives.
 */
static const char *proxy_refusal(struct fw_fetch_priv *p)
{
	const struct fw_wire_url *h = &p->wire_url;
	char port[8];
	struct addrinfo hint = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM}, *ai = NULL;
	const char *why = NULL;

	if (!h->literal)
		return fw_guard_port_ok(h->port) ? NULL : FW_GUARD_PORT;
	fw_snprintf(port, sizeof(port), "%d", h->port);
	if (getaddrinfo(h->host, port, &hint, &ai) == 0)
		why = fw_guard_refuses(p->fr->c.guard, ai->ai_addr);
	if (ai)
		freeaddrinfo(ai);
	return why;
}

/* Look the host up, and go on. Negative: as url_request(). */
static int url_look_up(struct fw_fetch_priv *p)
{
	const struct fw_wire_url *to = p->fr->c.proxy ? &p->fr->proxy : &p->wire_url;
	enum fw_resolve_state state;
	const char *addrs = NULL;

	p->begin_us = fw_mono_us();
	if (to->literal)
		return fetch_request_begin(p, NULL);
	state = fw_resolve(p->fr->resolver, to->host, &p->wait, &addrs);
	p->f->name_age_ms = (int64_t)p->wait.age_ms;
	if (state == FW_RESOLVE_WAIT)
		return 0;
	if (state == FW_RESOLVE_OK)
		return fetch_request_begin(p, addrs);
	fw_classify_name(p, state);
	return FW_ENET;
}

/* Request url[n]. Negative: it failed, the kind is set, and the caller must end the visit. */
static int url_request(struct fw_fetch_priv *p)
{
	struct fw_fetch *f = p->f;
	struct fw_err err = {0};
	const char *why;
	int rc;

	assert(p->n <= FW_REDIRECTS_MAX);
	fw_fetch_response_reset(&p->response);
	rc = fw_wire_url_prepare(&p->wire_url, fw_buf_str(&p->url[p->n]), &err);
	if (rc) {
		fw_classify_url(p, &err);
		return rc;
	}
	if (p->n == 0) {
		p->first = p->wire_url;
		p->first.wire = FW_BUF_INIT(0);
	}
	why = p->fr->c.proxy ? proxy_refusal(p) : NULL;
	if (why) {
		fw_classify_refused(p, why, p->wire_url.port);
		return FW_EBLOCKED;
	}
	if (!p->was_sent || !f->further || !f->further(f, fw_buf_str(&p->url[p->n])))
		return url_look_up(p);
	fw_slot_release(p);
	p->further_wait_us = fw_mono_us();
	return 0;
}

/*
 * Follow a redirect: url[n + 1] becomes its target. False: not followed, and the caller must end
 * the visit.
 */
static bool redirect_follow(struct fw_fetch_priv *p)
{
	struct fw_fetch *f = p->f;
	struct fw_str location = fw_fetch_response_header(&p->response, FW_H_LOCATION);
	bool was_https = p->wire_url.https;
	struct fw_buf *to;
	int rc;

	if (!location.p)
		return false;
	if (p->n >= p->fr->c.max_redirects) {
		fw_fetch_set_outcome(f, FW_VISIT_REDIRECT, "redirect failed: more than %u redirects (max_redirects)",
			p->fr->c.max_redirects);
		return false;
	}
	to = &p->url[p->n + 1];
	fw_buf_reset(to);
	rc = fw_redirect_target(fw_buf_str(&p->url[p->n]), location, to);
	if (rc) {
		if (rc == FW_ENOMEM)
			fw_fetch_no_memory(f);
		fw_fetch_set_outcome(f, FW_VISIT_REDIRECT, "redirect failed: the target is not a valid URL");
		return false;
	}
	for (uint32_t i = 0; i <= p->n; i++) {
		if (fw_str_eq(fw_buf_str(&p->url[i]), fw_buf_str(to))) {
			fw_fetch_set_outcome(f, FW_VISIT_REDIRECT, "redirect loop");
			return false;
		}
	}
	p->n++;
	p->chain = p->chain && fw_redirect_permanent(p->response.status);
	if (p->chain)
		p->permanent_n = p->n;
	if ((f->username.p || f->post.p) && was_https && fw_str_istarts(fw_buf_str(to), FW_STR("http:"))) {
		fw_fetch_set_outcome(f, FW_VISIT_REDIRECT, "redirect from https to http refused: %s",
			f->post.p ? "the request body may be secret" : "the feed has a password");
		return false;
	}
	return url_request(p) == 0;
}

void fw_fetch_responded(struct fw_fetch_priv *p, CURLcode rc)
{
	struct fw_fetch_response *r = &p->response;
	/* a complete response without a document, however the transfer ended */
	bool is_complete = r->headers_done && r->status / 100 != 2;

	if (p->is_repeat) {
		fw_transfer_stop(p);
		p->is_fresh = true;
		if (url_request(p))
			fw_fetch_end(p);
		return;
	}
	if (r->limit == FW_ENOMEM)
		fw_fetch_no_memory(p->f);
	else if (r->limit)
		fw_fetch_set_outcome(p->f, FW_VISIT_LIMIT, "%s", r->limit_text);
	else if (rc != CURLE_OK && !is_complete)
		fw_classify_failure(p, rc);
	fw_transfer_stop(p);
	if (p->f->kind == FW_VISIT_NONE && !p->f->no_redirects &&
		(p->f->post.p ? fw_redirect_repeats(r->status) : fw_redirect_status(r->status)) && redirect_follow(p))
		return;
	if (p->f->kind == FW_VISIT_NONE)
		fw_classify_status(p);
	fw_fetch_end(p);
}

/* ---- public functions ------------------------------------------------------------------------ */

static struct fw_fetch_priv *fetch_priv_take(struct fw_fetcher *fr)
{
	struct fw_fetch_priv *p = fr->idle;

	if (p) {
		fr->idle = p->next;
		fr->idle_n--;
	} else {
		p = calloc(1, sizeof(*p));
		if (!p)
			return NULL;
		p->fr = fr;
		p->wait.cb = on_name;
	}
	return p;
}

int fw_fetch_start(struct fw_fetcher *fr, struct fw_fetch *f, struct fw_err *err)
{
	struct fw_fetch_priv *p = fetch_priv_take(fr);

	if (!p)
		return fw_err_set(err, FW_ENOMEM, "out of memory");
	fw_buf_reset(&p->url[0]);
	fw_buf_addstr(&p->url[0], f->url);
	if (p->url[0].rc || !fw_buf_room(&p->url[0], 1)) {
		p->next = fr->idle;
		fr->idle = p;
		fr->idle_n++;
		return fw_err_set(err, FW_ENOMEM, "out of memory");
	}
	p->f = f;
	p->n = p->permanent_n = 0;
	p->chain = true;
	p->was_sent = p->is_fresh = false;
	p->slot_waited_us = 0;
	p->wire_bytes = 0;
	p->start_us = fw_mono_us();
	p->deadline_us = p->start_us + fr->c.total_timeout_ms * 1000;
	f->priv = p;
	f->kind = FW_VISIT_NONE;
	/* wall clock: a fetcher without a store has no other */
	f->visit.at_ms = fr->c.clock ? fw_offset_clock_ms(fr->c.clock) : fw_now_ms();
	f->visit.slot = -1;
	p->prev = NULL;
	p->next = fr->in_flight;
	if (fr->in_flight)
		fr->in_flight->prev = p;
	fr->in_flight = p;
	if (fr->in_flight_n++ == 0)
		uv_timer_start(&fr->tick, fw_limits_tick, TICK_MS, TICK_MS);
	p->start_failed = url_request(p) != 0;
	if (p->start_failed)
		fw_deferred_soon(fr);
	return 0;
}

void fw_further_end_wait(struct fw_fetch_priv *p)
{
	int64_t waited_us = p->further_wait_us ? fw_mono_us() - p->further_wait_us : 0;

	p->further_wait_us = 0;
	p->deadline_us += waited_us;
	fw_fetch_exclude(p, waited_us);
}

void fw_fetch_continue(struct fw_fetch *f)
{
	struct fw_fetch_priv *p = f->priv;

	assert(p && p->further_wait_us);
	fw_further_end_wait(p);
	p->start_failed = url_look_up(p) != 0;
	if (p->start_failed)
		fw_deferred_soon(p->fr);
}

void fw_fetch_cancel(struct fw_fetch *f)
{
	struct fw_fetch_priv *p = f->priv;

	if (!p)
		return;
	p->start_failed = false;
	f->kind = FW_VISIT_NONE;
	fw_fetch_set_outcome(f, FW_VISIT_LOCAL, "the fetch was cancelled");
	fw_fetch_end(p);
}

bool fw_fetch_is_silent(const struct fw_fetch *f)
{
	const struct fw_fetch_priv *p = f->priv;

	return p && !p->start_failed && !p->further_wait_us && !fw_limiter_is_waiting(&p->slot) &&
		f->kind == FW_VISIT_NONE && !p->response.header_bytes;
}

bool fw_fetch_abandon(struct fw_fetch *f)
{
	if (!fw_fetch_is_silent(f))
		return false;
	fw_fetch_set_outcome(f, FW_VISIT_TIMEOUT,
		"no response for %lld ms, longer than ever before (straggler_timeout_ms): retried without this limit",
		(long long)((fw_mono_us() - f->priv->start_us) / 1000));
	fw_fetch_end(f->priv);
	return true;
}
