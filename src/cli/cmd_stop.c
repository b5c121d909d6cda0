/* SPDX-License-Identifier: ISC */
/*
 * stop, pause --all, resume --all: send a message to all workers of the store, on all machines,
 * through the store.
 */
#include "cli/cli.h"

int cli_send_all(struct cli *c, enum fw_control_kind kind, const char *to_do, const char *later)
{
	struct cli_json w;
	struct fw_err err = {0};
	size_t workers;
	int rc = cli_workers(c, c->store, &workers);

	if (rc)
		return rc;
	if (fw_store_control_put(c->store, kind, 0, &err))
		return cli_store_failed(c, &err);
	if (cli_as_json(c)) {
		cli_json_object_begin(&w, c);
		fw_json_int(&w.j, "workers_notified", (int64_t)workers);
		cli_json_object_end(&w, c);
	} else if (workers) {
		cli_out(c, "sent to %zu worker%s: %s%s\n", workers, workers == 1 ? "" : "s", to_do, later);
	} else {
		cli_out(c, "no worker is running on this store%s\n", later);
	}
	return CLI_OK;
}

static int stop_run(struct cli *c)
{
	int rc = cli_store(c, 0);

	if (rc)
		return rc;
	if (!cli_flag(c, "all") && fw_store_is_remote(c->config->store))
		return cli_usage(c,
			"other machines may use this store too (to stop all workers, give --all; to stop one "
			"'feedwheel run', send it SIGTERM)");
	return cli_send_all(c, FW_CONTROL_STOP, "finish and exit", "");
}

static const struct cli_option STOP_OPTION[] = {
	{"all", NULL, "on all machines that use this store"},
	{"json", NULL, "print a JSON object"},
	{NULL, NULL, NULL},
};

const struct cli_command cli_stop = {
	.name = "stop",
	.args = "",
	.summary = "stop every 'feedwheel run' on this store gracefully",
	.about = "The workers first finish and store what is in flight. To stop one process only, send it SIGTERM.\n",
	.examples = "  feedwheel stop\n  feedwheel stop --all\n",
	.option = STOP_OPTION,
	.run = stop_run,
};
