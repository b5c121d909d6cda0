/* SPDX-License-Identifier: ISC */
/*
 * Snippets. A text becomes tokens: folded words that know where they stand in the original. The
 * query's words and phrases are marked on them, and the window with most different ones is written.
 */
#include "query/snippet.h"

#include <stdlib.h>

#include "base/utf8.h"
#include "query/words.h"

#define BEFORE_CHARS 40 /* shown before the first match, if there is room behind the last */
#define ELLIPSIS "\u2026"

/* A word of the text. */
struct snippet_token {
	uint32_t from, to;           /* in the text, bytes */
	uint32_t char_from, char_to; /* the same in characters */
	uint32_t at;                 /* folded, in snippet_text.folded */
	uint16_t len;
	uint16_t term; /* 1 + the term that matches from this word on; 0: none */
	bool marked;
	bool joined; /* marked together with the next word */
};

struct snippet_text {
	struct fw_str text;
	struct fw_buf folded, one;
	struct snippet_token *token;
	size_t n, cap;
	bool open; /* the last token may go on */
	int rc;
};

/* The words and phrases that the query wants. */
struct snippet_terms {
	const struct query_node *term[QUERY_TERMS_MAX];
	size_t n;
	bool first[256]; /* first bytes of their first words */
};

static void terms_collect(struct snippet_terms *t, const struct query_node *q)
{
	if (q->op == QUERY_AND || q->op == QUERY_OR) {
		for (const struct query_node *c = q->child; c; c = c->next)
			terms_collect(t, c);
	} else if ((q->op == QUERY_WORDS || q->op == QUERY_TITLE) && t->n < QUERY_TERMS_MAX) {
		t->term[t->n++] = q;
		t->first[(unsigned char)q->text.p[0]] = true;
	}
}

/* ---- the text as tokens ---------------------------------------------------------------------- */

static void snippet_finish(struct snippet_text *s)
{
	fw_buf_finish(&s->folded);
	fw_buf_finish(&s->one);
	free(s->token);
}

static struct snippet_token *snippet_token_new(struct snippet_text *s)
{
	if (s->n == s->cap) {
		size_t cap = s->cap ? 2 * s->cap : 256;
		struct snippet_token *more = reallocarray(s->token, cap, sizeof(*more));

		if (!more) {
			s->rc = FW_ENOMEM;
			return NULL;
		}
		s->token = more;
		s->cap = cap;
	}
	s->token[s->n] = (struct snippet_token){.at = (uint32_t)s->folded.len};
	return &s->token[s->n++];
}

/* A folded byte of the character at text[from..to). A space ends a word. */
static void snippet_byte(struct snippet_text *s, char c, size_t from, size_t to, size_t char_n)
{
	bool is_word = (unsigned char)c >= 0x80 || fw_is_alnum((unsigned char)c);
	struct snippet_token *t;

	if (!is_word) {
		s->open = false;
		return;
	}
	t = s->open ? &s->token[s->n - 1] : snippet_token_new(s);
	if (!t)
		return;
	if (!s->open) {
		t->from = (uint32_t)from;
		t->char_from = (uint32_t)char_n;
	}
	s->open = true;
	t->to = (uint32_t)to;
	t->char_to = (uint32_t)char_n + 1;
	if (t->len < UINT16_MAX) {
		t->len++;
		fw_buf_addc(&s->folded, c);
	}
}

/* Bytes of the character at text[at], with a sound mark behind a kana. */
static size_t snippet_char_bytes(struct fw_str text, size_t at)
{
	size_t n, mark_n = 0;
	uint32_t mark;

	(void)fw_utf8_get(text.p + at, text.len - at, &n);
	if (n < 3 || at + n >= text.len)
		return n;
	mark = fw_utf8_get(text.p + at + n, text.len - at - n, &mark_n);
	return mark == 0x3099 || mark == 0x309a || mark == 0xff9e || mark == 0xff9f ? n + mark_n : n;
}

/* Cut at 64 bytes, as query_token_next() cuts. */
static void snippet_cut(struct snippet_text *s)
{
	for (size_t i = 0; i < s->n; i++) {
		struct snippet_token *t = &s->token[i];

		if (t->len > sizeof(((struct query_token *)0)->text))
			t->len = (uint16_t)fw_utf8_cut(
				s->folded.p + t->at, t->len, sizeof(((struct query_token *)0)->text));
	}
}

static void snippet_read(struct snippet_text *s, struct fw_str text)
{
	size_t n, char_n = 0;

	s->text = text = fw_str_sub(text, 0, QUERY_TEXT_MAX);
	for (size_t at = 0; at < text.len && !s->rc; at += n, char_n++) {
		n = 1;
		if ((unsigned char)text.p[at] < 0x80) {
			snippet_byte(s, (char)fw_lower((unsigned char)text.p[at]), at, at + 1, char_n);
			continue;
		}
		n = snippet_char_bytes(text, at);
		fw_buf_reset(&s->one);
		query_words(&s->one, fw_str_sub(text, at, at + n));
		if (!s->one.len && s->open)
			s->token[s->n - 1].to = (uint32_t)(at + n); /* an accent behind its letter */
		for (size_t i = 0; i < s->one.len; i++)
			snippet_byte(s, s->one.p[i], at, at + n, char_n);
		s->rc = s->rc ? s->rc : s->one.rc;
	}
	s->rc = s->rc ? s->rc : s->folded.rc;
	if (!s->rc)
		snippet_cut(s);
}

/* ---- matches --------------------------------------------------------------------------------- */

static struct fw_str snippet_word(const struct snippet_text *s, size_t i)
{
	return (struct fw_str){s->folded.p + s->token[i].at, s->token[i].len};
}

/* The number of words that the term matches from token i on; 0: none. */
static size_t snippet_match(const struct snippet_text *s, size_t i, const struct query_node *term)
{
	struct fw_str rest = term->text;
	size_t n = 0;

	for (; rest.len; n++) {
		struct fw_str word = fw_str_split(rest, ' ', &rest);
		bool prefix = !rest.len && term->prefix;

		if (i + n >= s->n)
			return 0;
		if (prefix ? !fw_str_starts(snippet_word(s, i + n), word) : !fw_str_eq(snippet_word(s, i + n), word))
			return 0;
	}
	return n;
}

static void snippet_mark(struct snippet_text *s, const struct snippet_terms *terms, bool title)
{
	for (size_t i = 0; i < s->n; i++) {
		for (size_t k = 0; terms->first[(unsigned char)*snippet_word(s, i).p] && k < terms->n; k++) {
			bool wanted = title || terms->term[k]->op == QUERY_WORDS;
			size_t n = wanted ? snippet_match(s, i, terms->term[k]) : 0;

			for (size_t j = 0; j < n; j++) {
				s->token[i + j].marked = true;
				s->token[i + j].joined |= j + 1 < n;
			}
			if (n && !s->token[i].term)
				s->token[i].term = (uint16_t)(k + 1);
		}
	}
	/* words of one character, such as a fraction, are marked as one */
	for (size_t i = s->n; i-- > 1;) {
		if (s->token[i].from < s->token[i - 1].to) {
			s->token[i - 1].marked |= s->token[i].marked;
			s->token[i - 1].joined = s->token[i].joined;
		}
	}
}

/* ---- the window ------------------------------------------------------------------------------ */

struct snippet_window {
	size_t first, last; /* tokens with a match */
	size_t term_n;      /* different terms in it; 0: no match */
};

/* The first window with most different terms: both ends move forward only. */
static struct snippet_window snippet_best(const struct snippet_text *s)
{
	struct snippet_window best = {0};
	uint32_t count[QUERY_TERMS_MAX + 1] = {0};
	size_t left = 0, term_n = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct snippet_token *t = &s->token[i];

		if (!t->term)
			continue;
		term_n += count[t->term]++ == 0;
		while (left < i && (!s->token[left].term || t->char_to - s->token[left].char_from > SNIPPET_CHARS)) {
			uint16_t term = s->token[left++].term;

			term_n -= term && --count[term] == 0;
		}
		if (term_n > best.term_n)
			best = (struct snippet_window){left, i, term_n};
	}
	return best;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* The part of the text to show, in tokens: from..to). */
static void snippet_bounds(const struct snippet_text *s, const struct snippet_window *w, size_t *from, size_t *to)
{
	size_t first = w->term_n ? w->first : 0, start, end;

	for (*from = first; *from > 0; --*from) {
		start = s->token[*from - 1].char_from;
		if (s->token[first].char_from - start > BEFORE_CHARS ||
			s->token[w->last].char_to - start > SNIPPET_CHARS)
			break;
	}
	start = *from ? s->token[*from].char_from : 0;
	for (*to = first; *to < s->n; ++*to) {
		end = s->token[*to].char_to;
		if (end - start > SNIPPET_CHARS)
			break;
	}
	/* the text ends soon: show more of what is before */
	end = *to ? s->token[*to - 1].char_to : 0;
	while (*to == s->n && *from > 0 && end - s->token[*from - 1].char_from <= SNIPPET_CHARS)
		--*from;
}

/* Append text, white space as one space, without control characters. Returns the characters. */
static size_t snippet_text_add(struct fw_buf *out, size_t begin, struct fw_str text, size_t char_max)
{
	size_t char_n = 0, n;

	for (size_t i = 0; i < text.len && char_n < char_max; i += n) {
		uint32_t c = fw_utf8_get(text.p + i, text.len - i, &n);
		bool space = c <= ' ' || c == 0x7f || c == 0xa0;

		if (space && (out->len == begin || out->p[out->len - 1] == ' '))
			continue;
		if (!space && fw_utf8_is_unsafe(c))
			continue;
		if (space)
			fw_buf_addc(out, ' ');
		else
			fw_buf_addcp(out, c);
		char_n++;
	}
	return char_n;
}

static void snippet_write(struct fw_buf *out, const struct snippet_text *s, const struct snippet_window *w)
{
	size_t begin = out->len, from, to, at, left = SNIPPET_CHARS + BEFORE_CHARS; /* spaces, punctuation */
	bool inside = false;

	snippet_bounds(s, w, &from, &to);
	to = FW_MAX(to, FW_MIN(from + 1, s->n)); /* a word longer than the window is cut */
	at = from ? s->token[from].from : 0;
	if (from)
		fw_buf_adds(out, ELLIPSIS);
	begin = from ? out->len : begin;
	for (size_t i = from; i < to && left; i++) {
		const struct snippet_token *t = &s->token[i];

		if (t->to <= at)
			continue; /* another word of the same character */
		left -= snippet_text_add(out, begin, fw_str_sub(s->text, at, t->from), left);
		if (t->marked && !inside)
			fw_buf_addc(out, FW_MARK_BEGIN);
		left -= snippet_text_add(out, begin, fw_str_sub(s->text, t->from, t->to), left);
		inside = t->marked && t->joined;
		if (t->marked && !inside)
			fw_buf_addc(out, FW_MARK_END);
		at = t->to;
	}
	if (inside) /* the phrase is cut */
		fw_buf_addc(out, FW_MARK_END);
	if (to < s->n || !left)
		fw_buf_adds(out, ELLIPSIS);
	else
		(void)snippet_text_add(out, begin, fw_str_sub(s->text, at, s->text.len), left);
}

int query_snippet(struct fw_buf *out, const struct query_node *q, const struct snippet_texts *texts)
{
	/* the title is last: it is shown beside the snippet anyway */
	const struct fw_str text[] = {texts->summary, texts->content, texts->title};
	struct snippet_terms terms = {.n = 0};
	struct snippet_text best = {.rc = 0};
	struct snippet_window best_window = {0};
	int rc = 0;

	if (q)
		terms_collect(&terms, q);
	for (size_t i = 0; i < FW_N(text); i++) {
		bool title = i == FW_N(text) - 1;
		struct snippet_text s = {.rc = 0};
		struct snippet_window w;
		bool better;

		snippet_read(&s, text[i]);
		rc = s.rc;
		if (rc) { /* its words may be missing */
			snippet_finish(&s);
			break;
		}
		snippet_mark(&s, &terms, title);
		w = snippet_best(&s);
		better = title ? w.term_n && !best_window.term_n : w.term_n > best_window.term_n;
		if (better || (!best.n && s.n) || !best.text.len) {
			snippet_finish(&best);
			best = s;
			best_window = w;
		} else {
			snippet_finish(&s);
		}
	}
	if (!rc)
		snippet_write(out, &best, &best_window);
	snippet_finish(&best);
	return rc ? rc : out->rc;
}
