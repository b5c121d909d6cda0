/* SPDX-License-Identifier: ISC */
/*
 * The SQLite driver: one file, any number of processes on one machine.
 *
 * This file opens and closes, keeps prepared statements, begins and ends transactions and turns SQLite's codes into ours.
 * What is stored where: sqlite_schema.c. Lending: sqlite_wheel.c, sqlite_claim.c, sqlite_line.c, sqlite_leases.c. Outcomes: sqlite_commit.c, sqlite_visits.c. Where
 * feeds are: sqlite_places.c. Entries: sqlite_entries.c. Words: sqlite_search.c. What people look at: sqlite_window.c. Copies:
 * sqlite_load.c.
 *
 * Writers use BEGIN IMMEDIATE, so a transaction never fails half-way for want of the lock: it waits busy_timeout_ms at its
 * beginning, then says FW_EAGAIN. The journal is a WAL; readers never block writers. With synchronous=FULL every commit is on
 * the disk when it returns; cfg.relaxed takes NORMAL, where a power cut (not a crash of ours) may take the last commits. Loans
 * are always written that way: a power cut that undoes one has ended its borrower too, and the feed is simply due again.
 *
 * One thread at a time; a connection is not carried across fork().
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "store/sqlite.h"

#define PAGE_BYTES 4096
#define CACHE_BYTES ((size_t)8 << 20) /* a larger one costs more in the processor's caches than it saves in reads */
#define CHECKPOINT_BYTES ((size_t)64 << 20) /* the WAL is folded into the file when it is longer than this */
#define DISK_LOW_MIB 512 /* doctor notes it */
#define DISK_FULL_MIB 16

/* ---- errors --------------------------------------------------------------------------------------------------------- */

int sq_error(struct sqlite *s, const char *doing, struct fw_err *err)
{
	int code = sqlite3_extended_errcode(s->db), sys = sqlite3_system_errno(s->db);
	const char *msg = sqlite3_errmsg(s->db);

	switch (code & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return fw_err_set(err, FW_EAGAIN, "%s: locked by another program for more than %lld ms (%s): try again; `fuser %s` names it",
			s->path, (long long)s->busy_timeout_ms, doing, s->path);
	case SQLITE_FULL:
		return fw_err_set(err, FW_EIO, "%s: no space left (%s): free some on its disk and run again; nothing stored is lost",
			s->path, doing);
	case SQLITE_CORRUPT:
		return fw_err_set(err, FW_EIO, "%s: the file is damaged (%s: %s): restore a backup, or `sqlite3 %s .recover`",
			s->path, doing, msg, s->path);
	case SQLITE_NOTADB:
		return fw_err_set(err, FW_EINVAL, "%s: not an SQLite database: name another file", s->path);
	case SQLITE_READONLY:
		return fw_err_set(err, FW_EIO, "%s: may not be written (%s): check the permissions of the file and its folder",
			s->path, doing);
	case SQLITE_CANTOPEN:
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return fw_err_set(err, FW_EIO, "%s: cannot be opened (%s): check the path and the permissions", s->path,
			sys ? strerror(sys) : msg);
	case SQLITE_NOMEM:
		return fw_err_set(err, FW_ENOMEM, "%s: out of memory (%s)", s->path, doing);
	case SQLITE_IOERR:
		if (sys == ENOSPC || sys == EDQUOT)
			return fw_err_set(err, FW_EIO, "%s: no space left (%s): free some on its disk and run again", s->path, doing);
		return fw_err_set(err, FW_EIO, "%s: the disk failed (%s: %s%s%s): check the disk, its quota and `ulimit -f`", s->path,
			doing, msg, sys ? ", " : "", sys ? strerror(sys) : "");
	case SQLITE_CONSTRAINT: /* of a trigger that somebody has added, say */
	case SQLITE_TOOBIG:
		return fw_err_set(err, FW_EINVAL, "%s: refused (%s): %s", s->path, doing, msg);
	default:
		return fw_err_set(err, FW_EIO, "%s: %s: %s (%d)", s->path, doing, msg, code);
	}
}

/* ---- statements ------------------------------------------------------------------------------------------------------- */

sqlite3_stmt *sq_stmt(struct sqlite *s, enum sq_id id, const char *sql, struct fw_err *err)
{
	if (!s->stmt[id] && sqlite3_prepare_v3(s->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &s->stmt[id], NULL) != SQLITE_OK)
		sq_error(s, "preparing a statement", err);
	return s->stmt[id];
}

/* A statement that still runs for somebody else refuses its parameters: better an error than another one's rows. */
static int bind(struct sqlite *s, sqlite3_stmt *q, const char *fmt, va_list ap, struct fw_err *err)
{
	int rc = SQLITE_OK;

	for (int i = 1; *fmt && rc == SQLITE_OK; fmt++, i++) {
		int64_t v;
		struct fw_str t;

		switch (*fmt) {
		case 'i':
			rc = sqlite3_bind_int64(q, i, va_arg(ap, int64_t));
			break;
		case 'd':
			v = va_arg(ap, int64_t);
			rc = v == FW_NO_DATE ? sqlite3_bind_null(q, i) : sqlite3_bind_int64(q, i, v);
			break;
		case 's':
			t = va_arg(ap, struct fw_str);
			rc = sqlite3_bind_text64(q, i, t.p, t.len, SQLITE_STATIC, SQLITE_UTF8);
			break;
		default: /* 'b' */
			t = va_arg(ap, struct fw_str);
			rc = sqlite3_bind_blob64(q, i, t.p, t.len, SQLITE_STATIC);
			break;
		}
	}
	if (rc == SQLITE_MISUSE)
		return fw_err_set(err, FW_EINVAL, "%s: called again from a callback of its own", s->path);
	return rc == SQLITE_OK ? 0 : sq_error(s, "passing values", err);
}

sqlite3_stmt *sq_ask(struct sqlite *s, enum sq_id id, const char *sql, struct fw_err *err, const char *fmt, ...)
{
	sqlite3_stmt *q = sq_stmt(s, id, sql, err);
	va_list ap;
	int rc;

	if (!q)
		return NULL;
	va_start(ap, fmt);
	rc = bind(s, q, fmt, ap, err);
	va_end(ap);
	return rc ? NULL : q;
}

int sq_row(struct sqlite *s, sqlite3_stmt *q, struct fw_err *err)
{
	int rc = sqlite3_step(q);

	if (rc == SQLITE_ROW)
		return 1;
	if (rc == SQLITE_DONE) {
		sqlite3_reset(q);
		return 0;
	}
	/* BEGIN and COMMIT count as read-only statements */
	rc = sq_error(s, sqlite3_stmt_readonly(q) && sqlite3_get_autocommit(s->db) ? "reading" : "writing", err);
	sqlite3_reset(q);
	return rc;
}

int sq_do(struct sqlite *s, enum sq_id id, const char *sql, struct fw_err *err, const char *fmt, ...)
{
	sqlite3_stmt *q = sq_stmt(s, id, sql, err);
	va_list ap;
	int rc;

	if (!q)
		return err->rc;
	va_start(ap, fmt);
	rc = bind(s, q, fmt, ap, err);
	va_end(ap);
	if (rc)
		return rc;
	do
		rc = sq_row(s, q, err);
	while (rc > 0);
	return rc;
}

int sq_int(struct sqlite *s, enum sq_id id, const char *sql, int64_t none, int64_t *out, struct fw_err *err)
{
	sqlite3_stmt *q = sq_stmt(s, id, sql, err);
	int rc = q ? sq_row(s, q, err) : err->rc;

	*out = none;
	if (rc <= 0)
		return rc;
	if (sqlite3_column_type(q, 0) != SQLITE_NULL)
		*out = sqlite3_column_int64(q, 0);
	sqlite3_reset(q);
	return 0;
}

int sq_exec(struct sqlite *s, const char *sql, struct fw_err *err)
{
	return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : sq_error(s, "setting it up", err);
}

struct fw_str sq_text(sqlite3_stmt *q, int col)
{
	const char *p = sqlite3_column_blob(q, col); /* text as it is stored: UTF-8, no copy; NULL also when empty */

	if (p)
		return (struct fw_str){p, (size_t)sqlite3_column_bytes(q, col)};
	return sqlite3_column_type(q, col) == SQLITE_NULL ? FW_STR_NONE : FW_STR("");
}

struct fw_str sq_value_text(sqlite3_value *v)
{
	const char *p;

	if (sqlite3_value_type(v) == SQLITE_NULL)
		return FW_STR_NONE;
	p = sqlite3_value_blob(v);
	return p ? (struct fw_str){p, (size_t)sqlite3_value_bytes(v)} : FW_STR("");
}

sqlite3_value **sq_values(sqlite3_stmt *q, int from, int n, sqlite3_value **out)
{
	for (int i = 0; i < n; i++)
		out[i] = sqlite3_column_value(q, from + i); /* the connection has no mutex, so these may be looked at */
	return out;
}

static int begin(struct sqlite *s, bool full, struct fw_err *err)
{
	if (s->read_only)
		return fw_err_set(err, FW_EINVAL, "%s: opened for reading only", s->path);
	full = full && !s->relaxed;
	if (s->full != full && sq_exec(s, full ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL", err))
		return err->rc;
	s->full = full;
	s->number = -1;
	s->number_dirty = false;
	s->entry_d = s->visit_d = 0;
	s->slow = false;
	sq_loans_begin(s);
	return sq_do(s, SQ_BEGIN, "BEGIN IMMEDIATE", err, "");
}

int sq_begin(struct sqlite *s, struct fw_err *err)
{
	return begin(s, true, err);
}

int sq_begin_quick(struct sqlite *s, struct fw_err *err)
{
	return begin(s, false, err);
}

int sq_number_load(struct sqlite *s, struct fw_err *err)
{
	return s->number < 0 ? sq_int(s, SQ_NUMBER, "SELECT value FROM meta WHERE name = 'last_number'", 0, &s->number, err) : 0;
}

/* fw_number() in statements of ours */
static void number_next(sqlite3_context *ctx, int n, sqlite3_value **arg)
{
	struct sqlite *s = sqlite3_user_data(ctx);

	(void)n;
	(void)arg;
	s->number_dirty = true;
	sqlite3_result_int64(ctx, ++s->number);
}

int sq_number(struct sqlite *s, int64_t *out, struct fw_err *err)
{
	int rc = sq_number_load(s, err);

	if (!rc)
		*out = ++s->number;
	s->number_dirty = true;
	return rc;
}

int sq_end(struct sqlite *s, int rc, struct fw_err *err)
{
	struct fw_err spare;

	rc = rc ? rc : sq_line_write(s, err);
	rc = rc ? rc : sq_visits_end(s, err);
	rc = rc ? rc : sq_moves_end(s, err);
	if (!rc && s->number_dirty)
		rc = sq_do(s, SQ_NUMBER_SET, "UPDATE meta SET value = ? WHERE name = 'last_number'", err, "i", s->number);
	if (!rc && s->entry_d)
		rc = sq_do(s, SQ_ENTRY_N, "UPDATE meta SET value = value + ? WHERE name = 'entry_n'", err, "i", s->entry_d);
	if (!rc && s->visit_d)
		rc = sq_do(s, SQ_VISIT_N, "UPDATE meta SET value = value + ? WHERE name = 'visit_n'", err, "i", s->visit_d);
	if (!rc)
		rc = sq_do(s, SQ_COMMIT, "COMMIT", err, "");
	if (rc && !sqlite3_get_autocommit(s->db))
		(void)sq_do(s, SQ_ROLLBACK, "ROLLBACK", &spare, ""); /* rc tells already */
	if (rc) { /* what is remembered may not have happened */
		sq_visits_forget(s);
		sq_places_forget(s);
		sq_loans_forget(s);
	}
	return rc;
}

/* ---- life ------------------------------------------------------------------------------------------------------------- */

static void sqlite_close(struct fw_store *st)
{
	struct sqlite *s = sqlite_of(st);

	for (int i = 0; i < SQ_ID_N; i++)
		sqlite3_finalize(s->stmt[i]);
	sqlite3_close(s->db);
	sq_loans_forget(s);
	sq_map_finish(&s->place);
	free(s->puts.put);
	free(s->puts.order);
	fw_buf_finish(&s->moves);
	fw_buf_finish(&s->visits.text);
	fw_buf_finish(&s->text);
	free(s->path);
	free(s);
}

/*
 * It may hold passwords: for its owner only, and the journal beside it gets the same mode. Empty is a new database. One that somebody else
 * has just made is not opened: closing it again would take this process's locks on it away, for such are the locks of POSIX, and
 * other connections of this process may rely on them.
 */
static int file_create(struct sqlite *s, struct fw_err *err)
{
	int fd = open(s->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0 && errno == EEXIST)
		return 0;
	if (fd < 0)
		return fw_err_set(err, FW_EIO, "%s: cannot be made: %s: check the path and the permissions of its folder", s->path,
			strerror(errno));
	close(fd);
	return 0;
}

/* SQLite's own words for these are vague, so look first. */
static int file_check(struct sqlite *s, const struct fw_store_config *cfg, struct fw_err *err)
{
	struct stat sb;

	if (!*s->path || strcmp(s->path, ":memory:") == 0)
		return fw_err_set(err, FW_EINVAL, "store \"%s\": no file: write for example sqlite:/path/feeds.db", cfg->url);
	if (stat(s->path, &sb) != 0) {
		if (errno == ENOENT && (cfg->flags & FW_STORE_CREATE) && !s->read_only)
			return file_create(s, err);
		return fw_err_set(err, errno == ENOENT ? FW_ENOTFOUND : FW_EIO, "%s: %s: %s", s->path, strerror(errno),
			errno == ENOENT ? "begin with `feedwheel add URL`, or name another file" : "check the path");
	}
	if (!S_ISREG(sb.st_mode))
		return fw_err_set(err, FW_EINVAL, "%s: not a regular file: name another one", s->path);
	if (faccessat(AT_FDCWD, s->path, R_OK, AT_EACCESS)) /* no open(): see above */
		return fw_err_set(err, FW_EIO, "%s: %s: check the permissions of the file", s->path, strerror(errno));
	return 0;
}

static int is_wal(void *ctx, int n, char **value, char **name)
{
	(void)name;
	*(bool *)ctx = n == 1 && value[0] && strcmp(value[0], "wal") == 0;
	return 0;
}

/* The change to WAL needs the file alone for a moment and does not wait by itself: try again until the time is up. */
static int wal_on(struct sqlite *s, struct fw_err *err)
{
	int64_t start = fw_mono_ms();
	bool on = false;
	int rc;

	for (;;) {
		rc = sqlite3_exec(s->db, "PRAGMA journal_mode=WAL", is_wal, &on, NULL);
		if ((rc & 0xff) != SQLITE_BUSY || fw_mono_ms() - start >= s->busy_timeout_ms)
			break;
		usleep(5000);
	}
	if (rc != SQLITE_OK)
		return sq_error(s, "opening", err);
	return on ? 0 : fw_err_set(err, FW_EIO, "%s: its file system cannot share memory between processes: use a local disk", s->path);
}

/*
 * Somebody else is writing: look again in 1 to 5 ms, each waiter at a time of its own. (SQLite's own handler sleeps longer and
 * longer, and who has waited longest comes last.)
 */
static int busy(void *ctx, int n)
{
	struct sqlite *s = ctx;
	int64_t now = fw_mono_ms();

	if (n == 0)
		s->busy_since_ms = now;
	if (now - s->busy_since_ms >= s->busy_timeout_ms)
		return 0;
	usleep((useconds_t)(1000 + fw_hash64_seed(&now, sizeof(now), (uint64_t)getpid()) % 4000));
	return 1;
}

static int settings(struct sqlite *s, const struct fw_store_config *cfg, struct fw_err *err)
{
	size_t cache = cfg->cache_bytes ? cfg->cache_bytes : CACHE_BYTES;
	char sql[400];
	int rc;

	sqlite3_busy_handler(s->db, busy, s);
	s->place_merged = -1;
	if (sqlite3_create_function(s->db, "fw_number", 0, SQLITE_UTF8 | SQLITE_DIRECTONLY, s, number_next, NULL, NULL) != SQLITE_OK)
		return sq_error(s, "opening", err);
	sqlite3_extended_result_codes(s->db, 1);
	if (!fw_snprintf(sql, sizeof(sql), "PRAGMA page_size=%d; PRAGMA cache_size=-%zu; PRAGMA temp_store=MEMORY; "
			"PRAGMA trusted_schema=0; PRAGMA foreign_keys=0; PRAGMA secure_delete=FAST;", PAGE_BYTES, cache / 1024))
		return fw_err_set(err, FW_EINVAL, "%s: cache_bytes out of range", s->path);
	rc = sq_exec(s, sql, err);
	rc = rc ? rc : sq_line_setup(s, err);
	rc = rc ? rc : sq_claim_setup(s, err);
	if (rc || s->read_only)
		return rc;
	rc = wal_on(s, err);
	if (rc)
		return rc;
	s->full = !cfg->relaxed;
	if (!fw_snprintf(sql, sizeof(sql), "PRAGMA synchronous=%s; PRAGMA wal_autocheckpoint=%zu; PRAGMA journal_size_limit=%zu",
			s->full ? "FULL" : "NORMAL", CHECKPOINT_BYTES / PAGE_BYTES, CHECKPOINT_BYTES))
		return fw_err_set(err, FW_EINVAL, "%s: checkpoint size out of range", s->path);
	return sq_exec(s, sql, err);
}

/* SQLite counts its memory under a lock that every allocation takes; nobody here asks for the figures. */
static void configure(void)
{
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); /* refused, and no harm, when the program has used SQLite before */
}

static int sqlite_open(const struct fw_store_config *cfg, struct fw_store **out, struct fw_err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	bool read_only = cfg->flags & FW_STORE_READ, create = cfg->flags & FW_STORE_CREATE;
	int flags = SQLITE_OPEN_NOMUTEX | (read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE) |
		(create && !read_only ? SQLITE_OPEN_CREATE : 0);
	struct sqlite *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return fw_err_set(err, FW_ENOMEM, "store \"%s\": out of memory", cfg->url);
	pthread_once(&once, configure);
	s->base.driver = &fw_store_sqlite;
	s->read_only = read_only;
	s->relaxed = cfg->relaxed;
	s->busy_timeout_ms = cfg->busy_timeout_ms;
	s->path = fw_str_dup(fw_store_url_rest(cfg->url));
	rc = s->path ? file_check(s, cfg, err) : fw_err_set(err, FW_ENOMEM, "store \"%s\": out of memory", cfg->url);
	if (!rc && sqlite3_open_v2(s->path, &s->db, flags, NULL) != SQLITE_OK)
		rc = sq_error(s, "opening", err);
	rc = rc ? rc : settings(s, cfg, err);
	rc = rc ? rc : sq_migrate(s, create, cfg->flags & FW_STORE_NO_MIGRATE, err);
	rc = rc ? rc : sq_int(s, SQ_PAGE_SIZE, "PRAGMA page_size", PAGE_BYTES, &s->page_bytes, err);
	rc = rc ? rc : sq_int(s, SQ_DATA_VERSION, "PRAGMA data_version", 0, &s->data_version, err);
	if (rc) {
		sqlite_close(&s->base);
		return rc;
	}
	*out = &s->base;
	return 0;
}

static int sqlite_ping(struct fw_store *st, struct fw_err *err)
{
	int64_t v;

	return sq_int(sqlite_of(st), SQ_META_GET, "SELECT value FROM meta WHERE name = 'indexed_entry_id'", 0, &v, err);
}

static int sqlite_changed(struct fw_store *st, bool *changed, struct fw_err *err)
{
	struct sqlite *s = sqlite_of(st);
	int64_t v;
	int rc = sq_int(s, SQ_DATA_VERSION, "PRAGMA data_version", 0, &v, err);

	*changed = !rc && v != s->data_version;
	s->data_version = rc ? s->data_version : v;
	return rc;
}

/* Each of these lists what should not be; column 0 is a sentence. */
static const char *const checks[] = {
	"SELECT 'file: ' || integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok' LIMIT 20",
	"SELECT 'feed ' || feed_id || ': active, but neither waiting nor lent' FROM aside WHERE status = 0 AND host_id = 0",
	"SELECT 'feed ' || feed_id || ': on the wheel ' || count(*) || ' times' FROM wheel GROUP BY feed_id HAVING count(*) > 1",
	"SELECT 'feed ' || feed_id || ': waiting, but not active' FROM aside WHERE status <> 0 AND host_id > 0",
	"SELECT 'feed ' || id || ': not on the wheel' FROM feeds WHERE id NOT IN (SELECT feed_id FROM wheel)",
	"SELECT 'wheel: no feed ' || feed_id FROM wheel WHERE feed_id NOT IN (SELECT id FROM feeds)",
	"SELECT 'lease of feed ' || feed_id || ': no claim holds ' || fence FROM leases l WHERE NOT EXISTS (SELECT 1 FROM claims"
	" WHERE l.fence BETWEEN first_fence AND last_fence)",
	"SELECT 'claim ' || first_fence || ': holds nothing' FROM claims c WHERE NOT EXISTS (SELECT 1 FROM leases"
	" WHERE fence BETWEEN c.first_fence AND c.last_fence)",
	"SELECT 'entry ' || id || ': no feed ' || feed_id FROM entries WHERE feed_id NOT IN (SELECT id FROM feeds)",
	"SELECT 'meta: counts ' || value || ' entries' FROM meta WHERE name = 'entry_n' AND value <> (SELECT count(*) FROM entries)",
	"SELECT 'host ' || name || ': has ' || (SELECT count(*) FROM feeds WHERE host_id = h.id) || ' feeds, counts ' || feed_n"
	" FROM hosts h WHERE feed_n <> (SELECT count(*) FROM feeds WHERE host_id = h.id)",
	"SELECT 'host ' || name || ': has ' || (SELECT count(*) FROM leases WHERE host_id = h.id) || ' lent, counts ' || busy_n"
	" FROM hosts h WHERE busy_n <> (SELECT count(*) FROM leases WHERE host_id = h.id)",
	"SELECT 'host ' || name || ': has ' || (SELECT count(*) FROM parked WHERE host_id = h.id) || ' parked, counts ' || parked_n"
	" FROM hosts h WHERE parked_n <> (SELECT count(*) FROM parked WHERE host_id = h.id)",
	"SELECT 'host ' || host_id || ': ' || count(*) || ' feeds parked, and there is no such host' FROM aside WHERE host_id > 0"
	" AND host_id NOT IN (SELECT id FROM hosts) GROUP BY host_id",
	"SELECT 'host ' || name || ': feeds wait, and none has its turn' FROM hosts WHERE parked_n > 0 AND busy_n + turn_n = 0",
};

static int sqlite_check(struct fw_store *st, void (*cb)(void *ctx, const char *finding), void *ctx, struct fw_err *err)
{
	struct sqlite *s = sqlite_of(st);
	int rc = sq_exec(s, "BEGIN", err); /* one view of it all */

	for (size_t i = 0; i < FW_N(checks) && !rc; i++) {
		sqlite3_stmt *q = NULL;

		if (sqlite3_prepare_v2(s->db, checks[i], -1, &q, NULL) != SQLITE_OK)
			rc = sq_error(s, "checking", err);
		while (!rc && sqlite3_step(q) == SQLITE_ROW)
			cb(ctx, (const char *)sqlite3_column_text(q, 0));
		if (sqlite3_finalize(q) != SQLITE_OK && !rc)
			rc = sq_error(s, "checking", err);
	}
	rc = rc ? rc : sq_places_check(s, cb, ctx, err);
	rc = rc ? rc : sq_visits_check(s, cb, ctx, err);
	if (!sqlite3_get_autocommit(s->db))
		(void)sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL); /* only reads were in it */
	return rc;
}

/* What is left on the disk it grows on. What cannot be asked is passed over. */
static void disk_inspect(const struct sqlite *s, fw_inspect_cb *cb, void *ctx)
{
	struct statvfs v;
	char text[100];
	int64_t mib;

	if (statvfs(s->path, &v))
		return;
	mib = (int64_t)((uint64_t)v.f_bavail * v.f_frsize >> 20);
	(void)fw_snprintf(text, sizeof(text), "%lld MiB are left", (long long)mib);
	cb(ctx, "disk", mib < DISK_FULL_MIB ? 2 : mib < DISK_LOW_MIB ? 1 : 0, text,
		mib < DISK_LOW_MIB ? "free some: what is fetched and pushed waits when it is full" : "");
}

/* Passwords of feeds and secrets of hubs lie in it. What cannot be asked is passed over. */
static void mode_inspect(const struct sqlite *s, fw_inspect_cb *cb, void *ctx)
{
	struct stat sb;
	char text[100];

	if (stat(s->path, &sb) || !(sb.st_mode & 077))
		return;
	(void)fw_snprintf(text, sizeof(text), "others may open the file (mode %04o), and passwords and secrets lie in it", (unsigned)sb.st_mode & 07777);
	cb(ctx, "permissions", 1, text, "chmod 600 it, and the files with -wal and -shm beside it");
}

/* "wal" or what else keeps its commits; and a version that people can compare. */
static int sqlite_inspect(struct fw_store *st, fw_inspect_cb *cb, void *ctx, struct fw_err *err)
{
	struct sqlite *s = sqlite_of(st);
	char text[100];
	bool wal = false;

	if (sqlite3_exec(s->db, "PRAGMA journal_mode", is_wal, &wal, NULL) != SQLITE_OK)
		return sq_error(s, "reading its settings", err);
	(void)fw_snprintf(text, sizeof(text), "SQLite %s, pages of %lld bytes", sqlite3_libversion(), (long long)s->page_bytes);
	cb(ctx, "engine", 0, text, "");
	if (!wal)
		cb(ctx, "durability", 1, "its journal is not a WAL, so readers and writers wait for each other",
			"'feedwheel run' switches it back");
	else if (s->relaxed)
		cb(ctx, "durability", 1, "relaxed: a power cut may take the visits of the last seconds, a crash takes none",
			"relaxed = no, unless that is meant");
	else
		cb(ctx, "durability", 0, "a visit that is stored is on the disk", "");
	disk_inspect(s, cb, ctx);
	mode_inspect(s, cb, ctx);
	return 0;
}

static const char *const schemes[] = {"sqlite", NULL};

const struct fw_store_driver fw_store_sqlite = {
	.abi = FW_STORE_ABI,
	.name = "sqlite",
	.schemes = schemes,
	.open = sqlite_open,
	.close = sqlite_close,
	.ping = sqlite_ping,
	.check = sqlite_check,
	.claim = sq_claim,
	.commit = sq_commit,
	.release = sq_release,
	.bury = sq_bury,
	.changed = sqlite_changed,
	.subscribe = sq_subscribe,
	.unsubscribe = sq_unsubscribe,
	.feed_find = sq_feed_find,
	.feed_list = sq_feed_list,
	.feed_set = sq_feed_set,
	.entry_list = sq_entry_list,
	.visit_list = sq_visit_list,
	.stats = sq_stats,
	.pending = sq_pending,
	.control_put = sq_control_put,
	.control_take = sq_control_take,
	.beat_list = sq_beat_list,
	.upkeep = sq_upkeep,
	.prune = sq_prune,
	.load = sq_load,
	.key_list = sq_key_list,
	.event_put = sq_event_put,
	.event_bury = sq_event_bury,
	.event_list = sq_event_list,
	.event_dead_list = sq_event_dead_list,
	.event_prune = sq_event_prune,
	.record_put = sq_record_put,
	.record_get = sq_record_get,
	.record_list = sq_record_list,
	.record_remove = sq_record_remove,
	.record_prune = sq_record_prune,
	.lend = sq_lend,
	.event_unbury = sq_event_unbury,
	.due_list = sq_due_list,
	.feed_merge = sq_feed_merge,
	.inspect = sqlite_inspect,
};
