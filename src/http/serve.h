/* SPDX-License-Identifier: ISC */
/*
 * The HTTP server: REST API, pushes, stream, metrics and hubs' callbacks on one store. This is what
 * the binary sees of src/http/. In a build without libmicrohttpd (none.c) the calls fail with
 * FW_EUNSUP.
 */
#ifndef FW_HTTP_SERVE_H
#define FW_HTTP_SERVE_H

#include "api/meter.h"
#include "feedwheel/ingest.h"

/* Name and version of the HTTP library; NULL: this build has no server. */
const char *fw_serve_library(void);
/*
 * Open a socket that listens at the setting listen; *fd is the caller's. Errors: FW_EINVAL with
 * reason and remedy.
 */
FW_MUST_CHECK int fw_serve_listen(const struct fw_config *c, int *fd, struct fw_err *err);
/* Close it, and remove a Unix socket from the file system. */
void fw_serve_unlisten(const struct fw_config *c, int fd);
/*
 * Serve on fd until SIGTERM, SIGINT or SIGQUIT (which it blocks and reads), or until parent_fd (-1:
 * none) is closed at the other end. Then drain: nothing more is accepted, and the accepted rows are
 * stored. fd stays open: further connections wait in its queue for the next server. meter: the
 * counters for /metrics. Errors: FW_EINVAL configuration; FW_EIO threads, or rows that were not
 * stored within drain_timeout_ms.
 */
FW_MUST_CHECK int fw_serve(
	const struct fw_config *c, struct fw_meter *meter, int fd, int parent_fd, struct fw_err *err);

/*
 * The server's checks for `feedwheel doctor`: certificate, access log and folder of the write-ahead
 * log, where they are set. Changes nothing. Returns the worst level, as fw_doctor() does.
 */
int fw_serve_check(const struct fw_config *c, fw_doctor_cb *cb, void *ctx);

#endif
