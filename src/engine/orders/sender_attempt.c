/* SPDX-License-Identifier: ISC */
/*
 * One attempt to send a message: by a request, by the runner, or by a thread of its own. Its end
 * decides what becomes of the batch (delivery_rules.h).
 */
#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "base/url.h"
#include "engine/orders/runner.h"
#include "engine/orders/sender.h"
#include "engine/orders/webhook.h"
#include "engine/settings.h"
#include "sched/due.h"

static uint64_t sender_random(void)
{
	uint64_t rnd = 0;

	return getentropy(&rnd, sizeof(rnd)) ? (uint64_t)fw_mono_us() : rnd;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void attempt_free(struct sender_attempt *a)
{
	sender_thread_free(a->thread);
	fw_fetch_finish(&a->fetch);
	fw_buf_finish(&a->body);
	fw_buf_finish(&a->headers);
	fw_arena_finish(&a->arena);
	free(a);
}

static struct sender_attempt *attempt_create(struct fw_sender *s, struct sender_order *o)
{
	struct sender_attempt *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->s = s;
	a->order = o;
	fw_arena_init(&a->arena, 0);
	return a;
}

/* It is in flight from now on. */
static void attempt_link(struct sender_attempt *a)
{
	struct fw_sender *s = a->s;

	a->next = s->first;
	a->prev = &s->first;
	if (a->next)
		a->next->prev = &a->next;
	s->first = a;
	s->in_flight++;
	a->order->attempt = a;
}

static void attempt_unlink(struct sender_attempt *a)
{
	*a->prev = a->next;
	if (a->next)
		a->next->prev = a->prev;
	a->s->in_flight--;
}

void sender_attempt_drop(struct sender_attempt *a)
{
	a->order->attempt = NULL;
	a->order = NULL;
	if (a->fetch.ctx)
		fw_fetch_cancel(&a->fetch); /* frees it; a job of the runner ends by itself */
}

void sender_attempts_free(struct fw_sender *s)
{
	for (struct sender_attempt *a = s->first, *next; a; a = next) {
		next = a->next;
		attempt_free(a);
	}
	s->first = NULL;
	s->in_flight = 0;
}

/* ---- the end --------------------------------------------------------------------------------- */

static void attempt_log(const struct sender_attempt *a, const struct delivery_result *r, bool was_failing)
{
	const char *name = a->order->name;

	if (r->ended)
		fw_warn("order %s: its receiver answered 410: the order has ended, and what waits are dead letters",
			name);
	else if (!r->accepted && !was_failing)
		fw_warn("order %s: not delivered: %.*s; retrying later", name, FW_STR_ARG(r->error));
	else if (r->accepted && was_failing)
		fw_info("order %s: its receiver accepts again", name);
	else
		fw_debug("order %s: %s: %.*s", name, a->message_id,
			FW_STR_ARG(r->accepted ? FW_STR("accepted") : r->error));
}

/* Some wait for too long: they become dead letters. */
static int attempt_end_old(struct fw_sender *s, struct sender_order *o, struct fw_err *err)
{
	int64_t before_ms = fw_config_now_ms(s->config) - s->config->delivery_timeout_ms;

	return s->config->delivery_timeout_ms && o->oldest_ms < before_ms ? sender_make_dead(s, o, before_ms, err) : 0;
}

static int attempt_store(struct sender_attempt *a, const struct delivery_result *r, struct fw_err *err)
{
	struct fw_sender *s = a->s;
	struct sender_order *o = a->order;
	struct fw_order_delivery *d = &o->delivery->d;
	int rc = 0;

	/* first the matches: killed in between, the batch counts as delivered (sender_batch.c) */
	if (r->accepted)
		rc = fw_store_match_remove(service_store(s->service), o->id, false, d->id, d->id_n, err);
	if (rc)
		return rc;
	delivery_conclude(d, r, a->n, fw_config_now_ms(s->config), sender_random());
	(void)fw_str_copy(o->delivery->error, sizeof(o->delivery->error), d->error);
	d->error = d->error.len ? fw_str(o->delivery->error) : FW_STR_NONE;
	o->due_ms = 0; /* found out before the next attempt: a person may have woken the order meanwhile */
	if (r->accepted)
		o->pending_n -= (int64_t)a->n;
	if (r->ended)
		return sender_end_order(s, o, err);
	if (!r->accepted)
		rc = attempt_end_old(s, o, err);
	return rc ? rc : sender_delivery_put(s, o, err);
}

/* Errors: those of the store. Then the delivery is read again, and the batch is sent again. */
static int attempt_conclude(struct sender_attempt *a, const struct delivery_result *r, struct fw_err *err)
{
	struct sender_order *o = a->order;
	int rc;

	attempt_log(a, r, o->delivery->d.failing_since_ms != 0);
	rc = attempt_store(a, r, err);
	o->attempt = NULL;
	if (rc) {
		free(o->delivery);
		o->delivery = NULL;
	}
	return rc;
}

void sender_attempt_done(struct sender_attempt *a, const struct delivery_result *r)
{
	struct fw_sender *s = a->s;
	struct fw_err err = {0};
	int rc = a->order && service_store(s->service) ? service_check_lead(s->service, &err) : 0;

	attempt_unlink(a);
	if (!rc && a->order) /* otherwise the lead was lost just now */
		rc = attempt_conclude(a, r, &err);
	else if (a->order)
		a->order->attempt = NULL;
	attempt_free(a);
	if (rc)
		service_used(s->service, rc, &err);
	else
		service_wake(s->service);
}

/* ---- webhooks -------------------------------------------------------------------------------- */

static struct fw_str webhook_words(struct sender_attempt *a)
{
	const struct fw_fetch *f = &a->fetch;
	struct fw_buf to = FW_BUF_INIT(0);
	char time[FW_RFC3339_MAX];

	if (f->http_status / 100 == 3 && f->h_location.len) {
		fw_url_show(&to, f->h_location);
		(void)fw_snprintf(a->error, sizeof(a->error), "answered %d to %.*s: redirects are not followed",
			f->http_status, FW_STR_ARG(fw_str_sub(fw_buf_str(&to), 0, 200)));
		fw_buf_finish(&to);
	} else if (f->http_status) {
		(void)fw_snprintf(a->error, sizeof(a->error), "answered %d", f->http_status);
	} else if (f->kind == FW_VISIT_TIMEOUT) {
		(void)fw_snprintf(a->error, sizeof(a->error), "no answer within %s",
			fw_duration_text(time, service_net(a->s->service)->fetch.total_timeout_ms));
	} else {
		(void)fw_snprintf(a->error, sizeof(a->error), "%s", f->err.rc ? f->err.text : "no answer");
	}
	return fw_str(a->error);
}

/* The status decides: it does not matter whether the rest of the response came. */
static void webhook_done(struct fw_fetch *f)
{
	struct sender_attempt *a = f->ctx;
	int64_t retry_ms = fw_retry_after_ms(f->h_retry_after, fw_config_now_ms(a->s->config));
	struct delivery_result r = {
		.accepted = f->http_status / 100 == 2, .ended = f->http_status == 410, .status = f->http_status};

	if ((f->http_status == 429 || f->http_status == 503) && retry_ms != FW_NO_NUMBER)
		r.retry_ms = retry_ms;
	if (!r.accepted)
		r.error = webhook_words(a);
	sender_attempt_done(a, &r);
}

static int webhook_start(struct sender_attempt *a, struct fw_err *err)
{
	int64_t signed_ms = fw_now_ms(); /* wall clock: the receiver compares it with its own */
	struct fw_str url, user, pass;
	int rc = webhook_headers(&a->o, a->message_id, signed_ms, fw_buf_str(&a->body), &a->headers, err);

	rc = rc ? rc : fw_url_clean(&a->arena, a->o.to, &url, &user, &pass, err);
	if (rc)
		return rc;
	a->fetch = (struct fw_fetch){.url = url,
		.username = user,
		.password = pass,
		.post = fw_buf_str(&a->body),
		.post_type = "application/json",
		.post_headers = fw_buf_str(&a->headers),
		.no_redirects = true,
		.done = webhook_done,
		.ctx = a};
	rc = fw_fetch_start(service_fetcher(a->s->service), &a->fetch, err);
	if (rc)
		a->fetch.ctx = NULL;
	return rc;
}

/* ---- commands and files ---------------------------------------------------------------------- */

static void job_done(void *ctx, const struct runner_result *result)
{
	sender_attempt_done(ctx,
		&(struct delivery_result){
			.accepted = result->accepted, .status = result->status, .error = result->error});
}

static int job_start(struct sender_attempt *a, struct fw_err *err)
{
	struct fw_str rest = a->o.to;
	char path[PATH_MAX];
	struct runner_job j = {.input = fw_buf_str(&a->body),
		.order = a->o.name,
		.message_id = fw_str(a->message_id),
		.timeout_ms = SENDER_RUNNER_TIMEOUT_MS,
		.done = job_done,
		.ctx = a};

	if (fw_order_check_commands(a->s->config, a->o.to, false, err))
		return err->rc = FW_EUNSUP;
	if (!a->s->runner)
		return fw_err_set(err, FW_EIO, "commands wait: this process has no runner");
	(void)fw_str_split(a->o.to, ':', &rest);
	if (a->channel == FW_ORDER_COMMAND)
		j.command = rest;
	/* the time of the batch: a repeated message goes to the same file */
	else if (order_path(path, sizeof(path), rest, a->order->delivery->d.since_ms))
		j.path = fw_str(path);
	else
		return fw_err_set(err, FW_EINVAL, "the path of the file is invalid or too long");
	return runner_start(a->s->runner, &j, err);
}

/* ---- start ----------------------------------------------------------------------------------- */

static int attempt_start_channel(struct sender_attempt *a, struct fw_err *err)
{
	switch (a->channel) {
	case FW_ORDER_WEBHOOK:
		return webhook_start(a, err);
	case FW_ORDER_COMMAND:
	case FW_ORDER_FILE:
		return job_start(a, err);
	case FW_ORDER_REDIS:
	case FW_ORDER_AMQP:
		return sender_thread_start(a, err);
	case FW_ORDER_CHANNEL_N:
		break;
	}
	return fw_err_set(err, FW_EINVAL, "%s", a->error);
}

static int attempt_start(struct sender_attempt *a, struct fw_err *err)
{
	struct fw_sender *s = a->s;
	struct fw_err why;
	int rc;

	if (!service_lead_is_safe(s->service)) { /* it took too long: the next round takes the lead, or loses it */
		attempt_free(a);
		return 0;
	}
	attempt_link(a);
	if (!attempt_start_channel(a, &why))
		return 0;
	attempt_unlink(a);
	rc = attempt_conclude(a, &(struct delivery_result){.error = fw_str(why.text)}, err);
	attempt_free(a);
	return rc;
}

int sender_attempt_start(struct fw_sender *s, struct sender_order *o, struct fw_err *err)
{
	struct sender_attempt *a;
	int rc = service_check_lead(s->service, err);

	if (rc || !service_leads(s->service))
		return rc;
	a = attempt_create(s, o);
	if (!a)
		return fw_no_memory(err);
	rc = sender_batch_make(a, err);
	if (!rc && a->n)
		return attempt_start(a, err);
	if (rc) {
		/* its record may differ from what was stored */
		free(o->delivery);
		o->delivery = NULL;
	}
	attempt_free(a);
	return rc;
}
