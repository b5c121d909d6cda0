/* SPDX-License-Identifier: ISC */
/* stop: a message in the store that makes every worker finish what it holds and leave. */
#include "cli/cli.h"
#include "base/banned.h"

static int count(void *ctx, const struct fw_beat *b)
{
	*(size_t *)ctx += !fw_worker_is_dead(b->worker);
	return 0;
}

static int stop_run(struct cli *c)
{
	struct fw_err err = {0};
	size_t workers = 0;
	const char *name;
	int rc = cli_store(c, 0);

	if (rc)
		return rc;
	name = fw_store_name(c->store);
	if (!cli_flag(c, "all") && strcmp(name, "sqlite") && strcmp(name, "memory"))
		return cli_usage(c, "other machines may work on this store too: --all stops them all, SIGTERM one 'feedwheel run'");
	if (fw_store_beat_list(c->store, c->now_ms - CLI_WORKER_MS, count, &workers, &err) ||
	    fw_store_control_put(c->store, FW_CONTROL_STOP, c->now_ms, &err))
		return cli_store_failed(c, &err);
	if (workers)
		cli_out(c, "told %zu worker%s to finish and leave\n", workers, workers == 1 ? "" : "s");
	else
		cli_out(c, "nobody is working on this store\n");
	return CLI_OK;
}

static const struct cli_option OPTION[] = {
	{"all", NULL, "on every machine that works on this store"},
	{NULL, NULL, NULL},
};

const struct cli_command cli_stop = {
	.name = "stop", .args = "", .summary = "let every 'feedwheel run' on this store finish and leave",
	.about = "What is in flight is finished and stored first. To stop one process only, send it SIGTERM.\n",
	.examples = "  feedwheel stop\n  feedwheel stop --all\n", .option = OPTION, .run = stop_run,
};
