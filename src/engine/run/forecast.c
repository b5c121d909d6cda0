/* SPDX-License-Identifier: ISC */
/*
 * A fetch plan without a run: simulates what is due under any rules, as run --once does
 * (due_rows.h).
 */
#include <stdlib.h>

#include "base/str.h"
#include "engine/run/due_rows.h"
#include "engine/settings.h"
#include "sched/due.h"
#include "api/forecast.h"

struct fw_forecast {
	struct due_rows due;
	struct fw_plan_item *item;
	struct fw_plan_start *start;
};

void fw_forecast_rules(const struct fw_config *c, struct fw_forecast_rules *out)
{
	int64_t slots = c->concurrency * fw_settings_workers(c);
	struct fw_plan_rules r;

	fw_settings_plan(c, (uint32_t)FW_MIN(slots, (int64_t)UINT32_MAX), &r);
	*out = (struct fw_forecast_rules){.order = fw_plan_policy_name(r.policy),
		.slots = r.slots,
		.host_concurrency = r.host_concurrency,
		.host_gap_us = r.host_gap_us,
		.batch = r.batch};
}

const char *fw_forecast_order(size_t i)
{
	return i < FW_PLAN_POLICY_N ? fw_plan_policy_name((enum fw_plan_policy)i) : NULL;
}

int fw_forecast_read(struct fw_store *st, int64_t due_before_ms, struct fw_forecast **out, struct fw_err *err)
{
	struct fw_forecast *f = calloc(1, sizeof(*f));
	int rc = f ? fw_store_due_list(st, due_before_ms, 0, due_rows_add, &f->due, err) : FW_ENOMEM;

	if (!rc) {
		f->item = calloc(FW_MAX(f->due.n, 1), sizeof(*f->item));
		f->start = calloc(FW_MAX(f->due.n, 1), sizeof(*f->start));
		rc = f->item && f->start ? 0 : FW_ENOMEM;
	}
	if (rc == FW_ENOMEM)
		fw_err_set(err, rc, "out of memory for what is due");
	*out = rc ? NULL : f;
	if (rc)
		fw_forecast_destroy(f);
	return rc;
}

void fw_forecast_destroy(struct fw_forecast *f)
{
	if (!f)
		return;
	free(f->due.row);
	free(f->item);
	free(f->start);
	free(f);
}

size_t fw_forecast_count(const struct fw_forecast *f, size_t *known)
{
	*known = f->due.known;
	return f->due.n;
}

int fw_forecast_make(
	struct fw_forecast *f, const struct fw_forecast_rules *r, struct fw_forecast_total *out, struct fw_err *err)
{
	struct fw_plan_rules rules = {.slots = r->slots,
		.host_concurrency = r->host_concurrency,
		.host_gap_us = r->host_gap_us,
		.batch = r->batch};
	struct fw_plan_total total = {.total_us = 0};
	int rc;

	*out = (struct fw_forecast_total){.total_us = 0};
	if (!fw_plan_policy_find(fw_str(r->order), &rules.policy))
		return fw_err_set(err, FW_EINVAL, "unknown fetch order: '%s'", r->order);
	if (!r->slots)
		return fw_err_set(err, FW_EINVAL, "no forecast without slots (use at least 1)");
	due_rows_items(&f->due, f->item);
	rc = fw_plan_simulate(&rules, f->item, f->due.n, f->start, &total);
	if (rc)
		return fw_err_set(err, rc, "out of memory for the plan of %zu feeds", f->due.n);
	*out = (struct fw_forecast_total){.total_us = total.total_us,
		.sum_us = total.sum_us,
		.bound_us = fw_plan_bound(&total),
		.slots_us = total.slots_us,
		.longest_us = total.longest_us,
		.host_us = total.host_us,
		.host_n = total.host_n};
	if (f->due.n && total.host_us)
		out->host_feed_id = f->due.row[total.host_item].feed_id;
	for (size_t i = 0; i < f->due.n; i++) {
		if (f->item[i].guess_us == total.longest_us)
			out->longest_feed_id = f->due.row[i].feed_id;
	}
	return 0;
}

void fw_forecast_feed(const struct fw_forecast *f, size_t i, struct fw_forecast_start *out)
{
	const struct fw_plan_start *s = &f->start[i];
	const struct fw_due_row *row = &f->due.row[s->item];

	*out = (struct fw_forecast_start){.feed_id = row->feed_id,
		.at_us = s->at_us,
		.expect_us = s->until_us - s->at_us,
		.dev_us = row->expect_dev_us,
		.slot = s->slot,
		.known = row->expect_us > 0};
}

void fw_forecast_phases(const struct fw_feed *feed, int64_t part_us[FW_FORECAST_PHASES])
{
	_Static_assert((int)FW_FORECAST_PHASES == (int)FW_PHASE_N, "the schedule's phases are shown as they are");
	fw_expect_parts(feed->expect_parts, feed->expect_us, part_us);
}
