/* SPDX-License-Identifier: ISC */
/* Feeds that the address guard refused, after its settings have changed. */
#ifndef FW_ENGINE_UNBLOCK_H
#define FW_ENGINE_UNBLOCK_H

#include "feedwheel/engine.h"
#include "feedwheel/store.h"

/*
 * Since the last call on this store, has allow_networks got a network, or deny_networks lost one? Then the active feeds whose last visit that
 * setting blocked are due at now_ms. *n: how many. One that fails may be called again.
 */
FW_MUST_CHECK int unblock_feeds(struct fw_store *st, const struct fw_config *c, int64_t now_ms, size_t *n, struct fw_err *err);

#endif
