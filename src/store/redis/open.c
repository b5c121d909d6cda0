/* SPDX-License-Identifier: ISC */
/*
 * The Redis driver, for any number of workers on any number of machines, on one server or a
 * cluster.
 *
 * This file opens and closes stores, finds the node of a cluster that has the store, runs commands
 * and scripts, and turns Redis's errors into FW_E* codes. redis.h describes the keys. The .lua
 * files are the operations that must be atomic: Redis runs a script without interruption.
 *
 * A broken connection is FW_EIO, and so is a server that takes no writes, or no longer has the
 * store (MOVED). The caller opens the store again.
 */
#include <assert.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/hash.h"
#include "store/redis/redis.h"

#define TRIES 5 /* to load the library */
#define CONNECT_MS 5000
#define TIMEOUT_MS 30000
#define STREAM_MAX 100000
#define REPLY_MAX_MB 512 /* a list of three million entries, or a value as large as Redis has any */
#define STREAM_MAX_LIMIT INT64_C(1000000000)
#define SLOTS 16384 /* hash slots of a cluster */

int rs_slot_start(struct rs *r, bool writes, struct fw_err *err)
{
	if (r->in_callback)
		return fw_err_set(err, FW_EINVAL, "%s: called from a callback", r->target.name);
	fw_arena_reset(&r->arena, RS_ARENA_KEEP);
	rs_discard(r);
	return writes && r->read_only ? fw_err_set(err, FW_EINVAL, "%s: opened for reading only", r->target.name) : 0;
}

/* ---- errors ---------------------------------------------------------------------------------- */

static const struct {
	const char *prefix;
	int rc;
	const char *remedy;
} reply_errors[] = {
	{"LOADING", FW_EAGAIN, "the server is loading its data: wait until that is done"},
	{"READONLY", FW_EIO, "it is a replica: name the master in the URL, or wait until the failover is over"},
	{"MASTERDOWN", FW_EIO,
		"it is a replica without a master: wait until the failover is over, or name the master in the URL"},
	{"OOM", FW_EAGAIN, "its memory is full: raise its maxmemory, or lower entries_retention_ms"},
	{"MISCONF", FW_EAGAIN, "it cannot write to its disk: free some space there, and check its log"},
	{"BUSY", FW_EAGAIN, "it is busy with a script: wait, or run 'redis-cli SCRIPT KILL'"},
	{"NOREPLICAS", FW_EAGAIN, "it has fewer replicas than min-replicas-to-write: wait, or lower that"},
	{"CLUSTERDOWN", FW_EAGAIN, "some hash slots have no server: run 'redis-cli cluster info'"},
	{"TRYAGAIN", FW_EAGAIN, "the hash slot is moving to another node: wait until that is done"},
	{"ASK", FW_EAGAIN, "the hash slot is moving to another node: wait until that is done"},
	{"MOVED", FW_EIO,
		"its hash slot is on another node now: open the store again, or wait until it is found there"},
	{"ERR Function not found", FW_EIO,
		"it lost the functions just after they were loaded, or is a replica without them: name the master in "
		"the URL"},
	{"ERR max number of clients", FW_EAGAIN, "it has too many connections: raise its maxclients"},
	{"NOAUTH", FW_EINVAL, "it requires a password: write redis://user:password@host (or :password@)"},
	{"WRONGPASS", FW_EINVAL, "it refuses this user and password"},
	{"ERR AUTH", FW_EINVAL, "it has no password: remove the password from the URL"},
	{"NOPERM", FW_EUNUSABLE,
		"this user lacks permissions: its ACL needs ~PREFIX* ~{PREFIX* &PREFIX* +@all -@dangerous +info"},
	{"DENIED", FW_EINVAL,
		"it accepts no connections from other machines: set a password on the server, or change its bind "
		"address"},
	{"ERR DB index", FW_EINVAL,
		"it has no database with this number: remove the number from the URL, or raise its 'databases'"},
	{"ERR SELECT is not allowed", FW_EINVAL, "a cluster has database 0 only: remove the number from the URL"},
	{"WRONGTYPE", FW_EINVAL, "another program uses these keys: choose another ?prefix= or database"},
	{"ERR unknown command", FW_EVERSION, "feedwheel needs Redis 7.0 or newer"},
};

int rs_error(struct rs *r, struct fw_str text, const char *doing, struct fw_err *err)
{
	for (size_t i = 0; i < FW_N(reply_errors); i++) {
		if (fw_str_starts(text, fw_str(reply_errors[i].prefix)))
			return fw_err_set(err, reply_errors[i].rc, "%s: %s: %.*s: %s", r->target.name, doing,
				FW_STR_ARG(fw_str_sub(text, 0, 80)), reply_errors[i].remedy);
	}
	return fw_err_set(err, FW_EINVAL, "%s: %s: %.*s", r->target.name, doing, FW_STR_ARG(fw_str_sub(text, 0, 160)));
}

int rs_malformed(struct rs *r, const char *doing, struct fw_err *err)
{
	if (r->conn)
		rs_conn_distrust(r->conn);
	return FW_ERR(err, FW_EIO,
		"%s: %s: malformed reply: is it a Redis server, and does nothing in between change its replies?",
		r->target.name, doing);
}

/* ---- the connection -------------------------------------------------------------------------- */

/* Another client may have loaded it; a replica has it from its master. */
static int library_load(struct rs *r, struct fw_err *err)
{
	struct rs_conn *c = r->conn;
	const struct rs_reply *bad;
	struct rs_reply *all;
	int rc;

	rs_conn_begin(c);
	rs_conn_add(c, FW_STR("FUNCTION"));
	rs_conn_add(c, FW_STR("LOAD"));
	rs_conn_add(c, fw_buf_str(&r->library));
	rc = rs_conn_exchange(c, &r->arena, &all, err);
	bad = rc ? NULL : rs_reply_error(all);
	if (!bad || fw_str_find(bad->text, FW_STR("already exists")) || fw_str_starts(bad->text, FW_STR("READONLY")))
		return rc;
	return rs_error(r, bad->text, "loading its functions", err);
}

static int library_make(struct rs *r, struct fw_err *err)
{
	static const char *const NAME[RS_FUNCTION_N] = {"write", "read", "trim"};
	uint64_t hash = fw_hash64(rs_library, strlen(rs_library));

	fw_buf_addf(&r->library, "#!lua name=feedwheel_%016llx\nlocal NAME = 'feedwheel_%016llx'\n",
		(unsigned long long)hash, (unsigned long long)hash);
	fw_buf_adds(&r->library, rs_library);
	for (size_t i = 0; i < RS_FUNCTION_N; i++)
		(void)fw_snprintf(r->function[i], sizeof(r->function[i]), "feedwheel_%016llx_%s",
			(unsigned long long)hash, NAME[i]);
	return r->library.rc ? rs_no_memory(r, err) : 0;
}

int rs_authenticate(struct rs *r, struct rs_conn *c, struct fw_err *err)
{
	const struct rs_target *t = &r->target;
	const struct rs_reply *bad;
	struct rs_reply *all;
	int rc;

	if (t->password.p) {
		rs_conn_begin(c);
		rs_conn_add(c, FW_STR("AUTH"));
		if (t->user.len)
			rs_conn_add(c, t->user);
		rs_conn_add(c, t->password);
	}
	if (t->db) {
		char db[16];

		rs_conn_begin(c);
		rs_conn_add(c, FW_STR("SELECT"));
		rs_conn_add(c, fw_snprintf(db, sizeof(db), "%d", t->db) ? fw_str(db) : FW_STR("0"));
	}
	rs_conn_command(c, "PING");
	rc = rs_conn_exchange(c, &r->arena, &all, err);
	bad = all ? rs_reply_error(all) : NULL;
	return bad ? rs_error(r, bad->text, "opening", err) :
		     rc; /* also if the server sent an error and closed the connection */
}

static int conn_open(struct rs *r, const char *host, int port, struct fw_err *err)
{
	struct rs_conn *c;
	int rc = rs_conn_open(&r->target, host, port, &c, err);

	if (rc)
		return rc;
	rc = rs_authenticate(r, c, err);
	if (rc) {
		rs_conn_close(c);
		return rc;
	}
	rs_conn_close(r->conn);
	r->conn = c;
	return 0;
}

/* The hash slot of a key with this tag: CRC16 of the text between the braces. */
static unsigned hash_slot(struct fw_str tag)
{
	unsigned crc = 0;

	assert(tag.len > 3 && *tag.p == '{');
	for (size_t i = 1; i + 2 < tag.len; i++) {
		crc ^= (unsigned)(unsigned char)tag.p[i] << 8;
		for (int bit = 0; bit < 8; bit++)
			crc = crc & 0x8000 ? (crc << 1 ^ 0x1021) & 0xffff : crc << 1 & 0xffff;
	}
	return crc % SLOTS;
}

/*
 * On a cluster: connect to the node that has the store. A server outside a cluster replies with an
 * error. A range of slots is {first, last, {host, port, ...}, ...}; an empty host means the server
 * that replied.
 */
static int node_find(struct rs *r, struct fw_err *err)
{
	int64_t slot = hash_slot(r->tag), port = 0;
	struct fw_str name = FW_STR_NONE;
	const struct rs_reply *slots;
	struct rs_reply *all;
	char host[256];
	int rc;

	rs_conn_command(r->conn, "CLUSTER SLOTS");
	rc = rs_conn_exchange(r->conn, &r->arena, &all, err);
	if (rc)
		return rc;
	slots = rs_elem(all, 0);
	r->cluster = slots->type != RS_ERROR;
	if (!r->cluster)
		return fw_str_starts(slots->text, FW_STR("ERR ")) ? 0 : rs_error(r, slots->text, "opening", err);
	if (!rs_reply_fits(slots, "([ii[t?i.].])", 0))
		return rs_malformed(r, "reading the cluster's slots", err);
	for (size_t i = 0; i < slots->n; i++) {
		const struct rs_reply *range = rs_elem(slots, i), *node = rs_elem(range, 2);

		if (slot < rs_int(rs_elem(range, 0)) || slot > rs_int(rs_elem(range, 1)))
			continue;
		name = rs_elem(node, 0)->text;
		port = rs_int(rs_elem(node, 1));
	}
	if (!port)
		return rs_error(r, FW_STR("CLUSTERDOWN no node has the store's hash slot"), "opening", err);
	if (!fw_str_copy(host, sizeof(host), name.len ? name : r->target.host) || port < 0 || port > 65535)
		return rs_malformed(r, "reading the cluster's slots", err);
	return rs_conn_is_at(r->conn, host, (int)port) ? 0 : conn_open(r, host, (int)port, err);
}

/* ---- commands -------------------------------------------------------------------------------- */

static void command_begin(struct rs *r)
{
	assert(r->cmd_n <= r->cmd_cap);
	if (r->cmd_n == r->cmd_cap) {
		struct rs_cmd *grown = reallocarray(r->cmd, 2 * r->cmd_cap, sizeof(*grown));

		if (grown) {
			r->cmd = grown;
			r->cmd_cap *= 2;
		} else {
			r->failed = FW_ENOMEM;
			r->cmd_n--; /* failed is set, so nothing is sent */
		}
	}
	r->cmd[r->cmd_n++] = (struct rs_cmd){.nth = rs_conn_pending(r->conn)};
	rs_conn_begin(r->conn);
}

void rs_call(struct rs *r, enum rs_function function, const char *op)
{
	command_begin(r);
	rs_conn_add(r->conn, FW_STR("FCALL"));
	rs_conn_add(r->conn, fw_str(r->function[function]));
	rs_conn_add(r->conn, FW_STR("1"));
	rs_conn_add(r->conn, r->tag);
	rs_conn_add(r->conn, fw_str(op));
	rs_conn_add(r->conn, r->channel);
	rs_conn_add(r->conn, fw_str(r->sender_id));
}

void rs_command(struct rs *r, const char *words)
{
	struct fw_str rest = fw_str(words);

	command_begin(r);
	while (rest.p)
		rs_conn_add(r->conn, fw_str_split(rest, ' ', &rest));
}

void rs_key(struct rs *r, const char *fmt, ...)
{
	struct fw_buf *b = rs_conn_word(r->conn);
	va_list ap;

	fw_buf_addstr(b, r->tag);
	va_start(ap, fmt);
	fw_buf_vaddf(b, fmt, ap);
	va_end(ap);
	rs_conn_word_end(r->conn);
}

void rs_stream_key(struct rs *r)
{
	struct fw_buf *b = rs_conn_word(r->conn);

	fw_buf_addstr(b, r->door);
	fw_buf_adds(b, "new");
	rs_conn_word_end(r->conn);
}

void rs_command_key(struct rs *r, const char *cmd, const char *key)
{
	rs_command(r, cmd);
	rs_key(r, "%s", key);
}

void rs_add(struct rs *r, struct fw_str word)
{
	rs_conn_add(r->conn, word);
}

void rs_adds(struct rs *r, const char *word)
{
	rs_conn_add(r->conn, fw_str(word));
}

void rs_addi(struct rs *r, int64_t n)
{
	char text[24];

	rs_conn_add(r->conn, rs_int_text(n, text));
}

struct fw_buf *rs_word(struct rs *r)
{
	return rs_conn_word(r->conn);
}

void rs_word_end(struct rs *r)
{
	rs_conn_word_end(r->conn);
}

void rs_expect_n(struct rs *r, const char *shape, size_t n)
{
	assert(r->cmd_n);
	r->cmd[r->cmd_n - 1].shape = shape;
	r->cmd[r->cmd_n - 1].n = n;
}

void rs_discard(struct rs *r)
{
	if (r->conn)
		rs_conn_discard(r->conn);
	r->cmd_n = 0;
	r->failed = 0;
}

static bool reply_needs_retry(const struct rs_reply *reply)
{
	return reply->type == RS_ERROR && fw_str_starts(reply->text, FW_STR("ERR Function not found"));
}

/* Load the library, and collect again the commands that missed it. *more: there are some. */
static int commands_retry(struct rs *r, size_t n, bool *more, struct fw_err *err)
{
	struct fw_str *kept = fw_arena_calloc(&r->arena, n + 1, sizeof(*kept));
	int rc;

	*more = false;
	if (!kept)
		return rs_no_memory(r, err);
	for (size_t i = 0; i < n; i++) {
		if (!reply_needs_retry(r->reply[i]))
			continue;
		*more = true;
		kept[i] = fw_arena_str(&r->arena, rs_conn_get_sent(r->conn, r->cmd[i].nth));
	}
	rc = *more ? library_load(r, err) : 0;
	for (size_t i = 0; !rc && i < n; i++) {
		if (!kept[i].p)
			continue;
		r->cmd[i].nth = rs_conn_pending(r->conn);
		rs_conn_add_raw(r->conn, kept[i]);
	}
	return rc;
}

static int replies_alloc(struct rs *r, size_t *n, struct fw_err *err)
{
	assert(!r->in_callback);
	*n = r->cmd_n;
	r->cmd_n = 0;
	r->reply = fw_arena_calloc(&r->arena, *n + 1, sizeof(const struct rs_reply *));
	if (r->reply && !r->failed)
		return 0;
	rs_discard(r);
	return rs_no_memory(r, err);
}

/* From here on each reply is an error, or has the shape of its command, or is nil. */
static int replies_shape(struct rs *r, size_t n, const char *doing, struct fw_err *err)
{
	int rc = 0;

	for (size_t k = 0; k < n; k++) {
		const struct rs_cmd *c = &r->cmd[k];

		if (r->reply[k]->type == RS_ERROR || (c->shape && rs_reply_fits(r->reply[k], c->shape, c->n)))
			continue;
		rc = c->shape ? FW_EIO : rc;
		r->reply[k] = &rs_nil;
	}
	return rc ? rs_malformed(r, doing, err) : 0;
}

static int replies_check(struct rs *r, size_t n, const char *doing, struct fw_err *err)
{
	for (size_t k = 0; k < n; k++) {
		if (r->reply[k]->type == RS_ERROR)
			return rs_error(r, r->reply[k]->text, doing, err);
	}
	return 0;
}

int rs_run(struct rs *r, const char *doing, struct fw_err *err)
{
	struct rs_reply *all;
	bool more = true;
	size_t n;
	int rc = replies_alloc(r, &n, err);

	for (int i = 0; !rc && more && i < TRIES && n; i++) {
		rc = rs_conn_exchange(r->conn, &r->arena, &all, err);
		for (size_t k = 0; !rc && k < n; k++) {
			if (!r->reply[k] || reply_needs_retry(r->reply[k]))
				r->reply[k] = rs_elem(all, r->cmd[k].nth);
		}
		rc = rc ? rc : commands_retry(r, n, &more, err);
	}
	if (rc || more)
		rs_discard(r);
	rc = rc ? rc : replies_shape(r, n, doing, err);
	return rc ? rc : replies_check(r, n, doing, err);
}

int rs_run_once(struct rs *r, const char *doing, struct fw_err *err)
{
	struct rs_reply *all;
	size_t n;
	int rc = replies_alloc(r, &n, err);

	rc = rc ? rc : rs_conn_exchange(r->conn, &r->arena, &all, err);
	if (rc) {
		rs_discard(r);
		return rc;
	}
	for (size_t k = 0; k < n; k++)
		r->reply[k] = rs_elem(all, k);
	rc = replies_shape(r, n, doing, err);
	rc = rc ? rc : replies_check(r, n, doing, err);
	for (size_t k = 0; !rc && k < n; k++) { /* errors of the commands inside EXEC */
		const struct rs_reply *in = rs_reply_error(r->reply[k]);

		rc = in ? rs_error(r, in->text, doing, err) : 0;
	}
	return rc;
}

struct fw_str rs_info_field(const struct rs_reply *info, const char *name)
{
	struct fw_str rest = info->type == RS_TEXT ? info->text : FW_STR_NONE, value;

	while (rest.p) {
		struct fw_str line = fw_str_trim(fw_str_split(rest, '\n', &rest));

		if (fw_str_eq(fw_str_split(line, ':', &value), fw_str(name)))
			return value;
	}
	return FW_STR_NONE;
}

struct fw_str rs_info(struct rs *r, const char *section, const char *name)
{
	struct fw_err spare;
	struct rs_conn *c = r->conn;
	struct rs_reply *all;

	rs_conn_begin(c);
	rs_conn_add(c, FW_STR("INFO"));
	rs_conn_add(c, fw_str(section));
	return rs_conn_exchange(c, &r->arena, &all, &spare) ? FW_STR_NONE : rs_info_field(rs_elem(all, 0), name);
}

/* ---- messages -------------------------------------------------------------------------------- */

/* Subscribe. Messages published before that are not received. */
static int subscriber_open(struct rs *r, struct fw_err *err)
{
	const struct rs_reply *bad;
	struct rs_reply *all = NULL;
	int rc;

	if (r->subscriber)
		return 0;
	rc = rs_conn_open(&r->target, r->target.host.p, r->target.port, &r->subscriber, err);
	if (rc)
		return rc;
	rc = rs_authenticate(r, r->subscriber, err);
	if (!rc) {
		rs_conn_begin(r->subscriber);
		rs_conn_add(r->subscriber, FW_STR("SUBSCRIBE"));
		rs_conn_add(r->subscriber, r->channel);
		rc = rs_conn_exchange(r->subscriber, &r->arena, &all, err);
	}
	bad = rc ? NULL : rs_reply_error(all);
	if (bad)
		return rs_error(r, bad->text, "listening", err);
	return rc || rs_reply_fits(rs_elem(all, 0), "[tti]", 0) ? rc : rs_malformed(r, "listening", err);
}

/* Wait for a message of another process. Messages of this store do not count. */
static int rs_wait(struct store *st, int wake_fd, int64_t timeout_ms, bool *is_changed, struct fw_err *err)
{
	struct rs *r = rs_of(st);
	int64_t deadline_ms = fw_mono_ms() + timeout_ms;
	struct rs_reply *msg;
	int rc;

	*is_changed = false;
	rc = rs_slot_start(r, false, err);
	rc = rc ? rc : subscriber_open(r, err);
	while (!rc) {
		int64_t left = *is_changed ? 0 : deadline_ms - fw_mono_ms();

		rc = rs_conn_listen(
			r->subscriber, *is_changed ? -1 : wake_fd, FW_MAX(left, 0), &r->messages, &msg, err);
		if (rc || !msg)
			break;
		if (rs_reply_fits(msg, "[ttt]", 0) && !fw_str_eq(rs_elem(msg, 2)->text, fw_str(r->sender_id)))
			*is_changed = true;
	}
	if (rc) {
		rs_conn_close(r->subscriber);
		r->subscriber = NULL;
	}
	if (!r->subscriber || rs_conn_is_idle(r->subscriber)) /* half a message may lie there */
		fw_arena_reset(&r->messages, RS_ARENA_KEEP);
	return rc;
}

/* ---- open and close -------------------------------------------------------------------------- */

static int open_refuse(struct rs *r, const char *words, int rc, struct fw_err *err)
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

int rs_target_read(struct rs *r, const char *url, struct fw_err *err)
{
	static const char *const known[] = {"db", "prefix", "connect_timeout_ms", "timeout_ms", "ca_file", "cert_file",
		"key_file", "verify", "stream_max", "reply_max_mb", NULL};
	struct rs_target *t = &r->target;
	struct fw_str verify, prefix;
	struct fw_dsn d;
	int64_t db = 0;
	int rc = fw_dsn_split(&r->own, FW_DSN_STORE, url, &d, err);

	rc = rc ? rc : fw_dsn_only(&d, known, err);
	rc = rc ? rc : fw_dsn_number(&d, "db", 0, 100000, 0, &db, err);
	rc = rc ? rc : fw_dsn_number(&d, "connect_timeout_ms", 1, 600000, CONNECT_MS, &t->connect_timeout_ms, err);
	rc = rc ? rc : fw_dsn_number(&d, "timeout_ms", 1, 600000, TIMEOUT_MS, &t->timeout_ms, err);
	rc = rc ? rc : fw_dsn_number(&d, "stream_max", 0, STREAM_MAX_LIMIT, STREAM_MAX, &r->stream_max, err);
	rc = rc ? rc : fw_dsn_number(&d, "reply_max_mb", 1, 1 << 20, REPLY_MAX_MB, &t->reply_max_bytes, err);
	if (rc)
		return rc;
	t->reply_max_bytes <<= 20;
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
		return open_refuse(r, "prefix: write 1 to 64 letters, digits and _.-:", FW_EINVAL, err);
	if (verify.p && !fw_str_eq(verify, FW_STR("yes")) && !fw_str_eq(verify, FW_STR("no")))
		return open_refuse(r, "verify: write yes or no", FW_EINVAL, err);
	t->verify = !verify.p || fw_str_eq(verify, FW_STR("yes"));
	if (fw_str_eq(d.scheme, FW_STR("redis+unix"))) {
		t->path = d.path.p ? (struct fw_str){fw_arena_printf(&r->own, "/%s", d.path.p), d.path.len + 1} :
				     FW_STR_NONE;
		if (d.host.p || !d.path.len)
			return open_refuse(r, "write redis+unix:///path/of/the/socket", FW_EINVAL, err);
	} else {
		t->host = d.host.p ? d.host : FW_STR("127.0.0.1");
		t->port = d.port ? d.port : 6379;
		if (d.path.len && (!fw_str_int(d.path, &db) || db < 0 || db > 100000))
			return open_refuse(
				r, "invalid number of the database: write redis://host:6379/0", FW_EINVAL, err);
	}
	t->db = (int)db;
	return r->own.failed ? rs_no_memory(r, err) : 0;
}

static int names_init(struct rs *r, struct fw_err *err)
{
	unsigned char random[16];

	if (getentropy(random, sizeof(random)))
		return open_refuse(r, "the system returned no random bytes", FW_EIO, err);
	fw_hex_write(r->sender_id, random, sizeof(random));
	r->tag = fw_str(fw_arena_printf(&r->own, "{%.*s/0}:", FW_STR_ARG(r->prefix)));
	/* Redis channels span all databases, so the name contains the database */
	r->channel = fw_str(fw_arena_printf(&r->own, "%.*s:changed:%d", FW_STR_ARG(r->prefix), r->target.db));
	return r->own.failed ? rs_no_memory(r, err) : 0;
}

/* Keys of a version before the first release: "{prefix:0}:meta". */
static int old_store_find(struct rs *r, bool *old, struct fw_err *err)
{
	struct rs_conn *c = r->conn;
	struct rs_reply *all;
	char key[100];
	int rc;

	/* the old tag has another hash slot, so a node of a cluster could not answer */
	if (r->cluster)
		return 0;
	rs_conn_begin(c);
	rs_conn_add(c, FW_STR("EXISTS"));
	(void)fw_snprintf(key, sizeof(key), "{%.*s:0}:meta", FW_STR_ARG(r->prefix));
	rs_conn_add(c, fw_str(key));
	rc = rs_conn_exchange(c, &r->arena, &all, err);
	*old = !rc && rs_int(rs_elem(all, 0)) > 0;
	return rc;
}

static int schema_open(struct rs *r, const struct fw_store_config *cfg, struct fw_err *err)
{
	int64_t schema = 0, part_n;
	bool old = false, has_marks;
	int rc;

	rs_command_key(r, "HMGET", "meta");
	rs_adds(r, "schema_version");
	rs_adds(r, "cells");
	rs_adds(r, "schema"); /* of a version before the first release */
	rs_expect(r, "[i?i?t?]");
	rs_command_key(r, "EXISTS", "merging");
	rs_key(r, "adopting");
	rs_key(r, "void");
	rs_expect(r, "i");
	rc = rs_run(r, "reading its version", err);
	has_marks = !rc && rs_int(r->reply[1]) > 0 && !r->read_only;
	rc = rc ? rc : old_store_find(r, &old, err);
	if (rc)
		return rc;
	schema = rs_int(rs_elem(r->reply[0], 0));
	if (!schema && (old || rs_elem(r->reply[0], 2)->type != RS_NIL))
		return open_refuse(
			r, "a store of a version before the first release: choose another prefix", FW_EVERSION, err);
	if (!schema && (!(cfg->flags & FW_STORE_CREATE) || r->read_only))
		return open_refuse(
			r, "the store does not exist: create it with `feedwheel add URL`", FW_ENOTFOUND, err);
	if (!schema) {
		rs_call(r, RS_WRITE, "make");
		rs_addi(r, RS_SCHEMA);
		rs_expect(r, "[ii]");
		rc = rs_run(r, "making the store", err);
		schema = rc ? 0 : rs_int(rs_elem(r->reply[0], 0));
	}
	if (rc)
		return rc;
	part_n = rs_int(rs_elem(r->reply[0], 1));
	/* schema 1 lacks keys that are made when they are needed; a reader finds none */
	if (schema == 1 && r->read_only)
		schema = RS_SCHEMA;
	if (schema == 1) {
		rs_command_key(r, "HSET", "meta");
		rs_adds(r, "schema_version");
		rs_addi(r, RS_SCHEMA);
		rc = rs_run(r, "upgrading the store", err);
		schema = RS_SCHEMA;
	}
	if (rc)
		return rc;
	if (schema != RS_SCHEMA)
		return fw_err_set(err, FW_EVERSION,
			"%s: schema %lld is newer than this program (schema %d): upgrade feedwheel", r->target.name,
			(long long)schema, RS_SCHEMA);
	if (part_n == 16)
		return open_refuse(r,
			"a store of feedwheel 0.1, spread over the nodes of a cluster: copy it with feedwheel 0.1 into "
			"a store on one server, or of another engine (`feedwheel copy`), and open that one",
			FW_EVERSION, err);
	if (part_n != 1)
		return rs_malformed(r, "reading its version", err);
	if (!has_marks)
		return 0;
	rs_call(r, RS_WRITE, "tidy");
	return rs_run(r, "finishing what an earlier version began", err);
}

/* On one server the lists of other programs need no hash tag: so they are easier to write. */
static int door_name_init(struct rs *r, struct fw_err *err)
{
	r->door = r->tag;
	if (!r->cluster)
		r->door = fw_str(fw_arena_printf(&r->own, "%.*s:", FW_STR_ARG(r->prefix)));
	return r->own.failed ? rs_no_memory(r, err) : 0;
}

/* A commit that finds another type there would be stored without its message, and fail. */
static int stream_check_type(struct rs *r, struct fw_err *err)
{
	struct fw_str type;
	int rc;

	if (r->read_only || !r->stream_max)
		return 0;
	rs_command(r, "TYPE");
	rs_expect(r, "t");
	rs_stream_key(r);
	rc = rs_run(r, "opening", err);
	type = rc ? FW_STR_NONE : r->reply[0]->text;
	if (rc || fw_str_eq(type, FW_STR("stream")) || fw_str_eq(type, FW_STR("none")))
		return rc;
	return fw_err_set(err, FW_EINVAL,
		"%s: key %.*snew is no stream: rename it, or add stream_max=0 to the store's URL", r->target.name,
		FW_STR_ARG(r->door));
}

static void rs_close(struct store *st)
{
	struct rs *r = rs_of(st);

	rs_conn_close(r->conn);
	rs_conn_close(r->subscriber);
	free(r->cmd);
	fw_buf_finish(&r->shown);
	fw_buf_finish(&r->library);
	fw_arena_finish(&r->own);
	fw_arena_finish(&r->arena);
	fw_arena_finish(&r->messages);
	free(r);
}

static int rs_open(const struct fw_store_config *cfg, struct store **out, struct fw_err *err)
{
	struct rs *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return fw_err_set(err, FW_ENOMEM, "redis: out of memory");
	fw_arena_init(&r->own, 0);
	fw_arena_init(&r->arena, 0);
	fw_arena_init(&r->messages, 0);
	r->store.driver = &store_redis;
	r->read_only = cfg->flags & FW_STORE_READ;
	r->revisions_max = cfg->revisions_max;
	r->revision_max_bytes = cfg->revision_max_bytes ? (int64_t)cfg->revision_max_bytes : INT64_MAX;
	r->cmd_cap = 256;
	r->shards_at_once = 1;
	r->cmd = calloc(r->cmd_cap, sizeof(*r->cmd));
	fw_dsn_show(&r->shown, cfg->url);
	r->target.name = r->shown.p ? r->shown.p : "redis";
	rc = r->cmd ? rs_target_read(r, cfg->url, err) : rs_no_memory(r, err);
	rc = rc ? rc : names_init(r, err);
	rc = rc ? rc : library_make(r, err);
	rc = rc ? rc : conn_open(r, r->target.host.p ? r->target.host.p : "", r->target.port, err);
	rc = rc ? rc : library_load(r, err); /* another node gets it when a call fails: commands_retry() */
	rc = rc ? rc : node_find(r, err);
	rc = rc ? rc : schema_open(r, cfg, err);
	rc = rc ? rc : door_name_init(r, err);
	rc = rc ? rc : stream_check_type(r, err);
	if (rc) {
		rs_close(&r->store);
		return rc;
	}
	*out = &r->store;
	return 0;
}

static const char *const redis_schemes[] = {FW_STORE_REDIS_SCHEMES};

const struct store_driver store_redis = {
	.name = "redis",
	.schemes = redis_schemes,
	.no_index = true,
	.open = rs_open,
	.close = rs_close,
	.clock = rs_clock,
	.inspect = rs_inspect,
	.wait = rs_wait,
	.stats = rs_stats,
	.prune = rs_prune,
	.heartbeat = rs_heartbeat,
	.release = rs_release,
	.due = rs_due,
	.commit = rs_commit,
	.load = rs_load,
	.feed_list = rs_feed_list,
	.feed_set = rs_feed_set,
	.feed_drop = rs_feed_drop,
	.feed_adopt = rs_feed_adopt,
	.entry_list = rs_entry_list,
	.change_list = rs_change_list,
	.revision_list = rs_revision_list,
	.key_list = rs_key_list,
	.visit_list = rs_visit_list,
	.match_put = rs_match_put,
	.match_list = rs_match_list,
	.match_remove = rs_match_remove,
	.match_summary = rs_match_summary,
	.stream_append = rs_stream_append,
	.event_put = rs_event_put,
	.event_ids = rs_event_ids,
	.event_list = rs_event_list,
	.event_remove = rs_event_remove,
	.orders_version = rs_orders_version,
	.record_put = rs_record_put,
	.record_list = rs_record_list,
	.record_remove = rs_record_remove,
	.inbox = rs_inbox,
};
