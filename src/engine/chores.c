/* SPDX-License-Identifier: ISC */
/*
 * Never dead for ever (POL-10): a server that says 410 may be wrong, or be somebody else's next year. The schedule puts the due time of a
 * feed that is gone far ahead; here it is asked again when that has come.
 *
 * That a worker's network is down is a record of kind "weather", its key the worker's name, its value since when. It runs out by itself.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/chores.h"
#include "base/banned.h"

#define PROBE_EVERY_MS FW_HOUR_MS
#define PROBE_MORE_MS FW_MINUTE_MS
#define PROBE_N ((size_t)100) /* at once, so that a thousand that ended on one day do not come back in one */
#define WEATHER FW_STR("weather")
#define WEATHER_EVERY_MS FW_MINUTE_MS
#define WEATHER_KEPT_MS (3 * FW_MINUTE_MS)
#define ENOUGH 1 /* stops a walk */

struct due {
	int64_t now_ms;
	size_t n;
	int64_t id[PROBE_N];
};

static int gone_due(void *ctx, const struct fw_feed *f)
{
	struct due *d = ctx;

	if (f->due_at_ms > d->now_ms || d->n == PROBE_N)
		return ENOUGH;
	d->id[d->n++] = f->id;
	return 0;
}

int chores_probe(struct fw_store *st, int64_t now_ms, size_t *n, bool *more, struct fw_err *err)
{
	struct fw_feed_query q = {.status = FW_FEED_GONE, .by_due = true, .limit = PROBE_N};
	struct due d = {.now_ms = now_ms};
	int rc = fw_store_feed_list(st, &q, gone_due, &d, err);

	*n = 0;
	*more = d.n == PROBE_N;
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < d.n; i++) {
		struct fw_feed to = {.id = d.id[i], .status = FW_FEED_ACTIVE, .due_at_ms = now_ms};

		rc = fw_store_feed_set(st, &to, FW_SET_STATUS | FW_SET_DUE, err);
		if (rc && rc != FW_ENOTFOUND) /* its owner may have removed it meanwhile */
			return rc;
		*n += !rc;
	}
	return 0;
}

static void probe(struct chores *c, struct fw_store *st, int64_t mono_ms)
{
	struct fw_err err;
	bool more;
	size_t n;

	if (mono_ms < c->probe_at_ms)
		return;
	if (chores_probe(st, fw_now_ms(), &n, &more, &err))
		fw_warn("looking for feeds that may have come back: %s; it is tried again later", err.text);
	else if (n)
		fw_info("%zu feeds that were gone are asked once again", n);
	c->probe_at_ms = mono_ms + (more ? PROBE_MORE_MS : PROBE_EVERY_MS);
}

static void weather(struct chores *c, struct fw_store *st, const char *worker, const struct fw_meter_slot *m, int64_t mono_ms)
{
	bool offline = atomic_load_explicit(&m->offline, memory_order_relaxed) != 0;
	struct fw_record r = {.kind = WEATHER, .key = fw_str(worker), .value = FW_STR("offline"), .at_ms = fw_now_ms()};
	struct fw_err err;
	int rc;

	if (offline == c->offline && (!offline || mono_ms < c->offline_at_ms))
		return;
	r.until_ms = r.at_ms + WEATHER_KEPT_MS;
	rc = offline ? fw_store_record_put(st, &r, false, NULL, &err) : fw_store_record_remove(st, r.kind, r.key, FW_STR_NONE, &err);
	if (rc && rc != FW_ENOTFOUND)
		fw_debug("the state of the network could not be noted: %s", err.text);
	c->offline = offline;
	c->offline_at_ms = mono_ms + WEATHER_EVERY_MS;
}

void chores_do(struct chores *c, struct fw_store *st, const char *worker, const struct fw_meter_slot *m, bool first, int64_t mono_ms)
{
	weather(c, st, worker, m, mono_ms);
	if (first)
		probe(c, st, mono_ms);
}
