/* SPDX-License-Identifier: ISC */
/*
 * The inbox: rows that other programs put into the store by its own commands, until a worker takes
 * them. feedwheel-store(7), "Doors", describes it for them.
 *
 *	feeds_to_fetch   an address: it is subscribed if it is not yet, and due before all others
 *	control          a word to all workers, or to one by its name: stop, pause, resume, reload
 *
 * Taking is one transaction: a row is gone exactly when its feed is subscribed and due, or its
 * message can be read by all workers. So nothing is lost or done twice when a taker dies. Any
 * number of workers take at once: each row goes to one of them. A row of feeds_to_fetch that is no
 * address moves to feeds_to_fetch_refused, with the reason and the time.
 *
 * All rows of control are taken before the first of feeds_to_fetch, each of them in the order in
 * which they were put. A worker takes after its control messages and before its claims.
 */
#ifndef FW_STORE_INBOX_H
#define FW_STORE_INBOX_H

#include "store/driver.h"

/* A row of feeds_to_fetch as it was written; borrowed. Absent, 0: not given. */
struct store_inbox_feed {
	struct fw_str url, folder, title;
	struct fw_str interval; /* as of `feedwheel add --interval`: "6h" */
	int64_t interval_ms;
};

/* A row of control, likewise. */
struct store_inbox_control {
	struct fw_str command; /* "stop" ... */
	struct fw_str worker;  /* absent or empty: all */
};

#define STORE_CONTROL_VALUE_MAX (FW_RECORD_KEY_MAX + 8)

/*
 * A row of a list of Redis as a row: a JSON object with the members' names, or else the address, or
 * "stop", "stop WORKER". Strings go into the arena. FW_EINVAL: the reason; FW_ENOMEM.
 */
int store_inbox_feed_parse(struct fw_str text, struct fw_arena *a, struct store_inbox_feed *out, struct fw_err *err);
int store_inbox_control_parse(
	struct fw_str text, struct fw_arena *a, struct store_inbox_control *out, struct fw_err *err);

/* Why a stored feed that is not active is refused, as by fetch-now. Absent: no memory. */
struct fw_str store_inbox_inactive(struct fw_arena *a, enum fw_feed_status status);

/*
 * The value of the record of kind STORE_CONTROL_KIND that a row of control becomes. *pauses: also
 * put it as the record STORE_PAUSED_KIND, key "all", without an end. FW_EINVAL: the reason.
 */
int store_inbox_control_value(
	const struct store_inbox_control *row, char value[STORE_CONTROL_VALUE_MAX], bool *pauses, struct fw_err *err);
/*
 * Control messages are records (records.c). The key is a number of 20 digits: the store's time in
 * us, or 1 above the newest message.
 */
#define STORE_CONTROL_KIND "~control"
#define STORE_PAUSED_KIND "~paused"
#define STORE_CONTROL_KEPT_MS (7 * FW_DAY_MS)

#endif
