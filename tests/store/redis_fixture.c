/* SPDX-License-Identifier: ISC */
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "redis_fixture.h"

char dir[220], sock[240], url[400];
pid_t server;

/* ---- a server of the test's own -------------------------------------------------------------- */

void server_wait(const char *path)
{
	for (int64_t start = fw_mono_ms(); !redis_answers(path); usleep(5000)) {
		if (fw_mono_ms() - start > 60000)
			ck_abort_msg("the server does not answer");
	}
}

void server_up(const char *const *more)
{
	const char *argv[40] = {"--port", "0", "--unixsocket", sock, NULL};

	for (size_t n = 4; more && *more && n < FW_N(argv) - 1; n++)
		argv[n] = *more++;
	server = redis_run(dir, true, argv);
	server_wait(sock);
}

void server_down(int sig)
{
	redis_end(server, sig);
	unlink(sock);
	server = 0;
}

void redis_setup(void)
{
	static int n;

	ck_assert(fw_snprintf(dir, sizeof(dir), "%s/own%d_%d", scratch(), (int)getpid(), n++));
	ck_assert_int_eq(mkdir(dir, 0755), 0);
	ck_assert(fw_snprintf(sock, sizeof(sock), "%s/s", dir));
	ck_assert(fw_snprintf(url, sizeof(url), "redis+unix://%s", sock));
}

void redis_teardown(void)
{
	if (server)
		server_down(SIGKILL);
}

/* Sends one command to a server and returns the start of its reply. */
const char *say_to(const char *path, const char *words)
{
	static char answer[4096];
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	ssize_t n;

	ck_assert(fw_str_copy(sa.sun_path, sizeof(sa.sun_path), fw_str(path)));
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	ck_assert_int_eq(dprintf(fd, "%s\r\n", words), (int)strlen(words) + 2);
	n = read(fd, answer, sizeof(answer) - 1);
	answer[n > 0 ? n : 0] = '\0';
	close(fd);
	return answer;
}

const char *say(const char *words)
{
	return say_to(sock, words);
}

void told(const char *words)
{
	const char *answer = say(words);

	ck_assert_msg(answer[0] == '+' || answer[0] == ':', "%s: %s", words, answer);
}

struct store *open_at(const char *at, unsigned flags)
{
	return store_of(store_open(at, flags));
}

/* The last call failed with this code, and its message names the store and contains these words. */
void says(int rc, int code, const char *words)
{
	ck_assert_msg(rc == code, "%d instead of %d: %s", rc, code, drv_err.text);
	ck_assert_msg(strstr(drv_err.text, words) && strstr(drv_err.text, "redis"), "\"%s\" is not in: %s", words,
		drv_err.text);
	ck_assert_ptr_null(strchr(drv_err.text, '\n'));
}
