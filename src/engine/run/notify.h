/* SPDX-License-Identifier: ISC */
/*
 * Status messages to a service manager: datagrams of NAME=value lines to the socket that
 * $NOTIFY_SOCKET names.
 *
 * The protocol is a stable, documented interface (sd_notify(3), "Notes" and "Description").
 * libsystemd has it too, but would load liblzma, libgcrypt and others into every process that reads
 * input from outside.
 */
#ifndef FW_ENGINE_NOTIFY_H
#define FW_ENGINE_NOTIFY_H

#include <sys/socket.h>
#include <sys/un.h>

#include "feedwheel/types.h"

struct fw_notify {
	int fd; /* -1: no service manager */
	struct sockaddr_un to;
	socklen_t to_len;
	int64_t watchdog_ms; /* the manager wants WATCHDOG=1 within this time; 0: no watchdog */
	bool failed;         /* a failure was logged */
};

/* Read the environment, without changing it. Warns about an unsupported address. */
void fw_notify_open(struct fw_notify *n);
/*
 * Send one datagram, such as "READY=1\nSTATUS=up". Never blocks. False: not sent; the first failure
 * other than a full queue is logged.
 */
FW_PRINTF(2, 3) bool fw_notify(struct fw_notify *n, const char *fmt, ...);
void fw_notify_close(struct fw_notify *n);
/*
 * Remove the variables that open() read, so that child processes do not see them. Single-threaded
 * callers.
 */
void fw_notify_hide(void);

#endif
