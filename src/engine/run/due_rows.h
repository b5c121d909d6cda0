/* SPDX-License-Identifier: ISC */
/*
 * The rows that a forecast simulates: what is due, as items of a fetch plan (sched/plan.h). `run
 * --once` compares the forecast with the time it took; the command `plan` shows it for any plan.
 */
#ifndef FW_ENGINE_DUE_ROWS_H
#define FW_ENGINE_DUE_ROWS_H

#include "feedwheel/store.h"
#include "sched/plan.h"

/* what is due, from fw_store_due_list(); zeroed: empty */
struct due_rows {
	struct fw_due_row *row; /* the owner calls free() */
	size_t n, cap;
	size_t known; /* rows with a known duration */
};
/* a fw_due_cb; ctx: the rows. FW_ENOMEM */
int due_rows_add(void *ctx, const struct fw_due_row *row);

/* fill item[0..d->n) for fw_plan_simulate() */
void due_rows_items(const struct due_rows *d, struct fw_plan_item *item);

#endif
