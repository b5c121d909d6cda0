/* SPDX-License-Identifier: ISC */
/* Time limits of visits that libcurl does not check. */
#include "base/clock.h"
#include "fetch/internal.h"

#include "base/banned.h" /* last */

#define NO_PROGRESS_US 2000000

/*
 * Does it block others? True if others wait for buffer space, and this transfer makes little
 * progress and either holds much of the buffer or is the one that may exceed it. Otherwise a few
 * servers that send much and then trickle would stop all others (LIM-06).
 */
static bool transfer_blocks_others(const struct fw_fetch_priv *v, int64_t now_us)
{
	const struct fw_fetcher *fr = v->fr;

	if (!fr->paused_n || v->paused || !v->buffered || now_us - v->progress_us < NO_PROGRESS_US)
		return false;
	return v == fr->exempt || v->buffered >= fr->c.max_buffered_bytes / 32;
}

/* At least half of total_timeout must remain after the wait for a slot. */
static bool slot_wait_is_too_long(struct fw_fetch_priv *v, int64_t now_us)
{
	int64_t waited_us = v->slot_waited_us + now_us - v->slot_wait_us;

	if (waited_us < v->fr->c.total_timeout_ms * 1000 / 2 && now_us < v->deadline_us)
		return false;
	fw_slot_end_wait(v);
	fw_classify_no_slot(v);
	v->f->deferred = v->n == 0;
	return true;
}

/* True: the visit has exceeded a time limit, and its kind is set. */
static bool visit_is_overdue(struct fw_fetch_priv *v, int64_t now_us)
{
	const struct fw_fetch_config *c = &v->fr->c;

	if (v->start_failed || v->further_wait_us)
		return false;
	if (fw_limiter_is_waiting(&v->slot))
		return slot_wait_is_too_long(v, now_us);
	if (!v->in_multi) {
		if (now_us - v->begin_us < c->connect_timeout_ms * 1000 && now_us < v->deadline_us)
			return false;
		if (v->slot_waited_us && now_us - v->begin_us < c->connect_timeout_ms * 1000)
			fw_classify_no_slot(v);
		else
			fw_visit_set_outcome(v->f, FW_VISIT_DNS,
				"the host name was not resolved within %lld ms (connect_timeout)",
				(long long)c->connect_timeout_ms);
		return true;
	}
	if (transfer_blocks_others(v, now_us)) {
		fw_visit_set_outcome(v->f, FW_VISIT_TIMEOUT,
			"less than %zu KiB received in %d s while other transfers waited for buffer space",
			FW_PROGRESS_BYTES >> 10, NO_PROGRESS_US / 1000000);
		return true;
	}
	if (!v->ready_us || v->response.header_bytes || now_us - v->ready_us < c->first_byte_timeout_ms * 1000)
		return false;
	fw_visit_set_outcome(v->f, FW_VISIT_TIMEOUT,
		"no response within %lld ms of the connection (first_byte_timeout)",
		(long long)c->first_byte_timeout_ms);
	return true;
}

void fw_limits_tick(uv_timer_t *t)
{
	struct fw_fetcher *fr = t->data;
	int64_t now_us = fw_mono_us();
	struct fw_fetch_priv *v = fr->in_flight;

	while (v) {
		if (visit_is_overdue(v, now_us)) {
			fw_visit_end(v);
			v = fr->in_flight; /* done() may have changed the list */
		} else {
			v = v->next;
		}
	}
}
