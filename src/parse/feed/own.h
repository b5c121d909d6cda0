/* SPDX-License-Identifier: ISC */
/* A document that outlives the bytes it was read from. */
#ifndef FW_PARSE_FEED_OWN_H
#define FW_PARSE_FEED_OWN_H

#include "base/arena.h"
#include "feedwheel/document.h"

/* What the document borrows from bytes is copied into the arena, and no more than that. False: no memory; then it is of no use. */
FW_MUST_CHECK bool fw_document_own(struct fw_arena *a, struct fw_document *doc, struct fw_str bytes);

#endif
