/* SPDX-License-Identifier: ISC */
/* serve: the HTTP server alone; and what run needs to start it beside the workers. */
#include "cli/cli.h"
#include "feedwheel/sandbox.h"
#include "feedwheel/serve.h"
#include "base/banned.h"

static int listen_fd = -1; /* of this process and all it forks: a server that is started anew goes on with it */

int cli_serve_body(void *ctx, const struct fw_config *config, const struct fw_meter *meter, int parent_fd, struct fw_err *err)
{
	(void)ctx;
	return fw_serve(config, meter, listen_fd, parent_fd, err);
}

int cli_serve_open(struct cli *c)
{
	struct fw_err err = {0};

	return fw_serve_listen(c->config, &listen_fd, &err) ? cli_store_failed(c, &err) : 0;
}

void cli_serve_close(struct cli *c)
{
	if (listen_fd >= 0)
		fw_serve_unlisten(c->config, listen_fd);
	listen_fd = -1;
}

static int reload(void *ctx, struct fw_config **out, struct fw_err *err)
{
	return cli_config_read(ctx, out, err);
}

static int serve_run(struct cli *c)
{
	struct fw_run_options o = {.reload = reload, .serve = cli_serve_body, .serve_only = true, .ctx = c};
	struct fw_run_stats stats;
	struct fw_err err = {0};
	int rc;

	if (cli_store_folder(c, &err)) /* a server may be the first that this store sees */
		return cli_store_failed(c, &err);
	rc = cli_serve_open(c);
	if (rc)
		return rc;
	cli_flush(c);
	rc = fw_sandbox_enter(c->config, FW_SANDBOX_MASTER, &err);
	rc = rc ? rc : fw_run(c->config, &o, &stats, &err);
	cli_serve_close(c);
	return rc ? cli_store_failed(c, &err) : CLI_OK;
}

const struct cli_command cli_serve = {
	.name = "serve", .args = "", .summary = "answer HTTP: take pushes, show what is stored",
	.about = "Listens where the setting 'listen' says, until SIGTERM or ^C; then what was accepted is stored.\n"
		"'feedwheel run --listen ADDRESS:PORT' does the same beside the workers.\n",
	.examples = "  feedwheel serve --listen 127.0.0.1:8080\n  feedwheel serve --listen unix:/run/feedwheel.sock --spill-dir /var/spool/feedwheel\n",
	.run = serve_run,
};
