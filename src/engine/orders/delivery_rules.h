/* SPDX-License-Identifier: ISC */
/*
 * The rules of a delivery: what its record becomes when a batch is formed, and when an attempt to
 * send it has ended. A pure state machine: time and randomness are arguments.
 */
#ifndef FW_ENGINE_DELIVERY_RULES_H
#define FW_ENGINE_DELIVERY_RULES_H

#include "api/order.h"

#define DELIVERY_BACKOFF_MIN_MS INT64_C(5000)
#define DELIVERY_BACKOFF_MAX_MS INT64_C(21600000)     /* 6 h */
#define DELIVERY_RETRY_AFTER_MAX_MS INT64_C(86400000) /* 24 h */
#define DELIVERY_MESSAGE_ID_MAX 100

/* How an attempt ended. */
struct delivery_result {
	bool accepted;
	bool ended;          /* the receiver wants no more, ever: 410 */
	int64_t status;      /* HTTP status or exit code; 0: none */
	struct fw_str error; /* unless accepted; borrowed */
	int64_t retry_ms;    /* Retry-After, from now; 0: none */
};

/* These changes, n of 1 to FW_ORDER_BATCH_MAX, rising, are the next batch. */
void delivery_form(struct fw_order_delivery *d, const int64_t *change_id, size_t n, int64_t now_ms);
/*
 * The id of the batch's message: the same as long as the batch is the same, and never that of
 * another batch, even one of the same entries.
 */
void delivery_message_id(const struct fw_order_delivery *d, char out[DELIVERY_MESSAGE_ID_MAX]);
/*
 * When the next attempt may be made. woken_ms: fw_order.woken_ms. A wake that the last attempt did
 * not find counts, whenever that attempt ended: what it met may have been mended meanwhile.
 */
int64_t delivery_due_ms(const struct fw_order_delivery *d, int64_t woken_ms);
/* An attempt begins, of an order that was woken last at woken_ms. */
void delivery_begin(struct fw_order_delivery *d, int64_t woken_ms);
/*
 * An attempt has ended. sent_n: the entries in it. Accepted or ended: the batch is over. Else it is
 * sent again at next_ms. d->error is the result's.
 */
void delivery_conclude(
	struct fw_order_delivery *d, const struct delivery_result *result, size_t sent_n, int64_t now_ms, uint64_t rnd);
/* The batch is over without an attempt: nothing of it waits any more. */
void delivery_end_batch(struct fw_order_delivery *d);
/* The pause before the next attempt, after this many failures in a row. */
int64_t delivery_backoff_ms(uint32_t fail_n, uint64_t rnd);

#endif
