/* SPDX-License-Identifier: ISC */
/*
 * Open and close. The journal is a write-ahead log: readers never block writers. With
 * synchronous=FULL a commit is on the disk when it returns. cfg.async_commit selects NORMAL: a
 * power failure may lose the last commits, a crash of feedwheel does not. `memory:` is a database
 * of this connection only.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "store/sql/open.h"
#include "store/sqlite/sqlite.h"

#define PROGRESS_STEPS 10000 /* instructions between two looks at the limit: well below 1 ms */
#define CACHE_BYTES ((size_t)8 << 20)

static void sqlite_close(struct store *st)
{
	struct sqlite_db *s = sqlite_db(sql_of(st));

	for (size_t i = 0; i < s->kept_n; i++)
		sqlite3_finalize(s->kept[i].q);
	sqlite3_close(s->db);
	free(s->lock_path);
	free(s->path);
	free(s);
}

/* SQLite's memory statistics take a lock at every allocation, and nothing reads them: off. */
static void sqlite_configure(void)
{
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); /* fails harmlessly if the program has used SQLite before */
}

/* The code of a path that cannot be used: no right to it does not mend itself. */
int sqlite_path_code(int e)
{
	return e == EACCES || e == EPERM || e == EROFS ? FW_EUNUSABLE : FW_EIO;
}

/* The store may hold passwords: mode 0600. SQLite gives its journal the same mode. */
static int sqlite_file_create(struct sqlite_db *s, struct fw_err *err)
{
	int fd = open(s->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0 && errno == EEXIST)
		return 0;
	if (fd < 0)
		return fw_err_set(err, sqlite_path_code(errno),
			"%s: cannot be created: %s: check the path and the permissions of its folder", s->path,
			strerror(errno));
	close(fd);
	return 0;
}

/*
 * Check the path first, because SQLite's error texts are vague. Never open() an existing file here:
 * close() would drop this process's POSIX locks on it.
 */
static int file_check_locked(struct sqlite_db *s, const struct fw_store_config *cfg, struct fw_err *err)
{
	struct stat sb;

	if (!*s->path || strcmp(s->path, ":memory:") == 0)
		return fw_err_set(
			err, FW_EINVAL, "store \"%s\": no file given (for example, sqlite:/path/feeds.db)", cfg->url);
	if (stat(s->path, &sb) != 0) {
		if (errno == ENOENT && (cfg->flags & FW_STORE_CREATE) && !s->sql.read_only)
			return sqlite_file_create(s, err);
		return fw_err_set(err, errno == ENOENT ? FW_ENOTFOUND : sqlite_path_code(errno), "%s: %s: %s", s->path,
			strerror(errno),
			errno == ENOENT ? "run `feedwheel add URL` first, or name another file" : "check the path");
	}
	if (!S_ISREG(sb.st_mode))
		return fw_err_set(err, FW_EINVAL, "%s: not a regular file: name another one", s->path);
	if (faccessat(AT_FDCWD, s->path, R_OK, AT_EACCESS))
		return fw_err_set(err, sqlite_path_code(errno), "%s: %s: check the permissions of the file", s->path,
			strerror(errno));
	return 0;
}

/*
 * One thread at a time: if another one got to SQLite between open() and close() of a new file, the
 * close() would drop its locks. Without them another program takes itself for the last one, deletes
 * the journal, and what this process commits from then on goes into a deleted file.
 */
static int sqlite_file_check(struct sqlite_db *s, const struct fw_store_config *cfg, struct fw_err *err)
{
	static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
	int rc;

	pthread_mutex_lock(&one);
	rc = file_check_locked(s, cfg, err);
	pthread_mutex_unlock(&one);
	return rc;
}

/*
 * Another connection writes: try again in 1 to 5 ms, at random. (SQLite's own handler sleeps longer
 * and longer, so the connection that has waited longest would come last.)
 */
static int sqlite_busy(void *ctx, int n)
{
	struct sqlite_db *s = ctx;
	int64_t now = fw_mono_ms();

	if (n == 0)
		s->busy_since_ms = now;
	if (now - s->busy_since_ms >= s->sql.busy_timeout_ms || store_is_over(&s->sql.store))
		return 0;
	usleep((useconds_t)(1000 + fw_hash64_seed(&now, sizeof(now), (uint64_t)getpid()) % 4000));
	return 1;
}

static int journal_is_wal(void *ctx, int n, char **value, char **name)
{
	(void)name;
	*(bool *)ctx = n == 1 && value[0] && strcmp(value[0], "wal") == 0;
	return 0;
}

/* Called by a statement that runs: not 0 ends it. */
static int sqlite_progress(void *ctx)
{
	return store_is_over(ctx);
}

/*
 * The switch to WAL needs the file exclusively for a moment and does not call the busy handler: try
 * again until busy_timeout_ms.
 */
static int sqlite_wal_enable(struct sqlite_db *s, struct fw_err *err)
{
	int64_t start = fw_mono_ms();
	bool on = false;
	int rc;

	for (;;) {
		rc = sqlite3_exec(s->db, "PRAGMA journal_mode=WAL", journal_is_wal, &on, NULL);
		if ((rc & 0xff) != SQLITE_BUSY || fw_mono_ms() - start >= s->sql.busy_timeout_ms)
			break;
		usleep(5000);
	}
	if (rc != SQLITE_OK)
		return sqlite_failed(s, "opening", err);
	return on ? 0 :
		    fw_err_set(err, FW_EIO,
			    "%s: the file system does not support memory shared between processes: use a local disk",
			    s->path);
}

static int sqlite_settings(struct sqlite_db *s, const struct fw_store_config *cfg, struct fw_err *err)
{
	size_t cache = cfg->page_cache_bytes ? cfg->page_cache_bytes : CACHE_BYTES;
	char sql[400];
	int rc;

	sqlite_checkpoint_setup(s);
	sqlite3_busy_handler(s->db, sqlite_busy, s);
	sqlite3_progress_handler(s->db, PROGRESS_STEPS, sqlite_progress, &s->sql.store);
	sqlite3_extended_result_codes(s->db, 1);
	if (!fw_snprintf(sql, sizeof(sql),
		    "PRAGMA page_size=%d; PRAGMA cache_size=-%zu; PRAGMA temp_store=MEMORY; PRAGMA trusted_schema=0; "
		    "PRAGMA foreign_keys=0; PRAGMA secure_delete=FAST",
		    SQLITE_PAGE_BYTES, cache / 1024))
		return fw_err_set(err, FW_EINVAL, "%s: page_cache_bytes out of range", s->path);
	rc = s->sql.dialect->script(&s->sql, sql, err);
	if (rc || s->sql.read_only || s->memory)
		return rc;
	rc = sqlite_wal_enable(s, err);
	(void)fw_snprintf(sql, sizeof(sql), "PRAGMA synchronous=%s; PRAGMA journal_size_limit=%d",
		s->sql.async_commit ? "NORMAL" : "FULL", SQLITE_WAL_BYTES);
	rc = rc ? rc : s->sql.dialect->script(&s->sql, sql, err);
	return rc ? rc : sqlite_checkpoint_open(s, err);
}

/* Read the version of the schema, 0 for an empty file. FW_EINVAL: a database of another program. */
static int sqlite_read_version(struct sql *s, int64_t *version, struct fw_err *err)
{
	int64_t tables, ours = 0;
	int rc = sql_query_int(s, "SELECT count(*) FROM sqlite_schema", SQL_NONE, 0, &tables, err);

	rc = rc ? rc :
		  sql_query_int(s, "SELECT count(*) FROM sqlite_schema WHERE name = 'meta'", SQL_NONE, 0, &ours, err);
	if (!rc && tables && !ours)
		return fw_err_set(
			err, FW_EINVAL, "%s: an SQLite database of another program: name another file", s->name);
	return rc ? rc : sql_schema_version(s, ours > 0, version, err);
}

static int sqlite_tables_lock(struct sql *s, struct fw_err *err)
{
	return s->dialect->begin(s, err);
}

static int sqlite_open_as(const struct store_driver *driver, const struct fw_store_config *cfg, bool memory,
	struct store **out, struct fw_err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	static const struct sql_tables_open TABLES = {
		.read_version = sqlite_read_version,
		.lock = sqlite_tables_lock,
		.unlock = sql_end,
		.search = sqlite_search_tables,
		.doors = sqlite_doors,
	};
	struct sqlite_db *s = calloc(1, sizeof(*s));
	bool changed, create;
	int rc;

	if (!s)
		return fw_no_memory(err);
	pthread_once(&once, sqlite_configure);
	sql_init(&s->sql, driver, &sqlite_dialect, cfg);
	s->sql.read_only &= !memory;
	create = memory || ((cfg->flags & FW_STORE_CREATE) && !s->sql.read_only);
	s->memory = memory;
	s->path = fw_str_dup(memory ? FW_STR(":memory:") : fw_store_url_rest(cfg->url));
	s->sql.name = s->path;
	rc = !s->path ? fw_no_memory(err) : memory ? 0 : sqlite_file_check(s, cfg, err);
	if (!rc &&
		sqlite3_open_v2(s->path, &s->db,
			SQLITE_OPEN_NOMUTEX | (s->sql.read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE) |
				(create ? SQLITE_OPEN_CREATE : 0),
			NULL) != SQLITE_OK)
		rc = sqlite_failed(s, "opening", err);
	rc = rc ? rc : sqlite_settings(s, cfg, err);
	rc = rc ? rc : sql_tables_open(&s->sql, create, &TABLES, err);
	rc = rc ? rc : sqlite_changed(s, &changed, err);
	if (rc)
		sqlite_close(&s->sql.store);
	else
		*out = &s->sql.store;
	return rc;
}

static int sqlite_open(const struct fw_store_config *cfg, struct store **out, struct fw_err *err)
{
	return sqlite_open_as(&store_sqlite, cfg, false, out, err);
}

static int sqlite_memory_open(const struct fw_store_config *cfg, struct store **out, struct fw_err *err)
{
	if (fw_store_url_rest(cfg->url).len)
		return fw_err_set(err, FW_EINVAL, "store \"%.200s\": nothing may follow \"memory:\"", cfg->url);
	return sqlite_open_as(&store_memory, cfg, true, out, err);
}

/* clang-format off */
#define DRIVER(scheme, opened) { \
	.name = scheme, .schemes = (const char *const[]){scheme, NULL}, .open = (opened), .close = sqlite_close, \
	.inspect = sqlite_inspect, .wait = sqlite_wait, SQL_SLOTS}
/* clang-format on */

const struct store_driver store_sqlite = DRIVER("sqlite", sqlite_open);
const struct store_driver store_memory = DRIVER("memory", sqlite_memory_open);
