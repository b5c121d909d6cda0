/* SPDX-License-Identifier: ISC */
/*
 * The schema on MariaDB and MySQL, as numbered steps. Step i brings a database from version i to i + 1; numbers.schema holds the
 * version. All run under a named lock, so that ten processes may start at once. A CREATE TABLE is a transaction of its own there, so
 * a kill may leave a step half done: each statement of a step is one that may be made again, and the version is raised last.
 *
 * A step that was released is never edited. Tables and columns are described for people in feedwheel-store(7).
 *
 * InnoDB keeps rows in the order of the primary key. So that of `queue` is the time and the feed; `wheel` goes by feed; `loans`, `visits`
 * and `entries` grow at their end. Where the shape differs from SQLite's there is a view with the shared name: `leases` and `claims`
 * over `loans`, `meta` over `numbers` and `counters`.
 */
#include "base/hash.h"
#include "store/maria.h"

#define ENGINE " ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
#define N "BIGINT NOT NULL DEFAULT 0"
#define N4 "INT UNSIGNED NOT NULL DEFAULT 0"
#define N2 "SMALLINT NOT NULL DEFAULT 0"

static const char *const step1[] = {
	"CREATE TABLE IF NOT EXISTS feeds ("
	" id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,"
	" url TEXT NOT NULL, url_hash BINARY(16) NOT NULL, host_id BIGINT NOT NULL,"
	" title MEDIUMTEXT, home_page_url MEDIUMTEXT, description MEDIUMTEXT, language MEDIUMTEXT, icon MEDIUMTEXT,"
	" format " N ", hub MEDIUMTEXT, topic MEDIUMTEXT, extra LONGTEXT, rhythm MEDIUMTEXT,"
	" validator_url MEDIUMTEXT, etag MEDIUMBLOB, last_modified MEDIUMBLOB, validators_ms " N ", body_hash " N ","
	" redirect_url MEDIUMTEXT, redirect_since_ms " N ", redirect_n " N ", error MEDIUMTEXT,"
	" user_title MEDIUMTEXT, folder MEDIUMTEXT, username MEDIUMTEXT, password MEDIUMTEXT, interval_ms " N ","
	" created_ms BIGINT NOT NULL,"
	" UNIQUE KEY feeds_url (url_hash), KEY feeds_host (host_id))" ENGINE,
	"CREATE TABLE IF NOT EXISTS wheel ("
	" feed_id BIGINT NOT NULL PRIMARY KEY, due_at_ms " N ", status " N2 ", last_kind " N2 ", http_status " N2 ","
	" fail_n " N4 ", crash_n " N4 ", last_visit_ms " N ", last_ok_ms " N ", last_new_ms " N ", expect_us " N ","
	" expect_dev_us " N ", why TEXT, last_visit_id " N ", last_fence " N ")" ENGINE,
	/* due_at_ms is set when wake_at_ms is another time, and then the feed is in `moved` too, by which it is found */
	"CREATE TABLE IF NOT EXISTS queue ("
	" wake_at_ms BIGINT NOT NULL, feed_id BIGINT NOT NULL, host_id BIGINT NOT NULL, due_at_ms BIGINT,"
	" PRIMARY KEY (wake_at_ms, feed_id))" ENGINE,
	"CREATE TABLE IF NOT EXISTS moved ("
	" feed_id BIGINT NOT NULL PRIMARY KEY, wake_at_ms BIGINT NOT NULL, due_at_ms BIGINT NOT NULL)" ENGINE,
	"CREATE TABLE IF NOT EXISTS parked ("
	" host_id BIGINT NOT NULL, due_at_ms BIGINT NOT NULL, feed_id BIGINT NOT NULL,"
	" PRIMARY KEY (host_id, due_at_ms, feed_id))" ENGINE,
	"CREATE TABLE IF NOT EXISTS loans ("
	" id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, until_ms BIGINT NOT NULL, touched TINYINT NOT NULL DEFAULT 0,"
	" worker VARBINARY(255) NOT NULL, lent MEDIUMBLOB NOT NULL, body MEDIUMTEXT NOT NULL,"
	" KEY loans_until (until_ms), KEY loans_worker (worker))" ENGINE,
	"CREATE OR REPLACE VIEW leases AS SELECT CAST((l.id << 20) + j.i - 1 AS SIGNED) AS fence, j.feed_id, w.due_at_ms, j.host_id"
	" FROM " MR_OUT " LEFT JOIN wheel w ON w.feed_id = j.feed_id",
	"CREATE OR REPLACE VIEW claims AS SELECT CAST(id << 20 AS SIGNED) AS first_fence,"
	" CAST((id << 20) + length(lent) - 1 AS SIGNED) AS last_fence, until_ms, worker FROM loans",
	"CREATE TABLE IF NOT EXISTS hosts ("
	" id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARBINARY(255), feed_n " N ", busy_n " N ", turn_n " N ","
	" parked_n " N ", next_ok_ms " N ", UNIQUE KEY hosts_name (name))" ENGINE,
	/* every key a feed ever had; entry_id is 0 when retention took the entry, which its feed may still list */
	"CREATE TABLE IF NOT EXISTS entry_keys ("
	" feed_id BIGINT NOT NULL, `key` BINARY(16) NOT NULL, hash BIGINT NOT NULL, entry_id BIGINT NOT NULL,"
	" PRIMARY KEY (feed_id, `key`))" ENGINE,
	"CREATE TABLE IF NOT EXISTS entries ("
	" id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, feed_id BIGINT NOT NULL, date_ms BIGINT NOT NULL,"
	" seen_ms BIGINT NOT NULL, changed_ms BIGINT NOT NULL, revision BIGINT NOT NULL, published_ms BIGINT, updated_ms BIGINT,"
	" content_type BIGINT NOT NULL, guid MEDIUMTEXT, url MEDIUMTEXT, title MEDIUMTEXT, author MEDIUMTEXT,"
	" content_base MEDIUMTEXT, summary LONGTEXT, extra LONGTEXT, content LONGTEXT, KEY entries_date (date_ms))" ENGINE,
	/* a visit names the one before it, so that a feed's visits are a chain and need no index */
	"CREATE TABLE IF NOT EXISTS visits ("
	" id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, previous_id " N ", feed_id " N ", run_id " N ", at_ms " N ","
	" kind " N2 ", http_status " N2 ", hops " N4 ", slot INT NOT NULL DEFAULT 0, lateness_ms " N4 ", dns_us " N ", connect_us " N ","
	" tls_us " N ", first_byte_us " N ", total_us " N ", parse_us " N ", wire_bytes " N ", body_bytes " N ", item_n " N4 ","
	" new_n " N4 ", changed_n " N4 ", error MEDIUMTEXT)" ENGINE,
	"CREATE TABLE IF NOT EXISTS runs (run_id BIGINT NOT NULL PRIMARY KEY, first_visit_id BIGINT NOT NULL)" ENGINE,
	"CREATE TABLE IF NOT EXISTS workers ("
	" worker VARBINARY(255) NOT NULL PRIMARY KEY, pid BIGINT NOT NULL, started_ms BIGINT NOT NULL, run_id BIGINT NOT NULL,"
	" visits BIGINT NOT NULL, new_entries BIGINT NOT NULL, failures BIGINT NOT NULL, in_flight BIGINT NOT NULL,"
	" slots BIGINT NOT NULL, at_ms BIGINT NOT NULL)" ENGINE,
	"CREATE TABLE IF NOT EXISTS controls ("
	" id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, kind BIGINT NOT NULL, created_ms BIGINT NOT NULL)" ENGINE,
	/* entries and visits are counted in several rows, so that commits do not wait for each other */
	"CREATE TABLE IF NOT EXISTS counters (slot BIGINT NOT NULL PRIMARY KEY, entry_n BIGINT NOT NULL, visit_n BIGINT NOT NULL)" ENGINE,
	"CREATE OR REPLACE VIEW meta AS SELECT name, value FROM numbers"
	" UNION ALL SELECT 'entry_n', CAST(coalesce(sum(entry_n), 0) AS SIGNED) FROM counters"
	" UNION ALL SELECT 'visit_n', CAST(coalesce(sum(visit_n), 0) AS SIGNED) FROM counters",
	/* which entries hold a word: a row for each step of indexing that met it */
	"CREATE TABLE IF NOT EXISTS words ("
	" word VARBINARY(64) NOT NULL, step BIGINT NOT NULL, entries MEDIUMBLOB NOT NULL, PRIMARY KEY (word, step))" ENGINE,
	/* entries to be indexed again, and numbers that were not there when the index came by */
	"CREATE TABLE IF NOT EXISTS reindex (entry_id BIGINT NOT NULL PRIMARY KEY, since_ms BIGINT NOT NULL, KEY reindex_since (since_ms))"
	ENGINE,
	/* removed entries that the index of words may still name */
	"CREATE TABLE IF NOT EXISTS gone (entry_id BIGINT NOT NULL PRIMARY KEY)" ENGINE,
	"INSERT IGNORE INTO numbers (name, value) VALUES ('indexed_entry_id', 0), ('changes', 0), ('index_step', 0)",
	NULL,
};

/*
 * A view with JSON_TABLE in it names its database in every dump, and could be restored in no other one. So this takes the lists apart
 * by hand: slower, but it is for people. one: the n.i-th of a list, without brackets. As bytes, or each letter would be looked at.
 */
static const char *const step2[] = {
	"CREATE OR REPLACE VIEW leases AS WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)"
	" SELECT CAST((o.id << 20) + o.i - 1 AS SIGNED) AS fence, CAST(substring_index(o.one, ',', 1) AS SIGNED) AS feed_id, w.due_at_ms,"
	" CAST(substring_index(substring_index(o.one, ',', 2), ',', -1) AS SIGNED) AS host_id"
	" FROM (SELECT l.id, n.i, substring_index(substring_index(CAST(l.body AS BINARY), ']', n.i), '[', -1) AS one"
	" FROM loans l JOIN n ON substr(l.lent, n.i, 1) = '1') o"
	" LEFT JOIN wheel w ON w.feed_id = CAST(substring_index(o.one, ',', 1) AS SIGNED)",
	NULL,
};

/* 2 -> 3: what is pushed */
static const char *const step3[] = {
	"CREATE TABLE IF NOT EXISTS incoming ("
	" id BIGINT NOT NULL PRIMARY KEY, property VARCHAR(255) NOT NULL, property_section BIGINT NOT NULL, property_id BIGINT NOT NULL,"
	" remote_ip VARCHAR(45) NOT NULL, stamp BIGINT NOT NULL)" ENGINE,
	"CREATE TABLE IF NOT EXISTS incoming_dead ("
	" id BIGINT NOT NULL PRIMARY KEY, `row` MEDIUMTEXT NOT NULL, reason MEDIUMTEXT NOT NULL, at_ms BIGINT NOT NULL)" ENGINE,
	NULL,
};

/* 3 -> 4: records; their ends are looked for */
static const char *const step4[] = {
	"CREATE TABLE IF NOT EXISTS records ("
	" kind VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, `key` VARBINARY(255) NOT NULL, value MEDIUMBLOB NOT NULL,"
	" at_ms BIGINT NOT NULL, until_ms BIGINT, PRIMARY KEY (kind, `key`), KEY records_until (until_ms))" ENGINE,
	NULL,
};

/* Columns for a table that has been there: all of them, or all are there already. Both servers do that without touching a row. */
#define ADD(table, first, columns) \
	"SET @feedwheel = IF((SELECT count(*) FROM information_schema.columns WHERE table_schema = database() AND table_name = '" table \
	"' AND column_name = '" first "') > 0, 'DO 0', 'ALTER TABLE " table " ADD COLUMN (" first " " columns ")')", \
	"PREPARE feedwheel FROM @feedwheel", "EXECUTE feedwheel", "DEALLOCATE PREPARE feedwheel"

/* 4 -> 5: what is learned of hosts, and who borrows ahead; what visits consist of; till when a hub has promised to push */
static const char *const step5[] = {
	ADD("feeds", "push_until_ms", N),
	ADD("wheel", "expect_parts", N),
	ADD("visits", "queue_us", N ", store_us " N),
	ADD("hosts", "pace_ms", N ", expect_us " N ", cool_until_ms " N ", holder " N),
	NULL,
};

/* 5 -> 6: whose budget a feed uses, where its address does not say it */
static const char *const step6[] = {
	ADD("feeds", "host_key", "MEDIUMTEXT"),
	NULL,
};

static const char *const *const steps[MR_SCHEMA] = {step1, step2, step3, step4, step5, step6};

/* Where the database stands: *version, 0 for an empty one; or the reason why it is none of ours. */
static int look(struct maria *m, int64_t *version, struct fw_err *err)
{
	int64_t tables = 0, ours = 0;
	struct mr_res r;
	int rc = mr_ask(m, &r, err, "SELECT count(*), sum(table_name = 'numbers') FROM information_schema.tables"
		" WHERE table_schema = database()", "");

	*version = 0;
	if (!rc && mr_row(&r)) {
		tables = mr_int(&r, 0);
		ours = mr_int(&r, 1); /* its making begins with this table */
		mr_done(&r);
	}
	if (!rc && ours)
		rc = mr_number(m, 0, version, err, "SELECT value FROM numbers WHERE name = 'schema'", "");
	if (rc)
		return rc;
	if (tables && !ours)
		return fw_err_set(err, FW_EINVAL, "%s: a database of another program: name another one", m->name);
	if (*version > MR_SCHEMA)
		return fw_err_set(err, FW_EVERSION, "%s: schema %lld is newer than this program (schema %d): upgrade feedwheel", m->name,
			(long long)*version, MR_SCHEMA);
	return 0;
}

static int steps_run(struct maria *m, struct fw_err *err)
{
	int64_t version;
	int rc = look(m, &version, err); /* again: another process may have been first */

	if (!rc && !version)
		mr_put(m, "CREATE TABLE IF NOT EXISTS numbers (name VARCHAR(64) NOT NULL PRIMARY KEY, value BIGINT NOT NULL)" ENGINE, "");
	for (int64_t i = version; i < MR_SCHEMA && !rc; i++) {
		for (const char *const *sql = steps[i]; *sql; sql++)
			mr_put(m, *sql, "");
		mr_put(m, "INSERT INTO numbers (name, value) VALUES ('schema', ?) ON DUPLICATE KEY UPDATE value = VALUES(value)", "i", i + 1);
		rc = mr_flush(m, err);
	}
	return rc;
}

int64_t mr_lock_number(const struct maria *m)
{
	return (int64_t)(fw_hash64(m->schema, strlen(m->schema)) >> 1);
}

int mr_migrate(struct maria *m, bool create, bool no_migrate, struct fw_err *err)
{
	struct fw_err spare;
	int64_t version, got = 0;
	int rc = look(m, &version, err);

	if (rc || version == MR_SCHEMA)
		return rc;
	if (version == 0 && (!create || m->read_only))
		return fw_err_set(err, FW_ENOTFOUND, "%s: empty, no feeds were ever stored here: begin with `feedwheel add URL`", m->name);
	if (m->read_only || (no_migrate && version))
		return fw_err_set(err, FW_EVERSION, "%s: schema %lld is older than this program's %d: `feedwheel run` upgrades it", m->name,
			(long long)version, MR_SCHEMA);
	rc = mr_number(m, 0, &got, err, "SELECT get_lock('feedwheel ?', ?)", "ii", mr_lock_number(m),
		FW_MAX(m->busy_timeout_ms / 1000, INT64_C(60)));
	if (!rc && !got)
		return fw_err_set(err, FW_EAGAIN, "%s: another process has been making its tables for a minute: try again", m->name);
	if (rc)
		return rc;
	rc = steps_run(m, err);
	(void)mr_number(m, 0, &got, rc ? &spare : err, "SELECT release_lock('feedwheel ?')", "i", mr_lock_number(m)); /* or the connection's end */
	return rc;
}
