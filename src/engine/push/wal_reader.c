/* SPDX-License-Identifier: ISC */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/push/wal.h"
#include "engine/push/wal_reader.h"

#define BLOCK 4096     /* what a disk that cannot read one byte cannot read at least */
#define GAPS_LOGGED 10 /* of a file; a line about the whole file follows */

struct fw_wal_reader {
	char *folder, *path;
	DIR *dir;
	int fd;
	char *mem; /* the whole file */
	struct fw_wal_walk walk;
	bool ended;       /* the walk */
	size_t record_at; /* place of the last record */
	uint64_t record_n;
	struct fw_wal_gap skipped; /* the sum of all gaps */
	unsigned gap_n;
};

int fw_wal_reader_open(const char *folder, struct fw_wal_reader **out, struct fw_err *err)
{
	struct fw_wal_reader *r = calloc(1, sizeof(*r));
	int rc = r ? 0 : fw_no_memory(err);

	if (r) {
		r->fd = -1;
		r->folder = fw_str_dup(fw_str(folder));
		r->dir = opendir(folder);
		rc = !r->folder ? fw_no_memory(err) :
			r->dir  ? 0 :
				  fw_err_set(err, FW_EINVAL, "wal_dir = %s: %s", folder, strerror(errno));
	}
	if (rc)
		fw_wal_reader_close(r);
	*out = rc ? NULL : r;
	return rc;
}

/* ---- a file -------------------------------------------------------------- */

static void wal_reader_close_file(struct fw_wal_reader *r)
{
	if (r->fd >= 0)
		close(r->fd);
	free(r->mem);
	free(r->path);
	r->path = r->mem = NULL;
	r->fd = -1;
	r->walk = (struct fw_wal_walk){0};
	r->ended = true;
	r->record_n = 0;
	r->skipped = (struct fw_wal_gap){0};
	r->gap_n = 0;
}

/*
 * Reads the file; blocks that the disk cannot read are zeros, which are no record. Returns 0 or an
 * errno.
 */
static int wal_reader_load(struct fw_wal_reader *r, size_t bytes)
{
	size_t at = 0;

	r->mem = calloc(1, bytes + 1);
	if (!r->mem)
		return ENOMEM;
	while (at < bytes) {
		ssize_t n = pread(r->fd, r->mem + at, bytes - at, (off_t)at);

		if (n == 0)
			break;
		if (n < 0 && errno == EIO) {
			n = (ssize_t)FW_MIN(BLOCK - at % BLOCK, bytes - at);
			memset(r->mem + at, 0, (size_t)n);
			fw_error("wal_dir: %s: the disk cannot read %zd bytes at byte %zu (check the disk)", r->path, n,
				at);
		}
		if (n < 0 && errno != EINTR)
			return errno;
		at += n > 0 ? (size_t)n : 0;
	}
	fw_wal_walk_begin(&r->walk, r->mem, at);
	return 0;
}

/*
 * Opens and locks a file. 0, or an errno: EWOULDBLOCK a live process holds it; ENOENT another
 * process has removed it.
 */
static int wal_reader_open_file(struct fw_wal_reader *r, const char *name)
{
	struct fw_buf path = FW_BUF_INIT(0);
	struct stat st;

	wal_reader_close_file(r);
	fw_buf_addf(&path, "%s/%s", r->folder, name);
	r->path = fw_buf_take(&path, NULL);
	if (!r->path)
		return ENOMEM;
	r->fd = open(r->path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	if (r->fd < 0 || flock(r->fd, LOCK_EX | LOCK_NB) || fstat(r->fd, &st))
		return errno;
	if (!S_ISREG(st.st_mode))
		return EINVAL;
	if (!fw_wal_file_is_at(r->fd, r->path))
		return ENOENT;
	r->ended = false;
	return wal_reader_load(r, (size_t)st.st_size);
}

/* Renames the file to a name that no file has: NAME.damaged, NAME.damaged-2 ... */
static int wal_reader_keep_file(const struct fw_wal_reader *r, struct fw_buf *name)
{
	int fd = -1;

	for (unsigned i = 1; fd < 0; i++) {
		fw_buf_reset(name);
		fw_buf_addf(name, "%s.damaged", r->path);
		if (i > 1)
			fw_buf_addf(name, "-%u", i);
		if (name->rc)
			return ENOMEM;
		fd = open(name->p, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd < 0 && errno != EEXIST)
			return errno;
	}
	close(fd);
	return rename(r->path, name->p) ? errno : 0;
}

static void wal_reader_end_damaged(const struct fw_wal_reader *r)
{
	const struct fw_wal_gap *all = &r->skipped;
	struct fw_buf name = FW_BUF_INIT(0);
	int e = wal_reader_keep_file(r, &name);

	if (e)
		fw_error("wal_dir: cannot rename the damaged file %s: %s (the next start reads it again)", r->path,
			strerror(e));
	else
		fw_error("wal_dir: %s: stored %llu records, skipped %s%llu (%zu bytes, in %u places); the file is "
			 "kept as %s",
			r->path, (unsigned long long)r->record_n, all->at_least ? "at least " : "",
			(unsigned long long)all->record_n, all->bytes, r->gap_n, name.p);
	fw_buf_finish(&name);
}

/* All rows of the open file are stored. */
static void wal_reader_end_file(const struct fw_wal_reader *r)
{
	if (!fw_wal_file_is_at(r->fd, r->path))
		return; /* somebody has removed it meanwhile */
	if (r->gap_n)
		wal_reader_end_damaged(r);
	else if (unlink(r->path))
		fw_warn("wal_dir: cannot remove %s, whose rows are all stored: %s (the next start reads it again)",
			r->path, strerror(errno));
}

bool fw_wal_reader_next(struct fw_wal_reader *r)
{
	struct dirent *e;
	int rc;

	if (r->path)
		wal_reader_end_file(r);
	while ((e = readdir(r->dir))) {
		if (!fw_str_ends(fw_str(e->d_name), FW_STR(FW_WAL_SUFFIX)))
			continue;
		rc = wal_reader_open_file(r, e->d_name);
		if (!rc)
			return true;
		if (rc != EWOULDBLOCK && rc != ENOENT)
			fw_error("wal_dir: cannot read %s/%s: %s (the next start tries again)", r->folder, e->d_name,
				strerror(rc));
	}
	wal_reader_close_file(r);
	return false;
}

/* ---- its records --------------------------------------------------------- */

static void wal_reader_count_gap(struct fw_wal_reader *r, const struct fw_wal_gap *gap, const char *problem)
{
	r->skipped.bytes += gap->bytes;
	r->skipped.record_n += gap->record_n;
	r->skipped.at_least |= gap->at_least;
	if (r->gap_n++ < GAPS_LOGGED)
		fw_error("wal_dir: %s: %s at byte %zu: skipped %zu bytes, %s%llu record%s", r->path, problem, gap->at,
			gap->bytes, gap->at_least ? "at least " : "", (unsigned long long)gap->record_n,
			gap->record_n == 1 ? "" : "s");
}

static void wal_reader_end_walk(struct fw_wal_reader *r)
{
	r->ended = true;
	if (r->walk.unfinished_bytes)
		fw_info("wal_dir: %s: the last %zu bytes are a write that did not end: its push was not answered, or "
			"a power failure came before the sync",
			r->path, r->walk.unfinished_bytes);
}

bool fw_wal_reader_read(struct fw_wal_reader *r, struct fw_str *record)
{
	struct fw_wal_gap gap;
	bool found;

	if (r->ended)
		return false;
	found = fw_wal_walk_next(&r->walk, record, &gap);
	if (gap.bytes)
		wal_reader_count_gap(r, &gap, "damaged");
	r->record_n += found;
	r->record_at = gap.at + gap.bytes;
	if (!found)
		wal_reader_end_walk(r);
	return found;
}

void fw_wal_reader_refuse(struct fw_wal_reader *r)
{
	struct fw_wal_gap gap = {r->record_at, r->walk.at - r->record_at, 1, false};

	r->record_n--;
	wal_reader_count_gap(r, &gap, "not a row of this version");
}

void fw_wal_reader_close(struct fw_wal_reader *r)
{
	if (!r)
		return;
	wal_reader_close_file(r);
	if (r->dir)
		closedir(r->dir);
	free(r->folder);
	free(r);
}
