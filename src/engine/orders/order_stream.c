/* SPDX-License-Identifier: ISC */
#include <string.h>

#include "engine/orders/order_stream.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "store/dsn.h"
#include "store/stream.h"

#define MAXLEN 100000 /* a stream without bounds fills the server, which may hold the store too */
#define MAXLEN_LIMIT INT64_C(1000000000)
#define MISSING "redis: needs the name of a stream: redis:STREAM, or redis://HOST:PORT/DB?stream=STREAM"

/* The URL without its options `stream` and `maxlen`, which a store does not know. */
static void stream_url_write(struct fw_str to, struct fw_buf *out)
{
	struct fw_str options, option, url = fw_str_split(to, '?', &options);
	char before = '?';

	fw_buf_addstr(out, url);
	while (options.p) {
		option = fw_str_split(options, '&', &options);
		if (fw_str_starts(option, FW_STR("stream=")) || fw_str_starts(option, FW_STR("maxlen=")))
			continue;
		fw_buf_addc(out, before);
		fw_buf_addstr(out, option);
		before = '&';
	}
}

/* "STREAM" or "STREAM?maxlen=N" */
static int stream_name_read(struct fw_arena *a, struct fw_str name, struct order_stream *out, struct fw_err *err)
{
	const char *option = fw_str_find(name, FW_STR("?maxlen="));
	struct fw_str value = FW_STR_NONE;

	if (option) {
		value = fw_str_sub(name, (size_t)(option - name.p) + strlen("?maxlen="), name.len);
		name.len = (size_t)(option - name.p);
	}
	out->max = MAXLEN;
	out->stream = fw_arena_str(a, name);
	if (!name.len)
		return fw_err_set(err, FW_EINVAL, MISSING);
	if (value.p && (!fw_str_int(value, &out->max) || out->max < 0 || out->max > MAXLEN_LIMIT))
		return fw_err_set(err, FW_EINVAL, "redis: maxlen=%.*s: not a number from 0 to %lld",
			FW_STR_ARG(fw_str_sub(value, 0, 40)), (long long)MAXLEN_LIMIT);
	return out->stream.p ? 0 : fw_no_memory(err);
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
		return stream_name_read(a, rest, out, err);
	}
	rc = fw_dsn_split(a, "redis", fw_arena_dup(a, to.p, to.len), &d, err);
	if (rc)
		return rc;
	out->stream = fw_dsn_option(&d, "stream");
	if (!out->stream.len)
		return fw_err_set(err, FW_EINVAL, MISSING);
	rc = fw_dsn_number(&d, "maxlen", 0, MAXLEN_LIMIT, MAXLEN, &out->max, err);
	if (rc)
		return rc;
	stream_url_write(to, &b);
	out->url = b.rc ? NULL : fw_arena_dup(a, b.p, b.len);
	fw_buf_finish(&b);
	return out->url ? store_stream_check(out->url, err) : fw_no_memory(err);
}
