/* SPDX-License-Identifier: ISC */
/*
 * The runner: a real process with real programs, which are shell scripts. The parent keeps both
 * ends of the socket, as the master does.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"
#include "engine/orders/runner_process.h"
#include "../../suite.h"

#define LONG_MS 60000

static uv_loop_t loop;
static struct runner *r;
static struct fw_err err;
static int end[2]; /* ours, the runner's */
static pid_t pid;
static char folder[] = "/tmp/fw-runner-XXXXXX";

/* what became of a job */
struct seen {
	unsigned n;
	bool accepted;
	int status;
	char error[1000];
};

#define TOO_MANY                                                          \
	"/x 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 " \
	"1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4"
static char programs[1000], paths[200];
static const struct runner_rules rules = {programs, paths};

static void runner_begin(void)
{
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		close(end[0]);
		_exit(runner_main(end[1], &rules));
	}
}

static void begin(void)
{
	ck_assert_ptr_nonnull(mkdtemp(folder));
	ck_assert(fw_snprintf(programs, sizeof(programs),
		"%s/, %s/p one 'two three', /bin/true, /nonexistent/program x, " TOO_MANY, folder, folder));
	ck_assert(fw_snprintf(paths, sizeof(paths), "%s/, %s, /nonexistent/, /dev/null", folder, folder));
	ck_assert_int_eq(uv_loop_init(&loop), 0);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, end), 0);
	runner_begin();
	ck_assert_int_eq(runner_open(&loop, end[0], &r, &err), 0);
}

/* The runner ends when nobody is left, and leaves no process of its own. */
static void finish(void)
{
	int status;

	runner_close(r);
	ck_assert_int_eq(uv_run(&loop, UV_RUN_DEFAULT), 0);
	ck_assert_int_eq(uv_loop_close(&loop), 0);
	close(end[0]);
	close(end[1]);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	pid = fork();
	if (pid == 0)
		execl("/bin/rm", "rm", "-r", folder, (char *)NULL);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

static void on_done(void *ctx, const struct runner_result *a)
{
	struct seen *s = ctx;

	s->n++;
	s->accepted = a->accepted;
	s->status = a->status;
	ck_assert(fw_str_copy(s->error, sizeof(s->error), a->error));
}

static void start(struct seen *s, const char *command, const char *path, struct fw_str input, int64_t timeout_ms)
{
	struct runner_job job = {.input = input, .timeout_ms = timeout_ms, .done = on_done, .ctx = s};

	job.command = command ? fw_str(command) : FW_STR_NONE;
	job.path = path ? fw_str(path) : FW_STR_NONE;
	job.order = FW_STR("security");
	job.message_id = FW_STR("1.2.3");
	*s = (struct seen){.n = 0};
	ck_assert_msg(runner_start(r, &job, &err) == 0, "%s", err.text);
}

static void wait_for(const struct seen *s)
{
	while (!s->n)
		uv_run(&loop, UV_RUN_ONCE);
	ck_assert_uint_eq(s->n, 1);
}

static struct seen run(const char *command, const char *path, struct fw_str input, int64_t timeout_ms)
{
	struct seen s;

	start(&s, command, path, input, timeout_ms);
	wait_for(&s);
	return s;
}

static const char *in_folder(const char *name)
{
	static char path[200];

	ck_assert(fw_snprintf(path, sizeof(path), "%s/%s", folder, name));
	return path;
}

static void file_write(const char *name, const char *text, mode_t mode)
{
	int fd = open(in_folder(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fw_write_all(fd, text, strlen(text)), 0);
	ck_assert_int_eq(fchmod(fd, mode), 0);
	close(fd);
}

static struct fw_str file_text(const char *name)
{
	static char text[8192];
	int fd = open(in_folder(name), O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text));

	if (fd >= 0)
		close(fd);
	return (struct fw_str){text, n < 0 ? 0 : (size_t)n};
}

#define ck_text(name, want) ck_assert_msg(fw_str_eq(file_text(name), FW_STR(want)), "%.*s", FW_STR_ARG(file_text(name)))

/* A script of this text, in the folder; its path. */
static const char *script(const char *name, const char *text)
{
	struct fw_buf b = FW_BUF_INIT(0);

	fw_buf_addf(&b, "#!/bin/sh\ncd %s\n%s\n", folder, text);
	file_write(name, b.p, 0700);
	fw_buf_finish(&b);
	return in_folder(name);
}

/* ---- programs -------------------------------------------------------------------------------- */

START_TEST(a_program_reads_the_message_and_accepts_it)
{
	struct seen s = run(script("p", "cat >got; echo \"$# $1 $2\" >args; echo out; echo words >&2"), NULL,
		FW_STR("{\"a\":1}"), LONG_MS);
	char command[300];

	ck_assert(s.accepted && s.status == 0);
	ck_assert_str_eq(s.error, "");
	ck_text("got", "{\"a\":1}");
	ck_assert(fw_snprintf(command, sizeof(command), "%s  one   'two three' ", in_folder("p")));
	s = run(command, NULL, FW_STR(""), LONG_MS);
	ck_assert(s.accepted);
	ck_text("args", "3 one 'two\n"); /* there are no quotes */
}
END_TEST

START_TEST(its_exit_status_and_its_last_line_say_why)
{
	struct seen s = run(
		script("p", "echo first >&2; printf 'no \\033[1mroom\\n\\n' >&2; exit 75"), NULL, FW_STR("x"), LONG_MS);

	ck_assert(!s.accepted);
	ck_assert_int_eq(s.status, 75);
	ck_assert_str_eq(s.error, "exit status 75: no \\x1b[1mroom");
	s = run(script("p", "exit 1"), NULL, FW_STR("x"), LONG_MS);
	ck_assert_int_eq(s.status, 1);
	ck_assert_str_eq(s.error, "exit status 1");
	s = run(script("p", "kill -SEGV $$"), NULL, FW_STR("x"), LONG_MS);
	ck_assert_int_eq(s.status, 128 + SIGSEGV);
	ck_assert_str_eq(s.error, "killed by signal 11");
	s = run(script("p", "yes | head -c 1000000 | tr -d '\\n' >&2; exit 3"), NULL, FW_STR("x"), LONG_MS);
	ck_assert_int_eq(s.status, 3);
	ck_assert_uint_eq(strlen(s.error), strlen("exit status 3: ") + RUNNER_ERROR_MAX);
}
END_TEST

START_TEST(a_program_that_cannot_start_says_so)
{
	struct seen s = run("/nonexistent/program x", NULL, FW_STR("x"), LONG_MS);

	ck_assert(!s.accepted);
	ck_assert_int_eq(s.status, 127);
	ck_assert_str_eq(s.error, "program not started: /nonexistent/program: No such file or directory");
	file_write("plain", "x", 0600);
	s = run(in_folder("plain"), NULL, FW_STR("x"), LONG_MS);
	ck_assert_ptr_nonnull(strstr(s.error, "Permission denied"));
	s = run(TOO_MANY, NULL, FW_STR("x"), LONG_MS);
	ck_assert_ptr_nonnull(strstr(s.error, "too many words"));
}
END_TEST

static void not_allowed(const char *command, const char *path)
{
	struct seen s = run(command, path, FW_STR("x\n"), LONG_MS);

	ck_assert(!s.accepted && !s.status);
	ck_assert_str_eq(s.error, "not allowed by order_programs and order_files");
}

/* Whoever holds the socket may ask for anything; the rules are the configuration's. */
START_TEST(only_what_the_rules_allow_runs)
{
	char text[300];

	script("p", "echo >ran");
	file_write("sub", "x", 0700);
	not_allowed("/bin/sh", NULL);
	not_allowed("/bin/true x", NULL);
	not_allowed("/bin/../bin/true", NULL);
	not_allowed("//bin/true", NULL);
	not_allowed("relative", NULL);
	not_allowed(" ", NULL);
	not_allowed("/nonexistent/program", NULL);
	not_allowed("/nonexistent/program x y", NULL);
	ck_assert(fw_snprintf(text, sizeof(text), "%s/p one", folder));
	not_allowed(text, NULL); /* the rule has more words, and a folder's programs take none */
	ck_assert(fw_snprintf(text, sizeof(text), "%s/../bin/true", folder));
	not_allowed(text, NULL);
	ck_assert(fw_snprintf(text, sizeof(text), "%s/a/b", folder));
	not_allowed(text, NULL);
	ck_assert(fw_snprintf(text, sizeof(text), "%s/", folder));
	not_allowed(text, NULL);
	ck_assert_int_ne(access(in_folder("ran"), F_OK), 0);
}
END_TEST

START_TEST(it_gets_a_small_environment_and_no_descriptors)
{
	struct seen s;
	int open_fd = open("/dev/null", O_RDONLY); /* without O_CLOEXEC */

	ck_assert_int_ge(open_fd, 0);
	s = run(script("p",
			"env | cut -d= -f1 | grep -v -e PWD -e '^_$' -e SHLVL | sort >env\n"
			"echo $FEEDWHEEL_ORDER $FEEDWHEEL_MESSAGE_ID >ids; ls /proc/self/fd >fds; ulimit -c >core\n"
			"cd / && readlink /proc/$PPID/cwd >>"
			"$OLDPWD/core"),
		NULL, FW_STR(""), LONG_MS);
	ck_assert_msg(s.accepted, "%s", s.error);
	ck_assert_ptr_nonnull(fw_str_find(file_text("env"), FW_STR("PATH")));
	ck_assert_ptr_nonnull(fw_str_find(file_text("env"), FW_STR("FEEDWHEEL_ORDER")));
	ck_assert_ptr_null(fw_str_find(file_text("env"), FW_STR("FW_TEST_SECRET")));
	ck_text("ids", "security 1.2.3\n");
	ck_text("fds", "0\n1\n2\n3\n"); /* 3 is ls's own */
	ck_text("core", "0\n/\n");
	close(open_fd);
}
END_TEST

/*
 * Run a program until its time limit, the shortest at which its child has begun, and wait for the
 * child's end.
 */
static struct seen run_out_of_time(const char *path, int64_t *limit_ms)
{
	struct seen s;
	int64_t child = 0;

	for (*limit_ms = 300; !child; *limit_ms *= child ? 1 : 2) {
		ck_assert_int_lt(*limit_ms, LONG_MS);
		s = run(path, NULL, FW_STR("x"), *limit_ms);
		if (!fw_str_int(fw_str_trim(file_text("child")), &child))
			child = 0;
	}
	while (kill((pid_t)child, 0) == 0) /* until init has reaped it */
		usleep(1000);
	unlink(in_folder("child"));
	return s;
}

START_TEST(the_time_limit_ends_the_whole_group)
{
	char words[60], limit[FW_RFC3339_MAX];
	int64_t from_ms = fw_mono_ms(), limit_ms;
	/* the program and its child ignore SIGTERM, so they get SIGKILL */
	struct seen s = run_out_of_time(
		script("p", "trap '' TERM\nsleep 1000 & echo $! >child\necho begun >&2\nwait\nsleep 1000"), &limit_ms);
	int64_t took_ms = fw_mono_ms() - from_ms;

	ck_assert(!s.accepted);
	ck_assert_int_eq(s.status, 128 + SIGKILL);
	ck_assert(fw_snprintf(words, sizeof(words), "killed after %s: begun", fw_duration_text(limit, limit_ms)));
	ck_assert_str_eq(s.error, words);
	ck_assert_int_ge(took_ms, limit_ms + RUNNER_KILL_MS);
	/* this one listens to SIGTERM; its child does not, and gets SIGKILL then */
	s = run_out_of_time(
		script("p", "sh -c 'trap \"\" TERM; echo $$ >child; sleep 1000' & exec sleep 1000"), &limit_ms);
	ck_assert_int_eq(s.status, 128 + SIGTERM);
}
END_TEST

START_TEST(a_process_left_behind_holds_up_nothing)
{
	struct seen s = run(script("p", "sleep 1000 & echo $! >child; exit 3"), NULL, FW_STR("x"), LONG_MS);
	int64_t child;

	ck_assert_int_eq(s.status, 3);
	ck_assert(fw_str_int(fw_str_trim(file_text("child")), &child));
	ck_assert_int_eq(kill((pid_t)child, SIGKILL), 0);
}
END_TEST

START_TEST(a_large_message)
{
	size_t n = 10 << 20;
	char *big = malloc(n);
	struct seen s;

	ck_assert_ptr_nonnull(big);
	memset(big, 'x', n);
	s = run(script("p", "wc -c >size"), NULL, (struct fw_str){big, n}, LONG_MS);
	ck_assert(s.accepted);
	ck_text("size", "10485760\n");
	s = run("/bin/true", NULL, (struct fw_str){big, n}, LONG_MS); /* reads nothing */
	ck_assert(s.accepted);
	memset(big, 'x', RUNNER_FRAME_MAX);
	ck_assert_int_eq(
		runner_start(r,
			&(struct runner_job){.command = {big, RUNNER_FRAME_MAX}, .timeout_ms = 1, .done = on_done},
			&err),
		FW_ELIMIT);
	free(big);
}
END_TEST

START_TEST(jobs_run_beside_each_other_up_to_a_limit)
{
	static struct seen s[RUNNER_JOBS_MAX];
	/* each ends when all have begun */
	const char *path = script("p", "touch begun-$$; while [ $(ls | grep -c begun-) -lt 64 ]; do sleep 0.1; done");

	for (size_t i = 0; i < RUNNER_JOBS_MAX; i++)
		start(&s[i], path, NULL, FW_STR("x"), LONG_MS);
	ck_assert_int_eq(
		runner_start(r, &(struct runner_job){.command = FW_STR("/bin/true"), .timeout_ms = 1, .done = on_done},
			&err),
		FW_EAGAIN);
	for (size_t i = 0; i < RUNNER_JOBS_MAX; i++) {
		wait_for(&s[i]);
		ck_assert_msg(s[i].accepted, "%s", s[i].error);
	}
	ck_assert(run("/bin/true", NULL, FW_STR("x"), LONG_MS).accepted);
}
END_TEST

/* ---- the runner's death, and ours ------------------------------------------------------------ */

/* Wait until the script has written its number there; returns it. */
static pid_t number_in(const char *name)
{
	int64_t n = 0;

	while (!fw_str_int(fw_str_trim(file_text(name)), &n))
		usleep(1000);
	return (pid_t)n;
}

START_TEST(a_killed_runner_is_followed_by_another)
{
	struct seen lost, next;
	pid_t program;

	start(&lost, script("p", "echo $$ >pid; exec sleep 1000"), NULL, FW_STR("x"), 100);
	program = number_in("pid");
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	while (kill(program, 0) == 0) /* the kernel kills it */
		usleep(1000);
	start(&next, script("p", "cat >got"), NULL, FW_STR("whole"), LONG_MS); /* waits */
	runner_begin();
	wait_for(&next);
	ck_assert(next.accepted);
	ck_text("got", "whole");
	wait_for(&lost);
	ck_assert(!lost.accepted && lost.status == 0);
	ck_assert_str_eq(lost.error, "no result in time: the runner was killed");
}
END_TEST

START_TEST(what_is_closed_is_killed)
{
	struct runner *before;
	struct seen s, unused;
	pid_t program;
	int again;

	start(&unused, script("p", "echo $$ >pid; exec sleep 1000"), NULL, FW_STR("x"), LONG_MS);
	program = number_in("pid");
	runner_close(r);
	while (kill(program, 0) == 0)
		usleep(1000);
	ck_assert_uint_eq(unused.n, 0);
	ck_assert_int_eq(runner_open(&loop, end[0], &r, &err), 0);
	/* a sender that died without a word: its successor's first job ends what it had begun */
	start(&unused, script("p", "echo $$ >pid2; exec sleep 1000"), NULL, FW_STR("x"), LONG_MS);
	program = number_in("pid2");
	before = r;
	again = dup(end[0]);
	ck_assert_int_eq(runner_open(&loop, again, &r, &err), 0);
	start(&s, "/bin/true", NULL, FW_STR("x"), LONG_MS);
	while (kill(program, 0) == 0)
		usleep(1000);
	runner_close(before);
	wait_for(&s);
	ck_assert(s.accepted);
	close(end[0]);
	end[0] = again;
}
END_TEST

START_TEST(all_ends_are_closed)
{
	struct seen s;
	pid_t program;
	int status;

	start(&s, script("p", "echo $$ >pid; exec sleep 1000"), NULL, FW_STR("x"), LONG_MS);
	program = number_in("pid");
	kill(pid, SIGTERM); /* a manager may send it to all: the runner ends last */
	kill(pid, SIGINT);
	ck_assert_int_eq(kill(program, 0), 0);
	shutdown(end[0], SHUT_WR);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert_int_ne(kill(program, 0), 0);
	runner_begin(); /* for finish() */
}
END_TEST

START_TEST(nobody_is_at_the_other_end)
{
	struct seen s;

	start(&s, script("p", "sleep 1000"), NULL, FW_STR("x"), LONG_MS);
	close(end[1]);
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	wait_for(&s);
	ck_assert_str_eq(s.error, "the runner has ended");
	ck_assert_int_eq(
		runner_start(r, &(struct runner_job){.command = FW_STR("/x"), .timeout_ms = 1, .done = on_done}, &err),
		FW_EIO);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, end), 0);
	runner_begin();
}
END_TEST

/* The head of a frame that is too short for its texts, with n descriptors. */
static void send_with_files(const struct runner_frame *h, int fd, unsigned n)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(2 * sizeof(int))];
	} control = {0};
	struct iovec part = {.iov_base = (void *)(uintptr_t)h, .iov_len = sizeof(*h)};
	struct msghdr m = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = CMSG_SPACE(n * sizeof(int))};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	const int files[2] = {fd, fd};

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(c), files, n * sizeof(int));
	ck_assert_int_eq(sendmsg(end[0], &m, 0), (ssize_t)sizeof(*h));
}

START_TEST(frames_that_are_not_ours_are_ignored)
{
	struct seen s;
	char bytes[RUNNER_FRAME_MAX];
	struct runner_frame h = {.client = 1, .id = 1, .timeout_ms = 1000, .len = {5, UINT32_MAX, 0}};

	for (size_t n = 1; n < 200; n += 7) {
		memset(bytes, (int)n, sizeof(bytes));
		ck_assert_int_eq(send(end[0], bytes, n, 0), (ssize_t)n);
	}
	memset(bytes, 'x', sizeof(bytes));
	memcpy(bytes, &h, sizeof(h));
	ck_assert_int_eq(send(end[0], bytes, sizeof(h) + 5, 0), (ssize_t)sizeof(h) + 5);
	h.len[1] = 0; /* a whole frame, but without input */
	memcpy(bytes, &h, sizeof(h));
	ck_assert_int_eq(send(end[0], bytes, sizeof(h) + 5, 0), (ssize_t)sizeof(h) + 5);
	h.client = 2;
	for (int i = 0; i < 3; i++) {
		send_with_files(&h, end[0], 2); /* the second is closed by the kernel, the first by the runner */
		send_with_files(&h, end[0], 1);
	}
	s = run(script("p", "ls /proc/$PPID/fd | wc -l >fds"), NULL, FW_STR("x"), LONG_MS);
	ck_assert_msg(s.accepted, "%s", s.error);
	/* the first four, the program's standard error, and for a moment its message */
	ck_assert_msg(number_in("fds") <= 6, "%.*s", FW_STR_ARG(file_text("fds")));
}
END_TEST

/* ---- files ----------------------------------------------------------------------------------- */

START_TEST(lines_are_appended)
{
	struct stat st;
	struct seen s;

	umask(022);
	s = run(NULL, in_folder("f"), FW_STR("{\"id\":1}\n{\"id\":2}\n"), LONG_MS);
	ck_assert_msg(s.accepted && !s.status, "%s", s.error);
	ck_assert(run(NULL, in_folder("f"), FW_STR("{\"id\":3}\n"), LONG_MS).accepted);
	ck_text("f", "{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n");
	ck_assert_int_eq(stat(in_folder("f"), &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0640);
}
END_TEST

START_TEST(a_torn_line_is_completed)
{
	file_write("f", "{\"id\":1}\n{\"id", 0600);
	ck_assert(run(NULL, in_folder("f"), FW_STR("{\"id\":2}\n"), LONG_MS).accepted);
	ck_text("f", "{\"id\":1}\n{\"id\n{\"id\":2}\n");
}
END_TEST

START_TEST(two_orders_with_one_file)
{
	static struct seen s[RUNNER_JOBS_MAX];
	static char line[100001];
	size_t lines = 0;
	char part[65536];
	struct fw_buf all = FW_BUF_INIT(0);
	ssize_t n;
	int fd;

	memset(line, 'x', sizeof(line));
	line[sizeof(line) - 1] = '\n';
	for (size_t i = 0; i < RUNNER_JOBS_MAX; i++)
		start(&s[i], NULL, in_folder("f"), (struct fw_str){line, sizeof(line)}, LONG_MS);
	for (size_t i = 0; i < RUNNER_JOBS_MAX; i++) {
		wait_for(&s[i]);
		ck_assert_msg(s[i].accepted, "%s", s[i].error);
	}
	fd = open(in_folder("f"), O_RDONLY | O_CLOEXEC);
	while ((n = read(fd, part, sizeof(part))) > 0)
		fw_buf_add(&all, part, (size_t)n);
	close(fd);
	ck_assert_uint_eq(all.len, RUNNER_JOBS_MAX * sizeof(line));
	for (const char *p = all.p; (p = memchr(p, '\n', all.len - (size_t)(p - all.p))) != NULL; p++)
		ck_assert_uint_eq((size_t)(p + 1 - all.p), ++lines * sizeof(line));
	ck_assert_uint_eq(lines, RUNNER_JOBS_MAX);
	fw_buf_finish(&all);
}
END_TEST

static void fails_with(const char *path, const char *words)
{
	struct seen s = run(NULL, path, FW_STR("x\n"), LONG_MS);

	ck_assert(!s.accepted && !s.status);
	ck_assert_msg(strstr(s.error, words) != NULL, "%s", s.error);
}

START_TEST(a_file_that_cannot_be_written_says_so)
{
	char target[200];

	fails_with("/nonexistent/f", "file not opened: /nonexistent/f: No such file or directory");
	fails_with(folder, "Is a directory");
	fails_with("/dev/null", "it is not a regular file");
	ck_assert(fw_str_copy(target, sizeof(target), fw_str(in_folder("target"))));
	ck_assert_int_eq(symlink(target, in_folder("link")), 0);
	fails_with(in_folder("link"), "it is a symbolic link");
	ck_assert_int_eq(mkfifo(in_folder("fifo"), 0600), 0);
	fails_with(in_folder("fifo"), "it is not a regular file");
}
END_TEST

START_TEST(only_what_the_rules_allow_is_written)
{
	char text[300], below[300], other[300];

	ck_assert(fw_snprintf(other, sizeof(other), "%s-other", folder));
	not_allowed(NULL, other);
	not_allowed(NULL, "/nonexistent");
	not_allowed(NULL, "relative");
	ck_assert(fw_snprintf(text, sizeof(text), "%s/../x", folder));
	not_allowed(NULL, text);
	ck_assert(fw_snprintf(text, sizeof(text), "%s//x", folder));
	not_allowed(NULL, text);
	ck_assert(fw_snprintf(text, sizeof(text), "%s/", folder));
	not_allowed(NULL, text);
	ck_assert(fw_snprintf(text, sizeof(text), "%sx", folder));
	not_allowed(NULL, text);
	/* a link below the folder leads nowhere, a folder does */
	ck_assert_int_eq(mkdir(other, 0700), 0);
	ck_assert_int_eq(symlink(other, in_folder("out")), 0);
	fails_with(in_folder("out/f"), "a folder of it is missing, or a link");
	ck_assert_int_eq(rmdir(other), 0); /* it is empty */
	ck_assert(fw_str_copy(below, sizeof(below), fw_str(in_folder("below"))));
	ck_assert_int_eq(mkdir(below, 0700), 0);
	ck_assert(run(NULL, in_folder("below/f"), FW_STR("x\n"), LONG_MS).accepted);
	ck_text("below/f", "x\n");
}
END_TEST

START_TEST(a_rule_is_a_plain_path)
{
	static const char *const WRONG[] = {
		"x", "/a/../b", "/a/./b", "/a//b", "/a, b", "/a/..", "/a\tb", ",", "/a,,/b"};
	static const char *const RIGHT[] = {"", "/", "/a", "/a/", "/a/b.c, /d/", "/..a/b"};

	for (size_t i = 0; i < FW_N(WRONG); i++) {
		ck_assert_msg(runner_list_check(WRONG[i], true, &err) == FW_EINVAL, "%s", WRONG[i]);
		ck_assert_msg(runner_list_check(WRONG[i], false, &err) == FW_EINVAL, "%s", WRONG[i]);
	}
	for (size_t i = 1; i < FW_N(RIGHT); i++) {
		ck_assert_msg(!runner_list_check(RIGHT[i], true, &err), "%s", err.text);
		ck_assert_msg(!runner_list_check(RIGHT[i], false, &err), "%s", err.text);
	}
	ck_assert_int_eq(runner_list_check(NULL, true, &err), 0);
	ck_assert_int_eq(runner_list_check("/a/ x", true, &err), FW_EINVAL);
	ck_assert_int_eq(runner_list_check("/a/ x", false, &err), 0);
	ck_assert_int_eq(runner_list_check("/a -x  y", true, &err), 0);
}
END_TEST

START_TEST(a_full_disk_says_so_and_the_line_is_completed_later)
{
	static char line[5001];
	struct rlimit is, small;
	struct seen s;

	memset(line, 'x', sizeof(line));
	line[sizeof(line) - 1] = '\n';
	getrlimit(RLIMIT_FSIZE, &is);
	small = (struct rlimit){4096, is.rlim_max};
	ck_assert_int_eq(prlimit(pid, RLIMIT_FSIZE, &small, NULL), 0);
	s = run(NULL, in_folder("f"), (struct fw_str){line, sizeof(line)}, LONG_MS);
	ck_assert(!s.accepted);
	ck_assert_msg(strstr(s.error, "not appended: ") && strstr(s.error, "File too large"), "%s", s.error);
	ck_assert_int_eq(prlimit(pid, RLIMIT_FSIZE, &is, NULL), 0);
	ck_assert(run(NULL, in_folder("f"), FW_STR("x\n"), LONG_MS).accepted);
	ck_assert_uint_eq(file_text("f").len, 4096 + 3);
	ck_assert(fw_str_ends(file_text("f"), FW_STR("x\nx\n")));
}
END_TEST

START_TEST(a_path_has_the_time)
{
	const int64_t at_ms = fw_time_ms(2026, 11, 6, 7, 5, 59, 999);
	static const struct {
		const char *path, *want;
	} CASES[] = {
		{"/var/spool/fw/%Y%m%d-%H%M.ndjson", "/var/spool/fw/20261106-0705.ndjson"},
		{"/x", "/x"},
		{"/100%%", "/100%"},
		{"/%Y/%Y", "/2026/2026"},
		{"/%S", NULL},
		{"/%", NULL},
		{"/%y", NULL},
	};
	char out[64];

	for (size_t i = 0; i < FW_N(CASES); i++) {
		ck_assert_int_eq(order_path(out, sizeof(out), fw_str(CASES[i].path), at_ms), CASES[i].want != NULL);
		if (CASES[i].want)
			ck_assert_str_eq(out, CASES[i].want);
	}
	ck_assert(order_path(out, 6, FW_STR("/%Y"), at_ms));
	ck_assert(!order_path(out, 5, FW_STR("/%Y"), at_ms));
	ck_assert(!order_path(out, 5, FW_STR("/1234"), at_ms));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("runner");
	TCase *t = tcase_create("programs"), *f = tcase_create("files"), *d = tcase_create("death");

	setenv("FW_TEST_SECRET", "x", 1);
	tcase_add_checked_fixture(t, begin, finish);
	tcase_add_checked_fixture(d, begin, finish);
	tcase_add_checked_fixture(f, begin, finish);
	tcase_set_timeout(t, 120);
	tcase_set_timeout(d, 120);
	tcase_set_timeout(f, 120);
	tcase_add_test(t, a_program_reads_the_message_and_accepts_it);
	tcase_add_test(t, its_exit_status_and_its_last_line_say_why);
	tcase_add_test(t, a_program_that_cannot_start_says_so);
	tcase_add_test(t, only_what_the_rules_allow_runs);
	tcase_add_test(t, it_gets_a_small_environment_and_no_descriptors);
	tcase_add_test(t, the_time_limit_ends_the_whole_group);
	tcase_add_test(t, a_process_left_behind_holds_up_nothing);
	tcase_add_test(t, a_large_message);
	tcase_add_test(t, jobs_run_beside_each_other_up_to_a_limit);
	tcase_add_test(d, a_killed_runner_is_followed_by_another);
	tcase_add_test(d, what_is_closed_is_killed);
	tcase_add_test(d, all_ends_are_closed);
	tcase_add_test(d, nobody_is_at_the_other_end);
	tcase_add_test(d, frames_that_are_not_ours_are_ignored);
	tcase_add_test(f, lines_are_appended);
	tcase_add_test(f, a_torn_line_is_completed);
	tcase_add_test(f, two_orders_with_one_file);
	tcase_add_test(f, a_file_that_cannot_be_written_says_so);
	tcase_add_test(f, only_what_the_rules_allow_is_written);
	tcase_add_test(f, a_rule_is_a_plain_path);
	tcase_add_test(f, a_full_disk_says_so_and_the_line_is_completed_later);
	tcase_add_test(f, a_path_has_the_time);
	suite_add_tcase(s, t);
	suite_add_tcase(s, d);
	suite_add_tcase(s, f);
	return run_suite(s);
}
