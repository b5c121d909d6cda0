/* SPDX-License-Identifier: ISC */
/*
 * Calls of all slots of the Redis driver, for servers that answer nonsense: in redis_faults.c a
 * server whose replies are exchanged one by one, in fuzz_redis.c any bytes. Each call reads what it
 * is shown, so that a sanitizer sees a text that is not there.
 */
#ifndef TEST_STORE_REDIS_CALLS_H
#define TEST_STORE_REDIS_CALLS_H

#include "store/inbox.h"

static volatile unsigned calls_sum;

static void calls_touch(struct fw_str s)
{
	for (size_t i = 0; s.p && i <= s.len; i++) /* its NUL too */
		calls_sum += (unsigned char)s.p[i];
}

static int calls_on_feed(void *ctx, const struct fw_feed *f)
{
	(void)ctx;
	calls_touch(f->url);
	calls_touch(f->title);
	calls_touch(f->folder);
	calls_touch(f->why);
	return 0;
}

static int calls_on_entry(void *ctx, const struct fw_entry_row *e)
{
	(void)ctx;
	calls_touch(e->title);
	calls_touch(e->content);
	calls_touch(e->feed_url);
	return 0;
}

static int calls_on_revision(void *ctx, const struct fw_entry_row *e, bool cut)
{
	(void)cut;
	return calls_on_entry(ctx, e);
}

static int calls_on_change(void *ctx, const struct fw_change *c)
{
	(void)ctx;
	calls_sum += (unsigned)c->id;
	return 0;
}

static int calls_on_key(void *ctx, const struct fw_entry_key *k)
{
	(void)ctx;
	calls_sum += k->key[0];
	return 0;
}

static int calls_on_visit(void *ctx, const struct fw_visit *v)
{
	(void)ctx;
	calls_touch(v->error);
	calls_touch(v->feed_url);
	return 0;
}

static int calls_on_match(void *ctx, const struct fw_match *m)
{
	(void)ctx;
	calls_sum += (unsigned)m->change_id;
	return 0;
}

static int calls_on_summary(void *ctx, int64_t order_id, int64_t pending_n, int64_t dead_n, int64_t oldest_ms)
{
	(void)ctx;
	calls_sum += (unsigned)(order_id ^ pending_n ^ dead_n ^ oldest_ms);
	return 0;
}

static int calls_on_event(void *ctx, const struct fw_event *e)
{
	(void)ctx;
	calls_touch(e->property);
	return 0;
}

static int calls_on_dead(void *ctx, const struct fw_dead_letter *d)
{
	(void)ctx;
	calls_touch(d->row);
	calls_touch(d->reason);
	return 0;
}

static int calls_on_record(void *ctx, const struct fw_record *r)
{
	(void)ctx;
	calls_touch(r->key);
	calls_touch(r->value);
	return 0;
}

static int calls_on_due(void *ctx, const struct store_due *d)
{
	(void)ctx;
	calls_sum += (unsigned)d->feed_id;
	return 0;
}

static int calls_on_host(void *ctx, const struct store_host *h)
{
	(void)ctx;
	calls_sum += (unsigned)h->id;
	return 0;
}

static void calls_on_finding(void *ctx, const char *name, int level, const char *found, const char *remedy)
{
	(void)ctx;
	(void)level;
	calls_touch(fw_str(name));
	calls_touch(fw_str(found));
	calls_touch(fw_str(remedy));
}

static int calls_on_inbox(void *ctx, const struct store_inbox_feed *row, struct fw_feed_new *feed, struct fw_err *err)
{
	(void)ctx;
	if (!row->url.len || row->url.p[0] != 'h')
		return fw_err_set(err, FW_EINVAL, "no address");
	feed->url = row->url;
	return 0;
}

/* ---- the calls ------------------------------------------------------------------------------- */

#define CALLS_MS INT64_C(1700000000000)

static int calls_clock(struct store *st, struct fw_err *err)
{
	int64_t now_ms;

	return st->driver->clock(st, &now_ms, err);
}

static int calls_stats(struct store *st, struct fw_err *err)
{
	struct fw_store_stats s;

	return st->driver->stats(st, &s, err);
}

static int calls_inspect(struct store *st, struct fw_err *err)
{
	return st->driver->inspect(st, false, calls_on_finding, NULL, err);
}

static int calls_inspect_deep(struct store *st, struct fw_err *err)
{
	return st->driver->inspect(st, true, calls_on_finding, NULL, err);
}

static int calls_due(struct store *st, struct fw_err *err)
{
	struct store_due_query q = {.shard = store_host_shard(store_host_id(FW_STR("a.example"))),
		.until_ms = INT64_MAX,
		.due = calls_on_due,
		.host = calls_on_host};

	return st->driver->due(st, &q, err);
}

static int calls_heartbeat(struct store *st, struct fw_err *err)
{
	static struct store_lease l; /* large */

	l = (struct store_lease){.lease_ms = 60000, .expected = 4};
	return st->driver->heartbeat(st, "w", &l, err);
}

static int calls_release(struct store *st, struct fw_err *err)
{
	return st->driver->release(st, &(struct store_release){.worker = "w", .crashed_feed_id = 1}, err);
}

static int calls_load(struct store *st, struct fw_err *err)
{
	const struct fw_feed feed[] = {{.id = 1, .url = FW_STR("https://a.example/"), .title = FW_STR("A")},
		{.id = 2, .url = FW_STR("https://b.example/")}, {.id = 3, .url = FW_STR("https://c.example/")}};
	const struct fw_entry_row entry[] = {{.id = 10, .feed_id = 1, .key = "1", .seen_ms = CALLS_MS, .revision = 1},
		{.id = 11, .feed_id = 2, .key = "2", .seen_ms = CALLS_MS, .revision = 1, .content = FW_STR("<p>c")}};
	const struct fw_visit visit[] = {{.id = 5, .feed_id = 1, .at_ms = CALLS_MS, .error = FW_STR("x")}};
	const struct fw_entry_key key[] = {{.feed_id = 1, .key = "3", .hash = 7}};
	struct store_load l = {.rows = {feed, entry, key, visit, 3, 2, 1, 1, 12}};

	return st->driver->load(st, &l, err);
}

static int calls_subscribe(struct store *st, struct fw_err *err)
{
	const struct fw_feed feed = {.url = FW_STR("https://d.example/")};
	struct store_feed_new made;
	struct store_load l = {.rows = {.feed = &feed, .feed_n = 1}, .made = &made};

	return st->driver->load(st, &l, err);
}

/* Its entries are new, changed and retracted. */
static int calls_commit_under(struct store *st, int64_t lease_id, enum fw_visit_kind kind, struct fw_err *err)
{
	static int64_t nth;
	struct fw_feed f = {.id = 1,
		.url = FW_STR("https://a.example/"),
		.title = FW_STR("A"),
		.due_at_ms = CALLS_MS,
		.last_visit_ms = CALLS_MS + ++nth};
	struct fw_entry_row e[] = {{.key = "1", .hash = (uint64_t)nth, .title = FW_STR("t")}, {.hash = 1}};
	const struct fw_entry_key gone = {.feed_id = 1, .key = "2"};
	struct fw_outcome o = {.feed_id = 1,
		.host_id = store_host_id(FW_STR("a.example")),
		.feed = &f,
		.groups = kind == FW_VISIT_PUSHED ? FW_GROUP_META : FW_GROUP_META | FW_GROUP_URL,
		.visit = {.at_ms = CALLS_MS, .kind = kind, .slot = -1},
		.entries = e,
		.entry_n = FW_N(e),
		.retracted = &gone,
		.retracted_n = 1};
	struct store_host h = {.id = o.host_id, .others = true};

	memcpy(e[1].key, &nth, sizeof(nth));
	return st->driver->commit(
		st, &(struct store_commit){.lease_id = lease_id, .outcome = &o, .n = 1, .host = &h, .host_n = 1}, err);
}

static int calls_commit(struct store *st, struct fw_err *err)
{
	static struct store_lease l;
	int rc;

	l = (struct store_lease){.lease_ms = 60000};
	rc = st->driver->heartbeat(st, "w", &l, err);
	return rc ? rc : calls_commit_under(st, l.id, FW_VISIT_OK, err);
}

static int calls_push(struct store *st, struct fw_err *err)
{
	return calls_commit_under(st, 0, FW_VISIT_PUSHED, err);
}

static int calls_feeds(struct store *st, struct fw_err *err)
{
	return st->driver->feed_list(st, &(struct store_feed_query){.q = {.status = -1}}, calls_on_feed, NULL, err);
}

static int calls_feeds_by_due(struct store *st, struct fw_err *err)
{
	return st->driver->feed_list(
		st, &(struct store_feed_query){.q = {.status = -1, .by_due = true}}, calls_on_feed, NULL, err);
}

static int calls_feed_of_url(struct store *st, struct fw_err *err)
{
	return st->driver->feed_list(
		st, &(struct store_feed_query){.url = FW_STR("https://a.example/")}, calls_on_feed, NULL, err);
}

static int calls_feed_set(struct store *st, struct fw_err *err)
{
	const struct fw_feed f = {.id = 1, .folder = FW_STR("F"), .due_at_ms = CALLS_MS};

	return st->driver->feed_set(st, &f, FW_SET_FOLDER | FW_SET_DUE, err);
}

static int calls_feed_drop(struct store *st, struct fw_err *err)
{
	return st->driver->feed_drop(st, 3, 0, err);
}

static int calls_feed_merge(struct store *st, struct fw_err *err)
{
	return st->driver->feed_drop(st, 2, 1, err);
}

static int calls_entries_as(struct store *st, const struct fw_entry_query *q, struct fw_err *err)
{
	return st->driver->entry_list(
		st, &(struct store_entry_query){.q = *q, .now_ms = CALLS_MS}, calls_on_entry, NULL, err);
}

static int calls_entries(struct store *st, struct fw_err *err)
{
	return calls_entries_as(st, &(struct fw_entry_query){.content = true}, err);
}

static int calls_entries_of_feed(struct store *st, struct fw_err *err)
{
	return calls_entries_as(st, &(struct fw_entry_query){.feed_id = 1, .key = true}, err);
}

static int calls_entries_by_id(struct store *st, struct fw_err *err)
{
	return calls_entries_as(st, &(struct fw_entry_query){.oldest_first = true, .since_ms = CALLS_MS}, err);
}

static int calls_entries_since(struct store *st, struct fw_err *err)
{
	return calls_entries_as(st, &(struct fw_entry_query){.since_ms = CALLS_MS}, err);
}

static int calls_changes(struct store *st, struct fw_err *err)
{
	return st->driver->change_list(st, &(struct store_change_query){.after_id = 0}, calls_on_change, NULL, err);
}

static int calls_revisions(struct store *st, struct fw_err *err)
{
	return st->driver->revision_list(st, 10, calls_on_revision, NULL, err);
}

static int calls_keys(struct store *st, struct fw_err *err)
{
	return st->driver->key_list(st, 1, INT64_MAX, calls_on_key, NULL, err);
}

static int calls_visits(struct store *st, struct fw_err *err)
{
	return st->driver->visit_list(
		st, &(struct fw_visit_query){.since_ms = CALLS_MS - 1, .run_id = 0}, calls_on_visit, NULL, err);
}

static int calls_visits_of_feed(struct store *st, struct fw_err *err)
{
	return st->driver->visit_list(st, &(struct fw_visit_query){.feed_id = 1}, calls_on_visit, NULL, err);
}

static int calls_event_put(struct store *st, struct fw_err *err)
{
	struct fw_event e = {.id = 77 << 22, .property = FW_STR("p")};
	struct fw_dead_letter d = {.id = 78 << 22, .row = FW_STR("{}"), .reason = FW_STR("r")};

	return st->driver->event_put(st, &e, 1, &d, 1, err);
}

static int calls_event_ids(struct store *st, struct fw_err *err)
{
	return st->driver->event_ids(st, &(struct fw_id_range){.first = 1}, err);
}

static int calls_events(struct store *st, struct fw_err *err)
{
	return st->driver->event_list(st, &(struct store_event_query){.event = calls_on_event}, err);
}

static int calls_dead(struct store *st, struct fw_err *err)
{
	return st->driver->event_list(st, &(struct store_event_query){.dead = calls_on_dead}, err);
}

static int calls_match_put(struct store *st, struct fw_err *err)
{
	return st->driver->match_put(
		st, &(struct fw_match){.order_id = 1, .change_id = 10, .entry_id = 10, .feed_id = 1}, 1, false, err);
}

static int calls_matches(struct store *st, struct fw_err *err)
{
	return st->driver->match_list(st, &(struct fw_match_query){.order_id = 1}, calls_on_match, NULL, err);
}

static int calls_match_summary(struct store *st, struct fw_err *err)
{
	return st->driver->match_summary(st, calls_on_summary, NULL, err);
}

static int calls_orders_version(struct store *st, struct fw_err *err)
{
	return st->driver->orders_version(st, true, &(struct fw_orders_version){.part = {0}}, err);
}

static int calls_record_put(struct store *st, struct fw_err *err)
{
	const struct fw_record r = {.kind = FW_STR("k"), .key = FW_STR("1"), .value = FW_STR("v")};
	bool was;

	return st->driver->record_put(st, &r, false, true, &was, err);
}

static int calls_records(struct store *st, struct fw_err *err)
{
	return st->driver->record_list(
		st, &(struct store_record_query){.q = {.limit = 300}}, calls_on_record, NULL, err);
}

static int calls_record_one(struct store *st, struct fw_err *err)
{
	return st->driver->record_list(st, &(struct store_record_query){.q = {.kind = FW_STR("k")}, .key = FW_STR("1")},
		calls_on_record, NULL, err);
}

static int calls_record_remove(struct store *st, struct fw_err *err)
{
	return st->driver->record_remove(st, FW_STR("k"), FW_STR("1"), FW_STR_NONE, err);
}

static int calls_inbox(struct store *st, struct fw_err *err)
{
	return st->driver->inbox(st, &(struct store_inbox){.limit = 10, .feed = calls_on_inbox}, err);
}

static int calls_prune(struct store *st, struct fw_err *err)
{
	struct fw_prune p = {.now_ms = 2 * CALLS_MS,
		.visits_before_ms = CALLS_MS,
		.entries_before_ms = CALLS_MS,
		.events_before_ms = CALLS_MS,
		.changes_before_ms = 2 * CALLS_MS,
		.records = true};

	return st->driver->prune(st, &p, err);
}

static const struct redis_call {
	const char *name;
	int (*run)(struct store *st, struct fw_err *err);
} redis_calls[] = {
	{"clock", calls_clock},
	{"stats", calls_stats},
	{"inspect", calls_inspect},
	{"inspect deep", calls_inspect_deep},
	{"due", calls_due},
	{"heartbeat", calls_heartbeat},
	{"release", calls_release},
	{"load", calls_load},
	{"subscribe", calls_subscribe},
	{"commit", calls_commit},
	{"push", calls_push},
	{"feeds", calls_feeds},
	{"feeds by due", calls_feeds_by_due},
	{"feed of url", calls_feed_of_url},
	{"feed_set", calls_feed_set},
	{"feed_drop", calls_feed_drop},
	{"feed_drop into", calls_feed_merge},
	{"entries", calls_entries},
	{"entries of feed", calls_entries_of_feed},
	{"entries by id", calls_entries_by_id},
	{"entries since", calls_entries_since},
	{"changes", calls_changes},
	{"revisions", calls_revisions},
	{"keys", calls_keys},
	{"visits", calls_visits},
	{"visits of feed", calls_visits_of_feed},
	{"event_put", calls_event_put},
	{"event_ids", calls_event_ids},
	{"events", calls_events},
	{"dead letters", calls_dead},
	{"match_put", calls_match_put},
	{"matches", calls_matches},
	{"match_summary", calls_match_summary},
	{"orders_version", calls_orders_version},
	{"record_put", calls_record_put},
	{"records", calls_records},
	{"record_one", calls_record_one},
	{"record_remove", calls_record_remove},
	{"inbox", calls_inbox},
	{"prune", calls_prune},
};

#endif
