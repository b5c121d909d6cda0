/* SPDX-License-Identifier: ISC */
/* run: start the engine's master; show its progress; print the summary. */
#include <errno.h>
#include <signal.h>

#include "cli/progress.h"
#include "api/sandbox.h"

#define FORECAST_SHOWN_US 1000000

struct session {
	struct cli_progress progress;
	uint64_t kind[FW_VISIT_KIND_N]; /* visits of this run by outcome */
};

static void run_progress(void *ctx, const struct fw_run_stats *s)
{
	struct session *r = ctx;

	cli_progress_show(&r->progress, s);
}

static int run_reload(void *ctx, struct fw_config **out, struct fw_err *err)
{
	struct session *r = ctx;

	return cli_config_read(r->progress.c, out, err);
}

static int run_count_visit(void *ctx, const struct fw_visit *v)
{
	struct session *r = ctx;

	if ((size_t)v->kind < FW_N(r->kind))
		r->kind[v->kind]++;
	return 0;
}

static bool run_is_failure(size_t kind)
{
	return kind != FW_VISIT_NONE && kind != FW_VISIT_OK && kind != FW_VISIT_SAME && kind != FW_VISIT_NOT_MODIFIED;
}

/* Print the lower bound of the run's duration and its cause. */
static void run_bound_text(struct cli *c, const struct fw_run_forecast *p)
{
	char a[FW_RFC3339_MAX];

	cli_out(c, "lower bound for any order %s: ", fw_duration_text(a, p->bound_us / 1000));
	if (p->bound_us == p->host_us && p->host[0]) {
		cli_out_safe(c, fw_str(p->host));
		cli_out(c, " has %s and limits per host\n", cli_count(a, p->host_n, "feed", "feeds"));
	} else if (p->bound_us == p->longest_us) {
		cli_out(c, "the slowest feed takes that long\n");
	} else {
		cli_out(c, "the work of %s slots\n", cli_number(a, p->slots));
	}
}

static int64_t run_forecast_error(const struct fw_run_forecast *p)
{
	return p->predicted_us ? (p->took_us - p->predicted_us) * 100 / p->predicted_us : 0;
}

/*
 * Print forecast and bound. Runs under a second are dominated by start-up and shutdown, so they are
 * not compared.
 */
static void run_forecast_text(struct cli *c, const struct fw_run_forecast *p)
{
	char a[FW_RFC3339_MAX], b[FW_RFC3339_MAX];

	if (!p->bound_us || p->took_us < FORECAST_SHOWN_US)
		return;
	cli_out(c, "time     ");
	if (p->predicted_us)
		cli_out(c, "forecast %s, took %s (%+lld %%) until the last document was parsed; ",
			fw_duration_text(a, p->predicted_us / 1000), fw_duration_text(b, p->took_us / 1000),
			(long long)run_forecast_error(p));
	run_bound_text(c, p);
}

static void run_summary_text(struct cli *c, const struct session *r, const struct fw_run_stats *s)
{
	char a[FW_RFC3339_MAX], b[FW_RFC3339_MAX], d[FW_RFC3339_MAX];
	const char *sep = "";

	cli_paint(&c->out, c->term.out_colour, CLI_BOLD, FW_STR("done"));
	cli_out(c, "     %s in %s", cli_count(a, (int64_t)s->done, "feed", "feeds"),
		fw_duration_text(b, s->elapsed_ms));
	if (s->elapsed_ms > 0)
		cli_out(c, " (%.0f feeds/s)", (double)s->done * 1000 / (double)s->elapsed_ms);
	cli_out(c, ": %s read, %s unchanged, %s failed\n", cli_number(a, (int64_t)s->ok),
		cli_number(b, (int64_t)s->not_modified), cli_number(d, (int64_t)s->failed));
	cli_out(c, "entries  %s new, %s changed\n", cli_number(a, (int64_t)s->new_entries),
		cli_number(b, (int64_t)s->changed_entries));
	run_forecast_text(c, &s->forecast);
	cli_out(c, "traffic  %s received, %s decoded\n", cli_bytes(a, s->wire_bytes), cli_bytes(b, s->body_bytes));
	if (s->failed) {
		cli_out(c, "failed   ");
		for (size_t i = 0; i < FW_N(r->kind); i++) {
			if (r->kind[i] && run_is_failure(i)) {
				cli_out(c, "%s%s %s", sep, cli_number(a, (int64_t)r->kind[i]),
					fw_visit_kind_name((enum fw_visit_kind)i));
				sep = ", ";
			}
		}
		cli_out(c, "%s'feedwheel list --failing' shows the reasons\n", *sep ? "; " : "");
	}
	if (s->stale || s->restarts)
		cli_out(c, "trouble  %s too late to be stored, %s\n",
			cli_count(a, (int64_t)s->stale, "visit", "visits"),
			cli_count(b, (int64_t)s->restarts, "worker restart", "worker restarts"));
	if (s->total > 0 && (uint64_t)s->total > s->done)
		cli_out(c, "left     %s due but not visited by this run\n",
			cli_count(a, s->total - (int64_t)s->done, "feed was", "feeds were"));
	cli_out_wrap(c, sizeof("done    "));
}

static void run_forecast_json(struct fw_json *j, const struct fw_run_forecast *p)
{
	const struct {
		const char *name;
		int64_t us;
	} MEMBER[] = {
		{"took_ms", p->took_us},
		{"sum_ms", p->sum_us},
		{"bound_ms", p->bound_us},
		{"bound_slots_ms", p->slots_us},
		{"bound_longest_ms", p->longest_us},
		{"bound_host_ms", p->host_us},
	};

	fw_json_str(j, "order", fw_str(p->order));
	fw_json_int(j, "slots", p->slots);
	if (p->predicted_us) {
		fw_json_int(j, "forecast_ms", p->predicted_us / 1000);
		fw_json_int(j, "forecast_known", p->known);
	}
	for (size_t i = 0; i < FW_N(MEMBER); i++)
		fw_json_int(j, MEMBER[i].name, MEMBER[i].us / 1000);
	if (p->host[0]) {
		fw_json_str(j, "bound_host", fw_str(p->host));
		fw_json_int(j, "bound_host_feeds", p->host_n);
	}
}

static void run_summary_json(struct cli *c, const struct session *r, const struct fw_run_stats *s)
{
	const struct {
		const char *name;
		int64_t v;
	} MEMBER[] = {
		{"elapsed_ms", s->elapsed_ms},
		{"feeds", (int64_t)s->done},
		{"read", (int64_t)s->ok},
		{"unchanged", (int64_t)s->not_modified},
		{"failed", (int64_t)s->failed},
		{"stale", (int64_t)s->stale},
		{"new_entries", (int64_t)s->new_entries},
		{"changed_entries", (int64_t)s->changed_entries},
		{"wire_bytes", (int64_t)s->wire_bytes},
		{"body_bytes", (int64_t)s->body_bytes},
		{"commits", (int64_t)s->commits},
		{"deferred", (int64_t)s->deferred},
		{"restarts", (int64_t)s->restarts},
		{"cpu_ms", s->cpu_ms},
		{"max_rss_bytes", s->max_rss_bytes},
	};
	struct cli_json w;

	cli_json_object_begin(&w, c);
	fw_json_int(&w.j, "run", s->run_id);
	fw_json_time(&w.j, "started", s->run_id);
	for (size_t i = 0; i < FW_N(MEMBER); i++)
		fw_json_int(&w.j, MEMBER[i].name, MEMBER[i].v);
	fw_json_object(&w.j, "failures");
	for (size_t i = 0; i < FW_N(r->kind); i++) {
		if (r->kind[i] && run_is_failure(i))
			fw_json_int(&w.j, fw_visit_kind_name((enum fw_visit_kind)i), (int64_t)r->kind[i]);
	}
	fw_json_end(&w.j);
	if (s->forecast.bound_us)
		run_forecast_json(&w.j, &s->forecast);
	cli_json_object_end(&w, c);
}

/* Nothing is due: print when the next feed is. */
static void run_note_idle(struct cli *c, const struct fw_store_stats *s, const char *remedy)
{
	char ago[FW_RFC3339_MAX], stamp[FW_RFC3339_MAX];

	if (s->next_due_ms == FW_NO_DATE || s->next_due_ms <= c->now_ms)
		cli_note(c, "nothing is due%s", remedy);
	else
		cli_note(c, "nothing is due; the next feed is due %s (%s)%s", cli_ago(c, ago, s->next_due_ms),
			cli_stamp(stamp, s->next_due_ms), remedy);
}

/*
 * Before forking: check that the store exists and has feeds, print notes, take the run's id; then
 * close it again.
 */
static int run_check_store(struct cli *c, struct fw_store_stats *out, int64_t *run_id)
{
	struct fw_store_stats stats;
	struct fw_control newest;
	struct fw_err err = {0};
	/*
	 * a service may start before its first feed is added, or before its database server; with
	 * --once a missing store is a mistake
	 */
	bool once = cli_flag(c, "once");
	int rc = cli_store_try(c, once ? 0 : FW_STORE_CREATE, &err);

	if (rc && !once && fw_store_is_remote(c->config->store) && (rc == FW_EIO || rc == FW_EAGAIN)) {
		cli_note(c, "%s; the workers wait for the store", err.text);
		return 0;
	}
	if (rc)
		return cli_store_failed(c, &err);
	if (fw_store_stats(c->store, &stats, &err) || fw_store_control_get(c->store, -1, &newest, &err))
		return cli_store_failed(c, &err);
	if (newest.paused && once)
		return cli_fail(c, CLI_SOME,
			"nothing was fetched: this store's workers are paused (to resume, run 'feedwheel resume "
			"--all')");
	if (newest.paused)
		cli_note(c, "this store's workers are paused (to resume, run 'feedwheel resume --all')");
	if (fw_run_begin(c->store, run_id, &err))
		return cli_store_failed(c, &err);
	*out = stats;
	if (stats.feed_n && !stats.due_n && !once && !newest.paused)
		run_note_idle(c, &stats, "");
	if (!stats.feed_n)
		cli_note(c, "no feeds yet (to subscribe, run 'feedwheel add URL' or 'feedwheel import FILE')");
	fw_store_close(c->store);
	c->store = NULL;
	return 0;
}

/* After the run: count its visits by outcome; store its record. */
static int run_store_record(struct cli *c, struct session *r, const struct fw_run_stats *s)
{
	struct fw_visit_query q = {.run_id = s->run_id};
	struct fw_err err = {0};
	bool keeps = cli_flag(c, "once") && s->done;
	int rc;

	if (!s->failed && !keeps)
		return 0;
	rc = cli_store(c, keeps ? 0 : FW_STORE_READ);
	if (!rc && s->failed && fw_store_visit_list(c->store, &q, run_count_visit, r, &err))
		rc = cli_store_failed(c, &err);
	if (!rc && keeps && fw_run_put(c->store, s, &err))
		rc = cli_store_failed(c, &err);
	return rc;
}

/* The run may have changed what is due when: after a wrong clock, or by control messages. */
static int run_note_idle_after(struct cli *c)
{
	struct fw_store_stats now;
	struct fw_err err = {0};
	int rc = c->store ? 0 : cli_store(c, FW_STORE_READ);

	if (rc)
		return rc;
	if (fw_store_stats(c->store, &now, &err))
		return cli_store_failed(c, &err);
	run_note_idle(c, &now, "; 'feedwheel list --by-due' shows the schedule");
	return CLI_OK;
}

/*
 * Block SIGHUP while the store is opened or upgraded: it would kill the process. The master
 * unblocks it and reloads.
 */
static void run_block_sighup(void)
{
	sigset_t hangup;

	sigemptyset(&hangup);
	sigaddset(&hangup, SIGHUP);
	sigprocmask(SIG_BLOCK, &hangup, NULL); /* the master handles it */
}

static int run_run(struct cli *c)
{
	struct session r = {0};
	struct fw_run_stats stats = {0};
	struct fw_run_options o = {.once = cli_flag(c, "once"),
		.progress = run_progress,
		.reload = run_reload,
		.notify = true,
		.exec_args = cli_exec_args(),
		.ctx = &r};
	struct fw_err err = {0};
	/* the counts of an unreachable store are unknown */
	struct fw_store_stats before = {.due_n = 1};
	int rc;

	run_block_sighup();
	fw_run_notify_opening();
	rc = run_check_store(c, &before, &o.run_id);
	if (rc)
		return rc;
	if (c->config->listen && !o.once) {
		rc = cli_serve_open(c);
		if (rc)
			return rc;
		o.serve = cli_serve_body;
	}
	cli_progress_init(&r.progress, c, cli_flag(c, "progress"));
	cli_flush(c); /* or children would write the buffered output again */
	rc = fw_sandbox_enter(c->config, FW_SANDBOX_MASTER, &err);
	rc = rc ? rc : fw_run(c->config, &o, &stats, &err);
	cli_serve_close(c);
	cli_progress_end(&r.progress);
	if (rc)
		return cli_store_failed(c, &err);
	if (!o.once && !cli_flag(c, "json") && !stats.done)
		return CLI_OK;
	rc = run_store_record(c, &r, &stats);
	if (rc)
		return rc;
	if (cli_flag(c, "json"))
		run_summary_json(c, &r, &stats);
	else if (!before.due_n && !stats.done)
		return run_note_idle_after(c);
	else
		run_summary_text(c, &r, &stats);
	return o.once && stats.failed ? CLI_SOME : CLI_OK;
}

static const struct cli_option RUN_OPTION[] = {
	{"once", NULL, "fetch what is due, print a summary, exit"},
	{"progress", NULL, "print a progress line every few seconds if stderr is not a terminal"},
	{"json", NULL, "print the summary as JSON"},
	{NULL, NULL, NULL},
};

const struct cli_command cli_run = {
	.name = "run",
	.args = "",
	.summary = "fetch feeds when they are due, until stopped",
	.about = "Runs until SIGTERM, ^C or 'feedwheel stop', then finishes and stores what is in flight. A second "
		 "signal exits at once;\n"
		 "nothing is lost either way. SIGHUP reloads the configuration.\n"
		 "Exit status of --once: 0 if all feeds succeeded, 1 if some failed.\n",
	.examples = "  feedwheel run --once\n  feedwheel run --workers 2 --concurrency 500\n"
		    "  feedwheel run --once --allow-networks 127.0.0.0/8 --host-gap-ms 0\n",
	.option = RUN_OPTION,
	.run = run_run,
};
