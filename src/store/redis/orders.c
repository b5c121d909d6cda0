/* SPDX-License-Identifier: ISC */
/*
 * The version of the orders: "orders", a number, which each commit watches and reads. Absent: 0.
 * It is raised by the operation that changes the record of an order.
 */
#include "store/redis/redis.h"

int rs_orders_version(struct store *st, bool raise, struct fw_orders_version *out, struct fw_err *err)
{
	struct rs *r = rs_of(st);
	int64_t step = 0;
	int rc = rs_slot_start(r, raise, err);

	*out = (struct fw_orders_version){.part = {0}};
	rc = rc || !raise ? rc : store_orders_step(&step, err);
	if (rc)
		return rc;
	if (raise)
		rs_call(r, RS_TRIM, "orders_raise");
	else
		rs_command_key(r, "GET", "orders");
	rs_expect(r, "i?");
	if (raise)
		rs_addi(r, step);
	rc = rs_run(r, "reading the version of the orders", err);
	out->part[0] = rc ? 0 : rs_int(r->reply[0]);
	return rc;
}
