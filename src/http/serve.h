/* SPDX-License-Identifier: ISC */
/* The front door: the HTTP server in front of a store. In a build without it what can fail is FW_EUNSUP. */
#ifndef FW_HTTP_SERVE_H
#define FW_HTTP_SERVE_H

#include "api/meter.h"
#include "feedwheel/ingest.h"

/* The library behind it, with its version; NULL: this build has no server. */
const char *fw_serve_library(void);
/* A socket that listens where the setting says; *fd is the caller's. Errors: FW_EINVAL, with the reason. */
FW_MUST_CHECK int fw_serve_listen(const struct fw_config *c, int *fd, struct fw_err *err);
/* Closes it, and takes a socket's name out of the file system. */
void fw_serve_unlisten(const struct fw_config *c, int fd);
/*
 * Serve on that socket, and show what meter counts, until SIGTERM, SIGINT or SIGQUIT (they belong to it meanwhile), or until parent_fd (-1: none) is at its end; then
 * nothing new is taken, what was accepted is stored. The socket stays open: who connects meanwhile waits for the next server.
 * Errors: FW_EINVAL configuration; FW_EIO threads, or rows that the store did not take in time.
 */
FW_MUST_CHECK int fw_serve(const struct fw_config *c, struct fw_meter *meter, int fd, int parent_fd, struct fw_err *err);

/* For `doctor`: certificate, access log and spill folder, where they are set; nothing is changed. Returns the worst, as fw_doctor(). */
int fw_serve_check(const struct fw_config *c, fw_doctor_cb *cb, void *ctx);

#endif
