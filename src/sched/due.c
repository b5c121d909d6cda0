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
#include "base/banned.h"

#define OWN_FAULT_MS (5 * FW_MINUTE_MS)
/* a network may need this long to recover; after that polls are rarer */
#define OFFLINE_MS FW_HOUR_MS
#define PROBE_MS (30 * FW_DAY_MS)
#define PROBE_MAX_MS (180 * FW_DAY_MS)
#define WEEK_MS (7 * FW_DAY_MS)
#define OWNER_MIN_MS FW_MINUTE_MS
#define OWNER_MAX_MS (30 * FW_DAY_MS)
#define ALL_HOURS 0xffffffu
#define ALL_DAYS 0x7fu

struct plan {
	const struct fw_due_facts *f;
	struct fw_due_policy p;
	struct fw_rhythm rhythm; /* only its hints */
	const struct fw_rhythm_model *model;
	int64_t now_ms, delay_ms;
	bool given; /* a hint forbids an earlier visit: jitter only adds */
	struct fw_due *out;
	size_t len;
};

/* Append a reason to why, after "; " unless it is the first. What does not fit is cut. */
FW_PRINTF(2, 3) static void add_words(struct plan *d, const char *fmt, ...)
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
#define say(d, ...) ((d)->f->mute ? (void)0 : add_words(d, __VA_ARGS__))

struct words {
	char s[FW_RFC3339_MAX];
};

static struct words text(int64_t ms)
{
	struct words w;

	fw_duration_text(w.s, ms);
	return w;
}

/* ---- success --------------------------------------------------------------------------------- */

static int64_t clamp(int64_t v, int64_t lo, int64_t hi)
{
	return v < lo ? lo : v > hi ? hi : v;
}

/* The interval before hints, and its reason. */
static void plan_base(struct plan *d)
{
	struct fw_rhythm_guess g;
	int64_t wish = d->f->interval_ms;

	if (wish > 0) {
		d->delay_ms = clamp(wish, OWNER_MIN_MS, OWNER_MAX_MS);
		say(d, d->delay_ms == wish ? "the owner's interval %s" : "the owner's interval, clamped to %s", text(d->delay_ms).s);
		return;
	}
	fw_rhythm_guess(d->model, d->now_ms, d->p.target, d->p.max_ms, &g);
	if (!g.interval_ms) {
		d->delay_ms = d->p.normal_ms;
		say(d, "no entry rhythm known: %s", text(d->delay_ms).s);
		return;
	}
	d->delay_ms = clamp(g.interval_ms, d->p.min_ms, d->p.max_ms);
	if (g.burst)
		say(d, "publishing right now: %s", text(d->delay_ms).s);
	else if (g.quiet)
		say(d, "learned %s (rarely publishes at this hour)", text(d->delay_ms).s);
	else if (g.silence_ms > g.gap_ms)
		say(d, "learned %s (silent for %s)", text(d->delay_ms).s, text(g.silence_ms).s);
	else
		say(d, "learned %s (new about every %s)", text(d->delay_ms).s, text(g.gap_ms).s);
}

/* A hint can only lengthen the interval. The reason names invalid hints. */
static void plan_hint(struct plan *d, const char *name, int64_t ms)
{
	int64_t cut = FW_MIN(ms, d->p.max_ms);

	if (ms <= 0) {
		say(d, "%s %s is invalid, ignored", name, text(ms).s);
	} else if (cut > d->delay_ms) {
		d->delay_ms = cut;
		d->given = true;
		if (cut < ms)
			say(d, "%s %s, cut to %s, is longer", name, text(ms).s, text(cut).s);
		else
			say(d, "%s %s is longer", name, text(ms).s);
	}
}

/* Minutes to ms without overflow. */
static int64_t minutes(int64_t m)
{
	return clamp(m, INT32_MIN, INT32_MAX) * FW_MINUTE_MS;
}

static void plan_hints(struct plan *d)
{
	if (d->rhythm.ttl_minutes != FW_NO_NUMBER)
		plan_hint(d, "ttl", minutes(d->rhythm.ttl_minutes));
	if (d->rhythm.update_period_minutes != FW_NO_NUMBER)
		plan_hint(d, "updatePeriod", minutes(d->rhythm.update_period_minutes));
	if (d->f->fresh_ms != FW_NO_NUMBER && d->f->fresh_ms > 0)
		plan_hint(d, "max-age", d->f->fresh_ms);
}

/* A 304 is trusted only for a limited time: the visit that checks it comes no later. */
static void plan_check(struct plan *d)
{
	int64_t left_ms = fw_trust_until(&d->rhythm, d->f->whole_ms, d->f->last_new_ms, d->now_ms) - d->now_ms;

	if (!d->f->whole_ms || d->delay_ms + d->delay_ms / 10 < left_ms)
		return;
	d->delay_ms = FW_MAX(left_ms, d->p.min_ms);
	d->given = true;
	say(d, "304 (not modified) is trusted for %s more", text(d->delay_ms).s);
}

static void plan_success(struct plan *d)
{
	plan_base(d);
	if (d->f->interval_ms > 0)
		return;
	plan_check(d);
	if (d->f->pushed && d->delay_ms < d->p.pushed_ms) {
		d->delay_ms = d->p.pushed_ms;
		d->len = 0; /* the hub's reason replaces the rhythm's */
		say(d, "a hub delivers; polled after %s in case it missed something", text(d->delay_ms).s);
	}
	plan_hints(d);
}

/* ---- failure --------------------------------------------------------------------------------- */

/*
 * delay = error_min x first x 2^(failures - 1), at most error_max; after `patience` failures:
 * then_ms.
 */
struct law {
	const char *what;
	unsigned first;
	unsigned patience;
	int64_t then_ms;
	bool refused; /* not polled sooner than a healthy feed */
};

/*
 * With the defaults, 10 failures from one hour on take a week, 36 from a quarter of an hour a
 * month.
 */
static const struct law LAWS[FW_VISIT_KIND_N] = {
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

static struct law http_law(int status)
{
	switch (status) {
	case 401:
		return (struct law){"authentication required (401)", 16, 10, WEEK_MS, true};
	case 403:
		return (struct law){"forbidden (403)", 16, 10, WEEK_MS, true};
	case 404:
		return (struct law){"not found (404)", 4, 10, WEEK_MS, true};
	case 429:
		return (struct law){"too many requests (429)", 4, 36, WEEK_MS, true};
	case 503:
		return (struct law){"service unavailable (503)", 4, 36, WEEK_MS, true};
	default:
		break;
	}
	if (status >= 500 && status <= 599)
		return (struct law){"server error", 1, 36, WEEK_MS, false};
	return (struct law){"request refused", 4, 10, WEEK_MS, true};
}

static void plan_failure(struct plan *d)
{
	struct law law = d->f->kind == FW_VISIT_HTTP ? http_law(d->f->http_status) : LAWS[FW_VISIT_PROTOCOL];
	uint32_t n = FW_MAX(d->f->fail_n, 1u);
	int64_t usual;

	if (d->f->kind > FW_VISIT_NONE && d->f->kind < FW_VISIT_KIND_N && LAWS[d->f->kind].what)
		law = LAWS[d->f->kind];
	plan_base(d); /* only for delay_ms; its reason is dropped */
	usual = d->delay_ms;
	d->len = 0;
	d->delay_ms = d->p.error_min_ms * law.first;
	for (uint32_t i = 1; i < n && d->delay_ms < d->p.error_max_ms; i++)
		d->delay_ms *= 2;
	d->delay_ms = FW_MIN(d->delay_ms, d->p.error_max_ms);
	if (n > law.patience)
		d->delay_ms = FW_MAX(law.then_ms, d->p.error_max_ms);
	say(d, "%s, failure %u: %s", law.what, (unsigned)n, text(d->delay_ms).s);
	if (law.refused && usual > d->delay_ms) {
		d->delay_ms = usual;
		say(d, "its usual %s is longer", text(usual).s);
	}
}

/* ---- the last steps -------------------------------------------------------------------------- */

static void plan_retry_after(struct plan *d)
{
	int64_t asked = d->f->retry_after_ms, cut = FW_MIN(asked, d->p.retry_after_max_ms);

	if (asked == FW_NO_NUMBER)
		return;
	if (asked < 0) {
		say(d, "Retry-After %s is invalid, ignored", text(asked).s);
	} else if (cut > d->delay_ms) {
		d->delay_ms = cut;
		d->given = true;
		if (cut < asked)
			say(d, "Retry-After %s, cut to %s", text(asked).s, text(cut).s);
		else
			say(d, "Retry-After %s", text(asked).s);
	}
}

static void plan_jitter(struct plan *d, uint64_t rnd)
{
	int64_t span = d->delay_ms / 10, floor = d->f->interval_ms > 0 ? OWNER_MIN_MS : d->p.min_ms, jitter;

	if (d->given || (fw_visit_succeeded(d->f->kind) && d->delay_ms - span < floor))
		jitter = (int64_t)(rnd % (uint64_t)(clamp(span, FW_MINUTE_MS, FW_HOUR_MS) + 1));
	else
		jitter = (int64_t)(rnd % (uint64_t)(2 * span + 1)) - span;
	d->delay_ms += jitter;
	if (jitter >= 1000 || jitter <= -1000)
		say(d, "jitter %s%s", jitter > 0 ? "+" : "", text(jitter).s);
}

static bool skipped(const struct plan *d, const struct fw_civil *c)
{
	return d->rhythm.skip_hours >> c->hour & 1 || d->rhythm.skip_days >> c->weekday & 1;
}

static void plan_skip(struct plan *d, uint64_t rnd)
{
	int64_t at = d->now_ms + d->delay_ms, from = at;
	struct fw_civil c;

	if (d->rhythm.skip_hours == ALL_HOURS) {
		say(d, "skipHours lists all hours, ignored");
		d->rhythm.skip_hours = 0;
	}
	if (d->rhythm.skip_days == ALL_DAYS) {
		say(d, "skipDays lists all days, ignored");
		d->rhythm.skip_days = 0;
	}
	if (!d->rhythm.skip_hours && !d->rhythm.skip_days)
		return;
	fw_civil_from_ms(at, &c);
	while (skipped(d, &c)) { /* at most one week of hours */
		at += FW_HOUR_MS - (c.minute * FW_MINUTE_MS + c.second * FW_SECOND_MS + c.ms);
		fw_civil_from_ms(at, &c);
	}
	if (at == from)
		return;
	at += (int64_t)(rnd % (uint64_t)(30 * FW_MINUTE_MS));
	d->delay_ms = at - d->now_ms;
	say(d, "moved %s out of %s", text(at - from).s, !d->rhythm.skip_days ? "skipHours" : !d->rhythm.skip_hours ? "skipDays" :
		"skipHours and skipDays");
}

/* ---- the whole ------------------------------------------------------------------------------- */

void fw_due_policy_default(struct fw_due_policy *p)
{
	*p = (struct fw_due_policy){
		.min_ms = 15 * FW_MINUTE_MS, .normal_ms = FW_HOUR_MS, .max_ms = FW_DAY_MS,
		.error_min_ms = 15 * FW_MINUTE_MS, .error_max_ms = FW_DAY_MS, .retry_after_max_ms = WEEK_MS, .pushed_ms = FW_DAY_MS, .target = 0.2,
	};
}

/* Bring the settings into their valid ranges. */
static void sane_policy(const struct fw_due_policy *from, struct fw_due_policy *p)
{
	struct fw_due_policy standard;

	fw_due_policy_default(&standard);
	*p = from ? *from : standard;
	p->min_ms = p->min_ms > 0 ? FW_MIN(p->min_ms, OWNER_MAX_MS) : standard.min_ms;
	p->max_ms = clamp(p->max_ms > 0 ? p->max_ms : standard.max_ms, p->min_ms, 365 * FW_DAY_MS);
	p->normal_ms = clamp(p->normal_ms > 0 ? p->normal_ms : standard.normal_ms, p->min_ms, p->max_ms);
	p->error_min_ms = p->error_min_ms > 0 ? FW_MIN(p->error_min_ms, OWNER_MAX_MS) : standard.error_min_ms;
	p->error_max_ms = clamp(p->error_max_ms > 0 ? p->error_max_ms : standard.error_max_ms, p->error_min_ms, 365 * FW_DAY_MS);
	p->retry_after_max_ms = p->retry_after_max_ms > 0 ? FW_MIN(p->retry_after_max_ms, 365 * FW_DAY_MS) : standard.retry_after_max_ms;
	p->pushed_ms = p->pushed_ms > 0 ? FW_MIN(p->pushed_ms, OWNER_MAX_MS) : standard.pushed_ms;
	p->target = p->target > 0 ? FW_MIN(p->target, 1000.0) : standard.target;
}

/* Hints of the stored rhythm fill in where this visit brought none. */
static void merge_hints(struct plan *d, struct fw_rhythm_model *model)
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

void fw_due(const struct fw_due_facts *f, const struct fw_due_policy *policy, int64_t now_ms, uint64_t rnd, struct fw_due *out)
{
	struct plan d = {.f = f, .out = out};
	struct fw_rhythm_model model;

	out->stop = false;
	out->why[0] = '\0';
	/* 1970 to 9999, also with a wrong clock */
	d.now_ms = clamp(now_ms, 0, INT64_C(253402300799000));
	sane_policy(policy, &d.p);
	merge_hints(&d, &model);
	if (f->kind == FW_VISIT_NONE && !f->expired) {
		out->at_ms = d.now_ms;
		say(&d, "never visited: now");
		return;
	}
	if (f->expired || f->kind == FW_VISIT_GONE) {
		out->stop = true;
		d.delay_ms = clamp(2 * clamp(f->ended_ms, 0, PROBE_MAX_MS), PROBE_MS, PROBE_MAX_MS);
		say(&d, "%s: polled once more after %s", f->kind == FW_VISIT_GONE ? "gone for good (410)" : "the feed says it has ended",
			text(d.delay_ms).s);
	} else if (f->kind == FW_VISIT_LOCAL) {
		d.delay_ms = f->offline_ms > OFFLINE_MS ? d.p.error_min_ms : FW_MIN(OWN_FAULT_MS, d.p.normal_ms);
		say(&d, "our own %s, the feed is not charged: %s", f->offline_ms > 0 ? "network seems to be down" : "fault", text(d.delay_ms).s);
	} else if (fw_visit_succeeded(f->kind)) {
		plan_success(&d);
	} else {
		plan_failure(&d);
	}
	if (!out->stop)
		plan_retry_after(&d);
	plan_jitter(&d, rnd);
	if (fw_visit_succeeded(f->kind) && f->interval_ms <= 0 && !out->stop)
		plan_skip(&d, rnd >> 24);
	assert(d.delay_ms >= 0);
	out->at_ms = d.now_ms + d.delay_ms;
}
