/* SPDX-License-Identifier: ISC */
/*
 * A pager on a terminal, like git's: $PAGER through the shell, else less, else more. PAGER="" or
 * "cat" means none. Unless LESS is set, it becomes FRX: less then exits at once if the text fits
 * the screen, passes colours through, and does not clear the screen.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"

#define NOT_STARTED 127 /* the shell's status for "command not found" */

static _Noreturn void pager_exec(const char *command, int in)
{
	static const int RESET[] = {SIGPIPE, SIGXFSZ, SIGINT, SIGQUIT};

	for (size_t i = 0; i < FW_N(RESET); i++)
		signal(RESET[i], SIG_DFL);
	if (dup2(in, STDIN_FILENO) < 0 || setenv("LESS", "FRX", 0))
		_exit(NOT_STARTED);
	if (command) {
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	} else {
		execlp("less", "less", (char *)NULL);
		execlp("more", "more", (char *)NULL);
	}
	_exit(NOT_STARTED);
}

static void pager_set_signals(void (*handler)(int))
{
	/* ^C is for the pager: if we exited first, the shell would take the terminal from it */
	signal(SIGINT, handler);
	signal(SIGQUIT, handler);
}

void cli_pager_open(struct cli_pager *p, struct cli *c)
{
	const char *command = getenv("PAGER");
	int ends[2];

	*p = (struct cli_pager){.out = -1};
	if (!c->term.out_tty || (command && (!command[0] || strcmp(command, "cat") == 0)))
		return;
	cli_flush(c);
	if (pipe2(ends, O_CLOEXEC))
		return; /* print without a pager */
	p->out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	p->pid = p->out < 0 ? -1 : fork();
	if (p->pid == 0)
		pager_exec(command, ends[0]);
	close(ends[0]);
	if (p->pid > 0 && dup2(ends[1], STDOUT_FILENO) >= 0) {
		pager_set_signals(SIG_IGN);
	} else {
		p->pid = 0;
		if (p->out >= 0)
			close(p->out);
	}
	close(ends[1]);
}

int cli_pager_close(struct cli_pager *p, struct cli *c)
{
	int status = 0;
	pid_t pid = p->pid;

	cli_flush(c);
	if (!pid)
		return 0;
	p->pid = 0;
	if (dup2(p->out, STDOUT_FILENO) < 0) /* closes the pager's input */
		close(STDOUT_FILENO);
	close(p->out);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	pager_set_signals(SIG_DFL);
	if (WIFEXITED(status) && (WEXITSTATUS(status) == NOT_STARTED || WEXITSTATUS(status) == 126))
		return cli_fail(c, CLI_SOME, "cannot start a pager (set PAGER, or give --no-pager)");
	return 0;
}
