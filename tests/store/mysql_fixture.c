/* SPDX-License-Identifier: ISC */
#include <unistd.h>

#include "mysql_fixture.h"

char url[300], name[60];

void bare_begin(void)
{
	static int n;

	ck_assert(fw_snprintf(name, sizeof(name), "t%d_%d", (int)getpid(), n++));
	ck_assert(fw_snprintf(url, sizeof(url), "%s", scratch_url(0, name)));
}

MYSQL *bare_open(void)
{
	MYSQL *db = mysql_init(NULL);

	ck_assert_msg(mysql_real_connect(db, NULL, "root", NULL, name, 0, strstr(url, "socket=") + 7, 0) != NULL, "%s",
		mysql_error(db));
	return db;
}

void run(MYSQL *db, const char *sql)
{
	ck_assert_msg(mysql_query(db, sql) == 0, "%s\n%s", mysql_error(db), sql);
	mysql_free_result(mysql_store_result(db));
}

void bare(const char *sql)
{
	MYSQL *db = bare_open();

	run(db, sql);
	mysql_close(db);
}

const char *bare_text(const char *sql)
{
	static char text[400];
	MYSQL *db = bare_open();
	MYSQL_RES *res;
	MYSQL_ROW row;

	ck_assert_msg(mysql_query(db, sql) == 0, "%s\n%s", mysql_error(db), sql);
	res = mysql_store_result(db);
	row = mysql_fetch_row(res);
	ck_assert(fw_str_copy(text, sizeof(text), fw_str(row && row[0] ? row[0] : "")));
	mysql_free_result(res);
	mysql_close(db);
	return text;
}

int64_t bare_number(const char *sql)
{
	int64_t v = -1;

	ck_assert(fw_str_int(fw_str(bare_text(sql)), &v));
	return v;
}
