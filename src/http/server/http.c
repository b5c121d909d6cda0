/* SPDX-License-Identifier: ISC */
/*
 * Leads a request through its state machine, from the first byte to its route:
 *
 *	on_target()    the request line is there: checked and noted
 *	on_request()   the head is there: route, authorization, limits of the body
 *	on_request()   parts of the body: collected
 *	on_request()   the body is complete: run the route
 *	on_request()   the connection was resumed: queue the response
 *	request_finish() the response is sent, or the connection is closed
 *
 * All of these are libmicrohttpd's callbacks in the connection's server thread. enum request_state
 * in http.h has the states.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "http/server/http.h"

#define SPARE_MAX 256 /* length of a thread's free list of requests */
#define SPARE_BODY_BYTES 16384
#define HEADER_MAX_BYTES 16384 /* memory of a connection, for request line and headers */
#define TLS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

static struct conn *conn_get(struct MHD_Connection *conn)
{
	const union MHD_ConnectionInfo *i = MHD_get_connection_info(conn, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return i ? i->socket_context : NULL;
}

static struct request *request_begin(
	struct http_thread *l, struct MHD_Connection *conn, const char *path, const char *method)
{
	struct request *r = l->spare;

	if (r) {
		l->spare = r->next;
		l->spare_n--;
	} else {
		r = calloc(1, sizeof(*r));
		if (!r)
			return NULL;
	}
	r->thread = l;
	r->conn = conn;
	r->state = REQUEST_BODY;
	r->route = NULL;
	r->id = 0;
	r->token[0] = r->name[0] = 0;
	r->waits = NULL;
	r->reserved_bytes = 0;
	r->rest = FW_STR_NONE;
	r->head = method[0] == 'H';
	r->websub = (struct websub_push){0};
	r->allow[0] = 0;
	r->challenge = NULL;
	r->retry_after_s = 0;
	r->response = NULL;
	r->dropped = 0;
	r->body_bytes = 0;
	r->refused = 0;
	r->endless = false;
	r->bound = NULL;
	r->pass.bound = NULL;
	r->last = false;
	r->c = conn_get(conn);
	fw_buf_reset(&r->body);
	r->number = atomic_fetch_add_explicit(&l->request_n, 1, memory_order_relaxed);
	http_id_begin(r);
	http_log_begin(r, path, method);
	return r;
}

static void request_free(struct request *r)
{
	fw_buf_finish(&r->body);
	free(r);
}

static void request_finish(void *ctx, struct MHD_Connection *conn, void **at, enum MHD_RequestTerminationCode why)
{
	struct request *r = *at;
	struct http_thread *l;

	(void)ctx;
	(void)conn;
	(void)why;
	if (!r)
		return;
	*at = NULL;
	http_log_end(r);
	http_body_finish(r);
	conn_enter(r->c, CONN_IDLE);
	l = r->thread;
	http_entries_push_free(r);
	http_websub_free(r);
	http_change_wait_end(r);
	http_gate_forget(r);
	http_discovery_forget(r);
	if (r->reserved_bytes)
		(void)http_entries_reserve(l->h, &r->reserved_bytes, 0);
	if (r->response)
		MHD_destroy_response(r->response);
	r->response = NULL;
	free(r->bound);
	r->bound = NULL;
	if (l->spare_n >= SPARE_MAX || r->body.cap > SPARE_BODY_BYTES) {
		request_free(r);
		return;
	}
	r->next = l->spare;
	l->spare = r;
	l->spare_n++;
}

static void on_connection(void *ctx, struct MHD_Connection *conn, void **at, enum MHD_ConnectionNotificationCode what)
{
	const struct http_thread *l = ctx;
	struct http *h = l->h;
	const union MHD_ConnectionInfo *i;
	struct conn *c = *at;
	size_t slot;

	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (c)
			http_accept_closed(h->accept, c->slot);
		conn_remove(c);
		*at = NULL;
		return;
	}
	i = MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	slot = http_accept_opened(h->accept, i ? i->client_addr : NULL);
	i = MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CONNECTION_FD);
	*at = c = i ? conn_add(h->conns, (size_t)(l - h->thread), i->connect_fd) : NULL;
	if (c) {
		c->slot = slot;
		return;
	}
	http_accept_closed(h->accept, slot);
	if (i)
		shutdown(i->connect_fd, SHUT_RDWR); /* no memory; without a struct conn it would have no timeouts */
}

bool http_may_wait(const struct http *h)
{
	size_t max = conns_max(h->conns);

	return (size_t)atomic_load_explicit(&h->suspended_n, memory_order_relaxed) < max - max / 8;
}

/* The body is complete. */
static enum MHD_Result request_dispatch(struct request *r)
{
	enum MHD_Result ok = http_body_ready(r);

	if (!ok || r->state != REQUEST_BODY)
		return ok;
	if (!conn_enter(r->c, CONN_WORK))
		return MHD_NO;
	return r->route->pool ? http_pool_run(r) : r->route->run(r);
}

/*
 * Has the request only a head? Then respond at the second call of on_request(): after a response at
 * the first call libmicrohttpd takes the request for one with an unread body, and closes the
 * connection.
 */
static bool head_only(const struct request *r, const char *method)
{
	return (method[0] == 'G' || method[0] == 'H' || method[0] == 'D' || method[0] == 'O') &&
		r->content_length < 0 && !r->chunked;
}

/* The head is complete. */
static enum MHD_Result request_head(struct request *r, const char *path, const char *method)
{
	enum MHD_Result ok = http_route(r, path, method);

	if (ok && r->state == REQUEST_BODY)
		ok = http_auth(r);
	return ok && r->state == REQUEST_BODY ? http_body_begin(r) : ok;
}

static void *on_target(void *ctx, const char *target, struct MHD_Connection *conn)
{
	(void)ctx;
	http_target_check(conn_get(conn), target);
	return NULL; /* no request yet */
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *conn, const char *path, const char *method,
	const char *version, const char *data, size_t *len, void **at)
{
	struct request *r = *at;

	if (!r) {
		const char *why;
		bool large;

		r = *at = request_begin(ctx, conn, path, method);
		if (!r || !r->c || !conn_enter(r->c, CONN_BODY))
			return MHD_NO;
		why = http_head_error(r, path, method, version, &large);
		if (why)
			return http_head_refuse(r, path, why, large);
		return head_only(r, method) ? MHD_YES : request_head(r, path, method);
	}
	if (*len)
		return http_body_add(r, data, len);
	if (!r->route && r->state == REQUEST_BODY) {
		enum MHD_Result ok = request_head(r, path, method);

		if (!ok || r->state == REQUEST_RESPONDED)
			return ok;
	}
	switch (r->state) {
	case REQUEST_BODY:
		return request_dispatch(r);
	case REQUEST_REFUSED:
		return http_body_refused(r);
	case REQUEST_WAITS:
		return http_push_resumed(r);
	case REQUEST_POOL_DONE:
		return http_pool_resumed(r);
	case REQUEST_IN_POOL:
	case REQUEST_RESPONDED:
		break;
	}
	return MHD_YES;
}

/* ---- the thread ------------------------------------------------------------------------------ */

/*
 * Log libmicrohttpd's messages: as errors during the start, which they explain; later as debug,
 * because any client can cause them.
 */
FW_PRINTF(2, 0) static void on_library_message(void *ctx, const char *fmt, va_list ap)
{
	const struct http *h = ctx;
	enum fw_log_level level = atomic_load_explicit(&h->started, memory_order_relaxed) ? FW_LOG_DEBUG : FW_LOG_ERROR;

	if (fw_log_on(level)) {
		char words[300];

		if (vsnprintf(words, sizeof(words), fmt, ap) < 0)
			return;
		words[strcspn(words, "\n")] = '\0';
		fw_log(level, "libmicrohttpd: %s", words);
	}
}

int http_thread_start(struct http_thread *l, struct fw_err *err)
{
	const struct http *h = l->h;
	struct MHD_OptionItem tls[] = {
		{MHD_OPTION_HTTPS_MEM_KEY, 0, h->tls.key},
		{MHD_OPTION_HTTPS_MEM_CERT, 0, h->tls.cert},
		{MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)TLS_PRIORITIES},
		{MHD_OPTION_END, 0, NULL},
	};
	/* no listening socket: accept.h says why */
	unsigned flags = MHD_USE_EPOLL | MHD_USE_ERROR_LOG | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET;
	struct MHD_Daemon *daemon = MHD_start_daemon(flags | (h->tls.key ? MHD_USE_TLS : 0), 0, NULL, NULL, on_request,
		l, MHD_OPTION_EXTERNAL_LOGGER, on_library_message, h, MHD_OPTION_NOTIFY_COMPLETED, request_finish, NULL,
		/* no limit of connections here: accept.c and conns.c have it */
		MHD_OPTION_NOTIFY_CONNECTION, on_connection, l, MHD_OPTION_CONNECTION_LIMIT, UINT_MAX,
		MHD_OPTION_URI_LOG_CALLBACK, on_target, h, MHD_OPTION_STRICT_FOR_CLIENT, (int)http_library_is_strict(),
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADER_MAX_BYTES, MHD_OPTION_ARRAY,
		h->tls.key ? tls : &tls[FW_N(tls) - 1], MHD_OPTION_END);

	if (!daemon)
		return h->tls.key ?
			fw_err_set(err, FW_EINVAL,
				"cannot start the server with tls_cert and tls_key (see the errors above)") :
			fw_err_set(err, FW_EIO, "cannot start the server: %s", strerror(errno));
	return server_thread_open(daemon, &l->loop, err);
}

void http_thread_free(struct http_thread *l)
{
	http_canned_free(l);
	auth_view_finish(&l->auth);
	while (l->spare) {
		struct request *r = l->spare;

		l->spare = r->next;
		request_free(r);
	}
}
