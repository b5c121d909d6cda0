/* SPDX-License-Identifier: ISC */
/* fetch-now: make feeds due before everything else; with --wait print the outcomes. */
#include <time.h>

#include "cli/cli.h"

#define CHECK_EVERY_MS 100
#define WAIT_MS FW_MINUTE_MS
#define TOO_SOON_MS FW_MINUTE_MS /* since the last visit: new entries are unlikely and servers object (FRB 070) */
#define FOUND 1                  /* stops a list */

struct wanted {
	struct fw_feed feed;
	int64_t last_id; /* of its last visit before the request */
	bool over;       /* done: nothing to wait for */
};

struct last {
	struct cli *c;
	struct fw_visit visit;
};

static int fetch_now_visit(void *ctx, const struct fw_visit *v)
{
	struct last *l = ctx;

	if (v->kind == FW_VISIT_PUSHED)
		return 0;
	l->visit = *v;
	l->visit.error = fw_arena_str(&l->c->arena, v->error);
	return FOUND;
}

/* The feed's last visit, pushes excluded; id 0: none. */
static int fetch_now_last_visit(struct cli *c, int64_t feed_id, struct fw_visit *out)
{
	struct fw_visit_query q = {.feed_id = feed_id};
	struct last l = {.c = c};
	struct fw_err err = {0};
	int rc = fw_store_visit_list(c->store, &q, fetch_now_visit, &l, &err);

	*out = l.visit;
	return rc && rc != FOUND ? cli_store_failed(c, &err) : 0;
}

static int fetch_now_find_feeds(struct cli *c, struct wanted *w)
{
	struct fw_visit v;
	int rc = 0;

	for (int i = 0; !rc && i < c->arg_n; i++) {
		rc = cli_feed(c, c->arg[i], false, &w[i].feed);
		if (!rc && w[i].feed.status != FW_FEED_ACTIVE)
			rc = cli_fail(c, CLI_SOME, "%s: the feed is %s (to poll it again, run 'feedwheel resume')",
				cli_url_show(c, c->arg[i]), fw_feed_status_name(w[i].feed.status));
		if (!rc)
			rc = fetch_now_last_visit(c, w[i].feed.id, &v);
		w[i].last_id = rc ? 0 : v.id;
	}
	return rc;
}

/* --json: the outcome for one feed. v: the visit that was waited for, or NULL. */
static void fetch_now_json(struct cli_list *l, const struct wanted *w, bool asked, const struct fw_visit *v)
{
	struct fw_json *j;

	if (!l->as_json)
		return;
	j = cli_list_item(l);
	fw_json_object(j, NULL);
	fw_json_int(j, "id", w->feed.id);
	fw_json_str(j, "url", w->feed.url);
	fw_json_bool(j, "scheduled", asked);
	if (v)
		fw_visit_json(j, "visit", v);
	fw_json_end(j);
	cli_list_item_end(l);
}

/* Skip the feeds that were visited less than a minute ago; *left counts the others. */
static int fetch_now_skip_recent(struct cli_list *l, struct wanted *w, int *left)
{
	struct cli *c = l->c;
	char ago[FW_RFC3339_MAX];
	int worst = CLI_OK;

	*left = 0;
	for (int i = 0; i < c->arg_n; i++) {
		int64_t since_ms = c->now_ms - w[i].feed.last_visit_ms;

		w[i].over = since_ms >= 0 && since_ms < TOO_SOON_MS && !cli_flag(c, "again");
		*left += !w[i].over;
		if (!w[i].over)
			continue;
		if (cli_flag(c, "wait") && !fw_visit_succeeded(w[i].feed.last_kind))
			worst = CLI_SOME;
		cli_note(c, "%s: skipped: polled %s, result %s (to poll it again, give --again)",
			cli_url_show(c, c->arg[i]), cli_ago(c, ago, w[i].feed.last_visit_ms),
			fw_visit_kind_name(w[i].feed.last_kind));
		fetch_now_json(l, &w[i], false, NULL);
	}
	return worst;
}

/* Make the feeds due before all others; the store notifies the workers that own them. */
static int fetch_now_make_due(struct cli *c, const struct wanted *w)
{
	struct fw_feed to = {.due_at_ms = FW_DUE_FIRST};
	struct fw_err err = {0};

	for (int i = 0; i < c->arg_n; i++) {
		to.id = w[i].feed.id;
		if (!w[i].over && fw_store_feed_set(c->store, &to, FW_SET_DUE, &err))
			return cli_store_failed(c, &err);
	}
	return 0;
}

/* Print a feed's outcome on one line. CLI_SOME: the visit failed. */
static int fetch_now_outcome(struct cli_list *l, const struct wanted *w, const struct fw_visit *v)
{
	bool ok = fw_visit_succeeded(v->kind);
	char n[FW_RFC3339_MAX], changed[FW_RFC3339_MAX];
	struct cli *c = l->c;

	fetch_now_json(l, w, true, v);
	if (l->as_json) {
		cli_flush(c);
		return ok ? CLI_OK : CLI_SOME;
	}
	cli_paint(&c->out, c->term.out_colour, ok ? CLI_GREEN : CLI_RED, fw_str(fw_visit_kind_name(v->kind)));
	cli_out(c, "  ");
	cli_out_safe(c, w->feed.url);
	if (ok)
		cli_out(c, ": %s, %s changed, in %.2f s\n", cli_count(n, v->new_n, "new entry", "new entries"),
			cli_number(changed, v->changed_n), (double)v->total_us / 1e6);
	else {
		cli_out(c, ": ");
		cli_out_safe(c, v->error.len ? v->error : fw_str(fw_visit_kind_name(v->kind)));
		cli_out(c, "\n");
	}
	cli_flush(c);
	return ok ? CLI_OK : CLI_SOME;
}

/* Check the feeds that are not done; *left counts those that remain. */
static int fetch_now_check(struct cli_list *l, struct wanted *w, int *left, int *worst)
{
	struct cli *c = l->c;
	struct fw_visit v;
	int rc;

	*left = 0;
	for (int i = 0; i < c->arg_n; i++) {
		if (w[i].over)
			continue;
		rc = fetch_now_last_visit(c, w[i].feed.id, &v);
		if (rc)
			return rc;
		w[i].over = v.id > w[i].last_id;
		rc = w[i].over ? fetch_now_outcome(l, &w[i], &v) : CLI_OK;
		*worst = FW_MAX(*worst, rc);
		*left += !w[i].over;
	}
	return 0;
}

static int fetch_now_wait(struct cli_list *l, struct wanted *w, int64_t timeout_ms)
{
	struct cli *c = l->c;
	const struct timespec pause = {.tv_nsec = CHECK_EVERY_MS * 1000000};
	int64_t start_ms = fw_mono_ms();
	int left = 0, worst = CLI_OK, rc;

	for (;;) {
		rc = fetch_now_check(l, w, &left, &worst);
		if (rc || !left)
			return rc ? rc : worst;
		if (fw_mono_ms() - start_ms >= timeout_ms)
			break;
		nanosleep(&pause, NULL);
	}
	for (int i = 0; i < c->arg_n; i++) {
		if (w[i].over)
			continue;
		(void)cli_fail(c, CLI_SOME,
			"%s: not fetched within the timeout; it stays first in the queue ('feedwheel status' shows the "
			"workers)",
			cli_url_show(c, c->arg[i]));
		fetch_now_json(l, &w[i], true, NULL);
	}
	return CLI_SOME;
}

/* Print the feeds that are now due, without waiting. */
static void fetch_now_print_due(struct cli_list *l, const struct wanted *w, bool words)
{
	struct cli *c = l->c;

	for (int i = 0; i < c->arg_n; i++) {
		if (w[i].over)
			continue;
		fetch_now_json(l, &w[i], true, NULL);
		if (l->as_json || !words)
			continue;
		cli_out(c, "first in the queue ");
		cli_out_safe(c, w[i].feed.url);
		cli_out(c, "\n");
	}
}

static int fetch_now_feeds(struct cli_list *l, struct wanted *w, int64_t timeout_ms)
{
	struct cli *c = l->c;
	bool wait = cli_flag(c, "wait");
	struct fw_control newest;
	struct fw_err err = {0};
	size_t workers;
	int left, worst, rc;

	worst = fetch_now_skip_recent(l, w, &left);
	if (!left)
		return worst;
	rc = cli_workers(c, c->store, &workers);
	if (!rc && fw_store_control_get(c->store, -1, &newest, &err))
		rc = cli_store_failed(c, &err);
	rc = rc ? rc : fetch_now_make_due(c, w);
	if (rc)
		return rc;
	if (!workers || newest.paused) {
		cli_note(c, "%s; the feeds come first then",
			newest.paused ? "all workers are paused until 'feedwheel resume --all'" :
					"no worker is running on this store (to start workers, run 'feedwheel run')");
		fetch_now_print_due(l, w, false);
		return wait ? CLI_SOME : CLI_OK;
	}
	if (wait)
		return FW_MAX(worst, fetch_now_wait(l, w, timeout_ms));
	fetch_now_print_due(l, w, true);
	return CLI_OK;
}

static int fetch_now_run(struct cli *c)
{
	struct wanted *w = fw_arena_calloc(&c->arena, (size_t)c->arg_n, sizeof(*w));
	int64_t timeout_ms = WAIT_MS;
	struct cli_list l;
	int rc;

	if (!w)
		return cli_fail(c, CLI_SOME, "out of memory");
	if (!cli_value_duration(c, "timeout", &timeout_ms))
		return CLI_USAGE;
	rc = cli_store(c, 0);
	rc = rc ? rc : fetch_now_find_feeds(c, w);
	if (rc)
		return rc;
	cli_list_begin(&l, c, NULL, 0);
	rc = fetch_now_feeds(&l, w, timeout_ms);
	cli_list_end(&l);
	return rc;
}

static const struct cli_option FETCH_NOW_OPTION[] = {
	{"again", NULL, "poll also feeds that were polled less than a minute ago"},
	{"wait", NULL, "wait for the visits and print their outcomes"},
	{"timeout", "TIME", "wait no longer than this (1m)"},
	CLI_LIST_OPTIONS,
	{NULL, NULL, NULL},
};

const struct cli_command cli_fetch_now = {
	.name = "fetch-now",
	.args = "FEED...",
	.summary = "fetch feeds before everything else that is due",
	.about = CLI_FEED_TEXT
	"The workers fetch them within a second, even if all slots are busy. A feed that is being fetched now is "
	"fetched once more.\n"
	"Limits per host apply. With --wait, exit status 1 means that a visit failed or timed out.\n",
	.examples = "  feedwheel fetch-now example.org\n  feedwheel fetch-now --wait 12\n",
	.option = FETCH_NOW_OPTION,
	.min_args = 1,
	.max_args = -1,
	.run = fetch_now_run,
};
