/* SPDX-License-Identifier: ISC */
/*
 * The usual form of a crawler on Redis, with hiredis: due times in a sorted set, leases in another,
 * a hash for each feed; one job at a time, with pipelined commands. And the lower bound for a
 * batch: a script that does only that.
 */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench.h"
#include "store/dsn.h"

static redisContext *db_open(const char *url)
{
	redisContext *db;
	struct fw_dsn d;
	struct fw_arena a;
	struct fw_err err;

	fw_arena_init(&a, 0);
	if (fw_dsn_split(&a, FW_DSN_STORE, url, &d, &err))
		die_of("the server's URL", &err);
	db = redisConnectUnix(fw_arena_printf(&a, "/%s", d.path.p));
	if (!db || db->err)
		die("%s: %s", url, db ? db->errstr : "out of memory");
	fw_arena_finish(&a);
	return db;
}

static redisReply *answer(redisContext *db)
{
	void *p = NULL;
	redisReply *r;

	if (redisGetReply(db, &p) != REDIS_OK)
		die("%s", db->errstr);
	r = p;
	if (r->type == REDIS_REPLY_ERROR)
		die("%s", r->str);
	return r;
}

static void pass(redisContext *db, int n) /* skips this many replies */
{
	while (n-- > 0)
		freeReplyObject(answer(db));
}

/* The number after a word of INFO. */
static double info(redisContext *db, const char *section, const char *word)
{
	redisReply *r;
	const char *at;
	double n;

	redisAppendCommand(db, "INFO %s", section);
	r = answer(db);
	at = strstr(r->str, word);
	if (!at || !fw_str_double(fw_str_sub(fw_str(at + strlen(word)), 0, strcspn(at + strlen(word), "\r")), &n))
		die("INFO of the server has no %s", word);
	freeReplyObject(r);
	return n;
}

/* Rewrites the log now, so that earlier writes do not cause it during a measurement. */
static void settle(redisContext *db)
{
	while (info(db, "persistence", "aof_rewrite_in_progress:") > 0)
		usleep(50000);
	redisAppendCommand(db, "BGREWRITEAOF");
	pass(db, 1);
	do
		usleep(50000);
	while (info(db, "persistence", "aof_rewrite_in_progress:") + info(db, "persistence", "aof_rewrite_scheduled:") >
		0);
}

static void configure(const char *url, const char *name, const char *value)
{
	redisContext *db = db_open(url);

	redisAppendCommand(db, "CONFIG SET %s %s", name, value);
	pass(db, 1);
	redisFree(db);
}

static void ref_fill(const char *url, int64_t feeds)
{
	redisContext *db = db_open(url);

	redisAppendCommand(db, "DEL classic:due classic:leases");
	pass(db, 1);
	for (int64_t at = 1; at <= feeds; at += 1000) {
		redisAppendCommand(db, "EVAL %s 0 %lld %lld",
			"for i = ARGV[1], ARGV[2] do redis.call('ZADD', 'classic:due', math.random(1e9), i)"
			" redis.call('HSET', 'classic:feed:' .. i, 'url', 'https://www.host-' .. i .."
			" '.example/feed/' .. i .. '.xml') end",
			(long long)at, (long long)FW_MIN(at + 999, feeds));
		pass(db, 1);
	}
	settle(db);
	redisFree(db);
}

static void classic_work(struct crew *c, int worker, const void *ctx)
{
	redisContext *db = db_open(ctx);

	(void)worker;
	crew_begin(c);
	while (crew_on(c)) {
		redisReply *r;
		const char *id;

		redisAppendCommand(db, "ZPOPMIN classic:due 1");
		r = answer(db);
		if (r->elements != 2)
			die("the reference's queue is empty: --feeds is too small");
		id = r->element[0]->str;
		redisAppendCommand(db, "ZADD classic:leases 1763730060000 %s", id);
		redisAppendCommand(db, "HSET classic:feed:%s worker w leased 1763730000000", id);
		pass(db, 2);
		redisAppendCommand(db, "ZREM classic:leases %s", id);
		redisAppendCommand(db, "ZADD classic:due 176373%s %s", r->element[1]->str, id);
		redisAppendCommand(db, "HSET classic:feed:%s visited 1763730000000 status 304", id);
		pass(db, 3);
		freeReplyObject(r);
		crew_done(c, 1);
	}
	redisFree(db);
}

static struct work ref_claim(const char *url, int workers, double seconds, int job_ms)
{
	(void)job_ms;
	return crew_run(workers, seconds, 0, classic_work, url);
}

/* ---- a batch by a script --------------------------------------------------------------------- */

#define BATCH 500
static const char take[] = "local f = redis.call('ZRANGE', 'classic:due', 0, ARGV[1] - 1) local z = {}"
			   " for i = 1, #f do z[2 * i - 1] = ARGV[2] z[2 * i] = f[i] end"
			   " redis.call('ZREMRANGEBYRANK', 'classic:due', 0, #f - 1)"
			   " redis.call('ZADD', 'classic:leases', unpack(z)) return f";
static const char give[] =
	"local z, f = {}, {} for i = 2, #ARGV do z[2 * i - 3] = ARGV[1] + i z[2 * i - 2] ="
	" ARGV[i] f[i - 1] = ARGV[i] end"
	" redis.call('ZREM', 'classic:leases', unpack(f)) redis.call('ZADD', 'classic:due', unpack(z)) return 1";

static void load(redisContext *db, const char *script, char sha[41])
{
	redisReply *r;

	redisAppendCommand(db, "SCRIPT LOAD %s", script);
	r = answer(db);
	if (!fw_str_copy(sha, 41, (struct fw_str){r->str, r->len}))
		die("SCRIPT LOAD: no digest");
	freeReplyObject(r);
}

static void script_work(struct crew *c, int worker, const void *ctx)
{
	redisContext *db = db_open(ctx);
	char take_sha[41], give_sha[41], due[24];
	const char *argv[BATCH + 4] = {"EVALSHA", give_sha, "0", due};
	int64_t at = 2000000000 + worker;

	load(db, take, take_sha);
	load(db, give, give_sha);
	crew_begin(c);
	while (crew_on(c)) {
		redisReply *r;

		redisAppendCommand(db, "EVALSHA %s 0 %d 1763730060000", take_sha, BATCH);
		r = answer(db);
		for (size_t i = 0; i < r->elements; i++)
			argv[4 + i] = r->element[i]->str;
		if (!fw_snprintf(due, sizeof(due), "%lld", (long long)(at += BATCH)))
			die("the time is too late");
		redisAppendCommandArgv(db, 4 + (int)r->elements, argv, NULL);
		pass(db, 1);
		crew_done(c, (int64_t)r->elements);
		freeReplyObject(r);
	}
	redisFree(db);
}

/* ---- entries --------------------------------------------------------------------------------- */

/*
 * One entry per round trip: the feed's keys show whether it is new, then a hash and its place in
 * the list, in one transaction.
 */
static double ref_entries(const char *url, int64_t n, size_t bytes)
{
	redisContext *db = db_open(url);
	struct fw_entry_row e;
	struct fw_arena a;
	double start;

	fw_arena_init(&a, 0);
	configure(url, "auto-aof-rewrite-percentage", "0"); /* it is rewritten now, not during a measurement */
	settle(db);
	sleep(1); /* by then its files are on the disk, too */
	start = now_s();
	for (int64_t i = 0; i < n; i++) {
		make_entry(&e, i / 25, i, bytes, &a);
		redisAppendCommand(db, "MULTI");
		redisAppendCommand(db, "HSETNX classic:keys:%lld %b %lld", (long long)(i / 25), e.key, sizeof(e.key),
			(long long)i);
		redisAppendCommand(db,
			"HSET classic:entry:%lld guid %b url %b title %b author %b published %lld content %b",
			(long long)i, e.guid.p, e.guid.len, e.url.p, e.url.len, e.title.p, e.title.len, e.author.p,
			e.author.len, (long long)e.published_ms, e.content.p, e.content.len);
		redisAppendCommand(db, "ZADD classic:entries:%lld %lld %lld", (long long)(i / 25),
			(long long)e.published_ms, (long long)i);
		redisAppendCommand(db, "EXEC");
		pass(db, 5);
		fw_arena_reset(&a, 1 << 16);
	}
	start = (double)n / (now_s() - start);
	for (int64_t i = 0; i < n; i++) {
		redisAppendCommand(db, "UNLINK classic:entry:%lld classic:keys:%lld classic:entries:%lld", (long long)i,
			(long long)i, (long long)i);
		pass(db, 1);
	}
	fw_arena_finish(&a);
	redisFree(db);
	return start;
}

/* ---- rows of Redis alone --------------------------------------------------------------------- */

/* Of one store, where others share the memory: all of it, minus the others' keys. */
static double memory_bytes(const char *url)
{
	static const char others[] =
		"local n, c = 0, '0' repeat local p = redis.call('SCAN', c, 'COUNT', 10000) for _, k in ipairs(p[2]) do"
		" if k:sub(1, #ARGV[1]) ~= ARGV[1] then n = n + redis.call('MEMORY', 'USAGE', k,"
		" 'SAMPLES', 20) end end c = p[1] until c == '0' return n";
	redisContext *db = db_open(url);
	struct fw_str prefix;
	struct fw_arena a;
	struct fw_dsn d;
	struct fw_err err;
	redisReply *r;
	double bytes;

	fw_arena_init(&a, 0);
	if (fw_dsn_split(&a, FW_DSN_STORE, url, &d, &err))
		die_of("the server's URL", &err);
	prefix = fw_dsn_option(&d, "prefix");
	redisAppendCommand(db, "EVAL %s 0 {%b/", others, prefix.p, prefix.len);
	r = answer(db);
	bytes = info(db, "memory", "used_memory:") - (double)r->integer;
	freeReplyObject(r);
	fw_arena_finish(&a);
	redisFree(db);
	return bytes;
}

/* Of its append-only file, which is not rewritten from now on. */
static double log_bytes(const char *url)
{
	redisContext *db = db_open(url);
	double bytes;

	configure(url, "auto-aof-rewrite-percentage", "0");
	bytes = info(db, "persistence", "aof_current_size:");
	redisFree(db);
	return bytes;
}

/* Both, alternating. */
static void least(const struct engine *e, struct schedule *w)
{
	static struct samples ours, rate, server; /* large */

	w->batch = 500;
	for (int64_t r = 0; r < set.runs; r++) {
		struct work k = crew_run(e->workers, set.seconds, 0, script_work, w->url);

		sample(&rate, k.rate);
		sample(&server, k.server_cpu * 1e6 / (double)FW_MAX(k.done, 1));
		sample(&ours, turn_schedule(w, e->workers, set.seconds, 0).rate);
	}
	row_ratio("claim + commit against a bare script of two sorted sets", &ours, &rate, 0, "feeds/s");
	row("  CPU of the server in the bare script, a feed", median(&server), "us");
}

static void schedule_more(const struct engine *e, struct schedule *w)
{
	static struct samples rate; /* large */

	least(e, w);
	configure(w->url, "appendfsync", "always");
	for (int64_t r = 0; r < set.runs; r++)
		sample(&rate, turn_schedule(w, e->workers, set.seconds, 0).rate);
	row("AOF always: claim + commit, 500 a batch, 4 processes", median(&rate), "feeds/s");
	configure(w->url, "appendfsync", "everysec");
	configure(w->url, "auto-aof-rewrite-percentage", "100");
}

static void more(const struct engine *e)
{
	char url[400];

	if (!wanted("entries"))
		return;
	store_url(e, url, sizeof(url), "bench");
	configure(url, "appendfsync", "always");
	entries_row(e, "AOF always: new entries in bulk, against one a MULTI", 0);
	configure(url, "appendfsync", "everysec");
	configure(url, "auto-aof-rewrite-percentage", "100");
}

const struct engine engine_redis = {
	.name = "redis",
	.workers = 4,
	.claim_least = 200000,
	.entry_goal = 5,
	.classic = "one job after another, pipelined",
	.ref_fill = ref_fill,
	.ref_claim = ref_claim,
	.ref_entries = ref_entries,
	.log_bytes = log_bytes,
	.disk_bytes = memory_bytes,
	.schedule_more = schedule_more,
	.more = more,
};
