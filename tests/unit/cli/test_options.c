/* SPDX-License-Identifier: ISC */
/* Settings as options: a table lists which commands accept which; every pair is tried. */
#include <check.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/cli.h"
#include "../../suite.h"

static FILE *said; /* the output on stderr */
static int err_fd = -1;

static void setup(void)
{
	said = tmpfile();
	ck_assert_ptr_nonnull(said);
	err_fd = dup(STDERR_FILENO);
	ck_assert_int_ge(dup2(fileno(said), STDERR_FILENO), 0);
}

static void teardown(void)
{
	dup2(err_fd, STDERR_FILENO);
	close(err_fd);
	fclose(said);
}

/* Runs feedwheel COMMAND words...: the exit code, and its stderr in `said`. */
static int sorted(const char *command, const char *const words[], size_t n, char *text, size_t cap)
{
	char copy[12][80], *argv[12];
	struct cli c = {0};
	size_t argc = 0, got;
	int rc;

	ck_assert_uint_lt(n + 2, FW_N(argv));
	fw_str_copy(copy[argc++], sizeof(copy[0]), FW_STR("feedwheel"));
	fw_str_copy(copy[argc++], sizeof(copy[0]), fw_str(command));
	for (size_t i = 0; i < n; i++)
		fw_str_copy(copy[argc++], sizeof(copy[0]), fw_str(words[i]));
	for (size_t i = 0; i < argc; i++)
		argv[i] = copy[i];
	rewind(said);
	ck_assert_int_eq(ftruncate(fileno(said), 0), 0);
	fw_arena_init(&c.arena, 0);
	rc = cli_options(&c, (int)argc, argv);
	fw_buf_finish(&c.out);
	fw_arena_finish(&c.arena);
	rewind(said);
	got = fread(text, 1, cap - 1, said);
	text[got] = 0;
	return rc;
}

static bool is_known(struct fw_str name, const struct cli_command **k)
{
	for (const struct cli_command *const *at = cli_commands; *at; at++) {
		*k = *at;
		if (fw_str_eq(name, fw_str((*at)->name)))
			return true;
	}
	return false;
}

START_TEST(rows_name_commands)
{
	size_t n;
	const struct fw_setting *s = fw_config_settings(&n);

	for (size_t i = 0; i < n; i++) {
		struct fw_str rest = fw_str(s[i].commands);

		while (rest.p) {
			struct fw_str option, name = fw_str_split(fw_str_split(rest, ' ', &rest), '+', &option);
			const struct cli_command *k = NULL;
			const struct cli_option *o;

			ck_assert_msg(is_known(name, &k), "%s: '%.*s' is no command", s[i].name, FW_STR_ARG(name));
			for (o = k->option; option.p && o && o->name && !fw_str_eq(fw_str(o->name), option);)
				o++;
			ck_assert_msg(!option.p || (o && o->name), "%s: %s has no option --%.*s", s[i].name, k->name,
				FW_STR_ARG(option));
		}
	}
}
END_TEST

/* The command's arguments are missing: this is reported only if the option was accepted. */
START_TEST(every_command_with_every_setting)
{
	size_t n, refused = 0, taken = 0;
	const struct fw_setting *s = fw_config_settings(&n);

	for (const struct cli_command *const *at = cli_commands; *at; at++) {
		const struct cli_command *k = *at;

		for (size_t i = 0; i < n; i++) {
			char word[80], with[80], text[2000];
			struct fw_buf dashed = FW_BUF_INIT(0);
			struct fw_str option;
			const char *words[2] = {word, with};
			bool used = cli_uses_setting(k, &s[i], &option), global = strcmp(s[i].name, "store") == 0;
			int rc;

			cli_dashed(&dashed, s[i].name);
			(void)fw_snprintf(word, sizeof(word), "%.*s=x", FW_STR_ARG(fw_buf_str(&dashed)));
			(void)fw_snprintf(with, sizeof(with), "--%.*s", FW_STR_ARG(option));
			rc = sorted(k->name, words, 1, text, sizeof(text));
			if ((used && !option.p) || global) {
				taken++;
				ck_assert_msg(rc == 0 || (k->min_args && strstr(text, "missing argument")), "%s %s: %s",
					k->name, word, text);
			} else {
				refused++;
				ck_assert_int_eq(rc, CLI_USAGE);
				ck_assert_msg(
					strstr(text, " has no effect here") != NULL, "%s %s: %s", k->name, word, text);
				ck_assert_msg(
					strstr(text, "configuration file") != NULL && strstr(text, s[i].name) != NULL,
					"%s %s: %s", k->name, word, text);
			}
			if (used && option.p) {
				rc = sorted(k->name, words, 2, text, sizeof(text));
				ck_assert_msg(rc == 0 || strstr(text, "missing argument"), "%s %s %s: %s", k->name,
					word, with, text);
			}
			fw_buf_finish(&dashed);
		}
	}
	ck_assert_uint_gt(taken, 300);
	ck_assert_uint_gt(refused, 1500);
}
END_TEST

/* Independent of the table: options that users expect, or that would mislead them. */
static const struct {
	const char *command, *word;
	bool taken;
} KNOWN[] = {
	{"add", "--user-agent=x", false},
	{"add", "--proxy=x", false},
	{"list", "--host-concurrency=1", false},
	{"export", "--listen=x", false},
	{"fetch", "--user-agent=x", true},
	{"fetch", "--proxy=x", true},
	{"fetch", "--workers=1", false},
	{"run", "--listen=x", true},
	{"serve", "--listen=x", true},
	{"serve", "--workers=1", false},
	{"plan", "--order=x", true},
	{"run", "--order=x", false},
	{"copy", "--batch-bytes=1", true},
	{"parse", "--max-entries=1", true},
	{"parse", "--proxy=x", false},
	{"push", "--max-entries=1", true},
	{"list", "--log-level=x", true},
	{"list", "--async-commit", false},
	{"add", "--async-commit", true},
	{"doctor", "--tls-cert=x", true},
	{"help", "--log-level=x", false},
	{"show", "--page-cache-bytes=1", true},
};
START_TEST(known_pairs)
{
	char text[2000];
	int rc = sorted(KNOWN[_i].command, &KNOWN[_i].word, 1, text, sizeof(text));

	ck_assert_msg((rc == 0 || strstr(text, "missing argument")) == KNOWN[_i].taken, "%s %s: %s", KNOWN[_i].command,
		KNOWN[_i].word, text);
}
END_TEST

/* A synonym is not a command; the text that it leads to names a command, with that option. */
START_TEST(synonyms_lead_somewhere)
{
	for (const struct cli_synonym *s = cli_synonyms; s->word; s++) {
		struct fw_str rest = fw_str(s->meant);
		const struct cli_command *k;
		char text[2000];

		ck_assert_msg(!is_known(fw_str(s->word), &k), "'%s' is a command", s->word);
		while (rest.len) { /* "run --once' or 'fetch-now" */
			const char *more = fw_str_find(rest, FW_STR("' or '"));
			struct fw_str one = fw_str_sub(rest, 0, more ? (size_t)(more - rest.p) : rest.len), option;
			struct fw_str name = fw_str_split(one, ' ', &option);
			const struct cli_option *o;

			rest = fw_str_sub(rest, one.len + (more ? strlen("' or '") : 0), rest.len);
			ck_assert_msg(is_known(name, &k), "%s: '%.*s'", s->word, FW_STR_ARG(one));
			for (o = k->option; option.len > 2 && option.p[0] == '-' && o && o->name &&
				!fw_str_eq(fw_str_sub(option, 2, option.len), fw_str(o->name));)
				o++;
			ck_assert_msg(!option.len || fw_str_eq(one, FW_STR("help settings")) || (o && o->name),
				"%s: '%.*s'", s->word, FW_STR_ARG(one));
		}
		ck_assert_int_eq(sorted(s->word, NULL, 0, text, sizeof(text)), CLI_USAGE);
		ck_assert_msg(strstr(text, s->meant) != NULL, "%s: %s", s->word, text);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit cli options");
	TCase *t = tcase_create("options");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, rows_name_commands);
	tcase_add_test(t, every_command_with_every_setting);
	tcase_add_test(t, synonyms_lead_somewhere);
	tcase_add_loop_test(t, known_pairs, 0, FW_N(KNOWN));
	suite_add_tcase(s, t);
	return run_suite(s);
}
