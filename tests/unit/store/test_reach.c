/* SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../suite.h"
#include "base/str.h"
#include "store/reach.h"

static struct fw_arena A;
static struct fw_store_reach r;
static char folder[] = "/tmp/fw-reach-XXXXXX";

static void setup(void)
{
	static const char *const SET[] = {"PGHOST", "PGPORT", "PGSERVICE", "PGSERVICEFILE", "PGPASSFILE", "PGSSLCERT",
		"PGSSLKEY", "PGSSLROOTCERT", "PGSSLCRL", "PGSSLCRLDIR", "MYSQL_TCP_PORT"};

	fw_arena_init(&A, 0);
	for (size_t i = 0; i < FW_N(SET); i++)
		unsetenv(SET[i]);
	setenv("HOME", "/home/me", 1);
}

static void teardown(void)
{
	fw_arena_finish(&A);
}

static bool reads(const char *path)
{
	for (size_t i = 0; i < r.file_n; i++) {
		if (fw_str_eq(fw_str(r.file[i]), fw_str(path)))
			return true;
	}
	return false;
}

static void one_port(const char *url, unsigned port)
{
	fw_store_reach(&A, url, &r);
	ck_assert_msg(r.port_n == 1 && r.port[0] == port && !r.any_port, "%s: %zu ports, the first %u", url, r.port_n,
		r.port[0]);
	ck_assert_ptr_null(r.folder);
}

START_TEST(ports)
{
	one_port("postgres://u@h/x", 5432);
	one_port("postgresql://u@h:5433/x", 5433);
	one_port("postgres://u@h/x?port=5434", 5434);
	one_port("mysql://u@h/x", 3306);
	one_port("mariadb://u@h:3307/x", 3307);
	setenv("PGPORT", "5435", 1);
	one_port("postgres://u@h/x", 5435);
	one_port("postgres://u@h:5433/x", 5433);
	setenv("MYSQL_TCP_PORT", "3308", 1);
	one_port("mysql://u@h/x", 3308);
	fw_store_reach(&A, "postgres:///x?host=a,b,c&port=6001,,6003", &r);
	ck_assert_uint_eq(r.port_n, 3);
	ck_assert(r.port[0] == 6001 && r.port[1] == 5432 && r.port[2] == 6003);
	fw_store_reach(&A, "memory:", &r);
	ck_assert(!r.port_n && !r.any_port && !r.folder && !r.file_n && !r.by_name);
}
END_TEST

START_TEST(ports_that_only_the_server_knows)
{
	static const char *const URL[] = {
		"redis://h", "rediss://h:7000/0", "postgres:///x?service=mine", "postgres:///x?servicefile=/etc/mine"};

	for (size_t i = 0; i < FW_N(URL); i++) {
		fw_store_reach(&A, URL[i], &r);
		ck_assert_msg(r.any_port, "%s", URL[i]);
	}
	setenv("PGSERVICE", "mine", 1);
	fw_store_reach(&A, "postgres://u@h/x", &r);
	ck_assert(r.any_port);
}
END_TEST

START_TEST(hosts)
{
	static const struct {
		const char *url;
		bool by_name, no_file;
	} CASE[] = {
		{"postgres://u@db.example/x", true, false},
		{"postgres://u@192.0.2.1/x", false, false},
		{"postgres://u@%2Frun%2Fpg/x", false, false},
		{"postgres:///x?host=/run/pg", false, false},
		{"postgres:///x?host=/run/pg,db.example", true, false},
		{"postgres:///x?host=@pg", false, true},
		{"mysql://u@localhost/x", true, false},
		{"redis://127.0.0.1", false, false},
	};

	for (size_t i = 0; i < FW_N(CASE); i++) {
		fw_store_reach(&A, CASE[i].url, &r);
		ck_assert_msg(r.by_name == CASE[i].by_name && r.no_file == CASE[i].no_file, "%s", CASE[i].url);
	}
	setenv("PGHOST", "db.example", 1);
	fw_store_reach(&A, "postgres:///x", &r);
	ck_assert(r.by_name);
}
END_TEST

START_TEST(files)
{
	char url[200];

	setenv("PGSSLKEY", "/keys/pg.key", 1);
	(void)fw_snprintf(url, sizeof(url),
		"postgres:///x?sslrootcert=%s/ca.pem&sslcert=%s/none.pem&application_name=ca.pem", folder, folder);
	fw_store_reach(&A, url, &r);
	(void)fw_snprintf(url, sizeof(url), "%s/ca.pem", folder);
	ck_assert(reads(url) && reads("/home/me/.pgpass") && reads("/home/me/.postgresql") && reads("/keys/pg.key") &&
		reads("/etc/passwd"));
	ck_assert_uint_eq(r.file_n, 5);
	fw_store_reach(&A, "mysql://u@h/x", &r);
	ck_assert_uint_eq(r.file_n, 0);
}
END_TEST

START_TEST(folder_of_a_file)
{
	char url[200], link[200];

	(void)fw_snprintf(url, sizeof(url), "sqlite:%s/s.db", folder);
	fw_store_reach(&A, url, &r);
	ck_assert_str_eq(r.folder, folder);
	fw_store_reach(&A, "sqlite:s.db", &r);
	ck_assert_str_eq(r.folder, ".");
	fw_store_reach(&A, "sqlite:/no-such-store.db", &r);
	ck_assert_str_eq(r.folder, "/");
	/* its journals are beside the file, not beside the link */
	(void)fw_snprintf(link, sizeof(link), "%s/sub", folder);
	ck_assert_int_eq(mkdir(link, 0700), 0);
	(void)fw_snprintf(link, sizeof(link), "%s/sub/l.db", folder);
	ck_assert_int_eq(symlink("../ca.pem", link), 0);
	(void)fw_snprintf(url, sizeof(url), "sqlite:%s", link);
	fw_store_reach(&A, url, &r);
	ck_assert_str_eq(r.folder, folder);
	ck_assert_int_eq(unlink(link), 0);
}
END_TEST

START_TEST(wrong)
{
	fw_store_reach(&A, "postgres://u@h:99999/x", &r);
	ck_assert(!r.port_n && !r.any_port && !r.file_n);
	fw_store_reach(&A, "nonsense", &r);
	ck_assert(!r.port_n && !r.folder);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit store reach");
	TCase *tc = tcase_create("reach");
	char path[200];
	FILE *f;
	int failed;

	if (!mkdtemp(folder))
		return 1;
	(void)fw_snprintf(path, sizeof(path), "%s/ca.pem", folder);
	f = fopen(path, "w");
	if (!f || fclose(f))
		return 1;
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, ports);
	tcase_add_test(tc, ports_that_only_the_server_knows);
	tcase_add_test(tc, hosts);
	tcase_add_test(tc, files);
	tcase_add_test(tc, folder_of_a_file);
	tcase_add_test(tc, wrong);
	suite_add_tcase(s, tc);
	failed = run_suite(s);
	unlink(path);
	(void)fw_snprintf(path, sizeof(path), "%s/sub", folder);
	rmdir(path);
	rmdir(folder);
	return failed;
}
