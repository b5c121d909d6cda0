/* SPDX-License-Identifier: ISC */
/*
 * The old contract (struct fw_store_driver) over drivers of the new one (driver.h), so that one
 * changes at a time: it goes away with the last caller of the old one.
 */
#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "store/adapter.h"
#include "base/banned.h"

#define CONTROL FW_STR("control")
#define PAUSED FW_STR("paused")
#define WORKER FW_STR("worker")
#define CONTROL_KEPT_MS (7 * FW_DAY_MS)
#define WORKER_KEPT_MS FW_DAY_MS

struct store *adapter_store(struct fw_store *st)
{
	return ((struct adapter *)st)->st; /* base comes first */
}

/* ---- life ------------------------------------------------------------------------------------ */

static int ping(struct fw_store *st, struct fw_err *err)
{
	int64_t now_ms;

	return adapter_store(st)->is->clock(adapter_store(st), &now_ms, err);
}

static int clock_get(struct fw_store *st, int64_t *now_ms, struct fw_err *err)
{
	return adapter_store(st)->is->clock(adapter_store(st), now_ms, err);
}

struct findings {
	void (*cb)(void *ctx, const char *finding);
	void *ctx;
};

static void finding(void *ctx, const char *name, int level, const char *found, const char *remedy)
{
	const struct findings *f = ctx;

	(void)name;
	(void)remedy;
	if (level == 2)
		f->cb(f->ctx, found);
}

static int check(struct fw_store *st, void (*cb)(void *ctx, const char *finding), void *ctx, struct fw_err *err)
{
	struct findings f = {cb, ctx};

	return adapter_store(st)->is->inspect(adapter_store(st), true, finding, &f, err);
}

static int inspect(struct fw_store *st, fw_inspect_cb *cb, void *ctx, struct fw_err *err)
{
	return adapter_store(st)->is->inspect(adapter_store(st), false, cb, ctx, err);
}

static int wait_for(struct fw_store *st, int wake_fd, int64_t timeout_ms, bool *changed, struct fw_err *err)
{
	return adapter_store(st)->is->wait(adapter_store(st), wake_fd, timeout_ms, changed, err);
}

static int stats(struct fw_store *st, int64_t now_ms, struct fw_store_stats *out, struct fw_err *err)
{
	(void)now_ms;
	return adapter_store(st)->is->stats(adapter_store(st), out, err);
}

/* ---- feeds ----------------------------------------------------------------------------------- */

static int subscribe(struct fw_store *st, struct fw_feed_new *feed, size_t n, struct fw_err *err)
{
	struct fw_feed *f = calloc(n + 1, sizeof(*f));
	struct store_feed_new *made = calloc(n + 1, sizeof(*made));
	int rc = f && made ? 0 : fw_no_memory(err);

	for (size_t i = 0; !rc && i < n; i++)
		f[i] = (struct fw_feed){.url = feed[i].url,
			.user_title = feed[i].user_title,
			.folder = feed[i].folder,
			.home_page_url = feed[i].home_page_url,
			.username = feed[i].username,
			.password = feed[i].password,
			.interval_ms = feed[i].interval_ms,
			.due_at_ms = feed[i].due_at_ms};
	if (!rc)
		rc = adapter_store(st)->is->load(
			adapter_store(st), &(struct store_load){.rows = {.feed = f, .feed_n = n}, .made = made}, err);
	for (size_t i = 0; !rc && i < n; i++) {
		feed[i].id = made[i].id;
		feed[i].existed = made[i].existed;
	}
	free(f);
	free(made);
	return rc;
}

static int load(struct fw_store *st, const struct fw_load *rows, struct fw_err *err)
{
	return adapter_store(st)->is->load(adapter_store(st), &(struct store_load){.rows = *rows}, err);
}

static int unsubscribe(struct fw_store *st, int64_t feed_id, struct fw_err *err)
{
	return adapter_store(st)->is->feed_drop(adapter_store(st), feed_id, 0, err);
}

static int feed_merge(struct fw_store *st, int64_t from_id, int64_t into_id, struct fw_err *err)
{
	return adapter_store(st)->is->feed_drop(adapter_store(st), from_id, into_id, err);
}

struct found {
	struct fw_arena *a;
	struct fw_feed *out;
};

static int feed_found(void *ctx, const struct fw_feed *feed)
{
	struct found *f = ctx;

	*f->out = *feed;
	return fw_store_feed_dup(f->a, f->out) ? 0 : FW_ENOMEM;
}

static int feed_find(
	struct fw_store *st, int64_t id, struct fw_str url, struct fw_arena *a, struct fw_feed *out, struct fw_err *err)
{
	struct found f = {a, out};
	struct store_feed_query q = {.id = id, .url = id ? FW_STR_NONE : url};
	int rc = adapter_store(st)->is->feed_list(adapter_store(st), &q, feed_found, &f, err);

	return rc == FW_ENOMEM ? fw_no_memory(err) : rc;
}

static int feed_list(struct fw_store *st, const struct fw_feed_query *q, fw_feed_cb *cb, void *ctx, struct fw_err *err)
{
	return adapter_store(st)->is->feed_list(adapter_store(st), &(struct store_feed_query){.q = *q}, cb, ctx, err);
}

static int feed_set(struct fw_store *st, const struct fw_feed *feed, unsigned what, struct fw_err *err)
{
	return adapter_store(st)->is->feed_set(adapter_store(st), feed, what, err);
}

static int entry_list(
	struct fw_store *st, const struct fw_entry_query *q, fw_entry_cb *cb, void *ctx, struct fw_err *err)
{
	return adapter_store(st)->is->entry_list(adapter_store(st), q, cb, ctx, err);
}

static int visit_list(
	struct fw_store *st, const struct fw_visit_query *q, fw_visit_cb *cb, void *ctx, struct fw_err *err)
{
	return adapter_store(st)->is->visit_list(adapter_store(st), q, cb, ctx, err);
}

static int key_list(struct fw_store *st, int64_t first, int64_t last, fw_key_cb *cb, void *ctx, struct fw_err *err)
{
	return adapter_store(st)->is->key_list(adapter_store(st), first, last, cb, ctx, err);
}

/* ---- what is due ----------------------------------------------------------------------------- */

static int due_add(void *ctx, const struct store_due *d)
{
	fw_buf_add(ctx,
		&(struct fw_due_row){
			d->feed_id, d->host_id, d->due_at_ms, d->expect_us, d->expect_dev_us, d->last_visit_ms},
		sizeof(struct fw_due_row));
	return 0;
}

static int by_due(const void *a, const void *b)
{
	const struct fw_due_row *x = a, *y = b;

	if (x->due_at_ms != y->due_at_ms)
		return x->due_at_ms < y->due_at_ms ? -1 : 1;
	return x->feed_id < y->feed_id ? -1 : x->feed_id > y->feed_id;
}

static int due_list(
	struct fw_store *st, int64_t due_before_ms, size_t limit, fw_due_cb *cb, void *ctx, struct fw_err *err)
{
	struct fw_buf b = FW_BUF_INIT(0);
	struct store_due_query q = {.shard = -1, .until_ms = due_before_ms, .due = due_add, .ctx = &b};
	int rc = adapter_store(st)->is->due(adapter_store(st), &q, err);
	size_t n = b.len / sizeof(struct fw_due_row);
	struct fw_due_row *row = (struct fw_due_row *)(void *)b.p;

	rc = rc ? rc : b.rc ? fw_no_memory(err) : 0;
	if (!rc && n)
		qsort(row, n, sizeof(*row), by_due);
	for (size_t i = 0; !rc && i < n && (!limit || i < limit); i++)
		rc = cb(ctx, &row[i]);
	fw_buf_finish(&b);
	return rc;
}

struct pending {
	int64_t n, wake_ms;
};

static int pending_add(void *ctx, const struct store_due *d)
{
	struct pending *p = ctx;

	p->n++;
	if (p->wake_ms == FW_NO_DATE || d->due_at_ms < p->wake_ms)
		p->wake_ms = d->due_at_ms;
	return 0;
}

static int pending(struct fw_store *st, int64_t due_before_ms, int64_t *n, int64_t *wake_ms, struct fw_err *err)
{
	struct pending p = {0, FW_NO_DATE};
	struct store_due_query q = {.shard = -1, .until_ms = due_before_ms, .due = pending_add, .ctx = &p};
	int rc = adapter_store(st)->is->due(adapter_store(st), &q, err);

	*n = p.n;
	*wake_ms = p.wake_ms;
	return rc;
}

/* ---- records, and what is made of them ------------------------------------------------------- */

static int record_put(struct fw_store *st, const struct fw_record *r, bool if_absent, bool *was, struct fw_err *err)
{
	return adapter_store(st)->is->record_put(adapter_store(st), r, if_absent, false, was, err);
}

struct record_found {
	struct fw_arena *a;
	struct fw_record *out;
};

static int record_row(void *ctx, const struct fw_record *r)
{
	struct record_found *f = ctx;

	*f->out = *r;
	return fw_store_record_dup(f->a, f->out) ? 0 : FW_ENOMEM;
}

static int record_get(struct fw_store *st, struct fw_str kind, struct fw_str key, struct fw_arena *a,
	struct fw_record *out, struct fw_err *err)
{
	struct record_found f = {a, out};
	struct store_record_query q = {.q.kind = kind, .key = key};
	int rc = adapter_store(st)->is->record_list(adapter_store(st), &q, record_row, &f, err);

	return rc == FW_ENOMEM ? fw_no_memory(err) : rc;
}

static int record_list(
	struct fw_store *st, const struct fw_record_query *q, fw_record_cb *cb, void *ctx, struct fw_err *err)
{
	return adapter_store(st)->is->record_list(
		adapter_store(st), &(struct store_record_query){.q = *q}, cb, ctx, err);
}

static int record_remove(
	struct fw_store *st, struct fw_str kind, struct fw_str key, struct fw_str value, struct fw_err *err)
{
	return adapter_store(st)->is->record_remove(adapter_store(st), kind, key, value, err);
}

/* A message's id is its key: the store's time in us, one more where that is taken. */
static int control_put(struct fw_store *st, enum fw_control_kind kind, int64_t now_ms, struct fw_err *err)
{
	struct store *to = adapter_store(st);
	struct fw_record r = {.kind = CONTROL, .at_ms = now_ms};
	char key[24], value[24];
	bool was = true;
	int64_t id;
	int rc = now_ms ? 0 : to->is->clock(to, &r.at_ms, err);

	(void)fw_snprintf(value, sizeof(value), "%d", (int)kind);
	r.value = fw_str(value);
	if (!rc && (kind == FW_CONTROL_PAUSE || kind == FW_CONTROL_RESUME)) {
		struct fw_record paused = {.kind = PAUSED,
			.key = FW_STR("all"),
			.value = r.value,
			.at_ms = r.at_ms,
			.until_ms = FW_NO_DATE};

		rc = to->is->record_put(to, &paused, false, false, &was, err);
	}
	r.until_ms = r.at_ms + CONTROL_KEPT_MS;
	was = true;
	for (id = r.at_ms * 1000; !rc && was; id++) {
		(void)fw_snprintf(key, sizeof(key), "%020lld", (long long)id);
		r.key = fw_str(key);
		rc = to->is->record_put(to, &r, true, true, &was, err);
	}
	return rc;
}

static int control_row(void *ctx, const struct fw_record *r)
{
	struct fw_control *c = ctx;
	int64_t kind;

	if (!fw_str_int(r->key, &c->id) || !fw_str_int(r->value, &kind))
		return 0;
	c->kind = (enum fw_control_kind)kind;
	c->created_ms = r->at_ms;
	return 0;
}

static int control_take(struct fw_store *st, int64_t after_id, struct fw_control *out, struct fw_err *err)
{
	struct store *to = adapter_store(st);
	struct store_record_query paused = {.q.kind = PAUSED, .key = FW_STR("all")};
	struct fw_control is = {.kind = FW_CONTROL_NONE};
	char key[24];
	int rc;

	(void)fw_snprintf(key, sizeof(key), "%020lld", (long long)FW_MAX(after_id, INT64_C(0)));
	rc = to->is->record_list(to,
		&(struct store_record_query){.q = {.kind = CONTROL,
						     .after_kind = CONTROL,
						     .after_key = fw_str(key),
						     .limit = after_id < 0 ? 0 : 1}},
		control_row, out, err);
	if (rc || after_id >= 0)
		return rc;
	out->kind = FW_CONTROL_NONE;
	rc = to->is->record_list(to, &paused, control_row, &is, err);
	if (rc && rc != FW_ENOTFOUND)
		return rc;
	out->paused = !rc && is.kind == FW_CONTROL_PAUSE;
	return 0;
}

int adapter_beat_put(struct fw_store *st, const struct fw_beat *b, int64_t now_ms, struct fw_err *err)
{
	struct fw_buf text = FW_BUF_INIT(0);
	struct fw_record r = {
		.kind = WORKER, .key = fw_str(b->worker), .at_ms = now_ms, .until_ms = now_ms + WORKER_KEPT_MS};
	bool was;
	int rc;

	fw_buf_addf(&text, "%lld %lld %lld %lld %lld %lld %lld %lld", (long long)b->pid, (long long)b->started_ms,
		(long long)b->run_id, (long long)b->visits, (long long)b->new_entries, (long long)b->failures,
		(long long)b->in_flight, (long long)b->slots);
	r.value = fw_buf_str(&text);
	rc = text.rc ? fw_no_memory(err) :
		       adapter_store(st)->is->record_put(adapter_store(st), &r, false, false, &was, err);
	fw_buf_finish(&text);
	return rc;
}

struct beats {
	int64_t since_ms;
	fw_beat_cb *cb;
	void *ctx;
};

static int beat_row(void *ctx, const struct fw_record *r)
{
	struct beats *b = ctx;
	int64_t v[8] = {0};
	struct fw_str rest = r->value;
	char name[FW_RECORD_KEY_MAX + 1];
	struct fw_beat beat;

	if (r->at_ms < b->since_ms || !fw_str_copy(name, sizeof(name), r->key))
		return 0;
	for (size_t i = 0; i < FW_N(v); i++) {
		if (!fw_str_int(fw_str_split(rest, ' ', &rest), &v[i]))
			return 0;
	}
	beat = (struct fw_beat){.worker = name,
		.pid = v[0],
		.started_ms = v[1],
		.run_id = v[2],
		.visits = (uint64_t)v[3],
		.new_entries = (uint64_t)v[4],
		.failures = (uint64_t)v[5],
		.in_flight = (uint32_t)v[6],
		.slots = (uint32_t)v[7],
		.at_ms = r->at_ms};
	return b->cb(b->ctx, &beat);
}

static int beat_list(struct fw_store *st, int64_t since_ms, fw_beat_cb *cb, void *ctx, struct fw_err *err)
{
	struct beats b = {since_ms, cb, ctx};
	struct store_record_query q = {.q = {.kind = WORKER, .after_kind = WORKER, .after_key = FW_STR("")}};

	return adapter_store(st)->is->record_list(adapter_store(st), &q, beat_row, &b, err);
}

/* ---- events ---------------------------------------------------------------------------------- */

static int event_put(struct fw_store *st, const struct fw_event *event, size_t n, struct fw_err *err)
{
	return adapter_store(st)->is->event_put(adapter_store(st), event, n, NULL, 0, err);
}

static int event_bury(struct fw_store *st, const struct fw_dead_event *event, struct fw_err *err)
{
	return adapter_store(st)->is->event_put(adapter_store(st), NULL, 0, event, 1, err);
}

static int event_list(
	struct fw_store *st, int64_t after_id, size_t limit, fw_event_cb *cb, void *ctx, struct fw_err *err)
{
	return adapter_store(st)->is->event_list(adapter_store(st),
		&(struct store_event_query){.after_id = after_id, .limit = limit, .event = cb, .ctx = ctx}, err);
}

static int event_dead_list(
	struct fw_store *st, int64_t after_id, size_t limit, fw_dead_event_cb *cb, void *ctx, struct fw_err *err)
{
	return adapter_store(st)->is->event_list(adapter_store(st),
		&(struct store_event_query){.after_id = after_id, .limit = limit, .dead = cb, .ctx = ctx}, err);
}

static int event_unbury(struct fw_store *st, const struct fw_dead_event *event, size_t n, struct fw_err *err)
{
	int64_t *id = calloc(n + 1, sizeof(*id));
	int rc;

	if (!id)
		return fw_no_memory(err);
	for (size_t i = 0; i < n; i++)
		id[i] = event[i].id;
	rc = adapter_store(st)->is->event_remove(adapter_store(st), id, n, err);
	free(id);
	return rc;
}

/* ---- maintenance ----------------------------------------------------------------------------- */

/* All of it: steps until there is no more. */
static int prune_all(struct fw_store *st, struct store_prune *p, struct fw_err *err)
{
	int rc;

	do {
		p->more = false;
		rc = adapter_store(st)->is->prune(adapter_store(st), p, err);
	} while (!rc && p->more);
	return rc;
}

static int upkeep(struct fw_store *st, int64_t now_ms, bool *more, struct fw_err *err)
{
	struct store_prune p = {.now_ms = now_ms, .index = true};
	int rc = adapter_store(st)->is->prune(adapter_store(st), &p, err);

	*more = p.more;
	return rc;
}

static int prune(
	struct fw_store *st, int64_t visits_before_ms, int64_t entries_before_ms, int64_t *n, struct fw_err *err)
{
	struct store_prune p = {
		.now_ms = fw_now_ms(), .visits_before_ms = visits_before_ms, .entries_before_ms = entries_before_ms};
	int rc = prune_all(st, &p, err);

	*n = p.visit_n + p.entry_n;
	return rc;
}

static int event_prune(struct fw_store *st, int64_t before_ms, int64_t *n, struct fw_err *err)
{
	struct store_prune p = {.now_ms = fw_now_ms(), .events_before_ms = before_ms};
	int rc = adapter_store(st)->is->prune(adapter_store(st), &p, err);

	*n = p.event_n;
	return rc;
}

static int record_prune(struct fw_store *st, int64_t now_ms, int64_t *n, struct fw_err *err)
{
	struct store_prune p = {.now_ms = now_ms, .records = true};
	int rc = prune_all(st, &p, err);

	*n = p.record_n;
	return rc;
}

/* ---- the schedule ---------------------------------------------------------------------------- */

static int claim(struct fw_store *st, const struct fw_claim_ask *ask, struct fw_arena *a, struct fw_lease *out,
	struct fw_claim_got *got, struct fw_err *err)
{
	(void)ask;
	(void)a;
	(void)out;
	(void)got;
	return fw_err_set(err, FW_EUNSUP, "%s: claims are the owner's of shards", st->driver->name);
}

/* A push needs no lease. */
static int lend(struct fw_store *st, const struct fw_lend_ask *ask, struct fw_lend_got *got, struct fw_err *err)
{
	struct fw_arena a;
	struct fw_feed feed;
	int rc;

	fw_arena_init(&a, 0);
	rc = feed_find(st, ask->feed_id, FW_STR_NONE, &a, &feed, err);
	if (!rc && fw_feed_takes_entries(feed.status))
		*got = (struct fw_lend_got){.fence = INT64_MAX, .until_ms = INT64_MAX};
	else if (!rc)
		*got = (struct fw_lend_got){.status = feed.status};
	fw_arena_finish(&a);
	return rc;
}

static int commit(struct fw_store *st, struct fw_commit *batch, struct fw_err *err)
{
	struct store_outcome *o = calloc(batch->n + 1, sizeof(*o));
	struct store_commit c = {.outcome = o, .n = batch->n};
	int rc = o ? 0 : fw_no_memory(err);

	for (size_t i = 0; !rc && i < batch->n; i++) {
		const struct fw_outcome *from = &batch->outcome[i];

		if (from->visit.kind != FW_VISIT_PUSHED)
			rc = fw_err_set(err, FW_EUNSUP, "%s: visits are committed by the owner of their shard",
				st->driver->name);
		o[i] = (struct store_outcome){.feed_id = from->feed_id,
			.feed = from->feed,
			.groups = from->groups,
			.visit = from->visit,
			.entries = from->entries,
			.entry_n = from->entry_n};
	}
	if (!rc && batch->n)
		rc = adapter_store(st)->is->commit(adapter_store(st), &c, err);
	for (size_t i = 0; !rc && i < batch->n; i++) {
		batch->outcome[i].rc = o[i].rc == FW_ENOTFOUND ? FW_ESTALE : o[i].rc;
		batch->outcome[i].visit.new_n = o[i].visit.new_n;
		batch->outcome[i].visit.changed_n = o[i].visit.changed_n;
	}
	if (!rc && batch->beat)
		rc = adapter_beat_put(st, batch->beat, batch->now_ms ? batch->now_ms : fw_now_ms(), err);
	free(o);
	return rc;
}

static int release(struct fw_store *st, const struct fw_lease *lease, size_t n, struct fw_err *err)
{
	(void)st;
	(void)lease;
	(void)n;
	(void)err;
	return 0;
}

static int bury(struct fw_store *st, const char *worker, int64_t crashed_feed_id, int64_t now_ms, struct fw_err *err)
{
	(void)now_ms;
	return adapter_store(st)->is->give(
		adapter_store(st), &(struct store_give){.worker = worker, .crashed_feed_id = crashed_feed_id}, err);
}

/* ---- drivers --------------------------------------------------------------------------------- */

static int open_over(
	const struct store_driver *driver, const struct fw_store_config *cfg, struct fw_store **out, struct fw_err *err)
{
	struct adapter *a = calloc(1, sizeof(*a));
	int rc = a ? driver->open(cfg, &a->st, err) : fw_no_memory(err);

	if (rc)
		free(a);
	else
		*out = &a->base;
	return rc;
}

static void close_it(struct fw_store *st)
{
	struct adapter *a = (struct adapter *)st;

	a->st->is->close(a->st);
	free(a);
}

#define DRIVER(which) \
	static int open_##which(const struct fw_store_config *cfg, struct fw_store **out, struct fw_err *err) \
	{ \
		return open_over(&store_##which, cfg, out, err); \
	} \
	const struct fw_store_driver adapter_##which = { \
		.abi = FW_STORE_ABI, .name = #which, .schemes = schemes_##which, .open = open_##which, \
		.close = close_it, .ping = ping, .check = check, .claim = claim, .commit = commit, \
		.release = release, .bury = bury, .wait = wait_for, .subscribe = subscribe, \
		.unsubscribe = unsubscribe, .feed_find = feed_find, .feed_list = feed_list, .feed_set = feed_set, \
		.entry_list = entry_list, .visit_list = visit_list, .stats = stats, .pending = pending, \
		.control_put = control_put, .control_take = control_take, .beat_list = beat_list, .upkeep = upkeep, \
		.prune = prune, .load = load, .key_list = key_list, .clock = clock_get, .inspect = inspect, \
		.event_put = event_put, .event_bury = event_bury, .event_list = event_list, \
		.event_dead_list = event_dead_list, .event_prune = event_prune, .record_put = record_put, \
		.record_get = record_get, .record_list = record_list, .record_remove = record_remove, \
		.record_prune = record_prune, .lend = lend, .event_unbury = event_unbury, .due_list = due_list, \
		.feed_merge = feed_merge, \
	}

static const char *const schemes_sqlite[] = {"sqlite", NULL};
DRIVER(sqlite);
static const char *const schemes_memory[] = {"memory", NULL};
DRIVER(memory);
#if FW_HAVE_POSTGRES
static const char *const schemes_postgres[] = {FW_STORE_POSTGRES_SCHEMES};
DRIVER(postgres);
#endif
