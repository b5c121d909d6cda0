/* SPDX-License-Identifier: ISC */
/*
 * serve: run the HTTP server alone; also the functions with which `run` starts it beside the
 * workers.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "cli/cli.h"
#include "api/sandbox.h"
#include "http/serve.h"

static int listen_fd = -1; /* inherited by the children: a restarted server keeps using it */
static char listen_text[16] = "-1";
static const char *const EXEC_ARGS[] = {"feedwheel", CLI_CHILD, listen_text, NULL};

int cli_serve_body(void *ctx, const struct fw_config *config, struct fw_meter *meter, int parent_fd, struct fw_err *err)
{
	(void)ctx;
	return fw_serve(config, meter, listen_fd, parent_fd, err);
}

int cli_serve_open(struct cli *c)
{
	struct fw_err err = {0};

	if (fw_serve_listen(c->config, &listen_fd, &err))
		return cli_store_failed(c, &err);
	(void)fw_snprintf(listen_text, sizeof(listen_text), "%d", listen_fd);
	return fcntl(listen_fd, F_SETFD, 0) ? cli_fail(c, CLI_STORE, "listening socket: %s", strerror(errno)) : 0;
}

const char *const *cli_exec_args(void)
{
	return EXEC_ARGS;
}

int cli_child(char **argv)
{
	int64_t fd = -1;

	if (!fw_str_int(fw_str(argv[2]), &fd) || fd < -1 || fd > INT_MAX)
		return CLI_USAGE;
	listen_fd = (int)fd;
	if (listen_fd >= 0 && strcmp(argv[3], "server") != 0) {
		/* a worker that outlives the others must not keep the port open */
		close(listen_fd);
		listen_fd = -1;
	}
	return fw_run_child(argv[4], cli_serve_body, NULL);
}

void cli_serve_close(struct cli *c)
{
	if (listen_fd >= 0)
		fw_serve_unlisten(c->config, listen_fd);
	listen_fd = -1;
}

static int serve_reload(void *ctx, struct fw_config **out, struct fw_err *err)
{
	return cli_config_read(ctx, out, err);
}

static void serve_summary_json(struct cli *c, const struct fw_run_stats *s)
{
	struct cli_json w;

	cli_json_object_begin(&w, c);
	fw_json_time(&w.j, "started", s->run_id);
	fw_json_int(&w.j, "elapsed_ms", s->elapsed_ms);
	fw_json_int(&w.j, "restarts", (int64_t)s->restarts);
	fw_json_int(&w.j, "cpu_ms", s->cpu_ms);
	fw_json_int(&w.j, "max_rss_bytes", s->max_rss_bytes);
	cli_json_object_end(&w, c);
}

static int serve_run(struct cli *c)
{
	struct fw_run_options o = {.reload = serve_reload,
		.serve = cli_serve_body,
		.serve_only = true,
		.notify = true,
		.exec_args = cli_exec_args(),
		.ctx = c};
	struct fw_run_stats stats;
	struct fw_err err = {0};
	int rc;

	if (cli_store_folder(c, &err)) /* the server may be the first to use the store */
		return cli_store_failed(c, &err);
	rc = cli_serve_open(c);
	if (rc)
		return rc;
	cli_flush(c);
	rc = fw_sandbox_enter(c->config, FW_SANDBOX_MASTER, &err);
	rc = rc ? rc : fw_run(c->config, &o, &stats, &err);
	cli_serve_close(c);
	if (rc)
		return cli_store_failed(c, &err);
	if (cli_flag(c, "json"))
		serve_summary_json(c, &stats);
	return CLI_OK;
}

static const struct cli_option SERVE_OPTION[] = {
	{"json", NULL, "print a JSON summary at the end"},
	{NULL, NULL, NULL},
};

const struct cli_command cli_serve = {
	.name = "serve",
	.args = "",
	.summary = "run the HTTP server: accept pushes, serve the API",
	.about = "Listens on the address of the setting 'listen' until SIGTERM or ^C, then stores what it has "
		 "accepted.\n"
		 "'feedwheel run --listen ADDRESS:PORT' runs the server beside the workers.\n",
	.examples = "  feedwheel serve --listen 127.0.0.1:8080\n  feedwheel serve --listen unix:/run/feedwheel.sock "
		    "--wal-dir /var/spool/feedwheel\n",
	.option = SERVE_OPTION,
	.run = serve_run,
};
