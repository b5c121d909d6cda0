/* SPDX-License-Identifier: ISC */
/*
 * The server's codes, and the client library's, as ours. What breaks the connection is FW_EIO: the store is opened again. What may be
 * over after a while (others in the way, too many connections, a full disk, a fail-over) is FW_EAGAIN: the same is tried again.
 * The rest wants somebody to change something, and says what.
 */
#include <errmsg.h>
#include <mysqld_error.h>

#include "store/maria.h"

/* codes that mysqld_error.h of one or the other lacks */
#define ER_STATEMENT_TIMEOUT_MARIADB 1969
#define ER_CONNECTION_KILLED_MARIADB 1927
#define ER_QUERY_TIMEOUT_MYSQL 3024
#define ER_READ_ONLY_MODE_MYSQL 1836
#define ER_DISK_FULL_NOWAIT_MYSQL 3019

static int connection_error(struct maria *m, unsigned code, const char *msg, struct fw_err *err)
{
	switch (code) {
	case CR_SERVER_GONE_ERROR:
	case CR_SERVER_LOST:
	case CR_SERVER_LOST_EXTENDED:
	case ER_CONNECTION_KILLED_MARIADB:
	case ER_SERVER_SHUTDOWN:
	case ER_NEW_ABORTING_CONNECTION:
	case ER_ABORTING_CONNECTION:
	case ER_FORCING_CLOSE:
	case ER_NORMAL_SHUTDOWN:
	case ER_NET_READ_ERROR:
	case ER_NET_READ_INTERRUPTED:
	case ER_NET_ERROR_ON_WRITE:
	case ER_NET_WRITE_INTERRUPTED:
	case CR_MALFORMED_PACKET:
		return fw_err_set(err, FW_EIO, "%s: the connection broke (%s): it is made again; look whether the server runs", m->name, msg);
	case CR_CONN_HOST_ERROR:
	case CR_CONNECTION_ERROR:
	case CR_UNKNOWN_HOST:
	case CR_IPSOCK_ERROR:
	case CR_SOCKET_CREATE_ERROR:
		return fw_err_set(err, FW_EIO, "%s: no server answers (%s): start it, or check host, port and socket", m->name, msg);
	case CR_SSL_CONNECTION_ERROR:
		return fw_err_set(err, FW_EINVAL, "%s: no TLS (%s): check ssl_ca, ssl_cert, ssl_key and the server's", m->name, msg);
	case CR_OUT_OF_MEMORY:
		return mr_no_memory(m, err);
	default:
		return 0;
	}
}

/* For a while: the same may succeed later. */
static int passing_error(struct maria *m, unsigned code, const char *msg, struct fw_err *err)
{
	switch (code) {
	case ER_LOCK_WAIT_TIMEOUT:
		return fw_err_set(err, FW_EAGAIN, "%s: locked by another transaction for more than %lld ms: try again; "
			"SHOW ENGINE INNODB STATUS names it", m->name, (long long)m->busy_timeout_ms);
	case ER_LOCK_DEADLOCK:
	case ER_CHECKREAD:
		return fw_err_set(err, FW_EAGAIN, "%s: %d times in a row others were in the way (%s): try again", m->name, MR_TRIES, msg);
	case ER_CON_COUNT_ERROR:
	case ER_TOO_MANY_USER_CONNECTIONS:
	case ER_USER_LIMIT_REACHED:
		return fw_err_set(err, FW_EAGAIN, "%s: too many connections (%s): raise max_connections, or run fewer workers", m->name, msg);
	case ER_DISK_FULL:
	case ER_RECORD_FILE_FULL:
	case ER_ERROR_ON_WRITE:
	case ER_GET_ERRNO:
	case ER_DISK_FULL_NOWAIT_MYSQL:
		return fw_err_set(err, FW_EAGAIN, "%s: its disk is full or failed (%s): free some space; nothing stored is lost", m->name, msg);
	case ER_OPTION_PREVENTS_STATEMENT:
	case ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION:
	case ER_READ_ONLY_MODE_MYSQL:
		return fw_err_set(err, FW_EAGAIN, "%s: it may not be written now (%s): wait for the fail-over, or set read_only off", m->name, msg);
	case ER_OUTOFMEMORY:
	case ER_OUT_OF_SORTMEMORY:
	case ER_OUT_OF_RESOURCES:
	case ER_LOCK_TABLE_FULL:
		return fw_err_set(err, FW_EAGAIN, "%s: the server is out of memory (%s): try again, or give it more", m->name, msg);
	case ER_STATEMENT_TIMEOUT_MARIADB:
	case ER_QUERY_TIMEOUT_MYSQL:
	case ER_QUERY_INTERRUPTED:
		return fw_err_set(err, FW_EAGAIN, "%s: a statement was ended (%s): try again, or raise max_statement_time", m->name, msg);
	default:
		return 0;
	}
}

int mr_too_large(struct maria *m, struct fw_err *err)
{
	return fw_err_set(err, FW_EINVAL, "%s: a document is larger than the server takes (%zu bytes): raise max_allowed_packet", m->name,
		m->packet_max);
}

static int error_words(struct maria *m, unsigned code, const char *msg, const char *doing, struct fw_err *err)
{
	m->code = code;
	if (connection_error(m, code, msg, err) || passing_error(m, code, msg, err))
		return err->rc;
	switch (code) {
	case ER_ACCESS_DENIED_ERROR:
	case ER_DBACCESS_DENIED_ERROR:
	case ER_TABLEACCESS_DENIED_ERROR:
	case ER_SPECIFIC_ACCESS_DENIED_ERROR:
		return fw_err_set(err, FW_EINVAL, "%s: refused (%s): check user and password, and GRANT ALL ON `%s`.*", m->name, msg,
			m->schema ? m->schema : "...");
	case ER_BAD_DB_ERROR:
		return fw_err_set(err, FW_ENOTFOUND, "%s: no such database: begin with `feedwheel add URL`, or name another", m->name);
	case ER_NET_PACKET_TOO_LARGE:
	case CR_NET_PACKET_TOO_LARGE:
		return mr_too_large(m, err);
	case CR_COMMANDS_OUT_OF_SYNC:
		return fw_err_set(err, FW_EINVAL, "%s: called again from a callback of its own", m->name);
	default:
		return fw_err_set(err, FW_EINVAL, "%s: %s: %s (%u)", m->name, doing, msg, code);
	}
}

int mr_error(struct maria *m, const char *doing, struct fw_err *err)
{
	return error_words(m, mysql_errno(m->db), mysql_error(m->db), doing, err);
}

int mr_error_of(struct maria *m, MYSQL_STMT *stmt, const char *doing, struct fw_err *err)
{
	return error_words(m, mysql_stmt_errno(stmt), mysql_stmt_error(stmt), doing, err);
}

bool mr_error_again(unsigned code)
{
	return code == ER_LOCK_DEADLOCK || code == ER_CHECKREAD || code == ER_DUP_ENTRY;
}
