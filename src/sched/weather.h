/* SPDX-License-Identifier: ISC */
/*
 * Is it the others, or is it us? When many hosts that have nothing to do with each other fail at once while none answers, our own
 * network is down, and no feed is to be charged with it (POL-10, issue 6). One detector belongs to one thread; time comes in.
 *
 *	clear  --FW_WEATHER_DOWN_N hosts in a row fail, within FW_WEATHER_WINDOW_MS, fewer than FW_WEATHER_UP_N answer between-->  down
 *	down   --FW_WEATHER_UP_N hosts answer, one after the other-->  clear
 *
 * A single host that answers proves little: it may stand in our own house. A feed that had failed before is no evidence.
 */
#ifndef FW_SCHED_WEATHER_H
#define FW_SCHED_WEATHER_H

#include "feedwheel/store.h"

#define FW_WEATHER_DOWN_N 8
#define FW_WEATHER_UP_N 2
#define FW_WEATHER_WINDOW_MS (INT64_C(10) * 60 * 1000)

struct fw_weather { /* zeroed: clear */
	struct { uint64_t host; int64_t at_ms; } failed[FW_WEATHER_DOWN_N]; /* in a row, each once, oldest first */
	uint64_t answered[FW_WEATHER_UP_N]; /* since the oldest of them; when down: since the last failure */
	uint32_t failed_n, answered_n;
	bool down;
	int64_t since_ms;   /* down: the first failure of that row */
};

/* What the end of a visit says of our own network. */
enum fw_weather_sign {
	FW_WEATHER_NOTHING,  /* our own fault of another kind, refused by our own guard: nothing was asked */
	FW_WEATHER_ANSWERED, /* a host was there, whatever it said */
	FW_WEATHER_FAILED,   /* no name, no connection, no answer in time */
};
enum fw_weather_sign fw_weather_sign(enum fw_visit_kind kind);

/*
 * A visit to this host (any number that stands for it) has ended. expected: the feed's last visit failed too. now_ms must not go back.
 * Returns whether a failure is to be laid at our own door.
 */
bool fw_weather_seen(struct fw_weather *w, uint64_t host, enum fw_weather_sign sign, bool expected, int64_t now_ms);

#endif
