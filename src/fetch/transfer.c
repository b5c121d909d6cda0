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
		fw_fetch_responded((struct fw_fetch_priv *)(void *)private, rc);
	}
}

/* libcurl writes a request in the call in which it asks transfer_on_ready(): by now it was sent. */
static void transfers_tell_sent(struct fw_fetcher *fr)
{
	while (fr->telling) {
		struct fw_fetch_priv *p = fr->telling;

		fr->telling = p->telling_next;
		p->is_telling = false;
		p->f->sent(p->f);
	}
}

static void transfer_note_sent(struct fw_fetch_priv *p)
{
	p->is_sent = p->was_sent = true;
	if (!p->f->sent || p->is_telling)
		return;
	p->is_telling = true;
	p->telling_next = p->fr->telling;
	p->fr->telling = p;
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

static size_t transfer_on_header(char *data, size_t size, size_t n, void *ctx)
{
	struct fw_fetch_priv *p = ctx;

	if (!fw_fetch_response_line(&p->response, &p->fr->c, (struct fw_str){data, size * n}))
		return 0;
	/* the redirect often leads to the same server */
	if (p->response.headers_done && fw_redirect_status(p->response.status))
		curl_easy_setopt(p->easy, CURLOPT_FORBID_REUSE, 0L);
	return size * n;
}

/*
 * Is there buffer space for n more body bytes? One transfer (exempt) always has some, so that it
 * can finish (LIM-06).
 */
static bool buffer_has_room(struct fw_fetch_priv *p, size_t n)
{
	struct fw_fetcher *fr = p->fr;

	if (fr->buffered + n <= fr->c.max_buffered_bytes || fr->exempt == p)
		return true;
	if (fr->exempt)
		return false;
	fr->exempt = p;
	p->progress_us = fw_mono_us();
	return true;
}

static size_t transfer_on_body(char *data, size_t size, size_t n, void *ctx)
{
	struct fw_fetch_priv *p = ctx;
	size_t before = p->response.body.len;

	n *= size;
	if (!buffer_has_room(p, n)) {
		p->paused = true;
		p->fr->paused_n++;
		return CURL_WRITEFUNC_PAUSE;
	}
	if (!fw_fetch_response_body(&p->response, &p->fr->c, data, n))
		return 0;
	p->buffered += p->response.body.len - before;
	if (before == 0 || p->buffered - p->progress_bytes >= FW_PROGRESS_BYTES) {
		p->progress_bytes = p->buffered;
		p->progress_us = fw_mono_us();
	}
	p->fr->buffered += p->response.body.len - before;
	p->fr->buffered_peak = FW_MAX(p->fr->buffered_peak, p->fr->buffered);
	return n;
}

/* The transfer is over: free its buffer space, and let others resume. */
static void buffer_release(struct fw_fetch_priv *p)
{
	struct fw_fetcher *fr = p->fr;

	assert(fr->buffered >= p->buffered);
	fr->buffered -= p->buffered;
	p->buffered = p->progress_bytes = 0;
	if (fr->exempt == p)
		fr->exempt = NULL;
	if (p->paused) {
		p->paused = false;
		fr->paused_n--;
	}
	if (fr->paused_n && (!fr->exempt || fr->buffered < fr->c.max_buffered_bytes / 2))
		fw_resume_soon(fr);
}

void fw_transfer_resume(struct fw_fetcher *fr)
{
	for (struct fw_fetch_priv *p = fr->in_flight; p && fr->paused_n; p = p->next) {
		if (!p->paused)
			continue;
		p->paused = false;
		p->progress_us = fw_mono_us();
		fr->paused_n--;
		curl_easy_pause(p->easy, CURLPAUSE_CONT); /* it may pause again at once */
	}
}

static bool address_is_refused(struct fw_fetch_priv *p, const struct sockaddr *sa)
{
	const char *why;

	if (p->fr->c.proxy) /* a trusted proxy, the only host that is connected to (NET-13) */
		return false;
	why = fw_guard_refuses(p->fr->c.guard, sa);
	if (why) {
		p->refused = why;
		p->refused_port = p->wire_url.port;
	}
	return why != NULL;
}

/*
 * When the server closes a kept connection as the request is sent, libcurl sends it again over
 * another one. The server may have read the first, so the second waits as any further request.
 */
static bool transfer_is_repeat(struct fw_fetch_priv *p)
{
	p->is_repeat = p->is_sent && p->f->further;
	return p->is_repeat;
}

static curl_socket_t transfer_on_open(void *ctx, curlsocktype purpose, struct curl_sockaddr *a)
{
	struct fw_fetch_priv *p = ctx;
	int type = a->socktype, fd;

	(void)purpose;
	if (transfer_is_repeat(p) || address_is_refused(p, &a->addr))
		return CURL_SOCKET_BAD;
#ifdef SOCK_CLOEXEC
	type |= SOCK_CLOEXEC;
#endif
	fd = socket(a->family, type, a->protocol);
	if (fd < 0) {
		p->socket_errno = errno;
		return CURL_SOCKET_BAD;
	}
	return fd;
}

/*
 * Was this origin requested for another feed lately? Colliding origins replace each other, which
 * does no harm.
 */
static bool origin_seen(struct fw_fetch_priv *p)
{
	uint64_t h = fw_hash64(p->wire_url.host, strlen(p->wire_url.host)) + (uint64_t)p->wire_url.port * 2 +
		p->wire_url.https;
	int64_t before_us = p->fr->seen[h % FW_SEEN_ORIGINS].at_us;
	bool known = p->fr->seen[h % FW_SEEN_ORIGINS].origin == h && before_us && p->request_us - before_us < REUSE_US;

	if (p->n > 0 && known && before_us >= p->start_us)
		return false; /* by this visit, before a redirect */
	p->fr->seen[h % FW_SEEN_ORIGINS].origin = h;
	p->fr->seen[h % FW_SEEN_ORIGINS].at_us = p->request_us;
	return known;
}

/*
 * Is the connection likely to be reused? Yes if it was just reused, or if its origin was requested
 * lately. The number of new connections kept per REUSE_US is bounded, so that libcurl's cache does
 * not overflow.
 */
static bool keep_connection(struct fw_fetch_priv *p)
{
	struct fw_fetcher *fr = p->fr;
	bool seen = origin_seen(p);
	long connects = 1;

	curl_easy_getinfo(p->easy, CURLINFO_NUM_CONNECTS, &connects);
	if (connects == 0)
		return true;
	if (p->request_us - fr->kept_us > REUSE_US) {
		fr->kept_us = p->request_us;
		fr->kept_n = 0;
	}
	return seen && fr->kept_n < fr->c.max_in_flight / 4 + 8 && ++fr->kept_n;
}

/* May the request be sent? libcurl asks right before it writes it. */
static bool transfer_may_send(struct fw_fetch_priv *p)
{
	if (transfer_is_repeat(p))
		return false;
	p->send_refused = p->f->send && !p->f->send(p->f);
	if (p->send_refused)
		return false;
	transfer_note_sent(p);
	return true;
}

/* Connected, perhaps over a connection opened for another feed: check the address again. */
static int transfer_on_ready(void *ctx, char *peer, char *self, int peer_port, int self_port)
{
	struct fw_fetch_priv *p = ctx;
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)peer_port)};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)peer_port)};
	const struct sockaddr *sa = NULL;

	(void)self;
	(void)self_port;
	p->ready_us = fw_mono_us();
	if (inet_pton(AF_INET, peer, &in.sin_addr) == 1)
		sa = (const struct sockaddr *)&in;
	else if (inet_pton(AF_INET6, peer, &in6.sin6_addr) == 1)
		sa = (const struct sockaddr *)&in6;
	if (!sa)
		p->refused = "unknown"; /* not an internet address */
	if (!sa || address_is_refused(p, sa))
		return CURL_PREREQFUNC_ABORT;
	if (keep_connection(p))
		curl_easy_setopt(p->easy, CURLOPT_FORBID_REUSE, 0L);
	return transfer_may_send(p) ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}

/* A connection is about to start TLS. Also behind a proxy the other side is the server. */
static CURLcode transfer_on_tls(CURL *easy, void *ssl_ctx, void *ctx)
{
	struct fw_fetch_priv *p = ctx;

	(void)easy;
	return fw_sessions_hook(p->fr->sessions, ssl_ctx, p->wire_url.host, p->wire_url.port) ? CURLE_OUT_OF_MEMORY :
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
static void add_authorization(struct fw_fetch_priv *p, struct fw_buf *out)
{
	struct fw_buf pair = FW_BUF_INIT(0);

	if (!p->f->username.p || !fw_wire_url_same_origin(&p->first, &p->wire_url))
		return;
	fw_buf_addstr(&pair, p->f->username);
	fw_buf_addc(&pair, ':');
	fw_buf_addstr(&pair, p->f->password);
	fw_buf_adds(out, "Authorization: Basic ");
	base64(out, fw_buf_str(&pair));
	fw_buf_addc(out, '\0');
	if (pair.rc)
		out->rc = pair.rc;
	if (pair.p)
		explicit_bzero(pair.p, pair.len);
	fw_buf_finish(&pair);
}

static void add_validator(struct fw_fetch_priv *p, struct fw_buf *out, const char *name, struct fw_str value)
{
	if (!fw_header_value_ok(value))
		return;
	fw_buf_adds(out, name);
	fw_buf_addstr(out, value);
	fw_buf_addc(out, '\0');
	p->sent_validators = true;
}

/* The header lines of this request, in front of those of every request. */
static struct curl_slist *request_headers(struct fw_fetch_priv *p)
{
	struct fw_buf *b = &p->header_text;
	/* fixed[0] says that we want a feed; a receiver of messages answers as it likes */
	struct curl_slist *list = &p->fr->fixed[p->f->post.p ? 1 : 0];
	size_t n = 0;

	fw_buf_reset(b);
	p->sent_validators = false;
	if (fw_str_eq(p->f->validator_url, fw_buf_str(&p->url[p->n]))) {
		add_validator(p, b, "If-None-Match: ", p->f->etag);
		add_validator(p, b, "If-Modified-Since: ", p->f->last_modified);
	}
	add_authorization(p, b);
	if (p->f->post_type) {
		fw_buf_addf(b, "Content-Type: %s", p->f->post_type);
		fw_buf_addc(b, '\0');
	}
	fw_buf_addstr(b, p->f->post_headers);
	for (size_t at = 0; !b->rc && at < b->len; at += strlen(b->p + at) + 1) {
		assert(n < FW_N(p->header));
		p->header[n] = (struct curl_slist){b->p + at, list};
		list = &p->header[n++];
	}
	return list;
}

/* What libcurl needs to know about names: forget the last one, learn this one. */
static struct curl_slist *request_names(struct fw_fetch_priv *p, const char *addrs)
{
	const struct fw_wire_url *to = p->fr->c.proxy ? &p->fr->proxy : &p->wire_url;
	struct curl_slist *list = NULL;

	fw_buf_reset(&p->resolve_text);
	fw_buf_adds(&p->resolve_text, p->forget);
	fw_buf_addc(&p->resolve_text, '\0');
	if (addrs)
		fw_buf_addf(&p->resolve_text, "%s:%d:%s", to->host, to->port, addrs);
	if (p->resolve_text.rc)
		return NULL;
	if (addrs) {
		p->resolve[1] = (struct curl_slist){p->resolve_text.p + strlen(p->forget) + 1, NULL};
		list = &p->resolve[1];
	}
	if (p->forget[0]) {
		p->resolve[0] = (struct curl_slist){p->resolve_text.p, list};
		list = &p->resolve[0];
	}
	if (addrs)
		fw_snprintf(p->forget, sizeof(p->forget), "-%s:%d", to->host, to->port);
	else
		p->forget[0] = '\0';
	return list;
}

/* Stops at the first option that libcurl refuses. BUFFERSIZE keeps its default, 16 KiB. */
#define SET(option, value)                                                       \
	do {                                                                     \
		if (!rc)                                                         \
			rc = curl_easy_setopt(p->easy, CURLOPT_##option, value); \
	} while (0)

/*
 * Options that are the same for every request, set once for each handle. None lets libcurl remember
 * anything.
 */
static CURLcode set_fixed(struct fw_fetch_priv *p)
{
	const struct fw_fetch_config *c = &p->fr->c;
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
	SET(SHARE, p->names);
	SET(DNS_CACHE_TIMEOUT, 0L);
	SET(OPENSOCKETFUNCTION, transfer_on_open);
	SET(OPENSOCKETDATA, p);
	SET(PREREQFUNCTION, transfer_on_ready);
	SET(PREREQDATA, p);
	SET(CAINFO, c->ca_file);
	/* a directory is rescanned for each connection (21 ms); a bundle is read once */
	SET(CAPATH, NULL);
	SET(SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	SET(SSL_SESSIONID_CACHE, 0L); /* session.c has our own */
	SET(SSL_CTX_FUNCTION, transfer_on_tls);
	SET(SSL_CTX_DATA, p);
	/* the response */
	SET(HEADERFUNCTION, transfer_on_header);
	SET(HEADERDATA, p);
	SET(WRITEFUNCTION, transfer_on_body);
	SET(WRITEDATA, p);
	SET(HTTP_CONTENT_DECODING, 0L);
	SET(NOSIGNAL, 1L);
	SET(CONNECTTIMEOUT_MS, (long)c->connect_timeout_ms);
	SET(LOW_SPEED_LIMIT, (long)c->low_speed_bytes);
	SET(LOW_SPEED_TIME, (long)((c->low_speed_ms + 999) / 1000));
	SET(PRIVATE, p);
	return rc;
}

/* Options of this request. */
static CURLcode set_request(struct fw_fetch_priv *p, const char *addrs)
{
	int64_t left_ms = (p->deadline_us - fw_mono_us()) / 1000;
	CURLcode rc = CURLE_OK;

	SET(URL, p->wire_url.wire.p);
	if (p->f->post.p) {
		SET(POSTFIELDSIZE_LARGE, (curl_off_t)p->f->post.len);
		SET(POSTFIELDS, p->f->post.p);
	} else if (p->posted) {
		SET(POSTFIELDS, NULL);
		SET(HTTPGET, 1L);
	}
	p->posted = p->f->post.p != NULL;
	SET(HTTPHEADER, request_headers(p));
	SET(RESOLVE, request_names(p, addrs));
	SET(FORBID_REUSE, 1L); /* unless keep_connection() finds it worth keeping */
	SET(FRESH_CONNECT, (long)p->is_fresh);
	SET(TIMEOUT_MS, (long)FW_MAX(left_ms, 1));
	if (p->header_text.rc || p->resolve_text.rc)
		rc = CURLE_OUT_OF_MEMORY;
	return rc;
}
#undef SET

static int easy_create(struct fw_fetch_priv *p)
{
	p->names = curl_share_init();
	p->easy = p->names ? curl_easy_init() : NULL;
	if (p->easy && curl_share_setopt(p->names, CURLSHOPT_SHARE, CURL_LOCK_DATA_DNS) == CURLSHE_OK &&
		set_fixed(p) == CURLE_OK)
		return 0;
	curl_easy_cleanup(p->easy);
	curl_share_cleanup(p->names);
	p->easy = NULL;
	p->names = NULL;
	return FW_ENOMEM;
}

int fw_transfer_start(struct fw_fetch_priv *p, const char *addrs)
{
	assert(!p->in_multi);
	fw_fetch_response_reset(&p->response);
	p->response.error_body_max = p->f->keep_error_body ? FW_ERROR_BODY_MAX : 0;
	p->refused = NULL;
	p->send_refused = p->is_sent = p->is_repeat = false;
	p->socket_errno = 0;
	p->ready_us = 0;
	p->request_us = fw_mono_us();
	if (!p->easy && easy_create(p))
		return FW_ENOMEM;
	if (set_request(p, addrs) != CURLE_OK || curl_multi_add_handle(p->fr->multi, p->easy) != CURLM_OK)
		return FW_ENOMEM;
	p->in_multi = true;
	p->is_fresh = false;
	return 0;
}

static int64_t phase_us(CURL *easy, CURLINFO info, int64_t base_us)
{
	curl_off_t us = 0;

	curl_easy_getinfo(easy, info, &us);
	return us > 0 ? base_us + us : 0;
}

void fw_transfer_stop(struct fw_fetch_priv *p)
{
	struct fw_visit *visit = &p->f->visit;
	int64_t base_us = p->request_us - p->start_us;
	curl_off_t body = 0;
	long header = 0;

	if (!p->in_multi)
		return;
	visit->connect_us = phase_us(p->easy, CURLINFO_CONNECT_TIME_T, base_us);
	visit->tls_us = p->wire_url.https ? phase_us(p->easy, CURLINFO_APPCONNECT_TIME_T, base_us) : 0;
	visit->first_byte_us = phase_us(p->easy, CURLINFO_STARTTRANSFER_TIME_T, base_us);
	curl_easy_getinfo(p->easy, CURLINFO_SIZE_DOWNLOAD_T, &body);
	curl_easy_getinfo(p->easy, CURLINFO_HEADER_SIZE, &header);
	p->wire_bytes += (uint64_t)body + (uint64_t)header;
	curl_multi_remove_handle(p->fr->multi, p->easy);
	p->in_multi = false;
	buffer_release(p);
}

void fw_transfer_free(struct fw_fetch_priv *p)
{
	if (p->easy)
		curl_easy_cleanup(p->easy);
	if (p->names)
		curl_share_cleanup(p->names);
	fw_fetch_response_finish(&p->response);
	fw_buf_finish(&p->resolve_text);
	fw_buf_finish(&p->header_text);
}
