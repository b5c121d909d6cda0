/* SPDX-License-Identifier: ISC */
/*
 * Telling a service manager how a service goes: datagrams of NAME=value lines to the socket that $NOTIFY_SOCKET names.
 *
 * The protocol is a stable, documented interface (sd_notify(3), "Notes" and "Description"), and its sending side is what stands here.
 * libsystemd has it too, but would bring liblzma, libgcrypt and others into every process that reads bytes from outside.
 */
#ifndef FW_ENGINE_NOTIFY_H
#define FW_ENGINE_NOTIFY_H

#include <sys/socket.h>
#include <sys/un.h>

#include "feedwheel/types.h"

struct fw_notify {
	int fd;                  /* -1: nobody wants to know */
	struct sockaddr_un to;
	socklen_t to_len;
	int64_t watchdog_ms;     /* WATCHDOG=1 is missed after this time; 0: never */
	bool failed;             /* that it cannot be sent was said */
};

/* From the environment, which stays as it is. An address that is none of ours is a warning. */
void fw_notify_open(struct fw_notify *n);
/* One datagram, such as "READY=1\nSTATUS=up". It never waits. False: it was not sent; the first time, but for a full queue, is a warning. */
FW_PRINTF(2, 3) bool fw_notify(struct fw_notify *n, const char *fmt, ...);
void fw_notify_close(struct fw_notify *n);
/* What open() read is for this process only: its children are to know nothing of it. Single-threaded callers. */
void fw_notify_hide(void);

#endif
