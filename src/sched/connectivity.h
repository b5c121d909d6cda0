/* SPDX-License-Identifier: ISC */
/*
 * Detects an outage of our own network, so that no feed is charged with it (POL-10, issue 6). The
 * sign is that many unrelated hosts fail in a row and none responds in between. States:
 *
 *   up -> down       FW_CONNECTIVITY_DOWN_N hosts in a row cannot be reached within
 *                    FW_CONNECTIVITY_WINDOW_MS, and fewer than FW_CONNECTIVITY_UP_N hosts
 *                    respond in between.
 *   up -> down, few  fw_connectivity_conclude(): at least FW_CONNECTIVITY_FEW_N hosts timed out
 *                    without any sign, none of the row was refused, and no host has responded
 *                    lately.
 *   down -> up       FW_CONNECTIVITY_UP_N hosts respond in a row; when down by few, one host is
 *                    enough.
 *
 * One host that responds proves little: it may be on our own LAN. A refusal (NXDOMAIN, RST) proves
 * little too: a firewall or a name server of ours may send it. So refusals count towards the many,
 * but not towards the few, where they are probably genuine. These count for nothing: a feed that
 * had failed before while others responded; a server that accepted the connection and then stalled;
 * an attempt that began before hosts last responded.
 *
 * An attempt that began during an outage, or within FW_CONNECTIVITY_AFTER_MS after it, is
 * attributed to our network too: TCP retransmits only after seconds, and failed name lookups are
 * cached.
 *
 * The first failures of a row precede its verdict. A caller that can wait defers them while
 * fw_connectivity_is_doubtful() holds. Pure: time comes in. One detector belongs to one thread.
 */
#ifndef FW_SCHED_CONNECTIVITY_H
#define FW_SCHED_CONNECTIVITY_H

#include "feedwheel/store.h"

#define FW_CONNECTIVITY_DOWN_N 8
#define FW_CONNECTIVITY_FEW_N 3
#define FW_CONNECTIVITY_UP_N 2
#define FW_CONNECTIVITY_WINDOW_MS (INT64_C(60) * 60 * 1000)
#define FW_CONNECTIVITY_AFTER_MS (INT64_C(15) * 1000)
/* no host responded for this long before the few failed */
#define FW_CONNECTIVITY_QUIET_MS (INT64_C(2) * 60 * 1000)

/* zeroed: up */
struct fw_connectivity {
	/* the row of failed hosts, oldest first, each once */
	struct {
		uint64_t host;
		int64_t at_ms;
		bool refused;
	} failed[FW_CONNECTIVITY_DOWN_N];
	/* hosts that responded since the row began; when down: since the last failure */
	uint64_t responded[FW_CONNECTIVITY_UP_N];
	uint32_t failed_n, responded_n;
	int64_t responded_ms; /* when a host last responded; 0: never */
	int64_t alive_ms;     /* when FW_CONNECTIVITY_UP_N hosts had last responded */
	bool down, few;       /* few: on the evidence of FW_CONNECTIVITY_FEW_N hosts */
	int64_t since_ms;     /* down: the first failure of the row */
	int64_t up_ms;        /* when the outage ended; 0: there was none */
};

/* What the end of a visit tells about our own network. */
enum fw_connectivity_sign {
	/* nothing was sent: another local fault, or refused by the address guard */
	FW_CONNECTIVITY_NO_SIGN,
	FW_CONNECTIVITY_RESPONDED, /* the host responded, with whatever result */
	FW_CONNECTIVITY_STALLED,   /* connected, then no response in time */
	FW_CONNECTIVITY_REFUSED,   /* no such name, or the connection was refused */
	FW_CONNECTIVITY_FAILED,    /* no response from name servers, no route, or no connection in time */
};
/* connected: a connection was made. refused: there was none because the other side refused it. */
enum fw_connectivity_sign fw_connectivity_sign(enum fw_visit_kind kind, bool connected, bool refused);

/* a visit that has ended */
struct fw_connectivity_visit {
	uint64_t host; /* any number that identifies the host */
	enum fw_connectivity_sign sign;
	bool failing; /* the feed's last visit failed too */
	/* when that was, on the clock of begin_ms and now_ms; negative: before the clock began */
	int64_t polled_ms;
	int64_t begin_ms, now_ms; /* now_ms must not go back */
};
/* Count a visit. Returns whether its failure is attributed to our own network. */
bool fw_connectivity_count(struct fw_connectivity *w, const struct fw_connectivity_visit *v);
/* May a failure of an attempt that began then still turn out to be our own? */
bool fw_connectivity_is_doubtful(const struct fw_connectivity *w, int64_t begin_ms);
/*
 * Decide on the evidence so far: no more visits will end, or the caller cannot wait longer. Returns
 * whether our network is down.
 */
bool fw_connectivity_conclude(struct fw_connectivity *w);

#endif
