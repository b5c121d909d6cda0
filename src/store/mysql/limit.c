/* SPDX-License-Identifier: ISC */
/*
 * Statements of a request with a limit. Its time is the server's (script_limit() in dialect.c);
 * what the server cannot see is that the client has left. Therefore this waits for the reply in
 * steps, and a short second connection kills the statement when nobody waits for it any more.
 *
 * A KILL never meets a later statement. It has been answered before the reply is read further, and
 * an empty statement comes next, which takes it if the other had ended. If its answer is lost, so
 * is the connection. If there is no second connection, the statement ends by its time.
 */
#include <assert.h>
#include <errmsg.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "api/account.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "store/dsn.h"
#include "store/mysql/mysql.h"

static _Thread_local struct mysql_db *limit_reads; /* the library tells its callback the socket only */

static int kill_connect(struct mysql_db *by, const char *url, struct fw_err *err)
{
	struct fw_arena a;
	struct fw_dsn d;
	int rc;

	fw_arena_init(&a, 0);
	rc = fw_dsn_split(&a, FW_DSN_STORE, url, &d, err);
	rc = rc ? rc : mysql_connect_to(by, &d, NULL, err);
	fw_arena_finish(&a);
	return rc;
}

/* The second connection may meet another server behind one address: then the id is none of ours. */
static int kill_send(struct mysql_db *s, struct mysql_db *by, struct fw_err *err)
{
	char sql[160];

	(void)fw_snprintf(sql, sizeof(sql), "KILL QUERY IF(" MYSQL_SERVER_MARK " = %lld, %lu, 0)",
		(long long)s->server_mark, mysql_thread_id(s->c));
	if (!mysql_query(by->c, sql))
		return 0;
	if (mysql_errno(by->c) == CR_SERVER_LOST || mysql_errno(by->c) == CR_SERVER_GONE_ERROR)
		(void)shutdown(mysql_get_socket(s->c), SHUT_RDWR); /* it may still arrive */
	return mysql_failed(by, "ending a statement", err);
}

static void statement_kill(struct mysql_db *s)
{
	struct mysql_db *by = calloc(1, sizeof(*by));
	struct fw_err err = {0};
	int rc = by ? 0 : fw_no_memory(&err);

	if (by) {
		by->sql.name = s->sql.name;
		by->timeout_s = MYSQL_KILL_TIMEOUT_S;
		rc = kill_connect(by, s->url, &err);
		rc = rc ? rc : kill_send(s, by, &err);
		if (by->c)
			mysql_close(by->c);
	}
	free(by);
	if (rc)
		fw_warn("a statement could not be ended early, it ends by its time: %s", err.text);
}

/* Has the client left? The end of the time is the server's work. */
static bool limit_is_left(struct mysql_db *s)
{
	return store_is_over(&s->sql.store) && fw_mono_ms() < s->sql.store.limit->until_ms;
}

/* The library's wait for bytes: 1, 0 after the timeout, -1. Its own timeout is wrong with TLS. */
static int limit_wait(my_socket fd, my_bool reads, int timeout_ms)
{
	struct mysql_db *s = limit_reads;
	struct pollfd p = {.fd = fd, .events = reads ? POLLIN : POLLOUT};

	(void)timeout_ms;
	assert(s);
	for (int64_t end_ms = fw_mono_ms() + s->read_timeout_ms; fw_mono_ms() < end_ms;) {
		int n = poll(&p, 1, STORE_LIMIT_STEP_MS);

		if (n > 0 || (n < 0 && errno != EINTR))
			return n;
		if (!s->killed && limit_is_left(s)) {
			s->killed = true;
			statement_kill(s);
		}
	}
	errno = ETIMEDOUT;
	return 0;
}

/* With TLS, the library waits by its callback only if the socket does not block. */
static void socket_block(struct mysql_db *s, bool on)
{
	int fd = mysql_get_socket(s->c), flags = fcntl(fd, F_GETFL);

	if (flags != -1)
		(void)fcntl(fd, F_SETFL, on ? flags & ~O_NONBLOCK : flags | O_NONBLOCK);
}

void mysql_limit_begin(struct mysql_db *s)
{
	assert(!limit_reads);
	limit_reads = s;
	s->killed = false;
	mysql_optionsv(s->c, MARIADB_OPT_IO_WAIT, (void *)limit_wait);
	if (s->tls)
		socket_block(s, false);
}

void mysql_limit_end(struct mysql_db *s)
{
	if (s->tls)
		socket_block(s, true);
	mysql_optionsv(s->c, MARIADB_OPT_IO_WAIT, NULL);
	limit_reads = NULL;
	if (s->killed)
		(void)mysql_query(s->c, "DO 0"); /* what breaks here breaks the next statement too */
}
