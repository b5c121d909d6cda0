/* SPDX-License-Identifier: ISC */
/* status: print the feeds by state, what is due, and the workers. */
#include "cli/cli.h"
#include "api/clock_watch.h"
#include "api/view.h"
#include "feedwheel/deliver.h"

struct status_offline {
	int64_t now_ms, n, since_ms; /* since_ms: the earliest */
};

static int status_count_offline(void *ctx, const struct fw_record *r)
{
	struct status_offline *o = ctx;

	if (r->until_ms <= o->now_ms)
		return 0;
	o->since_ms = o->n++ ? FW_MIN(o->since_ms, r->at_ms) : r->at_ms;
	return 0;
}

/*
 * Count the workers that report that no host responds (records of kind "connectivity",
 * feedwheel-store(7)).
 */
static int status_offline(struct cli *c, struct status_offline *out)
{
	struct fw_record_query q = {.kind = FW_STR("connectivity")};
	struct fw_err err = {0};

	out->now_ms = c->now_ms;
	return fw_store_record_list(c->store, &q, status_count_offline, out, &err) ? cli_store_failed(c, &err) : 0;
}

/* Data that is not in struct fw_store_stats. */
struct extra {
	struct status_offline off;
	int64_t in_flight;
	bool paused;
};

struct workers {
	struct cli *c;
	struct fw_json *j;
	struct cli_table *table;
	size_t n;
	/* workers on machines with a wrong clock; one of them */
	int64_t wrong_n, ahead_ms;
	char wrong[FW_WORKER_NAME_MAX];
};

static const struct cli_column STATUS_COLUMN[] = {
	{"WORKER"},
	{"SINCE", .spare = 2},
	{"VISITS", .right = true},
	{"NEW", .right = true, .spare = 3},
	{"FAILED", .right = true, .spare = 4},
	{"IN FLIGHT", .right = true},
	{"HEARTBEAT", .spare = 1},
};

static int worker_json(void *ctx, const struct fw_heartbeat *b)
{
	struct workers *w = ctx;

	if (fw_worker_is_dead(b->worker))
		return 0;
	fw_json_object(w->j, NULL);
	fw_json_cstr(w->j, "worker", b->worker);
	fw_json_int(w->j, "pid", b->pid);
	fw_json_time(w->j, "started", b->started_ms);
	fw_json_time(w->j, "seen", b->at_ms);
	fw_json_int(w->j, "visits", (int64_t)b->visits);
	fw_json_int(w->j, "new_entries", (int64_t)b->new_entries);
	fw_json_int(w->j, "failures", (int64_t)b->failures);
	fw_json_int(w->j, "in_flight", b->in_flight);
	fw_json_int(w->j, "slots", b->slots);
	fw_json_int(w->j, "clock_ahead_ms", b->clock_ahead_ms);
	fw_json_end(w->j);
	return 0;
}

static int worker_row(void *ctx, const struct fw_heartbeat *b)
{
	struct workers *w = ctx;
	char t[FW_RFC3339_MAX], in_flight[2 * FW_RFC3339_MAX];

	if (fw_worker_is_dead(b->worker))
		return 0;
	w->n++;
	if (fw_clock_is_wrong(b->clock_ahead_ms) && !w->wrong_n++) {
		w->ahead_ms = b->clock_ahead_ms;
		(void)fw_str_copy(w->wrong, sizeof(w->wrong), fw_str(b->worker));
	}
	(void)fw_snprintf(in_flight, sizeof(in_flight), "%u/%u", b->in_flight, b->slots);
	cli_table_cell(w->table, NULL, fw_str(b->worker));
	cli_table_cell(w->table, NULL, fw_str(cli_ago(w->c, t, b->started_ms)));
	cli_table_cell(w->table, NULL, fw_str(cli_number(t, (int64_t)b->visits)));
	cli_table_cell(w->table, NULL, fw_str(cli_number(t, (int64_t)b->new_entries)));
	cli_table_cell(w->table, NULL, fw_str(cli_number(t, (int64_t)b->failures)));
	cli_table_cell(w->table, NULL, fw_str(in_flight));
	cli_table_cell(w->table, NULL, fw_str(cli_ago(w->c, t, b->at_ms)));
	return 0;
}

static int status_json(struct cli *c, const struct fw_store_stats *s, const struct extra *x, struct fw_buf *store)
{
	const struct {
		const char *name;
		int64_t v;
	} MEMBER[] = {
		{"feeds", s->feed_n},
		{"active", s->active_n},
		{"due", s->due_n},
		{"in_flight", x->in_flight},
		{"failing", s->failing_n},
		{"paused", s->paused_n},
		{"gone", s->gone_n},
		{"quarantined", s->quarantined_n},
		{"entries", s->entry_n},
		{"visits", s->visit_n},
		{"unindexed_entries", s->unindexed_n},
		{"inbox", s->inbox_n},
		{"inbox_refused", s->inbox_refused_n},
		{"schema", s->schema},
	};
	struct cli_json out;
	struct workers w = {.c = c, .j = &out.j};
	struct fw_err err = {0};
	int rc;

	cli_json_begin(&out, true);
	fw_json_object(&out.j, NULL);
	fw_json_str(&out.j, "store", fw_buf_str(store));
	for (size_t i = 0; i < FW_N(MEMBER); i++)
		fw_json_int(&out.j, MEMBER[i].name, MEMBER[i].v);
	if (s->size_bytes >= 0)
		fw_json_int(&out.j, "size_bytes", s->size_bytes);
	fw_json_time(&out.j, "next_due", s->next_due_ms);
	fw_json_bool(&out.j, "all_paused", x->paused);
	fw_json_int(&out.j, "workers_offline", x->off.n);
	fw_json_int(&out.j, "clock_ahead_ms", fw_store_ahead_ms(c->store));
	fw_json_bool(&out.j, "disk_low", fw_config_check_disk(c->config, &err) != 0);
	fw_json_array(&out.j, "workers");
	rc = fw_store_heartbeat_list(c->store, c->now_ms - CLI_WORKER_MS, worker_json, &w, &err);
	fw_json_end(&out.j);
	fw_json_end(&out.j);
	cli_json_end(&out, c);
	return rc ? cli_store_failed(c, &err) : CLI_OK;
}

static int status_text(struct cli *c, const struct fw_store_stats *s, const struct extra *x, struct fw_buf *store)
{
	char a[FW_RFC3339_MAX], b[FW_RFC3339_MAX], clock[FW_CLOCK_TEXT_MAX];
	const struct {
		const char *name;
		int64_t n;
	} STATE[] = {
		{"due", s->due_n},
		{"being fetched", x->in_flight},
		{"failing", s->failing_n},
		{"paused", s->paused_n},
		{"gone", s->gone_n},
		{"quarantined", s->quarantined_n},
	};
	struct cli_table table;
	struct workers w = {.c = c, .table = &table};
	struct fw_err err = {0};
	int rc;

	cli_out(c, "store    %.*s", FW_STR_ARG(fw_buf_str(store)));
	if (s->size_bytes >= 0)
		cli_out(c, " (%s)", cli_bytes(a, (uint64_t)s->size_bytes));
	cli_out(c, "\nfeeds    %s", cli_number(a, s->feed_n));
	for (size_t i = 0; i < FW_N(STATE); i++) {
		if (STATE[i].n)
			cli_out(c, ", %s %s", cli_number(a, STATE[i].n), STATE[i].name);
	}
	cli_out(c, "\nentries  %s from %s", cli_number(a, s->entry_n), cli_count(b, s->visit_n, "visit", "visits"));
	if (s->unindexed_n)
		cli_out(c, "; %s not indexed for search yet", cli_number(a, s->unindexed_n));
	cli_out(c, "\nnext     ");
	if (s->next_due_ms == FW_NO_DATE)
		cli_out(c, "no feed is scheduled\n");
	else if (s->due_n || s->next_due_ms <= c->now_ms)
		cli_out(c, "now\n");
	else
		cli_out(c, "%s (%s)\n", cli_ago(c, a, s->next_due_ms), cli_stamp(b, s->next_due_ms));
	if (s->inbox_n)
		cli_out(c, "inbox    %s of other programs wait%s for a worker\n",
			cli_count(a, s->inbox_n, "row", "rows"), s->inbox_n == 1 ? "s" : "");
	if (x->paused)
		cli_out(c, "paused   all workers on all machines (to resume, run 'feedwheel resume --all')\n");
	if (fw_config_check_disk(c->config, &err))
		cli_out(c, "disk     %s; nothing is fetched meanwhile\n", err.text);
	if (x->off.n)
		cli_out(c,
			"network  seems to be down for %s since %s: no host responds; these visits do not count as "
			"failures\n",
			cli_count(a, x->off.n, "worker", "workers"), cli_stamp(b, x->off.since_ms));
	if (fw_clock_is_wrong(fw_store_ahead_ms(c->store)))
		cli_out(c, "clock    this machine's clock is %s, which all times here follow\n",
			fw_clock_text(clock, fw_store_ahead_ms(c->store)));
	cli_out_wrap(c, sizeof("store   "));
	cli_table_init(&table, c, STATUS_COLUMN, FW_N(STATUS_COLUMN));
	rc = fw_store_heartbeat_list(c->store, c->now_ms - CLI_WORKER_MS, worker_row, &w, &err);
	if (!rc && w.n)
		cli_out(c, "\n");
	else if (!rc)
		cli_out(c, "workers  none (to start them, run 'feedwheel run')\n");
	cli_table_end(&table);
	if (w.wrong_n)
		cli_out(c, "\nclock    %s; that of %s is %s\n",
			cli_count(a, w.wrong_n, "worker on a machine with a wrong clock",
				"workers on machines with wrong clocks"),
			w.wrong, fw_clock_text(clock, w.ahead_ms));
	return rc ? cli_store_failed(c, &err) : CLI_OK;
}

static int status_run(struct cli *c)
{
	struct fw_store_stats s;
	struct fw_control newest;
	struct fw_buf store = FW_BUF_INIT(0);
	struct fw_err err = {0};
	struct extra x = {.paused = false};
	int rc = cli_store(c, FW_STORE_READ);

	rc = rc ? rc : status_offline(c, &x.off);
	if (rc)
		return rc;
	if (fw_store_stats(c->store, &s, &err) || fw_store_control_get(c->store, -1, &newest, &err) ||
		fw_in_flight(c->store, c->now_ms, &x.in_flight, &err))
		return cli_store_failed(c, &err);
	x.paused = newest.paused;
	cli_store_show(c, &store);
	rc = cli_flag(c, "json") ? status_json(c, &s, &x, &store) : status_text(c, &s, &x, &store);
	fw_buf_finish(&store);
	return rc;
}

static const struct cli_option STATUS_OPTION[] = {
	{"json", NULL, "print a JSON object"},
	{NULL, NULL, NULL},
};

const struct cli_command cli_status = {
	.name = "status",
	.args = "",
	.summary = "show feeds by state, what is due, and the workers",
	.examples = "  feedwheel status\n  feedwheel status --json | jq .due\n",
	.option = STATUS_OPTION,
	.run = status_run,
};
