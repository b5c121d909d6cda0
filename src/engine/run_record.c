/* SPDX-License-Identifier: ISC */
/* What is kept of a --once beside its visits: how many slots it had, in which order it went, and what was foretold. */
#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "feedwheel/engine.h"

#define KEPT_MS (30 * FW_DAY_MS)

int fw_run_keep(struct fw_store *st, const struct fw_run_stats *s, struct fw_err *err)
{
	const struct fw_run_course *c = &s->course;
	struct fw_buf b = FW_BUF_INIT(FW_RECORD_VALUE_MAX);
	int64_t now_ms = fw_now_ms();
	struct fw_record r = {.kind = FW_STR("run"), .at_ms = now_ms, .until_ms = now_ms + KEPT_MS};
	struct fw_json j;
	char key[24];
	int rc;

	fw_json_init(&j, &b, false);
	fw_json_object(&j, NULL);
	fw_json_int(&j, "started_ms", s->run_id);
	fw_json_int(&j, "slots", c->slots);
	fw_json_int(&j, "workers", s->workers);
	fw_json_str(&j, "policy", fw_str(c->order ? c->order : ""));
	fw_json_int(&j, "feeds", (int64_t)s->done);
	fw_json_int(&j, "predicted_us", c->predicted_us);
	fw_json_int(&j, "total_us", c->took_us);
	fw_json_int(&j, "sum_us", c->sum_us);
	fw_json_int(&j, "bound_us", c->bound_us);
	if (c->batch)
		fw_json_int(&j, "batch", c->batch);
	fw_json_end(&j);
	(void)fw_snprintf(key, sizeof(key), "%lld", (long long)s->run_id);
	r.key = fw_str(key);
	r.value = fw_buf_str(&b);
	rc = b.rc ? fw_err_set(err, b.rc, "out of memory") : fw_store_record_put(st, &r, false, NULL, err);
	fw_buf_finish(&b);
	return rc;
}
