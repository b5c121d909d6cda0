/* SPDX-License-Identifier: ISC */
/*
 * What people look at and change: feeds, visits, figures, control messages, workers.
 *
 * Lists stream from one SELECT, so a million feeds take no memory; a callback must not call the store's writing functions.
 * A feed's visits are a chain through visits.previous_id, walked newest first; the visits of a run begin at the row that `runs`
 * names.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "store/sqlite.h"

void sq_feed_read(sqlite3_stmt *q, struct fw_feed *f)
{
	int c = 0;

	*f = (struct fw_feed){.id = sqlite3_column_int64(q, c++)};
	f->url = sq_text(q, c++);
	f->status = (enum fw_feed_status)sqlite3_column_int(q, c++);
	f->due_at_ms = sqlite3_column_int64(q, c++);
	f->why = sq_text(q, c++);
	f->last_visit_ms = sqlite3_column_int64(q, c++);
	f->last_ok_ms = sqlite3_column_int64(q, c++);
	f->last_kind = (enum fw_visit_kind)sqlite3_column_int(q, c++);
	f->http_status = sqlite3_column_int(q, c++);
	f->fail_n = (uint32_t)sqlite3_column_int64(q, c++);
	f->crash_n = (uint32_t)sqlite3_column_int64(q, c++);
	f->expect_us = sqlite3_column_int64(q, c++);
	f->expect_dev_us = sqlite3_column_int64(q, c++);
	f->last_new_ms = sqlite3_column_int64(q, c++);
	f->error = sq_text(q, c++);
	f->validator_url = sq_text(q, c++);
	f->etag = sq_text(q, c++);
	f->last_modified = sq_text(q, c++);
	f->validators_ms = sqlite3_column_int64(q, c++);
	f->body_hash = (uint64_t)sqlite3_column_int64(q, c++);
	f->title = sq_text(q, c++);
	f->home_page_url = sq_text(q, c++);
	f->description = sq_text(q, c++);
	f->language = sq_text(q, c++);
	f->icon = sq_text(q, c++);
	f->format = (enum fw_format)sqlite3_column_int(q, c++);
	f->hub = sq_text(q, c++);
	f->topic = sq_text(q, c++);
	f->extra = sq_text(q, c++);
	f->rhythm = sq_text(q, c++);
	f->redirect_url = sq_text(q, c++);
	f->redirect_since_ms = sqlite3_column_int64(q, c++);
	f->redirect_n = (uint32_t)sqlite3_column_int64(q, c++);
	f->user_title = sq_text(q, c++);
	f->folder = sq_text(q, c++);
	f->username = sq_text(q, c++);
	f->password = sq_text(q, c++);
	f->interval_ms = sqlite3_column_int64(q, c++);
	f->created_ms = sqlite3_column_int64(q, c);
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
	rc = rc ? rc : sq_do(s, SQ_WHEEL_NEW, "INSERT INTO wheel (feed_id, due_at_ms) VALUES (?, ?)", err, "ii", n->id, due);
	return rc ? rc : sq_wheel_on(s, n->id, due, crowded ? host_id : 0, 0, err);
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
			rc = sq_host_join(s, feed[i].url, &host_id[i], &crowded, err);
	}
	for (size_t i = 0; i < n && rc >= 0; i++)
		rc = subscribe_one(s, &feed[i], host_id[i], now, err);
	return rc < 0 ? rc : 0;
}

int sq_subscribe(struct fw_store *st, struct fw_feed_new *feed, size_t n, struct fw_err *err)
{
	struct sqlite *s = sqlite_of(st);
	int64_t *host_id = calloc(n ? n : 1, sizeof(*host_id));
	int rc = host_id ? sq_begin(s, err) : fw_err_set(err, FW_ENOMEM, "out of memory");

	if (!rc)
		rc = sq_end(s, subscribe_all(s, feed, n, host_id, err), err);
	free(host_id);
	return rc;
}

struct standing { /* what the owner's changes need to know of a feed */
	int64_t id, host_id, status, due_ms, fence, lease_host_id, last_visit_id;
};

static int standing_get(struct sqlite *s, int64_t id, struct standing *f, struct fw_err *err)
{
	sqlite3_stmt *q = sq_ask(s, SQ_STANDING, "SELECT f.host_id, w.status, w.due_at_ms, w.last_visit_id, l.fence, l.host_id"
		" FROM feeds f JOIN wheel w ON w.feed_id = f.id LEFT JOIN leases l ON l.feed_id = f.id WHERE f.id = ?", err, "i", id);
	int rc = q ? sq_row(s, q, err) : err->rc;

	if (rc < 0)
		return rc;
	if (rc == 0)
		return fw_err_set(err, FW_ENOTFOUND, "%s: no feed number %lld", s->path, (long long)id);
	*f = (struct standing){id, sqlite3_column_int64(q, 0), sqlite3_column_int64(q, 1), sqlite3_column_int64(q, 2),
		sqlite3_column_int64(q, 4), sqlite3_column_int64(q, 5), sqlite3_column_int64(q, 3)};
	sqlite3_reset(q);
	return 0;
}

static int visits_drop(struct sqlite *s, int64_t last_id, struct fw_err *err)
{
	int rc;

	if (!last_id)
		return 0;
	/* down the chain, which may end early where old visits were pruned */
	rc = sq_do(s, SQ_VISITS_DROP, "WITH RECURSIVE chain(id, previous_id) AS ("
		"SELECT id, previous_id FROM visits WHERE id = ? UNION ALL"
		" SELECT v.id, v.previous_id FROM visits v JOIN chain c ON v.id = c.previous_id)"
		" DELETE FROM visits WHERE id IN (SELECT id FROM chain)", err, "i", last_id);
	s->visit_d -= rc ? 0 : sqlite3_changes(s->db);
	return rc;
}

static int unsubscribe_in(struct sqlite *s, int64_t feed_id, struct fw_err *err)
{
	struct sq_range r = {0, 0};
	struct standing f;
	bool found;
	int64_t host_id;
	int rc = standing_get(s, feed_id, &f, err);

	if (!rc && f.fence) {
		rc = sq_lease_take(s, f.fence, feed_id, &found, &host_id, err);
		rc = rc ? rc : sq_claim_tidy(s, f.fence, &r, err);
		if (!rc && host_id)
			rc = sq_host_return(s, host_id, true, 0, err);
	}
	rc = rc ? rc : sq_wheel_off(s, feed_id, f.due_ms, err);
	rc = rc ? rc : visits_drop(s, f.last_visit_id, err);
	rc = rc ? rc : sq_entries_drop(s, feed_id, err);
	rc = rc ? rc : sq_do(s, SQ_WHEEL_DROP, "DELETE FROM wheel WHERE feed_id = ?", err, "i", feed_id);
	rc = rc ? rc : sq_do(s, SQ_FEED_DROP, "DELETE FROM feeds WHERE id = ?", err, "i", feed_id);
	return rc ? rc : sq_host_leave(s, f.host_id, err);
}

int sq_unsubscribe(struct fw_store *st, int64_t feed_id, struct fw_err *err)
{
	struct sqlite *s = sqlite_of(st);
	int rc = sq_begin(s, err);

	return rc ? rc : sq_end(s, unsubscribe_in(s, feed_id, err), err);
}

/* A new status or due time: off the wheel where it stood, and on again where it belongs. A lent feed's lease goes on. */
static int move(struct sqlite *s, const struct standing *f, int64_t status, int64_t due_ms, struct fw_err *err)
{
	int64_t feed_n = 0;
	sqlite3_stmt *q;
	int rc = f->fence ? 0 : sq_wheel_off(s, f->id, f->due_ms, err);

	rc = rc ? rc : sq_do(s, SQ_WHEEL_STATUS, "UPDATE wheel SET status = ?, due_at_ms = ? WHERE feed_id = ?", err, "iii", status,
		due_ms, f->id);
	if (!rc && f->fence)
		rc = sq_do(s, SQ_LEASE_DUE, "UPDATE leases SET due_at_ms = ? WHERE fence = ?", err, "ii", due_ms, f->fence);
	if (rc || f->fence || status != FW_FEED_ACTIVE)
		return rc;
	q = sq_ask(s, SQ_HOST_FEED_N, "SELECT feed_n FROM hosts WHERE id = ?", err, "i", f->host_id);
	rc = q ? sq_row(s, q, err) : err->rc;
	if (rc < 0)
		return rc;
	if (rc > 0) {
		feed_n = sqlite3_column_int64(q, 0);
		sqlite3_reset(q);
	}
	return sq_wheel_on(s, f->id, due_ms, feed_n > 1 ? f->host_id : 0, 0, err);
}

static int feed_set_in(struct sqlite *s, const struct fw_feed *n, unsigned what, struct fw_err *err)
{
	struct standing f;
	int rc = standing_get(s, n->id, &f, err);

	if (!rc && (what & FW_SET_TITLE))
		rc = sq_do(s, SQ_SET_TITLE, "UPDATE feeds SET user_title = ? WHERE id = ?", err, "si", n->user_title, n->id);
	if (!rc && (what & FW_SET_FOLDER))
		rc = sq_do(s, SQ_SET_FOLDER, "UPDATE feeds SET folder = ? WHERE id = ?", err, "si", n->folder, n->id);
	if (!rc && (what & FW_SET_INTERVAL))
		rc = sq_do(s, SQ_SET_INTERVAL, "UPDATE feeds SET interval_ms = ? WHERE id = ?", err, "ii", n->interval_ms, n->id);
	if (!rc && (what & FW_SET_AUTH))
		rc = sq_do(s, SQ_SET_AUTH, "UPDATE feeds SET username = ?, password = ? WHERE id = ?", err, "ssi", n->username, n->password,
			n->id);
	if (!rc && (what & FW_SET_CRASH))
		rc = sq_do(s, SQ_SET_CRASH, "UPDATE wheel SET crash_n = ? WHERE feed_id = ?", err, "ii", SQ_INT(n->crash_n), n->id);
	if (!rc && (what & (FW_SET_STATUS | FW_SET_DUE)))
		rc = move(s, &f, what & FW_SET_STATUS ? SQ_INT(n->status) : f.status, what & FW_SET_DUE ? n->due_at_ms : f.due_ms, err);
	return rc;
}

int sq_feed_set(struct fw_store *st, const struct fw_feed *feed, unsigned what, struct fw_err *err)
{
	struct sqlite *s = sqlite_of(st);
	int rc = sq_begin(s, err);

	return rc ? rc : sq_end(s, feed_set_in(s, feed, what, err), err);
}

/* ---- feeds ---------------------------------------------------------------------------------------------------------------- */

#define FEED_VIEW "SELECT " SQ_FEED_COLUMNS ", (SELECT count(*) FROM entry_keys k WHERE k.feed_id = f.id AND k.entry_id > 0)," \
	" c.until_ms, l.fence FROM feeds f JOIN wheel w ON w.feed_id = f.id LEFT JOIN leases l ON l.feed_id = f.id" \
	" LEFT JOIN claims c ON l.fence BETWEEN c.first_fence AND c.last_fence"

static void feed_view_read(sqlite3_stmt *q, struct fw_feed *out)
{
	sq_feed_read(q, out);
	out->entry_n = sqlite3_column_int64(q, SQ_FEED_COLUMN_N);
	out->lease_until_ms = sqlite3_column_int64(q, SQ_FEED_COLUMN_N + 1);
	out->fence = sqlite3_column_int64(q, SQ_FEED_COLUMN_N + 2);
}

int sq_feed_find(struct fw_store *st, int64_t id, struct fw_str url, struct fw_arena *a, struct fw_feed *out,
	struct fw_err *err)
{
	struct sqlite *s = sqlite_of(st);
	sqlite3_stmt *q = id ? sq_ask(s, SQ_FEED_BY_ID, FEED_VIEW " WHERE f.id = ?", err, "i", id) :
		sq_ask(s, SQ_FEED_BY_URL, FEED_VIEW " WHERE f.url = ?", err, "s", url);
	int rc = q ? sq_row(s, q, err) : err->rc;

	if (rc < 0)
		return rc;
	if (rc == 0 && id)
		return fw_err_set(err, FW_ENOTFOUND, "%s: no feed number %lld", s->path, (long long)id);
	if (rc == 0)
		return fw_err_set(err, FW_ENOTFOUND, "%s: no feed %.*s", s->path, FW_STR_ARG(url));
	feed_view_read(q, out);
	rc = fw_store_feed_dup(a, out) ? 0 : fw_err_set(err, FW_ENOMEM, "%s: no memory for the feed", s->path);
	sqlite3_reset(q);
	return rc;
}

/* One statement with every condition in it: a parameter that is NULL (or -1, or 0) switches its condition off. */
#define FEED_WHERE " WHERE f.id > ?1 AND (?2 < 0 OR w.status = ?2) AND (?3 = 0 OR w.fail_n > 0)" \
	" AND (?4 IS NULL OR coalesce(f.folder, '') = ?4) AND (?5 IS NULL OR instr(lower(f.url), ?5)" \
	" OR instr(lower(coalesce(f.title, '')), ?5) OR instr(lower(coalesce(f.user_title, '')), ?5))"

int sq_feed_list(struct fw_store *st, const struct fw_feed_query *q, fw_feed_cb *cb, void *ctx, struct fw_err *err)
{
	struct sqlite *s = sqlite_of(st);
	struct fw_str match = q->match;
	struct fw_buf low = FW_BUF_INIT(0);
	sqlite3_stmt *r = NULL;
	int rc;

	for (size_t i = 0; i < match.len; i++)
		fw_buf_addc(&low, (char)fw_lower((unsigned char)match.p[i]));
	if (low.rc)
		return fw_err_set(err, FW_ENOMEM, "%s: feed list: out of memory", s->path);
	if (match.p)
		match = fw_buf_str(&low);
	r = sq_ask(s, q->by_due ? SQ_FEEDS_BY_DUE : SQ_FEEDS,
		q->by_due ? FEED_VIEW FEED_WHERE " ORDER BY w.due_at_ms, f.id LIMIT ?6" : FEED_VIEW FEED_WHERE " ORDER BY f.id LIMIT ?6",
		err, "iiissi", q->after_id, SQ_INT(q->status), SQ_INT(q->failing), q->folder, match,
		q->limit ? SQ_INT(q->limit) : INT64_C(-1));
	rc = r ? 0 : err->rc;
	while (r && (rc = sq_row(s, r, err)) > 0) {
		struct fw_feed f;

		feed_view_read(r, &f);
		rc = cb(ctx, &f);
		if (rc) {
			sqlite3_reset(r);
			break;
		}
	}
	fw_buf_finish(&low);
	return rc;
}

/* ---- visits ---------------------------------------------------------------------------------------------------------------- */

#define VISIT_COLUMNS "v.id, v.feed_id, v.run_id, v.at_ms, v.kind, v.http_status, v.hops, v.slot, v.lateness_ms, v.dns_us," \
	" v.connect_us, v.tls_us, v.first_byte_us, v.total_us, v.parse_us, v.wire_bytes, v.body_bytes, v.item_n, v.new_n," \
	" v.changed_n, v.error, f.url"

static void visit_read(sqlite3_stmt *q, struct fw_visit *v)
{
	int c = 0;

	*v = (struct fw_visit){.id = sqlite3_column_int64(q, c++)};
	v->feed_id = sqlite3_column_int64(q, c++);
	v->run_id = sqlite3_column_int64(q, c++);
	v->at_ms = sqlite3_column_int64(q, c++);
	v->kind = (enum fw_visit_kind)sqlite3_column_int(q, c++);
	v->http_status = sqlite3_column_int(q, c++);
	v->hops = (uint32_t)sqlite3_column_int64(q, c++);
	v->slot = sqlite3_column_int(q, c++);
	v->lateness_ms = (uint32_t)sqlite3_column_int64(q, c++);
	v->dns_us = sqlite3_column_int64(q, c++);
	v->connect_us = sqlite3_column_int64(q, c++);
	v->tls_us = sqlite3_column_int64(q, c++);
	v->first_byte_us = sqlite3_column_int64(q, c++);
	v->total_us = sqlite3_column_int64(q, c++);
	v->parse_us = sqlite3_column_int64(q, c++);
	v->wire_bytes = (uint64_t)sqlite3_column_int64(q, c++);
	v->body_bytes = (uint64_t)sqlite3_column_int64(q, c++);
	v->item_n = (uint32_t)sqlite3_column_int64(q, c++);
	v->new_n = (uint32_t)sqlite3_column_int64(q, c++);
	v->changed_n = (uint32_t)sqlite3_column_int64(q, c++);
	v->error = sq_text(q, c++);
	v->feed_url = sq_text(q, c);
}

int sq_visit_list(struct fw_store *st, const struct fw_visit_query *q, fw_visit_cb *cb, void *ctx, struct fw_err *err)
{
	struct sqlite *s = sqlite_of(st);
	int64_t limit = q->limit ? SQ_INT(q->limit) : -1;
	sqlite3_stmt *r = q->oldest_first ?
		sq_ask(s, SQ_VISITS_AFTER, "SELECT " VISIT_COLUMNS " FROM visits v JOIN feeds f ON f.id = v.feed_id WHERE v.id > ?1"
			" AND (?2 = 0 OR v.run_id = ?2) AND v.at_ms >= ?3 ORDER BY v.id LIMIT ?4", err, "iiii", q->after_id, q->run_id,
			q->since_ms, limit) : q->feed_id ?
		sq_ask(s, SQ_VISITS_OF_FEED, "WITH RECURSIVE chain(id, previous_id) AS (SELECT v.id, v.previous_id FROM wheel w"
			" JOIN visits v ON v.id = w.last_visit_id WHERE w.feed_id = ?1 UNION ALL"
			" SELECT v.id, v.previous_id FROM chain c JOIN visits v ON v.id = c.previous_id)"
			" SELECT " VISIT_COLUMNS " FROM chain JOIN visits v USING (id) JOIN feeds f ON f.id = v.feed_id"
			" WHERE (?2 = 0 OR v.run_id = ?2) AND v.at_ms >= ?3 LIMIT ?4", err, "iiii", q->feed_id, q->run_id, q->since_ms, limit) :
		sq_ask(s, SQ_VISITS, "SELECT " VISIT_COLUMNS " FROM visits v JOIN feeds f ON f.id = v.feed_id"
			" WHERE v.id >= CASE WHEN ?1 = 0 THEN 0 ELSE coalesce((SELECT first_visit_id FROM runs WHERE run_id = ?1), 0) END"
			" AND (?1 = 0 OR v.run_id = ?1) AND v.at_ms >= ?2 ORDER BY v.id DESC LIMIT ?3", err, "iii", q->run_id, q->since_ms,
			limit);
	int rc = r ? 0 : err->rc;

	while (r && (rc = sq_row(s, r, err)) > 0) {
		struct fw_visit v;

		visit_read(r, &v);
		rc = cb(ctx, &v);
		if (rc) {
			sqlite3_reset(r);
			break;
		}
	}
	return rc;
}

/* ---- figures, messages, workers ---------------------------------------------------------------------------------------------- */

int sq_stats(struct fw_store *st, int64_t now_ms, struct fw_store_stats *out, struct fw_err *err)
{
	struct sqlite *s = sqlite_of(st);
	int64_t now = now_ms ? now_ms : fw_now_ms(), pages;
	sqlite3_stmt *q = sq_ask(s, SQ_STATS_WHEEL, "SELECT count(*), sum(status = 0), sum(status = 1), sum(status = 2), sum(status = 3),"
		" sum(fail_n > 0) FROM wheel", err, "");
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
	q = sq_ask(s, SQ_STATS_QUEUE, "SELECT (SELECT count(*) FROM queue WHERE id <= ?2 AND wake_at_ms <= ?1)"
		" + (SELECT count(*) FROM queue INDEXED BY queue_moved WHERE due_at_ms IS NOT NULL AND wake_at_ms > ?1 AND due_at_ms <= ?1)"
		" + (SELECT count(*) FROM parked WHERE due_at_ms <= ?1), (SELECT count(*) FROM leases),"
		" (SELECT min(t) FROM (SELECT min(coalesce(due_at_ms, wake_at_ms)) t FROM (SELECT * FROM queue ORDER BY id LIMIT 1)"
		" UNION ALL SELECT min(due_at_ms) FROM queue INDEXED BY queue_moved WHERE due_at_ms IS NOT NULL"
		" UNION ALL SELECT min(due_at_ms) FROM parked))", err, "ii", now, sq_slot_last(now));
	rc = q ? sq_row(s, q, err) : err->rc;
	if (rc < 0)
		return rc;
	out->due_n = sqlite3_column_int64(q, 0);
	out->lent_n = sqlite3_column_int64(q, 1);
	out->next_due_ms = sq_date(q, 2);
	sqlite3_reset(q);
	rc = sq_search_watermark(s, &s->indexed_id, err);
	if (rc)
		return rc;
	q = sq_ask(s, SQ_STATS_ENTRIES, "SELECT (SELECT value FROM meta WHERE name = 'entry_n'),"
		" (SELECT value FROM meta WHERE name = 'visit_n'), (SELECT page_count FROM pragma_page_count),"
		" CASE WHEN (SELECT max(id) FROM entries) > ?1 THEN (SELECT count(*) FROM entries INDEXED BY entries_date"
		" WHERE date_ms > -9e18 AND id > ?1) END, (SELECT max(id) FROM feeds), (SELECT max(id) FROM entries),"
		" (SELECT max(id) FROM visits)", err, "i", s->indexed_id);
	rc = q ? sq_row(s, q, err) : err->rc;
	if (rc < 0)
		return rc;
	out->entry_n = sqlite3_column_int64(q, 0);
	out->visit_n = sqlite3_column_int64(q, 1);
	pages = sqlite3_column_int64(q, 2);
	out->unindexed_n = sqlite3_column_int64(q, 3);
	out->last_feed_id = sqlite3_column_int64(q, 4);
	out->last_entry_id = sqlite3_column_int64(q, 5);
	out->last_visit_id = sqlite3_column_int64(q, 6);
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
