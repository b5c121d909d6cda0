/* SPDX-License-Identifier: ISC */
/*
 * The version of the orders: a row of meta, absent until an order is first stored. It changes under
 * the lock of the counter of entry ids, and a commit that stores entries reads it with the counter,
 * after that lock. So a transaction that changes an order comes before a commit, which then sees
 * the new version, or it waits for the commit's end.
 */
#include "store/sql/core.h"

struct entry_counter {
	int64_t last, orders;
};

static int entry_counter_row(void *ctx, const struct sql_row *row)
{
	*(struct entry_counter *)ctx = (struct entry_counter){sql_int(row, 0), sql_int(row, 1)};
	return 0;
}

/*
 * The reading statement comes after the one that waits for the lock: a statement does not see what
 * was committed after it began.
 */
static int entry_counter_raise(struct sql *s, int64_t n, struct entry_counter *out, struct fw_err *err)
{
	int rc = sql_exec(s, "UPDATE meta SET value = value + ?1 WHERE name = 'entry_id'", SQL_V(SQL_INT(n)), err);

	*out = (struct entry_counter){.last = 0};
	return rc ? rc :
		    sql_query(s,
			    "SELECT e.value, coalesce(o.value, 0) FROM meta e LEFT JOIN meta o ON o.name = 'orders'"
			    " WHERE e.name = 'entry_id'",
			    SQL_NONE, entry_counter_row, out, err);
}

int sql_entry_ids_reserve(struct sql *s, int64_t n, int64_t *last, struct fw_err *err)
{
	const struct fw_orders_version *known = store_matcher_version(&s->store);
	struct entry_counter counter;
	int rc = entry_counter_raise(s, n, &counter, err);

	*last = counter.last;
	return rc || !known || known->part[0] == counter.orders ? rc : store_orders_differ(s->name, err);
}

int sql_orders_raise(struct sql *s, struct fw_err *err)
{
	struct entry_counter counter;
	int64_t step;
	int rc = store_orders_step(&step, err);

	rc = rc ? rc : entry_counter_raise(s, 0, &counter, err);
	return rc ? rc :
		    sql_exec(s,
			    "INSERT INTO meta (name, value) VALUES ('orders', ?1)"
			    " {upsert name} value = meta.value + {new value}",
			    SQL_V(SQL_INT(step)), err);
}

static int orders_raise_in(struct sql *s, void *ctx, struct fw_err *err)
{
	(void)ctx;
	return sql_orders_raise(s, err);
}

int sql_orders_version(struct store *st, bool raise, struct fw_orders_version *out, struct fw_err *err)
{
	struct sql *s = sql_of(st);
	int rc = raise ? sql_transaction(s, orders_raise_in, NULL, err) : 0;

	*out = (struct fw_orders_version){.part = {0}};
	return rc ? rc :
		    sql_query_int(s, "SELECT value FROM meta WHERE name = 'orders'", SQL_NONE, 0, &out->part[0], err);
}
