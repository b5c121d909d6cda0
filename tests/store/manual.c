/* SPDX-License-Identifier: ISC */
/* feedwheel-store(7) tells the truth: its examples run, it names every table and column that there is, and what it shares between
   engines is there on SQLite, as a table or as a view. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "common.h"

static struct fw_buf page;
static char path[300];
static sqlite3 *db;

static void setup(void)
{
	const char *root = getenv("FW_SOURCE_ROOT");
	char name[400], url[320], part[4096];
	struct fw_store *st;
	size_t n;
	FILE *f;

	ck_assert(fw_snprintf(name, sizeof(name), "%s/man/feedwheel-store.7", root ? root : "."));
	f = fopen(name, "r");
	ck_assert_msg(f != NULL, "%s is missing: set FW_SOURCE_ROOT", name);
	page = FW_BUF_INIT(0);
	while ((n = fread(part, 1, sizeof(part), f)) > 0)
		fw_buf_add(&page, part, n);
	fclose(f);
	ck_assert(fw_snprintf(path, sizeof(path), "%s/manual.db", scratch()));
	ck_assert(fw_snprintf(url, sizeof(url), "sqlite:%s", path));
	st = store_open(url, FW_STORE_CREATE);
	subscribe(st, "https://a.example/", NOW);
	fw_store_close(st);
	ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
}

static void teardown(void)
{
	sqlite3_close(db);
	fw_buf_finish(&page);
}

START_TEST(examples_run)
{
	const struct fw_str begin = FW_STR("\n.Bd -literal -offset indent\n"), end = FW_STR("\n.Ed");
	struct fw_str rest = fw_buf_str(&page);
	const char *at;
	int n = 0;

	while ((at = fw_str_find(rest, begin))) {
		char *sql, *words = NULL;

		rest = fw_str_sub(rest, (size_t)(at - rest.p) + begin.len, rest.len);
		at = fw_str_find(rest, end);
		ck_assert_ptr_nonnull(at);
		sql = fw_str_dup(fw_str_sub(rest, 0, (size_t)(at - rest.p)));
		ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, &words) == SQLITE_OK, "%s\n%s", words, sql);
		free(sql);
		n++;
	}
	ck_assert_int_eq(n, 6);
}
END_TEST

START_TEST(every_column_is_named)
{
	static const char *const own[] = {"feeds", "line", "leases", "aside", "claims", "places", "moves", "hosts", "entries", "entry_keys",
		"visit_batches", "visit_rows", "runs", "workers", "controls", "meta", "incoming", "incoming_dead", "records"};
	sqlite3_stmt *q;
	int n = 0, tables = 0;

	ck_assert_int_eq(sqlite3_prepare_v2(db, "SELECT t.name, c.name FROM sqlite_schema t, pragma_table_info(t.name) c"
		" WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%' AND t.name NOT LIKE 'entries_fts%'", -1, &q, NULL), SQLITE_OK);
	while (sqlite3_step(q) == SQLITE_ROW) {
		const char *table = (const char *)sqlite3_column_text(q, 0), *column = (const char *)sqlite3_column_text(q, 1);
		bool known = false;

		for (size_t i = 0; i < FW_N(own); i++)
			known |= strcmp(own[i], table) == 0;
		ck_assert_msg(known, "table %s is not in the list of this test", table);
		ck_assert_msg(fw_str_find(fw_buf_str(&page), fw_str(table)) && fw_str_find(fw_buf_str(&page), fw_str(column)),
			"feedwheel-store(7) does not name %s.%s", table, column);
		n++;
	}
	sqlite3_finalize(q);
	ck_assert_int_eq(sqlite3_prepare_v2(db, "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
		" AND name NOT LIKE 'entries_fts%'", -1, &q, NULL), SQLITE_OK);
	ck_assert_int_eq(sqlite3_step(q), SQLITE_ROW);
	tables = sqlite3_column_int(q, 0);
	sqlite3_finalize(q);
	ck_assert_int_eq(tables, (int)FW_N(own));
	ck_assert_int_gt(n, 100);
}
END_TEST

/* The names that all engines share, with their columns. */
START_TEST(shared_names_are_there)
{
	static const char *const ask[] = {
		"SELECT feed_id, due_at_ms, why, status, last_kind, http_status, fail_n, crash_n, last_visit_ms, last_ok_ms, last_new_ms,"
		" last_visit_id, expect_us, expect_dev_us, expect_parts FROM wheel",
		"SELECT id, wake_at_ms, feed_id, host_id, due_at_ms FROM queue",
		"SELECT host_id, due_at_ms, feed_id FROM parked",
		"SELECT fence, feed_id, due_at_ms, host_id FROM leases",
		"SELECT first_fence, last_fence, until_ms, worker FROM claims",
		"SELECT id, feed_id, previous_id, run_id, at_ms, lateness_ms, kind, http_status, hops, error, dns_us, connect_us, tls_us,"
		" first_byte_us, total_us, parse_us, wire_bytes, body_bytes, item_n, new_n, changed_n, slot, queue_us, store_us FROM visits",
	};
	int rows = 0;

	for (size_t i = 0; i < FW_N(ask); i++) {
		sqlite3_stmt *q = NULL;

		ck_assert_msg(sqlite3_prepare_v2(db, ask[i], -1, &q, NULL) == SQLITE_OK, "%s: %s", ask[i], sqlite3_errmsg(db));
		while (sqlite3_step(q) == SQLITE_ROW)
			rows++;
		ck_assert_int_eq(sqlite3_finalize(q), SQLITE_OK);
	}
	ck_assert_int_eq(rows, 2); /* its one feed is on the wheel and in the queue */
}
END_TEST

START_TEST(kinds_and_states_are_numbered_as_told)
{
	for (int i = 0; i < FW_VISIT_KIND_N; i++) {
		char item[60];

		ck_assert(fw_snprintf(item, sizeof(item), "%d %s", i, fw_visit_kind_name((enum fw_visit_kind)i)));
		ck_assert_msg(fw_str_find(fw_buf_str(&page), fw_str(item)) != NULL, "feedwheel-store(7) does not say \"%s\"", item);
	}
	for (int i = FW_FEED_ACTIVE; i <= FW_FEED_QUARANTINED; i++) {
		char item[60];

		ck_assert(fw_snprintf(item, sizeof(item), "%d %s", i, fw_feed_status_name((enum fw_feed_status)i)));
		ck_assert_msg(fw_str_find(fw_buf_str(&page), fw_str(item)) != NULL, "feedwheel-store(7) does not say \"%s\"", item);
	}
}
END_TEST

static int64_t pragma(const char *sql)
{
	sqlite3_stmt *q = NULL;
	int64_t v;

	ck_assert_int_eq(sqlite3_prepare_v2(db, sql, -1, &q, NULL), SQLITE_OK);
	ck_assert_int_eq(sqlite3_step(q), SQLITE_ROW);
	v = sqlite3_column_int64(q, 0);
	sqlite3_finalize(q);
	return v;
}

START_TEST(the_files_numbers_are_told)
{
	char text[80];

	ck_assert(fw_snprintf(text, sizeof(text), "is the schema's number, %d, and", (int)pragma("PRAGMA user_version")));
	ck_assert_msg(fw_str_find(fw_buf_str(&page), fw_str(text)) != NULL, "feedwheel-store(7) does not say \"%s\"", text);
	ck_assert(fw_snprintf(text, sizeof(text), "\nis 0x%08x.\n", (unsigned)pragma("PRAGMA application_id")));
	ck_assert_msg(fw_str_find(fw_buf_str(&page), fw_str(text)) != NULL, "feedwheel-store(7) does not say \"%s\"", text);
}
END_TEST

START_TEST(file_is_its_owners)
{
	struct stat sb;

	ck_assert_int_eq(stat(path, &sb), 0);
	ck_assert_int_eq(sb.st_mode & 0777, 0600);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("store, manual");
	TCase *t = tcase_create("feedwheel-store(7)");
	const TTest *every[] = {examples_run, every_column_is_named, shared_names_are_there, kinds_and_states_are_numbered_as_told,
		the_files_numbers_are_told, file_is_its_owners};

	tcase_add_checked_fixture(t, setup, teardown);
	for (size_t i = 0; i < FW_N(every); i++)
		tcase_add_test(t, every[i]);
	suite_add_tcase(s, t);
	return run_suite(s);
}
