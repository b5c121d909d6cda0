/* SPDX-License-Identifier: ISC */
/* New entries, as they are stored, to any number of readers (Server-Sent Events). */
#ifndef FW_HTTP_STREAM_H
#define FW_HTTP_STREAM_H

#include "feedwheel/engine.h"

struct auth;
struct desk;
struct stream;

/* suspended_n: counts connections that sleep. Errors: FW_ENOMEM; FW_EIO no thread. */
FW_MUST_CHECK int stream_open(const struct fw_config *c, struct desk *desk, struct auth *auth, _Atomic int64_t *suspended_n, struct stream **out, struct fw_err *err);
/* Readers are sent to their end. Before the desk is closed. NULL is fine. */
void stream_close(struct stream *s);
void stream_destroy(struct stream *s); /* closed, and no reader is left */
size_t stream_readers(struct stream *s);

#endif
