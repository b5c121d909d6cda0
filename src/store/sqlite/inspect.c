/* SPDX-License-Identifier: ISC */
/* Findings of `doctor` and `check` about an SQLite store, and waiting for changes by others. */
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/clock.h"
#include "store/sqlite/sqlite.h"

#define DISK_LOW_MIB 512
#define DISK_FULL_MIB 16
#define WAIT_FIRST_MS 50
#define WAIT_LAST_MS 1000

/* ---- deep check ----------------------------------------------------------------------------- */

/*
 * Check the search index itself. The check is an INSERT, so a store opened for reading skips it.
 */
static int inspect_fts(struct sqlite_db *s, fw_inspect_cb *cb, void *ctx, struct fw_err *err)
{
	int rc = s->sql.read_only ?
		0 :
		sql_exec(&s->sql, "INSERT INTO entries_fts (entries_fts) VALUES ('integrity-check')", SQL_NONE, err);

	if (!rc || (sqlite3_errcode(s->db) & 0xff) != SQLITE_CORRUPT)
		return rc;
	cb(ctx, "search", 2, "search index: damaged", "restore a backup");
	return 0;
}

struct inspect_findings {
	fw_inspect_cb *cb;
	void *ctx;
};

static int inspect_page_row(void *ctx, const struct sql_row *row)
{
	const struct inspect_findings *f = ctx;
	char text[500];

	(void)fw_snprintf(
		text, sizeof(text), "file: %.*s", FW_STR_ARG(fw_str_sub(sql_str(row, 0), 0, sizeof(text) - 7)));
	f->cb(f->ctx, "file", 2, text, "restore a backup");
	return 0;
}

static int inspect_file(struct sqlite_db *s, fw_inspect_cb *cb, void *ctx, struct fw_err *err)
{
	int rc = sql_query(&s->sql,
		"SELECT integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok' LIMIT 20", SQL_NONE,
		inspect_page_row, &(struct inspect_findings){cb, ctx}, err);

	rc = rc ? rc : sql_check(&s->sql, "BEGIN", NULL, cb, ctx, err);
	return rc ? rc : inspect_fts(s, cb, ctx, err);
}

/* ---- environment ----------------------------------------------------------------------------- */

/* Free space on the disk of the store. Skipped if it cannot be read. */
static void inspect_disk(const struct sqlite_db *s, fw_inspect_cb *cb, void *ctx)
{
	struct statvfs v;
	char text[100];
	int64_t mib;

	if (statvfs(s->path, &v))
		return;
	mib = (int64_t)((uint64_t)v.f_bavail * v.f_frsize >> 20);
	(void)fw_snprintf(text, sizeof(text), "%lld MiB free", (long long)mib);
	cb(ctx, "disk",
		mib < DISK_FULL_MIB        ? 2 :
			mib < DISK_LOW_MIB ? 1 :
					     0,
		text, mib < DISK_LOW_MIB ? "free some: when the disk is full, fetched and pushed entries wait" : "");
}

/* The store holds passwords of feeds and secrets of hubs. Skipped if the mode cannot be read. */
static void inspect_mode(const struct sqlite_db *s, fw_inspect_cb *cb, void *ctx)
{
	struct stat sb;
	char text[100];

	if (stat(s->path, &sb) || !(sb.st_mode & 077))
		return;
	(void)fw_snprintf(text, sizeof(text),
		"other users can open the file (mode %04o), which holds passwords and secrets",
		(unsigned)sb.st_mode & 07777);
	cb(ctx, "permissions", 1, text, "chmod 600 the file and those with -wal, -shm and -checkpoint beside it");
}

static int inspect_journal_row(void *ctx, const struct sql_row *row)
{
	*(bool *)ctx = fw_str_eq(sql_str(row, 0), FW_STR("wal"));
	return 0;
}

/* Our processes take turns (checkpoint.c); other programs do not know that lock. */
static void inspect_version(int version, fw_inspect_cb *cb, void *ctx)
{
	if (sqlite_loses_commits(version))
		cb(ctx, "engine", 1,
			"this SQLite (3.7.0 to 3.51.2) can lose commits when two programs checkpoint a file at once; "
			"feedwheel's processes take turns",
			"other programs that write must set PRAGMA wal_autocheckpoint = 0: see feedwheel-store(7)");
}

static int inspect_settings(struct sqlite_db *s, fw_inspect_cb *cb, void *ctx, struct fw_err *err)
{
	int64_t page_bytes;
	char text[100];
	bool wal = false;
	int rc = sql_query(&s->sql, "PRAGMA journal_mode", SQL_NONE, inspect_journal_row, &wal, err);

	rc = rc ? rc : sql_query_int(&s->sql, "PRAGMA page_size", SQL_NONE, 0, &page_bytes, err);
	if (rc)
		return rc;
	(void)fw_snprintf(
		text, sizeof(text), "SQLite %s, pages of %lld bytes", sqlite3_libversion(), (long long)page_bytes);
	cb(ctx, "engine", 0, text, "");
	if (!s->memory)
		inspect_version(sqlite3_libversion_number(), cb, ctx);
	if (s->memory) {
		cb(ctx, "durability", 1, "in memory only: lost when this process ends",
			"use a file: sqlite:/path/feeds.db");
		return 0;
	}
	if (!wal)
		cb(ctx, "durability", 1,
			"the journal is not a write-ahead log: readers and writers wait for each other",
			"'feedwheel run' switches it to WAL");
	else if (s->sql.async_commit)
		cb(ctx, "durability", 1,
			"async_commit: a power failure may lose the visits of the last seconds; a crash loses none",
			"set async_commit = no, unless this is intended");
	else
		cb(ctx, "durability", 0, "a stored visit is on the disk", "");
	inspect_disk(s, cb, ctx);
	inspect_mode(s, cb, ctx);
	return 0;
}

int sqlite_inspect(struct store *st, bool deep, fw_inspect_cb *cb, void *ctx, struct fw_err *err)
{
	struct sqlite_db *s = sqlite_db(sql_of(st));

	return deep ? inspect_file(s, cb, ctx, err) : inspect_settings(s, cb, ctx, err);
}

/* ---- waiting --------------------------------------------------------------------------------- */

/*
 * PRAGMA data_version changes with each commit of another connection, and costs no disk access.
 * Only then is `changes` read, and the last ids of the inbox, which other programs do not count in
 * `changes`.
 */
int sqlite_changed(struct sqlite_db *s, bool *changed, struct fw_err *err)
{
	int64_t version, changes, inbox_id = s->inbox_id;
	int rc = sql_query_int(&s->sql, "PRAGMA data_version", SQL_NONE, 0, &version, err);

	*changed = false;
	if (rc || version == s->data_version)
		return rc;
	rc = sql_query_int(&s->sql, "SELECT value FROM meta WHERE name = 'changes'", SQL_NONE, 0, &changes, err);
	if (!rc && s->sql.schema >= SQL_SCHEMA_INBOX)
		rc = sql_query_int(&s->sql,
			"SELECT sum(seq) FROM sqlite_sequence WHERE name IN ('feeds_to_fetch', 'control')", SQL_NONE, 0,
			&inbox_id, err);
	if (rc)
		return rc;
	*changed = changes != s->changes || inbox_id != s->inbox_id;
	s->inbox_id = inbox_id;
	s->data_version = version;
	s->changes = changes;
	return 0;
}

int sqlite_wait(struct store *st, int wake_fd, int64_t timeout_ms, bool *changed, struct fw_err *err)
{
	struct sqlite_db *s = sqlite_db(sql_of(st));
	int64_t end = fw_mono_ms() + timeout_ms, step = WAIT_FIRST_MS;

	for (;;) {
		struct pollfd p = {.fd = wake_fd, .events = POLLIN};
		int rc = sqlite_changed(s, changed, err);
		int64_t left = end - fw_mono_ms();

		if (rc || *changed || left <= 0)
			return rc;
		if (poll(&p, 1, (int)FW_MIN(s->memory ? INT_MAX : step, left)) > 0)
			return 0;
		step = FW_MIN(step * 5 / 4, WAIT_LAST_MS);
	}
}
