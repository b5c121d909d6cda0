/* SPDX-License-Identifier: ISC */
/*
 * The orders of a process: loaded from the store, and given to the store's commits, which ask for
 * each entry that is about to be stored (fw_store_set_matcher()). api/order.h: one order.
 */
#ifndef FW_ENGINE_ORDERS_H
#define FW_ENGINE_ORDERS_H

#include "feedwheel/store.h"

/* Tell all processes that an order was added, changed or removed. */
FW_MUST_CHECK int orders_changed(struct fw_store *st, int64_t now_ms, struct fw_err *err);

#endif
