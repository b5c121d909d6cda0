/* SPDX-License-Identifier: ISC */
/* The folders of the feeds, with what is in each of them and below it. */
#ifndef FW_API_FOLDER_H
#define FW_API_FOLDER_H

#include "feedwheel/store.h"

struct fw_json;

struct fw_folder {
	struct fw_str path; /* "News/Tech"; "": the feeds without a folder */
	int64_t feed_n, failing_n;
	int64_t new_n; /* entries stored since new_since_ms */
	size_t depth;  /* folders above it */
	size_t parent; /* the index of the folder above it, plus 1; 0: none */
	int64_t own_n; /* feeds of this folder alone */
};

struct fw_folders {
	struct fw_folder *folder; /* in the order of a tree: a folder, then what is below it */
	size_t n;
};

/*
 * Read all folders; a folder above one that has feeds is one too. Memory comes from the arena.
 * Reads all feeds; the store counts the entries since then.
 */
FW_MUST_CHECK int fw_folders_read(
	struct fw_store *st, struct fw_arena *a, int64_t new_since_ms, struct fw_folders *out, struct fw_err *err);
void fw_folder_json(struct fw_json *j, const char *key, const struct fw_folder *f);

#endif
