/* SPDX-License-Identifier: ISC */
/*
 * The orders of a process: loaded from the store, and given to the store's commits, which ask for
 * each entry that is about to be stored (fw_store_set_matcher()). api/order.h: one order.
 */
#ifndef FW_ENGINE_ORDERS_H
#define FW_ENGINE_ORDERS_H

#include <string.h>

#include "base/str.h"
#include "feedwheel/store.h"

#define ORDERS_LEAD_KIND FW_STR("sender") /* who delivers: lead.h */

static inline bool orders_version_eq(const struct fw_orders_version *a, const struct fw_orders_version *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/*
 * Commits and pushes of this connection match the store's orders: call it before each. The first
 * call loads them; a commit that finds them changed loads them anew. The connection's close frees
 * all. Errors: those of the store; FW_ENOMEM.
 */
FW_MUST_CHECK int orders_use(struct fw_store *st, struct fw_err *err);

#endif
