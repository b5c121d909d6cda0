/* SPDX-License-Identifier: ISC */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"
#include "server_redis.h"

struct under_test under_test[] = {
	{"memory", false, NULL},
	{"sqlite", true, NULL},
	{"redis", true, &server_redis},
#if FW_HAVE_POSTGRES /* libpq is used to wait for its server */
	{"postgres", true, &server_postgres},
#else
	{"postgres", true, NULL},
#endif
#if FW_HAVE_MYSQL
	{"mysql", true, &server_mysql},
#else
	{"mysql", true, NULL},
#endif
};
int under_test_n = (int)FW_N(under_test);

static char folder[200];
static pid_t folder_owner;

static int remove_one(const char *path, const struct stat *sb, int type, struct FTW *f)
{
	(void)sb;
	(void)type;
	(void)f;
	return remove(path);
}

static void scratch_remove(void)
{
	if (folder[0] && folder_owner == getpid())
		nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

const char *scratch(void)
{
	const char *tmp = getenv("TMPDIR");

	if (folder[0] && folder_owner == getpid())
		return folder;
	if (!fw_snprintf(folder, sizeof(folder), "%s/feedwheel-store-XXXXXX", tmp ? tmp : "/tmp") || !mkdtemp(folder)) {
		/* no ck_assert: stores_begin() runs outside of tests */
		fprintf(stderr, "%s: cannot be created\n", folder);
		exit(EXIT_FAILURE);
	}
	folder_owner = getpid();
	atexit(scratch_remove);
	return folder;
}

/* ---- servers --------------------------------------------------------------------------------- */

bool server_durable;

const struct server *server_of(const char *engine)
{
	for (int i = 0; i < under_test_n; i++) {
		if (strcmp(under_test[i].name, engine) == 0)
			return under_test[i].server;
	}
	return NULL;
}

static bool copied(const char *from, const char *to)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		execlp("cp", "cp", "-aT", from, to, (char *)NULL);
		_exit(127);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static void data_failed(const char *what, const char *path)
{
	/* no ck_assert: stores_begin() runs outside of tests */
	fprintf(stderr, "# FW_SERVER_DATA: %s: %s\n", path, what);
	exit(EXIT_FAILURE);
}

void server_data(const char *name, const char *data, void (*make)(void))
{
	const char *kept = getenv("FW_SERVER_DATA");
	char done[300], half[300];
	int lock;

	if (!kept || !*kept) {
		make();
		return;
	}
	if (!fw_snprintf(done, sizeof(done), "%s/%s", kept, name) ||
		!fw_snprintf(half, sizeof(half), "%s/%s.half", kept, name))
		data_failed("too long", kept);
	lock = open(kept, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (lock < 0 || flock(lock, LOCK_EX))
		data_failed(strerror(errno), kept);
	if (access(done, F_OK) != 0) {
		make();
		if (!copied(data, half) || rename(half, done))
			data_failed("the data cannot be kept", done);
		close(lock);
		return;
	}
	close(lock);
	if (!copied(done, data))
		data_failed("it cannot be copied", done);
}

void server_log_show(const char *home)
{
	char path[300], line[300];
	FILE *f = fw_snprintf(path, sizeof(path), "%s/log", home) ? fopen(path, "r") : NULL;

	if (f && fseek(f, -2000, SEEK_END))
		rewind(f); /* the file is shorter than that */
	while (f && fgets(line, sizeof(line), f))
		fprintf(stderr, "# %s%s", line, strchr(line, '\n') ? "" : "\n");
	if (f)
		fclose(f);
}

static pid_t servers_owner;

static void servers_stop(void)
{
	for (int i = 0; i < under_test_n && servers_owner == getpid(); i++) {
		if (under_test[i].server)
			under_test[i].server->stop();
	}
}

static bool named(struct fw_str names, struct fw_str engine)
{
	while (names.p) {
		if (fw_str_eq(fw_str_split(names, ',', &names), engine))
			return true;
	}
	return false;
}

bool picked(const char *engine)
{
	struct fw_str names = fw_str(getenv("FW_STORES")), done = fw_str(getenv("FW_STORES_DONE"));

	return (!names.len || named(names, fw_str(engine))) && !named(done, fw_str(engine));
}

/* A misspelt name would select no store, and a run without stores would pass. */
static void names_known(const char *variable)
{
	struct fw_str all = fw_str("memory,sqlite,redis,postgres,mysql"), rest = fw_str(getenv(variable));

	while (rest.len) {
		struct fw_str one = fw_str_split(rest, ',', &rest);

		if (!named(all, one)) {
			fprintf(stderr, "%s: %.*s is unknown, known are: %s\n", variable, (int)one.len, one.p, all.p);
			exit(EXIT_FAILURE);
		}
	}
}

bool built_in(const char *driver)
{
	for (size_t i = 0; fw_store_driver_at(i); i++) {
		if (strcmp(fw_store_driver_at(i), driver) == 0)
			return true;
	}
	return false;
}

static bool available(const struct under_test *u)
{
	const struct server *server = u->server;

	if (!built_in(u->name)) {
		fprintf(stderr, "# %s is left out: this build has no such driver (-D%s=enabled)\n", u->name, u->name);
		return false;
	}
	if (!server || server->installed())
		return true;
	fprintf(stderr, "# %s is left out: install the package %s\n", server->engine, server->package);
	if (getenv("CI"))
		exit(EXIT_FAILURE);
	return false;
}

void stores_begin(void)
{
	int n = 0;

	names_known("FW_STORES");
	names_known("FW_STORES_DONE");
	for (int i = 0; i < under_test_n; i++) {
		if (picked(under_test[i].name) && available(&under_test[i]))
			under_test[n++] = under_test[i];
	}
	under_test_n = n;
	scratch(); /* registers its clean-up first, so that it runs after the servers have ended */
	servers_owner = getpid();
	atexit(servers_stop);
	for (int i = 0; i < n; i++) {
		if (under_test[i].server)
			under_test[i].server->start(scratch());
	}
}

void engine_needed(const char *engine)
{
	if (picked(engine))
		return;
	printf("1..0 # SKIP it tests %s only, which this run leaves out\n", engine);
	exit(EXIT_SUCCESS);
}

void server_needed(const struct server *server)
{
	engine_needed(server->engine);
	if (server->installed())
		return;
	printf("1..0 # SKIP install the package %s\n", server->package);
	exit(getenv("CI") ? EXIT_FAILURE : EXIT_SUCCESS);
}

/* ---- programs -------------------------------------------------------------------------------- */

TCase *cases(const char *name, void (*begin)(void), void (*end)(void), int timeout_s)
{
	TCase *t = tcase_create(name);

	tcase_add_checked_fixture(t, begin, end);
	tcase_set_timeout(t, timeout_s);
	return t;
}

void cases_add(TCase *t, const TTest *const *test, size_t n, int times)
{
	for (size_t i = 0; i < n; i++)
		tcase_add_loop_test(t, test[i], 0, times);
}

void cases_add_once(TCase *t, const TTest *const *test, size_t n)
{
	if (!fw_str(getenv("FW_STORES_DONE")).len)
		cases_add(t, test, n, 1);
}

int cases_run(const char *suite, TCase *t)
{
	Suite *s = suite_create(suite);

	suite_add_tcase(s, t);
	return run_suite(s);
}

/* ---- stores ---------------------------------------------------------------------------------- */

char *scratch_url(int driver, const char *name)
{
	static char url[2][300];
	static int turn;
	char *u = url[turn++ % 2];

	if (strcmp(under_test[driver].name, "memory") == 0)
		ck_assert(fw_snprintf(u, sizeof(url[0]), "memory:"));
	else if (under_test[driver].server)
		under_test[driver].server->url(u, sizeof(url[0]), name);
	else
		ck_assert(fw_snprintf(u, sizeof(url[0]), "%s:%s/%s.db", under_test[driver].name, scratch(), name));
	return u;
}

struct fw_store *store_open(const char *url, unsigned flags)
{
	struct fw_store_config c = {.url = url, .flags = flags};
	struct fw_store *st = NULL;
	struct fw_err err = {0};

	OK(fw_store_open(&c, &st, &err));
	return st;
}

struct fw_store *fresh(int driver)
{
	static int n;
	char name[60];

	ck_assert(fw_snprintf(
		name, sizeof(name), "fresh%d_%d", (int)getpid(), n++)); /* each test is a process of its own */
	return store_open(scratch_url(driver, name), FW_STORE_CREATE);
}

int64_t subscribe(struct fw_store *st, const char *url, int64_t due_at_ms)
{
	struct fw_feed_new n = {.url = fw_str(url), .due_at_ms = due_at_ms};
	struct fw_err err = {0};

	OK(fw_store_subscribe(st, &n, 1, &err));
	return n.id;
}

void subscribe_many(struct fw_store *st, const char *format, int from, int n, int64_t due_at_ms)
{
	struct fw_feed_new *f = calloc((size_t)n, sizeof(*f));
	struct fw_err err = {0};
	struct fw_arena a;

	fw_arena_init(&a, 0);
	for (int i = 0; i < n; i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		f[i].url = fw_str(fw_arena_printf(&a, format, from + i));
#pragma GCC diagnostic pop
		f[i].due_at_ms = due_at_ms;
	}
	OK(fw_store_subscribe(st, f, (size_t)n, &err));
	fw_arena_finish(&a);
	free(f);
}

struct fw_entry_row entry(int key, int hash, const char *title, const char *content)
{
	struct fw_entry_row e = {.hash = (uint64_t)hash,
		.title = fw_str(title),
		.content = fw_str(content),
		.content_type = FW_TEXT_HTML,
		.published_ms = FW_NO_DATE,
		.updated_ms = FW_NO_DATE};

	memcpy(e.key, &key, sizeof(key));
	return e;
}

struct fw_feed find(struct fw_store *st, int64_t id, struct fw_arena *a)
{
	struct fw_err err = {0};
	struct fw_feed f;

	OK(fw_store_feed_find(st, id, FW_STR_NONE, a, &f, &err));
	return f;
}

struct fw_store_stats stats(struct fw_store *st)
{
	struct fw_store_stats s;
	struct fw_err err = {0};

	OK(fw_store_stats(st, &s, &err));
	return s;
}

static int count_one(void *ctx, const struct fw_entry_row *row)
{
	(void)row;
	++*(int64_t *)ctx;
	return 0;
}

int64_t query_count(struct fw_store *st, struct fw_entry_query q)
{
	struct fw_err err = {0};
	int64_t n = 0;

	OK(fw_store_entry_list(st, &q, count_one, &n, &err));
	return n;
}

int64_t entry_count(struct fw_store *st, int64_t feed_id)
{
	return query_count(st, (struct fw_entry_query){.feed_id = feed_id});
}

int64_t hits(struct fw_store *st, const char *words)
{
	return query_count(st, (struct fw_entry_query){.search = fw_str(words)});
}

void put_entries(struct fw_store *st, int64_t feed_id, int from, int to)
{
	struct fw_entry_row *e = calloc((size_t)(to - from), sizeof(*e));
	static int64_t at_ms = NOW; /* two pushes with the same time could be taken for a repetition */
	struct fw_feed f = {.id = feed_id};
	struct fw_outcome o = {.feed_id = feed_id,
		.feed = &f,
		.entries = e,
		.entry_n = (size_t)(to - from),
		.visit = {.at_ms = ++at_ms, .kind = FW_VISIT_PUSHED, .slot = -1}};
	struct fw_err err = {0};
	struct fw_arena a;

	ck_assert_ptr_nonnull(e);
	fw_arena_init(&a, 0);
	for (int i = from; i < to; i++)
		e[i - from] = entry(i, 1, fw_arena_printf(&a, "n%d", i), "<p>number</p>");
	OK(fw_store_push(st, &o, 1, &err));
	ck_assert_int_eq(o.rc, 0);
	fw_arena_finish(&a);
	free(e);
}

void index_all(struct fw_store *st)
{
	struct fw_prune p = {.now_ms = NOW, .index = true, .more = true};
	struct fw_err err = {0};

	for (int i = 0; p.more; i++) {
		ck_assert_int_lt(i, 10000);
		OK(fw_store_prune(st, &p, &err));
	}
}

static void finding(void *ctx, const char *text)
{
	(void)ctx;
	ck_abort_msg("check: %s", text);
}

void check_clean(struct fw_store *st)
{
	struct fw_err err = {0};

	OK(fw_store_check(st, finding, NULL, &err));
}

int64_t schema_of(const char *driver)
{
	return strcmp(driver, "redis") == 0 ? 2 : 5;
}

static int no_change(void *ctx, const struct fw_change *c)
{
	(void)ctx;
	ck_assert_int_eq(c->kind, FW_CHANGE_NEW);
	return 0;
}

static const char *const account_tables[] = {"DROP TABLE accounts", "DROP TABLE account_tokens",
	"DROP TABLE subscriptions", "DROP TABLE read_exceptions", "DROP TABLE labels", "DROP TABLE entry_labels",
	"DROP TABLE icons", "ALTER TABLE schedule DROP COLUMN entry_total_n"};

/* A store of schema 4 has no inbox, nor what came with it. */
static void inbox_undo(const char *url, void (*bare)(const char *sql))
{
	static const struct {
		const char *scheme, *sql;
	} UNDO[] = {{"sqlite:", "DROP TRIGGER v_feeds_insert"}, {"sqlite:", "DROP TRIGGER v_feeds_update"},
		{"sqlite:", "DROP TRIGGER v_feeds_delete"}, {"mysql:", "DROP PROCEDURE set_feed"},
		{"postgres:", "DROP FUNCTION v_feeds_write CASCADE"},
		{"postgres:", "DROP FUNCTION wake_workers CASCADE"}};

	for (size_t i = 0; i < FW_N(UNDO); i++) {
		if (fw_str_starts(fw_str(url), fw_str(UNDO[i].scheme)))
			bare(UNDO[i].sql);
	}
	bare("DROP VIEW v_workers");
	bare("DROP VIEW v_owners");
	bare("DROP TABLE feeds_to_fetch");
	bare("DROP TABLE feeds_to_fetch_refused");
	bare("DROP TABLE control");
}

void schema_1_is_upgraded(const char *url, void (*bare)(const char *sql))
{
	struct fw_change_query q = {0};
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	int64_t feed_id = subscribe(st, "https://old.example/", NOW);
	struct fw_err err = {0};

	put_entries(st, feed_id, 0, 3);
	fw_store_close(st);
	inbox_undo(url, bare);
	bare("DROP TABLE changes");
	bare("DROP TABLE revisions");
	bare("DROP TABLE matches");
	bare("DROP TABLE event_ids");
	for (size_t i = 0; i < FW_N(account_tables); i++)
		bare(account_tables[i]);
	bare("DELETE FROM meta WHERE name IN ('account_id', 'icon_id', 'event_clashes')");
	bare("DELETE FROM meta WHERE name = 'changes_pruned_id'");
	bare("UPDATE meta SET value = 1 WHERE name = 'schema'");
	st = store_open(url, FW_STORE_READ);
	ck_assert_int_eq(stats(st).schema, 1);
	ck_assert_int_eq(entry_count(st, feed_id), 3);
	IS(fw_store_change_list(st, &q, no_change, NULL, &err), FW_EVERSION);
	ck_assert(strstr(err.text, "feedwheel run"));
	check_clean(st);
	fw_store_close(st);
	st = store_open(url, 0);
	ck_assert_int_eq(stats(st).schema, 5);
	put_entries(st, feed_id, 3, 5);
	OK(fw_store_change_list(st, &q, no_change, NULL, &err));
	ck_assert_int_eq(q.next_id, 5);
	check_clean(st);
	fw_store_close(st);
	inbox_undo(url, bare);
	for (size_t i = 0; i < FW_N(account_tables); i++) /* schema 2 had the log, but no accounts */
		bare(account_tables[i]);
	bare("DROP TABLE event_ids");
	bare("DELETE FROM meta WHERE name IN ('account_id', 'icon_id', 'event_clashes')");
	bare("UPDATE meta SET value = 2 WHERE name = 'schema'");
	st = store_open(url, FW_STORE_READ);
	ck_assert_int_eq(stats(st).schema, 2);
	OK(fw_store_change_list(st, &q, no_change, NULL, &err));
	check_clean(st);
	fw_store_close(st);
	st = store_open(url, 0);
	ck_assert_int_eq(stats(st).schema, 5);
	put_entries(st, feed_id, 5, 7);
	ck_assert_int_eq(entry_count(st, feed_id), 7);
	check_clean(st);
	fw_store_close(st);
	inbox_undo(url, bare);
	bare("DROP TABLE event_ids"); /* schema 3 had accounts, but no ranges of ids */
	bare("DELETE FROM meta WHERE name = 'event_clashes'");
	bare("UPDATE meta SET value = 3 WHERE name = 'schema'");
	st = store_open(url, FW_STORE_READ);
	ck_assert_int_eq(stats(st).schema, 3);
	ck_assert_int_eq(stats(st).clash_n, 0);
	fw_store_close(st);
	st = store_open(url, 0);
	ck_assert_int_eq(stats(st).schema, 5);
	OK(fw_store_event_ids(st, &(struct fw_id_range){.first = 1, .clash_n = 2}, &err));
	ck_assert_int_eq(stats(st).clash_n, 2);
	fw_store_close(st);
	inbox_undo(url, bare); /* schema 4 had ranges of ids, but no inbox */
	bare("UPDATE meta SET value = 4 WHERE name = 'schema'");
	st = store_open(url, FW_STORE_READ);
	ck_assert_int_eq(stats(st).schema, 4);
	ck_assert_int_eq(stats(st).inbox_n, 0);
	fw_store_close(st);
	st = store_open(url, 0);
	ck_assert_int_eq(stats(st).schema, 5);
	ck_assert_int_eq(stats(st).clash_n, 2);
	bare("INSERT INTO feeds_to_fetch (url) VALUES ('https://a.example/')");
	ck_assert_int_eq(stats(st).inbox_n, 1);
	check_clean(st);
	fw_store_close(st);
}
