/* SPDX-License-Identifier: ISC */
/*
 * A cache of TLS sessions: resuming one costs half of a new handshake, on both sides. libcurl 7.88
 * keeps five sessions per handle or eight per share, each with all certificates. This cache belongs
 * to the fetcher, stores each session in its serial form (a few KB), and uses each ticket once (RFC
 * 8446 appendix C.4).
 */
#ifndef FW_FETCH_SESSION_H
#define FW_FETCH_SESSION_H

#include <stdint.h>

#include "feedwheel/types.h"

struct fw_sessions;

FW_MUST_CHECK int fw_sessions_create(struct fw_sessions **out);
/* after all connections are closed; NULL is allowed */
void fw_sessions_destroy(struct fw_sessions *s);
/*
 * Use the cache for ssl_ctx (SSL_CTX *), which serves one connection to host:port. Errors:
 * FW_ENOMEM; then it is not used.
 */
FW_MUST_CHECK int fw_sessions_hook(struct fw_sessions *s, void *ssl_ctx, const char *host, int port);

#endif
