/* SPDX-License-Identifier: ISC */
/* One HTTP/2 connection of the TLS origin: responses by path, concurrent streams. */
#include <check.h>
#include <nghttp2/nghttp2.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>

#include "tls_stub.h"

#define LARGE 300000

struct stream {
	char path[200];
	size_t left;
	bool breaks; /* after the first piece */
};

static ssize_t send_bytes(nghttp2_session *s, const uint8_t *p, size_t n, int flags, void *ctx)
{
	int wrote = SSL_write(ctx, p, (int)n);

	(void)s;
	(void)flags;
	return wrote > 0 ? wrote : NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int on_begin(nghttp2_session *s, const nghttp2_frame *f, void *ctx)
{
	(void)ctx;
	return nghttp2_session_set_stream_user_data(s, f->hd.stream_id, calloc(1, sizeof(struct stream)));
}

static int on_header(nghttp2_session *s, const nghttp2_frame *f, const uint8_t *name, size_t name_n,
	const uint8_t *value, size_t n, uint8_t flags, void *ctx)
{
	struct stream *st = nghttp2_session_get_stream_user_data(s, f->hd.stream_id);

	(void)flags;
	(void)ctx;
	if (st && name_n == 5 && memcmp(name, ":path", 5) == 0 && n < sizeof(st->path))
		memcpy(st->path, value, n);
	return 0;
}

static ssize_t read_body(
	nghttp2_session *s, int32_t id, uint8_t *to, size_t room, uint32_t *flags, nghttp2_data_source *src, void *ctx)
{
	struct stream *st = src->ptr;
	size_t n = st->left < room ? st->left : room;

	(void)s;
	(void)id;
	(void)ctx;
	if (st->breaks && st->left < LARGE)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* RST_STREAM */
	memset(to, 'x', n);
	st->left -= n;
	if (st->left == 0)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)n;
}

static int on_frame(nghttp2_session *s, const nghttp2_frame *f, void *ctx)
{
	struct stream *st = nghttp2_session_get_stream_user_data(s, f->hd.stream_id);
	static char status[2][8] = {"200", "302"}, to[] = "/large", etag[] = "\"h2\"";
	nghttp2_data_provider body = {.source.ptr = st, .read_callback = read_body};
	nghttp2_nv nv[2] = {{(uint8_t *)":status", NULL, 7, 3, 0}};
	int moved;

	(void)ctx;
	if (!st || f->hd.type != NGHTTP2_HEADERS || !(f->hd.flags & NGHTTP2_FLAG_END_STREAM))
		return 0;
	moved = strcmp(st->path, "/moved") == 0;
	st->breaks = strcmp(st->path, "/breaks") == 0;
	st->left = moved ? 5 : strcmp(st->path, "/feed") == 0 ? 100 : LARGE;
	nv[0].value = (uint8_t *)status[moved];
	nv[1] = moved ? (nghttp2_nv){(uint8_t *)"location", (uint8_t *)to, 8, 6, 0} :
			(nghttp2_nv){(uint8_t *)"etag", (uint8_t *)etag, 4, 4, 0};
	return nghttp2_submit_response(s, f->hd.stream_id, nv, 2, &body);
}

static int on_close(nghttp2_session *s, int32_t id, uint32_t code, void *ctx)
{
	(void)code;
	(void)ctx;
	free(nghttp2_session_get_stream_user_data(s, id));
	return nghttp2_session_set_stream_user_data(s, id, NULL);
}

void h2_talk(void *ssl)
{
	nghttp2_session_callbacks *cb;
	nghttp2_session *s;
	uint8_t in[16384];
	int n;

	ck_assert_int_eq(nghttp2_session_callbacks_new(&cb), 0);
	nghttp2_session_callbacks_set_send_callback(cb, send_bytes);
	nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin);
	nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_close);
	ck_assert_int_eq(nghttp2_session_server_new(&s, cb, ssl), 0);
	nghttp2_session_callbacks_del(cb);
	nghttp2_submit_settings(s, NGHTTP2_FLAG_NONE, NULL, 0);
	while (nghttp2_session_send(s) == 0 && nghttp2_session_want_read(s) &&
		(n = SSL_read(ssl, in, sizeof(in))) > 0) {
		if (nghttp2_session_mem_recv(s, in, (size_t)n) < 0)
			break;
	}
	nghttp2_session_del(s);
}
