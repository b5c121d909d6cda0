/* SPDX-License-Identifier: ISC */
/*
 * Error codes of the server and of the client library as FW_E*. FW_EIO: the connection broke, or
 * the server takes no writes; the store is opened again. FW_EAGAIN: a conflict, too many
 * connections or a full disk; the same call is tried again. All others need a change by the
 * operator, and their message names it.
 */
#include <errmsg.h>
#include <mysqld_error.h>

#include "store/mysql/mysql.h"

/* codes that one of the two mysqld_error.h lacks */
#define ER_STATEMENT_TIMEOUT_MARIADB 1969
#define ER_CONNECTION_KILLED_MARIADB 1927
#define ER_QUERY_TIMEOUT_MYSQL 3024
#define ER_READ_ONLY_MODE_MYSQL 1836
#define ER_DISK_FULL_NOWAIT_MYSQL 3019
#define ER_CLIENT_INTERACTION_TIMEOUT_MYSQL 4031

enum {
	BROKEN,
	UNREACHABLE,
	NO_TLS,
	LOCKED,
	CONFLICT,
	DUPLICATE,
	CONNECTIONS,
	DISK,
	READ_ONLY,
	MEMORY,
	ENDED,
	DENIED,
	NO_PRIVILEGE,
	DAMAGED,
	NO_DATABASE,
	LARGE,
	NO_TABLE,
	NO_COLUMN,
	NESTED
};

static const struct {
	int rc;
	const char *remedy;
} CLASS[] = {
	[BROKEN] = {FW_EIO, "the connection broke: it will be opened anew; check that the server runs"},
	[UNREACHABLE] = {FW_EIO, "no server answers: start it, or check host, port and socket"},
	[NO_TLS] = {FW_EINVAL, "no TLS: check ssl_ca, ssl_cert, ssl_key and the server's certificate"},
	[LOCKED] = {FW_EAGAIN,
		"locked by another transaction for too long: try again; find it with SHOW ENGINE INNODB STATUS"},
	[CONFLICT] = {FW_EAGAIN, "conflict with another transaction: try again"},
	[DUPLICATE] = {FW_EAGAIN, "another process stored it meanwhile: try again"},
	[CONNECTIONS] = {FW_EAGAIN, "too many connections: raise max_connections, or run fewer workers"},
	[DISK] = {FW_EAGAIN, "the server's disk is full or failed: free some space; no stored data is lost"},
	[READ_ONLY] = {FW_EIO, SQL_READ_ONLY},
	[MEMORY] = {FW_EAGAIN, "the server is out of memory: give it more, or run fewer workers"},
	[ENDED] = {FW_EAGAIN, "the server ended a statement: try again, or raise max_statement_time"},
	[DENIED] = {FW_EINVAL, "access denied: check user and password, and grant the user all on the database"},
	[NO_PRIVILEGE] = {FW_EUNUSABLE, "missing privilege: grant the user all on the database"},
	[DAMAGED] = {FW_EUNUSABLE, "a table is damaged: repair it, or restore a backup"},
	[NO_DATABASE] = {FW_ENOTFOUND, "no such database: create it with `feedwheel add URL`, or choose another"},
	[LARGE] = {FW_EINVAL, "a document exceeds the server's packet limit: raise max_allowed_packet"},
	[NO_TABLE] = {FW_EUNUSABLE, "tables are missing: restore a backup, or choose another database"},
	[NO_COLUMN] = {FW_EUNUSABLE, "another program has changed the tables: restore a backup"},
	[NESTED] = {FW_EINVAL, "called from one of its own callbacks"},
};

static const struct {
	unsigned code;
	int class;
} KNOWN[] = {
	{CR_SERVER_GONE_ERROR, BROKEN},
	{CR_SERVER_LOST, BROKEN},
	{CR_SERVER_LOST_EXTENDED, BROKEN},
	{ER_CONNECTION_KILLED_MARIADB, BROKEN},
	{ER_SERVER_SHUTDOWN, BROKEN},
	{ER_NEW_ABORTING_CONNECTION, BROKEN},
	{ER_ABORTING_CONNECTION, BROKEN},
	{ER_FORCING_CLOSE, BROKEN},
	{ER_NORMAL_SHUTDOWN, BROKEN},
	{ER_NET_READ_ERROR, BROKEN},
	{ER_NET_READ_INTERRUPTED, BROKEN},
	{ER_NET_ERROR_ON_WRITE, BROKEN},
	{ER_NET_WRITE_INTERRUPTED, BROKEN},
	{CR_MALFORMED_PACKET, BROKEN},
	{ER_CLIENT_INTERACTION_TIMEOUT_MYSQL, BROKEN},
	{CR_CONN_HOST_ERROR, UNREACHABLE},
	{CR_CONNECTION_ERROR, UNREACHABLE},
	{CR_UNKNOWN_HOST, UNREACHABLE},
	{CR_IPSOCK_ERROR, UNREACHABLE},
	{CR_SOCKET_CREATE_ERROR, UNREACHABLE},
	{CR_SSL_CONNECTION_ERROR, NO_TLS},
	{ER_LOCK_WAIT_TIMEOUT, LOCKED},
	{ER_LOCK_DEADLOCK, CONFLICT},
	{ER_CHECKREAD, CONFLICT},
	{ER_DUP_ENTRY, DUPLICATE},
	{ER_CON_COUNT_ERROR, CONNECTIONS},
	{ER_TOO_MANY_USER_CONNECTIONS, CONNECTIONS},
	{ER_USER_LIMIT_REACHED, CONNECTIONS},
	{ER_DISK_FULL, DISK},
	{ER_RECORD_FILE_FULL, DISK},
	{ER_ERROR_ON_WRITE, DISK},
	{ER_GET_ERRNO, DISK},
	{ER_DISK_FULL_NOWAIT_MYSQL, DISK},
	{ER_OPTION_PREVENTS_STATEMENT, READ_ONLY},
	{ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION, READ_ONLY},
	{ER_READ_ONLY_MODE_MYSQL, READ_ONLY},
	{ER_OUTOFMEMORY, MEMORY},
	{ER_OUT_OF_SORTMEMORY, MEMORY},
	{ER_OUT_OF_RESOURCES, MEMORY},
	{ER_LOCK_TABLE_FULL, MEMORY},
	{ER_STATEMENT_TIMEOUT_MARIADB, ENDED},
	{ER_QUERY_TIMEOUT_MYSQL, ENDED},
	{ER_QUERY_INTERRUPTED, ENDED},
	{ER_ACCESS_DENIED_ERROR, DENIED},
	{ER_DBACCESS_DENIED_ERROR, DENIED},
	{ER_TABLEACCESS_DENIED_ERROR, NO_PRIVILEGE},
	{ER_COLUMNACCESS_DENIED_ERROR, NO_PRIVILEGE},
	{ER_SPECIFIC_ACCESS_DENIED_ERROR, NO_PRIVILEGE},
	{ER_NOT_FORM_FILE, DAMAGED},
	{ER_NOT_KEYFILE, DAMAGED},
	{ER_CRASHED_ON_USAGE, DAMAGED},
	{ER_CRASHED_ON_REPAIR, DAMAGED},
	{ER_BAD_DB_ERROR, NO_DATABASE},
	{ER_NET_PACKET_TOO_LARGE, LARGE},
	{CR_NET_PACKET_TOO_LARGE, LARGE},
	{ER_NO_SUCH_TABLE, NO_TABLE},
	{ER_BAD_FIELD_ERROR, NO_COLUMN},
	{CR_COMMANDS_OUT_OF_SYNC, NESTED},
};

static int error_set(struct mysql_db *s, unsigned code, const char *said, const char *doing, struct fw_err *err)
{
	if (code == CR_OUT_OF_MEMORY)
		return fw_no_memory(err);
	for (size_t i = 0; i < FW_N(KNOWN); i++) {
		int class = KNOWN[i].class;

		if (KNOWN[i].code != code)
			continue;
		if (class == ENDED && store_is_over(&s->sql.store))
			return store_over(s->sql.name, err);
		if (class == CONFLICT || class == DUPLICATE)
			s->sql.race = class == DUPLICATE ? SQL_RACE_ROW : SQL_RACE_LOCKS;
		return FW_ERR(err, CLASS[class].rc, "%s: %s (%s, %u)", s->sql.name, CLASS[class].remedy, said, code);
	}
	return FW_ERR(err, FW_EINVAL, "%s: %s: %s (%u)", s->sql.name, doing, said, code);
}

int mysql_failed(struct mysql_db *s, const char *doing, struct fw_err *err)
{
	return error_set(s, mysql_errno(s->c), mysql_error(s->c), doing, err);
}

int mysql_stmt_failed(struct mysql_db *s, MYSQL_STMT *stmt, const char *doing, struct fw_err *err)
{
	return error_set(s, mysql_stmt_errno(stmt), mysql_stmt_error(stmt), doing, err);
}

int mysql_too_large(struct mysql_db *s, struct fw_err *err)
{
	return fw_err_set(err, FW_EINVAL,
		"%s: a document exceeds the server's packet limit (%zu bytes): raise max_allowed_packet", s->sql.name,
		s->packet_max);
}
