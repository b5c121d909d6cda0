/* SPDX-License-Identifier: ISC */
/* The checks of `doctor`: settings of the server, and on demand the integrity of all rows. */
#include "store/mysql/mysql.h"

struct mysql_inspection {
	fw_inspect_cb *cb;
	void *ctx;
	int64_t log_bytes;
	bool no_sync;
};

static void setting_report(const struct mysql_inspection *i, const char *name, const char *variable, int64_t value,
	bool good, const char *remedy)
{
	char text[100];

	(void)fw_snprintf(text, sizeof(text), "%s=%lld", variable, (long long)value);
	i->cb(i->ctx, name, good ? 0 : 1, text, good ? "" : remedy);
}

/*
 * The redo log gets some KB per visit. When it is full, the server stalls until pages are written.
 * Its variable has another name in MySQL.
 */
static int variable_row(void *ctx, const struct sql_row *row)
{
	struct fw_str name = sql_str(row, 0), value = sql_str(row, 1);
	struct mysql_inspection *i = ctx;

	if (fw_str_ieq(name, FW_STR("innodb_flush_method")))
		i->no_sync = fw_str_ieq(value, FW_STR("nosync")) || fw_str_ieq(value, FW_STR("littlesync"));
	else
		i->log_bytes = FW_MAX(i->log_bytes, sql_int(row, 1));
	return 0;
}

static int mysql_settings_row(void *ctx, const struct sql_row *row)
{
	const struct mysql_inspection *i = ctx;
	struct fw_str version = sql_str(row, 0);
	char text[120];

	(void)fw_snprintf(text, sizeof(text), "%.*s", FW_STR_ARG(version));
	i->cb(i->ctx, "server", 0, text, "");
	if (i->no_sync)
		i->cb(i->ctx, "durability", 2, "innodb_flush_method=nosync or littlesync",
			"a power cut may destroy the store: set it to O_DIRECT or fsync");
	else
		setting_report(i, "durability", "innodb_flush_log_at_trx_commit", sql_int(row, 1), sql_int(row, 1) == 1,
			"a crash of the machine loses the last second: set it to 1 in the server's configuration");
	setting_report(i, "packet", "max_allowed_packet", sql_int(row, 2), sql_int(row, 2) >= (int64_t)16 << 20,
		"documents larger than a quarter of it may be refused: set it to 64M in the server's configuration");
	setting_report(i, "memory", "innodb_buffer_pool_size", sql_int(row, 3), sql_int(row, 3) >= (int64_t)512 << 20,
		"enough for some ten thousand feeds: for more set it to half of the server's memory");
	setting_report(i, "log", "size of the redo log in bytes", i->log_bytes, i->log_bytes >= (int64_t)256 << 20,
		"enough for some ten thousand feeds: for more set innodb_log_file_size (MySQL: "
		"innodb_redo_log_capacity) to 512M");
	return 0;
}

static int server_inspect(struct sql *s, struct mysql_inspection *i, struct fw_err *err)
{
	int rc = sql_query(s,
		"SHOW GLOBAL VARIABLES WHERE variable_name IN ('innodb_log_file_size',"
		" 'innodb_redo_log_capacity', 'innodb_flush_method')",
		SQL_NONE, variable_row, i, err);

	return rc ? rc :
		    sql_query(s,
			    "SELECT version(), @@innodb_flush_log_at_trx_commit, @@max_allowed_packet, "
			    "@@innodb_buffer_pool_size",
			    SQL_NONE, mysql_settings_row, i, err);
}

static int procedure_inspect(struct sql *s, fw_inspect_cb *cb, void *ctx, struct fw_err *err)
{
	bool there;
	int rc = mysql_doors_find(mysql_db(s), &there, err);

	if (!rc && !there)
		cb(ctx, "procedure", 1, "the procedure " MYSQL_PROCEDURE " is missing: SQL cannot change a feed",
			"grant the user CREATE ROUTINE on the database; the next command that writes creates it");
	return rc;
}

int mysql_inspect(struct store *st, bool deep, fw_inspect_cb *cb, void *ctx, struct fw_err *err)
{
	static const struct sql_check STEPS = {"search",
		"search index: a word has step %lld, but the last step is %lld",
		"SELECT x.step, x.last_step FROM (SELECT max(step) AS step, (SELECT value FROM meta WHERE name ="
		" 'doc_id') AS last_step FROM words) x WHERE x.step > x.last_step"};
	struct sql *s = sql_of(st);
	int rc;

	if (deep)
		return sql_check(s,
			"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;"
			"START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
			&STEPS, cb, ctx, err);
	rc = server_inspect(s, &(struct mysql_inspection){.cb = cb, .ctx = ctx}, err);
	return rc ? rc : procedure_inspect(s, cb, ctx, err);
}
