/* SPDX-License-Identifier: ISC */
/*
 * The hubs' service: what hubs.c (the leader, the schedule of subscriptions) and hubs_request.c
 * (one feed, one hub) share. All of it runs on the service's thread, except key and has_key.
 */
#ifndef FW_ENGINE_HUBS_H
#define FW_ENGINE_HUBS_H

#include <pthread.h>

#include "api/service.h"
#include "base/heap.h"
#include "base/map.h"
#include "engine/websub/websub.h"
#include "engine/websub/websub_requests.h"
#include "feedwheel/deliver.h"
#include "fetch/fetch.h"

#define HUB_IN_FLIGHT_MAX 16 /* concurrent requests */

/* a subscription, or a callback to unsubscribe */
struct hub_item {
	int64_t feed_id;
	char token[SUB_TOKEN_LEN + 1]; /* the callback to unsubscribe; "": a subscription */
	int64_t at_ms;                 /* when it is due */
	int64_t slot_ms;               /* its time slot at its hub; 0: none */
	/* sub_desired_hash() of the desired subscription, when the feed was last processed */
	uint64_t desired_hash;
	uint64_t scan; /* number of the last scan that found it */
	bool active;
	struct hub_request *request; /* request in flight; NULL: none */
	struct fw_heap_node node;
};

/* a server that requests go to */
struct hub {
	char host[256];
	int64_t free_ms;           /* end of its last time slot */
	int64_t cooldown_until_ms; /* no requests before: it fails for all feeds */
	uint32_t fail_n;           /* consecutive requests that it refused, or never verified */
	uint32_t in_flight;
};

/* a request in flight */
struct hub_request {
	struct fw_fetch fetch;
	struct fw_hubs *h;
	struct hub_item *item;
	struct hub *hub;
	struct fw_buf form, url;
	char token[SUB_TOKEN_LEN + 1];
	char why[160]; /* why it failed; "": the hub accepted it */
};

struct fw_hubs {
	const struct fw_config *config;
	struct fw_buf base;
	struct service *service;
	pthread_mutex_t key_lock; /* guards has_key and, for other threads, key */
	bool has_key;
	unsigned char key[SUB_KEY_LEN];
	bool base_logged;

	/* while this process is the leader */
	struct fw_map items;  /* subscriptions, by the bytes of feed_id */
	struct fw_heap queue; /* all items, by at_ms */
	struct fw_map hubs;   /* by host */
	uint32_t in_flight;
	int64_t scan_after; /* the cursor of the scan */
	uint64_t scan;
};

/* ---- hubs.c -------------------------------------------------------------- */

uint64_t hubs_random(void); /* for jitter */
struct hub_item *hub_item_find(struct fw_hubs *h, int64_t feed_id);
/* NULL: out of memory */
struct hub_item *hub_item_add(
	struct fw_hubs *h, int64_t feed_id, struct fw_str token /* absent: a subscription */, int64_t at_ms);
void hub_item_schedule(struct fw_hubs *h, struct hub_item *it, int64_t at_ms);
void hub_item_remove(struct fw_hubs *h, struct hub_item *it); /* cancels its request */
void hub_item_set_active(struct hub_item *it, bool active);

/* ---- hubs_request.c ---------------------------------------------------------- */

enum hubs_action { HUBS_UPDATE, HUBS_SWITCH_ON, HUBS_SWITCH_OFF };
/*
 * Brings the subscription of a feed up to date: records what its hub said, adopts what the feed now
 * desires, and sends the request that is due. Any feed, also one that has no subscription or that
 * was removed. Errors: those of the store; then the feed must be processed again.
 */
FW_MUST_CHECK int hubs_update(struct fw_hubs *h, int64_t feed_id, enum hubs_action how, struct fw_err *err);
/* A poll found entries that the hub had not delivered by then. */
FW_MUST_CHECK int hubs_missed(struct fw_hubs *h, int64_t feed_id, const struct missed *m, struct fw_err *err);
/* Sends the unsubscribe request of a callback, or removes the callback. */
FW_MUST_CHECK int hubs_unsubscribe(struct fw_hubs *h, struct hub_item *it, struct fw_err *err);
/*
 * Retires a callback: its deliveries are refused from now on, and its hub gets an unsubscribe
 * request.
 */
FW_MUST_CHECK int hubs_retire_callback(struct fw_hubs *h, struct fw_str token, struct fw_err *err);
/* Makes a feed due within spread_ms: no hub delivers it, or none did for a while. */
FW_MUST_CHECK int hubs_poll_soon(struct fw_hubs *h, const struct fw_feed *f, int64_t spread_ms, struct fw_err *err);

#endif
