/* SPDX-License-Identifier: ISC */
/* The tables of members, compared with the structs and with the columns of a real store. */
#include <sqlite3.h>
#include <stdio.h>
#include <unistd.h>

#include "../../suite.h"
#include "base/str.h"
#include "store/fields.h"

static const struct table {
	const char *name;
	const struct fw_field *field;
	const size_t *n;
	size_t size;
} tables[] = {
	{"schedule", fw_schedule_fields, &fw_schedule_field_n, sizeof(struct fw_feed)},
	{"feeds", fw_feed_fields, &fw_feed_field_n, sizeof(struct fw_feed)},
	{"entries", fw_entry_fields, &fw_entry_field_n, sizeof(struct fw_entry_row)},
	{"visits", fw_visit_fields, &fw_visit_field_n, sizeof(struct fw_visit)},
};

START_TEST(fields_are_set_and_read)
{
	static const int64_t values[] = {0, 1, -1, 77, INT32_MAX, INT32_MIN, UINT32_MAX, INT64_MAX, INT64_MIN};
	const struct table *t = &tables[_i];
	char *of = calloc(1, t->size);

	for (size_t i = 0; i < *t->n; i++) {
		const struct fw_field *f = &t->field[i];

		for (size_t k = 0; k < FW_N(values) && !fw_field_is_text(f); k++) {
			int64_t v = values[k];

			v = f->type == FW_FIELD_SMALL     ? (int32_t)v :
				f->type == FW_FIELD_COUNT ? (int64_t)(uint32_t)v :
							    v;
			fw_field_int_set(f, of, values[k]);
			ck_assert_msg(fw_field_int(f, of) == v, "%s.%s: %lld", t->name, f->name, (long long)values[k]);
		}
		if (fw_field_is_text(f)) {
			fw_field_str_set(f, of, FW_STR("text"));
			ck_assert(fw_str_eq(fw_field_str(f, of), FW_STR("text")));
		}
	}
	free(of);
}
END_TEST

START_TEST(members_are_their_own) /* setting a member changes no other */
{
	const struct table *t = &tables[_i];
	char *of = calloc(1, t->size);

	for (size_t i = 0; i < *t->n; i++) {
		if (fw_field_is_text(&t->field[i]))
			fw_field_str_set(&t->field[i], of, (struct fw_str){t->field[i].name, i});
		else
			fw_field_int_set(&t->field[i], of, (int64_t)i);
	}
	for (size_t i = 0; i < *t->n; i++) {
		if (fw_field_is_text(&t->field[i]))
			ck_assert_uint_eq(fw_field_str(&t->field[i], of).len, i);
		else
			ck_assert_int_eq(fw_field_int(&t->field[i], of), (int64_t)i);
	}
	free(of);
}
END_TEST

START_TEST(some_by_name)
{
	struct fw_feed f = {.due_at_ms = 5, .last_kind = FW_VISIT_DNS, .etag = FW_STR("\"x\"")};
	struct fw_visit v = {.slot = -1};

	ck_assert_str_eq(fw_schedule_fields[0].name, "due_at_ms");
	ck_assert_int_eq(fw_field_int(&fw_schedule_fields[0], &f), 5);
	ck_assert_int_eq(fw_field_int(&fw_schedule_fields[2], &f), FW_VISIT_DNS);
	for (size_t i = 0; i < fw_feed_field_n; i++) {
		if (strcmp(fw_feed_fields[i].name, "etag") == 0)
			ck_assert(fw_str_eq(fw_field_str(&fw_feed_fields[i], &f), f.etag));
	}
	for (size_t i = 0; i < fw_visit_field_n; i++) {
		if (strcmp(fw_visit_fields[i].name, "slot") == 0)
			ck_assert_int_eq(fw_field_int(&fw_visit_fields[i], &v), -1);
	}
}
END_TEST

/* True for a column of a table or a view. */
static bool has_column(sqlite3 *db, const char *table, const char *column)
{
	sqlite3_stmt *q = NULL;
	char sql[200];
	bool there;

	ck_assert(fw_snprintf(sql, sizeof(sql), "SELECT t.%s FROM %s t", column, table));
	there = sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK;
	sqlite3_finalize(q);
	return there;
}

START_TEST(columns_of_a_store) /* each member has a column of the same name */
{
	char path[] = "/tmp/feedwheel-fields-XXXXXX", url[100];
	int fd = mkstemp(path);
	struct fw_store_config c = {.flags = FW_STORE_CREATE};
	struct fw_store *st = NULL;
	struct fw_err err = {0};
	sqlite3 *db = NULL;

	ck_assert_int_ge(fd, 0);
	close(fd);
	ck_assert(fw_snprintf(url, sizeof(url), "sqlite:%s", path));
	c.url = url;
	ck_assert_msg(fw_store_open(&c, &st, &err) == 0, "%s", err.text);
	fw_store_close(st);
	ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
	for (size_t t = 0; t < FW_N(tables); t++) {
		for (size_t i = 0; i < *tables[t].n; i++)
			ck_assert_msg(has_column(db, tables[t].name, tables[t].field[i].name), "%s has no column %s",
				tables[t].name, tables[t].field[i].name);
	}
	sqlite3_close(db);
	unlink(path);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit store fields");
	TCase *tc = tcase_create("fields");

	tcase_add_loop_test(tc, fields_are_set_and_read, 0, (int)FW_N(tables));
	tcase_add_loop_test(tc, members_are_their_own, 0, (int)FW_N(tables));
	tcase_add_test(tc, some_by_name);
	tcase_add_test(tc, columns_of_a_store);
	suite_add_tcase(s, tc);
	return run_suite(s);
}
