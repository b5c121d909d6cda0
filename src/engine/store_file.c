/* SPDX-License-Identifier: ISC */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "engine/store_file.h"
#include "base/banned.h"

#define URL_MAX ((size_t)4096)

/*
 * The owner's alone. Root may share one with a group, as with a service's, for who can become root needs no file. (libpq has the same
 * rules for keys and passwords.)
 */
static int check(const char *path, const struct stat *st, struct fw_err *err)
{
	if (!S_ISREG(st->st_mode))
		return fw_err_set(err, FW_EINVAL, "store_file: %s is no plain file", path);
	if (st->st_mode & (st->st_uid == 0 ? 037 : 077))
		return fw_err_set(err, FW_EINVAL, "store_file: %s: others may open it (mode %04o), and it may hold a password: chmod 600 it", path,
			(unsigned)st->st_mode & 07777);
	return 0;
}

int store_file_read(const char *path, char **url, struct fw_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe that nobody writes to would be waited for */
	char text[URL_MAX + 1];
	struct fw_str line, rest;
	struct stat st = {0};
	ssize_t len = 0;
	int rc = 0;

	*url = NULL;
	if (fd < 0 || fstat(fd, &st))
		rc = fw_err_set(err, FW_EINVAL, "store_file: %s: %s", path, strerror(errno));
	rc = rc ? rc : check(path, &st, err);
	if (!rc && (len = read(fd, text, sizeof(text))) < 0) /* a plain file gives all at once */
		rc = fw_err_set(err, FW_EINVAL, "store_file: %s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	if (rc)
		return rc;
	line = fw_str_trim(fw_str_split((struct fw_str){text, (size_t)len}, '\n', &rest));
	if (!line.len)
		rc = fw_err_set(err, FW_EINVAL, "store_file: %s: its first line is empty: write the store's URL there", path);
	else if (line.len >= URL_MAX || memchr(line.p, 0, line.len))
		rc = fw_err_set(err, FW_EINVAL, "store_file: %s: its first line is no URL (%zu bytes at most, and no NUL)", path, URL_MAX - 1);
	else if (!(*url = fw_str_dup(line)))
		rc = fw_err_set(err, FW_ENOMEM, "out of memory");
	explicit_bzero(text, sizeof(text));
	return rc;
}
