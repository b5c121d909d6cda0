/* SPDX-License-Identifier: ISC */
/*
 * A growing byte buffer with a ceiling and a sticky error: append freely, check buf->rc once.
 * Past max_bytes rc is FW_ELIMIT, out of memory FW_ENOMEM; what was there before stays intact.
 */
#ifndef FW_BASE_BUF_H
#define FW_BASE_BUF_H

#include <stdarg.h>
#include <stdio.h>

#include "feedwheel/types.h"

struct fw_buf {
	char *p;          /* NUL behind p[len] whenever p is not NULL */
	size_t len, cap;
	size_t max_bytes; /* 0 = no ceiling */
	int rc;           /* 0 or the first failure */
};

#define FW_BUF_INIT(max) ((struct fw_buf){.max_bytes = (max)})

void fw_buf_init(struct fw_buf *b, size_t max_bytes);
void fw_buf_finish(struct fw_buf *b);
void fw_buf_reset(struct fw_buf *b); /* empty, error cleared, memory kept */
/* Room for n more bytes behind len; returns where they go, or NULL (rc set). */
char *fw_buf_room(struct fw_buf *b, size_t n);
/* All that is left of a file. FW_EIO: it could not be read, errno tells why; else b->rc. */
FW_MUST_CHECK int fw_buf_read(struct fw_buf *b, FILE *f);
/* Write n bytes, however often that takes. 0 or an errno. */
int fw_write_all(int fd, const char *p, size_t n);
void fw_buf_add(struct fw_buf *b, const void *p, size_t n);
void fw_buf_adds(struct fw_buf *b, const char *s);
void fw_buf_addstr(struct fw_buf *b, struct fw_str s);
void fw_buf_addc(struct fw_buf *b, char c);
FW_PRINTF(2, 3) void fw_buf_addf(struct fw_buf *b, const char *fmt, ...);
FW_PRINTF(2, 0) void fw_buf_vaddf(struct fw_buf *b, const char *fmt, va_list ap);
/* Append a code point as UTF-8 (U+FFFD for what is none). */
void fw_buf_addcp(struct fw_buf *b, uint32_t cp);
/* Hand the memory to the caller (free() it); the buffer is empty afterwards. */
char *fw_buf_take(struct fw_buf *b, size_t *len);

static inline struct fw_str fw_buf_str(const struct fw_buf *b)
{
	return (struct fw_str){b->p ? b->p : "", b->len};
}

#endif
