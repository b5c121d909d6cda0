/* SPDX-License-Identifier: ISC */
/*
 * What users may write of a feed. These servers have no triggers on views, and a trigger or a
 * function needs a privilege of the whole server where binary logs are on: so it is a procedure.
 * Each change does what its command does: `feedwheel set`, `pause`, `resume` or `fetch-now`, and is
 * one statement, because the client's transactions are its own.
 *
 * The store works without it. It is created whenever a store is opened for writing and it is
 * missing: a dump may have left it out, and the privilege may come later.
 */
#include <mysqld_error.h>
#include <stdlib.h>

#include "store/mysql/mysql.h"

#define REFUSE(text) " SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = '" text "';"
#define RESCHEDULE(set)                                                                                            \
	" UPDATE feeds f JOIN schedule s ON s.position = f.position JOIN shards h ON h.shard = {shard f.position}" \
	" JOIN meta m ON m.name = 'changes' SET h.version = h.version + 1, m.value = m.value + 1, " set            \
	" WHERE f.id = feed;"
#define TEXT "MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"

/* In a store of schema 4 this view can be written, past all that follows a change. */
const char *const mysql_doors[] = {sql_v_feeds, NULL};

static const char PROCEDURE[] =
	/* clang-format off */
	"CREATE PROCEDURE " MYSQL_PROCEDURE " (feed BIGINT, what VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,"
	" new_value " TEXT ") MODIFIES SQL DATA COMMENT 'feedwheel-store(7), Doors'"
	" BEGIN DECLARE number BIGINT;"
	" IF NOT EXISTS (SELECT 1 FROM feeds WHERE id = feed) THEN" REFUSE("no feed has this number") " END IF;"
	" CASE what"
	" WHEN 'title' THEN UPDATE feeds SET user_title = new_value WHERE id = feed;"
	" WHEN 'folder' THEN UPDATE feeds SET folder = new_value WHERE id = feed;"
	" WHEN 'interval_ms' THEN"
	"  IF coalesce(new_value, '0') NOT REGEXP '^[0-9]+$' OR length(new_value) > 15 THEN"
		REFUSE("interval_ms: write milliseconds, or 0 to adapt to the feed") " END IF;"
	"  SET number = CAST(coalesce(new_value, '0') AS SIGNED);"
		RESCHEDULE("f.interval_ms = number, s.due_at_ms = CASE WHEN number > 0 AND s.fail_n = 0 THEN"
		" least(s.due_at_ms, greatest(s.last_visit_ms + number, {now})) ELSE s.due_at_ms END")
	" WHEN 'status' THEN"
	"  CASE coalesce(new_value, '')"
	"  WHEN 'active' THEN" RESCHEDULE("s.status = 0, s.crash_n = 0, s.due_at_ms = {now}")
	"  WHEN 'paused' THEN" RESCHEDULE("s.status = 1")
	"  ELSE" REFUSE("status: write active or paused") " END CASE;"
	" WHEN 'due_at' THEN"
	"  IF coalesce(new_value, 'now') = 'now' THEN SET number = 1;"
	"  ELSEIF new_value REGEXP '^[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]"
	"([T ][0-9][0-9]:[0-9][0-9](:[0-9][0-9]([.][0-9]+)?)?)?Z?$' THEN"
	"   BEGIN DECLARE CONTINUE HANDLER FOR 1292 BEGIN END;"
	"   SET number = (SELECT greatest(1, TIMESTAMPDIFF(MICROSECOND, '1970-01-01',"
	"   CAST(replace(replace(new_value, 'T', ' '), 'Z', '') AS DATETIME(3))) DIV 1000)); END; END IF;"
	"  IF number IS NULL THEN" REFUSE("due_at: write a time such as 2026-11-28T10:00:00Z, or now") " END IF;"
		RESCHEDULE("s.due_at_ms = number")
	" ELSE" REFUSE("only title, folder, interval_ms, status and due_at of a feed can be written") " END CASE; END";
/* clang-format on */

int mysql_doors_find(struct mysql_db *s, bool *there, struct fw_err *err)
{
	int64_t n;
	int rc = sql_query_int(&s->sql,
		"SELECT count(*) FROM information_schema.routines WHERE routine_schema = database()"
		" AND routine_name = '" MYSQL_PROCEDURE "'",
		SQL_NONE, 0, &n, err);

	*there = !rc && n;
	return rc;
}

/* Errors that mean: this user may not, or another process was first. doctor tells of the first. */
static bool doors_error_is_harmless(unsigned code)
{
	static const unsigned HARMLESS[] = {ER_SP_ALREADY_EXISTS, ER_DBACCESS_DENIED_ERROR, ER_PROCACCESS_DENIED_ERROR,
		ER_ACCESS_DENIED_ERROR, ER_SPECIFIC_ACCESS_DENIED_ERROR, ER_BINLOG_CREATE_ROUTINE_NEED_SUPER};

	for (size_t i = 0; i < FW_N(HARMLESS); i++) {
		if (HARMLESS[i] == code)
			return true;
	}
	return false;
}

int mysql_doors_create(struct mysql_db *s, struct fw_err *err)
{
	struct fw_err why = {0};
	bool there;
	char *text;
	int rc = mysql_doors_find(s, &there, err);

	if (rc || there)
		return rc;
	text = sql_render(s->sql.dialect, &(struct sql_text){PROCEDURE, NULL}, &(struct sql_form){.mark = '?'});
	if (!text)
		return fw_no_memory(err);
	rc = s->sql.dialect->script(&s->sql, text, &why);
	free(text);
	if (!rc || doors_error_is_harmless(mysql_errno(s->c)))
		return 0;
	*err = why;
	return rc;
}
