/* SPDX-License-Identifier: ISC */
/* Time limits of visits that libcurl does not check. */
#include "base/clock.h"
#include "fetch/internal.h"

#include "base/banned.h" /* last */

#define IN_THE_WAY_US 2000000

/*
 * Does it block others? True if others wait for buffer space, and this transfer makes little
 * progress and either holds much of the buffer or is the one that may exceed it. Otherwise a few
 * servers that send much and then trickle would stop all others (LIM-06).
 */
static bool in_the_way(const struct fw_fetch_priv *v, int64_t now_us)
{
	const struct fw_fetcher *fr = v->fr;

	if (!fr->paused_n || v->paused || !v->held || now_us - v->mark_us < IN_THE_WAY_US)
		return false;
	return v == fr->ahead || v->held >= fr->c.max_buffered_bytes / 32;
}

/* At least half of total_timeout must remain after the wait for a slot. */
static bool line_too_long(struct fw_fetch_priv *v, int64_t now_us)
{
	int64_t waited_us = v->f->visit.queue_us + now_us - v->seat_us;

	if (waited_us < v->fr->c.total_timeout_ms * 1000 / 2 && now_us < v->deadline_us)
		return false;
	fw_seat_waited(v);
	fw_judge_busy(v);
	v->f->put_off = v->n == 0;
	return true;
}

/* True: the visit has exceeded a time limit, and its kind is set. */
static bool overdue(struct fw_fetch_priv *v, int64_t now_us)
{
	const struct fw_fetch_config *c = &v->fr->c;

	if (v->late)
		return false;
	if (fw_crowd_waits(&v->seat))
		return line_too_long(v, now_us);
	if (!v->in_multi) {
		if (now_us - v->hop_us < c->connect_timeout_ms * 1000 && now_us < v->deadline_us)
			return false;
		if (v->f->visit.queue_us && now_us - v->hop_us < c->connect_timeout_ms * 1000)
			fw_judge_busy(v);
		else
			fw_visit_verdict(v->f, FW_VISIT_DNS, "the host name was not resolved within %lld ms (connect_timeout)",
				(long long)c->connect_timeout_ms);
		return true;
	}
	if (in_the_way(v, now_us)) {
		fw_visit_verdict(v->f, FW_VISIT_TIMEOUT, "less than %zu KiB received in %d s while other transfers waited for buffer space", FW_STRIDE >> 10,
			IN_THE_WAY_US / 1000000);
		return true;
	}
	if (!v->ready_us || v->reply.header_bytes || now_us - v->ready_us < c->first_byte_timeout_ms * 1000)
		return false;
	fw_visit_verdict(v->f, FW_VISIT_TIMEOUT, "no response within %lld ms of the connection (first_byte_timeout)",
		(long long)c->first_byte_timeout_ms);
	return true;
}

void fw_limits_tick(uv_timer_t *t)
{
	struct fw_fetcher *fr = t->data;
	int64_t now_us = fw_mono_us();
	struct fw_fetch_priv *v = fr->flying;

	while (v) {
		if (overdue(v, now_us)) {
			fw_visit_end(v);
			v = fr->flying; /* done() may have changed the list */
		} else {
			v = v->next;
		}
	}
}
