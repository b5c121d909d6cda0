/* SPDX-License-Identifier: ISC */
/*
 * The texts of statements: fragments and field tables filled in. Also helpers that the core's files
 * share: batches of rows, transactions, counters.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "store/fields.h"
#include "store/sql/core.h"

/* ---- field tables ---------------------------------------------------------------------------- */

struct field_table {
	const char *name;
	const struct fw_field *field;
	const size_t *n;
	unsigned group; /* 0: all */
};

static const struct field_table FIELD_TABLES[] = {
	{"schedule", fw_schedule_fields, &fw_schedule_field_n, 0},
	{"feed", fw_feed_fields, &fw_feed_field_n, 0},
	{"validators", fw_feed_fields, &fw_feed_field_n, FW_GROUP_VALIDATORS},
	{"meta", fw_feed_fields, &fw_feed_field_n, FW_GROUP_META},
	{"rhythm", fw_feed_fields, &fw_feed_field_n, FW_GROUP_RHYTHM},
	{"redirect", fw_feed_fields, &fw_feed_field_n, FW_GROUP_REDIRECT},
	{"error", fw_feed_fields, &fw_feed_field_n, FW_GROUP_ERROR},
	{"entry", fw_entry_fields, &fw_entry_field_n, 0},
	{"visit", fw_visit_fields, &fw_visit_field_n, 0},
};

static const struct field_table *field_table_find(struct fw_str name)
{
	for (size_t i = 0; i < FW_N(FIELD_TABLES); i++) {
		if (fw_str_eq(name, fw_str(FIELD_TABLES[i].name)))
			return &FIELD_TABLES[i];
	}
	return NULL;
}

static bool field_table_has(const struct field_table *t, const struct fw_field *f)
{
	return !t->group || f->group == t->group;
}

/* The i-th field of the table; NULL: no more. */
static const struct fw_field *field_table_at(const struct field_table *t, size_t i)
{
	for (size_t k = 0; k < *t->n; k++) {
		if (field_table_has(t, &t->field[k]) && !i--)
			return &t->field[k];
	}
	return NULL;
}

static char field_letter(const struct fw_field *f)
{
	if (f->type == FW_FIELD_BYTES)
		return 'b';
	if (f->type != FW_FIELD_TEXT)
		return 'i';
	return strcmp(f->name, "extra") == 0 ? 'j' : 't';
}

size_t sql_fields_get(const char *table, const void *of, struct sql_value *out)
{
	const struct field_table *t = field_table_find(fw_str(table));
	size_t n = 0;

	assert(t);
	for (size_t i = 0; i < *t->n; i++) {
		const struct fw_field *f = &t->field[i];

		if (!field_table_has(t, f))
			continue;
		if (!fw_field_is_text(f))
			out[n++] = f->type == FW_FIELD_DATE ? SQL_DATE(fw_field_int(f, of)) :
							      SQL_INT(fw_field_int(f, of));
		else
			out[n++] = (struct sql_value){.type = f->type == FW_FIELD_BYTES ? SQL_TYPE_BLOB : SQL_TYPE_TEXT,
				.s = fw_field_str(f, of)};
	}
	return n;
}

size_t sql_fields_set(const char *table, void *of, const struct sql_row *row, int column)
{
	const struct field_table *t = field_table_find(fw_str(table));
	int at = column;

	assert(t);
	for (size_t i = 0; i < *t->n; i++) {
		const struct fw_field *f = &t->field[i];

		if (!field_table_has(t, f))
			continue;
		if (fw_field_is_text(f))
			fw_field_str_set(f, of, sql_str(row, at++));
		else if (f->type == FW_FIELD_DATE)
			fw_field_int_set(f, of, sql_date(row, at++));
		else
			fw_field_int_set(f, of, sql_int(row, at++));
	}
	return (size_t)(at - column);
}

/* ---- columns --------------------------------------------------------------------------------- */

struct fw_str sql_column(const struct sql_text *t, size_t i, char *letter)
{
	struct fw_str rest = fw_str(t->columns), one;

	while ((one = fw_str_split(rest, ' ', &rest)).p) {
		if (one.len > 2 && one.p[0] == '{') {
			const struct field_table *table = field_table_find(fw_str_sub(one, 1, one.len - 1));
			const struct fw_field *f;

			for (size_t k = 0; table && (f = field_table_at(table, k)) != NULL; k++) {
				if (i-- == 0) {
					*letter = field_letter(f);
					return fw_str(f->name);
				}
			}
		} else if (one.len > 2 && i-- == 0) {
			*letter = one.p[one.len - 1];
			return fw_str_sub(one, 0, one.len - 2);
		}
	}
	return FW_STR_NONE;
}

static size_t column_name_length(const char *p)
{
	size_t n = 0;

	while (fw_is_alnum(p[n]) || p[n] == '_')
		n++;
	return n;
}

/* Write v.NAME as the value, or the number, of that column. False: no such column. */
static bool text_column_write(struct fw_buf *b, const struct sql_text *t, const struct sql_form *f, struct fw_str name)
{
	struct fw_str column;
	char letter;

	for (size_t i = 0; (column = sql_column(t, i, &letter)).p; i++) {
		if (fw_str_eq(column, name)) {
			if (f->by_number)
				fw_buf_addf(b, "v.c%zu", i + 1);
			else
				fw_buf_addf(b, "%c%zu", f->mark, i + 1);
			return true;
		}
	}
	return false;
}

/* ---- fragments ------------------------------------------------------------------------------- */

/* "a.x, a.y" of a field table, or "x = a.x, y = a.y". */
static void text_fields_write(struct fw_buf *b, struct fw_str table, struct fw_str front, bool set)
{
	const struct field_table *t = field_table_find(table);
	const struct fw_field *f;

	for (size_t i = 0; t && (f = field_table_at(t, i)) != NULL; i++) {
		fw_buf_adds(b, i ? ", " : "");
		if (set)
			fw_buf_addf(b, "%s = ", f->name);
		fw_buf_addf(b, "%.*s%s", FW_STR_ARG(front), f->name);
	}
}

static bool text_fragment_expand(
	struct fw_buf *b, const struct sql_dialect *d, struct fw_str name, struct fw_str first, struct fw_str second);

/* a = {new a} AND b = {new b} */
static void text_equal_write(struct fw_buf *b, const struct sql_dialect *d, struct fw_str columns)
{
	struct fw_str one;

	for (bool any = false; (one = fw_str_split(columns, ',', &columns)).p; any = true) {
		one = fw_str_trim(one);
		fw_buf_addf(b, "%s%.*s = ", any ? " AND " : "", FW_STR_ARG(one));
		text_fragment_expand(b, d, FW_STR("new"), one, FW_STR_NONE);
	}
}

static void text_template_write(
	struct fw_buf *b, const struct sql_dialect *d, const char *text, struct fw_str first, struct fw_str second)
{
	for (; *text; text++) {
		if (text[0] == '$' && text[1] == '=') {
			text_equal_write(b, d, first);
			text++;
			continue;
		}
		if (text[0] == '$' && text[1] == '1')
			fw_buf_addstr(b, first), text++;
		else if (text[0] == '$' && text[1] == '2')
			fw_buf_addstr(b, second), text++;
		else
			fw_buf_addc(b, *text);
	}
}

static bool text_fragment_expand(
	struct fw_buf *b, const struct sql_dialect *d, struct fw_str name, struct fw_str first, struct fw_str second)
{
	for (const struct sql_fragment *g = d->fragment; g->name; g++) {
		if (fw_str_eq(name, fw_str(g->name))) {
			text_template_write(b, d, g->text, first, second);
			return true;
		}
	}
	return false;
}

/* A CASE that maps an enum to its names: fw_visit_kind_name(), fw_feed_status_name(). */
static void text_names_write(struct fw_buf *b, const struct sql_dialect *d, struct fw_str column, bool kind)
{
	struct fw_buf text = FW_BUF_INIT(0);

	fw_buf_addf(&text, "CASE %.*s", FW_STR_ARG(column));
	for (int i = 0; i < (kind ? FW_VISIT_KIND_N : FW_FEED_QUARANTINED + 1); i++)
		fw_buf_addf(&text, " WHEN %d THEN '%s'", i,
			kind ? fw_visit_kind_name((enum fw_visit_kind)i) : fw_feed_status_name((enum fw_feed_status)i));
	fw_buf_adds(&text, " END");
	text_fragment_expand(b, d, FW_STR("words"), fw_buf_str(&text), FW_STR_NONE);
	b->rc = text.rc ? text.rc : b->rc;
	fw_buf_finish(&text);
}

/* Expand the text between braces. False: it is not a fragment. */
static bool text_fragment_write(
	struct fw_buf *b, const struct sql_dialect *d, const struct sql_form *f, struct fw_str inside)
{
	struct fw_str args = FW_STR_NONE, name = fw_str_split(inside, ' ', &args), second = FW_STR_NONE,
		      first = fw_str_split(args, '|', &second);
	static const struct {
		const char *name, *before, *behind;
	} ROWS[] = {
		{"from", "FROM ", ""}, {"using", "USING ", ""}, {"rows", "", ","}, {"values", "SELECT v.* FROM ", ""}};

	if (fw_str_eq(name, FW_STR("fields")) || fw_str_eq(name, FW_STR("set"))) {
		text_fields_write(b, first, second, name.p[0] == 's');
		return true;
	}
	if (fw_str_eq(name, FW_STR("kind")) || fw_str_eq(name, FW_STR("status"))) {
		text_names_write(b, d, first, name.p[0] == 'k');
		return true;
	}
	for (size_t i = 0; i < FW_N(ROWS); i++) {
		if (!fw_str_eq(name, fw_str(ROWS[i].name)))
			continue;
		if (f->table)
			fw_buf_addf(b, "%s%s%s", ROWS[i].before, f->table, ROWS[i].behind);
		else if (f->values && name.p[0] == 'v')
			fw_buf_adds(b, f->values);
		return true;
	}
	return text_fragment_expand(b, d, name, first, second);
}

/* First pass: fragments. They may contain v.NAME, which the second pass replaces. */
static void text_fragments_write(
	struct fw_buf *b, const struct sql_dialect *d, const char *text, const struct sql_form *f)
{
	while (*text) {
		const char *end = *text == '{' ? strchr(text, '}') : NULL;

		if (end && text_fragment_write(b, d, f, (struct fw_str){text + 1, (size_t)(end - text - 1)})) {
			text = end + 1;
			continue;
		}
		fw_buf_addc(b, *text++);
	}
	fw_buf_addc(b, '\0');
}

char *sql_render(const struct sql_dialect *d, const struct sql_text *t, const struct sql_form *f)
{
	struct fw_buf b = FW_BUF_INIT(0), text = FW_BUF_INIT(0);

	text_fragments_write(&text, d, t->text, f);
	for (const char *p = text.rc ? "" : text.p; *p;) {
		if (*p == '?' && fw_is_digit(p[1])) {
			char *end;

			fw_buf_addf(&b, "%c%ld", f->mark, strtol(p + 1, &end, 10));
			p = end;
		} else if (t->columns && (!f->table || f->by_number) && p[0] == 'v' && p[1] == '.' &&
			(p == text.p || !column_name_length(p - 1)) &&
			text_column_write(&b, t, f, (struct fw_str){p + 2, column_name_length(p + 2)})) {
			p += 2 + column_name_length(p + 2);
		} else {
			fw_buf_addc(&b, *p++);
		}
	}
	if (text.rc)
		b.rc = text.rc;
	if (!b.rc && !b.p)
		fw_buf_adds(&b, " ");
	fw_buf_finish(&text);
	if (b.rc)
		fw_buf_finish(&b);
	return b.p;
}

/* ---- many rows ------------------------------------------------------------------------------- */

#define ROW_MAX 64                  /* values per row, at most */
#define ROWS_MAX 5000               /* rows per statement */
#define BYTES_MAX ((size_t)4 << 20) /* about; bytes of their texts per statement */

static void sql_rows_send(struct sql_rows *r)
{
	const struct sql_dialect *d = r->s->dialect;

	assert(!r->rc && r->n <= ROWS_MAX);
	if (r->n && r->table && d->append)
		r->rc = d->append(r->s, r->table, &r->text, r->v, r->width, r->n, r->err);
	else if (r->n)
		r->rc = r->fn && store_is_over(&r->s->store) ?
			store_over(r->s->name, r->err) :
			d->query_rows(r->s, &r->text, r->v, r->width, r->n, r->fn, r->ctx, r->err);
	r->n = r->bytes = 0;
}

void sql_rows_add(struct sql_rows *r, const struct sql_value *v, size_t n)
{
	assert(n > 0 && n <= ROW_MAX);
	assert(!r->n || r->width == n); /* all rows of a statement have the same columns */
	if (r->rc)
		return;
	r->width = n;
	if (r->n == r->cap) {
		size_t cap = r->cap ? FW_MIN(r->cap * 4, ROWS_MAX) : 16;
		struct sql_value *more = reallocarray(r->v, cap, n * sizeof(*v));

		if (!more) {
			r->rc = fw_no_memory(r->err);
			return;
		}
		r->v = more;
		r->cap = cap;
	}
	memcpy(r->v + r->n++ * n, v, n * sizeof(*v));
	for (size_t i = 0; i < n; i++)
		r->bytes += v[i].s.len;
	if (r->n == ROWS_MAX || r->bytes > BYTES_MAX)
		sql_rows_send(r);
}

void sql_rows_add_fields(struct sql_rows *r, const struct sql_value *v, size_t n, const char *table, const void *of)
{
	struct sql_value all[ROW_MAX];
	const struct field_table *t = field_table_find(fw_str(table));

	assert(t && n + *t->n <= ROW_MAX);
	memcpy(all, v, n * sizeof(*v));
	sql_rows_add(r, all, n + sql_fields_get(table, of, all + n));
}

int sql_rows_end(struct sql_rows *r)
{
	if (!r->rc)
		sql_rows_send(r);
	free(r->v);
	return r->rc;
}

/* ---- shared by the core ---------------------------------------------------------------------- */

#define TRIES 8

int sql_transaction(struct sql *s, sql_work_fn *fn, void *ctx, struct fw_err *err)
{
	int rc = 0;

	assert(fn && err); /* a driver never gets err NULL */
	for (int i = 0; i < TRIES; i++) {
		s->race = SQL_RACE_NONE;
		rc = s->dialect->begin(s, err);
		if (rc)
			return rc;
		rc = sql_end(s, fn(s, ctx, err), err);
		if (rc != FW_EAGAIN || s->race != SQL_RACE_LOCKS)
			break;
	}
	return rc;
}

int sql_end(struct sql *s, int rc, struct fw_err *err)
{
	struct fw_work_limit *limit = s->store.limit;

	s->store.limit = NULL; /* a limit does not cut off what tells whether it was stored */
	if (!rc)
		rc = s->dialect->commit(s, err);
	else
		s->dialect->rollback(s);
	s->store.limit = limit;
	return rc;
}

struct query_int {
	int64_t v;
	bool seen;
};

static int query_int_row(void *ctx, const struct sql_row *row)
{
	struct query_int *n = ctx;

	if (!n->seen && !sql_null(row, 0))
		*n = (struct query_int){sql_int(row, 0), true};
	return 0;
}

static int pass_hint(struct sql *s, bool on, struct fw_err *err)
{
	return s->dialect->passes ? s->dialect->passes(s, on, err) : 0;
}

int sql_pass(struct sql *s, const char *text, const struct sql_value *v, size_t n, sql_row_fn *fn, void *ctx,
	struct fw_err *err)
{
	int rc = pass_hint(s, true, err), after;

	rc = rc ? rc : sql_query(s, text, v, n, fn, ctx, err);
	after = pass_hint(s, false, rc ? &(struct fw_err){0} : err);
	return rc ? rc : after;
}

int sql_query_int(struct sql *s, const char *text, const struct sql_value *v, size_t n, int64_t none, int64_t *out,
	struct fw_err *err)
{
	struct query_int got = {none, false};
	int rc = sql_query(s, text, v, n, query_int_row, &got, err);

	*out = got.v;
	return rc;
}

int sql_ids_reserve(struct sql *s, const char *name, int64_t n, int64_t *last, struct fw_err *err)
{
	const struct sql_value v[2] = {SQL_TEXT(fw_str(name)), SQL_INT(n)};
	int rc = sql_exec(s, "UPDATE meta SET value = value + ?2 WHERE name = ?1", v, 2, err);

	return rc ? rc : sql_query_int(s, "SELECT value FROM meta WHERE name = ?1", v, 1, 0, last, err);
}

int sql_row_counts_add(struct sql *s, int64_t entry_n, int64_t visit_n, struct fw_err *err)
{
	return sql_exec(s, "INSERT INTO row_counts (entry_n, visit_n) VALUES (?1, ?2)",
		SQL_V(SQL_INT(entry_n), SQL_INT(visit_n)), err);
}

int sql_changes_raise(struct sql *s, struct fw_err *err)
{
	int rc = sql_exec(s, "UPDATE meta SET value = value + 1 WHERE name = 'changes'", SQL_NONE, err);

	return rc || !s->dialect->notify ? rc : s->dialect->notify(s, err);
}

int sql_shards_changed(struct sql *s, const bool *shard, struct fw_err *err)
{
	bool any = false;
	int rc = 0;

	/* in order, so that concurrent transactions cannot deadlock */
	for (int i = 0; !rc && i < STORE_SHARDS; i++) {
		if (shard[i])
			any = true,
			rc = sql_exec(
				s, "UPDATE shards SET version = version + 1 WHERE shard = ?1", SQL_V(SQL_INT(i)), err);
	}
	return rc || !any ? rc : sql_changes_raise(s, err);
}

struct id_before_mark {
	int64_t id, at_ms;
	bool seen;
};

static int id_before_row(void *ctx, const struct sql_row *row)
{
	*(struct id_before_mark *)ctx = (struct id_before_mark){sql_int(row, 0), sql_int(row, 1), true};
	return 0;
}

int sql_id_before(struct sql *s, const char *last, const char *next, int64_t before_ms, int64_t *id, struct fw_err *err)
{
	int64_t hi;
	int rc = sql_query_int(s, last, SQL_NONE, 0, &hi, err);

	*id = 0;
	while (!rc && *id < hi) { /* ids up to *id are older; above hi: later */
		int64_t mid = *id + (hi - *id) / 2 + 1;
		struct id_before_mark m = {0};

		rc = sql_query(s, next, SQL_V(SQL_INT(mid)), id_before_row, &m, err);
		if (!m.seen || m.at_ms >= before_ms)
			hi = mid - 1;
		else
			*id = m.id;
	}
	return rc;
}
