/* SPDX-License-Identifier: ISC */
/*
 * One connection to a Redis server: a socket (TCP, TLS or Unix), a buffer that collects commands,
 * and hiredis's parser for the replies.
 *
 * hiredis does not send. Release 0.14, which is still in use, has no TLS, copies each command
 * twice, and cannot put replies into an arena.
 *
 * Sending starts while a long pipeline is still collected, so that the server parses it meanwhile.
 * The exchange sends the rest and reads replies at the same time, so a long pipeline cannot block
 * both sides. A server that makes no progress for timeout_ms counts as dead. TCP keep-alive detects
 * a server that vanishes while the connection is idle.
 *
 * A reply takes memory as it arrives: what its header promises is not believed, and all replies of
 * an exchange together have a limit.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <hiredis/read.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/dial.h"
#include "store/redis/redis.h"

#define PUSH_BYTES ((size_t)1 << 16) /* this many unsent bytes are sent before the exchange */
#define DEPTH_MAX 7                  /* arrays in arrays; ours have two */
#define ROOM_FIRST 1024              /* elements that an array gets room for before any arrived */
/*
 * A server that sends a byte now and then holds nobody: within timeout_ms it has to complete a
 * reply, or to move this much; and all replies within this many times timeout_ms.
 */
#define PROGRESS_BYTES ((size_t)1 << 16)
#define TIMEOUTS_MAX 20

struct rs_conn {
	const struct rs_target *target;
	char where[300]; /* for messages */
	char host[256];
	int port;
	int fd;
	SSL_CTX *ctx;
	SSL *ssl;
	redisReader *reader;
	struct fw_buf out, offsets;       /* commands, and the offset of each (size_t) */
	struct fw_buf sent, sent_offsets; /* those of the last exchange */
	struct fw_buf word;
	size_t pushed; /* bytes of out that are sent already */
	size_t word_n; /* words of the command that is being collected; 0: none is */
	bool broken;
	bool answered; /* at least once */
	struct fw_arena *arena;
	size_t reply_bytes; /* taken from the arena for the replies of this exchange */
	bool too_large;
};

/* ---- replies into an arena ------------------------------------------------------------------- */

/* Memory for a reply. NULL: there is none left, or the replies are too large. */
static void *reply_alloc(struct rs_conn *c, size_t n)
{
	size_t max = (size_t)c->target->reply_max_bytes;

	if (n > max - FW_MIN(c->reply_bytes, max)) {
		c->too_large = true;
		return NULL;
	}
	c->reply_bytes += n;
	return fw_arena_alloc(c->arena, n);
}

static bool reply_append(struct rs_conn *c, struct rs_reply *to, struct rs_reply *r)
{
	if (to->n == to->room) {
		struct rs_reply **grown = reply_alloc(c, 2 * to->room * sizeof(r));

		if (!grown)
			return false;
		memcpy(grown, to->elem, to->n * sizeof(r));
		to->elem = grown;
		to->room *= 2;
	}
	to->elem[to->n++] = r;
	return true;
}

static struct rs_reply *reply_new(const redisReadTask *task, enum rs_type type)
{
	struct rs_conn *c = task->privdata;
	struct rs_reply *r = reply_alloc(c, sizeof(*r));

	if (!r)
		return NULL;
	*r = (struct rs_reply){.type = type};
	return !task->parent || reply_append(c, task->parent->obj, r) ? r : NULL;
}

static void *reply_on_string(const redisReadTask *task, char *p, size_t len)
{
	struct rs_reply *r = reply_new(task, task->type == REDIS_REPLY_ERROR ? RS_ERROR : RS_TEXT);
	char *text = r ? reply_alloc(task->privdata, len + 1) : NULL;

	if (!text)
		return NULL;
	memcpy(text, p, len);
	text[len] = '\0';
	r->text = (struct fw_str){text, len};
	return r;
}

static void *reply_on_array(const redisReadTask *task, FW_HIREDIS_COUNT n)
{
	struct rs_conn *c = task->privdata;
	struct rs_reply *r = reply_new(task, RS_ARRAY);
	int depth = 0;

	for (const redisReadTask *t = task; t && depth <= DEPTH_MAX; t = t->parent)
		depth++;
	if (!r || depth > DEPTH_MAX) {
		c->too_large = true;
		return NULL;
	}
	r->room = FW_MIN((size_t)n, (size_t)ROOM_FIRST) + 1;
	r->elem = reply_alloc(c, r->room * sizeof(struct rs_reply *));
	return r->elem ? r : NULL;
}

static void *reply_on_integer(const redisReadTask *task, long long value)
{
	struct rs_reply *r = reply_new(task, RS_INT);

	if (r)
		r->integer = value;
	return r;
}

static void *reply_on_nil(const redisReadTask *task)
{
	return reply_new(task, RS_NIL);
}

#if FW_HIREDIS_RESP3
/* Types that only a client gets that asked for them, which we do not. */
static void *reply_on_double(const redisReadTask *task, double value, char *p, size_t len)
{
	(void)value;
	(void)p;
	(void)len;
	return reply_new(task, RS_NIL);
}

static void *reply_on_bool(const redisReadTask *task, int value)
{
	(void)value;
	return reply_new(task, RS_NIL);
}
#endif

static void reply_on_free(void *reply)
{
	(void)reply; /* the arena owns it */
}

/* ---- opening --------------------------------------------------------------------------------- */

static int conn_broke(struct rs_conn *c, struct fw_err *err, const char *what)
{
	c->broken = true;
	return store_dial_broke(c->where, what, err);
}

static struct store_dial conn_dial(const struct rs_conn *c, int64_t deadline_ms)
{
	return (struct store_dial){.where = c->where,
		.remedy = ", or raise connect_timeout_ms and timeout_ms",
		.deadline_ms = deadline_ms,
		.refuses = c->target->refuses,
		.ctx = c->target->refuses_ctx};
}

/* 0: ready. FW_EIO: the deadline passed. */
static int conn_wait(struct rs_conn *c, short events, int64_t deadline_ms, const char *what, struct fw_err *err)
{
	struct store_dial d = conn_dial(c, deadline_ms);
	int rc = store_dial_wait(&d, c->fd, events, what, err);

	c->broken = c->broken || rc;
	return rc;
}

static int unix_connect(struct rs_conn *c, int64_t deadline_ms, struct fw_err *err)
{
	struct store_dial d = conn_dial(c, deadline_ms);
	struct sockaddr_un sa = {.sun_family = AF_UNIX};

	if (!fw_str_copy(sa.sun_path, sizeof(sa.sun_path), c->target->path))
		return fw_err_set(err, FW_EINVAL, "%s: the socket path is longer than %zu bytes", c->where,
			sizeof(sa.sun_path) - 1);
	return store_dial_address(&d, (struct sockaddr *)&sa, sizeof(sa), &c->fd, err);
}

static int tcp_connect(struct rs_conn *c, int64_t deadline_ms, struct fw_err *err)
{
	struct store_dial d = conn_dial(c, deadline_ms);

	return store_dial_host(&d, c->host, c->port, &c->fd, err);
}

static int tls_error(struct rs_conn *c, const char *what, struct fw_err *err)
{
	long verdict = c->ssl ? SSL_get_verify_result(c->ssl) : X509_V_OK;
	const char *reason = ERR_reason_error_string(ERR_peek_last_error());

	ERR_clear_error();
	c->broken = true;
	if (verdict != X509_V_OK)
		return fw_err_set(err, FW_EINVAL, "%s: the server's certificate is refused (%s): check ca_file",
			c->where, X509_verify_cert_error_string(verdict));
	return fw_err_set(
		err, FW_EIO, "%s: TLS: %s: %s", c->where, what, reason ? reason : "the server closed the connection");
}

static int tls_files(struct rs_conn *c, struct fw_err *err)
{
	const struct rs_target *t = c->target;

	if (t->ca_file.p ? SSL_CTX_load_verify_locations(c->ctx, t->ca_file.p, NULL) != 1 :
			   SSL_CTX_set_default_verify_paths(c->ctx) != 1) {
		ERR_clear_error();
		return fw_err_set(err, FW_EINVAL, "%s: ca_file %s cannot be read", c->where,
			t->ca_file.p ? t->ca_file.p : "of the system");
	}
	if (t->cert_file.p && SSL_CTX_use_certificate_chain_file(c->ctx, t->cert_file.p) != 1) {
		ERR_clear_error();
		return fw_err_set(err, FW_EINVAL, "%s: cert_file %s cannot be read", c->where, t->cert_file.p);
	}
	if (t->cert_file.p &&
		SSL_CTX_use_PrivateKey_file(c->ctx, t->key_file.p ? t->key_file.p : t->cert_file.p, SSL_FILETYPE_PEM) !=
			1) {
		ERR_clear_error();
		return fw_err_set(err, FW_EINVAL, "%s: key_file does not belong to cert_file %s, or cannot be read",
			c->where, t->cert_file.p);
	}
	return 0;
}

static int tls_connect(struct rs_conn *c, int64_t deadline_ms, struct fw_err *err)
{
	unsigned char address[16];
	bool numeric = inet_pton(AF_INET, c->host, address) == 1 || inet_pton(AF_INET6, c->host, address) == 1;
	int rc;

	c->ctx = SSL_CTX_new(TLS_client_method());
	if (!c->ctx || SSL_CTX_set_min_proto_version(c->ctx, TLS1_2_VERSION) != 1)
		return tls_error(c, "setting up", err);
	SSL_CTX_set_verify(c->ctx, c->target->verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, NULL);
	SSL_CTX_set_mode(c->ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	rc = tls_files(c, err);
	if (rc)
		return rc;
	c->ssl = SSL_new(c->ctx);
	if (!c->ssl || SSL_set_fd(c->ssl, c->fd) != 1 ||
		(numeric ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(c->ssl), c->host) :
			   SSL_set1_host(c->ssl, c->host)) != 1 ||
		(!numeric && SSL_set_tlsext_host_name(c->ssl, c->host) != 1))
		return tls_error(c, "setting up", err);
	while ((rc = SSL_connect(c->ssl)) != 1) {
		int want = SSL_get_error(c->ssl, rc);

		if (want != SSL_ERROR_WANT_READ && want != SSL_ERROR_WANT_WRITE)
			return tls_error(c, "the handshake failed", err);
		if (conn_wait(c, want == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT, deadline_ms,
			    "TLS handshake: does the port use TLS?", err))
			return err->rc;
	}
	return 0;
}

void rs_conn_close(struct rs_conn *c)
{
	if (!c)
		return;
	SSL_free(c->ssl);
	SSL_CTX_free(c->ctx);
	if (c->fd >= 0)
		close(c->fd);
	if (c->reader)
		redisReaderFree(c->reader);
	fw_buf_finish(&c->out);
	fw_buf_finish(&c->offsets);
	fw_buf_finish(&c->sent);
	fw_buf_finish(&c->sent_offsets);
	fw_buf_finish(&c->word);
	free(c);
}

int rs_conn_open(const struct rs_target *t, const char *host, int port, struct rs_conn **out, struct fw_err *err)
{
	static redisReplyObjectFunctions make = {
		.createString = reply_on_string,
		.createArray = reply_on_array,
		.createInteger = reply_on_integer,
		.createNil = reply_on_nil,
#if FW_HIREDIS_RESP3
		.createDouble = reply_on_double,
		.createBool = reply_on_bool,
#endif
		.freeObject = reply_on_free,
	};
	struct rs_conn *c = calloc(1, sizeof(*c));
	int64_t deadline_ms = fw_mono_ms() + t->connect_timeout_ms;
	int rc = 0;

	*out = NULL;
	if (!c)
		return fw_err_set(err, FW_ENOMEM, "%s: out of memory", t->name);
	c->fd = -1;
	c->target = t;
	c->port = port;
	c->out = c->offsets = c->sent = c->sent_offsets = c->word = FW_BUF_INIT(0);
	(void)fw_str_copy(c->host, sizeof(c->host), fw_str(host));
	if (host && strcmp(host, t->host.p ? t->host.p : "") == 0 && port == t->port)
		(void)fw_str_copy(c->where, sizeof(c->where), fw_str(t->name));
	else if (host)
		(void)fw_snprintf(c->where, sizeof(c->where), "%s (node %s:%d)", t->name, host, port);
	else
		(void)fw_str_copy(c->where, sizeof(c->where), fw_str(t->name));
	c->reader = redisReaderCreateWithFunctions(&make);
	if (c->reader)
		c->reader->privdata = c;
	else
		rc = fw_err_set(err, FW_ENOMEM, "%s: out of memory", t->name);
	rc = rc ? rc : t->path.p ? unix_connect(c, deadline_ms, err) : tcp_connect(c, deadline_ms, err);
	if (!rc && t->tls)
		rc = tls_connect(c, deadline_ms, err);
	if (rc) {
		rs_conn_close(c);
		return rc;
	}
	*out = c;
	return 0;
}

void rs_conn_distrust(struct rs_conn *c)
{
	c->broken = true;
}

bool rs_conn_is_idle(const struct rs_conn *c)
{
	return c->reader->ridx < 0;
}

bool rs_conn_is_at(const struct rs_conn *c, const char *host, int port)
{
	return c->port == port && strcmp(c->host, host) == 0;
}

/* ---- commands -------------------------------------------------------------------------------- */

static ssize_t conn_send(struct rs_conn *c, const char *p, size_t n, short *events);

size_t rs_conn_pending(const struct rs_conn *c)
{
	return c->offsets.len / sizeof(size_t);
}

static void length_line_add(struct fw_buf *b, char mark, size_t n)
{
	char text[24], *p = text + sizeof(text);

	*--p = '\n';
	*--p = '\r';
	do {
		*--p = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	*--p = mark;
	fw_buf_add(b, p, (size_t)(text + sizeof(text) - p));
}

/* The command is complete: put its number of words in front. */
static void command_seal(struct rs_conn *c)
{
	size_t at = c->word_n ? ((size_t *)(void *)c->offsets.p)[rs_conn_pending(c) - 1] : 0, end = c->out.len;
	char line[24];

	assert(!c->word_n || rs_conn_pending(c) || c->offsets.rc);
	if (!c->word_n || c->out.rc)
		return;
	length_line_add(&c->out, '*', c->word_n);
	c->word_n = 0;
	if (c->out.rc)
		return;
	memcpy(line, c->out.p + end, c->out.len - end);
	memmove(c->out.p + at + (c->out.len - end), c->out.p + at, end - at);
	memcpy(c->out.p + at, line, c->out.len - end);
}

void rs_conn_push(struct rs_conn *c)
{
	ssize_t n;
	short events;

	command_seal(c);
	assert(c->out.rc || c->pushed <= c->out.len);
	if (c->out.rc || c->broken || c->pushed == c->out.len)
		return;
	n = conn_send(c, c->out.p + c->pushed, c->out.len - c->pushed, &events);
	c->pushed += n > 0 ? (size_t)n : 0;
}

void rs_conn_begin(struct rs_conn *c)
{
	if (c->out.len - c->pushed >= PUSH_BYTES)
		rs_conn_push(c);
	command_seal(c);
	fw_buf_add(&c->offsets, &c->out.len, sizeof(c->out.len));
}

void rs_conn_add(struct rs_conn *c, struct fw_str word)
{
	c->word_n++;
	length_line_add(&c->out, '$', word.len);
	fw_buf_add(&c->out, word.len ? word.p : "", word.len);
	fw_buf_add(&c->out, "\r\n", 2);
}

struct fw_buf *rs_conn_word(struct rs_conn *c)
{
	fw_buf_reset(&c->word);
	return &c->word;
}

void rs_conn_word_end(struct rs_conn *c)
{
	if (c->word.rc && !c->out.rc)
		c->out.rc = c->word.rc;
	rs_conn_add(c, fw_buf_str(&c->word));
}

void rs_conn_command(struct rs_conn *c, const char *words)
{
	struct fw_str rest = fw_str(words);

	rs_conn_begin(c);
	while (rest.p)
		rs_conn_add(c, fw_str_split(rest, ' ', &rest));
}

void rs_conn_discard(struct rs_conn *c)
{
	c->broken = c->broken || c->pushed; /* the server has half a command */
	c->pushed = c->word_n = 0;
	fw_buf_reset(&c->out);
	fw_buf_reset(&c->offsets);
}

struct fw_str rs_conn_get_sent(const struct rs_conn *c, size_t nth)
{
	const size_t *at = (const size_t *)(const void *)c->sent_offsets.p;
	size_t n = c->sent_offsets.len / sizeof(*at), end = nth + 1 < n ? at[nth + 1] : c->sent.len;

	assert(nth < n && at[nth] <= end);
	return (struct fw_str){c->sent.p + at[nth], end - at[nth]};
}

void rs_conn_add_raw(struct rs_conn *c, struct fw_str command)
{
	command_seal(c);
	fw_buf_add(&c->offsets, &c->out.len, sizeof(c->out.len));
	fw_buf_addstr(&c->out, command);
}

/* ---- exchange -------------------------------------------------------------------------------- */

/*
 * Result of sending and receiving: number of bytes, 0 closed by the server, -1 error, -2 would
 * block. *events: what to poll for after -2.
 */
static ssize_t tls_result(struct rs_conn *c, int n, short *events)
{
	int want = n > 0 ? 0 : SSL_get_error(c->ssl, n);

	if (n > 0)
		return n;
	if (want == SSL_ERROR_WANT_READ || want == SSL_ERROR_WANT_WRITE) {
		*events = want == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
		return -2;
	}
	ERR_clear_error();
	return want == SSL_ERROR_ZERO_RETURN ? 0 : -1;
}

static ssize_t conn_send(struct rs_conn *c, const char *p, size_t n, short *events)
{
	ssize_t done;

	*events = POLLOUT;
	if (c->ssl)
		return tls_result(c, SSL_write(c->ssl, p, (int)FW_MIN(n, (size_t)1 << 30)), events);
	done = send(c->fd, p, n, MSG_NOSIGNAL);
	return done < 0 && (errno == EAGAIN || errno == EINTR) ? -2 : done;
}

static ssize_t conn_receive(struct rs_conn *c, char *p, size_t n, short *events)
{
	ssize_t done;

	*events = POLLIN;
	if (c->ssl)
		return tls_result(c, SSL_read(c->ssl, p, (int)n), events);
	done = recv(c->fd, p, n, 0);
	return done < 0 && (errno == EAGAIN || errno == EINTR) ? -2 : done;
}

static int reply_no_memory(struct rs_conn *c, struct fw_err *err)
{
	c->broken = true;
	if (c->too_large)
		return FW_ERR(err, FW_EIO,
			"%s: a reply of more than %lld MiB, or of too many levels: is it a Redis server? (a larger "
			"store needs a larger reply_max_mb in its URL)",
			c->where, (long long)(c->target->reply_max_bytes >> 20));
	return FW_ERR(err, FW_ENOMEM, "%s: out of memory for a reply", c->where);
}

/* Read the received bytes into the parser, and return their number; 0: none; or an error. */
static int conn_receive_some(struct rs_conn *c, short *events, struct fw_err *err)
{
	char in[65536];
	ssize_t n = conn_receive(c, in, sizeof(in), events);

	c->too_large = n > 0 && c->reader->len > (size_t)c->target->reply_max_bytes;
	if (c->too_large || (n > 0 && redisReaderFeed(c->reader, in, (size_t)n) != 0))
		return reply_no_memory(c, err);
	if (n == 0)
		return conn_broke(c, err, "the server closed the connection");
	return n == -1 ? conn_broke(c, err, strerror(errno)) : n > 0 ? (int)n : 0;
}

/* Take complete replies out of the parser, until there are max. */
static int replies_parse(struct rs_conn *c, struct rs_reply *to, size_t max, struct fw_err *err)
{
	assert(to->n <= max);
	while (to->n < max) {
		void *one = NULL;

		if (redisReaderGetReply(c->reader, &one) != 0) {
			c->broken = true;
			if (c->reader->err == REDIS_ERR_OOM)
				return reply_no_memory(c, err);
			return fw_err_set(err, FW_EIO,
				"%s: %s: is it a Redis server? (write rediss: if it requires TLS)", c->where,
				c->reader->errstr);
		}
		if (!one)
			return 0;
		to->elem[to->n++] = one;
	}
	return 0;
}

/*
 * The connection broke, as err says. A server that refuses a connection sends one error before it
 * closes it, whatever the command was. That error then becomes the reply to all commands, and 0 is
 * returned.
 */
static int conn_last_error(struct rs_conn *c, struct rs_reply *all, size_t want, struct fw_err *err)
{
	struct fw_err ignored;
	short events;
	int rc = err->rc;

	while (conn_receive_some(c, &events, &ignored) > 0)
		;
	if (c->answered || replies_parse(c, all, want, &ignored) || all->n != 1 || all->elem[0]->type != RS_ERROR)
		return rc;
	while (all->n < want) {
		all->elem[all->n] = all->elem[0];
		all->n++;
	}
	return 0;
}

/* How far an exchange is. */
struct conn_progress {
	int64_t begun_ms, since_ms; /* since_ms: of the last progress */
	size_t bytes;               /* moved since then */
};

static void conn_progress_note(struct conn_progress *p, size_t bytes, bool completes)
{
	p->bytes += bytes;
	if (!completes && p->bytes < PROGRESS_BYTES)
		return;
	p->since_ms = fw_mono_ms();
	p->bytes = 0;
}

/* A server that always has another byte ready is waited for no longer than one that has none. */
static int conn_progress_wait(struct rs_conn *c, const struct conn_progress *p, short events, struct fw_err *err)
{
	int64_t end_ms = p->begun_ms + TIMEOUTS_MAX * c->target->timeout_ms;
	int64_t deadline_ms = FW_MIN(p->since_ms + c->target->timeout_ms, end_ms);

	return conn_wait(c, fw_mono_ms() < end_ms ? events : (short)0, deadline_ms, "a command", err);
}

static int exchange_begin(struct rs_conn *c, struct fw_arena *a, struct rs_reply **out, struct fw_err *err)
{
	size_t want = rs_conn_pending(c);
	struct rs_reply *all = fw_arena_zalloc(a, sizeof(*all));

	*out = all;
	if (c->broken)
		return FW_ERR(err, FW_EIO, "%s: the connection is closed: open the store anew", c->where);
	if (all)
		all->elem = fw_arena_calloc(a, want + 1, sizeof(struct rs_reply *));
	if (!all || !all->elem || c->out.rc || c->offsets.rc) {
		c->broken = c->broken || c->pushed;
		return FW_ERR(err, FW_ENOMEM, "%s: out of memory", c->where);
	}
	all->type = RS_ARRAY;
	c->arena = a;
	c->reply_bytes = 0;
	return 0;
}

static int conn_exchange(struct rs_conn *c, struct fw_arena *a, struct rs_reply **out, struct fw_err *err)
{
	size_t sent = c->pushed, want = rs_conn_pending(c);
	int64_t now_ms = fw_mono_ms();
	struct conn_progress progress = {.begun_ms = now_ms, .since_ms = now_ms};
	int rc = exchange_begin(c, a, out, err);

	while (!rc && (*out)->n < want) {
		struct pollfd p = {.fd = c->fd};
		short events = 0;
		ssize_t n = 0, got;
		size_t before = (*out)->n;

		if (sent < c->out.len) {
			n = conn_send(c, c->out.p + sent, c->out.len - sent, &events);
			if (n == 0 || n == -1) {
				conn_broke(c, err, n ? strerror(errno) : "the server closed the connection");
				return conn_last_error(c, *out, want, err);
			}
			p.events |= events;
			n = FW_MAX(n, (ssize_t)0);
			sent += (size_t)n;
		}
		got = conn_receive_some(c, &events, err);
		p.events |= events;
		if (got < 0)
			return conn_last_error(c, *out, want, err);
		rc = replies_parse(c, *out, want, err);
		if (rc || (*out)->n == want)
			break;
		conn_progress_note(&progress, (size_t)(n + got), (*out)->n > before || (n > 0 && sent == c->out.len));
		if (sent == c->out.len || !(n || got))
			rc = conn_progress_wait(c, &progress, p.events, err);
	}
	c->answered = c->answered || !rc;
	return rc;
}

int rs_conn_exchange(struct rs_conn *c, struct fw_arena *a, struct rs_reply **out, struct fw_err *err)
{
	int rc;

	command_seal(c);
	rc = conn_exchange(c, a, out, err);

	fw_buf_swap(&c->out, &c->sent);
	fw_buf_reset(&c->out);
	fw_buf_swap(&c->offsets, &c->sent_offsets);
	fw_buf_reset(&c->offsets);
	c->pushed = c->word_n = 0;
	return rc;
}

int rs_conn_listen(struct rs_conn *c, int wake_fd, int64_t timeout_ms, struct fw_arena *a, struct rs_reply **reply,
	struct fw_err *err)
{
	int64_t deadline_ms = fw_mono_ms() + timeout_ms;
	struct rs_reply to = {.elem = reply};
	int rc = 0;

	assert(!rs_conn_pending(c));
	*reply = NULL;
	c->arena = a;
	if (rs_conn_is_idle(c)) /* otherwise half a message lies in the arena */
		c->reply_bytes = 0;
	for (;;) {
		struct pollfd p[2] = {{.fd = c->fd}, {.fd = wake_fd, .events = POLLIN}};
		int64_t left = deadline_ms - fw_mono_ms();

		rc = conn_receive_some(c, &p[0].events, err);
		rc = rc < 0 ? rc : replies_parse(c, &to, 1, err);
		if (rc || to.n)
			return rc;
		if (poll(p, 2, (int)FW_MIN(FW_MAX(left, 0), 3600000)) < 0 && errno != EINTR)
			return conn_broke(c, err, strerror(errno));
		if (p[1].revents || (!p[0].revents && left <= 0))
			return 0;
	}
}
