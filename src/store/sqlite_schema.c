/* SPDX-License-Identifier: ISC */
/*
 * The SQLite schema, as numbered steps. Step i brings a file from version i to i + 1; PRAGMA user_version holds the version.
 * All steps that a file lacks run in one transaction, so a kill in the middle leaves the old schema or the new one. Several
 * processes may arrive at once: the first one's lock makes the others wait, and they look at the version again inside it.
 *
 * A step that was released is never edited. Tables and columns are described for people in feedwheel-store(7); a new one
 * goes there too.
 *
 * Layout in one paragraph: `wheel` is what a visit changes (narrow), `feeds` what it mostly leaves alone (wide). Where a feed
 * stands in line is kept apart from both: an active feed is in exactly one of `queue` (waiting for its time), `parked`
 * (waiting for its host) and `leases` (lent). Lending a feed thus moves two short keys in tables whose hot ends fit in a few
 * pages and leaves the wheel row, which lies on a page of its own among a million, to the one write at the end of the visit.
 */
#include "store/sqlite.h"

static const char *const steps[SQ_SCHEMA] = {
	/* 0 -> 1 */
	"CREATE TABLE feeds ("
	" id INTEGER PRIMARY KEY AUTOINCREMENT,"
	" url TEXT NOT NULL UNIQUE,"
	" host_id INTEGER NOT NULL,"
	" title TEXT, home_page_url TEXT, description TEXT, language TEXT, icon TEXT, format INTEGER NOT NULL DEFAULT 0,"
	" hub TEXT, topic TEXT, extra TEXT, rhythm TEXT,"
	" validator_url TEXT, etag TEXT, last_modified TEXT, validators_ms INTEGER NOT NULL DEFAULT 0,"
	" body_hash INTEGER NOT NULL DEFAULT 0,"
	" redirect_url TEXT, redirect_since_ms INTEGER NOT NULL DEFAULT 0, redirect_n INTEGER NOT NULL DEFAULT 0,"
	" error TEXT,"
	" user_title TEXT, folder TEXT, username TEXT, password TEXT, interval_ms INTEGER NOT NULL DEFAULT 0,"
	" created_ms INTEGER NOT NULL);"
	"CREATE INDEX feeds_host ON feeds(host_id);"

	"CREATE TABLE wheel ("
	" feed_id INTEGER PRIMARY KEY,"
	" due_at_ms INTEGER NOT NULL,"
	" status INTEGER NOT NULL DEFAULT 0,"
	" last_kind INTEGER NOT NULL DEFAULT 0,"
	" http_status INTEGER NOT NULL DEFAULT 0,"
	" fail_n INTEGER NOT NULL DEFAULT 0,"
	" crash_n INTEGER NOT NULL DEFAULT 0,"
	" last_visit_ms INTEGER NOT NULL DEFAULT 0,"
	" last_ok_ms INTEGER NOT NULL DEFAULT 0,"
	" last_new_ms INTEGER NOT NULL DEFAULT 0,"
	" last_visit_id INTEGER NOT NULL DEFAULT 0,"
	" expect_us INTEGER NOT NULL DEFAULT 0,"
	" expect_dev_us INTEGER NOT NULL DEFAULT 0,"
	" why TEXT);"

	/* id: wake_at_ms >> 13 (a slot of about 8 s), then a rising number, so that what comes back is appended to its slot;
	   host_id is 0 for the only feed of its host; due_at_ms is set when wake_at_ms is another time */
	"CREATE TABLE queue ("
	" id INTEGER PRIMARY KEY, wake_at_ms INTEGER NOT NULL, feed_id INTEGER NOT NULL, host_id INTEGER NOT NULL,"
	" due_at_ms INTEGER);"
	"CREATE INDEX queue_moved ON queue(wake_at_ms) WHERE due_at_ms IS NOT NULL;"
	"CREATE TABLE parked ("
	" host_id INTEGER NOT NULL, due_at_ms INTEGER NOT NULL, feed_id INTEGER NOT NULL,"
	" PRIMARY KEY (host_id, due_at_ms, feed_id)) WITHOUT ROWID;"
	"CREATE TABLE leases ("
	" fence INTEGER PRIMARY KEY, feed_id INTEGER NOT NULL, due_at_ms INTEGER NOT NULL, host_id INTEGER NOT NULL);"
	"CREATE TABLE claims ("
	" first_fence INTEGER PRIMARY KEY, last_fence INTEGER NOT NULL, until_ms INTEGER NOT NULL, worker TEXT NOT NULL);"
	"CREATE TABLE hosts ("
	" id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, feed_n INTEGER NOT NULL,"
	" busy_n INTEGER NOT NULL DEFAULT 0, turn_n INTEGER NOT NULL DEFAULT 0, parked_n INTEGER NOT NULL DEFAULT 0,"
	" next_ok_ms INTEGER NOT NULL DEFAULT 0);"

	/* every key a feed ever had; entry_id is 0 when retention took the entry, which its feed may still list */
	"CREATE TABLE entry_keys ("
	" feed_id INTEGER NOT NULL, key BLOB NOT NULL, hash INTEGER NOT NULL, entry_id INTEGER NOT NULL,"
	" PRIMARY KEY (feed_id, key)) WITHOUT ROWID;"
	"CREATE TABLE entries ("
	" id INTEGER PRIMARY KEY AUTOINCREMENT,"
	" feed_id INTEGER NOT NULL, date_ms INTEGER NOT NULL, seen_ms INTEGER NOT NULL, changed_ms INTEGER NOT NULL,"
	" revision INTEGER NOT NULL, published_ms INTEGER, updated_ms INTEGER, content_type INTEGER NOT NULL,"
	" guid TEXT, url TEXT, title TEXT, author TEXT, content_base TEXT, summary TEXT,"
	" extra TEXT, content BLOB);"
	"CREATE INDEX entries_date ON entries(date_ms);"
	"CREATE VIRTUAL TABLE entries_fts USING fts5(title, body, content='', columnsize=0, tokenize='unicode61');"
	"INSERT INTO entries_fts(entries_fts, rank) VALUES ('hashsize', 8000000), ('pgsz', 4050);"

	/* a visit names the one before it, so that a feed's visits are a chain and need no index */
	"CREATE TABLE visits ("
	" id INTEGER PRIMARY KEY,"
	" feed_id INTEGER NOT NULL, previous_id INTEGER NOT NULL, run_id INTEGER NOT NULL, at_ms INTEGER NOT NULL,"
	" kind INTEGER NOT NULL, http_status INTEGER NOT NULL, hops INTEGER NOT NULL, slot INTEGER NOT NULL,"
	" lateness_ms INTEGER NOT NULL, dns_us INTEGER NOT NULL, connect_us INTEGER NOT NULL, tls_us INTEGER NOT NULL,"
	" first_byte_us INTEGER NOT NULL, total_us INTEGER NOT NULL, parse_us INTEGER NOT NULL, wire_bytes INTEGER NOT NULL,"
	" body_bytes INTEGER NOT NULL, item_n INTEGER NOT NULL, new_n INTEGER NOT NULL, changed_n INTEGER NOT NULL,"
	" error TEXT);"
	"CREATE TABLE runs (run_id INTEGER PRIMARY KEY, first_visit_id INTEGER NOT NULL);"
	"CREATE TABLE workers ("
	" worker TEXT PRIMARY KEY, pid INTEGER NOT NULL, started_ms INTEGER NOT NULL, run_id INTEGER NOT NULL,"
	" visits INTEGER NOT NULL, new_entries INTEGER NOT NULL, failures INTEGER NOT NULL, in_flight INTEGER NOT NULL,"
	" slots INTEGER NOT NULL, at_ms INTEGER NOT NULL) WITHOUT ROWID;"
	"CREATE TABLE controls (id INTEGER PRIMARY KEY AUTOINCREMENT, kind INTEGER NOT NULL, created_ms INTEGER NOT NULL);"
	"CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
	"INSERT INTO meta VALUES ('indexed_entry_id', 0), ('last_number', 0), ('entry_n', 0), ('visit_n', 0);",

	/* 1 -> 2: other words in the index (words.c), accents of any number dropped, and merging is ours; filled anew by upkeep.
	   The search index of a large store goes in one transaction, which may take some seconds. */
	"DROP TABLE entries_fts;"
	"CREATE VIRTUAL TABLE entries_fts USING fts5(title, body, content='', columnsize=0,"
	" tokenize='unicode61 remove_diacritics 2');"
	"INSERT INTO entries_fts(entries_fts, rank) VALUES ('hashsize', 8000000), ('pgsz', 4050), ('automerge', 0), ('crisismerge', 1000);"
	"UPDATE meta SET value = 0 WHERE name = 'indexed_entry_id';",
};

static int pragma(struct sqlite *s, const char *sql, int64_t *out, struct fw_err *err)
{
	sqlite3_stmt *q = NULL;
	int rc;

	*out = 0;
	if (sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) != SQLITE_OK)
		return sq_error(s, "reading its version", err);
	rc = sqlite3_step(q);
	if (rc == SQLITE_ROW)
		*out = sqlite3_column_int64(q, 0);
	if (sqlite3_finalize(q) != SQLITE_OK)
		return sq_error(s, "reading its version", err);
	return 0;
}

/* Where the file stands: *version, or the reason why it is none of ours. */
static int look(struct sqlite *s, int64_t *version, struct fw_err *err)
{
	int64_t app = 0, tables = 0;
	int rc = pragma(s, "PRAGMA user_version", version, err);

	rc = rc ? rc : pragma(s, "PRAGMA application_id", &app, err);
	rc = rc ? rc : pragma(s, "SELECT count(*) FROM sqlite_schema", &tables, err);
	if (rc)
		return rc;
	if (app != SQ_APPLICATION_ID && (tables || *version))
		return fw_err_set(err, FW_EINVAL, "%s: an SQLite database of another program: name another file", s->path);
	if (*version > SQ_SCHEMA)
		return fw_err_set(err, FW_EVERSION, "%s: schema %lld is newer than this program (schema %d): upgrade feedwheel",
			s->path, (long long)*version, SQ_SCHEMA);
	return 0;
}

static int steps_run(struct sqlite *s, struct fw_err *err)
{
	char sql[100];
	int64_t version;
	int rc = look(s, &version, err); /* again: another process may have been first */

	for (int64_t i = version; i < SQ_SCHEMA && !rc; i++)
		rc = sq_exec(s, steps[i], err);
	if (rc || version == SQ_SCHEMA)
		return rc;
	if (!fw_snprintf(sql, sizeof(sql), "PRAGMA application_id = %d; PRAGMA user_version = %d", SQ_APPLICATION_ID, SQ_SCHEMA))
		return fw_err_set(err, FW_EINVAL, "%s: schema number too long", s->path);
	return sq_exec(s, sql, err);
}

int sq_migrate(struct sqlite *s, bool create, bool no_migrate, struct fw_err *err)
{
	int64_t version;
	int rc = look(s, &version, err);

	if (rc || version == SQ_SCHEMA)
		return rc;
	if (version == 0 && !create)
		return fw_err_set(err, FW_ENOTFOUND, "%s: empty, no feeds were ever stored here: begin with `feedwheel add URL`",
			s->path);
	if (s->read_only || (no_migrate && version))
		return fw_err_set(err, FW_EVERSION, "%s: schema %lld is older than this program's %d: `feedwheel run` upgrades it",
			s->path, (long long)version, SQ_SCHEMA);
	rc = sq_begin(s, err);
	if (rc)
		return rc;
	return sq_end(s, steps_run(s, err), err);
}
