/* SPDX-License-Identifier: ISC */
#include "base/log.h"
#include "feedwheel/ingest.h"
#include "base/banned.h"

static void tell(const char *what, int rc, int64_t n, const struct fw_err *err)
{
	if (rc && rc != FW_EUNSUP)
		fw_warn("forgetting old %s: %s; it is tried again later", what, err->text);
	else if (n)
		fw_debug("%lld old %s forgotten", (long long)n, what);
}

int fw_keep(struct fw_store *st, const struct fw_config *c, int64_t now_ms, bool *more)
{
	struct fw_err err;
	bool more_events;
	int64_t n;
	int rc = fw_store_record_prune(st, now_ms, &n, more, &err);

	tell("records", rc, n, &err);
	if (rc || !c->keep_events_ms)
		return rc;
	rc = fw_store_event_prune(st, now_ms - c->keep_events_ms, &n, &more_events, &err);
	tell("events", rc, n, &err);
	*more = *more || more_events;
	return rc;
}
