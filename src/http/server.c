/* SPDX-License-Identifier: ISC */
/* The server: sockets, threads, and the way of a request from its first byte to the route that answers it. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "feedwheel/serve.h"
#include "http/http.h"
#include "base/banned.h"

#define SPARE_MAX 256           /* requests kept for use again, for each thread */
#define SPARE_BODY_BYTES 16384
#define HEADER_MAX_BYTES 16384  /* a connection's memory: request line and headers */
#define STOP_TICK_MS 5
#define DROP_FACTOR 8           /* so much more of a body that is too large is read, to tell its sender */
#define DROP_MIN ((size_t)1 << 16)

static _Thread_local struct http_lane *own_lane;

/* libmicrohttpd makes its threads itself: each takes a lane when it first runs a request. */
static struct http_lane *lane_of_thread(struct http *h)
{
	if (!own_lane || own_lane->h != h) {
		size_t i = atomic_fetch_add(&h->lane_used, 1);

		if (i >= h->lane_n)
			abort(); /* there are as many as threads */
		own_lane = &h->lane[i];
	}
	return own_lane;
}

static struct request *request_begin(struct http *h, struct MHD_Connection *conn)
{
	struct http_lane *l = lane_of_thread(h);
	struct request *r = l->spare;

	if (r) {
		l->spare = r->next;
		l->spare_n--;
	} else {
		r = calloc(1, sizeof(*r));
		if (!r)
			return NULL;
	}
	r->lane = l;
	r->conn = conn;
	r->state = REQUEST_BODY;
	r->route = NULL;
	r->id = 0;
	r->allow[0] = 0;
	r->challenge = NULL;
	r->answer = NULL;
	r->dropped = 0;
	fw_buf_reset(&r->body);
	atomic_fetch_add_explicit(&l->request_n, 1, memory_order_relaxed);
	return r;
}

static void request_free(struct request *r)
{
	fw_buf_finish(&r->body);
	free(r);
}

static void request_over(void *ctx, struct MHD_Connection *conn, void **at, enum MHD_RequestTerminationCode why)
{
	struct request *r = *at;
	struct http_lane *l;

	(void)ctx;
	(void)conn;
	(void)why;
	if (!r)
		return;
	*at = NULL;
	l = r->lane;
	if (r->answer)
		MHD_destroy_response(r->answer);
	r->answer = NULL;
	if (l->spare_n >= SPARE_MAX || r->body.cap > SPARE_BODY_BYTES) {
		request_free(r);
		return;
	}
	r->next = l->spare;
	l->spare = r;
	l->spare_n++;
}

static enum MHD_Result too_large(struct request *r)
{
	return http_problem(r, MHD_HTTP_CONTENT_TOO_LARGE, r->route->twirp ? "resource_exhausted" : "too_large",
		"the body is larger than %zu bytes", r->route->body_max);
}

static size_t drop_max(const struct request *r)
{
	return DROP_FACTOR * r->route->body_max + DROP_MIN;
}

/*
 * A body that is far too large is refused before it is sent, and so is one whose sender waits for leave. Others are read to their end: who
 * is sending does not look for an answer, and an end of the connection would take it from them.
 */
static enum MHD_Result body_begin(struct request *r)
{
	const char *told = MHD_lookup_connection_value(r->conn, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
	bool waits = MHD_lookup_connection_value(r->conn, MHD_HEADER_KIND, MHD_HTTP_HEADER_EXPECT) != NULL;
	int64_t len;

	if (!told || !fw_str_int(fw_str(told), &len) || len <= (int64_t)(waits ? r->route->body_max : drop_max(r)))
		return MHD_YES;
	return too_large(r);
}

/* libmicrohttpd takes no answer in the middle of a body: what is too large is read on, within reason. */
static enum MHD_Result body_add(struct request *r, const char *data, size_t *len)
{
	size_t n = *len;

	*len = 0;
	if (r->state == REQUEST_ANSWERED)
		return MHD_YES;
	if (r->state == REQUEST_BODY && n > r->route->body_max - r->body.len)
		r->state = REQUEST_TOO_LARGE;
	if (r->state == REQUEST_TOO_LARGE || r->state == REQUEST_REFUSED) {
		r->dropped += n;
		return r->dropped > drop_max(r) ? MHD_NO : MHD_YES;
	}
	fw_buf_add(&r->body, data, n);
	return r->body.rc ? MHD_NO : MHD_YES;
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *conn, const char *path, const char *method, const char *version,
	const char *data, size_t *len, void **at)
{
	struct http *h = ctx;
	struct request *r = *at;

	(void)version;
	if (!r) {
		enum MHD_Result ok;

		r = *at = request_begin(h, conn);
		if (!r)
			return MHD_NO;
		ok = http_route(r, path, method);
		if (ok && r->state == REQUEST_BODY)
			ok = http_auth(r);
		return ok && r->state == REQUEST_BODY ? body_begin(r) : ok;
	}
	if (*len)
		return body_add(r, data, len);
	switch (r->state) {
	case REQUEST_BODY: return r->route->desk ? http_desk_ask(r) : r->route->run(r);
	case REQUEST_TOO_LARGE: return too_large(r);
	case REQUEST_REFUSED: return http_auth_refuse(r);
	case REQUEST_WAITS: return http_push_resumed(r);
	case REQUEST_DESK_DONE: return http_desk_resumed(r);
	case REQUEST_DESK:
	case REQUEST_ANSWERED: break;
	}
	return MHD_YES;
}

/* ---- life ---------------------------------------------------------------------------------------------------------------------------------- */

static int listen_unix(struct fw_str path, struct fw_err *err)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd;

	if (path.len >= sizeof(a.sun_path))
		return fw_err_set(err, FW_EINVAL, "listen = unix:%.*s: longer than %zu bytes", FW_STR_ARG(path), sizeof(a.sun_path) - 1);
	memcpy(a.sun_path, path.p, path.len);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) && errno == ECONNREFUSED)
		unlink(a.sun_path); /* of a server that is gone */
	if (fd >= 0)
		close(fd);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, SOMAXCONN)) {
		fw_err_set(err, FW_EINVAL, "listen = unix:%.*s: %s", FW_STR_ARG(path), strerror(errno));
		if (fd >= 0)
			close(fd);
		return FW_EINVAL;
	}
	return fd;
}

static int listen_inet(struct fw_str address, struct fw_err *err)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV}, *list = NULL;
	char host[256], port[16];
	size_t colon = address.len;
	int fd = -1, rc, one = 1;

	while (colon && address.p[colon - 1] != ':')
		colon--;
	if (!colon)
		return fw_err_set(err, FW_EINVAL, "listen = %.*s: ADDRESS:PORT or unix:PATH, such as 127.0.0.1:8080", FW_STR_ARG(address));
	fw_str_copy(port, sizeof(port), fw_str_sub(address, colon, address.len));
	address = fw_str_sub(address, 0, colon - 1);
	if (address.len > 1 && address.p[0] == '[' && address.p[address.len - 1] == ']')
		address = fw_str_sub(address, 1, address.len - 1);
	fw_str_copy(host, sizeof(host), address);
	rc = getaddrinfo(host[0] ? host : NULL, port, &hints, &list);
	if (rc)
		return fw_err_set(err, FW_EINVAL, "listen = %s:%s: %s", host, port, gai_strerror(rc));
	fd = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) || bind(fd, list->ai_addr, list->ai_addrlen) ||
	    listen(fd, SOMAXCONN)) {
		fw_err_set(err, FW_EINVAL, "listen = %s:%s: %s", host, port, strerror(errno));
		if (fd >= 0)
			close(fd);
		fd = FW_EINVAL;
	}
	freeaddrinfo(list);
	return fd;
}

int fw_serve_listen(const struct fw_config *c, int *fd, struct fw_err *err)
{
	struct fw_str s = fw_str(c->listen ? c->listen : "");

	if (!s.len)
		return fw_err_set(err, FW_EINVAL, "nowhere to listen: --listen 127.0.0.1:8080");
	*fd = fw_str_starts(s, FW_STR("unix:")) ? listen_unix(fw_str_sub(s, 5, s.len), err) : listen_inet(s, err);
	return *fd < 0 ? *fd : 0;
}

void fw_serve_unlisten(const struct fw_config *c, int fd)
{
	struct fw_str s = fw_str(c->listen);

	if (fw_str_starts(s, FW_STR("unix:")))
		unlink(c->listen + 5);
	close(fd);
}

static void http_free(struct http *h)
{
	for (size_t i = 0; i < h->lane_n && h->lane; i++) {
		struct http_lane *l = &h->lane[i];

		http_canned_free(l);
		auth_view_finish(&l->auth);
		while (l->spare) {
			struct request *r = l->spare;

			l->spare = r->next;
			request_free(r);
		}
	}
	free(h->lane);
	desk_destroy(h->desk);
	auth_close(h->auth);
	fw_ingest_destroy(h->ingest);
	free(h);
}

static int http_start(const struct fw_config *c, const struct fw_meter *meter, int fd, struct http **out, struct fw_err *err)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	struct http *h = calloc(1, sizeof(*h));
	int rc;

	*out = NULL;
	if (!h)
		return fw_err_set(err, FW_ENOMEM, "out of memory");
	h->config = c;
	h->meter = meter;
	h->lane_n = c->serve_threads > 0 ? (size_t)c->serve_threads : (size_t)FW_MAX(cores, 1);
	h->lane = calloc(h->lane_n, sizeof(*h->lane));
	rc = h->lane ? http_proxies_init(&h->proxies, c->trusted_proxies, err) : fw_err_set(err, FW_ENOMEM, "out of memory");
	if (!rc)
		rc = fw_ingest_open(c, h->lane_n, &h->ingest, err);
	for (size_t i = 0; i < h->lane_n && !rc; i++) {
		h->lane[i].h = h;
		h->lane[i].in = fw_ingest_lane(h->ingest, i);
		rc = http_canned_make(&h->lane[i]);
	}
	if (!rc)
		rc = desk_open(c, &h->desk, err);
	if (!rc)
		rc = auth_open(c, &h->auth, err);
	if (!rc) { /* libmicrohttpd closes what it is given */
		h->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		rc = h->fd < 0 ? fw_err_set(err, FW_EIO, "no file descriptor for the server: %s", strerror(errno)) : 0;
	}
	if (!rc) {
		h->daemon = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ERROR_LOG | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC, 0, NULL, NULL,
			on_request, h, MHD_OPTION_LISTEN_SOCKET, h->fd, MHD_OPTION_THREAD_POOL_SIZE, (unsigned)h->lane_n,
			MHD_OPTION_NOTIFY_COMPLETED, request_over, NULL, MHD_OPTION_CONNECTION_LIMIT, 20000u,
			MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADER_MAX_BYTES, MHD_OPTION_CONNECTION_TIMEOUT, 30u, MHD_OPTION_END);
		if (!h->daemon)
			rc = fw_err_set(err, FW_EIO, "the server could not start: %s", strerror(errno));
	}
	if (rc) {
		if (h->ingest)
			(void)fw_ingest_stop(h->ingest, 0);
		http_free(h);
		return rc;
	}
	*out = h;
	return 0;
}

/* Nothing new is taken, what waits for its commit is answered, all rows are stored. */
static uint64_t http_stop(struct http *h)
{
	int fd = MHD_quiesce_daemon(h->daemon);
	uint64_t left;
	int64_t until_ms;

	if (fd >= 0)
		close(fd);
	left = fw_ingest_stop(h->ingest, h->config->drain_timeout_ms);
	desk_close(h->desk);
	until_ms = fw_mono_ms() + FW_SECOND_MS;
	while (atomic_load(&h->suspended_n) > 0 && fw_mono_ms() < until_ms)
		usleep(STOP_TICK_MS * 1000);
	MHD_stop_daemon(h->daemon);
	http_free(h);
	return left;
}

/* Until a signal says stop, or the parent is gone. */
static void serve_wait(const sigset_t *signals, int parent_fd)
{
	struct pollfd p[2] = {{.events = POLLIN}, {.fd = parent_fd, .events = POLLIN}};
	struct signalfd_siginfo drop;

	p[0].fd = signalfd(-1, signals, SFD_CLOEXEC);
	while (poll(p, 2, -1) < 0 && errno == EINTR)
		;
	if (p[0].revents && read(p[0].fd, &drop, sizeof(drop)) < 0)
		fw_debug("signal: %s", strerror(errno));
	if (p[0].fd >= 0)
		close(p[0].fd);
}

int fw_serve(const struct fw_config *c, const struct fw_meter *meter, int fd, int parent_fd, struct fw_err *err)
{
	struct http *h;
	sigset_t signals;
	uint64_t left;
	int rc;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGQUIT);
	pthread_sigmask(SIG_BLOCK, &signals, NULL); /* the server's threads inherit it */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes is a disk that is full */
	rc = http_start(c, meter, fd, &h, err);
	if (rc)
		return rc;
	fw_info("listening on %s", c->listen);
	serve_wait(&signals, parent_fd);
	left = http_stop(h);
	if (left)
		return fw_err_set(err, FW_EIO, "%llu rows that were accepted could not be stored: the store did not answer", (unsigned long long)left);
	return 0;
}
