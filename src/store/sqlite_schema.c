/* SPDX-License-Identifier: ISC */
/*
 * The SQLite schema, as numbered steps. Step i brings a file from version i to i + 1; PRAGMA user_version holds the version.
 * All steps that a file lacks run in one transaction, so a kill in the middle leaves the old schema or the new one. Several
 * processes may arrive at once: the first one's lock makes the others wait, and they look at the version again inside it.
 *
 * A step that was released is never edited. Tables and columns are described for people in feedwheel-store(7); a new one
 * goes there too.
 *
 * Layout in one paragraph: `feeds` is what a visit mostly leaves alone (wide). What it changes (narrow) is one row that moves with
 * the feed: each is in exactly one of `line` (waiting for its time), `leases` (lent) and `aside` (waiting for its host, or not
 * active). `line` is in order of time, so a claim takes whole pages from its head, and what comes back goes to the ends of a few
 * slots; a row that lay at the feed's number would be a page of its own among a million, dirtied by each visit. Where in `line` a
 * feed stands is found by `places`, which is brought up to date for many at once (sqlite_places.c).
 */
#include "store/sqlite.h"

#define STATE_DEFINITION \
	" due_at_ms INTEGER NOT NULL, last_kind INTEGER NOT NULL DEFAULT 0, http_status INTEGER NOT NULL DEFAULT 0," \
	" fail_n INTEGER NOT NULL DEFAULT 0, crash_n INTEGER NOT NULL DEFAULT 0, last_visit_ms INTEGER NOT NULL DEFAULT 0," \
	" last_ok_ms INTEGER NOT NULL DEFAULT 0, last_new_ms INTEGER NOT NULL DEFAULT 0, last_visit_id INTEGER NOT NULL DEFAULT 0," \
	" expect_us INTEGER NOT NULL DEFAULT 0, expect_dev_us INTEGER NOT NULL DEFAULT 0, why TEXT"
#define STATE(of) of "due_at_ms, " of "last_kind, " of "http_status, " of "fail_n, " of "crash_n, " of "last_visit_ms, " \
	of "last_ok_ms, " of "last_new_ms, " of "last_visit_id, " of "expect_us, " of "expect_dev_us, " of "why"
#define VISIT(i) " json_extract(j.value, '$[" #i "]')"

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

	/* 2 -> 3: what visits change moves with the feed's place instead of lying at its number, and visits are packed. Every feed is in
	   exactly one of line, leases and aside. wake_at_ms is NULL when it is due_at_ms. */
	"CREATE TABLE line ("
	" id INTEGER PRIMARY KEY, feed_id INTEGER NOT NULL, host_id INTEGER NOT NULL, wake_at_ms INTEGER," STATE_DEFINITION ");"
	"CREATE INDEX line_moved ON line(wake_at_ms) WHERE wake_at_ms IS NOT NULL;"
	"INSERT INTO line SELECT q.id, q.feed_id, q.host_id, CASE WHEN q.due_at_ms IS NOT NULL THEN q.wake_at_ms END, " STATE("w.")
	" FROM queue q JOIN wheel w USING (feed_id) ORDER BY q.id;"
	/* where feeds stand in line (sqlite_places.c): 128 in a row, eight bytes each, low ones first; and feed and place, eight bytes
	   each, of those that got theirs since `places` was written, which to begin with are all */
	"CREATE TABLE places (id INTEGER PRIMARY KEY, places BLOB NOT NULL);"
	"CREATE TABLE moves (id INTEGER PRIMARY KEY AUTOINCREMENT, total_n INTEGER NOT NULL, places BLOB NOT NULL);"
	"CREATE TABLE lent (fence INTEGER PRIMARY KEY, feed_id INTEGER NOT NULL, host_id INTEGER NOT NULL, status INTEGER NOT NULL,"
	STATE_DEFINITION ");"
	"INSERT INTO lent SELECT l.fence, l.feed_id, l.host_id, w.status, " STATE("w.") " FROM leases l JOIN wheel w USING (feed_id)"
	" ORDER BY l.fence;"
	/* host_id is set for those that are parked */
	"CREATE TABLE aside (feed_id INTEGER PRIMARY KEY, host_id INTEGER NOT NULL, status INTEGER NOT NULL," STATE_DEFINITION ");"
	"INSERT INTO aside SELECT p.feed_id, p.host_id, 0, " STATE("w.") " FROM parked p JOIN wheel w USING (feed_id);"
	"INSERT INTO aside SELECT w.feed_id, 0, w.status, " STATE("w.") " FROM wheel w WHERE feed_id NOT IN (SELECT feed_id FROM queue"
	" UNION ALL SELECT feed_id FROM parked UNION ALL SELECT feed_id FROM leases);"
	"CREATE INDEX aside_parked ON aside(host_id, due_at_ms, feed_id) WHERE host_id > 0;"
	"DROP TABLE queue; DROP TABLE parked; DROP TABLE leases; DROP TABLE wheel;"
	"ALTER TABLE lent RENAME TO leases;"
	/* touched: a lease of it is not as the claim wrote it */
	"ALTER TABLE claims ADD COLUMN touched INTEGER NOT NULL DEFAULT 0;"
	"CREATE VIEW queue AS SELECT id, coalesce(wake_at_ms, due_at_ms) AS wake_at_ms, feed_id, host_id,"
	" CASE WHEN wake_at_ms IS NOT NULL THEN due_at_ms END AS due_at_ms FROM line;"
	"CREATE VIEW parked AS SELECT host_id, due_at_ms, feed_id FROM aside WHERE host_id > 0;"
	"CREATE VIEW wheel AS SELECT feed_id, 0 AS status, " STATE("") " FROM line"
	" UNION ALL SELECT feed_id, status, " STATE("") " FROM leases UNION ALL SELECT feed_id, status, " STATE("") " FROM aside;"

	/* one row a commit; a visit is an array of numbers and the words of its error, and its id the row's id << 10 | its place */
	"ALTER TABLE visits RENAME TO visit_rows;"
	"CREATE TABLE visit_batches (id INTEGER PRIMARY KEY, run_id INTEGER NOT NULL, first_ms INTEGER NOT NULL, last_ms INTEGER NOT NULL,"
	" n INTEGER NOT NULL, visits TEXT NOT NULL);"
	"UPDATE meta SET value = max(value, coalesce((SELECT max(id) >> 10 FROM visit_rows), 0)) WHERE name = 'last_number';"
	"CREATE VIEW visits AS SELECT id, feed_id, previous_id, run_id, at_ms, kind, http_status, hops, slot, lateness_ms, dns_us,"
	" connect_us, tls_us, first_byte_us, total_us, parse_us, wire_bytes, body_bytes, item_n, new_n, changed_n, error FROM visit_rows"
	" UNION ALL SELECT b.id << 10 | j.key," VISIT(1) " AS feed_id," VISIT(0) " AS previous_id, b.run_id, b.first_ms +" VISIT(2) ","
	VISIT(3) "," VISIT(4) "," VISIT(5) "," VISIT(6) "," VISIT(7) "," VISIT(8) "," VISIT(9) "," VISIT(10) "," VISIT(11) "," VISIT(12) ","
	VISIT(13) "," VISIT(14) "," VISIT(15) "," VISIT(16) "," VISIT(17) "," VISIT(18) "," VISIT(19)
	" FROM visit_batches b, json_each(b.visits) j WHERE EXISTS (SELECT 1 FROM feeds WHERE id = " VISIT(1) ");"
	"INSERT INTO meta VALUES ('merged_move', 0);"
	/* of those stored from now on: with it an entry is found in entry_keys */
	"ALTER TABLE entries ADD COLUMN key BLOB;"
	/* words are folded before (fold.c), and the marks that are left belong to them */
	"DROP TABLE entries_fts;"
	"CREATE VIRTUAL TABLE entries_fts USING fts5(title, body, content='', columnsize=0,"
	" tokenize='unicode61 remove_diacritics 2 categories ''L* N* M* Co''');"
	"INSERT INTO entries_fts(entries_fts, rank) VALUES ('hashsize', 8000000), ('pgsz', 4050), ('automerge', 0), ('crisismerge', 1000);"
	"UPDATE meta SET value = 0 WHERE name = 'indexed_entry_id';",
	/* 3 -> 4: what is pushed */
	"CREATE TABLE incoming (id INTEGER PRIMARY KEY, property TEXT NOT NULL, property_section INTEGER NOT NULL,"
	" property_id INTEGER NOT NULL, remote_ip TEXT NOT NULL, stamp INTEGER NOT NULL);"
	"CREATE TABLE incoming_dead (id INTEGER PRIMARY KEY, row TEXT NOT NULL, reason TEXT NOT NULL, at_ms INTEGER NOT NULL);",
	/* 4 -> 5: records; their ends are looked for */
	"CREATE TABLE records (kind TEXT NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL, at_ms INTEGER NOT NULL, until_ms INTEGER,"
	" PRIMARY KEY (kind, key)) WITHOUT ROWID;"
	"CREATE INDEX records_until ON records(until_ms) WHERE until_ms IS NOT NULL;",
	/* 5 -> 6: what plans and politeness need. A packed visit has two numbers more, before its words; older ones lack them. */
	"ALTER TABLE feeds ADD COLUMN push_until_ms INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE line ADD COLUMN expect_parts INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE leases ADD COLUMN expect_parts INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE aside ADD COLUMN expect_parts INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE hosts ADD COLUMN holder INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE hosts ADD COLUMN cool_until_ms INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE hosts ADD COLUMN pace_ms INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE hosts ADD COLUMN expect_us INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE visit_rows ADD COLUMN queue_us INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE visit_rows ADD COLUMN store_us INTEGER NOT NULL DEFAULT 0;"
	"DROP VIEW wheel; DROP VIEW visits;"
	"CREATE VIEW wheel AS SELECT feed_id, 0 AS status, " STATE("") ", expect_parts FROM line"
	" UNION ALL SELECT feed_id, status, " STATE("") ", expect_parts FROM leases"
	" UNION ALL SELECT feed_id, status, " STATE("") ", expect_parts FROM aside;"
	"CREATE VIEW visits AS SELECT id, feed_id, previous_id, run_id, at_ms, kind, http_status, hops, slot, lateness_ms, dns_us,"
	" connect_us, tls_us, first_byte_us, total_us, parse_us, wire_bytes, body_bytes, item_n, new_n, changed_n, queue_us, store_us, error"
	" FROM visit_rows"
	" UNION ALL SELECT b.id << 10 | j.key," VISIT(1) " AS feed_id," VISIT(0) " AS previous_id, b.run_id, b.first_ms +" VISIT(2) ","
	VISIT(3) "," VISIT(4) "," VISIT(5) "," VISIT(6) "," VISIT(7) "," VISIT(8) "," VISIT(9) "," VISIT(10) "," VISIT(11) "," VISIT(12) ","
	VISIT(13) "," VISIT(14) "," VISIT(15) "," VISIT(16) "," VISIT(17) "," VISIT(18) ","
	" iif(typeof(" VISIT(19) ") = 'integer'," VISIT(19) ", 0), coalesce(" VISIT(20) ", 0),"
	" iif(typeof(" VISIT(19) ") = 'text'," VISIT(19) "," VISIT(21) ")"
	" FROM visit_batches b, json_each(b.visits) j WHERE EXISTS (SELECT 1 FROM feeds WHERE id = " VISIT(1) ");",
	/* 6 -> 7: whose budget a feed uses, where its address does not say it */
	"ALTER TABLE feeds ADD COLUMN host_key TEXT;",
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
	if (!rc && version < SQ_SCHEMA)
		rc = sq_places_begin(s, err);
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
