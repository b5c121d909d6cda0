/* SPDX-License-Identifier: ISC */
/* Makes a document independent of the bytes that it was parsed from. */
#ifndef FW_PARSE_FEED_DETACH_H
#define FW_PARSE_FEED_DETACH_H

#include "base/arena.h"
#include "feedwheel/document.h"

/*
 * Copy into the arena what the document borrows from bytes, and nothing else. False: out of memory;
 * the document is unusable then.
 */
FW_MUST_CHECK bool fw_document_detach(struct fw_arena *a, struct fw_document *doc, struct fw_str bytes);

#endif
