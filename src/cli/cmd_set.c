/* SPDX-License-Identifier: ISC */
/* set, pause, resume: what the owner of a subscription may change. */
#include "cli/cli.h"
#include "base/banned.h"

/* Apply one change to every feed named; all are looked up before the first is changed. */
static int change(struct cli *c, const struct fw_feed *to, unsigned what, const char *done)
{
	struct fw_feed *feed = fw_arena_calloc(&c->arena, (size_t)c->arg_n, sizeof(*feed));
	struct fw_err err = {0};
	int rc;

	if (!feed)
		return cli_fail(c, CLI_SOME, "out of memory");
	rc = cli_store(c, 0);
	for (int i = 0; !rc && i < c->arg_n; i++)
		rc = cli_feed(c, c->arg[i], false, &feed[i]);
	for (int i = 0; !rc && i < c->arg_n; i++) {
		if (fw_feed_change(c->store, &feed[i], to, what, c->now_ms, &err))
			return cli_store_failed(c, &err);
		cli_out(c, "%s ", done);
		cli_out_safe(c, feed[i].url);
		cli_out(c, "\n");
	}
	return rc;
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
		return cli_usage(c, "which feeds? Their URLs, or --all for the work of all machines");
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
	{"folder", "NAME", "move it there; \"\": to the top"},
	{"interval", "TIME", "ask every TIME (30m, 6h); 0: by its rhythm"},
	{"due", NULL, "make it due now"},
	{NULL, NULL, NULL},
};

const struct cli_command cli_set_command = {
	.name = "set", .args = "URL...", .summary = "change the title, folder or interval of feeds, or make them due",
	.about = "A feed is named by its URL, its number (#12), or a part of URL or title that no other has.\n",
	.examples = "  feedwheel set --folder news --interval 30m https://example.org/feed.xml\n  feedwheel set --due example.org\n",
	.option = OPTION, .min_args = 1, .max_args = -1, .run = set_run,
};

static const struct cli_option ALL[] = {
	{"all", NULL, "the workers on every machine, whatever feeds they have"},
	{NULL, NULL, NULL},
};

const struct cli_command cli_pause = {
	.name = "pause", .args = "URL...", .summary = "stop asking feeds, keep their entries; or stop all work",
	.about = "With --all no feed is asked any more, by no machine, until 'resume --all': workers finish what is in flight, store it\n"
		"and wait, and those that start later wait too. The feeds' own states do not change.\n",
	.examples = "  feedwheel pause https://example.org/feed.xml\n  feedwheel pause --all\n",
	.option = ALL, .max_args = -1, .run = pause_run,
};

const struct cli_command cli_resume = {
	.name = "resume", .args = "URL...", .summary = "ask feeds again that were paused, gone or set aside; or all work",
	.about = "With --all workers go on that were paused with --all.\n",
	.examples = "  feedwheel resume https://example.org/feed.xml\n  feedwheel resume --all\n",
	.option = ALL, .max_args = -1, .run = resume_run,
};
