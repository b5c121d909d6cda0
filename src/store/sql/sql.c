/* SPDX-License-Identifier: ISC */
/* Texts of statements, with what a dialect puts into them. */
#include <stdlib.h>

#include "base/buf.h"
#include "store/sql/sql.h"
#include "base/banned.h"

struct fw_str sql_column(const struct sql_text *t, size_t i, char *letter)
{
	struct fw_str rest = fw_str(t->columns), one;

	do {
		one = fw_str_split(rest, ' ', &rest);
	} while (i-- && one.p);
	if (!one.p || one.len < 3)
		return FW_STR_NONE;
	*letter = one.p[one.len - 1];
	one.len -= 2;
	return one;
}

static size_t name_length(const char *p)
{
	size_t n = 0;

	while (fw_is_alpha(p[n]) || fw_is_digit(p[n]) || p[n] == '_')
		n++;
	return n;
}

/* v.NAME by its value; false: no column has that name. */
static bool column_value(struct fw_buf *b, const struct sql_text *t, const struct sql_form *f, struct fw_str name)
{
	struct fw_str column;
	char letter;

	for (size_t i = 0; (column = sql_column(t, i, &letter)).p; i++) {
		if (fw_str_eq(column, name)) {
			fw_buf_addf(b, "%c%zu", f->mark, i + 1);
			return true;
		}
	}
	return false;
}

char *sql_write(const struct sql_dialect *d, const struct sql_text *t, const struct sql_form *f)
{
	const struct { struct fw_str name; const char *text; } FRAGMENT[] = {
		{FW_STR("{now}"), d->now}, {FW_STR("{skip}"), d->skip}, {FW_STR("{share}"), d->share}, {FW_STR("{hits}"), d->hits}, {FW_STR("{blob}"), d->blob_type},
		{FW_STR("{clustered}"), d->clustered}, {FW_STR("{filled}"), d->filled}, {FW_STR("{from}"), f->from}, {FW_STR("{values}"), f->values},
	};
	struct fw_buf b;
	size_t n;

	fw_buf_init(&b, 0);
	for (const char *p = t->text; *p; p += n) {
		n = 1;
		if (*p == '?' && fw_is_digit(p[1])) {
			char *end;

			fw_buf_addf(&b, "%c%ld", f->mark, strtol(p + 1, &end, 10));
			n = (size_t)(end - p);
			continue;
		}
		if (f->by_value && p[0] == 'v' && p[1] == '.' && (p == t->text || !name_length(p - 1)) &&
			column_value(&b, t, f, (struct fw_str){p + 2, name_length(p + 2)})) {
			n = 2 + name_length(p + 2);
			continue;
		}
		for (size_t i = 0; *p == '{' && i < FW_N(FRAGMENT); i++) {
			if (FRAGMENT[i].text && strncmp(p, FRAGMENT[i].name.p, FRAGMENT[i].name.len) == 0) {
				fw_buf_adds(&b, FRAGMENT[i].text);
				n = FRAGMENT[i].name.len;
				break;
			}
		}
		if (n == 1)
			fw_buf_addc(&b, *p);
	}
	if (b.rc)
		fw_buf_finish(&b);
	return b.p;
}
