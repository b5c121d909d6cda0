/* SPDX-License-Identifier: ISC */
/*
 * The analysis of a run: visits become bars, bars get rows (one per slot), and the verdict names
 * the bottleneck. A visit has a slot number, but all workers number their slots from 0, and times
 * are rounded to milliseconds. So a bar whose row is in use moves to the next free row.
 *
 * Why slots were idle follows from what each visit did before its request: not due yet, waiting for
 * its host's limits, not claimed yet, or claimed and waiting for the worker. At each moment the
 * idle slots are attributed to the visits that could have started soonest: claimed, then due, then
 * deferred by their host. A run whose whole time is known also has idle time before its first
 * request and after its last response.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/str.h"
#include "base/url.h"
#include "picture/timeline.h"

#define IDLE_PRINTED 3  /* reasons printed at most */
#define IDLE_LEAST 0.05 /* share of the slots' time that a further reason needs */
#define BLUR_US 20000   /* overlap of adjacent bars that rounding and scheduling delays can cause */

void timeline_init(struct timeline *t)
{
	*t = (struct timeline){.run_id = 0};
	fw_arena_init(&t->arena, 0);
}

void timeline_finish(struct timeline *t)
{
	free(t->bar);
	fw_arena_finish(&t->arena);
}

void timeline_take_forecast(struct timeline *t, const struct fw_run_forecast *kept)
{
	t->elapsed_us = FW_MAX(kept->elapsed_us, 0);
	t->read_us = kept->took_us;
	t->order = fw_str(kept->order);
	t->slots = (uint32_t)FW_MIN(FW_MAX(kept->slots, 0), 100000);
	t->batch = (uint32_t)FW_MIN(FW_MAX(kept->batch, 0), INT64_C(1000000000));
	t->predicted_us = kept->predicted_us;
}

int timeline_add(struct timeline *t, const struct fw_visit *v)
{
	char host[256];
	struct timeline_bar *b;

	_Static_assert(
		PHASE_BODY - PHASE_DNS + 1 == FW_VISIT_PHASES, "the phases of a visit are among ours, in its order");
	if (t->n == t->cap) {
		size_t cap = t->cap ? 2 * t->cap : 1024;
		struct timeline_bar *grown = reallocarray(t->bar, cap, sizeof(*grown));

		if (!grown)
			return FW_ENOMEM;
		t->bar = grown;
		t->cap = cap;
	}
	b = &t->bar[t->n++];
	*b = (struct timeline_bar){.visit = *v};
	b->visit.error = fw_arena_str(&t->arena, v->error);
	b->visit.feed_url = fw_arena_str(&t->arena, v->feed_url);
	if (fw_store_host(v->feed_url, host, sizeof(host)))
		b->host = fw_arena_str(&t->arena, fw_str(host));
	fw_visit_phases(v, b->took_us + PHASE_DNS);
	b->took_us[PHASE_QUEUE] = v->queue_us;
	b->took_us[PHASE_PARSE] = v->parse_us;
	b->took_us[PHASE_STORE] = v->store_us;
	return t->arena.failed ? FW_ENOMEM : 0;
}

/* ---- rows ------------------------------------------------------------------------------------ */

FW_COMPARE_BY(bar_by_time, struct timeline_bar, visit.at_ms, visit.slot)

/* The row of the bar's slot if free, else the first free row, else a new one. */
static uint32_t timeline_row_for(int64_t *end, uint32_t *n, const struct timeline_bar *b)
{
	uint32_t own = b->visit.slot >= 0 ? (uint32_t)b->visit.slot : 0, at = *n;

	if (own < *n && end[own] <= b->from_us + BLUR_US)
		return own;
	for (uint32_t i = 0; i < *n && at == *n; i++) {
		if (end[i] >= 0 && end[i] <= b->from_us + BLUR_US && i != own)
			at = i;
	}
	if (at == *n)
		++*n;
	return at;
}

static int timeline_assign_rows(struct timeline *t)
{
	uint32_t n = t->slots, used = 0;
	int64_t *end;

	for (size_t i = 0; i < t->n; i++)
		n = FW_MAX(n,
			t->bar[i].visit.slot >= 0 && t->bar[i].visit.slot < 100000 ?
				(uint32_t)t->bar[i].visit.slot + 1 :
				1u);
	end = calloc(n + t->n, sizeof(*end));
	if (!end)
		return FW_ENOMEM;
	for (size_t i = 0; i < t->n; i++) {
		struct timeline_bar *b = &t->bar[i];

		b->row = timeline_row_for(end, &n, b);
		end[b->row] = FW_MAX(end[b->row], b->until_us);
		used = FW_MAX(used, b->row + 1);
	}
	t->row_n = used;
	free(end);
	return 0;
}

/* ---- bounds and the verdict ------------------------------------------------------------------ */

struct chain {
	struct fw_str host;
	int64_t us, shortest_us;
	size_t n;
};

/* The minimum time for a host's visits: by its concurrency, and by the gaps between them. */
static int64_t chain_min_us(const struct timeline *t, const struct chain *c)
{
	int64_t pauses_us = (int64_t)(c->n - 1) * t->host_gap_us + c->shortest_us;

	return FW_MAX(t->host_concurrency ? c->us / t->host_concurrency : 0, t->host_gap_us ? pauses_us : 0);
}

static int timeline_chains(struct timeline *t)
{
	struct chain *all = calloc(t->n, sizeof(*all)), *c;
	struct fw_map map;
	size_t used = 0;
	int rc = all ? 0 : FW_ENOMEM;

	fw_map_init(&map, 0);
	for (size_t i = 0; !rc && i < t->n; i++) {
		struct timeline_bar *b = &t->bar[i];

		c = fw_map_get(&map, b->host);
		if (!c) {
			c = &all[used++];
			*c = (struct chain){.host = b->host, .shortest_us = INT64_MAX};
			(void)fw_map_put(&map, b->host, c, &rc);
		}
		c->us += b->until_us - b->from_us;
		c->shortest_us = FW_MIN(c->shortest_us, b->until_us - b->from_us);
		c->n++;
	}
	for (size_t i = 0; !rc && i < used; i++) {
		if (chain_min_us(t, &all[i]) > t->chain_us) {
			t->chain_us = chain_min_us(t, &all[i]);
			t->chain_host = all[i].host;
			t->chain_n = all[i].n;
			t->chain_pauses = t->host_concurrency == 0 || t->chain_us > all[i].us / t->host_concurrency;
		}
	}
	fw_map_finish(&map);
	free(all);
	return rc;
}

int timeline_by_us(const void *x, const void *y)
{
	int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;

	return FW_ORDER(a, b);
}

/*
 * Find when half of the rows had ended (half_us), and the idle time after each row's last bar
 * (tail_idle_us).
 */
static int timeline_row_ends(struct timeline *t)
{
	int64_t *end = calloc(t->row_n, sizeof(*end));

	if (!end)
		return FW_ENOMEM;
	for (size_t i = 0; i < t->n; i++)
		end[t->bar[i].row] = FW_MAX(end[t->bar[i].row], t->bar[i].until_us);
	qsort(end, t->row_n, sizeof(*end), timeline_by_us);
	t->half_us = end[t->row_n / 2];
	for (uint32_t i = 0; i < t->row_n; i++)
		t->tail_idle_us += t->end_us - end[i];
	free(end);
	return 0;
}

/* ---- idle slots ------------------------------------------------------------------------------ */

struct event {
	int64_t at_us;
	int kind; /* enum idle while waiting; IDLE_N: in a slot */
	int by;   /* 1, or -1 */
};

FW_COMPARE(event_by_time, struct event, at_us)

static size_t event_put_stay(struct event *e, size_t n, int kind, int64_t from_us, int64_t until_us)
{
	if (from_us >= until_us)
		return n;
	e[n] = (struct event){from_us, kind, 1};
	e[n + 1] = (struct event){until_us, kind, -1};
	return n + 2;
}

static int bar_by_host(const void *x, const void *y)
{
	const struct timeline_bar *a = *(struct timeline_bar *const *)x, *b = *(struct timeline_bar *const *)y;
	int d = memcmp(a->host.p ? a->host.p : "", b->host.p ? b->host.p : "", FW_MIN(a->host.len, b->host.len));

	if (d || a->host.len != b->host.len)
		return d ? d : a->host.len < b->host.len ? -1 : 1;
	return FW_ORDER(a->from_us, b->from_us);
}

/* Insert end_us into the host's max latest ends, in falling order. */
static void latest_put(int64_t *latest, size_t *n, size_t max, int64_t end_us)
{
	size_t i = FW_MIN(*n, max - 1);

	if (*n == max && latest[max - 1] >= end_us)
		return;
	for (; i > 0 && latest[i - 1] < end_us; i--)
		latest[i] = latest[i - 1];
	latest[i] = end_us;
	*n = FW_MIN(*n + 1, max);
}

/* When each bar's host permitted its start: at_us[i] for bar order[i]. */
static void host_times(const struct timeline *t, struct timeline_bar **order, int64_t *at_us, int64_t *latest)
{
	size_t max = FW_MIN(t->host_concurrency ? t->host_concurrency : SIZE_MAX, t->n), held = 0;

	qsort(order, t->n, sizeof(struct timeline_bar *), bar_by_host);
	for (size_t i = 0; i < t->n; i++) {
		bool same = i && fw_str_eq(order[i]->host, order[i - 1]->host);

		if (!same)
			held = 0;
		at_us[i] = same && t->host_gap_us ? order[i - 1]->from_us + t->host_gap_us : 0;
		if (held == max)
			at_us[i] = FW_MAX(at_us[i], latest[max - 1]);
		latest_put(latest, &held, max, order[i]->until_us);
	}
}

static size_t timeline_events(struct timeline *t, struct timeline_bar **order, const int64_t *host_us, struct event *e)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++) {
		const struct timeline_bar *b = order[i];
		int64_t due_us = FW_MAX(b->from_us - b->visit.lateness_ms * INT64_C(1000), 0);
		int64_t may_us = FW_MIN(FW_MAX(host_us[i], due_us), b->from_us);
		int64_t there_us = FW_MIN(FW_MAX(b->from_us - b->visit.queue_us, may_us), b->from_us);

		n = event_put_stay(e, n, IDLE_DUE, 0, due_us);
		n = event_put_stay(e, n, IDLE_HOST, due_us, may_us);
		n = event_put_stay(e, n, IDLE_CLAIM, may_us, there_us);
		n = event_put_stay(e, n, IDLE_WORKER, there_us, b->from_us);
		n = event_put_stay(e, n, IDLE_N, b->from_us, b->until_us);
	}
	qsort(e, n, sizeof(*e), event_by_time);
	return n;
}

/* Attribute us of idle_n idle slots; state: the number of feeds in each state. */
static void idle_attribute(struct timeline *t, int64_t from_us, int64_t us, int64_t idle_n, const int64_t *state)
{
	static const enum idle SOONEST[] = {IDLE_WORKER, IDLE_CLAIM, IDLE_HOST};

	if (from_us < t->begin_us) {
		t->idle_us[IDLE_START] += idle_n * us;
		return;
	}
	for (size_t i = 0; i < FW_N(SOONEST); i++) {
		int64_t n = FW_MIN(idle_n, state[SOONEST[i]]);

		t->idle_us[SOONEST[i]] += n * us;
		idle_n -= n;
	}
	t->idle_us[state[IDLE_DUE] || t->endless ? IDLE_DUE : IDLE_LEFT] += idle_n * us;
}

static int timeline_idle(struct timeline *t)
{
	struct timeline_bar **order = calloc(t->n, sizeof(struct timeline_bar *));
	int64_t *host_us = calloc(t->n, sizeof(*host_us)), *latest = calloc(t->n, sizeof(*latest)),
		state[IDLE_N + 1] = {0};
	struct event *e = calloc(t->n, 10 * sizeof(*e));
	int rc = order && host_us && latest && e ? 0 : FW_ENOMEM;

	if (!rc) {
		size_t n;

		for (size_t i = 0; i < t->n; i++)
			order[i] = &t->bar[i];
		host_times(t, order, host_us, latest);
		n = timeline_events(t, order, host_us, e);
		for (size_t i = 0; i < n; i++) {
			state[e[i].kind] += e[i].by;
			if (i + 1 < n && e[i + 1].at_us > e[i].at_us)
				idle_attribute(t, e[i].at_us, e[i + 1].at_us - e[i].at_us,
					FW_MAX(t->row_n - state[IDLE_N], 0), state);
		}
		if (n && e[0].at_us > 0)
			t->idle_us[IDLE_START] += e[0].at_us * t->row_n;
		t->idle_us[IDLE_READ] = (FW_MIN(FW_MAX(t->read_us, t->end_us), t->total_us) - t->end_us) * t->row_n;
		t->idle_us[IDLE_STORE] = (t->total_us - t->end_us) * t->row_n - t->idle_us[IDLE_READ];
	}
	free(order);
	free(host_us);
	free(latest);
	free(e);
	return rc;
}

/*
 * "Slots were idle for 70 % of the time: due feeds waited to be claimed (40 %), start-up (20 %)."
 */
static void idle_text(const struct timeline *t, char *to, size_t room)
{
	static const char *const WORDS[IDLE_N] = {
		[IDLE_START] = "start-up before the first request",
		[IDLE_WORKER] = "claimed feeds waited for a busy worker",
		[IDLE_CLAIM] = "due feeds waited to be claimed",
		[IDLE_HOST] = "limits per host",
		[IDLE_DUE] = "nothing was due",
		[IDLE_LEFT] = "no feed was left",
		[IDLE_READ] = "parsing after the last response",
		[IDLE_STORE] = "storing after the last response",
	};
	double all = FW_MAX((double)t->total_us * t->row_n, 1.0);
	struct fw_buf b = FW_BUF_INIT(0);
	bool is_printed[IDLE_N] = {false};

	fw_buf_addf(&b, "Slots were idle for %.0f %% of the time: ", t->idle * 100);
	for (int n = 0; n < IDLE_PRINTED; n++) {
		int most = -1;

		for (int i = 0; i < IDLE_N; i++) {
			if (!is_printed[i] && (most < 0 || t->idle_us[i] > t->idle_us[most]))
				most = i;
		}
		is_printed[most] = true;
		if (n && (double)t->idle_us[most] < IDLE_LEAST * all)
			break;
		fw_buf_addf(&b, "%s%s (%.0f %%)", n ? ", " : "", WORDS[most], (double)t->idle_us[most] * 100 / all);
	}
	(void)fw_snprintf(to, room, "%s.", b.p ? b.p : "");
	fw_buf_finish(&b);
}

/* ---- the verdict ----------------------------------------------------------------------------- */

static void verdict_text(struct timeline *t)
{
	char time[FW_RFC3339_MAX], took[FW_RFC3339_MAX];
	const struct timeline_bar *last = &t->bar[t->last];
	int64_t fetching_us = t->end_us - t->begin_us, tail_us = t->end_us - t->half_us,
		idle_us = fetching_us * t->row_n - t->sum_us;
	bool good = fetching_us <= t->bound_us + t->bound_us / 20;
	char *to = t->verdict, why[40] = "", host[256], limit[60];
	size_t room = sizeof(t->verdict);
	struct fw_buf url = FW_BUF_INIT(0);

	fw_url_show(&url, last->visit.feed_url);
	(void)fw_snprintf(host, sizeof(host), "%.*s", FW_STR_ARG(t->chain_host));
	if (t->chain_pauses)
		(void)fw_snprintf(limit, sizeof(limit), "%s apart", fw_duration_text(time, t->host_gap_us / 1000));
	else
		(void)fw_snprintf(limit, sizeof(limit), "%u at a time", t->host_concurrency);
	if (!fw_visit_succeeded(last->visit.kind))
		(void)fw_snprintf(why, sizeof(why), " (%s)", fw_visit_kind_name(last->visit.kind));
	(void)fw_duration_text(took, (last->until_us - last->from_us) / 1000);
	if (t->n == 1)
		(void)fw_snprintf(to, room, "One fetch, %s.", took);
	else if (t->total_us > 2 * fetching_us) /* the order of fetches hardly matters */
		idle_text(t, to, room);
	else if (t->bound_us == t->chain_us && t->chain_n > 1 && fetching_us <= t->bound_us + t->bound_us / 5)
		(void)fw_snprintf(to, room, "Bottleneck: %.200s. %zu fetches from one host, %s, take %s in any order.",
			host, t->chain_n, limit, fw_duration_text(time, t->chain_us / 1000));
	else if ((good && t->bound_us == t->longest_us) || (last->until_us - last->from_us) * 4 >= fetching_us * 3)
		(void)fw_snprintf(to, room, "Bottleneck: one feed. %.200s took %s%s.", url.p ? url.p : "", took, why);
	else if (good)
		(void)fw_snprintf(
			to, room, "No bottleneck but the slots: all were busy to the end. More slots would be faster.");
	else if (t->batch)
		(void)fw_snprintf(to, room,
			"Bottleneck: the batches. %.0f %% of the slots' time passed waiting for the slowest fetch of "
			"each.",
			fetching_us ? (double)idle_us * 100 / ((double)fetching_us * t->row_n) : 0);
	else if (!t->endless && t->tail_idle_us > idle_us / 2 && last->from_us <= t->half_us + tail_us / 4)
		(void)fw_snprintf(to, room,
			"For the last %s less than half of the slots had work: the last fetch, %.200s, took %s%s.",
			fw_duration_text(time, tail_us / 1000), url.p ? url.p : "", took, why);
	else {
		idle_text(t, to, room);
		t->half_us = t->total_us;
	}
	fw_buf_finish(&url);
}

int timeline_analyze(struct timeline *t)
{
	int rc;

	qsort(t->bar, t->n, sizeof(*t->bar), bar_by_time);
	/* a run's number is its start time */
	t->started_ms = t->elapsed_us ? FW_MIN(t->run_id, t->bar[0].visit.at_ms) : t->bar[0].visit.at_ms;
	for (size_t i = 0; i < t->n; i++) {
		struct timeline_bar *b = &t->bar[i];

		b->from_us = (b->visit.at_ms - t->started_ms) * 1000;
		b->until_us = b->from_us + FW_MAX(b->visit.total_us, 0);
		t->sum_us += b->until_us - b->from_us;
		t->longest_us = FW_MAX(t->longest_us, b->until_us - b->from_us);
		t->failed_n += !fw_visit_succeeded(b->visit.kind);
		if (b->until_us >= t->end_us) {
			t->end_us = b->until_us;
			t->last = i;
		}
	}
	t->begin_us = t->bar[0].from_us;
	t->total_us = FW_MAX(t->end_us, t->elapsed_us);
	rc = timeline_assign_rows(t);
	rc = rc ? rc : timeline_chains(t);
	rc = rc ? rc : timeline_row_ends(t);
	rc = rc ? rc : timeline_idle(t);
	if (rc)
		return rc;
	t->slots_us = t->sum_us / FW_MAX(FW_MAX(t->row_n, t->slots), 1u);
	t->bound_us = FW_MAX(FW_MAX(t->slots_us, t->longest_us), t->chain_us);
	t->idle = t->total_us ? 1 - (double)t->sum_us / ((double)t->total_us * t->row_n) : 0;
	verdict_text(t);
	return 0;
}
