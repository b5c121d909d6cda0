/* SPDX-License-Identifier: ISC */
/*
 * Entries: stored once per (feed, key).
 *
 * `entry_keys` holds key and hash of every entry a feed ever had; a document that brings nothing new is compared there, all
 * documents of a batch by one statement, and never touches `entries`. Only who has a feed on loan writes its entries, and the
 * loan's row is locked then, so nobody else can bring the same key in between.
 *
 * Numbers of entries are a cursor for readers, but transactions need not end in the order in which they took their numbers. So a
 * writer holds an advisory lock named by the number it started from, and a reader with a cursor stops below the smallest of these
 * (pg_safe_id): what it has not seen yet is always above what it has.
 */
#include <stdlib.h>

#include "base/hash.h"
#include "store/postgres.h"

#define PUT_ROWS 5000              /* of one statement */
#define PUT_BYTES ((size_t)8 << 20)
#define PRUNE_STEP 2000            /* rows per transaction */

/* ---- storing ------------------------------------------------------------------------------------------------------------ */

enum state { SKIPPED, NEW, CHANGED };

struct item {
	const struct fw_entry_row *e;
	size_t outcome;
	int64_t feed_id, id; /* id 0 of a changed one: retention took it */
	enum state state;
};

struct pg_entries {
	struct item *item;
	size_t n, new_n, changed_n;
};

/* Of entries with one key in one document the first counts; later ones would overwrite each other at every visit. */
static bool seen_before(uint32_t *slot, size_t mask, const struct fw_entry_row *row, size_t i)
{
	size_t at = (size_t)fw_hash64(row[i].key, sizeof(row[i].key)) & mask;

	while (slot[at]) {
		if (memcmp(row[slot[at] - 1].key, row[i].key, sizeof(row[i].key)) == 0)
			return true;
		at = (at + 1) & mask;
	}
	slot[at] = (uint32_t)i + 1;
	return false;
}

static bool document_add(struct pg_entries *all, const struct fw_outcome *o, size_t outcome)
{
	size_t mask = 15;
	uint32_t *slot;

	while (mask < o->entry_n * 2)
		mask = mask * 2 + 1;
	slot = calloc(mask + 1, sizeof(*slot));
	for (size_t i = 0; slot && i < o->entry_n; i++) {
		if (!seen_before(slot, mask, o->entries, i))
			all->item[all->n++] = (struct item){.e = &o->entries[i], .outcome = outcome, .feed_id = o->feed_id};
	}
	free(slot);
	return slot != NULL;
}

struct pg_entries *pg_entries_new(const struct fw_outcome *o, size_t n, struct fw_err *err)
{
	struct pg_entries *all;
	size_t total = 0;
	bool ok;

	for (size_t i = 0; i < n; i++)
		total += o[i].entry_n;
	if (!total)
		return NULL;
	all = calloc(1, sizeof(*all));
	ok = all && (all->item = calloc(total, sizeof(*all->item)));
	for (size_t i = 0; i < n && ok; i++)
		ok = !o[i].entry_n || document_add(all, &o[i], i);
	if (ok)
		return all;
	pg_entries_free(all);
	fw_err_set(err, FW_ENOMEM, "postgres: storing entries: out of memory");
	return NULL;
}

void pg_entries_free(struct pg_entries *e)
{
	if (e)
		free(e->item);
	free(e);
}

static struct fw_str key_of(const struct fw_entry_row *e)
{
	return (struct fw_str){(const char *)e->key, sizeof(e->key)};
}

void pg_entries_ask(struct pg *p, struct pg_entries *all)
{
	pg_array(p, PG_INT8, all->n);
	for (size_t i = 0; i < all->n; i++)
		pg_item_int(p, all->item[i].feed_id);
	pg_array(p, PG_UUID, all->n);
	for (size_t i = 0; i < all->n; i++)
		pg_item_str(p, key_of(all->item[i].e));
	pg_send(p, PG_ENTRY_KNOWN, "SELECT u.i, k.hash, k.entry_id FROM unnest($1::int8[], $2::uuid[]) WITH ORDINALITY u (feed_id, key, i)"
		" JOIN entry_keys k ON k.feed_id = u.feed_id AND k.key = u.key");
}

/* Numbers for new ones, and the mark that says from where on somebody is writing. */
static int numbers_take(struct pg *p, struct pg_entries *all, struct fw_err *err)
{
	const PGresult *r;
	int row = 0, rc;

	pg_int(p, p->lock_key);
	pg_send(p, PG_ENTRY_LAST, "SELECT pg_advisory_xact_lock_shared($1::int8::int4, (last_value & 2147483647)::int4) FROM entries_id");
	pg_int(p, (int64_t)all->new_n);
	pg_send(p, PG_ENTRY_IDS, "SELECT nextval('entries_id') FROM generate_series(1, $1::int8)");
	rc = pg_run(p, err);
	if (rc)
		return rc;
	r = p->res[1];
	for (size_t i = 0; i < all->n; i++) {
		if (all->item[i].state == NEW)
			all->item[i].id = pg_get_int(r, row++, 0);
	}
	return 0;
}

int pg_entries_sort(struct pg *p, struct pg_entries *all, const PGresult *known, struct fw_outcome *o, struct fw_err *err)
{
	all->new_n = all->changed_n = 0;
	for (size_t i = 0; i < all->n; i++)
		all->item[i].state = o[all->item[i].outcome].rc ? SKIPPED : NEW;
	for (int k = 0; k < PQntuples(known); k++) {
		struct item *t = &all->item[pg_get_int(known, k, 0) - 1];

		t->id = pg_get_int(known, k, 2);
		t->state = t->state == NEW && (uint64_t)pg_get_int(known, k, 1) != t->e->hash ? CHANGED : SKIPPED;
	}
	for (size_t i = 0; i < all->n; i++) {
		const struct item *t = &all->item[i];

		all->new_n += t->state == NEW;
		all->changed_n += t->state == CHANGED;
		o[t->outcome].visit.new_n += t->state == NEW;
		o[t->outcome].visit.changed_n += t->state == CHANGED && t->id;
	}
	return all->new_n ? numbers_take(p, all, err) : 0;
}

/* Members that the store sets itself. */
static bool is_own(const struct fw_field *f)
{
	return strcmp(f->name, "seen_ms") == 0 || strcmp(f->name, "changed_ms") == 0 || strcmp(f->name, "revision") == 0;
}

/* ", NAME" for each member of the documents', with something before; and ", NAME = u.NAME", when there is something between. */
static void members_sql(struct fw_buf *b, const char *before, const char *between)
{
	for (size_t i = 0; i < fw_entry_field_n; i++) {
		const char *name = fw_entry_fields[i].name;

		if (!is_own(&fw_entry_fields[i]))
			fw_buf_addf(b, ", %s%s%s%s", before, name, between, *between ? name : "");
	}
}

static void params_sql(struct fw_buf *b, int from)
{
	for (size_t i = 0; i < fw_entry_field_n; i++) {
		if (is_own(&fw_entry_fields[i]))
			continue;
		fw_buf_adds(b, ", ");
		pg_array_params(b, from++, &fw_entry_fields[i], 1);
	}
}

/* The rows that items_pass gives, as u. */
static void rows_sql(struct fw_buf *b)
{
	fw_buf_adds(b, " FROM unnest($2::int8[], $3::int8[], $4::uuid[], $5::int8[]");
	params_sql(b, 6);
	fw_buf_adds(b, ") u (id, feed_id, key, date_ms");
	members_sql(b, "", "");
	fw_buf_adds(b, ")");
}

static void new_sql(struct fw_buf *b)
{
	fw_buf_adds(b, "INSERT INTO entries (id, feed_id, key, date_ms, seen_ms, changed_ms, revision");
	members_sql(b, "", "");
	fw_buf_adds(b, ") SELECT u.id, u.feed_id, u.key, u.date_ms, $1::int8, $1::int8, 1");
	members_sql(b, "u.", "");
	rows_sql(b);
}

static void change_sql(struct fw_buf *b)
{
	fw_buf_adds(b, "UPDATE entries e SET date_ms = least(e.seen_ms, u.date_ms), changed_ms = $1::int8, revision = e.revision + 1");
	members_sql(b, "", " = u.");
	rows_sql(b);
	fw_buf_adds(b, " WHERE e.id = u.id AND u.id > 0");
}

static void ids_pass(struct pg *p, const struct pg_entries *all, const size_t *pick, size_t n)
{
	pg_array(p, PG_INT8, n);
	for (size_t i = 0; i < n; i++)
		pg_item_int(p, all->item[pick[i]].id);
}

/* Two arrays: feed_id and key. */
static void feeds_and_keys_pass(struct pg *p, const struct pg_entries *all, const size_t *pick, size_t n)
{
	pg_array(p, PG_INT8, n);
	for (size_t i = 0; i < n; i++)
		pg_item_int(p, all->item[pick[i]].feed_id);
	pg_array(p, PG_UUID, n);
	for (size_t i = 0; i < n; i++)
		pg_item_str(p, key_of(all->item[pick[i]].e));
}

/* The items that pick names, as the parameters that new_sql and change_sql take. */
static void items_pass(struct pg *p, const struct pg_entries *all, const size_t *pick, size_t n, int64_t now_ms, enum state state)
{
	pg_int(p, now_ms);
	ids_pass(p, all, pick, n);
	feeds_and_keys_pass(p, all, pick, n);
	pg_array(p, PG_INT8, n);
	for (size_t i = 0; i < n; i++)
		pg_item_int(p, fw_store_entry_date(all->item[pick[i]].e, state == NEW ? now_ms : INT64_MAX));
	for (size_t f = 0; f < fw_entry_field_n; f++) {
		if (is_own(&fw_entry_fields[f]))
			continue;
		pg_array(p, fw_entry_fields[f].type == FW_FIELD_TEXT ? PG_TEXT : PG_INT8, n);
		for (size_t i = 0; i < n; i++) {
			if (fw_entry_fields[f].type == FW_FIELD_TEXT)
				pg_item_text(p, fw_field_str(&fw_entry_fields[f], all->item[pick[i]].e));
			else
				pg_item_date(p, fw_field_int(&fw_entry_fields[f], all->item[pick[i]].e));
		}
	}
}

/* feed_id, key, hash, id */
static void keys_pass(struct pg *p, const struct pg_entries *all, const size_t *pick, size_t n)
{
	feeds_and_keys_pass(p, all, pick, n);
	pg_array(p, PG_INT8, n);
	for (size_t i = 0; i < n; i++)
		pg_item_int(p, (int64_t)all->item[pick[i]].e->hash);
	ids_pass(p, all, pick, n);
}

static void some_new(struct pg *p, const struct pg_entries *all, const size_t *pick, size_t n, int64_t now_ms)
{
	items_pass(p, all, pick, n, now_ms, NEW);
	if (pg_text_wanted(p, PG_ENTRY_NEW))
		new_sql(&p->text);
	pg_send_text(p, PG_ENTRY_NEW);
	keys_pass(p, all, pick, n);
	pg_send(p, PG_KEY_PUT, "INSERT INTO entry_keys (feed_id, key, hash, entry_id)"
		" SELECT * FROM unnest($1::int8[], $2::uuid[], $3::int8[], $4::int8[])");
}

static void some_changed(struct pg *p, const struct pg_entries *all, const size_t *pick, size_t n, int64_t now_ms)
{
	items_pass(p, all, pick, n, now_ms, CHANGED);
	if (pg_text_wanted(p, PG_ENTRY_CHANGE))
		change_sql(&p->text);
	pg_send_text(p, PG_ENTRY_CHANGE);
	keys_pass(p, all, pick, n);
	pg_send(p, PG_KEY_CHANGE, "UPDATE entry_keys k SET hash = u.hash FROM unnest($1::int8[], $2::uuid[], $3::int8[], $4::int8[])"
		" u (feed_id, key, hash, id) WHERE k.feed_id = u.feed_id AND k.key = u.key");
	ids_pass(p, all, pick, n); /* the words of the old text go at once, those of the new one come with the next look */
	pg_send(p, PG_STALE_WORDS, "WITH gone AS (DELETE FROM entries_fts WHERE id = ANY ($1::int8[]))"
		" INSERT INTO entries_changed SELECT id FROM unnest($1::int8[]) id WHERE id > 0");
}

/* All of one state, in portions. */
static void all_of(struct pg *p, const struct pg_entries *all, enum state state, int64_t now_ms)
{
	size_t pick[PUT_ROWS], n = 0, bytes = 0;

	for (size_t i = 0; i <= all->n; i++) {
		bool flush = n && (i == all->n || n == PUT_ROWS || bytes > PUT_BYTES);

		if (flush && state == NEW)
			some_new(p, all, pick, n, now_ms);
		else if (flush)
			some_changed(p, all, pick, n, now_ms);
		if (flush)
			n = bytes = 0;
		if (i < all->n && all->item[i].state == state) {
			pick[n++] = i;
			bytes += all->item[i].e->content.len + all->item[i].e->summary.len;
		}
	}
}

void pg_entries_put(struct pg *p, struct pg_entries *all, int64_t now_ms)
{
	if (all->new_n) {
		all_of(p, all, NEW, now_ms);
		pg_int(p, (int64_t)all->new_n);
		pg_send(p, PG_TALLY, "INSERT INTO tally VALUES ($1::int8)");
	}
	if (all->changed_n)
		all_of(p, all, CHANGED, now_ms);
}

/* ---- forgetting --------------------------------------------------------------------------------------------------------- */

struct pruning {
	int64_t before_ms, after_id, n;
	bool more;
};

static int prune_visits(struct pg *p, void *ctx, struct fw_err *err)
{
	struct pruning *q = ctx;
	size_t first;
	int rc;

	/* ids rise with time, give or take a batch: stop at the first one young enough */
	pg_begin(p);
	pg_int(p, q->before_ms);
	pg_int(p, PRUNE_STEP);
	pg_send(p, PG_PRUNE_VISITS, "WITH gone AS (DELETE FROM visit_batches WHERE id IN (SELECT id FROM (SELECT id, last_ms FROM"
		" visit_batches ORDER BY id LIMIT $2::int8) b WHERE last_ms < $1::int8) RETURNING n)"
		" SELECT coalesce(sum(n), 0)::int8, count(*) FROM gone");
	pg_int(p, q->before_ms);
	pg_int(p, PRUNE_STEP);
	pg_send(p, PG_PRUNE_ROWS, "WITH gone AS (DELETE FROM visit_rows WHERE id IN (SELECT id FROM (SELECT id, at_ms FROM visit_rows ORDER BY"
		" id LIMIT $2::int8) b WHERE at_ms < $1::int8) RETURNING 1) SELECT count(*) FROM gone");
	pg_send(p, PG_PRUNE_RUNS, "DELETE FROM runs WHERE first_visit_id < least((SELECT min(id) FROM visit_batches) << 10,"
		" (SELECT min(id) FROM visit_rows)) AND run_id <> (SELECT max(run_id) FROM runs)");
	pg_int(p, q->before_ms); /* the last of these kinds says whether the fleet is paused */
	pg_send(p, PG_PRUNE_CONTROLS, "DELETE FROM controls WHERE created_ms < $1::int8 AND id <> coalesce((SELECT max(id) FROM controls"
		" WHERE kind IN (2, 3)), 0)");
	pg_int(p, q->before_ms);
	pg_send(p, PG_PRUNE_WORKERS, "DELETE FROM workers WHERE at_ms < $1::int8");
	rc = pg_commit_run(p, err);
	if (rc)
		return rc;
	first = p->res_n - 6;
	q->n = pg_get_int(p->res[first], 0, 0) + pg_get_int(p->res[first + 1], 0, 0);
	q->more = pg_get_int(p->res[first], 0, 1) == PRUNE_STEP || pg_get_int(p->res[first + 1], 0, 0) == PRUNE_STEP;
	return 0;
}

static int prune_entries(struct pg *p, void *ctx, struct fw_err *err)
{
	struct pruning *q = ctx;
	const PGresult *r;
	int rc;

	pg_begin(p);
	pg_int(p, q->after_id);
	pg_int(p, q->before_ms);
	pg_int(p, PRUNE_STEP);
	pg_send(p, PG_PRUNE_ENTRIES, "WITH s AS MATERIALIZED (SELECT id, changed_ms FROM entries WHERE id > $1::int8 ORDER BY id"
		" LIMIT $3::int8), d AS (DELETE FROM entries e USING s WHERE e.id = s.id AND s.changed_ms < $2::int8"
		" RETURNING e.id, e.feed_id, e.key), k AS (UPDATE entry_keys k SET entry_id = 0 FROM d WHERE k.feed_id = d.feed_id"
		" AND k.key = d.key), f AS (DELETE FROM entries_fts f USING d WHERE f.id = d.id), t AS (INSERT INTO tally"
		" SELECT -count(*) FROM d HAVING count(*) > 0)"
		" SELECT (SELECT count(*) FROM d), (SELECT max(id) FROM s), (SELECT count(*) FROM s)");
	rc = pg_commit_run(p, err);
	if (rc)
		return rc;
	r = p->res[p->res_n - 2];
	q->n = pg_get_int(r, 0, 0);
	q->after_id = pg_get_int(r, 0, 1);
	q->more = pg_get_int(r, 0, 2) == PRUNE_STEP;
	return 0;
}

int pg_prune(struct fw_store *st, int64_t visits_before_ms, int64_t entries_before_ms, int64_t *n, struct fw_err *err)
{
	struct pruning visits = {.before_ms = visits_before_ms, .more = visits_before_ms != 0};
	struct pruning entries = {.before_ms = entries_before_ms, .more = entries_before_ms != 0};
	int rc = 0;

	while (!rc && visits.more) {
		rc = pg_txn(pg_of(st), prune_visits, &visits, err);
		*n += rc ? 0 : visits.n;
	}
	while (!rc && entries.more) {
		rc = pg_txn(pg_of(st), prune_entries, &entries, err);
		*n += rc ? 0 : entries.n;
	}
	return rc;
}

/* ---- reading -------------------------------------------------------------------------------------------------------------- */

int pg_safe_id(struct pg *p, int64_t *id, struct fw_err *err)
{
	int64_t last, mark;
	int rc;

	pg_send(p, PG_ENTRY_AT, "SELECT last_value FROM entries_id"); /* before the look at the locks */
	pg_int(p, p->lock_key);
	pg_send(p, PG_SAFE_ID, "SELECT objid::int8 FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2"
		" AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
		" AND classid::int8 = $1::int8 & 4294967295");
	rc = pg_run(p, err);
	if (rc)
		return rc;
	*id = last = pg_get_int(p->res[0], 0, 0);
	for (int i = 0; i < PQntuples(p->res[1]); i++) { /* the low 31 bits of where a writer began; somewhat below `last` */
		mark = last - ((last - pg_get_int(p->res[1], i, 0)) & INT32_MAX);
		*id = FW_MIN(*id, mark);
	}
	return 0;
}

#define SEEN_SLACK_MS 60000 /* ids rise with seen_ms, but for clocks and processes that differ by less than this */

/* An id that all entries seen at or after since_ms are above. */
static int since_id(struct pg *p, int64_t since_ms, int64_t *id, struct fw_err *err)
{
	int64_t hi;
	int rc;

	*id = 0;
	pg_send(p, PG_ENTRY_MAX, "SELECT max(id) FROM entries");
	rc = pg_run(p, err);
	hi = rc ? 0 : pg_get_int(p->res[0], 0, 0);
	while (!rc && *id < hi) { /* above *id: unknown; above hi: seen late enough */
		int64_t mid = *id + (hi - *id) / 2 + 1;

		pg_int(p, mid);
		pg_send(p, PG_SINCE_ID, "SELECT id, seen_ms FROM entries WHERE id >= $1::int8 ORDER BY id LIMIT 1");
		rc = pg_run(p, err);
		if (rc)
			return rc;
		if (!PQntuples(p->res[0]) || pg_get_int(p->res[0], 0, 1) >= since_ms - SEEN_SLACK_MS)
			hi = mid - 1;
		else
			*id = pg_get_int(p->res[0], 0, 0);
	}
	return rc;
}

/* The ids in order: sorting carries two numbers a row, whatever the entries weigh. */
static void ids_sql(const struct fw_entry_query *q, bool search, int64_t last_id, struct fw_buf *b)
{
	fw_buf_adds(b, "SELECT e.id, e.date_ms FROM entries e WHERE $1::int8 IS NOT NULL AND $2::int8 IS NOT NULL AND $3::int8 IS NOT NULL"
		" AND $4::int8 IS NOT NULL AND ($5::text IS NULL OR true)");
	if (search)
		fw_buf_adds(b, " AND e.id IN (SELECT id FROM entries_fts WHERE words @@ $5::text::tsquery)");
	if (q->feed_id)
		fw_buf_adds(b, search ? " AND e.feed_id = $1" : " AND e.id IN (SELECT entry_id FROM entry_keys WHERE feed_id = $1)");
	if (q->since_ms)
		fw_buf_adds(b, " AND e.seen_ms >= $2");
	if (q->after_id || q->since_ms)
		fw_buf_adds(b, " AND e.id > $3");
	if (q->before_id)
		fw_buf_adds(b, " AND e.id < $4");
	if (q->behind_id)
		fw_buf_addf(b, " AND (e.date_ms, e.id) < (%lld, %lld)", (long long)q->behind_date_ms, (long long)q->behind_id);
	if (last_id != INT64_MAX)
		fw_buf_addf(b, " AND e.id <= %lld", (long long)last_id);
	fw_buf_adds(b, q->oldest_first ? " ORDER BY e.id" : " ORDER BY e.date_ms DESC, e.id DESC");
	if (q->limit)
		fw_buf_addf(b, " LIMIT %zu", q->limit);
}

#define ENTRY_COLUMN_N 6 /* before those of fw_entry_fields */

static void list_sql(const struct fw_entry_query *q, bool search, int64_t last_id, struct fw_buf *b)
{
	fw_buf_adds(b, "SELECT e.id, e.feed_id, coalesce(nullif(f.user_title, ''), f.title), f.url, ");
	fw_buf_adds(b, q->key ? "e.key, (SELECT k.hash FROM entry_keys k WHERE k.feed_id = e.feed_id AND k.key = e.key)" : "NULL, NULL");
	for (size_t i = 0; i < fw_entry_field_n; i++) {
		const char *name = fw_entry_fields[i].name;

		if (!q->content && fw_str_starts(fw_str(name), FW_STR("content")) && fw_field_is_text(&fw_entry_fields[i]))
			fw_buf_adds(b, ", NULL");
		else
			fw_buf_addf(b, ", e.%s", name);
	}
	fw_buf_adds(b, " FROM (");
	ids_sql(q, search, last_id, b);
	fw_buf_adds(b, ") s JOIN entries e ON e.id = s.id JOIN feeds f ON f.id = e.feed_id ORDER BY ");
	fw_buf_adds(b, q->oldest_first ? "s.id" : "s.date_ms DESC, s.id DESC");
}

struct listing {
	const struct fw_entry_query *q;
	fw_entry_cb *cb;
	void *ctx;
};

static int entry_show(void *ctx, struct pg *p, const PGresult *r, int row)
{
	struct listing *l = ctx;
	struct fw_entry_row e = {.id = pg_get_int(r, row, 0)};

	(void)p;
	e.feed_id = pg_get_int(r, row, 1);
	e.feed_title = pg_get_str(r, row, 2);
	e.feed_url = pg_get_str(r, row, 3);
	if (l->q->key) {
		struct fw_str k = pg_get_str(r, row, 4);

		memcpy(e.key, k.p, FW_MIN(k.len, sizeof(e.key)));
		e.hash = (uint64_t)pg_get_int(r, row, 5);
	}
	pg_get_fields(r, row, ENTRY_COLUMN_N, fw_entry_fields, fw_entry_field_n, &e);
	return l->cb(l->ctx, &e);
}

int pg_entry_list(struct fw_store *st, const struct fw_entry_query *q, fw_entry_cb *cb, void *ctx, struct fw_err *err)
{
	struct pg *p = pg_of(st);
	struct listing l = {q, cb, ctx};
	struct fw_buf sql = FW_BUF_INIT(0), words = FW_BUF_INIT(0);
	bool search = q->search.p && pg_search_query(q->search, &words);
	int64_t since = 0, last = INT64_MAX;
	int rc = 0;

	if (search)
		rc = pg_search_catch_up(p, q->unindexed_n, err);
	if (!rc && q->since_ms)
		rc = since_id(p, q->since_ms, &since, err);
	if (!rc && (q->oldest_first || q->after_id) && !fw_store_entry_is_one(q)) /* somebody's cursor */
		rc = pg_safe_id(p, &last, err);
	list_sql(q, search, last, &sql);
	if (!rc && (sql.rc || words.rc))
		rc = fw_err_set(err, FW_ENOMEM, "%s: entry list: out of memory", p->name);
	if (!rc) {
		pg_int(p, q->feed_id);
		pg_int(p, q->since_ms);
		pg_int(p, FW_MAX(q->after_id, since));
		pg_int(p, q->before_id);
		pg_str(p, search ? fw_buf_str(&words) : FW_STR_NONE);
		rc = pg_list(p, sql.p, q->content ? 20 : 200, entry_show, &l, err);
	}
	fw_buf_finish(&sql);
	fw_buf_finish(&words);
	return rc;
}
