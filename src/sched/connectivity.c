/* SPDX-License-Identifier: ISC */
/*
 * Why a row of failures and not a rate: a pool of transfers fills with failures when the slow ones
 * end first, and a minute that began well may end in an outage. What distinguishes an outage is
 * that no host responds in between. Hosts count, not visits: a hosting provider with a thousand
 * blogs that is down is one host. Expected failures count for nothing, because many feeds are dead.
 * But a feed that failed since the last response may have been the first of this outage. Late in a
 * run only the slowest failures are left; they began while other hosts responded, so such attempts
 * do not count.
 *
 * Why a few hosts suffice: an installation with five feeds never sees eight hosts fail. So three
 * are enough when no host has responded for a while. A wrong verdict does little harm: the next
 * response ends it, and later failures are charged.
 */
#include <assert.h>
#include <string.h>

#include "sched/connectivity.h"

enum fw_connectivity_sign fw_connectivity_sign(enum fw_visit_kind kind, bool connected, bool refused)
{
	switch (kind) {
	case FW_VISIT_DNS:
	case FW_VISIT_CONNECT:
		return refused ? FW_CONNECTIVITY_REFUSED : FW_CONNECTIVITY_FAILED;
	case FW_VISIT_TIMEOUT:
		return connected ? FW_CONNECTIVITY_STALLED : FW_CONNECTIVITY_FAILED;
	case FW_VISIT_NONE:
	case FW_VISIT_BLOCKED:
	case FW_VISIT_CRASH:
	case FW_VISIT_LOCAL:
	case FW_VISIT_PUSHED:
	case FW_VISIT_KIND_N:
		return FW_CONNECTIVITY_NO_SIGN;
	default:
		return FW_CONNECTIVITY_RESPONDED;
	}
}

static void connectivity_failed(struct fw_connectivity *w, uint64_t host, bool refused, int64_t now_ms)
{
	uint32_t old_n = 0;

	assert(w->failed_n < FW_CONNECTIVITY_DOWN_N);
	w->responded_n = w->down ? 0 : w->responded_n;
	while (old_n < w->failed_n && now_ms - w->failed[old_n].at_ms > FW_CONNECTIVITY_WINDOW_MS)
		old_n++;
	w->failed_n -= old_n;
	memmove(w->failed, w->failed + old_n, w->failed_n * sizeof(*w->failed));
	for (uint32_t i = 0; i < w->failed_n; i++) {
		if (w->failed[i].host == host)
			return;
	}
	if (w->down && !w->few)
		return;
	if (!w->failed_n) /* a row starts */
		w->responded_n = 0;
	w->failed[w->failed_n].host = host;
	w->failed[w->failed_n].refused = refused;
	w->failed[w->failed_n++].at_ms = now_ms;
	if (w->failed_n < FW_CONNECTIVITY_DOWN_N)
		return;
	w->since_ms = w->down ? w->since_ms : w->failed[0].at_ms;
	w->down = true;
	w->few = false;
	w->failed_n = w->responded_n = 0;
}

static void connectivity_responded(struct fw_connectivity *w, uint64_t host, int64_t now_ms)
{
	assert(w->responded_n < FW_CONNECTIVITY_UP_N);
	w->responded_ms = now_ms;
	for (uint32_t i = 0; i < w->responded_n; i++) {
		if (w->responded[i] == host)
			return;
	}
	w->responded[w->responded_n++] = host;
	if (w->responded_n < FW_CONNECTIVITY_UP_N && !w->few)
		return;
	w->up_ms = w->down ? now_ms : w->up_ms;
	w->down = w->few = false;
	w->alive_ms = now_ms;
	w->failed_n = w->responded_n = 0;
}

bool fw_connectivity_count(struct fw_connectivity *w, const struct fw_connectivity_visit *v)
{
	bool expected = v->failing && (!w->responded_ms || v->polled_ms <= w->responded_ms);

	if (v->sign >= FW_CONNECTIVITY_REFUSED && !expected && v->begin_ms >= w->alive_ms)
		connectivity_failed(w, v->host, v->sign == FW_CONNECTIVITY_REFUSED, v->now_ms);
	else if (v->sign == FW_CONNECTIVITY_RESPONDED)
		connectivity_responded(w, v->host, v->now_ms);
	return v->sign >= FW_CONNECTIVITY_STALLED &&
		(w->down || (w->up_ms && v->begin_ms < w->up_ms + FW_CONNECTIVITY_AFTER_MS));
}

bool fw_connectivity_is_doubtful(const struct fw_connectivity *w, int64_t begin_ms)
{
	return !w->down && begin_ms >= w->alive_ms;
}

bool fw_connectivity_conclude(struct fw_connectivity *w)
{
	uint32_t silent_n = 0;

	for (uint32_t i = 0; i < w->failed_n; i++)
		silent_n += !w->failed[i].refused;
	if (w->down || silent_n < FW_CONNECTIVITY_FEW_N || silent_n < w->failed_n || w->responded_n ||
		(w->responded_ms && w->failed[0].at_ms - w->responded_ms < FW_CONNECTIVITY_QUIET_MS))
		return w->down;
	w->down = w->few = true;
	w->since_ms = w->failed[0].at_ms;
	return true;
}
