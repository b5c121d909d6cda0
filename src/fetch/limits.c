/* SPDX-License-Identifier: ISC */
/* Time limits of visits that libcurl does not check. */
#include "base/clock.h"
#include "fetch/internal.h"

#define NO_PROGRESS_US 2000000

/*
 * Does it block others? True if others wait for buffer space, and this transfer makes little
 * progress and either holds much of the buffer or is the one that may exceed it. Otherwise a few
 * servers that send much and then trickle would stop all others (LIM-06).
 */
static bool transfer_blocks_others(const struct fw_fetch_priv *p, int64_t now_us)
{
	const struct fw_fetcher *fr = p->fr;

	if (!fr->paused_n || p->paused || !p->buffered || now_us - p->progress_us < NO_PROGRESS_US)
		return false;
	return p == fr->exempt || p->buffered >= fr->c.max_buffered_bytes / 32;
}

/* At least half of total_timeout must remain after the wait for a slot. */
static bool slot_wait_is_too_long(struct fw_fetch_priv *p, int64_t now_us)
{
	int64_t waited_us = p->slot_waited_us + now_us - p->slot_wait_us;

	if (waited_us < p->fr->c.total_timeout_ms * 1000 / 2 && now_us < p->deadline_us)
		return false;
	fw_slot_end_wait(p);
	fw_classify_no_slot(p);
	p->f->deferred = p->n == 0;
	return true;
}

/* True: the visit has exceeded a time limit, and its kind is set. */
static bool fetch_is_overdue(struct fw_fetch_priv *p, int64_t now_us)
{
	const struct fw_fetch_config *c = &p->fr->c;

	if (p->start_failed || p->further_wait_us)
		return false;
	if (fw_limiter_is_waiting(&p->slot))
		return slot_wait_is_too_long(p, now_us);
	if (!p->in_multi) {
		if (now_us - p->begin_us < c->connect_timeout_ms * 1000 && now_us < p->deadline_us)
			return false;
		if (p->slot_waited_us && now_us - p->begin_us < c->connect_timeout_ms * 1000)
			fw_classify_no_slot(p);
		else
			fw_fetch_set_outcome(p->f, FW_VISIT_DNS,
				"the host name was not resolved within %lld ms (connect_timeout)",
				(long long)c->connect_timeout_ms);
		return true;
	}
	if (transfer_blocks_others(p, now_us)) {
		fw_fetch_set_outcome(p->f, FW_VISIT_TIMEOUT,
			"less than %zu KiB received in %d s while other transfers waited for buffer space",
			FW_PROGRESS_BYTES >> 10, NO_PROGRESS_US / 1000000);
		return true;
	}
	if (!p->ready_us || p->response.header_bytes || now_us - p->ready_us < c->first_byte_timeout_ms * 1000)
		return false;
	fw_fetch_set_outcome(p->f, FW_VISIT_TIMEOUT,
		"no response within %lld ms of the connection (first_byte_timeout)",
		(long long)c->first_byte_timeout_ms);
	return true;
}

void fw_limits_tick(uv_timer_t *t)
{
	struct fw_fetcher *fr = t->data;
	int64_t now_us = fw_mono_us();
	struct fw_fetch_priv *p = fr->in_flight;

	while (p) {
		if (fetch_is_overdue(p, now_us)) {
			fw_fetch_end(p);
			p = fr->in_flight; /* done() may have changed the list */
		} else {
			p = p->next;
		}
	}
}
