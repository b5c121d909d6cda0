/* SPDX-License-Identifier: ISC */
/*
 * What people look at and change: feeds, visits, figures, control messages, workers.
 *
 * Lists first ask for the numbers of what they show, then for the rows, some hundred at a time. So a slow reader keeps no query open,
 * and a million feeds take eight megabytes.
 */
#include <stdlib.h>

#include "base/hash.h"
#include "base/url.h"
#include "base/utf8.h"
#include "store/maria.h"

#define ROWS 250 /* asked for at once */

/* ---- reading -------------------------------------------------------------------------------------------------------------- */

void mr_feed_columns(struct maria *m)
{
	fw_buf_adds(&m->sql, "f.id");
	for (size_t i = 0; i < fw_wheel_field_n; i++)
		fw_buf_addf(&m->sql, ",w.%s", fw_wheel_fields[i].name);
	for (size_t i = 0; i < fw_feed_field_n; i++)
		fw_buf_addf(&m->sql, ",f.%s", fw_feed_fields[i].name);
}

unsigned mr_feed_read(const struct mr_res *r, unsigned col, struct fw_feed *f)
{
	*f = (struct fw_feed){.id = mr_int(r, col++)};
	for (size_t i = 0; i < fw_wheel_field_n; i++)
		mr_field_read(r, col++, &fw_wheel_fields[i], f);
	for (size_t i = 0; i < fw_feed_field_n; i++)
		mr_field_read(r, col++, &fw_feed_fields[i], f);
	return col;
}

void mr_names(struct maria *m, const struct fw_field *f, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fw_buf_addf(&m->sql, ",%s", f[i].name);
}

void mr_values(struct maria *m, const struct fw_field *f, size_t n, const void *of)
{
	for (size_t i = 0; i < n; i++) {
		fw_buf_addc(&m->sql, ',');
		mr_value_field(m, &f[i], of);
	}
}

int mr_ids_add(struct maria *m, struct mr_ids *ids, int64_t id, struct fw_err *err)
{
	if (ids->n == ids->cap) {
		size_t cap = ids->cap ? ids->cap * 2 : 256;
		int64_t *grown = reallocarray(ids->at, cap, sizeof(*grown));

		if (!grown)
			return mr_no_memory(m, err);
		ids->at = grown;
		ids->cap = cap;
	}
	ids->at[ids->n++] = id;
	return 0;
}

int mr_by_number(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

void mr_ids_once(struct mr_ids *ids)
{
	size_t kept = 0;

	if (ids->n)
		qsort(ids->at, ids->n, sizeof(*ids->at), mr_by_number);
	for (size_t i = 0; i < ids->n; i++) {
		if (!kept || ids->at[kept - 1] != ids->at[i])
			ids->at[kept++] = ids->at[i];
	}
	ids->n = kept;
}

int mr_ids_read(struct maria *m, struct mr_ids *ids, struct fw_err *err)
{
	struct mr_res r;
	int rc = mr_stream(m, &r, err);

	while (!rc && mr_row(&r))
		rc = mr_ids_add(m, ids, mr_int(&r, 0), err);
	mr_done(&r); /* takes the rest off the line */
	return !rc && mysql_errno(m->db) ? mr_error(m, "listing", err) : rc;
}

/* ---- subscriptions ------------------------------------------------------------------------------------------------------- */

struct fresh { /* a URL of the call, by its hash */
	struct fw_hash128 hash;
	size_t first; /* of the call's, the first that has it */
	int64_t id;   /* 0: not subscribed yet */
};

struct subscribe {
	struct fw_feed_new *feed;
	size_t n;
	struct fresh *fresh; /* sorted */
	size_t fresh_n;
	struct mr_join *join;
	int64_t now_ms;
};

static int by_hash(const void *a, const void *b)
{
	const struct fresh *x = a, *y = b;
	int d = memcmp(x->hash.b, y->hash.b, sizeof(x->hash.b));

	return d ? d : x->first < y->first ? -1 : x->first > y->first;
}

static int by_first(const void *a, const void *b)
{
	const struct fresh *x = a, *y = b;

	return x->first < y->first ? -1 : x->first > y->first;
}

static struct fresh *fresh_find(struct subscribe *s, struct fw_str hash)
{
	size_t lo = 0, hi = s->fresh_n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (memcmp(s->fresh[mid].hash.b, hash.p, FW_MIN(hash.len, 16)) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < s->fresh_n && memcmp(s->fresh[lo].hash.b, hash.p, FW_MIN(hash.len, 16)) == 0 ? &s->fresh[lo] : NULL;
}

static struct fw_str hash_str(const struct fw_hash128 *h)
{
	return (struct fw_str){(const char *)h->b, sizeof(h->b)};
}

/* Which of the URLs are subscribed already. */
static int known_read(struct maria *m, struct subscribe *s, struct fw_err *err)
{
	struct mr_res r;
	int rc;

	fw_buf_adds(&m->sql, m->sql.len ? ";" : "");
	fw_buf_adds(&m->sql, "SELECT url_hash, id FROM feeds FORCE INDEX (feeds_url) WHERE url_hash IN (");
	for (size_t i = 0; i < s->fresh_n; i++) {
		fw_buf_adds(&m->sql, i ? "," : "");
		mr_value_bytes(m, hash_str(&s->fresh[i].hash));
	}
	fw_buf_addc(&m->sql, ')');
	rc = mr_answer(m, &r, err);
	while (!rc && mr_row(&r)) {
		struct fresh *f = fresh_find(s, mr_str(&r, 0));

		if (f)
			f->id = mr_int(&r, 1);
	}
	return rc;
}

/* Each URL of the call once. */
static int urls_gather(struct maria *m, struct subscribe *s, struct fw_err *err)
{
	size_t kept = 0;

	s->fresh_n = 0;
	for (size_t i = 0; i < s->n; i++) {
		struct fw_str url = s->feed[i].url;

		if (fw_utf8_valid(url.p, url.len) != url.len)
			return fw_err_set(err, FW_EINVAL, "%s: \"%.*s\": a URL that is no UTF-8: write it with percent signs", m->name, FW_STR_ARG(url));
		s->fresh[i] = (struct fresh){fw_hash128(url.p, url.len), i, 0};
	}
	qsort(s->fresh, s->n, sizeof(*s->fresh), by_hash);
	for (size_t i = 0; i < s->n; i++) {
		if (!kept || memcmp(s->fresh[kept - 1].hash.b, s->fresh[i].hash.b, 16) != 0)
			s->fresh[kept++] = s->fresh[i];
	}
	s->fresh_n = kept;
	return 0;
}

/* Rows of `feeds` for all that are new, in the order of the call; their numbers are read back by their hashes. */
static int feeds_put(struct maria *m, struct subscribe *s, struct fresh *news, size_t n, struct fw_err *err)
{
	struct mr_rows feeds = {"INSERT INTO feeds (url, url_hash, host_id, home_page_url, user_title, folder, username, password,"
		" interval_ms, created_ms) VALUES "};
	struct mr_rows wheel = {"INSERT INTO wheel (feed_id, due_at_ms) VALUES "};
	struct mr_line l = {0};
	int rc;

	for (size_t i = 0; i < n; i++) {
		const struct fw_feed_new *f = &s->feed[news[i].first];

		mr_rows_add(m, &feeds, "sbisssssii", f->url, hash_str(&news[i].hash), s->join[i].host_id, f->home_page_url, f->user_title,
			f->folder, f->username, f->password, f->interval_ms, s->now_ms);
	}
	mr_rows_end(m, &feeds);
	rc = known_read(m, s, err);
	for (size_t i = 0; i < n && !rc; i++) {
		const struct fw_feed_new *f = &s->feed[news[i].first];
		int64_t id = fresh_find(s, hash_str(&news[i].hash))->id, due = f->due_at_ms ? f->due_at_ms : s->now_ms;

		mr_rows_add(m, &wheel, "ii", id, due);
		mr_line_on(&l, id, due, s->join[i].crowded ? s->join[i].host_id : 0, 0);
	}
	mr_rows_end(m, &wheel);
	rc = rc ? rc : mr_line_write(m, &l, err);
	mr_line_finish(&l);
	return rc;
}

static int subscribe_in(struct maria *m, void *arg, struct fw_err *err)
{
	struct subscribe *s = arg;
	struct fresh *news = calloc(s->n + 1, sizeof(*news));
	size_t n = 0;
	int rc = news ? urls_gather(m, s, err) : mr_no_memory(m, err);

	rc = rc ? rc : known_read(m, s, err);
	for (size_t i = 0; i < s->fresh_n && !rc; i++) {
		if (!s->fresh[i].id)
			news[n++] = s->fresh[i];
	}
	if (!rc && n) {
		qsort(news, n, sizeof(*news), by_first);
		for (size_t i = 0; i < n; i++)
			s->join[i] = (struct mr_join){.url = s->feed[news[i].first].url};
		rc = mr_hosts_join(m, s->join, n, err);
		rc = rc ? rc : feeds_put(m, s, news, n, err);
		rc = rc ? rc : mr_change(m, err);
	}
	for (size_t i = 0; i < s->n && !rc; i++) {
		struct fw_hash128 h = fw_hash128(s->feed[i].url.p, s->feed[i].url.len);

		s->feed[i].id = fresh_find(s, hash_str(&h))->id;
		s->feed[i].existed = true;
	}
	for (size_t i = 0; i < n && !rc; i++)
		s->feed[news[i].first].existed = false;
	free(news);
	return rc;
}

#define SUBSCRIBE_STEP 2000 /* per statement; all in one transaction */

int mr_subscribe(struct fw_store *st, struct fw_feed_new *feed, size_t n, struct fw_err *err)
{
	struct maria *m = mr_of(st);
	struct subscribe s = {.feed = feed, .n = n, .fresh = calloc(n + 1, sizeof(*s.fresh)), .join = calloc(n + 1, sizeof(*s.join))};
	int rc = s.fresh && s.join ? mr_now(m, 0, &s.now_ms, err) : mr_no_memory(m, err);

	rc = rc || !n ? rc : mr_transact(m, subscribe_in, &s, err);
	free(s.fresh);
	free(s.join);
	return rc;
}

/* A feed's visits, from its last one down the chain, which may end early where old visits were pruned. */
#define CHAIN "WITH RECURSIVE chain (id, previous_id) AS (SELECT id, previous_id FROM visits WHERE id = ? UNION ALL" \
	" SELECT v.id, v.previous_id FROM chain c JOIN visits v ON v.id = c.previous_id) "

static int visits_drop(struct maria *m, int64_t last_id, struct fw_err *err)
{
	struct mr_rows gone = MR_DELETE("visits", "id");
	struct mr_ids ids = {0};
	struct mr_res r;
	int rc = last_id ? mr_ask(m, &r, err, CHAIN "SELECT id FROM chain", "i", last_id) : 0;

	while (!rc && last_id && mr_row(&r))
		rc = mr_ids_add(m, &ids, mr_int(&r, 0), err);
	for (size_t i = 0; i < ids.n && !rc; i++)
		mr_rows_add(m, &gone, "i", ids.at[i]);
	mr_rows_end(m, &gone);
	m->visit_d -= (int64_t)ids.n;
	free(ids.at);
	return rc;
}

static int unsubscribe_in(struct maria *m, void *arg, struct fw_err *err)
{
	int64_t feed_id = *(int64_t *)arg;
	struct mr_line l = {0};
	struct mr_stand s;
	int rc = mr_stand_lock(m, feed_id, &s, err);

	if (!rc && s.lent) {
		s.lent->ends = true;
		mr_loans_write(m, &s.loans);
		rc = mr_line_hosts(m, &l, &s.lent->host_id, 1, 1, false, err);
		if (!rc && s.lent->host_id)
			mr_line_return(&l, s.lent->host_id, true, 0);
	}
	rc = rc ? rc : mr_stand_off(m, &s, &l, err);
	rc = rc ? rc : mr_line_write(m, &l, err);
	rc = rc ? rc : visits_drop(m, s.last_visit_id, err);
	rc = rc ? rc : mr_entries_drop(m, feed_id, err);
	mr_put(m, "DELETE FROM wheel WHERE feed_id = ?", "i", feed_id);
	mr_put(m, "DELETE FROM feeds WHERE id = ?", "i", feed_id);
	mr_host_leave(m, s.host_id);
	mr_line_finish(&l);
	mr_stand_finish(&s);
	return rc;
}

int mr_unsubscribe(struct fw_store *st, int64_t feed_id, struct fw_err *err)
{
	return mr_transact(mr_of(st), unsubscribe_in, &feed_id, err);
}

struct set {
	const struct fw_feed *feed;
	unsigned what;
};

/* A new status or due time: off the wheel where it stood, and on again where it belongs. A lent feed's lease goes on. */
static int move(struct maria *m, struct mr_stand *s, int64_t status, int64_t due_ms, struct fw_err *err)
{
	struct mr_line l = {0};
	int64_t feed_n = 0;
	int rc = s->lent ? 0 : mr_stand_off(m, s, &l, err);

	mr_put(m, "UPDATE wheel SET status = ?, due_at_ms = ? WHERE feed_id = ?", "iii", status, due_ms, s->feed_id);
	if (s->lent) {
		s->loan->rewrite = true;
		mr_loans_write(m, &s->loans);
	} else if (!rc && status == FW_FEED_ACTIVE) {
		rc = mr_number(m, 0, &feed_n, err, "SELECT feed_n FROM hosts WHERE id = ? FOR UPDATE", "i", s->host_id);
		mr_line_on(&l, s->feed_id, due_ms, feed_n > 1 ? s->host_id : 0, 0);
	}
	rc = rc ? rc : mr_line_write(m, &l, err);
	mr_line_finish(&l);
	return rc ? rc : mr_change(m, err);
}

static int feed_set_in(struct maria *m, void *arg, struct fw_err *err)
{
	const struct set *w = arg;
	const struct fw_feed *n = w->feed;
	unsigned what = w->what;
	struct mr_stand s;
	int rc = mr_stand_lock(m, n->id, &s, err);

	if (rc)
		goto out;
	if (what & FW_SET_TITLE)
		mr_put(m, "UPDATE feeds SET user_title = ? WHERE id = ?", "si", n->user_title, n->id);
	if (what & FW_SET_FOLDER)
		mr_put(m, "UPDATE feeds SET folder = ? WHERE id = ?", "si", n->folder, n->id);
	if (what & FW_SET_INTERVAL)
		mr_put(m, "UPDATE feeds SET interval_ms = ? WHERE id = ?", "ii", n->interval_ms, n->id);
	if (what & FW_SET_AUTH)
		mr_put(m, "UPDATE feeds SET username = ?, password = ? WHERE id = ?", "ssi", n->username, n->password, n->id);
	if (what & FW_SET_CRASH)
		mr_put(m, "UPDATE wheel SET crash_n = ? WHERE feed_id = ?", "ii", MR_INT(n->crash_n), n->id);
	if (what & (FW_SET_STATUS | FW_SET_DUE))
		rc = move(m, &s, what & FW_SET_STATUS ? MR_INT(n->status) : s.status, what & FW_SET_DUE ? n->due_at_ms : s.due_ms, err);
out:
	mr_stand_finish(&s);
	return rc;
}

int mr_feed_set(struct fw_store *st, const struct fw_feed *feed, unsigned what, struct fw_err *err)
{
	return mr_transact(mr_of(st), feed_set_in, &(struct set){feed, what}, err);
}

/* ---- feeds ---------------------------------------------------------------------------------------------------------------- */

/* Who has what, while feeds are shown. */
struct out {
	int64_t feed_id, until_ms, fence;
};

struct outs {
	struct out *at; /* by feed */
	size_t n;
};

static int out_order(const void *a, const void *b)
{
	const struct out *x = a, *y = b;

	return x->feed_id < y->feed_id ? -1 : x->feed_id > y->feed_id;
}

/* feed_id 0: all. */
static int outs_read(struct maria *m, int64_t feed_id, struct outs *out, struct fw_err *err)
{
	struct mr_loans loans;
	size_t cap = 0;
	int rc = mr_loans_read(m, feed_id, &loans, err);

	for (size_t i = 0; i < loans.n; i++)
		cap += loans.at[i].n;
	*out = (struct outs){.at = calloc(cap + 1, sizeof(*out->at))};
	if (!rc && !out->at)
		rc = mr_no_memory(m, err);
	for (size_t i = 0; i < loans.n && !rc; i++) {
		const struct mr_loan *l = &loans.at[i];

		for (size_t k = 0; k < l->n; k++) {
			if (l->at[k].out)
				out->at[out->n++] = (struct out){l->at[k].feed_id, l->until_ms, (l->id << MR_FENCE_BITS) + (int64_t)k};
		}
	}
	if (!rc)
		qsort(out->at, out->n, sizeof(*out->at), out_order);
	mr_loans_finish(&loans);
	return rc;
}

static void feed_view(struct maria *m)
{
	fw_buf_adds(&m->sql, "SELECT ");
	mr_feed_columns(m);
	fw_buf_adds(&m->sql, ",(SELECT count(*) FROM entry_keys k WHERE k.feed_id = f.id AND k.entry_id > 0)"
		" FROM feeds f JOIN wheel w ON w.feed_id = f.id WHERE ");
}

static void feed_view_read(const struct mr_res *r, const struct outs *outs, struct fw_feed *f)
{
	unsigned col = mr_feed_read(r, 0, f);
	struct out key = {.feed_id = f->id};
	const struct out *o = outs->n ? bsearch(&key, outs->at, outs->n, sizeof(key), out_order) : NULL;

	f->entry_n = mr_int(r, col);
	f->lease_until_ms = o ? o->until_ms : 0;
	f->fence = o ? o->fence : 0;
}

int mr_feed_find(struct fw_store *st, int64_t id, struct fw_str url, struct fw_arena *a, struct fw_feed *out, struct fw_err *err)
{
	struct maria *m = mr_of(st);
	struct fw_hash128 hash = fw_hash128(url.p, url.len);
	struct outs outs = {0};
	struct mr_res r;
	int rc;

	feed_view(m);
	if (id) {
		fw_buf_addf(&m->sql, "f.id = %lld", (long long)id);
	} else {
		fw_buf_adds(&m->sql, "f.url_hash = ");
		mr_value_bytes(m, hash_str(&hash));
	}
	rc = mr_answer(m, &r, err);
	if (rc)
		return rc;
	if (!mr_row(&r))
		return id ? fw_err_set(err, FW_ENOTFOUND, "%s: no feed number %lld", m->name, (long long)id) :
			fw_err_set(err, FW_ENOTFOUND, "%s: no feed %.*s", m->name, FW_STR_ARG(url));
	rc = outs_read(m, mr_int(&r, 0), &outs, err);
	if (!rc) {
		feed_view_read(&r, &outs, out);
		rc = fw_store_feed_dup(a, out) ? 0 : mr_no_memory(m, err);
	}
	mr_done(&r);
	free(outs.at);
	return rc;
}

static void feed_where(struct maria *m, const struct fw_feed_query *q)
{
	fw_buf_addf(&m->sql, "SELECT f.id FROM feeds f JOIN wheel w ON w.feed_id = f.id WHERE f.id > %lld", (long long)q->after_id);
	if (q->status >= 0)
		fw_buf_addf(&m->sql, " AND w.status = %d", q->status);
	if (q->failing)
		fw_buf_adds(&m->sql, " AND w.fail_n > 0");
	if (q->folder.p) {
		fw_buf_adds(&m->sql, " AND CAST(coalesce(f.folder, '') AS BINARY) = CAST("); /* else 'x' is 'x ' */
		mr_value_text(m, q->folder);
		fw_buf_adds(&m->sql, " AS BINARY)");
	}
	if (q->match.p) { /* ASCII is folded, as everywhere */
		static const char *const columns[] = {"f.url", "f.title", "f.user_title"};

		for (size_t i = 0; i < FW_N(columns); i++) {
			fw_buf_addf(&m->sql, "%sinstr(lower(coalesce(%s, '')), lower(", i ? " OR " : " AND (", columns[i]);
			mr_value_text(m, q->match);
			fw_buf_adds(&m->sql, "))");
		}
		fw_buf_addc(&m->sql, ')');
	}
	fw_buf_adds(&m->sql, q->by_due ? " ORDER BY w.due_at_ms, f.id" : " ORDER BY f.id");
	if (q->limit)
		fw_buf_addf(&m->sql, " LIMIT %zu", q->limit);
}

void mr_in_order(struct maria *m, const char *column, const int64_t *id, size_t n)
{
	mr_in(m, column, id, n);
	fw_buf_addf(&m->sql, " ORDER BY FIELD(%s", column);
	for (size_t i = 0; i < n; i++) {
		fw_buf_addc(&m->sql, ',');
		mr_value_int(m, id[i]);
	}
	fw_buf_addc(&m->sql, ')');
}

int mr_feed_list(struct fw_store *st, const struct fw_feed_query *q, fw_feed_cb *cb, void *ctx, struct fw_err *err)
{
	struct maria *m = mr_of(st);
	struct outs outs = {0};
	struct mr_ids ids = {0};
	int rc;

	feed_where(m, q);
	rc = mr_ids_read(m, &ids, err);
	rc = rc ? rc : outs_read(m, 0, &outs, err);
	for (size_t i = 0; i < ids.n && !rc; i += ROWS) {
		struct mr_res r;

		feed_view(m);
		mr_in_order(m, "f.id", ids.at + i, FW_MIN(ids.n - i, (size_t)ROWS));
		rc = mr_answer(m, &r, err);
		while (!rc && mr_row(&r)) {
			struct fw_feed f;

			feed_view_read(&r, &outs, &f);
			rc = cb(ctx, &f);
		}
		mr_done(&r);
	}
	free(outs.at);
	free(ids.at);
	return rc;
}

/* ---- visits ---------------------------------------------------------------------------------------------------------------- */

static void visit_columns(struct maria *m)
{
	fw_buf_adds(&m->sql, "SELECT v.id, f.url");
	for (size_t i = 0; i < fw_visit_field_n; i++)
		fw_buf_addf(&m->sql, ",v.%s", fw_visit_fields[i].name);
}

static int visits_show(struct maria *m, const struct mr_ids *ids, fw_visit_cb *cb, void *ctx, struct fw_err *err)
{
	int rc = 0;

	for (size_t i = 0; i < ids->n && !rc; i += ROWS) {
		struct mr_res r;

		visit_columns(m);
		fw_buf_adds(&m->sql, " FROM visits v JOIN feeds f ON f.id = v.feed_id WHERE ");
		mr_in_order(m, "v.id", ids->at + i, FW_MIN(ids->n - i, (size_t)ROWS));
		rc = mr_answer(m, &r, err);
		while (!rc && mr_row(&r)) {
			struct fw_visit v = {.id = mr_int(&r, 0)};

			v.feed_url = mr_str(&r, 1);
			for (size_t f = 0; f < fw_visit_field_n; f++)
				mr_field_read(&r, 2 + (unsigned)f, &fw_visit_fields[f], &v);
			rc = cb(ctx, &v);
		}
		mr_done(&r);
	}
	return rc;
}

int mr_visit_list(struct fw_store *st, const struct fw_visit_query *q, fw_visit_cb *cb, void *ctx, struct fw_err *err)
{
	struct maria *m = mr_of(st);
	int64_t head = 0, first = 0;
	struct mr_ids ids = {0};
	int rc;

	if (q->feed_id)
		rc = mr_number(m, 0, &head, err, "SELECT last_visit_id FROM wheel WHERE feed_id = ?", "i", q->feed_id);
	else
		rc = q->run_id ? mr_number(m, 0, &first, err, "SELECT first_visit_id FROM runs WHERE run_id = ?", "i", q->run_id) : 0;
	if (rc)
		return rc;
	if (q->feed_id)
		mr_put(m, CHAIN "SELECT v.id FROM chain c JOIN visits v ON v.id = c.id WHERE 1", "i", head);
	else
		mr_put(m, "SELECT v.id FROM visits v WHERE v.id >= ?", "i", first);
	if (q->run_id)
		fw_buf_addf(&m->sql, " AND v.run_id = %lld", (long long)q->run_id);
	if (q->since_ms)
		fw_buf_addf(&m->sql, " AND v.at_ms >= %lld", (long long)q->since_ms);
	if (q->oldest_first)
		fw_buf_addf(&m->sql, " AND v.id > %lld", (long long)q->after_id);
	fw_buf_adds(&m->sql, q->oldest_first ? " ORDER BY v.id" : " ORDER BY v.id DESC");
	if (q->limit)
		fw_buf_addf(&m->sql, " LIMIT %zu", q->limit);
	rc = mr_ids_read(m, &ids, err);
	rc = rc ? rc : visits_show(m, &ids, cb, ctx, err);
	free(ids.at);
	return rc;
}

/* ---- figures, messages, workers ---------------------------------------------------------------------------------------------- */

int mr_stats(struct fw_store *st, int64_t now_ms, struct fw_store_stats *out, struct fw_err *err)
{
	struct maria *m = mr_of(st);
	struct mr_res r;
	int64_t now;
	int rc = mr_now(m, now_ms, &now, err);

	rc = rc ? rc : mr_ask(m, &r, err, "SELECT count(*), sum(status = 0), sum(status = 1), sum(status = 2), sum(status = 3),"
		" sum(fail_n > 0) FROM wheel", "");
	if (!rc && mr_row(&r)) {
		out->feed_n = mr_int(&r, 0);
		out->active_n = mr_int(&r, 1);
		out->paused_n = mr_int(&r, 2);
		out->gone_n = mr_int(&r, 3);
		out->quarantined_n = mr_int(&r, 4);
		out->failing_n = mr_int(&r, 5);
		mr_done(&r);
	}
	rc = rc ? rc : mr_ask(m, &r, err, "SELECT (SELECT count(*) FROM queue WHERE wake_at_ms <= ?)"
		" + (SELECT count(*) FROM moved WHERE wake_at_ms > ? AND due_at_ms <= ?) + (SELECT count(*) FROM parked WHERE due_at_ms <= ?),"
		" (SELECT coalesce(sum(length(lent) - length(replace(lent, '1', ''))), 0) FROM loans), (SELECT coalesce(due_at_ms, wake_at_ms) FROM queue ORDER BY wake_at_ms LIMIT 1),"
		" (SELECT min(due_at_ms) FROM moved), (SELECT min(due_at_ms) FROM parked)", "iiii", now, now, now, now);
	if (!rc && mr_row(&r)) {
		out->due_n = mr_int(&r, 0);
		out->lent_n = mr_int(&r, 1);
		for (unsigned i = 2; i < 5; i++) {
			int64_t due = mr_date(&r, i);

			if (due != FW_NO_DATE && (out->next_due_ms == FW_NO_DATE || due < out->next_due_ms))
				out->next_due_ms = due;
		}
		mr_done(&r);
	}
	rc = rc ? rc : mr_ask(m, &r, err, "SELECT coalesce(sum(entry_n), 0), coalesce(sum(visit_n), 0),"
		" (SELECT count(*) FROM entries WHERE id > (SELECT value FROM numbers WHERE name = 'indexed_entry_id'))"
		" + (SELECT count(*) FROM reindex x JOIN entries e ON e.id = x.entry_id),"
		" (SELECT max(id) FROM feeds), (SELECT max(id) FROM entries), (SELECT max(id) FROM visits), (SELECT sum(data_length + index_length) FROM information_schema.tables"
		" WHERE table_schema = database()) FROM counters", "");
	if (!rc && mr_row(&r)) {
		out->entry_n = mr_int(&r, 0);
		out->visit_n = mr_int(&r, 1);
		out->unindexed_n = mr_int(&r, 2);
		out->last_feed_id = mr_int(&r, 3);
		out->last_entry_id = mr_int(&r, 4);
		out->last_visit_id = mr_int(&r, 5);
		out->size_bytes = mr_int(&r, 6);
		mr_done(&r);
	}
	out->schema = MR_SCHEMA;
	return rc;
}

struct control {
	enum fw_control_kind kind;
	int64_t now_ms;
};

static int control_in(struct maria *m, void *arg, struct fw_err *err)
{
	const struct control *c = arg;
	int rc = mr_change(m, err); /* first: it lets one through at a time, so that messages come in the order of their numbers */

	mr_put(m, "INSERT INTO controls (kind, created_ms) VALUES (?, ?)", "ii", MR_INT(c->kind), c->now_ms);
	return rc;
}

int mr_control_put(struct fw_store *st, enum fw_control_kind kind, int64_t now_ms, struct fw_err *err)
{
	struct control c = {kind, 0};
	int rc = mr_now(mr_of(st), now_ms, &c.now_ms, err);

	return rc ? rc : mr_transact(mr_of(st), control_in, &c, err);
}

int mr_control_take(struct fw_store *st, int64_t after_id, struct fw_control *out, struct fw_err *err)
{
	struct maria *m = mr_of(st);
	struct mr_res r;
	int rc;

	if (after_id < 0)
		rc = mr_ask(m, &r, err, "SELECT max(id), 0, 0, (SELECT kind FROM controls WHERE kind IN (?, ?) ORDER BY id DESC LIMIT 1) = ?"
			" FROM controls", "iii", MR_INT(FW_CONTROL_PAUSE), MR_INT(FW_CONTROL_RESUME), MR_INT(FW_CONTROL_PAUSE));
	else
		rc = mr_ask(m, &r, err, "SELECT id, kind, created_ms, 0 FROM controls WHERE id > ? ORDER BY id LIMIT 1", "i", after_id);
	if (!rc && mr_row(&r))
		*out = (struct fw_control){mr_int(&r, 0), (enum fw_control_kind)mr_int(&r, 1), mr_int(&r, 2), mr_int(&r, 3)};
	if (!rc)
		mr_done(&r);
	return rc;
}

int mr_beat_list(struct fw_store *st, int64_t since_ms, fw_beat_cb *cb, void *ctx, struct fw_err *err)
{
	struct maria *m = mr_of(st);
	struct mr_res r;
	int rc;

	fw_buf_adds(&m->sql, "SELECT worker");
	mr_names(m, fw_beat_fields, fw_beat_field_n);
	fw_buf_addf(&m->sql, " FROM workers WHERE at_ms >= %lld ORDER BY worker", (long long)since_ms);
	rc = mr_answer(m, &r, err);
	while (!rc && mr_row(&r)) {
		struct fw_beat b = {.worker = r.row[0]};

		for (size_t i = 0; i < fw_beat_field_n; i++)
			mr_field_read(&r, 1 + (unsigned)i, &fw_beat_fields[i], &b);
		rc = cb(ctx, &b);
	}
	mr_done(&r);
	return rc;
}
