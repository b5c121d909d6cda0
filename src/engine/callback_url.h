/* SPDX-License-Identifier: ISC */
/* Setting websub_url: where hubs send documents to. Pure. */
#ifndef FW_ENGINE_CALLBACK_URL_H
#define FW_ENGINE_CALLBACK_URL_H

#include "base/buf.h"

/* Is this the URL of a hub, a topic or a callback: http or https, a host, a port, not too long? */
bool hub_url_is_valid(struct fw_str url);
/*
 * Makes the prefix of callbacks' URLs from setting websub_url: "https://example.org/websub/".
 * Errors: FW_EINVAL names the setting; FW_ENOMEM.
 */
FW_MUST_CHECK int callback_base(const char *url, struct fw_buf *out, struct fw_err *err);

#endif
