/* SPDX-License-Identifier: ISC */
/* What all formats have in common once an entry is read: its limits and its identity. */
#ifndef FW_PARSE_FEED_NORM_H
#define FW_PARSE_FEED_NORM_H

#include "base/arena.h"
#include "base/hash.h"
#include "feedwheel/document.h"

struct fw_builder;
struct fw_scope;

struct fw_entry *fw_entry_begin(struct fw_builder *b, size_t offset); /* NULL: past the limit, or no memory */
void fw_entry_language(struct fw_builder *b, const struct fw_scope *scope); /* xml:lang where it differs from the feed's */
void fw_entry_finish(struct fw_builder *b); /* defaults, identity, limits of the open entry; it is closed */
void fw_document_finish(struct fw_builder *b);
/* Set dup_n and repeat of entries that share an id. */
void fw_entries_tell_apart(struct fw_arena *a, struct fw_document *doc);

/* 128-bit entry key over (feed id, identity), REL-03; and a 64-bit hash of what a reader would see change. */
struct fw_hash128 fw_entry_key(int64_t feed_id, const struct fw_entry *e);
uint64_t fw_entry_hash(const struct fw_entry *e);

/* Of an entry whose content is removed as a whole: a problem of the document, and of the item. */
#define FW_ALL_REMOVED "nothing in the content is safe to show"
#define FW_ALL_REMOVED_REPAIR "sanitised, the content is empty"

#endif
