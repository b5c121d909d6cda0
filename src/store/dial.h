/* SPDX-License-Identifier: ISC */
/* Connect to a server whose address is checked: for drivers, and for receivers of orders. */
#ifndef FW_STORE_DIAL_H
#define FW_STORE_DIAL_H

#include <sys/socket.h>

#include "feedwheel/types.h"

struct store_dial {
	const char *where;   /* the server, for messages */
	const char *remedy;  /* what else helps when it is too slow: the end of a message, ", or ..."; NULL: nothing */
	int64_t deadline_ms; /* monotonic; it does not limit the name lookup */
	/* why an address must not be connected to, or NULL; NULL: all may be */
	const char *(*refuses)(const void *ctx, const struct sockaddr *sa);
	const void *ctx;
};

/*
 * Connect to an address, or to the first address of a host that accepts. *fd: a socket that does
 * not block, or -1. Blocks; any thread. FW_EIO; FW_EINVAL: the address is forbidden.
 */
FW_MUST_CHECK int store_dial_address(
	const struct store_dial *d, const struct sockaddr *sa, socklen_t len, int *fd, struct fw_err *err);
FW_MUST_CHECK int store_dial_host(const struct store_dial *d, const char *host, int port, int *fd, struct fw_err *err);
/* Wait until a socket is ready for these events of poll(). FW_EIO: the deadline passed. */
FW_MUST_CHECK int store_dial_wait(
	const struct store_dial *d, int fd, short events, const char *what, struct fw_err *err);
/* A connection broke: FW_EIO, with the remedy. */
int store_dial_broke(const char *where, const char *what, struct fw_err *err);

#endif
