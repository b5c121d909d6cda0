/* SPDX-License-Identifier: ISC */
/* set, pause, resume: change feeds, or pause and resume all workers. */
#include "cli/cli.h"

/*
 * Print the changed feed. It is read again, because another process may have changed or removed it
 * meanwhile.
 */
static int set_print(struct cli_list *l, const struct fw_feed *f, const char *done, struct fw_err *err)
{
	struct cli *c = l->c;
	struct fw_feed now;
	int rc;

	if (!l->as_json) {
		cli_out(c, "%s ", done);
		cli_out_safe(c, f->url);
		cli_out(c, "\n");
		return 0;
	}
	rc = fw_store_feed_find(c->store, f->id, FW_STR_NONE, &c->arena, &now, err);
	if (rc)
		return rc == FW_ENOTFOUND ? 0 : rc;
	fw_feed_json(cli_list_item(l), NULL, &now);
	cli_list_item_end(l);
	return 0;
}

/* Apply one change to all named feeds. A due time is now, by the store's clock. */
static int set_apply(struct cli *c, const struct fw_feed *to, unsigned what, const char *done)
{
	struct fw_feed *feed, now = *to;
	struct fw_err err = {0};
	struct cli_list l;
	int rc = cli_feeds(c, false, &feed);

	if (rc)
		return rc;
	now.due_at_ms = c->now_ms;
	cli_list_begin(&l, c, NULL, 0);
	for (int i = 0; !rc && i < c->arg_n; i++) {
		rc = fw_feed_update(c->store, &feed[i], &now, what, c->now_ms, &err);
		rc = rc ? rc : set_print(&l, &feed[i], done, &err);
	}
	cli_list_end(&l);
	return rc ? cli_store_failed(c, &err) : CLI_OK;
}

static int set_run(struct cli *c)
{
	const char *title = cli_value(c, "title"), *folder = cli_value(c, "folder");
	struct fw_feed to = {.user_title = fw_str(title), .folder = fw_str(folder)};
	unsigned what = (title ? FW_SET_TITLE : 0) | (folder ? FW_SET_FOLDER : 0) |
		(cli_flag(c, "due") ? FW_SET_DUE : 0) | (cli_value(c, "interval") ? FW_SET_INTERVAL : 0);

	if (!cli_value_interval(c, &to.interval_ms))
		return CLI_USAGE;
	if (!what)
		return cli_usage(c, "nothing to change: give --title, --folder, --interval or --due");
	return set_apply(c, &to, what, "changed");
}

/*
 * Feeds, or with --all the workers (then opens the store). 0, or an exit code after an error
 * message.
 */
static int set_target(struct cli *c, bool *all)
{
	*all = cli_flag(c, "all");
	if (*all && c->arg_n)
		return cli_usage(c, "--all and FEED exclude each other: --all is for all workers, FEED for one feed");
	if (!*all && !c->arg_n)
		return cli_usage(c, "missing argument: FEED, or --all for all workers on all machines");
	return *all ? cli_store(c, 0) : 0;
}

static int pause_run(struct cli *c)
{
	bool all;
	int rc = set_target(c, &all);

	if (rc)
		return rc;
	if (all)
		return cli_send_all(
			c, FW_CONTROL_PAUSE, "pause", "; workers that start later wait until 'feedwheel resume --all'");
	return set_apply(c, &(struct fw_feed){.status = FW_FEED_PAUSED}, FW_SET_STATUS, "paused");
}

static int resume_run(struct cli *c)
{
	bool all;
	int rc = set_target(c, &all);

	if (rc)
		return rc;
	if (all)
		return cli_send_all(c, FW_CONTROL_RESUME, "resume", "; workers that start later do not wait");
	return set_apply(
		c, &(struct fw_feed){.status = FW_FEED_ACTIVE}, FW_SET_STATUS | FW_SET_CRASH | FW_SET_DUE, "resumed");
}

static const struct cli_option SET_OPTION[] = {
	{"title", "TEXT", "show the feed under this title; \"\": under its own"},
	{"folder", "FOLDER", "move to this folder; \"\": to no folder"},
	{"interval", "TIME", "poll every TIME (30m, 6h); 0: adapt to the feed"},
	{"due", NULL, "make the feed due now"},
	CLI_LIST_OPTIONS,
	{NULL, NULL, NULL},
};

const struct cli_command cli_set_command = {
	.name = "set",
	.args = "FEED...",
	.summary = "change the title, folder or interval of feeds, or make them due",
	.about = CLI_FEED_TEXT,
	.examples = "  feedwheel set --folder news --interval 30m https://example.org/feed.xml\n  feedwheel set --due "
		    "example.org\n",
	.option = SET_OPTION,
	.min_args = 1,
	.max_args = -1,
	.run = set_run,
};

static const struct cli_option ALL[] = {
	{"all", NULL, "all workers on all machines, instead of feeds"},
	{"json", NULL, "print a JSON array of objects; with --all an object"},
	{"jsonl", NULL, "print one JSON object per line"},
	{NULL, NULL, NULL},
};

const struct cli_command cli_pause = {
	.name = "pause",
	.args = "FEED...",
	.summary = "stop polling feeds but keep their entries; or pause all workers",
	.about = CLI_FEED_TEXT "With --all the workers on all machines finish and store what is in flight, then wait "
			       "until 'resume --all'. Workers that start\n"
			       "later wait too. The states of the feeds do not change.\n",
	.examples = "  feedwheel pause https://example.org/feed.xml\n  feedwheel pause --all\n",
	.option = ALL,
	.max_args = -1,
	.run = pause_run,
};

const struct cli_command cli_resume = {
	.name = "resume",
	.args = "FEED...",
	.summary = "poll paused, gone or quarantined feeds again; or resume all workers",
	.about = CLI_FEED_TEXT "With --all, the workers that 'pause --all' has paused resume.\n",
	.examples = "  feedwheel resume https://example.org/feed.xml\n  feedwheel resume --all\n",
	.option = ALL,
	.max_args = -1,
	.run = resume_run,
};
