/* SPDX-License-Identifier: ISC */
/*
 * Rows as another store had them: redis/load.lua writes them, this file puts them into its arguments. And the keys that a copy reads.
 *
 * A feed's number says which shard it is on, and its host does too; numbers from elsewhere do not know of that, so only a store of one
 * shard takes them.
 */
#include <stdlib.h>

#include "store/redis.h"

#define KEYS_AT_ONCE 50 /* feeds whose keys are asked for in one pipeline */

/* Which wide groups of a feed hold anything. */
static unsigned groups_of(const struct fw_feed *f, struct fw_buf value[5])
{
	unsigned groups = 0;

	for (size_t g = 0; g < FW_N(rd_feed_group); g++) {
		fw_buf_reset(&value[g]);
		rd_pack(&value[g], &rd_feed_group[g], f);
		groups |= value[g].len ? 1u << g : 0;
	}
	return groups;
}

static size_t bit_n(unsigned groups)
{
	size_t n = 0;

	for (; groups; groups >>= 1)
		n += groups & 1;
	return n;
}

static void feed_add(const struct redis *r, struct rd_conn *c, const struct fw_feed *f, struct fw_buf value[5])
{
	unsigned groups = groups_of(f, value);
	char host[256];

	(void)rd_feed_host(r, f, host, sizeof(host)); /* the front has looked */
	rd_add(c, FW_STR("f"));
	rd_add_int(c, f->id);
	rd_add(c, f->url);
	rd_add(c, fw_str(host));
	rd_add_int(c, f->created_ms);
	rd_add_int(c, f->due_at_ms);
	rd_add_int(c, (int64_t)f->status);
	rd_add_int(c, f->fail_n);
	rd_add_int(c, f->last_new_ms);
	rd_add_int(c, groups);
	rd_pack(rd_word_begin(c), &rd_feed_own, f);
	rd_word_end(c);
	rd_state_pack(rd_word_begin(c), 0, f);
	rd_word_end(c);
	for (size_t g = 0; g < FW_N(rd_feed_group); g++) {
		if (groups >> g & 1)
			rd_add(c, fw_buf_str(&value[g]));
	}
}

static void key_add(struct rd_conn *c, const unsigned char key[16], uint64_t hash)
{
	char text[17];

	(void)fw_snprintf(text, sizeof(text), "%016llx", (unsigned long long)hash);
	rd_add(c, (struct fw_str){(const char *)key, 16});
	rd_add(c, fw_str(text));
}

static void entry_add(struct rd_conn *c, const struct fw_entry_row *e)
{
	rd_add(c, FW_STR("e"));
	rd_add_int(c, e->feed_id);
	rd_add_int(c, e->id);
	key_add(c, e->key, e->hash);
	rd_add_int(c, fw_store_entry_date(e, e->seen_ms));
	rd_entry_pack(rd_word_begin(c), e->feed_id, e->seen_ms, e->changed_ms, e->revision, e);
	rd_word_end(c);
}

static void visit_add(struct rd_conn *c, const struct fw_visit *v)
{
	rd_add(c, FW_STR("v"));
	rd_add_int(c, v->id);
	rd_add_int(c, v->feed_id);
	rd_add_int(c, v->run_id);
	rd_add_int(c, v->new_n);
	rd_add_int(c, v->changed_n);
	rd_visit_pack(rd_word_begin(c), v);
	rd_word_end(c);
}

int rd_load(struct fw_store *st, const struct fw_load *l, struct fw_err *err)
{
	struct redis *r = redis_of(st);
	struct fw_buf value[5] = {FW_BUF_INIT(0), FW_BUF_INIT(0), FW_BUF_INIT(0), FW_BUF_INIT(0), FW_BUF_INIT(0)};
	size_t argc = l->feed_n * 12 + l->entry_n * 7 + l->key_n * 4 + l->visit_n * 7;
	struct rd_reply *answer;
	struct rd_conn *c;
	int rc = rd_may_write(r, err);

	if (rc)
		return rc;
	if (r->shard_n != 1)
		return fw_err_set(err, FW_EUNSUP, "%s: a store of several shards takes no copies: copy into one without ?shards=",
			r->target.name);
	fw_arena_reset(&r->arena, RD_ARENA_KEEP);
	for (size_t i = 0; i < l->feed_n; i++)
		argc += bit_n(groups_of(&l->feed[i], value));
	c = rd_op(r, 0, RD_WRITE, "load", argc, err);
	for (size_t i = 0; c && i < l->feed_n; i++)
		feed_add(r, c, &l->feed[i], value);
	for (size_t i = 0; c && i < l->entry_n; i++)
		entry_add(c, &l->entry[i]);
	for (size_t i = 0; c && i < l->key_n; i++) {
		rd_add(c, FW_STR("k"));
		rd_add_int(c, l->key[i].feed_id);
		key_add(c, l->key[i].key, l->key[i].hash);
	}
	for (size_t i = 0; c && i < l->visit_n; i++)
		visit_add(c, &l->visit[i]);
	rc = c ? rd_run1(r, 0, &r->arena, &answer, "loading", err) : FW_ERR_CODE(err);
	for (size_t g = 0; g < FW_N(value); g++)
		fw_buf_finish(&value[g]);
	if (!rc && answer->type == RD_ARRAY)
		rc = fw_err_set(err, FW_EINVAL, "%s: feed %lld is not the feed %lld that is here: copy into an empty store", r->target.name,
			(long long)rd_int(answer->elem[0]), (long long)rd_int(answer->elem[1]));
	return rc;
}

/* ---- keys ------------------------------------------------------------------------------------------------------------------------ */

static int keys_show(int64_t feed_id, const struct rd_reply *all, fw_key_cb *cb, void *ctx)
{
	int rc = 0;

	for (size_t i = 0; i + 1 < all->n && !rc; i += 2) {
		struct fw_entry_key k = {.feed_id = feed_id};
		struct fw_str key = all->elem[i]->text;
		struct rd_known known;

		memcpy(k.key, key.p, FW_MIN(key.len, sizeof(k.key)));
		if (rd_known_read(all->elem[i + 1]->text, &known))
			k.entry_id = known.id;
		k.hash = known.hash;
		rc = cb(ctx, &k);
	}
	return rc;
}

int rd_key_list(struct fw_store *st, int64_t first, int64_t last, fw_key_cb *cb, void *ctx, struct fw_err *err)
{
	struct redis *r = redis_of(st);
	int64_t highest;
	int rc;

	fw_arena_reset(&r->arena, RD_ARENA_KEEP);
	rc = rd_last_feed(r, &highest, err);
	for (int64_t at = FW_MAX(first, 1); at <= FW_MIN(last, highest) && !rc;) {
		struct rd_reply **all = NULL;
		int64_t from = at;

		fw_arena_reset(&r->arena, RD_ARENA_KEEP);
		if (r->shard_n == 1) {
			at = FW_MIN(from + KEYS_AT_ONCE, FW_MIN(last, highest) + 1);
		} else {
			at = from + 1; /* the next one is on another shard */
		}
		for (int64_t id = from; id < at && !rc; id++) {
			char key[40];

			(void)fw_snprintf(key, sizeof(key), "keys:%lld", (long long)id);
			rc = rd_ask(r, rd_shard_of_feed(r, id), "HGETALL", key, 0, err) ? 0 : FW_ERR_CODE(err);
		}
		rc = rc ? rc : rd_run(r, rd_shard_of_feed(r, from), &r->arena, &all, "listing keys", err);
		for (int64_t id = from; id < at && !rc; id++)
			rc = keys_show(id, all[id - from], cb, ctx);
	}
	return rc;
}
