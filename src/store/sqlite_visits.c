/* SPDX-License-Identifier: ISC */
/*
 * Visits: kept for good, read now and then.
 *
 * A commit's visits are one row of visit_batches, as JSON: an array of arrays of numbers, in the order of fw_visit_fields, with the
 * id of the feed's visit before it in place of the first, the feed in place of the run, and the time as a difference. The words of
 * an error stand at the end, if there are any. Those from before schema 6 have neither queue_us nor store_us. Any SQLite can read that
 * (the view `visits` does); a row for each would cost more than the rest of a visit. Brackets occur in no string, so that arrays can
 * be found without reading them.
 *
 * A visit's id is the row's, times 1,024, and its place. Visits with ids from elsewhere (older schemas, copies) lie one by one in
 * visit_rows. A feed's visits are a chain from its last one; what belongs to no feed any more is passed over until it is pruned.
 */
#include "store/fields.h"
#include "store/sqlite.h"

#define BATCH_BITS 10
#define BATCH_MAX (1 << BATCH_BITS)
#define FIELD_N 22
#define PRUNE_STEP 2000 /* visits per transaction */

enum { PREVIOUS, FEED, AT }; /* what the first elements are */

/* ---- writing --------------------------------------------------------------------------------------------------------------- */

#define NUMBER_CHARS 20 /* of the longest one */

static char *number_put(char *to, int64_t v)
{
	uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
	char text[NUMBER_CHARS], *p = text + sizeof(text);

	if (u == 0) { /* as many are */
		*to++ = '0';
		return to;
	}
	if (v < 0)
		*to++ = '-';
	do {
		*--p = (char)('0' + u % 10);
		u /= 10;
	} while (u);
	while (p < text + sizeof(text))
		*to++ = *p++;
	return to;
}

static void words_add(struct fw_buf *b, struct fw_str words)
{
	fw_buf_addc(b, '"');
	for (size_t i = 0; i < words.len; i++) {
		unsigned char c = (unsigned char)words.p[i];

		if (c < 0x20 || c == '"' || c == '\\' || c == '[' || c == ']')
			fw_buf_addf(b, "\\u%04x", c);
		else
			fw_buf_addc(b, (char)c);
	}
	fw_buf_addc(b, '"');
}

int sq_visits_end(struct sqlite *s, struct fw_err *err)
{
	struct sq_visits *b = &s->visits;
	int rc;

	if (!b->id)
		return 0;
	fw_buf_addc(&b->text, ']');
	rc = b->text.rc ? fw_err_set(err, FW_ENOMEM, "%s: no memory for the visits", s->path) :
		sq_do(s, SQ_VISITS_PUT, "INSERT INTO visit_batches (id, run_id, first_ms, last_ms, n, visits) VALUES (?,?,?,?,?,?)", err,
			"iiiiis", b->id, b->run_id, b->first_ms, b->last_ms, SQ_INT(b->n), fw_buf_str(&b->text));
	sq_visits_forget(s);
	return rc;
}

void sq_visits_forget(struct sqlite *s)
{
	fw_buf_reset(&s->visits.text);
	s->visits.id = 0;
	s->visits.n = 0;
}

int sq_run_put(struct sqlite *s, int64_t run_id, int64_t visit_id, struct fw_err *err)
{
	if (run_id == s->run_id)
		return 0;
	s->run_id = run_id;
	return sq_do(s, SQ_RUN_PUT, "INSERT OR IGNORE INTO runs (run_id, first_visit_id) VALUES (?, ?)", err, "ii", run_id, visit_id);
}

/* The numbers of one more visit; the bracket stays open. */
static void visit_put(struct fw_buf *text, size_t n, int64_t feed_id, const struct fw_visit *v, int64_t previous_id, int64_t first_ms)
{
	char *p = fw_buf_room(text, 2 + FIELD_N * (NUMBER_CHARS + 1)), *from = p;

	if (!p)
		return; /* sticky */
	*p++ = n ? ',' : '[';
	*p++ = '[';
	p = number_put(p, previous_id);
	*p++ = ',';
	p = number_put(p, feed_id);
	*p++ = ',';
	p = number_put(p, v->at_ms - first_ms);
	for (size_t i = AT + 1; i < FIELD_N - 1; i++) {
		*p++ = ',';
		p = number_put(p, fw_field_int(&fw_visit_fields[i], v));
	}
	text->len += (size_t)(p - from);
}

int sq_visit_add(struct sqlite *s, int64_t feed_id, const struct fw_visit *v, int64_t previous_id, int64_t *id, struct fw_err *err)
{
	struct sq_visits *b = &s->visits;
	int rc = b->id && (b->n == BATCH_MAX || b->run_id != v->run_id) ? sq_visits_end(s, err) : 0;

	if (!rc && !b->id) {
		rc = sq_number(s, &b->id, err);
		b->run_id = v->run_id;
		b->first_ms = b->last_ms = v->at_ms;
	}
	if (rc)
		return rc;
	visit_put(&b->text, b->n, feed_id, v, previous_id, b->first_ms);
	if (v->error.p) {
		fw_buf_addc(&b->text, ',');
		words_add(&b->text, v->error);
	}
	fw_buf_addc(&b->text, ']');
	b->last_ms = FW_MAX(b->last_ms, v->at_ms);
	*id = b->id << BATCH_BITS | (int64_t)b->n++;
	s->visit_d++;
	return sq_run_put(s, v->run_id, *id, err);
}

/* ---- reading --------------------------------------------------------------------------------------------------------------- */

static int64_t number_read(struct fw_str *t)
{
	bool minus = t->len && *t->p == '-';
	size_t at = minus;
	uint64_t v = 0;

	for (; at < t->len && fw_is_digit(t->p[at]); at++)
		v = v * 10 + (uint64_t)(t->p[at] - '0');
	*t = fw_str_sub(*t, at, t->len);
	return (int64_t)(minus ? 0 - v : v);
}

static struct fw_str words_read(struct fw_str t, struct fw_buf *words)
{
	fw_buf_reset(words);
	for (size_t i = 0; i < t.len && t.p[i] != '"'; i++) {
		if (t.p[i] != '\\') {
			fw_buf_addc(words, t.p[i]);
			continue;
		}
		if (i + 5 >= t.len)
			break;
		fw_buf_addc(words, (char)(fw_hexval((unsigned char)t.p[i + 4]) << 4 | fw_hexval((unsigned char)t.p[i + 5])));
		i += 5;
	}
	return fw_buf_str(words);
}

struct batch { /* a row of visit_batches, and where in its text each visit begins */
	int64_t id, run_id, first_ms;
	struct fw_str text;
	size_t n;
	uint32_t from[BATCH_MAX];
};

#define BATCH_COLUMNS "id, run_id, first_ms, visits"

static void batch_read(sqlite3_stmt *q, struct batch *b)
{
	b->id = sqlite3_column_int64(q, 0);
	b->run_id = sqlite3_column_int64(q, 1);
	b->first_ms = sqlite3_column_int64(q, 2);
	b->text = sq_text(q, 3);
	b->n = 0;
	for (size_t at = 1; at < b->text.len && b->n < BATCH_MAX;) {
		const char *p = memchr(b->text.p + at, '[', b->text.len - at);

		if (!p)
			break;
		at = (size_t)(p - b->text.p) + 1;
		b->from[b->n++] = (uint32_t)at;
	}
}

/* The i-th visit; its words live until the next one is read. */
static void batch_visit(const struct batch *b, size_t i, struct fw_visit *v, int64_t *previous_id, struct fw_buf *words)
{
	struct fw_str t = fw_str_sub(b->text, b->from[i], b->text.len);

	*v = (struct fw_visit){.id = b->id << BATCH_BITS | (int64_t)i, .run_id = b->run_id};
	*previous_id = number_read(&t);
	for (size_t k = FEED; k < FIELD_N - 1 && t.len > 1 && t.p[0] == ',' && t.p[1] != '"'; k++) { /* older ones have two less */
		int64_t x;

		t = fw_str_sub(t, 1, t.len);
		x = number_read(&t);
		if (k == FEED)
			v->feed_id = x;
		else
			fw_field_int_set(&fw_visit_fields[k], v, k == AT ? b->first_ms + x : x);
	}
	if (t.len > 1 && t.p[0] == ',' && t.p[1] == '"')
		v->error = words_read(fw_str_sub(t, 2, t.len), words);
}

#define ROW_COLUMNS "id, previous_id, feed_id, run_id, at_ms, kind, http_status, hops, slot, lateness_ms, dns_us, connect_us, tls_us," \
	" first_byte_us, total_us, parse_us, wire_bytes, body_bytes, item_n, new_n, changed_n, queue_us, store_us, error"

static void row_read(sqlite3_stmt *q, struct fw_visit *v, int64_t *previous_id)
{
	*v = (struct fw_visit){.id = sqlite3_column_int64(q, 0)};
	*previous_id = sqlite3_column_int64(q, 1);
	for (size_t i = 0; i < FIELD_N - 1; i++)
		fw_field_int_set(&fw_visit_fields[i], v, sqlite3_column_int64(q, (int)i + 2));
	v->error = sq_text(q, FIELD_N + 1);
}

struct shown {
	struct sqlite *s;
	const struct fw_visit_query *ask;
	fw_visit_cb *cb;
	void *ctx;
	size_t n;
	bool full;
};

/* One that may be wanted. */
static int show(struct shown *w, struct fw_visit *v, struct fw_err *err)
{
	const struct fw_visit_query *ask = w->ask;
	sqlite3_stmt *q;
	int rc;

	if ((ask->run_id && v->run_id != ask->run_id) || v->at_ms < ask->since_ms || (ask->feed_id && v->feed_id != ask->feed_id))
		return 0;
	q = sq_ask(w->s, SQ_FEED_URL, "SELECT url FROM feeds WHERE id = ?", err, "i", v->feed_id);
	rc = q ? sq_row(w->s, q, err) : err->rc;
	if (rc <= 0)
		return rc; /* its feed is gone */
	v->feed_url = sq_text(q, 0);
	rc = w->cb(w->ctx, v);
	sqlite3_reset(q);
	w->full = ++w->n == ask->limit;
	return rc;
}

/* Visits of both kinds, merged by their ids. */
struct walk {
	struct sqlite *s;
	sqlite3_stmt *rows, *batches;
	bool up, row_there, batch_there;
	int64_t after_id;
	size_t at;           /* in the batch */
	struct batch batch;
	struct fw_visit row;
	int64_t previous_id;
	struct fw_buf words;
};

static int next_row(struct walk *w, struct fw_err *err)
{
	int rc = sq_row(w->s, w->rows, err);

	w->row_there = rc > 0;
	if (rc > 0)
		row_read(w->rows, &w->row, &w->previous_id);
	return FW_MIN(rc, 0);
}

static int64_t batch_id(const struct walk *w)
{
	return w->batch.id << BATCH_BITS | (int64_t)w->at;
}

/* The next one of the batch, or the first (going down: the last) of the next batch. */
static int next_in_batch(struct walk *w, struct fw_err *err)
{
	int rc = 0;

	if (w->batch_there && w->batch.n && (w->up ? w->at + 1 < w->batch.n : w->at > 0)) {
		w->at += w->up ? 1 : (size_t)-1;
		return 0;
	}
	do {
		rc = sq_row(w->s, w->batches, err);
		w->batch_there = rc > 0;
		if (rc > 0)
			batch_read(w->batches, &w->batch);
	} while (rc > 0 && !w->batch.n);
	w->at = w->up || !w->batch.n ? 0 : w->batch.n - 1;
	return FW_MIN(rc, 0);
}

static int walk_begin(struct walk *w, struct fw_err *err)
{
	int rc;

	w->rows = w->up ? sq_ask(w->s, SQ_ROWS_UP, "SELECT " ROW_COLUMNS " FROM visit_rows WHERE id > ? ORDER BY id", err, "i", w->after_id) :
		sq_ask(w->s, SQ_ROWS_DOWN, "SELECT " ROW_COLUMNS " FROM visit_rows WHERE id > ? ORDER BY id DESC", err, "i", w->after_id);
	w->batches = !w->rows ? NULL : w->up ?
		sq_ask(w->s, SQ_BATCHES_UP, "SELECT " BATCH_COLUMNS " FROM visit_batches WHERE id >= ? ORDER BY id", err, "i",
			w->after_id >> BATCH_BITS) :
		sq_ask(w->s, SQ_BATCHES_DOWN, "SELECT " BATCH_COLUMNS " FROM visit_batches WHERE id >= ? ORDER BY id DESC", err, "i",
			w->after_id >> BATCH_BITS);
	if (!w->rows || !w->batches)
		return err->rc;
	rc = next_row(w, err);
	return rc ? rc : next_in_batch(w, err);
}

static void walk_end(struct walk *w)
{
	if (w->rows && w->row_there)
		sqlite3_reset(w->rows);
	if (w->batches && w->batch_there)
		sqlite3_reset(w->batches);
	fw_buf_finish(&w->words);
}

static int list_all(struct shown *to, int64_t after_id, bool up, struct fw_err *err)
{
	struct walk w = {.s = to->s, .up = up, .after_id = after_id, .words = FW_BUF_INIT(0)};
	int rc = walk_begin(&w, err);

	while (!rc && !to->full && (w.row_there || w.batch_there)) {
		bool row = w.row_there && (!w.batch_there || (up ? w.row.id < batch_id(&w) : w.row.id > batch_id(&w)));
		struct fw_visit v = w.row;
		int64_t previous_id;

		if (!row)
			batch_visit(&w.batch, w.at, &v, &previous_id, &w.words);
		if (v.id > after_id)
			rc = w.words.rc ? fw_err_set(err, FW_ENOMEM, "%s: visit list: out of memory", to->s->path) : show(to, &v, err);
		if (!rc)
			rc = row ? next_row(&w, err) : next_in_batch(&w, err);
	}
	walk_end(&w);
	return rc;
}

/* The visit with this id; *q is to be reset when it was looked at. *found false: pruned, or there never was one. */
static int visit_get(struct sqlite *s, int64_t id, struct batch *b, struct fw_buf *words, struct fw_visit *v, int64_t *previous_id,
	sqlite3_stmt **q, struct fw_err *err)
{
	size_t at = (size_t)(id & (BATCH_MAX - 1));
	int rc;

	*q = sq_ask(s, SQ_BATCH_AT, "SELECT " BATCH_COLUMNS " FROM visit_batches WHERE id = ?", err, "i", id >> BATCH_BITS);
	rc = *q ? sq_row(s, *q, err) : err->rc;
	if (rc < 0)
		return rc;
	if (rc > 0) {
		batch_read(*q, b);
		if (at < b->n) {
			batch_visit(b, at, v, previous_id, words);
			return words->rc ? fw_err_set(err, FW_ENOMEM, "%s: visits: out of memory", s->path) : 1;
		}
		sqlite3_reset(*q);
	}
	*q = sq_ask(s, SQ_ROW_AT, "SELECT " ROW_COLUMNS " FROM visit_rows WHERE id = ?", err, "i", id);
	rc = *q ? sq_row(s, *q, err) : err->rc;
	if (rc > 0)
		row_read(*q, v, previous_id);
	return rc;
}

static int list_feed(struct shown *to, int64_t id, struct fw_err *err)
{
	struct fw_buf words = FW_BUF_INIT(0);
	struct batch b;
	int rc = 0;

	while (id && !to->full && !rc) {
		int64_t previous_id;
		struct fw_visit v;
		sqlite3_stmt *q;

		rc = visit_get(to->s, id, &b, &words, &v, &previous_id, &q, err);
		if (rc <= 0)
			break;
		rc = show(to, &v, err);
		sqlite3_reset(q);
		id = previous_id < id ? previous_id : 0;
	}
	fw_buf_finish(&words);
	return rc;
}

int sq_visit_list(struct fw_store *st, const struct fw_visit_query *q, fw_visit_cb *cb, void *ctx, struct fw_err *err)
{
	struct sqlite *s = sqlite_of(st);
	struct shown to = {.s = s, .ask = q, .cb = cb, .ctx = ctx};
	struct sq_where w;
	int64_t first = 0;
	sqlite3_stmt *r;
	int rc;

	if (q->oldest_first)
		return list_all(&to, q->after_id, true, err);
	if (q->feed_id) {
		rc = sq_find(s, q->feed_id, NULL, &w, err);
		sq_found(&w);
		return rc ? rc : list_feed(&to, w.last_visit_id, err);
	}
	if (q->run_id) {
		r = sq_ask(s, SQ_RUN_FIRST, "SELECT first_visit_id FROM runs WHERE run_id = ?", err, "i", q->run_id);
		rc = r ? sq_row(s, r, err) : err->rc;
		if (rc < 0)
			return rc;
		if (rc > 0) {
			first = sqlite3_column_int64(r, 0);
			sqlite3_reset(r);
		}
	}
	return list_all(&to, first ? first - 1 : 0, false, err);
}

/* ---- forgetting -------------------------------------------------------------------------------------------------------- */

int sq_visits_drop(struct sqlite *s, int64_t feed_id, int64_t id, struct fw_err *err)
{
	struct fw_buf words = FW_BUF_INIT(0);
	struct batch b;
	int rc = 0;

	while (id && !rc) { /* down the chain, which may end early where old visits were pruned */
		int64_t previous_id;
		struct fw_visit v;
		sqlite3_stmt *q;

		rc = visit_get(s, id, &b, &words, &v, &previous_id, &q, err);
		if (rc <= 0)
			break;
		sqlite3_reset(q);
		if (v.feed_id != feed_id)
			break;
		s->visit_d--;
		rc = sq_do(s, SQ_ROW_DEL, "DELETE FROM visit_rows WHERE id = ?", err, "i", id);
		id = previous_id < id ? previous_id : 0;
	}
	fw_buf_finish(&words);
	return FW_MIN(rc, 0);
}

/* How many of a batch's visits belong to feeds that are there. */
static int live(struct sqlite *s, const struct batch *b, int64_t *n, struct fw_err *err)
{
	struct fw_buf words = FW_BUF_INIT(0);
	int rc = 0;

	for (size_t i = 0; i < b->n && rc >= 0; i++) {
		struct fw_visit v;
		int64_t previous_id;
		sqlite3_stmt *q;

		batch_visit(b, i, &v, &previous_id, &words);
		q = sq_ask(s, SQ_FEED_URL, "SELECT url FROM feeds WHERE id = ?", err, "i", v.feed_id);
		rc = q ? sq_row(s, q, err) : err->rc;
		if (rc > 0) {
			sqlite3_reset(q);
			++*n;
		}
	}
	fw_buf_finish(&words);
	return FW_MIN(rc, 0);
}

/* The oldest batch, if all of it is old; *n: how many visits went, -1 none. */
static int prune_batch(struct sqlite *s, int64_t before_ms, int64_t *n, struct fw_err *err)
{
	sqlite3_stmt *q = sq_ask(s, SQ_BATCH_OLD, "SELECT " BATCH_COLUMNS " FROM (SELECT * FROM visit_batches ORDER BY id LIMIT 1)"
		" WHERE last_ms < ?", err, "i", before_ms);
	int rc = q ? sq_row(s, q, err) : err->rc;
	struct batch b;

	*n = -1;
	if (rc <= 0)
		return rc;
	batch_read(q, &b);
	*n = 0;
	rc = live(s, &b, n, err);
	sqlite3_reset(q);
	s->visit_d -= *n;
	return rc ? rc : sq_do(s, SQ_BATCH_DEL, "DELETE FROM visit_batches WHERE id = ?", err, "i", b.id);
}

static int prune_in(struct sqlite *s, int64_t before_ms, int64_t *n, bool *more, struct fw_err *err)
{
	/* ids rise with time, give or take a batch: stop at the first one young enough */
	int64_t done = 0, batch_n = 0;
	int rc = sq_do(s, SQ_PRUNE_VISITS, "DELETE FROM visit_rows WHERE id IN (SELECT id FROM (SELECT id, at_ms FROM visit_rows"
		" ORDER BY id LIMIT ?) WHERE at_ms < ?)", err, "ii", SQ_INT(PRUNE_STEP), before_ms);

	done = rc ? 0 : sqlite3_changes(s->db);
	s->visit_d -= done;
	while (!rc && done < PRUNE_STEP && batch_n >= 0) {
		rc = prune_batch(s, before_ms, &batch_n, err);
		done += FW_MAX(batch_n, 0);
	}
	*more = done >= PRUNE_STEP;
	*n = done;
	rc = rc ? rc : sq_do(s, SQ_PRUNE_RUNS, "DELETE FROM runs WHERE first_visit_id < (SELECT min(id) FROM (SELECT min(id) AS id FROM"
		" visit_rows UNION ALL SELECT min(id) << 10 FROM visit_batches)) AND run_id <> (SELECT max(run_id) FROM runs)", err, "");
	rc = rc ? rc : sq_do(s, SQ_PRUNE_WORKERS, "DELETE FROM workers WHERE at_ms < ?", err, "i", before_ms);
	return rc ? rc : sq_do(s, SQ_PRUNE_CONTROLS, "DELETE FROM controls WHERE created_ms < ? AND id <> coalesce((SELECT max(id)"
		" FROM controls WHERE kind IN (2, 3)), 0)", err, "i", before_ms); /* the last of these says whether the fleet is paused */
}

int sq_visits_prune(struct sqlite *s, int64_t before_ms, int64_t *n, bool *more, struct fw_err *err)
{
	int64_t done = 0;
	int rc = sq_begin(s, err);

	if (rc)
		return rc;
	rc = sq_end(s, prune_in(s, before_ms, &done, more, err), err);
	*n = rc ? 0 : done;
	return rc;
}

int sq_visit_there(struct sqlite *s, int64_t id, bool *there, struct fw_err *err)
{
	sqlite3_stmt *q = sq_ask(s, SQ_VISIT_THERE, "SELECT 1 FROM visit_batches WHERE id = ? AND n > ?", err, "ii", id >> BATCH_BITS,
		id & (BATCH_MAX - 1));
	int rc = q ? sq_row(s, q, err) : err->rc;

	*there = rc > 0;
	if (rc > 0)
		sqlite3_reset(q);
	return FW_MIN(rc, 0);
}

static int count(void *ctx, const struct fw_visit *v)
{
	(void)v;
	++*(int64_t *)ctx;
	return 0;
}

int sq_visits_check(struct sqlite *s, void (*cb)(void *ctx, const char *finding), void *ctx, struct fw_err *err)
{
	int64_t n = 0, noted;
	struct shown to = {.s = s, .ask = &(struct fw_visit_query){0}, .cb = count, .ctx = &n};
	char text[100];
	int rc = list_all(&to, 0, true, err);

	rc = rc ? rc : sq_int(s, SQ_VISIT_NOTED, "SELECT value FROM meta WHERE name = 'visit_n'", 0, &noted, err);
	if (!rc && noted != n && fw_snprintf(text, sizeof(text), "meta: counts %lld visits, there are %lld", (long long)noted, (long long)n))
		cb(ctx, text);
	return rc;
}
