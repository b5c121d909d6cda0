/* SPDX-License-Identifier: ISC */
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/run/notify.h"
#include "feedwheel/engine.h"

#define MESSAGE_MAX 1000

/* "/path" or "@abstract"; other address families are for virtual machines. */
static bool notify_address(struct fw_notify *n, const char *text)
{
	size_t len = strlen(text);

	if ((text[0] != '/' && text[0] != '@') || len < 2 || len >= sizeof(n->to.sun_path))
		return false;
	n->to = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(n->to.sun_path, text, len);
	n->to_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
	if (text[0] == '@')
		n->to.sun_path[0] = 0;
	else
		n->to_len++; /* the terminating NUL */
	return true;
}

/* The variable is in microseconds. WATCHDOG_PID, if set, names the process that it is for. */
static int64_t notify_watchdog_ms(void)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	int64_t us = 0, who = getpid();

	if (!usec || !fw_str_int(fw_str(usec), &us) || us <= 0 || (pid && !fw_str_int(fw_str(pid), &who)) ||
		who != getpid())
		return 0;
	return FW_MAX(us / 1000, 1);
}

void fw_notify_open(struct fw_notify *n)
{
	const char *text = getenv("NOTIFY_SOCKET");

	*n = (struct fw_notify){.fd = -1};
	if (!text || !text[0])
		return;
	if (!notify_address(n, text)) {
		fw_warn("NOTIFY_SOCKET=%s is not the name of a Unix socket: no messages to the service manager", text);
		return;
	}
	n->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (n->fd < 0)
		fw_warn("NOTIFY_SOCKET: %s: no messages to the service manager", strerror(errno));
	else
		n->watchdog_ms = notify_watchdog_ms();
}

bool fw_notify(struct fw_notify *n, const char *fmt, ...)
{
	struct fw_buf b = FW_BUF_INIT(MESSAGE_MAX);
	va_list ap;
	bool sent;

	if (n->fd < 0)
		return false;
	va_start(ap, fmt);
	fw_buf_vaddf(&b, fmt, ap);
	va_end(ap);
	/* by name each time: a restarted manager has a new socket there */
	sent = sendto(n->fd, b.p ? b.p : "", b.len, MSG_NOSIGNAL, (const struct sockaddr *)&n->to, n->to_len) >= 0;
	if (!sent && errno != EAGAIN && !n->failed) {
		n->failed = true;
		fw_warn("no messages to the service manager: NOTIFY_SOCKET: %s", strerror(errno));
	}
	fw_buf_finish(&b);
	return sent;
}

void fw_notify_close(struct fw_notify *n)
{
	if (n->fd >= 0)
		close(n->fd);
	n->fd = -1;
}

void fw_run_notify_opening(void)
{
	struct fw_notify n;

	fw_notify_open(&n);
	(void)fw_notify(&n, "STATUS=opening the store\nEXTEND_TIMEOUT_USEC=%lld", (long long)FW_HOUR_MS * 1000);
	fw_notify_close(&n);
}

void fw_notify_hide(void)
{
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
}
