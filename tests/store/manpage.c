/* SPDX-License-Identifier: ISC */
/*
 * feedwheel-store(7) is true on each SQL engine: it describes every table, view and column, and no
 * others, as does tests/interface/list.txt, and each of its queries returns the right rows. The
 * queries run in the engine's own client library, as users run them.
 *
 * The line `.\" query NAME` before a query names it; `.\" query NAME ENGINE...` is for those
 * engines only.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "client.h"
#include "drv.h"

static struct fw_buf page, list;

static void file_read(struct fw_buf *out, const char *path)
{
	const char *root = getenv("FW_SOURCE_ROOT");
	char name[400], part[4096];
	size_t n;
	FILE *f;

	ck_assert(fw_snprintf(name, sizeof(name), "%s/%s", root ? root : ".", path));
	f = fopen(name, "r");
	ck_assert_msg(f != NULL, "%s is missing: set FW_SOURCE_ROOT", name);
	*out = FW_BUF_INIT(0);
	while ((n = fread(part, 1, sizeof(part), f)) > 0)
		fw_buf_add(out, part, n);
	fclose(f);
}

static void page_read(void)
{
	file_read(&page, "man/feedwheel-store.7");
	file_read(&list, "tests/interface/list.txt");
}

static void page_free(void)
{
	fw_buf_finish(&page);
	fw_buf_finish(&list);
}

#define COLUMNS "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = "

static const struct engine {
	const char *name;
	const char *columns; /* table and column of the whole store, without SQLite's own */
} ENGINE[] = {
	{"sqlite",
		"SELECT t.name, c.name FROM sqlite_schema t, pragma_table_info(t.name) c"
		" WHERE t.type IN ('table', 'view') AND t.name NOT LIKE 'sqlite%'"
		" AND t.name NOT LIKE 'entries_fts%'"},
#if FW_HAVE_POSTGRES
	{"postgres", COLUMNS "current_schema()"},
#endif
#if FW_HAVE_MYSQL
	{"mysql", COLUMNS "database()"},
#endif
};

/* NULL: this is not an SQL engine that several processes can use. */
static const struct engine *engine_of(int driver)
{
	for (size_t i = 0; i < FW_N(ENGINE); i++) {
		if (strcmp(ENGINE[i].name, under_test[driver].name) == 0)
			return &ENGINE[i];
	}
	return NULL;
}

/* ---- rows ------------------------------------------------------------------------------------ */

#define TODAY INT64_C(1795564800000) /* 2026-11-25T00:00:00Z, the day of the page's queries */
/* clang-format off */
#define T(text) {(text), sizeof(text) - 1}
/* clang-format on */
#define AGO(days, hours) (TODAY - FW_DAY_MS * (days) + FW_HOUR_MS * (hours))

static const struct fw_feed FEED[] = {
	{.id = 1,
		.url = T("https://sky.example/feed"),
		.title = T("Sky Diary"),
		.folder = T("Science"),
		.due_at_ms = AGO(0, 8),
		.last_visit_ms = AGO(0, 7),
		.last_ok_ms = AGO(0, 6),
		.last_kind = FW_VISIT_TIMEOUT,
		.fail_n = 1,
		.error = T("no answer"),
		.created_ms = AGO(300, 0)},
	{.id = 2,
		.url = T("https://tide.example/feed"),
		.title = T("Tide Notes"),
		.user_title = T("Tides"),
		.folder = T("Science"),
		.due_at_ms = AGO(-1, 0),
		.last_visit_ms = AGO(1, 8),
		.last_ok_ms = AGO(10, 0),
		.last_kind = FW_VISIT_HTTP,
		.http_status = 404,
		.fail_n = 12,
		.error = T("HTTP 404"),
		.created_ms = AGO(300, 0)},
	{.id = 3,
		.url = T("https://pear.example/feed"),
		.title = T("Pears"),
		.folder = T("Food"),
		.due_at_ms = AGO(-1, 0),
		.last_visit_ms = AGO(1, 9),
		.last_ok_ms = AGO(1, 9),
		.last_kind = FW_VISIT_OK,
		.http_status = 200,
		.created_ms = AGO(300, 0)},
	{.id = 4, .url = T("https://new.example/feed"), .due_at_ms = AGO(2, 0), .created_ms = AGO(3, 0)},
	{.id = 5, .url = T("https://off.example/feed"), .status = FW_FEED_PAUSED, .created_ms = AGO(4, 0)},
};

/* clang-format off */
#define ENTRY(number, feed, words, by, date, json) \
	{.id = (number), .feed_id = (feed), .key = {number}, .hash = 1, .guid = T(words), \
		.title = T(words), .url = T("https://e.example/" #number), .author = T(by), \
		.published_ms = (date), .updated_ms = FW_NO_DATE, .seen_ms = (date) + 60000, \
		.changed_ms = (date) + 60000, .revision = 1, .extra = T(json), \
		.content_type = FW_TEXT_HTML, .content = T("<p>text</p>")}
/* clang-format on */

static const struct fw_entry_row ROW[] = {
	ENTRY(1, 1, "The first star", "Ada Hale", AGO(90, 0), "{\"tags\":[\"star\"]}"),
	ENTRY(2, 2, "Spring tide", "Ben Orr, Ada Hale", AGO(5, 1), "{\"tags\":[\"sea\",\"moon\"],\"image\":\"i\"}"),
	ENTRY(3, 3, "Pears and \"moon\" cake", "Cleo", AGO(2, 3), "{\"_feedwheel\":{\"comments\":\"moon\"}}"),
	ENTRY(4, 1, "Moon over the bay", "ADA HALE", AGO(1, 8), "{\"tags\":[\"moon\"]}"),
	ENTRY(5, 1, "By moonlight", "Dora", AGO(1, 20), "{\"tags\":[\"moonlight\"]}"),
	ENTRY(6, 4, "A note", "Dora", AGO(1, 21), "{}"),
};

/* clang-format off */
#define VISIT(number, feed, when, late, is, status, total, found, words) \
	{.id = (number), .feed_id = (feed), .at_ms = (when), .lateness_ms = (late), \
		.kind = FW_VISIT_##is, .http_status = (status), .slot = -1, .total_us = (total), \
		.item_n = (found), .new_n = (found), .error = T(words)}
/* clang-format on */

static const struct fw_visit VISITS[] = {
	VISIT(1, 1, AGO(40, 0), 99000, OK, 200, 9000000, 1, ""),
	VISIT(2, 2, AGO(1, 8), 1000, HTTP, 404, 90999, 0, "HTTP 404"),
	VISIT(3, 1, AGO(1, 8) + 5000, 4000, OK, 200, 120000, 1, ""),
	VISIT(4, 3, AGO(1, 9), 0, OK, 200, 700000, 1, ""),
	VISIT(5, 1, AGO(1, 20), 2000, OK, 200, 180000, 1, ""),
	VISIT(6, 4, AGO(1, 21), 0, PUSHED, 0, 0, 1, ""),
	VISIT(7, 1, AGO(0, 6), 7, NOT_MODIFIED, 304, 60000, 0, ""),
	VISIT(8, 1, AGO(0, 7), 8, TIMEOUT, 0, 3000000, 0, "no answer"),
};

/* ---- queries --------------------------------------------------------------------------------- */

static const struct answer {
	const char *query, *rows;
	const char *engine; /* the only engine it is for; NULL: each */
} ANSWER[] = {
	{"folder",
		"2026-11-24T20:00:00.000Z|Sky Diary|By moonlight|https://e.example/5\n"
		"2026-11-24T08:00:00.000Z|Sky Diary|Moon over the bay|https://e.example/4\n"
		"2026-11-20T01:00:00.000Z|Tides|Spring tide|https://e.example/2\n"
		"2026-08-27T00:00:00.000Z|Sky Diary|The first star|https://e.example/1\n",
		NULL},
	{"failing", "https://tide.example/feed|2026-11-15T00:00:00.000Z|12|HTTP 404\n", NULL},
	{"busiest", "1|Sky Diary|2\n*", NULL},
	{"author",
		"2026-11-24T08:00:00.000Z|ADA HALE|Moon over the bay\n"
		"2026-11-20T01:00:00.000Z|Ben Orr, Ada Hale|Spring tide\n"
		"2026-08-27T00:00:00.000Z|Ada Hale|The first star\n",
		NULL},
	{"tag",
		"2026-11-24T08:00:00.000Z|Moon over the bay|moon\n"
		"2026-11-20T01:00:00.000Z|Spring tide|sea, moon\n",
		NULL},
	{"never", "https://new.example/feed|2026-11-22T00:00:00.000Z|2026-11-23T00:00:00.000Z\n", NULL},
	{"slowest",
		"https://sky.example/feed|4|840|3000\n"
		"https://pear.example/feed|1|700|700\n"
		"https://tide.example/feed|1|90|90\n",
		NULL},
	{"median",
		"https://pear.example/feed|700\n"
		"https://sky.example/feed|150\n"
		"https://tide.example/feed|90\n",
		"postgres"},
	{"days",
		"2026-11-20|Science|1\n"
		"2026-11-23|Food|1\n"
		"2026-11-24|-|1\n"
		"2026-11-24|Science|2\n",
		NULL},
	{"word",
		"2026-11-24T08:00:00.000Z|Moon over the bay\n"
		"2026-11-23T03:00:00.000Z|Pears and \"moon\" cake\n",
		NULL},
	{"today",
		"2026-11-25T06:00:00.000Z|not_modified|304|60|0|\n"
		"2026-11-25T07:00:00.000Z|timeout||3000|0|no answer\n",
		NULL},
	{"late",
		"08|2|2500|4000\n"
		"09|1|0|0\n"
		"20|1|2000|2000\n",
		NULL},
	{"history",
		"2026-11-25T07:00:00.000Z|timeout||0|no answer\n"
		"2026-11-25T06:00:00.000Z|not_modified|304|0|\n"
		"2026-11-24T20:00:00.000Z|ok|200|1|\n"
		"2026-11-24T08:00:05.000Z|ok|200|1|\n"
		"2026-10-16T00:00:00.000Z|ok|200|1|\n",
		NULL},
	{"owner", "https://sky.example/feed|host 1|2026-11-25T00:00:00.000Z\n", NULL},
};

/* Reads the next query of the page: its name, its engine (absent: all), its SQL. */
static bool query_next(struct fw_str *rest, struct fw_str *name, struct fw_str *engine, struct fw_buf *sql)
{
	const struct fw_str mark = FW_STR("\n.\\\" query "), begin = FW_STR(".Bd -literal -offset indent\n"),
			    end = FW_STR("\n.Ed");
	const char *at = fw_str_find(*rest, mark);
	struct fw_str line, text;

	if (!at)
		return false;
	line = fw_str_split(fw_str_sub(*rest, (size_t)(at - rest->p) + mark.len, rest->len), '\n', rest);
	*name = fw_str_split(line, ' ', engine);
	ck_assert_msg(fw_str_starts(*rest, begin), "query %.*s: it does not begin behind its name", FW_STR_ARG(*name));
	text = fw_str_sub(*rest, begin.len, rest->len);
	at = fw_str_find(text, end);
	ck_assert_ptr_nonnull(at);
	text = fw_str_sub(text, 0, (size_t)(at - text.p));
	*rest = fw_str_sub(*rest, begin.len + text.len, rest->len);
	fw_buf_reset(sql);
	for (size_t i = 0; i < text.len; i++) {
		fw_buf_addc(sql, text.p[i]);
		if (text.p[i] == '\\') { /* \e */
			ck_assert(i + 1 < text.len && text.p[i + 1] == 'e');
			i++;
		}
	}
	fw_buf_addc(sql, '\0');
	ck_assert_int_eq(sql->rc, 0);
	return true;
}

/* Runs the page's queries with this name that this engine can run. Returns how many there were. */
static int asked(const struct engine *e, const char *url, const char *query, struct fw_buf *out)
{
	struct fw_str rest = fw_buf_str(&page), name, engine;
	struct fw_buf sql = FW_BUF_INIT(0);
	int n = 0;

	while (query_next(&rest, &name, &engine, &sql)) {
		if (fw_str_eq(name, fw_str(query)) && (!engine.len || fw_str_find(engine, fw_str(e->name)))) {
			const char *words = client_try(url, sql.p, out);

			ck_assert_msg(!words, "%s\n%s", words, sql.p);
			n++;
		}
	}
	fw_buf_finish(&sql);
	fw_buf_addc(out, '\0');
	return n;
}

/* A star at the end of `want`: more may follow. */
static void answer_is(const struct engine *e, const char *url, const struct answer *a)
{
	struct fw_buf out = FW_BUF_INIT(0);
	size_t n = strlen(a->rows);
	bool more = a->rows[n - 1] == '*';

	ck_assert_msg(asked(e, url, a->query, &out) == 1, "feedwheel-store(7) has not one query %s for %s", a->query,
		e->name);
	ck_assert_msg(more ? strncmp(out.p, a->rows, n - 1) == 0 : strcmp(out.p, a->rows) == 0,
		"%s: query %s finds\n%sand not\n%s", e->name, a->query, out.p, a->rows);
	fw_buf_finish(&out);
}

START_TEST(queries_return_the_rows)
{
	const struct engine *e = engine_of(_i);
	struct fw_load rows = {.feed = FEED,
		.entry = ROW,
		.visit = VISITS,
		.feed_n = FW_N(FEED),
		.entry_n = FW_N(ROW),
		.visit_n = FW_N(VISITS)};
	struct fw_err err = {0};
	struct fw_store *st;
	char url[300];

	if (!e)
		return;
	ck_assert(fw_snprintf(url, sizeof(url), "%s", scratch_url(_i, "manual_queries")));
	st = store_open(url, FW_STORE_CREATE);
	OK(fw_store_load(st, &rows, &err));
	index_all(st);
	OK(fw_store_heartbeat_put(st, &(struct fw_heartbeat){.worker = "host 1"}, TODAY, &err));
	free(drv_join(store_of(st), "host 1", LONG_MS));
	for (size_t i = 0; i < FW_N(ANSWER); i++) {
		if (!ANSWER[i].engine || strcmp(ANSWER[i].engine, e->name) == 0)
			answer_is(e, url, &ANSWER[i]);
	}
	fw_store_close(st);
}
END_TEST

/* One entry is of today, one too old, by the server's clock. */
START_TEST(query_with_a_relative_time)
{
	struct fw_entry_row e[] = {ENTRY(1, 1, "young", "", 0, "{}"), ENTRY(2, 1, "old", "", 0, "{}")};
	struct fw_load rows = {.feed = FEED, .entry = e, .feed_n = 1, .entry_n = FW_N(e)};
	const struct engine *engine = engine_of(_i);
	struct fw_err err = {0};
	struct fw_store *st;
	int64_t now_ms;
	char url[300];

	if (!engine)
		return;
	ck_assert(fw_snprintf(url, sizeof(url), "%s", scratch_url(_i, "manual_ago")));
	st = store_open(url, FW_STORE_CREATE);
	OK(fw_store_clock(st, &now_ms, &err));
	e[0].seen_ms = e[0].changed_ms = now_ms - 30 * FW_DAY_MS + FW_HOUR_MS;
	e[1].seen_ms = e[1].changed_ms = now_ms - 30 * FW_DAY_MS - FW_HOUR_MS;
	OK(fw_store_load(st, &rows, &err));
	answer_is(engine, url, &(struct answer){"ago", "young\n", NULL});
	fw_store_close(st);
}
END_TEST

/* The statements of DOORS do what the page says. */
START_TEST(doors_are_open)
{
	static const char *const DOOR[] = {"door_fetch", "door_control", "door_feed"};
	struct fw_load rows = {.feed = FEED, .feed_n = FW_N(FEED)};
	const struct engine *e = engine_of(_i);
	struct fw_buf out = FW_BUF_INIT(0);
	struct fw_err err = {0};
	struct fw_store *st;
	struct fw_arena a;
	struct fw_feed f;
	char url[300];

	if (!e)
		return;
	ck_assert(fw_snprintf(url, sizeof(url), "%s", scratch_url(_i, "manual_doors")));
	st = store_open(url, FW_STORE_CREATE);
	OK(fw_store_load(st, &rows, &err));
	for (size_t i = 0; i < FW_N(DOOR); i++)
		ck_assert_msg(asked(e, url, DOOR[i], &out) == 1, "feedwheel-store(7) has not one query %s for %s",
			DOOR[i], e->name);
	ck_assert_int_eq(stats(st).inbox_n, 2);
	ck_assert_str_eq(
		client_rows(url, "SELECT url, folder FROM feeds_to_fetch"), "https://sky.example/new|Science\n");
	ck_assert_str_eq(client_rows(url, "SELECT command, worker FROM control"), "reload|\n");
	fw_arena_init(&a, 0);
	f = find(st, 3, &a);
	ck_assert(fw_str_eq(f.folder, FW_STR("Fruit")) && f.interval_ms == FW_HOUR_MS);
	ck_assert_int_eq(f.due_at_ms, AGO(-29, 10));
	fw_arena_finish(&a);
	fw_buf_finish(&out);
	fw_store_close(st);
}
END_TEST

/* Each query of the page is run by some test. */
START_TEST(every_query_has_an_answer)
{
	struct fw_str rest = fw_buf_str(&page), name, engine;
	struct fw_buf sql = FW_BUF_INIT(0);
	int n = 0;

	for (; query_next(&rest, &name, &engine, &sql); n++) {
		bool known = fw_str_eq(name, FW_STR("ago")) || fw_str_starts(name, FW_STR("door_"));

		for (size_t i = 0; i < FW_N(ANSWER); i++)
			known |= fw_str_eq(name, fw_str(ANSWER[i].query)) &&
				(!ANSWER[i].engine || fw_str_eq(engine, fw_str(ANSWER[i].engine)));
		ck_assert_msg(known, "query %.*s of feedwheel-store(7) has no answer here", FW_STR_ARG(name));
	}
	fw_buf_finish(&sql);
	ck_assert_int_ge(n, 10);
	rest = fw_buf_str(&page);
	for (const char *at; (at = fw_str_find(rest, FW_STR("\n.Bd -literal"))) != NULL; n--)
		rest = fw_str_sub(rest, (size_t)(at - rest.p) + 1, rest.len);
	ck_assert_msg(n == 0, "a literal text of feedwheel-store(7) is no query with a name");
}
END_TEST

/* ---- tables and columns ---------------------------------------------------------------------- */

static bool is_word(char c)
{
	return fw_is_alnum((unsigned char)c) || c == '_';
}

static bool has_word(struct fw_str text, struct fw_str word)
{
	const char *at;

	for (; (at = fw_str_find(text, word)) != NULL; text = fw_str_sub(text, (size_t)(at - text.p) + 1, text.len)) {
		const char *end = at + word.len;

		if ((at == text.p || !is_word(at[-1])) && (end == text.p + text.len || !is_word(*end)))
			return true;
	}
	return false;
}

/* The text of the page below ".Ss ... table ..."; absent: there is none. */
static struct fw_str section_of(struct fw_str table)
{
	struct fw_str rest = fw_buf_str(&page), line;
	const char *at, *sh;

	while ((at = fw_str_find(rest, FW_STR("\n.Ss "))) != NULL) {
		line = fw_str_split(fw_str_sub(rest, (size_t)(at - rest.p) + 1, rest.len), '\n', &rest);
		if (!has_word(line, table))
			continue;
		at = fw_str_find(rest, FW_STR("\n.Ss "));
		sh = fw_str_find(rest, FW_STR("\n.Sh "));
		at = !at || (sh && sh < at) ? sh : at;
		return fw_str_sub(rest, 0, at ? (size_t)(at - rest.p) : rest.len);
	}
	return FW_STR_NONE;
}

/* Each line of the result is "table|column". */
static bool has_column(struct fw_str all, struct fw_str table, struct fw_str column)
{
	struct fw_str line, of;

	while ((line = fw_str_split(all, '\n', &all)).len) {
		if (fw_str_eq(fw_str_split(line, '|', &of), table) && fw_str_eq(of, column))
			return true;
	}
	return false;
}

/* The names in ".It Va a , b" of this table's section are columns of the table. */
static void only_columns(struct fw_str all, struct fw_str table, struct fw_str section)
{
	struct fw_str line, word;

	while (section.len) {
		line = fw_str_split(section, '\n', &section);
		if (!fw_str_starts(line, FW_STR(".It Va ")))
			continue;
		line = fw_str_sub(line, strlen(".It Va "), line.len);
		while (line.len) {
			word = fw_str_split(line, ' ', &line);
			ck_assert_msg(fw_str_eq(word, FW_STR(",")) || has_column(all, table, word),
				"feedwheel-store(7) tells of %.*s.%.*s, which is not there", FW_STR_ARG(table),
				FW_STR_ARG(word));
		}
	}
}

/* A line of the list tells of this column, of all engines or of this one. */
static bool is_listed(const char *engine, struct fw_str table, struct fw_str column)
{
	char line[200];

	ck_assert(fw_snprintf(line, sizeof(line), "\ncolumn %.*s.%.*s\n", FW_STR_ARG(table), FW_STR_ARG(column)));
	if (fw_str_find(fw_buf_str(&list), fw_str(line)))
		return true;
	ck_assert(fw_snprintf(
		line, sizeof(line), "\n%s-column %.*s.%.*s\n", engine, FW_STR_ARG(table), FW_STR_ARG(column)));
	return fw_str_find(fw_buf_str(&list), fw_str(line)) != NULL;
}

/* Each column that the list has, and does not mark as removed, is there. Returns how many. */
static int listed_columns(const char *engine, struct fw_str all)
{
	struct fw_str rest = fw_buf_str(&list), line, table, column;
	char own[40];
	int n = 0;

	ck_assert(fw_snprintf(own, sizeof(own), "%s-column ", engine));
	while (rest.len) {
		line = fw_str_split(rest, '\n', &rest);
		if (fw_str_starts(line, fw_str(own)))
			line = fw_str_sub(line, strlen(own), line.len);
		else if (fw_str_starts(line, FW_STR("column ")))
			line = fw_str_sub(line, strlen("column "), line.len);
		else
			continue;
		table = fw_str_split(line, '.', &column);
		if (fw_str_find(column, FW_STR(" ")) || fw_str_eq(table, FW_STR("entries_fts")))
			continue; /* SQLite's own table is not in `all` */
		ck_assert_msg(has_column(all, table, column),
			"%s: tests/interface/list.txt has %.*s, which is not there", engine, FW_STR_ARG(line));
		n++;
	}
	return n;
}

START_TEST(every_column_is_named)
{
	const struct engine *e = engine_of(_i);
	struct fw_buf out = FW_BUF_INIT(0);
	struct fw_str rest, line, table, column, section;
	char url[300];
	int n = 0;

	if (!e)
		return;
	ck_assert(fw_snprintf(url, sizeof(url), "%s", scratch_url(_i, "manual_columns")));
	fw_store_close(store_open(url, FW_STORE_CREATE));
	ck_assert_ptr_null(client_try(url, e->columns, &out));
	for (rest = fw_buf_str(&out); rest.len; n++) {
		line = fw_str_split(rest, '\n', &rest);
		table = fw_str_split(line, '|', &column);
		section = section_of(table);
		ck_assert_msg(section.p, "%s: feedwheel-store(7) does not tell of %.*s", e->name, FW_STR_ARG(table));
		ck_assert_msg(has_word(section, column), "%s: feedwheel-store(7) does not name %.*s.%.*s", e->name,
			FW_STR_ARG(table), FW_STR_ARG(column));
		ck_assert_msg(is_listed(e->name, table, column),
			"%s: tests/interface/list.txt does not have %.*s.%.*s: run 'make interface'", e->name,
			FW_STR_ARG(table), FW_STR_ARG(column));
		only_columns(fw_buf_str(&out), table, section);
	}
	ck_assert_int_gt(n, 100);
	ck_assert_int_gt(listed_columns(e->name, fw_buf_str(&out)), 100);
	fw_buf_finish(&out);
}
END_TEST

/* ---- numbers --------------------------------------------------------------------------------- */

START_TEST(kinds_and_states_have_the_manuals_numbers)
{
	for (int i = 0; i < FW_VISIT_KIND_N; i++) {
		char item[60];

		ck_assert(fw_snprintf(item, sizeof(item), "%d %s", i, fw_visit_kind_name((enum fw_visit_kind)i)));
		ck_assert_msg(
			has_word(fw_buf_str(&page), fw_str(item)), "feedwheel-store(7) does not say \"%s\"", item);
	}
	for (int i = FW_FEED_ACTIVE; i <= FW_FEED_QUARANTINED; i++) {
		char item[60];

		ck_assert(fw_snprintf(item, sizeof(item), "%d %s", i, fw_feed_status_name((enum fw_feed_status)i)));
		ck_assert_msg(
			has_word(fw_buf_str(&page), fw_str(item)), "feedwheel-store(7) does not say \"%s\"", item);
	}
}
END_TEST

START_TEST(schema_number_of_the_manual)
{
	struct fw_store *st = store_open("memory:", FW_STORE_CREATE);
	char text[80];

	ck_assert(fw_snprintf(text, sizeof(text), "schema's number, %d", (int)stats(st).schema));
	fw_store_close(st);
	ck_assert_msg(has_word(fw_buf_str(&page), fw_str(text)), "feedwheel-store(7) does not say \"%s\"", text);
}
END_TEST

START_TEST(file_is_its_owners)
{
	char url[300], path[300];
	struct stat sb;

	ck_assert(fw_snprintf(path, sizeof(path), "%s/owner.db", scratch()));
	ck_assert(fw_snprintf(url, sizeof(url), "sqlite:%s", path));
	fw_store_close(store_open(url, FW_STORE_CREATE));
	ck_assert_int_eq(stat(path, &sb), 0);
	ck_assert_int_eq(sb.st_mode & 0777, 0600);
}
END_TEST

int main(void)
{
	TCase *t = cases("feedwheel-store(7)", page_read, page_free, 60);
	const TTest *const each[] = {
		queries_return_the_rows, query_with_a_relative_time, every_column_is_named, doors_are_open};
	const TTest *const once[] = {every_query_has_an_answer, kinds_and_states_have_the_manuals_numbers,
		schema_number_of_the_manual, file_is_its_owners};

	stores_begin();
	cases_add(t, each, FW_N(each), under_test_n);
	cases_add_once(t, once, FW_N(once));
	return cases_run("store manpage", t);
}
