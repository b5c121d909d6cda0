/* SPDX-License-Identifier: ISC */
/*
 * The Redis driver: any number of workers on any number of machines, over one server or a cluster.
 *
 * This file opens and closes, finds the server that holds a shard, runs scripts and turns Redis's errors into ours. How feeds, leases
 * and entries lie in keys is told in redis/ *.lua, for there the work is done: each claim and each commit is one script, which nothing
 * interrupts. What every visit changes is one short value per feed in one large hash, so that a batch of any size is a handful of
 * variadic commands; what it mostly leaves alone lies in hashes of its own and is fetched by plain pipelined reads. Sending:
 * redis_conn.c. Values: redis_pack.c. Lending: redis_wheel.c. Outcomes: redis_commit.c. Entries: redis_entries.c, words:
 * redis_search.c. What people look at: redis_window.c, visits: redis_visits.c. Copies: redis_load.c. What doctor asks: redis_check.c.
 *
 * Shards: all keys of a shard have one tag, "{feedwheel:0}:", so they are on one server. A feed belongs to the shard of its host, so
 * host budgets need no second look. A shard's number can be told from a feed's id and from an entry's. How many there are is fixed
 * when a store is made; more than one is of use on a cluster only.
 *
 * A broken connection is not mended here: FW_EIO, and the caller opens anew. Whether a commit that broke was stored is known all the
 * same: each feed's state says under which fence it was written, so a batch that comes again finds what it did (see commit.lua).
 */
#include <poll.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/url.h"
#include "store/redis.h"

#define REDIRECTS 5
#define CONNECT_MS 5000
#define TIMEOUT_MS 30000
#define LOOK_MS 500      /* while waiting, for addresses that other programs push */
#define STREAM_MAX 100000 /* default length of the stream of new entries */

int rd_may_write(struct redis *r, struct fw_err *err)
{
	return r->read_only ? fw_err_set(err, FW_EINVAL, "%s: opened for reading only", r->target.name) : 0;
}

/* ---- errors ----------------------------------------------------------------------------------------------------------------- */

static const struct {
	const char *begin;
	int rc;
	const char *remedy;
} answers[] = {
	{"LOADING", FW_EAGAIN, "it is loading its data, and answers when that is done"},
	{"READONLY", FW_EAGAIN, "it is a replica: name the master, or wait until the failover is over"},
	{"MASTERDOWN", FW_EAGAIN, "a replica that has lost its master: wait until the failover is over, or name the master"},
	{"OOM", FW_EAGAIN, "it is full: raise its maxmemory, or lower keep_entries"},
	{"MISCONF", FW_EAGAIN, "it cannot write to its disk: free some space there, and look at its log"},
	{"BUSY", FW_EAGAIN, "it is busy with a script: wait, or 'redis-cli SCRIPT KILL'"},
	{"NOREPLICAS", FW_EAGAIN, "fewer replicas are there than its min-replicas-to-write: wait, or lower that"},
	{"CLUSTERDOWN", FW_EAGAIN, "the cluster is not whole: 'redis-cli cluster info' tells why"},
	{"TRYAGAIN", FW_EAGAIN, "the shard is moving to another node: wait until that is done"},
	{"ASK", FW_EAGAIN, "the shard is moving to another node: wait until that is done"},
	{"MOVED", FW_EAGAIN, "the cluster sends us in circles: 'redis-cli cluster nodes' tells why"},
	{"NOSCRIPT", FW_EAGAIN, "it forgets scripts as fast as they come"},
	{"ERR max number of clients", FW_EAGAIN, "it has no place for another connection: raise its maxclients"},
	{"NOAUTH", FW_EINVAL, "it wants a password: redis://user:password@host (or :password@)"},
	{"WRONGPASS", FW_EINVAL, "it refuses this user and password"},
	{"ERR AUTH", FW_EINVAL, "it has no password: leave it out of the URL"},
	{"NOPERM", FW_EINVAL, "this user may not do that: its ACL needs ~PREFIX* ~{PREFIX* &PREFIX* +@all -@dangerous +info"},
	{"DENIED", FW_EINVAL, "it takes no connections from other machines: give it a password, or bind it elsewhere"},
	{"ERR DB index", FW_EINVAL, "it has no database with this number: leave the number out, or raise its 'databases'"},
	{"ERR SELECT is not allowed", FW_EINVAL, "a cluster has database 0 only: leave the number out of the URL"},
	{"WRONGTYPE", FW_EINVAL, "keys of another program stand there: name another ?prefix= or database"},
	{"ERR Error compiling script", FW_EVERSION, "feedwheel needs Redis 7.0 or newer"},
};

static int error(struct redis *r, struct fw_str text, const char *doing, struct fw_err *err)
{
	for (size_t i = 0; i < FW_N(answers); i++) {
		if (fw_str_starts(text, fw_str(answers[i].begin)))
			return fw_err_set(err, answers[i].rc, "%s: %s: %.*s: %s", r->target.name, doing, FW_STR_ARG(fw_str_sub(text, 0, 80)),
				answers[i].remedy);
	}
	return fw_err_set(err, FW_EINVAL, "%s: %s: %.*s", r->target.name, doing, FW_STR_ARG(fw_str_sub(text, 0, 160)));
}

static const struct rd_reply *first_error(const struct rd_reply *all)
{
	for (size_t i = 0; i < all->n; i++) {
		if (all->elem[i] && all->elem[i]->type == RD_ERROR)
			return all->elem[i];
	}
	return NULL;
}

/* ---- nodes ------------------------------------------------------------------------------------------------------------------- */

static const char *const scripts[RD_SCRIPT_N] = {rd_script_claim, rd_script_lend, rd_script_commit, rd_script_write,
	rd_script_read, rd_script_upgrade};

static void scripts_ask(struct rd_conn *c)
{
	for (size_t i = 0; i < RD_SCRIPT_N; i++) {
		rd_begin(c, 3);
		rd_add(c, FW_STR("SCRIPT"));
		rd_add(c, FW_STR("LOAD"));
		rd_add(c, fw_str(scripts[i]));
	}
}

static int scripts_load(struct redis *r, struct rd_conn *c, struct rd_node *node, struct fw_err *err)
{
	const struct rd_reply *bad;
	struct rd_reply *all;
	int rc;

	scripts_ask(c);
	rc = rd_exchange(c, &r->arena, &all, err);
	bad = rc ? NULL : first_error(all);
	if (bad)
		return error(r, bad->text, "loading scripts", err);
	for (size_t i = 0; !rc && i < RD_SCRIPT_N; i++)
		(void)fw_str_copy(node->sha[i], sizeof(node->sha[i]), all->elem[i]->text);
	return rc;
}

/* A new connection: who we are. Nothing long is sent before the server has let us in: it would close the connection. */
static int greet(struct redis *r, struct rd_conn *c, struct fw_err *err)
{
	const struct rd_target *t = &r->target;
	const struct rd_reply *bad;
	struct rd_reply *all;
	int rc;

	if (t->password.p) {
		rd_begin(c, t->user.len ? 3 : 2);
		rd_add(c, FW_STR("AUTH"));
		if (t->user.len)
			rd_add(c, t->user);
		rd_add(c, t->password);
	}
	if (t->db) {
		rd_begin(c, 2);
		rd_add(c, FW_STR("SELECT"));
		rd_add_int(c, t->db);
	}
	rd_command(c, "PING");
	rc = rd_exchange(c, &r->arena, &all, err);
	bad = all && all->elem ? first_error(all) : NULL;
	return bad ? error(r, bad->text, "opening", err) : rc; /* also when it closed the connection after saying so */
}

static int node_open(struct redis *r, const char *host, int port, int *index, struct fw_err *err)
{
	struct rd_node *grown, *n;
	int rc;

	for (size_t i = 0; i < r->node_n; i++) {
		if (rd_is_at(r->node[i].conn, host, port)) {
			*index = (int)i;
			return 0;
		}
	}
	grown = reallocarray(r->node, r->node_n + 1, sizeof(*grown));
	if (!grown)
		return rd_no_memory(r, err);
	r->node = grown;
	n = &r->node[r->node_n];
	*n = (struct rd_node){0};
	rc = rd_connect(&r->target, host, port, &n->conn, err);
	rc = rc ? rc : greet(r, n->conn, err);
	rc = rc ? rc : scripts_load(r, n->conn, n, err);
	if (rc) {
		rd_disconnect(n->conn);
		return rc;
	}
	*index = (int)r->node_n++;
	return 0;
}

/* "MOVED slot host:port": the shard is there. An empty host means the one that said so. */
static int follow(struct redis *r, int shard, struct fw_str moved, struct fw_err *err)
{
	struct fw_str rest, address, port;
	int64_t number;
	char host[256];

	(void)fw_str_split(moved, ' ', &rest);
	(void)fw_str_split(rest, ' ', &address);
	for (size_t i = address.len; i > 0; i--) { /* the last colon: an IPv6 address has more */
		if (address.p[i - 1] != ':')
			continue;
		port = fw_str_sub(address, i, address.len);
		address = fw_str_sub(address, 0, i - 1);
		if (!fw_str_int(port, &number) || number < 1 || number > 65535)
			break;
		(void)fw_str_copy(host, sizeof(host), address.len ? address : r->target.host);
		return node_open(r, host, (int)number, &r->node_of[shard], err);
	}
	return error(r, moved, "following the cluster", err);
}

/* ---- commands ----------------------------------------------------------------------------------------------------------------- */

struct rd_conn *rd_shard(struct redis *r, int shard, struct fw_err *err)
{
	struct rd_conn *c = r->node[r->node_of[shard]].conn;

	if (!rd_is_broken(c))
		return c;
	fw_err_set(err, FW_EIO, "%s: the connection broke: open the store anew", r->target.name);
	return NULL;
}

void rd_key_add(struct redis *r, struct rd_conn *c, int shard, const char *key)
{
	fw_buf_addf(rd_word_begin(c), "{%.*s:%d}:%s", FW_STR_ARG(r->prefix), shard, key);
	rd_word_end(c);
}

void rd_pushed_key(const struct redis *r, const char *suffix, struct fw_buf *out)
{
	fw_buf_addf(out, *suffix ? "{%.*s:feeds_to_fetch}:%s" : "%.*s:feeds_to_fetch%s", FW_STR_ARG(r->prefix), suffix);
}

static struct rd_conn *script_begin(struct redis *r, int shard, const char *cmd, const char *script, const char *op, size_t argc)
{
	struct rd_conn *c = r->node[r->node_of[shard]].conn;

	rd_begin(c, 5 + argc);
	rd_add(c, fw_str(cmd));
	rd_add(c, fw_str(script));
	rd_add(c, FW_STR("1"));
	rd_key_add(r, c, shard, "meta");
	rd_add(c, fw_str(op));
	return c;
}

struct rd_conn *rd_op(struct redis *r, int shard, enum rd_script script, const char *op, size_t argc, struct fw_err *err)
{
	return rd_shard(r, shard, err) ? script_begin(r, shard, "EVALSHA", r->node[r->node_of[shard]].sha[script], op, argc) : NULL;
}

struct rd_conn *rd_transaction(struct redis *r, int shard, enum rd_script script, const char *op, size_t argc, struct fw_err *err)
{
	struct rd_conn *c = rd_shard(r, shard, err);

	if (!c)
		return NULL;
	rd_command(c, "MULTI");
	return script_begin(r, shard, "EVAL", scripts[script], op, argc); /* with its text: it cannot have been forgotten */
}

struct rd_conn *rd_ask(struct redis *r, int shard, const char *cmd, const char *key, size_t argc, struct fw_err *err)
{
	struct rd_conn *c = rd_shard(r, shard, err);

	if (!c)
		return NULL;
	rd_begin(c, 2 + argc);
	rd_add(c, fw_str(cmd));
	rd_key_add(r, c, shard, key);
	return c;
}

int rd_run(struct redis *r, int shard, struct fw_arena *a, struct rd_reply ***reply, const char *doing, struct fw_err *err)
{
	struct rd_reply *all = NULL;
	int rc = 0;

	for (int i = 0; i < REDIRECTS; i++) {
		struct rd_conn *c = rd_shard(r, shard, err);
		const struct rd_reply *bad;
		struct fw_buf sent;
		size_t n;

		rc = c ? rd_exchange(c, a, &all, err) : FW_ERR_CODE(err);
		if (rc)
			return rc;
		bad = first_error(all);
		*reply = all->elem;
		if (!bad)
			return 0;
		rc = error(r, bad->text, doing, err);
		if (!fw_str_starts(bad->text, FW_STR("MOVED ")) && !fw_str_starts(bad->text, FW_STR("NOSCRIPT")))
			return rc;
		rd_sent_take(c, &sent, &n);
		rc = *bad->text.p == 'M' ? follow(r, shard, bad->text, err) : scripts_load(r, c, &r->node[r->node_of[shard]], err); /* it has forgotten them */
		c = rc ? NULL : rd_shard(r, shard, err);
		if (!c) {
			fw_buf_finish(&sent);
			return FW_ERR_CODE(err);
		}
		rd_sent_put(c, &sent, n);
		rc = err->rc;
	}
	rd_forget(rd_shard(r, shard, err));
	return rc;
}

int rd_run1(struct redis *r, int shard, struct fw_arena *a, struct rd_reply **reply, const char *doing, struct fw_err *err)
{
	struct rd_reply **all;
	int rc = rd_run(r, shard, a, &all, doing, err);

	*reply = rc ? NULL : all[0];
	return rc;
}

int rd_transact(struct redis *r, int shard, struct fw_arena *a, struct rd_reply **reply, const char *doing, struct fw_err *err)
{
	struct rd_conn *c = rd_shard(r, shard, err);
	const struct rd_reply *bad, *last;
	struct rd_reply *all;
	int rc;

	*reply = NULL;
	if (!c)
		return FW_ERR_CODE(err);
	rd_command(c, "EXEC");
	rc = rd_exchange(c, a, &all, err);
	if (rc)
		return rc;
	last = all->elem[all->n - 1];
	bad = first_error(all);
	bad = bad || last->type != RD_ARRAY ? bad : first_error(last);
	if (bad && fw_str_starts(bad->text, FW_STR("MOVED "))) /* nothing was done; and what was watched is watched no more */
		return follow(r, shard, bad->text, err);
	if (bad)
		return error(r, bad->text, doing, err);
	*reply = last->type == RD_ARRAY ? last->elem[0] : NULL;
	if (*reply && (*reply)->type != RD_ARRAY)
		return fw_err_set(err, FW_EIO, "%s: %s: leases changed within a transaction: report this", r->target.name, doing);
	return 0;
}

int rd_shard_of_feed(const struct redis *r, int64_t feed_id)
{
	return (int)((feed_id - 1) % r->shard_n);
}

int rd_shard_of_host(const struct redis *r, const char *host)
{
	return r->shard_n == 1 ? 0 : (int)(fw_hash64(host, strlen(host)) % (uint64_t)r->shard_n);
}

bool rd_host(const struct redis *r, struct fw_str url, char *out, size_t cap)
{
	return r->exact_hosts ? fw_url_host(url, out, cap) : fw_store_host(url, out, cap);
}

bool rd_feed_host(const struct redis *r, const struct fw_feed *feed, char *out, size_t cap)
{
	return feed->host_key.len ? fw_store_feed_host(feed, out, cap) : rd_host(r, feed->url, out, cap);
}

int64_t rd_host_id(struct fw_str host)
{
	return host.p ? (int64_t)(fw_hash64(host.p, host.len) >> 1 | 1) : 0;
}

/* ---- waiting ---------------------------------------------------------------------------------------------------------------------- */

/* Messages do not know of databases, so the channel's name does. */
static void channel_add(struct redis *r, struct rd_conn *c)
{
	fw_buf_addf(rd_word_begin(c), "%.*s:changed:%d", FW_STR_ARG(r->prefix), r->target.db);
	rd_word_end(c);
}

void rd_tell(struct redis *r)
{
	struct fw_err spare;
	struct rd_conn *c = rd_shard(r, 0, &spare);
	struct rd_reply *all;

	if (!c)
		return;
	rd_begin(c, 3);
	rd_add(c, FW_STR("PUBLISH"));
	channel_add(r, c);
	rd_add(c, fw_str(r->me));
	(void)rd_exchange(c, &r->arena, &all, &spare); /* who is not told looks within a second */
}

/* The first call finds nothing: it only begins to listen. */
static int ear_open(struct redis *r, struct fw_err *err)
{
	struct rd_reply *all = NULL;
	int rc;

	if (r->ear)
		return 0;
	rc = rd_connect(&r->target, r->target.host.p, r->target.port, &r->ear, err);
	if (rc)
		return rc;
	rc = greet(r, r->ear, err);
	if (!rc) {
		rd_begin(r->ear, 2);
		rd_add(r->ear, FW_STR("SUBSCRIBE"));
		channel_add(r, r->ear);
		rc = rd_exchange(r->ear, &r->arena, &all, err);
	}
	if (!rc && first_error(all))
		rc = error(r, first_error(all)->text, "listening", err);
	if (rc) {
		rd_disconnect(r->ear);
		r->ear = NULL;
	}
	return rc;
}

/* Take messages until there is none; those of our own do not count. With a timeout: until one counts. */
static int listen_for(struct redis *r, int wake_fd, int64_t timeout_ms, bool *changed, struct fw_err *err)
{
	int64_t deadline_ms = fw_mono_ms() + timeout_ms;
	struct rd_reply *msg;
	int rc = ear_open(r, err);

	while (!rc) {
		int64_t left = *changed ? 0 : deadline_ms - fw_mono_ms();

		left = FW_MAX(left, 0);
		rc = rd_listen(r->ear, *changed ? -1 : wake_fd, left, &r->heard, &msg, err);
		if (rc || !msg)
			break;
		if (msg->type == RD_ARRAY && msg->n == 3 && !fw_str_eq(msg->elem[2]->text, fw_str(r->me)))
			*changed = true;
	}
	if (rc) {
		rd_disconnect(r->ear);
		r->ear = NULL;
	}
	if (!r->ear || rd_is_idle(r->ear)) /* half a message may lie there */
		fw_arena_reset(&r->heard, RD_ARENA_KEEP);
	return rc;
}

int rd_changed(struct fw_store *st, bool *changed, struct fw_err *err)
{
	struct redis *r = redis_of(st);

	fw_arena_reset(&r->arena, RD_ARENA_KEEP);
	*changed = false;
	return listen_for(r, -1, 0, changed, err);
}

/* Is there something on the list that other programs push addresses on? Nobody sends a message about that. */
static int pushed_look(struct redis *r, bool *any, struct fw_err *err)
{
	struct rd_conn *c = rd_shard(r, RD_PUSHED, err);
	struct rd_reply *n;
	int rc;

	if (!c)
		return FW_ERR_CODE(err);
	rd_begin(c, 2);
	rd_add(c, FW_STR("LLEN"));
	rd_pushed_key(r, "", rd_word_begin(c));
	rd_word_end(c);
	rc = rd_run1(r, RD_PUSHED, &r->arena, &n, "looking for addresses to fetch", err);
	*any = !rc && rd_int(n) > 0;
	return rc;
}

int rd_wait(struct fw_store *st, int wake_fd, int64_t timeout_ms, bool *changed, struct fw_err *err)
{
	struct redis *r = redis_of(st);
	int64_t deadline_ms = fw_mono_ms() + timeout_ms;
	struct pollfd p = {.fd = wake_fd, .events = POLLIN};
	int rc = 0;

	fw_arena_reset(&r->arena, RD_ARENA_KEEP);
	*changed = false;
	do {
		int64_t left = deadline_ms - fw_mono_ms();

		left = FW_MAX(left, 0);
		rc = pushed_look(r, changed, err);
		rc = rc ? rc : listen_for(r, wake_fd, *changed ? 0 : FW_MIN(left, LOOK_MS), changed, err);
	} while (!rc && !*changed && fw_mono_ms() < deadline_ms && (wake_fd < 0 || poll(&p, 1, 0) <= 0));
	return rc;
}

/* ---- life ------------------------------------------------------------------------------------------------------------------------- */

static int refuse(struct redis *r, const char *words, int rc, struct fw_err *err)
{
	return fw_err_set(err, rc, "%s: %s", r->target.name, words);
}

static bool prefix_is_good(struct fw_str s)
{
	for (size_t i = 0; i < s.len; i++) {
		if (!fw_is_alnum(s.p[i]) && !strchr("_.-:", s.p[i]))
			return false;
	}
	return s.len > 0 && s.len <= 64;
}

static int target_from_url(struct redis *r, const struct fw_store_config *cfg, int64_t *shards, struct fw_err *err)
{
	static const char *const known[] = {"db", "prefix", "shards", "stream_max", "connect_timeout_ms", "timeout_ms", "ca_file",
		"cert_file", "key_file", "verify", NULL};
	struct rd_target *t = &r->target;
	struct fw_str verify, prefix;
	struct fw_dsn d;
	int64_t db = 0;
	int rc = fw_dsn_split(&r->own, cfg->url, &d, err);

	rc = rc ? rc : fw_dsn_only(&d, known, err);
	rc = rc ? rc : fw_dsn_number(&d, "db", 0, 100000, 0, &db, err);
	rc = rc ? rc : fw_dsn_number(&d, "shards", 1, RD_SHARDS_MAX, 0, shards, err);
	rc = rc ? rc : fw_dsn_number(&d, "stream_max", 0, 1000000000, STREAM_MAX, &r->stream_max, err);
	rc = rc ? rc : fw_dsn_number(&d, "connect_timeout_ms", 1, 600000, CONNECT_MS, &t->connect_timeout_ms, err);
	rc = rc ? rc : fw_dsn_number(&d, "timeout_ms", 1, 600000, TIMEOUT_MS, &t->timeout_ms, err);
	if (rc)
		return rc;
	t->user = d.user;
	t->password = d.password;
	t->tls = fw_str_eq(d.scheme, FW_STR("rediss"));
	t->ca_file = fw_dsn_option(&d, "ca_file");
	t->cert_file = fw_dsn_option(&d, "cert_file");
	t->key_file = fw_dsn_option(&d, "key_file");
	verify = fw_dsn_option(&d, "verify");
	prefix = fw_dsn_option(&d, "prefix");
	r->prefix = prefix.p ? prefix : FW_STR("feedwheel");
	if (!prefix_is_good(r->prefix))
		return refuse(r, "prefix: 1 to 64 letters, digits and _.-: are wanted", FW_EINVAL, err);
	if (verify.p && !fw_str_eq(verify, FW_STR("yes")) && !fw_str_eq(verify, FW_STR("no")))
		return refuse(r, "verify: yes or no is wanted", FW_EINVAL, err);
	t->verify = !verify.p || fw_str_eq(verify, FW_STR("yes"));
	if (fw_str_eq(d.scheme, FW_STR("redis+unix"))) {
		t->path = d.path.p ? (struct fw_str){fw_arena_printf(&r->own, "/%s", d.path.p), d.path.len + 1} : FW_STR_NONE;
		if (d.host.p || !d.path.len)
			return refuse(r, "write redis+unix:///path/of/the/socket", FW_EINVAL, err);
	} else {
		t->host = d.host.p ? d.host : FW_STR("127.0.0.1");
		t->port = d.port ? d.port : 6379;
		if (d.path.len && (!fw_str_int(d.path, &db) || db < 0 || db > 100000))
			return refuse(r, "behind the host comes the number of the database: redis://host:6379/0", FW_EINVAL, err);
	}
	t->db = (int)db;
	return r->own.failed ? rd_no_memory(r, err) : 0;
}

struct made { /* what a shard's meta says */
	int64_t schema, shards;
	bool half;   /* an older schema is being made over */
	bool exact_hosts;
};

static void made_take(const struct rd_reply *reply, struct made *out)
{
	*out = (struct made){rd_int(reply->elem[0]), rd_int(reply->elem[1]), reply->elem[2]->type == RD_TEXT, rd_int(reply->elem[3]) != 0};
}

static int look(struct redis *r, int shard, struct made *out, struct fw_err *err)
{
	struct rd_conn *c = rd_ask(r, shard, "HMGET", "meta", 4, err);
	struct rd_reply *reply;
	int rc;

	if (!c)
		return FW_ERR_CODE(err);
	rd_add(c, FW_STR("schema"));
	rd_add(c, FW_STR("shards"));
	rd_add(c, FW_STR("upgrade"));
	rd_add(c, FW_STR("exact_hosts"));
	rc = rd_run1(r, shard, &r->arena, &reply, "reading its version", err);
	if (!rc)
		made_take(reply, out);
	return rc;
}

static int create(struct redis *r, int shard, int64_t shards, struct made *out, struct fw_err *err)
{
	struct rd_conn *c = rd_op(r, shard, RD_WRITE, "create", 3, err);
	struct rd_reply *reply;
	int rc;

	if (!c)
		return FW_ERR_CODE(err);
	rd_add_int(c, RD_SCHEMA);
	rd_add_int(c, shards ? shards : 1);
	rd_add_int(c, shard);
	rc = rd_run1(r, shard, &r->arena, &reply, "making the store", err);
	if (!rc)
		made_take(reply, out);
	return rc;
}

/* Portion after portion; others who open the store take their part in it. */
static int upgrade(struct redis *r, int shard, struct fw_err *err)
{
	bool more = true;
	int rc = 0;

	while (more && !rc) {
		struct rd_conn *c = rd_op(r, shard, RD_UPGRADE, "upgrade", 0, err);
		struct rd_reply *reply;

		if (!c)
			return FW_ERR_CODE(err);
		rc = rd_run1(r, shard, &r->arena, &reply, "bringing the store up to date", err);
		more = !rc && reply->elem[1]->text.len;
		fw_arena_reset(&r->arena, RD_ARENA_KEEP);
	}
	return rc;
}

static int too_new(struct redis *r, int64_t schema, struct fw_err *err)
{
	return fw_err_set(err, FW_EVERSION, "%s: schema %lld is newer than this program (schema %d): upgrade feedwheel", r->target.name,
		(long long)schema, RD_SCHEMA);
}

/* Bring all shards to RD_SCHEMA, or say why not. Scripts do it, so ten processes at once are one after the other. */
static int schema_open(struct redis *r, const struct fw_store_config *cfg, int64_t shards, struct fw_err *err)
{
	bool may_create = (cfg->flags & FW_STORE_CREATE) && !r->read_only, old;
	struct made m = {0};
	int rc = look(r, 0, &m, err);

	if (rc)
		return rc;
	old = m.schema < RD_SCHEMA || m.half;
	if (m.schema > RD_SCHEMA)
		return too_new(r, m.schema, err);
	if (!m.schema && !may_create)
		return refuse(r, "no feeds were ever stored here: begin with `feedwheel add URL`", FW_ENOTFOUND, err);
	if (m.schema && old && (r->read_only || (cfg->flags & FW_STORE_NO_MIGRATE)))
		return fw_err_set(err, FW_EVERSION, "%s: schema %lld is older than this program's %d: `feedwheel run` upgrades it",
			r->target.name, (long long)(m.half ? m.schema - 1 : m.schema), RD_SCHEMA);
	if (!m.schema)
		rc = create(r, 0, shards, &m, err);
	if (!rc && (m.shards < 1 || m.shards > RD_SHARDS_MAX || (shards && shards != m.shards)))
		return fw_err_set(err, FW_EINVAL, "%s: this store has %lld shards, and keeps them: leave shards out of the URL", r->target.name,
			(long long)m.shards);
	r->shard_n = rc ? 1 : (int)m.shards;
	for (int i = 0; i < r->shard_n && !rc && !r->read_only; i++) { /* a store that was killed while it was made is completed here */
		rc = create(r, i, m.shards, &m, err);
		if (!rc && (m.schema < RD_SCHEMA || m.half))
			rc = upgrade(r, i, err);
		else if (!rc && m.schema > RD_SCHEMA)
			rc = too_new(r, m.schema, err);
	}
	rc = rc ? rc : look(r, 0, &m, err);
	r->exact_hosts = m.exact_hosts;
	return rc;
}

static void redis_close(struct fw_store *st)
{
	struct redis *r = redis_of(st);

	for (size_t i = 0; i < r->node_n; i++)
		rd_disconnect(r->node[i].conn);
	rd_disconnect(r->ear);
	free(r->node);
	rd_loans_finish(&r->loans);
	fw_buf_finish(&r->shown);
	fw_arena_finish(&r->own);
	fw_arena_finish(&r->arena);
	fw_arena_finish(&r->heard);
	free(r);
}

static int redis_open(const struct fw_store_config *cfg, struct fw_store **out, struct fw_err *err)
{
	struct redis *r = calloc(1, sizeof(*r));
	unsigned char dice[16];
	int64_t shards = 0;
	int rc, node;

	if (!r)
		return fw_err_set(err, FW_ENOMEM, "redis: out of memory");
	fw_arena_init(&r->own, 0);
	fw_arena_init(&r->arena, 0);
	fw_arena_init(&r->heard, 0);
	r->base.driver = &fw_store_redis;
	r->read_only = cfg->flags & FW_STORE_READ;
	r->unsure = true;
	r->shard_n = 1;
	fw_dsn_show(&r->shown, cfg->url);
	r->target.name = r->shown.p ? r->shown.p : "redis";
	rc = getentropy(dice, sizeof(dice)) ? refuse(r, "no randomness", FW_EIO, err) : 0;
	for (size_t i = 0; i < sizeof(dice); i++)
		(void)fw_snprintf(r->me + 2 * i, 3, "%02x", dice[i]);
	rc = rc ? rc : target_from_url(r, cfg, &shards, err);
	rc = rc ? rc : node_open(r, r->target.host.p ? r->target.host.p : "", r->target.port, &node, err);
	rc = rc ? rc : schema_open(r, cfg, shards, err);
	if (rc) {
		redis_close(&r->base);
		return rc;
	}
	*out = &r->base;
	return 0;
}

static int redis_ping(struct fw_store *st, struct fw_err *err)
{
	struct redis *r = redis_of(st);
	struct made m;

	fw_arena_reset(&r->arena, RD_ARENA_KEEP);
	return look(r, 0, &m, err);
}

static const char *const schemes[] = {FW_STORE_REDIS_SCHEMES};

const struct fw_store_driver fw_store_redis = {
	.abi = FW_STORE_ABI,
	.name = "redis",
	.schemes = schemes,
	.open = redis_open,
	.close = redis_close,
	.ping = redis_ping,
	.check = rd_check,
	.claim = rd_claim,
	.commit = rd_commit,
	.release = rd_release,
	.bury = rd_bury,
	.changed = rd_changed,
	.wait = rd_wait,
	.subscribe = rd_subscribe,
	.unsubscribe = rd_unsubscribe,
	.feed_find = rd_feed_find,
	.feed_list = rd_feed_list,
	.feed_set = rd_feed_set,
	.entry_list = rd_entry_list,
	.visit_list = rd_visit_list,
	.stats = rd_stats,
	.pending = rd_pending,
	.control_put = rd_control_put,
	.control_take = rd_control_take,
	.beat_list = rd_beat_list,
	.prune = rd_prune,
	.load = rd_load,
	.key_list = rd_key_list,
	.clock = rd_clock,
	.inspect = rd_inspect,
	.event_put = rd_event_put,
	.event_bury = rd_event_bury,
	.event_list = rd_event_list,
	.event_dead_list = rd_event_dead_list,
	.event_prune = rd_event_prune,
	.record_put = rd_record_put,
	.record_get = rd_record_get,
	.record_list = rd_record_list,
	.record_remove = rd_record_remove,
	.record_prune = rd_record_prune,
	.lend = rd_lend,
	.event_unbury = rd_event_unbury,
	.due_list = rd_due_list,
	.feed_merge = rd_feed_merge,
};
