/* SPDX-License-Identifier: ISC */
/*
 * Is it the others, or is it us? When many hosts that have nothing to do with each other fail at once while none answers, our own
 * network is down, and no feed is to be charged with it (POL-10, issue 6). One detector belongs to one thread; time comes in.
 *
 *	clear  --FW_WEATHER_DOWN_N hosts in a row cannot be reached, within FW_WEATHER_WINDOW_MS, fewer than FW_WEATHER_UP_N answer between-->  down
 *	down   --FW_WEATHER_UP_N hosts answer, one after the other-->  clear
 *
 * A single host that answers proves little: it may stand in our own house. No evidence is a feed that had failed before, a server that let
 * itself be connected to and then was silent, and an attempt that began before hosts last answered.
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
	int64_t alive_ms;   /* when FW_WEATHER_UP_N hosts had answered last */
	bool down;
	int64_t since_ms;   /* down: the first failure of that row */
};

/* What the end of a visit says of our own network. */
enum fw_weather_sign {
	FW_WEATHER_NOTHING,  /* our own fault of another kind, refused by our own guard: nothing was asked */
	FW_WEATHER_ANSWERED, /* a host was there, whatever it said */
	FW_WEATHER_STALLED,  /* there was a connection, and then nothing in time */
	FW_WEATHER_FAILED,   /* no name, no connection */
};
enum fw_weather_sign fw_weather_sign(enum fw_visit_kind kind, bool connected);

struct fw_weather_visit { /* that has ended */
	uint64_t host;       /* any number that stands for it */
	enum fw_weather_sign sign;
	bool expected;       /* the feed's last visit failed too */
	int64_t begin_ms, now_ms; /* the latter must not go back */
};
/* Returns whether its failure is to be laid at our own door. */
bool fw_weather_seen(struct fw_weather *w, const struct fw_weather_visit *v);
/* Is a row of failures under way that may yet turn out to be our own? */
bool fw_weather_doubtful(const struct fw_weather *w);

#endif
