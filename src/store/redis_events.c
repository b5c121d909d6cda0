/* SPDX-License-Identifier: ISC */
/*
 * Pushed events: sorted sets "incoming" and "incoming_dead" of the first shard. The score is the time of the id, in milliseconds, and a
 * member begins with the id as 19 digits, so members come in order of their ids. The same row again is the same member: nothing is
 * stored twice. All of a batch is one command.
 *
 *	incoming       "id property_section property_id stamp remote_ip property", - for an unknown address
 *	incoming_dead  "id at_ms row", a line end, and the reason
 */
#include "base/ids.h"
#include "store/redis.h"

#define LIST_STEP 1000

static void member_begin(struct fw_buf *b, int64_t id)
{
	fw_buf_addf(b, "%019lld ", (long long)id);
}

static void event_add(struct rd_conn *c, const struct fw_event *e)
{
	struct fw_buf *b;

	rd_add_int(c, fw_ids_ms(e->id));
	b = rd_word_begin(c);
	member_begin(b, e->id);
	fw_buf_addf(b, "%lld %lld %lld ", (long long)e->section, (long long)e->item, (long long)e->stamp_ms);
	fw_buf_addstr(b, e->remote_ip.len ? e->remote_ip : FW_STR("-"));
	fw_buf_addc(b, ' ');
	fw_buf_addstr(b, e->property);
	rd_word_end(c);
}

int rd_event_put(struct fw_store *st, const struct fw_event *event, size_t n, struct fw_err *err)
{
	struct redis *r = redis_of(st);
	struct rd_reply *reply;
	struct rd_conn *c;
	int rc = rd_may_write(r, err);

	if (rc)
		return rc;
	fw_arena_reset(&r->arena, RD_ARENA_KEEP);
	c = rd_ask(r, 0, "ZADD", "incoming", 2 * n, err);
	if (!c)
		return FW_ERR_CODE(err);
	for (size_t i = 0; i < n; i++)
		event_add(c, &event[i]);
	return rd_run1(r, 0, &r->arena, &reply, "storing events", err);
}

/* The word that a dead one is stored as. */
static void dead_add(struct rd_conn *c, const struct fw_dead_event *e)
{
	struct fw_buf *b = rd_word_begin(c);

	member_begin(b, e->id);
	fw_buf_addf(b, "%lld ", (long long)e->at_ms);
	fw_buf_addstr(b, e->row);
	fw_buf_addc(b, '\n');
	fw_buf_addstr(b, e->reason);
	rd_word_end(c);
}

int rd_event_bury(struct fw_store *st, const struct fw_dead_event *event, struct fw_err *err)
{
	struct redis *r = redis_of(st);
	struct rd_reply *reply;
	struct rd_conn *c;
	int rc = rd_may_write(r, err);

	if (rc)
		return rc;
	fw_arena_reset(&r->arena, RD_ARENA_KEEP);
	c = rd_op(r, 0, RD_WRITE, "event_bury", 3, err);
	if (!c)
		return FW_ERR_CODE(err);
	rd_add_int(c, fw_ids_ms(event->id));
	member_begin(rd_word_begin(c), event->id);
	rd_word_end(c);
	dead_add(c, event);
	return rd_run1(r, 0, &r->arena, &reply, "setting an event aside", err);
}

int rd_event_unbury(struct fw_store *st, const struct fw_dead_event *event, size_t n, struct fw_err *err)
{
	struct redis *r = redis_of(st);
	struct rd_reply *reply;
	struct rd_conn *c;
	int rc = rd_may_write(r, err);

	if (rc)
		return rc;
	fw_arena_reset(&r->arena, RD_ARENA_KEEP);
	c = rd_ask(r, 0, "ZREM", "incoming_dead", n, err);
	if (!c)
		return FW_ERR_CODE(err);
	for (size_t i = 0; i < n; i++)
		dead_add(c, &event[i]);
	return rd_run1(r, 0, &r->arena, &reply, "taking events back", err);
}

/* ---- reading ------------------------------------------------------------------------------------------------------------------- */

static bool word_int(struct fw_str *rest, int64_t *out)
{
	return fw_str_int(fw_str_split(*rest, ' ', rest), out);
}

static bool id_read(struct fw_str *member, int64_t *out)
{
	while (member->len > 1 && member->p[0] == '0' && member->p[1] != ' ')
		*member = fw_str_sub(*member, 1, member->len);
	return word_int(member, out);
}

static bool event_read(struct fw_str m, struct fw_event *e)
{
	if (!id_read(&m, &e->id) || !word_int(&m, &e->section) || !word_int(&m, &e->item) || !word_int(&m, &e->stamp_ms))
		return false;
	e->remote_ip = fw_str_split(m, ' ', &e->property);
	if (fw_str_eq(e->remote_ip, FW_STR("-")))
		e->remote_ip.len = 0;
	return e->property.p != NULL;
}

static bool dead_read(struct fw_str m, struct fw_dead_event *e)
{
	if (!id_read(&m, &e->id) || !word_int(&m, &e->at_ms))
		return false;
	e->row = fw_str_split(m, '\n', &e->reason);
	return e->reason.p != NULL;
}

struct listing {
	fw_event_cb *cb;
	fw_dead_event_cb *dead_cb;
	void *ctx;
};

/* One member; *id is its event's. What others have put there is passed over. */
static int show(const struct listing *l, struct fw_str member, int64_t after_id, int64_t *id)
{
	struct fw_event e = {0};
	struct fw_dead_event d = {0};

	*id = 0;
	if (l->cb ? !event_read(member, &e) : !dead_read(member, &d))
		return 0;
	*id = l->cb ? e.id : d.id;
	if (*id <= after_id)
		return 0;
	return l->cb ? l->cb(l->ctx, &e) : l->dead_cb(l->ctx, &d);
}

/* In portions, each from the score of the last one on, over as many as were seen with that score. */
static int list(struct redis *r, const char *key, int64_t after_id, size_t limit, const struct listing *l, struct fw_err *err)
{
	int64_t score = fw_ids_ms(FW_MAX(after_id, INT64_C(0))), seen = 0, id;
	size_t shown = 0, got = LIST_STEP;
	int rc = 0;

	while (!rc && got == LIST_STEP && (!limit || shown < limit)) {
		struct rd_reply *page;
		struct rd_conn *c;

		fw_arena_reset(&r->arena, RD_ARENA_KEEP);
		c = rd_ask(r, 0, "ZRANGEBYSCORE", key, 5, err);
		if (!c)
			return FW_ERR_CODE(err);
		rd_add_int(c, score);
		rd_add(c, FW_STR("+inf"));
		rd_add(c, FW_STR("LIMIT"));
		rd_add_int(c, seen);
		rd_add_int(c, LIST_STEP);
		rc = rd_run1(r, 0, &r->arena, &page, "listing events", err);
		got = rc ? 0 : page->n;
		for (size_t i = 0; i < got && !rc && (!limit || shown < limit); i++) {
			rc = show(l, page->elem[i]->text, after_id, &id);
			shown += id > after_id;
			if (id && fw_ids_ms(id) != score) {
				score = fw_ids_ms(id);
				seen = 0;
			}
			seen++;
		}
	}
	return rc;
}

int rd_event_list(struct fw_store *st, int64_t after_id, size_t limit, fw_event_cb *cb, void *ctx, struct fw_err *err)
{
	struct listing l = {.cb = cb, .ctx = ctx};

	return list(redis_of(st), "incoming", after_id, limit, &l, err);
}

int rd_event_dead_list(struct fw_store *st, int64_t after_id, size_t limit, fw_dead_event_cb *cb, void *ctx, struct fw_err *err)
{
	struct listing l = {.dead_cb = cb, .ctx = ctx};

	return list(redis_of(st), "incoming_dead", after_id, limit, &l, err);
}

/* The time up to which a step goes: that of its last one, or before_ms when there are not so many. */
static int step_end(struct redis *r, const char *key, int64_t before_ms, int64_t *end_ms, struct fw_err *err)
{
	struct rd_reply *last;
	struct rd_conn *c;
	struct fw_str member;
	int64_t id;
	int rc;

	*end_ms = before_ms - 1;
	c = rd_ask(r, 0, "ZRANGEBYSCORE", key, 5, err);
	if (!c)
		return FW_ERR_CODE(err);
	rd_add(c, FW_STR("-inf"));
	rd_add_int(c, before_ms - 1);
	rd_add(c, FW_STR("LIMIT"));
	rd_add_int(c, FW_EVENT_STEP - 1);
	rd_add_int(c, 1);
	rc = rd_run1(r, 0, &r->arena, &last, "pruning events", err);
	if (rc || !last->n)
		return rc;
	member = last->elem[0]->text;
	if (id_read(&member, &id))
		*end_ms = FW_MIN(*end_ms, fw_ids_ms(id));
	return 0;
}

/* By the times of their ids, which are those of their stamps, or a moment later. A millisecond goes as a whole. */
int rd_event_prune(struct fw_store *st, int64_t before_ms, int64_t *n, struct fw_err *err)
{
	static const char *const KEY[] = {"incoming", "incoming_dead"};
	struct redis *r = redis_of(st);
	int rc = rd_may_write(r, err);

	fw_arena_reset(&r->arena, RD_ARENA_KEEP);
	for (size_t i = 0; i < FW_N(KEY) && !rc; i++) {
		struct rd_reply *gone;
		struct rd_conn *c;
		int64_t end_ms;

		rc = step_end(r, KEY[i], before_ms, &end_ms, err);
		if (rc)
			return rc;
		c = rd_ask(r, 0, "ZREMRANGEBYSCORE", KEY[i], 2, err);
		if (!c)
			return FW_ERR_CODE(err);
		rd_add(c, FW_STR("-inf"));
		rd_add_int(c, end_ms);
		rc = rd_run1(r, 0, &r->arena, &gone, "pruning events", err);
		*n += rc ? 0 : rd_int(gone);
	}
	return rc;
}
