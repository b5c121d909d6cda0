/* SPDX-License-Identifier: ISC */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stub.h"

struct stub_conn {
	uv_tcp_t tcp;
	uv_timer_t timer;
	struct stub *stub;
	struct stub_conn *next;
	struct fw_buf in;
	bool closing, ending;
	int handle_n, writing_n;
	const void *again;
	size_t again_n;
	uint64_t gap_ms;
};

struct write {
	uv_write_t req;
	struct stub_conn *c;
};

struct stub *stub_of(struct stub_conn *c)
{
	return c->stub;
}

static void closed(uv_handle_t *h)
{
	struct stub_conn *c = h->data;

	if (--c->handle_n > 0)
		return;
	fw_buf_finish(&c->in);
	free(c);
}

static void conn_close(struct stub_conn *c)
{
	struct stub_conn **at = &c->stub->conns;

	if (c->closing)
		return;
	c->closing = true;
	while (*at && *at != c)
		at = &(*at)->next;
	if (*at)
		*at = c->next;
	uv_close((uv_handle_t *)&c->tcp, closed);
	uv_close((uv_handle_t *)&c->timer, closed);
}

static void again(uv_timer_t *t)
{
	struct stub_conn *c = t->data;

	if (!c->closing && c->again)
		stub_send(c, c->again, c->again_n);
}

static void wrote(uv_write_t *req, int status)
{
	struct write *w = (struct write *)req;
	struct stub_conn *c = w->c;

	free(w);
	c->writing_n--;
	if (status < 0) {
		conn_close(c);
	} else if (c->again && !c->writing_n && !c->closing) {
		uv_timer_start(&c->timer, again, c->gap_ms, 0);
	} else if (c->ending && !c->writing_n) {
		conn_close(c);
	}
}

void stub_send(struct stub_conn *c, const void *p, size_t n)
{
	struct write *w;
	uv_buf_t b;

	if (c->closing)
		return;
	w = malloc(sizeof(*w) + n);
	ck_assert_ptr_nonnull(w);
	w->c = c;
	if (n)
		memcpy(w + 1, p, n);
	b = uv_buf_init((char *)(w + 1), (unsigned)n);
	c->writing_n++;
	if (uv_write(&w->req, (uv_stream_t *)&c->tcp, &b, 1, wrote)) {
		free(w);
		c->writing_n--;
		conn_close(c);
	}
}

void stub_puts(struct stub_conn *c, const char *s)
{
	stub_send(c, s, strlen(s));
}

void stub_answer(struct stub_conn *c, int status, const char *headers, const void *body, size_t n)
{
	char head[4096];

	snprintf(head, sizeof(head), "HTTP/1.1 %d X\r\n%sContent-Length: %zu\r\n\r\n", status, headers, n);
	stub_puts(c, head);
	if (n)
		stub_send(c, body, n);
}

void stub_end(struct stub_conn *c)
{
	c->ending = true;
	if (!c->writing_n)
		conn_close(c);
}

void stub_reset(struct stub_conn *c)
{
	struct stub_conn **at = &c->stub->conns;

	if (c->closing)
		return;
	c->closing = true;
	while (*at && *at != c)
		at = &(*at)->next;
	if (*at)
		*at = c->next;
	uv_tcp_close_reset(&c->tcp, closed);
	uv_close((uv_handle_t *)&c->timer, closed);
}

void stub_repeat(struct stub_conn *c, const void *p, size_t n, uint64_t gap_ms)
{
	c->again = p;
	c->again_n = n;
	c->gap_ms = gap_ms;
	if (!c->writing_n)
		uv_timer_start(&c->timer, again, gap_ms, 0);
}

static void give(uv_handle_t *h, size_t hint, uv_buf_t *b)
{
	struct stub_conn *c = h->data;
	char *p = fw_buf_room(&c->in, 4096);

	(void)hint;
	*b = uv_buf_init(p, p ? 4096 : 0);
}

static void serve(struct stub_conn *c)
{
	struct stub *s = c->stub;
	char *end, *head, path[2048] = "";

	while (!c->closing && c->in.len && (end = strstr(c->in.p, "\r\n\r\n"))) {
		size_t n = (size_t)(end - c->in.p) + 4, body = 0;
		const char *told = strstr(c->in.p, "Content-Length: ");

		if (told && told < end)
			sscanf(told, "Content-Length: %zu", &body);
		n += body;
		if (n > c->in.len)
			return;
		head = strndup(c->in.p, n);
		ck_assert_ptr_nonnull(head);
		sscanf(head, "%*s %2047s", path);
		if (s->request_n < STUB_REQUESTS)
			s->request[s->request_n] = head;
		s->request_n++;
		memmove(c->in.p, c->in.p + n, c->in.len - n + 1);
		c->in.len -= n;
		s->handler(c, path, head);
		if (s->request_n > STUB_REQUESTS)
			free(head);
	}
}

static void got(uv_stream_t *stream, ssize_t n, const uv_buf_t *b)
{
	struct stub_conn *c = stream->data;

	(void)b;
	if (n < 0) {
		conn_close(c);
		return;
	}
	c->in.len += (size_t)n;
	if (c->in.p)
		c->in.p[c->in.len] = '\0';
	serve(c);
}

static void incoming(uv_stream_t *server, int status)
{
	struct stub *s = server->data;
	struct stub_conn *c = calloc(1, sizeof(*c));

	ck_assert_int_eq(status, 0);
	ck_assert_ptr_nonnull(c);
	c->stub = s;
	c->handle_n = 2;
	uv_tcp_init(s->loop, &c->tcp);
	uv_timer_init(s->loop, &c->timer);
	c->tcp.data = c->timer.data = c;
	c->next = s->conns;
	s->conns = c;
	s->conn_n++;
	if (uv_accept(server, (uv_stream_t *)&c->tcp) || uv_read_start((uv_stream_t *)&c->tcp, give, got))
		conn_close(c);
	else
		uv_tcp_nodelay(&c->tcp, 1);
}

void stub_open(struct stub *s, uv_loop_t *loop, const char *ip, stub_handler *handler, void *ctx)
{
	struct sockaddr_storage sa;
	struct sockaddr_in in;
	int n = sizeof(sa);

	*s = (struct stub){.loop = loop, .handler = handler, .ctx = ctx};
	uv_tcp_init(loop, &s->tcp);
	s->tcp.data = s;
	ck_assert_int_eq(uv_ip4_addr(ip, 0, &in), 0);
	ck_assert_int_eq(uv_tcp_bind(&s->tcp, (const struct sockaddr *)&in, 0), 0);
	ck_assert_int_eq(uv_listen((uv_stream_t *)&s->tcp, 512, incoming), 0);
	ck_assert_int_eq(uv_tcp_getsockname(&s->tcp, (struct sockaddr *)&sa, &n), 0);
	s->port = ntohs(((struct sockaddr_in *)&sa)->sin_port);
}

void stub_close(struct stub *s)
{
	while (s->conns)
		conn_close(s->conns);
	uv_close((uv_handle_t *)&s->tcp, NULL);
}

void stub_free(struct stub *s)
{
	for (uint32_t i = 0; i < s->request_n && i < STUB_REQUESTS; i++)
		free(s->request[i]);
}
