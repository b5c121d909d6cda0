/* SPDX-License-Identifier: ISC */
/*
 * The entries of an account. First the numbers that match, in order; then, if they are wanted, the
 * rows, in portions. Feeds, marks and exceptions are in memory by then. Numbers come from
 *
 *   - labels, or a search, where the stream names one;
 *   - the index by feed, of the feeds in question and above their marks: cost is what may match;
 *   - the index by id, or by date: cost is what lies between the matches. Better for the newest few
 *     of many.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "query/words.h"
#include "store/fields.h"
#include "store/sql/accounts.h"

#define WALK_MIN 500
#define WALK_MAX 20000
#define SHOWN_MAX 200
#define SHOWN_WHOLE_MAX 100 /* rows with content */

struct stream_key {
	int64_t id, feed_id;
	int64_t date_ms; /* of an order that is not by date: the place in it */
};

struct stream_work {
	struct sql *s;
	const struct fw_stream *q;
	const struct account_list_query *of;
	fw_stream_cb *cb;
	void *ctx;
	struct fw_err *err;
	struct sql_account_state state;
	int64_t low_id, high_id;   /* exclusive */
	bool dated;                /* dates are needed */
	int64_t *label, *no_label; /* entries with the label, rising; by wish */
	size_t label_n, no_label_n;
	struct fw_buf labels, no_labels;
	struct fw_buf keys; /* array of struct stream_key */
	size_t wanted;      /* so many matches are enough; SIZE_MAX: all */
	/* while the rows are shown */
	const struct stream_key *shown;
	size_t shown_n;
	struct fw_buf tags; /* array of struct stream_tag, by entry */
};

static struct stream_key *stream_keys(const struct stream_work *w, size_t *n)
{
	*n = w->keys.len / sizeof(struct stream_key);
	return (struct stream_key *)(void *)w->keys.p;
}

static int stream_key_add(struct stream_work *w, int64_t id, int64_t feed_id)
{
	const struct stream_key k = {id, feed_id, 0};

	fw_buf_add(&w->keys, &k, sizeof(k));
	return w->keys.rc;
}

/* ---- does a number match? -------------------------------------------------------------------- */

/* All parts but those that need a date. */
static bool stream_takes(const struct stream_work *w, int64_t id, int64_t feed_id)
{
	const struct fw_stream *q = w->q;
	const struct sql_account_feed *f;
	bool read;

	if (id <= w->low_id || id >= w->high_id)
		return false;
	f = sql_account_feed_find(&w->state, feed_id);
	if (!q->labelled && !f && !q->feed_id)
		return false;
	if ((f && !f->picked) || (!f && ((q->feed_id && q->feed_id != feed_id) || q->folder.p)))
		return false;
	if (q->labelled && !sql_ids_have(w->label, w->label_n, id))
		return false;
	if (q->not_labelled && sql_ids_have(w->no_label, w->no_label_n, id))
		return false;
	read = f ? sql_account_has_read(&w->state, f, id) : true;
	return q->read == FW_READ_ANY || read == (q->read == FW_READ_READ);
}

static bool stream_is_behind(const struct fw_stream *q, int64_t id, int64_t date_ms)
{
	if (!q->by_date || !q->behind_id)
		return true;
	if (date_ms != q->behind_date_ms)
		return (date_ms > q->behind_date_ms) == q->oldest_first;
	return id != q->behind_id && (id > q->behind_id) == q->oldest_first;
}

static bool stream_takes_dates(const struct stream_work *w, int64_t id, int64_t date_ms, int64_t seen_ms)
{
	const struct fw_stream *q = w->q;

	return (!q->since_ms || seen_ms >= q->since_ms) && (!q->until_ms || seen_ms < q->until_ms) &&
		(!q->published_since_ms || date_ms >= q->published_since_ms) &&
		(!q->published_until_ms || date_ms < q->published_until_ms) && stream_is_behind(q, id, date_ms);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static int stream_key_row(void *ctx, const struct sql_row *row)
{
	struct stream_work *w = ctx;
	int64_t id = sql_int(row, 0), feed_id = sql_int(row, 1);

	return stream_takes(w, id, feed_id) ? stream_key_add(w, id, feed_id) : 0;
}

/* The entries of the feeds in question, by their index. Unread ones below a mark are exceptions. */
static int stream_by_feed(struct stream_work *w)
{
	bool unread = w->q->read == FW_READ_UNREAD;
	struct sql_rows r = SQL_QUERY_ROWS(w->s, w->err, stream_key_row, w,
		"SELECT e.id, e.feed_id FROM {rows} entries e WHERE e.feed_id = v.feed AND e.id > v.low AND e.id <"
		" v.high",
		"feed:i low:i high:i");

	for (size_t i = 0; i < w->state.feed_n; i++) {
		const struct sql_account_feed *f = &w->state.feed[i];

		if (!f->picked)
			continue;
		sql_rows_add(&r,
			SQL_V(SQL_INT(f->feed_id), SQL_INT(unread ? FW_MAX(w->low_id, f->mark_id) : w->low_id),
				SQL_INT(w->high_id)));
		for (size_t k = f->from; unread && k < f->from + f->n; k++) {
			int64_t id = w->state.exception[k];

			if (id <= f->mark_id && stream_takes(w, id, f->feed_id) && stream_key_add(w, id, f->feed_id))
				r.rc = FW_ENOMEM;
		}
	}
	return sql_rows_end(&r);
}

static int stream_label_row(void *ctx, const struct sql_row *row)
{
	struct stream_work *w = ctx;
	int64_t id = sql_int(row, 0), feed_id = sql_int(row, 1);
	size_t n;
	const struct stream_key *k = stream_keys(w, &n);

	if (n && k[n - 1].id == id)
		return 0; /* another label of the same entry */
	if (w->q->search.p && !sql_ids_have(w->of->found, w->of->found_n, id))
		return 0;
	return stream_takes(w, id, feed_id) ? stream_key_add(w, id, feed_id) : 0;
}

static int stream_by_label(struct stream_work *w)
{
	const struct fw_stream *q = w->q;

	return q->labelled ?
		sql_query(w->s, "SELECT entry_id, feed_id FROM entry_labels WHERE account_id = ?1 AND label_id = ?2",
			SQL_V(SQL_INT(q->account_id), SQL_INT(q->label_id)), stream_label_row, w, w->err) :
		sql_query(w->s,
			"SELECT entry_id, feed_id FROM entry_labels WHERE account_id = ?1 AND feed_id = ?2"
			" ORDER BY entry_id",
			SQL_V(SQL_INT(q->account_id), SQL_INT(q->feed_id)), stream_label_row, w, w->err);
}

static int stream_by_search(struct stream_work *w)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < w->of->found_n; i++) {
		if (stream_takes(w, w->of->found[i], w->of->found_feed[i]))
			rc = stream_key_add(w, w->of->found[i], w->of->found_feed[i]);
	}
	return rc;
}

/* ---- dates ----------------------------------------------------------------------------------- */

static int stream_date_row(void *ctx, const struct sql_row *row)
{
	struct stream_work *w = ctx;
	size_t n;
	struct stream_key *k = stream_keys(w, &n) + sql_int(row, 0);

	k->date_ms = sql_int(row, 1);
	if (!stream_takes_dates(w, k->id, k->date_ms, sql_int(row, 2)))
		k->id = 0;
	return 0;
}

/* Read the dates of the numbers so far, and drop what they exclude. */
static int stream_dates_read(struct stream_work *w)
{
	struct sql_rows r = SQL_QUERY_ROWS(w->s, w->err, stream_date_row, w,
		"SELECT v.nth, e.date_ms, e.seen_ms FROM {rows} entries e WHERE e.id = v.spot", "nth:i spot:i");
	size_t n, kept = 0;
	struct stream_key *k = stream_keys(w, &n);

	for (size_t i = 0; i < n; i++)
		sql_rows_add(&r, SQL_V(SQL_INT(i), SQL_INT(k[i].id)));
	r.rc = sql_rows_end(&r);
	for (size_t i = 0; i < n; i++) {
		if (k[i].id)
			k[kept++] = k[i];
	}
	w->keys.len = kept * sizeof(*k);
	return r.rc;
}

/* ---- other orders ---------------------------------------------------------------------------- */

#define SORTED_READ 400  /* bytes of a text that count for its place */
#define SORTED_BYTES 100 /* of these when they are folded */

struct stream_text {
	struct fw_str text; /* folded */
	size_t nth;
};

struct stream_texts {
	struct stream_work *w;
	struct fw_arena arena;
	struct fw_buf folded;
	struct stream_text *at; /* of each number */
};

static int stream_changed_row(void *ctx, const struct sql_row *row)
{
	const struct stream_texts *t = ctx;
	size_t n;

	stream_keys(t->w, &n)[sql_int(row, 0)].date_ms = FW_MAX(sql_int(row, 1), sql_int(row, 2));
	return 0;
}

static int stream_text_row(void *ctx, const struct sql_row *row)
{
	struct stream_texts *t = ctx;

	fw_buf_reset(&t->folded);
	query_words(&t->folded, fw_str_sub(sql_str(row, 1), 0, SORTED_READ));
	t->at[sql_int(row, 0)].text = fw_arena_str(&t->arena, fw_str_sub(fw_buf_str(&t->folded), 0, SORTED_BYTES));
	return t->folded.rc || t->arena.failed ? FW_ENOMEM : 0;
}

static int stream_text_compare(const void *a, const void *b)
{
	const struct stream_text *x = a, *y = b;

	return fw_str_order(x->text, y->text);
}

/* Equal texts have the same place. */
static void stream_places_set(struct stream_texts *t)
{
	size_t n;
	struct stream_key *k = stream_keys(t->w, &n);
	int64_t place = 0;

	if (n)
		qsort(t->at, n, sizeof(*t->at), stream_text_compare);
	for (size_t i = 0; i < n; i++) {
		place += i && stream_text_compare(&t->at[i - 1], &t->at[i]) != 0;
		k[t->at[i].nth].date_ms = place;
	}
}

#define SORT(columns) "SELECT v.nth, " columns " FROM {rows} entries e WHERE e.id = v.spot", "nth:i spot:i"
static const struct sql_text STREAM_SORT[FW_SORT_N] = {
	[FW_SORT_CHANGED] = {SORT("e.changed_ms, e.seen_ms")},
	[FW_SORT_TITLE] = {SORT("e.title")},
	[FW_SORT_AUTHOR] = {SORT("e.author")},
};

/* Give the numbers so far their places in the order. */
static int stream_places_read(struct stream_work *w)
{
	struct stream_texts t = {.w = w, .folded = FW_BUF_INIT(0)};
	bool dates = w->q->sort == FW_SORT_CHANGED;
	struct sql_rows r = {.s = w->s,
		.err = w->err,
		.fn = dates ? stream_changed_row : stream_text_row,
		.ctx = &t,
		.text = STREAM_SORT[w->q->sort]};
	size_t n;
	const struct stream_key *k = stream_keys(w, &n);

	fw_arena_init(&t.arena, 0);
	t.at = fw_arena_calloc(&t.arena, n + 1, sizeof(*t.at));
	r.rc = t.at ? 0 : FW_ENOMEM;
	for (size_t i = 0; i < n && !r.rc; i++) {
		t.at[i].nth = i;
		sql_rows_add(&r, SQL_V(SQL_INT(i), SQL_INT(k[i].id)));
	}
	r.rc = r.rc ? r.rc : sql_rows_end(&r);
	if (!r.rc && !dates)
		stream_places_set(&t);
	fw_buf_finish(&t.folded);
	fw_arena_finish(&t.arena);
	return r.rc == FW_ENOMEM ? fw_no_memory(w->err) : r.rc;
}

static int stream_compare(const struct stream_key *x, const struct stream_key *y, bool by_date)
{
	if (by_date && x->date_ms != y->date_ms)
		return x->date_ms < y->date_ms ? -1 : 1;
	return FW_ORDER(x->id, y->id);
}

static int stream_id_up(const void *a, const void *b)
{
	return stream_compare(a, b, false);
}

static int stream_id_down(const void *a, const void *b)
{
	return stream_compare(b, a, false);
}

static int stream_date_up(const void *a, const void *b)
{
	return stream_compare(a, b, true);
}

static int stream_date_down(const void *a, const void *b)
{
	return stream_compare(b, a, true);
}

static int stream_sorted(struct stream_work *w, int (*from)(struct stream_work *w))
{
	int rc = from(w);
	bool by_date = w->q->by_date || w->q->sort;
	struct stream_key *k;
	size_t n;

	rc = rc || !w->dated ? rc : stream_dates_read(w);
	rc = rc || !w->q->sort || w->of->counted ? rc : stream_places_read(w);
	k = stream_keys(w, &n);
	if (!rc && n)
		qsort(k, n, sizeof(*k),
			by_date                    ? w->q->oldest_first ? stream_date_up : stream_date_down :
				w->q->oldest_first ? stream_id_up :
						     stream_id_down);
	return rc;
}

/* ---- a walk ---------------------------------------------------------------------------------- */

/* ?1, ?2: ids, exclusive; ?3: LIMIT; ?4, ?5: behind this date and id. */
#define WALK_ID "SELECT id, feed_id FROM entries WHERE id > ?1 AND id < ?2 ORDER BY id "
#define WALK_DATED "SELECT id, feed_id, date_ms, seen_ms FROM entries WHERE id > ?1 AND id < ?2"
static const char *const STREAM_WALK[2][2] = {
	/* dates; oldest first */
	{WALK_ID "DESC LIMIT ?3", WALK_ID "LIMIT ?3"},
	{WALK_DATED " ORDER BY id DESC LIMIT ?3", WALK_DATED " ORDER BY id LIMIT ?3"},
};
#define WALK_DATE "SELECT id, feed_id, date_ms, seen_ms FROM entries WHERE "
static const char *const STREAM_WALK_DATE[2] = {
	WALK_DATE "date_ms <= ?2 AND (date_ms < ?2 OR id < ?1) ORDER BY date_ms DESC, id DESC LIMIT ?3",
	WALK_DATE "date_ms >= ?2 AND (date_ms > ?2 OR id > ?1) ORDER BY date_ms, id LIMIT ?3",
};

struct account_page {
	struct stream_work *w;
	size_t n, left;
	int64_t last_id, last_date_ms;
};

static int stream_walk_row(void *ctx, const struct sql_row *row)
{
	struct account_page *p = ctx;
	struct stream_work *w = p->w;
	int64_t id = sql_int(row, 0), feed_id = sql_int(row, 1);

	p->n++;
	p->last_id = id;
	p->last_date_ms = w->dated ? sql_int(row, 2) : 0;
	if (!p->left || !stream_takes(w, id, feed_id))
		return 0;
	if (w->dated && !stream_takes_dates(w, id, p->last_date_ms, sql_int(row, 3)))
		return 0;
	p->left--;
	return stream_key_add(w, id, feed_id);
}

static int stream_walk(struct stream_work *w)
{
	struct account_page p = {.w = w, .left = w->wanted};
	const struct fw_stream *q = w->q;
	bool up = q->oldest_first;
	size_t page = FW_MAX(FW_MIN(w->wanted, (size_t)WALK_MAX), (size_t)WALK_MIN);
	int64_t low = w->low_id, high = w->high_id;
	int rc;

	p.last_id = q->behind_id ? q->behind_id : up ? 0 : INT64_MAX;
	p.last_date_ms = q->behind_id ? q->behind_date_ms : up ? INT64_MIN : INT64_MAX;
	do {
		p.n = 0;
		rc = q->by_date ?
			sql_query(w->s, STREAM_WALK_DATE[up],
				SQL_V(SQL_INT(p.last_id), SQL_INT(p.last_date_ms), SQL_INT(page)), stream_walk_row, &p,
				w->err) :
			sql_query(w->s, STREAM_WALK[w->dated][up], SQL_V(SQL_INT(low), SQL_INT(high), SQL_INT(page)),
				stream_walk_row, &p, w->err);
		if (!q->by_date && up)
			low = p.last_id;
		else if (!q->by_date)
			high = p.last_id;
		if (p.n < page)
			break;
		page = FW_MIN(4 * page, (size_t)WALK_MAX);
	} while (!rc && p.left);
	return rc;
}

/*
 * Walk, if fewer rows lie between the matches than would be read by feed. Matches are taken as
 * spread evenly over all entries: `all` of them, of which `some` may match.
 */
static int stream_should_walk(struct stream_work *w, bool *walk)
{
	int64_t all = 0, feeds = 1;
	double some = 0;
	int rc;

	*walk = false;
	if (w->wanted == SIZE_MAX || w->q->sort)
		return 0;
	rc = sql_query_int(w->s, "SELECT value FROM meta WHERE name = 'entry_id'", SQL_NONE, 0, &all, w->err);
	rc = rc ? rc :
		  sql_query_int(w->s, "SELECT value FROM meta WHERE name = 'feed_id'", SQL_NONE, 1, &feeds, w->err);
	for (size_t i = 0; i < w->state.feed_n && w->q->read == FW_READ_UNREAD; i++) {
		if (w->state.feed[i].picked)
			some += (double)(all - w->state.feed[i].mark_id) / (double)FW_MAX(feeds, INT64_C(1));
	}
	if (w->q->read != FW_READ_UNREAD)
		some = (double)all * (double)w->state.picked_n / (double)FW_MAX(feeds, INT64_C(1));
	*walk = (double)w->wanted * (double)all < some * some;
	return rc;
}

static int stream_numbers(struct stream_work *w)
{
	const struct fw_stream *q = w->q;
	bool walk;
	int rc;

	if (q->feed_id && !w->state.feed_n) /* not subscribed: only what has a label */
		return stream_sorted(w, stream_by_label);
	if (q->search.p)
		return stream_sorted(w, stream_by_search);
	if (q->labelled)
		return stream_sorted(w, stream_by_label);
	rc = stream_should_walk(w, &walk);
	if (rc)
		return rc;
	return walk ? stream_walk(w) : stream_sorted(w, stream_by_feed);
}

/* ---- prepare --------------------------------------------------------------------------------- */

static int stream_set_row(void *ctx, const struct sql_row *row)
{
	struct fw_buf *b = ctx;
	int64_t id = sql_int(row, 0);

	fw_buf_add(b, &id, sizeof(id));
	return b->rc;
}

static int stream_set_read(struct stream_work *w, struct fw_buf *b, int64_t **ids, size_t *n)
{
	int rc = sql_query(w->s,
		"SELECT entry_id FROM entry_labels WHERE account_id = ?1 AND label_id = ?2 ORDER BY entry_id",
		SQL_V(SQL_INT(w->q->account_id), SQL_INT(w->q->label_id)), stream_set_row, b, w->err);

	*ids = (int64_t *)(void *)b->p;
	*n = b->len / sizeof(**ids);
	return rc;
}

static int stream_prepare(struct stream_work *w)
{
	const struct fw_stream *q = w->q;
	int64_t id = 0;
	int rc = sql_account_state_read(w->s, &w->state, q, w->err);

	w->low_id = q->after_id;
	w->high_id = q->before_id ? q->before_id : INT64_MAX;
	w->dated = q->since_ms || q->until_ms || q->published_since_ms || q->published_until_ms || q->by_date;
	w->wanted = q->limit && !w->of->counted ? q->offset + q->limit : SIZE_MAX;
	if (!rc && q->since_ms)
		rc = sql_entry_id_seen_before(w->s, q->since_ms - SQL_SEEN_SLACK_MS, &id, w->err);
	w->low_id = FW_MAX(w->low_id, id);
	if (!rc && q->until_ms) {
		rc = sql_entry_id_seen_before(w->s, q->until_ms + SQL_SEEN_SLACK_MS, &id, w->err);
		w->high_id = FW_MIN(w->high_id, id + 1);
	}
	if (!rc && q->labelled)
		rc = stream_set_read(w, &w->labels, &w->label, &w->label_n);
	if (!rc && q->not_labelled)
		rc = stream_set_read(w, &w->no_labels, &w->no_label, &w->no_label_n);
	return rc;
}

/* ---- rows ------------------------------------------------------------------------------------ */

struct stream_tag {
	int64_t nth, label_id;
};

static int stream_tag_row(void *ctx, const struct sql_row *row)
{
	struct stream_work *w = ctx;
	const struct stream_tag t = {sql_int(row, 0), sql_int(row, 1)};

	fw_buf_add(&w->tags, &t, sizeof(t));
	return w->tags.rc;
}

FW_COMPARE_BY(stream_tag_compare, struct stream_tag, nth, label_id)

static int stream_tag_between_row(void *ctx, const struct sql_row *row)
{
	struct stream_work *w = ctx;
	struct stream_tag t = {0, sql_int(row, 1)};

	for (size_t i = 0; i < w->shown_n; i++) { /* entries with labels are few */
		t.nth = (int64_t)i;
		if (w->shown[i].id == sql_int(row, 0))
			fw_buf_add(&w->tags, &t, sizeof(t));
	}
	return w->tags.rc;
}

/* The same by one range: the entries lie close together, as those of a walk do. */
static int stream_tags_between(struct stream_work *w, int64_t first, int64_t last)
{
	int rc = sql_query(w->s,
		"SELECT entry_id, label_id FROM entry_labels WHERE entry_id >= ?2 AND entry_id <= ?3 AND account_id ="
		" ?1",
		SQL_V(SQL_INT(w->state.account_id), SQL_INT(first), SQL_INT(last)), stream_tag_between_row, w, w->err);

	if (!rc && w->tags.len)
		qsort(w->tags.p, w->tags.len / sizeof(struct stream_tag), sizeof(struct stream_tag),
			stream_tag_compare);
	return rc;
}

/* The labels of the entries that are shown, starred among them. */
static int stream_tags_read(struct stream_work *w)
{
	struct sql_rows r = SQL_QUERY_ROWS(w->s, w->err, stream_tag_row, w,
		"SELECT v.nth, l.label_id FROM {rows} entry_labels l WHERE l.entry_id = v.spot AND l.account_id ="
		" v.owner",
		"nth:i spot:i owner:i");
	int64_t first = INT64_MAX, last = 0;

	fw_buf_reset(&w->tags);
	for (size_t i = 0; i < w->shown_n; i++) {
		first = FW_MIN(first, w->shown[i].id);
		last = FW_MAX(last, w->shown[i].id);
	}
	if (w->shown_n && (uint64_t)last - (uint64_t)first < w->shown_n * 20)
		return stream_tags_between(w, first, last);
	for (size_t i = 0; i < w->shown_n; i++)
		sql_rows_add(&r, SQL_V(SQL_INT(i), SQL_INT(w->shown[i].id), SQL_INT(w->state.account_id)));
	r.rc = sql_rows_end(&r);
	if (!r.rc && w->tags.len)
		qsort(w->tags.p, w->tags.len / sizeof(struct stream_tag), sizeof(struct stream_tag),
			stream_tag_compare);
	return r.rc;
}

#define LABELS_SHOWN 100 /* of an entry */

/* The labels of the nth entry; returns how many. */
static size_t stream_tags_of(const struct stream_work *w, int64_t nth, bool *starred, int64_t *label)
{
	const struct stream_tag *t = (const struct stream_tag *)(const void *)w->tags.p;
	size_t n = w->tags.len / sizeof(*t), i = 0, label_n = 0;

	*starred = false;
	while (i < n && t[i].nth < nth)
		i++;
	for (; i < n && t[i].nth == nth; i++) {
		if (t[i].label_id == FW_LABEL_STARRED)
			*starred = true;
		else if (label_n < LABELS_SHOWN)
			label[label_n++] = t[i].label_id;
	}
	return label_n;
}

static int stream_entry_row(void *ctx, const struct sql_row *row)
{
	struct stream_work *w = ctx;
	int64_t nth = sql_int(row, 0), label[LABELS_SHOWN];
	struct fw_entry_row e = {.id = sql_int(row, 1),
		.feed_id = sql_int(row, 2),
		.feed_title = sql_str(row, 3),
		.feed_url = sql_str(row, 4)};
	const struct sql_account_feed *f = sql_account_feed_find(&w->state, e.feed_id);
	struct fw_stream_entry out = {.entry = &e, .label_id = label};

	sql_fields_set("entry", &e, row, 5);
	out.label_n = stream_tags_of(w, nth, &out.starred, label);
	out.read = f ? sql_account_has_read(&w->state, f, e.id) : true;
	return w->cb(w->ctx, &out);
}

/* clang-format off */
#define SHOW(base, content) {"SELECT v.nth, e.id, e.feed_id, coalesce(nullif(f.user_title, ''), f.title), f.url, " \
	"e.seen_ms, e.changed_ms, e.revision, e.published_ms, e.updated_ms, e.content_type, e.guid, e.url, e.title, " \
	"e.author, " base ", e.summary, e.extra, " content \
	" FROM {rows} entries e, feeds f WHERE e.id = v.spot AND f.id = e.feed_id ORDER BY v.nth", "nth:i spot:i"}
/* clang-format on */
static const struct sql_text STREAM_SHOW[2] = {SHOW("NULL", "NULL"), SHOW("e.content_base", "e.content")};

static int stream_rows_show(struct stream_work *w, const struct stream_key *k, size_t n, bool content)
{
	size_t step = content ? SHOWN_WHOLE_MAX : SHOWN_MAX;
	int rc = 0;

	for (size_t i = 0; !rc && i < n; i += step) {
		struct sql_rows r = {
			.s = w->s, .err = w->err, .fn = stream_entry_row, .ctx = w, .text = STREAM_SHOW[content]};

		w->shown = k + i;
		w->shown_n = FW_MIN(step, n - i);
		r.rc = stream_tags_read(w);
		for (size_t j = 0; j < w->shown_n; j++)
			sql_rows_add(&r, SQL_V(SQL_INT(j), SQL_INT(w->shown[j].id)));
		rc = sql_rows_end(&r);
	}
	return rc;
}

static int stream_numbers_show(struct stream_work *w, const struct stream_key *k, size_t n)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < n; i++) {
		const struct fw_entry_row e = {.id = k[i].id, .feed_id = k[i].feed_id};
		const struct sql_account_feed *f = sql_account_feed_find(&w->state, e.feed_id);

		rc = w->cb(w->ctx,
			&(struct fw_stream_entry){
				.entry = &e, .read = f ? sql_account_has_read(&w->state, f, e.id) : true});
	}
	return rc;
}

static void stream_finish(struct stream_work *w)
{
	sql_account_state_finish(&w->state);
	fw_buf_finish(&w->labels);
	fw_buf_finish(&w->no_labels);
	fw_buf_finish(&w->keys);
	fw_buf_finish(&w->tags);
}

static int stream_show(struct stream_work *w)
{
	const struct fw_stream *q = w->q;
	struct stream_key *k;
	size_t n;

	k = stream_keys(w, &n);
	if (w->of->n)
		*w->of->n = (int64_t)n;
	if (w->of->counted || q->offset >= n)
		return 0;
	n -= q->offset;
	n = q->limit ? FW_MIN(n, q->limit) : n;
	return w->of->whole ? stream_rows_show(w, k + q->offset, n, q->content) :
			      stream_numbers_show(w, k + q->offset, n);
}

int sql_account_stream(
	struct store *st, const struct account_list_query *q, fw_stream_cb *cb, void *ctx, struct fw_err *err)
{
	struct stream_work w = {.s = sql_of(st), .q = q->s, .of = q, .cb = cb, .ctx = ctx, .err = err};
	int rc;

	w.labels = w.no_labels = w.keys = w.tags = FW_BUF_INIT(0);
	rc = stream_prepare(&w);
	rc = rc ? rc : stream_numbers(&w);
	if (w.keys.rc || w.labels.rc || w.no_labels.rc)
		rc = fw_no_memory(err);
	rc = rc ? rc : stream_show(&w);
	stream_finish(&w);
	return rc;
}

/* ---- what a search may read ------------------------------------------------------------------ */

static int stream_feed_row(void *ctx, const struct sql_row *row)
{
	struct fw_buf *feeds = ctx;
	int64_t id = sql_int(row, 0);

	fw_buf_add(feeds, &id, sizeof(id));
	return feeds->rc;
}

/* Feeds that the account does not subscribe, but of which it has labelled entries. */
static int stream_feeds_left(struct stream_work *w, struct fw_buf *feeds)
{
	return sql_query(w->s,
		"SELECT DISTINCT e.feed_id FROM entry_labels l, entries e WHERE l.account_id = ?1 AND e.id = l.entry_id"
		" AND (?2 = 0 OR e.feed_id = ?2) AND NOT EXISTS (SELECT 1 FROM subscriptions s WHERE s.account_id = ?1"
		" AND s.feed_id = e.feed_id)",
		SQL_V(SQL_INT(w->q->account_id), SQL_INT(w->q->feed_id)), stream_feed_row, feeds, w->err);
}

int sql_account_stream_feeds(struct store *st, const struct fw_stream *q, struct fw_buf *feeds, struct fw_err *err)
{
	struct stream_work w = {.s = sql_of(st), .q = q, .err = err};
	int rc = sql_account_state_read(w.s, &w.state, q, err);

	for (size_t i = 0; !rc && i < w.state.feed_n; i++) {
		const struct sql_account_feed *f = &w.state.feed[i];

		if (f->picked)
			fw_buf_add(feeds, &f->feed_id, sizeof(f->feed_id));
	}
	if (!rc && (q->labelled || (q->feed_id && !w.state.feed_n)))
		rc = stream_feeds_left(&w, feeds);
	sql_account_state_finish(&w.state);
	return feeds->rc ? fw_no_memory(err) : rc;
}

/* ---- entries by number ----------------------------------------------------------------------- */

static int stream_got_row(void *ctx, const struct sql_row *row)
{
	struct stream_work *w = ctx;
	size_t n;

	stream_keys(w, &n)[sql_int(row, 0)].feed_id = sql_int(row, 1);
	return 0;
}

/* Keep the numbers of entries that the account subscribes or has labelled. */
static int stream_keys_see(struct stream_work *w)
{
	struct sql_rows r = SQL_QUERY_ROWS(w->s, w->err, stream_got_row, w,
		"SELECT v.nth, e.feed_id FROM {rows} entries e WHERE e.id = v.spot", "nth:i spot:i");
	size_t n, kept = 0;
	struct stream_key *k = stream_keys(w, &n);

	for (size_t i = 0; i < n; i++)
		sql_rows_add(&r, SQL_V(SQL_INT(i), SQL_INT(k[i].id)));
	r.rc = sql_rows_end(&r);
	w->shown = k;
	w->shown_n = n;
	r.rc = r.rc ? r.rc : stream_tags_read(w);
	for (size_t i = 0, t = 0; !r.rc && i < n; i++) {
		const struct stream_tag *tag = (const struct stream_tag *)(const void *)w->tags.p;
		size_t tag_n = w->tags.len / sizeof(*tag);
		struct stream_key key = k[i];

		while (t < tag_n && tag[t].nth < (int64_t)i)
			t++;
		if (key.feed_id &&
			((t < tag_n && tag[t].nth == (int64_t)i) || sql_account_feed_find(&w->state, key.feed_id)))
			k[kept++] = key;
	}
	w->keys.len = kept * sizeof(*k);
	return r.rc;
}

int sql_account_entries_get(struct store *st, int64_t account_id, const int64_t *ids, size_t n, bool content,
	fw_stream_cb *cb, void *ctx, struct fw_err *err)
{
	const struct fw_stream q = {.account_id = account_id};
	struct stream_work w = {.s = sql_of(st), .q = &q, .cb = cb, .ctx = ctx, .err = err};
	const struct stream_key *k;
	int rc;

	w.labels = w.no_labels = w.keys = w.tags = FW_BUF_INIT(0);
	rc = sql_account_state_read(w.s, &w.state, &q, err);
	for (size_t i = 0; !rc && i < n; i++)
		rc = stream_key_add(&w, ids[i], 0);
	rc = rc ? rc : stream_keys_see(&w);
	k = stream_keys(&w, &n);
	if (w.keys.rc)
		rc = fw_no_memory(err);
	rc = rc ? rc : stream_rows_show(&w, k, n, content);
	stream_finish(&w);
	return rc;
}
