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

#define ORDERS_MIN 64
#define NUMBER_BYTES sizeof(uint64_t) /* in front of an order's code */
#define BATCH 16                      /* orders whose code is fetched from memory at once */
#define BITS_WORDS(n) ((n) / 64 + 1)

/* An order in the list of a key. */
struct match_posting {
	uint32_t code_at; /* of its number and code; the order's index until match_sort() */
	uint32_t second;  /* a feature, or FEATURE_NONE */
	uint32_t several; /* 0, or the order has more keys: its place in looked_at, and 1 */
};

struct match_set {
	struct features features;
	struct fw_buf code; /* of each order: its number, and its code */
	size_t n;
	uint32_t *code_at; /* of each order; NULL once finished */
	size_t cap;
	bool finished;

	uint32_t *first; /* of each feature: where its list starts; one more for the end */
	struct match_posting *posting;
	size_t posting_n;

	uint32_t *present; /* features of the entry, each once; at most features.n */
	size_t present_n, present_cap;
	uint64_t *bits; /* the same as a set */
	uint32_t now;
	uint32_t *looked_at; /* of each order with several keys: now, if it was looked at */
	size_t several_n;
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
	free(set->code_at);
	free(set->first);
	free(set->posting);
	free(set->looked_at);
	free(set->present);
	free(set->bits);
	free(set);
}

/* ---- adding ---------------------------------------------------------------------------------- */

static bool match_grow(struct match_set *set)
{
	size_t cap = set->cap ? 2 * set->cap : ORDERS_MIN;
	uint32_t *code_at = reallocarray(set->code_at, cap, sizeof(*code_at));

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
	if (at > UINT32_MAX)
		return FW_ERR(err, FW_ELIMIT, "%zu orders are too many for one set: remove some", set->n);
	if (set->n == set->cap && !match_grow(set))
		return fw_no_memory(err);
	fw_buf_add(&set->code, &number, NUMBER_BYTES);
	rc = match_code_write(&set->code, &set->features, query);
	if (rc) {
		set->code.len = at;
		set->code.rc = 0;
		return rc == FW_ELIMIT ? FW_ERR(err, rc, "the orders look for too many words: remove some") :
					 fw_no_memory(err);
	}
	set->code_at[set->n++] = (uint32_t)at;
	return 0;
}

/* ---- the features of an entry ---------------------------------------------------------------- */

static void present_number(struct match_set *set, uint32_t feature)
{
	if (feature == FEATURE_NONE || feature_is_set(set->bits, feature))
		return;
	set->bits[feature / 64] |= UINT64_C(1) << feature % 64;
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

		present_number(set, features_find_hashed(&set->features, FEATURE_WORD, word, w->word[i].hash));
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

/* Find the features of the entry. Nothing is read of it that no order looks for. */
static void match_present_set(struct match_set *set, struct query_scratch *s)
{
	const struct query_subject *subject = s->subject;
	const struct features *f = &set->features;

	for (size_t i = 0; i < set->present_n; i++)
		set->bits[set->present[i] / 64] = 0;
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
	size_t n = set->features.n;

	if (set->present_cap == n)
		return true;
	free(set->present);
	free(set->bits);
	set->present = calloc(n, sizeof(*set->present));
	set->bits = calloc(BITS_WORDS(n), sizeof(*set->bits));
	set->present_cap = set->present && set->bits ? n : 0;
	set->present_n = 0;
	return set->present_cap > 0;
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

static const char *match_order_code(const struct match_set *set, size_t order)
{
	return set->code.p + set->code_at[order] + NUMBER_BYTES;
}

/* The keys of one order. */
struct match_keys {
	struct match_set *set;
	uint32_t n, last;
	const struct match_posting *fill; /* NULL: count only */
};

static void match_on_key(void *ctx, uint32_t feature)
{
	struct match_keys *k = ctx;

	k->n++;
	k->last = feature;
	if (k->fill)
		k->set->posting[k->set->first[feature]++] = *k->fill;
}

static struct match_keys match_keys(struct match_set *set, size_t order, const struct match_posting *fill)
{
	struct match_keys k = {.set = set, .fill = fill};

	match_code_keys(match_order_code(set, order), &set->features, match_on_key, &k);
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
		match_code_keys(match_order_code(set, i), &set->features, match_on_count, set);
	for (size_t i = 1; i <= set->features.n; i++) {
		sum += set->first[i];
		set->first[i] = (uint32_t)sum;
	}
	return sum;
}

/* Put each order into the list of each of its keys. */
static void match_fill(struct match_set *set)
{
	for (size_t i = 0; i < set->n; i++) {
		struct match_keys k = match_keys(set, i, NULL);
		struct match_posting posting = {.code_at = (uint32_t)i, .second = FEATURE_NONE};

		if (k.n > 1)
			posting.several = (uint32_t)++set->several_n;
		else
			posting.second = match_code_second(match_order_code(set, i), &set->features, k.last);
		(void)match_keys(set, i, &posting);
	}
	/* each start has become the end, which is the next one's start */
	memmove(set->first + 1, set->first, set->features.n * sizeof(*set->first));
	set->first[0] = 0;
}

/*
 * Put the codes into the sequence of the lists, so that a list's are near each other in memory.
 * False: out of memory.
 */
static bool match_sort(struct match_set *set)
{
	uint32_t *to = calloc(set->n + 1, sizeof(*to)); /* where an order's code is now, and 1 */
	struct fw_buf code = FW_BUF_INIT(0);

	if (!to || (set->code.len && !fw_buf_room(&code, set->code.len))) {
		free(to);
		return false;
	}
	for (size_t i = 0; i < set->posting_n; i++) {
		uint32_t order = set->posting[i].code_at, from = set->code_at[order];
		size_t end = order + 1 < set->n ? set->code_at[order + 1] : set->code.len;

		if (!to[order]) { /* its first list */
			to[order] = (uint32_t)code.len + 1;
			fw_buf_add(&code, set->code.p + from, end - from);
		}
		set->posting[i].code_at = to[order] - 1;
	}
	fw_buf_finish(&set->code);
	set->code = code;
	free(set->code_at);
	set->code_at = NULL;
	free(to);
	return true;
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
	if (!set->posting)
		return fw_no_memory(err);
	match_fill(set);
	set->looked_at = calloc(set->several_n + 1, sizeof(*set->looked_at));
	if (!set->looked_at || !match_sort(set))
		return fw_no_memory(err);
	features_pack(&set->features);
	set->finished = true;
	return 0;
}

/* ---- running --------------------------------------------------------------------------------- */

/* Orders that may match, while their code is on its way from memory. */
struct match_batch {
	struct query_scratch *entry;
	match_cb *on_match;
	void *ctx;
	uint32_t code_at[BATCH];
	size_t n;
};

/* May the order match? It is looked at once, and only if the entry has its second feature. */
static bool match_is_candidate(struct match_set *set, const struct match_posting *p)
{
	if (p->second != FEATURE_NONE && !feature_is_set(set->bits, p->second))
		return false;
	if (!p->several)
		return true;
	if (set->looked_at[p->several - 1] == set->now)
		return false;
	set->looked_at[p->several - 1] = set->now;
	return true;
}

static int match_batch_run(struct match_set *set, struct match_batch *b)
{
	int rc = 0;

	set->checked_n += b->n;
	for (size_t i = 0; i < b->n && !rc; i++) {
		const char *p = set->code.p + b->code_at[i];
		uint64_t number;

		memcpy(&number, p, NUMBER_BYTES);
		if (match_code_matches(p + NUMBER_BYTES, set->bits, b->entry))
			rc = b->on_match(b->ctx, number);
	}
	b->n = 0;
	return rc;
}

static int match_list_run(struct match_set *set, uint32_t feature, struct match_batch *b)
{
	int rc = 0;

	for (uint32_t i = set->first[feature]; i < set->first[feature + 1] && !rc; i++) {
		const struct match_posting *p = &set->posting[i];

		if (!match_is_candidate(set, p))
			continue;
		__builtin_prefetch(set->code.p + p->code_at);
		b->code_at[b->n++] = p->code_at;
		if (b->n == BATCH)
			rc = match_batch_run(set, b);
	}
	return rc;
}

int match_set_run(struct match_set *set, struct query_scratch *entry, match_cb *on_match, void *ctx)
{
	struct match_batch b = {.entry = entry, .on_match = on_match, .ctx = ctx};
	int rc = 0;

	assert(set->finished);
	match_present_set(set, entry);
	if (++set->now == 0) {
		memset(set->looked_at, 0, set->several_n * sizeof(*set->looked_at));
		set->now = 1;
	}
	for (size_t i = 0; i < set->present_n && !rc; i++)
		rc = match_list_run(set, set->present[i], &b);
	rc = rc ? rc : match_batch_run(set, &b);
	return rc ? rc : query_scratch_failed(entry) || set->lower.rc ? FW_ENOMEM : 0;
}

size_t match_set_bytes(const struct match_set *set)
{
	size_t n = set->features.n;

	return sizeof(*set) + features_bytes(&set->features) + set->code.cap + set->lower.cap +
		(n + 1) * sizeof(*set->first) + (set->posting_n + 1) * sizeof(*set->posting) +
		n * sizeof(*set->present) + BITS_WORDS(n) * sizeof(*set->bits) +
		(set->several_n + 1) * sizeof(*set->looked_at);
}

uint64_t match_set_checked_n(const struct match_set *set)
{
	return set->checked_n;
}
