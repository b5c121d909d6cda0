/* SPDX-License-Identifier: ISC */
/* Open a store: the steps that all dialects share. */
#include <stdlib.h>

#include "store/dsn.h"
#include "store/sql/open.h"

int sql_open_server(const struct store_driver *driver, const struct sql_server *server,
	const struct fw_store_config *cfg, struct store **out, struct fw_err *err)
{
	struct sql *s = calloc(1, server->bytes);
	char name[FW_DSN_SHOW_MAX + 1];
	struct fw_arena a;
	struct fw_dsn d;
	int rc;

	if (!s)
		return fw_no_memory(err);
	fw_arena_init(&a, 0);
	sql_init(s, driver, server->dialect, cfg);
	fw_store_url_show(cfg->url, name, sizeof(name));
	s->name = fw_str_dup(fw_str(name));
	rc = s->name ? fw_dsn_split(&a, FW_DSN_STORE, cfg->url, &d, err) : fw_no_memory(err);
	rc = rc ? rc : server->opened(s, &d, (cfg->flags & FW_STORE_CREATE) && !s->read_only, err);
	fw_arena_finish(&a);
	if (rc)
		driver->close(&s->store);
	else
		*out = &s->store;
	return rc;
}

void sql_init(struct sql *s, const struct store_driver *driver, const struct sql_dialect *dialect,
	const struct fw_store_config *cfg)
{
	s->store.driver = driver;
	s->dialect = dialect;
	s->read_only = cfg->flags & FW_STORE_READ;
	s->async_commit = cfg->async_commit;
	s->revisions_max = cfg->revisions_max;
	s->revision_max_bytes = cfg->revision_max_bytes ? (int64_t)cfg->revision_max_bytes : INT64_MAX;
	s->account_feeds_max = cfg->account_feeds_max;
	s->busy_timeout_ms = cfg->busy_timeout_ms > 0 ? cfg->busy_timeout_ms : FW_STORE_BUSY_MS;
}

int sql_tables_open(struct sql *s, bool create, const struct sql_tables_open *t, struct fw_err *err)
{
	int rc = t->read_version(s, &s->schema, err);

	if (rc || s->schema == SQL_SCHEMA || (s->schema && s->read_only))
		return rc;
	if (!s->schema && !create)
		return fw_err_set(
			err, FW_ENOTFOUND, "%s: the store is empty (to start, run `feedwheel add URL`)", s->name);
	rc = t->lock(s, err);
	if (rc)
		return rc;
	rc = t->read_version(s, &s->schema, err); /* again: another process may have been first */
	if (!rc && s->schema != SQL_SCHEMA) {
		rc = s->schema ? sql_schema_upgrade(s, t->search_upgrade, t->doors, err) :
				 sql_schema_create(s, t->search, t->doors, err);
		s->schema = SQL_SCHEMA;
	}
	return t->unlock(s, rc, err);
}
