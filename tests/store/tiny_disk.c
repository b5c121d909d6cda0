/* SPDX-License-Identifier: ISC */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common.h"
#include "tiny_disk.h"

bool tiny_disk(const char *folder, const char *size)
{
	char how[40];

	ck_assert(mkdir(folder, 0755) == 0 || errno == EEXIST);
	ck_assert(fw_snprintf(how, sizeof(how), "size=%s,mode=755", size));
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		mount("tiny", folder, "tmpfs", 0, how)) {
		printf("# disk_full: no mount here (%s): skipped\n", strerror(errno));
		return false;
	}
	return true;
}

void tiny_disk_fill(const char *file, off_t but_bytes)
{
	static const char JUNK[65536];
	int fd = open(file, O_WRONLY | O_CREAT, 0600);

	ck_assert_int_ge(fd, 0);
	while (write(fd, JUNK, sizeof(JUNK)) == (ssize_t)sizeof(JUNK))
		;
	ck_assert_int_eq(ftruncate(fd, lseek(fd, 0, SEEK_END) - but_bytes), 0);
	close(fd);
}
