/* SPDX-License-Identifier: ISC */
/*
 * Attempts to append to a stream of Redis: each is one thread, because the store's driver blocks.
 * There are never more than SENDER_IN_FLIGHT_MAX.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "engine/orders/order_stream.h"
#include "engine/orders/sender.h"
#include "store/stream.h"
#include "base/banned.h"

#define TIMEOUT_MS (7 * FW_SECOND_MS) /* of the connection, and again of the answer */

struct sender_stream {
	struct sender_attempt *a;
	struct sender_stream *next; /* of those that have ended */
	pthread_t thread;
	struct store_stream of;
	struct store_stream_row row[FW_ORDER_BATCH_MAX];
	int rc;
	struct fw_err err;
};

static const char *stream_refuses(const void *guard, const struct sockaddr *sa)
{
	return fw_guard_refuses(guard, sa);
}

static void *stream_thread_main(void *ctx)
{
	struct sender_stream *t = ctx;
	struct fw_sender *s = t->a->s;

	t->rc = store_stream_append(&t->of, &t->err);
	pthread_mutex_lock(&s->ended_lock);
	t->next = s->ended;
	s->ended = t;
	pthread_mutex_unlock(&s->ended_lock);
	sender_wake(s);
	return NULL;
}

/* The rows: the entries of the message, one on each line. */
static void stream_rows(struct sender_stream *t, const struct sender_attempt *a)
{
	struct fw_str lines = fw_buf_str(&a->body);

	for (size_t i = 0; i < a->n; i++)
		t->row[i] = (struct store_stream_row){.id = a->match[i].change_id,
			.type = a->match[i].changed ? "changed" : "new",
			.feed_id = a->match[i].feed_id,
			.text = fw_str_split(lines, '\n', &lines)};
}

int sender_stream_start(struct sender_attempt *a, struct fw_err *err)
{
	const struct fw_sender *s = a->s;
	struct sender_stream *t = calloc(1, sizeof(*t));
	struct order_stream to;
	int rc = t ? order_stream_read(&a->arena, a->o.to, &to, err) : fw_no_memory(err);

	if (rc) {
		free(t);
		return rc;
	}
	t->a = a;
	t->of = (struct store_stream){.url = to.url ? to.url : s->config->store,
		.stream = to.stream,
		.message_id = fw_str(a->message_id),
		.timeout_ms = FW_MIN(TIMEOUT_MS, s->net.fetch.total_timeout_ms),
		.refuses = to.url ? stream_refuses : NULL, /* the store's own server is permitted */
		.ctx = &s->net.guard,
		.row = t->row,
		.n = a->n};
	stream_rows(t, a);
	a->stream = t;
	rc = pthread_create(&t->thread, NULL, stream_thread_main, t);
	if (!rc)
		return 0;
	a->stream = NULL;
	free(t);
	return fw_err_set(err, FW_EIO, "cannot start a thread: %s", strerror(rc));
}

void sender_stream_free(struct sender_stream *t)
{
	if (!t)
		return;
	pthread_join(t->thread, NULL);
	free(t);
}

void sender_streams_collect(struct fw_sender *s)
{
	struct sender_stream *t;

	pthread_mutex_lock(&s->ended_lock);
	t = s->ended;
	s->ended = NULL;
	pthread_mutex_unlock(&s->ended_lock);
	while (t) {
		struct sender_stream *next = t->next;

		sender_attempt_done(
			t->a, &(struct delivery_result){.accepted = !t->rc, .error = fw_str(t->rc ? t->err.text : "")});
		t = next;
	}
}
