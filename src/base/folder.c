/* SPDX-License-Identifier: ISC */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/folder.h"

int fw_folder_sync(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), e = 0;

	if (fd < 0 || (fsync(fd) && errno != EINVAL))
		e = errno;
	if (fd >= 0)
		close(fd);
	return e;
}

int fw_folder_create(const char *path)
{
	struct fw_buf parent = FW_BUF_INIT(0);
	int e;

	if (mkdir(path, 0700))
		return errno == EEXIST ? 0 : errno;
	fw_buf_addf(&parent, "%s/..", path);
	e = parent.rc ? ENOMEM : fw_folder_sync(parent.p);
	fw_buf_finish(&parent);
	return e;
}
