/* SPDX-License-Identifier: ISC */
/*
 * Icons: a cache of small pictures, one row for each address. A row without a picture says that the
 * fetch failed. A picture that differs from the one before is a new row with a new id, because
 * clients keep pictures by their ids.
 */
#include <assert.h>

#include "base/hash.h"
#include "store/sql/accounts.h"

/* ---- reading --------------------------------------------------------------------------------- */

struct icon_finding {
	fw_icon_cb *cb;
	void *ctx;
};

static int icon_row(void *ctx, const struct sql_row *row)
{
	const struct icon_finding *f = ctx;

	return f->cb(f->ctx,
		&(struct fw_icon){.id = sql_int(row, 0),
			.tried_ms = sql_int(row, 1),
			.failed = sql_int(row, 2) != 0,
			.url = sql_str(row, 3),
			.type = sql_str(row, 4),
			.bytes = sql_str(row, 5)});
}

int sql_icon_find(
	struct store *st, const struct fw_str *url, size_t n, bool bytes, fw_icon_cb *cb, void *ctx, struct fw_err *err)
{
	struct icon_finding f = {cb, ctx};
	struct fw_hash128 hash[FW_ICON_STEP];
	struct sql_rows with = SQL_QUERY_ROWS(sql_of(st), err, icon_row, &f,
		"SELECT i.id, i.tried_ms, i.failed, i.url, i.media_type, i.content FROM {rows} icons i"
		" WHERE i.url_hash = v.hash",
		"hash:b");
	struct sql_rows without = SQL_QUERY_ROWS(sql_of(st), err, icon_row, &f,
		"SELECT i.id, i.tried_ms, i.failed, i.url, i.media_type, NULL FROM {rows} icons i"
		" WHERE i.url_hash = v.hash",
		"hash:b");
	struct sql_rows *rows = bytes ? &with : &without;
	int rc = sql_accounts_absent(sql_of(st), err);

	assert(n <= FW_N(hash));
	for (size_t i = 0; !rc && i < n; i++) {
		hash[i] = fw_hash128(url[i].p, url[i].len);
		sql_rows_add(rows, SQL_V(SQL_KEY(hash[i].b)));
	}
	return rc ? rc : sql_rows_end(rows);
}

/* ---- writing --------------------------------------------------------------------------------- */

static int icon_insert(struct sql *s, const struct fw_icon *icon, const struct sql_value *key, struct fw_err *err)
{
	int64_t id;
	int rc = sql_ids_reserve(s, "icon_id", 1, &id, err);

	return rc ? rc :
		    sql_exec(s,
			    "INSERT INTO icons (id, url_hash, tried_ms, failed, url, media_type, content)"
			    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
			    SQL_V(SQL_INT(id), *key, SQL_INT(icon->tried_ms), SQL_INT(icon->failed),
				    SQL_TEXT(icon->url), SQL_TEXT(icon->type), SQL_BLOB(icon->bytes)),
			    err);
}

static int icon_put_in(struct sql *s, void *ctx, struct fw_err *err)
{
	const struct fw_icon *icon = ctx;
	struct fw_hash128 hash = fw_hash128(icon->url.p, icon->url.len);
	const struct sql_value key = SQL_KEY(hash.b);
	int64_t id = 0, same = 0;
	int rc = sql_query_int(s, "SELECT id FROM icons WHERE url_hash = ?1 {update}", SQL_V(key), 0, &id, err);

	if (!rc && id && !icon->failed)
		rc = sql_query_int(s, "SELECT id FROM icons WHERE id = ?1 AND content = ?2",
			SQL_V(SQL_INT(id), SQL_BLOB(icon->bytes)), 0, &same, err);
	if (rc)
		return rc;
	if (id && (icon->failed || same))
		return sql_exec(s, "UPDATE icons SET tried_ms = ?2, failed = ?3 WHERE id = ?1",
			SQL_V(SQL_INT(id), SQL_INT(icon->tried_ms), SQL_INT(icon->failed)), err);
	rc = id ? sql_exec(s, "DELETE FROM icons WHERE id = ?1", SQL_V(SQL_INT(id)), err) : 0;
	return rc ? rc : icon_insert(s, icon, &key, err);
}

int sql_icon_put(struct store *st, const struct fw_icon *icon, struct fw_err *err)
{
	struct fw_icon copy = *icon;

	return sql_transaction(sql_of(st), icon_put_in, &copy, err);
}
