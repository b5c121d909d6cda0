/* SPDX-License-Identifier: ISC */
#include <stdlib.h>

#include "base/str.h"
#include "engine/run/forecast.h"
#include "base/banned.h"

#define UNKNOWN_US 1000000 /* where nothing at all is known */

int due_rows_add(void *ctx, const struct fw_due_row *row)
{
	struct due_rows *d = ctx;

	if (d->n == d->cap) {
		size_t cap = d->cap ? 2 * d->cap : 1024;
		struct fw_due_row *grown = reallocarray(d->row, cap, sizeof(*grown));

		if (!grown)
			return FW_ENOMEM;
		d->row = grown;
		d->cap = cap;
	}
	d->row[d->n++] = *row;
	d->known += row->expect_us > 0;
	return 0;
}

int forecast_simulate(const struct fw_plan_rules *r, const struct fw_due_row *row, size_t n, struct fw_plan_item *item,
	struct fw_plan_start *start, struct fw_plan_total *out)
{
	int64_t *took_us = calloc(FW_MAX(n, 1), sizeof(*took_us));
	int rc;

	for (size_t i = 0; i < n; i++)
		item[i] = (struct fw_plan_item){.host = row[i].host_id, .expect_us = row[i].expect_us};
	rc = took_us ? fw_plan_guess(item, n, UNKNOWN_US) : FW_ENOMEM;
	for (size_t i = 0; i < n && !rc; i++) {
		took_us[i] = item[i].expect_us;
		if (r->policy == FW_PLAN_BATCH_SORTED) /* what was never timed is its last, and takes its time nevertheless */
			item[i].expect_us = row[i].expect_us;
	}
	if (!rc)
		rc = fw_plan_simulate(r, item, n, took_us, start, out);
	for (size_t i = 0; i < n && !rc; i++)
		item[i].expect_us = took_us[i];
	free(took_us);
	return rc;
}
