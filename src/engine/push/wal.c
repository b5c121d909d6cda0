/* SPDX-License-Identifier: ISC */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/folder.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/push/wal.h"

#define SEGMENT_BYTES ((size_t)16 << 20) /* a full segment is followed by a new file */

struct wal_segment {
	struct wal_segment *next;
	char *path;
	int fd;
	size_t bytes;
	uint32_t record_n;
	uint64_t last_row; /* number of the segment's last row among all rows of its producer */
	bool dirty;        /* written since the last sync */
	bool closed;       /* no more appends */
};

/*
 * The log of one producer. The producer appends to the newest segment, the flusher deletes old
 * ones. The mutex guards the list; there is little contention.
 */
struct wal_producer {
	pthread_mutex_t lock;
	struct wal_segment *oldest, *newest;
	struct fw_buf draft;
	uint64_t stored;
};

struct fw_wal {
	char *folder;
	int64_t sync_ms;
	_Atomic unsigned next_file;
	_Atomic bool folder_dirty; /* has a new file since the last sync */
	pthread_t thread;
	bool threaded;
	pthread_mutex_t lock; /* guards closing, with cond */
	pthread_cond_t cond;
	bool closing;
	size_t producer_n;
	struct wal_producer producer[];
};

bool fw_wal_file_is_at(int fd, const char *path)
{
	struct stat open_file, named;

	return !fstat(fd, &open_file) && !stat(path, &named) && open_file.st_dev == named.st_dev &&
		open_file.st_ino == named.st_ino;
}

static void segment_free(struct wal_segment *g, bool drop)
{
	if (drop && fw_wal_file_is_at(g->fd, g->path) && unlink(g->path))
		fw_warn("wal_dir: cannot remove %s, whose rows are all stored: %s (the next start reads it again)",
			g->path, strerror(errno));
	if (g->fd >= 0)
		close(g->fd);
	free(g->path);
	free(g);
}

/* Somebody has removed the file. */
static bool segment_is_gone(const struct wal_segment *g)
{
	struct stat st;

	if (fstat(g->fd, &st) || st.st_nlink)
		return false;
	fw_warn("wal_dir: somebody has removed %s: rows of it that are not stored are in memory only", g->path);
	return true;
}

static int segment_refuse(const struct wal_segment *g, int e, struct fw_err *err)
{
	bool full = e == ENOSPC || e == EDQUOT || e == EFBIG;

	return fw_err_set(err, FW_EIO, "wal_dir: %s: %s (%s)", g->path, strerror(e),
		full ? "free some space there" : "check the folder and its disk");
}

/*
 * Creates and locks a file of this name. 0, or an errno; EEXIST: try another name. The name is ours
 * because no other file had it. A reader that sees the file before it is locked may lock it first,
 * and then removes it, as an empty file.
 */
static int segment_create_file(struct wal_segment *g)
{
	g->fd = open(g->path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
	if (g->fd < 0)
		return errno;
	if (flock(g->fd, LOCK_EX | LOCK_NB) == 0)
		return fw_wal_file_is_at(g->fd, g->path) ? 0 : EEXIST;
	return errno == EWOULDBLOCK ? EEXIST : errno;
}

/* The pid is for people: it makes no name unique. */
static int segment_open_file(struct fw_wal *s, struct wal_segment *g)
{
	struct fw_buf path = FW_BUF_INIT(0);
	int e = EEXIST;

	while (e == EEXIST) {
		if (g->fd >= 0)
			close(g->fd);
		free(g->path);
		fw_buf_addf(
			&path, "%s/%d-%u" FW_WAL_SUFFIX, s->folder, (int)getpid(), atomic_fetch_add(&s->next_file, 1));
		g->path = fw_buf_take(&path, NULL);
		g->fd = -1;
		if (!g->path)
			return ENOMEM;
		e = segment_create_file(g);
	}
	return e;
}

/* A row survives a power failure only if the name of its file does. */
static int wal_note_file(struct fw_wal *s)
{
	if (!s->sync_ms)
		return fw_folder_sync(s->folder);
	atomic_store(&s->folder_dirty, true);
	return 0;
}

static struct wal_segment *segment_new(struct fw_wal *s, struct fw_err *err)
{
	struct wal_segment *g = calloc(1, sizeof(*g));
	int e;

	if (!g) {
		(void)fw_no_memory(err);
		return NULL;
	}
	g->fd = -1;
	e = segment_open_file(s, g);
	if (!e)
		e = wal_note_file(s);
	if (!e)
		return g;
	(void)(g->path ? segment_refuse(g, e, err) : fw_no_memory(err));
	segment_free(g, g->fd >= 0);
	return NULL;
}

/* ---- the producer -------------------------------------------------------- */

void fw_wal_add(struct fw_wal *s, size_t producer, const void *p, size_t len)
{
	assert(producer < s->producer_n);
	fw_wal_record_add(&s->producer[producer].draft, p, len);
}

void fw_wal_discard(struct fw_wal *s, size_t producer)
{
	fw_buf_reset(&s->producer[producer].draft);
}

static int segment_write(struct wal_segment *g, struct fw_buf *draft, bool sync, struct fw_err *err)
{
	uint32_t record_n = fw_wal_record_complete(draft->p, draft->len, g->bytes, g->record_n);
	int e = fw_write_all(g->fd, draft->p, draft->len);

	if (!e && sync && fdatasync(g->fd))
		e = errno;
	if (!e) {
		g->bytes += draft->len;
		g->record_n = record_n;
		return 0;
	}
	/*
	 * Truncate: these rows are refused. Close it: once its rows are stored, the file is deleted
	 * and frees space on a full disk.
	 */
	g->closed = ftruncate(g->fd, (off_t)g->bytes) || g->bytes;
	return segment_refuse(g, e, err);
}

/* Deletes the segments before the newest whose rows are all stored. */
static void segments_remove_stored(struct wal_producer *l)
{
	while (l->oldest && l->oldest != l->newest && l->oldest->last_row <= l->stored) {
		struct wal_segment *g = l->oldest;

		l->oldest = g->next;
		segment_free(g, true);
	}
}

int fw_wal_write(struct fw_wal *s, size_t producer, uint64_t rows, struct fw_err *err)
{
	struct wal_producer *l = &s->producer[producer];
	struct wal_segment *g;
	int rc;

	if (l->draft.rc) {
		fw_wal_discard(s, producer);
		return fw_err_set(err, FW_ENOMEM, "out of memory");
	}
	pthread_mutex_lock(&l->lock);
	assert(rows >= l->stored);
	g = l->newest;
	if (g && !s->sync_ms && !g->closed)
		g->closed = segment_is_gone(g);
	if (!g || g->closed || g->bytes + l->draft.len > SEGMENT_BYTES) {
		g = segment_new(s, err);
		if (g && l->newest)
			l->newest->next = g;
		else if (g)
			l->oldest = g;
		l->newest = g ? g : l->newest;
		segments_remove_stored(l);
	}
	rc = g ? segment_write(g, &l->draft, !s->sync_ms, err) : err->rc;
	if (!rc) {
		g->last_row = rows;
		g->dirty = s->sync_ms > 0;
	}
	pthread_mutex_unlock(&l->lock);
	fw_wal_discard(s, producer);
	return rc;
}

/* ---- the flusher --------------------------------------------------------- */

void fw_wal_stored(struct fw_wal *s, size_t producer, uint64_t rows)
{
	struct wal_producer *l = &s->producer[producer];

	pthread_mutex_lock(&l->lock);
	assert(rows >= l->stored);
	l->stored = rows;
	segments_remove_stored(l);
	pthread_mutex_unlock(&l->lock);
}

/* ---- the disk ------------------------------------------------------------ */

/*
 * The descriptor of a segment that needs a sync, duplicated: the segment may be closed meanwhile,
 * and the lock must not be held during disk I/O. -1: none.
 */
static int segment_take_dirty(struct wal_producer *l)
{
	int fd = -1;

	pthread_mutex_lock(&l->lock);
	for (struct wal_segment *g = l->oldest; g && fd < 0; g = g->next) {
		if (g->dirty) {
			g->dirty = false;
			g->closed = g->closed || segment_is_gone(g);
			fd = fcntl(g->fd, F_DUPFD_CLOEXEC, 0);
		}
	}
	pthread_mutex_unlock(&l->lock);
	return fd;
}

static void sync_report(int e)
{
	if (e)
		fw_warn("wal_dir: accepted rows may be lost in a power failure, sync failed: %s (check the disk)",
			strerror(e));
}

static void wal_producer_sync(struct wal_producer *l)
{
	int fd;

	while ((fd = segment_take_dirty(l)) >= 0) {
		sync_report(fdatasync(fd) ? errno : 0);
		close(fd);
	}
}

static void wal_sync(struct fw_wal *s)
{
	for (size_t i = 0; i < s->producer_n; i++)
		wal_producer_sync(&s->producer[i]);
	if (atomic_exchange(&s->folder_dirty, false))
		sync_report(fw_folder_sync(s->folder));
}

static void *wal_sync_main(void *arg)
{
	struct fw_wal *s = arg;

	pthread_mutex_lock(&s->lock);
	while (!s->closing) {
		struct timespec at = fw_timespec(fw_mono_ms() + s->sync_ms);

		pthread_cond_timedwait(&s->cond, &s->lock, &at);
		pthread_mutex_unlock(&s->lock);
		wal_sync(s);
		pthread_mutex_lock(&s->lock);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* ---- open and close ------------------------------------------------------ */

int fw_wal_open(const char *folder, int64_t sync_ms, size_t producers, struct fw_wal **out, struct fw_err *err)
{
	struct fw_wal *s;
	int rc = 0, e = fw_folder_create(folder);

	*out = NULL;
	if (!e && access(folder, R_OK | W_OK | X_OK))
		e = errno;
	if (e)
		return fw_err_set(err, FW_EINVAL, "wal_dir = %s: %s", folder, strerror(e));
	s = calloc(1, sizeof(*s) + producers * sizeof(s->producer[0]));
	if (!s)
		return fw_err_set(err, FW_ENOMEM, "out of memory");
	s->folder = fw_str_dup(fw_str(folder));
	s->sync_ms = sync_ms;
	s->producer_n = producers;
	pthread_mutex_init(&s->lock, NULL);
	fw_mono_cond_init(&s->cond);
	for (size_t i = 0; i < producers; i++)
		pthread_mutex_init(&s->producer[i].lock, NULL);
	if (!s->folder)
		rc = fw_err_set(err, FW_ENOMEM, "out of memory");
	if (!rc && sync_ms) {
		s->threaded = pthread_create(&s->thread, NULL, wal_sync_main, s) == 0;
		rc = s->threaded ?
			0 :
			fw_err_set(err, FW_EIO, "cannot start the write-ahead log's sync thread (see ulimit -u)");
	}
	if (rc)
		fw_wal_close(s);
	else
		*out = s;
	return rc;
}

static void wal_producer_finish(struct wal_producer *l)
{
	while (l->oldest) {
		struct wal_segment *g = l->oldest;

		l->oldest = g->next;
		segment_free(g, g->last_row <= l->stored);
	}
	fw_buf_finish(&l->draft);
	pthread_mutex_destroy(&l->lock);
}

void fw_wal_close(struct fw_wal *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->closing = true;
	pthread_cond_signal(&s->cond);
	pthread_mutex_unlock(&s->lock);
	if (s->threaded)
		pthread_join(s->thread, NULL);
	wal_sync(s);
	for (size_t i = 0; i < s->producer_n; i++)
		wal_producer_finish(&s->producer[i]);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->cond);
	free(s->folder);
	free(s);
}
