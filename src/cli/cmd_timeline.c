/* SPDX-License-Identifier: ISC */
/* timeline: draw a run, one row per slot; or list the runs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "picture/timeline.h"

#define BARS_MAX 50000      /* in one picture: a browser can still draw them */
#define LIST_VISITS 2000000 /* read to list the runs */

/* ---- --list ---------------------------------------------------------------------------------- */

struct run {
	int64_t id, from_ms, until_ms;
	size_t n, failed_n;
};

struct runs {
	struct run *run;
	size_t n, cap;
};

/*
 * Visits arrive newest first; those of one run are mostly adjacent, so the search goes backwards.
 */
static int run_count(void *ctx, const struct fw_visit *v)
{
	struct runs *r = ctx;
	struct run *at = NULL;
	int64_t until_ms = v->at_ms + v->total_us / 1000;

	if (!v->run_id)
		return 0;
	for (size_t i = r->n; i > 0 && !at; i--) {
		if (r->run[i - 1].id == v->run_id)
			at = &r->run[i - 1];
	}
	if (!at && r->n == r->cap) {
		size_t cap = r->cap ? 2 * r->cap : 64;
		struct run *grown = reallocarray(r->run, cap, sizeof(*grown));

		if (!grown)
			return FW_ENOMEM;
		r->run = grown;
		r->cap = cap;
	}
	if (!at) {
		at = &r->run[r->n++];
		*at = (struct run){.id = v->run_id, .from_ms = v->at_ms, .until_ms = until_ms};
	}
	at->from_ms = FW_MIN(at->from_ms, v->at_ms);
	at->until_ms = FW_MAX(at->until_ms, until_ms);
	at->n++;
	at->failed_n += !fw_visit_succeeded(v->kind);
	return 0;
}

static void runs_json(struct cli *c, const struct runs *r)
{
	struct cli_list l;

	cli_list_begin(&l, c, NULL, 0);
	for (size_t i = 0; i < r->n; i++) {
		struct fw_json *j = cli_list_item(&l);

		fw_json_object(j, NULL);
		fw_json_int(j, "run", r->run[i].id);
		fw_json_time(j, "started", r->run[i].from_ms);
		fw_json_int(j, "elapsed_ms", r->run[i].until_ms - r->run[i].from_ms);
		fw_json_int(j, "fetches", (int64_t)r->run[i].n);
		fw_json_int(j, "failed", (int64_t)r->run[i].failed_n);
		fw_json_end(j);
		cli_list_item_end(&l);
	}
	cli_list_end(&l);
}

static void runs_table(struct cli *c, const struct runs *r)
{
	static const struct cli_column TIMELINE_COLUMN[] = {
		{"RUN"}, {"STARTED"}, {"TOOK", .right = true}, {"FETCHES", .right = true}, {"FAILED", .right = true}};
	char text[FW_RFC3339_MAX], id[FW_RFC3339_MAX];
	struct cli_table t;

	cli_table_init(&t, c, TIMELINE_COLUMN, FW_N(TIMELINE_COLUMN));
	for (size_t i = 0; i < r->n; i++) {
		(void)fw_snprintf(id, sizeof(id), "%lld", (long long)r->run[i].id);
		cli_table_cell(&t, CLI_BOLD, fw_str(id));
		cli_table_cell(&t, NULL, fw_str(cli_stamp(text, r->run[i].from_ms)));
		cli_table_cell(&t, NULL, fw_str(fw_duration_text(text, r->run[i].until_ms - r->run[i].from_ms)));
		cli_table_cell(&t, NULL, fw_str(cli_number(text, (int64_t)r->run[i].n)));
		cli_table_cell(
			&t, r->run[i].failed_n ? CLI_RED : NULL, fw_str(cli_number(text, (int64_t)r->run[i].failed_n)));
	}
	cli_table_end(&t);
}

/*
 * A finished run has a record of its whole time, which includes the time before its first and after
 * its last request.
 */
static int run_set_times(void *ctx, int64_t run_id, const struct fw_run_forecast *kept)
{
	struct runs *r = ctx;

	for (size_t i = 0; i < r->n && kept->elapsed_us > 0; i++) {
		if (r->run[i].id == run_id) {
			r->run[i].from_ms = run_id;
			r->run[i].until_ms = run_id + kept->elapsed_us / 1000;
		}
	}
	return 0;
}

static int timeline_list(struct cli *c)
{
	struct fw_visit_query q = {.limit = LIST_VISITS};
	struct runs r = {.n = 0};
	struct fw_err err = {0};
	int rc = fw_store_visit_list(c->store, &q, run_count, &r, &err);

	if (!rc && r.n)
		rc = fw_run_list(c->store, run_set_times, &r, &err);
	if (rc == FW_EUNSUP) /* a store without records */
		rc = 0;
	if (rc == FW_ENOMEM)
		rc = cli_fail(c, CLI_SOME, "out of memory");
	else if (rc)
		rc = cli_store_failed(c, &err);
	else if (cli_as_json(c))
		runs_json(c, &r);
	else if (!r.n)
		cli_note(c, "no runs yet (to make one, run 'feedwheel run --once')");
	else
		runs_table(c, &r);
	free(r.run);
	return rc;
}

/* ---- the picture ----------------------------------------------------------------------------- */

static int timeline_newest_run(void *ctx, const struct fw_visit *v)
{
	int64_t *id = ctx;

	if (v->run_id)
		*id = v->run_id;
	return *id ? 1 : 0;
}

static int timeline_visit(void *ctx, const struct fw_visit *v)
{
	struct timeline *t = ctx;

	if (v->kind == FW_VISIT_PUSHED || v->kind == FW_VISIT_CRASH) /* not fetches */
		return 0;
	return t->n == BARS_MAX ? FW_ELIMIT : timeline_add(t, v);
}

/*
 * Write the picture to a temporary file, then rename it, so that the file is always complete. "-":
 * stdout.
 */
static int timeline_write(struct cli *c, const char *path, const struct fw_buf *b)
{
	char *beside;
	FILE *f;
	bool good;
	int rc;

	if (strcmp(path, "-") == 0) {
		cli_out_bytes(c, b->p, b->len);
		return CLI_OK;
	}
	beside = fw_arena_printf(&c->arena, "%s.%d", path, (int)getpid());
	f = beside ? fopen(beside, "we") : NULL;
	good = f && fwrite(b->p, 1, b->len, f) == b->len;
	if (f && fclose(f))
		good = false;
	if (good && rename(beside, path) == 0)
		return CLI_OK;
	rc = errno == ENOENT ? cli_fail(c, CLI_USAGE, "%s: the folder does not exist (create it)", path) :
			       cli_fail(c, CLI_SOME, "%s: cannot write the file: %s", path, strerror(errno));
	if (f)
		(void)unlink(beside);
	return rc;
}

/* Print the picture's headline and legend as JSON. path: of the picture, or NULL. */
static void timeline_json(struct cli *c, const struct timeline *t, const char *path)
{
	const struct {
		const char *name;
		int64_t us;
	} BOUND[] = {
		{"bound_ms", t->bound_us},
		{"bound_slots_ms", t->slots_us},
		{"bound_longest_ms", t->longest_us},
		{"bound_host_ms", t->chain_us},
	};
	struct cli_json w;

	cli_json_object_begin(&w, c);
	fw_json_int(&w.j, "run", t->run_id);
	fw_json_time(&w.j, "started", t->started_ms);
	fw_json_int(&w.j, "elapsed_ms", t->total_us / 1000);
	fw_json_int(&w.j, "fetches", (int64_t)t->n);
	fw_json_int(&w.j, "failed", (int64_t)t->failed_n);
	if (t->order.len)
		fw_json_str(&w.j, "order", t->order);
	if (t->slots)
		fw_json_int(&w.j, "slots", t->slots);
	fw_json_int(&w.j, "slots_used", t->row_n);
	if (t->predicted_us)
		fw_json_int(&w.j, "forecast_ms", t->predicted_us / 1000);
	fw_json_int(&w.j, "sum_ms", t->sum_us / 1000);
	for (size_t i = 0; i < FW_N(BOUND); i++)
		fw_json_int(&w.j, BOUND[i].name, BOUND[i].us / 1000);
	if (t->chain_host.len) {
		fw_json_str(&w.j, "bound_host", t->chain_host);
		fw_json_int(&w.j, "bound_host_feeds", (int64_t)t->chain_n);
	}
	fw_json_double(&w.j, "idle", t->idle);
	fw_json_cstr(&w.j, "verdict", t->verdict);
	fw_json_cstr(&w.j, "file", path);
	cli_json_object_end(&w, c);
}

static int timeline_print(struct cli *c, struct timeline *t, const char *path, bool html)
{
	struct fw_buf b = FW_BUF_INIT(0);
	char n[FW_RFC3339_MAX];
	int rc = timeline_analyze(t);

	if (!rc && path)
		(html ? timeline_html : timeline_svg)(t, &b);
	rc = rc ? rc : b.rc;
	if (rc)
		rc = cli_fail(c, CLI_SOME, "out of memory for a picture of %zu fetches", t->n);
	else if (path)
		rc = timeline_write(c, path, &b);
	fw_buf_finish(&b);
	if (!rc && cli_as_json(c))
		timeline_json(c, t, path);
	else if (!rc && path && strcmp(path, "-") != 0)
		cli_note(c, "%s: %s. %s", path, cli_count(n, (int64_t)t->n, "fetch", "fetches"), t->verdict);
	return rc;
}

static int timeline_find_run(struct cli *c, int64_t *id)
{
	struct fw_visit_query q = {.limit = 10000};
	struct fw_err err = {0};
	int rc;

	if (!cli_value_int(c, "run", 1, id))
		return CLI_USAGE;
	if (*id)
		return 0;
	rc = fw_store_visit_list(c->store, &q, timeline_newest_run, id, &err);
	if (rc < 0)
		return cli_store_failed(c, &err);
	return *id ? 0 : cli_fail(c, CLI_SOME, "no runs yet (to make one, run 'feedwheel run --once')");
}

/* Read the run's record. A run without --once has none; nor has one that was killed. */
static void timeline_read_record(struct cli *c, struct timeline *t)
{
	struct fw_run_forecast kept;
	struct fw_err err = {0};
	int rc = fw_run_get(c->store, t->run_id, &c->arena, &kept, &err);

	if (rc && rc != FW_ENOTFOUND && rc != FW_EUNSUP)
		cli_note(c, "%s", err.text);
	t->endless = rc == FW_ENOTFOUND;
	if (!rc)
		timeline_take_forecast(t, &kept);
}

static int timeline_picture(struct cli *c, const char *path, bool html)
{
	struct fw_visit_query q = {.run_id = 0};
	int64_t last_ms = 0;
	struct timeline t;
	struct fw_err err = {0};
	int rc = timeline_find_run(c, &q.run_id);

	if (!rc && !cli_value_duration(c, "last", &last_ms))
		rc = CLI_USAGE;
	if (rc)
		return rc;
	if (last_ms)
		q.since_ms = c->now_ms - last_ms;
	timeline_init(&t);
	t.run_id = q.run_id;
	t.host_concurrency = (uint32_t)c->config->host_concurrency;
	t.host_gap_us = c->config->host_gap_ms * 1000;
	if (last_ms)
		t.endless = true;
	else
		timeline_read_record(c, &t);
	rc = fw_store_visit_list(c->store, &q, timeline_visit, &t, &err);
	if (rc == FW_ELIMIT && t.n == BARS_MAX)
		rc = cli_fail(c, CLI_SOME,
			"run %lld has more than %d fetches, the limit of a picture (to draw its last minutes, give "
			"--last 10m)",
			(long long)q.run_id, BARS_MAX);
	else if (rc == FW_ENOMEM)
		rc = cli_fail(c, CLI_SOME, "out of memory for a picture of %zu fetches", t.n);
	else if (rc)
		rc = cli_store_failed(c, &err);
	else if (!t.n && last_ms)
		rc = cli_fail(c, CLI_SOME, "run %lld fetched nothing in that time", (long long)q.run_id);
	else if (!t.n)
		rc = cli_fail(
			c, CLI_SOME, "no run %lld ('feedwheel timeline --list' lists the runs)", (long long)q.run_id);
	else
		rc = timeline_print(c, &t, path, html);
	timeline_finish(&t);
	return rc;
}

static int timeline_run(struct cli *c)
{
	const char *path = cli_value(c, "output");
	struct fw_str name = fw_str(path);
	bool html = fw_str_ends(name, FW_STR(".html")) || fw_str_ends(name, FW_STR(".htm"));
	int rc;

	if (!path && !cli_flag(c, "list") && !cli_as_json(c))
		return cli_usage(c, "missing output file: give -o run.html or -o run.svg");
	if (path && !html && !fw_str_ends(name, FW_STR(".svg")) && !fw_str_eq(name, FW_STR("-")))
		return cli_usage(
			c, "the output file must end in .html (with zoom and details) or .svg, not '%.200s'", path);
	if (cli_as_json(c) && fw_str_eq(name, FW_STR("-")))
		return cli_usage(c, "--json and '-o -' both need standard output: give -o FILE, or no -o");
	rc = cli_store(c, FW_STORE_READ);
	if (rc)
		return rc;
	return cli_flag(c, "list") ? timeline_list(c) : timeline_picture(c, path, html);
}

static const struct cli_option TIMELINE_OPTION[] = {
	{"output", "FILE", "write to FILE (-o): .html or .svg; -: SVG on stdout"},
	{"run", "ID", "draw this run instead of the newest"},
	{"last", "TIME", "only fetches that started in the last TIME (10m)"},
	{"list", NULL, "list the runs whose visits are stored, newest first"},
	{"json", NULL, "print the headline's data as a JSON object; with --list an array of objects"},
	{"jsonl", NULL, "print one JSON object per line"},
	{NULL, NULL, NULL},
};

const struct cli_command cli_timeline = {
	.name = "timeline",
	.args = "",
	.summary = "draw a run: its fetches by slot, and its bottleneck",
	.about = "Each slot that was used is a row, each fetch a bar. Colours show its phases: name lookup, "
		 "connection, TLS, waiting for\n"
		 "the first byte, body, parsing. A thin line above a bar shows the wait for the slot, one below it the "
		 "wait until the result\n"
		 "was stored. Failed fetches are shaded. The headline names the bottleneck.\n",
	.examples = "  feedwheel timeline -o run.html\n  feedwheel timeline --list\n  feedwheel timeline --run "
		    "1795000000000 -o run.svg\n",
	.option = TIMELINE_OPTION,
	.run = timeline_run,
};
