/* SPDX-License-Identifier: ISC */
/*
 * The MySQL and MariaDB dialect below the core: values; many rows by each of its two ways, and
 * which row failed; opening and its refusals; half-made tables; concurrent clients; a full-text
 * index that lags; statements whose client has left.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/account.h"
#include "base/clock.h"
#include "drv.h"
#include "mysql_fixture.h"
#include "store/mysql/mysql.h"

static struct fw_arena A;
static struct fw_err err;

static void setup(void)
{
	fw_arena_init(&A, 0);
	err = (struct fw_err){0};
	bare_begin();
}

static void teardown(void)
{
	fw_arena_finish(&A);
}

static struct store *open_as(unsigned flags)
{
	struct fw_store_config c = {.url = url, .flags = flags, .busy_timeout_ms = 1000};
	struct store *st = NULL;

	OK(store_mysql.open(&c, &st, &err));
	return st;
}

static void refused_at(const char *at, unsigned flags, int code, const char *words)
{
	struct fw_store_config c = {.url = at, .flags = flags, .busy_timeout_ms = 1000};
	struct store *st = NULL;
	int rc = store_mysql.open(&c, &st, &err);

	ck_assert_msg(rc == code, "%d instead of %d: %s", rc, code, err.text);
	ck_assert_msg(strstr(err.text, words) != NULL, "does not say \"%s\": %s", words, err.text);
	ck_assert_ptr_null(strchr(err.text, '\n'));
	ck_assert_ptr_null(strstr(err.text, "secret"));
}

static void no_finding(void *ctx, const char *what, int level, const char *found, const char *remedy)
{
	(void)ctx;
	(void)remedy;
	ck_assert_msg(level < 2, "%s: %s", what, found);
}

static void clean_close(struct store *st)
{
	OK(st->driver->inspect(st, true, no_finding, NULL, &err));
	st->driver->close(st);
}

/* ---- many rows, as arrays (_i 0) and as text (_i 1) ------------------------------------------ */

#define MANY 3000

static struct sql *table_make(int i)
{
	struct sql *s = sql_of(open_as(FW_STORE_CREATE));

	if (i)
		mysql_db(s)->arrays = false;
	else
		ck_assert(mysql_db(s)->arrays || getenv("FW_MYSQLD"));
	OK(s->dialect->script(s,
		"CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, n BIGINT, name MEDIUMTEXT, b LONGBLOB)"
		" ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
		&err));
	return s;
}

static const struct sql_text PUT = {"INSERT INTO t (id, n, name, b) {values}", "id:i n:i name:t b:b"};

static int each(struct sql *s, const struct sql_text *t, const struct sql_value *v, size_t n, size_t rows)
{
	return s->dialect->query_rows(s, t, v, n, rows, NULL, NULL, &err);
}

static struct sql_value *rows_make(int64_t from, size_t rows)
{
	struct sql_value *v = fw_arena_calloc(&A, rows, 4 * sizeof(*v));

	for (size_t i = 0; i < rows; i++) {
		int64_t id = from + (int64_t)i;

		v[4 * i] = SQL_INT(id);
		v[4 * i + 1] = i % 3 ? SQL_INT(-id) : SQL_NULL;
		v[4 * i + 2] = i % 5 ? SQL_TEXT(fw_str(fw_arena_printf(&A, "it's \\ \"%lld\"\n?1 ü", (long long)id))) :
				       SQL_TEXT(FW_STR_NONE);
		v[4 * i + 3] = SQL_BLOB(fw_arena_str(&A, ((struct fw_str){"\0\xff';x?1", 7})));
	}
	return v;
}

struct got {
	const struct sql_value *v;
	size_t n;
};

static int row_is(void *ctx, const struct sql_row *row)
{
	struct got *g = ctx;
	const struct sql_value *v = &g->v[4 * sql_int(row, 0)];

	ck_assert_int_eq(sql_int(row, 1), v[0].i);
	ck_assert(sql_null(row, 2) == (v[1].type == SQL_TYPE_NULL) && sql_int(row, 2) == v[1].i);
	ck_assert(sql_null(row, 3) == !v[2].s.p && fw_str_eq(sql_str(row, 3), v[2].s));
	ck_assert(fw_str_eq(sql_str(row, 4), v[3].s));
	g->n++;
	return 0;
}

START_TEST(rows_come_back)
{
	static const struct sql_text GET = {
		"SELECT v.nth, t.id, t.n, t.name, t.b FROM {rows} t WHERE t.id = v.id AND t.b = v.bytes",
		"nth:i id:i bytes:b"};
	static const size_t N[] = {1, 3, 4, 100, MANY};
	struct sql *s = table_make(_i);
	struct sql_value *w = fw_arena_calloc(&A, MANY, 3 * sizeof(*w));
	int64_t from = 1, n;

	for (size_t k = 0; k < FW_N(N); k++) {
		struct got g = {rows_make(from, N[k]), 0};

		OK(s->dialect->begin(s, &err));
		OK(sql_end(s, each(s, &PUT, g.v, 4, N[k]), &err));
		for (size_t i = 0; i < N[k]; i++) {
			w[3 * i] = SQL_INT(i);
			w[3 * i + 1] = g.v[4 * i];
			w[3 * i + 2] = g.v[4 * i + 3];
		}
		OK(s->dialect->query_rows(s, &GET, w, 3, N[k], row_is, &g, &err));
		ck_assert_uint_eq(g.n, N[k]);
		from += (int64_t)N[k];
	}
	OK(sql_query_int(s, "SELECT count(*) FROM t", SQL_NONE, 0, &n, &err));
	ck_assert_int_eq(n, from - 1);
	bare("DROP TABLE t");
	s->store.driver->close(&s->store);
}
END_TEST

START_TEST(found_or_not) /* a row that is unchanged counts as found */
{
	static const struct sql_text SET = {
		"UPDATE t AS t SET n = v.n, name = v.name, b = v.name {from} WHERE t.id = v.id", "id:i n:i name:t"};
	static const size_t N[] = {2, 50, MANY};
	struct sql *s = table_make(_i);
	int64_t changed;

	OK(each(s, &PUT, rows_make(1, 2 * MANY), 4, 2 * MANY)); /* sent at once: no transaction is open */
	for (int i = 0; i < 3; i++) {
		OK(sql_exec_count(s, "UPDATE t SET n = 5 WHERE id = ?1", SQL_V(SQL_INT(i < 2)), &changed, &err));
		ck_assert_int_eq(changed, i < 2);
	}
	for (size_t k = 0; k < FW_N(N); k++) {
		struct sql_value *v = fw_arena_calloc(&A, N[k], 3 * sizeof(*v));

		for (size_t i = 0; i < N[k]; i++) { /* every second row is missing */
			v[3 * i] = SQL_INT(i % 2 ? -1 : (int64_t)i + 1);
			v[3 * i + 1] = SQL_INT(7);
			v[3 * i + 2] = SQL_TEXT(FW_STR("same"));
		}
		OK(s->dialect->begin(s, &err));
		OK(sql_end(s, each(s, &SET, v, 3, N[k]), &err));
		ck_assert_int_eq(bare_number("SELECT count(*) FROM t WHERE n = 7 AND name = 'same' AND b = 'same'"),
			(int64_t)N[k] / 2);
	}
	bare("DROP TABLE t");
	s->store.driver->close(&s->store);
}
END_TEST

START_TEST(there_already)
{
	static const char KEEP[] = "INSERT INTO t (id, n) VALUES (?2, ?1) {keep id|t.id}";
	static const struct sql_text OVER = {
		"INSERT INTO t (id, n) {values} {upsert id} n = {greatest}(t.n, {new n})", "id:i n:i"};
	static const struct sql_text GO = {"DELETE FROM t {using} WHERE id = v.id", "id:i"};
	struct sql *s = table_make(_i);
	struct sql_value v[40], id[20];
	int64_t changed;

	for (int i = 0; i < 2; i++) {
		OK(sql_exec_count(s, KEEP, SQL_V(SQL_INT(10 + i), SQL_INT(1)), &changed, &err));
		ck_assert_int_eq(changed, !i);
	}
	ck_assert_int_eq(bare_number("SELECT n FROM t WHERE id = 1"), 10);
	bare("ALTER TABLE t ADD UNIQUE (n)"); /* an index of the user's: it hides no other error */
	IS(sql_exec_count(s, KEEP, SQL_V(SQL_INT(10), SQL_INT(2)), &changed, &err), FW_EINVAL);
	ck_assert_int_eq(bare_number("SELECT count(*) FROM t"), 1);
	bare("ALTER TABLE t DROP INDEX n");
	for (size_t i = 0; i < 20; i++) {
		v[2 * i] = id[i] = SQL_INT(i + 1);
		v[2 * i + 1] = SQL_INT(i);
	}
	OK(s->dialect->begin(s, &err));
	OK(each(s, &OVER, v, 2, 20));
	OK(s->dialect->commit(s, &err));
	ck_assert_int_eq(bare_number("SELECT sum(n) FROM t"), 10 + 190);
	OK(s->dialect->begin(s, &err));
	OK(each(s, &GO, id, 1, 2));
	OK(each(s, &GO, id + 3, 1, 10));
	OK(s->dialect->commit(s, &err));
	ck_assert_int_eq(bare_number("SELECT count(*) FROM t"), 8);
	bare("DROP TABLE t");
	s->store.driver->close(&s->store);
}
END_TEST

START_TEST(failed_transaction_is_rolled_back)
{
	static const char BAD[] = "INSERT INTO t (id, n) VALUES (?1, ?1)";
	struct sql *s = table_make(_i);
	struct sql_value *v = rows_make(1, 100);

	OK(s->dialect->begin(s, &err));
	OK(sql_exec(s, BAD, SQL_V(SQL_INT(500)), &err));
	OK(sql_exec(s, BAD, SQL_V(SQL_INT(500)), &err)); /* reported later */
	IS(s->dialect->commit(s, &err), FW_EAGAIN);
	ck_assert_int_eq(bare_number("SELECT count(*) FROM t"), 0);
	v[4 * 99] = SQL_INT(1); /* the last row exists already */
	OK(s->dialect->begin(s, &err));
	IS(sql_end(s, each(s, &PUT, v, 4, 100), &err), FW_EAGAIN);
	ck_assert_int_eq(bare_number("SELECT count(*) FROM t"), 0);
	v[4 * 99] = SQL_INT(100);
	v[4 * 50 + 2] = SQL_TEXT(FW_STR("a\xff"
					"b"));
	OK(s->dialect->begin(s, &err));
	OK(sql_end(s, each(s, &PUT, v, 4, 100), &err));
	ck_assert_int_eq(bare_number("SELECT count(*) FROM t"), 100);
	ck_assert_str_eq(bare_text("SELECT name FROM t WHERE id = 51"),
		"a\xef\xbf\xbd"
		"b");
	bare("DROP TABLE t");
	s->store.driver->close(&s->store);
}
END_TEST

START_TEST(as_large_as_the_server_takes)
{
	struct sql *s = table_make(_i);
	size_t max = mysql_db(s)->packet_max, big = max / 4;
	struct sql_value *v = rows_make(1, 12);
	char *text = fw_arena_alloc(&A, max);

	memset(text, 'x', max);
	for (size_t i = 0; i < 12; i++)
		v[4 * i + 2] = SQL_TEXT(((struct fw_str){text, big}));
	OK(s->dialect->begin(s, &err));
	OK(sql_end(s, each(s, &PUT, v, 4, 12), &err));
	ck_assert_int_eq(bare_number("SELECT sum(length(name)) FROM t"), (int64_t)(12 * big));
	v = rows_make(20, 12);
	v[4 * 7 + 2] = SQL_TEXT(((struct fw_str){text, max}));
	OK(s->dialect->begin(s, &err));
	IS(sql_end(s, each(s, &PUT, v, 4, 12), &err), FW_EINVAL);
	ck_assert_msg(strstr(err.text, "max_allowed_packet") != NULL, "%s", err.text);
	ck_assert_int_eq(bare_number("SELECT count(*) FROM t"), 12);
	bare("DROP TABLE t");
	s->store.driver->close(&s->store);
}
END_TEST

/* ---- opening --------------------------------------------------------------------------------- */

START_TEST(half_made) /* killed between two tables: the next open completes the schema */
{
	static const char *const LEFT[] = {("DROP TABLE " MYSQL_LAST_TABLE),
		"DROP VIEW v_visits; DROP TABLE entries_indexed, words, records", "DELETE FROM meta"};

	for (size_t i = 0; i < FW_N(LEFT); i++) {
		struct store *st = open_as(FW_STORE_CREATE);
		struct fw_feed f = {.url = fw_str(i ? "https://b.example/" : "https://a.example/")};
		struct store_feed_new made = {0};

		OK(st->driver->load(st, &(struct store_load){.rows = {.feed = &f, .feed_n = 1}, .made = &made}, &err));
		OK(sql_of(st)->dialect->script(sql_of(st), LEFT[i], &err));
		st->driver->close(st);
		if (i == 2)
			break;
		refused_at(url, 0, FW_ENOTFOUND, "feedwheel add");
		st = open_as(FW_STORE_CREATE);
		ck_assert_int_eq(bare_number("SELECT count(*) FROM shards"), 1024);
		clean_close(st);
	}
	refused_at(url, FW_STORE_CREATE, FW_EINVAL, "another program");
	bare(fw_arena_printf(&A, "DROP DATABASE %s", name));
	clean_close(open_as(FW_STORE_CREATE));
	bare(fw_arena_printf(&A, "DROP DATABASE %s", name));
	refused_at(url, 0, FW_ENOTFOUND, "no such database");
}
END_TEST

START_TEST(refusals)
{
	static const struct {
		const char *url, *words;
		int rc;
	} T[] = {
		{"mysql://root@localhost", "no name of a database", FW_EINVAL},
		{"mysql://root@localhost/a`b", "no name of a database", FW_EINVAL},
		{"mysql://root@localhost/x?colour=red", "unknown option \"colour\"", FW_EINVAL},
		{"mysql://root@localhost/x?timeout=soon", "timeout=soon", FW_EINVAL},
		{"mysql://root@localhost/x?ssl=required", "ssl is 'required': write yes or no", FW_EINVAL},
		{"mysql://root:secret@127.0.0.1:1/x", "no server answers", FW_EIO},
		{"mariadb://root:secret@localhost/x?socket=/nowhere/at/all", "no server answers", FW_EIO},
	};
	struct store *st;

	for (size_t i = 0; i < FW_N(T); i++)
		refused_at(T[i].url, FW_STORE_CREATE, T[i].rc, T[i].words);
	refused_at(url, 0, FW_ENOTFOUND, "feedwheel add");
	/* opening for reading creates nothing */
	refused_at(url, FW_STORE_READ | FW_STORE_CREATE, FW_ENOTFOUND, "feedwheel add");
	st = open_as(FW_STORE_CREATE);
	st->driver->close(st);
	refused_at(fw_arena_printf(&A, "%s&ssl_ca=/nowhere.pem", url), 0, FW_EINVAL, "no TLS");
	refused_at(fw_arena_printf(&A, "mysql://nobody:secret@localhost/%s", strstr(url, name)), 0, FW_EINVAL,
		"check user and password");
	bare("UPDATE meta SET value = 99 WHERE name = 'schema'");
	refused_at(url, FW_STORE_CREATE, FW_EVERSION, "upgrade feedwheel");
	bare("DROP TABLE meta");
	refused_at(url, FW_STORE_CREATE, FW_EINVAL, "another program");
}
END_TEST

START_TEST(older_schema)
{
	schema_1_is_upgraded(url, bare);
}
END_TEST

static void finding(void *ctx, const char *what, int level, const char *found, const char *remedy)
{
	*(bool *)ctx |= level == 1 && strcmp(what, "procedure") == 0 && strstr(found, "set_feed") &&
		strstr(remedy, "CREATE ROUTINE");
}

static bool procedure_is_missed(struct store *st)
{
	bool missed = false;

	DONE(st->driver->inspect(st, false, finding, &missed, &drv_err));
	return missed;
}

/* Without the privilege the store works, and `doctor` tells; with it the procedure comes. */
START_TEST(procedure_needs_a_privilege)
{
	struct store *st = open_as(FW_STORE_CREATE);
	const char *poor;

	ck_assert(!procedure_is_missed(st));
	st->driver->close(st);
	bare("DROP PROCEDURE set_feed");
	bare("CREATE OR REPLACE USER poor@localhost");
	bare(fw_arena_printf(&A, "GRANT SELECT, INSERT, UPDATE, DELETE ON `%s`.* TO poor@localhost", name));
	poor = fw_arena_printf(&A, "mysql://poor@localhost/%s", strstr(url, name));
	st = drv_open(0, poor, FW_STORE_CREATE);
	ck_assert(procedure_is_missed(st));
	(void)drv_feed(st, "https://a.example/", NOW);
	st->driver->close(st);
	bare(fw_arena_printf(&A, "GRANT CREATE ROUTINE ON `%s`.* TO poor@localhost", name));
	st = drv_open(0, poor, FW_STORE_READ);
	ck_assert(procedure_is_missed(st)); /* opened for reading: nothing is created */
	st->driver->close(st);
	st = drv_open(0, poor, 0);
	ck_assert(!procedure_is_missed(st));
	bare("CALL set_feed(1, 'title', 'By hand')");
	ck_assert_str_eq(bare_text("SELECT user_title FROM feeds"), "By hand");
	st->driver->close(st);
	bare("DROP USER poor@localhost");
}
END_TEST

START_TEST(only_read)
{
	struct store *st = open_as(FW_STORE_CREATE);
	struct fw_feed f = {.url = FW_STR("https://a.example/")};
	struct store_feed_new made = {0};

	st->driver->close(st);
	st = open_as(FW_STORE_READ);
	IS(st->driver->load(st, &(struct store_load){.rows = {.feed = &f, .feed_n = 1}, .made = &made}, &err),
		FW_EINVAL);
	clean_close(st);
}
END_TEST

START_TEST(views) /* times and words are readable, and a dump can be restored under another name */
{
	static const char *const VIEW[] = {"v_feeds", "v_entries", "v_visits"};
	struct store *st = open_as(FW_STORE_CREATE);
	struct fw_feed f = {
		.id = 3, .url = FW_STR("https://a.example/"), .due_at_ms = 1795385675929, .title = FW_STR("A")};
	struct fw_entry_row e = entry(1, 1, "t", "c");

	e.id = 9;
	e.feed_id = 3;
	e.published_ms = -1;
	e.updated_ms = FW_NO_DATE;
	e.extra = FW_STR("{\"a\":1,\"tags\":[\"x\",\"y z\"]}");
	OK(st->driver->load(
		st, &(struct store_load){.rows = {.feed = &f, .feed_n = 1, .entry = &e, .entry_n = 1}}, &err));
	ck_assert_str_eq(bare_text("SELECT due_at FROM v_feeds"), "2026-11-22T22:14:35.929Z");
	ck_assert_str_eq(bare_text("SELECT concat(status, ' ', title) FROM v_feeds"), "active A");
	ck_assert_str_eq(bare_text("SELECT published_at FROM v_entries"), "1969-12-31T23:59:59.999Z");
	ck_assert_str_eq(bare_text("SELECT updated_at FROM v_entries"), "");
	ck_assert_str_eq(bare_text("SELECT tags FROM v_entries"), "x, y z");
	bare("UPDATE entries SET extra = '{\"tags\": [\"x\", \"y\"]}'");
	ck_assert_str_eq(bare_text("SELECT tags FROM v_entries"), "x, y");
	bare("UPDATE entries SET extra = '{\"tags\": []}'");
	ck_assert_str_eq(bare_text("SELECT coalesce(tags, 'none') FROM v_entries"), "none");
	for (size_t i = 0; i < FW_N(VIEW); i++) {
		char *of = fw_arena_printf(&A,
			"SELECT view_definition LIKE '%%JSON_TABLE%%' FROM information_schema.views"
			" WHERE table_schema = '%s' AND table_name = '%s'",
			name, VIEW[i]);

		ck_assert_int_eq(bare_number(of), 0);
	}
	clean_close(st);
}
END_TEST

/*
 * ---- concurrent clients
 * --------------------------------------------------------------------------
 */

START_TEST(locked_by_another_client)
{
	struct store *st = open_as(FW_STORE_CREATE);
	struct fw_feed f = {.url = FW_STR("https://a.example/")};
	struct store_feed_new made = {0};
	MYSQL *db;

	OK(st->driver->load(st, &(struct store_load){.rows = {.feed = &f, .feed_n = 1}, .made = &made}, &err));
	f.id = made.id;
	db = bare_open();
	run(db, "BEGIN");
	run(db, "UPDATE feeds SET folder = 'x'");
	IS(st->driver->feed_set(st, &f, FW_SET_TITLE, &err), FW_EAGAIN);
	ck_assert_msg(strstr(err.text, "locked by another transaction") != NULL, "%s", err.text);
	run(db, "COMMIT");
	mysql_close(db);
	OK(st->driver->feed_set(st, &f, FW_SET_TITLE, &err));
	clean_close(st);
}
END_TEST

START_TEST(connection_is_ended)
{
	struct store *st = open_as(FW_STORE_CREATE);
	int64_t now_ms;

	OK(st->driver->clock(st, &now_ms, &err));
	bare(fw_arena_printf(&A, "KILL %lu", mysql_thread_id(mysql_db(sql_of(st))->c)));
	IS(st->driver->clock(st, &now_ms, &err), FW_EIO);
	ck_assert_msg(strstr(err.text, "the connection broke") != NULL, "%s", err.text);
	IS(st->driver->clock(st, &now_ms, &err), FW_EIO);
	st->driver->close(st);
}
END_TEST

/* ---- words ----------------------------------------------------------------------------------- */

static int count_one(void *ctx, const struct fw_entry_row *e)
{
	(void)e;
	++*(int *)ctx;
	return 0;
}

static int found(struct store *st, const char *words)
{
	int64_t unindexed_n = -1;
	struct fw_entry_query q = {.search = fw_str(words), .unindexed_n = &unindexed_n};
	int n = 0;

	OK(fw_store_entry_list((struct fw_store *)st, &q, count_one, &n, &err));
	ck_assert_int_eq(unindexed_n, 0);
	return n;
}

static void maintained(struct store *st)
{
	struct fw_prune p = {.index = true};

	mysql_db(sql_of(st))->sweep.next_check_ms = 0;
	do
		OK(st->driver->prune(st, &p, &err));
	while (p.more);
}

static void pushed(struct store *st, int64_t feed_id, int from, int to, int hash, const char *content)
{
	static const struct fw_feed none;
	static int64_t at_ms = NOW;
	struct fw_entry_row *e = fw_arena_calloc(&A, (size_t)(to - from), sizeof(*e));
	struct fw_outcome o = {.feed_id = feed_id,
		.feed = &none,
		.entries = e,
		.entry_n = (size_t)(to - from),
		.visit = {.feed_id = feed_id, .kind = FW_VISIT_PUSHED, .at_ms = at_ms++}};

	for (int i = from; i < to; i++)
		e[i - from] = entry(i, hash, "title", content);
	OK(st->driver->commit(st, &(struct store_commit){.outcome = &o, .n = 1}, &err));
	ck_assert_int_eq(o.rc, 0);
}

START_TEST(words_of_changed_and_deleted_entries)
{
	struct store *st = open_as(FW_STORE_CREATE);
	struct fw_feed f = {.url = FW_STR("https://a.example/")};
	struct store_feed_new made = {0};
	struct fw_prune all = {.entries_before_ms = NOW * 2};

	OK(st->driver->load(st, &(struct store_load){.rows = {.feed = &f, .feed_n = 1}, .made = &made}, &err));
	pushed(st, made.id, 0, 40, 1, "alpha beta gamma alpha delta");
	ck_assert_int_eq(found(st, "gamma"), 40); /* a search completes the index */
	ck_assert_int_eq(found(st, "\"alpha delta\""), 40);
	ck_assert_int_eq(found(st, "\"beta alpha\""), 0);
	ck_assert_int_eq(found(st, "\"gamma alpha del\" alpha"), 0);
	ck_assert_int_eq(found(st, "alp* title"), 40);
	ck_assert_int_eq(found(st, "alp"), 0);
	pushed(st, made.id, 0, 10, 2, "omega 日本語 beta");
	ck_assert_int_eq(found(st, "gamma"), 30);
	ck_assert_int_eq(found(st, "omega"), 10);
	ck_assert_int_eq(found(st, "beta"), 40);
	ck_assert_int_eq(found(st, "本語"), 10);
	ck_assert_int_eq(found(st, "語本"), 0);
	ck_assert_int_eq(found(st, "omega gamma"), 0); /* the words stand in two versions, not in one */
	maintained(st);
	ck_assert_int_eq(bare_number("SELECT count(*) FROM entries_indexed WHERE entry_id IS NULL"), 0);
	ck_assert_int_eq(found(st, "gamma"), 30);
	ck_assert_int_eq(found(st, "beta"), 40);
	ck_assert_int_eq(bare_number("SELECT count(*) FROM words WHERE word = 'beta'"), 2);
	pushed(st, made.id, 0, 10, 3, "psi"); /* these entries wait to be indexed again, and are removed before that */
	do
		OK(st->driver->prune(st, &all, &err));
	while (all.more);
	ck_assert_int_eq(all.entry_n, 40);
	ck_assert_int_eq(found(st, "beta"), 0);
	maintained(st);
	ck_assert_int_eq(bare_number("SELECT (SELECT count(*) FROM words) + (SELECT count(*) FROM entries_indexed)"
				     " + (SELECT count(*) FROM entries_changed)"),
		0);
	clean_close(st);
}
END_TEST

/* ---- limits ---------------------------------------------------------------------------------- */

static bool has_left(void *ctx, int64_t now_ms)
{
	(void)ctx;
	(void)now_ms;
	return true;
}

static int row_seen(void *ctx, const struct sql_row *row)
{
	(void)row;
	++*(int *)ctx;
	return 0;
}

/* A read whose client has left by the first look, and that ends by itself after the time. */
static int read_and_leave(struct sql *s, const char *text, int64_t time_ms)
{
	struct fw_work_limit limit = {.until_ms = fw_mono_ms() + time_ms, .left = has_left, .looked_ms = fw_mono_ms()};
	int n = 0, rc;

	s->store.limit = &limit;
	rc = s->dialect->query(s, text, SQL_NONE, row_seen, &n, NULL, &err);
	s->store.limit = NULL;
	ck_assert(!rc || (rc == FW_EAGAIN && limit.over && strstr(err.text, "time for the store is over")));
	n = 0;
	OK(s->dialect->query(s, "SELECT 1", SQL_NONE, row_seen, &n, NULL, &err));
	ck_assert_int_eq(n, 1); /* the connection is as before, and no KILL meets this */
	return rc;
}

#define LEFT_HOUR_MS 3600000

static void leave_all(const char *at)
{
	static const char MANY_ROWS[] = "SELECT repeat('x', 1000), IF(j.n = 900, SLEEP(9999), 0) FROM JSON_TABLE("
					"concat('[0', repeat(',0', 999), ']'), '$[*]' COLUMNS (n FOR ORDINALITY)) j";
	/* these end about when the KILL arrives */
	static const char *const SHORT[] = {"SELECT SLEEP(0.046)", "SELECT SLEEP(0.048)", "SELECT SLEEP(0.050)",
		"SELECT SLEEP(0.051)", "SELECT SLEEP(0.052)", "SELECT SLEEP(0.053)", "SELECT SLEEP(0.055)"};
	struct fw_store_config c = {.url = at, .flags = FW_STORE_CREATE};
	struct store *st = NULL;
	struct sql *s;

	OK(store_mysql.open(&c, &st, &err));
	s = sql_of(st);
	IS(read_and_leave(s, "SELECT SLEEP(9999)", LEFT_HOUR_MS), FW_EAGAIN);
	IS(read_and_leave(s, MANY_ROWS, LEFT_HOUR_MS), FW_EAGAIN); /* behind rows that were sent before */
	for (size_t i = 0; i < FW_N(SHORT); i++)
		(void)read_and_leave(s, SHORT[i], LEFT_HOUR_MS);
	/* behind a write that was not sent yet, in a transaction */
	OK(s->dialect->begin(s, &err));
	OK(sql_exec(s, "UPDATE meta SET value = 99 WHERE name = 'schema'", SQL_NONE, &err));
	IS(read_and_leave(s, "SELECT SLEEP(9998)", LEFT_HOUR_MS), FW_EAGAIN);
	s->dialect->rollback(s);
	clean_close(st);
	ck_assert_int_ne(bare_number("SELECT value FROM meta WHERE name = 'schema'"), 99);
}

START_TEST(a_statement_ends_with_its_client)
{
	leave_all(url);
	if (getenv("FW_MYSQLD") || bare_number("SELECT @@have_ssl = 'YES'"))
		leave_all(fw_arena_printf(&A, "%s&ssl=yes", url));
}
END_TEST

START_TEST(a_statement_ends_by_its_time_if_it_cannot_be_killed)
{
	struct store *st = open_as(FW_STORE_CREATE);
	struct mysql_db *s = mysql_db(sql_of(st));

	s->server_mark++; /* the second connection meets another server */
	IS(read_and_leave(&s->sql, "SELECT SLEEP(9999)", 300), FW_EAGAIN);
	s->server_mark--;
	free(s->url); /* or none */
	s->url = fw_str_dup(FW_STR("mysql://root:secret@127.0.0.1:1/x"));
	IS(read_and_leave(&s->sql, "SELECT SLEEP(9999)", 300), FW_EAGAIN);
	clean_close(st);
}
END_TEST

int main(void)
{
	const TTest *const twice[] = {rows_come_back, found_or_not, there_already, failed_transaction_is_rolled_back,
		as_large_as_the_server_takes};
	const TTest *const once[] = {half_made, older_schema, procedure_needs_a_privilege, refusals, only_read, views,
		locked_by_another_client, connection_is_ended, words_of_changed_and_deleted_entries,
		a_statement_ends_with_its_client, a_statement_ends_by_its_time_if_it_cannot_be_killed};
	TCase *t;

	server_needed(&server_mysql);
	setenv("FW_STORES", "mysql", 1);
	stores_begin();
	t = cases("mysql", setup, teardown, 120);
	cases_add(t, twice, FW_N(twice), 2);
	cases_add(t, once, FW_N(once), 1);
	return cases_run("store dialect mysql", t);
}
