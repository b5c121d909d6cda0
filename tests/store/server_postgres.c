/* SPDX-License-Identifier: ISC */
/*
 * A private PostgreSQL server: its own cluster in the scratch folder, on a socket there, run by the
 * package's user if the test runs as root.
 */
#include <dirent.h>
#include <glob.h>
#include <grp.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "servers.h"

static char bin[200], home[240], data[260];
static pid_t server;

static void fail(const char *what)
{
	fprintf(stderr, "# postgres: %s\n", what);
	server_log_show(home);
	exit(EXIT_FAILURE);
}

/* Finds the newest version: Debian keeps the programs of each in a folder of its own. */
static bool installed(void)
{
	glob_t g;
	bool found = false;

	if (glob("/usr/lib/postgresql/*/bin/initdb", 0, NULL, &g) == 0 && g.gl_pathc) {
		struct fw_str path = fw_str(g.gl_pathv[g.gl_pathc - 1]);

		found = fw_str_copy(bin, sizeof(bin), fw_str_sub(path, 0, path.len - sizeof("/initdb") + 1));
	}
	globfree(&g);
	return found;
}

/* The server refuses to run as root. */
static void drop_root(void)
{
	const struct passwd *who = geteuid() == 0 ? getpwnam("postgres") : NULL;

	if (geteuid() == 0 && (!who || setgroups(0, NULL) || setgid(who->pw_gid) || setuid(who->pw_uid)))
		_exit(126);
	prctl(PR_SET_PDEATHSIG, SIGQUIT); /* it ends with the test program */
}

/* argv[0] is the program's name. It runs by its full path, from which it finds its own files. */
static pid_t run(const char *argv[])
{
	pid_t pid = fork();

	if (pid < 0)
		fail("fork failed");
	if (pid == 0) {
		char path[260], log[280];

		if (!fw_snprintf(path, sizeof(path), "%s/%s", bin, argv[0]) ||
			!fw_snprintf(log, sizeof(log), "%s/log", home))
			_exit(126);
		drop_root();
		if (!freopen(log, "a", stdout) || dup2(STDOUT_FILENO, STDERR_FILENO) < 0 || chdir(home))
			_exit(126);
		argv[0] = path;
		execv(path, (char *const *)(uintptr_t)argv); /* execv() does not change the strings */
		_exit(127);
	}
	return pid;
}

static void server_run(void)
{
	char sockets[300], conninfo[400];
	const char *argv[] = {"postgres", "-D", data, "-c", sockets, "-c", "listen_addresses=", "-c",
		"max_connections=60", "-c", server_durable ? "shared_buffers=1GB" : "shared_buffers=64MB", "-c",
		server_durable ? "max_wal_size=8GB" : "fsync=off", NULL};

	if (!fw_snprintf(sockets, sizeof(sockets), "unix_socket_directories=%s", home) ||
		!fw_snprintf(conninfo, sizeof(conninfo), "host=%s user=feedwheel dbname=postgres", home))
		fail("the scratch folder's name is too long");
	server = run(argv);
	for (int i = 0; i < 6000; i++) {
		if (PQping(conninfo) == PQPING_OK)
			return;
		if (waitpid(server, NULL, WNOHANG) == server) { /* a killed server may take a moment to be gone */
			usleep(100000);
			server = run(argv);
		}
		usleep(10000);
	}
	fail("it does not start; see the log in its folder");
}

static void make(void)
{
	const char *argv[] = {
		"initdb", "-D", data, "-E", "UTF8", "--locale=C", "-A", "trust", "-U", "feedwheel", "-N", NULL};
	int status;

	if (waitpid(run(argv), &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status))
		fail("initdb failed");
}

static void start(const char *folder)
{
	const struct passwd *who = geteuid() == 0 ? getpwnam("postgres") : NULL;

	if (!fw_snprintf(home, sizeof(home), "%s/pg", folder) || !fw_snprintf(data, sizeof(data), "%s/data", home))
		fail("the scratch folder's name is too long");
	if (mkdir(home, 0711) || chmod(folder, 0711) || (who && chown(home, who->pw_uid, who->pw_gid)))
		fail("its folder cannot be made");
	server_data("postgres", data, make);
	server_run();
}

static void url(char *out, size_t cap, const char *name)
{
	if (!fw_snprintf(out, cap, "postgres://feedwheel@/postgres?host=%s&schema=%s", home, name))
		fail("URL too long");
}

/* Backends lead sessions of their own: find them by their parent. */
static void kill_children(pid_t parent)
{
	DIR *d = opendir("/proc");
	struct dirent *e;

	while (d && (e = readdir(d))) {
		char path[300], line[400];
		const char *p;
		int64_t pid;
		FILE *f;

		if (!fw_str_int(fw_str(e->d_name), &pid) ||
			!fw_snprintf(path, sizeof(path), "/proc/%s/stat", e->d_name))
			continue;
		f = fopen(path, "r");
		if (f && fgets(line, sizeof(line), f) && (p = strrchr(line, ')')) && strtol(p + 4, NULL, 10) == parent)
			kill((pid_t)pid, SIGKILL);
		if (f)
			fclose(f);
	}
	if (d)
		closedir(d);
}

static void kill9(void)
{
	kill(server, SIGSTOP); /* stops it from starting new ones meanwhile */
	kill_children(server);
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	server = 0;
}

static void again(void)
{
	server_run();
}

static void stop(void)
{
	if (!server)
		return;
	kill(server, SIGINT);
	waitpid(server, NULL, 0);
	server = 0;
}

const struct server server_postgres = {"postgres", "postgresql", installed, start, url, kill9, again, stop};
