/* SPDX-License-Identifier: ISC */
#ifndef FW_HTTP_BODY_H
#define FW_HTTP_BODY_H

#include "base/buf.h"

/*
 * Unpack a whole gzip file (or several in a row), or a deflate stream with zlib's header or without. Pure.
 * out is appended to, no further than its max_bytes, nor than ratio times in beyond the first MiB.
 * Errors: FW_EFORMAT it is damaged, is cut off, or goes on behind its end; FW_ELIMIT; FW_ENOMEM.
 */
FW_MUST_CHECK int http_inflate(struct fw_str in, bool gzip, size_t ratio, struct fw_buf *out);

#endif
