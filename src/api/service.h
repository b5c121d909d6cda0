/* SPDX-License-Identifier: ISC */
/*
 * A service: a thread that does background work by a table of tasks. It owns an event loop, a link
 * to the store (store_link.h) and, on wish, a fetcher and a lead: of all processes with this
 * service on a store, one leads. It uses the store from the loop: a blocked loop does no harm here.
 *
 * A round opens the store if that is due, takes or renews the lead, and runs the tasks that are due
 * in the order of their table. The first error ends the round and goes to the link; the task that
 * failed is due again at once, so it runs again when the link allows. A round comes when something
 * is due, after each tick_ms, and after service_wake().
 *
 *	open     service_open(), what else needs the loop, service_start()
 *	work     rounds; done() of fetches comes from the loop, between them
 *	stop     service_stop(); rounds go on until the owner is `idle`, at most stop_ms
 *	close    `closing`; the lead is given back; the store is closed; service_close() joins
 */
#ifndef FW_API_SERVICE_H
#define FW_API_SERVICE_H

#include "feedwheel/engine.h"

struct fw_fetch_config;
struct fw_fetcher;
struct fw_net;
struct service;
struct uv_loop_s;

enum {
	TASK_LEADS = 1,   /* runs only while this process leads; due at once when it begins to lead */
	TASK_FOLLOWS = 2, /* runs only while it does not */
	/*
	 * runs without the store too; then st is NULL, and it returns 0. A store that is only busy
	 * is still service_store()
	 */
	TASK_OFFLINE = 4,
};

struct service_task {
	int64_t every_ms; /* 0: in each round; service_in() makes one come then */
	unsigned when;    /* TASK_...; 0: whenever there is a store */
	/* Errors that are not the store's count as FW_EIO: the connection begins anew. */
	int (*run)(void *ctx, struct fw_store *st, struct fw_err *err);
};

/* All functions but run() may be NULL, and run on the service's thread. */
struct service_options {
	const struct fw_config *config;  /* borrowed, as the strings */
	const char *who, *waits;         /* as those of struct store_link */
	const struct service_task *task; /* copied */
	size_t task_n;
	int64_t tick_ms;                           /* the longest time between two rounds; 0: until something is due */
	int64_t stop_ms;                           /* how long a stop waits for `idle` */
	uint32_t transfers;                        /* of the fetcher; 0: there is none */
	void (*limits)(struct fw_fetch_config *f); /* tightens the settings of the fetcher */
	struct fw_str lead_kind;                   /* of the record "leader"; absent: it never leads */
	const char *leads;                         /* "delivers": what the leader does, for the log */
	int64_t follow_ms;                         /* how often a follower tries to lead */
	/* Does a follower try? */
	int (*wants_lead)(void *ctx, struct fw_store *st, bool *wants, struct fw_err *err);
	/* Read what a leader knows. until_ms: the end of the last leader's lease; 0: none */
	int (*won)(void *ctx, struct fw_store *st, int64_t until_ms, struct fw_err *err);
	int (*opened)(void *ctx, struct fw_store *st, struct fw_err *err); /* before the first use */
	/* The lead or the store is lost (service_store() is NULL): drop what is known by it. */
	void (*lost)(void *ctx);
	bool (*idle)(void *ctx);    /* at a stop: is all done? NULL: yes */
	void (*closing)(void *ctx); /* the last call but `lost`: end all fetches, store last counts */
	void *ctx;
};

/*
 * Without a thread yet: until service_start() nothing runs. Errors: FW_EINVAL names the setting;
 * FW_EIO; FW_ENOMEM.
 */
FW_MUST_CHECK int service_open(const struct service_options *o, struct service **out, struct fw_err *err);
/* The first round comes at once. FW_EIO: no thread; it may be tried again. */
FW_MUST_CHECK int service_start(struct service *s, struct fw_err *err);
/* Stop, wait for the thread, and free. NULL is allowed, and one that was never started. */
void service_close(struct service *s);

/* ---- any thread ------------------------------------------------------------------------------ */

void service_wake(struct service *s); /* a round soon */
void service_stop(struct service *s); /* does not wait for its end */
bool service_is_stopping(const struct service *s);
bool service_leads(const struct service *s);

/* ---- the service's thread, or before service_start() ----------------------------------------- */

/* The task at this place of the table is due in so many ms, whatever was said before. */
void service_in(struct service *s, size_t task, int64_t ms);
/* Somebody waits: in the next round all tasks, the lead and the link are due. */
void service_hurry(struct service *s);
/* Do we lead, certainly? Renews the lead if that is in doubt, which may lose it. */
FW_MUST_CHECK int service_check_lead(struct service *s, struct fw_err *err);
/* Without a query: is it certain that we lead? */
bool service_lead_is_safe(const struct service *s);
/* NULL: an outage. */
struct fw_store *service_store(struct service *s);
/* After work with the store outside of a task, as in done() of a fetch. May close the store. */
void service_used(struct service *s, int rc, const struct fw_err *err);
/* `waits` of the next lines about an outage. */
void service_set_waits(struct service *s, const char *waits);
struct uv_loop_s *service_loop(struct service *s);
struct fw_fetcher *service_fetcher(struct service *s); /* NULL: none */
const struct fw_net *service_net(const struct service *s);

#endif
