/* SPDX-License-Identifier: ISC */
/* What a character is in an index of words: one folding for all engines. For words.c; drivers take what that makes. */
#ifndef FW_STORE_FOLD_H
#define FW_STORE_FOLD_H

#include "feedwheel/types.h"

#define FW_FOLD_MAX 20

/*
 * The characters that c is looked for as: case folded, without accents, compatible forms (wide
 * ones, ligatures) taken apart; "ss" for a sharp s. They are letters, digits, marks that tell words
 * apart, or a space where c falls into several words. Returns how many; 0: c is passed over (an
 * accent, a soft hyphen); -1: c ends a word.
 */
int fw_store_fold(uint32_t c, uint32_t out[FW_FOLD_MAX]);

/* A folded kana and the sound mark behind it as one character; 0: that is none. */
uint32_t fw_store_fold_kana(uint32_t kana, uint32_t mark);

#endif
