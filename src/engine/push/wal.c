/* SPDX-License-Identifier: ISC */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/push/wal.h"
#include "base/banned.h"

#define SUFFIX ".wal"
#define UNNAMED_SUFFIX ".new"
#define SEGMENT_BYTES ((size_t)16 << 20) /* a full segment is followed by a new file */
#define HEADER 16
#define MAGIC 0x31737766u /* "fws1" */
#define PADDED(len) (((size_t)(len) + 7) & ~(size_t)7)
#define RECORD_MAX ((uint32_t)1 << 20)

struct wal_segment {
	struct wal_segment *next;
	char *path;
	int fd;
	size_t bytes;
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
	char *folder, name[64];
	int64_t sync_ms;
	_Atomic uint64_t next_file;
	pthread_t thread;
	bool threaded;
	pthread_mutex_t lock; /* guards closing, with cond */
	pthread_cond_t cond;
	bool closing;
	size_t producer_n;
	struct wal_producer producer[];
};

static void segment_free(struct wal_segment *g, bool drop)
{
	if (drop)
		unlink(g->path);
	if (g->fd >= 0)
		close(g->fd);
	free(g->path);
	free(g);
}

/*
 * The file gets its final name after it is locked: a reader opens any file that no process holds.
 */
static struct wal_segment *segment_new(struct fw_wal *s, struct fw_err *err)
{
	unsigned long long number = atomic_fetch_add(&s->next_file, 1);
	struct wal_segment *g = calloc(1, sizeof(*g));
	struct fw_buf path = FW_BUF_INIT(0), early = FW_BUF_INIT(0);

	fw_buf_addf(&path, "%s/%s-%llu" SUFFIX, s->folder, s->name, number);
	fw_buf_addf(&early, "%s/%s-%llu" UNNAMED_SUFFIX, s->folder, s->name, number);
	if (!g || path.rc || early.rc) {
		fw_err_set(err, FW_ENOMEM, "out of memory");
		free(g);
		g = NULL;
		goto out;
	}
	g->path = fw_buf_take(&path, NULL);
	g->fd = open(early.p, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
	if (g->fd < 0 || flock(g->fd, LOCK_EX | LOCK_NB) || rename(early.p, g->path)) {
		fw_err_set(err, FW_EIO, "wal_dir: %s: %s", g->path, strerror(errno));
		if (g->fd >= 0)
			unlink(early.p);
		segment_free(g, false);
		g = NULL;
	}
out:
	fw_buf_finish(&path);
	fw_buf_finish(&early);
	return g;
}

/* ---- the producer -------------------------------------------------------- */

void fw_wal_add(struct fw_wal *s, size_t producer, const void *p, size_t len)
{
	struct fw_buf *b = &s->producer[producer].draft;
	uint32_t head[2] = {(uint32_t)len, MAGIC};
	uint64_t sum = fw_hash64_seed(p, len, len), none = 0;

	assert(producer < s->producer_n && len <= RECORD_MAX);
	fw_buf_add(b, head, sizeof(head));
	fw_buf_add(b, &sum, sizeof(sum));
	fw_buf_add(b, p, len);
	fw_buf_add(b, &none, PADDED(len) - len);
}

void fw_wal_discard(struct fw_wal *s, size_t producer)
{
	fw_buf_reset(&s->producer[producer].draft);
}

static int segment_write(struct wal_segment *g, const char *p, size_t len, bool sync, struct fw_err *err)
{
	int e = fw_write_all(g->fd, p, len);

	if (!e && sync && fdatasync(g->fd))
		e = errno;
	if (!e) {
		g->bytes += len;
		return 0;
	}
	/*
	 * Truncate: half a record would end the file for a reader. Close it: once its rows are
	 * stored, the file is deleted and frees space on a full disk.
	 */
	g->closed = ftruncate(g->fd, (off_t)g->bytes) || g->bytes;
	return fw_err_set(err, FW_EIO, "wal_dir: %s: %s (free some space there)", g->path, strerror(e));
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
	if (!g || g->closed || g->bytes + l->draft.len > SEGMENT_BYTES) {
		g = segment_new(s, err);
		if (g && l->newest)
			l->newest->next = g;
		else if (g)
			l->oldest = g;
		l->newest = g ? g : l->newest;
		segments_remove_stored(l);
	}
	rc = g ? segment_write(g, l->draft.p, l->draft.len, !s->sync_ms, err) : err->rc;
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
			fd = fcntl(g->fd, F_DUPFD_CLOEXEC, 0);
		}
	}
	pthread_mutex_unlock(&l->lock);
	return fd;
}

static void wal_producer_sync(struct wal_producer *l)
{
	int fd;

	while ((fd = segment_take_dirty(l)) >= 0) {
		if (fdatasync(fd))
			fw_warn("wal_dir: accepted rows may be lost in a power failure, sync failed: %s",
				strerror(errno));
		close(fd);
	}
}

static void *wal_sync_main(void *arg)
{
	struct fw_wal *s = arg;

	pthread_mutex_lock(&s->lock);
	while (!s->closing) {
		struct timespec at = fw_timespec(fw_now_ms() + s->sync_ms);

		pthread_cond_timedwait(&s->cond, &s->lock, &at);
		pthread_mutex_unlock(&s->lock);
		for (size_t i = 0; i < s->producer_n; i++)
			wal_producer_sync(&s->producer[i]);
		pthread_mutex_lock(&s->lock);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* ---- open and close ------------------------------------------------------ */

int fw_wal_open(const char *folder, int64_t sync_ms, size_t producers, struct fw_wal **out, struct fw_err *err)
{
	struct fw_wal *s;
	int rc = 0;

	*out = NULL;
	if ((mkdir(folder, 0700) && errno != EEXIST) || access(folder, R_OK | W_OK | X_OK))
		return fw_err_set(err, FW_EINVAL, "wal_dir = %s: %s", folder, strerror(errno));
	s = calloc(1, sizeof(*s) + producers * sizeof(s->producer[0]));
	if (!s)
		return fw_err_set(err, FW_ENOMEM, "out of memory");
	s->folder = fw_str_dup(fw_str(folder));
	s->sync_ms = sync_ms;
	s->producer_n = producers;
	/* the time makes it unique, because pids are reused */
	(void)fw_snprintf(s->name, sizeof(s->name), "%lld-%d", (long long)fw_now_ms(), (int)getpid());
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->cond, NULL);
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
	for (size_t i = 0; i < s->producer_n; i++) {
		wal_producer_sync(&s->producer[i]);
		wal_producer_finish(&s->producer[i]);
	}
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->cond);
	free(s->folder);
	free(s);
}

/* ---- replay -------------------------------------------------------------- */

struct fw_wal_reader {
	char *folder, *path;
	DIR *dir;
	int fd;
	unsigned char *mem;
	size_t bytes, at;
	bool damaged;
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

static void wal_reader_close_file(struct fw_wal_reader *r)
{
	if (r->mem)
		munmap(r->mem, r->bytes);
	if (r->fd >= 0)
		close(r->fd);
	free(r->path);
	r->path = NULL;
	r->mem = NULL;
	r->fd = -1;
	r->bytes = r->at = 0;
	r->damaged = false;
}

/* False: a live process holds the file, or it cannot be read. */
static bool wal_reader_open_file(struct fw_wal_reader *r, const char *name)
{
	struct fw_buf path = FW_BUF_INIT(0);
	struct stat st;
	void *mem;

	wal_reader_close_file(r);
	fw_buf_addf(&path, "%s/%s", r->folder, name);
	r->path = fw_buf_take(&path, NULL);
	r->fd = r->path ? open(r->path, O_RDWR | O_CLOEXEC) : -1;
	if (r->fd < 0 || flock(r->fd, LOCK_EX | LOCK_NB) || fstat(r->fd, &st)) {
		if (errno != EWOULDBLOCK && errno != ENOENT)
			fw_error("wal_dir: cannot read %s/%s: %s", r->folder, name, strerror(errno));
		return false;
	}
	if (st.st_nlink == 0) /* another process replayed and deleted it first */
		return false;
	r->bytes = (size_t)st.st_size;
	if (!r->bytes)
		return true;
	mem = mmap(NULL, r->bytes, PROT_READ, MAP_PRIVATE, r->fd, 0);
	if (mem == MAP_FAILED) {
		fw_error("wal_dir: cannot read %s: %s", r->path, strerror(errno));
		r->bytes = 0;
		return false;
	}
	r->mem = mem;
	return true;
}

/* Its process died before it renamed the file: the file is empty. */
static void wal_reader_remove_unnamed(const struct fw_wal_reader *r, const char *name)
{
	int at = dirfd(r->dir);
	struct stat st;

	if (at >= 0 && !fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode) && !st.st_size &&
		st.st_mtime < time(NULL) - 60)
		unlinkat(at, name, 0);
}

/* Removes the open file: all its rows are stored. */
static void wal_reader_remove_file(struct fw_wal_reader *r)
{
	struct fw_buf damaged_path = FW_BUF_INIT(0);

	if (r->path && r->damaged) {
		fw_buf_addf(&damaged_path, "%s.damaged", r->path);
		if (damaged_path.rc || rename(r->path, damaged_path.p))
			fw_error("wal_dir: cannot rename the damaged file %s: %s", r->path, strerror(errno));
	} else if (r->path) {
		unlink(r->path);
	}
	fw_buf_finish(&damaged_path);
}

bool fw_wal_reader_next(struct fw_wal_reader *r)
{
	struct dirent *e;

	wal_reader_remove_file(r);
	while ((e = readdir(r->dir))) {
		if (fw_str_ends(fw_str(e->d_name), FW_STR(SUFFIX)) && wal_reader_open_file(r, e->d_name))
			return true;
		if (fw_str_ends(fw_str(e->d_name), FW_STR(UNNAMED_SUFFIX)))
			wal_reader_remove_unnamed(r, e->d_name);
	}
	wal_reader_close_file(r);
	return false;
}

bool fw_wal_read(struct fw_wal_reader *r, struct fw_str *record)
{
	const unsigned char *at = r->mem + r->at;
	size_t left = r->bytes - r->at;
	uint32_t head[2] = {0, 0};
	uint64_t sum = 0;

	assert(r->at <= r->bytes);
	if (!left)
		return false;
	if (left >= HEADER) {
		memcpy(head, at, sizeof(head));
		memcpy(&sum, at + sizeof(head), sizeof(sum));
	}
	if (left < HEADER || (head[1] == MAGIC && head[0] <= RECORD_MAX && PADDED(head[0]) > left - HEADER)) {
		fw_warn("wal_dir: %s: skipped an unfinished record in the last %zu bytes; its push was not "
			"acknowledged",
			r->path, left);
	} else if (head[1] != MAGIC || head[0] > RECORD_MAX || fw_hash64_seed(at + HEADER, head[0], head[0]) != sum) {
		fw_error("wal_dir: %s: damaged at byte %zu, skipped the last %zu bytes", r->path, r->at, left);
		r->damaged = true;
	} else {
		*record = (struct fw_str){(const char *)at + HEADER, head[0]};
		r->at += HEADER + PADDED(head[0]);
		return true;
	}
	r->at = r->bytes;
	return false;
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
