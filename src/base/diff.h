/* SPDX-License-Identifier: ISC */
/*
 * The difference of two texts, word by word (Myers, "An O(ND) Difference Algorithm and Its
 * Variations", 1986). White space between words does not count. An ideograph is a word.
 */
#ifndef FW_BASE_DIFF_H
#define FW_BASE_DIFF_H

#include "base/str.h"

enum fw_diff_op { FW_DIFF_SAME, FW_DIFF_REMOVED, FW_DIFF_ADDED };

/* text: with the white space behind it; of the later text if it is the same. */
typedef void fw_diff_cb(void *ctx, enum fw_diff_op op, struct fw_str text);

/*
 * Call back for each run of words, in order; where words are replaced, the removed ones come first.
 * Time and memory are limited: of texts that differ in more than 1,000 words, all between the first
 * and the last difference is replaced. FW_ENOMEM, then nothing was called.
 */
FW_MUST_CHECK int fw_text_diff(struct fw_str before, struct fw_str after, fw_diff_cb *cb, void *ctx);

#endif
