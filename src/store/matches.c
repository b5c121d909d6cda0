/* SPDX-License-Identifier: ISC */
/* The front, part 4: matches of orders, and commits that match. */
#include <string.h>
#include <sys/random.h>

#include "base/err.h"
#include "store/driver.h"

#define TRIES 20

void fw_store_set_matcher(struct fw_store *st, const struct fw_matcher *matcher)
{
	const struct fw_matcher *old = store_of(st)->matcher;

	store_of(st)->matcher = matcher;
	if (old && old != matcher && old->close)
		old->close(old->ctx);
}

const struct fw_matcher *fw_store_matcher(const struct fw_store *st)
{
	return ((const struct store *)st)->matcher;
}

int fw_store_match_put(struct fw_store *st, const struct fw_match *match, size_t n, bool dead, struct fw_err *err)
{
	for (size_t i = 0; i < n; i++) {
		if (match[i].order_id <= 0 || match[i].change_id <= 0 || match[i].entry_id <= 0)
			return store_invalid(
				store_of(st), "match: the ids of order, change and entry are above 0", err);
	}
	return n ? STORE_CALL(st, match_put, match, n, dead, STORE_ERR(err)) : 0;
}

int fw_store_match_list(
	struct fw_store *st, const struct fw_match_query *q, fw_match_cb *cb, void *ctx, struct fw_err *err)
{
	return STORE_CALL(st, match_list, q, cb, ctx, STORE_ERR(err));
}

int fw_store_match_remove(
	struct fw_store *st, int64_t order_id, bool dead, const int64_t *change_id, size_t n, struct fw_err *err)
{
	if (change_id && !n)
		return 0;
	return STORE_CALL(st, match_remove, order_id, dead, change_id, change_id ? n : 0, STORE_ERR(err));
}

int fw_store_match_summary(struct fw_store *st, fw_match_summary_cb *cb, void *ctx, struct fw_err *err)
{
	return STORE_CALL(st, match_summary, cb, ctx, STORE_ERR(err));
}

/* ---- the version of the orders --------------------------------------------------------------- */

static int order_record_found(void *ctx, const struct fw_record *r)
{
	(void)r;
	*(bool *)ctx = true;
	return 0;
}

int fw_store_orders_version(struct fw_store *st, struct fw_orders_version *out, struct fw_err *err)
{
	struct fw_record_query q = {.kind = FW_STR(FW_RECORD_ORDER), .limit = 1};
	const struct fw_orders_version none = {.part = {0}};
	bool any = false;
	int rc = STORE_CALL(st, orders_version, false, out, STORE_ERR(err));

	if (rc || memcmp(out, &none, sizeof(none)) != 0)
		return rc;
	rc = fw_store_record_list(st, &q, order_record_found, &any, err);
	/* orders of an earlier release, which had no version */
	return rc || !any ? rc : STORE_CALL(st, orders_version, true, out, STORE_ERR(err));
}

int store_orders_step(int64_t *step, struct fw_err *err)
{
	uint32_t random;

	if (getentropy(&random, sizeof(random)))
		return fw_err_set(err, FW_EIO, "no random bytes for the version of the orders");
	*step = 1 + (int64_t)(random >> 2);
	return 0;
}

int store_orders_differ(const char *name, struct fw_err *err)
{
	return fw_err_set(err, STORE_EORDERS, "%s: the orders were changed meanwhile", name);
}

int store_commit(struct store *st, struct store_commit *c, struct fw_err *err)
{
	for (int i = 0; i < TRIES; i++) {
		const struct fw_matcher *m = st->matcher;
		int rc = st->driver->commit(st, c, err);

		if (rc != STORE_EORDERS)
			return rc;
		rc = m->reload(m->ctx, (struct fw_store *)st, err);
		if (rc)
			return rc;
	}
	return fw_err_set(err, FW_EAGAIN, "%s: the orders change faster than this process can load them: try again",
		st->driver->name);
}
