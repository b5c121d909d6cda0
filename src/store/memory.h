/* SPDX-License-Identifier: ISC */
/* Inside the memory driver: what its files share. Nobody else includes this. */
#ifndef FW_STORE_MEMORY_H
#define FW_STORE_MEMORY_H

#include "base/map.h"
#include "store/drivers.h"
#include "store/host.h"

struct host {
	char *name;
	int64_t id;
	uint32_t feed_n;
	struct fw_budget budget;
};

struct item {
	struct fw_entry_row row;
	bool pruned; /* only key and hash are left, so that it does not come back as new */
};

struct node { /* a feed on the wheel */
	struct fw_feed feed; /* lease_until_ms != 0: lent */
	struct host *host;
	char *worker;        /* who has it */
	bool uncounted;      /* that loan is not in its host's budget */
	struct fw_map items; /* key -> struct item */
	int64_t pruned_n;    /* of these */
};

struct beat {
	struct fw_beat beat;
	char *worker;
};

struct list { /* pointers in order of id */
	void **at;
	size_t n, cap;
};

struct memory {
	struct fw_store base;
	struct list feeds, items, visits, beats, controls, events, dead_events, records;
	struct fw_map by_url, hosts;
	int64_t feed_id, entry_id, visit_id, host_id, fence;
	int64_t pruned_n; /* of items */
};

static inline struct memory *mem_of(struct fw_store *st)
{
	return (struct memory *)st; /* base comes first */
}

/* ---- memory.c -------------------------------------------------------------------------------------------------------- */

int mem_no_memory(struct fw_err *err);
/* Room for `more` entries; FW_ENOMEM: there is none. */
int mem_list_room(struct list *l, size_t more);
void mem_list_cut(struct list *l, size_t i);
/* Replace *dst by a copy of src; on failure *dst stays. */
bool mem_keep(struct fw_str *dst, struct fw_str src);
void mem_drop(struct fw_str *s);
struct fw_str mem_key_of(const struct fw_entry_row *row);
/* Of the first feed with this id or a higher one. */
size_t mem_node_index(const struct memory *m, int64_t id);
struct node *mem_node_find(const struct memory *m, int64_t id);
int mem_not_found(int64_t feed_id, struct fw_err *err);
/* The host of a feed (its url and host_key), one feed more (NULL: out of memory); and one feed less, freed with the last. */
struct host *mem_host_take(struct memory *m, const struct fw_feed *feed);
void mem_host_give(struct memory *m, struct host *h);
/* All but key and hash goes. */
void mem_item_empty(struct item *e);
void mem_item_free(struct item *e);
struct item *mem_item_copy(const struct fw_entry_row *row);
void mem_node_free(struct memory *m, struct node *f);
/* Frees those older than that. */
void mem_beats_forget(struct memory *m, int64_t before_ms);

/* ---- memory_wheel.c -------------------------------------------------------------------------------------------------- */

bool mem_on_wheel(const struct node *f);
bool mem_crowded(const struct host *h); /* has it several feeds? */
int mem_by_due(const void *a, const void *b); /* for qsort of pointers to nodes */
void mem_lease_end(struct node *f, const struct fw_outcome *o, int64_t now_ms); /* o NULL: unvisited */
int mem_claim(struct fw_store *st, const struct fw_claim_ask *ask, struct fw_arena *a, struct fw_lease *out,
	struct fw_claim_got *got, struct fw_err *err);
int mem_lend(struct fw_store *st, const struct fw_lend_ask *ask, struct fw_lend_got *got, struct fw_err *err);
int mem_release(struct fw_store *st, const struct fw_lease *lease, size_t n, struct fw_err *err);
int mem_bury(struct fw_store *st, const char *worker, int64_t crashed_feed_id, int64_t now_ms, struct fw_err *err);
int mem_pending(struct fw_store *st, int64_t due_before_ms, int64_t *n, int64_t *wake, struct fw_err *err);
int mem_due_list(struct fw_store *st, int64_t due_before_ms, size_t limit, fw_due_cb *cb, void *ctx, struct fw_err *err);

/* ---- memory_commit.c ------------------------------------------------------------------------------------------------- */

int mem_commit(struct fw_store *st, struct fw_commit *batch, struct fw_err *err);

/* ---- memory_window.c ------------------------------------------------------------------------------------------------- */

int mem_subscribe(struct fw_store *st, struct fw_feed_new *feed, size_t n, struct fw_err *err);
int mem_unsubscribe(struct fw_store *st, int64_t feed_id, struct fw_err *err);
int mem_feed_merge(struct fw_store *st, int64_t from_id, int64_t into_id, struct fw_err *err);
int mem_feed_find(struct fw_store *st, int64_t id, struct fw_str url, struct fw_arena *a, struct fw_feed *out,
	struct fw_err *err);
int mem_feed_list(struct fw_store *st, const struct fw_feed_query *q, fw_feed_cb *cb, void *ctx, struct fw_err *err);
int mem_feed_set(struct fw_store *st, const struct fw_feed *feed, unsigned what, struct fw_err *err);
int mem_stats(struct fw_store *st, int64_t now_ms, struct fw_store_stats *out, struct fw_err *err);
int mem_control_put(struct fw_store *st, enum fw_control_kind kind, int64_t now_ms, struct fw_err *err);
int mem_control_take(struct fw_store *st, int64_t after_id, struct fw_control *out, struct fw_err *err);
int mem_beat_list(struct fw_store *st, int64_t since_ms, fw_beat_cb *cb, void *ctx, struct fw_err *err);

/* ---- memory_load.c --------------------------------------------------------------------------------------------------- */

int mem_load(struct fw_store *st, const struct fw_load *rows, struct fw_err *err);
int mem_key_list(struct fw_store *st, int64_t first_feed_id, int64_t last_feed_id, fw_key_cb *cb, void *ctx,
	struct fw_err *err);

/* ---- memory_entries.c ------------------------------------------------------------------------------------------------ */

int mem_entry_list(struct fw_store *st, const struct fw_entry_query *q, fw_entry_cb *cb, void *ctx,
	struct fw_err *err);
int mem_visit_list(struct fw_store *st, const struct fw_visit_query *q, fw_visit_cb *cb, void *ctx,
	struct fw_err *err);
int mem_prune(struct fw_store *st, int64_t visits_before_ms, int64_t entries_before_ms, int64_t *n, struct fw_err *err);

/* ---- memory_events.c ------------------------------------------------------------------------------------------------ */

int mem_event_put(struct fw_store *st, const struct fw_event *event, size_t n, struct fw_err *err);
int mem_event_bury(struct fw_store *st, const struct fw_dead_event *event, struct fw_err *err);
int mem_event_list(struct fw_store *st, int64_t after_id, size_t limit, fw_event_cb *cb, void *ctx, struct fw_err *err);
int mem_event_dead_list(struct fw_store *st, int64_t after_id, size_t limit, fw_dead_event_cb *cb, void *ctx, struct fw_err *err);
int mem_event_prune(struct fw_store *st, int64_t before_ms, int64_t *n, struct fw_err *err);
int mem_event_unbury(struct fw_store *st, const struct fw_dead_event *event, size_t n, struct fw_err *err);
void mem_events_free(struct memory *m);

/* ---- memory_records.c -------------------------------------------------------------------------------------------------- */

int mem_record_put(struct fw_store *st, const struct fw_record *r, bool if_absent, bool *was, struct fw_err *err);
int mem_record_get(struct fw_store *st, struct fw_str kind, struct fw_str key, struct fw_arena *a, struct fw_record *out,
	struct fw_err *err);
int mem_record_list(struct fw_store *st, const struct fw_record_query *q, fw_record_cb *cb, void *ctx, struct fw_err *err);
int mem_record_remove(struct fw_store *st, struct fw_str kind, struct fw_str key, struct fw_str value, struct fw_err *err);
int mem_record_prune(struct fw_store *st, int64_t now_ms, int64_t *n, struct fw_err *err);
void mem_records_free(struct memory *m);

#endif
