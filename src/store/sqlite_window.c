/* SPDX-License-Identifier: ISC */
/*
 * What people look at and change: feeds, visits, figures, control messages, workers.
 *
 * Lists stream from one SELECT, so a million feeds take no memory; a callback must not call the store's writing functions.
 * What a visit changes lies where the feed stands (sqlite_places.c) and is read for each feed that is shown.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "store/sqlite.h"

void sq_wide_read(sqlite3_value **v, struct fw_feed *f)
{
	f->id = sqlite3_value_int64(*v++);
	f->url = sq_value_text(*v++);
	f->error = sq_value_text(*v++);
	f->validator_url = sq_value_text(*v++);
	f->etag = sq_value_text(*v++);
	f->last_modified = sq_value_text(*v++);
	f->validators_ms = sqlite3_value_int64(*v++);
	f->body_hash = (uint64_t)sqlite3_value_int64(*v++);
	f->title = sq_value_text(*v++);
	f->home_page_url = sq_value_text(*v++);
	f->description = sq_value_text(*v++);
	f->language = sq_value_text(*v++);
	f->icon = sq_value_text(*v++);
	f->format = (enum fw_format)sqlite3_value_int(*v++);
	f->hub = sq_value_text(*v++);
	f->topic = sq_value_text(*v++);
	f->extra = sq_value_text(*v++);
	f->rhythm = sq_value_text(*v++);
	f->redirect_url = sq_value_text(*v++);
	f->redirect_since_ms = sqlite3_value_int64(*v++);
	f->redirect_n = (uint32_t)sqlite3_value_int64(*v++);
	f->user_title = sq_value_text(*v++);
	f->folder = sq_value_text(*v++);
	f->username = sq_value_text(*v++);
	f->password = sq_value_text(*v++);
	f->interval_ms = sqlite3_value_int64(*v++);
	f->created_ms = sqlite3_value_int64(*v++);
	f->push_until_ms = sqlite3_value_int64(*v++);
	f->host_key = sq_value_text(*v);
}

void sq_state_read(sqlite3_value **v, struct fw_feed *f, int64_t *last_visit_id)
{
	f->due_at_ms = sqlite3_value_int64(*v++);
	f->last_kind = (enum fw_visit_kind)sqlite3_value_int(*v++);
	f->http_status = sqlite3_value_int(*v++);
	f->fail_n = (uint32_t)sqlite3_value_int64(*v++);
	f->crash_n = (uint32_t)sqlite3_value_int64(*v++);
	f->last_visit_ms = sqlite3_value_int64(*v++);
	f->last_ok_ms = sqlite3_value_int64(*v++);
	f->last_new_ms = sqlite3_value_int64(*v++);
	*last_visit_id = sqlite3_value_int64(*v++);
	f->expect_us = sqlite3_value_int64(*v++);
	f->expect_dev_us = sqlite3_value_int64(*v++);
	f->why = sq_value_text(*v++);
	f->expect_parts = sqlite3_value_int64(*v);
}

/* ---- subscriptions ------------------------------------------------------------------------------------------------------- */

/* 1 and n->id: subscribed already; 0: not; or an error. */
static int url_taken(struct sqlite *s, struct fw_feed_new *n, struct fw_err *err)
{
	sqlite3_stmt *q = sq_ask(s, SQ_URL_TAKEN, "SELECT id FROM feeds WHERE url = ?", err, "s", n->url);
	int rc = q ? sq_row(s, q, err) : err->rc;

	n->existed = rc > 0;
	if (rc > 0) {
		n->id = sqlite3_column_int64(q, 0);
		sqlite3_reset(q);
	}
	return rc;
}

int sq_host_crowded(struct sqlite *s, int64_t host_id, bool *crowded, struct fw_err *err)
{
	sqlite3_stmt *q = sq_ask(s, SQ_HOST_FEEDS, "SELECT feed_n > 1 FROM hosts WHERE id = ?", err, "i", host_id);
	int rc = q ? sq_row(s, q, err) : err->rc;

	if (rc < 0)
		return rc;
	*crowded = rc > 0 && sqlite3_column_int(q, 0);
	if (rc > 0)
		sqlite3_reset(q);
	return 0;
}

/* host_id: where it was counted already; 0: subscribed before. */
static int subscribe_one(struct sqlite *s, struct fw_feed_new *n, int64_t host_id, int64_t now, struct fw_err *err)
{
	int64_t due = n->due_at_ms ? n->due_at_ms : now;
	bool crowded = false;
	int rc = host_id ? url_taken(s, n, err) : 0;

	if (rc > 0) /* twice in one call: it was counted twice */
		return sq_host_leave(s, host_id, err);
	if (rc || !host_id)
		return rc;
	rc = sq_host_crowded(s, host_id, &crowded, err);
	rc = rc ? rc : sq_do(s, SQ_FEED_NEW, "INSERT INTO feeds (url, host_id, home_page_url, user_title, folder, username, password,"
		" interval_ms, created_ms) VALUES (?,?,?,?,?,?,?,?,?)", err, "sisssssii", n->url, host_id, n->home_page_url,
		n->user_title, n->folder, n->username, n->password, n->interval_ms, now);
	n->id = sqlite3_last_insert_rowid(s->db);
	return rc ? rc : sq_wheel_put(s, &(struct fw_feed){.id = n->id, .due_at_ms = due}, FW_FEED_ACTIVE, crowded ? host_id : 0, 0, 0, err);
}

/*
 * All join their hosts before the first gets on the wheel. So each is put there knowing whether its host is crowded, and none
 * has to be looked for in the slot of "now", which a large import fills with all its feeds.
 */
static int subscribe_all(struct sqlite *s, struct fw_feed_new *feed, size_t n, int64_t *host_id, struct fw_err *err)
{
	int64_t now = fw_now_ms();
	bool crowded;
	int rc = 0;

	for (size_t i = 0; i < n && rc >= 0; i++) {
		rc = url_taken(s, &feed[i], err);
		if (rc == 0)
			rc = sq_host_join(s, &(struct fw_feed){.url = feed[i].url}, &host_id[i], &crowded, err);
	}
	for (size_t i = 0; i < n && rc >= 0; i++)
		rc = subscribe_one(s, &feed[i], host_id[i], now, err);
	return rc < 0 ? rc : 0;
}

int sq_subscribe(struct fw_store *st, struct fw_feed_new *feed, size_t n, struct fw_err *err)
{
	struct sqlite *s = sqlite_of(st);
	int64_t *host_id = calloc(n ? n : 1, sizeof(*host_id));
	int rc = host_id ? sq_begin(s, err) : fw_no_memory(err);

	if (!rc)
		rc = sq_end(s, subscribe_all(s, feed, n, host_id, err), err);
	free(host_id);
	return rc;
}

int sq_standing(struct sqlite *s, int64_t id, int64_t *host_id, struct sq_where *w, struct fw_err *err)
{
	sqlite3_stmt *q = sq_ask(s, SQ_HOST_OF_FEED, "SELECT host_id FROM feeds WHERE id = ?", err, "i", id);
	int rc = q ? sq_row(s, q, err) : err->rc;

	*host_id = 0;
	*w = (struct sq_where){0};
	if (rc < 0)
		return rc;
	if (rc == 0)
		return fw_err_set(err, FW_ENOTFOUND, "%s: no feed has the number %lld", s->path, (long long)id);
	*host_id = sqlite3_column_int64(q, 0);
	sqlite3_reset(q);
	rc = sq_find(s, id, NULL, w, err);
	sq_found(w);
	return rc;
}

static int unsubscribe_in(struct sqlite *s, int64_t feed_id, struct fw_err *err)
{
	struct sq_range r = {0, 0};
	struct sq_where w;
	int64_t host_id;
	int rc = sq_standing(s, feed_id, &host_id, &w, err);

	if (!rc && w.table == SQ_LEASES) {
		rc = sq_lease_touch(s, w.key, err);
		rc = rc ? rc : sq_lease_end(s, w.key, err);
		rc = rc ? rc : sq_claim_tidy(s, w.key, &r, err);
		if (!rc && w.host_id > 0)
			rc = sq_host_return(s, w.host_id, true, NULL, 0, err);
	}
	rc = rc ? rc : sq_wheel_off(s, feed_id, &w, err);
	rc = rc ? rc : sq_do(s, SQ_ASIDE_DEL, "DELETE FROM aside WHERE feed_id = ?", err, "i", feed_id);
	sq_place_note(s, feed_id, 0);
	rc = rc ? rc : sq_visits_drop(s, feed_id, w.last_visit_id, err);
	rc = rc ? rc : sq_entries_drop(s, feed_id, err);
	rc = rc ? rc : sq_do(s, SQ_FEED_DROP, "DELETE FROM feeds WHERE id = ?", err, "i", feed_id);
	return rc ? rc : sq_host_leave(s, host_id, err);
}

int sq_unsubscribe(struct fw_store *st, int64_t feed_id, struct fw_err *err)
{
	struct sqlite *s = sqlite_of(st);
	int rc = sq_begin(s, err);

	return rc ? rc : sq_end(s, unsubscribe_in(s, feed_id, err), err);
}

static int is_lent(struct sqlite *s, int64_t feed_id, struct fw_err *err)
{
	struct sq_where w;
	int64_t host_id;
	int rc = sq_standing(s, feed_id, &host_id, &w, err);

	if (rc || w.table != SQ_LEASES)
		return rc;
	return fw_err_set(err, FW_EAGAIN, "%s: feed %lld is lent: merge them later", s->path, (long long)feed_id);
}

static int merge_in(struct sqlite *s, int64_t from_id, int64_t into_id, struct fw_err *err)
{
	int rc = is_lent(s, from_id, err);

	rc = rc ? rc : is_lent(s, into_id, err);
	rc = rc ? rc : sq_entries_merge(s, from_id, into_id, err);
	return rc ? rc : unsubscribe_in(s, from_id, err);
}

int sq_feed_merge(struct fw_store *st, int64_t from_id, int64_t into_id, struct fw_err *err)
{
	struct sqlite *s = sqlite_of(st);
	int rc = sq_begin(s, err);

	return rc ? rc : sq_end(s, merge_in(s, from_id, into_id, err), err);
}

/* A new status or due time: off the wheel where it stood, and on again where it belongs. A lent feed's lease goes on. */
static int move(struct sqlite *s, int64_t feed_id, int64_t host_id, const struct sq_where *w, int64_t status, int64_t due_ms,
	struct fw_err *err)
{
	struct sq_host h = {0};
	bool crowded = false;
	int rc;

	if (w->table == SQ_LEASES) {
		rc = sq_lease_touch(s, w->key, err);
		return rc ? rc : sq_do(s, SQ_LEASE_SET, "UPDATE leases SET status = ?, due_at_ms = ? WHERE fence = ?", err, "iii", status, due_ms,
			w->key);
	}
	rc = sq_wheel_off(s, feed_id, w, err);
	rc = rc ? rc : sq_do(s, SQ_ASIDE_SET, "UPDATE aside SET status = ?, due_at_ms = ? WHERE feed_id = ?", err, "iii", status, due_ms,
		feed_id);
	if (rc || status != FW_FEED_ACTIVE)
		return rc;
	rc = sq_host_crowded(s, host_id, &crowded, err);
	rc = rc || crowded ? rc : sq_host_get(s, host_id, &h, err);
	return rc ? rc : sq_wheel_on(s, feed_id, due_ms, crowded ? host_id : 0, h.budget.cool_until_ms, err);
}

static int crash_set(struct sqlite *s, int64_t feed_id, const struct sq_where *w, int64_t crash_n, struct fw_err *err)
{
	switch (w->table) {
	case SQ_LINE:
		return sq_do(s, SQ_LINE_CRASH, "UPDATE line SET crash_n = ? WHERE id = ?", err, "ii", crash_n, w->key);
	case SQ_LEASES:
		return sq_do(s, SQ_LEASE_CRASH, "UPDATE leases SET crash_n = ? WHERE fence = ?", err, "ii", crash_n, w->key);
	default:
		return sq_do(s, SQ_ASIDE_CRASH, "UPDATE aside SET crash_n = ? WHERE feed_id = ?", err, "ii", crash_n, feed_id);
	}
}

static int feed_set_in(struct sqlite *s, const struct fw_feed *n, unsigned what, struct fw_err *err)
{
	struct sq_where w;
	int64_t host_id;
	int rc = sq_standing(s, n->id, &host_id, &w, err);

	if (!rc && (what & FW_SET_TITLE))
		rc = sq_do(s, SQ_SET_TITLE, "UPDATE feeds SET user_title = ? WHERE id = ?", err, "si", n->user_title, n->id);
	if (!rc && (what & FW_SET_FOLDER))
		rc = sq_do(s, SQ_SET_FOLDER, "UPDATE feeds SET folder = ? WHERE id = ?", err, "si", n->folder, n->id);
	if (!rc && (what & FW_SET_INTERVAL))
		rc = sq_do(s, SQ_SET_INTERVAL, "UPDATE feeds SET interval_ms = ? WHERE id = ?", err, "ii", n->interval_ms, n->id);
	if (!rc && (what & FW_SET_AUTH))
		rc = sq_do(s, SQ_SET_AUTH, "UPDATE feeds SET username = ?, password = ? WHERE id = ?", err, "ssi", n->username, n->password,
			n->id);
	if (!rc && (what & FW_SET_PUSH))
		rc = sq_do(s, SQ_SET_PUSH, "UPDATE feeds SET push_until_ms = ? WHERE id = ?", err, "ii", n->push_until_ms, n->id);
	if (!rc && (what & FW_SET_CRASH))
		rc = crash_set(s, n->id, &w, SQ_INT(n->crash_n), err);
	if (!rc && (what & (FW_SET_STATUS | FW_SET_DUE)))
		rc = move(s, n->id, host_id, &w, what & FW_SET_STATUS ? SQ_INT(n->status) : w.status,
			what & FW_SET_DUE ? n->due_at_ms : w.state.due_at_ms, err);
	return rc;
}

int sq_feed_set(struct fw_store *st, const struct fw_feed *feed, unsigned what, struct fw_err *err)
{
	struct sqlite *s = sqlite_of(st);
	int rc = sq_begin(s, err);

	return rc ? rc : sq_end(s, feed_set_in(s, feed, what, err), err);
}

/* ---- feeds ---------------------------------------------------------------------------------------------------------------- */

/* The rest of a feed whose wide columns were read: its state, where it is lent to, how many entries it has. sq_found(w) is the caller's. */
static int feed_rest(struct sqlite *s, struct fw_feed *f, const struct sq_map *lent, struct sq_where *w, struct fw_err *err)
{
	int rc = sq_find(s, f->id, lent, w, err);

	if (rc)
		return rc;
	f->status = (enum fw_feed_status)w->status;
	f->due_at_ms = w->state.due_at_ms;
	f->last_kind = w->state.last_kind;
	f->http_status = w->state.http_status;
	f->fail_n = w->state.fail_n;
	f->crash_n = w->state.crash_n;
	f->last_visit_ms = w->state.last_visit_ms;
	f->last_ok_ms = w->state.last_ok_ms;
	f->last_new_ms = w->state.last_new_ms;
	f->expect_us = w->state.expect_us;
	f->expect_dev_us = w->state.expect_dev_us;
	f->expect_parts = w->state.expect_parts;
	f->why = w->state.why;
	return 0;
}

static int feed_counts(struct sqlite *s, struct fw_feed *f, const struct sq_where *w, struct fw_err *err)
{
	sqlite3_stmt *q = sq_ask(s, SQ_FEED_ENTRIES, "SELECT count(*) FROM entry_keys WHERE feed_id = ? AND entry_id > 0", err, "i", f->id);
	int rc = q ? sq_row(s, q, err) : err->rc;

	if (rc < 0)
		return rc;
	f->entry_n = sqlite3_column_int64(q, 0);
	sqlite3_reset(q);
	if (w->table != SQ_LEASES)
		return 0;
	f->fence = w->key;
	q = sq_ask(s, SQ_CLAIM_UNTIL, "SELECT until_ms FROM claims WHERE first_fence <= ?1 AND last_fence >= ?1 ORDER BY first_fence DESC"
		" LIMIT 1", err, "i", w->key);
	rc = q ? sq_row(s, q, err) : err->rc;
	if (rc <= 0)
		return rc;
	f->lease_until_ms = sqlite3_column_int64(q, 0);
	sqlite3_reset(q);
	return 0;
}

int sq_feed_find(struct fw_store *st, int64_t id, struct fw_str url, struct fw_arena *a, struct fw_feed *out,
	struct fw_err *err)
{
	struct sqlite *s = sqlite_of(st);
	struct sq_where w = {.q = NULL};
	sqlite3_stmt *q = id ? sq_ask(s, SQ_FEED_BY_ID, "SELECT " SQ_WIDE " FROM feeds f WHERE f.id = ?", err, "i", id) :
		sq_ask(s, SQ_FEED_BY_URL, "SELECT " SQ_WIDE " FROM feeds f WHERE f.url = ?", err, "s", url);
	int rc = q ? sq_row(s, q, err) : err->rc;
	sqlite3_value *v[SQ_WIDE_N];

	if (rc < 0)
		return rc;
	if (rc == 0 && id)
		return fw_err_set(err, FW_ENOTFOUND, "%s: no feed has the number %lld", s->path, (long long)id);
	if (rc == 0)
		return fw_err_set(err, FW_ENOTFOUND, "%s: no feed %.*s", s->path, FW_STR_ARG(url));
	*out = (struct fw_feed){0};
	sq_wide_read(sq_values(q, 0, SQ_WIDE_N, v), out);
	rc = feed_rest(s, out, NULL, &w, err);
	rc = rc ? rc : feed_counts(s, out, &w, err);
	if (!rc && !fw_store_feed_dup(a, out))
		rc = fw_err_set(err, FW_ENOMEM, "%s: no memory for the feed", s->path);
	sq_found(&w);
	sqlite3_reset(q);
	return rc;
}

/* One statement with every condition in it: a parameter that is NULL (or 0) switches its condition off. */
#define FEED_WHERE " WHERE f.id > ?1 AND (?2 IS NULL OR coalesce(f.folder, '') = ?2) AND (?3 IS NULL OR instr(lower(f.url), ?3)" \
	" OR instr(lower(coalesce(f.title, '')), ?3) OR instr(lower(coalesce(f.user_title, '')), ?3))"

struct listing {
	struct sqlite *s;
	const struct fw_feed_query *ask;
	struct sq_map lent;
	fw_feed_cb *cb;
	void *ctx;
	size_t n;
};

/* The feed that q stands on. */
static int feed_show(struct listing *l, sqlite3_stmt *q, struct fw_err *err)
{
	struct fw_feed f = {0};
	struct sq_where w = {.q = NULL};
	sqlite3_value *v[SQ_WIDE_N];
	int rc;

	sq_wide_read(sq_values(q, 0, SQ_WIDE_N, v), &f);
	rc = feed_rest(l->s, &f, &l->lent, &w, err);
	if (!rc && (l->ask->status < 0 || (int)f.status == l->ask->status) && (!l->ask->failing || f.fail_n > 0)) {
		l->n++;
		rc = feed_counts(l->s, &f, &w, err);
		rc = rc ? rc : l->cb(l->ctx, &f);
	}
	sq_found(&w);
	return rc;
}

/* Who is not active is in two small tables: of a million feeds nobody reads all to find the few that are gone. */
#define OF_STATUS "(SELECT feed_id, due_at_ms FROM aside WHERE status = ?4 UNION ALL SELECT feed_id, due_at_ms FROM leases WHERE status = ?4)"

static sqlite3_stmt *list_ask(struct sqlite *s, const struct fw_feed_query *q, struct fw_str match, struct fw_err *err)
{
	if (q->status > FW_FEED_ACTIVE)
		return sq_ask(s, q->by_due ? SQ_FEEDS_OF_BY_DUE : SQ_FEEDS_OF, q->by_due ?
			"SELECT " SQ_WIDE " FROM (SELECT * FROM " OF_STATUS " ORDER BY due_at_ms, feed_id LIMIT -1) w CROSS JOIN feeds f ON f.id = w.feed_id"
			FEED_WHERE :
			"SELECT " SQ_WIDE " FROM (SELECT * FROM " OF_STATUS " ORDER BY feed_id LIMIT -1) w CROSS JOIN feeds f ON f.id = w.feed_id"
			FEED_WHERE, err, "issi", q->after_id, q->folder, match, SQ_INT(q->status));
	return q->by_due ?
		sq_ask(s, SQ_FEEDS_BY_DUE, "SELECT " SQ_WIDE " FROM (SELECT feed_id, due_at_ms FROM wheel ORDER BY due_at_ms, feed_id LIMIT -1) w"
			" CROSS JOIN feeds f ON f.id = w.feed_id" FEED_WHERE, err, "iss", q->after_id, q->folder, match) :
		sq_ask(s, SQ_FEEDS, "SELECT " SQ_WIDE " FROM feeds f" FEED_WHERE " ORDER BY f.id", err, "iss", q->after_id, q->folder, match);
}

int sq_feed_list(struct fw_store *st, const struct fw_feed_query *q, fw_feed_cb *cb, void *ctx, struct fw_err *err)
{
	struct listing l = {.s = sqlite_of(st), .ask = q, .cb = cb, .ctx = ctx};
	struct fw_str match = q->match;
	struct fw_buf low = FW_BUF_INIT(0);
	sqlite3_stmt *r = NULL;
	int rc;

	for (size_t i = 0; i < match.len; i++)
		fw_buf_addc(&low, (char)fw_lower((unsigned char)match.p[i]));
	if (low.rc)
		return fw_err_set(err, FW_ENOMEM, "%s: feed list: out of memory", l.s->path);
	if (match.p)
		match = fw_buf_str(&low);
	r = list_ask(l.s, q, match, err);
	rc = r ? sq_row(l.s, r, err) : err->rc;
	if (rc > 0) { /* what is lent is that of the view that is open now */
		int rc2 = sq_lent_map(l.s, &l.lent, err);

		while (rc > 0) {
			rc = rc2 ? rc2 : feed_show(&l, r, err);
			if (rc || (q->limit && l.n == q->limit)) {
				sqlite3_reset(r);
				break;
			}
			rc = sq_row(l.s, r, err);
		}
	}
	sq_map_finish(&l.lent);
	fw_buf_finish(&low);
	return rc;
}

/* ---- figures, messages, workers ---------------------------------------------------------------------------------------------- */

int sq_stats(struct fw_store *st, int64_t now_ms, struct fw_store_stats *out, struct fw_err *err)
{
	struct sqlite *s = sqlite_of(st);
	int64_t now = now_ms ? now_ms : fw_now_ms(), pages;
	sqlite3_stmt *q = sq_ask(s, SQ_STATS_WHEEL, "SELECT sum(n), sum(active_n), sum(paused_n), sum(gone_n), sum(bad_n), sum(failing_n) FROM"
		" (SELECT count(*) n, count(*) active_n, 0 paused_n, 0 gone_n, 0 bad_n, sum(fail_n > 0) failing_n FROM line UNION ALL"
		" SELECT count(*), sum(status = 0), sum(status = 1), sum(status = 2), sum(status = 3), sum(fail_n > 0) FROM leases UNION ALL"
		" SELECT count(*), sum(status = 0), sum(status = 1), sum(status = 2), sum(status = 3), sum(fail_n > 0) FROM aside)", err, "");
	int rc = q ? sq_row(s, q, err) : err->rc;

	if (rc < 0)
		return rc;
	out->feed_n = sqlite3_column_int64(q, 0);
	out->active_n = sqlite3_column_int64(q, 1);
	out->paused_n = sqlite3_column_int64(q, 2);
	out->gone_n = sqlite3_column_int64(q, 3);
	out->quarantined_n = sqlite3_column_int64(q, 4);
	out->failing_n = sqlite3_column_int64(q, 5);
	sqlite3_reset(q);
	q = sq_ask(s, SQ_STATS_QUEUE, "SELECT (SELECT count(*) FROM line WHERE id <= ?2 AND coalesce(wake_at_ms, due_at_ms) <= ?1)"
		" + (SELECT count(*) FROM line INDEXED BY line_moved WHERE wake_at_ms IS NOT NULL AND wake_at_ms > ?1 AND due_at_ms <= ?1)"
		" + (SELECT count(*) FROM aside INDEXED BY aside_parked WHERE host_id > 0 AND due_at_ms <= ?1), (SELECT count(*) FROM leases),"
		" (SELECT min(t) FROM (SELECT min(due_at_ms) t FROM (SELECT due_at_ms FROM line ORDER BY id LIMIT 1)"
		" UNION ALL SELECT min(due_at_ms) FROM line INDEXED BY line_moved WHERE wake_at_ms IS NOT NULL"
		" UNION ALL SELECT min(due_at_ms) FROM aside INDEXED BY aside_parked WHERE host_id > 0))", err, "ii", now, sq_slot_last(now));
	rc = q ? sq_row(s, q, err) : err->rc;
	if (rc < 0)
		return rc;
	out->due_n = sqlite3_column_int64(q, 0);
	out->lent_n = sqlite3_column_int64(q, 1);
	out->next_due_ms = sq_date(q, 2);
	sqlite3_reset(q);
	rc = sq_search_unindexed(s, &out->unindexed_n, err);
	if (rc)
		return rc;
	q = sq_ask(s, SQ_STATS_ENTRIES, "SELECT (SELECT value FROM meta WHERE name = 'entry_n'),"
		" (SELECT value FROM meta WHERE name = 'visit_n'), (SELECT page_count FROM pragma_page_count),"
		" (SELECT max(id) FROM feeds), (SELECT max(id) FROM entries),"
		" (SELECT max(id) FROM (SELECT max(id) AS id FROM visit_rows UNION ALL SELECT (id << 10) + n - 1 FROM (SELECT id, n FROM"
		" visit_batches ORDER BY id DESC LIMIT 1)))", err, "");
	rc = q ? sq_row(s, q, err) : err->rc;
	if (rc < 0)
		return rc;
	out->entry_n = sqlite3_column_int64(q, 0);
	out->visit_n = sqlite3_column_int64(q, 1);
	pages = sqlite3_column_int64(q, 2);
	out->last_feed_id = sqlite3_column_int64(q, 3);
	out->last_entry_id = sqlite3_column_int64(q, 4);
	out->last_visit_id = sqlite3_column_int64(q, 5);
	sqlite3_reset(q);
	out->size_bytes = pages * s->page_bytes;
	out->schema = SQ_SCHEMA;
	return 0;
}

int sq_control_put(struct fw_store *st, enum fw_control_kind kind, int64_t now_ms, struct fw_err *err)
{
	struct sqlite *s = sqlite_of(st);
	int rc = sq_begin(s, err);

	return rc ? rc : sq_end(s, sq_do(s, SQ_CONTROL_PUT, "INSERT INTO controls (kind, created_ms) VALUES (?, ?)", err, "ii",
		SQ_INT(kind), now_ms ? now_ms : fw_now_ms()), err);
}

int sq_control_take(struct fw_store *st, int64_t after_id, struct fw_control *out, struct fw_err *err)
{
	struct sqlite *s = sqlite_of(st);
	sqlite3_stmt *q;
	int64_t last = 0;
	int rc;

	if (after_id < 0) {
		rc = sq_int(s, SQ_CONTROL_LAST, "SELECT max(id) FROM controls", 0, &out->id, err);
		rc = rc ? rc : sq_int(s, SQ_CONTROL_PAUSED, "SELECT kind FROM controls WHERE kind IN (2, 3) ORDER BY id DESC LIMIT 1",
			FW_CONTROL_NONE, &last, err);
		out->paused = last == FW_CONTROL_PAUSE;
		return rc;
	}
	q = sq_ask(s, SQ_CONTROL_NEXT, "SELECT id, kind, created_ms FROM controls WHERE id > ? ORDER BY id LIMIT 1", err, "i", after_id);
	rc = q ? sq_row(s, q, err) : err->rc;
	if (rc <= 0)
		return rc;
	out->id = sqlite3_column_int64(q, 0);
	out->kind = (enum fw_control_kind)sqlite3_column_int(q, 1);
	out->created_ms = sqlite3_column_int64(q, 2);
	sqlite3_reset(q);
	return 0;
}

int sq_beat_list(struct fw_store *st, int64_t since_ms, fw_beat_cb *cb, void *ctx, struct fw_err *err)
{
	struct sqlite *s = sqlite_of(st);
	sqlite3_stmt *q = sq_ask(s, SQ_BEATS, "SELECT worker, pid, started_ms, run_id, visits, new_entries, failures, in_flight, slots,"
		" at_ms FROM workers WHERE at_ms >= ? ORDER BY worker", err, "i", since_ms);
	int rc = q ? 0 : err->rc;

	while (q && (rc = sq_row(s, q, err)) > 0) {
		struct fw_beat b = {.worker = (const char *)sqlite3_column_text(q, 0), .pid = sqlite3_column_int64(q, 1),
			.started_ms = sqlite3_column_int64(q, 2), .run_id = sqlite3_column_int64(q, 3),
			.visits = (uint64_t)sqlite3_column_int64(q, 4), .new_entries = (uint64_t)sqlite3_column_int64(q, 5),
			.failures = (uint64_t)sqlite3_column_int64(q, 6), .in_flight = (uint32_t)sqlite3_column_int64(q, 7),
			.slots = (uint32_t)sqlite3_column_int64(q, 8), .at_ms = sqlite3_column_int64(q, 9)};

		rc = cb(ctx, &b);
		if (rc) {
			sqlite3_reset(q);
			break;
		}
	}
	return rc;
}
