/* SPDX-License-Identifier: ISC */
/*
 * A server thread: an event loop that runs one libmicrohttpd daemon. No other thread touches the
 * daemon. New connections come in by a queue of up to 64, from the accept thread, and are opened in
 * that order; an eventfd wakes the loop.
 *
 * libmicrohttpd's own threads are not used. They take up to 128 events at once and, when there were
 * exactly 128, wait for another event before they serve them (0.9.75, 1.0.10): 128 requests would
 * hang until the next client comes.
 */
#ifndef FW_HTTP_SERVER_SERVER_THREAD_H
#define FW_HTTP_SERVER_SERVER_THREAD_H

#include <microhttpd.h>
#include <sys/socket.h>

#include "feedwheel/types.h"

struct server_thread;

/*
 * Start a thread for daemon, which has MHD_USE_EPOLL and no thread. Takes daemon over, in error
 * too. Errors: FW_ENOMEM; FW_EIO no thread or file descriptor.
 */
FW_MUST_CHECK int server_thread_open(struct MHD_Daemon *daemon, struct server_thread **out, struct fw_err *err);
/* Closes its connections. No other call may follow or run. NULL is fine. */
void server_thread_close(struct server_thread *l);

/*
 * Queue an accepted connection, after server_thread_has_room() has returned true; only for the
 * accept thread. Takes fd over.
 */
bool server_thread_has_room(struct server_thread *l);
void server_thread_add(struct server_thread *l, int fd, const struct sockaddr_storage *from, socklen_t len);

/* Resume a suspended connection of this thread. Any thread. */
void server_thread_resume(struct server_thread *l, struct MHD_Connection *conn);

#endif
