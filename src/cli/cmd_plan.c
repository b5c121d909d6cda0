/* SPDX-License-Identifier: ISC */
/*
 * plan: forecast run --once: its duration, the order of its fetches, and the lower bound for any
 * order.
 */
#include "cli/cli.h"
#include "api/forecast.h"

#define FIRST_ROWS 20
#define LAST_ROWS 5
#define FAR_MS (10 * 365 * FW_DAY_MS) /* later than any due time */

struct plan {
	struct cli *c;
	struct fw_forecast *f;
	struct fw_forecast_rules rules;
	struct fw_forecast_total made; /* the forecast under the rules */
	size_t n, known;
};

static struct fw_str plan_duration(struct cli *c, int64_t us)
{
	char text[FW_RFC3339_MAX];

	return fw_arena_str(&c->arena, fw_str(fw_duration_text(text, us / 1000)));
}

/* A feed's URL; its number if the feed was removed meanwhile. */
static const char *plan_feed_url(struct cli *c, int64_t feed_id, struct fw_feed *feed)
{
	struct fw_err err = {0};
	char *text;

	if (fw_store_feed_find(c->store, feed_id, FW_STR_NONE, &c->arena, feed, &err))
		return fw_arena_printf(&c->arena, "feed %lld", (long long)feed_id);
	text = fw_arena_printf(&c->arena, "%.*s", FW_STR_ARG(feed->url));
	return text ? cli_url_show(c, text) : "";
}

static const char *plan_host(struct cli *c, int64_t feed_id)
{
	struct fw_feed feed = {0};
	char text[256];

	(void)plan_feed_url(c, feed_id, &feed);
	return fw_store_host(feed.url, text, sizeof(text)) ? fw_arena_printf(&c->arena, "%s", text) : "a host";
}

/* ---- the bound ------------------------------------------------------------------------------- */

static void plan_bound(struct plan *p)
{
	struct fw_forecast_total *m = &p->made;
	struct fw_feed feed = {0};
	char n[FW_RFC3339_MAX];

	if (m->bound_us == m->host_us && m->host_feed_id) {
		cli_out_safe(p->c, fw_str(plan_host(p->c, m->host_feed_id)));
		cli_out(p->c, " has %s, %u at a time%s\n", cli_count(n, (int64_t)m->host_n, "feed", "feeds"),
			p->rules.host_concurrency, p->rules.host_gap_us ? ", with a gap between fetches" : "");
	} else if (m->bound_us == m->longest_us && m->longest_feed_id) {
		cli_out_safe(p->c, fw_str(plan_feed_url(p->c, m->longest_feed_id, &feed)));
		cli_out(p->c, " takes that long alone\n");
	} else {
		cli_out(p->c, "the work of %u slots (more slots would be faster)\n", p->rules.slots);
	}
}

static void plan_head(struct plan *p)
{
	char n[FW_RFC3339_MAX];

	if (cli_flag(p->c, "all"))
		cli_out(p->c, "%s", cli_count(n, (int64_t)p->n, "active feed", "active feeds"));
	else
		cli_out(p->c, "%s due", cli_count(n, (int64_t)p->n, "feed is", "feeds are"));
	if (!p->known)
		cli_out(p->c, ", none timed yet, so this is a guess");
	else if (p->known < p->n)
		cli_out(p->c, ", %s not timed yet (estimated by the average of their host, or of all feeds)",
			cli_number(n, (int64_t)(p->n - p->known)));
	cli_out(p->c, "; %u slots, at most %u per host", p->rules.slots, p->rules.host_concurrency);
	if (p->rules.host_gap_us)
		cli_out(p->c, ", %.*s apart", FW_STR_ARG(plan_duration(p->c, p->rules.host_gap_us)));
	cli_out(p->c, "\n");
	cli_paint(&p->c->out, p->c->term.out_colour, CLI_BOLD, plan_duration(p->c, p->made.total_us));
	cli_out(p->c, " forecast with order %s; lower bound for any order ", p->rules.order);
	cli_paint(&p->c->out, p->c->term.out_colour, CLI_BOLD, plan_duration(p->c, p->made.bound_us));
	cli_out(p->c, ": ");
	plan_bound(p);
}

/* ---- the order ------------------------------------------------------------------------------- */

/* "wait 80 %, TLS 12 %": the two longest phases. */
static struct fw_str plan_phases(struct cli *c, const struct fw_feed *feed)
{
	static const char *const WORD[FW_FORECAST_PHASES] = {"name", "connect", "TLS", "wait", "body"};
	int64_t part[FW_FORECAST_PHASES], whole = 0;
	struct fw_buf b = FW_BUF_INIT(0);
	struct fw_str text;

	fw_forecast_phases(feed, part);
	for (int i = 0; i < FW_FORECAST_PHASES; i++)
		whole += part[i];
	for (int round = 0; round < 2 && whole; round++) {
		int most = 0;

		for (int i = 1; i < FW_FORECAST_PHASES; i++)
			most = part[i] > part[most] ? i : most;
		if (part[most] * 20 > whole)
			fw_buf_addf(&b, "%s%s %lld %%", round ? ", " : "", WORD[most],
				(long long)((part[most] * 100 + whole / 2) / whole));
		part[most] = 0;
	}
	text = fw_arena_str(&c->arena, fw_buf_str(&b));
	fw_buf_finish(&b);
	return text;
}

static const struct cli_column PLAN_COLUMN[] = {{"STARTS", .right = true}, {"SLOT", .right = true, .spare = 2},
	{"TAKES", .right = true}, {"+-", .right = true, .spare = 1}, {"MOSTLY", .spare = 3}, {"FEED", .flex = true}};

static void plan_row(struct plan *p, struct cli_table *t, size_t i)
{
	struct fw_forecast_start s;
	struct fw_feed feed = {0};
	const char *url;

	fw_forecast_feed(p->f, i, &s);
	url = plan_feed_url(p->c, s.feed_id, &feed);
	cli_table_cell(t, NULL, plan_duration(p->c, s.at_us));
	cli_table_cell(t, CLI_DIM, fw_str(fw_arena_printf(&p->c->arena, "%u", s.slot + 1)));
	cli_table_cell(t, s.known ? NULL : CLI_DIM, plan_duration(p->c, s.expect_us));
	cli_table_cell(t, CLI_DIM, s.known ? plan_duration(p->c, s.dev_us) : FW_STR("guess"));
	cli_table_cell(t, CLI_DIM, plan_phases(p->c, &feed));
	cli_table_cell(t, NULL, fw_str(url));
	if (i % 256 == 255)
		cli_flush(p->c);
}

static void plan_print_order(struct plan *p)
{
	bool whole = cli_flag(p->c, "all-rows") || p->n <= FIRST_ROWS + LAST_ROWS;
	size_t first = whole ? p->n : FIRST_ROWS;
	struct cli_table t;
	char n[FW_RFC3339_MAX];

	cli_out(p->c, "\n");
	cli_table_init(&t, p->c, PLAN_COLUMN, FW_N(PLAN_COLUMN));
	for (size_t i = 0; i < first && !cli_out_failed(p->c); i++)
		plan_row(p, &t, i);
	cli_table_end(&t);
	if (whole)
		return;
	cli_out(p->c, "... %s more; the last ones:\n", cli_number(n, (int64_t)(p->n - FIRST_ROWS - LAST_ROWS)));
	cli_table_init(&t, p->c, PLAN_COLUMN, FW_N(PLAN_COLUMN));
	for (size_t i = p->n - LAST_ROWS; i < p->n; i++)
		plan_row(p, &t, i);
	cli_table_end(&t);
}

/* ---- --compare ------------------------------------------------------------------------------- */

/*
 * The idle share of the slots that can have work: with fewer feeds than slots, the others do not
 * count.
 */
static double plan_idle(const struct plan *p, const struct fw_forecast_total *m)
{
	return m->total_us ?
		1 - (double)m->sum_us / ((double)m->total_us * (double)FW_MIN((size_t)p->rules.slots, p->n)) :
		0;
}

static int plan_compare_rows(struct plan *p, struct cli_table *t, struct fw_json *j)
{
	struct fw_forecast_rules rules = p->rules;
	struct fw_forecast_total m;
	struct fw_err err = {0};

	for (size_t i = 0; fw_forecast_order(i); i++) {
		bool used;

		rules.order = fw_forecast_order(i);
		used = strcmp(rules.order, p->rules.order) == 0;
		if (fw_forecast_make(p->f, &rules, &m, &err))
			return cli_fail(p->c, CLI_SOME, "%s", err.text);
		if (j) {
			fw_json_object(j, NULL);
			fw_json_cstr(j, "order", rules.order);
			fw_json_int(j, "total_ms", m.total_us / 1000);
			fw_json_double(j, "ratio", (double)m.total_us / (double)FW_MAX(m.bound_us, 1));
			fw_json_double(j, "idle", plan_idle(p, &m));
			fw_json_end(j);
			continue;
		}
		cli_table_cell(t, used ? CLI_BOLD : NULL, fw_str(rules.order));
		cli_table_cell(t, used ? CLI_BOLD : NULL, plan_duration(p->c, m.total_us));
		cli_table_cell(t, NULL,
			fw_str(fw_arena_printf(
				&p->c->arena, "%.2f", (double)m.total_us / (double)FW_MAX(m.bound_us, 1))));
		cli_table_cell(t, CLI_DIM, fw_str(fw_arena_printf(&p->c->arena, "%.0f %%", 100 * plan_idle(p, &m))));
	}
	return CLI_OK;
}

static int plan_compare(struct plan *p)
{
	static const struct cli_column COLUMNS[] = {
		{"ORDER"}, {"TOTAL", .right = true}, {"/ BOUND", .right = true}, {"IDLE", .right = true}};
	struct cli_table t;
	int rc;

	cli_out(p->c, "\n");
	cli_table_init(&t, p->c, COLUMNS, FW_N(COLUMNS));
	rc = plan_compare_rows(p, &t, NULL);
	cli_table_end(&t);
	return rc;
}

/* ---- --json ---------------------------------------------------------------------------------- */

static void plan_json_feed(struct plan *p, struct cli_json *w, size_t i)
{
	struct fw_forecast_start s;

	fw_forecast_feed(p->f, i, &s);
	fw_json_object(&w->j, NULL);
	fw_json_int(&w->j, "feed", s.feed_id);
	fw_json_int(&w->j, "starts_ms", s.at_us / 1000);
	fw_json_int(&w->j, "slot", s.slot + 1);
	fw_json_int(&w->j, "expected_ms", s.expect_us / 1000);
	fw_json_int(&w->j, "deviation_ms", s.dev_us / 1000);
	fw_json_bool(&w->j, "known", s.known);
	fw_json_end(&w->j);
	cli_json_flush(w, p->c);
}

static int plan_json(struct plan *p)
{
	const struct fw_forecast_total *m = &p->made;
	struct cli_json w;
	int rc = CLI_OK;

	cli_json_begin(&w, true);
	fw_json_object(&w.j, NULL);
	fw_json_int(&w.j, "feeds", (int64_t)p->n);
	fw_json_int(&w.j, "known", (int64_t)p->known);
	fw_json_int(&w.j, "slots", p->rules.slots);
	fw_json_cstr(&w.j, "order", p->rules.order);
	fw_json_int(&w.j, "total_ms", m->total_us / 1000);
	fw_json_int(&w.j, "sum_ms", m->sum_us / 1000);
	fw_json_int(&w.j, "bound_ms", m->bound_us / 1000);
	fw_json_int(&w.j, "bound_slots_ms", m->slots_us / 1000);
	fw_json_int(&w.j, "bound_longest_ms", m->longest_us / 1000);
	fw_json_int(&w.j, "bound_host_ms", m->host_us / 1000);
	if (m->host_feed_id) {
		fw_json_cstr(&w.j, "bound_host", plan_host(p->c, m->host_feed_id));
		fw_json_int(&w.j, "bound_host_feeds", (int64_t)m->host_n);
	}
	fw_json_array(&w.j, "plan");
	for (size_t i = 0; i < p->n && !cli_out_failed(p->c); i++)
		plan_json_feed(p, &w, i);
	fw_json_end(&w.j);
	if (cli_flag(p->c, "compare")) {
		fw_json_array(&w.j, "orders");
		rc = plan_compare_rows(p, NULL, &w.j);
		fw_json_end(&w.j);
	}
	fw_json_end(&w.j);
	cli_json_end(&w, p->c);
	return rc;
}

/* ---- the command ----------------------------------------------------------------------------- */

/* The rules from the settings. --slots replaces workers x concurrency. */
static int plan_rules(struct plan *p)
{
	int64_t slots = 0;

	fw_forecast_rules(p->c->config, &p->rules);
	if (!cli_value_int(p->c, "slots", 1, &slots))
		return CLI_USAGE;
	if (slots > 1000000)
		return cli_usage(p->c, "--slots must be 1 to 1000000");
	if (slots)
		p->rules.slots = (uint32_t)slots;
	return 0;
}

static int plan_run(struct cli *c)
{
	struct plan p = {.c = c};
	struct fw_err err = {0};
	int rc = plan_rules(&p);

	if (!rc)
		rc = cli_store(c, FW_STORE_READ);
	if (rc)
		return rc;
	rc = fw_forecast_read(c->store, c->now_ms + (cli_flag(c, "all") ? FAR_MS : 0), &p.f, &err);
	if (rc)
		return rc == FW_ENOMEM ? cli_fail(c, CLI_SOME, "%s", err.text) : cli_store_failed(c, &err);
	p.n = fw_forecast_count(p.f, &p.known);
	if (fw_forecast_make(p.f, &p.rules, &p.made, &err))
		rc = cli_fail(c, err.rc == FW_EINVAL ? CLI_USAGE : CLI_SOME, "%s", err.text);
	else if (cli_flag(c, "json"))
		rc = plan_json(&p);
	else if (!p.n)
		cli_note(c, "nothing is due%s",
			cli_flag(c, "all") ? "" : " (to forecast with all active feeds, give --all)");
	else {
		plan_head(&p);
		if (cli_flag(c, "compare"))
			rc = plan_compare(&p);
		else
			plan_print_order(&p);
	}
	fw_forecast_destroy(p.f);
	return rc;
}

static const struct cli_option PLAN_OPTION[] = {
	{"all", NULL, "all active feeds, not only those that are due"},
	{"compare", NULL, "compare the totals of all orders instead of printing the fetches"},
	{"slots", "N", "N concurrent transfers instead of workers x concurrency"},
	{"all-rows", NULL, "all fetches, not only the first and the last"},
	{"json", NULL, "print a JSON object"},
	{NULL, NULL, NULL},
};

const struct cli_command cli_plan = {
	.name = "plan",
	.args = "",
	.summary = "forecast a run: duration, order of fetches, bottleneck",
	.about = "The forecast uses the stored durations of each feed's visits; nothing is fetched. Try settings such "
		 "as --order, --host-concurrency\n"
		 "and --host-gap-ms. The summary of 'run --once' compares forecast and result.\n",
	.examples = "  feedwheel plan\n  feedwheel plan --all --compare --slots 64\n",
	.option = PLAN_OPTION,
	.run = plan_run,
};
