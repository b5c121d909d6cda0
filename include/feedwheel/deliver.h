/* SPDX-License-Identifier: ISC */
/*
 * Deliveries: entries from a publisher, an importer or a hub instead of from a fetch. They use the
 * same parser, the same entry keys and the same commit as fetched entries. A worker may fetch the
 * feed at the same time. The feed's schedule and its validators stay as they are.
 *
 * Reading and storing are two steps, so that storing can be retried while the store is busy, also
 * over a new connection. All functions block. One thread at a time per delivery.
 */
#ifndef FEEDWHEEL_DELIVER_H
#define FEEDWHEEL_DELIVER_H

#include "feedwheel/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

struct fw_delivery;

struct fw_delivery_input {
	int64_t feed_id;
	struct fw_str body;         /* the body, decompressed; must outlive the delivery */
	struct fw_str content_type; /* as in HTTP; absent: found from the body */
	/* refuse a truncated document or invalid JSON: the client can correct it */
	bool strict;
	bool any_type; /* ignore a content_type that is not one of the feed types */
	/* time of the visit that is stored: when the body was received; 0: now */
	int64_t at_ms;
	/*
	 * from the feed's publisher, not its owner: feed_daily_entries_max and feed_daily_bytes_max
	 * apply
	 */
	bool is_hub;
};

struct fw_delivery_result {
	size_t entry_n;        /* entries in the document */
	size_t repeat_n;       /* of these, duplicates of an earlier one */
	size_t known_n;        /* of these, stored already and unchanged, or removed before */
	struct fw_visit visit; /* kind FW_VISIT_PUSHED; with new_n and changed_n */
	size_t deferred_n;     /* of these, left out because of the feed's daily limits */
};

/*
 * Parses a body. JSON Feed, Atom and RSS are recognised from the body; application/x-ndjson has one
 * item of JSON Feed per line. Errors: FW_ENOTFOUND no such feed; FW_EUNSUP another content type;
 * FW_EINVAL broken, with the position (strict, or a line); FW_EFORMAT not a feed; FW_ELIMIT above
 * max_body_bytes, max_entries or parse_memory_bytes, which the message names; FW_EAGAIN free disk
 * space below disk_free_min_bytes; FW_ENOMEM; those of the store.
 */
FW_API FW_MUST_CHECK int fw_delivery_open(struct fw_store *st, const struct fw_config *c,
	const struct fw_delivery_input *in, struct fw_delivery **out, struct fw_err *err);
/*
 * Stores the delivery, all or nothing. Errors: FW_EAGAIN the store is busy: call it again later.
 * FW_EIO the connection broke: call it again with a new one; nothing is stored or counted twice.
 * FW_EGONE the feed is gone or quarantined. FW_ENOTFOUND the feed was removed.
 */
FW_API FW_MUST_CHECK int fw_delivery_store(
	struct fw_delivery *d, struct fw_store *st, struct fw_delivery_result *out, struct fw_err *err);
/* The parsed document, with the list of its repairs. Owned by d. */
FW_API const struct fw_document *fw_delivery_document(const struct fw_delivery *d);
/*
 * Estimated memory for reading a body of body_bytes, besides the body: rarely exceeded, and at most
 * parse_memory_bytes. For callers that reserve memory first.
 */
FW_API size_t fw_delivery_estimate(const struct fw_config *c, size_t body_bytes);
/* Bytes that d holds, besides the body. */
FW_API size_t fw_delivery_bytes(const struct fw_delivery *d);
/* NULL is allowed. */
FW_API void fw_delivery_close(struct fw_delivery *d);

/* Reads and stores in one call. Retries a busy store for straggler_timeout_ms. */
FW_API FW_MUST_CHECK int fw_deliver(struct fw_store *st, const struct fw_config *c, const struct fw_delivery_input *in,
	int64_t straggler_timeout_ms, struct fw_delivery_result *out, struct fw_err *err);

/*
 * Writes a name for this process, for its leases and heartbeats; fw_worker_is_dead() parses it.
 * index: of a worker; -1: another process. Not exported.
 */
#define FW_WORKER_NAME_MAX 128
void fw_worker_name(char *out, size_t size, int index);

#ifdef __cplusplus
}
#endif
#endif
