/* SPDX-License-Identifier: ISC */
/* What opening has in common. For dialects. */
#ifndef FW_STORE_SQL_OPEN_H
#define FW_STORE_SQL_OPEN_H

#include "store/dsn.h"
#include "store/sql/schema.h"

/* What the caller's wishes say. */
void sql_init(struct sql *s, const struct store_driver *is, const struct sql_dialect *dialect,
	const struct fw_store_config *cfg);

struct sql_server {
	const struct sql_dialect *dialect;
	size_t bytes;             /* of the dialect's own struct, which begins with struct sql */
	/* connects, and sees to its tables; what there is by then its close frees, and s->name */
	int (*opened)(struct sql *s, const struct fw_dsn *d, bool create, struct fw_err *err);
};
int sql_open_server(const struct store_driver *is, const struct sql_server *server, const struct fw_store_config *cfg,
	struct store **out, struct fw_err *err);

struct sql_tables {
	/* *version 0: they are to be made. By sql_schema_look() */
	int (*look)(struct sql *s, int64_t *version, struct fw_err *err);
	/* keeps others from making them meanwhile: a lock, or a transaction; and its end, all or nothing where it can */
	int (*lock)(struct sql *s, struct fw_err *err);
	int (*unlock)(struct sql *s, int rc, struct fw_err *err);
	const char *const *search; /* what the dialect makes besides, ended by NULL; fragments are filled in */
};
/* Is it a store? One is made of it, if that is wished: else FW_ENOTFOUND. */
int sql_tables(struct sql *s, bool create, const struct sql_tables *t, struct fw_err *err);

#endif
