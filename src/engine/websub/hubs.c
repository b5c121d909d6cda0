/* SPDX-License-Identifier: ISC */
/*
 * The hubs of a server. One process at a time, the leader, sends requests to hubs and keeps the
 * schedule of subscriptions. Every process stores its counts. The tasks:
 *
 *	counts    stores the counts of deliveries
 *	compare   a follower's: has the leader the same websub_url?
 *	messages  reads the messages to the leader: a hub has verified, a poll found entries that
 *	          its hub had not sent, a user switched a feed
 *	scan      reads all feeds, slice by slice, to find hubs that are new, moved or gone
 *	due       processes due subscriptions: requests, renewals, failures
 *
 * After a failure of the store all state in memory is dropped, and read again.
 */
#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/websub/hubs.h"

#define TICK_MS 200
#define COUNTS_MS (2 * FW_SECOND_MS)
#define MESSAGES_MS (FW_SECOND_MS / 2)
#define WAIT_MS (3 * FW_SECOND_MS) /* how often another process tries to become the leader */
#define GAP_MS (5 * FW_MINUTE_MS)  /* without a leader for this long, deliveries may be lost */
#define CATCH_UP_MS FW_HOUR_MS     /* feeds with a hub are then polled within this time */
#define SLICE 200
#define STEP_MS 100   /* time limit of one step, so that transfers make progress */
#define SCAN_SHARE 10 /* scans take at most this fraction (1/10) of the time */
#define RESPONSE_MAX ((size_t)64 << 10)

enum { COUNTS, COMPARE, MESSAGES, SCAN, DUE, TASK_N };

uint64_t hubs_random(void)
{
	uint64_t rnd = 0;

	return getentropy(&rnd, sizeof(rnd)) ? (uint64_t)fw_mono_us() : rnd;
}

/* ---- items --------------------------------------------------------------- */

static bool hub_item_before(const struct fw_heap_node *a, const struct fw_heap_node *b)
{
	const struct hub_item *x = FW_HEAP_OF(a, struct hub_item, node), *y = FW_HEAP_OF(b, struct hub_item, node);

	return x->at_ms < y->at_ms;
}

static struct fw_str hub_item_key(const int64_t *feed_id)
{
	return (struct fw_str){(const char *)feed_id, sizeof(*feed_id)};
}

struct hub_item *hub_item_find(struct fw_hubs *h, int64_t feed_id)
{
	return fw_map_get(&h->items, hub_item_key(&feed_id));
}

struct hub_item *hub_item_add(struct fw_hubs *h, int64_t feed_id, struct fw_str token, int64_t at_ms)
{
	struct hub_item *it = calloc(1, sizeof(*it));
	int rc = 0;

	assert(feed_id > 0 && token.len < sizeof(it->token));
	if (!it)
		return NULL;
	*it = (struct hub_item){.feed_id = feed_id, .at_ms = at_ms, .scan = h->scan};
	(void)fw_str_copy(it->token, sizeof(it->token), token);
	if (!token.len)
		(void)fw_map_put(&h->items, hub_item_key(&it->feed_id), it, &rc);
	if (rc) {
		free(it);
		return NULL;
	}
	if (!token.len)
		atomic_fetch_add(&websub_meter.known_n, 1);
	fw_heap_put(&h->queue, &it->node);
	return it;
}

void hub_item_schedule(struct fw_hubs *h, struct hub_item *it, int64_t at_ms)
{
	fw_heap_remove(&h->queue, &it->node);
	it->at_ms = at_ms;
	fw_heap_put(&h->queue, &it->node);
}

void hub_item_set_active(struct hub_item *it, bool active)
{
	if (it->active != active)
		atomic_fetch_add(&websub_meter.active_n, active ? 1 : -1);
	it->active = active;
}

void hub_item_remove(struct fw_hubs *h, struct hub_item *it)
{
	struct hub_request *k = it->request;

	it->request = NULL;
	if (k)
		fw_fetch_cancel(&k->fetch);
	hub_item_set_active(it, false);
	fw_heap_remove(&h->queue, &it->node);
	if (!it->token[0]) {
		(void)fw_map_del(&h->items, hub_item_key(&it->feed_id));
		atomic_fetch_sub(&websub_meter.known_n, 1);
	}
	free(it);
}

/* ---- the leader ---------------------------------------------------------- */

static void hubs_drop_state(void *ctx)
{
	struct fw_hubs *h = ctx;

	atomic_store(&websub_meter.leads, false);
	while (h->queue.first)
		hub_item_remove(h, FW_HEAP_OF(h->queue.first, struct hub_item, node));
	fw_map_free(&h->hubs);
	fw_map_init(&h->hubs, hubs_random());
}

/* The key outlives the connection: requests during an outage are checked with it. */
static int hubs_opened(void *ctx, struct fw_store *st, struct fw_err *err)
{
	struct fw_hubs *h = ctx;
	unsigned char key[SUB_KEY_LEN];
	int rc = websub_record_mac_key(st, key, err);

	if (rc)
		return rc;
	pthread_mutex_lock(&h->key_lock);
	memcpy(h->key, key, sizeof(h->key));
	h->has_key = true;
	pthread_mutex_unlock(&h->key_lock);
	return 0;
}

/* Removes a record that is invalid. */
static int load_remove_invalid(struct fw_hubs *h, struct fw_str key, struct fw_str value, struct fw_err *err)
{
	int rc = fw_store_record_remove(service_store(h->service), WEBSUB_RECORD_KIND, key, value, err);

	return rc == FW_ENOTFOUND ? 0 : rc;
}

static int load_sub(void *ctx, struct fw_str key, struct fw_str value, struct fw_arena *a, struct fw_err *err)
{
	struct fw_hubs *h = ctx;
	struct hub_item *it;
	struct sub s;

	if (!websub_record_sub_read(value, a, &s))
		return load_remove_invalid(h, key, value, err);
	it = hub_item_add(h, s.feed_id, FW_STR_NONE,
		s.state == FW_WEBSUB_ACTIVE && callback_is_ours(h->key, s.token) ? s.next_ms : 0);
	if (!it)
		return fw_no_memory(err);
	hub_item_set_active(it, s.state == FW_WEBSUB_ACTIVE);
	return 0;
}

/* Retires callbacks that no subscription uses: left over from a crash, or from a second leader. */
static int load_callback(void *ctx, struct fw_str key, struct fw_str value, struct fw_arena *a, struct fw_err *err)
{
	struct fw_hubs *h = ctx;
	struct fw_str token = fw_str_sub(key, 3, key.len);
	struct callback cb;
	struct sub s;
	int rc;

	if (!callback_is_ours(h->key, token) || !websub_record_callback_read(value, a, &cb))
		return load_remove_invalid(h, key, value, err);
	rc = websub_record_sub_get(service_store(h->service), cb.feed_id, a, &s, err);
	if (rc == FW_ENOTFOUND || (!rc && !fw_str_eq(s.token, token) && !fw_str_eq(s.renewal, token)))
		rc = hubs_retire_callback(h, token, err);
	return rc;
}

/* Polls the feeds of active subscriptions: their hubs' deliveries may be lost. */
static int leader_catch_up(struct fw_hubs *h, struct fw_err *err)
{
	size_t at = 0;
	int rc = 0;

	for (struct hub_item *it; !rc && (it = fw_map_next(&h->items, &at, NULL)) != NULL;) {
		struct fw_arena a;
		struct fw_feed f;

		if (!it->active)
			continue;
		fw_arena_init(&a, 0);
		rc = fw_store_feed_find(service_store(h->service), it->feed_id, FW_STR_NONE, &a, &f, err);
		if (!rc && f.push_until_ms)
			rc = hubs_poll_soon(h, &f, CATCH_UP_MS, err);
		rc = rc == FW_ENOTFOUND ? 0 : rc;
		fw_arena_finish(&a);
	}
	return rc;
}

/* Becomes the leader. until_ms: end of the previous leader's lease; 0: none. */
static int leader_start(void *ctx, struct fw_store *st, int64_t until_ms, struct fw_err *err)
{
	struct fw_hubs *h = ctx;
	int rc = websub_record_list(st, "feed/", load_sub, h, err);

	rc = rc ? rc : websub_record_list(st, "cb/", load_callback, h, err);
	rc = rc ? rc : websub_record_base_put(st, fw_buf_str(&h->base), fw_config_now_ms(h->config), err);
	if (!rc && until_ms < fw_config_now_ms(h->config) - GAP_MS)
		rc = leader_catch_up(h, err);
	if (rc)
		return rc;
	atomic_store(&websub_meter.leads, true);
	h->scan_after = 0;
	fw_info("hubs: this process sends the requests to hubs; callbacks start with %s", fw_buf_str(&h->base).p);
	return 0;
}

/*
 * Warns if the leader has another websub_url: if it stops, all feeds are subscribed again with
 * ours.
 */
static int leader_compare_base(void *ctx, struct fw_store *st, struct fw_err *err)
{
	struct fw_hubs *h = ctx;
	struct fw_str base;
	struct fw_arena a;
	int rc;

	fw_arena_init(&a, 0);
	rc = websub_record_base_get(st, &a, &base, err);
	if (!rc && base.len && !fw_str_eq(base, fw_buf_str(&h->base))) {
		if (!h->base_logged)
			fw_warn("hubs: websub_url differs from that of the server that sends requests to hubs (%.*s "
				"there, %s here): set the same on all servers of this store",
				FW_STR_ARG(base), fw_buf_str(&h->base).p);
		h->base_logged = true;
	}
	fw_arena_finish(&a);
	return rc;
}

/* ---- messages ------------------------------------------------------------ */

static int message_process(void *ctx, struct fw_str key, struct fw_str value, struct fw_arena *a, struct fw_err *err)
{
	struct fw_hubs *h = ctx;
	struct missed m = {0};
	struct fw_str word;
	int64_t feed_id = 0;
	bool good = websub_record_key_read(key, "ask", &feed_id, &word), missed = fw_str_eq(word, FW_STR("missed"));
	int rc;

	(void)a;
	if (missed && websub_record_missed_read(value, &m) && fw_config_now_ms(h->config) < m.polled_ms + SUB_GRACE_MS)
		return 0; /* the hub may still deliver it */
	/* removed first, then processed: a message that arrives meanwhile stays */
	rc = fw_store_record_remove(service_store(h->service), WEBSUB_RECORD_KIND, key, value, err);
	if (rc == FW_ENOTFOUND || !good)
		return rc == FW_ENOTFOUND ? 0 : rc;
	if (rc)
		return rc;
	if (missed && m.polled_ms)
		return hubs_missed(h, feed_id, &m, err);
	return hubs_update(h, feed_id,
		fw_str_eq(word, FW_STR("on"))          ? HUBS_SWITCH_ON :
			fw_str_eq(word, FW_STR("off")) ? HUBS_SWITCH_OFF :
							 HUBS_UPDATE,
		err);
}

static int messages_read(void *ctx, struct fw_store *st, struct fw_err *err)
{
	return websub_record_list(st, "ask/", message_process, ctx, err);
}

/* ---- the scan of all feeds ----------------------------------------------- */

struct feed_scan {
	struct fw_hubs *h;
	struct fw_arena a;
	int64_t changed[SLICE];
	size_t changed_n, n;
};

static int scan_on_feed(void *ctx, const struct fw_feed *f)
{
	struct feed_scan *w = ctx;
	struct fw_hubs *h = w->h;
	struct hub_item *it = hub_item_find(h, f->id);
	struct sub_desired desired;

	w->n++;
	h->scan_after = f->id;
	sub_desired_of_feed(f, fw_buf_str(&h->base), &w->a, &desired);
	if (it)
		it->scan = h->scan;
	if (it ? it->desired_hash != sub_desired_hash(&desired) : desired.hub_n > 0)
		w->changed[w->changed_n++] = f->id;
	return 0;
}

/* Processes the subscriptions whose feeds were not found: the feeds were removed. */
static int scan_finish(struct fw_hubs *h, struct fw_err *err)
{
	size_t at = 0, n = 0;
	int rc = 0;

	for (struct hub_item *it; !rc && n < SLICE && (it = fw_map_next(&h->items, &at, NULL)) != NULL;) {
		if (it->scan == h->scan)
			continue;
		it->scan = h->scan; /* once per scan, in case the feed does exist */
		rc = hubs_update(h, it->feed_id, HUBS_UPDATE, err);
		n++;
	}
	h->scan_after = 0;
	h->scan++;
	return rc;
}

static int scan_slice(void *ctx, struct fw_store *st, struct fw_err *err)
{
	struct fw_hubs *h = ctx;
	struct feed_scan w = {.h = h};
	struct fw_feed_query q = {.status = -1, .after_id = h->scan_after, .limit = SLICE};
	int64_t began_ms = fw_mono_ms();
	int rc;

	fw_arena_init(&w.a, 0);
	rc = fw_store_feed_list(st, &q, scan_on_feed, &w, err);
	fw_arena_finish(&w.a);
	for (size_t i = 0; i < w.changed_n && !rc; i++)
		rc = hubs_update(h, w.changed[i], HUBS_UPDATE, err);
	if (!rc && w.n < SLICE)
		rc = scan_finish(h, err);
	service_in(h->service, SCAN,
		SCAN_SHARE * (fw_mono_ms() - began_ms) + (h->scan_after ? 0 : h->config->websub_scan_ms));
	return rc;
}

/* ---- due subscriptions --------------------------------------------------- */

static int items_process_due(void *ctx, struct fw_store *st, struct fw_err *err)
{
	struct fw_hubs *h = ctx;
	int64_t now_ms = fw_config_now_ms(h->config), until_ms = fw_mono_ms() + STEP_MS;
	int rc = 0;

	(void)st;
	while (!rc && h->queue.first && fw_mono_ms() < until_ms) {
		struct hub_item *it = FW_HEAP_OF(h->queue.first, struct hub_item, node);

		if (it->at_ms > now_ms)
			break;
		/* the default; the functions below set another time */
		hub_item_schedule(h, it, now_ms + FW_SECOND_MS);
		rc = it->token[0] ? hubs_unsubscribe(h, it, err) : hubs_update(h, it->feed_id, HUBS_UPDATE, err);
	}
	return rc;
}

/* ---- its life ------------------------------------------------------------ */

static int counts_store(void *ctx, struct fw_store *st, struct fw_err *err)
{
	const struct fw_hubs *h = ctx;
	struct counts c;
	int rc = 0;

	while (!rc && websub_counts_take(&c)) {
		rc = websub_record_counts_add(st, &c, fw_config_now_ms(h->config), err);
		if (rc)
			websub_counts_return(&c);
	}
	return rc;
}

static void hubs_closing(void *ctx)
{
	struct fw_hubs *h = ctx;
	struct fw_store *st = service_store(h->service);
	struct fw_err err;

	if (st && counts_store(h, st, &err))
		fw_warn("hubs: the counts of deliveries were not stored: %s", err.text);
	hubs_drop_state(h);
}

static void hubs_limits(struct fw_fetch_config *f)
{
	f->max_body_bytes = RESPONSE_MAX;
}

static int hubs_service_open(struct fw_hubs *h, struct fw_err *err)
{
	const int64_t most_ms = h->config->websub_scan_ms; /* of a task's interval */
	const struct service_task task[TASK_N] = {
		[COUNTS] = {FW_MIN(COUNTS_MS, most_ms), 0, counts_store},
		[COMPARE] = {FW_MIN(WAIT_MS, most_ms), TASK_FOLLOWS, leader_compare_base},
		[MESSAGES] = {FW_MIN(MESSAGES_MS, most_ms), TASK_LEADS, messages_read},
		[SCAN] = {most_ms, TASK_LEADS, scan_slice},
		[DUE] = {0, TASK_LEADS, items_process_due},
	};
	int rc = service_open(&(struct service_options){.config = h->config,
				      .who = "hubs",
				      .waits = "requests to hubs wait",
				      .task = task,
				      .task_n = TASK_N,
				      .tick_ms = FW_MIN(TICK_MS, most_ms),
				      .transfers = HUB_IN_FLIGHT_MAX,
				      .limits = hubs_limits,
				      .lead_kind = WEBSUB_RECORD_KIND,
				      .leads = "sends the requests to hubs",
				      .follow_ms = FW_MIN(WAIT_MS, most_ms),
				      .won = leader_start,
				      .opened = hubs_opened,
				      .lost = hubs_drop_state,
				      .closing = hubs_closing,
				      .ctx = h},
		&h->service, err);

	return rc ? rc : service_start(h->service, err);
}

static void hubs_free(struct fw_hubs *h)
{
	service_close(h->service);
	pthread_mutex_destroy(&h->key_lock);
	explicit_bzero(h->key, sizeof(h->key));
	fw_map_finish(&h->items);
	fw_map_finish(&h->hubs);
	fw_buf_finish(&h->base);
	free(h);
}

int fw_hubs_open(const struct fw_config *c, struct fw_hubs **out, struct fw_err *err)
{
	struct fw_hubs *h;
	int rc;

	*out = NULL;
	if (!c->websub_url)
		return 0;
	h = calloc(1, sizeof(*h));
	if (!h)
		return fw_err_set(err, FW_ENOMEM, "out of memory");
	h->config = c;
	h->scan = 1;
	pthread_mutex_init(&h->key_lock, NULL);
	fw_heap_init(&h->queue, hub_item_before);
	fw_map_init(&h->items, hubs_random());
	fw_map_init(&h->hubs, hubs_random());
	rc = callback_base(c->websub_url, &h->base, err);
	rc = rc ? rc : hubs_service_open(h, err);
	if (rc) {
		hubs_free(h);
		return rc;
	}
	*out = h;
	return 0;
}

void fw_hubs_stop(struct fw_hubs *h)
{
	if (!h)
		return;
	service_close(h->service);
	h->service = NULL;
}

void fw_hubs_close(struct fw_hubs *h)
{
	if (h)
		hubs_free(h);
}

bool fw_hubs_check_token(struct fw_hubs *h, struct fw_str token)
{
	bool known;

	pthread_mutex_lock(&h->key_lock);
	known = !h->has_key || callback_is_ours(h->key, token);
	pthread_mutex_unlock(&h->key_lock);
	if (!known)
		atomic_fetch_add_explicit(&websub_meter.unknown_n, 1, memory_order_relaxed);
	return known;
}
