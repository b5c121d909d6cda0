/* SPDX-License-Identifier: ISC */
/* The documents of test cases and of the corpus, one after another. */
#ifndef FW_TEST_DOCUMENTS_H
#define FW_TEST_DOCUMENTS_H

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/str.h"

static inline int is_document(const struct dirent *d)
{
	return d->d_name[0] != '.' && !fw_str_ends(fw_str(d->d_name), FW_STR(".expect.json"));
}

static inline void slurp(const char *dir, const char *name, struct fw_buf *out)
{
	char path[1000], chunk[65536];
	size_t n;
	FILE *f;

	fw_buf_init(out, 0);
	ck_assert(fw_snprintf(path, sizeof(path), "%s/%s", dir, name));
	f = fopen(path, "rb");
	ck_assert_ptr_nonnull(f);
	while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
		fw_buf_add(out, chunk, n);
	fclose(f);
	ck_assert_int_eq(out->rc, 0);
}

typedef void check_fn(const char *name, struct fw_str bytes);

/*
 * Visits every `every`-th document of folder `sub` of the source tree that is not larger than max.
 * Returns the number of documents; -1: no such folder.
 */
static inline int each_of(const char *sub, check_fn *fn, int every, size_t max)
{
	struct dirent **list;
	struct fw_buf b;
	char dir[500];
	int n, i;

	ck_assert(fw_snprintf(dir, sizeof(dir), "%s/%s", getenv("FW_SOURCE_ROOT"), sub));
	n = scandir(dir, &list, is_document, alphasort);
	for (i = 0; i < n; i++) {
		if (i % every == 0) {
			slurp(dir, list[i]->d_name, &b);
			if (b.len <= max)
				fn(list[i]->d_name, b.p ? fw_buf_str(&b) : FW_STR(""));
			fw_buf_finish(&b);
		}
		free(list[i]);
	}
	if (n >= 0)
		free(list);
	return n;
}

#endif
