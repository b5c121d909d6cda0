/* SPDX-License-Identifier: ISC */
/*
 * Gone feeds (POL-10): a server that replies 410 may be wrong, or the address may have another
 * owner next year. The schedule puts the due time of a gone feed far ahead; here the feed is probed
 * when that time has come.
 *
 * Clocks: a clock that was ahead leaves feeds with due times that may be years off. They are found
 * by a visit in the future, or because the clock goes back while we run. Feeds visited in the
 * future are due again within the hour.
 *
 * Blocked feeds: feeds that the address guard refused are fetched when its settings have changed.
 * The former value is a record of kind "setting", with the setting's name as key; no record: it was
 * empty. The record is written after the feeds are due: a crash in between makes them due twice
 * rather than never. A feed's error names the setting that can permit it (fetch/classify.c).
 *
 * Connectivity: that a worker's network is down is a record of kind "connectivity", with the
 * worker's name as key and the time it went down. It expires by itself.
 */
#include <assert.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/run/maintenance.h"

#define PROBE_EVERY_MS FW_HOUR_MS
#define PROBE_MORE_MS FW_MINUTE_MS
/* per call: a thousand feeds that ended on one day are not all probed at once */
#define PROBE_N ((size_t)100)
#define OFFLINE_KIND FW_STR("connectivity")
#define OFFLINE_EVERY_MS FW_MINUTE_MS
#define OFFLINE_EXPIRY_MS (3 * FW_MINUTE_MS)
#define ENOUGH 1            /* stops a listing */
#define AHEAD_MS FW_HOUR_MS /* machines' clocks differ by less */
#define FAR_MS (100 * 366 * FW_DAY_MS)
#define SETTING FW_STR("setting")
#define PAGE_N 500

/* Does not count a feed that was removed meanwhile. */
static int maintenance_set_feed(
	struct fw_store *st, const struct fw_feed *to, unsigned what, size_t *n, struct fw_err *err)
{
	int rc = fw_store_feed_set(st, to, what, err);

	*n += !rc;
	return rc == FW_ENOTFOUND ? 0 : rc;
}

/* ---- gone feeds ------------------------------------------------------------------------------ */

struct gone_feeds {
	int64_t now_ms;
	size_t n;
	int64_t id[PROBE_N];
};

static int gone_on_feed(void *ctx, const struct fw_feed *f)
{
	struct gone_feeds *d = ctx;

	if (f->due_at_ms > d->now_ms || d->n == PROBE_N)
		return ENOUGH;
	d->id[d->n++] = f->id;
	return 0;
}

int maintenance_probe_gone(struct fw_store *st, int64_t now_ms, size_t *n, bool *more, struct fw_err *err)
{
	struct fw_feed_query q = {.status = FW_FEED_GONE, .by_due = true, .limit = PROBE_N};
	struct gone_feeds d = {.now_ms = now_ms};
	int rc = fw_store_feed_list(st, &q, gone_on_feed, &d, err);

	*n = 0;
	*more = d.n == PROBE_N;
	if (rc < 0)
		return rc;
	rc = 0;
	for (size_t i = 0; i < d.n && !rc; i++) {
		struct fw_feed to = {.id = d.id[i], .status = FW_FEED_ACTIVE, .due_at_ms = now_ms};

		rc = maintenance_set_feed(st, &to, FW_SET_STATUS | FW_SET_DUE, n, err);
	}
	return rc;
}

static void maintenance_probe(struct maintenance *c, struct fw_store *st, int64_t mono_ms)
{
	struct fw_err err;
	bool more;
	size_t n;

	if (mono_ms < c->probe_at_ms)
		return;
	if (maintenance_probe_gone(st, fw_store_now_ms(st), &n, &more, &err))
		fw_warn("gone feeds not probed: %s; retrying later", err.text);
	else if (n)
		fw_info("%zu gone feeds are polled once again", n);
	c->probe_at_ms = mono_ms + (more ? PROBE_MORE_MS : PROBE_EVERY_MS);
}

/* ---- a clock that was ahead ------------------------------------------------------------------ */

struct ahead_feeds {
	int64_t now_ms;
	struct fw_buf ids; /* feed ids, 8 bytes each */
};

static int visit_on_newest(void *ctx, const struct fw_visit *v)
{
	*(int64_t *)ctx = v->at_ms;
	return ENOUGH;
}

static int ahead_on_due(void *ctx, const struct fw_due_row *row)
{
	struct ahead_feeds *a = ctx;

	if (row->due_at_ms > a->now_ms + AHEAD_MS)
		fw_buf_add(&a->ids, &row->feed_id, sizeof(row->feed_id));
	return a->ids.rc;
}

/* Reschedule those feeds due in the far future that were visited in the future. */
static int ahead_reschedule(struct fw_store *st, const struct ahead_feeds *all, size_t *n, struct fw_err *err)
{
	const int64_t *id = (const int64_t *)(const void *)all->ids.p;
	struct fw_arena a;
	int rc = 0;

	fw_arena_init(&a, 0);
	for (size_t i = 0; i < all->ids.len / sizeof(*id) && !rc; i++) {
		struct fw_feed f, to = {.id = id[i]};

		fw_arena_reset(&a, 65536);
		rc = fw_store_feed_find(st, id[i], FW_STR_NONE, &a, &f, err);
		if (!rc && f.last_visit_ms > all->now_ms + AHEAD_MS) {
			to.due_at_ms = all->now_ms + (int64_t)(fw_hash64(&f.id, sizeof(f.id)) % (uint64_t)FW_HOUR_MS);
			rc = maintenance_set_feed(st, &to, FW_SET_DUE, n, err);
		}
		rc = rc == FW_ENOTFOUND ? 0 : rc; /* removed meanwhile */
	}
	fw_arena_finish(&a);
	return rc;
}

int maintenance_repair_clock(struct fw_store *st, int64_t now_ms, bool went_back, size_t *n, struct fw_err *err)
{
	struct fw_visit_query q = {.limit = 1};
	struct ahead_feeds all = {.now_ms = now_ms};
	int64_t at_ms = 0;
	int rc = fw_store_visit_list(st, &q, visit_on_newest, &at_ms, err);

	*n = 0;
	if (rc < 0 || (!went_back && at_ms <= now_ms + AHEAD_MS))
		return FW_MIN(rc, 0);
	rc = fw_store_due_list(st, now_ms + FAR_MS, 0, ahead_on_due, &all, err);
	if (rc == FW_ENOMEM)
		fw_err_set(err, rc, "out of memory");
	rc = rc ? rc : ahead_reschedule(st, &all, n, err);
	fw_buf_finish(&all.ids);
	return rc;
}

static void maintenance_clock(struct maintenance *c, struct fw_store *st, int64_t mono_ms)
{
	int64_t now_ms = fw_store_now_ms(st), ahead_ms = now_ms - mono_ms;
	bool went_back = c->unix_mono_ms && ahead_ms < c->unix_mono_ms - AHEAD_MS;
	struct fw_err err;
	size_t n;

	if (mono_ms < c->clock_at_ms && !went_back)
		return;
	c->unix_mono_ms = ahead_ms;
	if (maintenance_repair_clock(st, now_ms, went_back, &n, &err))
		fw_warn("feeds rescheduled by a clock ahead of its time not repaired: %s; retrying later", err.text);
	if (n)
		fw_warn("a clock was ahead: %s due within the hour now, and not in the future",
			FW_COUNT_OF((int64_t)n, "feed is", "feeds are"));
	c->clock_at_ms = mono_ms + PROBE_EVERY_MS;
}

/* ---- blocked feeds --------------------------------------------------------------------------- */

struct blocked_page {
	struct fw_str setting; /* the error must name it */
	int64_t last_id;
	size_t n, seen_n;
	int64_t id[PAGE_N];
};

static int blocked_on_feed(void *ctx, const struct fw_feed *f)
{
	struct blocked_page *p = ctx;

	assert(p->seen_n < PAGE_N);
	p->last_id = f->id;
	p->seen_n++;
	if (f->last_kind == FW_VISIT_BLOCKED && fw_str_find(f->error, p->setting))
		p->id[p->n++] = f->id;
	return 0;
}

static int blocked_make_due(struct fw_store *st, struct fw_str setting, int64_t now_ms, size_t *n, struct fw_err *err)
{
	struct blocked_page p = {.setting = setting};
	int rc;

	do {
		struct fw_feed_query q = {
			.status = FW_FEED_ACTIVE, .failing = true, .after_id = p.last_id, .limit = PAGE_N};

		p.n = p.seen_n = 0;
		rc = fw_store_feed_list(st, &q, blocked_on_feed, &p, err);
		for (size_t i = 0; !rc && i < p.n; i++) {
			struct fw_feed to = {.id = p.id[i], .due_at_ms = now_ms};

			rc = maintenance_set_feed(st, &to, FW_SET_DUE, n, err);
		}
	} while (!rc && p.seen_n == PAGE_N);
	return rc;
}

static bool list_has(struct fw_str list, struct fw_str item)
{
	while (list.p) {
		if (fw_str_eq(fw_str_trim(fw_str_split(list, ',', &list)), item))
			return true;
	}
	return false;
}

/* Does `list` name a network that `other` does not? */
static bool list_has_more(struct fw_str list, struct fw_str other)
{
	while (list.p) {
		struct fw_str item = fw_str_trim(fw_str_split(list, ',', &list));

		if (item.len && !list_has(other, item))
			return true;
	}
	return false;
}

/* more_permits: an added network permits, rather than denies. */
static int blocked_check_setting(struct fw_store *st, struct fw_str setting, const char *now, bool more_permits,
	int64_t now_ms, size_t *n, struct fw_err *err)
{
	struct fw_str is = now ? fw_str(now) : FW_STR("");
	struct fw_record was,
		keep = {.kind = SETTING, .key = setting, .value = is, .at_ms = now_ms, .until_ms = FW_NO_DATE};
	struct fw_arena a;
	int rc;

	fw_arena_init(&a, 0);
	rc = fw_store_record_get(st, SETTING, setting, &a, &was, err);
	if (rc == FW_ENOTFOUND) {
		was.value = FW_STR("");
		rc = 0;
	}
	if (rc || fw_str_eq(was.value, is))
		goto out;
	if (more_permits ? list_has_more(is, was.value) : list_has_more(was.value, is))
		rc = blocked_make_due(st, setting, now_ms, n, err);
	if (!rc)
		rc = fw_store_record_put(st, &keep, false, NULL, err);
out:
	fw_arena_finish(&a);
	return rc;
}

int maintenance_unblock(struct fw_store *st, const struct fw_config *c, int64_t now_ms, size_t *n, struct fw_err *err)
{
	int rc;

	*n = 0;
	rc = blocked_check_setting(st, FW_STR("allow_networks"), c->allow_networks, true, now_ms, n, err);
	return rc ? rc : blocked_check_setting(st, FW_STR("deny_networks"), c->deny_networks, false, now_ms, n, err);
}

/* ---- connectivity ---------------------------------------------------------------------------- */

static void maintenance_record_offline(
	struct maintenance *c, struct fw_store *st, const char *worker, const struct fw_meter_slot *m, int64_t mono_ms)
{
	bool offline = atomic_load_explicit(&m->offline, memory_order_relaxed) != 0;
	struct fw_record r = {.kind = OFFLINE_KIND, .key = fw_str(worker), .value = FW_STR("offline")};
	int64_t now_ms = fw_store_now_ms(st);
	struct fw_err err;
	int rc;

	if (offline == (c->offline_since_ms != 0) && (!offline || mono_ms < c->offline_at_ms))
		return;
	r.at_ms = c->offline_since_ms ? c->offline_since_ms : now_ms;
	r.until_ms = now_ms + OFFLINE_EXPIRY_MS;
	rc = offline ? fw_store_record_put(st, &r, false, NULL, &err) :
		       fw_store_record_remove(st, r.kind, r.key, FW_STR_NONE, &err);
	/* an unavailable store is reported elsewhere */
	if (rc && rc != FW_ENOTFOUND)
		fw_debug("state of the network not recorded: %s", err.text);
	c->offline_since_ms = offline ? r.at_ms : 0;
	c->offline_at_ms = mono_ms + OFFLINE_EVERY_MS;
}

void maintenance_run(struct maintenance *c, struct fw_store *st, const char *worker, const struct fw_meter_slot *m,
	bool first, int64_t mono_ms)
{
	maintenance_record_offline(c, st, worker, m, mono_ms);
	if (!first)
		return;
	maintenance_probe(c, st, mono_ms);
	maintenance_clock(c, st, mono_ms);
}
