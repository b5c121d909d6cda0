/* SPDX-License-Identifier: ISC */
/* Completes an entry of any format once it is read: defaults, limits and identity. */
#ifndef FW_PARSE_FEED_NORMALIZE_H
#define FW_PARSE_FEED_NORMALIZE_H

#include "base/arena.h"
#include "base/hash.h"
#include "feedwheel/document.h"

struct fw_builder;
struct fw_scope;

/* NULL: entry limit reached, or out of memory */
struct fw_entry *fw_entry_begin(struct fw_builder *b, size_t offset);
/* sets xml:lang if it differs from the feed's */
void fw_entry_language(struct fw_builder *b, const struct fw_scope *scope);
/* applies defaults, identity and limits to the open entry and closes it */
void fw_entry_finish(struct fw_builder *b);
void fw_document_finish(struct fw_builder *b);

/*
 * The 128-bit entry key, from feed id and identity (REL-03), and a 64-bit hash of the visible
 * content.
 */
struct fw_hash128 fw_entry_key(int64_t feed_id, const struct fw_entry *e);
uint64_t fw_entry_hash(const struct fw_entry *e);

/* The problem of a document or item whose whole content the sanitiser removes. */
#define FW_ALL_REMOVED "nothing in the content is safe to show"
#define FW_ALL_REMOVED_REPAIR "sanitised, the content is empty"

#endif
