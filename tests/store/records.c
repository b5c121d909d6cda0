/* SPDX-License-Identifier: ISC */
/*
 * Records, on each driver: of any bytes, listed in order of their keys, put once when several
 * processes try, gone when they have expired.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"

static struct fw_arena A;

static void setup(void)
{
	fw_arena_init(&A, 0);
}

static void teardown(void)
{
	fw_arena_finish(&A);
}

static struct fw_record record(const char *kind, const char *key, const char *value)
{
	return (struct fw_record){
		.kind = fw_str(kind), .key = fw_str(key), .value = fw_str(value), .at_ms = NOW, .until_ms = FW_NO_DATE};
}

static void put(struct fw_store *st, struct fw_record r)
{
	struct fw_err err = {0};

	OK(fw_store_record_put(st, &r, false, NULL, &err));
}

static bool same(const struct fw_record *a, const struct fw_record *b)
{
	return fw_str_eq(a->kind, b->kind) && fw_str_eq(a->key, b->key) && fw_str_eq(a->value, b->value) &&
		a->at_ms == b->at_ms && a->until_ms == b->until_ms;
}

/* The store has exactly this record. */
static void is_there(struct fw_store *st, const struct fw_record *want)
{
	struct fw_record got = {0};
	struct fw_err err = {0};

	OK(fw_store_record_get(st, want->kind, want->key, &A, &got, &err));
	ck_assert(same(&got, want));
}

static void is_not_there(struct fw_store *st, const char *kind, const char *key)
{
	struct fw_record got;
	struct fw_err err = {0};

	IS(fw_store_record_get(st, fw_str(kind), fw_str(key), &A, &got, &err), FW_ENOTFOUND);
	ck_assert_msg(strstr(err.text, kind) != NULL, "%s", err.text);
}

START_TEST(put_and_replaced)
{
	struct fw_store *st = fresh(_i);
	struct fw_record r = record("token", "reader", "1"), other = record("other", "reader", "2");

	is_not_there(st, "token", "reader");
	put(st, r);
	put(st, other);
	is_there(st, &r);
	r.value = FW_STR("something else");
	r.at_ms = NOW + 5;
	r.until_ms = NOW + 10;
	put(st, r);
	is_there(st, &r);
	r.until_ms = FW_NO_DATE;
	put(st, r);
	is_there(st, &r);
	is_there(st, &other);
	fw_store_close(st);
}
END_TEST

START_TEST(any_bytes)
{
	static const char key[] = "a \0\n'\"\\%?:\xff\xc3(", value[] = "\0 'x' \\ \" 1 2 - \xff\xfe\n\r\x1a\0";
	struct fw_store *st = fresh(_i);
	struct fw_record r = {.kind = FW_STR("k_9"),
		.key = {key, sizeof(key) - 1},
		.value = {value, sizeof(value) - 1},
		.at_ms = NOW,
		.until_ms = FW_NO_DATE};
	char *large = malloc(FW_RECORD_VALUE_MAX);

	ck_assert_ptr_nonnull(large);
	put(st, r);
	is_there(st, &r);
	r.value = FW_STR("");
	put(st, r);
	is_there(st, &r);
	r.value = FW_STR_NONE;
	r.key = FW_STR(" ");
	put(st, r);
	r.value = FW_STR("");
	is_there(st, &r);
	for (size_t i = 0; i < FW_RECORD_VALUE_MAX; i++)
		large[i] = (char)(i * 7);
	r.kind = FW_STR("abcdefghijklmnopqrstuvwxyz_01234");
	r.key = (struct fw_str){large, FW_RECORD_KEY_MAX};
	r.value = (struct fw_str){large, FW_RECORD_VALUE_MAX};
	put(st, r);
	is_there(st, &r);
	free(large);
	fw_store_close(st);
}
END_TEST

START_TEST(refused)
{
	struct fw_store *st = fresh(_i);
	char *large = calloc(1, FW_RECORD_VALUE_MAX + 1);
	struct fw_record good = record("kind", "key", ""), bad[9];
	struct fw_record_query q = {.kind = FW_STR("Kind")};
	struct fw_err err = {0};

	ck_assert_ptr_nonnull(large);
	for (size_t i = 0; i < FW_N(bad); i++)
		bad[i] = good;
	bad[0].kind = FW_STR("");
	bad[1].kind = FW_STR("Kind");
	bad[2].kind = FW_STR("a kind");
	bad[3].kind = FW_STR("abcdefghijklmnopqrstuvwxyz_012345");
	bad[4].key = FW_STR("");
	bad[5].key = (struct fw_str){large, FW_RECORD_KEY_MAX + 1};
	bad[6].value = (struct fw_str){large, FW_RECORD_VALUE_MAX + 1};
	bad[7].until_ms = NOW;
	bad[8].kind = FW_STR_NONE;
	for (size_t i = 0; i < FW_N(bad); i++)
		IS(fw_store_record_put(st, &bad[i], false, NULL, &err), FW_EINVAL);
	IS(fw_store_record_get(st, bad[1].kind, good.key, &A, &good, &err), FW_EINVAL);
	IS(fw_store_record_remove(st, good.kind, bad[4].key, FW_STR_NONE, &err), FW_EINVAL);
	IS(fw_store_record_list(st, &q, NULL, NULL, &err), FW_EINVAL);
	is_not_there(st, "kind", "key");
	free(large);
	fw_store_close(st);
}
END_TEST

START_TEST(only_if_absent)
{
	struct fw_store *st = fresh(_i);
	struct fw_record first = record("idempotency", "key", "first"), second = record("idempotency", "key", "second");
	struct fw_err err = {0};
	bool was;

	first.until_ms = NOW + 100;
	OK(fw_store_record_put(st, &first, true, &was, &err));
	ck_assert(!was);
	second.at_ms = NOW + 99;
	OK(fw_store_record_put(st, &second, true, &was, &err));
	ck_assert(was);
	is_there(st, &first);
	OK(fw_store_record_put(st, &first, true, &was, &err)); /* the same call again */
	ck_assert(was);
	second.at_ms = first.until_ms; /* expired: as if it did not exist */
	OK(fw_store_record_put(st, &second, true, &was, &err));
	ck_assert(!was);
	is_there(st, &second);
	first.at_ms = NOW + 1000000;
	first.until_ms = NOW + 1000001;
	OK(fw_store_record_put(st, &first, true, &was, &err)); /* the second never expires */
	ck_assert(was);
	OK(fw_store_record_put(st, &first, false, &was, &err));
	ck_assert(!was);
	is_there(st, &first);
	fw_store_close(st);
}
END_TEST

START_TEST(removed)
{
	struct fw_store *st = fresh(_i);
	struct fw_record r = record("token", "a", "x"), stays = record("token", "b", "y"),
			 other = record("token2", "a", "z");
	struct fw_err err = {0};
	bool was;

	r.until_ms = NOW + 50;
	put(st, r);
	put(st, stays);
	put(st, other);
	OK(fw_store_record_remove(st, r.kind, r.key, FW_STR_NONE, &err));
	is_not_there(st, "token", "a");
	IS(fw_store_record_remove(st, r.kind, r.key, FW_STR_NONE, &err), FW_ENOTFOUND);
	IS(fw_store_record_remove(st, r.kind, r.key, r.value, &err), FW_ENOTFOUND);
	is_there(st, &stays);
	is_there(st, &other);
	OK(fw_store_record_put(st, &r, true, &was, &err));
	ck_assert(!was);
	fw_store_close(st);
}
END_TEST

/* A record that has changed meanwhile stays. */
START_TEST(removed_as_seen)
{
	static const char bytes[] = "1 2 \0\n\xff%";
	struct fw_str values[] = {{bytes, sizeof(bytes) - 1}, FW_STR(""), FW_STR("x")};
	struct fw_store *st = fresh(_i);
	struct fw_record r = record("token", "a", "");
	struct fw_err err = {0};

	for (size_t i = 0; i < FW_N(values); i++) {
		r.value = values[i];
		put(st, r);
		for (size_t k = 0; k < FW_N(values); k++) {
			if (k != i)
				IS(fw_store_record_remove(st, r.kind, r.key, values[k], &err), FW_ENOTFOUND);
		}
		IS(fw_store_record_remove(st, r.kind, r.key, (struct fw_str){bytes, sizeof(bytes) - 2}, &err),
			FW_ENOTFOUND);
		is_there(st, &r);
		OK(fw_store_record_remove(st, r.kind, r.key, r.value, &err));
		is_not_there(st, "token", "a");
	}
	fw_store_close(st);
}
END_TEST

/* ---- lists ----------------------------------------------------------------------------------- */

struct seen {
	size_t n, stop_at;
	char kind[FW_RECORD_KIND_MAX + 1];
	struct fw_buf keys;
};

static int see(void *ctx, const struct fw_record *r)
{
	struct seen *s = ctx;

	s->n++;
	fw_str_copy(s->kind, sizeof(s->kind), r->kind);
	fw_buf_addstr(&s->keys, r->kind);
	fw_buf_addc(&s->keys, '/');
	fw_buf_addstr(&s->keys, r->key);
	fw_buf_addc(&s->keys, ' ');
	return s->stop_at && s->n >= s->stop_at ? 7 : 0;
}

/* The list is exactly this, "kind/key kind/key ". */
static void shows(struct fw_store *st, struct fw_record_query q, const char *want)
{
	struct seen s = {0};
	struct fw_err err = {0};

	OK(fw_store_record_list(st, &q, see, &s, &err));
	ck_assert_msg(fw_str_eq(fw_buf_str(&s.keys), fw_str(want)), "%.*s instead of %s",
		FW_STR_ARG(fw_buf_str(&s.keys)), want);
	fw_buf_finish(&s.keys);
}

START_TEST(listed_in_order)
{
	static const char *const kind[] = {"ab", "a", "abc", "a_b"},
				 *const key[] = {"b", "\xff", "B", "a ", "a!", "a", "aa"};
	const struct fw_str ab = FW_STR("ab");
	struct fw_store *st = fresh(_i);
	struct seen s = {.stop_at = 2};
	struct fw_err err = {0};

	shows(st, (struct fw_record_query){0}, "");
	for (size_t i = 0; i < FW_N(key); i++)
		put(st, record("ab", key[i], "v"));
	for (size_t i = 1; i < FW_N(kind); i++)
		put(st, record(kind[i], "x", "v"));
	shows(st, (struct fw_record_query){.kind = ab}, "ab/B ab/a ab/a  ab/a! ab/aa ab/b ab/\xff ");
	shows(st, (struct fw_record_query){.kind = ab, .limit = 2}, "ab/B ab/a ");
	shows(st, (struct fw_record_query){.kind = ab, .after_key = FW_STR("a"), .limit = 2}, "ab/a  ab/a! ");
	/* a cursor that has been removed */
	shows(st, (struct fw_record_query){.kind = ab, .after_key = FW_STR("a0")}, "ab/aa ab/b ab/\xff ");
	shows(st, (struct fw_record_query){.kind = ab, .after_key = FW_STR("\xff")}, "");
	shows(st, (struct fw_record_query){.kind = FW_STR("b")}, "");
	shows(st, (struct fw_record_query){0}, "a/x a_b/x ab/B ab/a ab/a  ab/a! ab/aa ab/b ab/\xff abc/x ");
	shows(st, (struct fw_record_query){.after_kind = FW_STR("a_b"), .after_key = FW_STR("x"), .limit = 2},
		"ab/B ab/a ");
	shows(st, (struct fw_record_query){.after_kind = ab, .after_key = FW_STR("b")}, "ab/\xff abc/x ");
	IS(fw_store_record_list(st, &(struct fw_record_query){.kind = ab}, see, &s, &err), 7);
	ck_assert_uint_eq(s.n, 2);
	fw_buf_finish(&s.keys);
	fw_store_close(st);
}
END_TEST

#define MANY 450 /* more than a page of any driver's lists */

static int count(void *ctx, const struct fw_record *r)
{
	size_t *n = ctx;
	char key[20];

	ck_assert(fw_snprintf(key, sizeof(key), "%06zu", *n));
	ck_assert(fw_str_eq(r->key, fw_str(key)));
	ck_assert(fw_str_eq(r->value, fw_str(key)));
	++*n;
	return 0;
}

START_TEST(many_by_pages)
{
	struct fw_store *st = fresh(_i);
	struct fw_err err = {0};
	char key[20];
	size_t n = 0;

	for (int i = 0; i < MANY; i++) {
		ck_assert(fw_snprintf(key, sizeof(key), "%06d", (i * 7) % MANY));
		put(st, record("many", key, key));
	}
	OK(fw_store_record_list(st, &(struct fw_record_query){.kind = FW_STR("many")}, count, &n, &err));
	ck_assert_uint_eq(n, MANY);
	n = 0;
	OK(fw_store_record_list(st, &(struct fw_record_query){.limit = MANY - 1}, count, &n, &err));
	ck_assert_uint_eq(n, MANY - 1);
	fw_store_close(st);
}
END_TEST

/* ---- expiry, concurrent processes ------------------------------------------------------------ */

START_TEST(pruned)
{
	struct fw_store *st = fresh(_i);
	struct fw_record r = record("idempotency", "a", "x");
	struct fw_err err = {0};
	struct fw_prune p = {.now_ms = NOW, .records = true};

	put(st, record("token", "ever", "x"));
	r.until_ms = NOW + 1000;
	put(st, r);
	r.key = FW_STR("b");
	r.until_ms = NOW + 2000;
	put(st, r);
	r.key = FW_STR("c"); /* one record whose time was extended, and one whose time was cut */
	r.until_ms = NOW + 1;
	put(st, r);
	r.until_ms = NOW + 3000;
	put(st, r);
	r.key = FW_STR("d");
	put(st, r);
	r.until_ms = NOW + 1;
	put(st, r);
	r.key = FW_STR("e");
	put(st, r);
	r.until_ms = FW_NO_DATE;
	put(st, r);
	OK(fw_store_prune(st, &p, &err));
	ck_assert_int_eq(p.record_n, 0);
	p.now_ms = NOW + 1000;
	OK(fw_store_prune(st, &p, &err));
	ck_assert_int_eq(p.record_n, 2);
	ck_assert(!p.more);
	shows(st, (struct fw_record_query){0}, "idempotency/b idempotency/c idempotency/e token/ever ");
	p.now_ms = NOW + 3000;
	OK(fw_store_prune(st, &p, &err));
	ck_assert_int_eq(p.record_n, 4);
	shows(st, (struct fw_record_query){0}, "idempotency/e token/ever ");
	fw_store_close(st);
}
END_TEST

START_TEST(read_only)
{
	char *url = scratch_url(_i, "records_ro");
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	struct fw_record r = record("token", "a", "x");
	struct fw_err err = {0};
	struct fw_prune p = {.now_ms = NOW + 1, .records = true};

	r.until_ms = NOW + 1;
	put(st, r);
	fw_store_close(st);
	st = store_open(url, FW_STORE_READ);
	is_there(st, &r);
	IS(fw_store_record_put(st, &r, false, NULL, &err), FW_EINVAL);
	IS(fw_store_record_remove(st, r.kind, r.key, FW_STR_NONE, &err), FW_EINVAL);
	IS(fw_store_prune(st, &p, &err), FW_EINVAL);
	is_there(st, &r);
	fw_store_close(st);
}
END_TEST

#define RACERS 4
#define PRIZES 40

/*
 * A child process has no Check. It tries to put each record, and writes those that it won to the
 * pipe.
 */
static void racer(const char *url, int fd)
{
	struct fw_store_config c = {.url = url};
	struct fw_store *st;
	struct fw_err err = {0};
	bool was;

	if (fw_store_open(&c, &st, &err))
		_exit(8);
	for (int i = 0; i < PRIZES; i++) {
		struct fw_record r = record("prize", "", "");
		char key[20], value[20];

		if (!fw_snprintf(key, sizeof(key), "%d", i) || !fw_snprintf(value, sizeof(value), "%d", (int)getpid()))
			_exit(7);
		r.key = fw_str(key);
		r.value = fw_str(value);
		r.until_ms = NOW + 1000;
		if (fw_store_record_put(st, &r, true, &was, &err)) {
			fprintf(stderr, "# %s\n", err.text);
			_exit(9);
		}
		if (!was && write(fd, &i, sizeof(i)) != sizeof(i))
			_exit(6);
	}
	fw_store_close(st);
	_exit(0);
}

START_TEST(one_wins)
{
	char *url = scratch_url(_i, "records_race");
	int won[PRIZES] = {0}, fd[2], i, status;
	struct fw_record old = record("prize", "3", "old");
	struct fw_store *st;

	if (!under_test[_i].shared)
		return;
	st = store_open(url, FW_STORE_CREATE);
	old.at_ms = NOW - 10;
	old.until_ms = NOW; /* expired: it is won like the others */
	put(st, old);
	fw_store_close(st);
	ck_assert_int_eq(pipe(fd), 0);
	for (int n = 0; n < RACERS; n++) {
		pid_t pid = fork();

		ck_assert_int_ge(pid, 0);
		if (!pid)
			racer(url, fd[1]);
	}
	for (int n = 0; n < RACERS; n++) {
		ck_assert_int_gt(wait(&status), 0);
		ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a racer ended with status %x",
			(unsigned)status);
	}
	close(fd[1]);
	while (read(fd[0], &i, sizeof(i)) == sizeof(i))
		won[i]++;
	close(fd[0]);
	for (i = 0; i < PRIZES; i++)
		ck_assert_msg(won[i] == 1, "%d was won %d times", i, won[i]);
}
END_TEST

int main(void)
{
	TCase *t = cases("every driver", setup, teardown, 60);
	const TTest *const every[] = {put_and_replaced, any_bytes, refused, only_if_absent, removed, removed_as_seen,
		listed_in_order, many_by_pages, pruned, one_wins};

	stores_begin();
	cases_add(t, every, FW_N(every), under_test_n);
	for (int i = 0; i < under_test_n; i++) {
		if (under_test[i].shared)
			tcase_add_loop_test(t, read_only, i, i + 1);
	}
	return cases_run("store records", t);
}
