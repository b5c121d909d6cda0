/* SPDX-License-Identifier: ISC */
/*
 * make bench-store: what each store costs, compared with the usual form on the same engine in the
 * same run. Servers are private, as durable as in production (each commit is on the disk; Redis:
 * its log, flushed every second), with 1 GB of cache.
 *
 *   bench_store [--store NAME]... [--only PART] [--feeds N] [--feeds-large N] [--entries N]
 *               [--entries-large N] [--runs N] [--seconds N] [--minutes N] [--turns FOLDER]
 *
 * --only: schedule, entries, events, search, or (SQLite) job. --runs: rounds of --seconds each for
 * all that alternates. --feeds-large: feeds of a second, larger store (0: none). --entries-large:
 * entries in a store before more are added, and in that of the searches (0: none). --minutes: of a
 * steady load (0: none). TINY=1 in the environment: sizes of seconds, where no option names
 * another. All files are under TMPDIR (/tmp) and are removed. Exit status 1: a row is short; 2: an
 * error.
 *
 * --turns: other work on the machine alternates with ours by flock(2) on two files in that folder.
 * A process that wants quiet.lock, exclusively to measure or shared to load the machine, holds
 * turn.lock while it waits.
 *
 * The parent only waits and cleans up. The child measures; the servers end with it, however it
 * ends.
 */
#include <ftw.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../tests/store/servers.h"
#include "bench.h"

static const struct engine *const engines[] = {
	/* in this build */
	&engine_sqlite,
#if FW_HAVE_REDIS
	&engine_redis,
#endif
#if FW_HAVE_MYSQL
	&engine_mysql,
#endif
#if FW_HAVE_POSTGRES
	&engine_postgres,
#endif
};
static bool picked[FW_N(engines)], any_picked;

void store_url(const struct engine *e, char *out, size_t cap, const char *name)
{
	const struct server *server = server_of(e->name);

	if (server)
		server->url(out, cap, name);
	else if (!fw_snprintf(out, cap, "%s:%s/%s.db", e->name, set.folder, name))
		die("%s: the path is too long", set.folder);
}

static bool has_driver(const char *name)
{
	const char *is;

	for (size_t i = 0; (is = fw_store_driver_at(i)); i++) {
		if (strcmp(is, name) == 0)
			return true;
	}
	return false;
}

static void bench(const struct engine *e)
{
	const struct server *server = server_of(e->name);

	printf("\n## %s%s%s\n", e->name, e->classic ? "; the reference is " : "", e->classic ? e->classic : "");
	fflush(stdout);
	if (!has_driver(e->name)) {
		printf("# left out: this build has no such driver\n");
		short_n += any_picked;
		return;
	}
	if (server && !server->installed()) {
		printf("# left out: install the package %s\n", server->package);
		short_n += any_picked;
		return;
	}
	turn_load();
	if (server)
		server->start(set.folder);
	if (wanted("schedule"))
		bench_schedule(e);
	if (wanted("entries"))
		bench_entries(e);
	if (wanted("events"))
		bench_events(e);
	if (wanted("search"))
		bench_search(e);
	if (e->more)
		e->more(e);
	if (server)
		server->stop();
}

static bool pick(const char *name)
{
	for (size_t i = 0; i < FW_N(engines); i++) {
		if (strcmp(engines[i]->name, name) == 0)
			return any_picked = picked[i] = true;
	}
	return false;
}

static bool is_part(const char *name)
{
	return strcmp(name, "schedule") == 0 || strcmp(name, "entries") == 0 || strcmp(name, "events") == 0 ||
		strcmp(name, "search") == 0 || strcmp(name, "job") == 0;
}

static bool options(int argc, char **argv)
{
	static const struct option known[] = {{"store", 1, NULL, 's'}, {"only", 1, NULL, 'o'}, {"turns", 1, NULL, 't'},
		{"feeds", 1, NULL, 'f'}, {"feeds-large", 1, NULL, 'F'}, {"entries", 1, NULL, 'e'},
		{"entries-large", 1, NULL, 'E'}, {"runs", 1, NULL, 'r'}, {"seconds", 1, NULL, 'n'},
		{"minutes", 1, NULL, 'm'}, {NULL, 0, NULL, 0}};
	static const struct {
		int option;
		int64_t *value;
	} numbers[] = {{'f', &set.feeds}, {'F', &set.feeds_large}, {'e', &set.entries}, {'E', &set.entries_large},
		{'r', &set.runs}, {'m', &set.minutes}};
	const char *tiny = getenv("TINY");
	bool fine = true;
	int c;

	if (tiny && *tiny)
		set = (struct settings){.feeds = 10000, .entries = 2500, .runs = 1, .seconds = 0.1};
	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		for (size_t i = 0; i < FW_N(numbers); i++)
			fine = fine && (numbers[i].option != c || fw_str_int(fw_str(optarg), numbers[i].value));
		if (c == 'n')
			set.seconds = strtod(optarg, NULL);
		else if (c == 's')
			fine = pick(optarg) && fine;
		else if (c == 'o')
			fine = fine && is_part(set.only = optarg);
		else if (c == 't')
			set.turns = optarg;
		fine = fine && c != '?';
	}
	return fine && optind == argc && set.feeds >= 10000 && set.feeds_large >= 0 && set.entries >= 2500 &&
		set.entries_large >= 0 && set.runs >= 1 && set.seconds >= 0.1 && set.minutes >= 0;
}

/* ---- the parent ------------------------------------------------------------------------------ */

static pid_t child;

static void pass_on(int sig)
{
	kill(child, sig);
}

static int remove_one(const char *path, const struct stat *sb, int type, struct FTW *f)
{
	(void)sb;
	(void)type;
	(void)f;
	return remove(path);
}

static int measure(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		return 1;
	make_prose();
	for (size_t i = 0; i < FW_N(engines); i++) {
		if (!any_picked || picked[i])
			bench(engines[i]);
	}
	return short_n ? 1 : 0;
}

int main(int argc, char **argv)
{
	const char *tmp = getenv("TMPDIR");
	pid_t self = getpid();
	int status = 0;

	if (!options(argc, argv)) {
		fprintf(stderr,
			"usage: bench_store [--store sqlite|postgres|mysql|redis]..."
			" [--only schedule|entries|events|search|job]"
			" [--feeds N>=10000] [--feeds-large N] [--entries N>=2500] [--entries-large N] [--runs N]"
			" [--seconds N] [--minutes N] [--turns FOLDER]\n");
		return 2;
	}
	server_durable = true;
	if (!fw_snprintf(set.folder, sizeof(set.folder), "%s/feedwheel-bench-XXXXXX", tmp ? tmp : "/tmp") ||
		!mkdtemp(set.folder))
		die("%s: no folder can be created in it", tmp ? tmp : "/tmp");
	child = fork();
	if (child < 0)
		die("the measuring process cannot be started");
	if (child == 0)
		exit(measure(self));
	signal(SIGINT, pass_on);
	signal(SIGTERM, pass_on);
	while (waitpid(child, &status, 0) != child)
		;
	for (int i = 0; i < 100 && nftw(set.folder, remove_one, 8, FTW_DEPTH | FTW_PHYS); i++)
		usleep(100000); /* a server that is about to end still writes */
	if (WIFSIGNALED(status))
		die("ended by signal %d", WTERMSIG(status));
	return WEXITSTATUS(status);
}
