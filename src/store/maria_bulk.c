/* SPDX-License-Identifier: ISC */
/*
 * Many rows by one INSERT whose values travel beside it, in binary form: MariaDB's array binding, which MySQL lacks. What is saved is
 * the parsing: rows of 1 KB cost the server half of what the same rows cost as text.
 *
 * Values are kept by column, as the library wants them. Text is bound as bytes, so that nobody converts or counts its letters; it
 * is made valid UTF-8 here.
 */
#include <stdlib.h>

#include "base/utf8.h"
#include "store/maria.h"

int mr_bulk_init(struct maria *m, struct mr_bulk *b, unsigned columns, unsigned rows, struct fw_err *err)
{
	size_t cells = (size_t)columns * rows;

	*b = (struct mr_bulk){.columns = columns, .rows = rows, .bind = calloc(columns, sizeof(*b->bind)),
		.value = calloc(cells, sizeof(*b->value)), .length = calloc(cells, sizeof(*b->length)), .state = calloc(cells, 1)};
	fw_arena_init(&b->mended, 0);
	return b->bind && b->value && b->length && b->state ? 0 : mr_no_memory(m, err);
}

void mr_bulk_finish(struct mr_bulk *b)
{
	free(b->bind);
	free(b->value);
	free(b->length);
	free(b->state);
	fw_arena_finish(&b->mended);
	*b = (struct mr_bulk){0};
}

/* The next value's place: from left to right, row by row. */
static size_t next(struct mr_bulk *b, enum enum_field_types type, bool absent)
{
	unsigned column = (unsigned)(b->n % b->columns);
	size_t at = (size_t)column * b->rows + b->n / b->columns;

	b->bind[column].buffer_type = type;
	b->state[at] = absent ? STMT_INDICATOR_NULL : STMT_INDICATOR_NONE;
	b->n++;
	return at;
}

void mr_bulk_int(struct mr_bulk *b, int64_t v)
{
	b->value[next(b, MYSQL_TYPE_LONGLONG, false)].number = v;
}

void mr_bulk_bytes(struct mr_bulk *b, struct fw_str s)
{
	size_t at = next(b, MYSQL_TYPE_BLOB, !s.p);

	b->value[at].bytes = s.p;
	b->length[at] = s.len;
}

/* Of what is no UTF-8: a copy that is. */
static struct fw_str mended(struct mr_bulk *b, struct fw_str s)
{
	struct fw_buf copy = FW_BUF_INIT(0);

	mr_text_each(s, &copy, fw_buf_add);
	s = fw_arena_str(&b->mended, fw_buf_str(&copy));
	b->failed |= copy.rc || !s.p;
	fw_buf_finish(&copy);
	return s;
}

void mr_bulk_text(struct mr_bulk *b, struct fw_str s)
{
	mr_bulk_bytes(b, fw_utf8_valid(s.p, s.len) == s.len ? s : mended(b, s));
}

void mr_bulk_field(struct mr_bulk *b, const struct fw_field *f, const void *of)
{
	if (fw_field_is_text(f)) {
		struct fw_str s = fw_field_str(f, of);

		if (f->type == FW_FIELD_BYTES)
			mr_bulk_bytes(b, s);
		else
			mr_bulk_text(b, s);
	} else if (f->type == FW_FIELD_DATE && fw_field_int(f, of) == FW_NO_DATE) {
		(void)next(b, MYSQL_TYPE_LONGLONG, true);
	} else {
		mr_bulk_int(b, fw_field_int(f, of));
	}
}

static int prepared(struct maria *m, MYSQL_STMT **stmt, struct fw_str sql, struct fw_err *err)
{
	if (*stmt)
		return 0;
	*stmt = mysql_stmt_init(m->db);
	if (!*stmt)
		return mr_no_memory(m, err);
	return mysql_stmt_prepare(*stmt, sql.p, sql.len) ? mr_error_of(m, *stmt, "preparing", err) : 0;
}

/* The numbers that RETURNING tells, in the order of the rows. */
static int numbers_read(struct maria *m, MYSQL_STMT *stmt, unsigned rows, int64_t *id, struct fw_err *err)
{
	int64_t v = 0;
	MYSQL_BIND out = {.buffer_type = MYSQL_TYPE_LONGLONG, .buffer = &v};
	unsigned n = 0;
	int end;

	if (mysql_stmt_bind_result(stmt, &out) || mysql_stmt_store_result(stmt))
		return mr_error_of(m, stmt, "reading", err);
	while ((end = mysql_stmt_fetch(stmt)) == 0 && n < rows)
		id[n++] = v;
	if (end == 1)
		return mr_error_of(m, stmt, "reading", err);
	mysql_stmt_free_result(stmt);
	if (n != rows || !end)
		return fw_err_set(err, FW_EINVAL, "%s: wrote %u rows, told the numbers of %u: upgrade the server", m->name, rows, n);
	return 0;
}

static int execute(struct maria *m, struct mr_bulk *b, MYSQL_STMT **stmt, struct fw_str sql, int64_t *id, struct fw_err *err)
{
	unsigned rows = (unsigned)(b->n / b->columns);
	int rc = prepared(m, stmt, sql, err);

	for (unsigned i = 0; i < b->columns; i++) {
		size_t at = (size_t)i * b->rows;

		b->bind[i].buffer = &b->value[at];
		b->bind[i].length = &b->length[at];
		b->bind[i].u.indicator = &b->state[at];
	}
	if (rc)
		return rc;
	if (mysql_stmt_attr_set(*stmt, STMT_ATTR_ARRAY_SIZE, &rows) || mysql_stmt_bind_param(*stmt, b->bind) || mysql_stmt_execute(*stmt))
		return mr_error_of(m, *stmt, "writing", err);
	return id ? numbers_read(m, *stmt, rows, id, err) : 0;
}

int mr_bulk_run(struct maria *m, struct mr_bulk *b, MYSQL_STMT **stmt, struct fw_str sql, int64_t *id, struct fw_err *err)
{
	int rc = mr_flush(m, err);

	if (!rc && b->failed)
		rc = mr_no_memory(m, err);
	rc = rc ? rc : execute(m, b, stmt, sql, id, err);
	if (rc && *stmt) { /* begins anew */
		mysql_stmt_close(*stmt);
		*stmt = NULL;
	}
	b->n = 0;
	return rc;
}
