/* SPDX-License-Identifier: ISC */
/*
 * Entries as lists, and forgetting them.
 *
 * An entry lies in the hash "entries" under its number. Numbers are dense but for what was forgotten, so what is asked for by number is
 * asked for in ranges. By date there is a list for each day, "dates" with the number of the day, a line "id date" for each entry; "days"
 * says which lists there are. These are only added to when entries are stored, so who reads them looks whether an entry still is there
 * and has that date; when much of them is stale they are swept. A list first picks numbers and dates, puts them in order, then reads
 * entries in portions.
 */
#include <stdlib.h>

#include "store/redis.h"

#define SEEN_SLACK_MS 60000 /* numbers rise with seen_ms, but for clocks and processes that differ by less than this */
#define PORTION 100         /* entries read at a time: they may be long */
#define PRUNE_VISITS 2000   /* looked at by one script */
#define PRUNE_ENTRIES 500
#define STALE_MIN 1000      /* lines of days' lists: fewer are left where they are */

struct pick {
	int64_t id, date_ms;
	bool doubtful; /* the entry may have got another date since */
};

struct picks {
	struct fw_buf at; /* of struct pick */
};

static void pick_add(struct picks *p, int64_t id, int64_t date_ms, bool doubtful)
{
	struct pick one = {id, date_ms, doubtful};

	fw_buf_add(&p->at, &one, sizeof(one));
}

static size_t pick_n(const struct picks *p)
{
	return p->at.len / sizeof(struct pick);
}

static int newest_first(const void *a, const void *b)
{
	const struct pick *x = a, *y = b;

	if (x->date_ms != y->date_ms)
		return x->date_ms > y->date_ms ? -1 : 1;
	return x->id > y->id ? -1 : x->id < y->id;
}

static int oldest_first(const void *a, const void *b)
{
	const struct pick *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static void picks_sort(struct picks *p, bool by_id)
{
	if (p->at.len)
		qsort(p->at.p, pick_n(p), sizeof(struct pick), by_id ? oldest_first : newest_first);
}

/* Read entries of one shard by number into the arena. */
static int entries_read(struct redis *r, int shard, const int64_t *id, size_t n, struct fw_arena *a, struct rd_reply **rows, struct fw_err *err)
{
	struct rd_conn *c = rd_ask(r, shard, "HMGET", "entries", n, err);

	if (!c)
		return FW_ERR_CODE(err);
	for (size_t i = 0; i < n; i++)
		rd_add_int(c, id[i]);
	return rd_run1(r, shard, a, rows, "reading entries", err);
}

/* Which of these numbers there are, and their dates. */
static int dates_of(struct redis *r, int shard, const int64_t *id, size_t n, struct picks *out, struct fw_err *err)
{
	struct rd_reply *rows;
	int rc = 0;

	for (size_t at = 0; at < n && !rc; at += PORTION) {
		fw_arena_reset(&r->arena, RD_ARENA_KEEP);
		rc = entries_read(r, shard, id + at, FW_MIN(PORTION, n - at), &r->arena, &rows, err);
		for (size_t i = 0; !rc && i < rows->n; i++) {
			struct fw_entry_row e;

			if (rows->elem[i]->type == RD_TEXT && rd_entry_unpack(rows->elem[i]->text, &e))
				pick_add(out, id[at + i], fw_store_entry_date(&e, e.seen_ms), false);
		}
	}
	return rc;
}

/* The numbers of a shard between lo and hi, both included, that there are. At most RD_CHUNK of them fit between. */
static int range_pick(struct redis *r, int shard, int64_t lo, int64_t hi, struct picks *out, struct fw_err *err)
{
	int64_t id[RD_CHUNK];
	size_t n = 0;

	for (int64_t i = lo; i <= hi && n < RD_CHUNK; i++) {
		if (i % r->shard_n == shard)
			id[n++] = i;
	}
	return dates_of(r, shard, id, n, out, err);
}

/* The first and the last number that may be there; *hi below *lo: none. */
static int limits(struct redis *r, int64_t *lo, int64_t *hi, struct fw_err *err)
{
	int rc = 0;

	*lo = INT64_MAX;
	*hi = 0;
	for (int shard = 0; shard < r->shard_n && !rc; shard++) {
		struct rd_conn *c = rd_ask(r, shard, "HMGET", "meta", 2, err);
		struct rd_reply *reply;

		if (!c)
			return FW_ERR_CODE(err);
		rd_add(c, FW_STR("first_entry"));
		rd_add(c, FW_STR("last_entry"));
		rc = rd_run1(r, shard, &r->arena, &reply, "listing entries", err);
		if (rc)
			return rc;
		*lo = FW_MIN(*lo, rd_int(reply->elem[0]));
		*hi = FW_MAX(*hi, rd_int(reply->elem[1]) * r->shard_n + r->shard_n - 1);
	}
	return rc;
}

/* ---- picking ----------------------------------------------------------------------------------------------------------------- */

static int feed_pick(struct redis *r, int64_t feed_id, struct picks *out, struct fw_err *err)
{
	int shard = rd_shard_of_feed(r, feed_id), rc;
	struct rd_reply *known;
	struct rd_conn *c;
	char key[40];

	(void)fw_snprintf(key, sizeof(key), "keys:%lld", (long long)feed_id);
	c = rd_ask(r, shard, "HVALS", key, 0, err);
	rc = c ? rd_run1(r, shard, &r->arena, &known, "listing a feed's entries", err) : FW_ERR_CODE(err);
	for (size_t i = 0; !rc && i < known->n; i++) {
		struct rd_known k;

		if (rd_known_read(known->elem[i]->text, &k) && k.id)
			pick_add(out, k.id, k.date_ms, false);
	}
	return rc;
}

/* The days that a shard has lists of, into int64_t. */
static int days_of(struct redis *r, int shard, struct fw_buf *out, struct fw_err *err)
{
	struct rd_conn *c = rd_ask(r, shard, "ZRANGE", "days", 2, err);
	struct rd_reply *days;
	int rc;

	if (!c)
		return FW_ERR_CODE(err);
	rd_add_int(c, 0);
	rd_add_int(c, -1);
	rc = rd_run1(r, shard, &r->arena, &days, "listing entries", err);
	for (size_t i = 0; !rc && i < days->n; i++) {
		int64_t day = rd_int(days->elem[i]);

		fw_buf_add(out, &day, sizeof(day));
	}
	return rc || !out->rc ? rc : rd_no_memory(r, err);
}

/* What stands in the list of a day. *bytes: how long it is. */
static int day_pick(struct redis *r, int shard, int64_t day, struct picks *out, size_t *bytes, struct fw_err *err)
{
	struct rd_reply *list;
	struct fw_str rest;
	struct rd_conn *c;
	char key[40];
	int rc;

	(void)fw_snprintf(key, sizeof(key), "dates:%lld", (long long)day);
	c = rd_ask(r, shard, "GET", key, 0, err);
	rc = c ? rd_run1(r, shard, &r->arena, &list, "listing entries", err) : FW_ERR_CODE(err);
	if (rc)
		return rc;
	*bytes = list->text.len;
	for (rest = list->text; rest.len;) {
		struct fw_str date, id = fw_str_split(fw_str_split(rest, '\n', &rest), ' ', &date);
		int64_t n, ms;

		if (fw_str_int(id, &n) && date.p && fw_str_int(date, &ms))
			pick_add(out, n, ms, true);
	}
	return 0;
}

/* Seen at or after since_ms: back from the newest, until all of a portion are clearly older. */
static int since_lo(struct redis *r, int64_t since_ms, int64_t lo, int64_t hi, int64_t *from, struct fw_err *err)
{
	int64_t width = (int64_t)PORTION * r->shard_n;
	int rc = 0;

	for (*from = hi + 1; *from > lo && !rc; *from -= width) {
		int64_t newest = INT64_MIN;

		fw_arena_reset(&r->arena, RD_ARENA_KEEP);
		for (int shard = 0; shard < r->shard_n && !rc; shard++) {
			int64_t id[PORTION], last = *from - 1;
			struct rd_reply *rows;

			while (last % r->shard_n != shard)
				last--;
			for (int i = 0; i < PORTION; i++)
				id[i] = last - (int64_t)i * r->shard_n;
			rc = entries_read(r, shard, id, PORTION, &r->arena, &rows, err);
			for (size_t i = 0; !rc && i < rows->n; i++) {
				struct fw_entry_row e;

				if (rows->elem[i]->type == RD_TEXT && rd_entry_unpack(rows->elem[i]->text, &e))
					newest = FW_MAX(newest, e.seen_ms);
			}
		}
		if (newest != INT64_MIN && newest < since_ms - SEEN_SLACK_MS)
			break;
	}
	*from = FW_MAX(*from, lo);
	return rc;
}

/* ---- showing ------------------------------------------------------------------------------------------------------------------ */

struct list {
	struct redis *r;
	const struct fw_entry_query *q;
	struct rd_search *search; /* NULL: none */
	fw_entry_cb *cb;
	void *ctx;
	struct fw_arena arena;
	size_t shown;
	int64_t hi;               /* numbers above are not shown yet */
};

/* Titles and addresses of the feeds that rows belong to. */
static int feeds_name(struct list *l, int shard, struct fw_entry_row *row, size_t n, struct fw_err *err)
{
	struct fw_feed *feed = fw_arena_calloc(&l->arena, n + 1, sizeof(*feed)), **at;
	size_t feed_n = 0;
	int rc;

	at = fw_arena_calloc(&l->arena, n + 1, sizeof(struct fw_feed *));
	if (!feed || !at)
		return rd_no_memory(l->r, err);
	for (size_t i = 0; i < n; i++) { /* entries of one feed mostly stand together */
		if (!row[i].id || rd_shard_of_feed(l->r, row[i].feed_id) != shard || (feed_n && at[feed_n - 1]->id == row[i].feed_id))
			continue;
		feed[feed_n].id = row[i].feed_id;
		at[feed_n] = &feed[feed_n];
		feed_n++;
	}
	rc = rd_feeds_get(l->r, shard, at, feed_n, FW_GROUP_META, &l->arena, err);
	for (size_t i = 0, k = 0; i < n && !rc; i++) {
		if (!row[i].id || rd_shard_of_feed(l->r, row[i].feed_id) != shard)
			continue;
		while (k < feed_n && feed[k].id != row[i].feed_id)
			k++;
		if (k == feed_n)
			break;
		row[i].feed_title = feed[k].user_title.len ? feed[k].user_title : feed[k].title;
		row[i].feed_url = feed[k].url;
	}
	return rc;
}

/* The rows of a portion that lie on one shard; those that are gone have no id. */
static int rows_read(struct list *l, int shard, const struct pick *p, size_t n, struct fw_entry_row *row, struct fw_err *err)
{
	int64_t id[PORTION];
	struct rd_reply *rows;
	size_t mine = 0;
	int rc;

	for (size_t i = 0; i < n; i++) {
		if (p[i].id % l->r->shard_n == shard)
			id[mine++] = p[i].id;
	}
	if (!mine)
		return 0;
	rc = entries_read(l->r, shard, id, mine, &l->arena, &rows, err);
	for (size_t i = 0, k = 0; i < n && !rc; i++) {
		if (p[i].id % l->r->shard_n != shard)
			continue;
		if (rows->elem[k]->type == RD_TEXT && rd_entry_unpack(rows->elem[k]->text, &row[i]) &&
		    (!p[i].doubtful || fw_store_entry_date(&row[i], row[i].seen_ms) == p[i].date_ms))
			row[i].id = p[i].id;
		k++;
	}
	return rc ? rc : feeds_name(l, shard, row, n, err);
}

static int portion_show(struct list *l, const struct pick *p, size_t n, struct fw_err *err)
{
	struct fw_entry_row *row;
	int rc = 0;

	fw_arena_reset(&l->arena, RD_ARENA_KEEP);
	row = fw_arena_calloc(&l->arena, n, sizeof(*row));
	if (!row)
		return rd_no_memory(l->r, err);
	for (int shard = 0; shard < l->r->shard_n && !rc; shard++)
		rc = rows_read(l, shard, p, n, row, err);
	for (size_t i = 0; i < n && !rc && (!l->q->limit || l->shown < l->q->limit); i++) {
		struct fw_entry_row *e = &row[i];

		if (!e->id || !e->feed_url.p || e->seen_ms < l->q->since_ms)
			continue; /* forgotten meanwhile, or with its feed */
		if (l->search && !rd_search_matches(l->search, e))
			continue;
		if (l->search && rd_search_failed(l->search))
			return rd_no_memory(l->r, err);
		if (!l->q->content)
			e->content = e->content_base = FW_STR_NONE;
		l->shown++;
		rc = l->cb(l->ctx, e);
	}
	return rc;
}

static bool is_behind(const struct pick *p, const struct fw_entry_query *q)
{
	return !q->behind_id || p->date_ms < q->behind_date_ms || (p->date_ms == q->behind_date_ms && p->id < q->behind_id);
}

static int picks_show(struct list *l, const struct picks *p, struct fw_err *err)
{
	const struct pick *at = (const struct pick *)(const void *)p->at.p;
	size_t n = pick_n(p);
	int rc = p->at.rc ? rd_no_memory(l->r, err) : 0;

	for (size_t i = 0; i < n && !rc && (!l->q->limit || l->shown < l->q->limit);) {
		struct pick portion[PORTION];
		size_t m = 0;

		for (; i < n && m < PORTION; i++) {
			bool again = i && at[i].id == at[i - 1].id && at[i].date_ms == at[i - 1].date_ms;

			if (!again && at[i].id > l->q->after_id && at[i].id <= l->hi && (!l->q->before_id || at[i].id < l->q->before_id) &&
			    is_behind(&at[i], l->q))
				portion[m++] = at[i];
		}
		rc = m ? portion_show(l, portion, m, err) : 0;
	}
	return rc;
}

static bool more_wanted(const struct list *l)
{
	return !l->q->limit || l->shown < l->q->limit;
}

/* By number: portion after portion, so that a limit ends it early. */
static int by_number(struct list *l, int64_t lo, int64_t hi, struct fw_err *err)
{
	int rc = 0;

	while (lo <= hi && !rc && more_wanted(l)) {
		struct pick portion[PORTION];
		size_t n = 0;

		while (lo <= hi && n < PORTION)
			portion[n++] = (struct pick){.id = lo++};
		rc = portion_show(l, portion, n, err);
	}
	return rc;
}

/* By date, of a range of numbers. */
static int range_by_date(struct list *l, int64_t lo, int64_t hi, struct fw_err *err)
{
	int64_t width = (int64_t)RD_CHUNK * l->r->shard_n;
	struct picks p = {FW_BUF_INIT(0)};
	int rc = 0;

	for (int64_t from = lo; from <= hi && !rc; from += width) {
		for (int shard = 0; shard < l->r->shard_n && !rc; shard++)
			rc = range_pick(l->r, shard, from, FW_MIN(from + width - 1, hi), &p, err);
	}
	picks_sort(&p, false);
	rc = rc ? rc : picks_show(l, &p, err);
	fw_buf_finish(&p.at);
	return rc;
}

static int of_feed(struct list *l, struct fw_err *err)
{
	struct picks p = {FW_BUF_INIT(0)};
	int rc = feed_pick(l->r, l->q->feed_id, &p, err);

	picks_sort(&p, l->q->oldest_first);
	rc = rc ? rc : picks_show(l, &p, err);
	fw_buf_finish(&p.at);
	return rc;
}

static int later(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return *x > *y ? -1 : *x < *y;
}

/* Of all feeds, newest first: day after day. */
static int of_all(struct list *l, struct fw_err *err)
{
	struct fw_buf days = FW_BUF_INIT(0);
	const int64_t *day;
	int rc = 0;

	for (int shard = 0; shard < l->r->shard_n && !rc; shard++)
		rc = days_of(l->r, shard, &days, err);
	day = (const int64_t *)(const void *)days.p;
	if (days.len)
		qsort(days.p, days.len / sizeof(*day), sizeof(*day), later);
	for (size_t i = 0; i < days.len / sizeof(*day) && !rc && more_wanted(l); i++) {
		struct picks p = {FW_BUF_INIT(0)};
		size_t bytes;

		if ((i && day[i] == day[i - 1]) || (l->q->behind_id && day[i] > rd_day_of(l->q->behind_date_ms)))
			continue;
		fw_arena_reset(&l->r->arena, RD_ARENA_KEEP);
		for (int shard = 0; shard < l->r->shard_n && !rc; shard++)
			rc = day_pick(l->r, shard, day[i], &p, &bytes, err);
		picks_sort(&p, false);
		rc = rc ? rc : picks_show(l, &p, err);
		fw_buf_finish(&p.at);
	}
	fw_buf_finish(&days);
	return rc;
}

/* Entries with higher numbers may be on their way, though some are stored already: who follows by number sees none of them yet. */
static int safe_number(struct redis *r, int64_t *hi, struct fw_err *err)
{
	struct rd_conn *c = rd_op(r, 0, RD_READ, "safe", 0, err);
	struct rd_reply *reply;
	int rc = c ? rd_run1(r, 0, &r->arena, &reply, "listing entries", err) : FW_ERR_CODE(err);

	for (size_t i = 0; !rc && i < reply->elem[1]->n; i++) {
		struct fw_str until, base = fw_str_split(reply->elem[1]->elem[i]->text, ' ', &until);
		int64_t n, until_ms;

		if (fw_str_int(base, &n) && until.p && fw_str_int(until, &until_ms) && until_ms >= rd_int(reply->elem[0]))
			*hi = FW_MIN(*hi, n * r->shard_n + r->shard_n - 1);
	}
	return rc;
}

int rd_entry_list(struct fw_store *st, const struct fw_entry_query *q, fw_entry_cb *cb, void *ctx, struct fw_err *err)
{
	struct list l = {.r = redis_of(st), .q = q, .cb = cb, .ctx = ctx, .hi = INT64_MAX};
	struct rd_search search;
	int64_t lo, hi;
	int rc;

	fw_arena_init(&l.arena, 0);
	fw_arena_reset(&l.r->arena, RD_ARENA_KEEP);
	l.search = rd_search_begin(&search, q->search) ? &search : NULL;
	rc = rd_search_failed(&search) ? rd_no_memory(l.r, err) : 0;
	if (!rc && (q->oldest_first || q->after_id) && !fw_store_entry_is_one(q))
		rc = safe_number(l.r, &l.hi, err);
	if (!rc && (q->feed_id || (!q->oldest_first && !q->since_ms && !q->after_id && !q->before_id))) {
		rc = q->feed_id ? of_feed(&l, err) : of_all(&l, err);
	} else if (!rc) {
		rc = limits(l.r, &lo, &hi, err);
		hi = FW_MIN(hi, l.hi);
		lo = FW_MAX(lo, q->after_id + 1);
		hi = q->before_id ? FW_MIN(hi, q->before_id - 1) : hi;
		if (!rc && q->since_ms)
			rc = since_lo(l.r, q->since_ms, lo, hi, &lo, err);
		if (!rc)
			rc = q->oldest_first ? by_number(&l, lo, hi, err) : range_by_date(&l, lo, hi, err);
	}
	rd_search_end(&search);
	fw_arena_finish(&l.arena);
	return rc;
}

/* ---- forgetting --------------------------------------------------------------------------------------------------------------- */

static int prune_visits(struct redis *r, int shard, int64_t before_ms, int64_t *n, struct fw_err *err)
{
	struct rd_reply *reply, *spare;
	struct rd_conn *c;
	int rc;

	do {
		fw_arena_reset(&r->arena, RD_ARENA_KEEP);
		c = rd_op(r, shard, RD_WRITE, "prune_visits", 2, err);
		if (!c)
			return FW_ERR_CODE(err);
		rd_add_int(c, before_ms);
		rd_add_int(c, PRUNE_VISITS);
		rc = rd_run1(r, shard, &r->arena, &reply, "forgetting visits", err);
		*n += rc ? 0 : rd_int(reply->elem[0]);
	} while (!rc && rd_int(reply->elem[1]));
	if (rc || shard)
		return rc;
	c = rd_op(r, shard, RD_WRITE, "prune_signs", 1, err);
	if (!c)
		return FW_ERR_CODE(err);
	rd_add_int(c, before_ms);
	return rd_run1(r, shard, &r->arena, &spare, "forgetting workers and messages", err);
}

static int first_set(struct redis *r, int shard, int64_t id, struct fw_err *err)
{
	struct rd_conn *c = rd_ask(r, shard, "HSET", "meta", 2, err);
	struct rd_reply *reply;

	if (!c)
		return FW_ERR_CODE(err);
	rd_add(c, FW_STR("first_entry"));
	rd_add_int(c, id);
	return rd_run1(r, shard, &r->arena, &reply, "forgetting entries", err);
}

static int prune_entries(struct redis *r, int shard, int64_t before_ms, int64_t *n, struct fw_err *err)
{
	int64_t lo, hi;
	bool kept = false;
	int rc = limits(r, &lo, &hi, err);

	while (lo % r->shard_n != shard)
		lo++;
	for (int64_t step = (int64_t)PRUNE_ENTRIES * r->shard_n; lo <= hi && !rc; lo += step) {
		struct rd_reply *reply;
		struct rd_conn *c;

		fw_arena_reset(&r->arena, RD_ARENA_KEEP);
		c = rd_op(r, shard, RD_WRITE, "prune_entries", 1 + PRUNE_ENTRIES, err);
		if (!c)
			return FW_ERR_CODE(err);
		rd_add_int(c, before_ms);
		for (int i = 0; i < PRUNE_ENTRIES; i++)
			rd_add_int(c, lo + (int64_t)i * r->shard_n);
		rc = rd_run1(r, shard, &r->arena, &reply, "forgetting entries", err);
		if (rc)
			return rc;
		*n += rd_int(reply->elem[0]);
		kept = kept || rd_int(reply->elem[1]) > 0;
		if (!kept && lo + step <= hi) /* lists begin behind these from now on */
			rc = first_set(r, shard, lo + step, err);
	}
	return rc;
}

/* What is left of a day's list when stale lines are dropped. */
static int day_sweep(struct redis *r, int shard, int64_t day, struct fw_err *err)
{
	struct fw_buf ids = FW_BUF_INIT(0), kept = FW_BUF_INIT(0);
	struct picks stood = {FW_BUF_INIT(0)}, are = {FW_BUF_INIT(0)};
	struct rd_reply *reply;
	size_t bytes = 0;
	int rc = day_pick(r, shard, day, &stood, &bytes, err);
	const struct pick *at = (const struct pick *)(const void *)stood.at.p;

	picks_sort(&stood, true);
	for (size_t i = 0; i < pick_n(&stood); i++) {
		if (!i || at[i].id != at[i - 1].id)
			fw_buf_add(&ids, &at[i].id, sizeof(at[i].id));
	}
	rc = rc ? rc : dates_of(r, shard, (const int64_t *)(const void *)ids.p, ids.len / sizeof(int64_t), &are, err);
	at = (const struct pick *)(const void *)are.at.p;
	for (size_t i = 0; i < pick_n(&are); i++) {
		if (rd_day_of(at[i].date_ms) == day)
			fw_buf_addf(&kept, "%lld %lld\n", (long long)at[i].id, (long long)at[i].date_ms);
	}
	if (!rc && (stood.at.rc || ids.rc || are.at.rc || kept.rc))
		rc = rd_no_memory(r, err);
	if (!rc && bytes) {
		struct rd_conn *c = rd_op(r, shard, RD_WRITE, "day_sweep", 3, err);

		if (c) {
			rd_add_int(c, day);
			rd_add_int(c, (int64_t)bytes);
			rd_add(c, fw_buf_str(&kept));
		}
		rc = c ? rd_run1(r, shard, &r->arena, &reply, "sweeping the lists by date", err) : FW_ERR_CODE(err);
	}
	fw_buf_finish(&stood.at);
	fw_buf_finish(&are.at);
	fw_buf_finish(&ids);
	fw_buf_finish(&kept);
	return rc;
}

/* When so many lines are stale that it is worth reading all entries. */
static int days_sweep(struct redis *r, int shard, struct fw_err *err)
{
	struct fw_buf days = FW_BUF_INIT(0);
	struct rd_conn *c = rd_ask(r, shard, "HMGET", "meta", 2, err);
	struct rd_reply *reply;
	int64_t stale;
	int rc;

	if (!c)
		return FW_ERR_CODE(err);
	rd_add(c, FW_STR("stale_n"));
	rd_add(c, FW_STR("entry_n"));
	rc = rd_run1(r, shard, &r->arena, &reply, "sweeping the lists by date", err);
	stale = rc ? 0 : rd_int(reply->elem[0]);
	if (rc || stale < STALE_MIN || stale < rd_int(reply->elem[1]) / 4)
		return rc;
	rc = days_of(r, shard, &days, err);
	for (size_t i = 0; i < days.len / sizeof(int64_t) && !rc; i++) {
		fw_arena_reset(&r->arena, RD_ARENA_KEEP);
		rc = day_sweep(r, shard, ((const int64_t *)(const void *)days.p)[i], err);
	}
	fw_buf_finish(&days);
	c = rc ? NULL : rd_ask(r, shard, "HINCRBY", "meta", 2, err);
	if (!c)
		return rc ? rc : FW_ERR_CODE(err);
	rd_add(c, FW_STR("stale_n"));
	rd_add_int(c, -stale);
	return rd_run1(r, shard, &r->arena, &reply, "sweeping the lists by date", err);
}

int rd_prune(struct fw_store *st, int64_t visits_before_ms, int64_t entries_before_ms, int64_t *n, struct fw_err *err)
{
	struct redis *r = redis_of(st);
	int rc = rd_may_write(r, err);

	fw_arena_reset(&r->arena, RD_ARENA_KEEP);
	for (int shard = 0; shard < r->shard_n && !rc; shard++) {
		if (visits_before_ms)
			rc = prune_visits(r, shard, visits_before_ms, n, err);
		if (!rc && entries_before_ms)
			rc = prune_entries(r, shard, entries_before_ms, n, err);
		rc = rc ? rc : days_sweep(r, shard, err);
	}
	return rc;
}
