/* SPDX-License-Identifier: ISC */
/* Folders are only paths of feeds. They are collected from these; each adds to those above. */
#include "api/folder.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/map.h"
#include "base/str.h"

struct folder_of_feed {
	int64_t feed_id;
	struct fw_folder *folder;
};

struct folder_reader {
	struct fw_arena *a;
	struct fw_map map; /* path: struct fw_folder */
	struct fw_buf of;  /* struct folder_of_feed, by feed id */
	bool failed;
};

static struct fw_folder *folder_new(struct folder_reader *r, struct fw_str path)
{
	struct fw_folder *f = fw_arena_zalloc(r->a, sizeof(*f));
	int rc;

	if (!f)
		return NULL;
	f->path = path;
	for (size_t i = 0; i < path.len; i++)
		f->depth += path.p[i] == '/';
	(void)fw_map_put(&r->map, path, f, &rc);
	return rc ? NULL : f;
}

/* The folder, and those above it, are in the map from now on. NULL: out of memory. */
static struct fw_folder *folder_take(struct folder_reader *r, struct fw_str path)
{
	struct fw_folder *f = fw_map_get(&r->map, path);

	if (f)
		return f;
	path = path.len ? fw_arena_str(r->a, path) : FW_STR("");
	for (size_t end = path.len ? 1 : 0; path.p && end <= path.len; end++) {
		struct fw_str one = fw_str_sub(path, 0, end);

		if (end < path.len && path.p[end] != '/')
			continue;
		f = fw_map_get(&r->map, one);
		f = f ? f : folder_new(r, one);
		if (!f)
			return NULL;
	}
	return f;
}

static int folder_feed(void *ctx, const struct fw_feed *f)
{
	struct folder_reader *r = ctx;
	struct folder_of_feed of = {f->id, folder_take(r, f->folder)};

	if (!of.folder) {
		r->failed = true;
		return FW_ENOMEM;
	}
	of.folder->feed_n++;
	of.folder->failing_n += f->fail_n > 0;
	fw_buf_add(&r->of, &of, sizeof(of));
	return 0;
}

FW_COMPARE(folder_feed_compare, struct folder_of_feed, feed_id)

static int folder_count(void *ctx, int64_t feed_id, int64_t n)
{
	struct folder_reader *r = ctx;
	struct folder_of_feed key = {.feed_id = feed_id}, *of = NULL;

	if (r->of.len)
		of = bsearch(&key, r->of.p, r->of.len / sizeof(key), sizeof(key), folder_feed_compare);
	if (of)
		of->folder->new_n += n;
	return 0;
}

/* '/' comes before all other bytes: a folder, then what is below it. */
static int folder_compare(const void *a, const void *b)
{
	const struct fw_str x = ((const struct fw_folder *)a)->path, y = ((const struct fw_folder *)b)->path;

	for (size_t i = 0; i < x.len && i < y.len; i++) {
		if (x.p[i] != y.p[i])
			return x.p[i] == '/' ? -1 : y.p[i] == '/' ? 1 : (unsigned char)x.p[i] - (unsigned char)y.p[i];
	}
	return FW_ORDER(x.len, y.len);
}

/* From the last to the first: what is below comes before. */
static void folders_sum(struct fw_folders *out)
{
	for (size_t i = 0; i < out->n; i++) {
		size_t up = i;

		out->folder[i].own_n = out->folder[i].feed_n;
		while (up > 0 && out->folder[i].depth && !out->folder[i].parent) {
			up--;
			if (out->folder[up].depth + 1 == out->folder[i].depth)
				out->folder[i].parent = up + 1;
		}
	}
	for (size_t i = out->n; i-- > 0;) {
		struct fw_folder *f = &out->folder[i], *above = f->parent ? &out->folder[f->parent - 1] : NULL;

		if (above) {
			above->feed_n += f->feed_n;
			above->failing_n += f->failing_n;
			above->new_n += f->new_n;
		}
	}
}

static bool folders_collect(struct folder_reader *r, struct fw_folders *out)
{
	struct fw_folder *f;

	out->folder = fw_arena_calloc(r->a, r->map.n + 1, sizeof(*out->folder));
	if (!out->folder)
		return false;
	for (size_t at = 0; (f = fw_map_next(&r->map, &at, NULL)) != NULL;)
		out->folder[out->n++] = *f;
	if (out->n)
		qsort(out->folder, out->n, sizeof(*out->folder), folder_compare);
	folders_sum(out);
	return true;
}

int fw_folders_read(
	struct fw_store *st, struct fw_arena *a, int64_t new_since_ms, struct fw_folders *out, struct fw_err *err)
{
	struct folder_reader r = {.a = a, .of = FW_BUF_INIT(0)};
	int rc;

	*out = (struct fw_folders){.n = 0};
	fw_map_init(&r.map, 0);
	rc = fw_store_feed_list(st, &(struct fw_feed_query){.status = -1}, folder_feed, &r, err);
	if (!rc && !r.of.rc)
		rc = fw_store_entry_counts(st, new_since_ms, folder_count, &r, err);
	if (r.failed || r.of.rc || (!rc && !folders_collect(&r, out)))
		rc = fw_no_memory(err);
	fw_map_finish(&r.map);
	fw_buf_finish(&r.of);
	return rc;
}

void fw_folder_json(struct fw_json *j, const char *key, const struct fw_folder *f)
{
	fw_json_object(j, key);
	fw_json_str(j, "folder", f->path);
	fw_json_int(j, "feeds", f->feed_n);
	fw_json_int(j, "feeds_here", f->own_n);
	fw_json_int(j, "failing", f->failing_n);
	fw_json_int(j, "new", f->new_n);
	fw_json_end(j);
}
