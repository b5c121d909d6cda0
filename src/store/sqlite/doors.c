/* SPDX-License-Identifier: ISC */
/*
 * What users may write of a feed: v_feeds takes an UPDATE of some columns, and refuses all else.
 * Each change does what its command does: `feedwheel set`, `pause`, `resume` or `fetch-now`.
 */
#include "store/sqlite/sqlite.h"

#define REMEDY ": an UPDATE may set title, folder, interval_ms, status and due_at"
#define CHANGED(column) "NEW." column " IS NOT OLD." column
#define REFUSE(condition, text) " WHEN " condition " THEN RAISE(ABORT, '" text "')"
#define READ_ONLY(column) REFUSE(CHANGED(column), "v_feeds." column " cannot be written" REMEDY)
#define POSITION "(SELECT position FROM feeds WHERE id = OLD.id)"
#define RESUMED "(" CHANGED("status") " AND NEW.status = 'active')"
#define RESCHEDULED "(" CHANGED("status") " OR " CHANGED("due_at") " OR " CHANGED("interval_ms") ")"

const char *const sqlite_doors[] = {
	"CREATE TRIGGER v_feeds_insert INSTEAD OF INSERT ON v_feeds BEGIN"
	" SELECT RAISE(ABORT, 'v_feeds takes no INSERT: add a feed by INSERT INTO feeds_to_fetch (url, folder)'); END",
	"CREATE TRIGGER v_feeds_delete INSTEAD OF DELETE ON v_feeds BEGIN"
	" SELECT RAISE(ABORT, 'v_feeds takes no DELETE: remove a feed with `feedwheel remove`'); END",
	/* clang-format off */
	"CREATE TRIGGER v_feeds_update INSTEAD OF UPDATE ON v_feeds BEGIN SELECT CASE"
	READ_ONLY("id") READ_ONLY("url") READ_ONLY("why") READ_ONLY("last_visit") READ_ONLY("http_status")
	READ_ONLY("last_visit_at") READ_ONLY("last_ok_at") READ_ONLY("last_new_at") READ_ONLY("fail_n")
	READ_ONLY("error") READ_ONLY("expect_ms") READ_ONLY("home_page_url") READ_ONLY("description")
	READ_ONLY("language") READ_ONLY("icon") READ_ONLY("hub") READ_ONLY("redirect_url") READ_ONLY("created_at")
	READ_ONLY("extra")
	REFUSE(CHANGED("status") " AND coalesce(NEW.status, '') NOT IN ('active', 'paused')",
		"v_feeds.status: write active or paused")
	REFUSE(CHANGED("interval_ms") " AND coalesce(typeof(NEW.interval_ms) <> 'integer' OR NEW.interval_ms < 0, 0)",
		"v_feeds.interval_ms: write milliseconds, or 0 to adapt to the feed")
	REFUSE(CHANGED("due_at") " AND coalesce(NEW.due_at, 'now') <> 'now' AND (julianday(NEW.due_at) IS NULL"
		" OR NEW.due_at NOT GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*')",
		"v_feeds.due_at: write a time such as 2026-11-28T10:00:00Z, or now")
	" END;"
	" UPDATE schedule SET due_at_ms = CASE"
	" WHEN " CHANGED("due_at") " AND coalesce(NEW.due_at, 'now') = 'now' THEN 1"
	" WHEN " CHANGED("due_at") " THEN"
	" max(1, CAST(round((julianday(NEW.due_at) - 2440587.5) * 86400000) AS INTEGER))"
	" WHEN " RESUMED " THEN {now}"
	" WHEN " CHANGED("interval_ms") " AND NEW.interval_ms > 0 AND fail_n = 0"
	" THEN min(due_at_ms, max(last_visit_ms + NEW.interval_ms, {now})) ELSE due_at_ms END,"
	" crash_n = CASE WHEN " RESUMED " THEN 0 ELSE crash_n END,"
	" status = CASE WHEN " RESUMED " THEN 0 WHEN " CHANGED("status") " THEN 1 ELSE status END"
	" WHERE position = " POSITION " AND " RESCHEDULED ";"
	" UPDATE feeds SET user_title = CASE WHEN " CHANGED("title") " THEN NEW.title ELSE user_title END,"
	" folder = NEW.folder, interval_ms = coalesce(NEW.interval_ms, 0) WHERE id = OLD.id;"
	" UPDATE shards SET version = version + 1 WHERE shard = " POSITION " >> 53 AND " RESCHEDULED ";"
	" UPDATE meta SET value = value + 1 WHERE name = 'changes' AND " RESCHEDULED "; END",
	/* clang-format on */
	NULL,
};
