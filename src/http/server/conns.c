/* SPDX-License-Identifier: ISC */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "http/server/http.h"

#define TICKS_IN_LIMIT 10 /* walks within the shortest timeout, which is exact to a tenth */
#define TICK_MIN_MS 20
#define TICK_MAX_MS 500
#define OTHER_FILES 256 /* open files for other things: stores, write-ahead log, access log */
#define NEARLY_FULL(max) ((max) - (max) / 8)
#define NEARLY_FULL_MS FW_SECOND_MS
#define RATE_AFTER_MS (5 * FW_SECOND_MS)

/* of a server thread */
struct conn_list {
	pthread_mutex_t lock; /* of the list; while it is held the sockets in it stay open */
	struct conn *first;
	_Atomic size_t n;
};

struct conns {
	const struct fw_config *config;
	bool plain;
	size_t max, server_thread_n;
	_Atomic int64_t now_ms; /* monotonic, updated by each walk */
	_Atomic uint64_t timeout_n[CONN_PHASES];
	pthread_t thread;
	bool running, stop;
	pthread_mutex_t lock; /* of stop */
	pthread_cond_t wake;
	struct conn_list list[];
};

static uint64_t conn_stamp(int64_t since_ms, enum conn_phase p)
{
	return (uint64_t)since_ms << 3 | p;
}

static enum conn_phase conn_phase_of(uint64_t at)
{
	return (enum conn_phase)(at & 7);
}

/* ---- the server thread ----------------------------------------------------------------------- */

struct conn *conn_add(struct conns *a, size_t server_thread, int fd)
{
	struct conn_list *l = &a->list[server_thread];
	struct conn *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->all = a;
	c->server_thread = server_thread;
	c->fd = fd;
	atomic_init(&c->at, conn_stamp(atomic_load_explicit(&a->now_ms, memory_order_relaxed), CONN_HEAD));
	pthread_mutex_lock(&l->lock);
	c->next = l->first;
	if (c->next)
		c->next->prev = c;
	l->first = c;
	pthread_mutex_unlock(&l->lock);
	atomic_fetch_add_explicit(&l->n, 1, memory_order_relaxed);
	return c;
}

void conn_remove(struct conn *c)
{
	struct conn_list *l;

	if (!c)
		return;
	l = &c->all->list[c->server_thread];
	pthread_mutex_lock(&l->lock);
	*(c->prev ? &c->prev->next : &l->first) = c->next;
	if (c->next)
		c->next->prev = c->prev;
	pthread_mutex_unlock(&l->lock);
	atomic_fetch_sub_explicit(&l->n, 1, memory_order_relaxed);
	free(c);
}

bool conn_enter(struct conn *c, enum conn_phase p)
{
	uint64_t to;

	if (!c)
		return true;
	to = conn_stamp(atomic_load_explicit(&c->all->now_ms, memory_order_relaxed), p);
	if (p != CONN_BODY && p != CONN_WORK) { /* the phase before gets no 408: a timeout in it need not be noticed */
		atomic_store_explicit(&c->at, to, memory_order_relaxed);
		return true;
	}
	if (p == CONN_BODY)
		atomic_store_explicit(&c->body_n, 0, memory_order_relaxed);
	return conn_phase_of(atomic_exchange_explicit(&c->at, to, memory_order_relaxed)) != CONN_TIMED_OUT;
}

/* ---- the timeout thread ---------------------------------------------------------------------- */

static bool conn_is_timed_out(
	const struct conns *a, const struct conn *c, uint64_t at, int64_t now_ms, bool nearly_full)
{
	const struct fw_config *config = a->config;
	int64_t ms = now_ms - (int64_t)(at >> 3);

	switch (conn_phase_of(at)) {
	case CONN_HEAD:
		return ms > (nearly_full ? FW_MIN(NEARLY_FULL_MS, config->serve_header_timeout_ms) :
					   config->serve_header_timeout_ms);
	case CONN_IDLE:
		return ms > (nearly_full ? FW_MIN(NEARLY_FULL_MS, config->serve_idle_timeout_ms) :
					   config->serve_idle_timeout_ms);
	case CONN_SEND:
		return ms > config->serve_send_timeout_ms;
	case CONN_BODY:
		return ms > config->serve_body_timeout_ms ||
			(ms > RATE_AFTER_MS &&
				(int64_t)atomic_load_explicit(&c->body_n, memory_order_relaxed) * 1000 <
					config->serve_body_rate_min * ms);
	default:
		return false;
	}
}

uint64_t conn_send_problem(int fd, unsigned status, const char *code, const char *headers, const char *detail)
{
	struct fw_buf body = FW_BUF_INIT(0), out = FW_BUF_INIT(0);
	char id[HTTP_ID_MAX + 1];
	uint64_t n = http_id_random();

	http_id_write(id, n);
	http_problem_body(&body, status, code, fw_str(detail), id);
	fw_buf_addf(&out,
		"HTTP/1.1 %u %s\r\nConnection: close\r\nContent-Type: application/problem+json\r\n%s"
		"X-Request-Id: %s\r\nContent-Length: %zu\r\n\r\n",
		status, MHD_get_reason_phrase_for(status), headers, id, body.len);
	fw_buf_addstr(&out, fw_buf_str(&body));
	if (!body.rc && !out.rc && send(fd, out.p, out.len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		fw_debug("sending %u: %s", status, strerror(errno));
	fw_buf_finish(&body);
	fw_buf_finish(&out);
	return n;
}

/*
 * Has the client closed its side, unseen by libmicrohttpd? After a short read libmicrohttpd does
 * not read again, so it misses an end of file that came together with the data, and an incomplete
 * body would wait for its timeout. Checked once after each pause: libmicrohttpd sees an end of file
 * that comes later.
 */
static bool conn_has_left(struct conn *c, uint64_t was, int64_t now_ms)
{
	uint64_t n = atomic_load_explicit(&c->body_n, memory_order_relaxed);
	enum conn_phase p = conn_phase_of(was);
	char byte;

	if ((p != CONN_IDLE && p != CONN_BODY && p != CONN_HEAD) || (int64_t)(was >> 3) == now_ms ||
		(c->peeked_at == was && c->peeked_n == n))
		return false;
	c->peeked_at = was;
	c->peeked_n = n;
	/* not recv(): clang's analyzer takes each for a blocking one */
	return recvfrom(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT, NULL, NULL) == 0;
}

static void conns_check(struct conns *a, struct conn_list *l, int64_t now_ms)
{
	bool nearly_full = atomic_load(&l->n) > NEARLY_FULL(a->max / a->server_thread_n);

	pthread_mutex_lock(&l->lock);
	for (struct conn *c = l->first; c; c = c->next) {
		uint64_t was = atomic_load_explicit(&c->at, memory_order_relaxed);
		enum conn_phase p = conn_phase_of(was);

		if (conn_has_left(c, was, now_ms))
			/* wakes the server thread; a half-closed client still gets its response */
			shutdown(c->fd, SHUT_RD);
		if (!conn_is_timed_out(a, c, was, now_ms, nearly_full) ||
			!atomic_compare_exchange_strong(&c->at, &was, conn_stamp(now_ms, CONN_TIMED_OUT)))
			continue;
		if (a->plain && (p == CONN_HEAD || p == CONN_BODY))
			atomic_store(&c->problem_id,
				conn_send_problem(c->fd, MHD_HTTP_REQUEST_TIMEOUT, "timeout", "",
					"the request did not come fast enough"));
		shutdown(c->fd, SHUT_RDWR);
		atomic_fetch_add_explicit(&a->timeout_n[p], 1, memory_order_relaxed);
	}
	pthread_mutex_unlock(&l->lock);
}

static int64_t conns_tick_ms(const struct fw_config *c)
{
	int64_t least = FW_MIN(FW_MIN(c->serve_header_timeout_ms, c->serve_body_timeout_ms),
		FW_MIN(c->serve_send_timeout_ms, c->serve_idle_timeout_ms));

	return FW_MAX(TICK_MIN_MS, FW_MIN(TICK_MAX_MS, least / TICKS_IN_LIMIT));
}

static void *conns_run(void *ctx)
{
	struct conns *a = ctx;
	int64_t tick = conns_tick_ms(a->config), last_ms = fw_mono_ms(), now_ms = last_ms;

	pthread_mutex_lock(&a->lock);
	while (!a->stop) {
		int64_t real_ms = fw_mono_ms(), then_ms = real_ms + tick;
		struct timespec until = fw_timespec(then_ms);

		/* a late wake-up of this thread does not count against clients */
		now_ms += FW_MIN(real_ms - last_ms, 2 * tick);
		last_ms = real_ms;
		atomic_store_explicit(&a->now_ms, now_ms, memory_order_relaxed);
		for (size_t i = 0; i < a->server_thread_n; i++)
			conns_check(a, &a->list[i], now_ms);
		pthread_cond_timedwait(&a->wake, &a->lock, &until);
	}
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

/* Each connection is an open file. */
static size_t conns_files_max(size_t wanted)
{
	struct rlimit limit;
	size_t may;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return wanted;
	if (limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &limit))
			fw_warn("cannot raise the limit of open files: %s", strerror(errno));
		if (getrlimit(RLIMIT_NOFILE, &limit))
			return wanted;
	}
	may = limit.rlim_cur == RLIM_INFINITY ? SIZE_MAX : (size_t)limit.rlim_cur;
	if (may >= wanted + OTHER_FILES)
		return wanted;
	may = may > 2 * OTHER_FILES ? may - OTHER_FILES : may / 2;
	fw_warn("serve_connections_max = %zu: reduced to %zu by the limit of %zu open files (to raise it: ulimit -n, "
		"LimitNOFILE=)",
		wanted, may, (size_t)limit.rlim_cur);
	return may;
}

int conns_open(const struct fw_config *c, size_t server_threads, bool plain, struct conns **out, struct fw_err *err)
{
	struct conns *a = calloc(1, sizeof(*a) + server_threads * sizeof(a->list[0]));
	int rc;

	*out = NULL;
	if (!a)
		return fw_err_set(err, FW_ENOMEM, "out of memory");
	a->config = c;
	a->plain = plain;
	a->server_thread_n = server_threads;
	a->max = conns_files_max((size_t)c->serve_connections_max);
	a->max = FW_MAX(a->max, server_threads);
	atomic_init(&a->now_ms, fw_mono_ms());
	for (size_t i = 0; i < server_threads; i++)
		pthread_mutex_init(&a->list[i].lock, NULL);
	pthread_mutex_init(&a->lock, NULL);
	fw_mono_cond_init(&a->wake);
	rc = pthread_create(&a->thread, NULL, conns_run, a);
	if (rc) {
		conns_destroy(a);
		return fw_err_set(err, FW_EIO, "cannot start the thread for connection timeouts: %s", strerror(rc));
	}
	a->running = true;
	*out = a;
	return 0;
}

void conns_stop(struct conns *a)
{
	if (!a || !a->running)
		return;
	pthread_mutex_lock(&a->lock);
	a->stop = true;
	pthread_cond_signal(&a->wake);
	pthread_mutex_unlock(&a->lock);
	pthread_join(a->thread, NULL);
	a->running = false;
}

void conns_destroy(struct conns *a)
{
	if (!a)
		return;
	conns_stop(a);
	for (size_t i = 0; i < a->server_thread_n; i++)
		pthread_mutex_destroy(&a->list[i].lock);
	pthread_cond_destroy(&a->wake);
	pthread_mutex_destroy(&a->lock);
	free(a);
}

size_t conns_max(const struct conns *a)
{
	return a->max;
}

size_t conns_open_n(const struct conns *a)
{
	size_t n = 0;

	for (size_t i = 0; i < a->server_thread_n; i++)
		n += atomic_load_explicit(&a->list[i].n, memory_order_relaxed);
	return n;
}

uint64_t conns_timeout_n(const struct conns *a, enum conn_phase p)
{
	return atomic_load_explicit(&a->timeout_n[p], memory_order_relaxed);
}
