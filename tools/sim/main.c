/* SPDX-License-Identifier: ISC */
/*
 * When is a feed polled, and how long after publication is an entry found: by a fixed interval, by
 * Miniflux's entry-frequency rule, and by our rule; on synthetic feeds and on the dates of real
 * documents.
 *
 * First each rule as it is. More polls find entries sooner, so then with equal numbers of requests:
 * as many as a fixed hour (ours in its own bounds, and in those of the entry-frequency rule), as
 * many as the entry-frequency rule, and the fixed interval that takes as many as ours.
 *
 * With --backlog: after a time without requests, which order finds most entries first.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/buf.h"
#include "base/json.h"
#include "sim.h"

#define TRIAL_FEEDS 10000  /* factors are sought on this many feeds, */
#define EQUAL_FEEDS 100000 /* and not at all in larger worlds */
#define TRACE_ROUNDS 8

static const char USAGE[] =
	"usage: simulate [--trace FOLDER] [--feeds N] [--days N] [--seed N] [--json | --bench | --backlog HOURS]\n"
	"\n"
	"Without a FOLDER of feed documents, only synthetic feeds are simulated: 20,000 of them, for 30 days.\n"
	"--bench: one line for each figure: name, ours, reference, ratio, goal, ok or short; with a million synthetic "
	"feeds.\n"
	"--backlog: nothing was fetched for the last HOURS; which share of the missed entries the first requests find, "
	"by order.\n";

struct sim_options {
	const char *trace;
	int64_t feeds, days, seed, backlog_h;
	bool json, bench;
};

enum {
	FIXED,
	FREQUENCY,
	OURS,
	FREQUENCY_AS_FIXED,
	OURS_AS_FIXED,
	OURS_AS_FIXED_BOUNDS,
	OURS_AS_FREQUENCY,
	FIXED_AS_OURS,
	ROW_N
};

struct study_row {
	char name[64];
	struct rule rule;
	struct tally t;
	int64_t took_us;
};

struct study {
	struct world world;
	size_t rounds, row_n;
	struct study_row row[ROW_N];
};

/* ---- runs ------------------------------------------------------------------------------------ */

/* Run a rule on every `step`-th feed of the world, `rounds` times with different random numbers. */
static bool world_run(const struct world *w, const struct rule *rule, size_t rounds, size_t step, struct tally *t)
{
	struct life life = {0};
	bool ok = true;

	for (size_t i = 0; ok && i < w->feeds * rounds; i += step) {
		ok = world_feed(w, i, &life);
		if (ok)
			rule_run(rule, &life, t);
	}
	life_free(&life);
	return ok;
}

static bool study_row_run(const struct world *w, size_t rounds, struct study_row *r)
{
	int64_t began = fw_thread_cpu_us();
	bool ok = tally_begin(&r->t) && world_run(w, &r->rule, rounds, 1, &r->t);

	r->took_us = fw_thread_cpu_us() - began;
	return ok;
}

/* Requests per feed and day. */
static double requests_per_day(const struct tally *t)
{
	return t->feed_days > 0 ? t->requests / t->feed_days : 0;
}

/*
 * Find the factor with which a rule takes `want` requests per feed and day: by bisection, on a part
 * of the feeds.
 */
static bool factor_find(const struct world *w, double want, struct rule *rule)
{
	bool more_is_less = rule->kind != RULE_FREQUENCY;
	double lo = rule->factor / 1024, hi = rule->factor * 1024;
	size_t step = w->feeds > TRIAL_FEEDS ? w->feeds / TRIAL_FEEDS : 1;

	for (int i = 0; i < 20; i++) {
		struct tally t = {0};
		bool ok;

		rule->factor = sqrt(lo * hi);
		ok = tally_begin(&t) && world_run(w, rule, 1, step, &t);
		if (ok && (requests_per_day(&t) > want) == more_is_less)
			lo = rule->factor;
		else
			hi = rule->factor;
		tally_free(&t);
		if (!ok)
			return false;
	}
	return true;
}

/* The rows of a study. Our rule starts with its default target. */
static const struct {
	struct rule rule;
	int as; /* an earlier row whose number of requests to match; -1: none */
} PLAN[ROW_N] = {
	[FIXED] = {{RULE_FIXED, 60, 0}, -1},
	[FREQUENCY] = {{RULE_FREQUENCY, 1, 0}, -1},
	[OURS] = {{RULE_OURS, 0, 0}, -1},
	[FREQUENCY_AS_FIXED] = {{RULE_FREQUENCY, 1, 0}, FIXED},
	[OURS_AS_FIXED] = {{RULE_OURS, 0, 0}, FIXED},
	[OURS_AS_FIXED_BOUNDS] = {{RULE_OURS, 0, RULE_FREQUENCY_MIN_MS}, FIXED},
	[OURS_AS_FREQUENCY] = {{RULE_OURS, 0, RULE_FREQUENCY_MIN_MS}, FREQUENCY},
	[FIXED_AS_OURS] = {{RULE_FIXED, 60, 0}, OURS},
};

static void study_row_name(struct study_row *r)
{
	double f = r->rule.factor;

	if (r->rule.kind == RULE_FIXED)
		(void)fw_snprintf(r->name, sizeof(r->name), "every %.0f min", f);
	else if (r->rule.kind == RULE_FREQUENCY)
		(void)fw_snprintf(r->name, sizeof(r->name), "entry frequency, factor %.3g", f);
	else
		(void)fw_snprintf(
			r->name, sizeof(r->name), "ours, target %.3f%s", f, r->rule.min_ms ? ", not below 5 min" : "");
}

static bool study_run(struct study *s)
{
	struct fw_due_policy usual;

	fw_due_policy_default(&usual);
	s->row_n = s->world.feeds > EQUAL_FEEDS ? FREQUENCY_AS_FIXED : ROW_N;
	for (size_t i = 0; i < s->row_n; i++) {
		struct study_row *r = &s->row[i];

		r->rule = PLAN[i].rule;
		if (r->rule.kind == RULE_OURS)
			r->rule.factor = usual.target;
		if (PLAN[i].as >= 0 && !factor_find(&s->world, requests_per_day(&s->row[PLAN[i].as].t), &r->rule))
			return false;
		study_row_name(r);
		if (!study_row_run(&s->world, s->rounds, r))
			return false;
	}
	return true;
}

static void study_free(struct study *s)
{
	for (size_t i = 0; i < s->row_n; i++)
		tally_free(&s->row[i].t);
	world_free(&s->world);
}

/* ---- output ---------------------------------------------------------------------------------- */

static double ratio_of(double part, double of)
{
	return of > 0 ? part / of : 0;
}

/* Seconds below an hour, minutes above. */
static const char *duration_print(double ms, char out[FW_RFC3339_MAX])
{
	int64_t s = (int64_t)(ms / 1000 + 0.5);

	return fw_duration_text(out, s >= 3600 ? s / 60 * FW_MINUTE_MS : s * 1000);
}

static void study_print(const struct study *s)
{
	char median[FW_RFC3339_MAX], p95[FW_RFC3339_MAX], mean[FW_RFC3339_MAX];

	printf("%s: %zu feeds, %lld days\n", s->world.name, s->world.feeds, (long long)s->world.days);
	printf("%-38s %12s %12s %8s %6s %6s %11s %11s %11s %7s\n", "", "requests", "a day", "feed,day", "304", "new",
		"median", "p95", "mean", "cpu s");
	for (size_t i = 0; i < s->row_n; i++) {
		const struct tally *t = &s->row[i].t;

		printf("%-38s %12.0f %12.0f %8.2f %5.1f%% %5.1f%% %11s %11s %11s %7.1f\n", s->row[i].name, t->requests,
			requests_per_day(t) * (double)s->world.feeds, requests_per_day(t),
			100 * ratio_of(t->not_modified, t->requests), 100 * ratio_of(t->fruitful, t->requests),
			duration_print(tally_quantile_ms(t, 0.5), median),
			duration_print(tally_quantile_ms(t, 0.95), p95),
			duration_print(ratio_of(t->delay_sum_ms, t->entries), mean), (double)s->row[i].took_us / 1e6);
	}
	printf("\n");
}

static void study_write_json(struct fw_json *j, const struct study *s)
{
	fw_json_object(j, NULL);
	fw_json_cstr(j, "world", s->world.name);
	fw_json_int(j, "feeds", (int64_t)s->world.feeds);
	fw_json_int(j, "days", s->world.days);
	fw_json_array(j, "rules");
	for (size_t i = 0; i < s->row_n; i++) {
		const struct tally *t = &s->row[i].t;

		fw_json_object(j, NULL);
		fw_json_cstr(j, "rule", s->row[i].name);
		fw_json_double(j, "factor", s->row[i].rule.factor);
		fw_json_double(j, "requests", t->requests);
		fw_json_double(j, "requests_per_feed_day", requests_per_day(t));
		fw_json_double(j, "not_modified_share", ratio_of(t->not_modified, t->requests));
		fw_json_double(j, "new_share", ratio_of(t->fruitful, t->requests));
		fw_json_double(j, "entries", t->entries);
		fw_json_double(j, "median_ms", tally_quantile_ms(t, 0.5));
		fw_json_double(j, "p95_ms", tally_quantile_ms(t, 0.95));
		fw_json_double(j, "mean_ms", ratio_of(t->delay_sum_ms, t->entries));
		fw_json_int(j, "cpu_us", s->row[i].took_us);
		fw_json_end(j);
	}
	fw_json_end(j);
	fw_json_end(j);
}

/* ---- bench ----------------------------------------------------------------------------------- */

/* A line as the other benchmarks print it; the goal is for the ratio. */
static void bench_row(const char *name, double ours, double reference, double goal, bool at_most)
{
	double ratio = ratio_of(ours, reference);

	printf("%-66s %12.4g %12.4g %8.3f %s%-6.3g %s\n", name, ours, reference, ratio, at_most ? "<=" : ">=", goal,
		(at_most ? ratio <= goal : ratio >= goal) ? "ok" : "short");
}

static double median_min(const struct study *s, int row)
{
	return tally_quantile_ms(&s->row[row].t, 0.5) / FW_MINUTE_MS;
}

static void bench_trace(const struct study *s)
{
	const struct tally *ours = &s->row[OURS].t;

	bench_row("trace: median delay, min / hourly, as many requests", median_min(s, OURS_AS_FIXED),
		median_min(s, FIXED), 0.5, true);
	bench_row("trace: median delay, min / a fixed interval's, as many as ours", median_min(s, OURS),
		median_min(s, FIXED_AS_OURS), 0.5, true);
	bench_row("trace: median delay, min / entry frequency's, as many as hourly",
		median_min(s, OURS_AS_FIXED_BOUNDS), median_min(s, FREQUENCY_AS_FIXED), 1, true);
	bench_row("trace: median delay, min / entry frequency's, as many as it takes", median_min(s, OURS_AS_FREQUENCY),
		median_min(s, FREQUENCY), 1, true);
	bench_row("trace: share of visits that find something / published 5 %",
		ratio_of(ours->fruitful, ours->requests), 0.05, 3, false);
}

static void bench_made(const struct study *s)
{
	struct rusage use;
	double cpu_s = 0;
	char name[80];

	for (size_t i = 0; i < s->row_n; i++)
		cpu_s += (double)s->row[i].took_us / 1e6;
	if (fw_snprintf(name, sizeof(name), "simulator: %zu feeds x %lld days, 3 rules, CPU s / 5 min", s->world.feeds,
		    (long long)s->world.days))
		bench_row(name, cpu_s, 300, 1, true);
	if (!getrusage(RUSAGE_SELF, &use))
		bench_row("simulator: memory at most, MiB / 1 GiB", (double)use.ru_maxrss / 1024, 1024, 1, true);
}

/* ---- command line ---------------------------------------------------------------------------- */

static bool option_number(const char *text, int64_t min, int64_t max, int64_t *out)
{
	return text && fw_str_int(fw_str(text), out) && *out >= min && *out <= max;
}

/* Returns 0, or the exit status. */
static int read_options(int argc, char **argv, struct sim_options *o)
{
	*o = (struct sim_options){.days = 30, .seed = 1};
	for (int i = 1; i < argc; i++) {
		const char *arg = argv[i], *value = argv[i + 1];
		bool ok;

		if (!strcmp(arg, "--json") || !strcmp(arg, "--bench")) {
			*(arg[2] == 'j' ? &o->json : &o->bench) = true;
			continue;
		}
		if (!strcmp(arg, "--trace"))
			ok = (o->trace = value) != NULL;
		else if (!strcmp(arg, "--feeds"))
			ok = option_number(value, 1, 100000000, &o->feeds);
		else if (!strcmp(arg, "--days"))
			ok = option_number(value, 1, 366, &o->days);
		else if (!strcmp(arg, "--seed"))
			ok = option_number(value, 0, INT64_MAX, &o->seed);
		else if (!strcmp(arg, "--backlog"))
			ok = option_number(value, 1, 24 * 30, &o->backlog_h);
		else
			ok = false;
		if (!ok) {
			fprintf(stderr, "simulate: unusable argument: %s%s%s\n%s", arg, value ? " " : "",
				value ? value : "", USAGE);
			return 2;
		}
		i++;
	}
	if (!o->feeds)
		o->feeds = o->bench ? 1000000 : 20000;
	return 0;
}

static bool backlog_print(const struct world *w, int64_t hours)
{
	static const char *const NAME[BACKLOG_ORDERS] = {
		"by due time", "by value", "by expected entries", "best possible"};
	struct backlog b;

	if (!backlog_run(w, hours * FW_HOUR_MS, &b))
		return false;
	printf("%s: after %lld h without a request %.0f feeds are due, with %.0f new entries; found by the first "
	       "requests:\n",
		w->name, (long long)hours, b.feeds, b.missed);
	printf("%-28s", "");
	for (size_t i = 0; i < BACKLOG_PARTS; i++)
		printf(" %7.0f%%", 100 * BACKLOG_PART[i]);
	for (size_t order = 0; order < BACKLOG_ORDERS; order++) {
		printf("\n%-28s", NAME[order]);
		for (size_t i = 0; i < BACKLOG_PARTS; i++)
			printf(" %7.1f%%", 100 * b.found[order][i]);
	}
	printf("\n");
	return true;
}

static int run_backlog(const struct sim_options *o)
{
	struct world w;
	struct fw_err err;
	bool ok = true;

	if (o->trace) {
		if (world_trace(&w, o->trace, o->days, (uint64_t)o->seed, &err)) {
			fprintf(stderr, "simulate: %s\n", err.text);
			return 1;
		}
		ok = backlog_print(&w, o->backlog_h);
		world_free(&w);
	}
	world_zipf(&w, (size_t)o->feeds, o->days, (uint64_t)o->seed);
	ok = ok && backlog_print(&w, o->backlog_h);
	if (!ok)
		fprintf(stderr, "simulate: out of memory\n");
	return ok && !fflush(stdout) ? 0 : 1;
}

static int run_studies(const struct sim_options *o, struct study *trace, struct study *made)
{
	struct fw_err err;

	if (o->trace && world_trace(&trace->world, o->trace, o->days, (uint64_t)o->seed, &err)) {
		fprintf(stderr, "simulate: %s\n", err.text);
		return 1;
	}
	world_zipf(&made->world, (size_t)o->feeds, o->days, (uint64_t)o->seed);
	if ((o->trace && !study_run(trace)) || !study_run(made)) {
		fprintf(stderr, "simulate: out of memory\n");
		return 1;
	}
	return 0;
}

static void write_json(const struct sim_options *o, const struct study *trace, const struct study *made)
{
	struct fw_buf out;
	struct fw_json j;

	fw_buf_init(&out, 0);
	fw_json_init(&j, &out, true);
	fw_json_array(&j, NULL);
	if (o->trace)
		study_write_json(&j, trace);
	study_write_json(&j, made);
	fw_json_end(&j);
	printf("%.*s\n", (int)out.len, out.p);
	fw_buf_finish(&out);
}

int main(int argc, char **argv)
{
	static struct study trace = {.rounds = TRACE_ROUNDS}, made = {.rounds = 1};
	struct sim_options o;
	int status = read_options(argc, argv, &o);

	if (status)
		return status;
	if (o.backlog_h)
		return run_backlog(&o);
	status = run_studies(&o, &trace, &made);
	if (!status && o.json) {
		write_json(&o, &trace, &made);
	} else if (!status && o.bench) {
		if (o.trace)
			bench_trace(&trace);
		else
			printf("# no trace: name a folder of feed documents with --trace\n");
		bench_made(&made);
	} else if (!status) {
		if (o.trace)
			study_print(&trace);
		study_print(&made);
	}
	study_free(&trace);
	study_free(&made);
	return fflush(stdout) ? 1 : status;
}
