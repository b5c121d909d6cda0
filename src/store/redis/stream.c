/* SPDX-License-Identifier: ISC */
/*
 * Rows for a stream: one connection for each call, one XADD for each row, all in one transaction.
 * The server need not hold a store, so only what concerns the connection is used of struct rs.
 */
#include <stdlib.h>

#include "store/redis/redis.h"

static void stream_word(struct rs_conn *c, int64_t n)
{
	fw_buf_addf(rs_conn_word(c), "%lld", (long long)n);
	rs_conn_word_end(c);
}

static void stream_collect(struct rs_conn *c, const struct redis_destination *s)
{
	rs_conn_command(c, "MULTI");
	for (size_t i = 0; i < s->n; i++) {
		const struct store_stream_row *row = &s->row[i];

		rs_conn_begin(c);
		rs_conn_add(c, FW_STR("XADD"));
		rs_conn_add(c, s->stream);
		if (s->max) {
			rs_conn_add(c, FW_STR("MAXLEN"));
			rs_conn_add(c, FW_STR("~"));
			stream_word(c, s->max);
		}
		rs_conn_add(c, FW_STR("*"));
		rs_conn_add(c, FW_STR("id"));
		stream_word(c, row->id);
		rs_conn_add(c, FW_STR("type"));
		rs_conn_add(c, fw_str(row->type));
		rs_conn_add(c, FW_STR("feed_id"));
		stream_word(c, row->feed_id);
		rs_conn_add(c, FW_STR("message_id"));
		rs_conn_add(c, s->message_id);
		rs_conn_add(c, FW_STR("message"));
		rs_conn_add(c, row->text);
	}
	rs_conn_command(c, "EXEC");
}

/* Each row got its id. An error of a row is inside the reply of EXEC. */
static int stream_check(struct rs *r, const struct redis_destination *s, const struct rs_reply *all, struct fw_err *err)
{
	static const char doing[] = "appending to the stream";
	const struct rs_reply *exec = rs_elem(all, all->n - 1), *bad = rs_reply_error(all);

	bad = bad ? bad : rs_reply_error(exec);
	if (bad)
		return rs_error(r, bad->text, doing, err);
	return rs_reply_fits(exec, "(t)=", s->n) ? 0 : rs_malformed(r, doing, err);
}

static int stream_send(struct rs *r, const struct redis_destination *s, struct fw_err *err)
{
	struct rs_conn *c;
	struct rs_reply *all;
	int rc = rs_conn_open(&r->target, r->target.host.p ? r->target.host.p : "", r->target.port, &c, err);

	if (rc)
		return rc;
	rc = rs_authenticate(r, c, err);
	if (!rc) {
		stream_collect(c, s);
		rc = rs_conn_exchange(c, &r->arena, &all, err);
	}
	rc = rc ? rc : stream_check(r, s, all, err);
	rs_conn_close(c);
	return rc;
}

int rs_stream_append(const struct redis_destination *s, struct fw_err *err)
{
	struct rs *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return fw_no_memory(err);
	fw_arena_init(&r->own, 0);
	fw_arena_init(&r->arena, 0);
	fw_dsn_show(&r->shown, s->url);
	r->target.name = r->shown.p ? r->shown.p : "redis";
	rc = rs_target_read(r, s->url, err);
	if (!rc) {
		r->target.connect_timeout_ms = r->target.timeout_ms = s->timeout_ms;
		r->target.refuses = s->refuses;
		r->target.refuses_ctx = s->ctx;
		rc = stream_send(r, s, err);
	}
	fw_buf_finish(&r->shown);
	fw_arena_finish(&r->arena);
	fw_arena_finish(&r->own);
	free(r);
	return rc;
}
