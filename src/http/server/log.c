/* SPDX-License-Identifier: ISC */
/*
 * The access log: one line for each request, in the combined format of web servers, followed by the
 * request's id and its duration in seconds.
 *
 *	192.0.2.1 - - [21/Nov/2026:12:30:00 +0000] "GET / HTTP/1.1" 200 2 "-" "curl" 9f86d0 0.000123
 *
 * Each server thread puts rows into its own ring, without a lock or a system call. One thread
 * formats and writes them, ring after ring: lines of one PAUSE_MS may be out of order.
 * Backpressure: a row that finds its ring full is dropped and counted. The thread waits for a slow
 * reader of a pipe, but at the stop for at most LAST_MS. The file is opened for appending at the
 * start. SIGHUP starts a new server, which opens a new file after the old one was renamed.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/byte_ring.h"
#include "base/clock.h"
#include "base/log.h"
#include "http/server/http.h"

#define RING_BYTES ((size_t)1 << 20) /* for each server thread */
#define PAUSE_MS 20
#define LAST_MS (2 * FW_SECOND_MS) /* at the stop: how long to wait for a slow reader of a pipe */
#define BATCH_BYTES 65536
#define PATH_MAX_BYTES 1000
#define AGENT_MAX_BYTES 200

struct access_row {
	int64_t stamp_ms, us, bytes;
	unsigned status;
	uint16_t path_len, agent_len;
	unsigned char ip[16], ip_len;
	char method[16], id[HTTP_ID_MAX + 1];
	char text[]; /* path, agent */
};

struct http_log {
	const char *where;
	int fd;
	bool stop, failing;
	bool file;       /* a regular file; else a pipe, socket or terminal, which can be full */
	int64_t last_ms; /* monotonic: when it was stopped; 0: not yet */
	/* lines that were dropped: the ring was full; they were not written */
	_Atomic uint64_t full_n, failed_n;
	uint64_t full_reported_n, failed_reported_n;
	int failed_errno; /* of the last write */
	pthread_t thread;
	bool running;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct fw_buf out;
	size_t server_thread_n;
	struct fw_byte_ring ring[];
};

/* ---- the server threads ---------------------------------------------------------------------- */

void http_log_begin(struct request *r, const char *path, const char *method)
{
	if (!r->thread->h->log)
		return;
	r->log.path = path;
	r->log.method = method;
	r->log.from_us = fw_mono_us();
	r->log.status = 0;
	r->log.bytes = -1;
}

/*
 * Where the secret in a path ends; *from: where it starts. 0: it has none (LOG-02). A token counts
 * wherever it is, because a client may have written the path wrong.
 */
static size_t log_secret_end(struct fw_str path, size_t *from)
{
	const char *token = fw_str_find(path, FW_STR("fwt_"));

	if (fw_str_starts(path, FW_STR("/websub/"))) {
		*from = strlen("/websub/");
		return path.len;
	}
	if (!token && !fw_str_starts(path, FW_STR("/t/")))
		return 0;
	*from = token ? (size_t)(token - path.p) : strlen("/t/");
	for (size_t i = *from; i < path.len; i++) {
		if (path.p[i] == '/')
			return i;
	}
	return path.len;
}

void http_log_end(struct request *r)
{
	struct http_log *l = r->thread->h->log;
	char shown[PATH_MAX_BYTES + sizeof("***")];
	struct fw_str path, agent, ip;
	size_t from, end;
	struct fw_byte_ring *ring;
	struct access_row *row;

	if (!l)
		return;
	path = fw_str_sub(fw_str(r->log.path), 0, PATH_MAX_BYTES);
	end = log_secret_end(path, &from);
	if (end) {
		(void)fw_snprintf(
			shown, sizeof(shown), "%.*s***%.*s", (int)from, path.p, (int)(path.len - end), path.p + end);
		path = fw_str(shown);
	}
	agent = fw_str_sub(fw_str(MHD_lookup_connection_value(r->conn, MHD_HEADER_KIND, MHD_HTTP_HEADER_USER_AGENT)), 0,
		AGENT_MAX_BYTES);
	ip = http_client_address(r);
	ring = &l->ring[r->thread - r->thread->h->thread];
	row = fw_byte_ring_draft(ring, sizeof(*row) + path.len + agent.len);
	if (!row) {
		atomic_fetch_add_explicit(&l->full_n, 1, memory_order_relaxed);
		return;
	}
	*row = (struct access_row){.stamp_ms = fw_now_ms(), /* wall clock: a log is of this machine */
		.us = fw_mono_us() - r->log.from_us,
		.bytes = r->log.bytes,
		.status = r->log.status,
		.path_len = (uint16_t)path.len,
		.agent_len = (uint16_t)agent.len,
		.ip_len = (unsigned char)ip.len};
	memcpy(row->ip, ip.p, ip.len);
	(void)fw_str_copy(row->method, sizeof(row->method), fw_str(r->log.method));
	(void)fw_str_copy(row->id, sizeof(row->id), fw_str(http_request_id(r)));
	if (path.len)
		memcpy(row->text, path.p, path.len);
	if (agent.len)
		memcpy(row->text + path.len, agent.p, agent.len);
	fw_byte_ring_publish(ring);
}

/* ---- the writing thread ---------------------------------------------------------------------- */

/* Escape s, so that no byte of it ends the line or the quotes around it. */
static void access_log_quote(struct fw_buf *b, struct fw_str s)
{
	size_t from = 0;

	for (size_t i = 0; i <= s.len; i++) {
		if (i < s.len && s.p[i] != '"')
			continue;
		fw_log_escape(b, fw_str_sub(s, from, i));
		if (i < s.len)
			fw_buf_adds(b, "\\x22");
		from = i + 1;
	}
}

static void access_log_format(struct fw_buf *b, const struct access_row *w)
{
	static const char MONTH[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	char ip[INET6_ADDRSTRLEN] = "-";
	struct fw_civil t;

	if (w->ip_len && !inet_ntop(w->ip_len == 4 ? AF_INET : AF_INET6, w->ip, ip, sizeof(ip)))
		ip[0] = '-';
	fw_civil_from_ms(w->stamp_ms, &t);
	fw_buf_addf(b, "%s - - [%02d/%.3s/%04d:%02d:%02d:%02d +0000] \"", ip, t.day, MONTH + 3 * (t.month - 1), t.year,
		t.hour, t.minute, t.second);
	access_log_quote(b, fw_str(w->method));
	fw_buf_addc(b, ' ');
	access_log_quote(b, (struct fw_str){w->text, w->path_len});
	fw_buf_addf(b, " HTTP/1.1\" %u ", w->status);
	if (w->bytes >= 0)
		fw_buf_addf(b, "%lld", (long long)w->bytes);
	else
		fw_buf_addc(b, '-');
	fw_buf_adds(b, " \"-\" \"");
	if (w->agent_len)
		access_log_quote(b, (struct fw_str){w->text + w->path_len, w->agent_len});
	else
		fw_buf_addc(b, '-');
	fw_buf_addf(b, "\" %s %lld.%06lld\n", w->id, (long long)(w->us / 1000000), (long long)(w->us % 1000000));
}

static bool access_log_is_stopping(struct http_log *l)
{
	bool stop;

	pthread_mutex_lock(&l->lock);
	stop = l->stop;
	pthread_mutex_unlock(&l->lock);
	if (stop && !l->last_ms)
		l->last_ms = fw_mono_ms();
	return stop;
}

/*
 * Wait until a pipe takes PIPE_BUF bytes without blocking. False: the log is stopped and LAST_MS
 * are over.
 */
static bool access_log_wait(struct http_log *l)
{
	struct pollfd p = {.fd = l->fd, .events = POLLOUT};

	while (!l->file && poll(&p, 1, PAUSE_MS) <= 0) {
		if (access_log_is_stopping(l) && fw_mono_ms() - l->last_ms > LAST_MS) {
			errno = EAGAIN;
			return false;
		}
	}
	return true;
}

static void access_log_write(struct http_log *l)
{
	struct fw_str s = fw_buf_str(&l->out);

	while (s.len) {
		ssize_t n = access_log_wait(l) ? write(l->fd, s.p, l->file ? s.len : FW_MIN(s.len, PIPE_BUF)) : -1;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			if (!l->failing)
				fw_error("access_log = %s: %s; lines are dropped", l->where, strerror(errno));
			l->failing = true;
			l->failed_errno = errno;
			for (size_t i = 0; i < s.len; i++)
				atomic_fetch_add_explicit(&l->failed_n, s.p[i] == '\n', memory_order_relaxed);
			break;
		}
		l->failing = false;
		s = fw_str_sub(s, (size_t)n, s.len);
	}
	fw_buf_reset(&l->out);
}

/* One round over the rings; true: there may be more. */
static bool access_log_drain(struct http_log *l)
{
	bool more = false;

	for (size_t i = 0; i < l->server_thread_n; i++) {
		const struct access_row *w;
		size_t len;

		while (l->out.len < BATCH_BYTES && (w = fw_byte_ring_next(&l->ring[i], &len)) != NULL)
			access_log_format(&l->out, w);
		fw_byte_ring_release(&l->ring[i]);
		more |= l->out.len >= BATCH_BYTES;
		access_log_write(l);
	}
	return more;
}

/* Each loss with its reason: a full ring here, a failed write below. */
static void access_log_report(struct http_log *l)
{
	uint64_t n = atomic_load(&l->full_n), failed_n = atomic_load(&l->failed_n);

	if (n > l->full_reported_n)
		fw_warn("access_log = %s: %llu lines were dropped, because requests came faster than lines were "
			"written",
			l->where, (unsigned long long)(n - l->full_reported_n));
	if (failed_n > l->failed_reported_n)
		fw_warn("access_log = %s: %llu lines were dropped, because they could not be written: %s; make room, "
			"or name another file",
			l->where, (unsigned long long)(failed_n - l->failed_reported_n), strerror(l->failed_errno));
	l->full_reported_n = n;
	l->failed_reported_n = failed_n;
}

static void *access_log_run(void *ctx)
{
	struct http_log *l = ctx;
	int64_t reported_ms = 0;
	bool stop;

	do {
		int64_t then_ms = fw_mono_ms() + PAUSE_MS;
		struct timespec until = fw_timespec(then_ms);

		pthread_mutex_lock(&l->lock);
		if (!l->stop)
			pthread_cond_timedwait(&l->wake, &l->lock, &until);
		pthread_mutex_unlock(&l->lock);
		stop = access_log_is_stopping(l);
		while (access_log_drain(l))
			;
		if (fw_mono_ms() - reported_ms > FW_SECOND_MS || stop) {
			access_log_report(l);
			reported_ms = fw_mono_ms();
		}
	} while (!stop);
	return NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

int http_log_open(const char *where, size_t server_threads, struct http_log **out, struct fw_err *err)
{
	struct http_log *l;
	struct stat st;
	int rc = 0;

	*out = NULL;
	if (!where)
		return 0;
	l = calloc(1, sizeof(*l) + server_threads * sizeof(l->ring[0]));
	if (!l)
		return fw_err_set(err, FW_ENOMEM, "out of memory");
	l->where = where;
	l->server_thread_n = server_threads;
	pthread_mutex_init(&l->lock, NULL);
	fw_mono_cond_init(&l->wake);
	l->fd = strcmp(where, "-") == 0 ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0) :
					  open(where, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
	if (l->fd < 0)
		rc = fw_err_set(err, FW_EINVAL, "access_log = %s: %s", where, strerror(errno));
	l->file = l->fd >= 0 && !fstat(l->fd, &st) && !S_ISFIFO(st.st_mode) && !S_ISSOCK(st.st_mode) && !isatty(l->fd);
	for (size_t i = 0; i < server_threads && !rc; i++)
		rc = fw_byte_ring_init(&l->ring[i], RING_BYTES) ? fw_err_set(err, FW_ENOMEM, "out of memory") : 0;
	if (!rc) {
		rc = pthread_create(&l->thread, NULL, access_log_run, l);
		l->running = !rc;
		if (rc)
			rc = fw_err_set(err, FW_EIO, "access_log: cannot start its thread: %s", strerror(rc));
	}
	if (rc)
		http_log_destroy(l);
	else
		*out = l;
	return rc;
}

void http_log_destroy(struct http_log *l)
{
	if (!l)
		return;
	if (l->running) {
		pthread_mutex_lock(&l->lock);
		l->stop = true;
		pthread_cond_signal(&l->wake);
		pthread_mutex_unlock(&l->lock);
		pthread_join(l->thread, NULL);
	}
	for (size_t i = 0; i < l->server_thread_n; i++)
		fw_byte_ring_finish(&l->ring[i]);
	if (l->fd >= 0)
		close(l->fd);
	fw_buf_finish(&l->out);
	pthread_cond_destroy(&l->wake);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

uint64_t http_log_dropped_n(const struct http_log *l)
{
	return l ? atomic_load(&l->full_n) + atomic_load(&l->failed_n) : 0;
}
