/* SPDX-License-Identifier: ISC */
#include "base/diff.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/utf8.h"

#define EDITS_MAX 1000
#define IDEOGRAPHS_FROM 0x2e80 /* CJK radicals; all scripts without spaces between words that follow */

struct words {
	struct fw_str *at; /* each with the white space behind it */
	size_t n;
};

/* The length of the word at the start of the text, which is not empty. */
static size_t word_len(struct fw_str text)
{
	size_t n = 0;

	while (n < text.len && !fw_is_space(text.p[n])) {
		size_t len;

		if (fw_utf8_get(text.p + n, text.len - n, &len) >= IDEOGRAPHS_FROM)
			return n ? n : len;
		n += len;
	}
	return n;
}

static bool diff_split(struct fw_str text, struct words *w)
{
	size_t cap = 0;

	*w = (struct words){0};
	while (text.len) {
		size_t n = word_len(text);

		while (n < text.len && fw_is_space(text.p[n]))
			n++;
		if (w->n == cap) {
			struct fw_str *more;

			cap = cap ? 2 * cap : 256;
			more = reallocarray(w->at, cap, sizeof(*more));
			if (!more)
				return false;
			w->at = more;
		}
		w->at[w->n++] = fw_str_sub(text, 0, n);
		text = fw_str_sub(text, n, text.len);
	}
	return true;
}

static bool words_equal(struct fw_str a, struct fw_str b)
{
	while (a.len && fw_is_space(a.p[a.len - 1]))
		a.len--;
	while (b.len && fw_is_space(b.p[b.len - 1]))
		b.len--;
	return fw_str_eq(a, b);
}

/* ---- the shortest edit ----------------------------------------------------------------------- */

/* a and b without the words that both begin and end with. */
struct diff {
	const struct fw_str *a, *b;
	int a_n, b_n;
	/*
	 * Row d has d + 1 numbers: how far into a d edits reach on the diagonals -d, -d + 2 ... d
	 * (words of a that were passed, less those of b).
	 */
	int *row[EDITS_MAX + 1];
};

/* Passes words that are the same, from x in a on the diagonal k. */
static int diff_slide(const struct diff *f, int x, int k)
{
	while (x < f->a_n && x - k < f->b_n && words_equal(f->a[x], f->b[x - k]))
		x++;
	return x;
}

/* Is the best way to diagonal k with d edits an added word, from k + 1? Else a removed one. */
static bool diff_adds(const int *before, int d, int k)
{
	if (k == -d || k == d)
		return k == -d;
	return before[(k - 1 + d - 1) / 2] < before[(k + 1 + d - 1) / 2];
}

static int diff_reach(const int *before, int d, int k)
{
	return diff_adds(before, d, k) ? before[(k + 1 + d - 1) / 2] : before[(k - 1 + d - 1) / 2] + 1;
}

/* The number of edits, or one of these. */
#define TOO_MANY (-1)
#define NO_MEMORY (-2)

static int diff_search(struct diff *f)
{
	for (int d = 0; d <= EDITS_MAX && d <= f->a_n + f->b_n; d++) {
		f->row[d] = calloc((size_t)d + 1, sizeof(*f->row[d]));
		if (!f->row[d])
			return NO_MEMORY;
		for (int k = -d; k <= d; k += 2) {
			int x = diff_slide(f, d ? diff_reach(f->row[d - 1], d, k) : 0, k);

			f->row[d][(k + d) / 2] = x;
			if (x >= f->a_n && x - k >= f->b_n)
				return d;
		}
	}
	return TOO_MANY;
}

/* Mark the words that are removed and added, going back from the end. */
static void diff_trace(const struct diff *f, int edits, bool *removed, bool *added)
{
	int k = f->a_n - f->b_n;

	for (int d = edits; d > 0; d--) {
		bool adds = diff_adds(f->row[d - 1], d, k);
		int x = diff_reach(f->row[d - 1], d, k);

		if (adds)
			added[x - k - 1] = true;
		else
			removed[x - 1] = true;
		k += adds ? 1 : -1;
	}
}

/* ---- telling --------------------------------------------------------------------------------- */

struct telling {
	fw_diff_cb *cb;
	void *ctx;
};

static void tell(const struct telling *t, enum fw_diff_op op, const struct fw_str *word, size_t n)
{
	if (n)
		t->cb(t->ctx, op, (struct fw_str){word->p, (size_t)(word[n - 1].p - word->p) + word[n - 1].len});
}

static size_t run_of(const bool *mark, size_t n, bool value)
{
	size_t i = 0;

	while (i < n && mark[i] == value)
		i++;
	return i;
}

static void diff_tell(const struct diff *f, const bool *removed, const bool *added, const struct telling *t)
{
	size_t x = 0, y = 0, a_n = (size_t)f->a_n, b_n = (size_t)f->b_n;

	while (x < a_n || y < b_n) {
		size_t gone = run_of(removed + x, a_n - x, true), come = run_of(added + y, b_n - y, true), same;

		tell(t, FW_DIFF_REMOVED, f->a + x, gone);
		tell(t, FW_DIFF_ADDED, f->b + y, come);
		x += gone;
		y += come;
		same = FW_MIN(run_of(removed + x, a_n - x, false), run_of(added + y, b_n - y, false));
		tell(t, FW_DIFF_SAME, f->b + y, same);
		x += same;
		y += same;
	}
}

/* 0 and the marks; or FW_ENOMEM. */
static int diff_mark(struct diff *f, bool *mark)
{
	int edits = diff_search(f);

	if (edits == TOO_MANY)
		memset(mark, true, (size_t)f->a_n + (size_t)f->b_n);
	else if (edits >= 0)
		diff_trace(f, edits, mark, mark + f->a_n);
	for (int d = 0; d <= EDITS_MAX; d++)
		free(f->row[d]);
	return edits == NO_MEMORY ? FW_ENOMEM : 0;
}

static int diff_words(const struct words *a, const struct words *b, const struct telling *t)
{
	size_t most = FW_MIN(a->n, b->n), head = 0, tail = 0;
	bool *mark = calloc(a->n + b->n + 1, sizeof(*mark));
	struct diff *f = calloc(1, sizeof(*f));
	int rc = f && mark ? 0 : FW_ENOMEM;

	while (head < most && words_equal(a->at[head], b->at[head]))
		head++;
	while (tail < most - head && words_equal(a->at[a->n - 1 - tail], b->at[b->n - 1 - tail]))
		tail++;
	assert((a->at || !a->n) && (b->at || !b->n));
	if (!rc) {
		*f = (struct diff){.a = a->at + head,
			.b = b->at + head,
			.a_n = (int)(a->n - head - tail),
			.b_n = (int)(b->n - head - tail)};
		rc = diff_mark(f, mark);
	}
	if (!rc) {
		tell(t, FW_DIFF_SAME, b->at, head);
		diff_tell(f, mark, mark + f->a_n, t);
		tell(t, FW_DIFF_SAME, b->at + b->n - tail, tail);
	}
	free(mark);
	free(f);
	return rc;
}

int fw_text_diff(struct fw_str before, struct fw_str after, fw_diff_cb *cb, void *ctx)
{
	struct words a = {0}, b = {0};
	int rc = before.len < INT32_MAX && after.len < INT32_MAX && diff_split(before, &a) && diff_split(after, &b) ?
		0 :
		FW_ENOMEM;

	rc = rc ? rc : diff_words(&a, &b, &(struct telling){cb, ctx});
	free(a.at);
	free(b.at);
	return rc;
}
