/* SPDX-License-Identifier: ISC */
/*
 * A visit's slot at an address. A visit that finds no free slot waits in the limiter's queue
 * (crowd.c), without a socket or an easy handle. When it gets a slot it continues from the loop,
 * not from within the end of another visit.
 */
#include "base/cidr.h"
#include "base/clock.h"
#include "base/str.h"
#include "fetch/internal.h"

#include "base/banned.h" /* last */

void fw_seat_waited(struct fw_fetch_priv *v)
{
	int64_t waited_us = v->seat_us ? fw_mono_us() - v->seat_us : 0;

	v->seat_us = 0;
	v->start_us += waited_us;
	v->f->visit.queue_us += waited_us;
	v->f->visit.at_ms += waited_us / 1000;
}

/* Continue visits that got a slot when the loop runs next. */
static void call_soon(struct fw_fetcher *fr)
{
	if (fw_crowd_calls(fr->crowd))
		fw_late_soon(fr);
}

void fw_seat_leave(struct fw_fetch_priv *v)
{
	if (!v->fr->crowd)
		return;
	fw_seat_waited(v);
	fw_crowd_leave(v->fr->crowd, &v->seat);
	call_soon(v->fr);
}

int fw_seat_take(struct fw_fetch_priv *v, const char *addrs)
{
	/* an unreadable address gets no slot; it is not connected to either */
	struct fw_str rest, first = fw_str_split(fw_str(addrs ? addrs : v->hop.host), ',', &rest);
	unsigned char address[16];
	int rc;

	if (first.len && first.p[0] == '[')
		first = fw_str_sub(first, 1, first.len - 1);
	if (!fw_ip_parse(first, address))
		return 0;
	rc = fw_crowd_enter(v->fr->crowd, address, &v->seat);
	call_soon(v->fr);
	if (rc || !fw_crowd_waits(&v->seat))
		return rc;
	v->seat_us = fw_mono_us();
	fw_buf_reset(&v->addrs);
	if (addrs)
		fw_buf_adds(&v->addrs, addrs);
	return v->addrs.rc;
}

void fw_seats_call(struct fw_fetcher *fr)
{
	struct fw_crowd_seat *s;

	while (fr->crowd && (s = fw_crowd_next(fr->crowd)) != NULL) {
		struct fw_fetch_priv *v = (struct fw_fetch_priv *)(void *)((char *)s - offsetof(struct fw_fetch_priv, seat));

		fw_seat_waited(v);
		if (fw_transfer_start(v, v->addrs.len ? v->addrs.p : NULL)) {
			fw_visit_no_memory(v->f);
			fw_visit_end(v);
		}
	}
}
