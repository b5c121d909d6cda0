/* SPDX-License-Identifier: ISC */
/* A claim on its way: what postgres_wheel.c and postgres_ids.c share. */
#ifndef FW_STORE_POSTGRES_CLAIM_H
#define FW_STORE_POSTGRES_CLAIM_H

#include "store/host.h"
#include "store/postgres.h"

struct pg_place { /* a feed that may be lent */
	struct pg_lent lent; /* host_id: the crowded host's */
	int64_t place_at;    /* its row in places; 0: it is parked */
	int64_t wake_ms;     /* of that row; 0: it was found by its time */
	int64_t number;      /* in the ask's ids, from 1 on; 0: it was found by its time */
	bool moved;          /* waits for another time than it is due; of a crowded host it is the turn */
	struct fw_feed feed;
};

struct pg_host { /* id comes first: pg_host_find */
	int64_t id, turn_n, parked_n;
	struct fw_budget budget;
};

struct pg_claim {
	const struct fw_claim_ask *ask, *rule; /* the budget's: at first as if host_ahead were 0, unless feeds are named */
	struct fw_arena *a;
	struct fw_lease *out;
	struct fw_claim_got *got;
	int64_t now_ms, before_ms;
	int64_t me;            /* the borrower */
	struct pg_lent *lent;  /* of out[] */
	struct pg_place *place;
	struct pg_host *host;
	int64_t *host_ids;
	size_t place_n, host_n, room; /* room: of place, host and host_ids */
	size_t park_n;
	int64_t *met;          /* hosts that may go ahead, of which some are parked; room for so many */
	size_t met_n, met_room;
	int64_t later_ms;      /* of those that were asked for by number: when a host may be asked; FW_NO_DATE: unknown */
	bool taken_back, looked_all;
};

/*
 * Queued: rows of places or parked with all that is known of their feeds. `rows` is a SELECT of PG_PLACE_ROW_SQL (PG_DUE_ROW_SQL,
 * PG_PARKED_ROW_SQL) and what it is FROM; `hint` an expression whose value is thrown away.
 */
#define PG_PLACE_ROW_SQL(wake, number) "p.ctid AS t, p.id, p.feed_id, p.due_at_ms, " wake " AS wake_at_ms, p.wheel_at, p.feed_at, " \
	number " AS number"
#define PG_DUE_ROW_SQL PG_PLACE_ROW_SQL("NULL::int8", "NULL::int8") /* found by its time, it needs neither */
#define PG_PARKED_ROW_SQL(number) "NULL::tid AS t, 0::int8 AS id, q.feed_id, NULL::int8 AS due_at_ms, q.due_at_ms AS wake_at_ms," \
	" NULL::tid AS wheel_at, NULL::tid AS feed_at, " number " AS number"
void pg_places_ask(struct pg *p, enum pg_id id, const char *rows, const char *hint);
/* The rows of its answer behind those in c->place; *last_id may be NULL. A feed that somebody deleted by hand is passed over. */
int pg_places_read(struct pg *p, struct pg_claim *c, const PGresult *r, int64_t *last_id, struct fw_err *err);
#define PG_PLACES_DROP_SQL "DELETE FROM places WHERE ctid = ANY ($1::tid[])"
/* SQL: is this row of places, p, expected to take at most so long? A parameter; 0: any. */
#define PG_QUICK_SQL(max) "(" max "::int8 = 0 OR coalesce(p.due_at_ms, p.wake_at_ms) = 1 OR coalesce((SELECT w.expect_us FROM wheel w" \
	" WHERE w.ctid = p.wheel_at AND w.feed_id IS NOT DISTINCT FROM p.feed_id), (SELECT w.expect_us FROM wheel w" \
	" WHERE w.feed_id = p.feed_id), 0) <= " max "::int8)"

/* Queued: lock the crowded hosts among c->place, whose answer hosts_read takes. False: there are none, and nothing was sent. */
bool pg_claim_hosts_ask(struct pg *p, struct pg_claim *c);
void pg_claim_hosts_read(struct pg_claim *c, const PGresult *r);
struct pg_host *pg_host_find(struct pg_claim *c, int64_t id);
/* May a feed of this host be lent now? */
bool pg_host_may(const struct pg_claim *c, const struct pg_host *h);
/* h: its host, with its counters, or NULL. */
void pg_place_lend(struct pg_claim *c, const struct pg_place *q, struct pg_host *h);
/* Queued: hosts as they are now, and turns for those that have room. *turns: some were given that are due. */
void pg_claim_hosts_put(struct pg *p, struct pg_claim *c, bool *turns);
/* Queued: these are parked no more. host_id and feed_id, with the times they were due at. */
void pg_parked_take(struct pg *p, const struct pg_place *q, size_t n);

/* postgres_ids.c: lend those that the ask names, looking for so many at once. */
#define PG_IDS_CHUNK 1000
int pg_claim_ids(struct pg *p, struct pg_claim *c, struct fw_err *err);

#endif
