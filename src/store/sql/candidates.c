/* SPDX-License-Identifier: ISC */
#include "store/sql/candidates.h"

/* How a part of the query is decided. */
enum part_kind { PART_REST, PART_FEED, PART_WORDS };

#define FEW_FEEDS 200 /* at most; their entries are sorted, instead of reading all by date */
#define FEW_PART 16   /* and at most one of so many feeds */

/* ---- words ----------------------------------------------------------------------------------- */

#define WORD_WHOLE_MAX 60 /* bytes; a longer word may have been cut (tokens.h) */

/* Does the index decide this part alone? Then NOT stands only beside a part that is not negated. */
static bool words_are_exact(const struct query_node *q)
{
	bool any = false;

	switch (q->op) {
	case QUERY_WORDS:
		return q->word_n == 1 && q->text.len <= WORD_WHOLE_MAX;
	case QUERY_OR:
		for (const struct query_node *c = q->child; c; c = c->next) {
			if (!words_are_exact(c))
				return false;
		}
		return true;
	case QUERY_AND:
		for (const struct query_node *c = q->child; c; c = c->next) {
			if (!words_are_exact(c->op == QUERY_NOT ? c->child : c))
				return false;
			any |= c->op != QUERY_NOT;
		}
		return any;
	default:
		return false;
	}
}

struct words_list {
	struct query_node *first, *last;
	size_t n;
};

static void words_list_add(struct words_list *l, struct query_node *node)
{
	node->next = NULL;
	if (l->last)
		l->last->next = node;
	else
		l->first = node;
	l->last = node;
	l->n++;
}

static struct query_node *words_list_node(struct fw_arena *a, const struct words_list *l, enum query_op op)
{
	struct query_node *node;

	if (l->n <= 1)
		return l->first;
	node = fw_arena_zalloc(a, sizeof(*node));
	if (node)
		*node = (struct query_node){.op = op, .child = l->first};
	return node;
}

static struct query_node *words_over(struct fw_arena *a, const struct query_node *q);

/* Add a part of an AND: what it needs, or what it excludes. */
static void words_needed(
	struct fw_arena *a, const struct query_node *q, struct words_list *need, struct words_list *exclude)
{
	struct query_node *node;

	if (q->op == QUERY_NOT && words_are_exact(q->child)) {
		node = words_over(a, q->child);
		if (node)
			words_list_add(exclude, node);
		return;
	}
	node = words_over(a, q);
	if (node)
		words_list_add(need, node);
}

/* need AND NOT exclude ...; NULL: any entry. */
static struct query_node *words_both(struct fw_arena *a, struct words_list *need, const struct words_list *exclude)
{
	struct query_node *next;

	if (!need->n)
		return NULL;
	for (struct query_node *one = exclude->first; one; one = next) {
		struct query_node *without = fw_arena_zalloc(a, sizeof(*without));

		next = one->next;
		one->next = NULL;
		if (!without)
			return NULL;
		*without = (struct query_node){.op = QUERY_NOT, .child = one};
		words_list_add(need, without);
	}
	return words_list_node(a, need, QUERY_AND);
}

/*
 * Words that every matching entry has: a tree for search_begin(). NULL: there are none (or out of
 * memory, which the arena keeps).
 */
static struct query_node *words_over(struct fw_arena *a, const struct query_node *q)
{
	struct words_list need = {.n = 0}, exclude = {.n = 0};
	struct query_node *node;

	switch (q->op) {
	case QUERY_WORDS:
	case QUERY_TITLE:
		node = fw_arena_zalloc(a, sizeof(*node));
		if (node)
			*node = *q;
		return node;
	case QUERY_AND:
		for (const struct query_node *c = q->child; c; c = c->next)
			words_needed(a, c, &need, &exclude);
		return words_both(a, &need, &exclude);
	case QUERY_OR:
		for (const struct query_node *c = q->child; c; c = c->next) {
			node = words_over(a, c);
			if (!node)
				return NULL;
			words_list_add(&need, node);
		}
		return words_list_node(a, &need, QUERY_OR);
	default:
		return NULL;
	}
}

static int candidates_words_find(struct sql_candidates *c, enum part_kind *kind, struct fw_err *err)
{
	struct words_list need = {.n = 0}, exclude = {.n = 0};
	struct query_node *tree;
	bool exact = false;
	int rc;

	for (size_t i = 0; i < c->q->part_n; i++)
		words_needed(&c->a, c->q->part[i], &need, &exclude);
	tree = words_both(&c->a, &need, &exclude);
	if (c->a.failed)
		return fw_no_memory(err);
	if (!tree)
		return 0;
	rc = c->s->dialect->search_begin(c->s, tree, &c->found, &exact, &c->word, c->q->q.unindexed_n, err);
	rc = !rc && c->word.rc ? fw_no_memory(err) : rc;
	for (size_t i = 0; !rc && c->found && exact && i < c->q->part_n; i++) {
		const struct query_node *part = c->q->part[i];

		if (words_are_exact(part->op == QUERY_NOT ? part->child : part))
			kind[i] = PART_WORDS;
	}
	return rc;
}

/* ---- feeds ----------------------------------------------------------------------------------- */

/* Does it ask only for the feed? numbers: only for ids, without NOT. */
static bool part_is_of_feeds(const struct query_node *q, bool *numbers)
{
	switch (q->op) {
	case QUERY_FEED:
	case QUERY_FOLDER:
		*numbers &= q->op == QUERY_FEED && q->number;
		return true;
	case QUERY_NOT:
		*numbers = false;
		return part_is_of_feeds(q->child, numbers);
	case QUERY_AND:
	case QUERY_OR:
		for (const struct query_node *c = q->child; c; c = c->next) {
			if (!part_is_of_feeds(c, numbers))
				return false;
		}
		return true;
	default:
		return false;
	}
}

struct feeds_found {
	struct sql_candidates *c;
	const enum part_kind *kind;
	const struct query_node *known; /* a part that only feeds that match are asked for; NULL: none */
	int64_t n, of_n;
};

/* A feed that all parts about feeds match. */
static int feed_found_row(void *ctx, const struct sql_row *row)
{
	struct feeds_found *f = ctx;
	struct sql_candidates *c = f->c;
	static const struct fw_entry_row NO_ENTRY;
	struct query_subject subject = {.entry = &NO_ENTRY,
		.feed_id = sql_int(row, 0),
		.feed_url = sql_str(row, 1),
		.feed_title = sql_str(row, 2),
		.feed_folder = sql_str(row, 3)};

	f->of_n++;
	query_scratch_set(c->scratch, &subject);
	for (size_t i = 0; i < c->q->part_n; i++) {
		if (f->kind[i] == PART_FEED && c->q->part[i] != f->known && !query_matches(c->q->part[i], c->scratch))
			return 0;
	}
	fw_buf_addf(&c->feed, f->n++ ? ",%lld" : "%lld", (long long)subject.feed_id);
	return 0;
}

#define FEEDS "SELECT f.id, f.url, coalesce(nullif(f.user_title, ''), f.title), f.folder FROM "

static void feeds_numbered_add(const struct query_node *q, struct sql_rows *r)
{
	if (q->op == QUERY_FEED && q->number)
		sql_rows_add(r, SQL_V(SQL_INT(q->number)));
	for (const struct query_node *c = q->child; c; c = c->next)
		feeds_numbered_add(c, r);
}

/* Is it a list of numbers, of which each matches? */
static bool feeds_are_listed(const struct query_node *q)
{
	bool listed = q->op == QUERY_OR;

	for (const struct query_node *c = q->child; listed && c; c = c->next)
		listed = c->op == QUERY_FEED && c->number;
	return listed;
}

/* The feeds that the query allows; it asks at most once for all feeds. */
static int feeds_find(struct sql_candidates *c, enum part_kind *kind, struct fw_err *err)
{
	struct feeds_found f = {.c = c, .kind = kind};
	struct sql_rows r = SQL_QUERY_ROWS(
		c->s, err, feed_found_row, &f, FEEDS "{rows} feeds f WHERE f.id = v.feed", "feed:i");
	const struct query_node *numbered = NULL;
	int rc;

	if (c->q->q.feed_id || fw_store_entry_query_is_one(&c->q->q)) /* few rows: check them */
		return 0;
	for (size_t i = 0; i < c->q->part_n; i++) {
		bool numbers = true;

		if (!part_is_of_feeds(c->q->part[i], &numbers))
			continue;
		kind[i] = PART_FEED;
		numbered = numbers ? c->q->part[i] : numbered;
		c->among = true;
	}
	if (!c->among)
		return 0;
	fw_buf_addc(&c->feed, '[');
	if (numbered) {
		f.known = feeds_are_listed(numbered) ? numbered : NULL;
		feeds_numbered_add(numbered, &r);
		rc = sql_rows_end(&r);
	} else {
		rc = sql_query(c->s, FEEDS "feeds f", SQL_NONE, feed_found_row, &f, err);
	}
	fw_buf_addc(&c->feed, ']');
	c->few = f.n <= FEW_FEEDS && (numbered || f.n * FEW_PART <= f.of_n);
	return rc || !c->feed.rc ? rc : fw_no_memory(err);
}

/* ---- the rest -------------------------------------------------------------------------------- */

/* Is this a list of which all must match? negated: NOT stands before it. */
static bool shorts_need_all(const struct query_node *q, bool negated)
{
	return (q->op == QUERY_AND) != negated;
}

static bool shorts_is_list(const struct query_node *q)
{
	return q->op == QUERY_AND || q->op == QUERY_OR;
}

/* May short columns tell that q does not match? */
static bool shorts_decide(const struct query_node *q, bool negated)
{
	bool all = shorts_need_all(q, negated);

	if (q->op == QUERY_NOT)
		return shorts_decide(q->child, !negated);
	if (!shorts_is_list(q))
		return !(query_reads(q) & QUERY_READS_BODY);
	for (const struct query_node *c = q->child; c; c = c->next) {
		if (shorts_decide(c, negated) == all)
			return all;
	}
	return !all;
}

static bool shorts_may_match(const struct query_node *q, bool negated, struct query_scratch *s)
{
	bool all = shorts_need_all(q, negated);

	if (q->op == QUERY_NOT)
		return shorts_may_match(q->child, !negated, s);
	if (!shorts_is_list(q))
		return query_reads(q) & QUERY_READS_BODY || query_matches(q, s) != negated;
	for (const struct query_node *c = q->child; c; c = c->next) {
		if (shorts_may_match(c, negated, s) != all)
			return !all;
	}
	return all;
}

int sql_candidate_may(
	const struct sql_candidates *c, const struct query_subject *subject, bool *may, struct fw_err *err)
{
	*may = true;
	query_scratch_set(c->scratch, subject);
	for (size_t i = 0; *may && i < c->rest_n; i++)
		*may = shorts_may_match(c->rest[i], false, c->scratch);
	return query_scratch_failed(c->scratch) ? fw_no_memory(err) : 0;
}

int sql_candidates_begin(struct sql_candidates *c, struct sql *s, const struct store_entry_query *q, struct fw_err *err)
{
	enum part_kind *kind;
	int rc;

	*c = (struct sql_candidates){.s = s, .q = q, .word = FW_BUF_INIT(0), .feed = FW_BUF_INIT(0)};
	fw_arena_init(&c->a, 0);
	if (!q->part_n)
		return 0;
	c->scratch = query_scratch_create();
	kind = fw_arena_calloc(&c->a, q->part_n, sizeof(*kind));
	c->rest = fw_arena_calloc(&c->a, q->part_n, sizeof(*c->rest));
	if (!c->scratch || !kind || !c->rest)
		return fw_no_memory(err);
	rc = feeds_find(c, kind, err);
	if (!rc && !fw_store_entry_query_is_one(&q->q) && q->q.feed_id >= 0) /* below 0 is no feed */
		rc = candidates_words_find(c, kind, err);
	for (size_t i = 0; i < q->part_n; i++) {
		if (kind[i] == PART_REST) {
			c->rest[c->rest_n++] = q->part[i];
			c->reads |= query_reads(q->part[i]);
			c->by_shorts |= shorts_decide(q->part[i], false);
		}
	}
	return rc;
}

void sql_candidates_finish(struct sql_candidates *c)
{
	query_scratch_destroy(c->scratch);
	fw_buf_finish(&c->word);
	fw_buf_finish(&c->feed);
	fw_arena_finish(&c->a);
}

int sql_candidate_check(
	const struct sql_candidates *c, const struct query_subject *subject, bool *matches, struct fw_err *err)
{
	*matches = true;
	if (!c->rest_n)
		return 0;
	query_scratch_set(c->scratch, subject);
	for (size_t i = 0; *matches && i < c->rest_n; i++)
		*matches = query_matches(c->rest[i], c->scratch);
	return query_scratch_failed(c->scratch) ? fw_no_memory(err) : 0;
}
