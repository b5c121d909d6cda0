/* SPDX-License-Identifier: ISC */
/*
 * A serving thread: it runs a daemon of libmicrohttpd, and is the only one that touches it.
 *
 * libmicrohttpd could have threads of its own. But they take 128 events at a time and, when there were
 * just as many, wait for the next one before they serve these (0.9.75, 1.0.10): so many requests would
 * hang until somebody else comes.
 */
#ifndef FW_HTTP_LANE_H
#define FW_HTTP_LANE_H

#include <microhttpd.h>
#include <sys/socket.h>

#include "feedwheel/types.h"

struct lane;

/*
 * daemon: with MHD_USE_EPOLL and no thread; the lane's from now on, also when it fails.
 * Errors: FW_ENOMEM; FW_EIO no thread or file descriptor.
 */
FW_MUST_CHECK int lane_open(struct MHD_Daemon *daemon, struct lane **out, struct fw_err *err);
/* Its connections are cut off. Nobody calls it any more. NULL is fine. */
void lane_close(struct lane *l);

/* A connection, from one thread only, and when there is room. fd becomes the lane's; it may close it at once. */
bool lane_has_room(struct lane *l);
void lane_hand(struct lane *l, int fd, const struct sockaddr_storage *from, socklen_t len);

/* Of a connection of this lane that was suspended. Any thread. */
void lane_resume(struct lane *l, struct MHD_Connection *conn);

#endif
