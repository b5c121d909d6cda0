/* SPDX-License-Identifier: ISC */
#include "query/rank.h"

#include <math.h>

#include "query/query_scratch.h"

/* BM25: how soon a repeated word stops to count, and how much a long text costs. */
#define RANK_SATURATION 1.2
#define RANK_LENGTH 0.5
#define RANK_USUAL_WORDS 300.0 /* of an entry: a constant, so that a score depends on nothing else */
#define RANK_TITLE 4.0         /* what a word in the title counts, beside one in the text */

static double rank_rarity(const struct query_node *term, const struct query_frequencies *f)
{
	double all, with;

	if (!f)
		return 1;
	all = (double)f->entry_n;
	with = fmin((double)f->count(f->ctx, term), all);
	return log1p((all - with + 0.5) / (with + 0.5));
}

static double rank_term(const struct query_node *term, struct query_scratch *s, const struct query_frequencies *f)
{
	struct entry_words *w = scratch_words(s);
	size_t in_title, n = entry_words_count(w, term->text, term->prefix, &in_title);
	double often = RANK_TITLE * (double)in_title, length = (double)w->token_n / RANK_USUAL_WORDS;

	if (term->op == QUERY_WORDS)
		often += (double)(n - in_title);
	if (often <= 0)
		return 0;
	return rank_rarity(term, f) * often * (RANK_SATURATION + 1) /
		(often + RANK_SATURATION * (1 - RANK_LENGTH + RANK_LENGTH * length));
}

static double rank_sum(const struct query_node *q, struct query_scratch *s, const struct query_frequencies *f)
{
	double sum = 0;

	if (q->op == QUERY_WORDS || q->op == QUERY_TITLE)
		return rank_term(q, s, f);
	if (q->op == QUERY_AND || q->op == QUERY_OR) {
		for (const struct query_node *c = q->child; c; c = c->next)
			sum += rank_sum(c, s, f);
	}
	return sum; /* 0 for what is excluded, and for other fields */
}

int64_t query_score(const struct query_node *q, struct query_scratch *s, const struct query_frequencies *f)
{
	return q ? llround(rank_sum(q, s, f) * 1e6) : 0;
}
