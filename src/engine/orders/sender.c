/* SPDX-License-Identifier: ISC */
/*
 * The sender's tasks, of which all but the first and the last are the leader's:
 *
 *	collect  the attempts whose threads have ended
 *	look     which orders have matches that wait; the orders again, if they have changed
 *	work     starts attempts: one for each order, SENDER_IN_FLIGHT_MAX in all
 *	sweep    removes dead letters that are old, and matches of orders that do not exist
 *	finish   is all sent that fw_sender_finish() asked for?
 *
 * Orders take turns. The end of an attempt starts the next one of its order at once.
 *
 * A batch is stored before it is sent first, and its matches are removed when it was accepted. So
 * whatever is killed, it is sent again with the same id until it was accepted. Before each attempt,
 * and before its result is stored, the process makes sure that it still leads.
 *
 * After a failure of the store all state in memory is dropped, and read again.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/orders/orders.h"
#include "engine/orders/runner.h"
#include "engine/orders/sender.h"
#include "engine/settings.h"

#define TICK_MS 100
#define WAIT_MS FW_SECOND_MS /* how often another process tries to become the leader */
#define LOOK_MS (FW_SECOND_MS / 2)
#define LOOK_SHARE 20              /* looks take at most this fraction (1/20) of the time */
#define STEP_MS 100                /* time limit of one step, so that transfers make progress */
#define STOP_MS (5 * FW_SECOND_MS) /* attempts in flight may end, if drain_timeout_ms is longer */
#define FINISH_MS FW_MINUTE_MS

enum { COLLECT, LOOK, WORK, SWEEP, FINISH, TASK_N };

/* ---- state ----------------------------------------------------------------------------------- */

static struct fw_str sender_order_key(const int64_t *id)
{
	return (struct fw_str){(const char *)id, sizeof(*id)};
}

struct sender_order *sender_order_find(struct fw_sender *s, int64_t id)
{
	return fw_map_get(&s->orders, sender_order_key(&id));
}

static void sender_order_free(struct sender_order *o)
{
	if (o->attempt)
		sender_attempt_drop(o->attempt);
	free(o->delivery);
	free(o);
}

static const struct fw_orders_version NO_ORDERS = {.part = {0}};

static void sender_drop_state(void *ctx)
{
	struct fw_sender *s = ctx;
	size_t at = 0;

	for (struct sender_order *o; (o = fw_map_next(&s->orders, &at, NULL)) != NULL;) {
		(void)fw_map_del(&s->orders, sender_order_key(&o->id));
		sender_order_free(o);
	}
	s->version = NO_ORDERS;
	s->ready_n = 0;
}

/* Without orders there is nothing to lead. */
static int sender_wants_lead(void *ctx, struct fw_store *st, bool *wants, struct fw_err *err)
{
	struct fw_orders_version version;
	int rc = fw_store_orders_version(st, &version, err);

	(void)ctx;
	*wants = !rc && !orders_version_eq(&version, &NO_ORDERS);
	return rc;
}

static int sender_won(void *ctx, struct fw_store *st, int64_t until_ms, struct fw_err *err)
{
	struct fw_sender *s = ctx;

	(void)st;
	(void)until_ms;
	(void)err;
	fw_info("orders: this process delivers");
	service_in(s->service, SWEEP, SENDER_SWEEP_MS);
	return 0;
}

/* ---- which orders have matches --------------------------------------------------------------- */

static int orders_list_add(void *ctx, const struct fw_order *o)
{
	struct fw_sender *s = ctx;
	struct sender_order *k;
	int rc = 0;

	s->broken_n += o->broken;
	if (o->broken || o->action != FW_ORDER_DELIVER)
		return 0;
	k = sender_order_find(s, o->id);
	if (!k) {
		k = calloc(1, sizeof(*k));
		if (!k)
			return FW_ENOMEM;
		k->id = o->id;
		(void)fw_map_put(&s->orders, sender_order_key(&k->id), k, &rc);
		if (rc) {
			free(k);
			return rc;
		}
	}
	(void)fw_str_copy(k->name, sizeof(k->name), o->name);
	k->state = o->state;
	k->list_n = s->list_n;
	k->due_ms = 0; /* found out before the next attempt */
	return 0;
}

int sender_list_orders(struct fw_sender *s, struct fw_err *err)
{
	size_t at = 0;
	int rc;

	s->list_n++;
	s->ready_n = s->broken_n = 0;
	s->look_again = true;
	service_in(s->service, LOOK, 0);
	rc = fw_order_list(service_store(s->service), orders_list_add, s, err);
	if (rc)
		return rc == FW_ENOMEM ? fw_no_memory(err) : rc;
	for (struct sender_order *o; !rc && (o = fw_map_next(&s->orders, &at, NULL)) != NULL;) {
		if (o->list_n == s->list_n)
			continue;
		/* what was stored after its removal */
		rc = s->broken_n ? 0 : sender_remove_orphans(s, o->id, err);
		(void)fw_map_del(&s->orders, sender_order_key(&o->id));
		sender_order_free(o);
	}
	return rc;
}

static int sender_refresh_orders(struct fw_sender *s, struct fw_err *err)
{
	struct fw_orders_version version;
	int rc = fw_store_orders_version(service_store(s->service), &version, err);

	if (rc || orders_version_eq(&version, &s->version))
		return rc;
	rc = sender_list_orders(s, err);
	if (!rc)
		s->version = version;
	return rc;
}

static int look_add(void *ctx, int64_t order_id, int64_t pending_n, int64_t dead_n, int64_t oldest_ms)
{
	struct fw_sender *s = ctx;
	struct sender_order *o = sender_order_find(s, order_id);
	size_t cap = s->ready_cap ? 2 * s->ready_cap : 64;

	if (!o) {
		if (s->unknown_n < SENDER_UNKNOWN_MAX)
			s->unknown[s->unknown_n++] = order_id;
		return 0;
	}
	o->pending_n = pending_n;
	o->oldest_ms = oldest_ms;
	o->dead_n = dead_n;
	if (!pending_n || o->state == FW_ORDER_PAUSED)
		return 0;
	if (s->ready_n == s->ready_cap) {
		struct sender_order **more = reallocarray(s->ready, cap, sizeof(struct sender_order *));

		if (!more)
			return FW_ENOMEM;
		s->ready = more;
		s->ready_cap = cap;
	}
	s->ready[s->ready_n++] = o;
	return 0;
}

static int sender_look(void *ctx, struct fw_store *st, struct fw_err *err)
{
	struct fw_sender *s = ctx;
	int64_t began_ms = fw_mono_ms();
	int rc = sender_refresh_orders(s, err);

	s->ready_n = 0;
	s->unknown_n = 0;
	rc = rc ? rc : fw_store_match_summary(st, look_add, s, err);
	s->look_again = false;
	service_in(s->service, LOOK, FW_MAX(LOOK_MS, LOOK_SHARE * (fw_mono_ms() - began_ms)));
	return rc == FW_ENOMEM ? fw_no_memory(err) : rc;
}

/* ---- what is due ----------------------------------------------------------------------------- */

static bool sender_order_is_due(const struct sender_order *o, int64_t now_ms)
{
	return !o->attempt && o->pending_n > 0 && o->due_ms <= now_ms && o->state != FW_ORDER_PAUSED;
}

static int sender_work(void *ctx, struct fw_store *st, struct fw_err *err)
{
	struct fw_sender *s = ctx;
	int64_t now_ms = fw_config_now_ms(s->config), until_ms = fw_mono_ms() + STEP_MS;
	int rc = 0;

	(void)st;
	if (service_is_stopping(s->service))
		return 0;
	for (size_t i = 0; !rc && service_leads(s->service) && i < s->ready_n && s->in_flight < SENDER_IN_FLIGHT_MAX;
		i++) {
		struct sender_order *o = s->ready[s->ready_at++ % s->ready_n];

		if (!sender_order_is_due(o, now_ms))
			continue;
		rc = o->state == FW_ORDER_ENDED ? sender_end_order(s, o, err) : sender_attempt_start(s, o, err);
		if (fw_mono_ms() >= until_ms) {
			service_wake(s->service); /* transfers first */
			break;
		}
	}
	return rc;
}

/* ---- tasks ----------------------------------------------------------------------------------- */

static int sender_collect(void *ctx, struct fw_store *st, struct fw_err *err)
{
	struct fw_sender *s = ctx;

	(void)st;
	(void)err;
	sender_threads_collect(s);
	if (!atomic_load(&s->finishing))
		return 0;
	if (!s->finish_n++)
		s->finish_by_ms = fw_mono_ms() + FINISH_MS;
	return 0;
}

static bool sender_has_work(const struct fw_sender *s)
{
	int64_t now_ms = fw_config_now_ms(s->config);

	if (s->in_flight || s->look_again)
		return true;
	for (size_t i = 0; i < s->ready_n; i++) {
		if (sender_order_is_due(s->ready[i], now_ms))
			return true;
	}
	return false;
}

/*
 * fw_sender_finish(): a round that began after it has looked, and nothing is due. A store that is
 * busy is waited for.
 */
static int sender_finish(void *ctx, struct fw_store *st, struct fw_err *err)
{
	struct fw_sender *s = ctx;
	bool waits = st ? service_leads(s->service) && sender_has_work(s) : service_store(s->service) != NULL;

	(void)err;
	if (s->finish_n < 2 || atomic_load(&s->idle) || (waits && fw_mono_ms() < s->finish_by_ms))
		return 0;
	atomic_store(&s->idle, true);
	if (s->o.idle)
		s->o.idle(s->o.ctx);
	return 0;
}

static bool sender_is_over(void *ctx)
{
	const struct fw_sender *s = ctx;

	return !s->in_flight || !service_store(s->service);
}

static void sender_closing(void *ctx)
{
	struct fw_sender *s = ctx;

	sender_drop_state(s);
	runner_close(s->runner);
	s->runner = NULL;
	sender_attempts_free(s);
}

/* The limits of an attempt: what the receiver answers does not matter, so little of it is read. */
static void sender_limits(struct fw_fetch_config *f)
{
	f->total_timeout_ms = FW_MIN(f->total_timeout_ms, SENDER_TIMEOUT_MS);
	f->first_byte_timeout_ms = FW_MIN(f->first_byte_timeout_ms, f->total_timeout_ms);
	f->max_body_bytes = SENDER_RESPONSE_MAX;
	f->address_concurrency = 0; /* a slow receiver must not hold up those beside it */
}

/* ---- life ------------------------------------------------------------------------------------ */

static int sender_service_open(struct fw_sender *s, struct fw_err *err)
{
	static const struct service_task TASK[TASK_N] = {
		[COLLECT] = {0, TASK_OFFLINE, sender_collect},
		[LOOK] = {LOOK_MS, TASK_LEADS, sender_look},
		[WORK] = {0, TASK_LEADS, sender_work},
		[SWEEP] = {SENDER_SWEEP_MS, TASK_LEADS, sender_sweep},
		[FINISH] = {0, TASK_OFFLINE, sender_finish},
	};
	int rc = service_open(&(struct service_options){.config = s->config,
				      .who = "orders",
				      .waits = "deliveries wait",
				      .task = TASK,
				      .task_n = TASK_N,
				      .tick_ms = TICK_MS,
				      .stop_ms = FW_MIN(s->config->drain_timeout_ms, STOP_MS),
				      .transfers = SENDER_IN_FLIGHT_MAX,
				      .limits = sender_limits,
				      .lead_kind = ORDERS_LEAD_KIND,
				      .leads = "delivers",
				      .follow_ms = WAIT_MS,
				      .wants_lead = sender_wants_lead,
				      .won = sender_won,
				      .lost = sender_drop_state,
				      .idle = sender_is_over,
				      .closing = sender_closing,
				      .ctx = s},
		&s->service, err);

	if (!rc && runner_fd() >= 0)
		rc = runner_open(service_loop(s->service), runner_fd(), &s->runner, err);
	return rc ? rc : service_start(s->service, err);
}

static void sender_free(struct fw_sender *s)
{
	service_close(s->service);
	pthread_mutex_destroy(&s->ended_lock);
	fw_map_finish(&s->orders);
	free(s->ready);
	free(s);
}

int fw_sender_open(const struct fw_sender_options *o, struct fw_sender **out, struct fw_err *err)
{
	struct fw_sender *s = calloc(1, sizeof(*s));
	int rc;

	*out = NULL;
	if (!s)
		return fw_no_memory(err);
	s->o = *o;
	s->config = o->config;
	pthread_mutex_init(&s->ended_lock, NULL);
	fw_map_init(&s->orders, (uint64_t)fw_mono_us());
	rc = sender_service_open(s, err);
	if (rc) {
		sender_free(s);
		return rc;
	}
	*out = s;
	return 0;
}

void fw_sender_finish(struct fw_sender *s)
{
	service_hurry(s->service);
	atomic_store(&s->finishing, true); /* so a round that sees it has hurried, or the next one does */
}

bool fw_sender_is_idle(const struct fw_sender *s)
{
	return atomic_load(&s->idle);
}

bool fw_sender_leads(const struct fw_sender *s)
{
	return service_leads(s->service);
}

void fw_sender_stop(struct fw_sender *s)
{
	service_stop(s->service);
}

void fw_sender_close(struct fw_sender *s)
{
	if (s)
		sender_free(s);
}
