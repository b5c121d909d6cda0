/* SPDX-License-Identifier: ISC */
/* The settings table, the configuration file, refusals and their messages, suggestions. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/suggest.h"
#include "base/str.h"
#include "engine/config_text.h"
#include "engine/settings.h"
#include "feedwheel/engine.h"
#include "../../suite.h"

static struct fw_config *c;
static struct fw_err err;
static char path[40];
static int fd = -1;

static void setup(void)
{
	ck_assert_int_eq(fw_config_create(&c, &err), 0);
	fw_str_copy(path, sizeof(path), FW_STR("/tmp/fw-test-config-XXXXXX"));
	fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
}

static void teardown(void)
{
	fw_config_destroy(c);
	close(fd);
	unlink(path);
}

static void holds(const char *name, const char *text)
{
	char *value = fw_config_get(c, name);

	ck_assert_ptr_nonnull(value);
	ck_assert_str_eq(value, text);
	free(value);
}

static int load(const char *text)
{
	ck_assert_int_eq(ftruncate(fd, 0), 0);
	ck_assert_int_eq(pwrite(fd, text, strlen(text), 0), (ssize_t)strlen(text));
	return fw_config_load(c, path, &err);
}

static void words(const char *part)
{
	ck_assert_msg(strstr(err.text, part), "'%s' is not in '%s'", part, err.text);
}

START_TEST(table_is_sound)
{
	size_t n;
	const struct fw_setting *s = fw_config_settings(&n);

	for (size_t i = 0; i < n; i++) {
		char *value = fw_config_get(c, s[i].name);

		ck_assert_ptr_eq(fw_config_find(s[i].name), &s[i]);
		ck_assert_ptr_nonnull(value);
		ck_assert_int_eq(fw_config_set(c, s[i].name, value, "test", &err), 0);
		ck_assert_msg(
			fw_str_ends(fw_str(s[i].text), FW_STR(".")), "%s: a sentence ends in a full stop", s[i].name);
		/* the name of each duration and size ends with its unit, and no other name does */
		ck_assert_int_eq(s[i].type == FW_TYPE_DURATION, fw_str_ends(fw_str(s[i].name), FW_STR("_ms")));
		ck_assert_int_eq(s[i].type == FW_TYPE_SIZE, (strstr(s[i].name, "_bytes") != NULL));
		for (size_t k = 0; k < i; k++) {
			ck_assert_str_ne(s[i].name, s[k].name);
			ck_assert_uint_ne(s[i].offset, s[k].offset);
		}
		free(value);
	}
	ck_assert_int_eq(fw_config_check(c, &err), 0);
}
END_TEST

START_TEST(defaults)
{
	ck_assert_int_eq(c->workers, 0);
	ck_assert_int_eq(c->interval_ms, FW_HOUR_MS);
	ck_assert_int_eq(c->max_body_bytes, 16 << 20);
	ck_assert(c->http2);
	ck_assert(!c->async_commit);
	ck_assert_ptr_null(c->proxy);
	ck_assert_ptr_null(c->file);
	holds("interval_ms", "1h");
	holds("max_body_bytes", "16MiB");
	holds("max_header_bytes", "100KiB");
	holds("batch_ms", "500ms");
	holds("entries_retention_ms", "0");
	holds("http2", "yes");
	holds("proxy", "");
	ck_assert_ptr_null(fw_config_get(c, "nonsense"));
}
END_TEST

static const struct {
	const char *name, *value, *reads;
} GOOD[] = {
	{"workers", "4", "4"},
	{"host_concurrency", " 7 ", "7"},
	{"host-gap-ms", "2s", "2s"},
	{"host_gap_ms", "1500", "1500ms"},
	{"interval_ms", "2h", "2h"},
	{"max_body_bytes", "64k", "64KiB"},
	{"max_body_bytes", "1 MiB", "1MiB"},
	{"max_body_bytes", "5000", "5000"},
	{"http2", "off", "no"},
	{"http2", "TRUE", "yes"},
	{"log_level", "debug", "debug"},
	{"proxy", "http://10.0.0.1:3128", "http://10.0.0.1:3128"},
	{"proxy", "", ""},
};
START_TEST(good_values)
{
	ck_assert_int_eq(fw_config_set(c, GOOD[_i].name, GOOD[_i].value, "test", &err), 0);
	holds(GOOD[_i].name, GOOD[_i].reads);
}
END_TEST

static const struct {
	const char *name, *value, *words;
} BAD[] = {
	{"workers", "-1", "0 to 1024"},
	{"workers", "2x", "workers = '2x' is not allowed"},
	{"workers", "", "0 to 1024"},
	{"interval_ms", "soon", "30s, 15m, 2h"},
	{"interval_ms", "10", "1s to 30d"},
	{"interval_ms", "999999999999999999d", "1s to 30d"},
	{"max_body_bytes", "10 potatoes", "64k, 16MiB"},
	{"max_body_bytes", "99999999999g", "1KiB to 1GiB"},
	{"http2", "maybe", "yes or no"},
	{"log_level", "loud", "one of: error warn info debug"},
	{"log_level", "", "one of"},
	{"log_level", "error warn", "one of"},
	{"wrokers", "2", "did you mean 'workers'?"},
	{"user-agnet", "x", "did you mean 'user_agent'?"},
	{"quux", "1", "feedwheel help settings"},
};
/* Handed to a new process: every value arrives, and a truncated file is refused. */
START_TEST(handed)
{
	struct fw_buf b = FW_BUF_INIT(0);
	struct fw_config *other;
	size_t n;
	const struct fw_setting *all = fw_config_settings(&n);

	ck_assert_int_eq(fw_config_set(c, "store", "postgres://u:p%40ss@h/db?a=b # c", "test", &err), 0);
	ck_assert_int_eq(fw_config_set(c, "interval_ms", "61001ms", "test", &err), 0);
	ck_assert_int_eq(fw_config_set(c, "max_body_bytes", "1234567", "test", &err), 0);
	ck_assert_int_eq(fw_config_set(c, "http2", "no", "test", &err), 0);
	ck_assert_int_eq(fw_config_set(c, "user_agent", "a = \"b\" # c", "test", &err), 0);
	config_write(c, &b);
	ck_assert_int_eq(b.rc, 0);
	ck_assert_int_eq(config_read(fw_buf_str(&b), &other, &err), 0);
	for (size_t i = 0; i < n; i++) {
		char *was = fw_config_get(c, all[i].name), *is = fw_config_get(other, all[i].name);

		ck_assert_msg(was && is && strcmp(was, is) == 0, "%s: %s, not %s", all[i].name, is, was);
		free(was);
		free(is);
	}
	ck_assert_str_eq(other->store, c->store);
	ck_assert_int_eq(other->interval_ms, 61001);
	fw_config_destroy(other);
	ck_assert_int_eq(config_read(fw_str_sub(fw_buf_str(&b), 0, b.len - 1), &other, &err), FW_EINVAL);
	ck_assert_ptr_null(other);
	fw_buf_finish(&b);
}
END_TEST

START_TEST(bad_values)
{
	ck_assert_int_eq(fw_config_set(c, BAD[_i].name, BAD[_i].value, "command line", &err), FW_EINVAL);
	words(BAD[_i].words);
	words("command line: ");
	ck_assert_int_eq(fw_config_check(c, NULL), 0); /* nothing has changed */
}
END_TEST

START_TEST(file_is_read)
{
	ck_assert_int_eq(load("# all of it\n\n  workers=3\r\nstore = sqlite:/tmp/a b.db\t# mine\ninterval_ms = 2h\n"
			      "user_agent = a#b\nhttp2 = no"),
		0);
	ck_assert_int_eq(c->workers, 3);
	ck_assert_str_eq(c->store, "sqlite:/tmp/a b.db");
	ck_assert_int_eq(c->interval_ms, 2 * FW_HOUR_MS);
	ck_assert_str_eq(c->user_agent, "a#b");
	ck_assert(!c->http2);
	ck_assert_str_eq(c->file, path);
	ck_assert_int_eq(load(""), 0);
}
END_TEST

START_TEST(file_errors_name_the_line)
{
	ck_assert_int_eq(load("workers = 2\n\nworkesr = 3\n"), FW_EINVAL);
	words(":3: unknown setting 'workesr': did you mean 'workers'?");
	ck_assert_ptr_null(c->file);
	ck_assert_int_eq(load("machine-id = 3\n"), FW_EINVAL); /* of an older version */
	words(":1: there is no machine_id any more: the store now gives each server ids that no other has: remove it");
	ck_assert_int_eq(load("workers\n"), FW_EINVAL);
	words(":1: 'workers' does not have the form: name = value");
	ck_assert_int_eq(load("#\nhttp2 = perhaps\n"), FW_EINVAL);
	words(":2: http2 = 'perhaps' is not allowed: yes or no");
	ck_assert_int_eq(ftruncate(fd, 10), 0); /* NUL bytes after the text */
	ck_assert_int_eq(ftruncate(fd, 100), 0);
	ck_assert_int_eq(fw_config_load(c, path, &err), FW_EINVAL);
	words("a NUL byte");
	ck_assert_int_eq(ftruncate(fd, 2 << 20), 0);
	ck_assert_int_eq(fw_config_load(c, path, &err), FW_ELIMIT);
	words("larger than 1 MiB");
	ck_assert_int_eq(fw_config_load(c, "/tmp", &err), FW_EINVAL);
	words("/tmp: Is a directory");
	ck_assert_int_eq(fw_config_load(c, "/nonexistent/x.conf", &err), FW_ENOTFOUND);
	words("/nonexistent/x.conf: No such file");
}
END_TEST

/* A line, and the user_agent that it sets. */
static const struct {
	const char *line, *value;
} QUOTED[] = {
	{"user_agent = \"a b\"", "a b"},
	{"user_agent=\"a # b\"  # not this", "a # b"},
	{"user_agent = ' a \"b\" \\\\ '", " a \"b\" \\\\ "},
	{"user_agent = \" a \"\r", " a "},
	{"user_agent = \"say \\\"hi\\\" \\\\ \\n\"", "say \"hi\" \\ \\n"},
	{"user_agent = \"it's\"", "it's"},
	{"user_agent = a \"b\" c", "a \"b\" c"},
	{"user_agent = it's", "it's"},
	{"user_agent = \"=\"", "="},
	{"user_agent =#a", "#a"},
	{"user_agent = \"\\\\\"", "\\"},
};
START_TEST(quotes)
{
	ck_assert_int_eq(load(QUOTED[_i].line), 0);
	ck_assert_str_eq(c->user_agent, QUOTED[_i].value);
	ck_assert_int_eq(load("user_agent = \"\""), 0);
	ck_assert_ptr_null(c->user_agent);
}
END_TEST

static const struct {
	const char *line, *words;
} MISQUOTED[] = {
	{"user_agent = \"a", ":1: user_agent: the opening \" of the value is not closed"},
	{"user_agent = \"a\\\"", ":1: user_agent: the opening \" of the value is not closed"},
	{"user_agent = \"a # b", "is not closed"},
	{"user_agent = 'it", "the opening ' of the value is not closed"},
	{"user_agent = \"", "is not closed"},
	{"user_agent = \"a\" b", ":1: user_agent: 'b' follows the closing \" (inside the quotes write \\\")"},
	{"user_agent = 'it's'", "'s'' follows the closing '"},
	{"user_agent = \"a\"#b", "'#b' follows"},
	{"workers = \"two\"", "workers = 'two' is not allowed"},
	{"wrokers = \"", "did you mean 'workers'?"},
	{"# a = \"b\nworkers # = 2", ":2: 'workers' does not have the form"},
};
START_TEST(misquoted)
{
	ck_assert_int_eq(load(MISQUOTED[_i].line), FW_EINVAL);
	words(MISQUOTED[_i].words);
}
END_TEST

static int store_file(const char *text, size_t len, mode_t mode)
{
	ck_assert_int_eq(ftruncate(fd, 0), 0);
	ck_assert_int_eq(pwrite(fd, text, len, 0), (ssize_t)len);
	ck_assert_int_eq(fchmod(fd, mode), 0);
	return fw_config_set(c, "store_file", path, "test", &err);
}

START_TEST(store_of_a_file)
{
	char was[200], many[5000];

	(void)fw_snprintf(was, sizeof(was), "%s", c->store);
	memset(many, 'x', sizeof(many));
	ck_assert_int_eq(store_file("postgres://u:p@h/d\n", 19, 0644), FW_EINVAL);
	words("other users may read it (mode 0644)");
	words("chmod 600");
	ck_assert_int_eq(store_file("\npostgres://u:p@h/d\n", 20, 0600), FW_EINVAL);
	words("the first line is empty");
	ck_assert_int_eq(store_file("a\0b", 3, 0600), FW_EINVAL);
	words("the first line is not a URL");
	ck_assert_int_eq(store_file(many, sizeof(many), 0600), FW_EINVAL);
	words("at most 4095 bytes");
	ck_assert_int_eq(fw_config_set(c, "store_file", "/nonexistent/store", "test", &err), FW_EINVAL);
	words("store_file: /nonexistent/store: No such file");
	ck_assert_int_eq(fw_config_set(c, "store_file", "/dev/null", "test", &err), FW_EINVAL);
	words("/dev/null is not a regular file");
	ck_assert_str_eq(c->store, was);
	ck_assert_int_eq(store_file(" postgres://u:p@h/d \r\nmore\n", 27, 0600), 0);
	ck_assert_str_eq(c->store, "postgres://u:p@h/d");
	ck_assert_str_eq(c->store_file, path);
	/* the later value counts */
	ck_assert_int_eq(fw_config_set(c, "store", "memory:", "test", &err), 0);
	ck_assert_str_eq(c->store, "memory:");
	ck_assert_ptr_null(c->store_file);
	ck_assert_int_eq(store_file("sqlite:x", 8, 0400), 0);
	ck_assert_str_eq(c->store, "sqlite:x");
	ck_assert_int_eq(store_file("sqlite:y", 8, 0440),
		geteuid() == 0 ? 0 : FW_EINVAL); /* root may share it with a service's group */
	ck_assert_int_eq(fw_config_set(c, "store_file", "", "test", &err), 0);
	ck_assert_ptr_null(c->store_file);
}
END_TEST

/* Words that are not a URL but look like an SQLite file. */
static const struct {
	const char *word, *store;
} FILES[] = {
	{"d.db", "sqlite:d.db"},
	{"/a b/feeds.sqlite", "sqlite:/a b/feeds.sqlite"},
	{"./x.sqlite3", "sqlite:./x.sqlite3"},
	{"d.txt", "d.txt"},
	{"feeds", "feeds"},
	{"mongo:x.db", "mongo:x.db"},
	{"sqlite:d.db", "sqlite:d.db"},
};
START_TEST(files)
{
	ck_assert_int_eq(fw_config_set(c, "store", FILES[_i].word, "test", &err), 0);
	ck_assert_str_eq(c->store, FILES[_i].store);
	ck_assert_int_eq(store_file(FILES[_i].word, strlen(FILES[_i].word), 0600), 0);
	ck_assert_str_eq(c->store, FILES[_i].store);
}
END_TEST

START_TEST(usual_places)
{
	char dir[] = "/tmp/fw-test-xdg-XXXXXX", file[64];
	struct fw_config *d;
	FILE *f;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	(void)fw_snprintf(file, sizeof(file), "%s/feedwheel.conf", dir);
	f = fopen(file, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_gt(fputs("workers = 9\n", f), 0);
	ck_assert_int_eq(fclose(f), 0);
	setenv("XDG_CONFIG_HOME", dir, 1);
	setenv("XDG_DATA_HOME", dir, 1);
	ck_assert_int_eq(fw_config_create(&d, &err), 0);
	ck_assert_int_eq(fw_config_load(d, NULL, &err), 0);
	ck_assert_int_eq(d->workers, 9);
	ck_assert_str_eq(d->file, file);
	ck_assert(fw_str_starts(fw_str(d->store), FW_STR("sqlite:/tmp/fw-test-xdg-")));
	fw_config_destroy(d);
	unlink(file);
	rmdir(dir);
	unsetenv("XDG_DATA_HOME");
	unsetenv("HOME");
	ck_assert_int_eq(fw_config_create(&d, &err), 0);
	ck_assert_ptr_null(d->store);
	ck_assert_int_eq(fw_config_check(d, &err), FW_EINVAL);
	words("--store");
	fw_config_destroy(d);
}
END_TEST

static const struct {
	const char *name, *value, *words;
} CROSS[] = {
	{"interval_min_ms", "2h", "interval_min_ms (2 h) is larger than interval_ms (1 h)"},
	{"interval_max_ms", "30m", "interval_ms (1 h) is larger than interval_max_ms"},
	{"connect_timeout_ms", "2m", "connect_timeout_ms (2 min) is larger than total_timeout_ms"},
	/* or are wrong as a whole */
	{"feeds_hub_url", "https://hub.example.org:99999/", "not the URL of a hub"},
	{"serve_cors_origin", "https://example.org:99999", "not an origin: write it like https://example.org"},
	{"serve_cors_origin", "https://example.org/", "without a path"},
	{"serve_cors_origin", "example.org", "not an origin"},
	{"serve_host_names", "feeds.lan:8080", "without a port"},
};
START_TEST(settings_that_contradict)
{
	ck_assert_int_eq(fw_config_set(c, CROSS[_i].name, CROSS[_i].value, "test", &err), 0);
	ck_assert_int_eq(fw_config_check(c, &err), FW_EINVAL);
	words(CROSS[_i].words);
}
END_TEST

START_TEST(a_lease_is_short) /* though a visit may take longer */
{
	ck_assert_int_eq(fw_config_set(c, "lease_ms", "2999", "test", &err), FW_EINVAL);
	words("lease_ms = '2999' is not allowed: 3s to 10m");
	ck_assert_int_eq(fw_config_set(c, "lease_ms", "11m", "test", &err), FW_EINVAL);
	ck_assert_int_eq(fw_config_set(c, "lease_ms", "3s", "test", &err), 0);
	ck_assert_int_eq(fw_config_set(c, "total_timeout_ms", "1h", "test", &err), 0);
	ck_assert_int_eq(fw_config_check(c, &err), 0);
}
END_TEST

START_TEST(descriptors) /* of n transfers allow n transfers, and one less allows fewer */
{
	for (int64_t n = 1; n <= 20000; n++) {
		ck_assert_int_eq(fw_settings_transfers(fw_settings_files(n)), n);
		ck_assert_int_eq(fw_settings_transfers(fw_settings_files(n) - 1), FW_MAX(n - 1, 1));
	}
	ck_assert_int_eq(fw_settings_transfers(0), 1);
}
END_TEST

START_TEST(distances)
{
	ck_assert_uint_eq(fw_edit_distance(FW_STR("list"), FW_STR("list")), 0);
	ck_assert_uint_eq(fw_edit_distance(FW_STR("lsit"), FW_STR("list")), 1);
	ck_assert_uint_eq(fw_edit_distance(FW_STR("host-concurrency"), FW_STR("HOST_CONCURRENCY")), 0);
	ck_assert_uint_eq(fw_edit_distance(FW_STR(""), FW_STR("abc")), 3);
	ck_assert_uint_eq(fw_edit_distance(FW_STR("kitten"), FW_STR("sitting")), 3);
	ck_assert_uint_eq(
		fw_edit_distance(
			fw_str("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), FW_STR("a")),
		SIZE_MAX);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit cli config");
	TCase *t = tcase_create("config");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, table_is_sound);
	tcase_add_test(t, defaults);
	tcase_add_loop_test(t, good_values, 0, FW_N(GOOD));
	tcase_add_test(t, handed);
	tcase_add_loop_test(t, bad_values, 0, FW_N(BAD));
	tcase_add_test(t, file_is_read);
	tcase_add_test(t, file_errors_name_the_line);
	tcase_add_loop_test(t, quotes, 0, FW_N(QUOTED));
	tcase_add_loop_test(t, misquoted, 0, FW_N(MISQUOTED));
	tcase_add_test(t, store_of_a_file);
	tcase_add_loop_test(t, files, 0, FW_N(FILES));
	tcase_add_test(t, usual_places);
	tcase_add_loop_test(t, settings_that_contradict, 0, FW_N(CROSS));
	tcase_add_test(t, a_lease_is_short);
	tcase_add_test(t, descriptors);
	tcase_add_test(t, distances);
	suite_add_tcase(s, t);
	return run_suite(s);
}
