/* SPDX-License-Identifier: ISC */
/* The old contract over the new one: adapter.c. */
#ifndef FW_STORE_ADAPTER_H
#define FW_STORE_ADAPTER_H

#include "store/driver.h"
#include "store/drivers.h"

struct adapter {
	struct fw_store base;     /* first */
	struct store *st;
};

struct store *adapter_store(struct fw_store *st);
int adapter_beat_put(struct fw_store *st, const struct fw_beat *b, int64_t now_ms, struct fw_err *err);

extern const struct fw_store_driver adapter_sqlite, adapter_memory, adapter_postgres;

#endif
