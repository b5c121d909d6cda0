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

#include "sched/weather.h"
#include "base/banned.h"

enum fw_weather_sign fw_weather_sign(enum fw_visit_kind kind, bool connected, bool refused)
{
	switch (kind) {
	case FW_VISIT_DNS:
	case FW_VISIT_CONNECT:
		return refused ? FW_WEATHER_REFUSED : FW_WEATHER_FAILED;
	case FW_VISIT_TIMEOUT:
		return connected ? FW_WEATHER_STALLED : FW_WEATHER_FAILED;
	case FW_VISIT_NONE:
	case FW_VISIT_BLOCKED:
	case FW_VISIT_CRASH:
	case FW_VISIT_LOCAL:
	case FW_VISIT_PUSHED:
	case FW_VISIT_KIND_N:
		return FW_WEATHER_NOTHING;
	default:
		return FW_WEATHER_ANSWERED;
	}
}

static void failed(struct fw_weather *w, uint64_t host, bool refused, int64_t now_ms)
{
	uint32_t old_n = 0;

	assert(w->failed_n < FW_WEATHER_DOWN_N);
	w->answered_n = w->down ? 0 : w->answered_n;
	while (old_n < w->failed_n && now_ms - w->failed[old_n].at_ms > FW_WEATHER_WINDOW_MS)
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
		w->answered_n = 0;
	w->failed[w->failed_n].host = host;
	w->failed[w->failed_n].refused = refused;
	w->failed[w->failed_n++].at_ms = now_ms;
	if (w->failed_n < FW_WEATHER_DOWN_N)
		return;
	w->since_ms = w->down ? w->since_ms : w->failed[0].at_ms;
	w->down = true;
	w->few = false;
	w->failed_n = w->answered_n = 0;
}

static void answered(struct fw_weather *w, uint64_t host, int64_t now_ms)
{
	assert(w->answered_n < FW_WEATHER_UP_N);
	w->heard_ms = now_ms;
	for (uint32_t i = 0; i < w->answered_n; i++) {
		if (w->answered[i] == host)
			return;
	}
	w->answered[w->answered_n++] = host;
	if (w->answered_n < FW_WEATHER_UP_N && !w->few)
		return;
	w->up_ms = w->down ? now_ms : w->up_ms;
	w->down = w->few = false;
	w->alive_ms = now_ms;
	w->failed_n = w->answered_n = 0;
}

bool fw_weather_seen(struct fw_weather *w, const struct fw_weather_visit *v)
{
	bool expected = v->failing && (!w->heard_ms || v->asked_ms <= w->heard_ms);

	if (v->sign >= FW_WEATHER_REFUSED && !expected && v->begin_ms >= w->alive_ms)
		failed(w, v->host, v->sign == FW_WEATHER_REFUSED, v->now_ms);
	else if (v->sign == FW_WEATHER_ANSWERED)
		answered(w, v->host, v->now_ms);
	return v->sign >= FW_WEATHER_STALLED && (w->down || (w->up_ms && v->begin_ms < w->up_ms + FW_WEATHER_AFTER_MS));
}

bool fw_weather_doubtful(const struct fw_weather *w, int64_t begin_ms)
{
	return !w->down && begin_ms >= w->alive_ms;
}

bool fw_weather_conclude(struct fw_weather *w)
{
	uint32_t silent_n = 0;

	for (uint32_t i = 0; i < w->failed_n; i++)
		silent_n += !w->failed[i].refused;
	if (w->down || silent_n < FW_WEATHER_FEW_N || silent_n < w->failed_n || w->answered_n ||
	    (w->heard_ms && w->failed[0].at_ms - w->heard_ms < FW_WEATHER_QUIET_MS))
		return w->down;
	w->down = w->few = true;
	w->since_ms = w->failed[0].at_ms;
	return true;
}
