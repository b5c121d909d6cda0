/* SPDX-License-Identifier: ISC */
/*
 * Webhooks as Standard Webhooks 1.0.0 defines them: the headers of a message. The signature covers
 * "ID.TIMESTAMP.BODY", once for each secret, so that a receiver may change to a new secret at any
 * time while both are valid.
 */
#ifndef FW_ENGINE_WEBHOOK_H
#define FW_ENGINE_WEBHOOK_H

#include "api/order.h"
#include "base/buf.h"

/* Is this "whsec_" and the base64 of 16 to 64 bytes? */
bool webhook_secret_is_valid(struct fw_str secret);
/*
 * Append the header lines webhook-id, webhook-timestamp and webhook-signature, each with its NUL
 * (fw_fetch.post_headers). FW_ENOMEM; FW_EINVAL: a secret is invalid.
 */
FW_MUST_CHECK int webhook_headers(const struct fw_order *o, const char *id, int64_t now_ms, struct fw_str body,
	struct fw_buf *out, struct fw_err *err);

#endif
