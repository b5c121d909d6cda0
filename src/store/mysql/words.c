/* SPDX-License-Identifier: ISC */
/*
 * Full-text search. InnoDB's own index knows neither words of one character (so no Chinese), nor
 * "was" and other stop words, and what it knows is the server's setting; so this one is ours: an
 * ordinary table of words, filled behind the storing.
 *
 * A step of maintenance takes some hundred entries and writes one row for each word in them: which
 * entries hold it, and at which places. Steps are numbered; all words of an entry are of one step.
 * So words of one entry are found together by (entry, step), and phrases by their places.
 *
 * Entries up to numbers.indexed_entry_id are in the index, but for those in entries_changed: they
 * wait to be indexed again. `entries_void` says that what steps below its own say of an entry is
 * old: the entry changed, or is gone. sweep.c takes that out.
 *
 * Occurrences in a row, by entry and place, seven bits a byte: the place (of the same entry: its
 * distance to the one before), doubled, plus 1 for the first one of an entry; that is followed by
 * the entry (its distance to the one before).
 */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/hash.h"
#include "store/driver.h"
#include "store/mysql/occurrences.h"
#include "store/tokens.h"
#include "store/words.h"
#include "base/banned.h"

#define STEP_MS 50
#define STEP_ROWS 300
#define STEP_BYTES ((size_t)1 << 20) /* of text, about */
#define CATCH_UP_ROWS 2000           /* a search indexes this many by itself */
#define CATCH_UP_MS 10000
#define WRITE_ROWS 2000              /* of one statement */
#define ID_BYTES 16                  /* of a number in a query, at most, about */

const char *const mysql_search_tables[] = {
	"CREATE TABLE words (word VARBINARY(64) NOT NULL, step BIGINT NOT NULL, entries LONGBLOB NOT NULL, PRIMARY KEY (word, step)) {table}",
	"CREATE TABLE entries_changed (entry_id {pk}) {table}",
	"INSERT INTO numbers (name, value) VALUES ('index_step', 0)",
	"CREATE TABLE " MYSQL_LAST_TABLE " (entry_id {pk}, step BIGINT NOT NULL) {table}",
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

void occurrence_put(struct fw_buf *b, struct occurrence *last, int64_t id, uint64_t place)
{
	bool first = id != last->id;

	varint_put(b, (place - (first ? 0 : last->place)) << 1 | first);
	if (first)
		varint_put(b, (uint64_t)(id - last->id));
	*last = (struct occurrence){id, place};
}

bool occurrence_get(struct fw_str *list, struct occurrence *o)
{
	uint64_t v;

	if (!list->len)
		return false;
	v = varint_get(list);
	o->place = (v >> 1) + (v & 1 ? 0 : o->place);
	if (v & 1)
		o->id += (int64_t)varint_get(list);
	return true;
}

/* ---- indexing --------------------------------------------------------------------------------- */

struct word { /* of a step */
	struct fw_str text;
	struct fw_buf list;
	struct occurrence last;
};

struct step {
	struct sql *s;
	struct fw_arena a;            /* words */
	struct word *word;            /* a table by hash: mask + 1 slots */
	size_t mask, word_n;
	struct fw_buf text;
	struct mysql_ids changed, done; /* what waited; what was read of it */
	struct mysql_ids *ids;        /* where those that are read are noted */
	size_t bytes;
	bool full;                    /* no more is read */
};

static struct word *slot_of(struct word *word, size_t mask, struct fw_str text)
{
	size_t i = (size_t)fw_hash64(text.p, text.len) & mask;

	while (word[i].text.p && !fw_str_eq(word[i].text, text))
		i = (i + 1) & mask;
	return &word[i];
}

static bool table_grow(struct step *p)
{
	size_t mask = p->mask ? p->mask * 2 + 1 : 8191;
	struct word *more = calloc(mask + 1, sizeof(*more));

	if (!more)
		return false;
	for (size_t i = 0; p->word && i <= p->mask; i++) {
		if (p->word[i].text.p)
			*slot_of(more, mask, p->word[i].text) = p->word[i];
	}
	free(p->word);
	p->word = more;
	p->mask = mask;
	return true;
}

static bool words_add(struct step *p, struct fw_str text, int64_t id)
{
	struct fw_store_token t;

	for (uint64_t place = 1; fw_store_token_next(&text, &t); place++) {
		struct fw_str word = {t.text, t.len};
		struct word *w;

		if (p->word_n * 2 >= p->mask && !table_grow(p))
			return false;
		w = slot_of(p->word, p->mask, word);
		if (!w->text.p) {
			w->text = fw_arena_str(&p->a, word);
			p->word_n++;
		}
		occurrence_put(&w->list, &w->last, id, place);
		if (!w->text.p || w->list.rc)
			return false;
	}
	return true;
}

/* A character that is cut in the middle by the limit is no matter. */
#define COLUMNS "e.id, left(e.title, 1048576), left(e.summary, 1048576), left(e.content, 1048576), e.content_type"

static int entry_row(void *ctx, const struct sql_row *row)
{
	struct step *p = ctx;
	int64_t id = sql_int(row, 0);

	if (p->full)
		return 0;
	fw_buf_reset(&p->text);
	fw_store_words(&p->text, sql_str(row, 1));
	fw_buf_addc(&p->text, '\n');
	fw_store_words(&p->text, sql_str(row, 2));
	fw_buf_addc(&p->text, '\n');
	if (sql_int(row, 4) == FW_TEXT_PLAIN)
		fw_store_words(&p->text, sql_str(row, 3));
	else
		fw_store_words_html(&p->text, sql_str(row, 3));
	if (p->text.rc || !words_add(p, fw_buf_str(&p->text), id) || !mysql_id_add(p->ids, id))
		return FW_ENOMEM;
	p->bytes += p->text.len;
	p->full = p->bytes >= STEP_BYTES;
	return 0;
}

static int by_word(const void *a, const void *b)
{
	const struct word *x = *(struct word *const *)a, *y = *(struct word *const *)b;
	int d = memcmp(x->text.p, y->text.p, FW_MIN(x->text.len, y->text.len));

	return d ? d : x->text.len < y->text.len ? -1 : x->text.len > y->text.len;
}

static int words_write(struct step *p, int64_t number, struct fw_err *err)
{
	static const struct sql_text PUT = {"INSERT INTO words (word, step, entries) {values}", "word:b step:i entries:b"};
	struct word **w = calloc(p->word_n + 1, sizeof(struct word *));
	struct sql_value *v = calloc(WRITE_ROWS, 3 * sizeof(*v));
	size_t n = 0;
	int rc = w && v ? 0 : fw_no_memory(err);

	for (size_t i = 0; !rc && p->word && i <= p->mask; i++) {
		if (p->word[i].text.p)
			w[n++] = &p->word[i];
	}
	if (!rc && n)
		qsort(w, n, sizeof(struct word *), by_word); /* as their rows lie */
	for (size_t at = 0; !rc && at < n; at += WRITE_ROWS) {
		size_t rows = FW_MIN(n - at, (size_t)WRITE_ROWS);

		for (size_t i = 0; i < rows; i++) {
			v[3 * i] = SQL_BLOB(w[at + i]->text);
			v[3 * i + 1] = SQL_INT(number);
			v[3 * i + 2] = SQL_BLOB(fw_buf_str(&w[at + i]->list));
		}
		rc = sql_each(p->s, &PUT, v, 3, rows, err);
	}
	free(v);
	free(w);
	return rc;
}

static int id_row(void *ctx, const struct sql_row *row)
{
	return mysql_id_add(ctx, sql_int(row, 0)) ? 0 : FW_ENOMEM;
}

/*
 * Those up to this one that changed, and what is gone. Who changes one of them from now on waits
 * for us, and then notes it anew.
 */
static int changed_read(struct step *p, int64_t indexed, struct fw_err *err)
{
	static const struct sql_text CHANGED = {"SELECT entry_id FROM entries_changed WHERE entry_id <= ?2 OR NOT EXISTS"
		" (SELECT 1 FROM entries e WHERE e.id = entry_id) ORDER BY entry_id LIMIT ?1 {skip}", NULL};
	static const struct sql_text AGAIN = {"SELECT " COLUMNS " FROM {rows} JOIN entries e ON e.id = v.spot ORDER BY v.spot", "spot:i"};
	struct sql_value v[STEP_ROWS];
	int rc = sql_ask(p->s, &CHANGED, (struct sql_value[]){SQL_INT(STEP_ROWS), SQL_INT(indexed)}, 2, id_row, &p->changed, NULL,
		err);

	for (size_t i = 0; !rc && i < p->changed.n; i++)
		v[i] = SQL_INT(p->changed.at[i]);
	p->ids = &p->done;
	return rc ? rc : sql_ask_each(p->s, &AGAIN, v, 1, p->changed.n, entry_row, p, err);
}

/* What was read again is not waiting any more, nor what is gone; and what was said of it before is old. */
static int changed_write(struct step *p, int64_t number, struct fw_err *err)
{
	static const struct sql_text VOID = {"INSERT INTO entries_void (entry_id, step) {values} {upsert entry_id} step = {new step}",
		"entry:i step:i"};
	static const struct sql_text DONE = {"DELETE FROM entries_changed WHERE entry_id = v.entry", "entry:i"};
	int64_t upto = p->full && p->done.n ? p->done.at[p->done.n - 1] : INT64_MAX;
	struct sql_value v[2 * STEP_ROWS];
	size_t n = 0;
	int rc;

	for (size_t i = 0; i < p->done.n; i++) {
		v[2 * i] = SQL_INT(p->done.at[i]);
		v[2 * i + 1] = SQL_INT(number);
	}
	rc = sql_each(p->s, &VOID, v, 2, p->done.n, err);
	for (size_t i = 0; i < p->changed.n && p->changed.at[i] <= upto; i++)
		v[n++] = SQL_INT(p->changed.at[i]);
	return rc ? rc : sql_each(p->s, &DONE, v, 1, n, err);
}

static int step_in(struct step *p, bool *more, struct fw_err *err)
{
	static const struct sql_text MARK = {"SELECT value FROM numbers WHERE name = 'indexed_entry_id' {skip}", NULL};
	static const struct sql_text NEXT = {"SELECT " COLUMNS " FROM entries e WHERE e.id > ?1 ORDER BY e.id LIMIT ?2", NULL};
	static const struct sql_text DONE = {"UPDATE numbers SET value = ?1 WHERE name = 'indexed_entry_id'", NULL};
	struct mysql_ids next = {0};
	int64_t from, number;
	int rc = sql_number(p->s, &MARK, NULL, 0, -1, &from, err);

	*more = false;
	if (rc || from < 0) /* another process is at it */
		return rc;
	rc = changed_read(p, from, err);
	p->ids = &next;
	if (!rc && !p->full)
		rc = sql_ask(p->s, &NEXT, (struct sql_value[]){SQL_INT(from), SQL_INT(STEP_ROWS)}, 2, entry_row, p, NULL, err);
	rc = rc ? rc : sql_numbers_take(p->s, "index_step", 1, &number, err);
	rc = rc ? rc : changed_write(p, number, err);
	if (!rc && next.n)
		rc = sql_do(p->s, &DONE, (struct sql_value[]){SQL_INT(next.at[next.n - 1])}, 1, err);
	*more = p->full || next.n == STEP_ROWS || p->changed.n == STEP_ROWS;
	free(next.at);
	rc = rc ? rc : words_write(p, number, err);
	return rc == FW_ENOMEM ? fw_no_memory(err) : rc;
}

static int step(struct sql *s, bool *more, struct fw_err *err)
{
	struct step p = {.s = s};
	int rc = s->dialect->begin(s, err);

	if (rc)
		return rc;
	fw_arena_init(&p.a, 0);
	rc = sql_end(s, step_in(&p, more, err), err);
	for (size_t i = 0; p.word && i <= p.mask; i++)
		fw_buf_finish(&p.word[i].list);
	free(p.word);
	free(p.changed.at);
	free(p.done.at);
	fw_buf_finish(&p.text);
	fw_arena_finish(&p.a);
	return rc;
}

/* What waits, up to a few more than a search catches up by itself. Asked without a lock, so that idle workers do not write. */
static int behind(struct sql *s, int64_t *n, struct fw_err *err)
{
	static const struct sql_text BEHIND = {"SELECT (SELECT count(*) FROM (SELECT 1 FROM entries WHERE id > (SELECT value FROM numbers"
		" WHERE name = 'indexed_entry_id') LIMIT ?1) a) + (SELECT count(*) FROM (SELECT 1 FROM entries_changed LIMIT ?1) b)", NULL};

	return sql_number(s, &BEHIND, (struct sql_value[]){SQL_INT(CATCH_UP_ROWS + 1)}, 1, 0, n, err);
}

static int steps(struct sql *s, int64_t ms, bool *more, struct fw_err *err)
{
	int64_t until_ms = fw_mono_ms() + ms, n;
	int rc = behind(s, &n, err);

	*more = !rc && n;
	while (!rc && *more) {
		rc = step(s, more, err);
		if (fw_mono_ms() >= until_ms)
			break;
	}
	return rc;
}

int mysql_search_step(struct sql *s, bool *more, struct fw_err *err)
{
	int rc = steps(s, STEP_MS, more, err);

	return rc || *more ? rc : mysql_sweep(mysql_db(s), more, err);
}

int mysql_search_unindexed(struct sql *s, int64_t *n, struct fw_err *err)
{
	static const struct sql_text COUNT = {"SELECT (SELECT count(*) FROM entries WHERE id > (SELECT value FROM numbers"
		" WHERE name = 'indexed_entry_id')) + (SELECT count(*) FROM entries_changed c JOIN entries e ON e.id = c.entry_id"
		" WHERE e.id <= (SELECT value FROM numbers WHERE name = 'indexed_entry_id'))", NULL};

	return sql_number(s, &COUNT, NULL, 0, 0, n, err);
}

/* Also of one that is not indexed yet: perhaps it is read just now, as it was. */
int mysql_search_changed(struct sql *s, int64_t entry_id, enum sql_entry_change what, struct fw_err *err)
{
	static const struct sql_text CHANGED = {"INSERT INTO entries_changed (entry_id) VALUES (?1) {keep entry_id|entry_id}", NULL};
	static const struct sql_text GONE = {"INSERT INTO entries_void (entry_id, step) SELECT ?1, value + 1 FROM numbers"
		" WHERE name = 'index_step' {upsert entry_id} step = {new step}", NULL};

	if (what == SQL_ENTRY_CHANGES)
		return 0;
	return sql_do(s, what == SQL_ENTRY_GOES ? &GONE : &CHANGED, (struct sql_value[]){SQL_INT(entry_id)}, 1, err);
}

/* ---- searching --------------------------------------------------------------------------------- */

struct doc { /* an entry as a step found it */
	int64_t id, step;
};

struct docs {
	struct doc *at;
	size_t n, cap;
};

struct spot {
	struct doc doc;
	uint64_t place;
};

struct spots {
	struct spot *at;
	size_t n, cap;
	const struct docs *among;
};

/* One more element of a list; NULL: out of memory. */
static void *more_of(void *at, size_t n, size_t *cap, size_t size)
{
	void *grown;

	if (n < *cap)
		return at;
	grown = reallocarray(at, *cap ? *cap * 2 : 256, size);
	*cap = grown ? *cap ? *cap * 2 : 256 : *cap;
	return grown;
}

bool mysql_id_add(struct mysql_ids *ids, int64_t id)
{
	int64_t *at = more_of(ids->at, ids->n, &ids->cap, sizeof(*at));

	if (!at)
		return false;
	ids->at = at;
	at[ids->n++] = id;
	return true;
}

/* As the rows of a word come. */
static int by_doc(const void *a, const void *b)
{
	const struct doc *x = a, *y = b;

	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

static int by_id(const void *a, const void *b)
{
	const struct doc *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static int by_spot(const void *a, const void *b)
{
	const struct spot *x = a, *y = b;
	int c = by_doc(&x->doc, &y->doc);

	return c ? c : x->place < y->place ? -1 : x->place > y->place;
}

/* Put in order, where they are not: those of one word are. */
static void in_order(void *at, size_t n, size_t size, int (*by)(const void *, const void *))
{
	const char *p = at;

	for (size_t i = 1; i < n; i++) {
		if (by(p + (i - 1) * size, p + i * size) > 0) {
			qsort(at, n, size, by);
			return;
		}
	}
}

/* Columns: step, entries. Each entry once. */
static int docs_row(void *ctx, const struct sql_row *row)
{
	struct fw_str list = sql_str(row, 1);
	struct occurrence o = {0};
	struct docs *d = ctx;
	int64_t id = 0;

	while (occurrence_get(&list, &o)) {
		struct doc *at;

		if (o.id == id)
			continue;
		at = more_of(d->at, d->n, &d->cap, sizeof(*at));
		if (!at)
			return FW_ENOMEM;
		d->at = at;
		id = o.id;
		at[d->n++] = (struct doc){id, sql_int(row, 0)};
	}
	return 0;
}

static int spots_row(void *ctx, const struct sql_row *row)
{
	struct fw_str list = sql_str(row, 1);
	struct occurrence o = {0};
	struct spots *p = ctx;
	bool wanted = false;
	int64_t id = 0;

	while (occurrence_get(&list, &o)) {
		struct doc doc = {o.id, sql_int(row, 0)};
		struct spot *at;

		if (o.id != id)
			wanted = p->among->n && bsearch(&doc, p->among->at, p->among->n, sizeof(doc), by_doc);
		id = o.id;
		if (!wanted)
			continue;
		at = more_of(p->at, p->n, &p->cap, sizeof(*at));
		if (!at)
			return FW_ENOMEM;
		p->at = at;
		at[p->n++] = (struct spot){doc, o.place};
	}
	return 0;
}

/* Rows of a word, or of all that begin so. */
static int word_ask(struct sql *s, const struct fw_store_token *t, bool prefix, sql_row_fn *fn, void *ctx, struct fw_err *err)
{
	static const struct sql_text ONE = {"SELECT step, entries FROM words WHERE word = ?1 ORDER BY step", NULL};
	static const struct sql_text PREFIX = {"SELECT step, entries FROM words WHERE word >= ?1 AND word < ?2", NULL};
	struct fw_str word = {t->text, t->len};
	char last[sizeof(t->text) + 1];
	int rc;

	memcpy(last, t->text, t->len);
	last[t->len] = '\xff'; /* behind all that begin so */
	rc = sql_ask(s, prefix ? &PREFIX : &ONE, (struct sql_value[]){SQL_BLOB(word), SQL_BLOB(((struct fw_str){last, t->len + 1}))},
		prefix ? 2 : 1, fn, ctx, NULL, err);
	return rc == FW_ENOMEM ? fw_no_memory(err) : rc;
}

static void docs_once(struct docs *d)
{
	size_t n = 0;

	in_order(d->at, d->n, sizeof(*d->at), by_doc);
	for (size_t i = 0; i < d->n; i++) {
		if (!n || by_doc(&d->at[i], &d->at[n - 1]) != 0)
			d->at[n++] = d->at[i];
	}
	d->n = n;
}

static void docs_common(struct docs *d, const struct docs *other)
{
	size_t n = 0;

	for (size_t i = 0, k = 0; i < d->n; i++) {
		while (k < other->n && by_doc(&other->at[k], &d->at[i]) < 0)
			k++;
		if (k < other->n && by_doc(&other->at[k], &d->at[i]) == 0)
			d->at[n++] = d->at[i];
	}
	d->n = n;
}

struct term { /* a word, or words in a row */
	struct fw_store_token *token;
	size_t n, cap;
	bool prefix; /* of the last one */
};

/* Of those that hold all of its words, which have them in a row? */
static int phrase_keep(struct sql *s, const struct term *t, struct docs *d, struct fw_err *err)
{
	struct spots ends = {.among = d}; /* of what was found so far: where it ends */
	size_t n = 0;
	int rc = 0;

	for (size_t i = 0; !rc && i < t->n; i++) {
		struct spots next = {.among = d};
		size_t kept = 0, e = 0;

		rc = word_ask(s, &t->token[i], t->prefix && i == t->n - 1, spots_row, &next, err);
		in_order(next.at, next.n, sizeof(*next.at), by_spot);
		for (size_t k = 0; !rc && i && k < next.n; k++) {
			struct spot before = {next.at[k].doc, next.at[k].place - 1};

			while (e < ends.n && by_spot(&ends.at[e], &before) < 0)
				e++;
			if (e < ends.n && by_spot(&ends.at[e], &before) == 0)
				next.at[kept++] = next.at[k];
		}
		next.n = i ? kept : next.n;
		free(ends.at);
		ends = next;
	}
	for (size_t i = 0; !rc && i < ends.n; i++) {
		if (!n || by_doc(&ends.at[i].doc, &d->at[n - 1]) != 0)
			d->at[n++] = ends.at[i].doc;
	}
	d->n = n;
	free(ends.at);
	return rc;
}

/* The entries of d that the term stands in; of all, when it is the first. */
static int term_find(struct sql *s, const struct term *t, struct docs *d, bool first, struct fw_err *err)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < t->n; i++) {
		struct docs has = {0};

		rc = word_ask(s, &t->token[i], t->prefix && i == t->n - 1, docs_row, &has, err);
		docs_once(&has);
		if (!first) {
			docs_common(d, &has);
			free(has.at);
		} else {
			*d = has;
		}
		first = false;
	}
	return rc || t->n < 2 ? rc : phrase_keep(s, t, d, err);
}

static int void_row(void *ctx, const struct sql_row *row)
{
	struct docs *d = ctx;
	struct doc from = {sql_int(row, 0), 0};
	size_t low = 0, high = d->n;

	while (low < high) { /* the first of this entry */
		size_t mid = low + (high - low) / 2;

		if (by_id(&d->at[mid], &from) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < d->n && d->at[low].id == from.id; low++) {
		if (d->at[low].step < sql_int(row, 1))
			d->at[low].step = -1;
	}
	return 0;
}

/* By id. What is old is left out: step -1. */
static int docs_valid(struct sql *s, struct docs *d, struct fw_err *err)
{
	static const struct sql_text VOID = {"SELECT x.entry_id, x.step FROM {rows} JOIN entries_void x ON x.entry_id = v.spot", "spot:i"};
	enum { AT_ONCE = 5000 };
	struct sql_value *v = calloc(AT_ONCE, sizeof(*v));
	int rc = v ? 0 : fw_no_memory(err);

	in_order(d->at, d->n, sizeof(*d->at), by_id);
	for (size_t at = 0; !rc && at < d->n; at += AT_ONCE) {
		size_t n = FW_MIN(d->n - at, (size_t)AT_ONCE);

		for (size_t i = 0; i < n; i++)
			v[i] = SQL_INT(d->at[at + i].id);
		rc = sql_ask_each(s, &VOID, v, 1, n, void_row, d, err);
	}
	free(v);
	return rc;
}

/* The words of one of the user's words or phrases; none: it is passed over. */
static int term_read(struct sql *s, const struct fw_store_word *w, struct term *t, struct fw_err *err)
{
	struct fw_store_token token;
	struct fw_str rest;

	t->n = 0;
	t->prefix = w->prefix;
	fw_buf_reset(&s->text);
	fw_store_words(&s->text, w->text);
	rest = fw_buf_str(&s->text);
	if (s->text.rc)
		return fw_no_memory(err);
	while (fw_store_token_next(&rest, &token)) {
		struct fw_store_token *at = more_of(t->token, t->n, &t->cap, sizeof(*at));

		if (!at)
			return fw_no_memory(err);
		t->token = at;
		at[t->n++] = token;
	}
	return 0;
}

/* As a JSON list: so many as the server takes, the newest of them. */
static void docs_write(const struct mysql_db *s, const struct docs *d, struct fw_buf *value)
{
	size_t max = s->packet_max / 2 / ID_BYTES, from = d->n > max ? d->n - max : 0;
	bool any = false;

	fw_buf_addc(value, '[');
	for (size_t i = from; i < d->n; i++) {
		if (d->at[i].step < 0)
			continue;
		fw_buf_addf(value, "%s%lld", any ? "," : "", (long long)d->at[i].id);
		any = true;
	}
	fw_buf_addc(value, ']');
}

static int catch_up(struct sql *s, int64_t *missing, struct fw_err *err)
{
	int64_t n;
	bool more;
	int rc = behind(s, &n, err);

	if (rc || !n)
		return rc;
	rc = s->read_only || n > CATCH_UP_ROWS ? 0 : steps(s, CATCH_UP_MS, &more, err);
	if (rc && rc != FW_EAGAIN) /* a busy store, a full disk: what is indexed is searched */
		return rc;
	return missing ? mysql_search_unindexed(s, missing, err) : 0;
}

int mysql_search_begin(struct sql *s, struct fw_str words, bool *any, struct fw_buf *where, struct fw_buf *value,
	int64_t *missing, struct fw_err *err)
{
	struct fw_store_word w;
	struct docs d = {0};
	struct term t = {0};
	int rc = 0;

	*any = false;
	if (missing)
		*missing = 0;
	fw_buf_adds(where, "e.id IN (SELECT j.id FROM JSON_TABLE(?1, '$[*]' COLUMNS (id BIGINT PATH '$')) j)");
	while (!rc && fw_store_word_next(&words, &w)) {
		rc = term_read(s, &w, &t, err);
		if (rc || !t.n)
			continue;
		if (!*any)
			rc = catch_up(s, missing, err);
		rc = rc ? rc : term_find(s, &t, &d, !*any, err);
		*any = true;
	}
	rc = rc ? rc : docs_valid(s, &d, err);
	if (!rc && *any)
		docs_write(mysql_db(s), &d, value);
	free(t.token);
	free(d.at);
	return rc;
}
