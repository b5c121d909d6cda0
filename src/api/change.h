/* SPDX-License-Identifier: ISC */
/*
 * The log of changes as people and clients read it: a reader's place, the JSON of a change, and the
 * versions of an entry with what differs between them. The same for the CLI and HTTP.
 */
#ifndef FW_API_CHANGE_H
#define FW_API_CHANGE_H

#include "feedwheel/store.h"

struct fw_arena;
struct fw_json;

/*
 * Where a reader is: a number, "4711"; or "4711.9000" while its first read, which began at 0, has
 * not reached 9000, the last number when it began (struct fw_change_query).
 */
#define FW_CHANGE_PLACE_MAX 44
bool fw_change_place_read(struct fw_str text, struct fw_change_query *q);
/* After fw_store_change_list(): sets after_id and base_id for the next call, and writes them. */
void fw_change_place_next(struct fw_change_query *q, char out[FW_CHANGE_PLACE_MAX]);

/*
 * {"id", "type", "entry", "feed", "revision", "at", "item"}; item as fw_entry_json() writes it with
 * these flags, none of an entry that is gone. Errors: those of fw_entry_json().
 */
FW_MUST_CHECK int fw_change_json(
	struct fw_json *j, const char *key, const struct fw_change *c, unsigned flags, struct fw_err *err);

/* Begin the object, with all members but item; the caller ends it. */
void fw_change_json_begin(struct fw_json *j, const char *key, const struct fw_change *c);

/* A version of an entry. */
struct fw_version {
	struct fw_entry_row row; /* changed_ms: when this version was stored */
	bool cut;                /* its content and summary were not kept: revision_max_bytes */
	struct fw_str text;      /* of the content, else of the summary: plain text */
};
/*
 * All versions that are kept, the newest, which is the entry as it is now, first; in the arena.
 * FW_ENOTFOUND: there is no such entry.
 */
FW_MUST_CHECK int fw_version_list(struct fw_store *st, int64_t entry_id, struct fw_arena *a, struct fw_version **out,
	size_t *n, struct fw_err *err);
/*
 * {"revision", "at", "cut", "item", "difference": {"title": [{"op", "text"}], "text": [...]}}: the
 * difference from the version before it, which is NULL if it is not kept.
 */
FW_MUST_CHECK int fw_version_json(struct fw_json *j, const char *key, const struct fw_version *v,
	const struct fw_version *before, unsigned flags, struct fw_err *err);

#endif
