/* SPDX-License-Identifier: ISC */
/*
 * One connection for each batch. The socket is ours, so that its address is checked; librabbitmq
 * speaks AMQP on it. The broker confirms messages in any order (publisher confirms), and returns
 * those that it cannot route before it confirms them, because they are "mandatory".
 *
 * librabbitmq has time limits for what it reads, but not for what it sends. So messages are sent
 * here; what it sends itself fits in the socket's buffer.
 */
#include "engine/orders/exchange.h"

#if __has_include(<rabbitmq-c/amqp.h>) /* since 0.12 */
#include <rabbitmq-c/amqp.h>
#include <rabbitmq-c/tcp_socket.h>
#else
#include <amqp.h>
#include <amqp_tcp_socket.h>
#endif
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/order.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/orders/delivery_rules.h"
#include "store/dial.h"

#define CHANNEL 1
#define CLOSE_MS 1000
#define FRAME_MIN 4096         /* bytes of a frame that each broker takes (AMQP 0-9-1) */
#define FRAME_EXTRA 8          /* of them, around the payload */
#define SEND_BUFFER (64 << 10) /* small, so that what was sent is about what the broker has read */
#define PUBLISHING "publishing"
#define TEXT_MAX 160 /* bytes of a broker's words that are kept */

struct exchange {
	const struct exchange_batch *b;
	char where[200]; /* for messages */
	amqp_connection_state_t c;
	bool confirmed[FW_ORDER_BATCH_MAX];
	size_t confirmed_n;
};

const char *exchange_library(void)
{
	static char text[40];

	(void)fw_snprintf(text, sizeof(text), "librabbitmq %s", amqp_version());
	return text;
}

static amqp_bytes_t exchange_bytes(struct fw_str s)
{
	return (amqp_bytes_t){.len = s.len, .bytes = (void *)(uintptr_t)s.p};
}

static struct timeval exchange_time(int64_t ms)
{
	ms = FW_MAX(ms, 0);
	return (struct timeval){.tv_sec = (time_t)(ms / 1000), .tv_usec = (suseconds_t)(ms % 1000 * 1000)};
}

/* ---- errors ---------------------------------------------------------------------------------- */

static void exchange_name(struct exchange *x)
{
	struct fw_buf b = FW_BUF_INIT(0);
	bool is_v6 = fw_str_find(x->b->to.host, FW_STR(":")) != NULL;

	fw_log_escape(&b, fw_str_sub(x->b->to.host, 0, 60));
	(void)fw_snprintf(x->where, sizeof(x->where), is_v6 ? "amqp://[%.*s]:%d" : "amqp://%.*s:%d",
		FW_STR_ARG(fw_str_sub(fw_buf_str(&b), 0, 120)), x->b->to.port);
	fw_buf_finish(&b);
}

/* code: of librabbitmq. */
static int exchange_broke(const struct exchange *x, int code, const char *what, struct fw_err *err)
{
	char time[FW_RFC3339_MAX];

	switch (code) {
	case AMQP_STATUS_NO_MEMORY:
		return fw_no_memory(err);
	case AMQP_STATUS_TIMEOUT:
		return FW_ERR(err, FW_EIO, "%s: no answer within %s (%s): is it a broker, and how busy is it?",
			x->where, fw_duration_text(time, x->b->timeout_ms), what);
	case AMQP_STATUS_SOCKET_ERROR:
	case AMQP_STATUS_TCP_ERROR:
	case AMQP_STATUS_CONNECTION_CLOSED:
	case AMQP_STATUS_SOCKET_CLOSED:
		return FW_ERR(err, FW_EIO, "%s: the connection broke (%s)", x->where, what);
	default:
		return FW_ERR(err, FW_EIO, "%s: %s (%s): is it a broker for AMQP 0-9-1?", x->where,
			amqp_error_string2(code), what);
	}
}

static int exchange_refused(const struct exchange *x, int code, amqp_bytes_t text, const char *what, struct fw_err *err)
{
	struct fw_buf b = FW_BUF_INIT(0);

	fw_log_escape(&b, fw_str_sub((struct fw_str){text.bytes, text.len}, 0, TEXT_MAX));
	(void)fw_err_set(err, FW_EINVAL, "%s: the broker refuses (%s): %d %.*s", x->where, what, code,
		FW_STR_ARG(fw_buf_str(&b)));
	fw_buf_finish(&b);
	return FW_ERR_CODE(err);
}

static int exchange_closed(const struct exchange *x, const amqp_method_t *m, const char *what, struct fw_err *err)
{
	if (m->id == AMQP_CHANNEL_CLOSE_METHOD) {
		const amqp_channel_close_t *close = m->decoded;

		return exchange_refused(x, close->reply_code, close->reply_text, what, err);
	}
	if (m->id == AMQP_CONNECTION_CLOSE_METHOD) {
		const amqp_connection_close_t *close = m->decoded;

		return exchange_refused(x, close->reply_code, close->reply_text, what, err);
	}
	return exchange_broke(x, AMQP_STATUS_WRONG_METHOD, what, err);
}

static int exchange_reply(const struct exchange *x, amqp_rpc_reply_t r, const char *what, struct fw_err *err)
{
	switch (r.reply_type) {
	case AMQP_RESPONSE_NORMAL:
		return 0;
	case AMQP_RESPONSE_SERVER_EXCEPTION:
		return exchange_closed(x, &r.reply, what, err);
	default:
		return exchange_broke(x, r.library_error, what, err);
	}
}

/* ---- the connection -------------------------------------------------------------------------- */

static int exchange_connect(struct exchange *x, struct fw_err *err)
{
	const struct exchange_batch *b = x->b;
	struct store_dial d = {
		.where = x->where, .deadline_ms = fw_mono_ms() + b->timeout_ms, .refuses = b->refuses, .ctx = b->ctx};
	amqp_socket_t *socket;
	int buffer_bytes = SEND_BUFFER, fd, rc = store_dial_host(&d, b->to.host.p, b->to.port, &fd, err);

	if (rc)
		return rc;
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer_bytes, sizeof(buffer_bytes));
	socket = amqp_tcp_socket_new(x->c);
	if (!socket) {
		close(fd);
		return fw_no_memory(err);
	}
	amqp_tcp_socket_set_sockfd(socket, fd); /* its own from now on */
	return 0;
}

static int exchange_open(struct exchange *x, struct fw_err *err)
{
	const struct order_exchange *to = &x->b->to;
	struct timeval timeout = exchange_time(x->b->timeout_ms);
	amqp_rpc_reply_t r;
	int rc;

	x->c = amqp_new_connection();
	if (!x->c || amqp_set_handshake_timeout(x->c, &timeout) || amqp_set_rpc_timeout(x->c, &timeout))
		return fw_no_memory(err);
	rc = exchange_connect(x, err);
	if (rc)
		return rc;
	r = amqp_login(x->c, to->vhost.p, AMQP_DEFAULT_MAX_CHANNELS, AMQP_DEFAULT_FRAME_SIZE, 0, AMQP_SASL_METHOD_PLAIN,
		to->user.p, to->password.p);
	rc = exchange_reply(x, r, "login", err);
	if (rc)
		return rc;
	amqp_channel_open(x->c, CHANNEL);
	rc = exchange_reply(x, amqp_get_rpc_reply(x->c), "opening a channel", err);
	if (rc)
		return rc;
	amqp_confirm_select(x->c, CHANNEL);
	return exchange_reply(x, amqp_get_rpc_reply(x->c), "asking for confirmations", err);
}

/* The broker has confirmed all, so it does not matter how this ends. */
static void exchange_leave(struct exchange *x)
{
	struct timeval timeout = exchange_time(CLOSE_MS);

	(void)amqp_set_rpc_timeout(x->c, &timeout);
	(void)amqp_connection_close(x->c, AMQP_REPLY_SUCCESS);
}

/* ---- messages -------------------------------------------------------------------------------- */

static void frame_number(struct fw_buf *b, uint64_t n, int bytes)
{
	while (bytes--)
		fw_buf_addc(b, (char)(n >> 8 * bytes));
}

static void frame_begin(struct fw_buf *b, int kind, size_t len)
{
	frame_number(b, (uint64_t)kind, 1);
	frame_number(b, CHANNEL, 2);
	frame_number(b, len, 4);
}

/* len < 0: it could not be encoded. */
static void frame_end(struct fw_buf *b, const char *encoded, int len)
{
	if (len < 0)
		b->rc = FW_EINVAL;
	else
		fw_buf_add(b, encoded, (size_t)len);
	frame_number(b, AMQP_FRAME_END, 1);
}

static void frame_publish(struct fw_buf *b, const struct order_exchange *to)
{
	char encoded[FRAME_MIN];
	amqp_basic_publish_t m = {.exchange = exchange_bytes(to->exchange),
		.routing_key = exchange_bytes(to->routing_key),
		.mandatory = true};
	int len = amqp_encode_method(
		AMQP_BASIC_PUBLISH_METHOD, &m, (amqp_bytes_t){.len = sizeof(encoded), .bytes = encoded});

	frame_begin(b, AMQP_FRAME_METHOD, 4 + (size_t)FW_MAX(len, 0));
	frame_number(b, AMQP_BASIC_PUBLISH_METHOD, 4);
	frame_end(b, encoded, len);
}

static void frame_head(struct fw_buf *b, const struct exchange_batch *batch, const struct store_stream_row *row)
{
	char encoded[FRAME_MIN], id[DELIVERY_MESSAGE_ID_MAX + 24];
	amqp_basic_properties_t p = {
		._flags = AMQP_BASIC_CONTENT_TYPE_FLAG | AMQP_BASIC_CONTENT_ENCODING_FLAG |
			AMQP_BASIC_DELIVERY_MODE_FLAG | AMQP_BASIC_MESSAGE_ID_FLAG | AMQP_BASIC_TIMESTAMP_FLAG |
			AMQP_BASIC_TYPE_FLAG | AMQP_BASIC_APP_ID_FLAG,
		.content_type = exchange_bytes(FW_STR("application/json")),
		.content_encoding = exchange_bytes(FW_STR("utf-8")),
		.delivery_mode = AMQP_DELIVERY_PERSISTENT,
		.timestamp = (uint64_t)(batch->at_ms / 1000),
		.type = exchange_bytes(fw_str(row->type)),
		.app_id = exchange_bytes(FW_STR("feedwheel")),
	};
	int len;

	(void)fw_snprintf(id, sizeof(id), "%.*s.%lld", FW_STR_ARG(batch->message_id), (long long)row->id);
	p.message_id = exchange_bytes(fw_str(id));
	len = amqp_encode_properties(AMQP_BASIC_CLASS, &p, (amqp_bytes_t){.len = sizeof(encoded), .bytes = encoded});
	frame_begin(b, AMQP_FRAME_HEADER, 12 + (size_t)FW_MAX(len, 0));
	frame_number(b, AMQP_BASIC_CLASS, 2);
	frame_number(b, 0, 2);
	frame_number(b, row->text.len, 8);
	frame_end(b, encoded, len);
}

static void frames_add(struct fw_buf *b, const struct exchange *x, const struct store_stream_row *row)
{
	size_t max = (size_t)FW_MAX(amqp_get_frame_max(x->c), FRAME_MIN) - FRAME_EXTRA;

	frame_publish(b, &x->b->to);
	frame_head(b, x->b, row);
	for (size_t at = 0; at < row->text.len; at += max) {
		struct fw_str part = fw_str_sub(row->text, at, at + max);

		frame_begin(b, AMQP_FRAME_BODY, part.len);
		frame_end(b, part.p, (int)part.len);
	}
}

/* A broker that reads nothing for the timeout counts as dead. */
static int exchange_write(const struct exchange *x, struct fw_str all, struct fw_err *err)
{
	int fd = amqp_get_sockfd(x->c);

	while (all.len) {
		struct store_dial d = {.where = x->where, .deadline_ms = fw_mono_ms() + x->b->timeout_ms};
		ssize_t n = send(fd, all.p, all.len, MSG_NOSIGNAL);
		int rc = n < 0 && errno == EAGAIN ? store_dial_wait(&d, fd, POLLOUT, PUBLISHING, err) : 0;

		if (rc)
			return rc;
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return exchange_broke(x, AMQP_STATUS_SOCKET_ERROR, PUBLISHING, err);
		all = fw_str_sub(all, (size_t)FW_MAX(n, 0), all.len);
	}
	return 0;
}

static int exchange_send(const struct exchange *x, struct fw_err *err)
{
	struct fw_buf b = FW_BUF_INIT(0);
	int rc;

	for (size_t i = 0; i < x->b->n; i++)
		frames_add(&b, x, &x->b->row[i]);
	rc = b.rc ? fw_no_memory(err) : exchange_write(x, fw_buf_str(&b), err);
	fw_buf_finish(&b);
	return rc;
}

static void exchange_confirm(struct exchange *x, const amqp_basic_ack_t *ack)
{
	for (size_t i = 0; i < x->b->n; i++) {
		bool is_meant = ack->multiple ? !ack->delivery_tag || i < ack->delivery_tag :
						i + 1 == ack->delivery_tag;

		x->confirmed_n += is_meant && !x->confirmed[i];
		x->confirmed[i] = x->confirmed[i] || is_meant;
	}
}

static int exchange_returned(const struct exchange *x, const amqp_basic_return_t *r, struct fw_err *err)
{
	if (r->reply_code != AMQP_NO_ROUTE)
		return exchange_refused(x, r->reply_code, r->reply_text, "a message came back", err);
	return FW_ERR(err, FW_EINVAL,
		"%s: not routed: no queue is bound to the exchange \"%.*s\" for the routing key \"%.*s\"", x->where,
		FW_STR_ARG(fw_str_sub(x->b->to.exchange, 0, 60)), FW_STR_ARG(fw_str_sub(x->b->to.routing_key, 0, 60)));
}

static int exchange_take(struct exchange *x, const amqp_frame_t *f, struct fw_err *err)
{
	const amqp_method_t *m = &f->payload.method;

	if (f->frame_type != AMQP_FRAME_METHOD)
		return 0; /* the content of a message that came back */
	switch (m->id) {
	case AMQP_BASIC_ACK_METHOD:
		exchange_confirm(x, m->decoded);
		return 0;
	case AMQP_BASIC_NACK_METHOD:
		return FW_ERR(err, FW_EIO, "%s: the broker could not store a message (nack): see its log", x->where);
	case AMQP_BASIC_RETURN_METHOD:
		return exchange_returned(x, m->decoded, err);
	default:
		return exchange_closed(x, m, PUBLISHING, err);
	}
}

static int exchange_wait(struct exchange *x, struct fw_err *err)
{
	int64_t deadline_ms = fw_mono_ms() + x->b->timeout_ms;

	while (x->confirmed_n < x->b->n) {
		struct timeval left = exchange_time(deadline_ms - fw_mono_ms());
		amqp_frame_t f;
		int rc, code = amqp_simple_wait_frame_noblock(x->c, &f, &left);

		if (code)
			return exchange_broke(x, code, "waiting for confirmations", err);
		rc = exchange_take(x, &f, err);
		if (rc)
			return rc;
		amqp_maybe_release_buffers(x->c);
	}
	return 0;
}

int exchange_publish(const struct exchange_batch *b, struct fw_err *err)
{
	struct exchange x = {.b = b};
	int rc;

	exchange_name(&x);
	rc = exchange_open(&x, err);
	rc = rc ? rc : exchange_send(&x, err);
	rc = rc ? rc : exchange_wait(&x, err);
	if (!rc)
		exchange_leave(&x);
	if (x.c)
		amqp_destroy_connection(x.c); /* closes the socket */
	return rc;
}
