/* SPDX-License-Identifier: ISC */
#ifndef FW_HTTP_SERVER_BODY_H
#define FW_HTTP_SERVER_BODY_H

#include "base/buf.h"

/*
 * Decompress gzip (one member or several), or a deflate stream with or without zlib's header. Pure.
 * Appends to out, up to out->max_bytes; beyond the first MiB also at most ratio times the bytes of
 * in. Errors: FW_EFORMAT damaged, truncated, or with trailing bytes; FW_ELIMIT; FW_ENOMEM.
 */
FW_MUST_CHECK int http_inflate(struct fw_str in, bool gzip, size_t ratio, struct fw_buf *out);

#endif
