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

void fw_fetch_exclude(struct fw_fetch_priv *p, int64_t waited_us)
{
	p->start_us += waited_us;
	p->f->visit.queue_us += waited_us;
	p->f->visit.at_ms += waited_us / 1000;
}

void fw_slot_end_wait(struct fw_fetch_priv *p)
{
	int64_t waited_us = p->slot_wait_us ? fw_mono_us() - p->slot_wait_us : 0;

	p->slot_wait_us = 0;
	p->slot_waited_us += waited_us;
	fw_fetch_exclude(p, waited_us);
}

/* Continue visits that got a slot when the loop runs next. */
static void slots_resume_soon(struct fw_fetcher *fr)
{
	if (fw_limiter_has_next(fr->limiter))
		fw_deferred_soon(fr);
}

void fw_slot_release(struct fw_fetch_priv *p)
{
	if (!p->fr->limiter)
		return;
	fw_slot_end_wait(p);
	fw_limiter_release(p->fr->limiter, &p->slot);
	slots_resume_soon(p->fr);
}

int fw_slot_acquire(struct fw_fetch_priv *p, const char *addrs)
{
	/* an unreadable address gets no slot; it is not connected to either */
	struct fw_str rest, first = fw_str_split(fw_str(addrs ? addrs : p->wire_url.host), ',', &rest);
	unsigned char address[16];
	int rc;

	if (first.len && first.p[0] == '[')
		first = fw_str_sub(first, 1, first.len - 1);
	if (!fw_ip_parse(first, address))
		return 0;
	rc = fw_limiter_acquire(p->fr->limiter, address, &p->slot);
	slots_resume_soon(p->fr);
	if (rc || !fw_limiter_is_waiting(&p->slot))
		return rc;
	p->slot_wait_us = fw_mono_us();
	fw_buf_reset(&p->addrs);
	if (addrs)
		fw_buf_adds(&p->addrs, addrs);
	return p->addrs.rc;
}

void fw_slots_resume(struct fw_fetcher *fr)
{
	struct fw_limiter_slot *s;

	while (fr->limiter && (s = fw_limiter_next(fr->limiter)) != NULL) {
		struct fw_fetch_priv *p = (struct fw_fetch_priv *)(void *)((char *)s -
			offsetof(struct fw_fetch_priv, slot));

		fw_slot_end_wait(p);
		if (fw_transfer_start(p, p->addrs.len ? p->addrs.p : NULL)) {
			fw_fetch_no_memory(p->f);
			fw_fetch_end(p);
		}
	}
}
