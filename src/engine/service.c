/* SPDX-License-Identifier: ISC */
#include "api/service.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "api/store_link.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/lead.h"
#include "engine/settings.h"

struct service_slot {
	struct service_task t;
	int64_t due_ms; /* monotonic */
};

struct service {
	struct service_options o;
	struct fw_net net;
	pthread_t thread;
	bool started, closing;
	_Atomic bool stopping, leading, hurry;
	uv_loop_t loop;
	uv_async_t wake;
	uv_timer_t timer;
	struct fw_fetcher *fetcher;
	struct store_link link;
	struct fw_store *st; /* the link's; NULL: not open */
	struct lead lead;
	int64_t lead_ms, stop_by_ms; /* monotonic: when to take or renew it; 0: no stop */
	struct service_slot slot[];
};

/* ---- the store and the lead ------------------------------------------------------------------ */

static void service_lose(struct service *s)
{
	lead_drop(&s->lead);
	atomic_store(&s->leading, false);
	if (s->o.lost)
		s->o.lost(s->o.ctx);
}

static void service_all_due(struct service *s)
{
	s->lead_ms = 0;
	for (size_t i = 0; i < s->o.task_n; i++)
		s->slot[i].due_ms = 0;
}

static int service_opened(void *ctx, struct fw_store *st, struct fw_err *err)
{
	struct service *s = ctx;
	int rc = s->o.opened ? s->o.opened(s->o.ctx, st, err) : 0;

	if (rc)
		return rc;
	s->st = st;
	service_all_due(s);
	return 0;
}

static void service_lost(void *ctx)
{
	struct service *s = ctx;

	s->st = NULL;
	service_lose(s);
}

static int service_win(struct service *s, int64_t until_ms, struct fw_err *err)
{
	int rc;

	for (size_t i = 0; i < s->o.task_n; i++) {
		if (s->slot[i].t.when & TASK_LEADS)
			s->slot[i].due_ms = 0;
	}
	rc = s->o.won ? s->o.won(s->o.ctx, s->st, until_ms, err) : 0;
	if (rc)
		service_lose(s);
	else
		atomic_store(&s->leading, true);
	return rc;
}

static int service_elect(struct service *s, struct fw_err *err)
{
	bool leads = service_leads(s), wants = true, mine = false;
	int64_t until_ms = 0;
	int rc = 0;

	if (!leads && s->o.wants_lead)
		rc = s->o.wants_lead(s->o.ctx, s->st, &wants, err);
	if (!rc && wants)
		rc = lead_take(&s->lead, s->st, &mine, &until_ms, err);
	s->lead_ms = fw_mono_ms() + (mine ? LEAD_RENEW_MS : s->o.follow_ms);
	if (rc || mine == leads)
		return rc;
	if (mine)
		return service_win(s, until_ms, err);
	fw_warn("%s: another process %s now: this one was too slow, or its clock is wrong", s->o.who, s->o.leads);
	service_lose(s);
	return 0;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static bool slot_is_due(const struct service *s, const struct service_slot *k, bool online)
{
	if ((!online && !(k->t.when & TASK_OFFLINE)) || ((k->t.when & TASK_LEADS) && !service_leads(s)) ||
		((k->t.when & TASK_FOLLOWS) && service_leads(s)))
		return false;
	return !k->t.every_ms || fw_mono_ms() >= k->due_ms;
}

/* The store, if the link does not back off. */
static struct fw_store *service_usable(const struct service *s)
{
	return store_link_wait_ms(&s->link) ? NULL : s->st;
}

static int service_run_tasks(struct service *s, struct fw_err *err)
{
	int rc = 0;

	if (service_usable(s) && s->o.lead_kind.p && fw_mono_ms() >= s->lead_ms)
		rc = service_elect(s, err);
	for (size_t i = 0; !rc && i < s->o.task_n; i++) {
		struct service_slot *k = &s->slot[i];
		struct fw_store *st = service_usable(s); /* a task may have closed it */

		if (!slot_is_due(s, k, st != NULL))
			continue;
		k->due_ms = fw_mono_ms() + k->t.every_ms;
		rc = k->t.run(s->o.ctx, st, err);
		if (rc)
			k->due_ms = 0;
	}
	return rc;
}

static void service_on_timer(uv_timer_t *t);

/* The timer of the next round. */
static void service_arm(struct service *s)
{
	int64_t now_ms = fw_mono_ms(), wait_ms = store_link_wait_ms(&s->link), until_ms = s->o.tick_ms;

	wait_ms = wait_ms ? wait_ms : store_link_idle_ms(&s->link);
	until_ms = until_ms ? until_ms : INT64_MAX;
	if (wait_ms >= 0)
		until_ms = FW_MIN(until_ms, wait_ms);
	if (s->o.lead_kind.p && s->lead_ms > now_ms)
		until_ms = FW_MIN(until_ms, s->lead_ms - now_ms);
	for (size_t i = 0; i < s->o.task_n; i++) {
		if (s->slot[i].due_ms > now_ms)
			until_ms = FW_MIN(until_ms, s->slot[i].due_ms - now_ms);
	}
	if (s->stop_by_ms)
		until_ms = FW_MIN(until_ms, s->stop_by_ms - now_ms);
	uv_update_time(&s->loop);
	if (until_ms != INT64_MAX)
		uv_timer_start(&s->timer, service_on_timer, (uint64_t)FW_MAX(until_ms, INT64_C(1)), 0);
}

static void service_end(struct service *s)
{
	s->closing = true;
	if (s->o.closing)
		s->o.closing(s->o.ctx);
	lead_leave(&s->lead, s->st);
	store_link_close(&s->link);
	uv_close((uv_handle_t *)&s->timer, NULL);
	uv_close((uv_handle_t *)&s->wake, NULL);
	fw_fetcher_destroy(s->fetcher);
	s->fetcher = NULL;
}

static bool service_may_end(struct service *s)
{
	if (!atomic_load(&s->stopping))
		return false;
	if (!s->stop_by_ms)
		s->stop_by_ms = fw_mono_ms() + s->o.stop_ms;
	return !s->o.idle || s->o.idle(s->o.ctx) || fw_mono_ms() >= s->stop_by_ms;
}

static void service_round(struct service *s)
{
	struct fw_err err = {0};
	bool online;
	int rc;

	if (s->closing)
		return;
	if (service_may_end(s)) {
		service_end(s);
		return;
	}
	if (atomic_exchange(&s->hurry, false)) {
		service_all_due(s);
		store_link_try_now(&s->link);
	}
	online = !store_link_wait_ms(&s->link) && store_link_get(&s->link, &err);
	rc = service_run_tasks(s, &err);
	assert(online || !rc);
	if (online && (rc || service_usable(s)))
		(void)store_link_after_round(&s->link, rc, &err);
	service_arm(s);
}

static void service_on_timer(uv_timer_t *t)
{
	service_round(t->data);
}

static void service_on_wake(uv_async_t *async)
{
	service_round(async->data);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void *service_main(void *ctx)
{
	struct service *s = ctx;

	uv_run(&s->loop, UV_RUN_DEFAULT);
	return NULL;
}

static int service_open_loop(struct service *s, struct fw_err *err)
{
	int rc = uv_loop_init(&s->loop);

	if (rc)
		return fw_err_set(err, FW_EIO, "%s: cannot create the event loop: %s", s->o.who, uv_strerror(rc));
	rc = uv_async_init(&s->loop, &s->wake, service_on_wake);
	if (rc) {
		uv_loop_close(&s->loop);
		return fw_err_set(err, FW_EIO, "%s: cannot create the event loop: %s", s->o.who, uv_strerror(rc));
	}
	uv_timer_init(&s->loop, &s->timer);
	s->wake.data = s->timer.data = s;
	uv_timer_start(&s->timer, service_on_timer, 0, 0);
	return 0;
}

int service_open(const struct service_options *o, struct service **out, struct fw_err *err)
{
	struct service *s = calloc(1, sizeof(*s) + o->task_n * sizeof(s->slot[0]));
	int rc;

	*out = NULL;
	if (!s)
		return fw_no_memory(err);
	s->o = *o;
	s->o.task = NULL;
	for (size_t i = 0; i < o->task_n; i++)
		s->slot[i].t = o->task[i];
	s->link = (struct store_link){.config = o->config,
		.who = o->who,
		.waits = o->waits,
		.opened = service_opened,
		.lost = service_lost,
		.ctx = s};
	lead_init(&s->lead, o->lead_kind);
	rc = o->transfers ? fw_settings_net(o->config, o->transfers, &s->net, err) : 0;
	if (!rc && o->limits)
		o->limits(&s->net.fetch);
	rc = rc ? rc : service_open_loop(s, err);
	if (rc) {
		free(s);
		return rc;
	}
	if (o->transfers)
		rc = fw_fetcher_create(&s->loop, &s->net.fetch, &s->fetcher, err);
	if (rc) {
		s->o.closing = NULL; /* the owner has nothing yet */
		s->o.lost = NULL;
		service_close(s);
		return rc;
	}
	*out = s;
	return 0;
}

int service_start(struct service *s, struct fw_err *err)
{
	int rc = pthread_create(&s->thread, NULL, service_main, s);

	if (rc)
		return fw_err_set(err, FW_EIO, "%s: cannot start the thread: %s", s->o.who, strerror(rc));
	s->started = true;
	return 0;
}

void service_close(struct service *s)
{
	if (!s)
		return;
	service_stop(s);
	if (s->started) {
		pthread_join(s->thread, NULL);
	} else {
		service_end(s);
		uv_run(&s->loop, UV_RUN_DEFAULT);
	}
	uv_loop_close(&s->loop);
	free(s);
}

/* ---- what tasks and others call -------------------------------------------------------------- */

void service_wake(struct service *s)
{
	uv_async_send(&s->wake);
}

void service_stop(struct service *s)
{
	if (!atomic_exchange(&s->stopping, true))
		service_wake(s);
}

bool service_is_stopping(const struct service *s)
{
	return atomic_load(&s->stopping);
}

bool service_leads(const struct service *s)
{
	return atomic_load(&s->leading);
}

void service_in(struct service *s, size_t task, int64_t ms)
{
	assert(task < s->o.task_n);
	s->slot[task].due_ms = fw_mono_ms() + ms;
}

void service_hurry(struct service *s)
{
	atomic_store(&s->hurry, true);
	service_wake(s);
}

int service_check_lead(struct service *s, struct fw_err *err)
{
	return service_leads(s) && lead_is_safe(&s->lead) ? 0 : service_elect(s, err);
}

bool service_lead_is_safe(const struct service *s)
{
	return lead_is_safe(&s->lead);
}

struct fw_store *service_store(struct service *s)
{
	return s->st;
}

void service_used(struct service *s, int rc, const struct fw_err *err)
{
	(void)store_link_after_round(&s->link, rc, err);
	service_arm(s);
}

void service_set_waits(struct service *s, const char *waits)
{
	s->link.waits = waits;
}

struct uv_loop_s *service_loop(struct service *s)
{
	return &s->loop;
}

struct fw_fetcher *service_fetcher(struct service *s)
{
	return s->fetcher;
}

const struct fw_net *service_net(const struct service *s)
{
	return &s->net;
}
