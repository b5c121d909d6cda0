/* SPDX-License-Identifier: ISC */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "http/server/server_thread.h"

#define QUEUE_MAX 64

struct queued_conn {
	struct sockaddr_storage from;
	socklen_t len;
	int fd;
};

struct server_thread {
	struct MHD_Daemon *daemon;
	int epoll_fd, wake_fd;
	_Atomic bool woken; /* wake_fd was written and not read yet */
	_Atomic bool stop;
	pthread_t thread;
	bool runs;
	pthread_mutex_t lock;        /* guards the members below */
	size_t queue_first, queue_n; /* the oldest, and how many */
	struct queued_conn queue[QUEUE_MAX];
};

/* Call it after the change that the thread is to see. */
static void server_thread_wake(struct server_thread *l)
{
	if (!atomic_exchange(&l->woken, true) && eventfd_write(l->wake_fd, 1))
		abort(); /* the counter cannot overflow */
}

/* ---- the thread ------------------------------------------------------------------------------ */

static bool queued_conn_pop(struct server_thread *l, struct queued_conn *out)
{
	bool some;

	pthread_mutex_lock(&l->lock);
	some = l->queue_n > 0;
	if (some) {
		*out = l->queue[l->queue_first];
		l->queue_first = (l->queue_first + 1) % QUEUE_MAX;
		l->queue_n--;
	}
	pthread_mutex_unlock(&l->lock);
	return some;
}

static void queued_conns_add(struct server_thread *l)
{
	struct queued_conn h;

	while (queued_conn_pop(l, &h)) {
		if (MHD_add_connection(l->daemon, h.fd, (struct sockaddr *)&h.from, h.len) != MHD_YES)
			fw_debug("new connection closed: %s", strerror(errno));
	}
}

static void *server_thread_run(void *ctx)
{
	struct server_thread *l = ctx;
	struct pollfd p[2] = {{.fd = l->epoll_fd, .events = POLLIN}, {.fd = l->wake_fd, .events = POLLIN}};

	while (!atomic_load_explicit(&l->stop, memory_order_relaxed)) {
		MHD_UNSIGNED_LONG_LONG ms;
		/* the daemon has no timeouts of its own, so it has work now */
		bool more = MHD_get_timeout(l->daemon, &ms) == MHD_YES;

		if (poll(p, 2, more ? 0 : -1) < 0) {
			if (errno != EINTR)
				fw_error("cannot wait for requests: poll: %s", strerror(errno));
			continue;
		}
		if (p[1].revents) {
			eventfd_t drop;

			(void)eventfd_read(l->wake_fd, &drop);
			atomic_exchange(&l->woken, false); /* from now on server_thread_wake() writes again */
			queued_conns_add(l);
		}
		(void)MHD_run(l->daemon);
	}
	return NULL;
}

/* ---- other threads --------------------------------------------------------------------------- */

bool server_thread_has_room(struct server_thread *l)
{
	bool room;

	pthread_mutex_lock(&l->lock);
	room = l->queue_n < QUEUE_MAX;
	pthread_mutex_unlock(&l->lock);
	return room;
}

void server_thread_add(struct server_thread *l, int fd, const struct sockaddr_storage *from, socklen_t len)
{
	pthread_mutex_lock(&l->lock);
	assert(l->queue_n < QUEUE_MAX);
	l->queue[(l->queue_first + l->queue_n++) % QUEUE_MAX] = (struct queued_conn){*from, len, fd};
	pthread_mutex_unlock(&l->lock);
	server_thread_wake(l);
}

void server_thread_resume(struct server_thread *l, struct MHD_Connection *conn)
{
	MHD_resume_connection(conn);
	server_thread_wake(l);
}

int server_thread_open(struct MHD_Daemon *daemon, struct server_thread **out, struct fw_err *err)
{
	const union MHD_DaemonInfo *i = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD);
	struct server_thread *l = calloc(1, sizeof(*l));
	int rc;

	*out = NULL;
	if (!l) {
		MHD_stop_daemon(daemon);
		return fw_no_memory(err);
	}
	l->daemon = daemon;
	l->epoll_fd = i ? i->epoll_fd : -1;
	l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_init(&l->lock, NULL);
	rc = l->epoll_fd < 0 || l->wake_fd < 0 ? errno : pthread_create(&l->thread, NULL, server_thread_run, l);
	if (rc) {
		server_thread_close(l);
		return fw_err_set(err, FW_EIO, "cannot start a server thread: %s", strerror(rc));
	}
	l->runs = true;
	*out = l;
	return 0;
}

void server_thread_close(struct server_thread *l)
{
	if (!l)
		return;
	if (l->runs) {
		atomic_store(&l->stop, true);
		server_thread_wake(l);
		pthread_join(l->thread, NULL);
	}
	for (size_t i = 0; i < l->queue_n; i++)
		close(l->queue[(l->queue_first + i) % QUEUE_MAX].fd);
	MHD_stop_daemon(l->daemon);
	if (l->wake_fd >= 0)
		close(l->wake_fd);
	pthread_mutex_destroy(&l->lock);
	free(l);
}
