/* SPDX-License-Identifier: ISC */
/*
 * Entries: stored once per (feed, key).
 *
 * `entry_keys` holds key and hash of every entry a feed ever had, together per feed: a document that brings nothing new is compared
 * there and never touches `entries`. It also remembers what retention took away. The feed's lease keeps others off its keys, so what
 * was read stays true until the transaction ends.
 *
 * `entries` grows at its end. New ones go in by statements of many rows, whose numbers are consecutive; their keys follow in the
 * same packet. Or, where the server takes them and they are many, as arrays: then the server tells the numbers, and the keys are
 * a statement of their own. id rises in the order of storing; of two commits at the same time the one with the lower numbers may
 * end last.
 */
#include <stdlib.h>

#include "base/hash.h"
#include "store/maria.h"

#define KEYS_ASKED 2000 /* in one statement */
#define KEYS_LISTED 4096 /* in one that has them as a list; the table of numbers is named by it */
#define TEXT_BYTES ((size_t)512 << 10) /* of rows in one statement */
#define BULK_BYTES ((size_t)4 << 20)   /* of rows in an array */
/* To an array the server hands out numbers in portions of 1, 2, 4, ...: rows that are one less than a power of two leave no gap. */
#define BULK_MIN 63
#define BULK_MAX 2047
#define ROWS 250        /* shown by one */
#define MAY_LISTED 5000 /* what a search may match is named in a statement, up to so many */

/* ---- storing ------------------------------------------------------------------------------------------------------------ */

struct item {
	const struct fw_entry_row *row;
	size_t of;        /* which outcome */
	int64_t entry_id; /* known: 0, retention took it; new: when it is told */
	uint64_t hash;
	bool known;
};

struct put {
	struct maria *m;
	struct fw_outcome *const *outcome;
	int64_t now_ms;
	struct item *item; /* of outcomes in order, each key once */
	size_t n;
	struct item **fresh; /* those that are new */
	size_t fresh_n;
	uint32_t *slot;    /* by feed and key: index + 1 of an item; 0: free */
	size_t mask;
};

static struct fw_str key_of(const struct fw_entry_row *e)
{
	return (struct fw_str){(const char *)e->key, sizeof(e->key)};
}

static int64_t feed_of(const struct put *p, const struct item *i)
{
	return p->outcome[i->of]->feed_id;
}

/* The slot of this feed's key: its item's, or a free one. */
static uint32_t *slot_of(const struct put *p, int64_t feed_id, const unsigned char *key)
{
	size_t at = (size_t)fw_hash64_seed(key, 16, (uint64_t)feed_id) & p->mask;

	while (p->slot[at]) {
		const struct item *i = &p->item[p->slot[at] - 1];

		if (feed_of(p, i) == feed_id && memcmp(i->row->key, key, 16) == 0)
			break;
		at = (at + 1) & p->mask;
	}
	return &p->slot[at];
}

/* All entries, but of several with one key in a document the first only: the others would overwrite each other at every visit. */
static int items_gather(struct put *p, size_t n, struct fw_err *err)
{
	size_t total = 0;

	for (size_t i = 0; i < n; i++)
		total += p->outcome[i]->entry_n;
	for (p->mask = 15; p->mask < total * 2;)
		p->mask = p->mask * 2 + 1;
	p->item = calloc(total + 1, sizeof(*p->item));
	p->slot = calloc(p->mask + 1, sizeof(*p->slot));
	p->fresh = calloc(total + 1, sizeof(struct item *));
	if (!p->item || !p->slot || !p->fresh)
		return mr_no_memory(p->m, err);
	for (size_t i = 0; i < n; i++) {
		const struct fw_outcome *o = p->outcome[i];

		for (size_t k = 0; k < o->entry_n; k++) {
			uint32_t *slot = slot_of(p, o->feed_id, o->entries[k].key);

			if (*slot)
				continue;
			p->item[p->n++] = (struct item){.row = &o->entries[k], .of = i};
			*slot = (uint32_t)p->n;
		}
	}
	return 0;
}

static void known_note(struct item *i, const struct mr_res *r, unsigned col)
{
	i->known = true;
	i->hash = (uint64_t)mr_int(r, col);
	i->entry_id = mr_int(r, col + 1);
}

static int known_answer(struct put *p, struct fw_err *err)
{
	struct mr_res r;
	int rc = mr_answer(p->m, &r, err);

	while (!rc && mr_row(&r)) {
		struct fw_str key = mr_str(&r, 1);
		uint32_t *slot = key.len == 16 ? slot_of(p, mr_int(&r, 0), (const unsigned char *)key.p) : NULL;

		if (slot && *slot)
			known_note(&p->item[*slot - 1], &r, 2);
	}
	return rc;
}

/* What the feeds have already of these. A SELECT for each feed, united. */
static int known_read(struct put *p, struct fw_err *err)
{
	struct fw_buf *b = &p->m->sql;
	int rc = 0;

	for (size_t i = 0; i < p->n && !rc;) {
		size_t asked = 0;

		fw_buf_adds(b, b->len ? ";" : "");
		while (i < p->n && asked < KEYS_ASKED) {
			size_t of = p->item[i].of, first = i;

			fw_buf_addf(b, "%sSELECT feed_id,`key`,hash,entry_id FROM entry_keys WHERE feed_id=%lld AND `key` IN (",
				asked ? " UNION ALL " : "", (long long)feed_of(p, &p->item[i]));
			for (; i < p->n && p->item[i].of == of && asked < KEYS_ASKED; i++, asked++) {
				fw_buf_adds(b, i > first ? "," : "");
				mr_value_bytes(p->m, key_of(p->item[i].row));
			}
			fw_buf_addc(b, ')');
		}
		rc = known_answer(p, err);
	}
	return rc;
}

/* The same where there is a table of numbers: feeds and keys are two strings, from which each number picks a piece. Half the work. */
static int known_pick(struct put *p, struct fw_err *err)
{
	size_t max = FW_MIN((size_t)KEYS_LISTED, p->m->packet_max / 128), n;
	struct fw_buf *b = &p->m->sql;
	int rc = 0;

	for (size_t from = 0; from < p->n && !rc; from += n) {
		struct mr_res r;

		n = FW_MIN(p->n - from, max);
		mr_put(p->m, "SELECT s.seq, k.hash, k.entry_id FROM seq_0_to_4095 s STRAIGHT_JOIN entry_keys k FORCE INDEX (PRIMARY)"
			" ON k.feed_id = CAST(substr(_binary'", "");
		for (size_t i = from; i < from + n; i++)
			fw_buf_addf(b, "%019lld", (long long)feed_of(p, &p->item[i]));
		fw_buf_adds(b, "', s.seq * 19 + 1, 19) AS SIGNED) AND k.`key` = substr(x'");
		for (size_t i = from; i < from + n; i++)
			mr_hex(p->m, key_of(p->item[i].row));
		fw_buf_addf(b, "', s.seq * 16 + 1, 16) WHERE s.seq < %zu", n);
		rc = mr_answer(p->m, &r, err);
		while (!rc && mr_row(&r))
			known_note(&p->item[from + (size_t)mr_int(&r, 0)], &r, 1);
	}
	return rc;
}

static struct fw_entry_row entry_new(const struct item *i, int64_t now)
{
	struct fw_entry_row e = *i->row;

	e.seen_ms = e.changed_ms = now;
	e.revision = 1;
	return e;
}

static void entry_row(struct maria *m, const struct item *i, int64_t feed_id, int64_t now)
{
	struct fw_entry_row e = entry_new(i, now);

	mr_value_int(m, feed_id);
	fw_buf_addc(&m->sql, ',');
	mr_value_int(m, fw_store_entry_date(i->row, now));
	mr_values(m, fw_entry_fields, fw_entry_field_n, &e);
}

/* What its row takes in a statement, about. */
static size_t row_bytes(const struct item *i)
{
	size_t n = 200;

	for (size_t f = 0; f < fw_entry_field_n; f++)
		n += fw_field_is_text(&fw_entry_fields[f]) ? fw_field_str(&fw_entry_fields[f], i->row).len : 0;
	return n;
}

/* As many of the new ones from `from` on as go into one statement, and their keys. Returns how many. */
static size_t text_put(struct put *p, size_t from)
{
	struct mr_rows keys = {"INSERT INTO entry_keys (feed_id, `key`, hash, entry_id) VALUES ", .whole = true};
	struct maria *m = p->m;
	size_t n = 0, max = FW_MIN(TEXT_BYTES, m->packet_max / 4), start;

	mr_put(m, "INSERT INTO entries (feed_id, date_ms", "");
	start = m->sql.len;
	mr_names(m, fw_entry_fields, fw_entry_field_n);
	fw_buf_adds(&m->sql, ") VALUES ");
	for (; from + n < p->fresh_n && m->sql.len - start < max; n++) {
		const struct item *i = p->fresh[from + n];

		fw_buf_adds(&m->sql, n ? ",(" : "(");
		entry_row(m, i, feed_of(p, i), p->now_ms);
		fw_buf_addc(&m->sql, ')');
	}
	for (size_t k = 0; k < n; k++) {
		const struct item *i = p->fresh[from + k];

		mr_rows_next(m, &keys);
		mr_value_int(m, feed_of(p, i));
		fw_buf_addc(&m->sql, ',');
		mr_value_bytes(m, key_of(i->row));
		fw_buf_addf(&m->sql, ",%lld,LAST_INSERT_ID()+%lld)", (long long)i->row->hash, (long long)((int64_t)k * m->step));
	}
	return n;
}

/* How many from `at` on go into an array; 0: too few. */
static size_t bulk_rows(const struct put *p, size_t at)
{
	size_t max = FW_MIN(BULK_BYTES, p->m->packet_max / 4), n = 0, rows = 1;

	if (!p->m->arrays)
		return 0;
	for (size_t bytes = 0; at + n < p->fresh_n && n < BULK_MAX; n++) {
		bytes += row_bytes(p->fresh[at + n]);
		if (bytes > max)
			break;
	}
	while (rows * 2 + 1 <= n)
		rows = rows * 2 + 1;
	return rows < BULK_MIN ? 0 : rows;
}

static int entries_bulk(struct put *p, struct item *const *item, size_t n, int64_t *id, struct fw_err *err)
{
	struct maria *m = p->m;
	struct fw_buf sql = FW_BUF_INIT(0);
	unsigned columns = 2 + (unsigned)fw_entry_field_n;
	struct mr_bulk b;
	int rc = mr_bulk_init(m, &b, columns, (unsigned)n, err);

	for (size_t i = 0; i < n && !rc; i++) {
		struct fw_entry_row e = entry_new(item[i], p->now_ms);

		mr_bulk_int(&b, feed_of(p, item[i]));
		mr_bulk_int(&b, fw_store_entry_date(item[i]->row, p->now_ms));
		for (size_t f = 0; f < fw_entry_field_n; f++)
			mr_bulk_field(&b, &fw_entry_fields[f], &e);
	}
	fw_buf_adds(&sql, "INSERT INTO entries (feed_id,date_ms");
	for (size_t f = 0; f < fw_entry_field_n; f++)
		fw_buf_addf(&sql, ",%s", fw_entry_fields[f].name);
	for (unsigned i = 0; i < columns; i++)
		fw_buf_adds(&sql, i ? ",?" : ") VALUES (?");
	fw_buf_adds(&sql, ") RETURNING id");
	if (!rc)
		rc = sql.rc ? mr_no_memory(m, err) : mr_bulk_run(m, &b, &m->entries_in, fw_buf_str(&sql), id, err);
	mr_bulk_finish(&b);
	fw_buf_finish(&sql);
	return rc;
}

static int keys_bulk(struct put *p, struct item *const *item, size_t n, const int64_t *id, struct fw_err *err)
{
	struct mr_bulk b;
	int rc = mr_bulk_init(p->m, &b, 4, (unsigned)n, err);

	for (size_t i = 0; i < n && !rc; i++) {
		mr_bulk_int(&b, feed_of(p, item[i]));
		mr_bulk_bytes(&b, key_of(item[i]->row));
		mr_bulk_int(&b, (int64_t)item[i]->row->hash);
		mr_bulk_int(&b, id[i]);
	}
	rc = rc ? rc : mr_bulk_run(p->m, &b, &p->m->keys_in, FW_STR("INSERT INTO entry_keys (feed_id, `key`, hash, entry_id)"
		" VALUES (?,?,?,?)"), NULL, err);
	mr_bulk_finish(&b);
	return rc;
}

static int bulk_put(struct put *p, size_t from, size_t n, struct fw_err *err)
{
	int64_t *id = calloc(n, sizeof(*id));
	int rc = id ? entries_bulk(p, p->fresh + from, n, id, err) : mr_no_memory(p->m, err);

	rc = rc ? rc : keys_bulk(p, p->fresh + from, n, id, err);
	free(id);
	return rc;
}

static int new_put(struct put *p, struct fw_err *err)
{
	int rc = 0;

	for (size_t i = 0; i < p->n; i++) {
		if (p->item[i].known)
			continue;
		p->fresh[p->fresh_n++] = &p->item[i];
		p->outcome[p->item[i].of]->visit.new_n++;
		p->m->entry_d++;
	}
	for (size_t i = 0, n; i < p->fresh_n && !rc; i += n) {
		n = bulk_rows(p, i);
		if (n)
			rc = bulk_put(p, i, n, err);
		else
			n = text_put(p, i);
	}
	return rc;
}

/* Another hash than last time. What retention took stays away. */
static void change_put(struct put *p, const struct item *i)
{
	struct maria *m = p->m;
	struct fw_entry_row e = *i->row;

	mr_put(m, "UPDATE entry_keys SET hash = ? WHERE feed_id = ? AND `key` = ?", "iib", MR_INT(e.hash), feed_of(p, i), key_of(i->row));
	if (!i->entry_id)
		return;
	p->outcome[i->of]->visit.changed_n++;
	mr_put(m, "REPLACE INTO reindex (entry_id, since_ms) VALUES (?, ?)", "ii", i->entry_id, INT64_MAX);
	mr_put(m, "UPDATE entries SET date_ms = least(seen_ms, ?), revision = revision + 1", "i", fw_store_entry_date(i->row, INT64_MAX));
	e.changed_ms = p->now_ms;
	for (size_t f = 0; f < fw_entry_field_n; f++) {
		if (strcmp(fw_entry_fields[f].name, "seen_ms") == 0 || strcmp(fw_entry_fields[f].name, "revision") == 0)
			continue;
		fw_buf_addf(&m->sql, ",%s=", fw_entry_fields[f].name);
		mr_value_field(m, &fw_entry_fields[f], &e);
	}
	fw_buf_addf(&m->sql, " WHERE id=%lld", (long long)i->entry_id);
}

int mr_entries_put(struct maria *m, struct fw_outcome *const *outcome, size_t n, int64_t now_ms, struct fw_err *err)
{
	struct put p = {.m = m, .outcome = outcome, .now_ms = now_ms};
	int rc = items_gather(&p, n, err);

	rc = rc ? rc : m->sequences ? known_pick(&p, err) : known_read(&p, err);
	rc = rc ? rc : new_put(&p, err);
	for (size_t i = 0; i < p.n && !rc; i++) {
		if (p.item[i].known && p.item[i].hash != p.item[i].row->hash)
			change_put(&p, &p.item[i]);
	}
	free(p.item);
	free(p.fresh);
	free(p.slot);
	return rc;
}

/* ---- forgetting --------------------------------------------------------------------------------------------------------- */

int mr_entries_drop(struct maria *m, int64_t feed_id, struct fw_err *err)
{
	int64_t n;
	int rc;

	mr_put(m, "INSERT IGNORE INTO gone (entry_id) SELECT entry_id FROM entry_keys WHERE feed_id = ? AND entry_id > 0", "i", feed_id);
	rc = mr_number(m, 0, &n, err, "DELETE e FROM entries e JOIN entry_keys k ON k.entry_id = e.id WHERE k.feed_id = ? AND"
		" k.entry_id > 0; SELECT row_count()", "i", feed_id);

	m->entry_d -= n;
	mr_put(m, "DELETE FROM entry_keys WHERE feed_id = ?", "i", feed_id);
	return rc;
}

#define MOVE_STEP 2000 /* entries in a statement */

/* What goes over from one feed to another, and what that has already. */
struct moving {
	struct mr_ids has; /* hashes of keys and of guids */
	struct mr_ids over, gone;
};

static int64_t mark_of(struct fw_str bytes, uint64_t seed)
{
	return (int64_t)fw_hash64_seed(bytes.p, bytes.len, seed);
}

static bool is_had(const struct moving *w, int64_t mark)
{
	return w->has.n && bsearch(&mark, w->has.at, w->has.n, sizeof(mark), mr_by_number);
}

/* A key and the guid behind it. Those of the feed that stays come first. */
static int moving_note(struct maria *m, struct moving *w, const struct mr_res *r, bool stays, struct fw_err *err)
{
	struct fw_str guid = mr_str(r, 3);
	int64_t id = mr_int(r, 1), by_key = mark_of(mr_str(r, 2), 1), by_guid = mark_of(guid, 2);
	bool known;
	int rc;

	if (stays) {
		rc = mr_ids_add(m, &w->has, by_key, err);
		return rc || !guid.len ? rc : mr_ids_add(m, &w->has, by_guid, err);
	}
	known = is_had(w, by_key) || (guid.len && is_had(w, by_guid));
	return id ? mr_ids_add(m, known ? &w->gone : &w->over, id, err) : 0;
}

static int moving_read(struct maria *m, struct moving *w, int64_t from_id, int64_t into_id, struct fw_err *err)
{
	bool sorted = false;
	struct mr_res r;
	int rc = mr_ask(m, &r, err, "(SELECT 1, k.entry_id, k.`key`, e.guid FROM entry_keys k LEFT JOIN entries e ON e.id = k.entry_id"
		" WHERE k.feed_id = ?) UNION ALL (SELECT 0, k.entry_id, k.`key`, e.guid FROM entry_keys k LEFT JOIN entries e ON e.id = k.entry_id"
		" WHERE k.feed_id = ?)", "ii", into_id, from_id);

	while (!rc && mr_row(&r)) {
		bool stays = mr_int(&r, 0);

		if (!stays && !sorted)
			mr_ids_once(&w->has);
		sorted = !stays;
		rc = moving_note(m, w, &r, stays, err);
	}
	mr_done(&r);
	return rc;
}

int mr_entries_move(struct maria *m, int64_t from_id, int64_t into_id, struct fw_err *err)
{
	struct mr_rows old = MR_DELETE("entries", "id"), gone = {"INSERT IGNORE INTO gone (entry_id) VALUES "};
	struct moving w = {0};
	int rc = moving_read(m, &w, from_id, into_id, err);

	for (size_t i = 0; i < w.gone.n && !rc; i++)
		mr_rows_add(m, &old, "i", w.gone.at[i]);
	mr_rows_end(m, &old);
	for (size_t i = 0; i < w.gone.n && !rc; i++)
		mr_rows_add(m, &gone, "i", w.gone.at[i]);
	mr_rows_end(m, &gone);
	m->entry_d -= (int64_t)w.gone.n;
	for (size_t i = 0; i < w.over.n && !rc; i += MOVE_STEP) {
		size_t n = FW_MIN(w.over.n - i, (size_t)MOVE_STEP);

		mr_put(m, "UPDATE entries SET feed_id = ? WHERE ", "i", into_id);
		mr_in(m, "id", w.over.at + i, n);
		mr_put(m, "UPDATE entry_keys SET feed_id = ? WHERE feed_id = ? AND ", "ii", into_id, from_id);
		mr_in(m, "entry_id", w.over.at + i, n);
	}
	mr_put(m, "DELETE FROM entry_keys WHERE feed_id = ?", "i", from_id);
	free(w.has.at);
	free(w.over.at);
	free(w.gone.at);
	return rc;
}

#define PRUNE_STEP 2000 /* rows per transaction */

struct prune {
	int64_t before_ms, n;
	int64_t after_id; /* entries: how far it has come; -1 at the end */
};

static int prune_visits(struct maria *m, void *arg, struct fw_err *err)
{
	struct prune *p = arg;
	int64_t upto;
	/* ids rise with time, give or take a batch: stop at the first one young enough */
	int rc = mr_number(m, 0, &upto, err, "SELECT max(id) FROM (SELECT id, at_ms FROM visits ORDER BY id LIMIT ?) v WHERE at_ms < ?",
		"ii", MR_INT(PRUNE_STEP), p->before_ms);

	p->n = 0;
	rc = rc || !upto ? rc : mr_number(m, 0, &p->n, err, "DELETE FROM visits WHERE id <= ? AND at_ms < ?; SELECT row_count()", "ii", upto,
		p->before_ms);
	m->visit_d -= p->n;
	mr_put(m, "DELETE FROM runs WHERE first_visit_id < (SELECT min(id) FROM visits)"
		" AND run_id < (SELECT last FROM (SELECT max(run_id) AS last FROM runs) r)", "");
	mr_put(m, "DELETE FROM workers WHERE at_ms < ?", "i", p->before_ms);
	mr_put(m, "DELETE FROM controls WHERE created_ms < ? AND id <> coalesce((SELECT last FROM (SELECT max(id) AS last FROM controls"
		" WHERE kind IN (2, 3)) c), 0)", "i", p->before_ms); /* the last of these says whether the fleet is paused */
	return rc;
}

static int ids_list(struct maria *m, struct mr_res *r, struct mr_ids *ids, struct mr_ids *feeds, struct fw_err *err)
{
	int rc = 0;

	while (!rc && mr_row(r)) {
		rc = mr_ids_add(m, ids, mr_int(r, 0), err);
		rc = rc ? rc : mr_ids_add(m, feeds, mr_int(r, 1), err);
	}
	mr_done(r);
	return rc;
}

/* Of the next PRUNE_STEP entries the old ones. Keys are found by feed; that they are of an entry that goes is looked up there. */
static int prune_entries(struct maria *m, void *arg, struct fw_err *err)
{
	struct prune *p = arg;
	struct mr_rows old = MR_DELETE("entries", "id"), gone = {"INSERT IGNORE INTO gone (entry_id) VALUES "};
	struct mr_ids ids = {0}, feeds = {0};
	int64_t last;
	struct mr_res r;
	int rc = mr_number(m, 0, &last, err, "SELECT max(id) FROM (SELECT id FROM entries WHERE id > ? ORDER BY id LIMIT ?) e", "ii",
		p->after_id, MR_INT(PRUNE_STEP));

	rc = rc ? rc : mr_ask(m, &r, err, "SELECT id, feed_id FROM entries WHERE id > ? AND id <= ? AND changed_ms < ?", "iii", p->after_id,
		last, p->before_ms);
	rc = rc ? rc : ids_list(m, &r, &ids, &feeds, err);
	p->n = (int64_t)ids.n;
	p->after_id = last ? last : -1;
	if (!rc && ids.n) {
		for (size_t i = 0; i < ids.n; i++)
			mr_rows_add(m, &old, "i", ids.at[i]);
		mr_rows_end(m, &old);
		for (size_t i = 0; i < ids.n; i++)
			mr_rows_add(m, &gone, "i", ids.at[i]);
		mr_rows_end(m, &gone);
		mr_put(m, "UPDATE entry_keys SET entry_id = 0 WHERE ", "");
		mr_in(m, "feed_id", feeds.at, feeds.n);
		mr_in(m, " AND entry_id", ids.at, ids.n);
		m->entry_d -= (int64_t)ids.n;
	}
	free(ids.at);
	free(feeds.at);
	return rc;
}

int mr_prune(struct fw_store *st, int64_t visits_before_ms, int64_t entries_before_ms, int64_t *n, struct fw_err *err)
{
	struct prune p = {.before_ms = visits_before_ms, .n = PRUNE_STEP};
	int rc = 0;

	while (!rc && visits_before_ms && p.n == PRUNE_STEP) {
		rc = mr_transact(mr_of(st), prune_visits, &p, err);
		*n += rc ? 0 : p.n;
	}
	p = (struct prune){.before_ms = entries_before_ms};
	while (!rc && entries_before_ms && p.after_id >= 0) {
		int64_t after = p.after_id;

		rc = mr_transact(mr_of(st), prune_entries, &p, err);
		*n += rc ? 0 : p.n;
		if (p.after_id == after)
			break;
	}
	return rc;
}

/* ---- reading ----------------------------------------------------------------------------------------------------------------- */

static void entry_columns(struct maria *m, const struct fw_entry_query *q)
{
	fw_buf_adds(&m->sql, "SELECT e.id, e.feed_id, coalesce(nullif(f.user_title, ''), f.title), f.url");
	fw_buf_adds(&m->sql, q->key ? ", k.`key`, k.hash" : ", NULL, NULL");
	for (size_t i = 0; i < fw_entry_field_n; i++) {
		bool heavy = strcmp(fw_entry_fields[i].name, "content") == 0 || strcmp(fw_entry_fields[i].name, "content_base") == 0;

		fw_buf_addf(&m->sql, heavy && !q->content ? ",NULL" : ",e.%s", fw_entry_fields[i].name);
	}
	fw_buf_adds(&m->sql, " FROM entries e JOIN feeds f ON f.id = e.feed_id");
	if (q->key)
		fw_buf_adds(&m->sql, " LEFT JOIN entry_keys k ON k.feed_id = e.feed_id AND k.entry_id = e.id");
	fw_buf_adds(&m->sql, " WHERE ");
}

static void entry_read(const struct mr_res *r, struct fw_entry_row *e)
{
	struct fw_str key = mr_str(r, 4);
	unsigned col = 6;

	*e = (struct fw_entry_row){.id = mr_int(r, 0), .feed_id = mr_int(r, 1), .hash = (uint64_t)mr_int(r, 5)};
	e->feed_title = mr_str(r, 2);
	e->feed_url = mr_str(r, 3);
	if (key.p)
		memcpy(e->key, key.p, FW_MIN(key.len, sizeof(e->key)));
	for (size_t i = 0; i < fw_entry_field_n; i++)
		mr_field_read(r, col++, &fw_entry_fields[i], e);
}

#define SEEN_SLACK_MS 60000 /* ids rise with seen_ms, but for clocks and commits that differ by less than this */

/* An id that all entries seen at or after since_ms are above. */
static int since_id(struct maria *m, int64_t since_ms, int64_t *id, struct fw_err *err)
{
	int64_t hi;
	int rc = mr_number(m, 0, &hi, err, "SELECT max(id) FROM entries", "");

	*id = 0;
	while (!rc && *id < hi) { /* above *id: unknown; above hi: seen late enough */
		int64_t mid = *id + (hi - *id) / 2 + 1;
		struct mr_res r;

		rc = mr_ask(m, &r, err, "SELECT id, seen_ms FROM entries WHERE id >= ? ORDER BY id LIMIT 1", "i", mid);
		if (rc)
			break;
		if (!mr_row(&r) || mr_int(&r, 1) >= since_ms - SEEN_SLACK_MS)
			hi = mid - 1;
		else
			*id = mr_int(&r, 0);
		mr_done(&r);
	}
	return rc;
}

/* The numbers of what is asked for, in order. With a search: those that may match. */
static int entry_ids(struct maria *m, const struct fw_entry_query *q, const struct mr_search *s, struct mr_ids *ids, struct fw_err *err)
{
	int64_t since = 0;
	int rc = q->since_ms ? since_id(m, q->since_ms, &since, err) : 0;

	if (rc)
		return rc;
	fw_buf_adds(&m->sql, "SELECT e.id FROM entries e WHERE 1");
	if (s->any && s->may.n <= MAY_LISTED)
		mr_in(m, " AND e.id", s->may.at, s->may.n);
	if (q->feed_id)
		fw_buf_adds(&m->sql, s->any ? " AND e.feed_id = " : " AND e.id IN (SELECT entry_id FROM entry_keys WHERE feed_id = ");
	if (q->feed_id)
		fw_buf_addf(&m->sql, s->any ? "%lld" : "%lld)", (long long)q->feed_id);
	if (q->since_ms)
		fw_buf_addf(&m->sql, " AND e.seen_ms >= %lld", (long long)q->since_ms);
	if (q->after_id || since)
		fw_buf_addf(&m->sql, " AND e.id > %lld", (long long)FW_MAX(q->after_id, since));
	if (q->before_id)
		fw_buf_addf(&m->sql, " AND e.id < %lld", (long long)q->before_id);
	if (q->behind_id) /* a comparison of rows would not use the index */
		fw_buf_addf(&m->sql, " AND e.date_ms <= %lld AND (e.date_ms < %lld OR e.id < %lld)", (long long)q->behind_date_ms,
			(long long)q->behind_date_ms, (long long)q->behind_id);
	fw_buf_adds(&m->sql, q->oldest_first ? " ORDER BY e.id" : " ORDER BY e.date_ms DESC, e.id DESC");
	if (q->limit && !s->any)
		fw_buf_addf(&m->sql, " LIMIT %zu", q->limit);
	return mr_ids_read(m, ids, err);
}

static int entries_show(struct maria *m, const struct fw_entry_query *q, const struct mr_ids *ids, fw_entry_cb *cb, void *ctx,
	struct fw_err *err)
{
	int rc = 0;

	for (size_t i = 0; i < ids->n && !rc; i += ROWS) {
		struct mr_res r;

		entry_columns(m, q);
		mr_in_order(m, "e.id", ids->at + i, FW_MIN(ids->n - i, (size_t)ROWS));
		rc = mr_answer(m, &r, err);
		while (!rc && mr_row(&r)) {
			struct fw_entry_row e;

			entry_read(&r, &e);
			rc = cb(ctx, &e);
		}
		mr_done(&r);
	}
	return rc;
}

int mr_entry_list(struct fw_store *st, const struct fw_entry_query *q, fw_entry_cb *cb, void *ctx, struct fw_err *err)
{
	struct maria *m = mr_of(st);
	struct mr_search s = {0};
	struct mr_ids ids = {0};
	int rc = q->search.p ? mr_search_open(m, q->search, q->unindexed_n, &s, err) : 0;

	if (!rc && (!s.any || s.may.n))
		rc = entry_ids(m, q, &s, &ids, err);
	if (!rc && s.any)
		rc = mr_search_match(m, &s, q->limit, &ids, err);
	rc = rc ? rc : entries_show(m, q, &ids, cb, ctx, err);
	mr_search_finish(&s);
	free(ids.at);
	return rc;
}
