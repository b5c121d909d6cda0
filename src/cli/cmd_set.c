/* SPDX-License-Identifier: ISC */
/* set, pause, resume: what the owner of a subscription may change. */
#include "cli/cli.h"
#include "base/banned.h"

/* As it is now; somebody else may have changed it since, or removed it. */
static int changed(struct cli_list *l, const struct fw_feed *f, const char *done, struct fw_err *err)
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

/* Apply one change to every feed named; all are looked up before the first is changed. */
static int change(struct cli *c, const struct fw_feed *to, unsigned what, const char *done)
{
	struct fw_feed *feed = fw_arena_calloc(&c->arena, (size_t)c->arg_n, sizeof(*feed));
	struct fw_err err = {0};
	struct cli_list l;
	int rc;

	if (!feed)
		return cli_fail(c, CLI_SOME, "out of memory");
	rc = cli_store(c, 0);
	for (int i = 0; !rc && i < c->arg_n; i++)
		rc = cli_feed(c, c->arg[i], false, &feed[i]);
	if (rc)
		return rc;
	cli_list_begin(&l, c, NULL, 0);
	for (int i = 0; !rc && i < c->arg_n; i++) {
		rc = fw_feed_change(c->store, &feed[i], to, what, c->now_ms, &err);
		rc = rc ? rc : changed(&l, &feed[i], done, &err);
	}
	cli_list_end(&l);
	return rc ? cli_store_failed(c, &err) : CLI_OK;
}

static int set_run(struct cli *c)
{
	const char *title = cli_value(c, "title"), *folder = cli_value(c, "folder");
	struct fw_feed to = {.user_title = fw_str(title), .folder = fw_str(folder), .due_at_ms = c->now_ms};
	unsigned what = (title ? FW_SET_TITLE : 0) | (folder ? FW_SET_FOLDER : 0) | (cli_flag(c, "due") ? FW_SET_DUE : 0) |
		(cli_value(c, "interval") ? FW_SET_INTERVAL : 0);

	if (!cli_value_duration(c, "interval", &to.interval_ms))
		return CLI_USAGE;
	if (!what)
		return cli_usage(c, "nothing to change: --title, --folder, --interval or --due");
	return change(c, &to, what, "changed");
}

/* Feeds, or --all: the workers. 0, or an exit code when it has complained. */
static int which(struct cli *c, bool *all)
{
	*all = cli_flag(c, "all");
	if (*all && c->arg_n)
		return cli_usage(c, "--all is about the workers, URLs are about feeds: one of the two");
	if (!*all && !c->arg_n)
		return cli_usage(c, "which feeds? Their numbers or URLs, or --all for the work of all machines");
	return *all ? cli_store(c, 0) : 0;
}

static int pause_run(struct cli *c)
{
	bool all;
	int rc = which(c, &all);

	if (rc)
		return rc;
	if (all)
		return cli_tell_all(c, FW_CONTROL_PAUSE, "pause", "; those that start later wait until 'feedwheel resume --all'");
	return change(c, &(struct fw_feed){.status = FW_FEED_PAUSED}, FW_SET_STATUS, "paused");
}

static int resume_run(struct cli *c)
{
	bool all;
	int rc = which(c, &all);

	if (rc)
		return rc;
	if (all)
		return cli_tell_all(c, FW_CONTROL_RESUME, "go on", "; those that start later do not wait any more");
	return change(c, &(struct fw_feed){.status = FW_FEED_ACTIVE, .due_at_ms = c->now_ms},
		FW_SET_STATUS | FW_SET_CRASH | FW_SET_DUE, "resumed");
}

static const struct cli_option OPTION[] = {
	{"title", "TEXT", "show it under this title; \"\": under its own"},
	{"folder", "FOLDER", "move it there; \"\": to the top"},
	{"interval", "TIME", "ask every TIME (30m, 6h); 0: by its rhythm"},
	{"due", NULL, "make it due now"},
	CLI_LIST_OPTIONS,
	{NULL, NULL, NULL},
};

const struct cli_command cli_set_command = {
	.name = "set", .args = "FEED...", .summary = "change the title, folder or interval of feeds, or make them due",
	.about = CLI_FEED_WORDS,
	.examples = "  feedwheel set --folder news --interval 30m https://example.org/feed.xml\n  feedwheel set --due example.org\n",
	.option = OPTION, .min_args = 1, .max_args = -1, .run = set_run,
};

static const struct cli_option ALL[] = {
	{"all", NULL, "the workers on every machine, whatever feeds they have"},
	{"json", NULL, "an array of objects; with --all an object"},
	{"jsonl", NULL, "one JSON object a line"},
	{NULL, NULL, NULL},
};

const struct cli_command cli_pause = {
	.name = "pause", .args = "FEED...", .summary = "stop asking feeds, keep their entries; or stop all work",
	.about = CLI_FEED_WORDS "With --all no feed is asked any more, by no machine, until 'resume --all': workers finish what is in flight, store it\n"
		"and wait, and those that start later wait too. The feeds' own states do not change.\n",
	.examples = "  feedwheel pause https://example.org/feed.xml\n  feedwheel pause --all\n",
	.option = ALL, .max_args = -1, .run = pause_run,
};

const struct cli_command cli_resume = {
	.name = "resume", .args = "FEED...", .summary = "ask feeds again that were paused, gone or set aside; or all work",
	.about = CLI_FEED_WORDS "With --all workers go on that were paused with --all.\n",
	.examples = "  feedwheel resume https://example.org/feed.xml\n  feedwheel resume --all\n",
	.option = ALL, .max_args = -1, .run = resume_run,
};
