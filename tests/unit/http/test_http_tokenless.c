/* SPDX-License-Identifier: ISC */
/* Which settings close a server to everybody without a token. */
#include <check.h>

#include "base/str.h"
#include "feedwheel/engine.h"
#include "feedwheel/token.h"
#include "../../suite.h"

/* Where it listens, and what else closes it; a token before all. */
START_TEST(by_settings)
{
	static const struct { const char *listen; bool local; } CASE[] = {
		{NULL, true}, {"", true}, {"unix:/run/x.sock", true}, {"127.0.0.1:8080", true}, {"127.0.0.5:0", true}, {"localhost:80", true},
		{"LOCALHOST:80", true}, {"[::1]:8080", true}, {"::1:8080", true}, {"[::ffff:127.0.0.1]:80", true},
		{":8080", false}, {"0.0.0.0:8080", false}, {"[::]:8080", false}, {":::8080", false}, {"192.0.2.1:80", false}, {"[2001:db8::1]:80", false},
		{"127.0.0.1.evil.example:80", false}, {"localhost.example:80", false}, {"machine:80", false}, {"127.evil:80", false}, {"8080", false},
		{"127.0.0.1", false},
	};
	struct fw_config c = {0};
	char words[FW_TOKENLESS_WORDS_MAX];

	for (size_t i = 0; i < FW_N(CASE); i++) {
		ck_assert_msg(fw_listens_locally(CASE[i].listen) == CASE[i].local, "%s", CASE[i].listen);
		c.listen = (char *)(uintptr_t)CASE[i].listen;
		ck_assert_int_eq(fw_tokenless(&c, false), CASE[i].local ? FW_TOKENLESS_OPEN : FW_TOKENLESS_LISTEN);
		ck_assert_int_eq(fw_tokenless(&c, true), FW_TOKENLESS_TOKENS);
	}
	c.listen = NULL;
	c.websub_url = (char *)(uintptr_t)"https://feeds.example.org/";
	ck_assert_int_eq(fw_tokenless(&c, false), FW_TOKENLESS_WEBSUB);
	c.trusted_proxies = (char *)(uintptr_t)"unix";
	ck_assert_int_eq(fw_tokenless(&c, false), FW_TOKENLESS_PROXIES);
	ck_assert_int_eq(fw_tokenless(&c, true), FW_TOKENLESS_TOKENS);
	for (enum fw_tokenless t = FW_TOKENLESS_OPEN; t <= FW_TOKENLESS_WEBSUB; t++) {
		fw_tokenless_words(t, words);
		ck_assert_msg(strlen(words) < FW_TOKENLESS_WORDS_MAX - 1, "%s", words); /* whole */
		ck_assert_ptr_nonnull(strstr(words, fw_tokenless_why(t)));
		ck_assert_int_eq(strstr(words, "nobody may") == NULL, t == FW_TOKENLESS_OPEN);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("tokenless");
	TCase *t = tcase_create("tokenless");

	tcase_add_test(t, by_settings);
	suite_add_tcase(s, t);
	return run_suite(s);
}
