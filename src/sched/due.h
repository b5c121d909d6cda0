/* SPDX-License-Identifier: ISC */
/*
 * When a feed is polled next, and why: due = f(facts, now), pure. The reason is stored with the
 * feed; `feedwheel why` prints it. Rules: POL-05 to POL-11, RFC 9110 section 10.2.3, RFC 9111
 * section 4.2. This header also declares how expected durations are learned (expect.c) and how
 * HTTP's caching hints are read (httpcache.c).
 */
#ifndef FW_SCHED_DUE_H
#define FW_SCHED_DUE_H

#include "feedwheel/store.h"
#include "sched/rhythm.h"

/* settings, in ms; defaults in brackets */
struct fw_due_policy {
	int64_t min_ms;    /* at least this long after a visit [15 min] */
	int64_t normal_ms; /* when nothing has been learned [60 min] */
	/* at most this, except for Retry-After, errors, skipHours and jitter [24 h] */
	int64_t max_ms;
	int64_t error_min_ms, error_max_ms; /* range of the backoff [15 min, 24 h] */
	int64_t retry_after_max_ms;         /* [7 d] */
	int64_t pushed_ms;                  /* interval of polls while a hub delivers the feed [24 h] */
	/* expected publications that make a visit worthwhile (fw_rhythm_guess) [0.2] */
	double target;
};

struct fw_due_facts {
	enum fw_visit_kind kind;
	int http_status;
	uint32_t fail_n;        /* failures in a row, this one included */
	int64_t retry_after_ms; /* from now; FW_NO_NUMBER: none */
	int64_t fresh_ms;       /* remaining freshness: max-age - Age, or Expires - Date; FW_NO_NUMBER: none */
	int64_t ttl_minutes, update_period_minutes; /* FW_NO_NUMBER: none */
	uint32_t skip_hours;
	uint8_t skip_days;
	/*
	 * what was learned so far (fw_rhythm_learn()), or absent; its hints fill in for ttl to
	 * skip_days
	 */
	struct fw_str rhythm;
	/* the model of rhythm, if the caller has read it; then rhythm is ignored. Or NULL */
	const struct fw_rhythm_model *model;
	int64_t last_new_ms; /* 0: never */
	/* when the validators of the next request were received; 0: it has none */
	int64_t whole_ms;
	int64_t interval_ms; /* set by the owner; 0: none */
	bool expired;        /* the document declares that the feed has ended */
	int64_t ended_ms;    /* how long the feed has been gone or expired; 0: unknown */
	bool mute;           /* leave why empty */
	/* kind LOCAL: how long our own network has been down; 0: another fault */
	int64_t offline_ms;
	/* a hub delivers the feed: a visit only checks whether the hub missed something */
	bool pushed;
};

struct fw_due {
	int64_t at_ms;
	/* no more regular polls (410, expired): at_ms is one probe, 30 to 180 days ahead */
	bool stop;
	char why[240]; /* empty if mute: "max-age 12 h beats learned 25 min; moved out of skipHours; jitter +3 min" */
};

/*
 * When to poll next, and why. rnd: 64 random bits. The same facts, policy, now and rnd give the
 * same result. Any values are accepted: invalid ones are clamped or ignored, and why says so. The
 * top of due.c lists the order of precedence.
 */
void fw_due(
	const struct fw_due_facts *f, const struct fw_due_policy *p, int64_t now_ms, uint64_t rnd, struct fw_due *out);
void fw_due_policy_default(struct fw_due_policy *p);

/*
 * Learn from the publication dates of a document: dates[0..n), in any order, Unix ms. old is the
 * stored rhythm; it may be absent or of an older form. Writes at most FW_RHYTHM_MAX bytes with a
 * NUL to out; returns the length, 0 when there is nothing to store. The rhythm keeps the document's
 * hints too, so that they are known after a 304.
 */
size_t fw_rhythm_learn(struct fw_str old, const int64_t *dates, size_t n, const struct fw_due_facts *hints,
	int64_t now_ms, char out[FW_RHYTHM_MAX]);

/*
 * HTTP caching headers to facts; p is NULL for a missing header. FW_NO_NUMBER: no hint; 0: stale
 * already.
 */
int64_t fw_fresh_ms(
	struct fw_str cache_control, struct fw_str age, struct fw_str expires, struct fw_str date, int64_t now_ms);
/* Negative: a date more than a day in the past, which is invalid. */
int64_t fw_retry_after_ms(struct fw_str retry_after, int64_t now_ms);

/*
 * Exponentially weighted average of a duration, and its mean deviation (as TCP, RFC 6298 section
 * 2).
 */
void fw_expect_update(int64_t *expect_us, int64_t *dev_us, int64_t took_us);

/*
 * How an expected duration splits into phases: each phase's share, averaged over visits with the
 * same weight.
 */
enum fw_phase { FW_PHASE_DNS, FW_PHASE_CONNECT, FW_PHASE_TLS, FW_PHASE_FIRST_BYTE, FW_PHASE_BODY, FW_PHASE_N };
/*
 * *parts: as stored in fw_feed.expect_parts; 0, or a value that we did not write: unknown. A visit
 * that took no time changes nothing.
 */
void fw_expect_parts_update(int64_t *parts, const int64_t part_us[FW_PHASE_N]);
/*
 * The expected duration of each phase. They add up to expect_us; all are 0 when that or parts is
 * unknown.
 */
void fw_expect_parts(int64_t parts, int64_t expect_us, int64_t part_us[FW_PHASE_N]);

#endif
