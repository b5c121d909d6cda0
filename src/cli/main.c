/* SPDX-License-Identifier: ISC */
/* main(): parse the arguments, read the configuration, run one command, return its exit code. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>

#include "cli/cli.h"

static int main_run_command(struct cli *c)
{
	bool lost = !c->command && !c->help && !c->version; /* "feedwheel" alone */
	int rc;

	if (c->version) {
		c->command = cli_command_find("version");
	} else if (c->help || lost) {
		c->arg_n = 0;
		if (c->command)
			c->arg[c->arg_n++] = c->command->name;
		for (size_t i = 0; i < CLI_OPTION_MAX; i++)
			c->value[i] = NULL;
		c->command = cli_command_find("help");
	}
	if (!(c->command->flags & CLI_NO_CONFIG)) {
		rc = cli_config(c);
		if (rc)
			return rc;
	}
	rc = c->command->run(c);
	return lost ? CLI_USAGE : rc;
}

/* Write the buffered output. A closed pipe is not an error; a full disk is. */
static int main_flush(struct cli *c, int rc)
{
	cli_flush(c);
	if (c->out_errno && c->out_errno != EPIPE) {
		int e = c->out_errno;

		rc = cli_fail(c, rc ? rc : CLI_SOME, "standard output: %s", strerror(e));
	}
	return rc;
}

int main(int argc, char **argv)
{
	struct cli c = {0};
	int rc;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a file size limit is then reported as a failed write */
	if (argc == 5 && strcmp(argv[1], CLI_CHILD) == 0)
		return cli_child(argv);
	fw_arena_init(&c.arena, 0);
	c.now_ms = fw_now_ms(); /* wall clock: until a store is opened */
	cli_term_init(&c.term, NULL);
	rc = cli_options(&c, argc, argv);
	if (!rc) {
		cli_term_init(&c.term, c.colour);
		rc = main_run_command(&c);
	}
	rc = main_flush(&c, rc);
	fw_store_close(c.store);
	fw_config_destroy(c.config);
	fw_buf_finish(&c.out);
	fw_arena_finish(&c.arena);
	return rc;
}
