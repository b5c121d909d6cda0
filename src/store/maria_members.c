/* SPDX-License-Identifier: ISC */
/*
 * Who is subscribed, and what the owner sets.
 *
 * A call subscribes all its feeds in one transaction and few statements, each address once. To take a feed off the wheel, or to another
 * place on it, one locks where it stands: mr_stand_lock.
 */
#include <stdlib.h>

#include "base/hash.h"
#include "base/utf8.h"
#include "store/maria.h"

/* ---- coming ---------------------------------------------------------------------------------------------------------------- */

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

/* ---- going ----------------------------------------------------------------------------------------------------------------- */

static int visits_drop(struct maria *m, int64_t last_id, struct fw_err *err)
{
	struct mr_rows gone = MR_DELETE("visits", "id");
	struct mr_ids ids = {0};
	struct mr_res r;
	int rc = last_id ? mr_ask(m, &r, err, MR_CHAIN "SELECT id FROM chain", "i", last_id) : 0;

	while (!rc && last_id && mr_row(&r))
		rc = mr_ids_add(m, &ids, mr_int(&r, 0), err);
	for (size_t i = 0; i < ids.n && !rc; i++)
		mr_rows_add(m, &gone, "i", ids.at[i]);
	mr_rows_end(m, &gone);
	m->visit_d -= (int64_t)ids.n;
	free(ids.at);
	return rc;
}

/* The feed's last traces, when its entries are gone. */
static int feed_drop(struct maria *m, const struct mr_stand *s, struct fw_err *err)
{
	int rc = visits_drop(m, s->last_visit_id, err);

	mr_put(m, "DELETE FROM wheel WHERE feed_id = ?", "i", s->feed_id);
	mr_put(m, "DELETE FROM feeds WHERE id = ?", "i", s->feed_id);
	mr_host_leave(m, s->host_id);
	return rc;
}

static int unsubscribe_in(struct maria *m, void *arg, struct fw_err *err)
{
	int64_t feed_id = *(int64_t *)arg, host_id;
	struct mr_line l = {0};
	struct mr_stand s;
	int rc = mr_stand_lock(m, feed_id, &s, err);

	if (!rc && s.lent) {
		s.lent->ends = true;
		mr_loans_write(m, &s.loans);
		host_id = mr_lent_budget(s.lent);
		rc = mr_line_hosts(m, &l, &host_id, 1, 1, false, err);
		if (!rc && host_id)
			mr_line_return(&l, host_id, NULL);
	}
	rc = rc ? rc : mr_stand_off(m, &s, &l, err);
	rc = rc ? rc : mr_line_write(m, &l, err);
	rc = rc ? rc : mr_entries_drop(m, feed_id, err);
	rc = rc ? rc : feed_drop(m, &s, err);
	mr_line_finish(&l);
	mr_stand_finish(&s);
	return rc;
}

int mr_unsubscribe(struct fw_store *st, int64_t feed_id, struct fw_err *err)
{
	return mr_transact(mr_of(st), unsubscribe_in, &feed_id, err);
}

struct merge {
	int64_t from_id, into_id;
};

static int merge_refused(struct maria *m, const struct mr_stand *s, struct fw_err *err)
{
	if (s->lent)
		return fw_err_set(err, FW_EAGAIN, "%s: feed %lld is lent: try again when its visit is over", m->name, (long long)s->feed_id);
	if (s->status == FW_FEED_ACTIVE && !s->queued && !s->parked) /* no end of its moves, or taken out by hand */
		return fw_err_set(err, FW_EAGAIN, "%s: feed %lld stands nowhere: try again; `feedwheel doctor` finds out more", m->name,
			(long long)s->feed_id);
	return 0;
}

/* Both are locked where they stand, so that nobody visits them meanwhile; two merges of the same two in one order. */
static int merge_in(struct maria *m, void *arg, struct fw_err *err)
{
	const struct merge *w = arg;
	bool from_first = w->from_id < w->into_id;
	struct mr_line l = {0};
	struct mr_stand first, second = {0}, *from = from_first ? &first : &second;
	int rc = mr_stand_lock(m, FW_MIN(w->from_id, w->into_id), &first, err);

	rc = rc ? rc : mr_stand_lock(m, FW_MAX(w->from_id, w->into_id), &second, err);
	rc = rc ? rc : merge_refused(m, &first, err);
	rc = rc ? rc : merge_refused(m, &second, err);
	rc = rc ? rc : mr_stand_off(m, from, &l, err);
	rc = rc ? rc : mr_line_write(m, &l, err);
	rc = rc ? rc : mr_entries_move(m, w->from_id, w->into_id, err);
	rc = rc ? rc : feed_drop(m, from, err);
	mr_line_finish(&l);
	mr_stand_finish(&first);
	mr_stand_finish(&second);
	return rc;
}

int mr_feed_merge(struct fw_store *st, int64_t from_id, int64_t into_id, struct fw_err *err)
{
	return mr_transact(mr_of(st), merge_in, &(struct merge){from_id, into_id}, err);
}

/* ---- what the owner sets ----------------------------------------------------------------------------------------------------- */

struct set {
	const struct fw_feed *feed;
	unsigned what;
};

/* A new status or due time: off the wheel where it stood, and on again where it belongs. A lent feed's lease goes on. */
static int move(struct maria *m, struct mr_stand *s, int64_t status, int64_t due_ms, struct fw_err *err)
{
	struct mr_line l = {0};
	int64_t crowd_id = 0, cool_ms = 0;
	int rc = s->lent ? 0 : mr_stand_off(m, s, &l, err);

	mr_put(m, "UPDATE wheel SET status = ?, due_at_ms = ? WHERE feed_id = ?", "iii", status, due_ms, s->feed_id);
	if (s->lent) {
		s->loan->rewrite = true;
		mr_loans_write(m, &s->loans);
	} else if (!rc && status == FW_FEED_ACTIVE) {
		rc = mr_crowd_of(m, s, &crowd_id, err);
		rc = rc ? rc : mr_number(m, 0, &cool_ms, err, "SELECT cool_until_ms FROM hosts WHERE id = ?", "i", s->host_id);
		mr_line_on(&l, s->feed_id, due_ms, crowd_id, cool_ms);
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
	if (what & FW_SET_PUSH)
		mr_put(m, "UPDATE feeds SET push_until_ms = ? WHERE id = ?", "ii", n->push_until_ms, n->id);
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
