/* SPDX-License-Identifier: ISC */
/*
 * Hosts come and go with their feeds, and single feeds are found wherever they stand. What is done here is the owner's (subscribing,
 * pausing, removing) or rare (a feed's new address); workers in full flight do not come by.
 */
#include <stdlib.h>

#include "store/maria.h"

#define PLACES "SELECT f.host_id, w.status, w.due_at_ms, w.last_visit_id, q.feed_id IS NOT NULL, q.wake_at_ms, q.host_id, q.due_at_ms," \
	" p.feed_id IS NOT NULL FROM wheel w JOIN feeds f ON f.id = w.feed_id" \
	" LEFT JOIN moved v FORCE INDEX (PRIMARY) ON v.feed_id = w.feed_id" \
	" LEFT JOIN queue q FORCE INDEX (PRIMARY) ON q.wake_at_ms = coalesce(v.wake_at_ms, w.due_at_ms) AND q.feed_id = w.feed_id" \
	" LEFT JOIN parked p FORCE INDEX (PRIMARY) ON p.host_id = f.host_id AND p.due_at_ms = w.due_at_ms AND p.feed_id = w.feed_id" \
	" WHERE w.feed_id = ?"

/* ---- one feed ------------------------------------------------------------------------------------------------------------ */

/* All places where a feed waits, in one statement. */
static int stand_look(struct maria *m, int64_t feed_id, struct mr_stand *s, bool lock, struct fw_err *err)
{
	struct mr_res r;
	int rc = mr_ask(m, &r, err, lock ? PLACES " FOR UPDATE" : PLACES, "i", feed_id);

	if (rc)
		return rc;
	if (!mr_row(&r))
		return fw_err_set(err, FW_ENOTFOUND, "%s: no feed has the number %lld", m->name, (long long)feed_id);
	s->host_id = mr_int(&r, 0);
	s->status = mr_int(&r, 1);
	s->due_ms = mr_int(&r, 2);
	s->last_visit_id = mr_int(&r, 3);
	s->queued = mr_int(&r, 4);
	s->parked = mr_int(&r, 8);
	s->place = (struct mr_place){.feed_id = feed_id, .wake_ms = mr_int(&r, 5), .host_id = mr_int(&r, 6),
		.moved = r.row[7] != NULL, .due_ms = r.row[7] ? mr_int(&r, 7) : mr_int(&r, 5), .stored = true};
	mr_done(&r);
	return 0;
}

/*
 * Loans are locked before the wheel, as commits do; but only when the feed waits nowhere. One that changes places at that very moment
 * may be seen nowhere at all, or where it no longer is; the lock on its wheel row then keeps it where it went, for the next look.
 */
int mr_stand_lock(struct maria *m, int64_t feed_id, struct mr_stand *s, struct fw_err *err)
{
	int rc = 0;

	*s = (struct mr_stand){.feed_id = feed_id};
	for (int i = 0; i < 10 && !rc; i++) {
		rc = stand_look(m, feed_id, s, false, err);
		if (!rc && !s->queued && !s->parked)
			rc = mr_loans_with(m, feed_id, &s->loans, &s->loan, &s->lent, err);
		rc = rc ? rc : stand_look(m, feed_id, s, true, err);
		if (rc || s->lent || s->queued || s->parked || s->status != FW_FEED_ACTIVE)
			break;
		mr_loans_finish(&s->loans);
	}
	return rc;
}

void mr_stand_finish(struct mr_stand *s)
{
	mr_loans_finish(&s->loans);
}

int mr_stand_off(struct maria *m, const struct mr_stand *s, struct mr_line *l, struct fw_err *err)
{
	bool turn = s->queued && s->place.moved && s->place.host_id;
	struct mr_host *h;
	int rc = turn || s->parked ? mr_line_hosts(m, l, &s->host_id, 1, 2, false, err) : 0;

	if (rc)
		return rc;
	h = mr_line_host(l, s->host_id);
	if (s->queued)
		mr_places_add(l, &l->off, &s->place);
	if (turn && h) { /* it had the turn: give it on */
		h->turn_n--;
		mr_line_turn(l, h, NULL);
	}
	if (!s->parked)
		return 0;
	mr_put(m, "DELETE FROM parked WHERE host_id = ? AND due_at_ms = ? AND feed_id = ?", "iii", s->host_id, s->due_ms, s->feed_id);
	if (h)
		h->parked_n--;
	for (size_t i = 0; i < l->parked.n; i++)
		l->parked.at[i].gone |= l->parked.at[i].feed_id == s->feed_id;
	return 0;
}

int mr_crowd_of(struct maria *m, const struct mr_stand *s, int64_t *host_id, struct fw_err *err)
{
	int64_t feed_n = 0;
	int rc = mr_number(m, 0, &feed_n, err, "SELECT feed_n FROM hosts WHERE id = ? FOR UPDATE", "i", s->host_id);

	*host_id = feed_n > 1 ? s->host_id : 0;
	return rc;
}

/* ---- hosts --------------------------------------------------------------------------------------------------------------- */

struct name {
	struct fw_str text;
	int64_t host_id;
	int64_t join_n; /* feeds that come */
	int64_t feed_n; /* that it had */
};

static int by_text(const void *a, const void *b)
{
	const struct name *x = a, *y = b;
	int d = memcmp(x->text.p, y->text.p, FW_MIN(x->text.len, y->text.len));

	return d ? d : x->text.len < y->text.len ? -1 : x->text.len > y->text.len;
}

static struct fw_str name_of(const struct mr_join *join, char host[256])
{
	struct fw_feed feed = {.url = join->url, .host_key = join->key};

	return fw_str(fw_store_feed_host(&feed, host, 256) ? host : "");
}

/* The names of the feeds' hosts, sorted, each once. */
static int names_of(struct maria *m, struct fw_arena *a, const struct mr_join *join, size_t n, struct name **out, size_t *out_n,
	struct fw_err *err)
{
	struct name *name = fw_arena_calloc(a, n + 1, sizeof(*name));
	size_t kept = 0;

	for (size_t i = 0; name && i < n; i++) {
		char host[256];

		name[i].text = fw_arena_str(a, name_of(&join[i], host));
		name[i].join_n = 1;
	}
	if (!name || a->failed)
		return mr_no_memory(m, err);
	qsort(name, n, sizeof(*name), by_text);
	for (size_t i = 0; i < n; i++) {
		if (kept && fw_str_eq(name[kept - 1].text, name[i].text))
			name[kept - 1].join_n++;
		else
			name[kept++] = name[i];
	}
	*out = name;
	*out_n = kept;
	return 0;
}

static struct name *name_find(struct name *name, size_t n, struct fw_str text)
{
	struct name key = {.text = text};

	return bsearch(&key, name, n, sizeof(key), by_text);
}

/* Numbers of those that are there and not known yet. */
static int names_look(struct maria *m, struct name *name, size_t n, struct fw_err *err)
{
	struct mr_res r;
	bool any = false;
	int rc;

	for (size_t i = 0; i < n; i++) {
		if (name[i].host_id)
			continue;
		fw_buf_adds(&m->sql, any ? "," : m->sql.len ? ";SELECT id, name FROM hosts FORCE INDEX (hosts_name) WHERE name IN (" :
			"SELECT id, name FROM hosts FORCE INDEX (hosts_name) WHERE name IN (");
		mr_value_bytes(m, name[i].text);
		any = true;
	}
	if (!any)
		return 0;
	fw_buf_addc(&m->sql, ')');
	rc = mr_answer(m, &r, err);
	while (!rc && mr_row(&r)) {
		struct name *found = name_find(name, n, mr_str(&r, 1));

		if (found)
			found->host_id = mr_int(&r, 0);
	}
	return rc;
}

/* Lock those that are there, in the order of their numbers; feed_n 0: it was not, or has gone meanwhile. */
static int names_lock(struct maria *m, struct name *name, size_t n, struct fw_err *err)
{
	struct mr_res r;
	bool any = false;
	int rc;

	for (size_t i = 0; i < n; i++) {
		if (!name[i].host_id)
			continue;
		fw_buf_adds(&m->sql, any ? "," : m->sql.len ? ";SELECT name, feed_n FROM hosts FORCE INDEX (PRIMARY) WHERE id IN (" :
			"SELECT name, feed_n FROM hosts FORCE INDEX (PRIMARY) WHERE id IN (");
		mr_value_int(m, name[i].host_id);
		any = true;
	}
	if (!any)
		return 0;
	fw_buf_adds(&m->sql, ") ORDER BY id FOR UPDATE");
	rc = mr_answer(m, &r, err);
	while (!rc && mr_row(&r)) {
		struct name *found = name_find(name, n, mr_str(&r, 0));

		if (found)
			found->feed_n = mr_int(&r, 1);
	}
	return rc;
}

static int names_count(struct maria *m, struct name *name, size_t n, struct fw_err *err)
{
	struct mr_rows fresh = {"INSERT INTO hosts (name, feed_n) VALUES "};
	struct mr_rows more = {"INSERT INTO hosts (id, feed_n) VALUES ", " ON DUPLICATE KEY UPDATE feed_n = feed_n + VALUES(feed_n)"};

	for (size_t i = 0; i < n; i++) {
		if (name[i].feed_n)
			mr_rows_add(m, &more, "ii", name[i].host_id, name[i].join_n);
	}
	mr_rows_end(m, &more);
	for (size_t i = 0; i < n; i++) {
		if (name[i].feed_n)
			continue;
		name[i].host_id = 0;
		mr_rows_add(m, &fresh, "bi", name[i].text, name[i].join_n);
	}
	mr_rows_end(m, &fresh);
	return names_look(m, name, n, err);
}

/* A second feed has come to this host: the first one's place now names the host, and its loan, if any, is counted. */
static int host_crowd(struct maria *m, int64_t host_id, struct fw_err *err)
{
	struct mr_stand s = {0};
	int64_t first;
	int rc = mr_number(m, 0, &first, err, "SELECT id FROM feeds WHERE host_id = ? ORDER BY id LIMIT 1", "i", host_id);

	rc = rc || !first ? rc : mr_stand_lock(m, first, &s, err);
	if (rc || !first)
		goto out;
	if (s.queued && !s.place.host_id) {
		mr_put(m, "UPDATE queue SET host_id = ? WHERE wake_at_ms = ? AND feed_id = ?", "iii", host_id, s.place.wake_ms, first);
		mr_put(m, "UPDATE hosts SET turn_n = turn_n + ? WHERE id = ?", "ii", MR_INT(s.place.moved), host_id);
	} else if (s.lent && !s.lent->host_id) {
		s.lent->host_id = host_id;
		s.loan->rewrite = true;
		mr_loans_write(m, &s.loans);
		mr_put(m, "UPDATE hosts SET busy_n = busy_n + 1 WHERE id = ?", "i", host_id);
	}
out:
	mr_stand_finish(&s);
	return rc == FW_ENOTFOUND ? 0 : rc; /* somebody deleted it by hand */
}

int mr_hosts_join(struct maria *m, struct mr_join *join, size_t n, struct fw_err *err)
{
	struct name *name = NULL;
	struct fw_arena a;
	size_t name_n = 0;
	int rc;

	fw_arena_init(&a, 0);
	rc = names_of(m, &a, join, n, &name, &name_n, err);
	rc = rc ? rc : names_look(m, name, name_n, err);
	rc = rc ? rc : names_lock(m, name, name_n, err);
	rc = rc ? rc : names_count(m, name, name_n, err);
	for (size_t i = 0; i < name_n && !rc; i++) {
		if (name[i].feed_n == 1)
			rc = host_crowd(m, name[i].host_id, err);
	}
	for (size_t i = 0; i < n && !rc; i++) {
		char host[256];
		const struct name *found = name_find(name, name_n, name_of(&join[i], host));

		join[i].host_id = found->host_id;
		join[i].crowded = found->feed_n + found->join_n > 1;
	}
	fw_arena_finish(&a);
	return rc;
}

void mr_host_leave(struct maria *m, int64_t host_id)
{
	mr_put(m, "UPDATE hosts SET feed_n = feed_n - 1 WHERE id = ?", "i", host_id);
	mr_put(m, "DELETE FROM hosts WHERE id = ? AND feed_n <= 0", "i", host_id);
}
