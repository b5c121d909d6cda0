/* SPDX-License-Identifier: ISC */
#include "base/suggest.h"
#include "base/str.h"

#define WORD_MAX 64

static int suggest_fold(char c)
{
	return c == '_' ? '-' : fw_lower((unsigned char)c);
}

/* Optimal string alignment distance, with three rows of the matrix. */
size_t fw_edit_distance(struct fw_str a, struct fw_str b)
{
	size_t row[3][WORD_MAX + 1] = {{0}};
	size_t *before = row[0], *last = row[1], *now = row[2], *spare;

	if (a.len > WORD_MAX || b.len > WORD_MAX)
		return SIZE_MAX;
	for (size_t j = 0; j <= b.len; j++)
		last[j] = j;
	for (size_t i = 1; i <= a.len; i++) {
		now[0] = i;
		for (size_t j = 1; j <= b.len; j++) {
			bool same = suggest_fold(a.p[i - 1]) == suggest_fold(b.p[j - 1]);

			now[j] = FW_MIN(FW_MIN(last[j] + 1, now[j - 1] + 1), last[j - 1] + (same ? 0 : 1));
			if (i > 1 && j > 1 && suggest_fold(a.p[i - 1]) == suggest_fold(b.p[j - 2]) &&
				suggest_fold(a.p[i - 2]) == suggest_fold(b.p[j - 1]))
				now[j] = FW_MIN(now[j], before[j - 2] + 1);
		}
		spare = before;
		before = last;
		last = now;
		now = spare;
	}
	return last[b.len];
}

void fw_suggest_offer(struct fw_suggest *n, const char *name)
{
	size_t d = fw_edit_distance(n->word, fw_str(name));
	/*
	 * one edit per three characters, at least one: "lst" matches "list", "foo" matches nothing
	 */
	size_t most = FW_MAX(n->word.len / 3, (size_t)1);

	if (d <= most && (!n->best || d < n->distance)) {
		n->best = name;
		n->distance = d;
	}
}
