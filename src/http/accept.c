/* SPDX-License-Identifier: ISC */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "http/accept.h"
#include "base/banned.h"

#define FULL_MS 10          /* how often it looks for room when there is none */
#define SHORT_MS 100        /* and for memory and file descriptors */
#define BATCH 64            /* accepted before it looks whether to stop */
#define LOST_MS FW_SECOND_MS /* who was handed over and did not begin within this was closed at once */

struct http_accept {
	struct MHD_Daemon *daemon;
	const struct conns *conns;
	int fd, stop_fd;
	pthread_t thread;
	uint64_t handed_n;          /* to libmicrohttpd */
	_Atomic uint64_t began_n;   /* of these */
	int64_t handed_ms;          /* the last one */
};

/* Handed over, and not yet among those that are open. */
static size_t under_way(struct http_accept *a)
{
	uint64_t began = atomic_load_explicit(&a->began_n, memory_order_relaxed);

	if (a->handed_n > began && fw_mono_ms() - a->handed_ms > LOST_MS)
		a->handed_n = began;
	return a->handed_n > began ? (size_t)(a->handed_n - began) : 0;
}

/* One more. False: none is there, or it cannot be taken now. *wait_ms: until when nothing can be; 0: at any time. */
static bool accept_one(struct http_accept *a, int *wait_ms)
{
	struct sockaddr_storage from;
	socklen_t len = sizeof(from);
	int fd;

	*wait_ms = 0;
	if (conns_open_n(a->conns) + under_way(a) >= conns_max(a->conns)) {
		*wait_ms = FULL_MS;
		return false;
	}
	fd = accept4(a->fd, (struct sockaddr *)&from, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			fw_debug("a connection has to wait: %s", strerror(errno));
			*wait_ms = SHORT_MS;
		}
		return errno == ECONNABORTED || errno == EINTR; /* that one is gone */
	}
	a->handed_n++;
	a->handed_ms = fw_mono_ms();
	if (MHD_add_connection(a->daemon, fd, (struct sockaddr *)&from, len) != MHD_YES) /* it has closed it */
		a->handed_n--;
	return true;
}

static void *run(void *ctx)
{
	struct http_accept *a = ctx;
	struct pollfd p[2] = {{.fd = a->stop_fd, .events = POLLIN}, {.events = POLLIN}};
	int wait_ms = 0;

	for (;;) {
		p[1].fd = wait_ms ? -1 : a->fd;
		if (poll(p, 2, wait_ms ? wait_ms : -1) < 0 && errno != EINTR)
			fw_error("the server can accept nothing: poll: %s", strerror(errno));
		if (p[0].revents)
			return NULL;
		for (int i = 0; i < BATCH && accept_one(a, &wait_ms); i++)
			;
	}
}

int http_accept_open(struct MHD_Daemon *daemon, int fd, const struct conns *conns, struct http_accept **out,
	struct fw_err *err)
{
	struct http_accept *a = calloc(1, sizeof(*a));
	int rc, flags = fcntl(fd, F_GETFL);

	*out = NULL;
	if (!a)
		return fw_err_set(err, FW_ENOMEM, "out of memory");
	*a = (struct http_accept){.daemon = daemon, .conns = conns, .fd = fd, .stop_fd = eventfd(0, EFD_CLOEXEC)};
	*out = a;
	rc = a->stop_fd < 0 || flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) ? errno :
		pthread_create(&a->thread, NULL, run, a);
	if (!rc)
		return 0;
	*out = NULL;
	http_accept_destroy(a);
	return fw_err_set(err, FW_EIO, "no thread to accept connections: %s", strerror(rc));
}

void http_accept_began(struct http_accept *a)
{
	atomic_fetch_add_explicit(&a->began_n, 1, memory_order_relaxed);
}

void http_accept_stop(struct http_accept *a)
{
	if (eventfd_write(a->stop_fd, 1))
		abort(); /* it counts to 2^64 */
	pthread_join(a->thread, NULL);
}

void http_accept_destroy(struct http_accept *a)
{
	if (a && a->stop_fd >= 0)
		close(a->stop_fd);
	free(a);
}
