/* SPDX-License-Identifier: ISC */
/*
 * The matcher. An entry's features are looked up and stamped; each has a list of the orders whose
 * key it is. An order in such a list is looked at if the entry has its second rarest feature too,
 * and matches if its code says so.
 */
#include "query/match.h"

#include <assert.h>
#include <stdlib.h>

#include "base/err.h"
#include "query/match_code.h"
#include "query/words.h"

#define ORDER_BITS 0x7fffffffu
#define ORDERS_MAX ((size_t)ORDER_BITS)
#define ORDERS_MIN 64

/* An order in the list of a key. */
struct match_posting {
	uint32_t order : 31;
	uint32_t several : 1; /* the order has more keys: its stamp says whether it was looked at */
	uint32_t second;      /* a feature, or FEATURE_NONE */
};

struct match_set {
	struct features features;
	struct fw_buf code;
	uint64_t *number;  /* of each order */
	uint32_t *code_at; /* where its code starts */
	size_t n, cap;
	unsigned reads;
	bool finished;

	uint32_t *first; /* of each feature: where its list starts; one more for the end */
	struct match_posting *posting;
	size_t posting_n;

	uint32_t now;          /* the stamp of this entry */
	uint32_t *stamp;       /* of each feature */
	uint32_t *order_stamp; /* of each order; NULL: none has several keys */
	uint32_t *present;     /* features of the entry, each once; at most features.n */
	size_t stamp_n;        /* size of stamp and present */
	size_t present_n;
	struct fw_buf lower;
	uint64_t checked_n;
};

struct match_set *match_set_create(void)
{
	struct match_set *set = calloc(1, sizeof(*set));

	if (set && features_init(&set->features)) {
		match_set_destroy(set);
		return NULL;
	}
	return set;
}

void match_set_destroy(struct match_set *set)
{
	if (!set)
		return;
	features_finish(&set->features);
	fw_buf_finish(&set->code);
	fw_buf_finish(&set->lower);
	free(set->number);
	free(set->code_at);
	free(set->first);
	free(set->posting);
	free(set->stamp);
	free(set->order_stamp);
	free(set->present);
	free(set);
}

/* ---- adding ---------------------------------------------------------------------------------- */

static bool match_grow(struct match_set *set)
{
	size_t cap = set->cap ? 2 * set->cap : ORDERS_MIN;
	uint64_t *number = reallocarray(set->number, cap, sizeof(*number));
	uint32_t *code_at;

	if (!number)
		return false;
	set->number = number;
	code_at = reallocarray(set->code_at, cap, sizeof(*code_at));
	if (!code_at)
		return false;
	set->code_at = code_at;
	set->cap = cap;
	return true;
}

int match_set_add(struct match_set *set, uint64_t number, const struct query_node *query, struct fw_err *err)
{
	size_t at = set->code.len;
	int rc;

	assert(!set->finished);
	if (set->n == ORDERS_MAX || at > UINT32_MAX)
		return FW_ERR(err, FW_ELIMIT, "%zu orders are too many for one set: remove some", set->n);
	if (set->n == set->cap && !match_grow(set))
		return fw_no_memory(err);
	rc = match_code_write(&set->code, &set->features, query);
	if (rc) {
		set->code.len = at;
		set->code.rc = 0;
		return rc == FW_ELIMIT ? FW_ERR(err, rc, "the orders look for too many words: remove some") :
					 fw_no_memory(err);
	}
	set->number[set->n] = number;
	set->code_at[set->n] = (uint32_t)at;
	set->n++;
	set->reads |= query_reads(query);
	return 0;
}

/* ---- the features of an entry ---------------------------------------------------------------- */

static void present_number(struct match_set *set, uint32_t feature)
{
	if (feature == FEATURE_NONE || set->stamp[feature] == set->now)
		return;
	set->stamp[feature] = set->now;
	set->present[set->present_n++] = feature;
}

static void present_add(struct match_set *set, enum feature_kind kind, struct fw_str text)
{
	present_number(set, features_find(&set->features, kind, text));
}

static void present_words(struct match_set *set, const struct entry_words *w)
{
	bool prefixes = features_have(&set->features, FEATURE_PREFIX);

	for (size_t i = 0; i < w->word_n; i++) {
		struct fw_str word = entry_words_text(w, i);

		present_add(set, FEATURE_WORD, word);
		for (size_t n = 1; prefixes && n <= word.len; n++) {
			if (features_have_prefix(&set->features, n))
				present_add(set, FEATURE_PREFIX, fw_str_sub(word, 0, n));
		}
	}
	for (size_t i = 0; features_have(&set->features, FEATURE_TITLE) && i < w->title_n; i++) {
		if (w->token[i] != ENTRY_WORD_NONE)
			present_add(set, FEATURE_TITLE, entry_words_text(w, w->token[i]));
	}
}

static void present_author(struct match_set *set, struct fw_str line)
{
	struct query_token token;

	while (query_token_next(&line, &token))
		present_add(set, FEATURE_AUTHOR, (struct fw_str){token.text, token.len});
}

static void present_tags(struct match_set *set, struct fw_str lines)
{
	while (lines.len)
		present_add(set, FEATURE_TAG, fw_str_split(lines, '\n', &lines));
}

/* A host and the domains that it is in. */
static void present_site(struct match_set *set, struct fw_str host)
{
	while (host.len) {
		present_add(set, FEATURE_SITE, host);
		(void)fw_str_split(host, '.', &host);
	}
}

/* The text, and its parts that end where one of these characters stands. */
static void present_starts(struct match_set *set, enum feature_kind kind, struct fw_str text, const char *ends)
{
	for (size_t i = 1; i <= text.len; i++) {
		if (i == text.len || memchr(ends, text.p[i], strlen(ends)))
			present_add(set, kind, fw_str_sub(text, 0, i));
	}
}

static void present_lang(struct match_set *set, struct fw_str lang)
{
	fw_buf_reset(&set->lower);
	for (size_t i = 0; i < lang.len; i++)
		fw_buf_addc(&set->lower, (char)fw_lower((unsigned char)lang.p[i]));
	present_starts(set, FEATURE_LANG, fw_buf_str(&set->lower), "-_");
}

static void present_has(struct match_set *set, struct query_scratch *s)
{
	for (enum query_has has = 0; has < QUERY_HAS_N; has++) {
		char c = (char)has;
		uint32_t feature = features_find(&set->features, FEATURE_HAS, (struct fw_str){&c, 1});

		if (feature != FEATURE_NONE && query_has_matches(has, s))
			present_number(set, feature);
	}
}

/* Stamp the features of the entry. Nothing is read of it that no order looks for. */
static void match_present_set(struct match_set *set, struct query_scratch *s)
{
	const struct query_subject *subject = s->subject;
	const struct features *f = &set->features;

	if (++set->now == 0) {
		memset(set->stamp, 0, f->n * sizeof(*set->stamp));
		if (set->order_stamp)
			memset(set->order_stamp, 0, set->n * sizeof(*set->order_stamp));
		set->now = 1;
	}
	set->present_n = 0;
	present_number(set, 0);
	if (features_have(f, FEATURE_WORD) || features_have(f, FEATURE_PREFIX) || features_have(f, FEATURE_TITLE))
		present_words(set, scratch_words(s));
	if (features_have(f, FEATURE_AUTHOR))
		present_author(set, scratch_author(s));
	if (features_have(f, FEATURE_TAG))
		present_tags(set, scratch_tags(s));
	if (features_have(f, FEATURE_SITE))
		present_site(set, scratch_host(s));
	if (features_have(f, FEATURE_FEED))
		present_add(
			set, FEATURE_FEED, (struct fw_str){(const char *)&subject->feed_id, sizeof(subject->feed_id)});
	if (features_have(f, FEATURE_FOLDER))
		present_starts(set, FEATURE_FOLDER, subject->feed_folder, "/");
	if (features_have(f, FEATURE_LANG))
		present_lang(set, scratch_lang(s));
	if (features_have(f, FEATURE_HAS))
		present_has(set, s);
}

/* ---- learning and finishing ------------------------------------------------------------------ */

/* Room for the features of an entry. */
static bool match_reserve(struct match_set *set)
{
	if (set->stamp_n == set->features.n)
		return true;
	free(set->stamp);
	free(set->present);
	set->stamp = calloc(set->features.n, sizeof(*set->stamp));
	set->present = calloc(set->features.n, sizeof(*set->present));
	set->stamp_n = set->stamp && set->present ? set->features.n : 0;
	set->now = 0;
	return set->stamp_n > 0;
}

void match_set_learn(struct match_set *set, struct query_scratch *entry)
{
	assert(!set->finished);
	if (!match_reserve(set))
		return; /* match_set_finish() says so */
	match_present_set(set, entry);
	for (size_t i = 0; i < set->present_n; i++)
		set->features.entry_n[set->present[i]]++;
}

/* The keys of one order. */
struct match_keys {
	struct match_set *set;
	uint32_t n, last;
	struct match_posting *fill; /* NULL: count only */
};

static void match_on_key(void *ctx, uint32_t feature)
{
	struct match_keys *k = ctx;

	k->n++;
	k->last = feature;
	if (k->fill)
		k->set->posting[k->set->first[feature]++] = *k->fill;
}

static struct match_keys match_keys(struct match_set *set, size_t order, struct match_posting *fill)
{
	struct match_keys k = {.set = set, .fill = fill};

	match_code_keys(set->code.p + set->code_at[order], &set->features, match_on_key, &k);
	return k;
}

static void match_on_count(void *ctx, uint32_t feature)
{
	struct match_set *set = ctx;

	set->first[feature + 1]++;
}

/* The number of postings; first[] says where each feature's start. */
static size_t match_count(struct match_set *set)
{
	size_t sum = 0;

	for (size_t i = 0; i < set->n; i++)
		match_code_keys(set->code.p + set->code_at[i], &set->features, match_on_count, set);
	for (size_t i = 1; i <= set->features.n; i++) {
		sum += set->first[i];
		set->first[i] = (uint32_t)sum;
	}
	return sum;
}

/* Put each order into the list of each of its keys. False: out of memory. */
static bool match_fill(struct match_set *set)
{
	for (size_t i = 0; i < set->n; i++) {
		struct match_keys k = match_keys(set, i, NULL);
		struct match_posting posting = {
			.order = (uint32_t)i & ORDER_BITS, .several = k.n > 1, .second = FEATURE_NONE};

		if (k.n > 1 && !set->order_stamp && !(set->order_stamp = calloc(set->n, sizeof(*set->order_stamp))))
			return false;
		if (k.n == 1)
			posting.second = match_code_second(set->code.p + set->code_at[i], &set->features, k.last);
		(void)match_keys(set, i, &posting);
	}
	/* each start has become the end, which is the next one's start */
	memmove(set->first + 1, set->first, set->features.n * sizeof(*set->first));
	set->first[0] = 0;
	return true;
}

static void match_pack(struct match_set *set)
{
	uint64_t *number = reallocarray(set->number, set->n + 1, sizeof(*number));
	uint32_t *code_at = reallocarray(set->code_at, set->n + 1, sizeof(*code_at));

	set->number = number ? number : set->number;
	set->code_at = code_at ? code_at : set->code_at;
	fw_buf_trim(&set->code);
	features_pack(&set->features);
}

int match_set_finish(struct match_set *set, struct fw_err *err)
{
	assert(!set->finished);
	if (!match_reserve(set) || !(set->first = calloc(set->features.n + 1, sizeof(*set->first))))
		return fw_no_memory(err);
	set->posting_n = match_count(set);
	if (set->posting_n > UINT32_MAX)
		return FW_ERR(err, FW_ELIMIT, "the orders have too many alternatives: remove some");
	set->posting = calloc(set->posting_n + 1, sizeof(*set->posting));
	if (!set->posting || !match_fill(set))
		return fw_no_memory(err);
	match_pack(set);
	set->finished = true;
	return 0;
}

/* ---- running --------------------------------------------------------------------------------- */

/* May the order match? It is looked at once, and only if the entry has its second feature. */
static bool match_is_candidate(struct match_set *set, struct match_posting p)
{
	if (p.second != FEATURE_NONE && set->stamp[p.second] != set->now)
		return false;
	if (!p.several)
		return true;
	if (set->order_stamp[p.order] == set->now)
		return false;
	set->order_stamp[p.order] = set->now;
	return true;
}

static int match_list_run(
	struct match_set *set, uint32_t feature, struct query_scratch *s, match_cb *on_match, void *ctx)
{
	struct match_present present = {set->stamp, set->now};
	int rc = 0;

	for (uint32_t i = set->first[feature]; i < set->first[feature + 1] && !rc; i++) {
		struct match_posting p = set->posting[i];

		if (!match_is_candidate(set, p))
			continue;
		set->checked_n++;
		if (match_code_matches(set->code.p + set->code_at[p.order], &present, s))
			rc = on_match(ctx, set->number[p.order]);
	}
	return rc;
}

int match_set_run(struct match_set *set, struct query_scratch *entry, match_cb *on_match, void *ctx)
{
	int rc = 0;

	assert(set->finished);
	match_present_set(set, entry);
	for (size_t i = 0; i < set->present_n && !rc; i++)
		rc = match_list_run(set, set->present[i], entry, on_match, ctx);
	return rc ? rc : query_scratch_failed(entry) || set->lower.rc ? FW_ENOMEM : 0;
}

size_t match_set_n(const struct match_set *set)
{
	return set->n;
}

unsigned match_set_reads(const struct match_set *set)
{
	return set->reads;
}

size_t match_set_bytes(const struct match_set *set)
{
	return sizeof(*set) + features_bytes(&set->features) + set->code.cap + set->lower.cap +
		(set->n + 1) * (sizeof(*set->number) + sizeof(*set->code_at)) +
		(set->features.n + 1) * sizeof(*set->first) + (set->posting_n + 1) * sizeof(*set->posting) +
		set->features.n * (sizeof(*set->stamp) + sizeof(*set->present)) +
		(set->order_stamp ? set->n * sizeof(*set->order_stamp) : 0);
}

uint64_t match_set_checked_n(const struct match_set *set)
{
	return set->checked_n;
}
