/* SPDX-License-Identifier: ISC */
/*
 * Content codings (RFC 9110 section 8.4): gzip, deflate, br, zstd, at most two nested. The whole
 * coded body is the input, so a decompression bomb can be refused before it is expanded.
 */
#ifndef FW_FETCH_DECODE_H
#define FW_FETCH_DECODE_H

#include "base/buf.h"

struct fw_decode_limits {
	size_t max_bytes;               /* limit of the decoded size, after each coding */
	uint32_t max_compression_ratio; /* limit of decoded/coded, beyond the first MiB */
};

struct fw_decoder;

FW_MUST_CHECK int fw_decoder_create(struct fw_decoder **out);
void fw_decoder_destroy(struct fw_decoder *d);

/*
 * Undo the content codings of a body.
 *
 * in      codings: Content-Encoding as sent, several joined by commas, or absent; wire: the body
 * out     out, emptied first. Without a coding wire and out exchange their memory, so the content
 * of wire is undefined afterwards errors  FW_EFORMAT: the coded bytes are corrupt or truncated; out
 * holds what could be decoded. FW_ELIMIT: too large, a bomb, or
 *         too many codings; out is empty. FW_ENOMEM
 * cost    about 60 us for a feed of 61 KB in gzip
 *
 * Content-Encoding is often wrong. An unknown coding is ignored; a body that does not start as its
 * coding must is taken as it is; and gzip is undone even if it is not announced (no feed starts
 * with its magic bytes).
 */
FW_MUST_CHECK int fw_decode(struct fw_decoder *d, struct fw_str codings, struct fw_buf *wire, struct fw_buf *out,
	const struct fw_decode_limits *limits, struct fw_err *err);

/*
 * Decode a body into out if that gives at most max_bytes: true, with *rc and *err as from
 * fw_decode(). False: it decodes to more, or finding out costs more; wire is unchanged. Costs no
 * more than decoding max_bytes.
 */
bool fw_decode_small(struct fw_decoder *d, struct fw_str codings, struct fw_buf *wire, struct fw_buf *out,
	size_t max_bytes, const struct fw_decode_limits *limits, int *rc, struct fw_err *err);

#endif
