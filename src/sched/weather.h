/* SPDX-License-Identifier: ISC */
/*
 * Is it the others, or is it us? When many hosts that have nothing to do with each other fail at once while none answers, our own
 * network is down, and no feed is to be charged with it (POL-10, issue 6). One detector belongs to one thread; time comes in.
 *
 *	clear  --FW_WEATHER_DOWN_N hosts in a row cannot be reached, within FW_WEATHER_WINDOW_MS, fewer than FW_WEATHER_UP_N answer between-->  down
 *	clear  --nothing more is to come, FW_WEATHER_FEW_N such hosts, and nobody at all said a word: fw_weather_conclude()-->  down, by few
 *	down   --FW_WEATHER_UP_N hosts answer, one after the other; by few: one answers-->  clear
 *
 * A single host that answers proves little: it may stand in our own house. So may what says no (there is no such name, nobody listens at that
 * port): a firewall or a name server of our own; but a few of those are more likely what they say. No evidence is a feed that had failed
 * before while others answered, a server that let itself be connected to and then was silent, and an attempt that began before hosts last
 * answered.
 *
 * An attempt that began while it was down, or just afterwards, is our own failure too when it ends later: connections begun then are not
 * asked for again by TCP for seconds, and names that could not be looked up are remembered.
 *
 * The first failures of a row come before its verdict. Who can wait keeps them while they are doubtful, so that nobody is charged.
 */
#ifndef FW_SCHED_WEATHER_H
#define FW_SCHED_WEATHER_H

#include "feedwheel/store.h"

#define FW_WEATHER_DOWN_N 8
#define FW_WEATHER_FEW_N 3
#define FW_WEATHER_UP_N 2
#define FW_WEATHER_WINDOW_MS (INT64_C(60) * 60 * 1000)
#define FW_WEATHER_AFTER_MS (INT64_C(15) * 1000)
#define FW_WEATHER_QUIET_MS (INT64_C(2) * 60 * 1000) /* so long nobody answered before the few */

struct fw_weather { /* zeroed: clear */
	struct { uint64_t host; int64_t at_ms; bool refused; } failed[FW_WEATHER_DOWN_N]; /* in a row, each once, oldest first */
	uint64_t answered[FW_WEATHER_UP_N]; /* since the oldest of them; when down: since the last failure */
	uint32_t failed_n, answered_n;
	int64_t heard_ms;   /* when a host answered last; 0: none yet */
	int64_t alive_ms;   /* when FW_WEATHER_UP_N hosts had answered last */
	bool down, few;     /* few: and by no more than FW_WEATHER_FEW_N of them */
	int64_t since_ms;   /* down: the first failure of that row */
	int64_t up_ms;      /* when it was over; 0: it has not been down */
};

/* What the end of a visit says of our own network. */
enum fw_weather_sign {
	FW_WEATHER_NOTHING,  /* our own fault of another kind, refused by our own guard: nothing was asked */
	FW_WEATHER_ANSWERED, /* a host was there, whatever it said */
	FW_WEATHER_STALLED,  /* there was a connection, and then nothing in time */
	FW_WEATHER_REFUSED,  /* no name, no connection: somebody said so */
	FW_WEATHER_FAILED,   /* no name server that knows, no road, no connection in time */
};
/* connected: there was a connection. refused: there was none because somebody said no. */
enum fw_weather_sign fw_weather_sign(enum fw_visit_kind kind, bool connected, bool refused);

struct fw_weather_visit { /* that has ended */
	uint64_t host;       /* any number that stands for it */
	enum fw_weather_sign sign;
	bool failing;        /* the feed's last visit failed too */
	int64_t asked_ms;    /* ... and when that was, by the clock of the other two; before it began to count: negative */
	int64_t begin_ms, now_ms; /* the latter must not go back */
};
/* Returns whether its failure is to be laid at our own door. */
bool fw_weather_seen(struct fw_weather *w, const struct fw_weather_visit *v);
/* May a failure of an attempt that began then yet turn out to be our own? */
bool fw_weather_doubtful(const struct fw_weather *w, int64_t begin_ms);
/* Nothing more is to come that could tell, or nobody can wait longer: it is decided by what there is. Returns whether we are down. */
bool fw_weather_conclude(struct fw_weather *w);

#endif
