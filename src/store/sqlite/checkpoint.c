/* SPDX-License-Identifier: ISC */
/*
 * Checkpoints: the frames of the WAL go into the database file once there are CHECKPOINT_FRAMES.
 *
 * SQLite 3.7.0 to 3.51.2 can lose commits: a checkpoint that starts when all frames are in the
 * database file already, while a commit begins the WAL anew, marks that commit's first frames as
 * copied, and they are never copied. So SQLite's own checkpoints after commits are off, and a
 * checkpoint starts only while some frame is not copied, because then no commit begins the WAL
 * anew: a connection locks FILE-checkpoint before a COMMIT, checkpoints after it, and unlocks. Its
 * own frames are not copied when it starts, because nobody else checkpoints while it has the lock.
 *
 * The lock is flock(), which belongs to the open file, so it holds between threads too, and ends
 * with its process. Nobody waits for it: if another connection has it, this one does not
 * checkpoint. The last connection that closes the file checkpoints under SQLite's exclusive lock.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/sqlite/sqlite.h"

#define CHECKPOINT_FRAMES (SQLITE_WAL_BYTES / SQLITE_PAGE_BYTES)

/* A descriptor of FILE-checkpoint, which is made with owner and mode of FILE; -1 and errno. */
static int checkpoint_file_open(const struct sqlite_db *s)
{
	struct stat store, lock;
	int fd;

	if (stat(s->path, &store))
		return -1;
	fd = open(s->lock_path, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || fstat(fd, &lock) || lock.st_size || lock.st_nlink != 1) /* no file but ours is changed */
		return fd;
	/* if possible, as SQLite does with its journal: the users of FILE share the lock */
	if (geteuid() == 0 && (lock.st_uid != store.st_uid || lock.st_gid != store.st_gid))
		(void)!fchown(fd, store.st_uid, store.st_gid);
	if ((lock.st_mode & 0777) != (store.st_mode & 0666))
		(void)!fchmod(fd, store.st_mode & 0666);
	return fd;
}

/* The locked FILE-checkpoint; -1: another connection has the lock, or the file is gone. */
static int checkpoint_lock(const struct sqlite_db *s)
{
	int fd = checkpoint_file_open(s);

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	close(fd);
	return -1;
}

/* SQLite calls it after each commit that wrote. */
static int checkpoint_committed(void *ctx, sqlite3 *db, const char *name, int frames)
{
	struct sqlite_db *s = ctx;

	(void)db;
	(void)name;
	s->wal_frames = frames;
	s->committed = true;
	return SQLITE_OK;
}

void sqlite_checkpoint_setup(struct sqlite_db *s)
{
	s->checkpoint_frames = CHECKPOINT_FRAMES;
	(void)sqlite3_wal_hook(s->db, checkpoint_committed, s); /* in place of SQLite's own */
}

/* FILE-checkpoint; symbolic links are resolved, as for FILE-wal: a store's names share a lock. */
static int checkpoint_name(struct sqlite_db *s, struct fw_err *err)
{
	const char *file = sqlite3_db_filename(s->db, "main");
	size_t cap = strlen(file) + sizeof("-checkpoint");

	s->lock_path = malloc(cap);
	return s->lock_path && fw_snprintf(s->lock_path, cap, "%s-checkpoint", file) ? 0 : fw_no_memory(err);
}

int sqlite_checkpoint_open(struct sqlite_db *s, struct fw_err *err)
{
	const char *wal = sqlite3_filename_wal(sqlite3_db_filename(s->db, "main"));
	int rc = checkpoint_name(s, err), fd;
	struct stat sb;

	if (rc)
		return rc;
	fd = checkpoint_file_open(s);
	if (fd < 0)
		return fw_err_set(err, sqlite_path_code(errno),
			"%s: cannot be opened: %s: check its permissions and those of its folder", s->lock_path,
			strerror(errno));
	close(fd);
	/* else a command that commits once, while a reader keeps the WAL, would never checkpoint */
	if (stat(wal, &sb) == 0 && sb.st_size > SQLITE_WAL_BYTES)
		s->wal_frames = CHECKPOINT_FRAMES;
	return 0;
}

int sqlite_checkpoint_begin(struct sqlite_db *s)
{
	s->committed = false;
	return s->lock_path && s->wal_frames >= s->checkpoint_frames ? checkpoint_lock(s) : -1;
}

void sqlite_checkpoint_end(struct sqlite_db *s, int fd)
{
	if (fd < 0)
		return;
	/*
	 * The commit holds, whatever becomes of the checkpoint: the frames stay, and the next one
	 * copies them.
	 */
	if (s->committed && s->wal_frames >= s->checkpoint_frames)
		(void)sqlite3_wal_checkpoint_v2(s->db, "main", SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
	(void)flock(fd, LOCK_UN); /* a process that was forked meanwhile has the open file too */
	close(fd);
}

bool sqlite_loses_commits(int version)
{
	bool mended = version >= 3051003 || (version >= 3050007 && version < 3051000) ||
		(version >= 3044006 && version < 3045000);

	return version >= 3007000 && !mended;
}
