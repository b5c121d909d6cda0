/* SPDX-License-Identifier: ISC */
/* Messages for an exchange of a broker for AMQP 0-9-1: a destination of orders. */
#ifndef FW_ENGINE_EXCHANGE_H
#define FW_ENGINE_EXCHANGE_H

#include "engine/orders/order_exchange.h"
#include "store/stream.h"

struct exchange_batch {
	struct order_exchange to;
	struct fw_str message_id; /* of the batch; a message has it, a dot, and its row's id */
	int64_t at_ms;            /* timestamp of the messages */
	int64_t timeout_ms;       /* of the connection, of each answer, and of all confirmations */
	/* why an address must not be connected to, or NULL */
	const char *(*refuses)(const void *ctx, const struct sockaddr *sa);
	const void *ctx;
	const struct store_stream_row *row;
	size_t n; /* up to FW_ORDER_BATCH_MAX */
};

/*
 * Publish a message for each row, persistent, and wait until the broker has confirmed all: it has
 * routed each to a queue at least, and stored it. After an error some may be in their queues.
 * Blocks; any thread. The error's text is for people.
 */
FW_MUST_CHECK int exchange_publish(const struct exchange_batch *b, struct fw_err *err);

/* The library and its version; NULL: this build has none, and exchange_publish() fails. */
const char *exchange_library(void);

#endif
