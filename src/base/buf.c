/* SPDX-License-Identifier: ISC */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/utf8.h"

#define READ_BYTES ((size_t)4096)

void fw_buf_init(struct fw_buf *b, size_t max_bytes)
{
	*b = FW_BUF_INIT(max_bytes);
}

void fw_buf_finish(struct fw_buf *b)
{
	free(b->p);
	*b = FW_BUF_INIT(b->max_bytes);
}

void fw_buf_reset(struct fw_buf *b)
{
	b->len = 0;
	b->rc = 0;
	if (b->p)
		b->p[0] = '\0';
}

char *fw_buf_room(struct fw_buf *b, size_t n)
{
	size_t need, cap;
	char *p;

	if (b->rc)
		return NULL;
	if (n > SIZE_MAX / 2 - b->len - 1 || (b->max_bytes && (b->len > b->max_bytes || n > b->max_bytes - b->len))) {
		b->rc = FW_ELIMIT;
		return NULL;
	}
	need = b->len + n + 1;
	if (need <= b->cap)
		return b->p + b->len;
	cap = b->cap ? b->cap + b->cap / 2 : 64;
	if (cap < need)
		cap = need;
	p = realloc(b->p, cap);
	if (!p) {
		b->rc = FW_ENOMEM;
		return NULL;
	}
	b->p = p;
	b->cap = cap;
	b->p[b->len] = '\0';
	return b->p + b->len;
}

void fw_buf_trim(struct fw_buf *b)
{
	char *p = b->p ? realloc(b->p, b->len + 1) : NULL;

	if (!p)
		return;
	b->p = p;
	b->cap = b->len + 1;
}

void fw_buf_add(struct fw_buf *b, const void *p, size_t n)
{
	char *d = fw_buf_room(b, n);

	if (!d)
		return;
	if (n)
		memcpy(d, p, n);
	b->len += n;
	b->p[b->len] = '\0';
}

void fw_buf_adds(struct fw_buf *b, const char *s)
{
	fw_buf_add(b, s, strlen(s));
}

void fw_buf_addstr(struct fw_buf *b, struct fw_str s)
{
	if (s.p)
		fw_buf_add(b, s.p, s.len);
}

void fw_buf_addc(struct fw_buf *b, char c)
{
	fw_buf_add(b, &c, 1);
}

void fw_buf_vaddf(struct fw_buf *b, const char *fmt, va_list ap)
{
	va_list again;
	char small[256];
	int n;

	va_copy(again, ap);
	n = vsnprintf(small, sizeof(small), fmt, ap);
	if (n >= 0 && (size_t)n < sizeof(small)) {
		fw_buf_add(b, small, (size_t)n);
	} else if (n >= 0) {
		char *d = fw_buf_room(b, (size_t)n);

		if (d) {
			vsnprintf(d, (size_t)n + 1, fmt, again);
			b->len += (size_t)n;
		}
	}
	va_end(again);
}

void fw_buf_addf(struct fw_buf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fw_buf_vaddf(b, fmt, ap);
	va_end(ap);
}

void fw_buf_addcp(struct fw_buf *b, uint32_t cp)
{
	char u[4];

	fw_buf_add(b, u, fw_utf8_put(u, cp));
}

char *fw_buf_take(struct fw_buf *b, size_t *len)
{
	char *p = b->p;

	if (len)
		*len = b->len;
	*b = FW_BUF_INIT(b->max_bytes);
	return p;
}

int fw_buf_read(struct fw_buf *b, FILE *f)
{
	size_t n = READ_BYTES;

	while (n == READ_BYTES) {
		char *to = fw_buf_room(b, READ_BYTES);

		if (!to)
			return b->rc;
		n = fread(to, 1, READ_BYTES, f);
		b->len += n;
		b->p[b->len] = '\0';
	}
	return ferror(f) ? FW_EIO : 0;
}

int fw_write_all(int fd, const char *p, size_t n)
{
	while (n) {
		ssize_t done = write(fd, p, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return errno;
		p += done;
		n -= (size_t)done;
	}
	return 0;
}
