/* SPDX-License-Identifier: ISC */
#include <poll.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#if FW_HAVE_POSTGRES
#include <libpq-fe.h>
#endif
#if FW_HAVE_MYSQL
#include <mysql.h>
#endif

#include "client.h"

#define BUSY_MS 60000

static char refusal[1000];

static const char *refused(const char *words)
{
	(void)fw_str_copy(refusal, sizeof(refusal), fw_str_sub(fw_str(words), 0, sizeof(refusal) - 1));
	return refusal;
}

static void cell_add(struct fw_buf *out, bool first, const char *text)
{
	struct fw_str s = fw_str(text), rest, whole = fw_str_split(s, '.', &rest);

	if (!first)
		fw_buf_addc(out, '|');
	for (size_t i = 0; i < rest.len; i++) {
		if (rest.p[i] != '0')
			whole = s;
	}
	fw_buf_addstr(out, rest.len ? whole : s);
}

/* ---- SQLite ---------------------------------------------------------------------------------- */

static int sqlite_row(void *ctx, int n, char **cell, char **name)
{
	(void)name;
	for (int i = 0; i < n; i++)
		cell_add(ctx, !i, cell[i]);
	fw_buf_addc(ctx, '\n');
	return 0;
}

static const char *sqlite_try(const char *url, const char *sql, struct fw_buf *out)
{
	const char *words = NULL;
	sqlite3 *db;

	ck_assert_int_eq(sqlite3_open_v2(strchr(url, ':') + 1, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
	sqlite3_busy_timeout(db, BUSY_MS);
	/* as feedwheel-store(7) asks of programs that write */
	ck_assert_int_eq(sqlite3_exec(db, "PRAGMA wal_autocheckpoint = 0", NULL, NULL, NULL), SQLITE_OK);
	if (sqlite3_exec(db, sql, sqlite_row, out, NULL) != SQLITE_OK)
		words = refused(sqlite3_errmsg(db));
	sqlite3_close(db);
	return words;
}

/* ---- PostgreSQL ------------------------------------------------------------------------------ */

#if FW_HAVE_POSTGRES
static PGconn *postgres_connect(const char *url)
{
	const char *schema = strstr(url, "&schema=");
	char conninfo[400];
	PGconn *c;

	ck_assert_ptr_nonnull(schema);
	ck_assert(fw_snprintf(conninfo, sizeof(conninfo),
		"%.*s&options=-csearch_path%%3D%s%%20-cclient_min_messages%%3Dwarning", (int)(schema - url), url,
		schema + strlen("&schema=")));
	c = PQconnectdb(conninfo);
	ck_assert_msg(PQstatus(c) == CONNECTION_OK, "%s", PQerrorMessage(c));
	return c;
}

static const char *postgres_try(const char *url, const char *sql, struct fw_buf *out)
{
	PGconn *c = postgres_connect(url);
	PGresult *r = PQexec(c, sql);
	const char *words = NULL;

	if (PQresultStatus(r) != PGRES_TUPLES_OK && PQresultStatus(r) != PGRES_COMMAND_OK)
		words = refused(PQerrorMessage(c));
	for (int row = 0; row < PQntuples(r); row++) {
		for (int i = 0; i < PQnfields(r); i++)
			cell_add(out, !i, PQgetvalue(r, row, i));
		fw_buf_addc(out, '\n');
	}
	PQclear(r);
	PQfinish(c);
	return words;
}

struct client_listener {
	PGconn *c;
	char told[200];
};

struct client_listener *client_listen(const char *url, const char *suffix)
{
	struct client_listener *l = calloc(1, sizeof(*l));
	char sql[200];

	ck_assert_ptr_nonnull(l);
	l->c = postgres_connect(url);
	ck_assert(fw_snprintf(
		sql, sizeof(sql), "LISTEN feedwheel_%s%s", strstr(url, "&schema=") + strlen("&schema="), suffix));
	PQclear(PQexec(l->c, sql));
	ck_assert_str_eq(PQerrorMessage(l->c), "");
	return l;
}

const char *client_notified(struct client_listener *l)
{
	PGnotify *n;

	while (!(n = PQnotifies(l->c))) {
		struct pollfd f = {.fd = PQsocket(l->c), .events = POLLIN};

		ck_assert_int_eq(poll(&f, 1, BUSY_MS), 1);
		ck_assert(PQconsumeInput(l->c));
	}
	ck_assert(fw_str_copy(l->told, sizeof(l->told), fw_str(n->extra)));
	PQfreemem(n);
	return l->told;
}

void client_listen_end(struct client_listener *l)
{
	PQfinish(l->c);
	free(l);
}
#else
struct client_listener *client_listen(const char *url, const char *suffix)
{
	(void)suffix;
	ck_abort_msg("%s: no client", url);
	return NULL;
}

const char *client_notified(struct client_listener *l)
{
	(void)l;
	return "";
}

void client_listen_end(struct client_listener *l)
{
	(void)l;
}
#endif

/* ---- MariaDB, MySQL -------------------------------------------------------------------------- */

#if FW_HAVE_MYSQL
static void mysql_rows(MYSQL *c, struct fw_buf *out)
{
	MYSQL_RES *r = mysql_store_result(c);
	MYSQL_ROW row;

	while (r && (row = mysql_fetch_row(r))) {
		for (unsigned i = 0; i < mysql_num_fields(r); i++)
			cell_add(out, !i, row[i]);
		fw_buf_addc(out, '\n');
	}
	mysql_free_result(r);
}

/* With another collation than a worker's, as users have it. */
static const char *mysql_try(const char *url, const char *sql, struct fw_buf *out)
{
	struct fw_str socket,
		name = fw_str_split(fw_str(strstr(url, "localhost/") + strlen("localhost/")), '?', &socket);
	const char *words = NULL;
	char database[100];
	MYSQL *c = mysql_init(NULL);
	int more;

	ck_assert(fw_str_copy(database, sizeof(database), name));
	ck_assert(fw_str_starts(socket, FW_STR("socket=")));
	ck_assert_msg(mysql_real_connect(c, NULL, "root", NULL, database, 0, socket.p + strlen("socket="),
			      CLIENT_MULTI_STATEMENTS),
		"%s", mysql_error(c));
	ck_assert_int_eq(mysql_query(c, "SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci"), 0);
	more = mysql_query(c, sql) ? 1 : 0;
	while (more == 0) {
		mysql_rows(c, out);
		more = mysql_next_result(c);
	}
	if (more > 0)
		words = refused(mysql_error(c));
	mysql_close(c);
	return words;
}
#endif

/* ---- each ------------------------------------------------------------------------------------ */

const char *client_try(const char *url, const char *sql, struct fw_buf *out)
{
	struct fw_buf unwanted = FW_BUF_INIT(0);
	const char *words = NULL;

	out = out ? out : &unwanted;
	if (strncmp(url, "sqlite:", 7) == 0)
		words = sqlite_try(url, sql, out);
#if FW_HAVE_POSTGRES
	else if (strncmp(url, "postgres:", 9) == 0)
		words = postgres_try(url, sql, out);
#endif
#if FW_HAVE_MYSQL
	else if (strncmp(url, "mysql:", 6) == 0)
		words = mysql_try(url, sql, out);
#endif
	else
		ck_abort_msg("%s: no client", url);
	ck_assert_int_eq(out->rc, 0);
	fw_buf_finish(&unwanted);
	return words;
}

void client_run(const char *url, const char *sql)
{
	const char *words = client_try(url, sql, NULL);

	ck_assert_msg(!words, "%s\n%s", words, sql);
}

static struct fw_buf *text_next(void)
{
	static struct fw_buf text[2] = {FW_BUF_INIT(0), FW_BUF_INIT(0)};
	static int turn;
	struct fw_buf *b = &text[turn++ % 2];

	fw_buf_reset(b);
	return b;
}

const char *client_rows(const char *url, const char *sql)
{
	struct fw_buf *b = text_next();
	const char *words = client_try(url, sql, b);

	ck_assert_msg(!words, "%s\n%s", words, sql);
	fw_buf_addc(b, '\0');
	return b->p;
}

/* ---- Redis ----------------------------------------------------------------------------------- */

const char *client_redis_prefix(const char *url)
{
	const char *at = strstr(url, "?prefix=");

	ck_assert_ptr_nonnull(at);
	return at + strlen("?prefix=");
}

static char redis_byte(int fd)
{
	char c;

	ck_assert_int_eq(read(fd, &c, 1), 1);
	return c;
}

/* Returns the number that the line is; 0: none. */
static int64_t redis_line(int fd, struct fw_buf *line)
{
	int64_t n;
	char c;

	fw_buf_reset(line);
	while ((c = redis_byte(fd)) != '\r')
		fw_buf_addc(line, c);
	(void)redis_byte(fd);
	return fw_str_int(fw_buf_str(line), &n) ? n : 0;
}

/* A reply: a line, bytes, or an array of these, which are separated by spaces. */
static void redis_reply(int fd, struct fw_buf *out)
{
	struct fw_buf line = FW_BUF_INIT(0);
	char type = redis_byte(fd);
	int64_t n = redis_line(fd, &line);

	ck_assert_msg(type != '-', "%.*s", (int)line.len, line.p);
	if (type == '*') {
		for (int64_t i = 0; i < n; i++) {
			fw_buf_adds(out, i ? " " : "");
			redis_reply(fd, out);
		}
	} else if (type == '$') {
		for (int64_t i = 0; i < n; i++)
			fw_buf_addc(out, redis_byte(fd));
		for (int i = 0; i < 2 && n >= 0; i++)
			(void)redis_byte(fd);
	} else {
		fw_buf_addstr(out, fw_buf_str(&line));
	}
	fw_buf_finish(&line);
}

const char *client_redis(const char *url, const char *const *word)
{
	static const char SCHEME[] = "redis+unix://";
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	struct fw_buf command = FW_BUF_INIT(0), *out = text_next();
	struct fw_str rest, path;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), n = 0;

	ck_assert_msg(strncmp(url, SCHEME, strlen(SCHEME)) == 0, "%s: no socket", url);
	path = fw_str_split(fw_str(url + strlen(SCHEME)), '?', &rest);
	ck_assert(fw_str_copy(to.sun_path, sizeof(to.sun_path), path));
	ck_assert_int_eq(connect(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
	while (word[n])
		n++;
	fw_buf_addf(&command, "*%d\r\n", n);
	for (int i = 0; i < n; i++)
		fw_buf_addf(&command, "$%zu\r\n%s\r\n", strlen(word[i]), word[i]);
	for (size_t at = 0; at < command.len;) {
		ssize_t put = write(fd, command.p + at, command.len - at);

		ck_assert_int_gt(put, 0);
		at += (size_t)put;
	}
	redis_reply(fd, out);
	close(fd);
	fw_buf_finish(&command);
	fw_buf_addc(out, '\0');
	return out->p;
}
