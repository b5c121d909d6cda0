/* SPDX-License-Identifier: ISC */
/* The front, part 4: matches of orders. */
#include "store/driver.h"
#include "base/banned.h"

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
