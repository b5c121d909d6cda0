/* SPDX-License-Identifier: ISC */
/*
 * The same job queue as in ref_postgres.c, on MariaDB, with its own client library and prepared
 * statements.
 */
#include <mysql.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench.h"
#include "store/dsn.h"

static MYSQL *db_open(const char *url)
{
	MYSQL *db = mysql_init(NULL);
	struct fw_dsn d;
	struct fw_arena a;
	struct fw_err err;

	fw_arena_init(&a, 0);
	if (fw_dsn_split(&a, FW_DSN_STORE, url, &d, &err))
		die_of("the server's URL", &err);
	if (!db ||
		!mysql_real_connect(
			db, NULL, d.user.p, NULL, NULL, 0, fw_dsn_option(&d, "socket").p, CLIENT_MULTI_STATEMENTS))
		die("%s", mysql_error(db));
	fw_arena_finish(&a);
	return db;
}

static void db_do(MYSQL *db, const char *sql)
{
	if (mysql_query(db, sql))
		die("%s: %s", sql, mysql_error(db));
	do
		mysql_free_result(mysql_store_result(db));
	while (mysql_next_result(db) == 0);
}

static MYSQL_STMT *prepare(MYSQL *db, const char *sql)
{
	MYSQL_STMT *q = mysql_stmt_init(db);

	if (!q || mysql_stmt_prepare(q, sql, strlen(sql)))
		die("%s: %s", sql, mysql_error(db));
	return q;
}

static void ref_fill(const char *url, int64_t feeds)
{
	MYSQL *db = db_open(url);
	char sql[400];

	db_do(db, "CREATE DATABASE IF NOT EXISTS classic; USE classic");
	db_do(db, "DROP TABLE IF EXISTS classic.feeds");
	db_do(db,
		"CREATE TABLE classic.feeds (id BIGINT PRIMARY KEY, url VARCHAR(255) NOT NULL, due BIGINT NOT NULL,"
		" visited BIGINT NOT NULL DEFAULT 0, status INT NOT NULL DEFAULT 0, KEY (due)) ENGINE=InnoDB");
	for (int64_t at = 1; at <= feeds; at += 100000) {
		if (!fw_snprintf(sql, sizeof(sql),
			    "INSERT INTO classic.feeds (id, url, due) SELECT seq, CONCAT('https://www.host-', seq,"
			    " '.example/feed/', seq, '.xml'), CRC32(seq) & 1073741823 FROM seq_%lld_to_%lld",
			    (long long)at, (long long)FW_MIN(at + 99999, feeds)))
			die("too many feeds");
		db_do(db, sql);
	}
	db_do(db, "ANALYZE TABLE classic.feeds");
	mysql_close(db);
}

struct classic {
	const char *url;
	int job_ms;
};

static void claim_work(struct crew *c, int worker, const void *ctx)
{
	const struct classic *w = ctx;
	MYSQL *db = db_open(w->url);
	MYSQL_STMT *take = prepare(db,
			   "SELECT id, url FROM classic.feeds WHERE due <= 1073741824 ORDER BY due LIMIT 1 FOR"
			   " UPDATE SKIP LOCKED"),
		   *done = prepare(db,
			   "UPDATE classic.feeds SET due = 2000000000 + ? % 1000000, visited = 1, status = 304"
			   " WHERE id = ?");
	char address[256];
	unsigned long length;
	int64_t id;
	MYSQL_BIND out[2] = {{.buffer_type = MYSQL_TYPE_LONGLONG, .buffer = &id},
		{.buffer_type = MYSQL_TYPE_STRING,
			.buffer = address,
			.buffer_length = sizeof(address),
			.length = &length}};
	MYSQL_BIND in[2] = {{.buffer_type = MYSQL_TYPE_LONGLONG, .buffer = &id},
		{.buffer_type = MYSQL_TYPE_LONGLONG, .buffer = &id}};

	(void)worker;
	db_do(db, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"); /* the faster of its two levels */
	crew_begin(c);
	while (crew_on(c)) {
		db_do(db, "BEGIN");
		if (mysql_stmt_execute(take) || mysql_stmt_bind_result(take, out) || mysql_stmt_store_result(take))
			die("%s", mysql_stmt_error(take));
		if (mysql_stmt_fetch(take))
			die("the reference's queue is empty: --feeds is too small");
		mysql_stmt_free_result(take);
		if (w->job_ms)
			usleep((useconds_t)w->job_ms * 1000);
		if (mysql_stmt_bind_param(done, in) || mysql_stmt_execute(done))
			die("%s", mysql_stmt_error(done));
		db_do(db, "COMMIT");
		crew_done(c, 1);
	}
	mysql_stmt_close(take);
	mysql_stmt_close(done);
	mysql_close(db);
}

static struct work ref_claim(const char *url, int workers, double seconds, int job_ms)
{
	struct classic w = {url, job_ms};

	return crew_run(workers, seconds, 0, claim_work, &w);
}

static double ref_entries(const char *url, int64_t n, size_t bytes)
{
	MYSQL *db = db_open(url);
	MYSQL_STMT *in;
	struct fw_entry_row e;
	struct fw_arena a;
	double start;

	db_do(db, "CREATE DATABASE IF NOT EXISTS classic; USE classic");
	db_do(db, "DROP TABLE IF EXISTS classic.entries");
	db_do(db,
		"CREATE TABLE classic.entries (id BIGINT PRIMARY KEY AUTO_INCREMENT, feed BIGINT NOT"
		" NULL, k BINARY(16) NOT NULL,"
		" guid TEXT, url TEXT, title TEXT, author TEXT, published BIGINT, content MEDIUMTEXT, UNIQUE (feed, k))"
		" ENGINE=InnoDB CHARACTER SET utf8mb4");
	in = prepare(db,
		"INSERT IGNORE INTO classic.entries (feed, k, guid, url, title, author, published, content)"
		" VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
	fw_arena_init(&a, 0);
	start = now_s();
	for (int64_t i = 0; i < n; i++) {
		int64_t feed = i / 25;
		MYSQL_BIND v[8] = {{.buffer_type = MYSQL_TYPE_LONGLONG, .buffer = &feed},
			{.buffer_type = MYSQL_TYPE_BLOB, .buffer = e.key, .buffer_length = sizeof(e.key)}};
		struct fw_str text[8] = {{0}};

		make_entry(&e, feed, i, bytes, &a);
		text[2] = text[3] = e.guid;
		text[4] = e.title;
		text[5] = e.author;
		text[7] = e.content;
		for (int k = 2; k < 8; k++)
			v[k] = (MYSQL_BIND){.buffer_type = MYSQL_TYPE_STRING,
				.buffer = (void *)(uintptr_t)text[k].p,
				.buffer_length = text[k].len};
		v[6] = (MYSQL_BIND){.buffer_type = MYSQL_TYPE_LONGLONG, .buffer = &e.published_ms};
		if (mysql_stmt_bind_param(in, v) || mysql_stmt_execute(in))
			die("%s", mysql_stmt_error(in));
		fw_arena_reset(&a, 1 << 16);
	}
	start = (double)n / (now_s() - start);
	mysql_stmt_close(in);
	db_do(db, "DROP TABLE classic.entries");
	fw_arena_finish(&a);
	mysql_close(db);
	return start;
}

static double ref_scan(const char *url, int64_t n)
{
	struct fw_arena a;
	struct fw_dsn d;
	struct fw_err err;
	MYSQL *db = db_open(url);
	double start;
	MYSQL_RES *r;

	fw_arena_init(&a, 0);
	if (fw_dsn_split(&a, FW_DSN_STORE, url, &d, &err))
		die_of("the server's URL", &err);
	if (mysql_select_db(db, d.path.p))
		die("%s", mysql_error(db));
	start = now_s();
	if (mysql_query(db, SHORT_COLUMNS) || !(r = mysql_use_result(db)))
		die("%s", mysql_error(db));
	while (mysql_fetch_row(r))
		n--;
	if (n)
		die("%s: %lld entries are missing", url, (long long)n);
	start = now_s() - start;
	mysql_free_result(r);
	mysql_close(db);
	fw_arena_finish(&a);
	return start;
}

/* The number in a column of the result's only row. */
static double figure(const char *url, const char *sql, unsigned column)
{
	MYSQL *db = db_open(url);
	MYSQL_RES *r;
	MYSQL_ROW v;
	double n;

	if (mysql_query(db, sql) || !(r = mysql_store_result(db)))
		die("%s: %s", sql, mysql_error(db));
	v = mysql_fetch_row(r);
	if (!v || !fw_str_double(fw_str(v[column]), &n))
		die("%s: the result is not a number", sql);
	mysql_free_result(r);
	mysql_close(db);
	return n;
}

static double log_bytes(const char *url)
{
	return figure(url, "SHOW GLOBAL STATUS LIKE 'Innodb_os_log_written'", 1);
}

/* Of the files: information_schema.tables has only an older estimate. */
static double disk_bytes(const char *url)
{
	struct fw_dsn d;
	struct fw_arena a;
	struct fw_err err;
	double n;

	fw_arena_init(&a, 0);
	if (fw_dsn_split(&a, FW_DSN_STORE, url, &d, &err))
		die_of("the server's URL", &err);
	n = figure(url,
		fw_arena_printf(&a,
			"SELECT sum(file_size) FROM information_schema.innodb_sys_tablespaces WHERE name LIKE '%s/%%'",
			d.path.p),
		0);
	fw_arena_finish(&a);
	return n;
}

/* Another client leaves a transaction open in a session of its own. */
static void *foreign_begin(const char *url)
{
	MYSQL *idle = db_open(url);

	if (mysql_query(idle, "START TRANSACTION WITH CONSISTENT SNAPSHOT"))
		die("a transaction: %s", mysql_error(idle));
	return idle;
}

static void foreign_end(void *connection)
{
	mysql_close(connection);
}

const struct engine engine_mysql = {
	.name = "mysql",
	.workers = 4,
	.claim_goal = 12,
	.entry_goal = 40,
	.classic = "one row a transaction, SELECT ... FOR UPDATE SKIP LOCKED",
	.holds = true,
	.ref_fill = ref_fill,
	.ref_claim = ref_claim,
	.ref_entries = ref_entries,
	.ref_scan = ref_scan,
	.log_bytes = log_bytes,
	.disk_bytes = disk_bytes,
	.foreign_begin = foreign_begin,
	.foreign_end = foreign_end,
};
