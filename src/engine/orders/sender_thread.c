/* SPDX-License-Identifier: ISC */
/*
 * Attempts that block, each in a thread of its own: entries for a stream of Redis, or for an
 * exchange. There are never more than SENDER_IN_FLIGHT_MAX.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "engine/orders/exchange.h"
#include "engine/orders/order_stream.h"
#include "engine/orders/sender.h"
#include "engine/settings.h"
#include "store/stream.h"

#define TIMEOUT_MS (7 * FW_SECOND_MS) /* of the connection, and again of the answer */

struct sender_thread {
	struct sender_attempt *a;
	struct sender_thread *next; /* of those that have ended */
	pthread_t thread;
	struct redis_destination stream; /* of FW_ORDER_REDIS */
	struct exchange_batch exchange;  /* of FW_ORDER_AMQP */
	struct store_stream_row row[FW_ORDER_BATCH_MAX];
	int rc;
	struct fw_err err;
};

static const char *thread_refuses(const void *guard, const struct sockaddr *sa)
{
	return fw_guard_refuses(guard, sa);
}

static void *thread_main(void *ctx)
{
	struct sender_thread *t = ctx;
	struct fw_sender *s = t->a->s;

	t->rc = t->a->channel == FW_ORDER_AMQP ? exchange_publish(&t->exchange, &t->err) :
						 store_stream_append(&t->stream, &t->err);
	pthread_mutex_lock(&s->ended_lock);
	t->next = s->ended;
	s->ended = t;
	pthread_mutex_unlock(&s->ended_lock);
	service_wake(s->service);
	return NULL;
}

/* The rows: the entries of the message, one on each line. */
static void thread_rows(struct sender_thread *t)
{
	const struct sender_attempt *a = t->a;
	struct fw_str lines = fw_buf_str(&a->body);

	for (size_t i = 0; i < a->n; i++)
		t->row[i] = (struct store_stream_row){.id = a->match[i].change_id,
			.type = a->match[i].changed ? "changed" : "new",
			.feed_id = a->match[i].feed_id,
			.text = fw_str_split(lines, '\n', &lines)};
}

static int thread_stream(struct sender_thread *t, int64_t timeout_ms, struct fw_err *err)
{
	struct sender_attempt *a = t->a;
	struct order_stream to;
	int rc = order_stream_read(&a->arena, a->o.to, &to, err);

	t->stream = (struct redis_destination){.url = to.url ? to.url : a->s->config->store,
		.stream = to.stream,
		.max = to.max,
		.message_id = fw_str(a->message_id),
		.timeout_ms = timeout_ms,
		.refuses = to.url ? thread_refuses : NULL, /* the store's own server is permitted */
		.ctx = &service_net(a->s->service)->guard,
		.row = t->row,
		.n = a->n};
	return rc;
}

static int thread_exchange(struct sender_thread *t, int64_t timeout_ms, struct fw_err *err)
{
	struct sender_attempt *a = t->a;

	t->exchange = (struct exchange_batch){.message_id = fw_str(a->message_id),
		.at_ms = a->order->delivery->d.since_ms,
		.timeout_ms = timeout_ms,
		.refuses = thread_refuses,
		.ctx = &service_net(a->s->service)->guard,
		.row = t->row,
		.n = a->n};
	return order_exchange_read(&a->arena, a->o.to, &t->exchange.to, err);
}

static int thread_prepare(struct sender_thread *t, struct fw_err *err)
{
	int64_t timeout_ms = FW_MIN(TIMEOUT_MS, service_net(t->a->s->service)->fetch.total_timeout_ms);

	thread_rows(t);
	return t->a->channel == FW_ORDER_AMQP ? thread_exchange(t, timeout_ms, err) : thread_stream(t, timeout_ms, err);
}

int sender_thread_start(struct sender_attempt *a, struct fw_err *err)
{
	struct sender_thread *t = calloc(1, sizeof(*t));
	int rc;

	if (!t)
		return fw_no_memory(err);
	t->a = a;
	rc = thread_prepare(t, err);
	if (rc) {
		free(t);
		return rc;
	}
	a->thread = t;
	rc = pthread_create(&t->thread, NULL, thread_main, t);
	if (!rc)
		return 0;
	a->thread = NULL;
	free(t);
	return fw_err_set(err, FW_EIO, "cannot start a thread: %s", strerror(rc));
}

void sender_thread_free(struct sender_thread *t)
{
	if (!t)
		return;
	pthread_join(t->thread, NULL);
	free(t);
}

void sender_threads_collect(struct fw_sender *s)
{
	struct sender_thread *t;

	pthread_mutex_lock(&s->ended_lock);
	t = s->ended;
	s->ended = NULL;
	pthread_mutex_unlock(&s->ended_lock);
	while (t) {
		struct sender_thread *next = t->next;

		sender_attempt_done(
			t->a, &(struct delivery_result){.accepted = !t->rc, .error = fw_str(t->rc ? t->err.text : "")});
		t = next;
	}
}
