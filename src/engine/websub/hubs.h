/* SPDX-License-Identifier: ISC */
/* The hub thread: what hubs.c (who leads, which feeds are to be looked at when) and hubs_ask.c (one feed, one hub) share. */
#ifndef FW_ENGINE_HUBS_H
#define FW_ENGINE_HUBS_H

#include <pthread.h>
#include <uv.h>

#include "base/heap.h"
#include "base/map.h"
#include "engine/settings.h"
#include "engine/websub/websub.h"
#include "engine/websub/websub_wish.h"
#include "feedwheel/deliver.h"

#define HUB_FLYING_MAX 16 /* requests at a time */

struct item { /* a subscription, or a callback that is to be left */
	int64_t feed_id;
	char token[SUB_TOKEN_LEN + 1]; /* of a callback that is to be left; "": a subscription */
	int64_t at_ms;              /* when to look at it */
	int64_t slot_ms;            /* its turn at its hub; 0: it has none */
	uint64_t wish;              /* what the feed wished when it was looked at last (wish_hash) */
	uint64_t walk;              /* the number of the walk that has seen it last */
	bool active;
	struct ask *ask;            /* on its way; NULL: none */
	struct fw_heap_node node;   /* in the queue */
};

struct hub { /* a server that is asked */
	char host[256];
	int64_t free_ms;            /* nobody has a turn there from then on */
	int64_t pause_ms;           /* nobody is to be asked there before: it fails for all */
	uint32_t fail_n;            /* requests in a row that it refused, or never verified */
	uint32_t flying;
};

struct ask { /* a request on its way */
	struct fw_fetch fetch;
	struct fw_hubs *h;
	struct item *item;
	struct hub *hub;
	struct fw_buf form, url;
	char token[SUB_TOKEN_LEN + 1];
	char why[160];              /* it failed; "": the hub took it */
};

struct fw_hubs {
	const struct fw_config *config;
	struct fw_buf base;
	pthread_t thread;
	pthread_mutex_t key_lock;   /* of has_key and, for other threads, key */
	bool has_key, joined;
	unsigned char key[SUB_KEY_LEN];
	uv_loop_t loop;
	uv_async_t stop;
	uv_timer_t tick;
	struct fw_net net;
	struct fw_fetcher *fetcher;
	bool closing;

	struct fw_store *st;        /* NULL: away */
	int64_t open_ms, counts_ms, lead_ms, mail_ms, walk_ms; /* when it is time again; monotonic */
	bool away_said, base_said;
	char name[FW_WORKER_NAME_MAX];

	/* while this process leads */
	bool leads;
	struct fw_map items;        /* by feed_id's bytes: subscriptions */
	struct fw_heap queue;       /* of all, by at_ms */
	struct fw_map hubs;         /* by host */
	uint32_t flying;
	int64_t walk_after;         /* the cursor */
	uint64_t walk;
};

/* ---- hubs.c -------------------------------------------------------------- */

uint64_t hubs_rnd(void); /* for jitter */
struct item *item_of(struct fw_hubs *h, int64_t feed_id);
struct item *item_add(struct fw_hubs *h, int64_t feed_id, struct fw_str token /* absent: a subscription */, int64_t at_ms); /* NULL: no memory */
void item_at(struct fw_hubs *h, struct item *it, int64_t at_ms);
void item_drop(struct fw_hubs *h, struct item *it); /* its request is cancelled */
void item_active(struct item *it, bool active);

/* ---- hubs_ask.c ---------------------------------------------------------- */

enum look { LOOK, LOOK_ON, LOOK_OFF };
/*
 * Look at a feed, and do what is to be done about its hub: what a hub has said meanwhile is taken over, what has changed is asked anew, what
 * is due is asked. Any feed, also one that has no subscription, or is no more. Errors: the store's; it is to be looked at again then.
 */
FW_MUST_CHECK int hubs_look(struct fw_hubs *h, int64_t feed_id, enum look how, struct fw_err *err);
/* A poll found what its hub had not sent by then. */
FW_MUST_CHECK int hubs_missed(struct fw_hubs *h, int64_t feed_id, const struct missed *m, struct fw_err *err);
/* It is time for a callback that is to be left. */
FW_MUST_CHECK int hubs_leave(struct fw_hubs *h, struct item *it, struct fw_err *err);
/* A callback that nobody needs any more: nothing is taken there from now on, and its hub is told. */
FW_MUST_CHECK int hubs_leave_begin(struct fw_hubs *h, struct fw_str token, struct fw_err *err);
/* Have a feed asked within spread_ms: no hub stands for it, or stood for a while. */
FW_MUST_CHECK int hubs_poll_soon(struct fw_hubs *h, const struct fw_feed *f, int64_t spread_ms, struct fw_err *err);

#endif
