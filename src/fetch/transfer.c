/* SPDX-License-Identifier: ISC */
/*
 * One request of libcurl, and libcurl's multi handle on the loop (multi_socket). The only file that
 * creates easy handles (NET-01).
 *
 * Only connections that are likely to be reused are kept. When libcurl keeps too many, it walks
 * them all for each new one; with 300 that costs more than ten new connections (measured: 300 us).
 *
 * Easy handles are pooled with their visits. Each request sets all its options anew. Every part of
 * libcurl that remembers things (cookies, authentication, HSTS, Alt-Svc) is off, so nothing passes
 * from one feed to another (NET-12).
 *
 * libcurl never looks up a name: it gets the addresses (CURLOPT_RESOLVE). They lie in the handle's
 * own DNS cache, and the next request removes them. So the cache stays small, and no handle sees
 * another's addresses.
 *
 * The guard checks every socket before it is opened, and every connection again before it carries a
 * request (NET-02, NET-03).
 */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/str.h"
#include "fetch/internal.h"

#include "base/banned.h" /* last */

/* an origin requested within this time is likely to be requested again */
#define REUSE_US (30 * 1000000LL)

/* one socket of libcurl */
struct fw_transfer_watch {
	uv_poll_t poll;
	struct fw_fetcher *fr;
	curl_socket_t fd;
	struct fw_transfer_watch *next;
};

/* ---- the multi handle on the loop ------------------------------------------------------------ */

static void transfers_complete(struct fw_fetcher *fr)
{
	CURLMsg *m;
	int left;

	while (!fr->closing && (m = curl_multi_info_read(fr->multi, &left))) {
		char *private = NULL;
		CURLcode rc = m->data.result;

		curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &private);
		fw_visit_responded((struct fw_fetch_priv *)(void *)private, rc);
	}
}

/* libcurl writes a request in the call in which it asks transfer_on_ready(): by now it was sent. */
static void transfers_tell_sent(struct fw_fetcher *fr)
{
	while (fr->telling) {
		struct fw_fetch_priv *v = fr->telling;

		fr->telling = v->telling_next;
		v->is_telling = false;
		v->f->sent(v->f);
	}
}

static void transfer_note_sent(struct fw_fetch_priv *v)
{
	v->is_sent = v->was_sent = true;
	if (!v->f->sent || v->is_telling)
		return;
	v->is_telling = true;
	v->telling_next = v->fr->telling;
	v->fr->telling = v;
}

/* Let libcurl go on: with this socket, or with what its timer is for. */
static void transfers_run(struct fw_fetcher *fr, curl_socket_t fd, int mask)
{
	int running;

	curl_multi_socket_action(fr->multi, fd, mask, &running);
	transfers_tell_sent(fr);
	transfers_complete(fr);
}

static void transfer_on_poll(uv_poll_t *poll, int status, int events)
{
	struct fw_transfer_watch *w = poll->data;
	int mask = 0;

	if (status < 0)
		mask = CURL_CSELECT_ERR;
	else
		mask = (events & UV_READABLE ? CURL_CSELECT_IN : 0) | (events & UV_WRITABLE ? CURL_CSELECT_OUT : 0);
	transfers_run(w->fr, w->fd, mask);
}

static void transfer_on_timer(uv_timer_t *t)
{
	transfers_run(t->data, CURL_SOCKET_TIMEOUT, 0);
}

static void transfer_watch_closed(uv_handle_t *h)
{
	struct fw_transfer_watch *w = h->data;
	struct fw_fetcher *fr = w->fr;

	if (fr->closing) {
		free(w);
	} else {
		w->next = fr->spare_watch;
		fr->spare_watch = w;
	}
	fw_handle_closed(fr);
}

static struct fw_transfer_watch *transfer_watch_open(struct fw_fetcher *fr, curl_socket_t fd)
{
	struct fw_transfer_watch *w = fr->spare_watch;

	if (w)
		fr->spare_watch = w->next;
	else
		w = malloc(sizeof(*w));
	if (!w)
		return NULL;
	if (uv_poll_init_socket(fr->loop, &w->poll, fd)) {
		free(w);
		return NULL;
	}
	w->poll.data = w;
	w->fr = fr;
	w->fd = fd;
	w->next = NULL;
	fr->handle_n++;
	curl_multi_assign(fr->multi, fd, w);
	return w;
}

static int transfer_on_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *socket_ctx)
{
	struct fw_fetcher *fr = ctx;
	struct fw_transfer_watch *w = socket_ctx;
	int events = (what & CURL_POLL_IN ? UV_READABLE : 0) | (what & CURL_POLL_OUT ? UV_WRITABLE : 0);

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		if (w) {
			curl_multi_assign(fr->multi, fd, NULL);
			uv_close((uv_handle_t *)&w->poll, transfer_watch_closed);
		}
		return 0;
	}
	if (!w)
		w = transfer_watch_open(fr, fd);
	if (!w)
		return 0; /* out of memory: the transfer will time out */
	if (events)
		uv_poll_start(&w->poll, events, transfer_on_poll);
	else
		uv_poll_stop(&w->poll);
	return 0;
}

static int transfer_on_timeout(CURLM *multi, long timeout_ms, void *ctx)
{
	struct fw_fetcher *fr = ctx;

	(void)multi;
	if (timeout_ms < 0)
		uv_timer_stop(&fr->curl_timer);
	else
		uv_timer_start(&fr->curl_timer, transfer_on_timer, (uint64_t)timeout_ms, 0);
	return 0;
}

static CURLcode curl_rc;
static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void curl_init_once(void)
{
	curl_rc = curl_global_init(CURL_GLOBAL_ALL);
}

void fw_fetch_preload(void)
{
	pthread_once(&curl_once, curl_init_once);
}

int fw_transfer_open(struct fw_fetcher *fr, struct fw_err *err)
{
	pthread_once(&curl_once, curl_init_once);
	if (curl_rc != CURLE_OK)
		return fw_err_set(err, FW_EIO, "cannot start libcurl: %s", curl_easy_strerror(curl_rc));
	fr->multi = curl_multi_init();
	if (!fr->multi)
		return fw_err_set(err, FW_ENOMEM, "out of memory");
	curl_multi_setopt(fr->multi, CURLMOPT_SOCKETFUNCTION, transfer_on_socket);
	curl_multi_setopt(fr->multi, CURLMOPT_SOCKETDATA, fr);
	curl_multi_setopt(fr->multi, CURLMOPT_TIMERFUNCTION, transfer_on_timeout);
	curl_multi_setopt(fr->multi, CURLMOPT_TIMERDATA, fr);
	curl_multi_setopt(fr->multi, CURLMOPT_MAXCONNECTS, (long)(fr->c.max_in_flight + fr->c.max_in_flight / 4 + 16));
	curl_multi_setopt(fr->multi, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
	return 0;
}

void fw_transfer_close(struct fw_fetcher *fr)
{
	if (fr->multi)
		curl_multi_cleanup(fr->multi); /* takes its sockets off the loop */
	fr->multi = NULL;
	while (fr->spare_watch) {
		struct fw_transfer_watch *w = fr->spare_watch;

		fr->spare_watch = w->next;
		free(w);
	}
}

/* ---- callbacks of one request ---------------------------------------------------------------- */

static size_t transfer_on_header(char *p, size_t size, size_t n, void *ctx)
{
	struct fw_fetch_priv *v = ctx;

	if (!fw_fetch_response_line(&v->response, &v->fr->c, (struct fw_str){p, size * n}))
		return 0;
	/* the redirect often leads to the same server */
	if (v->response.headers_done && fw_redirect_status(v->response.status))
		curl_easy_setopt(v->easy, CURLOPT_FORBID_REUSE, 0L);
	return size * n;
}

/*
 * Is there buffer space for n more body bytes? One transfer (exempt) always has some, so that it
 * can finish (LIM-06).
 */
static bool buffer_has_room(struct fw_fetch_priv *v, size_t n)
{
	struct fw_fetcher *fr = v->fr;

	if (fr->buffered + n <= fr->c.max_buffered_bytes || fr->exempt == v)
		return true;
	if (fr->exempt)
		return false;
	fr->exempt = v;
	v->progress_us = fw_mono_us();
	return true;
}

static size_t transfer_on_body(char *p, size_t size, size_t n, void *ctx)
{
	struct fw_fetch_priv *v = ctx;
	size_t before = v->response.body.len;

	n *= size;
	if (!buffer_has_room(v, n)) {
		v->paused = true;
		v->fr->paused_n++;
		return CURL_WRITEFUNC_PAUSE;
	}
	if (!fw_fetch_response_body(&v->response, &v->fr->c, p, n))
		return 0;
	v->buffered += v->response.body.len - before;
	if (before == 0 || v->buffered - v->progress_bytes >= FW_PROGRESS_BYTES) {
		v->progress_bytes = v->buffered;
		v->progress_us = fw_mono_us();
	}
	v->fr->buffered += v->response.body.len - before;
	v->fr->buffered_peak = FW_MAX(v->fr->buffered_peak, v->fr->buffered);
	return n;
}

/* The transfer is over: free its buffer space, and let others resume. */
static void buffer_release(struct fw_fetch_priv *v)
{
	struct fw_fetcher *fr = v->fr;

	assert(fr->buffered >= v->buffered);
	fr->buffered -= v->buffered;
	v->buffered = v->progress_bytes = 0;
	if (fr->exempt == v)
		fr->exempt = NULL;
	if (v->paused) {
		v->paused = false;
		fr->paused_n--;
	}
	if (fr->paused_n && (!fr->exempt || fr->buffered < fr->c.max_buffered_bytes / 2))
		fw_resume_soon(fr);
}

void fw_transfer_resume(struct fw_fetcher *fr)
{
	for (struct fw_fetch_priv *v = fr->in_flight; v && fr->paused_n; v = v->next) {
		if (!v->paused)
			continue;
		v->paused = false;
		v->progress_us = fw_mono_us();
		fr->paused_n--;
		curl_easy_pause(v->easy, CURLPAUSE_CONT); /* it may pause again at once */
	}
}

static bool address_is_refused(struct fw_fetch_priv *v, const struct sockaddr *sa)
{
	const char *why;

	if (v->fr->c.proxy) /* a trusted proxy, the only host that is connected to (NET-13) */
		return false;
	why = fw_guard_refuses(v->fr->c.guard, sa);
	if (why) {
		v->refused = why;
		v->refused_port = v->wire_url.port;
	}
	return why != NULL;
}

/*
 * When the server closes a kept connection as the request is sent, libcurl sends it again over
 * another one. The server may have read the first, so the second waits as any further request.
 */
static bool transfer_is_repeat(struct fw_fetch_priv *v)
{
	v->is_repeat = v->is_sent && v->f->further;
	return v->is_repeat;
}

static curl_socket_t transfer_on_open(void *ctx, curlsocktype purpose, struct curl_sockaddr *a)
{
	struct fw_fetch_priv *v = ctx;
	int type = a->socktype, fd;

	(void)purpose;
	if (transfer_is_repeat(v) || address_is_refused(v, &a->addr))
		return CURL_SOCKET_BAD;
#ifdef SOCK_CLOEXEC
	type |= SOCK_CLOEXEC;
#endif
	fd = socket(a->family, type, a->protocol);
	if (fd < 0) {
		v->socket_errno = errno;
		return CURL_SOCKET_BAD;
	}
	return fd;
}

/*
 * Was this origin requested for another feed lately? Colliding origins replace each other, which
 * does no harm.
 */
static bool origin_seen(struct fw_fetch_priv *v)
{
	uint64_t h = fw_hash64(v->wire_url.host, strlen(v->wire_url.host)) + (uint64_t)v->wire_url.port * 2 +
		v->wire_url.https;
	int64_t before_us = v->fr->seen[h % FW_SEEN_ORIGINS].at_us;
	bool known = v->fr->seen[h % FW_SEEN_ORIGINS].origin == h && before_us && v->request_us - before_us < REUSE_US;

	if (v->n > 0 && known && before_us >= v->start_us)
		return false; /* by this visit, before a redirect */
	v->fr->seen[h % FW_SEEN_ORIGINS].origin = h;
	v->fr->seen[h % FW_SEEN_ORIGINS].at_us = v->request_us;
	return known;
}

/*
 * Is the connection likely to be reused? Yes if it was just reused, or if its origin was requested
 * lately. The number of new connections kept per REUSE_US is bounded, so that libcurl's cache does
 * not overflow.
 */
static bool keep_connection(struct fw_fetch_priv *v)
{
	struct fw_fetcher *fr = v->fr;
	bool seen = origin_seen(v);
	long connects = 1;

	curl_easy_getinfo(v->easy, CURLINFO_NUM_CONNECTS, &connects);
	if (connects == 0)
		return true;
	if (v->request_us - fr->kept_us > REUSE_US) {
		fr->kept_us = v->request_us;
		fr->kept_n = 0;
	}
	return seen && fr->kept_n < fr->c.max_in_flight / 4 + 8 && ++fr->kept_n;
}

/* May the request be sent? libcurl asks right before it writes it. */
static bool transfer_may_send(struct fw_fetch_priv *v)
{
	if (transfer_is_repeat(v))
		return false;
	v->send_refused = v->f->send && !v->f->send(v->f);
	if (v->send_refused)
		return false;
	transfer_note_sent(v);
	return true;
}

/* Connected, perhaps over a connection opened for another feed: check the address again. */
static int transfer_on_ready(void *ctx, char *peer, char *self, int peer_port, int self_port)
{
	struct fw_fetch_priv *v = ctx;
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)peer_port)};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)peer_port)};
	const struct sockaddr *sa = NULL;

	(void)self;
	(void)self_port;
	v->ready_us = fw_mono_us();
	if (inet_pton(AF_INET, peer, &in.sin_addr) == 1)
		sa = (const struct sockaddr *)&in;
	else if (inet_pton(AF_INET6, peer, &in6.sin6_addr) == 1)
		sa = (const struct sockaddr *)&in6;
	if (!sa)
		v->refused = "unknown"; /* not an internet address */
	if (!sa || address_is_refused(v, sa))
		return CURL_PREREQFUNC_ABORT;
	if (keep_connection(v))
		curl_easy_setopt(v->easy, CURLOPT_FORBID_REUSE, 0L);
	return transfer_may_send(v) ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}

/* A connection is about to start TLS. Also behind a proxy the other side is the server. */
static CURLcode transfer_on_tls(CURL *easy, void *ssl_ctx, void *ctx)
{
	struct fw_fetch_priv *v = ctx;

	(void)easy;
	return fw_sessions_hook(v->fr->sessions, ssl_ctx, v->wire_url.host, v->wire_url.port) ? CURLE_OUT_OF_MEMORY :
												CURLE_OK;
}

/* ---- one request ----------------------------------------------------------------------------- */

static void base64(struct fw_buf *out, struct fw_str s)
{
	static const char DIGIT[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < s.len; i += 3) {
		size_t n = FW_MIN(s.len - i, (size_t)3);
		uint32_t v = 0;

		for (size_t k = 0; k < 3; k++)
			v = v << 8 | (k < n ? (unsigned char)s.p[i + k] : 0);
		for (size_t k = 0; k < 4; k++)
			fw_buf_addc(out, k <= n ? DIGIT[v >> (18 - 6 * k) & 63] : '=');
	}
}

/* Credentials go to the origin of the feed's own URL and nowhere else (NET-11, RFC 7617). */
static void add_authorization(struct fw_fetch_priv *v, struct fw_buf *out)
{
	struct fw_buf pair = FW_BUF_INIT(0);

	if (!v->f->username.p || !fw_wire_url_same_origin(&v->first, &v->wire_url))
		return;
	fw_buf_addstr(&pair, v->f->username);
	fw_buf_addc(&pair, ':');
	fw_buf_addstr(&pair, v->f->password);
	fw_buf_adds(out, "Authorization: Basic ");
	base64(out, fw_buf_str(&pair));
	fw_buf_addc(out, '\0');
	if (pair.rc)
		out->rc = pair.rc;
	if (pair.p)
		explicit_bzero(pair.p, pair.len);
	fw_buf_finish(&pair);
}

static void add_validator(struct fw_fetch_priv *v, struct fw_buf *out, const char *name, struct fw_str value)
{
	if (!fw_header_value_ok(value))
		return;
	fw_buf_adds(out, name);
	fw_buf_addstr(out, value);
	fw_buf_addc(out, '\0');
	v->sent_validators = true;
}

/* The header lines of this request, in front of those of every request. */
static struct curl_slist *request_headers(struct fw_fetch_priv *v)
{
	struct fw_buf *b = &v->header_text;
	/* fixed[0] says that we want a feed; a receiver of messages answers as it likes */
	struct curl_slist *list = &v->fr->fixed[v->f->post.p ? 1 : 0];
	size_t n = 0;

	fw_buf_reset(b);
	v->sent_validators = false;
	if (fw_str_eq(v->f->validator_url, fw_buf_str(&v->url[v->n]))) {
		add_validator(v, b, "If-None-Match: ", v->f->etag);
		add_validator(v, b, "If-Modified-Since: ", v->f->last_modified);
	}
	add_authorization(v, b);
	if (v->f->post_type) {
		fw_buf_addf(b, "Content-Type: %s", v->f->post_type);
		fw_buf_addc(b, '\0');
	}
	fw_buf_addstr(b, v->f->post_headers);
	for (size_t at = 0; !b->rc && at < b->len; at += strlen(b->p + at) + 1) {
		assert(n < FW_N(v->header));
		v->header[n] = (struct curl_slist){b->p + at, list};
		list = &v->header[n++];
	}
	return list;
}

/* What libcurl needs to know about names: forget the last one, learn this one. */
static struct curl_slist *request_names(struct fw_fetch_priv *v, const char *addrs)
{
	const struct fw_wire_url *to = v->fr->c.proxy ? &v->fr->proxy : &v->wire_url;
	struct curl_slist *list = NULL;

	fw_buf_reset(&v->resolve_text);
	fw_buf_adds(&v->resolve_text, v->forget);
	fw_buf_addc(&v->resolve_text, '\0');
	if (addrs)
		fw_buf_addf(&v->resolve_text, "%s:%d:%s", to->host, to->port, addrs);
	if (v->resolve_text.rc)
		return NULL;
	if (addrs) {
		v->resolve[1] = (struct curl_slist){v->resolve_text.p + strlen(v->forget) + 1, NULL};
		list = &v->resolve[1];
	}
	if (v->forget[0]) {
		v->resolve[0] = (struct curl_slist){v->resolve_text.p, list};
		list = &v->resolve[0];
	}
	if (addrs)
		fw_snprintf(v->forget, sizeof(v->forget), "-%s:%d", to->host, to->port);
	else
		v->forget[0] = '\0';
	return list;
}

/* Stops at the first option that libcurl refuses. BUFFERSIZE keeps its default, 16 KiB. */
#define SET(option, value)                                                       \
	do {                                                                     \
		if (!rc)                                                         \
			rc = curl_easy_setopt(v->easy, CURLOPT_##option, value); \
	} while (0)

/*
 * Options that are the same for every request, set once for each handle. None lets libcurl remember
 * anything.
 */
static CURLcode set_fixed(struct fw_fetch_priv *v)
{
	const struct fw_fetch_config *c = &v->fr->c;
	CURLcode rc = CURLE_OK;

	/* the request */
	SET(PATH_AS_IS, 1L);
	SET(PROTOCOLS_STR, "http,https");
	SET(REDIR_PROTOCOLS_STR, "http,https");
	SET(FOLLOWLOCATION, 0L);
	SET(HTTP_VERSION, (long)(c->http2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1));
	SET(USERAGENT, c->user_agent);
	/* the connection */
	SET(PROXY, c->proxy ? c->proxy : "");
	SET(NOPROXY, "");
	SET(SUPPRESS_CONNECT_HEADERS, 1L);
	SET(SHARE, v->names);
	SET(DNS_CACHE_TIMEOUT, 0L);
	SET(OPENSOCKETFUNCTION, transfer_on_open);
	SET(OPENSOCKETDATA, v);
	SET(PREREQFUNCTION, transfer_on_ready);
	SET(PREREQDATA, v);
	SET(CAINFO, c->ca_file);
	/* a directory is rescanned for each connection (21 ms); a bundle is read once */
	SET(CAPATH, NULL);
	SET(SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	SET(SSL_SESSIONID_CACHE, 0L); /* session.c has our own */
	SET(SSL_CTX_FUNCTION, transfer_on_tls);
	SET(SSL_CTX_DATA, v);
	/* the response */
	SET(HEADERFUNCTION, transfer_on_header);
	SET(HEADERDATA, v);
	SET(WRITEFUNCTION, transfer_on_body);
	SET(WRITEDATA, v);
	SET(HTTP_CONTENT_DECODING, 0L);
	SET(NOSIGNAL, 1L);
	SET(CONNECTTIMEOUT_MS, (long)c->connect_timeout_ms);
	SET(LOW_SPEED_LIMIT, (long)c->low_speed_bytes);
	SET(LOW_SPEED_TIME, (long)((c->low_speed_ms + 999) / 1000));
	SET(PRIVATE, v);
	return rc;
}

/* Options of this request. */
static CURLcode set_request(struct fw_fetch_priv *v, const char *addrs)
{
	int64_t left_ms = (v->deadline_us - fw_mono_us()) / 1000;
	CURLcode rc = CURLE_OK;

	SET(URL, v->wire_url.wire.p);
	if (v->f->post.p) {
		SET(POSTFIELDSIZE_LARGE, (curl_off_t)v->f->post.len);
		SET(POSTFIELDS, v->f->post.p);
	} else if (v->posted) {
		SET(POSTFIELDS, NULL);
		SET(HTTPGET, 1L);
	}
	v->posted = v->f->post.p != NULL;
	SET(HTTPHEADER, request_headers(v));
	SET(RESOLVE, request_names(v, addrs));
	SET(FORBID_REUSE, 1L); /* unless keep_connection() finds it worth keeping */
	SET(FRESH_CONNECT, (long)v->is_fresh);
	SET(TIMEOUT_MS, (long)FW_MAX(left_ms, 1));
	if (v->header_text.rc || v->resolve_text.rc)
		rc = CURLE_OUT_OF_MEMORY;
	return rc;
}
#undef SET

static int easy_create(struct fw_fetch_priv *v)
{
	v->names = curl_share_init();
	v->easy = v->names ? curl_easy_init() : NULL;
	if (v->easy && curl_share_setopt(v->names, CURLSHOPT_SHARE, CURL_LOCK_DATA_DNS) == CURLSHE_OK &&
		set_fixed(v) == CURLE_OK)
		return 0;
	curl_easy_cleanup(v->easy);
	curl_share_cleanup(v->names);
	v->easy = NULL;
	v->names = NULL;
	return FW_ENOMEM;
}

int fw_transfer_start(struct fw_fetch_priv *v, const char *addrs)
{
	assert(!v->in_multi);
	fw_fetch_response_reset(&v->response);
	v->response.error_body_max = v->f->keep_error_body ? FW_ERROR_BODY_MAX : 0;
	v->refused = NULL;
	v->send_refused = v->is_sent = v->is_repeat = false;
	v->socket_errno = 0;
	v->ready_us = 0;
	v->request_us = fw_mono_us();
	if (!v->easy && easy_create(v))
		return FW_ENOMEM;
	if (set_request(v, addrs) != CURLE_OK || curl_multi_add_handle(v->fr->multi, v->easy) != CURLM_OK)
		return FW_ENOMEM;
	v->in_multi = true;
	v->is_fresh = false;
	return 0;
}

static int64_t phase_us(CURL *easy, CURLINFO info, int64_t base_us)
{
	curl_off_t us = 0;

	curl_easy_getinfo(easy, info, &us);
	return us > 0 ? base_us + us : 0;
}

void fw_transfer_stop(struct fw_fetch_priv *v)
{
	struct fw_visit *visit = &v->f->visit;
	int64_t base_us = v->request_us - v->start_us;
	curl_off_t body = 0;
	long header = 0;

	if (!v->in_multi)
		return;
	visit->connect_us = phase_us(v->easy, CURLINFO_CONNECT_TIME_T, base_us);
	visit->tls_us = v->wire_url.https ? phase_us(v->easy, CURLINFO_APPCONNECT_TIME_T, base_us) : 0;
	visit->first_byte_us = phase_us(v->easy, CURLINFO_STARTTRANSFER_TIME_T, base_us);
	curl_easy_getinfo(v->easy, CURLINFO_SIZE_DOWNLOAD_T, &body);
	curl_easy_getinfo(v->easy, CURLINFO_HEADER_SIZE, &header);
	v->wire_bytes += (uint64_t)body + (uint64_t)header;
	curl_multi_remove_handle(v->fr->multi, v->easy);
	v->in_multi = false;
	buffer_release(v);
}

void fw_transfer_free(struct fw_fetch_priv *v)
{
	if (v->easy)
		curl_easy_cleanup(v->easy);
	if (v->names)
		curl_share_cleanup(v->names);
	fw_fetch_response_finish(&v->response);
	fw_buf_finish(&v->resolve_text);
	fw_buf_finish(&v->header_text);
}
