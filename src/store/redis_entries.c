/* SPDX-License-Identifier: ISC */
/*
 * Entries as lists, and forgetting them.
 *
 * An entry's row lies in the hash "entries" under its number, its content in "contents", so that lists that do not ask for contents do
 * not move them. Numbers are dense but for what was forgotten, so what is asked for by number is asked for in ranges; "dates" has the
 * numbers by date. A list first picks numbers and dates, 16 bytes each, puts them in order, then reads rows in portions.
 */
#include <stdlib.h>

#include "store/redis.h"

#define SEEN_SLACK_MS 60000 /* numbers rise with seen_ms, but for clocks and processes that differ by less than this */
#define CONTENT_CHUNK 64    /* rows with their contents */
#define PRUNE_VISITS 2000   /* looked at by one script */
#define PRUNE_ENTRIES 500

struct pick {
	int64_t id, date_ms;
};

struct picks {
	struct fw_buf at; /* of struct pick */
};

static void pick_add(struct picks *p, int64_t id, int64_t date_ms)
{
	struct pick one = {id, date_ms};

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

static void date_member_add(struct rd_conn *c, int64_t id)
{
	fw_buf_addf(rd_word_begin(c), "%015lld", (long long)id);
	rd_word_end(c);
}

/* Which of these numbers there are, and their dates. */
static int dates_of(struct redis *r, int shard, const int64_t *id, size_t n, struct picks *out, struct fw_err *err)
{
	struct rd_reply *dates;
	struct rd_conn *c;
	int rc;

	if (!n)
		return 0;
	fw_arena_reset(&r->arena, RD_ARENA_KEEP);
	c = rd_ask(r, shard, "ZMSCORE", "dates", n, err);
	if (!c)
		return err->rc;
	for (size_t i = 0; i < n; i++)
		date_member_add(c, id[i]);
	rc = rd_run1(r, shard, &r->arena, &dates, "listing entries", err);
	for (size_t i = 0; i < n && !rc; i++) {
		if (dates->elem[i]->type != RD_NIL)
			pick_add(out, id[i], rd_int(dates->elem[i]));
	}
	return rc;
}

/* The numbers of a shard between lo and hi, both included, that there are. At most RD_CHUNK of them fit between. */
static int range_pick(struct redis *r, int shard, int64_t lo, int64_t hi, struct picks *out, struct fw_err *err)
{
	int64_t id[RD_CHUNK];
	size_t n = 0;

	for (int64_t i = lo; i <= hi && n < RD_CHUNK; i++) {
		if (i % r->shard_n == shard % r->shard_n)
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
			return err->rc;
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
	int shard = rd_shard_of_feed(r, feed_id);
	struct rd_reply *known;
	struct fw_buf ids = FW_BUF_INIT(0);
	struct rd_conn *c;
	char key[40];
	int rc;

	(void)fw_snprintf(key, sizeof(key), "keys:%lld", (long long)feed_id);
	c = rd_ask(r, shard, "HVALS", key, 0, err);
	rc = c ? rd_run1(r, shard, &r->arena, &known, "listing a feed's entries", err) : err->rc;
	for (size_t i = 0; !rc && i < known->n; i++) {
		struct fw_str id;
		int64_t n;

		(void)fw_str_split(known->elem[i]->text, ' ', &id);
		if (fw_str_int(id, &n) && n)
			fw_buf_add(&ids, &n, sizeof(n));
	}
	for (size_t at = 0; !rc && at < ids.len / sizeof(int64_t); at += RD_CHUNK)
		rc = dates_of(r, shard, (const int64_t *)(const void *)ids.p + at, FW_MIN(RD_CHUNK, ids.len / sizeof(int64_t) - at), out, err);
	rc = rc || !ids.rc ? rc : rd_no_memory(r, err);
	fw_buf_finish(&ids);
	return rc;
}

/* By date, newest first; at most limit of each shard (0: all). What comes in meanwhile may show one twice: sorted out later. */
static int newest_pick(struct redis *r, size_t limit, struct picks *out, struct fw_err *err)
{
	for (int shard = 0; shard < r->shard_n; shard++) {
		size_t got = 0, n;

		do {
			size_t want = limit ? FW_MIN(limit - got, 10 * RD_CHUNK) : 10 * RD_CHUNK;
			struct rd_reply *list;
			struct rd_conn *c;
			int rc;

			fw_arena_reset(&r->arena, RD_ARENA_KEEP);
			c = rd_ask(r, shard, "ZREVRANGE", "dates", 3, err);
			if (!c)
				return err->rc;
			rd_add_int(c, (int64_t)got);
			rd_add_int(c, (int64_t)(got + want) - 1);
			rd_add(c, FW_STR("WITHSCORES"));
			rc = rd_run1(r, shard, &r->arena, &list, "listing entries", err);
			if (rc)
				return rc;
			n = list->n / 2;
			for (size_t i = 0; i < n; i++)
				pick_add(out, rd_int(list->elem[2 * i]), rd_int(list->elem[2 * i + 1]));
			got += n;
			n = n == want ? n : 0;
		} while (n && (!limit || got < limit));
	}
	return 0;
}

/* Seen at or after since_ms: back from the newest, until all of a portion are clearly older. */
static int since_lo(struct redis *r, int64_t since_ms, int64_t lo, int64_t hi, int64_t *from, struct fw_err *err)
{
	int64_t width = (int64_t)RD_CHUNK * r->shard_n;
	int rc = 0;

	for (*from = hi + 1; *from > lo && !rc; *from -= width) {
		int64_t newest = INT64_MIN;

		fw_arena_reset(&r->arena, RD_ARENA_KEEP);
		for (int shard = 0; shard < r->shard_n && !rc; shard++) {
			int64_t last = *from - 1;
			struct rd_reply *rows;
			struct rd_conn *c;

			while (last % r->shard_n != shard)
				last--;
			c = rd_ask(r, shard, "HMGET", "entries", RD_CHUNK, err);
			if (!c)
				return err->rc;
			for (int i = 0; i < RD_CHUNK; i++)
				rd_add_int(c, last - (int64_t)i * r->shard_n);
			rc = rd_run1(r, shard, &r->arena, &rows, "listing entries", err);
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
};

/* Titles and addresses of the feeds that rows belong to. */
static int feeds_name(struct list *l, int shard, struct fw_entry_row *row, size_t n, struct fw_err *err)
{
	struct fw_feed *feed = fw_arena_zalloc(&l->arena, (n + 1) * sizeof(*feed)), **at;
	size_t feed_n = 0;
	int rc;

	at = fw_arena_zalloc(&l->arena, (n + 1) * sizeof(struct fw_feed *));
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

/* The rows of a portion that lie on one shard; those that are gone stay empty. */
static int rows_read(struct list *l, int shard, const struct pick *p, size_t n, struct fw_entry_row *row, struct fw_err *err)
{
	static const char *const key[] = {"entries", "contents"};
	size_t mine = 0, keys = l->q->content || l->search ? 2 : 1;
	struct rd_reply **reply;
	int rc;

	for (size_t i = 0; i < n; i++)
		mine += p[i].id % l->r->shard_n == shard;
	if (!mine)
		return 0;
	for (size_t k = 0; k < keys; k++) {
		struct rd_conn *c = rd_ask(l->r, shard, "HMGET", key[k], mine, err);

		if (!c)
			return err->rc;
		for (size_t i = 0; i < n; i++) {
			if (p[i].id % l->r->shard_n == shard)
				rd_add_int(c, p[i].id);
		}
	}
	rc = rd_run(l->r, shard, &l->arena, &reply, "reading entries", err);
	for (size_t i = 0, k = 0; i < n && !rc; i++) {
		if (p[i].id % l->r->shard_n != shard)
			continue;
		if (reply[0]->elem[k]->type == RD_TEXT && rd_entry_unpack(reply[0]->elem[k]->text, &row[i])) {
			row[i].id = p[i].id;
			if (keys > 1)
				rd_unpack(reply[1]->elem[k]->text, &rd_entry_content, &row[i]);
		}
		k++;
	}
	return rc ? rc : feeds_name(l, shard, row, n, err);
}

static int portion_show(struct list *l, const struct pick *p, size_t n, struct fw_err *err)
{
	struct fw_entry_row *row;
	int rc = 0;

	fw_arena_reset(&l->arena, RD_ARENA_KEEP);
	row = fw_arena_zalloc(&l->arena, n * sizeof(*row));
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

static int picks_show(struct list *l, const struct picks *p, struct fw_err *err)
{
	const struct pick *at = (const struct pick *)(const void *)p->at.p;
	size_t n = pick_n(p), step = l->q->content || l->search ? CONTENT_CHUNK : RD_CHUNK;
	int rc = p->at.rc ? rd_no_memory(l->r, err) : 0;

	for (size_t i = 0; i < n && !rc && (!l->q->limit || l->shown < l->q->limit);) {
		struct pick portion[RD_CHUNK];
		size_t m = 0;

		for (; i < n && m < step; i++) {
			if ((!i || at[i].id != at[i - 1].id) && at[i].id > l->q->after_id && (!l->q->before_id || at[i].id < l->q->before_id))
				portion[m++] = at[i];
		}
		rc = m ? portion_show(l, portion, m, err) : 0;
	}
	return rc;
}

/* By number: window after window, so that a limit ends it early. */
static int by_number(struct list *l, int64_t lo, int64_t hi, struct fw_err *err)
{
	int64_t width = (int64_t)RD_CHUNK * l->r->shard_n;
	int rc = 0;

	for (int64_t from = lo; from <= hi && !rc && (!l->q->limit || l->shown < l->q->limit); from += width) {
		struct picks p = {FW_BUF_INIT(0)};

		for (int shard = 0; shard < l->r->shard_n && !rc; shard++)
			rc = range_pick(l->r, shard, from, FW_MIN(from + width - 1, hi), &p, err);
		picks_sort(&p, true);
		rc = rc ? rc : picks_show(l, &p, err);
		fw_buf_finish(&p.at);
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

static int of_feed_or_all(struct list *l, struct fw_err *err)
{
	const struct fw_entry_query *q = l->q;
	struct picks p = {FW_BUF_INIT(0)};
	int rc = q->feed_id ? feed_pick(l->r, q->feed_id, &p, err) : newest_pick(l->r, l->search ? 0 : q->limit, &p, err);

	picks_sort(&p, q->oldest_first);
	rc = rc ? rc : picks_show(l, &p, err);
	fw_buf_finish(&p.at);
	return rc;
}

int rd_entry_list(struct fw_store *st, const struct fw_entry_query *q, fw_entry_cb *cb, void *ctx, struct fw_err *err)
{
	struct list l = {.r = redis_of(st), .q = q, .cb = cb, .ctx = ctx};
	struct rd_search search;
	int64_t lo, hi;
	int rc;

	fw_arena_init(&l.arena, 0);
	fw_arena_reset(&l.r->arena, RD_ARENA_KEEP);
	l.search = rd_search_begin(&search, q->search) ? &search : NULL;
	rc = rd_search_failed(&search) ? rd_no_memory(l.r, err) : 0;
	if (!rc && (q->feed_id || (!q->oldest_first && !q->since_ms && !q->after_id && !q->before_id))) {
		rc = of_feed_or_all(&l, err);
	} else if (!rc) {
		rc = limits(l.r, &lo, &hi, err);
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
			return err->rc;
		rd_add_int(c, before_ms);
		rd_add_int(c, PRUNE_VISITS);
		rc = rd_run1(r, shard, &r->arena, &reply, "forgetting visits", err);
		*n += rc ? 0 : rd_int(reply->elem[0]);
	} while (!rc && rd_int(reply->elem[1]));
	if (rc || shard)
		return rc;
	c = rd_op(r, shard, RD_WRITE, "prune_signs", 1, err);
	if (!c)
		return err->rc;
	rd_add_int(c, before_ms);
	return rd_run1(r, shard, &r->arena, &spare, "forgetting workers and messages", err);
}

static int first_set(struct redis *r, int shard, int64_t id, struct fw_err *err)
{
	struct rd_conn *c = rd_ask(r, shard, "HSET", "meta", 2, err);
	struct rd_reply *reply;

	if (!c)
		return err->rc;
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
			return err->rc;
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
	}
	return rc;
}
