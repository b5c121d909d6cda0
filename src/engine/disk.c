/* SPDX-License-Identifier: ISC */
/* The free space of the disk that holds an SQLite store. */
#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/str.h"
#include "engine/settings.h"
#include "store/driver.h"

#define MIB (INT64_C(1) << 20)

/* The file system of the file, or of its folder if the file does not exist yet. */
static int disk_statvfs(struct fw_str file, struct statvfs *out)
{
	char path[4096];
	char *slash;

	if (!fw_str_copy(path, sizeof(path), file))
		return -1;
	if (!statvfs(path, out))
		return 0;
	if (errno != ENOENT)
		return -1;
	slash = strrchr(path, '/');
	if (slash)
		slash[1] = 0;
	return statvfs(slash ? path : ".", out);
}

int fw_config_check_disk(const struct fw_config *c, struct fw_err *err)
{
	struct fw_str file, scheme = c->store ? fw_str_split(fw_str(c->store), ':', &file) : FW_STR_NONE;
	struct statvfs v;
	int64_t free_bytes;

	if (!c->disk_free_min_bytes || !fw_str_eq(scheme, FW_STR("sqlite")))
		return 0;
	file = fw_store_url_rest(c->store);
	if (disk_statvfs(file, &v)) /* opening the store reports what is wrong with its path */
		return 0;
	if (__builtin_mul_overflow((int64_t)v.f_bavail, (int64_t)v.f_frsize, &free_bytes) ||
		free_bytes >= c->disk_free_min_bytes)
		return 0;
	return fw_err_set(err, FW_EAGAIN,
		"%.*s: %lld MiB free on its disk, below disk_free_min_bytes = %lld MiB: free some space, or lower it",
		FW_STR_ARG(file), (long long)(free_bytes / MIB), (long long)(c->disk_free_min_bytes / MIB));
}
