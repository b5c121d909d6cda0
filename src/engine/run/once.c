/* SPDX-License-Identifier: ISC */
/* The store thread in a run --once: the forecast, the end of the run, and the time it took. */
#include <stdlib.h>

#include "api/sender.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/run/due_rows.h"
#include "engine/settings.h"
#include "engine/run/store_thread.h"

/* limit of the wait for hosts that pause, here or at other workers */
#define HOST_WAIT_MAX_MS FW_MINUTE_MS
#define OTHERS_CHECK_MS 50
#define OTHERS_CHECK_SHARE 20 /* queries take at most 1/20 of the store's time */

static int once_forecast(struct store_thread *s, const struct due_rows *due)
{
	const struct worker_options *o = s->ch->o;
	struct fw_plan_item *item = calloc(due->n, sizeof(*item));
	struct fw_plan_total total;
	struct fw_plan_rules r;
	int rc;

	fw_settings_plan(s->ch->config, s->ch->slots * (uint32_t)o->workers, &r);
	if (item)
		due_rows_items(due, item);
	rc = item ? fw_plan_simulate(&r, item, due->n, NULL, &total) : FW_ENOMEM;
	if (!rc) {
		o->shared->forecast.known = (int64_t)due->known;
		o->shared->forecast.feeds = (int64_t)due->n;
		o->shared->forecast.total_us = total.total_us;
		fw_debug("%zu feeds, %zu of them of known duration: expected to take %lld ms", due->n, due->known,
			(long long)(total.total_us / 1000));
	}
	free(item);
	return rc;
}

int once_begin(struct store_thread *s, struct fw_err *err)
{
	const struct worker_options *o = s->ch->o;
	struct due_rows due = {.row = NULL};
	int rc = fw_store_due_list(s->st, o->due_before_ms, 0, due_rows_add, &due, err);

	if (!rc && due.known)
		rc = once_forecast(s, &due);
	if (!rc)
		atomic_store(&o->shared->total, (int64_t)due.n);
	free(due.row);
	return rc == FW_ENOMEM ? fw_no_memory(err) : rc;
}

/* Publish the measured lower bounds: no fetch plan could have been faster. */
static void once_publish_measured(struct store_thread *s)
{
	struct worker_shared *sh = s->ch->o->shared;
	struct fw_arena mem;
	struct fw_feed feed;

	if (!s->bounds)
		return;
	sh->measured = *fw_plan_bounds_get(s->bounds);
	fw_arena_init(&mem, 0);
	if (sh->measured.host_us && s->st &&
		!fw_store_feed_find(s->st, sh->measured.host_item, FW_STR_NONE, &mem, &feed, NULL))
		(void)fw_store_host(feed.url, sh->measured_host, sizeof(sh->measured_host));
	fw_arena_finish(&mem);
}

/*
 * Do other workers still fetch what is due? A worker of a continuous run may never be idle, so only
 * the store can tell.
 */
static bool once_others_fetch(struct store_thread *s, size_t left)
{
	int64_t began_ms = fw_mono_ms(), n, due_ms;
	struct fw_err err;

	if (!s->st || store_link_is_down(&s->link) || began_ms < s->others_check_at_ms)
		return true;
	if (fw_store_pending(s->st, s->ch->o->due_before_ms, &n, &due_ms, &err))
		return true; /* the next step fails too, and logs it */
	s->others_check_at_ms = fw_mono_ms() + FW_MAX(OTHERS_CHECK_MS, OTHERS_CHECK_SHARE * (fw_mono_ms() - began_ms));
	if (!s->others_ms || n != s->others_n)
		s->others_ms = began_ms;
	s->others_n = n;
	return n > (int64_t)left && began_ms - s->others_ms < HOST_WAIT_MAX_MS;
}

/* Deliver what is due before the run ends. */
static bool once_orders_are_sent(struct store_thread *s)
{
	if (!s->ch->sender || atomic_load(&s->ch->stopping))
		return true;
	if (!s->sender_finishes)
		fw_sender_finish(s->ch->sender);
	s->sender_finishes = true;
	return fw_sender_is_idle(s->ch->sender);
}

bool once_is_finished(struct store_thread *s)
{
	size_t left;
	bool others;

	if (!s->once_over &&
		(!owner_is_finished(s->owner, HOST_WAIT_MAX_MS, &left, &others) ||
			(others && once_others_fetch(s, left))))
		return false;
	if (!s->once_over) {
		if (left)
			fw_info("%s left for a later run, because a host wants a longer pause",
				FW_COUNT_OF((int64_t)left, "feed is", "feeds are"));
		s->once_over = true;
		s->once_over_ms = fw_mono_ms();
		once_publish_measured(s);
		return true;
	}
	if (!once_orders_are_sent(s))
		return false;
	if (!atomic_exchange(&s->ch->finished, true))
		uv_async_send(&s->ch->to_loop);
	return false;
}
