/* SPDX-License-Identifier: ISC */
/* What doctor asks: is the store whole, what is the server's clock, and how safe is what it was told? */
#include "store/redis.h"

struct fw_str rd_info(struct redis *r, const char *section, const char *name)
{
	struct fw_err spare;
	struct rd_conn *c = rd_shard(r, 0, &spare);
	struct fw_str rest, line;
	struct rd_reply *all;

	if (!c)
		return FW_STR_NONE;
	rd_begin(c, 2);
	rd_add(c, FW_STR("INFO"));
	rd_add(c, fw_str(section));
	if (rd_exchange(c, &r->arena, &all, &spare) || all->elem[0]->type != RD_TEXT)
		return FW_STR_NONE;
	rest = all->elem[0]->text;
	while (rest.p) {
		struct fw_str value;

		line = fw_str_trim(fw_str_split(rest, '\n', &rest));
		if (fw_str_eq(fw_str_split(line, ':', &value), fw_str(name)))
			return value;
	}
	return FW_STR_NONE;
}

/* ---- check ------------------------------------------------------------------------------------------------------------------------- */

struct findings {
	void (*cb)(void *ctx, const char *finding);
	void *ctx;
};

static void say_all(const struct findings *f, const struct rd_reply *list)
{
	for (size_t i = 0; i < list->n; i++)
		f->cb(f->ctx, list->elem[i]->text.p);
}

static int check_shard(struct redis *r, int shard, const struct findings *f, struct fw_err *err)
{
	char cursor[32] = "0";
	struct rd_reply *reply;
	struct rd_conn *c;
	int64_t last;
	int rc = rd_last_feed(r, &last, err);

	for (int64_t at = shard + 1; at <= last && !rc; at += (int64_t)RD_CHUNK * r->shard_n) {
		fw_arena_reset(&r->arena, RD_ARENA_KEEP);
		c = rd_op(r, shard, RD_READ, "check_feeds", RD_CHUNK, err);
		if (!c)
			return FW_ERR_CODE(err);
		for (int i = 0; i < RD_CHUNK; i++)
			rd_add_int(c, at + (int64_t)i * r->shard_n);
		rc = rd_run1(r, shard, &r->arena, &reply, "checking feeds", err);
		if (!rc)
			say_all(f, reply);
	}
	do {
		c = rc ? NULL : rd_op(r, shard, RD_READ, "check_hosts", 1, err);
		if (!c)
			return rc ? rc : FW_ERR_CODE(err);
		rd_add(c, fw_str(cursor));
		rc = rd_run1(r, shard, &r->arena, &reply, "checking hosts", err);
		if (rc)
			return rc;
		say_all(f, reply->elem[1]);
		(void)fw_str_copy(cursor, sizeof(cursor), reply->elem[0]->text);
	} while (strcmp(cursor, "0") != 0);
	c = rd_op(r, shard, RD_READ, "check_rest", 0, err);
	rc = c ? rd_run1(r, shard, &r->arena, &reply, "checking counts", err) : FW_ERR_CODE(err);
	if (!rc)
		say_all(f, reply);
	return rc;
}

int rd_check(struct fw_store *st, void (*cb)(void *ctx, const char *finding), void *ctx, struct fw_err *err)
{
	struct redis *r = redis_of(st);
	struct findings f = {cb, ctx};
	int rc = 0;

	fw_arena_reset(&r->arena, RD_ARENA_KEEP);
	for (int shard = 0; shard < r->shard_n && !rc; shard++)
		rc = check_shard(r, shard, &f, err);
	return rc;
}

/* ---- what doctor asks --------------------------------------------------------------------------------------------------------------- */

int rd_clock(struct fw_store *st, int64_t *now_ms, struct fw_err *err)
{
	struct redis *r = redis_of(st);
	struct rd_conn *c = rd_shard(r, 0, err);
	struct rd_reply *reply;
	int rc;

	if (!c)
		return FW_ERR_CODE(err);
	fw_arena_reset(&r->arena, RD_ARENA_KEEP);
	rd_command(c, "TIME");
	rc = rd_run1(r, 0, &r->arena, &reply, "asking its clock", err);
	if (!rc)
		*now_ms = rd_int(reply->elem[0]) * 1000 + rd_int(reply->elem[1]) / 1000;
	return rc;
}

/* A setting of the server, such as "everysec"; absent when it keeps them to itself. */
static struct fw_str setting(struct redis *r, const char *name)
{
	struct fw_err spare;
	struct rd_conn *c = rd_shard(r, 0, &spare);
	struct rd_reply *all;

	if (!c)
		return FW_STR_NONE;
	rd_begin(c, 3);
	rd_add(c, FW_STR("CONFIG"));
	rd_add(c, FW_STR("GET"));
	rd_add(c, fw_str(name));
	if (rd_exchange(c, &r->arena, &all, &spare) || all->elem[0]->type != RD_ARRAY || all->elem[0]->n != 2)
		return FW_STR_NONE;
	return all->elem[0]->elem[1]->text;
}

static void inspect_durability(struct redis *r, fw_inspect_cb *cb, void *ctx)
{
	struct fw_str fsync = setting(r, "appendfsync");
	char text[100];

	if (fw_str_eq(rd_info(r, "persistence", "aof_last_write_status"), FW_STR("err")))
		cb(ctx, "durability", 2, "the server could not write its append-only file", "free some space on its disk, and look at its log");
	if (fw_str_eq(rd_info(r, "persistence", "aof_enabled"), FW_STR("0"))) {
		cb(ctx, "durability", 1, "no append-only file: a crash of the server takes what came after its last snapshot",
			"redis-cli CONFIG SET appendonly yes, and the same in its configuration");
	} else if (fw_str_eq(fsync, FW_STR("no"))) {
		cb(ctx, "durability", 1, "appendfsync is no: a power cut takes half a minute",
			"redis-cli CONFIG SET appendfsync everysec, and the same in its configuration");
	} else if (fw_str_eq(setting(r, "aof-load-truncated"), FW_STR("yes"))) {
		cb(ctx, "durability", 1, "aof-load-truncated is yes: a crash can leave half a transaction in the append-only file, and the next one completes it",
			"feedwheel-store(7), REDIS, tells what to do");
	} else {
		(void)fw_snprintf(text, sizeof(text), "append-only file, appendfsync %.*s%s", FW_STR_ARG(fsync.p ? fsync : FW_STR("unknown")),
			fw_str_eq(fsync, FW_STR("everysec")) ? ": a crash takes two seconds at most" : "");
		cb(ctx, "durability", 0, text, "");
	}
}

static void inspect_memory(struct redis *r, fw_inspect_cb *cb, void *ctx)
{
	struct fw_str policy = rd_info(r, "memory", "maxmemory_policy");
	int64_t max = 0, used = 0;
	char text[100];

	if (!fw_str_int(rd_info(r, "memory", "maxmemory"), &max) || !fw_str_int(rd_info(r, "memory", "used_memory"), &used))
		return;
	(void)fw_snprintf(text, sizeof(text), "%lld MB used, maxmemory %lld MB%s", (long long)(used >> 20), (long long)(max >> 20),
		max ? "" : " (none)");
	if (max && !fw_str_eq(policy, FW_STR("noeviction")))
		cb(ctx, "eviction", 2, "when it is full, the server drops keys at its pleasure",
			"redis-cli CONFIG SET maxmemory-policy noeviction, and the same in its configuration");
	if (max && used / 10 > max / 11)
		cb(ctx, "memory", 1, text, "raise its maxmemory, or lower keep_entries");
	else
		cb(ctx, "memory", 0, text, "");
}

int rd_inspect(struct fw_store *st, fw_inspect_cb *cb, void *ctx, struct fw_err *err)
{
	struct redis *r = redis_of(st);
	struct fw_str valkey, version;
	int64_t now_ms;
	char text[160];
	int rc = rd_clock(st, &now_ms, err); /* it answers; what INFO does not tell is passed over */

	if (rc)
		return rc;
	valkey = rd_info(r, "server", "valkey_version"); /* its redis_version is the one that it is compatible with */
	version = valkey.p ? valkey : rd_info(r, "server", "redis_version");
	(void)fw_snprintf(text, sizeof(text), "%s %.*s, %d shard%s", valkey.p ? "Valkey" : "Redis",
		FW_STR_ARG(fw_str_sub(version.p ? version : FW_STR("?"), 0, 40)), r->shard_n, r->shard_n == 1 ? "" : "s: takes no copies, and feeds keep to their host's shard");
	cb(ctx, "server", 0, text, "");
	inspect_durability(r, cb, ctx);
	inspect_memory(r, cb, ctx);
	return 0;
}
