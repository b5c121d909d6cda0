/* SPDX-License-Identifier: ISC */
/*
 * Our fetcher on the same list as fetch_ref: fetching and decoding, nothing more.
 *
 *   fetch_own FILE [IN_FLIGHT] [--twice] [--ca FILE]
 */
#include <stdbool.h>

#include "base/str.h"
#include "fetch/fetch.h"
#include "fetch_common.h"

static struct bench_list list;
static struct fw_fetcher *fetcher;
static size_t next, failed, kinds[FW_VISIT_KIND_N];
static unsigned long long bytes;
static bool conditional;

static void done(struct fw_fetch *f);

static void keep(char **where, struct fw_str s)
{
	free(*where);
	*where = s.p ? bench_copy(s.p, s.len) : NULL;
}

static bool start(struct fw_fetch *f)
{
	size_t at = next;

	if (at == list.n)
		return false;
	next++;
	f->url = fw_str(list.url[at]);
	f->done = done;
	f->ctx = (void *)at;
	if (conditional) {
		f->validator_url = f->url;
		f->etag = fw_str(list.etag[at]);
		f->last_modified = fw_str(list.last_modified[at]);
	}
	if (fw_fetch_start(fetcher, f, NULL))
		abort();
	return true;
}

static void done(struct fw_fetch *f)
{
	size_t at = (size_t)f->ctx;

	kinds[f->kind]++;
	failed += f->kind != FW_VISIT_OK && f->kind != FW_VISIT_NOT_MODIFIED;
	bytes += f->body.len;
	if (f->err.rc && kinds[f->kind] == 1)
		printf("  first of kind %d: %s\n", f->kind, f->err.text);
	if (!conditional) {
		keep(&list.etag[at], f->h_etag);
		keep(&list.last_modified[at], f->h_last_modified);
	}
	fw_fetch_reset(f);
	start(f);
}

static void pass(const char *name, uv_loop_t *loop, struct fw_fetch *f, size_t n)
{
	struct bench_watch from = bench_now();

	next = failed = 0;
	bytes = 0;
	memset(kinds, 0, sizeof(kinds));
	for (size_t i = 0; i < n && start(&f[i]); i++)
		;
	while (fw_fetcher_in_flight(fetcher))
		uv_run(loop, UV_RUN_ONCE);
	bench_report(name, list.n, failed, bytes, from);
	for (int i = 0; failed && i < FW_VISIT_KIND_N; i++) {
		if (kinds[i])
			printf("  kind %d: %zu\n", i, kinds[i]);
	}
}

int main(int argc, char **argv)
{
	struct fw_fetch_config c;
	struct fw_guard guard;
	struct fw_fetch *f;
	struct fw_err err;
	bool twice = false;
	size_t n = 300;
	uv_loop_t loop;

	fw_fetch_config_default(&c);
	if (argc < 2 || fw_guard_init(&guard, "127.0.0.0/8", &err)) {
		fputs("usage: fetch_own FILE [IN_FLIGHT] [--twice] [--ca FILE]\n", stderr);
		return 2;
	}
	for (int i = 2; i < argc; i++) {
		if (strcmp(argv[i], "--twice") == 0)
			twice = true;
		else if (strcmp(argv[i], "--ca") == 0 && i + 1 < argc)
			c.ca_file = argv[++i];
		else
			n = strtoul(argv[i], NULL, 10);
	}
	bench_list_read(&list, argv[1]);
	c.guard = &guard;
	c.max_in_flight = (uint32_t)n;
	f = calloc(n ? n : 1, sizeof(*f));
	uv_loop_init(&loop);
	if (!f || !n || fw_fetcher_create(&loop, &c, &fetcher, &err))
		abort();
	pass("feedwheel", &loop, f, n);
	if (twice) {
		conditional = true;
		pass("feedwheel again", &loop, f, n);
	}
	for (size_t i = 0; i < n; i++)
		fw_fetch_finish(&f[i]);
	fw_fetcher_destroy(fetcher);
	uv_run(&loop, UV_RUN_DEFAULT);
	uv_loop_close(&loop);
	free(f);
	bench_list_free(&list);
	return failed ? 1 : 0;
}
