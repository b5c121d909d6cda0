/* SPDX-License-Identifier: ISC */
#include "engine/orders/order_stream.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "store/dsn.h"
#include "store/stream.h"
#include "base/banned.h"

#define MISSING "redis: needs the name of a stream: redis:STREAM, or redis://HOST:PORT/DB?stream=STREAM"

/* The URL without its option `stream`, which a store does not know. */
static void stream_url_write(struct fw_str to, struct fw_buf *out)
{
	struct fw_str options, option, url = fw_str_split(to, '?', &options);
	char before = '?';

	fw_buf_addstr(out, url);
	while (options.p) {
		option = fw_str_split(options, '&', &options);
		if (fw_str_starts(option, FW_STR("stream=")))
			continue;
		fw_buf_addc(out, before);
		fw_buf_addstr(out, option);
		before = '&';
	}
}

int order_stream_read(struct fw_arena *a, struct fw_str to, struct order_stream *out, struct fw_err *err)
{
	struct fw_buf b = FW_BUF_INIT(0);
	struct fw_str rest;
	struct fw_dsn d;
	int rc;

	*out = (struct order_stream){.url = NULL};
	if (!fw_str_find(to, FW_STR("://"))) {
		(void)fw_str_split(to, ':', &rest);
		out->stream = fw_arena_str(a, rest);
		return rest.len ? 0 : fw_err_set(err, FW_EINVAL, MISSING);
	}
	rc = fw_dsn_split(a, "redis", fw_arena_dup(a, to.p, to.len), &d, err);
	if (rc)
		return rc;
	out->stream = fw_dsn_option(&d, "stream");
	if (!out->stream.len)
		return fw_err_set(err, FW_EINVAL, MISSING);
	stream_url_write(to, &b);
	out->url = b.rc ? NULL : fw_arena_dup(a, b.p, b.len);
	fw_buf_finish(&b);
	return out->url ? store_stream_check(out->url, err) : fw_no_memory(err);
}
