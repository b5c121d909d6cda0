/* SPDX-License-Identifier: ISC */
/*
 * The orders of a process: loaded from the store, and given to the store's commits, which ask for
 * each entry that is about to be stored (fw_store_set_matcher()). api/order.h: one order.
 */
#ifndef FW_ENGINE_ORDERS_H
#define FW_ENGINE_ORDERS_H

#include "base/str.h"
#include "feedwheel/store.h"

/* The record whose value changes with each change of the orders. */
#define ORDERS_KIND FW_STR("orders")
#define ORDERS_VERSION FW_STR("version")

/*
 * Commits and pushes of this connection match the store's orders: call it before each. Looks at
 * most once a second for changed orders, and loads them then. The connection's close frees all.
 * Errors: those of the store; FW_ENOMEM.
 */
FW_MUST_CHECK int orders_use(struct fw_store *st, struct fw_err *err);

/* Tell all processes that an order was added, changed or removed. */
FW_MUST_CHECK int orders_changed(struct fw_store *st, int64_t now_ms, struct fw_err *err);

#endif
