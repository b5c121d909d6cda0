/* SPDX-License-Identifier: ISC */
/*
 * A new store on each driver that several processes can use: they open it at once, and some are
 * killed while they do. REL-15.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drv.h"

#define OPENERS 10
#define CREATIONS 24 /* killed creators, each a little later than the one before */

struct gate {
	_Atomic int ready, go;
};

static struct gate *gate;

static void setup(void)
{
	gate = mmap(NULL, sizeof(*gate), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(gate, MAP_FAILED);
}

static void teardown(void)
{
	munmap(gate, sizeof(*gate));
}

/* A child process has no Check. */
_Noreturn static void opener(const char *url, int i)
{
	struct fw_store_config c = {.url = url, .flags = FW_STORE_CREATE};
	struct fw_feed_new n = {0};
	struct fw_store *st;
	struct fw_err err;
	char feed[60];

	atomic_fetch_add(&gate->ready, 1);
	while (!atomic_load(&gate->go))
		usleep(100);
	if (!fw_snprintf(feed, sizeof(feed), "https://h%d.example/", i))
		_exit(7);
	n.url = fw_str(feed);
	if (fw_store_open(&c, &st, &err) || fw_store_subscribe(st, &n, 1, &err)) {
		fprintf(stderr, "# %s\n", err.text);
		_exit(8);
	}
	fw_store_close(st);
	_exit(0);
}

/* All openers wait for the gate. */
static void openers_start(const char *url, pid_t *pid, int n)
{
	atomic_store(&gate->ready, 0);
	atomic_store(&gate->go, 0);
	for (int i = 0; i < n; i++) {
		pid[i] = fork();
		ck_assert_int_ge(pid[i], 0);
		if (!pid[i])
			opener(url, i);
	}
	while (atomic_load(&gate->ready) < n)
		usleep(100);
}

START_TEST(ten_processes_open_a_fresh_store)
{
	for (int round = 0; round < 3 && under_test[_i].shared; round++) {
		const char *url = drv_url(_i);
		struct fw_store *st;
		pid_t pid[OPENERS];

		openers_start(url, pid, OPENERS);
		atomic_store(&gate->go, 1);
		for (int i = 0; i < OPENERS; i++) {
			int status;

			ck_assert_int_eq(waitpid(pid[i], &status, 0), pid[i]);
			ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "process %d ended with status %x",
				i, (unsigned)status);
		}
		st = store_open(url, 0);
		ck_assert_int_eq(stats(st).feed_n, OPENERS);
		check_clean(st);
		fw_store_close(st);
	}
}
END_TEST

/* Afterwards the schema is complete or absent: the next open can go on. */
START_TEST(creation_is_killed)
{
	int made = 0;

	for (int round = 0; round < CREATIONS && under_test[_i].shared; round++) {
		const char *url = drv_url(_i);
		struct fw_store *st;
		pid_t pid;

		openers_start(url, &pid, 1);
		atomic_store(&gate->go, 1);
		usleep((useconds_t)(round * round * 200));
		kill(pid, SIGKILL);
		ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
		st = store_open(url, FW_STORE_CREATE);
		ck_assert_int_le(stats(st).feed_n, 1);
		made += (int)stats(st).feed_n;
		check_clean(st);
		fw_store_close(st);
	}
	printf("# %s: killed %d times, %d were done before\n", under_test[_i].name, CREATIONS, made);
}
END_TEST

int main(void)
{
	TCase *t = cases("every driver", setup, teardown, 120);
	const TTest *const every[] = {ten_processes_open_a_fresh_store, creation_is_killed};

	stores_begin();
	cases_add(t, every, FW_N(every), under_test_n);
	return cases_run("store first_open", t);
}
