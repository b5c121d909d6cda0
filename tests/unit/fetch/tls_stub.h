/* SPDX-License-Identifier: ISC */
/*
 * A TLS origin in threads of its own: a new certificate authority, one certificate for 127.0.0.1
 * and feeds.example. It speaks HTTP/1.1 and records the offered ALPN protocols.
 */
#ifndef FW_TEST_TLS_STUB_H
#define FW_TEST_TLS_STUB_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "feedwheel/types.h"

struct tls_stub {
	void *ctx; /* SSL_CTX */
	int fd, port;
	pthread_t thread;
	atomic_int conn_n, request_n, resumed_n, busy_n;
	atomic_bool offered_h2;
	char *ca_pem;
	bool h2;
};

enum { TLS_STUB_EXPIRED = 1, TLS_STUB_H2 = 2 /* speaks HTTP/2: /feed, /large, /moved (to /large), /breaks */ };
/*
 * Paths: /feed, /close (no length, no close_notify), /to-http?PORT (redirect to
 * http://127.0.0.1:PORT/feed), /last (clean close).
 */
void tls_open(struct tls_stub *t, int flags);
void tls_close(struct tls_stub *t);
void h2_talk(void *ssl); /* h2_stub.c */

#endif
