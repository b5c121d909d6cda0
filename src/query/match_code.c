/* SPDX-License-Identifier: ISC */
/*
 * The code of a query, in prefix notation:
 *
 *	AND, OR   length of the children (3 bytes), the children
 *	NOT       the child
 *	FEATURE   its number (varint)
 *	TERM      enum query_op, prefix, of SINCE and UNTIL at_ms (8 bytes), text (varint and bytes)
 *
 * A term that needs more than features, such as a phrase, is an AND of the features that it
 * requires, and the term: so it is looked at only where all its words are.
 */
#include "query/match_code.h"

#include <assert.h>

#include "query/query.h"

enum { CODE_AND, CODE_OR, CODE_NOT, CODE_FEATURE, CODE_TERM };

#define LENGTH_BYTES 3

/* ---- writing --------------------------------------------------------------------------------- */

struct code_writer {
	struct fw_buf *out;
	struct features *features;
	int rc;
};

static void code_varint_add(struct fw_buf *out, size_t n)
{
	for (; n >= 128; n >>= 7)
		fw_buf_addc(out, (char)(n | 128));
	fw_buf_addc(out, (char)n);
}

/* Begin an AND or OR; code_end() gets what this returns. */
static size_t code_begin(struct code_writer *w, int op)
{
	fw_buf_addc(w->out, (char)op);
	fw_buf_add(w->out, "\0\0\0", LENGTH_BYTES);
	return w->out->len;
}

static void code_end(struct code_writer *w, size_t from)
{
	size_t len = w->out->len - from;

	assert(len >> 8 * LENGTH_BYTES == 0); /* a query has QUERY_LENGTH_MAX bytes */
	for (size_t i = 0; !w->out->rc && i < LENGTH_BYTES; i++)
		w->out->p[from - LENGTH_BYTES + i] = (char)(len >> 8 * i);
}

static void code_feature_add(struct code_writer *w, enum feature_kind kind, struct fw_str text)
{
	uint32_t feature;
	int rc = w->rc ? w->rc : features_add(w->features, kind, text, &feature);

	if (rc) {
		w->rc = rc;
		return;
	}
	fw_buf_addc(w->out, CODE_FEATURE);
	code_varint_add(w->out, feature);
}

static void code_lower_feature_add(struct code_writer *w, enum feature_kind kind, struct fw_str text)
{
	struct fw_buf lower = FW_BUF_INIT(0);

	for (size_t i = 0; i < text.len; i++)
		fw_buf_addc(&lower, (char)fw_lower((unsigned char)text.p[i]));
	w->rc = w->rc ? w->rc : lower.rc;
	code_feature_add(w, kind, fw_buf_str(&lower));
	fw_buf_finish(&lower);
}

static void code_term_add(struct code_writer *w, const struct query_node *q)
{
	fw_buf_addc(w->out, CODE_TERM);
	fw_buf_addc(w->out, (char)q->op);
	fw_buf_addc(w->out, (char)q->prefix);
	if (q->op == QUERY_SINCE || q->op == QUERY_UNTIL) {
		fw_buf_add(w->out, &q->at_ms, sizeof(q->at_ms));
		code_varint_add(w->out, 0);
		return;
	}
	code_varint_add(w->out, q->text.len);
	fw_buf_addstr(w->out, q->text);
}

/* Does one feature decide a term? */
static bool code_is_feature(const struct query_node *q)
{
	switch (q->op) {
	case QUERY_WORDS:
		return q->word_n == 1;
	case QUERY_TITLE:
	case QUERY_AUTHOR:
		return q->word_n == 1 && !q->prefix;
	case QUERY_TAG:
		return !q->prefix;
	case QUERY_FEED:
		return q->number != 0;
	case QUERY_SITE:
	case QUERY_FOLDER:
	case QUERY_LANG:
	case QUERY_HAS:
		return true;
	case QUERY_URL:
	case QUERY_SINCE:
	case QUERY_UNTIL:
	case QUERY_AND:
	case QUERY_OR:
	case QUERY_NOT:
		break;
	}
	return false;
}

/* The features of a term's words. Of an author's prefix there is none. */
static void code_words_add(struct code_writer *w, const struct query_node *q, enum feature_kind kind)
{
	struct fw_str rest = q->text;

	while (rest.len) {
		struct fw_str word = fw_str_split(rest, ' ', &rest);

		if (rest.len || !q->prefix)
			code_feature_add(w, kind, word);
		else if (kind != FEATURE_AUTHOR)
			code_feature_add(w, FEATURE_PREFIX, word);
	}
}

static void code_features_add(struct code_writer *w, const struct query_node *q)
{
	char has = (char)q->number;

	switch (q->op) {
	case QUERY_WORDS:
		code_words_add(w, q, FEATURE_WORD);
		break;
	case QUERY_TITLE:
		code_words_add(w, q, FEATURE_TITLE);
		break;
	case QUERY_AUTHOR:
		code_words_add(w, q, FEATURE_AUTHOR);
		break;
	case QUERY_TAG:
		if (!q->prefix)
			code_feature_add(w, FEATURE_TAG, q->text);
		break;
	case QUERY_SITE:
		code_lower_feature_add(w, FEATURE_SITE, q->text);
		break;
	case QUERY_FEED:
		if (q->number)
			code_feature_add(w, FEATURE_FEED, (struct fw_str){(const char *)&q->number, sizeof(q->number)});
		break;
	case QUERY_FOLDER:
		code_feature_add(w, FEATURE_FOLDER, q->text);
		break;
	case QUERY_LANG:
		code_lower_feature_add(w, FEATURE_LANG, q->text);
		break;
	case QUERY_HAS:
		code_feature_add(w, FEATURE_HAS, (struct fw_str){&has, 1});
		break;
	case QUERY_URL:
	case QUERY_SINCE:
	case QUERY_UNTIL:
	case QUERY_AND:
	case QUERY_OR:
	case QUERY_NOT:
		break;
	}
}

static void code_add(struct code_writer *w, const struct query_node *q);

/* The children of an AND: features first, because they cost least. An AND in it is part of it. */
static void code_and_add(struct code_writer *w, const struct query_node *q, bool features)
{
	for (const struct query_node *c = q->child; c; c = c->next) {
		if (c->op == QUERY_AND) {
			code_and_add(w, c, features);
		} else if (code_is_feature(c) == features) {
			bool is_operator = c->op == QUERY_OR || c->op == QUERY_NOT;

			if (!is_operator)
				code_features_add(w, c);
			if (is_operator)
				code_add(w, c);
			else if (!features)
				code_term_add(w, c);
		}
	}
}

static void code_add(struct code_writer *w, const struct query_node *q)
{
	size_t from;

	if (q->op == QUERY_NOT) {
		fw_buf_addc(w->out, CODE_NOT);
		code_add(w, q->child);
	} else if (q->op == QUERY_OR) {
		from = code_begin(w, CODE_OR);
		for (const struct query_node *c = q->child; c; c = c->next)
			code_add(w, c);
		code_end(w, from);
	} else if (q->op == QUERY_AND) {
		from = code_begin(w, CODE_AND);
		code_and_add(w, q, true);
		code_and_add(w, q, false);
		code_end(w, from);
	} else if (code_is_feature(q)) {
		code_features_add(w, q);
	} else {
		from = code_begin(w, CODE_AND);
		code_features_add(w, q);
		code_term_add(w, q);
		code_end(w, from);
	}
}

int match_code_write(struct fw_buf *out, struct features *f, const struct query_node *q)
{
	struct code_writer w = {.out = out, .features = f};

	if (q)
		code_add(&w, q);
	else
		code_end(&w, code_begin(&w, CODE_AND));
	return w.rc ? w.rc : out->rc;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct code_reader {
	const char *p;
};

static size_t code_varint(struct code_reader *r)
{
	size_t n = 0;

	for (unsigned shift = 0;; shift += 7) {
		unsigned char c = (unsigned char)*r->p++;

		n |= (size_t)(c & 127) << shift;
		if (c < 128)
			return n;
	}
}

/* Where the children of the AND or OR end. */
static const char *code_children(struct code_reader *r)
{
	size_t n = 0;

	for (size_t i = 0; i < LENGTH_BYTES; i++)
		n |= (size_t)(unsigned char)*r->p++ << 8 * i;
	return r->p + n;
}

static void code_term(struct code_reader *r, struct query_node *out)
{
	*out = (struct query_node){.op = (enum query_op)r->p[0], .prefix = r->p[1] != 0};
	r->p += 2;
	if (out->op == QUERY_SINCE || out->op == QUERY_UNTIL) {
		memcpy(&out->at_ms, r->p, sizeof(out->at_ms));
		r->p += sizeof(out->at_ms);
	}
	out->text.len = code_varint(r);
	out->text.p = r->p;
	r->p += out->text.len;
}

static bool code_matches(struct code_reader *r, const uint64_t *bits, struct query_scratch *s)
{
	struct query_node term;
	const char *end;
	char op = *r->p++;

	switch (op) {
	case CODE_FEATURE:
		return feature_is_set(bits, code_varint(r));
	case CODE_NOT:
		return !code_matches(r, bits, s);
	case CODE_TERM:
		code_term(r, &term);
		return query_term_matches(&term, s);
	default:
		break;
	}
	end = code_children(r);
	while (r->p < end) {
		if (code_matches(r, bits, s) == (op == CODE_OR)) {
			r->p = end;
			return op == CODE_OR;
		}
	}
	return op == CODE_AND;
}

bool match_code_matches(const char *code, const uint64_t *bits, struct query_scratch *s)
{
	struct code_reader r = {code};

	return code_matches(&r, bits, s);
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* How common the keys of a code are together; UINT64_MAX: it has none. */
static uint64_t code_weight(struct code_reader *r, const struct features *f)
{
	uint64_t weight, sum = 0, least = UINT64_MAX;
	struct query_node term;
	const char *end;
	char op = *r->p++;

	switch (op) {
	case CODE_FEATURE:
		return features_weight(f, (uint32_t)code_varint(r));
	case CODE_NOT:
		(void)code_weight(r, f);
		return UINT64_MAX;
	case CODE_TERM:
		code_term(r, &term);
		return UINT64_MAX;
	default:
		break;
	}
	end = code_children(r);
	while (r->p < end) {
		weight = code_weight(r, f);
		least = FW_MIN(least, weight);
		sum = weight > UINT64_MAX - sum ? UINT64_MAX : sum + weight;
	}
	return op == CODE_AND ? least : sum;
}

static void code_keys(const char *code, const struct features *f, match_key_cb *on_key, void *ctx)
{
	struct code_reader r = {code + 1};
	uint64_t weight, least = UINT64_MAX;
	const char *end, *best = NULL, *child;

	if (*code == CODE_FEATURE) {
		on_key(ctx, (uint32_t)code_varint(&r));
		return;
	}
	for (end = code_children(&r); r.p < end;) {
		child = r.p;
		weight = code_weight(&r, f);
		if (*code == CODE_OR) {
			code_keys(child, f, on_key, ctx);
		} else if (weight < least) {
			best = child;
			least = weight;
		}
	}
	if (best)
		code_keys(best, f, on_key, ctx);
}

void match_code_keys(const char *code, const struct features *f, match_key_cb *on_key, void *ctx)
{
	struct code_reader r = {code};

	if (code_weight(&r, f) == UINT64_MAX)
		on_key(ctx, 0);
	else
		code_keys(code, f, on_key, ctx);
}

uint32_t match_code_second(const char *code, const struct features *f, uint32_t key)
{
	struct code_reader r = {code + 1};
	uint64_t weight, least = UINT64_MAX;
	uint32_t best = FEATURE_NONE;

	if (*code != CODE_AND)
		return FEATURE_NONE;
	for (const char *end = code_children(&r); r.p < end;) {
		struct code_reader child = {r.p + 1};
		bool is_feature = *r.p == CODE_FEATURE;

		weight = code_weight(&r, f);
		if (is_feature && weight < least) {
			uint32_t feature = (uint32_t)code_varint(&child);

			if (feature != key) {
				best = feature;
				least = weight;
			}
		}
	}
	return best;
}
