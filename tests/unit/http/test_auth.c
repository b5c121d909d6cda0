/* SPDX-License-Identifier: ISC */
/* The credentials of a request, and what they permit. */
#include <check.h>
#include <openssl/crypto.h>
#include <stdlib.h>

#include "http/server/http.h"
#include "../../suite.h"

#define NOW INT64_C(1763730000000)

static size_t compared_n;

/* The linker (--wrap) puts it in place of the library's. */
int __real_CRYPTO_memcmp(const void *a, const void *b, size_t len);
int __wrap_CRYPTO_memcmp(const void *a, const void *b, size_t len);
int __wrap_CRYPTO_memcmp(const void *a, const void *b, size_t len)
{
	ck_assert_uint_eq(len, FW_TOKEN_HASH_BYTES);
	compared_n++;
	return __real_CRYPTO_memcmp(a, b, len);
}

START_TEST(presented)
{
	static const struct {
		const char *header, *token;
	} CASE[] = {
		{"Bearer abc", "abc"},
		{"bearer abc", "abc"},
		{"BEARER abc", "abc"},
		{"Bearer   abc  ", "abc"},
		{"  Bearer abc", "abc"},
		{"Bearer abc def", "abc def"},
		{"Bearer", NULL},
		{"Bearer ", NULL},
		{"", NULL},
		{" ", NULL},
		{"abc", NULL},
		{"Bearerabc", NULL},
		{"Digest abc", NULL},
		{"Bearer\tabc", NULL},
		{"Basic dXNlcjpwYXNz", "pass"},
		{"basic dXNlcjpwYXNz", "pass"},
		{"Basic dTpwYXNz", "pass"},
		{"Basic OnBhc3M=", "pass"},
		{"Basic dTpwYXM=", "pas"},
		{"Basic dTpwYQ==", "pa"},
		{"Basic YTpiOmM=", "b:c"},
		{"Basic dTo=", ""},
		{"Basic cGFzcw==", NULL},
		{"Basic dXNlcjpwYXN", NULL},
		{"Basic ****", NULL},
		{"Basic ====", NULL},
		{"Basic", NULL},
		{"Basic ", NULL},
		{"Basic dXNl=cjpw", NULL},
	};
	char buffer[AUTH_PRESENTED_MAX], large[2 * AUTH_PRESENTED_MAX];

	for (size_t i = 0; i < FW_N(CASE); i++) {
		struct fw_str got = auth_presented(fw_str(CASE[i].header), buffer);

		ck_assert_msg(!got.p == !CASE[i].token && fw_str_eq(got, fw_str(CASE[i].token)), "%s: %.*s",
			CASE[i].header, FW_STR_ARG(got));
	}
	for (size_t n = AUTH_PRESENTED_MAX - 8; n < sizeof(large) - 8; n++) { /* at the end of the buffer */
		struct fw_str got;

		memset(large, 'x', sizeof(large));
		memcpy(large, "Bearer ", 7);
		got = auth_presented((struct fw_str){large, n}, buffer);
		ck_assert_uint_eq(got.len, n - 7 <= AUTH_PRESENTED_MAX ? n - 7 : 0);
		memcpy(large, "Basic OnA6", 10);
		got = auth_presented((struct fw_str){large, n}, buffer);
		ck_assert_uint_eq(
			got.len, (n - 6) % 4 == 0 && (n - 6) / 4 * 3 <= AUTH_PRESENTED_MAX ? (n - 6) / 4 * 3 - 1 : 0);
	}
}
END_TEST

#define TOKENS 7
static const char *const TEXT[TOKENS] = {"one", "two", "three", "four", "five", "six", "seven"};

static struct auth_tokens *tokens_make(void)
{
	struct auth_tokens *t = calloc(1, sizeof(*t) + TOKENS * sizeof(t->at[0]));

	ck_assert_ptr_nonnull(t);
	for (size_t i = 0; i < TOKENS; i++) {
		t->at[i].scopes = FW_SCOPE_PUSH;
		t->at[i].until_ms = FW_NO_DATE;
		ck_assert(fw_token_hash(fw_str(TEXT[i]), t->at[i].hash));
	}
	t->n = TOKENS;
	return t;
}

static uint64_t here = 1;
static bool waits;
static struct auth_pass pass;

/* The verdict, after a comparison with all tokens. */
static enum auth_verdict auth_check(struct auth_tokens *t, unsigned scope, const char *token, int64_t now_ms)
{
	enum auth_verdict v;

	compared_n = 0;
	v = auth_check_token(t,
		&(struct auth_request){.scope = scope, .presented = fw_str(token), .network = here, .limited = waits},
		now_ms, &pass);
	ck_assert_uint_eq(compared_n, token ? t->n : 0);
	return v;
}

START_TEST(verdicts) /* API-02 */
{
	struct auth_tokens *t = tokens_make();
	char name[20];

	for (size_t i = 0; i < TOKENS; i++) {
		ck_assert_int_eq(auth_check(t, FW_SCOPE_PUSH, TEXT[i], NOW), AUTH_OK);
		ck_assert_int_eq(auth_check(t, FW_SCOPE_READ, TEXT[i], NOW), AUTH_SCOPE);
		ck_assert(fw_snprintf(name, sizeof(name), "%s ", TEXT[i]));
		ck_assert_int_eq(auth_check(t, FW_SCOPE_PUSH, name, NOW), AUTH_WRONG);
	}
	ck_assert_int_eq(atomic_load(&t->at[1].used_ms), NOW);
	ck_assert_int_eq(auth_check(t, FW_SCOPE_PUSH, "two", NOW + AUTH_USED_MS - 1), AUTH_OK);
	ck_assert_int_eq(atomic_load(&t->at[1].used_ms), NOW); /* not written at each request */
	ck_assert_int_eq(auth_check(t, FW_SCOPE_READ, "two", NOW + AUTH_USED_MS), AUTH_SCOPE);
	ck_assert_int_eq(atomic_load(&t->at[1].used_ms), NOW);
	ck_assert_int_eq(auth_check(t, FW_SCOPE_PUSH, "two", NOW + AUTH_USED_MS), AUTH_OK);
	ck_assert_int_eq(atomic_load(&t->at[1].used_ms), NOW + AUTH_USED_MS);
	ck_assert_int_eq(auth_check(t, FW_SCOPE_PUSH, NULL, NOW), AUTH_MISSING);
	ck_assert_int_eq(auth_check(t, FW_SCOPE_PUSH, "", NOW), AUTH_WRONG);
	ck_assert_int_eq(auth_check(t, FW_SCOPE_PUSH, "eight", NOW), AUTH_WRONG);
	t->at[2].scopes = FW_SCOPE_READ | FW_SCOPE_ADMIN;
	ck_assert_int_eq(auth_check(t, FW_SCOPE_PUSH, "three", NOW), AUTH_SCOPE);
	ck_assert_int_eq(auth_check(t, FW_SCOPE_ADMIN, "three", NOW), AUTH_OK);
	ck_assert_int_eq(auth_check(t, FW_SCOPE_READ, "three", NOW), AUTH_OK);
	free(t);
}
END_TEST

START_TEST(run_out_and_unreadable)
{
	struct auth_tokens *t = tokens_make();

	t->at[4].until_ms = NOW;
	ck_assert_int_eq(auth_check(t, FW_SCOPE_PUSH, "five", NOW - 1), AUTH_OK);
	ck_assert_int_eq(auth_check(t, FW_SCOPE_PUSH, "five", NOW), AUTH_WRONG);
	t->at[0].broken = true;
	ck_assert_int_eq(auth_check(t, FW_SCOPE_PUSH, "one", NOW), AUTH_WRONG);
	t->n = 0;
	ck_assert_int_eq(auth_check(t, FW_SCOPE_PUSH, "one", NOW), AUTH_WRONG);
	free(t);
}
END_TEST

/*
 * API-07: a rate-limited guess reveals nothing; a network that used a valid token before goes on.
 */
START_TEST(a_network_with_a_valid_token_goes_on)
{
	struct auth_tokens *t = tokens_make();

	here = 1;
	ck_assert_int_eq(auth_check(t, FW_SCOPE_PUSH, "one", NOW), AUTH_OK);
	/* the wrong scope, so this network is not noted */
	ck_assert_int_eq(auth_check(t, FW_SCOPE_READ, "two", NOW), AUTH_SCOPE);
	waits = true;
	ck_assert_int_eq(auth_check(t, FW_SCOPE_PUSH, "one", NOW), AUTH_OK);
	ck_assert_int_eq(auth_check(t, FW_SCOPE_READ, "one", NOW), AUTH_SCOPE);
	ck_assert_int_eq(auth_check(t, FW_SCOPE_PUSH, "two", NOW), AUTH_LIMITED);
	ck_assert_int_eq(auth_check(t, FW_SCOPE_PUSH, "nonsense", NOW), AUTH_LIMITED);
	ck_assert_int_eq(auth_check(t, FW_SCOPE_PUSH, NULL, NOW), AUTH_MISSING);
	here = 2;
	ck_assert_int_eq(auth_check(t, FW_SCOPE_PUSH, "one", NOW), AUTH_LIMITED);
	waits = false;
	for (here = 2; here < 2 + AUTH_NETWORKS; here++) /* noted for the last few networks that used it */
		ck_assert_int_eq(auth_check(t, FW_SCOPE_PUSH, "one", NOW), AUTH_OK);
	waits = true;
	for (here = 1; here < 2 + AUTH_NETWORKS; here++)
		ck_assert_int_eq(auth_check(t, FW_SCOPE_PUSH, "one", NOW), here == 1 ? AUTH_LIMITED : AUTH_OK);
	here = 2;
	t->at[0].until_ms = NOW;
	ck_assert_int_eq(auth_check(t, FW_SCOPE_PUSH, "one", NOW), AUTH_WRONG);
	free(t);
}
END_TEST

START_TEST(passes)
{
	struct auth_tokens *t = tokens_make();
	struct auth_pass open = {.scope = FW_SCOPE_PUSH, .until_ms = FW_NO_DATE};

	t->at[3].until_ms = NOW + 10;
	ck_assert_int_eq(auth_check(t, FW_SCOPE_PUSH, "four", NOW), AUTH_OK);
	ck_assert_int_eq(pass.until_ms, NOW + 10);
	ck_assert(auth_pass_is_valid(t, &pass, NOW + 9));
	ck_assert(!auth_pass_is_valid(t, &pass, NOW + 10));
	t->at[3].until_ms = FW_NO_DATE;
	ck_assert(auth_pass_is_valid(t, &pass, NOW + 10));
	ck_assert_int_eq(pass.until_ms, FW_NO_DATE);
	t->at[3].scopes = FW_SCOPE_READ;
	ck_assert(!auth_pass_is_valid(t, &pass, NOW));
	t->at[3].scopes = FW_SCOPE_ALL;
	ck_assert(auth_pass_is_valid(t, &pass, NOW));
	t->at[3].broken = true;
	ck_assert(!auth_pass_is_valid(t, &pass, NOW));
	t->n = 3;
	ck_assert(!auth_pass_is_valid(t, &pass, NOW));
	ck_assert(!auth_pass_is_valid(t, &open, NOW)); /* admitted without a token, before there was one */
	for (size_t i = 0; i < t->n; i++)
		t->at[i].scopes = FW_SCOPE_READ; /* of any scope */
	ck_assert(!auth_pass_is_valid(t, &open, NOW));
	t->n = 0;
	ck_assert(auth_pass_is_valid(t, &open, NOW));
	free(t);
}
END_TEST

START_TEST(hashed) /* the example of FIPS 180-2 */
{
	static const unsigned char ABC[FW_TOKEN_HASH_BYTES] = {0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41,
		0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23, 0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17, 0x7a, 0x9c, 0xb4, 0x10,
		0xff, 0x61, 0xf2, 0x00, 0x15, 0xad};
	unsigned char hash[FW_TOKEN_HASH_BYTES];

	ck_assert(fw_token_hash(FW_STR("abc"), hash));
	ck_assert_mem_eq(hash, ABC, sizeof(hash));
	ck_assert(fw_token_hash(FW_STR_NONE, hash));
}
END_TEST

START_TEST(scopes_in_words)
{
	char text[FW_TOKEN_SCOPES_MAX];
	struct fw_err err;
	unsigned bits;

	for (unsigned i = 1; i <= FW_SCOPE_ALL; i++) {
		fw_token_scopes_show(i, text);
		ck_assert_int_eq(fw_token_scopes_parse(fw_str(text), &bits, &err), 0);
		ck_assert_uint_eq(bits, i);
	}
	fw_token_scopes_show(FW_SCOPE_ALL, text);
	ck_assert_str_eq(text, "push,read,admin,feed");
	ck_assert_int_eq(fw_token_scopes_parse(FW_STR("read , push,read"), &bits, &err), 0);
	ck_assert_uint_eq(bits, FW_SCOPE_READ | FW_SCOPE_PUSH);
	ck_assert_int_eq(fw_token_scopes_parse(FW_STR("Push"), &bits, &err), FW_EINVAL);
	ck_assert_int_eq(fw_token_scopes_parse(FW_STR("push,"), &bits, &err), FW_EINVAL);
	ck_assert_int_eq(fw_token_scopes_parse(FW_STR_NONE, &bits, &err), FW_EINVAL);
}
END_TEST

/* ---- in a store ------------------------------------------------------------------------------ */

static struct fw_store *store_make(void)
{
	struct fw_store *st = NULL;
	struct fw_err err;

	ck_assert_int_eq(fw_store_open(&(struct fw_store_config){.url = "memory:"}, &st, &err), 0);
	return st;
}

static int last_seen(void *ctx, const struct fw_token *t)
{
	*(struct fw_token *)ctx = *t;
	return 0;
}

static int add(struct fw_store *st, const char *name, char text[FW_TOKEN_TEXT_MAX])
{
	return fw_token_add(st, fw_str(name), FW_SCOPE_READ, FW_STR_NONE, NOW, NOW + 5, text, NULL);
}

START_TEST(kept_as_a_hash)
{
	char text[FW_TOKEN_TEXT_MAX], other[FW_TOKEN_TEXT_MAX];
	struct fw_store *st = store_make();
	unsigned char hash[FW_TOKEN_HASH_BYTES];
	struct fw_token t = {0};
	struct fw_err err;

	ck_assert_int_eq(add(st, "name", text), 0);
	ck_assert_uint_eq(strlen(text), FW_TOKEN_TEXT_MAX - 1);
	ck_assert_int_eq(fw_token_list(st, true, last_seen, &t, &err), 0);
	ck_assert(fw_token_hash(fw_str(text), hash));
	ck_assert_mem_eq(t.hash, hash, sizeof(hash));
	ck_assert_uint_eq(t.scopes, FW_SCOPE_READ);
	ck_assert_int_eq(t.at_ms, NOW);
	ck_assert_int_eq(t.until_ms, NOW + 5);
	ck_assert(!t.broken);
	ck_assert_int_eq(add(st, "name", other), FW_EINVAL);
	ck_assert_uint_eq(other[0], 0); /* not left for use by mistake */
	ck_assert_int_eq(t.used_ms, 0);
	ck_assert_int_eq(fw_token_note_use(st, FW_STR("name"), NOW + 3, &err), 0);
	ck_assert_int_eq(fw_token_list(st, true, last_seen, &t, &err), 0);
	ck_assert_int_eq(t.used_ms, NOW + 3);
	ck_assert_int_eq(fw_token_list(st, false, last_seen, &t, &err), 0);
	ck_assert_int_eq(t.used_ms, 0);
	ck_assert_int_eq(add(st, "other", other), 0);
	ck_assert_str_ne(text, other);
	ck_assert_int_eq(fw_token_remove(st, FW_STR("name"), &err), 0);
	ck_assert_int_eq(fw_token_remove(st, FW_STR("name"), &err), FW_ENOTFOUND);
	ck_assert_int_eq(fw_token_remove(st, FW_STR("-name"), &err), FW_EINVAL);
	/* by a server that has not seen the change */
	ck_assert_int_eq(fw_token_note_use(st, FW_STR("name"), NOW + 4, &err), 0);
	ck_assert_int_eq(fw_token_remove(st, FW_STR("other"), &err), 0);
	ck_assert_int_eq(add(st, "name", text), 0);
	ck_assert_int_eq(fw_token_list(st, true, last_seen, &t, &err), 0);
	ck_assert_int_eq(t.used_ms, 0); /* of another token with that name */
	fw_store_close(st);
}
END_TEST

START_TEST(unreadable_tokens_admit_nothing) /* an unreadable token admits nothing, and counts as one for each scope */
{
#define HASH "0000000000000000000000000000000000000000000000000000000000000000"
	static const char *const VALUE[] = {"push - " HASH " ", "push - " HASH " feed=0", "push - " HASH " feed=-1",
		"push - " HASH " feed=x", "push - " HASH " feed",
		"push - " HASH " property=", "push - " HASH " other=1", "push - " HASH " feed=1 ",
		"push - " HASH "  feed=1", "push - " HASH " feed=1 feed=99999999999999999999", "read - " HASH " feed=1",
		"push,read - " HASH " feed=1", "feed - " HASH, "feed - " HASH " feed=1", "read - " HASH " out=all",
		"feed,read - " HASH " out=all", "feed - " HASH " out=", "feed - " HASH " out=all out=all",
		"push - " HASH " out=all", "push - " HASH " feed=1 out=all", "push - " HASH "feed=1", "", "push",
		"push -", "push - 00", "- - -",
		"pull - 0000000000000000000000000000000000000000000000000000000000000000",
		"push x 0000000000000000000000000000000000000000000000000000000000000000",
		"push - 000000000000000000000000000000000000000000000000000000000000000g",
		"push - 00000000000000000000000000000000000000000000000000000000000000000"};
	struct fw_store *st = store_make();
	struct fw_err err;

	for (size_t i = 0; i < FW_N(VALUE); i++) {
		struct fw_record r = {.kind = FW_STR("token"),
			.key = FW_STR("x"),
			.value = fw_str(VALUE[i]),
			.at_ms = NOW,
			.until_ms = FW_NO_DATE};
		struct fw_token t = {0};

		ck_assert_int_eq(fw_store_record_put(st, &r, false, NULL, &err), 0);
		ck_assert_int_eq(fw_token_list(st, true, last_seen, &t, &err), 0);
		ck_assert_msg(t.broken && t.scopes == FW_SCOPE_ALL, "%s", VALUE[i]);
	}
	fw_store_close(st);
}
END_TEST

START_TEST(as_many_as_may_be)
{
	char text[FW_TOKEN_TEXT_MAX], name[20];
	struct fw_store *st = store_make();

	for (int i = 0; i < FW_TOKENS_MAX; i++) {
		struct fw_record r = {
			.kind = FW_STR("token"), .value = FW_STR("x"), .at_ms = NOW, .until_ms = FW_NO_DATE};

		ck_assert(fw_snprintf(name, sizeof(name), "t%d", i));
		r.key = fw_str(name);
		ck_assert_int_eq(
			i == FW_TOKENS_MAX - 1 ? add(st, "last", text) : fw_store_record_put(st, &r, false, NULL, NULL),
			0);
	}
	ck_assert_int_eq(add(st, "more", text), FW_ELIMIT);
	fw_store_close(st);
}
END_TEST

START_TEST(bound)
{
	static const struct {
		const char *bound;
		int64_t feed_id;
		const char *property;
		bool may_feed, may_property, may_events;
	} CASE[] = {
		{NULL, 1, "news", true, true, true},
		{"feed=1", 1, "news", true, false, false},
		{"feed=1", 2, "news", false, false, false},
		{"feed=11", 1, "feed=11", false, false, false},
		{"feed=2 feed=1", 1, "", true, false, false},
		{"property=news", 1, "news", false, true, true},
		{"property=news", 1, "new", false, false, true},
		{"property=news", 1, "", false, false, true},
		{"property=a=b feed=3", 3, "a=b", true, true, true},
		{"feed=3 property=a", 0, "a", false, true, true},
		{"feed=3 x property=a feed=4", 4, "a", false, false, false},
	};
	struct fw_store *st = store_make();
	char text[FW_TOKEN_TEXT_MAX];
	struct fw_token t = {0};
	struct fw_err err;

	for (size_t i = 0; i < FW_N(CASE); i++) {
		struct fw_str b = fw_str(CASE[i].bound);

		ck_assert_msg(fw_token_allows_feed(b, CASE[i].feed_id) == CASE[i].may_feed, "%zu", i);
		ck_assert_msg(fw_token_allows_property(b, fw_str(CASE[i].property)) == CASE[i].may_property, "%zu", i);
		ck_assert_msg(fw_token_allows_events(b) == CASE[i].may_events, "%zu", i);
	}
	ck_assert_int_eq(
		fw_token_add(st, FW_STR("x"), FW_SCOPE_PUSH, FW_STR("feed=1 nonsense"), NOW, NOW + 5, text, &err),
		FW_EINVAL);
	ck_assert_int_eq(
		fw_token_add(st, FW_STR("x"), FW_SCOPE_ADMIN, FW_STR("feed=1"), NOW, NOW + 5, text, &err), FW_EINVAL);
	ck_assert_int_eq(
		fw_token_add(st, FW_STR("x"), FW_SCOPE_PUSH, FW_STR("feed=1 property=a"), NOW, NOW + 5, text, &err), 0);
	ck_assert_int_eq(fw_token_list(st, true, last_seen, &t, &err), 0);
	ck_assert(!t.broken && t.bound.p);
	fw_store_close(st);
}
END_TEST

START_TEST(bound_to_a_feed)
{
	static const struct fw_str NAME[] = {{"all", 3}, {"query/title:\"a b\" OR %=\n", 22}};
	char text[FW_TOKEN_TEXT_MAX];
	struct fw_err err;

	for (size_t i = 0; i < FW_N(NAME); i++) {
		struct fw_store *st = store_make();
		struct fw_buf b = FW_BUF_INIT(0);
		struct fw_token t = {0};
		struct fw_arena a;

		fw_arena_init(&a, 0);
		ck_assert_int_eq(fw_token_bind(&b, &(struct fw_token_bound){.out = NAME[i]}, &err), 0);
		ck_assert_int_eq(
			fw_token_add(st, FW_STR("x"), FW_SCOPE_FEED, fw_buf_str(&b), NOW, NOW + 5, text, &err), 0);
		ck_assert_int_eq(fw_token_list(st, true, last_seen, &t, &err), 0);
		ck_assert(!t.broken && t.scopes == FW_SCOPE_FEED);
		ck_assert(fw_str_eq(fw_token_feed_name(fw_buf_str(&b), &a), NAME[i]));
		/* it pushes nothing, and its name goes with no other scope */
		ck_assert(!fw_token_allows_feed(fw_buf_str(&b), 1) && !fw_token_allows_events(fw_buf_str(&b)));
		ck_assert_int_eq(fw_token_add(st, FW_STR("y"), FW_SCOPE_READ, fw_buf_str(&b), NOW, NOW + 5, text, &err),
			FW_EINVAL);
		ck_assert_int_eq(
			fw_token_add(st, FW_STR("y"), FW_SCOPE_FEED, FW_STR_NONE, NOW, NOW + 5, text, &err), FW_EINVAL);
		fw_arena_finish(&a);
		fw_buf_finish(&b);
		fw_store_close(st);
	}
	ck_assert(!fw_token_feed_name(FW_STR("feed=1"), NULL).p && !fw_token_feed_name(FW_STR_NONE, NULL).p);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit http auth");
	TCase *t = tcase_create("tokens");
	const TTest *const every[] = {presented, verdicts, run_out_and_unreadable, a_network_with_a_valid_token_goes_on,
		passes, hashed, scopes_in_words, kept_as_a_hash, unreadable_tokens_admit_nothing, bound,
		bound_to_a_feed, as_many_as_may_be};

	tcase_set_timeout(t, 60);
	for (size_t i = 0; i < FW_N(every); i++)
		tcase_add_test(t, every[i]);
	suite_add_tcase(s, t);
	return run_suite(s);
}
