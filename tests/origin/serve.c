/* SPDX-License-Identifier: ISC */
/*
 * Connections: one thread, epoll, edge triggered. A connection is READING a request, WAITING for
 * its latency, SENDING (all at once or dripping), or HANGING until the client closes.
 *
 * The origin listens on all addresses but serves only loopback peers: 127.0.0.1 alone would not
 * cover 127.1.0.1 ... A host that must not respond at all (plan "noaccept") gets a listener of its
 * own whose queue is kept full.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <netinet/tcp.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "origin.h"

#define REQUEST_MAX 65536
#define REPEAT_IOV 8
#define CAME_EXACT_US 1000 /* a request came at this time, or as much earlier */

enum state { READING, WAITING, SENDING, HANGING };

struct conn {
	int fd;
	SSL *ssl;
	uint32_t events; /* registered with epoll; 0: not yet */
	enum state state;
	struct fw_buf in;
	size_t request_len; /* of `in`: the request that is being answered */
	struct request r;
	struct answer a;
	uint64_t sent;
	int64_t due_ms;    /* WAITING or dripping */
	size_t timer_at;   /* in timers, from 1; 0: none */
	bool over;         /* the client has closed */
	struct conn *next; /* in the free list */
};

static struct {
	int epoll, listener, signals;
	SSL_CTX *tls;
	uint64_t conn_n;
	struct conn *free;
	struct conn **timer; /* heap by due_ms, from 1 */
	size_t timer_n, timer_cap;
	int64_t now_ms;
} sv;

/* ---- timers: a binary heap ------------------------------------------------------------------- */

static void timer_set_at(size_t i, struct conn *c)
{
	sv.timer[i] = c;
	c->timer_at = i;
}

static void timer_settle(struct conn *c)
{
	size_t i = c->timer_at;

	for (; i > 1 && sv.timer[i / 2]->due_ms > c->due_ms; i /= 2)
		timer_set_at(i, sv.timer[i / 2]);
	for (size_t k; (k = i * 2) <= sv.timer_n; i = k) {
		if (k < sv.timer_n && sv.timer[k + 1]->due_ms < sv.timer[k]->due_ms)
			k++;
		if (sv.timer[k]->due_ms >= c->due_ms)
			break;
		timer_set_at(i, sv.timer[k]);
	}
	timer_set_at(i, c);
}

static void timer_add(struct conn *c, int64_t due_ms)
{
	c->due_ms = due_ms;
	if (!c->timer_at) {
		if (sv.timer_n + 2 > sv.timer_cap) {
			sv.timer_cap = sv.timer_cap ? sv.timer_cap * 2 : 1024;
			sv.timer = realloc(sv.timer, sv.timer_cap * sizeof(struct conn *));
			if (!sv.timer)
				die("out of memory");
		}
		timer_set_at(++sv.timer_n, c);
	}
	timer_settle(c);
}

static void timer_del(struct conn *c)
{
	size_t i = c->timer_at;
	struct conn *last;

	if (!i)
		return;
	c->timer_at = 0;
	last = sv.timer[sv.timer_n--];
	if (last == c)
		return;
	timer_set_at(i, last);
	timer_settle(last);
}

/* ---- connections ----------------------------------------------------------------------------- */

static void request_end(struct conn *c, const char *end)
{
	if (!c->request_len)
		return;
	c->r.end = end;
	c->r.bytes = c->sent;
	stats_end(&c->r);
	fw_buf_reset(&c->a.own);
	if (c->a.own.cap > 1 << 20)
		fw_buf_finish(&c->a.own);
	memmove(c->in.p, c->in.p + c->request_len, c->in.len - c->request_len);
	c->in.len -= c->request_len;
	c->request_len = 0;
}

static void conn_close(struct conn *c, const char *end, bool rst)
{
	request_end(c, end);
	timer_del(c);
	stats_conn(c->r.host, -1);
	if (rst) {
		struct linger l = {.l_onoff = 1, .l_linger = 0};

		(void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l));
	}
	if (c->ssl) {
		if (!rst)
			(void)SSL_shutdown(c->ssl);
		SSL_free(c->ssl);
		c->ssl = NULL;
		ERR_clear_error();
	}
	close(c->fd);
	fw_buf_reset(&c->in);
	c->next = sv.free;
	sv.free = c;
}

static void watch(struct conn *c, uint32_t events)
{
	struct epoll_event e = {.events = events | EPOLLET | EPOLLRDHUP, .data.ptr = c};

	if (c->events == events)
		return;
	if (epoll_ctl(sv.epoll, c->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, c->fd, &e))
		die("epoll_ctl: %s", strerror(errno));
	c->events = events;
}

/* Bytes read or written; 0: not now (epoll waits for it); -1: the connection is closed. */
static ssize_t io_result(struct conn *c, ssize_t n, uint32_t wants)
{
	if (n > 0)
		return n;
	if (c->ssl) {
		int why = SSL_get_error(c->ssl, (int)n);

		ERR_clear_error();
		if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE)
			return -1;
		watch(c, EPOLLIN | EPOLLOUT);
		return 0;
	}
	if (n == 0 || (errno != EAGAIN && errno != EINTR))
		return -1;
	watch(c, wants);
	return 0;
}

static ssize_t conn_read(struct conn *c, char *p, size_t n)
{
	return io_result(c, c->ssl ? SSL_read(c->ssl, p, (int)n) : recv(c->fd, p, n, 0), EPOLLIN);
}

static ssize_t conn_write(struct conn *c, const struct iovec *iov, int n)
{
	struct msghdr m = {.msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)n};

	return io_result(c,
		c->ssl ? SSL_write(c->ssl, iov[0].iov_base, (int)FW_MIN(iov[0].iov_len, (size_t)1 << 20)) :
			 sendmsg(c->fd, &m, MSG_NOSIGNAL),
		EPOLLIN | EPOLLOUT);
}

/* ---- sending --------------------------------------------------------------------------------- */

static uint64_t answer_len(const struct answer *a)
{
	uint64_t n = a->head.len + a->body.len;

	if (a->repeats < 0)
		n = UINT64_MAX;
	return FW_MIN(n, a->limit);
}

/* The next bytes to send, at most `most`, as iov; returns the number of pieces. */
static int pieces(const struct conn *c, uint64_t most, struct iovec iov[2 + REPEAT_IOV])
{
	const struct answer *a = &c->a;
	struct fw_str part[2] = {fw_buf_str(&a->head), a->body};
	uint64_t at = c->sent;
	int n = 0;

	for (int i = 0; i < 2 && most; i++) {
		size_t len;

		if (at >= part[i].len) {
			at -= part[i].len;
			continue;
		}
		len = (size_t)FW_MIN(part[i].len - at, most);
		iov[n++] = (struct iovec){(char *)part[i].p + at, len};
		most -= len;
		at = 0;
	}
	for (int i = 0; i < REPEAT_IOV && most && a->repeat.len; i++) {
		size_t off = (size_t)(at % a->repeat.len), len = (size_t)FW_MIN(a->repeat.len - off, most);

		iov[n++] = (struct iovec){(char *)a->repeat.p + off, len};
		most -= len;
		at = 0;
	}
	return n;
}

/* How many bytes may be sent now, and when the next ones may. */
static uint64_t drip_share(const struct conn *c, int64_t *tick_ms)
{
	int64_t bps = c->a.drip_bps;

	*tick_ms = FW_MAX(INT64_C(100), 1000 / bps);
	return (uint64_t)FW_MAX(INT64_C(1), bps * *tick_ms / 1000);
}

/* True when the response is complete. */
static bool send_on(struct conn *c)
{
	uint64_t end = answer_len(&c->a);
	struct iovec iov[2 + REPEAT_IOV];
	int64_t tick_ms = 0;

	if (c->timer_at)
		return false; /* between drops */
	while (c->sent < end) {
		uint64_t share = c->a.drip_bps ? drip_share(c, &tick_ms) : UINT64_MAX;
		ssize_t n = conn_write(c, iov, pieces(c, FW_MIN(share, end - c->sent), iov));

		if (n < 0)
			c->over = true;
		if (n <= 0)
			return false;
		c->sent += (uint64_t)n;
		if (c->a.drip_bps && c->sent < end) {
			timer_add(c, sv.now_ms + tick_ms);
			watch(c, EPOLLIN);
			return false;
		}
	}
	return true;
}

/* ---- the states of a connection -------------------------------------------------------------- */

/*
 * After a pause the origin finds many requests at once: this is when each was really sent. The
 * kernel tells how long ago that was; after a pause between its answer and the clock's it is asked
 * again.
 */
static int64_t came_us(const struct conn *c)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);
	int64_t asked_us;

	do {
		asked_us = fw_mono_us();
		if (getsockopt(c->fd, IPPROTO_TCP, TCP_INFO, &info, &len))
			die("TCP_INFO: %s", strerror(errno));
	} while (fw_mono_us() - asked_us > CAME_EXACT_US);
	return asked_us - (int64_t)info.tcpi_last_data_recv * 1000;
}

/* True when a whole request is there; c->over if that is not possible any more. */
static bool request_ready(struct conn *c)
{
	const char *end = c->in.len ? memmem(c->in.p, c->in.len, "\r\n\r\n", 4) : NULL;
	struct fw_str all, line;

	if (!end)
		return false;
	c->request_len = (size_t)(end - c->in.p) + 4;
	all = (struct fw_str){c->in.p, c->request_len - 2};
	line = fw_str_trim(fw_str_split(all, '\n', &c->r.headers));
	c->r.method = fw_str_split(line, ' ', &line);
	c->r.target = fw_str_split(line, ' ', &c->r.version);
	if (!c->r.version.p || !c->r.target.len)
		c->r.target = c->r.version = FW_STR("?");
	c->r.serial++;
	c->r.came_us = came_us(c);
	c->r.start_us = fw_mono_us();
	c->r.wall_ms = fw_now_ms();
	return true;
}

static bool read_request(struct conn *c)
{
	while (!request_ready(c)) {
		char *p = c->in.len < REQUEST_MAX ? fw_buf_room(&c->in, 2048) : NULL;
		ssize_t n = p ? conn_read(c, p, 2048) : -1;

		if (n < 0)
			c->over = true;
		if (n <= 0)
			return false;
		c->in.len += (size_t)n;
	}
	return true;
}

/* Runs a connection as far as possible. */
static void conn_run(struct conn *c)
{
	for (;;) {
		if (c->state == READING) {
			if (!read_request(c))
				break;
			stats_start(&c->r);
			answer(&c->r, &c->a);
			c->sent = 0;
			c->state = SENDING;
			if (c->a.latency_ms > 0) {
				c->state = WAITING;
				/* whole milliseconds: never too early */
				timer_add(c, fw_mono_ms() + c->a.latency_ms + 1);
				watch(c, EPOLLIN);
			}
		}
		if (c->state != SENDING || !send_on(c))
			break;
		if (c->a.after == HANG) {
			c->state = HANGING;
			watch(c, EPOLLIN);
			break;
		}
		if (c->a.after != KEEP) {
			conn_close(c,
				c->a.after == RESET              ? "reset" :
					c->a.limit == UINT64_MAX ? "ok" :
								   "cut",
				c->a.after == RESET);
			return;
		}
		request_end(c, "ok");
		c->state = READING;
	}
	if (c->over)
		conn_close(c, c->state == HANGING ? "hang" : "gone", false);
}

static void timers_run(void)
{
	while (sv.timer_n && sv.timer[1]->due_ms <= sv.now_ms) {
		struct conn *c = sv.timer[1];

		timer_del(c);
		c->state = SENDING;
		conn_run(c);
	}
}

/* ---- accepting ------------------------------------------------------------------------------- */

static uint32_t host_of(int fd)
{
	struct sockaddr_in me;
	socklen_t len = sizeof(me);
	uint32_t a, h;

	if (getsockname(fd, (struct sockaddr *)&me, &len))
		return (uint32_t)origin.host_n;
	a = ntohl(me.sin_addr.s_addr);
	if ((a >> 16 & 255) < 1 || (a & 255) < 1 || (a & 255) > 254)
		return (uint32_t)origin.host_n;
	h = (((a >> 16 & 255) - 1) * 256 + (a >> 8 & 255)) * 254 + (a & 255) - 1;
	return FW_MIN(h, (uint32_t)origin.host_n);
}

static void conn_new(int fd)
{
	struct conn *c = sv.free;

	if (c)
		sv.free = c->next;
	else if (!(c = calloc(1, sizeof(*c))))
		die("out of memory");
	c->fd = fd;
	c->events = 0;
	c->state = READING;
	c->over = false;
	c->request_len = 0;
	c->r = (struct request){.conn = ++sv.conn_n, .host = host_of(fd)};
	stats_conn(c->r.host, 1);
	if (sv.tls) {
		c->ssl = SSL_new(sv.tls);
		if (!c->ssl || !SSL_set_fd(c->ssl, fd))
			die("TLS: out of memory");
		SSL_set_accept_state(c->ssl);
	}
	conn_run(c);
}

static void accept_all(void)
{
	for (int i = 0; i < 256; i++) {
		struct sockaddr_in peer;
		socklen_t len = sizeof(peer);
		int fd = accept4(sv.listener, (struct sockaddr *)&peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0 && (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR))
			return;
		if (fd < 0)
			die("accept: %s (raise the limit of open files)", strerror(errno));
		if (ntohl(peer.sin_addr.s_addr) >> 24 != 127) {
			close(fd);
			continue;
		}
		conn_new(fd);
	}
}

/* ---- listening ------------------------------------------------------------------------------- */

static int tcp_socket(uint32_t address, uint16_t port, bool nonblock)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | (nonblock ? SOCK_NONBLOCK : 0), 0), on = 1,
	    size = 1 << 18;
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(address)};

	if (fd < 0)
		die("socket: %s", strerror(errno));
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)); /* for the listeners that never accept */
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)))
		die("port %u: %s", port, strerror(errno));
	return fd;
}

static uint16_t port_of(int fd)
{
	struct sockaddr_in a = {0};
	socklen_t len = sizeof(a);

	(void)getsockname(fd, (struct sockaddr *)&a, &len);
	return ntohs(a.sin_port);
}

/* A listener on this feed's host with a full queue: connection attempts to it never complete. */
static void never_accept(size_t feed)
{
	char host[INET_ADDRSTRLEN];
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(origin.port)};

	origin_host(host, feed % origin.host_n);
	(void)inet_pton(AF_INET, host, &a.sin_addr);
	if (listen(tcp_socket(ntohl(a.sin_addr.s_addr), origin.port, true), 0))
		die("listen: %s", strerror(errno));
	for (int i = 0; i < 4; i++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

		if (fd >= 0)
			(void)!connect(fd, (struct sockaddr *)&a, sizeof(a)); /* kept until the end */
	}
}

static void tls_setup(void)
{
	sv.tls = SSL_CTX_new(TLS_server_method());
	if (!sv.tls || SSL_CTX_use_certificate_chain_file(sv.tls, origin.cert) != 1)
		die("--tls: %s is not a PEM certificate", origin.cert);
	if (SSL_CTX_use_PrivateKey_file(sv.tls, origin.key, SSL_FILETYPE_PEM) != 1 ||
		SSL_CTX_check_private_key(sv.tls) != 1)
		die("--tls: %s is not the key of %s", origin.key, origin.cert);
	if (!origin.keep_alive) {
		SSL_CTX_set_session_cache_mode(sv.tls, SSL_SESS_CACHE_OFF);
		SSL_CTX_set_options(sv.tls, SSL_OP_NO_TICKET);
		SSL_CTX_set_num_tickets(sv.tls, 0);
	}
	SSL_CTX_set_mode(
		sv.tls, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
}

void serve_listen(uint16_t port)
{
	int refuse;

	sv.listener = tcp_socket(INADDR_ANY, port, true);
	origin.port = port_of(sv.listener);
	if (listen(sv.listener, 4096))
		die("listen: %s", strerror(errno));
	refuse = tcp_socket(INADDR_ANY, 0, true); /* bound, never listening: the port is ours and refuses */
	origin.refuse_port = port_of(refuse);
	for (size_t i = 0; i < origin.feed_n; i++)
		if (origin.feed[i].plan && origin.feed[i].plan->net == NET_NOACCEPT)
			never_accept(i);
	if (origin.tls)
		tls_setup();
}

/* True: continue. */
static bool signal_run(void)
{
	struct signalfd_siginfo s;
	struct fw_buf b = FW_BUF_INIT(0);

	if (read(sv.signals, &s, sizeof(s)) != sizeof(s))
		return true;
	if (s.ssi_signo != SIGUSR1)
		return false;
	stats_json(&b, false);
	fwrite(b.p, 1, b.len, stderr);
	fw_buf_finish(&b);
	stats_flush();
	return true;
}

void serve(void)
{
	struct epoll_event e[512], listen_event = {.events = EPOLLIN, .data.ptr = &sv.listener},
				   signal_event = {.events = EPOLLIN, .data.ptr = &sv.signals};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	(void)signal(SIGPIPE, SIG_IGN); /* OpenSSL writes without MSG_NOSIGNAL */
	sv.epoll = epoll_create1(EPOLL_CLOEXEC);
	sv.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (sv.epoll < 0 || sv.signals < 0 || epoll_ctl(sv.epoll, EPOLL_CTL_ADD, sv.listener, &listen_event) ||
		epoll_ctl(sv.epoll, EPOLL_CTL_ADD, sv.signals, &signal_event))
		die("epoll: %s", strerror(errno));
	for (;;) {
		int64_t wait_ms = sv.timer_n ? sv.timer[1]->due_ms - fw_mono_ms() : 1000;
		int n;

		wait_ms = FW_MAX(wait_ms, 0);
		if (wait_ms > 100)
			stats_flush(); /* idle: readers of the log see all of it */
		n = epoll_wait(sv.epoll, e, FW_N(e), (int)FW_MIN(wait_ms, INT64_C(1000)));
		if (n < 0 && errno != EINTR)
			die("epoll_wait: %s", strerror(errno));
		sv.now_ms = fw_mono_ms();
		for (int i = 0; i < n; i++) {
			struct conn *c = e[i].data.ptr;

			if (e[i].data.ptr == &sv.listener) {
				accept_all();
			} else if (e[i].data.ptr == &sv.signals) {
				if (!signal_run())
					return;
			} else {
				if (c->state != READING && e[i].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
					c->over = true;
				conn_run(c);
			}
		}
		timers_run();
	}
}
