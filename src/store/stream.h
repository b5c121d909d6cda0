/* SPDX-License-Identifier: ISC */
/* Appending rows to a stream of Redis: a destination of orders. Its server need not be a store. */
#ifndef FW_STORE_STREAM_H
#define FW_STORE_STREAM_H

#include "feedwheel/types.h"

struct sockaddr;

struct store_stream_row {
	int64_t id;
	const char *type;
	int64_t feed_id;
	struct fw_str text;
};

struct redis_destination {    /* one stream, and the rows for it */
	const char *url;      /* redis://HOST:PORT/DB, with the options of a store */
	struct fw_str stream; /* its key */
	int64_t max;          /* about how many rows the stream keeps; 0: all */
	struct fw_str message_id;
	int64_t timeout_ms; /* of the connection, and again of the answer */
	/* why an address must not be connected to, or NULL; NULL: all may be */
	const char *(*refuses)(const void *ctx, const struct sockaddr *sa);
	const void *ctx;
	const struct store_stream_row *row;
	size_t n;
};

/*
 * Append the rows, all or none. Blocks; any thread. The error's text is for people. FW_EUNSUP: this
 * build has no driver for the URL.
 */
FW_MUST_CHECK int store_stream_append(const struct redis_destination *s, struct fw_err *err);

/* Has this build a driver for the URL, with streams? FW_EINVAL; FW_EUNSUP. */
FW_MUST_CHECK int store_stream_check(const char *url, struct fw_err *err);

#endif
