/* SPDX-License-Identifier: ISC */
/*
 * Prints the tables of this build that no command shows: "route GET /v1/feeds", and each statement
 * that makes the tables of an SQL engine, "sql postgres CREATE TABLE ...", without a server of it.
 * tools/interface.py reads this.
 */
#include <stdio.h>

#include "store/sql/schema.h"
#include "store/sqlite/sqlite.h"
#if FW_HAVE_POSTGRES
#include "store/postgres/postgres.h"
#endif
#if FW_HAVE_MYSQL
#include "store/mysql/mysql.h"
#endif
#if HAVE_SERVER
#include "http/server/http.h"
#endif

static const char *engine;

/* In place of running the statement. */
static int statement_print(struct sql *s, const char *text, struct fw_err *err)
{
	(void)s;
	(void)err;
	printf("sql %s ", engine);
	for (; *text; text++)
		putchar(*text == '\n' || *text == '\t' ? ' ' : *text);
	putchar('\n');
	return 0;
}

static int schema_print(
	const char *name, const struct sql_dialect *dialect, const char *const *search, const char *const *doors)
{
	struct sql_dialect printing = *dialect;
	struct sql s = {.dialect = &printing};
	struct fw_err err = {0};
	int rc;

	engine = name;
	printing.script = statement_print;
	rc = sql_schema_create(&s, search, doors, &err);
	if (rc)
		fprintf(stderr, "%s: %s\n", name, err.text);
	return rc;
}

int main(void)
{
	int rc = schema_print("sqlite", &sqlite_dialect, sqlite_search_tables, sqlite_doors);

#if FW_HAVE_POSTGRES
	rc = rc ? rc : schema_print("postgres", &postgres_dialect, postgres_search_tables, postgres_doors);
#endif
#if FW_HAVE_MYSQL
	rc = rc ? rc : schema_print("mysql", &mysql_dialect, mysql_search_tables, mysql_doors);
#endif
#if HAVE_SERVER
	size_t n;
	const struct route *r = http_routes(&n);

	for (size_t i = 0; i < n; i++)
		printf("route %s %s\n", r[i].method, r[i].path);
#endif
	return rc != 0;
}
