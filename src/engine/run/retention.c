/* SPDX-License-Identifier: ISC */
#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "api/retention.h"

#define CALL_MS 100
#define ENTRIES_EVERY_MS (6 * FW_HOUR_MS)
#define KIND FW_STR("retention")
#define ENTRIES FW_STR("entries")

/* *due: entries were not pruned within ENTRIES_EVERY_MS under this setting. */
static int retention_entries_due(struct fw_store *st, int64_t keep_ms, int64_t now_ms, bool *due, struct fw_err *err)
{
	int64_t done_by = 0;
	struct fw_record r;
	struct fw_arena a;
	int rc;

	fw_arena_init(&a, 0);
	rc = fw_store_record_get(st, KIND, ENTRIES, &a, &r, err);
	*due = rc || r.until_ms <= now_ms || !fw_str_int(r.value, &done_by) || done_by != keep_ms;
	fw_arena_finish(&a);
	return rc == FW_ENOTFOUND ? 0 : rc;
}

static int retention_entries_done(struct fw_store *st, int64_t keep_ms, int64_t now_ms, struct fw_err *err)
{
	char value[24];
	struct fw_record r = {.kind = KIND, .key = ENTRIES, .at_ms = now_ms, .until_ms = now_ms + ENTRIES_EVERY_MS};

	(void)fw_snprintf(value, sizeof(value), "%lld", (long long)keep_ms);
	r.value = fw_str(value);
	return fw_store_record_put(st, &r, false, NULL, err);
}

static int retention_steps(struct fw_store *st, struct fw_prune *p, struct fw_err *err)
{
	int64_t until_ms = fw_mono_ms() + CALL_MS;
	int rc;

	do
		rc = fw_store_prune(st, p, err);
	while (!rc && p->more && fw_mono_ms() < until_ms);
	return rc;
}

static void retention_log(const struct fw_prune *p, int rc, const struct fw_err *err)
{
	if (rc)
		fw_warn("retention: pruning failed: %s; retrying later", err->text);
	if (p->visit_n + p->entry_n + p->event_n + p->record_n + p->change_n)
		fw_debug("retention: pruned %lld visits, %lld entries, %lld events, %lld records, %lld changes",
			(long long)p->visit_n, (long long)p->entry_n, (long long)p->event_n, (long long)p->record_n,
			(long long)p->change_n);
}

static int64_t retention_before(int64_t keep_ms, int64_t now_ms)
{
	return keep_ms ? FW_MAX(now_ms - keep_ms, (int64_t)1) : 0;
}

int fw_retention_run(struct fw_store *st, const struct fw_config *c, int64_t now_ms, bool *more, struct fw_err *err)
{
	struct fw_prune p = {.now_ms = now_ms,
		.records = true,
		.visits_before_ms = retention_before(c->visits_retention_ms, now_ms),
		.events_before_ms = retention_before(c->events_retention_ms, now_ms),
		.changes_before_ms = retention_before(c->changes_retention_ms, now_ms)};
	bool entries = false;
	int rc = c->entries_retention_ms ? retention_entries_due(st, c->entries_retention_ms, now_ms, &entries, err) :
					   0;

	if (entries)
		p.entries_before_ms = retention_before(c->entries_retention_ms, now_ms);
	rc = rc ? rc : retention_steps(st, &p, err);
	*more = !rc && p.more;
	if (!rc && entries && !p.more)
		rc = retention_entries_done(st, c->entries_retention_ms, now_ms, err);
	retention_log(&p, rc, err);
	return rc;
}

int fw_retention_run_pushed(
	struct fw_store *st, const struct fw_config *c, int64_t now_ms, bool *more, struct fw_err *err)
{
	struct fw_prune p = {.now_ms = now_ms,
		.records = true,
		.events_before_ms = retention_before(c->events_retention_ms, now_ms),
		.changes_before_ms = retention_before(c->changes_retention_ms, now_ms)};
	int rc = retention_steps(st, &p, err);

	*more = !rc && p.more;
	retention_log(&p, rc, err);
	return rc;
}

int fw_search_index_step(struct fw_store *st, int64_t now_ms, bool *more, struct fw_err *err)
{
	struct fw_prune p = {.now_ms = now_ms, .index = true};
	int rc = fw_store_prune(st, &p, err);

	*more = !rc && p.more;
	/* another process writes; an unavailable store is reported elsewhere */
	if (rc && rc != FW_EAGAIN && rc != FW_EIO)
		fw_warn("search index not updated: %s; retrying later", err->text);
	return rc;
}
