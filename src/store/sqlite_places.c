/* SPDX-License-Identifier: ISC */
/*
 * Where a feed stands, by its number.
 *
 * A place in line changes with every visit. Written at once to a table in order of feeds it would dirty a page of its own nearly
 * each time, which costs more than all else about a visit. So a transaction appends the places it gave to `moves`, as one row, and
 * when a sixteenth of all feeds are noted there, their last places go into `places` in one pass, in order of feeds. A row there holds
 * the places of 128 feeds, so each is written once for many of them.
 *
 * Who looks for a feed looks at the moves first, of which each connection keeps a map that it reads on from where it was. A place
 * found is believed only when the feed is there, so what is noted wrongly costs a walk along the line, and nothing else.
 */
#include <stdlib.h>

#include "store/sqlite.h"

#define MERGE_MIN 16384
#define MERGE_MAX 262144
#define MERGE_SHARE 16 /* of all feeds */
#define MOVE_BYTES 16
#define BLOCK_BITS 7   /* feeds in a row of places */
#define BLOCK_BYTES (8 << BLOCK_BITS)

/* ---- numbers to numbers ------------------------------------------------------------------------------------------------- */

static size_t map_at(const struct sq_map *m, int64_t key)
{
	size_t at = (size_t)(((uint64_t)key * UINT64_C(0x9e3779b97f4a7c15)) >> 20) & m->mask;

	while (m->slot[at][0] && m->slot[at][0] != key)
		at = (at + 1) & m->mask;
	return at;
}

void sq_map_finish(struct sq_map *m)
{
	free(m->slot);
	*m = (struct sq_map){0};
}

static bool map_grow(struct sq_map *m)
{
	struct sq_map more = {.mask = m->slot ? m->mask * 2 + 1 : 1023};

	more.slot = calloc(more.mask + 1, sizeof(*more.slot));
	if (!more.slot)
		return false;
	for (size_t i = 0; m->slot && i <= m->mask; i++) {
		if (m->slot[i][0])
			memcpy(more.slot[map_at(&more, m->slot[i][0])], m->slot[i], sizeof(*more.slot));
	}
	more.n = m->n;
	free(m->slot);
	*m = more;
	return true;
}

bool sq_map_put(struct sq_map *m, int64_t key, int64_t value)
{
	size_t at;

	if ((!m->slot || m->n * 2 > m->mask) && !map_grow(m))
		return false;
	at = map_at(m, key);
	m->n += !m->slot[at][0];
	m->slot[at][0] = key;
	m->slot[at][1] = value;
	return true;
}

bool sq_map_get(const struct sq_map *m, int64_t key, int64_t *value)
{
	size_t at;

	if (!m->slot)
		return false;
	at = map_at(m, key);
	*value = m->slot[at][1];
	return m->slot[at][0] != 0;
}

/* Byte by byte, low ones first; bytes in which no two keys differ are passed over, and of numbers most are. */
bool sq_sort(int64_t (*v)[2], size_t n)
{
	int64_t (*from)[2] = v, (*spare)[2], (*to)[2], both = -1, any = 0;

	spare = to = n ? reallocarray(NULL, n, sizeof(*to)) : NULL;
	for (size_t i = 0; i < n; i++) {
		both &= v[i][0];
		any |= v[i][0];
	}
	for (unsigned bit = 0; spare && bit < 64; bit += 8) {
		size_t at[257] = {0};
		int64_t (*swap)[2] = from;

		if (!((uint64_t)(both ^ any) >> bit & 255))
			continue;
		for (size_t i = 0; i < n; i++)
			at[((uint64_t)from[i][0] >> bit & 255) + 1]++;
		for (size_t i = 1; i < 256; i++)
			at[i] += at[i - 1];
		for (size_t i = 0; i < n; i++)
			memcpy(to[at[(uint64_t)from[i][0] >> bit & 255]++], from[i], sizeof(*from));
		from = to;
		to = swap;
	}
	if (from != v)
		memcpy(v, from, n * sizeof(*v));
	free(spare);
	return spare || !n;
}

/* ---- moves ---------------------------------------------------------------------------------------------------------------- */

static void put64(char *p, int64_t v)
{
	for (int i = 0; i < 8; i++)
		p[i] = (char)((uint64_t)v >> (8 * i));
}

static int64_t get64(const char *p)
{
	uint64_t v = 0;

	for (int i = 0; i < 8; i++)
		v |= (uint64_t)(unsigned char)p[i] << (8 * i);
	return (int64_t)v;
}

void sq_place_note(struct sqlite *s, int64_t feed_id, int64_t place)
{
	char *p = fw_buf_room(&s->moves, MOVE_BYTES);

	if (!p)
		return; /* sticky: told when the row is written */
	put64(p, feed_id);
	put64(p + 8, place);
	s->moves.len += MOVE_BYTES;
}

static int moves_write(struct sqlite *s, int64_t *total, struct fw_err *err)
{
	int rc = sq_int(s, SQ_MOVES_TOTAL, "SELECT total_n FROM moves ORDER BY id DESC LIMIT 1", 0, total, err);

	if (rc || (!s->moves.len && !s->moves.rc))
		return rc;
	if (s->moves.rc)
		return fw_err_set(err, FW_ENOMEM, "%s: no memory for the feeds' places", s->path);
	*total += (int64_t)(s->moves.len / MOVE_BYTES);
	rc = sq_do(s, SQ_MOVES_PUT, "INSERT INTO moves (total_n, places) VALUES (?, ?)", err, "ib", *total, fw_buf_str(&s->moves));
	fw_buf_reset(&s->moves);
	return rc;
}

/* Put what the rows after *last say into the map. */
static int moves_read(struct sqlite *s, struct sq_map *m, int64_t *last, struct fw_err *err)
{
	sqlite3_stmt *q = sq_ask(s, SQ_MOVES_NEXT, "SELECT id, places FROM moves WHERE id > ? ORDER BY id", err, "i", *last);
	int rc = q ? 0 : err->rc;

	while (q && (rc = sq_row(s, q, err)) > 0) {
		struct fw_str b = sq_text(q, 1);

		*last = sqlite3_column_int64(q, 0);
		for (size_t at = 0; at + MOVE_BYTES <= b.len; at += MOVE_BYTES) {
			int64_t feed_id = get64(b.p + at);

			if (!feed_id || sq_map_put(m, feed_id, get64(b.p + at + 8)))
				continue;
			sqlite3_reset(q);
			return fw_err_set(err, FW_ENOMEM, "%s: no memory for the feeds' places", s->path);
		}
	}
	return rc;
}

static size_t block_offset(int64_t feed_id)
{
	return (size_t)(feed_id & ((1 << BLOCK_BITS) - 1)) * 8;
}

/* The places of one block of feeds; zeros when there is no such row. */
static int block_get(struct sqlite *s, int64_t block, char *out, struct fw_err *err)
{
	sqlite3_stmt *q = sq_ask(s, SQ_BLOCK_GET, "SELECT places FROM places WHERE id = ?", err, "i", block);
	int rc = q ? sq_row(s, q, err) : err->rc;
	struct fw_str b;

	memset(out, 0, BLOCK_BYTES);
	if (rc <= 0)
		return rc;
	b = sq_text(q, 0);
	if (b.len)
		memcpy(out, b.p, FW_MIN(b.len, BLOCK_BYTES));
	sqlite3_reset(q);
	return 0;
}

/* The last place of each feed that moved, in order of feeds. */
static int places_write(struct sqlite *s, struct sq_map *m, struct fw_err *err)
{
	char block[BLOCK_BYTES];
	size_t n = 0;
	int rc = 0;

	for (size_t i = 0; m->slot && i <= m->mask; i++) { /* the map is of no use afterwards */
		if (m->slot[i][0])
			memmove(m->slot[n++], m->slot[i], sizeof(*m->slot));
	}
	if (!sq_sort(m->slot, n))
		return fw_err_set(err, FW_ENOMEM, "%s: no memory for the feeds' places", s->path);
	for (size_t i = 0; i < n && !rc;) {
		int64_t id = m->slot[i][0] >> BLOCK_BITS;

		rc = block_get(s, id, block, err);
		for (; i < n && m->slot[i][0] >> BLOCK_BITS == id; i++)
			put64(block + block_offset(m->slot[i][0]), m->slot[i][1]);
		rc = rc ? rc : sq_do(s, SQ_BLOCK_PUT, "INSERT OR REPLACE INTO places (id, places) VALUES (?, ?)", err, "ib", id,
			(struct fw_str){block, sizeof(block)});
	}
	return rc;
}

static int merge(struct sqlite *s, struct fw_err *err)
{
	struct sq_map m = {0};
	int64_t last = 0;
	int rc = moves_read(s, &m, &last, err);

	rc = rc ? rc : places_write(s, &m, err);
	rc = rc ? rc : sq_do(s, SQ_MOVES_DEL, "DELETE FROM moves", err, "");
	rc = rc ? rc : sq_do(s, SQ_MOVES_MERGED, "UPDATE meta SET value = ? WHERE name = 'merged_move'", err, "i", last);
	sq_map_finish(&m);
	return rc;
}

int sq_moves_end(struct sqlite *s, struct fw_err *err)
{
	int64_t total, feed_n;
	int rc;

	if (!s->moves.len && !s->moves.rc)
		return 0;
	rc = moves_write(s, &total, err);
	if (rc || total < MERGE_MIN)
		return rc;
	rc = sq_int(s, SQ_FEED_LAST, "SELECT max(id) FROM feeds", 0, &feed_n, err);
	return rc || total < FW_MIN(MERGE_MAX, feed_n / MERGE_SHARE) ? rc : merge(s, err);
}

int sq_places_begin(struct sqlite *s, struct fw_err *err)
{
	sqlite3_stmt *q = sq_stmt(s, SQ_LINE_ALL, "SELECT id, feed_id FROM line", err);
	int rc = q ? 0 : err->rc;

	while (q && (rc = sq_row(s, q, err)) > 0) {
		sq_place_note(s, sqlite3_column_int64(q, 1), sqlite3_column_int64(q, 0));
		rc = s->moves.len < (size_t)MERGE_MIN * MOVE_BYTES ? 0 : sq_moves_end(s, err);
		if (rc) {
			sqlite3_reset(q);
			break;
		}
	}
	return rc;
}

void sq_places_forget(struct sqlite *s)
{
	s->puts.n = 0;
	fw_buf_reset(&s->moves);
	s->place_merged = -1;
}

int sq_places_ready(struct sqlite *s, struct fw_err *err)
{
	int64_t merged, total;
	int rc = s->moves.len ? moves_write(s, &total, err) : 0;

	rc = rc ? rc : sq_int(s, SQ_MOVES_MARK, "SELECT value FROM meta WHERE name = 'merged_move'", 0, &merged, err);
	if (rc)
		return rc;
	if (merged != s->place_merged) {
		sq_map_finish(&s->place);
		s->place_merged = s->place_seen = merged;
	}
	rc = moves_read(s, &s->place, &s->place_seen, err);
	if (rc)
		s->place_merged = -1;
	return rc;
}

int sq_place_at(struct sqlite *s, int64_t feed_id, int64_t *place, struct fw_err *err)
{
	char block[BLOCK_BYTES];
	int rc;

	if (sq_map_get(&s->place, feed_id, place))
		return 0;
	rc = block_get(s, feed_id >> BLOCK_BITS, block, err);
	*place = rc ? 0 : get64(block + block_offset(feed_id));
	return rc;
}

static int place_get(struct sqlite *s, int64_t feed_id, int64_t *place, struct fw_err *err)
{
	int rc = sq_places_ready(s, err);

	return rc ? rc : sq_place_at(s, feed_id, place, err);
}

/* ---- finding a feed ---------------------------------------------------------------------------------------------------- */

/* The row that q finds, if any: *w is filled when there is one. */
static int look(struct sqlite *s, sqlite3_stmt *q, enum sq_table table, struct sq_where *w, struct fw_err *err)
{
	int rc = q ? sq_row(s, q, err) : err->rc;
	sqlite3_value *v[SQ_STATE_N];

	if (rc <= 0)
		return rc;
	*w = (struct sq_where){.table = table, .key = sqlite3_column_int64(q, 0), .host_id = sqlite3_column_int64(q, 1),
		.status = sqlite3_column_int64(q, 2), .moved = sqlite3_column_type(q, 3) != SQLITE_NULL, .q = q};
	sq_state_read(sq_values(q, SQ_WHERE_COLUMN_N, SQ_STATE_N, v), &w->state, &w->last_visit_id);
	return 0;
}

#define LINE "SELECT id, host_id, 0, wake_at_ms, " SQ_STATE " FROM line"

static int find_in_line(struct sqlite *s, int64_t feed_id, struct sq_where *w, struct fw_err *err)
{
	int64_t place;
	int rc = place_get(s, feed_id, &place, err);

	if (rc || !place)
		return rc;
	return look(s, sq_ask(s, SQ_LINE_AT, LINE " WHERE id = ? AND feed_id = ?", err, "ii", place, feed_id), SQ_LINE, w, err);
}

static int find_in_leases(struct sqlite *s, int64_t feed_id, const struct sq_map *lent, struct sq_where *w, struct fw_err *err)
{
	int64_t fence = 0;

	if (lent && !sq_map_get(lent, feed_id, &fence))
		return 0;
	return look(s, sq_ask(s, fence ? SQ_LEASE_AT : SQ_LEASE_OF, fence ?
		"SELECT fence, host_id, status, NULL, " SQ_STATE " FROM leases WHERE fence = ?2 AND feed_id = ?1" :
		"SELECT fence, host_id, status, NULL, " SQ_STATE " FROM leases WHERE feed_id = ?1 AND ?2 = 0", err, "ii", feed_id, fence),
		SQ_LEASES, w, err);
}

int sq_find(struct sqlite *s, int64_t feed_id, const struct sq_map *lent, struct sq_where *w, struct fw_err *err)
{
	int rc;

	*w = (struct sq_where){.table = SQ_NOWHERE};
	rc = sq_line_write(s, err);
	rc = rc ? rc : look(s, sq_ask(s, SQ_ASIDE_AT, "SELECT feed_id, host_id, status, NULL, " SQ_STATE " FROM aside WHERE feed_id = ?", err, "i",
		feed_id), SQ_ASIDE, w, err);
	if (!rc && !w->table)
		rc = find_in_line(s, feed_id, w, err);
	if (!rc && !w->table)
		rc = find_in_leases(s, feed_id, lent, w, err);
	if (!rc && !w->table)
		rc = look(s, sq_ask(s, SQ_LINE_OF, LINE " WHERE feed_id = ?", err, "i", feed_id), SQ_LINE, w, err);
	return rc;
}

void sq_found(struct sq_where *w)
{
	if (w->q)
		sqlite3_reset(w->q);
	w->q = NULL;
	w->state.why = FW_STR_NONE;
}

int sq_lent_map(struct sqlite *s, struct sq_map *m, struct fw_err *err)
{
	sqlite3_stmt *q = sq_stmt(s, SQ_LENT_ALL, "SELECT feed_id, fence FROM leases", err);
	int rc = q ? 0 : err->rc;

	while (q && (rc = sq_row(s, q, err)) > 0) {
		if (!sqlite3_column_int64(q, 0) || sq_map_put(m, sqlite3_column_int64(q, 0), sqlite3_column_int64(q, 1)))
			continue;
		sqlite3_reset(q);
		return fw_err_set(err, FW_ENOMEM, "%s: no memory for what is lent", s->path);
	}
	return rc;
}

/* Is every place noted as it is? Each that is not, through cb. */
int sq_places_check(struct sqlite *s, void (*cb)(void *ctx, const char *finding), void *ctx, struct fw_err *err)
{
	sqlite3_stmt *q = sq_stmt(s, SQ_LINE_ALL, "SELECT id, feed_id FROM line", err);
	int rc = q ? 0 : err->rc;
	int64_t place;
	char text[100];

	while (q && (rc = sq_row(s, q, err)) > 0) {
		rc = place_get(s, sqlite3_column_int64(q, 1), &place, err);
		if (!rc && place != sqlite3_column_int64(q, 0) && fw_snprintf(text, sizeof(text), "feed %lld: noted at %lld, stands at %lld",
				(long long)sqlite3_column_int64(q, 1), (long long)place, (long long)sqlite3_column_int64(q, 0)))
			cb(ctx, text);
		if (rc) {
			sqlite3_reset(q);
			break;
		}
	}
	return rc;
}
