/* SPDX-License-Identifier: ISC */
/*
 * When next, and why.
 *
 * After a success: a base interval (the owner's wish; else what the feed's dates taught; else the normal one), raised by what
 * publisher and server ask for (ttl, sy:updatePeriod, freshness), kept within [min, max], moved out of skipHours and skipDays,
 * spread by jitter. After a failure: a back-off by its own law, never shorter than Retry-After, never for ever.
 *
 * Every rule that decided or was clamped leaves a few words in why; words are dropped, never the decision, when they do not fit.
 */
#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"
#include "sched/due.h"
#include "sched/rhythm.h"

#define PROBE_MS (30 * FW_DAY_MS)       /* a gone feed is asked once more, half open */
#define SERVER_ASK_MAX_MS (7 * FW_DAY_MS)
#define HOT_MINUTE_MS (2 * FW_MINUTE_MS) /* around the full hour, where every cron job falls */

struct making {
	const struct fw_due_facts *f;
	const struct fw_due_policy *p;
	int64_t now_ms, ms; /* the interval so far */
	uint64_t rnd;
	struct fw_due *out;
	size_t len;
};

void fw_due_policy_default(struct fw_due_policy *p)
{
	*p = (struct fw_due_policy){
		.min_ms = 15 * FW_MINUTE_MS, .normal_ms = FW_HOUR_MS, .max_ms = FW_DAY_MS,
		.error_min_ms = 15 * FW_MINUTE_MS, .error_max_ms = FW_DAY_MS, .retry_after_max_ms = 7 * FW_DAY_MS,
	};
}

static void say(struct making *m, const char *what, int64_t ms)
{
	char time[FW_RFC3339_MAX], text[120];

	if (ms == FW_NO_NUMBER)
		(void)fw_snprintf(text, sizeof(text), "%s%s", m->len ? "; " : "", what);
	else
		(void)fw_snprintf(text, sizeof(text), "%s%s %s", m->len ? "; " : "", what, fw_duration_text(time, ms));
	if (m->len + strlen(text) < sizeof(m->out->why)) {
		memcpy(m->out->why + m->len, text, strlen(text) + 1);
		m->len += strlen(text);
	}
}

/* ---- success -------------------------------------------------------------------------------------------------------------- */

/* Half the usual gap: an entry is then found a quarter of a gap late on average. A feed that fell silent is asked less and less. */
static int64_t learned_ms(const struct making *m, const struct rhythm *r)
{
	int64_t silent = r->last_ms == FW_NO_DATE ? 0 : m->now_ms - r->last_ms;
	int64_t ms = r->gap_ms / 2;

	if (silent > 2 * r->gap_ms)
		ms = FW_MAX(ms, silent / 8);
	return ms;
}

static void base_interval(struct making *m, const struct rhythm *r)
{
	if (m->f->interval_ms > 0) {
		m->ms = m->f->interval_ms;
		say(m, "set by you:", m->ms);
	} else if (r->gap_n >= 2) {
		m->ms = learned_ms(m, r);
		say(m, "learned from its dates:", m->ms);
	} else {
		m->ms = m->p->normal_ms;
		say(m, "no rhythm known:", m->ms);
	}
}

/* The publisher or its server asks for more time. */
static void ask(struct making *m, const char *who, int64_t ms)
{
	if (ms <= m->ms)
		return;
	m->ms = ms;
	say(m, who, ms);
}

static int64_t minutes(int64_t n)
{
	return n > SERVER_ASK_MAX_MS / FW_MINUTE_MS ? SERVER_ASK_MAX_MS : n * FW_MINUTE_MS;
}

static void clamp(struct making *m)
{
	if (m->f->interval_ms > 0)
		return; /* the owner's word counts as it is, but for what the server asks */
	if (m->ms < m->p->min_ms) {
		m->ms = m->p->min_ms;
		say(m, "never sooner than", m->ms);
	}
	if (m->ms > m->p->max_ms) {
		m->ms = m->p->max_ms;
		say(m, "never later than", m->ms);
	}
}

/* Leave the hours and days the publisher named; when it named them all it means nothing. */
static void skip(struct making *m, uint32_t hours, uint8_t days)
{
	int64_t at = m->now_ms + m->ms, from = at;
	struct fw_civil c;

	if ((hours & 0xffffff) == 0xffffff || (days & 0x7f) == 0x7f) {
		say(m, "its skipHours or skipDays leave no time: ignored", FW_NO_NUMBER);
		return;
	}
	for (int i = 0; i < 8 * 24; i++) {
		fw_civil_from_ms(at, &c);
		if (days >> c.weekday & 1)
			at += FW_DAY_MS - (at % FW_DAY_MS);
		else if (hours >> c.hour & 1)
			at += FW_HOUR_MS - (at % FW_HOUR_MS);
		else
			break;
	}
	if (at != from) {
		m->ms = at - m->now_ms;
		say(m, "moved out of skipHours and skipDays by", at - from);
	}
}

static void jitter(struct making *m)
{
	int64_t width = m->ms / 10, at, in_hour;

	if (width > 0)
		m->ms += (int64_t)(m->rnd % (uint64_t)width); /* only later: what was asked for is kept */
	at = m->now_ms + m->ms;
	in_hour = at % FW_HOUR_MS;
	if (width > HOT_MINUTE_MS && (in_hour < HOT_MINUTE_MS || in_hour > FW_HOUR_MS - HOT_MINUTE_MS))
		m->ms += HOT_MINUTE_MS + (int64_t)((m->rnd >> 32) % (uint64_t)(3 * HOT_MINUTE_MS));
}

static void after_success(struct making *m)
{
	const struct fw_due_facts *f = m->f;
	struct rhythm r;

	rhythm_read(f->rhythm, &r);
	base_interval(m, &r);
	/* a document just read speaks for itself; behind a 304 its last words still count */
	ask(m, "its ttl asks for", minutes(f->ttl_minutes > 0 ? f->ttl_minutes : r.ttl_minutes > 0 ? r.ttl_minutes : 0));
	ask(m, "its updatePeriod asks for", minutes(f->update_period_minutes > 0 ? f->update_period_minutes :
		r.update_period_minutes > 0 ? r.update_period_minutes : 0));
	clamp(m);
	if (f->fresh_ms != FW_NO_NUMBER && f->fresh_ms > m->ms) {
		ask(m, "fresh for", FW_MIN(f->fresh_ms, SERVER_ASK_MAX_MS));
		if (m->ms > m->p->max_ms && !f->interval_ms) {
			m->ms = m->p->max_ms;
			say(m, "never later than", m->ms);
		}
	}
	if (f->retry_after_ms != FW_NO_NUMBER)
		ask(m, "Retry-After asks for", FW_MIN(f->retry_after_ms, m->p->retry_after_max_ms));
	if (f->skip_hours || f->skip_days || r.skip_hours || r.skip_days)
		skip(m, f->skip_hours ? f->skip_hours : r.skip_hours, f->skip_days ? f->skip_days : r.skip_days);
	jitter(m);
}

/* ---- failure -------------------------------------------------------------------------------------------------------------- */

struct law { /* the n-th failure in a row waits first * 2^(n-1), at most max */
	const char *name;
	int64_t first_ms, max_ms;
};

static struct law law_of(const struct fw_due_facts *f, const struct fw_due_policy *p)
{
	const struct law usual = {"failed", p->error_min_ms, p->error_max_ms};
	const int64_t week = 7 * FW_DAY_MS;

	switch (f->kind) {
	case FW_VISIT_HTTP:
		if (f->http_status == 429)
			return (struct law){"asked too often (429)", FW_HOUR_MS, p->error_max_ms};
		if (f->http_status == 503)
			return (struct law){"unavailable (503)", FW_HOUR_MS, p->error_max_ms};
		if (f->http_status == 401 || f->http_status == 403)
			return (struct law){"refused", 4 * FW_HOUR_MS, week};
		if (f->http_status == 404)
			return (struct law){"not found", FW_HOUR_MS, week};
		return usual;
	case FW_VISIT_DNS:
		return (struct law){"its name is not found", FW_HOUR_MS, week};
	case FW_VISIT_TLS:
		return (struct law){"its certificate or TLS failed", FW_HOUR_MS, week};
	case FW_VISIT_FORMAT:
		return (struct law){"no feed there", 2 * FW_HOUR_MS, week};
	case FW_VISIT_LIMIT:
		return (struct law){"past a limit", 4 * FW_HOUR_MS, week};
	case FW_VISIT_BLOCKED:
		return (struct law){"its address is not allowed", 4 * FW_HOUR_MS, week};
	case FW_VISIT_CRASH:
		return (struct law){"it killed its worker", 4 * FW_HOUR_MS, week};
	default:
		return usual;
	}
}

static void after_failure(struct making *m)
{
	const struct fw_due_facts *f = m->f;
	struct law law = law_of(f, m->p);
	uint32_t n = f->fail_n > 0 ? f->fail_n : 1;

	m->ms = law.first_ms;
	for (uint32_t i = 1; i < n && m->ms < law.max_ms; i++)
		m->ms *= 2;
	if (m->ms > law.max_ms)
		m->ms = law.max_ms;
	(void)fw_snprintf(m->out->why, sizeof(m->out->why), "%s, %u in a row", law.name, (unsigned)n);
	m->len = strlen(m->out->why);
	say(m, "back-off", m->ms);
	if (f->interval_ms > m->ms)
		ask(m, "set by you:", f->interval_ms);
	if (f->retry_after_ms != FW_NO_NUMBER) {
		if (f->retry_after_ms > m->p->retry_after_max_ms)
			say(m, "Retry-After is longer than is believed", FW_NO_NUMBER);
		ask(m, "Retry-After asks for", FW_MIN(f->retry_after_ms, m->p->retry_after_max_ms));
	}
	jitter(m);
}

/* ---- the whole ------------------------------------------------------------------------------------------------------------ */

void fw_due(const struct fw_due_facts *f, const struct fw_due_policy *p, int64_t now_ms, uint64_t rnd, struct fw_due *out)
{
	struct making m = {.f = f, .p = p, .now_ms = now_ms, .rnd = rnd, .out = out};

	*out = (struct fw_due){0};
	if (f->expired || f->kind == FW_VISIT_GONE) {
		out->stop = true;
		m.ms = PROBE_MS;
		say(&m, f->kind == FW_VISIT_GONE ? "gone (410): not asked any more" : "it says it has ended: not asked any more",
			FW_NO_NUMBER);
	} else if (f->kind == FW_VISIT_LOCAL) {
		m.ms = FW_MINUTE_MS;
		say(&m, "our own fault, nobody is charged: again in", m.ms);
		jitter(&m);
	} else if (f->kind == FW_VISIT_OK || f->kind == FW_VISIT_SAME || f->kind == FW_VISIT_NOT_MODIFIED) {
		after_success(&m);
	} else {
		after_failure(&m);
	}
	out->at_ms = now_ms + m.ms;
}
