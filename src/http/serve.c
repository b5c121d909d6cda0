/* SPDX-License-Identifier: ISC */
/* The server's life: opens all that its rooms need, waits for the end, and drains. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "api/meter.h"
#include "api/sender.h"
#include "api/view.h"
#include "http/api/entry_stream.h"
#include "http/api/event_rules.h"
#include "http/auth/bucket.h"
#include "http/auth/password_cache.h"
#include "http/serve.h"
#include "http/server/http.h"

#define VIEWS_BYTES ((size_t)16 << 20) /* cache of sanitized contents */
#define STOP_TICK_MS 5
#define HEARTBEAT_MS FW_SECOND_MS

static void http_free(struct http *h)
{
	for (size_t i = 0; i < h->thread_n && h->thread; i++)
		http_thread_free(&h->thread[i]);
	free(h->thread);
	http_accept_destroy(h->accept);
	fw_sender_close(h->sender);
	fw_hubs_close(h->hubs);
	fw_icons_close(h->icons);
	buckets_destroy(h->pushes);
	stream_destroy(h->stream);
	pool_destroy(h->pool);
	fw_view_cache_destroy(h->views);
	password_cache_destroy(h->passwords);
	auth_close(h->auth);
	conns_destroy(h->conns);
	http_log_destroy(h->log);
	http_tls_free(&h->tls);
	http_maintenance_free(h);
	free(h->rules);
	fw_ingest_destroy(h->ingest);
	pthread_mutex_destroy(&h->discoveries.lock);
	free(h);
}

static int server_threads_start(struct http *h, struct fw_err *err)
{
	int rc = 0;

	for (size_t i = 0; i < h->thread_n && !rc; i++)
		rc = http_thread_start(&h->thread[i], err);
	atomic_store(&h->started, true);
	return rc;
}

static void server_threads_stop(struct http *h)
{
	for (size_t i = 0; i < h->thread_n && h->thread; i++)
		server_thread_close(h->thread[i].loop);
}

static size_t thread_body_max(const struct http *h)
{
	size_t n, most = (size_t)h->config->push_body_max_bytes,
		  part = (size_t)h->config->serve_memory_bytes / h->thread_n;
	const struct route *route = http_routes(&n);

	while (n--)
		most = FW_MAX(most, route[n].body_max);
	return FW_MAX(part, 2 * most); /* at least one body, compressed and decompressed */
}

/* Beside workers, the first worker delivers. */
static int http_sender_open(struct http *h, struct fw_err *err)
{
	struct fw_meter_sum s;

	fw_meter_read(h->meter, &s);
	return s.workers ? 0 : fw_sender_open(&(struct fw_sender_options){.config = h->config}, &h->sender, err);
}

static int http_start(const struct fw_config *c, struct fw_meter *meter, int fd, struct http **out, struct fw_err *err)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	struct http *h = calloc(1, sizeof(*h));
	int rc;

	*out = NULL;
	if (!h)
		return fw_no_memory(err);
	pthread_mutex_init(&h->discoveries.lock, NULL);
	h->config = c;
	h->meter = meter;
	h->thread_n = c->serve_threads > 0 ? (size_t)c->serve_threads : (size_t)FW_MAX(cores, 1);
	h->thread = calloc(h->thread_n, sizeof(*h->thread));
	h->thread_body_max = thread_body_max(h);
	http_id_init(h);
	h->rules = event_rules_create(c);
	rc = h->thread && h->rules ? http_proxies_init(&h->proxies, c->trusted_proxies, err) :
				     fw_err_set(err, FW_ENOMEM, "out of memory");
	if (!rc)
		rc = fw_ingest_open(c, h->thread_n, &h->ingest, err);
	for (size_t i = 0; i < h->thread_n && !rc; i++) {
		h->thread[i].h = h;
		h->thread[i].in = fw_ingest_producer(h->ingest, i);
	}
	if (!rc)
		rc = http_tls_read(c, &h->tls, err);
	if (!rc)
		rc = http_log_open(c->access_log, h->thread_n, &h->log, err);
	if (!rc)
		rc = conns_open(c, h->thread_n, !h->tls.key, &h->conns, err);
	if (!rc)
		rc = pool_open(c, &h->pool, err);
	if (!rc && (!(h->views = fw_view_cache_create(VIEWS_BYTES)) || !(h->passwords = password_cache_create())))
		rc = fw_err_set(err, FW_ENOMEM, "out of memory");
	if (!rc)
		rc = auth_open(c, &h->auth, err);
	if (!rc &&
		(http_maintenance_create(h) ||
			!(h->pushes = buckets_create(c->websub_pushes_max, c->websub_pushes_ms))))
		rc = fw_err_set(err, FW_ENOMEM, "out of memory");
	if (!rc)
		rc = stream_open(c, h->pool, h->auth, &h->suspended_n, &h->stream, err);
	if (!rc)
		rc = fw_hubs_open(c, &h->hubs, err);
	if (!rc)
		rc = fw_icons_open(c, &h->icons, err);
	if (!rc)
		rc = http_sender_open(h, err);
	if (!rc)
		rc = server_threads_start(h, err);
	if (!rc)
		rc = http_accept_open(h->thread, h->thread_n, fd, h->conns,
			&(struct http_accept_rules){c, &h->proxies, !h->tls.key}, &h->accept, err);
	if (rc) {
		server_threads_stop(h);
		if (h->ingest)
			(void)fw_ingest_stop(h->ingest, 0);
		http_free(h);
		return rc;
	}
	*out = h;
	return 0;
}

/*
 * Drain: accept nothing more, store all rows, respond to the pushes that wait for it. Returns how
 * many rows were not stored.
 */
static uint64_t http_stop(struct http *h)
{
	uint64_t left;
	int64_t until_ms;

	if (h->sender)
		fw_sender_stop(h->sender);
	http_accept_stop(h->accept);
	stream_close(h->stream);
	left = fw_ingest_stop(h->ingest, h->config->drain_timeout_ms);
	pool_close(h->pool);
	fw_icons_stop(h->icons);
	fw_hubs_stop(h->hubs); /* after the pool, so that the pool's counts are stored too */
	until_ms = fw_mono_ms() + FW_SECOND_MS;
	while (atomic_load(&h->suspended_n) > 0 && fw_mono_ms() < until_ms)
		usleep(STOP_TICK_MS * 1000);
	conns_stop(h->conns);
	server_threads_stop(h);
	http_free(h);
	return left;
}

/*
 * Wait for a stop signal or the end of the parent; meanwhile run the maintenance and the heartbeat.
 */
static void serve_wait(struct http *h, const sigset_t *signals, int parent_fd)
{
	struct pollfd p[2] = {{.events = POLLIN}, {.fd = parent_fd, .events = POLLIN}};
	struct signalfd_siginfo drop;
	int n;

	p[0].fd = signalfd(-1, signals, SFD_CLOEXEC);
	do {
		http_maintenance_run(h);
		fw_meter_heartbeat(h->meter);
		n = poll(p, 2, (int)HEARTBEAT_MS);
	} while (!n || (n < 0 && errno == EINTR));
	if (p[0].revents && read(p[0].fd, &drop, sizeof(drop)) < 0)
		fw_debug("signal: %s", strerror(errno));
	if (p[0].fd >= 0)
		close(p[0].fd);
}

const char *fw_serve_library(void)
{
	static char text[60];

	(void)fw_snprintf(text, sizeof(text), "libmicrohttpd %s", MHD_get_version());
	return text;
}

int fw_serve(const struct fw_config *c, struct fw_meter *meter, int fd, int parent_fd, struct fw_err *err)
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
	signal(SIGXFSZ, SIG_IGN); /* a write beyond RLIMIT_FSIZE fails with EFBIG then, like one to a full disk */
	rc = http_start(c, meter, fd, &h, err);
	if (rc)
		return rc;
	fw_info("listening on %s", c->listen);
	serve_wait(h, &signals, parent_fd);
	left = http_stop(h);
	if (left)
		return fw_err_set(err, FW_EIO, "%llu accepted rows could not be stored: the store is unavailable",
			(unsigned long long)left);
	return 0;
}
