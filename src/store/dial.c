/* SPDX-License-Identifier: ISC */
#include "store/dial.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"

int store_dial_broke(const char *where, const char *what, struct fw_err *err)
{
	return FW_ERR(
		err, FW_EIO, "%s: %s: is the server running, and is it reachable from this machine?", where, what);
}

int store_dial_wait(const struct store_dial *d, int fd, short events, const char *what, struct fw_err *err)
{
	for (;;) {
		struct pollfd p = {.fd = fd, .events = events};
		int64_t left = d->deadline_ms - fw_mono_ms();
		int n = poll(&p, 1, (int)FW_MAX(left, 0));

		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return store_dial_broke(d->where, strerror(errno), err);
		if (n == 0)
			return FW_ERR(err, FW_EIO, "%s: no answer in time (%s): check the server's load%s", d->where,
				what, d->remedy ? d->remedy : "");
	}
}

static void dial_set_options(int fd)
{
	int on = 1, idle = 30, interval = 10, tries = 3;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &tries, sizeof(tries));
}

static int dial_connect(
	const struct store_dial *d, int fd, const struct sockaddr *sa, socklen_t len, struct fw_err *err)
{
	int code = 0, rc;
	socklen_t code_len = sizeof(code);

	if (sa->sa_family != AF_UNIX)
		dial_set_options(fd);
	if (connect(fd, sa, len) == 0)
		return 0;
	if (errno != EINPROGRESS)
		return store_dial_broke(d->where, strerror(errno), err);
	rc = store_dial_wait(d, fd, POLLOUT, "connecting", err);
	if (!rc && (getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &code_len) || code))
		rc = store_dial_broke(d->where, strerror(code), err);
	return rc;
}

int store_dial_address(
	const struct store_dial *d, const struct sockaddr *sa, socklen_t len, int *fd, struct fw_err *err)
{
	const char *why = d->refuses && sa->sa_family != AF_UNIX ? d->refuses(d->ctx, sa) : NULL;
	int rc;

	*fd = -1;
	if (why)
		return FW_ERR(err, FW_EINVAL, "%s: its address is forbidden (%s): see allow_networks and deny_networks",
			d->where, why);
	*fd = socket(sa->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (*fd < 0)
		return store_dial_broke(d->where, strerror(errno), err);
	rc = dial_connect(d, *fd, sa, len, err);
	if (rc) {
		close(*fd);
		*fd = -1;
	}
	return rc;
}

int store_dial_host(const struct store_dial *d, const char *host, int port, int *fd, struct fw_err *err)
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *list = NULL;
	char service[16];
	int rc;

	*fd = -1;
	if (!fw_snprintf(service, sizeof(service), "%d", port))
		return FW_ERR(err, FW_EINVAL, "%s: invalid port", d->where);
	rc = getaddrinfo(host, service, &hints, &list);
	if (rc)
		return FW_ERR(err, FW_EIO, "%s: %s: check the host name", d->where, gai_strerror(rc));
	rc = FW_EIO;
	for (const struct addrinfo *ai = list; ai && rc; ai = ai->ai_next)
		rc = store_dial_address(d, ai->ai_addr, ai->ai_addrlen, fd, err);
	freeaddrinfo(list);
	return rc;
}
