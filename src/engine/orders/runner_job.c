/* SPDX-License-Identifier: ISC */
/*
 * A job of the runner, in a process of its own: standard input is the message, and the last line on
 * standard error says why it was not accepted.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/folder.h"
#include "base/str.h"
#include "engine/orders/runner_process.h"

#define NOT_STARTED 127
#define FILE_MODE 0640
#define COPY_BYTES 65536
#define VALUE_MAX 4096

static const char *const PASSED[] = {"PATH", "HOME", "LANG", "TZ", "XDG_RUNTIME_DIR"};
#define PATH_DEFAULT "/usr/local/bin:/usr/bin:/bin"

static _Noreturn void job_fails(int status, const char *what, const char *path, const char *why)
{
	(void)dprintf(STDERR_FILENO, "%s: %s: %s\n", what, path, why);
	_exit(status);
}

/* ---- a program ------------------------------------------------------------------------------- */

/* Split in place; NULL-terminated. false: too many words. */
static bool words_split(char *text, char *word[RUNNER_WORDS_MAX + 1])
{
	size_t n = 0;

	for (char *save = NULL, *w = strtok_r(text, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		if (n == RUNNER_WORDS_MAX)
			return false;
		word[n++] = w;
	}
	word[n] = NULL;
	return n > 0;
}

static void environment_add(char **env, size_t *n, const char *name, const char *value)
{
	char text[VALUE_MAX];

	if (value && fw_snprintf(text, sizeof(text), "%s=%s", name, value) && (env[*n] = fw_str_dup(fw_str(text))))
		++*n;
}

void runner_job_command(const char *const text[RUNNER_TEXTS])
{
	char *word[RUNNER_WORDS_MAX + 1], *env[FW_N(PASSED) + 3] = {NULL}, *line = fw_str_dup(fw_str(text[RUNNER_TO]));
	size_t n = 0;

	if (!line || !words_split(line, word) || word[0][0] != '/')
		job_fails(NOT_STARTED, "program not started", text[RUNNER_TO], "too many words, or no absolute path");
	for (size_t i = 0; i < FW_N(PASSED); i++)
		environment_add(env, &n, PASSED[i], getenv(PASSED[i]) || i ? getenv(PASSED[i]) : PATH_DEFAULT);
	environment_add(env, &n, "FEEDWHEEL_ORDER", text[RUNNER_ORDER]);
	environment_add(env, &n, "FEEDWHEEL_MESSAGE_ID", text[RUNNER_MESSAGE]);
	execve(word[0], word, env);
	job_fails(NOT_STARTED, "program not started", word[0], strerror(errno));
}

/* ---- a file ---------------------------------------------------------------------------------- */

/* A new file is in its folder only when the folder is synced. */
static void file_sync_folder(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *folder = fw_str_dup(fw_str_sub(fw_str(path), 0, slash == path ? 1 : (size_t)(slash - path)));
	int e = folder ? fw_folder_sync(folder) : ENOMEM;

	if (e)
		job_fails(1, "folder not synced", folder ? folder : path, strerror(e));
}

/*
 * Open the folder of the file. The first trusted_n bytes of the path are the configuration's; below
 * them nothing is a link. *name: the file's name. -1 with errno.
 */
static int folder_open(const char *path, size_t trusted_n, const char **name)
{
	const int flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
	struct fw_str rest = fw_str(path + trusted_n), part = fw_str_split(rest, '/', &rest);
	char *trusted = fw_str_dup(fw_str_sub(fw_str(path), 0, trusted_n));
	int fd = trusted ? open(trusted, flags) : -1;

	for (; fd >= 0 && rest.p; part = fw_str_split(rest, '/', &rest)) {
		char *folder = fw_str_dup(part);
		int below = folder ? openat(fd, folder, flags | O_NOFOLLOW) : -1;

		close(fd);
		fd = below;
	}
	*name = part.p;
	return fd;
}

static int file_open(const char *path, size_t trusted_n, bool *is_new)
{
	const int flags = O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK;
	const char *name;
	int folder = folder_open(path, trusted_n, &name), fd = folder < 0 ? -1 : openat(folder, name, flags);

	*is_new = false;
	if (folder >= 0 && fd < 0 && errno == ENOENT) {
		fd = openat(folder, name, flags | O_CREAT | O_EXCL, FILE_MODE);
		*is_new = fd >= 0;
	}
	return folder >= 0 && fd < 0 && errno == EEXIST ? openat(folder, name, flags) : fd; /* another was faster */
}

/* Standard input to the file. Returns 0 or an errno. */
static int file_copy(int fd)
{
	static char part[COPY_BYTES];
	ssize_t n;
	int rc = 0;

	while (!rc && (n = read(STDIN_FILENO, part, sizeof(part))) != 0)
		rc = n < 0 ? errno : fw_write_all(fd, part, (size_t)n);
	return rc;
}

void runner_job_append(const char *path, size_t trusted_n)
{
	struct stat st;
	bool is_new;
	int fd = file_open(path, trusted_n, &is_new), rc = 0;
	char last = '\n';

	if (fd < 0)
		job_fails(1, "file not opened", path,
			errno == ELOOP           ? "it is a symbolic link" :
				errno == ENOTDIR ? "a folder of it is missing, or a link" :
						   strerror(errno));
	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		job_fails(1, "file not opened", path, "it is not a regular file");
	/* two orders may append to one file: each waits until the other has written its lines */
	while (flock(fd, LOCK_EX) && errno == EINTR)
		;
	if (fstat(fd, &st) == 0 && st.st_size > 0 && pread(fd, &last, 1, st.st_size - 1) == 1 && last != '\n')
		rc = fw_write_all(fd, "\n", 1); /* a line that was torn by a kill or a full disk */
	rc = rc ? rc : file_copy(fd);
	if (!rc && fsync(fd))
		rc = errno;
	if (rc)
		job_fails(1, "not appended", path, strerror(rc));
	if (is_new)
		file_sync_folder(path);
	_exit(0);
}
