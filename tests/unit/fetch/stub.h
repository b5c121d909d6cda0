/* SPDX-License-Identifier: ISC */
/*
 * A small origin on the test's own loop. One handler decides for each request which bytes are sent
 * and what the connection does next. It records each request, so that tests can check it.
 */
#ifndef FW_TEST_STUB_H
#define FW_TEST_STUB_H

#include <uv.h>

#include "base/buf.h"

#define STUB_REQUESTS 64

struct stub;
struct stub_conn;
typedef void stub_handler(struct stub_conn *c, const char *path, const char *request);

struct stub {
	uv_loop_t *loop;
	uv_tcp_t tcp;
	stub_handler *handler;
	void *ctx;
	int port;
	uint32_t conn_n; /* accepted connections */
	uint32_t request_n;
	char *request[STUB_REQUESTS]; /* head and body of each, unchanged */
	struct stub_conn *conns;
};

void stub_open(struct stub *s, uv_loop_t *loop, const char *ip, stub_handler *handler, void *ctx);
void stub_close(struct stub *s); /* run the loop afterwards, then stub_free() */
void stub_free(struct stub *s);

struct stub *stub_of(struct stub_conn *c);
void stub_send(struct stub_conn *c, const void *p, size_t n);
void stub_puts(struct stub_conn *c, const char *s);
/*
 * A whole response with Content-Length. headers: lines that end with \r
 * , or "".
 */
void stub_answer(struct stub_conn *c, int status, const char *headers, const void *body, size_t n);
void stub_end(struct stub_conn *c);   /* closes once all is sent */
void stub_reset(struct stub_conn *c); /* RST, at once */
/*
 * Sends p[0..n) again and again, every gap_ms (0: as fast as it is taken), until the client closes.
 */
void stub_repeat(struct stub_conn *c, const void *p, size_t n, uint64_t gap_ms);

#endif
