/* SPDX-License-Identifier: ISC */
/*
 * A private MariaDB server: on a socket in its folder, without network, run by an unprivileged
 * user. FW_MYSQLD names the program of a MySQL 8 or later to use instead; Debian has none.
 */
#include <fcntl.h>
#include <grp.h>
#include <mysql.h>
#include <pwd.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "servers.h"

#define SERVER "/usr/sbin/mariadbd"
#define INSTALL "/usr/bin/mariadb-install-db"
#define PATIENCE_S 60

static char home[160], sock[200];
static pid_t server, owner;
const char *server_maria_argument;

static const char *mysql(void)
{
	const char *program = getenv("FW_MYSQLD");

	return program && *program ? program : NULL;
}

static bool installed(void)
{
	return mysql() ? access(mysql(), X_OK) == 0 : access(SERVER, X_OK) == 0 && access(INSTALL, X_OK) == 0;
}

static void fail(const char *what)
{
	fprintf(stderr, "# mariadb: %s\n", what);
	server_log_show(home);
	exit(EXIT_FAILURE);
}

static const struct passwd *user(void)
{
	return geteuid() == 0 ? getpwnam("mysql") : NULL;
}

/* Called in a child: changes the user, writes all output to a log, and ends with its parent. */
static void run(const char *const argv[], pid_t parent)
{
	const struct passwd *u = user();
	char log[200];
	int fd;

	if (!fw_snprintf(log, sizeof(log), "%s/log", home))
		_exit(9);
	fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0644);
	if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
		_exit(9);
	if (u && (fchown(fd, u->pw_uid, u->pw_gid) || setgroups(0, NULL) || setgid(u->pw_gid) || setuid(u->pw_uid)))
		_exit(9);
	/* in /tmp a starting server would delete the temporary tables of others */
	if (setenv("TMPDIR", home, 1) || prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
		_exit(9);
	execv(argv[0], (char *const *)(uintptr_t)argv); /* execv() does not change the strings */
	_exit(9);
}

static bool answers(void)
{
	MYSQL *db = mysql_init(NULL);
	bool ok = db && mysql_real_connect(db, NULL, "root", NULL, NULL, 0, sock, 0);

	mysql_close(db);
	return ok;
}

static void again(void)
{
	static char data[200], socket_arg[220], pid_arg[220];
	const char *const argv[] = {mysql() ? mysql() : SERVER, "--no-defaults", data, socket_arg, pid_arg,
		"--skip-networking", "--max-connections=60", "--loose-mysqlx=OFF", "--skip-name-resolve",
		server_durable ? "--innodb-buffer-pool-size=1G" : "--innodb-buffer-pool-size=128M",
		server_durable ? "--loose-innodb-log-file-size=1G" : "--loose-innodb-log-file-size=64M",
		server_durable ? "--innodb-flush-log-at-trx-commit=1" : "--innodb-flush-log-at-trx-commit=2",
		server_durable ? "--loose-debug-no-sync=0" : "--loose-debug-no-sync", server_maria_argument, NULL};
	pid_t parent = getpid();

	if (!fw_snprintf(data, sizeof(data), "--datadir=%s/data", home) ||
		!fw_snprintf(socket_arg, sizeof(socket_arg), "--socket=%s", sock) ||
		!fw_snprintf(pid_arg, sizeof(pid_arg), "--pid-file=%s/pid", home))
		fail("path too long");
	server = fork();
	if (server == 0)
		run(argv, parent);
	owner = getpid();
	for (int i = 0; i < PATIENCE_S * 20; i++) {
		if (server < 0 || waitpid(server, NULL, WNOHANG) != 0)
			break;
		if (answers())
			return;
		usleep(50000);
	}
	fail("does not start");
}

static void make(void)
{
	char data[200];
	const char *const of_mariadb[] = {
		INSTALL, "--no-defaults", data, "--auth-root-authentication-method=normal", "--skip-test-db", NULL};
	const char *const of_mysql[] = {mysql(), "--no-defaults", data, "--initialize-insecure", NULL};
	pid_t parent = getpid(), pid;
	int status = 1;

	if (!fw_snprintf(data, sizeof(data), "--datadir=%s/data", home))
		fail("path too long");
	pid = fork();
	if (pid == 0)
		run(mysql() ? of_mysql : of_mariadb, parent);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		fail("its tables cannot be made");
}

static void start(const char *folder)
{
	const struct passwd *u = user();
	char data[200];

	if (!fw_snprintf(home, sizeof(home), "%s/mysql", folder) || !fw_snprintf(sock, sizeof(sock), "%s/sock", home) ||
		strlen(sock) > 100 || !fw_snprintf(data, sizeof(data), "%s/data", home))
		fail("path too long");
	if (mkdir(home, 0755) || (u && (chown(home, u->pw_uid, u->pw_gid) || chmod(folder, 0755))))
		fail("no folder");
	server_data(mysql() ? "mysql" : "mariadb", data, make);
	again();
}

static void url(char *out, size_t cap, const char *name)
{
	if (!fw_snprintf(out, cap, "mysql://root@localhost/%s?socket=%s", name, sock))
		fail("URL too long");
}

static void kill9(void)
{
	if (server > 0 && owner == getpid()) {
		kill(server, SIGKILL);
		waitpid(server, NULL, 0);
	}
	server = 0;
}

const struct server server_mysql = {
	.engine = "mysql",
	.package = "mariadb-server",
	.installed = installed,
	.start = start,
	.url = url,
	.kill9 = kill9,
	.again = again,
	.stop = kill9, /* its data is not used again */
};
