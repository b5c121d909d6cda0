/* SPDX-License-Identifier: ISC */
/*
 * Full-text search with a table of words. InnoDB's own index is not used: it has no words of one
 * character (so no Chinese) and no stop words such as "was", it depends on settings of the server,
 * and it keeps removed words until the table is rebuilt. search.h describes how the index is
 * filled.
 *
 * The index refers to documents. A document is an entry as it was at one time. Its id rises
 * (meta.doc_id is the last one), and `entries_indexed` names its entry. When an entry changes or
 * is removed, its documents lose the entry, and no search finds them any more; sweep.c removes
 * their words. The next step makes a changed entry a new document.
 *
 * A step takes some hundred entries and writes one row per word: the documents that contain it, and
 * the positions in them. The row's `step` is the id of the last document before those of the step.
 *
 * A list of occurrences is ordered by document and position, in varints of seven bits per byte.
 * First the position (within the same document: its distance to the previous one), doubled, plus 1
 * for the first occurrence in a document. For the first one the document follows (its distance to
 * the previous one; in the first document of the list, to the step).
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "store/mysql/occurrences.h"
#include "store/sql/search.h"
#include "query/query.h"
#include "query/words.h"

#define STEP_BYTES ((size_t)1 << 20) /* of text per step, about */
#define ID_BYTES 16                  /* maximum length of a document's id in a query, about */

const char *const mysql_search_tables[] = {
	"CREATE TABLE words (word VARBINARY(64) NOT NULL, step BIGINT NOT NULL, docs LONGBLOB NOT NULL, PRIMARY KEY "
	"(word, step)) {table}",
	"CREATE TABLE entries_changed (entry_id {pk}) {table}",
	"INSERT INTO meta (name, value) VALUES ('doc_id', 0)",
	"CREATE TABLE " MYSQL_LAST_TABLE " (doc {pk}, entry_id BIGINT, INDEX entries_indexed_entry (entry_id)) {table}",
	NULL,
};

/* ---- occurrences ----------------------------------------------------------------------------- */

static void varint_put(struct fw_buf *b, uint64_t v)
{
	for (; v >= 128; v >>= 7)
		fw_buf_addc(b, (char)(v | 128));
	fw_buf_addc(b, (char)v);
}

static uint64_t varint_get(struct fw_str *s)
{
	uint64_t v = 0;

	for (int shift = 0; s->len; shift += 7) {
		unsigned char c = (unsigned char)*s->p++;

		s->len--;
		if (shift < 64)
			v |= (uint64_t)(c & 127) << shift;
		if (c < 128)
			break;
	}
	return v;
}

void occurrence_put(struct fw_buf *b, struct occurrence *last, int64_t doc, uint64_t position)
{
	bool first = doc != last->doc;

	varint_put(b, (position - (first ? 0 : last->position)) << 1 | first);
	if (first)
		varint_put(b, (uint64_t)(doc - last->doc));
	*last = (struct occurrence){doc, position};
}

bool occurrence_get(struct fw_str *list, struct occurrence *o)
{
	uint64_t v;

	if (!list->len)
		return false;
	v = varint_get(list);
	o->position = (v >> 1) + (v & 1 ? 0 : o->position);
	if (v & 1)
		o->doc = (int64_t)((uint64_t)o->doc + varint_get(list));
	return true;
}

/* ---- indexing -------------------------------------------------------------------------------- */

/* a word of a step */
struct index_word {
	struct fw_str text;
	struct fw_buf list;
	struct occurrence last;
};

struct words_step {
	struct sql_search_step step;
	struct fw_map map;               /* the words; their documents count from 1 */
	int64_t id[2 * SQL_SEARCH_ROWS]; /* entry of each document */
};

static struct words_step *words_step_of(struct sql_search_step *step)
{
	return (struct words_step *)step; /* step comes first */
}

static struct index_word *index_word_new(struct words_step *p, struct fw_str text)
{
	struct index_word *w = fw_arena_zalloc(&p->step.a, sizeof(*w));
	int rc;

	if (!w)
		return NULL;
	w->text = fw_arena_str(&p->step.a, text);
	if (!w->text.p)
		return NULL;
	(void)fw_map_put(&p->map, w->text, w, &rc);
	return rc ? NULL : w;
}

static int words_entry_add(struct sql_search_step *step, int64_t id, struct fw_str words)
{
	struct words_step *p = words_step_of(step);
	struct query_token t;

	assert(step->n < FW_N(p->id));
	p->id[step->n] = id;
	for (uint64_t position = 1; query_token_next(&words, &t); position++) {
		struct fw_str text = {t.text, t.len};
		struct index_word *w = fw_map_get(&p->map, text);

		w = w ? w : index_word_new(p, text);
		if (!w)
			return FW_ENOMEM;
		occurrence_put(&w->list, &w->last, (int64_t)step->n + 1, position);
		if (w->list.rc)
			return w->list.rc;
	}
	return 0;
}

static int index_word_compare(const void *a, const void *b)
{
	const struct index_word *x = *(struct index_word *const *)a, *y = *(struct index_word *const *)b;

	return fw_str_order(x->text, y->text);
}

/* In the order of the primary key. */
static int index_words_write(struct words_step *p, int64_t number, struct fw_err *err)
{
	struct sql_rows r = SQL_ROWS(
		p->step.s, err, "INSERT INTO words (word, step, docs) {values}", "word:b step:i docs:b");
	struct index_word **w = fw_arena_calloc(&p->step.a, p->map.n, sizeof(*w));
	size_t n = 0;

	if (!w)
		return fw_no_memory(err);
	for (size_t at = 0; n < p->map.n; n++)
		w[n] = fw_map_next(&p->map, &at, NULL);
	if (n)
		qsort(w, n, sizeof(*w), index_word_compare);
	for (size_t i = 0; i < n; i++)
		sql_rows_add(&r, SQL_V(SQL_BLOB(w[i]->text), SQL_INT(number), SQL_BLOB(fw_buf_str(&w[i]->list))));
	return sql_rows_end(&r);
}

/*
 * An entry that was read again has an older document, which loses it. Neither it nor a removed
 * entry waits any more.
 */
static int words_entries_write(struct sql_search_step *step, struct fw_err *err)
{
	struct sql_rows old = SQL_ROWS(
		step->s, err, "UPDATE entries_indexed SET entry_id = NULL WHERE entry_id = v.entry", "entry:i");
	struct sql_rows done = SQL_ROWS(
		step->s, err, "DELETE FROM entries_changed WHERE entry_id = v.entry", "entry:i");
	struct sql_rows new = SQL_ROWS(
		step->s, err, "INSERT INTO entries_indexed (doc, entry_id) {values}", "doc:i entry:i");
	const int64_t *id = words_step_of(step)->id;
	int64_t number, upto = step->full && step->again_n ? id[step->again_n - 1] : INT64_MAX;

	old.rc = sql_ids_reserve(step->s, "doc_id", (int64_t)step->n, &number, err);
	number -= (int64_t)step->n;
	for (size_t i = 0; i < step->again_n; i++)
		sql_rows_add(&old, SQL_V(SQL_INT(id[i])));
	done.rc = sql_rows_end(&old);
	for (size_t i = 0; i < step->changed_n && step->changed[i] <= upto; i++)
		sql_rows_add(&done, SQL_V(SQL_INT(step->changed[i])));
	new.rc = sql_rows_end(&done);
	for (size_t i = 0; i < step->n; i++)
		sql_rows_add(&new, SQL_V(SQL_INT(number + 1 + (int64_t)i), SQL_INT(id[i])));
	new.rc = sql_rows_end(&new);
	return new.rc ? new.rc : index_words_write(words_step_of(step), number, err);
}

static void words_step_finish(struct sql_search_step *step)
{
	struct fw_map *map = &words_step_of(step)->map;
	struct index_word *w;

	for (size_t at = 0; (w = fw_map_next(map, &at, NULL)) != NULL;)
		fw_buf_finish(&w->list);
	fw_map_finish(map);
}

static int words_step(struct sql *s, bool *more, struct fw_err *err)
{
	static const struct sql_search_index INDEX = {.rows = SQL_SEARCH_ROWS,
		.bytes = STEP_BYTES,
		.add = words_entry_add,
		.write = words_entries_write,
		.end = words_step_finish,
		.changed = "SELECT entry_id FROM entries_changed ORDER BY entry_id LIMIT ?1 {skip}"};
	struct words_step p = {.step = {.n = 0}};

	return sql_search_step(&p.step, s, &INDEX, more, err);
}

int mysql_search_step(struct sql *s, bool *more, struct fw_err *err)
{
	int rc = sql_search_steps(s, words_step, more, err);

	return rc || *more ? rc : mysql_sweep(mysql_db(s), more, err);
}

/*
 * A change is noted also for an entry that is not indexed yet: a step may just be reading its old
 * text.
 */
int mysql_search_changed(struct sql *s, int64_t entry_id, enum sql_entry_change what, struct fw_err *err)
{
	if (what == SQL_ENTRY_CHANGING)
		return 0;
	return sql_exec(s,
		what == SQL_ENTRY_REMOVING ?
			"UPDATE entries_indexed SET entry_id = NULL WHERE entry_id = ?1" :
			"INSERT INTO entries_changed (entry_id) VALUES (?1) {keep entry_id|entry_id}",
		SQL_V(SQL_INT(entry_id)), err);
}

/* ---- searching ------------------------------------------------------------------------------- */

/*
 * Search results: an array of struct occurrence in a buffer, sorted by document and position. If
 * only documents are needed, each appears once, at position 0.
 */
static struct occurrence *found_at(const struct fw_buf *found)
{
	return (struct occurrence *)(void *)found->p;
}

static size_t found_n(const struct fw_buf *found)
{
	return found->len / sizeof(struct occurrence);
}

FW_COMPARE_BY(occurrence_compare, struct occurrence, doc, position)

/*
 * Sort and remove duplicates. Occurrences of one word are sorted already; those of a prefix are
 * not.
 */
static void found_sort(struct fw_buf *found)
{
	struct occurrence *at = found_at(found);
	size_t n = found_n(found), kept = 0;

	for (size_t i = 1; i < n; i++) {
		if (occurrence_compare(&at[i - 1], &at[i]) > 0) {
			qsort(at, n, sizeof(*at), occurrence_compare);
			break;
		}
	}
	for (size_t i = 0; i < n; i++) {
		if (!kept || occurrence_compare(&at[i], &at[kept - 1]) != 0)
			at[kept++] = at[i];
	}
	assert(kept <= n);
	found->len = kept * sizeof(*at);
}

/* Keep the occurrences that are `distance` positions behind one in `before`. */
static void found_follow(struct fw_buf *found, const struct fw_buf *before, uint64_t distance)
{
	const struct occurrence *b = found_at(before), *b_end = b ? b + found_n(before) : b;
	struct occurrence *at = found_at(found);
	size_t n = found_n(found), kept = 0;

	for (size_t i = 0; i < n; i++) {
		struct occurrence wanted = {at[i].doc, at[i].position - distance};

		while (b < b_end && occurrence_compare(b, &wanted) < 0)
			b++;
		if (b < b_end && occurrence_compare(b, &wanted) == 0)
			at[kept++] = at[i];
	}
	found->len = kept * sizeof(*at);
}

struct words_search {
	struct fw_buf found;
	const struct fw_buf *among; /* positions in these documents; NULL: documents only, of all */
};

/* Columns: step, docs. */
static int word_occurrences_row(void *ctx, const struct sql_row *row)
{
	struct words_search *f = ctx;
	struct fw_str list = sql_str(row, 1);
	struct occurrence o = {.doc = sql_int(row, 0)};
	int64_t doc = 0;
	bool wanted = false;

	while (occurrence_get(&list, &o)) {
		struct occurrence of = {.doc = o.doc};

		if (o.doc != doc)
			wanted = !f->among ||
				bsearch(&of, fw_buf_str(f->among).p, found_n(f->among), sizeof(of), occurrence_compare);
		if (wanted && (f->among || o.doc != doc))
			fw_buf_add(&f->found, f->among ? &o : &of, sizeof(o));
		doc = o.doc;
	}
	return f->found.rc;
}

/* Occurrences of a word, or of all words with this prefix. */
static int word_find(
	struct sql *s, const struct query_token *t, bool prefix, struct words_search *f, struct fw_err *err)
{
	struct fw_str word = {t->text, t->len};
	char last[sizeof(t->text) + 1];
	int rc;

	memcpy(last, t->text, t->len);
	last[t->len] = '\xff'; /* sorts behind all words with this prefix */
	rc = sql_query(s,
		prefix ? "SELECT step, docs FROM words WHERE word >= ?1 AND word < ?2" :
			 "SELECT step, docs FROM words WHERE word = ?1 ORDER BY step",
		(struct sql_value[]){SQL_BLOB(word), SQL_BLOB(((struct fw_str){last, t->len + 1}))}, prefix ? 2 : 1,
		word_occurrences_row, f, err);
	found_sort(&f->found);
	return rc == FW_ENOMEM ? fw_no_memory(err) : rc;
}

static bool text_has_token(struct fw_str text)
{
	struct query_token token;

	return query_token_next(&text, &token);
}

/* Keep the documents that are, or are not, in `other`. */
static void found_restrict(struct fw_buf *found, const struct fw_buf *other, bool in)
{
	const struct occurrence *b = found_at(other), *b_end = b ? b + found_n(other) : b;
	struct occurrence *at = found_at(found);
	size_t n = found_n(found), kept = 0;

	for (size_t i = 0; i < n; i++) {
		while (b < b_end && occurrence_compare(b, &at[i]) < 0)
			b++;
		if ((b < b_end && occurrence_compare(b, &at[i]) == 0) == in)
			at[kept++] = at[i];
	}
	found->len = kept * sizeof(*at);
}

/*
 * among NULL: documents with all words of the term. Otherwise: the positions in the documents of
 * `among` where the words follow each other, each at its last word.
 */
static int words_find(struct sql *s, const struct query_node *term, const struct fw_buf *among, struct fw_buf *found,
	struct fw_err *err)
{
	struct fw_str rest = term->text;
	struct query_token token;
	int rc = 0;

	for (bool first = true; !rc && query_token_next(&rest, &token); first = false) {
		struct words_search f = {.among = among};

		rc = word_find(s, &token, term->prefix && !text_has_token(rest), &f, err);
		if (!first)
			found_follow(&f.found, found, among ? 1 : 0);
		fw_buf_finish(found);
		*found = f.found;
	}
	return rc;
}

/* Documents that contain the term, a word or a phrase. */
static int term_find(struct sql *s, const struct query_node *term, struct fw_buf *docs, struct fw_err *err)
{
	struct fw_buf ends = FW_BUF_INIT(0);
	int rc = words_find(s, term, NULL, docs, err);

	if (rc || term->word_n == 1)
		return rc;
	rc = words_find(s, term, docs, &ends, err);
	for (size_t i = 0; i < found_n(&ends); i++)
		found_at(&ends)[i].position = 0;
	found_sort(&ends);
	fw_buf_finish(docs);
	*docs = ends;
	return rc;
}

/* Documents that a tree of words finds. */
static int tree_find(struct sql *s, const struct query_node *q, struct fw_buf *docs, struct fw_err *err)
{
	int rc = q->child ? 0 : term_find(s, q, docs, err);

	for (const struct query_node *c = q->child; !rc && c; c = c->next) {
		struct fw_buf one = FW_BUF_INIT(0);

		assert(c->op != QUERY_NOT || c != q->child);
		rc = tree_find(s, c->op == QUERY_NOT ? c->child : c, &one, err);
		if (q->op == QUERY_OR || c == q->child) {
			fw_buf_addstr(docs, fw_buf_str(&one));
			found_sort(docs);
		} else {
			found_restrict(docs, &one, c->op != QUERY_NOT);
		}
		fw_buf_finish(&one);
		rc = !rc && docs->rc ? fw_no_memory(err) : rc;
	}
	return rc;
}

/* As a JSON array. False: more than a packet has room for. */
static bool docs_write(const struct mysql_db *s, const struct fw_buf *docs, struct fw_buf *value)
{
	size_t n = found_n(docs);

	if (n > s->packet_max / 2 / ID_BYTES)
		return false;
	fw_buf_addc(value, '[');
	for (size_t i = 0; i < n; i++) {
		if (i)
			fw_buf_addc(value, ',');
		mysql_int_put(value, found_at(docs)[i].doc);
	}
	fw_buf_addc(value, ']');
	return true;
}

int mysql_search_begin(struct sql *s, const struct query_node *words, bool *any, bool *exact, struct fw_buf *value,
	int64_t *missing, struct fw_err *err)
{
	struct fw_buf docs = FW_BUF_INIT(0);
	int rc = sql_search_catch_up(s, words_step, missing, err);

	rc = rc ? rc : tree_find(s, words, &docs, err);
	*any = !rc && docs_write(mysql_db(s), &docs, value);
	*exact = true;
	fw_buf_finish(&docs);
	return rc;
}
