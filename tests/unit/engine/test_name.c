/* SPDX-License-Identifier: ISC */
/*
 * Which worker is dead for certain: only a process of this very PID namespace, and never a living
 * one.
 */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "engine/run/worker.h"
#include "../../suite.h"

START_TEST(live_workers_are_not_dead)
{
	char name[FW_WORKER_NAME_MAX], child_name[FW_WORKER_NAME_MAX] = "";
	int to_us[2];
	pid_t pid;

	fw_worker_name(name, sizeof(name), 3);
	ck_assert_msg(strstr(name, "/3/") && !fw_worker_is_dead(name), "%s", name);
	ck_assert_int_eq(pipe(to_us), 0);
	pid = fork();
	if (pid == 0) {
		fw_worker_name(name, sizeof(name), 0);
		_exit(write(to_us[1], name, sizeof(name)) != (ssize_t)sizeof(name) || pause());
	}
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(read(to_us[0], child_name, sizeof(child_name)), (ssize_t)sizeof(child_name));
	ck_assert_msg(!fw_worker_is_dead(child_name), "%s", child_name);
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitid(P_PID, (id_t)pid, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
	ck_assert_msg(fw_worker_is_dead(child_name), "a zombie: %s", child_name);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	ck_assert_msg(fw_worker_is_dead(child_name), "gone: %s", child_name);
	close(to_us[0]);
	close(to_us[1]);
}
END_TEST

/* Our own name with its last part changed. */
static const char *tagged(const char *tag)
{
	static char name[FW_WORKER_NAME_MAX];

	fw_worker_name(name, sizeof(name), 0);
	ck_assert(fw_str_copy(strrchr(name, '/') + 1, 64, fw_str(tag)));
	return name;
}

START_TEST(reused_pid_is_another_worker)
{
	char name[FW_WORKER_NAME_MAX], tag[64], *birth;

	fw_worker_name(name, sizeof(name), 0);
	ck_assert(fw_str_copy(tag, sizeof(tag), fw_str(strrchr(name, '/') + 1)));
	ck_assert(!fw_worker_is_dead(tagged(tag)));
	birth = strchr(tag, '-');
	ck_assert_ptr_nonnull(birth);
	birth[1] = birth[1] == '1' ? '2' : '1';
	ck_assert(fw_worker_is_dead(tagged(tag)));
	tag[0] = tag[0] == '1' ? '2' : '1'; /* the same pid in another container, or before a reboot */
	ck_assert(!fw_worker_is_dead(tagged(tag)));
}
END_TEST

START_TEST(unknown_workers_count_as_alive)
{
	static const char *const TAG[] = {"", "-", "0", "0-", "0000000000000000-1", "x-y"};
	static const char *const NAME[] = {"", "/", "host", "host/1/0", "host/99999999/0/5", "host/-1/0/5/-",
		"host/x/0/5/0-0", "host/99999999999999999999/0/5/0-0", "//////"};

	for (size_t i = 0; i < FW_N(TAG); i++)
		ck_assert_msg(!fw_worker_is_dead(tagged(TAG[i])), "%s", TAG[i]);
	for (size_t i = 0; i < FW_N(NAME); i++)
		ck_assert_msg(!fw_worker_is_dead(NAME[i]), "%s", NAME[i]);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit engine name");
	TCase *t = tcase_create("names");

	tcase_add_test(t, live_workers_are_not_dead);
	tcase_add_test(t, reused_pid_is_another_worker);
	tcase_add_test(t, unknown_workers_count_as_alive);
	suite_add_tcase(s, t);
	return run_suite(s);
}
