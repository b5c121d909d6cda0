/* SPDX-License-Identifier: ISC */
/*
 * The Redis driver and what a server can do to it: every refusal has its code and its remedy, nothing is half-done, and the same call
 * succeeds when the trouble is over. A commit whose answer was lost is known again. And what only this driver has: addresses pushed by
 * other programs, the stream of new entries, shards on a cluster, TLS.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "common.h"
#include "server_redis.h"

#define HOUR 3600000

static struct fw_arena A;
static char dir[220], sock[240], url[400];
static pid_t server;

/* ---- a server of the test's own -------------------------------------------------------------------------------------------- */

static void server_up(const char *const *more)
{
	const char *argv[40] = {"--port", "0", "--unixsocket", sock, NULL};

	for (size_t n = 4; more && *more && n < FW_N(argv) - 1; n++)
		argv[n] = *more++;
	server = redis_run(dir, true, argv);
	for (int64_t start = fw_mono_ms(); !redis_answers(sock); usleep(5000)) {
		if (fw_mono_ms() - start > 60000)
			ck_abort_msg("the server does not answer");
	}
}

static void server_down(int sig)
{
	redis_end(server, sig);
	unlink(sock);
	server = 0;
}

static void setup(void)
{
	static int n;

	fw_arena_init(&A, 0);
	ck_assert(fw_snprintf(dir, sizeof(dir), "%s/own%d_%d", scratch(), (int)getpid(), n++));
	ck_assert_int_eq(mkdir(dir, 0755), 0);
	ck_assert(fw_snprintf(sock, sizeof(sock), "%s/s", dir));
	ck_assert(fw_snprintf(url, sizeof(url), "redis+unix://%s", sock));
}

static void teardown(void)
{
	if (server)
		server_down(SIGKILL);
	fw_arena_finish(&A);
}

/* Say one command to a server and give its answer's begin. */
static const char *say_to(const char *path, const char *words)
{
	static char answer[4096];
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	ssize_t n;

	ck_assert(fw_str_copy(sa.sun_path, sizeof(sa.sun_path), fw_str(path)));
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	ck_assert_int_eq(dprintf(fd, "%s\r\n", words), (int)strlen(words) + 2);
	n = read(fd, answer, sizeof(answer) - 1);
	answer[n > 0 ? n : 0] = '\0';
	close(fd);
	return answer;
}

static const char *say(const char *words)
{
	return say_to(sock, words);
}

static void told(const char *words)
{
	const char *answer = say(words);

	ck_assert_msg(answer[0] == '+' || answer[0] == ':', "%s: %s", words, answer);
}

/* ---- visits ---------------------------------------------------------------------------------------------------------------------- */

struct one { /* a visit that is ready to be committed */
	struct fw_lease lease[1];
	struct fw_feed feed;
	struct fw_entry_row entry[3];
	struct fw_outcome outcome;
	struct fw_commit commit;
};

static void lend_one(struct fw_store *st, struct one *v, int64_t at)
{
	ck_assert_uint_eq(claim_at(st, at, 1, v->lease, &A), 1);
	v->outcome = outcome_of(&v->lease[0], &v->feed, at);
	v->entry[0] = entry(1, 1, "one", "first");
	v->entry[1] = entry(2, 1, "two", "second");
	v->entry[2] = entry(3, 1, "three", NULL);
	v->entry[0].url = FW_STR("https://a.example/1");
	v->outcome.entries = v->entry;
	v->outcome.entry_n = 3;
	v->commit = (struct fw_commit){.now_ms = at, .outcome = &v->outcome, .n = 1};
}

static void stored_once(struct fw_store *st)
{
	ck_assert_int_eq(stats(st, NOW).entry_n, 3);
	ck_assert_int_eq(stats(st, NOW).visit_n, 1);
	ck_assert_int_eq(stats(st, NOW).lent_n, 0);
	check_clean(st);
}

/* A failed call: its code, and words that name the store and hold these. */
static void says(int rc, int code, const struct fw_err *err, const char *words)
{
	ck_assert_msg(rc == code, "%d instead of %d: %s", rc, code, err->text);
	ck_assert_msg(strstr(err->text, words) && strstr(err->text, "redis"), "\"%s\" is not in: %s", words, err->text);
	ck_assert_ptr_null(strchr(err->text, '\n'));
}

static void open_says(const char *at, unsigned flags, int code, const char *words)
{
	struct fw_store_config c = {.url = at, .flags = flags};
	struct fw_store *st = NULL;
	struct fw_err err = {0};
	int rc = fw_store_open(&c, &st, &err);

	says(rc, code, &err, words);
	ck_assert_ptr_null(st);
	ck_assert_ptr_null(strstr(err.text, "s3cret"));
}

/* ---- opening --------------------------------------------------------------------------------------------------------------------- */

START_TEST(urls_and_options)
{
	static const struct { const char *url, *words; } T[] = {
		{"redis://h/notanumber", "number of the database"}, {"redis://h/0?nonsense=1", "unknown option"},
		{"redis://h:99999", "port"}, {"redis://h/?prefix=a%20b", "prefix"}, {"redis://h/?shards=0", "shards"},
		{"redis://h/?verify=maybe", "yes or no"}, {"redis+unix://", "write redis+unix:///path"},
		{"redis+unix://host/path", "write redis+unix:///path"},
	};

	for (size_t i = 0; i < FW_N(T); i++) {
		struct fw_store_config c = {.url = T[i].url};
		struct fw_store *st;
		struct fw_err err = {0};

		IS(fw_store_open(&c, &st, &err), FW_EINVAL);
		ck_assert_msg(strstr(err.text, T[i].words) != NULL, "%s: %s", T[i].url, err.text);
	}
	open_says("redis://:s3cret@127.0.0.1:1/0", FW_STORE_CREATE, FW_EIO, "is the server running");
	open_says("redis+unix:///nowhere/at/all", FW_STORE_CREATE, FW_EIO, "is the server running");
	server_up(NULL);
	open_says(url, 0, FW_ENOTFOUND, "feedwheel add");
	open_says(url, FW_STORE_CREATE | FW_STORE_READ, FW_ENOTFOUND, "feedwheel add");
	ck_assert_str_eq(say("DBSIZE"), ":0\r\n"); /* nothing was made */
}
END_TEST

START_TEST(schemas) /* REL-15 */
{
	struct fw_feed_new n = {.url = FW_STR("https://b.example/")};
	struct fw_store *st;
	struct fw_err err = {0};
	char other[420];

	server_up(NULL);
	fw_store_close(store_open(url, FW_STORE_CREATE));
	st = store_open(url, FW_STORE_READ);
	ck_assert_int_eq(stats(st, NOW).schema, 4);
	IS(fw_store_subscribe(st, &n, 1, &err), FW_EINVAL);
	says(err.rc, FW_EINVAL, &err, "reading only");
	fw_store_close(st);
	told("HSET {feedwheel:0}:meta schema 99");
	open_says(url, FW_STORE_CREATE, FW_EVERSION, "upgrade feedwheel");
	told("SET {other:0}:meta string");
	ck_assert(fw_snprintf(other, sizeof(other), "%s?prefix=other", url));
	open_says(other, FW_STORE_CREATE, FW_EINVAL, "another program");
	ck_assert(fw_snprintf(other, sizeof(other), "%s?prefix=mine&shards=3", url));
	fw_store_close(store_open(other, FW_STORE_CREATE));
	ck_assert(fw_snprintf(other, sizeof(other), "%s?prefix=mine&shards=4", url));
	open_says(other, FW_STORE_CREATE, FW_EINVAL, "3 shards");
	ck_assert(fw_snprintf(other, sizeof(other), "%s?prefix=mine&db=77", url));
	open_says(other, FW_STORE_CREATE, FW_EINVAL, "no database with this number");
}
END_TEST

/* As the first version left it: two feeds of a crowd, one lent and one parked; one put off; one paused; visits in a list. */
static void schema_1(void)
{
	static const char *const words[] = {
		"HSET P:meta schema 1 shards 1 shard 0 last_feed 6 last_fence 9 last_entry 1 first_entry 1 entry_n 1 visit_n 3 visits_gone 2 paused 1",
		"HSET P:urls https://a.example/ 1 https://c.example/2 2 https://c.example/3 3 https://d.example/ 4 https://e.example/ 6",
		"HSET P:feeds 1 \"host=9:a.example\\ncreated_ms=1:7\\nurl=18:https://a.example/\\nfolder=4:News\\n\"",
		"HSET P:feeds 2 \"host=9:c.example\\ncreated_ms=1:7\\nurl=19:https://c.example/2\\n\"",
		"HSET P:feeds 3 \"host=9:c.example\\ncreated_ms=1:7\\nurl=19:https://c.example/3\\n\"",
		"HSET P:feeds 4 \"host=9:d.example\\ncreated_ms=1:7\\nurl=18:https://d.example/\\n\"",
		"HSET P:feeds 6 \"host=9:e.example\\ncreated_ms=1:7\\nurl=18:https://e.example/\\n\"",
		"HSET P:wheel 1 \"0000000000004/00001 01763700000000 09 5 1763730000000 4 304 0 0 1763720000000 1763720000000 11 12 =why so\"",
		"HSET P:wheel 2 \"0000000000002/00002 00000000000000 00 3 1763729990000 1 200 0 0 1763710000000 1763710000000 0 0 \"",
		"HSET P:wheel 3 \"0000000000000/00000 00000000000000 00 0 1763729995000 0 0 0 0 0 0 0 0 \"",
		"HSET P:wheel 4 \"0000000000000/00000 00000000000000 00 0 1763729995000 0 0 0 0 0 0 0 0 \"",
		"HSET P:wheel 6 \"0000000000000/00000 00000000000000 00 0 1763729000000 0 0 2 0 0 0 0 0 \"",
		"HSET P:error 1 \"error=5:words\\n\"", "HSET P:rhythm 1 \"rhythm=2:r1\\n\"",
		"HSET P:hosts a.example \"1 0 0 0 0 1\" c.example \"2 1 0 1 0 0\" d.example \"1 0 0 0 0 4\" e.example \"1 0 0 0 0 6\"",
		"ZADD P:due 1763730000000 1 1763733600000 6", "ZADD P:moved 1763729000000 6",
		"ZADD P:parked 1763729995000 3", "ZADD P:parked:c.example 1763729995000 3", "ZADD P:status 1 4", "ZADD P:failing 2 6",
		"HSET P:leases - large 2 9@c.example", "ZADD P:claims 1763730060000 9", "HSET P:claim_left 9 1", "HSET P:claim_feeds 9 \"w\\n2\"",
		"RPUSH P:visits \"0000000000000/00000 1 1 0 7 1763710000001 1 200 0 -1 0 0 0 0 0 0 0 0 0 1 \" "
			"\"0000000000000/00000 2 0 0 7 1763710000000 1 200 0 -1 0 0 0 0 0 0 0 0 0 0 =two\\nlines\\\\n\" "
			"\"0000000000002/00002 1 0 0 8 1763720000000 4 304 0 3 1 2 3 4 5 6 7 8 9 10 \" \"\"",
		"HSET P:runs 7 2 8 4",
		"HSET P:entries 1 \"1 1763700000000 1763700000000 1 key=16:0123456789abcdef\\nhash=16:0000000000000001\\ntitle=1:t\\n\"",
		"ZADD P:dates 1763700000000 000000000000001", "HSET P:entry_n 1 1", "HSET P:keys:1 0123456789abcdef \"0000000000000001 1\"",
	};

	for (size_t i = 0; i < FW_N(words); i++) {
		struct fw_buf b = FW_BUF_INIT(0);

		for (const char *p = words[i]; *p; p++) {
			if (fw_str_starts(fw_str(p), FW_STR(" P:")))
				fw_buf_adds(&b, " {feedwheel:0}");
			else
				fw_buf_addc(&b, *p);
			p += b.p[b.len - 1] == '}' ? 1 : 0;
		}
		told(b.p);
		fw_buf_finish(&b);
	}
}

static int words_of_visit(void *ctx, const struct fw_visit *v)
{
	fw_buf_addf(ctx, "%lld:%lld:%u:%lld:%.*s ", (long long)v->id, (long long)v->feed_id, v->new_n, (long long)v->total_us,
		FW_STR_ARG(v->error));
	return 0;
}

static const char *visits_told(struct fw_store *st, struct fw_visit_query q)
{
	static char text[300];
	struct fw_buf b = FW_BUF_INIT(0);
	struct fw_err err = {0};

	OK(fw_store_visit_list(st, &q, words_of_visit, &b, &err));
	ck_assert(fw_str_copy(text, sizeof(text), fw_buf_str(&b)));
	fw_buf_finish(&b);
	return text;
}

START_TEST(schema_1_is_made_over) /* REL-15: whoever opens it, and however often its opener is killed */
{
	struct fw_lease l[9];
	struct fw_control c;
	struct fw_store *st;
	struct fw_feed f;
	struct fw_err err = {0};

	server_up(NULL);
	schema_1();
	open_says(url, FW_STORE_READ, FW_EVERSION, "feedwheel run");
	open_says(url, FW_STORE_NO_MIGRATE, FW_EVERSION, "feedwheel run");
	st = store_open(url, 0);
	ck_assert_int_eq(stats(st, NOW).schema, 4);
	ck_assert_int_eq(stats(st, NOW).lent_n, 0);
	ck_assert_int_eq(stats(st, NOW).due_n, 4);
	ck_assert_int_eq(stats(st, NOW).visit_n, 3);
	check_clean(st);
	f = find(st, 1, &A);
	ck_assert(fw_str_eq(f.why, FW_STR("why so")) && fw_str_eq(f.folder, FW_STR("News")) && fw_str_eq(f.error, FW_STR("words")));
	ck_assert(fw_str_eq(f.rhythm, FW_STR("r1")) && f.last_new_ms == INT64_C(1763700000000) && f.expect_dev_us == 12 && f.created_ms == 7);
	ck_assert(f.due_at_ms == NOW && f.last_visit_ms == INT64_C(1763720000000) && f.http_status == 304 && f.entry_n == 1);
	ck_assert_int_eq(find(st, 4, &A).status, FW_FEED_PAUSED);
	ck_assert_uint_eq(find(st, 6, &A).fail_n, 2);
	ck_assert_str_eq(visits_told(st, (struct fw_visit_query){.oldest_first = true}), "3:1:1:0: 4:2:0:0:two\nlines\\n 5:1:0:6: ");
	ck_assert_str_eq(visits_told(st, (struct fw_visit_query){.feed_id = 1}), "5:1:0:6: 3:1:1:0: ");
	ck_assert_str_eq(visits_told(st, (struct fw_visit_query){.run_id = 8}), "5:1:0:6: ");
	ck_assert_str_eq(visits_told(st, (struct fw_visit_query){.feed_id = 2}), "4:2:0:0:two\nlines\\n ");
	OK(fw_store_control_take(st, -1, &c, &err));
	ck_assert(c.paused);
	ck_assert_uint_eq(claim_at(st, NOW, 9, l, &A), 3); /* one waits for what its host asked for */
	ck_assert(l[0].feed.id == 2 && l[1].feed.id == 3 && l[2].feed.id == 1 && l[0].fence == 10);
	check_clean(st);
	ck_assert_uint_eq(claim_at(st, NOW + HOUR, 9, l + 3, &A), 4);
	ck_assert_int_eq(entry_count(st, 1), 1);
	ck_assert_str_eq(say("EXISTS {feedwheel:0}:old:feeds {feedwheel:0}:wheel {feedwheel:0}:leases {feedwheel:0}:due"), ":0\r\n");
	fw_store_close(st);
}
END_TEST

/* Make a store of today, of which nothing was picked by number, one of schema 3: shorter values under other names. */
static void schema_3(const char *tag)
{
	static const char script[] = "EVAL \"local P, c = '{' .. ARGV[1] .. '}:', redis.call "
		"for from, to in pairs({line = 'queue', waiting = 'next', budgets = 'hosts', loans = 'claims'}) do "
		"if c('EXISTS', P .. from) == 1 then c('RENAME', P .. from, P .. to) end end "
		"local function all(key, fn) local v = c('HGETALL', P .. key) for i = 1, #v, 2 do c('HSET', P .. key, v[i], (fn(v[i + 1]))) end end "
		"all('feeds', function(v) return v:gsub('^([^\\\\n]*) %%-?%%d+\\\\n', '%%1\\\\n', 1) end) "
		"all('hosts', function(v) return v:match('^%%d+ %%d+ %%d+ %%d+ %%-?%%d+ %%d+') end) "
		"all('visits', function(v) return v:gsub('(\\\\n%%d+ %%S+ ' .. ('%%-?%%d+ '):rep(19) .. ')%%-?%%d+ %%-?%%d+ ', '%%1') end) "
		"c('HDEL', P .. 'meta', 'exact_hosts') return c('HSET', P .. 'meta', 'schema', 3)\" 0 %s";
	char words[sizeof(script) + 100];

	ck_assert(fw_snprintf(words, sizeof(words), script, tag));
	told(words);
}

/* Further back, to schema 2: contents apart, one sorted set of dates, the epoch in meta. */
static void schema_2(void)
{
	schema_3("feedwheel:0");
	told("EVAL \"local P, c = '{feedwheel:0}:', redis.call local rows = c('HGETALL', P .. 'entries') "
		"for i = 1, #rows, 2 do local row, at = rows[i + 1], nil local parts = {'', ''} parts[1], at = row:match('^(%d+ %d+ %d+ %d+ )()') "
		"while at <= #row do local name, len, from = row:match('^([%w_]+)=(%d+):()', at) local k = (name == 'content' or name == 'content_base') "
		"and 2 or 1 parts[k] = parts[k] .. row:sub(at, from + len) at = from + len + 1 end "
		"c('HSET', P .. 'entries', rows[i], parts[1]) if parts[2] ~= '' then c('HSET', P .. 'contents', rows[i], parts[2]) end end "
		"for _, key in ipairs(c('KEYS', P .. 'keys:*')) do local all = c('HGETALL', key) for i = 1, #all, 2 do "
		"local hash, id, date = all[i + 1]:match('^(%x+) (%d+) (%d+)$') c('HSET', key, all[i], hash .. ' ' .. id) "
		"c('ZADD', P .. 'dates', date, ('%015d'):format(id)) end end "
		"for _, key in ipairs(c('KEYS', P .. 'dates:*')) do c('DEL', key) end c('RENAME', P .. 'queue', P .. 'slots') "
		"if c('EXISTS', P .. 'next') == 1 then c('RENAME', P .. 'next', P .. 'soon') end "
		"c('HSET', P .. 'meta', 'schema', 2, 'epoch', c('GET', P .. 'epoch')) return c('DEL', P .. 'epoch', P .. 'days')\" 0");
}

static int contents_of(void *ctx, const struct fw_entry_row *e)
{
	fw_buf_addf(ctx, "%.*s:%.*s ", FW_STR_ARG(e->title), FW_STR_ARG(e->content));
	return 0;
}

/* The newest so many, "title:content" each. */
static const char *newest(struct fw_store *st, size_t n)
{
	struct fw_entry_query q = {.limit = n, .content = true};
	static char text[300];
	struct fw_buf b = FW_BUF_INIT(0);
	struct fw_err err = {0};

	OK(fw_store_entry_list(st, &q, contents_of, &b, &err));
	ck_assert(fw_str_copy(text, sizeof(text), fw_buf_str(&b)));
	fw_buf_finish(&b);
	return text;
}

#define OLD_N 2600 /* entries: some portions */

START_TEST(schema_2_is_made_over) /* REL-15: ten open it at once, and half of them are killed in it */
{
	struct fw_lease l[3];
	struct fw_feed f;
	struct fw_outcome late;
	struct fw_store *st, *old;
	struct fw_err err = {0};
	pid_t pid[10];

	server_up(NULL);
	st = store_open(url, FW_STORE_CREATE);
	subscribe_many(st, "https://h%d.example/", 0, 3, NOW);
	for (int i = 0; i < 2; i++)
		put_entries(st, &A, NOW + i, i * OLD_N / 2, (i + 1) * OLD_N / 2);
	ck_assert_uint_eq(claim_at(st, NOW + 9, 1, l, &A), 1);
	schema_2();
	open_says(url, FW_STORE_READ, FW_EVERSION, "schema 2 is older");
	for (int i = 0; i < 10; i++) {
		pid[i] = fork();
		if (pid[i] == 0) {
			fw_store_close(store_open(url, 0));
			_exit(0);
		}
	}
	for (int i = 0; i < 10; i++) {
		int status;

		if (i % 2 && usleep((useconds_t)i * 700) == 0)
			kill(pid[i], SIGKILL);
		ck_assert_int_eq(waitpid(pid[i], &status, 0), pid[i]);
		ck_assert(i % 2 || status == 0);
	}
	old = st;
	st = store_open(url, 0);
	ck_assert_int_eq(stats(st, NOW).schema, 4);
	ck_assert_int_eq(stats(st, NOW).entry_n, OLD_N);
	ck_assert_int_eq(query_count(st, (struct fw_entry_query){.oldest_first = true}), OLD_N);
	ck_assert_int_eq(query_count(st, (struct fw_entry_query){.limit = 0}), OLD_N); /* by date */
	ck_assert_int_eq(entry_count(st, 1) + entry_count(st, 2), OLD_N);
	ck_assert_str_eq(newest(st, 1), "n2599:<p>number</p> ");
	check_clean(st);
	late = outcome_of(&l[0], &f, NOW + 10); /* what was lent then is lent again */
	ck_assert_int_eq(commit_one(old, &late, NOW + 10), FW_ESTALE);
	put_entries(st, &A, NOW + 11, 0, 5); /* of the third feed, that was lent */
	put_entries(st, &A, NOW + HOUR, 0, OLD_N / 2); /* known ones */
	ck_assert_int_eq(stats(st, NOW).entry_n, OLD_N + 5);
	check_clean(st);
	ck_assert_str_eq(say("EXISTS {feedwheel:0}:old:entries {feedwheel:0}:contents {feedwheel:0}:dates {feedwheel:0}:slots"), ":0\r\n");
	OK(fw_store_ping(old, &err));
	fw_store_close(old);
	fw_store_close(st);
}
END_TEST

/* A store whose feeds joined the hosts that schema 3 knew, each by its own name; reopened, for that is read when it is opened. */
static struct fw_store *exact_hosts(struct fw_store *st, int shards)
{
	char words[100];

	fw_store_close(st);
	for (int i = 0; i < shards; i++) {
		ck_assert(fw_snprintf(words, sizeof(words), "HSET {feedwheel:%d}:meta exact_hosts 1", i));
		told(words);
	}
	return store_open(url, 0);
}

static size_t claim_one_each(struct fw_store *st, int64_t now, struct fw_lease *l)
{
	struct fw_claim_ask ask = {.worker = "w", .now_ms = now, .lease_ms = 60000, .max = 9, .host_max = 1};
	struct fw_claim_got got;
	struct fw_err err = {0};

	OK(fw_store_claim(st, &ask, &A, l, &got, &err));
	return got.n;
}

START_TEST(schema_3_is_made_over) /* REL-15: data is kept, leases are not, and feeds keep the hosts they joined */
{
	struct fw_lease l[9];
	struct fw_feed f;
	struct fw_outcome late;
	struct fw_store *st, *old;
	struct fw_err err = {0};

	server_up(NULL);
	old = exact_hosts(store_open(url, FW_STORE_CREATE), 1);
	subscribe(old, "https://a.blogspot.com/", NOW);
	subscribe_many(old, "https://crowd.example/%d", 0, 3, NOW);
	put_entries(old, &A, NOW, 0, 3);
	ck_assert_uint_eq(claim_one_each(old, NOW + 1, l), 1);
	schema_3("feedwheel:0");
	open_says(url, FW_STORE_READ, FW_EVERSION, "schema 3 is older");
	st = store_open(url, 0);
	ck_assert_int_eq(stats(st, NOW).schema, 4);
	ck_assert_int_eq(stats(st, NOW).lent_n, 0);
	ck_assert_int_eq(stats(st, NOW + 1).due_n, 3);
	ck_assert_str_eq(visits_told(st, (struct fw_visit_query){0}), "1:1:3:0: ");
	ck_assert_str_eq(newest(st, 1), "n2:<p>number</p> ");
	f = find(st, 1, &A);
	ck_assert(f.due_at_ms == NOW + HOUR && f.expect_parts == 0 && f.push_until_ms == 0 && fw_str_eq(f.why, FW_STR("default 60 min")));
	check_clean(st);
	late = outcome_of(&l[0], &f, NOW + 2);
	ck_assert_int_eq(commit_one(old, &late, NOW + 2), FW_ESTALE);
	subscribe_many(st, "https://b%d.blogspot.com/", 0, 2, NOW);
	ck_assert_uint_eq(claim_one_each(st, NOW + HOUR, l), 3); /* one of crowd.example, a.blogspot.com, one of blogspot.com */
	check_clean(st);
	OK(fw_store_release(st, l, 3, &err));
	check_clean(st);
	fw_store_close(old);
	fw_store_close(st);
}
END_TEST

START_TEST(shards_of_schema_3_keep_exact_hosts) /* or who is looked for by address would be looked for on another shard */
{
	struct fw_feed_new again = {.url = FW_STR("https://b3.blogspot.com/")};
	struct fw_lease l[9];
	struct fw_store *st;
	struct fw_feed f;
	struct fw_err err = {0};

	server_up(NULL);
	ck_assert(fw_snprintf(url, sizeof(url), "redis+unix://%s?shards=3", sock));
	st = exact_hosts(store_open(url, FW_STORE_CREATE), 3);
	subscribe_many(st, "https://b%d.blogspot.com/", 0, 6, NOW);
	fw_store_close(st);
	schema_3("feedwheel:0");
	schema_3("feedwheel:1");
	schema_3("feedwheel:2");
	for (int i = 0; i < 2; i++) { /* as it is brought up to date, and afterwards */
		st = store_open(url, 0);
		OK(fw_store_feed_find(st, 0, again.url, &A, &f, &err));
		OK(fw_store_subscribe(st, &again, 1, &err));
		ck_assert(again.existed && again.id == f.id);
		ck_assert_uint_eq(claim_one_each(st, NOW, l), 6);
		check_clean(st);
		OK(fw_store_release(st, l, 6, &err));
		fw_store_close(st);
	}
	ck_assert(fw_snprintf(url, sizeof(url), "redis+unix://%s?shards=3&prefix=new", sock));
	st = store_open(url, FW_STORE_CREATE);
	subscribe_many(st, "https://b%d.blogspot.com/", 0, 6, NOW);
	ck_assert_uint_eq(claim_one_each(st, NOW, l), 1); /* of a service that is one host from the beginning */
	fw_store_close(st);
}
END_TEST

START_TEST(passwords)
{
	char with[420];

	server_up((const char *const[]){"--requirepass", "s3cret", NULL});
	open_says(url, FW_STORE_CREATE, FW_EINVAL, "wants a password");
	ck_assert(fw_snprintf(with, sizeof(with), "redis+unix://:s3cretwrong@%s", sock));
	open_says(with, FW_STORE_CREATE, FW_EINVAL, "refuses this user and password");
	ck_assert(fw_snprintf(with, sizeof(with), "redis+unix://:s3cret@%s", sock));
	fw_store_close(store_open(with, FW_STORE_CREATE));
	ck_assert(fw_snprintf(with, sizeof(with), "redis+unix://default:s3cret@%s", sock));
	fw_store_close(store_open(with, 0));
	server_down(SIGKILL);
	server_up(NULL);
	ck_assert(fw_snprintf(with, sizeof(with), "redis+unix://:s3cret@%s", sock));
	open_says(with, FW_STORE_CREATE, FW_EINVAL, "has no password");
}
END_TEST

START_TEST(too_many_connections)
{
	struct fw_store *st[4];
	int n = 0;

	server_up((const char *const[]){"--maxclients", "3", NULL});
	for (; n < 3; n++)
		st[n] = store_open(url, FW_STORE_CREATE);
	for (int i = 0; i < 50; i++) /* its refusal and our first words cross each other in every way */
		open_says(url, 0, FW_EAGAIN, "raise its maxclients");
	fw_store_close(st[--n]);
	for (int i = 0; i < 3000 && n < 3; i++) { /* the server needs a moment to see that one has gone */
		struct fw_store_config c = {.url = url};
		struct fw_err err = {0};

		if (fw_store_open(&c, &st[n], &err) == 0)
			n++;
		usleep(10000);
	}
	ck_assert_int_eq(n, 3);
	while (n)
		fw_store_close(st[--n]);
}
END_TEST

/* ---- a server in trouble --------------------------------------------------------------------------------------------------------- */

START_TEST(refusals_pass) /* each is FW_EAGAIN, nothing is half-done, and the same commit succeeds afterwards */
{
	static const struct { const char *begin, *end, *words; } T[] = {
		{"CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0", "raise its maxmemory"},
		{"REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE", "name the master"},
		{"CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0", "min-replicas-to-write"},
	};
	struct fw_claim_ask ask = {.worker = "w", .now_ms = NOW, .lease_ms = 1000, .max = 1};
	struct fw_claim_got got;
	struct fw_err err = {0};

	server_up(NULL);
	for (size_t i = 0; i < FW_N(T); i++) {
		struct fw_store *st = store_open(url, FW_STORE_CREATE);
		struct fw_lease spare[1];
		struct one v;

		subscribe(st, "https://a.example/", NOW);
		subscribe(st, "https://b.example/", NOW + HOUR);
		lend_one(st, &v, NOW);
		told(T[i].begin);
		says(fw_store_commit(st, &v.commit, &err), FW_EAGAIN, &err, T[i].words);
		says(fw_store_claim(st, &ask, &A, spare, &got, &err), FW_EAGAIN, &err, T[i].words);
		ck_assert_int_eq(stats(st, NOW).lent_n, 1); /* reading goes on */
		ck_assert_int_eq(stats(st, NOW).entry_n, 0);
		told(T[i].end);
		OK(fw_store_commit(st, &v.commit, &err));
		ck_assert_int_eq(v.outcome.rc, 0);
		ck_assert_uint_eq(v.outcome.visit.new_n, 3);
		stored_once(st);
		fw_store_close(st);
		told("FLUSHALL");
	}
}
END_TEST

START_TEST(replica_without_its_master)
{
	struct fw_store *st;
	struct fw_err err = {0};

	server_up((const char *const[]){"--replica-serve-stale-data", "no", NULL});
	st = store_open(url, FW_STORE_CREATE);
	told("REPLICAOF 127.0.0.1 1");
	says(fw_store_ping(st, &err), FW_EAGAIN, &err, "has lost its master");
	told("REPLICAOF NO ONE");
	OK(fw_store_ping(st, &err));
	fw_store_close(st);
}
END_TEST

START_TEST(scripts_are_forgotten) /* a restart, a failover, SCRIPT FLUSH */
{
	struct fw_store *st;
	struct one v;
	struct fw_err err = {0};

	server_up(NULL);
	st = store_open(url, FW_STORE_CREATE);
	subscribe(st, "https://a.example/", NOW);
	told("SCRIPT FLUSH");
	lend_one(st, &v, NOW);
	told("SCRIPT FLUSH");
	OK(fw_store_commit(st, &v.commit, &err));
	ck_assert_int_eq(v.outcome.rc, 0);
	stored_once(st);
	fw_store_close(st);
}
END_TEST

START_TEST(busy_with_a_script)
{
	struct fw_store *st;
	struct fw_err err = {0};
	int64_t start;
	int rc = 0;
	pid_t pid;

	server_up((const char *const[]){"--busy-reply-threshold", "50", NULL});
	st = store_open(url, FW_STORE_CREATE);
	pid = fork();
	if (pid == 0) {
		(void)say("EVAL \"while true do end\" 0");
		_exit(0);
	}
	for (start = fw_mono_ms(); !rc && fw_mono_ms() - start < 60000; usleep(20000))
		rc = fw_store_ping(st, &err);
	says(rc, FW_EAGAIN, &err, "busy with a script");
	told("SCRIPT KILL");
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	OK(fw_store_ping(st, &err));
	fw_store_close(st);
}
END_TEST

START_TEST(server_that_says_nothing) /* stopped, or the network swallows everything */
{
	struct fw_store *st;
	struct fw_err err = {0};

	server_up(NULL);
	ck_assert(fw_snprintf(url, sizeof(url), "redis+unix://%s?timeout_ms=6000", sock));
	st = store_open(url, FW_STORE_CREATE);
	ck_assert_int_eq(kill(server, SIGSTOP), 0);
	says(fw_store_ping(st, &err), FW_EIO, &err, "no answer in time");
	ck_assert_int_eq(kill(server, SIGCONT), 0);
	says(fw_store_ping(st, &err), FW_EIO, &err, "open the store anew"); /* a late answer is nobody's */
	fw_store_close(st);
	fw_store_close(store_open(url, 0));
}
END_TEST

static int listening(int *port)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(sa);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_eq(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	ck_assert_int_eq(listen(fd, 8), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&sa, &len), 0);
	*port = ntohs(sa.sin_port);
	return fd;
}

START_TEST(answers_of_others) /* what a server says that is loading, is none, or sends nonsense */
{
	static const struct { const char *says, *words; int rc; } T[] = {
		{"-LOADING Redis is loading the dataset in memory\r\n", "loading its data", FW_EAGAIN},
		{"HTTP/1.1 400 Bad Request\r\n\r\n", "is it a Redis server", FW_EIO},
		{"", "closed the connection", FW_EIO},
		{"-DENIED Redis is running in protected mode\r\n", "other machines", FW_EINVAL},
		{"-ERR Error compiling script (new function): #!lua\r\n", "Redis 7.0", FW_EVERSION},
		{"-CLUSTERDOWN The cluster is down\r\n", "not whole", FW_EAGAIN},
		{"$-7\r\n", "is it a Redis server", FW_EIO},
	};
	int port, fd = listening(&port);

	ck_assert(fw_snprintf(url, sizeof(url), "redis://127.0.0.1:%d", port));
	for (size_t i = 0; i < FW_N(T); i++) {
		pid_t pid = fork();

		if (pid == 0) {
			int c = accept(fd, NULL, NULL);
			char drop[65536];

			(void)!read(c, drop, sizeof(drop));
			(void)!write(c, T[i].says, strlen(T[i].says));
			shutdown(c, SHUT_WR);
			while (read(c, drop, sizeof(drop)) > 0)
				;
			_exit(0);
		}
		open_says(url, FW_STORE_CREATE, T[i].rc, T[i].words);
		ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	}
	close(fd);
}
END_TEST

START_TEST(disk_full) /* REL-09: the append-only file cannot be written */
{
	struct fw_buf text = FW_BUF_INIT(0);
	struct fw_entry_row e[20];
	struct fw_store *st;
	struct fw_lease l[1];
	struct fw_feed f;
	struct fw_outcome o;
	struct fw_commit c = {.outcome = &o, .n = 1};
	struct fw_err err = {0};
	int64_t now = NOW, before = 0;
	struct fw_claim_ask ask = {.worker = "w", .lease_ms = 60000, .max = 1};
	struct fw_claim_got got;
	bool committing;
	int rc = 0, key = 0;

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) || mount("tiny", dir, "tmpfs", 0, "size=6m")) {
		printf("# disk_full: no mount here (%s): skipped\n", strerror(errno));
		return;
	}
	server_up((const char *const[]){"--appendfsync", "always", "--auto-aof-rewrite-percentage", "0", NULL});
	st = store_open(url, FW_STORE_CREATE);
	subscribe(st, "https://a.example/", NOW);
	told("CONFIG SET appendfsync everysec"); /* with "always" the server ends itself when its disk is full */
	while (text.len < 20000)
		fw_buf_adds(&text, "words and more words ");
	for (; !rc && key < 2000; now += HOUR) {
		before = stats(st, now).entry_n;
		ask.now_ms = now;
		rc = fw_store_claim(st, &ask, &A, l, &got, &err);
		if (rc)
			break;
		o = outcome_of(&l[0], &f, now);
		for (int i = 0; i < 20; i++) {
			e[i] = entry(++key, 1, "t", NULL);
			e[i].content = fw_buf_str(&text);
		}
		o.entries = e;
		o.entry_n = 20;
		c.now_ms = now;
		rc = fw_store_commit(st, &c, &err);
		usleep(20000);
	}
	says(rc, FW_EAGAIN, &err, "cannot write to its disk");
	committing = got.n > 0; /* which call met it first is the server's affair */
	ck_assert_int_eq(stats(st, now).entry_n, before); /* all or nothing */
	ck_assert_int_eq(mount("tiny", dir, "tmpfs", MS_REMOUNT, "size=60m"), 0);
	for (int64_t start = fw_mono_ms(); rc && fw_mono_ms() - start < 60000; usleep(100000)) { /* it looks again once a second */
		rc = committing ? fw_store_commit(st, &c, &err) : fw_store_claim(st, &ask, &A, l, &got, &err);
	}
	OK(rc);
	ck_assert_int_eq(o.rc, 0);
	ck_assert_int_eq(stats(st, now).entry_n, before + (committing ? 20 : 0));
	check_clean(st);
	fw_store_close(st);
	fw_buf_finish(&text);
	server_down(SIGKILL);
	umount2(dir, MNT_DETACH);
}
END_TEST

/* ---- commits whose answer was lost --------------------------------------------------------------------------------------------------- */

START_TEST(commit_that_comes_again) /* REL-01: over a new connection, as the store thread does it */
{
	struct fw_store *st, *next;
	struct one v, w;
	struct fw_err err = {0};

	server_up(NULL);
	st = store_open(url, FW_STORE_CREATE);
	subscribe(st, "https://a.example/", NOW);
	lend_one(st, &v, NOW);
	OK(fw_store_commit(st, &v.commit, &err));
	next = store_open(url, 0); /* st's connection broke before the answer came, as far as the caller knows */
	v.outcome.visit.new_n = 77;
	OK(fw_store_commit(next, &v.commit, &err));
	ck_assert_int_eq(v.outcome.rc, 0);
	ck_assert_uint_eq(v.outcome.visit.new_n, 3);
	stored_once(next);
	/* from then on it knows where it stands */
	OK(fw_store_commit(next, &v.commit, &err));
	ck_assert_int_eq(v.outcome.rc, FW_ESTALE);
	/* and what was never stored is stale, also on a new connection */
	lend_one(next, &w, NOW + HOUR);
	ck_assert_uint_eq(claim_at(next, NOW + 2 * HOUR, 1, v.lease, &A), 1);
	fw_store_close(next);
	next = store_open(url, 0);
	OK(fw_store_commit(next, &w.commit, &err));
	ck_assert_int_eq(w.outcome.rc, FW_ESTALE);
	ck_assert_int_eq(stats(next, NOW).visit_n, 1);
	fw_store_close(next);
	fw_store_close(st);
}
END_TEST

#define TRIES_MAX 65536

struct book { /* per feed */
	_Atomic int64_t tried[4];                 /* the last number that was sent */
	_Atomic unsigned char known[4][TRIES_MAX]; /* which numbers were acknowledged */
	_Atomic int commits, stop;
};
static struct book *book;

/* Call again over a new connection until it is answered. */
static void reopen_if(int rc, struct fw_store **st)
{
	struct fw_store_config c = {.url = url};
	struct fw_err err;

	if (rc == FW_EIO) {
		fw_store_close(*st);
		*st = NULL;
		usleep(5000);
	}
	if (!*st && fw_store_open(&c, st, &err))
		*st = NULL;
}

/* Each commit brings one entry, numbered for its feed; whatever breaks, the same commit is sent until it is answered. */
static void hammer(int number)
{
	struct fw_store *st = NULL;
	struct fw_err err;
	char worker[20];

	(void)fw_snprintf(worker, sizeof(worker), "hammer%d", number);
	while (!atomic_load(&book->stop)) {
		struct fw_claim_ask ask = {.worker = worker, .lease_ms = 300, .max = 1};
		struct fw_claim_got got = {0};
		struct fw_entry_row e;
		struct fw_lease l[1];
		struct fw_feed f;
		struct fw_outcome o;
		struct fw_arena a;
		int64_t n, i;
		int rc = 0;

		fw_arena_init(&a, 0);
		reopen_if(0, &st);
		rc = st ? fw_store_claim(st, &ask, &a, l, &got, &err) : FW_EIO;
		if (rc || !got.n) {
			reopen_if(rc, &st);
			fw_arena_finish(&a);
			continue;
		}
		i = l[0].feed.id - 1;
		n = atomic_fetch_add(&book->tried[i], 1) + 1;
		o = outcome_of(&l[0], &f, fw_now_ms());
		f.due_at_ms = 1;
		e = entry(0, 1, "t", "c");
		memcpy(e.key, &n, sizeof(n));
		o.entries = &e;
		o.entry_n = 1;
		do {
			rc = st ? fw_store_commit(st, &(struct fw_commit){.outcome = &o, .n = 1}, &err) : FW_EIO;
			reopen_if(rc, &st);
		} while (rc);
		if (o.rc == 0 && n < TRIES_MAX)
			atomic_store(&book->known[i][n], 1);
		atomic_fetch_add(&book->commits, o.rc == 0);
		fw_arena_finish(&a);
	}
	fw_store_close(st);
}

static int keys_seen(void *ctx, const struct fw_entry_row *row)
{
	unsigned char *seen = ctx;
	int64_t n;

	memcpy(&n, row->key, sizeof(n));
	ck_assert_int_ge(n, 1);
	ck_assert_int_le(n, atomic_load(&book->tried[row->feed_id - 1]));
	if (n < TRIES_MAX)
		seen[n] = 1;
	return 0;
}

/* Until they have got on; the test's own time limit tells if they never do. */
static void some_commits(void)
{
	int before = atomic_load(&book->commits);

	while (atomic_load(&book->commits) < before + 4)
		usleep(1000);
}

START_TEST(server_is_killed_in_commit) /* invariants 2 and 3: with appendfsync always, what was acknowledged is there */
{
	static const char *const always[] = {"--appendfsync", "always", NULL};
	struct fw_store *st;
	struct fw_err err = {0};
	int64_t known = 0;
	pid_t pid[4];

	book = mmap(NULL, sizeof(*book), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	server_up(always);
	st = store_open(url, FW_STORE_CREATE);
	subscribe_many(st, "https://h%d.example/", 0, 4, 1);
	fw_store_close(st);
	for (int i = 0; i < 4; i++) {
		pid[i] = fork();
		if (pid[i] == 0) {
			hammer(i);
			_exit(0);
		}
	}
	for (int i = 0; i < 12; i++) {
		some_commits();
		usleep((useconds_t)i * 7000); /* somewhere in the next ones */
		server_down(SIGKILL);
		server_up(always);
	}
	some_commits();
	atomic_store(&book->stop, 1);
	for (int i = 0; i < 4; i++) {
		int status;

		ck_assert_int_eq(waitpid(pid[i], &status, 0), pid[i]);
		ck_assert_int_eq(status, 0);
	}
	st = store_open(url, 0);
	for (int i = 0; i < 4; i++) {
		struct fw_entry_query q = {.feed_id = i + 1, .key = true};
		static unsigned char seen[TRIES_MAX];

		memset(seen, 0, sizeof(seen));
		OK(fw_store_entry_list(st, &q, keys_seen, seen, &err));
		for (int n = 1; n < TRIES_MAX; n++) {
			ck_assert_msg(seen[n] || !book->known[i][n], "feed %d: number %d was acknowledged and is not there", i + 1, n);
			known += book->known[i][n];
		}
	}
	ck_assert_int_ge(stats(st, NOW).entry_n, known); /* one whose answer was lost may be there too */
	printf("# 12 kills of the server, %lld commits acknowledged, %lld entries there\n", (long long)known,
		(long long)stats(st, NOW).entry_n);
	ck_assert_int_gt(known, 20);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

/* ---- what other programs push and read ----------------------------------------------------------------------------------------------- */

START_TEST(pushed_addresses_are_fetched_at_once)
{
	struct fw_store *st;
	struct fw_lease l[10];
	struct fw_feed f = {.due_at_ms = NOW + 9 * HOUR};
	struct fw_err err = {0};
	size_t n = 0;
	bool changed;

	server_up(NULL);
	st = store_open(url, FW_STORE_CREATE);
	f.id = subscribe(st, "https://known.example/feed", NOW + 9 * HOUR);
	told("LPUSH feedwheel:feeds_to_fetch https://new.example/feed nonsense:// Known.Example/feed");
	OK(fw_store_wait(st, -1, 60000, &changed, &err));
	ck_assert(changed);
	ck_assert_uint_eq(claim_at(st, NOW, 10, l, &A), 2); /* long before they would be due */
	ck_assert_int_eq(stats(st, NOW).feed_n, 2);
	OK(fw_store_feed_find(st, 0, FW_STR("https://new.example/feed"), &A, &f, &err));
	ck_assert_str_eq(say("EXISTS feedwheel:feeds_to_fetch"), ":0\r\n");
	ck_assert_str_eq(say("EXISTS {feedwheel:feeds_to_fetch}:taken"), ":0\r\n");
	ck_assert_ptr_nonnull(strstr(say("LRANGE {feedwheel:feeds_to_fetch}:refused 0 -1"), "nonsense"));
	check_clean(st);
	/* a worker died between taking and subscribing: the next one finds what it took, when its lock has ended */
	told("RPUSH {feedwheel:feeds_to_fetch}:taken https://orphan.example/");
	told("SET {feedwheel:feeds_to_fetch}:lock dead PX 300");
	for (int i = 0; i < 1200 && n == 0; i++) {
		usleep(50000);
		n = claim_at(st, NOW, 10, l, &A);
	}
	ck_assert_uint_eq(n, 1);
	ck_assert_str_eq(l[0].feed.url.p, "https://orphan.example/");
	fw_store_close(st);
}
END_TEST

START_TEST(known_address_pushed_is_due_first)
{
	struct fw_store *st;
	struct fw_lease l[10];

	server_up(NULL);
	st = store_open(url, FW_STORE_CREATE);
	subscribe(st, "https://known.example/feed", NOW + 9 * HOUR);
	told("RPUSH feedwheel:feeds_to_fetch https://known.example/feed");
	ck_assert_uint_eq(claim_at(st, NOW, 10, l, &A), 1);
	ck_assert_int_eq(l[0].feed.due_at_ms, FW_DUE_FIRST);
	ck_assert_int_eq(stats(st, NOW).feed_n, 1);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

START_TEST(new_entries_are_published)
{
	struct fw_store *st;
	struct one v;
	struct fw_err err = {0};
	const char *answer;

	server_up(NULL);
	st = store_open(url, FW_STORE_CREATE);
	subscribe(st, "https://a.example/", NOW);
	told("XGROUP CREATE {feedwheel:0}:new readers 0 MKSTREAM");
	lend_one(st, &v, NOW);
	OK(fw_store_commit(st, &v.commit, &err));
	ck_assert_str_eq(say("XLEN {feedwheel:0}:new"), ":1\r\n"); /* one message of a visit */
	answer = say("XREADGROUP GROUP readers me COUNT 1 STREAMS {feedwheel:0}:new >");
	ck_assert_msg(strstr(answer, "feed\r\n$1\r\n1\r\n") && strstr(answer, "entries\r\n$5\r\n1 2 3\r\n"), "%s", answer);
	answer = say("EVAL \"local e = redis.call('HGET', '{feedwheel:0}:entries', 1) return e:sub(e:find('hash='), -1)\" 0");
	ck_assert_msg(strstr(answer, "https://a.example/1") && strstr(answer, "title=3:one\n") && strstr(answer, "content=5:first\n"), "%s", answer);
	lend_one(st, &v, NOW + HOUR); /* known ones are not published again */
	OK(fw_store_commit(st, &v.commit, &err));
	ck_assert_str_eq(say("XLEN {feedwheel:0}:new"), ":1\r\n");
	fw_store_close(st);
	ck_assert(fw_snprintf(url, sizeof(url), "redis+unix://%s?prefix=quiet&stream_max=0", sock));
	st = store_open(url, FW_STORE_CREATE);
	subscribe(st, "https://a.example/", NOW);
	lend_one(st, &v, NOW);
	OK(fw_store_commit(st, &v.commit, &err));
	ck_assert_str_eq(say("EXISTS {quiet:0}:new"), ":0\r\n");
	fw_store_close(st);
}
END_TEST

/* ---- entries ------------------------------------------------------------------------------------------------------------------------- */

/* The number behind a word of INFO commandstats. */
static int64_t calls_of(const char *command)
{
	const char *all = say("INFO commandstats"), *at = strstr(all, command);
	int64_t n = 0;

	ck_assert_msg(at && fw_str_int(fw_str_sub(fw_str(at + strlen(command)), 0, strcspn(at + strlen(command), ",")), &n), "%s", all);
	return n;
}

#define MEDDLED_N 300

START_TEST(transactions_that_come_to_nothing) /* invariants 1 and 2: the epoch rises between looking and storing, again and again */
{
	struct fw_store *st;
	struct one v;
	struct fw_err err = {0};
	pid_t meddler;
	int rc;

	server_up(NULL);
	st = store_open(url, FW_STORE_CREATE);
	subscribe(st, "https://a.example/", NOW);
	meddler = fork();
	if (meddler == 0) {
		for (;;) {
			(void)say("INCR {feedwheel:0}:epoch");
			usleep(1200);
		}
	}
	told("CONFIG RESETSTAT");
	for (int i = 0; i < MEDDLED_N; i++) {
		lend_one(st, &v, NOW + (int64_t)i * HOUR);
		for (int k = 0; k < 3; k++) /* three new ones, and the same changed an hour later */
			v.entry[k] = entry(3 * (i / 2) + k, i % 2, "t", "text");
		do
			rc = fw_store_commit(st, &v.commit, &err);
		while (rc == FW_EAGAIN); /* on a busy machine the other comes between each time */
		IS(rc, 0);
		IS(v.outcome.rc, 0);
		ck_assert_uint_eq(i % 2 ? v.outcome.visit.changed_n : v.outcome.visit.new_n, 3);
	}
	kill(meddler, SIGKILL);
	ck_assert_int_eq(waitpid(meddler, NULL, 0), meddler);
	ck_assert_int_gt(calls_of("cmdstat_exec:calls="), MEDDLED_N);
	printf("# %d commits in %lld transactions\n", MEDDLED_N, (long long)calls_of("cmdstat_exec:calls="));
	ck_assert_int_eq(stats(st, NOW).entry_n, 3 * MEDDLED_N / 2);
	ck_assert_int_eq(stats(st, NOW).visit_n, MEDDLED_N);
	ck_assert_int_eq(query_count(st, (struct fw_entry_query){.limit = 0}), 3 * MEDDLED_N / 2);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

START_TEST(followers_wait_for_lower_numbers) /* two commits at once: the one with the lower numbers may end last */
{
	struct fw_entry_query follow = {.oldest_first = true}, newest_first = {.limit = 0}, of_feed = {.feed_id = 1, .after_id = 1};
	struct fw_store *st;

	server_up(NULL);
	st = store_open(url, FW_STORE_CREATE);
	subscribe(st, "https://a.example/", NOW);
	put_entries(st, &A, NOW, 0, 9);
	ck_assert_str_eq(say("HLEN {feedwheel:0}:storing"), ":0\r\n");
	told("HSET {feedwheel:0}:storing other \"4 99999999999999\"");
	ck_assert_int_eq(query_count(st, follow), 4);
	ck_assert_int_eq(query_count(st, of_feed), 3);
	ck_assert_int_eq(query_count(st, newest_first), 9);
	ck_assert_int_eq(query_count(st, (struct fw_entry_query){.oldest_first = true, .after_id = 6, .before_id = 8}), 1); /* by its number */
	told("HSET {feedwheel:0}:storing other \"4 1763730000000\""); /* its taker has died long ago */
	ck_assert_int_eq(query_count(st, follow), 9);
	put_entries(st, &A, NOW + HOUR, 9, 10);
	ck_assert_str_eq(say("HLEN {feedwheel:0}:storing"), ":0\r\n");
	fw_store_close(st);
}
END_TEST

START_TEST(keys_of_a_feed_that_seems_fresh) /* a copy that brought keys of entries that retention took, and no entry */
{
	struct fw_store *st;
	struct one v;
	struct fw_err err = {0};

	server_up(NULL);
	st = store_open(url, FW_STORE_CREATE);
	subscribe(st, "https://a.example/", NOW);
	lend_one(st, &v, NOW);
	memcpy(v.entry[1].key, "0123456789abcdef", 16);
	told("HSET {feedwheel:0}:keys:1 0123456789abcdef \"0000000000000001 0\"");
	OK(fw_store_commit(st, &v.commit, &err));
	ck_assert_uint_eq(v.outcome.visit.new_n, 2);
	ck_assert_int_eq(entry_count(st, 1), 2);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

START_TEST(dates_that_change) /* the lists of days are swept when much in them is stale */
{
	struct fw_store *st;
	struct one v;
	struct fw_err err = {0};
	int64_t n = 0;

	server_up(NULL);
	st = store_open(url, FW_STORE_CREATE);
	subscribe(st, "https://a.example/", NOW);
	for (int i = 0; i < 6; i++) {
		lend_one(st, &v, NOW + (int64_t)i * HOUR);
		for (int k = 0; k < 3; k++) {
			v.entry[k].hash = (uint64_t)i + 1;
			v.entry[k].published_ms = NOW - (int64_t)(k + 1) * 24 * HOUR + (k == 2 ? (int64_t)i * 12 * HOUR - 1 : 0);
		}
		OK(fw_store_commit(st, &v.commit, &err));
	}
	ck_assert_str_eq(newest(st, 0), "three: one:first two:second "); /* each once, the third as it was at last */
	ck_assert_str_eq(newest(st, 1), "three: ");
	ck_assert_str_eq(say("HGET {feedwheel:0}:meta stale_n"), "$1\r\n5\r\n");
	check_clean(st);
	OK(fw_store_prune(st, 1, 0, &n, &err));
	ck_assert_str_eq(say("HGET {feedwheel:0}:meta stale_n"), "$1\r\n5\r\n"); /* not worth it */
	told("HSET {feedwheel:0}:meta stale_n 1000");
	ck_assert_str_eq(say("EVAL \"local n = 0 for _, k in ipairs(redis.call('KEYS', '*:dates:*')) do n = n + redis.call('STRLEN', k) end return n\" 0"),
		":128\r\n");
	OK(fw_store_prune(st, 1, 0, &n, &err));
	ck_assert_str_eq(say("EVAL \"local n = 0 for _, k in ipairs(redis.call('KEYS', '*:dates:*')) do n = n + redis.call('STRLEN', k) end return n\" 0"),
		":48\r\n");
	ck_assert_str_eq(say("HGET {feedwheel:0}:meta stale_n"), "$1\r\n0\r\n");
	ck_assert_str_eq(newest(st, 0), "three: one:first two:second ");
	check_clean(st);
	OK(fw_store_unsubscribe(st, 1, &err));
	told("HSET {feedwheel:0}:meta stale_n 1000");
	OK(fw_store_prune(st, 1, 0, &n, &err));
	ck_assert_str_eq(say("EXISTS {feedwheel:0}:days"), ":0\r\n");
	fw_store_close(st);
}
END_TEST

START_TEST(messages_pushed_by_hand)
{
	struct fw_store *st;
	struct fw_control c;
	struct fw_err err = {0};

	server_up(NULL);
	st = store_open(url, FW_STORE_CREATE);
	told("RPUSH {feedwheel:0}:controls junk 0 2 -1");
	OK(fw_store_control_take(st, 0, &c, &err)); /* what is none is passed over */
	ck_assert(c.kind == FW_CONTROL_PAUSE && c.id == 3 && c.created_ms == 0);
	OK(fw_store_control_take(st, 3, &c, &err));
	ck_assert_int_eq(c.kind, FW_CONTROL_NONE);
	OK(fw_store_control_take(st, -1, &c, &err));
	ck_assert(c.paused && c.id == 4);
	fw_store_close(st);
}
END_TEST

struct found {
	int n, worst;
	char words[500];
};

static void finding(void *ctx, const char *name, int level, const char *text, const char *remedy)
{
	struct found *f = ctx;
	size_t at = strlen(f->words);

	(void)name;
	f->n++;
	f->worst = FW_MAX(f->worst, level);
	(void)fw_snprintf(f->words + at, sizeof(f->words) - at, "%s|%s|", text, remedy);
}

START_TEST(doctor_looks_at_durability)
{
	static const struct { const char *command, *words; int worst; } T[] = {
		{"CONFIG SET aof-load-truncated yes", "half a transaction", 1},
		{"CONFIG SET appendfsync no", "half a minute", 1}, {"CONFIG SET appendonly no", "no append-only file", 1},
		{"CONFIG SET maxmemory-policy allkeys-lru", "drops keys", 2}, {"CONFIG SET maxmemory 1000mb", "drops keys", 2},
	};
	struct fw_store *st;
	struct fw_err err = {0};
	struct found f = {0};

	server_up(NULL);
	st = store_open(url, FW_STORE_CREATE);
	OK(fw_store_inspect(st, finding, &f, &err));
	ck_assert_msg(f.worst == 0 && strstr(f.words, "everysec") && (strstr(f.words, "Redis ") || strstr(f.words, "Valkey ")), "%s", f.words);
	told("CONFIG SET maxmemory 1000mb");
	for (size_t i = 0; i < FW_N(T); i++) {
		f = (struct found){0};
		told(T[i].command);
		OK(fw_store_inspect(st, finding, &f, &err));
		ck_assert_msg(f.worst == T[i].worst && strstr(f.words, T[i].words), "%s: %s", T[i].command, f.words);
	}
	fw_store_close(st);
}
END_TEST

/* ---- several shards ------------------------------------------------------------------------------------------------------------------- */

static int count_visit(void *ctx, const struct fw_visit *v)
{
	int64_t *at = ctx;

	ck_assert(v->feed_url.p && v->at_ms <= at[1]);
	at[0]++;
	at[1] = v->at_ms;
	return 0;
}

static int rising_entry(void *ctx, const struct fw_entry_row *e)
{
	int64_t *last = ctx;

	ck_assert_int_gt(e->id, *last);
	*last = e->id;
	return 0;
}

static int rising_feed(void *ctx, const struct fw_feed *f)
{
	int64_t *at = ctx;

	ck_assert_int_gt(f->id, at[1]);
	at[0]++;
	at[1] = f->id;
	return 0;
}

/* Forty feeds through all that a store does; on one server or on a cluster. */
static void shards_work(struct fw_store *st)
{
	struct fw_claim_ask ask = {.worker = "w", .now_ms = NOW, .lease_ms = 60000, .max = 100, .host_max = 1};
	struct fw_feed_query fq = {.status = -1};
	struct fw_entry_query eq = {.oldest_first = true};
	struct fw_visit_query vq = {0};
	struct fw_claim_got got;
	struct fw_lease l[100];
	struct fw_feed f[100];
	struct fw_entry_row e[100];
	struct fw_outcome o[100];
	struct fw_err err = {0};
	int64_t at[2] = {0, INT64_MAX}, n, wake, last = 0;

	subscribe_many(st, "https://h%d.example/", 0, 40, NOW);
	subscribe_many(st, "https://crowd.example/%d", 0, 3, NOW);
	OK(fw_store_pending(st, NOW, &n, &wake, &err));
	ck_assert_int_eq(n, 43);
	OK(fw_store_claim(st, &ask, &A, l, &got, &err));
	ck_assert_uint_eq(got.n, 41); /* one of the crowd */
	for (size_t i = 0; i < got.n; i++) {
		o[i] = outcome_of(&l[i], &f[i], NOW + (int64_t)i);
		e[i] = entry((int)i, 1, "title", "content");
		o[i].entries = &e[i];
		o[i].entry_n = 1;
		o[i].visit.run_id = 5;
	}
	OK(fw_store_commit(st, &(struct fw_commit){.now_ms = NOW, .outcome = o, .n = got.n}, &err));
	for (size_t i = 0; i < got.n; i++)
		ck_assert(o[i].rc == 0 && o[i].visit.new_n == 1);
	check_clean(st);
	ck_assert_int_eq(stats(st, NOW).entry_n, 41);
	ck_assert_int_eq(stats(st, NOW).visit_n, 41);
	OK(fw_store_visit_list(st, &vq, count_visit, at, &err));
	ck_assert_int_eq(at[0], 41);
	vq.run_id = 5;
	vq.limit = 10;
	at[0] = 0;
	at[1] = INT64_MAX;
	OK(fw_store_visit_list(st, &vq, count_visit, at, &err));
	ck_assert_int_eq(at[0], 10);
	OK(fw_store_entry_list(st, &eq, rising_entry, &last, &err));
	eq.after_id = last;
	OK(fw_store_entry_list(st, &eq, rising_entry, &last, &err)); /* nothing behind the last one */
	ck_assert_int_eq(last, eq.after_id);
	ck_assert_int_eq(entry_count(st, 0), 41);
	at[0] = at[1] = 0;
	OK(fw_store_feed_list(st, &fq, rising_feed, at, &err));
	ck_assert_int_eq(at[0], 43);
	for (int i = 0; i < 43; i++) {
		struct fw_feed g = find(st, 0 == i ? l[0].feed.id : l[i % 41].feed.id, &A);

		ck_assert(g.url.p && g.entry_n == 1);
	}
	OK(fw_store_unsubscribe(st, l[3].feed.id, &err));
	ck_assert_int_eq(stats(st, NOW).feed_n, 42);
	ck_assert_int_eq(stats(st, NOW).entry_n, 40);
	OK(fw_store_prune(st, NOW + HOUR, NOW + HOUR, &n, &err));
	ck_assert_int_eq(n, 80);
	ck_assert_int_eq(stats(st, NOW).entry_n, 0);
	check_clean(st);
}

START_TEST(shards_on_one_server)
{
	struct fw_feed f = {.id = 1, .url = FW_STR("https://x.example/"), .created_ms = NOW};
	struct fw_store *st;
	struct found said = {0};
	struct fw_err err = {0};

	server_up(NULL);
	ck_assert(fw_snprintf(url, sizeof(url), "redis+unix://%s?shards=5", sock));
	st = store_open(url, FW_STORE_CREATE);
	shards_work(st);
	IS(fw_store_load(st, &(struct fw_load){.feed = &f, .feed_n = 1}, &err), FW_EUNSUP);
	OK(fw_store_inspect(st, finding, &said, &err));
	ck_assert_msg(strstr(said.words, "5 shards: takes no copies") != NULL, "%s", said.words);
	fw_store_close(st);
	ck_assert(fw_snprintf(url, sizeof(url), "redis+unix://%s", sock)); /* a store knows how many it has */
	st = store_open(url, 0);
	ck_assert_int_eq(stats(st, NOW).feed_n, 42);
	fw_store_close(st);
}
END_TEST

struct due_seen {
	size_t n;
	int64_t last_due;
	size_t crowded;
};

static int due_rising(void *ctx, const struct fw_due_row *row)
{
	struct due_seen *s = ctx;

	ck_assert_int_ge(row->due_at_ms, s->last_due);
	s->last_due = row->due_at_ms;
	s->crowded += row->host_id != 0;
	s->n++;
	return 0;
}

static size_t due_n(struct fw_store *st, int64_t before, size_t limit, size_t crowded)
{
	struct due_seen s = {0};
	struct fw_err err = {0};

	OK(fw_store_due_list(st, before, limit, due_rising, &s, &err));
	ck_assert_uint_eq(s.crowded, crowded);
	return s.n;
}

START_TEST(numbers_over_shards) /* those that come first are lent first, wherever they lie */
{
	struct fw_claim_ask ask = {.worker = "w", .now_ms = NOW, .lease_ms = 60000, .max = 7};
	struct fw_claim_got got;
	struct fw_lease l[60];
	int64_t id[60], other;
	struct fw_store *st;
	struct fw_err err = {0};
	size_t n = 0;

	server_up(NULL);
	ck_assert(fw_snprintf(url, sizeof(url), "redis+unix://%s?shards=5", sock));
	st = store_open(url, FW_STORE_CREATE);
	for (int i = 0; i < 60; i++) {
		char at[60];

		ck_assert(fw_snprintf(at, sizeof(at), "https://n%d.example/", i));
		id[59 - i] = subscribe(st, at, NOW - i);
	}
	ck_assert_uint_eq(due_n(st, NOW, 0, 0), 60);
	ck_assert_uint_eq(due_n(st, NOW, 13, 0), 13);
	ck_assert_uint_eq(due_n(st, NOW - 10, 0, 0), 50);
	ask.ids = id;
	for (ask.id_n = 60; n < 60; n += got.n) {
		OK(fw_store_claim(st, &ask, &A, l + n, &got, &err));
		ck_assert_uint_eq(got.n, FW_MIN(7u, 60 - n));
	}
	for (size_t i = 0; i < 60; i++)
		ck_assert_int_eq(l[i].feed.id, id[i]);
	OK(fw_store_claim(st, &ask, &A, l, &got, &err));
	ck_assert_uint_eq(got.n, 0);
	check_clean(st);
	other = subscribe(st, "https://late.example/", NOW + 9);
	ask.ids = &other;
	ask.id_n = 1;
	OK(fw_store_claim(st, &ask, &A, l, &got, &err));
	ck_assert(got.n == 0 && got.next_ms > NOW - 10000 && got.next_ms <= NOW + 9);
	ask.ids = id; /* the other shards know it too */
	OK(fw_store_claim(st, &ask, &A, l, &got, &err));
	ck_assert(got.n == 0 && got.next_ms > NOW - 10000 && got.next_ms <= NOW + 9);
	for (other = 1; (id[other] - id[0]) % 5 == 0; other++) /* a feed of another shard */
		;
	IS(fw_store_feed_merge(st, id[0], id[other], &err), FW_EUNSUP);
	IS(fw_store_feed_merge(st, id[0], -1, &err), FW_ENOTFOUND);
	fw_store_close(st);
	st = store_open(url, FW_STORE_READ);
	IS(fw_store_feed_merge(st, id[0], id[1], &err), FW_EINVAL);
	fw_store_close(st);
}
END_TEST

#define MANY 12000 /* some portions of what is due */

START_TEST(many_in_one_slot) /* a list, and a set once somebody has picked from it; from which they go as from a list */
{
	static struct fw_lease l[MANY];
	struct fw_claim_ask ask = {.worker = "w", .now_ms = NOW, .lease_ms = 60000, .max = 3, .host_max = 1};
	int64_t id[] = {5, MANY + 2, 7, MANY + 1, 9, 6}; /* the last one too many */
	struct fw_feed paused = {.id = 100, .status = FW_FEED_PAUSED}, later = {.id = 101, .due_at_ms = NOW + 1};
	struct fw_claim_got got;
	struct fw_store *st;
	struct fw_err err = {0};

	server_up(NULL);
	st = store_open(url, FW_STORE_CREATE);
	subscribe_many(st, "https://h%d.example/", 0, MANY, NOW - 5);
	subscribe_many(st, "https://crowd.example/%d", 0, 2, NOW - 5);
	ck_assert_uint_eq(due_n(st, NOW, 0, 2), MANY + 2);
	ask.ids = id;
	ask.id_n = FW_N(id);
	OK(fw_store_claim(st, &ask, &A, l, &got, &err));
	ck_assert(got.n == 3 && l[0].feed.id == 5 && l[1].feed.id == MANY + 2 && l[2].feed.id == 7 && got.deferred_n == 0);
	ck_assert_str_eq(say("EXISTS {feedwheel:0}:due:176372999"), ":0\r\n");
	ck_assert_uint_eq(due_n(st, NOW, 0, 1), MANY - 1);
	ck_assert_uint_eq(due_n(st, NOW, 6000, 0), 6000); /* of the same time, the lowest numbers */
	OK(fw_store_feed_set(st, &paused, FW_SET_STATUS, &err));
	OK(fw_store_feed_set(st, &later, FW_SET_DUE, &err));
	OK(fw_store_unsubscribe(st, 102, &err));
	subscribe(st, "https://h200.example/also", NOW - 5); /* its host had one feed, which stands in the set */
	check_clean(st);
	ck_assert_int_eq(stats(st, NOW).due_n, MANY - 3);
	ask.ids = (int64_t[]){100, 101, 102, 201, MANY + 3};
	ask.id_n = 5;
	OK(fw_store_claim(st, &ask, &A, l, &got, &err));
	ck_assert(got.n == 1 && l[0].feed.id == 201 && l[0].host_id && got.deferred_n == 1);
	check_clean(st);
	ask = (struct fw_claim_ask){.worker = "w", .now_ms = NOW, .lease_ms = 60000, .max = MANY};
	OK(fw_store_claim(st, &ask, &A, l, &got, &err));
	ck_assert_uint_eq(got.n, MANY - 4);
	check_clean(st);
	ck_assert_uint_eq(due_n(st, NOW, 0, 0), 0);
	ck_assert_uint_eq(claim_at(st, NOW + 1, 9, l, &A), 1);
	subscribe_many(st, "https://other.example/%d", 0, 4, NOW);
	ask = (struct fw_claim_ask){.worker = "w", .now_ms = NOW, .lease_ms = 60000, .max = 9, .host_max = 1, .host_ahead = 2};
	OK(fw_store_claim(st, &ask, &A, l, &got, &err));
	ck_assert(got.n == 3 && got.deferred_n == 1); /* who goes along is not put off */
	fw_store_close(st);
}
END_TEST

#define NODES 3

START_TEST(shards_on_a_cluster) /* three servers, a third of the slots each */
{
	char at[NODES][240], sockets[NODES][260], port[NODES][12], bus[NODES][12], words[200];
	struct fw_store *st;
	pid_t pid[NODES];
	int64_t start;

	for (int i = 0; i < NODES; i++) {
		int a, b, fa = listening(&a), fb = listening(&b);

		close(fa);
		close(fb);
		ck_assert(fw_snprintf(at[i], sizeof(at[i]), "%s/n%d", dir, i));
		ck_assert(fw_snprintf(sockets[i], sizeof(sockets[i]), "%s/s", at[i]));
		ck_assert(fw_snprintf(port[i], sizeof(port[i]), "%d", a));
		ck_assert(fw_snprintf(bus[i], sizeof(bus[i]), "%d", b));
		ck_assert_int_eq(mkdir(at[i], 0755), 0);
		pid[i] = redis_run(at[i], true, (const char *const[]){"--port", port[i], "--unixsocket", sockets[i], "--bind", "127.0.0.1",
			"--cluster-enabled", "yes", "--cluster-port", bus[i], NULL});
	}
	for (int i = 0; i < NODES; i++) {
		for (start = fw_mono_ms(); !redis_answers(sockets[i]) && fw_mono_ms() - start < 60000; usleep(5000))
			;
		ck_assert(fw_snprintf(words, sizeof(words), "CLUSTER ADDSLOTSRANGE %d %d", i * 16384 / NODES, (i + 1) * 16384 / NODES - 1));
		ck_assert_str_eq(say_to(sockets[i], words), "+OK\r\n");
		ck_assert(fw_snprintf(words, sizeof(words), "CLUSTER MEET 127.0.0.1 %s %s", port[0], bus[0]));
		ck_assert_str_eq(say_to(sockets[i], words), "+OK\r\n");
	}
	for (int i = 0; i < NODES; i++) {
		for (start = fw_mono_ms(); !strstr(say_to(sockets[i], "CLUSTER INFO"), "cluster_state:ok") && fw_mono_ms() - start < 60000;)
			usleep(50000);
	}
	ck_assert(fw_snprintf(url, sizeof(url), "redis://127.0.0.1:%s/?shards=6", port[0]));
	st = store_open(url, FW_STORE_CREATE);
	shards_work(st);
	fw_store_close(st);
	for (int i = 0; i < NODES; i++)
		ck_assert_str_ne(say_to(sockets[i], "DBSIZE"), ":0\r\n"); /* all of them have some */
	ck_assert(fw_snprintf(url, sizeof(url), "redis://127.0.0.1:%s/1", port[0]));
	open_says(url, 0, FW_EINVAL, "database 0 only");
	for (int i = 0; i < NODES; i++)
		redis_end(pid[i], SIGKILL);
}
END_TEST

/* ---- TLS -------------------------------------------------------------------------------------------------------------------------------- */

START_TEST(over_tls)
{
	char cert[260], key[260], port[12], words[1200];
	struct fw_store *st;
	struct fw_err err = {0};
	struct one v;
	int number, fd = listening(&number);
	pid_t pid;

	close(fd);
	ck_assert(fw_snprintf(cert, sizeof(cert), "%s/cert.pem", dir));
	ck_assert(fw_snprintf(key, sizeof(key), "%s/key.pem", dir));
	ck_assert(fw_snprintf(port, sizeof(port), "%d", number));
	pid = fork();
	if (pid == 0) {
		(void)!freopen("/dev/null", "w", stderr);
		execlp("openssl", "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key,
			"-out", cert, "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", (char *)NULL);
		_exit(127);
	}
	ck_assert_int_eq(waitpid(pid, &number, 0), pid);
	ck_assert_int_eq(number, 0);
	server_up((const char *const[]){"--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert,
		"--tls-auth-clients", "optional", "--bind", "127.0.0.1", NULL});
	ck_assert(fw_snprintf(words, sizeof(words), "rediss://localhost:%s/", port));
	open_says(words, FW_STORE_CREATE, FW_EINVAL, "certificate is refused"); /* nobody we know signed it */
	ck_assert(fw_snprintf(words, sizeof(words), "rediss://localhost:%s/?ca_file=/nowhere", port));
	open_says(words, FW_STORE_CREATE, FW_EINVAL, "ca_file");
	ck_assert(fw_snprintf(words, sizeof(words), "rediss://localhost:%s/?ca_file=%s&cert_file=%s&key_file=/nowhere", port, cert, cert));
	open_says(words, FW_STORE_CREATE, FW_EINVAL, "key_file");
	ck_assert(fw_snprintf(words, sizeof(words), "rediss://127.0.0.2:%s/?ca_file=%s", port, cert));
	told("CONFIG SET bind \"127.0.0.1 127.0.0.2\"");
	open_says(words, FW_STORE_CREATE, FW_EINVAL, "certificate is refused"); /* it is for another name */
	ck_assert(fw_snprintf(words, sizeof(words), "rediss://127.0.0.1:%s/?ca_file=%s&cert_file=%s&key_file=%s", port, cert, cert, key));
	st = store_open(words, FW_STORE_CREATE);
	subscribe(st, "https://a.example/", NOW);
	lend_one(st, &v, NOW);
	OK(fw_store_commit(st, &v.commit, &err));
	stored_once(st);
	fw_store_close(st);
	ck_assert(fw_snprintf(words, sizeof(words), "redis://127.0.0.1:%s/", port)); /* TLS is wanted there */
	open_says(words, 0, FW_EIO, "redis");
	ck_assert(fw_snprintf(words, sizeof(words), "rediss://127.0.0.2:%s/?verify=no", port));
	fw_store_close(store_open(words, 0));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("store, Redis");
	TCase *t = tcase_create("redis");
	const TTest *every[] = {urls_and_options, schemas, schema_1_is_made_over, schema_2_is_made_over, schema_3_is_made_over, shards_of_schema_3_keep_exact_hosts, passwords, too_many_connections, refusals_pass, replica_without_its_master,
		scripts_are_forgotten, busy_with_a_script, server_that_says_nothing, answers_of_others, disk_full, commit_that_comes_again,
		server_is_killed_in_commit, pushed_addresses_are_fetched_at_once, known_address_pushed_is_due_first, new_entries_are_published, transactions_that_come_to_nothing,
		followers_wait_for_lower_numbers, keys_of_a_feed_that_seems_fresh, dates_that_change, messages_pushed_by_hand,
		doctor_looks_at_durability, shards_on_one_server, numbers_over_shards, many_in_one_slot, shards_on_a_cluster, over_tls};

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 120);
	if (server_redis.installed()) {
		for (size_t i = 0; i < FW_N(every); i++)
			tcase_add_test(t, every[i]);
	} else {
		fprintf(stderr, "# redis is left out: install the package %s\n", server_redis.package);
		if (getenv("CI"))
			return EXIT_FAILURE;
	}
	suite_add_tcase(s, t);
	return run_suite(s);
}
