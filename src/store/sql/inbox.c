/* SPDX-License-Identifier: ISC */
/*
 * Take the rows of the inbox (store/inbox.h).
 *
 * Two transactions. Control messages come first, because they must be readable in the order of
 * their keys: the transaction that takes them locks the counter `changes` before it chooses a key,
 * and ends soon. Takers wait for each other here, so that messages keep their order. Of
 * feeds_to_fetch concurrent takers skip each other's rows.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "store/inbox.h"
#include "store/sql/core.h"

#define CONTROL_MAX 10000 /* messages taken at once; while more wait, no feed is taken */
#define ARENA_KEPT_BYTES ((size_t)1 << 20)
#define TRIES 5 /* after another process stored the same key */

/* ---- control --------------------------------------------------------------------------------- */

struct inbox_message {
	int64_t row_id; /* in `control` */
	char value[STORE_CONTROL_VALUE_MAX];
	bool refused; /* an old MySQL, which has no CHECK, let it in */
};

struct inbox_messages {
	struct sql *s;
	struct inbox_message *message;
	size_t n;
	int64_t now_ms, key; /* key: of the newest message */
	const char *pause;   /* the value of the last pause or resume for all; NULL: none */
	size_t refused_n;
	bool more;
};

static int inbox_control_row(void *ctx, const struct sql_row *row)
{
	struct inbox_messages *all = ctx;
	struct store_inbox_control control = {.command = sql_str(row, 1), .worker = sql_str(row, 2)};
	struct inbox_message *m = &all->message[all->n];
	struct fw_err why;
	bool pauses = false;

	if (all->n == CONTROL_MAX) {
		all->more = true;
		return 0;
	}
	*m = (struct inbox_message){.row_id = sql_int(row, 0)};
	m->refused = store_inbox_control_value(&control, m->value, &pauses, &why) != 0;
	all->refused_n += m->refused;
	all->pause = pauses && !m->refused ? m->value : all->pause;
	all->n++;
	return 0;
}

static int inbox_newest_row(void *ctx, const struct sql_row *row)
{
	struct inbox_messages *all = ctx;

	all->now_ms = sql_int(row, 0);
	if (!fw_str_int(sql_str(row, 1), &all->key))
		all->key = 0;
	return 0;
}

static int inbox_messages_put(struct inbox_messages *all, struct fw_err *err)
{
	struct sql_rows r = SQL_ROWS(all->s, err,
		"INSERT INTO records (kind, record_key, value, at_ms, until_ms) {values}",
		"kind:t record_key:b value:b at_ms:i until_ms:i");
	int64_t next = FW_MAX(all->now_ms * 1000, all->key + 1);
	char(*key)[24] = calloc(all->n + 1, sizeof(*key));
	int rc;

	r.rc = key ? 0 : fw_no_memory(err);
	for (size_t i = 0; !r.rc && i < all->n; i++) {
		const struct inbox_message *m = &all->message[i];

		if (m->refused)
			continue;
		(void)fw_snprintf(key[i], sizeof(key[i]), "%020lld", (long long)next++);
		sql_rows_add(&r,
			SQL_V(SQL_TEXT(FW_STR(STORE_CONTROL_KIND)), SQL_BLOB(fw_str(key[i])),
				SQL_BLOB(fw_str(m->value)), SQL_INT(all->now_ms),
				SQL_INT(all->now_ms + STORE_CONTROL_KEPT_MS)));
	}
	rc = sql_rows_end(&r);
	free(key);
	return rc;
}

static int inbox_pause_put(const struct inbox_messages *all, struct fw_err *err)
{
	return sql_exec(all->s,
		"INSERT INTO records (kind, record_key, value, at_ms, until_ms) VALUES (?1, ?2, ?3, ?4, NULL)"
		" {upsert kind, record_key} value = {new value}, at_ms = {new at_ms}, until_ms = {new until_ms}",
		SQL_V(SQL_TEXT(FW_STR(STORE_PAUSED_KIND)), SQL_BLOB(FW_STR("all")), SQL_BLOB(fw_str(all->pause)),
			SQL_INT(all->now_ms)),
		err);
}

static int inbox_messages_remove(struct sql *s, const struct inbox_message *m, size_t n, struct fw_err *err)
{
	struct sql_rows r = SQL_ROWS(s, err, "DELETE FROM control {using} WHERE id = v.number", "number:i");

	for (size_t i = 0; i < n; i++)
		sql_rows_add(&r, SQL_V(SQL_INT(m[i].row_id)));
	return sql_rows_end(&r);
}

static int inbox_control_take(struct sql *s, void *ctx, struct fw_err *err)
{
	struct inbox_messages *all = ctx;
	int rc = sql_changes_raise(s, err);

	*all = (struct inbox_messages){.s = s, .message = all->message};
	rc = rc ? rc :
		  sql_query(s, "SELECT id, command, worker FROM control ORDER BY id LIMIT ?1",
			  SQL_V(SQL_INT(CONTROL_MAX + 1)), inbox_control_row, all, err);
	rc = rc ? rc :
		  sql_query(s,
			  "SELECT {now}, (SELECT record_key FROM records WHERE kind = ?1 AND {octets record_key} = 20"
			  " ORDER BY record_key DESC LIMIT 1)",
			  SQL_V(SQL_TEXT(FW_STR(STORE_CONTROL_KIND))), inbox_newest_row, all, err);
	rc = rc ? rc : inbox_messages_put(all, err);
	rc = rc || !all->pause ? rc : inbox_pause_put(all, err);
	return rc ? rc : inbox_messages_remove(s, all->message, all->n, err);
}

static int inbox_control(struct sql *s, struct store_inbox *in, struct fw_err *err)
{
	struct inbox_messages all = {.message = calloc(CONTROL_MAX, sizeof(*all.message))};
	int rc = all.message ? FW_EAGAIN : fw_no_memory(err);

	for (int i = 0; rc == FW_EAGAIN && i < TRIES; i++) {
		rc = sql_transaction(s, inbox_control_take, &all, err);
		if (s->race != SQL_RACE_ROW)
			break;
	}
	free(all.message);
	if (rc)
		return rc;
	in->control_n = all.n;
	in->refused_n = all.refused_n;
	in->more = all.more;
	return 0;
}

/* ---- feeds ----------------------------------------------------------------------------------- */

/* A row of feeds_to_fetch. */
struct inbox_feed {
	int64_t row_id;
	struct store_inbox_feed row; /* as it was written */
	struct fw_str refused;       /* the reason; absent: it is taken */
	size_t nth;                  /* of the load, if it is taken */
	int64_t position, status;    /* of a stored feed; position -1: none was found */
};

struct inbox_feeds {
	struct sql *s;
	struct store_inbox *in;
	struct fw_arena a;
	struct inbox_feed *at;
	size_t n;
	struct fw_feed *feed; /* the load */
	struct store_feed_new *made;
	size_t feed_n, refused_n;
	bool changed[STORE_SHARDS];
};

static struct fw_str inbox_str(struct inbox_feeds *all, struct fw_str s)
{
	return s.p ? fw_arena_str(&all->a, s) : s;
}

static int inbox_feed_row(void *ctx, const struct sql_row *row)
{
	struct inbox_feeds *all = ctx;

	assert(all->n < all->in->limit);
	all->at[all->n++] = (struct inbox_feed){.row_id = sql_int(row, 0),
		.row = {.url = inbox_str(all, sql_str(row, 1)),
			.folder = inbox_str(all, sql_str(row, 2)),
			.title = inbox_str(all, sql_str(row, 3)),
			.interval_ms = sql_int(row, 4)},
		.position = -1};
	return all->a.failed ? FW_ENOMEM : 0;
}

/* Lock rows and read them. *more: further rows wait, perhaps for another taker. */
static int inbox_feeds_read(struct inbox_feeds *all, struct fw_err *err)
{
	int64_t more = 0;
	int rc = sql_query(all->s,
		"SELECT id, url, folder, title, interval_ms FROM feeds_to_fetch ORDER BY id LIMIT ?1 {skip}",
		SQL_V(SQL_INT(all->in->limit)), inbox_feed_row, all, err);

	if (rc == FW_ENOMEM)
		return fw_no_memory(err);
	if (!rc && all->n == all->in->limit)
		rc = sql_query_int(all->s, "SELECT id FROM feeds_to_fetch WHERE id > ?1 ORDER BY id LIMIT 1",
			SQL_V(SQL_INT(all->at[all->n - 1].row_id)), 0, &more, err);
	all->in->more = more > 0;
	return rc;
}

/* Ask what becomes of each row. */
static int inbox_feeds_ask(struct inbox_feeds *all, struct fw_err *err)
{
	for (size_t i = 0; i < all->n; i++) {
		struct inbox_feed *f = &all->at[i];
		struct fw_feed_new made = {.id = 0};
		struct fw_err why = {0};
		int rc = all->in->feed(all->in->ctx, &f->row, &made, &why);

		if (rc && rc != FW_EINVAL) {
			*err = why;
			return rc;
		}
		if (rc) {
			f->refused = fw_arena_str(&all->a, fw_str(why.text));
			continue;
		}
		f->nth = all->feed_n;
		made.due_at_ms = FW_DUE_FIRST;
		all->feed[all->feed_n++] = store_feed_of_new(&made);
	}
	return all->a.failed ? fw_no_memory(err) : 0;
}

static bool inbox_feed_is_stored(const struct inbox_feeds *all, const struct inbox_feed *f)
{
	return !f->refused.p && all->made[f->nth].existed;
}

static int inbox_position_row(void *ctx, const struct sql_row *row)
{
	struct inbox_feeds *all = ctx;

	all->at[sql_int(row, 0)].position = sql_int(row, 1);
	return 0;
}

static int inbox_status_row(void *ctx, const struct sql_row *row)
{
	struct inbox_feeds *all = ctx;

	all->at[sql_int(row, 0)].status = sql_int(row, 1);
	return 0;
}

FW_COMPARE_BY(inbox_position_compare, struct inbox_feed, position, row_id)

/*
 * Lock the stored feeds in the order of all writers. One that moved or went meanwhile: start over.
 * The second row of an address that was new finds the feed of the first one.
 */
static int inbox_stored_lock(struct inbox_feeds *all, struct fw_err *err)
{
	struct sql_rows place = SQL_QUERY_ROWS(all->s, err, inbox_position_row, all,
		"SELECT v.nth, f.position FROM {rows} feeds f WHERE f.id = v.feed", "nth:i feed:i");
	struct sql_rows lock = SQL_QUERY_ROWS(all->s, err, inbox_status_row, all,
		"SELECT v.nth, t.status FROM {rows} schedule t WHERE t.position = v.spot {update}", "nth:i spot:i");

	for (size_t i = 0; i < all->n; i++) {
		all->at[i].position = all->at[i].status = -1;
		if (inbox_feed_is_stored(all, &all->at[i]))
			sql_rows_add(&place, SQL_V(SQL_INT(i), SQL_INT(all->made[all->at[i].nth].id)));
	}
	lock.rc = sql_rows_end(&place);
	qsort(all->at, all->n, sizeof(*all->at), inbox_position_compare);
	for (size_t i = 0; i < all->n; i++) {
		if (all->at[i].position >= 0)
			sql_rows_add(&lock, SQL_V(SQL_INT(i), SQL_INT(all->at[i].position)));
	}
	return sql_rows_end(&lock);
}

/* As `feedwheel fetch-now`: an active feed is due before all others, another one is refused. */
static int inbox_stored_make_due(struct inbox_feeds *all, struct fw_err *err)
{
	struct sql_rows r = SQL_ROWS(all->s, err,
		"UPDATE schedule AS t SET due_at_ms = v.due {from} WHERE t.position = v.spot", "spot:i due:i");
	int64_t last = -1;

	for (size_t i = 0; i < all->n; i++) {
		struct inbox_feed *f = &all->at[i];

		if (!inbox_feed_is_stored(all, f))
			continue;
		if (f->status < 0) {
			all->s->race = SQL_RACE_LOCKS;
			r.rc = fw_err_set(err, FW_EAGAIN, "%s: feed %lld moved or was removed meanwhile: try again",
				all->s->name, (long long)all->made[f->nth].id);
			break;
		}
		if (f->status != FW_FEED_ACTIVE) {
			f->refused = store_inbox_inactive(&all->a, (enum fw_feed_status)f->status);
			continue;
		}
		if (f->position != last) /* a statement changes a row once */
			sql_rows_add(&r, SQL_V(SQL_INT(f->position), SQL_INT(FW_DUE_FIRST)));
		all->changed[f->position >> SQL_POSITION_BITS] = true;
		last = f->position;
	}
	r.rc = !r.rc && all->a.failed ? fw_no_memory(err) : r.rc;
	return sql_rows_end(&r);
}

static int inbox_refused_put(struct inbox_feeds *all, struct fw_err *err)
{
	int64_t now_ms = 0;
	struct sql_rows r = SQL_ROWS(all->s, err,
		"INSERT INTO feeds_to_fetch_refused (id, url, folder, title, interval_ms, reason, at_ms) {values}"
		" {upsert id} url = {new url}, folder = {new folder}, title = {new title},"
		" interval_ms = {new interval_ms}, reason = {new reason}, at_ms = {new at_ms}",
		"id:i url:t folder:t title:t interval_ms:i reason:t at_ms:i");

	for (size_t i = 0; !r.rc && i < all->n; i++) {
		const struct inbox_feed *f = &all->at[i];

		if (!f->refused.p)
			continue;
		if (!now_ms)
			r.rc = sql_clock(&all->s->store, &now_ms, err);
		sql_rows_add(&r,
			SQL_V(SQL_INT(f->row_id), SQL_TEXT(f->row.url), SQL_TEXT(f->row.folder), SQL_TEXT(f->row.title),
				f->row.interval_ms ? SQL_INT(f->row.interval_ms) : SQL_NULL, SQL_TEXT(f->refused),
				SQL_INT(now_ms)));
		all->refused_n++;
	}
	return sql_rows_end(&r);
}

static int inbox_feeds_remove(struct inbox_feeds *all, struct fw_err *err)
{
	struct sql_rows r = SQL_ROWS(all->s, err, "DELETE FROM feeds_to_fetch {using} WHERE id = v.number", "number:i");

	for (size_t i = 0; i < all->n; i++)
		sql_rows_add(&r, SQL_V(SQL_INT(all->at[i].row_id)));
	return sql_rows_end(&r);
}

static int inbox_feeds_store(struct inbox_feeds *all, struct fw_err *err)
{
	struct store_load l = {.rows = {.feed = all->feed, .feed_n = all->feed_n}, .made = all->made};
	int rc = sql_feeds_subscribe(all->s, &l, all->changed, err);

	rc = rc ? rc : inbox_stored_lock(all, err);
	rc = rc ? rc : inbox_stored_make_due(all, err);
	rc = rc ? rc : inbox_refused_put(all, err);
	rc = rc ? rc : inbox_feeds_remove(all, err);
	return rc ? rc : sql_shards_changed(all->s, all->changed, err);
}

static int inbox_feeds_take(struct sql *s, void *ctx, struct fw_err *err)
{
	struct inbox_feeds *all = ctx;
	int rc;

	assert(s == all->s);
	fw_arena_reset(&all->a, ARENA_KEPT_BYTES);
	memset(all->changed, 0, sizeof(all->changed));
	all->n = all->feed_n = all->refused_n = 0;
	rc = inbox_feeds_read(all, err);
	if (rc || !all->n)
		return rc;
	rc = inbox_feeds_ask(all, err);
	return rc ? rc : inbox_feeds_store(all, err);
}

static int inbox_feeds(struct sql *s, struct store_inbox *in, struct fw_err *err)
{
	struct inbox_feeds all = {.s = s,
		.in = in,
		.at = calloc(in->limit, sizeof(*all.at)),
		.feed = calloc(in->limit, sizeof(*all.feed)),
		.made = calloc(in->limit, sizeof(*all.made))};
	int rc;

	fw_arena_init(&all.a, 0);
	rc = all.at && all.feed && all.made ? sql_transaction(s, inbox_feeds_take, &all, err) : fw_no_memory(err);
	in->feed_n = rc ? 0 : all.n;
	in->refused_n += rc ? 0 : all.refused_n;
	for (size_t i = 0; !rc && i < all.feed_n; i++)
		in->new_n += !all.made[i].existed;
	fw_arena_finish(&all.a);
	free(all.at);
	free(all.feed);
	free(all.made);
	return rc;
}

/* ---- the slot -------------------------------------------------------------------------------- */

struct inbox_waiting {
	bool control, feeds;
};

static int inbox_waiting_row(void *ctx, const struct sql_row *row)
{
	*(struct inbox_waiting *)ctx = (struct inbox_waiting){sql_int(row, 0), sql_int(row, 1)};
	return 0;
}

int sql_inbox(struct store *st, struct store_inbox *in, struct fw_err *err)
{
	struct sql *s = sql_of(st);
	struct inbox_waiting waiting = {false, false};
	int rc = sql_query(s,
		"SELECT CASE WHEN EXISTS (SELECT 1 FROM control) THEN 1 ELSE 0 END,"
		" CASE WHEN EXISTS (SELECT 1 FROM feeds_to_fetch) THEN 1 ELSE 0 END",
		SQL_NONE, inbox_waiting_row, &waiting, err);

	in->control_n = in->feed_n = in->new_n = in->refused_n = 0;
	in->more = false;
	if (!rc && waiting.control)
		rc = inbox_control(s, in, err);
	if (rc || in->more || !waiting.feeds)
		return rc;
	in->more = in->limit == 0;
	return in->more ? 0 : inbox_feeds(s, in, err);
}
