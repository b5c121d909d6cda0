/* SPDX-License-Identifier: ISC */
/*
 * When a feed is polled next, and why. Order of precedence:
 *
 *   1. Stop: 410, or a feed that declares its end. at_ms is one probe, because servers err
 *      (POL-10): after 30 days, or twice as long as the feed has been gone, at most 180 days.
 *   2. A local fault (memory, descriptors, network down): soon again, and the feed is not charged.
 *      When the network has been down for an hour: as after a first failure, because it may be the
 *      feeds.
 *   3. A failure: back off by the rule of its kind (POL-08, POL-10). A server that refused is not
 *      polled sooner than a healthy one. No feed is abandoned: the longest rule ends in a visit
 *      each week or month.
 *   4. Success: the owner's interval; else the time until enough publications are expected
 *      (rhythm.c); else the normal interval. Clamped to [min, max]. Without an owner's interval,
 *      other hints can only lengthen it, each up to max: a hub that delivers, ttl, updatePeriod,
 *      freshness (POL-05, POL-06). The visit that checks a 304 (trust.h) comes when it is due, not
 *      one interval later.
 *   5. Retry-After, on any response: not sooner, up to 7 days (POL-07).
 *   6. Jitter: 10 % either way, but only later when the server or feed gave a time (POL-11). So
 *      equal feeds are not polled in the same second.
 *   7. skipHours and skipDays move a visit to the next allowed hour, at random into its first half
 *      (FMT-06).
 */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/str.h"
#include "sched/due.h"
#include "sched/rhythm.h"
#include "sched/trust.h"

#define OWN_FAULT_MS (5 * FW_MINUTE_MS)
/* a network may need this long to recover; after that polls are rarer */
#define OFFLINE_MS FW_HOUR_MS
#define PROBE_MS (30 * FW_DAY_MS)
#define PROBE_MAX_MS (180 * FW_DAY_MS)
#define WEEK_MS (7 * FW_DAY_MS)
#define ALL_HOURS 0xffffffu
#define ALL_DAYS 0x7fu

struct due_calc {
	const struct fw_due_facts *f;
	struct fw_due_policy p;
	struct fw_rhythm rhythm; /* only its hints */
	const struct fw_rhythm_model *model;
	int64_t now_ms, delay_ms;
	bool not_sooner; /* a hint forbids an earlier visit: jitter only adds */
	struct fw_due *out;
	size_t len;
};

/* Append a reason to why, after "; " unless it is the first. What does not fit is cut. */
FW_PRINTF(2, 3) static void reason_append(struct due_calc *d, const char *fmt, ...)
{
	char *at = d->out->why + d->len;
	size_t room = sizeof(d->out->why) - d->len;
	va_list ap;
	int n;

	if (d->len && room > 2) {
		memcpy(at, "; ", 3);
		at += 2;
		room -= 2;
	}
	va_start(ap, fmt);
	n = vsnprintf(at, room, fmt, ap);
	va_end(ap);
	if (n > 0)
		d->len = (size_t)(at - d->out->why) + FW_MIN((size_t)n, room - 1);
}

/* Formatting is most of the cost, so a mute caller skips it. */
#define reason_add(d, ...) ((d)->f->mute ? (void)0 : reason_append(d, __VA_ARGS__))

struct duration_text {
	char s[FW_RFC3339_MAX];
};

static struct duration_text duration_text(int64_t ms)
{
	struct duration_text w;

	fw_duration_text(w.s, ms);
	return w;
}

/* ---- success --------------------------------------------------------------------------------- */

static int64_t clamp_i64(int64_t v, int64_t lo, int64_t hi)
{
	return v < lo ? lo : v > hi ? hi : v;
}

/* The interval before hints, and its reason. */
static void due_base(struct due_calc *d)
{
	struct fw_rhythm_guess g;
	int64_t interval_ms = d->f->interval_ms;

	if (interval_ms > 0) {
		d->delay_ms = clamp_i64(interval_ms, FW_OWN_INTERVAL_MIN_MS, FW_OWN_INTERVAL_MAX_MS);
		reason_add(d,
			d->delay_ms == interval_ms ? "the owner's interval %s" : "the owner's interval, clamped to %s",
			duration_text(d->delay_ms).s);
		return;
	}
	fw_rhythm_guess(d->model, d->now_ms, d->p.target, d->p.max_ms, &g);
	if (!g.interval_ms) {
		d->delay_ms = d->p.normal_ms;
		reason_add(d, "no entry rhythm known: %s", duration_text(d->delay_ms).s);
		return;
	}
	d->delay_ms = clamp_i64(g.interval_ms, d->p.min_ms, d->p.max_ms);
	if (g.burst)
		reason_add(d, "publishing right now: %s", duration_text(d->delay_ms).s);
	else if (g.quiet)
		reason_add(d, "learned %s (rarely publishes at this hour)", duration_text(d->delay_ms).s);
	else if (g.silence_ms > g.gap_ms)
		reason_add(
			d, "learned %s (silent for %s)", duration_text(d->delay_ms).s, duration_text(g.silence_ms).s);
	else
		reason_add(
			d, "learned %s (new about every %s)", duration_text(d->delay_ms).s, duration_text(g.gap_ms).s);
}

/* A hint can only lengthen the interval. The reason names invalid hints. */
static void due_hint(struct due_calc *d, const char *name, int64_t ms)
{
	int64_t cut = FW_MIN(ms, d->p.max_ms);

	if (ms <= 0) {
		reason_add(d, "%s %s is invalid, ignored", name, duration_text(ms).s);
	} else if (cut > d->delay_ms) {
		d->delay_ms = cut;
		d->not_sooner = true;
		if (cut < ms)
			reason_add(d, "%s %s, cut to %s, is longer", name, duration_text(ms).s, duration_text(cut).s);
		else
			reason_add(d, "%s %s is longer", name, duration_text(ms).s);
	}
}

/* Minutes to ms without overflow. */
static int64_t minutes_ms(int64_t m)
{
	return clamp_i64(m, INT32_MIN, INT32_MAX) * FW_MINUTE_MS;
}

static void due_hints(struct due_calc *d)
{
	if (d->rhythm.ttl_minutes != FW_NO_NUMBER)
		due_hint(d, "ttl", minutes_ms(d->rhythm.ttl_minutes));
	if (d->rhythm.update_period_minutes != FW_NO_NUMBER)
		due_hint(d, "updatePeriod", minutes_ms(d->rhythm.update_period_minutes));
	if (d->f->fresh_ms != FW_NO_NUMBER && d->f->fresh_ms > 0)
		due_hint(d, "max-age", d->f->fresh_ms);
}

/* A 304 is trusted only for a limited time: the visit that checks it comes no later. */
static void due_check(struct due_calc *d)
{
	int64_t left_ms = fw_trust_until(&d->rhythm, d->f->whole_ms, d->f->last_new_ms, d->now_ms) - d->now_ms;

	if (!d->f->whole_ms || d->delay_ms + d->delay_ms / 10 < left_ms)
		return;
	d->delay_ms = FW_MAX(left_ms, d->p.min_ms);
	d->not_sooner = true;
	reason_add(d, "304 (not modified) is trusted for %s more", duration_text(d->delay_ms).s);
}

static void due_success(struct due_calc *d)
{
	due_base(d);
	if (d->f->interval_ms > 0)
		return;
	due_check(d);
	if (d->f->pushed && d->delay_ms < d->p.pushed_ms) {
		d->delay_ms = d->p.pushed_ms;
		d->len = 0; /* the hub's reason replaces the rhythm's */
		reason_add(
			d, "a hub delivers; polled after %s in case it missed something", duration_text(d->delay_ms).s);
	}
	due_hints(d);
}

/* ---- failure --------------------------------------------------------------------------------- */

/*
 * delay = error_min x factor x 2^(failures - 1), at most error_max; after `failures_max` failures:
 * then_ms.
 */
struct backoff_rule {
	const char *what;
	unsigned factor;
	unsigned failures_max;
	int64_t then_ms;
	bool refused; /* not polled sooner than a healthy feed */
};

/*
 * With the defaults, 10 failures from one hour on take a week, 36 from a quarter of an hour a
 * month.
 */
static const struct backoff_rule BACKOFF_RULES[FW_VISIT_KIND_N] = {
	[FW_VISIT_DNS] = {"host name not resolved", 1, 36, PROBE_MS, false},
	[FW_VISIT_CONNECT] = {"connection failed", 1, 36, WEEK_MS, false},
	[FW_VISIT_TLS] = {"TLS failed", 4, 36, WEEK_MS, false},
	[FW_VISIT_TIMEOUT] = {"timed out", 1, 36, WEEK_MS, false},
	[FW_VISIT_PROTOCOL] = {"invalid response", 1, 36, WEEK_MS, false},
	[FW_VISIT_FORMAT] = {"not a feed", 4, 10, WEEK_MS, true},
	[FW_VISIT_LIMIT] = {"too large", 16, 10, WEEK_MS, true},
	[FW_VISIT_BLOCKED] = {"address refused", 4, 10, WEEK_MS, true},
	[FW_VISIT_REDIRECT] = {"redirect failed", 4, 10, WEEK_MS, true},
	[FW_VISIT_CRASH] = {"parser crashed", 4, 10, WEEK_MS, true},
};

static struct backoff_rule http_backoff_rule(int status)
{
	switch (status) {
	case 401:
		return (struct backoff_rule){"authentication required (401)", 16, 10, WEEK_MS, true};
	case 403:
		return (struct backoff_rule){"forbidden (403)", 16, 10, WEEK_MS, true};
	case 404:
		return (struct backoff_rule){"not found (404)", 4, 10, WEEK_MS, true};
	case 429:
		return (struct backoff_rule){"too many requests (429)", 4, 36, WEEK_MS, true};
	case 503:
		return (struct backoff_rule){"service unavailable (503)", 4, 36, WEEK_MS, true};
	default:
		break;
	}
	if (status >= 500 && status <= 599)
		return (struct backoff_rule){"server error", 1, 36, WEEK_MS, false};
	return (struct backoff_rule){"request refused", 4, 10, WEEK_MS, true};
}

static void due_failure(struct due_calc *d)
{
	struct backoff_rule rule = d->f->kind == FW_VISIT_HTTP ? http_backoff_rule(d->f->http_status) :
								 BACKOFF_RULES[FW_VISIT_PROTOCOL];
	uint32_t n = FW_MAX(d->f->fail_n, 1u);
	int64_t usual;

	if (d->f->kind > FW_VISIT_NONE && d->f->kind < FW_VISIT_KIND_N && BACKOFF_RULES[d->f->kind].what)
		rule = BACKOFF_RULES[d->f->kind];
	due_base(d); /* only for delay_ms; its reason is dropped */
	usual = d->delay_ms;
	d->len = 0;
	d->delay_ms = d->p.error_min_ms * rule.factor;
	for (uint32_t i = 1; i < n && d->delay_ms < d->p.error_max_ms; i++)
		d->delay_ms *= 2;
	d->delay_ms = FW_MIN(d->delay_ms, d->p.error_max_ms);
	if (n > rule.failures_max)
		d->delay_ms = FW_MAX(rule.then_ms, d->p.error_max_ms);
	reason_add(d, "%s, failure %u: %s", rule.what, (unsigned)n, duration_text(d->delay_ms).s);
	if (rule.refused && usual > d->delay_ms) {
		d->delay_ms = usual;
		reason_add(d, "its usual %s is longer", duration_text(usual).s);
	}
}

/* ---- the last steps -------------------------------------------------------------------------- */

static void due_retry_after(struct due_calc *d)
{
	int64_t after_ms = d->f->retry_after_ms, cut = FW_MIN(after_ms, d->p.retry_after_max_ms);

	if (after_ms == FW_NO_NUMBER)
		return;
	if (after_ms < 0) {
		reason_add(d, "Retry-After %s is invalid, ignored", duration_text(after_ms).s);
	} else if (cut > d->delay_ms) {
		d->delay_ms = cut;
		d->not_sooner = true;
		if (cut < after_ms)
			reason_add(d, "Retry-After %s, cut to %s", duration_text(after_ms).s, duration_text(cut).s);
		else
			reason_add(d, "Retry-After %s", duration_text(after_ms).s);
	}
}

static void due_jitter(struct due_calc *d, uint64_t rnd)
{
	int64_t span = d->delay_ms / 10, floor = d->f->interval_ms > 0 ? FW_OWN_INTERVAL_MIN_MS : d->p.min_ms, jitter;

	if (d->not_sooner || (fw_visit_succeeded(d->f->kind) && d->delay_ms - span < floor))
		jitter = (int64_t)(rnd % (uint64_t)(clamp_i64(span, FW_MINUTE_MS, FW_HOUR_MS) + 1));
	else
		jitter = (int64_t)(rnd % (uint64_t)(2 * span + 1)) - span;
	d->delay_ms += jitter;
	if (jitter >= 1000 || jitter <= -1000)
		reason_add(d, "jitter %s%s", jitter > 0 ? "+" : "", duration_text(jitter).s);
}

static bool due_is_skipped(const struct due_calc *d, const struct fw_civil *c)
{
	return d->rhythm.skip_hours >> c->hour & 1 || d->rhythm.skip_days >> c->weekday & 1;
}

static void due_skip(struct due_calc *d, uint64_t rnd)
{
	int64_t at = d->now_ms + d->delay_ms, from = at;
	struct fw_civil c;

	if (d->rhythm.skip_hours == ALL_HOURS) {
		reason_add(d, "skipHours lists all hours, ignored");
		d->rhythm.skip_hours = 0;
	}
	if (d->rhythm.skip_days == ALL_DAYS) {
		reason_add(d, "skipDays lists all days, ignored");
		d->rhythm.skip_days = 0;
	}
	if (!d->rhythm.skip_hours && !d->rhythm.skip_days)
		return;
	fw_civil_from_ms(at, &c);
	while (due_is_skipped(d, &c)) { /* at most one week of hours */
		at += FW_HOUR_MS - (c.minute * FW_MINUTE_MS + c.second * FW_SECOND_MS + c.ms);
		fw_civil_from_ms(at, &c);
	}
	if (at == from)
		return;
	at += (int64_t)(rnd % (uint64_t)(30 * FW_MINUTE_MS));
	d->delay_ms = at - d->now_ms;
	reason_add(d, "moved %s out of %s", duration_text(at - from).s,
		!d->rhythm.skip_days          ? "skipHours" :
			!d->rhythm.skip_hours ? "skipDays" :
						"skipHours and skipDays");
}

/* ---- the whole ------------------------------------------------------------------------------- */

void fw_due_policy_default(struct fw_due_policy *p)
{
	*p = (struct fw_due_policy){
		.min_ms = 15 * FW_MINUTE_MS,
		.normal_ms = FW_HOUR_MS,
		.max_ms = FW_DAY_MS,
		.error_min_ms = 15 * FW_MINUTE_MS,
		.error_max_ms = FW_DAY_MS,
		.retry_after_max_ms = WEEK_MS,
		.pushed_ms = FW_DAY_MS,
		.target = 0.2,
	};
}

/* Bring the settings into their valid ranges. */
static void policy_clamp(const struct fw_due_policy *from, struct fw_due_policy *p)
{
	struct fw_due_policy standard;

	fw_due_policy_default(&standard);
	*p = from ? *from : standard;
	p->min_ms = p->min_ms > 0 ? FW_MIN(p->min_ms, FW_OWN_INTERVAL_MAX_MS) : standard.min_ms;
	p->max_ms = clamp_i64(p->max_ms > 0 ? p->max_ms : standard.max_ms, p->min_ms, 365 * FW_DAY_MS);
	p->normal_ms = clamp_i64(p->normal_ms > 0 ? p->normal_ms : standard.normal_ms, p->min_ms, p->max_ms);
	p->error_min_ms = p->error_min_ms > 0 ? FW_MIN(p->error_min_ms, FW_OWN_INTERVAL_MAX_MS) : standard.error_min_ms;
	p->error_max_ms = clamp_i64(
		p->error_max_ms > 0 ? p->error_max_ms : standard.error_max_ms, p->error_min_ms, 365 * FW_DAY_MS);
	p->retry_after_max_ms = p->retry_after_max_ms > 0 ? FW_MIN(p->retry_after_max_ms, 365 * FW_DAY_MS) :
							    standard.retry_after_max_ms;
	p->pushed_ms = p->pushed_ms > 0 ? FW_MIN(p->pushed_ms, FW_OWN_INTERVAL_MAX_MS) : standard.pushed_ms;
	p->target = p->target > 0 ? FW_MIN(p->target, 1000.0) : standard.target;
}

/* Hints of the stored rhythm fill in where this visit brought none. */
static void due_merge_hints(struct due_calc *d, struct fw_rhythm_model *model)
{
	d->model = d->f->model;
	if (d->model) {
		d->rhythm.ttl_minutes = d->rhythm.update_period_minutes = FW_NO_NUMBER;
	} else {
		fw_rhythm_read(d->f->rhythm, &d->rhythm);
		fw_rhythm_model(&d->rhythm, model);
		d->model = model;
	}
	if (d->f->ttl_minutes != FW_NO_NUMBER)
		d->rhythm.ttl_minutes = d->f->ttl_minutes;
	if (d->f->update_period_minutes != FW_NO_NUMBER)
		d->rhythm.update_period_minutes = d->f->update_period_minutes;
	if (d->f->skip_hours)
		d->rhythm.skip_hours = d->f->skip_hours & ALL_HOURS;
	if (d->f->skip_days)
		d->rhythm.skip_days = d->f->skip_days & ALL_DAYS;
}

void fw_due(const struct fw_due_facts *f, const struct fw_due_policy *policy, int64_t now_ms, uint64_t rnd,
	struct fw_due *out)
{
	struct due_calc d = {.f = f, .out = out};
	struct fw_rhythm_model model;

	out->stop = false;
	out->why[0] = '\0';
	/* 1970 to 9999, also with a wrong clock */
	d.now_ms = clamp_i64(now_ms, 0, INT64_C(253402300799000));
	policy_clamp(policy, &d.p);
	due_merge_hints(&d, &model);
	if (f->kind == FW_VISIT_NONE && !f->expired) {
		out->at_ms = d.now_ms;
		reason_add(&d, "never visited: now");
		return;
	}
	if (f->expired || f->kind == FW_VISIT_GONE) {
		out->stop = true;
		d.delay_ms = clamp_i64(2 * clamp_i64(f->ended_ms, 0, PROBE_MAX_MS), PROBE_MS, PROBE_MAX_MS);
		reason_add(&d, "%s: polled once more after %s",
			f->kind == FW_VISIT_GONE ? "gone for good (410)" : "the feed says it has ended",
			duration_text(d.delay_ms).s);
	} else if (f->kind == FW_VISIT_LOCAL) {
		d.delay_ms = f->offline_ms > OFFLINE_MS ? d.p.error_min_ms : FW_MIN(OWN_FAULT_MS, d.p.normal_ms);
		reason_add(&d, "our own %s, the feed is not charged: %s",
			f->offline_ms > 0 ? "network seems to be down" : "fault", duration_text(d.delay_ms).s);
	} else if (fw_visit_succeeded(f->kind)) {
		due_success(&d);
	} else {
		due_failure(&d);
	}
	if (!out->stop)
		due_retry_after(&d);
	due_jitter(&d, rnd);
	if (fw_visit_succeeded(f->kind) && f->interval_ms <= 0 && !out->stop)
		due_skip(&d, rnd >> 24);
	assert(d.delay_ms >= 0);
	out->at_ms = d.now_ms + d.delay_ms;
}
