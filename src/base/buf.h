/* SPDX-License-Identifier: ISC */
/*
 * A growing byte buffer with a limit and a sticky error: append freely, then check buf->rc once.
 * Past max_bytes rc is FW_ELIMIT, out of memory FW_ENOMEM; the content so far stays intact.
 */
#ifndef FW_BASE_BUF_H
#define FW_BASE_BUF_H

#include <stdarg.h>
#include <stdio.h>

#include "feedwheel/types.h"

struct fw_buf {
	char *p; /* a NUL follows p[len], unless p is NULL */
	size_t len, cap;
	size_t max_bytes; /* limit of len; 0: none */
	int rc;           /* 0 or the first failure */
};

#define FW_BUF_INIT(max) ((struct fw_buf){.max_bytes = (max)})

void fw_buf_init(struct fw_buf *b, size_t max_bytes);
void fw_buf_finish(struct fw_buf *b);
void fw_buf_reset(struct fw_buf *b); /* empty it and clear the error; keep the memory */
/* Swap what two buffers hold, with their limits and errors. */
static inline void fw_buf_swap(struct fw_buf *b, struct fw_buf *other)
{
	struct fw_buf was = *b;

	*b = *other;
	*other = was;
}
void fw_buf_trim(struct fw_buf *b); /* give back the memory that the content does not need */
/* Make room for n more bytes behind len; returns their place, or NULL with rc set. */
char *fw_buf_room(struct fw_buf *b, size_t n);
/* Append the rest of a file. FW_EIO: a read failed (see errno); else b->rc. */
FW_MUST_CHECK int fw_buf_read(struct fw_buf *b, FILE *f);
/* Write n bytes, with as many calls as needed. Returns 0 or an errno. */
int fw_write_all(int fd, const char *p, size_t n);
void fw_buf_add(struct fw_buf *b, const void *p, size_t n);
void fw_buf_adds(struct fw_buf *b, const char *s);
void fw_buf_addstr(struct fw_buf *b, struct fw_str s);
void fw_buf_addc(struct fw_buf *b, char c);
FW_PRINTF(2, 3) void fw_buf_addf(struct fw_buf *b, const char *fmt, ...);
FW_PRINTF(2, 0) void fw_buf_vaddf(struct fw_buf *b, const char *fmt, va_list ap);
/* Append a code point as UTF-8; an invalid one as U+FFFD. */
void fw_buf_addcp(struct fw_buf *b, uint32_t cp);
/* Hand the memory to the caller, who must free() it; the buffer is empty afterwards. */
char *fw_buf_take(struct fw_buf *b, size_t *len);

static inline struct fw_str fw_buf_str(const struct fw_buf *b)
{
	return (struct fw_str){b->p ? b->p : "", b->len};
}

#endif
