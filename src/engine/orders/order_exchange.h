/* SPDX-License-Identifier: ISC */
/* Destinations "amqp://USER:PASSWORD@HOST:PORT/VHOST?exchange=E&routing_key=K". */
#ifndef FW_ENGINE_ORDER_EXCHANGE_H
#define FW_ENGINE_ORDER_EXCHANGE_H

#include "base/arena.h"
#include "feedwheel/types.h"

/* Each text ends with a NUL. What the destination leaves out has its default. */
struct order_exchange {
	struct fw_str user, password, host, vhost;
	struct fw_str exchange; /* "": the default exchange, whose routing keys are names of queues */
	struct fw_str routing_key;
	int port;
};

/* Strings go into the arena. FW_EINVAL with the remedy, also if this build has no AMQP. */
FW_MUST_CHECK int order_exchange_read(
	struct fw_arena *a, struct fw_str to, struct order_exchange *out, struct fw_err *err);

#endif
