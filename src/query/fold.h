/* SPDX-License-Identifier: ISC */
/* Fold a character for the search index: one folding for all engines. Used by words.c. */
#ifndef FW_STORE_FOLD_H
#define FW_STORE_FOLD_H

#include "feedwheel/types.h"

#define FW_FOLD_MAX 20

/*
 * Fold c: lower case, without accents, compatible forms (wide characters, ligatures) decomposed;
 * "ss" for sharp s. The results are letters, digits, marks that distinguish words, or a space where
 * c separates words. Returns their number; 0: c is dropped (an accent, a soft hyphen); -1: c ends a
 * word.
 */
int query_fold(uint32_t c, uint32_t out[FW_FOLD_MAX]);

/* Compose a folded kana with the sound mark after it; 0: there is no such character. */
uint32_t query_fold_kana(uint32_t kana, uint32_t mark);

#endif
