/* SPDX-License-Identifier: ISC */
/*
 * Destinations that are streams of Redis: "redis:STREAM", "redis:STREAM?maxlen=N",
 * "redis://HOST:PORT/DB?stream=STREAM&maxlen=N".
 */
#ifndef FW_ENGINE_ORDER_STREAM_H
#define FW_ENGINE_ORDER_STREAM_H

#include "base/arena.h"
#include "feedwheel/types.h"

struct order_stream {
	const char *url; /* of the server; NULL: that of the store */
	struct fw_str stream;
	int64_t max; /* about how many entries it keeps; 0: all */
};

/* Strings go into the arena. FW_EINVAL with the remedy; FW_EUNSUP: this build has no Redis. */
FW_MUST_CHECK int order_stream_read(struct fw_arena *a, struct fw_str to, struct order_stream *out, struct fw_err *err);

#endif
