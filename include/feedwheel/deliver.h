/* SPDX-License-Identifier: ISC */
/*
 * Entries that somebody brings: a publisher, an importer, a hub. They go the way of fetched ones: the same parser, the same identity,
 * the same commit. A worker may fetch the feed at the same time. What is known of when and how to fetch it stays as it is.
 *
 * Reading and storing are two steps, so that storing may be repeated while the store is busy, and over another connection when it broke.
 * Blocks; one thread at a time.
 */
#ifndef FEEDWHEEL_DELIVER_H
#define FEEDWHEEL_DELIVER_H

#include "feedwheel/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

struct fw_delivery;

struct fw_delivery_in {
	int64_t feed_id;
	struct fw_str body;          /* as it was sent, unpacked; must live until the delivery is closed */
	struct fw_str content_type;  /* as in HTTP; absent: the body tells */
	bool strict;                 /* refuse a document that broke off, or is broken JSON: its sender can mend it */
	bool any_type;               /* content_type may be anything: one that is none of ours is not looked at */
	int64_t at_ms;               /* of the visit that will tell of it: when it came; 0: now */
	bool is_hub;                 /* the feed's publisher sends it, not its owner: feed_entries_max and feed_bytes_max hold */
};

struct fw_delivered {
	size_t entry_n;              /* in the document */
	size_t repeat_n;             /* of these, the very same as one before it */
	size_t known_n;              /* stored already, as they are */
	struct fw_visit visit;       /* of kind FW_VISIT_PUSHED; with new_n and changed_n */
	size_t left_n;               /* left out: the feed has brought what it may a day */
};

/*
 * Read it. JSON Feed, Atom and RSS are told by the body; application/x-ndjson is one item of JSON Feed a line.
 * Errors: FW_ENOTFOUND no such feed; FW_EUNSUP a content type that is none of these; FW_EINVAL it is broken, with the place (strict, or a
 * line); FW_EFORMAT not a feed; FW_ELIMIT more than max_body_bytes, max_entries or parse_memory_bytes, which it names; FW_EAGAIN less room on the disk than
 * disk_free_min_bytes; FW_ENOMEM; those of the store.
 */
FW_API FW_MUST_CHECK int fw_delivery_open(struct fw_store *st, const struct fw_config *c, const struct fw_delivery_in *in,
	struct fw_delivery **out, struct fw_err *err);
/*
 * Store it, all or nothing. Errors: FW_EAGAIN the store is busy: later, as it is; FW_EIO the store broke: again over a new
 * connection, and nothing is stored or counted twice; FW_EGONE the feed is gone or quarantined; FW_ENOTFOUND.
 */
FW_API FW_MUST_CHECK int fw_delivery_store(struct fw_delivery *d, struct fw_store *st, struct fw_delivered *out, struct fw_err *err);
/* What was read: its repairs are of interest. */
FW_API const struct fw_document *fw_delivery_document(const struct fw_delivery *d);
/* What reading a body of so many bytes takes besides it, nearly always: for who counts before. At most parse_memory_bytes. */
FW_API size_t fw_delivery_estimate(const struct fw_config *c, size_t body_bytes);
/* What it holds besides the body. */
FW_API size_t fw_delivery_bytes(const struct fw_delivery *d);
/* NULL is fine. */
FW_API void fw_delivery_close(struct fw_delivery *d);

/* All of it; a store that is busy is waited for, for patience_ms. */
FW_API FW_MUST_CHECK int fw_deliver(struct fw_store *st, const struct fw_config *c, const struct fw_delivery_in *in, int64_t patience_ms,
	struct fw_delivered *out, struct fw_err *err);

/* For our own doors: a name for this process, for what it holds: fw_worker_is_dead() reads it. index: of a worker; -1: none. */
#define FW_WORKER_NAME_MAX 128
void fw_worker_name(char *out, size_t size, int index);

#ifdef __cplusplus
}
#endif
#endif
