/* SPDX-License-Identifier: ISC */
/* For each case a store of its own on the MariaDB or MySQL under test, and connections to it past the driver. */
#ifndef TEST_STORE_BARE_MARIA_H
#define TEST_STORE_BARE_MARIA_H

#include <mysql.h>

#include "common.h"

extern char url[300], name[60]; /* of the store, and of its database */

/* Another one; it is not made yet. */
void bare_begin(void);
MYSQL *bare_open(void);
void run(MYSQL *db, const char *sql);
/* On a connection of its own. */
void bare(const char *sql);
/* The first column of the first row; "" for NULL. Until the next call. */
const char *bare_text(const char *sql);
int64_t bare_number(const char *sql);

#endif
