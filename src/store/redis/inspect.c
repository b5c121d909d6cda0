/* SPDX-License-Identifier: ISC */
/*
 * The checks of `doctor`: durability and memory of the server, and on demand the integrity of all
 * rows.
 */
#include "store/redis/redis.h"

/* ---- the server ------------------------------------------------------------------------------ */

/* A setting of the server, such as "everysec"; absent if the server does not permit CONFIG. */
static struct fw_str server_setting_read(struct rs *r, const char *name)
{
	struct fw_err spare;
	struct rs_conn *c = r->conn;
	struct rs_reply *all;

	rs_conn_begin(c);
	rs_conn_add(c, FW_STR("CONFIG"));
	rs_conn_add(c, FW_STR("GET"));
	rs_conn_add(c, fw_str(name));
	return rs_conn_exchange(c, &r->arena, &all, &spare) ? FW_STR_NONE : rs_elem(rs_elem(all, 0), 1)->text;
}

static void inspect_durability(struct rs *r, fw_inspect_cb *cb, void *ctx)
{
	struct fw_str fsync = server_setting_read(r, "appendfsync");
	char text[100];

	if (fw_str_eq(rs_info(r, "persistence", "aof_last_write_status"), FW_STR("err")))
		cb(ctx, "durability", 2, "the server could not write its append-only file",
			"free some space on its disk, and check its log");
	if (fw_str_eq(rs_info(r, "persistence", "aof_enabled"), FW_STR("0"))) {
		cb(ctx, "durability", 1,
			"no append-only file: a crash of the server loses all changes since its last snapshot",
			"run 'redis-cli CONFIG SET appendonly yes', and set it in the server's configuration");
	} else if (fw_str_eq(fsync, FW_STR("no"))) {
		cb(ctx, "durability", 1, "appendfsync is no: a power cut loses the changes of half a minute",
			"run 'redis-cli CONFIG SET appendfsync everysec', and set it in the server's configuration");
	} else if (fw_str_eq(server_setting_read(r, "aof-load-truncated"), FW_STR("yes"))) {
		cb(ctx, "durability", 1,
			"aof-load-truncated is yes: a crash can leave half a transaction in the append-only file, and "
			"the next one completes it",
			"see feedwheel-store(7), section REDIS");
	} else {
		(void)fw_snprintf(text, sizeof(text), "append-only file, appendfsync %.*s%s",
			FW_STR_ARG(fsync.p ? fsync : FW_STR("unknown")),
			fw_str_eq(fsync, FW_STR("everysec")) ? ": a crash loses two seconds at most" : "");
		cb(ctx, "durability", 0, text, "");
	}
}

static void inspect_memory(struct rs *r, fw_inspect_cb *cb, void *ctx)
{
	struct fw_str policy = rs_info(r, "memory", "maxmemory_policy");
	int64_t max = 0, used = 0;
	char text[100];

	if (!fw_str_int(rs_info(r, "memory", "maxmemory"), &max) ||
		!fw_str_int(rs_info(r, "memory", "used_memory"), &used))
		return;
	(void)fw_snprintf(text, sizeof(text), "%lld MB used, maxmemory %lld MB%s", (long long)(used >> 20),
		(long long)(max >> 20), max ? "" : " (none)");
	if (max && !fw_str_eq(policy, FW_STR("noeviction")))
		cb(ctx, "eviction", 2,
			"maxmemory-policy is not noeviction: when its memory is full, the server drops keys",
			"run 'redis-cli CONFIG SET maxmemory-policy noeviction', and set it in the server's "
			"configuration");
	if (max && used / 10 > max / 11)
		cb(ctx, "memory", 1, text, "raise the server's maxmemory, or lower entries_retention_ms");
	else
		cb(ctx, "memory", 0, text, "");
}

static void inspect_server(struct rs *r, fw_inspect_cb *cb, void *ctx)
{
	/*
	 * Fields that INFO lacks are skipped. On Valkey redis_version is the Redis release that it
	 * is compatible with.
	 */
	struct fw_str valkey = rs_info(r, "server", "valkey_version"), version = valkey;
	char text[160];

	if (!valkey.p)
		version = rs_info(r, "server", "redis_version");
	(void)fw_snprintf(text, sizeof(text), "%s %.*s%s", valkey.p ? "Valkey" : "Redis",
		FW_STR_ARG(fw_str_sub(version.p ? version : FW_STR("?"), 0, 40)), r->cluster ? ", a cluster" : "");
	cb(ctx, "server", 0, text, "");
}

/* ---- the deep check -------------------------------------------------------------------------- */

struct redis_findings {
	fw_inspect_cb *cb;
	void *ctx;
	int64_t entry_id, visit_id, feed_id; /* the last ids that were given */
};

static void finding_report(const struct redis_findings *f, const char *name, const char *text)
{
	f->cb(f->ctx, name, 2, text, "restore a backup, or copy the feeds to a new store");
}

/* From `at` on, {feed, shard, host, address} of a feed; feed is 0 for a stored host. */
static void row_check(const struct redis_findings *f, const struct rs_reply *rows, size_t at)
{
	struct fw_feed feed = {.id = rs_int(rs_elem(rows, at))};
	int64_t shard = rs_int(rs_elem(rows, at + 1)), host_id = rs_int(rs_elem(rows, at + 2));
	char text[160] = "";
	struct fw_str rest;

	feed.url = fw_str_split(rs_elem(rows, at + 3)->text, '\n', &feed.host_key);
	feed.host_key = fw_str_split(feed.host_key, '\n', &rest);
	if (!feed.host_key.len)
		feed.host_key = FW_STR_NONE;
	if (feed.id && host_id != store_feed_host_id(&feed))
		(void)fw_snprintf(text, sizeof(text), "feed %lld: stored with host %lld, which is not its host",
			(long long)feed.id, (long long)host_id);
	else if (store_host_shard(host_id) != shard)
		(void)fw_snprintf(text, sizeof(text), "host %lld: stored in the wrong shard, %lld", (long long)host_id,
			(long long)shard);
	else if (feed.id > f->feed_id)
		(void)fw_snprintf(text, sizeof(text), "feed_id is %lld, but feed %lld exists", (long long)f->feed_id,
			(long long)feed.id);
	if (text[0])
		finding_report(f, "schedule", text);
}

static int rows_check(struct rs *r, const struct redis_findings *f, struct fw_err *err)
{
	const struct rs_reply *got, *rows;
	char text[120];
	int rc;

	fw_arena_reset(&r->arena, RS_ARENA_KEEP);
	rs_call(r, RS_READ, "check");
	rs_expect(r, "[(t)(titt)]");
	rc = rs_run(r, "checking", err);
	if (rc)
		return rc;
	got = rs_elem(r->reply[0], 0);
	rows = rs_elem(r->reply[0], 1);
	for (size_t i = 0; i < got->n; i++)
		finding_report(f, "rows", rs_elem(got, i)->text.p);
	if (!rows->n)
		return 0;
	rs_command_key(r, "HMGET", "urls");
	rs_expect_n(r, "(t?)=", rows->n / 4);
	for (size_t i = 0; i + 4 <= rows->n; i += 4) {
		row_check(f, rows, i);
		rs_add(r, rs_address_url(rs_elem(rows, i + 3)->text));
	}
	rc = rs_run(r, "checking feeds", err);
	for (size_t i = 0; !rc && i + 4 <= rows->n; i += 4) {
		int64_t id = rs_int(rs_elem(rows, i));

		if (!id || rs_int(rs_elem(r->reply[0], i / 4)) == id)
			continue;
		(void)fw_snprintf(text, sizeof(text), "feed %lld: its address belongs to another feed", (long long)id);
		finding_report(f, "addresses", text);
	}
	return rc;
}

/* Changes have numbers of the same counter: raise *last to the highest. */
static int last_change_read(struct rs *r, int64_t *last, struct fw_err *err)
{
	int rc;

	rs_command_key(r, "ZREVRANGE", "changes");
	rs_expect_n(r, "(tt)<", 1);
	rs_addi(r, 0);
	rs_addi(r, 0);
	rs_adds(r, "WITHSCORES");
	rc = rs_run(r, "checking changes", err);
	*last = rc ? *last : FW_MAX(*last, rs_int(rs_elem(r->reply[0], 1)));
	return rc;
}

static int deep_check(struct rs *r, fw_inspect_cb *cb, void *ctx, struct fw_err *err)
{
	struct redis_findings f = {.cb = cb, .ctx = ctx};
	const struct rs_reply *got;
	char text[120];
	struct fw_store_stats s;
	int rc = rs_stats(&r->store, &s, err);

	rc = rc ? rc : last_change_read(r, &s.last_entry_id, err);
	if (rc)
		return rc;
	rs_call(r, RS_READ, "check_meta");
	rs_expect(r, "[(t)i?i?i?]");
	rc = rs_run(r, "checking leases", err);
	if (rc)
		return rc;
	got = r->reply[0];
	for (size_t i = 0; i < rs_elem(got, 0)->n; i++)
		finding_report(&f, "leases", rs_elem(rs_elem(got, 0), i)->text.p);
	f.entry_id = rs_int(rs_elem(got, 1));
	f.visit_id = rs_int(rs_elem(got, 2));
	f.feed_id = rs_int(rs_elem(got, 3));
	if (f.entry_id < s.last_entry_id || f.visit_id < s.last_visit_id) {
		(void)fw_snprintf(text, sizeof(text), "entry_id is %lld and visit_id is %lld: higher ids exist",
			(long long)f.entry_id, (long long)f.visit_id);
		finding_report(&f, "meta", text);
	}
	return rows_check(r, &f, err);
}

int rs_inspect(struct store *st, bool deep, fw_inspect_cb *cb, void *ctx, struct fw_err *err)
{
	struct rs *r = rs_of(st);
	int64_t now_ms;
	int rc = rs_clock(st, &now_ms, err); /* also checks that the server answers */

	if (rc || deep)
		return rc ? rc : deep_check(r, cb, ctx, err);
	inspect_server(r, cb, ctx);
	inspect_durability(r, cb, ctx);
	inspect_memory(r, cb, ctx);
	return rs_inbox_inspect(r, cb, ctx, err);
}
