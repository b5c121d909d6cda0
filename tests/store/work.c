/* SPDX-License-Identifier: ISC */
#include <unistd.h>

#include "work.h"

struct work *work_begin(struct fw_store *st)
{
	static struct work w;

	w.front = st;
	w.st = store_of(st);
	w.feed_id = subscribe(st, "https://a.example/", NOW);
	w.l = drv_join(w.st, "w", LONG_MS);
	fw_arena_init(&w.arena, 0);
	return &w;
}

struct work *work_begin_at(const char *url, int64_t busy_timeout_ms)
{
	struct fw_store_config c = {.url = url, .flags = FW_STORE_CREATE, .busy_timeout_ms = busy_timeout_ms};
	struct fw_err err = {0};
	struct fw_store *st;
	struct work *w;

	OK(fw_store_open(&c, &st, &err));
	w = work_begin(st);
	visit(w, 0, 3);
	return w;
}

void visit_with(struct work *w, int first, int n, struct fw_str content)
{
	ck_assert_int_le(n, WORK_ENTRIES_MAX);
	fw_arena_reset(&w->arena, 0);
	w->o = drv_outcome(w->st, w->feed_id, &w->f, NOW);
	for (int i = 0; i < n; i++) {
		w->e[i] = entry(first + i, 1, fw_arena_printf(&w->arena, "n%d", first + i), "");
		w->e[i].content = content;
	}
	w->o.entries = w->e;
	w->o.entry_n = (size_t)n;
}

void visit(struct work *w, int first, int n)
{
	visit_with(w, first, n, FW_STR("<p>number</p>"));
}

int commit(struct work *w)
{
	return drv_commit(w->st, w->l->id, &w->o, 1);
}

void commit_is_locked_out(struct work *w, const char *name, const char *words)
{
	FAILS(commit(w), FW_EAGAIN);
	ck_assert_msg(strstr(drv_err.text, name) && strstr(drv_err.text, words), "does not name \"%s\" and \"%s\": %s",
		name, words, drv_err.text);
}

void commit_stores_once(struct work *w)
{
	DONE(commit(w));
	ck_assert_int_eq(w->o.rc, 0);
	ck_assert_int_eq(drv_entries(w->st, w->feed_id), 3);
	ck_assert_int_eq(drv_visits(w->st, w->feed_id), 1);
}

static struct fw_store *open_again(const char *url)
{
	for (int i = 0; i < 3000; i++) {
		struct fw_store_config c = {.url = url};
		struct fw_store *st;
		struct fw_err err;

		if (fw_store_open(&c, &st, &err) == 0)
			return st;
		ck_assert_msg(err.rc == FW_EIO || err.rc == FW_EAGAIN, "%s", err.text);
		usleep(20000);
	}
	ck_abort_msg("the store does not come back");
	return NULL;
}

void work_again(struct work *w, const char *url)
{
	fw_store_close(w->front);
	w->front = open_again(url);
	w->st = store_of(w->front);
}

void work_end(struct work *w)
{
	drv_leave(w->st, w->l);
	check_clean(w->front);
	fw_store_close(w->front);
	fw_arena_finish(&w->arena);
}

void work_drop(struct work *w)
{
	free(w->l);
	fw_store_close(w->front);
	fw_arena_finish(&w->arena);
}

void read_only_refuses(const char *url)
{
	struct fw_feed_new n = {.url = FW_STR("https://b.example/")};
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	int64_t id = subscribe(st, "https://a.example/", NOW);
	struct fw_err err = {0};

	put_entries(st, id, 0, 3);
	ck_assert_int_eq(hits(st, "number"), 3);
	fw_store_close(st);
	st = store_open(url, FW_STORE_READ);
	ck_assert_int_eq(entry_count(st, id), 3);
	ck_assert_int_eq(hits(st, "number"), 3);
	IS(fw_store_subscribe(st, &n, 1, &err), FW_EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "for reading only"));
	ck_assert_int_eq(stats(st).feed_n, 1);
	fw_store_close(st);
}

void open_fails(const char *url, unsigned flags, int code, const char *name, const char *words)
{
	struct fw_store_config c = {.url = url, .flags = flags, .busy_timeout_ms = 200};
	struct fw_store *st = NULL;
	struct fw_err err = {0};
	int rc = fw_store_open(&c, &st, &err);

	ck_assert_msg(rc == code, "%d instead of %d: %s", rc, code, err.text);
	ck_assert_ptr_null(st);
	ck_assert_msg(strstr(err.text, name) && strstr(err.text, words), "does not name \"%s\" and \"%s\": %s", name,
		words, err.text);
	ck_assert_ptr_null(strchr(err.text, '\n'));
	ck_assert_ptr_null(strstr(err.text, "secret"));
}
