/* SPDX-License-Identifier: ISC */
/* A hash table of texts that lie one after the other, without pointers. */
#include "query/match_features.h"

#include <stdlib.h>

#include "query/entry_words.h"

#define FEATURES_MIN 256
#define SLOT_NUMBER 0xffffffu

/* ---- the table ------------------------------------------------------------------------------- */

/* The same text of two kinds has two places. */
static uint64_t features_hash(enum feature_kind kind, uint64_t hash)
{
	return hash + kind * UINT64_C(0x9e3779b97f4a7c15);
}

static bool features_equal(const struct features *f, size_t number, enum feature_kind kind, struct fw_str text)
{
	const char *p = f->text.p + f->at[number];

	return f->at[number + 1] - f->at[number] == text.len + 1 && *p == (char)kind &&
		(!text.len || memcmp(p + 1, text.p, text.len) == 0);
}

/* The slot of a feature, or the free one where it belongs. */
static uint32_t *features_slot(const struct features *f, enum feature_kind kind, struct fw_str text, uint64_t hash)
{
	uint32_t tag = (uint32_t)(hash >> 56);
	size_t at = hash & (f->slot_n - 1);

	while (f->slot[at] &&
		(f->slot[at] >> 24 != tag || !features_equal(f, (f->slot[at] & SLOT_NUMBER) - 1, kind, text)))
		at = (at + 1) & (f->slot_n - 1);
	return &f->slot[at];
}

static void features_index(struct features *f, size_t number)
{
	const char *p = f->text.p + f->at[number];
	struct fw_str text = {p + 1, f->at[number + 1] - f->at[number] - 1};
	uint64_t hash = features_hash((enum feature_kind) * p, entry_word_hash(text));

	*features_slot(f, (enum feature_kind) * p, text, hash) = ((uint32_t)number + 1) | (uint32_t)(hash >> 56) << 24;
}

static bool features_resize(uint32_t **array, size_t n)
{
	uint32_t *more = reallocarray(*array, n, sizeof(**array));

	if (more)
		*array = more;
	return more != NULL;
}

/* Twice the room; at most half of the slots are used. */
static bool features_grow(struct features *f)
{
	size_t cap = f->cap ? 2 * f->cap : FEATURES_MIN;
	uint32_t *slot;

	if (!features_resize(&f->at, cap + 1) || !features_resize(&f->order_n, cap) ||
		!features_resize(&f->entry_n, cap) || !(slot = calloc(2 * cap, sizeof(*slot))))
		return false;
	free(f->slot);
	f->slot = slot;
	f->slot_n = 2 * cap;
	f->cap = cap;
	for (size_t i = 0; i < f->n; i++)
		features_index(f, i);
	return true;
}

/* ---- the interface --------------------------------------------------------------------------- */

int features_init(struct features *f)
{
	uint32_t any;

	return features_add(f, FEATURE_ANY, FW_STR(""), &any);
}

void features_finish(struct features *f)
{
	fw_buf_finish(&f->text);
	free(f->at);
	free(f->order_n);
	free(f->entry_n);
	free(f->slot);
	*f = (struct features){0};
}

int features_add(struct features *f, enum feature_kind kind, struct fw_str text, uint32_t *out)
{
	*out = f->n ? features_find(f, kind, text) : FEATURE_NONE;
	if (*out != FEATURE_NONE) {
		f->order_n[*out]++;
		return 0;
	}
	if (f->n == FEATURES_MAX || f->text.len + text.len + 1 > UINT32_MAX)
		return FW_ELIMIT;
	if (f->n == f->cap && !features_grow(f))
		return FW_ENOMEM;
	*out = (uint32_t)f->n;
	f->at[f->n] = (uint32_t)f->text.len;
	fw_buf_addc(&f->text, (char)kind);
	fw_buf_addstr(&f->text, text);
	if (f->text.rc)
		return f->text.rc;
	f->at[f->n + 1] = (uint32_t)f->text.len;
	f->order_n[f->n] = 1;
	f->entry_n[f->n] = 0;
	f->n++;
	features_index(f, *out);
	f->kinds |= 1u << kind;
	if (kind == FEATURE_PREFIX)
		f->prefix_bytes[text.len / 64] |= UINT64_C(1) << text.len % 64;
	return 0;
}

uint32_t features_find_hashed(const struct features *f, enum feature_kind kind, struct fw_str text, uint64_t hash)
{
	uint32_t slot = *features_slot(f, kind, text, features_hash(kind, hash)) & SLOT_NUMBER;

	return slot ? slot - 1 : FEATURE_NONE;
}

uint32_t features_find(const struct features *f, enum feature_kind kind, struct fw_str text)
{
	return features_find_hashed(f, kind, text, entry_word_hash(text));
}

/*
 * Entries that were learned decide; among what they do not have, orders do: they are made of the
 * words that entries are made of. A kind that is common by nature counts several times.
 */
uint64_t features_weight(const struct features *f, uint32_t feature)
{
	static const uint64_t often[FEATURE_KIND_N] = {
		[FEATURE_WORD] = 2,
		[FEATURE_PREFIX] = 16,
		[FEATURE_TITLE] = 1,
		[FEATURE_AUTHOR] = 1,
		[FEATURE_TAG] = 2,
		[FEATURE_SITE] = 8,
		[FEATURE_FEED] = 4,
		[FEATURE_FOLDER] = 256,
		[FEATURE_LANG] = 1024,
		[FEATURE_HAS] = 1024,
	};

	if (feature == 0)
		return UINT64_MAX;
	/* 2^20 entries are enough to learn from; there are less than 2^42 terms in all orders */
	return ((uint64_t)FW_MIN(f->entry_n[feature], (1u << 20) - 1) << 43) +
		often[(size_t)f->text.p[f->at[feature]]] * f->order_n[feature];
}

void features_pack(struct features *f)
{
	fw_buf_trim(&f->text);
	(void)features_resize(&f->at, f->n + 1);
	free(f->order_n);
	free(f->entry_n);
	f->order_n = f->entry_n = NULL;
}

size_t features_bytes(const struct features *f)
{
	return f->text.cap + (f->n + 1 + f->slot_n) * sizeof(uint32_t);
}
