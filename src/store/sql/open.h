/* SPDX-License-Identifier: ISC */
/* The steps of opening a store that all dialects share. */
#ifndef FW_STORE_SQL_OPEN_H
#define FW_STORE_SQL_OPEN_H

#include "store/dsn.h"
#include "store/sql/schema.h"

/* Set the members of s from cfg. */
void sql_init(struct sql *s, const struct store_driver *driver, const struct sql_dialect *dialect,
	const struct fw_store_config *cfg);

struct sql_server {
	const struct sql_dialect *dialect;
	size_t bytes; /* size of the dialect's own struct, whose first member is struct sql */
	/*
	 * Connect, then check or create the tables. On error the driver's close frees everything.
	 */
	int (*opened)(struct sql *s, const struct fw_dsn *d, bool create, struct fw_err *err);
};
int sql_open_server(const struct store_driver *driver, const struct sql_server *server,
	const struct fw_store_config *cfg, struct store **out, struct fw_err *err);

struct sql_tables_open {
	/* Read the schema's version, by sql_schema_version(); *version 0: there are no tables */
	int (*read_version)(struct sql *s, int64_t *version, struct fw_err *err);
	/*
	 * Exclude other processes while tables are created, by a lock or a transaction; unlock ends
	 * it
	 */
	int (*lock)(struct sql *s, struct fw_err *err);
	int (*unlock)(struct sql *s, int rc, struct fw_err *err);
	const char *const *search;         /* further statements of the dialect, NULL-ended; with fragments */
	const char *const *search_upgrade; /* the same for a store of schema 1; NULL: none */
	const char *const *doors;          /* the same for what other programs write */
};
/* Check the tables; create them if there are none and create is set, else FW_ENOTFOUND. */
int sql_tables_open(struct sql *s, bool create, const struct sql_tables_open *t, struct fw_err *err);

#endif
