/* SPDX-License-Identifier: ISC */
/*
 * The SQLite driver and files that are locked, full, broken, foreign or forbidden: a one-line error that names the file and the
 * remedy, the right code, nothing half-done, and the same call succeeds when the trouble is over.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"
#include "store/sqlite.h"

#define HOUR 3600000

static struct fw_arena A;
static char path[300], url[320];

static void setup(void)
{
	fw_arena_init(&A, 0);
	ck_assert(fw_snprintf(path, sizeof(path), "%s/trouble.db", scratch()));
	ck_assert(fw_snprintf(url, sizeof(url), "sqlite:%s", path));
}

static void teardown(void)
{
	fw_arena_finish(&A);
}

static void bare(const char *sql)
{
	char *words = NULL;
	sqlite3 *db;

	ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
	ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, &words) == SQLITE_OK, "%s", words);
	sqlite3_close(db);
}

static void write_file(const char *text, size_t n)
{
	FILE *f = fopen(path, "w");

	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(text, 1, n, f), n);
	ck_assert_int_eq(fclose(f), 0);
}

/* Opening fails with this code, and the words name the file and hold these. */
static void refused(unsigned flags, int code, const char *words)
{
	struct fw_store_config c = {.url = url, .flags = flags, .busy_timeout_ms = 100};
	struct fw_store *st = NULL;
	struct fw_err err = {0};
	int rc = fw_store_open(&c, &st, &err);

	ck_assert_msg(rc == code, "%d instead of %d: %s", rc, code, err.text);
	ck_assert_ptr_null(st);
	ck_assert_msg(strstr(err.text, path) && strstr(err.text, words), "does not name %s and \"%s\": %s", path, words, err.text);
	ck_assert_ptr_null(strchr(err.text, '\n'));
}

START_TEST(newer_schema) /* REL-15 */
{
	fw_store_close(store_open(url, FW_STORE_CREATE));
	bare("PRAGMA user_version = 99");
	refused(FW_STORE_CREATE, FW_EVERSION, "upgrade feedwheel");
	refused(FW_STORE_READ, FW_EVERSION, "upgrade feedwheel");
}
END_TEST

static void upkeep_all(struct fw_store *st)
{
	struct fw_err err = {0};
	bool more = true;

	for (int i = 0; more; i++) {
		ck_assert_int_lt(i, 10000);
		OK(fw_store_upkeep(st, NOW, &more, &err));
	}
}

/* Schema 5 of a store of today: it had less, and its packed visits two numbers less. */
static const char back_to_5[] =
	"DROP VIEW wheel; DROP VIEW visits; ALTER TABLE feeds DROP COLUMN host_key; ALTER TABLE feeds DROP COLUMN push_until_ms; ALTER TABLE line DROP COLUMN expect_parts;"
	"ALTER TABLE leases DROP COLUMN expect_parts; ALTER TABLE aside DROP COLUMN expect_parts; ALTER TABLE hosts DROP COLUMN holder;"
	"ALTER TABLE hosts DROP COLUMN cool_until_ms; ALTER TABLE hosts DROP COLUMN pace_ms; ALTER TABLE hosts DROP COLUMN expect_us;"
	"ALTER TABLE visit_rows DROP COLUMN queue_us; ALTER TABLE visit_rows DROP COLUMN store_us;"
#define STATE "due_at_ms, last_kind, http_status, fail_n, crash_n, last_visit_ms, last_ok_ms, last_new_ms, last_visit_id, expect_us," \
	" expect_dev_us, why"
	"CREATE VIEW wheel AS SELECT feed_id, 0 AS status, " STATE " FROM line UNION ALL SELECT feed_id, status, " STATE " FROM leases"
	" UNION ALL SELECT feed_id, status, " STATE " FROM aside;"
#define V(i) " json_extract(j.value, '$[" #i "]')"
	"CREATE VIEW visits AS SELECT id, feed_id, previous_id, run_id, at_ms, kind, http_status, hops, slot, lateness_ms, dns_us,"
	" connect_us, tls_us, first_byte_us, total_us, parse_us, wire_bytes, body_bytes, item_n, new_n, changed_n, error FROM visit_rows"
	" UNION ALL SELECT b.id << 10 | j.key," V(1) " AS feed_id," V(0) " AS previous_id, b.run_id, b.first_ms +" V(2) "," V(3) "," V(4) ","
	V(5) "," V(6) "," V(7) "," V(8) "," V(9) "," V(10) "," V(11) "," V(12) "," V(13) "," V(14) "," V(15) "," V(16) "," V(17) "," V(18)
	"," V(19) " FROM visit_batches b, json_each(b.visits) j WHERE EXISTS (SELECT 1 FROM feeds WHERE id = " V(1) ");"
#undef V
#undef STATE
	"UPDATE visit_batches SET visits = (SELECT json_group_array(json(json_remove(value, '$[20]', '$[19]'))) FROM json_each(visits));"
	"PRAGMA user_version = 5";

/* What schema 2 had instead of the tables of schema 3: made from what these show, so that a store of today becomes one of then. */
static const char back_to_2[] =
	"CREATE TABLE w (feed_id INTEGER PRIMARY KEY, due_at_ms INTEGER NOT NULL, status INTEGER NOT NULL DEFAULT 0,"
	" last_kind INTEGER NOT NULL DEFAULT 0, http_status INTEGER NOT NULL DEFAULT 0, fail_n INTEGER NOT NULL DEFAULT 0,"
	" crash_n INTEGER NOT NULL DEFAULT 0, last_visit_ms INTEGER NOT NULL DEFAULT 0, last_ok_ms INTEGER NOT NULL DEFAULT 0,"
	" last_new_ms INTEGER NOT NULL DEFAULT 0, last_visit_id INTEGER NOT NULL DEFAULT 0, expect_us INTEGER NOT NULL DEFAULT 0,"
	" expect_dev_us INTEGER NOT NULL DEFAULT 0, why TEXT);"
	"INSERT INTO w SELECT feed_id, due_at_ms, status, last_kind, http_status, fail_n, crash_n, last_visit_ms, last_ok_ms, last_new_ms,"
	" last_visit_id, expect_us, expect_dev_us, why FROM wheel;"
	"CREATE TABLE q (id INTEGER PRIMARY KEY, wake_at_ms INTEGER NOT NULL, feed_id INTEGER NOT NULL, host_id INTEGER NOT NULL,"
	" due_at_ms INTEGER);"
	"INSERT INTO q SELECT id, wake_at_ms, feed_id, host_id, due_at_ms FROM queue;"
	"CREATE TABLE p (host_id INTEGER NOT NULL, due_at_ms INTEGER NOT NULL, feed_id INTEGER NOT NULL,"
	" PRIMARY KEY (host_id, due_at_ms, feed_id)) WITHOUT ROWID;"
	"INSERT INTO p SELECT host_id, due_at_ms, feed_id FROM parked;"
	"CREATE TABLE l (fence INTEGER PRIMARY KEY, feed_id INTEGER NOT NULL, due_at_ms INTEGER NOT NULL, host_id INTEGER NOT NULL);"
	"INSERT INTO l SELECT fence, feed_id, due_at_ms, host_id FROM leases;"
	"CREATE TABLE v (id INTEGER PRIMARY KEY, feed_id INTEGER NOT NULL, previous_id INTEGER NOT NULL, run_id INTEGER NOT NULL,"
	" at_ms INTEGER NOT NULL, kind INTEGER NOT NULL, http_status INTEGER NOT NULL, hops INTEGER NOT NULL, slot INTEGER NOT NULL,"
	" lateness_ms INTEGER NOT NULL, dns_us INTEGER NOT NULL, connect_us INTEGER NOT NULL, tls_us INTEGER NOT NULL,"
	" first_byte_us INTEGER NOT NULL, total_us INTEGER NOT NULL, parse_us INTEGER NOT NULL, wire_bytes INTEGER NOT NULL,"
	" body_bytes INTEGER NOT NULL, item_n INTEGER NOT NULL, new_n INTEGER NOT NULL, changed_n INTEGER NOT NULL, error TEXT);"
	"INSERT INTO v SELECT * FROM visits;"
	"DROP TABLE incoming; DROP TABLE incoming_dead; DROP TABLE records;"
	"ALTER TABLE claims DROP COLUMN touched; ALTER TABLE entries DROP COLUMN key;"
	"DROP VIEW visits; DROP VIEW wheel; DROP VIEW queue; DROP VIEW parked; DROP TABLE line; DROP TABLE leases; DROP TABLE aside;"
	"DROP TABLE places; DROP TABLE moves; DROP TABLE visit_rows; DROP TABLE visit_batches; DELETE FROM meta WHERE name = 'merged_move';"
	"ALTER TABLE w RENAME TO wheel; ALTER TABLE q RENAME TO queue; ALTER TABLE p RENAME TO parked; ALTER TABLE l RENAME TO leases;"
	"ALTER TABLE v RENAME TO visits; CREATE INDEX queue_moved ON queue(wake_at_ms) WHERE due_at_ms IS NOT NULL;"
	"PRAGMA user_version = 2";

static int cells(void *ctx, int n, char **value, char **name)
{
	(void)name;
	for (int i = 0; i < n; i++)
		fw_buf_addf(ctx, "%s|", value[i] ? value[i] : "-");
	fw_buf_addc(ctx, '\n');
	return 0;
}

/* All that the tables show which changed their shape, under their shared names. free() it. */
static char *shown(void)
{
	struct fw_buf b = FW_BUF_INIT(0);
	size_t len;
	sqlite3 *db;

	ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(db, "SELECT feed_id, due_at_ms, status, last_kind, http_status, fail_n, crash_n, last_visit_ms,"
		" last_ok_ms, last_new_ms, last_visit_id, expect_us, expect_dev_us, why FROM wheel ORDER BY feed_id;"
		"SELECT id, wake_at_ms, feed_id, host_id, due_at_ms FROM queue ORDER BY id;"
		"SELECT host_id, due_at_ms, feed_id FROM parked ORDER BY 1, 2, 3;"
		"SELECT fence, feed_id, due_at_ms, host_id FROM leases ORDER BY 1;"
		"SELECT first_fence, last_fence, until_ms, worker FROM claims ORDER BY 1;"
		"SELECT id, feed_id, previous_id, run_id, at_ms, kind, http_status, hops, slot, lateness_ms, dns_us, connect_us, tls_us,"
		" first_byte_us, total_us, parse_us, wire_bytes, body_bytes, item_n, new_n, changed_n, error FROM visits ORDER BY id;"
		"SELECT id, name, feed_n, busy_n, turn_n, parked_n, next_ok_ms FROM hosts ORDER BY id;"
		"SELECT name, value FROM meta WHERE name <> 'merged_move' ORDER BY name", cells, &b, NULL), SQLITE_OK);
	sqlite3_close(db);
	return fw_buf_take(&b, &len);
}

/* Feeds of all kinds: waiting, put off, parked, lent, paused, visited well and badly; on hosts of their own and together. */
static size_t fill_all_kinds(struct fw_store *st, struct fw_lease *l)
{
	struct fw_err err = {0};
	struct fw_feed f[8];
	struct fw_claim_got got;
	char name[60];

	for (int i = 0; i < 12; i++) {
		ck_assert(fw_snprintf(name, sizeof(name), "https://%s.example/%d", i < 6 ? "crowd" : i % 2 ? "odd" : "even", i));
		subscribe(st, name, NOW + i);
	}
	subscribe(st, "https://alone.example/", NOW);
	subscribe(st, "https://cooled.example/", NOW);
	subscribe(st, "https://later.example/", NOW + HOUR);
	f[0] = (struct fw_feed){.id = 3, .status = FW_FEED_PAUSED};
	OK(fw_store_feed_set(st, f, FW_SET_STATUS, &err));
	for (int turn = 0; turn < 3; turn++) {
		struct fw_claim_ask ask = {.worker = "w/1/0", .now_ms = NOW + turn * 1000, .lease_ms = HOUR, .max = 5, .host_max = 2};
		struct fw_outcome o[8];

		OK(fw_store_claim(st, &ask, &A, l, &got, &err));
		ck_assert_uint_gt(got.n, 0);
		if (turn == 2)
			break;
		for (size_t i = 0; i < got.n; i++) {
			o[i] = outcome_of(&l[i], &f[i], NOW + turn * 1000);
			o[i].visit.error = i ? FW_STR("\"[words]\" of an error\n") : FW_STR_NONE;
			o[i].visit.run_id = 7 + turn;
			f[i].why = FW_STR("because");
			f[i].due_at_ms = NOW + 1000 + (int64_t)i * HOUR;
			o[i].host_cooldown_ms = i == 1 ? NOW + HOUR : 0;
		}
		OK(fw_store_commit(st, &(struct fw_commit){.now_ms = NOW, .outcome = o, .n = got.n}, &err));
	}
	return got.n;
}

/* Schemas 3 and 6 give the wheel and the visits another shape; everything is there as it was, and a lease taken before it holds. */
START_TEST(other_shapes) /* REL-15 */
{
	static const char *const back[] = {back_to_5, back_to_2};
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	struct fw_feed f;
	struct fw_outcome o;
	struct fw_lease l[8];
	int64_t visit_n, last_visit_id;
	char *before, *after;

	ck_assert_uint_gt(fill_all_kinds(st, l), 0);
	check_clean(st);
	visit_n = stats(st, NOW).visit_n;
	last_visit_id = stats(st, NOW).last_visit_id;
	fw_store_close(st);
	before = shown();
	for (int i = 0; i <= _i; i++)
		bare(back[i]);
	after = shown();
	ck_assert_str_eq(before, after);
	free(after);
	refused(FW_STORE_READ, FW_EVERSION, "upgrades it");
	fw_store_close(store_open(url, 0));
	after = shown();
	ck_assert_str_eq(before, after);
	free(before);
	free(after);
	st = store_open(url, 0);
	check_clean(st);
	ck_assert_int_eq(stats(st, NOW).schema, SQ_SCHEMA);
	o = outcome_of(&l[0], &f, NOW + 5000);
	ck_assert_int_eq(commit_one(st, &o, NOW + 5000), 0);
	check_clean(st);
	ck_assert_int_eq(stats(st, NOW).visit_n, visit_n + 1);
	ck_assert_int_gt(stats(st, NOW).last_visit_id, last_visit_id);
	fw_store_close(st);
}
END_TEST

/* Schema 2 builds the full-text index anew, and leaves everything else as it was. */
START_TEST(schema_4) /* REL-15: it had no records */
{
	struct fw_record r = {.kind = FW_STR("kind"), .key = FW_STR("key"), .value = FW_STR("value"), .at_ms = NOW, .until_ms = NOW + HOUR}, got;
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	struct fw_err err = {0};

	subscribe(st, "https://a.example/", NOW);
	fw_store_close(st);
	bare(back_to_5);
	bare("DROP TABLE records; PRAGMA user_version = 4");
	refused(FW_STORE_READ, FW_EVERSION, "upgrades it");
	st = store_open(url, 0);
	OK(fw_store_record_put(st, &r, false, NULL, &err));
	OK(fw_store_record_get(st, r.kind, r.key, &A, &got, &err));
	ck_assert(fw_str_eq(got.value, r.value));
	ck_assert_int_eq(stats(st, NOW).feed_n, 1);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

START_TEST(older_schema) /* REL-15 */
{
	struct fw_store *st = store_open(url, FW_STORE_CREATE);

	subscribe(st, "https://a.example/", NOW);
	put_entries(st, &A, NOW, 0, 3000);
	upkeep_all(st);
	fw_store_close(st);
	bare(back_to_5);
	bare(back_to_2);
	bare("DROP TABLE entries_fts; PRAGMA user_version = 1;"
		"CREATE VIRTUAL TABLE entries_fts USING fts5(title, body, content='', columnsize=0, tokenize='unicode61');"
		"INSERT INTO entries_fts (rowid, title, body) SELECT id, 'stale', 'words' FROM entries");
	refused(FW_STORE_READ, FW_EVERSION, "upgrades it");
	refused(FW_STORE_NO_MIGRATE, FW_EVERSION, "upgrades it");
	st = store_open(url, 0);
	ck_assert_int_eq(stats(st, NOW).entry_n, 3000);
	ck_assert_int_eq(stats(st, NOW).unindexed_n, 3000);
	ck_assert_int_eq(hits(st, "stale"), 0);
	upkeep_all(st);
	ck_assert_int_eq(stats(st, NOW).unindexed_n, 0);
	ck_assert_int_eq(hits(st, "number"), 3000);
	ck_assert_int_eq(hits(st, "n17"), 1);
	check_clean(st);
	fw_store_close(st);
	st = store_open(url, FW_STORE_READ);
	ck_assert_int_eq(stats(st, NOW).schema, SQ_SCHEMA);
	ck_assert_int_eq(hits(st, "number n17"), 1);
	fw_store_close(st);
}
END_TEST

/* Visit all that is due, 500 at a time; each feed is due again an hour and its number of ms later. */
static int visit_all(struct fw_store *st, int64_t at)
{
	static struct fw_lease l[500];
	static struct fw_feed f[500];
	static struct fw_outcome o[500];
	struct fw_err err = {0};
	size_t n;
	int all = 0;

	while ((n = claim_at(st, at, 500, l, &A)) > 0) {
		for (size_t i = 0; i < n; i++) {
			o[i] = outcome_of(&l[i], &f[i], at);
			f[i].due_at_ms = at + HOUR + f[i].id;
		}
		OK(fw_store_commit(st, &(struct fw_commit){.now_ms = at, .outcome = o, .n = n}, &err));
		for (size_t i = 0; i < n; i++)
			ck_assert_int_eq(o[i].rc, 0);
		all += (int)n;
	}
	return all;
}

static int64_t number(const char *sql)
{
	sqlite3_stmt *q;
	sqlite3 *db;
	int64_t n;

	ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
	ck_assert_msg(sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK, "%s", sqlite3_errmsg(db));
	ck_assert_int_eq(sqlite3_step(q), SQLITE_ROW);
	n = sqlite3_column_int64(q, 0);
	sqlite3_finalize(q);
	sqlite3_close(db);
	return n;
}

/* Places are noted, and written by number when there are many; whoever looks for a feed finds it, before and after. */
START_TEST(places_are_merged)
{
	enum { N = 20000 };
	struct fw_store *st = store_open(url, FW_STORE_CREATE), *other;
	struct fw_feed_new *new = calloc(N, sizeof(*new));
	struct fw_feed f;
	struct fw_err err = {0};

	for (int i = 0; i < N; i++)
		new[i] = (struct fw_feed_new){.url = fw_str(fw_arena_printf(&A, "https://h%d.example/", i)), .due_at_ms = NOW};
	OK(fw_store_subscribe(st, new, 1000, &err));
	ck_assert_int_eq(number("SELECT count(*) FROM places"), 0);
	other = store_open(url, 0);
	OK(fw_store_feed_find(other, 17, FW_STR_NONE, &A, &f, &err)); /* it knows the moves from now on */
	OK(fw_store_subscribe(st, new + 1000, N - 1000, &err));
	ck_assert_int_gt(number("SELECT count(*) FROM places"), N / 256);
	ck_assert_int_eq(number("SELECT count(*) FROM moves"), 0);
	check_clean(st);
	check_clean(other);
	ck_assert_int_eq(visit_all(st, NOW), N);
	ck_assert_int_gt(number("SELECT count(*) FROM moves"), 0);
	ck_assert_int_lt(number("SELECT max(total_n) FROM moves"), N); /* merged again on the way */
	check_clean(other);
	for (int64_t id = 1; id <= N; id += 999) {
		OK(fw_store_feed_find(other, id, FW_STR_NONE, &A, &f, &err));
		ck_assert_int_eq(f.due_at_ms, NOW + HOUR + id);
	}
	OK(fw_store_unsubscribe(other, 18, &err));
	check_clean(st);
	ck_assert_int_eq(visit_all(st, NOW + 2 * HOUR), N - 1);
	check_clean(st);
	check_clean(other);
	ck_assert_int_eq(stats(st, NOW).visit_n, 2 * N - 2);
	fw_store_close(other);
	fw_store_close(st);
	bare("DELETE FROM moves; DELETE FROM places"); /* nothing is lost with them: the line is walked along */
	st = store_open(url, 0);
	OK(fw_store_feed_find(st, 17, FW_STR_NONE, &A, &f, &err));
	ck_assert_int_eq(f.due_at_ms, NOW + 3 * HOUR + 17);
	fw_store_close(st);
	free(new);
}
END_TEST

/* What a call of prune leaves, upkeep takes in short steps; entries of older schemas too, whose keys are found by walking. */
START_TEST(prune_in_steps)
{
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	struct sqlite *s = (struct sqlite *)(void *)st;
	struct fw_err err = {0};
	int64_t n, transactions;
	bool more = true;

	subscribe_many(st, "https://h%d.example/", 0, 5000, NOW);
	ck_assert_int_eq(visit_all(st, NOW), 5000);
	put_entries(st, &A, NOW + 2 * HOUR, 0, 700);
	bare("UPDATE entries SET key = NULL WHERE id % 2");
	upkeep_all(st);
	s->prune.visits_before_ms = s->prune.entries_before_ms = NOW + HOUR; /* as if the time of a call were over at once */
	for (transactions = 0; more; transactions++)
		OK(fw_store_upkeep(st, NOW, &more, &err));
	ck_assert_int_ge(transactions, 3); /* 5,000 in steps of 2,000 */
	ck_assert_int_eq(stats(st, NOW).visit_n, 1);
	ck_assert_int_eq(stats(st, NOW).entry_n, 700);
	s->prune.entries_before_ms = NOW + 3 * HOUR;
	s->prune.after_id = 0;
	OK(fw_store_upkeep(st, NOW, &more, &err));
	ck_assert(more);
	ck_assert_int_eq(stats(st, NOW).entry_n, 500);
	OK(fw_store_prune(st, 0, NOW + 3 * HOUR, &n, &err)); /* goes on from there */
	ck_assert_int_eq(n, 500);
	ck_assert_int_eq(number("SELECT count(*) FROM entry_keys WHERE entry_id = 0"), 700);
	ck_assert_int_eq(hits(st, "number"), 0);
	check_clean(st);
	fw_store_close(st);
	st = store_open(url, FW_STORE_READ);
	ck_assert_int_eq(fw_store_prune(st, NOW, 0, &n, &err), FW_EINVAL);
	fw_store_close(st);
}
END_TEST

/* A lease that somebody deleted: its outcome is stale, and the others of its batch count. */
START_TEST(lease_deleted_by_hand)
{
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	struct fw_err err = {0};
	struct fw_lease l[3];
	struct fw_feed f[3];
	struct fw_outcome o[3];

	subscribe(st, "https://a.example/", NOW);
	subscribe(st, "https://b.example/", NOW);
	subscribe(st, "https://c.example/", NOW);
	ck_assert_uint_eq(claim_at(st, NOW, 3, l, &A), 3);
	bare("DELETE FROM leases WHERE feed_id = 2");
	for (int i = 0; i < 3; i++)
		o[i] = outcome_of(&l[i], &f[i], NOW);
	OK(fw_store_commit(st, &(struct fw_commit){.now_ms = NOW, .outcome = o, .n = 3}, &err));
	ck_assert_int_eq(o[0].rc, 0);
	ck_assert_int_eq(o[1].rc, FW_ESTALE);
	ck_assert_int_eq(o[2].rc, 0);
	ck_assert_int_eq(stats(st, NOW).visit_n, 2);
	ck_assert_int_eq(number("SELECT count(*) FROM claims"), 0);
	fw_store_close(st);
}
END_TEST

static int tick(void *ctx)
{
	++*(int64_t *)ctx;
	return 0;
}

static int none(void *ctx, const struct fw_entry_row *e)
{
	(void)ctx;
	ck_assert(e->hash != 0);
	return 0;
}

/* What SQLite does, in hundreds of its steps, to list so many entries of one feed with their keys. */
static int64_t steps_for(int n)
{
	struct fw_entry_query q = {.oldest_first = true, .key = true};
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	struct fw_err err = {0};
	int64_t steps = 0;

	subscribe(st, "https://a.example/", NOW);
	put_entries(st, &A, NOW, 0, n);
	sqlite3_progress_handler(((struct sqlite *)(void *)st)->db, 100, tick, &steps);
	OK(fw_store_entry_list(st, &q, none, NULL, &err));
	fw_store_close(st);
	ck_assert_int_eq(unlink(path), 0);
	return steps;
}

/* Keys are sought, not walked through for each entry: twice as many entries take twice the steps. */
START_TEST(keys_of_a_large_feed)
{
	int64_t few = steps_for(1000), many = steps_for(4000);

	ck_assert_int_gt(few, 10);
	ck_assert_msg(many < few * 5, "%lld hundred steps for 1,000 entries, %lld for 4,000", (long long)few, (long long)many);
}
END_TEST

/* Many small commits leave many segments in the index; upkeep merges them, comes to an end, and nothing is lost. */
START_TEST(index_is_merged)
{
	struct fw_store *st = store_open(url, FW_STORE_CREATE);

	subscribe(st, "https://a.example/", NOW);
	for (int i = 0; i < 60; i++) {
		put_entries(st, &A, NOW + i * 3600000, i, i + 1);
		ck_assert_int_eq(hits(st, "number"), i + 1); /* each search catches up */
	}
	ck_assert_int_ge(number("SELECT count(DISTINCT segid) FROM entries_fts_idx"), 60);
	upkeep_all(st);
	ck_assert_int_lt(number("SELECT count(DISTINCT segid) FROM entries_fts_idx"), 16);
	ck_assert_int_eq(hits(st, "number"), 60);
	ck_assert_int_eq(hits(st, "n59"), 1);
	upkeep_all(st);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

/* A feed that somebody deleted by hand must not hold up the others. */
START_TEST(feed_deleted_by_hand)
{
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	struct fw_lease l[4];

	subscribe(st, "https://a.example/1", NOW);
	subscribe(st, "https://a.example/2", NOW);
	subscribe(st, "https://b.example/", NOW);
	bare("DELETE FROM feeds WHERE url LIKE '%/1' OR url LIKE '%b.example/'");
	ck_assert_uint_eq(claim_at(st, NOW, 4, l, &A), 1);
	ck_assert(fw_str_eq(l[0].feed.url, FW_STR("https://a.example/2")));
	ck_assert_uint_eq(claim_at(st, NOW, 4, l, &A), 0);
	ck_assert_int_eq(stats(st, NOW).lent_n, 1);
	fw_store_close(st);
}
END_TEST

/* The number of a place is cut to 32 bits and may meet an old one, billions later. */
START_TEST(place_numbers_wrap)
{
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	struct fw_lease l[4];

	subscribe(st, "https://a.example/", NOW);
	bare("UPDATE meta SET value = 4294967295 + (SELECT id & 4294967295 FROM line) WHERE name = 'last_number'");
	subscribe(st, "https://b.example/", NOW);
	ck_assert_uint_eq(claim_at(st, NOW, 4, l, &A), 2);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

/* The same for one of several that come back together. */
START_TEST(place_is_taken)
{
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	struct fw_err err = {0};
	struct fw_lease l[3];
	struct fw_feed f[3];
	struct fw_outcome o[3];

	subscribe(st, "https://d.example/", NOW + HOUR); /* where those come that are visited now */
	subscribe_many(st, "https://h%d.example/", 0, 3, NOW);
	ck_assert_uint_eq(claim_at(st, NOW, 3, l, &A), 3);
	/* the next number is for the visits, then one for each place: d has that of the second */
	bare("UPDATE meta SET value = 4294967296 + (SELECT id & 4294967295 FROM line) - 3 WHERE name = 'last_number'");
	for (int i = 0; i < 3; i++)
		o[i] = outcome_of(&l[i], &f[i], NOW);
	OK(fw_store_commit(st, &(struct fw_commit){.now_ms = NOW, .outcome = o, .n = 3}, &err));
	ck_assert_int_eq(number("SELECT max(id) - min(id) FROM line"), 3); /* d is in the middle, and the one that met it behind all */
	check_clean(st);
	ck_assert_uint_eq(claim_at(st, NOW + HOUR, 4, (struct fw_lease[4]){{.fence = 0}}, &A), 4);
	fw_store_close(st);
}
END_TEST

/* A key of another length than ours, or none at all to the eye: the feed can be removed all the same. */
START_TEST(keys_of_any_length)
{
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	struct fw_err err = {0};
	int64_t id = subscribe(st, "https://a.example/", NOW);

	put_entries(st, &A, NOW, 0, 3);
	bare("INSERT INTO entry_keys VALUES (1, zeroblob(100), 0, 0), (1, x'', 0, 0); UPDATE entry_keys SET key = zeroblob(200)"
		" WHERE entry_id = 2");
	alarm(100); /* it used to go on for ever */
	OK(fw_store_unsubscribe(st, id, &err));
	alarm(0);
	check_clean(st);
	ck_assert_int_eq(stats(st, NOW).entry_n, 0);
	fw_store_close(st);
}
END_TEST

static int again(void *ctx, const struct fw_feed *feed)
{
	struct fw_feed_query q = {.status = -1};
	struct fw_err err = {0};
	int n = 0;

	(void)feed;
	IS(fw_store_feed_list(ctx, &q, NULL, &n, &err), FW_EINVAL);
	return 7;
}

/* Not allowed; and said so, instead of showing one list's rows in the other. */
START_TEST(call_from_a_callback)
{
	struct fw_feed_query q = {.status = -1};
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	struct fw_err err = {0};

	subscribe(st, "https://a.example/", NOW);
	ck_assert_int_eq(fw_store_feed_list(st, &q, again, st, &err), 7);
	fw_store_close(st);
}
END_TEST

/* Some file systems cannot do what a WAL needs; SQLite then keeps another journal without an error. */
START_TEST(no_shared_memory)
{
	sqlite3_vfs *usual = sqlite3_vfs_find(NULL);

	ck_assert_int_eq(sqlite3_vfs_register(sqlite3_vfs_find("unix-dotfile"), 1), SQLITE_OK);
	refused(FW_STORE_CREATE, FW_EIO, "use a local disk");
	ck_assert_int_eq(sqlite3_vfs_register(usual, 1), SQLITE_OK);
}
END_TEST

START_TEST(database_of_another_program)
{
	bare("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)");
	refused(FW_STORE_CREATE, FW_EINVAL, "another program");
	bare("INSERT INTO theirs VALUES (2)"); /* and it was left alone */
}
END_TEST

START_TEST(not_a_database)
{
	char junk[5000];

	memset(junk, 'x', sizeof(junk));
	write_file(junk, sizeof(junk));
	refused(FW_STORE_CREATE, FW_EINVAL, "not an SQLite database");
}
END_TEST

START_TEST(empty_and_missing_files)
{
	struct fw_store *st;

	refused(0, FW_ENOTFOUND, "feedwheel add");
	ck_assert_int_eq(access(path, F_OK), -1); /* nothing was made */
	write_file("", 0);
	refused(0, FW_ENOTFOUND, "feedwheel add");
	st = store_open(url, FW_STORE_CREATE);
	subscribe(st, "https://a.example/", NOW);
	fw_store_close(st);
}
END_TEST

START_TEST(forbidden_file)
{
	fw_store_close(store_open(url, FW_STORE_CREATE));
	ck_assert_int_eq(chmod(path, 0), 0);
	ck_assert_int_eq(chmod(scratch(), 0755), 0);
	if (geteuid() == 0)
		ck_assert_int_eq(seteuid(65534), 0); /* root may read everything */
	refused(FW_STORE_CREATE, FW_EIO, "permissions");
	if (getuid() == 0)
		ck_assert_int_eq(seteuid(0), 0);
	ck_assert_int_eq(chmod(path, 0644), 0);
}
END_TEST

START_TEST(file_that_may_not_be_written)
{
	struct fw_store_config c = {.url = url};
	struct fw_store *st = NULL;
	struct fw_err err = {0};
	struct fw_feed_new n = {.url = FW_STR("https://b.example/")};
	int rc;

	fw_store_close(store_open(url, FW_STORE_CREATE));
	ck_assert_int_eq(chmod(path, 0444), 0);
	ck_assert_int_eq(chmod(scratch(), 0755), 0);
	if (geteuid() == 0)
		ck_assert_int_eq(seteuid(65534), 0);
	rc = fw_store_open(&c, &st, &err);
	if (!rc)
		rc = fw_store_subscribe(st, &n, 1, &err);
	ck_assert_msg(rc == FW_EIO && strstr(err.text, path) && strstr(err.text, "permissions"), "%d: %s", rc, err.text);
	fw_store_close(st);
	if (getuid() == 0)
		ck_assert_int_eq(seteuid(0), 0);
}
END_TEST

START_TEST(reading_only)
{
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	struct fw_feed_new n = {.url = FW_STR("https://b.example/")};
	struct fw_err err = {0};
	int64_t id = subscribe(st, "https://a.example/", NOW);

	fw_store_close(st);
	st = store_open(url, FW_STORE_READ);
	ck_assert_int_eq(find(st, id, &A).id, id);
	ck_assert_int_eq(entry_count(st, id), 0);
	IS(fw_store_subscribe(st, &n, 1, &err), FW_EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "reading only"));
	ck_assert_int_eq(stats(st, NOW).feed_n, 1);
	fw_store_close(st);
}
END_TEST

START_TEST(locked_by_somebody_else)
{
	struct fw_store_config c = {.url = url, .flags = FW_STORE_CREATE, .busy_timeout_ms = 100};
	struct fw_claim_ask ask = {.worker = "w", .now_ms = NOW, .lease_ms = 1000, .max = 1};
	struct fw_claim_got got;
	struct fw_lease l[1];
	struct fw_feed f;
	struct fw_outcome o;
	struct fw_store *st;
	struct fw_err err = {0};
	sqlite3 *db;

	OK(fw_store_open(&c, &st, &err));
	subscribe(st, "https://a.example/", NOW);
	OK(fw_store_claim(st, &ask, &A, l, &got, &err));
	o = outcome_of(&l[0], &f, NOW);
	ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	IS(fw_store_commit(st, &(struct fw_commit){.outcome = &o, .n = 1}, &err), FW_EAGAIN);
	ck_assert_msg(strstr(err.text, path) && strstr(err.text, "locked") && strstr(err.text, "100 ms"), "%s", err.text);
	IS(fw_store_claim(st, &ask, &A, l, &got, &err), FW_EAGAIN);
	ck_assert_int_eq(stats(st, NOW).lent_n, 1); /* reading goes on */
	ck_assert_int_eq(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	OK(fw_store_commit(st, &(struct fw_commit){.outcome = &o, .n = 1}, &err)); /* as it was */
	ck_assert_int_eq(o.rc, 0);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

static int keep_quiet(void *ctx, const struct fw_feed *f)
{
	(void)ctx;
	(void)f;
	return 0;
}

static void count_finding(void *ctx, const char *text)
{
	(void)text;
	++*(int *)ctx;
}

/*
 * A process with several connections, as the server is: another one that comes and goes must not take itself for the last, and put the
 * journal away under their feet. (A file that is merely closed takes all locks of its process with it.)
 */
START_TEST(several_connections_of_one_process)
{
	struct fw_store *st[3];
	struct stat sb;
	char wal[310];
	int status;
	pid_t pid;

	for (int i = 0; i < 3; i++)
		st[i] = store_open(url, FW_STORE_CREATE);
	subscribe(st[0], "https://a.example/", NOW);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		(void)execl("/proc/self/exe", "trouble", "visit", url, (char *)NULL);
		_exit(9);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	ck_assert(fw_snprintf(wal, sizeof(wal), "%s-wal", path));
	ck_assert_int_eq(stat(wal, &sb), 0);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(stats(st[i], NOW).feed_n, 2);
		check_clean(st[i]);
	}
	for (int i = 0; i < 3; i++)
		fw_store_close(st[i]);
	ck_assert_int_eq(stat(wal, &sb), -1);
}
END_TEST

/* The other program of the test above. */
static int visit_and_leave(const char *where)
{
	struct fw_store_config c = {.url = where};
	struct fw_feed_new n = {.url = FW_STR("https://b.example/")};
	struct fw_store *st;
	struct fw_err err;
	int rc = fw_store_open(&c, &st, &err);

	rc = rc ? rc : fw_store_subscribe(st, &n, 1, &err);
	if (rc)
		fprintf(stderr, "# %s\n", err.text);
	else
		fw_store_close(st);
	return rc ? 1 : 0;
}

START_TEST(damaged_file)
{
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	struct fw_feed_query all = {.status = -1};
	struct fw_err err = {0};
	char junk[4096];
	struct stat sb;
	int fd, rc, findings = 0;

	subscribe_many(st, "https://h%d.example/", 0, 3000, NOW);
	fw_store_close(st);
	ck_assert_int_eq(stat(path, &sb), 0);
	memset(junk, 0xa5, sizeof(junk));
	fd = open(path, O_WRONLY);
	for (off_t at = 40 * 4096; at + 4096 <= sb.st_size; at += 2 * 4096) /* every other page behind the schema */
		ck_assert_int_eq(pwrite(fd, junk, sizeof(junk), at), (ssize_t)sizeof(junk));
	close(fd);
	st = store_open(url, 0);
	rc = fw_store_feed_list(st, &all, keep_quiet, NULL, &err);
	ck_assert_msg(rc == FW_EIO && strstr(err.text, path) && strstr(err.text, ".recover"), "%d: %s", rc, err.text);
	rc = fw_store_check(st, count_finding, &findings, &err);
	ck_assert(rc == FW_EIO || findings > 0);
	fw_store_close(st);
}
END_TEST

START_TEST(truncated_file)
{
	struct fw_store_config c = {.url = url};
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	struct fw_feed_query all = {.status = -1};
	struct fw_err err = {0};
	struct stat sb;
	int rc;

	subscribe_many(st, "https://h%d.example/", 0, 3000, NOW);
	fw_store_close(st);
	ck_assert_int_eq(stat(path, &sb), 0);
	ck_assert_int_eq(truncate(path, sb.st_size / 2), 0);
	rc = fw_store_open(&c, &st, &err);
	if (!rc)
		rc = fw_store_feed_list(st, &all, keep_quiet, NULL, &err);
	ck_assert_msg(rc == FW_EIO && strstr(err.text, path), "%d: %s", rc, err.text);
	fw_store_close(st);
}
END_TEST

#define BIG_N 60

/* Fill the store until no space is left; then nothing of the last commit is there, and with space it succeeds as it is. */
static void fill_up(struct fw_store *st, const char *words, void (*more_space)(void))
{
	struct fw_buf text = FW_BUF_INIT(0);
	struct fw_entry_row e[BIG_N];
	struct fw_lease l[1];
	struct fw_feed f;
	struct fw_outcome o;
	struct fw_commit c = {.outcome = &o, .n = 1};
	struct fw_err err = {0};
	int64_t before, now = NOW;
	int rc = 0, id = 0;

	for (int i = 0; i < 2000; i++)
		fw_buf_addf(&text, "<p>word%d</p>", i * 7919);
	subscribe(st, "https://a.example/", NOW);
	do {
		now += 3600000;
		ck_assert_int_lt(id, 1000000);
		before = stats(st, now).entry_n;
		ck_assert_uint_eq(claim_at(st, now, 1, l, &A), 1);
		o = outcome_of(&l[0], &f, now);
		for (int i = 0; i < BIG_N; i++) {
			e[i] = entry(++id, 1, "t", "");
			e[i].content = fw_buf_str(&text);
		}
		o.entries = e;
		o.entry_n = BIG_N;
		c.now_ms = now;
		rc = fw_store_commit(st, &c, &err);
	} while (!rc && id < 100 * BIG_N);
	ck_assert_msg(rc == FW_EIO && strstr(err.text, path) && strstr(err.text, words), "%d: %s", rc, err.text);
	ck_assert_int_eq(stats(st, now).entry_n, before); /* all or nothing */
	ck_assert_int_eq(stats(st, now).lent_n, 1);
	IS(fw_store_commit(st, &c, &err), FW_EIO); /* still full */
	more_space();
	OK(fw_store_commit(st, &c, &err));
	ck_assert_int_eq(o.rc, 0);
	ck_assert_uint_eq(o.visit.new_n, BIG_N);
	ck_assert_int_eq(stats(st, now).entry_n, before + BIG_N);
	check_clean(st);
	fw_buf_finish(&text);
}

static char filler[320];

static void remove_filler(void)
{
	ck_assert_int_eq(unlink(filler), 0);
}

START_TEST(disk_full) /* REL-09 */
{
	struct fw_store *st;
	char folder[300], junk[4096] = "";
	int fd;

	ck_assert(fw_snprintf(folder, sizeof(folder), "%s/tiny", scratch()));
	ck_assert_int_eq(mkdir(folder, 0755), 0);
	/* a mount of this process alone; needs root */
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tiny", folder, "tmpfs", 0, "size=12m")) {
		printf("# disk_full: no mount here (%s): skipped\n", strerror(errno));
		return;
	}
	ck_assert(fw_snprintf(path, sizeof(path), "%s/full.db", folder));
	ck_assert(fw_snprintf(url, sizeof(url), "sqlite:%s", path));
	ck_assert(fw_snprintf(filler, sizeof(filler), "%s/filler", folder));
	fd = open(filler, O_WRONLY | O_CREAT, 0600);
	for (int i = 0; i < 1536; i++)
		ck_assert_int_eq(write(fd, junk, sizeof(junk)), (ssize_t)sizeof(junk));
	close(fd);
	st = store_open(url, FW_STORE_CREATE);
	fill_up(st, "no space left", remove_filler);
	fw_store_close(st);
	umount(folder);
}
END_TEST

static void lift_limit(void)
{
	struct rlimit r = {RLIM_INFINITY, RLIM_INFINITY};

	getrlimit(RLIMIT_FSIZE, &r);
	r.rlim_cur = r.rlim_max;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &r), 0);
}

START_TEST(file_size_limit) /* the same without root: ulimit -f */
{
	struct rlimit r;
	struct fw_store *st = store_open(url, FW_STORE_CREATE);

	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &r);
	r.rlim_cur = 6 << 20;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &r), 0);
	fill_up(st, "ulimit -f", lift_limit);
	fw_store_close(st);
}
END_TEST

/* A search first indexes what is missing; when that cannot be written, it answers from what there is. */
START_TEST(search_on_a_full_disk)
{
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	struct rlimit r;

	subscribe(st, "https://a.example/", NOW);
	put_entries(st, &A, NOW, 0, 10);
	ck_assert_int_eq(hits(st, "number"), 10);
	put_entries(st, &A, NOW + 3600000, 10, 20);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &r);
	r.rlim_cur = 4096;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &r), 0);
	ck_assert_int_eq(hits(st, "number"), 10);
	lift_limit();
	ck_assert_int_eq(hits(st, "number"), 20);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

START_TEST(journal_stays_bounded)
{
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	struct fw_buf text = FW_BUF_INIT(0);
	struct fw_entry_row e[BIG_N];
	struct fw_lease l[1];
	struct fw_feed f;
	struct fw_outcome o;
	char wal[320];
	struct stat sb;
	int id = 0;

	for (int i = 0; i < 5000; i++)
		fw_buf_addf(&text, "<p>word%d</p>", i * 7919);
	subscribe(st, "https://a.example/", NOW);
	for (int64_t now = NOW; now < NOW + 40 * INT64_C(3600000); now += 3600000) { /* 200 MB in all */
		ck_assert_uint_eq(claim_at(st, now, 1, l, &A), 1);
		o = outcome_of(&l[0], &f, now);
		for (int i = 0; i < BIG_N; i++) {
			e[i] = entry(++id, 1, "t", "");
			e[i].content = fw_buf_str(&text);
		}
		o.entries = e;
		o.entry_n = BIG_N;
		ck_assert_int_eq(commit_one(st, &o, now), 0);
	}
	ck_assert(fw_snprintf(wal, sizeof(wal), "%s-wal", path));
	ck_assert_int_eq(stat(wal, &sb), 0);
	ck_assert_int_lt(sb.st_size, 80 << 20);
	fw_buf_finish(&text);
	fw_store_close(st);
	ck_assert_int_eq(stat(wal, &sb), -1); /* closing folds it in */
}
END_TEST

int main(int argc, char **argv)
{
	Suite *s;
	TCase *t;
	const TTest *every[] = {newer_schema, schema_4, older_schema, places_are_merged, prune_in_steps, lease_deleted_by_hand, keys_of_a_large_feed, index_is_merged, feed_deleted_by_hand,
		place_numbers_wrap, place_is_taken, keys_of_any_length, call_from_a_callback, no_shared_memory, database_of_another_program, not_a_database, empty_and_missing_files, forbidden_file,
		file_that_may_not_be_written, reading_only, locked_by_somebody_else, several_connections_of_one_process, damaged_file, truncated_file, disk_full,
		file_size_limit, search_on_a_full_disk, journal_stays_bounded};

	if (argc == 3 && strcmp(argv[1], "visit") == 0)
		return visit_and_leave(argv[2]);
	s = suite_create("store, trouble");
	t = tcase_create("sqlite");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 120);
	for (size_t i = 0; i < FW_N(every); i++)
		tcase_add_test(t, every[i]);
	tcase_add_loop_test(t, other_shapes, 0, 2);
	suite_add_tcase(s, t);
	return run_suite(s);
}
