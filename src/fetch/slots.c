/* SPDX-License-Identifier: ISC */
/*
 * A visit's slot at an address. A visit that finds no free slot waits in the limiter's queue
 * (limiter.c), without a socket or an easy handle. When it gets a slot it continues from the loop,
 * not from within the end of another visit.
 */
#include "base/cidr.h"
#include "base/clock.h"
#include "base/str.h"
#include "fetch/internal.h"

#include "base/banned.h" /* last */

void fw_visit_exclude(struct fw_fetch_priv *v, int64_t waited_us)
{
	v->start_us += waited_us;
	v->f->visit.queue_us += waited_us;
	v->f->visit.at_ms += waited_us / 1000;
}

void fw_slot_end_wait(struct fw_fetch_priv *v)
{
	int64_t waited_us = v->slot_wait_us ? fw_mono_us() - v->slot_wait_us : 0;

	v->slot_wait_us = 0;
	v->slot_waited_us += waited_us;
	fw_visit_exclude(v, waited_us);
}

/* Continue visits that got a slot when the loop runs next. */
static void slots_resume_soon(struct fw_fetcher *fr)
{
	if (fw_limiter_has_next(fr->limiter))
		fw_deferred_soon(fr);
}

void fw_slot_release(struct fw_fetch_priv *v)
{
	if (!v->fr->limiter)
		return;
	fw_slot_end_wait(v);
	fw_limiter_release(v->fr->limiter, &v->slot);
	slots_resume_soon(v->fr);
}

int fw_slot_acquire(struct fw_fetch_priv *v, const char *addrs)
{
	/* an unreadable address gets no slot; it is not connected to either */
	struct fw_str rest, first = fw_str_split(fw_str(addrs ? addrs : v->wire_url.host), ',', &rest);
	unsigned char address[16];
	int rc;

	if (first.len && first.p[0] == '[')
		first = fw_str_sub(first, 1, first.len - 1);
	if (!fw_ip_parse(first, address))
		return 0;
	rc = fw_limiter_acquire(v->fr->limiter, address, &v->slot);
	slots_resume_soon(v->fr);
	if (rc || !fw_limiter_is_waiting(&v->slot))
		return rc;
	v->slot_wait_us = fw_mono_us();
	fw_buf_reset(&v->addrs);
	if (addrs)
		fw_buf_adds(&v->addrs, addrs);
	return v->addrs.rc;
}

void fw_slots_resume(struct fw_fetcher *fr)
{
	struct fw_limiter_slot *s;

	while (fr->limiter && (s = fw_limiter_next(fr->limiter)) != NULL) {
		struct fw_fetch_priv *v = (struct fw_fetch_priv *)(void *)((char *)s -
			offsetof(struct fw_fetch_priv, slot));

		fw_slot_end_wait(v);
		if (fw_transfer_start(v, v->addrs.len ? v->addrs.p : NULL)) {
			fw_visit_no_memory(v->f);
			fw_visit_end(v);
		}
	}
}
