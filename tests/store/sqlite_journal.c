/* SPDX-License-Identifier: ISC */
/*
 * SQLite's journal: who checkpoints, and when (src/store/sqlite/checkpoint.c); and the locks of a
 * file that has just been made. The interleavings are forced: a connection's calls of its file, and
 * close(), call out at the moment that counts.
 */
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"
#include "store/sqlite/sqlite.h"

/* bytes of SQLite's locks: WAL_WRITE_LOCK and WAL_READ_LOCK(0) of its wal.c */
#define WRITE_LOCK 0
#define READ_LOCK 3

static char path[300], url[320], wal[320], lock[320];

static void setup(void)
{
	ck_assert(fw_snprintf(path, sizeof(path), "%s/journal.db", scratch()));
	ck_assert(fw_snprintf(url, sizeof(url), "sqlite:%s", path));
	ck_assert(fw_snprintf(wal, sizeof(wal), "%s-wal", path));
	ck_assert(fw_snprintf(lock, sizeof(lock), "%s-checkpoint", path));
}

static struct sqlite_db *db_of(struct fw_store *st)
{
	return sqlite_db(sql_of(store_of(st)));
}

/* A connection that may checkpoint after each commit. */
static struct fw_store *eager(void)
{
	struct fw_store *st = store_open(url, FW_STORE_CREATE);

	db_of(st)->checkpoint_frames = 1;
	return st;
}

static int next_feed;

static void write_some(struct fw_store *st, int n)
{
	int from = next_feed;

	next_feed += n; /* first: these calls are nested */
	subscribe_many(st, "https://h%d.example/", from, n, NOW);
}

/*
 * A checkpoint writes the file. (A test may not open it to compare: close() would drop the locks of
 * this process.)
 */
static void file_time_put_back(void)
{
	ck_assert_int_eq(utimensat(AT_FDCWD, path, (struct timespec[]){{.tv_sec = 1}, {.tv_sec = 1}}, 0), 0);
}

static bool file_was_written(void)
{
	struct stat sb;

	ck_assert_int_eq(stat(path, &sb), 0);
	return sb.st_mtim.tv_sec != 1;
}

/* Does a commit of st checkpoint? */
static bool checkpoints(struct fw_store *st)
{
	file_time_put_back();
	write_some(st, 1);
	return file_was_written();
}

/* ---- a commit in the middle of a checkpoint -------------------------------------------------- */

static struct {
	struct fw_store *first, *other;
	const sqlite3_io_methods *unix_methods;
	bool armed, wrote, ended, at_header;
} amid;

/*
 * The second connection has committed and not yet begun its checkpoint: the first one commits, and
 * checkpoints all if it may.
 */
static int amid_lock(sqlite3_file *f, int at, int n, int flags)
{
	int rc = amid.unix_methods->xShmLock(f, at, n, flags);

	if (!amid.armed || !(flags & SQLITE_SHM_UNLOCK))
		return rc;
	amid.wrote |= at == WRITE_LOCK;
	if (amid.wrote && at >= READ_LOCK && !amid.ended) {
		amid.ended = true;
		write_some(amid.first, 1);
	}
	return rc;
}

/* SQLite calls it between the two reads that belong together, if others have committed. */
static int amid_unfetch(sqlite3_file *f, sqlite3_int64 at, void *p)
{
	if (amid.armed && amid.ended && !amid.at_header && !p) {
		amid.at_header = true;
		write_some(amid.other, 300);
	}
	return amid.unix_methods->xUnfetch(f, at, p);
}

static void count_finding(void *ctx, const char *text)
{
	(void)text;
	++*(int *)ctx;
}

/* As another program writes (feedwheel-store(7), SQLITE): it does not checkpoint. */
static void outsider_make(struct fw_store *st)
{
	ck_assert_int_eq(sqlite3_wal_autocheckpoint(db_of(st)->db, 0), SQLITE_OK);
	db_of(st)->checkpoint_frames = INT_MAX;
}

/*
 * 0: our checkpoints. 1: those of SQLite, which shows that this test finds the fault. 2: ours, and
 * two other programs.
 */
START_TEST(commit_amid_a_checkpoint)
{
	struct fw_store *st[3];
	sqlite3_io_methods methods;
	struct fw_err err = {0};
	sqlite3_file *f;
	int findings = 0;

	if (_i == 1 && !sqlite_loses_commits(sqlite3_libversion_number()))
		return; /* this SQLite is mended */
	for (int i = 0; i < 3; i++) {
		st[i] = eager();
		if (_i == 1)
			ck_assert_int_eq(sqlite3_wal_autocheckpoint(db_of(st[i])->db, 1), SQLITE_OK);
	}
	for (int i = 0; i < 6; i++)
		write_some(st[i % 3], 1); /* all frames are in the file */
	if (_i == 2) {
		outsider_make(st[0]);
		outsider_make(st[2]);
		ck_assert(!checkpoints(st[0]) && checkpoints(st[1]));
	}
	ck_assert_int_eq(sqlite3_file_control(db_of(st[1])->db, "main", SQLITE_FCNTL_FILE_POINTER, &f), SQLITE_OK);
	amid.first = st[0];
	amid.other = st[2];
	amid.unix_methods = f->pMethods;
	methods = *f->pMethods;
	methods.xShmLock = amid_lock;
	methods.xUnfetch = amid_unfetch;
	f->pMethods = &methods;
	amid.armed = true;
	write_some(st[1], 1);
	amid.armed = false;
	f->pMethods = amid.unix_methods;
	ck_assert(amid.ended && amid.at_header);
	for (int i = 0; i < 4; i++)
		write_some(st[i % 2 ? 2 : 0], 1);
	if (fw_store_check(st[0], count_finding, &findings, &err))
		findings++;
	if (_i == 1) {
		ck_assert_int_gt(findings, 0);
	} else {
		ck_assert_int_eq(findings, 0);
		ck_assert_int_eq(stats(st[0]).feed_n, next_feed);
	}
	for (int i = 0; i < 3; i++)
		fw_store_close(st[i]);
}
END_TEST

/* Another program that closes its connection leaves the journal to those who have the file open. */
START_TEST(outsider_comes_and_goes)
{
	struct fw_store *st = eager(), *other = store_open(url, 0);

	write_some(st, 1);
	file_time_put_back();
	outsider_make(other);
	write_some(other, 300);
	fw_store_close(other);
	ck_assert(!file_was_written());
	ck_assert(checkpoints(st));
	check_clean(st);
	ck_assert_int_eq(stats(st).feed_n, next_feed);
	other = store_open(url, 0);
	outsider_make(other);
	write_some(other, 1);
	fw_store_close(st);
	file_time_put_back();
	fw_store_close(other); /* the last one: alone, under SQLite's exclusive lock */
	ck_assert(file_was_written());
	st = store_open(url, 0);
	check_clean(st);
	ck_assert_int_eq(stats(st).feed_n, next_feed);
	fw_store_close(st);
}
END_TEST

/* ---- one at a time --------------------------------------------------------------------------- */

/* Another connection, of this process or another one, has the lock until it ends or is killed. */
START_TEST(one_checkpoint_at_a_time)
{
	struct fw_store *st = eager();
	int ready[2], fd, status;
	pid_t pid;
	char c;

	write_some(st, 1);
	ck_assert(checkpoints(st));
	fd = open(lock, O_RDONLY);
	ck_assert_int_eq(flock(fd, LOCK_EX | LOCK_NB), 0); /* nothing is left locked */
	ck_assert(!checkpoints(st));
	close(fd);
	ck_assert(checkpoints(st));

	ck_assert_int_eq(pipe(ready), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		fd = open(lock, O_RDONLY);
		if (fd < 0 || flock(fd, LOCK_EX) || write(ready[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	ck_assert_int_eq(read(ready[0], &c, 1), 1);
	ck_assert(!checkpoints(st));
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(checkpoints(st));
	fw_store_close(st);
}
END_TEST

/* A read, a refused row and a commit that writes nothing do not checkpoint, and leave no lock. */
START_TEST(only_after_a_commit)
{
	struct fw_store *st = eager();
	struct sql *s = sql_of(store_of(st));
	struct fw_err err = {0};
	int fd;

	write_some(st, 1);
	file_time_put_back();
	stats(st);
	OK(s->dialect->begin(s, &err));
	OK(sql_end(s, 0, &err));
	OK(s->dialect->begin(s, &err));
	OK(sql_exec(s, "DELETE FROM feeds", SQL_NONE, &err));
	IS(sql_end(s, FW_EINVAL, &err), FW_EINVAL);
	ck_assert(!file_was_written());
	fd = open(lock, O_RDONLY);
	ck_assert_int_eq(flock(fd, LOCK_EX | LOCK_NB), 0);
	close(fd);
	ck_assert(checkpoints(st));
	fw_store_close(st);
}
END_TEST

/* ---- the file of the lock -------------------------------------------------------------------- */

START_TEST(lock_is_the_stores)
{
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	char link[320], link_url[340], other[340];
	struct stat sb;

	ck_assert_int_eq(stat(lock, &sb), 0);
	ck_assert_int_eq(sb.st_mode & 07777, 0600);
	ck_assert_int_eq(sb.st_size, 0);
	fw_store_close(st);

	/* those who may write the store may lock it */
	ck_assert_int_eq(chmod(path, 0660), 0);
	if (geteuid() == 0)
		ck_assert_int_eq(chown(path, 65534, 65534), 0);
	fw_store_close(store_open(url, 0));
	ck_assert_int_eq(stat(lock, &sb), 0);
	ck_assert_int_eq(sb.st_mode & 07777, 0660);
	ck_assert(geteuid() != 0 || (sb.st_uid == 65534 && sb.st_gid == 65534));

	/* a link to the store has no lock of its own */
	ck_assert(fw_snprintf(link, sizeof(link), "%s/link.db", scratch()));
	ck_assert(fw_snprintf(link_url, sizeof(link_url), "sqlite:%s", link));
	ck_assert(fw_snprintf(other, sizeof(other), "%s-checkpoint", link));
	ck_assert_int_eq(symlink(path, link), 0);
	ck_assert_int_eq(unlink(lock), 0);
	fw_store_close(store_open(link_url, 0));
	ck_assert_int_eq(access(lock, F_OK), 0);
	ck_assert_int_eq(access(other, F_OK), -1);

	/* reading needs none, and memory has none */
	ck_assert_int_eq(unlink(lock), 0);
	fw_store_close(store_open(url, FW_STORE_READ));
	fw_store_close(store_open("memory:", FW_STORE_CREATE));
	ck_assert_int_eq(access(lock, F_OK), -1);
	ck_assert_int_eq(access(":memory:-checkpoint", F_OK), -1);
}
END_TEST

/* Without the lock there are no checkpoints, and the journal would only grow: refused at once. */
START_TEST(lock_that_cannot_be_made)
{
	struct fw_store_config c = {.url = url};
	struct fw_store *st = NULL;
	struct fw_err err = {0};

	fw_store_close(store_open(url, FW_STORE_CREATE));
	ck_assert_int_eq(unlink(lock), 0);
	ck_assert_int_eq(symlink("/dev/null", lock), 0); /* nobody leads it elsewhere */
	IS(fw_store_open(&c, &st, &err), FW_EIO);
	ck_assert_msg(strstr(err.text, lock) && strstr(err.text, "permissions"), "%s", err.text);
	ck_assert_int_eq(unlink(lock), 0);
	fw_store_close(store_open(url, 0));
}
END_TEST

/* ---- length ---------------------------------------------------------------------------------- */

static off_t wal_bytes(void)
{
	struct stat sb;

	return stat(wal, &sb) ? 0 : sb.st_size;
}

static void script(struct fw_store *st, const char *text)
{
	struct fw_err err = {0};

	OK(sql_of(store_of(st))->dialect->script(sql_of(store_of(st)), text, &err));
}

/*
 * A reader keeps the journal growing. When it has ended, a command that commits once checkpoints,
 * and the next one begins the journal anew and cuts it.
 */
START_TEST(journal_shrinks_after_a_burst)
{
	struct fw_store *st = store_open(url, FW_STORE_CREATE), *reader = store_open(url, FW_STORE_READ), *once;

	write_some(st, 1);
	script(reader, "BEGIN; SELECT count(*) FROM feeds");
	for (int i = 0; i < 9; i++)
		script(st,
			"BEGIN; CREATE TABLE burst AS SELECT zeroblob(5000000) x; DROP TABLE burst; COMMIT;"
			" BEGIN; CREATE TABLE burst AS SELECT zeroblob(5000000) x; DROP TABLE burst; COMMIT");
	ck_assert_int_gt(wal_bytes(), 80 << 20);
	script(reader, "COMMIT");
	once = store_open(url, 0);
	ck_assert(checkpoints(once));
	fw_store_close(once);
	once = store_open(url, 0);
	write_some(once, 1);
	ck_assert_int_le(wal_bytes(), SQLITE_WAL_BYTES);
	fw_store_close(once);
	check_clean(st);
	fw_store_close(reader);
	fw_store_close(st);
	ck_assert_int_eq(wal_bytes(), 0);
}
END_TEST

/* ---- the locks of a new file ----------------------------------------------------------------- */

static struct {
	_Atomic(long) thread; /* the second thread's number; 0: not started */
	atomic_bool armed, done;
	pthread_t second;
	struct fw_store *st;
} made;

static void *made_open(void *unused)
{
	made.thread = syscall(SYS_gettid);
	made.st = store_open(url, FW_STORE_CREATE);
	made.done = true;
	return unused;
}

/* Does the second thread wait for a mutex? */
static bool made_waits(void)
{
	char name[80], text[40] = "";
	FILE *f;

	if (!made.thread)
		return false;
	ck_assert(fw_snprintf(name, sizeof(name), "/proc/self/task/%ld/syscall", made.thread));
	f = fopen(name, "r");
	ck_assert(f && fgets(text, sizeof(text), f));
	(void)fclose(f);
	return atoll(text) == SYS_futex && text[0] != 'r';
}

/* The first thread closes the file that it has made: now the second one opens the store. */
static void made_before_close(int fd)
{
	struct stat a, b;

	if (!made.armed || fstat(fd, &a) || stat(path, &b) || a.st_ino != b.st_ino)
		return;
	made.armed = false;
	ck_assert_int_eq(pthread_create(&made.second, NULL, made_open, NULL), 0);
	while (!made.done && !made_waits())
		sched_yield();
}

int close(int fd) /* of the whole program */
{
	made_before_close(fd);
	return (int)syscall(SYS_close, fd);
}

/* The other program: it opens the store, and closes it. */
static int visit_and_leave(const char *where)
{
	struct fw_store_config c = {.url = where};
	struct fw_store *st;
	struct fw_err err;

	if (fw_store_open(&c, &st, &err)) {
		fprintf(stderr, "# %s\n", err.text);
		return 1;
	}
	fw_store_close(st);
	return 0;
}

/*
 * Two threads open a new store at once. The close() of the one that made the file must not drop the
 * locks of the other: else a program that comes and goes takes itself for the last one, and deletes
 * the journal under the feet of this process.
 */
START_TEST(store_is_made_by_two_threads)
{
	struct fw_store *st;
	struct stat sb;
	int status;
	pid_t pid;

	made.armed = true;
	st = store_open(url, FW_STORE_CREATE);
	ck_assert(!made.armed);
	ck_assert_int_eq(pthread_join(made.second, NULL), 0);
	write_some(st, 1);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		(void)execl("/proc/self/exe", "journal", "visit", url, (char *)NULL);
		_exit(9);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	ck_assert_int_eq(stat(wal, &sb), 0);
	write_some(made.st, 1);
	ck_assert_int_eq(stats(st).feed_n, 2);
	fw_store_close(made.st);
	fw_store_close(st);
}
END_TEST

/* ---- what doctor says ------------------------------------------------------------------------ */

START_TEST(versions_that_lose_commits)
{
	static const struct {
		int version;
		bool loses;
	} T[] = {{3006023, false}, {3007000, true}, {3040001, true}, {3044005, true}, {3044006, false},
		{3044007, false}, {3045000, true}, {3046001, true}, {3050006, true}, {3050007, false}, {3051000, true},
		{3051002, true}, {3051003, false}, {3053000, false}};

	for (size_t i = 0; i < FW_N(T); i++)
		ck_assert_msg(sqlite_loses_commits(T[i].version) == T[i].loses, "%d", T[i].version);
}
END_TEST

static void see_version(void *ctx, const char *name, int level, const char *found, const char *remedy)
{
	*(bool *)ctx |= level == 1 && strcmp(name, "engine") == 0 && strstr(found, "lose commits") &&
		strstr(remedy, "PRAGMA wal_autocheckpoint = 0");
}

START_TEST(doctor_names_the_version)
{
	struct fw_store *st = store_open(url, FW_STORE_CREATE), *memory = store_open("memory:", FW_STORE_CREATE);
	struct fw_err err = {0};
	bool said = false, said_of_memory = false;

	OK(fw_store_inspect(st, see_version, &said, &err));
	OK(fw_store_inspect(memory, see_version, &said_of_memory, &err));
	ck_assert(said == sqlite_loses_commits(sqlite3_libversion_number()));
	ck_assert(!said_of_memory);
	fw_store_close(memory);
	fw_store_close(st);
}
END_TEST

int main(int argc, char **argv)
{
	const TTest *const each[] = {one_checkpoint_at_a_time, only_after_a_commit, lock_is_the_stores,
		lock_that_cannot_be_made, journal_shrinks_after_a_burst, store_is_made_by_two_threads,
		outsider_comes_and_goes, versions_that_lose_commits, doctor_names_the_version};
	const TTest *const thrice[] = {commit_amid_a_checkpoint};
	TCase *t;

	if (argc == 3 && strcmp(argv[1], "visit") == 0)
		return visit_and_leave(argv[2]);
	engine_needed("sqlite");
	t = cases("sqlite", setup, NULL, 120);
	cases_add(t, each, FW_N(each), 1);
	cases_add(t, thrice, FW_N(thrice), 3);
	return cases_run("store sqlite_journal", t);
}
