/* SPDX-License-Identifier: ISC */
/*
 * The version of the orders: "orders", a number in each cell, which each commit of the cell watches
 * and reads. Absent: 0. A changed order raises the number of cell 0 in the operation that changes
 * the record, and then those of the other cells: who sees a new number, finds the record changed.
 *
 * If a process ends between the two, other cells keep the old number. So a commit also reads cell
 * 0's (commit.c); it has no part in its transaction, because nobody was told of the order.
 */
#include "store/redis/redis.h"

_Static_assert(RS_CELLS <= FW_ORDERS_PARTS, "a part for each cell");

int rs_orders_raise(struct rs *r, int first_cell, int64_t step, struct fw_err *err)
{
	assert(step > 0);
	for (int cell = first_cell; cell < r->cell_n; cell++) {
		rs_call(r, cell, RS_TRIM, "orders_raise");
		rs_addi(r, step);
	}
	return first_cell < r->cell_n ? rs_run(r, "changing the version of the orders", err) : 0;
}

int rs_orders_version(struct store *st, bool raise, struct fw_orders_version *out, struct fw_err *err)
{
	struct rs *r = rs_of(st);
	int64_t step;
	int rc = rs_slot_start(r, raise, err);

	*out = (struct fw_orders_version){.part = {0}};
	rc = rc || !raise ? rc : store_orders_step(&step, err);
	rc = rc || !raise ? rc : rs_orders_raise(r, RS_META, step, err);
	if (rc)
		return rc;
	for (int cell = 0; cell < r->cell_n; cell++) {
		rs_command_key(r, cell, "GET", "orders");
		rs_expect(r, "i?");
	}
	rc = rs_run(r, "reading the version of the orders", err);
	for (int cell = 0; !rc && cell < r->cell_n; cell++)
		out->part[cell] = rs_int(r->reply[cell]);
	return rc;
}
