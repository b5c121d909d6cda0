/* SPDX-License-Identifier: ISC */
/*
 * Full-text search. InnoDB's own index knows neither words of one character (so no Chinese), nor "was" and other stop words, and what
 * it knows is the server's setting; so this one is ours: an ordinary table of words, filled behind the wheel's back.
 *
 * One step of upkeep takes some hundred entries and writes one row for each word that occurs in them: which entries hold it, as
 * differences of their numbers, seven bits a byte. numbers.indexed_entry_id is the watermark: entries up to it are in the index, but
 * for those that `reindex` names: changed ones, and numbers that were not there when the watermark passed them, because the commit
 * that stores them had not ended. Those that never come are forgotten after an hour.
 *
 * Rows are added, and numbers of entries that are gone taken out (maria_sweep.c). What the index says is therefore "may match": an entry that has changed since, and any that a phrase is asked
 * of, is read and looked through before it is shown. Steps are numbered; a word has at most one row of each.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "store/maria.h"
#include "store/tokens.h"
#include "store/words.h"

#define STEP_ROWS 500
#define STEP_BYTES ((size_t)4 << 20)  /* of text, about */
#define CATCH_UP_STEPS 4              /* a search indexes this many steps by itself */
#define TEXT_MAX ((size_t)1 << 20)    /* of one member of one entry: more is not indexed */
#define GAP_MAX 5000                  /* missing numbers that one step notes */
#define GAP_MS INT64_C(3600000)       /* and how long they are waited for */
#define READ_ROWS 50                  /* texts looked through at once */

struct mr_term { /* words in a row */
	struct fw_store_token *token;
	size_t n;
	bool prefix; /* of the last one */
};

/* ---- texts -------------------------------------------------------------------------------------------------------------- */

/* Columns from `col`: title, summary, content, content_type. The words of an entry, members apart, into m->text. */
static struct fw_str text_of(struct maria *m, const struct mr_res *r, unsigned col)
{
	struct fw_buf *b = &m->text;

	fw_buf_reset(b);
	fw_store_words(b, mr_str(r, col));
	fw_buf_addc(b, '\n');
	fw_store_words(b, mr_str(r, col + 1));
	fw_buf_addc(b, '\n');
	if (mr_int(r, col + 3) == FW_TEXT_PLAIN)
		fw_store_words(b, mr_str(r, col + 2));
	else
		fw_store_words_html(b, mr_str(r, col + 2));
	return fw_buf_str(b);
}

/* What text_of reads; a character that is cut in the middle by the limit is no matter. */
#define TEXT_COLUMNS "left(e.title, 1048576), left(e.summary, 1048576), left(e.content, 1048576), e.content_type"

/* ---- indexing ----------------------------------------------------------------------------------------------------------- */

struct occurrence {
	struct fw_str word;
	int64_t entry_id;
};

struct step {
	struct fw_arena arena;      /* words */
	struct occurrence *at;
	size_t n, cap;
	int64_t now_ms;
	size_t read_n;              /* entries */
};

static int by_word(const void *a, const void *b)
{
	const struct occurrence *x = a, *y = b;
	int d = memcmp(x->word.p, y->word.p, FW_MIN(x->word.len, y->word.len));

	if (d)
		return d;
	if (x->word.len != y->word.len)
		return x->word.len < y->word.len ? -1 : 1;
	return x->entry_id < y->entry_id ? -1 : x->entry_id > y->entry_id;
}

static bool occurrence_add(struct step *s, struct fw_str word, int64_t entry_id)
{
	if (s->n == s->cap) {
		size_t cap = s->cap ? s->cap * 2 : 65536;
		struct occurrence *grown = reallocarray(s->at, cap, sizeof(*grown));

		if (!grown)
			return false;
		s->at = grown;
		s->cap = cap;
	}
	word = fw_arena_str(&s->arena, word);
	s->at[s->n++] = (struct occurrence){word, entry_id};
	return word.p != NULL;
}

/* Each word of the entry once: a small table drops most repetitions, sorting the rest. */
static bool entry_words(struct step *s, struct fw_str text, int64_t entry_id)
{
	uint64_t seen[512] = {0};
	struct fw_store_token t;

	while (fw_store_token_next(&text, &t)) {
		uint64_t h = fw_hash64(t.text, t.len);

		if (seen[h % FW_N(seen)] == h)
			continue;
		seen[h % FW_N(seen)] = h;
		if (!occurrence_add(s, (struct fw_str){t.text, t.len}, entry_id))
			return false;
	}
	return true;
}

void mr_list_add(struct fw_buf *b, int64_t *last, int64_t id)
{
	uint64_t v = (uint64_t)(id - *last);

	for (; v >= 128; v >>= 7)
		fw_buf_addc(b, (char)(v | 128));
	fw_buf_addc(b, (char)v);
	*last = id;
}

/* One row for each word. */
static int words_write(struct maria *m, struct step *s, int64_t number, struct fw_err *err)
{
	struct mr_rows rows = {"INSERT INTO words (word, step, entries) VALUES "};
	struct fw_buf list = FW_BUF_INIT(0);

	if (s->n)
		qsort(s->at, s->n, sizeof(*s->at), by_word);
	for (size_t i = 0; i < s->n;) {
		struct fw_str word = s->at[i].word;
		int64_t last = 0;

		fw_buf_reset(&list);
		for (; i < s->n && fw_str_eq(s->at[i].word, word); i++) {
			if (s->at[i].entry_id != last)
				mr_list_add(&list, &last, s->at[i].entry_id);
		}
		mr_rows_add(m, &rows, "bib", word, number, fw_buf_str(&list));
	}
	mr_rows_end(m, &rows);
	if (list.rc)
		return mr_no_memory(m, err);
	fw_buf_finish(&list);
	return 0;
}

/* Read the entries that the SELECT in m->sql finds, and gather their words, up to STEP_BYTES. */
static int rows_read(struct maria *m, struct step *s, struct mr_ids *ids, struct fw_err *err)
{
	size_t bytes = 0;
	struct mr_res r;
	int rc = mr_answer(m, &r, err);

	while (!rc && bytes < STEP_BYTES && mr_row(&r)) {
		struct fw_str text = text_of(m, &r, 1);

		bytes += text.len;
		rc = m->text.rc || !entry_words(s, text, mr_int(&r, 0)) ? mr_no_memory(m, err) : mr_ids_add(m, ids, mr_int(&r, 0), err);
	}
	mr_done(&r);
	return rc;
}

/* Those that wait in `reindex`. Who changes one of them from now on waits for us, and then names it anew. */
static int again_read(struct maria *m, struct step *s, struct fw_err *err)
{
	struct mr_rows off = MR_DELETE("reindex", "entry_id");
	struct mr_ids wait = {0}, done = {0};
	int rc;

	mr_put(m, "SELECT entry_id FROM reindex WHERE EXISTS (SELECT 1 FROM entries e WHERE e.id = entry_id) ORDER BY entry_id LIMIT ?"
		" FOR UPDATE SKIP LOCKED", "i", MR_INT(STEP_ROWS));
	rc = mr_ids_read(m, &wait, err);
	if (!rc && wait.n) {
		mr_put(m, "SELECT e.id, " TEXT_COLUMNS " FROM entries e WHERE ", "");
		mr_in(m, "e.id", wait.at, wait.n);
		fw_buf_adds(&m->sql, " ORDER BY e.id");
		rc = rows_read(m, s, &done, err);
	}
	if (!rc && done.n) {
		for (size_t i = 0; i < done.n; i++)
			mr_rows_add(m, &off, "i", done.at[i]);
		mr_rows_end(m, &off);
	}
	s->read_n += done.n;
	free(wait.at);
	free(done.at);
	return rc;
}

static int next_read(struct maria *m, struct step *s, int64_t from, struct mr_ids *ids, struct fw_err *err)
{
	mr_put(m, "SELECT e.id, " TEXT_COLUMNS " FROM entries e WHERE e.id > ? ORDER BY e.id LIMIT ?", "ii", from, MR_INT(STEP_ROWS));
	return rows_read(m, s, ids, err);
}

/* Numbers between these that no row has: perhaps their commit is under way. */
static void gaps_note(struct maria *m, int64_t after, const struct mr_ids *ids, int64_t now)
{
	struct mr_rows rows = {"INSERT IGNORE INTO reindex (entry_id, since_ms) VALUES "};
	size_t n = 0;

	for (size_t i = ids->n; i-- > 0;) {
		int64_t before = i ? ids->at[i - 1] : after;

		for (int64_t id = ids->at[i] - m->step; id > before && n < GAP_MAX; id -= m->step, n++)
			mr_rows_add(m, &rows, "ii", id, now);
	}
	mr_rows_end(m, &rows);
}

static int step_in(struct maria *m, void *arg, struct fw_err *err)
{
	struct step *s = arg;
	struct mr_ids next = {0};
	int64_t from, number = 0;
	int rc = mr_number(m, FW_NO_DATE, &from, err, "SELECT value FROM numbers WHERE name = 'indexed_entry_id' FOR UPDATE SKIP LOCKED", "");

	s->n = s->read_n = 0;
	if (rc || from == FW_NO_DATE) /* another process is at it */
		return rc;
	mr_put(m, "DELETE FROM reindex WHERE since_ms < ? AND NOT EXISTS (SELECT 1 FROM entries e WHERE e.id = reindex.entry_id)", "i",
		s->now_ms - GAP_MS);
	rc = again_read(m, s, err);
	rc = rc ? rc : next_read(m, s, from, &next, err);
	s->read_n += next.n;
	if (!rc && next.n) {
		gaps_note(m, from, &next, s->now_ms);
		mr_put(m, "UPDATE numbers SET value = ? WHERE name = 'indexed_entry_id'", "i", next.at[next.n - 1]);
	}
	if (!rc && s->n)
		rc = mr_number(m, 0, &number, err, "UPDATE numbers SET value = LAST_INSERT_ID(value + 1) WHERE name = 'index_step';"
			"SELECT LAST_INSERT_ID()", "");
	free(next.at);
	return rc ? rc : words_write(m, s, number, err);
}

static int step(struct maria *m, bool *more, struct fw_err *err)
{
	struct step s = {.n = 0};
	int rc;

	fw_arena_init(&s.arena, 0);
	rc = mr_now(m, 0, &s.now_ms, err); /* one clock for all processes */
	rc = rc ? rc : mr_transact(m, step_in, &s, err);
	*more = !rc && s.read_n > 0;
	fw_arena_finish(&s.arena);
	free(s.at);
	return rc;
}

/* Is anything not in the index? Asked without a lock, so that idle workers do not write. */
static int behind(struct maria *m, bool *yes, struct fw_err *err)
{
	int64_t n;
	int rc = mr_number(m, 0, &n, err, "SELECT EXISTS (SELECT 1 FROM entries WHERE id > (SELECT value FROM numbers"
		" WHERE name = 'indexed_entry_id')) OR EXISTS (SELECT 1 FROM reindex x JOIN entries e ON e.id = x.entry_id)", "");

	*yes = !rc && n;
	return rc;
}

int mr_upkeep(struct fw_store *st, int64_t now_ms, bool *more, struct fw_err *err)
{
	struct maria *m = mr_of(st);
	bool yes = false;
	int rc = behind(m, &yes, err);

	(void)now_ms;
	if (!rc)
		rc = yes ? step(m, more, err) : mr_sweep(m, more, err);
	return rc;
}

/* ---- asking ---------------------------------------------------------------------------------------------------------------- */

void mr_search_finish(struct mr_search *s)
{
	for (size_t i = 0; i < s->term_n; i++)
		free(s->term[i].token);
	free(s->term);
	free(s->may.at);
	*s = (struct mr_search){0};
}

static int term_add(struct maria *m, struct mr_search *s, const struct fw_store_word *w, struct fw_err *err)
{
	struct mr_term t = {.prefix = w->prefix}, *grown;
	struct fw_store_token token;
	struct fw_str rest;

	fw_buf_reset(&m->text);
	fw_store_words(&m->text, w->text);
	rest = fw_buf_str(&m->text);
	if (m->text.rc)
		return mr_no_memory(m, err);
	while (fw_store_token_next(&rest, &token)) {
		struct fw_store_token *more = reallocarray(t.token, t.n + 1, sizeof(*more));

		if (!more) {
			free(t.token);
			return mr_no_memory(m, err);
		}
		t.token = more;
		t.token[t.n++] = token;
	}
	if (!t.n)
		return 0;
	grown = reallocarray(s->term, s->term_n + 1, sizeof(*grown));
	if (!grown) {
		free(t.token);
		return mr_no_memory(m, err);
	}
	s->term = grown;
	s->term[s->term_n++] = t;
	s->phrase |= t.n > 1;
	return 0;
}

int mr_list_read(struct maria *m, struct fw_str list, struct mr_ids *ids, struct fw_err *err)
{
	int64_t last = 0;
	uint64_t v = 0;
	int shift = 0, rc = 0;

	for (size_t i = 0; i < list.len && !rc; i++) {
		v |= (uint64_t)(list.p[i] & 127) << shift;
		shift = shift < 56 ? shift + 7 : shift;
		if (list.p[i] & 128)
			continue;
		last += (int64_t)v;
		rc = mr_ids_add(m, ids, last, err);
		v = 0;
		shift = 0;
	}
	return rc;
}

/* Which entries hold this word, or one that begins so. */
static int word_ids(struct maria *m, const struct fw_store_token *t, bool prefix, struct mr_ids *ids, struct fw_err *err)
{
	struct fw_str word = {t->text, t->len};
	char last[sizeof(t->text) + 1];
	struct mr_res r;
	int rc;

	memcpy(last, t->text, t->len);
	last[t->len] = '\xff'; /* behind all that begin so */
	rc = prefix ? mr_ask(m, &r, err, "SELECT entries FROM words WHERE word >= ? AND word < ?", "bb", word,
			(struct fw_str){last, t->len + 1}) :
		mr_ask(m, &r, err, "SELECT entries FROM words WHERE word = ?", "b", word);
	while (!rc && mr_row(&r))
		rc = mr_list_read(m, mr_str(&r, 0), ids, err);
	mr_done(&r);
	mr_ids_once(ids);
	return rc;
}

static void keep_common(struct mr_ids *a, const struct mr_ids *b)
{
	size_t kept = 0;

	for (size_t i = 0, k = 0; i < a->n; i++) {
		while (k < b->n && b->at[k] < a->at[i])
			k++;
		if (k < b->n && b->at[k] == a->at[i])
			a->at[kept++] = a->at[i];
	}
	a->n = kept;
}

static int may_read(struct maria *m, struct mr_search *s, struct fw_err *err)
{
	bool first = true;
	int rc = 0;

	for (size_t i = 0; i < s->term_n; i++) {
		const struct mr_term *t = &s->term[i];

		for (size_t k = 0; k < t->n && !rc; k++) {
			struct mr_ids ids = {0};

			rc = word_ids(m, &t->token[k], t->prefix && k == t->n - 1, first ? &s->may : &ids, err);
			if (!first)
				keep_common(&s->may, &ids);
			first = false;
			free(ids.at);
		}
	}
	return rc;
}

/* Before a search: index the rest, when it is small. A store that may not be written now is searched as it is. */
static int catch_up(struct maria *m, int64_t *unindexed_n, struct fw_err *err)
{
	bool is_behind, more;
	int rc = behind(m, &is_behind, err);

	more = is_behind && !m->read_only;
	for (int i = 0; i < CATCH_UP_STEPS && more && !rc; i++) {
		rc = step(m, &more, err);
		if (rc == FW_EAGAIN)
			rc = more = 0;
	}
	if (rc || !is_behind || !unindexed_n)
		return rc;
	return mr_number(m, 0, unindexed_n, err, "SELECT " MR_UNINDEXED_N, "");
}

int mr_search_open(struct maria *m, struct fw_str words, int64_t *unindexed_n, struct mr_search *s, struct fw_err *err)
{
	struct fw_store_word w;
	int rc = 0;

	while (!rc && fw_store_word_next(&words, &w)) {
		s->any = true; /* be it one that nothing can match */
		rc = term_add(m, s, &w, err);
	}
	if (rc || !s->any)
		return rc;
	rc = catch_up(m, unindexed_n, err);
	return rc ? rc : may_read(m, s, err);
}

/* ---- looking through ---------------------------------------------------------------------------------------------------------- */

static bool token_is(const struct fw_store_token *want, const struct fw_store_token *have, bool prefix)
{
	return (prefix ? have->len >= want->len : have->len == want->len) && memcmp(have->text, want->text, want->len) == 0;
}

/* Does the term stand in the text? The words that might go on one are few: the last t->n of the text are kept. */
static bool term_stands(const struct mr_term *t, struct fw_str text)
{
	struct fw_store_token token;
	struct fw_str at = text;

	while (fw_store_token_next(&at, &token)) {
		struct fw_str ahead = at;
		size_t k = 0;

		while (token_is(&t->token[k], &token, t->prefix && k == t->n - 1)) {
			if (++k == t->n)
				return true;
			if (!fw_store_token_next(&ahead, &token))
				return false;
		}
	}
	return false;
}

static bool matches(const struct mr_search *s, struct fw_str text)
{
	for (size_t i = 0; i < s->term_n; i++) {
		if (!term_stands(&s->term[i], text))
			return false;
	}
	return s->term_n > 0;
}

/* Look some over: those of id[0, n) that match go behind `kept` in ids. */
static int look_over(struct maria *m, const struct mr_search *s, const int64_t *id, size_t n, struct mr_ids *ids, size_t *kept,
	size_t limit, struct fw_err *err)
{
	struct mr_res r;
	int rc;

	fw_buf_adds(&m->sql, s->phrase ? "SELECT e.id, 2, " TEXT_COLUMNS " FROM entries e WHERE " :
		"SELECT e.id, e.revision, if(e.revision > 1, left(e.title, 1048576), NULL), if(e.revision > 1, left(e.summary, 1048576), NULL),"
		" if(e.revision > 1, left(e.content, 1048576), NULL), e.content_type FROM entries e WHERE ");
	mr_in_order(m, "e.id", id, n);
	rc = mr_answer(m, &r, err);
	while (!rc && mr_row(&r)) {
		if (mr_int(&r, 1) > 1 && !matches(s, text_of(m, &r, 2)))
			continue;
		if (!limit || *kept < limit)
			ids->at[(*kept)++] = mr_int(&r, 0); /* behind what was read: *kept never gets ahead of it */
	}
	return rc;
}

int mr_search_match(struct maria *m, const struct mr_search *s, size_t limit, struct mr_ids *ids, struct fw_err *err)
{
	size_t kept = 0, may = 0;
	int rc = 0;

	for (size_t i = 0; i < ids->n; i++) { /* the list may hold what the index does not */
		if (s->may.n && bsearch(&ids->at[i], s->may.at, s->may.n, sizeof(int64_t), mr_by_number))
			ids->at[may++] = ids->at[i];
	}
	ids->n = may;
	for (size_t i = 0; i < may && !rc && (!limit || kept < limit); i += READ_ROWS) {
		int64_t part[READ_ROWS];
		size_t n = FW_MIN(may - i, (size_t)READ_ROWS);

		memcpy(part, ids->at + i, n * sizeof(*part));
		rc = look_over(m, s, part, n, ids, &kept, limit, err);
	}
	ids->n = kept;
	return rc;
}
