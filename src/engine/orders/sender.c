/* SPDX-License-Identifier: ISC */
/*
 * The sender's thread. It runs an event loop with its own link to the store, and uses the store
 * from the loop: a blocked loop does no harm here. Every 100 ms it runs the tasks that are due:
 *
 *	lead   renews or takes the leader's record, if there are orders
 *	look   which orders have matches that wait; the orders again, if they have changed
 *	work   starts attempts: one for each order, SENDER_IN_FLIGHT_MAX in all
 *	sweep  removes dead letters that are old, and matches of orders that do not exist
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

#define TICK_MS 100
#define WAIT_MS FW_SECOND_MS /* how often another process tries to become the leader */
#define LOOK_MS (FW_SECOND_MS / 2)
#define LOOK_SHARE 20              /* looks take at most this fraction (1/20) of the time */
#define STEP_MS 100                /* time limit of one step, so that transfers make progress */
#define STOP_MS (5 * FW_SECOND_MS) /* attempts in flight may end, if drain_timeout_ms is longer */
#define FINISH_MS FW_MINUTE_MS

void sender_wake(struct fw_sender *s)
{
	uv_async_send(&s->wake);
}

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

static void sender_drop_state(struct fw_sender *s)
{
	size_t at = 0;

	s->leads = false;
	atomic_store(&s->leading, false);
	lead_drop(&s->lead);
	for (struct sender_order *o; (o = fw_map_next(&s->orders, &at, NULL)) != NULL;) {
		(void)fw_map_del(&s->orders, sender_order_key(&o->id));
		sender_order_free(o);
	}
	s->version = NO_ORDERS;
	s->ready_n = 0;
}

static int sender_opened(void *ctx, struct fw_store *st, struct fw_err *err)
{
	struct fw_sender *s = ctx;

	(void)err;
	s->st = st;
	s->lead_ms = s->look_ms = s->sweep_ms = 0;
	return 0;
}

static void sender_lost(void *ctx)
{
	struct fw_sender *s = ctx;

	sender_drop_state(s);
	s->st = NULL;
}

void sender_store_used(struct fw_sender *s, int rc, const struct fw_err *err)
{
	(void)store_link_after_round(&s->link, rc, err);
}

/* ---- the leader ------------------------------------------------------------------------------ */

static int sender_elect(struct fw_sender *s, struct fw_err *err)
{
	struct fw_orders_version version;
	bool mine = false;
	int rc = fw_store_orders_version(s->st, &version, err);

	/* without orders there is nothing to lead */
	if (!rc && (!orders_version_eq(&version, &NO_ORDERS) || s->leads))
		rc = lead_take(&s->lead, s->st, &mine, NULL, err);
	if (rc || mine == s->leads)
		return rc;
	if (mine) {
		fw_info("orders: this process delivers");
		s->look_ms = 0;
		s->sweep_ms = fw_mono_ms() + SENDER_SWEEP_MS;
	} else {
		fw_warn("orders: another process delivers now: this one was too slow, or its clock is wrong");
		sender_drop_state(s);
	}
	s->leads = mine;
	atomic_store(&s->leading, mine);
	return 0;
}

int sender_check_lead(struct fw_sender *s, struct fw_err *err)
{
	return s->leads && lead_is_safe(&s->lead) ? 0 : sender_elect(s, err);
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
	s->look_ms = 0;
	rc = fw_order_list(s->st, orders_list_add, s, err);
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
	int rc = fw_store_orders_version(s->st, &version, err);

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

static int sender_look(struct fw_sender *s, struct fw_err *err)
{
	int64_t began_ms = fw_mono_ms();
	int rc = sender_refresh_orders(s, err);

	s->ready_n = 0;
	s->unknown_n = 0;
	rc = rc ? rc : fw_store_match_summary(s->st, look_add, s, err);
	s->look_ms = fw_mono_ms();
	s->look_ms += FW_MAX(LOOK_MS, LOOK_SHARE * (s->look_ms - began_ms));
	return rc == FW_ENOMEM ? fw_no_memory(err) : rc;
}

/* ---- what is due ----------------------------------------------------------------------------- */

static bool sender_order_is_due(const struct sender_order *o, int64_t now_ms)
{
	return !o->attempt && o->pending_n > 0 && o->due_ms <= now_ms && o->state != FW_ORDER_PAUSED;
}

int sender_work(struct fw_sender *s, struct fw_err *err)
{
	int64_t now_ms = fw_config_now_ms(s->config), until_ms = fw_mono_ms() + STEP_MS;
	int rc = 0;

	if (atomic_load(&s->stopping))
		return 0;
	for (size_t i = 0; !rc && s->leads && i < s->ready_n && s->in_flight < SENDER_IN_FLIGHT_MAX; i++) {
		struct sender_order *o = s->ready[s->ready_at++ % s->ready_n];

		if (!sender_order_is_due(o, now_ms))
			continue;
		rc = o->state == FW_ORDER_ENDED ? sender_end_order(s, o, err) : sender_attempt_start(s, o, err);
		if (fw_mono_ms() >= until_ms) {
			sender_wake(s); /* transfers first */
			break;
		}
	}
	return rc;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static bool sender_task_is_due(int64_t *at_ms, int64_t gap_ms)
{
	int64_t now_ms = fw_mono_ms();

	if (now_ms < *at_ms)
		return false;
	*at_ms = now_ms + gap_ms;
	return true;
}

static int sender_run_tasks(struct fw_sender *s, struct fw_err *err)
{
	int rc = 0;

	if (sender_task_is_due(&s->lead_ms, s->leads ? LEAD_RENEW_MS : WAIT_MS))
		rc = sender_elect(s, err);
	if (!rc && s->leads && fw_mono_ms() >= s->look_ms)
		rc = sender_look(s, err);
	rc = rc ? rc : sender_work(s, err);
	if (!rc && s->leads && sender_task_is_due(&s->sweep_ms, SENDER_SWEEP_MS))
		rc = sender_sweep(s, err);
	return rc;
}

static bool sender_has_work(const struct fw_sender *s)
{
	int64_t now_ms = fw_config_now_ms(s->config);

	if (s->in_flight)
		return true;
	for (size_t i = 0; i < s->ready_n; i++) {
		if (sender_order_is_due(s->ready[i], now_ms))
			return true;
	}
	return false;
}

/* fw_sender_finish(): look now, and then once more if something was sent. */
static void sender_finish_begin(struct fw_sender *s)
{
	s->finish_begun = true;
	s->finish_by_ms = fw_mono_ms() + FINISH_MS;
	s->lead_ms = s->look_ms = 0;
	store_link_try_now(&s->link);
}

static void sender_finish_check(struct fw_sender *s, int rc)
{
	if (!s->finish_begun || atomic_load(&s->idle) || rc == FW_EAGAIN)
		return;
	if (s->st && s->leads && (sender_has_work(s) || !s->look_ms) && fw_mono_ms() < s->finish_by_ms)
		return;
	atomic_store(&s->idle, true);
	if (s->o.idle)
		s->o.idle(s->o.ctx);
}

static void sender_close_loop(struct fw_sender *s)
{
	s->closing = true;
	lead_leave(&s->lead, s->st);
	sender_drop_state(s);
	runner_close(s->runner);
	s->runner = NULL;
	sender_attempts_free(s);
	uv_close((uv_handle_t *)&s->tick, NULL);
	uv_close((uv_handle_t *)&s->wake, NULL);
	fw_fetcher_destroy(s->fetcher);
}

static void sender_run(struct fw_sender *s)
{
	struct fw_err err = {0};
	int rc = FW_EAGAIN;

	if (s->closing)
		return;
	sender_threads_collect(s);
	if (atomic_load(&s->finishing) && !s->finish_begun)
		sender_finish_begin(s);
	if (!store_link_wait_ms(&s->link) && store_link_get(&s->link, &err)) {
		rc = sender_run_tasks(s, &err);
		sender_store_used(s, rc, &err);
	}
	sender_finish_check(s, s->st ? rc : 0);
	if (!atomic_load(&s->stopping))
		return;
	if (!s->stop_by_ms)
		s->stop_by_ms = fw_mono_ms() + FW_MIN(s->config->drain_timeout_ms, STOP_MS);
	if (!s->in_flight || !s->st || fw_mono_ms() >= s->stop_by_ms)
		sender_close_loop(s);
}

static void sender_on_tick(uv_timer_t *t)
{
	sender_run(t->data);
}

static void sender_on_wake(uv_async_t *async)
{
	sender_run(async->data);
}

static void *sender_thread_main(void *ctx)
{
	struct fw_sender *s = ctx;

	uv_run(&s->loop, UV_RUN_DEFAULT);
	store_link_close(&s->link);
	return NULL;
}

static void sender_free(struct fw_sender *s)
{
	pthread_mutex_destroy(&s->ended_lock);
	fw_map_finish(&s->orders);
	free(s->ready);
	free(s);
}

/* The limits of an attempt: what the receiver answers does not matter, so little of it is read. */
static void sender_net_limits(struct fw_fetch_config *f)
{
	f->total_timeout_ms = FW_MIN(f->total_timeout_ms, SENDER_TIMEOUT_MS);
	f->first_byte_timeout_ms = FW_MIN(f->first_byte_timeout_ms, f->total_timeout_ms);
	f->max_body_bytes = SENDER_RESPONSE_MAX;
	f->address_concurrency = 0; /* a slow receiver must not hold up those beside it */
}

static int sender_open_handles(struct fw_sender *s, struct fw_err *err)
{
	int rc = fw_fetcher_create(&s->loop, &s->net.fetch, &s->fetcher, err);

	if (!rc && runner_fd() >= 0)
		rc = runner_open(&s->loop, runner_fd(), &s->runner, err);
	if (!rc && uv_async_init(&s->loop, &s->wake, sender_on_wake))
		rc = fw_err_set(err, FW_EIO, "orders: cannot create the event loop: %s", strerror(errno));
	if (rc) {
		runner_close(s->runner);
		fw_fetcher_destroy(s->fetcher);
		uv_run(&s->loop, UV_RUN_DEFAULT);
		return rc;
	}
	uv_timer_init(&s->loop, &s->tick);
	s->wake.data = s->tick.data = s;
	uv_timer_start(&s->tick, sender_on_tick, 0, TICK_MS);
	return 0;
}

static int sender_open_loop(struct fw_sender *s, struct fw_err *err)
{
	int rc;

	if (uv_loop_init(&s->loop))
		return fw_err_set(err, FW_EIO, "orders: cannot create the event loop: %s", strerror(errno));
	rc = sender_open_handles(s, err);
	if (rc) {
		uv_loop_close(&s->loop);
		return rc;
	}
	rc = pthread_create(&s->thread, NULL, sender_thread_main, s);
	if (rc) {
		fw_err_set(err, FW_EIO, "orders: cannot start the thread: %s", strerror(rc));
		sender_close_loop(s);
		uv_run(&s->loop, UV_RUN_DEFAULT);
		uv_loop_close(&s->loop);
		return FW_EIO;
	}
	return 0;
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
	s->link = (struct store_link){.config = o->config,
		.who = "orders",
		.waits = "deliveries wait",
		.opened = sender_opened,
		.lost = sender_lost,
		.ctx = s};
	pthread_mutex_init(&s->ended_lock, NULL);
	lead_init(&s->lead, ORDERS_LEAD_KIND);
	fw_map_init(&s->orders, (uint64_t)fw_mono_us());
	rc = fw_settings_net(o->config, SENDER_IN_FLIGHT_MAX, &s->net, err);
	if (!rc) {
		sender_net_limits(&s->net.fetch);
		rc = sender_open_loop(s, err);
	}
	if (rc) {
		sender_free(s);
		return rc;
	}
	*out = s;
	return 0;
}

void fw_sender_finish(struct fw_sender *s)
{
	atomic_store(&s->finishing, true);
	sender_wake(s);
}

bool fw_sender_is_idle(const struct fw_sender *s)
{
	return atomic_load(&s->idle);
}

bool fw_sender_leads(const struct fw_sender *s)
{
	return atomic_load(&s->leading);
}

void fw_sender_stop(struct fw_sender *s)
{
	if (!atomic_exchange(&s->stopping, true))
		sender_wake(s);
}

void fw_sender_close(struct fw_sender *s)
{
	if (!s)
		return;
	fw_sender_stop(s);
	pthread_join(s->thread, NULL);
	uv_loop_close(&s->loop);
	sender_free(s);
}
