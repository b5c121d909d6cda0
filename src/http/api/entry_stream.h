/* SPDX-License-Identifier: ISC */
/*
 * GET /v1/stream: new entries as they are stored, as Server-Sent Events, for up to 10,000 readers.
 * One thread follows the store, while there is a reader, and wakes the readers' connections.
 */
#ifndef FW_HTTP_API_ENTRY_STREAM_H
#define FW_HTTP_API_ENTRY_STREAM_H

#include "feedwheel/engine.h"

struct auth;
struct pool;
struct stream;

/* suspended_n: the server's count of suspended connections. Errors: FW_ENOMEM; FW_EIO no thread. */
FW_MUST_CHECK int stream_open(const struct fw_config *c, struct pool *pool, struct auth *auth,
	_Atomic int64_t *suspended_n, struct stream **out, struct fw_err *err);
/* Ends all streams. Before the pool is closed. NULL is fine. */
void stream_close(struct stream *s);
void stream_destroy(struct stream *s); /* after the last connection is closed. NULL is fine */

#endif
