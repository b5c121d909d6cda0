/* SPDX-License-Identifier: ISC */
/*
 * When next, and why: due = f(facts, now), pure. The reason is stored with the feed and shown by `feedwheel why`.
 * Rules and sources: POL-05 ... POL-11, RFC 9110 section 10.2.3, RFC 9111 section 4.2.
 */
#ifndef FW_SCHED_DUE_H
#define FW_SCHED_DUE_H

#include "feedwheel/store.h"
#include "sched/rhythm.h"

struct fw_due_policy { /* settings; all in ms */
	int64_t min_ms;      /* never sooner than this after a visit [15 min] */
	int64_t normal_ms;   /* when nothing is known [60 min] */
	int64_t max_ms;      /* never later, but for Retry-After, errors, skipHours and jitter [24 h] */
	int64_t error_min_ms, error_max_ms; /* back-off range [15 min, 24 h] */
	int64_t retry_after_max_ms; /* [7 d] */
	int64_t pushed_ms;   /* how often a feed is asked that a hub delivers [24 h] */
	double target;       /* so many publications to be expected make a visit worth while (fw_rhythm_guess) [0.2] */
};

struct fw_due_facts {
	enum fw_visit_kind kind;
	int http_status;
	uint32_t fail_n;             /* failures in a row, this one included */
	int64_t retry_after_ms;      /* a duration from now; FW_NO_NUMBER: none */
	int64_t fresh_ms;            /* remaining freshness: max-age - Age, or Expires - Date; FW_NO_NUMBER: none */
	int64_t ttl_minutes, update_period_minutes; /* FW_NO_NUMBER: none */
	uint32_t skip_hours;
	uint8_t skip_days;
	struct fw_str rhythm;        /* what was learned so far (see fw_rhythm_learn), or absent; its hints fill in for ttl ... skip_days */
	const struct fw_rhythm_model *model; /* what is in rhythm, if somebody has read it already; then rhythm is not looked at. Or NULL */
	int64_t last_new_ms;         /* 0: never */
	int64_t whole_ms;            /* when the validators came that the next request would send; 0: it has none */
	int64_t interval_ms;         /* the owner's wish; 0: none */
	bool expired;                /* the document says it has ended */
	int64_t ended_ms;            /* gone or expired: how long it has been; 0: unknown */
	bool mute;                   /* no words are wanted */
	int64_t offline_ms;          /* kind LOCAL: our own network has been down for so long; 0: it is not that */
	bool pushed;                 /* a hub delivers it for now: a visit only looks whether something was missed */
};

struct fw_due {
	int64_t at_ms;
	bool stop;      /* do not ask again (410, expired): at_ms is then when it is asked once again, 30 to 180 days on */
	char why[240];  /* empty if mute: "max-age 12 h beats learned 25 min; moved out of skipHours; jitter +3 min" */
};

/*
 * When next, and why. rnd: 64 random bits; the same facts, now and rnd give the same answer. Any values are taken: what makes
 * no sense is clamped or left out, and why says so. The order of precedence stands at the top of due.c.
 */
void fw_due(const struct fw_due_facts *f, const struct fw_due_policy *p, int64_t now_ms, uint64_t rnd, struct fw_due *out);
void fw_due_policy_default(struct fw_due_policy *p);

/*
 * Learn from the publication dates a document shows: dates[0..n), any order, Unix ms. old is what was stored before (may be
 * absent or of an older form). Writes text of at most FW_RHYTHM_MAX bytes, NUL-terminated; returns its length, and 0 when
 * there is nothing to say. Hints from the document are kept in it too, so that a 304 still knows them.
 */
size_t fw_rhythm_learn(struct fw_str old, const int64_t *dates, size_t n, const struct fw_due_facts *hints, int64_t now_ms,
	char out[FW_RHYTHM_MAX]);

/* HTTP cache headers to facts. Absent strings: header not there. FW_NO_NUMBER: no hint; 0: stale already. */
int64_t fw_fresh_ms(struct fw_str cache_control, struct fw_str age, struct fw_str expires, struct fw_str date, int64_t now_ms);
/* Negative: a date that makes no sense, more than a day ago. */
int64_t fw_retry_after_ms(struct fw_str retry_after, int64_t now_ms);

/* Exponentially weighted average of a duration and its mean deviation (TCP's: RFC 6298 section 2). */
void fw_expect_update(int64_t *expect_us, int64_t *dev_us, int64_t took_us);

/* How an expected duration is made up: each phase's share of it, averaged over the visits with the same weight. */
enum fw_phase { FW_PHASE_DNS, FW_PHASE_CONNECT, FW_PHASE_TLS, FW_PHASE_FIRST_BYTE, FW_PHASE_BODY, FW_PHASE_N };
/* *parts: what fw_feed.expect_parts holds; 0, or what we did not write: unknown. A visit that took no time at all changes nothing. */
void fw_expect_parts_update(int64_t *parts, const int64_t part_us[FW_PHASE_N]);
/* What each phase is expected to take: together expect_us, or all 0 when that or the parts are unknown. */
void fw_expect_parts(int64_t parts, int64_t expect_us, int64_t part_us[FW_PHASE_N]);

#endif
