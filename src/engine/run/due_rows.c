/* SPDX-License-Identifier: ISC */
#include <stdlib.h>

#include "base/str.h"
#include "engine/run/due_rows.h"

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

void due_rows_items(const struct due_rows *d, struct fw_plan_item *item)
{
	for (size_t i = 0; i < d->n; i++)
		item[i] = (struct fw_plan_item){.host = d->row[i].host_id, .expect_us = d->row[i].expect_us};
}
