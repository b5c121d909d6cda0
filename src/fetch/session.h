/* SPDX-License-Identifier: ISC */
/*
 * TLS sessions of servers that were met before: resuming one costs half the work of a new handshake, on both sides. libcurl 7.88
 * keeps five per handle or eight per share, with all certificates; this cache is the fetcher's, holds each as the few KB of its
 * serial form, and gives each ticket out once (RFC 8446 appendix C.4).
 */
#ifndef FW_FETCH_SESSION_H
#define FW_FETCH_SESSION_H

#include <stdint.h>

#include "feedwheel/types.h"

struct fw_sessions;

FW_MUST_CHECK int fw_sessions_create(struct fw_sessions **out);
void fw_sessions_destroy(struct fw_sessions *s); /* after all connections are closed; NULL is fine */
/* Hook into ssl_ctx (SSL_CTX *), which serves one connection, to host:port. Errors: FW_ENOMEM, nothing is hooked. */
FW_MUST_CHECK int fw_sessions_hook(struct fw_sessions *s, void *ssl_ctx, const char *host, int port);

#endif
