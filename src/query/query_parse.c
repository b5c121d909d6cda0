/* SPDX-License-Identifier: ISC */
/* A query's text to its tree, by recursive descent: one function for each rule of query.h. */
#include <assert.h>
#include <stdarg.h>

#include "base/suggest.h"
#include "base/utf8.h"
#include "base/when.h"
#include "query/query.h"
#include "query/words.h"

#define SHOWN_BYTES 40 /* of the query's text in an error */

struct query_parser {
	struct fw_arena *a;
	struct fw_str text;
	size_t at;
	int64_t now_ms;
	struct fw_err *err;
	struct fw_buf folded, words; /* of one term */
	int depth;
	size_t term_n;
	struct fw_str operator; /* the last one, while it waits for its term; empty: none */
};

/* ---- errors ---------------------------------------------------------------------------------- */

static struct fw_str parse_shown(struct fw_str s)
{
	return fw_str_sub(s, 0, fw_utf8_cut(s.p, s.len, SHOWN_BYTES));
}

/* "at N: ...", N counts characters. */
FW_PRINTF(3, 4) static int parse_fail(struct query_parser *p, size_t at, const char *fmt, ...)
{
	char text[sizeof(p->err->text)];
	size_t character_n = 1, n;
	va_list ap;

	for (size_t i = 0; i < at; i += n, character_n++)
		(void)fw_utf8_get(p->text.p + i, p->text.len - i, &n);
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	(void)fw_err_set(p->err, FW_EINVAL, "at %zu: %s", character_n, text);
	return FW_EINVAL;
}

static int parse_no_memory(struct query_parser *p)
{
	(void)fw_err_set(p->err, FW_ENOMEM, "out of memory");
	return FW_ENOMEM;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

enum query_lexeme {
	LEXEME_END,
	LEXEME_OPEN,
	LEXEME_CLOSE,
	LEXEME_AND,
	LEXEME_OR,
	LEXEME_NOT,
	LEXEME_MINUS,
	LEXEME_TERM
};

/* Bytes of the white space at p->text[at], also of other scripts; 0: there is none. */
static size_t parse_space(const struct query_parser *p, size_t at)
{
	struct fw_str rest = fw_str_sub(p->text, at, p->text.len);

	if (rest.len && (fw_is_space((unsigned char)*rest.p) || *rest.p == '\v'))
		return 1;
	if (fw_str_starts(rest, FW_STR("\u00a0")))
		return sizeof("\u00a0") - 1;
	return fw_str_starts(rest, FW_STR("\u3000")) ? sizeof("\u3000") - 1 : 0;
}

/* The word at this place: up to white space, a quote or a bracket. */
static struct fw_str parse_word(const struct query_parser *p, size_t at)
{
	size_t end = at;

	while (end < p->text.len && !memchr("\"()", p->text.p[end], 3) && !parse_space(p, end))
		end++;
	return fw_str_sub(p->text, at, end);
}

/* What comes next, behind white space. */
static enum query_lexeme parse_peek(struct query_parser *p)
{
	struct fw_str word;
	size_t n;

	while ((n = parse_space(p, p->at)) > 0)
		p->at += n;
	if (p->at == p->text.len)
		return LEXEME_END;
	switch (p->text.p[p->at]) {
	case '(':
		return LEXEME_OPEN;
	case ')':
		return LEXEME_CLOSE;
	case '-':
		return LEXEME_MINUS;
	default:
		break;
	}
	word = parse_word(p, p->at);
	return fw_str_eq(word, FW_STR("AND"))  ? LEXEME_AND :
		fw_str_eq(word, FW_STR("OR"))  ? LEXEME_OR :
		fw_str_eq(word, FW_STR("NOT")) ? LEXEME_NOT :
						 LEXEME_TERM;
}

static void parse_take(struct query_parser *p, size_t n)
{
	p->operator= fw_str_sub(p->text, p->at, p->at + n);
	p->at += n;
}

/* ---- terms ----------------------------------------------------------------------------------- */

/* A term as written. */
struct query_written {
	size_t at;           /* where it starts */
	enum query_op op;    /* QUERY_WORDS without a field */
	struct fw_str value; /* without quotes */
	size_t value_at;
	bool quoted;
	bool star; /* behind the value */
};

static const char *const EXAMPLE[] = {[QUERY_TITLE] = "title:word",
	[QUERY_AUTHOR] = "author:name",
	[QUERY_TAG] = "tag:linux",
	[QUERY_URL] = "url:/blog/",
	[QUERY_SITE] = "site:example.org",
	[QUERY_FEED] = "feed:12",
	[QUERY_FOLDER] = "folder:News",
	[QUERY_LANG] = "lang:de",
	[QUERY_SINCE] = "since:2h, since:today or since:2026-11-01",
	[QUERY_UNTIL] = "until:2h, until:today or until:2026-11-01",
	[QUERY_HAS] = "has:audio"};

/* The length of the field's name in front of a colon; 0: the word has none. */
static size_t parse_field_bytes(struct fw_str word)
{
	size_t n = 0;

	while (n < word.len && (fw_is_alpha((unsigned char)word.p[n]) || (unsigned char)word.p[n] >= 0x80))
		n++;
	return n < word.len && word.p[n] == ':' ? n : 0;
}

static int parse_field(struct query_parser *p, size_t at, struct fw_str name, enum query_op *out)
{
	struct fw_suggest suggest = {.word = name};

	for (enum query_op op = QUERY_TITLE; op <= QUERY_HAS; op++) {
		if (fw_str_ieq(name, fw_str(query_field_name(op)))) {
			*out = op;
			return 0;
		}
		fw_suggest_offer(&suggest, query_field_name(op));
	}
	name = parse_shown(name);
	if (suggest.best)
		return parse_fail(p, at, "there is no field \"%.*s\": did you mean %s:? Text with a colon needs quotes",
			FW_STR_ARG(name), suggest.best);
	return parse_fail(p, at,
		"there is no field \"%.*s\": put text with a colon in quotes (fields: title author tag url site feed "
		"folder lang since until has)",
		FW_STR_ARG(name));
}

static int parse_quoted(struct query_parser *p, struct query_written *w)
{
	struct fw_str rest = fw_str_sub(p->text, p->at + 1, p->text.len);
	const char *end = rest.len ? memchr(rest.p, '"', rest.len) : NULL;

	if (!end)
		return parse_fail(p, p->at, "the quote is not closed: add \" where the phrase ends");
	w->quoted = true;
	w->value = fw_str_sub(rest, 0, (size_t)(end - rest.p));
	w->value_at = p->at + 1;
	p->at += w->value.len + 2;
	w->star = p->at < p->text.len && p->text.p[p->at] == '*';
	p->at += w->star;
	return 0;
}

static int parse_written(struct query_parser *p, struct query_written *w)
{
	struct fw_str word = parse_word(p, p->at);
	size_t field_n = parse_field_bytes(word);
	int rc;

	*w = (struct query_written){.at = p->at, .op = QUERY_WORDS};
	if (field_n) {
		if ((rc = parse_field(p, p->at, fw_str_sub(word, 0, field_n), &w->op)))
			return rc;
		p->at += field_n + 1;
		word = fw_str_sub(word, field_n + 1, word.len);
	}
	if (!word.len && p->at < p->text.len && p->text.p[p->at] == '"')
		return parse_quoted(p, w);
	if (!word.len && p->at < p->text.len && p->text.p[p->at] == '(')
		return parse_fail(p, p->at, "a field takes a word or a phrase, no brackets: write (%s:a OR %s:b)",
			query_field_name(w->op), query_field_name(w->op));
	if (!word.len)
		return parse_fail(p, w->at, "%s: needs its value right behind the colon, such as %s",
			query_field_name(w->op), EXAMPLE[w->op]);
	w->value_at = p->at;
	p->at += word.len;
	w->star = word.p[word.len - 1] == '*';
	w->value = fw_str_sub(word, 0, word.len - w->star);
	return 0;
}

/* The folded words of a term, each followed by a space. */
static int parse_words(struct query_parser *p, const struct query_written *w, struct query_node *out)
{
	struct query_token token;
	struct fw_str rest, shown = parse_shown(w->value);
	const char *star = w->quoted || !w->value.len ? NULL : memchr(w->value.p, '*', w->value.len);

	if (star)
		return parse_fail(p, w->value_at + (size_t)(star - w->value.p),
			"* stands only at the end of a word: leave it out, or put the text in quotes");
	fw_buf_reset(&p->folded);
	fw_buf_reset(&p->words);
	query_words(&p->folded, w->value);
	rest = fw_buf_str(&p->folded);
	while (query_token_next(&rest, &token)) {
		fw_buf_add(&p->words, token.text, token.len);
		fw_buf_addc(&p->words, ' ');
		out->word_n++;
	}
	if (p->folded.rc || p->words.rc)
		return parse_no_memory(p);
	if (!out->word_n)
		return parse_fail(p, w->at, "\"%.*s%s\" has no letter or digit to look for: leave it out",
			FW_STR_ARG(shown), w->star ? "*" : "");
	if (out->word_n > QUERY_PHRASE_MAX)
		return parse_fail(p, w->at, "a phrase has at most %d words: shorten it", QUERY_PHRASE_MAX);
	out->prefix = w->star;
	out->text = fw_arena_str(p->a, fw_buf_str(&p->words));
	return out->text.p ? 0 : parse_no_memory(p);
}

static int parse_has(struct query_parser *p, const struct query_written *w, struct query_node *out)
{
	struct fw_suggest suggest = {.word = w->value};
	struct fw_str shown = parse_shown(w->value);

	for (enum query_has has = 0; has < QUERY_HAS_N; has++) {
		if (fw_str_ieq(w->value, fw_str(query_has_name(has)))) {
			out->number = (int64_t)has;
			return 0;
		}
		fw_suggest_offer(&suggest, query_has_name(has));
	}
	if (suggest.best)
		return parse_fail(
			p, w->value_at, "has:%.*s is unknown: did you mean has:%s?", FW_STR_ARG(shown), suggest.best);
	return parse_fail(p, w->value_at,
		"has:%.*s is unknown: it takes audio, video, image, attachment, author, tag, link or content",
		FW_STR_ARG(shown));
}

static struct fw_str parse_trim_char(struct fw_str s, char c)
{
	while (s.len && s.p[0] == c)
		s = fw_str_sub(s, 1, s.len);
	while (s.len && s.p[s.len - 1] == c)
		s.len--;
	return s;
}

/* A value that is not words. */
static int parse_value(struct query_parser *p, const struct query_written *w, struct query_node *out)
{
	struct fw_str value = fw_str_trim(w->value), shown = parse_shown(value);
	const char *name = query_field_name(w->op);

	if (w->star || (!w->quoted && memchr(w->value.p, '*', w->value.len)))
		return parse_fail(p, w->value_at, "%s: takes no *: leave it out, or put the value in quotes", name);
	if (w->op == QUERY_SITE || w->op == QUERY_FOLDER)
		value = parse_trim_char(value, w->op == QUERY_SITE ? '.' : '/');
	if (!value.len)
		return parse_fail(p, w->at, "%s: needs a value, such as %s", name, EXAMPLE[w->op]);
	if (w->op == QUERY_SITE && (memchr(value.p, '/', value.len) || memchr(value.p, ':', value.len)))
		return parse_fail(
			p, w->value_at, "site: takes a host alone, such as site:example.org; url: finds a path");
	if ((w->op == QUERY_SINCE || w->op == QUERY_UNTIL) && !fw_when_parse(value, p->now_ms, &out->at_ms))
		return parse_fail(
			p, w->value_at, "\"%.*s\" is not a time: write %s", FW_STR_ARG(shown), EXAMPLE[w->op]);
	if (w->op == QUERY_FEED && !w->quoted && (!fw_str_int(value, &out->number) || out->number < 0))
		out->number = 0;
	out->text = fw_arena_str(p->a, value);
	if (!out->text.p)
		return parse_no_memory(p);
	return w->op == QUERY_HAS ? parse_has(p, w, out) : 0;
}

static struct query_node *parse_node(struct query_parser *p, enum query_op op, size_t at)
{
	struct query_node *node = fw_arena_zalloc(p->a, sizeof(*node));

	if (node)
		*node = (struct query_node){.op = op, .at = at};
	return node;
}

static int parse_term(struct query_parser *p, struct query_node **out)
{
	struct query_written w;
	int rc;

	if (++p->term_n > QUERY_TERMS_MAX)
		return parse_fail(p, p->at, "a query has at most %d terms: split it", QUERY_TERMS_MAX);
	if ((rc = parse_written(p, &w)))
		return rc;
	if (!(*out = parse_node(p, w.op, w.at)))
		return parse_no_memory(p);
	switch (w.op) {
	case QUERY_WORDS:
	case QUERY_TITLE:
	case QUERY_AUTHOR:
	case QUERY_TAG:
		return parse_words(p, &w, *out);
	default:
		return parse_value(p, &w, *out);
	}
}

/* ---- operators ------------------------------------------------------------------------------- */

static int parse_either(struct query_parser *p, struct query_node **out);
static int parse_one(struct query_parser *p, struct query_node **out);

static int parse_deeper(struct query_parser *p)
{
	if (p->depth == QUERY_DEPTH_MAX)
		return parse_fail(p, p->at, "more than %d brackets and negations inside each other: leave some out",
			QUERY_DEPTH_MAX);
	p->depth++;
	return 0;
}

static int parse_negation(struct query_parser *p, bool minus, struct query_node **out)
{
	size_t at = p->at;
	int rc;

	if ((rc = parse_deeper(p)))
		return rc;
	if (minus && (at + 1 == p->text.len || parse_space(p, at + 1)))
		return parse_fail(
			p, at, "the - stands alone: write it right before what must not match, or leave it out");
	if (!(*out = parse_node(p, QUERY_NOT, at)))
		return parse_no_memory(p);
	parse_take(p, minus ? 1 : 3);
	rc = parse_one(p, &(*out)->child);
	p->depth--;
	return rc;
}

static int parse_brackets(struct query_parser *p, struct query_node **out)
{
	size_t at = p->at;
	int rc;

	if ((rc = parse_deeper(p)))
		return rc;
	parse_take(p, 1);
	if ((rc = parse_either(p, out)))
		return rc;
	if (parse_peek(p) != LEXEME_CLOSE)
		return parse_fail(p, at, "the bracket is not closed: add )");
	p->at++;
	p->depth--;
	return 0;
}

/* A term must come, and something else or nothing does. */
static int parse_no_term(struct query_parser *p, enum query_lexeme lexeme)
{
	struct fw_str word = parse_word(p, p->at);

	if (lexeme == LEXEME_AND || lexeme == LEXEME_OR)
		return parse_fail(
			p, p->at, "%.*s must stand between two terms: in lower case it is a word", FW_STR_ARG(word));
	if (fw_str_eq(p->operator, FW_STR("(")))
		return parse_fail(p, (size_t)(p->operator.p - p->text.p),
			lexeme == LEXEME_CLOSE ? "the brackets are empty: leave them out" :
						 "the bracket is not closed: add a term and )");
	if (p->operator.len)
		return parse_fail(p, (size_t)(p->operator.p - p->text.p),
			"%.*s has no term behind it: add one, or leave it out", FW_STR_ARG(p->operator));
	return parse_fail(p, p->at, "the bracket was not opened: leave it out, or put it in quotes");
}

static int parse_one(struct query_parser *p, struct query_node **out)
{
	enum query_lexeme lexeme = parse_peek(p);
	int rc;

	switch (lexeme) {
	case LEXEME_NOT:
	case LEXEME_MINUS:
		return parse_negation(p, lexeme == LEXEME_MINUS, out);
	case LEXEME_OPEN:
		return parse_brackets(p, out);
	case LEXEME_TERM:
		rc = parse_term(p, out);
		p->operator= FW_STR("");
		return rc;
	case LEXEME_AND:
	case LEXEME_OR:
	case LEXEME_CLOSE:
	case LEXEME_END:
		break;
	}
	return parse_no_term(p, lexeme);
}

/* Append a child to *out, which becomes a node of this kind when it gets the second one. */
static int parse_join(struct query_parser *p, enum query_op op, struct query_node **out, struct query_node **last,
	struct query_node *node)
{
	if (!*out) {
		*out = node;
	} else if (!*last) {
		struct query_node *all = parse_node(p, op, (*out)->at);

		if (!all)
			return parse_no_memory(p);
		all->child = *out;
		(*out)->next = node;
		*out = all;
		*last = node;
	} else {
		(*last)->next = node;
		*last = node;
	}
	return 0;
}

static int parse_both(struct query_parser *p, struct query_node **out)
{
	struct query_node *last = NULL;

	*out = NULL;
	for (;;) {
		enum query_lexeme lexeme = parse_peek(p);
		struct query_node *one = NULL;
		int rc;

		if (*out && (lexeme == LEXEME_END || lexeme == LEXEME_CLOSE || lexeme == LEXEME_OR))
			return 0;
		if (*out && lexeme == LEXEME_AND)
			parse_take(p, 3);
		if ((rc = parse_one(p, &one)) || (rc = parse_join(p, QUERY_AND, out, &last, one)))
			return rc;
	}
}

static int parse_either(struct query_parser *p, struct query_node **out)
{
	struct query_node *last = NULL;
	int rc;

	*out = NULL;
	for (;;) {
		struct query_node *both = NULL;

		if ((rc = parse_both(p, &both)) || (rc = parse_join(p, QUERY_OR, out, &last, both)))
			return rc;
		if (parse_peek(p) != LEXEME_OR)
			return 0;
		parse_take(p, 2);
	}
}

int query_parse(struct fw_arena *a, struct fw_str text, int64_t now_ms, struct query_node **out, struct fw_err *err)
{
	struct query_parser p = {.a = a, .text = text, .now_ms = now_ms, .err = err, .operator= FW_STR("")};
	int rc;

	*out = NULL;
	if (text.len > QUERY_LENGTH_MAX) {
		(void)fw_err_set(err, FW_EINVAL, "at 1: the query has %zu bytes, the limit is %d: split it", text.len,
			QUERY_LENGTH_MAX);
		return FW_EINVAL;
	}
	if (parse_peek(&p) == LEXEME_END)
		return 0;
	rc = parse_either(&p, out);
	if (!rc && parse_peek(&p) != LEXEME_END)
		rc = parse_no_term(&p, LEXEME_CLOSE);
	fw_buf_finish(&p.folded);
	fw_buf_finish(&p.words);
	if (rc)
		*out = NULL;
	return rc;
}
