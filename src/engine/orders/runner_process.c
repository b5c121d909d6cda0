/* SPDX-License-Identifier: ISC */
/*
 * The runner: one loop that takes frames, starts a process for each job, reads its standard error,
 * and replies when it has ended.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/orders/runner_process.h"

#define FD 3 /* of the socket */
#define DESCRIPTORS_MAX 65536
#define TIMEOUT_MAX_MS FW_DAY_MS

struct process_job {
	pid_t pid; /* also its process group; 0: free */
	uint64_t client, id;
	int64_t timeout_ms, at_ms; /* at_ms: of the next signal */
	bool late, killed, is_append;
	bool dropped; /* nobody waits for a reply */
	int err_fd;
	/* the last line of standard error that is not empty */
	char line[RUNNER_ERROR_MAX];
	size_t len;
	bool line_ended;
};

struct process {
	struct process_job job[RUNNER_JOBS_MAX];
	size_t n;
	const struct runner_rules *rules;
	bool over; /* all other ends of the socket are closed */
};

static const int IGNORED[] = {SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2, SIGPIPE, SIGXFSZ};

/* ---- replies --------------------------------------------------------------------------------- */

static void reply(uint64_t client, uint64_t id, int status, bool accepted, const char *what, struct fw_str line)
{
	struct runner_reply a = {.client = client, .id = id, .status = status, .accepted = accepted};

	(void)fw_snprintf(a.error, sizeof(a.error), "%s%s%.*s", what, *what && line.len ? ": " : "", FW_STR_ARG(line));
	/* nobody reads: the worker that waited has died */
	(void)send(FD, &a, sizeof(a), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void job_read_error(struct process_job *j)
{
	char part[4096];
	ssize_t n;

	while (j->err_fd >= 0 && (n = read(j->err_fd, part, sizeof(part))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0)
			break;
		for (ssize_t i = 0; i < n; i++) {
			if (part[i] == '\n' || part[i] == '\r') {
				j->line_ended = true;
				continue;
			}
			if (j->line_ended)
				j->len = 0;
			j->line_ended = false;
			if (j->len < sizeof(j->line))
				j->line[j->len++] = part[i];
		}
	}
	if (j->err_fd >= 0)
		close(j->err_fd);
	j->err_fd = -1;
}

static void job_ended(struct process *p, struct process_job *j, int status)
{
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	char what[80] = "", after[FW_RFC3339_MAX];

	job_read_error(j);
	if (j->err_fd >= 0)
		close(j->err_fd); /* a process that it left behind holds the other end */
	if (j->late)
		(void)fw_snprintf(what, sizeof(what), "killed after %s", fw_duration_text(after, j->timeout_ms));
	else if (WIFSIGNALED(status))
		(void)fw_snprintf(what, sizeof(what), "killed by signal %d", WTERMSIG(status));
	else if (code && !j->is_append && code != 127)
		(void)fw_snprintf(what, sizeof(what), "exit status %d", code);
	if (!code && !j->late)
		j->len = 0;
	if (!j->dropped)
		reply(j->client, j->id, j->is_append ? 0 : code, !code && !j->late, what,
			(struct fw_str){j->line, j->len});
	*j = (struct process_job){.pid = 0};
	p->n--;
}

/* ---- the processes of jobs ------------------------------------------------------------------- */

static void job_signal(struct process_job *j, int number, int64_t now_ms)
{
	j->killed = number == SIGKILL;
	j->at_ms = j->killed ? INT64_MAX : now_ms + RUNNER_KILL_MS;
	kill(-j->pid, number);
}

static void jobs_check(struct process *p, int64_t now_ms)
{
	for (size_t i = 0; i < RUNNER_JOBS_MAX; i++) {
		struct process_job *j = &p->job[i];

		if (!j->pid || now_ms < j->at_ms)
			continue;
		job_signal(j, j->late ? SIGKILL : SIGTERM, now_ms);
		j->late = true;
	}
}

static struct process_job *job_of(struct process *p, pid_t pid)
{
	for (size_t i = 0; i < RUNNER_JOBS_MAX; i++) {
		if (p->job[i].pid == pid)
			return &p->job[i];
	}
	return NULL;
}

static void jobs_reap(struct process *p)
{
	siginfo_t info = {.si_pid = 0};
	int status;

	while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid) {
		struct process_job *j = job_of(p, info.si_pid);

		/* before it is reaped, while the group's number is certainly its own */
		if (j && j->late)
			kill(-j->pid, SIGKILL);
		if (waitpid(info.si_pid, &status, 0) == info.si_pid && j)
			job_ended(p, j, status);
		info.si_pid = 0;
	}
}

enum whose { OF_ALL, OF_OTHERS, OF_CLIENT };

/* End jobs without a reply: nobody waits for one. */
static void jobs_drop(struct process *p, enum whose whose, uint64_t client, int64_t now_ms)
{
	for (size_t i = 0; i < RUNNER_JOBS_MAX; i++) {
		struct process_job *j = &p->job[i];

		if (!j->pid || j->dropped || (whose != OF_ALL && (j->client == client) == (whose == OF_OTHERS)))
			continue;
		j->dropped = true;
		if (!j->late)
			job_signal(j, SIGTERM, now_ms);
		j->late = true;
	}
}

/* In the new process. */
static _Noreturn void job_become(const struct process *p, uint32_t kind, const char *const text[RUNNER_TEXTS],
	int input, int error, pid_t parent)
{
	size_t trusted_n = 0;

	sigset_t none;

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) /* it died before that */
		_exit(1);
	for (size_t i = 0; i < FW_N(IGNORED); i++)
		signal(IGNORED[i], SIG_DFL);
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (dup2(input, STDIN_FILENO) < 0 || dup2(error, STDERR_FILENO) < 0)
		_exit(1);
	if (kind == RUNNER_COMMAND)
		runner_job_command(text);
	signal(SIGXFSZ, SIG_IGN); /* the write fails with EFBIG */
	if (!runner_may_write(p->rules, fw_str(text[RUNNER_TO]), &trusted_n))
		_exit(1);
	runner_job_append(text[RUNNER_TO], trusted_n);
}

/* Returns 0 or an errno. */
static int job_spawn(struct process *p, const struct runner_frame *h, const char *const text[RUNNER_TEXTS], int input)
{
	struct process_job *j = job_of(p, 0);
	pid_t self = getpid(), pid;
	sigset_t all, was;
	int end[2];

	if (!j)
		return EAGAIN;
	if (pipe2(end, O_CLOEXEC | O_NONBLOCK))
		return errno;
	fcntl(end[1], F_SETFL, 0); /* a program does not expect EAGAIN */
	/* a signal that comes before the child listens waits, and is not ignored as here */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &was);
	/* without the handlers of libraries (libuv's), whose descriptors are closed */
	pid = _Fork();
	if (pid == 0)
		job_become(p, h->kind, text, input, end[1], self);
	sigprocmask(SIG_SETMASK, &was, NULL);
	close(end[1]);
	if (pid < 0) {
		close(end[0]);
		return EAGAIN;
	}
	setpgid(pid, pid); /* the child does too: whoever is first */
	*j = (struct process_job){.pid = pid,
		.client = h->client,
		.id = h->id,
		.timeout_ms = h->timeout_ms,
		.at_ms = fw_mono_ms() + h->timeout_ms,
		.is_append = h->kind == RUNNER_APPEND,
		.err_fd = end[0]};
	p->n++;
	return 0;
}

/* ---- frames ---------------------------------------------------------------------------------- */

static bool text_has_control(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if ((unsigned char)p[i] < ' ' || p[i] == 0x7f)
			return true;
	}
	return false;
}

/*
 * Point to the texts in the frame's bytes, which leave room for a NUL behind each. false: not one
 * of ours.
 */
static bool frame_texts(const char *p, size_t n, char out[RUNNER_FRAME_MAX + RUNNER_TEXTS],
	const char *text[RUNNER_TEXTS], struct runner_frame *h)
{
	size_t at = sizeof(*h), to = 0;

	if (n < sizeof(*h))
		return false;
	memcpy(h, p, sizeof(*h));
	for (size_t i = 0; i < RUNNER_TEXTS; i++) {
		if (h->len[i] > n - at || text_has_control(p + at, h->len[i]))
			return false;
		memcpy(out + to, p + at, h->len[i]);
		text[i] = out + to;
		at += h->len[i];
		to += h->len[i];
		out[to++] = 0;
	}
	return at == n && h->kind <= RUNNER_END && h->timeout_ms >= 0 && h->timeout_ms <= TIMEOUT_MAX_MS;
}

static bool frame_is_allowed(const struct process *p, const struct runner_frame *h, struct fw_str to)
{
	size_t unused;

	return h->kind == RUNNER_COMMAND ? runner_may_run(p->rules, to) : runner_may_write(p->rules, to, &unused);
}

static void frame_take(struct process *p, const char *bytes, size_t n, int input)
{
	char copy[RUNNER_FRAME_MAX + RUNNER_TEXTS];
	const char *text[RUNNER_TEXTS];
	struct runner_frame h;
	int e;

	if (!frame_texts(bytes, n, copy, text, &h))
		return;
	jobs_drop(p, h.kind == RUNNER_END ? OF_CLIENT : OF_OTHERS, h.client, fw_mono_ms());
	if (h.kind == RUNNER_END || input < 0)
		return;
	if (!frame_is_allowed(p, &h, fw_str(text[RUNNER_TO]))) {
		reply(h.client, h.id, 0, false, "not allowed by order_programs and order_files", FW_STR(""));
		return;
	}
	e = job_spawn(p, &h, text, input);
	if (e)
		reply(h.client, h.id, 0, false, "process not created", fw_str(strerror(e)));
}

/* The descriptor that came with it; -1: none. */
static int message_file(struct msghdr *m)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(m);
	int fd = -1;

	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(fd)))
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

static void frames_read(struct process *p)
{
	char bytes[RUNNER_FRAME_MAX];
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	ssize_t n;

	do {
		struct iovec part = {.iov_base = bytes, .iov_len = sizeof(bytes)};
		/* the length without padding, in which the kernel would put a second descriptor */
		struct msghdr m = {.msg_iov = &part,
			.msg_iovlen = 1,
			.msg_control = &control,
			.msg_controllen = CMSG_LEN(sizeof(int))};
		int input;

		n = recvmsg(FD, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		if (n <= 0)
			break;
		input = message_file(&m);
		frame_take(p, bytes, (size_t)n, input);
		if (input >= 0)
			close(input);
	} while (true);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	p->over = true;
	jobs_drop(p, OF_ALL, 0, fw_mono_ms());
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void on_child(int number)
{
	(void)number; /* ends ppoll() */
}

static void process_wait(struct process *p, const sigset_t *in_poll)
{
	struct pollfd poll[RUNNER_JOBS_MAX + 1] = {{.fd = p->over ? -1 : FD, .events = POLLIN}};
	int64_t next_ms = INT64_MAX, now_ms = fw_mono_ms();
	struct timespec wait;

	for (size_t i = 0; i < RUNNER_JOBS_MAX; i++) {
		poll[i + 1] = (struct pollfd){.fd = p->job[i].pid ? p->job[i].err_fd : -1, .events = POLLIN};
		if (p->job[i].pid)
			next_ms = FW_MIN(next_ms, p->job[i].at_ms);
	}
	wait = fw_timespec(FW_MAX(next_ms - now_ms, INT64_C(0)));
	if (ppoll(poll, FW_N(poll), next_ms == INT64_MAX ? NULL : &wait, in_poll) > 0) {
		for (size_t i = 0; i < RUNNER_JOBS_MAX; i++) {
			if (p->job[i].pid && poll[i + 1].revents)
				job_read_error(&p->job[i]);
		}
		if (poll[0].revents)
			frames_read(p);
	}
	jobs_reap(p);
	jobs_check(p, fw_mono_ms());
}

/* Close all but the first three, and FD. */
static void descriptors_close(void)
{
#ifdef SYS_close_range
	if (syscall(SYS_close_range, FD + 1u, ~0u, 0u) == 0)
		return;
#endif
	for (int fd = FD + 1; fd < (int)FW_MIN(sysconf(_SC_OPEN_MAX), (long)DESCRIPTORS_MAX); fd++)
		close(fd);
}

/* Returns 0 or an errno. */
static int process_begin(int fd, sigset_t *in_poll)
{
	static const struct rlimit none = {0, 0};
	sigset_t child;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
		return errno;
	if (fd != FD && dup2(fd, FD) < 0)
		return errno;
	descriptors_close();
	if (fcntl(FD, F_SETFD, FD_CLOEXEC) || setrlimit(RLIMIT_CORE, &none) || chdir("/"))
		return errno;
	setsid();                                 /* a terminal's ^C is for the master; it ends us in time */
	prctl(PR_SET_NAME, "fw-runner", 0, 0, 0); /* as lists of processes show it */
	for (size_t i = 0; i < FW_N(IGNORED); i++)
		signal(IGNORED[i], SIG_IGN);
	if (sigaction(SIGCHLD, &(struct sigaction){.sa_handler = on_child}, NULL))
		return errno;
	sigemptyset(&child);
	sigprocmask(SIG_SETMASK, &child, NULL);
	*in_poll = child;
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	return 0;
}

int runner_main(int fd, const struct runner_rules *rules)
{
	static struct process p;
	sigset_t in_poll;

	p.rules = rules;
	if (process_begin(fd, &in_poll))
		return EXIT_FAILURE;
	while (!p.over || p.n)
		process_wait(&p, &in_poll);
	return EXIT_SUCCESS;
}
