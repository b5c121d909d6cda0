/* SPDX-License-Identifier: ISC */
/*
 * Records, all on the first shard. Kind and key are one name, "kind key": a space comes before all letters of a kind, so names are in
 * the order of kinds and keys.
 *
 *	records        hash, name to "at_ms until_ms value"; until_ms is - for ever
 *	record_names   sorted set of the names, all with score 0
 *	record_ends    sorted set of the names of those that run out, by until_ms
 */
#include "store/redis.h"

#define LIST_STEP 200

static void name_add(struct rd_conn *c, const char *before, struct fw_str kind, const char *between, struct fw_str key)
{
	struct fw_buf *b = rd_word_begin(c);

	fw_buf_adds(b, before);
	fw_buf_addstr(b, kind);
	fw_buf_adds(b, between);
	fw_buf_addstr(b, key);
	rd_word_end(c);
}

/* Begin an operation that writes: so many words follow. NULL: err is set. */
static struct rd_conn *write_begin(struct redis *r, const char *op, size_t argc, struct fw_err *err)
{
	if (rd_may_write(r, err))
		return NULL;
	fw_arena_reset(&r->arena, RD_ARENA_KEEP);
	return rd_op(r, 0, RD_WRITE, op, argc, err);
}

int rd_record_put(struct fw_store *st, const struct fw_record *r, bool if_absent, bool *was, struct fw_err *err)
{
	struct redis *rd = redis_of(st);
	struct rd_conn *c = write_begin(rd, "record_put", 5, err);
	struct rd_reply *reply;
	int rc;

	if (!c)
		return FW_ERR_CODE(err);
	name_add(c, "", r->kind, " ", r->key);
	rd_add(c, r->value);
	rd_add_int(c, r->at_ms);
	if (r->until_ms == FW_NO_DATE)
		rd_add(c, FW_STR("-"));
	else
		rd_add_int(c, r->until_ms);
	rd_add_int(c, if_absent);
	rc = rd_run1(rd, 0, &rd->arena, &reply, "storing a record", err);
	*was = !rc && rd_int(reply);
	return rc;
}

/* False: somebody else has put it there. */
static bool record_read(struct fw_str name, struct fw_str text, struct fw_record *out)
{
	struct fw_str at, until;

	out->kind = fw_str_split(name, ' ', &out->key);
	at = fw_str_split(text, ' ', &text);
	until = fw_str_split(text, ' ', &out->value);
	out->until_ms = FW_NO_DATE;
	return out->key.len && out->value.p && fw_str_int(at, &out->at_ms) && (fw_str_eq(until, FW_STR("-")) || fw_str_int(until, &out->until_ms));
}

int rd_record_get(struct fw_store *st, struct fw_str kind, struct fw_str key, struct fw_arena *a, struct fw_record *out,
	struct fw_err *err)
{
	struct redis *r = redis_of(st);
	struct rd_reply *reply;
	struct rd_conn *c;
	int rc;

	fw_arena_reset(&r->arena, RD_ARENA_KEEP);
	c = rd_ask(r, 0, "HGET", "records", 1, err);
	if (!c)
		return FW_ERR_CODE(err);
	name_add(c, "", kind, " ", key);
	rc = rd_run1(r, 0, &r->arena, &reply, "reading a record", err);
	if (rc)
		return rc;
	*out = (struct fw_record){0};
	if (reply->type != RD_TEXT || !record_read(FW_STR("k n"), reply->text, out))
		return fw_store_record_missing(r->target.name, kind, err);
	out->kind = kind;
	out->key = key;
	return fw_store_record_dup(a, out) ? 0 : rd_no_memory(r, err);
}

/* The next names; *names is an array. */
static int names_read(struct redis *r, const struct fw_record_query *q, struct fw_str after, size_t n, struct rd_reply **names,
	struct fw_err *err)
{
	struct rd_conn *c = rd_ask(r, 0, "ZRANGEBYLEX", "record_names", 5, err);

	if (!c)
		return FW_ERR_CODE(err);
	if (after.len)
		name_add(c, "(", FW_STR(""), "", after);
	else
		rd_add(c, FW_STR("-"));
	if (q->kind.p)
		name_add(c, "(", q->kind, "!", FW_STR("")); /* comes behind the space */
	else
		rd_add(c, FW_STR("+"));
	rd_add(c, FW_STR("LIMIT"));
	rd_add_int(c, 0);
	rd_add_int(c, (int64_t)n);
	return rd_run1(r, 0, &r->arena, names, "listing records", err);
}

/* Show these; what was removed meanwhile is passed over. */
static int names_show(struct redis *r, const struct rd_reply *names, fw_record_cb *cb, void *ctx, struct fw_err *err)
{
	struct rd_conn *c = rd_ask(r, 0, "HMGET", "records", names->n, err);
	struct rd_reply *texts;
	int rc;

	if (!c)
		return FW_ERR_CODE(err);
	for (size_t i = 0; i < names->n; i++)
		rd_add(c, names->elem[i]->text);
	rc = rd_run1(r, 0, &r->arena, &texts, "reading records", err);
	for (size_t i = 0; i < names->n && !rc; i++) {
		struct fw_record record = {0};

		if (texts->elem[i]->type == RD_TEXT && record_read(names->elem[i]->text, texts->elem[i]->text, &record))
			rc = cb(ctx, &record);
	}
	return rc;
}

int rd_record_list(struct fw_store *st, const struct fw_record_query *q, fw_record_cb *cb, void *ctx, struct fw_err *err)
{
	struct redis *r = redis_of(st);
	struct fw_buf after = FW_BUF_INIT(0);
	size_t left = q->limit ? q->limit : SIZE_MAX, got;
	int rc;

	if (q->after_kind.len)
		fw_buf_addf(&after, "%.*s ", FW_STR_ARG(q->after_kind));
	fw_buf_addstr(&after, q->after_key);
	do {
		struct rd_reply *names = NULL;
		size_t n = FW_MIN(left, (size_t)LIST_STEP);

		fw_arena_reset(&r->arena, RD_ARENA_KEEP);
		rc = after.rc ? rd_no_memory(r, err) : names_read(r, q, fw_buf_str(&after), n, &names, err);
		got = rc ? 0 : names->n;
		if (got) {
			fw_buf_reset(&after);
			fw_buf_addstr(&after, names->elem[got - 1]->text);
			rc = names_show(r, names, cb, ctx, err);
		}
		left -= got;
	} while (!rc && got == LIST_STEP && left);
	fw_buf_finish(&after);
	return rc;
}

int rd_record_remove(struct fw_store *st, struct fw_str kind, struct fw_str key, struct fw_str value, struct fw_err *err)
{
	struct redis *r = redis_of(st);
	struct rd_conn *c = write_begin(r, "record_remove", value.p ? 2 : 1, err);
	struct rd_reply *reply;
	int rc;

	if (!c)
		return FW_ERR_CODE(err);
	name_add(c, "", kind, " ", key);
	if (value.p)
		rd_add(c, value);
	rc = rd_run1(r, 0, &r->arena, &reply, "removing a record", err);
	return rc || rd_int(reply) ? rc : fw_store_record_missing(r->target.name, kind, err);
}

int rd_record_prune(struct fw_store *st, int64_t now_ms, int64_t *n, struct fw_err *err)
{
	struct redis *r = redis_of(st);
	struct rd_conn *c = write_begin(r, "record_prune", 2, err);
	struct rd_reply *reply;
	int rc;

	if (!c)
		return FW_ERR_CODE(err);
	rd_add_int(c, now_ms);
	rd_add_int(c, FW_RECORD_STEP);
	rc = rd_run1(r, 0, &r->arena, &reply, "pruning records", err);
	*n = rc ? 0 : rd_int(reply);
	return rc;
}
