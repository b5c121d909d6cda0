/* SPDX-License-Identifier: ISC */
/*
 * What people look at: feeds, visits, figures, control messages, workers, and the deep check. Lists stream through a cursor, so a
 * million feeds take no memory.
 */
#include "base/clock.h"
#include "store/postgres.h"

/* ---- feeds ---------------------------------------------------------------------------------------------------------------- */

#define FEED_COLUMN_N 4 /* before the members */

static void feed_sql(struct fw_buf *b, const char *where)
{
	fw_buf_adds(b, "SELECT f.id, (SELECT count(*) FROM entry_keys k WHERE k.feed_id = f.id AND k.entry_id > 0), l.until_ms, l.fence, ");
	pg_columns(b, "w.", fw_wheel_fields, fw_wheel_field_n);
	fw_buf_adds(b, ", ");
	pg_columns(b, "f.", fw_feed_fields, fw_feed_field_n);
	fw_buf_addf(b, " FROM feeds f JOIN wheel w ON w.feed_id = f.id LEFT JOIN (SELECT u.feed_id, l.until_ms, l.id << 6 | u.i - 1 AS fence"
		" FROM loans l, unnest(l.feed_id) WITH ORDINALITY u (feed_id, i) WHERE l.open >> (u.i - 1)::int & 1 = 1) l"
		" ON l.feed_id = f.id %s", where);
}

static void feed_read(const PGresult *r, int row, struct fw_feed *f)
{
	*f = (struct fw_feed){.id = pg_get_int(r, row, 0), .entry_n = pg_get_int(r, row, 1), .lease_until_ms = pg_get_int(r, row, 2),
		.fence = pg_get_int(r, row, 3)};
	pg_get_fields(r, row, FEED_COLUMN_N, fw_wheel_fields, fw_wheel_field_n, f);
	pg_get_fields(r, row, FEED_COLUMN_N + (int)fw_wheel_field_n, fw_feed_fields, fw_feed_field_n, f);
}

int pg_feed_find(struct fw_store *st, int64_t id, struct fw_str url, struct fw_arena *a, struct fw_feed *out,
	struct fw_err *err)
{
	enum pg_id which = id ? PG_FEED_BY_ID : PG_FEED_BY_URL;
	struct pg *p = pg_of(st);
	int rc;

	if (pg_text_wanted(p, which))
		feed_sql(&p->text, id ? "WHERE f.id = $1::int8" : "WHERE md5(f.url) = md5($1::text) AND f.url = $1::text");
	if (id)
		pg_int(p, id);
	else
		pg_text(p, url);
	pg_send_text(p, which);
	rc = pg_run(p, err);
	if (rc)
		return rc;
	if (!PQntuples(p->res[0]) && id)
		return fw_err_set(err, FW_ENOTFOUND, "%s: no feed has the number %lld", p->name, (long long)id);
	if (!PQntuples(p->res[0]))
		return fw_err_set(err, FW_ENOTFOUND, "%s: no feed %.*s", p->name, FW_STR_ARG(url));
	feed_read(p->res[0], 0, out);
	return fw_store_feed_dup(a, out) ? 0 : fw_err_set(err, FW_ENOMEM, "%s: no memory for the feed", p->name);
}

struct listing {
	void *ctx;
	fw_feed_cb *feed;
	fw_visit_cb *visit;
	fw_beat_cb *beat;
};

static int feed_show(void *ctx, struct pg *p, const PGresult *r, int row)
{
	struct listing *l = ctx;
	struct fw_feed f;

	(void)p;
	feed_read(r, row, &f);
	return l->feed(l->ctx, &f);
}

/* ASCII case folded, whatever the database's locale. */
#define FOLDED(column) "translate(" column ", 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz')"

int pg_feed_list(struct fw_store *st, const struct fw_feed_query *q, fw_feed_cb *cb, void *ctx, struct fw_err *err)
{
	struct pg *p = pg_of(st);
	struct listing l = {.feed = cb, .ctx = ctx};
	struct fw_buf sql = FW_BUF_INIT(0);
	int rc;

	pg_int(p, q->after_id);
	pg_text(p, q->folder);
	pg_text(p, q->match);
	feed_sql(&sql, "WHERE f.id > $1::int8 AND ($2::text IS NULL OR coalesce(f.folder, '') = $2::text) AND ($3::text IS NULL"
		" OR strpos(" FOLDED("f.url") ", " FOLDED("$3::text") ") > 0 OR strpos(" FOLDED("coalesce(f.title, '')") ", " FOLDED("$3::text")
		") > 0 OR strpos(" FOLDED("coalesce(f.user_title, '')") ", " FOLDED("$3::text") ") > 0)");
	if (q->status >= 0)
		fw_buf_addf(&sql, " AND w.status = %d", q->status);
	if (q->failing)
		fw_buf_adds(&sql, " AND w.fail_n > 0");
	fw_buf_adds(&sql, q->by_due ? " ORDER BY w.due_at_ms, f.id" : " ORDER BY f.id");
	if (q->limit)
		fw_buf_addf(&sql, " LIMIT %zu", q->limit);
	rc = sql.rc ? fw_err_set(err, FW_ENOMEM, "%s: feed list: out of memory", p->name) : pg_list(p, sql.p, 200, feed_show, &l, err);
	fw_buf_finish(&sql);
	return rc;
}

/* ---- visits ---------------------------------------------------------------------------------------------------------------- */

#define VISIT_COLUMN_N 2 /* before the members */

static int visit_show(void *ctx, struct pg *p, const PGresult *r, int row)
{
	struct listing *l = ctx;
	struct fw_visit v = {.id = pg_get_int(r, row, 0), .feed_url = pg_get_str(r, row, 1)};

	(void)p;
	pg_get_fields(r, row, VISIT_COLUMN_N, fw_visit_fields, fw_visit_field_n, &v);
	return l->visit(l->ctx, &v);
}

/* Of one feed: down its chain of visits, which may end early where old ones were pruned. */
static void visits_of_feed_sql(struct fw_buf *b)
{
	fw_buf_adds(b, "WITH RECURSIVE chain (id, n) AS (SELECT w.last_visit_id, 1 FROM wheel w WHERE w.feed_id = $1::int8 UNION ALL"
		" SELECT coalesce((SELECT b.previous_id[(c.id & 1023) + 1] FROM visit_batches b WHERE b.id = c.id >> 10),"
		" (SELECT r.previous_id FROM visit_rows r WHERE r.id = c.id)), c.n + 1 FROM chain c WHERE c.id IS NOT NULL)"
		" SELECT c.id, f.url, ");
	pg_columns(b, "v.", fw_visit_fields, fw_visit_field_n);
	fw_buf_adds(b, " FROM chain c JOIN feeds f ON f.id = $1::int8 CROSS JOIN LATERAL (SELECT ");
	for (size_t i = 0; i < fw_visit_field_n; i++) {
		const char *name = fw_visit_fields[i].name;

		if (strcmp(name, "run_id") == 0)
			fw_buf_addf(b, "%sb.run_id", i ? ", " : "");
		else
			fw_buf_addf(b, "%sb.%s[(c.id & 1023) + 1]", i ? ", " : "", name);
	}
	fw_buf_adds(b, " FROM visit_batches b WHERE b.id = c.id >> 10 AND cardinality(b.feed_id) > c.id & 1023 UNION ALL SELECT ");
	pg_columns(b, "r.", fw_visit_fields, fw_visit_field_n);
	fw_buf_adds(b, " FROM visit_rows r WHERE r.id = c.id) v (");
	pg_columns(b, "", fw_visit_fields, fw_visit_field_n);
	fw_buf_adds(b, ") WHERE ($2::int8 = 0 OR v.run_id = $2::int8) AND v.at_ms >= $3::int8 AND $4::int8 IS NOT NULL ORDER BY c.n");
}

static void visits_sql(struct fw_buf *b, bool oldest_first)
{
	fw_buf_adds(b, "SELECT v.id, f.url, ");
	pg_columns(b, "v.", fw_visit_fields, fw_visit_field_n);
	fw_buf_adds(b, " FROM visits v JOIN feeds f ON f.id = v.feed_id WHERE $1::int8 = 0 AND v.at_ms >= $3::int8 AND v.id > $4::int8"
		" AND ($2::int8 = 0 OR (v.run_id = $2::int8 AND v.id >= coalesce((SELECT first_visit_id FROM runs WHERE run_id = $2::int8), 0)))");
	fw_buf_adds(b, oldest_first ? " ORDER BY v.id" : " ORDER BY v.id DESC");
}

int pg_visit_list(struct fw_store *st, const struct fw_visit_query *q, fw_visit_cb *cb, void *ctx, struct fw_err *err)
{
	struct pg *p = pg_of(st);
	struct listing l = {.visit = cb, .ctx = ctx};
	struct fw_buf sql = FW_BUF_INIT(0);
	int rc;

	pg_int(p, q->feed_id);
	pg_int(p, q->run_id);
	pg_int(p, q->since_ms);
	pg_int(p, q->after_id);
	if (q->feed_id)
		visits_of_feed_sql(&sql);
	else
		visits_sql(&sql, q->oldest_first);
	if (q->limit)
		fw_buf_addf(&sql, " LIMIT %zu", q->limit);
	rc = sql.rc ? fw_err_set(err, FW_ENOMEM, "%s: visit list: out of memory", p->name) : pg_list(p, sql.p, 500, visit_show, &l, err);
	fw_buf_finish(&sql);
	return rc;
}

/* ---- figures, messages, workers ---------------------------------------------------------------------------------------------- */

static int stats_read(void *ctx, struct pg *p, const PGresult *r, int row)
{
	struct fw_store_stats *out = ctx;

	(void)p;
	out->feed_n = pg_get_int(r, row, 0);
	out->active_n = pg_get_int(r, row, 1);
	out->paused_n = pg_get_int(r, row, 2);
	out->gone_n = pg_get_int(r, row, 3);
	out->quarantined_n = pg_get_int(r, row, 4);
	out->failing_n = pg_get_int(r, row, 5);
	out->due_n = pg_get_int(r, row, 6);
	out->lent_n = pg_get_int(r, row, 7);
	out->next_due_ms = pg_get_date(r, row, 8);
	out->entry_n = pg_get_int(r, row, 9);
	out->visit_n = pg_get_int(r, row, 10);
	out->unindexed_n = pg_get_int(r, row, 11);
	out->size_bytes = pg_get_int(r, row, 12);
	out->last_feed_id = pg_get_int(r, row, 13);
	out->last_entry_id = pg_get_int(r, row, 14);
	out->last_visit_id = pg_get_int(r, row, 15);
	out->schema = PG_SCHEMA;
	return 0;
}

int pg_stats(struct fw_store *st, int64_t now_ms, struct fw_store_stats *out, struct fw_err *err)
{
	struct pg *p = pg_of(st);
	int64_t now = now_ms ? now_ms : pg_now_ms(p);

	pg_int(p, now);
	pg_int(p, pg_place_last(now));
	pg_str(p, fw_str(p->schema));
	return pg_list(p, "SELECT w.*, (SELECT count(*) FROM places WHERE id <= $2::int8 AND wake_at_ms <= $1::int8)"
		" + (SELECT count(*) FROM places WHERE due_at_ms IS NOT NULL AND wake_at_ms > $1::int8 AND due_at_ms <= $1::int8)"
		" + (SELECT count(*) FROM parked WHERE due_at_ms <= $1::int8),"
		" (SELECT coalesce(sum((SELECT count(*) FROM generate_series(0, 63) i WHERE open >> i & 1 = 1)), 0)::int8 FROM loans),"
		" (SELECT min(t) FROM (SELECT min(coalesce(due_at_ms, wake_at_ms)) AS t FROM (SELECT * FROM places ORDER BY id LIMIT 1000) a"
		" UNION ALL SELECT min(due_at_ms) FROM places WHERE due_at_ms IS NOT NULL UNION ALL SELECT min(due_at_ms) FROM parked) b),"
		" (SELECT coalesce(sum(entry_n), 0)::int8 FROM tally), (SELECT coalesce(sum(n), 0)::int8 FROM visit_batches)"
		" + (SELECT count(*) FROM visit_rows), " PG_UNINDEXED_N ","
		" (SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::int8 FROM pg_class WHERE relkind IN ('r', 'p')"
		" AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $3)), (SELECT max(id) FROM feeds),"
		" (SELECT max(id) FROM entries), greatest((SELECT max(id) FROM visit_rows), (SELECT id << 10 | cardinality(feed_id) - 1"
		" FROM visit_batches ORDER BY id DESC LIMIT 1)) FROM (SELECT count(*), count(*) FILTER (WHERE status = 0), count(*) FILTER (WHERE status = 1),"
		" count(*) FILTER (WHERE status = 2), count(*) FILTER (WHERE status = 3), count(*) FILTER (WHERE fail_n > 0) FROM wheel) w",
		2, stats_read, out, err);
}

struct message {
	int64_t kind, now_ms;
};

static int control_in(struct pg *p, void *ctx, struct fw_err *err)
{
	const struct message *m = ctx;

	pg_begin(p);
	pg_int(p, m->kind);
	pg_int(p, m->now_ms);
	pg_send(p, PG_CONTROL_PUT, "INSERT INTO controls (kind, created_ms) VALUES ($1::int8, $2::int8)");
	pg_notify(p);
	return pg_commit_run(p, err);
}

int pg_control_put(struct fw_store *st, enum fw_control_kind kind, int64_t now_ms, struct fw_err *err)
{
	struct pg *p = pg_of(st);
	struct message m = {(int64_t)kind, now_ms ? now_ms : pg_now_ms(p)};

	return pg_txn(p, control_in, &m, err);
}

int pg_control_take(struct fw_store *st, int64_t after_id, struct fw_control *out, struct fw_err *err)
{
	struct pg *p = pg_of(st);
	int rc;

	if (after_id < 0) {
		pg_send(p, PG_CONTROL_LAST, "SELECT max(id), (SELECT kind FROM controls WHERE kind IN (2, 3) ORDER BY id DESC LIMIT 1)"
			" FROM controls");
		rc = pg_run(p, err);
		out->id = rc ? 0 : pg_get_int(p->res[0], 0, 0);
		out->paused = !rc && pg_get_int(p->res[0], 0, 1) == FW_CONTROL_PAUSE;
		return rc;
	}
	pg_int(p, after_id);
	pg_send(p, PG_CONTROL_NEXT, "SELECT id, kind, created_ms FROM controls WHERE id > $1::int8 ORDER BY id LIMIT 1");
	rc = pg_run(p, err);
	if (rc || !PQntuples(p->res[0]))
		return rc;
	out->id = pg_get_int(p->res[0], 0, 0);
	out->kind = (enum fw_control_kind)pg_get_int(p->res[0], 0, 1);
	out->created_ms = pg_get_int(p->res[0], 0, 2);
	return 0;
}

static int beat_show(void *ctx, struct pg *p, const PGresult *r, int row)
{
	struct listing *l = ctx;
	struct fw_beat b = {.worker = PQgetvalue(r, row, 0)}; /* libpq ends every value with a NUL */

	(void)p;
	pg_get_fields(r, row, 1, fw_beat_fields, fw_beat_field_n, &b);
	return l->beat(l->ctx, &b);
}

int pg_beat_list(struct fw_store *st, int64_t since_ms, fw_beat_cb *cb, void *ctx, struct fw_err *err)
{
	struct pg *p = pg_of(st);
	struct listing l = {.beat = cb, .ctx = ctx};
	struct fw_buf sql = FW_BUF_INIT(0);
	int rc;

	fw_buf_adds(&sql, "SELECT worker, ");
	pg_columns(&sql, "", fw_beat_fields, fw_beat_field_n);
	fw_buf_adds(&sql, " FROM workers WHERE at_ms >= $1::int8 ORDER BY worker COLLATE \"C\"");
	pg_int(p, since_ms);
	rc = sql.rc ? fw_err_set(err, FW_ENOMEM, "%s: workers: out of memory", p->name) : pg_list(p, sql.p, 500, beat_show, &l, err);
	fw_buf_finish(&sql);
	return rc;
}

/* ---- for doctor ---------------------------------------------------------------------------------------------------------------- */

int pg_inspect(struct fw_store *st, fw_inspect_cb *cb, void *ctx, struct fw_err *err)
{
	struct pg *p = pg_of(st);
	bool lossy, vacuum;
	int64_t old_s;
	char found[200];
	const PGresult *r;
	int rc;

	pg_send(p, PG_ONCE, "SELECT current_setting('server_version'), current_setting('fsync'), current_setting('synchronous_commit'),"
		" current_setting('full_page_writes'), current_setting('autovacuum'), (SELECT coalesce(max(extract(epoch FROM now() -"
		" xact_start)), 0)::int8 FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_xmin IS NOT NULL)");
	rc = pg_run(p, err);
	if (rc)
		return rc;
	r = p->res[0];
	(void)fw_snprintf(found, sizeof(found), "PostgreSQL %s", PQgetvalue(r, 0, 0));
	cb(ctx, "server", 0, found, "");
	lossy = strcmp(PQgetvalue(r, 0, 1), "on") != 0 || strcmp(PQgetvalue(r, 0, 3), "on") != 0;
	(void)fw_snprintf(found, sizeof(found), "fsync %s, full_page_writes %s, synchronous_commit %s", PQgetvalue(r, 0, 1),
		PQgetvalue(r, 0, 3), PQgetvalue(r, 0, 2));
	if (lossy)
		cb(ctx, "durability", 2, found, "a power cut may destroy the store: turn fsync and full_page_writes on");
	else if (strcmp(PQgetvalue(r, 0, 2), "off") == 0)
		cb(ctx, "durability", 1, found, "a power cut may take the last visits: turn synchronous_commit on");
	else
		cb(ctx, "durability", 0, found, "");
	vacuum = strcmp(PQgetvalue(r, 0, 4), "on") == 0;
	cb(ctx, "vacuum", vacuum ? 0 : 2, vacuum ? "autovacuum is on" : "autovacuum is off", vacuum ? "" :
		"the tables of the wheel will grow without end: turn it on");
	old_s = pg_get_int(r, 0, 5);
	(void)fw_snprintf(found, sizeof(found), "the oldest open transaction is %lld s old", (long long)old_s);
	cb(ctx, "long transactions", old_s > 600 ? 1 : 0, found, old_s > 600 ?
		"vacuum cannot clean up behind it: look for it in pg_stat_activity" : "");
	return 0;
}

/* ---- the deep check ------------------------------------------------------------------------------------------------------------ */

/* Each of these lists what should not be; one column with a sentence. */
#define LINE "(SELECT feed_id FROM places UNION ALL SELECT feed_id FROM parked UNION ALL SELECT feed_id FROM leases) s"
static const char check_sql[] =
	"SELECT 'feed ' || w.feed_id || ': active, but neither waiting nor lent' FROM wheel w WHERE status = 0"
	" AND NOT EXISTS (SELECT 1 FROM " LINE " WHERE s.feed_id = w.feed_id) UNION ALL "
	"SELECT 'feed ' || feed_id || ': in line ' || count(*) || ' times' FROM " LINE " GROUP BY feed_id HAVING count(*) > 1 UNION ALL "
	"SELECT 'feed ' || feed_id || ': waiting, but not active' FROM (SELECT feed_id FROM places UNION ALL SELECT feed_id FROM parked) s"
	" JOIN wheel USING (feed_id) WHERE status <> 0 UNION ALL "
	"SELECT 'feed ' || id || ': not on the wheel' FROM feeds f WHERE NOT EXISTS (SELECT 1 FROM wheel WHERE feed_id = f.id) UNION ALL "
	"SELECT 'wheel: no feed ' || feed_id FROM wheel w WHERE NOT EXISTS (SELECT 1 FROM feeds WHERE id = w.feed_id) UNION ALL "
	"SELECT 'claim ' || id || ': holds nothing' FROM loans WHERE open = 0 UNION ALL "
	"SELECT 'feed ' || feed_id || ': waits for another time than it is due' FROM places p JOIN wheel w USING (feed_id)"
	" WHERE coalesce(p.due_at_ms, wake_at_ms) <> w.due_at_ms UNION ALL "
	"SELECT 'entry ' || id || ': no feed ' || feed_id FROM entries e WHERE NOT EXISTS (SELECT 1 FROM feeds WHERE id = e.feed_id)"
	" UNION ALL "
	"SELECT 'entry ' || id || ': its key is not known' FROM entries e WHERE NOT EXISTS (SELECT 1 FROM entry_keys k"
	" WHERE k.feed_id = e.feed_id AND k.key = e.key AND k.entry_id = e.id) UNION ALL "
	"SELECT 'tally: counts ' || t.n || ' entries' FROM (SELECT coalesce(sum(entry_n), 0) AS n FROM tally) t"
	" WHERE t.n <> (SELECT count(*) FROM entries) UNION ALL "
	"SELECT 'visits: counts ' || t.n FROM (SELECT coalesce(sum(n), 0) + (SELECT count(*) FROM visit_rows) AS n"
	" FROM visit_batches) t WHERE t.n <> (SELECT count(*) FROM visits) UNION ALL "
	"SELECT 'host ' || name || ': has ' || coalesce(c.n, 0) || ' feeds, counts ' || feed_n FROM hosts h LEFT JOIN (SELECT host_id,"
	" count(*) AS n FROM feeds GROUP BY 1) c ON c.host_id = h.id WHERE feed_n <> coalesce(c.n, 0) UNION ALL "
	"SELECT 'host ' || name || ': has ' || coalesce(c.n, 0) || ' lent, counts ' || busy_n FROM hosts h LEFT JOIN (SELECT host_id,"
	" count(*) AS n FROM leases GROUP BY 1) c ON c.host_id = h.id WHERE busy_n <> coalesce(c.n, 0) UNION ALL "
	"SELECT 'host ' || name || ': has ' || coalesce(c.n, 0) || ' parked, counts ' || parked_n FROM hosts h LEFT JOIN (SELECT host_id,"
	" count(*) AS n FROM parked GROUP BY 1) c ON c.host_id = h.id WHERE parked_n <> coalesce(c.n, 0) UNION ALL "
	"SELECT 'host ' || name || ': has ' || coalesce(c.n, 0) || ' turns, counts ' || turn_n FROM hosts h LEFT JOIN (SELECT host_id,"
	" count(*) AS n FROM queue WHERE due_at_ms IS NOT NULL GROUP BY 1) c ON c.host_id = h.id WHERE turn_n <> coalesce(c.n, 0)"
	" UNION ALL "
	"SELECT 'host ' || name || ': feeds wait, and none has its turn' FROM hosts WHERE parked_n > 0 AND busy_n + turn_n = 0";

struct findings {
	void (*cb)(void *ctx, const char *finding);
	void *ctx;
};

static int finding_show(void *ctx, struct pg *p, const PGresult *r, int row)
{
	struct findings *f = ctx;

	(void)p;
	f->cb(f->ctx, PQgetvalue(r, row, 0));
	return 0;
}

int pg_check(struct fw_store *st, void (*cb)(void *ctx, const char *finding), void *ctx, struct fw_err *err)
{
	struct findings f = {cb, ctx};

	return pg_list(pg_of(st), check_sql, 200, finding_show, &f, err);
}
