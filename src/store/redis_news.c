/* SPDX-License-Identifier: ISC */
/*
 * New and changed entries. They are plain commands, for a script would copy each byte twice more on its way: one transaction (MULTI)
 * holds them and the script of their visits, so they are stored together or not at all.
 *
 * A transaction cannot ask, so what it goes by is watched from before it is read: the shard's epoch and what was lent under the
 * fences (whose leases these are), and the keys known of each feed (what is new). When one of them changes, nothing is written.
 *
 * Numbers of new entries are taken before; until they are stored the others, who follow entries by number, stop below them (see
 * numbers, in window.lua, and safe, in read.lua).
 */
#include <stdlib.h>

#include "base/map.h"
#include "store/redis_commit.h"

#define TAKEN_MS 60000 /* so long others wait for numbers that were taken */

/* ---- which are new ---------------------------------------------------------------------------------------------------------- */

static struct fw_str key_of(const struct fw_entry_row *e)
{
	return (struct fw_str){(const char *)e->key, sizeof(e->key)};
}

/* Of entries with one key in one document the first counts; later ones would overwrite each other at every visit. */
static int first_ones(struct rd_plan *p, size_t *n)
{
	const struct fw_outcome *o = p->o;
	struct fw_map seen;
	int rc = 0;

	*n = 0;
	fw_map_init(&seen, 0);
	for (size_t i = 0; i < o->entry_n && !rc; i++) {
		if (fw_map_get(&seen, key_of(&o->entries[i])))
			continue;
		fw_map_put(&seen, key_of(&o->entries[i]), p, &rc);
		p->news[i].item = RD_ITEM_NEW;
		++*n;
	}
	fw_map_finish(&seen);
	return rc;
}

/* What the store knows of one entry, or nothing. */
static void item_decide(struct rd_plan *p, size_t i, struct fw_str known)
{
	struct rd_news *at = &p->news[i];
	struct rd_known k;

	if (!rd_known_read(known, &k)) {
		p->new_n++;
	} else if (k.hash == p->o->entries[i].hash) {
		at->item = RD_ITEM_SAME;
	} else {
		at->item = k.id ? RD_ITEM_CHANGED : RD_ITEM_GONE;
		at->id = k.id;
		at->date_ms = k.date_ms;
		p->changed_n += k.id != 0;
		p->gone_n += !k.id;
	}
}

static int plans_begin(struct rd_part *t, struct fw_err *err)
{
	for (size_t i = 0; i < t->n; i++) {
		struct rd_plan *p = &t->plan[i];

		p->new_n = p->changed_n = p->gone_n = 0;
		if (!p->o->entry_n)
			continue;
		p->news = fw_arena_calloc(&t->r->arena, p->o->entry_n, sizeof(*p->news));
		if (!p->news)
			return rd_no_memory(t->r, err);
	}
	return 0;
}

static void keys_name(char name[40], int64_t feed_id)
{
	(void)fw_snprintf(name, 40, "keys:%lld", (long long)feed_id);
}

static bool is_first_under(const struct rd_part *t, size_t i)
{
	return !i || t->plan[i].o->fence != t->plan[i - 1].o->fence;
}

/* Watch what the transaction goes by, and read the epoch. */
static struct rd_conn *watch(struct rd_part *t, struct fw_err *err)
{
	struct rd_conn *c = rd_shard(t->r, t->shard, err);
	char name[40];
	size_t n = 0;

	if (!c)
		return NULL;
	for (size_t i = 0; i < t->n; i++)
		n += (t->plan[i].o->entry_n > 0) + is_first_under(t, i);
	rd_command(c, "UNWATCH");
	c = rd_ask(t->r, t->shard, "WATCH", "epoch", n, err);
	for (size_t i = 0; i < t->n && c; i++) {
		const struct fw_outcome *o = t->plan[i].o;

		if (is_first_under(t, i)) {
			(void)fw_snprintf(name, sizeof(name), "lent:%lld", (long long)o->fence);
			rd_key_add(t->r, c, t->shard, name);
		}
		if (o->entry_n) {
			keys_name(name, o->feed_id);
			rd_key_add(t->r, c, t->shard, name);
		}
	}
	return rd_ask(t->r, t->shard, "GET", "epoch", 0, err);
}

static int keys_ask(struct rd_part *t, const struct rd_plan *p, size_t n, struct fw_err *err)
{
	struct rd_conn *c;
	char name[40];

	keys_name(name, p->o->feed_id);
	c = rd_ask(t->r, t->shard, "HMGET", name, n, err);
	if (!c)
		return FW_ERR_CODE(err);
	for (size_t i = 0; i < p->o->entry_n; i++) {
		if (p->news[i].item == RD_ITEM_NEW)
			rd_add(c, key_of(&p->o->entries[i]));
	}
	return 0;
}

/* A feed that, as far as we remember, never had an entry: then all are new, if there really are no keys of it. */
static bool is_fresh(const struct rd_part *t, const struct rd_plan *p)
{
	const struct rd_loan *loan = rd_loan_get(&t->r->loans, p->o->feed_id);

	return p->o->entry_n && loan && loan->fence == p->o->fence && !loan->last_new_ms;
}

static int fresh_ask(struct rd_part *t, size_t n, struct fw_err *err)
{
	struct rd_conn *c = rd_shard(t->r, t->shard, err);
	char name[40];

	if (!c)
		return FW_ERR_CODE(err);
	rd_begin(c, 1 + n);
	rd_add(c, FW_STR("EXISTS"));
	for (size_t i = 0; i < t->n; i++) {
		if (!t->plan[i].fresh)
			continue;
		keys_name(name, t->plan[i].o->feed_id);
		rd_key_add(t->r, c, t->shard, name);
	}
	return 0;
}

static int known_ask(struct rd_part *t, bool trust, size_t *fresh_n, struct fw_err *err)
{
	int rc = watch(t, err) ? 0 : FW_ERR_CODE(err);

	*fresh_n = 0;
	for (size_t i = 0; i < t->n && !rc; i++) {
		struct rd_plan *p = &t->plan[i];
		size_t n = 0;

		p->fresh = trust && is_fresh(t, p);
		*fresh_n += p->fresh;
		if (p->o->entry_n && first_ones(p, &n))
			rc = rd_no_memory(t->r, err);
		if (!rc && p->o->entry_n && !p->fresh)
			rc = keys_ask(t, p, n, err);
		p->new_n = p->fresh ? n : 0;
	}
	return rc || !*fresh_n ? rc : fresh_ask(t, *fresh_n, err);
}

/* *again: some feed is not as fresh as it seemed. */
static int look(struct rd_part *t, bool trust, bool *again, struct fw_err *err)
{
	size_t at = 3, fresh_n;
	struct rd_reply **reply;
	int rc = plans_begin(t, err);

	*again = false;
	rc = rc ? rc : known_ask(t, trust, &fresh_n, err);
	if (rc) {
		struct rd_conn *c = rd_shard(t->r, t->shard, err);

		if (c)
			rd_forget(c);
		return rc;
	}
	rc = rd_run(t->r, t->shard, &t->r->arena, &reply, "looking which entries are known", err);
	if (rc)
		return rc;
	t->r->epoch[t->shard] = rd_int(reply[2]);
	for (size_t i = 0; i < t->n; i++) {
		struct rd_plan *p = &t->plan[i];
		const struct rd_reply *known = p->o->entry_n && !p->fresh ? reply[at++] : NULL;

		for (size_t k = 0, j = 0; known && k < p->o->entry_n; k++) {
			if (p->news[k].item == RD_ITEM_NEW)
				item_decide(p, k, known->elem[j++]->text);
		}
	}
	*again = fresh_n && rd_int(reply[at]);
	return 0;
}

int rd_news_look(struct rd_part *t, struct fw_err *err)
{
	bool any = false, again;
	int rc;

	for (size_t i = 0; i < t->n; i++)
		any = any || t->plan[i].o->entry_n;
	if (!any)
		return plans_begin(t, err);
	rc = look(t, true, &again, err);
	return rc || !again ? rc : look(t, false, &again, err);
}

/* ---- numbers, and what changed entries were ----------------------------------------------------------------------------------- */

static int numbers_take(struct rd_part *t, struct fw_err *err)
{
	struct rd_conn *c = rd_op(t->r, 0, RD_WRITE, "numbers", 3, err);
	struct rd_reply *got;
	int64_t n = 0, next;
	int rc;

	if (!c)
		return FW_ERR_CODE(err);
	for (size_t i = 0; i < t->good_n; i++)
		n += (int64_t)t->good[i]->new_n;
	rd_add_int(c, n);
	rd_add(c, fw_str(t->r->me));
	rd_add_int(c, TAKEN_MS);
	rc = rd_run1(t->r, 0, &t->r->arena, &got, "taking numbers for entries", err);
	if (rc)
		return rc;
	next = rd_int(got->elem[0]);
	t->now_ms = t->now_ms ? t->now_ms : rd_int(got->elem[1]);
	for (size_t i = 0; i < t->good_n; i++) {
		const struct rd_plan *p = t->good[i];

		for (size_t k = 0; k < p->o->entry_n; k++) {
			if (p->news[k].item == RD_ITEM_NEW)
				p->news[k].id = ++next * t->r->shard_n + t->shard;
		}
	}
	return 0;
}

static size_t changed_in(const struct rd_part *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->good_n; i++)
		n += t->good[i]->changed_n;
	return n;
}

/* When changed entries were seen first, and how often they have changed. */
static int rows_read(struct rd_part *t, struct fw_err *err)
{
	struct rd_reply *rows;
	struct rd_conn *c;
	size_t at = 0;
	int rc;

	if (!changed_in(t))
		return 0;
	c = rd_ask(t->r, t->shard, "HMGET", "entries", changed_in(t), err);
	if (!c)
		return FW_ERR_CODE(err);
	for (size_t i = 0; i < t->good_n; i++) {
		for (size_t k = 0; k < t->good[i]->o->entry_n; k++) {
			if (t->good[i]->news[k].item == RD_ITEM_CHANGED)
				rd_add_int(c, t->good[i]->news[k].id);
		}
	}
	rc = rd_run1(t->r, t->shard, &t->r->arena, &rows, "reading entries that have changed", err);
	for (size_t i = 0; i < t->good_n && !rc; i++) {
		struct rd_plan *p = t->good[i];

		for (size_t k = 0; k < p->o->entry_n; k++) {
			struct fw_entry_row was;

			if (p->news[k].item != RD_ITEM_CHANGED)
				continue;
			if (rd_entry_unpack(rows->elem[at++]->text, &was)) {
				p->news[k].seen_ms = was.seen_ms;
				p->news[k].revision = was.revision;
			} else { /* somebody took it away by hand */
				p->news[k].item = RD_ITEM_GONE;
				p->changed_n--;
				p->gone_n++;
			}
		}
	}
	return rc;
}

int rd_news_take(struct rd_part *t, struct fw_err *err)
{
	int rc = numbers_take(t, err);

	return rc ? rc : rows_read(t, err);
}

/* ---- the commands -------------------------------------------------------------------------------------------------------------- */

struct mention { /* of an entry in the list of its day */
	int64_t day, id, date_ms;
};

static int by_day(const void *a, const void *b)
{
	const struct mention *x = a, *y = b;

	if (x->day != y->day)
		return x->day < y->day ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

/* The entries of one visit, and their keys. What gets a new place among the dates is noted. */
static int entries_send(struct rd_part *t, const struct rd_plan *p, struct mention *m, size_t *n, struct fw_err *err)
{
	size_t row_n = p->new_n + p->changed_n;
	struct rd_conn *c = row_n ? rd_ask(t->r, t->shard, "HSET", "entries", 2 * row_n, err) : rd_shard(t->r, t->shard, err);
	char name[40];

	if (!c)
		return FW_ERR_CODE(err);
	for (size_t i = 0; i < p->o->entry_n; i++) {
		const struct fw_entry_row *e = &p->o->entries[i];
		struct rd_news *at = &p->news[i];
		int64_t date_ms, before_ms = at->date_ms;

		if (at->item != RD_ITEM_NEW && at->item != RD_ITEM_CHANGED)
			continue;
		at->seen_ms = at->item == RD_ITEM_NEW ? t->now_ms : at->seen_ms;
		date_ms = at->date_ms = fw_store_entry_date(e, at->seen_ms);
		rd_add_int(c, at->id);
		rd_entry_pack(rd_word_begin(c), p->o->feed_id, at->seen_ms, t->now_ms, at->revision + 1, e);
		rd_word_end(c);
		if (at->item == RD_ITEM_NEW || date_ms != before_ms)
			m[(*n)++] = (struct mention){rd_day_of(date_ms), at->id, date_ms};
	}
	keys_name(name, p->o->feed_id);
	c = rd_ask(t->r, t->shard, "HSET", name, 2 * (row_n + p->gone_n), err);
	for (size_t i = 0; i < p->o->entry_n && c; i++) {
		struct rd_news *at = &p->news[i];

		if (at->item == RD_ITEM_SAME)
			continue;
		rd_add(c, key_of(&p->o->entries[i]));
		rd_known_pack(rd_word_begin(c), &(struct rd_known){p->o->entries[i].hash, at->id * (at->item != RD_ITEM_GONE), at->date_ms});
		rd_word_end(c);
	}
	return c ? 0 : FW_ERR_CODE(err);
}

/* Its new entries are counted and published. */
static int new_send(struct rd_part *t, const struct rd_plan *p, struct fw_err *err)
{
	struct rd_conn *c = rd_ask(t->r, t->shard, "HINCRBY", "entry_n", 2, err);
	struct fw_buf *b;

	if (!c)
		return FW_ERR_CODE(err);
	rd_add_int(c, p->o->feed_id);
	rd_add_int(c, (int64_t)p->new_n);
	if (!t->r->stream_max)
		return 0;
	c = rd_ask(t->r, t->shard, "XADD", "new", 5, err);
	if (!c)
		return FW_ERR_CODE(err);
	rd_add(c, FW_STR("*"));
	rd_add(c, FW_STR("feed"));
	rd_add_int(c, p->o->feed_id);
	rd_add(c, FW_STR("entries"));
	b = rd_word_begin(c);
	for (size_t i = 0, k = 0; i < p->o->entry_n; i++) {
		if (p->news[i].item == RD_ITEM_NEW)
			fw_buf_addf(b, k++ ? " %lld" : "%lld", (long long)p->news[i].id);
	}
	rd_word_end(c);
	return 0;
}

/* For each day the numbers and dates that come to its list. */
static int days_send(struct rd_part *t, struct mention *m, size_t n, struct fw_err *err)
{
	struct rd_conn *c = NULL;
	size_t day_n = 0;
	char name[40];

	if (n)
		qsort(m, n, sizeof(*m), by_day);
	for (size_t i = 0; i < n;) {
		struct fw_buf *b;
		int64_t day = m[i].day;

		(void)fw_snprintf(name, sizeof(name), "dates:%lld", (long long)day);
		c = rd_ask(t->r, t->shard, "APPEND", name, 1, err);
		if (!c)
			return FW_ERR_CODE(err);
		for (b = rd_word_begin(c); i < n && m[i].day == day; i++) {
			rd_number(b, m[i].id);
			rd_number_add(b, m[i].date_ms);
			fw_buf_addc(b, '\n');
		}
		rd_word_end(c);
		day_n++;
	}
	c = day_n ? rd_ask(t->r, t->shard, "ZADD", "days", 2 * day_n, err) : NULL;
	for (size_t i = 0; i < n && c; i++) {
		for (int k = 0; k < 2 && (!i || m[i].day != m[i - 1].day); k++)
			rd_add_int(c, m[i].day);
	}
	return day_n && !c ? FW_ERR_CODE(err) : 0;
}

static int count_send(struct rd_part *t, const char *what, size_t n, struct fw_err *err)
{
	struct rd_conn *c = n ? rd_ask(t->r, t->shard, "HINCRBY", "meta", 2, err) : NULL;

	if (!c)
		return n ? FW_ERR_CODE(err) : 0;
	rd_add(c, fw_str(what));
	rd_add_int(c, (int64_t)n);
	return 0;
}

/* What is counted for all, the stream's length, and that the numbers are used. moved_n: lines in lists of days that are stale now. */
static int counts_send(struct rd_part *t, size_t new_n, size_t moved_n, struct fw_err *err)
{
	struct rd_conn *c;
	int rc = count_send(t, "entry_n", new_n, err);

	rc = rc ? rc : count_send(t, "stale_n", moved_n, err);
	if (rc || !new_n)
		return rc;
	if (t->r->stream_max) {
		c = rd_ask(t->r, t->shard, "XTRIM", "new", 3, err);
		if (!c)
			return FW_ERR_CODE(err);
		rd_add(c, FW_STR("MAXLEN"));
		rd_add(c, FW_STR("~"));
		rd_add_int(c, t->r->stream_max);
	}
	return t->shard ? 0 : rd_numbers_used(t, err);
}

int rd_numbers_used(struct rd_part *t, struct fw_err *err)
{
	struct rd_conn *c = rd_ask(t->r, 0, "HDEL", "storing", 1, err);

	if (!c)
		return FW_ERR_CODE(err);
	rd_add(c, fw_str(t->r->me));
	return 0;
}

int rd_news_send(struct rd_part *t, struct fw_err *err)
{
	struct mention *m;
	size_t n = 0, new_n = 0;
	int rc = 0;

	for (size_t i = 0; i < t->good_n; i++) {
		new_n += t->good[i]->new_n;
		n += t->good[i]->new_n + t->good[i]->changed_n;
	}
	m = fw_arena_mul(&t->r->arena, n + 1, sizeof(*m), 0);
	if (!m)
		return rd_no_memory(t->r, err);
	n = 0;
	for (size_t i = 0; i < t->good_n && !rc; i++) {
		const struct rd_plan *p = t->good[i];

		if (rd_brings(p))
			rc = entries_send(t, p, m, &n, err);
		if (!rc && p->new_n)
			rc = new_send(t, p, err);
	}
	rc = rc ? rc : days_send(t, m, n, err);
	return rc ? rc : counts_send(t, new_n, n - new_n, err);
}
