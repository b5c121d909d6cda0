/* SPDX-License-Identifier: ISC */
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
#include "http/lane.h"
#include "base/banned.h"

#define HANDED_MAX 64

struct handed {
	struct sockaddr_storage from;
	socklen_t len;
	int fd;
};

struct lane {
	struct MHD_Daemon *daemon;
	int epoll_fd, wake_fd;
	_Atomic bool woken; /* wake_fd was written and not read yet */
	_Atomic bool stop;
	pthread_t thread;
	bool runs;
	pthread_mutex_t lock; /* guards the members below */
	size_t handed_n;
	struct handed handed[HANDED_MAX];
};

/* Call it after the change that the thread is to see. */
static void wake(struct lane *l)
{
	if (!atomic_exchange(&l->woken, true) && eventfd_write(l->wake_fd, 1))
		abort(); /* the counter cannot overflow */
}

/* ---- the thread ------------------------------------------------------------------------------ */

static bool handed_take(struct lane *l, struct handed *out)
{
	bool some;

	pthread_mutex_lock(&l->lock);
	some = l->handed_n > 0;
	if (some)
		*out = l->handed[--l->handed_n];
	pthread_mutex_unlock(&l->lock);
	return some;
}

static void handed_add(struct lane *l)
{
	struct handed h;

	while (handed_take(l, &h)) {
		if (MHD_add_connection(l->daemon, h.fd, (struct sockaddr *)&h.from, h.len) != MHD_YES)
			fw_debug("new connection closed: %s", strerror(errno));
	}
}

static void *run(void *ctx)
{
	struct lane *l = ctx;
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
			atomic_exchange(&l->woken, false); /* from now on wake() writes again */
			handed_add(l);
		}
		(void)MHD_run(l->daemon);
	}
	return NULL;
}

/* ---- other threads --------------------------------------------------------------------------- */

bool lane_has_room(struct lane *l)
{
	bool room;

	pthread_mutex_lock(&l->lock);
	room = l->handed_n < HANDED_MAX;
	pthread_mutex_unlock(&l->lock);
	return room;
}

void lane_hand(struct lane *l, int fd, const struct sockaddr_storage *from, socklen_t len)
{
	pthread_mutex_lock(&l->lock);
	l->handed[l->handed_n++] = (struct handed){*from, len, fd};
	pthread_mutex_unlock(&l->lock);
	wake(l);
}

void lane_resume(struct lane *l, struct MHD_Connection *conn)
{
	MHD_resume_connection(conn);
	wake(l);
}

int lane_open(struct MHD_Daemon *daemon, struct lane **out, struct fw_err *err)
{
	const union MHD_DaemonInfo *i = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD);
	struct lane *l = calloc(1, sizeof(*l));
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
	rc = l->epoll_fd < 0 || l->wake_fd < 0 ? errno : pthread_create(&l->thread, NULL, run, l);
	if (rc) {
		lane_close(l);
		return fw_err_set(err, FW_EIO, "cannot start a server thread: %s", strerror(rc));
	}
	l->runs = true;
	*out = l;
	return 0;
}

void lane_close(struct lane *l)
{
	if (!l)
		return;
	if (l->runs) {
		atomic_store(&l->stop, true);
		wake(l);
		pthread_join(l->thread, NULL);
	}
	for (size_t i = 0; i < l->handed_n; i++)
		close(l->handed[i].fd);
	MHD_stop_daemon(l->daemon);
	if (l->wake_fd >= 0)
		close(l->wake_fd);
	pthread_mutex_destroy(&l->lock);
	free(l);
}
