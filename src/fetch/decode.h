/* SPDX-License-Identifier: ISC */
/*
 * Content codings (RFC 9110 section 8.4): gzip, deflate, br, zstd, at most two on top of each other. The whole coded body goes in,
 * so that a bomb can be refused before it is let out.
 */
#ifndef FW_FETCH_DECODE_H
#define FW_FETCH_DECODE_H

#include "base/buf.h"

struct fw_decode_limits {
	size_t max_bytes;   /* decoded, after each coding */
	uint32_t max_ratio; /* decoded/coded beyond the first MiB */
};

struct fw_decoder;

FW_MUST_CHECK int fw_decoder_create(struct fw_decoder **out);
void fw_decoder_destroy(struct fw_decoder *d);

/*
 * Undo the codings of a body.
 *
 * in      codings: Content-Encoding as sent, several joined by commas, or absent; wire: the body
 * out     out, emptied first; with no coding wire and out exchange their memory, so wire's content is undefined afterwards
 * errors  FW_EFORMAT the coded bytes are broken or end early: out holds what could be read; FW_ELIMIT too large, a bomb, too many
 *         codings: out is empty; FW_ENOMEM
 * cost    about 60 us for a feed of 61 KB in gzip
 *
 * Servers lie: a coding nobody knows counts as none, a body that does not begin as its coding does is taken as it is, and gzip
 * that nobody announced is still undone (a feed never begins with its magic bytes).
 */
FW_MUST_CHECK int fw_decode(struct fw_decoder *d, struct fw_str codings, struct fw_buf *wire, struct fw_buf *out,
	const struct fw_decode_limits *limits, struct fw_err *err);

/*
 * A body that decodes to at most max_bytes is decoded into out: true; *rc and *err as of fw_decode() with these limits. False: it decodes to
 * more, or what it decodes to would take longer to find out; wire is untouched. Costs no more than max_bytes do.
 */
bool fw_decode_small(struct fw_decoder *d, struct fw_str codings, struct fw_buf *wire, struct fw_buf *out, size_t max_bytes,
	const struct fw_decode_limits *limits, int *rc, struct fw_err *err);

#endif
