/* SPDX-License-Identifier: ISC */
/*
 * A store of its own for each case on the MariaDB or MySQL under test, and connections to it that
 * bypass the driver.
 */
#ifndef TEST_STORE_MYSQL_FIXTURE_H
#define TEST_STORE_MYSQL_FIXTURE_H

#include <mysql.h>

#include "common.h"

extern char url[300], name[60]; /* the URL of the store, and the name of its database */

/* The next store; it does not exist yet. */
void bare_begin(void);
MYSQL *bare_open(void);
void run(MYSQL *db, const char *sql);
/* Runs one statement on a connection of its own. */
void bare(const char *sql);
/* The first column of the first row; "" for NULL. Valid until the next call. */
const char *bare_text(const char *sql);
int64_t bare_number(const char *sql);

#endif
