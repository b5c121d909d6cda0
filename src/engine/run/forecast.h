/* SPDX-License-Identifier: ISC */
/*
 * The forecast of a run: what is due, put through the simulation of a fetch plan (sched/plan.h). 'run --once' compares it with what it took;
 * the command 'plan' shows it for any plan.
 */
#ifndef FW_ENGINE_FORECAST_H
#define FW_ENGINE_FORECAST_H

#include "feedwheel/store.h"
#include "sched/plan.h"

struct due_rows { /* what is due, as fw_store_due_list() tells it; zeroed: nothing */
	struct fw_due_row *row; /* free() it */
	size_t n, cap;
	size_t known;           /* rows with an expected duration of their own */
};
int due_rows_add(void *ctx, const struct fw_due_row *row); /* a fw_due_cb, ctx the rows. FW_ENOMEM */

void due_rows_items(const struct due_rows *d, struct fw_plan_item *item); /* item[0..d->n): for fw_plan_simulate() */

#endif
